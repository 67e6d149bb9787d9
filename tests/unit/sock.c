/* SPDX-License-Identifier: MIT */
/*
 * unit.sock - births, references, and what a sock is told
 *
 * Goal: a sock is defined from its first moment, refuses bad arguments without
 * a trace, counts its references, and is let go of once. Method: memory that
 * is dirty before; the manual flavour, so that a test stands between the last
 * put and the end of the grace period and looks; a ledger of memory; every
 * report expected. How a sock ends is in unit.life, the callback that hears of
 * room in unit.space, sleepers in unit.wait.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scene.h"

static unsigned char stage[2][sizeof(struct scene_sock) + DSTREF_LINE_SIZE]
	__attribute__((aligned(DSTREF_LINE_SIZE)));

static struct dstref_sock *place(int which, int with)
{
	memset(stage[which], with, sizeof(stage[which]));
	return (struct dstref_sock *)(void *)stage[which];
}

static void assert_filled(const unsigned char *bytes, size_t n, int with)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(bytes[i], with);
}

static unsigned int ended(void)
{
	return dstref_load_relaxed(&scene.ended);
}

static void put(struct dstref_sock *sk)
{
	scene_enter();
	dstref_sock_put(sk);
	scene_leave();
}

/* Births. */

static void assert_refused(struct dstref_sock *sk, struct dstref_net *net,
			   const struct dstref_sock_proto *proto)
{
	struct dstref_net_counters stats;

	assert_int_equal(dstref_sock_init(sk, net, proto), -EINVAL);
	assert_filled(stage[0], sizeof(stage[0]), 0xA5);
	dstref_net_stats(scene.net, &stats);
	assert_int_equal(stats.sock, 0);
}

static void sock_init_refuses_bad_arguments(void **state)
{
	struct dstref_sock_proto small = scene_proto, endless = scene_proto;
	struct dstref_sock *sk = place(0, 0xA5);

	(void)state;
	small.size = sizeof(struct dstref_sock) - 1;
	endless.destroy = NULL;
	assert_refused((void *)(stage[0] + 8), scene.net, &scene_proto);
	assert_refused(NULL, scene.net, &scene_proto);
	assert_refused(sk, NULL, &scene_proto);
	assert_refused(sk, scene.net, NULL);
	assert_refused(sk, scene.net, &small);
	assert_refused(sk, scene.net, &endless);
}

static void sock_alloc_refuses_bad_arguments(void **state)
{
	struct dstref_sock_proto small = scene_proto;
	struct dstref_sock *sk = (void *)stage;

	(void)state;
	small.size = sizeof(struct dstref_sock) - 1;
	assert_int_equal(dstref_sock_alloc(NULL, scene.net, &scene_proto),
			 -EINVAL);
	assert_int_equal(dstref_sock_alloc(&sk, NULL, &scene_proto), -EINVAL);
	assert_int_equal(dstref_sock_alloc(&sk, scene.net, NULL), -EINVAL);
	assert_int_equal(dstref_sock_alloc(&sk, scene.net, &small), -EINVAL);
	assert_ptr_equal(sk, stage);
}

/* The namespace is closing from its first destroy on. */
static void sock_is_refused_by_a_closing_namespace(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene), *none = (void *)stage;

	(void)state;
	assert_int_equal(dstref_net_destroy(scene.net), -EBUSY);
	capture_expect(DSTREF_REPORT_NET_BUSY, 1);
	capture_expect(DSTREF_REPORT_NET_LEAK, 1);
	place(0, 0xA5);
	assert_int_equal(
		dstref_sock_init((void *)stage, scene.net, &scene_proto),
		-ESHUTDOWN);
	assert_filled(stage[0], sizeof(stage[0]), 0xA5);
	assert_int_equal(dstref_sock_alloc(&none, scene.net, &scene_proto),
			 -ESHUTDOWN);
	assert_int_equal(dstref_sock_clone(&none, sk), -ESHUTDOWN);
	assert_ptr_equal(none, stage);
	put(sk);
}

static void assert_fresh(const struct dstref_sock *sk)
{
	assert_ptr_equal(sk->net, scene.net);
	assert_int_equal(dstref_sock_refs(sk), 1);
	assert_int_equal(scene_units(&sk->wmem), 1);
	assert_int_equal(scene_bytes(&sk->wmem), 0);
	assert_int_equal(scene_units(&sk->rmem), 1);
	assert_int_equal(scene_bytes(&sk->rmem), 0);
	assert_null(dstref_load_relaxed(&sk->dst.dst));
	assert_null(dstref_load_relaxed(&sk->space));
	assert_null(sk->user);
	assert_int_equal(dstref_load_relaxed(&sk->closed), 0);
	assert_int_equal(dstref_sock_data_token(sk), 0);
	assert_true(dstref_sock_writeable(sk));
}

