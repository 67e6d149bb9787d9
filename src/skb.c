/* SPDX-License-Identifier: MIT */
/*
 * skb - bursts: one operation for each object, whatever the order
 *
 * A burst names few objects, often: packets of one flow, or of some flows that
 * are mixed. The packets are gone through in chunks of 64. First all that they
 * name is written down; then it is grouped: how many packets named an object,
 * and how many bytes they cost. Each group is settled by one operation.
 *
 * A chunk that names one object throughout, the usual case, is seen from the
 * words alone, by a difference that stays zero. Else a small table tells where
 * an object's group is. It has one byte a slot, to be cleared quickly; when two
 * objects fall on one slot, the later takes it, and the former starts another
 * group when it comes again: that gains less, and comes out right. A list that
 * is searched was tried and lost: with objects in random order every search
 * ends at another place, and the mispredicted branches took more time than the
 * atomic operations that they saved. Here only the first packet of a group
 * takes the other way.
 *
 * Charges that together pass what an account takes at once are settled packet
 * by packet.
 *
 * What is let go of is forgotten by the packet first, as in the single calls.
 * What is taken is written into the packet first, and taken back out of it in
 * the uncommon case that it could not be had: nobody else looks at a packet.
 * Until its group is settled, a packet's reference keeps the object; so the
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
#define SLOTS 64
#define SLOTS_SHIFT 26 /* leaves as many bits of 32 */

DSTREF_STATIC_ASSERT(SLOTS == UINT32_C(1) << (32 - SLOTS_SHIFT),
		     "SLOTS_SHIFT must leave the bits of a slot");
DSTREF_STATIC_ASSERT(CHUNK <= UINT8_MAX, "a group must fit its slot");
DSTREF_STATIC_ASSERT(DSTREF_WMEM_CHARGE_MAX <= UINT32_MAX,
		     "the bytes of a group must fit half of its sum");

/* What the packets of a chunk name; never NULL. */
struct names {
	uintptr_t object[CHUNK]; /* an owner has its kind in the low bits */
	uint32_t bytes[CHUNK]; /* that an owner was charged */
};

/* Of names, apart from them so that a compiler keeps it in registers. */
struct tally {
	uint32_t n;
	uintptr_t differ; /* 0 while all objects are the same */
	uint64_t bytes;
};

/* One word, so that a packet more is one addition. */
struct group {
	uintptr_t object;
	uint64_t sum; /* packets in the high half, their bytes in the low */
};

#define ONE_PACKET (UINT64_C(1) << 32)

/* The groups of a chunk; the first of them is nobody's. */
struct groups {
	struct group group[CHUNK + 1];
};

static inline uint32_t packets_of(const struct group *group)
{
	return (uint32_t)(group->sum >> 32);
}

static inline uint32_t bytes_of(const struct group *group)
{
	return (uint32_t)group->sum;
}

static inline void name_dst(struct names *names, struct tally *tally,
			    uintptr_t dst)
{
	names->object[tally->n++] = dst;
	tally->differ |= dst ^ names->object[0];
}

static inline void name_owner(struct names *names, struct tally *tally,
			      uintptr_t owner, uint32_t bytes)
{
	names->bytes[tally->n] = bytes;
	tally->bytes += bytes;
	name_dst(names, tally, owner);
}

/* Fibonacci hashing: objects lie at even distances, often. */
static inline uint32_t slot_of(uintptr_t object)
{
	return (uint32_t)(object >> 6) * UINT32_C(0x9e3779b1) >> SLOTS_SHIFT;
}

/* Groups by object; how many groups. */
static inline uint32_t group_mixed(struct group *group,
				   const struct names *names, uint32_t n,
				   bool owners)
{
	uint8_t slot[SLOTS] = { 0 };
	uint32_t used = 0;

	group[0].object = 0;
	for (uint32_t i = 0; i < n; i++) {
		uintptr_t object = names->object[i];
		uint64_t one = ONE_PACKET + (owners ? names->bytes[i] : 0);
		uint8_t *at = &slot[slot_of(object)];

		if (group[*at].object == object) {
			group[*at].sum += one;
			continue;
		}
		*at = (uint8_t)++used;
		group[used] = (struct group){ object, one };
	}
	return used;
}

/* A group for each packet. */
static uint32_t group_alone(struct group *group, const struct names *names,
			    uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		group[i + 1] = (struct group){ names->object[i],
					       ONE_PACKET + names->bytes[i] };
	return n;
}

/* The groups are from 1 to what is returned. */
static inline uint32_t group_up(struct groups *groups,
				const struct names *names,
				const struct tally *tally, bool owners)
{
	struct group *group = groups->group;

	if (!tally->n)
		return 0;
	if (dstref_unlikely(tally->bytes > DSTREF_WMEM_CHARGE_MAX))
		return group_alone(group, names, tally->n);
	if (tally->differ)
		return group_mixed(group, names, tally->n, owners);
	group[1] = (struct group){ names->object[0],
				   tally->n * ONE_PACKET + tally->bytes };
	return 1;
}

/* Letting go. */

static inline void dst_put(const struct group *group)
{
	dstref_dst_release_n((void *)group->object, packets_of(group));
}

