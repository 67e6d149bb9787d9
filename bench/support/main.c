/* SPDX-License-Identifier: MIT */
/*
 * dstref-bench: what layout and counts cost on this machine, beside what was
 * published and beside what one would use instead; harness.h has the map of
 * the files. This one is the commands, and the order of things in `run`: what
 * may be refused is refused before anything is measured.
 *
 * Exit status: 0; 1 where `compare` found a regression; 2 for an argument or
 * a machine that does not allow it, or output that could not be written,
 * after one line that names it and the remedy.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dstref/config.h>

static void usage(FILE *out)
{
	fprintf(out,
		"usage: " PROGRAM " list\n"
		"       " PROGRAM " run [EXPERIMENT...] [OPTION...]\n"
		"       " PROGRAM " compare OLD.json NEW.json\n"
		"       " PROGRAM " plot FILE.json -o DIR\n"
		"       " PROGRAM " --help | --version\n\n"
		"Measures what the layout of a route and the counts on it "
		"cost on this machine.\n"
		"`run` runs the experiments that are named, or all of them; "
		"`list` has them.\n\n"
		"Options of run:\n");
	options_help(out);
	fprintf(out,
		"\nWith - for a file, stdout has it and not the tables.\n"
		"Exit status: 0; 1 when compare finds a regression; 2 for a "
		"bad argument, a\nmachine that does not allow it, or output "
		"that cannot be written.\n");
}

static int finish_stdout(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return EXIT_OK;
	refuse("standard output", "cannot be written; give a file that has "
				  "room");
	return EXIT_REFUSED;
}

static int command_list(int argc, char **argv)
{
	if (argc > 1) {
		refuse(argv[1], "leave it out; `list` takes no argument");
		return EXIT_REFUSED;
	}
	for (size_t i = 0; i < bench_experiment_count; i++) {
		const struct bench_experiment *e = bench_experiments[i];

		printf("%-10s %-3s %s\n", e->name, e->seed ? e->seed : "",
		       e->question);
	}
	return finish_stdout();
}

/* The results in one of their forms, through memory. 0 or -1. */
static int output(const char *option, const char *path,
		  int (*write)(FILE *, const struct session *),
		  const struct session *session)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out;
	int rc = -1;

	if (!path)
		return 0;
	out = open_memstream(&text, &size);
	if (out) {
		rc = write(out, session);
		rc |= fclose(out);
	}
	if (rc)
		refuse_value(option, path, "no memory for it; free some");
	else if (outfile_is_stdout(path))
		(void)fwrite(text, 1, size, stdout); /* finish_stdout() looks */
	else
		rc = outfile_put(option, path, text, size);
	free(text);
	return rc;
}

static int run_with(struct options *options, const struct cpus *cpus)
{
	FILE *tables = outfile_is_stdout(options->json) ||
				       outfile_is_stdout(options->csv)
			       ? NULL
			       : stdout;
	struct environ where;
	struct session session = { .options = options,
				   .cpus = cpus,
				   .environ = &where,
				   .clock = &run_clock_system,
				   .threads = options->threads };
	int rc;

	if (!options->threads[0])
		cpus_thread_counts(cpus->count, options->threads);
	environ_read(&where, cpus, "");
	if (tables)
		environ_print(tables, &session);
	rc = session_run(&session, tables);
	if (!rc)
		rc = output("--json", options->json, json_write, &session);
	if (!rc)
		rc = output("--csv", options->csv, csv_write, &session);
	session_free(&session);
	return rc ? EXIT_REFUSED : finish_stdout();
}

static int command_run(int argc, char **argv)
{
	struct options options;
	struct cpus cpus = { 0 };
	int rc = EXIT_REFUSED;

	if (!options_parse(&options, argc, argv) &&
	    !outfile_check("--json", options.json) &&
	    !outfile_check("--csv", options.csv) &&
	    !cpus_open(&cpus, options.cpus, !options.no_pin, ""))
		rc = run_with(&options, &cpus);
	cpus_close(&cpus);
	options_free(&options);
	return rc;
}

static int command_help(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	usage(stdout);
	return finish_stdout();
}

static int command_version(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	printf(PROGRAM " %d.%d.%d\n", DSTREF_VERSION_MAJOR,
	       DSTREF_VERSION_MINOR, DSTREF_VERSION_PATCH);
	return finish_stdout();
}

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "list", command_list },     { "run", command_run },
	{ "compare", bench_compare }, { "plot", bench_plot },
	{ "--help", command_help },   { "--version", command_version },
};

/*
 * The three standard descriptors are open, or a file that we open would take
 * the place of one and get its text. False when stdout was closed.
 */
static bool descriptors_are_open(void)
{
	bool stdout_is = fcntl(STDOUT_FILENO, F_GETFD) >= 0;
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
	return stdout_is;
}

static bool asks_for_help(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--help"))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "command";

	/* A reader of our output that has gone is an error like others. */
	signal(SIGPIPE, SIG_IGN);
	if (!descriptors_are_open()) {
		refuse("standard output", "is closed; give a file");
		return EXIT_REFUSED;
	}
	if (asks_for_help(argc, argv))
		return command_help(argc, argv);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, word))
			return commands[i].run(argc - 1, argv + 1);
	refuse(word, "give list, run, compare or plot; --help tells more");
	return EXIT_REFUSED;
}
