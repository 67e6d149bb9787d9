/* SPDX-License-Identifier: MIT */
/**
 * DOC: skb - what a packet pins: a dst and an owner
 *
 * struct dstref_skb is 24 bytes (16 on 32-bit) that the user embeds in his
 * own packet: an mbuf's private area, a pbuf's custom part. It remembers the
 * dst, held or borrowed; the sock that pays for the packet, and whether for
 * sending or for receiving; what that sock was charged. It owns no memory.
 *
 * Starts as zero, or by dstref_skb_init(). Whoever has the packet calls, one
 * thread at a time; the hand-over between threads (a ring) orders.
 *
 * A borrowed dst must not leave its reader: before a packet is handed to
 * another thread, dstref_skb_xmit_release() or dstref_skb_dst_force().
 *
 * Context, where a call does not say otherwise: inside a reader of the
 * namespace's flavour.
 *
 * Source: S1 (2009) for the charge that pins, S4 (2009) for the release at
 * transmit time.
 */
#ifndef DSTREF_SKB_H
#define DSTREF_SKB_H

#include <dstref/config.h>
#include <dstref/dst.h>
#include <dstref/line.h>
#include <dstref/sock.h>

/* Kinds of ownership: the low bits of the owner word. */
#define DSTREF_SKB_TRANSMIT ((uintptr_t)1)
#define DSTREF_SKB_RECEIVE ((uintptr_t)2)
#define DSTREF_SKB_KIND ((uintptr_t)3)

/* Flags of dstref_skb_xmit_release(). */
#define DSTREF_SKB_KEEP_DST 0x1u /* the device needs the dst until completion */
#define DSTREF_SKB_EARLY 0x2u /* the device lets the owner go at transmit */
#define DSTREF_SKB_TIMESTAMP 0x4u /* the owner waits for a timestamp: keep it */

/*
 *	field     written by
 *	dst       receive (lookup), transmit (release)
 *	owner     receive or the sender, transmit when early, completion
 *	charge    with owner
 *	truesize  init, set_truesize
 */
struct dstref_skb {
	struct dstref_dst_ref dst;
	uintptr_t owner; /* struct dstref_sock, tagged with the kind */
	uint32_t charge; /* bytes that the owner was charged */
	uint32_t truesize; /* bytes that the packet costs */
};

DSTREF_ASSERT_SIZE(struct dstref_skb, 2 * sizeof(void *) + 8);

DSTREF_BEGIN_DECLS

/* set_owner_w() of a packet that has an owner: true when it was @sk and paid
 * the difference, false when that one was let go of. Not to be called else. */
DSTREF_EXPORT DSTREF_COLD bool dstref_skb_reown_w(struct dstref_skb *skb,
						  struct dstref_sock *sk);

/**
 * dstref_skb_dst_set_bulk - each of n packets holds its dst
 * @skb: pointers to the packets; what they had is dropped first
 * @dst: their dsts, found inside this reader; NULL empties the packet
 * @n: packets, any number; 32 or 64 is usual
 *
 * Takes the references here, unlike dstref_skb_dst_set(): one operation for
 * each dst of 64 packets, whatever their order.
 *
 * Context: inside a reader. Never blocks.
 * Ordering: none.
 * Return: packets that hold their dst; the others are empty, for the last
 *         reference to their dst is gone, or it was NULL.
 */
DSTREF_EXPORT uint32_t dstref_skb_dst_set_bulk(struct dstref_skb *const *skb,
					       struct dstref_dst *const *dst,
					       uint32_t n);

/**
 * dstref_skb_set_owner_w_bulk - socks pay for sending n packets
 * @skb: pointers to the packets; an owner that they have is let go of first
 * @sk: who pays for each, as dstref_skb_set_owner_w()
 * @n: packets, any number
 *
 * One operation for each sock of 64 packets, whatever their order.
 *
 * Context: inside a reader. Never blocks.
 * Ordering: none.
 */
DSTREF_EXPORT void dstref_skb_set_owner_w_bulk(struct dstref_skb *const *skb,
					       struct dstref_sock *const *sk,
					       uint32_t n);

