/* SPDX-License-Identifier: MIT */
/*
 * dst - births, deaths and slots of routes
 *
 * A life. init gives the creator one reference. He may install the dst in a
 * slot, which takes that reference over. Readers find it there and borrow it,
 * or hold it with try_hold. Whoever displaces it from the slot unpublishes
 * it first and lets go of the slot's reference then, so a borrower always
 * came before the unpublishing, and the grace period that follows the last
 * put covers him. Nothing reads a dst after a put that was not its last.
 *
 * The last put. It takes the child out by exchange, tells the namespace that
 * an entry became a callback, and defers. A grace period later, when no
 * borrower is left, the callback lets go of the child and hands the memory
 * to ops->destroy. The child waits as long because a borrower of the parent
 * may still follow it, and may want to hold it.
 *
 * dead. The first caller (by exchange of obsolete) makes input and output the
 * discard and takes the child by exchange: it and the last put race for it,
 * one gets it. The child must be kept for a grace period, by the parent's
 * own callback head: that is free, for dead takes a reference to the parent
 * first and gives it back in the callback, so the last put, which needs the
 * head too, comes later. A child that somebody installs after all of that is
 * found by the last callback, when nobody else can know the dst.
 *
 * Slots let go of what they displace by put_outside: installing is work of
 * the control plane, which may stand outside any reader.
 *
 * Ordering.
 *   R1/A1 are the count's: destroy sees what every holder wrote.
 *   R2 install publishes by an exchange with release; A2 slot_borrow loads
 *      with acquire: who finds a dst sees it initialised. Without either, a
 *      reader may call through ops that are not written yet; the stress test
 *      of slots under the thread sanitizer reports it. The exchange acquires
 *      as well, since the displaced dst is let go of by this thread. Mutants of
 *      the explorer: slot.install_no_release, replace_no_release,
 *      borrow_no_acquire, install_no_acquire.
 *   R3 dead takes the child with release, after its stores to obsolete, input
 *      and output. A reader for whom dead happened before (it was told so) sees
 *      all of them; one who runs beside it sees each early or late, and each
 *      is harmless by itself: the old function and the old child stay valid
 *      until his reader ends. So these stores need no order for him, and
 *      input, output and obsolete are loaded relaxed. Mutants:
 *      dst_dead.no_release (weak mode), no_acquire, discards_late.
 *   The last put takes the child with acquire, which no test can miss: who
 *   installed it held the parent, or was in a reader that the end waits for.
 *   going is plain: written by dead or by the last put, which a reference
 *   keeps apart, read in the callback.
 */
#include "net_private.h"
#include "split_private.h"

#include <dstref/dst.h>

#include <errno.h>
#include <string.h>

#define SPLIT_BOTH (DSTREF_DST_SPLIT_NEVER | DSTREF_DST_SPLIT_ALWAYS)

static struct dstref_dst *dst_of(struct rcu_head *head)
{
	return container_of(rcu_deferred(head), struct dstref_dst, rcu);
}

/* Splitting. */

static void dst_last(struct dstref_dst *dst);

/* A merge found the last reference gone. */
static void dst_zero(struct dstref_count *count)
{
	dst_last(container_of(count, struct dstref_dst, count));
}

/* NULL where the namespace has no cells. */
static struct dstref_split_domain *cells_of(const struct dstref_dst *dst)
{
	return net_of(dst->net)->split;
}

static struct split_words words_of(struct dstref_dst *dst)
{
	bool never = !cells_of(dst) || dst->flags & DSTREF_DST_SPLIT_NEVER;
	struct split_words words = {
		.count = &dst->count,
		.state = &dst->state,
		.cell = &dst->cell,
		.idle = never ? 0 : DSTREF_CELL_LOOK,
		.zero = dst_zero,
	};

	return words;
}

/* What init says of it; ALWAYS asks for the next tick. */
static void split_start(struct dstref_dst *dst)
{
	struct split_words words = words_of(dst);

	dstref_init_plain(&dst->cell, words.idle);
	if (words.idle && dst->flags & DSTREF_DST_SPLIT_ALWAYS)
		(void)split_request(cells_of(dst), &words);
}

/*
 * The owner changed. The number of changes is halved at each tick that went
 * by, so that a route which many threads touch now and then stays as it is.
 * Beside others the word may lose a change: it only hints.
 */
void dstref_dst_look_slow(struct dstref_dst *dst, uint32_t hint)
{
	uint32_t tick = net_ticks(dst->net) & 0xfff;
	uint32_t age = (tick - hint) & 0xfff;
	uint32_t changes = (hint >> 12 & 0xff) >> (age < 8 ? age : 8);

	if (++changes >= DSTREF_DST_HOT) {
		struct split_words words = words_of(dst);

		(void)split_request(cells_of(dst), &words);
		changes = 0;
	}
	dstref_store_relaxed(&dst->hint,
			     dstref_split_self << 20 | changes << 12 | tick);
}

uint32_t dstref_dst_refs_slow(const struct dstref_dst *dst)
{
	struct split_words words = words_of((struct dstref_dst *)dst);

	return split_read(cells_of(dst), &words);
}

/* What a slot shows no more will be let go of: have it merged first. */
static void dst_displaced(struct dstref_dst *dst)
{
	if (dst && dstref_load_relaxed(&dst->cell) & DSTREF_CELL_NUMBER) {
		struct split_words words = words_of(dst);

		(void)split_demote(cells_of(dst), &words);
	}
	dstref_dst_release_outside(dst);
}

