/* SPDX-License-Identifier: MIT */
/*
 * What users pay for, a line each, for figures.sh: bytes of a struct, and lines
 * that a packet which borrows or holds its dst brings into a cold cache.
 */
#include <dstref/dstref.h>

#include <stdio.h>

int main(void)
{
	printf("dst-size %zu\n", sizeof(struct dstref_dst));
	printf("skb-size %zu\n", sizeof(struct dstref_skb));
	printf("count-size %zu\n", sizeof(struct dstref_count));
	printf("cold-dst %d\n", DSTREF_DST_LINES_HOLD);
	printf("cold-noref %d\n", DSTREF_DST_LINES_BORROW);
	return 0;
}
