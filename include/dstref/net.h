/* SPDX-License-Identifier: MIT */
/**
 * DOC: net - a namespace: RCU flavour, memory, entries, time, orderly end
 *
 * Every dst and every sock belongs to a namespace. It carries what they need
 * of the world: the RCU flavour through which everything is deferred, the
 * hooks that memory comes from, the time as the application tells it. It
 * counts its entries and the callbacks that are under way for them, so that
 * it can be destroyed in order, or say by name what keeps it.
 *
 * RCU is called only through the struct rcu_flavor_struct of the namespace:
 * &urcu_memb_flavor, &urcu_qsbr_flavor, &urcu_bp_flavor, &urcu_mb_flavor, or
 * an adapter of one's own. update_call_rcu, update_synchronize_rcu and barrier
 * must be there; read_ongoing, thread_offline and thread_online may be NULL.
 * update_call_rcu is also called from threads that are registered nowhere (the
 * _outside calls) and from callbacks, then perhaps for the head whose callback
 * it is; liburcu bears both, as long as nobody frees its per-CPU callback
 * threads meanwhile. A call that may wait asks read_ongoing, takes the thread
 * offline and asks again, to tell an online QSBR thread from one in a reader;
 * so thread_offline must bear being called in a reader. This header includes
 * none of liburcu's, so it may come before or after them.
 *
 * Concurrency:
 *	create               alone, on its own result
 *	tick                 one thread at a time, beside everything
 *	attach, detach       beside everything but the end of destroy
 *	stats, now, walk     beside everything but the end of destroy
 *	barrier              beside everything but the end of destroy
 *	destroy              once at a time; beside last puts, callbacks, and
 *	                     threads inside readers that still add entries.
 *	                     Who is in no reader must know that the namespace
 *	                     is there, as for any call
 */
#ifndef DSTREF_NET_H
#define DSTREF_NET_H

#include <dstref/atomic.h>
#include <dstref/config.h>
#include <dstref/count.h>
#include <dstref/line.h>
#include <dstref/report.h>
#include <dstref/split.h>

struct rcu_flavor_struct;

/* Room for liburcu's struct rcu_head: src/rcu.h asserts that it fits. */
struct dstref_rcu_head {
	void *space[2];
};

/**
 * struct dstref_net_mem - where memory comes from
 * @alloc: @size bytes, a multiple of @align, aligned to @align (a power of
 *         two), near NUMA @node, or anywhere when @node is -1; NULL when there
 *         is none. Not cleared. What is not aligned is reported, given
 *         back, and counts as none
 * @free: what @alloc returned, with the same @size
 * @ctx: first argument of both
 *
 * Both NULL: aligned_alloc() and free(). Called from any thread, and @free
 * from the flavour's callback thread.
 */
struct dstref_net_mem {
	void *(*alloc)(void *ctx, size_t size, size_t align, int node);
	void (*free)(void *ctx, void *ptr, size_t size);
	void *ctx;
};

/**
 * struct dstref_net_attr - what a namespace is made of
 * @flavour: the RCU flavour; kept, must outlive the namespace
 * @mem: memory hooks; copied
 * @max_hot: entries that may be split at once, 1 to DSTREF_SPLIT_CELLS; 0 for
 *           DSTREF_SPLIT_CELLS_DEFAULT. Each costs 8 bytes for every thread
 *           that attaches
 *
 * All zero but @flavour is a good start.
 */
struct dstref_net_attr {
	const struct rcu_flavor_struct *flavour;
	struct dstref_net_mem mem;
	uint32_t max_hot;
	uint32_t reserved; /* must be 0 */
};

/* What the caller was built with; dstref_net_create() passes it. */
struct dstref_net_abi {
	uint32_t version;
	uint32_t line_size;
	uint32_t attr_size;
	uint32_t word_size;
};

enum dstref_net_kind {
	DSTREF_NET_DST,
	DSTREF_NET_SOCK,
	DSTREF_NET_KINDS,
	DSTREF_NET_KIND_WIDE = 0x7fffffff /* 4 bytes with -fshort-enums */
};

/*
 * An entry's place in the list of its namespace. Written under the
 * namespace's lock at creation and, a grace period after the end, once more.
 * The members of link are named for <sys/queue.h>.
 */
struct dstref_net_entry {
	struct {
		struct dstref_net_entry *le_next;
		struct dstref_net_entry **le_prev;
	} link;
	uint32_t born; /* tick at creation */
	uint32_t kind; /* enum dstref_net_kind */
};

/* Who reads and writes what; line.h says how to read a list. */
#define DSTREF_NET_FIELDS(X)                               \
	X(struct dstref_net, flavour, read, E, E, E, W)    \
	X(struct dstref_net, mem, read, N, N, E, W)        \
	X(struct dstref_net, user, read, R, R, N, W)       \
	X(struct dstref_net, tw_refs, row, N, N, N, H)     \
	X(struct dstref_net, hashinfo, lookup, R, N, N, W) \
	X(struct dstref_net, tw_limit, lookup, R, N, N, W)

