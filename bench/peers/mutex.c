/* SPDX-License-Identifier: MIT */
/*
 * mutex - a plain number behind a POSIX mutex
 */
#include "peers.h"

#include <pthread.h>

struct state {
	pthread_mutex_t lock;
	unsigned int refs;
};

static void init(void *state, uint64_t refs)
{
	struct state *s = state;

	(void)pthread_mutex_init(&s->lock, NULL);
	s->refs = (unsigned int)refs;
}

static bool get(void *state)
{
	struct state *s = state;

	pthread_mutex_lock(&s->lock);
	s->refs++;
	pthread_mutex_unlock(&s->lock);
	return true;
}

static bool put(void *state)
{
	struct state *s = state;
	bool last;

	pthread_mutex_lock(&s->lock);
	last = --s->refs == 0;
	pthread_mutex_unlock(&s->lock);
	return last;
}

static uint64_t held(const void *state)
{
	return ((const struct state *)state)->refs;
}

PEER_WORK(mutex)

const struct peer peer_mutex = {
	.bytes = sizeof(struct state),
	.size = sizeof(struct state),
	.init = init,
	.get = get,
	.put = put,
	.held = held,
	.limit = { UINT32_MAX },
};
