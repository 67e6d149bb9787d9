/* SPDX-License-Identifier: MIT */
/*
 * state - what the parts of the explorer share; explore.c tells the whole
 *
 * All that the runtime remembers is in one object, which is left alone when the
 * program's data is put back; big tables are mapped beside it.
 */
#ifndef EXPLORE_STATE_H
#define EXPLORE_STATE_H

#include "explore.h"

#include <setjmp.h>
#include <stddef.h>
#include <time.h>

/*
 * Processes, which is what a schedule is made of: the thread of setup and
 * check, the case's threads, the thread of RCU callbacks; and for each of
 * these, its store buffer, which is emptied by itself (tso.c).
 */
enum {
	MAIN,
	FIRST,
	RCU = FIRST + EXPLORE_THREADS,
	THREADS,
	BUFFERS = THREADS,
	PROCS = 2 * THREADS,
};

#define OBJECTS 8192 /* a power of two */
#define STEPS 20000 /* of a schedule; a case that takes more does not end */
/* Where they lie, for programs hash addresses; 39 bits are arm64's least. */
#define ARENAS_AT UINT64_C(0x2000000000)
#define STACKS_AT UINT64_C(0x2100000000)
#define STACK_SIZE ((size_t)256 << 10)
#define DEPTH_MAX 16 /* of a fault, for random schedules */
#define CALLS 64 /* remembered of a thread's stack */

/* What is ordered before: C11's happens-before, in epochs of threads. */
struct clock {
	uint32_t at[THREADS];
};

/* What depends: the reduction's happens-before, in events of processes. */
struct order {
	uint16_t at[PROCS];
};

enum kind {
	K_LOAD,
	K_STORE,
	K_RMW,
	K_CAS_FAILED,
	K_FENCE,
	K_LOCK,
	K_UNLOCK,
	K_COND_WAIT,
	K_COND_WOKEN,
	K_COND_SIGNAL,
	K_COND_BROADCAST,
	K_ONCE,
	K_SLEEP,
	K_TIMEOUT,
	K_FLUSH,
	K_READ_LOCK,
	K_READ_UNLOCK,
	K_CALL_RCU,
	K_CALLBACK,
	K_SYNC,
	K_SYNC_END,
	K_BARRIER,
	K_BARRIER_END,
	K_AWAIT,
	K_MALLOC,
	K_FREE,
	K_REPORT,
	K_THREAD_END,
	K_READ,
	K_WRITE,
	K_STUCK,
	K_KINDS
};

/* Those who read do not depend on each other, nor do those who add. */
enum touch { READS, WRITES, ADDS };

struct thread;
struct object;
struct entry;

/*
 * The next step of a thread: what it touches that others may touch, and when it
 * can be made.
 */
struct op {
	enum kind kind;
	enum touch how[2];
	const void *touches[2]; /* addresses that stand for things; or NULL */
	bool (*ready)(const struct thread *thread); /* NULL: always */
	bool drained; /* needs an empty store buffer */
	bool timed; /* ends by itself when nothing else can run */
	bool swaps; /* compares first, and may turn out to be a reader */
	unsigned int size;
	uint64_t expected;
	int64_t deadline; /* of a timed one */
	const void *pc;
	struct object *object;
	unsigned int number; /* of a callback to wait for */
	bool (*condition)(void);
};

struct thread {
	jmp_buf base, at;
	char *stack, *tls;
	void (*fn)(void);
	unsigned int id;
	bool live, started, ended;
	bool timed_out;
	struct op next;
	struct clock clock; /* what it has seen */
	struct clock released; /* by its last release fence */
	struct clock acquirable; /* by an acquire fence to come */
	struct object *cond; /* waits on it, not signalled yet */
	struct order wake; /* by whom it was signalled */
	unsigned int nest; /* of readers */
	struct {
		const void *pc;
		const char *sp;
	} calls[CALLS];
	unsigned int depth;
	const char *sp; /* of where it was left */
	const char *foreign; /* end of what others touched of its stack */
};

