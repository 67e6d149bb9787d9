/* SPDX-License-Identifier: MIT */
/*
 * unit.dst - birth, references, dispatch and the last put of a route
 *
 * Goal: init defines every byte or touches none; references are counted as
 * documented; the end comes once, a grace period after the last put, the
 * child's before the parent's. Method: the manual flavour, so that each test
 * can look between the last put, the grace period and the end.
 */
#define _DEFAULT_SOURCE

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "world.h"

#define TICK (UINT64_C(1) << DSTREF_NET_TICK_SHIFT) /* nanoseconds */

/* Memory for a bare dst, whose end only counts. */
static _Alignas(
	DSTREF_LINE_SIZE) unsigned char bytes[2][sizeof(struct dstref_dst) +
						 DSTREF_LINE_SIZE];
static unsigned int bare_ended;

static void bare_end(struct dstref_dst *dst)
{
	(void)dst;
	bare_ended++;
}

static const struct dstref_dst_ops bare_ops = { .destroy = bare_end };

static struct dstref_dst *bare(int i, unsigned char fill)
{
	memset(bytes[i], fill, sizeof(bytes[i]));
	return (struct dstref_dst *)(void *)bytes[i];
}

static void dst_init_sets_what_was_given(void **state)
{
	struct world *world = *state;
	struct route *route = route_new(world, 0);
	struct dstref_dst *dst = &route->dst;

	assert_ptr_equal(dst->ops, &route_ops);
	assert_ptr_equal(dst->net, world->net);
	assert_ptr_equal(dst->dev, world);
	assert_int_equal(dst->flags, 0);
	assert_int_equal(dst->mtu, 0);
	assert_int_equal(dst->header_len, 0);
	assert_int_equal(dst->trailer_len, 0);
	assert_int_equal(dstref_load_relaxed(&dst->obsolete), DSTREF_DST_VALID);
	assert_int_equal(dstref_load_relaxed(&dst->cell), DSTREF_CELL_LOOK);
	assert_int_equal(dstref_dst_refs(dst), 1);
	put(route);
}

/* Two dsts on memory that was filled with 0xA5 and with 0 come out alike. */
static void c12_dst_init_defines_every_byte(void **state)
{
	struct world *world = *state;
	struct dstref_dst *a = bare(0, 0xA5), *b = bare(1, 0);
	const size_t link = offsetof(struct dstref_dst, entry.link);
	const size_t after = link + sizeof(a->entry.link);

	bare_ended = 0;
	assert_int_equal(dstref_dst_init(a, world->net, &bare_ops, NULL, 0), 0);
	assert_int_equal(dstref_dst_init(b, world->net, &bare_ops, NULL, 0), 0);
	assert_memory_equal(a, b, link);
	assert_memory_equal(bytes[0] + after, bytes[1] + after,
			    sizeof(*a) - after);
	/* b stands before a in the list, and a is the last. */
	assert_ptr_equal(b->entry.link.le_next, &a->entry);
	assert_null(a->entry.link.le_next);
	assert_ptr_equal(a->entry.link.le_prev, &b->entry.link.le_next);
	for (size_t i = sizeof(*a); i < sizeof(bytes[0]); i++)
		assert_int_equal(bytes[0][i], 0xA5);
	dstref_dst_release_now(a);
	dstref_dst_release_now(b);
	assert_int_equal(bare_ended, 2);
}

static void refused(struct dstref_dst *dst, struct dstref_net *net,
		    const struct dstref_dst_ops *ops, uint32_t flags, int err)
{
	assert_int_equal(dstref_dst_init(dst, net, ops, NULL, flags), err);
	for (size_t i = 0; i < sizeof(bytes[0]); i++)
		assert_int_equal(bytes[0][i], 0xA5);
}

static void dst_init_refuses_and_touches_nothing(void **state)
{
	static const struct dstref_dst_ops no_destroy = { .name = "none" };
	struct world *world = *state;
	struct dstref_dst *dst = bare(0, 0xA5);
	struct dstref_dst *off = (struct dstref_dst *)(void *)(bytes[0] + 8);
	struct dstref_net_counters stats;

	refused(NULL, world->net, &bare_ops, 0, -EINVAL);
	refused(off, world->net, &bare_ops, 0, -EINVAL);
	refused(dst, NULL, &bare_ops, 0, -EINVAL);
	refused(dst, world->net, NULL, 0, -EINVAL);
	refused(dst, world->net, &no_destroy, 0, -EINVAL);
	refused(dst, world->net, &bare_ops, DSTREF_DST_FLAGS + 1, -EINVAL);
	refused(dst, world->net, &bare_ops, 0x80000000u, -EINVAL);
	refused(dst, world->net, &bare_ops, 0x10000u, -EINVAL);
	dstref_net_stats(world->net, &stats);
	assert_int_equal(stats.dst, 0);
}

