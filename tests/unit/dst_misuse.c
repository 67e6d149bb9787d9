/* SPDX-License-Identifier: MIT */
/*
 * unit.dst_misuse - what a wrong caller gets
 *
 * Goal: a put too many, a get too many, a hold of a dead dst, a NULL and a
 * missing reader are each reported by name with the object, and end neither a
 * life twice nor one that is not over (C4, C13, C17). Method: the manual
 * flavour holds the memory still; counts are preset near their limit; threads
 * of the test's own do the damage side by side.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "stress.h"
#include "world.h"

#define THREADS 4
#define TOO_MANY 100000 /* puts of all threads together */
#define BURST 32

/* A dst that outlives its end, so that one may go on misusing it. */
static struct dstref_dst victim;
static unsigned int victim_ended;

static void victim_end(struct dstref_dst *dst)
{
	assert_ptr_equal(dst, &victim);
	victim_ended++;
}

static const struct dstref_dst_ops victim_ops = { .destroy = victim_end };

static void victim_new(struct dstref_net *net)
{
	victim_ended = 0;
	assert_int_equal(dstref_dst_init(&victim, net, &victim_ops, NULL, 0),
			 0);
}

static void on_threads(stress_fn fn)
{
	struct stress run = { .threads = THREADS };

	stress_run(&run, fn, NULL);
}

static void release_too_often(struct stress_thread *thread)
{
	reader_register(&manual_flavor);
	enter();
	for (int i = 0; i < TOO_MANY / THREADS; i++)
		if (thread->index % 2)
			dstref_dst_release(&victim);
		else
			dstref_dst_release_n(&victim, 1 + i % 3);
	leave();
	reader_unregister(&manual_flavor);
}

static void release_too_often_outside(struct stress_thread *thread)
{
	for (int i = 0; i < TOO_MANY / THREADS; i++)
		if (thread->index % 2)
			dstref_dst_release_outside(&victim);
		else
			dstref_dst_release_now(&victim);
}

/* Of n reports those up to 8 and those with a power of two for a number. */
static unsigned int thinned(unsigned int n)
{
	unsigned int delivered = n < 8 ? n : 8;

	for (unsigned int power = 16; power <= n; power *= 2)
		delivered++;
	return delivered;
}

static void c04(struct world *world, stress_fn fn)
{
	unsigned int before = capture_delivered();

	victim_new(world->net);
	dstref_dst_release_outside(&victim);
	dstref_report_reset();
	dstref_report_set_limit(8);
	on_threads(fn);
	capture_expect(DSTREF_REPORT_COUNT_UNDERFLOW, TOO_MANY);
	assert_int_equal(capture_delivered() - before, thinned(TOO_MANY));
	for (unsigned int i = before; i < capture_delivered(); i++) {
		const struct capture_report *report = capture_report(i);

		assert_ptr_equal(report->object, &victim);
		assert_in_range(report->value, DSTREF_COUNT_RELEASED,
				DSTREF_COUNT_NOREF - 1);
		assert_memory_equal(report->call, "dstref_dst_release", 18);
	}
	assert_int_equal(victim_ended, 0);
	assert_true(manual_drain());
	assert_int_equal(victim_ended, 1);
	/* It is dead and stays so, after its end too. */
	dstref_dst_release_outside(&victim);
	capture_expect(DSTREF_REPORT_COUNT_UNDERFLOW, 1);
	assert_true(manual_drain());
	assert_int_equal(victim_ended, 1);
	assert_int_equal(dstref_dst_refs(&victim), 0);
}

static void c04_dst_released_past_zero(void **state)
{
	c04(*state, release_too_often);
}

static void c04_dst_released_past_zero_outside(void **state)
{
	c04(*state, release_too_often_outside);
}

static void c04_dst_released_by_more_than_there_are(void **state)
{
	struct world *world = *state;

	victim_new(world->net);
	enter();
	dstref_dst_release_n(&victim, 3);
	leave();
	capture_expect(DSTREF_REPORT_COUNT_UNDERFLOW, 1);
	assert_ptr_equal(capture_last(DSTREF_REPORT_COUNT_UNDERFLOW)->object,
			 &victim);
	assert_int_equal(capture_last(DSTREF_REPORT_COUNT_UNDERFLOW)->value,
			 UINT32_MAX - 2);
	/* Dead, and told to nobody: it leaks, and the namespace says so. */
	assert_int_equal(dstref_dst_refs(&victim), 0);
	assert_int_equal(manual_pending(), 0);
	assert_int_equal(dstref_net_destroy(world->net), -EBUSY);
	capture_expect(DSTREF_REPORT_NET_BUSY, 1);
	dstref_count_init(&victim.count, 1);
	dstref_dst_release_now(&victim);
}

