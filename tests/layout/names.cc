/* SPDX-License-Identifier: MIT */
/*
 * names - a program's own names, after the umbrella header
 *
 * C++ keeps the atomics in std, and the library adds nothing beside its own
 * prefix: each of these is the program's to define, at global scope.
 */
#include <dstref/dstref.h>

enum user_names {
	atomic,
	atomic_bool,
	atomic_exchange,
	atomic_fetch_add,
	atomic_fetch_sub,
	atomic_flag,
	atomic_init,
	atomic_int,
	atomic_load,
	atomic_load_explicit,
	atomic_store,
	atomic_store_explicit,
	atomic_thread_fence,
	memory_order,
	memory_order_acq_rel,
	memory_order_acquire,
	memory_order_relaxed,
	memory_order_release,
	memory_order_seq_cst,
	aligned,
	begin,
	cold,
	config,
	count,
	dst,
	dst_hold,
	dst_release,
	end,
	entry,
	flavour,
	group,
	likely,
	line,
	net,
	net_entry,
	order,
	put,
	ref,
	report,
	rmem,
	skb,
	sk_free,
	slot,
	sock,
	sock_hold,
	sock_put,
	unlikely,
	wmem
};

int user_count(user_names name);

int user_count(user_names name)
{
	return name == count ? memory_order_relaxed : atomic_load;
}
