/* SPDX-License-Identifier: MIT */
/*
 * Given by -include: no layout is asserted. What is rejected with asserts and
 * compiles like this was rejected by an assert.
 */
#include <dstref/config.h>

#undef DSTREF_STATIC_ASSERT
#define DSTREF_STATIC_ASSERT(cond, message) struct no_assert
