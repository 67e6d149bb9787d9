/* SPDX-License-Identifier: MIT */
/*
 * unit.wmem - the account: told once, in any order, whatever is miscounted
 *
 * Goal: whoever takes the last unit is told and nobody else; bytes are exact
 * and never decide the lifetime; every misuse pins the account and is
 * reported; a value says whether there is room and who waits. Method: every
 * order of a few calls, and words set by hand at the edges of units and bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dstref/wmem.h>

#include "capture.h"

#define CHARGE_MAX DSTREF_WMEM_CHARGE_MAX
#define UNITS_MAX DSTREF_WMEM_UNITS_MAX
#define DEAD DSTREF_WMEM_DEAD
#define SATURATED DSTREF_WMEM_SATURATED
#define RELEASED DSTREF_WMEM_RELEASED

static uint64_t value_of(uint32_t units, int64_t bytes)
{
	return DSTREF_WMEM_UNIT * units + DSTREF_WMEM_BYTES_OK +
	       DSTREF_WMEM_BYTE * (uint64_t)bytes;
}

static struct dstref_wmem wmem_at(uint64_t value)
{
	struct dstref_wmem wmem;

	dstref_init_plain(&wmem.word, value);
	return wmem;
}

static void expect(const struct dstref_wmem *wmem, uint32_t units,
		   int64_t bytes)
{
	uint64_t value = dstref_wmem_read(wmem);

	assert_int_equal(dstref_wmem_value_units(value), units);
	assert_true(dstref_wmem_value_bytes(value) == bytes);
}

static bool is_saturated(const struct dstref_wmem *wmem)
{
	uint64_t value = dstref_wmem_read(wmem);

	return value >> 63 && value < RELEASED;
}

static void wmem_starts_at_one(void **state)
{
	struct dstref_wmem wmem = wmem_at(UINT64_C(0xa5a5a5a5a5a5a5a5));

	(void)state;
	dstref_wmem_init(&wmem);
	expect(&wmem, 1, 0);
	assert_false(
		dstref_wmem_value_wakes(dstref_wmem_read(&wmem), UINT32_MAX));
}

static void wmem_charge_tells_if_it_was_empty(void **state)
{
	struct dstref_wmem wmem;
	uint64_t before;

	(void)state;
	dstref_wmem_init(&wmem);
	assert_true(dstref_wmem_charge(&wmem, 1500, &before));
	assert_int_equal(dstref_wmem_value_units(before), 1);
	assert_true(dstref_wmem_value_bytes(before) == 0);
	assert_true(dstref_wmem_charge(&wmem, 700, &before));
	assert_int_equal(dstref_wmem_value_units(before), 2);
	assert_true(dstref_wmem_value_bytes(before) == 1500);
	expect(&wmem, 3, 2200);
}

static void wmem_uncharge_gives_the_value_after(void **state)
{
	struct dstref_wmem wmem;
	uint64_t after;

	(void)state;
	dstref_wmem_init(&wmem);
	assert_true(dstref_wmem_charge(&wmem, 1500, NULL));
	assert_true(dstref_wmem_charge(&wmem, 700, NULL));
	assert_false(dstref_wmem_uncharge(&wmem, 1500, &after));
	assert_true(after == value_of(2, 700));
	assert_false(dstref_wmem_uncharge(&wmem, 700, &after));
	assert_true(after == value_of(1, 0));
	assert_true(dstref_wmem_close(&wmem, &after));
	assert_true(after == value_of(0, 0));
	expect(&wmem, 0, 0);
}

/*
 * Three packets and the owner, let go in each of the 24 orders: the fourth is
 * told, and only it, and the account had the right sum all the way.
 */
static void last_of(const int order[4])
{
	static const uint32_t bytes[4] = { 0, 1, 1500, CHARGE_MAX };
	struct dstref_wmem wmem;
	int64_t left = 1 + 1500 + (int64_t)CHARGE_MAX;

	dstref_wmem_init(&wmem);
	for (int i = 1; i < 4; i++)
		assert_true(dstref_wmem_charge(&wmem, bytes[i], NULL));
	for (int i = 0; i < 4; i++) {
		int who = order[i];
		bool told = who ? dstref_wmem_uncharge(&wmem, bytes[who], NULL)
				: dstref_wmem_close(&wmem, NULL);

		left -= bytes[who];
		assert_int_equal(told, i == 3);
		if (!told)
			expect(&wmem, (uint32_t)(3 - i), left);
	}
	assert_true(dstref_wmem_read(&wmem) == DEAD);
}

