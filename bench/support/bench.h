/* SPDX-License-Identifier: MIT */
/*
 * bench - what an experiment of dstref-bench is made of
 *
 * An experiment (bench/experiments/NAME.c, one struct bench_experiment called
 * bench_NAME) is a list of tables. A table is a list of variants that are
 * compared with each other: ours, rivals, floors. The harness runs each
 * variant at each number of threads, for a short time, all of them in turn,
 * and then all of them again (A B A B), at least five times. So whatever else
 * the machine does falls on all, and a ratio is taken between neighbours in
 * time: pair by pair, then the median of the ratios.
 *
 * A run of a variant: setup makes the state; as many threads as asked are
 * started, pinned, and wait at a common start; each calls work, which repeats
 * the operation until bench_over() and counts in self->ops; teardown. Only the
 * time between the common start and the end of work counts, by the thread's
 * own clocks: wall and CPU.
 *
 * Roles are the variant's own: work looks at self->id (0 transmits, 1
 * completes). The value of a run is what table->value makes of its threads;
 * bench_ns_per_op() when NULL.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BENCH_LINE 64
#define BENCH_COUNTERS 4 /* further columns of a table, at most */
#define BENCH_BATCH 256 /* operations between two looks at the stop flag */
#define BENCH_SAMPLES 4096 /* that a thread keeps of a run, at most */
#define BENCH_CAP (UINT64_C(1) << 40) /* operations of a thread, at most */

struct bench_variant;

/* What a thread knows of itself. Line-aligned, each in memory of its own. */
struct bench_self {
	unsigned int id; /* 0 .. threads - 1 */
	unsigned int threads; /* of this run */
	const struct bench_variant *variant;
	void *state; /* what setup made */
	uint64_t ops; /* work counts them */
	uint64_t counter[BENCH_COUNTERS]; /* work counts these too */
	double *samples; /* bench_sample() */
	size_t sampled; /* samples offered; the first BENCH_SAMPLES are kept */
	const bool *over; /* the harness sets it, read by bench_over() */
};

/* True when the run's time is up (or a thread's operations are capped). */
static inline bool bench_over(const struct bench_self *self)
{
	return __atomic_load_n(self->over, __ATOMIC_RELAXED) ||
	       self->ops >= BENCH_CAP;
}

/* Repeats one operation until the time is up. */
#define BENCH_REPEAT(self, operation)                      \
	do {                                               \
		for (int i_ = 0; i_ < BENCH_BATCH; i_++) { \
			operation;                         \
			__asm__ volatile("" ::: "memory"); \
		}                                          \
		(self)->ops += BENCH_BATCH;                \
	} while (!bench_over(self))

/* Keeps the compiler from dropping a value. */
#define BENCH_KEEP(value) __asm__ volatile("" ::"r"(value) : "memory")

/*
 * One sample of a run that is made of samples, such as a cold access, in ns.
 * Each is an operation, where work counts no others.
 */
static inline void bench_sample(struct bench_self *self, double ns)
{
	if (self->sampled < BENCH_SAMPLES)
		self->samples[self->sampled] = ns;
	self->sampled++;
}

/* What is compared: the floors are what the machine itself costs. */
enum bench_kind {
	BENCH_EMPTY, /* the empty loop */
	BENCH_FLOOR, /* the machine's floor for the operation */
	BENCH_RIVAL, /* what one would use instead */
	BENCH_MODEL, /* what the thread of the seed started from */
	BENCH_OURS,
};

/*
 * @name: unique in its table; in rows, JSON, and messages
 * @kind: see above
 * @what: one line for the reader: what an operation is
 * @setup: makes *state for a run of @threads; 0 or -errno; may be NULL
 * @work: see above; called on each thread
 * @teardown: may be NULL
 * @context: the variant's own
 * @note: columns that are not measured (bytes per object, what happens at
 *        overflow): printed after the figures; NULL where the table has none.
 *        Filled by table->prepare or static
 */
struct bench_variant {
	const char *name;
	enum bench_kind kind;
	const char *what;
	int (*setup)(const struct bench_variant *variant, unsigned int threads,
		     void **state);
	void (*work)(struct bench_self *self);
	void (*teardown)(void *state);
	const void *context;
	const char *const *note;
};

