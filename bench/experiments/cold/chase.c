/* SPDX-License-Identifier: MIT */
/*
 * lines - the instrument measures itself
 *
 * One, two and three lines, each found through the one before: the more
 * lines, the dearer the visit. The lines of an object lie in different pairs,
 * and not in rising order, which hardware might take for a stream. cold-2-pair
 * has its two in one pair: it is cheaper than cold-2 by as much as this machine
 * fetches pairs.
 */
#include "shape.h"

static int make_chase(void *object, const struct cold_shape *shape)
{
	char *start = object;

	for (unsigned int i = 0; i + 1 < shape->lines; i++)
		*(void **)(start + shape->at[i]) = start + shape->at[i + 1];
	return 0;
}

static inline void *follow(void *line)
{
	void *next = *(void **)line;

	BENCH_KEEP(next);
	return next;
}

static inline void visit_0(void *object, size_t lap)
{
	BENCH_KEEP(object);
	(void)lap;
}

static inline void visit_1(void *object, size_t lap)
{
	(void)follow(object);
	(void)lap;
}

static inline void visit_2(void *object, size_t lap)
{
	(void)follow(follow(object));
	(void)lap;
}

static inline void visit_3(void *object, size_t lap)
{
	(void)follow(follow(follow(object)));
	(void)lap;
}

COLD_LAP(lap_0, visit_0)
COLD_LAP(lap_1, visit_1)
COLD_LAP(lap_2, visit_2)
COLD_LAP(lap_3, visit_3)

const struct cold_shape cold_nothing = { .size = BENCH_LINE,
					 .lap = lap_0,
					 .hot = true };
const struct cold_shape cold_one_line = { .size = BENCH_LINE,
					  .lap = lap_1,
					  .lines = 1 };
static const struct cold_shape hot_line = { .size = BENCH_LINE,
					    .lap = lap_1,
					    .hot = true };
static const struct cold_shape two_lines = { .size = 8 * BENCH_LINE,
					     .lap = lap_2,
					     .lines = 2,
					     .make = make_chase,
					     .at = { 0, 7 * BENCH_LINE } };
static const struct cold_shape pair = { .size = 2 * BENCH_LINE,
					.lap = lap_2,
					.lines = 2,
					.make = make_chase,
					.at = { 0, BENCH_LINE } };
static const struct cold_shape three_lines = {
	.size = 8 * BENCH_LINE,
	.lap = lap_3,
	.lines = 3,
	.make = make_chase,
	.at = { 0, 7 * BENCH_LINE, 4 * BENCH_LINE },
};

const struct bench_variant cold_lines[COLD_LINES_VARIANTS] = {
	COLD_FLOORS,
	COLD_VARIANT("hot-1", BENCH_FLOOR, &hot_line,
		     "one line in the first "
		     "cache, read"),
	COLD_VARIANT("cold-2", BENCH_FLOOR, &two_lines,
		     "two cold lines, the second found in the first"),
	COLD_VARIANT("cold-2-pair", BENCH_FLOOR, &pair,
		     "the same, both of one pair of lines"),
	COLD_VARIANT("cold-3", BENCH_FLOOR, &three_lines,
		     "three cold lines, each found in the one before"),
};
