/* SPDX-License-Identifier: MIT */
/*
 * g_atomic_ref_count - the count of GLib, whose calls are no inline ones
 */
#include "peers.h"

#include <glib.h>

static void init(void *state, uint64_t refs)
{
	*(gatomicrefcount *)state = (gint)(guint)refs;
}

static bool get(void *state)
{
	g_atomic_ref_count_inc(state);
	return true;
}

static bool put(void *state)
{
	return g_atomic_ref_count_dec(state);
}

static uint64_t held(const void *state)
{
	return (guint)g_atomic_int_get((const gatomicrefcount *)state);
}

PEER_WORK(g_atomic_ref_count)

const struct peer peer_g_atomic_ref_count = {
	.bytes = sizeof(gatomicrefcount),
	.size = sizeof(gatomicrefcount),
	.init = init,
	.get = get,
	.put = put,
	.held = held,
	.limit = { G_MAXINT, G_MAXUINT },
};
