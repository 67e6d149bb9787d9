/* SPDX-License-Identifier: MIT */
/*
 * unit.report - names, counters, the rate limit and the hook
 *
 * Goal: names are part of the ABI and do not change; every report is counted;
 * the hook sees what was raised, thinned as documented; the default prints one
 * line and the abort hook ends the program. Method: the names are written out
 * here once more; stderr goes through a pipe; the abort happens in a child.
 */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture.h"
#include "stress.h"

#define CALL "dstref_some_call"

/* In the order of the enum; new kinds go to the end. */
static const char *const names[] = {
	"count-saturated", "count-underflow", "count-range",	"count-crowded",
	"wmem-saturated",  "wmem-underflow",  "wmem-dead",	"wmem-residue",
	"wmem-range",	   "null-argument",   "reader-missing", "reader-blocks",
	"dst-hold-dead",   "sock-hold-dead",  "net-busy",	"net-leak",
	"net-tick",	   "abi-mismatch",    "net-memory",
};

static void raise_times(enum dstref_report_kind kind, uint64_t times)
{
	for (uint64_t i = 0; i < times; i++)
		dstref_report_raise(kind, CALL, &names, i, "a text");
}

static void report_names_are_stable(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_string_equal(dstref_report_name(i), names[i]);
	assert_int_equal(DSTREF_REPORT_COUNT_SATURATED, 0);
	assert_int_equal(DSTREF_REPORT_WMEM_SATURATED, 4);
	assert_int_equal(DSTREF_REPORT_ABI_MISMATCH, 17);
}

static void report_each_kind_has_name_and_cause(void **state)
{
	(void)state;
	for (int i = 0; i < DSTREF_REPORT_KIND_COUNT; i++) {
		assert_true(strlen(dstref_report_name(i)) > 0);
		assert_true(strlen(dstref_report_cause(i)) > 20);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(dstref_report_name(i),
						dstref_report_name(j));
	}
}

static void report_unknown_kind_is_nothing(void **state)
{
	enum dstref_report_kind unknown[] = {
		DSTREF_REPORT_KIND_COUNT,
		(enum dstref_report_kind)(DSTREF_REPORT_KIND_COUNT + 1),
		(enum dstref_report_kind) - 1,
	};

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_null(dstref_report_name(unknown[i]));
		assert_null(dstref_report_cause(unknown[i]));
		dstref_report_raise(unknown[i], CALL, NULL, 0, NULL);
		assert_int_equal(dstref_report_count(unknown[i]), 0);
	}
	assert_int_equal(dstref_report_total(), 0);
	assert_int_equal(capture_delivered(), 0);
}

static void report_counters_and_reset(void **state)
{
	(void)state;
	for (int kind = 0; kind < DSTREF_REPORT_KIND_COUNT; kind++)
		raise_times(kind, kind + 1);
	for (int kind = 0; kind < DSTREF_REPORT_KIND_COUNT; kind++)
		assert_int_equal(dstref_report_count(kind), kind + 1);
	assert_int_equal(dstref_report_total(),
			 DSTREF_REPORT_KIND_COUNT *
				 (DSTREF_REPORT_KIND_COUNT + 1) / 2);
	dstref_report_reset();
	assert_int_equal(dstref_report_total(), 0);
	assert_int_equal(dstref_report_count(DSTREF_REPORT_NET_LEAK), 0);
}

static void report_hook_sees_what_was_raised(void **state)
{
	const struct capture_report *report;

	(void)state;
	dstref_report_raise(DSTREF_REPORT_NET_LEAK, CALL, &names, 77, "words");
	dstref_report_raise(DSTREF_REPORT_NET_LEAK, CALL, NULL, 78, NULL);
	assert_int_equal(capture_delivered(), 2);
	report = capture_report(0);
	assert_int_equal(report->kind, DSTREF_REPORT_NET_LEAK);
	assert_ptr_equal(report->object, &names);
	assert_int_equal(report->value, 77);
	assert_int_equal(report->seen, 1);
	assert_string_equal(report->call, CALL);
	assert_string_equal(report->text, "words");
	report = capture_last(DSTREF_REPORT_NET_LEAK);
	assert_null(report->object);
	assert_int_equal(report->value, 78);
	assert_int_equal(report->seen, 2);
	capture_expect(DSTREF_REPORT_NET_LEAK, 2);
}

