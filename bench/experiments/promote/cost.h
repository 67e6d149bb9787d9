/* SPDX-License-Identifier: MIT */
/*
 * cost - what a change of state costs whoever makes it; see cost.c
 */
#ifndef COST_H
#define COST_H

#include "../../support/bench.h"

enum { COST_CHANGES = 8, COST_TICKS = 5 };

extern const struct bench_variant cost_changes[COST_CHANGES];
extern const struct bench_variant cost_ticks[COST_TICKS];

#endif
