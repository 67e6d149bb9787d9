/* SPDX-License-Identifier: MIT */
/**
 * DOC: sock - a socket: identity, two accounts, sleepers
 *
 * struct dstref_sock stands at the head of the user's own socket. Four
 * things, each on lines of its own: what packets read; the transmit account,
 * which completions write; the receive account and the data events; the
 * identity count, which lookups write.
 *
 * Lifetime is a chain. References (hold, put) keep the identity; the last put
 * closes the receive account, whose end closes the transmit account; each
 * packet that is charged keeps its account from ending, by its charge alone.
 * When the transmit account is empty too, destroy runs after a grace period:
 * the memory outlives every packet and every reader that found it.
 *
 * Back pressure: a sock is writeable while fewer than sndbuf bytes are in
 * flight. A sender that is told no waits (dstref_sock_wait_writable(), or a
 * write-space callback) and hears of room when half of sndbuf is free again.
 * Who waits for room and who waits for data sleep apart, parked in the
 * namespace by address: a completion wakes no reader, and a waker touches no
 * sock that it no longer pins.
 *
 * Context, where a call does not say otherwise: inside a reader of the
 * namespace's flavour; debug builds check it.
 *
 * Concurrency:
 *	init, alloc, clone   alone, on their own result
 *	set_write_space      one thread at a time
 *	all else             beside each other on any number of threads, each
 *	                     caller with a reference or a packet of his own, or
 *	                     try_hold in the reader that found the sock
 */
#ifndef DSTREF_SOCK_H
#define DSTREF_SOCK_H

#include <dstref/atomic.h>
#include <dstref/config.h>
#include <dstref/count.h>
#include <dstref/dst.h>
#include <dstref/line.h>
#include <dstref/net.h>
#include <dstref/report.h>
#include <dstref/wmem.h>

struct dstref_sock;

/**
 * struct dstref_sock_proto - what the user's kind of socket does
 * @name: for reports
 * @size: bytes of the whole socket, struct dstref_sock first
 * @release: the last reference is gone: let go of what is still queued on the
 *           socket. Runs once, in the context of the last put; may be NULL
 * @destroy: nobody can know the socket any more. After dstref_sock_init():
 *           hand the memory back, must be there. After dstref_sock_alloc():
 *           undo what the user added, the library frees; may be NULL. Runs
 *           once, on the flavour's callback thread
 * @clone: fill in a child; 0, or -errno (anything but 0 counts as one) when it
 *         has undone its own work; NULL: nothing to fill in
 */
struct dstref_sock_proto {
	const char *name;
	size_t size;
	void (*release)(struct dstref_sock *sk);
	void (*destroy)(struct dstref_sock *sk);
	int (*clone)(struct dstref_sock *child, struct dstref_sock *parent);
};

/**
 * struct dstref_sock_space - a write-space callback
 * @fn: called after each completion that leaves half of sndbuf free or more,
 *      while the packet's unit still pins the sock. Must not block. It
 *      may have been called by an _outside form, under its lock and in no
 *      reader: it must not call one, nor what belongs inside a reader
 * @data: its argument
 *
 * Function and data are one pointer, so that no call mixes two of them.
 */
struct dstref_sock_space {
	void (*fn)(struct dstref_sock *sk, void *data);
	void *data;
};

#define DSTREF_SOCK_SNDBUF 212992u /* bytes, at start */

/* Bits of flags. */
#define DSTREF_SOCK_ALLOCATED 0x1u /* the library frees the memory */

/* Parts of events: a mark that somebody waits, and a sequence number. */
#define DSTREF_SOCK_EVENT_WAITER 0x1u
#define DSTREF_SOCK_EVENT 0x2u

/* Who reads and writes what; line.h says how to read a list. */
#define DSTREF_SOCK_FIELDS(X)                              \
	X(struct dstref_sock, net, read, R, N, R, W)       \
	X(struct dstref_sock, proto, read, E, E, E, W)     \
	X(struct dstref_sock, space, read, N, N, R, W)     \
	X(struct dstref_sock, dst, read, R, R, E, W)       \
	X(struct dstref_sock, user, read, R, R, N, W)      \
	X(struct dstref_sock, sndbuf, read, N, R, R, W)    \
	X(struct dstref_sock, closed, read, R, R, N, W)    \
	X(struct dstref_sock, flags, read, N, N, E, W)     \
	X(struct dstref_sock, wmem, transmit, N, W, W, E)  \
	X(struct dstref_sock, rmem, receive, W, N, N, E)   \
	X(struct dstref_sock, events, receive, W, N, N, W) \
	X(struct dstref_sock, count, identity, H, H, N, H) \
	X(struct dstref_sock, rcu, identity, N, N, E, E)   \
	X(struct dstref_sock, entry, identity, N, N, N, W)

