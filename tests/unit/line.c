/* SPDX-License-Identifier: MIT */
/*
 * unit.line - groups start lines, and the asserts hold what they say
 *
 * Goal: a struct cut with DSTREF_LINE_START has its groups on lines of their
 * own, wherever it is placed. Method: the asserts at compile time on a struct
 * that is right, the same facts at run time, and elements of an array. That a
 * wrong struct does not compile is tested elsewhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dstref/line.h>

struct route {
	DSTREF_LINE_START void *ops;
	void *dev;
	DSTREF_LINE_START uint32_t refs;
	uint32_t lastuse;
	DSTREF_LINE_START char name[DSTREF_LINE_SIZE + 1];
};

DSTREF_ASSERT_OFFSET(struct route, ops, 0);
DSTREF_ASSERT_OFFSET(struct route, refs, DSTREF_LINE_SIZE);
DSTREF_ASSERT_SIZE(struct route, 4 * DSTREF_LINE_SIZE);
DSTREF_ASSERT_LINES(struct route, 4);
DSTREF_ASSERT_LINE_START(struct route, refs);
DSTREF_ASSERT_LINE_START(struct route, name);
DSTREF_ASSERT_SAME_LINE(struct route, ops, dev);
DSTREF_ASSERT_SAME_LINE(struct route, refs, lastuse);
DSTREF_ASSERT_OTHER_LINE(struct route, dev, refs);
DSTREF_ASSERT_OTHER_LINE(struct route, lastuse, name);

static void line_of_counts_from_zero(void **state)
{
	(void)state;
	assert_int_equal(DSTREF_LINE_OF(struct route, ops), 0);
	assert_int_equal(DSTREF_LINE_OF(struct route, dev), 0);
	assert_int_equal(DSTREF_LINE_OF(struct route, refs), 1);
	assert_int_equal(DSTREF_LINE_OF(struct route, name), 2);
	assert_int_equal(
		DSTREF_LINE_OF(struct route, name[DSTREF_LINE_SIZE - 1]), 2);
	assert_int_equal(DSTREF_LINE_OF(struct route, name[DSTREF_LINE_SIZE]),
			 3);
}

static void line_round_is_up(void **state)
{
	(void)state;
	assert_int_equal(DSTREF_LINE_ROUND(0), 0);
	assert_int_equal(DSTREF_LINE_ROUND(1), DSTREF_LINE_SIZE);
	assert_int_equal(DSTREF_LINE_ROUND(DSTREF_LINE_SIZE - 1),
			 DSTREF_LINE_SIZE);
	assert_int_equal(DSTREF_LINE_ROUND(DSTREF_LINE_SIZE), DSTREF_LINE_SIZE);
	assert_int_equal(DSTREF_LINE_ROUND(DSTREF_LINE_SIZE + 1),
			 2 * DSTREF_LINE_SIZE);
	assert_int_equal(DSTREF_LINE_ROUND(1 + 1) / DSTREF_LINE_SIZE, 1);
}

/* C22: neighbours in an array share no line. */
static void c22_line_elements_share_none(void **state)
{
	static struct route routes[64];

	(void)state;
	assert_int_equal(DSTREF_ALIGNOF(struct route), DSTREF_LINE_SIZE);
	for (int i = 0; i < 64; i++) {
		assert_int_equal((uintptr_t)&routes[i] % DSTREF_LINE_SIZE, 0);
		assert_int_equal((uintptr_t)&routes[i].refs % DSTREF_LINE_SIZE,
				 0);
	}
	assert_int_equal(sizeof(routes), 64 * 4 * DSTREF_LINE_SIZE);
}

static void line_start_holds_on_the_stack(void **state)
{
	char before = 1;
	struct route route = { .refs = 1 };

	(void)state;
	assert_int_equal((uintptr_t)&route % DSTREF_LINE_SIZE, 0);
	assert_int_equal(before + (int)route.refs, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line_of_counts_from_zero),
		cmocka_unit_test(line_round_is_up),
		cmocka_unit_test(c22_line_elements_share_none),
		cmocka_unit_test(line_start_holds_on_the_stack),
	};

	return cmocka_run_group_tests_name("line", tests, NULL, NULL);
}
