/* SPDX-License-Identifier: MIT */
/*
 * explore - every schedule of a case that differs in something
 *
 * Goal: find what stress tests miss, on the code that is shipped. The library's
 * own sources and the scenario are compiled with -fsanitize=thread, which puts
 * a call before each access to memory and in the place of each atomic; they are
 * linked with this runtime, which is not instrumented, and without the
 * sanitizer. The calls (tsan.c), and the functions of libc that the linker
 * wraps, are where the explorer takes part.
 *
 * Method. Threads are coroutines and run one at a time (threads.c), from point
 * to point (schedule.c). A schedule is the list of who went on at each point.
 * It is run from the start; where it ends, the last point that has another
 * choice worth taking is found (dpor.c), and the next schedule is the same up
 * to there and goes the other way. So nothing is kept of the states in between,
 * only the way to the last one. When no choice is left the space is exhausted.
 * random.c draws schedules instead.
 *
 * Every schedule starts from the same memory: the program's writable data is
 * put back, the heap is empty, thread-local data is as at the start. What the
 * runtime remembers of objects and cells is stamped with the number of the
 * schedule and need not be wiped.
 *
 * What is a point. An atomic; taking a mutex, the ways in and out of a wait;
 * RCU where a reader begins, a grace period is asked for or ends, a callback
 * starts. Plain accesses are none, and none are needed. Say that a schedule
 * with points at plain accesses as well would show something new. Take the
 * first step in which it differs from all that are explored: a plain access
 * that comes before or after a conflicting one of another thread, other than
 * here. If happens-before orders the two, it does so by the points between
 * them, whose orders are all explored. If it does not, the two are a race, and
 * a race is reported in whichever order they are met (race.c), for the detector
 * asks for happens-before and not for what came first. So a program in which no
 * schedule of points has a race has none at all, and then (C11 5.1.2.4) each
 * plain access has one possible result. free() is a plain write of the whole
 * block, so use after free needs no more points either.
 *
 * Happens-before comes from the memory orders that the source names: relaxed
 * operations order nothing. An acquire or release that is missing is thus seen
 * on any machine, where plain data, a free, or a frame of a stack hangs on it.
 * Where only values of other atomics do, it takes a memory model that shows
 * those: --tso (tso.c), --weak (weak.c).
 *
 * Bounds. Programs must end: a loop that waits for another thread must do so by
 * explore_await(), a mutex or a condition, or else it waits without end while
 * that one is not let on. With a bound on preemptions all schedules within it
 * are run, without the reduction: the two together would leave out schedules,
 * since the one that stands for another may have more preemptions than the
 * bound.
 */
#include "state.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct state ex;

int explore_self(void)
{
	unsigned int id = ex.self->id;

	return id == MAIN ? -1 : id == RCU ? -2 : (int)(id - FIRST);
}

unsigned int explore_reports(enum dstref_report_kind kind)
{
	return ex.reports[kind];
}

/* The end of a schedule. */

void ex_end_run(void)
{
	_longjmp(ex.host, 1);
}

void ex_fail(const void *pc, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(ex.reason, sizeof(ex.reason), format, args);
	va_end(args);
	ex.watching = ex.looking = false;
	ex.reason_pc = pc;
	ex.failed = true;
	ex_end_run();
}

void explore_fail(const char *file, int line, const char *what)
{
	enter();
	ex_fail(CALLER, "%s at %s:%d", what, file, line);
}

static void on_report(const struct dstref_report *report, void *ctx)
{
	(void)ctx;
	ex.reports[report->kind]++;
	if (!enter())
		return;
	trace(K_REPORT, CALLER, report->object, 0)->text =
		dstref_report_name(report->kind);
	if (!ex.running->reports)
		ex_fail(CALLER, "%s reports %s, value 0x%llx", report->call,
			dstref_report_name(report->kind),
			(unsigned long long)report->value);
	leave();
}

static const struct dstref_report_hook hook = { on_report, NULL };

static void on_signal(int number)
{
	ex_fail(NULL, "signal: %s", strsignal(number));
}

static void catch_signals(void)
{
	static const int numbers[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL,
				       SIGABRT };
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = SA_NODEFER | SA_ONSTACK };
	stack_t stack = { .ss_sp = ex_map(STACK_SIZE), .ss_size = STACK_SIZE };

	sigaltstack(&stack, NULL);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		sigaction(numbers[i], &action, NULL);
}

static void reset(void)
{
	image_restore();
	ex.run++;
	ex.object_count = 0;
	ex.depth = 0;
	trace_reset();
	ex.branching = ex.launching = ex.failed = ex.redundant = false;
	ex.now = 1000000000;
	memset(ex.count, 0, sizeof(ex.count));
	memset(ex.order, 0, sizeof(ex.order));
	memset(ex.reports, 0, sizeof(ex.reports));
	threads_reset();
	race_reset();
	memory_reset();
	keys_reset();
	tso_reset();
	weak_reset();
	rcu_reset();
	if (ex.search == SEARCH_RANDOM)
		random_start();
}

