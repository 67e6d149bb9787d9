/* SPDX-License-Identifier: MIT */
/*
 * The table `roundtrip`: an application asks, sleeps until the answer is
 * there, and asks again.
 *
 * Thread 0 is the application. It sends 40 bytes and sleeps for input
 * (dstref_sock_wait_readable()). Thread 1 is the core that the device
 * interrupts, and stands for the wire and the peer too. FLIGHT_NS after the
 * request was posted the device has sent it, and completion lets go of what it
 * still pins. FLIGHT_NS later the answer is in: the sock pays for it, and
 * data_ready wakes the application. Two moments, since a card interrupts for
 * what it sent before an answer can be there; and far enough apart that the
 * application is asleep again if the first of them woke it. A round trip on the
 * networks of 2009 took about as long as the two together. The peer answers
 * when it answers, so both times count from the post, and a completion that is
 * done before the answer comes does not delay it.
 *
 * The value is the time from before the send until the answer is in hand: the
 * median of the first 4096 of a run. Most of it is flight, and the kernel's
 * way to wake a thread, perhaps on an idle core, which takes many times what
 * a counter costs and has two speeds or more on virtual machines. So look at
 * the counters: wake-ups of an exchange, the asker's CPU time for it, the time
 * of its completion on the other core.
 *
 * `one-queue` is the model of 2009: a sock had one queue for all who slept on
 * it, so a completion woke the task that slept for input, which looked, found
 * nothing, and went back to sleep. `one-queue-early` is what was proposed: let
 * go of the sock at transmit, when nobody sleeps yet. The thread named the
 * other way out too, to separate the sleepers. The library's are separate; so
 * `completion` has no such wake-up, and what remains between it and `xmit` is
 * the lines that travel.
 */
#include "stack.h"

#include <urcu/urcu-qsbr.h>

#define FLIGHT_NS 50000
#define LOST_NS INT64_C(100000000) /* look again, though nobody woke us */

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Sleeps until so many answers have come: times that nobody woke us. */
static uint64_t await(struct stack *st, uint32_t answers)
{
	uint64_t timeouts = 0;

	for (;;) {
		uint32_t token = dstref_sock_data_token(&st->sk);

		if (__atomic_load_n(&st->answers, __ATOMIC_ACQUIRE) == answers)
			return timeouts; /* A3 */
		if (dstref_sock_wait_readable(&st->sk, token, LOST_NS))
			timeouts++;
	}
}

static void ask(struct bench_self *self)
{
	struct stack *st = self->state;
	uint64_t cpu = cpu_ns();

	do {
		uint64_t start = clock_ns();

		stack_send(st, start);
		stack_post(st);
		self->counter[XMIT_TIMEOUTS] += await(st, st->head);
		BENCH_KEEP(st->answer.payload[0]);
		dstref_skb_free(&st->answer.skb);
		bench_sample(self, (double)(clock_ns() - start));
		self->ops++;
		urcu_qsbr_quiescent_state();
	} while (!bench_over(self));
	stack_stop(st);
	self->counter[XMIT_CPU_NS] = cpu_ns() - cpu;
	self->counter[XMIT_WAKEUPS] = stack_wakeups(st);
}

static void wait_until(uint64_t then)
{
	unsigned int turns = 0;

	while (clock_ns() < then)
		stack_idle(&turns);
}

static void deliver(struct stack *st)
{
	struct packet *answer = &st->answer;

	dstref_skb_init(&answer->skb, TRUESIZE);
	memset(answer->payload, 0, PAYLOAD);
	dstref_skb_set_owner_r(&answer->skb, &st->sk);
	__atomic_store_n(&st->answers, st->answers + 1,
			 __ATOMIC_RELEASE); /* R3 */
	dstref_sock_data_ready(&st->sk);
}

static void exchange(struct bench_self *self, uint32_t done)
{
	struct stack *st = self->state;
	uint64_t posted = clock_ns(), start;

	wait_until(posted + FLIGHT_NS);
	start = clock_ns();
	stack_complete(st, done);
	stack_done(st, done + 1);
	self->counter[XMIT_COMPLETION_NS] += clock_ns() - start;
	wait_until(posted + 2 * FLIGHT_NS);
	deliver(st);
}

static void answer(struct bench_self *self)
{
	struct stack *st = self->state;
	unsigned int turns = 0;
	uint32_t done = 0;

	for (;;) {
		bool last = stack_stopped(st); /* before the look at posted */

		if (stack_posted(st, done))
			exchange(self, done++);
		else if (last)
			break;
		else
			stack_idle(&turns);
	}
}

static void work(struct bench_self *self)
{
	urcu_qsbr_register_thread();
	if (self->id == 0)
		ask(self);
	else
		answer(self);
	urcu_qsbr_unregister_thread();
}

#define ROW(name_, kind_, what_, ...) \
	XMIT_ROW(name_, kind_, what_, work, __VA_ARGS__)

const struct bench_variant xmit_roundtrip[XMIT_ROUNDTRIP] = {
	ROW("ring", BENCH_FLOOR, "nothing counted for the request",
	    .floor = FLOOR_RING),
	ROW("one-queue", BENCH_MODEL,
	    "at completion, which wakes who sleeps for input",
	    .one_queue = true, .flags = DSTREF_SKB_KEEP_DST),
	ROW("one-queue-early", BENCH_MODEL,
	    "the same at transmit, as proposed: nobody sleeps yet",
	    .one_queue = true, .flags = DSTREF_SKB_EARLY),
	ROW("completion", BENCH_OURS,
	    "route and sock at completion, which wakes nobody",
	    .flags = DSTREF_SKB_KEEP_DST),
	ROW("xmit", BENCH_OURS, "route at transmit, sock at completion",
	    .flags = 0),
	ROW("xmit-early", BENCH_OURS, "route and sock at transmit",
	    .flags = DSTREF_SKB_EARLY),
};
