/* SPDX-License-Identifier: MIT */
/*
 * pairs - threads in pairs hand packets to each other over one route (S2)
 *
 * In 2012 the packets of all pairs on loopback went by one route entry, and
 * each of them took a reference, added one to the entry's `use` and stored the
 * time in its `lastuse`. The three stood on one line. The proposal gave `use`
 * and what follows it a line of its own, so that the counter, which the
 * receiver writes too, has its line alone.
 *
 * A pair is two threads and a lane between them (stage.h), which no other pair
 * touches, so pairs meet at the entry alone. The sender finds the entry, uses
 * it, and hands over a packet that holds it; the receiver lets go of it. An
 * operation is a packet that went through. The entries of 2012 are the models
 * of bench/history, with the release of 2012: decrement, look at the result.
 *
 * Today's entry has no `use`, and stores `lastuse` when a tick (17 ms) has
 * passed. It is shown as a packet can have it: `today` counts on the entry;
 * `today-split` counts in cells of the threads, to which the library changes
 * when threads contend (here from the start); `today-noref` borrows, on both
 * sides, since a borrowed entry must not go from thread to thread. `lane` is
 * what handing over takes by itself, `adds` with a locked add and subtract,
 * each on the counter's line.
 *
 * With more threads than CPUs a thread waits for its turn on a CPU, not for
 * a line, and no two of those that wait contend: those columns say what the
 * entry costs as many threads as there are CPUs, and what switching takes.
 * They are marked, and are not to be read as scaling.
 */
#include "stage.h"

#include "../history/route_2012.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define JIFFY_NS 4000000u

struct entry {
	struct dstref_net *net; /* NULL for a model */
	struct dstref_dst_slot slot;
	_Alignas(APART) struct route_2012_before before;
	_Alignas(APART) struct route_2012_after after;
	_Alignas(APART) struct dstref_dst dst;
	_Alignas(APART) struct stage_lane lane[];
};

/* What a variant is, beside its work. */
struct kind {
	bool today;
	bool split;
};

DSTREF_COLD static void warn(void)
{
	(void)fputs("pairs: an entry was not counted as it should; its figures "
		    "mean nothing\n",
		    stderr);
	abort();
}

static void dst_destroy(struct dstref_dst *dst)
{
	(void)dst; /* a member of struct entry */
}

static const struct dstref_dst_ops ops = {
	.name = "entry",
	.destroy = dst_destroy,
};

static void entry_close(struct entry *e)
{
	dstref_dst_slot_clear(&e->slot);
	if (stage_close(e->net))
		free(e);
}

/* A split entry is so from the start, and must be. */
static int dst_open(struct entry *e, const struct kind *kind)
{
	uint32_t flags = kind->split ? DSTREF_DST_SPLIT_ALWAYS
				     : DSTREF_DST_SPLIT_NEVER;
	struct dstref_net_counters stats;
	int rc = dstref_dst_init(&e->dst, e->net, &ops, e, flags);

	if (rc)
		return rc;
	dstref_dst_slot_install(&e->slot, &e->dst);
	if (!kind->split)
		return 0;
	rc = dstref_net_tick(e->net, stage_now(), 1);
	dstref_net_stats(e->net, &stats);
	return rc < 0 ? rc : stats.promoted == 1 ? 0 : -ENOSPC;
}

static int today_open(struct entry *e, const struct kind *kind)
{
	int rc = stage_open(&e->net);

	if (rc) {
		free(e);
		return rc;
	}
	rc = dst_open(e, kind);
	if (rc)
		entry_close(e);
	return rc;
}

static int setup(const struct bench_variant *variant, unsigned int threads,
		 void **state)
{
	const struct kind *kind = variant->context;
	size_t size =
		sizeof(struct entry) + threads / 2 * sizeof(struct stage_lane);
	struct entry *e = aligned_alloc(_Alignof(struct entry), size);

	if (!e)
		return -ENOMEM;
	memset((void *)e, 0, size);
	dstref_init_plain(&e->before.count, 1u);
	dstref_init_plain(&e->after.count, 1u);
	*state = e;
	return kind->today ? today_open(e, kind) : 0;
}

static void teardown(void *state)
{
	struct entry *e = state;

	if (dstref_load_relaxed(&e->before.count) != 1 ||
	    dstref_load_relaxed(&e->after.count) != 1)
		warn();
	if (e->net)
		entry_close(e);
	else
		free(e);
}

/* Floors. */

STAGE_INLINE void lane_send(void *state, struct dstref_skb *skb,
			    uint32_t number, uint64_t now_ns)
{
	(void)state;
	(void)skb;
	(void)number;
	(void)now_ns;
}

STAGE_INLINE void lane_take(void *state, struct dstref_skb *skb)
{
	(void)state;
	(void)skb;
}

STAGE_INLINE void adds_send(void *state, struct dstref_skb *skb,
			    uint32_t number, uint64_t now_ns)
{
	struct entry *e = state;

	(void)number;
	(void)now_ns;
	skb->owner = (uintptr_t)&e->after;
	(void)dstref_fetch_add_relaxed(&e->after.count, 1);
}

