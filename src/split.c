/* SPDX-License-Identifier: MIT */
/*
 * split - cells of gets and puts, and how they become one count again
 *
 * The total. While an object is ON or CLOSING its references are
 *
 *	count + sum of (gets - puts) over all cells of its number - base - BIAS
 *
 * and a get or put in either place changes it by one. Both places are always
 * valid, so nobody must agree on the mode: it says only whether a count that
 * fell to nothing means zero. It never falls so while the bias is in it; so
 * nobody is told, and the memory stays, until a merge took the bias out.
 *
 * Why the bias is not eaten. References that are taken in cells and let go of
 * in the count would use it up. When the low half of one of a cell's numbers
 * wraps, its thread moves the difference to the count and makes the two
 * numbers equal, so a cell never holds more than 65535 either way, and 8191
 * threads hold less than the bias. A promotion is refused from 2^28 references
 * on, so the bias does not reach the saturated zone either.
 *
 * Cells are never cleared: who writes another thread's cell races with it. What
 * is left in them when an object is merged, summed up, is the base of the next
 * object that gets the number. Arrays of threads that have gone stay in the
 * registry, are summed as the others, and are inherited.
 *
 * A promotion adds the bias to a count that is alive, by compare-and-swap, and
 * then shows the number. A close takes the number back, and queues the merge by
 * call_rcu: when it runs, every reader that saw the number has left, and the
 * cells of it do not move any more. No lock is held meanwhile.
 *
 * The merge is one compare-and-swap loop that writes dead itself when nothing
 * is left. A blind addition would not do: between it and the second look, a
 * reader could revive the object and free it under the merger, who is in no
 * reader and holds no reference. For the same reason the state is changed
 * before the compare-and-swap, and nothing of the object is touched after it,
 * unless zero was found: then the object is the merger's.
 *
 * Blocks. Each number has one, with the object that uses it, the base, and the
 * callback head. A request comes from a packet's path: it takes a number by a
 * bit, fills in the block, which is its own until then, and puts state from OFF
 * to PROMOTING with the number in it. All else is done under the domain's lock.
 * A request that is still to mark its block may be overtaken by kill; so kill
 * leaves the block to the tick that finds it marked, or to split_end, which
 * comes a grace period after the last reference and so after the request.
 * Either is under the lock, so a tick never looks at an object that is gone.
 *
 *	status     meaning                        left by
 *	FREE       nobody's, or being requested   request, promote
 *	REQUESTED  its object asks                tick, promote, end
 *	IN_USE     its object is ON               close
 *	MERGING    a callback is under way        merge
 *
 * Ordering.
 *   R1 a put in a cell stores with release, A1 the merge's sum loads with
 *      acquire: destroy sees what each holder wrote. The grace period would
 *      order the same; the pair is free on x86, and says it to those who do
 *      not know the flavour, such as the thread sanitizer. R1/A1 of count.c
 *      for those who used the count.
 *   R2 the cell's number is stored with release after the bias was added, A2
 *      gets and puts load it with acquire: whoever was given a reference that
 *      was taken in a cell, and lets go of it in the count, comes after the
 *      bias there. Without it he could take the count to nothing before the
 *      bias shows, and tell a false zero.
 *   R3 request puts state to PROMOTING with release, and marks the block with
 *      release; A3 whoever finds either acquires, and sees the block filled.
 *   The number is taken back relaxed: the grace period orders it. Gets are
 *   relaxed as in count.c: a get hands over nothing.
 *   No test can fail without R1, A1 of the cells: the grace period orders the
 *   same in any scheme that is one. None shows R2, A2 or R3, A3 yet.
 *
 * The protocol is modelled in tests/models/split.pml; the code itself is
 * explored in tests/explore/split_merge.c, with what must not be done to it as
 * mutants. What touches the object after the merge's compare-and-swap is not
 * seen there, for callbacks run on one thread.
 */
#include "split_private.h"

#include <errno.h>

/* Numbers: a bit each. Taking one is all that orders; its block is free. */

static uint32_t number_take(struct dstref_split_domain *domain)
{
	for (uint32_t word = 0; word <= domain->numbers / SPLIT_BITS; word++) {
		uint64_t taken = dstref_load_relaxed(&domain->taken[word]);

		while (~taken) {
			uint32_t bit = (uint32_t)__builtin_ctzll(~taken);
			uint64_t more = taken | UINT64_C(1) << bit;

			/* Acquire, with the release of split_give(). */
			if (!dstref_cas_acquire(&domain->taken[word], &taken,
						more))
				continue;
			(void)dstref_fetch_add_relaxed(&domain->used,
						       (uint64_t)1);
			return word * SPLIT_BITS + bit;
		}
	}
	return 0;
}

