/* SPDX-License-Identifier: MIT */
/**
 * DOC: count - a reference count in 32 bits that cannot wrap or revive
 *
 * One unconditional read-modify-write for a get and one for a put, and a look
 * at the value that came back; no compare-and-swap loop. The word holds the
 * references less one, so that its sign says when to look closer:
 *
 *	0x00000000 .. 0x7fffffff  live: 1 .. 2^31 references
 *	0x80000000 .. 0xbfffffff  saturated: pinned at 0xa0000000, leaks
 *	0xc0000000 .. 0xfffffffe  dead: pinned at 0xe0000000
 *	0xffffffff                no reference left, not told yet
 *
 * Saturated and dead are sticky: each operation that finds the word there
 * writes the middle of the zone back. A zone reaches 2^29 to either side of
 * its middle, and an operation moves at most 65535 = DSTREF_COUNT_N_MAX
 * references, so 8191 threads would have to stand between their operation and
 * its correction before the word could leave it (models: zones).
 *
 * Precondition: a put that is not the caller's own last use of the memory
 * looks at the word once more when it reached "no reference left". Where
 * others may get at the object without holding a reference (a lookup), get
 * and put therefore run inside a reader of the scheme that defers the
 * freeing (RCU); dstref_count_put_outside() needs none. Where every get is
 * made by a holder, put needs none either, for then the put that reached the
 * end is the last to know the object.
 *
 * Works in memory shared between processes: it holds no pointer.
 *
 * Concurrency: get, put and their forms, read and near_limit run beside each
 * other on any number of threads; init runs alone.
 *
 * Source: Linux rcuref (2023); decrement-and-look is S0 (2008).
 */
#ifndef DSTREF_COUNT_H
#define DSTREF_COUNT_H

#include <dstref/atomic.h>
#include <dstref/config.h>
#include <dstref/report.h>

#define DSTREF_COUNT_MAX 0x80000000u /* references, at most */
#define DSTREF_COUNT_NEAR 0x70000000u /* references, "near the limit" */
#define DSTREF_COUNT_N_MAX 65535u /* references per operation */

/* Values of the word. */
#define DSTREF_COUNT_SATURATED 0xa0000000u
#define DSTREF_COUNT_RELEASED 0xc0000000u
#define DSTREF_COUNT_DEAD 0xe0000000u
#define DSTREF_COUNT_NOREF 0xffffffffu

/*
 *	field  written by            read by
 *	word   every get and put     every get and put
 */
struct dstref_count {
	DSTREF_ATOMIC(uint32_t) word; /* references - 1, or a zone */
};

DSTREF_STATIC_ASSERT(sizeof(struct dstref_count) == 4 &&
			     DSTREF_ALIGNOF(struct dstref_count) == 4,
		     "struct dstref_count must be 4 bytes: no lock may hide "
		     "in the atomic; build for a target with 32-bit atomics");

DSTREF_BEGIN_DECLS

/* The uncommon ends of the inline calls; not to be called otherwise. */
DSTREF_EXPORT DSTREF_COLD bool dstref_count_get_slow(struct dstref_count *count,
						     uint32_t n, uint32_t after,
						     const void *object,
						     const char *call);
DSTREF_EXPORT DSTREF_COLD bool dstref_count_put_slow(struct dstref_count *count,
						     uint32_t after,
						     const void *object,
						     const char *call);
DSTREF_EXPORT bool dstref_count_put_outside_of(struct dstref_count *count,
					       uint32_t n, const void *object,
					       const char *call);

DSTREF_END_DECLS

/**
 * dstref_count_init - start a count
 * @count: the count
 * @refs: references it starts with, 0 to DSTREF_COUNT_MAX; 0 starts it dead
 *
 * Context: any thread; nobody else may know the count yet.
 * Ordering: none; publication of the object orders it.
 */
static inline void dstref_count_init(struct dstref_count *count, uint32_t refs)
{
	if (!dstref_debug_arg(count, "dstref_count_init"))
		return;
	dstref_init_plain(&count->word, refs ? refs - 1 : DSTREF_COUNT_DEAD);
}

/**
 * dstref_count_read - how many references there are
 * @count: the count
 *
 * Context: the caller's own business that the memory is there.
 * Ordering: none; a value of the past as soon as it is returned.
 * Return: references; 0 once dead, DSTREF_COUNT_MAX when saturated.
 */
DSTREF_NODISCARD static inline uint32_t
dstref_count_read(const struct dstref_count *count)
{
	if (!dstref_debug_arg(count, "dstref_count_read"))
		return 0;
	uint32_t word = dstref_load_relaxed(&count->word);

	if ((int32_t)word >= 0)
		return word + 1;
	return word < DSTREF_COUNT_RELEASED ? DSTREF_COUNT_MAX : 0;
}

/**
 * dstref_count_get - take a reference
 * @count: the count
 *
 * Context: the caller holds a reference, or is inside a reader that protects
 *          the object. Never blocks.
 * Ordering: none when true: a holder has all that he needs from whoever gave
 *           him the pointer, the count hands over nothing. Acquire (A2) when
 *           false: what was done before the last put is seen, such as the
 *           object's leaving its slot.
 * Return: true when the caller now holds one more reference; false once the
 *         count is dead. A saturated count returns true and leaks.
 */
