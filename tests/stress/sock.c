/* SPDX-License-Identifier: MIT */
/*
 * stress.sock - ends that race: last puts, completions, callbacks, clones
 *
 * Goal: whatever the order in which threads let go of a sock, it ends once
 * and after all of them; destroy sees what each of them wrote; a write-space
 * callback runs on a sock that is alive, and never after it was replaced.
 *
 * Method: rounds. One thread makes a sock and gives each thread its share,
 * all meet, all let go at once in an order of chance, all meet again. Threads
 * write fields of their own before they let go, destroy adds them up (C14: the
 * thread sanitizer watches the same). The ledger of memory finds what was not
 * freed, was freed twice, or was written to afterwards. On liburcu's memb
 * flavour.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scene.h"
#include "stress.h"

#define FLAVOUR (&urcu_memb_flavor)
#define THREADS 4
#define ALIVE UINT64_C(0x616c697665)

/* Each thread's field is plain: the sock's own words must order it. */
struct sock {
	struct dstref_sock sk;
	uint64_t alive;
	uint64_t wrote[THREADS];
};

struct test {
	struct scene scene;
	struct dstref_sock *sk;
	uint64_t rounds;
	DSTREF_ATOMIC(uint64_t) heard; /* callbacks */
	DSTREF_ATOMIC(uint64_t) wrong; /* what should never be */
};

static struct test test;

static void wrong_if(bool what)
{
	if (what)
		(void)dstref_fetch_add_relaxed(&test.wrong, (uint64_t)1);
}

static void sock_ended(struct dstref_sock *sk)
{
	struct sock *sock = (void *)sk;
	uint64_t sum = 0;

	for (int i = 0; i < THREADS; i++)
		sum += sock->wrote[i];
	wrong_if(sock->alive != ALIVE || sum != THREADS);
	sock->alive = 0;
	(void)dstref_fetch_add_relaxed(&test.scene.ended, 1u);
}

static int sock_cloned(struct dstref_sock *sk, struct dstref_sock *parent)
{
	struct sock *sock = (void *)sk;

	wrong_if(((struct sock *)(void *)parent)->alive != ALIVE);
	wrong_if(scene_units(&sk->wmem) != 1);
	sock->alive = ALIVE;
	for (int i = 0; i < THREADS; i++)
		sock->wrote[i] = 1;
	return 0;
}

static const struct dstref_sock_proto proto = {
	.name = "stress",
	.size = sizeof(struct sock),
	.destroy = sock_ended,
	.clone = sock_cloned,
};

static struct dstref_sock *make(void)
{
	struct dstref_sock *sk;

	if (dstref_sock_alloc(&sk, test.scene.net, &proto))
		abort();
	((struct sock *)(void *)sk)->alive = ALIVE;
	return sk;
}

static void dawdle(struct stress_thread *thread)
{
	for (uint64_t i = stress_random(thread) % 64; i; i--)
		__asm__ __volatile__("");
}

static void begin(void)
{
	memset(&test, 0, sizeof(test));
	scene_begin(&test.scene, FLAVOUR);
}

static void end(struct stress *run, uint64_t socks)
{
	struct dstref_net_counters stats;

	stress_assert_equal(run, dstref_net_barrier(test.scene.net, -1), 0);
	stress_assert_equal(run, dstref_load_relaxed(&test.scene.ended), socks);
	stress_assert_equal(run, dstref_load_relaxed(&test.wrong), 0);
	dstref_net_stats(test.scene.net, &stats);
	stress_assert_equal(run, stats.sock, 0);
	stress_assert_equal(run, scene_end(&test.scene), 0);
}

/* C8, C14: completions on three threads against the last put on the fourth. */

static void let_go(struct stress_thread *thread, struct dstref_sock *sk)
{
	dawdle(thread);
	reader_lock(FLAVOUR);
	((struct sock *)(void *)sk)->wrote[thread->index] = 1;
	switch (thread->index) {
	case 0:
		dstref_sock_put(sk);
		break;
	case 1:
		dstref_sock_uncharge_r(sk, 100);
		break;
	default:
		for (uint32_t i = 0; i < 8; i++)
			dstref_sock_uncharge_w(sk, i * 100);
	}
	reader_unlock(FLAVOUR);
}

static void charge(struct dstref_sock *sk)
{
	wrong_if(!dstref_sock_charge_r(sk, 100));
	for (uint32_t i = 0; i < 8 * (THREADS - 2); i++)
		wrong_if(!dstref_sock_charge_w(sk, i % 8 * 100));
}

static void round_of_ends(struct stress_thread *thread)
{
	reader_register(FLAVOUR);
	for (uint64_t i = 0; i < test.rounds; i++) {
		if (!thread->index) {
			test.sk = make();
			charge(test.sk);
		}
		stress_meet(thread);
		let_go(thread, test.sk);
		stress_meet(thread);
	}
	reader_unregister(FLAVOUR);
}

