/* SPDX-License-Identifier: MIT */
/**
 * DOC: line - layout as a contract: lines, groups, asserts with remedies
 *
 * Usable alone, on any struct: it needs config.h and <stddef.h>, no library.
 * A struct that many cores share is cut into groups: what a packet reads,
 * what it writes. A group that starts a line is marked at both ends, so that
 * its extent is known to the asserts and seen in the debug information, and
 * costs nothing. Each assert fails the build, and its message says what to
 * do.
 *
 *	DSTREF_GROUPED
 *	struct my_route {
 *		DSTREF_GROUP_LINE(read);
 *		void *device;
 *		uint32_t mtu;
 *		DSTREF_GROUP_END(read);
 *		DSTREF_GROUP_LINE(written);
 *		struct dstref_count refs;
 *		uint64_t packets;
 *		DSTREF_GROUP_END(written);
 *	};
 *	DSTREF_GROUPED_END
 *	DSTREF_ASSERT_GROUP_HAS(struct my_route, read, mtu);
 *	DSTREF_ASSERT_GROUP_LINES(struct my_route, read, 1);
 *	DSTREF_ASSERT_OTHER_LINE(struct my_route, refs, device);
 *	DSTREF_ASSERT_STRIDE(struct my_route);
 *
 * The marks are members of size zero. DSTREF_GROUPED and DSTREF_GROUPED_END
 * around the struct keep a pedantic g++ quiet about them; it wants the same
 * around a struct that embeds one, such as a route with its struct dstref_dst.
 * A struct that begins with a mark is cleared by static storage, by memset in C
 * and by "= {}" in C++, not by "= {0}": the 0 would be for the mark.
 */
#ifndef DSTREF_LINE_H
#define DSTREF_LINE_H

#include <dstref/config.h>

#include <stddef.h>

/* Puts the member that follows at the start of a line. */
#define DSTREF_LINE_START DSTREF_ALIGNED(DSTREF_LINE_SIZE)

/*
 * The line of its struct on which a byte lies, from 0. That is a line of the
 * machine where the struct starts on one: its type says so when a member has
 * DSTREF_LINE_START (DSTREF_ASSERT_STRIDE holds it to that), else whoever
 * allocates it must.
 */
#define DSTREF_LINE_AT(offset) ((offset) / DSTREF_LINE_SIZE)

/* The line on which a member begins, and the one on which it ends. */
#define DSTREF_LINE_OF(type, member) DSTREF_LINE_AT(offsetof(type, member))
#define DSTREF_LINE_OF_END(type, member) \
	DSTREF_LINE_AT(DSTREF_END_OF(type, member) - 1)

/* The first byte after a member. */
#define DSTREF_END_OF(type, member) \
	(offsetof(type, member) + sizeof(((type *)0)->member))

/* @n bytes rounded up to whole lines. */
#define DSTREF_LINE_ROUND(n) \
	(((n) + DSTREF_LINE_SIZE - 1) / DSTREF_LINE_SIZE * DSTREF_LINE_SIZE)

/* Groups. */

#define DSTREF_GROUPED                 \
	_Pragma("GCC diagnostic push") \
		_Pragma("GCC diagnostic ignored \"-Wpedantic\"")
#define DSTREF_GROUPED_END _Pragma("GCC diagnostic pop")

/* A group begins; at the start of a line, or where it happens to. */
#define DSTREF_GROUP_LINE(group) \
	__extension__ DSTREF_LINE_START char group_##group##_begin[0]
#define DSTREF_GROUP(group) __extension__ char group_##group##_begin[0]
#define DSTREF_GROUP_END(group) __extension__ char group_##group##_end[0]

/* Where a group begins, the first byte after it, and its size. */
#define DSTREF_GROUP_AT(type, group) offsetof(type, group_##group##_begin)
#define DSTREF_GROUP_AFTER(type, group) offsetof(type, group_##group##_end)
#define DSTREF_GROUP_SIZE(type, group) \
	(DSTREF_GROUP_AFTER(type, group) - DSTREF_GROUP_AT(type, group))

/* Asserts on members. */

