/* SPDX-License-Identifier: MIT */
/**
 * DOC: dst - a route that many cores share
 *
 * struct dstref_dst is embedded in the user's own route, at any line-aligned
 * offset. Two lines: the first is all that a packet reads, the second is what
 * is written. A packet in steady state borrows: it finds the dst in a slot
 * inside a reader and takes no reference (noref). What outlives the reader
 * holds one.
 *
 * A dst starts with one reference, its creator's, which he gives to a slot
 * (dstref_dst_slot_install()) or lets go of. When the last is gone the child
 * is taken from it, and a grace period later the child is let go and
 * ops->destroy hands the memory back. dstref_dst_dead() says earlier that
 * the route must not be used: it becomes obsolete, input and output become
 * dstref_dst_discard(), the child goes.
 *
 * Context, where a call does not say otherwise: inside a reader of the
 * namespace's flavour (an online QSBR thread always is); debug builds check
 * it. The _outside forms need none, nor a registered thread.
 *
 * Concurrency: init alone. Everything else beside everything else on any
 * number of threads; dead may be called by several, one does it. The fields
 * marked "before sharing" are the creator's until he installs the dst.
 */
#ifndef DSTREF_DST_H
#define DSTREF_DST_H

#include <dstref/atomic.h>
#include <dstref/config.h>
#include <dstref/count.h>
#include <dstref/line.h>
#include <dstref/net.h>
#include <dstref/report.h>
#include <dstref/split.h>

struct dstref_dst;

/* Input and output: @pkt is the user's packet. 0 or more took it, below zero
 * is an error and leaves the packet with the caller. */
typedef int (*dstref_dst_fn)(struct dstref_dst *dst, void *pkt);

/**
 * struct dstref_dst_ops - what the user's kind of route does
 * @name: for reports
 * @destroy: hand the memory back; called once, on the flavour's callback
 *           thread (or by release_now), when nobody can know the dst
 * @check: whether an obsolete dst may still be used for @cookie; NULL: never
 */
struct dstref_dst_ops {
	const char *name;
	void (*destroy)(struct dstref_dst *dst);
	bool (*check)(struct dstref_dst *dst, uint32_t cookie);
};

/*
 * A pointer that owns one reference to a dst, or is NULL. Starts as zero: by
 * static storage, memset, or = DSTREF_DST_SLOT_INIT.
 */
struct dstref_dst_slot {
	DSTREF_ATOMIC(struct dstref_dst *) dst;
};

#ifdef __cplusplus
#define DSTREF_DST_SLOT_INIT \
	{                    \
	}
#else
#define DSTREF_DST_SLOT_INIT \
	{                    \
		NULL         \
	}
#endif

/* Flags of dstref_dst_init(). */
#define DSTREF_DST_UNCACHED 0x1u /* never in a slot: cannot be borrowed */
#define DSTREF_DST_SPLIT_NEVER 0x2u /* stays on its count */
#define DSTREF_DST_SPLIT_ALWAYS 0x4u /* is split at the next tick */
#define DSTREF_DST_FLAGS 0x7u

/* Changes of owner within about a tick that ask for a promotion. */
#define DSTREF_DST_HOT 64u

/* Values of obsolete. */
#define DSTREF_DST_CHECK (-1) /* ask ops->check every time */
#define DSTREF_DST_VALID 0
#define DSTREF_DST_DEAD 2

