/* SPDX-License-Identifier: MIT */
/**
 * DOC: stage - a namespace, and packets that go from one thread to another
 *
 * What the experiments pairs and wmem, and in part layout, stand on. Objects
 * of the library live in a namespace of the qsbr flavour: an online thread is
 * always in a reader, as a packet path is, at no cost.
 *
 * A lane is a ring between one thread that sends and one that takes. Both work
 * in bursts, as poll-mode drivers do: what the lane itself costs (its two
 * indices, which travel between the caches) is paid once a burst, and what
 * an experiment counts for a packet is paid for each. A packet has a line of
 * its own, which the taker reads, in every variant: floors included.
 *
 * Who has nothing to do looks again for about as long as a switch to another
 * thread takes, and then lets others run. With a CPU for each thread nobody
 * is there to run, and the call is short. With fewer CPUs than threads the
 * other end of the lane may be the one that waits for this CPU; it then works
 * off all that the lane holds, so a switch is paid for up to LANE packets.
 *
 * Pairs: the sender fills slots and stores posted with release (R1), the taker
 * loads it with acquire (A1) and sees them. The taker is done with slots and
 * stores done with release (R2), the sender loads it with acquire (A2) and
 * fills them again. stop is stored after the last R1 with release (R3); the
 * taker loads it with acquire (A3) before posted, so when it finds stop and
 * then nothing posted, there was nothing more.
 */
#ifndef STAGE_H
#define STAGE_H

#include "../support/bench.h"

#include <dstref/dstref.h>

#include <sched.h>
#include <time.h>
#include <urcu/arch.h>
#include <urcu/urcu-qsbr.h>

#define APART 128 /* two lines: neighbours are fetched in pairs */
#define LANE 256 /* packets; drivers have 256 to 1024 */
#define BURST 32 /* packets that are posted at once */
#define BUDGET 64 /* packets that are taken at once, at most */
#define TRUESIZE 768 /* bytes that Linux charges for a small packet */
#define LOOKS 32 /* at an empty or a full lane, before others may run */

struct stage_packet {
	_Alignas(BENCH_LINE) struct dstref_skb skb;
};

struct stage_lane {
	_Alignas(APART) uint32_t posted; /* by the sender */
	bool stop;
	_Alignas(APART) uint32_t done; /* by the taker */
	_Alignas(APART) struct stage_packet packet[LANE];
};

/* For all that a packet goes through: a variant must not pay for a call that
 * another does not. */
#define STAGE_INLINE static inline __attribute__((always_inline))

/* What is done to a packet that is sent, the number-th; at the other end. */
typedef void (*stage_send_fn)(void *state, struct dstref_skb *skb,
			      uint32_t number, uint64_t now_ns);
typedef void (*stage_take_fn)(void *state, struct dstref_skb *skb);

static inline int stage_open(struct dstref_net **net)
{
	const struct dstref_net_attr attr = { .flavour = &urcu_qsbr_flavor };

	return dstref_net_create(net, &attr);
}

/* False when something is left, as was reported then: its memory must stay. */
static inline bool stage_close(struct dstref_net *net)
{
	const int64_t long_enough_ns = 5000000000;

	return !dstref_net_barrier(net, long_enough_ns) &&
	       !dstref_net_destroy(net);
}

static inline void stage_idle(unsigned int *looks)
{
	urcu_qsbr_quiescent_state();
	if (++*looks % LOOKS)
		caa_cpu_relax();
	else
		sched_yield();
}

/* Once a burst, in all variants, as a poll-mode stack does. */
static inline uint64_t stage_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Packets sent: a burst, or none where there is no room for one. */
STAGE_INLINE uint32_t stage_send(struct stage_lane *lane, uint32_t head,
				 void *state, stage_send_fn send)
{
	uint64_t now = stage_now();

	/* A2, with R2 in stage_take(). */
	if (LANE - (head - __atomic_load_n(&lane->done, __ATOMIC_ACQUIRE)) <
	    BURST)
		return 0;
	for (uint32_t i = head; i != head + BURST; i++) {
		struct dstref_skb *skb = &lane->packet[i % LANE].skb;

		dstref_skb_init(skb, TRUESIZE);
		send(state, skb, i, now);
		__asm__ volatile("" ::: "memory");
	}
	/* R1, with A1 in stage_take(). */
	__atomic_store_n(&lane->posted, head + BURST, __ATOMIC_RELEASE);
	return BURST;
}

/* Packets taken, the first of them the number-th. */
STAGE_INLINE uint32_t stage_take(struct stage_lane *lane, uint32_t number,
				 void *state, stage_take_fn take)
{
	/* A1, with R1 in stage_send(). */
	uint32_t n = __atomic_load_n(&lane->posted, __ATOMIC_ACQUIRE) - number;

	n = n < BUDGET ? n : BUDGET;
	for (uint32_t i = number; i != number + n; i++) {
		struct dstref_skb *skb = &lane->packet[i % LANE].skb;

		BENCH_KEEP(skb->truesize);
		take(state, skb);
		__asm__ volatile("" ::: "memory");
	}
	/* R2, with A2 in stage_send(). */
	if (n)
		__atomic_store_n(&lane->done, number + n, __ATOMIC_RELEASE);
	return n;
}

/*
 * A thread that sends into @out, or takes from @in, or both, until the time is
 * up and the lane that it takes from is empty. Counts what it sends. The two
 * may be the same lane.
 */
STAGE_INLINE void stage_run(struct bench_self *self, struct stage_lane *out,
			    struct stage_lane *in, stage_send_fn send,
			    stage_take_fn take)
{
	uint32_t head = 0, tail = 0;
	unsigned int looks = 0;

	while (out || in) {
		uint32_t n = 0, taken;

		if (out && bench_over(self)) {
			/* R3, with A3 below. */
			__atomic_store_n(&out->stop, true, __ATOMIC_RELEASE);
			out = NULL;
		} else if (out) {
			n = stage_send(out, head, self->state, send);
			head += n;
			self->ops += n;
		}
		if (in) {
			/* A3, with R3 above. */
			bool last =
				__atomic_load_n(&in->stop, __ATOMIC_ACQUIRE);

			taken = stage_take(in, tail, self->state, take);
			tail += taken;
			n += taken;
			if (last && !taken)
				in = NULL;
		}
		if (n) {
			looks = 0;
			urcu_qsbr_quiescent_state();
		} else {
			stage_idle(&looks);
		}
	}
}

#endif
