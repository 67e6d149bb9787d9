/* SPDX-License-Identifier: MIT */
/*
 * puppet - a second thread that does one step at a time, when it is told
 *
 * The two meet at a gate before each step and after it. That a step blocks
 * cannot be proved, only that it has not returned after a while; the tests
 * pair each such look with a step that then does return, and with counters
 * that show in which order things happened.
 */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#include "puppet.h"

static void *puppet_main(void *arg)
{
	struct puppet *puppet = arg;

	for (;;) {
		stress_gate_meet(&puppet->gate);
		if (!puppet->step)
			return NULL;
		puppet->step();
		dstref_store_release(&puppet->returned, true);
		stress_gate_meet(&puppet->gate);
	}
}

void puppet_start(struct puppet *puppet)
{
	*puppet = (struct puppet){ .gate.threads = 2 };
	assert_int_equal(pthread_create(&puppet->id, NULL, puppet_main, puppet),
			 0);
}

void puppet_begin(struct puppet *puppet, void (*step)(void))
{
	puppet->step = step;
	dstref_store_relaxed(&puppet->returned, false);
	stress_gate_meet(&puppet->gate);
}

void puppet_finish(struct puppet *puppet)
{
	stress_gate_meet(&puppet->gate);
}

void puppet_do(struct puppet *puppet, void (*step)(void))
{
	puppet_begin(puppet, step);
	puppet_finish(puppet);
}

bool puppet_returned_after(struct puppet *puppet, long milliseconds)
{
	struct timespec time = { 0, milliseconds * 1000000 };

	nanosleep(&time, NULL);
	return dstref_load_acquire(&puppet->returned);
}

void puppet_end(struct puppet *puppet)
{
	puppet->step = NULL;
	stress_gate_meet(&puppet->gate);
	pthread_join(puppet->id, NULL);
}
