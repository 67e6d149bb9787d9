/* SPDX-License-Identifier: MIT */
/*
 * stress.net - the end of a namespace beside everything that may be under way
 *
 * Goal: destroy against last puts, callbacks in flight and threads inside
 * readers that still add: each add is refused or counted, destroy says 0 only
 * when everything born has ended, and no callback runs on a namespace that is
 * gone. Method: the test's threads find the namespace inside a reader, as
 * destroy demands; one makes namespaces and destroys them under the others.
 * Its memory is filled and watched after it was freed; births and ends are
 * counted for each namespace.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dstref/dst.h>

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "alloc.h"
#include "capture.h"
#include "stress.h"

#define SECONDS 1.5
#define HANDS 4 /* routes that a thread has at once */

/* What was counted for one namespace: its user pointer. */
struct tally {
	DSTREF_ATOMIC(uint64_t) born;
	DSTREF_ATOMIC(uint64_t) ended;
};

static struct alloc alloc;
static const struct rcu_flavor_struct *flavour;
static DSTREF_ATOMIC(struct dstref_net *) current;
static DSTREF_ATOMIC(bool) over;
static DSTREF_ATOMIC(uint64_t) refused;

static void route_end(struct dstref_dst *dst)
{
	struct tally *tally = dst->net->user;

	(void)dstref_fetch_add_relaxed(&tally->ended, (uint64_t)1);
	free(dst);
}

static const struct dstref_dst_ops route_ops = { .destroy = route_end };

/* A route of the current namespace, made inside a reader. */
static struct dstref_dst *route_new(struct stress_thread *thread)
{
	struct dstref_net *net = dstref_load_acquire(&current);
	struct dstref_dst *dst;
	struct tally *tally;
	int err;

	if (!net)
		return NULL;
	tally = net->user;
	dst = aligned_alloc(DSTREF_LINE_SIZE, sizeof(*dst));
	(void)dstref_fetch_add_relaxed(&tally->born, (uint64_t)1);
	err = dstref_dst_init(dst, net, &route_ops, NULL, 0);
	if (!err) {
		thread->ops++;
		return dst;
	}
	(void)dstref_fetch_sub_relaxed(&tally->born, (uint64_t)1);
	free(dst);
	(void)dstref_fetch_add_relaxed(&refused, (uint64_t)1);
	if (err != -ESHUTDOWN)
		thread->failed++;
	return NULL;
}

static bool count_entry(enum dstref_net_kind kind, const void *object,
			uint32_t refs, uint64_t age_ns, void *ctx)
{
	unsigned int *n = ctx;

	(void)age_ns;
	return kind == DSTREF_NET_DST && object && refs && ++*n < 100;
}

static void look(void)
{
	struct dstref_net *net = dstref_load_acquire(&current);
	struct dstref_net_counters stats;
	unsigned int n = 0;

	if (!net)
		return;
	dstref_net_stats(net, &stats);
	dstref_net_walk(net, count_entry, &n);
}

/* Lets go in one of the ways there are; some as a child of another. */
static void let_go(struct stress_thread *thread, struct dstref_dst **hand)
{
	struct dstref_dst *dst = *hand, *child;

	*hand = NULL;
	switch (stress_random(thread) % 4) {
	case 0:
		dstref_dst_release(dst);
		break;
	case 1:
		dstref_dst_release_now(dst);
		break;
	case 2:
		child = route_new(thread);
		if (child && child->net == dst->net)
			dstref_dst_slot_install(&dst->child, child);
		else
			dstref_dst_release_outside(child);
		dstref_dst_dead(dst);
		/* fallthrough */
	default:
		dstref_dst_release_outside(dst);
	}
}

static void add(struct stress_thread *thread)
{
	struct dstref_dst *hands[HANDS] = { NULL };

	reader_register(flavour);
	while (!dstref_load_relaxed(&over)) {
		struct dstref_dst **hand =
			&hands[stress_random(thread) % HANDS];

		reader_lock(flavour);
		if (*hand)
			let_go(thread, hand);
		else
			*hand = route_new(thread);
		if (stress_random(thread) % 64 == 0)
			look();
		reader_unlock(flavour);
		/* What outlived its namespace's place is let go of at last. */
		if (!dstref_load_relaxed(&current))
			for (int i = 0; i < HANDS; i++) {
				dstref_dst_release_outside(hands[i]);
				hands[i] = NULL;
			}
	}
	for (int i = 0; i < HANDS; i++)
		dstref_dst_release_outside(hands[i]);
	reader_unregister(flavour);
}

/*
 * Asks for an end until it is granted, when everything born must have ended.
 * The namespace is published no more, so no reader that comes later finds it.
 */
