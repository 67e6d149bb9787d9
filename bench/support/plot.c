/* SPDX-License-Identifier: MIT */
/*
 * dstref-bench plot FILE.json -o DIR: pictures, by gnuplot
 *
 * Each table becomes DIR/EXPERIMENT-TABLE.svg and .png. gnuplot gets the
 * script (picture.c) as its standard input, from a temporary file, and its
 * standard output is a pipe that we read to the end: so there is no moment at
 * which both wait for each other, and the picture is put under its name only
 * when gnuplot ended well and all of it is there.
 */
#include "picture.h"
#include "harness.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATH_SIZE 4096

struct plot {
	const char *file;
	const char *folder;
	struct results results;
};

/* 0, or -1 when it refused. */
static int parse(struct plot *plot, char **argv)
{
	while (*++argv) {
		if (!strcmp(*argv, "-o")) {
			if (!argv[1])
				return refuse("-o", "give a folder");
			plot->folder = *++argv;
		} else if (**argv == '-') {
			return refuse(*argv,
				      "no such option; --help lists them");
		} else if (plot->file) {
			return refuse(*argv, "leave it out; one file is drawn");
		} else {
			plot->file = *argv;
		}
	}
	if (!plot->file)
		return refuse("plot", "give a file of run --json");
	if (!plot->folder)
		return refuse("plot", "give a folder for the pictures, -o DIR");
	return 0;
}

/* DIR/EXPERIMENT-TABLE.svg; false when that is too long. */
static bool name(char *path, const struct plot *plot, const char *table,
		 enum picture_format format)
{
	int size = snprintf(path, PATH_SIZE, "%s/%s%s", plot->folder, table,
			    picture_suffix(format));
	char *file;

	if (size >= PATH_SIZE)
		return false;
	file = path + strlen(plot->folder) + 1;
	if (*file == '.')
		*file = '-';
	for (; *file; file++)
		if (!isalnum((unsigned char)*file) && !strchr("-_+.", *file))
			*file = '-';
	return true;
}

/* The process; or -1 and errno. */
static pid_t start(int in, int out)
{
	char *const argv[] = { "gnuplot", "--default-settings", NULL };
	posix_spawn_file_actions_t actions;
	pid_t pid = -1;

	errno = posix_spawn_file_actions_init(&actions);
	if (errno)
		return -1;
	errno = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	if (!errno)
		errno = posix_spawn_file_actions_adddup2(&actions, out,
							 STDOUT_FILENO);
	/* What it would say there is of no use to who cannot see the script. */
	if (!errno)
		errno = posix_spawn_file_actions_addopen(
			&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	if (!errno)
		errno = posix_spawnp(&pid, argv[0], &actions, NULL, argv,
				     environ);
	in = errno;
	posix_spawn_file_actions_destroy(&actions);
	errno = in;
	return errno ? -1 : pid;
}

/* All that comes, into memory; NULL when there is none for it. */
static char *drain(int fd, size_t *size)
{
	char block[16384], *text = NULL;
	FILE *memory = open_memstream(&text, size);
	ssize_t n;
	bool whole = memory != NULL;

	while ((n = read(fd, block, sizeof(block))) > 0 ||
	       (n < 0 && errno == EINTR))
		if (whole && n > 0)
			whole = fwrite(block, 1, (size_t)n, memory) ==
				(size_t)n;
	if (memory && fclose(memory))
		whole = false;
	if (whole && !n)
		return text;
	free(text);
	return NULL;
}

static bool ended_well(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

/* What gnuplot makes of the script at @in; NULL when it refused. */
static char *run_gnuplot(int in, size_t *size)
{
	char *text;
	int fd[2];
	pid_t pid;

	if (pipe2(fd, O_CLOEXEC)) {
		refuse("plot", strerror(errno));
		return NULL;
	}
	pid = start(in, fd[1]);
	close(fd[1]);
	if (pid < 0) {
		refuse("gnuplot", errno == ENOENT
					  ? "is not there; install the package "
					    "gnuplot-nox"
					  : strerror(errno));
		close(fd[0]);
		return NULL;
	}
	text = drain(fd[0], size);
	close(fd[0]);
	if (ended_well(pid) && text && *size)
		return text;
	refuse("gnuplot", "made no picture; install the package gnuplot-nox, "
			  "which has its terminals svg and pngcairo");
	free(text);
	return NULL;
}

/* At its start, to be read; NULL when it refused. */
static FILE *make_script(const struct picture *picture,
			 enum picture_format format)
{
	FILE *script = tmpfile();

	if (script) {
		picture_script(script, picture, format);
		if (!fflush(script) && !ferror(script) &&
		    !lseek(fileno(script), 0, SEEK_SET))
			return script;
		fclose(script);
	}
	refuse("plot", "cannot write a temporary file; make room in /tmp");
	return NULL;
}

/* 0, or -1 when it refused. */
static int draw(const struct plot *plot, const struct picture *picture,
		enum picture_format format)
{
	FILE *script = make_script(picture, format);
	char path[PATH_SIZE], *text;
	size_t size = 0;
	int rc;

	if (!script)
		return -1;
	text = run_gnuplot(fileno(script), &size);
	fclose(script);
	if (!text)
		return -1;
	if (name(path, plot, picture->rows[0]->table, format))
		rc = outfile_put("-o", path, text, size);
	else
		rc = refuse(plot->folder, "is too long; give a shorter name");
	free(text);
	return rc;
}

/* The table that starts with row @first, which no row before it has. */
static int draw_table(const struct plot *plot, size_t first)
{
	const struct results *results = &plot->results;
	struct picture picture = { .results = results };
	int rc = 0;

	picture.rows = calloc(results->count, sizeof(*picture.rows));
	if (!picture.rows)
		return refuse("plot", "no memory");
	for (size_t i = first; i < results->count; i++)
		if (!strcmp(results->rows[i].table, results->rows[first].table))
			picture.rows[picture.count++] = &results->rows[i];
	for (int format = 0; !rc && format < PICTURE_FORMATS; format++)
		rc = draw(plot, &picture, (enum picture_format)format);
	free(picture.rows);
	return rc;
}

static bool opens_table(const struct results *results, size_t row)
{
	for (size_t i = 0; i < row; i++)
		if (!strcmp(results->rows[i].table, results->rows[row].table))
			return false;
	return true;
}

static int draw_all(const struct plot *plot)
{
	if (mkdir(plot->folder, 0777) && errno != EEXIST)
		return refuse_value("-o", plot->folder,
				    "cannot be made; give another folder");
	for (size_t i = 0; i < plot->results.count; i++)
		if (opens_table(&plot->results, i) && draw_table(plot, i))
			return -1;
	return 0;
}

int bench_plot(int argc, char **argv)
{
	struct plot plot = { 0 };
	int rc = -1;

	(void)argc;
	if (!parse(&plot, argv) && !results_read(&plot.results, plot.file))
		rc = draw_all(&plot);
	results_free(&plot.results);
	return rc ? EXIT_REFUSED : EXIT_OK;
}
