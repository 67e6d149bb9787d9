/* SPDX-License-Identifier: MIT */
/*
 * Included before anything else, takes out every layout assert: what does not
 * compile without it and does with it was rejected by an assert.
 */
#ifndef NO_ASSERTS_H
#define NO_ASSERTS_H

#define DSTREF_STATIC_ASSERT(cond, message) struct no_assert

#endif
