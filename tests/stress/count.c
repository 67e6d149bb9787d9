/* SPDX-License-Identifier: MIT */
/*
 * stress.count - a count under threads that race for its end
 *
 * Goal: sums are exact; of all the puts of one life exactly one is told, and
 * once it was, no get succeeds; who is told sees what every holder wrote; the
 * zones hold under any mixture of calls, misuse included. Method: short lives
 * by the hundred thousand. Two threads meet, race for one count, and meet
 * again with the next; a small random delay moves the race about. Each test
 * also asserts that the race went both ways, for one that never happened
 * would show nothing.
 *
 * The counts of a ring take turns, so that one meeting a round is enough:
 * while round r runs on one, thread 0 judges the one of round r - 1, which
 * the other threads have left, and prepares it for its next turn.
 */
#define _POSIX_C_SOURCE 200809L

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dstref/count.h>
#include <dstref/line.h>

#include "capture.h"
#include "stress.h"

#define MAX DSTREF_COUNT_MAX
#define N_MAX DSTREF_COUNT_N_MAX
#define RING 4

struct life {
	DSTREF_LINE_START struct dstref_count count;
	uint64_t field[2]; /* plain: written by holders, read by the told */
	DSTREF_ATOMIC(unsigned int) told;
};

struct lives {
	struct life ring[RING];
	uint64_t rounds;
	uint64_t told_lives; /* thread 0's */
	DSTREF_ATOMIC(uint64_t) wrong;
};

static uint32_t word(const struct dstref_count *count)
{
	return dstref_load_relaxed(&count->word);
}

static bool is_saturated(const struct dstref_count *count)
{
	return word(count) >= MAX && word(count) < DSTREF_COUNT_RELEASED;
}

static bool is_dead(const struct dstref_count *count)
{
	return word(count) >= DSTREF_COUNT_RELEASED;
}

static void wrong_if(struct lives *lives, bool wrong)
{
	if (wrong)
		(void)dstref_fetch_add_relaxed(&lives->wrong, UINT64_C(1));
}

/* Now and then a turn of the scheduler, for threads that share a core. */
static void delay(struct stress_thread *thread)
{
	if (stress_random(thread) % 64 == 0)
		sched_yield();
	for (volatile uint64_t i = stress_random(thread) % 32; i > 0; i--)
		;
}

static void life_begin(struct life *life, uint32_t refs)
{
	dstref_count_init(&life->count, refs);
	dstref_init_plain(&life->told, 0u);
	life->field[0] = life->field[1] = 0;
}

static void lives_init(struct lives *lives, uint64_t rounds, uint32_t refs)
{
	*lives = (struct lives){ .rounds = stress_rounds(rounds) };
	for (int i = 0; i < RING; i++)
		life_begin(&lives->ring[i], refs);
}

/* C10: each thread's own gets and puts, and the ways out of an error. */
static void get_and_put(struct stress_thread *thread)
{
	struct dstref_count *count = thread->arg;
	uint64_t rounds = stress_rounds(1000000);

	for (uint64_t i = 0; i < rounds; i++) {
		thread->failed += !dstref_count_get(count);
		thread->told += dstref_count_put(count);
		thread->ops++;
		if (i % 64)
			continue;
		/* Taken, refused half way, given back the other way. */
		thread->failed += !dstref_count_get_n(count, 3);
		thread->failed += dstref_count_get_n(count, N_MAX + 1);
		thread->told += dstref_count_put_outside(count);
		thread->told += dstref_count_put_n(count, N_MAX + 1);
		thread->told += dstref_count_put_n(count, 2);
	}
}

static void c10_count_is_exact(void **state)
{
	struct dstref_count count;
	struct stress run = { .threads = 8, .arg = &count };
	struct stress_thread sums;
	uint64_t rounds = stress_rounds(1000000);

	(void)state;
	dstref_report_set_limit(0);
	dstref_count_init(&count, 1);
	stress_run(&run, get_and_put, &sums);
	stress_assert_equal(&run, sums.ops, 8 * rounds);
	stress_assert_equal(&run, sums.failed, 0);
	stress_assert_equal(&run, sums.told, 0);
	stress_assert_equal(&run, dstref_count_read(&count), 1);
	capture_expect(DSTREF_REPORT_COUNT_RANGE, 8 * 2 * ((rounds + 63) / 64));
	assert_true(dstref_count_put(&count));
}

static bool put_somehow(struct dstref_count *count, uint64_t how)
{
	switch (how % 3) {
	case 0:
		return dstref_count_put(count);
	case 1:
		return dstref_count_put_n(count, 1);
	default:
		return dstref_count_put_outside(count);
	}
}

