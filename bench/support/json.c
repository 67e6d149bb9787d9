/* SPDX-License-Identifier: MIT */
/*
 * --json: the schema of Google Benchmark, whose tools read it, written with
 * jansson. Each run of a row is an entry of "benchmarks" with the run_type
 * "iteration"; after the runs of a row come their aggregates.
 *
 * "real_time" and "cpu_time" are ns per operation on a thread, since that
 * schema has no other unit. Where a table's value is a time, real_time is the
 * value; else it is the wall time of an operation, and "value" with "unit"
 * tell what the table shows. What else is ours stands beside, as that
 * schema's user counters do: "ratio", "fairness", the table's own counters.
 *
 * Numbers are finite, and what was not measured is left out: a run without a
 * value, or a table that cannot be had here, is not among "benchmarks", whose
 * readers want a time everywhere, but in a list of ours, "not_measured", with
 * the reason.
 */
#include "harness.h"
#include "stats.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <dstref/config.h>

#define NAME 256

/* What the entries of a row have in common. */
struct entry {
	const struct bench_row *row;
	const struct sample *samples;
	unsigned int runs;
	const char *run_name;
	size_t family, instance;
};

static void set_text(json_t *to, const char *key, const char *text)
{
	json_object_set_new(to, key, json_string(text));
}

static void set_count(json_t *to, const char *key, uint64_t n)
{
	json_object_set_new(to, key, json_integer((json_int_t)n));
}

static void set_number(json_t *to, const char *key, double x)
{
	if (isfinite(x))
		json_object_set_new(to, key, json_real(x));
}

static void set_flag(json_t *to, const char *key, bool flag)
{
	json_object_set_new(to, key, json_boolean(flag));
}

static json_t *load(const struct environ *e)
{
	json_t *list = json_array();

	for (int i = 0; i < e->loads; i++)
		json_array_append_new(list, json_real(e->load[i]));
	return list;
}

static json_t *cache(hwloc_obj_t obj)
{
	static const char *const types[] = { "Unified", "Data", "Instruction" };
	const struct hwloc_cache_attr_s *a = &obj->attr->cache;

	return json_pack("{s:s s:i s:I s:i}", "type", types[a->type], "level",
			 (int)a->depth, "size", (json_int_t)a->size,
			 "num_sharing", hwloc_bitmap_weight(obj->cpuset));
}

/* Those that the first usable CPU goes through, as in that schema. */
static json_t *caches(const struct cpus *cpus)
{
	json_t *list = json_array();
	hwloc_obj_t obj =
		hwloc_get_pu_obj_by_os_index(cpus->topology, cpus->id[0]);

	for (; obj; obj = obj->parent)
		if (hwloc_obj_type_is_dcache(obj->type))
			json_array_append_new(list, cache(obj));
	return list;
}

static void context_machine(json_t *to, const struct session *s)
{
	const struct environ *e = s->environ;

	set_text(to, "date", e->date);
	set_text(to, "host_name", e->host);
	set_text(to, "executable", PROGRAM);
	set_count(to, "num_cpus", e->hardware);
	/* That schema has a number here; 0 stands for unknown. */
	set_count(to, "mhz_per_cpu", (uint64_t)e->mhz);
	set_text(to, "governor", e->governor);
	set_flag(to, "cpu_scaling_enabled",
		 strcmp(e->governor, "unknown") != 0 &&
			 strcmp(e->governor, "performance") != 0);
	json_object_set_new(to, "caches", caches(s->cpus));
	json_object_set_new(to, "load_avg", load(e));
	set_text(to, "cpu_model", e->cpu);
	set_text(to, "topology", e->topology);
	set_text(to, "smt_siblings", e->smt);
	if (e->line)
		set_count(to, "cache_line", e->line);
	else
		set_text(to, "cache_line", "unknown");
	set_text(to, "kernel", e->kernel);
	set_text(to, "machine", e->machine);
}

