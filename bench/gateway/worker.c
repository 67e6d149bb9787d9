/* SPDX-License-Identifier: MIT */
/*
 * The packet path: read a burst from tun0, and for each packet find its flow
 * and its route, charge the flow's sock, hand it to the device.
 *
 * Readers. The flavour is QSBR. A worker is a loop over bursts with nothing
 * in flight between two of them, so there is a natural place to say
 * "quiescent", once per burst, and a reader costs nothing at all: an online
 * thread is always in one. memb would want a lock and an unlock around each
 * burst, mostly for the right to sleep inside; here every sleep (for packets,
 * for room in the ring, for room in the sndbuf) is bracketed by offline and
 * online instead. What QSBR asks in return: a thread that is online must keep
 * moving, or nothing is ever freed.
 *
 * References. A packet either borrows its route (--noref: no write to a shared
 * line) or holds it. It leaves the reader when it is posted to the device, so
 * nic_output() lets go of the route before that, or, where the device keeps
 * it until completion, turns a borrowed one into a held one. The flow is
 * not held for a packet: the charge pins its sock. But a charge needs a
 * reference to rely on while it is made, be it somebody else's. Here that is
 * the table's, which stays until the workers have ended (table.c). A stack
 * whose flows come and go has no such promise: between its lookup and its
 * charge the last reference may go. It must dstref_sock_try_hold() the sock in
 * the reader that found it, treat a failure as "no flow", charge, and only
 * then dstref_sock_put() it.
 *
 * Back pressure. A sock that is not writeable gets no packet: it is dropped
 * and counted, as a gateway does that may not stop for one flow. With
 * --full=wait the worker sleeps until the flow has room, for at most
 * ROOM_WAIT_NS. That leaves the reader, so what was found in it is gone: the
 * flow needs a reference meanwhile, and the route is looked up afterwards.
 * The reference ends with the wait; that the flow is charged after it rests on
 * the table's, as above. Where flows come and go, keep it until the charge.
 *
 * Full ring. Slots of the ring are the packets' memory, so a worker that finds
 * none free stops reading; the queue before it is then the kernel's.
 *
 * What a router owes: header checked, time to live decremented and the sum
 * corrected (RFC 1812). No ICMP is sent.
 */
#include "gateway.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <urcu/urcu-qsbr.h>

#define ROOM_WAIT_NS 1000000
#define IP_HEADER 20
#define UDP_HEADER 8
#define PROTOCOL_UDP 17

