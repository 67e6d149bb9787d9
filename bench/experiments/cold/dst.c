/* SPDX-License-Identifier: MIT */
/*
 * dst - a packet that is forwarded by a route
 *
 * Its steps: it uses the route (a reference and the time; in 2008 and 2012 the
 * number of uses too); sees whether it is valid, and goes through input; is
 * compared with the mtu, looks at the header length and the device; goes
 * through output; lets go of the route. The route's address is known to it:
 * the lookup, whose lines are other lines, is left out. Input and output do
 * nothing, and their code is hot. Release is in the models the one that was
 * proposed in 2008; how it is done is a question of its own, and not of lines.
 * A packet that borrows touches neither count nor time.
 *
 * Since the address is known, a CPU may fetch all lines at the same time, and
 * then a line more costs little: the table `dst`. It can do so only as far as
 * it looks ahead, some hundreds of instructions, and a stack may have more
 * than those between two steps. So in `dst-steps` each step begins when the one
 * before has ended. A real packet lies somewhere between the two.
 *
 * All routes start a pair of lines, which helps each layout that reads both
 * lines of one.
 */
#include "shape.h"
#include "../../history/route_2008.h"
#include "../../history/route_2012.h"

#include <dstref/dst.h>

#include <urcu/call-rcu.h>
#include <urcu/flavor.h>

#include <stdio.h>
#include <stdlib.h>

#define MTU 1 /* its place among the metrics */

#define WAITS 4 /* between five steps */

static inline void step(bool steps)
{
	if (steps)
		cold_wait();
}

/* ---- 2008, 2012 ---- */
static int pass_on(void *packet)
{
	(void)packet;
	return 0;
}

#define ROUTE_BITS(type, member) COLD_BITS(struct type, member)
#define ROUTE_LINES(type)                                                   \
	COLD_LINES(ROUTE_BITS(type, count) | ROUTE_BITS(type, use) |        \
		   ROUTE_BITS(type, lastuse) | ROUTE_BITS(type, obsolete) | \
		   ROUTE_BITS(type, ops) | ROUTE_BITS(type, input) |        \
		   ROUTE_BITS(type, metrics[MTU]) |                         \
		   ROUTE_BITS(type, header_len) | ROUTE_BITS(type, dev) |   \
		   ROUTE_BITS(type, output))

/* A shape, and the same in steps. */
#define SHAPES(name, of_size, of_lap, of_lap_steps, of_lines, of_make, of_end) \
	static const struct cold_shape shape_##name = { .size = (of_size),     \
							.lap = (of_lap),       \
							.lines = (of_lines),   \
							.make = (of_make),     \
							.end = (of_end) };     \
	static const struct cold_shape steps_##name = { .size = (of_size),     \
							.lap = (of_lap_steps), \
							.lines = (of_lines),   \
							.waits = WAITS,        \
							.make = (of_make),     \
							.end = (of_end) }

