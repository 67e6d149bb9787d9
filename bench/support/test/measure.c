/* SPDX-License-Identifier: MIT */
/*
 * Goal: the rounds of a table are interleaved, its ratios are taken pair by
 * pair, and what the figures alone would hide is said beside them.
 * Method: variants that write down when they ran, and values out of a list,
 * chosen so that every other way of computing gives another result.
 */
#include "session.h"
#include "../stats.h"

#include <math.h>

const struct bench_experiment *const bench_experiments[] = { NULL };
const size_t bench_experiment_count;

static struct cpus cpus;

static int open_cpus(void **state)
{
	(void)state;
	return cpus_open(&cpus, NULL, false, "");
}

static int close_cpus(void **state)
{
	(void)state;
	cpus_close(&cpus);
	return 0;
}

static void work_one(struct bench_self *self)
{
	self->ops = 1;
	self->counter[0] = 10 + self->id;
}

/* ---- order ---- */
static char trace[64];

static int setup_trace(const struct bench_variant *variant,
		       unsigned int threads, void **state)
{
	size_t len = strlen(trace);

	(void)state;
	snprintf(trace + len, sizeof(trace) - len, "%s%u ", variant->name,
		 threads);
	return 0;
}

static void rounds_are_interleaved(void **state)
{
	const struct bench_variant v[] = {
		{ .name = "a", .setup = setup_trace, .work = work_one },
		{ .name = "b", .setup = setup_trace, .work = work_one },
	};
	const struct bench_table table = { .name = "t",
					   .title = "t",
					   .variants = v,
					   .count = 2,
					   .unit = "ns" };
	const struct run_plan plan = { &cpus, &run_clock_system, 1 };
	const unsigned int threads[] = { 1, 2, 0 };
	struct outcome o;

	(void)state;
	trace[0] = '\0';
	assert_int_equal(measure_table(&o, &table, &plan, threads, 2, NULL), 0);
	assert_string_equal(trace, "a1 b1 a2 b2 a1 b1 a2 b2 ");
	assert_int_equal(measure_runs(&table, threads, 2), 8);
	outcome_free(&o);
}

/* ---- values ---- */
#define RUNS 5

struct values {
	double value[RUNS];
	unsigned int next;
};

static double value(const struct bench_run *run)
{
	struct values *values = (struct values *)run->variant->context;

	return values->value[values->next++ % RUNS];
}

static void keep_values(struct kept *kept, struct values *a, struct values *b)
{
	static const unsigned int one[] = { 1, 0 };
	const struct bench_variant v[] = {
		{ .name = "a", .work = work_one, .context = a },
		{ .name = "b", .work = work_one, .context = b },
	};
	const struct bench_table table = { .name = "t",
					   .title = "t",
					   .variants = v,
					   .count = 2,
					   .unit = "ns",
					   .value = value,
					   .threads = one,
					   .counters = { NULL, "c" } };
	const struct bench_experiment experiment = {
		.name = "test", .question = "?", .tables = &table, .count = 1
	};
	const unsigned int three[] = { 3, 0 };

	keep_session(kept, &experiment, &cpus, &run_clock_system, three, RUNS);
}

/* The line of a variant among the tables. */
static const char *line(const struct kept *kept, const char *variant)
{
	static char copy[160];
	char start[16];
	const char *found;

	snprintf(start, sizeof(start), "\n%s ", variant);
	found = strstr(kept->tables, start);
	assert_non_null(found);
	snprintf(copy, sizeof(copy), "%.*s", (int)strcspn(found + 1, "\n"),
		 found + 1);
	return copy;
}

/* Ratios 20 0.5 3 1 4, median 3; the medians' is 20 / 10, the reverse 1/3. */
static void ratio_is_pair_by_pair(void **state)
{
	struct values a = { .value = { 1, 10, 100, 40, 2 } };
	struct values b = { .value = { 20, 5, 300, 40, 8 } };
	struct kept kept;

	(void)state;
	keep_values(&kept, &a, &b);
	assert_non_null(strstr(line(&kept, "b"), " 3.00 (1.00-4.00)"));
	assert_non_null(strstr(line(&kept, "a"), " baseline"));
	assert_true(kept_number(kept_entry(&kept, "t/b/threads:1"), "ratio") ==
		    20);
	assert_true(kept_number(kept_entry(&kept, "t/b/threads:1_median"),
				"real_time") == 20);
	assert_true(kept_number(kept_entry(&kept, "t/b/threads:1_q1"),
				"real_time") == 8);
	assert_true(kept_number(kept_entry(&kept, "t/b/threads:1_min"),
				"real_time") == 5);
	kept_free(&kept);
}

