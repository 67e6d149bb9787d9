/* SPDX-License-Identifier: MIT */
/*
 * stress.dst_dead - readers that follow a child while its parent dies
 *
 * Goal: a reader finds a child that is whole and can be held until he leaves,
 * or none; one who was told that the parent is dead finds it discarding and
 * without child; dead and the last put, in any order and from several
 * threads, let go of the child once. Method: a writer publishes families and
 * has them die, in turn by dead, by the last put, and by both at once;
 * readers look, hold, and kill some themselves. Each end destroys the mark
 * that readers look at; births and ends are counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dstref/dst.h>

#include "alloc.h"
#include "capture.h"
#include "stress.h"

#define MARK UINT64_C(0x616c697665)
#define FAMILIES 20000

struct route {
	struct dstref_dst dst;
	uint64_t mark;
	uint64_t number;
	DSTREF_ATOMIC(bool) told; /* the writer's dead has returned */
};

static struct alloc alloc;
static struct dstref_net *net;
static struct dstref_dst_slot slot;
static DSTREF_ATOMIC(uint64_t) ended;
static DSTREF_ATOMIC(uint64_t) born;
static DSTREF_ATOMIC(bool) met; /* a reader has followed a child */
static DSTREF_ATOMIC(bool) over;

static struct route *route_of(struct dstref_dst *dst)
{
	return (struct route *)((char *)dst - offsetof(struct route, dst));
}

static void route_end(struct dstref_dst *dst)
{
	struct dstref_net_mem mem = dst->net->mem;
	struct route *route = route_of(dst);

	route->mark = 0;
	(void)dstref_fetch_add_relaxed(&ended, (uint64_t)1);
	mem.free(mem.ctx, route, sizeof(*route));
}

static const struct dstref_dst_ops route_ops = { .destroy = route_end };

static int deliver(struct dstref_dst *dst, void *pkt)
{
	(void)pkt;
	return route_of(dst)->mark == MARK ? 0 : 1;
}

static struct route *route_new(uint64_t number)
{
	struct route *route = net->mem.alloc(net->mem.ctx, sizeof(*route),
					     DSTREF_LINE_SIZE, -1);

	if (!route || dstref_dst_init(&route->dst, net, &route_ops, NULL, 0))
		return NULL;
	(void)dstref_fetch_add_relaxed(&born, (uint64_t)1);
	route->mark = MARK;
	route->number = number;
	dstref_init_plain(&route->told, false);
	dstref_store_relaxed(&route->dst.input, deliver);
	dstref_store_relaxed(&route->dst.output, deliver);
	return route;
}

/* Readers kill those of this number; the writer tells of all others. */
static bool is_prey(const struct route *route)
{
	return route->number % 4 == 3;
}

/* One family: published, seen by some, and gone. */
static void live(struct stress_thread *thread, uint64_t number)
{
	struct route *parent = route_new(number), *child = route_new(number);

	if (!parent || !child) {
		thread->failed++;
		return;
	}
	dstref_dst_slot_install(&parent->dst.child, &child->dst);
	reader_lock(net->flavour);
	dstref_dst_hold(&parent->dst);
	dstref_dst_slot_install(&slot, &parent->dst);
	reader_unlock(net->flavour);
	for (volatile uint64_t i = stress_random(thread) % 300; i; i--)
		;
	if (number % 4 != 1) { /* else it ends by its last put alone */
		dstref_dst_dead(&parent->dst);
		if (!is_prey(parent))
			dstref_store_release(&parent->told, true);
	}
	if (number % 4 == 2)
		dstref_dst_slot_clear(&slot);
	dstref_dst_release_outside(&parent->dst);
	thread->ops++;
}

static void write_families(struct stress_thread *thread)
{
	uint64_t families = stress_rounds(FAMILIES);

	reader_register(net->flavour);
	for (uint64_t i = 0; i < families || !dstref_load_relaxed(&met); i++) {
		live(thread, i);
		if (i % 1024 == 0)
			net->flavour->barrier();
	}
	reader_unregister(net->flavour);
	dstref_dst_slot_clear(&slot);
	dstref_store_relaxed(&over, true);
}

/* The writer said so before: all of it must be seen. */
static bool is_dead(struct dstref_dst *dst)
{
	return !dstref_dst_slot_borrow(&dst->child) &&
	       dstref_dst_input(dst, NULL) < 0 &&
	       dstref_dst_output(dst, NULL) < 0 && !dstref_dst_check(dst, 0);
}

/* Found through its parent, so it can be held in this reader. */
static void follow(struct stress_thread *thread, struct dstref_dst *child)
{
	if (route_of(child)->mark != MARK || !dstref_dst_try_hold(child)) {
		thread->failed++;
		return;
	}
	thread->told++;
	dstref_store_relaxed(&met, true);
	if (dstref_dst_input(child, NULL) != 0)
		thread->failed++;
	dstref_dst_release(child);
}

static void visit(struct stress_thread *thread, struct dstref_dst *parent)
{
	struct route *route = route_of(parent);
	struct dstref_dst *child;

	if (dstref_load_acquire(&route->told) && !is_dead(parent))
		thread->failed++;
	if (dstref_dst_input(parent, NULL) > 0)
		thread->failed++;
	child = dstref_dst_slot_borrow(&parent->child);
	if (stress_random(thread) % 8 == 0 && is_prey(route) &&
	    dstref_dst_try_hold(parent)) {
		dstref_dst_dead(parent);
		dstref_dst_release(parent);
	}
	if (child)
		follow(thread, child);
}

static void write_or_read(struct stress_thread *thread)
{
	struct dstref_dst *parent;

	if (!thread->index) {
		write_families(thread);
		return;
	}
	reader_register(net->flavour);
	while (!dstref_load_relaxed(&over)) {
		reader_lock(net->flavour);
		parent = dstref_dst_slot_borrow(&slot);
		if (parent)
			visit(thread, parent);
		reader_unlock(net->flavour);
		reader_quiescent(net->flavour);
	}
	reader_unregister(net->flavour);
}

static void dead_under_readers(const struct rcu_flavor_struct *flavour)
{
	struct stress run = { .threads = 4 };
	struct dstref_net_attr attr = { .flavour = flavour };
	struct stress_thread sums;

	alloc_init(&alloc);
	attr.mem = alloc_mem(&alloc);
	dstref_init_plain(&slot.dst, NULL);
	dstref_init_plain(&ended, (uint64_t)0);
	dstref_init_plain(&born, (uint64_t)0);
	dstref_init_plain(&met, false);
	dstref_init_plain(&over, false);
	assert_int_equal(dstref_net_create(&net, &attr), 0);
	stress_run(&run, write_or_read, &sums);
	stress_assert_equal(&run, sums.failed, 0);
	stress_assert(&run, sums.told > 0);
	stress_assert(&run, dstref_load_relaxed(&born) >=
				    2 * stress_rounds(FAMILIES));
	assert_int_equal(dstref_net_destroy(net), 0);
	stress_assert_equal(&run, dstref_load_relaxed(&ended),
			    dstref_load_relaxed(&born));
	assert_int_equal(alloc_fini(&alloc), 0);
}

static void dst_dead_under_readers_memb(void **state)
{
	(void)state;
	dead_under_readers(&urcu_memb_flavor);
}

static void dst_dead_under_readers_qsbr(void **state)
{
	(void)state;
	dead_under_readers(&urcu_qsbr_flavor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		capture_test(dst_dead_under_readers_memb),
		capture_test(dst_dead_under_readers_qsbr),
	};

	return cmocka_run_group_tests_name("dst_dead", tests, NULL, NULL);
}
