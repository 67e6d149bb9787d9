/* SPDX-License-Identifier: MIT */
/*
 * selftest - programs whose schedules and outcomes are known
 *
 * Goal: the explorer sees all that can happen and nothing twice, and under each
 * memory model what the literature says. Method: textbook programs on two or
 * more atomics, each with what comes out of it as a number; selftest.sh holds
 * the numbers of schedules and the sets of outcomes against what is known, and
 * a search with the reduction against one without.
 */
#include "explore.h"

#include <pthread.h>

typedef DSTREF_ATOMIC(unsigned int) word;

static word x, y, cells[8];
static unsigned int seen[8], data;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

#define load(p) dstref_load_relaxed(p)
#define store(p, v) dstref_store_relaxed(p, v)
#define LOAD(p) atomic_load_explicit(p, memory_order_seq_cst)
#define STORE(p, v) atomic_store_explicit(p, v, memory_order_seq_cst)
#define FENCE() atomic_thread_fence(memory_order_seq_cst)

/* The seen values as one number, the first the highest digit. */
static void tell_seen(void)
{
	unsigned int number = 0;

	for (int i = 0; i < 4; i++)
		number = number << 4 | seen[i];
	explore_outcome(number);
}

static void tell_x(void)
{
	explore_outcome(load(&x));
}

/* Steps that meet nobody. */
static void own_three(void)
{
	word *cell = &cells[explore_self()];

	for (unsigned int i = 0; i < 3; i++)
		store(cell, i);
}

/* Writers and readers of one location. */
static void write_self(void)
{
	store(&x, (unsigned int)explore_self() + 1);
}

static void read_x(void)
{
	seen[explore_self()] = load(&x);
}

static void add_twice(void)
{
	(void)dstref_fetch_add_relaxed(&x, 1u);
	(void)dstref_fetch_add_relaxed(&x, 1u);
}

/* A counter that loses an update. */
static void add_badly(void)
{
	store(&x, load(&x) + 1);
}

/* lastzero: each sets a cell to more than the one before; one looks for 0. */
static void last_zero_write(void)
{
	unsigned int i = (unsigned int)explore_self();

	store(&cells[i], load(&cells[i - 1]) + 1);
}

static void last_zero_read(void)
{
	unsigned int i = EXPLORE_THREADS - 1;

	while (load(&cells[i]))
		i--;
	seen[0] = i;
}

/* Which comes first decides what a third does. */
static void if_seen(void)
{
	if (load(&x) == 1)
		store(&y, 1u);
}

static void read_y(void)
{
	seen[explore_self()] = load(&y);
}

static void try_swap(void)
{
	unsigned int old = 0;

	if (dstref_cas_relaxed(&x, &old, 1u))
		seen[explore_self()] = 1;
}

/* Mutexes. */
static void locked_add(void)
{
	pthread_mutex_lock(&mutex);
	data = data * 2 + (unsigned int)explore_self();
	pthread_mutex_unlock(&mutex);
}

static void locked_twice(void)
{
	locked_add();
	locked_add();
}

static void tell_data(void)
{
	explore_outcome(data);
}

static void locked_apart(void)
{
	pthread_mutex_t *mine = explore_self() ? &other : &mutex;

	pthread_mutex_lock(mine);
	pthread_mutex_unlock(mine);
}

/* Conditions. */
static void wait_for_data(void)
{
	pthread_mutex_lock(&mutex);
	while (!data)
		pthread_cond_wait(&cond, &mutex);
	pthread_mutex_unlock(&mutex);
}

static void give_data(void)
{
	pthread_mutex_lock(&mutex);
	data = 1;
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&mutex);
}

static void wait_with_end(void)
{
	static const struct timespec end = { 5, 0 };
	int err = 0;

	pthread_mutex_lock(&mutex);
	while (!data && !err)
		err = pthread_cond_timedwait(&cond, &mutex, &end);
	seen[explore_self()] = err ? 2 : 1;
	pthread_mutex_unlock(&mutex);
}