DSTREF_GROUPED
struct dstref_sock {
	/* Read-mostly. */
	DSTREF_GROUP_LINE(read);
	struct dstref_net *net;
	const struct dstref_sock_proto *proto;
	DSTREF_ATOMIC(const struct dstref_sock_space *) space;
	struct dstref_dst_slot dst;
	void *user; /* the user's */
	DSTREF_ATOMIC(uint32_t) sndbuf; /* bytes */
	DSTREF_ATOMIC(uint32_t) closed; /* 1 after dstref_sock_close() */
	uint32_t flags;
	DSTREF_GROUP_END(read);

	/* Written by transmit and completion. */
	DSTREF_GROUP_LINE(transmit);
	struct dstref_wmem wmem;
	DSTREF_GROUP_END(transmit);

	/* Written by receive: charges, events. */
	DSTREF_GROUP_LINE(receive);
	struct dstref_wmem rmem;
	DSTREF_ATOMIC(uint32_t) events;
	DSTREF_GROUP_END(receive);

	/* Written by who looks it up. */
	DSTREF_GROUP_LINE(identity);
	struct dstref_count count;
	struct dstref_rcu_head rcu;
	struct dstref_net_entry entry;
	DSTREF_GROUP_END(identity);
};
DSTREF_GROUPED_END

DSTREF_SOCK_FIELDS(DSTREF_FIELD_ASSERT)
DSTREF_ASSERT_LINES(struct dstref_sock, 4);
DSTREF_ASSERT_STRIDE(struct dstref_sock);
DSTREF_ASSERT_OFFSET(struct dstref_sock, net, 0);
DSTREF_ASSERT_OFFSET(struct dstref_sock, wmem, DSTREF_LINE_SIZE);
DSTREF_ASSERT_OFFSET(struct dstref_sock, rmem, 2 * DSTREF_LINE_SIZE);
DSTREF_ASSERT_OFFSET(struct dstref_sock, count, 3 * DSTREF_LINE_SIZE);
DSTREF_ASSERT_GROUP_LINES(struct dstref_sock, read, 1);
DSTREF_ASSERT_GROUP_LINES(struct dstref_sock, receive, 1);
DSTREF_ASSERT_GROUP_LINES(struct dstref_sock, identity, 1);
DSTREF_ASSERT_OWN_LINE(struct dstref_sock, wmem, rmem);

/* Lines of a sock that are written for a packet that is sent. */
DSTREF_ASSERT_PATH(DSTREF_SOCK_FIELDS(DSTREF_FIELD_CHARGE), 1, "a charge");
DSTREF_ASSERT_PATH(DSTREF_SOCK_FIELDS(DSTREF_FIELD_COMPLETE), 1,
		   "a completion");

DSTREF_BEGIN_DECLS

/* The uncommon ends of the inline calls; not to be called otherwise. */
DSTREF_EXPORT DSTREF_COLD bool
dstref_sock_hold_slow(struct dstref_sock *sk, uint32_t after, const char *call);
DSTREF_EXPORT DSTREF_COLD void
dstref_sock_put_slow(struct dstref_sock *sk, uint32_t after, const char *call);
DSTREF_EXPORT DSTREF_COLD void dstref_sock_empty_w(struct dstref_sock *sk);
DSTREF_EXPORT DSTREF_COLD void dstref_sock_empty_r(struct dstref_sock *sk);
DSTREF_EXPORT DSTREF_COLD void dstref_sock_wake_room(struct dstref_net *net,
						     const void *key);
DSTREF_EXPORT DSTREF_COLD void dstref_sock_wake_data(struct dstref_net *net,
						     const void *key);
DSTREF_EXPORT void dstref_sock_uncharge_space(struct dstref_sock *sk,
					      uint32_t n, uint32_t bytes);