static void context_run(json_t *to, const struct session *s)
{
	const struct options *o = s->options;

	set_text(to, "library_build_type", BENCH_BUILD_TYPE);
	set_text(to, "library_version", BENCH_VERSION);
	set_text(to, "compiler", BENCH_COMPILER);
	set_text(to, "flags", BENCH_FLAGS);
	set_count(to, "line_size", DSTREF_LINE_SIZE);
	set_text(to, "allowed_cpus", s->environ->allowed);
	set_text(to, "used_cpus", s->environ->usable);
	set_count(to, "usable_cpus", s->cpus->count);
	if (s->cpus->quota > 0)
		set_number(to, "cpu_quota", s->cpus->quota);
	else
		set_text(to, "cpu_quota", "none");
	set_flag(to, "pinned", s->cpus->pin);
	set_flag(to, "quick", o->quick);
	set_count(to, "runs", o->runs);
	if (!o->quick)
		set_number(to, "seconds", o->seconds);
}

static json_t *entry_new(const struct entry *e, const char *name,
			 const char *run_type)
{
	json_t *to = json_object();

	set_text(to, "name", name);
	set_count(to, "family_index", e->family);
	set_count(to, "per_family_instance_index", e->instance);
	set_text(to, "run_name", e->run_name);
	set_text(to, "run_type", run_type);
	set_count(to, "repetitions", e->runs);
	set_count(to, "threads", e->row->threads);
	return to;
}

static bool is_time(const struct bench_table *table)
{
	return !strcmp(table->unit, "ns");
}

/* That schema has both times everywhere: 0 where a run counted nothing. */
static double or_zero(double ns)
{
	return isfinite(ns) ? ns : 0;
}

static double real_time(const struct bench_table *table,
			const struct sample *sample)
{
	return is_time(table) ? sample->value : or_zero(sample->wall);
}

static double cpu_time(const struct bench_table *table,
		       const struct sample *sample)
{
	(void)table;
	return or_zero(sample->cpu);
}

static void entry_table(json_t *to, const struct bench_row *row)
{
	set_text(to, "unit", row->table->unit);
	set_flag(to, "more_is_better", row->table->more_is_better);
	set_text(to, "title", row->table->title);
	set_flag(to, "oversubscribed", row->oversubscribed);
}

/* What the table shows of a run. */
static void entry_counters(json_t *to, const struct bench_row *row,
			   const struct sample *s)
{
	set_number(to, "value", s->value);
	set_number(to, "ratio", s->ratio);
	set_number(to, "fairness", s->fairness);
	set_number(to, "thread_min_ns", s->fastest);
	set_number(to, "thread_max_ns", s->slowest);
	for (size_t i = 0; i < BENCH_COUNTERS; i++)
		if (row->table->counters[i])
			set_number(to, row->table->counters[i], s->counter[i]);
}

static json_t *iteration(const struct entry *e, unsigned int i)
{
	const struct sample *s = &e->samples[i];
	json_t *to = entry_new(e, e->run_name, "iteration");

	set_count(to, "repetition_index", i);
	set_count(to, "iterations", s->ops);
	set_count(to, "unpinned_threads", s->unpinned);
	set_number(to, "real_time", real_time(e->row->table, s));
	set_number(to, "cpu_time", cpu_time(e->row->table, s));
	set_text(to, "time_unit", "ns");
	entry_table(to, e->row);
	entry_counters(to, e->row, s);
	return to;
}

static json_t *reason(const char *run_name, const char *message)
{
	return json_pack("{s:s s:s}", "run_name", run_name, "message", message);
}

static const char *why_not(const struct sample *s)
{
	return s->error ? strerror(-s->error)
			: "no operation, or no time that the clock could tell";
}

static double mean(const double *sorted, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += sorted[i];
	return sum / (double)n;
}

static double stddev(const double *sorted, size_t n)
{
	double m = mean(sorted, n), sum = 0;

	if (n < 2)
		return NAN;
	for (size_t i = 0; i < n; i++)
		sum += (sorted[i] - m) * (sorted[i] - m);
	return sqrt(sum / (double)(n - 1));
}

static double median(const double *sorted, size_t n)
{
	return stats_quantile(sorted, n, 0.5);
}

static double first_quartile(const double *sorted, size_t n)
{
	return stats_quantile(sorted, n, 0.25);
}

static double third_quartile(const double *sorted, size_t n)
{
	return stats_quantile(sorted, n, 0.75);
}

static double minimum(const double *sorted, size_t n)
{
	return stats_quantile(sorted, n, 0);
}

