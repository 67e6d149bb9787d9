/* SPDX-License-Identifier: MIT */
/*
 * harness - what the files of dstref-bench share; what experiments see is
 * bench.h
 *
 *	main.c		the commands, and the order of things
 *	options.c	the command line of `run`
 *	cpus.c, quota.c	which CPUs, how many of them, and pinning
 *	run.c		one run of one variant on some threads
 *	value.c		what a run is worth
 *	measure.c	the rounds of a table, and its rows
 *	session.c	all that was asked for: pace, progress
 *	stats.c		order statistics (stats.h)
 *	environ.c	where it was measured
 *	table.c, csv.c, json.c	the same results in three forms
 *	outfile.c	a file that is whole or is not there
 */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

#include "bench.h"

#include <hwloc.h>

#define PROGRAM "dstref-bench"
#define THREADS_MAX 1024 /* of a run */
#define THREAD_COUNTS 32 /* of --threads, at most */

enum { EXIT_OK, EXIT_REGRESSION, EXIT_REFUSED };

/* By name; made by the build from the files of bench/experiments. */
extern const struct bench_experiment *const bench_experiments[];
extern const size_t bench_experiment_count;

/* compare.c, plot.c: argv[0] is the word; the exit status. */
int bench_compare(int argc, char **argv);
int bench_plot(int argc, char **argv);

/* One line on stderr: the argument, and the remedy. -1. */
int refuse(const char *arg, const char *remedy);
int refuse_value(const char *option, const char *value, const char *remedy);

/* ---- options ---- */
struct options {
	unsigned int threads[THREAD_COUNTS + 1]; /* ended by 0; none: default */
	double seconds; /* of a run */
	unsigned int runs;
	bool quick;
	bool no_pin;
	const char *json, *csv; /* "-" is stdout */
	const char *cpus;
	const struct bench_experiment **chosen;
	size_t count;
};

/* argv[0] is "run". 0, or -1 when it refused. To be freed in either case. */
int options_parse(struct options *options, int argc, char **argv);
void options_free(struct options *options);
void options_help(FILE *out);

/* ---- cpus ---- */
struct cpus {
	hwloc_topology_t topology;
	hwloc_bitmap_t allowed; /* machine, cpuset and affinity; --cpus */
	double quota; /* CPUs that the cgroup grants; 0 is no limit */
	unsigned int count; /* usable; at least 1 */
	unsigned int *id; /* count of them: cores first, then siblings */
	bool pin;
};

/*
 * @list: of --cpus, or NULL; @root: as below. 0, or -1 when it refused. To be
 * closed in either case.
 */
int cpus_open(struct cpus *cpus, const char *list, bool pin, const char *root);
void cpus_close(struct cpus *cpus);
/* 1, 2, 4 .. and @cpus itself, ended by 0: room for THREAD_COUNTS. */
void cpus_thread_counts(unsigned int cpus, unsigned int *threads);
/* Where thread @i of a run goes. */
unsigned int cpus_of_thread(const struct cpus *cpus, unsigned int i);
/* The calling thread, to one CPU. False when the system refuses. */
bool cpus_pin(const struct cpus *cpus, unsigned int id);

/*
 * CPUs that the cgroup of this process may use, by the tighter of its own
 * limit and those above it; 0 is no limit. @root comes before /proc and /sys.
 */
double quota_read(const char *root);

/* ---- run ---- */
/* A test has clocks of its own. In ns. */
struct run_clock {
	uint64_t (*wall)(void);
	uint64_t (*cpu)(void); /* of the calling thread */
};
extern const struct run_clock run_clock_system;

struct run_plan {
	const struct cpus *cpus;
	const struct run_clock *clock;
	double seconds;
};

/*
 * Fills @threads entries of @thread. Ends with the time of the plan, or sooner
 * when all work has ended. 0, or -errno of setup or of the start of a thread.
 */
int run_variant(const struct run_plan *plan,
		const struct bench_variant *variant, unsigned int threads,
		struct bench_thread *thread);

/* ---- value ---- */
double run_value(const struct bench_table *table, const struct bench_run *run);
double run_cpu_per_op(const struct bench_run *run);
double run_counter(const struct bench_run *run, size_t counter);
/* Time of an operation on the fastest and on the slowest thread. */
void run_extremes(const struct bench_run *run, double *fastest,
		  double *slowest);
