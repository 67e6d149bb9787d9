/* SPDX-License-Identifier: MIT */
/*
 * Goal: what the experiment `cold` calls cold was cold, and where it was not,
 * the reader is told. C27.
 * Method: the way of this machine; eviction, as where there is no flush or a
 * program may not use it; and a flush that does nothing, through which the
 * warning must come. The experiment is compiled in, so that its flush can be
 * replaced.
 *
 * That cold is dear is the claim itself, so it is timed: medians over many
 * passes, and margins that are wide beside what is expected. In memory, a cold
 * line is some hundred times as dear as a hot one, and 5 times is asked; a
 * second line is as dear as the first, and a fifth of that is asked. Sanitizers
 * and valgrind add work of their own to every visit; there the timed tests are
 * skipped. The rest is not.
 */
#include "session.h"

#include "../../experiments/cold.c"
#include "../../experiments/cold/chase.c"
#include "../../experiments/cold/dst.c"
#include "../../experiments/cold/hashinfo.c"

#include "../stats.h"

#include <math.h>
#include <signal.h>
#include <unistd.h>

const struct bench_experiment *const bench_experiments[] = { NULL };
const size_t bench_experiment_count;

#define SAMPLES 1000
#define SAMPLES_EVICTED 100 /* each reads some MiB */

/* ---- flushes ---- */
static void flush_nothing(const void *line)
{
	(void)line;
}

/* As the kernel answers where a program may not flush. */
static void flush_traps(const void *line)
{
	(void)line;
	(void)raise(SIGILL);
}

static const struct cold_flush nothing_flush = { "by nothing", flush_nothing };
static const struct cold_flush trapping_flush = { "by a trap", flush_traps };

static const struct cold_flush *find_nothing(void)
{
	return &nothing_flush;
}

/* ---- where time says nothing ---- */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static void skip_where_time_says_nothing(void)
{
	const char *preload = getenv("LD_PRELOAD");
	const char *why = NULL;

	if (SANITIZED)
		why = "a sanitizer adds to each visit";
	else if (preload && strstr(preload, "vgpreload"))
		why = "valgrind adds to each visit";
	if (!why)
		return;
	print_message("# skipped: %s\n", why);
	skip();
}

/* ---- sets ---- */
static struct cold_way by_machine;

static int open_machine(void **state)
{
	(void)state;
	return cold_way_open(&by_machine, cold_flush_of_machine());
}

static int close_machine(void **state)
{
	(void)state;
	cold_way_close(&by_machine);
	return 0;
}

static void open_set(struct cold_set *set, const struct cold_way *by,
		     const struct cold_shape *shape)
{
	assert_int_equal(cold_set_open(set, by, shape->size), 0);
	for (size_t i = 0; shape->make && i < COLD_OBJECTS; i++)
		assert_int_equal(shape->make(cold_object(set, i), shape), 0);
}

static double median(double *values, size_t count)
{
	stats_sort(values, count);
	return stats_quantile(values, count, 0.5);
}

/* The medians of many passes over one line. */
static struct cold_times one_line(const struct cold_way *by, size_t passes)
{
	static double cold[SAMPLES], hot[SAMPLES];
	struct cold_set set;

	open_set(&set, by, &cold_one_line);
	for (size_t i = 0; i < passes; i++) {
		struct cold_times times = cold_pass(&set, cold_one_line.lap);

		cold[i] = times.cold;
		hot[i] = times.hot;
	}
	cold_set_close(&set);
	return (struct cold_times){ median(cold, passes), median(hot, passes) };
}

static void print_times(const struct cold_way *by, const struct cold_times *t)
{
	print_message("# %s: cold %.1f ns, hot %.1f ns, of which %.1f are not "
		      "the line's\n",
		      by->what, t->cold, t->hot, by->empty);
}

/* ---- C27 ---- */
static void c27_cold_is_five_times_hot(void **state)
{
	struct cold_times times;

	(void)state;
	skip_where_time_says_nothing();
	times = one_line(&by_machine, SAMPLES);
	print_times(&by_machine, &times);
	assert_true(times.cold - by_machine.empty >=
		    5 * (times.hot - by_machine.empty));
	assert_false(cold_is_warm(&times, by_machine.empty));
}

