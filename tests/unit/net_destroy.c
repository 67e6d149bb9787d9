/* SPDX-License-Identifier: MIT */
/*
 * unit.net_destroy - an end in order, or a report of what is in its way
 *
 * Goal: destroy and barrier say 0 only when nothing is left, tell by name what
 * is, leave the namespace valid then, and refuse to wait inside a reader.
 * Method: entries are left on purpose, with ages that ticks give them; the
 * manual flavour and its memory hooks tell whether anything came too early.
 */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dstref/sock.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "world.h"

#define TICK (UINT64_C(1) << DSTREF_NET_TICK_SHIFT) /* nanoseconds */
#define MS INT64_C(1000000)

static void sock_gone(struct dstref_sock *sk)
{
	(void)sk;
}

static void dst_gone(struct dstref_dst *dst)
{
	(void)dst;
}

static const struct dstref_dst_ops bare_ops = { .destroy = dst_gone };

static const struct dstref_sock_proto flow_proto = {
	.name = "flow",
	.size = sizeof(struct dstref_sock),
	.destroy = sock_gone,
};

static struct dstref_sock flow;

/* The i-th of the last two leaks: of what, how often held, how old. */
static void leak_is(unsigned int i, const void *object, uint32_t refs,
		    const char *name, uint64_t age_ns)
{
	const struct capture_report *report = capture_report(i);
	char age[32];

	assert_non_null(report);
	assert_int_equal(report->kind, DSTREF_REPORT_NET_LEAK);
	assert_ptr_equal(report->object, object);
	assert_int_equal(report->value, refs);
	assert_non_null(strstr(report->text, name));
	snprintf(age, sizeof(age), " %llu ms old",
		 (unsigned long long)(age_ns / MS));
	assert_non_null(strstr(report->text, age));
}

static void net_destroy_names_what_is_left(void **state)
{
	struct world *world = *state;
	struct dstref_net *net = world->net;
	struct route *route;

	assert_int_equal(dstref_net_tick(net, 4 * TICK, 0), 0);
	route = route_new(world, 0);
	enter();
	dstref_dst_hold_n(&route->dst, 2);
	leave();
	assert_int_equal(dstref_net_tick(net, 9 * TICK, 0), 0);
	assert_int_equal(dstref_sock_init(&flow, net, &flow_proto), 0);
	assert_int_equal(dstref_net_tick(net, 30 * TICK, 0), 0);

	assert_int_equal(dstref_net_destroy(net), -EBUSY);
	capture_expect(DSTREF_REPORT_NET_BUSY, 1);
	capture_expect(DSTREF_REPORT_NET_LEAK, 2);
	assert_ptr_equal(capture_report(0)->object, net);
	assert_int_equal(capture_report(0)->value, 2);
	assert_string_equal(capture_report(0)->call, "dstref_net_destroy");
	assert_non_null(strstr(capture_report(0)->text, "1 dst, 1 sock"));
	leak_is(1, &flow, 1, "sock 'flow'", 21 * TICK);
	leak_is(2, &route->dst, 3, "dst 'route'", 26 * TICK);

	enter();
	dstref_dst_release_n(&route->dst, 3);
	leave();
	dstref_sock_put_outside(&flow);
}

/* After -EBUSY it is valid, refuses entries, and can be destroyed again. */
static void net_destroy_may_be_tried_again(void **state)
{
	static struct dstref_dst late;
	struct world *world = *state;
	struct dstref_net *net = world->net;
	struct route *route = route_new(world, 0);
	struct dstref_net_counters stats;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(dstref_net_destroy(net), -EBUSY);
		capture_expect(DSTREF_REPORT_NET_BUSY, 1);
		capture_expect(DSTREF_REPORT_NET_LEAK, 1);
	}
	assert_int_equal(dstref_dst_init(&late, net, &route_ops, NULL, 0),
			 -ESHUTDOWN);
	assert_int_equal(dstref_sock_init(&flow, net, &flow_proto), -ESHUTDOWN);
	assert_int_equal(dstref_net_tick(net, TICK, 0), 0);
	dstref_net_stats(net, &stats);
	assert_int_equal(stats.dst, 1);
	enter();
	assert_true(dstref_dst_try_hold(&route->dst));
	dstref_dst_release_n(&route->dst, 2);
	leave();
	/* The teardown destroys it, with the callback still under way. */
	assert_int_equal(world->ends, 0);
}