/* A thing that threads meet at: an atomic, a mutex, a condition, RCU. */
struct object {
	const void *key;
	uint32_t run;
	/* The last events that touched it, + 1. */
	uint16_t writer, reader[PROCS], adder[PROCS];
	struct order order; /* what made it free */
	struct clock sync; /* what an acquire of it sees */
	int owner; /* of a mutex: thread, or -1 */
	bool once; /* pthread_once() is done */
	unsigned int waiters[THREADS], waiting; /* of a condition */
	struct entry *newest; /* weak.c */
};

struct event {
	uint8_t proc;
	uint16_t number; /* among those of its process, from 1 */
	enum touch how[2];
	const void *touches[2];
	struct order order;
};

/* A point where the schedule may fork: one per event. */
struct node {
	uint16_t enabled, sleep, backtrack, done;
	uint8_t proc;
	uint8_t current; /* who ran before */
	uint16_t preemptions; /* until here */
	uint16_t value, values; /* which of how many a load may see */
};

enum search { SEARCH_REDUCED, SEARCH_PLAIN, SEARCH_RANDOM, SEARCH_REPLAY };
enum memory { MEMORY_SC, MEMORY_TSO, MEMORY_WEAK };

/* A line of the trace. */
struct line {
	uint8_t proc;
	uint8_t kind;
	uint8_t size;
	int8_t memory_order;
	int step; /* -1: part of the one before */
	const void *pc, *address;
	uint64_t old, new;
	const char *text;
};
#define LINES (4 * STEPS)

struct options {
	const char *program, *only, *replay;
	unsigned int bound, depth;
	bool bound_set, no_reduction, list, trace, expect_failure, outcomes;
	enum memory memory;
	uint64_t random, max, seed;
	double seconds;
};

struct state {
	struct options options;
	const struct explore_case *running;
	enum search search;
	unsigned int bound;

	uint32_t run; /* stamps what belongs to this schedule */
	bool watching; /* the program runs, and not the runtime */
	bool looking; /* the program runs, for a condition to wait for */
	bool branching; /* the threads run, and not setup or check */
	bool launching;
	struct thread threads[THREADS], *self;
	jmp_buf host;

	struct event *events;
	struct node *nodes;
	unsigned int depth; /* events so far */
	unsigned int prefix; /* nodes that are given */
	uint16_t count[PROCS]; /* events of each */
	uint16_t (*event_of)[STEPS + 1]; /* [proc][number] */
	struct order order[PROCS];
	unsigned int current; /* the thread that ran last */

	struct object *objects;
	unsigned int object_count;
	int64_t now; /* the program's clock, ns */
	unsigned int reports[DSTREF_REPORT_KIND_COUNT];

	char reason[400];
	const void *reason_pc;
	bool failed, redundant, exhausted;
	uint64_t random_state;

	uint64_t schedules, points, redundants;
	unsigned int deepest;
};

extern struct state ex;

/* What the linker puts in the place of a libc function, and the function. */
#define WRAP(name) __wrap_##name
#define REAL(name) __real_##name
#define CALLER __builtin_return_address(0)

/* From the program into the runtime, and back: each hook. */
static inline bool enter(void)
{
	bool watching = ex.watching;

	ex.watching = false;
	return watching;
}

static inline void leave(void)
{
	ex.watching = true;
}

