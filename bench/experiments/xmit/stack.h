/* SPDX-License-Identifier: MIT */
/**
 * DOC: stack - two cores of a network stack, in little
 *
 * What the tables `throughput` and `roundtrip` run on: an application's core
 * that sends by a route and a sock, a transmit ring, and a device whose
 * completions run on another core.
 *
 *	thread 0: find the route, charge the sock, output ---> ring
 *	thread 1:        let go of what the packet still pins <--- ring
 *
 * All objects are the library's own, in a namespace of the qsbr flavour: an
 * online thread is always in a reader, as a packet path is, at no cost.
 *
 * Ordering: the application fills slots and stores posted with release (R1),
 * the device loads it with acquire (A1) and sees them. The device is done with
 * slots and stores done with release (R2), the application loads it with
 * acquire (A2), and writes to them afterwards. R3 of answers, with A3 in
 * roundtrip.c: the answer's packet.
 */
#ifndef XMIT_STACK_H
#define XMIT_STACK_H

#include "bench.h"

#include <dstref/dstref.h>
#include <string.h>
#include <time.h>
#include <urcu/arch.h>

#define RING 256 /* packets; drivers have 256 to 1024 */
#define PAYLOAD 40 /* bytes, as published */
#define TRUESIZE 768 /* bytes that Linux charges for a packet that small */
#define APART 128 /* two lines: neighbours are fetched in pairs */

/* A sender that asked would always find room: the ring is full before. */
_Static_assert(RING *TRUESIZE < DSTREF_SOCK_SNDBUF,
	       "a sender would sleep: make the ring smaller");

/* What is counted for a packet instead of route and sock. */
enum floor {
	FLOOR_NONE, /* route and sock */
	FLOOR_RING, /* nothing */
	FLOOR_OWN, /* a locked addition on each side, to its own word */
	FLOOR_SHARED, /* to one word */
};

/* When a packet lets go of its route and of its sock. */
struct policy {
	enum floor floor;
	bool borrow; /* the route; else it is held */
	bool one_queue; /* a completion wakes who sleeps for input */
	unsigned int flags; /* of dstref_skb_xmit_release() */
};

struct packet {
	_Alignas(BENCH_LINE) struct dstref_skb skb;
	unsigned char payload[PAYLOAD];
};

struct stack {
	const struct policy *policy;
	struct dstref_net *net;
	struct dstref_dst_slot route;
	_Alignas(APART) struct dstref_dst dst;
	_Alignas(APART) struct dstref_sock sk;
	_Alignas(APART) uint32_t head; /* the application's alone */
	_Alignas(APART) uint32_t posted; /* by the application */
	bool stop; /* nothing will follow */
	_Alignas(APART) uint32_t done; /* by the device */
	_Alignas(APART) uint32_t answers; /* by the device */
	struct packet answer;
	struct {
		_Alignas(APART) uint64_t n;
	} word[2]; /* of the floors, by side */
	_Alignas(APART) struct packet ring[RING];
};

/* setup and teardown of a variant, whose context is its policy. */
int stack_setup(const struct bench_variant *variant, unsigned int threads,
		void **state);
void stack_teardown(void *state);

/* Called while there is nothing to do. */
void stack_idle(unsigned int *turns);

/* Threads that were woken, for whatever reason. */
uint64_t stack_wakeups(const struct stack *st);

static inline uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void stack_floor(struct stack *st, int side)
{
	enum floor floor = st->policy->floor;

	if (floor == FLOOR_RING)
		return;
	__atomic_fetch_add(&st->word[floor == FLOOR_OWN ? side : 0].n, 1,
			   __ATOMIC_RELAXED);
}

/*
 * The application sends a packet: asks whether it may, finds the route, has
 * its sock pay, and hands it to the device, which stack_output() is.
 */
static inline void stack_send(struct stack *st, uint64_t now)
{
	const struct policy *policy = st->policy;
	struct packet *pkt = &st->ring[st->head % RING];
	struct dstref_dst *dst;

	dstref_skb_init(&pkt->skb, TRUESIZE);
	memset(pkt->payload, (int)st->head, PAYLOAD);
	if (policy->floor) {
		stack_floor(st, 0);
		st->head++;
		return;
	}
	BENCH_KEEP(dstref_sock_writeable(&st->sk));
	if (policy->borrow) {
		dst = dstref_dst_slot_borrow(&st->route);
		dstref_skb_dst_set_noref(&pkt->skb, dst);
	} else {
		dst = dstref_dst_slot_hold(&st->route);
		dstref_skb_dst_set(&pkt->skb, dst);
	}
	dstref_dst_use_noref(dst, now);
	dstref_skb_set_owner_w(&pkt->skb, &st->sk);
	if (!dstref_dst_output(dst, pkt))
		st->head++;
}

/* The device has sent a packet. */
static inline void stack_complete(struct stack *st, uint32_t slot)
{
	struct packet *pkt = &st->ring[slot % RING];

	BENCH_KEEP(pkt->skb.truesize);
	if (st->policy->floor)
		stack_floor(st, 1);
	else
		dstref_skb_free(&pkt->skb);
}

static inline void stack_post(struct stack *st)
{
	__atomic_store_n(&st->posted, st->head, __ATOMIC_RELEASE); /* R1 */
}

/* Packets that wait for completion, from the one numbered @done on. */
static inline uint32_t stack_posted(const struct stack *st, uint32_t done)
{
	return __atomic_load_n(&st->posted, __ATOMIC_ACQUIRE) - done; /* A1 */
}

static inline void stack_done(struct stack *st, uint32_t done)
{
	__atomic_store_n(&st->done, done, __ATOMIC_RELEASE); /* R2 */
}

/* Slots that may be filled. */
static inline uint32_t stack_room(const struct stack *st)
{
	return RING - (st->head -
		       __atomic_load_n(&st->done, __ATOMIC_ACQUIRE)); /* A2 */
}

/* The application ends; the device completes what was posted, then ends. */
static inline void stack_stop(struct stack *st)
{
	__atomic_store_n(&st->stop, true, __ATOMIC_RELEASE);
}

static inline bool stack_stopped(const struct stack *st)
{
	return __atomic_load_n(&st->stop, __ATOMIC_ACQUIRE);
}

/* A variant whose context is a policy, given as initialisers. */
#define XMIT_ROW(name_, kind_, what_, work_, ...)                 \
	{                                                         \
		.name = name_, .kind = kind_, .what = what_,      \
		.setup = stack_setup, .work = work_,              \
		.teardown = stack_teardown,                       \
		.context = &(const struct policy){ __VA_ARGS__ }, \
	}

#define XMIT_ROUNDTRIP 6 /* variants */
#define XMIT_GATEWAY 6

/* roundtrip.c, and its counters. */
enum { XMIT_WAKEUPS, XMIT_CPU_NS, XMIT_COMPLETION_NS, XMIT_TIMEOUTS };
extern const struct bench_variant xmit_roundtrip[XMIT_ROUNDTRIP];

/* gateway.c */
extern const struct bench_variant xmit_gateway[XMIT_GATEWAY];
int xmit_gateway_prepare(const struct bench_table *table, const char **why);

#endif