STAGE_INLINE void adds_take(void *state, struct dstref_skb *skb)
{
	struct route_2012_after *route = (struct route_2012_after *)skb->owner;

	(void)state;
	(void)dstref_fetch_sub_release(&route->count, 1);
}

/* dst_use() and dst_release() of 2012: use and lastuse are plain. */
#define ROUTE_2012(which)                                                   \
	STAGE_INLINE void which##_send(void *state, struct dstref_skb *skb, \
				       uint32_t number, uint64_t now_ns)    \
	{                                                                   \
		struct route_2012_##which *route =                          \
			&((struct entry *)state)->which;                    \
                                                                            \
		(void)number;                                               \
		(void)dstref_fetch_add_relaxed(&route->count, 1);           \
		dstref_store_relaxed(&route->use,                           \
				     dstref_load_relaxed(&route->use) + 1); \
		dstref_store_relaxed(&route->lastuse,                       \
				     (uintptr_t)(now_ns / JIFFY_NS));       \
		skb->owner = (uintptr_t)route;                              \
	}                                                                   \
                                                                            \
	STAGE_INLINE void which##_take(void *state, struct dstref_skb *skb) \
	{                                                                   \
		struct route_2012_##which *route =                          \
			(struct route_2012_##which *)skb->owner;            \
                                                                            \
		(void)state;                                                \
		if (dstref_unlikely((int32_t)dstref_sub_return_release(     \
					    &route->count, 1) < 0))         \
			warn();                                             \
	}

ROUTE_2012(before)
ROUTE_2012(after)

STAGE_INLINE void today_send(void *state, struct dstref_skb *skb,
			     uint32_t number, uint64_t now_ns)
{
	struct entry *e = state;
	struct dstref_dst *dst = dstref_dst_slot_borrow(&e->slot);

	(void)number;
	dstref_dst_use(dst, now_ns);
	dstref_skb_dst_set(skb, dst);
}

STAGE_INLINE void today_take(void *state, struct dstref_skb *skb)
{
	(void)state;
	dstref_skb_dst_drop(skb);
}

/* The slot is full throughout; a branch would be measured. */
STAGE_INLINE struct dstref_dst *shown(const struct entry *e)
{
	struct dstref_dst *dst = dstref_dst_slot_borrow(&e->slot);

	if (!dst)
		__builtin_unreachable();
	return dst;
}

/* Each side for itself: what leaves the thread has nothing left to drop. */
STAGE_INLINE void noref_send(void *state, struct dstref_skb *skb,
			     uint32_t number, uint64_t now_ns)
{
	struct entry *e = state;
	struct dstref_dst *dst = shown(e);

	(void)number;
	dstref_dst_use_noref(dst, now_ns);
	dstref_skb_dst_set_noref(skb, dst);
	BENCH_KEEP(dst->mtu);
	(void)dstref_skb_xmit_release(skb, 0);
}

STAGE_INLINE void noref_take(void *state, struct dstref_skb *skb)
{
	struct entry *e = state;
	struct dstref_dst *dst = shown(e);

	dstref_skb_dst_set_noref(skb, dst);
	BENCH_KEEP(dst->mtu);
	dstref_skb_dst_drop(skb);
}

/* The even ones send to the odd ones. */
STAGE_INLINE void work(struct bench_self *self, stage_send_fn send,
		       stage_take_fn take)
{
	struct entry *e = self->state;
	struct stage_lane *lane = &e->lane[self->id / 2];
	bool sends = self->id % 2 == 0;

	if (e->net && dstref_net_attach(e->net))
		warn();
	urcu_qsbr_register_thread();
	stage_run(self, sends ? lane : NULL, sends ? NULL : lane, send, take);
	urcu_qsbr_unregister_thread();
	if (e->net)
		dstref_net_detach(e->net);
}

#define WORK(of)                                       \
	static void of##_work(struct bench_self *self) \
	{                                              \
		work(self, of##_send, of##_take);      \
	}

WORK(lane)
WORK(adds)
WORK(before)
WORK(after)
WORK(today)
WORK(noref)

/* Packets of all pairs by the wall time, in millions a second. */
static double throughput(const struct bench_run *run)
{
	double packets = 0, longest = 0;

	for (unsigned int i = 0; i < run->threads; i++) {
		packets += (double)run->thread[i].ops; /* the senders' */
		longest = fmax(longest, run->thread[i].wall_ns);
	}
	return packets / longest * 1e3;
}

#define ROW(name_, kind_, work_, what_, ...)                                 \
	{                                                                    \
		.name = name_, .kind = kind_, .what = what_, .setup = setup, \
		.work = work_, .teardown = teardown,                         \
		.context = &(const struct kind){ __VA_ARGS__ },              \
	}

enum { LANE_ALONE, ADDS, BEFORE, AFTER, TODAY, SPLIT, NOREF, VARIANTS };

static const struct bench_variant variants[VARIANTS] = {
	[LANE_ALONE] = ROW("lane", BENCH_EMPTY, lane_work,
			   "packets handed over, no entry", .today = false),
	[ADDS] = ROW("adds", BENCH_FLOOR, adds_work,
		     "a locked add and a locked subtract on one line",
		     .today = false),
	[BEFORE] = ROW("before", BENCH_MODEL, before_work,
		       "2012: counter and use on one line", .today = false),
	[AFTER] = ROW("after", BENCH_MODEL, after_work,
		      "2012: the counter's line is its own", .today = false),
	[TODAY] = ROW("today", BENCH_OURS, today_work,
		      "dstref_dst_use, counted on the entry", .today = true),
	[SPLIT] = ROW("today-split", BENCH_OURS, today_work,
		      "dstref_dst_use, counted in cells of the threads",
		      .today = true, .split = true),
	[NOREF] = ROW("today-noref", BENCH_OURS, noref_work,
		      "dstref_dst_use_noref, borrowed on both sides",
		      .today = true),
};

#define COLUMNS 16

static const unsigned int threads[COLUMNS + 1] = { 2,  4,  6,  8,  10, 12,
						   14, 16, 18, 20, 22, 24,
						   26, 28, 30, 32, 0 };

static const double published_before[COLUMNS] = {
	1328, 2430, 3088, 3560, 3900, 3933, 3877, 3706,
	3742, 3670, 3661, 3503, 3526, 3440, 3498, 3498,
};
static const double published_after[COLUMNS] = {
	1341, 2282, 3258, 4166, 4962, 5614, 6114, 6338,
	6635, 6641, 6800, 6613, 6703, 6801, 6912, 6540,
};

static const struct bench_table tables[] = {
	{ .name = "pairs",
	  .title = "packets handed over by pairs of threads over one entry",
	  .variants = variants,
	  .count = VARIANTS,
	  .baseline = BEFORE,
	  .unit = "Mops/s",
	  .more_is_better = true,
	  .threads = threads,
	  .value = throughput },
};

static void print_threads(FILE *out, const struct bench_result *result)
{
	fprintf(out, "  %-21s", "threads");
	for (size_t i = 0; i < COLUMNS; i++) {
		const struct bench_row *row = bench_row(
			result, "pairs", variants[BEFORE].name, threads[i]);

		fprintf(out, " %4u%s", threads[i],
			row && row->oversubscribed ? "*" : " ");
	}
	fputc('\n', out);
}

/* A line of values as they are, or each by the first. */
static void print_values(FILE *out, const char *label, const double *value,
			 bool relative)
{
	fprintf(out, "  %-21s", label);
	for (size_t i = 0; i < COLUMNS; i++) {
		double x = relative ? value[i] / value[0] : value[i];

		if (isfinite(x))
			fprintf(out, " %5.*f",
				relative    ? 2
				: x < 99.95 ? 1
					    : 0,
				x);
		else
			fprintf(out, " %5s", "-");
	}
	fputc('\n', out);
}

static void print_measured(FILE *out, const struct bench_result *result,
			   const char *name, bool relative)
{
	double value[COLUMNS];
	char label[32];

	for (size_t i = 0; i < COLUMNS; i++) {
		const struct bench_row *row =
			bench_row(result, "pairs", name, threads[i]);

		value[i] = row ? row->median : NAN;
	}
	snprintf(label, sizeof(label), "%s, here", name);
	print_values(out, label, value, relative);
}

static void print_all(FILE *out, const struct bench_result *result,
		      bool relative)
{
	print_values(out, "before, published", published_before, relative);
	print_values(out, "after, published", published_after, relative);
	for (size_t i = BEFORE; i < VARIANTS; i++)
		print_measured(out, result, variants[i].name, relative);
	print_measured(out, result, variants[LANE_ALONE].name, relative);
}

static void report(FILE *out, const struct bench_result *result)
{
	fputs("\nthroughput as published in 2012, and in Mops/s here (* more "
	      "threads than CPUs: not to be read as scaling)\n",
	      out);
	print_threads(out, result);
	print_all(out, result, false);
	fputs("the same, by its own value at 2 threads\n", out);
	print_threads(out, result);
	print_all(out, result, true);
}

const struct bench_experiment bench_pairs = {
	.name = "pairs",
	.seed = "S2",
	.question = "How does throughput over one route grow with the threads "
		    "that share it?",
	.published = "2012, pairs of threads over loopback TCP: from 1328 at 2 "
		     "threads to 3498 at 32 with `use` beside the counter, to "
		     "6540 with the counter alone on its line.",
	.measured =
		"Packets through lanes in memory, with nothing of TCP, so the "
		"entry weighs far more than it did then. With fewer CPUs than "
		"threads the extra threads wait and yield.",
	.tables = tables,
	.count = sizeof(tables) / sizeof(tables[0]),
	.report = report,
};
