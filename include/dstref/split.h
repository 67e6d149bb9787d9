/* SPDX-License-Identifier: MIT */
/**
 * DOC: split - a count of a hot object that each thread keeps in its own cell
 *
 * A shared count serialises all cores that touch it. A split count does not: a
 * thread that is attached to the object's domain has a cell for it, two
 * numbers that nobody else writes, and counts its gets and puts there with
 * plain stores. The count itself stays valid throughout: who is not attached,
 * or still saw the old mode, uses it at any time. What the cells hold is known
 * only by adding them up, so while an object is split nobody can tell that its
 * last reference went; a bias of 2^29 in the count keeps it from looking so.
 *
 * A domain has a fixed number of cells, for the objects that may be split at
 * once: splitting is for the few hot ones of many. An object is split by
 * dstref_split_promote(), or when dstref_split_request() asked for it and
 * dstref_split_tick() finds a free cell. It is merged again, its cells added to
 * its count behind a grace period, by dstref_split_demote(), by
 * dstref_split_kill(), or by a tick that finds it quiet. Whoever lets go of the
 * last reference is then told: by the put, or by the merge.
 *
 *	state      the count                what may come
 *	OFF        tells zero               request, promote, kill
 *	PROMOTING  tells zero               promote, kill, the object's end
 *	ON         biased, never zero       demote, kill, quiet
 *	CLOSING    biased until the merge   OFF or KILLED, by the merge
 *	KILLED     tells zero               nothing
 *
 * Context, where a call does not say otherwise: inside a reader of the domain's
 * flavour. A get or put in a cell is seen by a merge because it was made in a
 * reader that the merge's grace period waited for.
 *
 * Concurrency:
 *	domain_create, init      alone, on their own result
 *	get, put and their forms beside everything, on any number of threads
 *	request                  beside everything, as get
 *	promote, demote, kill,
 *	tick, read, attach,
 *	detach, stats            beside everything; a lock of the domain is
 *	                         taken for a moment, never across a grace period
 *	domain_destroy           alone
 *
 * Source: the kernel's percpu-refcount (2013); "split really hot entries, one
 * copy per stream" is S0 (2008), the cells are "per-CPU dsts" of S2 (2012).
 */
#ifndef DSTREF_SPLIT_H
#define DSTREF_SPLIT_H

#include <dstref/atomic.h>
#include <dstref/config.h>
#include <dstref/count.h>
#include <dstref/line.h>
#include <dstref/report.h>

struct rcu_flavor_struct;
struct dstref_split;
struct dstref_split_domain;

#define DSTREF_SPLIT_DOMAINS 15 /* at once in a process */
#define DSTREF_SPLIT_CELLS 4095 /* of a domain, at most */
#define DSTREF_SPLIT_CELLS_DEFAULT 255
#define DSTREF_SPLIT_BIAS (UINT32_C(1) << 29)
#define DSTREF_SPLIT_REFS (UINT32_C(1) << 28) /* no promotion from here on */

/*
 * In place of a cell's number: the object is not split, but its owner changes
 * are to be looked at. No thread has cells there.
 */
#define DSTREF_CELL_LOOK 0xf000u
#define DSTREF_CELL_NUMBER 0x0fffu /* 0: none */

/* Values of the low bits of a state word. */
#define DSTREF_SPLIT_OFF 0u
#define DSTREF_SPLIT_PROMOTING 1u
#define DSTREF_SPLIT_ON 2u
#define DSTREF_SPLIT_CLOSING 3u
#define DSTREF_SPLIT_KILLED 4u

/*
 * One thread's numbers for one split object; both only grow, and wrap.
 *
 *	field  written by                      read by
 *	gets   its thread                      its thread, merge, tick, read
 *	puts   its thread                      its thread, merge, tick, read
 */
struct dstref_cell {
	DSTREF_ATOMIC(uint32_t) gets;
	DSTREF_ATOMIC(uint32_t) puts;
};
DSTREF_ASSERT_SIZE(struct dstref_cell, 8);

