/* SPDX-License-Identifier: MIT */
/*
 * unit.skb - what a packet pins, and when it lets go
 *
 * Goal: a packet's charge is exact in every order of set, change, copy and
 * free; the owner is forgotten before its account is touched; what a driver
 * releases at transmit is not touched again at completion, on whatever
 * thread. Method: socks and routes of the manual flavour, whose accounts and
 * counts are read after each step; for "not touched", their bytes before and
 * after.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "scene.h"

static void assert_account(const struct dstref_wmem *wmem, uint32_t packets,
			   int64_t bytes)
{
	assert_int_equal(scene_units(wmem), 1 + packets);
	assert_int_equal(scene_bytes(wmem), bytes);
}

static void let_go(struct dstref_sock *sk)
{
	assert_account(&sk->wmem, 0, 0);
	assert_account(&sk->rmem, 0, 0);
	dstref_sock_put_outside(sk);
}

static struct dstref_skb packet(uint32_t truesize)
{
	struct dstref_skb skb;

	memset(&skb, 0xA5, sizeof(skb));
	dstref_skb_init(&skb, truesize);
	return skb;
}

static void assert_unowned(const struct dstref_skb *skb)
{
	assert_null(dstref_skb_owner(skb));
	assert_int_equal(skb->owner, 0);
	assert_int_equal(skb->charge, 0);
}

/* The owner. */

static void c12_skb_init_defines_every_field(void **state)
{
	static const struct dstref_skb zero;
	struct dstref_skb skb = packet(0);

	(void)state;
	assert_memory_equal(&skb, &zero, sizeof(skb));
	skb = packet(77);
	assert_int_equal(skb.truesize, 77);
	assert_unowned(&skb);
	assert_null(dstref_skb_dst(&skb));
}

static void skb_starts_as_zero(void **state)
{
	static struct dstref_skb skb;

	(void)state;
	scene_enter();
	dstref_skb_orphan(&skb);
	assert_false(dstref_skb_dst_force(&skb));
	dstref_skb_dst_drop(&skb);
	assert_true(dstref_skb_xmit_release(&skb, DSTREF_SKB_EARLY));
	dstref_skb_free(&skb);
	scene_leave();
	dstref_skb_orphan_outside(&skb);
	dstref_skb_free_outside(&skb);
	dstref_skb_free(NULL);
	dstref_skb_free_outside(NULL);
}

static void skb_set_owner_w_charges_the_truesize(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);
	struct dstref_skb skb = packet(300);

	(void)state;
	scene_enter();
	dstref_skb_set_owner_w(&skb, sk);
	assert_account(&sk->wmem, 1, 300);
	assert_account(&sk->rmem, 0, 0);
	assert_ptr_equal(dstref_skb_owner(&skb), sk);
	assert_int_equal(dstref_sock_refs(sk), 1);
	dstref_skb_orphan(&skb);
	assert_unowned(&skb);
	assert_account(&sk->wmem, 0, 0);
	dstref_skb_orphan(&skb);
	assert_account(&sk->wmem, 0, 0);
	scene_leave();
	let_go(sk);
}

static void skb_set_owner_r_charges_the_other_account(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);
	struct dstref_skb skb = packet(300);

	(void)state;
	scene_enter();
	dstref_skb_set_owner_r(&skb, sk);
	assert_account(&sk->rmem, 1, 300);
	assert_account(&sk->wmem, 0, 0);
	assert_ptr_equal(dstref_skb_owner(&skb), sk);
	dstref_skb_orphan(&skb);
	assert_unowned(&skb);
	scene_leave();
	let_go(sk);
}

static void skb_of_no_size_pins_as_well(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);
	struct dstref_skb skb = packet(0);

	(void)state;
	scene_enter();
	dstref_skb_set_owner_w(&skb, sk);
	assert_account(&sk->wmem, 1, 0);
	dstref_sock_put(sk);
	scene_leave();
	assert_true(manual_drain());
	assert_int_equal(dstref_load_relaxed(&scene.ended), 0);
	scene_enter();
	dstref_skb_free(&skb);
	scene_leave();
	assert_true(manual_drain());
	assert_int_equal(dstref_load_relaxed(&scene.ended), 1);
}

