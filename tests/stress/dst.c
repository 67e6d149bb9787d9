/* SPDX-License-Identifier: MIT */
/*
 * stress.dst - references to routes from many threads
 *
 * Goal: C1 a last put and a try_hold agree, C10 counts are exact, C14 destroy
 * sees what every holder wrote, C17 the _outside calls need no registered
 * thread on any flavour. Method: routes lie in the test's own memory and count
 * their ends; they are used again only when a barrier says that they are over.
 * Where the sanitizer shall see the order of the counts alone, readers are
 * left without telling it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dstref/dst.h>

#include "capture.h"
#include "stress.h"

#define BATCH 8192 /* a barrier takes ten milliseconds */
#define TOGETHER 16 /* races between two meetings */
#define OUTSIDE_ROUNDS 40

struct route {
	struct dstref_dst dst;
	uint64_t field[2]; /* written by holders, plain */
	uint64_t expect; /* what destroy must find in both */
	uint64_t ended;
};

static struct route routes[BATCH];
static struct dstref_net *net;
static uint64_t total_ended, wrong; /* by the callback thread, or at rest */

static void route_end(struct dstref_dst *dst)
{
	struct route *route =
		(struct route *)((char *)dst - offsetof(struct route, dst));

	route->ended++;
	total_ended++;
	if (route->field[0] != route->expect ||
	    route->field[1] != route->expect)
		wrong++;
}

static const struct dstref_dst_ops route_ops = { .destroy = route_end };

static void begin(const struct rcu_flavor_struct *flavour)
{
	const struct dstref_net_attr attr = { .flavour = flavour };

	total_ended = 0;
	wrong = 0;
	assert_int_equal(dstref_net_create(&net, &attr), 0);
}

static void end(void)
{
	assert_int_equal(dstref_net_destroy(net), 0);
}

/* By one thread, while the others wait: a new life for each. */
static void revive(struct stress_thread *thread, uint64_t expect,
		   uint32_t more_refs)
{
	for (int i = 0; i < BATCH; i++) {
		struct route *route = &routes[i];

		if (dstref_dst_init(&route->dst, net, &route_ops, NULL, 0))
			thread->failed++;
		route->expect = expect;
		route->ended = 0;
		dstref_count_init(&route->dst.count, 1 + more_refs);
	}
}

/* The same: each has ended once. */
static void expect_ends(struct stress_thread *thread)
{
	if (dstref_net_barrier(net, -1))
		thread->failed++;
	for (int i = 0; i < BATCH; i++)
		if (routes[i].ended != 1)
			thread->failed++;
}

/* C1: one lets go of the last reference, the other tries to get one. */
static void put_or_try(struct stress_thread *thread, struct dstref_dst *dst)
{
	reader_lock(net->flavour);
	if (thread->index) {
		dstref_dst_release(dst);
	} else if (dstref_dst_try_hold(dst)) {
		thread->told++;
		dstref_dst_release(dst);
	}
	reader_unlock(net->flavour);
}

static void try_against_last_put(struct stress_thread *thread)
{
	uint64_t batches = stress_rounds(1000000) / BATCH + 1;

	reader_register(net->flavour);
	for (uint64_t batch = 0; batch < batches; batch++) {
		if (!thread->index)
			revive(thread, 0, 0);
		for (int i = 0; i < BATCH; i++) {
			if (i % TOGETHER == 0)
				stress_meet(thread);
			put_or_try(thread, &routes[i].dst);
			thread->ops++;
		}
		stress_meet(thread);
		if (!thread->index)
			expect_ends(thread);
	}
	reader_unregister(net->flavour);
}

static void c01_dst_try_hold_against_the_last_put(void **state)
{
	struct stress run = { .threads = 2 };
	struct stress_thread sums;

	(void)state;
	begin(&urcu_memb_flavor);
	stress_run(&run, try_against_last_put, &sums);
	stress_assert_equal(&run, sums.failed, 0);
	stress_assert_equal(&run, total_ended, sums.ops / 2);
	/* Both outcomes were met, or the race was none. */
	stress_assert(&run, sums.told > 0 && sums.told < total_ended);
	end();
}

/* C10: every way up and every way down, by eight threads. */
static void up_and_down(struct stress_thread *thread)
{
	struct dstref_dst *dst = &routes[0].dst;
	struct dstref_dst_ref ref = { 0 }, copy = { 0 };
	uint64_t rounds = stress_rounds(100000);

	reader_register(net->flavour);
	reader_lock(net->flavour);
	for (uint64_t i = 0; i < rounds; i++) {
		dstref_dst_hold(dst);
		dstref_dst_use(dst, i << DSTREF_NET_TICK_SHIFT);
		dstref_dst_hold_n(dst, 3);
		dstref_dst_hold_n(dst, DSTREF_COUNT_N_MAX + 1); /* refused */
		if (!dstref_dst_try_hold(dst))
			thread->failed++;
		dstref_dst_ref_set_noref(&ref, dst);
		if (!dstref_dst_ref_copy(&copy, &ref) ||
		    !dstref_dst_ref_force(&ref))
			thread->failed++;
		dstref_dst_ref_drop(&ref);
		dstref_dst_ref_drop_outside(&copy);
		dstref_dst_release_n(dst, 2);
		dstref_dst_release_n(dst, UINT32_MAX); /* refused */
		dstref_dst_release_n(dst, 2);
		dstref_dst_release(dst);
		dstref_dst_release_outside(dst);
		thread->ops++;
	}
	reader_unlock(net->flavour);
	reader_unregister(net->flavour);
}

