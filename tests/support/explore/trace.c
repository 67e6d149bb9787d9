/* SPDX-License-Identifier: MIT */
/*
 * trace - what happened in a schedule, for people
 *
 * A line per step and per event that belongs to one: number, thread, what, of
 * which address, which value, where in the source. Lines are always kept, since
 * a schedule may turn out to fail; they are made readable only when printed.
 * Places come from the debugging information, by libdw: the innermost
 * function, inlined or not, and the line.
 */
#include "state.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const kinds[K_KINDS] = {
	[K_LOAD] = "load",
	[K_STORE] = "store",
	[K_RMW] = "read-modify-write",
	[K_CAS_FAILED] = "failed compare-and-swap",
	[K_FENCE] = "fence",
	[K_LOCK] = "lock",
	[K_UNLOCK] = "unlock",
	[K_COND_WAIT] = "cond wait",
	[K_COND_WOKEN] = "cond woken",
	[K_COND_SIGNAL] = "cond signal",
	[K_COND_BROADCAST] = "cond broadcast",
	[K_ONCE] = "pthread_once",
	[K_SLEEP] = "sleep",
	[K_TIMEOUT] = "cond timeout",
	[K_FLUSH] = "store reaches memory",
	[K_READ_LOCK] = "read_lock",
	[K_READ_UNLOCK] = "read_unlock",
	[K_CALL_RCU] = "call_rcu",
	[K_CALLBACK] = "callback starts",
	[K_SYNC] = "synchronize_rcu",
	[K_SYNC_END] = "synchronize_rcu returns",
	[K_BARRIER] = "barrier",
	[K_BARRIER_END] = "barrier returns",
	[K_AWAIT] = "await returns",
	[K_MALLOC] = "malloc",
	[K_FREE] = "free",
	[K_REPORT] = "report",
	[K_THREAD_END] = "end",
	[K_READ] = "read",
	[K_WRITE] = "write",
	[K_STUCK] = "cannot go on with",
};

#define SHOWN 1000 /* lines, the last ones */

static struct {
	struct line lines[LINES];
	unsigned int count;
	Dwfl *dwfl;
} * own;

void trace_create(void)
{
	own = ex_map(sizeof(*own));
}

void trace_reset(void)
{
	own->count = 0;
}

struct line *trace(enum kind kind, const void *pc, const void *address,
		   unsigned int size)
{
	/* When there are too many the last is overwritten. */
	struct line *line = &own->lines[own->count];

	own->count += own->count < LINES - 1;
	*line = (struct line){ .proc = (uint8_t)ex.self->id,
			       .kind = (uint8_t)kind,
			       .size = (uint8_t)size,
			       .memory_order = -1,
			       .step = ex.branching ? (int)ex.depth : -1,
			       .pc = pc,
			       .address = address };
	return line;
}

void trace_stuck(const struct thread *thread)
{
	struct line *line =
		trace(K_STUCK, thread->next.pc, thread->next.touches[0], 0);

	line->proc = (uint8_t)thread->id;
	line->text = kinds[thread->next.kind];
}

const char *kind_name(enum kind kind)
{
	return kinds[kind];
}

const char *proc_name(unsigned int proc, char text[16])
{
	unsigned int id = proc < BUFFERS ? proc : proc - BUFFERS;
	const char *what = proc < BUFFERS ? "" : " buffer";

	if (id == MAIN)
		snprintf(text, 16, "main%s", what);
	else if (id == RCU)
		snprintf(text, 16, "rcu%s", what);
	else
		snprintf(text, 16, "T%c%s", (char)('0' + id - FIRST), what);
	return text;
}

/* The program's debugging information, read when first asked for. */
static Dwfl_Module *module_of(Dwarf_Addr address)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
	};

	if (!own->dwfl) {
		own->dwfl = dwfl_begin(&callbacks);
		dwfl_linux_proc_report(own->dwfl, getpid());
		dwfl_report_end(own->dwfl, NULL, NULL);
	}
	return dwfl_addrmodule(own->dwfl, address);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The innermost function at @address, inlined or not. */
