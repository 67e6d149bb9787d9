/* SPDX-License-Identifier: MIT */
/*
 * manual - the flavour that a test advances by hand
 *
 * One mutex guards everything: this is for finding faults, not for speed.
 *
 * Time is a clock that goes up by one at each event that matters. A reader
 * carries the time at which its outermost lock was taken; a grace period is
 * over when no reader is inside that entered before it began. Callbacks stand
 * in two queues: those that were there when the open grace period began, and
 * those that came since, which wait for the next. That is all of RCU.
 *
 * A registered thread has a node in a list. The node is not in the thread's
 * own memory: when a thread ends inside a reader its node stays, and goes on
 * holding up grace periods, as the lost reader would have wished. A key of
 * pthreads tells of threads that end while registered.
 *
 * Callbacks run on the thread that advances, outside the mutex, so that they
 * may queue others; a second mutex keeps them in order. A fault is told
 * outside both, for a hook may look at the counters.
 */
#include <urcu/call-rcu.h>
#include <urcu/flavor.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "manual.h"

struct node {
	struct node *next;
	uint64_t entered; /* time of the outermost lock */
	unsigned int nest;
	bool offline;
	bool lost; /* its thread has ended */
};

struct queue {
	struct cds_wfcq_node *first, **last;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t runner = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t left = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static struct node *nodes;
static struct queue fresh = { NULL, &fresh.first }; /* since it began */
static struct queue waiting = { NULL, &waiting.first }; /* before it began */
static bool open; /* a grace period of manual_advance() */
static uint64_t now, began; /* times */
static uint64_t queued, done, periods, offlines;
static unsigned int faults[MANUAL_FAULTS];
static manual_fault_fn hook;

static _Thread_local struct node *self;

static const char *const texts[MANUAL_FAULTS] = {
	[MANUAL_NOT_REGISTERED] = "a thread that is not registered reads",
	[MANUAL_NOT_INSIDE] = "unlock outside a reader",
	[MANUAL_READS_OFFLINE] = "a thread that is offline reads",
	[MANUAL_REGISTERED_TWICE] = "a thread registers twice",
	[MANUAL_UNREGISTERS_INSIDE] = "a thread unregisters inside a reader",
	[MANUAL_ENDS_REGISTERED] = "a thread ended without unregistering",
	[MANUAL_ENDS_INSIDE] = "a thread ended inside a reader",
	[MANUAL_OFFLINE_INSIDE] = "a thread goes offline inside a reader",
	[MANUAL_WAITS_INSIDE] = "a wait for a grace period inside a reader",
};

static void tell(enum manual_fault fault)
{
	manual_fault_fn fn;

	pthread_mutex_lock(&lock);
	faults[fault]++;
	fn = hook;
	pthread_mutex_unlock(&lock);
	if (fn) {
		fn(fault, texts[fault]);
		return;
	}
	fprintf(stderr, "manual: %s\n", texts[fault]);
	abort();
}

static void queue_append(struct queue *to, struct queue *from)
{
	if (!from->first)
		return;
	*to->last = from->first;
	to->last = from->last;
	from->first = NULL;
	from->last = &from->first;
}

/* Threads. */

static void forget(struct node *node)
{
	struct node **at = &nodes;

	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	free(node);
}

static void thread_ended(void *arg)
{
	struct node *node = arg;
	bool inside = node->nest;

	pthread_mutex_lock(&lock);
	self = NULL;
	if (inside)
		node->lost = true;
	else
		forget(node);
	pthread_mutex_unlock(&lock);
	tell(inside ? MANUAL_ENDS_INSIDE : MANUAL_ENDS_REGISTERED);
}

static void make_key(void)
{
	if (pthread_key_create(&key, thread_ended))
		abort();
}

static void register_thread(void)
{
	if (self) {
		tell(MANUAL_REGISTERED_TWICE);
		return;
	}
	pthread_once(&once, make_key);
	self = calloc(1, sizeof(*self));
	if (!self || pthread_setspecific(key, self))
		abort();
	pthread_mutex_lock(&lock);
	self->next = nodes;
	nodes = self;
	pthread_mutex_unlock(&lock);
}

static void unregister_thread(void)
{
	if (!self) {
		tell(MANUAL_NOT_REGISTERED);
		return;
	}
	if (self->nest) {
		tell(MANUAL_UNREGISTERS_INSIDE);
		return;
	}
	pthread_setspecific(key, NULL);
	pthread_mutex_lock(&lock);
	forget(self);
	pthread_mutex_unlock(&lock);
	self = NULL;
}

/* A thread that is not registered may call these two, to no effect. */
static void thread_offline(void)
{
	if (!self)
		return;
	if (self->nest) {
		tell(MANUAL_OFFLINE_INSIDE);
		return;
	}
	pthread_mutex_lock(&lock);
	self->offline = true;
	offlines++;
	pthread_mutex_unlock(&lock);
}

static void thread_online(void)
{
	if (self)
		self->offline = false;
}

/* Readers. */

static void read_lock(void)
{
	if (!self || self->offline) {
		tell(self ? MANUAL_READS_OFFLINE : MANUAL_NOT_REGISTERED);
		return;
	}
	pthread_mutex_lock(&lock);
	if (!self->nest++)
		self->entered = ++now;
	pthread_mutex_unlock(&lock);
}

static void read_unlock(void)
{
	if (!self || !self->nest) {
		tell(MANUAL_NOT_INSIDE);
		return;
	}
	pthread_mutex_lock(&lock);
	if (!--self->nest)
		pthread_cond_broadcast(&left);
	pthread_mutex_unlock(&lock);
}

static int read_ongoing(void)
{
	return self && self->nest;
}

static void read_quiescent_state(void)
{
}

/* Grace periods. */

static bool held_up(uint64_t since)
{
	for (struct node *node = nodes; node; node = node->next)
		if (node->nest && node->entered < since)
			return true;
	return false;
}

static void update_call_rcu(struct rcu_head *head,
			    void (*func)(struct rcu_head *head))
{
	head->func = func;
	head->next.next = NULL;
	pthread_mutex_lock(&lock);
	*fresh.last = &head->next;
	fresh.last = &head->next.next;
	queued++;
	pthread_mutex_unlock(&lock);
}

static void update_synchronize_rcu(void)
{
	uint64_t since;

	if (read_ongoing()) {
		tell(MANUAL_WAITS_INSIDE);
		return;
	}
	pthread_mutex_lock(&lock);
	since = ++now;
	while (held_up(since))
		pthread_cond_wait(&left, &lock);
	periods++;
	pthread_mutex_unlock(&lock);
}

/* Moves the callbacks that are ready to @ready; false when none can be. */
static bool end_period(struct queue *ready)
{
	bool over;

	pthread_mutex_lock(&lock);
	if (!open) {
		open = true;
		began = ++now;
		queue_append(&waiting, &fresh);
	}
	over = !held_up(began);
	if (over) {
		open = false;
		periods++;
		queue_append(ready, &waiting);
	}
	pthread_mutex_unlock(&lock);
	return over;
}

static void run(struct queue *ready)
{
	struct cds_wfcq_node *node = ready->first, *next;

	for (; node; node = next) {
		struct rcu_head *head =
			caa_container_of(node, struct rcu_head, next);

		next = node->next;
		head->func(head);
		pthread_mutex_lock(&lock);
		done++;
		pthread_mutex_unlock(&lock);
	}
}

bool manual_advance(void)
{
	struct queue ready = { NULL, &ready.first };
	bool over;

	pthread_mutex_lock(&runner);
	over = end_period(&ready);
	run(&ready);
	pthread_mutex_unlock(&runner);
	return over;
}

bool manual_drain(void)
{
	while (manual_pending())
		if (!manual_advance())
			return false;
	return true;
}

static bool ran(uint64_t number)
{
	bool ran;

	pthread_mutex_lock(&lock);
	ran = done >= number;
	pthread_mutex_unlock(&lock);
	return ran;
}

static void barrier(void)
{
	uint64_t number;

	if (read_ongoing()) {
		tell(MANUAL_WAITS_INSIDE);
		return;
	}
	pthread_mutex_lock(&lock);
	number = queued;
	pthread_mutex_unlock(&lock);
	while (!ran(number)) {
		if (manual_advance())
			continue;
		pthread_mutex_lock(&lock);
		while (open && held_up(began))
			pthread_cond_wait(&left, &lock);
		pthread_mutex_unlock(&lock);
	}
}

const struct rcu_flavor_struct manual_flavor = {
	.read_lock = read_lock,
	.read_unlock = read_unlock,
	.read_ongoing = read_ongoing,
	.read_quiescent_state = read_quiescent_state,
	.update_call_rcu = update_call_rcu,
	.update_synchronize_rcu = update_synchronize_rcu,
	.thread_offline = thread_offline,
	.thread_online = thread_online,
	.register_thread = register_thread,
	.unregister_thread = unregister_thread,
	.barrier = barrier,
};

/* What a test looks at. */

void manual_set_hook(manual_fault_fn fn)
{
	pthread_mutex_lock(&lock);
	hook = fn;
	pthread_mutex_unlock(&lock);
}

static uint64_t look(const uint64_t *counter)
{
	uint64_t value;

	pthread_mutex_lock(&lock);
	value = *counter;
	pthread_mutex_unlock(&lock);
	return value;
}

unsigned int manual_faults(enum manual_fault fault)
{
	unsigned int n;

	pthread_mutex_lock(&lock);
	n = faults[fault];
	pthread_mutex_unlock(&lock);
	return n;
}

unsigned int manual_pending(void)
{
	unsigned int n;

	pthread_mutex_lock(&lock);
	n = (unsigned int)(queued - done);
	pthread_mutex_unlock(&lock);
	return n;
}

static unsigned int threads(bool inside)
{
	unsigned int n = 0;

	pthread_mutex_lock(&lock);
	for (struct node *node = nodes; node; node = node->next)
		n += inside ? node->nest > 0 : !node->lost;
	pthread_mutex_unlock(&lock);
	return n;
}

unsigned int manual_inside(void)
{
	return threads(true);
}

unsigned int manual_registered(void)
{
	return threads(false);
}

uint64_t manual_periods(void)
{
	return look(&periods);
}

uint64_t manual_offlines(void)
{
	return look(&offlines);
}

unsigned int manual_reset(void)
{
	struct node **at = &nodes, *node;
	unsigned int dropped;

	pthread_mutex_lock(&lock);
	while ((node = *at))
		if (node->lost) {
			*at = node->next;
			free(node);
		} else {
			at = &node->next;
		}
	for (int fault = 0; fault < MANUAL_FAULTS; fault++)
		faults[fault] = 0;
	fresh = (struct queue){ NULL, &fresh.first };
	waiting = (struct queue){ NULL, &waiting.first };
	dropped = (unsigned int)(queued - done);
	queued = done = periods = offlines = 0;
	open = false;
	pthread_mutex_unlock(&lock);
	return dropped;
}
