/* SPDX-License-Identifier: MIT */
/*
 * unit.burst - bursts come to the same as single calls, in fewer operations
 *
 * Goal: whatever the order inside a burst, and however long it is, counts and
 * accounts are what the single calls would have made them; each object is
 * settled once for each chunk of 64 packets; a sock's write-space callback
 * hears of a burst once; who pins what does not end early. Method: the same
 * random bursts by both ways, on twin objects; calls are told apart by what
 * only one call in each can do, a callback.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "scene.h"

#define OBJECTS 24 /* more than a list is searched for */
#define PACKETS 200 /* more than three chunks */

static struct dstref_skb packets[PACKETS];
static struct dstref_skb *skb[PACKETS];
static struct dstref_dst *dst[OBJECTS], *dsts[PACKETS];
static struct dstref_sock *sk[OBJECTS], *sks[PACKETS];

static uint32_t random_below(uint32_t n)
{
	static uint64_t x = 88172645463325252u;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (uint32_t)(x >> 33) % n;
}

static void packets_new(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		skb[i] = &packets[i];
		dstref_skb_init(skb[i], 100 + i);
	}
}

static void objects_new(struct scene *s, int n)
{
	for (int i = 0; i < n; i++) {
		dst[i] = scene_dst(s, 0);
		sk[i] = scene_sock(s);
	}
}

static void objects_end(int n)
{
	for (int i = 0; i < n; i++) {
		assert_int_equal(dstref_dst_refs(dst[i]), 1);
		assert_int_equal(scene_units(&sk[i]->wmem), 1);
		assert_int_equal(scene_bytes(&sk[i]->wmem), 0);
		dstref_dst_release_outside(dst[i]);
		dstref_sock_put_outside(sk[i]);
	}
}

/* Every count and account after a burst, from the packets alone. */
static void assert_counts(uint32_t n, int objects)
{
	for (int o = 0; o < objects; o++) {
		uint32_t refs = 1, units = 1;
		int64_t bytes = 0;

		for (uint32_t i = 0; i < n; i++) {
			refs += dstref_skb_dst(skb[i]) == dst[o];
			if (dstref_skb_owner(skb[i]) != sk[o])
				continue;
			units++;
			bytes += skb[i]->charge;
			assert_int_equal(skb[i]->charge, skb[i]->truesize);
		}
		assert_int_equal(dstref_dst_refs(dst[o]), refs);
		assert_int_equal(scene_units(&sk[o]->wmem), units);
		assert_int_equal(scene_bytes(&sk[o]->wmem), bytes);
	}
}

static void a_burst_in_any_order_counts_as_single_calls(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 2, 32, 64, 65, PACKETS };
	static const int objects[] = { 1, 2, 8, OBJECTS };

	(void)state;
	objects_new(&scene, OBJECTS);
	for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
		for (size_t o = 0; o < sizeof(objects) / sizeof(*objects);
		     o++) {
			uint32_t n = sizes[s];

			packets_new(n);
			for (uint32_t i = 0; i < n; i++) {
				dsts[i] =
					dst[random_below((uint32_t)objects[o])];
				sks[i] = sk[random_below((uint32_t)objects[o])];
			}
			scene_enter();
			assert_int_equal(dstref_skb_dst_set_bulk(skb, dsts, n),
					 n);
			dstref_skb_set_owner_w_bulk(skb, sks, n);
			for (uint32_t i = 0; i < n; i++) {
				assert_ptr_equal(dstref_skb_dst(skb[i]),
						 dsts[i]);
				assert_ptr_equal(dstref_skb_owner(skb[i]),
						 sks[i]);
			}
			assert_counts(n, OBJECTS);
			/* Once more, over what they had. */
			assert_int_equal(dstref_skb_dst_set_bulk(skb, dsts, n),
					 n);
			dstref_skb_set_owner_w_bulk(skb, sks, n);
			assert_counts(n, OBJECTS);
			dstref_skb_free_bulk(skb, n);
			scene_leave();
			for (uint32_t i = 0; i < n; i++) {
				assert_int_equal(skb[i]->dst.word, 0);
				assert_int_equal(skb[i]->owner, 0);
				assert_int_equal(skb[i]->charge, 0);
			}
			assert_counts(n, OBJECTS);
		}
	objects_end(OBJECTS);
}

static void a_burst_of_all_sorts_is_freed(void **state)
{
	(void)state;
	objects_new(&scene, 2);
	packets_new(5);
	scene_enter();
	dstref_skb_dst_set_noref(skb[0], dst[0]); /* borrowed: no reference */
	dstref_dst_hold(dst[1]);
	dstref_skb_dst_set(skb[1], dst[1]);
	dstref_skb_set_owner_w(skb[1], sk[0]);
	dstref_skb_set_owner_r(skb[2], sk[0]);
	skb[3] = NULL;
	dstref_skb_free_bulk(skb, 5);
	scene_leave();
	assert_int_equal(packets[0].dst.word, 0);
	assert_int_equal(scene_units(&sk[0]->rmem), 1);
	objects_end(2);
}

