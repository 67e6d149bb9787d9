/* SPDX-License-Identifier: MIT */
/*
 * burst - references of 32 or 64 packets at once, instead of one by one
 *
 * Stacks work in bursts, and the packets of a burst name few objects. DPDK
 * programs know the trick for one object: one atomic for each run of packets to
 * the same route. The library's bulk calls look through the whole burst, so
 * that the order does not matter. All dsts here may not be split, which is when
 * a burst has most to save.
 *
 * An operation is a packet: it takes its references, and, once all of its burst
 * have, lets go of them. The packets are struct dstref_skb, a line each, the
 * same 64 over and over, hot as after a receive ring. All threads use the same
 * dsts and socks.
 *
 *	single		hold, set; free: each packet by itself
 *	bare		hold and release as single calls, and no packet
 *	bare-n		hold_n and release_n: the caller knows it is one route
 *	runs		one hold_n and release_n for each run of neighbours to
 *			the same route, as in DPDK programs
 *	bulk		dst_set_bulk, free_bulk
 *	noref		each packet borrows
 *
 * `mixed` draws a route of 8 for each packet: 256 bursts, drawn before the
 * start (xorshift, a fixed seed for each thread), so that no order can be
 * learned by heart. Then a run is 1.14 packets long, and 32 packets name 7.9
 * routes: of the operations at least 0.25 remain, of 64 packets 0.12.
 *
 * The owner tables are the same for socks, by set_owner_w and free: one sock,
 * and 8 in random order; with `-space`, each sock has a write-space callback,
 * which keeps a completion from being one operation, and which the bulk
 * call asks once for a sock and burst.
 *
 * Floors: the empty loop; two bare locked adds to one word for a whole burst.
 *
 * Different from life: the packets of a burst arrive, wait and leave at once; a
 * stack does other work in between, and finds the dst's line gone to another
 * core more often than here.
 */
#include "stage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MANY 8 /* routes, or socks, of the mixed tables */
#define BURST_MAX 64
#define BURSTS 256 /* that are drawn */

/* What a variant is, beside its work. */
struct shape {
	uint32_t n; /* packets of a burst */
	uint32_t objects; /* routes and socks, 1 or MANY */
	bool space; /* with a callback */
};

/* What a thread has. */
struct side {
	_Alignas(APART) struct stage_packet packet[BURST_MAX];
	struct dstref_skb *skb[BURST_MAX];
	struct dstref_dst *dst[BURSTS][BURST_MAX];
	struct dstref_sock *sk[BURSTS][BURST_MAX];
};

struct route {
	_Alignas(APART) struct dstref_dst dst;
};

struct owner {
	_Alignas(APART) struct dstref_sock sk;
};

struct burst {
	const struct shape *shape;
	struct dstref_net *net;
	struct route route[MANY];
	struct owner owner[MANY];
	_Alignas(APART) DSTREF_ATOMIC(uint32_t) shared;
	struct side side[]; /* of each thread */
};

DSTREF_COLD static void require(bool right, const char *what)
{
	if (right)
		return;
	(void)fprintf(stderr, "burst: %s; the figures mean nothing\n", what);
	abort();
}

/* State. */

static void dst_destroy(struct dstref_dst *dst)
{
	(void)dst; /* a member of struct burst */
}

static void sock_destroy(struct dstref_sock *sk)
{
	(void)sk; /* a member of struct burst */
}

static void room(struct dstref_sock *sk, void *data)
{
	(void)data;
	BENCH_KEEP(sk);
}

static const struct dstref_dst_ops ops = {
	.name = "burst",
	.destroy = dst_destroy,
};

static const struct dstref_sock_proto proto = {
	.name = "burst",
	.size = sizeof(struct dstref_sock),
	.destroy = sock_destroy,
};

static const struct dstref_sock_space space = { .fn = room };

/* Marsaglia's, of 32 bits. */
static uint32_t draw(uint32_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 17;
	*random ^= *random << 5;
	return *random;
}

static void side_fill(struct burst *b, struct side *side, uint32_t random)
{
	for (int i = 0; i < BURST_MAX; i++) {
		side->skb[i] = &side->packet[i].skb;
		dstref_skb_init(side->skb[i], TRUESIZE);
	}
	for (int i = 0; i < BURSTS * BURST_MAX; i++) {
		uint32_t one = draw(&random) % b->shape->objects;

		side->dst[i / BURST_MAX][i % BURST_MAX] = &b->route[one].dst;
		side->sk[i / BURST_MAX][i % BURST_MAX] = &b->owner[one].sk;
	}
}

static void objects_open(struct burst *b)
{
	for (int i = 0; i < MANY; i++) {
		struct dstref_sock *sk = &b->owner[i].sk;

		require(!dstref_dst_init(&b->route[i].dst, b->net, &ops, NULL,
					 DSTREF_DST_SPLIT_NEVER) &&
				!dstref_sock_init(sk, b->net, &proto),
			"no dst, or no sock");
		if (b->shape->space)
			require(!dstref_sock_set_write_space(sk, &space),
				"no callback");
	}
}

