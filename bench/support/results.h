/* SPDX-License-Identifier: MIT */
/*
 * results - what `dstref-bench run --json` wrote, read back
 *
 * The schema is Google Benchmark's: an object with "context" and
 * "benchmarks". Each repetition is an entry of "benchmarks" with "run_type"
 * "iteration". Aggregates are passed over: they can be computed from the
 * repetitions, and the interval of a median cannot be from them.
 *
 * What is read of an entry, of whichever program:
 *
 *	"run_name"	EXPERIMENT/TABLE/VARIANT/threads:N; "name" without it
 *	"threads"	N; 1 without it
 *	"real_time"	per operation, in "time_unit"
 *
 * and of ours alone "value", in the unit of the table, which is taken instead
 * of "real_time", and "unit", "more_is_better" and "title" of the table.
 */
#ifndef BENCH_RESULTS_H
#define BENCH_RESULTS_H

#include <stdbool.h>
#include <stddef.h>

struct result_row {
	const char *name; /* unique in the file */
	char *table; /* the name without variant and threads */
	const char *variant; /* in the same memory */
	const char *title; /* of the table */
	const char *unit;
	bool more_is_better;
	unsigned int threads;
	double *values; /* sorted */
	size_t count; /* of them, at least 1 */
};

struct results {
	void *root; /* what the strings live in */
	struct result_row *rows; /* in the order of the file */
	size_t count;
	const char *where; /* it was measured: processor, date */
	unsigned int cpus; /* that the threads shared; 0 is unknown */
};

/*
 * results_read - read a file
 *
 * Return: 0; -1 when it refused: one line on stderr.
 */
int results_read(struct results *results, const char *path);

/* The row of a name, or NULL. */
const struct result_row *results_find(const struct results *results,
				      const char *name);

void results_free(struct results *results);

#endif
