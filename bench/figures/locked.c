/* SPDX-License-Identifier: MIT */
/*
 * How many locked instructions a packet costs, counted as the processor
 * executes them and not as a listing shows them: calls into the library
 * included, branches that are not taken left out.
 *
 * Method: a child stops itself at a breakpoint instruction before each step
 * and after it; its parent goes through what is between by single steps
 * (ptrace) and looks at the instruction that comes next. Locked is what
 * carries the LOCK prefix, and an exchange with memory, which locks without
 * one. The steps run once before, so that no lazy binding is counted.
 *
 * On x86-64 only; elsewhere status 77.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dstref/dstref.h>

#include <stdio.h>
#include <stdlib.h>

#if !defined(__x86_64__)

int main(void)
{
	fprintf(stderr, "locked: counts on x86-64 only\n");
	return 77;
}

#else

#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <urcu/urcu-memb.h>

#define MARK(on)                                               \
	do {                                                   \
		if (on)                                        \
			__asm__ volatile("int3" ::: "memory"); \
	} while (0)
#define BREAKPOINT 0xcc
#define TRUESIZE 2048

/* What the child does between two marks, in this order. */
static const char *const names[] = { "charge-locked", "uncharge-locked",
				     "uncharge-locked-space" };

#define STEPS (sizeof(names) / sizeof(names[0]))

static const struct dstref_sock_proto proto = {
	.name = "locked",
	.size = sizeof(struct dstref_sock),
};

static void heard_of_room(struct dstref_sock *sk, void *data)
{
	(void)sk;
	(void)data;
}

/* One pass over the steps, marked or not, in a reader as a packet path is. */
static void pass(struct dstref_sock *sk, struct dstref_sock *space, bool mark)
{
	struct dstref_skb skb;

	dstref_skb_init(&skb, TRUESIZE);
	MARK(mark);
	dstref_skb_set_owner_w(&skb, sk);
	MARK(mark);

	MARK(mark);
	dstref_skb_orphan(&skb);
	MARK(mark);

	dstref_skb_set_owner_w(&skb, space);
	MARK(mark);
	dstref_skb_orphan(&skb);
	MARK(mark);
}

static int child(void)
{
	static const struct dstref_sock_space hook = { heard_of_room, NULL };
	const struct dstref_net_attr attr = { .flavour = &urcu_memb_flavor };
	struct dstref_sock *sk, *space;
	struct dstref_net *net;

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) ||
	    dstref_net_create(&net, &attr) ||
	    dstref_sock_alloc(&sk, net, &proto) ||
	    dstref_sock_alloc(&space, net, &proto) ||
	    dstref_sock_set_write_space(space, &hook))
		return 1;
	urcu_memb_register_thread();
	urcu_memb_read_lock();
	pass(sk, space, false);
	pass(sk, space, true);
	urcu_memb_read_unlock();
	urcu_memb_unregister_thread();
	dstref_sock_put_outside(sk);
	dstref_sock_put_outside(space);
	return dstref_net_barrier(net, 1000000000) || dstref_net_destroy(net);
}

static bool is_prefix(unsigned char byte)
{
	return byte && strchr("\x26\x2e\x36\x3e\x64\x65\x66\x67\xf2\xf3", byte);
}

/* The instruction at @code: prefixes, perhaps a REX byte, opcode, operand. */
static bool is_locked(const unsigned char *code)
{
	for (; is_prefix(*code) || *code == 0xf0; code++)
		if (*code == 0xf0)
			return true;
	if ((*code & 0xf0) == 0x40)
		code++;
	return (code[0] == 0x86 || code[0] == 0x87) && code[1] < 0xc0;
}

/* The next 16 bytes that the child executes; false when it is gone. */
static bool next_code(pid_t pid, unsigned char code[16])
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &regs))
		return false;
	for (unsigned int i = 0; i < 16; i += sizeof(long)) {
		long word = ptrace(PTRACE_PEEKTEXT, pid,
				   (void *)(uintptr_t)(regs.rip + i), NULL);

		memcpy(code + i, &word, sizeof(word));
	}
	return true;
}

static bool stopped(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) &&
	       WSTOPSIG(status) == SIGTRAP;
}

/* From the mark that it stands at to the next: locked instructions, or -1. */
static int count(pid_t pid)
{
	unsigned char code[16];
	int locked = 0;

	for (;;) {
		if (!next_code(pid, code))
			return -1;
		if (code[0] == BREAKPOINT)
			return locked;
		locked += is_locked(code);
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) || !stopped(pid))
			return -1;
	}
}

static bool run_to_mark(pid_t pid)
{
	return !ptrace(PTRACE_CONT, pid, NULL, NULL) && stopped(pid);
}

static int count_all(pid_t pid)
{
	for (size_t i = 0; i < STEPS; i++) {
		/* The first mark is waited for, the others are run to. */
		bool at_mark = i ? run_to_mark(pid) : stopped(pid);
		int locked = at_mark ? count(pid) : -1;

		if (locked < 0 || !run_to_mark(pid)) {
			fprintf(stderr,
				"locked: %s: cannot trace a child; "
				"let this user use ptrace\n",
				names[i]);
			return -1;
		}
		printf("%s %d\n", names[i], locked);
	}
	return 0;
}

int main(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(child());
	if (pid < 0 || count_all(pid)) {
		if (pid > 0)
			kill(pid, SIGKILL);
		return 2;
	}
	if (ptrace(PTRACE_CONT, pid, NULL, NULL) ||
	    waitpid(pid, &status, 0) != pid || status) {
		fprintf(stderr, "locked: the child did not end in order\n");
		return 1;
	}
	return 0;
}

#endif
