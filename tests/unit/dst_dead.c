/* SPDX-License-Identifier: MIT */
/*
 * unit.dst_dead - a route that must not be used any more
 *
 * Goal: dead makes a dst obsolete and discarding, takes the child at once and
 * lets go of it a grace period later, keeps the references, and does it once.
 * Method: the manual flavour; the child's references are looked at before and
 * after each grace period, and a reader stands in the way of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "world.h"

enum { PARENT, CHILD, LATE };

static int deliver(struct dstref_dst *dst, void *pkt)
{
	(void)dst;
	(void)pkt;
	return 0;
}

/* A parent with a child; both have a reference more, the test's. */
struct family {
	struct route *parent, *child;
};

static struct family family_new(struct world *world)
{
	struct family family = {
		route_new(world, PARENT),
		route_new(world, CHILD),
	};

	dstref_store_relaxed(&family.parent->dst.input, deliver);
	dstref_store_relaxed(&family.parent->dst.output, deliver);
	enter();
	dstref_dst_hold(&family.child->dst);
	leave();
	dstref_dst_slot_install(&family.parent->dst.child, &family.child->dst);
	return family;
}

static void dst_dead_is_obsolete_and_discards(void **state)
{
	struct family family = family_new(*state);
	struct dstref_dst *dst = &family.parent->dst;

	assert_int_equal(dstref_dst_input(dst, NULL), 0);
	assert_int_equal(dstref_dst_output(dst, NULL), 0);
	dstref_dst_dead(dst);
	assert_int_equal(dstref_load_relaxed(&dst->obsolete), DSTREF_DST_DEAD);
	assert_int_equal(dstref_dst_input(dst, NULL), -ENETDOWN);
	assert_int_equal(dstref_dst_output(dst, NULL), -ENETDOWN);
	assert_false(dstref_dst_check(dst, 0));
	enter();
	assert_null(dstref_dst_slot_borrow(&dst->child));
	leave();
	put(family.parent);
	put(family.child);
}

static void dst_dead_keeps_the_references(void **state)
{
	struct world *world = *state;
	struct family family = family_new(world);
	struct dstref_dst *dst = &family.parent->dst;

	enter();
	dstref_dst_hold_n(dst, 4);
	leave();
	dstref_dst_dead(dst);
	assert_true(manual_drain());
	assert_int_equal(dstref_dst_refs(dst), 5);
	assert_int_equal(world->ends, 0);
	enter();
	dstref_dst_release_n(dst, 5);
	leave();
	assert_true(manual_drain());
	assert_int_equal(world->ended[PARENT], 1);
	put(family.child);
}

static void dst_dead_lets_go_of_the_child_after_a_grace_period(void **state)
{
	struct world *world = *state;
	struct family family = family_new(world);

	dstref_dst_dead(&family.parent->dst);
	assert_int_equal(dstref_dst_refs(&family.child->dst), 2);
	assert_true(manual_advance());
	assert_int_equal(dstref_dst_refs(&family.child->dst), 1);
	put(family.child);
	assert_true(manual_drain());
	assert_int_equal(world->ended[CHILD], 1);
	assert_int_equal(world->ended[PARENT], 0);
	put(family.parent);
}

/* Who has found the child may hold it until he leaves, and keep it then. */
static void dst_dead_leaves_the_child_to_a_borrower(void **state)
{
	struct world *world = *state;
	struct family family = family_new(world);
	struct dstref_dst *borrowed;

	put(family.child); /* only the parent's is left */
	enter();
	borrowed = dstref_dst_slot_borrow(&family.parent->dst.child);
	dstref_dst_dead(&family.parent->dst);
	dstref_dst_release(&family.parent->dst);
	assert_false(manual_advance());
	assert_true(dstref_dst_try_hold(borrowed));
	leave();
	assert_true(manual_drain());
	assert_int_equal(world->ended[PARENT], 1);
	assert_int_equal(world->ended[CHILD], 0);
	put(family.child);
	assert_true(manual_drain());
	assert_int_equal(world->ended[CHILD], 1);
}

/* The last put right after dead: the parent stays until the child is let go. */
static void dst_dead_keeps_the_parent_until_the_child_is_let_go(void **state)
{
	struct world *world = *state;
	struct family family = family_new(world);

	family.parent->watch = &family.child->dst;
	dstref_dst_dead(&family.parent->dst);
	put(family.parent);
	assert_int_equal(world->ends, 0);
	assert_int_equal(dstref_dst_refs(&family.child->dst), 2);
	assert_true(manual_advance());
	assert_int_equal(dstref_dst_refs(&family.child->dst), 1);
	assert_true(manual_drain());
	assert_int_equal(world->ended[PARENT], 1);
	assert_int_equal(world->watched, 1);
	put(family.child);
}

