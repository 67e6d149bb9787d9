/* SPDX-License-Identifier: MIT */
/*
 * sock - the chain of ends, the callback that hears of room, the sleepers
 *
 * Ends. Each of three words tells its own end to exactly one caller, and the
 * first two hold a unit of the next:
 *
 *   count (references)  last put: proto->release, then closes
 *   rmem (received)     last unit: closes
 *   wmem (to be sent)   last unit: the entry becomes a callback, and a grace
 *                       period later proto->destroy runs and the memory goes
 *
 * So a completion touches only wmem, a consumer only rmem, a lookup only the
 * count, each on its own line, and the memory outlives them all. The grace
 * period is for readers that found the sock in a table and are about to fail
 * in try_hold. Both accounts exist from init on, before anybody knows the
 * sock.
 *
 * Write space. The callback must run on a sock that is pinned, by the unit of
 * the packet that made the room. So with a callback a completion is two
 * operations: the bytes are given back, the callback is called if there is
 * room, then the unit is given back. Without one it is one, and what must be
 * known of the sock (its namespace, how much room counts as enough) was read
 * before. Function and data are one pointer, loaded inside a reader; who
 * replaces it waits for a grace period before the old one may be freed. So
 * does who sets the first one: a completion that saw none calls nobody, and the
 * caller who looks for room after the grace period sees what it gave back. A
 * thread outside any reader takes the namespace's outside lock around the
 * callback instead, and who replaces takes it too after the grace period.
 *
 * Waking after the one operation touches the namespace, which an unpinned
 * sock no longer keeps; the reader does: the sock was alive inside it, so its
 * end, and with it that of the namespace, is a grace period away. Outside a
 * reader there is no such promise, so there a completion is always two
 * operations and wakes before the second.
 *
 * Sleepers. See park.c for entering and leaving, wmem.c for the mark. Room is
 * looked for in the value that marking returned: fewer than sndbuf bytes. It
 * is woken for when sndbuf / 2 or fewer are left, so that a sender is not
 * woken for each packet. No sleeper is lost by the gap: his bytes are sndbuf or
 * more, they come down to zero as packets complete, and the completion that
 * passes the half sees the mark. A sndbuf that changes wakes all to look
 * again. Data is an event number beside a mark in one word: the sleeper sleeps
 * only while the number is the one of his token.
 *
 * A completion looks at the transmit account's mark alone: it cannot wake a
 * thread that sleeps for data.
 *
 * Ordering.
 *   R1/A1 of count.c and wmem.c: destroy sees what holders and completions
 *      wrote. The chain continues it: each link is closed by the one who was
 *      told of the one before.
 *   R4 set_write_space exchanges with release, A4 the completion loads the
 *      pointer with acquire: it sees the function and the data behind it.
 *      tests/stress/sock.c replaces callbacks under completions; mutants
 *      space.no_release, no_acquire.
 *   R5 data_ready adds with release, A5 data_token and the sleeper's marking
 *      acquire: who is past the wait sees what was queued before it. Mutants
 *      wait_room.no_release, data_no_acquire, token_no_acquire.
 *   R6 close stores with release, A6 the sleeper loads with acquire, before he
 *      looks for anything else: who is told -ESHUTDOWN sees what was done
 *      before the close, though he may not have slept, and met nobody at the
 *      lock.
 *      Mutants wait_room.close_no_release, close_no_acquire.
 *   sndbuf is relaxed: sleepers are told through the row's lock (park.c),
 *   others by and by.
 */
#include "net_private.h"

#include <dstref/sock.h>

#include <errno.h>
#include <string.h>

/* Ends. */

static void sock_end(struct rcu_head *head)
{
	struct dstref_sock *sk =
		container_of(rcu_deferred(head), struct dstref_sock, rcu);
	const struct dstref_sock_proto *proto = sk->proto;
	struct dstref_net *net = sk->net;
	bool allocated = sk->flags & DSTREF_SOCK_ALLOCATED;

	rcu_tag_acquire(net->flavour);
	dstref_dst_slot_clear(&sk->dst);
	net_unlink(net, &sk->entry);
	if (proto->destroy)
		proto->destroy(sk);
	if (allocated)
		net_free(net, sk, proto->size);
	net_done(net);
}