static void wmem_every_order_tells_the_last(void **state)
{
	int orders = 0;

	(void)state;
	for (int code = 0; code < 256; code++) {
		int order[4] = { code & 3, code >> 2 & 3, code >> 4 & 3,
				 code >> 6 };
		int seen = 0;

		for (int i = 0; i < 4; i++)
			seen |= 1 << order[i];
		if (seen != 15)
			continue;
		last_of(order);
		orders++;
	}
	assert_int_equal(orders, 24);
}

static void wmem_charge_of_zero_pins(void **state)
{
	struct dstref_wmem wmem;

	(void)state;
	dstref_wmem_init(&wmem);
	assert_true(dstref_wmem_charge(&wmem, 0, NULL));
	expect(&wmem, 2, 0);
	assert_false(dstref_wmem_close(&wmem, NULL));
	assert_true(dstref_wmem_uncharge(&wmem, 0, NULL));
}

/* C8 at this level: 64 sent, closed, 40 completed, 24 torn down. */
static void c08_wmem_closed_with_packets_out(void **state)
{
	struct dstref_wmem wmem;

	(void)state;
	dstref_wmem_init(&wmem);
	for (uint32_t i = 0; i < 64; i++)
		assert_true(dstref_wmem_charge(&wmem, 100 + i, NULL));
	assert_false(dstref_wmem_close(&wmem, NULL));
	for (uint32_t i = 0; i < 63; i++)
		assert_false(dstref_wmem_uncharge(&wmem, 163 - i, NULL));
	expect(&wmem, 1, 100);
	assert_true(dstref_wmem_uncharge(&wmem, 100, NULL));
}

static void wmem_recharge_keeps_the_unit(void **state)
{
	struct dstref_wmem wmem;
	uint64_t after;

	(void)state;
	dstref_wmem_init(&wmem);
	assert_true(dstref_wmem_charge(&wmem, 1000, NULL));
	after = dstref_wmem_recharge(&wmem, 1000, 1800);
	assert_true(after == value_of(2, 1800));
	after = dstref_wmem_recharge(&wmem, 1800, 300);
	assert_true(after == value_of(2, 300));
	assert_false(dstref_wmem_close(&wmem, NULL));
	after = dstref_wmem_recharge(&wmem, 300, 0);
	assert_true(after == value_of(1, 0));
	assert_true(after == dstref_wmem_read(&wmem));
	assert_true(dstref_wmem_uncharge(&wmem, 0, NULL));
}

static void wmem_cut_is_the_same_on_both_sides(void **state)
{
	struct dstref_wmem wmem;

	(void)state;
	dstref_wmem_init(&wmem);
	assert_true(dstref_wmem_charge(&wmem, CHARGE_MAX, NULL));
	capture_expect_none();
	assert_true(dstref_wmem_charge(&wmem, CHARGE_MAX + 1, NULL));
	expect(&wmem, 3, 2 * (int64_t)CHARGE_MAX);
	assert_false(dstref_wmem_uncharge(&wmem, UINT32_MAX, NULL));
	expect(&wmem, 2, CHARGE_MAX);
	capture_expect(DSTREF_REPORT_WMEM_RANGE, 2);
	assert_ptr_equal(capture_report(0)->object, &wmem);
	assert_int_equal(capture_report(0)->value, CHARGE_MAX + 1);
	assert_int_equal(capture_report(1)->value, UINT32_MAX);
	assert_true(dstref_wmem_recharge(&wmem, CHARGE_MAX, UINT32_MAX) ==
		    value_of(2, CHARGE_MAX));
	capture_expect(DSTREF_REPORT_WMEM_RANGE, 1);
}

/* C13: an account that is pinned answers every call, and ends never. */
static void stays_saturated(struct dstref_wmem *wmem)
{
	for (int i = 0; i < 3; i++) {
		assert_true(dstref_wmem_charge(wmem, 1500, NULL));
		assert_true(is_saturated(wmem));
		assert_false(dstref_wmem_uncharge(wmem, CHARGE_MAX, NULL));
		assert_true(is_saturated(wmem));
		assert_false(dstref_wmem_close(wmem, NULL));
		assert_true(is_saturated(wmem));
		(void)dstref_wmem_recharge(wmem, CHARGE_MAX, 0);
		assert_true(is_saturated(wmem));
		(void)dstref_wmem_recharge(wmem, 0, CHARGE_MAX);
		assert_true(is_saturated(wmem));
	}
	capture_expect_none(); /* told once, when it became so */
}

