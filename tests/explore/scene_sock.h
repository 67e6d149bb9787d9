/* SPDX-License-Identifier: MIT */
/*
 * scene_sock - a sock in the scene's namespace, and packets that it pays for
 *
 * As scene.h does for routes: who uses the sock leaves a mark in a plain word
 * of his own before he lets go, and destroy, which the library calls before it
 * frees the sock, reads them all.
 */
#ifndef TESTS_EXPLORE_SCENE_SOCK_H
#define TESTS_EXPLORE_SCENE_SOCK_H

#include "scene.h"

#include <dstref/skb.h>

#define SCENE_BYTES 100u /* of a packet */

struct scene_sock {
	struct dstref_sock sk;
	int mark[EXPLORE_THREADS];
};

static unsigned int scene_socks_ended;

/* A thread that pins the sock writes to it. */
static inline void scene_sock_mark(struct dstref_sock *sk)
{
	((struct scene_sock *)sk)->mark[explore_self()] = 1;
}

static inline void scene_sock_destroy(struct dstref_sock *sk)
{
	for (int i = 0; i < EXPLORE_THREADS; i++)
		explore_assert(((struct scene_sock *)sk)->mark[i] <= 1);
	scene_socks_ended++;
}

/* The caller has the one reference. */
static inline struct dstref_sock *scene_sock(uint32_t sndbuf)
{
	static const struct dstref_sock_proto proto = {
		.name = "sock",
		.size = sizeof(struct scene_sock),
		.destroy = scene_sock_destroy,
	};
	struct dstref_sock *sk;

	explore_assert(!dstref_sock_alloc(&sk, scene_net, &proto));
	dstref_sock_set_sndbuf(sk, sndbuf);
	return sk;
}

/* A packet that @sk pays for. */
static inline void scene_send(struct dstref_skb *skb, struct dstref_sock *sk)
{
	dstref_skb_init(skb, SCENE_BYTES);
	explore_read_lock();
	dstref_skb_set_owner_w(skb, sk);
	explore_read_unlock();
}

/* It was sent. */
static inline void scene_complete(struct dstref_skb *skb)
{
	explore_read_lock();
	scene_sock_mark(dstref_skb_owner(skb));
	dstref_skb_free(skb);
	explore_read_unlock();
}

static inline void scene_complete_outside(struct dstref_skb *skb)
{
	scene_sock_mark(dstref_skb_owner(skb));
	dstref_skb_free_outside(skb);
}

static inline void scene_sock_put(struct dstref_sock *sk)
{
	explore_read_lock();
	scene_sock_mark(sk);
	dstref_sock_put(sk);
	explore_read_unlock();
}

/* All has ended: @socks, and now the namespace. */
static inline void scene_socks_close(unsigned int socks)
{
	explore_assert(scene_socks_ended == socks);
	scene_close(0);
}

#endif