/*
 * The part of a namespace that packets read. What follows it in memory is
 * private: only dstref_net_create() makes one.
 */
DSTREF_GROUPED
struct dstref_net {
	DSTREF_GROUP_LINE(read);
	const struct rcu_flavor_struct *flavour;
	struct dstref_net_mem mem;
	void *user; /* the user's; the library never looks */
	DSTREF_GROUP_END(read);

	/* The death row (S3): the count that is written, then what is read. */
	DSTREF_GROUP_LINE(row);
	struct dstref_count tw_refs;
	DSTREF_GROUP_END(row);
	DSTREF_GROUP_LINE(lookup);
	void *hashinfo;
	uint32_t tw_limit;
	DSTREF_GROUP_END(lookup);
};
DSTREF_GROUPED_END

DSTREF_NET_FIELDS(DSTREF_FIELD_ASSERT)
DSTREF_ASSERT_LINES(struct dstref_net, 3);
DSTREF_ASSERT_STRIDE(struct dstref_net);
DSTREF_ASSERT_OFFSET(struct dstref_net, tw_refs, DSTREF_LINE_SIZE);
DSTREF_ASSERT_OFFSET(struct dstref_net, hashinfo, 2 * DSTREF_LINE_SIZE);
DSTREF_ASSERT_OWN_LINE(struct dstref_net, tw_refs, hashinfo);
DSTREF_ASSERT_GROUP_LINES(struct dstref_net, read, 1);
DSTREF_ASSERT_GROUP_LINES(struct dstref_net, lookup, 1);

/**
 * struct dstref_net_counters - counters of a namespace
 * @dst: dsts whose last reference is not gone
 * @sock: socks whose account is not empty
 * @callbacks: callbacks queued and not yet done
 * @sleeps_room: times a thread went to sleep for room
 * @sleeps_data: times a thread went to sleep for data
 * @wakeups_room: threads woken because room came back, or by close or a new
 *                sndbuf; some may have been about to sleep, and did not
 * @wakeups_data: threads woken by data_ready, or by close
 * @threads: threads that are attached
 * @cells: entries that may be split at once; 0 where the process has
 *         DSTREF_SPLIT_DOMAINS namespaces with cells already
 * @cells_used: cells of entries that are split, ask for it, or are being merged
 * @cells_refused: requests for which there was none
 * @requests: requests for a promotion
 * @promotions: entries that were split
 * @demotions: entries that were merged again
 * @promoted: entries that are split now
 */
struct dstref_net_counters {
	DSTREF_ALIGNED(8) uint64_t dst; /* -malign-double changes nothing */
	uint64_t sock;
	uint64_t callbacks;
	uint64_t sleeps_room;
	uint64_t sleeps_data;
	uint64_t wakeups_room;
	uint64_t wakeups_data;
	uint64_t threads;
	uint64_t cells;
	uint64_t cells_used;
	uint64_t cells_refused;
	uint64_t requests;
	uint64_t promotions;
	uint64_t demotions;
	uint64_t promoted;
};

/**
 * dstref_net_walk_fn - called for each entry of a namespace
 * @kind: what it is
 * @object: the struct dstref_dst or struct dstref_sock
 * @refs: references, or for a sock that nobody refers to any more, packets
 *        that still pin it
 * @age_ns: since its creation, as the ticks tell it
 * @ctx: the caller's
 *
 * Return: false to end the walk.
 */
typedef bool (*dstref_net_walk_fn)(enum dstref_net_kind kind,
				   const void *object, uint32_t refs,
				   uint64_t age_ns, void *ctx);

DSTREF_BEGIN_DECLS

/* dstref_net_create() with what the caller was built with. */
DSTREF_NODISCARD DSTREF_EXPORT int
dstref_net_create_abi(struct dstref_net **net,
		      const struct dstref_net_attr *attr,
		      const struct dstref_net_abi *abi);

/**
 * dstref_net_destroy - end a namespace, or say what keeps it
 * @net: the namespace; NULL does nothing and is 0
 *
 * Refuses new entries from now on, waits for a grace period, then for the
 * callbacks that are under way. When nothing is left, frees the namespace.
 *
 * Context: any thread that may wait, outside a reader; an online QSBR thread
 *          is taken offline meanwhile.
 * Ordering: what happened before the last put of any entry happened before
 *           the return of 0.
 * Return: 0, and @net is gone; -EBUSY when entries, callbacks or attached
 *         threads are left,
 *         reported in numbers (net-busy) and the first 64 by name (net-leak;
 *         dstref_net_walk() shows all): @net is still valid and still
 *         refuses new entries, and may be destroyed again; -EDEADLK,
 *         with a report, inside a reader.
 */
DSTREF_NODISCARD DSTREF_EXPORT int dstref_net_destroy(struct dstref_net *net);