static int setup(const struct bench_variant *variant, unsigned int threads,
		 void **state)
{
	size_t size = sizeof(struct burst) + threads * sizeof(struct side);
	struct burst *b = aligned_alloc(APART, size);
	int rc;

	if (!b)
		return -ENOMEM;
	memset((void *)b, 0, size);
	b->shape = variant->context;
	rc = stage_open(&b->net);
	if (rc) {
		free(b);
		return rc;
	}
	objects_open(b);
	for (unsigned int i = 0; i < threads; i++)
		side_fill(b, &b->side[i], i + 1);
	*state = b;
	return 0;
}

static void teardown(void *state)
{
	struct burst *b = state;

	for (int i = 0; i < MANY; i++) {
		struct dstref_sock *sk = &b->owner[i].sk;

		require(dstref_dst_refs(&b->route[i].dst) == 1 &&
				!dstref_wmem_value_bytes(
					dstref_wmem_read(&sk->wmem)),
			"references or bytes were lost");
		dstref_dst_release_outside(&b->route[i].dst);
		dstref_sock_put_outside(sk);
	}
	if (stage_close(b->net))
		free(b);
}

/*
 * Bursts until the time is up. What is done to one is inlined: a burst as a
 * user's compiler would put it there.
 */
typedef void (*burst_fn)(struct burst *b, struct side *side, uint32_t round);

STAGE_INLINE void run(struct bench_self *self, burst_fn fn)
{
	struct burst *b = self->state;
	struct side *side = &b->side[self->id];
	uint32_t round = 0;

	urcu_qsbr_register_thread();
	do {
		fn(b, side, round++ % BURSTS);
		self->ops += b->shape->n;
		urcu_qsbr_quiescent_state();
	} while (!bench_over(self));
	urcu_qsbr_unregister_thread();
}

#define WORK(name)                                       \
	static void name##_work(struct bench_self *self) \
	{                                                \
		run(self, name);                         \
	}

/* For each packet i of the burst, and nothing is known across two. */
#define EACH(statement)                              \
	for (uint32_t i = 0; i < b->shape->n; i++) { \
		statement;                           \
		__asm__ volatile("" ::: "memory");   \
	}

STAGE_INLINE void empty(struct burst *b, struct side *side, uint32_t round)
{
	EACH(BENCH_KEEP(side->dst[round][i]));
}

STAGE_INLINE void locked(struct burst *b, struct side *side, uint32_t round)
{
	(void)side;
	(void)round;
	(void)dstref_fetch_add_relaxed(&b->shared, 1u);
	(void)dstref_fetch_sub_relaxed(&b->shared, 1u);
}

STAGE_INLINE void bare(struct burst *b, struct side *side, uint32_t round)
{
	EACH(dstref_dst_hold(side->dst[round][i]));
	EACH(dstref_dst_release(side->dst[round][i]));
}

STAGE_INLINE void bare_n(struct burst *b, struct side *side, uint32_t round)
{
	dstref_dst_hold_n(side->dst[round][0], b->shape->n);
	__asm__ volatile("" ::: "memory");
	dstref_dst_release_n(side->dst[round][0], b->shape->n);
}

STAGE_INLINE void single(struct burst *b, struct side *side, uint32_t round)
{
	struct dstref_dst **dst = side->dst[round];

	EACH((dstref_dst_hold(dst[i]),
	      dstref_skb_dst_set(side->skb[i], dst[i])));
	EACH(dstref_skb_free(side->skb[i]));
}

STAGE_INLINE void noref(struct burst *b, struct side *side, uint32_t round)
{
	EACH(dstref_skb_dst_set_noref(side->skb[i], side->dst[round][i]));
	EACH(dstref_skb_free(side->skb[i]));
}

/* Packets from @from on that go to the route of the first of them. */
static inline uint32_t run_of(const struct burst *b,
			      struct dstref_dst *const *dst, uint32_t from)
{
	uint32_t i = from;

	while (++i < b->shape->n && dst[i] == dst[from])
		;
	return i - from;
}

STAGE_INLINE void runs(struct burst *b, struct side *side, uint32_t round)
{
	struct dstref_dst **dst = side->dst[round];

	for (uint32_t i = 0, n; i < b->shape->n; i += n) {
		n = run_of(b, dst, i);
		dstref_dst_hold_n(dst[i], n);
	}
	EACH(dstref_skb_dst_set(side->skb[i], dst[i]));
	EACH(side->skb[i]->dst.word = 0);
	for (uint32_t i = 0, n; i < b->shape->n; i += n) {
		n = run_of(b, dst, i);
		dstref_dst_release_n(dst[i], n);
	}
}

STAGE_INLINE void bulk(struct burst *b, struct side *side, uint32_t round)
{
	(void)dstref_skb_dst_set_bulk(side->skb, side->dst[round], b->shape->n);
	dstref_skb_free_bulk(side->skb, b->shape->n);
}

