/* SPDX-License-Identifier: MIT */
/*
 * What the inline paths of hold and release become in a caller: figures.sh
 * compiles this with -O2, as any user would, and counts instructions in the
 * listing. Each function is the inline call and a return; the return is not
 * counted, for inlined there is none. The branch to the cold end is counted,
 * the cold end is not.
 */
#include <dstref/dstref.h>

void hot_hold(struct dstref_dst *dst);
void hot_release(struct dstref_dst *dst);

void hot_hold(struct dstref_dst *dst)
{
	dstref_dst_hold(dst);
}

void hot_release(struct dstref_dst *dst)
{
	dstref_dst_release(dst);
}
