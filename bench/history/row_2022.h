/* SPDX-License-Identifier: MIT */
/*
 * row_2022 - the death row of 2022 (S3), and the namespace that holds it
 *
 * Each packet that comes in looks up a socket, and reads `hashinfo` for it.
 * Before, the namespace held a pointer to its row: the packet read the line
 * of the pointer, then the second line of the row. As proposed, the row is
 * part of the namespace and begins with hashinfo: one line. A run over hot
 * caches shows no difference; the first packet after a pause does.
 *
 * Known: the row before, to the byte (the counter at 0, a hole of 60 bytes,
 * hashinfo at 64, the limit behind it, 128 in all), and that the proposal
 * put hashinfo first and the row into the namespace by value. Reconstructed:
 * the namespaces, of which only the row and one counter of their own are
 * here, on lines of 64 bytes; and the place of the written counter in the
 * proposal. It stands on a line of its own there, for on hashinfo's it would
 * take that line from every packet. What stands today (`since`) keeps the
 * order of before, and embeds it.
 */
#ifndef HISTORY_ROW_2022_H
#define HISTORY_ROW_2022_H

#include <dstref/atomic.h>
#include <dstref/line.h>

struct row_2022_before {
	DSTREF_ATOMIC(uint32_t) tw_refcount;
	DSTREF_ALIGNED(64) void *hashinfo;
	int32_t max_buckets;
};

struct net_2022_before {
	DSTREF_ALIGNED(64) DSTREF_ATOMIC(uint32_t) passive;
	DSTREF_ALIGNED(64) struct row_2022_before *row;
};

struct row_2022_proposed {
	DSTREF_ALIGNED(64) void *hashinfo;
	int32_t max_buckets;
	DSTREF_ALIGNED(64) DSTREF_ATOMIC(uint32_t) tw_refcount;
};

struct net_2022_proposed {
	DSTREF_ALIGNED(64) DSTREF_ATOMIC(uint32_t) passive;
	struct row_2022_proposed row;
};

struct net_2022_since {
	DSTREF_ALIGNED(64) DSTREF_ATOMIC(uint32_t) passive;
	struct row_2022_before row;
};

DSTREF_ASSERT_OFFSET(struct row_2022_before, tw_refcount, 0);
DSTREF_ASSERT_OFFSET(struct row_2022_before, hashinfo, 64);
DSTREF_ASSERT_OFFSET(struct row_2022_before, max_buckets, 64 + sizeof(void *));
DSTREF_ASSERT_SIZE(struct row_2022_before, 128);
DSTREF_ASSERT_OFFSET(struct net_2022_before, row, 64);
DSTREF_ASSERT_SIZE(struct net_2022_before, 128);

DSTREF_ASSERT_OFFSET(struct row_2022_proposed, hashinfo, 0);
DSTREF_ASSERT_OFFSET(struct row_2022_proposed, max_buckets, sizeof(void *));
DSTREF_ASSERT_OFFSET(struct row_2022_proposed, tw_refcount, 64);
DSTREF_ASSERT_SIZE(struct row_2022_proposed, 128);
DSTREF_ASSERT_OFFSET(struct net_2022_proposed, row.hashinfo, 64);
DSTREF_ASSERT_SIZE(struct net_2022_proposed, 192);

DSTREF_ASSERT_OFFSET(struct net_2022_since, row.tw_refcount, 64);
DSTREF_ASSERT_OFFSET(struct net_2022_since, row.hashinfo, 128);
DSTREF_ASSERT_SIZE(struct net_2022_since, 192);

#if DSTREF_LINE_SIZE == 64
DSTREF_ASSERT_OTHER_LINE(struct row_2022_before, tw_refcount, hashinfo);
DSTREF_ASSERT_SAME_LINE(struct row_2022_before, hashinfo, max_buckets);
DSTREF_ASSERT_OTHER_LINE(struct row_2022_proposed, tw_refcount, hashinfo);
DSTREF_ASSERT_SAME_LINE(struct row_2022_proposed, hashinfo, max_buckets);
DSTREF_ASSERT_OTHER_LINE(struct net_2022_proposed, passive, row.hashinfo);
#endif

#endif