/* Who reads and writes what; line.h says how to read a list. */
#define DSTREF_DST_FIELDS(X)                                \
	X(struct dstref_dst, ops, read, R, R, N, W)         \
	X(struct dstref_dst, input, read, R, N, N, W)       \
	X(struct dstref_dst, output, read, N, R, N, W)      \
	X(struct dstref_dst, dev, read, R, R, N, W)         \
	X(struct dstref_dst, net, read, N, E, E, W)         \
	X(struct dstref_dst, child, read, R, R, E, W)       \
	X(struct dstref_dst, mtu, read, R, R, N, W)         \
	X(struct dstref_dst, header_len, read, R, R, N, W)  \
	X(struct dstref_dst, trailer_len, read, R, R, N, W) \
	X(struct dstref_dst, flags, read, R, R, N, W)       \
	X(struct dstref_dst, obsolete, read, R, R, N, W)    \
	X(struct dstref_dst, cell, read, R, R, R, W)        \
	X(struct dstref_dst, count, written, H, H, H, N)    \
	X(struct dstref_dst, hint, written, H, H, H, W)     \
	X(struct dstref_dst, lastuse, written, H, N, N, R)  \
	X(struct dstref_dst, state, written, N, N, N, W)    \
	X(struct dstref_dst, rcu, written, N, E, E, W)      \
	X(struct dstref_dst, entry, written, N, N, N, W)    \
	X(struct dstref_dst, going, written, N, E, E, W)

DSTREF_GROUPED
struct dstref_dst {
	/* Read by every packet. */
	DSTREF_GROUP_LINE(read);
	const struct dstref_dst_ops *ops;
	DSTREF_ATOMIC(dstref_dst_fn) input; /* may be NULL */
	DSTREF_ATOMIC(dstref_dst_fn) output; /* may be NULL */
	void *dev; /* opaque, may be NULL */
	struct dstref_net *net;
	struct dstref_dst_slot child;
	uint32_t mtu; /* bytes */
	uint16_t header_len; /* bytes, before the packet */
	uint16_t trailer_len; /* bytes, after it */
	uint16_t flags;
	DSTREF_ATOMIC(int16_t) obsolete;
	DSTREF_ATOMIC(uint16_t) cell; /* number while split, or a mark */
	DSTREF_GROUP_END(read);

	/* Written. */
	DSTREF_GROUP_LINE(written);
	struct dstref_count count;
	DSTREF_ATOMIC(uint32_t) hint; /* last owner 12, changes 8, tick 12 */
	DSTREF_ATOMIC(uint32_t) lastuse; /* tick of the last use */
	DSTREF_ATOMIC(uint32_t) state; /* of split.h */
	struct dstref_rcu_head rcu;
	struct dstref_net_entry entry;
	struct dstref_dst *going; /* the child, until its grace period ends */
	DSTREF_GROUP_END(written);
};
DSTREF_GROUPED_END

DSTREF_DST_FIELDS(DSTREF_FIELD_ASSERT)
DSTREF_ASSERT_LINES(struct dstref_dst, 2);
DSTREF_ASSERT_STRIDE(struct dstref_dst);
DSTREF_ASSERT_OFFSET(struct dstref_dst, count, DSTREF_LINE_SIZE);
DSTREF_ASSERT_GROUP_LINE(struct dstref_dst, read);
DSTREF_ASSERT_GROUP_LINES(struct dstref_dst, read, 1);
DSTREF_ASSERT_GROUP_LINE(struct dstref_dst, written);
DSTREF_ASSERT_GROUP_LINES(struct dstref_dst, written, 1);
DSTREF_ASSERT_OTHER_LINE(struct dstref_dst, count, output);

/* Lines that a packet brings into a cold cache: find it, (hold it,) send by
 * it, (release it). A use adds the written line to the first. */
#define DSTREF_DST_LINES_BORROW \
	DSTREF_LINES(DSTREF_DST_FIELDS(DSTREF_FIELD_BORROW))
#define DSTREF_DST_LINES_HOLD DSTREF_LINES(DSTREF_DST_FIELDS(DSTREF_FIELD_HOLD))
DSTREF_ASSERT_PATH(DSTREF_DST_FIELDS(DSTREF_FIELD_BORROW), 1,
		   "a packet that borrows a dst");
DSTREF_ASSERT_PATH(DSTREF_DST_FIELDS(DSTREF_FIELD_HOLD), 2,
		   "a packet that holds a dst");

DSTREF_BEGIN_DECLS

