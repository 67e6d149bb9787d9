/* SPDX-License-Identifier: MIT */
/*
 * promote - from contention to scaling, and what a change of state costs
 *
 * `ticks` and `time` run two threads that take a dst out of a slot, hold it and
 * let go of it, without a pause. Thread 0 ticks, and puts another dst into the
 * slot as soon as this one is split: that is a sample. What is counted begins
 * when both threads have held this dst: `ticks` counts the ticks from there
 * until one of them has split it, that one included, and `time` the time. The
 * threads share few CPUs with whatever else runs, and while one is not
 * running there is no contention to see; so it takes the median.
 *
 *	1-ms, 10-ms, 100-us	by default, at that distance of ticks
 *	asked			DSTREF_DST_SPLIT_ALWAYS, ticked each ms: the
 *				floor, one tick, for only a tick splits
 *
 * `change` and `tick` are the cost of what the control plane does, each call
 * timed by itself on one thread (promote/cost.c): a kill is the dead of a dst
 * and its merge, a demotion the clearing of its slot and its merge. A tick goes
 * over the entries that are split, and for each of them over the threads that
 * ever were attached at once. `clock` and `none` are the floors.
 *
 * `until` is how long a dead dst stays split: the merge needs a grace period by
 * call_rcu, whose thread in liburcu looks every 10 ms; `call-rcu` is the floor,
 * a callback that does nothing.
 *
 * Different from life: the cells are in the cache of the thread that sums them,
 * as they are on one thread; where 64 cores write theirs, each is a line that
 * comes from another core, 60 ns or more.
 */
#include "promote/cost.h"
#include "stage.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/call-rcu.h>

#define PATIENCE_NS 200000000u /* beyond the run's own time */
#define PAIRS 32 /* between two looks at the clock */
#define MS 1000000u

struct shape {
	uint64_t period_ns; /* of ticks */
	uint32_t flags;
	bool time; /* else ticks are counted */
};

struct promote {
	const struct shape *shape;
	struct dstref_net *net;
	uint64_t due, ticks;
	_Alignas(APART) struct dstref_dst_slot slot;
	bool stop; /* thread 0 has enough */
	_Alignas(APART) struct dstref_dst *seen; /* the other's last */
	DSTREF_ATOMIC(uint32_t) called; /* callbacks of call-rcu */
	struct rcu_head head;
};

