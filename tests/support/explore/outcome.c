/* SPDX-License-Identifier: MIT */
/*
 * outcome - what the schedules of a case led to, as sets
 *
 * A case may say what came out of a schedule; --outcomes prints the set. It
 * also prints how many traces there were, and a sum over them: a trace is what
 * is left of a schedule when the order of steps that do not depend on each
 * other is forgotten. Two searches that saw the same traces print the same. So
 * a search with the reduction can be held against one without.
 *
 * The trace is told by the order of dependence: a sum over its events of their
 * process, number, clock, and, where there was a choice, of the value seen.
 */
#include "state.h"

#include <stdio.h>
#include <string.h>

#define ROOM (1u << 20) /* a power of two */

struct set {
	uint64_t values[ROOM]; /* none is 0 */
	unsigned int count;
};

static struct {
	struct set outcomes, traces;
	bool told;
	uint64_t outcome;
} * own;

void outcome_create(void)
{
	own = ex_map(sizeof(*own));
}

void outcome_reset(void)
{
	memset(own, 0, sizeof(*own));
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0xff51afd7ed558ccd);
	return hash ^ (hash >> 32);
}

static void add(struct set *set, uint64_t value)
{
	unsigned int at = (unsigned int)mix(1, value) % ROOM;

	for (; set->values[at]; at = (at + 1) % ROOM)
		if (set->values[at] == value)
			return;
	if (set->count == ROOM / 2)
		ex_fail(NULL, "more than %u outcomes", ROOM / 2);
	set->values[at] = value;
	set->count++;
}

static uint64_t trace_sum(void)
{
	uint64_t sum = 1;

	for (unsigned int i = 0; i < ex.depth; i++) {
		const struct event *event = &ex.events[i];
		uint64_t hash = mix(event->proc, event->number);

		for (int p = 0; p < PROCS; p++)
			hash = mix(hash, event->order.at[p]);
		sum += mix(hash, ex.nodes[i].value);
	}
	return sum ? sum : 1;
}

void explore_outcome(uint64_t value)
{
	bool watching = enter();

	if (own) {
		own->outcome = value;
		own->told = true;
	}
	if (watching)
		leave();
}

/* At the end of a schedule. */
void outcome_add(void)
{
	if (own->told)
		add(&own->outcomes, own->outcome + 1);
	own->told = false;
	add(&own->traces, trace_sum());
}

static void print_outcomes(void)
{
	uint64_t last = 0;

	for (unsigned int i = 0; i < own->outcomes.count; i++) {
		uint64_t least = UINT64_MAX;

		for (unsigned int at = 0; at < ROOM; at++) {
			uint64_t value = own->outcomes.values[at];

			if (value > last && value < least)
				least = value;
		}
		printf(" 0x%llx", (unsigned long long)least - 1);
		last = least;
	}
}

void outcome_print(void)
{
	uint64_t sum = 0;

	for (unsigned int at = 0; at < ROOM; at++)
		if (own->traces.values[at])
			sum += mix(2, own->traces.values[at]);
	printf("outcomes %s: traces %u sum %016llx:", ex.running->name,
	       own->traces.count, (unsigned long long)sum);
	print_outcomes();
	putchar('\n');
}
