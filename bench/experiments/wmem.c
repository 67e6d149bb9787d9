/* SPDX-License-Identifier: MIT */
/*
 * wmem - what a sent packet costs its sock (S1)
 *
 * Until 2009 each packet that was sent took a reference to its sock and let go
 * of it when the device had completed it, beside the account of bytes in
 * flight, which both of them change anyway: four atomic operations on two
 * words. Since then the account itself keeps the sock: it starts at one, a
 * charge keeps it from ending, and the two operations on the count are gone.
 *
 * `hold-charge-put` is the old way on the library's own count and account: the
 * guards of both and what a packet notes are on both sides, and a packet's
 * reference is all the difference. That is the baseline. Count and account lie
 * each on a line that nothing else writes.
 *
 * `as-2009` is the kernel of then, for comparison: plain atomics, a destructor
 * that is called through a pointer, and, with a callback, the lock that guarded
 * it: two operations more. What made the kernel's sock worse still is left out:
 * its count lay among fields that every packet reads.
 *
 * Two threads: thread 0 transmits, thread 1 completes, and bursts of packets
 * go through a ring, as in a driver (stage.h). The value is the wall time per
 * packet, so what the faster thread waits for the slower is in it, and the
 * ring is as well; `ring` is how much that is, and nothing is subtracted. One
 * thread does both in turn, a burst each; with one flow its locked operations
 * then follow each other on one word, which takes longer than on two in turn.
 *
 * `receive` is what the seed was about: the sock's count is written by the
 * receive path too, for each packet that is looked up. With two threads, thread
 * 0 receives a packet for each one it sends, and with the account its count
 * never leaves it. With three the third one receives, without a pause.
 *
 * With a write-space callback the library must keep a unit while it calls, so
 * a completion is two operations; the old way has its reference for that, and
 * costs what it did. The callback is an empty function, called when half of
 * sndbuf is free.
 *
 * Floors: the ring alone; with a locked addition to one word at either end.
 */
#include "stage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FLOWS 16 /* socks, at most */
#define RECEIVED 0 /* counter */

/* The groups of struct dstref_sock, with the counting of 2009. */
struct sock_2009 {
	_Alignas(BENCH_LINE) void (*write_space)(void);
	int32_t sndbuf;
	_Alignas(BENCH_LINE) DSTREF_ATOMIC(int32_t) wmem_alloc;
	_Alignas(BENCH_LINE) DSTREF_ATOMIC(int32_t) callback_lock;
	_Alignas(BENCH_LINE) DSTREF_ATOMIC(int32_t) refcnt;
};

_Static_assert(sizeof(struct sock_2009) == 4 * (size_t)BENCH_LINE,
	       "the model has other lines than the library: align its groups");

enum roles {
	ONE_WAY, /* thread 0 transmits, 1 completes; one alone does both */
	BOTH_WAYS, /* each completes what the other transmitted */
	RECEIVE, /* one way, and the receive path: on thread 0, or 2 */
};

/* What a variant is, beside its work. */
struct shape {
	enum roles roles;
	uint32_t flows; /* socks, a power of two; packets take them in turn */
	bool ours; /* else nothing of the library is needed */
	bool space; /* with a callback */
};

struct flows {
	const struct shape *shape;
	struct dstref_net *net;
	uint32_t mask;
	bool exchange; /* a packet is received for each that is sent */
	_Alignas(APART) struct sock_2009 old[FLOWS];
	_Alignas(APART) struct dstref_sock sk[FLOWS];
	struct stage_lane lane[2];
};

static void room_2009(void)
{
	__asm__ volatile("" ::: "memory");
}

static void room_ours(struct dstref_sock *sk, void *data)
{
	(void)data;
	BENCH_KEEP(sk);
}

static const struct dstref_sock_space space_ours = { .fn = room_ours };

static void sock_destroy(struct dstref_sock *sk)
{
	(void)sk; /* a member of struct flows */
}

static const struct dstref_sock_proto proto = {
	.name = "sock",
	.size = sizeof(struct dstref_sock),
	.destroy = sock_destroy,
};

/* A reference that was lost, or let go of twice. */
DSTREF_COLD static void warn(void)
{
	(void)fputs("wmem: a sock was counted wrongly; distrust it all\n",
		    stderr);
	abort();
}

static void old_open(struct flows *f, struct sock_2009 *sk)
{
	dstref_init_plain(&sk->refcnt, 1);
	sk->write_space = f->shape->space ? room_2009 : NULL;
	sk->sndbuf = DSTREF_SOCK_SNDBUF;
}

