/* SPDX-License-Identifier: MIT */
/*
 * dstref-bench compare OLD.json NEW.json: is anything slower than it was?
 *
 * Each row that both files have is judged by the median of its repetitions.
 * It has changed when two things hold:
 *
 * - The 95 % bootstrap intervals of the two medians do not overlap. Two runs
 *   of the same program fail that in 0.3 to 3 rows of a hundred, by the number
 *   of repetitions, half of them as "faster" (drawn from normal distributions;
 *   five repetitions: once in 126).
 *
 * - The change is more than a threshold. A file has a hundred rows, so the
 *   intervals alone would cry wolf in most comparisons. And they know the
 *   spread within a run; they know nothing of what stays the same in a run and
 *   differs between two: where the linker put the loop, which pages the stack
 *   got, how warm the processor is. A change of addresses alone moves a loop
 *   of a few nanoseconds by several per cent (Mytkowicz et al., "Producing
 *   wrong data without doing anything obviously wrong!", 2009). Hence 10 %:
 *   where repetitions spread by 5 %, one row in two thousand is slower by
 *   chance.
 *
 * With fewer than FEW repetitions the range of all values covers the true
 * median with less than 90 % (1 - 2^(1-n)), so no interval of 95 % can be had:
 * such a row is shown and not judged. When no row can be judged the answer is
 * status 2, since "no regression" would be a guess.
 */
#include "harness.h"
#include "results.h"
#include "stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEW 5
#define THRESHOLD 10.0 /* percent */

struct compare {
	const char *path[2]; /* old, new */
	double threshold;
	bool overlap; /* print only the share */
	struct results results[2];
	size_t judged, overlapping, faster, slower;
};

/* One row of both files. */
struct pair {
	double median[2];
	struct stats_interval interval[2];
	double change; /* percent */
	bool judged, overlapping;
};

static int threshold(struct compare *compare, const char *text)
{
	char *end = NULL;

	if (text)
		compare->threshold = strtod(text, &end);
	if (!text || end == text || *end || !(compare->threshold >= 0) ||
	    compare->threshold > 1e6)
		return refuse_value("--threshold", text ? text : "",
				    "give a percentage, 0 or more");
	return 0;
}

static int file(struct compare *compare, const char *path)
{
	int i = compare->path[0] != NULL;

	if (compare->path[1])
		return refuse(path, "leave it out; two files are compared");
	compare->path[i] = path;
	return 0;
}

/* One argument, or two; NULL when it refused. */
static char **argument(struct compare *compare, char **argv)
{
	const char *word = *argv;
	int rc;

	if (!strcmp(word, "--overlap")) {
		compare->overlap = true;
		rc = 0;
	} else if (!strcmp(word, "--threshold")) {
		rc = threshold(compare, argv[1]);
		argv++;
	} else if (!strncmp(word, "--threshold=", 12)) {
		rc = threshold(compare, word + 12);
	} else if (word[0] == '-') {
		rc = refuse(word, "no such option; --help lists them");
	} else {
		rc = file(compare, word);
	}
	return rc ? NULL : argv + 1;
}

/* 0, or -1 when it refused. */
static int parse(struct compare *compare, char **argv)
{
	for (argv++; *argv;) {
		argv = argument(compare, argv);
		if (!argv)
			return -1;
	}
	if (!compare->path[1])
		return refuse("compare", "give OLD.json and NEW.json");
	return 0;
}

static void measure(struct pair *pair, const struct result_row *row[2])
{
	const struct stats_interval *in = pair->interval;

	for (int i = 0; i < 2; i++) {
		pair->median[i] =
			stats_quantile(row[i]->values, row[i]->count, 0.5);
		pair->interval[i] =
			stats_bootstrap(row[i]->values, row[i]->count);
	}
	pair->change = 0;
	if (pair->median[1] != pair->median[0])
		pair->change = (pair->median[1] / pair->median[0] - 1) * 100;
	pair->judged = row[0]->count >= FEW && row[1]->count >= FEW;
	pair->overlapping = in[0].low <= in[1].high && in[1].low <= in[0].high;
}

