/* SPDX-License-Identifier: MIT */
/*
 * stress.wmem - an account under threads that charge, complete and close
 *
 * Goal: whatever the order of charges, completions and close, one thread is
 * told, the sums are exact, the values that calls return are of one instant,
 * and who is told sees what every other wrote. Method: short lives of an
 * account by the hundred thousand, each thread with a packet of its own that
 * pins it. Waiting for room is stress.wmem_wake.
 */
#define _POSIX_C_SOURCE 200809L

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dstref/line.h>
#include <dstref/wmem.h>

#include "capture.h"
#include "stress.h"

#define THREADS 4
#define HELD 8 /* packets of a thread at a time */

struct life {
	DSTREF_LINE_START struct dstref_wmem wmem;
	uint64_t field[THREADS]; /* plain: written before the last uncharge */
	uint32_t first[THREADS]; /* bytes of each thread's own packet */
};

struct lives {
	struct life life;
	uint64_t rounds;
	DSTREF_ATOMIC(uint64_t) told, wrong;
};

static void wrong_if(struct lives *lives, bool wrong)
{
	if (wrong)
		(void)dstref_fetch_add_relaxed(&lives->wrong, UINT64_C(1));
}

/* Thread 0, alone: an account with one packet for each thread. */
static void life_begin(struct stress_thread *thread, struct life *life)
{
	struct lives *lives = thread->arg;

	dstref_wmem_init(&life->wmem);
	for (unsigned int i = 0; i < thread->run->threads; i++) {
		life->field[i] = 0;
		life->first[i] = (uint32_t)(stress_random(thread) % 3000);
		wrong_if(lives, !dstref_wmem_charge(&life->wmem, life->first[i],
						    NULL));
	}
}

/* Packets more, of all sizes, some resized, completed in another order. */
static bool more_packets(struct stress_thread *thread, struct life *life)
{
	uint32_t bytes[HELD];
	unsigned int n = (unsigned int)(stress_random(thread) % HELD);
	bool told = false;

	for (unsigned int i = 0; i < n; i++) {
		bytes[i] = (uint32_t)(stress_random(thread) &
				      DSTREF_WMEM_CHARGE_MAX);
		thread->failed +=
			!dstref_wmem_charge(&life->wmem, bytes[i], NULL);
	}
	for (unsigned int i = 0; i < n; i += 2) {
		uint32_t to = (uint32_t)(stress_random(thread) % 3000);

		(void)dstref_wmem_recharge(&life->wmem, bytes[i], to);
		bytes[i] = to;
	}
	while (n--)
		told |= dstref_wmem_uncharge(&life->wmem, bytes[n], NULL);
	return told;
}

/* The last one out looks at what all have written. */
static void told(struct stress_thread *thread, uint64_t round, uint64_t after)
{
	struct lives *lives = thread->arg;

	(void)dstref_fetch_add_relaxed(&lives->told, UINT64_C(1));
	thread->told += thread->index != 0;
	wrong_if(lives, dstref_wmem_value_units(after) ||
				dstref_wmem_value_bytes(after));
	for (unsigned int i = 0; i < thread->run->threads; i++)
		wrong_if(lives, lives->life.field[i] != round + 1);
}

static void live_and_end(struct stress_thread *thread, uint64_t round)
{
	struct lives *lives = thread->arg;
	struct life *life = &lives->life;
	bool close_first = stress_random(thread) % 2;
	uint64_t after;

	if (stress_random(thread) % 64 == 0)
		sched_yield();
	if (!thread->index && close_first)
		wrong_if(lives, dstref_wmem_close(&life->wmem, NULL));
	/* Its own packet still pins the account. */
	wrong_if(lives, more_packets(thread, life));
	life->field[thread->index] = round + 1;
	if (dstref_wmem_uncharge(&life->wmem, life->first[thread->index],
				 &after))
		told(thread, round, after);
	if (!thread->index && !close_first &&
	    dstref_wmem_close(&life->wmem, &after))
		told(thread, round, after);
}

static void live(struct stress_thread *thread)
{
	struct lives *lives = thread->arg;

	for (uint64_t round = 0; round < lives->rounds; round++) {
		if (!thread->index)
			life_begin(thread, &lives->life);
		stress_meet(thread);
		live_and_end(thread, round);
		thread->ops++;
		stress_meet(thread);
		if (thread->index)
			continue;
		wrong_if(lives, dstref_load_relaxed(&lives->told) != round + 1);
		wrong_if(lives, dstref_wmem_read(&lives->life.wmem) !=
					DSTREF_WMEM_DEAD);
	}
}

/* C14 is in it: the fields are plain, the thread sanitizer looks at them. */
static void wmem_lives(unsigned int threads, uint64_t rounds)
{
	static struct lives lives;
	struct stress run = { .threads = threads, .arg = &lives };
	struct stress_thread sums;

	lives = (struct lives){ .rounds = stress_rounds(rounds) };
	stress_run(&run, live, &sums);
	stress_assert_equal(&run, dstref_load_relaxed(&lives.wrong), 0);
	stress_assert_equal(&run, dstref_load_relaxed(&lives.told),
			    lives.rounds);
	stress_assert_equal(&run, sums.failed, 0);
	stress_assert_equal(&run, sums.ops, threads * lives.rounds);
	/* Sometimes the closer was last, sometimes another. */
	stress_assert(&run, sums.told > 0 && sums.told < lives.rounds);
	capture_expect_none(); /* no residue, no deficit */
}

static void c14_wmem_told_sees_every_write(void **state)
{
	(void)state;
	wmem_lives(2, 300000);
}

static void wmem_many_threads_tell_one(void **state)
{
	(void)state;
	wmem_lives(THREADS, 60000);
}

