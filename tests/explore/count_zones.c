/* SPDX-License-Identifier: MIT */
/*
 * count_zones - gets and puts of many where the zones of the count meet
 *
 * Goal: whatever n references at a time do at an edge, at most one put is told
 * that it was last, a saturated count stays saturated and a dead one dead, and
 * each misuse is reported. Method: the word starts near the edge, or in a
 * zone; two or three threads step over it in either direction; at the end the
 * word is exactly in the middle of its zone, whatever came between an
 * operation and the correction of it. The count is no object here: nobody
 * frees, so that the puts may be as many as the edge asks for.
 */
#include "explore.h"

#define MANY DSTREF_COUNT_N_MAX

static struct dstref_count count;
static unsigned int told[EXPLORE_THREADS], held[EXPLORE_THREADS];

static unsigned int sum(const unsigned int *of)
{
	return of[0] + of[1] + of[2] + of[3];
}

static void get(uint32_t n)
{
	held[explore_self()] += n == 1 ? dstref_count_get(&count)
				       : dstref_count_get_n(&count, n);
}

static void put(uint32_t n)
{
	told[explore_self()] += n == 1 ? dstref_count_put(&count)
				       : dstref_count_put_n(&count, n);
}

static void get_1(void)
{
	get(1);
}

static void get_many(void)
{
	get(MANY);
}

static void put_1(void)
{
	put(1);
}

static void put_2(void)
{
	put(2);
}

static void put_many(void)
{
	put(MANY);
}

static void put_outside(void)
{
	told[explore_self()] += dstref_count_put_outside(&count);
}

static void pass_many(void)
{
	if (dstref_count_get_n(&count, MANY))
		put(MANY);
}

static void pass_1(void)
{
	if (dstref_count_get(&count))
		put(1);
}

/* Takes none: is it alive? */
static void get_none(void)
{
	held[explore_self()] += dstref_count_get_n(&count, 0);
}

static void start_at(uint32_t word)
{
	dstref_store_relaxed(&count.word, word);
}

/* Live and saturated. */

static void full(void)
{
	dstref_count_init(&count, DSTREF_COUNT_MAX);
}

static void almost_full(void)
{
	dstref_count_init(&count, DSTREF_COUNT_MAX - 1);
}

static void full_but_many(void)
{
	dstref_count_init(&count, DSTREF_COUNT_MAX - MANY);
}

static void saturated(void)
{
	start_at(DSTREF_COUNT_SATURATED);
}

static void stays_saturated(void)
{
	explore_assert(dstref_load_relaxed(&count.word) ==
		       DSTREF_COUNT_SATURATED);
	explore_assert(dstref_count_read(&count) == DSTREF_COUNT_MAX);
	explore_assert(!sum(told));
	explore_assert(!dstref_count_put_n(&count, MANY));
	explore_assert(!dstref_count_put_outside(&count));
	explore_assert(dstref_count_get(&count));
	explore_assert(dstref_load_relaxed(&count.word) ==
		       DSTREF_COUNT_SATURATED);
}

/* One step too far: who made it says so, and all the same has a reference. */
static void saturates(void)
{
	explore_assert(explore_reports(DSTREF_REPORT_COUNT_SATURATED) >= 1);
	explore_assert(!explore_reports(DSTREF_REPORT_COUNT_UNDERFLOW));
	stays_saturated();
}

static void two_saturate(void)
{
	explore_assert(sum(held) == 2);
	saturates();
}

/* A put may come first, and then there was room. */
static void may_saturate(void)
{
	explore_assert(sum(held) == 1);
	if (explore_reports(DSTREF_REPORT_COUNT_SATURATED))
		saturates();
	else
		explore_assert(dstref_load_relaxed(&count.word) ==
			       DSTREF_COUNT_MAX - 1);
}

/* Drifted a quarter of the zone: crowded is the next thing to be said. */
static void saturated_crowd(void)
{
	start_at(DSTREF_COUNT_SATURATED + (UINT32_C(1) << 28) - MANY);
}

static void crowds(void)
{
	explore_assert(explore_reports(DSTREF_REPORT_COUNT_CROWDED) <= 1);
	explore_assert(sum(held) == 2);
	stays_saturated();
}

/* Live, no reference, dead. */

static void one(void)
{
	dstref_count_init(&count, 1);
}

static void two(void)
{
	dstref_count_init(&count, 2);
}

static void three(void)
{
	dstref_count_init(&count, 3);
}

static void many(void)
{
	dstref_count_init(&count, MANY);
}

static void many_and_one(void)
{
	dstref_count_init(&count, MANY + 1);
}

static void stays_dead(void)
{
	explore_assert(dstref_load_relaxed(&count.word) == DSTREF_COUNT_DEAD);
	explore_assert(!dstref_count_read(&count));
	explore_assert(!dstref_count_get(&count));
	explore_assert(!dstref_count_get_n(&count, MANY));
	explore_assert(!dstref_count_get_n(&count, 0));
	explore_assert(dstref_load_relaxed(&count.word) == DSTREF_COUNT_DEAD);
}

