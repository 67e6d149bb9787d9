/* SPDX-License-Identifier: MIT */
/*
 * unit.count - every zone of the word, every edge between two
 *
 * Goal: a count never wraps, revives, or tells twice, whatever is called on
 * it, in release builds too. Method: the word is set by hand to each value
 * that matters, as other threads would have left it between their operation
 * and its correction, and one call is made. dstref_count_put_slow() is what a
 * put does once it has subtracted: calling it stands for a thread that was
 * stopped there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dstref/count.h>

#include "capture.h"
#include "stress.h"

#define MAX DSTREF_COUNT_MAX
#define SATURATED DSTREF_COUNT_SATURATED
#define RELEASED DSTREF_COUNT_RELEASED
#define DEAD DSTREF_COUNT_DEAD
#define NOREF DSTREF_COUNT_NOREF
#define N_MAX DSTREF_COUNT_N_MAX

static uint32_t word(const struct dstref_count *count)
{
	return dstref_load_relaxed(&count->word);
}

static struct dstref_count count_at(uint32_t value)
{
	struct dstref_count count;

	dstref_init_plain(&count.word, value);
	return count;
}

/* The rest of a put that took the word to NOREF. */
static bool put_rest(struct dstref_count *count)
{
	return dstref_count_put_slow(count, NOREF, count, "put_rest");
}

static bool in_zone(uint32_t value, uint32_t zone)
{
	return zone == SATURATED ? value >= MAX && value < RELEASED
				 : value >= RELEASED;
}

static void count_starts_with_its_references(void **state)
{
	static const uint32_t refs[] = { 1, 2, 1000, MAX - 1, MAX };
	struct dstref_count count;

	(void)state;
	for (int i = 0; i < 5; i++) {
		dstref_count_init(&count, refs[i]);
		assert_int_equal(dstref_count_read(&count), refs[i]);
		assert_int_equal(word(&count), refs[i] - 1);
	}
	dstref_count_init(&count, 0);
	assert_int_equal(dstref_count_read(&count), 0);
	assert_int_equal(word(&count), DEAD);
	assert_false(dstref_count_get(&count));
}

static void count_get_and_put_balance(void **state)
{
	struct dstref_count count;

	(void)state;
	dstref_count_init(&count, 1);
	for (int i = 0; i < 100; i++)
		assert_true(dstref_count_get(&count));
	assert_int_equal(dstref_count_read(&count), 101);
	for (int i = 0; i < 100; i++)
		assert_false(dstref_count_put(&count));
	assert_int_equal(dstref_count_read(&count), 1);
}

static void count_put_tells_once(void **state)
{
	struct dstref_count count;

	(void)state;
	dstref_count_init(&count, 2);
	assert_false(dstref_count_put(&count));
	assert_true(dstref_count_put(&count));
	assert_int_equal(word(&count), DEAD);
	assert_int_equal(dstref_count_read(&count), 0);
	for (int i = 0; i < 10; i++)
		assert_false(dstref_count_put(&count));
	capture_expect(DSTREF_REPORT_COUNT_UNDERFLOW, 10);
}

static void count_get_dead_fails(void **state)
{
	struct dstref_count count;

	(void)state;
	dstref_count_init(&count, 1);
	assert_true(dstref_count_put(&count));
	for (int i = 0; i < 1000; i++) {
		assert_false(dstref_count_get(&count));
		assert_false(dstref_count_get_n(&count, N_MAX));
		assert_int_equal(word(&count), DEAD);
	}
}

static void count_put_outside_goes_straight_to_dead(void **state)
{
	struct dstref_count count;

	(void)state;
	dstref_count_init(&count, 3);
	assert_false(dstref_count_put_outside(&count));
	assert_int_equal(word(&count), 1);
	assert_false(dstref_count_put_outside(&count));
	assert_int_equal(word(&count), 0);
	assert_true(dstref_count_put_outside(&count));
	assert_int_equal(word(&count), DEAD);
	assert_false(dstref_count_get(&count));
}

static void count_put_outside_of_many(void **state)
{
	struct dstref_count count;

	(void)state;
	dstref_count_init(&count, 10);
	assert_false(dstref_count_put_outside_of(&count, 9, &count, "test"));
	assert_int_equal(dstref_count_read(&count), 1);
	dstref_count_init(&count, 10);
	assert_true(dstref_count_put_outside_of(&count, 10, &count, "test"));
	assert_int_equal(word(&count), DEAD);
	dstref_count_init(&count, 10);
	assert_false(dstref_count_put_outside_of(&count, 11, &count, "test"));
	assert_int_equal(word(&count), DEAD);
	capture_expect(DSTREF_REPORT_COUNT_UNDERFLOW, 1);
	assert_ptr_equal(capture_report(0)->object, &count);
	assert_string_equal(capture_report(0)->call, "test");
}

