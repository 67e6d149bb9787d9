/* SPDX-License-Identifier: MIT */
/*
 * What a visit costs when nothing of the object is cached.
 *
 * Goal: the latency of the first packet after a pause, which no loop over hot
 * caches shows. Method: objects are made cold, then visited once each. One
 * visit is too short for a clock, so a lap over COLD_OBJECTS is timed, and the
 * clock's own time taken off. The visits must not help each other:
 *
 *   overlap      A CPU runs ahead and would fetch the next object while it
 *                waits for this one. cold_wait() between two visits ends that.
 *                Within a visit it may overlap what it can, as in a packet.
 *   streams      Hardware looks for a stride within a page. Each object has a
 *                page of its own, and the order of the visits is random.
 *   line pairs   Many machines fetch the other line of an aligned pair too. All
 *                objects start a pair, so that this is the same for every
 *                layout, and no two objects share one.
 *   TLB          An address on a cold page costs a walk besides. It would here
 *                as in life, but a walk is not what is asked for, so a byte
 *                beside each object is read before the lap, and its page is
 *                known. So is the order of the visits. Whoever spreads his
 *                data over more pages pays more than is seen here.
 *   cache sets   An object's place in its page varies, so that the hot laps
 *                do not press all objects into the same few sets.
 *
 * Flush: an instruction that drops a line from every cache, where the machine
 * has one and lets a program use it. It is tried in a child first: where the
 * kernel forbids it, the child dies of it and we evict.
 *
 * Evict: reading so much else that the lines must go. That needs a multiple of
 * a cache's size, since few caches replace the oldest line strictly. The last
 * level may be too large for that, and then it keeps the lines: a visit costs
 * what that cache costs, not what memory does. way->what says so.
 *
 * Whether it worked is seen by the hot laps of the same pass: cold_is_warm().
 */
#include "cold.h"

#include <errno.h>
#include <hwloc.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#define PAGE 4096u /* or larger: then fewer pages are to be known */
#define PLACES 8 /* in a page, a pair of lines apart */
#define MIB ((size_t)1 << 20)
#define EVICT_TIMES 4 /* the cache's size */
#define EVICT_MAX (64 * MIB) /* read for each pass: some milliseconds */
#define HOT_TRIES 4
#define TRIES 64 /* to calibrate */

_Static_assert((PLACES - 1) * COLD_PAIR + COLD_SIZE + COLD_PAIR <= PAGE,
	       "no pair of lines is left beside the object: make PLACES or "
	       "COLD_SIZE smaller");

/* ---- flush ---- */
#if defined(__x86_64__) || defined(__i386__)
static void clflush(const void *line)
{
	__asm__ volatile("clflush %0" ::"m"(*(const char *)line) : "memory");
}

static void clflushopt(const void *line)
{
	__asm__ volatile("clflushopt %0" ::"m"(*(const char *)line) : "memory");
}

const struct cold_flush *cold_flush_of_machine(void)
{
	static const struct cold_flush opt = { "by clflushopt", clflushopt };
	static const struct cold_flush old = { "by clflush", clflush };
	unsigned int a, b, c, d;

	if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && b & 1u << 23)
		return &opt;
	if (__get_cpuid(1, &a, &b, &c, &d) && d & 1u << 19)
		return &old;
	return NULL;
}

static void flush_end(void)
{
	__asm__ volatile("mfence" ::: "memory");
}
#elif defined(__aarch64__)
static void dc_civac(const void *line)
{
	__asm__ volatile("dc civac, %0" ::"r"(line) : "memory");
}

const struct cold_flush *cold_flush_of_machine(void)
{
	static const struct cold_flush civac = { "by dc civac", dc_civac };

	return &civac;
}

static void flush_end(void)
{
	__asm__ volatile("dsb sy" ::: "memory");
}
#else
const struct cold_flush *cold_flush_of_machine(void)
{
	return NULL;
}