static void dst_init_refuses_a_closing_namespace(void **state)
{
	struct world *world = *state;
	struct route *route = route_new(world, 0);

	assert_int_equal(dstref_net_destroy(world->net), -EBUSY);
	capture_expect(DSTREF_REPORT_NET_BUSY, 1);
	capture_expect(DSTREF_REPORT_NET_LEAK, 1);
	refused(bare(0, 0xA5), world->net, &bare_ops, 0, -ESHUTDOWN);
	put(route);
}

static void dst_references_are_counted(void **state)
{
	struct world *world = *state;
	struct dstref_dst *dst = &route_new(world, 0)->dst;

	enter();
	dstref_dst_hold(dst);
	assert_int_equal(dstref_dst_refs(dst), 2);
	dstref_dst_hold_n(dst, 3);
	assert_int_equal(dstref_dst_refs(dst), 5);
	dstref_dst_use(dst, 0);
	assert_int_equal(dstref_dst_refs(dst), 6);
	assert_true(dstref_dst_try_hold(dst));
	assert_int_equal(dstref_dst_refs(dst), 7);
	dstref_dst_use_noref(dst, 0);
	dstref_dst_hold_n(dst, 0);
	dstref_dst_release_n(dst, 0);
	assert_int_equal(dstref_dst_refs(dst), 7);
	dstref_dst_release(dst);
	dstref_dst_release_n(dst, 3);
	dstref_dst_release_outside(dst);
	dstref_dst_release_now(dst);
	assert_int_equal(dstref_dst_refs(dst), 1);
	assert_int_equal(world->ends, 0);
	dstref_dst_release(dst);
	assert_int_equal(dstref_dst_refs(dst), 0);
	leave();
	assert_true(manual_drain());
	assert_int_equal(world->ended[0], 1);
}

static void dst_n_out_of_range_does_nothing(void **state)
{
	struct world *world = *state;
	struct dstref_dst *dst = &route_new(world, 0)->dst;

	enter();
	dstref_dst_hold_n(dst, DSTREF_COUNT_N_MAX);
	assert_int_equal(dstref_dst_refs(dst), DSTREF_COUNT_N_MAX + 1);
	dstref_dst_hold_n(dst, DSTREF_COUNT_N_MAX + 1);
	capture_expect(DSTREF_REPORT_COUNT_RANGE, 1);
	dstref_dst_release_n(dst, DSTREF_COUNT_N_MAX + 1);
	capture_expect(DSTREF_REPORT_COUNT_RANGE, 1);
	dstref_dst_release_n(dst, UINT32_MAX);
	capture_expect(DSTREF_REPORT_COUNT_RANGE, 1);
	assert_ptr_equal(capture_last(DSTREF_REPORT_COUNT_RANGE)->object, dst);
	assert_int_equal(capture_last(DSTREF_REPORT_COUNT_RANGE)->value,
			 UINT32_MAX);
	assert_int_equal(dstref_dst_refs(dst), DSTREF_COUNT_N_MAX + 1);
	dstref_dst_release_n(dst, DSTREF_COUNT_N_MAX);
	dstref_dst_release_n(dst, 1);
	leave();
	assert_true(manual_drain());
	assert_int_equal(world->ended[0], 1);
}

static void dst_release_null_does_nothing(void **state)
{
	(void)state;
	enter();
	dstref_dst_release(NULL);
	dstref_dst_release_n(NULL, 1);
	leave();
	dstref_dst_release_outside(NULL);
	dstref_dst_release_now(NULL);
	assert_int_equal(manual_pending(), 0);
}

static void dst_end_waits_for_a_grace_period(void **state)
{
	struct world *world = *state;
	struct route *route = route_new(world, 0);
	struct dstref_net_counters stats;

	enter();
	dstref_dst_release(&route->dst);
	dstref_net_stats(world->net, &stats);
	assert_int_equal(stats.dst, 0);
	assert_int_equal(stats.callbacks, 1);
	/* This reader may still look at it, and finds it dead. */
	assert_false(manual_advance());
	assert_int_equal(world->ends, 0);
	assert_false(dstref_dst_try_hold(&route->dst));
	assert_int_equal(dstref_dst_refs(&route->dst), 0);
	leave();
	assert_int_equal(world->ends, 0);
	assert_true(manual_advance());
	assert_int_equal(world->ended[0], 1);
	dstref_net_stats(world->net, &stats);
	assert_int_equal(stats.callbacks, 0);
	assert_int_equal(manual_pending(), 0);
}