static unsigned int heard;

static void on_space(struct dstref_sock *sock, void *data)
{
	(void)sock;
	(void)data;
	heard++;
}

static void a_callback_hears_of_a_burst_once(void **state)
{
	static const struct dstref_sock_space space = { on_space, NULL };

	(void)state;
	objects_new(&scene, 1);
	packets_new(64);
	assert_int_equal(dstref_sock_set_write_space(sk[0], &space), 0);
	for (int i = 0; i < 64; i++)
		sks[i] = sk[0];
	scene_enter();
	dstref_skb_set_owner_w_bulk(skb, sks, 64);
	heard = 0;
	dstref_skb_free_bulk(skb, 64);
	assert_int_equal(heard, 1);
	dstref_skb_set_owner_w_bulk(skb, sks, 64);
	heard = 0;
	for (int i = 0; i < 64; i++)
		dstref_skb_free(skb[i]);
	assert_int_equal(heard, 64);
	scene_leave();
	objects_end(1);
}

static void a_dead_dst_leaves_its_packets_empty(void **state)
{
	struct dstref_dst *dead;

	(void)state;
	objects_new(&scene, 1);
	packets_new(4);
	dead = scene_dst(&scene, 0);
	scene_enter();
	dstref_dst_release(dead); /* the reader keeps the memory */
	dsts[0] = dsts[2] = dead;
	dsts[1] = dst[0];
	dsts[3] = NULL;
	assert_int_equal(dstref_skb_dst_set_bulk(skb, dsts, 4), 1);
	assert_null(dstref_skb_dst(skb[0]));
	assert_ptr_equal(dstref_skb_dst(skb[1]), dst[0]);
	assert_null(dstref_skb_dst(skb[2]));
	assert_null(dstref_skb_dst(skb[3]));
	dstref_skb_free_bulk(skb, 4);
	scene_leave();
	objects_end(1);
}

/* The packets are all that pins the sock, and name it again. */
static void an_owner_that_is_set_again_does_not_end(void **state)
{
	struct dstref_sock *last;

	(void)state;
	packets_new(3);
	last = scene_sock(&scene);
	for (int i = 0; i < 3; i++)
		sks[i] = last;
	scene_enter();
	dstref_skb_set_owner_w_bulk(skb, sks, 3);
	dstref_sock_put(last);
	dstref_skb_set_owner_w_bulk(skb, sks, 3);
	assert_int_equal(scene_units(&last->wmem), 3);
	dstref_skb_free_bulk(skb, 3);
	scene_leave();
	assert_true(manual_drain());
	assert_int_equal(dstref_load_relaxed(&scene.ended), 1);
}

/* Together more than an account takes at once. */
static void charges_beyond_one_operation_are_split(void **state)
{
	const uint32_t half = DSTREF_WMEM_CHARGE_MAX / 2 + 1;

	(void)state;
	objects_new(&scene, 1);
	packets_new(3);
	for (int i = 0; i < 3; i++) {
		skb[i]->truesize = half;
		sks[i] = sk[0];
	}
	scene_enter();
	dstref_skb_set_owner_w_bulk(skb, sks, 3);
	assert_int_equal(scene_units(&sk[0]->wmem), 4);
	assert_int_equal(scene_bytes(&sk[0]->wmem), 3 * (int64_t)half);
	dstref_skb_free_bulk(skb, 3);
	scene_leave();
	objects_end(1);
	capture_expect_none();
}

static void an_account_takes_n_packets(void **state)
{
	struct dstref_wmem wmem;
	uint64_t value;

	(void)state;
	dstref_wmem_init(&wmem);
	assert_true(dstref_wmem_charge_n(&wmem, 64, 6400, &value));
	assert_int_equal(dstref_wmem_value_units(value), 1);
	assert_false(dstref_wmem_charge_n(&wmem, 0, 1, NULL));
	assert_false(dstref_wmem_charge_n(&wmem, 65, 1, NULL));
	assert_false(dstref_wmem_uncharge_n(&wmem, 65, 1, NULL));
	capture_expect(DSTREF_REPORT_WMEM_RANGE, 2);
	assert_int_equal(scene_units(&wmem), 65);
	assert_int_equal(scene_bytes(&wmem), 6400);
	assert_false(dstref_wmem_close(&wmem, NULL));
	assert_false(dstref_wmem_uncharge_n(&wmem, 63, 6300, &value));
	assert_int_equal(dstref_wmem_value_units(value), 1);
	assert_true(dstref_wmem_uncharge_n(&wmem, 1, 100, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scene_test(a_burst_in_any_order_counts_as_single_calls),
		scene_test(a_burst_of_all_sorts_is_freed),
		scene_test(a_callback_hears_of_a_burst_once),
		scene_test(a_dead_dst_leaves_its_packets_empty),
		scene_test(an_owner_that_is_set_again_does_not_end),
		scene_test(charges_beyond_one_operation_are_split),
		scene_test(an_account_takes_n_packets),
	};

	return cmocka_run_group_tests_name("unit.burst", tests, NULL, NULL);
}
