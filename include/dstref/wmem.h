/* SPDX-License-Identifier: MIT */
/**
 * DOC: wmem - an account that starts at one and frees its owner when empty
 *
 * The transmit account of a socket, as in S1 (2009): it starts at one unit,
 * the owner's; each packet in flight is one unit more and its bytes. The
 * owner closes it, packets are uncharged, in any order and on any threads;
 * whoever takes the last unit is told so and frees. A packet needs no
 * reference to its owner: the charge is one.
 *
 * One 64-bit word, changed by one atomic operation per call (a
 * compare-and-swap loop on most 32-bit machines):
 *
 *	bits 63..41  units: the owner's and the packets'
 *	bits 40..1   bytes, offset by 2^39
 *	bit  0       somebody waits for room
 *
 * Units decide the lifetime, bytes only the back pressure: a charge of zero
 * still pins. Everything a caller needs to know afterwards (was it the last,
 * is there room now, does somebody wait) is in the value that his operation
 * returned: the account is not read again, for it may be gone.
 *
 * The sign of the word is the guard of the units, as in count: below 2^22
 * they are live, then come a saturated and a dead zone, sticky, reaching 2^20
 * to either side of their middles. Bit 40 is the guard of the bytes: set
 * while they are between 0 and 2^39, so that neither an excess nor a deficit
 * can reach the units unseen. Misuse pins the account and leaks the owner.
 *
 * Holds no pointer; works in memory shared between processes.
 *
 * Concurrency: all calls but init run beside each other on any number of
 * threads below 8192. Each charge is uncharged once, with the same bytes, and
 * close is called once.
 *
 * Source: S1; since then the kernel learned to keep a unit across its
 * write-space callback, which is dstref_wmem_recharge() to zero bytes followed
 * by dstref_wmem_uncharge() of none.
 */
#ifndef DSTREF_WMEM_H
#define DSTREF_WMEM_H

#include <dstref/atomic.h>
#include <dstref/config.h>
#include <dstref/report.h>

#define DSTREF_WMEM_CHARGE_MAX ((UINT32_C(1) << 26) - 1) /* bytes at once */
#define DSTREF_WMEM_N_MAX 64u /* packets at once */
#define DSTREF_WMEM_UNITS_MAX ((UINT32_C(1) << 22) - 1)

/* Parts and values of the word. */
#define DSTREF_WMEM_WAITER UINT64_C(1)
#define DSTREF_WMEM_BYTE (UINT64_C(1) << 1)
#define DSTREF_WMEM_BYTES_OK (UINT64_C(1) << 40)
#define DSTREF_WMEM_UNIT (UINT64_C(1) << 41)
#define DSTREF_WMEM_GUARDS (UINT64_C(1) << 63 | DSTREF_WMEM_BYTES_OK)
#define DSTREF_WMEM_SATURATED (UINT64_C(0xa) << 60 | DSTREF_WMEM_BYTES_OK)
#define DSTREF_WMEM_RELEASED (UINT64_C(0xc) << 60)
#define DSTREF_WMEM_DEAD (UINT64_C(0xe) << 60 | DSTREF_WMEM_BYTES_OK)

/*
 *	field  written by                     read by
 *	word   charge (transmit), uncharge    the same, from what their
 *	       (completion), close, a waiter  operation returned
 */
struct dstref_wmem {
	DSTREF_ALIGNED(8) DSTREF_ATOMIC(uint64_t) word;
};

DSTREF_STATIC_ASSERT(sizeof(struct dstref_wmem) == 8 &&
			     DSTREF_ALIGNOF(struct dstref_wmem) == 8,
		     "struct dstref_wmem must be 8 bytes: no lock may hide in "
		     "the atomic; build for a target with 64-bit atomics");

DSTREF_BEGIN_DECLS

/* The uncommon ends of the inline calls; not to be called otherwise. */
DSTREF_EXPORT DSTREF_COLD bool dstref_wmem_charge_slow(struct dstref_wmem *wmem,
						       uint64_t before,
						       uint64_t after);
