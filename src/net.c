/* SPDX-License-Identifier: MIT */
/*
 * net - entries, callbacks, and an end in order
 *
 * The gate is one word: a closing bit, the callbacks under way, the entries.
 *
 *   bit 63      closing: no new entries
 *   bits 62..32 callbacks queued and not yet done
 *   bits 31..0  entries alive
 *
 * An entry comes in by a compare-and-swap loop that refuses once closing is
 * set, so a refused caller never shows up in the numbers. It ends by one
 * addition that takes the entry out and puts a callback in: there is no
 * instant at which something is still to come and the gate shows nothing. A
 * callback's subtraction is its last touch of the namespace.
 *
 * destroy sets closing; lets a grace period pass, after which every reader
 * that did not see the bit has its entry in the gate; then waits for
 * callbacks as long as there are any, for one may cause others (a sock's end
 * lets go of its dst). If the gate then shows nothing but closing, nobody has
 * an entry, no callback runs, and none will: the memory goes. Otherwise what
 * is left is reported and the namespace stays.
 *
 * The wait for callbacks ends: each runs after a grace period, and a new one
 * needs an entry to end. Entries that keep ending while destroy looks keep it
 * looking; after DRAIN_ROUNDS barriers it says busy.
 *
 * The list of entries serves the walk (net_walk.c). It is written when an entry
 * comes and, from the callback, when it goes: never on a packet's path.
 *
 * Wakers and callbacks reach the namespace through an entry that they pin or,
 * inside a reader, through one whose end is at least a grace period away.
 *
 * Ordering.
 *   R1 net_leave() and net_done() change the gate with release.
 *   A1 the load of the gate that finds it empty acquires: whatever a put or a
 *      callback did before is seen by whoever frees the namespace.
 *   R2/A2 ticking is taken with acquire and given back with release, as a
 *      lock that is only tried: the time before is seen by the next tick.
 *   The way in is relaxed: it publishes nothing; the entry is published by
 *   its owner. The time and the counters are advisory.
 *   tests/stress/net.c runs destroy against last puts and callbacks under the
 *   sanitizers; without R1 of net_done() or A1 the thread sanitizer reports the
 *   freeing. Mutants of the explorer: net_destroy.no_release, no_acquire. What
 *   net_leave() releases reaches destroy by the callback, too, so no test can
 *   fail without it; nor without R2 or A2, for what they guard is atomic.
 */
#include "net_private.h"
#include "split_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GATE_CLOSING (UINT64_C(1) << 63)
#define GATE_CALLBACK (UINT64_C(1) << 32)
#define GATE_ENTRY UINT64_C(1)
#define DRAIN_ROUNDS 64
#define POISON 0x6b
#define NS_PER_MS 1000000

static uint32_t gate_entries(uint64_t gate)
{
	return (uint32_t)gate;
}

static uint32_t gate_callbacks(uint64_t gate)
{
	return (uint32_t)((gate & ~GATE_CLOSING) >> 32);
}

int net_enter(struct dstref_net *pub, enum dstref_net_kind kind)
{
	struct net *net = net_of(pub);
	uint64_t gate = dstref_load_relaxed(&net->gate);

	do {
		if (gate & GATE_CLOSING)
			return -ESHUTDOWN;
	} while (!dstref_cas_relaxed(&net->gate, &gate, gate + GATE_ENTRY));
	(void)dstref_fetch_add_relaxed(&net->alive[kind], (uint64_t)1);
	return 0;
}

void net_link(struct dstref_net *pub, struct dstref_net_entry *entry,
	      enum dstref_net_kind kind)
{
	struct net *net = net_of(pub);

	entry->kind = kind;
	entry->born = dstref_net_tick_of(dstref_net_now(pub));
	pthread_mutex_lock(&net->lock);
	LIST_INSERT_HEAD(&net->entries, entry, link);
	pthread_mutex_unlock(&net->lock);
}

void net_leave(struct dstref_net *pub, enum dstref_net_kind kind)
{
	struct net *net = net_of(pub);

	(void)dstref_fetch_sub_relaxed(&net->alive[kind], (uint64_t)1);
	/* R1, with A1 in gate_read(). */
	(void)dstref_fetch_add_release(&net->gate, GATE_CALLBACK - GATE_ENTRY);
}

void net_defer_begin(struct dstref_net *pub)
{
	/* Relaxed: the caller's entry keeps the gate from being empty. */
	(void)dstref_fetch_add_relaxed(&net_of(pub)->gate, GATE_CALLBACK);
}

