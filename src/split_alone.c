/* SPDX-License-Identifier: MIT */
/*
 * split_alone - struct dstref_split, a split count without a dst
 *
 * All of it is in split.c, by words; here the words of a struct dstref_split
 * are gathered.
 */
#include "split_private.h"

#include <errno.h>

static struct dstref_split *split_of(struct dstref_count *count)
{
	return container_of(count, struct dstref_split, count);
}

static void told(struct dstref_count *count)
{
	struct dstref_split *split = split_of(count);

	split->zero(split);
}

static struct split_words words_of(struct dstref_split *split)
{
	struct split_words words = {
		.count = &split->count,
		.state = &split->state,
		.cell = &split->cell,
		.zero = told,
	};

	return words;
}

int dstref_split_init(struct dstref_split *split,
		      struct dstref_split_domain *domain, uint32_t refs,
		      void (*zero)(struct dstref_split *split))
{
	if (!split || !domain || !zero)
		return -EINVAL;
	dstref_count_init(&split->count, refs);
	dstref_init_plain(&split->state, DSTREF_SPLIT_OFF);
	dstref_init_plain(&split->cell, (uint16_t)0);
	split->domain = domain;
	split->zero = zero;
	return 0;
}

void dstref_split_zero(struct dstref_split *split, uint32_t after,
		       const char *call)
{
	if (dstref_count_put_slow(&split->count, after, split, call))
		split->zero(split);
}

bool dstref_split_request(struct dstref_split *split)
{
	if (!dstref_debug_arg(split, "dstref_split_request"))
		return false;
	struct split_words words = words_of(split);

	return split_request(split->domain, &words);
}

int dstref_split_promote(struct dstref_split *split)
{
	if (!dstref_debug_arg(split, "dstref_split_promote"))
		return -EINVAL;
	struct split_words words = words_of(split);

	return split_promote(split->domain, &words);
}

int dstref_split_demote(struct dstref_split *split)
{
	if (!dstref_debug_arg(split, "dstref_split_demote"))
		return -EINVAL;
	struct split_words words = words_of(split);

	return split_demote(split->domain, &words);
}

int dstref_split_kill(struct dstref_split *split,
		      void (*confirm)(struct dstref_split *split))
{
	if (!dstref_debug_arg(split, "dstref_split_kill"))
		return -EINVAL;
	struct split_words words = words_of(split);

	words.confirm = confirm;
	return split_kill(split->domain, &words);
}

void dstref_split_end(struct dstref_split *split)
{
	if (!dstref_debug_arg(split, "dstref_split_end"))
		return;
	struct split_words words = words_of(split);

	split_end(split->domain, &words);
}

uint32_t dstref_split_read(struct dstref_split *split)
{
	if (!dstref_debug_arg(split, "dstref_split_read"))
		return 0;
	struct split_words words = words_of(split);

	return split_read(split->domain, &words);
}