/* Thinned: the first eight, then 16, 32, ...; the counter has them all. */
static void report_limit_thins(void **state)
{
	(void)state;
	dstref_report_set_limit(8);
	raise_times(DSTREF_REPORT_COUNT_RANGE, 1000);
	raise_times(DSTREF_REPORT_WMEM_RANGE, 8);
	capture_expect(DSTREF_REPORT_COUNT_RANGE, 1000);
	capture_expect(DSTREF_REPORT_WMEM_RANGE, 8);
	assert_int_equal(capture_delivered(), 8 + 6 + 8);
	for (unsigned int i = 0; i < 8; i++)
		assert_int_equal(capture_report(i)->seen, i + 1);
	for (unsigned int i = 8; i < 14; i++)
		assert_int_equal(capture_report(i)->seen, 1u << (i - 4));
	for (unsigned int i = 14; i < 22; i++)
		assert_int_equal(capture_report(i)->kind,
				 DSTREF_REPORT_WMEM_RANGE);
}

static void report_limit_need_not_be_a_power(void **state)
{
	static const uint64_t seen[] = { 1, 2, 3, 4, 5, 6, 7, 8, 16 };

	(void)state;
	dstref_report_set_limit(7);
	raise_times(DSTREF_REPORT_COUNT_RANGE, 16);
	capture_expect(DSTREF_REPORT_COUNT_RANGE, 16);
	assert_int_equal(capture_delivered(), 9);
	for (unsigned int i = 0; i < 9; i++)
		assert_int_equal(capture_report(i)->seen, seen[i]);
}

static void report_limit_zero_and_all(void **state)
{
	(void)state;
	dstref_report_set_limit(0);
	raise_times(DSTREF_REPORT_COUNT_RANGE, 7); /* 1, 2, 4 */
	assert_int_equal(capture_delivered(), 3);
	dstref_report_set_limit(UINT64_MAX);
	raise_times(DSTREF_REPORT_COUNT_RANGE, 100);
	assert_int_equal(capture_delivered(), 103);
	capture_expect(DSTREF_REPORT_COUNT_RANGE, 107);
}

static void count_call(const struct dstref_report *report, void *ctx)
{
	(void)report;
	++*(int *)ctx;
}

static void report_hook_swap_returns_the_old(void **state)
{
	int calls[2] = { 0, 0 };
	struct dstref_report_hook one = { count_call, &calls[0] };
	struct dstref_report_hook two = { count_call, &calls[1] };
	const struct dstref_report_hook *before = dstref_report_set_hook(&one);

	(void)state;
	assert_non_null(before);
	raise_times(DSTREF_REPORT_NET_BUSY, 1);
	assert_ptr_equal(dstref_report_set_hook(&two), &one);
	raise_times(DSTREF_REPORT_NET_BUSY, 2);
	assert_ptr_equal(dstref_report_set_hook(NULL), &two);
	assert_null(dstref_report_set_hook(before));
	raise_times(DSTREF_REPORT_NET_BUSY, 1);
	assert_int_equal(calls[0], 1);
	assert_int_equal(calls[1], 2);
	capture_expect(DSTREF_REPORT_NET_BUSY, 4);
	assert_int_equal(capture_delivered(), 1);
}

/* What @times reports to the default hook print on stderr. */
static size_t print_by_default(char *to, size_t size, int times)
{
	int saved = dup(STDERR_FILENO), ends[2];
	size_t length = 0;
	ssize_t n;

	assert_int_equal(pipe(ends), 0);
	fflush(stderr);
	dup2(ends[1], STDERR_FILENO);
	close(ends[1]);
	(void)dstref_report_set_hook(NULL);
	for (int i = 0; i < times; i++)
		dstref_report_raise(DSTREF_REPORT_COUNT_UNDERFLOW, CALL, to,
				    0xdfffffff, i ? NULL : "in words");
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	while ((n = read(ends[0], to + length, size - 1 - length)) > 0)
		length += (size_t)n;
	close(ends[0]);
	to[length] = '\0';
	return length;
}

