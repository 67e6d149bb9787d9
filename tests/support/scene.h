/* SPDX-License-Identifier: MIT */
/*
 * scene - a namespace with socks and routes, and what became of them
 *
 * The namespace takes its memory from alloc.h, so a leak, a second free and a
 * wrong size fail the test; its user pointer is the scene, so that protos and
 * ops can count. The global scene is of scene_test(): it runs on the manual
 * flavour, on which the test's thread is registered. Others begin and end
 * their own, on any flavour.
 */
#ifndef TESTS_SCENE_H
#define TESTS_SCENE_H

#include <dstref/dstref.h>

#include "alloc.h"
#include "capture.h"
#include "manual.h"
#include "tsan.h"

#define SCENE_TAIL 40 /* bytes of the user's own in a sock */

struct scene {
	struct alloc alloc;
	const struct rcu_flavor_struct *flavour;
	struct dstref_net *net;
	DSTREF_ATOMIC(unsigned int) released; /* times proto->release ran */
	DSTREF_ATOMIC(unsigned int) ended; /* times proto->destroy ran */
	DSTREF_ATOMIC(unsigned int) routes; /* times ops->destroy ran */
};

struct scene_sock {
	struct dstref_sock sk;
	unsigned char tail[SCENE_TAIL];
};

extern struct scene scene;
extern const struct dstref_sock_proto scene_proto; /* counts, no clone */

void scene_begin(struct scene *s, const struct rcu_flavor_struct *flavour);

/* Ends the namespace; how much was wrong: 0 when all is well. */
unsigned int scene_end(struct scene *s);

int scene_setup(void **state);
int scene_teardown(void **state);

/* A test of cmocka's on the global scene, with its reports captured. */
#define scene_test(fn) \
	cmocka_unit_test_setup_teardown(fn, scene_setup, scene_teardown)

/* Each has one reference, the caller's. A route's memory is the scene's. */
struct dstref_sock *scene_sock(struct scene *s);
struct dstref_dst *scene_dst(struct scene *s, uint32_t flags);

/* Runs @fn on a thread of its own that is registered nowhere, and waits. */
void scene_elsewhere(void (*fn)(void *arg), void *arg);

static inline struct scene *scene_of(const struct dstref_sock *sk)
{
	return sk->net->user;
}

/* The global scene's reader. */
static inline void scene_enter(void)
{
	reader_lock(scene.flavour);
}

static inline void scene_leave(void)
{
	reader_unlock(scene.flavour);
}

static inline uint32_t scene_units(const struct dstref_wmem *wmem)
{
	return dstref_wmem_value_units(dstref_wmem_read(wmem));
}

static inline int64_t scene_bytes(const struct dstref_wmem *wmem)
{
	return dstref_wmem_value_bytes(dstref_wmem_read(wmem));
}

#endif
