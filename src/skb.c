/* SPDX-License-Identifier: MIT */
/*
 * skb - bursts: one operation for each object, whatever the order
 *
 * A burst names few objects, often: packets of one flow, or of some flows that
 * are mixed. The packets are gone through once, in chunks of 64; a short list
 * collects, for each object that was met, how many packets named it and how
 * many bytes they cost. At the end of the chunk the objects are settled: one
 * operation for each.
 *
 * A list is searched from its end, where the last object stands, so a run of
 * one object costs one comparison a packet. The search ends after REACH items:
 * many objects that take turns are listed more than once, gain less, and come
 * out right. So are charges that would pass what the account takes at once.
 *
 * What is let go of is forgotten by the packet first, as in the single calls.
 * What is taken is written into the packet first, and taken back out of it in
 * the uncommon case that it could not be had: nobody else looks at a packet.
 * Until its list is settled, a packet's reference keeps the object; so the
 * order of settling does not matter.
 *
 * Ordering: that of the single calls.
 */
#include <dstref/skb.h>

bool dstref_skb_reown_w(struct dstref_skb *skb, struct dstref_sock *sk)
{
	if (skb->owner != ((uintptr_t)sk | DSTREF_SKB_TRANSMIT)) {
		dstref_skb_orphan(skb);
		return false;
	}
	/* It may be all that pins the sock: keep the unit. */
	dstref_sock_recharge_w(sk, skb->charge, skb->truesize);
	skb->charge = skb->truesize;
	return true;
}

/* Bursts. */

#define CHUNK DSTREF_WMEM_N_MAX
#define REACH 16

struct item {
	void *object; /* an owner has its kind in the low bits */
	uint32_t n;
	uint32_t bytes;
};

struct list {
	struct item item[CHUNK]; /* no more than packets */
	uint32_t used;
	void (*settle)(const struct item *item, void *arg);
	void *arg;
};

/* Its items are not cleared: a list is short-lived, and most are short. */
static void list_start(struct list *list,
		       void (*settle)(const struct item *item, void *arg),
		       void *arg)
{
	list->used = 0;
	list->settle = settle;
	list->arg = arg;
}

static void list_settle(struct list *list)
{
	for (uint32_t i = 0; i < list->used; i++)
		list->settle(&list->item[i], list->arg);
	list->used = 0;
}

/* Where an object is listed with room for @bytes, or a new item. */
static struct item *list_item(struct list *list, void *object, uint32_t bytes)
{
	uint32_t end = list->used > REACH ? list->used - REACH : 0;

	for (uint32_t i = list->used; i > end; i--) {
		struct item *item = &list->item[i - 1];

		if (item->object == object &&
		    bytes <= DSTREF_WMEM_CHARGE_MAX - item->bytes)
			return item;
	}
	list->item[list->used] = (struct item){ object, 0, 0 };
	return &list->item[list->used++];
}

/* One packet more for an object. */
static void list_add(struct list *list, void *object, uint32_t bytes)
{
	struct item *item = list_item(list, object, bytes);

	item->n++;
	item->bytes += bytes;
}

/* Letting go. */

static void dst_put(const struct item *item, void *arg)
{
	(void)arg;
	dstref_dst_release_n(item->object, item->n);
}

static void owner_put(const struct item *item, void *arg)
{
	uintptr_t owner = (uintptr_t)item->object;
	struct dstref_sock *sk =
		(struct dstref_sock *)(owner & ~DSTREF_SKB_KIND);

	(void)arg;
	if (owner & DSTREF_SKB_TRANSMIT)
		dstref_sock_uncharge_w_n(sk, item->n, item->bytes);
	else
		dstref_sock_uncharge_r_n(sk, item->n, item->bytes);
}

/* A packet lets go of its dst, if it holds one. */
static void dst_drop(struct dstref_skb *skb, struct list *dsts)
{
	uintptr_t word = skb->dst.word;

	skb->dst.word = 0;
	if (word && !(word & DSTREF_DST_REF_NOREF))
		list_add(dsts, (void *)word, 0);
}

static void owner_drop(struct dstref_skb *skb, struct list *owners)
{
	uintptr_t owner = skb->owner;
	uint32_t charge = skb->charge;

	skb->owner = 0;
	skb->charge = 0;
	if (owner)
		list_add(owners, (void *)owner, charge);
}