#define DSTREF_ASSERT_OFFSET(type, member, offset)                         \
	DSTREF_STATIC_ASSERT(offsetof(type, member) == (offset),           \
			     #type "." #member " is not at " #offset       \
				   ": move or pad what stands before it; " \
				   "with -fpack-struct: build without it")

#define DSTREF_ASSERT_SIZE(type, size)                                     \
	DSTREF_STATIC_ASSERT(sizeof(type) == (size),                       \
			     "sizeof(" #type ") is not " #size             \
			     ": a member grew or moved; give back the "    \
			     "bytes, or change the size in the open, for " \
			     "it is part of the ABI")

#define DSTREF_ASSERT_STRIDE(type)                                    \
	DSTREF_STATIC_ASSERT(                                         \
		sizeof(type) % DSTREF_LINE_SIZE == 0 &&               \
			DSTREF_ALIGNOF(type) % DSTREF_LINE_SIZE == 0, \
		"neighbours in an array of " #type " share a "        \
		"line: put DSTREF_LINE_START before its first "       \
		"member")

#define DSTREF_ASSERT_LINES(type, lines)                                     \
	DSTREF_STATIC_ASSERT(sizeof(type) == (lines)*DSTREF_LINE_SIZE,       \
			     #type " does not take " #lines                  \
				   " lines: a group has outgrown its line; " \
				   "move a member to where there is room")

#define DSTREF_ASSERT_LINE_START(type, member)                               \
	DSTREF_STATIC_ASSERT(offsetof(type, member) % DSTREF_LINE_SIZE == 0, \
			     #type "." #member " does not start a line: "    \
				   "put DSTREF_LINE_START before it")

/* Both, whole, whichever comes first. */
#define DSTREF_ASSERT_SAME_LINE(type, a, b)                                 \
	DSTREF_STATIC_ASSERT(DSTREF_LINE_OF(type, a) ==                     \
					     DSTREF_LINE_OF_END(type, b) && \
				     DSTREF_LINE_OF(type, b) ==             \
					     DSTREF_LINE_OF_END(type, a),   \
			     #type "." #a " and ." #b " belong together "   \
				   "and lie on two lines: move one to the " \
				   "other")

#define DSTREF_ASSERT_OTHER_LINE(type, a, b)                                   \
	DSTREF_STATIC_ASSERT(                                                  \
		DSTREF_LINE_OF_END(type, a) < DSTREF_LINE_OF(type, b) ||       \
			DSTREF_LINE_OF_END(type, b) < DSTREF_LINE_OF(type, a), \
		#type "." #a " shares a line with ." #b                        \
		      ", one written where the other is "                      \
		      "read: put DSTREF_LINE_START between")

