/* SPDX-License-Identifier: MIT */
/*
 * split_tick - promotes what asked for it, merges what is quiet
 *
 * A tick goes round the numbers, from where the last one ended, and looks at
 * those that are in use, up to its budget. All under the domain's lock, so an
 * object that a block names is there: it ends by a merge, or takes itself out
 * in split_end(), both under the lock.
 *
 * Quiet is that neither gets nor puts of all cells together moved; their
 * difference alone does not tell. A look costs as many lines as there are
 * threads. The numbers are of 32 bits: a number of operations between two
 * looks that is a multiple of 2^32 would pass for none, and cost one needless
 * merge.
 *
 * Ordering: A3 of split.c. What is quiet is advisory.
 */
#include "split_private.h"

/* A request is granted, or its number given back; true when it was granted. */
static bool tick_request(struct dstref_split_domain *domain, uint32_t number)
{
	struct split_block *block = &domain->block[number];
	uint32_t state = split_asked(&block->words);
	uint32_t kind = split_kind(state);

	if (kind == DSTREF_SPLIT_PROMOTING && split_open(domain, number))
		return true;
	/* Dead or too large: OFF. Killed: KILLED, without a number. */
	dstref_store_relaxed(block->words.state,
			     split_state(state,
					 kind == DSTREF_SPLIT_PROMOTING
						 ? DSTREF_SPLIT_OFF
						 : kind,
					 0));
	split_give(domain, number);
	return false;
}

/* Closes what has been quiet for long enough. */
static bool tick_quiet(struct dstref_split_domain *domain, uint32_t number)
{
	struct split_block *block = &domain->block[number];
	struct split_sum sum = split_sum(domain, number);
	uint32_t flips = split_flips(dstref_load_relaxed(block->words.state));

	if (sum.gets != block->gets || sum.puts != block->puts) {
		block->gets = sum.gets;
		block->puts = sum.puts;
		block->quiet = 0;
		return false;
	}
	if (++block->quiet < UINT32_C(1) << flips)
		return false;
	split_close(domain, number, false);
	return true;
}

/* One number: 0 when there was nothing to look at, else 1, +1 when changed. */
static uint32_t tick_one(struct dstref_split_domain *domain, uint32_t number)
{
	/* A3, with R3 in split_request(). */
	switch (dstref_load_acquire(&domain->block[number].status)) {
	case SPLIT_REQUESTED:
		return 1 + tick_request(domain, number);
	case SPLIT_IN_USE:
		return 1 + tick_quiet(domain, number);
	}
	return 0;
}

uint32_t dstref_split_tick(struct dstref_split_domain *domain, uint32_t budget)
{
	uint32_t changed = 0;

	if (!dstref_debug_arg(domain, "dstref_split_tick"))
		return 0;
	pthread_mutex_lock(&domain->lock);
	for (uint32_t i = 0; i < domain->numbers && budget; i++) {
		uint32_t seen = tick_one(domain, domain->next);

		if (++domain->next > domain->numbers)
			domain->next = 1;
		budget -= seen > 0;
		changed += seen > 1;
	}
	pthread_mutex_unlock(&domain->lock);
	return changed;
}

uint32_t split_settle(struct dstref_split_domain *domain)
{
	uint32_t merging = 0;

	pthread_mutex_lock(&domain->lock);
	for (uint32_t number = 1; number <= domain->numbers; number++) {
		struct split_block *block = &domain->block[number];

		if (dstref_load_relaxed(&block->status) == SPLIT_IN_USE)
			split_close(domain, number, false);
		merging += dstref_load_relaxed(&block->status) == SPLIT_MERGING;
	}
	pthread_mutex_unlock(&domain->lock);
	return merging;
}
