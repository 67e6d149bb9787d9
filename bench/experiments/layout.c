/* SPDX-License-Identifier: MIT */
/*
 * layout - what the line costs that a counter stands on (S0)
 *
 * In 2008 a field was dropped from the route entry, and its counter moved onto
 * a line that packets read. The models are those of bench/history; each object
 * starts on a line, as the allocator of the time placed it. On 64 bits the bad
 * offset, 0xb0, shares its line with eleven of the metrics, the hop limit
 * among them, and with the class of the route; padding puts the counter at
 * 0xc0, the start of a line that packets only write. On 32 bits the bad offset,
 * 0x7c, ends the line of ops, of all metrics and of the class.
 *
 * A packet holds the route, reads what a packet reads of it on its way out
 * (obsolete, device, header length, hh, output, ops, MTU, hop limit, class),
 * and lets go of it. Of these, hop limit and class lie on the counter's line at
 * the bad offset of 64 bits; ops, MTU, hop limit and class on 32 bits.
 *
 * `offset`: all threads do that, on one route. Each of them writes the counter,
 * so the line travels at either offset; what padding can save is that the reads
 * between have to wait for it again, when another thread took it meanwhile.
 *
 * `neighbour`: thread 0 only reads those fields, the other only holds and lets
 * go. This is the case that padding is for. A packet reads its route once, and
 * long before the next packet reads it the other core has written. A loop over
 * one route would instead read it dozens of times while the other core waits
 * for the line, all but once from its own cache. So both go round several
 * routes. `elsewhere` is the floor: the other core writes to other routes. The
 * column `writes` tells whether it did: where it falls to nothing, the other
 * thread did not run, and the row says nothing.
 *
 * `cells`: the step of 2023 in Linux was made twice, by padding and by a count
 * with no loop and no read before the write; how much either gives depends on
 * the other. So here are all four: the counter at the bad or the good offset,
 * and the count of 2008 (read, warn, then decrement) or dstref_count.
 */
#include "stage.h"

#include "../history/route_2008.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { METRIC_MTU = 1, METRIC_HOPLIMIT = 9 };
enum { WRITES }; /* counter */

#define ROUTES 32 /* that `neighbour` goes round */

/* Each object starts on a line. */
struct lab {
	struct dstref_net *net; /* NULL for a model */
	struct {
		_Alignas(APART) struct route_2008_before before;
		_Alignas(APART) struct route_2008_padded padded;
		_Alignas(APART) struct route_2008_padded other;
		_Alignas(APART) struct dstref_dst today;
	} at[ROUTES];
};

DSTREF_COLD static void warn(void)
{
	(void)fputs("layout: a route that is held has no reference left; its "
		    "figures mean nothing\n",
		    stderr);
	abort();
}

static void dst_destroy(struct dstref_dst *dst)
{
	(void)dst; /* a member of struct lab */
}

static const struct dstref_dst_ops ops = {
	.name = "route",
	.destroy = dst_destroy,
};

/* A one in the word is a reference to the old count, and two to the new one. */
static int setup(const struct bench_variant *variant, unsigned int threads,
		 void **state)
{
	struct lab *lab = aligned_alloc(_Alignof(struct lab), sizeof(*lab));

	(void)variant;
	(void)threads;
	if (!lab)
		return -ENOMEM;
	memset((void *)lab, 0, sizeof(*lab));
	for (int i = 0; i < ROUTES; i++) {
		dstref_init_plain(&lab->at[i].before.count, 1u);
		dstref_init_plain(&lab->at[i].padded.count, 1u);
		dstref_init_plain(&lab->at[i].other.count, 1u);
	}
	*state = lab;
	return 0;
}

/* Lets go of n routes of the library, and of the rest when they have ended. */
static void close_today(struct lab *lab, int n)
{
	while (n)
		dstref_dst_release_outside(&lab->at[--n].today);
	if (stage_close(lab->net))
		free(lab);
}

