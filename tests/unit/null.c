/* SPDX-License-Identifier: MIT */
/*
 * unit.null - what becomes of NULL
 *
 * Goal: a call that lets go of something takes NULL for nothing, in every
 * build. In debug builds every other call reports a NULL by its own name, once,
 * does nothing, and returns what says so. Method: each call, one by one, beside
 * live objects that must not change. The calls of a noun that its own test
 * covers (dst_misuse, slot, sock, wmem, count, net_destroy) are not repeated.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "scene.h"

static void null_is_nothing_to_let_go_of(void **state)
{
	(void)state;
	scene_enter();
	dstref_dst_release(NULL);
	dstref_dst_release_n(NULL, 2);
	dstref_sock_put(NULL);
	dstref_skb_free(NULL);
	scene_leave();
	dstref_dst_release_outside(NULL);
	dstref_dst_release_now(NULL);
	dstref_sock_put_outside(NULL);
	dstref_skb_free_outside(NULL);
	assert_int_equal(dstref_net_destroy(NULL), 0);
	capture_expect_none();
}

#if DSTREF_DEBUG

static void was_named(const char *call)
{
	capture_expect(DSTREF_REPORT_NULL_ARGUMENT, 1);
	assert_string_equal(capture_last(DSTREF_REPORT_NULL_ARGUMENT)->call,
			    call);
}

/* A call with its arguments in brackets; and what it is to return. */
#define CALL(call, args)          \
	do {                      \
		call args;        \
		was_named(#call); \
	} while (0)
#define GIVES(value, call, args)                   \
	do {                                       \
		assert_true(call args == (value)); \
		was_named(#call);                  \
	} while (0)

static void null_dst_is_reported_by_the_call(void **state)
{
	(void)state;
	scene_enter();
	CALL(dstref_dst_hold_outside, (NULL));
	GIVES(0, dstref_dst_refs, (NULL));
	GIVES(false, dstref_dst_check, (NULL, 0));
	GIVES(-ENETDOWN, dstref_dst_input, (NULL, NULL));
	GIVES(-ENETDOWN, dstref_dst_output, (NULL, NULL));
	GIVES(NULL, dstref_dst_slot_borrow, (NULL));
	GIVES(NULL, dstref_dst_slot_hold, (NULL));
	scene_leave();
}

static void null_ref_is_reported_by_the_call(void **state)
{
	struct dstref_dst *dst = scene_dst(&scene, 0);
	struct dstref_dst_ref ref = { 0 };

	(void)state;
	scene_enter();
	GIVES(NULL, dstref_dst_ref_get, (NULL));
	CALL(dstref_dst_ref_drop, (NULL));
	CALL(dstref_dst_ref_drop_outside, (NULL));
	CALL(dstref_dst_ref_set, (NULL, dst));
	CALL(dstref_dst_ref_set_noref, (NULL, dst));
	GIVES(false, dstref_dst_ref_force, (NULL));
	dstref_dst_ref_set_noref(&ref, dst);
	GIVES(false, dstref_dst_ref_copy, (NULL, &ref));
	GIVES(false, dstref_dst_ref_copy, (&ref, NULL));
	assert_ptr_equal(dstref_dst_ref_get(&ref), dst);
	dstref_dst_ref_drop(&ref);
	assert_int_equal(dstref_dst_refs(dst), 1);
	scene_leave();
	dstref_dst_release_outside(dst);
}

static void null_sock_is_reported_by_the_call(void **state)
{
	(void)state;
	scene_enter();
	CALL(dstref_sock_hold_outside, (NULL));
	GIVES(0, dstref_sock_refs, (NULL));
	GIVES(false, dstref_sock_writeable, (NULL));
	GIVES(0, dstref_sock_data_token, (NULL));
	CALL(dstref_sock_recharge_w, (NULL, 1, 2));
	scene_leave();
}

static void null_net_is_reported_by_the_call(void **state)
{
	struct dstref_net_counters stats, before;

	(void)state;
	memset(&stats, 0xA5, sizeof(stats));
	before = stats;
	GIVES(0, dstref_net_now, (NULL));
	CALL(dstref_net_stats, (NULL, &stats));
	assert_memory_equal(&stats, &before, sizeof(stats));
	CALL(dstref_net_stats, (scene.net, NULL));
}

/* What a value is stored in gets zero, as a call returns it. */
static void null_account_is_reported_by_the_call(void **state)
{
	uint64_t value = 1;

	(void)state;
	CALL(dstref_wmem_init, (NULL));
	GIVES(0, dstref_wmem_wait, (NULL));
	CALL(dstref_wmem_wait_end, (NULL));
	GIVES(0, dstref_wmem_read, (NULL));
	GIVES(false, dstref_wmem_charge, (NULL, 1, &value));
	assert_true(value == 0);
	value = 1;
	GIVES(false, dstref_wmem_uncharge, (NULL, 1, &value));
	assert_true(value == 0);
	CALL(dstref_count_init, (NULL, 1));
}

static void null_owner_changes_neither_packet_nor_sock(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);
	struct dstref_skb skb;

	(void)state;
	scene_enter();
	dstref_skb_init(&skb, 100);
	CALL(dstref_skb_set_owner_w, (NULL, sk));
	CALL(dstref_skb_set_owner_r, (NULL, sk));
	assert_int_equal(scene_units(&sk->wmem) + scene_units(&sk->rmem), 2);
	dstref_skb_set_owner_w(&skb, sk);
	CALL(dstref_skb_set_owner_w, (&skb, NULL));
	CALL(dstref_skb_set_owner_r, (&skb, NULL));
	CALL(dstref_skb_copy_owner, (NULL, &skb));
	CALL(dstref_skb_copy_owner, (&skb, NULL));
	assert_ptr_equal(dstref_skb_owner(&skb), sk);
	assert_int_equal(scene_units(&sk->wmem), 2);
	assert_int_equal(scene_bytes(&sk->wmem), 100);
	dstref_skb_free(&skb);
	dstref_sock_put(sk);
	scene_leave();
}

static void null_packet_is_reported_by_the_call(void **state)
{
	struct dstref_dst *dst = scene_dst(&scene, 0);

	(void)state;
	scene_enter();
	CALL(dstref_skb_init, (NULL, 1));
	GIVES(NULL, dstref_skb_owner, (NULL));
	CALL(dstref_skb_orphan, (NULL));
	CALL(dstref_skb_orphan_outside, (NULL));
	CALL(dstref_skb_set_truesize, (NULL, 1));
	GIVES(false, dstref_skb_xmit_release, (NULL, 0));
	GIVES(false, dstref_skb_xmit_release,
	      (NULL, DSTREF_SKB_KEEP_DST | DSTREF_SKB_EARLY));
	GIVES(NULL, dstref_skb_dst, (NULL));
	CALL(dstref_skb_dst_set, (NULL, dst));
	CALL(dstref_skb_dst_set_noref, (NULL, dst));
	GIVES(false, dstref_skb_dst_force, (NULL));
	CALL(dstref_skb_dst_drop, (NULL));
	assert_int_equal(dstref_dst_refs(dst), 1);
	dstref_dst_release(dst);
	scene_leave();
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		scene_test(null_is_nothing_to_let_go_of),
#if DSTREF_DEBUG
		scene_test(null_dst_is_reported_by_the_call),
		scene_test(null_ref_is_reported_by_the_call),
		scene_test(null_sock_is_reported_by_the_call),
		scene_test(null_net_is_reported_by_the_call),
		scene_test(null_account_is_reported_by_the_call),
		scene_test(null_owner_changes_neither_packet_nor_sock),
		scene_test(null_packet_is_reported_by_the_call),
#endif
	};

	return cmocka_run_group_tests_name("unit.null", tests, NULL, NULL);
}