/**
 * dstref_sock_init - start a sock on the user's memory
 * @sk: aligned to DSTREF_LINE_SIZE; every field is written
 * @net: its namespace
 * @proto: kept; proto->destroy must be there
 *
 * The caller has the one reference. No dst, no user data, both accounts
 * empty and open from here on.
 *
 * Context: any thread, in no reader necessarily. May wait for the namespace's
 *          lock, never blocks on RCU.
 * Ordering: none; publication by the caller.
 * Return: 0; -EINVAL for a misaligned @sk, a NULL or a proto->size below
 *         that of struct dstref_sock; -ESHUTDOWN when the namespace is
 *         closing. On error @sk is untouched.
 */
DSTREF_NODISCARD DSTREF_EXPORT int
dstref_sock_init(struct dstref_sock *sk, struct dstref_net *net,
		 const struct dstref_sock_proto *proto);

/**
 * dstref_sock_alloc - start a sock on memory of the namespace
 * @sk: the result; untouched on error
 * @net: its namespace
 * @proto: kept; what follows struct dstref_sock in proto->size is cleared
 *
 * Context: as dstref_sock_init(), and the allocation hook's.
 * Ordering: none; publication by the caller.
 * Return: as dstref_sock_init(); -ENOMEM.
 */
DSTREF_NODISCARD DSTREF_EXPORT int
dstref_sock_alloc(struct dstref_sock **sk, struct dstref_net *net,
		  const struct dstref_sock_proto *proto);

/**
 * dstref_sock_clone - a sock like another
 * @child: the result; untouched on error
 * @parent: the caller has a reference
 *
 * Allocated as by dstref_sock_alloc(), with the parent's proto and sndbuf; no
 * dst, no user data, no callback, its accounts its own. proto->clone then
 * fills it in. A parent from dstref_sock_init() is refused: its proto->destroy
 * hands memory back that would be the library's.
 *
 * Context: as dstref_sock_alloc().
 * Ordering: none; publication by the caller.
 * Return: as dstref_sock_alloc(), or what proto->clone returned below zero
 *         (-EINVAL for above): then the child was freed, without
 *         proto->destroy; -EINVAL for a parent that was not allocated.
 */
DSTREF_NODISCARD DSTREF_EXPORT int
dstref_sock_clone(struct dstref_sock **child, struct dstref_sock *parent);

/**
 * dstref_sock_put_outside - let go of a reference, outside any reader
 * @sk: the sock; NULL does nothing
 *
 * Context: any thread, registered or not; proto->release must bear it.
 * Ordering: as dstref_sock_put().
 */
DSTREF_EXPORT void dstref_sock_put_outside(struct dstref_sock *sk);

/**
 * dstref_sock_close - say that no more will be sent or received
 * @sk: the caller has a reference, and keeps it
 *
 * Sleepers of both kinds wake with -ESHUTDOWN, and nobody sleeps any more.
 * Packets in flight and references are not touched. Twice is as once.
 *
 * Context: any thread, in a reader or not. Takes a lock for a moment.
 * Ordering: release (R6); who is woken, or told -ESHUTDOWN, sees what was done
 *           before.
 */
DSTREF_EXPORT void dstref_sock_close(struct dstref_sock *sk);

/**
 * dstref_sock_set_sndbuf - how many bytes may be in flight
 * @sk: the caller has a reference
 * @bytes: 1 or more; 0 counts as 1
 *
 * Sleepers for room look again.
 *
 * Context: any thread, in a reader or not. Takes a lock for a moment.
 * Ordering: none.
 */
DSTREF_EXPORT void dstref_sock_set_sndbuf(struct dstref_sock *sk,
					  uint32_t bytes);

/**
 * dstref_sock_set_write_space - set the callback that hears of room
 * @sk: the caller has a reference
 * @space: kept until it is replaced; NULL for none
 *
 * When it returns, the one before runs no more and may be freed, and each
 * completion has either called @space, or gave its room back before: so set it,
 * then look whether the sock is writeable.
 *
 * Context: any thread, one at a time, outside a reader and not in a callback;
 *          blocks for a grace period, unless there was none and is none.
 * Ordering: release (R4): the callback sees what @space points to.
 * Return: 0; -EDEADLK, with a report, inside a reader: nothing was done.
 */
DSTREF_EXPORT int
dstref_sock_set_write_space(struct dstref_sock *sk,
			    const struct dstref_sock_space *space);

