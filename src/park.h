/* SPDX-License-Identifier: MIT */
/*
 * park - sleepers by address; see park.c
 */
#ifndef DSTREF_PARK_H
#define DSTREF_PARK_H

#include <dstref/line.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <time.h>

#define PARK_ROWS 32 /* a power of two */

/* A sleeper, on his own stack. */
struct park_node {
	LIST_ENTRY(park_node) link;
	const void *key;
	bool woken;
	pthread_cond_t cond;
};

struct park_row {
	DSTREF_LINE_START pthread_mutex_t lock;
	LIST_HEAD(park_list, park_node) nodes;
};

struct park {
	struct park_row rows[PARK_ROWS];
};

/* When a wait ends. */
struct park_end {
	bool forever;
	struct timespec at;
};

void park_init(struct park *park);
void park_fini(struct park *park);

/* The end of a wait of @timeout_ns from now; below zero: never. */
void park_end_in(struct park_end *end, int64_t timeout_ns);

int park_node_init(struct park_node *node, const void *key);
void park_node_fini(struct park_node *node);

/* Parks @node: from here on a wake of its key finds it. */
void park_enter(struct park *park, struct park_node *node);

/* Sleeps until woken or @end; false at @end. */
bool park_sleep(struct park *park, struct park_node *node,
		const struct park_end *end);

/* Unparks @node; calls @last(@arg) under the lock if no other has its key. */
void park_leave(struct park *park, struct park_node *node,
		void (*last)(void *arg), void *arg);

/* Wakes all that are parked on @key; how many there were. */
unsigned int park_wake(struct park *park, const void *key);

#endif
