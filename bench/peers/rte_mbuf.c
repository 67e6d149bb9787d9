/* SPDX-License-Identifier: MIT */
/*
 * rte_mbuf - the count of a DPDK packet, of 16 bits
 *
 * Of DPDK only the inline calls are used: no environment is started and
 * nothing is linked.
 */
#include "peers.h"

#include <rte_mbuf.h>

#ifndef RTE_MBUF_REFCNT_ATOMIC
#error "this DPDK counts mbufs without atomics: build the bench without it"
#endif

static void init(void *state, uint64_t refs)
{
	rte_mbuf_refcnt_set(state, (uint16_t)refs);
}

static bool get(void *state)
{
	rte_mbuf_refcnt_update(state, 1);
	return true;
}

static bool put(void *state)
{
	return rte_mbuf_refcnt_update(state, -1) == 0;
}

static uint64_t held(const void *state)
{
	return rte_mbuf_refcnt_read(state);
}

PEER_WORK(rte_mbuf)

const struct peer peer_rte_mbuf = {
	.bytes = sizeof(((struct rte_mbuf *)NULL)->refcnt),
	.size = sizeof(struct rte_mbuf),
	.init = init,
	.get = get,
	.put = put,
	.held = held,
	.limit = { UINT16_MAX },
};
