/* SPDX-License-Identifier: MIT */
/*
 * space - completions, the write-space callback, and the last put
 *
 * Goal: a callback runs on a sock that is pinned, is not called after
 * dstref_sock_set_write_space() has replaced it, and is not lost: whoever sets
 * it and then finds no room hears of the room. Method: callbacks are on the
 * heap, and freed as soon as the library says that they may be; each writes to
 * the sock and to its own memory, and looks that the sock has a unit. Last puts
 * and completions run beside it, in a reader and outside.
 * Cut: one replacement in a schedule, and two packets at most.
 */
#include "scene_sock.h"

struct ear {
	struct dstref_sock_space space;
	int wise; /* set before it is shown */
	DSTREF_ATOMIC(uint32_t) heard;
};

static struct dstref_sock *sock;
static struct dstref_skb skbs[2];
static uint32_t packets;
static struct ear *first; /* what setup sets */
static struct ear *second; /* what takes its place */
static bool full; /* no room after it was set */
static uint32_t heard; /* by ears that were freed */

static void hear(struct dstref_sock *sk, void *data)
{
	struct ear *ear = data;

	explore_assert(ear->wise);
	explore_assert(dstref_wmem_value_units(dstref_wmem_read(&sk->wmem)));
	(void)dstref_fetch_add_relaxed(&ear->heard, 1u);
	scene_sock_mark(sk);
}

static struct ear *ear_new(void)
{
	struct ear *ear = calloc(1, sizeof(*ear));

	ear->space.fn = hear;
	ear->space.data = ear;
	ear->wise = 1;
	return ear;
}

static void ear_free(struct ear *ear)
{
	heard += dstref_load_relaxed(&ear->heard);
	free(ear);
}

/* The packets are all that the sock may have in flight. */
static void start(uint32_t count)
{
	scene_open();
	packets = count;
	sock = scene_sock(count * SCENE_BYTES);
	for (uint32_t i = 0; i < count; i++)
		scene_send(&skbs[i], sock);
}

static void start_bare(void)
{
	start(1);
}

static void start_bare_2(void)
{
	start(2);
}

static void listen(void)
{
	first = ear_new();
	explore_assert(!dstref_sock_set_write_space(sock, &first->space));
}

static void start_1(void)
{
	start(1);
	listen();
}

static void start_2(void)
{
	start(2);
	listen();
}

static void complete_0(void)
{
	scene_complete(&skbs[0]);
}

static void complete_1(void)
{
	scene_complete(&skbs[1]);
}

static void complete_outside_0(void)
{
	scene_complete_outside(&skbs[0]);
}

static void complete_outside_1(void)
{
	scene_complete_outside(&skbs[1]);
}

static void put(void)
{
	scene_sock_put(sock);
}

static void put_outside(void)
{
	scene_sock_mark(sock);
	dstref_sock_put_outside(sock);
}

static void set(struct ear *ear)
{
	struct ear *old = first;

	explore_assert(
		!dstref_sock_set_write_space(sock, ear ? &ear->space : NULL));
	first = NULL;
	if (old)
		ear_free(old);
	full = !dstref_sock_writeable(sock);
}

/* The first, or another in its place; then a look for room. */
static void replace(void)
{
	second = ear_new();
	set(second);
}

static void replace_put(void)
{
	replace();
	put();
}

static void remove_put(void)
{
	set(NULL);
	put();
}

static void end(void)
{
	if (first)
		ear_free(first);
	scene_socks_close(1);
}

/* Each completion left half of sndbuf free, and was heard. */
static void check_heard(void)
{
	end();
	explore_assert(heard == packets);
}

/* It was set, there was no room, so it heard of it. */
static void check_second(void)
{
	end();
	explore_assert(!full || dstref_load_relaxed(&second->heard));
	free(second);
}

static void check_removed(void)
{
	end();
	explore_assert(heard <= 1);
}

/* The setter keeps his reference to the end. */
static void check_kept(void)
{
	dstref_sock_put_outside(sock);
	explore_barrier();
	check_second();
}

const struct explore_case explore_cases[] = {
	{ .name = "put-complete",
	  .setup = start_1,
	  .thread = { put, complete_0 },
	  .check = check_heard },
	{ .name = "put_outside-complete_outside",
	  .setup = start_1,
	  .thread = { put_outside, complete_outside_0 },
	  .check = check_heard },
	{ .name = "put-complete-no_callback",
	  .setup = start_bare,
	  .thread = { put, complete_0 },
	  .check = end },
	{ .name = "set-complete",
	  .setup = start_bare,
	  .thread = { replace, complete_0 },
	  .check = check_kept },
	{ .name = "set-complete_outside",
	  .setup = start_bare,
	  .thread = { replace, complete_outside_0 },
	  .check = check_kept },
	{ .name = "replace_put-complete",
	  .setup = start_1,
	  .thread = { replace_put, complete_0 },
	  .check = check_second },
	{ .name = "replace_put-complete_outside",
	  .setup = start_1,
	  .thread = { replace_put, complete_outside_0 },
	  .check = check_second },
	{ .name = "remove_put-complete",
	  .setup = start_1,
	  .thread = { remove_put, complete_0 },
	  .check = check_removed },
	{ .name = "put-complete-complete",
	  .setup = start_2,
	  .thread = { put, complete_0, complete_1 },
	  .check = check_heard },
	{ .name = "put-complete-complete_outside",
	  .setup = start_2,
	  .thread = { put, complete_0, complete_outside_1 },
	  .check = check_heard },
	{ .name = "set-complete-complete_outside",
	  .setup = start_bare_2,
	  .thread = { replace, complete_0, complete_outside_1 },
	  .check = check_kept },
	{ .name = "replace_put-complete-complete",
	  .setup = start_2,
	  .thread = { replace_put, complete_0, complete_1 },
	  .check = check_second },
	{ .name = "replace_put-complete-complete_outside",
	  .setup = start_2,
	  .thread = { replace_put, complete_0, complete_outside_1 },
	  .check = check_second },
	{ 0 },
};
