/* SPDX-License-Identifier: MIT */
/*
 * dst_dead - `dead` against who follows the child, dead, and the last release
 *
 * Goal: the child of a route that dies is let go of once, by dead or by the
 * last put, and not before those have left who may follow it. Method: a route
 * with a child, in a slot; readers find the child through it, borrow it, or
 * take a reference to it away. The child's only reference is its parent's.
 */
#include "scene.h"

static struct dstref_dst_slot slot;
static struct dstref_dst *route, *child;

static int sends(struct dstref_dst *dst, void *pkt)
{
	(void)dst;
	(void)pkt;
	return 0;
}

/* A route in the slot, to which @holders threads have a reference. */
static void start(unsigned int holders)
{
	scene_open();
	route = scene_route();
	child = scene_route();
	dstref_init_plain(&route->output, sends);
	dstref_dst_slot_install(&route->child, child);
	for (unsigned int i = 0; i < holders; i++)
		dstref_dst_hold_outside(route);
	dstref_dst_slot_install(&slot, route);
}

static void start_1(void)
{
	start(1);
}

static void start_2(void)
{
	start(2);
}

/* The last reference is the threads'. */
static void start_unpublished(void)
{
	start(2);
	dstref_dst_slot_clear(&slot);
}

/* Holders. */

static void dead(void)
{
	dstref_dst_dead(route);
	explore_assert(!dstref_dst_check(route, 0));
	dstref_dst_release_outside(route);
}

static void release(void)
{
	explore_read_lock();
	dstref_dst_release(route);
	explore_read_unlock();
}

/* The owner of the slot, who needs no other reference to it. */
static void dead_and_clear(void)
{
	explore_read_lock();
	dstref_dst_dead(dstref_dst_slot_borrow(&slot));
	dstref_dst_slot_clear(&slot);
	explore_read_unlock();
}

static void clear(void)
{
	dstref_dst_slot_clear(&slot);
}

/* Gives it another child while it dies. */
static void install_child(void)
{
	dstref_dst_slot_install(&route->child, scene_route());
	dstref_dst_release_outside(route);
}

/* Readers. */

/* The child by way of the route; without one, the route is dead. */
static struct dstref_dst *follow(void)
{
	struct dstref_dst *found = dstref_dst_slot_borrow(&slot);

	if (!found)
		return NULL;
	struct dstref_dst *next = dstref_dst_slot_borrow(&found->child);

	if (!next) {
		explore_assert(!dstref_dst_check(found, 0));
		explore_assert(dstref_dst_output(found, NULL) < 0);
	}
	return next;
}

static void borrow(void)
{
	explore_read_lock();
	struct dstref_dst *next = follow();

	explore_assert(!next || dstref_dst_check(next, 0));
	explore_read_unlock();
}

/* The parent's reference to the child lasts as long as this reader. */
static void take_away(void)
{
	explore_read_lock();
	struct dstref_dst *next = follow();

	if (next)
		dstref_dst_hold(next);
	explore_read_unlock();
	if (!next)
		return;
	scene_mark(next);
	dstref_dst_release_outside(next);
}

/* Ends. */

static void end_with(unsigned int routes)
{
	dstref_dst_slot_clear(&slot);
	explore_barrier();
	scene_close(routes);
}

static void two_ended(void)
{
	end_with(2);
}

static void three_ended(void)
{
	end_with(3);
}

const struct explore_case explore_cases[] = {
	{ .name = "dead-borrow",
	  .setup = start_1,
	  .thread = { dead, borrow },
	  .check = two_ended },
	{ .name = "dead-take_away",
	  .setup = start_1,
	  .thread = { dead, take_away },
	  .check = two_ended },
	{ .name = "dead-dead",
	  .setup = start_2,
	  .thread = { dead, dead },
	  .check = two_ended },
	{ .name = "dead-release",
	  .setup = start_unpublished,
	  .thread = { dead, release },
	  .check = two_ended },
	{ .name = "dead_and_clear-take_away-release",
	  .setup = start_1,
	  .thread = { dead_and_clear, take_away, release },
	  .check = two_ended },
	{ .name = "dead-install_child",
	  .setup = start_2,
	  .thread = { dead, install_child },
	  .check = three_ended },
	{ .name = "dead-dead-take_away",
	  .setup = start_2,
	  .thread = { dead, dead, take_away },
	  .check = two_ended },
	{ .name = "dead-clear-borrow",
	  .setup = start_1,
	  .thread = { dead, clear, borrow },
	  .check = two_ended },
	{ .name = "dead-clear-take_away",
	  .setup = start_1,
	  .thread = { dead, clear, take_away },
	  .check = two_ended },
	{ .name = "dead-install_child-borrow",
	  .setup = start_2,
	  .thread = { dead, install_child, borrow },
	  .check = three_ended },
	{ 0 },
};