static void report_default_prints_one_line(void **state)
{
	char text[4096], pointer[64];
	size_t length = print_by_default(text, sizeof(text), 1);

	(void)state;
	capture_expect(DSTREF_REPORT_COUNT_UNDERFLOW, 1);
	assert_true(length > 0);
	assert_ptr_equal(strchr(text, '\n'), text + length - 1);
	snprintf(pointer, sizeof(pointer), "%p", (void *)text);
	assert_non_null(strstr(text, "count-underflow"));
	assert_non_null(strstr(text, CALL));
	assert_non_null(strstr(text, pointer));
	assert_non_null(strstr(text, "dfffffff"));
	assert_non_null(strstr(text, "in words"));
	assert_non_null(strstr(
		text, dstref_report_cause(DSTREF_REPORT_COUNT_UNDERFLOW)));
}

static void report_default_is_thinned_too(void **state)
{
	char text[16384];
	int lines = 0;

	(void)state;
	dstref_report_set_limit(8);
	print_by_default(text, sizeof(text), 20);
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	assert_int_equal(lines, 9);
	capture_expect(DSTREF_REPORT_COUNT_UNDERFLOW, 20);
}

/* The child's stderr is closed: the parent's output stays clean. */
static void report_abort_hook_aborts(void **state)
{
	static const struct dstref_report_hook hook = { dstref_report_abort,
							NULL };
	struct rlimit no_core = { 0, 0 };
	int status;
	pid_t child = fork();

	(void)state;
	assert_true(child >= 0);
	if (!child) {
		signal(SIGABRT, SIG_DFL);
		setrlimit(RLIMIT_CORE, &no_core);
		close(STDERR_FILENO);
		(void)dstref_report_set_hook(&hook);
		dstref_report_raise(DSTREF_REPORT_NET_BUSY, CALL, NULL, 0,
				    NULL);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

/* Meets now and then, so that no thread is done before another began. */
static void raise_many(struct stress_thread *thread)
{
	for (int i = 0; i < 40; i++) {
		stress_meet(thread);
		raise_times(thread->index % 2 ? DSTREF_REPORT_NET_TICK
					      : DSTREF_REPORT_WMEM_DEAD,
			    500);
	}
}

static void report_concurrent_raising_is_exact(void **state)
{
	struct stress run = { .threads = 4 };

	(void)state;
	dstref_report_set_limit(0);
	stress_run(&run, raise_many, NULL);
	capture_expect(DSTREF_REPORT_NET_TICK, 40000);
	capture_expect(DSTREF_REPORT_WMEM_DEAD, 40000);
	/* 2^0 .. 2^15 of each: no number was given out twice. */
	assert_int_equal(capture_delivered(), 32);
}

/* What keeps a namespace is named in full, whatever the limit. */
static void report_what_is_left_is_not_thinned(void **state)
{
	(void)state;
	dstref_report_set_limit(0);
	raise_times(DSTREF_REPORT_NET_BUSY, 100);
	raise_times(DSTREF_REPORT_NET_LEAK, 100);
	capture_expect(DSTREF_REPORT_NET_BUSY, 100);
	capture_expect(DSTREF_REPORT_NET_LEAK, 100);
	assert_int_equal(capture_delivered(), 200);
}

static void report_null_argument_by_build(void **state)
{
	(void)state;
	assert_true(dstref_debug_arg(&names, CALL));
	assert_int_equal(dstref_debug_arg(NULL, CALL), !DSTREF_DEBUG);
	capture_expect(DSTREF_REPORT_NULL_ARGUMENT, DSTREF_DEBUG);
	if (DSTREF_DEBUG)
		assert_string_equal(capture_report(0)->call, CALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		capture_test(report_names_are_stable),
		capture_test(report_each_kind_has_name_and_cause),
		capture_test(report_unknown_kind_is_nothing),
		capture_test(report_counters_and_reset),
		capture_test(report_hook_sees_what_was_raised),
		capture_test(report_limit_thins),
		capture_test(report_limit_need_not_be_a_power),
		capture_test(report_limit_zero_and_all),
		capture_test(report_hook_swap_returns_the_old),
		capture_test(report_default_prints_one_line),
		capture_test(report_default_is_thinned_too),
		capture_test(report_abort_hook_aborts),
		capture_test(report_concurrent_raising_is_exact),
		capture_test(report_what_is_left_is_not_thinned),
		capture_test(report_null_argument_by_build),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
