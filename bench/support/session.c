/* SPDX-License-Identifier: MIT */
/*
 * All that was asked for, table by table, each printed as soon as it is
 * there.
 *
 * --quick has a budget of time for everything, whatever the number of CPUs
 * and of experiments: before each run we divide the time that is left by the
 * runs that are left, less what a run was seen to cost besides (its setup,
 * its threads). Lengths drift a little that way, and values do not depend on
 * them.
 */
#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#define QUICK_BUDGET 40.0 /* seconds, of the 60 that it may take */
#define QUICK_SHORTEST 0.001
#define QUICK_LONGEST 0.1

/* Where we are. Times in seconds. */
struct pace {
	const struct session *session;
	const struct bench_experiment *experiment;
	size_t done, all; /* runs */
	double begin, asked; /* asked for, in the runs that are done */
	bool is_terminal;
};

static double now(void)
{
	return (double)run_clock_system.wall() / 1e9;
}

static double quick_seconds(const struct pace *pace)
{
	double elapsed = now() - pace->begin;
	double besides =
		pace->done ? (elapsed - pace->asked) / (double)pace->done : 0;
	double left =
		(QUICK_BUDGET - elapsed) / (double)(pace->all - pace->done);

	return fmin(fmax(left - besides, QUICK_SHORTEST), QUICK_LONGEST);
}

static void before_run(void *arg, const struct bench_table *table,
		       const struct bench_variant *variant,
		       unsigned int threads, double *seconds)
{
	struct pace *pace = arg;

	if (pace->session->options->quick)
		*seconds = quick_seconds(pace);
	pace->asked += *seconds;
	pace->done++;
	if (pace->is_terminal)
		fprintf(stderr, "\r\033[K%zu/%zu %s/%s/%s/%u", pace->done,
			pace->all, pace->experiment->name, table->name,
			variant->name, threads);
}

static void progress_clear(const struct pace *pace)
{
	if (pace->is_terminal)
		fprintf(stderr, "\r\033[K");
}

static size_t runs_of(const struct session *s,
		      const struct bench_experiment *experiment)
{
	size_t n = 0;

	for (size_t i = 0; i < experiment->count; i++)
		n += measure_runs(&experiment->tables[i], s->threads,
				  s->options->runs);
	return n;
}

/* What only the experiment itself has to say of its rows. */
static int report(const struct bench_experiment *experiment,
		  const struct outcome *outcomes, FILE *out)
{
	struct bench_result result = { NULL, 0 };
	struct bench_row *rows;
	size_t n = 0;

	for (size_t i = 0; i < experiment->count; i++)
		result.count += outcomes[i].count;
	if (!experiment->report || !result.count)
		return 0;
	rows = calloc(result.count, sizeof(*rows));
	if (!rows)
		return -1;
	for (size_t i = 0; i < experiment->count; i++)
		for (size_t j = 0; j < outcomes[i].count; j++)
			rows[n++] = outcomes[i].rows[j];
	result.rows = rows;
	experiment->report(out, &result);
	free(rows);
	return 0;
}

static int no_memory(const char *name)
{
	return refuse(name, "no memory for its results; give fewer --runs or "
			    "--threads");
}

static int experiment_run(struct pace *pace, struct outcome *outcomes,
			  FILE *out)
{
	const struct session *s = pace->session;
	const struct bench_experiment *experiment = pace->experiment;
	const struct measure_hook hook = { before_run, pace };
	const struct run_plan plan = { s->cpus, s->clock, s->options->seconds };

	if (out)
		table_print_head(out, experiment);
	for (size_t i = 0; i < experiment->count; i++) {
		const struct bench_table *table = &experiment->tables[i];

		if (measure_table(&outcomes[i], table, &plan, s->threads,
				  s->options->runs, &hook))
			return no_memory(experiment->name);
		if (outcomes[i].skipped)
			pace->all -= measure_runs(table, s->threads,
						  s->options->runs);
		progress_clear(pace);
		if (out)
			table_print(out, experiment, &outcomes[i]);
	}
	return out && report(experiment, outcomes, out)
		       ? no_memory(experiment->name)
		       : 0;
}

int session_run(struct session *s, FILE *out)
{
	const struct options *o = s->options;
	struct pace pace = { .session = s,
			     .begin = now(),
			     .is_terminal = isatty(STDERR_FILENO) };

	s->outcomes = calloc(o->count, sizeof(*s->outcomes));
	for (size_t i = 0; s->outcomes && i < o->count; i++)
		pace.all += runs_of(s, o->chosen[i]);
	for (size_t i = 0; s->outcomes && i < o->count; i++) {
		pace.experiment = o->chosen[i];
		s->outcomes[i] =
			calloc(o->chosen[i]->count, sizeof(*s->outcomes[i]));
		if (!s->outcomes[i])
			return no_memory(o->chosen[i]->name);
		if (experiment_run(&pace, s->outcomes[i], out))
			return -1;
		if (out && fflush(out))
			return refuse("standard output",
				      "cannot be written; give a file that "
				      "has room");
	}
	return s->outcomes ? 0 : no_memory("experiments");
}

void session_free(struct session *s)
{
	for (size_t i = 0; s->outcomes && i < s->options->count; i++) {
		for (size_t j = 0;
		     s->outcomes[i] && j < s->options->chosen[i]->count; j++)
			outcome_free(&s->outcomes[i][j]);
		free(s->outcomes[i]);
	}
	free(s->outcomes);
}
