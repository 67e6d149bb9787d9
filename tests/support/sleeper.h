/* SPDX-License-Identifier: MIT */
/*
 * sleeper - a thread that waits on a sock, and what its namespace counts
 *
 * A test starts a sleeper, waits until the namespace of the global scene has
 * counted its sleep, does one thing, and asks how the wait ended. From the
 * count on the sleeper is parked, so any wake finds it: no pause is needed. A
 * wait that is not given a time ends after SLEEPER_LONG at most: the test
 * then fails rather than hangs.
 */
#ifndef TESTS_SLEEPER_H
#define TESTS_SLEEPER_H

#include "scene.h"

#define SLEEPER_MS INT64_C(1000000)
#define SLEEPER_LONG (INT64_C(10000) * SLEEPER_MS)

#define SLEEPER_SNDBUF 1000u /* of a full sock */

enum sleeper_kind { ROOM, DATA };

struct sleeper {
	pthread_t id;
	struct dstref_sock *sk;
	enum sleeper_kind kind;
	uint32_t token; /* DATA: of the time of start */
	int64_t timeout; /* nanoseconds; 0: SLEEPER_LONG */
	int result;
};

/* Begins a wait on a thread that is registered nowhere. */
void sleeper_start(struct sleeper *sleeper, struct dstref_sock *sk,
		   enum sleeper_kind kind);

/* The wait itself, for a thread of the test's own. */
int sleeper_wait(struct sleeper *sleeper);

/* What the wait returned, when it has. */
int sleeper_end(struct sleeper *sleeper);

/* Waits until so many sleeps were counted; fails if there are more. */
void sleeper_until(uint64_t room, uint64_t data);

/* Fails unless so many wake-ups were counted. */
void sleeper_wakeups(uint64_t room, uint64_t data);

/* A sock of the scene that is full: ten packets of 100 bytes. */
struct dstref_sock *sleeper_full(void);

/* So many of the packets complete, in a reader. */
void sleeper_complete(struct dstref_sock *sk, int packets);

/* Whether a mark says that somebody waits, for room or for data. */
bool sleeper_marked(struct dstref_sock *sk);

/* No mark was left; the last packets complete, and the sock ends. */
void sleeper_let_go(struct dstref_sock *sk, int packets);

struct dstref_net_counters sleeper_stats(void);

/* Nanoseconds of a clock that does not go back. */
int64_t sleeper_now(void);

#endif
