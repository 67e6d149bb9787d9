/* SPDX-License-Identifier: MIT */
/*
 * What a packet is looked up in: routes by prefix, flows by address.
 *
 * Routes are an array of slots, as the last level of a longest-prefix table
 * is: sixteen addresses to a slot. A slot owns one reference to its route; a
 * worker borrows from it or holds (worker.c), control.c installs another
 * route at any time. The memory of a route goes back in route_destroy(), when
 * the last reference is gone and no reader is left that could have found it.
 *
 * Flows are an array of pointers that are published once, before the workers
 * start, and taken away after they ended. What keeps a flow is the array's
 * reference; what keeps it for a packet in flight is the charge of its sock,
 * so no packet takes a reference.
 *
 * The order at the end: empty the tables, let go of their references, wait
 * until the namespace is empty, destroy it. A namespace that does not become
 * empty tells by name what was left.
 */
#include "gateway.h"

#include <stdlib.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>

static void route_destroy(struct dstref_dst *dst)
{
	/* The dst is the first member; else container_of. */
	free(dst);
}

static const struct dstref_dst_ops route_ops = {
	.name = "route",
	.destroy = route_destroy,
};

static const struct dstref_sock_proto flow_proto = {
	.name = "flow",
	.size = sizeof(struct flow),
};

/* A route that is not shared yet, with the caller's reference; or NULL. */
struct route *route_new(struct tables *tables)
{
	struct route *route = aligned_alloc(DSTREF_LINE_SIZE, sizeof(*route));

	if (!route)
		return NULL;
	if (dstref_dst_init(&route->dst, tables->net, &route_ops, tables->nic,
			    0)) {
		free(route);
		return NULL;
	}
	route->dst.mtu = PACKET_MAX;
	dstref_store_relaxed(&route->dst.output, nic_output);
	return route;
}

/* The slot for an address of the sink's network; NULL where there is none. */
struct dstref_dst_slot *route_find(const struct tables *tables, uint32_t addr)
{
	uint32_t i = (addr & ~SINK_MASK) / FLOWS_PER_ROUTE;

	if ((addr & SINK_MASK) != SINK_NET || i >= tables->route_count)
		return NULL;
	return &tables->routes[i];
}

/* The flow of a destination, good until the end of the reader; or NULL. */
struct flow *flow_find(const struct tables *tables, uint32_t addr)
{
	uint32_t i = addr & ~SINK_MASK;

	if ((addr & SINK_MASK) != SINK_NET || i >= tables->flow_count)
		return NULL;
	/* Acquire, with the release of flow_add(): its contents. */
	return dstref_load_acquire(&tables->flows[i]);
}

static int route_add(struct tables *tables, uint32_t i)
{
	struct route *route = route_new(tables);

	if (!route)
		return -1;
	dstref_dst_slot_install(&tables->routes[i], &route->dst);
	return 0;
}

static int flow_add(struct tables *tables, uint32_t i, uint32_t sndbuf)
{
	struct dstref_sock *sk;
	struct flow *flow;

	if (dstref_sock_alloc(&sk, tables->net, &flow_proto))
		return -1;
	flow = (struct flow *)sk;
	flow->addr = SINK_NET + i;
	dstref_sock_set_sndbuf(sk, sndbuf);
	dstref_store_release(&tables->flows[i], flow);
	return 0;
}

static int tables_fill(struct tables *tables, const struct options *opt)
{
	for (uint32_t i = 0; i < tables->route_count; i++)
		if (route_add(tables, i))
			return -1;
	for (uint32_t i = 0; i < tables->flow_count; i++)
		if (flow_add(tables, i, opt->sndbuf))
			return -1;
	return 0;
}

/* Without cells a thread uses the counts: slower, and right. */
void tables_attach(struct dstref_net *net)
{
	(void)!dstref_net_attach(net);
}

int tables_open(struct tables *tables, const struct options *opt,
		struct nic *nic)
{
	const struct dstref_net_attr attr = { .flavour = &urcu_qsbr_flavor };

	tables->nic = nic;
	if (dstref_net_create(&tables->net, &attr))
		return -1;
	nic->net = tables->net;
	tables->flow_count = opt->flows;
	tables->route_count =
		(opt->flows + FLOWS_PER_ROUTE - 1) / FLOWS_PER_ROUTE;
	tables->routes = calloc(tables->route_count, sizeof(*tables->routes));
	tables->flows = calloc(tables->flow_count, sizeof(*tables->flows));
	if (!tables->routes || !tables->flows)
		return -1;
	return tables_fill(tables, opt);
}

/* How many socks have nothing in flight: only their own unit. */
uint64_t tables_accounts(const struct tables *tables)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < tables->flow_count; i++) {
		struct flow *flow = dstref_load_relaxed(&tables->flows[i]);
		uint64_t value = dstref_wmem_read(&flow->sk.wmem);

		n += dstref_wmem_value_units(value) == 1 &&
		     dstref_wmem_value_bytes(value) == 0;
	}
	return n;
}

/* From a thread that is registered nowhere: the _outside calls. */
void tables_clear(struct tables *tables)
{
	for (uint32_t i = 0; tables->routes && i < tables->route_count; i++)
		dstref_dst_slot_clear(&tables->routes[i]);
	for (uint32_t i = 0; tables->flows && i < tables->flow_count; i++) {
		struct flow *flow = dstref_load_relaxed(&tables->flows[i]);

		dstref_store_relaxed(&tables->flows[i], NULL);
		dstref_sock_put_outside(flow ? &flow->sk : NULL);
	}
}

void tables_free(struct tables *tables)
{
	free(tables->routes);
	free((void *)tables->flows);
}