/* explore.c */
_Noreturn void ex_fail(const void *pc, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
_Noreturn void ex_end_run(void); /* back to the host */

/* threads.c */
void threads_create(void);
void threads_reset(void);
_Noreturn void threads_run(void);
void thread_switch(unsigned int id);
void thread_start(unsigned int id, void (*fn)(void));
bool thread_on_stack(const void *address, unsigned int *id);
const char *thread_stack_end(unsigned int id);
void image_save(void);
void image_restore(void);
bool image_has(const void *address);
void *ex_map(size_t size);
void *ex_map_at(uintptr_t hint, size_t size);

/* schedule.c: the points, and who goes on */
void point(const struct op *op);
void step(const struct op *op); /* a point, and all that it touches */
_Noreturn void thread_end(void);
void schedule_case(void);

/* dpor.c */
void event_begin(unsigned int proc);
void event_after(const struct order *order); /* it needed these */
void event_after_all(void);
void event_touches(const void *const touches[2], const enum touch how[2]);
void order_join(struct order *into, const struct order *from);
struct object *object_of(const void *key);
void node_open(unsigned int enabled);
int node_choose(void); /* -1: all that is left was seen elsewhere */
unsigned int node_values(unsigned int values); /* which to take */
bool nodes_next(void);

/* race.c */
void clock_join(struct clock *into, const struct clock *from);
void clock_tick(struct thread *thread);
bool clock_sees(const struct clock *clock, unsigned int thread, uint32_t epoch);
void race_create(void);
void race_reset(void);
void race_access(const void *address, size_t size, bool write, bool atomic,
		 const void *pc);
void race_free(const void *address, size_t size, const char *what,
	       const void *pc);
void race_frame_ends(const char *from, const void *pc);
void race_writers(const void *address, size_t size,
		  void (*fn)(unsigned int thread, unsigned int event));

/* memory.c */
void memory_create(void);
void memory_reset(void);
bool memory_has(const void *address);
void memory_check(const void *address, size_t size, bool write, const void *pc);
void memory_leaks(void);
void memory_name(const void *address, char *text, size_t size);

/* atomic.c */
void access_of(const void *address, size_t size, bool write, bool atomic,
	       const void *pc);
uint64_t memory_load(const void *address, unsigned int size);
void memory_store(void *address, unsigned int size, uint64_t value);

/* wait.c */
void wait_create(void);
bool wait_timeout(void); /* lets the first timed wait end; false: none */
void wait_look(const void *address, size_t size);

/* keys.c: what pthreads keeps for each thread */
void keys_create(void);
void keys_reset(void);
void keys_end(void); /* of a thread: calls the destructors */

/* tso.c */
void tso_create(void);
void tso_reset(void);
bool tso_empty(unsigned int thread);
bool tso_full(unsigned int thread);
void tso_put(void *address, unsigned int size, uint64_t value,
	     const struct clock *sync, const void *pc);
void tso_put_left(void); /* the end of a reader */
bool tso_find(const void *address, unsigned int size, uint64_t *value);
void tso_flush(unsigned int thread);
const void *tso_next(unsigned int thread);

/* weak.c */
void weak_create(void);
void weak_reset(void);
uint64_t weak_load(struct object *object, unsigned int size, struct clock *sync,
		   const uint64_t *not_this, bool *latest);
void weak_store(struct object *object, unsigned int size, uint64_t value,
		const struct clock *sync);

/* rcu.c */
void rcu_create(void);
void rcu_reset(void);
void rcu_thread(void);
bool rcu_idle(void);
void rcu_left(unsigned int thread, const struct clock *clock,
	      const struct order *left);

/* random.c */
void random_create(void);
void random_start(void);
unsigned int random_choose(unsigned int enabled);
unsigned int random_below(unsigned int n);

/* outcome.c */
void outcome_create(void);
void outcome_reset(void);
void outcome_add(void);
void outcome_print(void);

/* trace.c */
void trace_create(void);
void trace_reset(void);
struct line *trace(enum kind kind, const void *pc, const void *address,
		   unsigned int size);
void trace_stuck(const struct thread *thread);
void trace_print(void);
void trace_place(const void *pc, char *text, size_t size);
void trace_symbol(const void *address, char *text, size_t size);
const char *proc_name(unsigned int proc, char text[16]);
const char *kind_name(enum kind kind);

/* options.c */
void options_parse(int argc, char **argv);

/* replay.c */
const char *replay_parse(const char *text); /* NULL: not a schedule */
unsigned int replay_choose(unsigned int enabled);
unsigned int replay_value(unsigned int values);
void replay_print(void);

#endif
