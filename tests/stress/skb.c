/* SPDX-License-Identifier: MIT */
/*
 * stress.skb - packets that change threads
 *
 * Goal: packets that are completed on other threads than those that sent
 * them, in fragments, with and without what the device keeps, leave every
 * account and every count exact, while routes are replaced under them; the
 * sock's end sees what each completion wrote.
 *
 * Method: rounds of one packet in four fragments, each completed by its own
 * thread (C11, C14); then a small network: senders who borrow the route of
 * their sock and release at transmit by flags of chance, rings, completers of
 * which one stands outside any reader (C5), and a thread that installs new
 * routes. At the end nothing is alive and the sums agree.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "scene.h"
#include "stress.h"

#define FLAVOUR (&urcu_memb_flavor)
#define PARTS 4

struct sock {
	struct dstref_sock sk;
	uint64_t wrote[PARTS]; /* plain, one for each thread */
};

static struct scene own;
static DSTREF_ATOMIC(uint64_t) wrong;

static void wrong_if(bool what)
{
	if (what)
		(void)dstref_fetch_add_relaxed(&wrong, (uint64_t)1);
}

static void begin(void)
{
	dstref_store_relaxed(&wrong, (uint64_t)0);
	scene_begin(&own, FLAVOUR);
}

static void end(struct stress *run, uint64_t socks)
{
	stress_assert_equal(run, dstref_net_barrier(own.net, -1), 0);
	stress_assert_equal(run, dstref_load_relaxed(&own.ended), socks);
	stress_assert_equal(run, dstref_load_relaxed(&wrong), 0);
	stress_assert_equal(run, scene_end(&own), 0);
}

/* C11: thread i completes fragment 3 - i. */

static struct dstref_skb parts[PARTS];
static struct dstref_sock *paying;
static uint64_t rounds;

static void sock_ended(struct dstref_sock *sk)
{
	struct sock *sock = (void *)sk;

	for (int i = 0; i < PARTS; i++)
		wrong_if(sock->wrote[i] != 1);
	(void)dstref_fetch_add_relaxed(&own.ended, 1u);
}

static const struct dstref_sock_proto proto = {
	.name = "fragments",
	.size = sizeof(struct sock),
	.destroy = sock_ended,
};

static void send_fragments(uint64_t round)
{
	wrong_if(dstref_sock_alloc(&paying, own.net, &proto));
	reader_lock(FLAVOUR);
	for (uint32_t i = 0; i < PARTS; i++) {
		dstref_skb_init(&parts[i], i * 100);
		if (!i && round % 2)
			dstref_skb_set_owner_w(&parts[0], paying);
		else if (!i)
			dstref_skb_set_owner_r(&parts[0], paying);
		else
			dstref_skb_copy_owner(&parts[i], &parts[0]);
	}
	dstref_sock_put(paying);
	reader_unlock(FLAVOUR);
}

static void complete_fragment(unsigned int i)
{
	struct dstref_skb *part = &parts[PARTS - 1 - i];

	wrong_if(dstref_skb_owner(part) != paying);
	((struct sock *)(void *)paying)->wrote[i] = 1;
	if (i % 2) {
		dstref_skb_free_outside(part);
	} else {
		reader_lock(FLAVOUR);
		dstref_skb_free(part);
		reader_unlock(FLAVOUR);
	}
	wrong_if(part->owner || part->charge);
}

static void round_of_fragments(struct stress_thread *thread)
{
	reader_register(FLAVOUR);
	for (uint64_t i = 0; i < rounds; i++) {
		if (!thread->index)
			send_fragments(i);
		stress_meet(thread);
		complete_fragment(thread->index);
		stress_meet(thread);
	}
	reader_unregister(FLAVOUR);
}

static void c11_c14_skb_fragments_complete_anywhere(void **state)
{
	struct stress run = { .threads = PARTS };

	(void)state;
	begin();
	rounds = stress_rounds(40000);
	stress_run(&run, round_of_fragments, NULL);
	end(&run, rounds);
}

/* The small network: thread i sends to thread i + 2. */

#define PAIRS 2
#define RING 64
#define EACH 1000 /* packets by a sock, before its sender takes a new one */

struct ring {
	_Alignas(256) struct dstref_skb packets[RING];
	_Alignas(256) DSTREF_ATOMIC(uint64_t) sent; /* R1 release, A1 acquire */
	_Alignas(256) DSTREF_ATOMIC(uint64_t) done; /* R2 release, A2 acquire */
	DSTREF_ATOMIC(bool) over;
};

static struct ring rings[PAIRS];
static struct dstref_dst_slot fib; /* the one route of this network */
static DSTREF_ATOMIC(uint64_t) socks, routes;

static struct dstref_dst *new_route(void)
{
	(void)dstref_fetch_add_relaxed(&routes, (uint64_t)1);
	return scene_dst(&own, 0);
}