DSTREF_EXPORT DSTREF_COLD bool
dstref_wmem_uncharge_slow(struct dstref_wmem *wmem, uint64_t after);
DSTREF_EXPORT DSTREF_COLD uint32_t
dstref_wmem_cut_slow(const struct dstref_wmem *wmem, uint32_t bytes);

DSTREF_END_DECLS

/*
 * What a value of the word says. A value is what a call returned or stored
 * through its last argument: a fact about one instant.
 */

/* Bytes charged: may be below zero or absurd only on a pinned account. */
static inline int64_t dstref_wmem_value_bytes(uint64_t value)
{
	return (int64_t)(value >> 1 & ((UINT64_C(1) << 40) - 1)) -
	       (int64_t)(UINT64_C(1) << 39);
}

/* Units: the packets, and one for the owner until close; 0 once dead. */
static inline uint32_t dstref_wmem_value_units(uint64_t value)
{
	if (dstref_unlikely(value >= DSTREF_WMEM_RELEASED))
		return 0;
	return (uint32_t)(value >> 41);
}

/* Whether somebody waits for room and finds it: bytes are @limit or fewer. */
static inline bool dstref_wmem_value_wakes(uint64_t value, uint32_t limit)
{
	return (value & DSTREF_WMEM_WAITER) &&
	       dstref_wmem_value_bytes(value) <= (int64_t)limit;
}

/* @bytes within the limit of a charge; what is more is reported and cut. */
static inline uint32_t dstref_wmem_cut(const struct dstref_wmem *wmem,
				       uint32_t bytes)
{
	if (dstref_unlikely(bytes > DSTREF_WMEM_CHARGE_MAX))
		return dstref_wmem_cut_slow(wmem, bytes);
	return bytes;
}

/**
 * dstref_wmem_init - open an account
 * @wmem: the account; it holds the owner's unit and no bytes
 *
 * Context: any thread; nobody else may know it yet.
 * Ordering: none; publication of the owner orders it.
 */
static inline void dstref_wmem_init(struct dstref_wmem *wmem)
{
	if (!dstref_debug_arg(wmem, "dstref_wmem_init"))
		return;
	dstref_init_plain(&wmem->word, DSTREF_WMEM_UNIT | DSTREF_WMEM_BYTES_OK);
}

/* The cost of n packets of @bytes together, as a change of the word. */
static inline uint64_t dstref_wmem_cost(const struct dstref_wmem *wmem,
					uint32_t n, uint32_t bytes)
{
	return n * DSTREF_WMEM_UNIT +
	       DSTREF_WMEM_BYTE * dstref_wmem_cut(wmem, bytes);
}

/* More packets at once than there may be are reported. */
static inline bool dstref_wmem_n_ok(const struct dstref_wmem *wmem, uint32_t n,
				    const char *call)
{
	if (dstref_likely(n - 1 < DSTREF_WMEM_N_MAX))
		return true;
	if (n)
		dstref_report_raise(DSTREF_REPORT_WMEM_RANGE, call, wmem, n,
				    NULL);
	return false;
}

/* dstref_wmem_charge_n() on behalf of @call. */
DSTREF_NODISCARD static inline bool
dstref_wmem_charge_by(struct dstref_wmem *wmem, uint32_t n, uint32_t bytes,
		      uint64_t *before, const char *call)
{
	if (!dstref_debug_arg(wmem, call) || !dstref_wmem_n_ok(wmem, n, call)) {
		if (before)
			*before = 0;
		return false;
	}
	uint64_t cost = dstref_wmem_cost(wmem, n, bytes);
	uint64_t old = dstref_fetch_add_relaxed(&wmem->word, cost);
	uint64_t after = old + cost;

	if (before)
		*before = old;
	if (dstref_unlikely((after & DSTREF_WMEM_GUARDS) !=
				    DSTREF_WMEM_BYTES_OK ||
			    old < DSTREF_WMEM_UNIT))
		return dstref_wmem_charge_slow(wmem, old, after);
	return true;
}