static const struct {
	const char *name;
	double (*of)(const double *sorted, size_t n);
} aggregates[] = {
	{ "mean", mean },	  { "median", median },
	{ "stddev", stddev },	  { "q1", first_quartile },
	{ "q3", third_quartile }, { "min", minimum },
};

#define AGGREGATES (sizeof(aggregates) / sizeof(aggregates[0]))

/* A time of the runs of a row, of those that were measured, sorted. */
static size_t gather(double *to, const struct entry *e,
		     double (*of)(const struct bench_table *,
				  const struct sample *))
{
	size_t n = 0;

	for (unsigned int i = 0; i < e->runs; i++)
		if (isfinite(e->samples[i].value))
			to[n++] = of(e->row->table, &e->samples[i]);
	stats_sort(to, n);
	return n;
}

static void aggregate(json_t *list, const struct entry *e, size_t which,
		      double real, double cpu)
{
	const char *suffix = aggregates[which].name;
	char name[NAME + 16];
	json_t *to;

	if (!isfinite(real) || !isfinite(cpu))
		return;
	snprintf(name, sizeof(name), "%s_%s", e->run_name, suffix);
	to = entry_new(e, name, "aggregate");
	set_text(to, "aggregate_name", suffix);
	set_text(to, "aggregate_unit", "time");
	set_count(to, "iterations", e->row->runs);
	set_number(to, "real_time", real);
	set_number(to, "cpu_time", cpu);
	set_text(to, "time_unit", "ns");
	entry_table(to, e->row);
	json_array_append_new(list, to);
}

/* What is written. */
struct lists {
	json_t *benchmarks, *not_measured;
	size_t family;
};

static int entries(struct lists *lists, const struct entry *e)
{
	double *x = calloc(2 * e->runs, sizeof(*x)), *y;
	size_t n;

	if (!x)
		return -1;
	y = x + e->runs;
	for (unsigned int i = 0; i < e->runs; i++) {
		const struct sample *s = &e->samples[i];

		if (isfinite(s->value))
			json_array_append_new(lists->benchmarks,
					      iteration(e, i));
		else
			json_array_append_new(lists->not_measured,
					      reason(e->run_name, why_not(s)));
	}
	n = gather(x, e, real_time);
	gather(y, e, cpu_time);
	for (size_t i = 0; i < AGGREGATES; i++)
		aggregate(lists->benchmarks, e, i, aggregates[i].of(x, n),
			  aggregates[i].of(y, n));
	free(x);
	return 0;
}

static int table(struct lists *lists, const char *experiment,
		 const struct outcome *o)
{
	size_t counts = o->count / o->table->count;
	char name[NAME];

	snprintf(name, sizeof(name), "%s/%s", experiment, o->table->name);
	if (o->skipped)
		json_array_append_new(lists->not_measured,
				      reason(name, o->skipped));
	for (size_t i = 0; i < o->count; i++) {
		const struct bench_row *row = &o->rows[i];
		struct entry e = {
			row,  &o->samples[i * o->runs],	  o->runs,
			name, lists->family + i / counts, i % counts
		};

		snprintf(name, sizeof(name), "%s/%s/%s/threads:%u", experiment,
			 o->table->name, row->variant->name, row->threads);
		if (entries(lists, &e))
			return -1;
	}
	lists->family += o->table->count;
	return 0;
}

int json_write(FILE *out, const struct session *s)
{
	const struct options *o = s->options;
	struct lists lists = { json_array(), json_array(), 0 };
	json_t *root = json_object(), *context = json_object();
	int rc = 0;

	context_machine(context, s);
	context_run(context, s);
	for (size_t i = 0; !rc && i < o->count; i++)
		for (size_t j = 0; !rc && j < o->chosen[i]->count; j++)
			rc = table(&lists, o->chosen[i]->name,
				   &s->outcomes[i][j]);
	json_object_set_new(root, "context", context);
	json_object_set_new(root, "benchmarks", lists.benchmarks);
	json_object_set_new(root, "not_measured", lists.not_measured);
	if (!rc &&
	    (json_dumpf(root, out, JSON_INDENT(1)) || fputc('\n', out) == EOF))
		rc = -1;
	json_decref(root);
	return rc;
}
