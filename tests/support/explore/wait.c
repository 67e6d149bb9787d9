/* SPDX-License-Identifier: MIT */
/*
 * wait - mutexes, conditions, time, and waits for a condition of the case
 *
 * Taking a mutex is a point; it can be made when the mutex is free. A wait on a
 * condition is two: it enters and lets go of the mutex, then, signalled, takes
 * the mutex again. A signal wakes him who has waited longest; there are no
 * spurious wake-ups.
 *
 * Time stands still. A wait with an end, and a sleep, end when nothing else can
 * run: the one with the earliest end, and the clock goes there. Such a step
 * comes after all that was before it and is not reversed with any of it; a
 * schedule in which it came earlier would be one in which it was slower than
 * all the others, and is covered by no promise of the program's.
 */
#include "state.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)

static void used(const void *address, const void *pc)
{
	access_of(address, 1, true, true, pc);
}

static void made(const void *address, size_t size, const void *pc)
{
	access_of(address, size, true, false, pc);
}

/* Mutexes. */

static bool is_free(const struct thread *thread)
{
	return thread->next.object->owner < 0;
}

static void take(struct object *mutex)
{
	event_after(&mutex->order);
	clock_join(&ex.self->clock, &mutex->sync);
	mutex->owner = (int)ex.self->id;
}

static void give(struct object *mutex, const void *pc)
{
	if (mutex->owner != (int)ex.self->id)
		ex_fail(pc,
			"a mutex is unlocked that the thread does not hold");
	mutex->owner = -1;
	mutex->sync = ex.self->clock;
	mutex->order = ex.order[ex.self->id];
	clock_tick(ex.self);
}

int WRAP(pthread_mutex_init)(pthread_mutex_t *mutex,
			     const pthread_mutexattr_t *attr);
int WRAP(pthread_mutex_destroy)(pthread_mutex_t *mutex);
int WRAP(pthread_mutex_lock)(pthread_mutex_t *mutex);
int WRAP(pthread_mutex_trylock)(pthread_mutex_t *mutex);
int WRAP(pthread_mutex_unlock)(pthread_mutex_t *mutex);

int WRAP(pthread_mutex_init)(pthread_mutex_t *mutex,
			     const pthread_mutexattr_t *attr)
{
	(void)attr;
	if (!enter())
		return 0;
	made(mutex, sizeof(*mutex), CALLER);
	leave();
	return 0;
}

int WRAP(pthread_mutex_destroy)(pthread_mutex_t *mutex)
{
	if (!enter())
		return 0;
	if (object_of(mutex)->owner >= 0)
		ex_fail(CALLER, "a mutex is destroyed that is locked");
	made(mutex, sizeof(*mutex), CALLER);
	leave();
	return 0;
}

int WRAP(pthread_mutex_lock)(pthread_mutex_t *mutex)
{
	struct op op = { .kind = K_LOCK,
			 .touches = { mutex, NULL },
			 .how = { WRITES, WRITES },
			 .ready = is_free,
			 .drained = true };

	if (!enter())
		return 0;
	op.object = object_of(mutex);
	op.pc = CALLER;
	step(&op);
	used(mutex, CALLER);
	take(op.object);
	trace(K_LOCK, CALLER, mutex, 0);
	leave();
	return 0;
}

int WRAP(pthread_mutex_trylock)(pthread_mutex_t *mutex)
{
	(void)mutex;
	if (!enter())
		return 0;
	ex_fail(CALLER, "the explorer has no pthread_mutex_trylock()");
}

/*
 * On the way out of a mutex, what was stored before is seen. It is a step even
 * when the buffer is empty: a trace must not tell when that came to be.
 */
static void drain(const void *pc)
{
	struct op op = { .kind = K_UNLOCK, .drained = true, .pc = pc };

	if (ex.options.memory == MEMORY_TSO)
		step(&op);
}

int WRAP(pthread_mutex_unlock)(pthread_mutex_t *mutex)
{
	if (!enter())
		return 0;
	drain(CALLER);
	used(mutex, CALLER);
	give(object_of(mutex), CALLER);
	trace(K_UNLOCK, CALLER, mutex, 0);
	leave();
	return 0;
}

