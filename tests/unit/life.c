/* SPDX-License-Identifier: MIT */
/*
 * unit.life - how socks end, and how they are cloned
 *
 * Goal: a sock ends once, a grace period after its references, its received
 * packets and its packets in flight are gone, in whatever order those go, and
 * in whatever order it and its route do; a clone shares nothing with its
 * parent; a namespace names the sock that keeps it. Method: the manual
 * flavour, whose grace periods end only where a test says so; a ledger of
 * memory; and the same short life once more on each flavour of liburcu.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "scene.h"

#define SENT 64
#define COMPLETED 40

static unsigned int ended(void)
{
	return dstref_load_relaxed(&scene.ended);
}

static unsigned int routes(void)
{
	return dstref_load_relaxed(&scene.routes);
}

static void put(struct dstref_sock *sk)
{
	scene_enter();
	dstref_sock_put(sk);
	scene_leave();
}

static void send(struct dstref_sock *sk, uint32_t bytes)
{
	assert_true(dstref_sock_charge_w(sk, bytes));
}

static void sent(struct dstref_sock *sk, uint32_t bytes)
{
	scene_enter();
	dstref_sock_uncharge_w(sk, bytes);
	scene_leave();
}

/* The chain: references, then what was received, then what is in flight. */

static void sock_ends_after_its_received_packets(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);

	(void)state;
	assert_true(dstref_sock_charge_r(sk, 100));
	put(sk);
	assert_int_equal(scene_units(&sk->rmem), 1);
	assert_int_equal(scene_units(&sk->wmem), 1);
	assert_true(manual_drain());
	assert_int_equal(ended(), 0);
	dstref_sock_uncharge_r(sk, 100);
	assert_int_equal(ended(), 0);
	assert_true(manual_drain());
	assert_int_equal(ended(), 1);
}

static void sock_ends_after_its_packets_in_flight(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);

	(void)state;
	send(sk, 0); /* a charge of zero pins as well */
	put(sk);
	assert_int_equal(scene_units(&sk->wmem), 1);
	assert_true(manual_drain());
	assert_int_equal(ended(), 0);
	sent(sk, 0);
	assert_true(manual_drain());
	assert_int_equal(ended(), 1);
}

static void sock_ends_when_both_accounts_are_empty(void **state)
{
	for (int first = 0; first < 2; first++) {
		struct dstref_sock *sk = scene_sock(&scene);

		assert_true(dstref_sock_charge_r(sk, 10));
		send(sk, 20);
		put(sk);
		if (first)
			dstref_sock_uncharge_r(sk, 10);
		else
			sent(sk, 20);
		assert_true(manual_drain());
		assert_int_equal(ended(), first);
		if (first)
			sent(sk, 20);
		else
			dstref_sock_uncharge_r(sk, 10);
		assert_true(manual_drain());
		assert_int_equal(ended(), first + 1);
	}
	(void)state;
}

/* A receive queue of the user's, drained at the last put. */
static struct dstref_skb queue[3];

static void drain_queue(struct dstref_sock *sk)
{
	(void)dstref_fetch_add_relaxed(&scene.released, 1u);
	assert_int_equal(scene_units(&sk->rmem), 1 + 3);
	for (int i = 0; i < 3; i++)
		dstref_skb_free(&queue[i]);
	assert_int_equal(scene_units(&sk->rmem), 1);
}

static void sock_release_may_drain_the_receive_queue(void **state)
{
	struct dstref_sock_proto proto = scene_proto;
	struct dstref_sock *sk;

	(void)state;
	proto.release = drain_queue;
	assert_int_equal(dstref_sock_alloc(&sk, scene.net, &proto), 0);
	scene_enter();
	for (uint32_t i = 0; i < 3; i++) {
		dstref_skb_init(&queue[i], 100 * i);
		dstref_skb_set_owner_r(&queue[i], sk);
	}
	dstref_sock_hold(sk);
	dstref_sock_put(sk);
	assert_int_equal(dstref_load_relaxed(&scene.released), 0);
	dstref_sock_put(sk);
	scene_leave();
	assert_int_equal(dstref_load_relaxed(&scene.released), 1);
	assert_true(manual_drain());
	assert_int_equal(ended(), 1);
}

