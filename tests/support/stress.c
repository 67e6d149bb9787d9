/* SPDX-License-Identifier: MIT */
/*
 * stress - threads that start together and end in bounded time
 *
 * The gate is a barrier for threads that meet a million times: the last to
 * arrive opens it, the others spin a little, since a partner on another core
 * is a line's journey away, and then yield, since on a busy machine he may be
 * waiting for this very core. It orders: what a thread did before it arrived
 * happened before what any did after it passed (R1 the arrival and the
 * opening, A1 the opener's arrival and the spin).
 */
#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "stress.h"

#define SPINS 200

void stress_gate_meet(struct stress_gate *gate)
{
	unsigned int turn = dstref_load_relaxed(&gate->passed);

	/* R1 and A1: acq_rel, whichever side this thread is on. */
	if (dstref_fetch_add_acq_rel(&gate->arrived, 1u) + 1 == gate->threads) {
		dstref_store_relaxed(&gate->arrived, 0u);
		dstref_store_release(&gate->passed, turn + 1); /* R1 */
		return;
	}
	for (unsigned int i = 0; dstref_load_acquire(&gate->passed) == turn;
	     i++) /* A1 */
		if (i >= SPINS)
			sched_yield();
}

void stress_meet(struct stress_thread *thread)
{
	stress_gate_meet(&thread->run->gate);
}

bool stress_more(struct stress_thread *thread)
{
	return !dstref_load_relaxed(&thread->run->stop);
}

/* xorshift64*: never zero. */
uint64_t stress_random(struct stress_thread *thread)
{
	uint64_t x = thread->random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	thread->random = x;
	return x * UINT64_C(0x2545f4914f6cdd1d) >> 16;
}

static double lengthen(void)
{
	const char *text = getenv("DSTREF_STRESS_SECONDS");
	double seconds = text ? strtod(text, NULL) : 0;

	return seconds > 0 ? seconds / 2 : 1;
}

double stress_seconds(double seconds)
{
	return seconds * lengthen();
}

uint64_t stress_rounds(uint64_t rounds)
{
	uint64_t n = (uint64_t)((double)rounds * lengthen());

	if (TESTS_TSAN)
		n /= 20;
	return n ? n : 1;
}

static uint64_t pick_seed(void)
{
	const char *text = getenv("DSTREF_STRESS_SEED");
	struct timespec now;

	if (text)
		return strtoull(text, NULL, 0);
	clock_gettime(CLOCK_MONOTONIC, &now);
	return ((uint64_t)now.tv_sec << 32 ^ (uint64_t)now.tv_nsec) *
	       (uint64_t)(getpid() | 1);
}

static void *begin(void *arg)
{
	struct stress_thread *thread = arg;

	stress_meet(thread);
	thread->fn(thread);
	return NULL;
}

static void sleep_for(double seconds)
{
	struct timespec time = {
		.tv_sec = (time_t)seconds,
		.tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9),
	};

	while (nanosleep(&time, &time))
		;
}

static void add(struct stress_thread *sums, const struct stress_thread *thread)
{
	if (!sums)
		return;
	sums->ops += thread->ops;
	sums->told += thread->told;
	sums->failed += thread->failed;
}

void stress_run(struct stress *run, stress_fn fn, struct stress_thread *sums)
{
	static struct stress_thread threads[STRESS_THREADS];

	assert_in_range(run->threads, 1, STRESS_THREADS);
	run->seed = pick_seed();
	run->gate.threads = run->threads;
	dstref_init_plain(&run->gate.arrived, 0u);
	dstref_init_plain(&run->gate.passed, 0u);
	dstref_init_plain(&run->stop, false);
	for (unsigned int i = 0; i < run->threads; i++) {
		threads[i] = (struct stress_thread){
			.run = run,
			.index = i,
			.fn = fn,
			.arg = run->arg,
			.random = (run->seed + i) * UINT64_C(2654435761) | 1,
		};
		assert_int_equal(pthread_create(&threads[i].id, NULL, begin,
						&threads[i]),
				 0);
	}
	if (run->seconds > 0) {
		sleep_for(stress_seconds(run->seconds));
		dstref_store_relaxed(&run->stop, true);
	}
	if (sums)
		*sums = (struct stress_thread){ .run = run };
	for (unsigned int i = 0; i < run->threads; i++) {
		pthread_join(threads[i].id, NULL);
		add(sums, &threads[i]);
	}
}

static void failed(const struct stress *run, const char *file, int line)
{
	print_error("repeat with DSTREF_STRESS_SEED=%" PRIu64 "\n", run->seed);
	_fail(file, line);
}

void stress_check(const struct stress *run, bool condition, const char *text,
		  const char *file, int line)
{
	if (condition)
		return;
	print_error("%s does not hold\n", text);
	failed(run, file, line);
}

void stress_check_equal(const struct stress *run, uint64_t a, uint64_t b,
			const char *text, const char *file, int line)
{
	if (a == b)
		return;
	print_error("%s is %" PRIu64 ", not %" PRIu64 "\n", text, a, b);
	failed(run, file, line);
}
