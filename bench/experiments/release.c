/* SPDX-License-Identifier: MIT */
/*
 * release - letting go of a route as in 2008, and by what the decrement returns
 *
 * The release of 2008 read the counter, warned when it was below one, and then
 * decremented it. On a counter that other CPUs write, the read brings the line
 * here to be shared, and the decrement asks for it again, to own it: two
 * transactions. The thread proposed to decrement and to look at the value that
 * came back: one. dstref_count does that, and looks at what its get returned
 * as well.
 *
 * Of the release of 2008 the test for NULL and the call are left out on all
 * sides: all are inline. Its barrier before the decrement is the release order
 * of the decrement, which on x86 is as free as that barrier was.
 *
 * `pair` is the contended end, the loopback of 2008: each thread holds and
 * releases one route without a pause. Each access waits for the line in turn,
 * and the line is often gone again before the next one: with the read there are
 * three such waits in place of two.
 *
 * `handed` is a packet that is sent on one CPU and completed on another: one
 * thread holds, then the other releases, in turn, so that nobody takes the line
 * between the read and the decrement. Each release is timed by itself, as a
 * sample: the line comes from the other CPU each time. The second transaction
 * is all that the read can cost there. It is there on a CPU that leaves a
 * modified line shared when another reads it, as the thread describes. One that
 * hands such a line over whole has none, and the ratio is near 1. `clock` is
 * what the timing itself takes.
 */
#include "../support/bench.h"

#include <dstref/count.h>

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define TWO_LINES 128
#define ROUTES 32

/* Alone on its lines, as the counter of a padded route is. */
struct route {
	_Alignas(TWO_LINES) struct dstref_count count;
	DSTREF_ATOMIC(int32_t) old;
};

/*
 * How far a line has to come depends on where in a shared cache it is at home,
 * so `handed` goes round several routes, too far apart for a prefetcher. `pair`
 * uses the first.
 */
struct routes {
	struct {
		struct route route;
		unsigned char apart[4096];
	} at[ROUTES];
	_Alignas(TWO_LINES) DSTREF_ATOMIC(unsigned int) turn;
};

static int setup(const struct bench_variant *variant, unsigned int threads,
		 void **state)
{
	struct routes *routes = aligned_alloc(TWO_LINES, sizeof(*routes));

	(void)variant;
	if (!routes)
		return -ENOMEM;
	for (int i = 0; i < ROUTES; i++) {
		dstref_count_init(&routes->at[i].route.count, threads + 1);
		dstref_init_plain(&routes->at[i].route.old,
				  (int32_t)threads + 1);
	}
	dstref_init_plain(&routes->turn, 1u);
	*state = routes;
	return 0;
}

/* What WARN_ON is to a compiler: a call that is not expected. */
DSTREF_COLD static void warn(void)
{
	(void)fputs("release: a route that is held has no reference left; its "
		    "figures mean nothing\n",
		    stderr);
	abort();
}

static inline void hold_2008(struct route *route)
{
	(void)dstref_fetch_add_relaxed(&route->old, 1);
}

static inline void release_bare(struct route *route)
{
	(void)dstref_fetch_sub_release(&route->old, 1);
}

static inline void release_read_first(struct route *route)
{
	if (dstref_unlikely(dstref_load_relaxed(&route->old) < 1))
		warn();
	(void)dstref_fetch_sub_release(&route->old, 1);
}

static inline void release_as_posted(struct route *route)
{
	if (dstref_unlikely(dstref_fetch_sub_release(&route->old, 1) - 1 < 0))
		warn();
}

static inline void hold_ours(struct route *route)
{
	if (!dstref_count_get(&route->count))
		warn();
}

static inline void release_ours(struct route *route)
{
	if (dstref_count_put(&route->count))
		warn();
}

static inline void nothing(struct route *route)
{
	(void)route;
}

/* The route of this round once it is the thread's turn; NULL at the end. */
static struct route *my_turn(const struct bench_self *self,
			     struct routes *routes)
{
	do {
		if (bench_over(self))
			return NULL;
	} while (dstref_load_acquire(&routes->turn) != self->id);
	return &routes->at[self->ops % ROUTES].route;
}

