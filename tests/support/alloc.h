/* SPDX-License-Identifier: MIT */
/*
 * alloc - memory hooks that a test can question
 *
 * The hooks of struct dstref_net_mem, with a ledger: what is alive, whether
 * each block came back whole and with its own size, and a way to refuse the
 * n-th request. A block is exactly as aligned as was asked, never more, is
 * full of 0xA5 when it is handed out (C12), and of 0x5A when it comes back.
 */
#ifndef TESTS_ALLOC_H
#define TESTS_ALLOC_H

#include <dstref/net.h>

#include <pthread.h>

/*
 * Blocks that came back are kept for a while and watched, unless the address
 * sanitizer does that better.
 */
#if defined(__SANITIZE_ADDRESS__)
#define ALLOC_KEEPS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ALLOC_KEEPS 0
#endif
#endif
#ifndef ALLOC_KEEPS
#define ALLOC_KEEPS 1
#endif

#define ALLOC_KEPT 64 /* of them */
#define ALLOC_FRESH 0xA5
#define ALLOC_STALE 0x5A

struct alloc_block;

struct alloc {
	pthread_mutex_t lock;
	uint64_t calls; /* requests, the refused ones too */
	uint64_t refuse; /* the request to refuse; 0: none */
	uint64_t refused;
	size_t blocks, bytes; /* alive */
	unsigned int faults; /* each was printed on stderr */
	struct alloc_block *kept[ALLOC_KEPT];
	unsigned int next;
};

void alloc_init(struct alloc *alloc);

/* The hooks, for struct dstref_net_attr. */
struct dstref_net_mem alloc_mem(struct alloc *alloc);

/* Refuse the @nth request from now, 1 is the next; 0 refuses none. */
void alloc_refuse(struct alloc *alloc, uint64_t nth);

/*
 * Looks at the watched blocks, and gives back what is not alive. Returns the
 * blocks alive plus the faults: 0 when all is well.
 */
size_t alloc_fini(struct alloc *alloc);

#endif
