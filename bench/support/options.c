/* SPDX-License-Identifier: MIT */
/*
 * The command line of `run`. One table says for each option what it takes,
 * who reads it and what it is for; the parser and the help are made from it.
 * Every refusal is one line on stderr that names the argument and the remedy.
 *
 * We parse by hand rather than by getopt_long(), which prints messages of its
 * own without a remedy and accepts abbreviations that break later.
 */
#include "harness.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_DEFAULT 7
#define RUNS_QUICK 5
#define SECONDS_DEFAULT 0.1

struct option {
	const char *name; /* with its dashes */
	const char *takes; /* NULL for a flag */
	int (*set)(struct options *options, const char *value);
	const char *help;
};

int refuse(const char *arg, const char *remedy)
{
	fprintf(stderr, PROGRAM ": %s: %s\n", arg, remedy);
	return -1;
}

int refuse_value(const char *option, const char *value, const char *remedy)
{
	fprintf(stderr, PROGRAM ": %s=%.60s: %s\n", option, value, remedy);
	return -1;
}

/* A number of digits alone, up to @max; 0 when it is none. */
static unsigned int number(const char *text, char **end, unsigned int max)
{
	unsigned long n;

	errno = 0;
	n = strtoul(text, end, 10);
	return *text >= '0' && *text <= '9' && !errno && n <= max
		       ? (unsigned int)n
		       : 0;
}

static bool is_among(const unsigned int *list, unsigned int n)
{
	while (*list && *list != n)
		list++;
	return *list;
}

static int set_threads(struct options *o, const char *value)
{
	unsigned int *list = o->threads;
	const char *at = value;
	size_t n = 0;

	memset(list, 0, sizeof(o->threads));
	for (;;) {
		char *end;
		unsigned int count = number(at, &end, THREADS_MAX);

		if (!count || n == THREAD_COUNTS || is_among(list, count) ||
		    (*end && *end != ','))
			return refuse_value("--threads", value,
					    "give different numbers from 1 to "
					    "1024, such as 1,2,4; at most 32");
		list[n++] = count;
		if (!*end)
			return 0;
		at = end + 1;
	}
}

static int set_seconds(struct options *o, const char *value)
{
	char *end;

	o->seconds = strtod(value, &end);
	if (!*end && o->seconds >= 1e-6 && o->seconds <= 3600)
		return 0;
	return refuse_value("--seconds", value,
			    "give seconds of one run, from 0.000001 to 3600");
}

static int set_runs(struct options *o, const char *value)
{
	char *end;

	o->runs = number(value, &end, 10000);
	if (o->runs && !*end)
		return 0;
	return refuse_value("--runs", value, "give a number from 1 to 10000");
}

static int set_quick(struct options *o, const char *value)
{
	(void)value;
	o->quick = true;
	return 0;
}

static int set_json(struct options *o, const char *value)
{
	o->json = value;
	return 0;
}

static int set_csv(struct options *o, const char *value)
{
	o->csv = value;
	return 0;
}

static int set_cpus(struct options *o, const char *value)
{
	o->cpus = value;
	return 0;
}

static int set_no_pin(struct options *o, const char *value)
{
	(void)value;
	o->no_pin = true;
	return 0;
}

static const struct option table[] = {
	{ "--threads", "LIST", set_threads,
	  "numbers of threads, such as 1,2,4 (1, 2, 4 .. usable CPUs)" },
	{ "--seconds", "S", set_seconds, "of one run (0.1)" },
	{ "--runs", "N", set_runs, "of each row, all rows in turn (7)" },
	{ "--quick", NULL, set_quick,
	  "everything in less than a minute: 5 short runs" },
	{ "--json", "FILE", set_json,
	  "write results as Google Benchmark does; - is stdout" },
	{ "--csv", "FILE", set_csv, "write a line for each row; - is stdout" },
	{ "--cpus", "LIST", set_cpus,
	  "run on these, such as 0,2-5 (all that are allowed)" },
	{ "--no-pin", NULL, set_no_pin,
	  "let the system move threads between CPUs" },
};

#define OPTIONS (sizeof(table) / sizeof(table[0]))

void options_help(FILE *out)
{
	for (size_t i = 0; i < OPTIONS; i++) {
		char left[32];

		snprintf(left, sizeof(left), "%s%s%s", table[i].name,
			 table[i].takes ? "=" : "",
			 table[i].takes ? table[i].takes : "");
		fprintf(out, "  %-16s %s\n", left, table[i].help);
	}
}

/* The option that "--name" or "--name=value" means; *value or NULL. */
static const struct option *find(const char *arg, const char **value)
{
	size_t len = strcspn(arg, "=");

	*value = arg[len] ? arg + len + 1 : NULL;
	for (size_t i = 0; i < OPTIONS; i++)
		if (strlen(table[i].name) == len &&
		    !strncmp(table[i].name, arg, len))
			return &table[i];
	return NULL;
}

static int choose(struct options *o, const char *name)
{
	for (size_t i = 0; i < o->count; i++)
		if (!strcmp(o->chosen[i]->name, name))
			return refuse(name, "is named twice; leave one out");
	for (size_t i = 0; i < bench_experiment_count; i++) {
		if (!strcmp(bench_experiments[i]->name, name)) {
			o->chosen[o->count++] = bench_experiments[i];
			return 0;
		}
	}
	return refuse(name, "no such experiment; `" PROGRAM " list` has them");
}

/* One option; @next is the argument after it. How many it took, or -1. */
static int option(struct options *o, const char *arg, const char *next)
{
	const char *value;
	const struct option *option = find(arg, &value);
	int took = 1;

	if (!option)
		return refuse(arg, "no such option; --help lists them");
	if (!option->takes && value)
		return refuse(arg, "takes no value; leave it out");
	if (option->takes && !value) {
		value = next;
		took++;
	}
	if (option->takes && (!value || !*value))
		return refuse(arg, "needs a value; --help tells which");
	return option->set(o, value) ? -1 : took;
}

/* What no single option can tell, and the defaults. */
static int check(struct options *o)
{
	if (o->quick && o->seconds > 0)
		return refuse("--seconds", "--quick chooses it; leave one of "
					   "them out");
	if (outfile_is_stdout(o->json) && outfile_is_stdout(o->csv))
		return refuse_value("--csv", o->csv,
				    "stdout has the JSON; give a file");
	if (!o->runs)
		o->runs = o->quick ? RUNS_QUICK : RUNS_DEFAULT;
	if (!(o->seconds > 0))
		o->seconds = SECONDS_DEFAULT;
	if (!o->count) {
		memcpy(o->chosen, bench_experiments,
		       bench_experiment_count * sizeof(o->chosen[0]));
		o->count = bench_experiment_count;
	}
	return 0;
}

int options_parse(struct options *o, int argc, char **argv)
{
	*o = (struct options){ 0 };
	/* One too many: there may be none. */
	o->chosen = calloc(bench_experiment_count + 1, sizeof(o->chosen[0]));
	if (!o->chosen)
		return refuse("run", "no memory; free some");
	for (int i = 1; i < argc;) {
		int took = 1;

		if (argv[i][0] != '-') {
			if (choose(o, argv[i]))
				return -1;
		} else {
			took = option(o, argv[i],
				      i + 1 < argc ? argv[i + 1] : NULL);
			if (took < 0)
				return -1;
		}
		i += took;
	}
	return check(o);
}

void options_free(struct options *o)
{
	free(o->chosen);
}
