/* SPDX-License-Identifier: MIT */
/*
 * stress - threads that start together and end in bounded time
 *
 * A test describes a run, starts it, and looks at the sums when all threads
 * have ended. Threads do not assert, for cmocka cannot leave another thread's
 * function: they count, the test's own thread asserts.
 *
 * The environment: DSTREF_STRESS_SECONDS lengthens every run (2 is as
 * written), DSTREF_STRESS_SEED repeats one. Under the thread sanitizer there
 * are fewer rounds.
 */
#ifndef TESTS_STRESS_H
#define TESTS_STRESS_H

#include <dstref/atomic.h>

#include <pthread.h>

#include "tsan.h"

#define STRESS_THREADS 16

/* Threads that meet, spinning for a while and then yielding. */
struct stress_gate {
	DSTREF_ATOMIC(unsigned int) arrived;
	DSTREF_ATOMIC(unsigned int) passed;
	unsigned int threads;
};

struct stress_thread;

typedef void (*stress_fn)(struct stress_thread *thread);

struct stress {
	unsigned int threads; /* 1 to STRESS_THREADS */
	double seconds; /* until stress_more() says no; 0: by rounds alone */
	void *arg; /* the test's */

	/* Filled in by stress_run(). */
	uint64_t seed;
	struct stress_gate gate; /* for the test: stress_meet() */
	DSTREF_ATOMIC(bool) stop;
};

/* A thread's own; what it counts, the test reads after stress_run(). */
struct stress_thread {
	_Alignas(256) struct stress *run;
	unsigned int index; /* 0 to threads - 1 */
	stress_fn fn;
	void *arg; /* of the run */
	uint64_t random;
	uint64_t ops, told, failed; /* sums, the test says of what */
	pthread_t id;
};

/* Runs @fn on each thread; @sums gets the three sums, unless it is NULL. */
void stress_run(struct stress *run, stress_fn fn, struct stress_thread *sums);

/* Whether there is time for another round. */
bool stress_more(struct stress_thread *thread);

/* Returns when every thread of the gate, or of the run, has called it. */
void stress_gate_meet(struct stress_gate *gate);
void stress_meet(struct stress_thread *thread);

uint64_t stress_random(struct stress_thread *thread);

/* @seconds and @rounds, by the environment and the sanitizer. */
double stress_seconds(double seconds);
uint64_t stress_rounds(uint64_t rounds);

/* Asserts that print how to repeat the run. */
#define stress_assert(run, condition) \
	stress_check((run), (condition), #condition, __FILE__, __LINE__)
#define stress_assert_equal(run, a, b)                                        \
	stress_check_equal((run), (uint64_t)(a), (uint64_t)(b), #a, __FILE__, \
			   __LINE__)

void stress_check(const struct stress *run, bool condition, const char *text,
		  const char *file, int line);
void stress_check_equal(const struct stress *run, uint64_t a, uint64_t b,
			const char *text, const char *file, int line);

#endif
