/* SPDX-License-Identifier: MIT */
/*
 * unit.wake - who wakes whom
 *
 * Goal: a completion wakes who waits for room, when half of sndbuf is free and
 * not before, and nobody who waits for data; data_ready the other way round;
 * close and a new sndbuf wake as they promise; each wakes all, and once.
 * Method: sleepers (sleeper.h), one act each, and the exact counters of sleeps
 * and wake-ups: that a thread still sleeps is seen from them, not from a
 * pause.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sleeper.h"

#define MS SLEEPER_MS

static void wake_writable_is_woken_at_half_and_once(void **state)
{
	struct sleeper sleeper = { .timeout = -1 };
	struct dstref_sock *sk = sleeper_full();

	(void)state;
	sleeper_start(&sleeper, sk, ROOM);
	sleeper_until(1, 0);
	sleeper_complete(sk, 4);
	sleeper_wakeups(0, 0);
	sleeper_complete(sk, 1);
	sleeper_wakeups(1, 0);
	sleeper_complete(sk, 5);
	assert_int_equal(sleeper_end(&sleeper), 0);
	sleeper_until(1, 0);
	sleeper_wakeups(1, 0);
	sleeper_let_go(sk, 0);
}

static void wake_completions_wake_no_data_sleeper(void **state)
{
	struct sleeper room = { 0 }, data = { 0 };
	struct dstref_sock *sk = sleeper_full();

	(void)state;
	sleeper_start(&data, sk, DATA);
	sleeper_until(0, 1);
	sleeper_complete(sk, 1);
	sleeper_wakeups(0, 0);
	assert_true(dstref_sock_charge_w(sk, 100));
	sleeper_start(&room, sk, ROOM);
	sleeper_until(1, 1);
	sleeper_complete(sk, 10);
	assert_int_equal(sleeper_end(&room), 0);
	sleeper_wakeups(1, 0);
	dstref_sock_data_ready(sk);
	assert_int_equal(sleeper_end(&data), 0);
	sleeper_wakeups(1, 1);
	sleeper_until(1, 1);
	sleeper_let_go(sk, 0);
}

static void wake_data_wakes_no_room_sleeper(void **state)
{
	struct sleeper room = { 0 }, data = { 0 };
	struct dstref_sock *sk = sleeper_full();

	(void)state;
	sleeper_start(&room, sk, ROOM);
	sleeper_until(1, 0);
	dstref_sock_data_ready(sk);
	sleeper_wakeups(0, 0);
	sleeper_start(&data, sk, DATA);
	sleeper_until(1, 1);
	dstref_sock_data_ready(sk);
	assert_int_equal(sleeper_end(&data), 0);
	sleeper_wakeups(0, 1);
	sleeper_complete(sk, 5);
	assert_int_equal(sleeper_end(&room), 0);
	sleeper_wakeups(1, 1);
	sleeper_until(1, 1);
	sleeper_let_go(sk, 5);
}

static void wake_two_sleepers_are_both_woken(void **state)
{
	struct sleeper one = { 0 }, two = { 0 };
	struct dstref_sock *sk = sleeper_full();

	(void)state;
	sleeper_start(&one, sk, ROOM);
	sleeper_start(&two, sk, ROOM);
	sleeper_until(2, 0);
	sleeper_complete(sk, 5);
	assert_int_equal(sleeper_end(&one), 0);
	assert_int_equal(sleeper_end(&two), 0);
	sleeper_wakeups(2, 0);
	sleeper_let_go(sk, 5);
}

/* Who leaves at his timeout leaves the mark to the one who stays. */
static void stay_and_leave(enum sleeper_kind kind, uint64_t room, uint64_t data)
{
	struct sleeper stays = { 0 }, leaves = { .timeout = 30 * MS };
	struct dstref_sock *sk = sleeper_full();

	sleeper_start(&stays, sk, kind);
	sleeper_until(room + (kind == ROOM), data + (kind == DATA));
	sleeper_start(&leaves, sk, kind);
	assert_int_equal(sleeper_end(&leaves), -ETIMEDOUT);
	assert_true(sleeper_marked(sk));
	sleeper_complete(sk, 10);
	dstref_sock_data_ready(sk);
	assert_int_equal(sleeper_end(&stays), 0);
	assert_false(sleeper_marked(sk));
	dstref_sock_put_outside(sk);
}

static void wake_sleeper_who_stays_is_not_forgotten(void **state)
{
	(void)state;
	stay_and_leave(ROOM, 0, 0);
	sleeper_wakeups(1, 0);
	stay_and_leave(DATA, 2, 0);
	sleeper_wakeups(1, 1);
	sleeper_until(2, 2);
}

