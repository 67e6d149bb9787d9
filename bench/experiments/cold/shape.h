/* SPDX-License-Identifier: MIT */
/*
 * shape - what the parts of the experiment cold share
 *
 * A shape is an object and what a packet does to it. The tables' variants are
 * in the parts: chase.c (lines), hashinfo.c (hashinfo, written), dst.c.
 */
#ifndef COLD_SHAPE_H
#define COLD_SHAPE_H

#include "../../support/bench.h"
#include "../../support/cold.h"

#include <dstref/line.h>

/*
 * @size: of an object, which starts as zeros
 * @lap: the visits
 * @lines: that a visit brings in
 * @waits: cold_wait() within a visit
 * @hot: the hot time is the row's
 * @make: the contents; 0 or -errno; may be NULL
 * @end: what make needs undone; may be NULL
 * @write: by another thread, between two laps; NULL: there is none
 * @at: of the lines of a chase
 */
struct cold_shape {
	size_t size;
	cold_lap_fn *lap;
	unsigned int lines;
	unsigned int waits;
	bool hot;
	int (*make)(void *object, const struct cold_shape *shape);
	void (*end)(void *object);
	void (*write)(void *object);
	unsigned int at[3];
};

/* The lines of a member as bits, and how many bits there are. */
#define COLD_BITS(type, member) DSTREF_LINE_BITS(type, member, 1u, 1u)
#define COLD_LINES(bits) ((unsigned int)__builtin_popcountll(bits))

/* Columns. A pass is warm when cold looks like hot: cold_is_warm(). */
enum { COLD_HOT_NS, COLD_WARM, COLD_TOUCHED };
#define COLD_COLUMNS                      \
	{                                 \
		"hot ns", "warm", "lines" \
	}
#define COLD_COLUMNS_WRITTEN \
	{                    \
		"hot ns"     \
	}

int cold_setup(const struct bench_variant *variant, unsigned int threads,
	       void **state);
void cold_work(struct bench_self *self);
void cold_work_written(struct bench_self *self);
void cold_teardown(void *state);

#define COLD_VARIANT_BY(of_work, of_name, of_kind, of_shape, text)    \
	{                                                             \
		.name = (of_name), .kind = (of_kind), .what = (text), \
		.setup = cold_setup, .work = (of_work),               \
		.teardown = cold_teardown, .context = (of_shape)      \
	}
#define COLD_VARIANT(name, kind, shape, text) \
	COLD_VARIANT_BY(cold_work, name, kind, shape, text)

/* What an empty visit takes, and the floor: a cold line. */
#define COLD_FLOORS                                                   \
	COLD_VARIANT("nothing", BENCH_EMPTY, &cold_nothing,           \
		     "the loop, and the wait between two visits"),    \
		COLD_VARIANT("one-line", BENCH_FLOOR, &cold_one_line, \
			     "one cold line, read")
extern const struct cold_shape cold_nothing, cold_one_line;

enum {
	COLD_LINES_VARIANTS = 6,
	COLD_HASHINFO_VARIANTS = 6,
	COLD_WRITTEN_VARIANTS = 3,
	COLD_DST_VARIANTS = 7,
	COLD_DST_STEPS_VARIANTS = 6,
};
extern const struct bench_variant cold_lines[COLD_LINES_VARIANTS],
	cold_hashinfo[COLD_HASHINFO_VARIANTS],
	cold_written[COLD_WRITTEN_VARIANTS], cold_dst[COLD_DST_VARIANTS],
	cold_dst_steps[COLD_DST_STEPS_VARIANTS];

#endif
