/* SPDX-License-Identifier: MIT */
/*
 * sanitizer.race - races that the thread sanitizer must tell
 *
 * Goal: what the suites are clean under can see. liburcu is suppressed and the
 * library is annotated, and either could blind the sanitizer: here, with both
 * in force, a route is read after its reader was left, or after its reference
 * was let go of, while its end is elsewhere. Method: the threads take turns by
 * relaxed stores, which order nothing, so that each fault is there in every
 * run. "clean" is the same without one, and no report; ctest looks for the name
 * of the function at fault.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dstref/dst.h>

#include "tsan.h"

struct route {
	struct dstref_dst dst;
	int mark;
};

struct fault {
	const char *name;
	void (*reader)(void);
};

static struct dstref_net *net;
static struct dstref_dst_slot slot;
static DSTREF_ATOMIC(unsigned int) turn;
static DSTREF_ATOMIC(int) seen;

static void pass_turn(unsigned int to)
{
	dstref_store_relaxed(&turn, to);
}

static void wait_turn(unsigned int which)
{
	while (dstref_load_relaxed(&turn) != which)
		sched_yield();
}

static void route_end(struct dstref_dst *dst)
{
	struct route *route = (struct route *)dst;

	route->mark = 0;
	free(route);
}

static const struct dstref_dst_ops ops = { .destroy = route_end };

static void look(const struct dstref_dst *dst)
{
	dstref_store_relaxed(&seen, ((const struct route *)dst)->mark);
}

static void clean(void)
{
	reader_lock(&urcu_memb_flavor);
	look(dstref_dst_slot_borrow(&slot));
	reader_unlock(&urcu_memb_flavor);
	pass_turn(1);
	wait_turn(2);
}

static void look_after_unlock(void)
{
	const struct dstref_dst *dst;

	reader_lock(&urcu_memb_flavor);
	dst = dstref_dst_slot_borrow(&slot);
	reader_unlock(&urcu_memb_flavor);
	pass_turn(1);
	wait_turn(2);
	look(dst);
}

static void look_after_release(void)
{
	struct dstref_dst *dst;

	reader_lock(&urcu_memb_flavor);
	dst = dstref_dst_slot_hold(&slot);
	dstref_dst_release(dst);
	reader_unlock(&urcu_memb_flavor);
	pass_turn(1);
	wait_turn(2);
	look(dst);
}

static const struct fault faults[] = {
	{ "clean", clean },
	{ "look_after_unlock", look_after_unlock },
	{ "look_after_release", look_after_release },
};

static void *read_route(void *arg)
{
	const struct fault *fault = arg;

	reader_register(&urcu_memb_flavor);
	fault->reader();
	reader_unregister(&urcu_memb_flavor);
	return NULL;
}

static int fail(const char *what)
{
	fprintf(stderr, "race: %s\n", what);
	return 2;
}

static int run(struct fault fault)
{
	struct dstref_net_attr attr = { .flavour = &urcu_memb_flavor };
	struct route *route =
		aligned_alloc(_Alignof(struct route), sizeof(*route));
	pthread_t id;

	if (!route || dstref_net_create(&net, &attr) ||
	    dstref_dst_init(&route->dst, net, &ops, NULL, 0))
		return fail("no memory; free some");
	route->mark = 1;
	dstref_dst_slot_install(&slot, &route->dst);
	if (pthread_create(&id, NULL, read_route, &fault))
		return fail("no thread; raise the limit");
	wait_turn(1);
	dstref_dst_slot_clear(&slot);
	if (dstref_net_destroy(net))
		return fail("the route did not end");
	pass_turn(2);
	pthread_join(id, NULL);
	if (dstref_load_relaxed(&seen) != 1)
		return fail("what the reader saw was no route");
	return 0;
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (argc == 2 && !strcmp(argv[1], faults[i].name))
			return run(faults[i]);
	return fail("give clean, look_after_unlock or look_after_release");
}
