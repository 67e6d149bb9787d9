/* SPDX-License-Identifier: MIT */
/*
 * unit.promote - a route that is split, and is merged again
 *
 * Goal: a route is split when threads with cells contend for it, or when its
 * owner says so, and by a tick only; whatever mode it is in, its references
 * are exact, and it ends once, when the last is gone. Method: the manual
 * flavour, and one other thread that makes a step at a time. Each of the two
 * takes a turn as owner.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "puppet.h"
#include "world.h"

static struct world *world;
static struct dstref_dst *dst; /* the puppet's */
static struct puppet puppet;

static void hold_release(void)
{
	enter();
	dstref_dst_hold(dst);
	dstref_dst_release(dst);
	leave();
}

static void hold(void)
{
	enter();
	dstref_dst_hold(dst);
	leave();
}

static void release(void)
{
	enter();
	dstref_dst_release(dst);
	leave();
}

static void arrive(void)
{
	reader_register(&manual_flavor);
	if (dstref_net_attach(world->net))
		abort();
}

static void depart(void)
{
	dstref_net_detach(world->net);
	reader_unregister(&manual_flavor);
}

static int setup(void **state)
{
	if (world_setup(state))
		return -1;
	world = *state;
	puppet_start(&puppet);
	puppet_do(&puppet, arrive);
	return dstref_net_attach(world->net);
}

static int teardown(void **state)
{
	puppet_do(&puppet, depart);
	puppet_end(&puppet);
	dstref_net_detach(world->net);
	return world_teardown(state);
}

static struct dstref_net_counters stats(void)
{
	struct dstref_net_counters stats;

	dstref_net_stats(world->net, &stats);
	return stats;
}

static void tick(uint32_t budget)
{
	static uint64_t now;

	assert_true(dstref_net_tick(world->net, now += 1000000, budget) >= 0);
}

static bool is_split(void)
{
	return dstref_load_relaxed(&dst->cell) & DSTREF_CELL_NUMBER;
}

/* A route that is split from the first tick on. */
static struct route *split_route(unsigned int number)
{
	struct route *route =
		route_new_flags(world, number, DSTREF_DST_SPLIT_ALWAYS);

	dst = &route->dst;
	tick(10);
	assert_true(is_split());
	return route;
}

static void contend(unsigned int turns)
{
	for (unsigned int i = 0; i < turns; i++) {
		hold_release();
		puppet_do(&puppet, hold_release);
	}
}

static void contention_is_split_by_the_next_tick(void **state)
{
	struct route *route = route_new(world, 0);

	(void)state;
	dst = &route->dst;
	contend(DSTREF_DST_HOT / 2 + 1);
	assert_int_equal(stats().requests, 1);
	assert_false(is_split());
	tick(0);
	assert_false(is_split()); /* no budget */
	tick(1);
	assert_true(is_split());
	assert_int_equal(stats().promoted, 1);
	contend(10);
	assert_int_equal(dstref_dst_refs(dst), 1);
	put(route);
	assert_int_equal(world->ended[0], 0); /* a merge has to tell */
	tick(1); /* not quiet: the put moved a cell */
	tick(1);
	assert_true(manual_drain());
	assert_int_equal(world->ended[0], 1);
	assert_int_equal(stats().cells_used, 0);
}

static void now_and_then_is_not_contention(void **state)
{
	struct route *route = route_new(world, 0);

	(void)state;
	dst = &route->dst;
	for (unsigned int i = 0; i < 10 * DSTREF_DST_HOT; i++) {
		contend(DSTREF_DST_HOT / 8); /* a quarter of what it takes */
		tick(10);
	}
	assert_int_equal(stats().requests, 0);
	put(route);
}

static void one_thread_alone_is_no_contention(void **state)
{
	struct route *route = route_new(world, 0);

	(void)state;
	dst = &route->dst;
	for (unsigned int i = 0; i < 10 * DSTREF_DST_HOT; i++)
		hold_release();
	assert_int_equal(stats().requests, 0);
	put(route);
}