/**
 * dstref_skb_free_bulk - n packets end
 * @skb: pointers to them; a NULL is passed over
 * @n: packets, any number
 *
 * One operation for each dst and each sock of 64 packets, whatever their
 * order; a sock's write-space callback hears of them once.
 *
 * Context: inside a reader. Never blocks, unless the callback does.
 * Ordering: as dstref_dst_release() and dstref_wmem_uncharge().
 */
DSTREF_EXPORT void dstref_skb_free_bulk(struct dstref_skb *const *skb,
					uint32_t n);

DSTREF_END_DECLS

/**
 * dstref_skb_init - start a packet
 * @skb: every field is written
 * @truesize: bytes that the packet costs, buffers and all
 *
 * Context: any thread.
 * Ordering: none.
 */
static inline void dstref_skb_init(struct dstref_skb *skb, uint32_t truesize)
{
	if (!dstref_debug_arg(skb, "dstref_skb_init"))
		return;
	skb->dst.word = 0;
	skb->owner = 0;
	skb->charge = 0;
	skb->truesize = truesize;
}

/**
 * dstref_skb_owner - who pays for a packet
 * @skb: the packet
 *
 * Context: any; the packet pins the result for as long as it is owned.
 * Ordering: none.
 * Return: the sock or NULL.
 */
DSTREF_NODISCARD static inline struct dstref_sock *
dstref_skb_owner(const struct dstref_skb *skb)
{
	if (!dstref_debug_arg(skb, "dstref_skb_owner"))
		return NULL;
	return (struct dstref_sock *)(skb->owner & ~DSTREF_SKB_KIND);
}

/**
 * dstref_skb_orphan - let go of the owner
 * @skb: the packet; without an owner nothing happens
 *
 * The packet forgets the owner before the account is touched.
 *
 * Context: inside a reader.
 * Ordering: as dstref_wmem_uncharge().
 */
static inline void dstref_skb_orphan(struct dstref_skb *skb)
{
	if (!dstref_debug_arg(skb, "dstref_skb_orphan"))
		return;
	uintptr_t owner = skb->owner;
	uint32_t charge = skb->charge;
	struct dstref_sock *sk =
		(struct dstref_sock *)(owner & ~DSTREF_SKB_KIND);

	if (!owner)
		return;
	skb->owner = 0;
	skb->charge = 0;
	if (dstref_likely(owner & DSTREF_SKB_TRANSMIT))
		dstref_sock_uncharge_w(sk, charge);
	else
		dstref_sock_uncharge_r(sk, charge);
}

/**
 * dstref_skb_orphan_outside - let go of the owner, outside any reader
 * @skb: the packet
 *
 * Context: any thread, registered or not. Takes a lock of the namespace for a
 *          moment, and around the owner's write-space callback.
 * Ordering: as dstref_wmem_uncharge().
 */
static inline void dstref_skb_orphan_outside(struct dstref_skb *skb)
{
	if (!dstref_debug_arg(skb, "dstref_skb_orphan_outside"))
		return;
	uintptr_t owner = skb->owner;
	uint32_t charge = skb->charge;
	struct dstref_sock *sk =
		(struct dstref_sock *)(owner & ~DSTREF_SKB_KIND);

	if (!owner)
		return;
	skb->owner = 0;
	skb->charge = 0;
	if (owner & DSTREF_SKB_TRANSMIT)
		dstref_sock_uncharge_w_outside(sk, charge);
	else
		dstref_sock_uncharge_r(sk, charge);
}

/**
 * dstref_skb_set_owner_w - a sock pays for sending a packet
 * @skb: the packet; an owner that it has is let go of first
 * @sk: the caller has a reference, or another packet of the same sock
 *
 * Charges truesize, a zero too. It does not ask whether the sock is
 * writeable: that is the sender's, before.
 *
 * Context: inside a reader.
 * Ordering: none for @sk.
 */
