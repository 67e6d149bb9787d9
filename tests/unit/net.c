/* SPDX-License-Identifier: MIT */
/*
 * unit.net - creation, memory, time, counters and the walk
 *
 * Goal: a namespace is made from what is complete and refused otherwise, with
 * the result untouched; memory comes and goes through the hooks; time and
 * counters tell what was done; the walk shows every entry that is alive, as
 * documented, on every flavour. Method: the manual flavour for what has an
 * order, liburcu's four and an adapter with nothing optional for the rest.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dstref/sock.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "world.h"

#define TICK (UINT64_C(1) << DSTREF_NET_TICK_SHIFT) /* nanoseconds */
#define UNTOUCHED ((struct dstref_net *)(uintptr_t)0x5a5a)

static void create_fails(const struct dstref_net_attr *attr, int err)
{
	struct dstref_net *net = UNTOUCHED;

	assert_int_equal(dstref_net_create(&net, attr), err);
	assert_ptr_equal(net, UNTOUCHED);
	assert_int_equal(manual_pending(), 0);
}

static void net_create_refuses_what_is_incomplete(void **state)
{
	struct world *world = *state;
	const struct dstref_net_mem mem = alloc_mem(&world->alloc);
	struct rcu_flavor_struct flavour = manual_flavor;
	struct dstref_net_attr attr = { .flavour = &flavour };

	create_fails(NULL, -EINVAL);
	assert_int_equal(dstref_net_create(NULL, &attr), -EINVAL);
	flavour.update_call_rcu = NULL;
	create_fails(&attr, -EINVAL);
	flavour = manual_flavor;
	flavour.update_synchronize_rcu = NULL;
	create_fails(&attr, -EINVAL);
	flavour = manual_flavor;
	flavour.barrier = NULL;
	create_fails(&attr, -EINVAL);
	flavour = manual_flavor;
	attr.mem = mem;
	attr.mem.alloc = NULL;
	create_fails(&attr, -EINVAL);
	attr.mem = mem;
	attr.mem.free = NULL;
	create_fails(&attr, -EINVAL);
	attr.mem = mem;
	attr.reserved = 1;
	create_fails(&attr, -EINVAL);
	attr.reserved = 0;
	attr.flavour = NULL;
	create_fails(&attr, -EINVAL);
}

/* The n-th request fails, for every n that there is. */
static void net_create_survives_every_refused_request(void **state)
{
	struct world *world = *state;
	struct dstref_net_attr attr = {
		.flavour = &manual_flavor,
		.mem = alloc_mem(&world->alloc),
	};
	const size_t blocks = world->alloc.blocks;
	struct dstref_net *net = UNTOUCHED;
	uint64_t nth = 0;
	int err;

	do {
		alloc_refuse(&world->alloc, ++nth);
		err = dstref_net_create(&net, &attr);
		if (err) {
			assert_int_equal(err, -ENOMEM);
			assert_ptr_equal(net, UNTOUCHED);
			assert_int_equal(world->alloc.blocks, blocks);
			assert_int_equal(manual_pending(), 0);
		}
	} while (err);
	alloc_refuse(&world->alloc, 0);
	assert_true(nth > 1);
	assert_true(world->alloc.blocks > blocks);
	assert_int_equal(dstref_net_destroy(net), 0);
	assert_int_equal(world->alloc.blocks, blocks);
	assert_int_equal(world->alloc.faults, 0);
}

/* Memory that is 8 off its line; what comes back must be the same. */
static _Alignas(DSTREF_LINE_SIZE) unsigned char crooked[16384];
static unsigned int crooked_back;

static void *crooked_alloc(void *ctx, size_t size, size_t align, int node)
{
	(void)ctx;
	(void)node;
	assert_true(size % align == 0 && size + 8 <= sizeof(crooked));
	return crooked + 8;
}

static void crooked_free(void *ctx, void *ptr, size_t size)
{
	(void)ctx;
	(void)size;
	assert_ptr_equal(ptr, crooked + 8);
	crooked_back++;
}

static void c21_net_gives_crooked_memory_back(void **state)
{
	const struct dstref_net_attr attr = {
		.flavour = &manual_flavor,
		.mem = { crooked_alloc, crooked_free, NULL },
	};

	(void)state;
	create_fails(&attr, -ENOMEM);
	assert_int_equal(crooked_back, 1);
	capture_expect(DSTREF_REPORT_NET_MEMORY, 1);
	assert_ptr_equal(capture_report(0)->object, crooked + 8);
}