void dstref_sock_empty_w(struct dstref_sock *sk)
{
	struct dstref_net *net = sk->net;

	net_leave(net, DSTREF_NET_SOCK);
	rcu_defer(net->flavour, &sk->rcu, sock_end);
}

void dstref_sock_empty_r(struct dstref_sock *sk)
{
	if (dstref_wmem_close(&sk->wmem, NULL))
		dstref_sock_empty_w(sk);
}

/* The last reference is gone; the caller was told so. */
static void sock_last(struct dstref_sock *sk)
{
	if (sk->proto->release)
		sk->proto->release(sk);
	if (dstref_wmem_close(&sk->rmem, NULL))
		dstref_sock_empty_r(sk);
}

bool dstref_sock_hold_slow(struct dstref_sock *sk, uint32_t after,
			   const char *call)
{
	if (dstref_count_get_slow(&sk->count, 1, after, sk,
				  call ? call : "dstref_sock_try_hold"))
		return true;
	if (call)
		dstref_report_raise(DSTREF_REPORT_SOCK_HOLD_DEAD, call, sk,
				    after, NULL);
	return false;
}

void dstref_sock_put_slow(struct dstref_sock *sk, uint32_t after,
			  const char *call)
{
	if (dstref_count_put_slow(&sk->count, after, sk, call))
		sock_last(sk);
}

void dstref_sock_put_outside(struct dstref_sock *sk)
{
	if (sk && dstref_count_put_outside_of(&sk->count, 1, sk,
					      "dstref_sock_put_outside"))
		sock_last(sk);
}

/* Births. */

static bool valid(const struct dstref_net *net,
		  const struct dstref_sock_proto *proto)
{
	return net && proto && proto->size >= sizeof(struct dstref_sock) &&
	       proto->size <= SIZE_MAX / 2;
}

/* Everything but the place in the list: the sock is still the caller's own. */
static void sock_set(struct dstref_sock *sk, struct dstref_net *net,
		     const struct dstref_sock_proto *proto, uint32_t flags)
{
	memset(sk, 0, sizeof(*sk));
	sk->net = net;
	sk->proto = proto;
	sk->flags = flags;
	dstref_init_plain(&sk->sndbuf, DSTREF_SOCK_SNDBUF);
	dstref_wmem_init(&sk->wmem);
	dstref_wmem_init(&sk->rmem);
	dstref_count_init(&sk->count, 1);
}

int dstref_sock_init(struct dstref_sock *sk, struct dstref_net *net,
		     const struct dstref_sock_proto *proto)
{
	if (!sk || (uintptr_t)sk % DSTREF_LINE_SIZE || !valid(net, proto) ||
	    !proto->destroy)
		return -EINVAL;
	int err = net_enter(net, DSTREF_NET_SOCK);

	if (err)
		return err;
	sock_set(sk, net, proto, 0);
	net_link(net, &sk->entry, DSTREF_NET_SOCK);
	return 0;
}

/* Gives back a sock that nobody ever knew. */
static void sock_abandon(struct dstref_sock *sk, struct dstref_net *net,
			 size_t size)
{
	net_leave(net, DSTREF_NET_SOCK);
	net_free(net, sk, size);
	net_done(net);
}

static int sock_new(struct dstref_sock **result, struct dstref_net *net,
		    const struct dstref_sock_proto *proto,
		    struct dstref_sock *parent)
{
	int err = net_enter(net, DSTREF_NET_SOCK);

	if (err)
		return err;
	struct dstref_sock *sk = net_alloc(net, proto->size);

	if (!sk) {
		net_leave(net, DSTREF_NET_SOCK);
		net_done(net);
		return -ENOMEM;
	}
	sock_set(sk, net, proto, DSTREF_SOCK_ALLOCATED);
	memset(sk + 1, 0, proto->size - sizeof(*sk));
	if (parent) {
		dstref_init_plain(&sk->sndbuf,
				  dstref_load_relaxed(&parent->sndbuf));
		err = proto->clone ? proto->clone(sk, parent) : 0;
	}
	if (err) {
		sock_abandon(sk, net, proto->size);
		return err < 0 ? err : -EINVAL;
	}
	net_link(net, &sk->entry, DSTREF_NET_SOCK);
	*result = sk;
	return 0;
}

