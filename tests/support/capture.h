/* SPDX-License-Identifier: MIT */
/*
 * capture - every report is expected, or the test fails
 *
 * A test's setup installs a hook that keeps what was reported; the test says
 * which reports it expects, and how many; the teardown fails it if any other
 * was made. Reports may come from any thread; all other calls here belong to
 * the test's own.
 */
#ifndef TESTS_CAPTURE_H
#define TESTS_CAPTURE_H

#include <dstref/report.h>

#define CAPTURE_KEPT 256

/* A report as it was delivered; text and call are copies, "" for NULL. */
struct capture_report {
	enum dstref_report_kind kind;
	const void *object;
	uint64_t value;
	uint64_t seen;
	char call[64];
	char text[192];
};

/* For cmocka_unit_test_setup_teardown(): all reports reach the hook. */
int capture_setup(void **state);
int capture_teardown(void **state);

/* A test of cmocka's with both. */
#define capture_test(fn) \
	cmocka_unit_test_setup_teardown(fn, capture_setup, capture_teardown)

/* Fails unless @kind was reported @n times since it was last expected. */
#define capture_expect(kind, n) \
	capture_expect_at((kind), (n), (n), __FILE__, __LINE__)

/* The same for one or more times, where it is a race how many. */
#define capture_expect_some(kind) \
	capture_expect_at((kind), 1, UINT64_MAX, __FILE__, __LINE__)

/* Fails if anything was reported that was not expected. */
#define capture_expect_none() capture_expect_none_at(__FILE__, __LINE__)

void capture_expect_at(enum dstref_report_kind kind, uint64_t least,
		       uint64_t most, const char *file, int line);
void capture_expect_none_at(const char *file, int line);

/* Delivered to the hook since setup: how many, the i-th (NULL: not kept). */
unsigned int capture_delivered(void);
const struct capture_report *capture_report(unsigned int i);

/* The newest of a kind, NULL when there is none. */
const struct capture_report *capture_last(enum dstref_report_kind kind);

#endif