/* The uncommon ends of the inline calls; not to be called otherwise. */
DSTREF_EXPORT DSTREF_COLD bool dstref_dst_hold_slow(struct dstref_dst *dst,
						    uint32_t n, uint32_t after,
						    const char *call);
DSTREF_EXPORT DSTREF_COLD void dstref_dst_release_slow(struct dstref_dst *dst,
						       uint32_t after,
						       const char *call);
DSTREF_EXPORT DSTREF_COLD void dstref_dst_look_slow(struct dstref_dst *dst,
						    uint32_t hint);
DSTREF_EXPORT DSTREF_COLD uint32_t
dstref_dst_refs_slow(const struct dstref_dst *dst);

/**
 * dstref_dst_init - start a dst on the user's memory
 * @dst: aligned to DSTREF_LINE_SIZE; every field is written
 * @net: its namespace
 * @ops: kept; ops->destroy must be there
 * @dev: the device, opaque, may be NULL
 * @flags: 0, or DSTREF_DST_UNCACHED, and DSTREF_DST_SPLIT_NEVER or _ALWAYS: by
 *         default it is split when the threads that attached to the namespace
 *         (dstref_net_attach()) contend for it
 *
 * The caller has the one reference. mtu, header_len, trailer_len, input and
 * output are 0 and NULL, to be set before it is shared.
 *
 * Context: any thread, in no reader necessarily. May wait for the namespace's
 *          lock, never blocks on RCU.
 * Ordering: none; install publishes.
 * Return: 0; -EINVAL for a misaligned @dst, a NULL or an unknown flag;
 *         -ESHUTDOWN when the namespace is closing. On error @dst is
 *         untouched.
 */
DSTREF_NODISCARD DSTREF_EXPORT int
dstref_dst_init(struct dstref_dst *dst, struct dstref_net *net,
		const struct dstref_dst_ops *ops, void *dev, uint32_t flags);

/**
 * dstref_dst_release_outside - let go of a reference, outside any reader
 * @dst: the dst; NULL does nothing
 *
 * Context: any thread, registered or not. Never blocks.
 * Ordering: as dstref_dst_release().
 */
DSTREF_EXPORT void dstref_dst_release_outside(struct dstref_dst *dst);

/**
 * dstref_dst_release_now - let go of a dst that was never published
 * @dst: the dst; NULL does nothing
 *
 * When this was the last reference, ops->destroy runs before the return:
 * nobody can have found the dst, so no grace period is due.
 *
 * Context: any thread, registered or not; all references were made by hold
 *          from the first one, none by a slot.
 * Ordering: as dstref_dst_release().
 */
DSTREF_EXPORT void dstref_dst_release_now(struct dstref_dst *dst);

/**
 * dstref_dst_dead - say that a route must not be used any more
 * @dst: the dst, to which the caller has a reference
 *
 * obsolete becomes DSTREF_DST_DEAD, input and output become
 * dstref_dst_discard(), the child is taken and let go of a grace period
 * later. The references stay, and so does the slot: clear that too. Twice is as
 * once; of two callers at the same time the second may return before the first
 * is done. A child that is installed afterwards stays until the dst ends.
 *
 * Context: any thread, in a reader or not. Never blocks.
 * Ordering: release (R3), with the acquire of dstref_dst_slot_borrow(): who
 *           finds the child gone sees the dst obsolete and discarding.
 */
DSTREF_EXPORT void dstref_dst_dead(struct dstref_dst *dst);

/**
 * dstref_dst_discard - input and output of a dead dst
 * @dst: not used
 * @pkt: stays with the caller
 *
 * Context: any.
 * Ordering: none.
 * Return: -ENETDOWN.
 */
DSTREF_EXPORT int dstref_dst_discard(struct dstref_dst *dst, void *pkt);

/**
 * dstref_dst_slot_install - put a dst into a slot
 * @slot: the slot
 * @dst: whose reference goes from the caller to the slot; NULL clears it
 *
 * The one that was there is unpublished, then the slot's reference to it is
 * let go of.
 *
 * Context: any thread, in a reader or not, for as long as the slot is there.
 * Ordering: release (R2): who finds @dst sees it initialised.
 */