static int setup_today(const struct bench_variant *variant,
		       unsigned int threads, void **state)
{
	struct lab *lab;
	int rc = setup(variant, threads, state);

	if (rc)
		return rc;
	lab = *state;
	rc = stage_open(&lab->net);
	if (rc) {
		free(lab);
		return rc;
	}
	for (int i = 0; i < ROUTES; i++) {
		rc = dstref_dst_init(&lab->at[i].today, lab->net, &ops, lab,
				     DSTREF_DST_SPLIT_NEVER);
		if (rc) {
			close_today(lab, i);
			return rc;
		}
	}
	return 0;
}

static void teardown(void *state)
{
	struct lab *lab = state;

	for (int i = 0; i < ROUTES; i++)
		if (dstref_load_relaxed(&lab->at[i].before.count) != 1 ||
		    dstref_load_relaxed(&lab->at[i].padded.count) != 1 ||
		    dstref_load_relaxed(&lab->at[i].other.count) != 1)
			warn();
	if (lab->net)
		close_today(lab, ROUTES);
	else
		free(lab);
}

/* Counts. To dstref_count the model's counter is its word. */

STAGE_INLINE void hold_old(DSTREF_ATOMIC(uint32_t) * count)
{
	(void)dstref_fetch_add_relaxed(count, 1);
}

STAGE_INLINE void release_old(DSTREF_ATOMIC(uint32_t) * count)
{
	if (dstref_unlikely((int32_t)dstref_load_relaxed(count) < 1))
		warn();
	(void)dstref_fetch_sub_release(count, 1);
}

STAGE_INLINE void release_bare(DSTREF_ATOMIC(uint32_t) * count)
{
	(void)dstref_fetch_sub_release(count, 1);
}

_Static_assert(sizeof(struct dstref_count) == sizeof(uint32_t),
	       "a dstref_count does not fit where the model has its counter");

STAGE_INLINE void hold_new(DSTREF_ATOMIC(uint32_t) * count)
{
	if (!dstref_count_get((struct dstref_count *)count))
		warn();
}

STAGE_INLINE void release_new(DSTREF_ATOMIC(uint32_t) * count)
{
	if (dstref_count_put((struct dstref_count *)count))
		warn();
}

STAGE_INLINE void hold_none(DSTREF_ATOMIC(uint32_t) * count)
{
	(void)count;
}

STAGE_INLINE void release_none(DSTREF_ATOMIC(uint32_t) * count)
{
	(void)count;
}

/* What a packet reads, folded into one value. */

#define READ_2008(route)                                                    \
	((uintptr_t)(route)->obsolete ^ (uintptr_t)(route)->dev ^           \
	 (route)->header_len ^ (uintptr_t)(route)->hh ^                     \
	 (uintptr_t)(route)->output ^ (uintptr_t)(route)->ops ^             \
	 (route)->metrics[METRIC_MTU] ^ (route)->metrics[METRIC_HOPLIMIT] ^ \
	 (route)->class_id)

#define READ_TODAY(dst)                                                      \
	((uintptr_t)dstref_load_relaxed(&(dst)->obsolete) ^                  \
	 (uintptr_t)(dst)->dev ^ (dst)->header_len ^ (uintptr_t)(dst)->net ^ \
	 (uintptr_t)dstref_load_relaxed(&(dst)->output) ^                    \
	 (uintptr_t)(dst)->ops ^ (dst)->mtu ^ (dst)->trailer_len ^           \
	 (dst)->flags)

#define READ_NONE(route) ((uintptr_t)(route))

/* Work: a packet; a reader beside others that hold and let go. */

#define PACKET(name, route, hold, release, read)             \
	static void packet_##name(struct bench_self *self)   \
	{                                                    \
		struct lab *lab = self->state;               \
                                                             \
		BENCH_REPEAT(self, {                         \
			hold(&lab->at[0].route.count);       \
			BENCH_KEEP(read(&lab->at[0].route)); \
			release(&lab->at[0].route.count);    \
		});                                          \
	}

PACKET(empty, padded, hold_none, release_none, READ_NONE)
PACKET(reads, padded, hold_none, release_none, READ_2008)
PACKET(adds, padded, hold_old, release_bare, READ_NONE)
PACKET(shared_old, before, hold_old, release_old, READ_2008)
PACKET(own_old, padded, hold_old, release_old, READ_2008)
PACKET(shared_new, before, hold_new, release_new, READ_2008)
PACKET(own_new, padded, hold_new, release_new, READ_2008)