static void c10_dst_counts_are_exact(void **state)
{
	struct stress run = { .threads = 8 };
	struct stress_thread sums;

	(void)state;
	begin(&urcu_memb_flavor);
	assert_int_equal(
		dstref_dst_init(&routes[0].dst, net, &route_ops, NULL, 0), 0);
	dstref_report_set_limit(8);
	stress_run(&run, up_and_down, &sums);
	capture_expect(DSTREF_REPORT_COUNT_RANGE, 2 * sums.ops);
	stress_assert_equal(&run, sums.failed, 0);
	stress_assert_equal(&run, dstref_dst_refs(&routes[0].dst), 1);
	stress_assert_equal(&run, total_ended, 0);
	dstref_dst_release_outside(&routes[0].dst);
	end();
	stress_assert_equal(&run, total_ended, 1);
}

/* C14: each writes its field and lets go; destroy reads both. */
enum way { INSIDE, OUTSIDE, NOW };

static void let_go(struct dstref_dst *dst, enum way way)
{
	if (way == OUTSIDE) {
		dstref_dst_release_outside(dst);
	} else if (way == NOW) {
		dstref_dst_release_now(dst);
	} else {
		net->flavour->read_lock();
		dstref_dst_release(dst);
		net->flavour->read_unlock(); /* the sanitizer is not told */
	}
}

static void write_and_let_go(struct stress_thread *thread)
{
	const enum way way = *(const enum way *)thread->arg;
	uint64_t batches = stress_rounds(200000) / BATCH + 1;

	reader_register(net->flavour);
	for (uint64_t batch = 1; batch <= batches; batch++) {
		if (!thread->index)
			revive(thread, batch, 1);
		stress_meet(thread);
		for (int i = 0; i < BATCH; i++) {
			routes[i].field[thread->index] = batch;
			let_go(&routes[i].dst, way);
		}
		stress_meet(thread);
		if (!thread->index)
			expect_ends(thread);
	}
	reader_unregister(net->flavour);
}

static void c14(enum way way)
{
	struct stress run = { .threads = 2, .arg = &way };
	struct stress_thread sums;

	begin(&urcu_memb_flavor);
	stress_run(&run, write_and_let_go, &sums);
	stress_assert_equal(&run, sums.failed, 0);
	stress_assert_equal(&run, wrong, 0);
	end();
}

static void c14_dst_destroy_sees_what_holders_wrote(void **state)
{
	(void)state;
	c14(INSIDE);
}

static void c14_dst_destroy_sees_what_holders_wrote_outside(void **state)
{
	(void)state;
	c14(OUTSIDE);
}

static void c14_dst_destroy_sees_what_holders_wrote_now(void **state)
{
	(void)state;
	c14(NOW);
}

/* C17: every call that needs no reader, from threads registered nowhere. */
static void live_outside(struct stress_thread *thread)
{
	struct route *own = &routes[2 * thread->index];
	struct dstref_dst *parent = &own[0].dst, *child = &own[1].dst;
	struct dstref_dst_slot slot = { NULL };
	struct dstref_dst_ref ref = { 0 };
	uint64_t rounds = stress_rounds(OUTSIDE_ROUNDS);

	for (uint64_t i = 0; i < rounds; i++) {
		stress_meet(thread);
		if (dstref_dst_init(parent, net, &route_ops, NULL, 0) ||
		    dstref_dst_init(child, net, &route_ops, NULL, 0))
			thread->failed++;
		dstref_count_init(&parent->count, 4);
		dstref_dst_slot_install(&parent->child, child);
		if (!dstref_dst_slot_replace(&slot, NULL, parent) ||
		    dstref_dst_slot_replace(&slot, NULL, parent))
			thread->failed++;
		if (i % 2)
			dstref_dst_dead(parent);
		dstref_dst_slot_clear(&slot);
		ref.word = (uintptr_t)parent;
		dstref_dst_ref_drop_outside(&ref);
		dstref_dst_release_outside(parent);
		stress_meet(thread);
		if (!thread->index && dstref_net_barrier(net, -1))
			thread->failed++;
	}
}

static void c17(const struct rcu_flavor_struct *flavour)
{
	struct stress run = { .threads = 3 };
	struct stress_thread sums;

	begin(flavour);
	stress_run(&run, live_outside, &sums);
	stress_assert_equal(&run, sums.failed, 0);
	stress_assert_equal(&run, total_ended,
			    2 * run.threads * stress_rounds(OUTSIDE_ROUNDS));
	end();
}

static void c17_dst_outside_calls_need_no_registration(void **state)
{
	(void)state;
	c17(&urcu_memb_flavor);
	c17(&urcu_qsbr_flavor);
	c17(&urcu_bp_flavor);
	c17(&urcu_mb_flavor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		capture_test(c01_dst_try_hold_against_the_last_put),
		capture_test(c10_dst_counts_are_exact),
		capture_test(c14_dst_destroy_sees_what_holders_wrote),
		capture_test(c14_dst_destroy_sees_what_holders_wrote_outside),
		capture_test(c14_dst_destroy_sees_what_holders_wrote_now),
		capture_test(c17_dst_outside_calls_need_no_registration),
	};

	return cmocka_run_group_tests_name("dst", tests, NULL, NULL);
}