/* C10 for accounts: charges and completions on all threads add up. */
static void charge_and_uncharge(struct stress_thread *thread)
{
	struct dstref_wmem *wmem = thread->arg;
	uint64_t rounds = stress_rounds(500000);

	for (uint64_t i = 0; i < rounds; i++) {
		uint32_t bytes = (uint32_t)(stress_random(thread) % 65536);

		thread->failed += !dstref_wmem_charge(wmem, bytes, NULL);
		if (i % 8 == 0) {
			(void)dstref_wmem_recharge(wmem, bytes, bytes / 2);
			bytes /= 2;
		}
		thread->told += dstref_wmem_uncharge(wmem, bytes, NULL);
	}
}

static void c10_wmem_is_exact(void **state)
{
	struct dstref_wmem wmem;
	struct stress run = { .threads = 8, .arg = &wmem };
	struct stress_thread sums;
	uint64_t after;

	(void)state;
	dstref_wmem_init(&wmem);
	stress_run(&run, charge_and_uncharge, &sums);
	stress_assert_equal(&run, sums.failed, 0);
	stress_assert_equal(&run, sums.told, 0);
	assert_true(dstref_wmem_close(&wmem, &after));
	stress_assert(&run, dstref_wmem_value_bytes(after) == 0);
}

/*
 * Values are of one instant: as units go one by one, from all threads, each
 * number of units that are left is seen once. A value that was read after the
 * operation would show some twice; worse, it may read what was freed.
 */
#define OUT (1u << 20)
#define CHUNK 256

struct drain {
	struct dstref_wmem wmem;
	DSTREF_ATOMIC(uint8_t) seen[OUT];
};

static void drain_units(struct stress_thread *thread)
{
	struct drain *drain = thread->arg;
	unsigned int units = OUT / thread->run->threads;
	uint64_t after;

	for (unsigned int i = 0; i < units; i++) {
		if (i % CHUNK == 0)
			stress_meet(thread);
		thread->told += dstref_wmem_uncharge(&drain->wmem, 1, &after);
		thread->failed += dstref_wmem_value_bytes(after) !=
				  (int64_t)dstref_wmem_value_units(after);
		(void)dstref_fetch_add_relaxed(
			&drain->seen[dstref_wmem_value_units(after) % OUT],
			(uint8_t)1);
	}
}

static void wmem_values_are_of_one_instant(void **state)
{
	static struct drain drain;
	struct stress run = { .threads = 4, .arg = &drain };
	struct stress_thread sums;
	unsigned int wrong = 0;

	(void)state;
	dstref_wmem_init(&drain.wmem);
	for (unsigned int i = 0; i < OUT; i++)
		if (!dstref_wmem_charge(&drain.wmem, 1, NULL))
			fail();
	assert_false(dstref_wmem_close(&drain.wmem, NULL));
	stress_run(&run, drain_units, &sums);
	for (unsigned int i = 0; i < OUT; i++)
		wrong += dstref_load_relaxed(&drain.seen[i]) != 1;
	stress_assert_equal(&run, wrong, 0);
	stress_assert_equal(&run, sums.failed, 0);
	stress_assert_equal(&run, sums.told, 1);
}

/* C13: a pinned account answers all threads, and ends for none. */
static void hammer(struct stress_thread *thread)
{
	struct dstref_wmem *wmem = thread->arg;

	while (stress_more(thread)) {
		uint64_t random = stress_random(thread);
		uint32_t bytes = (uint32_t)(random >> 8) &
				 DSTREF_WMEM_CHARGE_MAX;

		switch (random % 4) {
		case 0:
			thread->failed +=
				!dstref_wmem_charge(wmem, bytes, NULL);
			break;
		case 1:
			(void)dstref_wmem_recharge(wmem, bytes, bytes / 2);
			break;
		case 2:
			thread->told += dstref_wmem_close(wmem, NULL);
			break;
		default:
			thread->told += dstref_wmem_uncharge(wmem, bytes, NULL);
		}
		thread->ops++;
	}
}

static void hammer_from(uint64_t word, bool dead)
{
	struct dstref_wmem wmem;
	struct stress run = { .threads = 4, .seconds = 0.3, .arg = &wmem };
	struct stress_thread sums;
	uint64_t value;

	dstref_init_plain(&wmem.word, word);
	stress_run(&run, hammer, &sums);
	value = dstref_wmem_read(&wmem);
	stress_assert(&run, sums.ops > 10000);
	stress_assert_equal(&run, sums.told, 0);
	stress_assert(&run, dead == (sums.failed > 0));
	stress_assert(&run, value >> 63);
	stress_assert_equal(&run, value >= DSTREF_WMEM_RELEASED, dead);
}

static void c13_wmem_saturated_is_sticky(void **state)
{
	(void)state;
	hammer_from(DSTREF_WMEM_SATURATED, false);
	capture_expect_none();
}

static void c04_wmem_dead_is_sticky(void **state)
{
	(void)state;
	dstref_report_set_limit(0);
	hammer_from(DSTREF_WMEM_DEAD, true);
	capture_expect_some(DSTREF_REPORT_WMEM_DEAD);
	capture_expect_some(DSTREF_REPORT_WMEM_UNDERFLOW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		capture_test(c10_wmem_is_exact),
		capture_test(c14_wmem_told_sees_every_write),
		capture_test(wmem_many_threads_tell_one),
		capture_test(wmem_values_are_of_one_instant),
		capture_test(c13_wmem_saturated_is_sticky),
		capture_test(c04_wmem_dead_is_sticky),
	};

	return cmocka_run_group_tests_name("wmem", tests, NULL, NULL);
}
