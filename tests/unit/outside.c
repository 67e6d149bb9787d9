/* SPDX-License-Identifier: MIT */
/*
 * unit.outside - references taken outside any reader
 *
 * Goal: a holder takes one more reference on a thread that RCU does not know;
 * it counts, and no reader is missed. Of what is dead it takes none, and that
 * is reported by the name of the call. Method: the calls run on a thread that
 * is registered nowhere, while the manual flavour holds the memory still.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scene.h"

static void hold_dst(void *dst)
{
	dstref_dst_hold_outside(dst);
}

static void hold_sock(void *sk)
{
	dstref_sock_hold_outside(sk);
}

static void was_dead(enum dstref_report_kind kind, const void *object,
		     const char *call)
{
	capture_expect(kind, 1);
	assert_ptr_equal(capture_last(kind)->object, object);
	assert_string_equal(capture_last(kind)->call, call);
	capture_expect_none();
}

static void outside_hold_of_a_dst_counts(void **state)
{
	struct dstref_dst *dst = scene_dst(&scene, 0);

	(void)state;
	scene_elsewhere(hold_dst, dst);
	scene_elsewhere(hold_dst, dst);
	assert_int_equal(dstref_dst_refs(dst), 3);
	capture_expect_none();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(dstref_dst_refs(dst), 3 - i);
		dstref_dst_release_outside(dst);
	}
	scene_elsewhere(hold_dst, dst);
	was_dead(DSTREF_REPORT_DST_HOLD_DEAD, dst, "dstref_dst_hold_outside");
	assert_int_equal(dstref_dst_refs(dst), 0);
	assert_true(manual_drain());
	assert_int_equal(dstref_load_relaxed(&scene.routes), 1);
}

static void outside_hold_of_a_sock_counts(void **state)
{
	struct dstref_sock *sk = scene_sock(&scene);

	(void)state;
	scene_elsewhere(hold_sock, sk);
	scene_elsewhere(hold_sock, sk);
	assert_int_equal(dstref_sock_refs(sk), 3);
	capture_expect_none();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(dstref_load_relaxed(&scene.released), 0);
		dstref_sock_put_outside(sk);
	}
	assert_int_equal(dstref_load_relaxed(&scene.released), 1);
	scene_elsewhere(hold_sock, sk);
	was_dead(DSTREF_REPORT_SOCK_HOLD_DEAD, sk, "dstref_sock_hold_outside");
	assert_int_equal(dstref_sock_refs(sk), 0);
	assert_true(manual_drain());
	assert_int_equal(dstref_load_relaxed(&scene.ended), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scene_test(outside_hold_of_a_dst_counts),
		scene_test(outside_hold_of_a_sock_counts),
	};

	return cmocka_run_group_tests_name("unit.outside", tests, NULL, NULL);
}