static const char *judge(struct compare *compare, const struct pair *pair,
			 bool more_is_better)
{
	if (!pair->judged)
		return "too few";
	compare->judged++;
	compare->overlapping += pair->overlapping;
	if (pair->overlapping || fabs(pair->change) <= compare->threshold)
		return "same";
	if ((pair->change > 0) == more_is_better) {
		compare->faster++;
		return "faster";
	}
	compare->slower++;
	return "slower";
}

static int width(const struct results *results)
{
	size_t longest = 3;

	for (size_t i = 0; i < results->count; i++)
		if (strlen(results->rows[i].name) > longest)
			longest = strlen(results->rows[i].name);
	return (int)longest;
}

static void print_pair(const struct pair *pair, const struct result_row *row,
		       int columns, const char *verdict)
{
	char interval[2][32];

	for (int i = 0; i < 2; i++)
		snprintf(interval[i], sizeof(interval[i]), "%.4g..%.4g",
			 pair->interval[i].low, pair->interval[i].high);
	printf("%-*s  %8.4g  %8.4g  %-6s  %+7.1f%%  %-18s  %-18s  %s\n",
	       columns, row->name, pair->median[0], pair->median[1], row->unit,
	       pair->change, interval[0], interval[1], verdict);
}

static void compare_rows(struct compare *compare)
{
	int columns = width(&compare->results[0]);

	if (!compare->overlap)
		printf("%-*s  %8s  %8s  %-6s  %8s  %-18s  %-18s  %s\n", columns,
		       "row", "old", "new", "unit", "change", "old 95 %",
		       "new 95 %", "verdict");
	for (size_t i = 0; i < compare->results[0].count; i++) {
		const struct result_row *row[2] = {
			&compare->results[0].rows[i]
		};
		const char *verdict;
		struct pair pair;

		row[1] = results_find(&compare->results[1], row[0]->name);
		if (!row[1])
			continue;
		measure(&pair, row);
		verdict = judge(compare, &pair, row[0]->more_is_better);
		if (!compare->overlap)
			print_pair(&pair, row[0], columns, verdict);
	}
}

/* The rows that the other file does not have. */
static void print_alone(const struct compare *compare, int which)
{
	const struct results *mine = &compare->results[which];
	const struct results *other = &compare->results[!which];

	for (size_t i = 0; i < mine->count; i++)
		if (!results_find(other, mine->rows[i].name))
			printf("only in %s: %s\n", compare->path[which],
			       mine->rows[i].name);
}

static void summary(const struct compare *compare)
{
	double share =
		100.0 * (double)compare->overlapping / (double)compare->judged;

	if (compare->overlap) {
		printf("%.1f\n", share);
		return;
	}
	print_alone(compare, 0);
	print_alone(compare, 1);
	printf("%zu rows compared: %zu same, %zu faster, %zu slower; "
	       "the intervals of %.1f %% overlap\n",
	       compare->judged,
	       compare->judged - compare->faster - compare->slower,
	       compare->faster, compare->slower, share);
}

/* The exit status. */
static int report(struct compare *compare)
{
	compare_rows(compare);
	if (!compare->judged) {
		refuse(compare->path[1],
		       "has no row with 5 or more repetitions that the other "
		       "file has too; run both with 5 or more");
		return EXIT_REFUSED;
	}
	summary(compare);
	if (fflush(stdout) || ferror(stdout)) {
		refuse("standard output", "could not be written; make room");
		return EXIT_REFUSED;
	}
	if (compare->overlap || !compare->slower)
		return EXIT_OK;
	return EXIT_REGRESSION;
}

int bench_compare(int argc, char **argv)
{
	struct compare compare = { .threshold = THRESHOLD };
	int status = EXIT_REFUSED;

	(void)argc;
	if (!parse(&compare, argv) &&
	    !results_read(&compare.results[0], compare.path[0]) &&
	    !results_read(&compare.results[1], compare.path[1]))
		status = report(&compare);
	for (int i = 0; i < 2; i++)
		results_free(&compare.results[i]);
	return status;
}