static void what_may_not_be_split_is_not(void **state)
{
	struct route *route = route_new_flags(world, 0, DSTREF_DST_SPLIT_NEVER);
	const uint32_t both = DSTREF_DST_SPLIT_NEVER | DSTREF_DST_SPLIT_ALWAYS;
	static _Alignas(256) struct dstref_dst refused;

	(void)state;
	dst = &route->dst;
	contend(10 * DSTREF_DST_HOT);
	tick(10);
	assert_int_equal(stats().requests, 0);
	assert_int_equal(
		dstref_dst_init(&refused, world->net, &route_ops, NULL, both),
		-EINVAL);
	put(route);
}

static void quiet_is_merged_and_later_each_time(void **state)
{
	struct route *route = split_route(0);

	(void)state;
	for (unsigned int ticks = 1; ticks <= 8; ticks *= 2) {
		for (unsigned int i = 1; i < ticks; i++) {
			tick(10);
			assert_true(is_split());
		}
		tick(10);
		assert_false(is_split());
		assert_true(manual_drain());
		assert_int_equal(dstref_dst_refs(dst), 1);
		contend(DSTREF_DST_HOT);
		tick(10);
		assert_true(is_split());
	}
	dstref_dst_release_outside(&route->dst);
	dst = NULL;
}

static void references_go_from_thread_to_thread(void **state)
{
	struct route *route = split_route(0);

	(void)state;
	for (int i = 0; i < 5; i++)
		hold();
	assert_int_equal(dstref_dst_refs(dst), 6);
	for (int i = 0; i < 3; i++)
		puppet_do(&puppet, release);
	dstref_dst_hold_outside(dst);
	assert_int_equal(dstref_dst_refs(dst), 4);
	for (int i = 0; i < 3; i++)
		dstref_dst_release_outside(dst);
	assert_int_equal(dstref_dst_refs(dst), 1);
	put(route);
}

static void a_thread_without_cells_takes_part(void **state)
{
	struct route *route = split_route(0);

	(void)state;
	dstref_net_detach(world->net);
	hold();
	puppet_do(&puppet, release);
	assert_int_equal(dstref_dst_refs(dst), 1);
	hold_release();
	assert_int_equal(dstref_net_attach(world->net), 0);
	put(route);
}

static void what_a_slot_shows_no_more_ends(void **state)
{
	struct dstref_dst_slot slot = DSTREF_DST_SLOT_INIT;
	struct route *route = split_route(0);

	(void)state;
	dstref_dst_slot_install(&slot, &route->dst);
	hold_release();
	dstref_dst_slot_clear(&slot);
	assert_false(is_split());
	assert_int_equal(world->ended[0], 0);
	assert_true(manual_drain());
	assert_int_equal(world->ended[0], 1);
}

static void c15_what_is_dead_is_never_split_again(void **state)
{
	struct route *route = split_route(0);

	(void)state;
	hold();
	dstref_dst_dead(dst);
	assert_false(is_split());
	assert_int_equal(dstref_dst_refs(dst), 2);
	assert_true(manual_drain());
	contend(2 * DSTREF_DST_HOT);
	tick(10);
	assert_false(is_split());
	assert_int_equal(stats().requests, 1); /* that of its birth */
	release();
	enter();
	dstref_dst_release(dst);
	assert_false(dstref_dst_try_hold(dst));
	leave();
	assert_true(manual_drain());
	assert_int_equal(world->ended[0], 1);
	(void)route;
}

static void a_dead_route_gives_its_request_back(void **state)
{
	struct route *route =
		route_new_flags(world, 0, DSTREF_DST_SPLIT_ALWAYS);

	(void)state;
	dst = &route->dst;
	assert_int_equal(stats().cells_used, 1);
	put(route);
	assert_true(manual_drain());
	assert_int_equal(world->ended[0], 1);
	assert_int_equal(stats().cells_used, 0);
	tick(10);
	assert_int_equal(stats().promotions, 0);
}

static void c13_too_many_references_are_not_split(void **state)
{
	struct route *route =
		route_new_flags(world, 0, DSTREF_DST_SPLIT_ALWAYS);

	(void)state;
	dst = &route->dst;
	dstref_store_relaxed(&dst->count.word, DSTREF_SPLIT_REFS);
	tick(10);
	assert_false(is_split());
	assert_int_equal(stats().cells_used, 0);
	dstref_store_relaxed(&dst->count.word, 0u);
	put(route);
}

