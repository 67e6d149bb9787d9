/* SPDX-License-Identifier: MIT */
/*
 * The outgoing device: transmit rings that workers post to, and one thread
 * that completes, like the interrupt of a network card. It writes a packet to
 * tun1 and only then frees it, mostly on another core than it came from.
 *
 * The two release policies differ in what is left of the packet here:
 *
 *	xmit            nic_output() let go of the route; completion uncharges
 *	xmit, early     nic_output() let go of both; nothing is left to do
 *	completion      both are still there, and are let go of here
 *
 * The ring is one in the strict sense: one worker fills, one thread empties.
 * Its slots are the packets, so a packet that was completed is a free slot.
 *
 * Ordering. The worker fills slots and then stores posted with release (R1);
 * the device loads it with acquire (A1) and sees their contents. The device
 * is done with slots and then stores done with release (R2); the worker loads
 * it with acquire (A2), and his writes to a slot come after the device's last
 * read of it. Without the second pair a packet could be overwritten while it
 * is sent. The numbers run freely through 2^32; the ring is a power of two.
 *
 * The thread is registered with RCU because it frees packets, which may hold
 * the last reference to a route. It is in no reader while it sleeps.
 */
#include "gateway.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <urcu/urcu-qsbr.h>

#define SLEEP_US 10000 /* at most, then look whether it is time to stop */

void bell_wake(struct bell *bell)
{
	(void)dstref_fetch_and_relaxed(&bell->word, ~BELL_SLEEPER);
	syscall(SYS_futex, &bell->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void bell_wait(struct bell *bell, uint32_t token, uint32_t timeout_us)
{
	struct timespec t = { timeout_us / 1000000,
			      timeout_us % 1000000 * 1000 };
	uint32_t old = dstref_fetch_or_acquire(&bell->word, BELL_SLEEPER);

	if ((old & ~BELL_SLEEPER) == token)
		syscall(SYS_futex, &bell->word, FUTEX_WAIT_PRIVATE,
			token | BELL_SLEEPER, &t, NULL, 0);
	(void)dstref_fetch_and_relaxed(&bell->word, ~BELL_SLEEPER);
}

/* The next free slot, the same one until nic_output() took it; or NULL. */
struct packet *ring_slot(struct ring *ring)
{
	struct packet *pkt = &ring->slots[ring->head % RING_SIZE];

	if (ring->head - ring->done_seen < RING_SIZE)
		return pkt;
	ring->done_seen = dstref_load_acquire(&ring->done); /* A2 */
	return ring->head - ring->done_seen < RING_SIZE ? pkt : NULL;
}

/* Show the device what was filled. Nothing new: nothing is done. */
void ring_post(struct nic *nic, struct ring *ring)
{
	if (dstref_load_relaxed(&ring->posted) == ring->head)
		return;
	dstref_store_release(&ring->posted, ring->head); /* R1 */
	bell_ring(&nic->doorbell);
}

/* Outside a reader: sleep until a slot is free, or a while. */
void ring_wait(struct ring *ring)
{
	uint32_t token = bell_token(&ring->room);

	if (!ring_slot(ring))
		bell_wait(&ring->room, token, SLEEP_US);
}

/*
 * dst->output: take the packet, which is the ring's next slot, once it has let
 * go of what must not travel with it. A route that died as it was to be kept
 * leaves the packet with the caller.
 */
int nic_output(struct dstref_dst *dst, void *arg)
{
	const struct nic *nic = dst->dev;
	struct packet *pkt = arg;

	if (!dstref_skb_xmit_release(&pkt->skb, nic->flags))
		return dstref_dst_discard(dst, pkt);
	pkt->ring->head++;
	return 0;
}

static void complete(struct nic *nic, struct packet *pkt)
{
	if (write(nic->fd, pkt->data, pkt->len) == (ssize_t)pkt->len)
		counter_add(&nic->counters.out, 1);
	else
		counter_add(&nic->counters.drop[DROP_WRITE_ERROR], 1);
}

/* A burst at most, so that the worker is not kept waiting for all of it. */
static uint32_t ring_complete(struct nic *nic, struct ring *ring)
{
	uint32_t done = dstref_load_relaxed(&ring->done);
	uint32_t n = dstref_load_acquire(&ring->posted) - done; /* A1 */
	struct dstref_skb *skb[BURST];

	if (n > BURST)
		n = BURST;
	for (uint32_t i = 0; i < n; i++) {
		struct packet *pkt = &ring->slots[(done + i) % RING_SIZE];

		skb[i] = &pkt->skb;
		complete(nic, pkt);
	}
	if (n) {
		dstref_skb_free_bulk(skb, n);
		dstref_store_release(&ring->done, done + n); /* R2 */
		bell_ring(&ring->room);
	}
	return n;
}

static void *nic_main(void *arg)
{
	struct nic *nic = arg;
	bool stop = false;
	uint32_t n = 0;

	pthread_setname_np(pthread_self(), "device");
	urcu_qsbr_register_thread();
	tables_attach(nic->net);
	while (n > 0 || !stop) {
		uint32_t token = bell_token(&nic->doorbell);

		n = 0;
		stop = dstref_load_acquire(&nic->stop);
		for (uint32_t i = 0; i < nic->ring_count; i++)
			n += ring_complete(nic, &nic->rings[i]);
		urcu_qsbr_quiescent_state();
		if (n || stop)
			continue;
		urcu_qsbr_thread_offline();
		bell_wait(&nic->doorbell, token, SLEEP_US);
		urcu_qsbr_thread_online();
	}
	urcu_qsbr_unregister_thread();
	return NULL;
}

static int ring_open(struct ring *ring)
{
	ring->slots = aligned_alloc(DSTREF_LINE_SIZE,
				    RING_SIZE * sizeof(*ring->slots));
	if (!ring->slots)
		return -1;
	for (uint32_t i = 0; i < RING_SIZE; i++)
		ring->slots[i].ring = ring;
	return 0;
}

int nic_open(struct nic *nic, const struct options *opt, int fd)
{
	nic->fd = fd;
	if (opt->completion)
		nic->flags = DSTREF_SKB_KEEP_DST;
	else if (opt->early)
		nic->flags = DSTREF_SKB_EARLY;
	nic->rings = aligned_alloc(DSTREF_LINE_SIZE,
				   opt->workers * sizeof(*nic->rings));
	if (!nic->rings)
		return -1;
	for (; nic->ring_count < opt->workers; nic->ring_count++) {
		nic->rings[nic->ring_count] = (struct ring){ .slots = NULL };
		if (ring_open(&nic->rings[nic->ring_count]))
			return -1;
	}
	return 0;
}

int nic_start(struct nic *nic)
{
	return pthread_create(&nic->thread, NULL, nic_main, nic) ? -1 : 0;
}

/* After the workers: what they posted is still sent. */
void nic_stop(struct nic *nic)
{
	dstref_store_release(&nic->stop, true);
	bell_ring(&nic->doorbell);
	pthread_join(nic->thread, NULL);
}

void nic_free(struct nic *nic)
{
	for (uint32_t i = 0; i < nic->ring_count; i++)
		free(nic->rings[i].slots);
	free(nic->rings);
}
