/* SPDX-License-Identifier: MIT */
/*
 * keys - thread-specific data, and what is done once
 *
 * Keys and values are the runtime's, for all coroutines are one thread to libc.
 * A destructor runs at the end of its thread, inside the schedule, as long as
 * there are values, four rounds at most. The thread of setup and check ends
 * with the schedule: its destructors run after check.
 *
 * pthread_once() is a point like taking a mutex: the first runs the function
 * and holds the others up meanwhile.
 */
#include "state.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define KEYS 32
#define ROUNDS 4

static struct {
	unsigned int count;
	void (*destroy[KEYS])(void *value);
	bool live[KEYS];
	void *values[THREADS][KEYS];
} * own;

void keys_create(void)
{
	own = ex_map(sizeof(*own));
}

void keys_reset(void)
{
	memset(own, 0, sizeof(*own));
}

static bool end_round(void)
{
	void **values = own->values[ex.self->id];
	bool any = false;

	for (unsigned int key = 0; key < own->count; key++) {
		void *value = values[key];

		if (!value || !own->live[key] || !own->destroy[key])
			continue;
		any = true;
		values[key] = NULL;
		leave();
		own->destroy[key](value);
		enter();
	}
	return any;
}

void keys_end(void)
{
	for (int i = 0; i < ROUNDS && end_round(); i++)
		;
}

int WRAP(pthread_key_create)(pthread_key_t *key, void (*destroy)(void *value));
int WRAP(pthread_key_delete)(pthread_key_t key);
int WRAP(pthread_setspecific)(pthread_key_t key, const void *value);
void *WRAP(pthread_getspecific)(pthread_key_t key);
int WRAP(pthread_once)(pthread_once_t *once, void (*fn)(void));
int REAL(pthread_key_create)(pthread_key_t *key, void (*destroy)(void *value));
int REAL(pthread_key_delete)(pthread_key_t key);
int REAL(pthread_setspecific)(pthread_key_t key, const void *value);
void *REAL(pthread_getspecific)(pthread_key_t key);
int REAL(pthread_once)(pthread_once_t *once, void (*fn)(void));

int WRAP(pthread_key_create)(pthread_key_t *key, void (*destroy)(void *value))
{
	if (!enter())
		return REAL(pthread_key_create)(key, destroy);
	int err = own->count == KEYS ? EAGAIN : 0;

	if (!err) {
		access_of(key, sizeof(*key), true, false, CALLER);
		own->destroy[own->count] = destroy;
		own->live[own->count] = true;
		*key = own->count++;
	}
	leave();
	return err;
}

int WRAP(pthread_key_delete)(pthread_key_t key)
{
	if (!enter())
		return REAL(pthread_key_delete)(key);
	own->live[key] = false;
	leave();
	return 0;
}

int WRAP(pthread_setspecific)(pthread_key_t key, const void *value)
{
	if (!enter())
		return REAL(pthread_setspecific)(key, value);
	int err = key < own->count && own->live[key] ? 0 : EINVAL;

	if (!err)
		own->values[ex.self->id][key] = (void *)(uintptr_t)value;
	leave();
	return err;
}

void *WRAP(pthread_getspecific)(pthread_key_t key)
{
	if (!enter())
		return REAL(pthread_getspecific)(key);
	void *value = key < own->count ? own->values[ex.self->id][key] : NULL;

	leave();
	return value;
}

static bool is_free(const struct thread *thread)
{
	return thread->next.object->owner < 0;
}

/* The first: the others stand before the point until it is over. */
static void run_once(struct object *object, void (*fn)(void))
{
	object->owner = (int)ex.self->id;
	leave();
	fn();
	enter();
	object->owner = -1;
	object->once = true;
	object->sync = ex.self->clock;
	object->order = ex.order[ex.self->id];
	clock_tick(ex.self);
}

int WRAP(pthread_once)(pthread_once_t *once, void (*fn)(void))
{
	struct op op = { .kind = K_ONCE,
			 .touches = { once, NULL },
			 .how = { WRITES, WRITES },
			 .ready = is_free,
			 .drained = true,
			 .pc = CALLER };

	if (!enter())
		return REAL(pthread_once)(once, fn);
	op.object = object_of(once);
	point(&op);
	op.how[0] = op.object->once ? READS : WRITES;
	event_touches(op.touches, op.how);
	event_after(&op.object->order);
	clock_join(&ex.self->clock, &op.object->sync);
	trace(K_ONCE, CALLER, once, 0);
	if (!op.object->once)
		run_once(op.object, fn);
	leave();
	return 0;
}