static inline void dstref_skb_set_owner_w(struct dstref_skb *skb,
					  struct dstref_sock *sk)
{
	if (!dstref_debug_arg(skb, "dstref_skb_set_owner_w"))
		return;
	uint32_t charge = skb->truesize;

	if (!dstref_sock_debug(sk, "dstref_skb_set_owner_w"))
		return;
	if (dstref_unlikely(skb->owner) && dstref_skb_reown_w(skb, sk))
		return;
	if (dstref_unlikely(!dstref_sock_charge_w(sk, charge)))
		return;
	skb->owner = (uintptr_t)sk | DSTREF_SKB_TRANSMIT;
	skb->charge = charge;
}

/**
 * dstref_skb_set_owner_r - a sock pays for a packet that it received
 * @skb: the packet; an owner that it has is let go of first
 * @sk: the caller has a reference, and keeps it until the return
 *
 * Context: inside a reader.
 * Ordering: none for @sk.
 */
static inline void dstref_skb_set_owner_r(struct dstref_skb *skb,
					  struct dstref_sock *sk)
{
	if (!dstref_debug_arg(skb, "dstref_skb_set_owner_r"))
		return;
	uint32_t charge = skb->truesize;

	if (!dstref_sock_debug(sk, "dstref_skb_set_owner_r"))
		return;
	dstref_skb_orphan(skb);
	if (dstref_unlikely(!dstref_sock_charge_r(sk, charge)))
		return;
	skb->owner = (uintptr_t)sk | DSTREF_SKB_RECEIVE;
	skb->charge = charge;
}

/**
 * dstref_skb_copy_owner - the owner of a packet pays for a fragment too
 * @to: the fragment, charged with its own truesize; an owner that it has is
 *      let go of first
 * @from: a packet that has an owner, or none
 *
 * Takes no reference: the charge of @from pins the owner meanwhile.
 *
 * Context: inside a reader.
 * Ordering: none.
 */
static inline void dstref_skb_copy_owner(struct dstref_skb *to,
					 const struct dstref_skb *from)
{
	if (!dstref_debug_arg(to, "dstref_skb_copy_owner") ||
	    !dstref_debug_arg(from, "dstref_skb_copy_owner"))
		return;
	struct dstref_sock *sk = dstref_skb_owner(from);

	if (!sk)
		dstref_skb_orphan(to);
	else if (from->owner & DSTREF_SKB_TRANSMIT)
		dstref_skb_set_owner_w(to, sk);
	else
		dstref_skb_set_owner_r(to, sk);
}

/**
 * dstref_skb_set_truesize - a packet changed its size
 * @skb: the packet; an owner is charged the difference
 * @truesize: bytes that it costs now
 *
 * Context: inside a reader.
 * Ordering: none.
 */
static inline void dstref_skb_set_truesize(struct dstref_skb *skb,
					   uint32_t truesize)
{
	if (!dstref_debug_arg(skb, "dstref_skb_set_truesize"))
		return;
	struct dstref_sock *sk = dstref_skb_owner(skb);

	if (sk) {
		if (skb->owner & DSTREF_SKB_TRANSMIT)
			dstref_sock_recharge_w(sk, skb->charge, truesize);
		else
			(void)dstref_wmem_recharge(&sk->rmem, skb->charge,
						   truesize);
		skb->charge = truesize;
	}
	skb->truesize = truesize;
}

/**
 * dstref_skb_dst - the dst of a packet
 * @skb: the packet
 *
 * Context: as dstref_dst_ref_get().
 * Ordering: none.
 * Return: the dst or NULL.
 */
DSTREF_NODISCARD static inline struct dstref_dst *
dstref_skb_dst(const struct dstref_skb *skb)
{
	if (!dstref_debug_arg(skb, "dstref_skb_dst"))
		return NULL;
	return dstref_dst_ref_get(&skb->dst);
}

/**
 * dstref_skb_dst_set - a packet owns a reference
 * @skb: the packet; what it had is dropped first
 * @dst: whose reference goes from the caller to the packet
 *
 * Context: as dstref_dst_ref_set().
 * Ordering: none.
 */
