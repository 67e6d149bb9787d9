/* SPDX-License-Identifier: MIT */
/*
 * scene - a namespace with socks and routes, and what became of them
 *
 * Setup and teardown enclose a test with everything that can tell on it: the
 * reports, the ledger of memory, the namespace that will not end while an
 * entry is left. A test that failed may stand inside a reader; teardown takes
 * it out, so that the next test begins as the first did.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scene.h"

struct scene scene;

static void sock_released(struct dstref_sock *sk)
{
	(void)dstref_fetch_add_relaxed(&scene_of(sk)->released, 1u);
}

static void sock_ended(struct dstref_sock *sk)
{
	(void)dstref_fetch_add_relaxed(&scene_of(sk)->ended, 1u);
}

const struct dstref_sock_proto scene_proto = {
	.name = "scene",
	.size = sizeof(struct scene_sock),
	.release = sock_released,
	.destroy = sock_ended,
};

static void dst_ended(struct dstref_dst *dst)
{
	struct scene *s = dst->net->user;

	(void)dstref_fetch_add_relaxed(&s->routes, 1u);
	s->net->mem.free(&s->alloc, dst, sizeof(*dst));
}

static const struct dstref_dst_ops ops = { "scene", dst_ended, NULL };

void scene_begin(struct scene *s, const struct rcu_flavor_struct *flavour)
{
	struct dstref_net_attr attr = { .flavour = flavour };

	memset(s, 0, sizeof(*s));
	alloc_init(&s->alloc);
	s->flavour = flavour;
	attr.mem = alloc_mem(&s->alloc);
	assert_int_equal(dstref_net_create(&s->net, &attr), 0);
	s->net->user = s;
}

unsigned int scene_end(struct scene *s)
{
	unsigned int wrong = dstref_net_destroy(s->net) != 0;

	return wrong + (unsigned int)alloc_fini(&s->alloc);
}

int scene_setup(void **state)
{
	if (capture_setup(state))
		return -1;
	reader_register(&manual_flavor);
	scene_begin(&scene, &manual_flavor);
	return 0;
}

int scene_teardown(void **state)
{
	unsigned int wrong = 0;

	for (; manual_flavor.read_ongoing(); wrong++)
		scene_leave();
	wrong += scene_end(&scene);
	for (int fault = 0; fault < MANUAL_FAULTS; fault++)
		wrong += manual_faults(fault);
	wrong += manual_reset();
	reader_unregister(&manual_flavor);
	wrong += capture_teardown(state) != 0;
	return wrong ? -1 : 0;
}

struct dstref_sock *scene_sock(struct scene *s)
{
	struct dstref_sock *sk;

	assert_int_equal(dstref_sock_alloc(&sk, s->net, &scene_proto), 0);
	return sk;
}

struct dstref_dst *scene_dst(struct scene *s, uint32_t flags)
{
	struct dstref_dst *dst = s->net->mem.alloc(&s->alloc, sizeof(*dst),
						   DSTREF_LINE_SIZE, -1);

	assert_non_null(dst);
	assert_int_equal(dstref_dst_init(dst, s->net, &ops, NULL, flags), 0);
	return dst;
}

struct errand {
	void (*fn)(void *arg);
	void *arg;
};

static void *run(void *arg)
{
	struct errand *errand = arg;

	errand->fn(errand->arg);
	return NULL;
}

void scene_elsewhere(void (*fn)(void *arg), void *arg)
{
	struct errand errand = { fn, arg };
	pthread_t id;

	assert_int_equal(pthread_create(&id, NULL, run, &errand), 0);
	assert_int_equal(pthread_join(id, NULL), 0);
}