static void c27_two_lines_are_dearer_than_one(void **state)
{
	static double one_cold[SAMPLES], two_cold[SAMPLES];
	struct cold_set a, b;
	double m1, m2;

	(void)state;
	skip_where_time_says_nothing();
	open_set(&a, &by_machine, &cold_one_line);
	open_set(&b, &by_machine, &two_lines);
	for (size_t i = 0; i < SAMPLES; i++) {
		one_cold[i] = cold_pass(&a, cold_one_line.lap).cold;
		two_cold[i] = cold_pass(&b, two_lines.lap).cold;
	}
	cold_set_close(&a);
	cold_set_close(&b);
	m1 = median(one_cold, SAMPLES);
	m2 = median(two_cold, SAMPLES);
	print_message("# one line %.1f ns, two lines %.1f ns\n", m1, m2);
	assert_true(m2 > 1.2 * m1);
}

static void assert_evicts(const struct cold_way *by)
{
	assert_null(by->flush);
	assert_non_null(by->buffer);
	assert_true(by->size > 0);
	assert_non_null(strstr(by->what, "by reading"));
}

static void c27_no_instruction_evicts(void **state)
{
	struct cold_times times;
	struct cold_way by;

	(void)state;
	assert_int_equal(cold_way_open(&by, NULL), 0);
	assert_evicts(&by);
	if (!SANITIZED) {
		times = one_line(&by, SAMPLES_EVICTED);
		print_times(&by, &times);
	}
	cold_way_close(&by);
	skip_where_time_says_nothing();
	assert_false(cold_is_warm(&times, by.empty));
}

static void c27_forbidden_instruction_evicts(void **state)
{
	struct cold_way by;

	(void)state;
	assert_int_equal(cold_way_open(&by, &trapping_flush), 0);
	assert_evicts(&by);
	cold_way_close(&by);
}

static void c27_allowed_instruction_is_used(void **state)
{
	struct cold_way by;

	(void)state;
	assert_int_equal(cold_way_open(&by, &nothing_flush), 0);
	assert_ptr_equal(by.flush, &nothing_flush);
	assert_null(by.buffer);
	assert_string_equal(by.what, "by nothing");
	cold_way_close(&by);
}