DSTREF_EXPORT void dstref_dst_slot_install(struct dstref_dst_slot *slot,
					   struct dstref_dst *dst);

/**
 * dstref_dst_slot_replace - install only in place of a known dst
 * @slot: the slot
 * @expected: what the caller believes is there; NULL for an empty slot. Not
 *            NULL: the caller is in a reader, or has a reference
 * @dst: whose reference goes from the caller, to the slot when he wins, and
 *       is let go of when he loses
 *
 * Context: as dstref_dst_slot_install().
 * Ordering: as dstref_dst_slot_install().
 * Return: true for the winner; then the slot's reference to @expected was let
 *         go of.
 */
DSTREF_EXPORT bool dstref_dst_slot_replace(struct dstref_dst_slot *slot,
					   struct dstref_dst *expected,
					   struct dstref_dst *dst);

DSTREF_END_DECLS

/* Debug builds: a dst is needed, and a reader of its namespace. */
static inline bool dstref_dst_debug(const struct dstref_dst *dst,
				    const char *call)
{
	if (!dstref_debug_arg(dst, call))
		return false;
#if DSTREF_DEBUG
	dstref_net_debug_reader(dst->net, dst, call);
#endif
	return true;
}

/*
 * After an operation on the count, whose line is exclusive here now: who was
 * here last? Entries that may not be split do not ask.
 */
static inline void dstref_dst_look(struct dstref_dst *dst, uint16_t number)
{
	if (number != DSTREF_CELL_LOOK)
		return;
	uint32_t hint = dstref_load_relaxed(&dst->hint);

	if (dstref_unlikely(hint >> 20 != dstref_split_self))
		dstref_dst_look_slow(dst, hint);
}

/* Takes n references, in this thread's cell or in the count; @call is NULL for
 * try_hold. */
static inline bool dstref_dst_take(struct dstref_dst *dst, uint32_t n,
				   const char *call)
{
	/* A2, with R2 of the promotion (split.c). */
	uint16_t number = dstref_load_acquire(&dst->cell);
	struct dstref_cell *cell = dstref_cell_of(number);

	if (cell) {
		dstref_cell_get(cell, n, &dst->count, dst, "dstref_dst_hold");
		return true;
	}
	uint32_t after = dstref_add_return_relaxed(&dst->count.word, n);

	if (dstref_unlikely((int32_t)after < 0))
		return dstref_dst_hold_slow(dst, n, after, call);
	dstref_dst_look(dst, number);
	return true;
}

/* Lets go of n references, the same way. */
static inline void dstref_dst_give(struct dstref_dst *dst, uint32_t n,
				   const char *call)
{
	/* A2, with R2 of the promotion (split.c). */
	uint16_t number = dstref_load_acquire(&dst->cell);
	struct dstref_cell *cell = dstref_cell_of(number);

	if (cell) {
		dstref_cell_put(cell, n, &dst->count, dst, call);
		return;
	}
	uint32_t after = dstref_sub_return_release(&dst->count.word, n);

	if (dstref_unlikely((int32_t)after < 0))
		dstref_dst_release_slow(dst, after, call);
	else
		dstref_dst_look(dst, number);
}

/**
 * dstref_dst_hold_n - take n references
 * @dst: the dst
 * @n: references, 1 to DSTREF_COUNT_N_MAX; 0 does nothing, more is reported
 *     and refused
 *
 * Context: inside a reader; the caller has a reference or borrows one that
 *          cannot be the last. Else: dstref_dst_try_hold().
 * Ordering: none.
 */
static inline void dstref_dst_hold_n(struct dstref_dst *dst, uint32_t n)
{
	if (!dstref_dst_debug(dst, "dstref_dst_hold_n"))
		return;
	if (dstref_unlikely(n - 1 >= DSTREF_COUNT_N_MAX)) {
		if (n)
			dstref_report_raise(DSTREF_REPORT_COUNT_RANGE,
					    "dstref_dst_hold_n", dst, n, NULL);
		return;
	}
	(void)dstref_dst_take(dst, n, "dstref_dst_hold_n");
}