/* Conditions. */

int WRAP(pthread_cond_init)(pthread_cond_t *cond,
			    const pthread_condattr_t *attr);
int WRAP(pthread_cond_destroy)(pthread_cond_t *cond);
int WRAP(pthread_cond_wait)(pthread_cond_t *cond, pthread_mutex_t *mutex);
int WRAP(pthread_cond_timedwait)(pthread_cond_t *cond, pthread_mutex_t *mutex,
				 const struct timespec *end);
int WRAP(pthread_cond_signal)(pthread_cond_t *cond);
int WRAP(pthread_cond_broadcast)(pthread_cond_t *cond);

int WRAP(pthread_cond_init)(pthread_cond_t *cond,
			    const pthread_condattr_t *attr)
{
	(void)attr;
	if (!enter())
		return 0;
	made(cond, sizeof(*cond), CALLER);
	leave();
	return 0;
}

int WRAP(pthread_cond_destroy)(pthread_cond_t *cond)
{
	if (!enter())
		return 0;
	if (object_of(cond)->waiting)
		ex_fail(CALLER, "a condition is destroyed that is waited on");
	made(cond, sizeof(*cond), CALLER);
	leave();
	return 0;
}

static bool woken(const struct thread *thread)
{
	return (!thread->cond || thread->timed_out) && is_free(thread);
}

/* Takes the waiter at @at out. */
static struct thread *wake(struct object *cond, unsigned int at)
{
	struct thread *thread = &ex.threads[cond->waiters[at]];

	cond->waiting--;
	for (; at < cond->waiting; at++)
		cond->waiters[at] = cond->waiters[at + 1];
	thread->cond = NULL;
	return thread;
}

static void forget(struct object *cond)
{
	unsigned int at = 0;

	while (cond->waiters[at] != ex.self->id)
		at++;
	wake(cond, at);
}

static int cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex,
		     const struct timespec *end, const void *pc)
{
	struct thread *self = ex.self;
	struct op in = { .kind = K_COND_WAIT,
			 .touches = { cond, NULL },
			 .how = { WRITES, WRITES },
			 .drained = true,
			 .pc = pc };
	struct op out = { .kind = K_COND_WOKEN,
			  .touches = { mutex, NULL },
			  .how = { WRITES, WRITES },
			  .ready = woken,
			  .timed = end,
			  .pc = pc };
	struct object *object = object_of(cond);

	step(&in);
	used(cond, pc);
	used(mutex, pc);
	trace(K_COND_WAIT, pc, cond, 0);
	object->waiters[object->waiting++] = self->id;
	self->cond = object;
	out.object = object_of(mutex);
	give(out.object, pc);
	if (end)
		out.deadline = end->tv_sec * NS_PER_S + end->tv_nsec;
	point(&out);
	int err = self->cond ? ETIMEDOUT : 0;

	self->timed_out = false;
	if (self->cond)
		forget(object);
	else
		event_after(&self->wake);
	event_touches(out.touches, out.how);
	take(out.object);
	used(cond, pc);
	used(mutex, pc);
	trace(err ? K_TIMEOUT : K_COND_WOKEN, pc, cond, 0);
	return err;
}

int WRAP(pthread_cond_wait)(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	if (!enter())
		return 0;
	int err = cond_wait(cond, mutex, NULL, CALLER);

	leave();
	return err;
}

int WRAP(pthread_cond_timedwait)(pthread_cond_t *cond, pthread_mutex_t *mutex,
				 const struct timespec *end)
{
	if (!enter())
		return 0;
	int err = cond_wait(cond, mutex, end, CALLER);

	leave();
	return err;
}

