/* SPDX-License-Identifier: MIT */
/*
 * stress.wmem_wake - a waiter for room loses no wake-up
 *
 * Goal: in any order of mark, look, sleep, subtraction and close, a waiter
 * either finds the room or is woken. Method, twice. First the race alone, by
 * the hundred thousand: one mark and look against one uncharge, and exactly
 * one of the two must see the other. Then the whole: a sender and completers
 * on a window of a few packets, so that the sender nearly always waits, with
 * a real sleep. A wake-up that is lost is a wait that times out.
 */
#define _POSIX_C_SOURCE 200809L

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include <dstref/wmem.h>

#include "capture.h"
#include "stress.h"

/*
 * One packet, one waiter: either the waiter's look shows room, or the
 * completion's value shows the mark; never neither, which is the lost
 * wake-up, never both. What was written before room was made is seen.
 */
struct duel {
	struct dstref_wmem wmem;
	uint64_t field; /* plain: the completer's */
	bool room, mark; /* what each saw */
	uint64_t rooms; /* rounds in which there was room at the look */
};

/* Now and then a turn of the scheduler, for threads that share a core. */
static void delay(struct stress_thread *thread)
{
	if (stress_random(thread) % 64 == 0)
		sched_yield();
	for (volatile uint64_t i = stress_random(thread) % 16; i > 0; i--)
		;
}

static void look(struct duel *duel, struct stress_thread *thread)
{
	uint64_t field = thread->ops;

	duel->room = dstref_wmem_value_wakes(dstref_wmem_wait(&duel->wmem), 0);
	if (duel->room)
		thread->failed += duel->field != field;
}

static void complete(struct duel *duel, struct stress_thread *thread)
{
	uint64_t after;

	duel->field = thread->ops;
	if (stress_random(thread) % 2)
		after = dstref_wmem_recharge(&duel->wmem, 700, 0);
	else
		thread->told += dstref_wmem_uncharge(&duel->wmem, 700, &after);
	duel->mark = dstref_wmem_value_wakes(after, 0);
}

static void duels(struct stress_thread *thread)
{
	struct duel *duel = thread->arg;
	uint64_t rounds = stress_rounds(500000);

	while (thread->ops++ < rounds) {
		if (!thread->index) {
			dstref_wmem_init(&duel->wmem);
			thread->failed +=
				!dstref_wmem_charge(&duel->wmem, 700, NULL);
		}
		stress_meet(thread);
		delay(thread);
		if (thread->index)
			complete(duel, thread);
		else
			look(duel, thread);
		stress_meet(thread);
		if (thread->index)
			continue;
		thread->failed += duel->room == duel->mark;
		duel->rooms += duel->room;
	}
}

static void wmem_mark_and_room_see_each_other(void **state)
{
	static struct duel duel;
	struct stress run = { .threads = 2, .arg = &duel };
	struct stress_thread sums;

	(void)state;
	stress_run(&run, duels, &sums);
	stress_assert_equal(&run, sums.failed, 0);
	stress_assert_equal(&run, (uint32_t)sums.told,
			    0); /* the owner's unit */
	/* Each of the two was first sometimes. */
	stress_assert(&run, duel.rooms > 0);
	stress_assert(&run, duel.rooms < stress_rounds(500000));
}

/* A sender with a window of a few packets, and completers. */
#define LIMIT 4000u
#define ROOM (LIMIT / 2)
#define LOST_AFTER 5 /* seconds */

struct window {
	struct dstref_wmem wmem;
	DSTREF_ATOMIC(uint64_t) sent, completed;
	DSTREF_ATOMIC(bool) ended;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool woken;
	uint64_t sleeps, looks, wakes, lost;
};

/* The size of a packet by its number: 1 to 1500. */
static uint32_t size_of(uint64_t number)
{
	return (uint32_t)(number * 7919 % 1500 + 1);
}

