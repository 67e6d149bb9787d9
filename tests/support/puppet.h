/* SPDX-License-Identifier: MIT */
/*
 * puppet - a second thread that does one step at a time, when it is told
 *
 * For tests of one known order of events on two threads. A step that blocks
 * is begun, is seen not to return, and is finished when it may.
 */
#ifndef TESTS_PUPPET_H
#define TESTS_PUPPET_H

#include "stress.h"

struct puppet {
	pthread_t id;
	struct stress_gate gate;
	void (*step)(void);
	DSTREF_ATOMIC(bool) returned;
};

void puppet_start(struct puppet *puppet);

/* Begin @step and go on; wait until it has returned; or both. */
void puppet_begin(struct puppet *puppet, void (*step)(void));
void puppet_finish(struct puppet *puppet);
void puppet_do(struct puppet *puppet, void (*step)(void));

/* Whether the step returned, looked at @milliseconds from now. */
bool puppet_returned_after(struct puppet *puppet, long milliseconds);

/* The thread ends, whatever it has left open. */
void puppet_end(struct puppet *puppet);

#endif
