/* SPDX-License-Identifier: MIT */
/*
 * route_2012 - the route entry of 2012 (S2), its counter alone on a line
 *
 * Threads in pairs passed data over loopback. With `use`, and what follows it,
 * moved from the counter's line to a line of its own, throughput went on
 * growing with the threads (32 of them: from 3498 to 6540); before, it had
 * stopped growing at 12. The price is a line more for each of perhaps a million
 * entries.
 *
 * What is known of 2012: that the counter stood at the start of a line with
 * `use`, `lastuse` and `next` behind it, and that the proposal gave those
 * three the next line. Reconstructed: everything before the counter, for
 * which the padded entry of 2008 stands; that keeps the counter at 0x80 on
 * 32 bits and at 0xc0 on 64.
 */
#ifndef HISTORY_ROUTE_2012_H
#define HISTORY_ROUTE_2012_H

#include "route_2008.h"

#define ROUTE_2012_READ    \
	ROUTE_2008_FIRST;  \
	void *xfrm;        \
	ROUTE_2008_SECOND; \
	uint32_t class_id; \
	uintptr_t pad[ROUTE_AT(1, 2)]

struct route_2012_before {
	ROUTE_2012_READ;
	ROUTE_2008_WRITTEN;
};

struct route_2012_after {
	ROUTE_2012_READ;
	DSTREF_ATOMIC(uint32_t) count;
	DSTREF_ALIGNED(64) DSTREF_ATOMIC(uint32_t) use;
	DSTREF_ATOMIC(uintptr_t) lastuse;
	DSTREF_ATOMIC(void *) next;
};

ROUTE_2008_ASSERT(struct route_2012_before, ROUTE_AT(0x80, 0xc0),
		  ROUTE_AT(0x84, 0xc4), ROUTE_AT(0x88, 0xc8),
		  ROUTE_AT(0x8c, 0xd0));
ROUTE_2008_ASSERT(struct route_2012_after, ROUTE_AT(0x80, 0xc0),
		  ROUTE_AT(0xc0, 0x100), ROUTE_AT(0xc4, 0x108),
		  ROUTE_AT(0xc8, 0x110));
DSTREF_ASSERT_SIZE(struct route_2012_after, ROUTE_AT(0x100, 0x140));

#if DSTREF_LINE_SIZE == 64
DSTREF_ASSERT_SAME_LINE(struct route_2012_before, count, use);
DSTREF_ASSERT_OWN_LINE(struct route_2012_after, count, use);
DSTREF_ASSERT_STRIDE(struct route_2012_after);
#endif

#endif