static struct dstref_sock *new_sock(void)
{
	struct dstref_sock *sk = scene_sock(&own);
	struct dstref_dst *dst;

	(void)dstref_fetch_add_relaxed(&socks, (uint64_t)1);
	reader_lock(FLAVOUR);
	dst = dstref_dst_slot_hold(&fib);
	reader_unlock(FLAVOUR);
	dstref_dst_slot_install(&sk->dst, dst);
	return sk;
}

static void send_one(struct stress_thread *thread, struct dstref_skb *skb,
		     struct dstref_sock *sk)
{
	unsigned int flags = (unsigned int)stress_random(thread) % 8;
	const struct dstref_dst_slot *slot = flags & 1 ? &fib : &sk->dst;

	dstref_skb_init(skb, (uint32_t)stress_random(thread) % 2000);
	reader_lock(FLAVOUR);
	dstref_skb_set_owner_w(skb, sk);
	dstref_skb_dst_set_noref(skb, dstref_dst_slot_borrow(slot));
	if (!dstref_skb_xmit_release(skb, flags))
		thread->failed++; /* the route was replaced, and is gone */
	wrong_if(!(flags & DSTREF_SKB_KEEP_DST) && dstref_skb_dst(skb));
	reader_unlock(FLAVOUR);
}

static void send_packets(struct stress_thread *thread, struct ring *ring)
{
	struct dstref_sock *sk = NULL;

	for (uint64_t n = 0; stress_more(thread); n++) {
		while (n - dstref_load_acquire(&ring->done) == RING) /* A2 */
			sched_yield();
		if (n % EACH == 0) {
			dstref_sock_put_outside(sk);
			sk = new_sock();
		}
		send_one(thread, &ring->packets[n % RING], sk);
		dstref_store_release(&ring->sent, n + 1); /* R1 */
		thread->ops++;
	}
	dstref_sock_put_outside(sk);
	dstref_store_release(&ring->over, true);
}

static void complete_packets(struct ring *ring, bool inside)
{
	uint64_t n = 0;

	for (;;) {
		bool over = dstref_load_acquire(&ring->over);

		if (n == dstref_load_acquire(&ring->sent)) { /* A1 */
			if (over)
				return;
			sched_yield();
			continue;
		}
		if (inside) {
			reader_lock(FLAVOUR);
			dstref_skb_free(&ring->packets[n % RING]);
			reader_unlock(FLAVOUR);
		} else {
			dstref_skb_free_outside(&ring->packets[n % RING]);
		}
		dstref_store_release(&ring->done, ++n); /* R2 */
	}
}

static void replace_routes(struct stress_thread *thread)
{
	static const struct timespec pause = { 0, 50000 };

	while (stress_more(thread)) {
		dstref_dst_slot_install(&fib, new_route());
		nanosleep(&pause, NULL);
	}
}

/* The completer of the second pair is registered nowhere. */
static void take_part(struct stress_thread *thread)
{
	unsigned int pair = thread->index % PAIRS;
	bool inside = thread->index != 2 * PAIRS - 1;

	if (inside)
		reader_register(FLAVOUR);
	if (thread->index < PAIRS)
		send_packets(thread, &rings[pair]);
	else if (thread->index < 2 * PAIRS)
		complete_packets(&rings[pair], inside);
	else
		replace_routes(thread);
	if (inside)
		reader_unregister(FLAVOUR);
}

static void c05_skb_released_at_transmit_completed_elsewhere(void **state)
{
	struct stress run = { .threads = 2 * PAIRS + 1, .seconds = 2 };
	struct stress_thread sums;

	(void)state;
	begin();
	memset(rings, 0, sizeof(rings));
	dstref_store_relaxed(&socks, (uint64_t)0);
	dstref_store_relaxed(&routes, (uint64_t)0);
	dstref_dst_slot_install(&fib, new_route());
	stress_run(&run, take_part, &sums);
	dstref_dst_slot_clear(&fib);
	stress_assert(&run, sums.ops > 10 * EACH);
	stress_assert_equal(&run, dstref_net_barrier(own.net, -1), 0);
	stress_assert_equal(&run, dstref_load_relaxed(&own.routes),
			    dstref_load_relaxed(&routes));
	end(&run, dstref_load_relaxed(&socks));
}

static int group_begin(void **state)
{
	(void)state;
	reader_register(FLAVOUR);
	return 0;
}

static int group_end(void **state)
{
	(void)state;
	reader_unregister(FLAVOUR);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		capture_test(c11_c14_skb_fragments_complete_anywhere),
		capture_test(c05_skb_released_at_transmit_completed_elsewhere),
	};

	return cmocka_run_group_tests_name("stress.skb", tests, group_begin,
					   group_end);
}
