/* SPDX-License-Identifier: MIT */
/*
 * split_domain - domains, and the threads that have cells in them
 *
 * A domain has a place in a table of the process, and each thread has, by
 * thread-local storage, as many pointers as the table has places: its cells in
 * each domain. The number that an object shows is the place and the number of
 * its cell, so a get is two loads away from its cell.
 *
 * Attach takes an array that a thread has left, or makes one. Arrays stay until
 * the domain goes, for what they hold is part of the sums. A thread that exits
 * is detached by the destructor of a key. Destructors that run after it find
 * the pointers empty, and use the counts.
 *
 * Ordering: the domain's lock. It hands an array, and what its cells hold, from
 * the thread that left to the one that inherits; and to the sum of a merge.
 */
#include "split_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

__thread struct dstref_cell *dstref_split_cells[DSTREF_SPLIT_DOMAINS + 1];
__thread uint32_t dstref_split_self;

/* The last thread's; ids come again after 4095 threads, and only hint. */
static DSTREF_ATOMIC(uint32_t) selves;

/* All domains of the process, for thread exit. */
static pthread_mutex_t domains_lock = PTHREAD_MUTEX_INITIALIZER;
static struct dstref_split_domain *domains[DSTREF_SPLIT_DOMAINS];
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;
static pthread_key_t exit_key;
static int exit_error;

/* Memory. */

static void *domain_alloc(const struct dstref_split_attr *attr, size_t size)
{
	size = DSTREF_LINE_ROUND(size);
	return attr->alloc ? attr->alloc(attr->ctx, size, DSTREF_LINE_SIZE, -1)
			   : aligned_alloc(DSTREF_LINE_SIZE, size);
}

static void domain_free(const struct dstref_split_attr *attr, void *ptr,
			size_t size)
{
	if (attr->free)
		attr->free(attr->ctx, ptr, DSTREF_LINE_ROUND(size));
	else
		free(ptr);
}

static size_t domain_size(uint32_t numbers)
{
	return sizeof(struct dstref_split_domain) +
	       (numbers + 1) * sizeof(struct split_block);
}

/* Threads. */

/* Element 0 of a thread's array stands for no number. */
static size_t array_size(uint32_t numbers)
{
	return sizeof(struct split_array) +
	       (numbers + 1) * sizeof(struct dstref_cell);
}

static void array_leave(struct dstref_split_domain *domain)
{
	struct split_array *array = container_of(dstref_split_cells[domain->id],
						 struct split_array, cell);

	pthread_mutex_lock(&domain->lock);
	array->attached = false;
	domain->threads--;
	pthread_mutex_unlock(&domain->lock);
	dstref_split_cells[domain->id] = NULL;
}

static void thread_exit(void *cells)
{
	(void)cells;
	pthread_mutex_lock(&domains_lock);
	for (int id = 0; id < DSTREF_SPLIT_DOMAINS; id++)
		if (dstref_split_cells[id])
			array_leave(domains[id]);
	pthread_mutex_unlock(&domains_lock);
}

static void exit_init(void)
{
	exit_error = pthread_key_create(&exit_key, thread_exit);
}

/* An array that a thread has left, or a new one; locked. */
static struct split_array *array_enter(struct dstref_split_domain *domain)
{
	size_t size = array_size(domain->numbers);
	struct split_array *array;

	SLIST_FOREACH (array, &domain->arrays, link)
		if (!array->attached)
			return array;
	array = domain_alloc(&domain->attr, size);
	if (!array)
		return NULL;
	memset(array, 0, size);
	SLIST_INSERT_HEAD(&domain->arrays, array, link);
	return array;
}

int dstref_split_attach(struct dstref_split_domain *domain)
{
	if (!dstref_debug_arg(domain, "dstref_split_attach"))
		return -EINVAL;
	if (dstref_split_cells[domain->id])
		return 0;
	if (exit_error ||
	    pthread_setspecific(exit_key, (void *)dstref_split_cells))
		return -ENOMEM;
	pthread_mutex_lock(&domain->lock);
	struct split_array *array = array_enter(domain);

	if (array) {
		array->attached = true;
		domain->threads++;
	}
	pthread_mutex_unlock(&domain->lock);
	if (!array)
		return -ENOMEM;
	if (!dstref_split_self)
		dstref_split_self =
			dstref_fetch_add_relaxed(&selves, 1u) % 4095 + 1;
	dstref_split_cells[domain->id] = array->cell;
	return 0;
}