static double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

#define PAIR_WORK(name, hold, release)                             \
	static void pair_##name(struct bench_self *self)           \
	{                                                          \
		struct routes *routes = self->state;               \
		struct route *route = &routes->at[0].route;        \
                                                                   \
		BENCH_REPEAT(self, (hold(route), release(route))); \
	}

/* Thread 1 holds, thread 0 releases. */
#define HANDED_WORK(name, hold, release)                                \
	static void handed_##name(struct bench_self *self)              \
	{                                                               \
		struct routes *routes = self->state;                    \
		struct route *route;                                    \
		double start;                                           \
                                                                        \
		while ((route = my_turn(self, routes))) {               \
			if (self->id) {                                 \
				hold(route);                            \
			} else {                                        \
				start = now();                          \
				release(route);                         \
				bench_sample(self, now() - start);      \
			}                                               \
			self->ops++;                                    \
			dstref_store_release(&routes->turn, !self->id); \
		}                                                       \
	}

#define BOTH(name, hold, release)      \
	PAIR_WORK(name, hold, release) \
	HANDED_WORK(name, hold, release)

BOTH(empty, nothing, nothing)
BOTH(floor, hold_2008, release_bare)
BOTH(read_first, hold_2008, release_read_first)
BOTH(as_posted, hold_2008, release_as_posted)
BOTH(look, hold_ours, release_ours)

#define ROUTE(of_name, of_kind, of_work, text)                        \
	{                                                             \
		.name = (of_name), .kind = (of_kind), .what = (text), \
		.setup = setup, .work = (of_work), .teardown = free   \
	}

enum { EMPTY, FLOOR, READ_FIRST, AS_POSTED, LOOK, VARIANTS };

/* The variants of table @of; its @of_empty is what remains without a route. */
#define TABLE_VARIANTS(of, of_empty, text)                                    \
	static const struct bench_variant of[VARIANTS] = {                    \
		[EMPTY] = ROUTE(of_empty, BENCH_EMPTY, of##_empty, text),     \
		[FLOOR] = ROUTE("floor", BENCH_FLOOR, of##_floor,             \
				"locked adds, not looked at"),                \
		[READ_FIRST] = ROUTE("read-first", BENCH_MODEL,               \
				     of##_read_first,                         \
				     "2008: read, warn, decrement"),          \
		[AS_POSTED] = ROUTE("as-posted", BENCH_MODEL, of##_as_posted, \
				    "proposed: decrement, then warn"),        \
		[LOOK] = ROUTE("look", BENCH_OURS, of##_look,                 \
			       "dstref_count_get, dstref_count_put"),         \
	}

TABLE_VARIANTS(pair, "empty", "the loop alone");
TABLE_VARIANTS(handed, "clock", "no release, the timing alone");

static const unsigned int two[] = { 2, 0 };

static const struct bench_table tables[] = {
	{ .name = "pair",
	  .title = "hold and release of one route, without a pause",
	  .variants = pair,
	  .count = VARIANTS,
	  .baseline = READ_FIRST,
	  .unit = "ns" },
	{ .name = "handed",
	  .title = "a release on one CPU after a hold on the other",
	  .variants = handed,
	  .count = VARIANTS,
	  .baseline = READ_FIRST,
	  .unit = "ns",
	  .threads = two,
	  .value = bench_sampled },
};

const struct bench_experiment bench_release = {
	.name = "release",
	.seed = "S0",
	.question = "What does it cost to read a counter before it is "
		    "decremented?",
	.published =
		"2008, loopback: the release's share of a profile went from "
		"3.46 % (third place), reading first, to 2.25 % (fifth), "
		"looking at what the decrement returned: a ratio of 0.65.",
	.measured =
		"Hold and release of one counter by all threads. Then, it was "
		"the release alone, in a kernel, within the traffic of a whole "
		"stack, on CPUs of 2008. Here `pair` is hold and release with "
		"nothing between, and `handed` one release at a time, whose "
		"line nobody else wants.",
	.tables = tables,
	.count = sizeof(tables) / sizeof(tables[0]),
};