/* Whoever puts outside when nobody has a reference is wrong, and told so. */
static void count_put_outside_misused(void **state)
{
	static const uint32_t words[] = { DEAD, DEAD - 5, NOREF - 1, NOREF };

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct dstref_count count = count_at(words[i]);

		assert_false(dstref_count_put_outside(&count));
		assert_int_equal(word(&count), DEAD);
		capture_expect(DSTREF_REPORT_COUNT_UNDERFLOW, 1);
		assert_ptr_equal(
			capture_last(DSTREF_REPORT_COUNT_UNDERFLOW)->object,
			&count);
	}
}

static void count_n_at_its_edges(void **state)
{
	struct dstref_count count;

	(void)state;
	dstref_count_init(&count, 1);
	assert_true(dstref_count_get_n(&count, 0));
	assert_int_equal(dstref_count_read(&count), 1);
	assert_false(dstref_count_put_n(&count, 0));
	assert_int_equal(dstref_count_read(&count), 1);
	assert_true(dstref_count_get_n(&count, N_MAX));
	assert_int_equal(dstref_count_read(&count), N_MAX + 1);
	assert_false(dstref_count_put_n(&count, N_MAX));
	assert_int_equal(dstref_count_read(&count), 1);
	capture_expect_none();
	assert_false(dstref_count_get_n(&count, N_MAX + 1));
	assert_false(dstref_count_get_n(&count, UINT32_MAX));
	capture_expect(DSTREF_REPORT_COUNT_RANGE, 2);
	dstref_store_relaxed(&count.word, N_MAX + 10u);
	assert_false(dstref_count_put_n(&count, N_MAX + 1));
	assert_false(dstref_count_put_n(&count, UINT32_MAX));
	capture_expect(DSTREF_REPORT_COUNT_RANGE, 2);
	assert_int_equal(word(&count), N_MAX + 10);
	assert_int_equal(capture_report(3)->value, UINT32_MAX);
	assert_ptr_equal(capture_report(3)->object, &count);
}

static void count_put_n_of_all_tells(void **state)
{
	struct dstref_count count;

	(void)state;
	dstref_count_init(&count, N_MAX);
	assert_true(dstref_count_put_n(&count, N_MAX));
	assert_int_equal(word(&count), DEAD);
	dstref_count_init(&count, 32);
	assert_false(dstref_count_put_n(&count, 33));
	assert_int_equal(word(&count), DEAD);
	capture_expect(DSTREF_REPORT_COUNT_UNDERFLOW, 1);
}

/* No reference is held, nobody was told: a reader may still get one. */
static void count_revived_before_it_is_told(void **state)
{
	struct dstref_count count = count_at(NOREF);

	(void)state;
	assert_int_equal(dstref_count_read(&count), 0);
	assert_true(dstref_count_get(&count));
	assert_int_equal(word(&count), 0);
	assert_false(put_rest(&count)); /* the first put comes too late */
	assert_int_equal(word(&count), 0);
	assert_true(dstref_count_put(&count));
	assert_int_equal(word(&count), DEAD);
	count = count_at(NOREF);
	assert_true(dstref_count_get_n(&count, 7));
	assert_int_equal(word(&count), 6);
	assert_false(put_rest(&count));
	assert_true(dstref_count_put_n(&count, 7));
}

static void count_told_before_it_is_revived(void **state)
{
	struct dstref_count count = count_at(NOREF);

	(void)state;
	assert_true(put_rest(&count));
	assert_int_equal(word(&count), DEAD);
	assert_false(dstref_count_get(&count));
	assert_false(put_rest(&count)); /* two puts that both saw NOREF */
}

/* Two puts saw NOREF, the second after a revival: one is told. */
static void count_revived_and_put_again_tells_one(void **state)
{
	struct dstref_count count = count_at(NOREF);

	(void)state;
	assert_true(dstref_count_get(&count));
	assert_true(dstref_count_put(&count));
	assert_false(put_rest(&count));
	assert_int_equal(word(&count), DEAD);
}

/* Taking no reference must not rob the put that is about to be told. */
static void count_get_of_none_leaves_the_last_put_alone(void **state)
{
	struct dstref_count count = count_at(NOREF);

	(void)state;
	if (dstref_count_get_n(&count, 0))
		assert_int_equal(word(&count), NOREF); /* either may be said */
	assert_true(put_rest(&count));
	count = count_at(DEAD);
	assert_false(dstref_count_get_n(&count, 0));
	assert_int_equal(word(&count), DEAD);
	count = count_at(SATURATED);
	assert_true(dstref_count_get_n(&count, 0));
	assert_int_equal(word(&count), SATURATED);
}

