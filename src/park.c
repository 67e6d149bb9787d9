/* SPDX-License-Identifier: MIT */
/*
 * park - sleepers by address
 *
 * A thread that waits for a sock's room or data sleeps in its namespace, in a
 * row that the address of the account or of the events selects. The waker
 * brings the address as a number and looks for it in the row: he touches
 * nothing of the sock, which he may no longer pin.
 *
 * A sleeper enters, then marks the word and looks at it, then sleeps, then
 * leaves. A waker changes the word, sees the mark, then wakes. Each row has a
 * lock. If the waker saw the mark, the sleeper had entered before he made it;
 * so either the waker finds him, or another waker took him out of the row
 * already, or he has left. A sleeper who was taken out has woken set, under
 * the lock, and does not sleep, whatever the order.
 *
 * The mark is one for all who wait on an address, so who leaves may clear it
 * only when nobody else is parked there. That is decided and done under the
 * row's lock: whoever enters later marks later.
 *
 * Conditions that are not in the word (closed, a new sndbuf) are stored before
 * the wake. The wake takes the lock: either the sleeper entered before and is
 * found, or he enters after it and then sees the store.
 *
 * This is the one place that reads a clock, for a wait that has an end: a sleep
 * that is broken off and taken up again must know how much of its time is left.
 *
 * Ordering: all by the rows' locks.
 */
#include "park.h"

#define NS_PER_S 1000000000

static struct park_row *row_of(struct park *park, const void *key)
{
	/* Keys are members of line-aligned structs: mix what is above. */
	uint64_t hash = (uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15);

	return &park->rows[(hash >> 32) % PARK_ROWS];
}

void park_init(struct park *park)
{
	for (int i = 0; i < PARK_ROWS; i++) {
		pthread_mutex_init(&park->rows[i].lock, NULL);
		LIST_INIT(&park->rows[i].nodes);
	}
}

void park_fini(struct park *park)
{
	for (int i = 0; i < PARK_ROWS; i++)
		pthread_mutex_destroy(&park->rows[i].lock);
}

void park_end_in(struct park_end *end, int64_t timeout_ns)
{
	end->forever = timeout_ns < 0;
	if (end->forever)
		return;
	clock_gettime(CLOCK_MONOTONIC, &end->at);
	end->at.tv_sec += (time_t)(timeout_ns / NS_PER_S);
	end->at.tv_nsec += (long)(timeout_ns % NS_PER_S);
	if (end->at.tv_nsec >= NS_PER_S) {
		end->at.tv_nsec -= NS_PER_S;
		end->at.tv_sec++;
	}
}

int park_node_init(struct park_node *node, const void *key)
{
	pthread_condattr_t attr;
	int err = pthread_condattr_init(&attr);

	if (err)
		return -err;
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	err = pthread_cond_init(&node->cond, &attr);
	pthread_condattr_destroy(&attr);
	node->key = key;
	node->woken = false;
	return -err;
}

void park_node_fini(struct park_node *node)
{
	pthread_cond_destroy(&node->cond);
}

void park_enter(struct park *park, struct park_node *node)
{
	struct park_row *row = row_of(park, node->key);

	pthread_mutex_lock(&row->lock);
	node->woken = false;
	LIST_INSERT_HEAD(&row->nodes, node, link);
	pthread_mutex_unlock(&row->lock);
}

bool park_sleep(struct park *park, struct park_node *node,
		const struct park_end *end)
{
	struct park_row *row = row_of(park, node->key);
	int err = 0;

	pthread_mutex_lock(&row->lock);
	while (!node->woken && !err)
		err = end->forever ? pthread_cond_wait(&node->cond, &row->lock)
				   : pthread_cond_timedwait(
					     &node->cond, &row->lock, &end->at);
	bool woken = node->woken;

	pthread_mutex_unlock(&row->lock);
	return woken;
}

static bool any_on(struct park_row *row, const void *key)
{
	struct park_node *node;

	LIST_FOREACH (node, &row->nodes, link)
		if (node->key == key)
			return true;
	return false;
}

void park_leave(struct park *park, struct park_node *node,
		void (*last)(void *arg), void *arg)
{
	struct park_row *row = row_of(park, node->key);

	pthread_mutex_lock(&row->lock);
	if (!node->woken)
		LIST_REMOVE(node, link);
	if (!any_on(row, node->key))
		last(arg);
	pthread_mutex_unlock(&row->lock);
}

unsigned int park_wake(struct park *park, const void *key)
{
	struct park_row *row = row_of(park, key);
	struct park_node *node, *next;
	unsigned int woken = 0;

	pthread_mutex_lock(&row->lock);
	for (node = LIST_FIRST(&row->nodes); node; node = next) {
		next = LIST_NEXT(node, link);
		if (node->key != key)
			continue;
		LIST_REMOVE(node, link);
		node->woken = true;
		pthread_cond_signal(&node->cond);
		woken++;
	}
	pthread_mutex_unlock(&row->lock);
	return woken;
}