/* One thread of a run that has ended. */
struct bench_thread {
	uint64_t ops;
	double wall_ns; /* from the common start to the end of its work */
	double cpu_ns; /* of this thread, in that time */
	uint64_t counter[BENCH_COUNTERS];
	double sample; /* median of its samples; 0 without any */
	size_t sampled;
	bool pinned; /* it ran where it was told to */
	int cpu;
};

struct bench_run {
	const struct bench_variant *variant;
	unsigned int threads;
	const struct bench_thread *thread; /* threads of them */
};

/* Values of a run. A value that is not finite counts as not measured. */
/* Wall time of an operation, mean over the threads: threads * ns / ops. */
double bench_ns_per_op(const struct bench_run *run);
/* The same of thread 0 alone. */
double bench_ns_of_first(const struct bench_run *run);
/* CPU time of all threads by the operations of thread 0. */
double bench_cpu_per_op_of_first(const struct bench_run *run);
/* Wall time of the run by the operations of thread 0. */
double bench_ns_per_op_of_first(const struct bench_run *run);
/* Operations of all threads by the wall time, in millions a second. */
double bench_mops(const struct bench_run *run);
/* Median of the samples of thread 0. */
double bench_sampled(const struct bench_run *run);

/*
 * @name: short, unique in its experiment: a row is EXPERIMENT/TABLE/VARIANT/N
 * @title: what is compared, over the table
 * @variants, @count
 * @baseline: index of the variant that the ratios are taken against: the
 *            ratio of a row is value(row) / value(baseline) of the same round
 * @unit: of the value, "ns" or "Mops/s"; printed
 * @more_is_better: for `compare`
 * @threads: numbers of threads, ended by 0; NULL takes those of --threads
 * @value: NULL is bench_ns_per_op()
 * @counters: names of the counters, NULL where there is none: printed per
 *            operation of the run
 * @notes: names of the variants' note columns, ended by NULL; or NULL
 * @prepare: called once before the first run, may fill what is not constant;
 *           0, or -errno and then *why, one line: the table is left out
 *           with that line. May be NULL
 */
struct bench_table {
	const char *name;
	const char *title;
	const struct bench_variant *variants;
	size_t count;
	size_t baseline;
	const char *unit;
	bool more_is_better;
	const unsigned int *threads;
	double (*value)(const struct bench_run *run);
	const char *counters[BENCH_COUNTERS];
	const char *const *notes;
	int (*prepare)(const struct bench_table *table, const char **why);
};

/* What the rows of a finished table were, for an experiment's own report. */
struct bench_row {
	const struct bench_table *table;
	const struct bench_variant *variant;
	unsigned int threads;
	bool oversubscribed; /* more threads than CPUs */
	unsigned int unpinned; /* threads that strayed, in the worst run */
	size_t runs; /* that were measured */
	double median, q1, q3, min; /* of the values; NAN when not measured */
	double ratio, ratio_q1, ratio_q3; /* pair by pair, to the baseline */
	double fairness; /* slowest by fastest thread, 0..1; median of runs */
	double fastest, slowest; /* thread, ns per operation; medians */
	double counter[BENCH_COUNTERS]; /* per operation; medians */
};

struct bench_result {
	const struct bench_row *rows;
	size_t count;
};

/* The row of a variant at a number of threads; NULL when it was not run. */
const struct bench_row *bench_row(const struct bench_result *result,
				  const char *table, const char *variant,
				  unsigned int threads);

/*
 * @name: of the experiment and of its file
 * @seed: "S0" .. "S4", or NULL
 * @question: one line
 * @published: what the thread of the seed published, one or more lines; NULL
 *             without a seed
 * @measured: what is measured here, and what is different from then
 * @tables, @count
 * @report: prints what only this experiment has (a table of the seed beside
 *          the measured one, a warning) after its tables; may be NULL
 */
struct bench_experiment {
	const char *name;
	const char *seed;
	const char *question;
	const char *published;
	const char *measured;
	const struct bench_table *tables;
	size_t count;
	void (*report)(FILE *out, const struct bench_result *result);
};

extern const struct bench_experiment bench_release, bench_layout, bench_pairs,
	bench_wmem, bench_cold, bench_xmit, bench_counts;

#ifdef __cplusplus
}
#endif

#endif