/**
 * dstref_net_barrier - wait until no entry and no callback is left
 * @net: the namespace
 * @timeout_ns: nanoseconds to wait at most, in steps of a millisecond; 0 looks
 *              once; below zero for ever
 *
 * Does not close the namespace: entries may come again. A wait with an end
 * leaves callbacks to run by themselves, so that a reader that stays inside
 * cannot make it longer; one without calls the flavour's barrier.
 *
 * Context: as dstref_net_destroy().
 * Ordering: as dstref_net_destroy().
 * Return: 0; -ETIMEDOUT with the same reports as -EBUSY of
 *         dstref_net_destroy(); -EDEADLK, with a report, inside a reader.
 */
DSTREF_NODISCARD DSTREF_EXPORT int dstref_net_barrier(struct dstref_net *net,
						      int64_t timeout_ns);

/**
 * dstref_net_attach - give this thread cells for the entries that are split
 * @net: the namespace
 *
 * For threads on the packet path. Others use the counts, and need not.
 *
 * Context: any thread; may block. Detach before @net is destroyed, or exit.
 * Ordering: none.
 * Return: 0, also when it is attached; -ENOMEM; -ENOSPC where the namespace has
 *         no cells: all stay on counts.
 */
DSTREF_NODISCARD DSTREF_EXPORT int dstref_net_attach(struct dstref_net *net);

/**
 * dstref_net_detach - take the cells from this thread
 * @net: the namespace; does nothing where it is not attached
 *
 * References may be held meanwhile, and let go of afterwards.
 *
 * Context: any thread; may block.
 * Ordering: none.
 */
DSTREF_EXPORT void dstref_net_detach(struct dstref_net *net);

/**
 * dstref_net_tick - tell the time, and have slow work done
 * @net: the namespace
 * @now_ns: the time in nanoseconds, of any clock that does not go back
 * @budget: entries with a cell that may be looked at, 0 for only the time
 *
 * Splits entries that asked for it, and has merged what was quiet.
 *
 * Context: one thread at a time, outside a reader. Never blocks.
 * Ordering: none; the time is advisory.
 * Return: entries that were split or are being merged; -EBUSY when another
 *         thread is in it, -EINVAL when @now_ns is before the last one, each
 *         with a report.
 */
DSTREF_EXPORT int dstref_net_tick(struct dstref_net *net, uint64_t now_ns,
				  uint32_t budget);

/**
 * dstref_net_now - the time of the last tick
 * @net: the namespace
 *
 * Context: any thread.
 * Ordering: none.
 * Return: nanoseconds; 0 before the first tick.
 */
DSTREF_NODISCARD DSTREF_EXPORT uint64_t
dstref_net_now(const struct dstref_net *net);

/**
 * dstref_net_stats - read the counters
 * @net: the namespace
 * @stats: filled in
 *
 * Context: any thread.
 * Ordering: none; each counter by itself, not a snapshot of all.
 */
DSTREF_EXPORT void dstref_net_stats(const struct dstref_net *net,
				    struct dstref_net_counters *stats);

/**
 * dstref_net_walk - look at every entry
 * @net: the namespace
 * @fn: called for each, under the namespace's lock: it must not create or
 *      wait for entries
 * @ctx: passed on
 *
 * Newest first. Entries that are ending (a callback is under way) are passed
 * over.
 *
 * Context: any thread; may wait for the lock.
 * Ordering: none.
 */
DSTREF_EXPORT void dstref_net_walk(struct dstref_net *net,
				   dstref_net_walk_fn fn, void *ctx);

/* The check of DSTREF_DEBUG builds: reports when not inside a reader. */
DSTREF_EXPORT void dstref_net_debug_reader(const struct dstref_net *net,
					   const void *object,
					   const char *call);

DSTREF_END_DECLS

/**
 * dstref_net_create - make a namespace
 * @net: the result; untouched on error
 * @attr: what it is made of
 *
 * Queues one callback, so that the flavour's callback thread starts with the
 * CPU mask of this thread and not of a pinned worker later.
 *
 * Context: any thread; may block.
 * Ordering: none; publication by the caller.
 * Return: 0; -EINVAL for a flavour that lacks what is needed or half a pair
 *         of memory hooks; -ENOMEM; -EPROTO, with a report that says what to
 *         do, when the caller was built for another line size, word size or
 *         version than the library.
 */
DSTREF_NODISCARD static inline int
dstref_net_create(struct dstref_net **net, const struct dstref_net_attr *attr)
{
	struct dstref_net_abi abi;

	abi.version = DSTREF_VERSION;
	abi.line_size = DSTREF_LINE_SIZE;
	abi.attr_size = (uint32_t)sizeof(struct dstref_net_attr);
	abi.word_size = (uint32_t)sizeof(void *);
	return dstref_net_create_abi(net, attr, &abi);
}

/* The coarse time in which lastuse and born are kept: 2^24 ns, about 17 ms. */
#define DSTREF_NET_TICK_SHIFT 24

static inline uint32_t dstref_net_tick_of(uint64_t now_ns)
{
	return (uint32_t)(now_ns >> DSTREF_NET_TICK_SHIFT);
}

#endif