static void c13_a_split_count_saturates_too(void **state)
{
	struct route *route = split_route(0);

	(void)state;
	dstref_store_relaxed(&dst->count.word, DSTREF_COUNT_MAX - 1);
	dstref_dst_hold_outside(dst);
	capture_expect(DSTREF_REPORT_COUNT_SATURATED, 1);
	assert_int_equal(dstref_dst_refs(dst), DSTREF_COUNT_MAX);
	hold_release();
	dstref_dst_release_outside(dst);
	tick(10);
	tick(10);
	assert_true(manual_drain());
	assert_int_equal(dstref_dst_refs(dst), DSTREF_COUNT_MAX);
	assert_int_equal(world->ended[0], 0);
	/* Undone, for the namespace to end. */
	dstref_store_relaxed(&dst->count.word, 0u);
	put(route);
}

static void a_namespace_with_threads_is_busy(void **state)
{
	const struct dstref_net_attr attr = { .flavour = &manual_flavor,
					      .max_hot = 1 };
	struct dstref_net *net;

	(void)state;
	assert_int_equal(dstref_net_create(&net, &attr), 0);
	assert_int_equal(dstref_net_attach(net), 0);
	assert_int_equal(dstref_net_attach(net), 0);
	assert_int_equal(dstref_net_destroy(net), -EBUSY);
	capture_expect(DSTREF_REPORT_NET_BUSY, 1);
	assert_int_equal(capture_last(DSTREF_REPORT_NET_BUSY)->value, 1);
	dstref_net_detach(net);
	assert_int_equal(dstref_net_destroy(net), 0);
}

static void a_split_route_does_not_keep_its_namespace(void **state)
{
	struct route *route = split_route(0);

	(void)state;
	put(route); /* nobody ticks any more */
	assert_int_equal(dstref_net_barrier(world->net, -1), 0);
	assert_int_equal(world->ended[0], 1);
}

static unsigned int gone;

static void on_end(struct dstref_dst *route)
{
	(void)route;
	gone++;
}

static void a_namespace_without_cells_counts_all_the_same(void **state)
{
	static const struct dstref_dst_ops ops = { .destroy = on_end };
	const struct dstref_net_attr attr = { .flavour = &manual_flavor,
					      .max_hot = 1 };
	struct dstref_net *nets[DSTREF_SPLIT_DOMAINS];
	static _Alignas(256) struct dstref_dst last;
	struct dstref_net_counters counters;
	int n;

	(void)state;
	for (n = 0; n < DSTREF_SPLIT_DOMAINS; n++)
		assert_int_equal(dstref_net_create(&nets[n], &attr), 0);
	dstref_net_stats(nets[n - 1], &counters); /* the world has one more */
	assert_int_equal(counters.cells, 0);
	assert_int_equal(dstref_net_attach(nets[n - 1]), -ENOSPC);
	assert_int_equal(dstref_dst_init(&last, nets[n - 1], &ops, NULL, 0), 0);
	dst = &last;
	contend(DSTREF_DST_HOT);
	assert_int_equal(dstref_load_relaxed(&last.cell), 0);
	assert_int_equal(dstref_dst_refs(&last), 1);
	dstref_dst_dead(&last);
	dstref_dst_release_outside(&last);
	assert_true(manual_drain());
	assert_int_equal(gone, 1);
	while (n--)
		assert_int_equal(dstref_net_destroy(nets[n]), 0);
}

#define test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(contention_is_split_by_the_next_tick),
		test(now_and_then_is_not_contention),
		test(one_thread_alone_is_no_contention),
		test(what_may_not_be_split_is_not),
		test(quiet_is_merged_and_later_each_time),
		test(references_go_from_thread_to_thread),
		test(a_thread_without_cells_takes_part),
		test(what_a_slot_shows_no_more_ends),
		test(c15_what_is_dead_is_never_split_again),
		test(a_dead_route_gives_its_request_back),
		test(c13_too_many_references_are_not_split),
		test(c13_a_split_count_saturates_too),
		test(a_namespace_with_threads_is_busy),
		test(a_split_route_does_not_keep_its_namespace),
		test(a_namespace_without_cells_counts_all_the_same),
	};

	return cmocka_run_group_tests_name("unit.promote", tests, NULL, NULL);
}
