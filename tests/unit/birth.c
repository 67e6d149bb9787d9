/* SPDX-License-Identifier: MIT */
/*
 * unit.birth - socks that are refused at their birth
 *
 * Goal: a proto of a size that no memory has, a parent whose memory is the
 * user's, and a clone function that returns what is no error, are refused, and
 * leave nothing behind. Method: a ledger of memory and the counters of the
 * namespace, before and after. What else init and alloc refuse is in unit.sock,
 * clones that come to life or fail half way in unit.life.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "scene.h"

#define UNTOUCHED ((struct dstref_sock *)(uintptr_t)0x5a5a)

static uint64_t socks(void)
{
	struct dstref_net_counters stats;

	dstref_net_stats(scene.net, &stats);
	return stats.sock;
}

static unsigned int ended(void)
{
	return dstref_load_relaxed(&scene.ended);
}

/* From half of the address space on, rounding it to lines may wrap. */
static void birth_of_an_absurd_size_is_refused(void **state)
{
	static const size_t sizes[] = { SIZE_MAX, SIZE_MAX / 2 + 1 };
	static struct scene_sock memory;
	struct dstref_sock_proto proto = scene_proto;
	struct dstref_sock *sk = UNTOUCHED;
	uint64_t calls = scene.alloc.calls;

	(void)state;
	for (int i = 0; i < 2; i++) {
		proto.size = sizes[i];
		assert_int_equal(dstref_sock_alloc(&sk, scene.net, &proto),
				 -EINVAL);
		assert_ptr_equal(sk, UNTOUCHED);
		assert_int_equal(
			dstref_sock_init(&memory.sk, scene.net, &proto),
			-EINVAL);
		assert_null(memory.sk.net);
	}
	assert_int_equal(scene.alloc.calls, calls);
	assert_int_equal(socks(), 0);
}

/* proto->destroy would hand memory of the library's to the user's allocator. */
static void birth_by_clone_of_the_users_memory_is_refused(void **state)
{
	static struct scene_sock parent;
	struct dstref_sock *child = UNTOUCHED;
	uint64_t calls = scene.alloc.calls;

	(void)state;
	assert_int_equal(dstref_sock_init(&parent.sk, scene.net, &scene_proto),
			 0);
	assert_int_equal(dstref_sock_clone(&child, &parent.sk), -EINVAL);
	assert_ptr_equal(child, UNTOUCHED);
	assert_int_equal(scene.alloc.calls, calls);
	assert_int_equal(socks(), 1);
	assert_int_equal(dstref_sock_refs(&parent.sk), 1);
	assert_true(manual_drain());
	assert_int_equal(ended(), 0);
	dstref_sock_put_outside(&parent.sk);
	assert_true(manual_drain());
	assert_int_equal(ended(), 1);
}

static int clone_result;

static int clone_op(struct dstref_sock *sk, struct dstref_sock *parent)
{
	assert_ptr_not_equal(sk, parent);
	return clone_result;
}

/* Above zero it is no error of errno's, and no success either. */
static void birth_by_clone_that_returns_a_number_is_refused(void **state)
{
	static const int results[] = { 1, INT32_MAX };
	struct dstref_sock_proto proto = scene_proto;
	struct dstref_sock *parent, *child = UNTOUCHED;
	size_t blocks;

	(void)state;
	proto.clone = clone_op;
	assert_int_equal(dstref_sock_alloc(&parent, scene.net, &proto), 0);
	blocks = scene.alloc.blocks;
	for (int i = 0; i < 2; i++) {
		uint64_t calls = scene.alloc.calls;

		clone_result = results[i];
		assert_int_equal(dstref_sock_clone(&child, parent), -EINVAL);
		assert_ptr_equal(child, UNTOUCHED);
		assert_int_equal(scene.alloc.calls, calls + 1);
		assert_int_equal(scene.alloc.blocks, blocks);
		assert_int_equal(socks(), 1);
	}
	assert_int_equal(ended(), 0);
	dstref_sock_put_outside(parent);
	assert_true(manual_drain());
	assert_int_equal(ended(), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scene_test(birth_of_an_absurd_size_is_refused),
		scene_test(birth_by_clone_of_the_users_memory_is_refused),
		scene_test(birth_by_clone_that_returns_a_number_is_refused),
	};

	return cmocka_run_group_tests_name("unit.birth", tests, NULL, NULL);
}
