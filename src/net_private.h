/* SPDX-License-Identifier: MIT */
/*
 * net_private - what of a namespace is the library's own; see net.c
 */
#ifndef DSTREF_NET_PRIVATE_H
#define DSTREF_NET_PRIVATE_H

#include "park.h"
#include "rcu.h"

#include <dstref/split.h>

LIST_HEAD(net_entries, dstref_net_entry);

enum net_sleep { NET_ROOM, NET_DATA, NET_SLEEPS };

struct net {
	struct dstref_net pub;

	/* Written as entries come and go. */
	DSTREF_LINE_START DSTREF_ATOMIC(uint64_t) gate;
	DSTREF_ATOMIC(uint64_t) alive[DSTREF_NET_KINDS];
	DSTREF_ATOMIC(uint64_t) sleeps[NET_SLEEPS];
	DSTREF_ATOMIC(uint64_t) wakeups[NET_SLEEPS];

	/* Written by the tick. */
	DSTREF_LINE_START DSTREF_ATOMIC(uint64_t) now;
	DSTREF_ATOMIC(uint32_t) ticking;
	DSTREF_ATOMIC(uint32_t) ticks;

	DSTREF_LINE_START pthread_mutex_t lock; /* entries */
	struct net_entries entries;
	pthread_mutex_t outside; /* callbacks from outside any reader */
	struct dstref_rcu_head first;
	struct dstref_split_domain *split; /* NULL: no cells to be had */
	struct park park;
};

static inline struct net *net_of(struct dstref_net *net)
{
	return container_of(net, struct net, pub);
}

/* A new entry is to come: 0, or -ESHUTDOWN when the namespace is closing. */
int net_enter(struct dstref_net *pub, enum dstref_net_kind kind);

/* It is there, initialised: a walk may find it. */
void net_link(struct dstref_net *pub, struct dstref_net_entry *entry,
	      enum dstref_net_kind kind);

/* The entry's life has ended: a callback for it is under way instead. */
void net_leave(struct dstref_net *pub, enum dstref_net_kind kind);

/* A callback is under way beside the entry. */
void net_defer_begin(struct dstref_net *pub);

/* The callback takes the entry off the list, before the memory goes. */
void net_unlink(struct dstref_net *pub, struct dstref_net_entry *entry);

/* The callback is done: its last touch of the namespace. */
void net_done(struct dstref_net *pub);

/* Ticks so far, for what is halved by each. */
static inline uint32_t net_ticks(struct dstref_net *net)
{
	return dstref_load_relaxed(&net_of(net)->ticks);
}

/* Reports what is left: in numbers, then each entry by name. */
void net_report_busy(struct net *net, uint32_t entries, uint32_t callbacks,
		     const char *call);

void *net_alloc(struct dstref_net *net, size_t size);
void net_free(struct dstref_net *net, void *ptr, size_t size);

/*
 * Around a wait: takes an online QSBR thread offline. False, with a report,
 * inside a reader, where the wait would never end.
 */
bool net_wait_begin(struct dstref_net *net, bool *online, const char *call);
void net_wait_end(const struct rcu_flavor_struct *flavour, bool online);

#endif
