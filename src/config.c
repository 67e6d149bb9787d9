/* SPDX-License-Identifier: MIT */
/*
 * config - what the library was built as. The headers' own macros tell what a
 * unit was built as; dstref_net_create() compares the two.
 */
#include <dstref/config.h>

unsigned int dstref_version(void)
{
	return DSTREF_VERSION;
}

unsigned int dstref_line_size(void)
{
	return DSTREF_LINE_SIZE;
}