static void c13_wmem_saturates_by_units(void **state)
{
	struct dstref_wmem wmem;

	(void)state;
	dstref_wmem_init(&wmem);
	for (uint32_t i = 1; i < UNITS_MAX; i++)
		if (!dstref_wmem_charge(&wmem, 0, NULL))
			fail();
	expect(&wmem, UNITS_MAX, 0);
	capture_expect_none();
	assert_true(dstref_wmem_charge(&wmem, 0, NULL));
	capture_expect(DSTREF_REPORT_WMEM_SATURATED, 1);
	assert_ptr_equal(capture_report(0)->object, &wmem);
	stays_saturated(&wmem);
}

static void c13_wmem_saturates_by_bytes(void **state)
{
	static const int64_t limit = INT64_C(1) << 39;
	struct dstref_wmem wmem;
	int64_t bytes = 0;

	(void)state;
	dstref_wmem_init(&wmem);
	for (; bytes + CHARGE_MAX < limit; bytes += CHARGE_MAX)
		assert_true(dstref_wmem_charge(&wmem, CHARGE_MAX, NULL));
	expect(&wmem, (uint32_t)(1 + bytes / CHARGE_MAX), bytes);
	assert_true(
		dstref_wmem_charge(&wmem, (uint32_t)(limit - 1 - bytes), NULL));
	capture_expect_none();
	assert_true(dstref_wmem_charge(&wmem, 1, NULL));
	capture_expect(DSTREF_REPORT_WMEM_SATURATED, 1);
	stays_saturated(&wmem);
}

/* More bytes given back than were taken: pinned, never freed early. */
static void c13_wmem_deficit_pins(void **state)
{
	struct dstref_wmem wmem;

	(void)state;
	dstref_wmem_init(&wmem);
	assert_true(dstref_wmem_charge(&wmem, 100, NULL));
	assert_true(dstref_wmem_charge(&wmem, 100, NULL));
	assert_false(dstref_wmem_uncharge(&wmem, 201, NULL));
	capture_expect(DSTREF_REPORT_WMEM_SATURATED, 1);
	stays_saturated(&wmem);
	dstref_wmem_init(&wmem);
	assert_true(dstref_wmem_charge(&wmem, 100, NULL));
	(void)dstref_wmem_recharge(&wmem, 101, 0);
	capture_expect(DSTREF_REPORT_WMEM_SATURATED, 1);
	stays_saturated(&wmem);
}

/* The same by the last unit: a borrow must not make it look like another. */
static void c13_wmem_deficit_of_the_last_unit_pins(void **state)
{
	static const uint32_t more[] = { 1, 1500, CHARGE_MAX };
	struct dstref_wmem wmem;

	(void)state;
	for (int i = 0; i < 3; i++) {
		dstref_wmem_init(&wmem);
		assert_true(dstref_wmem_charge(&wmem, 0, NULL));
		assert_false(dstref_wmem_close(&wmem, NULL));
		assert_false(dstref_wmem_uncharge(&wmem, more[i], NULL));
		capture_expect(DSTREF_REPORT_WMEM_SATURATED, 1);
		stays_saturated(&wmem);
	}
}

/* C7 at this level: what was left behind is told in bytes. */
static void c07_wmem_residue_is_reported(void **state)
{
	struct dstref_wmem wmem;
	uint64_t after;

	(void)state;
	dstref_wmem_init(&wmem);
	assert_true(dstref_wmem_charge(&wmem, 1000, NULL));
	assert_false(dstref_wmem_close(&wmem, NULL));
	assert_true(dstref_wmem_uncharge(&wmem, 900, &after));
	assert_true(dstref_wmem_value_bytes(after) == 100);
	capture_expect(DSTREF_REPORT_WMEM_RESIDUE, 1);
	assert_int_equal(capture_report(0)->value, 100);
	assert_ptr_equal(capture_report(0)->object, &wmem);
	assert_true(dstref_wmem_read(&wmem) == DEAD);
}

