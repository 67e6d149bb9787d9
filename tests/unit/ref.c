/* SPDX-License-Identifier: MIT */
/*
 * unit.ref - what one owner knows of a dst, in one word
 *
 * Goal: C3 in full: a borrowed dst costs nothing and is counted once it is
 * forced; what a ref had is let go of once, never twice. Method: references
 * are counted after each call.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "world.h"

enum { A, B };

static bool is_empty(const struct dstref_dst_ref *ref)
{
	return ref->word == 0 && !dstref_dst_ref_get(ref);
}

static bool is_borrowed(const struct dstref_dst_ref *ref,
			const struct dstref_dst *dst)
{
	return dstref_dst_ref_get(ref) == dst &&
	       ref->word == ((uintptr_t)dst | DSTREF_DST_REF_NOREF);
}

static bool is_held(const struct dstref_dst_ref *ref,
		    const struct dstref_dst *dst)
{
	return dstref_dst_ref_get(ref) == dst && ref->word == (uintptr_t)dst;
}

static void ref_starts_empty(void **state)
{
	struct dstref_dst_ref ref = { 0 }, other = { 0 };

	(void)state;
	assert_int_equal(sizeof(ref), sizeof(void *));
	enter();
	assert_true(is_empty(&ref));
	dstref_dst_ref_drop(&ref);
	dstref_dst_ref_drop_outside(&ref);
	dstref_dst_ref_set(&ref, NULL);
	dstref_dst_ref_set_noref(&ref, NULL);
	assert_false(dstref_dst_ref_force(&ref));
	assert_false(dstref_dst_ref_copy(&other, &ref));
	assert_true(is_empty(&ref));
	assert_true(is_empty(&other));
	leave();
}

static void c03_ref_noref_dropped_leaves_the_count(void **state)
{
	struct route *a = route_new(*state, A);
	struct dstref_dst_ref ref = { 0 };

	enter();
	dstref_dst_ref_set_noref(&ref, &a->dst);
	assert_true(is_borrowed(&ref, &a->dst));
	assert_int_equal(dstref_dst_refs(&a->dst), 1);
	dstref_dst_ref_drop(&ref);
	assert_true(is_empty(&ref));
	dstref_dst_ref_set_noref(&ref, &a->dst);
	dstref_dst_ref_drop_outside(&ref);
	assert_true(is_empty(&ref));
	dstref_dst_ref_set_noref(&ref, &a->dst);
	dstref_dst_ref_set_noref(&ref, NULL);
	assert_true(is_empty(&ref));
	assert_int_equal(dstref_dst_refs(&a->dst), 1);
	leave();
	put(a);
}

static void c03_ref_forced_and_dropped_is_up_and_down_once(void **state)
{
	struct route *a = route_new(*state, A);
	struct dstref_dst_ref ref = { 0 };

	enter();
	dstref_dst_ref_set_noref(&ref, &a->dst);
	assert_true(dstref_dst_ref_force(&ref));
	assert_true(is_held(&ref, &a->dst));
	assert_int_equal(dstref_dst_refs(&a->dst), 2);
	dstref_dst_ref_drop(&ref);
	assert_int_equal(dstref_dst_refs(&a->dst), 1);
	dstref_dst_ref_drop(&ref);
	assert_int_equal(dstref_dst_refs(&a->dst), 1);
	leave();
	put(a);
}

static void c03_ref_forced_twice_is_up_once(void **state)
{
	struct route *a = route_new(*state, A);
	struct dstref_dst_ref ref = { 0 };

	enter();
	dstref_dst_ref_set_noref(&ref, &a->dst);
	assert_true(dstref_dst_ref_force(&ref));
	assert_true(dstref_dst_ref_force(&ref));
	assert_true(is_held(&ref, &a->dst));
	assert_int_equal(dstref_dst_refs(&a->dst), 2);
	leave();
	dstref_dst_ref_drop_outside(&ref);
	assert_int_equal(dstref_dst_refs(&a->dst), 1);
	put(a);
}

static void c03_ref_of_an_uncached_dst_is_counted_at_once(void **state)
{
	struct route *a = route_new_flags(*state, A, DSTREF_DST_UNCACHED);
	struct dstref_dst_ref ref = { 0 };

	enter();
	dstref_dst_ref_set_noref(&ref, &a->dst);
	assert_true(is_held(&ref, &a->dst));
	assert_int_equal(dstref_dst_refs(&a->dst), 2);
	assert_true(dstref_dst_ref_force(&ref));
	assert_int_equal(dstref_dst_refs(&a->dst), 2);
	dstref_dst_ref_drop(&ref);
	assert_int_equal(dstref_dst_refs(&a->dst), 1);
	leave();
	put(a);
}

static void c03_ref_copy_of_a_borrowed_one_is_counted(void **state)
{
	struct route *a = route_new(*state, A);
	struct dstref_dst_ref from = { 0 }, to = { 0 };

	enter();
	dstref_dst_ref_set_noref(&from, &a->dst);
	assert_true(dstref_dst_ref_copy(&to, &from));
	assert_true(is_borrowed(&from, &a->dst));
	assert_true(is_held(&to, &a->dst));
	assert_int_equal(dstref_dst_refs(&a->dst), 2);
	dstref_dst_ref_drop(&from);
	leave();
	dstref_dst_ref_drop_outside(&to);
	assert_int_equal(dstref_dst_refs(&a->dst), 1);
	put(a);
}

#if DSTREF_DEBUG
static void c03_ref_borrowed_outside_a_reader_is_reported(void **state)
{
	struct route *a = route_new(*state, A);
	struct dstref_dst_ref ref = { 0 };
	const struct capture_report *report;

	dstref_dst_ref_set_noref(&ref, &a->dst);
	capture_expect(DSTREF_REPORT_READER_MISSING, 1);
	report = capture_last(DSTREF_REPORT_READER_MISSING);
	assert_string_equal(report->call, "dstref_dst_ref_set_noref");
	assert_ptr_equal(report->object, &a->dst);
	dstref_dst_ref_drop(&ref);
	put(a);
}
#endif

static void ref_copy_of_a_held_one(void **state)
{
	struct route *a = route_new(*state, A);
	struct dstref_dst_ref from = { 0 }, to = { 0 };

	enter();
	dstref_dst_ref_set(&from, &a->dst);
	assert_true(is_held(&from, &a->dst));
	assert_int_equal(dstref_dst_refs(&a->dst), 1);
	assert_true(dstref_dst_ref_copy(&to, &from));
	assert_true(dstref_dst_ref_copy(&to, &from));
	assert_int_equal(dstref_dst_refs(&a->dst), 2);
	assert_true(dstref_dst_ref_copy(&to, &to));
	assert_true(is_held(&to, &a->dst));
	assert_int_equal(dstref_dst_refs(&a->dst), 2);
	dstref_dst_ref_drop(&to);
	dstref_dst_ref_drop(&from);
	leave();
}

/* What a ref had is let go of first, whatever comes. */
static void ref_set_over_a_set_one_drops_the_first(void **state)
{
	struct world *world = *state;
	struct route *a = route_new(world, A), *b = route_new(world, B);
	struct dstref_dst_ref ref = { 0 }, empty = { 0 };

	enter();
	dstref_dst_hold_n(&a->dst, 4);
	dstref_dst_ref_set(&ref, &a->dst);
	dstref_dst_ref_set(&ref, &b->dst);
	assert_true(is_held(&ref, &b->dst));
	assert_int_equal(dstref_dst_refs(&a->dst), 4);
	dstref_dst_ref_set(&ref, NULL);
	assert_int_equal(dstref_dst_refs(&b->dst), 0);
	dstref_dst_ref_set(&ref, &a->dst);
	dstref_dst_ref_set_noref(&ref, &a->dst);
	assert_true(is_borrowed(&ref, &a->dst));
	assert_int_equal(dstref_dst_refs(&a->dst), 3);
	dstref_dst_ref_set(&ref, &a->dst);
	assert_int_equal(dstref_dst_refs(&a->dst), 3);
	dstref_dst_ref_set_noref(&ref, NULL);
	assert_int_equal(dstref_dst_refs(&a->dst), 2);
	dstref_dst_ref_set(&ref, &a->dst);
	assert_false(dstref_dst_ref_copy(&ref, &empty));
	assert_true(is_empty(&ref));
	assert_int_equal(dstref_dst_refs(&a->dst), 1);
	leave();
	put(a);
	assert_true(manual_drain());
	assert_int_equal(world->ended[A], 1);
	assert_int_equal(world->ended[B], 1);
}

