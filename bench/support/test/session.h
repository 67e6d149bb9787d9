/* SPDX-License-Identifier: MIT */
/*
 * session - runs an experiment of a test's own, and keeps all that comes of it
 */
#ifndef BENCH_TEST_SESSION_H
#define BENCH_TEST_SESSION_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../harness.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

struct kept {
	char *tables, *csv, *text; /* of the JSON */
	json_t *root;
};

/* One experiment, with nothing of it printed. */
static inline void keep_session(struct kept *kept,
				const struct bench_experiment *experiment,
				const struct cpus *cpus,
				const struct run_clock *clock,
				const unsigned int *threads, unsigned int runs)
{
	struct options options = { .seconds = 0.005,
				   .runs = runs,
				   .chosen = &experiment,
				   .count = 1 };
	struct environ where;
	struct session session = { .options = &options,
				   .cpus = cpus,
				   .environ = &where,
				   .clock = clock,
				   .threads = threads };
	size_t size[3];
	FILE *tables = open_memstream(&kept->tables, &size[0]);
	FILE *csv = open_memstream(&kept->csv, &size[1]);
	FILE *json = open_memstream(&kept->text, &size[2]);
	json_error_t error;

	environ_read(&where, cpus, "");
	environ_print(tables, &session);
	assert_int_equal(session_run(&session, tables), 0);
	assert_int_equal(csv_write(csv, &session), 0);
	assert_int_equal(json_write(json, &session), 0);
	fclose(tables);
	fclose(csv);
	fclose(json);
	session_free(&session);
	kept->root = json_loads(kept->text, 0, &error);
	if (!kept->root)
		fail_msg("line %d: %s", error.line, error.text);
}

static inline void kept_free(struct kept *kept)
{
	free(kept->tables);
	free(kept->csv);
	free(kept->text);
	json_decref(kept->root);
}

/* The first of a list whose @key is TABLE/VARIANT/threads:N of "test". */
static inline json_t *kept_find(const struct kept *kept, const char *list,
				const char *key, const char *row)
{
	json_t *entry;
	char name[128];
	size_t i;

	snprintf(name, sizeof(name), "test/%s", row);
	json_array_foreach(
		json_object_get(kept->root, list), i,
		entry) if (!strcmp(json_string_value(json_object_get(entry,
								     key)),
				   name)) return entry;
	return NULL;
}

/* The first repetition of a row, or an aggregate of it. */
static inline json_t *kept_entry(const struct kept *kept, const char *row)
{
	json_t *entry = kept_find(kept, "benchmarks", "name", row);

	if (!entry)
		fail_msg("no entry %s", row);
	return entry;
}

/* Why it was not measured. */
static inline const char *kept_reason(const struct kept *kept, const char *row)
{
	json_t *entry = kept_find(kept, "not_measured", "run_name", row);

	if (!entry)
		fail_msg("no reason for %s", row);
	return json_string_value(json_object_get(entry, "message"));
}

static inline double kept_number(const json_t *entry, const char *key)
{
	const json_t *value = json_object_get(entry, key);

	if (!json_is_number(value))
		fail_msg("no number %s", key);
	return json_number_value(value);
}

#endif
