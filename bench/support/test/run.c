/* SPDX-License-Identifier: MIT */
/*
 * Goal: a run measures what its threads did between their common start and
 * the end of their work, and nothing else; and whatever an operation or a
 * clock is like, a run ends and its results are valid. C26, C28.
 * Method: operations that sleep, that do nothing, that are never done; clocks
 * of our own, that count how often they are read, stand still or are coarse.
 * A sleep has a lower bound, and what is above it is only told apart from
 * threads that would wait for each other.
 */
#include "session.h"

#include <dirent.h>
#include <time.h>

const struct bench_experiment *const bench_experiments[] = { NULL };
const size_t bench_experiment_count;

#define SLEEP_NS 10000000

static struct cpus cpus;

static int open_cpus(void **state)
{
	(void)state;
	return cpus_open(&cpus, NULL, true, "");
}

static int close_cpus(void **state)
{
	(void)state;
	cpus_close(&cpus);
	return 0;
}

/* ---- operations ---- */
static void work_sleep(struct bench_self *self)
{
	const struct timespec t = { 0, SLEEP_NS };

	do {
		nanosleep(&t, NULL);
		self->ops++;
	} while (!bench_over(self));
}

static void work_empty(struct bench_self *self)
{
	BENCH_REPEAT(self, (void)0);
}

static void work_none(struct bench_self *self)
{
	(void)self;
}

static void work_one(struct bench_self *self)
{
	const struct timespec t = { 0, 1000 };

	nanosleep(&t, NULL);
	self->ops = 1;
}

static void work_many(struct bench_self *self)
{
	do {
		self->ops += BENCH_CAP / 4;
	} while (!bench_over(self));
}

static int setup_fails(const struct bench_variant *variant,
		       unsigned int threads, void **state)
{
	(void)variant;
	(void)threads;
	(void)state;
	return -ENOMEM;
}

static void run_for(const struct bench_variant *variant, unsigned int threads,
		    double seconds, const struct run_clock *clock,
		    struct bench_thread *thread)
{
	const struct run_plan plan = { &cpus, clock, seconds };

	assert_int_equal(run_variant(&plan, variant, threads, thread), 0);
}

/* ---- C26 ---- */
static void c26_sleep_is_wall_time_at_every_count(void **state)
{
	static const unsigned int counts[] = { 1, 2, 16, 64 };
	const struct bench_variant v = { .name = "sleep", .work = work_sleep };
	struct bench_thread thread[64];

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		const struct bench_run run = { &v, counts[i], thread };
		double serial = (double)SLEEP_NS * counts[i];
		double fastest, slowest;

		run_for(&v, counts[i], 0.05, &run_clock_system, thread);
		run_extremes(&run, &fastest, &slowest);
		assert_true(fastest >= SLEEP_NS);
		assert_true(slowest >= fastest);
		assert_true(bench_ns_per_op(&run) >= fastest);
		assert_true(bench_ns_per_op(&run) <= slowest);
		if (counts[i] >= 16)
			assert_true(bench_ns_per_op(&run) < serial / 2);
		for (unsigned int j = 0; j < counts[i]; j++)
			assert_true(thread[j].cpu_ns < thread[j].wall_ns);
	}
}

/* A clock that counts, and sees how many threads there are at first. */
static uint64_t reads;
static unsigned int tasks_at_start;

static unsigned int count_tasks(void)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n - 2; /* . and .. */
}

static uint64_t counting_wall(void)
{
	uint64_t n = __atomic_add_fetch(&reads, 1, __ATOMIC_RELAXED);

	if (n == 1)
		tasks_at_start = count_tasks();
	return n;
}

static void c26_one_start_after_all_threads_are_made(void **state)
{
	const struct run_clock counting = { counting_wall,
					    run_clock_system.cpu };
	const struct bench_variant v = { .name = "one", .work = work_one };
	unsigned int before = count_tasks(), seen = 0;
	struct bench_thread thread[16];

	(void)state;
	reads = 0;
	run_for(&v, 16, 0.01, &counting, thread);
	assert_int_equal(tasks_at_start, before + 16);
	/* One read at the start, one at the end of each. */
	assert_int_equal(reads, 17);
	for (int i = 0; i < 16; i++)
		seen |= 1u << (unsigned int)thread[i].wall_ns;
	assert_int_equal(seen, 0x1fffe);
}

