/* SPDX-License-Identifier: MIT */
/*
 * cold - what it takes to visit an object that no cache holds; see cold.c
 *
 * A way says how lines are made cold. A set has COLD_OBJECTS objects of one
 * size. A lap visits all of them, in a random order, each visit ended before
 * the next begins. A pass makes the set cold, times one lap, and then times
 * some more, which find everything in the first cache: the same visits cold
 * and hot, within microseconds of each other.
 *
 *	static inline void visit(void *object, size_t lap) { ... }
 *	COLD_LAP(lap, visit)
 *
 *	struct cold_times t = cold_pass(&set, lap);
 *
 * A way may serve many sets. A set belongs to one thread at a time.
 */
#ifndef BENCH_COLD_H
#define BENCH_COLD_H

#include "bench.h"

#define COLD_OBJECTS 32
#define COLD_SIZE 2048 /* of an object, at most */
#define COLD_PAIR (2 * BENCH_LINE) /* objects start at a pair of lines */
#define COLD_RATIO 5 /* cold is that many times as dear as hot, or more */
#define COLD_HOT_LAPS 4 /* that are timed together once all is hot */

/* An instruction that drops a line from all caches. */
struct cold_flush {
	const char *what; /* for the reader: "by clflushopt" */
	void (*line)(const void *line);
};

/* What this machine has; NULL when it has none, or we know of none. */
const struct cold_flush *cold_flush_of_machine(void);

struct cold_way {
	const struct cold_flush *flush; /* NULL: by eviction */
	char *buffer; /* read to evict */
	size_t size;
	char what[112]; /* the way, for the reader */
	double clock; /* ns that two looks at the clock take */
	double empty; /* ns of a visit that does nothing: a wait, mostly */
};

/*
 * @flush: used if the kernel lets us, which is tried in a child; eviction is
 *         the way otherwise, and when it is NULL
 *
 * 0, or -ENOMEM. To be closed when it returned 0.
 */
int cold_way_open(struct cold_way *way, const struct cold_flush *by);
void cold_way_close(struct cold_way *way);

struct cold_set {
	const struct cold_way *way;
	size_t size;
	char *memory;
	uint32_t random;
	uint32_t place[COLD_OBJECTS]; /* bytes, in the order of the visits */
};

static inline void *cold_object(const struct cold_set *set, size_t i)
{
	return set->memory + set->place[i];
}

/* Objects of @size bytes, cleared. 0, -EINVAL for the size, -ENOMEM. */
int cold_set_open(struct cold_set *set, const struct cold_way *way,
		  size_t size);
void cold_set_close(struct cold_set *set);

typedef void cold_lap_fn(const struct cold_set *set, size_t laps);

/* In ns for a visit. */
struct cold_times {
	double cold, hot;
};

struct cold_times cold_pass(struct cold_set *set, cold_lap_fn *lap);

/* One lap, or more, over the set as it is: ns for a visit. */
double cold_time(const struct cold_set *set, cold_lap_fn *lap, size_t laps);

/* The same, once everything is in the first cache. */
double cold_hot(const struct cold_set *set, cold_lap_fn *lap);

/*
 * Cold looks like hot: less than COLD_RATIO times as dear, once @own is taken
 * off both, the part of a visit that is not the object's. True when the clock
 * saw nothing.
 */
bool cold_is_warm(const struct cold_times *times, double own);

/* All that came before has been done, and nothing of what follows. */
static inline void cold_wait(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__asm__ volatile("lfence" ::: "memory");
#elif defined(__aarch64__)
	__asm__ volatile("dsb ish\n\tisb" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/*
 * Defines a cold_lap_fn. The visit is given the lap's number too, which is not
 * that of the object's last visit.
 */
#define COLD_LAP(name, visit)                                          \
	static void name(const struct cold_set *set, size_t laps)      \
	{                                                              \
		for (size_t lap_ = 0; lap_ < laps; lap_++)             \
			for (size_t i_ = 0; i_ < COLD_OBJECTS; i_++) { \
				visit(cold_object(set, i_), lap_);     \
				cold_wait();                           \
			}                                              \
	}

#endif
