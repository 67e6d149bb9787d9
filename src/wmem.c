/* SPDX-License-Identifier: MIT */
/*
 * wmem - the uncommon ends of charge and uncharge
 *
 * wmem.h shows the word: units, bytes, the mark of a waiter. The inline calls
 * change it once and look at the result; they come here when the account is
 * empty or a guard bit is wrong.
 *
 * The end. The subtraction that takes the last unit is one of a total order
 * of changes to one word, so exactly one result shows no unit, and its owner
 * is told. There is no revival as in count: a charge needs a unit that the
 * caller relies on, his own or his packet's. A charge that finds none is misuse
 * and is refused; a second one that comes before the first was pinned may take
 * the first one's unit for a packet's and go through, so this is a help in
 * finding the fault and no protection from it. It leaves nothing to decide
 * with a second look, and the one who is told owns the memory: his pinning
 * store is safe, and is there only for the misuse that may follow.
 *
 * Guards. Bit 63 is set when the units passed 2^22, or fell below zero. Bit 40
 * is clear when the bytes left 0 .. 2^39: one operation moves them by less
 * than 2^26, so 8191 threads together cannot carry into the units before one
 * of them has come here. Either pins: dead stays dead, everything else
 * becomes saturated, whose units never reach zero: the owner leaks rather
 * than being freed under a packet. It shows no bytes and the mark of a waiter,
 * so that whoever waited finds room and is woken by the next uncharge.
 *
 * Sleepers. A waiter is parked before he marks the word, and marks it before
 * he looks at its bytes, with one operation for both. An uncharge subtracts
 * and sees the mark, with one operation for both. One of the two is first in
 * the order of the word: if the mark, the uncharge sees it; if the uncharge,
 * the waiter sees its room. No order loses the wake-up, nothing is read after
 * the subtraction, and no fence is needed, for there is only one word.
 * tests/stress/wmem_wake.c would hang, or count too few, if either were split
 * in two; the explorer finds it at once (mutants of wait_room), and
 * tests/models/wake.pml has the orders that lose it.
 *
 * Ordering.
 *   R1 uncharge and close subtract with release; being read-modify-writes
 *      they continue each other's release sequences.
 *   A1 who is told loads the word with acquire: it reads from his own
 *      subtraction, the end of the sequence, hence sees what each of the
 *      others wrote before. (A load, not a fence: the thread sanitizer
 *      understands it.) tests/stress/wmem.c has completions write what the
 *      told one reads. Mutants: wmem_close.no_release, no_acquire.
 *   R2 recharge adds with release, A2 a waiter marks with acquire: room that
 *      the waiter sees brings what was done before it was made. Mutants:
 *      wmem_close.recharge_no_release, wait_no_acquire; of R1 with A2
 *      wait_room.uncharge_no_release, no_acquire.
 *   charge is relaxed: it publishes nothing, and what it relies on is held by
 *   the caller. The pinning stores are relaxed, as in count.
 */
#include <dstref/wmem.h>

#define CHARGE "dstref_wmem_charge"
#define UNCHARGE "dstref_wmem_uncharge"

static bool is_dead(uint64_t value)
{
	return value >= DSTREF_WMEM_RELEASED;
}

static bool is_saturated(uint64_t value)
{
	return value >> 63 && !is_dead(value);
}

/* Pins an account that misuse has spoilt, and reports if it was not yet. */
static void saturate(struct dstref_wmem *wmem, uint64_t before, uint64_t after,
		     const char *call)
{
	dstref_store_relaxed(&wmem->word,
			     DSTREF_WMEM_SATURATED | DSTREF_WMEM_WAITER);
	if (!is_saturated(before))
		dstref_report_raise(DSTREF_REPORT_WMEM_SATURATED, call, wmem,
				    after, NULL);
}

bool dstref_wmem_charge_slow(struct dstref_wmem *wmem, uint64_t before,
			     uint64_t after)
{
	if (is_dead(before) || before < DSTREF_WMEM_UNIT) {
		dstref_store_relaxed(&wmem->word, DSTREF_WMEM_DEAD);
		dstref_report_raise(DSTREF_REPORT_WMEM_DEAD, CHARGE, wmem,
				    before, NULL);
		return false;
	}
	saturate(wmem, before, after, CHARGE);
	return true;
}

/* The last unit is gone: the word is the caller's alone. */
static bool told(struct dstref_wmem *wmem, uint64_t after)
{
	/* A1, with R1 of every uncharge and of close. */
	(void)dstref_load_acquire(&wmem->word);
	dstref_store_relaxed(&wmem->word, DSTREF_WMEM_DEAD);
	if (dstref_wmem_value_bytes(after))
		dstref_report_raise(DSTREF_REPORT_WMEM_RESIDUE, UNCHARGE, wmem,
				    (uint64_t)dstref_wmem_value_bytes(after),
				    NULL);
	return true;
}

bool dstref_wmem_uncharge_slow(struct dstref_wmem *wmem, uint64_t after)
{
	if (is_dead(after)) {
		dstref_store_relaxed(&wmem->word, DSTREF_WMEM_DEAD);
		dstref_report_raise(DSTREF_REPORT_WMEM_UNDERFLOW, UNCHARGE,
				    wmem, after, NULL);
		return false;
	}
	if (after < DSTREF_WMEM_UNIT && (after & DSTREF_WMEM_BYTES_OK))
		return told(wmem, after);
	saturate(wmem, after, after, UNCHARGE);
	return false;
}

uint32_t dstref_wmem_cut_slow(const struct dstref_wmem *wmem, uint32_t bytes)
{
	dstref_report_raise(DSTREF_REPORT_WMEM_RANGE, CHARGE, wmem, bytes,
			    NULL);
	return DSTREF_WMEM_CHARGE_MAX;
}
