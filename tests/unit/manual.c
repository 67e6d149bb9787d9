/* SPDX-License-Identifier: MIT */
/*
 * unit.manual - the flavour that the other tests trust, tested itself
 *
 * Goal: a grace period of tests/support/manual.c never ends early, ends when
 * it may, and misuse of RCU is a clear failure (C17). Method: other threads
 * are led step by step (puppet), so that each test is one known order
 * of events; what blocks is given a thread of its own and must be seen not to
 * have returned before it may.
 */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <urcu/urcu-memb.h>

#include <cmocka.h>

#include "manual.h"
#include "puppet.h"

static const struct rcu_flavor_struct *const rcu = &manual_flavor;

static unsigned int told; /* by the hook */

static void hook(enum manual_fault fault, const char *text)
{
	(void)fault;
	told += text[0] != '\0';
}

static int setup(void **state)
{
	(void)state;
	told = 0;
	manual_set_hook(hook);
	return manual_reset() || manual_registered() || manual_inside();
}

static int teardown(void **state)
{
	(void)state;
	manual_set_hook(NULL);
	return manual_reset() || manual_registered() || manual_inside();
}

static void expect_fault(enum manual_fault fault)
{
	for (int i = 0; i < MANUAL_FAULTS; i++)
		assert_int_equal(manual_faults(i), i == (int)fault);
	assert_int_equal(told, 1);
}

static unsigned int calls;

static void count_call(struct rcu_head *head)
{
	(void)head;
	calls++;
}

static void queue(struct rcu_head *head)
{
	calls = 0;
	rcu->update_call_rcu(head, count_call);
}

static void manual_nests(void **state)
{
	(void)state;
	rcu->register_thread();
	assert_false(rcu->read_ongoing());
	rcu->read_lock();
	rcu->read_lock();
	assert_true(rcu->read_ongoing());
	rcu->read_unlock();
	assert_true(rcu->read_ongoing());
	assert_int_equal(manual_inside(), 1);
	rcu->read_unlock();
	assert_false(rcu->read_ongoing());
	assert_int_equal(manual_inside(), 0);
	rcu->unregister_thread();
}

static void manual_callback_waits_for_advance(void **state)
{
	struct rcu_head head;

	(void)state;
	queue(&head);
	assert_int_equal(manual_pending(), 1);
	assert_int_equal(calls, 0);
	assert_true(manual_advance());
	assert_int_equal(calls, 1);
	assert_int_equal(manual_pending(), 0);
	assert_int_equal(manual_periods(), 1);
	assert_true(manual_advance());
	assert_int_equal(calls, 1);
}

static void manual_reader_holds_up(void **state)
{
	struct rcu_head head;

	(void)state;
	rcu->register_thread();
	rcu->read_lock();
	queue(&head);
	assert_false(manual_advance());
	rcu->read_lock();
	rcu->read_unlock();
	assert_false(manual_advance());
	assert_int_equal(calls, 0);
	assert_int_equal(manual_periods(), 0);
	rcu->read_unlock();
	assert_true(manual_advance());
	assert_int_equal(calls, 1);
	rcu->unregister_thread();
}

/* Left and entered again: the reader that was there is gone. */
static void manual_later_reader_does_not_hold_up(void **state)
{
	struct rcu_head head;

	(void)state;
	rcu->register_thread();
	rcu->read_lock();
	queue(&head);
	assert_false(manual_advance());
	rcu->read_unlock();
	rcu->read_lock();
	assert_true(manual_advance());
	assert_int_equal(calls, 1);
	rcu->read_unlock();
	rcu->unregister_thread();
}

/* A callback that comes while a period is open waits for the next one. */
static void manual_late_callback_waits_for_the_next(void **state)
{
	struct rcu_head early, late;

	(void)state;
	rcu->register_thread();
	queue(&early);
	rcu->read_lock();
	assert_false(manual_advance());
	rcu->update_call_rcu(&late, count_call);
	rcu->read_unlock();
	assert_true(manual_advance());
	assert_int_equal(calls, 1);
	assert_int_equal(manual_pending(), 1);
	assert_true(manual_advance());
	assert_int_equal(calls, 2);
	rcu->unregister_thread();
}

static struct rcu_head again;

static void queue_again(struct rcu_head *head)
{
	(void)head;
	rcu->update_call_rcu(&again, count_call);
}

static void manual_callback_may_queue(void **state)
{
	struct rcu_head head;

	(void)state;
	calls = 0;
	rcu->update_call_rcu(&head, queue_again);
	assert_true(manual_advance());
	assert_int_equal(calls, 0);
	assert_int_equal(manual_pending(), 1);
	assert_true(manual_drain());
	assert_int_equal(calls, 1);
}