/* Every call, on the lowest, middle and highest word of a zone. */
static void zone_is_sticky(uint32_t word_before, uint32_t zone)
{
	bool alive = zone == SATURATED;
	struct dstref_count count = count_at(word_before);

	assert_int_equal(dstref_count_get(&count), alive);
	assert_true(in_zone(word(&count), zone));
	count = count_at(word_before);
	assert_int_equal(dstref_count_get_n(&count, N_MAX), alive);
	assert_true(in_zone(word(&count), zone));
	count = count_at(word_before);
	assert_false(dstref_count_put(&count));
	assert_true(in_zone(word(&count), zone));
	count = count_at(word_before);
	assert_false(dstref_count_put_n(&count, N_MAX));
	assert_true(in_zone(word(&count), zone));
	count = count_at(word_before);
	assert_false(dstref_count_put_outside(&count));
	assert_true(in_zone(word(&count), zone));
	assert_int_equal(dstref_count_read(&count), alive ? MAX : 0);
}

static void count_dead_is_sticky(void **state)
{
	static const uint32_t drift = 8191u * N_MAX / 4;

	(void)state;
	zone_is_sticky(DEAD, DEAD);
	zone_is_sticky(DEAD + drift, DEAD);
	zone_is_sticky(DEAD - drift, DEAD);
	zone_is_sticky(RELEASED + N_MAX, DEAD);
	zone_is_sticky(NOREF - N_MAX, DEAD);
	capture_expect(DSTREF_REPORT_COUNT_UNDERFLOW, 15);
	capture_expect_some(DSTREF_REPORT_COUNT_CROWDED);
}

static void count_saturated_is_sticky(void **state)
{
	static const uint32_t drift = 8191u * N_MAX / 4;

	(void)state;
	zone_is_sticky(SATURATED, SATURATED);
	zone_is_sticky(SATURATED + drift, SATURATED);
	zone_is_sticky(SATURATED - drift, SATURATED);
	capture_expect_none();
	zone_is_sticky(MAX + N_MAX, SATURATED);
	zone_is_sticky(RELEASED - 1 - N_MAX, SATURATED);
	capture_expect_some(DSTREF_REPORT_COUNT_CROWDED);
}

/* A pinned word that strayed tells of too many threads, and only that. */
static void count_crowded(void **state)
{
	struct dstref_count count = count_at(SATURATED + 0x18000000);

	(void)state;
	assert_true(dstref_count_get(&count));
	capture_expect(DSTREF_REPORT_COUNT_CROWDED, 1);
	assert_int_equal(capture_report(0)->value, SATURATED + 0x18000001);
	count = count_at(SATURATED + 0x18000000);
	assert_false(dstref_count_put(&count));
	capture_expect(DSTREF_REPORT_COUNT_CROWDED, 1);
	count = count_at(DEAD - 0x18000000);
	assert_false(dstref_count_get(&count));
	capture_expect(DSTREF_REPORT_COUNT_CROWDED, 1);
	assert_int_equal(word(&count), DEAD);
	count = count_at(DEAD + 1000 * N_MAX);
	assert_false(dstref_count_get(&count));
	assert_int_equal(word(&count), DEAD);
}

/* Another thread passed the limit and has not pinned yet: that is no crowd. */
static void count_two_at_the_limit_are_no_crowd(void **state)
{
	struct dstref_count count = count_at(MAX);

	(void)state;
	assert_true(dstref_count_get(&count));
	assert_int_equal(word(&count), SATURATED);
	count = count_at(MAX + 1);
	assert_false(dstref_count_put(&count));
	assert_int_equal(word(&count), SATURATED);
	assert_int_equal(dstref_report_count(DSTREF_REPORT_COUNT_CROWDED), 0);
	capture_expect_none();
}

/* C13: past the limit, by each call that can pass it. */
static void c13_count_saturates(void **state)
{
	struct dstref_count count;

	(void)state;
	dstref_count_init(&count, MAX - 1);
	assert_true(dstref_count_get(&count));
	assert_int_equal(dstref_count_read(&count), MAX);
	capture_expect_none();
	assert_true(dstref_count_get(&count));
	assert_int_equal(word(&count), SATURATED);
	capture_expect(DSTREF_REPORT_COUNT_SATURATED, 1);
	assert_ptr_equal(capture_report(0)->object, &count);
	for (int i = 0; i < 3; i++) {
		assert_false(dstref_count_put(&count));
		assert_int_equal(word(&count), SATURATED);
		assert_false(dstref_count_put_n(&count, N_MAX));
		assert_int_equal(word(&count), SATURATED);
		assert_false(dstref_count_put_outside(&count));
		assert_int_equal(word(&count), SATURATED);
		assert_int_equal(dstref_count_read(&count), MAX);
	}
}

