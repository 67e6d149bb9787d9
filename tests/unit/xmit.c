/* SPDX-License-Identifier: MIT */
/*
 * unit.xmit - a packet's dst, and what goes as it leaves the sending core
 *
 * Goal: a packet borrows, holds, forces and drops its dst with the counts that
 * each of these promises (C3); xmit_release does what its flags say, in all
 * their combinations; what it let go of, a completion on another thread does
 * not touch (C5). Method: counts after each step; the bytes of the whole dst
 * and the whole sock before and after a completion.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "scene.h"

static struct dstref_skb packet(uint32_t truesize)
{
	struct dstref_skb skb;

	memset(&skb, 0xA5, sizeof(skb));
	dstref_skb_init(&skb, truesize);
	return skb;
}

static void c03_skb_dst_counts_what_it_holds(void **state)
{
	struct dstref_dst *dst = scene_dst(&scene, 0);
	struct dstref_skb skb = packet(10);

	(void)state;
	scene_enter();
	dstref_skb_dst_set_noref(&skb, dst);
	assert_ptr_equal(dstref_skb_dst(&skb), dst);
	assert_int_equal(dstref_dst_refs(dst), 1);
	dstref_skb_dst_drop(&skb);
	assert_null(dstref_skb_dst(&skb));
	assert_int_equal(dstref_dst_refs(dst), 1);
	dstref_skb_dst_set_noref(&skb, dst);
	assert_true(dstref_skb_dst_force(&skb));
	assert_true(dstref_skb_dst_force(&skb));
	assert_int_equal(dstref_dst_refs(dst), 2);
	dstref_dst_hold(dst);
	dstref_skb_dst_set(&skb, dst); /* drops the one it had */
	assert_int_equal(dstref_dst_refs(dst), 2);
	dstref_skb_dst_set_noref(&skb, dst);
	assert_int_equal(dstref_dst_refs(dst), 1);
	dstref_skb_free(&skb);
	assert_int_equal(dstref_dst_refs(dst), 1);
	dstref_dst_release(dst);
	scene_leave();
}

static void c03_skb_dst_uncached_is_counted_at_once(void **state)
{
	struct dstref_dst *dst = scene_dst(&scene, DSTREF_DST_UNCACHED);
	struct dstref_skb skb = packet(10);

	(void)state;
	scene_enter();
	dstref_skb_dst_set_noref(&skb, dst);
	assert_int_equal(dstref_dst_refs(dst), 2);
	dstref_skb_free(&skb);
	dstref_dst_release(dst);
	scene_leave();
}

/* A packet with a sock of its own that borrows @dst. */
static struct dstref_skb borrower(struct dstref_sock *sk,
				  struct dstref_dst *dst)
{
	struct dstref_skb skb = packet(100);

	dstref_skb_set_owner_w(&skb, sk);
	dstref_skb_dst_set_noref(&skb, dst);
	return skb;
}

static void skb_xmit_release_does_what_its_flags_say(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);
	struct dstref_dst *dst = scene_dst(&scene, 0);

	(void)state;
	scene_enter();
	for (unsigned int flags = 0; flags < 8; flags++) {
		struct dstref_skb skb = borrower(sk, dst);
		bool keeps = flags & DSTREF_SKB_KEEP_DST;
		bool early = (flags & DSTREF_SKB_EARLY) &&
			     !(flags & DSTREF_SKB_TIMESTAMP);

		assert_true(dstref_skb_xmit_release(&skb, flags));
		assert_int_equal(dstref_dst_refs(dst), 1 + keeps);
		assert_ptr_equal(dstref_skb_dst(&skb), keeps ? dst : NULL);
		assert_int_equal(scene_units(&sk->wmem), 2 - early);
		assert_int_equal(scene_bytes(&sk->wmem), early ? 0 : 100);
		assert_ptr_equal(dstref_skb_owner(&skb), early ? NULL : sk);
		assert_int_equal(skb.charge, early ? 0 : 100);
		assert_int_equal(skb.truesize, 100);
		dstref_skb_free(&skb);
		assert_int_equal(dstref_dst_refs(dst), 1);
		assert_int_equal(scene_units(&sk->wmem), 1);
	}
	dstref_sock_put(sk);
	dstref_dst_release(dst);
	scene_leave();
}

static void skb_xmit_release_lets_go_of_a_held_dst(void **state)
{
	struct dstref_dst *dst = scene_dst(&scene, 0);
	struct dstref_skb skb = packet(10);

	(void)state;
	scene_enter();
	for (unsigned int keeps = 0; keeps < 2; keeps++) {
		dstref_dst_hold(dst);
		dstref_skb_dst_set(&skb, dst);
		assert_true(dstref_skb_xmit_release(&skb, keeps));
		assert_int_equal(dstref_dst_refs(dst), 1 + keeps);
		dstref_skb_dst_drop(&skb);
	}
	dstref_dst_release(dst);
	scene_leave();
}