static void send_all(struct dstref_skb *ring, struct dstref_sock *sk,
		     struct dstref_dst *dst)
{
	scene_enter();
	for (uint32_t i = 0; i < SENT; i++) {
		dstref_skb_init(&ring[i], 100 + i);
		dstref_skb_set_owner_w(&ring[i], sk);
		dstref_dst_hold(dst);
		dstref_skb_dst_set(&ring[i], dst);
	}
	scene_leave();
	assert_int_equal(scene_units(&sk->wmem), 1 + SENT);
	assert_int_equal(dstref_dst_refs(dst), 1 + SENT);
}

/* Lets go of ring[from] to ring[to - 1]: a device that sends, or is reset. */
static void complete(struct dstref_skb *ring, int from, int to)
{
	scene_enter();
	for (int i = from; i < to; i++)
		dstref_skb_free(&ring[i]);
	scene_leave();
	assert_true(manual_drain());
}

static void c08_sock_ends_after_the_last_of_64(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);
	struct dstref_dst *dst = scene_dst(&scene, 0);
	struct dstref_skb ring[SENT];

	(void)state;
	send_all(ring, sk, dst);
	dstref_dst_release_outside(dst);
	put(sk);
	complete(ring, 0, COMPLETED);
	assert_int_equal(ended() + routes(), 0);
	assert_int_equal(scene_units(&sk->wmem), SENT - COMPLETED);
	complete(ring, COMPLETED, SENT - 1);
	assert_int_equal(ended() + routes(), 0);
	complete(ring, SENT - 1, SENT);
	assert_int_equal(ended(), 1);
	assert_int_equal(routes(), 1);
}

/* Counts a sock whose slot is empty when destroy looks. */
static void look_at_slot(struct dstref_sock *sk)
{
	if (!dstref_load_relaxed(&sk->dst.dst))
		(void)dstref_fetch_add_relaxed(&scene.ended, 1u);
}

static struct dstref_sock *routed(struct dstref_dst *dst)
{
	static struct dstref_sock_proto proto;
	struct dstref_sock *sk;

	proto = scene_proto;
	proto.destroy = look_at_slot;
	assert_int_equal(dstref_sock_alloc(&sk, scene.net, &proto), 0);
	dstref_dst_slot_install(&sk->dst, dst);
	return sk;
}

static void c08_sock_ends_before_its_dst(void **state)
{
	struct dstref_dst *dst = scene_dst(&scene, 0);
	struct dstref_sock *sk;

	(void)state;
	scene_enter();
	dstref_dst_hold(dst);
	scene_leave();
	sk = routed(dst);
	put(sk);
	assert_int_equal(dstref_dst_refs(dst), 2);
	assert_true(manual_drain());
	assert_int_equal(ended(), 1);
	assert_int_equal(dstref_dst_refs(dst), 1);
	dstref_dst_release_outside(dst);
	assert_true(manual_drain());
	assert_int_equal(routes(), 1);
}

/* The slot's reference is the last: the dst's own grace period follows. */
static void c08_sock_ends_and_its_dst_with_it(void **state)
{
	struct dstref_sock *sk = routed(scene_dst(&scene, 0));

	(void)state;
	assert_true(manual_drain());
	put(sk);
	assert_true(manual_advance());
	assert_int_equal(ended(), 1);
	assert_int_equal(routes(), 0);
	assert_true(manual_advance());
	assert_int_equal(routes(), 1);
}

static void c08_dst_ends_before_its_sock(void **state)
{
	struct dstref_dst *dst = scene_dst(&scene, 0);
	struct dstref_sock *sk = routed(dst);

	(void)state;
	dstref_dst_dead(dst);
	dstref_dst_slot_clear(&sk->dst);
	assert_true(manual_drain());
	assert_int_equal(routes(), 1);
	assert_int_equal(ended(), 0);
	put(sk);
	assert_true(manual_drain());
	assert_int_equal(ended(), 1);
}

/* Clones. */

struct cloned {
	struct dstref_sock sk;
	void *extra;
	unsigned char tail[SCENE_TAIL];
};

static int clone_result;