static void c08_c14_sock_ends_once_after_all(void **state)
{
	struct stress run = { .threads = THREADS };

	(void)state;
	begin();
	test.rounds = stress_rounds(40000);
	stress_run(&run, round_of_ends, NULL);
	end(&run, test.rounds);
}

/*
 * The same on threads that are registered nowhere: no reader's end orders what
 * they wrote, only the words that they let go by. They do not meet again.
 */
static void let_go_outside(struct stress_thread *thread)
{
	struct dstref_sock *sk = test.sk;

	((struct sock *)(void *)sk)->wrote[thread->index] = 1;
	switch (thread->index) {
	case 0:
		dstref_sock_put_outside(sk);
		break;
	case 1:
		dstref_sock_uncharge_r(sk, 100);
		break;
	default:
		for (uint32_t i = 0; i < 8; i++)
			dstref_sock_uncharge_w_outside(sk, i * 100);
	}
}

static void c14_sock_end_sees_what_outsiders_wrote(void **state)
{
	struct stress run = { .threads = THREADS };
	uint64_t rounds = stress_rounds(1000);

	(void)state;
	begin();
	for (uint64_t i = 0; i < rounds; i++) {
		test.sk = make();
		charge(test.sk);
		stress_run(&run, let_go_outside, NULL);
	}
	end(&run, rounds);
}

/* The same with a callback on every completion, and one replaced meanwhile. */

struct space {
	struct dstref_sock_space space;
	uint64_t magic;
};

static void hear(struct dstref_sock *sk, void *data)
{
	const struct space *space = data;

	wrong_if(space->magic != ALIVE);
	wrong_if(((struct sock *)(void *)sk)->alive != ALIVE);
	wrong_if(scene_units(&sk->wmem) < 1);
	(void)dstref_fetch_add_relaxed(&test.heard, (uint64_t)1);
}

static void round_of_callbacks(struct stress_thread *thread)
{
	static struct space space = { { hear, &space }, ALIVE };

	reader_register(FLAVOUR);
	for (uint64_t i = 0; i < test.rounds; i++) {
		if (!thread->index) {
			test.sk = make();
			charge(test.sk);
			wrong_if(dstref_sock_set_write_space(test.sk,
							     &space.space));
		}
		stress_meet(thread);
		let_go(thread, test.sk);
		stress_meet(thread);
	}
	reader_unregister(FLAVOUR);
}

/* All bytes fit half of sndbuf, so each completion of the rounds is heard. */
static void sock_callback_runs_on_the_living_alone(void **state)
{
	struct stress run = { .threads = THREADS };

	(void)state;
	begin();
	test.rounds = stress_rounds(40000);
	stress_run(&run, round_of_callbacks, NULL);
	stress_assert_equal(&run, dstref_load_relaxed(&test.heard),
			    test.rounds * 8 * (THREADS - 2));
	end(&run, test.rounds);
}

static struct space *make_space(void)
{
	struct space *space = malloc(sizeof(*space));

	if (!space)
		abort();
	*space = (struct space){ { hear, space }, ALIVE };
	return space;
}

/* What was replaced is spoilt and freed as soon as the call returns. */
static void replace(struct stress_thread *thread)
{
	struct space *old = NULL;

	while (stress_more(thread)) {
		struct space *next = make_space();

		wrong_if(dstref_sock_set_write_space(test.sk, &next->space));
		if (old)
			old->magic = 0;
		free(old);
		old = next;
		thread->ops++;
	}
	wrong_if(dstref_sock_set_write_space(test.sk, NULL));
	free(old);
}

static void complete(struct stress_thread *thread)
{
	while (stress_more(thread)) {
		wrong_if(!dstref_sock_charge_w(test.sk, 100));
		if (thread->index == 1) {
			dstref_sock_uncharge_w_outside(test.sk, 100);
			continue;
		}
		reader_lock(FLAVOUR);
		dstref_sock_uncharge_w(test.sk, 100);
		reader_unlock(FLAVOUR);
	}
}

/* Thread 1 completes outside any reader, and is registered nowhere. */
static void replace_or_complete(struct stress_thread *thread)
{
	if (thread->index != 1)
		reader_register(FLAVOUR);
	if (!thread->index)
		replace(thread);
	else
		complete(thread);
	if (thread->index != 1)
		reader_unregister(FLAVOUR);
}

static void sock_callback_replaced_under_completions(void **state)
{
	struct stress run = { .threads = THREADS, .seconds = 2 };
	struct stress_thread sums;

	(void)state;
	begin();
	test.sk = make();
	for (int i = 0; i < THREADS; i++)
		((struct sock *)(void *)test.sk)->wrote[i] = 1;
	stress_run(&run, replace_or_complete, &sums);
	stress_assert(&run, sums.ops > 10);
	stress_assert(&run, dstref_load_relaxed(&test.heard) > 1000);
	stress_assert_equal(&run, scene_units(&test.sk->wmem), 1);
	stress_assert_equal(&run, scene_bytes(&test.sk->wmem), 0);
	dstref_sock_put_outside(test.sk);
	end(&run, 1);
}

