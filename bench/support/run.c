/* SPDX-License-Identifier: MIT */
/*
 * One run: threads, a common start, an end, and what each of them did.
 *
 * Threads are made, pinned, and have touched their own memory before the
 * clock starts: each arrives at a line, and the last one to arrive reads the
 * clock and opens it (R1). Those that wait poll it, and yield, so that more
 * threads than CPUs can arrive too. A thread's wall time counts from that one
 * moment, not from when the scheduler let it go on: else a thread that starts
 * late would seem fast.
 *
 * The calling thread sleeps meanwhile, until the time is up or all work has
 * ended, and sets the stop flag. So the length of a run comes from the
 * kernel's clock and the measurement from the plan's, which a test may replace
 * by one that is coarse or stands still.
 *
 * Pairs: R1 publishes the start time to A1, both in start_wait(). Relaxed is
 * enough for the stop flag: it carries nothing, and what threads leave behind
 * is read after pthread_join().
 */
#include "harness.h"
#include "stats.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Two lines: neighbours are fetched in pairs. */
#define APART ((size_t)2 * BENCH_LINE)

struct start {
	_Alignas(2 * BENCH_LINE) unsigned int arrived;
	unsigned int threads;
	bool cancelled; /* some thread could not be made */
	pthread_mutex_t lock; /* of the next two, for the calling thread */
	pthread_cond_t changed;
	bool begun;
	unsigned int ended; /* threads */
	_Alignas(2 * BENCH_LINE) uint64_t at;
	bool open;
	_Alignas(2 * BENCH_LINE) bool over;
};

/* A thread of a run: what its work sees first, ours after. */
struct worker {
	_Alignas(2 * BENCH_LINE) struct bench_self self;
	struct start *start;
	const struct run_plan *plan;
	struct bench_thread *thread;
	pthread_t pthread;
};

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t wall_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static uint64_t cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

const struct run_clock run_clock_system = { .wall = wall_ns, .cpu = cpu_ns };

/* Room for n bytes on lines of their own, touched by who calls. */
static void *alloc_apart(size_t n)
{
	size_t size = (n + APART - 1) / APART * APART;
	void *p = aligned_alloc(APART, size);

	if (p)
		memset(p, 0, size);
	return p;
}

static void tell_begun(struct start *start)
{
	pthread_mutex_lock(&start->lock);
	start->begun = true;
	pthread_cond_signal(&start->changed);
	pthread_mutex_unlock(&start->lock);
}

static void tell_ended(struct start *start)
{
	pthread_mutex_lock(&start->lock);
	start->ended++;
	pthread_cond_signal(&start->changed);
	pthread_mutex_unlock(&start->lock);
}

/* True once all are there; false when the run is called off. */
static bool start_wait(struct start *start, const struct run_clock *clock)
{
	if (__atomic_add_fetch(&start->arrived, 1, __ATOMIC_ACQ_REL) ==
	    start->threads) {
		tell_begun(start);
		start->at = clock->wall();
		/* R1, with A1 below: the time. */
		__atomic_store_n(&start->open, true, __ATOMIC_RELEASE);
		return true;
	}
	/* A1, with R1 above. */
	while (!__atomic_load_n(&start->open, __ATOMIC_ACQUIRE)) {
		if (__atomic_load_n(&start->cancelled, __ATOMIC_RELAXED))
			return false;
		sched_yield();
	}
	return true;
}

static double elapsed(uint64_t from, uint64_t to)
{
	return to > from ? (double)(to - from) : 0;
}

static void keep(struct bench_thread *thread, struct bench_self *self)
{
	size_t n = self->sampled < BENCH_SAMPLES ? self->sampled
						 : BENCH_SAMPLES;

	thread->ops = self->ops ? self->ops : self->sampled;
	memcpy(thread->counter, self->counter, sizeof(thread->counter));
	thread->sampled = self->sampled;
	stats_sort(self->samples, n);
	thread->sample = n ? stats_quantile(self->samples, n, 0.5) : 0;
}