/**
 * struct dstref_split_attr - what a domain is made of
 * @flavour: the RCU flavour; update_call_rcu must be there
 * @alloc: memory hook, as of struct dstref_net_mem; NULL for aligned_alloc()
 * @free: its partner; both or none
 * @ctx: first argument of both
 * @cells: objects that may be split at once, 1 to DSTREF_SPLIT_CELLS; 0 for
 *         DSTREF_SPLIT_CELLS_DEFAULT. Each attached thread costs 8 bytes for
 *         each
 * @reserved: must be 0
 */
struct dstref_split_attr {
	const struct rcu_flavor_struct *flavour;
	void *(*alloc)(void *ctx, size_t size, size_t align, int node);
	void (*free)(void *ctx, void *ptr, size_t size);
	void *ctx;
	uint32_t cells;
	uint32_t reserved;
};

/*
 * A split count that stands alone, without a dst.
 *
 *	field   written by                          read by
 *	count   gets and puts without a cell        the same
 *	cell    promotion, close                    every get and put
 *	state   request, promotion, merge, kill     the same
 *	domain  init                                control calls
 *	zero    init                                the last put, the merge
 */
struct dstref_split {
	struct dstref_count count;
	DSTREF_ATOMIC(uint32_t) state;
	DSTREF_ATOMIC(uint16_t) cell; /* while ON, else 0 */
	struct dstref_split_domain *domain;
	void (*zero)(struct dstref_split *split);
};
DSTREF_ASSERT_OFFSET(struct dstref_split, count, 0);

/**
 * struct dstref_split_counters - counters of a domain
 * @cells: cells that there are
 * @used: cells of objects that are split, or about to be, or being merged
 * @threads: threads that are attached
 * @requests: times a promotion was asked for and a cell was free
 * @refused: times one was asked for and none was
 * @promotions: objects that were split
 * @demotions: objects that were merged again, killed ones too
 */
struct dstref_split_counters {
	DSTREF_ALIGNED(8) uint64_t cells; /* -malign-double changes nothing */
	uint64_t used;
	uint64_t threads;
	uint64_t requests;
	uint64_t refused;
	uint64_t promotions;
	uint64_t demotions;
};

/*
 * The cells of this thread in each domain, NULL where it is not attached. By
 * __thread, so that C++ adds no call to see whether it was constructed.
 */
#define DSTREF_THREAD __extension__ extern __thread
#define DSTREF_THREAD_MODEL __attribute__((tls_model("initial-exec")))

DSTREF_BEGIN_DECLS

DSTREF_THREAD DSTREF_EXPORT struct dstref_cell
	*dstref_split_cells[DSTREF_SPLIT_DOMAINS + 1] DSTREF_THREAD_MODEL;

/* This thread among those that ever attached, 1 to 4095; 0 never did. */
DSTREF_THREAD DSTREF_EXPORT uint32_t dstref_split_self DSTREF_THREAD_MODEL;

/* The uncommon ends of the inline calls; not to be called otherwise. */
DSTREF_EXPORT DSTREF_COLD void dstref_split_flush(struct dstref_count *count,
						  struct dstref_cell *cell,
						  const void *object,
						  const char *call);
DSTREF_EXPORT DSTREF_COLD void
dstref_split_zero(struct dstref_split *split, uint32_t after, const char *call);

/**
 * dstref_split_domain_create - make a domain
 * @domain: the result; untouched on error
 * @attr: what it is made of
 *
 * Context: any thread; may block.
 * Ordering: none; publication by the caller.
 * Return: 0; -EINVAL for a flavour that lacks what is needed, half a pair of
 *         hooks, or too many cells; -ENOMEM; -ENOSPC when the process has
 *         DSTREF_SPLIT_DOMAINS already.
 */
DSTREF_NODISCARD DSTREF_EXPORT int
dstref_split_domain_create(struct dstref_split_domain **domain,
			   const struct dstref_split_attr *attr);