static const char *function_at(Dwfl_Module *module, Dwarf_Addr address)
{
	Dwarf_Addr bias;
	Dwarf_Die *unit = dwfl_module_addrdie(module, address, &bias), *scopes;
	const char *name = NULL;
	int count = unit ? dwarf_getscopes(unit, address - bias, &scopes) : 0;

	for (int i = 0; i < count && !name; i++) {
		int tag = dwarf_tag(&scopes[i]);

		if (tag == DW_TAG_subprogram ||
		    tag == DW_TAG_inlined_subroutine)
			name = dwarf_diename(&scopes[i]);
	}
	return name ? name : dwfl_module_addrname(module, address);
}

void trace_place(const void *pc, char *text, size_t size)
{
	/* A return address: the call is before it. */
	Dwarf_Addr address = (Dwarf_Addr)(uintptr_t)pc - 1;
	Dwfl_Module *module = pc ? module_of(address) : NULL;
	Dwfl_Line *source = module ? dwfl_module_getsrc(module, address) : NULL;
	const char *file, *name;
	int number;

	snprintf(text, size, "?");
	if (!module)
		return;
	name = function_at(module, address);
	file = source ? dwfl_lineinfo(source, NULL, &number, NULL, NULL, NULL)
		      : NULL;
	if (file)
		snprintf(text, size, "%s %s:%d", name ? name : "?",
			 base_name(file), number);
	else
		snprintf(text, size, "%s", name ? name : "?");
}

/* What is not of the heap: a stack, or a variable by name. */
void trace_symbol(const void *address, char *text, size_t size)
{
	Dwarf_Addr at = (Dwarf_Addr)(uintptr_t)address;
	Dwfl_Module *module = module_of(at);
	char name[16];
	unsigned int id;
	GElf_Off offset;
	GElf_Sym symbol;

	if (thread_on_stack(address, &id)) {
		snprintf(text, size, "%p on the stack of %s", address,
			 proc_name(id, name));
		return;
	}
	const char *found = module ? dwfl_module_addrinfo(module, at, &offset,
							  &symbol, NULL, NULL,
							  NULL)
				   : NULL;

	if (found && offset)
		snprintf(text, size, "%s+%lu", found, (unsigned long)offset);
	else if (found)
		snprintf(text, size, "%s", found);
	else
		snprintf(text, size, "%p", address);
}

static const char *order_name(int order)
{
	static const char *const names[] = {
		" relaxed", " consume", " acquire",
		" release", " acq_rel", " seq_cst"
	};

	return order < 0 ? "" : names[order];
}

static void print_value(const struct line *line)
{
	unsigned long long old = line->old, new = line->new;

	switch (line->kind) {
	case K_LOAD:
	case K_CAS_FAILED:
		printf(" = 0x%llx", old);
		break;
	case K_STORE:
		printf(" = 0x%llx", new);
		break;
	case K_RMW:
	case K_FLUSH:
		printf(" 0x%llx -> 0x%llx", old, new);
		break;
	case K_MALLOC:
		printf(" %llu bytes", new);
		break;
	default:
		break;
	}
}

static void print_line(const struct line *line, int before)
{
	char name[16], place[200], what[400] = "";

	if (line->step != before && line->step > 0)
		printf("%5d ", line->step);
	else
		printf("      ");
	printf("%-5s %s%s", proc_name(line->proc, name), kinds[line->kind],
	       order_name(line->memory_order));
	if (line->address)
		memory_name(line->address, what, sizeof(what));
	printf("%s%s", *what ? " " : "", what);
	print_value(line);
	if (line->text)
		printf(" (%s)", line->text);
	trace_place(line->pc, place, sizeof(place));
	if (line->pc)
		printf("  [%s]", place);
	putchar('\n');
}

void trace_print(void)
{
	unsigned int from = own->count > SHOWN ? own->count - SHOWN : 0;
	int before = -1;

	if (from)
		printf("      (%u lines before)\n", from);
	for (unsigned int i = from; i < own->count; i++) {
		print_line(&own->lines[i], before);
		before = own->lines[i].step;
	}
}
