/* SPDX-License-Identifier: MIT */
/*
 * hashinfo - a packet's socket lookup begins at its namespace
 *
 * The packet knows the namespace, and reads the table of sockets and the
 * bucket limit. With the row of 2022 that is a line for the pointer and a line
 * of the row; embedded it is one. The row that the pointer leads to lies right
 * behind its namespace here, on the same page; in life it is an allocation
 * of its own, so the pointer is made out cheaper than it is. No layout has two
 * lines that it reads in one pair of lines.
 *
 * The row's count is written as sockets come to wait and go. `embedded-shared`
 * has it on hashinfo's line. Cold that costs nothing: one line is one line. So
 * the table `written` leaves everything hot, and lets another thread write
 * each count between two packets. Where the count has a line of its own
 * the packet does not notice; where it shares, hashinfo has gone to the other
 * CPU.
 */
#include "shape.h"
#include "../../history/row_2022.h"

#include <dstref/count.h>
#include <dstref/net.h>

#include <stdlib.h>

struct by_pointer {
	_Alignas(COLD_PAIR) struct net_2022_before net;
	_Alignas(COLD_PAIR) struct row_2022_before row;
};

struct shared {
	_Alignas(BENCH_LINE) DSTREF_ATOMIC(uint32_t) passive;
	_Alignas(BENCH_LINE) struct dstref_count tw_refs;
	void *hashinfo;
	uint32_t tw_limit;
};

static int make_by_pointer(void *object, const struct cold_shape *shape)
{
	struct by_pointer *both = object;

	(void)shape;
	both->net.row = &both->row;
	return 0;
}

static int make_embedded(void *object, const struct cold_shape *shape)
{
	struct dstref_net *net = object;

	(void)shape;
	dstref_count_init(&net->tw_refs, 1);
	return 0;
}

static int make_shared(void *object, const struct cold_shape *shape)
{
	struct shared *net = object;

	(void)shape;
	dstref_count_init(&net->tw_refs, 1);
	return 0;
}

static inline void visit_pointer(void *object, size_t lap)
{
	const struct net_2022_before *net = object;

	(void)lap;
	BENCH_KEEP(net->row->hashinfo);
	BENCH_KEEP(net->row->max_buckets);
}

static inline void visit_embedded(void *object, size_t lap)
{
	const struct dstref_net *net = object;

	(void)lap;
	BENCH_KEEP(net->hashinfo);
	BENCH_KEEP(net->tw_limit);
}

static inline void visit_proposed(void *object, size_t lap)
{
	const struct net_2022_proposed *net = object;

	(void)lap;
	BENCH_KEEP(net->row.hashinfo);
	BENCH_KEEP(net->row.max_buckets);
}

static inline void visit_shared(void *object, size_t lap)
{
	const struct shared *net = object;

	(void)lap;
	BENCH_KEEP(net->hashinfo);
	BENCH_KEEP(net->tw_limit);
}

COLD_LAP(lap_pointer, visit_pointer)
COLD_LAP(lap_embedded, visit_embedded)
COLD_LAP(lap_proposed, visit_proposed)
COLD_LAP(lap_shared, visit_shared)

/* A socket comes to wait, and goes. */
static void wait_a_time(struct dstref_count *tw_refs)
{
	if (!dstref_count_get(tw_refs) || dstref_count_put(tw_refs))
		abort();
}

static void write_embedded(void *object)
{
	wait_a_time(&((struct dstref_net *)object)->tw_refs);
}

static void write_shared(void *object)
{
	wait_a_time(&((struct shared *)object)->tw_refs);
}

static const struct cold_shape by_pointer = {
	.size = sizeof(struct by_pointer),
	.lap = lap_pointer,
	.lines = COLD_LINES(COLD_BITS(struct net_2022_before, row)) +
		 COLD_LINES(COLD_BITS(struct row_2022_before, hashinfo) |
			    COLD_BITS(struct row_2022_before, max_buckets)),
	.make = make_by_pointer,
};
static const struct cold_shape embedded = {
	.size = sizeof(struct dstref_net),
	.lap = lap_embedded,
	.lines = COLD_LINES(COLD_BITS(struct dstref_net, hashinfo) |
			    COLD_BITS(struct dstref_net, tw_limit)),
	.make = make_embedded,
};
static const struct cold_shape proposed = {
	.size = sizeof(struct net_2022_proposed),
	.lap = lap_proposed,
	.lines = COLD_LINES(
		COLD_BITS(struct net_2022_proposed, row.hashinfo) |
		COLD_BITS(struct net_2022_proposed, row.max_buckets)),
};
static const struct cold_shape shared = {
	.size = sizeof(struct shared),
	.lap = lap_shared,
	.lines = COLD_LINES(COLD_BITS(struct shared, hashinfo) |
			    COLD_BITS(struct shared, tw_limit)),
	.make = make_shared,
};
static const struct cold_shape own_line_written = {
	.size = sizeof(struct dstref_net),
	.lap = lap_embedded,
	.make = make_embedded,
	.write = write_embedded,
};
static const struct cold_shape shared_line_written = {
	.size = sizeof(struct shared),
	.lap = lap_shared,
	.make = make_shared,
	.write = write_shared,
};

const struct bench_variant cold_hashinfo[COLD_HASHINFO_VARIANTS] = {
	COLD_FLOORS,
	COLD_VARIANT("pointer", BENCH_MODEL, &by_pointer,
		     "2022: the namespace points to its row"),
	COLD_VARIANT("embedded", BENCH_OURS, &embedded,
		     "struct dstref_net: the count's line, then hashinfo's"),
	COLD_VARIANT("embedded-proposed", BENCH_MODEL, &proposed,
		     "as proposed: hashinfo's line, then the count's"),
	COLD_VARIANT("embedded-shared", BENCH_MODEL, &shared,
		     "the written count on hashinfo's line: see `written`"),
};

#define WRITTEN(name, kind, shape, text) \
	COLD_VARIANT_BY(cold_work_written, name, kind, shape, text)

const struct bench_variant cold_written[COLD_WRITTEN_VARIANTS] = {
	WRITTEN("not-written", BENCH_FLOOR, &embedded,
		"struct dstref_net, and nobody writes"),
	WRITTEN("own-line", BENCH_OURS, &own_line_written,
		"struct dstref_net, its count written"),
	WRITTEN("shared-line", BENCH_MODEL, &shared_line_written,
		"the written count on hashinfo's line"),
};
