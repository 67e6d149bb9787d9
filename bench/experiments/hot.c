/* SPDX-License-Identifier: MIT */
/*
 * hot - one route that every packet takes: all ways to count it (S0, S2)
 *
 * "Split really hot entries, one copy per stream" ended the thread of 2008,
 * "per-CPU dsts" that of 2012. Here one dst is held and let go of by all
 * threads at once, without a pause, in each state that a dst can be in. A user
 * chooses none of them: `auto` is the default policy with a tick every
 * millisecond, which starts on the count and is split when threads contend.
 *
 *	never		may not be split: the count, and no look at the hint
 *	auto-cold	may be split, nobody ticks: the count and the look. On
 *			one thread what an ordinary route costs; on more what a
 *			hot one costs until the next tick
 *	auto		the same with ticks, by thread 0
 *	split		split before the start, each thread has cells
 *	unattached	the same dst, but the threads never attached
 *	split-alone	struct dstref_split, without a dst around it
 *	noref		found in its slot and borrowed: no count at all
 *
 * never, auto-cold, split and unattached run one and the same loop, so no
 * difference comes from how a compiler laid it out.
 *
 * Floors: the empty loop; two plain increments of thread-local words, which is
 * all that a count which nobody ever sums would take; two bare locked adds to
 * one word. Rivals from bench/peers, as in the experiment `counts`.
 *
 * `scale` has the throughput of all threads together, of 1, 2 and 16. Sixteen
 * on a few CPUs show what a preempted thread costs the others: nothing, where
 * none waits for another.
 *
 * Different from life: nothing else is done, so the weight of a count is as
 * large as it can be, and a contended line is always contended; a forwarder
 * does 50 ns or more of other work for a packet.
 */
#include "../peers/peers.h"
#include "stage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TICK_NS 1000000

enum hot_state { COLD, SPLIT, CHANGES };

/* What a variant is, beside its work. */
struct shape {
	uint32_t flags; /* of dstref_dst_init() */
	enum hot_state state; /* at the start, and but for CHANGES at the end */
	bool attach;
};

struct hot {
	const struct shape *shape;
	struct dstref_net *net;
	struct dstref_split_domain *domain; /* of split-alone */
	uint64_t due; /* the next tick; thread 0's */
	struct dstref_dst_slot slot;
	unsigned int ended; /* times that zero was told */
	_Alignas(APART) struct dstref_dst dst;
	_Alignas(APART) struct dstref_split split;
	_Alignas(APART) DSTREF_ATOMIC(uint32_t) shared;
};