static void c27_warm_is_below_five_times(void **state)
{
	static const struct {
		struct cold_times times;
		bool warm;
	} cases[] = {
		{ { 100, 1 + 4 }, false },    { { 4 + 5, 4 + 1 }, false },
		{ { 4 + 4.9, 4 + 1 }, true }, { { 5, 5 }, true },
		{ { 4, 4 }, true }, /* nothing but what is not the object's */
		{ { 0, 0 }, true }, /* a clock that stands still */
		{ { NAN, 5 }, true },	      { { 9, NAN }, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(cold_is_warm(&cases[i].times, 4),
				 cases[i].warm);
}

/* The experiment's tables, made cold by @by. */
static void keep_tables(struct kept *kept, const struct cold_flush *(*by)(void))
{
	const unsigned int threads[] = { 1, 0 };
	struct cpus cpus;

	find_flush = by;
	assert_int_equal(cpus_open(&cpus, NULL, true, ""), 0);
	keep_session(kept, &bench_cold, &cpus, &run_clock_system, threads, 1);
	cpus_close(&cpus);
	cold_way_close(&way);
	is_open = false;
}

static void c27_what_stayed_warm_is_called_out(void **state)
{
	struct kept kept;

	(void)state;
	keep_tables(&kept, find_nothing);
	assert_non_null(strstr(kept.tables, "made cold by nothing."));
	assert_non_null(strstr(kept.tables, "NOT COLD: lines/one-line: "));
	assert_non_null(strstr(kept.tables, "NOT COLD: lines/cold-2: "));
	assert_non_null(strstr(kept.tables, "NOT COLD: hashinfo/pointer: "));
	assert_non_null(strstr(kept.tables, "NOT COLD: dst/held: "));
	/* Those that are meant to be hot. */
	assert_null(strstr(kept.tables, "NOT COLD: lines/hot-1"));
	assert_null(strstr(kept.tables, "NOT COLD: lines/nothing"));
	assert_null(strstr(kept.tables, "NOT COLD: written/"));
	kept_free(&kept);
}

static void c27_what_was_cold_is_not_called_out(void **state)
{
	struct kept kept;

	(void)state;
	skip_where_time_says_nothing();
	keep_tables(&kept, cold_flush_of_machine);
	assert_null(strstr(kept.tables, "NOT COLD: lines/"));
	assert_null(strstr(kept.tables, "NOT COLD: hashinfo/"));
	assert_non_null(strstr(kept.tables, by_machine.what));
	kept_free(&kept);
}

/* ---- sets and laps ---- */
static unsigned int visits[COLD_OBJECTS];
static char *visited_memory;

static void note(void *object, size_t lap)
{
	size_t at = (size_t)((char *)object - visited_memory);

	(void)lap;
	visits[at / 4096]++;
}

COLD_LAP(lap_note, note)

static void laps_visit_each_object_once(void **state)
{
	unsigned int before[COLD_OBJECTS];
	struct cold_set set;
	bool moved = false;

	(void)state;
	assert_int_equal(cold_set_open(&set, &by_machine, COLD_SIZE), 0);
	visited_memory = set.memory;
	memset(visits, 0, sizeof(visits));
	for (unsigned int pass = 0; pass < 8; pass++) {
		memcpy(before, set.place, sizeof(before));
		(void)cold_pass(&set, lap_note);
		moved |= !!memcmp(before, set.place, sizeof(before));
		for (size_t i = 1; i < COLD_OBJECTS; i++)
			assert_int_equal(visits[i], visits[0]);
	}
	assert_true(visits[0] >= 8 * 2);
	assert_true(moved);
	cold_set_close(&set);
}

/* Nor does any lie in the last pair of a page, which is read before a lap. */
static void objects_start_pairs_on_pages_of_their_own(void **state)
{
	bool seen[COLD_OBJECTS] = { false };
	struct cold_set set;

	(void)state;
	assert_int_equal(cold_set_open(&set, &by_machine, COLD_SIZE), 0);
	for (size_t i = 0; i < COLD_OBJECTS; i++) {
		uint32_t page = set.place[i] / 4096, at = set.place[i] % 4096;

		assert_true(page < COLD_OBJECTS && !seen[page]);
		seen[page] = true;
		assert_int_equal((uintptr_t)cold_object(&set, i) % COLD_PAIR,
				 0);
		assert_true(at + COLD_SIZE <= 4096 - COLD_PAIR);
	}
	cold_set_close(&set);
}

static void objects_that_are_too_large_are_refused(void **state)
{
	struct cold_set set;

	(void)state;
	assert_int_equal(cold_set_open(&set, &by_machine, COLD_SIZE + 1),
			 -EINVAL);
}

/* What a row says it brings in. */
static void shapes_touch_the_lines_that_they_say(void **state)
{
	(void)state;
	assert_int_equal(by_pointer.lines, 2);
	assert_int_equal(embedded.lines, 1);
	assert_int_equal(proposed.lines, 1);
	assert_int_equal(shared.lines, 1);
	assert_int_equal(shape_held.lines, 2);
	assert_int_equal(shape_noref.lines, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c27_cold_is_five_times_hot),
		cmocka_unit_test(c27_two_lines_are_dearer_than_one),
		cmocka_unit_test(c27_no_instruction_evicts),
		cmocka_unit_test(c27_forbidden_instruction_evicts),
		cmocka_unit_test(c27_allowed_instruction_is_used),
		cmocka_unit_test(c27_warm_is_below_five_times),
		cmocka_unit_test(c27_what_stayed_warm_is_called_out),
		cmocka_unit_test(c27_what_was_cold_is_not_called_out),
		cmocka_unit_test(laps_visit_each_object_once),
		cmocka_unit_test(objects_start_pairs_on_pages_of_their_own),
		cmocka_unit_test(objects_that_are_too_large_are_refused),
		cmocka_unit_test(shapes_touch_the_lines_that_they_say),
	};

	return cmocka_run_group_tests(tests, open_machine, close_machine);
}