void split_give(struct dstref_split_domain *domain, uint32_t number)
{
	struct split_block *block = &domain->block[number];
	uint64_t bit = UINT64_C(1) << number % SPLIT_BITS;

	dstref_store_relaxed(&block->status, SPLIT_FREE);
	(void)dstref_fetch_sub_relaxed(&domain->used, (uint64_t)1);
	(void)dstref_fetch_sub_release(&domain->taken[number / SPLIT_BITS],
				       bit);
}

struct split_sum split_sum(const struct dstref_split_domain *domain,
			   uint32_t number)
{
	struct split_sum sum = { 0, 0 };
	struct split_array *array;

	SLIST_FOREACH (array, &domain->arrays, link) {
		sum.gets += dstref_load_relaxed(&array->cell[number].gets);
		/* A1, with R1 in dstref_cell_put() and dstref_split_flush(). */
		sum.puts += dstref_load_acquire(&array->cell[number].puts);
	}
	return sum;
}

/* What the cells hold for the object that has the number now. */
static int32_t held(const struct split_block *block, struct split_sum sum)
{
	return (int32_t)(sum.gets - sum.puts - block->base);
}

/*
 * Moves what a cell holds to the count. The order of the two is nothing: no
 * merge runs beside a reader, and a read beside it is not exact.
 */
void dstref_split_flush(struct dstref_count *count, struct dstref_cell *cell,
			const void *object, const char *call)
{
	uint32_t gets = dstref_load_relaxed(&cell->gets);
	uint32_t puts = dstref_load_relaxed(&cell->puts);
	uint32_t more = gets - puts;
	/* R1: puts that move to the count are let go of there. */
	uint32_t after = dstref_fetch_add_release(&count->word, more) + more;

	/* R1, with A1 in split_sum(). */
	dstref_store_release(&cell->puts, gets);
	if (dstref_likely((int32_t)after >= 0))
		return;
	if ((int32_t)more > 0)
		(void)dstref_count_get_slow(count, more, after, object, call);
	else if (after != DSTREF_COUNT_NOREF)
		(void)dstref_count_put_slow(count, after, object, call);
}

/* Promotion and merge of a count. */

/* Adds the bias to a count that is alive and not too large. */
static bool bias_add(struct dstref_count *count)
{
	uint32_t word = dstref_load_relaxed(&count->word);

	do {
		if (word >= DSTREF_SPLIT_REFS)
			return false; /* dead and saturated too */
	} while (!dstref_cas_relaxed(&count->word, &word,
				     word + DSTREF_SPLIT_BIAS));
	return true;
}

/* What the merge makes of a word; the true total may be any number. */
static uint32_t merged(uint32_t word, int32_t cells)
{
	int64_t total = (int64_t)word + cells - (int64_t)DSTREF_SPLIT_BIAS;

	if (total < 0)
		return DSTREF_COUNT_DEAD;
	return total < DSTREF_COUNT_MAX ? (uint32_t)total
					: DSTREF_COUNT_SATURATED;
}

/* Takes the bias out and adds what the cells held; true when none is left. */
static bool bias_remove(struct dstref_count *count, int32_t cells)
{
	static const char call[] = "merge of a split count";
	uint32_t word = dstref_load_relaxed(&count->word);
	uint32_t next;

	do {
		if (word >= DSTREF_COUNT_MAX)
			return false; /* pinned by misuse, and reported then */
		next = merged(word, cells);
		/* A1 where it goes to dead, with R1 of count.c; R1 else. */
	} while (!dstref_cas_acq_rel(&count->word, &word, next));
	int64_t total = (int64_t)word + cells - (int64_t)DSTREF_SPLIT_BIAS;

	if (total < -1)
		dstref_report_raise(DSTREF_REPORT_COUNT_UNDERFLOW, call, count,
				    (uint64_t)total, NULL);
	return total == -1;
}

static void confirm(const struct split_words *words)
{
	words->confirm(container_of(words->count, struct dstref_split, count));
}