DSTREF_COLD static void require(bool right, const char *what)
{
	if (right)
		return;
	(void)fprintf(stderr, "hot: %s; the figures mean nothing\n", what);
	abort();
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A dst in the state that is asked for. */

static void dst_destroy(struct dstref_dst *dst)
{
	(void)dst; /* a member of struct hot */
}

static const struct dstref_dst_ops ops = {
	.name = "hot",
	.destroy = dst_destroy,
};

static uint64_t promoted(const struct hot *hot)
{
	struct dstref_net_counters stats;

	dstref_net_stats(hot->net, &stats);
	return stats.promoted;
}

static int dst_open(struct hot *hot)
{
	int rc = stage_open(&hot->net);

	if (rc)
		return rc;
	rc = dstref_dst_init(&hot->dst, hot->net, &ops, NULL,
			     hot->shape->flags);
	if (rc) {
		(void)stage_close(hot->net);
		return rc;
	}
	dstref_dst_hold_outside(&hot->dst);
	dstref_dst_slot_install(&hot->slot, &hot->dst);
	(void)dstref_net_tick(hot->net, now_ns(), 1);
	require(promoted(hot) == (hot->shape->state == SPLIT),
		"the dst is not in the state that was asked for");
	return 0;
}

static int setup(const struct bench_variant *variant, unsigned int threads,
		 void **state)
{
	struct hot *hot = aligned_alloc(APART, sizeof(*hot));
	int rc;

	(void)threads;
	if (!hot)
		return -ENOMEM;
	memset((void *)hot, 0, sizeof(*hot));
	hot->shape = variant->context;
	rc = dst_open(hot);
	if (rc)
		free(hot);
	else
		*state = hot;
	return rc;
}

static void teardown(void *state)
{
	struct hot *hot = state;

	require(dstref_dst_refs(&hot->dst) == 2, "references were lost");
	if (hot->shape->state != CHANGES)
		require(promoted(hot) == (hot->shape->state == SPLIT),
			"the dst did not stay as it was");
	dstref_dst_dead(&hot->dst);
	dstref_dst_slot_clear(&hot->slot);
	dstref_dst_release_outside(&hot->dst);
	if (stage_close(hot->net))
		free(hot);
}

/* Threads are readers, and have cells where the variant says so. */

static bool enter(const struct hot *hot)
{
	urcu_qsbr_register_thread();
	return !hot->shape->attach || !dstref_net_attach(hot->net);
}

static void leave(const struct hot *hot)
{
	dstref_net_detach(hot->net);
	urcu_qsbr_unregister_thread();
}

static void pair_work(struct bench_self *self)
{
	struct hot *hot = self->state;
	struct dstref_dst *dst = &hot->dst;

	if (enter(hot))
		BENCH_REPEAT(self,
			     (dstref_dst_hold(dst), dstref_dst_release(dst)));
	leave(hot);
}

static void tick(struct hot *hot)
{
	uint64_t now = now_ns();

	if (now < hot->due)
		return;
	hot->due = now + TICK_NS;
	(void)dstref_net_tick(hot->net, now, UINT32_MAX);
}

/* As pair_work(), and thread 0 looks at the clock once a batch. */
static void auto_work(struct bench_self *self)
{
	struct hot *hot = self->state;
	struct dstref_dst *dst = &hot->dst;
	bool entered = enter(hot);

	while (entered && !bench_over(self)) {
		for (int i = 0; i < BENCH_BATCH; i++) {
			dstref_dst_hold(dst);
			dstref_dst_release(dst);
			__asm__ volatile("" ::: "memory");
		}
		self->ops += BENCH_BATCH;
		if (!self->id)
			tick(hot);
		urcu_qsbr_quiescent_state();
	}
	leave(hot);
}

static void noref_work(struct bench_self *self)
{
	struct hot *hot = self->state;
	struct dstref_dst_ref ref = { 0 };

	if (enter(hot))
		BENCH_REPEAT(self,
			     (dstref_dst_ref_set_noref(
				      &ref, dstref_dst_slot_borrow(&hot->slot)),
			      dstref_dst_ref_drop(&ref)));
	leave(hot);
}

/* A split count that stands alone. */

static void split_zero(struct dstref_split *split)
{
	struct hot *hot =
		(struct hot *)((char *)split - offsetof(struct hot, split));

	hot->ended++;
}

static int alone_setup(const struct bench_variant *variant,
		       unsigned int threads, void **state)
{
	const struct dstref_split_attr attr = { .flavour = &urcu_qsbr_flavor };
	struct hot *hot = aligned_alloc(APART, sizeof(*hot));
	int rc;

	(void)variant;
	(void)threads;
	if (!hot)
		return -ENOMEM;
	memset((void *)hot, 0, sizeof(*hot));
	rc = dstref_split_domain_create(&hot->domain, &attr);
	if (rc) {
		free(hot);
		return rc;
	}
	rc = dstref_split_init(&hot->split, hot->domain, 1, split_zero);
	require(!rc && !dstref_split_promote(&hot->split), "no promotion");
	*state = hot;
	return 0;
}

static void alone_teardown(void *state)
{
	struct hot *hot = state;

	require(dstref_split_read(&hot->split) == 1, "references were lost");
	(void)dstref_split_kill(&hot->split, NULL);
	dstref_split_put_outside(&hot->split);
	urcu_qsbr_barrier();
	require(hot->ended == 1, "zero was not told once");
	require(!dstref_split_domain_destroy(hot->domain), "cells are in use");
	free(hot);
}

static void alone_work(struct bench_self *self)
{
	struct hot *hot = self->state;
	struct dstref_split *split = &hot->split;

	urcu_qsbr_register_thread();
	if (!dstref_split_attach(hot->domain))
		BENCH_REPEAT(self, if (!dstref_split_get(split)) peer_broken();
			     dstref_split_put(split));
	dstref_split_detach(hot->domain);
	urcu_qsbr_unregister_thread();
}

/* Floors. */

static void empty_work(struct bench_self *self)
{
	BENCH_REPEAT(self, (void)0);
}

static _Thread_local uint32_t own_gets, own_puts;

static void plain_work(struct bench_self *self)
{
	BENCH_KEEP(&own_gets);
	BENCH_KEEP(&own_puts);
	BENCH_REPEAT(self, (own_gets++, own_puts++));
}

static int floor_setup(const struct bench_variant *variant,
		       unsigned int threads, void **state)
{
	struct hot *hot = aligned_alloc(APART, sizeof(*hot));

	(void)variant;
	(void)threads;
	if (!hot)
		return -ENOMEM;
	memset((void *)hot, 0, sizeof(*hot));
	*state = hot;
	return 0;
}

static void floor_work(struct bench_self *self)
{
	struct hot *hot = self->state;

	BENCH_REPEAT(self, (dstref_fetch_add_relaxed(&hot->shared, 1u),
			    dstref_fetch_sub_relaxed(&hot->shared, 1u)));
}

/* Tables. */

static const struct shape never = { DSTREF_DST_SPLIT_NEVER, COLD, true };
static const struct shape cold = { 0, COLD, true };
static const struct shape changes = { 0, CHANGES, true };
static const struct shape split = { DSTREF_DST_SPLIT_ALWAYS, SPLIT, true };
static const struct shape unattached = { DSTREF_DST_SPLIT_ALWAYS, SPLIT,
					 false };

#define DST(id, of_shape, of_work, text)                                 \
	{                                                                \
		.name = (id), .kind = BENCH_OURS, .what = (text),        \
		.setup = setup, .work = (of_work), .teardown = teardown, \
		.context = &(of_shape)                                   \
	}
#define PEER(id, of_kind, text)                                 \
	{                                                       \
		.name = #id, .kind = (of_kind), .what = (text), \
		.setup = peer_setup, .work = peer_##id##_work,  \
		.teardown = free, .context = &peer_##id         \
	}
#define EMPTY                                                \
	{                                                    \
		.name = "empty", .kind = BENCH_EMPTY,        \
		.what = "the loop alone", .work = empty_work \
	}
#define PLAIN                                                         \
	{                                                             \
		.name = "plain", .kind = BENCH_FLOOR,                 \
		.what = "two plain increments of thread-local words", \
		.work = plain_work                                    \
	}
#define FLOOR                                                              \
	{                                                                  \
		.name = "floor", .kind = BENCH_FLOOR,                      \
		.what = "two bare locked adds to one word",                \
		.setup = floor_setup, .work = floor_work, .teardown = free \
	}
#define COUNT PEER(count, BENCH_OURS, "dstref_count_get, dstref_count_put")
#define AUTO DST("auto", changes, auto_work, "by default, ticked each ms")
#define SPLIT_DST DST("split", split, pair_work, "split, each thread has cells")

enum { PAIR_COUNT = 3 };

static const struct bench_variant pair[] = {
	EMPTY,
	PLAIN,
	FLOOR,
	[PAIR_COUNT] = COUNT,
	DST("never", never, pair_work, "a dst that may not be split"),
	DST("auto-cold", cold, pair_work, "one that may be, and is not"),
	AUTO,
	SPLIT_DST,
	DST("unattached", unattached, pair_work, "split, no thread has cells"),
	{ .name = "split-alone",
	  .kind = BENCH_OURS,
	  .what = "dstref_split_get, dstref_split_put",
	  .setup = alone_setup,
	  .work = alone_work,
	  .teardown = alone_teardown },
	DST("noref", never, noref_work, "borrowed from its slot"),
#if PEER_urcu_ref
	PEER(urcu_ref, BENCH_RIVAL, "urcu_ref_get, urcu_ref_put"),
#endif
#if PEER_shared_ptr
	PEER(shared_ptr, BENCH_RIVAL, "a copy of a std::shared_ptr"),
#endif
	PEER(atomic, BENCH_RIVAL, "C11 fetch_add and fetch_sub"),
};

static const struct bench_variant scale[] = {
	PLAIN,
	COUNT,
	AUTO,
	SPLIT_DST,
	PEER(atomic, BENCH_RIVAL, "C11 fetch_add and fetch_sub"),
};

static const unsigned int scale_threads[] = { 1, 2, 16, 0 };

static const struct bench_table tables[] = {
	{ .name = "pair",
	  .title = "one dst: a hold and a release on each thread",
	  .variants = pair,
	  .count = sizeof(pair) / sizeof(pair[0]),
	  .baseline = PAIR_COUNT,
	  .unit = "ns" },
	{ .name = "scale",
	  .title = "one dst: pairs of all threads together",
	  .variants = scale,
	  .count = sizeof(scale) / sizeof(scale[0]),
	  .baseline = 0,
	  .unit = "Mops/s",
	  .more_is_better = true,
	  .threads = scale_threads,
	  .value = bench_mops },
};

/* Throughput at @threads by that at @base threads; medians. */
static double gain(const struct bench_result *result, const char *name,
		   unsigned int threads, unsigned int base)
{
	const struct bench_row *of = bench_row(result, "scale", name, threads);
	const struct bench_row *by = bench_row(result, "scale", name, base);

	return of && by ? of->median / by->median : 0;
}

static void report(FILE *out, const struct bench_result *result)
{
	fprintf(out, "\nhow throughput grows, by medians\n%-14s %8s %8s\n", "",
		"2 by 1", "16 by 2");
	for (size_t i = 0; i < sizeof(scale) / sizeof(scale[0]); i++)
		fprintf(out, "%-14s %8.2f %8.2f\n", scale[i].name,
			gain(result, scale[i].name, 2, 1),
			gain(result, scale[i].name, 16, 2));
}

const struct bench_experiment bench_hot = {
	.name = "hot",
	.seed = "S0",
	.question = "What does one hot route cost in each way of counting it, "
		    "and does its throughput grow with the threads?",
	.published =
		"2008: `split really hot entries, one copy per stream` was the "
		"idea at the end, not measured. 2012 (S2): `per-CPU dsts`, the "
		"same; the padding posted then took 32 threads from 3498 to "
		"6540.",
	.measured =
		"Nothing but the hold and the release, by all threads, without "
		"a pause; so the counts weigh as much as they can. `plain` is "
		"what the machine gives to threads that share nothing: where "
		"its throughput does not double, no other can.",
	.tables = tables,
	.count = sizeof(tables) / sizeof(tables[0]),
	.report = report,
};