static void dst_end_comes_once_from_every_form(void **state)
{
	struct world *world = *state;
	struct route *route[4];

	for (unsigned int i = 0; i < 4; i++)
		route[i] = route_new(world, i);
	enter();
	dstref_dst_hold_n(&route[0]->dst, 9);
	dstref_dst_release_n(&route[0]->dst, 10);
	dstref_dst_release(&route[1]->dst);
	leave();
	dstref_dst_release_outside(&route[2]->dst);
	assert_int_equal(world->ends, 0);
	dstref_dst_release_now(&route[3]->dst);
	assert_int_equal(world->ends, 1);
	assert_int_equal(world->ended[3], 1);
	assert_true(manual_drain());
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(world->ended[i], 1);
}

static void dst_release_now_ends_before_it_returns(void **state)
{
	struct world *world = *state;
	struct route *route = route_new(world, 0);
	struct route *child = route_new(world, 1);
	struct dstref_net_counters stats;

	dstref_dst_slot_install(&route->dst.child, &child->dst);
	enter();
	dstref_dst_hold(&route->dst);
	leave();
	dstref_dst_release_now(&route->dst);
	assert_int_equal(world->ends, 0);
	dstref_dst_release_now(&route->dst);
	assert_int_equal(world->ended[0], 1);
	/* The child may have been found elsewhere: its end waits. */
	assert_int_equal(world->ended[1], 0);
	dstref_net_stats(world->net, &stats);
	assert_int_equal(stats.dst, 0);
	assert_int_equal(stats.callbacks, 1);
	assert_true(manual_drain());
	assert_int_equal(world->ended[1], 1);
}

static void *let_go(void *dst)
{
	dstref_dst_release_outside(dst);
	return NULL;
}

/* The thread is registered nowhere; the manual flavour would tell. */
static void dst_release_outside_needs_no_registration(void **state)
{
	struct world *world = *state;
	struct route *route = route_new(world, 0);
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, let_go, &route->dst), 0);
	pthread_join(thread, NULL);
	assert_int_equal(world->ended[0], 0);
	assert_true(manual_advance());
	assert_int_equal(world->ended[0], 1);
}