/* Two socks on memory of two kinds of dirt differ in their links alone. */
static void c12_sock_init_defines_every_field(void **state)
{
	struct dstref_sock *one = place(0, 0xA5), *two = place(1, 0x5A);
	size_t links = offsetof(struct dstref_sock, entry.link);
	size_t after = links + sizeof(one->entry.link);

	(void)state;
	assert_int_equal(dstref_sock_init(one, scene.net, &scene_proto), 0);
	assert_int_equal(dstref_sock_init(two, scene.net, &scene_proto), 0);
	assert_memory_equal(one, two, links);
	assert_memory_equal((char *)one + after, (char *)two + after,
			    sizeof(*one) - after);
	assert_fresh(one);
	assert_int_equal(dstref_load_relaxed(&one->sndbuf), DSTREF_SOCK_SNDBUF);
	assert_filled(stage[0] + sizeof(*one), sizeof(stage[0]) - sizeof(*one),
		      0xA5); /* the user's part is the user's */
	put(one);
	put(two);
	assert_true(manual_drain());
	assert_int_equal(ended(), 2);
}

/* alloc.h hands out 0xA5 and checks the size that comes back. */
static void c12_sock_alloc_clears_the_tail(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);
	size_t blocks = scene.alloc.blocks;

	(void)state;
	assert_fresh(sk);
	assert_filled(((struct scene_sock *)(void *)sk)->tail, SCENE_TAIL, 0);
	put(sk);
	assert_true(manual_drain());
	assert_int_equal(ended(), 1);
	assert_int_equal(scene.alloc.blocks, blocks - 1);
}

static void sock_alloc_needs_no_functions(void **state)
{
	static const struct dstref_sock_proto bare = {
		.size = sizeof(struct dstref_sock),
	};
	struct dstref_sock *sk;
	size_t blocks = scene.alloc.blocks;

	(void)state;
	assert_int_equal(dstref_sock_alloc(&sk, scene.net, &bare), 0);
	put(sk);
	assert_true(manual_drain());
	assert_int_equal(scene.alloc.blocks, blocks);
}

static void sock_alloc_without_memory_changes_nothing(void **state)
{
	struct dstref_sock *sk = (void *)stage;
	struct dstref_net_counters stats;

	(void)state;
	assert_true(manual_drain());
	alloc_refuse(&scene.alloc, 1);
	assert_int_equal(dstref_sock_alloc(&sk, scene.net, &scene_proto),
			 -ENOMEM);
	assert_ptr_equal(sk, stage);
	assert_int_equal(scene.alloc.refused, 1);
	dstref_net_stats(scene.net, &stats);
	assert_int_equal(stats.sock + stats.callbacks, 0);
}

/* Memory hooks that look at what comes back. */
static unsigned int poisoned;

static void *plain_alloc(void *ctx, size_t size, size_t align, int node)
{
	(void)ctx;
	(void)node;
	return aligned_alloc(align, (size + align - 1) / align * align);
}

static void look_and_free(void *ctx, void *ptr, size_t size)
{
	const unsigned char *bytes = ptr;
	size_t n = 0;

	(void)ctx;
	while (n < size && bytes[n] == 0x6b)
		n++;
	poisoned += n == size;
	free(ptr);
}

static void c12_freed_socks_are_poisoned(void **state)
{
	struct dstref_net_attr attr = {
		.flavour = &manual_flavor,
		.mem = { plain_alloc, look_and_free, NULL },
	};
	struct dstref_net *net;
	struct dstref_sock *sk;

	(void)state;
	poisoned = 0;
	assert_int_equal(dstref_net_create(&net, &attr), 0);
	net->user = &scene;
	assert_int_equal(dstref_sock_alloc(&sk, net, &scene_proto), 0);
	put(sk);
	assert_true(manual_drain());
	assert_int_equal(ended(), 1);
	assert_int_equal(poisoned, DSTREF_DEBUG ? 1 : 0);
	assert_int_equal(dstref_net_destroy(net), 0);
}

/* References. */

static void sock_put_null_does_nothing(void **state)
{
	(void)state;
	dstref_sock_put(NULL);
	dstref_sock_put_outside(NULL);
}

