/* SPDX-License-Identifier: MIT */
/*
 * stress.split - everything races with everything, and the sums come out
 *
 * Goal: while gets and puts run in cells and in the count, references change
 * hands, and the object is promoted, merged, ticked, killed and let go of by
 * its owner, zero is told once, when the last reference is gone and not
 * before, and who is told sees what each holder wrote. Cells go from object to
 * object, and from threads that leave to threads that come.
 *
 * Method: lives by the thousand. In each, workers get and put at random, some
 * without cells, and leave tokens (references) for others to let go of; a
 * controller does what control planes do. The memory of a life counts as freed
 * a grace period after zero was told: a worker that finds it so inside his
 * reader saw it too early. At the end of a life nothing is left.
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dstref/split.h>

#include "capture.h"
#include "rcu.h"
#include "stress.h"

#define WORKERS 4
#define ROUNDS 500
#define STEPS 64
#define CELLS 3 /* fewer than objects that ask: some are refused */

static const struct rcu_flavor_struct *const flavour = &urcu_memb_flavor;

struct life {
	struct dstref_split split;
	struct rcu_head rcu;
	uint64_t field[WORKERS]; /* plain: written by holders */
	DSTREF_ATOMIC(bool) published;
	DSTREF_ATOMIC(bool) freed;
	DSTREF_ATOMIC(unsigned int) told;
	DSTREF_ATOMIC(int) tokens; /* references that anyone may let go of */
	DSTREF_ATOMIC(uint64_t) sum; /* of the fields, as the told saw them */
	uint64_t wrote[WORKERS];
};

struct lives {
	struct dstref_split_domain *domain;
	struct life life[2]; /* two at a time, over the same cells */
	DSTREF_ATOMIC(uint64_t) wrong;
};

static void wrong_if(struct lives *lives, bool wrong)
{
	if (wrong)
		(void)dstref_fetch_add_relaxed(&lives->wrong, UINT64_C(1));
}

static void life_free(struct rcu_head *head)
{
	struct life *life = container_of(rcu_deferred(head), struct life, rcu);
	uint64_t sum = 0;

	tsan_acquire(flavour);
	for (int i = 0; i < WORKERS; i++)
		sum += life->field[i];
	dstref_store_relaxed(&life->sum, sum);
	dstref_split_end(&life->split);
	dstref_store_release(&life->freed, true);
}

static void on_zero(struct dstref_split *split)
{
	struct life *life = container_of(split, struct life, split);

	if (dstref_fetch_add_release(&life->told, 1u))
		return; /* told twice: the test says so */
	rcu_tag_release(&life->rcu);
	flavour->update_call_rcu(&life->rcu, life_free);
}

static void life_begin(struct lives *lives, struct life *life)
{
	int err = dstref_split_init(&life->split, lives->domain, 1, on_zero);

	wrong_if(lives, err != 0);
	dstref_init_plain(&life->freed, false);
	dstref_init_plain(&life->told, 0u);
	dstref_init_plain(&life->tokens, 0);
	for (int i = 0; i < WORKERS; i++)
		life->field[i] = life->wrote[i] = 0;
	dstref_store_release(&life->published, true);
}

/* One of the tokens, if there is one: a reference that becomes the caller's. */
static bool token_take(struct life *life)
{
	int tokens = dstref_load_relaxed(&life->tokens);

	while (tokens > 0)
		if (dstref_cas_acquire(&life->tokens, &tokens, tokens - 1))
			return true;
	return false;
}

static void token_leave(struct life *life)
{
	(void)dstref_fetch_add_release(&life->tokens, 1);
}

static void worker_put(struct stress_thread *thread, struct life *life)
{
	unsigned int me = thread->index - 1;

	/* A plain write that only the last put orders before the free. */
	life->field[me] = ++life->wrote[me];
	if (stress_random(thread) % 8 == 0) {
		dstref_split_put_outside(&life->split);
		return;
	}
	reader_lock(flavour);
	dstref_split_put(&life->split);
	reader_unlock(flavour);
}