/**
 * dstref_sock_wait_writable - sleep until the sock is writeable
 * @sk: the caller has a reference
 * @timeout_ns: nanoseconds to wait at most; 0 looks once; below zero for ever
 *
 * Context: outside a reader; may block, is no cancellation point. An online
 *          QSBR thread is offline meanwhile.
 * Ordering: acquire, with the release of the uncharge that made room.
 * Return: 0, as dstref_sock_writeable() was true; -ETIMEDOUT; -ESHUTDOWN
 *         after close; -EDEADLK, with a report, inside a reader.
 */
DSTREF_NODISCARD DSTREF_EXPORT int
dstref_sock_wait_writable(struct dstref_sock *sk, int64_t timeout_ns);

/**
 * dstref_sock_wait_readable - sleep until data_ready was called
 * @sk: the caller has a reference
 * @token: from dstref_sock_data_token(), taken before the caller found his
 *         own queue empty
 * @timeout_ns: as in dstref_sock_wait_writable()
 *
 * The library has no receive queue: token, look at the queue, wait. A
 * data_ready after the token ends the wait, be it before the sleep or in it.
 *
 * Context: as dstref_sock_wait_writable().
 * Ordering: acquire, with the release of dstref_sock_data_ready().
 * Return: 0, -ETIMEDOUT, -ESHUTDOWN, -EDEADLK as there.
 */
DSTREF_NODISCARD DSTREF_EXPORT int
dstref_sock_wait_readable(struct dstref_sock *sk, uint32_t token,
			  int64_t timeout_ns);

/* dstref_sock_uncharge_w() outside any reader. */
DSTREF_EXPORT void dstref_sock_uncharge_w_outside(struct dstref_sock *sk,
						  uint32_t bytes);

DSTREF_END_DECLS

/* Debug builds: a sock is needed, and a reader of its namespace. */
static inline bool dstref_sock_debug(const struct dstref_sock *sk,
				     const char *call)
{
	if (!dstref_debug_arg(sk, call))
		return false;
#if DSTREF_DEBUG
	dstref_net_debug_reader(sk->net, sk, call);
#endif
	return true;
}

/**
 * dstref_sock_hold - take a reference
 * @sk: the caller has one already
 *
 * Context: inside a reader.
 * Ordering: none.
 */
static inline void dstref_sock_hold(struct dstref_sock *sk)
{
	if (!dstref_sock_debug(sk, "dstref_sock_hold"))
		return;
	uint32_t after = dstref_add_return_relaxed(&sk->count.word, 1u);

	if (dstref_unlikely((int32_t)after < 0))
		(void)dstref_sock_hold_slow(sk, after, "dstref_sock_hold");
}

/**
 * dstref_sock_hold_outside - take a reference, outside any reader
 * @sk: the caller has one already
 *
 * Context: any thread, registered or not.
 * Ordering: none.
 */
static inline void dstref_sock_hold_outside(struct dstref_sock *sk)
{
	if (!dstref_debug_arg(sk, "dstref_sock_hold_outside"))
		return;
	uint32_t after = dstref_add_return_relaxed(&sk->count.word, 1u);

	if (dstref_unlikely((int32_t)after < 0))
		(void)dstref_sock_hold_slow(sk, after,
					    "dstref_sock_hold_outside");
}

/**
 * dstref_sock_try_hold - take a reference unless the last is gone
 * @sk: found inside this reader
 *
 * Context: inside a reader.
 * Ordering: as dstref_count_get(); the lookup ordered the contents.
 * Return: true when the caller has a reference now.
 */
DSTREF_NODISCARD static inline bool dstref_sock_try_hold(struct dstref_sock *sk)
{
	if (!dstref_sock_debug(sk, "dstref_sock_try_hold"))
		return false;
	uint32_t after = dstref_add_return_relaxed(&sk->count.word, 1u);

	if (dstref_unlikely((int32_t)after < 0))
		return dstref_sock_hold_slow(sk, after, NULL);
	return true;
}

/**
 * dstref_sock_put - let go of a reference
 * @sk: the sock; NULL does nothing
 *
 * The last one runs proto->release and closes the accounts.
 *
 * Context: inside a reader. Never blocks.
 * Ordering: release (R1 of count.h and wmem.h): destroy sees what each holder
 *           and each completion wrote.
 */
static inline void dstref_sock_put(struct dstref_sock *sk)
{
	if (!sk)
		return;
	(void)dstref_sock_debug(sk, "dstref_sock_put");
	uint32_t after = dstref_dec_return_release(&sk->count.word);

	if (dstref_unlikely((int32_t)after < 0))
		dstref_sock_put_slow(sk, after, "dstref_sock_put");
}

