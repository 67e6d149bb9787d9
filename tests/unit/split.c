/* SPDX-License-Identifier: MIT */
/*
 * unit.split - cells, promotion, merge, kill, step by step
 *
 * Goal: in every state, each call does what split.h says, the total is exact
 * whenever nothing runs, and zero is told once, never before the last
 * reference is gone. Method: the manual flavour, so that a test stands between
 * the close and the merge; other threads are puppets that make one step at a
 * time.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <dstref/split.h>

#include "capture.h"
#include "manual.h"
#include "tsan.h"

#define CELLS 4

struct object {
	struct dstref_split split;
	unsigned int told;
	unsigned int confirmed;
};

static struct dstref_split_domain *domain;

static void on_zero(struct dstref_split *split)
{
	((struct object *)split)->told++;
}

static void on_confirm(struct dstref_split *split)
{
	((struct object *)split)->confirmed++;
}

static int setup(void **state)
{
	struct dstref_split_attr attr = { .flavour = &manual_flavor,
					  .cells = CELLS };

	manual_flavor.register_thread();
	if (dstref_split_domain_create(&domain, &attr) ||
	    dstref_split_attach(domain))
		return -1;
	return capture_setup(state);
}

static int teardown(void **state)
{
	if (!manual_drain())
		return -1;
	dstref_split_detach(domain);
	if (dstref_split_domain_destroy(domain))
		return -1;
	manual_flavor.unregister_thread();
	if (manual_reset())
		return -1;
	return capture_teardown(state);
}

static void start(struct object *object, uint32_t refs)
{
	object->told = 0;
	object->confirmed = 0;
	assert_int_equal(
		dstref_split_init(&object->split, domain, refs, on_zero), 0);
}

static void get(struct object *object)
{
	manual_flavor.read_lock();
	assert_true(dstref_split_get(&object->split));
	manual_flavor.read_unlock();
}

static void put(struct object *object)
{
	manual_flavor.read_lock();
	dstref_split_put(&object->split);
	manual_flavor.read_unlock();
}

static struct dstref_split_counters stats(void)
{
	struct dstref_split_counters stats;

	dstref_split_stats(domain, &stats);
	return stats;
}

static void counts_before_and_after_a_promotion(void **state)
{
	struct object object;

	(void)state;
	start(&object, 1);
	get(&object);
	assert_int_equal(dstref_split_read(&object.split), 2);
	assert_int_equal(dstref_split_promote(&object.split), 0);
	assert_int_equal(dstref_split_read(&object.split), 2);
	get(&object);
	put(&object);
	put(&object);
	assert_int_equal(dstref_split_read(&object.split), 1);
	put(&object);
	assert_int_equal(dstref_split_read(&object.split), 0);
	assert_int_equal(object.told, 0);
	assert_int_equal(dstref_split_demote(&object.split), 0);
	assert_int_equal(object.told, 0);
	assert_true(manual_drain());
	assert_int_equal(object.told, 1);
	assert_int_equal(stats().used, 0);
}

static void many_gets_move_to_the_count(void **state)
{
	const uint32_t n = 3 * 65536 + 7;
	struct object object;

	(void)state;
	start(&object, 1);
	assert_int_equal(dstref_split_promote(&object.split), 0);
	for (uint32_t i = 0; i < n; i++)
		get(&object);
	assert_int_equal(dstref_split_read(&object.split), n + 1);
	/* More than a cell holds went out of it. */
	assert_true(dstref_load_relaxed(&object.split.count.word) >=
		    DSTREF_SPLIT_BIAS + 2 * 65536);
	for (uint32_t i = 0; i < n; i++)
		put(&object);
	assert_int_equal(dstref_split_read(&object.split), 1);
	assert_int_equal(dstref_split_kill(&object.split, on_confirm), 0);
	assert_int_equal(object.confirmed, 0);
	assert_true(manual_drain());
	assert_int_equal(object.confirmed, 1);
	assert_int_equal(dstref_load_relaxed(&object.split.count.word), 0);
	put(&object);
	assert_int_equal(object.told, 1);
}

static void a_number_is_used_again_from_its_base(void **state)
{
	struct object first, second;

	(void)state;
	start(&first, 1);
	assert_int_equal(dstref_split_promote(&first.split), 0);
	for (int i = 0; i < 5; i++)
		get(&first);
	/* Taken in the cell, let go of in the count: the cell keeps 5. */
	for (int i = 0; i < 6; i++)
		dstref_split_put_outside(&first.split);
	assert_int_equal(first.told, 0);
	assert_int_equal(dstref_split_demote(&first.split), 0);
	assert_true(manual_drain());
	assert_int_equal(first.told, 1);
	for (int i = 0; i < CELLS; i++) {
		start(&second, 1);
		assert_int_equal(dstref_split_promote(&second.split), 0);
		assert_int_equal(dstref_split_read(&second.split), 1);
		put(&second);
		assert_int_equal(dstref_split_demote(&second.split), 0);
		assert_true(manual_drain());
		assert_int_equal(second.told, 1);
	}
}

