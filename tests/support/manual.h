/* SPDX-License-Identifier: MIT */
/*
 * manual - an RCU flavour whose grace periods a test advances by hand
 *
 * manual_flavor is a struct rcu_flavor_struct like liburcu's: a namespace can
 * be created with it. Nothing ends a grace period but manual_advance() and
 * the calls that wait for one (synchronize, barrier), so a test can stand
 * between any two events of a lifetime and look.
 *
 * It is strict where liburcu is undefined. Each misuse of RCU is a fault, told
 * to the hook and counted: a reader on a thread that is not registered, a
 * thread that unregisters or ends inside a reader, a wait inside a reader. A
 * fault never ends a grace period early (C17).
 *
 * This header includes nothing of liburcu, so it may stand before or after
 * any flavour's own.
 */
#ifndef TESTS_MANUAL_H
#define TESTS_MANUAL_H

#include <stdbool.h>
#include <stdint.h>

struct rcu_flavor_struct;

extern const struct rcu_flavor_struct manual_flavor;

enum manual_fault {
	MANUAL_NOT_REGISTERED, /* a reader on a thread that is not registered */
	MANUAL_NOT_INSIDE, /* unlock without lock */
	MANUAL_READS_OFFLINE, /* a reader on a thread that is offline */
	MANUAL_REGISTERED_TWICE,
	MANUAL_UNREGISTERS_INSIDE, /* stays registered, stays inside */
	MANUAL_ENDS_REGISTERED, /* the thread ended without unregister */
	MANUAL_ENDS_INSIDE, /* its reader stays for ever: see manual_reset() */
	MANUAL_OFFLINE_INSIDE, /* stays online, stays inside */
	MANUAL_WAITS_INSIDE, /* synchronize or barrier: returns at once */
	MANUAL_FAULTS
};

/* Told of each fault, in the thread that made it. */
typedef void (*manual_fault_fn)(enum manual_fault fault, const char *text);

/* Who is told from now on; NULL: print a line and abort, as at the start. */
void manual_set_hook(manual_fault_fn fn);

/* Faults of a kind since the last manual_reset(). */
unsigned int manual_faults(enum manual_fault fault);

/*
 * Begins a grace period if none is open, and ends it if every reader that was
 * inside at its beginning has left; then runs, on this thread, the callbacks
 * that were queued before it began. False: it stays open, nothing was run.
 */
bool manual_advance(void);

/* Advances until no callback is left; false when a reader stands in the way. */
bool manual_drain(void);

unsigned int manual_pending(void); /* callbacks queued or running */
unsigned int manual_inside(void); /* threads inside a reader */
unsigned int manual_registered(void); /* threads registered */
uint64_t manual_periods(void); /* grace periods that ended */
uint64_t manual_offlines(void); /* times that a thread went offline */

/*
 * Forgets faults, readers of threads that ended, and callbacks that were not
 * run. Returns how many callbacks those were. No other thread may be busy.
 */
unsigned int manual_reset(void);

#endif
