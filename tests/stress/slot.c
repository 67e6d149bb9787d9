/* SPDX-License-Identifier: MIT */
/*
 * stress.slot - readers of a slot while others change it
 *
 * Goal: C2, whatever a reader finds is whole until he leaves, the slot owns
 * one reference all the time, and one route is alive at the end. C6, of two
 * who install in one slot one wins and the other's reference is gone. Method:
 * each route carries a mark that its end destroys, in memory that is filled
 * and watched after it was freed; births and ends are counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dstref/dst.h>

#include "alloc.h"
#include "capture.h"
#include "stress.h"

#define READERS 3
#define MARK UINT64_C(0x616c697665)
#define TICK (UINT64_C(1) << DSTREF_NET_TICK_SHIFT) /* nanoseconds */

struct route {
	struct dstref_dst dst;
	uint64_t mark;
	uint64_t number;
};

static struct alloc alloc;
static struct dstref_net *net;
static struct dstref_dst_slot slot;
static DSTREF_ATOMIC(uint64_t) born;
static DSTREF_ATOMIC(uint64_t) ended;
static DSTREF_ATOMIC(bool) met; /* a reader has held a route */
static DSTREF_ATOMIC(bool) over;

static struct route *route_of(struct dstref_dst *dst)
{
	return (struct route *)((char *)dst - offsetof(struct route, dst));
}

static void route_end(struct dstref_dst *dst)
{
	struct dstref_net_mem mem = dst->net->mem;
	struct route *route = route_of(dst);

	route->mark = 0;
	(void)dstref_fetch_add_relaxed(&ended, (uint64_t)1);
	mem.free(mem.ctx, route, sizeof(*route));
}

static const struct dstref_dst_ops route_ops = { .destroy = route_end };

/* NULL when there is no memory, which the caller counts as a failure. */
static struct dstref_dst *route_new(uint64_t number)
{
	struct route *route = net->mem.alloc(net->mem.ctx, sizeof(*route),
					     DSTREF_LINE_SIZE, -1);

	if (!route || dstref_dst_init(&route->dst, net, &route_ops, NULL, 0))
		return NULL;
	route->mark = MARK;
	route->number = number;
	(void)dstref_fetch_add_relaxed(&born, (uint64_t)1);
	return &route->dst;
}

static void begin(const struct rcu_flavor_struct *flavour)
{
	struct dstref_net_attr attr = { .flavour = flavour };

	alloc_init(&alloc);
	attr.mem = alloc_mem(&alloc);
	dstref_init_plain(&slot.dst, NULL);
	dstref_init_plain(&born, (uint64_t)0);
	dstref_init_plain(&ended, (uint64_t)0);
	dstref_init_plain(&met, false);
	dstref_init_plain(&over, false);
	assert_int_equal(dstref_net_create(&net, &attr), 0);
}

static void end(void)
{
	dstref_dst_slot_clear(&slot);
	assert_int_equal(dstref_net_destroy(net), 0);
	assert_int_equal(dstref_load_relaxed(&ended),
			 dstref_load_relaxed(&born));
	assert_int_equal(alloc_fini(&alloc), 0);
}

/* The writer: swaps by the three calls that can. */
static void swap(struct stress_thread *thread)
{
	uint64_t rounds = stress_rounds(100000);

	for (uint64_t i = 0; i < rounds || !dstref_load_relaxed(&met); i++) {
		struct dstref_dst *dst = route_new(i);
		struct dstref_dst *old = dstref_load_relaxed(&slot.dst);

		if (!dst) {
			thread->failed++;
			break;
		}
		if (i % 3 == 0)
			dstref_dst_slot_clear(&slot);
		if (i % 3 != 1)
			dstref_dst_slot_install(&slot, dst);
		else if (!dstref_dst_slot_replace(&slot, old, dst))
			thread->failed++;
		thread->ops++;
		if (i % 2048 == 0) /* let callbacks keep pace */
			net->flavour->barrier();
	}
	dstref_store_relaxed(&over, true);
}

static bool whole(struct dstref_dst *dst, uint64_t *last)
{
	struct route *route = route_of(dst);
	bool newer = route->number >= *last;

	*last = route->number;
	return route->mark == MARK && dst->ops == &route_ops && newer;
}

/* One visit; what it returns was held across the end of a reader. */
static struct dstref_dst *visit(struct stress_thread *thread, uint64_t *last)
{
	bool by_hold = stress_random(thread) & 1;
	struct dstref_dst *dst = by_hold ? dstref_dst_slot_hold(&slot)
					 : dstref_dst_slot_borrow(&slot);