/* By another sock, by the same, from receive to transmit and back. */
static void skb_set_owner_lets_go_of_the_one_before(void **state)
{
	struct dstref_sock *one = scene_sock(&scene);
	struct dstref_sock *two = scene_sock(&scene);
	struct dstref_skb skb = packet(100);

	(void)state;
	scene_enter();
	dstref_skb_set_owner_w(&skb, one);
	dstref_skb_set_owner_w(&skb, two);
	assert_account(&one->wmem, 0, 0);
	assert_account(&two->wmem, 1, 100);
	dstref_skb_set_owner_r(&skb, two);
	assert_account(&two->wmem, 0, 0);
	assert_account(&two->rmem, 1, 100);
	dstref_skb_set_owner_r(&skb, one);
	assert_account(&two->rmem, 0, 0);
	assert_account(&one->rmem, 1, 100);
	dstref_skb_set_owner_w(&skb, one);
	assert_account(&one->rmem, 0, 0);
	assert_account(&one->wmem, 1, 100);
	dstref_skb_free(&skb);
	assert_unowned(&skb);
	scene_leave();
	let_go(one);
	let_go(two);
}

/* The packet is all that pins the sock: it must not let go in between. */
static void skb_set_owner_w_again_keeps_the_unit(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);
	struct dstref_skb skb = packet(100);

	(void)state;
	scene_enter();
	dstref_skb_set_owner_w(&skb, sk);
	dstref_sock_put(sk);
	skb.truesize = 250;
	dstref_skb_set_owner_w(&skb, sk);
	assert_int_equal(scene_units(&sk->wmem), 1);
	assert_int_equal(scene_bytes(&sk->wmem), 250);
	assert_int_equal(skb.charge, 250);
	assert_int_equal(manual_pending(), 1); /* the namespace's own */
	dstref_skb_free(&skb);
	scene_leave();
	assert_true(manual_drain());
	assert_int_equal(dstref_load_relaxed(&scene.ended), 1);
}

static void skb_set_owner_of_a_dead_sock_is_refused(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);
	struct dstref_skb skb = packet(100);

	(void)state;
	scene_enter();
	dstref_sock_put(sk);
	dstref_skb_set_owner_w(&skb, sk);
	assert_unowned(&skb);
	dstref_skb_set_owner_r(&skb, sk);
	assert_unowned(&skb);
	capture_expect(DSTREF_REPORT_WMEM_DEAD, 2);
	dstref_skb_free(&skb);
	scene_leave();
}

/* Cut alike at the charge and at its end: nothing is left behind. */
static void skb_too_large_is_cut_and_reported(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);
	struct dstref_skb skb = packet(UINT32_MAX);

	(void)state;
	scene_enter();
	dstref_skb_set_owner_w(&skb, sk);
	capture_expect(DSTREF_REPORT_WMEM_RANGE, 1);
	assert_account(&sk->wmem, 1, DSTREF_WMEM_CHARGE_MAX);
	dstref_skb_free(&skb);
	capture_expect(DSTREF_REPORT_WMEM_RANGE, 1);
	scene_leave();
	let_go(sk);
}

static void look_at_packet(struct dstref_sock *sk, void *data)
{
	struct dstref_skb *skb = data;

	(void)sk;
	assert_unowned(skb);
	skb->truesize = 1; /* was here */
}

static void skb_forgets_its_owner_before_the_account_is_touched(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);
	struct dstref_skb skb = packet(300);
	struct dstref_sock_space space = { look_at_packet, &skb };

	(void)state;
	assert_int_equal(dstref_sock_set_write_space(sk, &space), 0);
	scene_enter();
	for (int how = 0; how < 4; how++) {
		dstref_skb_init(&skb, 300);
		dstref_skb_set_owner_w(&skb, sk);
		if (how == 0)
			dstref_skb_orphan(&skb);
		else if (how == 1)
			dstref_skb_orphan_outside(&skb);
		else if (how == 2)
			dstref_skb_free(&skb);
		else
			dstref_skb_xmit_release(&skb, DSTREF_SKB_EARLY);
		assert_unowned(&skb);
		assert_int_equal(skb.truesize, 1);
	}
	scene_leave();
	let_go(sk);
}

static void skb_set_truesize_charges_the_difference(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);
	struct dstref_skb skb = packet(100);

	(void)state;
	scene_enter();
	dstref_skb_set_truesize(&skb, 120);
	assert_int_equal(skb.truesize, 120);
	assert_unowned(&skb);
	dstref_skb_set_owner_w(&skb, sk);
	assert_account(&sk->wmem, 1, 120);
	dstref_skb_set_truesize(&skb, 500);
	assert_account(&sk->wmem, 1, 500);
	assert_int_equal(skb.truesize, 500);
	dstref_skb_set_truesize(&skb, 0);
	assert_account(&sk->wmem, 1, 0);
	dstref_skb_set_truesize(&skb, 60);
	dstref_skb_set_owner_r(&skb, sk);
	dstref_skb_set_truesize(&skb, 90);
	assert_account(&sk->rmem, 1, 90);
	dstref_skb_set_truesize(&skb, 40);
	assert_account(&sk->rmem, 1, 40);
	assert_account(&sk->wmem, 0, 0);
	dstref_skb_free(&skb);
	scene_leave();
	let_go(sk);
}

