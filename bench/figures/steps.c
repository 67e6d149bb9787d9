/* SPDX-License-Identifier: MIT */
/*
 * What a packet costs in instructions, and in locked ones, counted as the
 * processor executes them and not as a listing shows them: calls into the
 * library included, branches that are not taken left out.
 *
 * Method: a child stops itself at a breakpoint instruction before each step
 * and after it; its parent goes through what is between by single steps
 * (ptrace) and looks at the instruction that comes next. Locked is what
 * carries the LOCK prefix, and an exchange with memory, which locks without
 * one. The steps run once before, so that no lazy binding is counted.
 *
 * The routes are three: one that may never be split, one that may be and is
 * not, and one that is. That the pointer is not NULL is known, as it is to a
 * caller that has used the route.
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
	fprintf(stderr, "steps: counts on x86-64 only\n");
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

#define MARK() __asm__ volatile("int3" ::: "memory")
#define BREAKPOINT 0xcc
#define TRUESIZE 2048

/* What the child does between two marks, in this order. */
static const struct step {
	const char *name;
	bool all; /* instructions, not only the locked ones */
} steps[] = {
	{ "hold-insns", true },
	{ "release-insns", true },
	{ "hold-insns-look", true },
	{ "release-insns-look", true },
	{ "hold-insns-split", true },
	{ "release-insns-split", true },
	{ "charge-locked", false },
	{ "uncharge-locked", false },
	{ "uncharge-locked-space", false },
};

#define STEPS (sizeof(steps) / sizeof(steps[0]))

static const struct dstref_sock_proto proto = {
	.name = "steps",
	.size = sizeof(struct dstref_sock),
};

static void heard_of_room(struct dstref_sock *sk, void *data)
{
	(void)sk;
	(void)data;
}

static void gone(struct dstref_dst *dst)
{
	(void)dst;
}

static const struct dstref_dst_ops ops = { .name = "steps", .destroy = gone };

struct objects {
	struct dstref_net *net;
	struct dstref_dst dst[3]; /* never, looked at, split */
	struct dstref_sock *sk, *space;
};

static inline void hold_and_release(struct dstref_dst *dst)
{
	if (!dst)
		__builtin_unreachable();
	MARK();
	dstref_dst_hold(dst);
	MARK();

	MARK();
	dstref_dst_release(dst);
	MARK();
}

/* One pass over the steps, in a reader as a packet path is. */
static void pass(struct objects *o)
{
	struct dstref_skb skb;

	for (int i = 0; i < 3; i++)
		hold_and_release(&o->dst[i]);
	dstref_skb_init(&skb, TRUESIZE);
	MARK();
	dstref_skb_set_owner_w(&skb, o->sk);
	MARK();

	MARK();
	dstref_skb_orphan(&skb);
	MARK();

	dstref_skb_set_owner_w(&skb, o->space);
	MARK();
	dstref_skb_orphan(&skb);
	MARK();
}

static int objects_open(struct objects *o)
{
	static const struct dstref_sock_space hook = { heard_of_room, NULL };
	static const uint32_t flags[] = { DSTREF_DST_SPLIT_NEVER, 0,
					  DSTREF_DST_SPLIT_ALWAYS };
	const struct dstref_net_attr attr = { .flavour = &urcu_memb_flavor };

	if (dstref_net_create(&o->net, &attr) || dstref_net_attach(o->net))
		return -1;
	for (int i = 0; i < 3; i++)
		if (dstref_dst_init(&o->dst[i], o->net, &ops, NULL, flags[i]))
			return -1;
	return dstref_net_tick(o->net, 1, 1) != 1 || /* splits the last */
	       dstref_sock_alloc(&o->sk, o->net, &proto) ||
	       dstref_sock_alloc(&o->space, o->net, &proto) ||
	       dstref_sock_set_write_space(o->space, &hook);
}

static int objects_close(struct objects *o)
{
	for (int i = 0; i < 3; i++)
		dstref_dst_release_outside(&o->dst[i]);
	dstref_sock_put_outside(o->sk);
	dstref_sock_put_outside(o->space);
	dstref_net_detach(o->net);
	return dstref_net_barrier(o->net, -1) || dstref_net_destroy(o->net);
}

static int child(void)
{
	static struct objects objects;

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) || objects_open(&objects))
		return 1;
	urcu_memb_register_thread();
	urcu_memb_read_lock();
	pass(&objects); /* the parent lets it run */
	pass(&objects);
	urcu_memb_read_unlock();
	urcu_memb_unregister_thread();
	return objects_close(&objects);
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

/* From the mark that it stands at to the next: instructions, or -1. */
static int count(pid_t pid, bool all)
{
	unsigned char code[16];
	int counted = 0;

	for (;;) {
		if (!next_code(pid, code))
			return -1;
		if (code[0] == BREAKPOINT)
			return counted;
		counted += all || is_locked(code);
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) || !stopped(pid))
			return -1;
	}
}

static bool run_to_mark(pid_t pid)
{
	return !ptrace(PTRACE_CONT, pid, NULL, NULL) && stopped(pid);
}

/* Two marks a step, and a whole pass that only warms. */
static int count_all(pid_t pid)
{
	bool at_mark = stopped(pid);

	for (size_t i = 0; i < 2 * STEPS; i++)
		at_mark = at_mark && run_to_mark(pid);
	for (size_t i = 0; i < STEPS; i++) {
		int counted = at_mark ? count(pid, steps[i].all) : -1;

		if (counted < 0 || !run_to_mark(pid)) {
			fprintf(stderr,
				"steps: %s: cannot trace a child; "
				"let this user use ptrace\n",
				steps[i].name);
			return -1;
		}
		printf("%s %d\n", steps[i].name, counted);
		/* The last mark is followed by the end. */
		at_mark = i + 1 == STEPS || run_to_mark(pid);
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
		fprintf(stderr, "steps: the child did not end in order\n");
		return 1;
	}
	return 0;
}

#endif