static void cond_signal(pthread_cond_t *cond, enum kind kind, const void *pc)
{
	struct object *object = object_of(cond);
	struct op op = { .kind = kind,
			 .touches = { cond, NULL },
			 .how = { WRITES, WRITES },
			 .pc = pc };

	step(&op);
	used(cond, pc);
	trace(kind, pc, cond, 0);
	while (object->waiting) {
		wake(object, 0)->wake = ex.order[ex.self->id];
		if (kind == K_COND_SIGNAL)
			break;
	}
}

int WRAP(pthread_cond_signal)(pthread_cond_t *cond)
{
	if (!enter())
		return 0;
	cond_signal(cond, K_COND_SIGNAL, CALLER);
	leave();
	return 0;
}

int WRAP(pthread_cond_broadcast)(pthread_cond_t *cond)
{
	if (!enter())
		return 0;
	cond_signal(cond, K_COND_BROADCAST, CALLER);
	leave();
	return 0;
}

/* Time. */

int WRAP(clock_gettime)(clockid_t clock, struct timespec *now);
int WRAP(nanosleep)(const struct timespec *time, struct timespec *left);
int REAL(clock_gettime)(clockid_t clock, struct timespec *now);
int REAL(nanosleep)(const struct timespec *time, struct timespec *left);

int WRAP(clock_gettime)(clockid_t clock, struct timespec *now)
{
	if (!enter())
		return REAL(clock_gettime)(clock, now);
	now->tv_sec = ex.now / NS_PER_S;
	now->tv_nsec = ex.now % NS_PER_S;
	leave();
	return 0;
}

static bool slept(const struct thread *thread)
{
	return thread->timed_out;
}

int WRAP(nanosleep)(const struct timespec *time, struct timespec *left)
{
	struct op op = {
		.kind = K_SLEEP, .ready = slept, .timed = true, .pc = CALLER
	};

	if (!enter())
		return REAL(nanosleep)(time, left);
	op.deadline = ex.now + time->tv_sec * NS_PER_S + time->tv_nsec;
	step(&op);
	ex.self->timed_out = false;
	trace(K_SLEEP, CALLER, NULL, 0);
	leave();
	return 0;
}

bool wait_timeout(void)
{
	struct thread *first = NULL;

	for (unsigned int id = 0; id < THREADS; id++) {
		struct thread *thread = &ex.threads[id];

		if (thread->live && !thread->ended && thread->next.timed &&
		    !thread->timed_out &&
		    (!first || thread->next.deadline < first->next.deadline))
			first = thread;
	}
	if (!first)
		return false;
	first->timed_out = true;
	if (ex.now < first->next.deadline)
		ex.now = first->next.deadline;
	return true;
}

/* Conditions of the case. */

#define LOOKED 16

static struct {
	unsigned int count;
	struct {
		const void *address;
		size_t size;
	} at[LOOKED];
} * looked;

void wait_create(void)
{
	looked = ex_map(sizeof(*looked));
}

void wait_look(const void *address, size_t size)
{
	if (!ex.looking)
		return;
	if (looked->count == LOOKED)
		ex_fail(NULL, "a condition looks at more than %d values",
			LOOKED);
	looked->at[looked->count].address = address;
	looked->at[looked->count++].size = size;
}

static bool holds(const struct thread *thread)
{
	looked->count = 0;
	ex.looking = true;
	bool holds = thread->next.condition();

	ex.looking = false;
	return holds;
}

/* A write that was waited for is seen, with all that its thread had seen. */
static void waited_for(unsigned int thread, unsigned int event)
{
	if (thread == ex.self->id)
		return;
	clock_join(&ex.self->clock, &ex.threads[thread].clock);
	if (ex.branching && event)
		event_after(&ex.events[ex.event_of[thread][event]].order);
}

void explore_await(bool (*condition)(void))
{
	struct op op = { .kind = K_AWAIT,
			 .ready = holds,
			 .condition = condition,
			 .pc = CALLER };

	if (!enter())
		return;
	point(&op);
	ex.self->next = op;
	holds(ex.self);
	for (unsigned int i = 0; i < looked->count; i++)
		race_writers(looked->at[i].address, looked->at[i].size,
			     waited_for);
	trace(K_AWAIT, CALLER, NULL, 0);
	leave();
}
