/* SPDX-License-Identifier: MIT */
/*
 * net_destroy - the end of a namespace against the last puts in it
 *
 * Goal: dstref_net_destroy() returns 0 only when nothing will touch the
 * namespace any more, and does return it as soon as the last puts are over,
 * however many callbacks are still to run. Method: one thread destroys, the
 * others let go of what the namespace has; all its memory is freed before
 * destroy returns 0, so what comes later is a race with the free. When it says
 * busy, it is called again after the others are done, and must not be busy
 * then; being busy is reported, so reports are expected.
 * Cut: destroy is called twice at most, by one thread; the last case, a
 * destroyer that looks 64 times beside two threads and the callbacks, to two
 * preemptions.
 */
#include "scene_sock.h"

#include <errno.h>

static DSTREF_ATOMIC(struct dstref_net *) found; /* until destroy begins */
static struct dstref_dst *route;
static struct dstref_sock *sock;
static struct dstref_skb skb;
static DSTREF_ATOMIC(uint32_t) done; /* threads that have let go */
static uint32_t others; /* that will */

static void done_here(void)
{
	(void)dstref_fetch_add_relaxed(&done, 1u);
}

static bool all_done(void)
{
	return dstref_load_relaxed(&done) == others;
}

static void start_route(void)
{
	scene_open();
	route = scene_route();
	others = 1;
}

static void start_route_2(void)
{
	start_route();
	dstref_dst_hold_outside(route);
	others = 2;
}

/* The sock has the only reference to the route. */
static void start_sock(void)
{
	scene_open();
	sock = scene_sock(SCENE_BYTES);
	route = scene_route();
	dstref_dst_slot_install(&sock->dst, route);
	others = 1;
}

/* And a packet is in flight. */
static void start_packet(void)
{
	start_sock();
	scene_send(&skb, sock);
	others = 2;
}

/* The thread that waits for room has the one reference. */
static void start_wait(void)
{
	start_sock();
	scene_send(&skb, sock);
}

static void start_empty(void)
{
	scene_open();
	dstref_store_release(&found, scene_net);
	others = 1;
}

/* A route of its own, and a sock without one. */
static void start_both(void)
{
	start_route();
	sock = scene_sock(SCENE_BYTES);
	others = 2;
}

static void destroy(void)
{
	dstref_store_relaxed(&found, NULL);

	int err = dstref_net_destroy(scene_net);

	explore_assert(!err || err == -EBUSY);
	if (!err)
		return;
	explore_await(all_done);
	explore_assert(!dstref_net_destroy(scene_net));
}

/* All have let go before: what is left is callbacks, and never busy. */
static void destroy_late(void)
{
	explore_await(all_done);
	explore_assert(!dstref_net_destroy(scene_net));
}

static void put_route(void)
{
	explore_read_lock();
	scene_mark(route);
	dstref_dst_release(route);
	explore_read_unlock();
	done_here();
}

static void put_route_outside(void)
{
	scene_mark(route);
	dstref_dst_release_outside(route);
	done_here();
}

static void put_route_now(void)
{
	scene_mark(route);
	dstref_dst_release_now(route);
	done_here();
}

static void put_sock(void)
{
	scene_sock_put(sock);
	done_here();
}

static void put_sock_outside(void)
{
	scene_sock_mark(sock);
	dstref_sock_put_outside(sock);
	done_here();
}

static void complete(void)
{
	scene_complete(&skb);
	done_here();
}

static void complete_outside(void)
{
	scene_complete_outside(&skb);
	done_here();
}

/* The completion may still be about to wake this thread, which ends it all. */
static void wait_put_destroy(void)
{
	explore_assert(!dstref_sock_wait_writable(sock, -1));
	scene_sock_put(sock);
	destroy();
}

/* An entry comes, or is refused; it goes in the same reader. */
static void add(void)
{
	static const struct dstref_dst_ops ops = { "mine", scene_destroy,
						   NULL };
	struct scene_route *mine = aligned_alloc(
		DSTREF_LINE_SIZE, DSTREF_LINE_ROUND(sizeof(*mine)));

	for (int i = 0; i < EXPLORE_THREADS; i++)
		mine->mark[i] = 0;
	explore_read_lock();
	struct dstref_net *net = dstref_load_acquire(&found);
	int err = net ? dstref_dst_init(&mine->dst, net, &ops, NULL,
					DSTREF_DST_SPLIT_NEVER)
		      : -ENOENT;

	if (!err)
		dstref_dst_release(&mine->dst);
	explore_read_unlock();
	explore_assert(!err || err == -ESHUTDOWN || err == -ENOENT);
	if (err)
		scene_destroy(&mine->dst);
	done_here();
}

/* No misuse but that something was left. */
static void check_reports(void)
{
	for (int i = 0; i < DSTREF_REPORT_KIND_COUNT; i++)
		explore_assert(i == DSTREF_REPORT_NET_BUSY ||
			       i == DSTREF_REPORT_NET_LEAK ||
			       !explore_reports((enum dstref_report_kind)i));
}

static void check_route(void)
{
	check_reports();
	explore_assert(scene_ended == 1 && !scene_socks_ended);
}

static void check_sock(void)
{
	check_reports();
	explore_assert(scene_ended == 1 && scene_socks_ended == 1);
}

const struct explore_case explore_cases[] = {
	{ .name = "destroy-put",
	  .setup = start_route,
	  .thread = { destroy, put_route },
	  .check = check_route,
	  .reports = true },
	{ .name = "destroy-put_outside",
	  .setup = start_route,
	  .thread = { destroy, put_route_outside },
	  .check = check_route,
	  .reports = true },
	{ .name = "destroy-put_now",
	  .setup = start_route,
	  .thread = { destroy, put_route_now },
	  .check = check_route,
	  .reports = true },
	{ .name = "destroy-put_sock",
	  .setup = start_sock,
	  .thread = { destroy, put_sock },
	  .check = check_sock,
	  .reports = true },
	{ .name = "destroy-put_sock_outside",
	  .setup = start_sock,
	  .thread = { destroy, put_sock_outside },
	  .check = check_sock,
	  .reports = true },
	{ .name = "destroy-add",
	  .setup = start_empty,
	  .thread = { destroy, add },
	  .check = check_route,
	  .reports = true },
	{ .name = "wait_destroy-complete",
	  .setup = start_wait,
	  .thread = { wait_put_destroy, complete },
	  .check = check_sock,
	  .reports = true },
	{ .name = "wait_destroy-complete_outside",
	  .setup = start_wait,
	  .thread = { wait_put_destroy, complete_outside },
	  .check = check_sock,
	  .reports = true },
	{ .name = "destroy-put-put",
	  .setup = start_route_2,
	  .thread = { destroy, put_route, put_route },
	  .check = check_route,
	  .reports = true },
	{ .name = "late-put-put_sock",
	  .setup = start_both,
	  .thread = { destroy_late, put_route, put_sock },
	  .check = check_sock,
	  .reports = true },
	{ .name = "destroy-put_sock-complete",
	  .setup = start_packet,
	  .thread = { destroy, put_sock, complete },
	  .check = check_sock,
	  .reports = true },
	/* Exhausted in a minute and a half; two preemptions take seconds. */
	{ .name = "destroy-put-put_sock",
	  .setup = start_both,
	  .thread = { destroy, put_route, put_sock },
	  .check = check_sock,
	  .bound = 2,
	  .reports = true },
	{ 0 },
};