static void c26_threads_are_shown(void **state)
{
	const struct bench_variant v[] = { { .name = "sleep",
					     .work = work_sleep } };
	const struct bench_table table = { .name = "t",
					   .title = "t",
					   .variants = v,
					   .count = 1,
					   .unit = "ns" };
	const struct bench_experiment experiment = {
		.name = "test", .question = "?", .tables = &table, .count = 1
	};
	const unsigned int threads[] = { 2, 0 };
	struct kept kept;
	json_t *entry;

	(void)state;
	keep_session(&kept, &experiment, &cpus, &run_clock_system, threads, 1);
	entry = kept_entry(&kept, "t/sleep/threads:2");
	assert_true(kept_number(entry, "thread_min_ns") >= SLEEP_NS);
	assert_true(kept_number(entry, "thread_max_ns") >=
		    kept_number(entry, "thread_min_ns"));
	assert_true(kept_number(entry, "fairness") <= 1);
	assert_non_null(strstr(kept.tables, "thread ns"));
	assert_non_null(strstr(kept.csv, "thread_min_ns,thread_max_ns"));
	kept_free(&kept);
}

/* ---- C28 ---- */
static uint64_t constant(void)
{
	return 42;
}

/* As a system that counts ticks has it. */
static uint64_t coarse_wall(void)
{
	return run_clock_system.wall() / 10000000 * 10000000;
}

static uint64_t coarse_cpu(void)
{
	return run_clock_system.cpu() / 10000000 * 10000000;
}

static const struct bench_variant odd[] = {
	{ .name = "empty", .kind = BENCH_EMPTY, .work = work_empty },
	{ .name = "none", .work = work_none },
	{ .name = "one", .work = work_one },
	{ .name = "many", .work = work_many },
	{ .name = "fails", .setup = setup_fails, .work = work_empty },
};

static const struct bench_table odd_tables[] = {
	{ .name = "ns",
	  .title = "t",
	  .variants = odd,
	  .count = 5,
	  .unit = "ns",
	  .counters = { "counter" } },
	{ .name = "mops",
	  .title = "t",
	  .variants = odd,
	  .count = 5,
	  .baseline = 1,
	  .unit = "Mops/s",
	  .more_is_better = true,
	  .value = bench_mops },
	{ .name = "first",
	  .title = "t",
	  .variants = odd,
	  .count = 5,
	  .unit = "ns",
	  .value = bench_cpu_per_op_of_first },
	{ .name = "samples",
	  .title = "t",
	  .variants = odd,
	  .count = 5,
	  .unit = "ns",
	  .value = bench_sampled },
};

static const struct bench_experiment odd_experiment = {
	.name = "test", .question = "?", .tables = odd_tables, .count = 4
};

/* Times, or the reason why there are none: one or the other for each run. */
static void assert_valid(const struct kept *kept, unsigned int runs)
{
	json_t *list = json_object_get(kept->root, "benchmarks"), *entry;
	json_t *reasons = json_object_get(kept->root, "not_measured");
	size_t i, repetitions = 0;

	json_array_foreach(list, i, entry)
	{
		assert_true(kept_number(entry, "real_time") >= 0);
		assert_true(kept_number(entry, "cpu_time") >= 0);
		repetitions += json_object_get(entry, "repetition_index") !=
			       NULL;
	}
	assert_int_equal(repetitions + json_array_size(reasons),
			 4 * 5 * 2 * runs);
	assert_null(strstr(kept->csv, "nan"));
	assert_null(strstr(kept->csv, "inf"));
	assert_null(strstr(kept->tables, " nan"));
	assert_null(strstr(kept->tables, " inf"));
}

