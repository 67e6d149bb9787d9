/* SPDX-License-Identifier: MIT */
/*
 * The interval of a median, by the percentile bootstrap: draw as many values
 * as there are, with replacement, take the median, do so 4000 times, and cut
 * 2.5 % off at each end of the medians. It assumes no distribution, which
 * suits timings: they have a hard floor, a long tail and often two modes.
 *
 * The values come sorted, so a resample needs no sort: it is how often each
 * place was drawn, and its median is found by counting up to the middle.
 *
 * Two runs of `compare` over the same files must say the same, so the draws
 * come from a generator of our own with a fixed seed (splitmix64, of Steele,
 * Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
 *
 * With few values the interval is wide, as it should be: with five it is their
 * whole range.
 */
#include "stats.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define RESAMPLES 4000
#define SEED UINT64_C(0x2008111820120731)

static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* The value at @place, counted from 0, of the resample. */
static double pick(const double *sorted, const size_t *times, size_t place)
{
	size_t i = 0;

	for (size_t before = 0; before + times[i] <= place; i++)
		before += times[i];
	return sorted[i];
}

static double resample(const double *sorted, size_t *times, size_t count,
		       uint64_t *state)
{
	memset(times, 0, count * sizeof(*times));
	for (size_t i = 0; i < count; i++)
		times[draw(state) % count]++;
	return (pick(sorted, times, (count - 1) / 2) +
		pick(sorted, times, count / 2)) /
	       2;
}

struct stats_interval stats_bootstrap(const double *sorted, size_t count)
{
	struct stats_interval interval = { NAN, NAN };
	double medians[RESAMPLES];
	uint64_t state = SEED;
	size_t *times;

	if (!count)
		return interval;
	/* Without memory the whole range, which is never too narrow. */
	interval = (struct stats_interval){ sorted[0], sorted[count - 1] };
	times = calloc(count, sizeof(*times));
	if (!times)
		return interval;
	for (size_t i = 0; i < RESAMPLES; i++)
		medians[i] = resample(sorted, times, count, &state);
	free(times);
	stats_sort(medians, RESAMPLES);
	interval.low = stats_quantile(medians, RESAMPLES, 0.025);
	interval.high = stats_quantile(medians, RESAMPLES, 0.975);
	return interval;
}
