/* SPDX-License-Identifier: MIT */
/*
 * Goal: every experiment that `list` has runs here, on one thread and on two,
 * and its results are valid JSON in which nothing is missing without a reason.
 * Method: one run of a millisecond for each row. So the values mean nothing,
 * and none is looked at but for its sign.
 *
 * usage: bench.smoke PROGRAM
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define NAMES 64

static const char *program;
static char name[NAMES][32];
static size_t names;
static json_t *results;

static FILE *start(const char *arguments)
{
	char command[4096];

	snprintf(command, sizeof(command), "exec '%s' %s", program, arguments);
	return popen(command, "r");
}

static int list(void **state)
{
	FILE *in = start("list");
	char line[512];

	(void)state;
	while (in && names < NAMES && fgets(line, sizeof(line), in))
		if (sscanf(line, "%31s", name[names]) == 1)
			names++;
	return in && !pclose(in) && names ? 0 : -1;
}

static int finish(void **state)
{
	(void)state;
	json_decref(results);
	return 0;
}

static void runs_all(void **state)
{
	FILE *in = start("run --seconds 0.001 --runs 1 --threads 1,2 --json -");
	json_error_t error;
	int status;

	(void)state;
	assert_non_null(in);
	results = json_loadf(in, 0, &error);
	status = pclose(in);
	if (!results)
		fail_msg("line %d: %s", error.line, error.text);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static const char *text(const json_t *entry, const char *key)
{
	const char *value = json_string_value(json_object_get(entry, key));

	if (!value || !*value)
		fail_msg("no %s in %s", key,
			 json_string_value(json_object_get(entry, "run_name")));
	return value;
}

static void assert_above(const json_t *entry, const char *key, double least)
{
	const json_t *value = json_object_get(entry, key);

	if (!json_is_number(value) || json_number_value(value) < least)
		fail_msg("%s: %s is missing or too small", text(entry, "name"),
			 key);
}

static void what_was_not_measured_has_a_reason(void **state)
{
	json_t *entry;
	size_t i;

	(void)state;
	json_array_foreach(json_object_get(results, "not_measured"), i, entry)
		print_message("# %s: %s\n", text(entry, "run_name"),
			      text(entry, "message"));
}

static void what_was_measured_has_times(void **state)
{
	json_t *entries = json_object_get(results, "benchmarks"), *entry;
	size_t i;

	(void)state;
	assert_true(json_array_size(entries) > 0);
	json_array_foreach(entries, i, entry)
	{
		text(entry, "name");
		text(entry, "run_name");
		text(entry, "run_type");
		assert_above(entry, "threads", 1);
		assert_above(entry, "iterations", 1);
		assert_above(entry, "real_time", 1e-9);
		assert_above(entry, "cpu_time", 0);
		assert_string_equal(text(entry, "time_unit"), "ns");
		text(entry, "unit");
	}
}

static bool is_measured(const char *experiment)
{
	json_t *entries = json_object_get(results, "benchmarks"), *entry;
	size_t i, len = strlen(experiment);

	json_array_foreach(entries, i, entry)
	{
		const char *row = text(entry, "name");

		if (!strncmp(row, experiment, len) && row[len] == '/')
			return true;
	}
	return false;
}

static void every_experiment_has_a_row(void **state)
{
	(void)state;
	for (size_t i = 0; i < names; i++)
		if (!is_measured(name[i]))
			fail_msg("no row of %s was measured", name[i]);
}

static bool has_run_name(const json_t *entries, size_t before, const char *run)
{
	for (size_t i = 0; i < before; i++) {
		const json_t *e = json_array_get(entries, i);

		if (!strcmp(text(e, "run_type"), "iteration") &&
		    !strcmp(text(e, "name"), run))
			return true;
	}
	return false;
}

static void names_of_rows_are_unique(void **state)
{
	json_t *entries = json_object_get(results, "benchmarks"), *entry;
	size_t i;

	(void)state;
	json_array_foreach(
		entries, i,
		entry) if (!strcmp(text(entry, "run_type"), "iteration") &&
			   has_run_name(entries, i, text(entry, "name")))
		fail_msg("%s: twice", text(entry, "name"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_all),
		cmocka_unit_test(what_was_measured_has_times),
		cmocka_unit_test(what_was_not_measured_has_a_reason),
		cmocka_unit_test(every_experiment_has_a_row),
		cmocka_unit_test(names_of_rows_are_unique),
	};

	if (argc != 2) {
		fprintf(stderr, "bench.smoke: give the path of dstref-bench\n");
		return 2;
	}
	program = argv[1];
	return cmocka_run_group_tests(tests, list, finish);
}
