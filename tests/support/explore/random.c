/* SPDX-License-Identifier: MIT */
/*
 * random - schedules by random priorities, with a few changes
 *
 * Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi,
 * Nagarakatte 2010): every process has a priority, drawn anew for each
 * schedule; the highest that can go on does. At d - 1 steps, drawn among as
 * many as the longest schedule yet had, the process that would go on falls
 * below all others. A fault that d ordered steps make is found with a chance of
 * at least 1 / (n * k ^ (d - 1)) per schedule of k steps by n processes.
 *
 * The seed and the number of the schedule make it; it is the same on every
 * machine.
 */
#include "state.h"

#define CHANGES DEPTH_MAX

static struct {
	int priority[PROCS];
	unsigned int change[CHANGES], changes;
	int lowest;
} * own;

static uint64_t draw(void)
{
	/* splitmix64 */
	uint64_t z = ex.random_state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

unsigned int random_below(unsigned int n)
{
	return (unsigned int)(draw() % n);
}

void random_create(void)
{
	own = ex_map(sizeof(*own));
}

void random_start(void)
{
	unsigned int length = ex.deepest ? ex.deepest : 1;

	ex.random_state = ex.options.seed + (ex.schedules << 32);
	draw();
	for (int i = 0; i < PROCS; i++)
		own->priority[i] = i;
	for (unsigned int i = PROCS - 1; i; i--) {
		unsigned int j = random_below(i + 1);
		int kept = own->priority[i];

		own->priority[i] = own->priority[j];
		own->priority[j] = kept;
	}
	own->changes = ex.options.depth - 1;
	for (unsigned int i = 0; i < own->changes; i++)
		own->change[i] = random_below(length);
	own->lowest = -1;
}

static unsigned int highest(unsigned int set)
{
	unsigned int best = (unsigned int)__builtin_ctz(set);

	for (; set; set &= set - 1) {
		unsigned int proc = (unsigned int)__builtin_ctz(set);

		if (own->priority[proc] > own->priority[best])
			best = proc;
	}
	return best;
}

unsigned int random_choose(unsigned int enabled)
{
	for (unsigned int i = 0; i < own->changes; i++)
		if (own->change[i] == ex.depth)
			own->priority[highest(enabled)] = own->lowest--;
	return highest(enabled);
}