static void sock_hold_and_put_count(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);

	(void)state;
	scene_enter();
	dstref_sock_hold(sk);
	assert_int_equal(dstref_sock_refs(sk), 2);
	assert_true(dstref_sock_try_hold(sk));
	assert_int_equal(dstref_sock_refs(sk), 3);
	dstref_sock_put(sk);
	dstref_sock_put_outside(sk);
	assert_int_equal(dstref_sock_refs(sk), 1);
	assert_int_equal(dstref_load_relaxed(&scene.released), 0);
	dstref_sock_put(sk);
	assert_int_equal(dstref_sock_refs(sk), 0);
	scene_leave();
	assert_int_equal(dstref_load_relaxed(&scene.released), 1);
}

/* A reader that found the sock before still looks at it. */
static void sock_memory_outlives_its_readers(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);

	(void)state;
	assert_true(manual_drain());
	scene_enter();
	dstref_sock_put(sk);
	assert_false(dstref_sock_try_hold(sk));
	capture_expect_none();
	assert_false(manual_advance());
	assert_int_equal(ended(), 0);
	assert_ptr_equal(sk->proto, &scene_proto);
	scene_leave();
	assert_int_equal(ended(), 0);
	assert_true(manual_advance());
	assert_int_equal(ended(), 1);
}

static void sock_hold_of_a_dead_one_is_reported(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);

	(void)state;
	scene_enter();
	dstref_sock_put(sk);
	dstref_sock_hold(sk);
	capture_expect(DSTREF_REPORT_SOCK_HOLD_DEAD, 1);
	assert_ptr_equal(capture_last(DSTREF_REPORT_SOCK_HOLD_DEAD)->object,
			 sk);
	assert_int_equal(dstref_sock_refs(sk), 0);
	scene_leave();
	assert_true(manual_drain());
	assert_int_equal(ended(), 1);
}

static void c04_sock_put_too_often_is_reported(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);

	(void)state;
	scene_enter();
	for (int i = 0; i < 3; i++)
		dstref_sock_put(sk);
	dstref_sock_put_outside(sk);
	capture_expect(DSTREF_REPORT_COUNT_UNDERFLOW, 3);
	assert_ptr_equal(capture_report(0)->object, sk);
	scene_leave();
	assert_true(manual_drain());
	assert_int_equal(dstref_load_relaxed(&scene.released), 1);
	assert_int_equal(ended(), 1);
}

static void c13_sock_count_saturates_and_leaks(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);

	(void)state;
	scene_enter();
	dstref_count_init(&sk->count, DSTREF_COUNT_MAX - 1);
	dstref_sock_hold(sk);
	capture_expect_none();
	assert_int_equal(dstref_sock_refs(sk), DSTREF_COUNT_MAX);
	dstref_sock_hold(sk);
	capture_expect(DSTREF_REPORT_COUNT_SATURATED, 1);
	for (int i = 0; i < 3; i++)
		dstref_sock_put(sk);
	assert_true(dstref_sock_try_hold(sk));
	dstref_sock_put_outside(sk);
	scene_leave();
	assert_true(manual_drain());
	assert_int_equal(dstref_load_relaxed(&scene.released), 0);
	capture_expect_none();
	dstref_count_init(&sk->count, 1); /* for the namespace's end */
	put(sk);
}

static void put_outside(void *sk)
{
	dstref_sock_put_outside(sk);
}

static void sock_put_outside_from_a_thread_registered_nowhere(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);

	(void)state;
	scene_enter();
	dstref_sock_hold(sk);
	scene_leave();
	scene_elsewhere(put_outside, sk);
	assert_int_equal(dstref_sock_refs(sk), 1);
	scene_elsewhere(put_outside, sk);
	assert_int_equal(dstref_load_relaxed(&scene.released), 1);
	assert_true(manual_drain());
	assert_int_equal(ended(), 1);
}

/* What a sock is told. */

static void sock_close_touches_nothing_else(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);

	(void)state;
	assert_true(dstref_sock_charge_w(sk, 10));
	dstref_sock_close(sk);
	dstref_sock_close(sk);
	assert_int_equal(dstref_load_relaxed(&sk->closed), 1);
	assert_int_equal(dstref_sock_refs(sk), 1);
	assert_int_equal(scene_units(&sk->wmem), 2);
	dstref_sock_uncharge_w_outside(sk, 10);
	put(sk);
}