/**
 * dstref_wmem_charge_n - n packets more, in one operation
 * @wmem: the account
 * @n: packets, 1 to DSTREF_WMEM_N_MAX; 0 charges none, more is reported and
 *     refused
 * @bytes: what they cost together, 0 to DSTREF_WMEM_CHARGE_MAX; more is
 *         reported and cut, here and in uncharge alike
 * @before: if not NULL, the value before: units of 1 tell that it was empty
 *          (advisory, for the value is of the past)
 *
 * Context: the caller keeps the owner alive: by a reference, or by another
 *          packet's charge. Never blocks.
 * Ordering: none; the charge publishes nothing.
 * Return: true when the packets are charged and each now pins the owner;
 *         false, with a report, when the account was already let go.
 */
DSTREF_NODISCARD static inline bool
dstref_wmem_charge_n(struct dstref_wmem *wmem, uint32_t n, uint32_t bytes,
		     uint64_t *before)
{
	return dstref_wmem_charge_by(wmem, n, bytes, before,
				     "dstref_wmem_charge_n");
}

/**
 * dstref_wmem_charge - one packet more
 * @wmem: the account
 * @bytes: as dstref_wmem_charge_n()
 * @before: as dstref_wmem_charge_n()
 *
 * Context: as dstref_wmem_charge_n().
 * Ordering: none.
 * Return: as dstref_wmem_charge_n().
 */
DSTREF_NODISCARD static inline bool
dstref_wmem_charge(struct dstref_wmem *wmem, uint32_t bytes, uint64_t *before)
{
	return dstref_wmem_charge_by(wmem, 1, bytes, before,
				     "dstref_wmem_charge");
}

/* dstref_wmem_uncharge_n() on behalf of @call. */
DSTREF_NODISCARD static inline bool
dstref_wmem_uncharge_by(struct dstref_wmem *wmem, uint32_t n, uint32_t bytes,
			uint64_t *after, const char *call)
{
	if (!dstref_debug_arg(wmem, call) || !dstref_wmem_n_ok(wmem, n, call)) {
		if (after)
			*after = 0;
		return false;
	}
	uint64_t cost = dstref_wmem_cost(wmem, n, bytes);
	/* R1, with A1 in dstref_wmem_uncharge_slow(). */
	uint64_t value = dstref_sub_return_release(&wmem->word, cost);

	if (after)
		*after = value;
	if (dstref_unlikely((value & DSTREF_WMEM_GUARDS) !=
				    DSTREF_WMEM_BYTES_OK ||
			    value < DSTREF_WMEM_UNIT))
		return dstref_wmem_uncharge_slow(wmem, value);
	return false;
}

/**
 * dstref_wmem_uncharge_n - n packets fewer, in one operation
 * @wmem: the account
 * @n: packets, as for dstref_wmem_charge_n()
 * @bytes: what they were charged together
 * @after: if not NULL, the value after; see dstref_wmem_value_wakes()
 *
 * Context: any thread; needs no reader. Never blocks.
 * Ordering: release (R1); when it returns true also acquire (A1).
 * Return: true to exactly one caller, who must free the owner; after false
 *         nothing of it may be touched.
 */
DSTREF_NODISCARD static inline bool
dstref_wmem_uncharge_n(struct dstref_wmem *wmem, uint32_t n, uint32_t bytes,
		       uint64_t *after)
{
	return dstref_wmem_uncharge_by(wmem, n, bytes, after,
				       "dstref_wmem_uncharge_n");
}

/**
 * dstref_wmem_uncharge - one packet fewer
 * @wmem: the account
 * @bytes: what the packet was charged
 * @after: as dstref_wmem_uncharge_n()
 *
 * Context: as dstref_wmem_uncharge_n().
 * Ordering: as dstref_wmem_uncharge_n().
 * Return: as dstref_wmem_uncharge_n().
 */
