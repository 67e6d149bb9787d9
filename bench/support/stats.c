/* SPDX-License-Identifier: MIT */
/*
 * Order statistics. A quantile between two values is linear between them, as
 * R, NumPy and the figures of this project have it by default.
 */
#include "stats.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void stats_sort(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), ascending);
}

double stats_quantile(const double *sorted, size_t count, double q)
{
	double place, below;
	size_t i;

	if (!count)
		return NAN;
	place = q * (double)(count - 1);
	below = floor(place);
	i = (size_t)below;
	if (i + 1 >= count)
		return sorted[count - 1];
	return sorted[i] + (place - below) * (sorted[i + 1] - sorted[i]);
}
