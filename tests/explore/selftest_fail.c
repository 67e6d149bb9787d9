/* SPDX-License-Identifier: MIT */
/*
 * selftest_fail - one fault of each kind
 *
 * Goal: what the explorer says that it finds, it finds. Method: each case has a
 * fault that shows in some schedules only, wherever its kind allows that;
 * selftest.sh knows the words that must be in the report, and replays it.
 */
#include "explore.h"

#include <pthread.h>
#include <stdlib.h>

typedef DSTREF_ATOMIC(unsigned int) word;

static word flag, other, missed;
static unsigned int data;
static unsigned int *block;
static DSTREF_ATOMIC(unsigned int *) place;
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t b = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static struct rcu_head head;
static struct dstref_count count;

#define load(p) dstref_load_relaxed(p)
#define store(p, v) dstref_store_relaxed(p, v)

static void assert_flag(void)
{
	explore_assert(!load(&flag) || load(&other));
}

static void set_flag(void)
{
	store(&flag, 1u);
	store(&other, 1u);
}

static void write_relaxed(void)
{
	data = 1;
	store(&flag, 1u);
}

static void read_acquire(void)
{
	if (dstref_load_acquire(&flag))
		explore_assert(data);
}

static void write_release(void)
{
	data = 1;
	dstref_store_release(&flag, 1u);
}

static void read_relaxed(void)
{
	if (load(&flag))
		explore_assert(data);
}

/* The release is of another value than the one that is acquired. */
static void write_after_release(void)
{
	dstref_store_release(&flag, 1u);
	data = 1;
	store(&flag, 2u);
}

static void read_two(void)
{
	if (dstref_load_acquire(&flag) == 2)
		explore_assert(data);
}

static void allocate(void)
{
	block = malloc(4 * sizeof(*block));
}

static void free_block(void)
{
	free(block);
}

static void free_marked(void)
{
	free(block);
	dstref_store_release(&flag, 1u);
}

static void use_marked(void)
{
	if (dstref_load_acquire(&flag))
		block[0] = 1;
}

static void use_unmarked(void)
{
	if (!load(&flag))
		store((word *)block, 1u);
}

static void free_if_set(void)
{
	if (dstref_load_acquire(&flag))
		free(block);
}

static void use_beside(void)
{
	volatile unsigned int *at = block;

	at[load(&flag) ? 4 : 3] = 1;
}

static void set(void)
{
	store(&flag, 1u);
}

static void free_wrong(void)
{
	free(block + (load(&flag) ? 1 : 0));
}

static void clear_all(void)
{
	free(block);
	block = NULL;
}

static void publish_relaxed(void)
{
	store(&place, (unsigned int *)malloc(sizeof(*block)));
}

static void use_place(void)
{
	unsigned int *found = load(&place);

	if (found)
		*found = 1;
}

static void lock_ab(void)
{
	pthread_mutex_lock(&a);
	pthread_mutex_lock(&b);
	pthread_mutex_unlock(&b);
	pthread_mutex_unlock(&a);
}

static void lock_ba(void)
{
	pthread_mutex_lock(&b);
	pthread_mutex_lock(&a);
	pthread_mutex_unlock(&a);
	pthread_mutex_unlock(&b);
}

/* Looks before it takes the lock that the waker takes. */
static void sleep_late(void)
{
	if (load(&flag))
		return;
	pthread_mutex_lock(&a);
	pthread_cond_wait(&cond, &a);
	pthread_mutex_unlock(&a);
}

static void wake(void)
{
	store(&flag, 1u);
	pthread_mutex_lock(&a);
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&a);
}

static void unlock_if_set(void)
{
	if (load(&flag))
		pthread_mutex_unlock(&a);
}

static void end_free(struct rcu_head *dead)
{
	(void)dead;
	free(block);
}

static void defer_free(void)
{
	explore_flavor.update_call_rcu(&head, end_free);
}

/* Finds the block inside a reader and uses it outside. */
static void use_late(void)
{
	explore_read_lock();
	unsigned int *mine = dstref_load_acquire(&flag) ? NULL : block;

	explore_read_unlock();
	if (mine)
		*mine = 1;
}

/* Unpublished after the callback was queued. */
static void unpublish_late(void)
{
	defer_free();
	dstref_store_release(&flag, 1u);
}

static void use_inside(void)
{
	explore_read_lock();
	if (!dstref_load_acquire(&flag))
		*block = 1;
	explore_read_unlock();
}

