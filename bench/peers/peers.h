/* SPDX-License-Identifier: MIT */
/*
 * peers - the counts that a program may use instead of ours
 *
 * A peer is one way to count references, in the words of its own library, and
 * one file: peers/ID.c or .cc. It gives struct peer, which the trials of
 * misuse call, and a work function, which is measured. The loop of that
 * function has the peer's calls in it as a user's compiler would put them
 * there: inline where their header has them inline, and no call through a
 * pointer. Each does the same: take a reference, let go of it, and branch away
 * should the count ever say that it was the last.
 *
 * The state is one block of memory with all in it, aligned to two lines, the
 * count's own line at its start. It starts with one reference for each thread
 * and one more, so that no peer takes the shortcut of a sole holder.
 */
#ifndef PEERS_H
#define PEERS_H

#include "../support/bench.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * @bytes: that the count adds to an object
 * @size: of the state
 * @init: makes the count in @state, with any number of references that its
 *        word can hold, those past its limit included
 * @get: false when the reference is refused
 * @put: true when the caller is told to free
 * @held: references; of use to see whether the word moved
 * @limit: references at which the word changes its sign or its meaning, and
 *         those at which it comes round to zero: the next get is tried there.
 *         0 where there is no such number
 */
struct peer {
	size_t bytes;
	size_t size;
	void (*init)(void *state, uint64_t refs);
	bool (*get)(void *state);
	bool (*put)(void *state);
	uint64_t (*held)(const void *state);
	uint64_t limit[2];
};

/* The note columns of a peer, ended by NULL, and what the trials found. */
#define PEER_NOTES 4
struct peer_notes {
	const char *column[PEER_NOTES];
	char text[PEER_NOTES][64];
};
extern const char *const peer_columns[PEER_NOTES + 1];

/* Tries @peer's misuse in child processes and fills @notes. */
void peer_try(const struct peer *peer, struct peer_notes *notes);

/* A variant's setup, context its struct peer; free() is the teardown. */
int peer_setup(const struct bench_variant *variant, unsigned int threads,
	       void **state);

/* A measured count said that the last reference went: nothing can be said. */
void peer_broken(void) __attribute__((cold, noinline, noreturn));

/* The work of a peer whose static get() and put() are the same everywhere. */
#define PEER_WORK(id)                                                       \
	void peer_##id##_work(struct bench_self *self)                      \
	{                                                                   \
		void *state = self->state;                                  \
                                                                            \
		BENCH_REPEAT(self,                                          \
			     if (!get(state) || put(state)) peer_broken()); \
	}

#define PEER_DECLARE(id)                    \
	extern const struct peer peer_##id; \
	void peer_##id##_work(struct bench_self *self)

PEER_DECLARE(count); /* ours, in experiments/counts.c */
PEER_DECLARE(urcu_ref);
PEER_DECLARE(ck_pr);
PEER_DECLARE(g_atomic_ref_count);
PEER_DECLARE(rte_mbuf);
PEER_DECLARE(shared_ptr);
PEER_DECLARE(intrusive_ptr);
PEER_DECLARE(mutex);
PEER_DECLARE(atomic);

#ifdef __cplusplus
}
#endif

#endif