/* A pair with one value is none; a row is made of what there is. */
static void not_measured_is_left_out(void **state)
{
	struct values a = { .value = { 1, NAN, 1, INFINITY, 1 } };
	struct values b = { .value = { 7, 50, 0, 50, 9 } };
	struct kept kept;

	(void)state;
	keep_values(&kept, &a, &b);
	assert_non_null(strstr(line(&kept, "b"), " 8.00 (7.50-8.50)"));
	assert_non_null(strstr(kept.csv, "\"a\",1,0,0,3,"));
	assert_non_null(strstr(kept.csv, "\"b\",1,0,0,4,"));
	kept_free(&kept);
}

static void two_modes_are_said(void **state)
{
	struct values a = { .value = { 1, 10, 1, 10, 10 } };
	struct values b = { .value = { 1, 4, 6, 8, 11 } };
	struct kept kept;

	(void)state;
	keep_values(&kept, &a, &b);
	assert_non_null(strstr(line(&kept, "a"), "bimodal"));
	assert_non_null(strstr(line(&kept, "b"), "wide"));
	kept_free(&kept);
}

static void narrow_needs_no_remark(void **state)
{
	struct values a = { .value = { 10, 11, 12, 13, 14 } };
	struct values b = { .value = { 10, 10, 10, 10, 10 } };
	struct kept kept;

	(void)state;
	keep_values(&kept, &a, &b);
	assert_null(strstr(kept.tables, "bimodal"));
	assert_null(strstr(kept.tables, "wide"));
	kept_free(&kept);
}

/* ---- tables ---- */
static int cannot(const struct bench_table *table, const char **why)
{
	(void)table;
	*why = "needs two moons";
	return -1;
}

static void what_cannot_be_prepared_says_why(void **state)
{
	const struct bench_variant v[] = { { .name = "a", .work = work_one } };
	const struct bench_table tables[] = {
		{ .name = "t",
		  .title = "t",
		  .variants = v,
		  .count = 1,
		  .unit = "ns",
		  .prepare = cannot },
		{ .name = "u",
		  .title = "t",
		  .variants = v,
		  .count = 1,
		  .unit = "ns",
		  .counters = { "c" } },
	};
	const struct bench_experiment experiment = {
		.name = "test", .question = "?", .tables = tables, .count = 2
	};
	const unsigned int two[] = { 2, 0 };
	struct kept kept;

	(void)state;
	keep_session(&kept, &experiment, &cpus, &run_clock_system, two, 1);
	assert_non_null(strstr(kept.tables, "not measured: needs two moons"));
	assert_string_equal(kept_reason(&kept, "t"), "needs two moons");
	assert_null(kept_find(&kept, "benchmarks", "name", "t/a/threads:2"));
	/* 10 and 11 of two operations. */
	assert_true(kept_number(kept_entry(&kept, "u/a/threads:2"), "c") ==
		    10.5);
	kept_free(&kept);
}

static void quantiles(void **state)
{
	double x[] = { 4, 1, 3, 2 };

	(void)state;
	stats_sort(x, 4);
	assert_true(stats_quantile(x, 4, 0) == 1);
	assert_true(stats_quantile(x, 4, 0.25) == 1.75);
	assert_true(stats_quantile(x, 4, 0.5) == 2.5);
	assert_true(stats_quantile(x, 4, 1) == 4);
	assert_true(stats_quantile(x, 1, 0.5) == 1);
	assert_true(isnan(stats_quantile(x, 0, 0.5)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rounds_are_interleaved),
		cmocka_unit_test(ratio_is_pair_by_pair),
		cmocka_unit_test(not_measured_is_left_out),
		cmocka_unit_test(two_modes_are_said),
		cmocka_unit_test(narrow_needs_no_remark),
		cmocka_unit_test(what_cannot_be_prepared_says_why),
		cmocka_unit_test(quantiles),
	};

	return cmocka_run_group_tests(tests, open_cpus, close_cpus);
}
