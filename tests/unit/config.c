/* SPDX-License-Identifier: MIT */
/*
 * unit.config - what the library was built as is what its headers say
 *
 * Goal: a unit built with the package's flags agrees with the library on
 * version and line size. Method: ask both.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dstref/config.h>

static void config_version_agrees(void **state)
{
	(void)state;
	assert_int_equal(dstref_version(), DSTREF_VERSION);
	assert_int_equal(dstref_version() / 10000, DSTREF_VERSION_MAJOR);
	assert_int_equal(dstref_version() / 100 % 100, DSTREF_VERSION_MINOR);
	assert_int_equal(dstref_version() % 100, DSTREF_VERSION_PATCH);
}

static void config_line_size_agrees(void **state)
{
	(void)state;
	assert_int_equal(dstref_line_size(), DSTREF_LINE_SIZE);
}

/* Debug checks may be on or off, but a unit knows which. */
static void config_debug_is_a_number(void **state)
{
	(void)state;
	assert_true(DSTREF_DEBUG == 0 || DSTREF_DEBUG == 1);
#ifdef NDEBUG
	assert_int_equal(DSTREF_DEBUG, 0);
#endif
}

static void config_hints_keep_the_truth(void **state)
{
	(void)state;
	assert_true(dstref_likely(2) && !dstref_likely(0));
	assert_true(dstref_unlikely(2) && !dstref_unlikely(0));
	assert_int_equal(dstref_likely(2), 1);
	assert_int_equal(dstref_unlikely(2), 1);
}

static void config_align_macros(void **state)
{
	struct wide {
		DSTREF_ALIGNED(32) char c;
	};

	(void)state;
	DSTREF_STATIC_ASSERT(sizeof(struct wide) == 32, "aligned pads");
	assert_int_equal(DSTREF_ALIGNOF(struct wide), 32);
	assert_int_equal(DSTREF_ALIGNOF(char), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(config_version_agrees),
		cmocka_unit_test(config_line_size_agrees),
		cmocka_unit_test(config_debug_is_a_number),
		cmocka_unit_test(config_hints_keep_the_truth),
		cmocka_unit_test(config_align_macros),
	};

	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