static int sock_open(struct flows *f, struct dstref_sock *sk)
{
	int rc = dstref_sock_init(sk, f->net, &proto);

	if (rc || !f->shape->space)
		return rc;
	rc = dstref_sock_set_write_space(sk, &space_ours);
	if (rc)
		dstref_sock_put_outside(sk);
	return rc;
}

/* Lets go of n socks, and of the rest once they have ended. */
static void socks_close(struct flows *f, uint32_t n)
{
	while (n)
		dstref_sock_put_outside(&f->sk[--n]);
	if (stage_close(f->net))
		free(f);
}

static int socks_open(struct flows *f)
{
	int rc = stage_open(&f->net);

	if (rc) {
		free(f);
		return rc;
	}
	for (uint32_t i = 0; i < f->shape->flows; i++) {
		rc = sock_open(f, &f->sk[i]);
		if (rc) {
			socks_close(f, i);
			return rc;
		}
	}
	return 0;
}

static int setup(const struct bench_variant *variant, unsigned int threads,
		 void **state)
{
	struct flows *f = aligned_alloc(_Alignof(struct flows), sizeof(*f));

	if (!f)
		return -ENOMEM;
	memset((void *)f, 0, sizeof(*f));
	f->shape = variant->context;
	f->mask = f->shape->flows - 1;
	f->exchange = f->shape->roles == RECEIVE && threads == 2;
	for (uint32_t i = 0; i < f->shape->flows; i++)
		old_open(f, &f->old[i]);
	*state = f;
	return f->shape->ours ? socks_open(f) : 0;
}

static void teardown(void *state)
{
	struct flows *f = state;

	for (uint32_t i = 0; i < f->shape->flows; i++)
		if (dstref_load_relaxed(&f->old[i].refcnt) != 1 ||
		    dstref_load_relaxed(&f->old[i].wmem_alloc))
			warn();
	if (f->shape->ours)
		socks_close(f, f->shape->flows);
	else
		free(f);
}

/* Floors. */

STAGE_INLINE void ring_send(struct flows *f, struct dstref_skb *skb,
			    uint32_t number)
{
	(void)f;
	(void)skb;
	(void)number;
}

STAGE_INLINE void ring_take(void *state, struct dstref_skb *skb)
{
	(void)state;
	(void)skb;
}

STAGE_INLINE void adds_send(struct flows *f, struct dstref_skb *skb,
			    uint32_t number)
{
	struct sock_2009 *sk = &f->old[number & f->mask];

	skb->owner = (uintptr_t)sk;
	(void)dstref_fetch_add_relaxed(&sk->wmem_alloc, TRUESIZE);
}

STAGE_INLINE void adds_take(void *state, struct dstref_skb *skb)
{
	struct sock_2009 *sk = (struct sock_2009 *)skb->owner;

	(void)state;
	(void)dstref_fetch_sub_release(&sk->wmem_alloc, TRUESIZE);
}

/* 2009. */

STAGE_INLINE void sock_put_2009(struct sock_2009 *sk)
{
	if (dstref_unlikely(dstref_fetch_sub_release(&sk->refcnt, 1) == 1))
		warn();
}

/* sock_def_write_space(): under the lock that guards the callback. */
STAGE_INLINE void write_space_2009(struct sock_2009 *sk)
{
	if (!sk->write_space)
		return; /* TCP said so by a flag */
	(void)dstref_fetch_sub_relaxed(&sk->callback_lock, 1);
	if (dstref_load_relaxed(&sk->wmem_alloc) <= sk->sndbuf / 2)
		sk->write_space();
	(void)dstref_fetch_add_release(&sk->callback_lock, 1);
}

static void sock_wfree(struct dstref_skb *skb)
{
	struct sock_2009 *sk = (struct sock_2009 *)skb->owner;

	(void)dstref_fetch_sub_release(&sk->wmem_alloc, (int32_t)skb->truesize);
	write_space_2009(sk);
	sock_put_2009(sk);
}

/* The destructor stands where the route would. */
STAGE_INLINE void old_send(struct flows *f, struct dstref_skb *skb,
			   uint32_t number)
{
	struct sock_2009 *sk = &f->old[number & f->mask];

	(void)dstref_fetch_add_relaxed(&sk->refcnt, 1);
	skb->owner = (uintptr_t)sk;
	skb->dst.word = (uintptr_t)sock_wfree;
	(void)dstref_fetch_add_relaxed(&sk->wmem_alloc, (int32_t)skb->truesize);
}