int dstref_sock_alloc(struct dstref_sock **sk, struct dstref_net *net,
		      const struct dstref_sock_proto *proto)
{
	if (!sk || !valid(net, proto))
		return -EINVAL;
	return sock_new(sk, net, proto, NULL);
}

int dstref_sock_clone(struct dstref_sock **child, struct dstref_sock *parent)
{
	if (!child || !parent || !(parent->flags & DSTREF_SOCK_ALLOCATED))
		return -EINVAL;
	return sock_new(child, parent->net, parent->proto, parent);
}

/* Write space. */

static uint32_t enough(const struct dstref_sock *sk)
{
	return dstref_load_relaxed(&sk->sndbuf) / 2;
}

/* The bytes are given back, the unit still pins: tell whoever wants room. */
static void tell_room(struct dstref_sock *sk, uint64_t after)
{
	uint32_t room = enough(sk);
	/* A4, with R4 in dstref_sock_set_write_space(). */
	const struct dstref_sock_space *space = dstref_load_acquire(&sk->space);

	if (space && dstref_wmem_value_bytes(after) <= (int64_t)room)
		space->fn(sk, space->data);
	if (dstref_wmem_value_wakes(after, room))
		dstref_sock_wake_room(sk->net, &sk->wmem);
}

static void drop_units(struct dstref_sock *sk, uint32_t n)
{
	if (dstref_wmem_uncharge_n(&sk->wmem, n, 0, NULL))
		dstref_sock_empty_w(sk);
}

void dstref_sock_uncharge_space(struct dstref_sock *sk, uint32_t n,
				uint32_t bytes)
{
	if (!dstref_wmem_n_ok(&sk->wmem, n, "dstref_sock_uncharge_w_n"))
		return;
	tell_room(sk, dstref_wmem_recharge(&sk->wmem, bytes, 0));
	drop_units(sk, n);
}

void dstref_sock_uncharge_w_outside(struct dstref_sock *sk, uint32_t bytes)
{
	if (!dstref_debug_arg(sk, "dstref_sock_uncharge_w_outside"))
		return;
	pthread_mutex_t *outside = &net_of(sk->net)->outside;
	uint64_t after = dstref_wmem_recharge(&sk->wmem, bytes, 0);

	pthread_mutex_lock(outside);
	tell_room(sk, after);
	pthread_mutex_unlock(outside);
	drop_units(sk, 1);
}

int dstref_sock_set_write_space(struct dstref_sock *sk,
				const struct dstref_sock_space *space)
{
	static const char call[] = "dstref_sock_set_write_space";
	bool online;

	if (!dstref_debug_arg(sk, call))
		return -EINVAL;
	struct net *net = net_of(sk->net);

	if (!net_wait_begin(sk->net, &online, call))
		return -EDEADLK;
	/* R4, with A4 in tell_room(). */
	const struct dstref_sock_space *old =
		dstref_xchg_acq_rel(&sk->space, space);

	/* The first one, too: a completion that saw none is then over. */
	if (old || space) {
		rcu_wait(sk->net->flavour);
		pthread_mutex_lock(&net->outside);
		pthread_mutex_unlock(&net->outside);
	}
	net_wait_end(sk->net->flavour, online);
	return 0;
}

/* Sleepers. */

static void wake(struct dstref_net *pub, const void *key, enum net_sleep kind)
{
	struct net *net = net_of(pub);
	uint64_t woken = park_wake(&net->park, key);

	(void)dstref_fetch_add_relaxed(&net->wakeups[kind], woken);
}

void dstref_sock_wake_room(struct dstref_net *net, const void *key)
{
	wake(net, key, NET_ROOM);
}

void dstref_sock_wake_data(struct dstref_net *net, const void *key)
{
	wake(net, key, NET_DATA);
}

