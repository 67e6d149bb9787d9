/* SPDX-License-Identifier: MIT */
/*
 * atomic - the atomics, whatever their width; see atomic.c
 */
#ifndef EXPLORE_ATOMIC_H
#define EXPLORE_ATOMIC_H

#include "state.h"

/* What is touched, with which memory order, and from where. */
struct place {
	void *address;
	unsigned int size;
	int order;
	const void *pc;
};

enum modify {
	MODIFY_XCHG,
	MODIFY_ADD,
	MODIFY_SUB,
	MODIFY_AND,
	MODIFY_OR,
	MODIFY_XOR,
	MODIFY_NAND,
};

uint64_t atomic_read(const struct place *at);
void atomic_write(const struct place *at, uint64_t value);
uint64_t atomic_modify(const struct place *at, enum modify how, uint64_t arg);

/* Compare-and-swap: @old is what was expected, then what was found. */
bool atomic_swap(const struct place *at, uint64_t *old, uint64_t new,
		 int failed);
void atomic_fence(int order, const void *pc);

#endif