/* Whether all threads of a run do the same, so that they can be compared. */
bool run_is_even(const struct bench_table *table);

/* ---- measure ---- */
/* One run of a row; NAN where a value was not measured. */
struct sample {
	int error; /* -errno */
	double value; /* in the table's unit */
	double ratio; /* to the baseline in the same round */
	double wall, cpu; /* ns per operation */
	double fastest, slowest; /* thread, ns per operation */
	double fairness;
	double counter[BENCH_COUNTERS];
	uint64_t ops; /* of all threads */
	unsigned int unpinned; /* threads that did not run where told */
};

/* What came of a table. */
struct outcome {
	const struct bench_table *table;
	const char *skipped; /* why there is no row; or NULL */
	unsigned int runs;
	struct bench_row *rows; /* by variant, then by number of threads */
	size_t count;
	struct sample *samples; /* runs of each row, in the order of rows */
};

/* Called before each run. */
struct measure_hook {
	void (*before)(void *arg, const struct bench_table *table,
		       const struct bench_variant *variant,
		       unsigned int threads, double *seconds);
	void *arg;
};

/* Numbers of threads that a table is run with, ended by 0. */
const unsigned int *measure_threads(const struct bench_table *table,
				    const unsigned int *threads);
/* How many runs a table takes. */
size_t measure_runs(const struct bench_table *table,
		    const unsigned int *threads, unsigned int runs);
/* 0, or -1 without memory. The outcome is freed whatever it returns. */
int measure_table(struct outcome *outcome, const struct bench_table *table,
		  const struct run_plan *plan, const unsigned int *threads,
		  unsigned int runs, const struct measure_hook *hook);
void outcome_free(struct outcome *outcome);

/* ---- environ ---- */
#define ENVIRON_TEXT 256

/* Texts are "unknown" where the system does not tell; numbers are 0. */
struct environ {
	char host[ENVIRON_TEXT];
	char date[ENVIRON_TEXT];
	char cpu[ENVIRON_TEXT];
	char topology[ENVIRON_TEXT];
	char smt[ENVIRON_TEXT]; /* siblings among the usable CPUs */
	char caches[ENVIRON_TEXT];
	char kernel[ENVIRON_TEXT];
	char governor[ENVIRON_TEXT];
	char machine[ENVIRON_TEXT]; /* physical, or which virtual one */
	char allowed[ENVIRON_TEXT];
	char usable[ENVIRON_TEXT];
	unsigned int hardware; /* CPUs of the machine */
	unsigned int line; /* cache line as the system tells, bytes */
	double mhz;
	double load[3];
	int loads;
};

/* @root comes before /proc and /sys. */
void environ_read(struct environ *environ, const struct cpus *cpus,
		  const char *root);

/* ---- session ---- */
struct session {
	const struct options *options;
	const struct cpus *cpus;
	const struct environ *environ;
	const struct run_clock *clock;
	const unsigned int *threads; /* ended by 0 */
	/* An array for each experiment that was chosen, as it has tables. */
	struct outcome **outcomes;
};

/*
 * Runs what was chosen, and prints it to @out unless that is NULL. 0, or
 * -1 when it refused.
 */
int session_run(struct session *session, FILE *out);
void session_free(struct session *session);

/* ---- outputs ---- */
void environ_print(FILE *out, const struct session *session);
void table_print_head(FILE *out, const struct bench_experiment *experiment);
void table_print(FILE *out, const struct bench_experiment *experiment,
		 const struct outcome *outcome);
/* 0, or -1 without memory. */
int csv_write(FILE *out, const struct session *session);
int json_write(FILE *out, const struct session *session);

/* ---- outfile ---- */
/* "-", or a path that leads to the same place as stdout. NULL is none. */
bool outfile_is_stdout(const char *path);
/*
 * Sees that the file can be made, and leaves nothing. 0, or -1: refused. NULL
 * and stdout are fine.
 */
int outfile_check(const char *option, const char *path);
/* 0, or -1 when it refused; the file is whole or as it was. */
int outfile_put(const char *option, const char *path, const char *text,
		size_t size);

#endif
