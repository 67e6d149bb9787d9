/* SPDX-License-Identifier: MIT */
/*
 * count - the uncommon ends of get and put
 *
 * The word holds the references less one; count.h shows the zones. The inline
 * calls add or subtract without looking first, and come here when the sign of
 * the result is set. What may be seen here, and what is done about it:
 *
 *   get, after in the dead zone: the count is dead, or a put too many is
 *     under way. Pin dead, answer false.
 *   get, after in the saturated zone: the limit was passed. Pin saturated,
 *     answer true: the caller has a reference that will never be the last.
 *   put, after == NOREF: this put took the last reference, but a get inside
 *     a reader may have come between the subtraction and now. One
 *     compare-and-swap from NOREF to dead decides: it succeeds for exactly
 *     one put, for nothing leads from dead back to NOREF. Where it fails,
 *     a get has revived the count and its holder's put comes here in turn,
 *     or another put that found NOREF was first.
 *   put, after elsewhere in the dead zone: a put too many. Report, pin dead.
 *   put, after in the saturated zone: pin saturated; the object leaks.
 *
 * Pinning throws away what others added or subtracted meanwhile, and that is
 * right: in either zone the number no longer means anything. It cannot throw
 * away a live count except after a put too many, where the object is better
 * leaked than freed twice. Between an operation and the pinning that
 * corrects it the word may drift; 8191 threads of 65535 references stay
 * within the half zone of 2^29. A drift of half of that is reported, for it
 * cannot come from fewer than 4096 threads; only away from the side by which
 * the zone is entered, where it would be taken for an entry.
 *
 * The put that pins or tells looks at the word after its own subtraction,
 * when its reference no longer keeps the memory. That is why put runs inside
 * a reader where gets come from lookups, and why put_outside is a loop that
 * subtracts only with the decision in its hand: the caller's own reference
 * keeps the word above NOREF until the one successful compare-and-swap, and
 * nothing is read after it.
 *
 * Ordering.
 *   R1 every put subtracts with release: what a holder wrote before it is
 *      ordered before the subtraction. The subtractions are
 *      read-modify-writes, so each continues the release sequence of those
 *      before it.
 *   A1 the compare-and-swap that tells the last put acquires: it reads from
 *      that sequence, hence from every put before, and whoever frees sees
 *      what each holder wrote.
 *   Without R1 or A1 destroy may read a field before a holder's last write
 *   to it; tests/stress/count.c has two threads write and the told one read,
 *   which the thread sanitizer then reports. Mutants of the explorer:
 *   count_last.no_release, n_no_release, outside_no_release; no_acquire,
 *   outside_no_acquire.
 *   get is relaxed: it hands over nothing. The pointer, and with it the
 *   contents, came to the caller from a holder or from a lookup's acquire.
 *   A2 a get that finds the count dead pins it by an exchange with acquire and
 *      release, with R1 of the puts (and, being a read-modify-write, without
 *      breaking their sequence for the next one). Who is told no therefore
 *      sees what the last holder did before his put: that the object had
 *      left its slot. Without it a second look at the slot may show the same
 *      object once more on a machine with weak ordering, and slot_hold would
 *      take that for misuse; x86 orders the exchange anyway, but the stress
 *      test's loser reads what the last holder wrote, and the thread
 *      sanitizer reports it.
 *   Pinning saturated carries no data; the exchange is one function for both.
 *   A put that is not the last acquires nothing: it does not look any more.
 *   An acquire fence after R1 in place of A1 would order as well, but is not
 *   understood by the thread sanitizer.
 */
#include <dstref/count.h>

/* Half of what a zone reaches beyond its middle. */
#define CROWD (UINT32_C(1) << 28)

/* Far from the middle, and not on the side by which the zone is entered. */
static bool crowded(uint32_t zone, uint32_t after)
{
	return zone == DSTREF_COUNT_DEAD ? after < zone - CROWD
					 : after > zone + CROWD;
}

/* Pins @count at @zone, and says so when the word had drifted far from it. */
static void pin(struct dstref_count *count, uint32_t zone, uint32_t after,
		const void *object, const char *call)
{
	/* A2, with R1 of the puts. */
	(void)dstref_xchg_acq_rel(&count->word, zone);
	if (crowded(zone, after))
		dstref_report_raise(DSTREF_REPORT_COUNT_CROWDED, call, object,
				    after, NULL);
}

bool dstref_count_get_slow(struct dstref_count *count, uint32_t n,
			   uint32_t after, const void *object, const char *call)
{
	if (after >= DSTREF_COUNT_RELEASED) {
		pin(count, DSTREF_COUNT_DEAD, after, object, call);
		return false;
	}
	pin(count, DSTREF_COUNT_SATURATED, after, object, call);
	if (after - n < DSTREF_COUNT_MAX)
		dstref_report_raise(DSTREF_REPORT_COUNT_SATURATED, call, object,
				    after, NULL);
	return true;
}

bool dstref_count_put_slow(struct dstref_count *count, uint32_t after,
			   const void *object, const char *call)
{
	uint32_t noref = DSTREF_COUNT_NOREF;

	if (after == DSTREF_COUNT_NOREF) /* A1, with R1 of every put */
		return dstref_cas_acquire(&count->word, &noref,
					  DSTREF_COUNT_DEAD);
	if (after < DSTREF_COUNT_RELEASED) {
		pin(count, DSTREF_COUNT_SATURATED, after, object, call);
		return false;
	}
	pin(count, DSTREF_COUNT_DEAD, after, object, call);
	dstref_report_raise(DSTREF_REPORT_COUNT_UNDERFLOW, call, object, after,
			    NULL);
	return false;
}

bool dstref_count_put_outside_of(struct dstref_count *count, uint32_t n,
				 const void *object, const char *call)
{
	uint32_t old = dstref_load_relaxed(&count->word);
	uint32_t next;

	do {
		if (old >= DSTREF_COUNT_MAX && old < DSTREF_COUNT_RELEASED)
			return false; /* saturated, and reported then */
		if (old >= DSTREF_COUNT_RELEASED || n > old + 1) {
			(void)dstref_xchg_acq_rel(&count->word,
						  DSTREF_COUNT_DEAD);
			dstref_report_raise(DSTREF_REPORT_COUNT_UNDERFLOW, call,
					    object, old, NULL);
			return false;
		}
		next = n == old + 1 ? DSTREF_COUNT_DEAD : old - n;
		/* R1 for each, A1 for the one that goes to dead. */
	} while (!dstref_cas_acq_rel(&count->word, &old, next));
	return next == DSTREF_COUNT_DEAD;
}