STAGE_INLINE void owner(struct burst *b, struct side *side, uint32_t round)
{
	EACH(dstref_skb_set_owner_w(side->skb[i], side->sk[round][i]));
	EACH(dstref_skb_free(side->skb[i]));
}

STAGE_INLINE void owner_bulk(struct burst *b, struct side *side, uint32_t round)
{
	dstref_skb_set_owner_w_bulk(side->skb, side->sk[round], b->shape->n);
	dstref_skb_free_bulk(side->skb, b->shape->n);
}

WORK(empty)
WORK(locked)
WORK(bare)
WORK(bare_n)
WORK(single)
WORK(noref)
WORK(runs)
WORK(bulk)
WORK(owner)
WORK(owner_bulk)

/* Tables. */

static const struct shape route_32 = { 32, 1, false };
static const struct shape route_64 = { 64, 1, false };
static const struct shape mixed_32 = { 32, MANY, false };
static const struct shape mixed_64 = { 64, MANY, false };
static const struct shape route_32_space = { 32, 1, true };
static const struct shape mixed_32_space = { 32, MANY, true };

#define BURST_OF(id, of_kind, fn, of_shape, text)                        \
	{                                                                \
		.name = (id), .kind = (of_kind), .what = (text),         \
		.setup = setup, .work = fn##_work, .teardown = teardown, \
		.context = &(of_shape)                                   \
	}
#define OURS(id, fn, of_shape, text) \
	BURST_OF(id, BENCH_OURS, fn, of_shape, text)

/* The baseline first. */
#define PACKETS(shape)                                                \
	OURS("single", single, shape,                                 \
	     "hold, dst_set; free: packet by packet"),                \
		OURS("bulk", bulk, shape, "dst_set_bulk, free_bulk"), \
		OURS("noref", noref, shape, "dst_set_noref; free"),   \
		BURST_OF("runs", BENCH_RIVAL, runs, shape,            \
			 "an operation for a run to the same route"), \
		BURST_OF("empty", BENCH_EMPTY, empty, shape,          \
			 "the loop over a burst"),                    \
		BURST_OF("floor", BENCH_FLOOR, locked, shape,         \
			 "two bare locked adds for a burst")
#define BARE(shape)                                                       \
	OURS("bare", bare, shape, "hold; release: no packet to keep it"), \
		OURS("bare-n", bare_n, shape, "hold_n; release_n")
#define OWNERS(shape, with_space)                                            \
	OURS("single", owner, shape, "set_owner_w; free: packet by packet"), \
		OURS("bulk", owner_bulk, shape,                              \
		     "set_owner_w_bulk, free_bulk"),                         \
		OURS("single-space", owner, with_space,                      \
		     "the same, each sock with a callback"),                 \
		OURS("bulk-space", owner_bulk, with_space, "the same"),      \
		BURST_OF("floor", BENCH_FLOOR, locked, shape,                \
			 "two bare locked adds for a burst")

static const struct bench_variant route_of_32[] = { PACKETS(route_32),
						    BARE(route_32) };
static const struct bench_variant route_of_64[] = { PACKETS(route_64),
						    BARE(route_64) };
static const struct bench_variant mixed_of_32[] = { PACKETS(mixed_32) };
static const struct bench_variant mixed_of_64[] = { PACKETS(mixed_64) };
static const struct bench_variant owner_of_32[] = { OWNERS(route_32,
							   route_32_space) };
static const struct bench_variant owners_of_32[] = { OWNERS(mixed_32,
							    mixed_32_space) };

#define TABLE(id, of_variants, text)                                      \
	{                                                                 \
		.name = (id), .title = (text), .variants = (of_variants), \
		.count = sizeof(of_variants) / sizeof((of_variants)[0]),  \
		.unit = "ns"                                              \
	}

static const struct bench_table tables[] = {
	TABLE("route-32", route_of_32,
	      "32 packets to one route, ns for a packet"),
	TABLE("route-64", route_of_64,
	      "64 packets to one route, ns for a packet"),
	TABLE("mixed-32", mixed_of_32,
	      "32 packets to 8 routes in random order, ns for a packet"),
	TABLE("mixed-64", mixed_of_64,
	      "64 packets to 8 routes in random order, ns for a packet"),
	TABLE("owner-32", owner_of_32,
	      "32 packets of one sock, ns for a packet"),
	TABLE("owners-32", owners_of_32,
	      "32 packets of 8 socks in random order, ns for a packet"),
};

const struct bench_experiment bench_burst = {
	.name = "burst",
	.question = "What does a packet cost when the references of its burst "
		    "are taken together?",
	.measured =
		"A burst takes its references and lets go of them, over and "
		"over, by all threads on the same objects; the routes may not "
		"be split. Of 32 random draws from 8 routes 7.9 differ, so the "
		"mixed burst cannot save more than three quarters of the "
		"operations.",
	.tables = tables,
	.count = sizeof(tables) / sizeof(tables[0]),
};
