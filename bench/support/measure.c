/* SPDX-License-Identifier: MIT */
/*
 * A table: rounds of runs, and the rows that come of them.
 *
 * A round runs every variant at every number of threads once, and the rounds
 * follow each other: A B A B, not A A B B. So whatever else the machine does,
 * frequency, neighbours, other work, falls on all rows alike, and a ratio is
 * taken between runs of one round, close in time. A row is the median and the
 * quartiles of its values, and the median and the quartiles of its ratios,
 * which is not the ratio of the medians.
 *
 * A value that was not measured is NAN all the way; no row is made of it.
 */
#include "harness.h"
#include "stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const unsigned int *measure_threads(const struct bench_table *table,
				    const unsigned int *threads)
{
	return table->threads ? table->threads : threads;
}

static size_t count_threads(const unsigned int *threads)
{
	size_t n = 0;

	while (threads[n])
		n++;
	return n;
}

size_t measure_runs(const struct bench_table *table,
		    const unsigned int *threads, unsigned int runs)
{
	return table->count * runs *
	       count_threads(measure_threads(table, threads));
}

static const struct sample not_measured = {
	.value = NAN,
	.ratio = NAN,
	.wall = NAN,
	.cpu = NAN,
	.fastest = NAN,
	.slowest = NAN,
	.fairness = NAN,
	.counter = { NAN, NAN, NAN, NAN },
};

static void sample_fill(struct sample *s, const struct bench_table *table,
			const struct bench_run *run)
{
	for (unsigned int i = 0; i < run->threads; i++) {
		s->ops += run->thread[i].ops;
		s->unpinned += !run->thread[i].pinned;
	}
	s->value = run_value(table, run);
	if (!isfinite(s->value))
		return;
	s->wall = bench_ns_per_op(run);
	s->cpu = run_cpu_per_op(run);
	for (size_t i = 0; i < BENCH_COUNTERS; i++)
		if (table->counters[i])
			s->counter[i] = run_counter(run, i);
	if (run_is_even(table)) {
		run_extremes(run, &s->fastest, &s->slowest);
		s->fairness = s->fastest / s->slowest;
	}
}

static int sample_take(struct sample *s, const struct bench_row *row,
		       const struct run_plan *plan)
{
	struct bench_thread *thread = calloc(row->threads, sizeof(*thread));
	struct bench_run run = { row->variant, row->threads, thread };

	*s = not_measured;
	if (!thread)
		return -1;
	s->error = run_variant(plan, row->variant, row->threads, thread);
	if (!s->error)
		sample_fill(s, row->table, &run);
	free(thread);
	return 0;
}

/* A field of the runs of a row, sorted, only what was measured. */
static size_t gather(double *to, const struct sample *samples,
		     unsigned int runs, size_t offset)
{
	size_t n = 0;

	for (unsigned int i = 0; i < runs; i++) {
		double x =
			*(const double *)((const char *)&samples[i] + offset);

		if (isfinite(x))
			to[n++] = x;
	}
	stats_sort(to, n);
	return n;
}

#define MEDIAN(member)                                                        \
	stats_quantile(                                                       \
		x, gather(x, samples, runs, offsetof(struct sample, member)), \
		0.5)

static void row_fill(struct bench_row *row, const struct sample *samples,
		     unsigned int runs, double *x)
{
	size_t n = gather(x, samples, runs, offsetof(struct sample, value));

	row->runs = n;
	for (unsigned int i = 0; i < runs; i++)
		if (samples[i].unpinned > row->unpinned)
			row->unpinned = samples[i].unpinned;
	row->median = stats_quantile(x, n, 0.5);
	row->q1 = stats_quantile(x, n, 0.25);
	row->q3 = stats_quantile(x, n, 0.75);
	row->min = stats_quantile(x, n, 0);
	n = gather(x, samples, runs, offsetof(struct sample, ratio));
	row->ratio = stats_quantile(x, n, 0.5);
	row->ratio_q1 = stats_quantile(x, n, 0.25);
	row->ratio_q3 = stats_quantile(x, n, 0.75);
	row->fairness = MEDIAN(fairness);
	row->fastest = MEDIAN(fastest);
	row->slowest = MEDIAN(slowest);
	for (size_t i = 0; i < BENCH_COUNTERS; i++)
		row->counter[i] = MEDIAN(counter[i]);
}

