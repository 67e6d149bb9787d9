/* SPDX-License-Identifier: MIT */
/*
 * world - a namespace on the manual flavour, and routes that tell their end
 *
 * The setup makes a namespace whose grace periods the test advances by hand
 * and whose memory is kept account of; the test's own thread is registered.
 * The teardown destroys it, and fails the test if that is refused, if memory
 * is left, if RCU was misused, or if anything was reported unexpectedly.
 */
#ifndef TESTS_WORLD_H
#define TESTS_WORLD_H

#include <dstref/dst.h>

#include "alloc.h"
#include "capture.h"
#include "manual.h"
#include "tsan.h"

#define WORLD_ROUTES 8

struct world {
	struct alloc alloc;
	struct dstref_net *net;

	/* What ops->destroy noted, by the number of the route. */
	unsigned int ended[WORLD_ROUTES]; /* how often it ran */
	unsigned int place[WORLD_ROUTES]; /* as the how manieth, from 1 */
	unsigned int ends;
	bool unpinned; /* the namespace counted no callback meanwhile */
	bool shown; /* a route's slot still showed it */
	uint32_t watched; /* references of the last route's watch */
};

/* A user's route. Its memory is gone after its end. */
struct route {
	void *before; /* so that the dst is not at the head */
	struct dstref_dst dst;
	struct world *world;
	unsigned int number;
	const struct dstref_dst_slot *slot; /* looked at by destroy */
	const struct dstref_dst *watch; /* the same: how many references */
};

extern const struct dstref_dst_ops route_ops;

int world_setup(void **state);
int world_teardown(void **state);

/* A test of cmocka's with both; *state is the world. */
#define world_test(fn) \
	cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)

/* Route @number of the world, with the one reference of its creator. */
struct route *route_new(struct world *world, unsigned int number);
struct route *route_new_flags(struct world *world, unsigned int number,
			      uint32_t flags);

/* Whether the faults of a kind are @n; they are forgotten then. */
bool world_faults(enum manual_fault fault, unsigned int n);

static inline void enter(void)
{
	reader_lock(&manual_flavor);
}

static inline void leave(void)
{
	reader_unlock(&manual_flavor);
}

/* Lets go of a reference, inside a reader. */
static inline void put(struct route *route)
{
	enter();
	dstref_dst_release(&route->dst);
	leave();
}

#endif
