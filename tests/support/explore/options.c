/* SPDX-License-Identifier: MIT */
/*
 * options - what the command line asks for; bad input ends with one line, 2
 */
#include "state.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	O_CASE = 256,
	O_LIST,
	O_BOUND,
	O_RANDOM,
	O_SEED,
	O_DEPTH,
	O_TSO,
	O_WEAK,
	O_NO_REDUCTION,
	O_REPLAY,
	O_TRACE,
	O_MAX,
	O_TIME,
	O_EXPECT_FAILURE,
	O_OUTCOMES,
	O_HELP,
};

static const struct option names[] = {
	{ "case", required_argument, NULL, O_CASE },
	{ "list", no_argument, NULL, O_LIST },
	{ "bound", required_argument, NULL, O_BOUND },
	{ "random", required_argument, NULL, O_RANDOM },
	{ "seed", required_argument, NULL, O_SEED },
	{ "depth", required_argument, NULL, O_DEPTH },
	{ "tso", no_argument, NULL, O_TSO },
	{ "weak", no_argument, NULL, O_WEAK },
	{ "no-reduction", no_argument, NULL, O_NO_REDUCTION },
	{ "replay", required_argument, NULL, O_REPLAY },
	{ "trace", no_argument, NULL, O_TRACE },
	{ "max", required_argument, NULL, O_MAX },
	{ "time", required_argument, NULL, O_TIME },
	{ "expect-failure", no_argument, NULL, O_EXPECT_FAILURE },
	{ "outcomes", no_argument, NULL, O_OUTCOMES },
	{ "help", no_argument, NULL, O_HELP },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
	"  --case NAME       this case only\n"
	"  --list            the names of the cases\n"
	"  --bound N         at most N preemptions in a schedule; 0: any\n"
	"  --random N        N random schedules instead of all\n"
	"  --seed S          of the random schedules (1)\n"
	"  --depth D         D - 1 changes of priority in each (3)\n"
	"  --tso             stores go through store buffers\n"
	"  --weak            loads may see older values, as C11 lets them\n"
	"  --no-reduction    every order of steps, however little it matters\n"
	"  --replay CASE:... the schedule that a failure printed\n"
	"  --trace           print the last schedule in any case\n"
	"  --max N           stop a case after N schedules\n"
	"  --time S          stop a case after S seconds\n"
	"  --expect-failure  exit 0 when a schedule fails, 1 when none does\n"
	"  --outcomes        print what the case led to, as a set\n"
	"  --help            this\n";

static _Noreturn void refuse(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

static _Noreturn void refuse(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", ex.options.program);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

static uint64_t number(const char *name, const char *text, uint64_t min,
		       uint64_t max)
{
	char *end;

	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || errno || value < min ||
	    value > max)
		refuse("--%s %s: give a number from %llu to %llu", name, text,
		       (unsigned long long)min, (unsigned long long)max);
	return value;
}

static double duration(const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (!*text || *end || !(value > 0) || !(value < 1e6))
		refuse("--time %s: give seconds, more than 0", text);
	return value;
}

static void need_case(const char *name)
{
	for (const struct explore_case *c = explore_cases; c->name; c++)
		if (!strcmp(c->name, name))
			return;
	refuse("case %s: there is none of this name; --list shows them", name);
}

static void memory_is(enum memory memory)
{
	if (ex.options.memory != MEMORY_SC && ex.options.memory != memory)
		refuse("--tso and --weak: give one of the two");
	ex.options.memory = memory;
}

static void replay_is(const char *text)
{
	ex.options.replay = text;
	ex.options.only = replay_parse(text);
	if (!ex.options.only)
		refuse("--replay %s: give what a failure printed", text);
	need_case(ex.options.only);
}

static void list(void)
{
	for (const struct explore_case *c = explore_cases; c->name; c++)
		puts(c->name);
	exit(0);
}

static void print_help(void)
{
	printf("%s [OPTION...]: explores the schedules of its cases\n%s",
	       ex.options.program, help);
	exit(0);
}

static void take_number(int option, const char *name)
{
	struct options *options = &ex.options;

	switch (option) {
	case O_BOUND:
		options->bound = (unsigned int)number(name, optarg, 0, 1000);
		options->bound_set = true;
		break;
	case O_RANDOM:
		options->random = number(name, optarg, 1, UINT64_MAX);
		break;
	case O_SEED:
		options->seed = number(name, optarg, 0, UINT64_MAX);
		break;
	case O_DEPTH:
		options->depth =
			(unsigned int)number(name, optarg, 1, DEPTH_MAX);
		break;
	case O_MAX:
		options->max = number(name, optarg, 1, UINT64_MAX);
		break;
	default:
		break;
	}
}

static void take(int option, const char *name)
{
	struct options *options = &ex.options;

	switch (option) {
	case O_CASE:
		options->only = optarg;
		need_case(optarg);
		break;
	case O_LIST:
		list();
		break;
	case O_TSO:
		memory_is(MEMORY_TSO);
		break;
	case O_WEAK:
		memory_is(MEMORY_WEAK);
		break;
	case O_NO_REDUCTION:
		options->no_reduction = true;
		break;
	case O_REPLAY:
		replay_is(optarg);
		break;
	case O_TRACE:
		options->trace = true;
		break;
	case O_TIME:
		options->seconds = duration(optarg);
		break;
	case O_EXPECT_FAILURE:
		options->expect_failure = true;
		break;
	case O_OUTCOMES:
		options->outcomes = true;
		break;
	case O_HELP:
		print_help();
		break;
	default:
		take_number(option, name);
	}
}

void options_parse(int argc, char **argv)
{
	int option, at = 0;

	ex.options =
		(struct options){ .program = argv[0], .depth = 3, .seed = 1 };
	opterr = 0;
	while ((option = getopt_long(argc, argv, "", names, &at)) != -1) {
		if (option == '?')
			refuse("%s: not an option, or without its value; "
			       "--help shows them",
			       argv[optind - 1]);
		take(option, names[at].name);
	}
	if (optind < argc)
		refuse("%s: not expected here; --help shows the options",
		       argv[optind]);
	if (ex.options.random && ex.options.replay)
		refuse("--random and --replay: give one of the two");
}
