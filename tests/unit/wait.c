/* SPDX-License-Identifier: MIT */
/*
 * unit.wait - how a wait ends
 *
 * Goal: a wait ends for the reason that it names: what it waited for was
 * there at once, or came after the token, the time is over, the sock is
 * closed, the caller is a reader. It leaves no mark behind, and an online QSBR
 * thread goes offline for it. Method: one thread, except where a sleeper is
 * needed; the namespace's counters say whether anybody slept. What wakes a
 * sleeper is in unit.wake.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "park.h"
#include "sleeper.h"

#define MS SLEEPER_MS

/* Waits that need no other thread. */

static void wait_ready_at_once_does_not_sleep(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);
	uint32_t token = dstref_sock_data_token(sk);

	(void)state;
	dstref_sock_data_ready(sk);
	assert_int_equal(dstref_sock_wait_writable(sk, SLEEPER_LONG), 0);
	assert_int_equal(dstref_sock_wait_writable(sk, 0), 0);
	assert_int_equal(dstref_sock_wait_readable(sk, token, SLEEPER_LONG), 0);
	assert_int_equal(dstref_sock_wait_readable(sk, token, 0), 0);
	sleeper_until(0, 0);
	sleeper_let_go(sk, 0);
}

static void wait_ends_at_its_timeout(void **state)
{
	struct dstref_sock *sk = sleeper_full();
	uint32_t token = dstref_sock_data_token(sk);
	int64_t begin = sleeper_now();

	(void)state;
	assert_int_equal(dstref_sock_wait_writable(sk, 20 * MS), -ETIMEDOUT);
	assert_true(sleeper_now() - begin >= 20 * MS);
	assert_false(sleeper_marked(sk));
	begin = sleeper_now();
	assert_int_equal(dstref_sock_wait_readable(sk, token, 20 * MS),
			 -ETIMEDOUT);
	assert_true(sleeper_now() - begin >= 20 * MS);
	sleeper_until(1, 1);
	sleeper_wakeups(0, 0);
	sleeper_let_go(sk, 10);
}

static void wait_of_no_time_looks_once(void **state)
{
	struct dstref_sock *sk = sleeper_full();
	uint32_t token = dstref_sock_data_token(sk);

	(void)state;
	assert_int_equal(dstref_sock_wait_writable(sk, 0), -ETIMEDOUT);
	assert_int_equal(dstref_sock_wait_readable(sk, token, 0), -ETIMEDOUT);
	sleeper_let_go(sk, 10);
}

/* From one byte below sndbuf, not from the half on which sleepers wake. */
static void wait_writable_is_as_writeable_says(void **state)
{
	struct dstref_sock *sk = sleeper_full();

	(void)state;
	sleeper_complete(sk, 1);
	assert_true(dstref_sock_writeable(sk));
	assert_int_equal(dstref_sock_wait_writable(sk, 0), 0);
	sleeper_let_go(sk, 9);
}

static void wait_after_close_is_shut_down(void **state)
{
	struct dstref_sock *sk = sleeper_full();
	uint32_t token = dstref_sock_data_token(sk);

	(void)state;
	dstref_sock_close(sk);
	assert_int_equal(dstref_sock_wait_writable(sk, SLEEPER_LONG),
			 -ESHUTDOWN);
	assert_int_equal(dstref_sock_wait_readable(sk, token, SLEEPER_LONG),
			 -ESHUTDOWN);
	sleeper_complete(sk, 10);
	dstref_sock_data_ready(sk);
	assert_int_equal(dstref_sock_wait_writable(sk, SLEEPER_LONG),
			 -ESHUTDOWN);
	assert_int_equal(dstref_sock_wait_readable(sk, token, SLEEPER_LONG),
			 -ESHUTDOWN);
	sleeper_until(0, 0);
	sleeper_let_go(sk, 0);
}

