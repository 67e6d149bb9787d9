/* SPDX-License-Identifier: MIT */
/*
 * schedule - the points of a schedule, and who goes on at each
 *
 * A thread that is about to touch what others may touch says what, and stops: a
 * point. Then it is decided, on its own stack, who goes on; if it is the thread
 * itself, nothing is switched. Whoever goes on makes the step that it had
 * announced, and all that is its own business up to its next point. So at every
 * point the next step of every thread is known, which the reduction needs.
 *
 * Unlocking, and leaving a reader, are no points. They touch nothing that
 * another step could race for: they only let others go on, who could not
 * before. Doing them at once, as the end of the step before, loses no schedule:
 * any step that another thread makes between the two could be made after both
 * as well, with the same result.
 *
 * Setup and check run alone: they go on whenever they can, and the thread of
 * callbacks runs while they wait. That is no choice and not explored.
 */
#include "state.h"

#include <stdio.h>

static bool is_ready(const struct thread *thread)
{
	const struct op *op = &thread->next;

	if (!thread->live || thread->ended)
		return false;
	if (op->drained && !tso_empty(thread->id))
		return false;
	return !op->ready || op->ready(thread);
}

static unsigned int enabled(void)
{
	unsigned int set = 0;

	for (unsigned int id = FIRST; id < THREADS; id++) {
		if (is_ready(&ex.threads[id]))
			set |= 1u << id;
		if (!tso_empty(id))
			set |= 1u << (BUFFERS + id);
	}
	return set;
}

static bool threads_ended(void)
{
	for (unsigned int id = FIRST; id < RCU; id++)
		if (ex.threads[id].live && !ex.threads[id].ended)
			return false;
	return true;
}

static _Noreturn void deadlock(void)
{
	char names[200], name[16];
	size_t at = 0;

	for (unsigned int id = MAIN; id < THREADS; id++) {
		struct thread *thread = &ex.threads[id];
		bool idle = (id == MAIN && ex.branching) ||
			    (id == RCU && rcu_idle());

		if (!thread->live || thread->ended || idle)
			continue;
		at += (size_t)snprintf(names + at, sizeof(names) - at,
				       "%s%s (%s)", at ? ", " : "",
				       proc_name(id, name),
				       kind_name(thread->next.kind));
		trace_stuck(thread);
	}
	ex_fail(NULL, "none can go on: %s", names);
}

/* Who goes on while setup or check run. */
static unsigned int next_alone(void)
{
	for (;;) {
		if (is_ready(&ex.threads[MAIN]))
			return MAIN;
		if (is_ready(&ex.threads[RCU]))
			return RCU;
		if (!wait_timeout())
			deadlock();
	}
}

/* The next step is @proc's. */
static unsigned int next_branching(void)
{
	for (;;) {
		unsigned int set = enabled();

		if (!set) {
			if (threads_ended() && rcu_idle())
				return MAIN;
			if (!wait_timeout())
				deadlock();
			continue;
		}
		if (ex.depth == STEPS)
			ex_fail(NULL, "no end after %d steps", STEPS);
		node_open(set);
		int proc = node_choose();

		if (proc < 0) {
			ex.redundant = true;
			ex_end_run();
		}
		if (proc < BUFFERS) {
			ex.current = (unsigned int)proc;
			return ex.current;
		}
		tso_flush((unsigned int)proc - BUFFERS);
	}
}

static void go_on(void)
{
	unsigned int to = ex.launching	 ? MAIN
			  : ex.branching ? next_branching()
					 : next_alone();

	if (to != ex.self->id)
		thread_switch(to);
}

void point(const struct op *op)
{
	ex.self->next = *op;
	go_on();
	event_begin(ex.self->id);
	clock_tick(ex.self);
	if (op->drained && ex.options.memory == MEMORY_TSO)
		event_after(&ex.order[BUFFERS + ex.self->id]);
	if (ex.self->timed_out)
		event_after_all();
}

void step(const struct op *op)
{
	point(op);
	event_touches(op->touches, op->how);
}

/* The end of a thread: it does not come back. */
void thread_end(void)
{
	trace(K_THREAD_END, NULL, NULL, 0);
	ex.self->ended = true;
	go_on();
	__builtin_unreachable();
}

/* Runs each thread up to its first point: nothing of that is seen by others. */
static void launch(const struct explore_case *running)
{
	ex.launching = true;
	for (unsigned int i = 0; running->thread[i]; i++) {
		thread_start(FIRST + i, running->thread[i]);
		ex.threads[FIRST + i].clock = ex.self->clock;
		clock_tick(&ex.threads[FIRST + i]);
		thread_switch(FIRST + i);
	}
	if (!ex.threads[RCU].started)
		thread_switch(RCU);
	clock_tick(ex.self);
	ex.launching = false;
}

static void join(void)
{
	for (unsigned int id = FIRST; id < THREADS; id++)
		clock_join(&ex.self->clock, &ex.threads[id].clock);
}

static bool idle(const struct thread *thread)
{
	(void)thread;
	return rcu_idle();
}

/* What the first thread does. */
void schedule_case(void)
{
	const struct explore_case *running = ex.running;
	struct op settle = { .kind = K_BARRIER_END, .ready = idle };

	enter();
	if (running->setup) {
		leave();
		running->setup();
		enter();
	}
	launch(running);
	ex.branching = true;
	ex.current = MAIN; /* any first one is no preemption */
	go_on();
	ex.branching = false;
	join();
	if (running->check) {
		leave();
		running->check();
		enter();
	}
	keys_end();
	point(&settle);
	join();
	if (!running->leaks)
		memory_leaks();
	ex_end_run();
}