void dstref_sock_close(struct dstref_sock *sk)
{
	if (!dstref_debug_arg(sk, "dstref_sock_close"))
		return;
	/* R6, with A6 in sleep_once(). */
	dstref_store_release(&sk->closed, 1u);
	dstref_sock_wake_room(sk->net, &sk->wmem);
	dstref_sock_wake_data(sk->net, &sk->events);
}

void dstref_sock_set_sndbuf(struct dstref_sock *sk, uint32_t bytes)
{
	if (!dstref_debug_arg(sk, "dstref_sock_set_sndbuf"))
		return;
	dstref_store_relaxed(&sk->sndbuf, bytes ? bytes : 1u);
	dstref_sock_wake_room(sk->net, &sk->wmem);
}

/* What a thread may sleep for. */
struct want {
	enum net_sleep kind;
	struct dstref_sock *sk;
	const void *key;
	uint32_t token;
	bool look; /* only, and not sleep */
};

/* Marks the word and looks at it: need the caller not sleep? */
static bool mark(const struct want *want)
{
	struct dstref_sock *sk = want->sk;

	if (want->kind == NET_ROOM)
		return dstref_wmem_value_bytes(dstref_wmem_wait(&sk->wmem)) <
		       (int64_t)dstref_load_relaxed(&sk->sndbuf);
	/* A5, with R5 in dstref_sock_data_ready(). */
	return (dstref_fetch_or_acquire(&sk->events, DSTREF_SOCK_EVENT_WAITER) &
		~DSTREF_SOCK_EVENT_WAITER) != want->token;
}

/* Nobody else is parked here. */
static void unmark(void *arg)
{
	const struct want *want = arg;

	if (want->kind == NET_ROOM)
		dstref_wmem_wait_end(&want->sk->wmem);
	else
		(void)dstref_fetch_and_relaxed(&want->sk->events,
					       ~DSTREF_SOCK_EVENT_WAITER);
}

/* One turn: parked, looked, slept if need be. -EAGAIN: woken, look again. */
static int sleep_once(struct want *want, struct park_node *node,
		      const struct park_end *end)
{
	struct net *net = net_of(want->sk->net);
	int result = -EAGAIN;

	park_enter(&net->park, node);
	/* A6, with R6 in dstref_sock_close(). */
	if (dstref_load_acquire(&want->sk->closed)) {
		result = -ESHUTDOWN;
	} else if (mark(want)) {
		result = 0;
	} else if (want->look) {
		result = -ETIMEDOUT;
	} else {
		(void)dstref_fetch_add_relaxed(&net->sleeps[want->kind],
					       (uint64_t)1);
		if (!park_sleep(&net->park, node, end))
			result = mark(want) ? 0 : -ETIMEDOUT;
	}
	park_leave(&net->park, node, unmark, want);
	return result;
}

static int sleep_for(struct want *want, int64_t timeout_ns, const char *call)
{
	struct dstref_net *net = want->sk->net;
	struct park_node node;
	struct park_end end;
	bool online;
	int cancel;

	if (!net_wait_begin(net, &online, call))
		return -EDEADLK;
	/* A cancelled thread would leave its node, on its stack, in the row. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	int err = park_node_init(&node, want->key);

	if (!err) {
		park_end_in(&end, timeout_ns);
		do
			err = sleep_once(want, &node, &end);
		while (err == -EAGAIN);
		park_node_fini(&node);
	}
	pthread_setcancelstate(cancel, NULL);
	net_wait_end(net->flavour, online);
	return err;
}

int dstref_sock_wait_writable(struct dstref_sock *sk, int64_t timeout_ns)
{
	static const char call[] = "dstref_sock_wait_writable";

	if (!dstref_debug_arg(sk, call))
		return -EINVAL;
	struct want want = { NET_ROOM, sk, &sk->wmem, 0, !timeout_ns };

	return sleep_for(&want, timeout_ns, call);
}

int dstref_sock_wait_readable(struct dstref_sock *sk, uint32_t token,
			      int64_t timeout_ns)
{
	static const char call[] = "dstref_sock_wait_readable";

	if (!dstref_debug_arg(sk, call))
		return -EINVAL;
	struct want want = { NET_DATA, sk, &sk->events, token, !timeout_ns };

	return sleep_for(&want, timeout_ns, call);
}