/* Takes memory, sees that the child is fresh, and fails when told to. */
static int clone_op(struct dstref_sock *sk, struct dstref_sock *parent)
{
	struct cloned *child = (void *)sk;

	assert_int_equal(scene_units(&sk->wmem), 1);
	assert_int_equal(scene_bytes(&sk->wmem), 0);
	assert_int_equal(scene_units(&sk->rmem), 1);
	assert_int_equal(dstref_sock_refs(sk), 1);
	assert_null(dstref_load_relaxed(&sk->dst.dst));
	assert_null(dstref_load_relaxed(&sk->space));
	assert_null(sk->user);
	assert_null(child->extra);
	child->extra = sk->net->mem.alloc(&scene.alloc, 100, 64, -1);
	assert_non_null(child->extra);
	memcpy(child->tail, ((struct cloned *)(void *)parent)->tail,
	       sizeof(child->tail));
	if (clone_result)
		sk->net->mem.free(&scene.alloc, child->extra, 100);
	return clone_result;
}

static void cloned_end(struct dstref_sock *sk)
{
	void *extra = ((struct cloned *)(void *)sk)->extra;

	(void)dstref_fetch_add_relaxed(&scene.ended, 1u);
	if (extra)
		sk->net->mem.free(&scene.alloc, extra, 100);
}

static const struct dstref_sock_proto cloned_proto = {
	.name = "cloned",
	.size = sizeof(struct cloned),
	.destroy = cloned_end,
	.clone = clone_op,
};

static void hear(struct dstref_sock *sk, void *data)
{
	(void)sk;
	++*(unsigned int *)data;
}

static unsigned int heard;
static const struct dstref_sock_space space = { hear, &heard };

/* A parent with everything that a child must not get, and three packets. */
static struct dstref_sock *parent(void)
{
	struct dstref_sock *sk;

	heard = 0;
	assert_int_equal(dstref_sock_alloc(&sk, scene.net, &cloned_proto), 0);
	memset(((struct cloned *)(void *)sk)->tail, 7, SCENE_TAIL);
	sk->user = &heard;
	dstref_sock_set_sndbuf(sk, 1234);
	dstref_dst_slot_install(&sk->dst, scene_dst(&scene, 0));
	assert_int_equal(dstref_sock_set_write_space(sk, &space), 0);
	assert_true(dstref_sock_charge_r(sk, 30));
	for (int i = 0; i < 3; i++)
		send(sk, 100);
	return sk;
}

static void orphaned(struct dstref_sock *sk)
{
	dstref_sock_uncharge_r(sk, 30);
	put(sk);
	for (int i = 0; i < 3; i++) {
		assert_true(manual_drain());
		assert_int_equal(scene_units(&sk->wmem), 3 - i);
		sent(sk, 100);
	}
	assert_true(manual_drain());
}

static void c09_sock_clone_with_packets_in_flight(void **state)
{
	struct dstref_sock *sk = parent(), *child;

	(void)state;
	clone_result = 0;
	assert_int_equal(dstref_sock_clone(&child, sk), 0);
	assert_int_equal(dstref_load_relaxed(&child->sndbuf), 1234);
	assert_int_equal(((struct cloned *)(void *)child)->tail[9], 7);
	assert_int_equal(scene_units(&child->wmem), 1);
	assert_int_equal(scene_units(&sk->wmem), 4);
	assert_int_equal(dstref_sock_refs(sk), 1);
	put(child);
	assert_true(manual_drain());
	assert_int_equal(ended(), 1); /* at once */
	orphaned(sk);
	assert_int_equal(ended(), 2); /* after the third */
	assert_int_equal(heard, 3);
	assert_int_equal(routes(), 1);
}

/* The ledger of scene.alloc tells of anything freed twice, or never. */
static void c09_sock_clone_that_fails_half_way(void **state)
{
	struct dstref_sock *sk = parent(), *child = sk;
	struct dstref_net_counters stats;
	size_t blocks = scene.alloc.blocks;

	(void)state;
	clone_result = -EPERM;
	assert_int_equal(dstref_sock_clone(&child, sk), -EPERM);
	assert_ptr_equal(child, sk);
	assert_int_equal(scene.alloc.blocks, blocks);
	dstref_net_stats(scene.net, &stats);
	assert_int_equal(stats.sock, 1);
	assert_true(manual_drain());
	assert_int_equal(ended(), 0);
	orphaned(sk);
	assert_int_equal(ended(), 1);
}

