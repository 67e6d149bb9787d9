/* SPDX-License-Identifier: MIT */
/*
 * explore - every interleaving of a few threads on the real code
 *
 * A scenario is a file tests/explore/NAME.c that includes this header and
 * defines explore_cases. It is linked with the library's own sources,
 * compiled with -fsanitize=thread, and with the runtime in this folder in
 * place of the sanitizer's. Each atomic access, lock, allocation and RCU call
 * of the threads is then a point at which another thread may go on; the runtime
 * runs the case again and again, from the same start, along all schedules that
 * differ in something (explore.c says how they are told apart).
 *
 * What ends a schedule as a failure: explore_assert(); a data race (plain
 * accesses that nothing orders, at least one of them a write: so a release or
 * acquire that is missing is seen where plain data depends on it); an access to
 * freed memory, or beside an allocation; a second free; a thread that can
 * never go on (lost wake-up, deadlock); memory that is still allocated at
 * the end; a misuse report that the case does not expect.
 *
 * Code of a case runs on the scenario's threads and sees no clock, no
 * randomness, and no I/O. Every static variable is put back before each
 * schedule, and heap memory too: a case needs no reset of its own.
 */
#ifndef EXPLORE_H
#define EXPLORE_H

#include <dstref/dstref.h>

#include <stdbool.h>
#include <stdint.h>

#include <urcu/call-rcu.h>
#include <urcu/compiler.h>
#include <urcu/flavor.h>

#define EXPLORE_THREADS 4 /* of a case, at most */

/**
 * struct explore_case - one thing to explore
 * @name: of the case, unique in its scenario
 * @setup: runs alone before the threads; may be NULL
 * @thread: what each thread does, once; ended by NULL
 * @check: runs alone when all threads have ended and all callbacks have run
 *         (the test's assertions about the end); may be NULL
 * @bound: preemptions at most in a schedule; 0 leaves out none
 * @reports: misuse is expected: a report is counted (explore_reports()), and
 *           no failure
 * @leaks: memory left at the end is expected (a saturated object)
 *
 * A preemption is a switch away from a thread that could have gone on.
 */
struct explore_case {
	const char *name;
	void (*setup)(void);
	void (*thread[EXPLORE_THREADS + 1])(void);
	void (*check)(void);
	unsigned int bound;
	bool reports;
	bool leaks;
};

/* The scenario defines it; the last element has no name. */
extern const struct explore_case explore_cases[];

/*
 * The RCU flavour. A grace period ends when every reader that was inside when
 * it was asked for has left; how much later is the explorer's choice. Callbacks
 * run in the order of their queueing on a thread of their own. Threads of a
 * case are registered; setup and check are in no reader.
 */
extern const struct rcu_flavor_struct explore_flavor;

static inline void explore_read_lock(void)
{
	explore_flavor.read_lock();
}

static inline void explore_read_unlock(void)
{
	explore_flavor.read_unlock();
}

/* Ends the schedule as a failure; does not return. */
_Noreturn void explore_fail(const char *file, int line, const char *what);

#define explore_assert(condition)                       \
	((condition) ? (void)0                          \
		     : explore_fail(__FILE__, __LINE__, \
				    "assertion failed: " #condition))

/* The index of the calling thread in the case; in setup and check -1, in an
 * RCU callback -2. */
int explore_self(void);

/* Misuse reports of @kind in this schedule. */
unsigned int explore_reports(enum dstref_report_kind kind);

/* Callbacks that are queued and have not run; for setup, check, and conditions
 * of explore_await(). */
unsigned int explore_callbacks(void);

/* What came out of the schedule, for --outcomes, which prints the set of it. */
void explore_outcome(uint64_t value);

/* Waits, as a thread of the case, until no callback is queued. For setup and
 * check, and for threads that are in no reader. */
void explore_barrier(void);

/* Waits until another thread makes @condition true, for good. It is looked at
 * by the runtime, and is no access of the thread; what made it true is seen. */
void explore_await(bool (*condition)(void));

#endif