/* The owner is let go of all the same. */
static void skb_xmit_release_says_when_there_is_no_dst_to_keep(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);
	struct dstref_dst *dst = scene_dst(&scene, 0);
	struct dstref_skb skb;

	(void)state;
	scene_enter();
	skb = borrower(sk, dst);
	dstref_dst_release(dst);
	assert_false(dstref_skb_xmit_release(&skb, DSTREF_SKB_KEEP_DST |
							   DSTREF_SKB_EARLY));
	assert_null(dstref_skb_dst(&skb));
	assert_null(dstref_skb_owner(&skb));
	assert_int_equal(scene_units(&sk->wmem), 1);
	assert_false(dstref_skb_xmit_release(&skb, DSTREF_SKB_KEEP_DST));
	assert_true(dstref_skb_xmit_release(&skb, 0));
	dstref_skb_free(&skb);
	dstref_sock_put(sk);
	scene_leave();
	assert_true(manual_drain());
	assert_int_equal(dstref_load_relaxed(&scene.routes), 1);
}

/* C5: this thread is core X, the completion's is core Y. */

struct shot {
	unsigned char dst[sizeof(struct dstref_dst)];
	unsigned char sk[sizeof(struct dstref_sock)];
};

static void take(struct shot *shot, const struct dstref_dst *dst,
		 const struct dstref_sock *sk)
{
	memcpy(shot->dst, (const void *)dst, sizeof(shot->dst));
	memcpy(shot->sk, (const void *)sk, sizeof(shot->sk));
}

static void complete_inside(void *skb)
{
	reader_register(scene.flavour);
	scene_enter();
	dstref_skb_free(skb);
	scene_leave();
	reader_unregister(scene.flavour);
}

static void complete_outside(void *skb)
{
	dstref_skb_free_outside(skb);
}

static void complete_elsewhere(unsigned int flags, void (*complete)(void *skb))
{
	struct dstref_sock *sk = scene_sock(&scene);
	struct dstref_dst *dst = scene_dst(&scene, 0);
	bool keeps = flags & DSTREF_SKB_KEEP_DST;
	bool early = !(flags & DSTREF_SKB_TIMESTAMP);
	struct shot before, after;
	struct dstref_skb skb;

	scene_enter();
	skb = borrower(sk, dst);
	assert_true(dstref_skb_xmit_release(&skb, flags | DSTREF_SKB_EARLY));
	scene_leave();
	assert_int_equal(dstref_dst_refs(dst), 1 + keeps);
	assert_int_equal(scene_units(&sk->wmem), 2 - early);
	take(&before, dst, sk);
	scene_elsewhere(complete, &skb);
	take(&after, dst, sk);
	assert_int_equal(!memcmp(before.dst, after.dst, sizeof(after.dst)),
			 !keeps);
	assert_int_equal(!memcmp(before.sk, after.sk, sizeof(after.sk)), early);
	assert_int_equal(dstref_dst_refs(dst), 1);
	assert_int_equal(scene_units(&sk->wmem), 1);
	dstref_sock_put_outside(sk);
	dstref_dst_release_outside(dst);
}

static void c05_skb_completes_on_another_thread(void **state)
{
	static const unsigned int flags[] = {
		0,
		DSTREF_SKB_KEEP_DST,
		DSTREF_SKB_TIMESTAMP,
		DSTREF_SKB_KEEP_DST | DSTREF_SKB_TIMESTAMP,
	};

	(void)state;
	for (int i = 0; i < 4; i++) {
		complete_elsewhere(flags[i], complete_inside);
		complete_elsewhere(flags[i], complete_outside);
	}
}

/*
 * The same when sock and dst are gone at completion: the memory that the
 * packet let go of is not looked at. The ledger, or the address sanitizer,
 * would tell.
 */
static void c05_skb_completes_after_all_is_gone(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);
	struct dstref_dst *dst = scene_dst(&scene, 0);
	struct dstref_skb skb;

	(void)state;
	scene_enter();
	skb = borrower(sk, dst);
	assert_true(dstref_skb_xmit_release(&skb, DSTREF_SKB_EARLY));
	dstref_sock_put(sk);
	dstref_dst_release(dst);
	scene_leave();
	assert_true(manual_drain());
	assert_int_equal(dstref_load_relaxed(&scene.ended), 1);
	assert_int_equal(dstref_load_relaxed(&scene.routes), 1);
	scene_elsewhere(complete_inside, &skb);
	scene_elsewhere(complete_outside, &skb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scene_test(c03_skb_dst_counts_what_it_holds),
		scene_test(c03_skb_dst_uncached_is_counted_at_once),
		scene_test(skb_xmit_release_does_what_its_flags_say),
		scene_test(skb_xmit_release_lets_go_of_a_held_dst),
		scene_test(skb_xmit_release_says_when_there_is_no_dst_to_keep),
		scene_test(c05_skb_completes_on_another_thread),
		scene_test(c05_skb_completes_after_all_is_gone),
	};

	return cmocka_run_group_tests_name("unit.xmit", tests, NULL, NULL);
}