/* @next is the member after @member; for the last one, use STRIDE. */
#define DSTREF_ASSERT_OWN_LINE(type, member, next)                             \
	DSTREF_STATIC_ASSERT(offsetof(type, member) % DSTREF_LINE_SIZE == 0 && \
				     DSTREF_LINE_OF_END(type, member) <        \
					     DSTREF_LINE_OF(type, next),       \
			     #type "." #member " has no line of its own: "     \
				   "put DSTREF_LINE_START before it and "      \
				   "before ." #next)

#define DSTREF_ASSERT_FITS(type, first, last, lines)                       \
	DSTREF_STATIC_ASSERT(DSTREF_LINE_OF_END(type, last) -              \
					     DSTREF_LINE_OF(type, first) < \
				     (lines),                              \
			     #type "." #first " to ." #last " do not fit " \
				   "in " #lines " lines: make a member "   \
				   "smaller or move one out")

/* Asserts on groups. */

#define DSTREF_ASSERT_GROUP_LINE(type, group)                         \
	DSTREF_STATIC_ASSERT(                                         \
		DSTREF_GROUP_AT(type, group) % DSTREF_LINE_SIZE == 0, \
		"group " #group " of " #type " does not "             \
		"start a line: begin it by DSTREF_GROUP_LINE")

#define DSTREF_ASSERT_GROUP_SIZE(type, group, size)                      \
	DSTREF_STATIC_ASSERT(DSTREF_GROUP_SIZE(type, group) <= (size),   \
			     "group " #group " of " #type " is larger "  \
			     "than " #size ": move a member to another " \
			     "group, or raise the bound in the open")

#define DSTREF_ASSERT_GROUP_LINES(type, group, lines)                          \
	DSTREF_STATIC_ASSERT(                                                  \
		DSTREF_LINE_AT(DSTREF_GROUP_AFTER(type, group) - 1) -          \
				DSTREF_LINE_AT(DSTREF_GROUP_AT(type, group)) < \
			(lines),                                               \
		"group " #group " of " #type " touches more than " #lines      \
		" lines: start it on a line, or move a member out")

#define DSTREF_ASSERT_GROUP_HAS(type, group, member)                          \
	DSTREF_STATIC_ASSERT(offsetof(type, member) >=                        \
					     DSTREF_GROUP_AT(type, group) &&  \
				     DSTREF_END_OF(type, member) <=           \
					     DSTREF_GROUP_AFTER(type, group), \
			     #type "." #member " left group " #group          \
				   ": move it back between the group's "      \
				   "marks, or name its new group in the "     \
				   "list of fields")

/*
 * Lists of fields. A struct's list names each member once:
 *
 *	X(type, member, group, receive, transmit, completion, control)
 *
 * where the last four say what is done to it there:
 *
 *	N nothing   R read   W written
 *	H written where a reference is counted, untouched where one is borrowed
 *	E touched once, at its end (a slow path)
 *
 * From it come the asserts that each member lies in its group, the number of
 * lines that a path touches, and the table in the manual.
 */
#define DSTREF_ACCESS_N 0u
#define DSTREF_ACCESS_R 1u
#define DSTREF_ACCESS_W 2u
#define DSTREF_ACCESS_H 4u
#define DSTREF_ACCESS_E 0u

/* X: each member lies in its group. */
#define DSTREF_FIELD_ASSERT(type, member, group, receive, transmit, \
			    completion, control)                    \
	DSTREF_ASSERT_GROUP_HAS(type, group, member);

/* The bits of a member's lines, of 64 at most, when @access is in @kinds. */
#define DSTREF_LINE_BITS(type, member, access, kinds)                          \
	(((access) & (kinds)) ? (2ull << DSTREF_LINE_OF_END(type, member)) -   \
					(1ull << DSTREF_LINE_OF(type, member)) \
			      : 0ull)

/* X: lines that a packet with a borrowed reference touches on its way out. */
#define DSTREF_FIELD_BORROW(type, member, group, receive, transmit,            \
			    completion, control)                               \
	| DSTREF_LINE_BITS(type, member,                                       \
			   DSTREF_ACCESS_##receive | DSTREF_ACCESS_##transmit, \
			   DSTREF_ACCESS_R | DSTREF_ACCESS_W)

/* X: lines that a packet with a counted reference touches on its way out. */
#define DSTREF_FIELD_HOLD(type, member, group, receive, transmit, completion,  \
			  control)                                             \
	| DSTREF_LINE_BITS(type, member,                                       \
			   DSTREF_ACCESS_##receive | DSTREF_ACCESS_##transmit, \
			   DSTREF_ACCESS_R | DSTREF_ACCESS_W |                 \
				   DSTREF_ACCESS_H)

/* X: lines that are written as a packet is charged. */
#define DSTREF_FIELD_CHARGE(type, member, group, receive, transmit, \
			    completion, control)                    \
	| DSTREF_LINE_BITS(type, member, DSTREF_ACCESS_##transmit,  \
			   DSTREF_ACCESS_W)

/* X: lines that are written as a packet completes. */
#define DSTREF_FIELD_COMPLETE(type, member, group, receive, transmit, \
			      completion, control)                    \
	| DSTREF_LINE_BITS(type, member, DSTREF_ACCESS_##completion,  \
			   DSTREF_ACCESS_W)

/* How many lines: DSTREF_LINES(DSTREF_DST_FIELDS(DSTREF_FIELD_HOLD)). */
#define DSTREF_LINES(bits) __builtin_popcountll(DSTREF_LINE_UNION(bits))
#define DSTREF_LINE_UNION(bits) 0ull bits

#define DSTREF_ASSERT_PATH(bits, lines, path)                             \
	DSTREF_STATIC_ASSERT(DSTREF_LINES(bits) <= (lines),               \
			     path " touches more than " #lines " lines: " \
				  "a member that it needs has left its "  \
				  "line; move it back")

#endif
