/* SPDX-License-Identifier: MIT */
/*
 * cost - promotion, kill, demotion, merge and tick, each timed by itself
 *
 * A merge runs on the flavour's callback thread, some milliseconds after it was
 * queued, where it cannot be timed. So these namespaces have a flavour of their
 * own: there is one thread, a grace period is over as soon as that thread says
 * so, and callbacks wait in a list until it runs them, with a clock on either
 * side. All else is the library as it is.
 *
 * How many threads are attached matters to merges and ticks, which add up the
 * cells of all. Threads are attached at the same time, and then end: their
 * arrays stay and are summed as before. One of them is inherited by the thread
 * that measures.
 */
#include "cost.h"

#include <dstref/dstref.h>
#include <urcu/call-rcu.h>
#include <urcu/flavor.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREADS_MOST 64
#define ENTRIES_MOST 100
#define PAIRS 16 /* of each entry between two changes */

#define CALLBACKS 512 /* that wait at once, at most */

/* What a variant times. */
enum change { NOTHING, DEAD, CLEAR, MERGE };

struct shape {
	enum change change;
	bool split; /* the dst that it is done to */
	unsigned int threads; /* attached */
	unsigned int entries; /* split, for a tick */
};

struct entry {
	_Alignas(2 * BENCH_LINE) struct dstref_dst dst;
};

struct cost {
	const struct shape *shape;
	struct dstref_net *net;
	uint64_t now;
	unsigned int ended; /* dsts */
	struct dstref_dst_slot slot;
	pthread_barrier_t attached;
	struct entry entry[ENTRIES_MOST];
};

DSTREF_COLD static void require(bool right, const char *what)
{
	if (right)
		return;
	(void)fprintf(stderr, "promote: %s; the figures mean nothing\n", what);
	abort();
}

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A flavour of one thread: callbacks run in turn when it says so. */

struct callback {
	struct rcu_head *head;
	void (*fn)(struct rcu_head *head);
};

static struct callback waiting[CALLBACKS];
static unsigned int queued, done;

static void call_later(struct rcu_head *head, void (*fn)(struct rcu_head *head))
{
	require(queued - done < CALLBACKS, "too many callbacks");
	waiting[queued++ % CALLBACKS] = (struct callback){ head, fn };
}

static void run_one(void)
{
	struct callback *callback = &waiting[done++ % CALLBACKS];

	callback->fn(callback->head);
}

static void run_all(void)
{
	while (done != queued)
		run_one();
}

static void grace(void)
{
	/* There are no readers but the caller. */
}

static const struct rcu_flavor_struct alone = {
	.update_call_rcu = call_later,
	.update_synchronize_rcu = grace,
	.barrier = run_all,
};

/* The namespace, and threads that were attached to it. */

static void *attach(void *arg)
{
	struct cost *cost = arg;

	require(!dstref_net_attach(cost->net), "a thread has no cells");
	pthread_barrier_wait(&cost->attached);
	return NULL;
}

static void attach_all(struct cost *cost)
{
	unsigned int n = cost->shape->threads;
	pthread_t thread[THREADS_MOST];

	pthread_barrier_init(&cost->attached, NULL, n);
	for (unsigned int i = 0; i < n; i++)
		require(!pthread_create(&thread[i], NULL, attach, cost),
			"no more threads");
	for (unsigned int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&cost->attached);
}

static int setup(const struct bench_variant *variant, unsigned int threads,
		 void **state)
{
	const struct dstref_net_attr attr = { .flavour = &alone };
	struct cost *cost =
		aligned_alloc(2 * (size_t)BENCH_LINE, sizeof(*cost));
	int rc;

	(void)threads;
	if (!cost)
		return -ENOMEM;
	memset((void *)cost, 0, sizeof(*cost));
	cost->shape = variant->context;
	rc = dstref_net_create(&cost->net, &attr);
	if (rc) {
		free(cost);
		return rc;
	}
	run_all();
	attach_all(cost);
	*state = cost;
	return 0;
}

static void teardown(void *state)
{
	struct cost *cost = state;

	require(!dstref_net_destroy(cost->net), "something is left");
	free(cost);
}

/* One dst, its life over and over. */

static struct cost *ends; /* whose dsts are ended; there is one at a time */

static void dst_destroy(struct dstref_dst *dst)
{
	(void)dst; /* a member of struct cost */
	ends->ended++;
}

static const struct dstref_dst_ops ops = {
	.name = "promote",
	.destroy = dst_destroy,
};

static uint64_t promoted(const struct cost *cost)
{
	struct dstref_net_counters stats;

	dstref_net_stats(cost->net, &stats);
	return stats.promoted;
}

static void pairs(struct dstref_dst *dst, int n)
{
	while (n--) {
		dstref_dst_hold(dst);
		dstref_dst_release(dst);
	}
}