/**
 * dstref_dst_hold - take a reference
 * @dst: the dst
 *
 * Context: as dstref_dst_hold_n().
 * Ordering: none.
 */
static inline void dstref_dst_hold(struct dstref_dst *dst)
{
	if (!dstref_dst_debug(dst, "dstref_dst_hold"))
		return;
	(void)dstref_dst_take(dst, 1, "dstref_dst_hold");
}

/**
 * dstref_dst_hold_outside - take a reference, outside any reader
 * @dst: the caller has a reference already
 *
 * Context: any thread, registered or not.
 * Ordering: none.
 */
static inline void dstref_dst_hold_outside(struct dstref_dst *dst)
{
	if (!dstref_debug_arg(dst, "dstref_dst_hold_outside"))
		return;
	uint32_t after = dstref_add_return_relaxed(&dst->count.word, 1u);

	if (dstref_unlikely((int32_t)after < 0))
		(void)dstref_dst_hold_slow(dst, 1, after,
					   "dstref_dst_hold_outside");
}

/**
 * dstref_dst_try_hold_n - take n references unless the last is gone
 * @dst: found inside this reader
 * @n: as dstref_dst_hold_n(); false when it is out of range
 *
 * Context: inside a reader.
 * Ordering: as dstref_count_get(); the slot's acquire ordered the contents.
 * Return: true when the caller has n references more.
 */
DSTREF_NODISCARD static inline bool
dstref_dst_try_hold_n(struct dstref_dst *dst, uint32_t n)
{
	static const char call[] = "dstref_dst_try_hold_n";

	if (!dstref_dst_debug(dst, call))
		return false;
	if (dstref_unlikely(n - 1 >= DSTREF_COUNT_N_MAX)) {
		if (n)
			dstref_report_raise(DSTREF_REPORT_COUNT_RANGE, call,
					    dst, n, NULL);
		return false;
	}
	return dstref_dst_take(dst, n, NULL);
}

/**
 * dstref_dst_try_hold - take a reference unless the last is gone
 * @dst: found inside this reader
 *
 * Context: inside a reader.
 * Ordering: as dstref_count_get(); the slot's acquire ordered the contents.
 * Return: true when the caller has a reference now.
 */
DSTREF_NODISCARD static inline bool dstref_dst_try_hold(struct dstref_dst *dst)
{
	if (!dstref_dst_debug(dst, "dstref_dst_try_hold"))
		return false;
	return dstref_dst_take(dst, 1, NULL);
}

/**
 * dstref_dst_use_noref - note that a dst is in use
 * @dst: the dst
 * @now_ns: the time, as for dstref_net_tick()
 *
 * Stores lastuse only when the coarse time (DSTREF_NET_TICK_SHIFT) has
 * changed: there is no counter of uses that every packet would write.
 *
 * Context: inside a reader.
 * Ordering: none; lastuse is advisory.
 */
static inline void dstref_dst_use_noref(struct dstref_dst *dst, uint64_t now_ns)
{
	if (!dstref_dst_debug(dst, "dstref_dst_use_noref"))
		return;
	uint32_t tick = dstref_net_tick_of(now_ns);

	if (dstref_load_relaxed(&dst->lastuse) != tick)
		dstref_store_relaxed(&dst->lastuse, tick);
}

/**
 * dstref_dst_use - take a reference, and note that a dst is in use
 * @dst: the dst
 * @now_ns: the time, as for dstref_net_tick()
 *
 * Context: as dstref_dst_hold().
 * Ordering: none.
 */
static inline void dstref_dst_use(struct dstref_dst *dst, uint64_t now_ns)
{
	dstref_dst_hold(dst);
	dstref_dst_use_noref(dst, now_ns);
}

