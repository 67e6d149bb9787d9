/* SPDX-License-Identifier: MIT */
/*
 * race - accesses that nothing orders
 *
 * C11's happens-before, kept as vector clocks. Each thread has one; its own
 * component, the epoch, goes up at each step and whenever something of it was
 * handed on. Who acquires joins the clock that was left with what he acquires.
 *
 * Memory is looked at in cells of 8 bytes. A cell remembers accesses: who, in
 * which epoch, which bytes, plain or atomic, read or write. A new access that
 * touches the same bytes, one of the two a write, one of the two plain, is a
 * race unless the new one's thread has seen the old one's epoch.
 *
 * A remembered access may be dropped when another stands for it: a later one of
 * the same thread that is at least as strong and covers its bytes; a plain
 * write of another thread that covers its bytes, which it was found to be
 * ordered before. What races with the dropped one then races with that one.
 */
#include "state.h"

#include <string.h>

#define CELLS (1u << 16) /* a power of two */
#define RECORDS (1u << 18)

struct record {
	struct record *next;
	const void *pc;
	uint32_t epoch;
	uint16_t event; /* of its thread, as many it had made */
	uint8_t thread, mask;
	bool write, atomic;
};

struct cell {
	uintptr_t key;
	uint32_t run;
	struct record *first;
};

static struct {
	struct cell cells[CELLS];
	struct record records[RECORDS];
	unsigned int cell_count, record_count;
} * own;

void race_create(void)
{
	own = ex_map(sizeof(*own));
}

void race_reset(void)
{
	own->cell_count = own->record_count = 0;
}

void clock_join(struct clock *into, const struct clock *from)
{
	for (int i = 0; i < THREADS; i++)
		if (into->at[i] < from->at[i])
			into->at[i] = from->at[i];
}

void clock_tick(struct thread *thread)
{
	thread->clock.at[thread->id]++;
}

bool clock_sees(const struct clock *clock, unsigned int thread, uint32_t epoch)
{
	return clock->at[thread] >= epoch;
}

/* The cell of @key; NULL when there is none and none is to be made. */
static struct cell *cell_of(uintptr_t key, bool make)
{
	/* Neighbours stay neighbours, for the cache's sake. */
	uint64_t region = (uint64_t)(key / 4096) * UINT64_C(0x9e3779b97f4a7c15);
	unsigned int at = (unsigned int)(key + (region >> 40)) % CELLS;

	for (;; at = (at + 1) % CELLS) {
		struct cell *cell = &own->cells[at];

		if (cell->run == ex.run) {
			if (cell->key == key)
				return cell;
			continue;
		}
		if (!make)
			return NULL;
		if (own->cell_count++ > CELLS / 2)
			ex_fail(NULL, "more memory is touched than there is "
				      "room to remember");
		*cell = (struct cell){ key, ex.run, NULL };
		return cell;
	}
}

static _Noreturn void race(const struct record *old, const struct record *new,
			   const void *address, const char *freed)
{
	static const char *const texts[2][2] = {
		{ "read", "write" }, { "atomic read", "atomic write" }
	};
	char place[200], earlier[200], name[16];

	trace(new->write ? K_WRITE : K_READ, new->pc, address, 0);
	memory_name(address, place, sizeof(place));
	trace_place(old->pc, earlier, sizeof(earlier));
	ex_fail(new->pc,
		"data race on %s: %s by %s is ordered neither before nor "
		"after the %s by %s at %s",
		place, freed ? freed : texts[new->atomic][new->write],
		proc_name(new->thread, name), texts[old->atomic][old->write],
		proc_name(old->thread, (char[16]){ 0 }), earlier);
}

static bool conflict(const struct record *a, const struct record *b)
{
	return a->mask & b->mask && a->thread != b->thread &&
	       (a->write || b->write) && !(a->atomic && b->atomic);
}

/* Does @new stand for @old? They do not race. */
static bool stands_for(const struct record *new, const struct record *old)
{
	if (old->mask & ~new->mask)
		return false;
	if (new->write && !new->atomic)
		return true;
	return new->thread == old->thread &&new->write >=
				      old->write &&new->atomic <= old->atomic;
}

