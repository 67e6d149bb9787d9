/* SPDX-License-Identifier: MIT */
/*
 * stress.wait - no wake-up is lost, and none is given to the wrong sleeper
 *
 * Goal: in every order of look, mark, sleep, subtraction and close, who waits
 * is woken; who waits for data is not woken by completions, nor the other way
 * round; who is woken sees what was done before.
 *
 * Method. Hand-overs of one packet or one event between two threads, with
 * waits of chance before either's move, so that the moves meet in all orders;
 * then crowds of senders, completers and consumers. No move follows the last
 * one of a round: a wake-up that is lost is not made good by the next. A wait
 * may last LOST at most; one that did is a lost wake-up and ends the test.
 * What is handed over is plain memory: the thread sanitizer tells whether the
 * wait ordered it.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "sleeper.h"
#include "stress.h"

#define FLAVOUR (&urcu_memb_flavor)
#define LOST (10000 * SLEEPER_MS)

struct test {
	struct scene scene;
	struct dstref_sock *sk;
	uint64_t rounds;
	uint64_t box; /* plain: handed over by the wait */
	bool last; /* plain: the gate orders it */
	DSTREF_ATOMIC(uint64_t) lost, wrong;
	DSTREF_ATOMIC(uint64_t) sent, completed; /* packets */
	DSTREF_ATOMIC(uint64_t) produced, consumed; /* items */
	DSTREF_ATOMIC(unsigned int) senders; /* still sending */
};

static struct test test;

static void count_if(bool what, DSTREF_ATOMIC(uint64_t) * counter)
{
	if (what)
		(void)dstref_fetch_add_relaxed(counter, (uint64_t)1);
}

static bool lost(void)
{
	return dstref_load_relaxed(&test.lost) != 0;
}

/* A wait of @kind that must not last. */
static int wait_for(enum sleeper_kind kind, uint32_t token)
{
	struct sleeper me = { .sk = test.sk, .kind = kind, .token = token };
	int64_t begin = sleeper_now();
	int result;

	me.timeout = LOST;
	result = sleeper_wait(&me);
	count_if(sleeper_now() - begin >= LOST, &test.lost);
	return result;
}

static void dawdle(struct stress_thread *thread, uint64_t most)
{
	for (uint64_t i = stress_random(thread) % most; i; i--)
		__asm__ __volatile__("");
}

static void complete(uint32_t bytes)
{
	reader_lock(FLAVOUR);
	dstref_sock_uncharge_w(test.sk, bytes);
	reader_unlock(FLAVOUR);
}

static void begin(void)
{
	memset(&test, 0, sizeof(test));
	scene_begin(&test.scene, FLAVOUR);
	test.sk = scene_sock(&test.scene);
}

static struct dstref_net_counters stats(void)
{
	struct dstref_net_counters stats;

	dstref_net_stats(test.scene.net, &stats);
	return stats;
}

static void end(struct stress *run)
{
	stress_assert_equal(run, dstref_load_relaxed(&test.lost), 0);
	stress_assert_equal(run, dstref_load_relaxed(&test.wrong), 0);
	stress_assert_equal(run, scene_units(&test.sk->wmem), 1);
	stress_assert_equal(run, scene_bytes(&test.sk->wmem), 0);
	stress_assert_equal(
		run, dstref_wmem_read(&test.sk->wmem) & DSTREF_WMEM_WAITER, 0);
	dstref_sock_put_outside(test.sk);
	stress_assert_equal(run, scene_end(&test.scene), 0);
}

/*
 * The moves must meet. The delay before the second is steered: shorter after a
 * round in which the first went to sleep, longer after one in which it did
 * not, so that it stays where the one turns into the other; in unequal steps,
 * for a sleep costs more time than many rounds without. Chance adds a little,
 * and now and then a lot, for the aim is no better than the machine is quiet.
 */
struct aim {
	uint64_t delay, slept;
};

static void aim(struct aim *aim, enum sleeper_kind kind)
{
	uint64_t slept = kind == ROOM ? stats().sleeps_room
				      : stats().sleeps_data;

	if (slept == aim->slept)
		aim->delay += 4;
	else
		aim->delay -= aim->delay < 32 ? aim->delay : 32;
	aim->slept = slept;
}

static void shoot(struct stress_thread *thread, const struct aim *aim)
{
	uint64_t chance = stress_random(thread);
	uint64_t most = chance % 4 ? 32 : 600;

	for (uint64_t i = aim->delay + (chance >> 2) % most; i; i--)
		__asm__ __volatile__("");
}

/* Says whether this is the last round; the meeting that follows orders it. */
static void decide(struct stress_thread *thread)
{
	if (!thread->index)
		test.last = !stress_more(thread) || lost();
}

