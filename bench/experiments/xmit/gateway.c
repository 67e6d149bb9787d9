/* SPDX-License-Identifier: MIT */
/*
 * The table `gateway`: the same policies with real packets, between kernel
 * sockets, through dstref-gateway (bench/gateway).
 *
 * A run is a child process. It makes namespaces and devices for itself, so it
 * needs a process of its own, and this way it is the program that users run.
 * setup starts it and waits until it forwards; work lets it forward until the
 * run's time is up, ends it with SIGINT, and reads its summary. So neither its
 * start nor its end is in the value, which it measures itself: time per
 * packet that left while packets were sent. A run whose books do not balance
 * has no value.
 *
 * Pipes: JSON comes by its standard output, all else by standard error, whose
 * first line says that packets move, or why they will not. Both are small
 * enough for a pipe to hold.
 *
 * SIGINT is blocked in the child from before its first instruction, and it
 * waits for it in its own time: so it may be sent at any moment. Should we
 * die, it ends by itself after LIFE. It runs on the CPUs that this process may
 * use, for its threads are more than those that --cpus places.
 *
 * What is not the same as in `throughput`: kernel sockets and devices take
 * more than 1000 ns for a packet, and four threads share the CPUs. So the
 * differences that the other table shows are a few percent here at most, and
 * often within the spread.
 */
#include "stack.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define GATEWAY "dstref-gateway"
#define LIFE "--seconds=60" /* of a child, at most */
#define START_MS 10000 /* until it forwards, or says why not */
#define STEP_NS 1000000 /* between two looks at the time */
#define ARGS_MAX 2 /* of a variant */

enum { CPU_NS, DROPPED, RING_FULL, WAKEUPS }; /* counters */

struct child {
	pid_t pid;
	int out, err; /* where we read */
	char line[256]; /* the first that it printed */
};

/* The program: beside our own, else in PATH. */
static const char *program(void)
{
	static char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	path[n > 0 ? n : 0] = '\0';
	slash = strrchr(path, '/');
	if (!slash ||
	    (size_t)(slash - path) + sizeof("/" GATEWAY) > sizeof(path))
		return GATEWAY;
	memcpy(slash, "/" GATEWAY, sizeof("/" GATEWAY));
	return access(path, X_OK) ? GATEWAY : path;
}

/* The child's three descriptors, and a mask that holds SIGINT back. */
static int describe(posix_spawn_file_actions_t *files, posix_spawnattr_t *attr,
		    int out, int err)
{
	sigset_t set;
	int rc = posix_spawn_file_actions_addopen(files, 0, "/dev/null",
						  O_RDONLY, 0);

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	rc = rc ? rc : posix_spawn_file_actions_adddup2(files, out, 1);
	rc = rc ? rc : posix_spawn_file_actions_adddup2(files, err, 2);
	rc = rc ? rc : posix_spawnattr_setsigmask(attr, &set);
	return rc ? rc : posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK);
}