/* A grace period after the last put: nobody can know the dst any more. */
static void dst_end(struct rcu_head *head)
{
	struct dstref_dst *dst = dst_of(head);
	struct dstref_net *net = dst->net;

	rcu_tag_acquire(net->flavour);
	dstref_dst_release_outside(dst->going);
	dstref_dst_slot_clear(&dst->child);
	net_unlink(net, &dst->entry);
	if (cells_of(dst)) {
		struct split_words words = words_of(dst);

		split_end(cells_of(dst), &words);
	}
	dst->ops->destroy(dst);
	net_done(net);
}

/* The last reference is gone; the caller was told so. */
static void dst_last(struct dstref_dst *dst)
{
	struct dstref_net *net = dst->net;

	dst->going = dstref_xchg_acquire(&dst->child.dst, NULL);
	net_leave(net, DSTREF_NET_DST);
	rcu_defer(net->flavour, &dst->rcu, dst_end);
}

int dstref_dst_init(struct dstref_dst *dst, struct dstref_net *net,
		    const struct dstref_dst_ops *ops, void *dev, uint32_t flags)
{
	if (!dst || (uintptr_t)dst % DSTREF_LINE_SIZE || !net || !ops ||
	    !ops->destroy || flags & ~DSTREF_DST_FLAGS ||
	    (flags & SPLIT_BOTH) == SPLIT_BOTH)
		return -EINVAL;
	int err = net_enter(net, DSTREF_NET_DST);

	if (err)
		return err;
	memset(dst, 0, sizeof(*dst));
	dst->ops = ops;
	dst->dev = dev;
	dst->net = net;
	dst->flags = (uint16_t)flags;
	dstref_count_init(&dst->count, 1);
	split_start(dst);
	net_link(net, &dst->entry, DSTREF_NET_DST);
	return 0;
}

bool dstref_dst_hold_slow(struct dstref_dst *dst, uint32_t n, uint32_t after,
			  const char *call)
{
	if (dstref_count_get_slow(&dst->count, n, after, dst,
				  call ? call : "dstref_dst_try_hold"))
		return true;
	if (call)
		dstref_report_raise(DSTREF_REPORT_DST_HOLD_DEAD, call, dst,
				    after, NULL);
	return false;
}

void dstref_dst_release_slow(struct dstref_dst *dst, uint32_t after,
			     const char *call)
{
	if (dstref_count_put_slow(&dst->count, after, dst, call))
		dst_last(dst);
}

void dstref_dst_release_outside(struct dstref_dst *dst)
{
	if (dst && dstref_count_put_outside_of(&dst->count, 1, dst,
					       "dstref_dst_release_outside"))
		dst_last(dst);
}

void dstref_dst_release_now(struct dstref_dst *dst)
{
	if (!dst || !dstref_count_put_outside_of(&dst->count, 1, dst,
						 "dstref_dst_release_now"))
		return;
	net_leave(dst->net, DSTREF_NET_DST);
	dst_end((struct rcu_head *)(void *)&dst->rcu);
}

/* A grace period after dead: nobody follows the child from here any more. */
static void child_end(struct rcu_head *head)
{
	struct dstref_dst *dst = dst_of(head);
	struct dstref_net *net = dst->net;
	struct dstref_dst *child = dst->going;

	rcu_tag_acquire(net->flavour);
	dst->going = NULL;
	dstref_dst_release_outside(child);
	dstref_dst_release_outside(dst);
	net_done(net);
}

/* A route that must not be used any more is not worth cells. */
static void dst_kill(struct dstref_dst *dst)
{
	struct split_words words = words_of(dst);

	if (!cells_of(dst))
		return;
	words.idle = 0;
	(void)split_kill(cells_of(dst), &words);
}

void dstref_dst_dead(struct dstref_dst *dst)
{
	if (!dstref_debug_arg(dst, "dstref_dst_dead"))
		return;
	if (dstref_xchg_relaxed(&dst->obsolete, DSTREF_DST_DEAD) ==
	    DSTREF_DST_DEAD)
		return;
	dstref_store_relaxed(&dst->input, dstref_dst_discard);
	dstref_store_relaxed(&dst->output, dstref_dst_discard);
	dst_kill(dst);
	if (!dstref_count_get(&dst->count))
		return; /* the last put has it, and the child */
	/* R3, with the acquire of dstref_dst_slot_borrow(). */
	dst->going = dstref_xchg_acq_rel(&dst->child.dst, NULL);
	if (!dst->going) {
		dstref_dst_release_outside(dst);
		return;
	}
	net_defer_begin(dst->net);
	rcu_defer(dst->net->flavour, &dst->rcu, child_end);
}

int dstref_dst_discard(struct dstref_dst *dst, void *pkt)
{
	(void)dst;
	(void)pkt;
	return -ENETDOWN;
}

void dstref_dst_slot_install(struct dstref_dst_slot *slot,
			     struct dstref_dst *dst)
{
	if (!dstref_debug_arg(slot, "dstref_dst_slot_install"))
		return;
	/* R2, with A2 in dstref_dst_slot_borrow(). */
	dst_displaced(dstref_xchg_acq_rel(&slot->dst, dst));
}

bool dstref_dst_slot_replace(struct dstref_dst_slot *slot,
			     struct dstref_dst *expected,
			     struct dstref_dst *dst)
{
	struct dstref_dst *old = expected;

	if (!dstref_debug_arg(slot, "dstref_dst_slot_replace"))
		return false;
	/* R2, with A2 in dstref_dst_slot_borrow(). */
	bool won = dstref_cas_acq_rel(&slot->dst, &old, dst);

	if (won)
		dst_displaced(expected);
	else
		dstref_dst_release_outside(dst);
	return won;
}