static void give_if_asked(void)
{
	if (load(&x))
		give_data();
}

static void ask(void)
{
	store(&x, 1u);
}

static bool is_set(void)
{
	return load(&x) == 2;
}

static void await_two(void)
{
	explore_await(is_set);
	seen[explore_self()] = data;
}

static void set_two(void)
{
	data = 7;
	store(&x, 1u);
	store(&x, 2u);
}

/* RCU. */
static struct rcu_head heads[EXPLORE_THREADS];

static void callback(struct rcu_head *head)
{
	store(&y, load(&y) * 4 + (unsigned int)(head - heads) + 1);
}

static void defer(void)
{
	int self = explore_self();

	explore_flavor.update_call_rcu(&heads[self], callback);
}

static void read_twice(void)
{
	explore_read_lock();
	seen[0] = load(&y);
	seen[1] = load(&y);
	explore_read_unlock();
}

static void unpublish(void)
{
	store(&x, 1u);
	explore_flavor.update_synchronize_rcu();
	store(&y, 1u);
}

static void reader(void)
{
	explore_read_lock();
	seen[0] = load(&x);
	seen[1] = load(&y);
	explore_read_unlock();
}

static void tell_y(void)
{
	explore_outcome(load(&y));
}

/* Litmus tests. */
static void sb_0(void)
{
	store(&x, 1u);
	seen[0] = load(&y);
}

static void sb_1(void)
{
	store(&y, 1u);
	seen[1] = load(&x);
}

static void sb_fence_0(void)
{
	store(&x, 1u);
	FENCE();
	seen[0] = load(&y);
}

static void sb_fence_1(void)
{
	store(&y, 1u);
	FENCE();
	seen[1] = load(&x);
}

static void sb_total_0(void)
{
	STORE(&x, 1u);
	seen[0] = LOAD(&y);
}

static void sb_total_1(void)
{
	STORE(&y, 1u);
	seen[1] = LOAD(&x);
}

/* A read-modify-write drains the buffer, whatever its order. */
static void sb_rmw_0(void)
{
	store(&x, 1u);
	(void)dstref_fetch_add_relaxed(&cells[0], 1u);
	seen[0] = load(&y);
}

static void sb_rmw_1(void)
{
	store(&y, 1u);
	(void)dstref_fetch_add_relaxed(&cells[1], 1u);
	seen[1] = load(&x);
}

static void sb_own_0(void)
{
	store(&x, 1u);
	seen[0] = load(&x);
	seen[1] = load(&y);
}

static void sb_own_1(void)
{
	store(&y, 1u);
	seen[2] = load(&y);
	seen[3] = load(&x);
}

static void mp_write(void)
{
	store(&x, 1u);
	store(&y, 1u);
}

static void mp_read(void)
{
	seen[0] = load(&y);
	seen[1] = load(&x);
}

static void mp_release(void)
{
	store(&x, 1u);
	dstref_store_release(&y, 1u);
}

static void mp_acquire(void)
{
	seen[0] = dstref_load_acquire(&y);
	seen[1] = load(&x);
}

static void mp_fence_write(void)
{
	store(&x, 1u);
	atomic_thread_fence(memory_order_release);
	store(&y, 1u);
}

static void mp_fence_read(void)
{
	seen[0] = load(&y);
	atomic_thread_fence(memory_order_acquire);
	seen[1] = load(&x);
}

/* The release sequence goes on through a read-modify-write. */
static void sequence_add(void)
{
	(void)dstref_fetch_add_relaxed(&y, 1u);
}

static void lb_0(void)
{
	seen[0] = load(&x);
	store(&y, 1u);
}

static void lb_1(void)
{
	seen[1] = load(&y);
	store(&x, 1u);
}

static void write_x(void)
{
	store(&x, 1u);
}

static void write_y(void)
{
	store(&y, 1u);
}

static void write_x_twice(void)
{
	store(&x, 1u);
	store(&x, 2u);
}

static void read_x_twice(void)
{
	seen[0] = load(&x);
	seen[1] = load(&x);
}