static void dst_hold_of_a_dead_one_is_reported(void **state)
{
	struct world *world = *state;
	const struct capture_report *report;

	victim_new(world->net);
	enter();
	dstref_dst_release(&victim);
	assert_false(dstref_dst_try_hold(&victim));
	capture_expect_none();
	dstref_dst_hold(&victim);
	capture_expect(DSTREF_REPORT_DST_HOLD_DEAD, 1);
	report = capture_last(DSTREF_REPORT_DST_HOLD_DEAD);
	assert_string_equal(report->call, "dstref_dst_hold");
	assert_ptr_equal(report->object, &victim);
	dstref_dst_hold_n(&victim, 3);
	capture_expect(DSTREF_REPORT_DST_HOLD_DEAD, 1);
	dstref_dst_use(&victim, 0);
	capture_expect(DSTREF_REPORT_DST_HOLD_DEAD, 1);
	assert_int_equal(dstref_dst_refs(&victim), 0);
	leave();
	assert_true(manual_drain());
	assert_int_equal(victim_ended, 1);
}

/* C13: every way to take a reference, each from the edge of the limit. */
enum way { HOLD, HOLD_N, TRY_HOLD, USE, FORCE, COPY, SLOT, WAYS };

static void take(enum way way)
{
	struct dstref_dst_slot slot = { &victim };
	struct dstref_dst_ref ref = { 0 }, copy = { 0 };

	if (way == HOLD)
		dstref_dst_hold(&victim);
	else if (way == HOLD_N)
		dstref_dst_hold_n(&victim, BURST);
	else if (way == TRY_HOLD)
		assert_true(dstref_dst_try_hold(&victim));
	else if (way == USE)
		dstref_dst_use(&victim, 0);
	else if (way == SLOT)
		assert_ptr_equal(dstref_dst_slot_hold(&slot), &victim);
	dstref_dst_ref_set_noref(&ref, &victim);
	if (way == FORCE)
		assert_true(dstref_dst_ref_force(&ref));
	else if (way == COPY)
		assert_true(dstref_dst_ref_copy(&copy, &ref));
}

static void preset(uint32_t refs)
{
	dstref_init_plain(&victim.count.word, refs - 1);
}

/* It leaks and the namespace says so; then the test mends the count. */
static void leaked(struct world *world)
{
	assert_int_equal(dstref_dst_refs(&victim), DSTREF_COUNT_MAX);
	assert_true(manual_drain());
	assert_int_equal(victim_ended, 0);
	assert_int_equal(dstref_net_destroy(world->net), -EBUSY);
	capture_expect(DSTREF_REPORT_NET_BUSY, 1);
	capture_expect(DSTREF_REPORT_NET_LEAK, 1);
	assert_ptr_equal(capture_last(DSTREF_REPORT_NET_LEAK)->object, &victim);
	assert_int_equal(capture_last(DSTREF_REPORT_NET_LEAK)->value,
			 DSTREF_COUNT_MAX);
	dstref_count_init(&victim.count, 1);
	dstref_dst_release_now(&victim);
	assert_int_equal(victim_ended, 1);
}

static void c13_way(enum way way)
{
	uint32_t step = way == HOLD_N ? BURST : 1;

	preset(DSTREF_COUNT_MAX - step);
	enter();
	take(way);
	assert_int_equal(dstref_dst_refs(&victim), DSTREF_COUNT_MAX);
	capture_expect_none();
	take(way);
	capture_expect(DSTREF_REPORT_COUNT_SATURATED, 1);
	assert_ptr_equal(capture_last(DSTREF_REPORT_COUNT_SATURATED)->object,
			 &victim);
	for (int i = 0; i < 3; i++) {
		dstref_dst_release(&victim);
		assert_int_equal(dstref_dst_refs(&victim), DSTREF_COUNT_MAX);
	}
	take(way);
	dstref_dst_release_n(&victim, DSTREF_COUNT_N_MAX);
	leave();
	dstref_dst_release_outside(&victim);
	dstref_dst_release_now(&victim);
	capture_expect_none();
}

static void c13_dst_saturates_leaks_and_stays(void **state)
{
	struct world *world = *state;

	victim_new(world->net);
	for (enum way way = HOLD; way < WAYS; way++)
		c13_way(way);
	leaked(world);
}

/* All ways at once, and puts between them: it saturates and stays. */
static void take_and_release(struct stress_thread *thread)
{
	reader_register(&manual_flavor);
	enter();
	for (int i = 0; i < 1000; i++) {
		dstref_dst_hold_n(&victim, 40000);
		if (!dstref_dst_try_hold(&victim))
			thread->failed++;
		if (i % 4 == 0)
			dstref_dst_release_n(&victim, 40000);
		dstref_dst_release(&victim);
	}
	leave();
	reader_unregister(&manual_flavor);
	dstref_dst_release_outside(&victim);
}

static void c13_dst_saturates_under_threads(void **state)
{
	struct world *world = *state;
	struct stress run = { .threads = THREADS };
	struct stress_thread sums;

	victim_new(world->net);
	preset(DSTREF_COUNT_MAX - 1000000);
	stress_run(&run, take_and_release, &sums);
	assert_int_equal(sums.failed, 0);
	/* Threads may pass the limit side by side before one pins it. */
	capture_expect_some(DSTREF_REPORT_COUNT_SATURATED);
	capture_expect_none();
	leaked(world);
}

