/* SPDX-License-Identifier: MIT */
/*
 * zipf - draws by Zipf's law with s = 1, by the inverse of its distribution
 *
 * The sums 1 + 1/2 + .. + 1/k are kept for all ranks; a draw is a point below
 * the last of them, and its rank the first whose sum reaches it. As the sums
 * grow like ln k + 0.5772 (Euler), the search starts at the exponential of the
 * point, next to where it ends.
 *
 * Ranks are spread over places by a factor that has no divisor in common with
 * a power of ten, so that each rank has one place, and are found again by its
 * inverse.
 */
#include "zipf.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define EULER 0.57721566490153286
#define SPREAD 611953u
#define GATHER 225617u

_Static_assert((uint64_t)SPREAD *GATHER % 1000000 == 1,
	       "GATHER must undo SPREAD, modulo a million");

/* Knuth's generator for 64 bits; the high half of it, in 0 .. 1. */
static double random_next(uint64_t *random)
{
	*random = *random * UINT64_C(6364136223846793005) +
		  UINT64_C(1442695040888963407);
	return (double)(*random >> 32) / 4294967296.0;
}

static uint32_t rank_at(const double *sum, uint32_t entries, double point)
{
	uint32_t rank = (uint32_t)fmin(exp(point - EULER), entries - 1);

	while (rank && sum[rank - 1] > point)
		rank--;
	while (rank < entries - 1 && sum[rank] <= point)
		rank++;
	return rank;
}

uint32_t zipf_rank(uint32_t place, uint32_t entries)
{
	return (uint32_t)((uint64_t)place * GATHER % entries);
}

int zipf_draw(uint32_t *draws, uint32_t n, uint32_t entries)
{
	double *sum = malloc(entries * sizeof(*sum));
	uint64_t random = 1;
	double total = 0;

	if (!sum)
		return -ENOMEM;
	for (uint32_t rank = 0; rank < entries; rank++)
		sum[rank] = total += 1.0 / (rank + 1.0);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t rank =
			rank_at(sum, entries, random_next(&random) * total);

		draws[i] = (uint32_t)((uint64_t)rank * SPREAD % entries);
	}
	free(sum);
	return 0;
}