static void ref_set_gives_the_last_reference_away(void **state)
{
	struct world *world = *state;
	struct dstref_dst_ref ref = { 0 };

	enter();
	dstref_dst_ref_set(&ref, &route_new(world, A)->dst);
	dstref_dst_ref_drop(&ref);
	leave();
	dstref_dst_ref_set(&ref, &route_new(world, B)->dst);
	dstref_dst_ref_drop_outside(&ref);
	assert_true(is_empty(&ref));
	assert_int_equal(world->ends, 0);
	assert_true(manual_drain());
	assert_int_equal(world->ended[A], 1);
	assert_int_equal(world->ended[B], 1);
}

static void ref_of_a_dying_dst_cannot_be_forced_or_copied(void **state)
{
	struct world *world = *state;
	struct route *a = route_new(world, A);
	struct dstref_dst_ref ref = { 0 }, copy = { 0 };

	enter();
	dstref_dst_ref_set_noref(&ref, &a->dst);
	dstref_dst_release(&a->dst);
	assert_false(dstref_dst_ref_copy(&copy, &ref));
	assert_true(is_empty(&copy));
	assert_true(is_borrowed(&ref, &a->dst));
	assert_false(dstref_dst_ref_force(&ref));
	assert_true(is_empty(&ref));
	dstref_dst_ref_drop(&ref);
	leave();
	assert_true(manual_drain());
	assert_int_equal(world->ended[A], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(ref_starts_empty),
		world_test(c03_ref_noref_dropped_leaves_the_count),
		world_test(c03_ref_forced_and_dropped_is_up_and_down_once),
		world_test(c03_ref_forced_twice_is_up_once),
		world_test(c03_ref_of_an_uncached_dst_is_counted_at_once),
		world_test(c03_ref_copy_of_a_borrowed_one_is_counted),
#if DSTREF_DEBUG
		world_test(c03_ref_borrowed_outside_a_reader_is_reported),
#endif
		world_test(ref_copy_of_a_held_one),
		world_test(ref_set_over_a_set_one_drops_the_first),
		world_test(ref_set_gives_the_last_reference_away),
		world_test(ref_of_a_dying_dst_cannot_be_forced_or_copied),
	};

	return cmocka_run_group_tests_name("ref", tests, NULL, NULL);
}
