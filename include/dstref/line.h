/* SPDX-License-Identifier: MIT */
/**
 * DOC: line - alignment to cache lines, and layout asserts with remedies
 *
 * Usable alone, on any struct. A struct that many cores share is cut into
 * groups, each of which starts a line: what a packet reads, what it writes.
 * Every assert costs nothing at run time and says what to do when it fails.
 *
 *	struct my_route {
 *		DSTREF_LINE_START void *ops;       // read-mostly
 *		DSTREF_LINE_START struct dstref_count refs;   // written
 *	};
 *	DSTREF_ASSERT_LINE_START(struct my_route, refs);
 */
#ifndef DSTREF_LINE_H
#define DSTREF_LINE_H

#include <dstref/config.h>

#include <stddef.h>

/* Puts the member that follows at the start of a line. */
#define DSTREF_LINE_START DSTREF_ALIGNED(DSTREF_LINE_SIZE)

/* The line of its struct that a member begins on, from 0. */
#define DSTREF_LINE_OF(type, member) (offsetof(type, member) / DSTREF_LINE_SIZE)

/* @n bytes rounded up to whole lines. */
#define DSTREF_LINE_ROUND(n) \
	(((n) + DSTREF_LINE_SIZE - 1) / DSTREF_LINE_SIZE * DSTREF_LINE_SIZE)

#define DSTREF_ASSERT_OFFSET(type, member, offset)                          \
	DSTREF_STATIC_ASSERT(offsetof(type, member) == (offset), #type      \
			     "." #member " is not at " #offset              \
			     ": move or pad what stands before it; if the " \
			     "unit has -fpack-struct, build it without")

#define DSTREF_ASSERT_SIZE(type, size)                                       \
	DSTREF_STATIC_ASSERT(sizeof(type) == (size),                         \
			     "sizeof(" #type ") is not " #size ": a field "  \
			     "grew or moved; give back the bytes or change " \
			     "the size in the open, it is part of the ABI")

#define DSTREF_ASSERT_LINE_START(type, member)                               \
	DSTREF_STATIC_ASSERT(offsetof(type, member) % DSTREF_LINE_SIZE == 0, \
			     #type "." #member " does not start a line: "    \
				   "put DSTREF_LINE_START before it")

#define DSTREF_ASSERT_SAME_LINE(type, a, b)                           \
	DSTREF_STATIC_ASSERT(DSTREF_LINE_OF(type, a) ==               \
				     DSTREF_LINE_OF(type, b),         \
			     #type "." #a " and ." #b " are written " \
				   "or read together: put them on one line")

#define DSTREF_ASSERT_OTHER_LINE(type, a, b)                                   \
	DSTREF_STATIC_ASSERT(DSTREF_LINE_OF(type, a) !=                        \
				     DSTREF_LINE_OF(type, b),                  \
			     #type "." #a " must not share a line with ." #b   \
				   ": one is written where the other is read;" \
				   " start a line between them")

#define DSTREF_ASSERT_LINES(type, lines)                                   \
	DSTREF_STATIC_ASSERT(sizeof(type) == (lines)*DSTREF_LINE_SIZE &&   \
				     sizeof(type) % DSTREF_LINE_SIZE == 0, \
			     #type " does not fill " #lines " lines: a "   \
				   "group has outgrown its line")

#endif