static bool get_somehow(struct dstref_count *count, uint64_t how)
{
	return how % 2 ? dstref_count_get(count) : dstref_count_get_n(count, 1);
}

static void tell(struct life *life)
{
	(void)dstref_fetch_add_release(&life->told, 1u);
}

/* The owner's last put. */
static void last_put(struct stress_thread *thread, struct life *life)
{
	struct lives *lives = thread->arg;

	delay(thread);
	life->field[0] = 1;
	if (!put_somehow(&life->count, stress_random(thread)))
		return;
	tell(life);
	thread->told++;
	wrong_if(lives, dstref_count_get(&life->count));
}

/*
 * A lookup that found the object: try to hold it, and let go again. Who is
 * refused sees what the owner did before his put.
 */
static void try_get(struct stress_thread *thread, struct life *life)
{
	struct lives *lives = thread->arg;

	delay(thread);
	for (int i = 0; i < 2; i++) {
		uint64_t how = stress_random(thread);
		/* Not always: the look itself orders what is tested below. */
		bool gone = how % 8 == 0 && dstref_load_acquire(&life->told);

		if (!get_somehow(&life->count, how >> 4)) {
			wrong_if(lives, life->field[0] != 1);
			continue;
		}
		thread->ops++;
		wrong_if(lives, gone);
		delay(thread);
		if (put_somehow(&life->count, how >> 8))
			tell(life);
	}
}

static void judge_told_once(struct stress_thread *thread, struct life *life)
{
	struct lives *lives = thread->arg;
	unsigned int told = dstref_load_relaxed(&life->told);

	wrong_if(lives, told != 1 || !is_dead(&life->count));
	life_begin(life, 1);
}

static void race_for_the_end(struct stress_thread *thread)
{
	struct lives *lives = thread->arg;

	for (uint64_t round = 0; round < lives->rounds; round++) {
		struct life *life = &lives->ring[round % RING];

		stress_meet(thread);
		if (thread->index) {
			try_get(thread, life);
			continue;
		}
		last_put(thread, life);
		if (round)
			judge_told_once(thread,
					&lives->ring[(round - 1) % RING]);
	}
}

static void c01_count_try_get_against_last_put(void **state)
{
	static struct lives lives;
	struct stress run = { .threads = 2, .arg = &lives };
	struct stress_thread sums;

	(void)state;
	lives_init(&lives, 1000000, 1);
	stress_run(&run, race_for_the_end, &sums);
	stress_assert_equal(&run, dstref_load_relaxed(&lives.wrong), 0);
	/* The owner was told, the lookup was told; some tries failed. */
	stress_assert(&run, sums.told > 0 && sums.told < lives.rounds);
	stress_assert(&run, sums.ops > 0 && sums.ops < 2 * lives.rounds);
	capture_expect_none();
}

/* C14: two holders write, each his field, and let go. */
static void write_and_put(struct stress_thread *thread)
{
	struct lives *lives = thread->arg;

	for (uint64_t round = 0; round < lives->rounds; round++) {
		struct life *life = &lives->ring[round % RING];

		stress_meet(thread);
		delay(thread);
		life->field[thread->index] = round + 1;
		if (!put_somehow(&life->count, stress_random(thread)))
			continue;
		thread->told++;
		thread->ops += thread->index;
		wrong_if(lives, life->field[0] != round + 1 ||
					life->field[1] != round + 1);
		/* As destroy: the memory is this thread's alone. */
		life_begin(life, 2);
	}
}

static void c14_count_told_sees_every_write(void **state)
{
	static struct lives lives;
	struct stress run = { .threads = 2, .arg = &lives };
	struct stress_thread sums;

	(void)state;
	lives_init(&lives, 500000, 2);
	stress_run(&run, write_and_put, &sums);
	stress_assert_equal(&run, dstref_load_relaxed(&lives.wrong), 0);
	stress_assert_equal(&run, sums.told, lives.rounds);
	stress_assert(&run, sums.ops > 0 && sums.ops < lives.rounds);
}

/*
 * Puts with no regard for who holds what. Some thread is told or none, when
 * the misuse came first; never two, and nobody gets what was told.
 */
static void misuse(struct stress_thread *thread, struct life *life)
{
	struct lives *lives = thread->arg;

	for (int i = 0; i < 24; i++) {
		bool gone = dstref_load_acquire(&life->told);
		uint64_t random = stress_random(thread);
		uint32_t n = (uint32_t)(random >> 8) % 8;
		bool got = false, told = false;

		switch (random % 8) {
		case 0:
			got = dstref_count_get(&life->count);
			break;
		case 1:
			got = dstref_count_get_n(&life->count, n + 1);
			break;
		case 2:
		case 3:
			told = dstref_count_put_n(&life->count, n);
			break;
		case 4:
			told = dstref_count_put_outside(&life->count);
			break;
		default:
			told = dstref_count_put(&life->count);
		}
		wrong_if(lives, gone && (got || told));
		if (told)
			tell(life);
	}
}

