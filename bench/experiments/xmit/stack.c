/* SPDX-License-Identifier: MIT */
/*
 * The objects of stack.h: made before a run, let go of after it.
 *
 * Route and sock are members of the stack, so their memory is the stack's and
 * destroy has nothing to do; but it may be freed only once both have ended,
 * which the end of the namespace says. A namespace that does not end reports
 * what is left in it; then the memory stays.
 *
 * The model of one queue (2009) is a write-space callback that wakes who waits
 * for data, as sock_def_write_space() woke whoever slept on the sock.
 */
#include "stack.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <urcu/urcu-qsbr.h>

#define END_NS INT64_C(5000000000) /* for the last callbacks */
#define TURNS 256 /* idle ones, before somebody else may run */

static void dst_destroy(struct dstref_dst *dst)
{
	(void)dst;
}

static void sock_destroy(struct dstref_sock *sk)
{
	(void)sk;
}

static const struct dstref_dst_ops dst_ops = {
	.name = "route",
	.destroy = dst_destroy,
};

static const struct dstref_sock_proto sock_proto = {
	.name = "sock",
	.size = sizeof(struct dstref_sock),
	.destroy = sock_destroy,
};

static void wake_reader(struct dstref_sock *sk, void *data)
{
	(void)data;
	dstref_sock_data_ready(sk);
}

static const struct dstref_sock_space one_queue = { .fn = wake_reader };

/* dst->output: what a driver does as the packet leaves the sending core. */
static int stack_output(struct dstref_dst *dst, void *arg)
{
	const struct stack *st = dst->dev;
	struct packet *pkt = arg;

	if (!dstref_skb_xmit_release(&pkt->skb, st->policy->flags))
		return dstref_dst_discard(dst, pkt);
	return 0;
}

static int route_open(struct stack *st)
{
	int rc = dstref_dst_init(&st->dst, st->net, &dst_ops, st, 0);

	if (rc)
		return rc;
	dstref_store_relaxed(&st->dst.output, stack_output);
	dstref_dst_slot_install(&st->route, &st->dst);
	return 0;
}

static int sock_open(struct stack *st)
{
	int rc = dstref_sock_init(&st->sk, st->net, &sock_proto);

	if (rc || !st->policy->one_queue)
		return rc;
	rc = dstref_sock_set_write_space(&st->sk, &one_queue);
	if (rc)
		dstref_sock_put_outside(&st->sk);
	return rc;
}

/* The route has left its slot, the sock its owner. */
static void stack_close(struct stack *st)
{
	if (!dstref_net_barrier(st->net, END_NS) &&
	    !dstref_net_destroy(st->net))
		free(st);
}

int stack_setup(const struct bench_variant *variant, unsigned int threads,
		void **state)
{
	struct dstref_net_attr attr = { .flavour = &urcu_qsbr_flavor };
	struct stack *st = aligned_alloc(APART, sizeof(*st));
	int rc;

	(void)threads;
	if (!st)
		return -ENOMEM;
	memset((void *)st, 0, sizeof(*st));
	st->policy = variant->context;
	rc = dstref_net_create(&st->net, &attr);
	if (rc) {
		free(st);
		return rc;
	}
	rc = route_open(st);
	if (!rc)
		rc = sock_open(st);
	if (!rc) {
		*state = st;
		return 0;
	}
	dstref_dst_slot_clear(&st->route);
	stack_close(st);
	return rc;
}

void stack_teardown(void *state)
{
	struct stack *st = state;

	dstref_dst_slot_clear(&st->route);
	dstref_sock_put_outside(&st->sk);
	stack_close(st);
}

void stack_idle(unsigned int *turns)
{
	urcu_qsbr_quiescent_state();
	if (++*turns % TURNS)
		caa_cpu_relax();
	else
		sched_yield();
}

uint64_t stack_wakeups(const struct stack *st)
{
	struct dstref_net_counters stats;

	dstref_net_stats(st->net, &stats);
	return stats.wakeups_room + stats.wakeups_data;
}