static void keep_odd(struct kept *kept, const struct run_clock *clock,
		     unsigned int runs)
{
	const unsigned int threads[] = { 1, 2, 0 };

	keep_session(kept, &odd_experiment, &cpus, clock, threads, runs);
	assert_valid(kept, runs);
}

static bool is_measured(const struct kept *kept, const char *row)
{
	bool has_reason = kept_find(kept, "not_measured", "run_name", row);

	assert_true(has_reason == !kept_find(kept, "benchmarks", "name", row));
	return !has_reason;
}

static void c28_odd_operations_once(void **state)
{
	struct kept kept;

	(void)state;
	keep_odd(&kept, &run_clock_system, 1);
	assert_true(is_measured(&kept, "ns/empty/threads:1"));
	assert_true(is_measured(&kept, "ns/one/threads:2"));
	assert_true(is_measured(&kept, "mops/one/threads:2"));
	assert_false(is_measured(&kept, "ns/none/threads:1"));
	assert_false(is_measured(&kept, "mops/none/threads:1"));
	assert_false(is_measured(&kept, "samples/one/threads:1"));
	assert_false(is_measured(&kept, "ns/fails/threads:1"));
	assert_null(kept_find(&kept, "benchmarks", "name",
			      "ns/none/threads:1_stddev"));
	assert_null(strstr(kept.tables, "not pinned"));
	assert_string_equal(kept_reason(&kept, "ns/fails/threads:1"),
			    strerror(ENOMEM));
	assert_non_null(strstr(kept.tables, strerror(ENOMEM)));
	kept_free(&kept);
}

static void c28_odd_operations_five_times(void **state)
{
	struct kept kept;

	(void)state;
	keep_odd(&kept, &run_clock_system, 5);
	kept_free(&kept);
}

static void c28_constant_clock(void **state)
{
	const struct run_clock clock = { constant, constant };
	struct kept kept;

	(void)state;
	keep_odd(&kept, &clock, 2);
	assert_false(is_measured(&kept, "ns/empty/threads:1"));
	assert_false(is_measured(&kept, "mops/many/threads:1"));
	kept_free(&kept);
}

static void c28_coarse_clock(void **state)
{
	const struct run_clock clock = { coarse_wall, coarse_cpu };
	struct kept kept;

	(void)state;
	keep_odd(&kept, &clock, 3);
	kept_free(&kept);
}

/* An hour was asked for: it is the cap that ends it. */
static void c28_operations_are_capped(void **state)
{
	const struct bench_variant v = { .name = "many", .work = work_many };
	struct bench_thread thread[2];

	(void)state;
	run_for(&v, 2, 3600, &run_clock_system, thread);
	assert_true(thread[0].ops == BENCH_CAP);
	assert_true(thread[1].ops == BENCH_CAP);
}

static void samples_are_kept_up_to_a_limit(struct bench_self *self)
{
	for (int i = 0; i < 2 * BENCH_SAMPLES; i++)
		bench_sample(self, i);
}

static void median_of_the_samples_that_are_kept(void **state)
{
	const struct bench_variant v = {
		.name = "samples", .work = samples_are_kept_up_to_a_limit
	};
	struct bench_thread thread;
	const struct bench_run run = { &v, 1, &thread };

	(void)state;
	run_for(&v, 1, 1, &run_clock_system, &thread);
	assert_int_equal(thread.sampled, 2 * BENCH_SAMPLES);
	assert_true(bench_sampled(&run) == (BENCH_SAMPLES - 1) / 2.0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c26_sleep_is_wall_time_at_every_count),
		cmocka_unit_test(c26_one_start_after_all_threads_are_made),
		cmocka_unit_test(c26_threads_are_shown),
		cmocka_unit_test(c28_odd_operations_once),
		cmocka_unit_test(c28_odd_operations_five_times),
		cmocka_unit_test(c28_constant_clock),
		cmocka_unit_test(c28_coarse_clock),
		cmocka_unit_test(c28_operations_are_capped),
		cmocka_unit_test(median_of_the_samples_that_are_kept),
	};

	return cmocka_run_group_tests(tests, open_cpus, close_cpus);
}