/**
 * dstref_dst_release_n - let go of n references
 * @dst: the dst; NULL does nothing
 * @n: references, all the caller's, 1 to DSTREF_COUNT_N_MAX; 0 does nothing,
 *     more is reported and refused
 *
 * Context: inside a reader. Never blocks.
 * Ordering: release (R1 of count.h): destroy sees what each holder wrote.
 */
static inline void dstref_dst_release_n(struct dstref_dst *dst, uint32_t n)
{
	if (!dst)
		return;
	(void)dstref_dst_debug(dst, "dstref_dst_release_n");
	if (dstref_unlikely(n - 1 >= DSTREF_COUNT_N_MAX)) {
		if (n)
			dstref_report_raise(DSTREF_REPORT_COUNT_RANGE,
					    "dstref_dst_release_n", dst, n,
					    NULL);
		return;
	}
	dstref_dst_give(dst, n, "dstref_dst_release_n");
}

/**
 * dstref_dst_release - let go of a reference
 * @dst: the dst; NULL does nothing
 *
 * Context: inside a reader. Never blocks.
 * Ordering: as dstref_dst_release_n().
 */
static inline void dstref_dst_release(struct dstref_dst *dst)
{
	if (!dst)
		return;
	(void)dstref_dst_debug(dst, "dstref_dst_release");
	dstref_dst_give(dst, 1, "dstref_dst_release");
}

/**
 * dstref_dst_refs - how many references there are
 * @dst: the dst
 *
 * Context: inside a reader, or with a reference. While it is split, takes a
 *          lock of the namespace for a moment.
 * Ordering: none.
 * Return: as dstref_count_read(); while it is split as dstref_split_read().
 */
DSTREF_NODISCARD static inline uint32_t
dstref_dst_refs(const struct dstref_dst *dst)
{
	if (!dstref_debug_arg(dst, "dstref_dst_refs"))
		return 0;
	if (dstref_load_relaxed(&dst->state) & 0x7u)
		return dstref_dst_refs_slow(dst);
	return dstref_count_read(&dst->count);
}

/**
 * dstref_dst_check - may a dst that was kept still be used?
 * @dst: the dst
 * @cookie: what the keeper noted when he found it, for ops->check
 *
 * Context: inside a reader, or with a reference.
 * Ordering: none; a dst that dies right after is caught by its discard
 *           functions.
 * Return: true when it is valid, or ops->check says so.
 */
DSTREF_NODISCARD static inline bool dstref_dst_check(struct dstref_dst *dst,
						     uint32_t cookie)
{
	if (!dstref_debug_arg(dst, "dstref_dst_check"))
		return false;
	int obsolete = dstref_load_relaxed(&dst->obsolete);

	if (dstref_likely(obsolete == DSTREF_DST_VALID))
		return true;
	return dst->ops->check && dst->ops->check(dst, cookie);
}

/**
 * dstref_dst_input - receive a packet by this route
 * @dst: the dst
 * @pkt: the packet
 *
 * Context: inside a reader, or with a reference.
 * Ordering: none; the function was set before sharing, or is the discard.
 * Return: what the function returned; -ENETDOWN when there is none.
 */
static inline int dstref_dst_input(struct dstref_dst *dst, void *pkt)
{
	if (!dstref_debug_arg(dst, "dstref_dst_input"))
		return dstref_dst_discard(NULL, pkt);
	dstref_dst_fn fn = dstref_load_relaxed(&dst->input);

	return fn ? fn(dst, pkt) : dstref_dst_discard(dst, pkt);
}

/**
 * dstref_dst_output - send a packet by this route
 * @dst: the dst
 * @pkt: the packet
 *
 * Context: inside a reader, or with a reference.
 * Ordering: none; the function was set before sharing, or is the discard.
 * Return: what the function returned; -ENETDOWN when there is none.
 */
static inline int dstref_dst_output(struct dstref_dst *dst, void *pkt)
{
	if (!dstref_debug_arg(dst, "dstref_dst_output"))
		return dstref_dst_discard(NULL, pkt);
	dstref_dst_fn fn = dstref_load_relaxed(&dst->output);

	return fn ? fn(dst, pkt) : dstref_dst_discard(dst, pkt);
}