static void manual_drain_stops_at_a_reader(void **state)
{
	struct rcu_head head;

	(void)state;
	rcu->register_thread();
	rcu->read_lock();
	queue(&head);
	assert_false(manual_drain());
	rcu->read_unlock();
	assert_true(manual_drain());
	rcu->unregister_thread();
}

static void manual_synchronize_waits_for_readers(void **state)
{
	struct puppet puppet;

	(void)state;
	puppet_start(&puppet);
	rcu->register_thread();
	rcu->read_lock();
	puppet_begin(&puppet, rcu->update_synchronize_rcu);
	assert_false(puppet_returned_after(&puppet, 20));
	rcu->read_lock(); /* nested: still the same reader */
	rcu->read_unlock();
	assert_false(puppet_returned_after(&puppet, 20));
	assert_int_equal(manual_periods(), 0);
	rcu->read_unlock();
	puppet_finish(&puppet);
	assert_int_equal(manual_periods(), 1);
	rcu->unregister_thread();
	puppet_end(&puppet);
}

static void manual_barrier_runs_what_was_queued(void **state)
{
	struct puppet puppet;
	struct rcu_head head;

	(void)state;
	rcu->barrier(); /* nothing to wait for */
	puppet_start(&puppet);
	rcu->register_thread();
	rcu->read_lock();
	queue(&head);
	puppet_begin(&puppet, rcu->barrier);
	assert_false(puppet_returned_after(&puppet, 20));
	rcu->read_unlock();
	puppet_finish(&puppet);
	assert_int_equal(calls, 1);
	assert_int_equal(manual_pending(), 0);
	rcu->unregister_thread();
	puppet_end(&puppet);
}

static void manual_offline_is_counted(void **state)
{
	(void)state;
	rcu->thread_offline(); /* nobody: no effect */
	rcu->thread_online();
	assert_int_equal(manual_offlines(), 0);
	rcu->register_thread();
	rcu->thread_offline();
	rcu->thread_online();
	assert_int_equal(manual_offlines(), 1);
	rcu->read_lock();
	rcu->read_unlock();
	rcu->unregister_thread();
}

static void c17_manual_unregistered_thread_reads(void **state)
{
	(void)state;
	assert_false(rcu->read_ongoing());
	rcu->read_lock();
	expect_fault(MANUAL_NOT_REGISTERED);
	assert_false(rcu->read_ongoing()); /* so the library's check fires */
	rcu->read_unlock();
	assert_int_equal(manual_faults(MANUAL_NOT_INSIDE), 1);
}

static void c17_manual_unregisters_inside(void **state)
{
	struct rcu_head head;

	(void)state;
	rcu->register_thread();
	rcu->read_lock();
	queue(&head);
	rcu->unregister_thread();
	expect_fault(MANUAL_UNREGISTERS_INSIDE);
	assert_true(rcu->read_ongoing());
	assert_false(manual_advance());
	assert_int_equal(calls, 0);
	rcu->read_unlock();
	assert_true(manual_advance());
	rcu->unregister_thread();
}

static void enter(void)
{
	rcu->register_thread();
	rcu->read_lock();
}

static void c17_manual_thread_ends_inside(void **state)
{
	struct puppet puppet;
	struct rcu_head head;

	(void)state;
	puppet_start(&puppet);
	puppet_do(&puppet, enter);
	queue(&head);
	puppet_end(&puppet);
	expect_fault(MANUAL_ENDS_INSIDE);
	for (int i = 0; i < 3; i++)
		assert_false(manual_advance());
	assert_int_equal(calls, 0);
	assert_int_equal(manual_inside(), 1);
	assert_int_equal(manual_reset(), 1); /* the callback is dropped */
	assert_int_equal(manual_inside(), 0);
}

static void c17_manual_thread_ends_registered(void **state)
{
	struct puppet puppet;

	(void)state;
	puppet_start(&puppet);
	puppet_do(&puppet, rcu->register_thread);
	assert_int_equal(manual_registered(), 1);
	puppet_end(&puppet);
	expect_fault(MANUAL_ENDS_REGISTERED);
	assert_int_equal(manual_registered(), 0);
	assert_true(manual_advance());
}