static void flush_end(void)
{
}
#endif

/* Whoever has handlers in this program has them for other faults. */
static void die_quietly(void)
{
	static const int faults[] = { SIGILL, SIGSEGV, SIGBUS };
	const struct rlimit no_core = { 0, 0 };

	(void)setrlimit(RLIMIT_CORE, &no_core);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		(void)signal(faults[i], SIG_DFL);
}

/* In a child, which may die of it. */
static bool is_allowed(const struct cold_flush *flush)
{
	pid_t child = fork();
	int status = 0;

	if (!child) {
		die_quietly();
		flush->line(&status);
		flush_end();
		_exit(0);
	}
	return child > 0 && waitpid(child, &status, 0) == child &&
	       WIFEXITED(status) && !WEXITSTATUS(status);
}

/* Lines are of BENCH_LINE bytes or more where there is an instruction. */
static void flush(const struct cold_set *set)
{
	const struct cold_flush *by = set->way->flush;

	for (size_t i = 0; i < COLD_OBJECTS; i++)
		for (size_t at = 0; at < set->size; at += BENCH_LINE)
			by->line((char *)cold_object(set, i) + at);
	flush_end();
}

/* ---- evict ---- */
struct caches {
	size_t gone, kept; /* largest that we evict; smallest that we do not */
	int gone_level, kept_level;
};

static void add_cache(struct caches *caches, size_t size, int level)
{
	if (size && size <= EVICT_MAX / EVICT_TIMES) {
		caches->gone = size;
		caches->gone_level = level;
	} else if (size && !caches->kept) {
		caches->kept = size;
		caches->kept_level = level;
	}
}

/* From the inner to the outer. */
static struct caches find_caches(void)
{
	struct caches caches = { 0, 0, 0, 0 };
	hwloc_topology_t topology;
	hwloc_obj_t cache;

	if (hwloc_topology_init(&topology))
		return caches;
	if (!hwloc_topology_load(topology))
		for (int i = 0; i < 5; i++) {
			cache = hwloc_get_obj_by_type(
				topology,
				(hwloc_obj_type_t)(HWLOC_OBJ_L1CACHE + i), 0);
			if (cache)
				add_cache(&caches, cache->attr->cache.size,
					  i + 1);
		}
	hwloc_topology_destroy(topology);
	return caches;
}

static void say_evicted(struct cold_way *way, const struct caches *caches)
{
	size_t mib = way->size / MIB;

	if (!caches->gone)
		snprintf(way->what, sizeof(way->what),
			 "by reading %zu MiB, the size of the caches unknown",
			 mib);
	else if (!caches->kept)
		snprintf(way->what, sizeof(way->what),
			 "by reading %zu MiB, out of all caches", mib);
	else
		snprintf(way->what, sizeof(way->what),
			 "by reading %zu MiB, out of L%d; still in L%d (%zu "
			 "MiB)",
			 mib, caches->gone_level, caches->kept_level,
			 caches->kept / MIB);
}

static int open_evict(struct cold_way *way)
{
	struct caches caches = find_caches();
	size_t size = caches.gone ? EVICT_TIMES * caches.gone : EVICT_MAX;

	way->size = (size + MIB - 1) / MIB * MIB;
	way->buffer = aligned_alloc(PAGE, way->size);
	if (!way->buffer)
		return -ENOMEM;
	memset(way->buffer, 1, way->size); /* else all is one page of zeros */
	say_evicted(way, &caches);
	return 0;
}

static void evict(const struct cold_way *way)
{
	const volatile char *byte = way->buffer;

	for (size_t at = 0; at < way->size; at += BENCH_LINE)
		(void)byte[at];
}

/* ---- time ---- */
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* In ns; what came before has ended, and the laps too. */
static double elapsed(cold_lap_fn *lap, const struct cold_set *set, size_t laps)
{
	double start;

	cold_wait();
	start = now();
	lap(set, laps);
	return now() - start;
}