static void worker_get(struct stress_thread *thread, struct life *life)
{
	struct lives *lives = thread->arg;
	bool got = false;

	reader_lock(flavour);
	if (dstref_load_acquire(&life->published)) {
		wrong_if(lives, dstref_load_relaxed(&life->freed));
		got = dstref_split_get(&life->split);
		wrong_if(lives, got && dstref_load_relaxed(&life->told));
		if (got && stress_random(thread) % 4 == 0) {
			wrong_if(lives, !dstref_split_get_n(&life->split, 2));
			dstref_split_put_n(&life->split, 2);
		}
		(void)(stress_random(thread) % 16 ||
		       dstref_split_request(&life->split));
	}
	reader_unlock(flavour);
	if (got) {
		token_leave(life);
		thread->ops++;
	} else {
		thread->failed++;
	}
}

/* Now and then a worker leaves its cells to whoever comes. */
static void worker_moves(struct stress_thread *thread)
{
	struct lives *lives = thread->arg;

	if (stress_random(thread) % 64)
		return;
	if (stress_random(thread) % 2)
		dstref_split_detach(lives->domain);
	else
		wrong_if(lives, dstref_split_attach(lives->domain) != 0);
}

static void worker(struct stress_thread *thread)
{
	struct lives *lives = thread->arg;

	for (int i = 0; i < STEPS; i++) {
		struct life *life = &lives->life[stress_random(thread) % 2];

		worker_moves(thread);
		if (stress_random(thread) % 2)
			worker_get(thread, life);
		else if (token_take(life))
			worker_put(thread, life);
	}
	for (int i = 0; i < 2; i++)
		while (token_take(&lives->life[i]))
			worker_put(thread, &lives->life[i]);
}

/* The control plane of a life, before its owner lets go. */
static void control(struct stress_thread *thread, struct life *life)
{
	switch (stress_random(thread) % 6) {
	case 0:
	case 1:
		(void)dstref_split_promote(&life->split);
		break;
	case 2:
		(void)dstref_split_demote(&life->split);
		break;
	case 3:
		/* Not exact beside the others, but never many. */
		wrong_if(thread->arg,
			 dstref_split_read(&life->split) > DSTREF_SPLIT_REFS);
		break;
	case 4:
		if (stress_random(thread) % 8 == 0)
			(void)dstref_split_kill(&life->split, NULL);
		break;
	default:
		sched_yield();
	}
}

static void let_go(struct stress_thread *thread, struct life *life)
{
	dstref_store_relaxed(&life->published, false);
	if (stress_random(thread) % 2)
		dstref_split_put_outside(&life->split);
	else {
		reader_lock(flavour);
		dstref_split_put(&life->split);
		reader_unlock(flavour);
	}
}

static void controller(struct stress_thread *thread)
{
	struct lives *lives = thread->arg;

	(void)dstref_split_promote(&lives->life[0].split);
	(void)dstref_split_request(&lives->life[1].split);
	for (int i = 0; i < STEPS / 4; i++) {
		control(thread, &lives->life[stress_random(thread) % 2]);
		thread->told += dstref_split_tick(lives->domain, 2);
	}
	for (int i = 0; i < 2; i++)
		let_go(thread, &lives->life[i]);
}

/* All have let go: ticks merge what is still split. */
static void judge(struct lives *lives)
{
	struct dstref_split_counters stats;

	for (int i = 0; i < 2; i++) {
		struct life *life = &lives->life[i];
		uint64_t wrote = 0;
		int tries = 0;

		while (!dstref_load_acquire(&life->freed) && tries++ < 300) {
			(void)dstref_split_tick(lives->domain, CELLS);
			flavour->barrier();
		}
		for (int w = 0; w < WORKERS; w++)
			wrote += life->wrote[w];
		wrong_if(lives, !dstref_load_acquire(&life->freed));
		wrong_if(lives, dstref_load_relaxed(&life->told) != 1);
		wrong_if(lives, dstref_load_relaxed(&life->sum) != wrote);
		wrong_if(lives, dstref_load_relaxed(&life->tokens) != 0);
	}
	dstref_split_stats(lives->domain, &stats);
	wrong_if(lives, stats.used != 0);
}

