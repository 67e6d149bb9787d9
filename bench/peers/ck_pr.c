/* SPDX-License-Identifier: MIT */
/*
 * ck_pr - a count of Concurrency Kit's primitives, which order nothing
 *
 * The kit has no reference count; this is what its own users write: increment,
 * and decrement with a look at zero. The fences that a real one needs before
 * the freeing cost nothing on x86.
 */
#include "peers.h"

#include <ck_pr.h>

static void init(void *state, uint64_t refs)
{
	ck_pr_store_uint((unsigned int *)state, (unsigned int)refs);
}

static bool get(void *state)
{
	ck_pr_inc_uint(state);
	return true;
}

static bool put(void *state)
{
	return ck_pr_dec_uint_is_zero(state);
}

static uint64_t held(const void *state)
{
	return ck_pr_load_uint(state);
}

PEER_WORK(ck_pr)

const struct peer peer_ck_pr = {
	.bytes = sizeof(unsigned int),
	.size = sizeof(unsigned int),
	.init = init,
	.get = get,
	.put = put,
	.held = held,
	.limit = { UINT32_MAX },
};