static void wmem_dead_is_sticky(void **state)
{
	struct dstref_wmem wmem;
	uint64_t before;

	(void)state;
	dstref_wmem_init(&wmem);
	assert_true(dstref_wmem_close(&wmem, NULL));
	for (int i = 0; i < 10; i++) {
		assert_false(dstref_wmem_charge(&wmem, CHARGE_MAX, &before));
		assert_int_equal(dstref_wmem_value_units(before), 0);
		assert_false(dstref_wmem_uncharge(&wmem, CHARGE_MAX, NULL));
		assert_false(dstref_wmem_close(&wmem, NULL));
		(void)dstref_wmem_recharge(&wmem, 0, 1);
		(void)dstref_wmem_recharge(&wmem, 1, 0);
		expect(&wmem, 0, 0);
	}
	capture_expect(DSTREF_REPORT_WMEM_UNDERFLOW, 20);
	capture_expect_some(DSTREF_REPORT_WMEM_DEAD);
	assert_true(dstref_wmem_read(&wmem) == DEAD);
}

/* The last unit is gone, its taker has not pinned the word yet. */
static void wmem_misuse_before_the_end_is_pinned(void **state)
{
	struct dstref_wmem wmem = wmem_at(value_of(0, 0));

	(void)state;
	assert_int_equal(dstref_wmem_value_units(dstref_wmem_read(&wmem)), 0);
	assert_false(dstref_wmem_charge(&wmem, 100, NULL));
	capture_expect(DSTREF_REPORT_WMEM_DEAD, 1);
	expect(&wmem, 0, 0);
	wmem = wmem_at(value_of(0, 0));
	assert_false(dstref_wmem_uncharge(&wmem, 100, NULL));
	capture_expect(DSTREF_REPORT_WMEM_UNDERFLOW, 1);
	expect(&wmem, 0, 0);
}

static void wmem_underflow_names_the_account(void **state)
{
	struct dstref_wmem wmem;

	(void)state;
	dstref_wmem_init(&wmem);
	assert_true(dstref_wmem_close(&wmem, NULL));
	assert_false(dstref_wmem_uncharge(&wmem, 1, NULL));
	capture_expect(DSTREF_REPORT_WMEM_UNDERFLOW, 1);
	assert_ptr_equal(capture_report(0)->object, &wmem);
	assert_false(dstref_wmem_charge(&wmem, 1, NULL));
	capture_expect(DSTREF_REPORT_WMEM_DEAD, 1);
	assert_ptr_equal(capture_report(1)->object, &wmem);
	assert_string_equal(capture_report(1)->call, "dstref_wmem_charge");
}

static void wmem_values_say_units_and_bytes(void **state)
{
	static const int64_t most = (INT64_C(1) << 39) - 1;

	(void)state;
	for (uint32_t units = 1; units <= UNITS_MAX; units += UNITS_MAX / 7) {
		assert_int_equal(dstref_wmem_value_units(value_of(units, most)),
				 units);
		assert_true(dstref_wmem_value_bytes(value_of(units, most)) ==
			    most);
		assert_true(dstref_wmem_value_bytes(value_of(units, 0)) == 0);
	}
	assert_true(dstref_wmem_value_bytes(value_of(3, -5)) == -5);
	assert_int_equal(dstref_wmem_value_units(DEAD), 0);
	assert_int_equal(dstref_wmem_value_units(RELEASED), 0);
	assert_true(dstref_wmem_value_units(SATURATED) > UNITS_MAX);
	assert_true(dstref_wmem_value_bytes(SATURATED) == 0);
	assert_true(dstref_wmem_value_bytes(value_of(2, 7) |
					    DSTREF_WMEM_WAITER) == 7);
}

