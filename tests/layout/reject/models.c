/* SPDX-License-Identifier: MIT */
/*
 * What the asserts would have said in 2008, 2012 and 2022: each line of
 * reject.sh's table puts a historic struct where the cured one stands.
 */
#ifdef NO_OPTIONS
#define ROUTE_XFRM 0
#define ROUTE_CLASS 0
#endif
#include "../../../bench/history/route_2012.h"
#include "../../../bench/history/row_2022.h"

#ifndef ROUTE
#define ROUTE route_2008_padded
#endif
#ifndef ALONE
#define ALONE route_2012_after
#endif
#ifndef ROW
#define ROW row_2022_proposed
#endif

/* The order that was proposed in 2022, all on the line that is written. */
struct row_2022_crowded {
	void *hashinfo;
	int32_t max_buckets;
	DSTREF_ATOMIC(uint32_t) tw_refcount;
};

#if UINTPTR_MAX == 0xffffffff
DSTREF_ASSERT_OFFSET(struct ROUTE, count, 0x80);
#else
DSTREF_ASSERT_OFFSET(struct ROUTE, count, 0xc0);
#endif
DSTREF_ASSERT_LINE_START(struct ROUTE, count);
DSTREF_ASSERT_OTHER_LINE(struct ROUTE, count, metrics);
DSTREF_ASSERT_SAME_LINE(struct ROUTE, count, next);
DSTREF_ASSERT_OWN_LINE(struct ALONE, count, use);
DSTREF_ASSERT_OTHER_LINE(struct ROW, tw_refcount, hashinfo);
