/* SPDX-License-Identifier: MIT */
/**
 * DOC: gateway - what the parts of the gateway know of each other
 *
 * main.c tells the whole story; each part has a file:
 *
 *	options.c  command line
 *	tun.c      namespaces, TUN devices, the kernel sockets at both ends
 *	traffic.c  threads that send and receive through those sockets
 *	table.c    routes in slots, flows with their socks
 *	worker.c   read, find, charge, hand to the device: the packet path
 *	nic.c      the device: a transmit ring for each worker, one completion
 *	control.c  the time, and new routes under traffic
 *	bare.c     the floor: read and write, nothing else
 *	stats.c    totals, verdict, summary
 *	json.c     the same as a file
 *
 * Addresses: 10.1.0.1 sends from namespace A, everything in 10.2.0.0/16 is
 * local to namespace B. A flow is one destination address, a route is sixteen
 * of them.
 */
#ifndef GATEWAY_H
#define GATEWAY_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* unshare(), sendmmsg() */
#endif

#include "bell.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <dstref/dstref.h>

#define PROGRAM "dstref-gateway"

#define WORKERS_MAX 16
#define FLOWS_MAX 1024
#define PACKET_MIN 60 /* bytes, IPv4 header included */
#define PACKET_MAX 1500
#define RING_SIZE 256 /* packets; a power of two */
#define BURST 64 /* packets between two quiescent states */

#define PORT 9
#define SOURCE_ADDR UINT32_C(0x0a010001) /* 10.1.0.1 */
#define SINK_ADDR UINT32_C(0x0a010002) /* 10.1.0.2 */
#define SINK_NET UINT32_C(0x0a020000) /* 10.2.0.0/16 */
#define SINK_MASK UINT32_C(0xffff0000)
#define STRAYS 3 /* kinds of packets that must not come through */
#define FLOWS_PER_ROUTE 16
#define ROUTES_MAX (FLOWS_MAX / FLOWS_PER_ROUTE)

struct options {
	uint32_t workers;
	uint32_t seconds;
	uint32_t churn; /* routes replaced per second */
	uint32_t flows;
	uint32_t size; /* bytes of a packet */
	uint32_t sndbuf; /* bytes that a flow may have in flight */
	bool completion; /* release the dst at completion, not at transmit */
	bool noref; /* borrow routes */
	bool early; /* uncharge at transmit */
	bool wait; /* sleep for room where the sndbuf is full */
	bool strays; /* send some packets that must not come through */
	bool bare;
	const char *json;
};

/*
 * Why a packet was dropped: X(NAME, "key", "in words"). A packet that was
 * read is written or counted under one of these, nothing else.
 */
#define DROPS(X)                                                              \
	X(NONE, "none", "not dropped")                                        \
	X(MALFORMED, "malformed", "not IPv4, or a damaged header")            \
	X(NOT_UDP, "not_udp", "IPv4, but not UDP or a later fragment of one") \
	X(NO_FLOW, "no_flow", "no flow has this destination")                 \
	X(BACK_PRESSURE, "back_pressure", "the flow's sndbuf was full")       \
	X(NO_ROUTE, "no_route", "no route to this destination")               \
	X(TTL, "ttl", "time to live ran out")                                 \
	X(DEAD_ROUTE, "dead_route", "the route died under the packet")        \
	X(WRITE_ERROR, "write_error", "the device refused it")

enum drop {
#define DROP_ENUM(name, key, words) DROP_##name,
	DROPS(DROP_ENUM)
#undef DROP_ENUM
		DROP_COUNT
};

/*
 * Counters of one thread. It alone writes them, others may look at any time;
 * so a plain addition does, made of a relaxed load and a relaxed store.
 */
struct counters {
	DSTREF_LINE_START DSTREF_ATOMIC(uint64_t) in; /* read at tun0 */
	DSTREF_ATOMIC(uint64_t) out; /* written at tun1 */
	DSTREF_ATOMIC(uint64_t) drop[DROP_COUNT];
	DSTREF_ATOMIC(uint64_t) ring_full; /* times a worker waited */
};

static inline void counter_add(DSTREF_ATOMIC(uint64_t) * counter, uint64_t n)
{
	dstref_store_relaxed(counter, dstref_load_relaxed(counter) + n);
}

static inline uint64_t counter_read(const DSTREF_ATOMIC(uint64_t) * counter)
{
	return dstref_load_relaxed(counter);
}

/* A packet: what it pins, and its bytes. One slot of a transmit ring. */
struct packet {
	DSTREF_LINE_START struct dstref_skb skb;
	struct ring *ring;
	uint32_t len;
	unsigned char data[PACKET_MAX];
};

/*
 * The transmit ring between a worker and the device, as network cards have
 * it: the packets are its slots. [done, posted) is the device's, the rest the
 * worker's. Free running numbers; slot n is n % RING_SIZE.
 */
struct ring {
	/* The worker's. */
	DSTREF_LINE_START struct packet *slots;
	uint32_t head; /* filled, some of it not yet posted */
	uint32_t done_seen; /* the last look at done */
	DSTREF_LINE_START DSTREF_ATOMIC(uint32_t) posted; /* worker writes */
	DSTREF_LINE_START DSTREF_ATOMIC(uint32_t) done; /* device writes */
	struct bell room; /* the worker waits for done to move */
};