DSTREF_NODISCARD static inline bool
dstref_wmem_uncharge(struct dstref_wmem *wmem, uint32_t bytes, uint64_t *after)
{
	return dstref_wmem_uncharge_by(wmem, 1, bytes, after,
				       "dstref_wmem_uncharge");
}

/**
 * dstref_wmem_close - take back the owner's unit
 * @wmem: the account
 * @after: if not NULL, the value after
 *
 * Context: any thread, once; needs no reader. Never blocks.
 * Ordering: as dstref_wmem_uncharge().
 * Return: as dstref_wmem_uncharge(): true when no packet was in flight.
 */
DSTREF_NODISCARD static inline bool dstref_wmem_close(struct dstref_wmem *wmem,
						      uint64_t *after)
{
	return dstref_wmem_uncharge(wmem, 0, after);
}

/**
 * dstref_wmem_recharge - a packet in flight changed its size
 * @wmem: the account
 * @from: bytes that the packet was charged
 * @to: bytes that it costs now, and that its uncharge will name
 *
 * The unit stays: recharge to 0 gives back the bytes and keeps the owner.
 *
 * Context: the caller has a unit: the packet's or the owner's. Never blocks.
 * Ordering: release (R2), with A2 in dstref_wmem_wait().
 * Return: the value after; see dstref_wmem_value_wakes().
 */
static inline uint64_t dstref_wmem_recharge(struct dstref_wmem *wmem,
					    uint32_t from, uint32_t to)
{
	if (!dstref_debug_arg(wmem, "dstref_wmem_recharge"))
		return 0;
	uint64_t less = DSTREF_WMEM_BYTE * dstref_wmem_cut(wmem, from);
	uint64_t more = DSTREF_WMEM_BYTE * dstref_wmem_cut(wmem, to);
	uint64_t old = dstref_fetch_add_release(&wmem->word, more - less);
	uint64_t after = old + more - less;

	if (dstref_unlikely((after & DSTREF_WMEM_GUARDS) !=
			    DSTREF_WMEM_BYTES_OK))
		(void)dstref_wmem_charge_slow(wmem, old, after);
	return after;
}

/**
 * dstref_wmem_wait - say that somebody waits for room
 * @wmem: the account
 *
 * The caller parks first, then sets the mark, then looks at the value that
 * came back, and sleeps only if it shows no room: an uncharge is either
 * before the mark, and in the value, or after it, and sees the mark.
 *
 * Context: as dstref_wmem_recharge().
 * Ordering: acquire (A2), with R1 and R2: room that is seen brings what was
 *           done before it was made.
 * Return: the value after.
 */
static inline uint64_t dstref_wmem_wait(struct dstref_wmem *wmem)
{
	if (!dstref_debug_arg(wmem, "dstref_wmem_wait"))
		return 0;
	return dstref_fetch_or_acquire(&wmem->word, DSTREF_WMEM_WAITER) |
	       DSTREF_WMEM_WAITER;
}

/**
 * dstref_wmem_wait_end - say that nobody waits any more
 * @wmem: the account
 *
 * Context: as dstref_wmem_recharge(); the caller knows that he is the last.
 * Ordering: none.
 */
static inline void dstref_wmem_wait_end(struct dstref_wmem *wmem)
{
	if (!dstref_debug_arg(wmem, "dstref_wmem_wait_end"))
		return;
	(void)dstref_fetch_and_relaxed(&wmem->word, ~DSTREF_WMEM_WAITER);
}

/**
 * dstref_wmem_read - the value now
 * @wmem: the account
 *
 * Context: the caller keeps the owner alive.
 * Ordering: none.
 * Return: a value; dstref_wmem_value_bytes() and dstref_wmem_value_units()
 *         take it apart.
 */
DSTREF_NODISCARD static inline uint64_t
dstref_wmem_read(const struct dstref_wmem *wmem)
{
	if (!dstref_debug_arg(wmem, "dstref_wmem_read"))
		return 0;
	return dstref_load_relaxed(&wmem->word);
}

#endif