static void cells_run_out(void **state)
{
	struct object object[CELLS + 1];

	(void)state;
	for (int i = 0; i <= CELLS; i++)
		start(&object[i], 1);
	for (int i = 0; i < CELLS; i++)
		assert_int_equal(dstref_split_promote(&object[i].split), 0);
	assert_int_equal(dstref_split_promote(&object[CELLS].split), -ENOSPC);
	assert_false(dstref_split_request(&object[CELLS].split));
	assert_int_equal(stats().refused, 2);
	assert_int_equal(stats().used, CELLS);
	get(&object[CELLS]);
	assert_int_equal(dstref_split_read(&object[CELLS].split), 2);
	for (int i = 0; i < CELLS; i++)
		assert_int_equal(dstref_split_kill(&object[i].split, NULL), 0);
	assert_true(manual_drain());
	assert_int_equal(stats().used, 0);
	assert_int_equal(dstref_split_promote(&object[0].split), -ESHUTDOWN);
	assert_int_equal(dstref_split_kill(&object[0].split, NULL), -EALREADY);
}

static void a_request_waits_for_the_tick(void **state)
{
	struct object object;

	(void)state;
	start(&object, 1);
	assert_true(dstref_split_request(&object.split));
	assert_true(dstref_split_request(&object.split));
	assert_int_equal(stats().requests, 1);
	assert_int_equal(stats().promotions, 0);
	assert_int_equal(dstref_split_tick(domain, 0), 0);
	assert_int_equal(dstref_split_tick(domain, 10), 1);
	assert_int_equal(stats().promotions, 1);
	get(&object);
	assert_int_equal(dstref_split_tick(domain, 10), 0);
	assert_int_equal(dstref_split_tick(domain, 10), 1); /* quiet once */
	assert_true(manual_drain());
	assert_int_equal(stats().demotions, 1);
	/* The second time it is left alone for two quiet ticks. */
	assert_int_equal(dstref_split_promote(&object.split), 0);
	assert_int_equal(dstref_split_tick(domain, 10), 0);
	assert_int_equal(dstref_split_tick(domain, 10), 1);
	assert_true(manual_drain());
	assert_int_equal(dstref_split_read(&object.split), 2);
}

static void a_dead_object_gives_its_request_back(void **state)
{
	struct object object;

	(void)state;
	start(&object, 1);
	assert_true(dstref_split_request(&object.split));
	put(&object);
	assert_int_equal(object.told, 1);
	assert_int_equal(dstref_split_promote(&object.split), -ESHUTDOWN);
	dstref_split_end(&object.split);
	assert_int_equal(stats().used, 0);
	assert_int_equal(dstref_split_tick(domain, 10), 0);
	start(&object, 1);
	assert_true(dstref_split_request(&object.split));
	put(&object);
	assert_int_equal(dstref_split_tick(domain, 10), 0);
	assert_int_equal(stats().used, 0);
	dstref_split_end(&object.split);
	start(&object, 1);
	assert_true(dstref_split_request(&object.split));
	assert_int_equal(dstref_split_kill(&object.split, on_confirm), 0);
	assert_int_equal(object.confirmed, 1);
	assert_int_equal(dstref_split_tick(domain, 10), 0);
	assert_int_equal(stats().used, 0);
}

static void a_put_too_many_is_found_by_the_merge(void **state)
{
	struct object object;

	(void)state;
	start(&object, 1);
	assert_int_equal(dstref_split_promote(&object.split), 0);
	put(&object);
	put(&object);
	assert_int_equal(dstref_split_demote(&object.split), 0);
	assert_true(manual_drain());
	capture_expect(DSTREF_REPORT_COUNT_UNDERFLOW, 1);
	assert_int_equal(object.told, 0);
	assert_int_equal(dstref_split_read(&object.split), 0);
}

static void a_reader_holds_the_merge_up(void **state)
{
	struct object object;

	(void)state;
	start(&object, 1);
	assert_int_equal(dstref_split_promote(&object.split), 0);
	manual_flavor.read_lock();
	assert_int_equal(dstref_split_demote(&object.split), 0);
	assert_int_equal(dstref_split_promote(&object.split), -EBUSY);
	assert_false(manual_advance());
	dstref_split_put(&object.split); /* the count, biased */
	assert_int_equal(object.told, 0);
	manual_flavor.read_unlock();
	assert_true(manual_drain());
	assert_int_equal(object.told, 1);
}

static void misuse_is_refused(void **state)
{
	struct dstref_split_attr attr = { .flavour = &manual_flavor };
	struct dstref_split_domain *more[DSTREF_SPLIT_DOMAINS];
	struct dstref_split split;
	int n = 0;

	(void)state;
	assert_int_equal(dstref_split_domain_create(NULL, &attr), -EINVAL);
	attr.cells = DSTREF_SPLIT_CELLS + 1;
	assert_int_equal(dstref_split_domain_create(&more[0], &attr), -EINVAL);
	attr.cells = 1;
	while (dstref_split_domain_create(&more[n], &attr) == 0)
		n++;
	assert_int_equal(n, DSTREF_SPLIT_DOMAINS - 1); /* and the test's own */
	while (n--)
		assert_int_equal(dstref_split_domain_destroy(more[n]), 0);
	assert_int_equal(dstref_split_init(&split, domain, 1, NULL), -EINVAL);
	assert_int_equal(dstref_split_domain_destroy(domain), -EBUSY);
	assert_int_equal(dstref_split_domain_destroy(NULL), 0);
}

#define test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(counts_before_and_after_a_promotion),
		test(many_gets_move_to_the_count),
		test(a_number_is_used_again_from_its_base),
		test(cells_run_out),
		test(a_request_waits_for_the_tick),
		test(a_dead_object_gives_its_request_back),
		test(a_put_too_many_is_found_by_the_merge),
		test(a_reader_holds_the_merge_up),
		test(misuse_is_refused),
	};

	return cmocka_run_group_tests_name("unit.split", tests, NULL, NULL);
}