static void merge(struct rcu_head *head)
{
	struct split_block *block =
		container_of(rcu_deferred(head), struct split_block, rcu);
	struct dstref_split_domain *domain = block->domain;
	uint32_t number = (uint32_t)(block - domain->block);

	rcu_tag_acquire(domain->flavour);
	pthread_mutex_lock(&domain->lock);
	struct split_words words = block->words;
	struct split_sum sum = split_sum(domain, number);
	int32_t cells = held(block, sum);
	uint32_t state = dstref_load_relaxed(words.state);
	uint32_t flips =
		split_flips(state) + (split_flips(state) < SPLIT_FLIPS_MAX);
	bool killed = block->killed;

	/* Before the count: afterwards the object may be gone. */
	dstref_store_relaxed(words.state, flips << SPLIT_STATE_FLIP_SHIFT |
						  (killed ? DSTREF_SPLIT_KILLED
							  : DSTREF_SPLIT_OFF));
	bool last = bias_remove(words.count, cells);

	block->base = sum.gets - sum.puts;
	domain->demotions++;
	split_give(domain, number);
	pthread_mutex_unlock(&domain->lock);
	/* Who waits for it holds a reference until then. */
	if (killed && words.confirm)
		confirm(&words);
	if (last)
		words.zero(words.count);
}

/* Splits the object of a block that is the caller's to decide on; locked. */
bool split_open(struct dstref_split_domain *domain, uint32_t number)
{
	struct split_block *block = &domain->block[number];
	uint32_t state = dstref_load_relaxed(block->words.state);

	if (!bias_add(block->words.count))
		return false;
	struct split_sum sum = split_sum(domain, number);

	block->gets = sum.gets;
	block->puts = sum.puts;
	block->quiet = 0;
	block->killed = false;
	dstref_store_relaxed(&block->status, SPLIT_IN_USE);
	dstref_store_relaxed(block->words.state,
			     split_state(state, DSTREF_SPLIT_ON, number));
	/* R2, with A2 of gets and puts. */
	dstref_store_release(block->words.cell,
			     (uint16_t)(domain->id << 12 | number));
	domain->promotions++;
	return true;
}

/* Takes the number back from the object, and queues the merge; locked. */
void split_close(struct dstref_split_domain *domain, uint32_t number,
		 bool killed)
{
	struct split_block *block = &domain->block[number];
	uint32_t state = dstref_load_relaxed(block->words.state);

	block->killed = killed;
	dstref_store_relaxed(&block->status, SPLIT_MERGING);
	dstref_store_relaxed(block->words.state,
			     split_state(state, DSTREF_SPLIT_CLOSING, number));
	dstref_store_relaxed(block->words.cell, block->words.idle);
	rcu_defer(domain->flavour, &block->rcu, merge);
}

/* A number with its block filled in, or 0 when there is none. */
static uint32_t block_take(struct dstref_split_domain *domain,
			   const struct split_words *words)
{
	uint32_t number = number_take(domain);

	if (number)
		domain->block[number].words = *words;
	else
		(void)dstref_fetch_add_relaxed(&domain->refused, (uint64_t)1);
	return number;
}

/* OFF becomes PROMOTING with a number; 0 when it is not, or none is free. */
static uint32_t reserve(struct dstref_split_domain *domain,
			const struct split_words *words)
{
	uint32_t state = dstref_load_relaxed(words->state);

	if (split_kind(state) != DSTREF_SPLIT_OFF)
		return 0;
	uint32_t number = block_take(domain, words);

	while (number) {
		uint32_t asking =
			split_state(state, DSTREF_SPLIT_PROMOTING, number);

		/* R3, with A3 in split_asked(). */
		if (dstref_cas_acq_rel(words->state, &state, asking))
			break;
		if (split_kind(state) == DSTREF_SPLIT_OFF)
			continue;
		split_give(domain, number);
		return 0;
	}
	return number;
}

bool split_request(struct dstref_split_domain *domain,
		   const struct split_words *words)
{
	uint32_t number = reserve(domain, words);
	uint32_t status = SPLIT_FREE;

	if (!number) {
		uint32_t kind = split_kind(dstref_load_relaxed(words->state));

		return kind == DSTREF_SPLIT_PROMOTING ||
		       kind == DSTREF_SPLIT_ON;
	}
	/* R3, with A3 in tick_one(); fails when promote was faster. */
	(void)dstref_cas_acq_rel(&domain->block[number].status, &status,
				 SPLIT_REQUESTED);
	(void)dstref_fetch_add_relaxed(&domain->requests, (uint64_t)1);
	return true;
}

/* The state, and the block that it names filled in. */
uint32_t split_asked(const struct split_words *words)
{
	return dstref_load_acquire(words->state); /* A3, with R3 in reserve() */
}