/* Each call names them anew, newest first, and never thinned. */
static void leave_behind(struct dstref_net *net, unsigned int n,
			 unsigned int named)
{
	static struct dstref_dst dst[70];

	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(
			dstref_dst_init(&dst[i], net, &bare_ops, NULL, 0), 0);
	dstref_report_set_limit(8);
	for (int call = 0; call < 2; call++) {
		unsigned int first = capture_delivered();

		assert_int_equal(dstref_net_destroy(net), -EBUSY);
		capture_expect(DSTREF_REPORT_NET_BUSY, 1);
		capture_expect(DSTREF_REPORT_NET_LEAK, named);
		assert_int_equal(capture_delivered() - first, 1 + named);
		assert_int_equal(capture_report(first)->value, n);
		for (unsigned int i = 1; i <= named; i++) {
			leak_is(first + i, &dst[n - i], 1, "dst 'unnamed'", 0);
			assert_string_equal(capture_report(first + i)->call,
					    "dstref_net_destroy");
		}
	}
	while (n--)
		dstref_dst_release_now(&dst[n]);
}

static void net_destroy_names_all_of_twenty(void **state)
{
	leave_behind(((struct world *)*state)->net, 20, 20);
}

static void net_destroy_names_sixty_four_of_seventy(void **state)
{
	leave_behind(((struct world *)*state)->net, 70, 64);
}

/* A callback that causes another, which causes another. */
static void net_destroy_drains_what_callbacks_cause(void **state)
{
	struct world *world = *state;
	const struct dstref_net_attr attr = { .flavour = &manual_flavor };
	struct dstref_net *first = world->net;
	struct route *route[WORLD_ROUTES];

	assert_int_equal(dstref_net_create(&world->net, &attr), 0);
	assert_int_equal(dstref_sock_init(&flow, world->net, &flow_proto), 0);
	for (unsigned int i = 0; i < WORLD_ROUTES; i++)
		route[i] = route_new(world, i);
	dstref_dst_slot_install(&flow.dst, &route[0]->dst);
	for (unsigned int i = 0; i + 1 < WORLD_ROUTES; i++)
		dstref_dst_slot_install(&route[i]->dst.child,
					&route[i + 1]->dst);
	dstref_sock_put_outside(&flow);
	assert_int_equal(dstref_net_destroy(world->net), 0);
	for (unsigned int i = 0; i < WORLD_ROUTES; i++)
		assert_int_equal(world->place[i], i + 1);
	world->net = first;
}

/* dead's own callback is under way beside the entry's. */
static void net_destroy_drains_a_dead_route(void **state)
{
	struct world *world = *state;
	struct route *parent = route_new(world, 0);
	struct route *child = route_new(world, 1);
	struct dstref_net_counters stats;

	dstref_dst_slot_install(&parent->dst.child, &child->dst);
	dstref_dst_dead(&parent->dst);
	dstref_net_stats(world->net, &stats);
	assert_int_equal(stats.callbacks, 1);
	assert_int_equal(stats.dst, 2);
	put(parent);
	assert_int_equal(dstref_net_barrier(world->net, -1), 0);
	assert_int_equal(world->ends, 2);
}

static void reader_is_refused(struct dstref_net *net)
{
	assert_int_equal(dstref_net_destroy(net), -EDEADLK);
	capture_expect(DSTREF_REPORT_READER_BLOCKS, 1);
	assert_string_equal(capture_last(DSTREF_REPORT_READER_BLOCKS)->call,
			    "dstref_net_destroy");
	assert_int_equal(dstref_net_barrier(net, -1), -EDEADLK);
	capture_expect(DSTREF_REPORT_READER_BLOCKS, 1);
	assert_string_equal(capture_last(DSTREF_REPORT_READER_BLOCKS)->call,
			    "dstref_net_barrier");
	assert_ptr_equal(capture_last(DSTREF_REPORT_READER_BLOCKS)->object,
			 net);
}

