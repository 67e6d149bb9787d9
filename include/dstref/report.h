/* SPDX-License-Identifier: MIT */
/**
 * DOC: report - misuse is told, never undefined
 *
 * Whatever a caller does wrong and the library can see has a kind: a stable
 * name, a counter, a likely cause. The object is left in a state that is
 * safe (pinned, leaked), the counter goes up, and the hook is called, limited
 * in rate. The same in release builds. Nothing aborts unless the user
 * installs dstref_report_abort().
 *
 * Concurrency: every call may run beside every other, from any thread.
 */
#ifndef DSTREF_REPORT_H
#define DSTREF_REPORT_H

#include <dstref/config.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The kinds: X(NAME, "stable-name", "likely cause and what to do"). The enum,
 * the names, the causes and the manual's table are made from this one list.
 * New kinds go to the end: the numbers are part of the ABI.
 */
#define DSTREF_REPORT_KINDS(X)                                                \
	X(COUNT_SATURATED, "count-saturated",                                 \
	  "a count passed its limit of 2^31 references and is pinned: the "   \
	  "object leaks; look for a get without its put")                     \
	X(COUNT_UNDERFLOW, "count-underflow",                                 \
	  "a reference was put that nobody held: a put too many, or memory "  \
	  "that was freed and is used")                                       \
	X(COUNT_RANGE, "count-range",                                         \
	  "get_n or put_n of more than 65535 at once: nothing was done; "     \
	  "split the burst")                                                  \
	X(COUNT_CROWDED, "count-crowded",                                     \
	  "a pinned count drifted half its zone: thousands of threads are "   \
	  "between an operation and its correction; the limit is 8191")       \
	X(WMEM_SATURATED, "wmem-saturated",                                   \
	  "an account passed its limit of units or bytes, or its bytes fell " \
	  "below zero: it is pinned and its owner leaks; charge and "         \
	  "uncharge disagree")                                                \
	X(WMEM_UNDERFLOW, "wmem-underflow",                                   \
	  "an account was uncharged or closed once too often, after its "     \
	  "owner was let go")                                                 \
	X(WMEM_DEAD, "wmem-dead",                                             \
	  "a charge to an account that was closed and empty: the caller "     \
	  "holds no reference to the sock")                                   \
	X(WMEM_RESIDUE, "wmem-residue",                                       \
	  "the last unit of an account left bytes behind: a packet was "      \
	  "uncharged with another number of bytes than it was charged")       \
	X(WMEM_RANGE, "wmem-range",                                           \
	  "a charge of 64 MiB or more at once was cut to the limit, or one "  \
	  "of more than 64 packets was refused")                              \
	X(NULL_ARGUMENT, "null-argument",                                     \
	  "an argument that must not be NULL was (debug builds)")             \
	X(READER_MISSING, "reader-missing",                                   \
	  "a call that belongs inside an RCU reader was made outside, or "    \
	  "from a thread that is not registered (debug builds): use the "     \
	  "_outside form")                                                    \
	X(READER_BLOCKS, "reader-blocks",                                     \
	  "a call that may wait was made inside an RCU reader: it was "       \
	  "refused, or the grace period would never end")                     \
	X(DST_HOLD_DEAD, "dst-hold-dead",                                     \
	  "hold of a dst whose last reference is gone: who holds must own "   \
	  "a reference already; from a lookup use try_hold")                  \
	X(SOCK_HOLD_DEAD, "sock-hold-dead",                                   \
	  "hold of a sock whose last reference is gone: from a lookup use "   \
	  "try_hold")                                                         \
	X(NET_BUSY, "net-busy",                                               \
	  "net_destroy found entries or callbacks left: each entry follows "  \
	  "as net-leak")                                                      \
	X(NET_LEAK, "net-leak",                                               \
	  "an entry that is still alive when its namespace is to go: a "      \
	  "reference or a packet was not let go")                             \
	X(NET_TICK, "net-tick",                                               \
	  "net_tick ran on two threads at once, or with a time before the "   \
	  "last one: nothing was done")                                       \
	X(ABI_MISMATCH, "abi-mismatch",                                       \
	  "the program was built with another line size or other headers "    \
	  "than the library: build it with the flags of dstref.pc")           \
	X(NET_MEMORY, "net-memory",                                           \
	  "the alloc hook returned memory off its alignment: it was given "   \
	  "back, as if there were none")

enum dstref_report_kind {
#define DSTREF_REPORT_ENUM(name, text, cause) DSTREF_REPORT_##name,
	DSTREF_REPORT_KINDS(DSTREF_REPORT_ENUM)
#undef DSTREF_REPORT_ENUM
		DSTREF_REPORT_KIND_COUNT,
	DSTREF_REPORT_KIND_WIDE = 0x7fffffff /* 4 bytes with -fshort-enums */
};

DSTREF_STATIC_ASSERT(sizeof(enum dstref_report_kind) == 4,
		     "enum dstref_report_kind must be 4 bytes: it stands in "
		     "struct dstref_report");