static inline void dstref_skb_dst_set(struct dstref_skb *skb,
				      struct dstref_dst *dst)
{
	if (!dstref_debug_arg(skb, "dstref_skb_dst_set"))
		return;
	dstref_dst_ref_set(&skb->dst, dst);
}

/**
 * dstref_skb_dst_set_noref - a packet borrows a dst
 * @skb: the packet; what it had is dropped first
 * @dst: found inside this reader
 *
 * Context: as dstref_dst_ref_set_noref().
 * Ordering: none.
 */
static inline void dstref_skb_dst_set_noref(struct dstref_skb *skb,
					    struct dstref_dst *dst)
{
	if (!dstref_debug_arg(skb, "dstref_skb_dst_set_noref"))
		return;
	dstref_dst_ref_set_noref(&skb->dst, dst);
}

/**
 * dstref_skb_dst_force - a packet that leaves its reader holds its dst
 * @skb: the packet
 *
 * Context: as dstref_dst_ref_force().
 * Ordering: none.
 * Return: as dstref_dst_ref_force().
 */
DSTREF_NODISCARD static inline bool dstref_skb_dst_force(struct dstref_skb *skb)
{
	if (!dstref_debug_arg(skb, "dstref_skb_dst_force"))
		return false;
	return dstref_dst_ref_force(&skb->dst);
}

/**
 * dstref_skb_dst_drop - a packet lets go of its dst
 * @skb: the packet
 *
 * Context: as dstref_dst_ref_drop().
 * Ordering: as dstref_dst_ref_drop().
 */
static inline void dstref_skb_dst_drop(struct dstref_skb *skb)
{
	if (!dstref_debug_arg(skb, "dstref_skb_dst_drop"))
		return;
	dstref_dst_ref_drop(&skb->dst);
}

/**
 * dstref_skb_xmit_release - a packet leaves the core that sends it
 * @skb: the packet, before it goes to the device's ring
 * @flags: DSTREF_SKB_KEEP_DST: hold the dst, else let go of it here, where
 *         its line is, and not at completion, where it is not.
 *         DSTREF_SKB_EARLY: uncharge the owner here too, unless
 *         DSTREF_SKB_TIMESTAMP says that completion needs him
 *
 * Early uncharge gives up back pressure: what bounds a sender then is the
 * device's ring alone, which must refuse when it is full.
 *
 * Context: inside the reader of a borrowed dst.
 * Ordering: as dstref_dst_release() and dstref_wmem_uncharge().
 * Return: false when the device wanted the dst and there is none to keep.
 */
static inline bool dstref_skb_xmit_release(struct dstref_skb *skb,
					   unsigned int flags)
{
	if (!dstref_debug_arg(skb, "dstref_skb_xmit_release"))
		return false;
	bool ok = true;

	if (flags & DSTREF_SKB_KEEP_DST)
		ok = dstref_skb_dst_force(skb);
	else
		dstref_skb_dst_drop(skb);
	if ((flags & (DSTREF_SKB_EARLY | DSTREF_SKB_TIMESTAMP)) ==
	    DSTREF_SKB_EARLY)
		dstref_skb_orphan(skb);
	return ok;
}

/**
 * dstref_skb_free - a packet ends: let go of dst and owner
 * @skb: the packet; NULL does nothing. Its memory stays the user's
 *
 * Context: inside a reader.
 * Ordering: as dstref_dst_release() and dstref_wmem_uncharge().
 */
static inline void dstref_skb_free(struct dstref_skb *skb)
{
	if (!skb)
		return;
	dstref_skb_dst_drop(skb);
	dstref_skb_orphan(skb);
}

/**
 * dstref_skb_free_outside - a packet ends, outside any reader
 * @skb: the packet; NULL does nothing
 *
 * Context: any thread, registered or not.
 * Ordering: as dstref_skb_free().
 */
static inline void dstref_skb_free_outside(struct dstref_skb *skb)
{
	if (!skb)
		return;
	dstref_dst_ref_drop_outside(&skb->dst);
	dstref_skb_orphan_outside(skb);
}

#endif