static void abi_is_refused(struct dstref_net_abi abi, const char *part)
{
	const struct dstref_net_attr attr = { .flavour = &manual_flavor };
	struct dstref_net *net = UNTOUCHED;
	const struct capture_report *report;

	assert_int_equal(dstref_net_create_abi(&net, &attr, &abi), -EPROTO);
	assert_ptr_equal(net, UNTOUCHED);
	capture_expect(DSTREF_REPORT_ABI_MISMATCH, 1);
	report = capture_last(DSTREF_REPORT_ABI_MISMATCH);
	assert_string_equal(report->call, "dstref_net_create");
	assert_non_null(strstr(report->text, part));
}

static void net_create_refuses_another_abi(void **state)
{
	const struct dstref_net_attr attr = { .flavour = &manual_flavor };
	const struct dstref_net_abi right = { DSTREF_VERSION, DSTREF_LINE_SIZE,
					      sizeof(attr), sizeof(void *) };
	struct dstref_net_abi abi = right;
	struct dstref_net *net = UNTOUCHED;
	char part[64];

	(void)state;
	assert_int_equal(dstref_net_create_abi(&net, &attr, NULL), -EINVAL);
	abi.line_size = DSTREF_LINE_SIZE == 64 ? 128 : 64;
	snprintf(part, sizeof(part), "lines of %u,", abi.line_size);
	abi_is_refused(abi, part);
	abi = right;
	abi.version += 100;
	snprintf(part, sizeof(part), "version %u", abi.version);
	abi_is_refused(abi, part);
	abi = right;
	abi.word_size = 12 - abi.word_size;
	snprintf(part, sizeof(part), "words of %u,", abi.word_size);
	abi_is_refused(abi, part);
	abi = right;
	abi.attr_size += 8;
	snprintf(part, sizeof(part), "attr of %u bytes;", abi.attr_size);
	abi_is_refused(abi, part);
	/* Another patch of the same version is the same interface. */
	abi = right;
	abi.version++;
	assert_int_equal(dstref_net_create_abi(&net, &attr, &abi), 0);
	assert_int_equal(dstref_net_destroy(net), 0);
}

static void net_create_fills_what_packets_read(void **state)
{
	struct world *world = *state;
	const struct dstref_net *net = world->net;

	assert_int_equal((uintptr_t)net % DSTREF_LINE_SIZE, 0);
	assert_ptr_equal(net->flavour, &manual_flavor);
	assert_ptr_equal(net->mem.ctx, &world->alloc);
	assert_null(net->user);
	assert_int_equal(dstref_count_read(&net->tw_refs), 1);
	assert_null(net->hashinfo);
	assert_int_equal(net->tw_limit, 0);
	assert_int_equal(dstref_net_now(net), 0);
}

static void net_create_queues_the_first_callback(void **state)
{
	const struct dstref_net_attr attr = { .flavour = &manual_flavor };
	struct dstref_net_counters stats;
	struct dstref_net *net;

	(void)state;
	assert_int_equal(dstref_net_create(&net, &attr), 0);
	assert_int_equal(manual_pending(), 1);
	dstref_net_stats(net, &stats);
	assert_int_equal(stats.callbacks, 1);
	assert_true(manual_advance());
	dstref_net_stats(net, &stats);
	assert_int_equal(stats.callbacks, 0);
	assert_int_equal(dstref_net_destroy(net), 0);
	assert_int_equal(dstref_net_destroy(NULL), 0);
}

static void net_tick_tells_the_time(void **state)
{
	struct world *world = *state;
	struct dstref_net *net = world->net;
	const struct capture_report *report;

	assert_int_equal(dstref_net_tick(net, 1000, 0), 0);
	assert_int_equal(dstref_net_now(net), 1000);
	assert_int_equal(dstref_net_tick(net, 1000, 10), 0);
	assert_int_equal(dstref_net_tick(net, UINT64_MAX - 1, UINT32_MAX), 0);
	assert_int_equal(dstref_net_now(net), UINT64_MAX - 1);
	capture_expect_none();
	assert_int_equal(dstref_net_tick(net, 1001, 0), -EINVAL);
	capture_expect(DSTREF_REPORT_NET_TICK, 1);
	report = capture_last(DSTREF_REPORT_NET_TICK);
	assert_ptr_equal(report->object, net);
	assert_int_equal(report->value, 1001);
	assert_non_null(strstr(report->text, "back"));
	assert_int_equal(dstref_net_now(net), UINT64_MAX - 1);
	/* It can be called again: nothing was left taken. */
	assert_int_equal(dstref_net_tick(net, UINT64_MAX, 0), 0);
}

/* The report of a tick is made inside it: the hook then ticks once more. */
static struct dstref_net *ticked;
static int tick_in_tick;
static const struct dstref_report_hook *next;