STAGE_INLINE void old_take(void *state, struct dstref_skb *skb)
{
	void (*destructor)(struct dstref_skb *) =
		(void (*)(struct dstref_skb *))skb->dst.word;

	(void)state;
	if (destructor)
		destructor(skb);
}

/* 2009's way with the library's count and account. Written out, for a second
 * call of dstref_skb_set_owner_w() would keep gcc -O2 from inlining both. */

STAGE_INLINE void held_send(struct flows *f, struct dstref_skb *skb,
			    uint32_t number)
{
	struct dstref_sock *sk = &f->sk[number & f->mask];

	dstref_sock_hold(sk);
	if (dstref_unlikely(!dstref_sock_charge_w(sk, skb->truesize)))
		warn();
	skb->owner = (uintptr_t)sk | DSTREF_SKB_TRANSMIT;
	skb->charge = skb->truesize;
}

/* As dstref_skb_orphan(), but the reference keeps the sock for the callback. */
STAGE_INLINE void held_take(void *state, struct dstref_skb *skb)
{
	struct dstref_sock *sk = dstref_skb_owner(skb);
	uint32_t charge = skb->charge;
	uint64_t after;

	(void)state;
	if (!sk)
		return;
	skb->owner = 0;
	skb->charge = 0;
	const struct dstref_sock_space *space = dstref_load_acquire(&sk->space);
	uint32_t room = dstref_load_relaxed(&sk->sndbuf) / 2;

	if (dstref_unlikely(dstref_wmem_uncharge(&sk->wmem, charge, &after)))
		warn();
	if (space && dstref_wmem_value_bytes(after) <= (int64_t)room)
		space->fn(sk, space->data);
	if (dstref_unlikely(dstref_wmem_value_wakes(after, room)))
		warn(); /* nobody waits here */
	dstref_sock_put(sk);
}

/* The library. */

STAGE_INLINE void our_send(struct flows *f, struct dstref_skb *skb,
			   uint32_t number)
{
	dstref_skb_set_owner_w(skb, &f->sk[number & f->mask]);
}

STAGE_INLINE void our_take(void *state, struct dstref_skb *skb)
{
	(void)state;
	dstref_skb_orphan(skb);
}

/* A packet is received: its sock is looked up, and let go of. */

STAGE_INLINE void no_receive(struct flows *f, uint32_t number)
{
	(void)f;
	(void)number;
}

STAGE_INLINE void old_receive(struct flows *f, uint32_t number)
{
	struct sock_2009 *sk = &f->old[number & f->mask];

	(void)dstref_fetch_add_relaxed(&sk->refcnt, 1);
	sock_put_2009(sk);
}

STAGE_INLINE void our_receive(struct flows *f, uint32_t number)
{
	struct dstref_sock *sk = &f->sk[number & f->mask];

	if (dstref_unlikely(!dstref_sock_try_hold(sk)))
		warn();
	dstref_sock_put(sk);
}

/* Work. */

typedef void (*receive_fn)(struct flows *f, uint32_t number);

STAGE_INLINE void receive_alone(struct bench_self *self, receive_fn receive)
{
	uint32_t n = 0;

	while (!bench_over(self)) {
		for (int i = 0; i < BURST; i++)
			receive(self->state, n++);
		self->counter[RECEIVED] += BURST;
		urcu_qsbr_quiescent_state();
	}
}

/* The lane that a thread sends into, and the one that it takes from. */
static void lanes(const struct bench_self *self, struct stage_lane **out,
		  struct stage_lane **in)
{
	struct flows *f = self->state;

	if (f->shape->roles == BOTH_WAYS) {
		*out = &f->lane[self->id];
		*in = &f->lane[!self->id];
		return;
	}
	*out = self->id == 0 ? &f->lane[0] : NULL;
	*in = self->id == 1 || self->threads == 1 ? &f->lane[0] : NULL;
}

STAGE_INLINE void work(struct bench_self *self, stage_send_fn send,
		       stage_take_fn take, receive_fn receive)
{
	const struct flows *f = self->state;
	struct stage_lane *out, *in;

	lanes(self, &out, &in);
	urcu_qsbr_register_thread();
	if (self->id == 2)
		receive_alone(self, receive);
	else
		stage_run(self, out, in, send, take);
	if (f->exchange)
		self->counter[RECEIVED] = self->ops;
	urcu_qsbr_unregister_thread();
}

