/* SPDX-License-Identifier: MIT */
/*
 * capture - every report is expected, or the test fails
 *
 * The library's counters are the truth: they count what the rate limit keeps
 * from the hook, too. "Expected" is a second set of counters, and a test ends
 * well when the two agree. The hook keeps the first CAPTURE_KEPT reports under
 * a mutex; it is called from the threads of a stress test.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "capture.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct capture_report kept[CAPTURE_KEPT];
static unsigned int delivered;
static uint64_t expected[DSTREF_REPORT_KIND_COUNT];

static void copy(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from ? from : "");
}

static void keep(const struct dstref_report *report, void *ctx)
{
	(void)ctx;
	pthread_mutex_lock(&lock);
	if (delivered < CAPTURE_KEPT) {
		struct capture_report *to = &kept[delivered];

		to->kind = report->kind;
		to->object = report->object;
		to->value = report->value;
		to->seen = report->seen;
		copy(to->call, sizeof(to->call), report->call);
		copy(to->text, sizeof(to->text), report->text);
	}
	delivered++;
	pthread_mutex_unlock(&lock);
}

static const struct dstref_report_hook hook = { keep, NULL };

int capture_setup(void **state)
{
	(void)state;
	delivered = 0;
	memset(kept, 0, sizeof(kept));
	memset(expected, 0, sizeof(expected));
	dstref_report_reset();
	dstref_report_set_limit(UINT64_MAX);
	(void)dstref_report_set_hook(&hook);
	return 0;
}

/* Prints what nobody expected; returns how many kinds. */
static int print_unexpected(void)
{
	int kinds = 0;

	for (int kind = 0; kind < DSTREF_REPORT_KIND_COUNT; kind++) {
		uint64_t n = dstref_report_count(kind);
		const struct capture_report *last;

		if (n == expected[kind])
			continue;
		kinds++;
		print_error("%s: reported %" PRIu64 " times, expected %" PRIu64
			    "\n",
			    dstref_report_name(kind), n, expected[kind]);
		last = capture_last(kind);
		if (last)
			print_error("  by %s, value 0x%" PRIx64 "\n",
				    last->call, last->value);
	}
	return kinds;
}

int capture_teardown(void **state)
{
	(void)state;
	(void)dstref_report_set_hook(NULL);
	dstref_report_set_limit(8);
	return print_unexpected() ? -1 : 0;
}

void capture_expect_at(enum dstref_report_kind kind, uint64_t least,
		       uint64_t most, const char *file, int line)
{
	uint64_t n = dstref_report_count(kind) - expected[kind];

	expected[kind] += n;
	if (n >= least && n <= most)
		return;
	print_error("%s: reported %" PRIu64 " times, not %" PRIu64 "%s\n",
		    dstref_report_name(kind), n, least,
		    most > least ? " or more" : "");
	_fail(file, line);
}

void capture_expect_none_at(const char *file, int line)
{
	if (print_unexpected())
		_fail(file, line);
}

unsigned int capture_delivered(void)
{
	unsigned int n;

	pthread_mutex_lock(&lock);
	n = delivered;
	pthread_mutex_unlock(&lock);
	return n;
}

const struct capture_report *capture_report(unsigned int i)
{
	unsigned int n = capture_delivered();

	return i < n && i < CAPTURE_KEPT ? &kept[i] : NULL;
}

const struct capture_report *capture_last(enum dstref_report_kind kind)
{
	unsigned int i = capture_delivered();

	if (i > CAPTURE_KEPT)
		i = CAPTURE_KEPT;
	while (i--)
		if (kept[i].kind == kind)
			return &kept[i];
	return NULL;
}