static void dsts_put(const struct names *names, const struct tally *tally)
{
	struct groups groups;
	uint32_t n = group_up(&groups, names, tally, false);

	for (uint32_t i = 1; i <= n; i++)
		dst_put(&groups.group[i]);
}

static void owner_put(const struct group *group)
{
	struct dstref_sock *sk =
		(struct dstref_sock *)(group->object & ~DSTREF_SKB_KIND);

	if (group->object & DSTREF_SKB_TRANSMIT)
		dstref_sock_uncharge_w_n(sk, packets_of(group),
					 bytes_of(group));
	else
		dstref_sock_uncharge_r_n(sk, packets_of(group),
					 bytes_of(group));
}

static void owners_put(const struct names *names, const struct tally *tally)
{
	struct groups groups;
	uint32_t n = group_up(&groups, names, tally, true);

	for (uint32_t i = 1; i <= n; i++)
		owner_put(&groups.group[i]);
}

/* A packet lets go of its dst, if it holds one. */
static inline void dst_drop(struct dstref_skb *skb, struct names *dsts,
			    struct tally *tally)
{
	uintptr_t word = skb->dst.word;

	if (!word)
		return;
	skb->dst.word = 0;
	if (!(word & DSTREF_DST_REF_NOREF))
		name_dst(dsts, tally, word);
}

static inline void owner_drop(struct dstref_skb *skb, struct names *owners,
			      struct tally *tally)
{
	uintptr_t owner = skb->owner;
	uint32_t charge = skb->charge;

	if (!owner)
		return;
	skb->owner = 0;
	skb->charge = 0;
	name_owner(owners, tally, owner, charge);
}

/* The packets of one chunk. */
static void free_chunk(struct dstref_skb *const *skb, uint32_t n)
{
	struct tally dst_tally = { 0, 0, 0 }, owner_tally = { 0, 0, 0 };
	struct names dsts, owners;

	for (uint32_t i = 0; i < n; i++) {
		if (!skb[i])
			continue;
		dst_drop(skb[i], &dsts, &dst_tally);
		owner_drop(skb[i], &owners, &owner_tally);
	}
	dsts_put(&dsts, &dst_tally);
	owners_put(&owners, &owner_tally);
}

void dstref_skb_free_bulk(struct dstref_skb *const *skb, uint32_t n)
{
	if (!n || !dstref_debug_arg(skb, "dstref_skb_free_bulk"))
		return;
	for (uint32_t i = 0; i < n; i += CHUNK)
		free_chunk(skb + i, n - i < CHUNK ? n - i : CHUNK);
}

/* Taking. What could not be had is taken back out of the packets. */

static uint32_t dst_get(const struct group *group,
			struct dstref_skb *const *skb, uint32_t n)
{
	uint32_t packets = packets_of(group);

	if (dstref_likely(
		    dstref_dst_try_hold_n((void *)group->object, packets)))
		return packets;
	for (uint32_t i = 0; i < n; i++)
		if (skb[i]->dst.word == group->object)
			skb[i]->dst.word = 0;
	return 0;
}

/* A packet that is settled alone may be refused for its own charge. */
static void owner_get(const struct group *group, struct dstref_skb *const *skb,
		      uint32_t n)
{
	struct dstref_sock *sk =
		(struct dstref_sock *)(group->object & ~DSTREF_SKB_KIND);

	if (dstref_likely(dstref_sock_charge_w_n(sk, packets_of(group),
						 bytes_of(group))))
		return;
	for (uint32_t i = 0; i < n; i++) {
		if (skb[i]->owner != group->object ||
		    (packets_of(group) == 1 &&
		     skb[i]->charge != bytes_of(group)))
			continue;
		skb[i]->owner = 0;
		skb[i]->charge = 0;
	}
}

/* The packets of one chunk, and what they had before. */
static uint32_t dst_set(struct dstref_skb *const *skb,
			struct dstref_dst *const *dst, uint32_t n)
{
	struct tally old_tally = { 0, 0, 0 }, tally = { 0, 0, 0 };
	struct names old, names;
	struct groups groups;
	uint32_t had = 0;

	for (uint32_t i = 0; i < n; i++) {
		dst_drop(skb[i], &old, &old_tally);
		if (!dst[i])
			continue;
		skb[i]->dst.word = (uintptr_t)dst[i];
		name_dst(&names, &tally, (uintptr_t)dst[i]);
	}
	uint32_t used = group_up(&groups, &names, &tally, false);

	for (uint32_t i = 1; i <= used; i++)
		had += dst_get(&groups.group[i], skb, n);
	dsts_put(&old, &old_tally);
	return had;
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
	struct tally old_tally = { 0, 0, 0 }, tally = { 0, 0, 0 };
	struct names old, names;
	struct groups groups;

	for (uint32_t i = 0; i < n; i++) {
		owner_drop(skb[i], &old, &old_tally);
		skb[i]->owner = (uintptr_t)sk[i] | DSTREF_SKB_TRANSMIT;
		skb[i]->charge = skb[i]->truesize;
		name_owner(&names, &tally, skb[i]->owner, skb[i]->charge);
	}
	uint32_t used = group_up(&groups, &names, &tally, true);

	/* The new before the old: it may be all that pins the sock. */
	for (uint32_t i = 1; i <= used; i++)
		owner_get(&groups.group[i], skb, n);
	owners_put(&old, &old_tally);
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