static void sock_is_writeable_below_sndbuf(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);

	(void)state;
	dstref_sock_set_sndbuf(sk, 100);
	assert_true(dstref_sock_charge_w(sk, 99));
	assert_true(dstref_sock_writeable(sk));
	dstref_sock_recharge_w(sk, 99, 100);
	assert_false(dstref_sock_writeable(sk));
	assert_true(dstref_sock_charge_w(sk, 0));
	assert_int_equal(scene_units(&sk->wmem), 3);
	dstref_sock_set_sndbuf(sk, 101);
	assert_true(dstref_sock_writeable(sk));
	dstref_sock_uncharge_w_outside(sk, 100);
	dstref_sock_set_sndbuf(sk, 0); /* counts as 1 */
	assert_true(dstref_sock_writeable(sk));
	dstref_sock_recharge_w(sk, 0, 1);
	assert_false(dstref_sock_writeable(sk));
	dstref_sock_uncharge_w_outside(sk, 1);
	put(sk);
}

static void sock_charge_of_an_ended_account_is_refused(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);

	(void)state;
	scene_enter();
	dstref_sock_put(sk);
	assert_false(dstref_sock_charge_w(sk, 10));
	assert_false(dstref_sock_charge_r(sk, 10));
	capture_expect(DSTREF_REPORT_WMEM_DEAD, 2);
	dstref_sock_uncharge_w(sk, 10);
	dstref_sock_uncharge_r(sk, 10);
	capture_expect(DSTREF_REPORT_WMEM_UNDERFLOW, 2);
	scene_leave();
	assert_true(manual_drain());
	assert_int_equal(ended(), 1);
}

#if DSTREF_DEBUG
static void sock_debug_names_who_passes_null(void **state)
{
	(void)state;
	dstref_sock_hold(NULL);
	assert_false(dstref_sock_try_hold(NULL));
	dstref_sock_close(NULL);
	dstref_sock_set_sndbuf(NULL, 1);
	assert_int_equal(dstref_sock_set_write_space(NULL, NULL), -EINVAL);
	assert_int_equal(dstref_sock_wait_writable(NULL, 0), -EINVAL);
	assert_int_equal(dstref_sock_wait_readable(NULL, 0, 0), -EINVAL);
	assert_false(dstref_sock_charge_w(NULL, 1));
	assert_false(dstref_sock_charge_r(NULL, 1));
	dstref_sock_uncharge_w(NULL, 1);
	dstref_sock_uncharge_w_outside(NULL, 1);
	dstref_sock_uncharge_r(NULL, 1);
	dstref_sock_data_ready(NULL);
	capture_expect(DSTREF_REPORT_NULL_ARGUMENT, 13);
	assert_string_equal(capture_report(0)->call, "dstref_sock_hold");
	assert_string_equal(capture_report(12)->call, "dstref_sock_data_ready");
}

static void c17_sock_debug_misses_the_reader(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);

	(void)state;
	dstref_sock_hold(sk);
	assert_true(dstref_sock_try_hold(sk));
	dstref_sock_put(sk);
	assert_true(dstref_sock_charge_w(sk, 1));
	dstref_sock_uncharge_w(sk, 1);
	capture_expect(DSTREF_REPORT_READER_MISSING, 4);
	assert_string_equal(capture_report(3)->call, "dstref_sock_uncharge_w");
	dstref_sock_put_outside(sk);
	dstref_sock_put_outside(sk);
	assert_true(manual_drain());
	assert_int_equal(ended(), 1);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		scene_test(sock_init_refuses_bad_arguments),
		scene_test(sock_alloc_refuses_bad_arguments),
		scene_test(sock_is_refused_by_a_closing_namespace),
		scene_test(c12_sock_init_defines_every_field),
		scene_test(c12_sock_alloc_clears_the_tail),
		scene_test(sock_alloc_needs_no_functions),
		scene_test(sock_alloc_without_memory_changes_nothing),
		scene_test(c12_freed_socks_are_poisoned),
		scene_test(sock_put_null_does_nothing),
		scene_test(sock_hold_and_put_count),
		scene_test(sock_memory_outlives_its_readers),
		scene_test(sock_hold_of_a_dead_one_is_reported),
		scene_test(c04_sock_put_too_often_is_reported),
		scene_test(c13_sock_count_saturates_and_leaks),
		scene_test(sock_put_outside_from_a_thread_registered_nowhere),
		scene_test(sock_close_touches_nothing_else),
		scene_test(sock_is_writeable_below_sndbuf),
		scene_test(sock_charge_of_an_ended_account_is_refused),
#if DSTREF_DEBUG
		scene_test(sock_debug_names_who_passes_null),
		scene_test(c17_sock_debug_misses_the_reader),
#endif
	};

	return cmocka_run_group_tests_name("unit.sock", tests, NULL, NULL);
}
