/* SPDX-License-Identifier: MIT */
/*
 * Each assert of line.h on a struct that keeps it, and with one -D on a struct
 * that does not: reject.sh's table names the message of each.
 */
#include <dstref/line.h>

#include <stdint.h>

struct offset {
	uint32_t first;
#ifdef BREAK_OFFSET
	uint32_t more;
#endif
	uint32_t second;
};
DSTREF_ASSERT_OFFSET(struct offset, second, 4);

struct size {
	uint32_t first;
#ifdef BREAK_SIZE
	uint8_t more;
#endif
};
DSTREF_ASSERT_SIZE(struct size, 4);

struct stride {
#ifndef BREAK_STRIDE
	DSTREF_LINE_START
#endif
	char bytes[DSTREF_LINE_SIZE];
};
DSTREF_ASSERT_STRIDE(struct stride);

struct lines {
	DSTREF_LINE_START char bytes[DSTREF_LINE_SIZE];
#ifdef BREAK_LINES
	char more;
#endif
};
DSTREF_ASSERT_LINES(struct lines, 1);

struct line_start {
	uint32_t first;
#ifndef BREAK_LINE_START
	DSTREF_LINE_START
#endif
	uint32_t second;
};
DSTREF_ASSERT_LINE_START(struct line_start, second);

struct same_line {
	uint32_t first;
#ifdef BREAK_SAME_LINE
	char more[DSTREF_LINE_SIZE - 4];
#endif
	uint32_t second;
};
DSTREF_ASSERT_SAME_LINE(struct same_line, first, second);

/* The later one is named first, and reaches over the end of its line. */
struct same_line_whole {
	uint32_t first;
#ifdef BREAK_SAME_LINE_WHOLE
	char second[DSTREF_LINE_SIZE];
#else
	char second[DSTREF_LINE_SIZE - 4];
#endif
};
DSTREF_ASSERT_SAME_LINE(struct same_line_whole, second, first);

struct other_line {
	int (*output)(void *packet);
#ifndef BREAK_OTHER_LINE
	DSTREF_LINE_START
#endif
	uint32_t count;
};
DSTREF_ASSERT_OTHER_LINE(struct other_line, count, output);

/* It begins on a line before, and ends on the counter's. */
struct other_line_end {
#ifdef BREAK_OTHER_LINE_END
	char output[DSTREF_LINE_SIZE + 1];
#else
	char output[DSTREF_LINE_SIZE];
#endif
	char count;
};
DSTREF_ASSERT_OTHER_LINE(struct other_line_end, output, count);

struct own_line {
	uint32_t before;
#ifndef BREAK_OWN_LINE_BEFORE
	DSTREF_LINE_START
#endif
	uint32_t count;
#ifndef BREAK_OWN_LINE_AFTER
	DSTREF_LINE_START
#endif
	uint32_t after;
};
DSTREF_ASSERT_OWN_LINE(struct own_line, count, after);

struct fits {
	uint32_t first;
#ifdef BREAK_FITS
	char bytes[DSTREF_LINE_SIZE - 4];
#else
	char bytes[DSTREF_LINE_SIZE - 8];
#endif
	uint32_t last;
};
DSTREF_ASSERT_FITS(struct fits, first, last, 1);

DSTREF_GROUPED
struct group {
	uint32_t before;
#ifdef BREAK_GROUP_LINE
	DSTREF_GROUP(hot);
#else
	DSTREF_GROUP_LINE(hot);
#endif
	uint32_t first;
#ifdef BREAK_GROUP_LINES
	char filled[DSTREF_LINE_SIZE];
#endif
	uint32_t second;
	DSTREF_GROUP_END(hot);
};

struct group_size {
	DSTREF_GROUP_LINE(hot);
	uint32_t first;
#ifdef BREAK_GROUP_SIZE
	uint32_t more;
#endif
	uint32_t second;
	DSTREF_GROUP_END(hot);
};

struct group_has {
	DSTREF_GROUP_LINE(hot);
	uint32_t first;
#ifndef BREAK_GROUP_HAS
	uint32_t second;
#endif
	DSTREF_GROUP_END(hot);
	DSTREF_GROUP(cold);
#ifdef BREAK_GROUP_HAS
	uint32_t second;
#endif
	uint32_t third;
	DSTREF_GROUP_END(cold);
};
DSTREF_GROUPED_END
DSTREF_ASSERT_GROUP_LINE(struct group, hot);
DSTREF_ASSERT_GROUP_SIZE(struct group_size, hot, 8);
DSTREF_ASSERT_GROUP_LINES(struct group, hot, 1);
DSTREF_ASSERT_GROUP_HAS(struct group_has, hot, second);

/* A path that reads one line and writes one. */
#define PATH_FIELDS(X)                               \
	X(struct path, input, read, R, N, N, W)      \
	X(struct path, output, read, N, R, N, W)     \
	X(struct path, count, written, H, H, H, N)   \
	X(struct path, charged, written, N, W, W, N) \
	X(struct path, statistics, written, N, N, N, W)

DSTREF_GROUPED
struct path {
	DSTREF_GROUP_LINE(read);
	void *input;
#ifdef BREAK_PATH
	DSTREF_LINE_START
#endif
#ifdef BREAK_PATH_SPAN
	char output[DSTREF_LINE_SIZE];
#else
	void *output;
#endif
	DSTREF_GROUP_END(read);
	DSTREF_GROUP_LINE(written);
	uint32_t count;
#ifdef BREAK_PATH_CHARGE
	uint64_t charged[DSTREF_LINE_SIZE / 8];
#else
	uint64_t charged;
#endif
	DSTREF_LINE_START uint64_t statistics;
	DSTREF_GROUP_END(written);
};
DSTREF_GROUPED_END
PATH_FIELDS(DSTREF_FIELD_ASSERT)
DSTREF_ASSERT_PATH(PATH_FIELDS(DSTREF_FIELD_BORROW), 2, "a borrower");
DSTREF_ASSERT_PATH(PATH_FIELDS(DSTREF_FIELD_CHARGE), 1, "a charge");
DSTREF_ASSERT_PATH(PATH_FIELDS(DSTREF_FIELD_COMPLETE), 1, "a completion");
