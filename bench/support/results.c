/* SPDX-License-Identifier: MIT */
/*
 * Reads results (results.h) by jansson. The repetitions of a row need not
 * stand together in the file, ours are interleaved: they are gathered under
 * their name in an object of jansson's, which keeps the order in which the
 * names came. Then each name becomes a row.
 *
 * Strings are not copied: they live in the tree, which is kept.
 */
#include "results.h"
#include "harness.h"
#include "stats.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int not_read(const char *path, const char *what)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "%s; give a file that `" PROGRAM " run --json FILE` wrote",
		 what);
	return refuse(path, text);
}

static double number(const json_t *entry, const char *key)
{
	const json_t *value = json_object_get(entry, key);

	return json_is_number(value) ? json_number_value(value) : NAN;
}

static const char *string(const json_t *entry, const char *key,
			  const char *otherwise)
{
	const char *value = json_string_value(json_object_get(entry, key));

	return value ? value : otherwise;
}

/* Nanoseconds in a unit of Google Benchmark; NAN for what is none. */
static double unit_ns(const char *unit)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (!strcmp(unit, units[i].unit))
			return units[i].ns;
	return NAN;
}

/* NAN when the entry has none. */
static double entry_value(const json_t *entry)
{
	/* A user counter of somebody else's may be called "value" too. */
	if (string(entry, "unit", NULL) && json_object_get(entry, "value"))
		return number(entry, "value");
	return number(entry, "real_time") *
	       unit_ns(string(entry, "time_unit", "ns"));
}

static const char *entry_name(const json_t *entry)
{
	return string(entry, "run_name", string(entry, "name", NULL));
}

/* A repetition that was measured; ours is "not measured" without a value. */
static bool is_repetition(const json_t *entry)
{
	return !strcmp(string(entry, "run_type", "iteration"), "iteration") &&
	       !json_is_true(json_object_get(entry, "error_occurred")) &&
	       !json_object_get(entry, "skipped");
}

/* Name -> array of its repetitions; NULL and *what when it is not so. */
static json_t *gather(const json_t *benchmarks, const char **what)
{
	json_t *names = json_object();
	json_t *entry;
	size_t i;

	json_array_foreach(benchmarks, i, entry)
	{
		const char *name = entry_name(entry);
		json_t *list;

		if (!is_repetition(entry))
			continue;
		if (!name || !(entry_value(entry) >= 0)) {
			*what = "has a benchmark without a name or a time";
			json_decref(names);
			return NULL;
		}
		list = json_object_get(names, name);
		if (!list) {
			list = json_array();
			json_object_set_new(names, name, list);
		}
		if (json_array_append(list, entry)) {
			*what = "no memory";
			json_decref(names);
			return NULL;
		}
	}
	return names;
}

/* Cuts a name into table and variant; a name of one part is both. */
static int cut(struct result_row *row)
{
	char *end;

	row->table = strdup(row->name);
	if (!row->table)
		return -1;
	end = strstr(row->table, "/threads:");
	if (end)
		*end = '\0';
	end = strrchr(row->table, '/');
	if (end)
		*end = '\0';
	row->variant = end ? end + 1 : row->table;
	return 0;
}

static int fill(struct result_row *row, const char *name, const json_t *list)
{
	const json_t *first = json_array_get(list, 0);
	const json_t *threads = json_object_get(first, "threads");

	row->name = name;
	row->unit = string(first, "unit", "ns");
	row->more_is_better =
		json_is_true(json_object_get(first, "more_is_better"));
	row->threads = threads ? (unsigned int)json_number_value(threads) : 1;
	row->count = json_array_size(list);
	row->values = calloc(row->count, sizeof(*row->values));
	if (!row->values || cut(row))
		return -1;
	row->title = string(first, "title", row->table);
	for (size_t i = 0; i < row->count; i++)
		row->values[i] = entry_value(json_array_get(list, i));
	stats_sort(row->values, row->count);
	return 0;
}

static int make_rows(struct results *results, json_t *names)
{
	const char *name;
	json_t *list;

	results->rows = calloc(json_object_size(names), sizeof(*results->rows));
	if (!results->rows)
		return -1;
	json_object_foreach(names, name,
			    list) if (fill(&results->rows[results->count++],
					   name, list)) return -1;
	return 0;
}

/* Of ours the processor and the CPUs that were used, else the machine's. */
static int read_context(struct results *results, json_t *root)
{
	const json_t *context = json_object_get(root, "context");
	const char *where = string(context, "cpu_model",
				   string(context, "host_name", "unknown"));
	double cpus = number(context, "usable_cpus");

	if (isnan(cpus))
		cpus = number(context, "num_cpus");
	results->cpus = cpus >= 1 ? (unsigned int)cpus : 0;
	if (json_object_set_new(root, "where",
				json_sprintf("%s, %s", where,
					     string(context, "date", "?"))))
		return -1;
	results->where = string(root, "where", "");
	return 0;
}

/* NULL when all is well, else what is not. */
static const char *build(struct results *results, json_t *root)
{
	const json_t *benchmarks = json_object_get(root, "benchmarks");
	const char *what = NULL;
	json_t *names;

	if (!json_is_object(json_object_get(root, "context")) ||
	    !json_is_array(benchmarks))
		return "is JSON, but has no \"context\" and \"benchmarks\"";
	names = gather(benchmarks, &what);
	if (!names)
		return what;
	/* The rows' names live here. */
	if (json_object_set_new(root, "names", names) ||
	    read_context(results, root))
		return "no memory";
	if (!json_object_size(names))
		return "has no repetitions in it";
	return make_rows(results, names) ? "no memory" : NULL;
}

int results_read(struct results *results, const char *path)
{
	FILE *file = fopen(path, "r");
	json_error_t error;
	const char *what;
	char text[64];

	memset(results, 0, sizeof(*results));
	if (!file)
		return not_read(path, strerror(errno));
	errno = 0;
	results->root = json_loadf(file, JSON_DECODE_INT_AS_REAL, &error);
	if (ferror(file))
		what = strerror(errno);
	else if (!results->root) {
		snprintf(text, sizeof(text), "is not JSON from line %d on",
			 error.line);
		what = text;
	} else
		what = build(results, results->root);
	fclose(file);
	if (!what)
		return 0;
	results_free(results);
	return not_read(path, what);
}

const struct result_row *results_find(const struct results *results,
				      const char *name)
{
	for (size_t i = 0; i < results->count; i++)
		if (!strcmp(results->rows[i].name, name))
			return &results->rows[i];
	return NULL;
}

void results_free(struct results *results)
{
	for (size_t i = 0; i < results->count; i++) {
		free(results->rows[i].table);
		free(results->rows[i].values);
	}
	free(results->rows);
	json_decref(results->root);
	memset(results, 0, sizeof(*results));
}
