/* SPDX-License-Identifier: MIT */
/*
 * stats - the statistics of a row: few values, not normal, often bimodal
 *
 * So order statistics only: quantiles, and the interval of the median by the
 * bootstrap. What is not finite must not be among the values.
 */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include <stddef.h>

/* Ascending. */
void stats_sort(double *values, size_t count);

/*
 * The quantile @q (0 .. 1) of sorted values, linear between its neighbours;
 * NAN when there are none.
 */
double stats_quantile(const double *sorted, size_t count, double q);

struct stats_interval {
	double low, high;
};

/*
 * The 95 % percentile bootstrap interval of the median of sorted values
 * (bootstrap.c); the same for the same values, on every machine. NAN when
 * there are none.
 */
struct stats_interval stats_bootstrap(const double *sorted, size_t count);

#endif