void net_unlink(struct dstref_net *pub, struct dstref_net_entry *entry)
{
	struct net *net = net_of(pub);

	pthread_mutex_lock(&net->lock);
	LIST_REMOVE(entry, link);
	pthread_mutex_unlock(&net->lock);
}

void net_done(struct dstref_net *pub)
{
	/* R1, with A1 in gate_read(). */
	(void)dstref_fetch_sub_release(&net_of(pub)->gate, GATE_CALLBACK);
}

static uint64_t gate_read(const struct net *net)
{
	/* A1, with R1 in net_leave() and net_done(). */
	return dstref_load_acquire(&net->gate) & ~GATE_CLOSING;
}

/* Memory. */

static void *default_alloc(void *ctx, size_t size, size_t align, int node)
{
	(void)ctx;
	(void)node;
	return aligned_alloc(align, size);
}

static void default_free(void *ctx, void *ptr, size_t size)
{
	(void)ctx;
	(void)size;
	free(ptr);
}

/* Whole lines, so that no neighbour shares the last one (C21). */
static void *mem_alloc(const struct dstref_net_mem *mem, size_t size)
{
	size = DSTREF_LINE_ROUND(size);
	void *ptr = mem->alloc(mem->ctx, size, DSTREF_LINE_SIZE, -1);

	if (!ptr || (uintptr_t)ptr % DSTREF_LINE_SIZE == 0)
		return ptr;
	dstref_report_raise(DSTREF_REPORT_NET_MEMORY, "alloc hook", ptr, size,
			    NULL);
	mem->free(mem->ctx, ptr, size);
	return NULL;
}

static void mem_free(const struct dstref_net_mem *mem, void *ptr, size_t size)
{
	size = DSTREF_LINE_ROUND(size);
#if DSTREF_DEBUG
	memset(ptr, POISON, size);
#endif
	mem->free(mem->ctx, ptr, size);
}

void *net_alloc(struct dstref_net *net, size_t size)
{
	return mem_alloc(&net->mem, size);
}

void net_free(struct dstref_net *net, void *ptr, size_t size)
{
	mem_free(&net->mem, ptr, size);
}

/* Creation. */

static int check_abi(const struct dstref_net_abi *abi)
{
	static const char form[] = "version %u, lines of %u, words of %u, "
				   "attr of %u bytes";
	char program[80], library[80], text[200];

	if (abi->version / 100 == DSTREF_VERSION / 100 &&
	    abi->line_size == DSTREF_LINE_SIZE &&
	    abi->attr_size == sizeof(struct dstref_net_attr) &&
	    abi->word_size == sizeof(void *))
		return 0;
	snprintf(program, sizeof(program), form, abi->version, abi->line_size,
		 abi->word_size, abi->attr_size);
	snprintf(library, sizeof(library), form, (unsigned int)DSTREF_VERSION,
		 (unsigned int)DSTREF_LINE_SIZE, (unsigned int)sizeof(void *),
		 (unsigned int)sizeof(struct dstref_net_attr));
	snprintf(text, sizeof(text), "program: %s; library: %s", program,
		 library);
	dstref_report_raise(DSTREF_REPORT_ABI_MISMATCH, "dstref_net_create",
			    NULL, abi->line_size, text);
	return -EPROTO;
}

static bool valid(const struct dstref_net_attr *attr)
{
	const struct rcu_flavor_struct *flavour = attr->flavour;

	return flavour && flavour->update_call_rcu &&
	       flavour->update_synchronize_rcu && flavour->barrier &&
	       !attr->mem.alloc == !attr->mem.free && !attr->reserved &&
	       attr->max_hot <= DSTREF_SPLIT_CELLS;
}

/* Starts the flavour's callback thread with the CPU mask of the creator. */
static void first_callback(struct rcu_head *head)
{
	struct net *net = container_of(rcu_deferred(head), struct net, first);

	rcu_tag_acquire(net->pub.flavour);
	net_done(&net->pub);
}

static void net_init(struct net *net, const struct dstref_net_attr *attr,
		     const struct dstref_net_mem *mem)
{
	memset(net, 0, sizeof(*net));
	net->pub.flavour = attr->flavour;
	net->pub.mem = *mem;
	dstref_count_init(&net->pub.tw_refs, 1);
	dstref_init_plain(&net->gate, GATE_CALLBACK);
	pthread_mutex_init(&net->lock, NULL);
	pthread_mutex_init(&net->outside, NULL);
	LIST_INIT(&net->entries);
	park_init(&net->park);
}

static void *cells_alloc(void *net, size_t size, size_t align, int node)
{
	(void)align; /* of a line, as all is */
	(void)node;
	return net_alloc(net, size);
}