static void judge_misuse(struct stress_thread *thread, struct life *life)
{
	struct lives *lives = thread->arg;
	unsigned int told = dstref_load_relaxed(&life->told);

	wrong_if(lives, told > 1);
	wrong_if(lives, told && (!is_dead(&life->count) ||
				 dstref_count_read(&life->count)));
	wrong_if(lives, is_saturated(&life->count));
	lives->told_lives += told == 1;
	life_begin(life, 1 + stress_random(thread) % 64);
}

static void misuse_lives(struct stress_thread *thread)
{
	struct lives *lives = thread->arg;

	for (uint64_t round = 0; round < lives->rounds; round++) {
		stress_meet(thread);
		misuse(thread, &lives->ring[round % RING]);
		if (!thread->index && round)
			judge_misuse(thread, &lives->ring[(round - 1) % RING]);
	}
}

static void count_misuse_tells_at_most_once(void **state)
{
	static struct lives lives;
	struct stress run = { .threads = 4, .arg = &lives };

	(void)state;
	dstref_report_set_limit(0);
	lives_init(&lives, 60000, 32);
	stress_run(&run, misuse_lives, NULL);
	stress_assert_equal(&run, dstref_load_relaxed(&lives.wrong), 0);
	stress_assert(&run, lives.told_lives > 0);
	capture_expect_some(DSTREF_REPORT_COUNT_UNDERFLOW);
	/* May stand beside an underflow, as its cause says. */
	if (dstref_report_count(DSTREF_REPORT_COUNT_CROWDED))
		capture_expect_some(DSTREF_REPORT_COUNT_CROWDED);
}

/* C13: any order of any calls never leaves the zone, nobody is told. */
static void hammer(struct stress_thread *thread)
{
	struct dstref_count *count = thread->arg;

	while (stress_more(thread)) {
		uint64_t random = stress_random(thread);
		uint32_t n = (uint32_t)(random >> 8) % (N_MAX + 1);

		switch (random % 5) {
		case 0:
			thread->failed += !dstref_count_get(count);
			break;
		case 1:
			thread->failed += !dstref_count_get_n(count, n);
			break;
		case 2:
			thread->told += dstref_count_put(count);
			break;
		case 3:
			thread->told += dstref_count_put_n(count, n);
			break;
		default:
			thread->told += dstref_count_put_outside(count);
		}
		thread->ops++;
	}
}

static void c13_count_saturated_is_sticky(void **state)
{
	struct dstref_count count;
	struct stress run = { .threads = 4, .seconds = 0.5, .arg = &count };
	struct stress_thread sums;

	(void)state;
	dstref_count_init(&count, MAX);
	assert_true(dstref_count_get(&count));
	capture_expect(DSTREF_REPORT_COUNT_SATURATED, 1);
	stress_run(&run, hammer, &sums);
	stress_assert(&run, sums.ops > 10000);
	stress_assert_equal(&run, sums.told, 0);
	stress_assert_equal(&run, sums.failed, 0);
	stress_assert(&run, is_saturated(&count));
	assert_true(dstref_count_get(&count));
	assert_int_equal(word(&count), DSTREF_COUNT_SATURATED);
}

/* From just below the limit: whoever crosses it, no call sees it dead. */
static void cross(struct stress_thread *thread)
{
	struct dstref_count *count = thread->arg;

	for (int i = 0; i < 1000; i++)
		thread->failed += !dstref_count_get(count);
	for (int i = 0; i < 1000; i++)
		thread->told += dstref_count_put(count);
}

static void c13_count_crosses_the_limit(void **state)
{
	struct dstref_count count;
	struct stress run = { .threads = 4, .arg = &count };
	struct stress_thread sums;

	(void)state;
	dstref_report_set_limit(0);
	for (int round = 0; round < 200; round++) {
		dstref_count_init(&count, MAX - 100);
		stress_run(&run, cross, &sums);
		stress_assert_equal(&run, sums.told, 0);
		stress_assert_equal(&run, sums.failed, 0);
		stress_assert(&run, is_saturated(&count));
	}
	capture_expect_some(DSTREF_REPORT_COUNT_SATURATED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		capture_test(c10_count_is_exact),
		capture_test(c01_count_try_get_against_last_put),
		capture_test(c14_count_told_sees_every_write),
		capture_test(count_misuse_tells_at_most_once),
		capture_test(c13_count_saturated_is_sticky),
		capture_test(c13_count_crosses_the_limit),
	};

	return cmocka_run_group_tests_name("count", tests, NULL, NULL);
}