/* All puts had a get: one was told, and nothing is wrong. */
static void ends(void)
{
	explore_assert(sum(told) == 1);
	stays_dead();
}

static void dead(void)
{
	dstref_count_init(&count, 0);
}

static void was_dead(void)
{
	explore_assert(!sum(told) && !sum(held));
	stays_dead();
}

static void was_put(void)
{
	was_dead();
	explore_assert(explore_reports(DSTREF_REPORT_COUNT_UNDERFLOW) == 1);
}

/* One put too many, wherever it came. */
static void underflows(void)
{
	explore_assert(sum(told) <= 1);
	explore_assert(explore_reports(DSTREF_REPORT_COUNT_UNDERFLOW) >= 1);
	stays_dead();
}

const struct explore_case explore_cases[] = {
	/* From live to saturated, and back. */
	{ .name = "full-get-get",
	  .setup = full,
	  .thread = { get_1, get_1 },
	  .check = two_saturate,
	  .reports = true },
	{ .name = "almost-get-get",
	  .setup = almost_full,
	  .thread = { get_1, get_1 },
	  .check = two_saturate,
	  .reports = true },
	{ .name = "full-get_n-get_n",
	  .setup = full_but_many,
	  .thread = { get_many, get_many },
	  .check = two_saturate,
	  .reports = true },
	{ .name = "full-get-put",
	  .setup = full,
	  .thread = { get_1, put_1 },
	  .check = may_saturate,
	  .reports = true },
	{ .name = "full-get-put_outside",
	  .setup = full,
	  .thread = { get_1, put_outside },
	  .check = may_saturate,
	  .reports = true },
	{ .name = "full-get_n-get-put",
	  .setup = full,
	  .thread = { get_many, get_1, put_1 },
	  .check = two_saturate,
	  .reports = true },
	/* Saturated. */
	{ .name = "saturated-put_n-put_n",
	  .setup = saturated,
	  .thread = { put_many, put_many },
	  .check = stays_saturated },
	{ .name = "saturated-get_n-put_n-put_outside",
	  .setup = saturated,
	  .thread = { get_many, put_many, put_outside },
	  .check = stays_saturated },
	{ .name = "crowd-get_n-get_n-put_n",
	  .setup = saturated_crowd,
	  .thread = { get_many, get_many, put_many },
	  .check = crowds,
	  .reports = true },
	/* From live to dead. */
	{ .name = "one-put-pass",
	  .setup = one,
	  .thread = { put_1, pass_1 },
	  .check = ends },
	{ .name = "one-put-pass_n",
	  .setup = one,
	  .thread = { put_1, pass_many },
	  .check = ends },
	{ .name = "one-put_outside-pass_n",
	  .setup = one,
	  .thread = { put_outside, pass_many },
	  .check = ends },
	{ .name = "one-put-get_none",
	  .setup = one,
	  .thread = { put_1, get_none },
	  .check = ends },
	{ .name = "many-put_n-pass_n",
	  .setup = many,
	  .thread = { put_many, pass_many },
	  .check = ends },
	{ .name = "many-put_n-put-pass_n",
	  .setup = many_and_one,
	  .thread = { put_many, put_1, pass_many },
	  .check = ends },
	{ .name = "three-put_n-put_outside-pass_n",
	  .setup = three,
	  .thread = { put_2, put_outside, pass_many },
	  .check = ends },
	{ .name = "one-put-pass-pass",
	  .setup = one,
	  .thread = { put_1, pass_1, pass_1 },
	  .check = ends },
	/* Dead. */
	{ .name = "dead-get-get_n-get_none",
	  .setup = dead,
	  .thread = { get_1, get_many, get_none },
	  .check = was_dead },
	{ .name = "dead-get_n-put_n",
	  .setup = dead,
	  .thread = { get_many, put_many },
	  .check = was_put,
	  .reports = true },
	{ .name = "dead-get_n-get-put_outside",
	  .setup = dead,
	  .thread = { get_many, get_1, put_outside },
	  .check = was_put,
	  .reports = true },
	/* A put too many. */
	{ .name = "one-put-put",
	  .setup = one,
	  .thread = { put_1, put_1 },
	  .check = underflows,
	  .reports = true },
	{ .name = "two-put_n-put_n",
	  .setup = two,
	  .thread = { put_2, put_2 },
	  .check = underflows,
	  .reports = true },
	{ .name = "one-put_n-pass",
	  .setup = one,
	  .thread = { put_2, pass_1 },
	  .check = underflows,
	  .reports = true },
	{ .name = "one-put_n-pass-pass",
	  .setup = one,
	  .thread = { put_2, pass_1, pass_1 },
	  .check = underflows,
	  .reports = true },
	{ .name = "one-put-put_outside-pass_n",
	  .setup = one,
	  .thread = { put_1, put_outside, pass_many },
	  .check = underflows,
	  .reports = true },
	{ 0 },
};