/* Sleeps until a completer wakes: false when none did. The lock is held. */
static bool sleep_for_room(struct window *window)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LOST_AFTER;
	window->sleeps++;
	while (!window->woken)
		if (pthread_cond_timedwait(&window->wake, &window->lock,
					   &until)) {
			window->lost++;
			return false;
		}
	return true;
}

/*
 * Park, mark, look, sleep: the order that wmem.h asks for. A completer that
 * decided to wake the wait before may come only now, so look again.
 */
static void wait_for_room(struct window *window)
{
	pthread_mutex_lock(&window->lock);
	for (;;) {
		window->woken = false;
		window->looks++;
		if (dstref_wmem_value_wakes(dstref_wmem_wait(&window->wmem),
					    ROOM))
			break;
		if (!sleep_for_room(window))
			break;
	}
	pthread_mutex_unlock(&window->lock);
	dstref_wmem_wait_end(&window->wmem);
}

static void send_packets(struct stress_thread *thread)
{
	struct window *window = thread->arg;

	while (stress_more(thread) && !window->lost) {
		uint64_t value = dstref_wmem_read(&window->wmem);

		if (dstref_wmem_value_bytes(value) >= (int64_t)LIMIT) {
			wait_for_room(window);
			continue;
		}
		thread->failed += !dstref_wmem_charge(
			&window->wmem, size_of(thread->ops), NULL);
		dstref_store_release(&window->sent, ++thread->ops);
	}
	dstref_store_release(&window->ended, true);
	thread->told += dstref_wmem_close(&window->wmem, NULL);
}

/* Takes the next packet that was sent; false when there is none. */
static bool take(struct window *window, uint64_t *number)
{
	*number = dstref_load_relaxed(&window->completed);
	while (*number < dstref_load_acquire(&window->sent))
		if (dstref_cas_acquire(&window->completed, number, *number + 1))
			return true;
	return false;
}

static void wake_sender(struct window *window)
{
	pthread_mutex_lock(&window->lock);
	window->woken = true;
	window->wakes++;
	pthread_cond_signal(&window->wake);
	pthread_mutex_unlock(&window->lock);
}

static void complete_packets(struct stress_thread *thread)
{
	struct window *window = thread->arg;
	uint64_t number, after;

	for (;;) {
		bool ended = dstref_load_acquire(&window->ended);

		if (!take(window, &number)) {
			if (ended)
				return;
			sched_yield();
			continue;
		}
		thread->told += dstref_wmem_uncharge(&window->wmem,
						     size_of(number), &after);
		if (dstref_wmem_value_wakes(after, ROOM))
			wake_sender(window);
	}
}

static void send_or_complete(struct stress_thread *thread)
{
	if (thread->index)
		complete_packets(thread);
	else
		send_packets(thread);
}

static void wmem_waiter_loses_no_wake_up(void **state)
{
	struct window window = { .lock = PTHREAD_MUTEX_INITIALIZER,
				 .wake = PTHREAD_COND_INITIALIZER };
	struct stress run = { .threads = 3, .seconds = 2, .arg = &window };
	struct stress_thread sums;

	(void)state;
	dstref_wmem_init(&window.wmem);
	stress_run(&run, send_or_complete, &sums);
	stress_assert_equal(&run, window.lost, 0);
	stress_assert_equal(&run, sums.failed, 0);
	stress_assert_equal(&run, sums.told, 1);
	stress_assert_equal(&run, dstref_load_relaxed(&window.completed),
			    sums.ops);
	/* It did wait, each sleep was ended by a wake-up, and some looks found
	 * the room that was made meanwhile. */
	stress_assert(&run, window.sleeps > 100);
	stress_assert(&run, window.looks > window.sleeps);
	stress_assert(&run, window.wakes >= window.sleeps);
	stress_assert(&run, dstref_wmem_read(&window.wmem) == DSTREF_WMEM_DEAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		capture_test(wmem_mark_and_room_see_each_other),
		capture_test(wmem_waiter_loses_no_wake_up),
	};

	return cmocka_run_group_tests_name("wmem_wake", tests, NULL, NULL);
}
