/* SPDX-License-Identifier: MIT */
/*
 * sleeper - a thread that waits on a sock, and what its namespace counts
 *
 * Nothing but the header's promise: the counters of sleeps and wake-ups are
 * polled once a millisecond, since the library offers no other way to see
 * that a thread sleeps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#include "sleeper.h"

int sleeper_wait(struct sleeper *sleeper)
{
	int64_t timeout = sleeper->timeout ? sleeper->timeout : SLEEPER_LONG;

	if (sleeper->kind == ROOM)
		return dstref_sock_wait_writable(sleeper->sk, timeout);
	return dstref_sock_wait_readable(sleeper->sk, sleeper->token, timeout);
}

static void *run(void *arg)
{
	struct sleeper *me = arg;

	me->result = sleeper_wait(me);
	return NULL;
}

void sleeper_start(struct sleeper *sleeper, struct dstref_sock *sk,
		   enum sleeper_kind kind)
{
	sleeper->sk = sk;
	sleeper->kind = kind;
	sleeper->token = dstref_sock_data_token(sk);
	assert_int_equal(pthread_create(&sleeper->id, NULL, run, sleeper), 0);
}

int sleeper_end(struct sleeper *sleeper)
{
	assert_int_equal(pthread_join(sleeper->id, NULL), 0);
	return sleeper->result;
}

struct dstref_net_counters sleeper_stats(void)
{
	struct dstref_net_counters stats;

	dstref_net_stats(scene.net, &stats);
	return stats;
}

int64_t sleeper_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t)time.tv_sec * 1000 * SLEEPER_MS + time.tv_nsec;
}

void sleeper_until(uint64_t room, uint64_t data)
{
	static const struct timespec ms = { 0, SLEEPER_MS };
	int64_t end = sleeper_now() + SLEEPER_LONG;

	while ((sleeper_stats().sleeps_room < room ||
		sleeper_stats().sleeps_data < data) &&
	       sleeper_now() < end)
		nanosleep(&ms, NULL);
	assert_int_equal(sleeper_stats().sleeps_room, room);
	assert_int_equal(sleeper_stats().sleeps_data, data);
}

void sleeper_wakeups(uint64_t room, uint64_t data)
{
	assert_int_equal(sleeper_stats().wakeups_room, room);
	assert_int_equal(sleeper_stats().wakeups_data, data);
}

struct dstref_sock *sleeper_full(void)
{
	struct dstref_sock *sk = scene_sock(&scene);

	dstref_sock_set_sndbuf(sk, SLEEPER_SNDBUF);
	for (int i = 0; i < 10; i++)
		assert_true(dstref_sock_charge_w(sk, 100));
	assert_false(dstref_sock_writeable(sk));
	return sk;
}

void sleeper_complete(struct dstref_sock *sk, int packets)
{
	scene_enter();
	while (packets--)
		dstref_sock_uncharge_w(sk, 100);
	scene_leave();
}

bool sleeper_marked(struct dstref_sock *sk)
{
	return (dstref_wmem_read(&sk->wmem) & DSTREF_WMEM_WAITER) ||
	       (dstref_load_relaxed(&sk->events) & DSTREF_SOCK_EVENT_WAITER);
}

void sleeper_let_go(struct dstref_sock *sk, int packets)
{
	assert_false(sleeper_marked(sk));
	sleeper_complete(sk, packets);
	dstref_sock_put_outside(sk);
	assert_true(manual_drain());
	assert_int_equal(dstref_load_relaxed(&scene.ended), 1);
}
