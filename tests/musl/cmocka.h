/* SPDX-License-Identifier: MIT */
/*
 * cmocka - the part of it that the tests of floors 0 to 2 use
 *
 * Debian's libcmocka is linked to glibc, and one program cannot have two C
 * libraries. The calls are cmocka's own, so the tests are the same files; the
 * rest of cmocka is not here, and a test that needs it does not compile.
 */
#ifndef TESTS_MUSL_CMOCKA_H
#define TESTS_MUSL_CMOCKA_H

#include <stdint.h>
#include <string.h>

typedef int (*CMFixtureFunction)(void **state);

struct CMUnitTest {
	const char *name;
	void (*test)(void **state);
	CMFixtureFunction setup, teardown;
};

#define cmocka_unit_test(fn) cmocka_unit_test_setup_teardown(fn, NULL, NULL)
#define cmocka_unit_test_setup_teardown(fn, before, after)                  \
	{                                                                   \
		.name = #fn, .test = fn, .setup = before, .teardown = after \
	}
#define cmocka_run_group_tests_name(name, tests, setup, teardown)          \
	cmocka_run(name, tests, sizeof(tests) / sizeof((tests)[0]), setup, \
		   teardown)

/* Returns how many tests did not pass. */
int cmocka_run(const char *name, const struct CMUnitTest *tests, size_t count,
	       CMFixtureFunction setup, CMFixtureFunction teardown);

/* Leave the test that runs. */
_Noreturn void cmocka_fail(const char *file, int line);
_Noreturn void cmocka_skip(void);

void print_error(const char *format, ...);

#define _fail(file, line) cmocka_fail((file), (line))
#define fail() cmocka_fail(__FILE__, __LINE__)
#define skip() cmocka_skip()

#define cmocka_assert(condition, text)                           \
	do {                                                     \
		if (!(condition)) {                              \
			print_error("%s does not hold\n", text); \
			fail();                                  \
		}                                                \
	} while (0)

#define assert_true(x) cmocka_assert(x, #x)
#define assert_false(x) cmocka_assert(!(x), "!(" #x ")")
#define assert_null(p) cmocka_assert(!(p), #p " == NULL")
#define assert_non_null(p) cmocka_assert(p, #p " != NULL")
#define assert_ptr_equal(a, b) \
	cmocka_assert((const void *)(a) == (const void *)(b), #a " == " #b)
#define assert_string_equal(a, b) \
	cmocka_assert(!strcmp((a), (b)), #a " equals " #b)
#define assert_string_not_equal(a, b) \
	cmocka_assert(strcmp((a), (b)), #a " differs from " #b)
#define assert_in_range(x, least, most)                            \
	cmocka_assert((uintmax_t)(x) >= (uintmax_t)(least) &&      \
			      (uintmax_t)(x) <= (uintmax_t)(most), \
		      #x " in " #least " to " #most)
#define assert_int_equal(a, b)                                         \
	cmocka_int_equal((uintmax_t)(a), (uintmax_t)(b), #a " == " #b, \
			 __FILE__, __LINE__)

void cmocka_int_equal(uintmax_t a, uintmax_t b, const char *text,
		      const char *file, int line);

#endif