/* One packet: its sender waits while it is completed. */
static void hand_over_room(struct stress_thread *thread)
{
	struct aim at = { 0, 0 };

	reader_register(FLAVOUR);
	do {
		uint64_t round = ++thread->ops;

		if (!thread->index)
			count_if(!dstref_sock_charge_w(test.sk, 1),
				 &test.wrong);
		stress_meet(thread);
		if (!thread->index) {
			count_if(wait_for(ROOM, 0), &test.wrong);
			count_if(test.box != round, &test.wrong);
		} else {
			test.box = round;
			reader_lock(FLAVOUR);
			shoot(thread, &at);
			dstref_sock_uncharge_w(test.sk, 1);
			reader_unlock(FLAVOUR);
		}
		decide(thread);
		stress_meet(thread);
		aim(&at, ROOM);
	} while (!test.last);
	reader_unregister(FLAVOUR);
}

/* Every sleep ended by one wake-up, and not every round slept. */
static void assert_slept(struct stress *run, const struct stress_thread *sums,
			 uint64_t sleeps, uint64_t wakeups)
{
	stress_assert_equal(run, wakeups, sleeps);
	stress_assert(run, sleeps > 0);
	stress_assert(run, sleeps < sums->ops);
}

static void wait_room_is_handed_over(void **state)
{
	struct stress run = { .threads = 2, .seconds = 3 };
	struct stress_thread sums;

	(void)state;
	begin();
	dstref_sock_set_sndbuf(test.sk, 1);
	stress_run(&run, hand_over_room, &sums);
	assert_slept(&run, &sums, stats().sleeps_room, stats().wakeups_room);
	stress_assert_equal(&run, stats().sleeps_data, 0);
	stress_assert_equal(&run, stats().wakeups_data, 0);
	end(&run);
}

/* One event: its consumer has his token, and waits while it happens. */
static void hand_over_data(struct stress_thread *thread)
{
	struct aim at = { 0, 0 };

	do {
		uint32_t token = dstref_sock_data_token(test.sk);
		uint64_t round = ++thread->ops;

		stress_meet(thread);
		if (!thread->index) {
			count_if(wait_for(DATA, token), &test.wrong);
			count_if(test.box != round, &test.wrong);
		} else {
			test.box = round;
			shoot(thread, &at);
			dstref_sock_data_ready(test.sk);
		}
		decide(thread);
		stress_meet(thread);
		aim(&at, DATA);
	} while (!test.last);
}

static void wait_data_is_handed_over(void **state)
{
	struct stress run = { .threads = 2, .seconds = 2 };
	struct stress_thread sums;

	(void)state;
	begin();
	stress_run(&run, hand_over_data, &sums);
	assert_slept(&run, &sums, stats().sleeps_data, stats().wakeups_data);
	stress_assert_equal(&run, stats().sleeps_room, 0);
	stress_assert_equal(&run, stats().wakeups_room, 0);
	end(&run);
}

/* Two sleepers of each kind, or four who are about to be, and a close. */
static void close_on_sleepers(struct stress_thread *thread)
{
	enum sleeper_kind kind = thread->index % 2;

	reader_register(FLAVOUR);
	for (uint64_t i = 0; i < test.rounds && !lost(); i++) {
		if (!thread->index) {
			test.sk = scene_sock(&test.scene);
			dstref_sock_set_sndbuf(test.sk, 1);
			count_if(!dstref_sock_charge_w(test.sk, 1),
				 &test.wrong);
		}
		stress_meet(thread);
		dawdle(thread, 600);
		if (!thread->index)
			dstref_sock_close(test.sk);
		else
			count_if(wait_for(kind, 0) != -ESHUTDOWN, &test.wrong);
		stress_meet(thread);
		if (!thread->index) {
			complete(1);
			dstref_sock_put_outside(test.sk);
		}
	}
	reader_unregister(FLAVOUR);
}

static void wait_close_reaches_every_sleeper(void **state)
{
	struct stress run = { .threads = 5 };

	(void)state;
	begin();
	dstref_sock_put_outside(test.sk);
	test.rounds = stress_rounds(8000);
	stress_run(&run, close_on_sleepers, NULL);
	test.sk = scene_sock(&test.scene);
	end(&run);
}

/*
 * Two senders, two completers, one who changes sndbuf, one who waits for data
 * that never comes. A packet is a count and a size of one; a completer takes
 * what was sent and is not completed.
 */

#define SENDERS 2

static void send(struct stress_thread *thread)
{
	while (stress_more(thread) && !lost()) {
		count_if(wait_for(ROOM, 0), &test.wrong);
		count_if(!dstref_sock_charge_w(test.sk, 1), &test.wrong);
		(void)dstref_fetch_add_release(&test.sent, (uint64_t)1);
		thread->ops++;
	}
	(void)dstref_fetch_sub_release(&test.senders, 1u);
}