/* The tick is stored once: the second use of it would fault on this page. */
static void dst_use_stores_only_a_new_tick(void **state)
{
	struct world *world = *state;
	const size_t size = 4096;
	struct dstref_dst *dst = mmap(NULL, size, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(dst, MAP_FAILED);
	assert_int_equal(dstref_dst_init(dst, world->net, &bare_ops, NULL, 0),
			 0);
	enter();
	dstref_dst_use_noref(dst, 5 * TICK);
	assert_int_equal(dstref_load_relaxed(&dst->lastuse), 5);
	assert_int_equal(mprotect(dst, size, PROT_READ), 0);
	dstref_dst_use_noref(dst, 5 * TICK);
	dstref_dst_use_noref(dst, 6 * TICK - 1);
	assert_int_equal(mprotect(dst, size, PROT_READ | PROT_WRITE), 0);
	dstref_dst_use_noref(dst, 6 * TICK);
	assert_int_equal(dstref_load_relaxed(&dst->lastuse), 6);
	dstref_dst_use(dst, 8 * TICK);
	assert_int_equal(dstref_load_relaxed(&dst->lastuse), 8);
	assert_int_equal(dstref_dst_refs(dst), 2);
	leave();
	dstref_dst_release_now(dst);
	dstref_dst_release_now(dst);
	munmap(dst, size);
}

static void dst_child_is_taken_at_once_and_let_go_before_destroy(void **state)
{
	struct world *world = *state;
	struct route *parent = route_new(world, 0);
	struct route *child = route_new(world, 1);

	enter();
	dstref_dst_hold(&child->dst);
	dstref_dst_slot_install(&parent->dst.child, &child->dst);
	parent->watch = &child->dst;
	dstref_dst_release(&parent->dst);
	assert_null(dstref_dst_slot_borrow(&parent->dst.child));
	assert_int_equal(dstref_dst_refs(&child->dst), 2);
	leave();
	assert_true(manual_advance());
	assert_int_equal(world->ended[0], 1);
	assert_int_equal(world->watched, 1);
	assert_int_equal(dstref_dst_refs(&child->dst), 1);
	put(child);
}

/* Who followed the child before the last put may hold it until he leaves. */
static void dst_child_outlives_a_borrower(void **state)
{
	struct world *world = *state;
	struct route *parent = route_new(world, 0);
	struct route *child = route_new(world, 1);
	struct dstref_dst *borrowed;

	dstref_dst_slot_install(&parent->dst.child, &child->dst);
	enter();
	borrowed = dstref_dst_slot_borrow(&parent->dst.child);
	dstref_dst_release(&parent->dst);
	assert_false(manual_advance());
	assert_true(dstref_dst_try_hold(borrowed));
	leave();
	assert_true(manual_drain());
	assert_int_equal(world->ended[0], 1);
	assert_int_equal(world->ended[1], 0);
	assert_int_equal(dstref_dst_refs(borrowed), 1);
	put(child);
	assert_true(manual_drain());
	assert_int_equal(world->ended[1], 1);
}

static void dst_child_that_comes_after_the_last_put_is_let_go(void **state)
{
	struct world *world = *state;
	struct route *parent = route_new(world, 0);
	struct route *first = route_new(world, 1);
	struct route *late = route_new(world, 2);

	dstref_dst_slot_install(&parent->dst.child, &first->dst);
	enter();
	dstref_dst_release(&parent->dst);
	dstref_dst_slot_install(&parent->dst.child, &late->dst);
	leave();
	assert_true(manual_drain());
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(world->ended[i], 1);
	assert_int_equal(world->place[0], 1);
}

static int in_pkt, out_pkt;

static int receive(struct dstref_dst *dst, void *pkt)
{
	assert_non_null(dst);
	assert_ptr_equal(pkt, &in_pkt);
	return 7;
}

static int send(struct dstref_dst *dst, void *pkt)
{
	assert_non_null(dst);
	assert_ptr_equal(pkt, &out_pkt);
	return -EAGAIN;
}

static void dst_input_and_output_are_called(void **state)
{
	struct world *world = *state;
	struct route *route = route_new(world, 0);
	struct dstref_dst *dst = &route->dst;

	assert_int_equal(dstref_dst_input(dst, &in_pkt), -ENETDOWN);
	assert_int_equal(dstref_dst_output(dst, &out_pkt), -ENETDOWN);
	assert_int_equal(dstref_dst_discard(dst, NULL), -ENETDOWN);
	assert_int_equal(dstref_dst_discard(NULL, NULL), -ENETDOWN);
	dstref_store_relaxed(&dst->input, receive);
	dstref_store_relaxed(&dst->output, send);
	assert_int_equal(dstref_dst_input(dst, &in_pkt), 7);
	assert_int_equal(dstref_dst_output(dst, &out_pkt), -EAGAIN);
	put(route);
}

static unsigned int checks;

static bool cookie_is_seven(struct dstref_dst *dst, uint32_t cookie)
{
	assert_non_null(dst);
	checks++;
	return cookie == 7;
}

static void dst_check_asks_only_about_what_is_obsolete(void **state)
{
	static const struct dstref_dst_ops asked = {
		.destroy = bare_end,
		.check = cookie_is_seven,
	};
	struct world *world = *state;
	struct dstref_dst *dst = bare(0, 0xA5);
	struct route *route = route_new(world, 0);

	checks = 0;
	assert_int_equal(dstref_dst_init(dst, world->net, &asked, NULL, 0), 0);
	assert_true(dstref_dst_check(dst, 0));
	assert_int_equal(checks, 0);
	for (int i = 1; i <= 2; i++) {
		dstref_store_relaxed(&dst->obsolete, i == 1 ? DSTREF_DST_CHECK
							    : DSTREF_DST_DEAD);
		assert_true(dstref_dst_check(dst, 7));
		assert_false(dstref_dst_check(dst, 8));
		assert_int_equal(checks, 2 * i);
	}
	dstref_dst_release_now(dst);
	assert_true(dstref_dst_check(&route->dst, 7));
	dstref_store_relaxed(&route->dst.obsolete, DSTREF_DST_CHECK);
	assert_false(dstref_dst_check(&route->dst, 7));
	put(route);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(dst_init_sets_what_was_given),
		world_test(c12_dst_init_defines_every_byte),
		world_test(dst_init_refuses_and_touches_nothing),
		world_test(dst_init_refuses_a_closing_namespace),
		world_test(dst_references_are_counted),
		world_test(dst_n_out_of_range_does_nothing),
		world_test(dst_release_null_does_nothing),
		world_test(dst_end_waits_for_a_grace_period),
		world_test(dst_end_comes_once_from_every_form),
		world_test(dst_release_now_ends_before_it_returns),
		world_test(dst_release_outside_needs_no_registration),
		world_test(dst_use_stores_only_a_new_tick),
		world_test(
			dst_child_is_taken_at_once_and_let_go_before_destroy),
		world_test(dst_child_outlives_a_borrower),
		world_test(dst_child_that_comes_after_the_last_put_is_let_go),
		world_test(dst_input_and_output_are_called),
		world_test(dst_check_asks_only_about_what_is_obsolete),
	};

	return cmocka_run_group_tests_name("dst", tests, NULL, NULL);
}
