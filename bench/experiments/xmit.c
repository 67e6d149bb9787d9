/* SPDX-License-Identifier: MIT */
/*
 * xmit - release at transmit time, or at completion on another core (S4)
 *
 * A packet that was sent is let go of twice: as it leaves the core that sends
 * it, and when the device has completed it, on the core that the device
 * interrupts. Whatever is released in the second place writes lines that the
 * sending core writes too, and has written a moment ago; they travel there
 * and back for each packet or burst of packets. The proposal of 2009 was to
 * release the route, and to uncharge the sock, in the first place.
 *
 * `throughput`. Thread 0 is the core of an application that answers requests.
 * For each it takes the request in (the sock pays for it, is told of data,
 * and is paid back once it is read), and sends an answer: may I send, find the
 * route, use it, charge the sock, output, transmit ring. Thread 1 is the core
 * where the device completes. Both run through dstref_dst_output() of a real
 * route, and the variants differ in the policy alone that this reads, and in
 * whether the route is held or borrowed. That all packets are by one route and
 * one sock is the case that the thread was about: one flow, its application on
 * one core, the interrupts on another. More flows would spread the lines, and
 * completion would miss the cache instead of fighting for the line.
 *
 * The request is there because an application is not a packet generator; it
 * stays on its core and costs every variant the same, so it makes the ratio
 * weaker, not stronger. So does dstref_sock_writeable() before each answer: it
 * reads the account that completion writes, under `completion` and `xmit`.
 *
 * What is timed. The figure is the time per packet of both sides, summed; so
 * a core that waits for the other must not count. Work is done in bursts, as
 * drivers do it (32 at transmit, up to 64 at completion); the clock is read
 * before and after each, and what lies between two bursts, spinning on an
 * empty or a full ring, is not counted. Two reads of the clock are about 50 ns
 * for a burst, in all variants, the floors included. CPU time would not do:
 * threads that sleep at an empty ring spend most of it on going to sleep.
 * What is kept of the waiting: a core that polls an index pulls its line, and
 * the other pays for the next store; that is so in all variants, once a burst.
 *
 * Floors: the ring with nothing counted, the same with one locked addition
 * per packet on each side to a word of its own, to one word that both write.
 *
 * `roundtrip` and `gateway` are in the folder of this file's name.
 */
#include "xmit/stack.h"

#include <math.h>
#include <urcu/urcu-qsbr.h>

#define BURST 32 /* packets that are posted at once */
#define BUDGET 64 /* packets that one turn completes at most */

enum { TRANSMIT_NS, COMPLETION_NS, WAKEUPS }; /* counters */

/* A request comes in, and is read. */
static void receive(struct stack *st)
{
	struct dstref_skb request;

	dstref_skb_init(&request, TRUESIZE);
	dstref_skb_set_owner_r(&request, &st->sk);
	dstref_sock_data_ready(&st->sk);
	dstref_skb_free(&request);
}

static void transmit_burst(struct stack *st, uint64_t now)
{
	for (int i = 0; i < BURST; i++) {
		if (!st->policy->floor)
			receive(st);
		stack_send(st, now);
	}
	stack_post(st);
}

static void complete_burst(struct stack *st, uint32_t done, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		stack_complete(st, done + i);
	stack_done(st, done + n);
}

static void transmit(struct bench_self *self)
{
	struct stack *st = self->state;
	unsigned int turns = 0;

	do {
		uint64_t start;

		while (stack_room(st) < BURST)
			stack_idle(&turns);
		start = clock_ns();
		transmit_burst(st, start);
		self->counter[TRANSMIT_NS] += clock_ns() - start;
		self->ops += BURST;
		urcu_qsbr_quiescent_state();
	} while (!bench_over(self));
	stack_stop(st);
	self->counter[WAKEUPS] = stack_wakeups(st);
}

static void complete(struct bench_self *self)
{
	struct stack *st = self->state;
	unsigned int turns = 0;
	uint32_t done = 0;

	for (;;) {
		bool last = stack_stopped(st); /* before the look at posted */
		uint32_t n = stack_posted(st, done);
		uint64_t start;

		if (!n && last)
			break;
		if (!n) {
			stack_idle(&turns);
			continue;
		}
		n = n < BUDGET ? n : BUDGET;
		start = clock_ns();
		complete_burst(st, done, n);
		self->counter[COMPLETION_NS] += clock_ns() - start;
		done += n;
		urcu_qsbr_quiescent_state();
	}
}

static void work(struct bench_self *self)
{
	urcu_qsbr_register_thread();
	if (self->id == 0)
		transmit(self);
	else
		complete(self);
	urcu_qsbr_unregister_thread();
}