/**
 * dstref_split_domain_destroy - end a domain
 * @domain: the domain; NULL does nothing and is 0
 *
 * Context: any thread; the caller knows that no other call is under way.
 * Ordering: none.
 * Return: 0, and @domain is gone; -EBUSY when threads are attached or cells
 *         are in use: it is still valid.
 */
DSTREF_NODISCARD DSTREF_EXPORT int
dstref_split_domain_destroy(struct dstref_split_domain *domain);

/**
 * dstref_split_attach - give this thread cells
 * @domain: the domain
 *
 * The array of a thread that has gone is inherited, with what its cells hold.
 * Who never attaches uses the counts. A thread that exits is detached.
 *
 * Context: any thread, in a reader or not; may block.
 * Ordering: none.
 * Return: 0, also when it is attached; -ENOMEM.
 */
DSTREF_NODISCARD DSTREF_EXPORT int
dstref_split_attach(struct dstref_split_domain *domain);

/**
 * dstref_split_detach - take the cells from this thread
 * @domain: the domain; does nothing where it is not attached
 *
 * References stay where they were counted: they may be let go of afterwards, by
 * this thread or another.
 *
 * Context: any thread, in a reader or not; may block.
 * Ordering: none.
 */
DSTREF_EXPORT void dstref_split_detach(struct dstref_split_domain *domain);

/**
 * dstref_split_init - start a split count
 * @split: every field is written
 * @domain: whose cells it may use
 * @refs: references that it starts with, as dstref_count_init()
 * @zero: told once, when the last reference is gone: in the context of the last
 *        put, or on the flavour's callback thread. It may not free the memory
 *        at once, but must defer that by a grace period
 *
 * Context: any thread; nobody else may know the count yet.
 * Ordering: none; publication of the object orders it.
 * Return: 0; -EINVAL for a NULL.
 */
DSTREF_NODISCARD DSTREF_EXPORT int
dstref_split_init(struct dstref_split *split,
		  struct dstref_split_domain *domain, uint32_t refs,
		  void (*zero)(struct dstref_split *split));

/**
 * dstref_split_request - ask for a promotion by the next tick
 * @split: the count
 *
 * Context: inside a reader, or with a reference. Never blocks.
 * Ordering: none.
 * Return: true when a tick will look at it: a cell was free, or it is split
 *         already.
 */
DSTREF_EXPORT bool dstref_split_request(struct dstref_split *split);

/**
 * dstref_split_promote - split now
 * @split: the count
 *
 * Context: with a reference. Takes the domain's lock.
 * Ordering: none: who sees the old mode still counts right.
 * Return: 0, also when it is split already; -ENOSPC without a free cell;
 *         -EBUSY while it is being merged; -ESHUTDOWN once killed, dead or
 *         saturated, or from DSTREF_SPLIT_REFS references on.
 */
DSTREF_EXPORT int dstref_split_promote(struct dstref_split *split);

/**
 * dstref_split_demote - have it merged, a grace period later
 * @split: the count
 *
 * Context: with a reference. Takes the domain's lock; does not wait for the
 *          merge.
 * Ordering: none.
 * Return: 0; -EALREADY when it is not split.
 */
DSTREF_EXPORT int dstref_split_demote(struct dstref_split *split);

/**
 * dstref_split_kill - have it merged and never split again
 * @split: the count
 * @confirm: called when every get and put uses the count: before the return
 *           when it is not split, else by the merge, before it tells zero; may
 *           be NULL
 *
 * From then on the put of the last reference tells zero, and get fails after
 * it. The reference of the caller stays his.
 *
 * Context: with a reference, kept until @confirm when there is one. Takes the
 *          domain's lock; does not wait for the merge.
 * Ordering: none.
 * Return: 0; -EALREADY when it was killed before, and @confirm is not called.
 */
DSTREF_EXPORT int
dstref_split_kill(struct dstref_split *split,
		  void (*confirm)(struct dstref_split *split));