static void dst_dead_twice_is_once(void **state)
{
	struct world *world = *state;
	struct family family = family_new(world);
	struct dstref_dst *dst = &family.parent->dst;
	unsigned int pending;

	dstref_dst_dead(dst);
	pending = manual_pending();
	dstref_dst_dead(dst);
	assert_int_equal(manual_pending(), pending);
	assert_true(manual_advance());
	dstref_dst_dead(dst);
	assert_int_equal(manual_pending(), 0);
	assert_int_equal(dstref_dst_refs(dst), 1);
	assert_int_equal(dstref_dst_refs(&family.child->dst), 1);
	put(family.parent);
	put(family.child);
	assert_true(manual_drain());
	assert_int_equal(world->ended[PARENT], 1);
	assert_int_equal(world->ended[CHILD], 1);
}

static void dst_dead_without_child_only_discards(void **state)
{
	struct world *world = *state;
	struct route *route = route_new(world, PARENT);

	dstref_dst_dead(&route->dst);
	assert_int_equal(manual_pending(), 0);
	assert_int_equal(dstref_dst_refs(&route->dst), 1);
	assert_int_equal(dstref_dst_output(&route->dst, NULL), -ENETDOWN);
	put(route);
	assert_true(manual_drain());
	assert_int_equal(world->ended[PARENT], 1);
}

/* A route that is asked about each time can die too. */
static void dst_dead_ends_the_asking(void **state)
{
	struct route *route = route_new(*state, PARENT);

	dstref_store_relaxed(&route->dst.obsolete, DSTREF_DST_CHECK);
	dstref_dst_dead(&route->dst);
	assert_int_equal(dstref_load_relaxed(&route->dst.obsolete),
			 DSTREF_DST_DEAD);
	put(route);
}

static void dst_dead_lets_go_of_a_child_that_comes_later(void **state)
{
	struct world *world = *state;
	struct family family = family_new(world);
	struct route *late = route_new(world, LATE);

	dstref_dst_dead(&family.parent->dst);
	dstref_dst_slot_install(&family.parent->dst.child, &late->dst);
	assert_true(manual_drain());
	assert_int_equal(dstref_dst_refs(&late->dst), 1);
	put(family.parent);
	put(family.child);
	assert_true(manual_drain());
	for (unsigned int i = PARENT; i <= LATE; i++)
		assert_int_equal(world->ended[i], 1);
}

/* dead inside a reader, by one who found the route in a slot. */
static void dst_dead_inside_a_reader(void **state)
{
	struct world *world = *state;
	struct family family = family_new(world);
	struct dstref_dst_slot slot = { NULL };
	struct dstref_dst *found;

	put(family.child);
	dstref_dst_slot_install(&slot, &family.parent->dst);
	enter();
	found = dstref_dst_slot_hold(&slot);
	assert_ptr_equal(found, &family.parent->dst);
	dstref_dst_dead(found);
	dstref_dst_slot_clear(&slot);
	dstref_dst_release(found);
	leave();
	assert_true(manual_drain());
	assert_int_equal(world->ended[PARENT], 1);
	assert_int_equal(world->ended[CHILD], 1);
}

/* A chain of children ends link by link, none before its own grace period. */
static void dst_chain_ends_link_by_link(void **state)
{
	struct world *world = *state;
	struct route *route[4];

	for (unsigned int i = 0; i < 4; i++)
		route[i] = route_new(world, i);
	for (unsigned int i = 0; i < 3; i++)
		dstref_dst_slot_install(&route[i]->dst.child,
					&route[i + 1]->dst);
	put(route[0]);
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(world->ends, i);
		assert_true(manual_advance());
		assert_int_equal(world->place[i], i + 1);
	}
	assert_int_equal(manual_pending(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(dst_dead_is_obsolete_and_discards),
		world_test(dst_dead_keeps_the_references),
		world_test(dst_dead_lets_go_of_the_child_after_a_grace_period),
		world_test(dst_dead_leaves_the_child_to_a_borrower),
		world_test(dst_dead_keeps_the_parent_until_the_child_is_let_go),
		world_test(dst_dead_twice_is_once),
		world_test(dst_dead_without_child_only_discards),
		world_test(dst_dead_ends_the_asking),
		world_test(dst_dead_lets_go_of_a_child_that_comes_later),
		world_test(dst_dead_inside_a_reader),
		world_test(dst_chain_ends_link_by_link),
	};

	return cmocka_run_group_tests_name("dst_dead", tests, NULL, NULL);
}
