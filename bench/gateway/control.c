/* SPDX-License-Identifier: MIT */
/*
 * The control plane, one thread: it tells the namespace the time, and with
 * --churn replaces routes while packets use them, in turn, so many a second.
 *
 * To replace a route: hold the old one, install the new one (which unpublishes
 * the old and lets go of the slot's reference), say that the old one is dead,
 * let go. A worker that borrowed it a moment ago finds its output discarding
 * (counted as dead_route) or has sent already; either way the memory stays
 * until his reader ends.
 *
 * The thread is in a reader only for the moment of a replacement: the tick
 * must be outside of one, and a thread that sleeps online would hold up every
 * grace period.
 */
#include "gateway.h"

#include <time.h>
#include <urcu/urcu-qsbr.h>

#define TICK_BUDGET 64 /* routes with a cell that a tick looks at */
#define STEP_NS 1000000 /* between two looks at the clock under churn */
#define IDLE_NS 10000000 /* without churn: finer than the coarse time */

static void replace(struct control *control, uint32_t i)
{
	struct tables *tables = &control->gw->tables;
	struct dstref_dst_slot *slot = &tables->routes[i];
	struct route *route = route_new(tables);
	struct dstref_dst *old;

	if (!route) {
		counter_add(&control->failed, 1);
		return;
	}
	urcu_qsbr_thread_online();
	old = dstref_dst_slot_hold(slot);
	dstref_dst_slot_install(slot, &route->dst);
	dstref_dst_dead(old);
	dstref_dst_release(old);
	urcu_qsbr_thread_offline();
	counter_add(&control->replaced, 1);
}

static void *control_main(void *arg)
{
	struct control *control = arg;
	const struct options *opt = &control->gw->opt;
	struct tables *tables = &control->gw->tables;
	uint64_t start = now_ns(), made = 0;
	struct timespec pause = { 0, opt->churn ? STEP_NS : IDLE_NS };

	pthread_setname_np(pthread_self(), "control");
	urcu_qsbr_register_thread();
	urcu_qsbr_thread_offline();
	while (!dstref_load_relaxed(&control->stop)) {
		uint64_t now = now_ns();
		uint64_t due = (now - start) / 1000 * opt->churn / 1000000;

		(void)dstref_net_tick(tables->net, now, TICK_BUDGET);
		for (; made < due; made++)
			replace(control,
				(uint32_t)(made % tables->route_count));
		nanosleep(&pause, NULL);
	}
	urcu_qsbr_thread_online();
	urcu_qsbr_unregister_thread();
	return NULL;
}

int control_start(struct gateway *gw)
{
	gw->control.gw = gw;
	return pthread_create(&gw->control.thread, NULL, control_main,
			      &gw->control)
		       ? -1
		       : 0;
}

void control_stop(struct control *control)
{
	dstref_store_relaxed(&control->stop, true);
	pthread_join(control->thread, NULL);
}