void dstref_split_detach(struct dstref_split_domain *domain)
{
	if (dstref_debug_arg(domain, "dstref_split_detach") &&
	    dstref_split_cells[domain->id])
		array_leave(domain);
}

/* Domains. */

static bool valid(const struct dstref_split_attr *attr)
{
	return attr->flavour && attr->flavour->update_call_rcu &&
	       !attr->alloc == !attr->free && !attr->reserved &&
	       attr->cells <= DSTREF_SPLIT_CELLS;
}

/* A place in the table of domains, or -1. */
static int id_take(struct dstref_split_domain *domain)
{
	int id = DSTREF_SPLIT_DOMAINS;

	pthread_mutex_lock(&domains_lock);
	while (id-- && domains[id])
		;
	if (id >= 0)
		domains[id] = domain;
	pthread_mutex_unlock(&domains_lock);
	return id;
}

/* The bits of a word that are numbers, 1 to @numbers. */
static uint64_t within(uint32_t numbers, uint32_t word)
{
	uint64_t bits = 0;

	for (uint32_t bit = 0; bit < SPLIT_BITS; bit++)
		if (word * SPLIT_BITS + bit - 1 < numbers)
			bits |= UINT64_C(1) << bit;
	return bits;
}

static void domain_init(struct dstref_split_domain *domain,
			const struct dstref_split_attr *attr, uint32_t numbers)
{
	memset(domain, 0, domain_size(numbers));
	domain->flavour = attr->flavour;
	domain->attr = *attr;
	domain->numbers = numbers;
	domain->next = 1;
	pthread_mutex_init(&domain->lock, NULL);
	SLIST_INIT(&domain->arrays);
	/* What is below and above the numbers is never free. */
	for (uint32_t word = 0; word < SPLIT_WORDS; word++)
		dstref_init_plain(&domain->taken[word], ~within(numbers, word));
	for (uint32_t number = 0; number <= numbers; number++)
		domain->block[number].domain = domain;
}

int dstref_split_domain_create(struct dstref_split_domain **result,
			       const struct dstref_split_attr *attr)
{
	if (!result || !attr || !valid(attr))
		return -EINVAL;
	uint32_t numbers = attr->cells ? attr->cells
				       : DSTREF_SPLIT_CELLS_DEFAULT;
	struct dstref_split_domain *domain =
		domain_alloc(attr, domain_size(numbers));

	if (!domain)
		return -ENOMEM;
	(void)pthread_once(&exit_once, exit_init);
	domain_init(domain, attr, numbers);
	int id = id_take(domain);

	if (id < 0) {
		pthread_mutex_destroy(&domain->lock);
		domain_free(attr, domain, domain_size(numbers));
		return -ENOSPC;
	}
	domain->id = (unsigned int)id;
	*result = domain;
	return 0;
}

int dstref_split_domain_destroy(struct dstref_split_domain *domain)
{
	struct split_array *array, *next;

	if (!domain)
		return 0;
	pthread_mutex_lock(&domains_lock);
	pthread_mutex_lock(&domain->lock);
	bool busy = domain->threads || dstref_load_relaxed(&domain->used);

	pthread_mutex_unlock(&domain->lock);
	if (!busy)
		domains[domain->id] = NULL;
	pthread_mutex_unlock(&domains_lock);
	if (busy)
		return -EBUSY;
	struct dstref_split_attr attr = domain->attr;

	for (array = SLIST_FIRST(&domain->arrays); array; array = next) {
		next = SLIST_NEXT(array, link);
		domain_free(&attr, array, array_size(domain->numbers));
	}
	pthread_mutex_destroy(&domain->lock);
	domain_free(&attr, domain, domain_size(domain->numbers));
	return 0;
}

void dstref_split_stats(const struct dstref_split_domain *pub,
			struct dstref_split_counters *stats)
{
	if (!dstref_debug_arg(pub, "dstref_split_stats") ||
	    !dstref_debug_arg(stats, "dstref_split_stats"))
		return;
	struct dstref_split_domain *domain = (struct dstref_split_domain *)pub;

	stats->cells = domain->numbers;
	stats->used = dstref_load_relaxed(&domain->used);
	stats->requests = dstref_load_relaxed(&domain->requests);
	stats->refused = dstref_load_relaxed(&domain->refused);
	pthread_mutex_lock(&domain->lock);
	stats->threads = domain->threads;
	stats->promotions = domain->promotions;
	stats->demotions = domain->demotions;
	pthread_mutex_unlock(&domain->lock);
}
