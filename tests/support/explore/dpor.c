/* SPDX-License-Identifier: MIT */
/*
 * dpor - which schedules differ
 *
 * Two schedules are the same trace when one becomes the other by swapping
 * neighbours that do not depend on each other; then they lead to the same state
 * by the same values. One of each trace is enough. This is source-DPOR
 * with sleep sets (Abdulla, Aronis, Jonsson, Sagonas, "Optimal dynamic partial
 * order reduction", POPL 2014).
 *
 * Dependence. A step touches up to two things by their addresses, as a reader,
 * as a writer, or as one that adds: a location, a mutex, a condition, the gate
 * of RCU. Two steps depend when they are of one process, or touch one thing and
 * neither both read nor both add. A step also comes after whatever made it
 * possible (event_after): the unlock, the signal, the readers of a grace
 * period, the store of a flush. Each event has a vector clock of what it comes
 * after in this sense. (It is not C11's happens-before, which race.c keeps: two
 * relaxed stores to one location depend, but nothing is ordered by them.)
 *
 * Races. An event e that touches what an earlier e' of another process touched,
 * when nothing between the two orders them, could have come first: the pair is
 * a reversible race. Then the way to let it come first is to run, from the
 * point before e', what does not come after e', and then e. It is explored if
 * at that point one of the processes that could begin that sequence is: its
 * initials. If none is yet, one is added to the point's backtrack set. A step
 * that e' alone made possible is no race with it and must not be reversed; that
 * is why enabling is joined to the clock first. A lock races with the lock
 * before it, and the unlock between the two only enables.
 *
 * Sleep. When a choice at a point is explored, its process sleeps there: it is
 * not taken in what comes from the other choices, until a step that depends on
 * its next one has been made. When all that can go on sleep, the schedule is
 * redundant and given up. Since the trace was seen, so was its end.
 *
 * Blocking fits in because a step that is not possible is not a choice, and
 * becomes one by events that its clock then has. A thread that waits at the end
 * of a schedule for good is a failure at once, so no race of a step that was
 * never made is missed. A wait that runs out of time comes after everything
 * (wait.c) and is never reversed.
 *
 * A load that may see several values (weak.c) makes a choice of its own at its
 * event: all are taken in turn, each with the whole space behind it.
 *
 * selftest.sh holds the sets of traces against those of the plain search, for
 * small programs of every kind under each memory model, and their numbers
 * against what is known.
 */
#include "state.h"

#include <string.h>

static uint16_t bit(unsigned int proc)
{
	return (uint16_t)(1u << proc);
}

static unsigned int lowest(unsigned int set)
{
	return (unsigned int)__builtin_ctz(set);
}

/* Objects. */

struct object *object_of(const void *key)
{
	uint64_t hash = (uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15);
	unsigned int at = (unsigned int)(hash >> 32) % OBJECTS;

	for (;; at = (at + 1) % OBJECTS) {
		struct object *object = &ex.objects[at];

		if (object->run == ex.run) {
			if (object->key == key)
				return object;
			continue;
		}
		if (ex.object_count++ > OBJECTS / 2)
			ex_fail(NULL, "more than %d things to meet at",
				OBJECTS / 2);
		memset(object, 0, sizeof(*object));
		object->key = key;
		object->run = ex.run;
		object->owner = -1;
		return object;
	}
}

/* Events. */

void order_join(struct order *into, const struct order *from)
{
	for (int i = 0; i < PROCS; i++)
		if (into->at[i] < from->at[i])
			into->at[i] = from->at[i];
}

static bool order_has(const struct order *order, const struct event *event)
{
	return order->at[event->proc] >= event->number;
}

void event_begin(unsigned int proc)
{
	if (!ex.branching)
		return;
	struct event *event = &ex.events[ex.depth];

	event->proc = (uint8_t)proc;
	event->number = ++ex.count[proc];
	event->touches[0] = event->touches[1] = NULL;
	ex.event_of[proc][event->number] = (uint16_t)ex.depth;
	ex.order[proc].at[proc] = event->number;
	event->order = ex.order[proc];
	ex.depth++;
	ex.points++;
	if (ex.depth > ex.deepest)
		ex.deepest = ex.depth;
}

void event_after(const struct order *order)
{
	if (!ex.branching)
		return;
	struct event *event = &ex.events[ex.depth - 1];

	order_join(&event->order, order);
	ex.order[event->proc] = event->order;
}