/**
 * dstref_dst_slot_borrow - find what is in a slot, without a reference
 * @slot: the slot
 *
 * Context: inside a reader; the result is good until its end.
 * Ordering: acquire (A2), with R2 of install.
 * Return: the dst or NULL.
 */
DSTREF_NODISCARD static inline struct dstref_dst *
dstref_dst_slot_borrow(const struct dstref_dst_slot *slot)
{
	if (!dstref_debug_arg(slot, "dstref_dst_slot_borrow"))
		return NULL;
	struct dstref_dst *dst = dstref_load_acquire(&slot->dst);

#if DSTREF_DEBUG
	if (dst)
		(void)dstref_dst_debug(dst, "dstref_dst_slot_borrow");
#endif
	return dst;
}

/**
 * dstref_dst_slot_hold - find what is in a slot and take a reference
 * @slot: the slot
 *
 * A dst whose last reference is gone has left its slot before, so it is
 * looked for again.
 *
 * Context: inside a reader.
 * Ordering: acquire (A2), with R2 of install.
 * Return: the dst, one reference of which is the caller's, or NULL.
 */
DSTREF_NODISCARD static inline struct dstref_dst *
dstref_dst_slot_hold(const struct dstref_dst_slot *slot)
{
	if (!dstref_debug_arg(slot, "dstref_dst_slot_hold"))
		return NULL;
	struct dstref_dst *dst = dstref_dst_slot_borrow(slot);

	while (dst && dstref_unlikely(!dstref_dst_try_hold(dst))) {
		struct dstref_dst *again = dstref_dst_slot_borrow(slot);

		if (dstref_unlikely(again == dst)) {
			dstref_report_raise(DSTREF_REPORT_DST_HOLD_DEAD,
					    "dstref_dst_slot_hold", dst, 0,
					    "the slot's own reference is gone");
			return NULL;
		}
		dst = again;
	}
	return dst;
}

/**
 * dstref_dst_slot_clear - empty a slot
 * @slot: the slot
 *
 * Context: as dstref_dst_slot_install().
 * Ordering: the slot is empty before the reference is let go of.
 */
static inline void dstref_dst_slot_clear(struct dstref_dst_slot *slot)
{
	dstref_dst_slot_install(slot, NULL);
}

/*
 * A ref: what one owner knows of a dst, in one word: nothing, a reference of
 * its own, or a borrowed one (bit 0 set). One thread at a time may touch it;
 * it works without sock or skb, in any 8 bytes that travel with a packet.
 * Starts as zero.
 */
struct dstref_dst_ref {
	uintptr_t word;
};

#define DSTREF_DST_REF_NOREF ((uintptr_t)1)

/**
 * dstref_dst_ref_get - the dst of a ref
 * @ref: the ref
 *
 * Context: the ref's owner; inside the reader of a borrowed one.
 * Ordering: none.
 * Return: the dst or NULL.
 */
DSTREF_NODISCARD static inline struct dstref_dst *
dstref_dst_ref_get(const struct dstref_dst_ref *ref)
{
	if (!dstref_debug_arg(ref, "dstref_dst_ref_get"))
		return NULL;
	return (struct dstref_dst *)(ref->word & ~DSTREF_DST_REF_NOREF);
}

/**
 * dstref_dst_ref_drop - let go
 * @ref: the ref; it is empty before its reference, if it had one, is put
 *
 * Context: inside a reader, where it may hold a reference.
 * Ordering: as dstref_dst_release().
 */
static inline void dstref_dst_ref_drop(struct dstref_dst_ref *ref)
{
	if (!dstref_debug_arg(ref, "dstref_dst_ref_drop"))
		return;
	uintptr_t word = ref->word;

	ref->word = 0;
	if (!(word & DSTREF_DST_REF_NOREF))
		dstref_dst_release((struct dstref_dst *)word);
}

