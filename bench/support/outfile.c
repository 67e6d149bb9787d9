/* SPDX-License-Identifier: MIT */
/*
 * A file that is whole or is not there. The text is ready in memory; we write
 * it under a temporary name beside the target, see it to the disk, and
 * rename. Whatever fails, the temporary file is removed and what was there
 * stays. Signals are held off meanwhile, so that ^C leaves nothing either.
 *
 * A device or a pipe (/dev/fd/3) is not replaced but written to. A path that
 * leads to where stdout goes is stdout: to rename over it would take away what
 * was printed.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(const char *option, const char *path, const char *what)
{
	char remedy[160];

	snprintf(remedy, sizeof(remedy),
		 "%s; give a file in a folder that can be written and has room",
		 what);
	return refuse_value(option, path, remedy);
}

/* What a path leads to, so that a link stays one. To be freed; or NULL. */
static char *target_of(const char *path)
{
	char *real = realpath(path, NULL);

	return real ? real : strdup(path);
}

static bool is_special(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static int write_all(int fd, const char *text, size_t size)
{
	while (size) {
		ssize_t n = write(fd, text, size);

		if (n < 0 && errno != EINTR)
			return -1;
		text += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* With the rights that open() would have given it. */
static mode_t rights(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0666 & ~mask;
}

/* A file beside the target, open; *temp is its name, to be freed. */
static int temp_open(const char *target, char **temp)
{
	size_t size = strlen(target) + sizeof(".XXXXXX");
	struct stat st;

	*temp = malloc(size);
	if (!*temp)
		return -1;
	if (!stat(target, &st) && S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		return -1;
	}
	snprintf(*temp, size, "%s.XXXXXX", target);
	return mkstemp(*temp);
}

/* Renames when @text; else only sees that it could be. errno tells. */
static int replace(const char *target, const char *text, size_t size)
{
	char *temp;
	int fd = temp_open(target, &temp), rc = -1, saved;

	if (fd >= 0) {
		rc = text && (write_all(fd, text, size) ||
			      fchmod(fd, rights()) || fsync(fd))
			     ? -1
			     : 0;
		saved = errno;
		if (close(fd) && !rc) {
			saved = errno;
			rc = -1;
		}
		if (!rc && text && rename(temp, target)) {
			saved = errno;
			rc = -1;
		}
		if (rc || !text)
			unlink(temp);
		errno = saved;
	}
	saved = errno;
	free(temp);
	errno = saved;
	return rc;
}

/* A device keeps what it got before it failed. */
static int write_special(const char *path, const char *text, size_t size)
{
	int fd = open(path, O_WRONLY), rc, saved;

	if (fd < 0)
		return -1;
	rc = write_all(fd, text, size);
	saved = errno;
	if (close(fd) && !rc)
		return -1;
	errno = saved;
	return rc;
}

static int put(const char *option, const char *path, const char *text,
	       size_t size)
{
	char *target = target_of(path);
	sigset_t all, old;
	int rc = -1;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	if (target && is_special(target))
		rc = text ? write_special(target, text, size)
			  : access(target, W_OK);
	else if (target)
		rc = replace(target, text, size);
	if (rc)
		fail(option, path, strerror(errno));
	free(target);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

bool outfile_is_stdout(const char *path)
{
	struct stat there, ours;

	if (!path || !strcmp(path, "-"))
		return path;
	return !stat(path, &there) && !fstat(STDOUT_FILENO, &ours) &&
	       there.st_dev == ours.st_dev && there.st_ino == ours.st_ino;
}

int outfile_check(const char *option, const char *path)
{
	return !path || outfile_is_stdout(path) ? 0
						: put(option, path, NULL, 0);
}

int outfile_put(const char *option, const char *path, const char *text,
		size_t size)
{
	return put(option, path, text, size);
}