static void c17_manual_synchronize_inside(void **state)
{
	struct rcu_head head;

	(void)state;
	rcu->register_thread();
	rcu->read_lock();
	queue(&head);
	rcu->update_synchronize_rcu();
	expect_fault(MANUAL_WAITS_INSIDE);
	rcu->barrier();
	assert_int_equal(manual_faults(MANUAL_WAITS_INSIDE), 2);
	assert_int_equal(manual_periods(), 0);
	assert_int_equal(calls, 0);
	rcu->read_unlock();
	assert_true(manual_drain());
	rcu->unregister_thread();
}

static void c17_manual_offline_misused(void **state)
{
	(void)state;
	rcu->register_thread();
	rcu->read_lock();
	rcu->thread_offline();
	expect_fault(MANUAL_OFFLINE_INSIDE);
	assert_true(rcu->read_ongoing());
	rcu->read_unlock();
	rcu->thread_offline();
	rcu->read_lock();
	assert_int_equal(manual_faults(MANUAL_READS_OFFLINE), 1);
	assert_false(rcu->read_ongoing());
	rcu->thread_online();
	rcu->unregister_thread();
}

static void manual_register_misused(void **state)
{
	(void)state;
	rcu->register_thread();
	rcu->register_thread();
	expect_fault(MANUAL_REGISTERED_TWICE);
	rcu->unregister_thread();
	rcu->unregister_thread();
	assert_int_equal(manual_faults(MANUAL_NOT_REGISTERED), 1);
	assert_int_equal(manual_registered(), 0);
}

/* Without a hook a fault ends the program: no test can overlook it. */
static void c17_manual_fault_aborts(void **state)
{
	struct rlimit no_core = { 0, 0 };
	int status;
	pid_t child = fork();

	(void)state;
	assert_true(child >= 0);
	if (!child) {
		signal(SIGABRT, SIG_DFL);
		setrlimit(RLIMIT_CORE, &no_core);
		close(STDERR_FILENO);
		manual_set_hook(NULL);
		rcu->read_lock();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* Readers under way on threads: what is retired stays whole for them. */
#define REPLACED 300

struct shared {
	DSTREF_ATOMIC(uint64_t *) slot;
	DSTREF_ATOMIC(bool) ended;
	uint64_t values[2];
};

static void read_shared(struct stress_thread *thread)
{
	struct shared *shared = thread->arg;

	rcu->register_thread();
	while (!dstref_load_acquire(&shared->ended)) {
		rcu->read_lock();
		uint64_t *p = dstref_load_acquire(&shared->slot);

		thread->failed += *p != 1;
		rcu->read_unlock();
		thread->ops++;
	}
	rcu->unregister_thread();
}

static void replace_shared(struct shared *shared)
{
	for (int i = 1; i <= REPLACED; i++) {
		shared->values[i % 2] = 1;
		dstref_store_release(&shared->slot, &shared->values[i % 2]);
		rcu->update_synchronize_rcu();
		shared->values[!(i % 2)] = 0;
	}
	dstref_store_release(&shared->ended, true);
}

static void read_or_replace(struct stress_thread *thread)
{
	if (thread->index)
		read_shared(thread);
	else
		replace_shared(thread->arg);
}

static void manual_synchronize_under_threads(void **state)
{
	struct shared shared = { .values = { 1, 0 } };
	struct stress run = { .threads = 3, .arg = &shared };
	struct stress_thread sums;

	(void)state;
	dstref_init_plain(&shared.slot, &shared.values[0]);
	stress_run(&run, read_or_replace, &sums);
	stress_assert_equal(&run, sums.failed, 0);
	stress_assert_equal(&run, manual_periods(), REPLACED);
	assert_int_equal(manual_inside(), 0);
}

#define manual_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		manual_test(manual_nests),
		manual_test(manual_callback_waits_for_advance),
		manual_test(manual_reader_holds_up),
		manual_test(manual_later_reader_does_not_hold_up),
		manual_test(manual_late_callback_waits_for_the_next),
		manual_test(manual_callback_may_queue),
		manual_test(manual_drain_stops_at_a_reader),
		manual_test(manual_synchronize_waits_for_readers),
		manual_test(manual_barrier_runs_what_was_queued),
		manual_test(manual_offline_is_counted),
		manual_test(c17_manual_unregistered_thread_reads),
		manual_test(c17_manual_unregisters_inside),
		manual_test(c17_manual_thread_ends_inside),
		manual_test(c17_manual_thread_ends_registered),
		manual_test(c17_manual_synchronize_inside),
		manual_test(c17_manual_offline_misused),
		manual_test(manual_register_misused),
		manual_test(c17_manual_fault_aborts),
		manual_test(manual_synchronize_under_threads),
	};

	return cmocka_run_group_tests_name("manual", tests, NULL, NULL);
}
