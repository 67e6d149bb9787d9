/* SPDX-License-Identifier: MIT */
/*
 * The umbrella header, as reject.sh's table says: with its members packed, or
 * with a header in which a member was moved.
 */
#ifdef PACKED
#pragma pack(1)
#endif
#include <dstref/dstref.h>
