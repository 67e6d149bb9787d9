/* SPDX-License-Identifier: MIT */
/*
 * --json FILE. The file that a reader finds under the name is complete or it
 * is the one from before: we write beside it, make sure that the bytes are on
 * the disk, and rename.
 *
 * The temporary file is made before the run, so that a folder that is not
 * there or may not be written is told at once and not after an hour. Whatever
 * fails, the temporary file is removed.
 *
 * "-" is standard output, for a program that reads us through a pipe. Then
 * nothing else may be written there: what is printed moves to standard error.
 */
#include "gateway.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct json_file {
	const char *path;
	FILE *stream;
	char temp[]; /* its name; empty once renamed, or for standard output */
};

static int fail(const char *path, const char *what)
{
	fprintf(stderr,
		PROGRAM ": --json=%s: %s; give a file in a folder that can "
			"be written and has room\n",
		path, what);
	return -1;
}

/* A rename over a device or a folder would not do what was meant. */
static bool is_file_or_absent(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return errno == ENOENT;
	return S_ISREG(st.st_mode);
}

/* Before anything was printed. */
static int take_stdout(void)
{
	int fd = dup(STDOUT_FILENO);

	return dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ? -1 : fd;
}

static int make_temp(struct json_file *file, size_t size)
{
	snprintf(file->temp, size, "%s.XXXXXX", file->path);
	return mkstemp(file->temp);
}

int json_file_open(struct json_file **file, const char *path)
{
	size_t size = strlen(path) + sizeof(".XXXXXX");
	bool to_stdout = !strcmp(path, "-");
	struct json_file *f;
	int fd;

	if (!to_stdout && !is_file_or_absent(path))
		return fail(path, "is not a file");
	f = calloc(1, sizeof(*f) + size);
	if (!f)
		return fail(path, "no memory");
	f->path = path;
	fd = to_stdout ? take_stdout() : make_temp(f, size);
	f->stream = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f->stream) {
		(void)fail(path, strerror(errno));
		if (fd >= 0 && f->temp[0])
			unlink(f->temp);
		free(f);
		return -1;
	}
	*file = f;
	return 0;
}

static json_t *options_json(const struct options *opt)
{
	return json_pack("{s:b s:b s:s s:b s:b s:s s:i s:i s:i s:i s:i s:i}",
			 "bare", opt->bare, "noref", opt->noref, "release",
			 opt->completion ? "completion" : "xmit",
			 "early_uncharge", opt->early, "wait", opt->wait,
			 "version", "0.1", "workers", (int)opt->workers,
			 "flows", (int)opt->flows, "size", (int)opt->size,
			 "sndbuf", (int)opt->sndbuf, "churn", (int)opt->churn,
			 "seconds", (int)opt->seconds);
}

static json_t *drops_json(const struct totals *t)
{
	static const char *const keys[] = {
#define DROP_KEY(name, key, text) key,
		DROPS(DROP_KEY)
#undef DROP_KEY
	};
	json_t *drops = json_object();

	for (int i = 1; drops && i < DROP_COUNT; i++)
		json_object_set_new(drops, keys[i],
				    json_integer((json_int_t)t->drop[i]));
	return drops;
}

static json_t *reports_json(const struct totals *t)
{
	json_t *reports = json_pack("{s:I}", "total", (json_int_t)t->reports);

	for (int i = 0; reports && i < DSTREF_REPORT_KIND_COUNT; i++) {
		enum dstref_report_kind kind = (enum dstref_report_kind)i;

		json_object_set_new(
			reports, dstref_report_name(kind),
			json_integer((json_int_t)dstref_report_count(kind)));
	}
	return reports;
}

static json_t *totals_json(const struct totals *t, const struct options *opt,
			   const char *verdict)
{
	char policy[64];

	return json_pack(
		"{s:o s:s s:f s:f s:I s:I s:I s:I s:I s:o s:I s:I"
		" s:{s:I s:I s:I s:I} s:I s:{s:I s:I s:I} s:I"
		" s:{s:I s:I s:I} s:o s:s}",
		"options", options_json(opt), "policy",
		options_policy(opt, policy, sizeof(policy)), "seconds",
		t->seconds, "mpps", t->mpps, "sent", (json_int_t)t->sent, "in",
		(json_int_t)t->in, "out", (json_int_t)t->out, "received",
		(json_int_t)t->received, "dropped", (json_int_t)t->dropped,
		"drops", drops_json(t), "back_pressure",
		(json_int_t)t->drop[DROP_BACK_PRESSURE] +
			(json_int_t)t->sleeps_room,
		"ring_full", (json_int_t)t->ring_full, "wakeups", "room",
		(json_int_t)t->wakeups_room, "data",
		(json_int_t)t->wakeups_data, "sleeps_room",
		(json_int_t)t->sleeps_room, "sleeps_data",
		(json_int_t)t->sleeps_data, "routes_replaced",
		(json_int_t)t->replaced, "split", "promotions",
		(json_int_t)t->promotions, "demotions",
		(json_int_t)t->demotions, "refused",
		(json_int_t)t->cells_refused, "accounts",
		(json_int_t)t->accounts, "alive", "dst",
		(json_int_t)t->dst_alive, "sock", (json_int_t)t->sock_alive,
		"callbacks", (json_int_t)t->callbacks, "reports",
		reports_json(t), "verdict", verdict ? verdict : "ok");
}

/* 0 when every byte is on the disk and the name is right. */
static int put(struct json_file *file, const json_t *root)
{
	int fd = fileno(file->stream);

	if (!root || json_dumpf(root, file->stream, JSON_INDENT(2)) ||
	    fputc('\n', file->stream) == EOF || fflush(file->stream))
		return -1;
	if (!file->temp[0])
		return 0;
	if (fsync(fd) || fchmod(fd, 0644) || rename(file->temp, file->path))
		return -1;
	file->temp[0] = '\0';
	return 0;
}

int json_file_write(struct json_file *file, const struct totals *totals,
		    const struct options *opt, const char *verdict)
{
	json_t *root = totals_json(totals, opt, verdict);
	int rc = put(file, root);

	if (rc)
		(void)fail(file->path, strerror(errno));
	json_decref(root);
	return rc;
}

/* NULL does nothing. */
void json_file_close(struct json_file *file)
{
	if (!file)
		return;
	if (file->temp[0])
		unlink(file->temp);
	fclose(file->stream);
	free(file);
}