static int promote_locked(struct dstref_split_domain *domain,
			  const struct split_words *words)
{
	uint32_t number = reserve(domain, words);
	uint32_t state = split_asked(words);

	switch (split_kind(state)) {
	case DSTREF_SPLIT_ON:
		return 0;
	case DSTREF_SPLIT_CLOSING:
		return -EBUSY;
	case DSTREF_SPLIT_KILLED:
		return -ESHUTDOWN;
	case DSTREF_SPLIT_OFF:
		return -ENOSPC;
	}
	if (split_open(domain, split_number(state)))
		return 0;
	if (number) { /* else it is a request's, which a tick gives up */
		dstref_store_relaxed(words->state,
				     split_state(state, DSTREF_SPLIT_OFF, 0));
		split_give(domain, number);
	}
	return -ESHUTDOWN;
}

int split_promote(struct dstref_split_domain *domain,
		  const struct split_words *words)
{
	pthread_mutex_lock(&domain->lock);
	int err = promote_locked(domain, words);

	pthread_mutex_unlock(&domain->lock);
	return err;
}

int split_demote(struct dstref_split_domain *domain,
		 const struct split_words *words)
{
	pthread_mutex_lock(&domain->lock);
	uint32_t state = split_asked(words);
	bool on = split_kind(state) == DSTREF_SPLIT_ON;

	if (on)
		split_close(domain, split_number(state), false);
	pthread_mutex_unlock(&domain->lock);
	return on ? 0 : -EALREADY;
}

/* Makes it KILLED; true when a merge will do that, and confirm it. */
static bool kill_locked(struct dstref_split_domain *domain,
			const struct split_words *words)
{
	uint32_t state = split_asked(words);

	/* A request may still come between; a merge may not. */
	while (split_kind(state) == DSTREF_SPLIT_OFF ||
	       split_kind(state) == DSTREF_SPLIT_PROMOTING)
		if (dstref_cas_acq_rel(words->state, &state,
				       split_state(state, DSTREF_SPLIT_KILLED,
						   split_number(state))))
			return false;
	struct split_block *block = &domain->block[split_number(state)];

	block->words.confirm = words->confirm;
	block->words.idle = words->idle;
	if (split_kind(state) == DSTREF_SPLIT_ON)
		split_close(domain, split_number(state), true);
	block->killed = true;
	return true;
}

int split_kill(struct dstref_split_domain *domain,
	       const struct split_words *words)
{
	pthread_mutex_lock(&domain->lock);
	uint32_t state = split_asked(words);
	uint32_t number = split_number(state);
	bool again = split_kind(state) == DSTREF_SPLIT_KILLED ||
		     (split_kind(state) == DSTREF_SPLIT_CLOSING &&
		      domain->block[number].killed);
	bool later = !again && kill_locked(domain, words);

	dstref_store_relaxed(words->cell, words->idle);

	pthread_mutex_unlock(&domain->lock);
	if (!again && !later && words->confirm)
		confirm(words);
	return again ? -EALREADY : 0;
}

void split_end(struct dstref_split_domain *domain,
	       const struct split_words *words)
{
	if (!split_number(split_asked(words)))
		return;
	pthread_mutex_lock(&domain->lock);
	/* Once more: a tick may have given it up. */
	uint32_t state = dstref_load_relaxed(words->state);
	uint32_t kind = split_kind(state);

	if (split_number(state) && kind != DSTREF_SPLIT_ON &&
	    kind != DSTREF_SPLIT_CLOSING)
		split_give(domain, split_number(state));
	pthread_mutex_unlock(&domain->lock);
}

uint32_t split_read(struct dstref_split_domain *domain,
		    const struct split_words *words)
{
	pthread_mutex_lock(&domain->lock);
	uint32_t state = split_asked(words);
	uint32_t word = dstref_load_relaxed(&words->count->word);
	uint32_t kind = split_kind(state);

	if ((kind == DSTREF_SPLIT_ON || kind == DSTREF_SPLIT_CLOSING) &&
	    word < DSTREF_COUNT_MAX) {
		uint32_t number = split_number(state);

		word = merged(word, held(&domain->block[number],
					 split_sum(domain, number)));
	}
	pthread_mutex_unlock(&domain->lock);
	if (word < DSTREF_COUNT_MAX)
		return word + 1;
	return word < DSTREF_COUNT_RELEASED ? DSTREF_COUNT_MAX : 0;
}
