/* SPDX-License-Identifier: MIT */
/*
 * atomic - a count as one writes it without a library: C11, default order
 */
#include "peers.h"

#include <stdatomic.h>

static void init(void *state, uint64_t refs)
{
	atomic_init((atomic_uint *)state, (unsigned int)refs);
}

static bool get(void *state)
{
	atomic_fetch_add((atomic_uint *)state, 1);
	return true;
}

static bool put(void *state)
{
	return atomic_fetch_sub((atomic_uint *)state, 1) == 1;
}

static uint64_t held(const void *state)
{
	return atomic_load((const atomic_uint *)state);
}

PEER_WORK(atomic)

const struct peer peer_atomic = {
	.bytes = sizeof(atomic_uint),
	.size = sizeof(atomic_uint),
	.init = init,
	.get = get,
	.put = put,
	.held = held,
	.limit = { UINT32_MAX },
};