double cold_time(const struct cold_set *set, cold_lap_fn *lap, size_t laps)
{
	double ns = elapsed(lap, set, laps) - set->way->clock;

	return fmax(ns, 0) / (double)(laps * COLD_OBJECTS);
}

/* The least of some tries: an interrupt only adds. */
double cold_hot(const struct cold_set *set, cold_lap_fn *lap)
{
	double ns = INFINITY;

	for (int i = 0; i < HOT_TRIES; i++)
		ns = fmin(ns, cold_time(set, lap, COLD_HOT_LAPS));
	return ns;
}

static void visit_nothing(void *object, size_t lap)
{
	BENCH_KEEP(object);
	BENCH_KEEP(lap);
}

COLD_LAP(lap_nothing, visit_nothing)

static double least(const struct cold_set *set, size_t laps)
{
	double ns = elapsed(lap_nothing, set, laps);

	for (int i = 0; i < TRIES; i++)
		ns = fmin(ns, elapsed(lap_nothing, set, laps));
	return ns;
}

static void calibrate(struct cold_way *way)
{
	const struct cold_set none = { 0 };

	way->clock = least(&none, 0);
	way->empty = fmax(least(&none, COLD_HOT_LAPS) - way->clock, 0) /
		     (COLD_HOT_LAPS * COLD_OBJECTS);
}

/* ---- ways and sets ---- */
int cold_way_open(struct cold_way *way, const struct cold_flush *by)
{
	int rc = 0;

	*way = (struct cold_way){ .flush = by };
	if (by && is_allowed(by)) {
		snprintf(way->what, sizeof(way->what), "%s", by->what);
	} else {
		way->flush = NULL;
		rc = open_evict(way);
	}
	calibrate(way);
	return rc;
}

void cold_way_close(struct cold_way *way)
{
	free(way->buffer);
	way->buffer = NULL;
}

/* A new order for each pass: some hardware learns where misses went. */
static void shuffle(struct cold_set *set)
{
	for (uint32_t i = COLD_OBJECTS - 1; i > 0; i--) {
		uint32_t place = set->place[i], j;

		set->random = set->random * 1664525 + 1013904223;
		j = (set->random >> 16) % (i + 1);
		set->place[i] = set->place[j];
		set->place[j] = place;
	}
}

int cold_set_open(struct cold_set *set, const struct cold_way *way, size_t size)
{
	*set = (struct cold_set){ .way = way, .size = size };
	if (size > COLD_SIZE)
		return -EINVAL;
	set->memory = aligned_alloc(PAGE, COLD_OBJECTS * PAGE);
	if (!set->memory)
		return -ENOMEM;
	memset(set->memory, 0, COLD_OBJECTS * PAGE);
	for (uint32_t i = 0; i < COLD_OBJECTS; i++)
		set->place[i] = i * PAGE + i % PLACES * COLD_PAIR;
	return 0;
}

void cold_set_close(struct cold_set *set)
{
	free(set->memory);
	set->memory = NULL;
}

/* The pages that the visits go to, and their order. */
static void know_places(const struct cold_set *set)
{
	const volatile char *byte = set->memory + PAGE - 1;

	for (size_t i = 0; i < COLD_OBJECTS; i++)
		(void)byte[set->place[i] / PAGE * PAGE];
}

struct cold_times cold_pass(struct cold_set *set, cold_lap_fn *lap)
{
	struct cold_times times;

	shuffle(set);
	if (set->way->flush)
		flush(set);
	else
		evict(set->way);
	know_places(set);
	times.cold = cold_time(set, lap, 1);
	times.hot = cold_hot(set, lap);
	return times;
}

bool cold_is_warm(const struct cold_times *times, double own)
{
	double cold = times->cold - own, hot = times->hot - own;

	return !(cold > 0 && cold >= COLD_RATIO * hot);
}
