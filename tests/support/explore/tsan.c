/* SPDX-License-Identifier: MIT */
/*
 * tsan - the calls that -fsanitize=thread puts into the program
 *
 * The compiler's interface, gcc's and clang's. Each hook passes on to the part
 * that models it; outside a schedule, or when the runtime itself runs, it does
 * what the instruction would have done. The names are the compiler's.
 *
 * Atomics of 16 bytes are left out: a program that has one does not link.
 * __tsan_acquire() and __tsan_release(), with which the library tells the
 * sanitizer what it cannot see of RCU, do nothing: here RCU is seen (rcu.c),
 * and an order that only an annotation makes would hide a fault.
 */
#include "atomic.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static void plain(const void *address, size_t size, bool write, const void *pc)
{
	if (!enter()) {
		wait_look(address, size);
		return;
	}
	access_of(address, size, write, false, pc);
	leave();
}

void __tsan_init(void)
{
}

/* Deeper calls than are remembered are counted only. */
void __tsan_func_entry(const void *pc)
{
	struct thread *self = ex.self;

	if (!ex.watching)
		return;
	if (self->depth < CALLS) {
		self->calls[self->depth].pc = pc;
		self->calls[self->depth].sp = __builtin_frame_address(0);
	}
	self->depth++;
}

void __tsan_func_exit(void)
{
	struct thread *self = ex.self;

	if (!ex.watching || !self->depth)
		return;
	if (--self->depth >= CALLS ||
	    self->foreign <= self->calls[self->depth].sp)
		return;
	enter();
	race_frame_ends(self->calls[self->depth].sp, CALLER);
	leave();
}

#define PLAIN(name, size, write)                     \
	void __tsan_##name(void *address)            \
	{                                            \
		plain(address, size, write, CALLER); \
	}
#define PLAIN_BOTH(name, size)         \
	PLAIN(read##name, size, false) \
	PLAIN(write##name, size, true)

PLAIN_BOTH(1, 1)
PLAIN_BOTH(2, 2)
PLAIN_BOTH(4, 4)
PLAIN_BOTH(8, 8)
PLAIN_BOTH(16, 16)
PLAIN(unaligned_read2, 2, false)
PLAIN(unaligned_read4, 4, false)
PLAIN(unaligned_read8, 8, false)
PLAIN(unaligned_read16, 16, false)
PLAIN(unaligned_write2, 2, true)
PLAIN(unaligned_write4, 4, true)
PLAIN(unaligned_write8, 8, true)
PLAIN(unaligned_write16, 16, true)

void __tsan_read_range(void *address, unsigned long size)
{
	plain(address, size, false, CALLER);
}

void __tsan_write_range(void *address, unsigned long size)
{
	plain(address, size, true, CALLER);
}

void __tsan_vptr_update(void **address, void *value)
{
	(void)value;
	plain(address, sizeof(*address), true, CALLER);
}

void __tsan_vptr_read(void **address)
{
	plain(address, sizeof(*address), false, CALLER);
}

void __tsan_acquire(void *tag)
{
	(void)tag;
}

void __tsan_release(void *tag)
{
	(void)tag;
}

#define PLACE                                                               \
	{                                                                   \
		(void *)(uintptr_t)address, sizeof(*address), order, CALLER \
	}

#define MODIFY(bits, name, how, otherwise)                              \
	uint##bits##_t __tsan_atomic##bits##_##name(                    \
		volatile uint##bits##_t *address, uint##bits##_t value, \
		int order)                                              \
	{                                                               \
		const struct place at = PLACE;                          \
		uint##bits##_t old;                                     \
                                                                        \
		if (!enter()) {                                         \
			old = *address;                                 \
			*address = (uint##bits##_t)(otherwise);         \
			return old;                                     \
		}                                                       \
		old = (uint##bits##_t)atomic_modify(&at, how, value);   \
		leave();                                                \
		return old;                                             \
	}

#define SWAP(bits, name)                                                   \
	int __tsan_atomic##bits##_compare_exchange_##name(                 \
		volatile uint##bits##_t *address, uint##bits##_t *old,     \
		uint##bits##_t value, int order, int failed)               \
	{                                                                  \
		const struct place at = PLACE;                             \
		uint64_t found = *old;                                     \
                                                                           \
		if (!enter()) {                                            \
			found = *address;                                  \
			if (found == *old)                                 \
				*address = value;                          \
			bool same = found == *old;                         \
			*old = (uint##bits##_t)found;                      \
			return same;                                       \
		}                                                          \
		access_of(old, sizeof(*old), false, false, CALLER);        \
		bool done = atomic_swap(&at, &found, value, failed);       \
		if (!done) {                                               \
			access_of(old, sizeof(*old), true, false, CALLER); \
			*old = (uint##bits##_t)found;                      \
		}                                                          \
		leave();                                                   \
		return done;                                               \
	}

#define ATOMICS(bits)                                                      \
	uint##bits##_t __tsan_atomic##bits##_load(                         \
		const volatile uint##bits##_t *address, int order)         \
	{                                                                  \
		const struct place at = PLACE;                             \
                                                                           \
		if (!enter()) {                                            \
			wait_look(at.address, sizeof(*address));           \
			return *address;                                   \
		}                                                          \
		uint##bits##_t value = (uint##bits##_t)atomic_read(&at);   \
		leave();                                                   \
		return value;                                              \
	}                                                                  \
	void __tsan_atomic##bits##_store(volatile uint##bits##_t *address, \
					 uint##bits##_t value, int order)  \
	{                                                                  \
		const struct place at = PLACE;                             \
                                                                           \
		if (!enter()) {                                            \
			*address = value;                                  \
			return;                                            \
		}                                                          \
		atomic_write(&at, value);                                  \
		leave();                                                   \
	}                                                                  \
	uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(         \
		volatile uint##bits##_t *address, uint##bits##_t expected, \
		uint##bits##_t value, int order, int failed)               \
	{                                                                  \
		const struct place at = PLACE;                             \
		uint64_t found = expected;                                 \
                                                                           \
		if (!enter()) {                                            \
			found = *address;                                  \
			if (found == expected)                             \
				*address = value;                          \
			return (uint##bits##_t)found;                      \
		}                                                          \
		atomic_swap(&at, &found, value, failed);                   \
		leave();                                                   \
		return (uint##bits##_t)found;                              \
	}                                                                  \
	SWAP(bits, strong)                                                 \
	SWAP(bits, weak)                                                   \
	MODIFY(bits, exchange, MODIFY_XCHG, value)                         \
	MODIFY(bits, fetch_add, MODIFY_ADD, old + value)                   \
	MODIFY(bits, fetch_sub, MODIFY_SUB, old - value)                   \
	MODIFY(bits, fetch_and, MODIFY_AND, old &value)                    \
	MODIFY(bits, fetch_or, MODIFY_OR, old | value)                     \
	MODIFY(bits, fetch_xor, MODIFY_XOR, old ^ value)                   \
	MODIFY(bits, fetch_nand, MODIFY_NAND, ~(old & value))

ATOMICS(8)
ATOMICS(16)
ATOMICS(32)
ATOMICS(64)

void __tsan_atomic_thread_fence(int order)
{
	if (!enter())
		return;
	atomic_fence(order, CALLER);
	leave();
}

void __tsan_atomic_signal_fence(int order)
{
	(void)order;
}