static void cells_free(void *net, void *ptr, size_t size)
{
	net_free(net, ptr, size);
}

/* Where the process has no place for another domain, all stay on counts. */
static int cells_create(struct net *net, uint32_t max_hot)
{
	const struct dstref_split_attr attr = {
		.flavour = net->pub.flavour,
		.alloc = cells_alloc,
		.free = cells_free,
		.ctx = &net->pub,
		.cells = max_hot,
	};
	int err = dstref_split_domain_create(&net->split, &attr);

	return err == -ENOSPC ? 0 : err;
}

static void net_free_all(struct net *net)
{
	struct dstref_net_mem mem = net->pub.mem;

	park_fini(&net->park);
	pthread_mutex_destroy(&net->outside);
	pthread_mutex_destroy(&net->lock);
	mem_free(&mem, net, sizeof(*net));
}

int dstref_net_create_abi(struct dstref_net **result,
			  const struct dstref_net_attr *attr,
			  const struct dstref_net_abi *abi)
{
	struct dstref_net_mem mem = { default_alloc, default_free, NULL };

	if (!result || !attr || !abi)
		return -EINVAL;
	int err = check_abi(abi);

	if (err)
		return err;
	if (!valid(attr))
		return -EINVAL;
	if (attr->mem.alloc)
		mem = attr->mem;
	struct net *net = mem_alloc(&mem, sizeof(*net));

	if (!net)
		return -ENOMEM;
	net_init(net, attr, &mem);
	err = cells_create(net, attr->max_hot);
	if (err) {
		net_free_all(net);
		return err;
	}
	rcu_defer(attr->flavour, &net->first, first_callback);
	*result = &net->pub;
	return 0;
}

/* Waiting. */

bool net_wait_begin(struct dstref_net *net, bool *online, const char *call)
{
	const struct rcu_flavor_struct *flavour = net->flavour;

	*online = flavour->read_ongoing && flavour->read_ongoing();
	if (!*online)
		return true;
	/* An online QSBR thread is no reader once offline; others still are. */
	rcu_tag_release(flavour);
	if (flavour->thread_offline)
		flavour->thread_offline();
	if (!flavour->read_ongoing())
		return true;
	net_wait_end(flavour, true);
	dstref_report_raise(DSTREF_REPORT_READER_BLOCKS, call, net, 0, NULL);
	return false;
}

void net_wait_end(const struct rcu_flavor_struct *flavour, bool online)
{
	if (online && flavour->thread_online)
		flavour->thread_online();
}

/* Waits for merges and callbacks while there are any; the gate then. */
static uint64_t drain(struct net *net)
{
	uint64_t gate = gate_read(net);

	for (int i = 0; i < DRAIN_ROUNDS; i++) {
		/* Only a merge tells that a split entry has ended. */
		bool merging = net->split && split_settle(net->split);

		if (!merging && !gate_callbacks(gate))
			break;
		net->pub.flavour->barrier();
		gate = gate_read(net);
	}
	return gate;
}

/* Nothing is left but threads that may still have cells; then false. */
static bool net_end(struct net *net, const char *call)
{
	if (dstref_split_domain_destroy(net->split)) {
		struct dstref_split_counters stats;

		dstref_split_stats(net->split, &stats);
		dstref_report_raise(DSTREF_REPORT_NET_BUSY, call, &net->pub,
				    stats.threads, "threads are attached");
		return false;
	}
	net_free_all(net);
	return true;
}

int dstref_net_destroy(struct dstref_net *pub)
{
	static const char call[] = "dstref_net_destroy";
	bool online;

	if (!pub)
		return 0;
	if (!net_wait_begin(pub, &online, call))
		return -EDEADLK;
	struct net *net = net_of(pub);
	const struct rcu_flavor_struct *flavour = pub->flavour;

	(void)dstref_fetch_or_acq_rel(&net->gate, GATE_CLOSING);
	rcu_wait(flavour);
	uint64_t gate = drain(net);
	bool busy = gate != 0;

	if (gate)
		net_report_busy(net, gate_entries(gate), gate_callbacks(gate),
				call);
	else
		busy = !net_end(net, call);
	net_wait_end(flavour, online);
	return busy ? -EBUSY : 0;
}