/* The row of the baseline that @row is compared with. */
static size_t baseline_of(const struct outcome *o, size_t row)
{
	size_t counts = o->count / o->table->count;

	return o->table->baseline * counts + row % counts;
}

static void ratios(const struct outcome *o)
{
	for (size_t i = 0; i < o->count; i++) {
		const struct sample *base =
			&o->samples[baseline_of(o, i) * o->runs];
		struct sample *own = &o->samples[i * o->runs];

		for (unsigned int run = 0; run < o->runs; run++)
			own[run].ratio = own[run].value / base[run].value;
	}
}

static int rows_make(struct outcome *o, const struct cpus *cpus,
		     const unsigned int *threads)
{
	size_t counts = count_threads(threads);

	o->count = o->table->count * counts;
	o->rows = calloc(o->count, sizeof(*o->rows));
	o->samples = calloc(o->count * o->runs, sizeof(*o->samples));
	if (!o->rows || !o->samples)
		return -1;
	for (size_t i = 0; i < o->count; i++) {
		struct bench_row *row = &o->rows[i];

		row->table = o->table;
		row->variant = &o->table->variants[i / counts];
		row->threads = threads[i % counts];
		row->oversubscribed = row->threads > cpus->count;
	}
	return 0;
}

/* By number of threads, then by variant: a row runs beside its baseline. */
static int round_run(struct outcome *o, unsigned int round,
		     struct run_plan plan, const struct measure_hook *hook)
{
	size_t counts = o->count / o->table->count;

	for (size_t i = 0; i < o->count; i++) {
		size_t at = i % o->table->count * counts + i / o->table->count;
		const struct bench_row *row = &o->rows[at];

		if (hook)
			hook->before(hook->arg, o->table, row->variant,
				     row->threads, &plan.seconds);
		if (sample_take(&o->samples[at * o->runs + round], row, &plan))
			return -1;
	}
	return 0;
}

static bool is_ready(struct outcome *o)
{
	const char *why = NULL;

	if (!o->table->prepare || !o->table->prepare(o->table, &why))
		return true;
	o->skipped = why ? why : "cannot be prepared here";
	return false;
}

int measure_table(struct outcome *o, const struct bench_table *table,
		  const struct run_plan *plan, const unsigned int *threads,
		  unsigned int runs, const struct measure_hook *hook)
{
	double *x;

	*o = (struct outcome){ .table = table, .runs = runs };
	if (!is_ready(o))
		return 0;
	if (rows_make(o, plan->cpus, measure_threads(table, threads)))
		return -1;
	for (unsigned int round = 0; round < runs; round++)
		if (round_run(o, round, *plan, hook))
			return -1;
	x = calloc(runs, sizeof(*x));
	if (!x)
		return -1;
	ratios(o);
	for (size_t i = 0; i < o->count; i++)
		row_fill(&o->rows[i], &o->samples[i * runs], runs, x);
	free(x);
	return 0;
}

const struct bench_row *bench_row(const struct bench_result *result,
				  const char *table, const char *variant,
				  unsigned int threads)
{
	for (size_t i = 0; i < result->count; i++) {
		const struct bench_row *row = &result->rows[i];

		if (row->threads == threads &&
		    !strcmp(row->table->name, table) &&
		    !strcmp(row->variant->name, variant))
			return row;
	}
	return NULL;
}

void outcome_free(struct outcome *o)
{
	free(o->rows);
	free(o->samples);
}
