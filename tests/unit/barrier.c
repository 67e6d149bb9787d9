/* SPDX-License-Identifier: MIT */
/*
 * unit.barrier - a wait with an end, and a reader without one
 *
 * Goal: a reader that stays inside holds callbacks up, but not a barrier that
 * has a timeout: it returns while the reader is still there. Method: liburcu's
 * memb flavour, whose own barrier would wait for the reader. A thread stays
 * inside until it is told to leave, and leaves by itself after a time that no
 * machine takes for the timeout, so that the test fails rather than hangs.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "scene.h"

#define FLAVOUR (&urcu_memb_flavor)
#define MS INT64_C(1000000)
#define TIMEOUT (20 * MS)
#define STAY 10000 /* naps of a millisecond */

static DSTREF_ATOMIC(bool) inside, leave, left;

static void nap(void)
{
	static const struct timespec ms = { 0, MS };

	nanosleep(&ms, NULL);
}

static void *stay_inside(void *arg)
{
	(void)arg;
	reader_register(FLAVOUR);
	reader_lock(FLAVOUR);
	dstref_store_release(&inside, true);
	for (int i = 0; i < STAY && !dstref_load_relaxed(&leave); i++)
		nap();
	dstref_store_release(&left, true);
	reader_unlock(FLAVOUR);
	reader_unregister(FLAVOUR);
	return NULL;
}

static void barrier_is_not_held_up_by_a_reader(void **state)
{
	struct scene s;
	pthread_t reader;

	(void)state;
	scene_begin(&s, FLAVOUR);
	struct dstref_dst *dst = scene_dst(&s, 0);

	assert_int_equal(pthread_create(&reader, NULL, stay_inside, NULL), 0);
	while (!dstref_load_acquire(&inside))
		nap();
	dstref_dst_release_outside(dst);
	assert_int_equal(dstref_net_barrier(s.net, 0), -ETIMEDOUT);
	assert_int_equal(dstref_net_barrier(s.net, TIMEOUT), -ETIMEDOUT);
	assert_false(dstref_load_acquire(&left));
	assert_int_equal(dstref_load_relaxed(&s.routes), 0);
	capture_expect(DSTREF_REPORT_NET_BUSY, 2);
	assert_string_equal(capture_last(DSTREF_REPORT_NET_BUSY)->call,
			    "dstref_net_barrier");
	dstref_store_relaxed(&leave, true);
	assert_int_equal(pthread_join(reader, NULL), 0);
	assert_int_equal(dstref_net_barrier(s.net, -1), 0);
	assert_int_equal(dstref_load_relaxed(&s.routes), 1);
	assert_int_equal(scene_end(&s), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		capture_test(barrier_is_not_held_up_by_a_reader),
	};

	return cmocka_run_group_tests_name("unit.barrier", tests, NULL, NULL);
}
