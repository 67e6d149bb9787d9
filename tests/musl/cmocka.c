/* SPDX-License-Identifier: MIT */
/*
 * cmocka - runs tests, one after the other, in this process
 *
 * A failed assert leaves its test by longjmp(), as in cmocka; it is called by
 * the thread that runs the test, never by one that the test started. A test
 * passes when it and its teardown do.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include "cmocka.h"

enum outcome {
	PASSED, /* what setjmp() returns at first */
	FAILED,
	SKIPPED
};

static jmp_buf leave;

void cmocka_fail(const char *file, int line)
{
	print_error("%s:%d: failure\n", file, line);
	longjmp(leave, FAILED);
}

void cmocka_skip(void)
{
	longjmp(leave, SKIPPED);
}

void print_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
}

void cmocka_int_equal(uintmax_t a, uintmax_t b, const char *text,
		      const char *file, int line)
{
	if (a == b)
		return;
	print_error("%s does not hold: %" PRIuMAX ", %" PRIuMAX "\n", text, a,
		    b);
	cmocka_fail(file, line);
}

/* A fixture: 0, or -1 when it fails, by its result or by an assert. */
static int fixture(CMFixtureFunction fn, void **state)
{
	if (!fn)
		return 0;
	if (setjmp(leave))
		return -1;
	return fn(state);
}

static enum outcome body(const struct CMUnitTest *test, void **state)
{
	switch (setjmp(leave)) {
	case PASSED:
		test->test(state);
		return PASSED;
	case SKIPPED:
		return SKIPPED;
	default:
		return FAILED;
	}
}

static enum outcome run(const struct CMUnitTest *test)
{
	enum outcome outcome;
	void *state = NULL;

	if (fixture(test->setup, &state))
		return FAILED;
	outcome = body(test, &state);
	return fixture(test->teardown, &state) ? FAILED : outcome;
}

int cmocka_run(const char *name, const struct CMUnitTest *tests, size_t count,
	       CMFixtureFunction setup, CMFixtureFunction teardown)
{
	static const char *const words[] = { "passed", "FAILED", "skipped" };
	void *state = NULL;
	int failed = 0;

	if (fixture(setup, &state))
		return (int)count;
	for (size_t i = 0; i < count; i++) {
		enum outcome outcome = run(&tests[i]);

		printf("%s.%s: %s\n", name, tests[i].name, words[outcome]);
		fflush(stdout);
		failed += outcome == FAILED;
	}
	return fixture(teardown, &state) ? failed + 1 : failed;
}
