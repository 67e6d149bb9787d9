/* SPDX-License-Identifier: MIT */
/*
 * stress.space - the first callback, and the completion that did not see it
 *
 * Goal: who sets the first write-space callback of a sock and looks then
 * whether it is writeable, loses no room: a completion that was under way
 * either calls the callback or gave its room back before. Method: rounds,
 * each with a sock that one packet fills; one thread completes it, the other
 * sets the callback and looks, at the same time. A round in which the sock was
 * not writeable and nobody was called fails. Were the grace period left out for
 * the first callback, it would happen: the completion has found none, and has
 * not yet given back its bytes. On liburcu's memb flavour.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "scene.h"
#include "stress.h"

#define FLAVOUR (&urcu_memb_flavor)
#define BYTES (DSTREF_SOCK_SNDBUF + 1)

enum { SETTER, COMPLETER, THREADS };

struct test {
	struct scene scene;
	struct dstref_sock *sk; /* of this round */
	bool more; /* rounds, after this one */
	void (*complete)(struct stress_thread *thread);
	DSTREF_ATOMIC(bool) called;
};

static struct test test;

static void call(struct dstref_sock *sk, void *data)
{
	(void)sk;
	(void)data;
	dstref_store_relaxed(&test.called, true);
}

static const struct dstref_sock_space space = { call, NULL };

static void dawdle(struct stress_thread *thread)
{
	for (uint64_t i = stress_random(thread) % 64; i; i--)
		__asm__ __volatile__("");
}

/* ops: rounds; failed: of them, those in which the room was lost. */
static bool set_and_look(struct stress_thread *thread)
{
	struct dstref_sock *sk = scene_sock(&test.scene);
	bool more = stress_more(thread);

	test.sk = sk;
	test.more = more;
	dstref_store_relaxed(&test.called, false);
	thread->failed += !dstref_sock_charge_w(sk, BYTES);
	stress_meet(thread);
	dawdle(thread);
	thread->failed += dstref_sock_set_write_space(sk, &space) != 0;
	bool writeable = dstref_sock_writeable(sk);

	stress_meet(thread);
	thread->ops++;
	thread->failed += !writeable && !dstref_load_relaxed(&test.called);
	dstref_sock_put_outside(sk);
	return more;
}

static void complete_inside(struct stress_thread *thread)
{
	reader_lock(FLAVOUR);
	stress_meet(thread);
	dawdle(thread);
	dstref_sock_uncharge_w(test.sk, BYTES);
	reader_unlock(FLAVOUR);
}

static void complete_outside(struct stress_thread *thread)
{
	stress_meet(thread);
	dawdle(thread);
	dstref_sock_uncharge_w_outside(test.sk, BYTES);
}

static void rounds(struct stress_thread *thread)
{
	bool more;

	reader_register(FLAVOUR);
	do {
		if (thread->index == SETTER) {
			more = set_and_look(thread);
		} else {
			test.complete(thread);
			more = test.more;
			stress_meet(thread);
		}
	} while (more);
	reader_unregister(FLAVOUR);
}

static void no_room_is_lost(void (*complete)(struct stress_thread *thread))
{
	struct stress run = { .threads = THREADS, .seconds = 2 };
	struct stress_thread sums;

	memset(&test, 0, sizeof(test));
	scene_begin(&test.scene, FLAVOUR);
	test.complete = complete;
	stress_run(&run, rounds, &sums);
	stress_assert(&run, sums.ops > 10);
	stress_assert_equal(&run, sums.failed, 0);
	stress_assert_equal(&run, dstref_net_barrier(test.scene.net, -1), 0);
	stress_assert_equal(&run, dstref_load_relaxed(&test.scene.ended),
			    sums.ops);
	stress_assert_equal(&run, scene_end(&test.scene), 0);
}

static void space_first_callback_misses_no_room(void **state)
{
	(void)state;
	no_room_is_lost(complete_inside);
}

static void space_first_callback_misses_no_room_outside(void **state)
{
	(void)state;
	no_room_is_lost(complete_outside);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		capture_test(space_first_callback_misses_no_room),
		capture_test(space_first_callback_misses_no_room_outside),
	};

	return cmocka_run_group_tests_name("stress.space", tests, NULL, NULL);
}