int dstref_net_barrier(struct dstref_net *pub, int64_t timeout_ns)
{
	static const char call[] = "dstref_net_barrier";
	static const struct timespec step = { 0, NS_PER_MS };
	int64_t steps = timeout_ns < 0 ? -1 : timeout_ns / NS_PER_MS;
	bool online;

	if (!dstref_debug_arg(pub, call))
		return -EINVAL;
	if (!net_wait_begin(pub, &online, call))
		return -EDEADLK;
	struct net *net = net_of(pub);
	/* A reader that stays inside would hold up the flavour's barrier. */
	uint64_t gate = steps < 0 ? drain(net) : gate_read(net);

	while (gate && steps) {
		nanosleep(&step, NULL);
		steps -= steps > 0;
		gate = steps < 0 ? drain(net) : gate_read(net);
	}
	if (gate)
		net_report_busy(net, gate_entries(gate), gate_callbacks(gate),
				call);
	net_wait_end(pub->flavour, online);
	return gate ? -ETIMEDOUT : 0;
}

/* Threads. */

int dstref_net_attach(struct dstref_net *net)
{
	if (!dstref_debug_arg(net, "dstref_net_attach"))
		return -EINVAL;
	return net_of(net)->split ? dstref_split_attach(net_of(net)->split)
				  : -ENOSPC;
}

void dstref_net_detach(struct dstref_net *net)
{
	if (dstref_debug_arg(net, "dstref_net_detach") && net_of(net)->split)
		dstref_split_detach(net_of(net)->split);
}

/* Time. */

int dstref_net_tick(struct dstref_net *pub, uint64_t now_ns, uint32_t budget)
{
	static const char call[] = "dstref_net_tick";

	if (!dstref_debug_arg(pub, call))
		return -EINVAL;
	struct net *net = net_of(pub);
	uint32_t ticking = 0;
	int done = 0;

	/* A2, with R2 below. */
	if (!dstref_cas_acquire(&net->ticking, &ticking, 1u)) {
		dstref_report_raise(DSTREF_REPORT_NET_TICK, call, pub, now_ns,
				    "another thread is in it");
		return -EBUSY;
	}
	if (now_ns < dstref_load_relaxed(&net->now)) {
		dstref_report_raise(DSTREF_REPORT_NET_TICK, call, pub, now_ns,
				    "the time went back");
		done = -EINVAL;
	} else {
		dstref_store_relaxed(&net->now, now_ns);
		(void)dstref_fetch_add_relaxed(&net->ticks, 1u);
		if (net->split)
			done = (int)dstref_split_tick(net->split, budget);
	}
	/* R2, with A2 above. */
	dstref_store_release(&net->ticking, 0u);
	return done;
}

static const struct net *const_net_of(const struct dstref_net *pub)
{
	return container_of(pub, const struct net, pub);
}

uint64_t dstref_net_now(const struct dstref_net *net)
{
	if (!dstref_debug_arg(net, "dstref_net_now"))
		return 0;
	return dstref_load_relaxed(&const_net_of(net)->now);
}

static void stats_split(const struct net *net,
			struct dstref_net_counters *stats)
{
	struct dstref_split_counters split = { 0 };

	if (net->split)
		dstref_split_stats(net->split, &split);
	stats->threads = split.threads;
	stats->cells = split.cells;
	stats->cells_used = split.used;
	stats->cells_refused = split.refused;
	stats->requests = split.requests;
	stats->promotions = split.promotions;
	stats->demotions = split.demotions;
	stats->promoted = split.promotions - split.demotions;
}

void dstref_net_stats(const struct dstref_net *pub,
		      struct dstref_net_counters *stats)
{
	if (!dstref_debug_arg(pub, "dstref_net_stats") ||
	    !dstref_debug_arg(stats, "dstref_net_stats"))
		return;
	const struct net *net = const_net_of(pub);

	stats->dst = dstref_load_relaxed(&net->alive[DSTREF_NET_DST]);
	stats->sock = dstref_load_relaxed(&net->alive[DSTREF_NET_SOCK]);
	stats->callbacks = gate_callbacks(dstref_load_relaxed(&net->gate));
	stats->sleeps_room = dstref_load_relaxed(&net->sleeps[NET_ROOM]);
	stats->sleeps_data = dstref_load_relaxed(&net->sleeps[NET_DATA]);
	stats->wakeups_room = dstref_load_relaxed(&net->wakeups[NET_ROOM]);
	stats->wakeups_data = dstref_load_relaxed(&net->wakeups[NET_DATA]);
	stats_split(net, stats);
}

void dstref_net_debug_reader(const struct dstref_net *net, const void *object,
			     const char *call)
{
	const struct rcu_flavor_struct *flavour = net->flavour;

	if (flavour->read_ongoing && !flavour->read_ongoing())
		dstref_report_raise(DSTREF_REPORT_READER_MISSING, call, object,
				    0, NULL);
}