DSTREF_COLD static void require(bool right, const char *what)
{
	if (right)
		return;
	(void)fprintf(stderr, "promote: %s; the figures mean nothing\n", what);
	abort();
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void dst_destroy(struct dstref_dst *dst)
{
	free(dst);
}

static const struct dstref_dst_ops ops = {
	.name = "promote",
	.destroy = dst_destroy,
};

/* A new dst in the slot, which has the only reference to it. */
static struct dstref_dst *dst_next(struct promote *p, uint32_t flags)
{
	struct dstref_dst *dst = aligned_alloc(APART, sizeof(*dst));

	require(dst && !dstref_dst_init(dst, p->net, &ops, NULL, flags),
		"no dst");
	dstref_dst_slot_install(&p->slot, dst);
	return dst;
}

static int setup(const struct bench_variant *variant, unsigned int threads,
		 void **state)
{
	struct promote *p = aligned_alloc(APART, sizeof(*p));
	int rc;

	(void)threads;
	if (!p)
		return -ENOMEM;
	memset((void *)p, 0, sizeof(*p));
	p->shape = variant->context;
	rc = stage_open(&p->net);
	if (rc)
		free(p);
	else
		*state = p;
	return rc;
}

static void teardown(void *state)
{
	struct promote *p = state;

	dstref_dst_slot_clear(&p->slot);
	if (stage_close(p->net))
		free(p);
}

/* What both threads do all the time. */
static void contend(struct promote *p)
{
	for (int i = 0; i < PAIRS; i++)
		dstref_dst_release(dstref_dst_slot_hold(&p->slot));
}

static uint64_t promotions(const struct promote *p)
{
	struct dstref_net_counters stats;

	dstref_net_stats(p->net, &stats);
	return stats.promotions;
}

static bool contended(const struct promote *p, const struct dstref_dst *dst)
{
	return __atomic_load_n(&p->seen, __ATOMIC_RELAXED) == dst;
}

/* Ticks when it is time to; true when this one split the dst. */
static bool tick(struct promote *p, uint64_t now)
{
	uint64_t before = promotions(p);

	if (now < p->due)
		return false;
	p->due = now + p->shape->period_ns;
	p->ticks++;
	(void)dstref_net_tick(p->net, now, UINT32_MAX);
	return promotions(p) != before;
}

/* Threads that take turns on one CPU do not contend: then there is an end. */
static bool is_patient(const struct bench_self *self, uint64_t since)
{
	return !bench_over(self) || now_ns() - since < PATIENCE_NS;
}

/* One dst, from its first hold until it is split. */
static double sample(const struct bench_self *self, struct promote *p)
{
	struct dstref_dst *dst = dst_next(p, p->shape->flags);
	uint64_t ticks = 0, start = 0, now, begin = now_ns();
	bool split;

	do {
		contend(p);
		now = now_ns();
		if (!start && contended(p, dst)) {
			start = now;
			ticks = p->ticks;
		}
		split = tick(p, now);
		urcu_qsbr_quiescent_state();
	} while (!split && is_patient(self, begin));
	/* No start only where it need not be contended. */
	if (!start || !split)
		return NAN;
	return (double)(p->shape->time ? now - start : p->ticks - ticks);
}

static void watch(struct bench_self *self, struct promote *p)
{
	uint64_t begin = now_ns();
	double value;

	do {
		value = sample(self, p);
		if (isfinite(value))
			bench_sample(self, value);
	} while (!bench_over(self) ||
		 (!self->sampled && is_patient(self, begin)));
	__atomic_store_n(&p->stop, true, __ATOMIC_RELAXED);
}

static void ticks_work(struct bench_self *self)
{
	struct promote *p = self->state;

	urcu_qsbr_register_thread();
	require(!dstref_net_attach(p->net), "a thread has no cells");
	if (!self->id)
		watch(self, p);
	while (!__atomic_load_n(&p->stop, __ATOMIC_RELAXED)) {
		struct dstref_dst *dst = dstref_dst_slot_borrow(&p->slot);

		contend(p);
		__atomic_store_n(&p->seen, dst, __ATOMIC_RELAXED);
		self->ops += PAIRS;
		urcu_qsbr_quiescent_state();
	}
	dstref_net_detach(p->net);
	urcu_qsbr_unregister_thread();
}

/* How long a grace period takes by call_rcu, and with it a merge. */

static void called(struct rcu_head *head)
{
	struct promote *p = (struct promote *)((char *)head -
					       offsetof(struct promote, head));

	dstref_store_release(&p->called, 1u);
}

static bool is_called(const struct promote *p)
{
	return dstref_load_acquire(&p->called) != 0;
}

static bool is_merged(const struct promote *p)
{
	struct dstref_net_counters stats;

	dstref_net_stats(p->net, &stats);
	return !stats.promoted;
}

/* Outside any reader, in steps that are short beside what is waited for. */
static double wait_for(const struct promote *p,
		       bool (*over)(const struct promote *p))
{
	static const struct timespec step = { 0, 50000 };
	uint64_t start = now_ns();

	while (!over(p))
		nanosleep(&step, NULL);
	return (double)(now_ns() - start);
}

static void call_rcu_work(struct bench_self *self)
{
	struct promote *p = self->state;

	do {
		dstref_store_relaxed(&p->called, 0u);
		urcu_qsbr_call_rcu(&p->head, called);
		bench_sample(self, wait_for(p, is_called));
	} while (!bench_over(self));
}

static void dead_work(struct bench_self *self)
{
	struct promote *p = self->state;

	do {
		struct dstref_dst *dst = dst_next(p, DSTREF_DST_SPLIT_ALWAYS);

		(void)dstref_net_tick(p->net, now_ns(), UINT32_MAX);
		require(!is_merged(p), "the dst was not split");
		dstref_dst_dead(dst);
		bench_sample(self, wait_for(p, is_merged));
	} while (!bench_over(self));
}

/* Tables. */

static double us(const struct bench_run *run)
{
	return bench_sampled(run) / 1e3;
}

#define OF(id, of_kind, fn, text, ...)                                   \
	{                                                                \
		.name = (id), .kind = (of_kind), .what = (text),         \
		.setup = setup, .work = fn##_work, .teardown = teardown, \
		.context = &(const struct shape)                         \
		{                                                        \
			__VA_ARGS__                                      \
		}                                                        \
	}
#define DISTANCES(time)                                                        \
	OF("1-ms", BENCH_OURS, ticks, "by default, a tick each ms", MS, 0,     \
	   time),                                                              \
		OF("100-us", BENCH_OURS, ticks,                                \
		   "by default, 10 times as often", MS / 10, 0, time),         \
		OF("10-ms", BENCH_OURS, ticks, "by default, 10 times as rare", \
		   MS * 10, 0, time),                                          \
		OF("asked", BENCH_FLOOR, ticks, "told to be split, each ms",   \
		   MS, DSTREF_DST_SPLIT_ALWAYS, time)

static const struct bench_variant in_ticks[] = { DISTANCES(false) };
static const struct bench_variant in_time[] = { DISTANCES(true) };
static const struct bench_variant until[] = {
	OF("call-rcu", BENCH_FLOOR, call_rcu, "a callback that does nothing",
	   0),
	OF("dead", BENCH_OURS, dead, "dstref_dst_dead until it is merged", 0),
};

static const unsigned int one[] = { 1, 0 }, two[] = { 2, 0 };

static const struct bench_table tables[] = {
	{ .name = "ticks",
	  .title =
		  "ticks from the first contention of two threads to the split",
	  .variants = in_ticks,
	  .count = sizeof(in_ticks) / sizeof(in_ticks[0]),
	  .unit = "ticks",
	  .threads = two,
	  .value = bench_sampled },
	{ .name = "time",
	  .title = "the same in time",
	  .variants = in_time,
	  .count = sizeof(in_time) / sizeof(in_time[0]),
	  .unit = "us",
	  .threads = two,
	  .value = us },
	{ .name = "change",
	  .title = "a kill, a demotion, a merge, each timed by itself",
	  .variants = cost_changes,
	  .count = COST_CHANGES,
	  .baseline = 1,
	  .unit = "ns",
	  .threads = one,
	  .value = bench_sampled },
	{ .name = "tick",
	  .title =
		  "a tick, entries that are split of threads that are attached",
	  .variants = cost_ticks,
	  .count = COST_TICKS,
	  .unit = "ns",
	  .threads = one,
	  .value = bench_sampled },
	{ .name = "until",
	  .title = "from the death of a split dst to its merge",
	  .variants = until,
	  .count = sizeof(until) / sizeof(until[0]),
	  .unit = "us",
	  .threads = one,
	  .value = us },
};

static void report(FILE *out, const struct bench_result *result)
{
	const struct bench_row *none = bench_row(result, "tick", "none", 1);
	const struct bench_row *most =
		bench_row(result, "tick", "100-of-64", 1);

	if (none && most)
		fprintf(out,
			"\na tick takes %.1f ns more for each pair of an entry "
			"that is split and a thread that is attached\n",
			(most->median - none->median) / (100 * 64));
}

const struct bench_experiment bench_promote = {
	.name = "promote",
	.seed = "S2",
	.question = "How soon does a contended route scale, and what do its "
		    "promotion, its demotion and its end cost?",
	.published = "2012: `clone very hot entries on demand`, an idea, not "
		     "measured.",
	.measured = "Two threads contend for one dst after another, one of "
		    "them ticks. The cost of each change, with a flavour whose "
		    "callbacks run when they are told to, so that they can be "
		    "timed.",
	.tables = tables,
	.count = sizeof(tables) / sizeof(tables[0]),
	.report = report,
};
