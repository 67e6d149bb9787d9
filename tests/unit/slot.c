/* SPDX-License-Identifier: MIT */
/*
 * unit.slot - a pointer that owns one reference
 *
 * Goal: whatever is done with a slot, it owns exactly one reference to what it
 * shows, and shows nothing whose reference it let go of. Method: references
 * are counted after each call; the end of a route looks whether its slot
 * still shows it, at once where release needs no grace period.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "world.h"

enum { A, B };

static struct dstref_dst *look(const struct dstref_dst_slot *slot)
{
	struct dstref_dst *dst;

	enter();
	dst = dstref_dst_slot_borrow(slot);
	leave();
	return dst;
}

static void hold(struct route *route)
{
	enter();
	dstref_dst_hold(&route->dst);
	leave();
}

static void slot_starts_empty(void **state)
{
	struct dstref_dst_slot slot = { NULL };

	(void)state;
	enter();
	assert_null(dstref_dst_slot_borrow(&slot));
	assert_null(dstref_dst_slot_hold(&slot));
	leave();
	dstref_dst_slot_clear(&slot);
	dstref_dst_slot_install(&slot, NULL);
	assert_null(look(&slot));
}

static void slot_takes_the_callers_reference(void **state)
{
	struct world *world = *state;
	struct dstref_dst_slot slot = { NULL };
	struct route *a = route_new(world, A);

	dstref_dst_slot_install(&slot, &a->dst);
	assert_int_equal(dstref_dst_refs(&a->dst), 1);
	enter();
	assert_ptr_equal(dstref_dst_slot_borrow(&slot), &a->dst);
	assert_int_equal(dstref_dst_refs(&a->dst), 1);
	assert_ptr_equal(dstref_dst_slot_hold(&slot), &a->dst);
	assert_int_equal(dstref_dst_refs(&a->dst), 2);
	dstref_dst_release(&a->dst);
	leave();
	dstref_dst_slot_clear(&slot);
	assert_null(look(&slot));
	assert_int_equal(dstref_dst_refs(&a->dst), 0);
	assert_true(manual_drain());
	assert_int_equal(world->ended[A], 1);
}

static void slot_clear_leaves_other_references(void **state)
{
	struct world *world = *state;
	struct dstref_dst_slot slot = { NULL };
	struct route *a = route_new(world, A);

	hold(a);
	dstref_dst_slot_install(&slot, &a->dst);
	dstref_dst_slot_clear(&slot);
	dstref_dst_slot_clear(&slot);
	assert_int_equal(dstref_dst_refs(&a->dst), 1);
	put(a);
}

static void slot_install_displaces_and_lets_go(void **state)
{
	struct world *world = *state;
	struct dstref_dst_slot slot = { NULL };
	struct route *a = route_new(world, A), *b = route_new(world, B);

	hold(a);
	dstref_dst_slot_install(&slot, &a->dst);
	dstref_dst_slot_install(&slot, &b->dst);
	assert_ptr_equal(look(&slot), &b->dst);
	assert_int_equal(dstref_dst_refs(&a->dst), 1);
	assert_int_equal(dstref_dst_refs(&b->dst), 1);
	dstref_dst_slot_install(&slot, NULL);
	put(a);
	assert_true(manual_drain());
	assert_int_equal(world->ended[A], 1);
	assert_int_equal(world->ended[B], 1);
}

/* The same dst once more: one of the two references goes. */
static void slot_install_over_itself(void **state)
{
	struct world *world = *state;
	struct dstref_dst_slot slot = { NULL };
	struct route *a = route_new(world, A);

	dstref_dst_slot_install(&slot, &a->dst);
	hold(a);
	dstref_dst_slot_install(&slot, &a->dst);
	assert_int_equal(dstref_dst_refs(&a->dst), 1);
	assert_ptr_equal(look(&slot), &a->dst);
	assert_int_equal(world->ends, 0);
	dstref_dst_slot_clear(&slot);
}