#define ROUTE(type)                                                          \
	static int make_##type(void *object, const struct cold_shape *shape) \
	{                                                                    \
		struct type *route = object;                                 \
                                                                             \
		(void)shape;                                                 \
		route->input = pass_on;                                      \
		route->output = pass_on;                                     \
		dstref_init_plain(&route->count, 1u);                        \
		return 0;                                                    \
	}                                                                    \
                                                                             \
	static inline void forward_##type(struct type *route, size_t lap,    \
					  bool steps)                        \
	{                                                                    \
		(void)dstref_fetch_add_relaxed(&route->count, 1u);           \
		dstref_store_relaxed(&route->use,                            \
				     dstref_load_relaxed(&route->use) + 1);  \
		dstref_store_relaxed(&route->lastuse, (uintptr_t)lap);       \
		step(steps);                                                 \
		if (route->obsolete)                                         \
			BENCH_KEEP(route->ops);                              \
		BENCH_KEEP(route->input(route));                             \
		step(steps);                                                 \
		BENCH_KEEP(route->metrics[MTU]);                             \
		BENCH_KEEP(route->header_len);                               \
		BENCH_KEEP(route->dev);                                      \
		step(steps);                                                 \
		BENCH_KEEP(route->output(route));                            \
		step(steps);                                                 \
		(void)dstref_fetch_sub_release(&route->count, 1u);           \
	}                                                                    \
                                                                             \
	static inline void visit_##type(void *object, size_t lap)            \
	{                                                                    \
		forward_##type(object, lap, false);                          \
	}                                                                    \
                                                                             \
	static inline void visit_steps_##type(void *object, size_t lap)      \
	{                                                                    \
		forward_##type(object, lap, true);                           \
	}                                                                    \
                                                                             \
	COLD_LAP(lap_##type, visit_##type)                                   \
	COLD_LAP(lap_steps_##type, visit_steps_##type)                       \
                                                                             \
	SHAPES(type, sizeof(struct type), lap_##type, lap_steps_##type,      \
	       ROUTE_LINES(type), make_##type, NULL)

ROUTE(route_2008_before);
ROUTE(route_2008_padded);
ROUTE(route_2012_after);

/* ---- today ---- */

/*
 * A flavour for one thread that is never in a reader when it calls these: a
 * grace period is over at once, and no thread stands by that could disturb.
 */
static void call_now(struct rcu_head *head, void (*fn)(struct rcu_head *head))
{
	fn(head);
}

static void wait_for_nobody(void)
{
}

static const struct rcu_flavor_struct alone = {
	.update_call_rcu = call_now,
	.update_synchronize_rcu = wait_for_nobody,
	.barrier = wait_for_nobody,
};

static void destroy(struct dstref_dst *dst)
{
	(void)dst; /* its memory is the set's */
}

static int take(struct dstref_dst *dst, void *packet)
{
	(void)dst;
	(void)packet;
	return 0;
}

static const struct dstref_dst_ops ops = { .name = "cold", .destroy = destroy };

/* The route's reference was the last, so nothing is left in there. */
static void end_net(struct dstref_net *net)
{
	if (!dstref_net_destroy(net))
		return;
	(void)fputs("cold: a namespace does not end; its figures mean "
		    "nothing\n",
		    stderr);
	abort();
}

static int make_dst(void *object, const struct cold_shape *shape)
{
	const struct dstref_net_attr attr = { .flavour = &alone };
	struct dstref_dst *dst = object;
	struct dstref_net *net;
	int rc = dstref_net_create(&net, &attr);

	(void)shape;
	if (rc)
		return rc;
	rc = dstref_dst_init(dst, net, &ops, NULL, 0);
	if (rc) {
		end_net(net);
		return rc;
	}
	dstref_store_relaxed(&dst->input, take);
	dstref_store_relaxed(&dst->output, take);
	return 0;
}

static void end_dst(void *object)
{
	struct dstref_dst *dst = object;
	struct dstref_net *net = dst->net;

	dstref_dst_release_now(dst);
	end_net(net);
}

/* What lies between use and release. */
static inline void forward_between(struct dstref_dst *dst, bool steps)
{
	if (!dstref_dst_check(dst, 0))
		return;
	BENCH_KEEP(dstref_dst_input(dst, dst));
	step(steps);
	BENCH_KEEP(dst->mtu);
	BENCH_KEEP(dst->header_len);
	BENCH_KEEP(dst->dev);
	step(steps);
	BENCH_KEEP(dstref_dst_output(dst, dst));
}

static inline void forward_held(struct dstref_dst *dst, size_t lap, bool steps)
{
	dstref_dst_use(dst, (uint64_t)lap << DSTREF_NET_TICK_SHIFT);
	step(steps);
	forward_between(dst, steps);
	step(steps);
	dstref_dst_release(dst);
}

/* It finds the route and drops what it found, without touching it. */
static inline void forward_noref(struct dstref_dst *dst, bool steps)
{
	BENCH_KEEP(dst);
	step(steps);
	forward_between(dst, steps);
	step(steps);
	BENCH_KEEP(dst);
}

static inline void visit_held(void *object, size_t lap)
{
	forward_held(object, lap, false);
}

static inline void visit_steps_held(void *object, size_t lap)
{
	forward_held(object, lap, true);
}

static inline void visit_noref(void *object, size_t lap)
{
	(void)lap;
	forward_noref(object, false);
}

static inline void visit_steps_noref(void *object, size_t lap)
{
	(void)lap;
	forward_noref(object, true);
}

static inline void visit_steps(void *object, size_t lap)
{
	BENCH_KEEP(object);
	(void)lap;
	for (int i = 0; i < WAITS; i++)
		step(true);
}

COLD_LAP(lap_held, visit_held)
COLD_LAP(lap_steps_held, visit_steps_held)
COLD_LAP(lap_noref, visit_noref)
COLD_LAP(lap_steps_noref, visit_steps_noref)
COLD_LAP(lap_steps, visit_steps)

SHAPES(held, sizeof(struct dstref_dst), lap_held, lap_steps_held,
       DSTREF_DST_LINES_HOLD, make_dst, end_dst);
SHAPES(noref, sizeof(struct dstref_dst), lap_noref, lap_steps_noref,
       DSTREF_DST_LINES_BORROW, make_dst, end_dst);

static const struct cold_shape steps_nothing = {
	.size = BENCH_LINE, .lap = lap_steps, .waits = WAITS, .hot = true
};

/* The variants, by the prefix of their shapes. */
#define ROUTES(shapes)                                                        \
	COLD_VARIANT("2008", BENCH_MODEL, &shapes##_route_2008_before,        \
		     "the count beside what each packet reads"),              \
		COLD_VARIANT("2008-padded", BENCH_MODEL,                      \
			     &shapes##_route_2008_padded,                     \
			     "count, use and time on another line"),          \
		COLD_VARIANT("2012", BENCH_MODEL, &shapes##_route_2012_after, \
			     "use and time on one more line"),                \
		COLD_VARIANT("held", BENCH_OURS, &shapes##_held,              \
			     "struct dstref_dst, used and released"),         \
		COLD_VARIANT("noref", BENCH_OURS, &shapes##_noref,            \
			     "struct dstref_dst, borrowed")

const struct bench_variant cold_dst[COLD_DST_VARIANTS] = {
	COLD_FLOORS,
	ROUTES(shape),
};

const struct bench_variant cold_dst_steps[COLD_DST_STEPS_VARIANTS] = {
	COLD_VARIANT("nothing", BENCH_EMPTY, &steps_nothing,
		     "the loop, and the waits between five steps"),
	ROUTES(steps),
};