/* The question whether to receive is there in every variant and table. */
#define WORK(of, receive)                                                  \
	STAGE_INLINE void of##_packet(void *state, struct dstref_skb *skb, \
				      uint32_t number, uint64_t now_ns)    \
	{                                                                  \
		struct flows *f = state;                                   \
                                                                           \
		(void)now_ns;                                              \
		if (f->exchange)                                           \
			receive(f, number);                                \
		of##_send(f, skb, number);                                 \
	}                                                                  \
                                                                           \
	static void of##_work(struct bench_self *self)                     \
	{                                                                  \
		work(self, of##_packet, of##_take, receive);               \
	}

WORK(ring, no_receive)
WORK(adds, old_receive)
WORK(old, old_receive)
WORK(held, our_receive)
WORK(our, our_receive)

#define ROW(name_, kind_, work_, what_, ...)                                 \
	{                                                                    \
		.name = name_, .kind = kind_, .what = what_, .setup = setup, \
		.work = work_, .teardown = teardown,                         \
		.context = &(const struct shape){ __VA_ARGS__ },             \
	}

enum { RING, ADDS, AS_2009, HELD, OURS, VARIANTS };

/* The variants of a table; more of their shape follows. */
#define TABLE_VARIANTS(of, suffix, ...)                                        \
	static const struct bench_variant of[VARIANTS] = {                     \
		[RING] = ROW("ring", BENCH_EMPTY, ring_work,                   \
			     "packets handed over, nothing counted",           \
			     __VA_ARGS__),                                     \
		[ADDS] = ROW("adds", BENCH_FLOOR, adds_work,                   \
			     "a locked add at transmit and at completion",     \
			     __VA_ARGS__),                                     \
		[AS_2009] = ROW("as-2009" suffix, BENCH_MODEL, old_work,       \
				"hold, charge, put as the kernel did it",      \
				__VA_ARGS__),                                  \
		[HELD] = ROW("hold-charge-put" suffix, BENCH_MODEL, held_work, \
			     "the same on the library's count and account",    \
			     .ours = true, __VA_ARGS__),                       \
		[OURS] = ROW("account" suffix, BENCH_OURS, our_work,           \
			     "dstref_skb_set_owner_w, dstref_skb_orphan",      \
			     .ours = true, __VA_ARGS__),                       \
	}

TABLE_VARIANTS(flow_1, "", .roles = ONE_WAY, .flows = 1);
TABLE_VARIANTS(flow_16, "", .roles = ONE_WAY, .flows = FLOWS);
TABLE_VARIANTS(both_ways, "", .roles = BOTH_WAYS, .flows = 1);
TABLE_VARIANTS(receive, "", .roles = RECEIVE, .flows = 1);
TABLE_VARIANTS(flow_1_space, "-space", .roles = ONE_WAY, .flows = 1,
	       .space = true);

static const unsigned int one_two[] = { 1, 2, 0 }, two[] = { 2, 0 },
			  two_three[] = { 2, 3, 0 };

#define TABLE(name_, of, threads_, value_, title_)                         \
	.name = name_, .title = title_, .variants = of, .count = VARIANTS, \
	.baseline = HELD, .unit = "ns", .threads = threads_, .value = value_

static const struct bench_table tables[] = {
	{ TABLE("flow-1", flow_1, one_two, bench_ns_per_op_of_first,
		"a packet of one sock, sent and completed") },
	{ TABLE("flow-16", flow_16, one_two, bench_ns_per_op_of_first,
		"packets of 16 socks in turn") },
	{ TABLE("both-ways", both_ways, two, bench_ns_per_op,
		"each thread sends, and completes what the other sent") },
	{ TABLE("receive", receive, two_three, bench_ns_per_op_of_first,
		"one sock, and the receive path looks it up"),
	  .counters = { "received" } },
	{ TABLE("flow-1-space", flow_1_space, one_two, bench_ns_per_op_of_first,
		"one sock with a write-space callback") },
};

const struct bench_experiment bench_wmem = {
	.name = "wmem",
	.seed = "S1",
	.question = "What does a packet cost that holds its sock, beside the "
		    "account that is changed anyway?",
	.published = "2009: tbench from 2691 to 2711 MB/s without the hold; a "
		     "load of UDP transmits +5 %, less CPU in completion.",
	.measured =
		"A packet's counting alone, and the ring between the two "
		"threads; then it was a share of all that a stack does for a "
		"packet. `hold-charge-put` is the old way with the library's "
		"count and account, `as-2009` with the kernel's.",
	.tables = tables,
	.count = sizeof(tables) / sizeof(tables[0]),
};