static void stay_inside(void)
{
	explore_read_lock();
	if (!load(&flag))
		explore_read_unlock();
}

static void set_then_defer(void)
{
	set();
	defer_free();
}

static void wait_inside(void)
{
	explore_read_lock();
	if (load(&flag))
		explore_flavor.update_synchronize_rcu();
	explore_read_unlock();
}

static void leave_twice(void)
{
	explore_read_lock();
	explore_read_unlock();
	if (load(&flag))
		explore_read_unlock();
}

static void defer_twice(void)
{
	defer_free();
	if (load(&flag))
		defer_free();
}

static void follow_null(void)
{
	volatile unsigned int *at = load(&flag) ? NULL : &data;

	*at = 1;
}

static void count_none(void)
{
	dstref_count_init(&count, 1);
}

static void put_once(void)
{
	if (dstref_count_put_outside(&count))
		return;
}

/* Hands out its own frame, and does not wait for who looks at it. */
__attribute__((noinline)) static void lend_frame(void)
{
	unsigned int own[2] = { 0, 0 };

	dstref_store_release(&place, own);
	(void)load(&flag);
	dstref_store_release(&place, NULL);
	(void)load(&other);
}

static void lend(void)
{
	lend_frame();
	(void)load(&flag);
}

static void borrow(void)
{
	unsigned int *found = dstref_load_acquire(&place);

	if (found) {
		store(&other, 1u);
		(void)dstref_fetch_add_relaxed((word *)found, 1u);
	}
}

static void spin(void)
{
	while (!load(&flag))
		;
}

static void calls_abort(void)
{
	if (load(&flag))
		abort();
}

/* What only a store buffer, and only an older value, shows. */
static void store_then_load(void)
{
	word *mine = explore_self() ? &flag : &other;

	store(mine, 1u);
	if (!load(mine == &flag ? &other : &flag))
		(void)dstref_fetch_add_relaxed(&missed, 1u);
}

static void one_missed(void)
{
	explore_assert(load(&missed) < 2);
}

static void set_both(void)
{
	store(&other, 1u);
	store(&flag, 1u);
}

static void look_at_both(void)
{
	if (load(&flag))
		explore_assert(load(&other));
}

#define CASE(text, before, end, ...)                                     \
	{                                                                \
		.name = text, .setup = before, .check = end, .thread = { \
			__VA_ARGS__                                      \
		}                                                        \
	}

const struct explore_case explore_cases[] = {
	CASE("assert", NULL, NULL, set_flag, assert_flag),
	CASE("no-release", NULL, NULL, write_relaxed, read_acquire),
	CASE("no-acquire", NULL, NULL, write_release, read_relaxed),
	CASE("broken-sequence", NULL, NULL, write_after_release, read_two),
	CASE("use-after-free", allocate, NULL, free_marked, use_marked),
	CASE("free-unordered", allocate, NULL, free_marked, use_unmarked),
	CASE("double-free", allocate, NULL, free_marked, free_if_set),
	CASE("beside", allocate, clear_all, use_beside, set),
	CASE("free-inside", allocate, NULL, free_wrong, set),
	CASE("leak", allocate, NULL, free_if_set, set),
	CASE("malloc-unordered", NULL, NULL, publish_relaxed, use_place),
	CASE("deadlock", NULL, NULL, lock_ab, lock_ba),
	CASE("lost-wakeup", NULL, NULL, sleep_late, wake),
	CASE("unlock", NULL, NULL, unlock_if_set, set),
	CASE("use-after-reader", allocate, NULL, defer_free, use_late),
	CASE("unpublish-late", allocate, NULL, unpublish_late, use_inside),
	CASE("reader-stays", allocate, NULL, stay_inside, set_then_defer),
	CASE("wait-inside", NULL, NULL, wait_inside, set),
	CASE("leave-twice", NULL, NULL, leave_twice, set),
	CASE("queued-twice", allocate, NULL, defer_twice, set),
	CASE("null", NULL, NULL, follow_null, set),
	CASE("report", count_none, NULL, put_once, put_once),
	CASE("frame", NULL, NULL, lend, borrow),
	CASE("no-end", NULL, NULL, spin, set),
	CASE("abort", NULL, free_block, calls_abort, set),
	CASE("store-buffer", NULL, one_missed, store_then_load,
	     store_then_load),
	CASE("older-value", NULL, NULL, set_both, look_at_both),
	{ 0 },
};