/* The outgoing device; dst->dev of every route. */
struct nic {
	struct dstref_net *net;
	int fd; /* tun1 */
	unsigned int flags; /* of dstref_skb_xmit_release() */
	struct ring *rings; /* one for each worker */
	uint32_t ring_count;
	struct bell doorbell;
	struct counters counters;
	DSTREF_ATOMIC(bool) stop;
	pthread_t thread;
};

/* A route: the destinations of one slot of the table. */
struct route {
	struct dstref_dst dst;
};

/* A flow: a destination address, and the sock that pays for its packets. */
struct flow {
	struct dstref_sock sk;
	uint32_t addr; /* host order */
};

struct tables {
	struct dstref_net *net;
	struct nic *nic;
	struct dstref_dst_slot *routes;
	DSTREF_ATOMIC(struct flow *) * flows;
	uint32_t route_count;
	uint32_t flow_count;
};

struct worker {
	struct gateway *gw;
	int fd; /* its queue of tun0 */
	struct ring *ring;
	pthread_t thread;
	struct counters counters;
};

/* The two ends and the devices between them. */
struct wires {
	int tun0[WORKERS_MAX]; /* one queue for each worker */
	int tun1;
	int *senders; /* a connected socket for each flow, then the strays */
	int receiver;
};

struct traffic {
	struct gateway *gw;
	pthread_t sender, receiver;
	DSTREF_ATOMIC(bool) stop_sender, stop_receiver;
	DSTREF_LINE_START DSTREF_ATOMIC(uint64_t) sent;
	DSTREF_LINE_START DSTREF_ATOMIC(uint64_t) received;
	DSTREF_ATOMIC(uint64_t) damaged; /* received with other contents */
};

struct control {
	struct gateway *gw;
	pthread_t thread;
	DSTREF_ATOMIC(bool) stop;
	DSTREF_ATOMIC(uint64_t) replaced; /* routes */
	DSTREF_ATOMIC(uint64_t) failed; /* routes that could not be made */
};

struct gateway {
	struct options opt;
	struct wires wires;
	struct tables tables;
	struct nic nic;
	struct worker *workers; /* in bare mode one, without a ring */
	struct traffic traffic;
	struct control control;
	DSTREF_ATOMIC(bool) stop_workers;
};

/* Everything that the summary tells, as plain numbers. */
struct totals {
	uint64_t in, out, drop[DROP_COUNT], dropped, ring_full;
	uint64_t sent, received, damaged;
	uint64_t replaced, failed;
	uint64_t accounts; /* socks at one unit before they were let go */
	uint64_t dst_alive, sock_alive, callbacks;
	uint64_t sleeps_room, wakeups_room, sleeps_data, wakeups_data;
	uint64_t promotions, demotions, cells_refused;
	uint64_t reports;
	bool busy; /* the namespace would not be destroyed */
	double seconds; /* that packets were sent */
	double mpps; /* written in that time */
};

/* options.c: 0, 1 for --help, or -1 after a line on stderr. */
int options_parse(struct options *opt, int argc, char **argv);
const char *options_policy(const struct options *opt, char *buf, size_t size);

/* tun.c: 0, or -1 after a line on stderr. */
int wires_open(struct wires *wires, const struct options *opt);
void wires_close(struct wires *wires, const struct options *opt);

/* traffic.c */
int traffic_start(struct gateway *gw);
void traffic_stop_sender(struct traffic *traffic);
void traffic_stop_receiver(struct traffic *traffic);

/* table.c */
int tables_open(struct tables *tables, const struct options *opt,
		struct nic *nic);
struct route *route_new(struct tables *tables);
struct flow *flow_find(const struct tables *tables, uint32_t addr);
struct dstref_dst_slot *route_find(const struct tables *tables, uint32_t addr);
uint64_t tables_accounts(const struct tables *tables);
void tables_clear(struct tables *tables);
void tables_free(struct tables *tables);

/* table.c: this thread gets cells, if there are any to be had. */
void tables_attach(struct dstref_net *net);

/* worker.c, bare.c */
int workers_start(struct gateway *gw);
void workers_stop(struct gateway *gw);
void tun_wait(int fd, uint32_t last_burst);
void *bare_main(void *arg);

/* nic.c */
int nic_open(struct nic *nic, const struct options *opt, int fd);
int nic_start(struct nic *nic);
void nic_stop(struct nic *nic);
void nic_free(struct nic *nic);
int nic_output(struct dstref_dst *dst, void *arg);
struct packet *ring_slot(struct ring *ring);
void ring_post(struct nic *nic, struct ring *ring);
void ring_wait(struct ring *ring);

/* control.c */
int control_start(struct gateway *gw);
void control_stop(struct control *control);

/* stats.c */
uint64_t now_ns(void);
void totals_read(struct totals *totals, const struct gateway *gw);
void totals_net(struct totals *totals, const struct dstref_net *net);
const char *totals_verdict(const struct totals *totals,
			   const struct options *opt);
void start_print(const struct options *opt);
void progress_print(const struct gateway *gw, struct totals *last,
		    double seconds);
void summary_print(const struct totals *totals, const struct options *opt,
		   const char *verdict);

/* json.c: the file is made before the run and named at its end; "-" is standard
 * output, and then what is printed goes to standard error. */
struct json_file;
int json_file_open(struct json_file **file, const char *path);
int json_file_write(struct json_file *file, const struct totals *totals,
		    const struct options *opt, const char *verdict);
void json_file_close(struct json_file *file);

#endif
