/* SPDX-License-Identifier: MIT */
/*
 * wait_room - sleepers against completions, data_ready, close and a new sndbuf
 *
 * Goal: no wake-up is lost, and who is past a wait sees what was done before
 * the room or the data came. Method: the waits have no end, so a thread that is
 * not woken is one that can never go on; completions and data_ready write plain
 * words before, which the sleepers read. A sleeper has a reference, which he
 * puts afterwards beside the rest of the completion: a waker that still touches
 * the sock then races with its free.
 * Cut: each thread waits once; where two sleep for data, or beside two
 * completions, the reference stays to the end; waits with an end are not here,
 * for the explorer's time goes on only when nothing else does.
 */
#include "scene_sock.h"

#include <errno.h>

static struct dstref_sock *sock;
static struct dstref_skb skbs[2];
static int item; /* what data_ready tells of */
static int errs[EXPLORE_THREADS];
static bool closing; /* plain: what was done before the close */

/* Packets in flight, @sndbuf allowed, a reference for each of the sleepers. */
static void start(int packets, uint32_t sndbuf, int sleepers)
{
	scene_open();
	sock = scene_sock(sndbuf);
	for (int i = 0; i < packets; i++)
		scene_send(&skbs[i], sock);
	while (--sleepers)
		dstref_sock_hold_outside(sock);
}

/* Full with one packet. */
static void start_1(void)
{
	start(1, SCENE_BYTES, 1);
}

/* The same with a reference for the other thread. */
static void start_1_ref(void)
{
	start(1, SCENE_BYTES, 2);
}

/* Both packets must go before there is room. */
static void start_2(void)
{
	start(2, SCENE_BYTES, 1);
}

static void start_2_ref(void)
{
	start(2, SCENE_BYTES, 2);
}

/* One that goes leaves room, but less than half: no sleeper is woken for it. */
static void start_odd(void)
{
	start(2, SCENE_BYTES + SCENE_BYTES / 2, 1);
}

/* One that goes leaves half. */
static void start_half(void)
{
	start(2, 2 * SCENE_BYTES, 1);
}

static void room(struct dstref_sock *sk, void *data)
{
	(void)sk;
	(void)data;
}

static void start_callback(void)
{
	static const struct dstref_sock_space space = { room, NULL };

	start_1();
	explore_assert(!dstref_sock_set_write_space(sock, &space));
}

static void complete_0(void)
{
	scene_complete(&skbs[0]);
}

static void complete_1(void)
{
	scene_complete(&skbs[1]);
}

/* The first makes room: nothing is written any more that the sleeper reads. */
static void complete_both(void)
{
	complete_0();
	explore_read_lock();
	dstref_skb_free(&skbs[1]);
	explore_read_unlock();
}

static void complete_outside_0(void)
{
	scene_complete_outside(&skbs[0]);
}

/* The packet in flight shrinks, which makes the room; it ends after all. */
static void shrink(void)
{
	scene_sock_mark(sock);
	explore_read_lock();
	dstref_skb_set_truesize(&skbs[0], SCENE_BYTES / 4);
	explore_read_unlock();
}

/* The thread has written to the sock. */
static bool marked(unsigned int thread)
{
	return ((struct scene_sock *)sock)->mark[thread];
}

static void wait_room(void)
{
	errs[explore_self()] = dstref_sock_wait_writable(sock, -1);
}

/* What made the room was done by thread 1. */
static void wait_put(void)
{
	wait_room();
	explore_assert(!errs[0] && marked(1));
	scene_sock_put(sock);
}

/* What made the room was done by both. */
static void wait_both_put(void)
{
	wait_room();
	explore_assert(!errs[0] && marked(1) && marked(2));
	scene_sock_put(sock);
}

/* By either; a completion and close beside it. */
static void wait_any_put(void)
{
	wait_room();
	explore_assert(!errs[explore_self()] ||
		       (errs[explore_self()] == -ESHUTDOWN && closing));
	scene_sock_put(sock);
}

/* By the thread that does not wait. */
static void wait_2(void)
{
	wait_room();
	explore_assert(!errs[explore_self()] && marked(2));
}

static void wait_2_put(void)
{
	wait_2();
	scene_sock_put(sock);
}

static void close_put(void)
{
	closing = true;
	dstref_sock_close(sock);
	scene_sock_put(sock);
}

