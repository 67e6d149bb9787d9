/* SPDX-License-Identifier: MIT */
/*
 * rcu - grace periods, as weak as the contract lets them be
 *
 * A grace period that is asked for remembers, for each thread, the reader that
 * it was in; it is over when those have left. That is when its callback can
 * start: whether it does so at once or much later is a choice of the schedule
 * like any other. Callbacks run one after the other on a thread of their own.
 *
 * Happens-before, and nothing more:
 *   a reader that began before the grace period was asked for, up to where it
 *   left -> the callback, or the return of synchronize;
 *   the callback's start, or that return -> a reader that begins later;
 *   the call that asked -> the callback.
 * A reader that begins between the call and the end of the grace period may in
 * truth have begun before the grace period, which then would have waited, or
 * after; a program may count on neither, and has neither edge here. Under
 * --weak, though, such a reader sees what was before the call: without that it
 * could find what was taken out before, and the callback would have to wait.
 *
 * Dependence. Where a reader begins matters to a call and to the end of a grace
 * period, and the other way round; where it ends does not: before the call or
 * after it, the callback comes after it. Calls depend on each other by the
 * order of their callbacks.
 */
#include "state.h"

#include <string.h>

#include <urcu/call-rcu.h>

#define CALLBACKS 4096

/* Whom to wait for: the readers up to these, each by number in its thread. */
struct grace {
	unsigned int up_to[THREADS];
	struct clock clock;
	struct order order;
};

struct callback {
	struct rcu_head *head;
	void (*fn)(struct rcu_head *head);
	struct grace grace;
	struct clock done_clock;
	struct order done_order;
};

static struct {
	struct callback callbacks[CALLBACKS];
	unsigned int queued, started, done;
	struct grace syncs[THREADS];
	bool syncing[THREADS];
	unsigned int entered[THREADS], left[THREADS]; /* readers */
	struct clock asked; /* by whoever asked for grace periods */
	struct clock over; /* of grace periods that are over */
	struct clock left_clock; /* of all readers that left */
	struct order left_order;
} * own;

/*
 * Where grace periods are asked for, and where they end, which is to add:
 * readers begin at both. Where callbacks are queued, in order.
 */
static char gate, outlet, queue;

void rcu_create(void)
{
	own = ex_map(sizeof(*own));
}

void rcu_reset(void)
{
	size_t from = offsetof(__typeof__(*own), queued);

	memset((char *)own + from, 0, sizeof(*own) - from);
}

bool rcu_idle(void)
{
	return own->queued == own->done;
}

/* Readers. */

static void leave_grace(struct grace *grace, unsigned int thread,
			const struct clock *clock, const struct order *order)
{
	if (grace->up_to[thread] < own->left[thread])
		return;
	clock_join(&grace->clock, clock);
	order_join(&grace->order, order);
}

/*
 * The oldest reader of @thread that had not left has left, with what it had
 * stored in memory: after both, whichever came last.
 */
void rcu_left(unsigned int thread, const struct clock *clock,
	      const struct order *left)
{
	struct order both = *left, *order = &both;

	order_join(order, &ex.order[BUFFERS + thread]);
	own->left[thread]++;
	for (unsigned int i = own->started; i < own->queued; i++)
		leave_grace(&own->callbacks[i].grace, thread, clock, order);
	for (unsigned int i = 0; i < THREADS; i++)
		if (own->syncing[i])
			leave_grace(&own->syncs[i], thread, clock, order);
	clock_join(&own->left_clock, clock);
	order_join(&own->left_order, order);
}

static void read_lock(void)
{
	struct op op = { .kind = K_READ_LOCK,
			 .touches = { &gate, &outlet },
			 .pc = CALLER };

	if (!enter())
		return;
	if (!ex.self->nest++) {
		step(&op);
		own->entered[ex.self->id]++;
		clock_join(&ex.self->clock, ex.options.memory == MEMORY_WEAK
						    ? &own->asked
						    : &own->over);
		trace(K_READ_LOCK, CALLER, NULL, 0);
	}
	leave();
}

static void read_unlock(void)
{
	struct thread *self = ex.self;

	if (!enter())
		return;
	if (!self->nest)
		ex_fail(CALLER, "read_unlock() outside a reader");
	if (!--self->nest) {
		if (tso_empty(self->id))
			rcu_left(self->id, &self->clock, &ex.order[self->id]);
		else
			tso_put_left();
		clock_tick(self);
		trace(K_READ_UNLOCK, CALLER, NULL, 0);
	}
	leave();
}

static int read_ongoing(void)
{
	return ex.self->nest != 0;
}

static void nothing(void)
{
}

/* Grace periods. */

static bool over(const struct grace *grace)
{
	for (int id = 0; id < THREADS; id++)
		if (own->left[id] < grace->up_to[id])
			return false;
	return true;
}

static void ask(struct grace *grace)
{
	struct thread *self = ex.self;

	memcpy(grace->up_to, own->entered, sizeof(grace->up_to));
	grace->clock = own->left_clock;
	clock_join(&grace->clock, &self->clock);
	grace->order = own->left_order;
	order_join(&grace->order, &ex.order[self->id]);
	clock_join(&own->asked, &self->clock);
	clock_tick(self);
}

