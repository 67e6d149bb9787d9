/* SPDX-License-Identifier: MIT */
/*
 * unit.space - the callback that hears of room
 *
 * Goal: the callback is called by each completion that leaves half of sndbuf
 * free, and by no other; on a sock that is still pinned, by the very packet;
 * never again once set_write_space has returned with another. Method: a
 * callback that writes down what it sees; one that stays inside until the test
 * lets it go, while another thread tries to replace it. Who returned before
 * whom is told by a clock that the test's threads turn.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "scene.h"

#define SNDBUF 1000

struct heard {
	unsigned int times;
	struct dstref_sock *sk;
	uint32_t units; /* as the callback saw them */
	int64_t bytes;
};

static void hear(struct dstref_sock *sk, void *data)
{
	struct heard *heard = data;

	heard->times++;
	heard->sk = sk;
	heard->units = scene_units(&sk->wmem);
	heard->bytes = scene_bytes(&sk->wmem);
}

/* A sock with @packets of 100 bytes in flight. */
static struct dstref_sock *busy(int packets)
{
	struct dstref_sock *sk = scene_sock(&scene);

	dstref_sock_set_sndbuf(sk, SNDBUF);
	for (int i = 0; i < packets; i++)
		assert_true(dstref_sock_charge_w(sk, 100));
	return sk;
}

static void complete(struct dstref_sock *sk)
{
	scene_enter();
	dstref_sock_uncharge_w(sk, 100);
	scene_leave();
}

static void let_go(struct dstref_sock *sk)
{
	scene_enter();
	dstref_sock_put(sk);
	scene_leave();
	assert_true(manual_drain());
	assert_int_equal(dstref_load_relaxed(&scene.ended), 1);
}

static void space_is_heard_of_from_half_of_sndbuf_on(void **state)
{
	struct heard heard = { 0 };
	struct dstref_sock_space space = { hear, &heard };
	struct dstref_sock *sk = busy(8);

	(void)state;
	assert_int_equal(dstref_sock_set_write_space(sk, &space), 0);
	for (unsigned int left = 8; left--;) {
		complete(sk);
		assert_int_equal(heard.times, left > 5 ? 0 : 6 - left);
	}
	assert_ptr_equal(heard.sk, sk);
	let_go(sk);
}

/* The bytes are back, the unit is not: beside it there is the owner's. */
static void space_callback_runs_while_the_packet_pins(void **state)
{
	struct heard heard = { 0 };
	struct dstref_sock_space space = { hear, &heard };
	struct dstref_sock *sk = busy(3);

	(void)state;
	assert_int_equal(dstref_sock_set_write_space(sk, &space), 0);
	complete(sk);
	assert_int_equal(heard.units, 1 + 3);
	assert_int_equal(heard.bytes, 200);
	assert_int_equal(scene_units(&sk->wmem), 1 + 2);
	complete(sk);
	complete(sk);
	let_go(sk);
}

static void space_last_completion_of_a_sock_calls_then_frees(void **state)
{
	struct heard heard = { 0 };
	struct dstref_sock_space space = { hear, &heard };
	struct dstref_sock *sk = busy(2);

	(void)state;
	assert_int_equal(dstref_sock_set_write_space(sk, &space), 0);
	scene_enter();
	dstref_sock_put(sk);
	scene_leave();
	complete(sk);
	assert_int_equal(heard.units, 2);
	complete(sk);
	assert_int_equal(heard.times, 2);
	assert_int_equal(heard.units, 1);
	assert_int_equal(dstref_load_relaxed(&scene.ended), 0);
	assert_true(manual_drain());
	assert_int_equal(dstref_load_relaxed(&scene.ended), 1);
}

static void outside(void *sk)
{
	dstref_sock_uncharge_w_outside(sk, 100);
}