/* Fragments. */

static void skb_copy_owner_charges_the_fragment(void **state)
{
	struct dstref_sock *one = scene_sock(&scene);
	struct dstref_sock *two = scene_sock(&scene);
	struct dstref_skb from = packet(100), to = packet(30);

	(void)state;
	scene_enter();
	dstref_skb_set_owner_w(&from, one);
	dstref_skb_set_owner_r(&to, two);
	dstref_skb_copy_owner(&to, &from);
	assert_account(&two->rmem, 0, 0);
	assert_account(&one->wmem, 2, 130);
	assert_int_equal(dstref_sock_refs(one), 1);
	dstref_skb_set_owner_r(&from, two);
	dstref_skb_copy_owner(&to, &from);
	assert_account(&one->wmem, 0, 0);
	assert_account(&two->rmem, 2, 130);
	dstref_skb_orphan(&from);
	dstref_skb_copy_owner(&to, &from); /* that none pays */
	assert_unowned(&to);
	scene_leave();
	let_go(one);
	let_go(two);
}

/* On a thread of its own, which is a reader. */
static void free_inside(void *skb)
{
	reader_register(scene.flavour);
	scene_enter();
	dstref_skb_free(skb);
	scene_leave();
	reader_unregister(scene.flavour);
}

static void free_outside(void *skb)
{
	dstref_skb_free_outside(skb);
}

static void c11_skb_fragments_complete_on_four_threads(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);
	struct dstref_skb part[4];

	(void)state;
	scene_enter();
	for (uint32_t i = 0; i < 4; i++) {
		part[i] = packet(100 << i);
		if (i == 0)
			dstref_skb_set_owner_w(&part[0], sk);
		else
			dstref_skb_copy_owner(&part[i], &part[0]);
	}
	assert_account(&sk->wmem, 4, 1500);
	dstref_sock_put(sk);
	scene_leave();
	for (int i = 4; i--;) {
		assert_true(manual_drain());
		assert_int_equal(dstref_load_relaxed(&scene.ended), 0);
		assert_int_equal(scene_units(&sk->wmem), i + 1);
		assert_int_equal(scene_bytes(&sk->wmem), (200 << i) - 100);
		scene_elsewhere(i % 2 ? free_inside : free_outside, &part[i]);
		assert_unowned(&part[i]);
	}
	assert_true(manual_drain());
	assert_int_equal(dstref_load_relaxed(&scene.ended), 1);
}

static void skb_free_outside_lets_go_of_all_kinds(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);
	struct dstref_dst *dst = scene_dst(&scene, 0);
	struct dstref_skb held = packet(10), received = packet(20);

	(void)state;
	scene_enter();
	dstref_skb_set_owner_w(&held, sk);
	dstref_dst_hold(dst);
	dstref_skb_dst_set(&held, dst);
	dstref_skb_set_owner_r(&received, sk);
	scene_leave();
	scene_elsewhere(free_outside, &held);
	assert_int_equal(dstref_dst_refs(dst), 1);
	assert_account(&sk->wmem, 0, 0);
	assert_null(dstref_skb_dst(&held));
	assert_unowned(&held);
	scene_elsewhere(free_outside, &received);
	assert_unowned(&received);
	dstref_dst_release_outside(dst);
	let_go(sk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scene_test(c12_skb_init_defines_every_field),
		scene_test(skb_starts_as_zero),
		scene_test(skb_set_owner_w_charges_the_truesize),
		scene_test(skb_set_owner_r_charges_the_other_account),
		scene_test(skb_of_no_size_pins_as_well),
		scene_test(skb_set_owner_lets_go_of_the_one_before),
		scene_test(skb_set_owner_w_again_keeps_the_unit),
		scene_test(skb_set_owner_of_a_dead_sock_is_refused),
		scene_test(skb_too_large_is_cut_and_reported),
		scene_test(skb_forgets_its_owner_before_the_account_is_touched),
		scene_test(skb_set_truesize_charges_the_difference),
		scene_test(skb_copy_owner_charges_the_fragment),
		scene_test(c11_skb_fragments_complete_on_four_threads),
		scene_test(skb_free_outside_lets_go_of_all_kinds),
	};

	return cmocka_run_group_tests_name("unit.skb", tests, NULL, NULL);
}