/**
 * dstref_sock_refs - how many references there are
 * @sk: the sock
 *
 * Context: inside a reader, or with a reference or a packet.
 * Ordering: none.
 * Return: as dstref_count_read().
 */
DSTREF_NODISCARD static inline uint32_t
dstref_sock_refs(const struct dstref_sock *sk)
{
	if (!dstref_debug_arg(sk, "dstref_sock_refs"))
		return 0;
	return dstref_count_read(&sk->count);
}

/**
 * dstref_sock_writeable - may more be sent?
 * @sk: the sock
 *
 * Context: with a reference or a packet.
 * Ordering: none; advisory, several senders may all see true.
 * Return: true while fewer than sndbuf bytes are charged.
 */
DSTREF_NODISCARD static inline bool
dstref_sock_writeable(const struct dstref_sock *sk)
{
	if (!dstref_debug_arg(sk, "dstref_sock_writeable"))
		return false;
	return dstref_wmem_value_bytes(dstref_wmem_read(&sk->wmem)) <
	       (int64_t)dstref_load_relaxed(&sk->sndbuf);
}

/**
 * dstref_sock_charge_w_n - charge n packets to be sent
 * @sk: the caller has a reference or a packet's charge: a sock that was only
 *      found in this reader needs try_hold around the charge
 * @n: packets, as for dstref_wmem_charge_n()
 * @bytes: what they cost together, as for dstref_wmem_charge_n()
 *
 * Context: as dstref_wmem_charge_n().
 * Ordering: none.
 * Return: as dstref_wmem_charge_n().
 */
DSTREF_NODISCARD static inline bool
dstref_sock_charge_w_n(struct dstref_sock *sk, uint32_t n, uint32_t bytes)
{
	if (!dstref_debug_arg(sk, "dstref_sock_charge_w_n"))
		return false;
	return dstref_wmem_charge_n(&sk->wmem, n, bytes, NULL);
}

/**
 * dstref_sock_charge_w - charge a packet to be sent
 * @sk: as dstref_sock_charge_w_n()
 * @bytes: as dstref_wmem_charge_n()
 *
 * Context: as dstref_wmem_charge_n().
 * Ordering: none.
 * Return: as dstref_wmem_charge_n().
 */
DSTREF_NODISCARD static inline bool dstref_sock_charge_w(struct dstref_sock *sk,
							 uint32_t bytes)
{
	if (!dstref_debug_arg(sk, "dstref_sock_charge_w"))
		return false;
	return dstref_sock_charge_w_n(sk, 1, bytes);
}

/* dstref_sock_uncharge_w_n() on behalf of @call. */
static inline void dstref_sock_uncharge_w_by(struct dstref_sock *sk, uint32_t n,
					     uint32_t bytes, const char *call)
{
	if (!dstref_sock_debug(sk, call))
		return;
	if (dstref_unlikely(dstref_load_relaxed(&sk->space) != NULL)) {
		dstref_sock_uncharge_space(sk, n, bytes);
		return;
	}
	struct dstref_net *net = sk->net;
	uint32_t room = dstref_load_relaxed(&sk->sndbuf) / 2;
	uint64_t after;

	if (dstref_unlikely(
		    dstref_wmem_uncharge_n(&sk->wmem, n, bytes, &after)))
		dstref_sock_empty_w(sk);
	else if (dstref_unlikely(dstref_wmem_value_wakes(after, room)))
		dstref_sock_wake_room(net, &sk->wmem);
}

/**
 * dstref_sock_uncharge_w_n - n packets were sent
 * @sk: pinned by the charges, and by nothing else afterwards
 * @n: packets, as for dstref_wmem_uncharge_n()
 * @bytes: what they were charged together
 *
 * Wakes who waits for room, if half of sndbuf is free again: once for all n.
 * What is needed of the sock is read before the subtraction, nothing after it.
 *
 * Context: inside a reader (for the callback's sake). Never blocks.
 * Ordering: as dstref_wmem_uncharge_n().
 */
static inline void dstref_sock_uncharge_w_n(struct dstref_sock *sk, uint32_t n,
					    uint32_t bytes)
{
	dstref_sock_uncharge_w_by(sk, n, bytes, "dstref_sock_uncharge_w_n");
}

/**
 * dstref_sock_uncharge_w - a packet was sent
 * @sk: as dstref_sock_uncharge_w_n()
 * @bytes: what was charged
 *
 * Context: as dstref_sock_uncharge_w_n().
 * Ordering: as dstref_wmem_uncharge_n().
 */