void dstref_skb_free_bulk(struct dstref_skb *const *skb, uint32_t n)
{
	struct list dsts, owners;

	if (!n || !dstref_debug_arg(skb, "dstref_skb_free_bulk"))
		return;
	list_start(&dsts, dst_put, NULL);
	list_start(&owners, owner_put, NULL);
	for (uint32_t i = 0; i < n; i++) {
		if (i % CHUNK == 0) {
			list_settle(&dsts);
			list_settle(&owners);
		}
		if (!skb[i])
			continue;
		dst_drop(skb[i], &dsts);
		owner_drop(skb[i], &owners);
	}
	list_settle(&dsts);
	list_settle(&owners);
}

/* Taking. What could not be had is taken back out of the packets. */
struct chunk {
	struct dstref_skb *const *skb;
	uint32_t n;
	uint32_t had; /* packets that got what they asked for */
};

static void dst_get(const struct item *item, void *arg)
{
	struct chunk *chunk = arg;

	if (dstref_likely(dstref_dst_try_hold_n(item->object, item->n))) {
		chunk->had += item->n;
		return;
	}
	for (uint32_t i = 0; i < chunk->n; i++)
		if (chunk->skb[i]->dst.word == (uintptr_t)item->object)
			chunk->skb[i]->dst.word = 0;
}

static void owner_get(const struct item *item, void *arg)
{
	struct chunk *chunk = arg;

	if (dstref_likely(
		    dstref_sock_charge_w_n(item->object, item->n, item->bytes)))
		return;
	for (uint32_t i = 0; i < chunk->n; i++) {
		struct dstref_skb *skb = chunk->skb[i];

		if (skb->owner !=
		    ((uintptr_t)item->object | DSTREF_SKB_TRANSMIT))
			continue;
		skb->owner = 0;
		skb->charge = 0;
	}
}

/* The packets of one chunk, 64 at most, and what they had before. */
static uint32_t dst_set(struct dstref_skb *const *skb,
			struct dstref_dst *const *dst, uint32_t n)
{
	struct chunk chunk = { skb, n, 0 };
	struct list old, list;

	list_start(&old, dst_put, NULL);
	list_start(&list, dst_get, &chunk);
	for (uint32_t i = 0; i < n; i++)
		dst_drop(skb[i], &old);
	for (uint32_t i = 0; i < n; i++) {
		if (!dst[i])
			continue;
		skb[i]->dst.word = (uintptr_t)dst[i];
		list_add(&list, dst[i], 0);
	}
	list_settle(&list);
	list_settle(&old);
	return chunk.had;
}

uint32_t dstref_skb_dst_set_bulk(struct dstref_skb *const *skb,
				 struct dstref_dst *const *dst, uint32_t n)
{
	static const char call[] = "dstref_skb_dst_set_bulk";
	uint32_t had = 0;

	if (!n || !dstref_debug_arg(skb, call) || !dstref_debug_arg(dst, call))
		return 0;
	for (uint32_t i = 0; i < n; i += CHUNK)
		had += dst_set(skb + i, dst + i, n - i < CHUNK ? n - i : CHUNK);
	return had;
}

static void owner_set(struct dstref_skb *const *skb,
		      struct dstref_sock *const *sk, uint32_t n)
{
	struct chunk chunk = { skb, n, 0 };
	struct list old, list;

	list_start(&old, owner_put, NULL);
	list_start(&list, owner_get, &chunk);
	for (uint32_t i = 0; i < n; i++)
		owner_drop(skb[i], &old);
	for (uint32_t i = 0; i < n; i++) {
		skb[i]->owner = (uintptr_t)sk[i] | DSTREF_SKB_TRANSMIT;
		skb[i]->charge = skb[i]->truesize;
		list_add(&list, sk[i], skb[i]->charge);
	}
	/* The new before the old: it may be all that pins the sock. */
	list_settle(&list);
	list_settle(&old);
}

void dstref_skb_set_owner_w_bulk(struct dstref_skb *const *skb,
				 struct dstref_sock *const *sk, uint32_t n)
{
	static const char call[] = "dstref_skb_set_owner_w_bulk";

	if (!n || !dstref_debug_arg(skb, call) || !dstref_debug_arg(sk, call))
		return;
	for (uint32_t i = 0; i < n; i += CHUNK)
		owner_set(skb + i, sk + i, n - i < CHUNK ? n - i : CHUNK);
}