static void widen_put(void)
{
	dstref_sock_set_sndbuf(sock, 2 * SCENE_BYTES);
	scene_sock_put(sock);
}

/* Half of it is less than one packet. */
static void narrow_put(void)
{
	dstref_sock_set_sndbuf(sock, SCENE_BYTES + SCENE_BYTES / 2);
	scene_sock_put(sock);
}

static void wait_data(void)
{
	uint32_t token = dstref_sock_data_token(sock);
	int *err = &errs[explore_self()];

	if (!token)
		*err = dstref_sock_wait_readable(sock, token, -1);
	explore_assert(*err == -ESHUTDOWN || (!*err && item));
}

static void wait_data_put(void)
{
	wait_data();
	scene_sock_put(sock);
}

static void ready(void)
{
	item = 1;
	dstref_sock_data_ready(sock);
}

static void ready_put(void)
{
	ready();
	dstref_sock_put_outside(sock);
}

static void complete_ready_put(void)
{
	complete_0();
	ready_put();
}

static void start_data(void)
{
	start(0, SCENE_BYTES, 2);
}

static void start_data_1(void)
{
	start(0, SCENE_BYTES, 1);
}

static void start_1_ref_2(void)
{
	start(1, SCENE_BYTES, 3);
}

static void check(void)
{
	scene_socks_close(1);
}

/* The one reference stayed to the end. */
static void check_kept(void)
{
	dstref_sock_put_outside(sock);
	explore_barrier();
	check();
}

/* Nothing but the close ended the wait; the packet is still in flight. */
static void check_closed(void)
{
	explore_assert(errs[0] == -ESHUTDOWN);
	scene_complete_outside(&skbs[0]);
	explore_barrier();
	check();
}

/* Room came otherwise. */
static void check_in_flight(void)
{
	explore_assert(!errs[0]);
	scene_complete_outside(&skbs[0]);
	explore_barrier();
	check();
}

const struct explore_case explore_cases[] = {
	{ .name = "wait-complete",
	  .setup = start_1,
	  .thread = { wait_put, complete_0 },
	  .check = check },
	{ .name = "wait-complete_outside",
	  .setup = start_1,
	  .thread = { wait_put, complete_outside_0 },
	  .check = check },
	{ .name = "wait-callback",
	  .setup = start_callback,
	  .thread = { wait_put, complete_0 },
	  .check = check },
	{ .name = "wait-shrink",
	  .setup = start_1,
	  .thread = { wait_put, shrink },
	  .check = check_in_flight },
	{ .name = "wait-half-all",
	  .setup = start_half,
	  .thread = { wait_put, complete_both },
	  .check = check },
	{ .name = "wait-close",
	  .setup = start_1_ref,
	  .thread = { wait_any_put, close_put },
	  .check = check_closed },
	{ .name = "wait-widen",
	  .setup = start_1_ref,
	  .thread = { wait_any_put, widen_put },
	  .check = check_in_flight },
	{ .name = "data-ready",
	  .setup = start_data,
	  .thread = { wait_data_put, ready_put },
	  .check = check },
	{ .name = "data-close",
	  .setup = start_data,
	  .thread = { wait_data_put, close_put },
	  .check = check },
	{ .name = "wait-complete-complete",
	  .setup = start_2,
	  .thread = { wait_both_put, complete_0, complete_1 },
	  .check = check },
	{ .name = "wait-complete-close",
	  .setup = start_1_ref,
	  .thread = { wait_any_put, complete_0, close_put },
	  .check = check },
	{ .name = "wait-all-narrow",
	  .setup = start_2_ref,
	  .thread = { wait_put, complete_both, narrow_put },
	  .check = check },
	{ .name = "wait-wait-complete",
	  .setup = start_odd,
	  .thread = { wait_2, wait_2, complete_both },
	  .check = check_kept },
	{ .name = "wait_put-wait_put-complete",
	  .setup = start_1_ref,
	  .thread = { wait_2_put, wait_2_put, complete_0 },
	  .check = check },
	{ .name = "data-data-ready",
	  .setup = start_data_1,
	  .thread = { wait_data, wait_data, ready },
	  .check = check_kept },
	{ .name = "wait-data-complete_ready",
	  .setup = start_1_ref_2,
	  .thread = { wait_2_put, wait_data_put, complete_ready_put },
	  .check = check },
	{ 0 },
};