/**
 * dstref_split_end - forget a count before its memory goes
 * @split: zero was told, and a grace period has passed
 *
 * Gives back the cell that a request may have taken. For whoever frees the
 * object.
 *
 * Context: any thread; takes the domain's lock.
 * Ordering: none.
 */
DSTREF_EXPORT void dstref_split_end(struct dstref_split *split);

/**
 * dstref_split_tick - split what asked for it, merge what is quiet
 * @domain: the domain
 * @budget: objects to look at, at most; each tick goes on where the last ended
 *
 * Quiet is an object whose cells have not moved since the last look. It is
 * merged after as many quiet looks as it was merged before, up to 64, so that
 * one that comes and goes is left split longer each time.
 *
 * Context: one thread at a time; takes the domain's lock. Never blocks on RCU.
 * Ordering: none.
 * Return: objects that were split or are being merged.
 */
DSTREF_EXPORT uint32_t dstref_split_tick(struct dstref_split_domain *domain,
					 uint32_t budget);

/**
 * dstref_split_read - how many references there are
 * @split: the count
 *
 * Context: with a reference, or inside a reader. Takes the domain's lock.
 * Ordering: none; exact when no get, put, attach or detach runs beside it.
 * Return: references; 0 once dead, DSTREF_COUNT_MAX when saturated.
 */
DSTREF_NODISCARD DSTREF_EXPORT uint32_t
dstref_split_read(struct dstref_split *split);

/**
 * dstref_split_stats - read the counters of a domain
 * @domain: the domain
 * @stats: filled in
 *
 * Context: any thread.
 * Ordering: none; each counter by itself, not a snapshot of all.
 */
DSTREF_EXPORT void dstref_split_stats(const struct dstref_split_domain *domain,
				      struct dstref_split_counters *stats);

DSTREF_END_DECLS

/* This thread's cell of what an object shows, or NULL. */
static inline struct dstref_cell *dstref_cell_of(uint16_t number)
{
	if (!(number & DSTREF_CELL_NUMBER))
		return NULL;
	struct dstref_cell *cells = dstref_split_cells[number >> 12];

	return dstref_likely(cells != NULL)
		       ? cells + (number & DSTREF_CELL_NUMBER)
		       : NULL;
}

/* Counts n gets; when the low half wraps, the difference goes to the count. */
static inline void dstref_cell_get(struct dstref_cell *cell, uint32_t n,
				   struct dstref_count *count,
				   const void *object, const char *call)
{
	uint32_t old = dstref_load_relaxed(&cell->gets);

	dstref_store_relaxed(&cell->gets, old + n);
	if (dstref_unlikely((uint16_t)(old + n) < n)) /* it wrapped */
		dstref_split_flush(count, cell, object, call);
}

/* Counts n puts, the same. */
static inline void dstref_cell_put(struct dstref_cell *cell, uint32_t n,
				   struct dstref_count *count,
				   const void *object, const char *call)
{
	uint32_t old = dstref_load_relaxed(&cell->puts);

	/* R1, with A1 in the merge's sum. */
	dstref_store_release(&cell->puts, old + n);
	if (dstref_unlikely((uint16_t)(old + n) < n)) /* it wrapped */
		dstref_split_flush(count, cell, object, call);
}

/**
 * dstref_split_get_n - take n references
 * @split: the count
 * @n: references, 1 to DSTREF_COUNT_N_MAX; else as dstref_count_get_n()
 *
 * Context: inside a reader. Never blocks.
 * Ordering: as dstref_count_get().
 * Return: true when the caller now holds n more references; false once the
 *         count is dead. In a cell it always is true: the object is not dead
 *         while it is split.
 */
