/* SPDX-License-Identifier: MIT */
/*
 * The sizes that users pay for, a line each, for figures.sh.
 */
#include <dstref/dstref.h>

#include <stdio.h>

int main(void)
{
	printf("dst-size %zu\n", sizeof(struct dstref_dst));
	printf("skb-size %zu\n", sizeof(struct dstref_skb));
	printf("count-size %zu\n", sizeof(struct dstref_count));
	return 0;
}