static void packet_today(struct bench_self *self)
{
	struct dstref_dst *dst = &((struct lab *)self->state)->at[0].today;

	urcu_qsbr_register_thread();
	BENCH_REPEAT(self, {
		dstref_dst_hold(dst);
		BENCH_KEEP(READ_TODAY(dst));
		dstref_dst_release(dst);
	});
	urcu_qsbr_unregister_thread();
}

/* The other core's operations are counted beside, those of the reader are the
 * run's: how often the other wrote for each read. */
static void count_writes(struct bench_self *self)
{
	self->counter[WRITES] = self->ops;
	self->ops = 0;
}

#define NEIGHBOUR(name, route, written, read)                        \
	static void neighbour_##name(struct bench_self *self)        \
	{                                                            \
		struct lab *lab = self->state;                       \
		unsigned int n = 0;                                  \
                                                                     \
		if (!self->id) {                                     \
			BENCH_REPEAT(self, {                         \
				n = (n + 1) % ROUTES;                \
				BENCH_KEEP(read(&lab->at[n].route)); \
			});                                          \
			return;                                      \
		}                                                    \
		BENCH_REPEAT(self, {                                 \
			n = (n + 1) % ROUTES;                        \
			hold_old(&lab->at[n].written.count);         \
			release_old(&lab->at[n].written.count);      \
		});                                                  \
		count_writes(self);                                  \
	}

NEIGHBOUR(empty, padded, other, READ_NONE)
NEIGHBOUR(elsewhere, padded, other, READ_2008)
NEIGHBOUR(shared, before, before, READ_2008)
NEIGHBOUR(own, padded, padded, READ_2008)

static void neighbour_today(struct bench_self *self)
{
	struct lab *lab = self->state;
	unsigned int n = 0;

	urcu_qsbr_register_thread();
	if (self->id) {
		BENCH_REPEAT(self, {
			n = (n + 1) % ROUTES;
			dstref_dst_hold(&lab->at[n].today);
			dstref_dst_release(&lab->at[n].today);
		});
		count_writes(self);
	} else {
		BENCH_REPEAT(self, {
			n = (n + 1) % ROUTES;
			BENCH_KEEP(READ_TODAY(&lab->at[n].today));
		});
	}
	urcu_qsbr_unregister_thread();
}

#define ROW(name_, kind_, setup_, work_, what_)                               \
	{                                                                     \
		.name = name_, .kind = kind_, .what = what_, .setup = setup_, \
		.work = work_, .teardown = teardown,                          \
	}

static const struct bench_variant offset[] = {
	ROW("empty", BENCH_EMPTY, setup, packet_empty, "the loop alone"),
	ROW("reads", BENCH_FLOOR, setup, packet_reads,
	    "the reads, nothing held"),
	ROW("adds", BENCH_FLOOR, setup, packet_adds,
	    "locked add and subtract, nothing read"),
	ROW("before", BENCH_MODEL, setup, packet_shared_old,
	    "2008, the counter at 0xb0 (0x7c on 32 bits)"),
	ROW("padded", BENCH_MODEL, setup, packet_own_old,
	    "2008, the counter at 0xc0 (0x80 on 32 bits)"),
	ROW("today", BENCH_OURS, setup_today, packet_today,
	    "dstref_dst_hold, dstref_dst_release"),
};

static const struct bench_variant neighbour[] = {
	ROW("empty", BENCH_EMPTY, setup, neighbour_empty,
	    "the loop alone, the other core writes elsewhere"),
	ROW("elsewhere", BENCH_FLOOR, setup, neighbour_elsewhere,
	    "the reads, the other core writes elsewhere"),
	ROW("shared-line", BENCH_MODEL, setup, neighbour_shared,
	    "2008, the counter at 0xb0 (0x7c on 32 bits)"),
	ROW("own-line", BENCH_MODEL, setup, neighbour_own,
	    "2008, the counter at 0xc0 (0x80 on 32 bits)"),
	ROW("today", BENCH_OURS, setup_today, neighbour_today,
	    "a dstref_dst, the counter at 0x40"),
};

