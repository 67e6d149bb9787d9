/* SPDX-License-Identifier: MIT */
/*
 * rcu - the library's only use of RCU: deferring through a flavour
 *
 * The public headers keep room for a callback head and include nothing of
 * liburcu; here the two meet. liburcu is not annotated for the thread
 * sanitizer: queueing releases and the callback acquires two tags. The head
 * tells it that what was done before the queueing is seen in the callback. The
 * flavour does the same for readers, when the program releases its address
 * before it leaves one, as tests/support/tsan.h does.
 */
#ifndef DSTREF_RCU_H
#define DSTREF_RCU_H

#include <dstref/net.h>

#include <urcu/call-rcu.h>
#include <urcu/flavor.h>

#if defined(__SANITIZE_THREAD__)
#define RCU_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RCU_TSAN 1
#endif
#endif

#ifdef RCU_TSAN
#include <sanitizer/tsan_interface.h>
#define rcu_tag_release(tag) __tsan_release((void *)(tag))
#define rcu_tag_acquire(tag) __tsan_acquire((void *)(tag))
#else
#define rcu_tag_release(tag) ((void)(tag))
#define rcu_tag_acquire(tag) ((void)(tag))
#endif

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr)-offsetof(type, member)))

DSTREF_STATIC_ASSERT(sizeof(struct rcu_head) <=
				     sizeof(struct dstref_rcu_head) &&
			     _Alignof(struct rcu_head) <=
				     _Alignof(struct dstref_rcu_head),
		     "liburcu's struct rcu_head has outgrown the room for it: "
		     "enlarge struct dstref_rcu_head");

/* Calls @fn with @head after a grace period. */
static inline void rcu_defer(const struct rcu_flavor_struct *flavour,
			     struct dstref_rcu_head *head,
			     void (*fn)(struct rcu_head *head))
{
	rcu_tag_release(head);
	flavour->update_call_rcu((struct rcu_head *)(void *)head, fn);
}

/* Waits until every reader that is inside has left. */
static inline void rcu_wait(const struct rcu_flavor_struct *flavour)
{
	flavour->update_synchronize_rcu();
	rcu_tag_acquire(flavour);
}

/* First in each callback: its own head, as rcu_defer() knew it. */
static inline struct dstref_rcu_head *rcu_deferred(struct rcu_head *head)
{
	rcu_tag_acquire(head);
	return (struct dstref_rcu_head *)(void *)head;
}

#endif
