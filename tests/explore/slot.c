/* SPDX-License-Identifier: MIT */
/*
 * slot - install, replace and clear against each other and against readers
 *
 * Goal: a slot's reference goes to exactly one of those who displace it, every
 * route is destroyed once, a reader finds what is installed, and finds it
 * initialised. Method: a slot with a route in it, and others to be installed;
 * each carries its number in mtu, a plain field that its creator writes and
 * readers read.
 */
#include "scene.h"

static struct dstref_dst_slot slot;
static struct dstref_dst *first, *own[EXPLORE_THREADS];

/* Each of @writers threads has a route of its own. */
static void start(int writers)
{
	scene_open();
	first = scene_route();
	first->mtu = EXPLORE_THREADS;
	dstref_dst_slot_install(&slot, first);
	for (int i = 0; i < writers; i++)
		own[i] = scene_route();
}

static void start_0(void)
{
	start(0);
}

static void start_1(void)
{
	start(1);
}

static void start_2(void)
{
	start(2);
}

/* Writers. */

static struct dstref_dst *numbered(void)
{
	int self = explore_self();

	own[self]->mtu = (uint32_t)self;
	return own[self];
}

static void install(void)
{
	dstref_dst_slot_install(&slot, numbered());
}

static void clear(void)
{
	dstref_dst_slot_clear(&slot);
}

static unsigned int won[EXPLORE_THREADS]; /* in place of the first */

/* In place of what is there, which a reader keeps. */
static void replace(void)
{
	struct dstref_dst *mine = numbered();

	explore_read_lock();
	struct dstref_dst *there = dstref_dst_slot_borrow(&slot);

	if (dstref_dst_slot_replace(&slot, there, mine))
		won[explore_self()] = there == first;
	explore_read_unlock();
}

/* Readers. */

static void is_initialised(const struct dstref_dst *dst)
{
	explore_assert(dst->net == scene_net);
	explore_assert(dst->mtu <= EXPLORE_THREADS);
	explore_assert(dst ==
		       (dst->mtu == EXPLORE_THREADS ? first : own[dst->mtu]));
}

static void borrow(void)
{
	explore_read_lock();
	struct dstref_dst *dst = dstref_dst_slot_borrow(&slot);

	if (dst)
		is_initialised(dst);
	explore_read_unlock();
}

static struct dstref_dst *hold_in_reader(void)
{
	explore_read_lock();
	struct dstref_dst *dst = dstref_dst_slot_hold(&slot);

	explore_read_unlock();
	return dst;
}

static void let_go(struct dstref_dst *dst)
{
	is_initialised(dst);
	scene_mark(dst);
	dstref_dst_release_outside(dst);
}

static void hold(void)
{
	struct dstref_dst *dst = hold_in_reader();

	if (dst)
		let_go(dst);
}

/* The slot is never empty: the displaced one may be dead, the new one not. */
static void hold_something(void)
{
	struct dstref_dst *dst = hold_in_reader();

	explore_assert(dst);
	let_go(dst);
}

/* Ends. */

static void empty_and_close(unsigned int routes)
{
	dstref_dst_slot_clear(&slot);
	explore_barrier();
	scene_close(routes);
}

static void one_ended(void)
{
	empty_and_close(1);
}

static void two_ended(void)
{
	empty_and_close(2);
}

static void three_ended(void)
{
	empty_and_close(3);
}

static void one_replaced(void)
{
	explore_assert(won[0] + won[1] == 1);
	three_ended();
}

const struct explore_case explore_cases[] = {
	{ .name = "install-install",
	  .setup = start_2,
	  .thread = { install, install },
	  .check = three_ended },
	{ .name = "install-clear",
	  .setup = start_1,
	  .thread = { install, clear },
	  .check = two_ended },
	{ .name = "clear-clear",
	  .setup = start_0,
	  .thread = { clear, clear },
	  .check = one_ended },
	{ .name = "replace-replace",
	  .setup = start_2,
	  .thread = { replace, replace },
	  .check = one_replaced },
	{ .name = "replace-install",
	  .setup = start_2,
	  .thread = { replace, install },
	  .check = three_ended },
	{ .name = "replace-clear",
	  .setup = start_1,
	  .thread = { replace, clear },
	  .check = two_ended },
	{ .name = "install-borrow",
	  .setup = start_1,
	  .thread = { install, borrow },
	  .check = two_ended },
	{ .name = "install-hold",
	  .setup = start_1,
	  .thread = { install, hold_something },
	  .check = two_ended },
	{ .name = "replace-hold",
	  .setup = start_1,
	  .thread = { replace, hold_something },
	  .check = two_ended },
	{ .name = "clear-hold",
	  .setup = start_0,
	  .thread = { clear, hold },
	  .check = one_ended },
	{ .name = "install-install-hold",
	  .setup = start_2,
	  .thread = { install, install, hold_something },
	  .check = three_ended },
	{ .name = "install-clear-hold",
	  .setup = start_1,
	  .thread = { install, clear, hold },
	  .check = two_ended },
	{ .name = "install-clear-borrow",
	  .setup = start_1,
	  .thread = { install, clear, borrow },
	  .check = two_ended },
	{ .name = "replace-replace-hold",
	  .setup = start_2,
	  .thread = { replace, replace, hold_something },
	  .check = one_replaced },
	{ .name = "replace-clear-borrow",
	  .setup = start_1,
	  .thread = { replace, clear, borrow },
	  .check = two_ended },
	{ .name = "install-install-clear",
	  .setup = start_2,
	  .thread = { install, install, clear },
	  .check = three_ended },
	{ .name = "install-replace-clear-hold",
	  .setup = start_2,
	  .thread = { install, replace, clear, hold },
	  .check = three_ended },
	{ 0 },
};