static void wait_inside_a_reader_is_refused(void **state)
{
	const struct rcu_flavor_struct *flavour = &urcu_memb_flavor;
	struct dstref_sock *sk;
	struct scene s;

	(void)state;
	reader_register(flavour);
	scene_begin(&s, flavour);
	sk = scene_sock(&s);
	reader_lock(flavour);
	assert_int_equal(dstref_sock_wait_writable(sk, SLEEPER_LONG), -EDEADLK);
	assert_int_equal(dstref_sock_wait_readable(sk, 0, SLEEPER_LONG),
			 -EDEADLK);
	dstref_sock_put(sk);
	reader_unlock(flavour);
	capture_expect(DSTREF_REPORT_READER_BLOCKS, 2);
	assert_string_equal(capture_report(0)->call,
			    "dstref_sock_wait_writable");
	assert_string_equal(capture_report(1)->call,
			    "dstref_sock_wait_readable");
	assert_int_equal(scene_end(&s), 0);
	reader_unregister(flavour);
}

/* Data: token, look at the queue, wait. */

static void bring_data(void *sk)
{
	dstref_sock_data_ready(sk);
}

static void wait_readable_sees_what_came_since_the_token(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);
	uint32_t token;

	(void)state;
	scene_elsewhere(bring_data, sk);
	token = dstref_sock_data_token(sk);
	assert_int_equal(dstref_sock_wait_readable(sk, token, MS), -ETIMEDOUT);
	dstref_sock_data_ready(sk);
	assert_int_equal(dstref_sock_wait_readable(sk, token, SLEEPER_LONG), 0);
	sleeper_until(0, 1);
	assert_int_not_equal(dstref_sock_data_token(sk), token);
	sleeper_let_go(sk, 0);
}

/* The mark of a waiter is no part of the token. */
static void wait_readable_token_is_the_same_beside_a_sleeper(void **state)
{
	struct sleeper one = { 0 }, two = { 0 };
	struct dstref_sock *sk = scene_sock(&scene);
	uint32_t token = dstref_sock_data_token(sk);

	(void)state;
	sleeper_start(&one, sk, DATA);
	sleeper_until(0, 1);
	assert_true(sleeper_marked(sk));
	assert_int_equal(dstref_sock_data_token(sk), token);
	sleeper_start(&two, sk, DATA);
	sleeper_until(0, 2);
	dstref_sock_data_ready(sk);
	assert_int_equal(sleeper_end(&one), 0);
	assert_int_equal(sleeper_end(&two), 0);
	sleeper_wakeups(0, 2);
	sleeper_let_go(sk, 0);
}

/* QSBR: who sleeps is offline, or no grace period would end meanwhile. */

static DSTREF_ATOMIC(bool) online_after;

static void *sleep_online(void *arg)
{
	struct sleeper *me = arg;

	reader_register(&urcu_qsbr_flavor);
	me->result = sleeper_wait(me);
	dstref_store_relaxed(&online_after,
			     urcu_qsbr_flavor.read_ongoing() != 0);
	reader_unregister(&urcu_qsbr_flavor);
	return NULL;
}

static uint64_t sleeps_of(struct dstref_net *net)
{
	struct dstref_net_counters counts;

	dstref_net_stats(net, &counts);
	return counts.sleeps_room + counts.sleeps_data;
}

static void sleep_through_a_grace_period(enum sleeper_kind kind)
{
	struct sleeper sleeper = { .kind = kind, .timeout = SLEEPER_LONG };
	const struct rcu_flavor_struct *flavour = &urcu_qsbr_flavor;
	struct scene s;

	scene_begin(&s, flavour);
	sleeper.sk = scene_sock(&s);
	sleeper.token = dstref_sock_data_token(sleeper.sk);
	dstref_sock_set_sndbuf(sleeper.sk, 1);
	assert_true(dstref_sock_charge_w(sleeper.sk, 1));
	assert_int_equal(
		pthread_create(&sleeper.id, NULL, sleep_online, &sleeper), 0);
	while (!sleeps_of(s.net))
		sched_yield();
	reader_synchronize(flavour);
	if (kind == ROOM)
		dstref_sock_uncharge_w_outside(sleeper.sk, 1);
	else
		dstref_sock_data_ready(sleeper.sk);
	assert_int_equal(sleeper_end(&sleeper), 0);
	assert_true(dstref_load_relaxed(&online_after));
	if (kind == DATA)
		dstref_sock_uncharge_w_outside(sleeper.sk, 1);
	dstref_sock_put_outside(sleeper.sk);
	assert_int_equal(scene_end(&s), 0);
}