static void run_once(void)
{
	reset();
	thread_start(MAIN, schedule_case);
	thread_start(RCU, rcu_thread);
	if (!_setjmp(ex.host))
		threads_run();
	ex.watching = false;
	if (ex.redundant)
		ex.redundants++;
	else
		ex.schedules++;
	if (ex.options.outcomes && !ex.redundant && !ex.failed)
		outcome_add();
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* True when there is a next schedule to run. */
static bool more(double start)
{
	const struct options *options = &ex.options;

	if (ex.failed || ex.search == SEARCH_REPLAY)
		return false;
	if (options->max && ex.schedules >= options->max)
		return false;
	if (options->seconds > 0 && !(ex.schedules & 255) &&
	    seconds() - start > options->seconds)
		return false;
	if (ex.search == SEARCH_RANDOM)
		return ex.schedules < options->random;
	if (nodes_next())
		return true;
	ex.exhausted = true;
	return false;
}

static void search(const struct explore_case *running)
{
	const struct options *options = &ex.options;

	ex.running = running;
	ex.bound = options->bound_set ? options->bound : running->bound;
	ex.search = options->replay			? SEARCH_REPLAY
		    : options->random			? SEARCH_RANDOM
		    : ex.bound || options->no_reduction ? SEARCH_PLAIN
							: SEARCH_REDUCED;
	ex.schedules = ex.points = ex.redundants = 0;
	ex.deepest = ex.prefix = 0;
	ex.exhausted = false;
	if (options->outcomes)
		outcome_reset();
}

/* How much of the space was seen. */
static void print_extent(bool whole)
{
	if (ex.search == SEARCH_REPLAY)
		printf("replayed");
	else if (ex.failed)
		printf("failed");
	else if (ex.search == SEARCH_RANDOM)
		printf("random seed %llu", (unsigned long long)ex.options.seed);
	else if (!whole)
		printf("cut at %llu", (unsigned long long)ex.schedules);
	else if (ex.bound)
		printf("bound %u", ex.bound);
	else
		printf("exhausted");
}

static void print_result(double took, bool whole)
{
	printf("case %s: schedules %llu, points %llu, depth max %u, ",
	       ex.running->name, (unsigned long long)ex.schedules,
	       (unsigned long long)ex.points, ex.deepest);
	print_extent(whole);
	printf(", seconds %.3f, rate %.0f/s", took,
	       took > 0 ? (double)ex.schedules / took : 0);
	if (ex.redundants)
		printf(", redundant %llu", (unsigned long long)ex.redundants);
	putchar('\n');
	fflush(stdout);
}

static void print_failure(void)
{
	const struct thread *self = ex.self;
	char place[300];

	trace_print();
	printf("case %s: schedule %llu fails: %s\n", ex.running->name,
	       (unsigned long long)ex.schedules, ex.reason);
	if (ex.reason_pc) {
		trace_place(ex.reason_pc, place, sizeof(place));
		printf("  at %s\n", place);
	}
	for (unsigned int i = self->depth < CALLS ? self->depth : CALLS;
	     ex.reason_pc && i-- > 1;) {
		trace_place(self->calls[i].pc, place, sizeof(place));
		printf("  from %s\n", place);
	}
	replay_print();
}

/* Explores one case; false when a schedule failed. */
static bool explore(const struct explore_case *running)
{
	double start = seconds(), took;

	search(running);
	do
		run_once();
	while (more(start));
	took = seconds() - start;
	if (ex.options.trace && !ex.failed)
		trace_print();
	if (ex.failed && !ex.options.expect_failure)
		print_failure();
	print_result(took, ex.exhausted);
	if (ex.options.outcomes)
		outcome_print();
	return !ex.failed;
}

static bool chosen(const struct explore_case *running)
{
	return !ex.options.only || !strcmp(ex.options.only, running->name);
}

static int explore_all(void)
{
	uint64_t schedules = 0;
	bool passed = true;

	for (const struct explore_case *c = explore_cases; c->name && passed;
	     c++) {
		if (!chosen(c))
			continue;
		passed = explore(c);
		schedules += ex.schedules;
	}
	if (!ex.options.expect_failure)
		return !passed;
	if (passed)
		printf("no failure in %llu schedules\n",
		       (unsigned long long)schedules);
	else
		printf("found after %llu schedules: %s\n",
		       (unsigned long long)schedules, ex.reason);
	return passed;
}

static void create(void)
{
	ex.events = ex_map(STEPS * sizeof(*ex.events));
	ex.nodes = ex_map((STEPS + 1) * sizeof(*ex.nodes));
	ex.event_of = ex_map(PROCS * sizeof(*ex.event_of));
	ex.objects = ex_map(OBJECTS * sizeof(*ex.objects));
	race_create();
	memory_create();
	wait_create();
	keys_create();
	tso_create();
	weak_create();
	rcu_create();
	random_create();
	if (ex.options.outcomes)
		outcome_create();
	trace_create();
	threads_create();
	dstref_report_set_hook(&hook);
	dstref_report_set_limit(UINT64_MAX);
}

int main(int argc, char **argv)
{
	options_parse(argc, argv);
	create();
	catch_signals();
	image_save();
	return explore_all();
}
