/* SPDX-License-Identifier: MIT */
/*
 * world - a namespace on the manual flavour, and routes that tell their end
 *
 * A route's memory comes from the hooks of the namespace and goes back to
 * them at its end, so whoever touches it later is found: by the address
 * sanitizer, or because the fill of freed memory was disturbed. Therefore a
 * route notes its end in the world, not in itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "world.h"

static struct world the_world;

static void quiet(enum manual_fault fault, const char *text)
{
	(void)fault;
	(void)text;
}

int world_setup(void **state)
{
	struct world *world = &the_world;

	capture_setup(state);
	memset(world, 0, sizeof(*world));
	alloc_init(&world->alloc);
	manual_set_hook(quiet);
	reader_register(&manual_flavor);
	*state = world;
	struct dstref_net_attr attr = {
		.flavour = &manual_flavor,
		.mem = alloc_mem(&world->alloc),
	};

	return dstref_net_create(&world->net, &attr) || !manual_drain();
}

static unsigned int all_faults(void)
{
	unsigned int n = 0;

	for (int fault = 0; fault < MANUAL_FAULTS; fault++)
		n += manual_faults((enum manual_fault)fault);
	return n;
}

static bool destroyed(struct world *world)
{
	if (manual_inside()) {
		print_error("the test ended inside a reader\n");
		return false;
	}
	return dstref_net_destroy(world->net) == 0;
}

int world_teardown(void **state)
{
	struct world *world = *state;
	unsigned int bad = 0;

	if (!destroyed(world) || alloc_fini(&world->alloc))
		bad++;
	if (world->unpinned) {
		print_error("the namespace did not count a destroy\n");
		bad++;
	}
	if (all_faults()) {
		print_error("%u faults of RCU\n", all_faults());
		bad++;
	}
	while (manual_flavor.read_ongoing())
		manual_flavor.read_unlock();
	reader_unregister(&manual_flavor);
	if (manual_reset())
		bad++;
	manual_set_hook(NULL);
	if (capture_teardown(state))
		bad++;
	return bad ? -1 : 0;
}

bool world_faults(enum manual_fault fault, unsigned int n)
{
	bool right = manual_faults(fault) == n && all_faults() == n;

	return right && manual_drain() && manual_reset() == 0;
}

static void route_end(struct dstref_dst *dst)
{
	struct route *route =
		(struct route *)((char *)dst - offsetof(struct route, dst));
	struct world *world = route->world;
	struct dstref_net_mem mem = alloc_mem(&world->alloc);
	struct dstref_net_counters stats;

	dstref_net_stats(dst->net, &stats);
	if (!stats.callbacks)
		world->unpinned = true;
	world->ended[route->number]++;
	world->place[route->number] = ++world->ends;
	if (route->slot && dstref_load_relaxed(&route->slot->dst) == dst)
		world->shown = true;
	if (route->watch)
		world->watched = dstref_dst_refs(route->watch);
	mem.free(mem.ctx, route, sizeof(*route));
}

const struct dstref_dst_ops route_ops = {
	.name = "route",
	.destroy = route_end,
};

struct route *route_new_flags(struct world *world, unsigned int number,
			      uint32_t flags)
{
	struct dstref_net_mem mem = alloc_mem(&world->alloc);
	struct route *route =
		mem.alloc(mem.ctx, sizeof(*route), DSTREF_LINE_SIZE, -1);

	assert_non_null(route);
	route->world = world;
	route->number = number;
	route->slot = NULL;
	route->watch = NULL;
	assert_int_equal(dstref_dst_init(&route->dst, world->net, &route_ops,
					 world, flags),
			 0);
	return route;
}

struct route *route_new(struct world *world, unsigned int number)
{
	return route_new_flags(world, number, 0);
}