/* C9: clones come and go while the parent's packets do, and the parent. */

static void clone_and_put(void)
{
	struct dstref_sock *child;

	wrong_if(dstref_sock_clone(&child, test.sk));
	wrong_if(!dstref_sock_charge_w(child, 10));
	reader_lock(FLAVOUR);
	dstref_sock_put(child);
	dstref_sock_uncharge_w(child, 10);
	reader_unlock(FLAVOUR);
}

static void round_of_clones(struct stress_thread *thread)
{
	reader_register(FLAVOUR);
	for (uint64_t i = 0; i < test.rounds; i++) {
		if (!thread->index) {
			test.sk = make();
			charge(test.sk);
			reader_lock(FLAVOUR);
			for (int j = 1; j < THREADS; j++)
				dstref_sock_hold(test.sk);
			reader_unlock(FLAVOUR);
		}
		stress_meet(thread);
		clone_and_put();
		let_go(thread, test.sk);
		if (thread->index)
			dstref_sock_put_outside(test.sk);
		stress_meet(thread);
	}
	reader_unregister(FLAVOUR);
}

static void c09_sock_clones_share_nothing(void **state)
{
	struct stress run = { .threads = THREADS };

	(void)state;
	begin();
	test.rounds = stress_rounds(10000);
	stress_run(&run, round_of_clones, NULL);
	end(&run, test.rounds * (1 + THREADS));
}

/* C10: eight threads hold and put, and charge and uncharge, one sock. */

static void hold_and_put(struct stress_thread *thread)
{
	struct dstref_sock *sk = test.sk;

	reader_register(FLAVOUR);
	for (uint64_t i = 0; i < test.rounds; i++) {
		uint32_t bytes = (uint32_t)stress_random(thread) % 2000;

		reader_lock(FLAVOUR);
		if (i % 3)
			dstref_sock_hold(sk);
		else
			wrong_if(!dstref_sock_try_hold(sk));
		wrong_if(!dstref_sock_charge_w(sk, bytes));
		dstref_sock_recharge_w(sk, bytes, bytes / 2);
		dstref_sock_uncharge_w(sk, bytes / 2);
		if (i % 5)
			dstref_sock_put(sk);
		else
			dstref_sock_put_outside(sk);
		reader_unlock(FLAVOUR);
	}
	reader_unregister(FLAVOUR);
}

static void c10_sock_counts_are_exact(void **state)
{
	struct stress run = { .threads = 8 };

	(void)state;
	begin();
	test.rounds = stress_rounds(1000000) / 8;
	test.sk = make();
	for (int i = 0; i < THREADS; i++)
		((struct sock *)(void *)test.sk)->wrote[i] = 1;
	stress_run(&run, hold_and_put, NULL);
	stress_assert_equal(&run, dstref_sock_refs(test.sk), 1);
	stress_assert_equal(&run, scene_units(&test.sk->wmem), 1);
	stress_assert_equal(&run, scene_bytes(&test.sk->wmem), 0);
	dstref_sock_put_outside(test.sk);
	end(&run, 1);
}

/* A lookup's try_hold against the last put: true or false, never a revival. */

static void find_and_try(struct stress_thread *thread)
{
	reader_register(FLAVOUR);
	for (uint64_t i = 0; i < test.rounds; i++) {
		struct dstref_sock *sk;

		if (!thread->index) {
			test.sk = make();
			for (int j = 0; j < THREADS; j++)
				((struct sock *)(void *)test.sk)->wrote[j] = 1;
		}
		stress_meet(thread);
		reader_lock(FLAVOUR);
		stress_meet(thread); /* inside before the last put */
		sk = test.sk;
		if (!thread->index) {
			dstref_sock_put(sk);
		} else if (dstref_sock_try_hold(sk)) {
			wrong_if(((struct sock *)(void *)sk)->alive != ALIVE);
			dstref_sock_put(sk);
			thread->told++;
		}
		reader_unlock(FLAVOUR);
		stress_meet(thread);
	}
	reader_unregister(FLAVOUR);
}

static void c01_sock_try_hold_against_the_last_put(void **state)
{
	struct stress run = { .threads = 3 };

	(void)state;
	begin();
	test.rounds = stress_rounds(50000);
	stress_run(&run, find_and_try, NULL);
	end(&run, test.rounds);
}

static int group_begin(void **state)
{
	(void)state;
	reader_register(FLAVOUR);
	return 0;
}

static int group_end(void **state)
{
	(void)state;
	reader_unregister(FLAVOUR);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		capture_test(c08_c14_sock_ends_once_after_all),
		capture_test(c14_sock_end_sees_what_outsiders_wrote),
		capture_test(sock_callback_runs_on_the_living_alone),
		capture_test(sock_callback_replaced_under_completions),
		capture_test(c09_sock_clones_share_nothing),
		capture_test(c10_sock_counts_are_exact),
		capture_test(c01_sock_try_hold_against_the_last_put),
	};

	return cmocka_run_group_tests_name("stress.sock", tests, group_begin,
					   group_end);
}
