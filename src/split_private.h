/* SPDX-License-Identifier: MIT */
/*
 * split_private - what split.c, split_domain.c and split_tick.c share
 *
 * struct dstref_split has its words together. A dst keeps the cell's number on
 * the line that packets read, and count and state on the one that is written.
 * Both come here as three pointers.
 */
#ifndef DSTREF_SPLIT_PRIVATE_H
#define DSTREF_SPLIT_PRIVATE_H

#include "rcu.h"

#include <dstref/split.h>

#include <pthread.h>
#include <sys/queue.h>

struct split_words {
	struct dstref_count *count;
	DSTREF_ATOMIC(uint32_t) * state;
	DSTREF_ATOMIC(uint16_t) * cell;
	uint16_t idle; /* what cell shows while it is not split */
	/* Told by the merge that it found the last reference gone. */
	void (*zero)(struct dstref_count *count);
	/* Told by the merge of a killed one; a dst has none. */
	void (*confirm)(struct dstref_split *split);
};

/* The state word: what it is, the number, how often it was merged. */
#define SPLIT_STATE_KIND 0x7u
#define SPLIT_STATE_NUMBER_SHIFT 3
#define SPLIT_STATE_NUMBER 0x7ff8u
#define SPLIT_STATE_FLIP_SHIFT 16
#define SPLIT_STATE_FLIPS (0x7u << SPLIT_STATE_FLIP_SHIFT)
#define SPLIT_FLIPS_MAX 6u /* 2^6 quiet ticks at most */

enum split_status { SPLIT_FREE, SPLIT_REQUESTED, SPLIT_IN_USE, SPLIT_MERGING };

struct split_block {
	struct dstref_rcu_head rcu;
	struct dstref_split_domain *domain;
	struct split_words words;
	DSTREF_ATOMIC(uint32_t) status;
	uint32_t base; /* what the cells held before this object */
	uint32_t gets, puts; /* at the last tick */
	uint32_t quiet; /* ticks */
	bool killed; /* what becomes of it after the merge */
};

/* The cells of one thread; element 0 is never used. */
struct split_array {
	SLIST_ENTRY(split_array) link;
	bool attached;
	DSTREF_LINE_START struct dstref_cell cell[];
};

SLIST_HEAD(split_arrays, split_array);

#define SPLIT_BITS 64
#define SPLIT_WORDS ((DSTREF_SPLIT_CELLS + 1) / SPLIT_BITS)

struct dstref_split_domain {
	const struct rcu_flavor_struct *flavour;
	struct dstref_split_attr attr;
	unsigned int id;
	uint32_t numbers; /* 1 .. numbers */
	size_t size; /* bytes of an array */
	pthread_mutex_t lock;
	struct split_arrays arrays;
	uint64_t threads, promotions, demotions;
	uint32_t next; /* the tick's */
	DSTREF_LINE_START DSTREF_ATOMIC(uint64_t) requests;
	DSTREF_ATOMIC(uint64_t) refused;
	DSTREF_ATOMIC(uint64_t) used;
	DSTREF_ATOMIC(uint64_t) taken[SPLIT_WORDS];
	struct split_block block[]; /* numbers + 1 */
};

DSTREF_STATIC_ASSERT((DSTREF_SPLIT_CELLS << SPLIT_STATE_NUMBER_SHIFT) ==
			     SPLIT_STATE_NUMBER,
		     "a number must fit its bits of the state word");

static inline uint32_t split_kind(uint32_t state)
{
	return state & SPLIT_STATE_KIND;
}

static inline uint32_t split_number(uint32_t state)
{
	return (state & SPLIT_STATE_NUMBER) >> SPLIT_STATE_NUMBER_SHIFT;
}

static inline uint32_t split_flips(uint32_t state)
{
	return (state & SPLIT_STATE_FLIPS) >> SPLIT_STATE_FLIP_SHIFT;
}

/* The same state with another kind and number. */
static inline uint32_t split_state(uint32_t state, uint32_t kind,
				   uint32_t number)
{
	return (state & SPLIT_STATE_FLIPS) |
	       number << SPLIT_STATE_NUMBER_SHIFT | kind;
}

/* The cells of a number, added up; under the lock. */
struct split_sum {
	uint32_t gets, puts;
};

struct split_sum split_sum(const struct dstref_split_domain *domain,
			   uint32_t number);

/* The state, and the block that it names filled in. */
uint32_t split_asked(const struct split_words *words);

/* Splits the object of a block; false when it is dead or too large. Under the
 * lock. */
bool split_open(struct dstref_split_domain *domain, uint32_t number);

/* Takes the number back from the object, queues the merge. Under the lock. */
void split_close(struct dstref_split_domain *domain, uint32_t number,
		 bool killed);

/* Gives a number back that no object uses. */
void split_give(struct dstref_split_domain *domain, uint32_t number);

/* The calls of split.h, by words. */
bool split_request(struct dstref_split_domain *domain,
		   const struct split_words *words);
int split_promote(struct dstref_split_domain *domain,
		  const struct split_words *words);
int split_demote(struct dstref_split_domain *domain,
		 const struct split_words *words);
int split_kill(struct dstref_split_domain *domain,
	       const struct split_words *words);
void split_end(struct dstref_split_domain *domain,
	       const struct split_words *words);
/* Closes all that are split; how many merges are under way. */
uint32_t split_settle(struct dstref_split_domain *domain);
uint32_t split_read(struct dstref_split_domain *domain,
		    const struct split_words *words);

#endif
