/* SPDX-License-Identifier: MIT */
/*
 * net_walk - what is in a namespace, and what is left of it
 *
 * The entries are looked at under the lock of their list. An entry leaves the
 * list in its last callback, before its memory goes, so what the list shows
 * is there; one that is ending shows no references and is passed over. What
 * is said of an entry is relaxed and of the past: it is for people.
 */
#include "net_private.h"

#include <dstref/dst.h>
#include <dstref/sock.h>

#include <inttypes.h>
#include <stdio.h>

#define NS_PER_MS 1000000
#define LEAKS 64 /* entries named in one report of what is left */

struct leaks {
	const char *call;
	unsigned int left;
};

struct look {
	dstref_net_walk_fn fn;
	void *ctx;
	uint64_t now;
};

static uint32_t dst_refs(const void *object)
{
	return dstref_dst_refs(object);
}

/* References; without any, the packets that still pin it. */
static uint32_t sock_refs(const void *object)
{
	const struct dstref_sock *sk = object;
	uint32_t refs = dstref_count_read(&sk->count);
	uint32_t out = dstref_wmem_value_units(dstref_wmem_read(&sk->wmem));
	uint32_t in = dstref_wmem_value_units(dstref_wmem_read(&sk->rmem));

	if (refs)
		return refs;
	/* While the receive account is open it has a unit of the other. */
	return in ? in + out - 1 : out;
}

static bool look_at(struct dstref_net_entry *entry, const struct look *look)
{
	bool is_dst = entry->kind == DSTREF_NET_DST;
	const void *object =
		is_dst ? (const void *)container_of(entry, struct dstref_dst,
						    entry)
		       : container_of(entry, struct dstref_sock, entry);
	uint32_t refs = is_dst ? dst_refs(object) : sock_refs(object);
	uint32_t age = dstref_net_tick_of(look->now) - entry->born;

	if (!refs)
		return true;
	return look->fn((enum dstref_net_kind)entry->kind, object, refs,
			(uint64_t)age << DSTREF_NET_TICK_SHIFT, look->ctx);
}

void dstref_net_walk(struct dstref_net *pub, dstref_net_walk_fn fn, void *ctx)
{
	if (!dstref_debug_arg(pub, "dstref_net_walk"))
		return;
	struct net *net = net_of(pub);
	struct look look = { fn, ctx, dstref_net_now(pub) };
	struct dstref_net_entry *entry;

	pthread_mutex_lock(&net->lock);
	LIST_FOREACH (entry, &net->entries, link)
		if (!look_at(entry, &look))
			break;
	pthread_mutex_unlock(&net->lock);
}

static const char *name_of(enum dstref_net_kind kind, const void *object)
{
	const char *name =
		kind == DSTREF_NET_DST
			? ((const struct dstref_dst *)object)->ops->name
			: ((const struct dstref_sock *)object)->proto->name;
	return name ? name : "unnamed";
}

/* Names one entry, of LEAKS at most. */
static bool report_leak(enum dstref_net_kind kind, const void *object,
			uint32_t refs, uint64_t age_ns, void *ctx)
{
	struct leaks *leaks = ctx;
	char text[128];

	snprintf(text, sizeof(text),
		 "%s '%s' has %" PRIu32 " references or packets and is "
		 "%" PRIu64 " ms old",
		 kind == DSTREF_NET_DST ? "dst" : "sock", name_of(kind, object),
		 refs, age_ns / NS_PER_MS);
	dstref_report_raise(DSTREF_REPORT_NET_LEAK, leaks->call, object, refs,
			    text);
	return --leaks->left > 0;
}

void net_report_busy(struct net *net, uint32_t entries, uint32_t callbacks,
		     const char *call)
{
	struct leaks leaks = { call, LEAKS };
	char text[128];

	snprintf(text, sizeof(text),
		 "%" PRIu64 " dst, %" PRIu64 " sock, %" PRIu32
		 " callbacks under way",
		 dstref_load_relaxed(&net->alive[DSTREF_NET_DST]),
		 dstref_load_relaxed(&net->alive[DSTREF_NET_SOCK]), callbacks);
	dstref_report_raise(DSTREF_REPORT_NET_BUSY, call, &net->pub, entries,
			    text);
	dstref_net_walk(&net->pub, report_leak, &leaks);
}
