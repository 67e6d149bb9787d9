/* SPDX-License-Identifier: MIT */
/*
 * urcu_ref - the count of liburcu: a get is a compare-and-swap loop
 *
 * With NDEBUG, as it is measured here, the assertion of its put is not there.
 */
#include "peers.h"

#include <limits.h>
#include <urcu/ref.h>

static bool released;

static void release(struct urcu_ref *ref)
{
	(void)ref;
	released = true;
}

/* A constant function, so that its call is inlined: see peers.h. */
static void broken(struct urcu_ref *ref)
{
	(void)ref;
	peer_broken();
}

static void init(void *state, uint64_t refs)
{
	urcu_ref_set(state, (long)refs);
}

static bool get(void *state)
{
	urcu_ref_get(state);
	return true;
}

static bool put(void *state)
{
	released = false;
	urcu_ref_put(state, release);
	return released;
}

static uint64_t held(const void *state)
{
	return (uint64_t)uatomic_read(
		&((const struct urcu_ref *)state)->refcount);
}

static void pair(void *state)
{
	urcu_ref_get(state);
	urcu_ref_put(state, broken);
}

void peer_urcu_ref_work(struct bench_self *self)
{
	void *state = self->state;

	BENCH_REPEAT(self, pair(state));
}

const struct peer peer_urcu_ref = {
	.bytes = sizeof(struct urcu_ref),
	.size = sizeof(struct urcu_ref),
	.init = init,
	.get = get,
	.put = put,
	.held = held,
	.limit = { LONG_MAX, ULONG_MAX },
};