void event_after_all(void)
{
	for (unsigned int proc = 0; proc < PROCS; proc++)
		event_after(&ex.order[proc]);
}

#define CONFLICTS (2 * (2 * PROCS + 1))

/* The events that the last one conflicts with, latest first. */
struct conflicts {
	unsigned int count;
	unsigned int at[CONFLICTS];
};

static void conflicts_add(struct conflicts *conflicts, unsigned int event)
{
	unsigned int i;

	if (!event--)
		return;
	for (i = conflicts->count; i && conflicts->at[i - 1] < event; i--)
		conflicts->at[i] = conflicts->at[i - 1];
	conflicts->at[i] = event;
	conflicts->count++;
}

/* All that conflict with whoever touches @object in this way. */
static void touch(struct object *object, enum touch how,
		  struct conflicts *conflicts)
{
	uint16_t now = (uint16_t)ex.depth;

	conflicts_add(conflicts, object->writer);
	for (unsigned int i = 0; i < PROCS; i++) {
		if (how != READS)
			conflicts_add(conflicts, object->reader[i]);
		if (how != ADDS)
			conflicts_add(conflicts, object->adder[i]);
	}
	unsigned int proc = ex.events[ex.depth - 1].proc;

	if (how == READS) {
		object->reader[proc] = now;
	} else if (how == ADDS) {
		object->adder[proc] = now;
	} else {
		object->writer = now;
		memset(object->reader, 0, sizeof(object->reader));
		memset(object->adder, 0, sizeof(object->adder));
	}
}

/*
 * Which processes could go first if @from and what depends on it were left out
 * of the events up to the last: those whose first event in the rest needs
 * none of the rest.
 */
static unsigned int initials(unsigned int from)
{
	const struct event *race = &ex.events[from];
	uint16_t first[PROCS] = { 0 };
	unsigned int set = 0;

	for (unsigned int i = from + 1; i < ex.depth; i++) {
		const struct event *event = &ex.events[i];
		bool initial = true;

		if (i + 1 < ex.depth && order_has(&event->order, race))
			continue;
		if (first[event->proc])
			continue;
		for (unsigned int p = 0; p < PROCS && initial; p++)
			initial = !first[p] || event->order.at[p] < first[p];
		first[event->proc] = event->number;
		if (initial)
			set |= bit(event->proc);
	}
	return set;
}

/* The last event races with @from: it must be tried the other way round. */
static void reverse(unsigned int from)
{
	struct node *node = &ex.nodes[from];
	unsigned int set = initials(from);

	if (set & (node->backtrack | node->sleep))
		return;
	if (set & node->enabled)
		node->backtrack |= bit(lowest(set & node->enabled));
	else
		node->backtrack |= node->enabled;
}

void event_touches(const void *const touches[2], const enum touch how[2])
{
	struct conflicts conflicts = { 0 };
	unsigned int races[CONFLICTS], count = 0;

	if (!ex.branching)
		return;
	struct event *event = &ex.events[ex.depth - 1];

	for (int i = 0; i < 2; i++) {
		event->touches[i] = touches[i];
		event->how[i] = how[i];
		if (touches[i])
			touch(object_of(touches[i]), how[i], &conflicts);
	}
	for (unsigned int i = 0; i < conflicts.count; i++) {
		const struct event *other = &ex.events[conflicts.at[i]];

		if (order_has(&event->order, other))
			continue;
		races[count++] = conflicts.at[i];
		order_join(&event->order, &other->order);
	}
	ex.order[event->proc] = event->order;
	if (ex.search != SEARCH_REDUCED || ex.depth < ex.prefix)
		return;
	for (unsigned int i = 0; i < count; i++)
		reverse(races[i]);
}

/* Nodes. */

static bool meet(enum touch a, enum touch b)
{
	return a == WRITES || a != b;
}

static bool depends(const struct event *event, const void *const touches[2],
		    const enum touch how[2])
{
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 2; j++)
			if (touches[i] && touches[i] == event->touches[j] &&
			    meet(how[i], event->how[j]))
				return true;
	return false;
}

/* Would this compare-and-swap fail now, and so be a reader? */
static bool swap_fails(const struct op *op)
{
	return op->swaps && ex.options.memory != MEMORY_WEAK &&
	       memory_load(op->touches[0], op->size) != op->expected;
}