static void destroy_until_gone(struct stress_thread *thread,
			       struct dstref_net *net)
{
	const struct tally *tally = net->user;
	int err;

	while ((err = dstref_net_destroy(net)) == -EBUSY) {
		thread->told++;
		sched_yield();
	}
	if (err || dstref_load_relaxed(&tally->born) !=
			   dstref_load_relaxed(&tally->ended))
		thread->failed++;
}

/*
 * While it is published an entry of ours keeps it: others find it closing, and
 * we wait until one of them was refused.
 */
static void close_while_published(struct stress_thread *thread,
				  struct dstref_net *net)
{
	uint64_t before = dstref_load_relaxed(&refused);
	struct dstref_dst *anchor = route_new(thread);

	if (!anchor || dstref_net_destroy(net) != -EBUSY)
		thread->failed++;
	thread->told++;
	while (dstref_load_relaxed(&refused) == before)
		sched_yield();
	dstref_store_relaxed(&current, NULL);
	dstref_dst_release_outside(anchor);
}

static void make_and_destroy(struct stress_thread *thread,
			     const struct dstref_net_attr *attr, bool closing)
{
	struct tally tally = { 0 };
	struct dstref_net *net;

	if (dstref_net_create(&net, attr)) {
		thread->failed++;
		return;
	}
	net->user = &tally;
	dstref_store_release(&current, net);
	for (uint64_t i = stress_random(thread) % 64; i; i--)
		sched_yield();
	if (closing)
		close_while_published(thread, net);
	dstref_store_relaxed(&current, NULL);
	destroy_until_gone(thread, net);
}

static void destroy_or_add(struct stress_thread *thread)
{
	const struct dstref_net_attr attr = {
		.flavour = flavour,
		.mem = alloc_mem(&alloc),
	};

	if (thread->index) {
		add(thread);
		return;
	}
	for (bool closing = true; stress_more(thread); closing = !closing)
		make_and_destroy(thread, &attr, closing);
	dstref_store_relaxed(&over, true);
}

static void destroy_under_threads(const struct rcu_flavor_struct *of)
{
	struct stress run = { .threads = 4, .seconds = SECONDS };
	struct stress_thread sums;

	flavour = of;
	alloc_init(&alloc);
	dstref_init_plain(&current, NULL);
	dstref_init_plain(&over, false);
	dstref_init_plain(&refused, (uint64_t)0);
	dstref_report_set_limit(8);
	stress_run(&run, destroy_or_add, &sums);
	stress_assert_equal(&run, sums.failed, 0);
	stress_assert(&run, sums.ops > 0);
	stress_assert(&run, dstref_load_relaxed(&refused) > 0);
	capture_expect(DSTREF_REPORT_NET_BUSY, sums.told);
	capture_expect_some(DSTREF_REPORT_NET_LEAK);
	assert_int_equal(alloc_fini(&alloc), 0);
}

static void net_destroy_under_threads_memb(void **state)
{
	(void)state;
	destroy_under_threads(&urcu_memb_flavor);
}

static void net_destroy_under_threads_bp(void **state)
{
	(void)state;
	destroy_under_threads(&urcu_bp_flavor);
}

/* Ticks of two threads: one at a time, and the time never goes back. */
static struct dstref_net *ticked;

static void tick(struct stress_thread *thread)
{
	uint64_t rounds = stress_rounds(200000);

	for (uint64_t i = 1; i <= rounds; i++) {
		uint64_t before = dstref_net_now(ticked);
		int err = dstref_net_tick(ticked, i, 0);

		if (!err)
			thread->ops++;
		else if (err == -EBUSY || err == -EINVAL)
			thread->told++;
		else
			thread->failed++;
		if (dstref_net_now(ticked) < before)
			thread->failed++;
	}
}

static void net_tick_from_two_threads(void **state)
{
	const struct dstref_net_attr attr = { .flavour = &urcu_memb_flavor };
	struct stress run = { .threads = 2 };
	struct stress_thread sums;

	(void)state;
	assert_int_equal(dstref_net_create(&ticked, &attr), 0);
	dstref_report_set_limit(8);
	stress_run(&run, tick, &sums);
	capture_expect(DSTREF_REPORT_NET_TICK, sums.told);
	stress_assert_equal(&run, sums.failed, 0);
	stress_assert_equal(&run, sums.ops + sums.told,
			    2 * stress_rounds(200000));
	stress_assert(&run, sums.ops > 0);
	assert_int_equal(dstref_net_destroy(ticked), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		capture_test(net_destroy_under_threads_memb),
		capture_test(net_destroy_under_threads_bp),
		capture_test(net_tick_from_two_threads),
	};

	return cmocka_run_group_tests_name("net", tests, NULL, NULL);
}