static void space_is_heard_of_from_outside_any_reader(void **state)
{
	struct heard heard = { 0 };
	struct dstref_sock_space space = { hear, &heard };
	struct dstref_sock *sk = busy(7);

	(void)state;
	assert_int_equal(dstref_sock_set_write_space(sk, &space), 0);
	scene_elsewhere(outside, sk);
	assert_int_equal(heard.times, 0);
	scene_elsewhere(outside, sk);
	assert_int_equal(heard.times, 1);
	assert_int_equal(heard.units, 1 + 6);
	assert_int_equal(heard.bytes, 500);
	dstref_sock_put_outside(sk);
	for (int i = 0; i < 5; i++) {
		assert_true(manual_drain());
		assert_int_equal(dstref_load_relaxed(&scene.ended), 0);
		scene_elsewhere(outside, sk);
	}
	assert_int_equal(heard.units, 1);
	assert_true(manual_drain());
	assert_int_equal(dstref_load_relaxed(&scene.ended), 1);
}

static void space_outside_needs_no_callback(void **state)
{
	struct dstref_sock *sk = busy(1);

	(void)state;
	dstref_sock_put_outside(sk);
	assert_int_equal(scene_units(&sk->wmem), 1);
	scene_elsewhere(outside, sk);
	assert_true(manual_drain());
	assert_int_equal(dstref_load_relaxed(&scene.ended), 1);
}

static void space_replaced_is_called_no_more(void **state)
{
	struct heard heard[2] = { 0 };
	struct dstref_sock_space one = { hear, &heard[0] };
	struct dstref_sock_space two = { hear, &heard[1] };
	struct dstref_sock *sk = busy(3);
	uint64_t periods = manual_periods();

	(void)state;
	assert_int_equal(dstref_sock_set_write_space(sk, &one), 0);
	assert_int_equal(manual_periods(), periods + 1);
	complete(sk);
	assert_int_equal(dstref_sock_set_write_space(sk, &two), 0);
	assert_int_equal(manual_periods(), periods + 2);
	complete(sk);
	assert_int_equal(dstref_sock_set_write_space(sk, NULL), 0);
	assert_int_equal(manual_periods(), periods + 3);
	assert_int_equal(dstref_sock_set_write_space(sk, NULL), 0);
	assert_int_equal(manual_periods(), periods + 3); /* nothing was due */
	complete(sk);
	assert_int_equal(heard[0].times, 1);
	assert_int_equal(heard[1].times, 1);
	let_go(sk);
}

/* On a flavour of which going offline tells nothing of a reader's nesting. */
static void space_set_inside_a_reader_is_refused(void **state)
{
	const struct rcu_flavor_struct *flavour = &urcu_memb_flavor;
	struct heard heard[2] = { 0 };
	struct dstref_sock_space one = { hear, &heard[0] };
	struct dstref_sock_space two = { hear, &heard[1] };
	struct dstref_sock *sk;
	struct scene s;

	(void)state;
	reader_register(flavour);
	scene_begin(&s, flavour);
	sk = scene_sock(&s);
	assert_true(dstref_sock_charge_w(sk, 100));
	assert_int_equal(dstref_sock_set_write_space(sk, &one), 0);
	reader_lock(flavour);
	assert_int_equal(dstref_sock_set_write_space(sk, &two), -EDEADLK);
	dstref_sock_uncharge_w(sk, 100);
	dstref_sock_put(sk);
	reader_unlock(flavour);
	capture_expect(DSTREF_REPORT_READER_BLOCKS, 1);
	assert_string_equal(capture_last(DSTREF_REPORT_READER_BLOCKS)->call,
			    "dstref_sock_set_write_space");
	assert_int_equal(heard[0].times, 1);
	assert_int_equal(heard[1].times, 0);
	assert_int_equal(scene_end(&s), 0);
	reader_unregister(flavour);
}

/*
 * The grace period, looked at from within: the new callback is in its place
 * already, and who came before may still run the old one.
 */
static struct dstref_sock *watched;
static const struct dstref_sock_space *seen;
static unsigned int waits;

static void watch_and_wait(void)
{
	waits++;
	seen = dstref_load_relaxed(&watched->space);
	manual_flavor.update_synchronize_rcu();
}

