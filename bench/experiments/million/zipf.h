/* SPDX-License-Identifier: MIT */
/*
 * zipf - places of an array, drawn by popularity
 *
 * Each of @entries places has a rank, which has nothing to do with where it
 * lies; the place of rank k (from 0) is drawn 1 / (k + 1) times as often as
 * that of rank 0. @entries must be a power of ten, from 10 to 10^6.
 */
#ifndef ZIPF_H
#define ZIPF_H

#include <stdint.h>

/* The rank of a place. */
uint32_t zipf_rank(uint32_t place, uint32_t entries);

/* Fills @draws, the same at each call. 0, or -ENOMEM. */
int zipf_draw(uint32_t *draws, uint32_t n, uint32_t entries);

#endif
