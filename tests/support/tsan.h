/* SPDX-License-Identifier: MIT */
/*
 * tsan - what the thread sanitizer has to be told about RCU
 *
 * liburcu is not annotated: the sanitizer does not see that a callback runs
 * after every reader that was inside when it was queued. The library tells it
 * one half: it releases the address of the flavour before it queues a
 * callback, and acquires it at the head of each. A test tells the other half
 * by leaving its readers through these calls. The tag is the address of the
 * flavour's struct. Without the sanitizer they are the flavour's own calls.
 *
 * The tag is coarser than a grace period: every callback of a flavour is
 * ordered after every reader that left before. A use after the reader's end
 * is still caught, which is what the tests are about.
 *
 * The annotations are no-ops in other builds, and TESTS_TSAN is 0: stress
 * tests do fewer rounds where it is 1.
 */
#ifndef TESTS_TSAN_H
#define TESTS_TSAN_H

/*
 * Only the struct; a unit's own flavour header may come before or after. That
 * header declares its flavour only when it comes first, hence the four below.
 */
#include <urcu/flavor.h>

#if defined(__SANITIZE_THREAD__)
#define TESTS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TESTS_TSAN 1
#endif
#endif
#ifndef TESTS_TSAN
#define TESTS_TSAN 0
#endif

#if TESTS_TSAN
#include <sanitizer/tsan_interface.h>
#endif

extern const struct rcu_flavor_struct urcu_memb_flavor;
extern const struct rcu_flavor_struct urcu_qsbr_flavor;
extern const struct rcu_flavor_struct urcu_bp_flavor;
extern const struct rcu_flavor_struct urcu_mb_flavor;

/* What happened so far happened before the flavour's later callbacks. */
static inline void tsan_release(const struct rcu_flavor_struct *flavour)
{
#if TESTS_TSAN
	__tsan_release((void *)flavour);
#else
	(void)flavour;
#endif
}

static inline void tsan_acquire(const struct rcu_flavor_struct *flavour)
{
#if TESTS_TSAN
	__tsan_acquire((void *)flavour);
#else
	(void)flavour;
#endif
}

static inline void reader_lock(const struct rcu_flavor_struct *flavour)
{
	flavour->read_lock();
}

static inline void reader_unlock(const struct rcu_flavor_struct *flavour)
{
	tsan_release(flavour);
	flavour->read_unlock();
}

/* QSBR: this thread refers to nothing that it found before. */
static inline void reader_quiescent(const struct rcu_flavor_struct *flavour)
{
	tsan_release(flavour);
	flavour->read_quiescent_state();
}

static inline void reader_offline(const struct rcu_flavor_struct *flavour)
{
	tsan_release(flavour);
	flavour->thread_offline();
}

static inline void reader_online(const struct rcu_flavor_struct *flavour)
{
	flavour->thread_online();
}

static inline void reader_register(const struct rcu_flavor_struct *flavour)
{
	flavour->register_thread();
}

static inline void reader_unregister(const struct rcu_flavor_struct *flavour)
{
	tsan_release(flavour);
	flavour->unregister_thread();
}

/* Wait for a grace period, and have the sanitizer know it. */
static inline void reader_synchronize(const struct rcu_flavor_struct *flavour)
{
	flavour->update_synchronize_rcu();
	tsan_acquire(flavour);
}

#endif