static void live(struct stress_thread *thread)
{
	struct lives *lives = thread->arg;
	uint64_t rounds = stress_rounds(ROUNDS);

	reader_register(flavour);
	/* One worker never has cells. */
	if (thread->index && thread->index < WORKERS)
		wrong_if(lives, dstref_split_attach(lives->domain) != 0);
	for (uint64_t round = 0; round < rounds; round++) {
		if (!thread->index)
			for (int i = 0; i < 2; i++)
				life_begin(lives, &lives->life[i]);
		stress_meet(thread);
		if (thread->index)
			worker(thread);
		else
			controller(thread);
		/* Workers that end early leave tokens of others behind. */
		stress_meet(thread);
		if (thread->index == 1)
			for (int i = 0; i < 2; i++)
				while (token_take(&lives->life[i]))
					worker_put(thread, &lives->life[i]);
		stress_meet(thread);
		if (!thread->index)
			judge(lives);
		stress_meet(thread);
	}
	reader_unregister(flavour);
}

static void c15_split_lives_end_once(void **state)
{
	static struct lives lives;
	struct dstref_split_attr attr = { .flavour = flavour, .cells = CELLS };
	struct stress run = { .threads = WORKERS + 1, .arg = &lives };
	struct dstref_split_counters stats;
	struct stress_thread sums;

	(void)state;
	assert_int_equal(dstref_split_domain_create(&lives.domain, &attr), 0);
	stress_run(&run, live, &sums);
	stress_assert_equal(&run, dstref_load_relaxed(&lives.wrong), 0);
	dstref_split_stats(lives.domain, &stats);
	/* The races were there. */
	stress_assert(&run, stats.promotions > 0 && stats.requests > 0);
	stress_assert_equal(&run, stats.promotions, stats.demotions);
	stress_assert(&run, sums.ops > 0);
	/* A thread's exit detached it. */
	stress_assert_equal(&run, stats.threads, 0);
	assert_int_equal(dstref_split_domain_destroy(lives.domain), 0);
	capture_expect_none();
}

/* C10, C16: exact over threads that come later than the object. */
static void get_and_put(struct stress_thread *thread)
{
	struct dstref_split *split = thread->arg;
	uint64_t rounds = stress_rounds(1000000);

	reader_register(flavour);
	thread->failed += dstref_split_attach(split->domain) != 0;
	for (uint64_t i = 0; i < rounds; i++) {
		reader_lock(flavour);
		thread->failed += !dstref_split_get(split);
		if (i % 128 == 0) {
			thread->failed += !dstref_split_get_n(split, 65535);
			dstref_split_put_n(split, 65534);
			dstref_split_put(split);
		}
		dstref_split_put(split);
		reader_unlock(flavour);
		thread->ops++;
	}
	reader_unregister(flavour);
}

static void not_at_all(struct dstref_split *split)
{
	(void)split;
}

static void c10_c16_split_is_exact(void **state)
{
	struct dstref_split_attr attr = { .flavour = flavour, .cells = 1 };
	struct dstref_split_domain *domain;
	struct dstref_split split;
	struct stress run = { .threads = 8, .arg = &split };
	struct stress_thread sums;

	(void)state;
	assert_int_equal(dstref_split_domain_create(&domain, &attr), 0);
	assert_int_equal(dstref_split_init(&split, domain, 1, not_at_all), 0);
	assert_int_equal(dstref_split_promote(&split), 0);
	stress_run(&run, get_and_put, &sums);
	stress_assert_equal(&run, sums.failed, 0);
	stress_assert_equal(&run, dstref_split_read(&split), 1);
	assert_int_equal(dstref_split_kill(&split, NULL), 0);
	flavour->barrier();
	assert_int_equal(dstref_load_relaxed(&split.count.word), 0);
	assert_int_equal(dstref_split_domain_destroy(domain), 0);
	capture_expect_none();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		capture_test(c15_split_lives_end_once),
		capture_test(c10_c16_split_is_exact),
	};

	return cmocka_run_group_tests_name("stress.split", tests, NULL, NULL);
}