/* Of those asleep at the node before, who does not depend on its event? */
static uint16_t still_asleep(void)
{
	if (!ex.depth)
		return 0;
	const struct event *event = &ex.events[ex.depth - 1];
	uint16_t sleep = 0;

	for (unsigned int set = ex.nodes[ex.depth - 1].sleep; set;
	     set &= set - 1) {
		unsigned int proc = lowest(set);
		const void *touches[2] = { NULL, NULL };
		enum touch how[2] = { WRITES, WRITES };

		if (proc < BUFFERS) {
			memcpy(touches, ex.threads[proc].next.touches,
			       sizeof(touches));
			memcpy(how, ex.threads[proc].next.how, sizeof(how));
			if (swap_fails(&ex.threads[proc].next))
				how[0] = READS;
		} else {
			touches[0] = tso_next(proc - BUFFERS);
		}
		if (!depends(event, touches, how))
			sleep |= bit(proc);
	}
	return sleep;
}

static bool preempts(const struct node *node, unsigned int proc)
{
	return proc < BUFFERS && proc != node->current &&
	       node->enabled & bit(node->current);
}

/* All that the bound leaves. */
static uint16_t within_bound(const struct node *node)
{
	uint16_t set = 0;

	for (unsigned int proc = 0; proc < PROCS; proc++)
		if (node->enabled & bit(proc) &&
		    (!ex.bound || !preempts(node, proc) ||
		     node->preemptions < ex.bound))
			set |= bit(proc);
	return set;
}

static unsigned int preferred(const struct node *node, unsigned int set)
{
	return (set & bit(node->current)) ? node->current : lowest(set);
}

void node_open(unsigned int enabled)
{
	struct node *node = &ex.nodes[ex.depth];

	if (ex.depth < ex.prefix) {
		if (node->enabled != enabled)
			ex_fail(NULL,
				"the case is not the same when it is run "
				"again: it must depend on the schedule only");
		return;
	}
	memset(node, 0, sizeof(*node));
	node->enabled = (uint16_t)enabled;
	node->current = (uint8_t)ex.current;
	if (ex.depth)
		node->preemptions =
			(uint16_t)(node[-1].preemptions +
				   preempts(&node[-1], node[-1].proc));
}

/* The first choice at a new node; PROCS when there is none. */
static unsigned int first_choice(struct node *node)
{
	unsigned int set;

	switch (ex.search) {
	case SEARCH_RANDOM:
		return random_choose(node->enabled);
	case SEARCH_REPLAY:
		return replay_choose(node->enabled);
	case SEARCH_PLAIN:
		node->backtrack = within_bound(node);
		return preferred(node, node->backtrack);
	case SEARCH_REDUCED:
		break;
	}
	node->sleep = still_asleep();
	set = node->enabled & ~(unsigned int)node->sleep;
	if (!set)
		return PROCS;
	unsigned int proc = preferred(node, set);

	node->backtrack = bit(proc);
	return proc;
}

int node_choose(void)
{
	struct node *node = &ex.nodes[ex.depth];

	if (ex.depth >= ex.prefix) {
		unsigned int proc = first_choice(node);

		if (proc == PROCS)
			return -1;
		node->proc = (uint8_t)proc;
	}
	return node->proc;
}

unsigned int node_values(unsigned int values)
{
	if (!ex.branching)
		return 0;
	struct node *node = &ex.nodes[ex.depth - 1];

	node->values = (uint16_t)values;
	if (ex.search == SEARCH_RANDOM)
		node->value = (uint16_t)random_below(values);
	else if (ex.search == SEARCH_REPLAY)
		node->value = (uint16_t)replay_value(values);
	return node->value;
}

/* Goes to the next schedule; false when there is none. */
bool nodes_next(void)
{
	for (unsigned int at = ex.depth; at--;) {
		struct node *node = &ex.nodes[at];

		ex.prefix = at + 1;
		if (node->value + 1u < node->values) {
			node->value++;
			return true;
		}
		node->done |= bit(node->proc);
		if (ex.search == SEARCH_REDUCED)
			node->sleep |= bit(node->proc);
		unsigned int set = node->backtrack &
				   ~(unsigned int)(node->done | node->sleep);

		if (!set)
			continue;
		node->proc = (uint8_t)lowest(set);
		node->value = node->values = 0;
		return true;
	}
	return false;
}