DSTREF_NODISCARD static inline bool dstref_count_get(struct dstref_count *count)
{
	if (!dstref_debug_arg(count, "dstref_count_get"))
		return false;
	uint32_t after = dstref_add_return_relaxed(&count->word, 1u);

	if (dstref_unlikely((int32_t)after < 0))
		return dstref_count_get_slow(count, 1, after, count,
					     "dstref_count_get");
	return true;
}

/**
 * dstref_count_get_n - take n references in one operation
 * @count: the count
 * @n: references, 1 to DSTREF_COUNT_N_MAX; 0 takes none and only says whether
 *     the count is live, more is reported and refused
 *
 * Context: as dstref_count_get().
 * Ordering: none.
 * Return: as dstref_count_get(), for all n or for none.
 */
DSTREF_NODISCARD static inline bool
dstref_count_get_n(struct dstref_count *count, uint32_t n)
{
	if (!dstref_debug_arg(count, "dstref_count_get_n"))
		return false;
	if (dstref_unlikely(n - 1 >= DSTREF_COUNT_N_MAX)) {
		/* Adding none would look like a get to a put that was last. */
		if (!n)
			return dstref_count_read(count) != 0;
		dstref_report_raise(DSTREF_REPORT_COUNT_RANGE,
				    "dstref_count_get_n", count, n, NULL);
		return false;
	}
	uint32_t after = dstref_add_return_relaxed(&count->word, n);

	if (dstref_unlikely((int32_t)after < 0))
		return dstref_count_get_slow(count, n, after, count,
					     "dstref_count_get_n");
	return true;
}

/**
 * dstref_count_put - let go of a reference
 * @count: the count
 *
 * Context: inside a reader where anyone may get without a reference (see the
 *          head). The caller holds a reference. Never blocks.
 * Ordering: release (R1); when it returns true also acquire (A1), so that
 *           whoever frees sees what every holder wrote.
 * Return: true to exactly one caller, who must free the object; after false
 *         nothing of it may be touched.
 */
DSTREF_NODISCARD static inline bool dstref_count_put(struct dstref_count *count)
{
	if (!dstref_debug_arg(count, "dstref_count_put"))
		return false;
	/* R1, with A1 in dstref_count_put_slow(). */
	uint32_t after = dstref_dec_return_release(&count->word);

	if (dstref_unlikely((int32_t)after < 0))
		return dstref_count_put_slow(count, after, count,
					     "dstref_count_put");
	return false;
}

/**
 * dstref_count_put_n - let go of n references in one operation
 * @count: the count
 * @n: references, 1 to DSTREF_COUNT_N_MAX, all the caller's; 0 does nothing,
 *     more is reported and refused
 *
 * Context: as dstref_count_put().
 * Ordering: as dstref_count_put().
 * Return: as dstref_count_put().
 */
DSTREF_NODISCARD static inline bool
dstref_count_put_n(struct dstref_count *count, uint32_t n)
{
	if (!dstref_debug_arg(count, "dstref_count_put_n"))
		return false;
	if (dstref_unlikely(n - 1 >= DSTREF_COUNT_N_MAX)) {
		if (n)
			dstref_report_raise(DSTREF_REPORT_COUNT_RANGE,
					    "dstref_count_put_n", count, n,
					    NULL);
		return false;
	}
	/* R1, with A1 in dstref_count_put_slow(). */
	uint32_t after = dstref_sub_return_release(&count->word, n);

	if (dstref_unlikely((int32_t)after < 0))
		return dstref_count_put_slow(count, after, count,
					     "dstref_count_put_n");
	return false;
}

/**
 * dstref_count_put_outside - let go of a reference, outside any reader
 * @count: the count
 *
 * A compare-and-swap loop that goes from the last reference to dead in one
 * step: the caller's own reference keeps the memory until it succeeds, and
 * nothing is looked at afterwards.
 *
 * Context: any thread, registered or not. The caller holds a reference.
 * Ordering: as dstref_count_put().
 * Return: as dstref_count_put().
 */
DSTREF_NODISCARD static inline bool
dstref_count_put_outside(struct dstref_count *count)
{
	if (!dstref_debug_arg(count, "dstref_count_put_outside"))
		return false;
	return dstref_count_put_outside_of(count, 1, count,
					   "dstref_count_put_outside");
}

/**
 * dstref_count_near_limit - is the count about to saturate, or has it?
 * @count: the count
 *
 * For a stack that would rather refuse work than leak an object.
 *
 * Context: as dstref_count_read().
 * Ordering: none.
 * Return: true from DSTREF_COUNT_NEAR references on.
 */
DSTREF_NODISCARD static inline bool
dstref_count_near_limit(const struct dstref_count *count)
{
	return dstref_count_read(count) >= DSTREF_COUNT_NEAR;
}

#endif