DSTREF_NODISCARD static inline bool
dstref_split_get_n(struct dstref_split *split, uint32_t n)
{
	static const char call[] = "dstref_split_get_n";

	if (!dstref_debug_arg(split, call))
		return false;
	/* A2, with R2 of the promotion. */
	uint16_t number = dstref_load_acquire(&split->cell);
	struct dstref_cell *cell = dstref_cell_of(number);

	if (dstref_unlikely(!cell) ||
	    dstref_unlikely(n - 1 >= DSTREF_COUNT_N_MAX))
		return dstref_count_get_n(&split->count, n);
	dstref_cell_get(cell, n, &split->count, split, call);
	return true;
}

/**
 * dstref_split_get - take a reference
 * @split: the count
 *
 * Context: as dstref_split_get_n().
 * Ordering: as dstref_count_get().
 * Return: as dstref_split_get_n().
 */
DSTREF_NODISCARD static inline bool dstref_split_get(struct dstref_split *split)
{
	static const char call[] = "dstref_split_get";

	if (!dstref_debug_arg(split, call))
		return false;
	/* A2, with R2 of the promotion. */
	uint16_t number = dstref_load_acquire(&split->cell);
	struct dstref_cell *cell = dstref_cell_of(number);

	if (dstref_unlikely(!cell))
		return dstref_count_get(&split->count);
	dstref_cell_get(cell, 1, &split->count, split, call);
	return true;
}

/**
 * dstref_split_put_n - let go of n references
 * @split: the count
 * @n: references, all the caller's, 1 to DSTREF_COUNT_N_MAX; else as
 *     dstref_count_put_n()
 *
 * zero is called when these were the last and the object is not split.
 *
 * Context: inside a reader. Never blocks.
 * Ordering: release (R1); zero is called after an acquire (A1).
 */
static inline void dstref_split_put_n(struct dstref_split *split, uint32_t n)
{
	static const char call[] = "dstref_split_put_n";

	if (!dstref_debug_arg(split, call))
		return;
	/* A2, with R2 of the promotion. */
	uint16_t number = dstref_load_acquire(&split->cell);
	struct dstref_cell *cell = dstref_cell_of(number);

	if (dstref_unlikely(n - 1 >= DSTREF_COUNT_N_MAX)) {
		if (n)
			dstref_report_raise(DSTREF_REPORT_COUNT_RANGE, call,
					    split, n, NULL);
		return;
	}
	if (dstref_likely(cell)) {
		dstref_cell_put(cell, n, &split->count, split, call);
		return;
	}
	/* R1, with A1 in dstref_count_put_slow(). */
	uint32_t after = dstref_sub_return_release(&split->count.word, n);

	if (dstref_unlikely((int32_t)after < 0))
		dstref_split_zero(split, after, call);
}

/**
 * dstref_split_put - let go of a reference
 * @split: the count
 *
 * Context: as dstref_split_put_n().
 * Ordering: as dstref_split_put_n().
 */
static inline void dstref_split_put(struct dstref_split *split)
{
	static const char call[] = "dstref_split_put";

	if (!dstref_debug_arg(split, call))
		return;
	/* A2, with R2 of the promotion. */
	uint16_t number = dstref_load_acquire(&split->cell);
	struct dstref_cell *cell = dstref_cell_of(number);

	if (dstref_likely(cell)) {
		dstref_cell_put(cell, 1, &split->count, split, call);
		return;
	}
	/* R1, with A1 in dstref_count_put_slow(). */
	uint32_t after = dstref_dec_return_release(&split->count.word);

	if (dstref_unlikely((int32_t)after < 0))
		dstref_split_zero(split, after, call);
}

/**
 * dstref_split_put_outside - let go of a reference, outside any reader
 * @split: the count
 *
 * Uses the count, and needs no cell.
 *
 * Context: any thread, registered or not. Never blocks.
 * Ordering: as dstref_split_put_n().
 */
static inline void dstref_split_put_outside(struct dstref_split *split)
{
	static const char call[] = "dstref_split_put_outside";

	if (!dstref_debug_arg(split, call))
		return;
	if (dstref_count_put_outside_of(&split->count, 1, split, call))
		split->zero(split);
}

#endif