static void wake_close_wakes_both_kinds(void **state)
{
	struct sleeper room = { 0 }, data = { .timeout = -1 };
	struct dstref_sock *sk = sleeper_full();

	(void)state;
	sleeper_start(&room, sk, ROOM);
	sleeper_start(&data, sk, DATA);
	sleeper_until(1, 1);
	dstref_sock_close(sk);
	assert_int_equal(sleeper_end(&room), -ESHUTDOWN);
	assert_int_equal(sleeper_end(&data), -ESHUTDOWN);
	sleeper_wakeups(1, 1);
	sleeper_let_go(sk, 10);
}

static void wake_sndbuf_that_changes_has_sleepers_look_again(void **state)
{
	struct sleeper sleeper = { 0 };
	struct dstref_sock *sk = sleeper_full();

	(void)state;
	sleeper_start(&sleeper, sk, ROOM);
	sleeper_until(1, 0);
	dstref_sock_set_sndbuf(sk, SLEEPER_SNDBUF / 2);
	sleeper_until(2, 0); /* still full */
	dstref_sock_set_sndbuf(sk, SLEEPER_SNDBUF + 1);
	assert_int_equal(sleeper_end(&sleeper), 0);
	sleeper_until(2, 0);
	sleeper_wakeups(2, 0);
	sleeper_let_go(sk, 10);
}

static void ignore(struct dstref_sock *sk, void *data)
{
	(void)sk;
	(void)data;
}

static const struct dstref_sock_space ignored = { ignore, NULL };

static void shrink(struct dstref_skb *skb)
{
	dstref_skb_set_truesize(skb, SLEEPER_SNDBUF / 2);
}

static void release_early(struct dstref_skb *skb)
{
	(void)dstref_skb_xmit_release(skb, DSTREF_SKB_EARLY);
}

static void make_room(void (*way)(struct dstref_skb *skb),
		      const struct dstref_sock_space *space)
{
	struct dstref_sock *sk = scene_sock(&scene);
	uint64_t before = sleeper_stats().sleeps_room;
	struct sleeper sleeper = { 0 };
	struct dstref_skb skb;

	assert_int_equal(dstref_sock_set_write_space(sk, space), 0);
	dstref_sock_set_sndbuf(sk, SLEEPER_SNDBUF);
	scene_enter();
	dstref_skb_init(&skb, SLEEPER_SNDBUF);
	dstref_skb_set_owner_w(&skb, sk);
	scene_leave();
	sleeper_start(&sleeper, sk, ROOM);
	sleeper_until(before + 1, 0);
	scene_enter();
	way(&skb);
	scene_leave();
	assert_int_equal(sleeper_end(&sleeper), 0);
	sleeper_until(before + 1, 0);
	sleeper_wakeups(before + 1, 0);
	scene_enter();
	dstref_skb_free(&skb);
	dstref_sock_put(sk);
	scene_leave();
}

static void wake_every_way_to_make_room_wakes(void **state)
{
	static void (*const ways[])(struct dstref_skb * skb) = {
		dstref_skb_orphan,
		dstref_skb_orphan_outside,
		shrink,
		release_early,
	};

	(void)state;
	for (int i = 0; i < 4; i++) {
		make_room(ways[i], NULL);
		make_room(ways[i], &ignored);
	}
}

/* Misuse pins the account; it shows room, and who waited must hear of it. */
static void wake_sleeper_on_an_account_that_saturates(void **state)
{
	struct sleeper sleeper = { 0 };
	struct dstref_sock *sk = sleeper_full();
	uint64_t units = DSTREF_WMEM_UNITS_MAX - scene_units(&sk->wmem);

	(void)state;
	(void)dstref_fetch_add_relaxed(&sk->wmem.word,
				       DSTREF_WMEM_UNIT * units);
	sleeper_start(&sleeper, sk, ROOM);
	sleeper_until(1, 0);
	assert_true(dstref_sock_charge_w(sk, 100));
	capture_expect(DSTREF_REPORT_WMEM_SATURATED, 1);
	sleeper_wakeups(0, 0);
	sleeper_complete(sk, 1);
	assert_int_equal(sleeper_end(&sleeper), 0);
	sleeper_until(1, 0);
	sleeper_wakeups(1, 0);
	dstref_wmem_init(&sk->wmem); /* else it leaks */
	sleeper_let_go(sk, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scene_test(wake_writable_is_woken_at_half_and_once),
		scene_test(wake_completions_wake_no_data_sleeper),
		scene_test(wake_data_wakes_no_room_sleeper),
		scene_test(wake_two_sleepers_are_both_woken),
		scene_test(wake_sleeper_who_stays_is_not_forgotten),
		scene_test(wake_close_wakes_both_kinds),
		scene_test(wake_sndbuf_that_changes_has_sleepers_look_again),
		scene_test(wake_every_way_to_make_room_wakes),
		scene_test(wake_sleeper_on_an_account_that_saturates),
	};

	return cmocka_run_group_tests_name("unit.wake", tests, NULL, NULL);
}