/* One misuse, as the hook sees it. Valid during the hook only. */
struct dstref_report {
	enum dstref_report_kind kind;
	const char *call; /* the public call that found it */
	const void *object; /* the object, or NULL */
	/* What was found; its meaning is the kind's. So aligned on i386 too. */
	DSTREF_ALIGNED(8) uint64_t value;
	uint64_t seen; /* reports of this kind so far, this one included */
	const char *text; /* more in words, or NULL */
};

typedef void (*dstref_report_fn)(const struct dstref_report *report, void *ctx);

/* A hook: function and argument travel as one pointer. */
struct dstref_report_hook {
	dstref_report_fn fn;
	void *ctx;
};

DSTREF_BEGIN_DECLS

/**
 * dstref_report_set_hook - choose who is told of misuse
 * @hook: to be kept until the program ends, for a thread may be about to call
 *        the old one; NULL brings back the default, a line on stderr
 *
 * Context: any thread. The hook itself runs in the thread and the context of
 *          the misuse, perhaps inside a reader: it must not block or call
 *          the library.
 * Ordering: release; the hook's fields are seen by whoever calls it.
 * Return: the hook before, NULL for the default.
 */
DSTREF_EXPORT const struct dstref_report_hook *
dstref_report_set_hook(const struct dstref_report_hook *hook);

/**
 * dstref_report_set_limit - how many reports of a kind reach the hook unthinned
 * @first: so many of each kind are delivered; after them only those whose
 *         number is a power of two. 8 at start; UINT64_MAX delivers all
 *
 * The counters count every one. net-busy and net-leak are not thinned.
 *
 * Context: any thread.
 * Ordering: none.
 */
DSTREF_EXPORT void dstref_report_set_limit(uint64_t first);

/**
 * dstref_report_count - how often a kind was reported
 * @kind: one of enum dstref_report_kind
 *
 * Context: any thread.
 * Ordering: none; exact for what happened before.
 * Return: times since the program began, or since the last reset; 0 for a
 *         kind that does not exist.
 */
DSTREF_EXPORT uint64_t dstref_report_count(enum dstref_report_kind kind);

/**
 * dstref_report_total - how often anything was reported
 *
 * Context: any thread.
 * Ordering: none.
 * Return: the sum of dstref_report_count() over all kinds.
 */
DSTREF_EXPORT uint64_t dstref_report_total(void);

/**
 * dstref_report_reset - set all counters to zero
 *
 * Context: any thread; reports made meanwhile are counted before or after.
 * Ordering: none.
 */
DSTREF_EXPORT void dstref_report_reset(void);

/**
 * dstref_report_name - the stable name of a kind, "count-underflow"
 * @kind: one of enum dstref_report_kind
 *
 * Context: any thread.
 * Ordering: none.
 * Return: a static string; NULL for a kind that does not exist.
 */
DSTREF_EXPORT const char *dstref_report_name(enum dstref_report_kind kind);

/**
 * dstref_report_cause - the likely cause of a kind and what to do
 * @kind: one of enum dstref_report_kind
 *
 * Context: any thread.
 * Ordering: none.
 * Return: a static string; NULL for a kind that does not exist.
 */
DSTREF_EXPORT const char *dstref_report_cause(enum dstref_report_kind kind);

/**
 * dstref_report_stderr - a hook that prints one line on stderr; the default
 * @report: what happened
 * @ctx: not used
 *
 * Context: any thread.
 * Ordering: none.
 */
DSTREF_EXPORT void dstref_report_stderr(const struct dstref_report *report,
					void *ctx);

/**
 * dstref_report_abort - a hook that prints the line and calls abort()
 * @report: what happened
 * @ctx: not used
 *
 * For those who prefer a core at the first misuse.
 *
 * Context: any thread.
 * Ordering: none.
 */
DSTREF_EXPORT void dstref_report_abort(const struct dstref_report *report,
				       void *ctx);

/**
 * dstref_report_raise - report a misuse
 * @kind: what
 * @call: the name of the public call
 * @object: where, or NULL
 * @value: what was found
 * @text: more in words, or NULL
 *
 * What the library calls itself, and a stack may call for its own misuse of
 * the same kinds.
 *
 * Context: any thread.
 * Ordering: none.
 */
DSTREF_EXPORT DSTREF_COLD void
dstref_report_raise(enum dstref_report_kind kind, const char *call,
		    const void *object, uint64_t value, const char *text);

DSTREF_END_DECLS

/*
 * True when a pointer may be used. In debug builds a NULL is reported under
 * the name of the call, which then does nothing; in others this is constant
 * and costs nothing.
 */
static inline bool dstref_debug_arg(const void *arg, const char *call)
{
#if DSTREF_DEBUG
	if (dstref_unlikely(!arg)) {
		dstref_report_raise(DSTREF_REPORT_NULL_ARGUMENT, call, NULL, 0,
				    NULL);
		return false;
	}
#else
	(void)arg;
	(void)call;
#endif
	return true;
}

#endif