static void wait_takes_a_qsbr_thread_offline(void **state)
{
	(void)state;
	sleep_through_a_grace_period(ROOM);
	sleep_through_a_grace_period(DATA);
}

/* A wait is no cancellation point: the thread's next one is. */
static DSTREF_ATOMIC(bool) survived;

static void *wait_and_test_cancel(void *arg)
{
	struct sleeper *me = arg;

	me->result = sleeper_wait(me);
	pthread_testcancel();
	dstref_store_relaxed(&survived, true);
	return NULL;
}

static void cancel_in_a_wait(enum sleeper_kind kind, uint64_t room,
			     uint64_t data)
{
	struct dstref_sock *sk = sleeper_full();
	struct sleeper me = { .sk = sk, .kind = kind, .timeout = 200 * MS };
	int64_t begin = sleeper_now();
	void *end;

	assert_int_equal(
		pthread_create(&me.id, NULL, wait_and_test_cancel, &me), 0);
	sleeper_until(room, data);
	assert_int_equal(pthread_cancel(me.id), 0);
	assert_int_equal(pthread_join(me.id, &end), 0);
	assert_true(sleeper_now() - begin >= 200 * MS);
	assert_ptr_equal(end, PTHREAD_CANCELED);
	assert_false(dstref_load_relaxed(&survived));
	assert_int_equal(me.result, -ETIMEDOUT);
	/* Nobody is left in the row for these to find. */
	assert_false(sleeper_marked(sk));
	dstref_sock_close(sk);
	sleeper_wakeups(0, 0);
	sleeper_complete(sk, 10);
	dstref_sock_put_outside(sk);
}

static void wait_is_no_cancellation_point(void **state)
{
	(void)state;
	cancel_in_a_wait(ROOM, 1, 0);
	cancel_in_a_wait(DATA, 1, 1);
	assert_true(manual_drain());
	assert_int_equal(dstref_load_relaxed(&scene.ended), 2);
}

/* More keys than rows: some share one. Each wake finds its own alone. */
static void wait_keys_that_share_a_row_are_woken_apart(void **state)
{
	static struct park park;
	static struct park_node nodes[2 * PARK_ROWS];
	static char keys[2 * PARK_ROWS][DSTREF_LINE_SIZE];

	(void)state;
	park_init(&park);
	for (int i = 0; i < 2 * PARK_ROWS; i++) {
		assert_int_equal(park_node_init(&nodes[i], keys[i]), 0);
		park_enter(&park, &nodes[i]);
	}
	for (int i = 0; i < 2 * PARK_ROWS; i++) {
		assert_int_equal(park_wake(&park, keys[i]), 1);
		assert_int_equal(park_wake(&park, keys[i]), 0);
		for (int j = 0; j < 2 * PARK_ROWS; j++)
			assert_int_equal(nodes[j].woken, j <= i);
		park_node_fini(&nodes[i]);
	}
	park_fini(&park);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scene_test(wait_ready_at_once_does_not_sleep),
		scene_test(wait_ends_at_its_timeout),
		scene_test(wait_of_no_time_looks_once),
		scene_test(wait_writable_is_as_writeable_says),
		scene_test(wait_after_close_is_shut_down),
		capture_test(wait_inside_a_reader_is_refused),
		scene_test(wait_readable_sees_what_came_since_the_token),
		scene_test(wait_readable_token_is_the_same_beside_a_sleeper),
		capture_test(wait_takes_a_qsbr_thread_offline),
		scene_test(wait_is_no_cancellation_point),
		scene_test(wait_keys_that_share_a_row_are_woken_apart),
	};

	return cmocka_run_group_tests_name("unit.wait", tests, NULL, NULL);
}
