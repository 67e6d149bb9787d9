/* SPDX-License-Identifier: MIT */
/*
 * memory - a heap that never gives the same memory twice
 *
 * Each thread has an arena of its own that is handed out from the bottom up, so
 * an address depends on what its thread did, and not on what others did
 * meanwhile. Within a schedule nothing is reused, and between two blocks there
 * is room: a map of granules tells for each address the block that it is in or
 * beside, and the block whether it is live. New memory is filled with a
 * pattern.
 *
 * free() is a write of the whole block: it races with every access that is not
 * ordered before it, atomic or not. malloc() is one, too: an access that is not
 * ordered after it came to the address by a race.
 */
#include "state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA ((size_t)4 << 20)
#define GRANULE 16
#define BLOCKS (1 << 16)
#define GAP 32 /* bytes that belong to nobody */
#define FRESH 0xa5

struct block {
	char *at;
	size_t size;
	unsigned int owner, number; /* the number-th of its owner */
	uint32_t epoch;
	bool freed;
	unsigned int freer;
	const void *born, *died;
};

static struct {
	char *arenas;
	size_t used[THREADS];
	unsigned int counts[THREADS];
	uint32_t *granules; /* block + 1 */
	struct block blocks[BLOCKS];
	unsigned int count;
} * own;

void memory_create(void)
{
	own = ex_map(sizeof(*own));
	own->arenas = ex_map_at(ARENAS_AT, THREADS * ARENA);
	own->granules =
		ex_map(THREADS * ARENA / GRANULE * sizeof(*own->granules));
}

void memory_reset(void)
{
	for (unsigned int id = 0; id < THREADS; id++) {
		memset(own->granules + id * ARENA / GRANULE, 0,
		       own->used[id] / GRANULE * sizeof(*own->granules));
		own->used[id] = 0;
		own->counts[id] = 0;
	}
	own->count = 0;
}

bool memory_has(const void *address)
{
	return (uintptr_t)address - (uintptr_t)own->arenas < THREADS * ARENA;
}

/* The block that @address is in or beside. */
static struct block *block_near(const void *address)
{
	size_t at = (uintptr_t)address - (uintptr_t)own->arenas;
	uint32_t number = own->granules[at / GRANULE];

	return number ? &own->blocks[number - 1] : NULL;
}

static void *allocate(size_t align, size_t size, const void *pc)
{
	unsigned int id = ex.self->id;
	char *base = own->arenas + id * ARENA;
	size_t start = own->used[id] + GAP;

	if (align < GRANULE)
		align = GRANULE;
	start += -(uintptr_t)(base + start) & (align - 1);
	size_t end = (start + size + GAP + GRANULE - 1) / GRANULE * GRANULE;

	if (end > ARENA || own->count == BLOCKS)
		ex_fail(pc, "the heap of a schedule is used up");
	struct block *block = &own->blocks[own->count++];

	*block = (struct block){ .at = base + start,
				 .size = size,
				 .owner = id,
				 .number = own->counts[id]++,
				 .epoch = ex.self->clock.at[id],
				 .born = pc };
	for (size_t at = own->used[id] / GRANULE; at < end / GRANULE; at++)
		own->granules[id * ARENA / GRANULE + at] = own->count;
	own->used[id] = end;
	memset(block->at, FRESH, size);
	trace(K_MALLOC, pc, block->at, 0)->new = size;
	return block->at;
}

static void release(void *ptr, const void *pc)
{
	struct block *block = memory_has(ptr) ? block_near(ptr) : NULL;
	char name[200];

	if (!ptr)
		return;
	if (!block || block->at != ptr || block->freed) {
		memory_name(ptr, name, sizeof(name));
		ex_fail(pc, "%s: %s",
			block && block->at == ptr
				? "second free"
				: "free of what was not allocated",
			name);
	}
	memory_check(ptr, block->size, true, pc);
	race_free(ptr, block->size, "free", pc);
	block->freed = true;
	block->freer = ex.self->id;
	block->died = pc;
	trace(K_FREE, pc, ptr, 0)->new = block->size;
}

void memory_check(const void *address, size_t size, bool write, const void *pc)
{
	const char *at = address;
	char name[300];

	if (!memory_has(address))
		return;
	const struct block *block = block_near(address);

	if (block && !block->freed && at >= block->at &&
	    at + size <= block->at + block->size &&
	    clock_sees(&ex.self->clock, block->owner, block->epoch))
		return;
	memory_name(address, name, sizeof(name));
	trace(write ? K_WRITE : K_READ, pc, address, (unsigned int)size);
	if (!block || at < block->at || at + size > block->at + block->size)
		ex_fail(pc, "%s of %zu bytes beside an allocation: %s",
			write ? "write" : "read", size, name);
	if (block->freed)
		ex_fail(pc, "%s of %zu bytes of freed memory: %s",
			write ? "write" : "read", size, name);
	ex_fail(pc, "%s of %zu bytes races with the allocation of %s",
		write ? "write" : "read", size, name);
}

