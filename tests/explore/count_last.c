/* SPDX-License-Identifier: MIT */
/*
 * count_last - the last put against try_hold and put_outside
 *
 * Goal: one thread is told that it was last, it alone frees, and a reader that
 * was told yes has an object that lives until his own put. Method: an object
 * in a slot with a count of one or more; each thread finds it there inside a
 * reader, or holds a reference from the start; who is told last frees it after
 * a grace period. Holders write a plain word each before they let go, and the
 * one who frees reads them; who is told no reads what the last holder wrote. An
 * order that is missing is a race there.
 */
#include "explore.h"

#include <stdlib.h>

struct object {
	struct dstref_count count;
	struct rcu_head rcu;
	int written[EXPLORE_THREADS];
};

static DSTREF_ATOMIC(struct object *) slot;
static struct object *object;
static unsigned int freed;
static int withdrawn; /* from the slot */

static void end(struct rcu_head *head)
{
	struct object *dead = caa_container_of(head, struct object, rcu);

	freed++;
	free(dead);
}

/* Told that it was the last: all others have written; out of the slot, free. */
static void last(struct object *dead)
{
	for (int i = 0; i < EXPLORE_THREADS; i++)
		explore_assert(dead->written[i] <= 1);
	dstref_store_relaxed(&slot, NULL);
	explore_flavor.update_call_rcu(&dead->rcu, end);
}

static void start(uint32_t refs)
{
	object = calloc(1, sizeof(*object));
	dstref_count_init(&object->count, refs);
	dstref_store_release(&slot, object);
}

static void start_1(void)
{
	start(1);
}

static void start_2(void)
{
	start(2);
}

static void start_3(void)
{
	start(3);
}

/* Holders. */

static void put_n(struct object *mine, uint32_t n)
{
	mine->written[explore_self()] = 1;
	explore_read_lock();
	if (n == 1 ? dstref_count_put(&mine->count)
		   : dstref_count_put_n(&mine->count, n))
		last(mine);
	explore_read_unlock();
}

static void put(void)
{
	put_n(object, 1);
}

static void put_2(void)
{
	put_n(object, 2);
}

static void put_outside_of(struct object *mine)
{
	mine->written[explore_self()] = 1;
	if (dstref_count_put_outside(&mine->count))
		last(mine);
}

static void put_outside(void)
{
	put_outside_of(object);
}

/* Withdraws the object before it lets go, as the owner of a slot does. */
static void withdraw(void)
{
	withdrawn = 1;
	dstref_store_relaxed(&slot, NULL);
	put_outside_of(object);
}

/* Readers. */

/* The object, of which the caller has a reference now, or NULL; in a reader. */
static struct object *find(void)
{
	struct object *found = dstref_load_acquire(&slot);

	return found && dstref_count_get(&found->count) ? found : NULL;
}

static void look_up(void)
{
	explore_read_lock();
	struct object *found = find();

	if (found)
		put_n(found, 1);
	explore_read_unlock();
}

/* Keeps its reference beyond the reader. */
static void take_away(void)
{
	explore_read_lock();
	struct object *found = find();

	explore_read_unlock();
	if (found)
		put_outside_of(found);
}

/* Told no, it knows that the object had left the slot. */
static void look_twice(void)
{
	explore_read_lock();
	struct object *found = dstref_load_acquire(&slot);

	if (found && dstref_count_get(&found->count)) {
		put_n(found, 1);
	} else if (found) {
		explore_assert(withdrawn);
		explore_assert(dstref_load_relaxed(&slot) != found);
	}
	explore_read_unlock();
}

static void check(void)
{
	explore_assert(freed == 1);
	explore_assert(!dstref_load_relaxed(&slot));
}

const struct explore_case explore_cases[] = {
	{ .name = "put-look_up",
	  .setup = start_1,
	  .thread = { put, look_up },
	  .check = check },
	{ .name = "put_outside-look_up",
	  .setup = start_1,
	  .thread = { put_outside, look_up },
	  .check = check },
	{ .name = "put-put_outside",
	  .setup = start_2,
	  .thread = { put, put_outside },
	  .check = check },
	{ .name = "put_n-put_outside",
	  .setup = start_3,
	  .thread = { put_2, put_outside },
	  .check = check },
	{ .name = "put-take_away",
	  .setup = start_1,
	  .thread = { put, take_away },
	  .check = check },
	{ .name = "withdraw-look_twice",
	  .setup = start_1,
	  .thread = { withdraw, look_twice },
	  .check = check },
	{ .name = "put-put-look_up",
	  .setup = start_2,
	  .thread = { put, put, look_up },
	  .check = check },
	{ .name = "put-put_outside-look_up",
	  .setup = start_2,
	  .thread = { put, put_outside, look_up },
	  .check = check },
	{ .name = "put-look_up-take_away",
	  .setup = start_1,
	  .thread = { put, look_up, take_away },
	  .check = check },
	{ .name = "put_n-put_outside-look_up-take_away",
	  .setup = start_3,
	  .thread = { put_2, put_outside, look_up, take_away },
	  .check = check },
	{ 0 },
};