static uint16_t get16(const unsigned char *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t get32(const unsigned char *p)
{
	return (uint32_t)get16(p) << 16 | get16(p + 2);
}

/* The sum over a header is all ones when its checksum is right. */
static bool header_sum_ok(const unsigned char *ip, unsigned int bytes)
{
	uint32_t sum = 0;

	for (unsigned int i = 0; i < bytes; i += 2)
		sum += get16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

/* Sets pkt->len to what the header says. */
static enum drop parse(struct packet *pkt)
{
	const unsigned char *ip = pkt->data;
	uint32_t header, total;

	if (pkt->len < IP_HEADER || ip[0] >> 4 != 4)
		return DROP_MALFORMED;
	header = (ip[0] & 15u) * 4;
	total = get16(ip + 2);
	if (header < IP_HEADER || total < header || total > pkt->len ||
	    !header_sum_ok(ip, header))
		return DROP_MALFORMED;
	if (ip[9] != PROTOCOL_UDP || get16(ip + 6) & 0x1fff ||
	    total < header + UDP_HEADER)
		return DROP_NOT_UDP;
	pkt->len = total;
	return DROP_NONE;
}

/* One less to live; the sum grows by the same in its place (RFC 1141). */
static void decrement_ttl(unsigned char *ip)
{
	uint32_t sum = get16(ip + 10) + 0x100u;

	sum += sum >= 0xffff;
	ip[8]--;
	ip[10] = (unsigned char)(sum >> 8);
	ip[11] = (unsigned char)sum;
}

/* Leaves the reader. True when the flow has room now. */
static bool wait_room(struct worker *w, struct dstref_sock *sk)
{
	bool room;

	if (!w->gw->opt.wait || !dstref_sock_try_hold(sk))
		return false;
	/* What we wait for may be in our own burst: the device must see it. */
	ring_post(&w->gw->nic, w->ring);
	room = !dstref_sock_wait_writable(sk, ROOM_WAIT_NS);
	dstref_sock_put(sk);
	return room;
}

/* Find the route and give it to the packet, borrowed or held. */
static struct dstref_dst *find_route(struct worker *w, struct packet *pkt,
				     uint32_t addr, uint64_t now)
{
	const struct dstref_dst_slot *slot = route_find(&w->gw->tables, addr);
	struct dstref_dst *dst;

	if (!slot)
		return NULL;
	if (w->gw->opt.noref) {
		dst = dstref_dst_slot_borrow(slot);
		dstref_skb_dst_set_noref(&pkt->skb, dst);
	} else {
		dst = dstref_dst_slot_hold(slot);
		dstref_skb_dst_set(&pkt->skb, dst);
	}
	if (dst)
		dstref_dst_use_noref(dst, now);
	return dst;
}

static enum drop forward(struct worker *w, struct packet *pkt, uint64_t now)
{
	enum drop drop = parse(pkt);
	struct dstref_dst *dst;
	struct flow *flow;
	uint32_t addr;

	if (drop != DROP_NONE)
		return drop;
	addr = get32(pkt->data + 16);
	flow = flow_find(&w->gw->tables, addr);
	if (!flow)
		return DROP_NO_FLOW;
	if (!dstref_sock_writeable(&flow->sk) && !wait_room(w, &flow->sk))
		return DROP_BACK_PRESSURE;
	dst = find_route(w, pkt, addr, now);
	if (!dst)
		return DROP_NO_ROUTE;
	if (pkt->data[8] <= 1)
		return DROP_TTL;
	decrement_ttl(pkt->data);
	dstref_skb_set_owner_w(&pkt->skb, &flow->sk);
	return dstref_dst_output(dst, pkt) < 0 ? DROP_DEAD_ROUTE : DROP_NONE;
}

/* Packets read; fewer than BURST when no more are there or the ring is full. */
static uint32_t burst(struct worker *w, uint64_t now)
{
	struct packet *pkt;
	uint32_t n = 0;

	while (n < BURST && (pkt = ring_slot(w->ring))) {
		ssize_t len = read(w->fd, pkt->data, sizeof(pkt->data));
		enum drop drop;

		if (len < 0)
			break;
		n++;
		counter_add(&w->counters.in, 1);
		pkt->len = (uint32_t)len;
		dstref_skb_init(&pkt->skb, sizeof(*pkt));
		drop = forward(w, pkt, now);
		if (dstref_unlikely(drop != DROP_NONE)) {
			counter_add(&w->counters.drop[drop], 1);
			dstref_skb_free(&pkt->skb);
		}
	}
	ring_post(&w->gw->nic, w->ring);
	return n;
}

/* The same clock as control.c ticks by; coarse is fine, once per burst. */
static uint64_t now_coarse(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Out of the reader: asleep until there is room, or packets. */
static void wait_work(struct worker *w, uint32_t last_burst)
{
	urcu_qsbr_thread_offline();
	if (!ring_slot(w->ring)) {
		counter_add(&w->counters.ring_full, 1);
		ring_wait(w->ring);
	} else {
		tun_wait(w->fd, last_burst);
	}
	urcu_qsbr_thread_online();
}

/*
 * Ends when told to and nothing is left to read. The sender has stopped
 * before, so that comes soon.
 */
static void *worker_main(void *arg)
{
	struct worker *w = arg;

	pthread_setname_np(pthread_self(), "worker");
	urcu_qsbr_register_thread();
	tables_attach(w->gw->tables.net);
	for (;;) {
		uint32_t n = burst(w, now_coarse());

		urcu_qsbr_quiescent_state();
		if (n == BURST)
			continue;
		if (!n && ring_slot(w->ring) &&
		    dstref_load_relaxed(&w->gw->stop_workers))
			break;
		wait_work(w, n);
	}
	urcu_qsbr_unregister_thread();
	return NULL;
}

int workers_start(struct gateway *gw)
{
	void *(*run)(void *) = gw->opt.bare ? bare_main : worker_main;

	for (uint32_t i = 0; i < gw->opt.workers; i++) {
		struct worker *w = &gw->workers[i];

		w->gw = gw;
		w->fd = gw->wires.tun0[i];
		w->ring = gw->opt.bare ? NULL : &gw->nic.rings[i];
		if (pthread_create(&w->thread, NULL, run, w)) {
			gw->opt.workers = i; /* those that there are */
			workers_stop(gw);
			return -1;
		}
	}
	return 0;
}

void workers_stop(struct gateway *gw)
{
	dstref_store_relaxed(&gw->stop_workers, true);
	for (uint32_t i = 0; i < gw->opt.workers; i++)
		pthread_join(gw->workers[i].thread, NULL);
}
