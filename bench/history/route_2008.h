/* SPDX-License-Identifier: MIT */
/*
 * route_2008 - the route entry of 2008 (S0), before and after it was padded
 *
 * An unrelated patch dropped an optional field, and the counter of every
 * route moved by some bytes: on 64 bits onto the line of the fields that each
 * packet reads, on 32 bits to the end of that line, its companions on the
 * next. A tbench of 8 clients lost 4 % by it. The cure was padding to 0x80 and
 * 0xc0, placeholders where optional fields may be missing, and an assert.
 *
 * The order of the fields and the counter's offsets are those of the thread.
 * Reconstructed from the two: the offsets of use, lastuse and next. The
 * thread gives the counter's offset with both options, and with neither; the
 * two cases between are reckoned from the order. `next` stood in a union at
 * the end; here it is a plain pointer. A struct starts on a line because its
 * allocator saw to it, so the type does not ask for it here either.
 *
 * ROUTE_XFRM and ROUTE_CLASS, 1 or 0, are the two options of the build. The
 * lines of this history are of 64 bytes, whatever DSTREF_LINE_SIZE is.
 */
#ifndef HISTORY_ROUTE_2008_H
#define HISTORY_ROUTE_2008_H

#include <dstref/atomic.h>
#include <dstref/line.h>

#ifndef ROUTE_XFRM
#define ROUTE_XFRM 1
#endif
#ifndef ROUTE_CLASS
#define ROUTE_CLASS 1
#endif

/* A constant for 32 bits, and one for 64. */
#define ROUTE_AT(at32, at64) (sizeof(void *) == 4 ? (at32) : (at64))

/* Members before the first option, and between the two. */
#define ROUTE_2008_FIRST                      \
	void *rcu[2];                         \
	void *child;                          \
	void *dev;                            \
	int16_t error;                        \
	int16_t obsolete;                     \
	int32_t flags;                        \
	uintptr_t expires;                    \
	uint16_t header_len;                  \
	uint16_t trailer_len;                 \
	DSTREF_ATOMIC(uint32_t) tokens;       \
	DSTREF_ATOMIC(uintptr_t) tokens_last; \
	void *path;                           \
	void *neighbour;                      \
	void *hh
#define ROUTE_2008_SECOND            \
	int (*input)(void *packet);  \
	int (*output)(void *packet); \
	const void *ops;             \
	uint32_t metrics[13]

/* The written members: who takes a reference by dst_use writes three. */
#define ROUTE_2008_WRITTEN                \
	DSTREF_ATOMIC(uint32_t) count;    \
	DSTREF_ATOMIC(uint32_t) use;      \
	DSTREF_ATOMIC(uintptr_t) lastuse; \
	DSTREF_ATOMIC(void *) next

struct route_2008_before {
	ROUTE_2008_FIRST;
#if ROUTE_XFRM
	void *xfrm;
#endif
	ROUTE_2008_SECOND;
#if ROUTE_CLASS
	uint32_t class_id;
#endif
	ROUTE_2008_WRITTEN;
};

struct route_2008_padded {
	ROUTE_2008_FIRST;
#if ROUTE_XFRM
	void *xfrm;
#else
	void *no_xfrm;
#endif
	ROUTE_2008_SECOND;
#if ROUTE_CLASS
	uint32_t class_id;
#else
	uint32_t no_class_id;
#endif
	/* Puts the counter on a line that nobody only reads. */
	uintptr_t pad[ROUTE_AT(1, 2)];
	ROUTE_2008_WRITTEN;
};

#define ROUTE_2008_ASSERT(type, count_at, use_at, lastuse_at, next_at) \
	DSTREF_ASSERT_OFFSET(type, count, count_at);                   \
	DSTREF_ASSERT_OFFSET(type, use, use_at);                       \
	DSTREF_ASSERT_OFFSET(type, lastuse, lastuse_at);               \
	DSTREF_ASSERT_OFFSET(type, next, next_at)

/* Before: every option that is off moves the counter. */
#if ROUTE_XFRM && ROUTE_CLASS
ROUTE_2008_ASSERT(struct route_2008_before, ROUTE_AT(0x7c, 0xb0),
		  ROUTE_AT(0x80, 0xb4), ROUTE_AT(0x84, 0xb8),
		  ROUTE_AT(0x88, 0xc0));
#elif ROUTE_XFRM
ROUTE_2008_ASSERT(struct route_2008_before, ROUTE_AT(0x78, 0xac),
		  ROUTE_AT(0x7c, 0xb0), ROUTE_AT(0x80, 0xb8),
		  ROUTE_AT(0x84, 0xc0));
#elif ROUTE_CLASS
ROUTE_2008_ASSERT(struct route_2008_before, ROUTE_AT(0x78, 0xa8),
		  ROUTE_AT(0x7c, 0xac), ROUTE_AT(0x80, 0xb0),
		  ROUTE_AT(0x84, 0xb8));
#else
ROUTE_2008_ASSERT(struct route_2008_before, ROUTE_AT(0x74, 0xa4),
		  ROUTE_AT(0x78, 0xa8), ROUTE_AT(0x7c, 0xb0),
		  ROUTE_AT(0x80, 0xb8));
#endif

/* Padded: no option moves anything. */
ROUTE_2008_ASSERT(struct route_2008_padded, ROUTE_AT(0x80, 0xc0),
		  ROUTE_AT(0x84, 0xc4), ROUTE_AT(0x88, 0xc8),
		  ROUTE_AT(0x8c, 0xd0));

#if DSTREF_LINE_SIZE == 64
DSTREF_ASSERT_LINE_START(struct route_2008_padded, count);
DSTREF_ASSERT_SAME_LINE(struct route_2008_padded, count, next);
DSTREF_ASSERT_OTHER_LINE(struct route_2008_padded, count, input);
DSTREF_ASSERT_OTHER_LINE(struct route_2008_padded, count, output);
DSTREF_ASSERT_OTHER_LINE(struct route_2008_padded, count, ops);
#endif

#endif
