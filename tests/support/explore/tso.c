/* SPDX-License-Identifier: MIT */
/*
 * tso - store buffers
 *
 * With --tso a store that is not sequentially consistent goes into a buffer of
 * its thread, first in, first out; its thread's loads look there first. That a
 * store reaches memory is a step of its own, by the buffer as a process of its
 * own. Read-modify-writes, sequentially consistent stores and fences, locks,
 * and the RCU calls of updaters wait until the buffer is empty. This is x86's
 * memory model, and SPARC's.
 *
 * The end of a reader goes through the buffer too, as a mark: a grace period
 * waits until what the reader stored is seen.
 */
#include "state.h"

#include <string.h>

#define ROOM 32

struct store {
	void *address; /* NULL: the end of a reader */
	unsigned int size;
	uint64_t value;
	struct clock sync;
	struct order order;
	const void *pc;
};

static struct {
	struct buffer {
		unsigned int first, count;
		struct store stores[ROOM];
	} buffers[THREADS];
} * own;

void tso_create(void)
{
	own = ex_map(sizeof(*own));
}

void tso_reset(void)
{
	for (int i = 0; i < THREADS; i++)
		own->buffers[i].count = 0;
}

bool tso_empty(unsigned int thread)
{
	return !own->buffers[thread].count;
}

/* The last place is for the end of a reader. */
bool tso_full(unsigned int thread)
{
	return own->buffers[thread].count >= ROOM / 2;
}

static struct store *append(void)
{
	struct buffer *buffer = &own->buffers[ex.self->id];

	if (buffer->count == ROOM)
		ex_fail(NULL, "more than %d ends of readers in a store buffer",
			ROOM / 2);
	struct store *store =
		&buffer->stores[(buffer->first + buffer->count++) % ROOM];

	memset(store, 0, sizeof(*store));
	store->order = ex.order[ex.self->id];
	return store;
}

void tso_put(void *address, unsigned int size, uint64_t value,
	     const struct clock *sync, const void *pc)
{
	struct store *store = append();

	store->address = address;
	store->size = size;
	store->value = value;
	store->sync = *sync;
	store->pc = pc;
}

void tso_put_left(void)
{
	append()->sync = ex.self->clock;
}

bool tso_find(const void *address, unsigned int size, uint64_t *value)
{
	const struct buffer *buffer = &own->buffers[ex.self->id];

	for (unsigned int i = buffer->count; i--;) {
		const struct store *store =
			&buffer->stores[(buffer->first + i) % ROOM];

		if (store->address != address)
			continue;
		if (store->size != size)
			ex_fail(store->pc, "a store of %u bytes is read as %u",
				store->size, size);
		*value = store->value;
		return true;
	}
	return false;
}

static struct store *oldest(unsigned int thread)
{
	struct buffer *buffer = &own->buffers[thread];

	return buffer->count ? &buffer->stores[buffer->first] : NULL;
}

static void drop(unsigned int thread)
{
	struct buffer *buffer = &own->buffers[thread];

	buffer->first = (buffer->first + 1) % ROOM;
	buffer->count--;
}

const void *tso_next(unsigned int thread)
{
	return oldest(thread) ? oldest(thread)->address : NULL;
}

void tso_flush(unsigned int thread)
{
	const struct store *store = oldest(thread);
	const void *touches[2] = { NULL, NULL };
	const enum touch how[2] = { WRITES, WRITES };

	if (!store)
		return;
	touches[0] = store->address;
	event_begin(BUFFERS + thread);
	event_after(&store->order);
	event_touches(touches, how);
	struct line *line =
		trace(K_FLUSH, store->pc, store->address, store->size);

	line->proc = (uint8_t)(BUFFERS + thread);
	line->old = memory_load(store->address, store->size);
	line->new = store->value;
	memory_store(store->address, store->size, store->value);
	object_of(store->address)->sync = store->sync;
	drop(thread);
	while ((store = oldest(thread)) && !store->address) {
		rcu_left(thread, &store->sync, &store->order);
		drop(thread);
	}
}
