/* SPDX-License-Identifier: MIT */
/*
 * report - counters and a hook for misuse
 *
 * A report is rare and may come from anywhere: a packet path, a callback
 * thread, a thread in a reader. So it takes no lock, allocates nothing and
 * reads no clock. The rate limit goes by number: the first few of a kind are
 * delivered, then those whose number is a power of two. A storm of n costs n
 * increments and log n lines, and the line that comes late tells how many
 * there were.
 *
 * Ordering. Counters are relaxed: each is a sum, nothing hangs on it. The
 * hook is one pointer to function and argument, so no reader can mix two:
 *   R1 store release in dstref_report_set_hook()
 *   A1 load acquire in dstref_report_raise(): the hook's fields are seen.
 * Without the pair a thread might call through fields that are not written
 * yet on a machine with weak ordering; x86 cannot show it, the sanitizer can
 * (tests/stress/report.c swaps hooks under fire).
 */
#include <dstref/atomic.h>
#include <dstref/report.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static DSTREF_ATOMIC(uint64_t) counters[DSTREF_REPORT_KIND_COUNT];
static DSTREF_ATOMIC(uint64_t) limit = 8;
static DSTREF_ATOMIC(const struct dstref_report_hook *) current;

struct kind {
	const char *name;
	const char *cause;
};

static const struct kind kinds[DSTREF_REPORT_KIND_COUNT] = {
#define REPORT_KIND(name, text, cause) { text, cause },
	DSTREF_REPORT_KINDS(REPORT_KIND)
#undef REPORT_KIND
};

static bool known(enum dstref_report_kind kind)
{
	return (unsigned int)kind < DSTREF_REPORT_KIND_COUNT;
}

const struct dstref_report_hook *
dstref_report_set_hook(const struct dstref_report_hook *hook)
{
	/* R1, with A1 in dstref_report_raise(). */
	return dstref_xchg_acq_rel(&current, hook);
}

void dstref_report_set_limit(uint64_t first)
{
	dstref_store_relaxed(&limit, first);
}

uint64_t dstref_report_count(enum dstref_report_kind kind)
{
	return known(kind) ? dstref_load_relaxed(&counters[kind]) : 0;
}

uint64_t dstref_report_total(void)
{
	uint64_t total = 0;

	for (int kind = 0; kind < DSTREF_REPORT_KIND_COUNT; kind++)
		total += dstref_load_relaxed(&counters[kind]);
	return total;
}

void dstref_report_reset(void)
{
	for (int kind = 0; kind < DSTREF_REPORT_KIND_COUNT; kind++)
		dstref_store_relaxed(&counters[kind], (uint64_t)0);
}

const char *dstref_report_name(enum dstref_report_kind kind)
{
	return known(kind) ? kinds[kind].name : NULL;
}

const char *dstref_report_cause(enum dstref_report_kind kind)
{
	return known(kind) ? kinds[kind].cause : NULL;
}

void dstref_report_stderr(const struct dstref_report *report, void *ctx)
{
	const char *text = report->text;

	(void)ctx;
	/* One call, so that lines of two threads do not mix. */
	fprintf(stderr,
		"dstref: %s: %s: object %p, value 0x%" PRIx64 ", %" PRIu64
		" so far%s%s (%s)\n",
		kinds[report->kind].name, report->call, report->object,
		report->value, report->seen, text ? ": " : "", text ? text : "",
		kinds[report->kind].cause);
}

void dstref_report_abort(const struct dstref_report *report, void *ctx)
{
	dstref_report_stderr(report, ctx);
	abort();
}

/* The names of what keeps a namespace are what its caller asked for. */
static bool thinned(enum dstref_report_kind kind)
{
	return kind != DSTREF_REPORT_NET_BUSY && kind != DSTREF_REPORT_NET_LEAK;
}

static bool due(uint64_t seen)
{
	return seen <= dstref_load_relaxed(&limit) || !(seen & (seen - 1));
}

void dstref_report_raise(enum dstref_report_kind kind, const char *call,
			 const void *object, uint64_t value, const char *text)
{
	if (!known(kind))
		return;
	struct dstref_report report = {
		.kind = kind,
		.call = call,
		.object = object,
		.value = value,
		.seen = dstref_add_return_relaxed(&counters[kind], (uint64_t)1),
		.text = text,
	};

	if (thinned(kind) && !due(report.seen))
		return;
	/* A1, with R1 in dstref_report_set_hook(). */
	const struct dstref_report_hook *hook = dstref_load_acquire(&current);

	if (hook)
		hook->fn(&report, hook->ctx);
	else
		dstref_report_stderr(&report, NULL);
}