/* C6: two install in one empty slot; the call lets go of the loser's. */
static void c06_slot_replace_lets_go_of_the_losers_reference(void **state)
{
	struct world *world = *state;
	struct dstref_dst_slot slot = { NULL };
	struct route *a = route_new(world, A), *b = route_new(world, B);

	assert_true(dstref_dst_slot_replace(&slot, NULL, &a->dst));
	assert_false(dstref_dst_slot_replace(&slot, NULL, &b->dst));
	assert_ptr_equal(look(&slot), &a->dst);
	assert_int_equal(dstref_dst_refs(&a->dst), 1);
	assert_int_equal(dstref_dst_refs(&b->dst), 0);
	assert_true(manual_drain());
	assert_int_equal(world->ended[A], 0);
	assert_int_equal(world->ended[B], 1);
	dstref_dst_slot_clear(&slot);
}

static void slot_replace_lets_go_of_the_expected_one(void **state)
{
	struct world *world = *state;
	struct dstref_dst_slot slot = { NULL };
	struct route *a = route_new(world, A), *b = route_new(world, B);

	hold(a);
	hold(b);
	dstref_dst_slot_install(&slot, &a->dst);
	assert_true(dstref_dst_slot_replace(&slot, &a->dst, &b->dst));
	assert_ptr_equal(look(&slot), &b->dst);
	assert_int_equal(dstref_dst_refs(&a->dst), 1);
	assert_int_equal(dstref_dst_refs(&b->dst), 2);
	/* Now a is not there: the loser loses the one he brings. */
	hold(b);
	assert_false(dstref_dst_slot_replace(&slot, &a->dst, &b->dst));
	assert_int_equal(dstref_dst_refs(&a->dst), 1);
	assert_int_equal(dstref_dst_refs(&b->dst), 2);
	put(a);
	put(b);
	dstref_dst_slot_clear(&slot);
}

static void slot_replace_by_null_clears_only_the_expected_one(void **state)
{
	struct world *world = *state;
	struct dstref_dst_slot slot = { NULL };
	struct route *a = route_new(world, A), *b = route_new(world, B);

	assert_true(dstref_dst_slot_replace(&slot, NULL, NULL));
	dstref_dst_slot_install(&slot, &a->dst);
	assert_false(dstref_dst_slot_replace(&slot, &b->dst, NULL));
	assert_false(dstref_dst_slot_replace(&slot, NULL, NULL));
	assert_ptr_equal(look(&slot), &a->dst);
	assert_int_equal(dstref_dst_refs(&a->dst), 1);
	assert_true(dstref_dst_slot_replace(&slot, &a->dst, NULL));
	assert_null(look(&slot));
	assert_int_equal(dstref_dst_refs(&a->dst), 0);
	put(b);
}

/* The memory of an end that came too early would still be in the slot. */
static void slot_is_empty_before_the_end(void **state)
{
	struct world *world = *state;
	static struct dstref_dst_slot slot;
	struct route *a = route_new(world, A), *b = route_new(world, B);

	a->slot = &slot;
	b->slot = &slot;
	dstref_dst_slot_install(&slot, &a->dst);
	dstref_dst_slot_install(&slot, &b->dst);
	assert_true(manual_drain());
	assert_int_equal(world->ended[A], 1);
	dstref_dst_slot_clear(&slot);
	assert_true(manual_drain());
	assert_int_equal(world->ended[B], 1);
	assert_false(world->shown);
}

/*
 * A put that finds nobody left reports at that instant: the hook then looks
 * whether the slot still shows the dst. The slot's own reference is stolen to
 * have it report.
 */
static const struct dstref_dst_slot *watched;
static const struct dstref_report_hook *next;
static bool shown;

