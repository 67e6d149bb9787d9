/* SPDX-License-Identifier: MIT */
/*
 * dst_last - the last release of a route against those who still find it
 *
 * Goal: destroy is called once, it frees, and no reader touches freed memory:
 * neither one that borrows the route or its child, nor one that takes a
 * reference away from its reader. Method: a real namespace with a route in a
 * slot or with its holders; all let go in each of the ways there are. The
 * namespace must end at the end, so the gate's numbers came out even.
 */
#include "scene.h"

static struct dstref_dst_slot slot;
static struct dstref_dst *route, *child;

/* A route that the slot and the threads have @holders references to. */
static void start(unsigned int holders, bool published)
{
	scene_open();
	route = scene_route();
	for (unsigned int i = published ? 0 : 1; i < holders; i++)
		dstref_dst_hold_outside(route);
	if (published)
		dstref_dst_slot_install(&slot, route);
}

static void start_held(void)
{
	start(2, false);
}

static void start_held_3(void)
{
	start(3, false);
}

static void start_slot(void)
{
	start(0, true);
}

static void start_slot_held(void)
{
	start(1, true);
}

static void start_child(void)
{
	scene_open();
	route = scene_route();
	child = scene_route();
	dstref_dst_slot_install(&route->child, child);
	dstref_dst_slot_install(&slot, route);
}

/* Holders. */

static void release(void)
{
	scene_mark(route);
	explore_read_lock();
	dstref_dst_release(route);
	explore_read_unlock();
}

static void release_outside(void)
{
	scene_mark(route);
	dstref_dst_release_outside(route);
}

static void release_now(void)
{
	scene_mark(route);
	dstref_dst_release_now(route);
}

static void clear(void)
{
	dstref_dst_slot_clear(&slot);
}

/* Readers. */

static void look_up(void)
{
	explore_read_lock();
	struct dstref_dst *found = dstref_dst_slot_borrow(&slot);

	if (found && dstref_dst_try_hold(found)) {
		scene_mark(found);
		dstref_dst_release(found);
	}
	explore_read_unlock();
}

static void take_away(void)
{
	explore_read_lock();
	struct dstref_dst *found = dstref_dst_slot_borrow(&slot);
	bool held = found && dstref_dst_try_hold(found);

	explore_read_unlock();
	if (!held)
		return;
	scene_mark(found);
	dstref_dst_release_outside(found);
}

/* Neither is held: both are there for as long as the reader. */
static void borrow_child(void)
{
	explore_read_lock();
	struct dstref_dst *found = dstref_dst_slot_borrow(&slot);
	struct dstref_dst *next = found ? dstref_dst_slot_borrow(&found->child)
					: NULL;

	explore_assert(!next || next == child);
	explore_assert(!next || dstref_dst_check(next, 0));
	explore_assert(!found || dstref_dst_check(found, 0));
	explore_read_unlock();
}

/* The parent's reference to the child lasts as long as this reader. */
static void take_child(void)
{
	explore_read_lock();
	struct dstref_dst *found = dstref_dst_slot_borrow(&slot);
	struct dstref_dst *next = found ? dstref_dst_slot_borrow(&found->child)
					: NULL;

	if (next)
		dstref_dst_hold(next);
	explore_read_unlock();
	if (!next)
		return;
	scene_mark(next);
	dstref_dst_release_outside(next);
}

static void one_ended(void)
{
	scene_close(1);
}

static void two_ended(void)
{
	scene_close(2);
}

const struct explore_case explore_cases[] = {
	{ .name = "release-release_outside",
	  .setup = start_held,
	  .thread = { release, release_outside },
	  .check = one_ended },
	{ .name = "release-release_now",
	  .setup = start_held,
	  .thread = { release, release_now },
	  .check = one_ended },
	{ .name = "clear-look_up",
	  .setup = start_slot,
	  .thread = { clear, look_up },
	  .check = one_ended },
	{ .name = "clear-take_away",
	  .setup = start_slot,
	  .thread = { clear, take_away },
	  .check = one_ended },
	{ .name = "clear-borrow_child",
	  .setup = start_child,
	  .thread = { clear, borrow_child },
	  .check = two_ended },
	{ .name = "clear-take_child",
	  .setup = start_child,
	  .thread = { clear, take_child },
	  .check = two_ended },
	{ .name = "release-release_outside-release_now",
	  .setup = start_held_3,
	  .thread = { release, release_outside, release_now },
	  .check = one_ended },
	{ .name = "clear-release-take_away",
	  .setup = start_slot_held,
	  .thread = { clear, release, take_away },
	  .check = one_ended },
	{ .name = "clear-release_outside-look_up",
	  .setup = start_slot_held,
	  .thread = { clear, release_outside, look_up },
	  .check = one_ended },
	{ .name = "clear-look_up-take_away",
	  .setup = start_slot,
	  .thread = { clear, look_up, take_away },
	  .check = one_ended },
	{ .name = "clear-borrow_child-take_child",
	  .setup = start_child,
	  .thread = { clear, borrow_child, take_child },
	  .check = two_ended },
	{ .name = "clear-release-look_up-take_away",
	  .setup = start_slot_held,
	  .thread = { clear, release, look_up, take_away },
	  .check = one_ended },
	{ 0 },
};