void memory_leaks(void)
{
	char name[300];

	for (unsigned int i = 0; i < own->count; i++) {
		if (own->blocks[i].freed)
			continue;
		memory_name(own->blocks[i].at, name, sizeof(name));
		ex_fail(NULL, "left allocated at the end: %s", name);
	}
}

void memory_name(const void *address, char *text, size_t size)
{
	char owner[16], born[160], died[200] = "", place[160];
	const struct block *block;

	if (!memory_has(address)) {
		trace_symbol(address, text, size);
		return;
	}
	block = block_near(address);
	if (!block) {
		snprintf(text, size, "heap %p", address);
		return;
	}
	trace_place(block->born, born, sizeof(born));
	if (block->freed) {
		trace_place(block->died, place, sizeof(place));
		snprintf(died, sizeof(died), ", freed by %s at %s",
			 proc_name(block->freer, owner), place);
	}
	snprintf(text, size, "heap %s#%u%+td (%zu bytes from %s%s)",
		 proc_name(block->owner, owner), block->number,
		 (const char *)address - block->at, block->size, born, died);
}

/* What the program calls instead of libc's: the linker sees to that. */

void *WRAP(malloc)(size_t size);
void *WRAP(calloc)(size_t count, size_t size);
void *WRAP(realloc)(void *ptr, size_t size);
void *WRAP(aligned_alloc)(size_t align, size_t size);
int WRAP(posix_memalign)(void **result, size_t align, size_t size);
void WRAP(free)(void *ptr);
void *REAL(malloc)(size_t size);
void *REAL(calloc)(size_t count, size_t size);
void *REAL(realloc)(void *ptr, size_t size);
void *REAL(aligned_alloc)(size_t align, size_t size);
int REAL(posix_memalign)(void **result, size_t align, size_t size);
void REAL(free)(void *ptr);

void *WRAP(malloc)(size_t size)
{
	if (!enter())
		return REAL(malloc)(size);
	void *ptr = allocate(0, size, CALLER);

	leave();
	return ptr;
}

void *WRAP(calloc)(size_t count, size_t size)
{
	if (!enter())
		return REAL(calloc)(count, size);
	void *ptr = NULL;

	if (!size || count <= SIZE_MAX / size) {
		ptr = allocate(0, count * size, CALLER);
		memset(ptr, 0, count * size);
	}
	leave();
	return ptr;
}

void *WRAP(realloc)(void *ptr, size_t size)
{
	if (!enter())
		return REAL(realloc)(ptr, size);
	void *next = allocate(0, size, CALLER);

	if (ptr) {
		const struct block *old = block_near(ptr);

		if (!old)
			ex_fail(CALLER, "realloc of what was not allocated");
		memcpy(next, ptr, old->size < size ? old->size : size);
		release(ptr, CALLER);
	}
	leave();
	return next;
}

void *WRAP(aligned_alloc)(size_t align, size_t size)
{
	if (!enter())
		return REAL(aligned_alloc)(align, size);
	void *ptr = allocate(align, size, CALLER);

	leave();
	return ptr;
}

int WRAP(posix_memalign)(void **result, size_t align, size_t size)
{
	if (!enter())
		return REAL(posix_memalign)(result, align, size);
	*result = allocate(align, size, CALLER);
	leave();
	return 0;
}

void WRAP(free)(void *ptr)
{
	if (!enter()) {
		REAL(free)(ptr);
		return;
	}
	release(ptr, CALLER);
	leave();
}

void *WRAP(memset)(void *to, int byte, size_t size);
void *WRAP(memcpy)(void *to, const void *from, size_t size);
void *WRAP(memmove)(void *to, const void *from, size_t size);
void *REAL(memset)(void *to, int byte, size_t size);
void *REAL(memcpy)(void *to, const void *from, size_t size);
void *REAL(memmove)(void *to, const void *from, size_t size);

void *WRAP(memset)(void *to, int byte, size_t size)
{
	if (enter()) {
		access_of(to, size, true, false, CALLER);
		leave();
	}
	return REAL(memset)(to, byte, size);
}

static void copies(void *to, const void *from, size_t size, const void *pc)
{
	if (!enter())
		return;
	access_of(from, size, false, false, pc);
	access_of(to, size, true, false, pc);
	leave();
}

void *WRAP(memcpy)(void *to, const void *from, size_t size)
{
	copies(to, from, size, CALLER);
	return REAL(memcpy)(to, from, size);
}

void *WRAP(memmove)(void *to, const void *from, size_t size)
{
	copies(to, from, size, CALLER);
	return REAL(memmove)(to, from, size);
}
