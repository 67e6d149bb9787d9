/* SPDX-License-Identifier: MIT */
/**
 * DOC: atomic - atomic operations with their order in the name
 *
 * C11 <stdatomic.h> in C, std::atomic in C++; the two have the same size and
 * alignment with gcc and clang, and the layout asserts of every struct that
 * holds one would fail if they had not. Nothing outside this file calls an
 * atomic without naming its order, and nothing is sequentially consistent: no
 * protocol of the library needs a total order over two words (each says at
 * its head why).
 *
 * All are macros, so that they take any width and any pointer type. @p is
 * evaluated once. The read-modify-writes return the new value where the name
 * says "return" and the old one where it says "fetch".
 */
#ifndef DSTREF_ATOMIC_H
#define DSTREF_ATOMIC_H

#include <dstref/config.h>

#ifdef __cplusplus

/* A template may not have C linkage: hold against a user's extern "C". */
extern "C++" {
#include <atomic>
#include <cstdint>
}

#define DSTREF_ATOMIC(type) ::std::atomic<type>
#define DSTREF_ORDER(order) ::std::memory_order_##order
#define dstref_init_plain(p, v) ((p)->store((v), ::std::memory_order_relaxed))
#define dstref_load_(p, o) ((p)->load(DSTREF_ORDER(o)))
#define dstref_store_(p, v, o) ((p)->store((v), DSTREF_ORDER(o)))
#define dstref_xchg_(p, v, o) ((p)->exchange((v), DSTREF_ORDER(o)))
#define dstref_fetch_add_(p, v, o) ((p)->fetch_add((v), DSTREF_ORDER(o)))
#define dstref_fetch_sub_(p, v, o) ((p)->fetch_sub((v), DSTREF_ORDER(o)))
#define dstref_fetch_or_(p, v, o) ((p)->fetch_or((v), DSTREF_ORDER(o)))
#define dstref_fetch_and_(p, v, o) ((p)->fetch_and((v), DSTREF_ORDER(o)))
#define dstref_cas_(p, old, v, o, f)                                \
	((p)->compare_exchange_strong(*(old), (v), DSTREF_ORDER(o), \
				      DSTREF_ORDER(f)))

#else

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define DSTREF_ATOMIC(type) _Atomic(type)
#define DSTREF_ORDER(order) memory_order_##order
/* Before publication: the object is the caller's alone, no order is due. */
#define dstref_init_plain(p, v) \
	atomic_store_explicit((p), (v), memory_order_relaxed)
#define dstref_load_(p, o) atomic_load_explicit((p), DSTREF_ORDER(o))
#define dstref_store_(p, v, o) atomic_store_explicit((p), (v), DSTREF_ORDER(o))
#define dstref_xchg_(p, v, o) \
	atomic_exchange_explicit((p), (v), DSTREF_ORDER(o))
#define dstref_fetch_add_(p, v, o) \
	atomic_fetch_add_explicit((p), (v), DSTREF_ORDER(o))
#define dstref_fetch_sub_(p, v, o) \
	atomic_fetch_sub_explicit((p), (v), DSTREF_ORDER(o))
#define dstref_fetch_or_(p, v, o) \
	atomic_fetch_or_explicit((p), (v), DSTREF_ORDER(o))
#define dstref_fetch_and_(p, v, o) \
	atomic_fetch_and_explicit((p), (v), DSTREF_ORDER(o))
#define dstref_cas_(p, old, v, o, f)             \
	atomic_compare_exchange_strong_explicit( \
		(p), (old), (v), DSTREF_ORDER(o), DSTREF_ORDER(f))

#endif

/* Loads and stores. */
#define dstref_load_relaxed(p) dstref_load_(p, relaxed)
#define dstref_load_acquire(p) dstref_load_(p, acquire)
#define dstref_store_relaxed(p, v) dstref_store_(p, v, relaxed)
#define dstref_store_release(p, v) dstref_store_(p, v, release)

/* Exchange: the old value. */
#define dstref_xchg_relaxed(p, v) dstref_xchg_(p, v, relaxed)
#define dstref_xchg_acquire(p, v) dstref_xchg_(p, v, acquire)
#define dstref_xchg_acq_rel(p, v) dstref_xchg_(p, v, acq_rel)

/* Add and subtract: the old value, or the new one. */
#define dstref_fetch_add_relaxed(p, v) dstref_fetch_add_(p, v, relaxed)
#define dstref_fetch_add_release(p, v) dstref_fetch_add_(p, v, release)
#define dstref_fetch_add_acq_rel(p, v) dstref_fetch_add_(p, v, acq_rel)
#define dstref_fetch_sub_relaxed(p, v) dstref_fetch_sub_(p, v, relaxed)
#define dstref_fetch_sub_release(p, v) dstref_fetch_sub_(p, v, release)
#define dstref_add_return_relaxed(p, v) (dstref_fetch_add_(p, v, relaxed) + (v))
#define dstref_sub_return_release(p, v) (dstref_fetch_sub_(p, v, release) - (v))

/*
 * Decrement and look at the result (S0, 2008): one transaction on the line,
 * in exclusive state, where read-then-decrement needs two.
 */
#define dstref_dec_return_release(p) dstref_sub_return_release(p, 1u)

/* Bits: the old value. */
#define dstref_fetch_or_relaxed(p, v) dstref_fetch_or_(p, v, relaxed)
#define dstref_fetch_or_acquire(p, v) dstref_fetch_or_(p, v, acquire)
#define dstref_fetch_or_acq_rel(p, v) dstref_fetch_or_(p, v, acq_rel)
#define dstref_fetch_and_relaxed(p, v) dstref_fetch_and_(p, v, relaxed)

/* Compare-and-swap: true on success; else *old is what was found, relaxed. */
#define dstref_cas_relaxed(p, old, v) dstref_cas_(p, old, v, relaxed, relaxed)
#define dstref_cas_acquire(p, old, v) dstref_cas_(p, old, v, acquire, relaxed)
#define dstref_cas_acq_rel(p, old, v) dstref_cas_(p, old, v, acq_rel, relaxed)

#endif