	if (!dst)
		return NULL;
	thread->ops++;
	dstref_dst_use_noref(dst, thread->ops * TICK);
	if (!whole(dst, last))
		thread->failed++;
	if (!by_hold && !dstref_dst_try_hold(dst)) {
		if (route_of(dst)->mark != MARK) /* dying, but still there */
			thread->failed++;
		return NULL;
	}
	thread->told++;
	dstref_store_relaxed(&met, true);
	return dst;
}

static void read_slot(struct stress_thread *thread)
{
	const struct rcu_flavor_struct *flavour = net->flavour;
	struct dstref_dst *kept = NULL;
	uint64_t last = 0;

	reader_register(flavour);
	while (!dstref_load_relaxed(&over)) {
		reader_lock(flavour);
		if (kept && route_of(kept)->mark != MARK)
			thread->failed++;
		dstref_dst_release(kept);
		kept = visit(thread, &last);
		reader_unlock(flavour);
		reader_quiescent(flavour);
	}
	reader_unregister(flavour);
	dstref_dst_release_outside(kept);
}

static void swap_or_read(struct stress_thread *thread)
{
	if (thread->index)
		read_slot(thread);
	else
		swap(thread);
}

/* Memory alive: the namespace and what the slot shows. */
static size_t blocks(void)
{
	size_t n;

	pthread_mutex_lock(&alloc.lock);
	n = alloc.blocks;
	pthread_mutex_unlock(&alloc.lock);
	return n;
}

static void c02(const struct rcu_flavor_struct *flavour)
{
	struct stress run = { .threads = 1 + READERS };
	struct stress_thread sums;
	struct dstref_net_counters stats;

	begin(flavour);
	stress_run(&run, swap_or_read, &sums);
	stress_assert_equal(&run, sums.failed, 0);
	stress_assert(&run,
		      dstref_load_relaxed(&born) >= stress_rounds(100000));
	stress_assert(&run, sums.told > 0);
	flavour->barrier();
	dstref_net_stats(net, &stats);
	stress_assert_equal(&run, stats.dst, 1);
	stress_assert_equal(&run,
			    dstref_dst_refs(dstref_load_relaxed(&slot.dst)), 1);
	/* The namespace, its cells' blocks, the route. */
	stress_assert_equal(&run, blocks(), 3);
	end();
}

static void c02_slot_swapped_under_readers_memb(void **state)
{
	(void)state;
	c02(&urcu_memb_flavor);
}

static void c02_slot_swapped_under_readers_qsbr(void **state)
{
	(void)state;
	c02(&urcu_qsbr_flavor);
}

/* Both bring a route to one slot; then the first thread looks and clears. */
static DSTREF_ATOMIC(unsigned int) winners;

static void race_to_install(struct stress_thread *thread)
{
	uint64_t rounds = stress_rounds(20000);

	for (uint64_t i = 0; i < rounds; i++) {
		bool replaces = i % 2;
		struct dstref_dst *dst = route_new(i);

		stress_meet(thread);
		if (!replaces)
			dstref_dst_slot_install(&slot, dst);
		else if (dstref_dst_slot_replace(&slot, NULL, dst))
			(void)dstref_fetch_add_relaxed(&winners, 1u);
		stress_meet(thread);
		if (thread->index)
			continue;
		if (dstref_xchg_relaxed(&winners, 0u) != replaces)
			thread->failed++;
		if (dstref_dst_refs(dstref_load_relaxed(&slot.dst)) != 1)
			thread->failed++;
		dstref_dst_slot_clear(&slot);
		if (i % 1024 == 0)
			net->flavour->barrier();
	}
}

static void c06_slot_race_to_install_has_one_winner(void **state)
{
	struct stress run = { .threads = 2 };
	struct stress_thread sums;

	(void)state;
	begin(&urcu_memb_flavor);
	dstref_init_plain(&winners, 0u);
	stress_run(&run, race_to_install, &sums);
	stress_assert_equal(&run, sums.failed, 0);
	stress_assert_equal(&run, dstref_load_relaxed(&born),
			    2 * stress_rounds(20000));
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		capture_test(c02_slot_swapped_under_readers_memb),
		capture_test(c02_slot_swapped_under_readers_qsbr),
		capture_test(c06_slot_race_to_install_has_one_winner),
	};

	return cmocka_run_group_tests_name("slot", tests, NULL, NULL);
}