static void space_is_exchanged_before_the_grace_period(void **state)
{
	struct rcu_flavor_struct flavour = manual_flavor;
	struct dstref_sock_space one = { hear, NULL }, two = { hear, NULL };
	struct scene s;

	(void)state;
	flavour.update_synchronize_rcu = watch_and_wait;
	scene_begin(&s, &flavour);
	watched = scene_sock(&s);
	waits = 0;
	assert_int_equal(dstref_sock_set_write_space(watched, &one), 0);
	assert_int_equal(waits, 1);
	assert_ptr_equal(seen, &one);
	assert_int_equal(dstref_sock_set_write_space(watched, &two), 0);
	assert_int_equal(waits, 2);
	assert_ptr_equal(seen, &two);
	dstref_sock_put_outside(watched);
	watched = NULL;
	assert_true(manual_drain());
	flavour.update_synchronize_rcu = manual_flavor.update_synchronize_rcu;
	assert_int_equal(scene_end(&s), 0);
}

/* A callback that stays, and a thread that replaces it meanwhile. */

struct stay {
	struct dstref_sock *sk;
	const struct dstref_sock_space *next;
	DSTREF_ATOMIC(unsigned int) clock;
	DSTREF_ATOMIC(unsigned int) inside, go, setting;
	unsigned int left_at, set_at; /* on the clock */
	int result;
};

static void nap(void)
{
	static const struct timespec ms = { 0, 1000000 };

	nanosleep(&ms, NULL);
}

static void stay(struct dstref_sock *sk, void *data)
{
	struct stay *at = data;

	(void)sk;
	dstref_store_release(&at->inside, 1u);
	while (!dstref_load_acquire(&at->go))
		nap();
	at->left_at = dstref_fetch_add_acq_rel(&at->clock, 1u);
}

static void *complete_inside(void *arg)
{
	struct stay *at = arg;

	reader_register(scene.flavour);
	complete(at->sk);
	reader_unregister(scene.flavour);
	return NULL;
}

static void *complete_outside(void *arg)
{
	outside(((struct stay *)arg)->sk);
	return NULL;
}

static void *replace(void *arg)
{
	struct stay *at = arg;

	dstref_store_release(&at->setting, 1u);
	at->result = dstref_sock_set_write_space(at->sk, at->next);
	at->set_at = dstref_fetch_add_acq_rel(&at->clock, 1u);
	return NULL;
}

/* Lets the replacer have 50 ms in which to return too early. */
static void race(void *(*completer)(void *arg))
{
	struct stay at = { .sk = busy(1), .result = 1 };
	struct dstref_sock_space space = { stay, &at };
	pthread_t threads[2];

	assert_int_equal(dstref_sock_set_write_space(at.sk, &space), 0);
	pthread_create(&threads[0], NULL, completer, &at);
	while (!dstref_load_acquire(&at.inside))
		nap();
	pthread_create(&threads[1], NULL, replace, &at);
	while (!dstref_load_acquire(&at.setting))
		nap();
	for (int i = 0; i < 50; i++)
		nap();
	dstref_store_release(&at.go, 1u);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	assert_int_equal(at.result, 0);
	assert_true(at.left_at < at.set_at);
	let_go(at.sk);
}

static void space_set_waits_for_a_callback_in_a_reader(void **state)
{
	(void)state;
	race(complete_inside);
}

static void space_set_waits_for_a_callback_outside(void **state)
{
	(void)state;
	race(complete_outside);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scene_test(space_is_heard_of_from_half_of_sndbuf_on),
		scene_test(space_callback_runs_while_the_packet_pins),
		scene_test(space_last_completion_of_a_sock_calls_then_frees),
		scene_test(space_is_heard_of_from_outside_any_reader),
		scene_test(space_outside_needs_no_callback),
		scene_test(space_replaced_is_called_no_more),
		capture_test(space_set_inside_a_reader_is_refused),
		scene_test(space_is_exchanged_before_the_grace_period),
		scene_test(space_set_waits_for_a_callback_in_a_reader),
		scene_test(space_set_waits_for_a_callback_outside),
	};

	return cmocka_run_group_tests_name("unit.space", tests, NULL, NULL);
}