static void sock_clone_without_memory_changes_nothing(void **state)
{
	struct dstref_sock *sk = parent(), *child = sk;
	struct dstref_net_counters stats;

	(void)state;
	alloc_refuse(&scene.alloc, 1);
	assert_int_equal(dstref_sock_clone(&child, sk), -ENOMEM);
	assert_ptr_equal(child, sk);
	assert_int_equal(dstref_sock_clone(NULL, sk), -EINVAL);
	assert_int_equal(dstref_sock_clone(&child, NULL), -EINVAL);
	dstref_net_stats(scene.net, &stats);
	assert_int_equal(stats.sock, 1);
	orphaned(sk);
	assert_int_equal(ended(), 1);
}

static void sock_clone_needs_no_function(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene), *child;

	(void)state;
	assert_int_equal(dstref_sock_clone(&child, sk), 0);
	put(sk);
	assert_ptr_equal(child->proto, &scene_proto);
	assert_true(manual_drain());
	assert_int_equal(ended(), 1);
	put(child);
	assert_true(manual_drain());
	assert_int_equal(ended(), 2);
}

/* The namespace. */

static void sock_that_keeps_its_namespace_is_named(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);

	(void)state;
	for (int i = 0; i < 5; i++)
		send(sk, 10);
	put(sk);
	assert_int_equal(dstref_net_destroy(scene.net), -EBUSY);
	capture_expect(DSTREF_REPORT_NET_BUSY, 1);
	capture_expect(DSTREF_REPORT_NET_LEAK, 1);
	assert_ptr_equal(capture_last(DSTREF_REPORT_NET_LEAK)->object, sk);
	assert_int_equal(capture_last(DSTREF_REPORT_NET_LEAK)->value, 5);
	assert_non_null(strstr(capture_last(DSTREF_REPORT_NET_LEAK)->text,
			       "sock 'scene'"));
	for (int i = 0; i < 5; i++)
		sent(sk, 10);
}

static void live_on(const struct rcu_flavor_struct *flavour)
{
	struct scene s;
	struct dstref_sock *sk;

	reader_register(flavour);
	scene_begin(&s, flavour);
	sk = scene_sock(&s);
	reader_lock(flavour);
	assert_true(dstref_sock_try_hold(sk));
	send(sk, 10);
	dstref_sock_put(sk);
	dstref_sock_put(sk);
	assert_false(dstref_sock_try_hold(sk));
	dstref_sock_uncharge_w(sk, 10);
	assert_int_equal(dstref_load_relaxed(&s.ended), 0);
	reader_unlock(flavour);
	assert_int_equal(dstref_net_barrier(s.net, -1), 0);
	assert_int_equal(dstref_load_relaxed(&s.released), 1);
	assert_int_equal(dstref_load_relaxed(&s.ended), 1);
	assert_int_equal(scene_end(&s), 0);
	reader_unregister(flavour);
}

static void sock_lives_on_every_flavour(void **state)
{
	(void)state;
	live_on(&urcu_memb_flavor);
	live_on(&urcu_qsbr_flavor);
	live_on(&urcu_bp_flavor);
	live_on(&urcu_mb_flavor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scene_test(sock_ends_after_its_received_packets),
		scene_test(sock_ends_after_its_packets_in_flight),
		scene_test(sock_ends_when_both_accounts_are_empty),
		scene_test(sock_release_may_drain_the_receive_queue),
		scene_test(c08_sock_ends_after_the_last_of_64),
		scene_test(c08_sock_ends_before_its_dst),
		scene_test(c08_sock_ends_and_its_dst_with_it),
		scene_test(c08_dst_ends_before_its_sock),
		scene_test(c09_sock_clone_with_packets_in_flight),
		scene_test(c09_sock_clone_that_fails_half_way),
		scene_test(sock_clone_without_memory_changes_nothing),
		scene_test(sock_clone_needs_no_function),
		scene_test(sock_that_keeps_its_namespace_is_named),
		capture_test(sock_lives_on_every_flavour),
	};

	return cmocka_run_group_tests_name("unit.life", tests, NULL, NULL);
}