static void cell_check(const struct cell *cell, const struct record *new,
		       const void *address, const char *freed)
{
	for (struct record *old = cell->first; old; old = old->next)
		if (conflict(old, new) &&
		    !clock_sees(&ex.self->clock, old->thread, old->epoch))
			race(old, new, address, freed);
}

static void cell_add(struct cell *cell, const struct record *new)
{
	struct record **at = &cell->first, *room = NULL;

	while (*at) {
		struct record *old = *at;

		if (!stands_for(new, old)) {
			at = &old->next;
			continue;
		}
		*at = old->next;
		room = old;
	}
	if (!room) {
		if (own->record_count == RECORDS)
			ex_fail(NULL, "more accesses than there is room to "
				      "remember");
		room = &own->records[own->record_count++];
	}
	*room = *new;
	room->next = cell->first;
	cell->first = room;
}

/*
 * A thread looks at another's stack: what is below where that thread was left
 * are frames that have returned.
 */
static void foreign(struct thread *thread, const char *at, size_t size)
{
	char name[16];

	if (at < thread->sp || thread->ended)
		ex_fail(NULL, "access to a frame of %s that has returned",
			proc_name(thread->id, name));
	if (thread->foreign < at + size)
		thread->foreign = at + size;
}

/* Constants and what libc keeps are no affair of the threads'. */
static bool tracked(const void *address, size_t size)
{
	unsigned int id;

	if (memory_has(address) || image_has(address))
		return true;
	if (!thread_on_stack(address, &id))
		return false;
	if (id != ex.self->id)
		foreign(&ex.threads[id], address, size);
	return true;
}

/* The frame of a call ends: as a free of what others touched of it. */
void race_frame_ends(const char *from, const void *pc)
{
	struct thread *self = ex.self;
	const char *to = self->depth ? self->calls[self->depth - 1].sp
				     : thread_stack_end(self->id);

	if (to > self->foreign)
		to = self->foreign;
	if (from < to)
		race_free(from, (size_t)(to - from), "return from its function",
			  pc);
}

/* The bytes of an access that lie in a cell. */
static uint8_t mask_of(uintptr_t key, uintptr_t from, uintptr_t to)
{
	uintptr_t base = key * 8;
	unsigned int low = from > base ? (unsigned int)(from - base) : 0;
	unsigned int high = to < base + 8 ? (unsigned int)(to - base) : 8;

	return (uint8_t)((0xffu << low) & (0xffu >> (8 - high)));
}

void race_access(const void *address, size_t size, bool write, bool atomic,
		 const void *pc)
{
	uintptr_t from = (uintptr_t)address, to = from + size;
	struct thread *self = ex.self;
	struct record new = { .pc = pc,
			      .epoch = self->clock.at[self->id],
			      .event = ex.count[self->id],
			      .thread = (uint8_t)self->id,
			      .write = write,
			      .atomic = atomic };

	if (!tracked(address, size))
		return;
	for (uintptr_t key = from / 8; key * 8 < to; key++) {
		struct cell *cell = cell_of(key, true);
		struct record *last = cell->first;

		new.mask = mask_of(key, from, to);
		if (last && last->thread == new.thread &&
		    last->epoch == new.epoch && !(new.mask & ~last->mask) &&
		    last->write >= write && last->atomic <= atomic)
			continue;
		cell_check(cell, &new, address, NULL);
		cell_add(cell, &new);
	}
}

void race_free(const void *address, size_t size, const char *what,
	       const void *pc)
{
	uintptr_t from = (uintptr_t)address, to = from + size;
	struct record new = { .pc = pc,
			      .thread = (uint8_t)ex.self->id,
			      .write = true };

	for (uintptr_t key = from / 8; key * 8 < to; key++) {
		struct cell *cell = cell_of(key, false);

		if (!cell)
			continue;
		new.mask = mask_of(key, from, to);
		cell_check(cell, &new, (const void *)(key * 8), what);
	}
}

void race_writers(const void *address, size_t size,
		  void (*fn)(unsigned int thread, unsigned int event))
{
	uintptr_t from = (uintptr_t)address, to = from + size;

	for (uintptr_t key = from / 8; key * 8 < to; key++) {
		struct cell *cell = cell_of(key, false);

		for (struct record *old = cell ? cell->first : NULL; old;
		     old = old->next)
			if (old->write && old->mask & mask_of(key, from, to))
				fn(old->thread, old->event);
	}
}