#if DSTREF_DEBUG

static void was_null(const char *call)
{
	capture_expect_some(DSTREF_REPORT_NULL_ARGUMENT);
	assert_string_equal(capture_last(DSTREF_REPORT_NULL_ARGUMENT)->call,
			    call);
}

static void dst_null_is_reported_by_the_call(void **state)
{
	(void)state;
	enter();
	dstref_dst_hold(NULL);
	was_null("dstref_dst_hold");
	dstref_dst_hold_n(NULL, 1);
	was_null("dstref_dst_hold_n");
	assert_false(dstref_dst_try_hold(NULL));
	was_null("dstref_dst_try_hold");
	dstref_dst_use_noref(NULL, 0);
	was_null("dstref_dst_use_noref");
	dstref_dst_use(NULL, 0);
	was_null("dstref_dst_use_noref");
	dstref_dst_dead(NULL);
	was_null("dstref_dst_dead");
	leave();
}

static void was_outside(const char *call)
{
	capture_expect(DSTREF_REPORT_READER_MISSING, 1);
	assert_string_equal(capture_last(DSTREF_REPORT_READER_MISSING)->call,
			    call);
	assert_ptr_equal(capture_last(DSTREF_REPORT_READER_MISSING)->object,
			 &victim);
}

/* Reported, and done all the same. */
static void dst_missing_reader_is_reported_by_the_call(void **state)
{
	struct world *world = *state;

	victim_new(world->net);
	dstref_dst_hold(&victim);
	was_outside("dstref_dst_hold");
	dstref_dst_hold_n(&victim, 2);
	was_outside("dstref_dst_hold_n");
	assert_true(dstref_dst_try_hold(&victim));
	was_outside("dstref_dst_try_hold");
	dstref_dst_use_noref(&victim, 0);
	was_outside("dstref_dst_use_noref");
	assert_int_equal(dstref_dst_refs(&victim), 5);
	dstref_dst_release(&victim);
	was_outside("dstref_dst_release");
	dstref_dst_release_n(&victim, 2);
	was_outside("dstref_dst_release_n");
	dstref_dst_dead(&victim);
	dstref_dst_release_outside(&victim);
	dstref_dst_release_now(&victim);
	capture_expect_none();
	assert_int_equal(victim_ended, 1);
}

static void read_unregistered(struct stress_thread *thread)
{
	(void)thread;
	reader_lock(&manual_flavor);
	if (!dstref_dst_try_hold(&victim))
		thread->failed++;
	reader_unlock(&manual_flavor);
	dstref_dst_release_outside(&victim);
}

/* C17: each of the two faults of each thread is told, and one is the dst's. */
static void c17_dst_unregistered_reader_is_reported(void **state)
{
	struct world *world = *state;

	victim_new(world->net);
	on_threads(read_unregistered);
	capture_expect(DSTREF_REPORT_READER_MISSING, THREADS);
	assert_int_equal(manual_faults(MANUAL_NOT_REGISTERED), THREADS);
	assert_int_equal(manual_faults(MANUAL_NOT_INSIDE), THREADS);
	assert_int_equal(dstref_dst_refs(&victim), 1);
	assert_true(manual_drain());
	manual_reset();
	dstref_dst_release_now(&victim);
}

/* C17: for QSBR a thread reads while it is registered and online. */
static void c17_dst_qsbr_thread_reads_only_online(void **state)
{
	const struct rcu_flavor_struct *qsbr = &urcu_qsbr_flavor;
	const struct dstref_net_attr attr = { .flavour = qsbr };
	struct dstref_net *net;

	(void)state;
	assert_int_equal(dstref_net_create(&net, &attr), 0);
	victim_new(net);
	dstref_dst_hold(&victim);
	was_outside("dstref_dst_hold");
	reader_register(qsbr);
	dstref_dst_hold(&victim);
	capture_expect_none();
	reader_offline(qsbr);
	dstref_dst_release(&victim);
	was_outside("dstref_dst_release");
	reader_online(qsbr);
	dstref_dst_release_n(&victim, 2);
	capture_expect_none();
	assert_int_equal(dstref_net_destroy(net), 0);
	reader_unregister(qsbr);
	assert_int_equal(victim_ended, 1);
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(c04_dst_released_past_zero),
		world_test(c04_dst_released_past_zero_outside),
		world_test(c04_dst_released_by_more_than_there_are),
		world_test(dst_hold_of_a_dead_one_is_reported),
		world_test(c13_dst_saturates_leaks_and_stays),
		world_test(c13_dst_saturates_under_threads),
#if DSTREF_DEBUG
		world_test(dst_null_is_reported_by_the_call),
		world_test(dst_missing_reader_is_reported_by_the_call),
		world_test(c17_dst_unregistered_reader_is_reported),
		world_test(c17_dst_qsbr_thread_reads_only_online),
#endif
	};

	return cmocka_run_group_tests_name("dst_misuse", tests, NULL, NULL);
}
