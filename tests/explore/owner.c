/* SPDX-License-Identifier: MIT */
/*
 * owner - packets that are all that pins their sock
 *
 * Goal: while one packet of a sock has it charged anew, hands it to a fragment,
 * changes its size or its owner, and another packet of the same sock completes,
 * the sock lives exactly until the last charge is gone, and its accounts show
 * no bytes then (what is left is a report, which fails the case). Method: setup
 * sends packets and puts the reference, so that nothing but charges is left;
 * each thread has one packet.
 * Cut: a packet has two fragments at most and changes its owner once.
 */
#include "scene_sock.h"

static struct dstref_sock *sock;
static struct dstref_sock *other; /* main has a reference, until check */
static struct dstref_skb skbs[3];
static DSTREF_ATOMIC(uint32_t) handed; /* skbs[1] is another thread's */

/* @count packets to be sent, and nothing else, pin the sock. */
static void start(int count)
{
	scene_open();
	sock = scene_sock(10 * SCENE_BYTES);
	for (int i = 0; i < count; i++)
		scene_send(&skbs[i], sock);
	dstref_sock_put_outside(sock);
}

static void start_1(void)
{
	start(1);
}

static void start_2(void)
{
	start(2);
}

static void start_3(void)
{
	start(3);
}

static void start_other(int count)
{
	start(count);
	other = scene_sock(10 * SCENE_BYTES);
}

static void start_other_2(void)
{
	start_other(2);
}

static void start_other_3(void)
{
	start_other(3);
}

/* A packet that was received and one to be sent pin it. */
static void start_received(void)
{
	scene_open();
	sock = scene_sock(10 * SCENE_BYTES);
	scene_send(&skbs[0], sock);
	dstref_skb_init(&skbs[1], SCENE_BYTES);
	explore_read_lock();
	dstref_skb_set_owner_r(&skbs[1], sock);
	explore_read_unlock();
	dstref_sock_put_outside(sock);
}

static void complete_0(void)
{
	scene_complete(&skbs[0]);
}

static void complete_1(void)
{
	scene_complete(&skbs[1]);
}

static void complete_2(void)
{
	scene_complete(&skbs[2]);
}

static void complete_outside_0(void)
{
	scene_complete_outside(&skbs[0]);
}

/* The packet has grown, and is charged to its own sock once more. */
static void charge_again(void)
{
	explore_read_lock();
	skbs[0].truesize = 3 * SCENE_BYTES;
	dstref_skb_set_owner_w(&skbs[0], sock);
	scene_sock_mark(sock);
	dstref_skb_free(&skbs[0]);
	explore_read_unlock();
}

static void resize(void)
{
	explore_read_lock();
	dstref_skb_set_truesize(&skbs[1], SCENE_BYTES / 2);
	scene_sock_mark(sock);
	dstref_skb_set_truesize(&skbs[1], 2 * SCENE_BYTES);
	dstref_skb_free(&skbs[1]);
	explore_read_unlock();
}

/* From one sock to the other, which has a reference. */
static void move_0(void)
{
	explore_read_lock();
	scene_sock_mark(sock);
	dstref_skb_set_owner_w(&skbs[0], other);
	scene_sock_mark(other);
	dstref_skb_free(&skbs[0]);
	explore_read_unlock();
}

/* As a packet that was received and is sent back by the other sock. */
static void move_1(void)
{
	explore_read_lock();
	scene_sock_mark(sock);
	dstref_skb_set_owner_r(&skbs[1], other);
	scene_sock_mark(other);
	dstref_skb_free(&skbs[1]);
	explore_read_unlock();
}

static void fragment(struct dstref_skb *from, struct dstref_skb *to)
{
	dstref_skb_init(to, SCENE_BYTES / 2);
	dstref_skb_copy_owner(to, from);
	explore_assert(dstref_skb_owner(to) == sock);
}

/* The fragment goes to another thread; the packet ends here. */
static void hand_fragment(void)
{
	explore_read_lock();
	fragment(&skbs[0], &skbs[1]);
	dstref_store_release(&handed, 1u);
	scene_sock_mark(sock);
	dstref_skb_free(&skbs[0]);
	explore_read_unlock();
}

static bool was_handed(void)
{
	return dstref_load_relaxed(&handed);
}

/* A fragment of the fragment, then both end, by both ways. */
static void take_fragment(void)
{
	explore_await(was_handed);
	explore_read_lock();
	fragment(&skbs[1], &skbs[2]);
	scene_sock_mark(sock);
	dstref_skb_orphan(&skbs[1]);
	explore_read_unlock();
	scene_complete_outside(&skbs[2]);
}

/* A received packet and its fragment, in no reader in the end. */
static void fragment_1(void)
{
	explore_read_lock();
	fragment(&skbs[1], &skbs[2]);
	scene_sock_mark(sock);
	dstref_skb_orphan(&skbs[1]);
	explore_read_unlock();
	scene_complete_outside(&skbs[2]);
}

static void check(void)
{
	scene_socks_close(1);
}

static void check_other(void)
{
	explore_assert(scene_socks_ended == 1);
	explore_assert(
		!dstref_wmem_value_bytes(dstref_wmem_read(&other->wmem)));
	explore_assert(
		!dstref_wmem_value_bytes(dstref_wmem_read(&other->rmem)));
	dstref_sock_put_outside(other);
	explore_barrier();
	scene_socks_close(2);
}

const struct explore_case explore_cases[] = {
	{ .name = "again-complete",
	  .setup = start_2,
	  .thread = { charge_again, complete_1 },
	  .check = check },
	{ .name = "complete_outside-resize",
	  .setup = start_2,
	  .thread = { complete_outside_0, resize },
	  .check = check },
	{ .name = "again-resize",
	  .setup = start_2,
	  .thread = { charge_again, resize },
	  .check = check },
	{ .name = "move-complete",
	  .setup = start_other_2,
	  .thread = { move_0, complete_1 },
	  .check = check_other },
	{ .name = "move-move",
	  .setup = start_other_2,
	  .thread = { move_0, move_1 },
	  .check = check_other },
	{ .name = "fragment-fragment",
	  .setup = start_1,
	  .thread = { hand_fragment, take_fragment },
	  .check = check },
	{ .name = "complete-received",
	  .setup = start_received,
	  .thread = { complete_0, fragment_1 },
	  .check = check },
	{ .name = "again-resize-complete",
	  .setup = start_3,
	  .thread = { charge_again, resize, complete_2 },
	  .check = check },
	{ .name = "move-move-complete",
	  .setup = start_other_3,
	  .thread = { move_0, move_1, complete_2 },
	  .check = check_other },
	{ 0 },
};