static void tick_again(const struct dstref_report *report, void *ctx)
{
	struct dstref_net *net = ticked;

	(void)ctx;
	ticked = NULL;
	if (net)
		tick_in_tick = dstref_net_tick(net, 3 * TICK, 0);
	next->fn(report, next->ctx);
}

static void net_tick_is_for_one_thread_at_a_time(void **state)
{
	static const struct dstref_report_hook hook = { tick_again, NULL };
	struct world *world = *state;

	assert_int_equal(dstref_net_tick(world->net, 2 * TICK, 0), 0);
	tick_in_tick = 0;
	ticked = world->net;
	next = dstref_report_set_hook(&hook);
	assert_int_equal(dstref_net_tick(world->net, TICK, 0), -EINVAL);
	(void)dstref_report_set_hook(next);
	assert_int_equal(tick_in_tick, -EBUSY);
	capture_expect(DSTREF_REPORT_NET_TICK, 2);
	assert_int_equal(dstref_net_now(world->net), 2 * TICK);
}

static void sock_gone(struct dstref_sock *sk)
{
	(void)sk;
}

static const struct dstref_sock_proto flow_proto = {
	.name = "flow",
	.size = sizeof(struct dstref_sock),
	.destroy = sock_gone,
};

static struct dstref_sock flow;

static void net_stats_count_entries_by_kind(void **state)
{
	struct world *world = *state;
	struct dstref_net_counters stats;
	struct route *a = route_new(world, 0), *b = route_new(world, 1);

	assert_int_equal(dstref_sock_init(&flow, world->net, &flow_proto), 0);
	dstref_net_stats(world->net, &stats);
	assert_int_equal(stats.dst, 2);
	assert_int_equal(stats.sock, 1);
	assert_int_equal(stats.callbacks, 0);
	assert_int_equal(stats.sleeps_room + stats.sleeps_data, 0);
	assert_int_equal(stats.wakeups_room + stats.wakeups_data, 0);
	put(a);
	dstref_sock_put_outside(&flow);
	dstref_net_stats(world->net, &stats);
	assert_int_equal(stats.dst, 1);
	assert_int_equal(stats.sock, 0);
	assert_int_equal(stats.callbacks, 2);
	put(b);
	assert_true(manual_drain());
	dstref_net_stats(world->net, &stats);
	assert_int_equal(stats.dst, 0);
	assert_int_equal(stats.callbacks, 0);
}

struct seen {
	unsigned int n, most;
	struct {
		enum dstref_net_kind kind;
		const void *object;
		uint32_t refs;
		uint64_t age_ns;
	} entry[4];
};

static bool note(enum dstref_net_kind kind, const void *object, uint32_t refs,
		 uint64_t age_ns, void *ctx)
{
	struct seen *seen = ctx;

	seen->entry[seen->n].kind = kind;
	seen->entry[seen->n].object = object;
	seen->entry[seen->n].refs = refs;
	seen->entry[seen->n].age_ns = age_ns;
	return ++seen->n < seen->most;
}

static void net_walk_shows_what_is_alive_newest_first(void **state)
{
	struct world *world = *state;
	struct seen seen = { .most = 4 };
	struct route *a, *b;

	dstref_net_walk(world->net, note, &seen);
	assert_int_equal(seen.n, 0);
	assert_int_equal(dstref_net_tick(world->net, 10 * TICK + 1, 0), 0);
	a = route_new(world, 0);
	assert_int_equal(dstref_net_tick(world->net, 13 * TICK, 0), 0);
	b = route_new(world, 1);
	assert_int_equal(dstref_sock_init(&flow, world->net, &flow_proto), 0);
	assert_int_equal(dstref_net_tick(world->net, 14 * TICK - 1, 0), 0);
	enter();
	dstref_dst_hold_n(&a->dst, 6);
	leave();
	dstref_net_walk(world->net, note, &seen);
	assert_int_equal(seen.n, 3);
	assert_int_equal(seen.entry[0].kind, DSTREF_NET_SOCK);
	assert_ptr_equal(seen.entry[0].object, &flow);
	assert_int_equal(seen.entry[0].refs, 1);
	assert_int_equal(seen.entry[1].kind, DSTREF_NET_DST);
	assert_ptr_equal(seen.entry[1].object, &b->dst);
	assert_int_equal(seen.entry[1].refs, 1);
	assert_int_equal(seen.entry[1].age_ns, 0);
	assert_ptr_equal(seen.entry[2].object, &a->dst);
	assert_int_equal(seen.entry[2].refs, 7);
	assert_int_equal(seen.entry[2].age_ns, 3 * TICK);
	/* Stops when told; passes over what is ending. */
	seen = (struct seen){ .most = 2 };
	put(b);
	dstref_net_walk(world->net, note, &seen);
	assert_int_equal(seen.n, 2);
	assert_ptr_equal(seen.entry[1].object, &a->dst);
	seen = (struct seen){ .most = 1 };
	dstref_net_walk(world->net, note, &seen);
	assert_int_equal(seen.n, 1);
	enter();
	dstref_dst_release_n(&a->dst, 7);
	leave();
	dstref_sock_put_outside(&flow);
}

