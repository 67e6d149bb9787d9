/* SPDX-License-Identifier: MIT */
/*
 * counts - dstref_count against what one would use instead
 *
 * All threads take and drop references to one object, as workers do that
 * forward by the same route. An operation is a get and a put. Each rival is a
 * file in bench/peers, which says what its calls are; the floors are here.
 *
 * The ratios of `pair` are to two bare locked adds on the same word: what the
 * machine takes for two changes of a shared counter that nobody looks at. Two
 * plain increments, each thread's on a line of its own, are the floor of what
 * does not share.
 *
 * A figure says nothing of what a count does when it is misused, so that
 * stands beside it, as tried on this machine.
 */
#include "../peers/peers.h"

#include <dstref/count.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TWO_LINES 128

static void init(void *state, uint64_t refs)
{
	dstref_count_init(state, (uint32_t)refs);
}

static bool get(void *state)
{
	return dstref_count_get(state);
}

static bool put(void *state)
{
	return dstref_count_put(state);
}

static uint64_t held(const void *state)
{
	return dstref_count_read(state);
}

const struct peer peer_count = {
	.bytes = sizeof(struct dstref_count),
	.size = sizeof(struct dstref_count),
	.init = init,
	.get = get,
	.put = put,
	.held = held,
	.limit = { DSTREF_COUNT_MAX },
};

PEER_WORK(count)

static void empty_work(struct bench_self *self)
{
	BENCH_REPEAT(self, (void)0);
}

/* A word for each thread, and none on another's line. */
struct own {
	_Alignas(TWO_LINES) DSTREF_ATOMIC(uint32_t) shared;
	volatile uint32_t plain;
};

static int own_setup(const struct bench_variant *variant, unsigned int threads,
		     void **state)
{
	struct own *own;

	(void)variant;
	own = aligned_alloc(TWO_LINES, threads * sizeof(*own));
	if (!own)
		return -ENOMEM;
	memset(own, 0, threads * sizeof(*own));
	*state = own;
	return 0;
}

static void plain_work(struct bench_self *self)
{
	struct own *own = (struct own *)self->state + self->id;

	BENCH_REPEAT(self, (own->plain++, own->plain++));
}

/* The sums are not looked at, so that a plain locked add is all it takes. */
static void floor_work(struct bench_self *self)
{
	struct own *own = self->state;

	BENCH_REPEAT(self, (dstref_fetch_add_relaxed(&own->shared, 1u),
			    dstref_fetch_sub_relaxed(&own->shared, 1u)));
}

/* The rivals: X(id, Debian package, what is called). */
#define RIVALS(X)                                                            \
	X(urcu_ref, "liburcu-dev", "urcu_ref_get, urcu_ref_put")             \
	X(ck_pr, "libck-dev", "ck_pr_inc_uint, ck_pr_dec_uint_is_zero")      \
	X(g_atomic_ref_count, "libglib2.0-dev",                              \
	  "g_atomic_ref_count_inc and _dec, which are calls")                \
	X(rte_mbuf, "libdpdk-dev", "rte_mbuf_refcnt_update by 1 and by -1")  \
	X(shared_ptr, "g++", "a copy of a std::shared_ptr, and its end")     \
	X(intrusive_ptr, "libboost-dev",                                     \
	  "a copy of a boost::intrusive_ptr, and its end")                   \
	X(mutex, "libc6-dev", "a plain number, changed under a mutex twice") \
	X(atomic, "libc6-dev", "C11 fetch_add and fetch_sub, default order")

/* Keeps the rest when the first argument, PEER_ID, is 1; drops it when 0. */
#define WHEN(built, ...) WHEN_BUILT(built, __VA_ARGS__)
#define WHEN_BUILT(built, ...) WHEN_##built(__VA_ARGS__)
#define WHEN_1(...) __VA_ARGS__
#define WHEN_0(...)

#define AT(id, package, text) WHEN(PEER_##id, AT_##id, )
enum { AT_empty, AT_plain, AT_floor, AT_count, RIVALS(AT) VARIANTS };

static struct peer_notes notes[VARIANTS];
static const char *const no_notes[PEER_NOTES] = { "-", "-", "-", "-" };

#define OF_PEER(id, of_kind, text)                                           \
	.name = #id, .kind = (of_kind), .what = (text), .setup = peer_setup, \
	.work = peer_##id##_work, .teardown = free, .context = &peer_##id
#define OURS OF_PEER(count, BENCH_OURS, "dstref_count_get, dstref_count_put")
#define RIVAL(id, package, text)                           \
	WHEN(PEER_##id,                                    \
	     [AT_##id] = { OF_PEER(id, BENCH_RIVAL, text), \
			   .note = notes[AT_##id].column }, )

static const struct bench_variant pair[VARIANTS] = {
	[AT_empty] = { .name = "empty",
		       .kind = BENCH_EMPTY,
		       .what = "the loop alone",
		       .work = empty_work,
		       .note = no_notes },
	[AT_plain] = { .name = "plain",
		       .kind = BENCH_FLOOR,
		       .what = "two plain increments of the thread's own word",
		       .setup = own_setup,
		       .work = plain_work,
		       .teardown = free,
		       .note = no_notes },
	[AT_floor] = { .name = "floor",
		       .kind = BENCH_FLOOR,
		       .what = "two bare locked adds to one word",
		       .setup = own_setup,
		       .work = floor_work,
		       .teardown = free,
		       .note = no_notes },
	[AT_count] = { OURS, .note = notes[AT_count].column },
	RIVALS(RIVAL)
};

#if PEER_urcu_ref
static const struct bench_variant urcu[] = {
	{ OURS },
	{ OF_PEER(urcu_ref, BENCH_RIVAL, "urcu_ref_get, urcu_ref_put") },
};
#endif

static int prepare(const struct bench_table *table, const char **why)
{
	(void)why;
	for (size_t i = 0; i < table->count; i++)
		if (table->variants[i].context && !notes[i].column[0])
			peer_try(table->variants[i].context, &notes[i]);
	return 0;
}

static const struct bench_table tables[] = {
	{ .name = "pair",
	  .title = "a get and a put of one shared count, against two bare "
		   "locked adds",
	  .variants = pair,
	  .count = VARIANTS,
	  .baseline = AT_floor,
	  .unit = "ns",
	  .notes = peer_columns,
	  .prepare = prepare },
#if PEER_urcu_ref
	{ .name = "urcu",
	  .title = "the same, against urcu_ref side by side",
	  .variants = urcu,
	  .count = sizeof(urcu) / sizeof(urcu[0]),
	  .baseline = 1,
	  .unit = "ns" },
#endif
};

#define NOT_BUILT(id, package, text)                                          \
	if (!PEER_##id)                                                       \
		fprintf(out, "%-20s not built: install %s and build again\n", \
			#id, package);

static void report(FILE *out, const struct bench_result *result)
{
	(void)result;
	RIVALS(NOT_BUILT)
}

const struct bench_experiment bench_counts = {
	.name = "counts",
	.question =
		"What does dstref_count cost beside other reference counts, "
		"and what do they do when misused?",
	.measured =
		"One object, all threads on it: each takes a reference and "
		"lets go of it, inlined as in a user's program where the "
		"rival's headers allow it. Bytes: what the count adds to an "
		"object (shared_ptr adds a word to each pointer too). "
		"Overflow, underflow, get at zero: what was seen when a child "
		"process did it, built as in the figures, so without asserts "
		"in a release build; the overflow on a count that was started "
		"at its limit.",
	.tables = tables,
	.count = sizeof(tables) / sizeof(tables[0]),
	.report = report,
};