/* Refused, nothing was done: entries may still come. */
static void net_destroy_inside_a_reader_is_refused(void **state)
{
	struct world *world = *state;
	struct route *route;

	enter();
	reader_is_refused(world->net);
	route = route_new(world, 0);
	assert_true(manual_flavor.read_ongoing());
	leave();
	assert_int_equal(manual_faults(MANUAL_WAITS_INSIDE), 0);
	/* Both tried to go offline, as they must for a QSBR thread. */
	assert_true(world_faults(MANUAL_OFFLINE_INSIDE, 2));
	put(route);
}

static void net_destroy_inside_a_reader_of_liburcu_is_refused(void **state)
{
	const struct rcu_flavor_struct *const flavours[] = {
		&urcu_memb_flavor,
		&urcu_bp_flavor,
		&urcu_mb_flavor,
	};

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct dstref_net_attr attr = { .flavour = flavours[i] };
		struct dstref_net *net;

		assert_int_equal(dstref_net_create(&net, &attr), 0);
		reader_register(flavours[i]);
		reader_lock(flavours[i]);
		reader_is_refused(net);
		reader_unlock(flavours[i]);
		reader_unregister(flavours[i]);
		assert_int_equal(dstref_net_destroy(net), 0);
	}
}

/* An online QSBR thread is taken offline for the wait, and brought back. */
static void net_destroy_by_an_online_qsbr_thread(void **state)
{
	const struct rcu_flavor_struct *qsbr = &urcu_qsbr_flavor;
	const struct dstref_net_attr attr = { .flavour = qsbr };
	struct dstref_net *net;

	(void)state;
	reader_register(qsbr);
	assert_int_equal(dstref_net_create(&net, &attr), 0);
	assert_int_equal(dstref_net_barrier(net, -1), 0);
	assert_true(qsbr->read_ongoing());
	assert_int_equal(dstref_net_destroy(net), 0);
	assert_true(qsbr->read_ongoing());
	reader_offline(qsbr);
	assert_int_equal(dstref_net_create(&net, &attr), 0);
	assert_int_equal(dstref_net_destroy(net), 0);
	assert_false(qsbr->read_ongoing());
	reader_unregister(qsbr);
}

/* One who adds inside his reader, until he is refused and a while longer. */
static struct dstref_net *visited;
static DSTREF_ATOMIC(bool) inside, left;

static int add_one(void)
{
	static struct dstref_dst dst;
	int err = dstref_dst_init(&dst, visited, &bare_ops, NULL, 0);

	if (!err)
		dstref_dst_release_now(&dst);
	return err;
}

static void *add_until_refused(void *arg)
{
	const struct timespec pause = { 0, MS };
	int *err = arg;

	reader_register(&manual_flavor);
	enter();
	dstref_store_relaxed(&inside, true);
	while (!add_one())
		nanosleep(&pause, NULL);
	for (int i = 0; i < 20; i++)
		nanosleep(&pause, NULL);
	*err = add_one();
	dstref_store_relaxed(&left, true);
	leave();
	reader_unregister(&manual_flavor);
	return NULL;
}

/* Who found the namespace inside a reader may touch it until he leaves. */
static void net_destroy_waits_for_readers_that_may_add(void **state)
{
	struct world *world = *state;
	const struct dstref_net_attr attr = {
		.flavour = &manual_flavor,
		.mem = alloc_mem(&world->alloc),
	};
	pthread_t thread;
	int err = 0;

	assert_int_equal(dstref_net_create(&visited, &attr), 0);
	assert_true(manual_drain()); /* nothing else to wait for */
	assert_int_equal(pthread_create(&thread, NULL, add_until_refused, &err),
			 0);
	while (!dstref_load_relaxed(&inside))
		sched_yield();
	assert_int_equal(dstref_net_destroy(visited), 0);
	assert_true(dstref_load_relaxed(&left));
	pthread_join(thread, NULL);
	assert_int_equal(err, -ESHUTDOWN);
}

static int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void net_barrier_times_out_with_a_report(void **state)
{
	struct world *world = *state;
	struct route *route = route_new(world, 0);
	int64_t start = clock_ns();

	assert_int_equal(dstref_net_barrier(world->net, 20 * MS), -ETIMEDOUT);
	assert_true(clock_ns() - start >= 20 * MS);
	capture_expect(DSTREF_REPORT_NET_BUSY, 1);
	capture_expect(DSTREF_REPORT_NET_LEAK, 1);
	assert_string_equal(capture_last(DSTREF_REPORT_NET_LEAK)->call,
			    "dstref_net_barrier");
	assert_ptr_equal(capture_last(DSTREF_REPORT_NET_LEAK)->object,
			 &route->dst);
	/* It does not close: entries may come. */
	put(route_new(world, 1));
	put(route);
	assert_true(manual_drain());
	assert_int_equal(dstref_net_barrier(world->net, 0), 0);
	assert_int_equal(world->ends, 2);
}

