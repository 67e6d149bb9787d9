/* SPDX-License-Identifier: MIT */
/*
 * The CPU quota of a cgroup: a share of time that hwloc, affinity and
 * sysconf() do not tell, and that every container sets.
 *
 * /proc/self/cgroup has the path of our cgroup in each hierarchy and
 * /proc/self/mountinfo where the hierarchy is mounted, and which part of it:
 * in a container the mount may begin at the container's own cgroup. A limit
 * of a cgroup holds for all below, so we read the file at our own path and at
 * each one above up to the mount, and keep the tightest: cpu.max of cgroup2,
 * cpu.cfs_quota_us and cpu.cfs_period_us of the older one. What cannot be
 * read limits nothing.
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#define PATH 4096

/* A mounted hierarchy that may limit CPU time. */
struct hierarchy {
	bool v2;
	char part[PATH]; /* of it that is mounted */
	char point[PATH]; /* where */
};

static FILE *open_under(const char *root, const char *path)
{
	char full[2 * PATH];

	snprintf(full, sizeof(full), "%s%s", root, path);
	return fopen(full, "r");
}

/* Whether a comma-separated list has a word. */
static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (; *list; list += strcspn(list, ","), list += *list == ',')
		if (strcspn(list, ",") == len && !strncmp(list, word, len))
			return true;
	return false;
}

/* A line of mountinfo: see proc(5). */
static bool parse_mount(const char *line, struct hierarchy *h)
{
	const char *after = strstr(line, " - ");
	char type[32], options[PATH];

	if (!after ||
	    sscanf(line, "%*s %*s %*s %4095s %4095s", h->part, h->point) != 2 ||
	    sscanf(after, " - %31s %*s %4095s", type, options) != 2)
		return false;
	h->v2 = !strcmp(type, "cgroup2");
	return h->v2 || (!strcmp(type, "cgroup") && has_word(options, "cpu"));
}

/* "N:CONTROLLERS:PATH" of /proc/self/cgroup; none are named in cgroup2. */
static bool parse_own(char *line, bool v2, char *own)
{
	char *list = strchr(line, ':');
	char *path = list ? strchr(list + 1, ':') : NULL;

	if (!path)
		return false;
	*path++ = '\0';
	list++;
	if (v2 ? *list : !has_word(list, "cpu"))
		return false;
	snprintf(own, PATH, "%.*s", (int)strcspn(path, "\n"), path);
	return true;
}

static bool own_path(const char *root, bool v2, char *own)
{
	FILE *in = open_under(root, "/proc/self/cgroup");
	char line[PATH];
	bool found = false;

	while (in && !found && fgets(line, sizeof(line), in))
		found = parse_own(line, v2, own);
	if (in)
		fclose(in);
	return found;
}

/* A number, "max", or nothing, which is -1. */
static double number_in(const char *root, const char *dir, const char *name,
			double *second)
{
	char path[2 * PATH];
	double first = -1;
	FILE *in;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	in = open_under(root, path);
	if (!in)
		return -1;
	if (fscanf(in, "%lf %lf", &first, second) < 1)
		first = -1;
	fclose(in);
	return first;
}

static double limit_of(const char *root, const char *dir, bool v2)
{
	double quota, period = 0, unused;

	if (v2) {
		quota = number_in(root, dir, "cpu.max", &period);
	} else {
		quota = number_in(root, dir, "cpu.cfs_quota_us", &unused);
		period = number_in(root, dir, "cpu.cfs_period_us", &unused);
	}
	return quota > 0 && period > 0 ? quota / period : 0;
}

static double tighter(double a, double b)
{
	return a > 0 && (b <= 0 || a < b) ? a : b;
}

static double limit_of_hierarchy(const char *root, const struct hierarchy *h)
{
	char own[PATH], dir[2 * PATH];
	size_t base = strlen(h->point), part = strlen(h->part);
	double limit = 0;

	if (!own_path(root, h->v2, own))
		return 0;
	/* Where the mount begins at our cgroup or above, from there. */
	if (!strcmp(h->part, "/"))
		part = 0;
	else if (strncmp(own, h->part, part) != 0)
		part = strlen(own);
	snprintf(dir, sizeof(dir), "%s%s", h->point, own + part);
	for (;;) {
		char *slash;

		limit = tighter(limit_of(root, dir, h->v2), limit);
		slash = strrchr(dir, '/');
		if (!slash || slash < dir + base)
			return limit;
		*slash = '\0';
	}
}

double quota_read(const char *root)
{
	FILE *in = open_under(root, "/proc/self/mountinfo");
	struct hierarchy *h = malloc(sizeof(*h));
	char *line = NULL;
	size_t size = 0;
	double limit = 0;

	while (in && h && getline(&line, &size, in) > 0)
		if (parse_mount(line, h))
			limit = tighter(limit_of_hierarchy(root, h), limit);
	free(line);
	free(h);
	if (in)
		fclose(in);
	return limit;
}
