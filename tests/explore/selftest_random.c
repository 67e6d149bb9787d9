/* SPDX-License-Identifier: MIT */
/*
 * selftest_random - programs that nobody thought of
 *
 * Goal: the reduction loses no trace, whatever meets. Method: each case is a
 * program of a few operations per thread, drawn from all that the explorer
 * knows by a number: loads, stores, read-modify-writes, mutexes, conditions
 * with an end, sleeps, readers, callbacks, synchronize, barriers, waits for a
 * condition. selftest.sh compares the traces with those of the plain
 * search. Build with another SELFTEST_SEED for other programs.
 */
#include "explore.h"

#include <pthread.h>
#include <time.h>

#ifndef SELFTEST_SEED
#define SELFTEST_SEED 0
#endif

typedef DSTREF_ATOMIC(unsigned int) word;

static word words[2], ticket;
static unsigned int seed, plain, sum;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static struct rcu_head heads[EXPLORE_THREADS][4];

/* What the thread has seen so far goes into what it writes. */
struct self {
	unsigned int thread, at, seen;
};

static unsigned int draw(const struct self *self, unsigned int n)
{
	uint64_t z = (seed * 64u + self->thread * 8u + self->at + 1) *
		     UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (unsigned int)((z >> 33) % n);
}

static void see(struct self *self, unsigned int value)
{
	self->seen = self->seen * 31 + value + 1;
}

static word *pick(const struct self *self)
{
	return &words[draw(self, 64) / 32];
}

static void do_load(struct self *self)
{
	see(self, dstref_load_acquire(pick(self)));
}

static void do_store(struct self *self)
{
	dstref_store_release(pick(self), self->seen + self->thread + 1);
}

static void do_store_total(struct self *self)
{
	atomic_store_explicit(pick(self), self->seen + self->thread + 1,
			      memory_order_seq_cst);
}

static void do_add(struct self *self)
{
	see(self, dstref_fetch_add_acq_rel(pick(self), 1u));
}

static void do_swap(struct self *self)
{
	unsigned int old = 0;

	(void)dstref_cas_acq_rel(pick(self), &old, self->thread + 1);
	see(self, old);
}

static void do_branch(struct self *self)
{
	if (dstref_load_relaxed(&words[0]) & 1)
		dstref_store_relaxed(&words[1], self->thread + 1);
}

static void do_lock(struct self *self)
{
	pthread_mutex_lock(&mutex);
	plain = plain * 5 + self->thread;
	see(self, plain);
	pthread_mutex_unlock(&mutex);
}

static void do_nested(struct self *self)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_lock(&inner);
	plain++;
	pthread_mutex_unlock(&inner);
	see(self, dstref_load_relaxed(&words[0]));
	pthread_mutex_unlock(&mutex);
}

static void do_wait(struct self *self)
{
	static const struct timespec end = { 9, 0 };

	pthread_mutex_lock(&mutex);
	see(self, pthread_cond_timedwait(&cond, &mutex, &end) != 0);
	pthread_mutex_unlock(&mutex);
}

static void do_signal(struct self *self)
{
	if (self->at & 1) {
		pthread_cond_signal(&cond);
		return;
	}
	pthread_mutex_lock(&mutex);
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&mutex);
}

static void do_sleep(struct self *self)
{
	static const struct timespec second = { 1, 0 };

	nanosleep(&second, NULL);
	see(self, dstref_load_relaxed(&words[0]));
}

static void do_read(struct self *self)
{
	explore_read_lock();
	see(self, dstref_load_acquire(pick(self)));
	see(self, dstref_load_acquire(pick(self)));
	explore_read_unlock();
}

static void callback(struct rcu_head *head)
{
	(void)head;
	(void)dstref_fetch_add_relaxed(&words[1], 8u);
}

static void do_defer(struct self *self)
{
	dstref_store_relaxed(&words[0], 2u);
	explore_flavor.update_call_rcu(&heads[self->thread][self->at],
				       callback);
}

static void do_synchronize(struct self *self)
{
	(void)self;
	explore_flavor.update_synchronize_rcu();
}

static void do_barrier(struct self *self)
{
	explore_flavor.barrier();
	see(self, dstref_load_relaxed(&words[1]));
}

static bool has_ticket(void)
{
	return dstref_load_relaxed(&ticket) != 0;
}

/* The last thread of each case gives the ticket, first of all. */
static void do_await(struct self *self)
{
	explore_await(has_ticket);
	see(self, 1);
}

static void (*const operations[])(struct self *self) = {
	do_load,  do_store, do_store_total, do_add,    do_swap,
	do_load,  do_lock,  do_nested,	    do_wait,   do_signal,
	do_sleep, do_read,  do_defer,	    do_read,   do_synchronize,
	do_store, do_await, do_barrier,	    do_branch,
};

static void run(unsigned int count)
{
	struct self self = { .thread = (unsigned int)explore_self() };

	for (; self.at < count; self.at++)
		operations[draw(&self, sizeof(operations) /
					       sizeof(*operations))](&self);
	pthread_mutex_lock(&inner);
	sum += self.seen;
	pthread_mutex_unlock(&inner);
}

static void three(void)
{
	run(3);
}

static void two(void)
{
	run(2);
}

static void give_and_three(void)
{
	dstref_store_relaxed(&ticket, 1u);
	run(3);
}

static void give_and_one(void)
{
	dstref_store_relaxed(&ticket, 1u);
	run(1);
}

static void check(void)
{
	explore_outcome((uint64_t)dstref_load_relaxed(&words[0]) << 32 ^
			dstref_load_relaxed(&words[1]) ^ sum ^ plain << 16);
}

#define SEED(n)                             \
	static void seed_##n(void)          \
	{                                   \
		seed = SELFTEST_SEED + (n); \
	}
#define CASES(n)                                                     \
	{ .name = "two-" #n,                                         \
	  .setup = seed_##n,                                         \
	  .thread = { three, give_and_three },                       \
	  .check = check },                                          \
	{                                                            \
		.name = "three-" #n, .setup = seed_##n,              \
		.thread = { two, two, give_and_one }, .check = check \
	}

SEED(0)
SEED(1)
SEED(2)
SEED(3)
SEED(4)
SEED(5)
SEED(6)
SEED(7)
SEED(905) /* the end of a reader in a store buffer */

const struct explore_case explore_cases[] = {
	CASES(0), CASES(1), CASES(2), CASES(3),	  CASES(4),
	CASES(5), CASES(6), CASES(7), CASES(905), { 0 },
};
