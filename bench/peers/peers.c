/* SPDX-License-Identifier: MIT */
/*
 * peers - what becomes of a count that is misused, found out by doing it
 *
 * Each trial runs in a child process, for some of these counts abort and some
 * would wait for ever: the child makes a count, misuses it, and leaves what it
 * saw in shared memory. Whether a word was said about it is seen from the
 * child's standard error. Nothing here knows what any peer is said to do.
 *
 * Overflow: the count is started with as many references as its word can hold,
 * in place of the time that so many gets would take. Two more are taken, then
 * two let go: with so many references out, no put may be told to free. It is
 * tried where the word changes its sign, and, when nothing stopped the count
 * there, where it comes round to zero.
 * Underflow: one reference, two puts.
 * Get at zero: one reference, a put, a get; when the get is granted, a put
 * that may be told to free what is free already.
 */
#include "peers.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TWO_LINES 128
#define TRIAL_SECONDS 2 /* a trial takes microseconds, or does not end */

const char *const peer_columns[] = { "bytes", "overflow", "underflow",
				     "get at zero", NULL };

/* What a child saw. */
struct seen {
	bool refused; /* a get was */
	bool told; /* to free, by a put that was not the last reference's */
	bool moved; /* the word did, by the misuse */
	bool spoke; /* the child wrote to standard error */
	bool tried; /* the child ran to its end, or to its death */
	int killed; /* the signal that ended it; 0 when none did */
};

/* False when the count did not come to where it can be misused. */
typedef bool (*trial_fn)(const struct peer *peer, void *state, uint64_t refs,
			 struct seen *seen);

static bool over_limit(const struct peer *peer, void *state, uint64_t refs,
		       struct seen *seen)
{
	uint64_t most;
	bool got;

	peer->init(state, refs);
	got = peer->get(state);
	got = got && peer->get(state);
	if (!got) {
		seen->refused = true;
		return true;
	}
	most = peer->held(state);
	seen->told = peer->put(state);
	seen->told |= peer->put(state);
	seen->moved = peer->held(state) != most;
	return true;
}

static bool put_too_many(const struct peer *peer, void *state, uint64_t refs,
			 struct seen *seen)
{
	uint64_t last;

	peer->init(state, refs);
	if (!peer->put(state))
		return false;
	last = peer->held(state);
	seen->told = peer->put(state);
	seen->moved = peer->held(state) != last;
	return true;
}

static bool get_after_last(const struct peer *peer, void *state, uint64_t refs,
			   struct seen *seen)
{
	peer->init(state, refs);
	if (!peer->put(state))
		return false;
	seen->refused = !peer->get(state);
	if (!seen->refused)
		seen->told = peer->put(state);
	return true;
}

static void *new_state(const struct peer *peer)
{
	size_t size = (peer->size + TWO_LINES - 1) / TWO_LINES * TWO_LINES;
	void *state = aligned_alloc(TWO_LINES, size);

	if (state)
		memset(state, 0, size);
	return state;
}

static void child(const struct peer *peer, trial_fn trial, uint64_t refs,
		  struct seen *seen, int error)
{
	const struct rlimit none = { 0, 0 };
	void *state = new_state(peer);

	if (!state || dup2(error, STDERR_FILENO) < 0)
		_exit(1);
	(void)setrlimit(RLIMIT_CORE, &none);
	(void)signal(SIGABRT, SIG_DFL);
	(void)signal(SIGALRM, SIG_DFL);
	alarm(TRIAL_SECONDS);
	_exit(trial(peer, state, refs, seen) ? 0 : 1);
}

/* Runs @trial in a child; its standard error goes to @error. */
static void run(const struct peer *peer, trial_fn trial, uint64_t refs,
		struct seen *seen, int error)
{
	struct stat wrote;
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return;
	if (!pid)
		child(peer, trial, refs, seen, error);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return;
	if (WIFSIGNALED(status))
		seen->killed = WTERMSIG(status);
	seen->tried = seen->killed || !WEXITSTATUS(status);
	seen->spoke = !fstat(error, &wrote) && wrote.st_size > 0;
}

static struct seen attempt(const struct peer *peer, trial_fn trial,
			   uint64_t refs)
{
	struct seen saw = { .tried = false };
	FILE *error = tmpfile();
	struct seen *seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (seen != MAP_FAILED) {
		if (error)
			run(peer, trial, refs, seen, fileno(error));
		saw = *seen;
		munmap(seen, sizeof(*seen));
	}
	if (error)
		(void)fclose(error);
	return saw;
}

/* True when there is nothing more to say than that, and @text says it. */
static bool ended(const struct seen *seen, char *text, size_t size)
{
	if (!seen->tried)
		(void)snprintf(text, size, "not tried");
	else if (seen->killed == SIGALRM)
		(void)snprintf(text, size, "does not return");
	else if (seen->killed)
		(void)snprintf(text, size, "dies: %s", strsignal(seen->killed));
	return !seen->tried || seen->killed;
}

static void tell(const struct seen *seen, const char *what, char *text,
		 size_t size)
{
	if (!ended(seen, text, size))
		(void)snprintf(text, size, "%s%s", what,
			       seen->spoke ? ", reported" : "");
}

static void try_limits(const struct peer *peer, char *text, size_t size)
{
	struct seen seen = { .tried = false };
	const char *what = "goes on";

	for (int i = 0; i < 2 && peer->limit[i]; i++) {
		seen = attempt(peer, over_limit, peer->limit[i]);
		if (seen.refused)
			what = "refuses";
		else if (seen.told)
			what = "wraps, freed in use";
		else if (!seen.moved)
			what = "saturates";
		else if (seen.tried && !seen.killed)
			continue;
		break;
	}
	tell(&seen, what, text, size);
}

void peer_try(const struct peer *peer, struct peer_notes *notes)
{
	const size_t size = sizeof(notes->text[0]);
	struct seen seen;

	for (int i = 0; i < PEER_NOTES; i++)
		notes->column[i] = notes->text[i];
	(void)snprintf(notes->text[0], size, "%zu", peer->bytes);
	try_limits(peer, notes->text[1], size);
	seen = attempt(peer, put_too_many, 1);
	tell(&seen,
	     seen.told	  ? "freed twice"
	     : seen.moved ? "goes below zero"
			  : "stays dead",
	     notes->text[2], size);
	seen = attempt(peer, get_after_last, 1);
	tell(&seen,
	     seen.refused ? "refused"
	     : seen.told  ? "revives, freed twice"
			  : "revives",
	     notes->text[3], size);
}

int peer_setup(const struct bench_variant *variant, unsigned int threads,
	       void **state)
{
	const struct peer *peer = variant->context;

	*state = new_state(peer);
	if (!*state)
		return -ENOMEM;
	peer->init(*state, threads + 1u);
	return 0;
}

void peer_broken(void)
{
	(void)fputs("counts: a count that is held said that its last "
		    "reference went; its figures mean nothing\n",
		    stderr);
	abort();
}