static const struct bench_variant cells[] = {
	ROW("empty", BENCH_EMPTY, setup, packet_empty, "the loop alone"),
	ROW("adds", BENCH_FLOOR, setup, packet_adds,
	    "locked add and subtract, nothing read"),
	ROW("shared-old", BENCH_MODEL, setup, packet_shared_old,
	    "counter beside what is read; read, then decrement"),
	ROW("own-old", BENCH_MODEL, setup, packet_own_old,
	    "counter on a line of its own; read, then decrement"),
	ROW("shared-new", BENCH_OURS, setup, packet_shared_new,
	    "counter beside what is read; dstref_count"),
	ROW("own-new", BENCH_OURS, setup, packet_own_new,
	    "counter on a line of its own; dstref_count"),
};

static const unsigned int two[] = { 2, 0 };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct bench_table tables[] = {
	{ .name = "offset",
	  .title = "a packet holds one route, reads it, lets go of it",
	  .variants = offset,
	  .count = COUNT(offset),
	  .baseline = 3,
	  .unit = "ns" },
	{ .name = "neighbour",
	  .title = "reading the fields of a route while the other core holds "
		   "it and lets go",
	  .variants = neighbour,
	  .count = COUNT(neighbour),
	  .baseline = 2,
	  .unit = "ns",
	  .threads = two,
	  .value = bench_ns_of_first,
	  .counters = { "writes" } },
	{ .name = "cells",
	  .title = "the two steps of 2023, alone and together",
	  .variants = cells,
	  .count = COUNT(cells),
	  .baseline = 2,
	  .unit = "ns" },
};

/* Throughput gained from one cell to another, in percent. */
static double gain(const struct bench_result *result, const char *from,
		   const char *to, unsigned int threads)
{
	const struct bench_row *a = bench_row(result, "cells", from, threads);
	const struct bench_row *b = bench_row(result, "cells", to, threads);

	return a && b ? 100 * (a->median / b->median - 1) : NAN;
}

static void print_gain(FILE *out, const char *what, const char *published,
		       double percent)
{
	fprintf(out, "  %-32s %-12s", what, published);
	if (isfinite(percent))
		fprintf(out, " %+6.0f %%\n", percent);
	else
		fprintf(out, " %6s\n", "-");
}

static void print_cells(FILE *out, const struct bench_result *result,
			unsigned int threads)
{
	static const char padding[] = "+20..+120 %", count[] = "+25..+130 %";

	fprintf(out,
		"\nthroughput gained with %u thread%s: published in 2023 for "
		"loopback memtier, and here\n",
		threads, threads > 1 ? "s" : "");
	print_gain(out, "padding, under the old count", padding,
		   gain(result, "shared-old", "own-old", threads));
	print_gain(out, "padding, under the new count", padding,
		   gain(result, "shared-new", "own-new", threads));
	print_gain(out, "the new count, on a shared line", count,
		   gain(result, "shared-old", "shared-new", threads));
	print_gain(out, "the new count, on its own line", count,
		   gain(result, "own-old", "own-new", threads));
	print_gain(out, "both", "",
		   gain(result, "shared-old", "own-new", threads));
}

/* For each number of threads that was run. */
static void report(FILE *out, const struct bench_result *result)
{
	for (size_t i = 0; i < result->count; i++) {
		const struct bench_row *row = &result->rows[i];

		if (row->table == &tables[2] && row->variant == &cells[0])
			print_cells(out, result, row->threads);
	}
}

const struct bench_experiment bench_layout = {
	.name = "layout",
	.seed = "S0",
	.question = "What does it cost when a counter shares a line with "
		    "fields that packets only read?",
	.published =
		"2008: tbench of 8 clients from 2250 to 2350 MB/s (+4.4 %) by "
		"padding the counter to 0xc0 (0x80 on 32 bits).\n"
		"2023, loopback memtier: padding +20 to +120 %, the new count "
		"+25 to +130 %; the two interact, and machines differ.",
	.measured =
		"Nothing but the route, no stack around it. `offset` and "
		"`cells`: every thread counts, so the line travels with and "
		"without padding. `neighbour`: one reads, the other counts, "
		"which is what padding is for.",
	.tables = tables,
	.count = COUNT(tables),
	.report = report,
};