/* In the slot, split or not, and in use; one reference is the caller's. */
static void begin(struct cost *cost, struct dstref_dst *dst)
{
	bool split = cost->shape->split;

	require(!dstref_dst_init(dst, cost->net, &ops, NULL,
				 split ? DSTREF_DST_SPLIT_ALWAYS
				       : DSTREF_DST_SPLIT_NEVER),
		"a dst was refused");
	dstref_dst_hold_outside(dst);
	dstref_dst_slot_install(&cost->slot, dst);
	(void)dstref_net_tick(cost->net, ++cost->now, UINT32_MAX);
	pairs(dst, PAIRS);
}

static void finish(struct cost *cost, struct dstref_dst *dst)
{
	unsigned int ended = cost->ended;

	dstref_dst_slot_clear(&cost->slot);
	dstref_dst_release_outside(dst);
	run_all();
	require(cost->ended == ended + 1, "a dst did not end once");
}

static uint64_t timed(struct cost *cost, struct dstref_dst *dst)
{
	enum change change = cost->shape->change;
	uint64_t start;

	if (change == MERGE)
		dstref_dst_dead(dst);
	start = clock_ns();
	if (change == DEAD)
		dstref_dst_dead(dst);
	else if (change == CLEAR)
		dstref_dst_slot_clear(&cost->slot);
	else if (change == MERGE)
		run_one();
	return clock_ns() - start;
}

static void change_work(struct bench_self *self)
{
	struct cost *cost = self->state;
	struct dstref_dst *dst = &cost->entry[0].dst;

	ends = cost;
	require(!dstref_net_attach(cost->net), "the thread has no cells");
	do {
		begin(cost, dst);
		require(promoted(cost) == cost->shape->split, "not as asked");
		bench_sample(self, (double)timed(cost, dst));
		finish(cost, dst);
	} while (!bench_over(self));
	dstref_net_detach(cost->net);
}

/* A tick that looks at entries in use. */

static void entries_open(struct cost *cost)
{
	for (unsigned int i = 0; i < cost->shape->entries; i++)
		require(!dstref_dst_init(&cost->entry[i].dst, cost->net, &ops,
					 NULL, DSTREF_DST_SPLIT_ALWAYS),
			"a dst was refused");
	(void)dstref_net_tick(cost->net, ++cost->now, UINT32_MAX);
}

static void entries_close(struct cost *cost)
{
	require(promoted(cost) == cost->shape->entries,
		"an entry in use was merged");
	for (unsigned int i = 0; i < cost->shape->entries; i++) {
		dstref_dst_dead(&cost->entry[i].dst);
		dstref_dst_release_outside(&cost->entry[i].dst);
	}
	run_all();
	require(cost->ended == cost->shape->entries, "a dst did not end once");
}

static void tick_work(struct bench_self *self)
{
	struct cost *cost = self->state;
	uint64_t start;

	ends = cost;
	require(!dstref_net_attach(cost->net), "the thread has no cells");
	entries_open(cost);
	do {
		for (unsigned int i = 0; i < cost->shape->entries; i++)
			pairs(&cost->entry[i].dst, 1);
		start = clock_ns();
		(void)dstref_net_tick(cost->net, ++cost->now, UINT32_MAX);
		bench_sample(self, (double)(clock_ns() - start));
	} while (!bench_over(self));
	entries_close(cost);
	dstref_net_detach(cost->net);
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

const struct bench_variant cost_changes[COST_CHANGES] = {
	OF("clock", BENCH_EMPTY, change, "two looks at the clock", NOTHING,
	   false, 2, 0),
	OF("dead", BENCH_OURS, change, "dstref_dst_dead, not split", DEAD,
	   false, 2, 0),
	OF("dead-split", BENCH_OURS, change, "dstref_dst_dead, split", DEAD,
	   true, 2, 0),
	OF("clear", BENCH_OURS, change, "displaced from its slot, not split",
	   CLEAR, false, 2, 0),
	OF("clear-split", BENCH_OURS, change, "the same, split: demoted", CLEAR,
	   true, 2, 0),
	OF("merge-2", BENCH_OURS, change, "the merge, 2 threads attached",
	   MERGE, true, 2, 0),
	OF("merge-16", BENCH_OURS, change, "the merge, 16 threads attached",
	   MERGE, true, 16, 0),
	OF("merge-64", BENCH_OURS, change, "the merge, 64 threads attached",
	   MERGE, true, 64, 0),
};

const struct bench_variant cost_ticks[COST_TICKS] = {
	OF("none", BENCH_EMPTY, tick, "nothing is split", NOTHING, true, 2, 0),
	OF("1-of-2", BENCH_OURS, tick, "1 entry, 2 threads", NOTHING, true, 2,
	   1),
	OF("1-of-64", BENCH_OURS, tick, "1 entry, 64 threads", NOTHING, true,
	   64, 1),
	OF("100-of-2", BENCH_OURS, tick, "100 entries, 2 threads", NOTHING,
	   true, 2, 100),
	OF("100-of-64", BENCH_OURS, tick, "100 entries, 64 threads", NOTHING,
	   true, 64, 100),
};