static void look_at_slot(const struct dstref_report *report, void *ctx)
{
	(void)ctx;
	if (dstref_load_relaxed(&watched->dst) == report->object)
		shown = true;
	next->fn(report, next->ctx);
}

static void slot_is_unpublished_before_its_put(void **state)
{
	static const struct dstref_report_hook hook = { look_at_slot, NULL };
	struct world *world = *state;
	struct dstref_dst_slot slot = { NULL };

	watched = &slot;
	shown = false;
	next = dstref_report_set_hook(&hook);
	for (int way = 0; way < 3; way++) {
		struct route *a = route_new(world, A);

		dstref_dst_slot_install(&slot, &a->dst);
		put(a);
		enter();
		if (way == 0)
			dstref_dst_slot_clear(&slot);
		else if (way == 1)
			dstref_dst_slot_install(&slot, NULL);
		else
			assert_true(
				dstref_dst_slot_replace(&slot, &a->dst, NULL));
		leave();
		capture_expect(DSTREF_REPORT_COUNT_UNDERFLOW, 1);
		assert_true(manual_drain());
	}
	(void)dstref_report_set_hook(next);
	assert_false(shown);
	assert_int_equal(world->ended[A], 3);
}

/* A slot whose own reference was stolen is answered NULL, not for ever. */
static void slot_hold_of_a_stolen_reference_ends(void **state)
{
	struct world *world = *state;
	struct dstref_dst_slot slot = { NULL };
	struct route *a = route_new(world, A);

	dstref_dst_slot_install(&slot, &a->dst);
	enter();
	dstref_dst_release(&a->dst);
	assert_null(dstref_dst_slot_hold(&slot));
	dstref_dst_slot_clear(&slot);
	leave();
	capture_expect(DSTREF_REPORT_COUNT_UNDERFLOW, 1);
	capture_expect(DSTREF_REPORT_DST_HOLD_DEAD, 1);
	assert_true(manual_drain());
	assert_int_equal(world->ended[A], 1);
}

#if DSTREF_DEBUG
static void slot_calls_check_their_context(void **state)
{
	struct world *world = *state;
	struct dstref_dst_slot slot = { NULL };
	struct route *a = route_new(world, A);

	dstref_dst_slot_install(NULL, NULL);
	assert_false(dstref_dst_slot_replace(NULL, NULL, NULL));
	capture_expect(DSTREF_REPORT_NULL_ARGUMENT, 2);
	assert_string_equal(capture_last(DSTREF_REPORT_NULL_ARGUMENT)->call,
			    "dstref_dst_slot_replace");
	assert_null(dstref_dst_slot_borrow(&slot));
	dstref_dst_slot_install(&slot, &a->dst);
	capture_expect_none();
	assert_ptr_equal(dstref_dst_slot_borrow(&slot), &a->dst);
	capture_expect(DSTREF_REPORT_READER_MISSING, 1);
	assert_string_equal(capture_last(DSTREF_REPORT_READER_MISSING)->call,
			    "dstref_dst_slot_borrow");
	assert_ptr_equal(capture_last(DSTREF_REPORT_READER_MISSING)->object,
			 &a->dst);
	dstref_dst_slot_clear(&slot);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(slot_starts_empty),
		world_test(slot_takes_the_callers_reference),
		world_test(slot_clear_leaves_other_references),
		world_test(slot_install_displaces_and_lets_go),
		world_test(slot_install_over_itself),
		world_test(c06_slot_replace_lets_go_of_the_losers_reference),
		world_test(slot_replace_lets_go_of_the_expected_one),
		world_test(slot_replace_by_null_clears_only_the_expected_one),
		world_test(slot_is_empty_before_the_end),
		world_test(slot_is_unpublished_before_its_put),
		world_test(slot_hold_of_a_stolen_reference_ends),
#if DSTREF_DEBUG
		world_test(slot_calls_check_their_context),
#endif
	};

	return cmocka_run_group_tests_name("slot", tests, NULL, NULL);
}
