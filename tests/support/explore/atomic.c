/* SPDX-License-Identifier: MIT */
/*
 * atomic - what the atomics do to memory and to the clocks
 *
 * An atomic is a point; its location is what it touches, a load as a reader
 * and the others as writers (a compare-and-swap that fails turns out to be a
 * reader). Memory itself holds the latest value; tso.c and weak.c say how a
 * thread may see another.
 *
 * Clocks. A location carries what an acquire of its value sees: the clock of
 * the release that wrote it, joined by those of the read-modify-writes since (a
 * release sequence). A relaxed store begins anew with what a release fence
 * before it left, which is nothing when there was none; that a store of the
 * same thread continues the sequence, as C11 had it, is not counted on: C++20
 * and C23 took it back. A relaxed load keeps what it saw for an acquire fence
 * to come.
 */
#include "atomic.h"

#include <string.h>

static char sc; /* stands for the order of the sequentially consistent */

static bool acquires(int order)
{
	return order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE;
}

static bool releases(int order)
{
	return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL ||
	       order == __ATOMIC_SEQ_CST;
}

uint64_t memory_load(const void *address, unsigned int size)
{
	uint64_t value = 0;

	switch (size) {
	case 1:
		value = *(const uint8_t *)address;
		break;
	case 2:
		value = *(const uint16_t *)address;
		break;
	case 4:
		value = *(const uint32_t *)address;
		break;
	default:
		value = *(const uint64_t *)address;
	}
	return value;
}

void memory_store(void *address, unsigned int size, uint64_t value)
{
	switch (size) {
	case 1:
		*(uint8_t *)address = (uint8_t)value;
		break;
	case 2:
		*(uint16_t *)address = (uint16_t)value;
		break;
	case 4:
		*(uint32_t *)address = (uint32_t)value;
		break;
	default:
		*(uint64_t *)address = value;
	}
}

void access_of(const void *address, size_t size, bool write, bool atomic,
	       const void *pc)
{
	memory_check(address, size, write, pc);
	race_access(address, size, write, atomic, pc);
}

/* What the thread sees with a value that carries @sync. */
static void see(const struct clock *sync, int order)
{
	clock_join(acquires(order) ? &ex.self->clock : &ex.self->acquirable,
		   sync);
}

/* What its value carries. */
static const struct clock *shown(int order)
{
	return releases(order) ? &ex.self->clock : &ex.self->released;
}

/* The total order of sequentially consistent operations, made stronger. */
static void in_total_order(int order)
{
	if (order != __ATOMIC_SEQ_CST || ex.options.memory != MEMORY_WEAK)
		return;
	struct object *object = object_of(&sc);

	clock_join(&ex.self->clock, &object->sync);
	object->sync = ex.self->clock;
	clock_tick(ex.self);
}

static struct op op_of(enum kind kind, const struct place *at, bool write)
{
	struct op op = { .kind = kind,
			 .touches = { at->address, NULL },
			 .how = { write ? WRITES : READS, WRITES },
			 .pc = at->pc };

	if (at->order == __ATOMIC_SEQ_CST && ex.options.memory == MEMORY_WEAK)
		op.touches[1] = &sc;
	return op;
}

static struct line *note(enum kind kind, const struct place *at, uint64_t old,
			 uint64_t new)
{
	struct line *line = trace(kind, at->pc, at->address, at->size);

	line->memory_order = (int8_t)at->order;
	line->old = old;
	line->new = new;
	return line;
}

/* The value at a location, as this thread sees it, and what it carries. */
static uint64_t look(const struct place *at, struct clock *sync,
		     const uint64_t *not_this, bool *latest)
{
	struct object *object = object_of(at->address);
	uint64_t value;

	*latest = true;
	if (ex.options.memory == MEMORY_WEAK)
		return weak_load(object, at->size, sync, not_this, latest);
	memset(sync, 0, sizeof(*sync));
	if (tso_find(at->address, at->size, &value))
		return value;
	*sync = object->sync;
	return memory_load(at->address, at->size);
}

uint64_t atomic_read(const struct place *at)
{
	struct op op = op_of(K_LOAD, at, false);
	struct clock sync;
	bool latest;

	step(&op);
	access_of(at->address, at->size, false, true, at->pc);
	in_total_order(at->order);
	uint64_t value = look(at, &sync, NULL, &latest);

	see(&sync, at->order);
	note(K_LOAD, at, value, value)->text = latest ? NULL : "an older value";
	return value;
}