static void iriw_xy(void)
{
	seen[0] = dstref_load_acquire(&x);
	seen[1] = dstref_load_acquire(&y);
}

static void iriw_yx(void)
{
	seen[2] = dstref_load_acquire(&y);
	seen[3] = dstref_load_acquire(&x);
}

static void iriw_total_xy(void)
{
	seen[0] = LOAD(&x);
	seen[1] = LOAD(&y);
}

static void iriw_total_yx(void)
{
	seen[2] = LOAD(&y);
	seen[3] = LOAD(&x);
}

static void total_x(void)
{
	STORE(&x, 1u);
}

static void total_y(void)
{
	STORE(&y, 1u);
}

/* A loop that waits for a value ends under --weak. */
static void spin(void)
{
	for (int i = 0; i < 8 && !load(&x); i++)
		seen[0] = (unsigned int)i + 1;
}

#define CASE(text, end, ...)                                          \
	{                                                             \
		.name = text, .thread = { __VA_ARGS__ }, .check = end \
	}

const struct explore_case explore_cases[] = {
	CASE("independent", NULL, own_three, own_three),
	CASE("writers-2", tell_x, write_self, write_self),
	CASE("writers-3", tell_x, write_self, write_self, write_self),
	CASE("writers-4", tell_x, write_self, write_self, write_self,
	     write_self),
	CASE("readers-2", tell_seen, read_x, read_x, write_self),
	CASE("readers-3", tell_seen, read_x, read_x, read_x, write_self),
	CASE("add-2", tell_x, add_twice, add_twice),
	CASE("add-3", tell_x, add_twice, add_twice, add_twice),
	CASE("lost", tell_x, add_badly, add_badly, add_badly),
	CASE("last-zero", tell_seen, last_zero_read, last_zero_write,
	     last_zero_write, last_zero_write),
	CASE("if-seen", tell_seen, write_self, if_seen, read_y, write_self),
	CASE("swap", tell_seen, try_swap, try_swap, try_swap, read_x),
	CASE("mutex-1", tell_data, locked_add, locked_add),
	CASE("mutex-2", tell_data, locked_twice, locked_twice),
	CASE("mutex-3", tell_data, locked_add, locked_add, locked_add),
	CASE("mutex-apart", NULL, locked_apart, locked_apart),
	CASE("cond", tell_data, wait_for_data, give_data),
	CASE("cond-2", tell_data, wait_for_data, wait_for_data, give_data),
	CASE("timeout", tell_seen, wait_with_end, give_if_asked, ask),
	CASE("await", tell_seen, await_two, set_two),
	CASE("call_rcu", tell_y, defer, defer),
	CASE("call_rcu-read", tell_seen, defer, read_twice),
	CASE("synchronize", tell_seen, unpublish, reader),
	CASE("sb", tell_seen, sb_0, sb_1),
	CASE("sb-fence", tell_seen, sb_fence_0, sb_fence_1),
	CASE("sb-total", tell_seen, sb_total_0, sb_total_1),
	CASE("sb-rmw", tell_seen, sb_rmw_0, sb_rmw_1),
	CASE("sb-own", tell_seen, sb_own_0, sb_own_1),
	CASE("mp", tell_seen, mp_write, mp_read),
	CASE("mp-release", tell_seen, mp_release, mp_read),
	CASE("mp-acquire", tell_seen, mp_write, mp_acquire),
	CASE("mp-both", tell_seen, mp_release, mp_acquire),
	CASE("mp-fences", tell_seen, mp_fence_write, mp_fence_read),
	CASE("mp-sequence", tell_seen, mp_release, sequence_add, mp_acquire),
	CASE("lb", tell_seen, lb_0, lb_1),
	CASE("corr", tell_seen, write_x_twice, read_x_twice),
	CASE("iriw", tell_seen, write_x, write_y, iriw_xy, iriw_yx),
	CASE("iriw-total", tell_seen, total_x, total_y, iriw_total_xy,
	     iriw_total_yx),
	CASE("spin", tell_seen, write_x, spin),
	{ 0 },
};
