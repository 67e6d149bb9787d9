/* SPDX-License-Identifier: MIT */
/*
 * stress.report - reports from many threads while the hook changes
 *
 * Goal: a hook is called with its own argument, whole, whoever changes it
 * meanwhile; no report is lost or numbered twice. Method: one thread installs
 * hook after hook, each freshly written; the others report as fast as they
 * can. The sum of what all hooks saw is what was raised, and each number was
 * seen once. Under the thread sanitizer a hook published without order is a
 * race.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "capture.h"
#include "stress.h"

#define CHUNKS 400 /* after each all threads meet, so that none runs alone */
#define HOOKS (50 * CHUNKS)
#define RAISED ((TESTS_TSAN ? 500 : 20000) * CHUNKS) /* per thread */
#define RAISERS 3
#define MAGIC UINT64_C(0x7265706f72740000)

struct context {
	uint64_t magic;
	struct shared *shared;
	DSTREF_ATOMIC(uint64_t) calls;
};

struct shared {
	struct context contexts[HOOKS];
	struct dstref_report_hook hooks[HOOKS];
	DSTREF_ATOMIC(uint8_t) numbers[RAISERS * RAISED + 1];
	DSTREF_ATOMIC(uint64_t) wrong;
};

static void wrong_if(struct shared *shared, bool wrong)
{
	if (wrong)
		(void)dstref_fetch_add_relaxed(&shared->wrong, UINT64_C(1));
}

static void seen(const struct dstref_report *report, void *ctx)
{
	struct context *context = ctx;
	struct shared *shared = context->shared;

	wrong_if(shared, context->magic != MAGIC);
	wrong_if(shared, report->kind != DSTREF_REPORT_NET_LEAK);
	wrong_if(shared, report->object != shared);
	(void)dstref_fetch_add_relaxed(&context->calls, UINT64_C(1));
	if (report->seen > RAISERS * RAISED)
		wrong_if(shared, true);
	else
		(void)dstref_fetch_add_relaxed(&shared->numbers[report->seen],
					       (uint8_t)1);
}

static void install(struct shared *shared, unsigned int i)
{
	const struct dstref_report_hook *old;

	shared->contexts[i].magic = MAGIC;
	shared->contexts[i].shared = shared;
	shared->hooks[i].fn = seen;
	shared->hooks[i].ctx = &shared->contexts[i];
	old = dstref_report_set_hook(&shared->hooks[i]);
	wrong_if(shared, i && old != &shared->hooks[i - 1]);
}

static void swap(struct stress_thread *thread)
{
	for (unsigned int i = 1; i < HOOKS; i++) {
		if (i % (HOOKS / CHUNKS) == 1)
			stress_meet(thread);
		install(thread->arg, i);
	}
}

static void raise_all(struct stress_thread *thread)
{
	for (unsigned int i = 0; i < RAISED; i++) {
		if (i % (RAISED / CHUNKS) == 0)
			stress_meet(thread);
		dstref_report_raise(DSTREF_REPORT_NET_LEAK, "raise_all",
				    thread->arg, i, NULL);
	}
}

static void swap_or_raise(struct stress_thread *thread)
{
	if (thread->index)
		raise_all(thread);
	else
		swap(thread);
}

static void report_hooks_swapped_under_fire(void **state)
{
	struct shared *shared = calloc(1, sizeof(*shared));
	struct stress run = { .threads = 1 + RAISERS, .arg = shared };
	uint64_t calls = 0, twice = 0, used = 0;

	(void)state;
	assert_non_null(shared);
	install(shared, 0);
	stress_run(&run, swap_or_raise, NULL);
	(void)dstref_report_set_hook(NULL);
	for (unsigned int i = 0; i < HOOKS; i++) {
		uint64_t n = dstref_load_relaxed(&shared->contexts[i].calls);

		calls += n;
		used += n > 0;
	}
	for (unsigned int i = 1; i <= RAISERS * RAISED; i++)
		twice += dstref_load_relaxed(&shared->numbers[i]) != 1;
	stress_assert_equal(&run, dstref_load_relaxed(&shared->wrong), 0);
	stress_assert_equal(&run, calls, RAISERS * RAISED);
	stress_assert_equal(&run, twice, 0);
	stress_assert(&run, used > 2);
	capture_expect(DSTREF_REPORT_NET_LEAK, RAISERS * RAISED);
	free(shared);
}

/* Readers of the counters see them grow, never beyond what was raised. */
static void raise_or_read(struct stress_thread *thread)
{
	uint64_t last = 0;

	for (unsigned int i = 0; i < RAISED; i++) {
		if (i % (RAISED / CHUNKS) == 0)
			stress_meet(thread);
		if (thread->index) {
			dstref_report_raise(DSTREF_REPORT_NET_BUSY, "raise",
					    NULL, i, NULL);
			continue;
		}
		uint64_t now = dstref_report_count(DSTREF_REPORT_NET_BUSY);
		uint64_t total = dstref_report_total();

		thread->failed += now < last || total < now ||
				  total > 2 * RAISED;
		last = now;
	}
}

static void report_counters_grow_under_fire(void **state)
{
	struct stress run = { .threads = 3 };
	struct stress_thread sums;

	(void)state;
	dstref_report_set_limit(0);
	stress_run(&run, raise_or_read, &sums);
	stress_assert_equal(&run, sums.failed, 0);
	capture_expect(DSTREF_REPORT_NET_BUSY, 2 * RAISED);
	assert_int_equal(dstref_report_total(), 2 * RAISED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		capture_test(report_hooks_swapped_under_fire),
		capture_test(report_counters_grow_under_fire),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