/* Says whether there was one. */
static bool take(DSTREF_ATOMIC(uint64_t) * given,
		 DSTREF_ATOMIC(uint64_t) * taken)
{
	uint64_t n = dstref_load_relaxed(taken);

	while (n < dstref_load_acquire(given))
		if (dstref_cas_acquire(taken, &n, n + 1))
			return true;
	return false;
}

static void complete_all(struct stress_thread *thread)
{
	for (;;) {
		bool last = !dstref_load_acquire(&test.senders);

		if (take(&test.sent, &test.completed)) {
			dawdle(thread, 300);
			complete(1);
		} else if (last) {
			return;
		} else {
			sched_yield();
		}
	}
}

static void change_sndbuf(struct stress_thread *thread)
{
	static const struct timespec pause = { 0, 200000 };

	while (stress_more(thread)) {
		dstref_sock_set_sndbuf(test.sk,
				       (uint32_t)stress_random(thread) % 9);
		nanosleep(&pause, NULL);
	}
}

/* Sleeps once, through all of it; who closes wakes him. */
static void sleep_for_data(void)
{
	uint32_t token = dstref_sock_data_token(test.sk);

	count_if(dstref_sock_wait_readable(test.sk, token, -1) != -ESHUTDOWN,
		 &test.wrong);
}

static void crowd(struct stress_thread *thread)
{
	reader_register(FLAVOUR);
	if (thread->index < SENDERS)
		send(thread);
	else if (thread->index < SENDERS + 2)
		complete_all(thread);
	else if (thread->index < SENDERS + 3)
		change_sndbuf(thread);
	else
		sleep_for_data();
	/* Who comes last from the senders' side ends the run. */
	if (thread->index == SENDERS) {
		count_if(stats().wakeups_data != 0, &test.wrong);
		dstref_sock_close(test.sk);
	}
	reader_unregister(FLAVOUR);
}

static void wait_senders_never_starve(void **state)
{
	struct stress run = { .threads = SENDERS + 4, .seconds = 2 };
	struct stress_thread sums;

	(void)state;
	begin();
	dstref_store_relaxed(&test.senders, (unsigned int)SENDERS);
	stress_run(&run, crowd, &sums);
	stress_assert(&run, sums.ops > 100);
	stress_assert_equal(&run, sums.ops, dstref_load_relaxed(&test.sent));
	stress_assert_equal(&run, sums.ops,
			    dstref_load_relaxed(&test.completed));
	stress_assert(&run, stats().sleeps_room > 0);
	stress_assert(&run, stats().sleeps_data <= 1);
	stress_assert(&run, stats().wakeups_data <= 1);
	end(&run);
}

/* Items from two producers to three consumers, each taken once. */

static void produce(struct stress_thread *thread)
{
	for (uint64_t i = 0; i < test.rounds; i++) {
		dawdle(thread, 2000);
		(void)dstref_fetch_add_release(&test.produced, (uint64_t)1);
		dstref_sock_data_ready(test.sk);
	}
}

static void consume(struct stress_thread *thread)
{
	int result = 0;

	while (!result && !lost()) {
		uint32_t token = dstref_sock_data_token(test.sk);

		if (take(&test.produced, &test.consumed))
			thread->ops++;
		else
			result = wait_for(DATA, token);
		if (dstref_load_relaxed(&test.consumed) == 2 * test.rounds)
			dstref_sock_close(test.sk);
	}
	count_if(result != -ESHUTDOWN, &test.wrong);
}

static void produce_or_consume(struct stress_thread *thread)
{
	if (thread->index < 2)
		produce(thread);
	else
		consume(thread);
}

static void wait_items_are_handed_over_without_loss(void **state)
{
	struct stress run = { .threads = 5 };
	struct stress_thread sums;

	(void)state;
	begin();
	test.rounds = stress_rounds(100000);
	stress_run(&run, produce_or_consume, &sums);
	stress_assert_equal(&run, sums.ops, 2 * test.rounds);
	stress_assert(&run, stats().sleeps_data > 0);
	stress_assert_equal(&run, stats().wakeups_room, 0);
	end(&run);
}

static int group_begin(void **state)
{
	(void)state;
	reader_register(FLAVOUR);
	return 0;
}

static int group_end(void **state)
{
	(void)state;
	reader_unregister(FLAVOUR);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		capture_test(wait_room_is_handed_over),
		capture_test(wait_data_is_handed_over),
		capture_test(wait_close_reaches_every_sleeper),
		capture_test(wait_senders_never_starve),
		capture_test(wait_items_are_handed_over_without_loss),
	};

	return cmocka_run_group_tests_name("stress.wait", tests, group_begin,
					   group_end);
}
