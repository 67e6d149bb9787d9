/* SPDX-License-Identifier: MIT */
/*
 * What a run is worth: one number out of the operations and the times of its
 * threads.
 *
 * Nothing here guards against a division by zero. A run without operations,
 * or one that a coarse clock saw take no time, gives what is not finite or is
 * not above zero, and measure.c takes that for "not measured".
 */
#include "harness.h"

#include <math.h>

/* What all threads did, and how long. */
struct sum {
	double ops, wall, cpu, longest;
};

static struct sum sum(const struct bench_run *run)
{
	struct sum s = { 0 };

	for (unsigned int i = 0; i < run->threads; i++) {
		s.ops += (double)run->thread[i].ops;
		s.wall += run->thread[i].wall_ns;
		s.cpu += run->thread[i].cpu_ns;
		s.longest = fmax(s.longest, run->thread[i].wall_ns);
	}
	return s;
}

double bench_ns_per_op(const struct bench_run *run)
{
	struct sum s = sum(run);

	return s.wall / s.ops;
}

double bench_ns_of_first(const struct bench_run *run)
{
	return run->thread[0].wall_ns / (double)run->thread[0].ops;
}

double bench_cpu_per_op_of_first(const struct bench_run *run)
{
	return sum(run).cpu / (double)run->thread[0].ops;
}

double bench_ns_per_op_of_first(const struct bench_run *run)
{
	return sum(run).longest / (double)run->thread[0].ops;
}

double bench_mops(const struct bench_run *run)
{
	struct sum s = sum(run);

	return s.ops / s.longest * 1e3;
}

double bench_sampled(const struct bench_run *run)
{
	return run->thread[0].sampled ? run->thread[0].sample : NAN;
}

double run_value(const struct bench_table *table, const struct bench_run *run)
{
	double value = (table->value ? table->value : bench_ns_per_op)(run);

	return isfinite(value) && value > 0 ? value : NAN;
}

double run_cpu_per_op(const struct bench_run *run)
{
	struct sum s = sum(run);

	return s.cpu / s.ops;
}

double run_counter(const struct bench_run *run, size_t counter)
{
	double total = 0;

	for (unsigned int i = 0; i < run->threads; i++)
		total += (double)run->thread[i].counter[counter];
	return total / sum(run).ops;
}

void run_extremes(const struct bench_run *run, double *fastest, double *slowest)
{
	*fastest = INFINITY;
	*slowest = 0;
	for (unsigned int i = 0; i < run->threads; i++) {
		const struct bench_thread *t = &run->thread[i];
		double ns = t->wall_ns / (double)t->ops;

		*fastest = fmin(*fastest, ns);
		*slowest = fmax(*slowest, ns);
	}
}

bool run_is_even(const struct bench_table *table)
{
	return !table->value || table->value == bench_ns_per_op ||
	       table->value == bench_mops;
}
