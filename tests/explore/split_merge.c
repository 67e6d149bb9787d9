/* SPDX-License-Identifier: MIT */
/*
 * split_merge - a merge, by demotion or kill, against gets and puts
 *
 * Goal: whatever mode each thread saw, zero is told once, when the last
 * reference is gone, and not before; a number comes to its next object with
 * what its cells held; a thread that leaves takes nothing with it. Method: an
 * object on a domain of one cell, freed by whoever is told, a grace period
 * later. Threads with and without cells get and put; one closes. The numbers of
 * the cells are put near the end of their low half where the way over it is
 * the subject.
 */
#include "explore.h"

#include <stdlib.h>

struct object {
	struct dstref_split split;
	struct rcu_head rcu;
	int written[EXPLORE_THREADS]; /* plain: by holders, read at the end */
};

static struct dstref_split_domain *domain;
static DSTREF_ATOMIC(struct object *) slot;
static struct object *object;
static unsigned int told, confirmed;

static void end(struct rcu_head *head)
{
	struct object *dead = caa_container_of(head, struct object, rcu);

	for (int i = 0; i < EXPLORE_THREADS; i++)
		explore_assert(dead->written[i] <= 1);
	dstref_split_end(&dead->split);
	free(dead);
}

static void on_zero(struct dstref_split *split)
{
	struct object *dead = caa_container_of(split, struct object, split);

	told++;
	explore_assert(told == 1);
	dstref_store_relaxed(&slot, NULL);
	explore_flavor.update_call_rcu(&dead->rcu, end);
}

static void on_confirm(struct dstref_split *split)
{
	(void)split;
	confirmed++;
	explore_assert(!told);
}

static void create(uint32_t refs)
{
	const struct dstref_split_attr attr = { .flavour = &explore_flavor,
						.cells = 1 };

	explore_assert(!dstref_split_domain_create(&domain, &attr));
	object = calloc(1, sizeof(*object));
	explore_assert(object && !dstref_split_init(&object->split, domain,
						    refs, on_zero));
	dstref_store_release(&slot, object);
}

static void start(void)
{
	create(1);
	explore_assert(!dstref_split_promote(&object->split));
}

static void start_off(void)
{
	create(1);
}

static void start_2(void)
{
	create(2);
	explore_assert(!dstref_split_promote(&object->split));
}

static void attach(void)
{
	explore_assert(!dstref_split_attach(domain));
}

/* A reader that finds the object, and holds it for a moment. */
static void get_put(void)
{
	explore_read_lock();
	struct object *found = dstref_load_acquire(&slot);

	if (found && dstref_split_get(&found->split)) {
		found->written[explore_self()] = 1;
		dstref_split_put(&found->split);
	}
	explore_read_unlock();
}

static void cell_get_put(void)
{
	attach();
	get_put();
	dstref_split_detach(domain);
}

/* The owner's reference: out of the slot first. */
static void drop(void)
{
	dstref_store_relaxed(&slot, NULL);
	object->written[explore_self()] = 1;
	explore_read_lock();
	dstref_split_put(&object->split);
	explore_read_unlock();
}

static void cell_drop(void)
{
	attach();
	drop();
	dstref_split_detach(domain);
}

static void demote_drop(void)
{
	(void)dstref_split_demote(&object->split);
	drop();
}

static void kill_drop(void)
{
	explore_assert(!dstref_split_kill(&object->split, NULL));
	drop();
}

static bool is_confirmed(void)
{
	return confirmed;
}

static void kill_wait_drop(void)
{
	explore_assert(!dstref_split_kill(&object->split, on_confirm));
	explore_await(is_confirmed);
	drop();
}

static void promote_drop(void)
{
	(void)dstref_split_promote(&object->split);
	drop();
}

/* Gets in a cell that is about to pass its low half, lets go in the count. */
static void flush_get_put(void)
{
	attach();
	explore_read_lock();
	struct object *found = dstref_load_acquire(&slot);
	struct dstref_cell *cell = NULL;

	if (found)
		cell = dstref_cell_of(dstref_load_acquire(&found->split.cell));
	if (cell) { /* and no merge before this reader ends */
		dstref_store_relaxed(&cell->gets, 0xffffu);
		dstref_store_relaxed(&cell->puts, 0xffffu);
	}
	if (found && dstref_split_get(&found->split))
		dstref_split_put_outside(&found->split);
	explore_read_unlock();
	dstref_split_detach(domain);
}

/* What is split and let go of ends by the next quiet tick. */
static void check(void)
{
	for (int i = 0; i < 4 && !told; i++) {
		(void)dstref_split_tick(domain, 1);
		explore_barrier();
	}
	explore_barrier();
	explore_assert(told == 1);
	explore_assert(!dstref_split_domain_destroy(domain));
}

/* The number's next object starts from what the first one left there. */
static void check_reuse(void)
{
	struct dstref_split next;

	for (int i = 0; i < 4 && !told; i++) {
		(void)dstref_split_tick(domain, 1);
		explore_barrier();
	}
	explore_barrier();
	explore_assert(told == 1);
	explore_assert(!dstref_split_init(&next, domain, 1, on_zero));
	explore_assert(!dstref_split_promote(&next));
	explore_assert(dstref_split_read(&next) == 1);
	explore_assert(!dstref_split_kill(&next, NULL));
	explore_barrier();
	explore_assert(dstref_load_relaxed(&next.count.word) == 0);
	explore_assert(!dstref_split_domain_destroy(domain));
}

/* Leaves a get in its cell for another to let go of. */
static void cell_get(void)
{
	attach();
	explore_read_lock();
	explore_assert(dstref_split_get(&object->split));
	explore_read_unlock();
	dstref_split_detach(domain);
	dstref_split_put_outside(&object->split);
	object->written[explore_self()] = 0;
	dstref_split_put_outside(&object->split);
}

const struct explore_case explore_cases[] = {
	{ .name = "demote-get",
	  .setup = start,
	  .thread = { cell_get_put, demote_drop },
	  .check = check },
	{ .name = "demote-get_count",
	  .setup = start,
	  .thread = { get_put, demote_drop },
	  .check = check },
	{ .name = "kill-get",
	  .setup = start,
	  .thread = { cell_get_put, kill_drop },
	  .check = check },
	{ .name = "kill-wait-get",
	  .setup = start,
	  .thread = { cell_get_put, kill_wait_drop },
	  .check = check },
	{ .name = "drop-get",
	  .setup = start,
	  .thread = { cell_get_put, cell_drop },
	  .check = check },
	{ .name = "promote-get",
	  .setup = start_off,
	  .thread = { cell_get_put, promote_drop },
	  .check = check },
	{ .name = "demote-flush",
	  .setup = start,
	  .thread = { flush_get_put, demote_drop },
	  .check = check_reuse },
	{ .name = "exit-demote",
	  .setup = start_2,
	  .thread = { cell_get, demote_drop },
	  .check = check_reuse },
	{ 0 },
};