/* It is over for the thread that goes on. */
static void after(const struct grace *grace)
{
	event_after(&grace->order);
	event_touches(ex.self->next.touches, ex.self->next.how);
	clock_join(&ex.self->clock, &grace->clock);
	clock_join(&own->over, &ex.self->clock);
	clock_tick(ex.self);
}

static struct op asking(enum kind kind, const void *pc)
{
	return (struct op){ .kind = kind,
			    .touches = { &gate, NULL },
			    .how = { ADDS, WRITES },
			    .drained = true,
			    .pc = pc };
}

static void defer(struct rcu_head *head, void (*fn)(struct rcu_head *head))
{
	struct op op = asking(K_CALL_RCU, CALLER);

	if (!enter())
		return;
	op.touches[1] = &queue;
	step(&op);
	access_of(head, sizeof(*head), true, false, CALLER);
	for (unsigned int i = own->started; i < own->queued; i++)
		if (own->callbacks[i].head == head)
			ex_fail(CALLER, "call_rcu() of a head that is queued");
	if (own->queued == CALLBACKS)
		ex_fail(CALLER, "more than %d callbacks", CALLBACKS);
	struct callback *callback = &own->callbacks[own->queued++];

	callback->head = head;
	callback->fn = fn;
	ask(&callback->grace);
	trace(K_CALL_RCU, CALLER, head, 0);
	leave();
}

static bool callback_ready(const struct thread *thread)
{
	(void)thread;
	return own->started < own->queued &&
	       over(&own->callbacks[own->started].grace);
}

/* The thread of callbacks. */
void rcu_thread(void)
{
	struct op op = { .kind = K_CALLBACK,
			 .touches = { &outlet, NULL },
			 .how = { ADDS, WRITES },
			 .ready = callback_ready };

	enter();
	for (;;) {
		point(&op);
		struct callback *callback = &own->callbacks[own->started++];
		struct rcu_head *head = callback->head;

		after(&callback->grace);
		/* A place is told by the address after the call. */
		trace(K_CALLBACK, (char *)(uintptr_t)callback->fn + 1, head, 0);
		access_of(head, sizeof(*head), false, false, NULL);
		leave();
		callback->fn(head);
		enter();
		if (ex.self->nest)
			ex_fail(NULL, "a callback ends inside a reader");
		callback->done_clock = ex.self->clock;
		callback->done_order = ex.order[ex.self->id];
		clock_tick(ex.self);
		own->done++;
	}
}

static bool sync_ready(const struct thread *thread)
{
	return over(&own->syncs[thread->id]);
}

static void synchronize(void)
{
	struct op ask_op = asking(K_SYNC, CALLER);
	struct op end = { .kind = K_SYNC_END,
			  .touches = { &outlet, NULL },
			  .how = { ADDS, WRITES },
			  .ready = sync_ready,
			  .pc = CALLER };

	if (!enter())
		return;
	unsigned int id = ex.self->id;

	if (ex.self->nest)
		ex_fail(CALLER, "synchronize_rcu() inside a reader");
	step(&ask_op);
	ask(&own->syncs[id]);
	own->syncing[id] = true;
	trace(K_SYNC, CALLER, NULL, 0);
	point(&end);
	own->syncing[id] = false;
	after(&own->syncs[id]);
	trace(K_SYNC_END, CALLER, NULL, 0);
	leave();
}

static bool barrier_ready(const struct thread *thread)
{
	return own->done >= thread->next.number;
}

/* Waits for the callbacks that are queued; how many those were. */
static unsigned int wait_queued(const void *pc)
{
	struct op ask_op = asking(K_BARRIER, pc);
	struct op end = { .kind = K_BARRIER_END,
			  .ready = barrier_ready,
			  .pc = pc };

	if (ex.self->nest)
		ex_fail(pc, "a wait for callbacks inside a reader");
	ask_op.touches[0] = &queue;
	ask_op.how[0] = READS;
	step(&ask_op);
	end.number = own->queued;
	trace(K_BARRIER, pc, NULL, 0);
	point(&end);
	if (end.number) {
		const struct callback *last = &own->callbacks[end.number - 1];

		event_after(&last->done_order);
		clock_join(&ex.self->clock, &last->done_clock);
	}
	trace(K_BARRIER_END, pc, NULL, 0);
	return end.number;
}

static void barrier(void)
{
	if (!enter())
		return;
	wait_queued(CALLER);
	leave();
}

/* Callbacks may queue others: again until there were none. */
void explore_barrier(void)
{
	unsigned int before = 0, now;

	if (!enter())
		return;
	while ((now = wait_queued(CALLER)) != before)
		before = now;
	leave();
}

unsigned int explore_callbacks(void)
{
	return own->queued - own->done;
}

const struct rcu_flavor_struct explore_flavor = {
	.read_lock = read_lock,
	.read_unlock = read_unlock,
	.read_ongoing = read_ongoing,
	.read_quiescent_state = nothing,
	.update_call_rcu = defer,
	.update_synchronize_rcu = synchronize,
	.thread_offline = nothing,
	.thread_online = nothing,
	.register_thread = nothing,
	.unregister_thread = nothing,
	.barrier = barrier,
};