static void c13_count_saturates_by_get_n(void **state)
{
	struct dstref_count count;

	(void)state;
	dstref_count_init(&count, MAX - 1);
	assert_true(dstref_count_get_n(&count, N_MAX));
	assert_int_equal(word(&count), SATURATED);
	capture_expect(DSTREF_REPORT_COUNT_SATURATED, 1);
	dstref_count_init(&count, MAX - N_MAX);
	assert_true(dstref_count_get_n(&count, N_MAX));
	assert_int_equal(dstref_count_read(&count), MAX);
	assert_false(dstref_count_put_n(&count, N_MAX));
	assert_int_equal(dstref_count_read(&count), MAX - N_MAX);
}

/* C4: 100,000 releases past zero from 4 threads. */
static void release_past_zero(struct stress_thread *thread)
{
	for (int i = 0; i < 25000; i++)
		thread->told += dstref_count_put(thread->arg);
}

static void c04_release_past_zero_is_reported(void **state)
{
	struct dstref_count count;
	struct stress run = { .threads = 4, .arg = &count };
	struct stress_thread sums;

	(void)state;
	dstref_report_set_limit(8);
	dstref_count_init(&count, 1);
	assert_true(dstref_count_put(&count));
	stress_run(&run, release_past_zero, &sums);
	stress_assert_equal(&run, sums.told, 0);
	capture_expect(DSTREF_REPORT_COUNT_UNDERFLOW, 100000);
	/* 1 to 8, then 16, 32, .. 65536. */
	assert_int_equal(capture_delivered(), 8 + 13);
	for (unsigned int i = 0; i < capture_delivered(); i++) {
		assert_ptr_equal(capture_report(i)->object, &count);
		assert_true(in_zone((uint32_t)capture_report(i)->value, DEAD));
		assert_string_equal(capture_report(i)->call,
				    "dstref_count_put");
	}
	assert_true(in_zone(word(&count), DEAD));
	assert_false(dstref_count_get(&count));
}

static void count_near_limit(void **state)
{
	struct dstref_count count;

	(void)state;
	dstref_count_init(&count, DSTREF_COUNT_NEAR - 1);
	assert_false(dstref_count_near_limit(&count));
	assert_true(dstref_count_get(&count));
	assert_true(dstref_count_near_limit(&count));
	count = count_at(SATURATED);
	assert_true(dstref_count_near_limit(&count));
	count = count_at(DEAD);
	assert_false(dstref_count_near_limit(&count));
	count = count_at(NOREF);
	assert_false(dstref_count_near_limit(&count));
}

static void count_null_is_reported_in_debug(void **state)
{
	(void)state;
	if (!DSTREF_DEBUG)
		skip();
	assert_false(dstref_count_get(NULL));
	assert_false(dstref_count_get_n(NULL, 1));
	assert_false(dstref_count_put(NULL));
	assert_false(dstref_count_put_n(NULL, 1));
	assert_false(dstref_count_put_outside(NULL));
	assert_int_equal(dstref_count_read(NULL), 0);
	assert_false(dstref_count_near_limit(NULL));
	capture_expect(DSTREF_REPORT_NULL_ARGUMENT, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		capture_test(count_starts_with_its_references),
		capture_test(count_get_and_put_balance),
		capture_test(count_put_tells_once),
		capture_test(count_get_dead_fails),
		capture_test(count_put_outside_goes_straight_to_dead),
		capture_test(count_put_outside_of_many),
		capture_test(count_put_outside_misused),
		capture_test(count_n_at_its_edges),
		capture_test(count_put_n_of_all_tells),
		capture_test(count_revived_before_it_is_told),
		capture_test(count_told_before_it_is_revived),
		capture_test(count_revived_and_put_again_tells_one),
		capture_test(count_get_of_none_leaves_the_last_put_alone),
		capture_test(count_dead_is_sticky),
		capture_test(count_saturated_is_sticky),
		capture_test(count_crowded),
		capture_test(count_two_at_the_limit_are_no_crowd),
		capture_test(c13_count_saturates),
		capture_test(c13_count_saturates_by_get_n),
		capture_test(c04_release_past_zero_is_reported),
		capture_test(count_near_limit),
		capture_test(count_null_is_reported_in_debug),
	};

	return cmocka_run_group_tests_name("count", tests, NULL, NULL);
}
