/* SPDX-License-Identifier: MIT */
/*
 * alloc - memory hooks that a test can question
 *
 * A block stands in memory like this, with p at the first odd multiple of
 * @align that leaves room for the head, so that it is not aligned to twice
 * @align by chance:
 *
 *	base | ... | head | p: size bytes | guard
 *
 * What comes back is checked against the head, filled, and kept for a while
 * before it is freed: who writes to it after that is found when it leaves.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"

#define MAGIC UINT64_C(0x616c6c6f63617465)
#define GUARD 16

struct alloc_block {
	uint64_t magic;
	void *base;
	size_t size;
	size_t align;
};

static void *of(struct alloc_block *block)
{
	return block + 1;
}

static bool filled(const void *from, size_t size, unsigned char with)
{
	const unsigned char *byte = from;

	for (size_t i = 0; i < size; i++)
		if (byte[i] != with)
			return false;
	return true;
}

static void fault(struct alloc *alloc, const void *ptr, const char *what)
{
	fprintf(stderr, "alloc: %p: %s\n", ptr, what);
	alloc->faults++;
}

void alloc_init(struct alloc *alloc)
{
	memset(alloc, 0, sizeof(*alloc));
	pthread_mutex_init(&alloc->lock, NULL);
}

void alloc_refuse(struct alloc *alloc, uint64_t nth)
{
	pthread_mutex_lock(&alloc->lock);
	alloc->refuse = nth ? alloc->calls + nth : 0;
	pthread_mutex_unlock(&alloc->lock);
}

/* Memory for a block; its head is filled in. */
static struct alloc_block *make(size_t size, size_t align)
{
	size_t room = align;
	struct alloc_block *block;
	char *base;

	while (room < sizeof(*block))
		room += 2 * align;
	base = aligned_alloc(2 * align, (room + size + GUARD + 2 * align - 1) /
						(2 * align) * (2 * align));
	if (!base)
		return NULL;
	block = (struct alloc_block *)(void *)(base + room) - 1;
	*block = (struct alloc_block){ MAGIC, base, size, align };
	memset(base + room, ALLOC_FRESH, size + GUARD);
	return block;
}

static void *hook_alloc(void *ctx, size_t size, size_t align, int node)
{
	struct alloc *alloc = ctx;
	struct alloc_block *block = NULL;

	(void)node;
	pthread_mutex_lock(&alloc->lock);
	if (!size || align < sizeof(void *) || (align & (align - 1)))
		fault(alloc, NULL,
		      "asked for a size or alignment that is none");
	else if (++alloc->calls == alloc->refuse)
		alloc->refused++;
	else
		block = make(size, align);
	if (block) {
		alloc->blocks++;
		alloc->bytes += size;
	}
	pthread_mutex_unlock(&alloc->lock);
	return block ? of(block) : NULL;
}

static void give_back(struct alloc *alloc, struct alloc_block *block)
{
	if (!block)
		return;
	if (!filled(of(block), block->size, ALLOC_STALE))
		fault(alloc, of(block), "written to after it was freed");
	free(block->base);
}

static void hook_free(void *ctx, void *ptr, size_t size)
{
	struct alloc *alloc = ctx;
	struct alloc_block *block = ptr ? (struct alloc_block *)ptr - 1 : NULL;

	pthread_mutex_lock(&alloc->lock);
	if (!block || block->magic != MAGIC) {
		fault(alloc, ptr, "freed, but not alive");
		goto out;
	}
	if (block->size != size)
		fault(alloc, ptr, "freed with another size");
	if (!filled((char *)ptr + block->size, GUARD, ALLOC_FRESH))
		fault(alloc, ptr, "written to beyond its end");
	block->magic = 0;
	alloc->blocks--;
	alloc->bytes -= block->size;
	memset(ptr, ALLOC_STALE, block->size);
	if (ALLOC_KEEPS) {
		give_back(alloc, alloc->kept[alloc->next]);
		alloc->kept[alloc->next] = block;
		alloc->next = (alloc->next + 1) % ALLOC_KEPT;
	} else {
		free(block->base);
	}
out:
	pthread_mutex_unlock(&alloc->lock);
}

struct dstref_net_mem alloc_mem(struct alloc *alloc)
{
	return (struct dstref_net_mem){ hook_alloc, hook_free, alloc };
}

size_t alloc_fini(struct alloc *alloc)
{
	for (unsigned int i = 0; i < ALLOC_KEPT; i++) {
		give_back(alloc, alloc->kept[i]);
		alloc->kept[i] = NULL;
	}
	if (alloc->blocks)
		fprintf(stderr, "alloc: %zu blocks, %zu bytes still alive\n",
			alloc->blocks, alloc->bytes);
	return alloc->blocks + alloc->faults;
}
