/* SPDX-License-Identifier: MIT */
/**
 * DOC: bell - one thread sleeps until another rings
 *
 * A doorbell in one word: bit 0 says that somebody sleeps, the rest counts
 * the rings. Who waits takes a token, looks for work, and sleeps only if
 * nobody rang since the token. Who rings has made the work visible before.
 *
 * Ordering: the ring's addition is a release (B1) and the token's load an
 * acquire (C1): a token that counts a ring sees the work of that ring. A
 * ring that the token does not count either comes before the sleeper's mark,
 * which then finds the count moved, or after it, sees the mark, and wakes.
 * Both act on one word, so its modification order decides and no fence is
 * needed.
 *
 * Ringing is one atomic; the system call is made only for a sleeper. One
 * sleeper for each bell.
 */
#ifndef BELL_H
#define BELL_H

#include <dstref/atomic.h>

struct bell {
	DSTREF_ATOMIC(uint32_t) word;
};

#define BELL_SLEEPER 1u
#define BELL_RING 2u

/* nic.c; the system calls behind. */
void bell_wake(struct bell *bell);
void bell_wait(struct bell *bell, uint32_t token, uint32_t timeout_us);

static inline uint32_t bell_token(const struct bell *bell)
{
	return dstref_load_acquire(&bell->word) & ~BELL_SLEEPER; /* C1 */
}

static inline void bell_ring(struct bell *bell)
{
	uint32_t old =
		dstref_fetch_add_release(&bell->word, BELL_RING); /* B1 */

	if (dstref_unlikely(old & BELL_SLEEPER))
		bell_wake(bell);
}

#endif
