/* SPDX-License-Identifier: MIT */
/*
 * threads - coroutines, and the state that each schedule starts from
 *
 * A thread of the case is a coroutine: made once by makecontext(), started and
 * left by _setjmp() and _longjmp(), which call no system. Its frame at the
 * bottom never returns, so a jump there starts it afresh wherever it was left;
 * that is how a schedule is given up in the middle.
 *
 * Two parts of the program's memory are not shared by nature and must be kept:
 * its writable data is saved once and put back before each schedule; its
 * thread-local data is swapped whenever another thread goes on. Both are found
 * in the program headers. The runtime's own state lies in the same data and is
 * left out.
 */
#include "state.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static struct {
	char *from, *to; /* writable data */
	char *copy;
	char *tls; /* of this thread */
	const char *tls_first; /* what it starts with */
	size_t tls_size, tls_given;
	char *stacks;
	ucontext_t creator;
} * own;

/* At @hint if that is free: what the program can see of an address should be
 * the same in every run. */
void *ex_map_at(uintptr_t hint, size_t size)
{
	void *map = mmap((void *)hint, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED) {
		static const char text[] = "explore: out of memory\n";

		(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
		_exit(2);
	}
	return map;
}

void *ex_map(size_t size)
{
	return ex_map_at(0, size);
}

/* The program comes first; what is read-only after the start is left out. */
static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
	char *base = (char *)info->dlpi_addr;

	(void)size;
	(void)arg;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		char *start = base + header->p_vaddr;

		if (header->p_type == PT_LOAD && header->p_flags & PF_W) {
			own->from = start;
			own->to = start + header->p_memsz;
		} else if (header->p_type == PT_TLS) {
			own->tls = info->dlpi_tls_data;
			own->tls_first = start;
			own->tls_given = header->p_filesz;
			own->tls_size = header->p_memsz;
		}
	}
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		char *end = base + header->p_vaddr + header->p_memsz;

		if (header->p_type == PT_GNU_RELRO && end > own->from &&
		    end <= own->to)
			own->from = end;
	}
	return 1;
}

/* Copies the data but for the runtime's own. */
static void image_copy(bool save)
{
	char *skip = (char *)&ex, *after = (char *)(&ex + 1);
	char *const from[2] = { own->from, after };
	char *const to[2] = { skip, own->to };

	for (int i = 0; i < 2; i++) {
		char *kept = own->copy + (from[i] - own->from);
		size_t size = (size_t)(to[i] - from[i]);

		memcpy(save ? kept : from[i], save ? from[i] : kept, size);
	}
}

void image_save(void)
{
	own->copy = ex_map((size_t)(own->to - own->from));
	image_copy(true);
}

void image_restore(void)
{
	image_copy(false);
}

bool image_has(const void *address)
{
	const char *at = address;

	return at >= own->from && at < own->to;
}

bool thread_on_stack(const void *address, unsigned int *id)
{
	size_t at = (size_t)((const char *)address - own->stacks);

	*id = (unsigned int)(at / STACK_SIZE);
	return at < THREADS * STACK_SIZE;
}

const char *thread_stack_end(unsigned int id)
{
	return own->stacks + (id + 1) * STACK_SIZE;
}

static void tls_swap(struct thread *from, struct thread *to)
{
	memcpy(from->tls, own->tls, own->tls_size);
	memcpy(own->tls, to->tls, own->tls_size);
}

/* The bottom of each coroutine. */
static void run(void)
{
	struct thread *self = ex.self;

	if (!_setjmp(self->base))
		setcontext(&own->creator);
	leave();
	ex.self->fn();
	enter();
	keys_end();
	thread_end();
}

static void create(struct thread *thread, unsigned int id)
{
	ucontext_t context;

	thread->id = id;
	thread->stack = own->stacks + id * STACK_SIZE;
	/* So that an overflow is a fault, and not in the neighbour's. */
	mprotect(thread->stack, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE);
	if (own->tls_size)
		thread->tls = ex_map(own->tls_size);
	getcontext(&context);
	context.uc_stack.ss_sp = thread->stack;
	context.uc_stack.ss_size = STACK_SIZE;
	context.uc_link = NULL;
	makecontext(&context, run, 0);
	ex.self = thread;
	swapcontext(&own->creator, &context);
}

void threads_create(void)
{
	/* The pointer itself is data of the program: before image_save(). */
	own = ex_map(sizeof(*own));
	dl_iterate_phdr(look, NULL);
	own->stacks = ex_map_at(STACKS_AT, THREADS * STACK_SIZE);
	for (unsigned int id = 0; id < THREADS; id++)
		create(&ex.threads[id], id);
}

void threads_reset(void)
{
	for (unsigned int id = 0; id < THREADS; id++) {
		struct thread *thread = &ex.threads[id];

		memset((char *)thread + offsetof(struct thread, fn), 0,
		       sizeof(*thread) - offsetof(struct thread, fn));
		thread->id = id;
		if (!own->tls_size)
			continue;
		memcpy(thread->tls, own->tls_first, own->tls_given);
		memset(thread->tls + own->tls_given, 0,
		       own->tls_size - own->tls_given);
	}
	ex.self = &ex.threads[MAIN];
	if (own->tls_size)
		memcpy(own->tls, ex.self->tls, own->tls_size);
}

void thread_start(unsigned int id, void (*fn)(void))
{
	struct thread *thread = &ex.threads[id];

	thread->fn = fn;
	thread->live = true;
}

void thread_switch(unsigned int id)
{
	struct thread *from = ex.self, *to = &ex.threads[id];

	if (_setjmp(from->at))
		return;
	from->sp = __builtin_frame_address(0);
	if (own->tls_size)
		tls_swap(from, to);
	ex.self = to;
	if (to->started)
		_longjmp(to->at, 1);
	to->started = true;
	_longjmp(to->base, 1);
}

/* From the host to the first thread. */
void threads_run(void)
{
	ex.self->started = true;
	_longjmp(ex.self->base, 1);
}
