/* SPDX-License-Identifier: MIT */
/*
 * Which CPUs, and how many. A program that is given two of 64 CPUs, by
 * taskset, a cpuset or a container's quota, and starts 64 threads, measures
 * its scheduler.
 *
 * Usable are those of the machine that the cpuset and the affinity of this
 * process allow (hwloc tells both), no more of them than the quota grants,
 * rounded up, and one at least. Ids may be sparse. Threads fill one CPU of
 * each core first and the siblings after, in the order in which cores lie, so
 * two threads are near and do not share a core.
 */
#include "harness.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static int no_memory(void)
{
	return refuse("CPUs", "no memory, or hwloc cannot tell them; free "
			      "some memory");
}

/* What this process may run on: an empty set never comes from here. */
static int allowed_read(struct cpus *cpus)
{
	hwloc_bitmap_t affinity = hwloc_bitmap_alloc();

	cpus->allowed = hwloc_bitmap_dup(
		hwloc_topology_get_allowed_cpuset(cpus->topology));
	if (!affinity || !cpus->allowed) {
		hwloc_bitmap_free(affinity);
		return no_memory();
	}
	if (!hwloc_get_cpubind(cpus->topology, affinity, HWLOC_CPUBIND_PROCESS))
		hwloc_bitmap_and(cpus->allowed, cpus->allowed, affinity);
	hwloc_bitmap_free(affinity);
	return 0;
}

/* --cpus: all of them must be allowed, and one must be there. */
static int allowed_narrow(struct cpus *cpus, const char *list)
{
	hwloc_bitmap_t wanted = hwloc_bitmap_alloc();
	char remedy[160], allowed[96];
	bool good = wanted && !hwloc_bitmap_list_sscanf(wanted, list) &&
		    !hwloc_bitmap_iszero(wanted) &&
		    hwloc_bitmap_isincluded(wanted, cpus->allowed);

	if (good) {
		hwloc_bitmap_copy(cpus->allowed, wanted);
		hwloc_bitmap_free(wanted);
		return 0;
	}
	hwloc_bitmap_free(wanted);
	hwloc_bitmap_list_snprintf(allowed, sizeof(allowed), cpus->allowed);
	snprintf(remedy, sizeof(remedy),
		 "give CPUs that this process may use, which are %s", allowed);
	return refuse_value("--cpus", list, remedy);
}

static unsigned int quota_count(double quota, unsigned int allowed)
{
	double granted = ceil(quota);

	return quota > 0 && granted < allowed ? (unsigned int)granted : allowed;
}

/* How many CPUs of its core come before @pu. */
static unsigned int sibling_rank(const struct cpus *cpus, hwloc_obj_t pu)
{
	hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(cpus->topology,
							  HWLOC_OBJ_CORE, pu);
	unsigned int rank = 0, id;

	if (!core)
		return 0;
	hwloc_bitmap_foreach_begin(id, core->cpuset)
	{
		if (id < pu->os_index && hwloc_bitmap_isset(cpus->allowed, id))
			rank++;
	}
	hwloc_bitmap_foreach_end();
	return rank;
}

/* Appends the allowed CPUs of one rank; how many there are then. */
static unsigned int append_rank(struct cpus *cpus, unsigned int rank,
				unsigned int n)
{
	hwloc_obj_t pu = NULL;

	while ((pu = hwloc_get_next_obj_by_type(cpus->topology, HWLOC_OBJ_PU,
						pu)))
		if (hwloc_bitmap_isset(cpus->allowed, pu->os_index) &&
		    sibling_rank(cpus, pu) == rank)
			cpus->id[n++] = pu->os_index;
	return n;
}

static int order(struct cpus *cpus)
{
	int weight = hwloc_bitmap_weight(cpus->allowed);
	unsigned int allowed = weight > 0 ? (unsigned int)weight : 0, n = 0;

	if (!allowed)
		return refuse("CPUs", "this process may use none; widen its "
				      "affinity or its cpuset");
	cpus->id = calloc(allowed, sizeof(*cpus->id));
	if (!cpus->id)
		return no_memory();
	for (unsigned int rank = 0; n < allowed && rank < allowed; rank++)
		n = append_rank(cpus, rank, n);
	cpus->count = quota_count(cpus->quota, n);
	return 0;
}

int cpus_open(struct cpus *cpus, const char *list, bool pin, const char *root)
{
	*cpus = (struct cpus){ .pin = pin, .quota = quota_read(root) };
	if (hwloc_topology_init(&cpus->topology)) {
		cpus->topology = NULL;
		return no_memory();
	}
	if (hwloc_topology_load(cpus->topology))
		return no_memory();
	if (allowed_read(cpus) || (list && allowed_narrow(cpus, list)) ||
	    order(cpus))
		return -1;
	/* Unpinned threads inherit the list, if not a CPU of their own. */
	if (list && !pin &&
	    hwloc_set_cpubind(cpus->topology, cpus->allowed,
			      HWLOC_CPUBIND_PROCESS))
		return refuse_value("--cpus", list,
				    "the system refuses to bind this process; "
				    "leave it out");
	return 0;
}

void cpus_close(struct cpus *cpus)
{
	free(cpus->id);
	hwloc_bitmap_free(cpus->allowed);
	if (cpus->topology)
		hwloc_topology_destroy(cpus->topology);
}

void cpus_thread_counts(unsigned int cpus, unsigned int *threads)
{
	unsigned int most = cpus < THREADS_MAX ? cpus : THREADS_MAX;

	for (unsigned int count = 1; count < most; count *= 2)
		*threads++ = count;
	*threads++ = most;
	*threads = 0;
}

unsigned int cpus_of_thread(const struct cpus *cpus, unsigned int i)
{
	return cpus->id[i % cpus->count];
}

bool cpus_pin(const struct cpus *cpus, unsigned int id)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	bool bound =
		set && !hwloc_bitmap_only(set, id) &&
		!hwloc_set_cpubind(cpus->topology, set, HWLOC_CPUBIND_THREAD);

	hwloc_bitmap_free(set);
	return bound;
}