static void wmem_wakes_at_the_limit(void **state)
{
	struct dstref_wmem wmem;
	uint64_t after;

	(void)state;
	dstref_wmem_init(&wmem);
	for (int i = 0; i < 3; i++)
		assert_true(dstref_wmem_charge(&wmem, 1000, NULL));
	assert_false(dstref_wmem_uncharge(&wmem, 1000, &after));
	assert_false(dstref_wmem_value_wakes(after, UINT32_MAX));
	after = dstref_wmem_wait(&wmem);
	assert_true(after == (value_of(3, 2000) | DSTREF_WMEM_WAITER));
	assert_true(after == dstref_wmem_read(&wmem));
	assert_false(dstref_wmem_value_wakes(after, 1999));
	assert_true(dstref_wmem_value_wakes(after, 2000));
	assert_false(dstref_wmem_uncharge(&wmem, 1000, &after));
	assert_false(dstref_wmem_value_wakes(after, 999));
	assert_true(dstref_wmem_value_wakes(after, 1000));
	after = dstref_wmem_recharge(&wmem, 1000, 0);
	assert_true(dstref_wmem_value_wakes(after, 0));
	assert_true(dstref_wmem_wait(&wmem) == after); /* twice is once */
	dstref_wmem_wait_end(&wmem);
	assert_true(dstref_wmem_read(&wmem) == value_of(2, 0));
	assert_false(dstref_wmem_value_wakes(dstref_wmem_read(&wmem), 0));
}

/* The mark is no byte and no unit: the end is told through it. */
static void wmem_mark_does_not_disturb_the_end(void **state)
{
	struct dstref_wmem wmem;
	uint64_t after;

	(void)state;
	dstref_wmem_init(&wmem);
	assert_true(dstref_wmem_charge(&wmem, 10, NULL));
	(void)dstref_wmem_wait(&wmem);
	assert_true(dstref_wmem_charge(&wmem, 20, NULL));
	assert_false(dstref_wmem_close(&wmem, &after));
	assert_true(dstref_wmem_value_wakes(after, 30));
	assert_false(dstref_wmem_uncharge(&wmem, 10, NULL));
	assert_true(dstref_wmem_uncharge(&wmem, 20, &after));
	assert_true(dstref_wmem_value_wakes(after, 0));
	assert_int_equal(dstref_wmem_value_units(after), 0);
}

/* Who waited when it was pinned is still to be woken, by the next uncharge. */
static void wmem_saturated_keeps_the_mark(void **state)
{
	struct dstref_wmem wmem;
	uint64_t after;

	(void)state;
	dstref_init_plain(&wmem.word, value_of(UNITS_MAX, 0));
	(void)dstref_wmem_wait(&wmem);
	assert_true(dstref_wmem_charge(&wmem, 1, NULL));
	capture_expect(DSTREF_REPORT_WMEM_SATURATED, 1);
	assert_false(dstref_wmem_uncharge(&wmem, 1, &after));
	assert_true(dstref_wmem_value_wakes(after, 0));
}

static void wmem_null_is_reported_in_debug(void **state)
{
	(void)state;
	if (!DSTREF_DEBUG)
		skip();
	assert_false(dstref_wmem_charge(NULL, 1, NULL));
	assert_false(dstref_wmem_uncharge(NULL, 1, NULL));
	assert_false(dstref_wmem_close(NULL, NULL));
	assert_true(dstref_wmem_recharge(NULL, 1, 2) == 0);
	capture_expect(DSTREF_REPORT_NULL_ARGUMENT, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		capture_test(wmem_starts_at_one),
		capture_test(wmem_charge_tells_if_it_was_empty),
		capture_test(wmem_uncharge_gives_the_value_after),
		capture_test(wmem_every_order_tells_the_last),
		capture_test(wmem_charge_of_zero_pins),
		capture_test(c08_wmem_closed_with_packets_out),
		capture_test(wmem_recharge_keeps_the_unit),
		capture_test(wmem_cut_is_the_same_on_both_sides),
		capture_test(c13_wmem_saturates_by_units),
		capture_test(c13_wmem_saturates_by_bytes),
		capture_test(c13_wmem_deficit_pins),
		capture_test(c13_wmem_deficit_of_the_last_unit_pins),
		capture_test(c07_wmem_residue_is_reported),
		capture_test(wmem_dead_is_sticky),
		capture_test(wmem_misuse_before_the_end_is_pinned),
		capture_test(wmem_underflow_names_the_account),
		capture_test(wmem_values_say_units_and_bytes),
		capture_test(wmem_wakes_at_the_limit),
		capture_test(wmem_mark_does_not_disturb_the_end),
		capture_test(wmem_saturated_keeps_the_mark),
		capture_test(wmem_null_is_reported_in_debug),
	};

	return cmocka_run_group_tests_name("wmem", tests, NULL, NULL);
}