/* Without a reference a sock shows the packets that pin it. */
static void net_walk_shows_packets_of_a_sock_let_go(void **state)
{
	struct world *world = *state;
	struct seen seen = { .most = 4 };

	assert_int_equal(dstref_sock_init(&flow, world->net, &flow_proto), 0);
	for (int i = 0; i < 3; i++)
		assert_true(dstref_sock_charge_w(&flow, 100));
	assert_true(dstref_sock_charge_r(&flow, 100));
	dstref_sock_put_outside(&flow);
	dstref_net_walk(world->net, note, &seen);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.entry[0].refs, 4);
	dstref_sock_uncharge_r(&flow, 100);
	seen.n = 0;
	dstref_net_walk(world->net, note, &seen);
	assert_int_equal(seen.entry[0].refs, 3);
	for (int i = 0; i < 3; i++)
		dstref_sock_uncharge_w_outside(&flow, 100);
	seen.n = 0;
	dstref_net_walk(world->net, note, &seen);
	assert_int_equal(seen.n, 0);
}

static unsigned int ended;

static void count_end(struct dstref_dst *dst)
{
	(void)dst;
	ended++;
}

/* A life on a flavour: found in a slot inside a reader, let go, destroyed. */
static void live_and_end(const struct rcu_flavor_struct *flavour,
			 const struct rcu_flavor_struct *reader)
{
	static const struct dstref_dst_ops ops = { .destroy = count_end };
	static struct dstref_dst dst;
	const struct dstref_net_attr attr = { .flavour = flavour };
	struct dstref_dst_slot slot = { NULL };
	struct dstref_net *net;

	ended = 0;
	reader_register(reader);
	assert_int_equal(dstref_net_create(&net, &attr), 0);
	assert_int_equal(dstref_dst_init(&dst, net, &ops, NULL, 0), 0);
	dstref_dst_slot_install(&slot, &dst);
	reader_lock(reader);
	assert_ptr_equal(dstref_dst_slot_hold(&slot), &dst);
	dstref_dst_release(&dst);
	reader_unlock(reader);
	assert_int_equal(dstref_net_barrier(net, 0), -ETIMEDOUT);
	capture_expect(DSTREF_REPORT_NET_BUSY, 1);
	capture_expect(DSTREF_REPORT_NET_LEAK, 1);
	dstref_dst_slot_clear(&slot);
	assert_int_equal(dstref_net_barrier(net, -1), 0);
	assert_int_equal(ended, 1);
	assert_int_equal(dstref_net_destroy(net), 0);
	reader_unregister(reader);
}

static void net_works_on_every_flavour(void **state)
{
	(void)state;
	live_and_end(&urcu_memb_flavor, &urcu_memb_flavor);
	live_and_end(&urcu_qsbr_flavor, &urcu_qsbr_flavor);
	live_and_end(&urcu_bp_flavor, &urcu_bp_flavor);
	live_and_end(&urcu_mb_flavor, &urcu_mb_flavor);
}

/* An adapter that has what is needed and nothing else. */
static void net_works_on_an_adapter_without_options(void **state)
{
	const struct rcu_flavor_struct adapter = {
		.update_call_rcu = urcu_memb_flavor.update_call_rcu,
		.update_synchronize_rcu =
			urcu_memb_flavor.update_synchronize_rcu,
		.barrier = urcu_memb_flavor.barrier,
	};

	(void)state;
	live_and_end(&adapter, &urcu_memb_flavor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(net_create_refuses_what_is_incomplete),
		world_test(net_create_survives_every_refused_request),
		world_test(c21_net_gives_crooked_memory_back),
		world_test(net_create_refuses_another_abi),
		world_test(net_create_fills_what_packets_read),
		world_test(net_create_queues_the_first_callback),
		world_test(net_tick_tells_the_time),
		world_test(net_tick_is_for_one_thread_at_a_time),
		world_test(net_stats_count_entries_by_kind),
		world_test(net_walk_shows_what_is_alive_newest_first),
		world_test(net_walk_shows_packets_of_a_sock_let_go),
		world_test(net_works_on_every_flavour),
		world_test(net_works_on_an_adapter_without_options),
	};

	return cmocka_run_group_tests_name("net", tests, NULL, NULL);
}
