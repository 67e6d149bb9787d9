/* SPDX-License-Identifier: MIT */
/*
 * scene - a namespace on the explorer's flavour; routes that free themselves
 *
 * What several scenarios share. scene_open() belongs in setup, scene_close() in
 * check. Each holder of a route leaves a mark in a plain word of his own before
 * he lets go, and destroy reads them all: where the library does not order
 * the one before the other, that is a race. Routes stay on their counts.
 */
#ifndef TESTS_EXPLORE_SCENE_H
#define TESTS_EXPLORE_SCENE_H

#include "explore.h"

#include <stdlib.h>

struct scene_route {
	struct dstref_dst dst;
	int mark[EXPLORE_THREADS];
};

static struct dstref_net *scene_net;
static unsigned int scene_ended; /* routes that destroy was called for */

static inline void scene_open(void)
{
	struct dstref_net_attr attr = { .flavour = &explore_flavor,
					.max_hot = 1 };

	explore_assert(!dstref_net_create(&scene_net, &attr));
	explore_barrier(); /* the first callback is a namespace's own */
}

/* All has ended: @routes, and now the namespace. */
static inline void scene_close(unsigned int routes)
{
	explore_assert(scene_ended == routes);
	explore_assert(!dstref_net_destroy(scene_net));
}

static inline void scene_destroy(struct dstref_dst *dst)
{
	struct scene_route *route = (struct scene_route *)dst;

	for (int i = 0; i < EXPLORE_THREADS; i++)
		explore_assert(route->mark[i] <= 1);
	scene_ended++;
	free(route);
}

/* The caller has the one reference. */
static inline struct dstref_dst *scene_route(void)
{
	static const struct dstref_dst_ops ops = { "route", scene_destroy,
						   NULL };
	size_t size = DSTREF_LINE_ROUND(sizeof(struct scene_route));
	struct scene_route *route = aligned_alloc(DSTREF_LINE_SIZE, size);

	for (int i = 0; i < EXPLORE_THREADS; i++)
		route->mark[i] = 0;
	explore_assert(!dstref_dst_init(&route->dst, scene_net, &ops, NULL,
					DSTREF_DST_SPLIT_NEVER));
	return &route->dst;
}

/* A thread that has a reference writes to the route. */
static inline void scene_mark(struct dstref_dst *dst)
{
	((struct scene_route *)dst)->mark[explore_self()] = 1;
}

#endif