/* Memory takes a value on. */
static void put(const struct place *at, uint64_t value,
		const struct clock *sync)
{
	struct object *object = object_of(at->address);

	if (ex.options.memory == MEMORY_WEAK)
		weak_store(object, at->size, value, sync);
	object->sync = *sync;
	memory_store(at->address, at->size, value);
	clock_tick(ex.self);
}

static void buffered(const struct place *at, uint64_t value)
{
	struct op drain = { .kind = K_FENCE, .drained = true };

	if (tso_full(ex.self->id))
		step(&drain);
	access_of(at->address, at->size, true, true, at->pc);
	tso_put(at->address, at->size, value, shown(at->order), at->pc);
	note(K_STORE, at, 0, value)->text = "into the store buffer";
	clock_tick(ex.self);
}

void atomic_write(const struct place *at, uint64_t value)
{
	struct op op = op_of(K_STORE, at, true);

	if (ex.options.memory == MEMORY_TSO && (ex.branching || ex.launching) &&
	    at->order != __ATOMIC_SEQ_CST) {
		buffered(at, value);
		return;
	}
	op.drained = true;
	step(&op);
	access_of(at->address, at->size, true, true, at->pc);
	in_total_order(at->order);
	note(K_STORE, at, memory_load(at->address, at->size), value);
	put(at, value, shown(at->order));
}

/* The write of a read-modify-write continues the release sequence. */
static void put_on(const struct place *at, uint64_t value,
		   const struct clock *seen)
{
	struct clock sync = *seen;

	clock_join(&sync, shown(at->order));
	put(at, value, &sync);
}

static uint64_t modified(enum modify how, uint64_t old, uint64_t arg)
{
	switch (how) {
	case MODIFY_ADD:
		return old + arg;
	case MODIFY_SUB:
		return old - arg;
	case MODIFY_AND:
		return old & arg;
	case MODIFY_OR:
		return old | arg;
	case MODIFY_XOR:
		return old ^ arg;
	case MODIFY_NAND:
		return ~(old & arg);
	case MODIFY_XCHG:
		break;
	}
	return arg;
}

static uint64_t cut(uint64_t value, unsigned int size)
{
	return size == 8 ? value : value & ((UINT64_C(1) << size * 8) - 1);
}

uint64_t atomic_modify(const struct place *at, enum modify how, uint64_t arg)
{
	struct op op = op_of(K_RMW, at, true);

	op.drained = true;
	step(&op);
	access_of(at->address, at->size, true, true, at->pc);
	in_total_order(at->order);
	struct clock sync = object_of(at->address)->sync;
	uint64_t old = memory_load(at->address, at->size);
	uint64_t new = cut(modified(how, old, arg), at->size);

	see(&sync, at->order);
	note(K_RMW, at, old, new);
	put_on(at, new, &sync);
	return old;
}

bool atomic_swap(const struct place *at, uint64_t *old, uint64_t new,
		 int failed)
{
	struct op op = op_of(K_RMW, at, true);
	uint64_t expected = *old;
	struct clock sync;
	bool latest;

	op.drained = true;
	op.swaps = true;
	op.size = at->size;
	op.expected = expected;
	point(&op);
	/* Which value is seen decides what it touches, and is chosen first. */
	*old = look(at, &sync, &expected, &latest);
	bool done = latest && *old == expected;

	op.how[0] = done ? WRITES : READS;
	event_touches(op.touches, op.how);
	access_of(at->address, at->size, done, true, at->pc);
	in_total_order(at->order);
	see(&sync, done ? at->order : failed);
	note(done ? K_RMW : K_CAS_FAILED, at, *old, new)->text =
		latest ? NULL : "an older value";
	if (done)
		put_on(at, new, &sync);
	return done;
}

void atomic_fence(int order, const void *pc)
{
	struct op op = { .kind = K_FENCE, .drained = true };
	struct thread *self = ex.self;

	if (order == __ATOMIC_SEQ_CST && ex.options.memory != MEMORY_SC) {
		if (ex.options.memory == MEMORY_WEAK) {
			op.touches[0] = &sc;
			op.how[0] = WRITES;
		}
		step(&op);
		in_total_order(order);
	}
	if (acquires(order))
		clock_join(&self->clock, &self->acquirable);
	if (releases(order)) {
		self->released = self->clock;
		clock_tick(self);
	}
	trace(K_FENCE, pc, NULL, 0)->memory_order = (int8_t)order;
}