static void *put_later(void *dst)
{
	const struct timespec pause = { 0, 20 * MS };

	nanosleep(&pause, NULL);
	dstref_dst_release_outside(dst);
	/* A barrier that has a timeout leaves callbacks to the flavour. */
	manual_drain();
	return NULL;
}

static void net_barrier_waits_for_the_last_put(void **state)
{
	struct world *world = *state;
	const int64_t timeouts[] = { -1, 60000 * MS };

	for (unsigned int i = 0; i < 2; i++) {
		struct route *route = route_new(world, i);
		pthread_t thread;

		assert_int_equal(
			pthread_create(&thread, NULL, put_later, &route->dst),
			0);
		assert_int_equal(dstref_net_barrier(world->net, timeouts[i]),
				 0);
		assert_int_equal(world->ended[i], 1);
		pthread_join(thread, NULL);
	}
}

#if DSTREF_DEBUG
static void net_null_is_reported_by_the_call(void **state)
{
	(void)state;
	assert_int_equal(dstref_net_barrier(NULL, 0), -EINVAL);
	assert_int_equal(dstref_net_tick(NULL, 0, 0), -EINVAL);
	dstref_net_walk(NULL, NULL, NULL);
	capture_expect(DSTREF_REPORT_NULL_ARGUMENT, 3);
	assert_string_equal(capture_report(0)->call, "dstref_net_barrier");
	assert_string_equal(capture_report(1)->call, "dstref_net_tick");
	assert_string_equal(capture_report(2)->call, "dstref_net_walk");
}

static void poisoned(void *ctx, void *ptr, size_t size)
{
	const unsigned char *byte = ptr;
	unsigned int *whole = ctx;

	for (size_t i = 1; i < size; i++)
		if (byte[i] != byte[0])
			return;
	*whole += byte[0] != 0;
}

static unsigned char *arena;
static size_t arena_used;

static void *from_arena(void *ctx, size_t size, size_t align, int node)
{
	static _Alignas(256) unsigned char memory[65536];

	(void)ctx;
	(void)node;
	assert_true(size <= sizeof(memory) - arena_used && align <= 256);
	arena = memory;
	arena_used += size;
	return memory + arena_used - size;
}

/* C12: what is freed is poisoned first in debug builds. */
static void c12_net_memory_is_poisoned_when_freed(void **state)
{
	unsigned int whole = 0;
	const struct dstref_net_attr attr = {
		.flavour = &manual_flavor,
		.mem = { from_arena, poisoned, &whole },
	};
	struct dstref_net *net;

	(void)state;
	assert_int_equal(dstref_net_create(&net, &attr), 0);
	assert_ptr_equal(net, arena);
	assert_int_equal(dstref_net_destroy(net), 0);
	assert_int_equal(whole, 2); /* with the cells' blocks */
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(net_destroy_names_what_is_left),
		world_test(net_destroy_may_be_tried_again),
		world_test(net_destroy_names_all_of_twenty),
		world_test(net_destroy_names_sixty_four_of_seventy),
		world_test(net_destroy_drains_what_callbacks_cause),
		world_test(net_destroy_drains_a_dead_route),
		world_test(net_destroy_inside_a_reader_is_refused),
		world_test(net_destroy_inside_a_reader_of_liburcu_is_refused),
		world_test(net_destroy_by_an_online_qsbr_thread),
		world_test(net_destroy_waits_for_readers_that_may_add),
		world_test(net_barrier_times_out_with_a_report),
		world_test(net_barrier_waits_for_the_last_put),
#if DSTREF_DEBUG
		world_test(net_null_is_reported_by_the_call),
		world_test(c12_net_memory_is_poisoned_when_freed),
#endif
	};

	return cmocka_run_group_tests_name("net_destroy", tests, NULL, NULL);
}