static void *run_thread(void *arg)
{
	struct worker *w = arg;
	struct bench_self *self = &w->self;
	const struct cpus *cpus = w->plan->cpus;
	const struct run_clock *clock = w->plan->clock;
	unsigned int id = cpus_of_thread(cpus, self->id);
	bool pinned = !cpus->pin || cpus_pin(cpus, id);
	uint64_t cpu;

	/* Touched here, so that it is near. */
	memset(self->samples, 0, BENCH_SAMPLES * sizeof(*self->samples));
	if (!start_wait(w->start, clock))
		return NULL;
	cpu = clock->cpu();
	self->variant->work(self);
	w->thread->cpu_ns = elapsed(cpu, clock->cpu());
	w->thread->wall_ns = elapsed(w->start->at, clock->wall());
	tell_ended(w->start);
	w->thread->cpu = sched_getcpu();
	w->thread->pinned = pinned && (!cpus->pin || w->thread->cpu == (int)id);
	keep(w->thread, self);
	return NULL;
}

/* By the clock that the condition waits with. */
static struct timespec after(double seconds)
{
	struct timespec t;
	double whole;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += (long)(modf(seconds, &whole) * 1e9);
	t.tv_sec += (time_t)whole + t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

/* From the common start until the time is up, or all have ended. */
static void wait_for_end(struct start *start, double seconds)
{
	struct timespec end;
	int rc = 0;

	pthread_mutex_lock(&start->lock);
	while (!start->begun)
		pthread_cond_wait(&start->changed, &start->lock);
	end = after(seconds);
	while (start->ended < start->threads && !rc)
		rc = pthread_cond_timedwait(&start->changed, &start->lock,
					    &end);
	pthread_mutex_unlock(&start->lock);
}

static int worker_start(struct worker **worker, const struct worker *model)
{
	struct worker *w = alloc_apart(sizeof(*w));
	int rc;

	if (!w)
		return -ENOMEM;
	*w = *model;
	w->self.samples = alloc_apart(BENCH_SAMPLES * sizeof(*w->self.samples));
	rc = w->self.samples ? pthread_create(&w->pthread, NULL, run_thread, w)
			     : ENOMEM;
	if (rc) {
		free(w->self.samples);
		free(w);
		return -rc;
	}
	*worker = w;
	return 0;
}

static void worker_end(struct worker *w)
{
	pthread_join(w->pthread, NULL);
	free(w->self.samples);
	free(w);
}

/* All threads, from their making to their end; 0 or -errno. */
static int run_workers(struct worker **worker, struct worker *model,
		       double seconds)
{
	struct start *start = model->start;
	struct bench_thread *thread = model->thread;
	unsigned int n = 0;
	int rc = 0;

	while (n < start->threads && !rc) {
		model->self.id = n;
		model->thread = &thread[n];
		rc = worker_start(&worker[n], model);
		n += !rc;
	}
	if (rc) {
		__atomic_store_n(&start->cancelled, true, __ATOMIC_RELAXED);
	} else {
		wait_for_end(start, seconds);
		__atomic_store_n(&start->over, true, __ATOMIC_RELAXED);
	}
	while (n)
		worker_end(worker[--n]);
	return rc;
}

static void start_open(struct start *start, unsigned int threads)
{
	pthread_condattr_t attr;

	*start = (struct start){ .threads = threads };
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&start->changed, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&start->lock, NULL);
}

static void start_close(struct start *start)
{
	pthread_mutex_destroy(&start->lock);
	pthread_cond_destroy(&start->changed);
}

int run_variant(const struct run_plan *plan,
		const struct bench_variant *variant, unsigned int threads,
		struct bench_thread *thread)
{
	struct worker **worker = calloc(threads, sizeof(struct worker *));
	struct start start;
	struct worker model = { .start = &start,
				.plan = plan,
				.thread = thread };
	int rc = worker ? 0 : -ENOMEM;

	model.self.threads = threads;
	model.self.variant = variant;
	model.self.over = &start.over;
	memset(thread, 0, threads * sizeof(*thread));
	start_open(&start, threads);
	if (!rc && variant->setup)
		rc = variant->setup(variant, threads, &model.self.state);
	if (!rc) {
		rc = run_workers(worker, &model, plan->seconds);
		if (variant->teardown)
			variant->teardown(model.self.state);
	}
	start_close(&start);
	free(worker);
	return rc;
}
