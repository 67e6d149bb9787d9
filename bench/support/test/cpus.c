/* SPDX-License-Identifier: MIT */
/*
 * Goal: threads go to CPUs that this process may use, no more are counted
 * than it is granted, a pin that failed is shown, and what the machine does
 * not tell is "unknown". C24, C25.
 * Method: an affinity of one CPU; a CPU that does not exist; trees of files
 * that look like /proc and /sys of machines with and without a quota.
 */
#include "session.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

const struct bench_experiment *const bench_experiments[] = { NULL };
const size_t bench_experiment_count;

static void work_empty(struct bench_self *self)
{
	BENCH_REPEAT(self, (void)0);
}

static const struct bench_variant empty[] = {
	{ .name = "empty", .kind = BENCH_EMPTY, .work = work_empty },
};
static const struct bench_table table = {
	.name = "t", .title = "t", .variants = empty, .count = 1, .unit = "ns"
};
static const struct bench_experiment experiment = {
	.name = "test", .question = "?", .tables = &table, .count = 1
};
static const unsigned int two[] = { 2, 0 };

/* ---- C25: affinity and pins ---- */
static int last_cpu(const cpu_set_t *set)
{
	int last = -1;

	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, set))
			last = i;
	return last;
}

/* The last CPU alone: not number 0, where there are two. */
static void c25_one_allowed_cpu(void **state)
{
	cpu_set_t before, one;
	struct kept kept;
	struct cpus cpus;
	int last;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	last = last_cpu(&before);
	CPU_ZERO(&one);
	CPU_SET(last, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(cpus_open(&cpus, NULL, true, ""), 0);
	assert_int_equal(cpus.count, 1);
	assert_int_equal(cpus.id[0], last);
	keep_session(&kept, &experiment, &cpus, &run_clock_system, two, 1);
	assert_int_equal(kept_number(kept_entry(&kept, "t/empty/threads:2"),
				     "unpinned_threads"),
			 0);
	assert_true(json_is_true(json_object_get(
		kept_entry(&kept, "t/empty/threads:2"), "oversubscribed")));
	assert_non_null(strstr(kept.tables, "oversubscribed"));
	assert_null(strstr(kept.tables, " not pinned\n"));
	kept_free(&kept);
	cpus_close(&cpus);
	sched_setaffinity(0, sizeof(before), &before);
}

/* The second thread is told to go where no CPU is. */
static void c25_failed_pin_is_shown(void **state)
{
	struct cpus cpus;
	struct kept kept;
	unsigned int id[2], *own;

	(void)state;
	assert_int_equal(cpus_open(&cpus, NULL, true, ""), 0);
	own = cpus.id;
	id[0] = own[0];
	id[1] = 1000;
	cpus.id = id;
	cpus.count = 2;
	keep_session(&kept, &experiment, &cpus, &run_clock_system, two, 1);
	assert_int_equal(kept_number(kept_entry(&kept, "t/empty/threads:2"),
				     "unpinned_threads"),
			 1);
	assert_non_null(strstr(kept.tables, "1 not pinned"));
	assert_non_null(strstr(kept.csv, "\"empty\",2,0,1,1,"));
	kept_free(&kept);
	cpus.id = own;
	cpus_close(&cpus);
}

static void c25_unpinned_is_no_failure(void **state)
{
	struct cpus cpus;
	struct kept kept;

	(void)state;
	assert_int_equal(cpus_open(&cpus, NULL, false, ""), 0);
	keep_session(&kept, &experiment, &cpus, &run_clock_system, two, 1);
	assert_int_equal(kept_number(kept_entry(&kept, "t/empty/threads:2"),
				     "unpinned_threads"),
			 0);
	assert_true(json_is_false(json_object_get(
		json_object_get(kept.root, "context"), "pinned")));
	assert_non_null(strstr(kept.tables, ", not pinned\n"));
	kept_free(&kept);
	cpus_close(&cpus);
}

/* Threads that are not pinned stay on the CPUs that were chosen. */
static void c25_unpinned_within_the_list(void **state)
{
	cpu_set_t before, now;
	struct cpus cpus;
	char list[16];
	int last;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	last = last_cpu(&before);
	snprintf(list, sizeof(list), "%d", last);
	assert_int_equal(cpus_open(&cpus, list, false, ""), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_int_equal(CPU_COUNT(&now), 1);
	assert_true(CPU_ISSET(last, &now));
	cpus_close(&cpus);
	sched_setaffinity(0, sizeof(before), &before);
}

static void assert_counts(unsigned int cpus, size_t n,
			  const unsigned int *wanted)
{
	unsigned int threads[THREAD_COUNTS + 1];

	cpus_thread_counts(cpus, threads);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(threads[i], wanted[i]);
	assert_int_equal(threads[n], 0);
}

static void c25_threads_up_to_the_usable_cpus(void **state)
{
	(void)state;
	assert_counts(1, 1, (unsigned int[]){ 1 });
	assert_counts(2, 2, (unsigned int[]){ 1, 2 });
	assert_counts(6, 4, (unsigned int[]){ 1, 2, 4, 6 });
	assert_counts(8, 4, (unsigned int[]){ 1, 2, 4, 8 });
	assert_counts(5000, 11,
		      (unsigned int[]){ 1, 2, 4, 8, 16, 32, 64, 128, 256, 512,
					THREADS_MAX });
}

/* ---- C25: quota ---- */
static char root[] = "/tmp/bench-cpus-XXXXXX";

static int make_root(void **state)
{
	(void)state;
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

/* A file of the tree, with the folders above it. */
static void file(const char *path, const char *text)
{
	char full[256];
	FILE *out;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *slash = strchr(full + strlen(root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(full, 0777);
		*slash = '/';
	}
	out = fopen(full, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static int clear_root(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s/*", root);
	return system(command);
}

#define V2 "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"

static void machine_v2(const char *own)
{
	file("/proc/self/mountinfo",
	     "22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n" V2);
	file("/proc/self/cgroup", own);
}

static void c25_no_quota(void **state)
{
	(void)state;
	assert_true(quota_read(root) == 0);
	machine_v2("0::/user.slice\n");
	assert_true(quota_read(root) == 0);
	file("/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
	assert_true(quota_read(root) == 0);
	file("/sys/fs/cgroup/user.slice/cpu.max", "rubbish\n");
	assert_true(quota_read(root) == 0);
}

static void c25_quota_of_cgroup2(void **state)
{
	(void)state;
	machine_v2("0::/a/b\n");
	file("/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
	assert_true(quota_read(root) == 1.5);
}

/* A limit above ours, and a looser one of our own. */
static void c25_tightest_quota_on_the_way_up(void **state)
{
	(void)state;
	machine_v2("0::/a/b\n");
	file("/sys/fs/cgroup/a/cpu.max", "50000 100000\n");
	file("/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n");
	assert_true(quota_read(root) == 0.5);
	file("/sys/fs/cgroup/cpu.max", "25000 100000\n");
	assert_true(quota_read(root) == 0.25);
}

/* In a container: the mount begins at our own cgroup, which is /docker/c. */
static void c25_quota_of_the_older_cgroup_in_a_container(void **state)
{
	(void)state;
	file("/proc/self/mountinfo",
	     "40 31 0:29 /docker/c /sys/fs/cgroup/cpu,cpuacct ro - cgroup "
	     "cgroup rw,cpu,cpuacct\n"
	     "41 31 0:30 /docker/c /sys/fs/cgroup/cpuset ro - cgroup cgroup "
	     "rw,cpuset\n");
	file("/proc/self/cgroup",
	     "5:cpuset:/docker/c\n4:cpu,cpuacct:/docker/c\n0::/\n");
	file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
	file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
	assert_true(quota_read(root) == 0);
	file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n");
	assert_true(quota_read(root) == 2.5);
}

/* As a child of the cgroup that is mounted. */
static void c25_quota_below_a_mount(void **state)
{
	(void)state;
	file("/proc/self/mountinfo",
	     "31 23 0:28 /docker/c /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	file("/proc/self/cgroup", "0::/docker/c/job\n");
	file("/sys/fs/cgroup/job/cpu.max", "300000 100000\n");
	assert_true(quota_read(root) == 3);
}

static unsigned int usable_with(const char *cpu_max)
{
	struct cpus cpus;
	unsigned int count;

	machine_v2("0::/a\n");
	file("/sys/fs/cgroup/a/cpu.max", cpu_max);
	assert_int_equal(cpus_open(&cpus, NULL, true, root), 0);
	count = cpus.count;
	cpus_close(&cpus);
	return count;
}

static void c25_quota_is_rounded_up_and_at_least_one(void **state)
{
	cpu_set_t set;
	unsigned int allowed;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	allowed = (unsigned int)CPU_COUNT(&set);
	assert_int_equal(usable_with("1000 100000\n"), 1);
	assert_int_equal(usable_with("100000 100000\n"), 1);
	assert_int_equal(usable_with("100001 100000\n"), allowed > 1 ? 2 : 1);
	assert_int_equal(usable_with("99900000 100000\n"), allowed);
	assert_int_equal(usable_with("max 100000\n"), allowed);
}

/* ---- C24 ---- */
static void c24_what_is_not_told_is_unknown(void **state)
{
	struct environ where;
	struct cpus cpus;
	char path[96];

	(void)state;
	assert_int_equal(cpus_open(&cpus, NULL, true, root), 0);
	environ_read(&where, &cpus, root);
	assert_string_equal(where.governor, "unknown");
	snprintf(path, sizeof(path),
		 "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_governor",
		 cpus.id[0]);
	file(path, "powersave\n");
	environ_read(&where, &cpus, root);
	assert_string_equal(where.governor, "powersave");
	cpus_close(&cpus);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c25_one_allowed_cpu),
		cmocka_unit_test(c25_failed_pin_is_shown),
		cmocka_unit_test(c25_unpinned_is_no_failure),
		cmocka_unit_test(c25_unpinned_within_the_list),
		cmocka_unit_test(c25_threads_up_to_the_usable_cpus),
		cmocka_unit_test_teardown(c25_no_quota, clear_root),
		cmocka_unit_test_teardown(c25_quota_of_cgroup2, clear_root),
		cmocka_unit_test_teardown(c25_tightest_quota_on_the_way_up,
					  clear_root),
		cmocka_unit_test_teardown(
			c25_quota_of_the_older_cgroup_in_a_container,
			clear_root),
		cmocka_unit_test_teardown(c25_quota_below_a_mount, clear_root),
		cmocka_unit_test_teardown(
			c25_quota_is_rounded_up_and_at_least_one, clear_root),
		cmocka_unit_test_teardown(c24_what_is_not_told_is_unknown,
					  clear_root),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