/* Both sides, busy, by the packets that went through. */
static double busy_per_packet(const struct bench_run *run)
{
	uint64_t busy = run->thread[0].counter[TRANSMIT_NS] +
			run->thread[1].counter[COMPLETION_NS];

	return (double)busy / (double)run->thread[0].ops;
}

static const unsigned int one[] = { 1, 0 }, two[] = { 2, 0 };

#define ROW(name_, kind_, what_, ...) \
	XMIT_ROW(name_, kind_, what_, work, __VA_ARGS__)

static const struct bench_variant throughput[] = {
	ROW("ring", BENCH_EMPTY, "the ring alone, nothing counted",
	    .floor = FLOOR_RING),
	ROW("add-own", BENCH_FLOOR,
	    "the ring, and a locked addition to a word of each side",
	    .floor = FLOOR_OWN),
	ROW("add-shared", BENCH_FLOOR,
	    "the ring, and a locked addition to one shared word",
	    .floor = FLOOR_SHARED),
	ROW("completion", BENCH_MODEL, "route and sock let go of at completion",
	    .flags = DSTREF_SKB_KEEP_DST),
	ROW("xmit", BENCH_OURS, "route at transmit, sock at completion",
	    .flags = 0),
	ROW("xmit-early", BENCH_OURS, "route and sock at transmit",
	    .flags = DSTREF_SKB_EARLY),
	ROW("xmit-noref", BENCH_OURS, "route borrowed, sock at completion",
	    .borrow = true),
	ROW("xmit-noref-early", BENCH_OURS, "route borrowed, sock at transmit",
	    .borrow = true, .flags = DSTREF_SKB_EARLY),
};

static const struct bench_table tables[] = {
	{
		.name = "throughput",
		.title = "time per packet, both cores, waiting left out",
		.variants = throughput,
		.count = sizeof(throughput) / sizeof(throughput[0]),
		.baseline = 3,
		.unit = "ns",
		.threads = two,
		.value = busy_per_packet,
		.counters = { "transmit ns", "completion ns", "wakeups" },
	},
	{
		.name = "roundtrip",
		.title = "latency of a request of 40 bytes and its answer, "
			 "which comes 100 us after it",
		.variants = xmit_roundtrip,
		.count = XMIT_ROUNDTRIP,
		.baseline = 1,
		.unit = "ns",
		.threads = two,
		.value = bench_sampled,
		.counters = { "wakeups", "asker cpu ns", "completion ns",
			      "timeouts" },
	},
	{
		.name = "gateway",
		.title = "time per packet forwarded between kernel sockets",
		.variants = xmit_gateway,
		.count = XMIT_GATEWAY,
		.baseline = 1,
		.unit = "ns",
		.threads = one,
		.value = bench_sampled,
		.counters = { "cpu ns", "dropped", "ring full", "wakeups" },
		.prepare = xmit_gateway_prepare,
	},
};

static void saved(FILE *out, const struct bench_row *row,
		  const struct bench_row *from)
{
	if (!row || row == from)
		return;
	fprintf(out, "  %-16s %10.0f %12.0f %12.0f\n", row->variant->name,
		from->median - row->median,
		from->counter[XMIT_CPU_NS] - row->counter[XMIT_CPU_NS],
		from->counter[XMIT_COMPLETION_NS] -
			row->counter[XMIT_COMPLETION_NS]);
}

/* What a round trip of 2009 would have been spared, in ns. */
static void report(FILE *out, const struct bench_result *result)
{
	const struct bench_row *from =
		bench_row(result, "roundtrip", "one-queue", 2);

	if (!from || isnan(from->median))
		return;
	fprintf(out,
		"\nns saved by a round trip, against one-queue (published: "
		"over 2000 by letting go at transmit)\n"
		"  %-16s %10s %12s %12s\n",
		"", "latency", "asker's CPU", "completion");
	for (size_t i = 0; i < XMIT_ROUNDTRIP; i++)
		saved(out,
		      bench_row(result, "roundtrip", xmit_roundtrip[i].name, 2),
		      from);
}

const struct bench_experiment bench_xmit = {
	.name = "xmit",
	.seed = "S4",
	.question = "What does it cost to let go of a packet's route and sock "
		    "at completion, on another core, and not at transmit?",
	.published = "over 2 us saved for a UDP round trip of 40 bytes (10000 "
		     "samples) by letting go of both at transmit;\n"
		     "an exchange cost about 30000 cycles; completion woke for "
		     "nothing the task that slept for input",
	.measured =
		"the library's route, sock and packet on two threads with a "
		"ring between them; the device and the peer are "
		"the second thread, not a network;\n"
		"then the gateway with real packets, which has no peer "
		"that answers",
	.tables = tables,
	.count = sizeof(tables) / sizeof(tables[0]),
	.report = report,
};
