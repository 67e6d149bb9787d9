/* SPDX-License-Identifier: MIT */
/*
 * weak - loads that see older values
 *
 * With --weak a location remembers its values, and a load may see any that
 * C11's coherence leaves: none older than a write that happens before the load,
 * nor than what a load that happens before it, its own thread's among them,
 * has seen. Which one is a choice like the one of the process, and explored
 * like it. Read-modify-writes see the latest; one that fails may see an older
 * value, if it is another one than was expected. What a value carries for an
 * acquire is the release sequence's that it belongs to.
 *
 * So that a loop which waits for a value ends, a thread sees the same old value
 * of a location twice and then goes on to a later one: C11 promises that stores
 * become visible in finite time.
 *
 * What is not shown. The modification order is the order of execution, so no
 * load sees a value of the future (load buffering, values out of thin air), and
 * two threads' stores to two locations are not seen in contrary orders (2+2W).
 * Sequentially consistent operations and fences order more than C11 asks:
 * each one synchronises with those before it.
 */
#include "state.h"

#include <string.h>

#define ENTRIES (1 << 16)
#define PATIENCE 2 /* times that an older value may be seen */

struct entry {
	struct entry *older;
	uint64_t value;
	unsigned int writer;
	uint32_t epoch;
	struct clock sync;
	uint32_t seen[THREADS]; /* epoch of the first load of each thread */
	uint8_t times[THREADS];
};

static struct {
	unsigned int count;
	struct entry entries[ENTRIES];
} * own;

void weak_create(void)
{
	own = ex_map(sizeof(*own));
}

void weak_reset(void)
{
	own->count = 0;
}

static struct entry *append(struct object *object, uint64_t value)
{
	if (own->count == ENTRIES)
		ex_fail(NULL, "more than %d values to remember", ENTRIES);
	struct entry *entry = &own->entries[own->count++];

	memset(entry, 0, sizeof(*entry));
	entry->older = object->newest;
	entry->value = value;
	object->newest = entry;
	return entry;
}

/* A value that came there plainly is seen by all who may be there. */
static void adopt(struct object *object, unsigned int size)
{
	uint64_t value = memory_load(object->key, size);

	if (!object->newest || object->newest->value != value)
		append(object, value);
}

void weak_store(struct object *object, unsigned int size, uint64_t value,
		const struct clock *sync)
{
	adopt(object, size);
	struct entry *entry = append(object, value);

	entry->writer = ex.self->id;
	entry->epoch = ex.self->clock.at[ex.self->id];
	entry->sync = *sync;
}

/* Nothing older than @entry may be seen. */
static bool is_last(const struct entry *entry)
{
	const struct clock *clock = &ex.self->clock;

	if (!entry->older || clock_sees(clock, entry->writer, entry->epoch))
		return true;
	for (unsigned int id = 0; id < THREADS; id++)
		if (entry->seen[id] && clock_sees(clock, id, entry->seen[id]))
			return true;
	return false;
}

static struct entry *choose(struct object *object, const uint64_t *not_this)
{
	struct entry *choices[64] = { object->newest };
	struct entry *entry = object->newest;
	unsigned int count = 1;

	while (!is_last(entry) && count < 64) {
		entry = entry->older;
		if (entry->times[ex.self->id] < PATIENCE &&
		    !(not_this && entry->value == *not_this))
			choices[count++] = entry;
	}
	return choices[node_values(count)];
}

uint64_t weak_load(struct object *object, unsigned int size, struct clock *sync,
		   const uint64_t *not_this, bool *latest)
{
	unsigned int id = ex.self->id;

	adopt(object, size);
	struct entry *entry = choose(object, not_this);

	*latest = entry == object->newest;
	*sync = entry->sync;
	if (!entry->seen[id])
		entry->seen[id] = ex.self->clock.at[id];
	entry->times[id]++;
	return entry->value;
}