static inline void dstref_sock_uncharge_w(struct dstref_sock *sk,
					  uint32_t bytes)
{
	dstref_sock_uncharge_w_by(sk, 1, bytes, "dstref_sock_uncharge_w");
}

/**
 * dstref_sock_recharge_w - a packet in flight changed its size
 * @sk: pinned by the packet's charge
 * @from: bytes that were charged
 * @to: bytes that its uncharge will name
 *
 * Context: as dstref_wmem_recharge().
 * Ordering: none.
 */
static inline void dstref_sock_recharge_w(struct dstref_sock *sk, uint32_t from,
					  uint32_t to)
{
	if (!dstref_debug_arg(sk, "dstref_sock_recharge_w"))
		return;
	uint64_t after = dstref_wmem_recharge(&sk->wmem, from, to);
	uint32_t room = dstref_load_relaxed(&sk->sndbuf) / 2;

	if (dstref_unlikely(dstref_wmem_value_wakes(after, room)))
		dstref_sock_wake_room(sk->net, &sk->wmem);
}

/**
 * dstref_sock_charge_r - charge a packet that was received
 * @sk: the caller has a reference or a packet's charge
 * @bytes: as dstref_wmem_charge()
 *
 * Context: as dstref_wmem_charge().
 * Ordering: none.
 * Return: as dstref_wmem_charge().
 */
DSTREF_NODISCARD static inline bool dstref_sock_charge_r(struct dstref_sock *sk,
							 uint32_t bytes)
{
	if (!dstref_debug_arg(sk, "dstref_sock_charge_r"))
		return false;
	return dstref_wmem_charge(&sk->rmem, bytes, NULL);
}

/**
 * dstref_sock_uncharge_r_n - n received packets were consumed
 * @sk: pinned by the charges, and by nothing else afterwards
 * @n: packets, as for dstref_wmem_uncharge_n()
 * @bytes: what they were charged together
 *
 * Context: any thread; needs no reader. Never blocks.
 * Ordering: as dstref_wmem_uncharge_n().
 */
static inline void dstref_sock_uncharge_r_n(struct dstref_sock *sk, uint32_t n,
					    uint32_t bytes)
{
	if (!dstref_debug_arg(sk, "dstref_sock_uncharge_r_n"))
		return;
	if (dstref_unlikely(dstref_wmem_uncharge_n(&sk->rmem, n, bytes, NULL)))
		dstref_sock_empty_r(sk);
}

/**
 * dstref_sock_uncharge_r - a received packet was consumed
 * @sk: as dstref_sock_uncharge_r_n()
 * @bytes: what was charged
 *
 * Context: as dstref_sock_uncharge_r_n().
 * Ordering: as dstref_wmem_uncharge_n().
 */
static inline void dstref_sock_uncharge_r(struct dstref_sock *sk,
					  uint32_t bytes)
{
	if (dstref_debug_arg(sk, "dstref_sock_uncharge_r"))
		dstref_sock_uncharge_r_n(sk, 1, bytes);
}

/**
 * dstref_sock_data_token - what to wait from
 * @sk: the caller has a reference
 *
 * Context: any thread.
 * Ordering: acquire, with the release of dstref_sock_data_ready().
 * Return: for dstref_sock_wait_readable().
 */
DSTREF_NODISCARD static inline uint32_t
dstref_sock_data_token(const struct dstref_sock *sk)
{
	if (!dstref_debug_arg(sk, "dstref_sock_data_token"))
		return 0;
	return dstref_load_acquire(&sk->events) & ~DSTREF_SOCK_EVENT_WAITER;
}

/**
 * dstref_sock_data_ready - wake who waits for data
 * @sk: the caller has a reference, or is in the reader that found it
 *
 * One atomic when nobody waits.
 *
 * Context: any thread. Takes a lock for a moment when somebody waits.
 * Ordering: release; who is woken sees what was queued before.
 */
static inline void dstref_sock_data_ready(struct dstref_sock *sk)
{
	if (!dstref_debug_arg(sk, "dstref_sock_data_ready"))
		return;
	if (dstref_unlikely(
		    dstref_fetch_add_release(&sk->events, DSTREF_SOCK_EVENT) &
		    DSTREF_SOCK_EVENT_WAITER))
		dstref_sock_wake_data(sk->net, &sk->events);
}

#endif