/**
 * dstref_dst_ref_drop_outside - let go, outside any reader
 * @ref: the ref
 *
 * Context: any thread, registered or not.
 * Ordering: as dstref_dst_release().
 */
static inline void dstref_dst_ref_drop_outside(struct dstref_dst_ref *ref)
{
	if (!dstref_debug_arg(ref, "dstref_dst_ref_drop_outside"))
		return;
	uintptr_t word = ref->word;

	ref->word = 0;
	if (!(word & DSTREF_DST_REF_NOREF))
		dstref_dst_release_outside((struct dstref_dst *)word);
}

/**
 * dstref_dst_ref_set - own a reference
 * @ref: the ref; what it had is dropped first
 * @dst: whose reference goes from the caller to the ref; NULL empties it
 *
 * Context: as dstref_dst_ref_drop().
 * Ordering: none for @dst.
 */
static inline void dstref_dst_ref_set(struct dstref_dst_ref *ref,
				      struct dstref_dst *dst)
{
	if (!dstref_debug_arg(ref, "dstref_dst_ref_set"))
		return;
	dstref_dst_ref_drop(ref);
	ref->word = (uintptr_t)dst;
}

/**
 * dstref_dst_ref_set_noref - borrow
 * @ref: the ref; what it had is dropped first
 * @dst: found inside this reader; NULL empties the ref
 *
 * A dst that is DSTREF_DST_UNCACHED cannot be borrowed: it is held.
 *
 * Context: inside a reader; the ref must be dropped or forced before its end.
 * Ordering: none.
 */
static inline void dstref_dst_ref_set_noref(struct dstref_dst_ref *ref,
					    struct dstref_dst *dst)
{
	if (!dstref_debug_arg(ref, "dstref_dst_ref_set_noref"))
		return;
	dstref_dst_ref_drop(ref);
	if (!dst)
		return;
	(void)dstref_dst_debug(dst, "dstref_dst_ref_set_noref");
	ref->word = (uintptr_t)dst | DSTREF_DST_REF_NOREF;
	if (dstref_unlikely(dst->flags & DSTREF_DST_UNCACHED)) {
		dstref_dst_hold(dst);
		ref->word = (uintptr_t)dst;
	}
}

/**
 * dstref_dst_ref_force - turn a borrowed dst into a held one
 * @ref: the ref; one that holds already is left as it is
 *
 * Context: inside the reader in which it was borrowed.
 * Ordering: none.
 * Return: true when the ref holds a dst; false, and the ref is empty, when it
 *         was, or when the last reference is gone meanwhile.
 */
DSTREF_NODISCARD static inline bool
dstref_dst_ref_force(struct dstref_dst_ref *ref)
{
	if (!dstref_debug_arg(ref, "dstref_dst_ref_force"))
		return false;
	struct dstref_dst *dst = dstref_dst_ref_get(ref);

	if (!(ref->word & DSTREF_DST_REF_NOREF))
		return dst != NULL;
	ref->word = 0;
	if (!dstref_dst_try_hold(dst))
		return false;
	ref->word = (uintptr_t)dst;
	return true;
}

/**
 * dstref_dst_ref_copy - a second owner
 * @to: what it had is dropped first; then it holds, even where @from borrows
 * @from: is left as it is
 *
 * Context: inside a reader.
 * Ordering: none.
 * Return: true when @to holds a dst; false when @from is empty, or borrows a
 *         dst whose last reference is gone.
 */
DSTREF_NODISCARD static inline bool
dstref_dst_ref_copy(struct dstref_dst_ref *to,
		    const struct dstref_dst_ref *from)
{
	if (!dstref_debug_arg(to, "dstref_dst_ref_copy") ||
	    !dstref_debug_arg(from, "dstref_dst_ref_copy"))
		return false;
	struct dstref_dst *dst = dstref_dst_ref_get(from);
	bool held = dst && dstref_dst_try_hold(dst);

	dstref_dst_ref_set(to, held ? dst : NULL);
	return held;
}

#endif