/* @options: ended by NULL. 0 or an errno. */
static int spawn(pid_t *pid, const char *const *options, int out, int err)
{
	const char *argv[ARGS_MAX + 4] = { GATEWAY, LIFE, "--json=-" };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	int rc;

	for (int i = 0; options[i]; i++)
		argv[3 + i] = options[i];
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	rc = describe(&files, &attr, out, err);
	if (!rc)
		rc = posix_spawnp(pid, program(), &files, &attr,
				  (char *const *)argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return rc;
}

/* Up to the end of its first line, or a while. */
static void read_line(struct child *child)
{
	struct pollfd p = { .fd = child->err, .events = POLLIN };
	size_t n = 0;

	while (n < sizeof(child->line) - 1 && poll(&p, 1, START_MS) > 0 &&
	       read(child->err, child->line + n, 1) == 1 &&
	       child->line[n] != '\n')
		n++;
	child->line[n] = '\0';
}

/* Returns once the child forwards, or has said why not. 0 or -errno. */
static int child_start(struct child *child, const char *const *options)
{
	int out[2], err[2], rc;

	if (pipe2(out, O_CLOEXEC))
		return -errno;
	if (pipe2(err, O_CLOEXEC)) {
		rc = -errno;
		close(out[0]);
		close(out[1]);
		return rc;
	}
	rc = -spawn(&child->pid, options, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	child->out = out[0];
	child->err = err[0];
	if (!rc)
		read_line(child);
	return rc;
}

static void child_stop(const struct child *child)
{
	kill(child->pid, SIGINT);
}

static double seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

/* Its exit status, or -1; and the CPU time of its life. */
static int child_wait(struct child *child, double *cpu_ns)
{
	struct rusage use;
	int status;

	while (wait4(child->pid, &status, 0, &use) < 0)
		if (errno != EINTR)
			return -1;
	child->pid = 0;
	*cpu_ns = (seconds(&use.ru_utime) + seconds(&use.ru_stime)) * 1e9;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void child_close(const struct child *child)
{
	close(child->out);
	close(child->err);
}

/* The first packets of a child, to see whether there can be any. */
int xmit_gateway_prepare(const struct bench_table *table, const char **why)
{
	static const char *const none[] = { NULL };
	static struct child child;
	double cpu_ns;
	int rc = child_start(&child, none);

	(void)table;
	*why = GATEWAY " is not beside this program nor in PATH; build it";
	if (rc)
		return rc;
	child_stop(&child);
	rc = child_wait(&child, &cpu_ns);
	child_close(&child);
	*why = child.line;
	return rc ? -ENOTSUP : 0;
}

static int setup(const struct bench_variant *variant, unsigned int threads,
		 void **state)
{
	struct child *child = calloc(1, sizeof(*child));
	int rc = child ? child_start(child, variant->context) : -ENOMEM;

	(void)threads;
	if (rc)
		free(child);
	else
		*state = child;
	return rc;
}

static void teardown(void *state)
{
	struct child *child = state;
	double cpu_ns;

	if (child->pid) {
		child_stop(child);
		(void)child_wait(child, &cpu_ns);
	}
	child_close(child);
	free(child);
}

/* A sample where packets moved. */
static void take(struct bench_self *self, json_t *root, double cpu_ns)
{
	json_int_t out, dropped, full, room, data;
	double mpps;

	if (json_unpack(root, "{s:F s:I s:I s:I s:{s:I s:I}}", "mpps", &mpps,
			"out", &out, "dropped", &dropped, "ring_full", &full,
			"wakeups", "room", &room, "data", &data) ||
	    mpps <= 0)
		return;
	bench_sample(self, 1e3 / mpps);
	self->ops = (uint64_t)out;
	self->counter[CPU_NS] = (uint64_t)cpu_ns;
	self->counter[DROPPED] = (uint64_t)dropped;
	self->counter[RING_FULL] = (uint64_t)full;
	self->counter[WAKEUPS] = (uint64_t)(room + data);
}

static void work(struct bench_self *self)
{
	struct child *child = self->state;
	struct timespec step = { 0, STEP_NS };
	json_error_t error;
	double cpu_ns = 0;
	json_t *root;

	while (!bench_over(self))
		nanosleep(&step, NULL);
	child_stop(child);
	root = json_loadfd(child->out, 0, &error);
	if (!child_wait(child, &cpu_ns) && root)
		take(self, root, cpu_ns);
	json_decref(root);
}

#define ROW(name_, kind_, what_, ...)                                        \
	{                                                                    \
		.name = name_, .kind = kind_, .what = what_, .setup = setup, \
		.work = work, .teardown = teardown,                          \
		.context = (const char *const[ARGS_MAX + 1]){ __VA_ARGS__ }, \
	}

const struct bench_variant xmit_gateway[XMIT_GATEWAY] = {
	ROW("bare", BENCH_FLOOR, "one thread reads and writes, no gateway",
	    "--bare"),
	ROW("completion", BENCH_MODEL, "route and sock at completion",
	    "--release=completion"),
	ROW("xmit", BENCH_OURS, "route at transmit, sock at completion",
	    "--release=xmit"),
	ROW("xmit-early", BENCH_OURS, "route and sock at transmit",
	    "--early-uncharge"),
	ROW("xmit-noref", BENCH_OURS, "route borrowed, sock at completion",
	    "--noref"),
	ROW("xmit-noref-early", BENCH_OURS, "route borrowed, sock at transmit",
	    "--noref", "--early-uncharge"),
};
