/* SPDX-License-Identifier: MIT */
/*
 * replay - a schedule as one word, and back
 *
 * CASE:STEPS, where STEPS is a list of who goes on, with commas between: 0 to 3
 * for the threads, r for the one of RCU callbacks, and b before either for its
 * store buffer; *N for N steps in a row; =N for the N-th of the values that a
 * load may see. The options that the schedule needs are printed before it.
 */
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	struct scripted {
		uint8_t proc;
		uint16_t value;
	} steps[STEPS];
	unsigned int count;
} * own;

static bool parse_proc(const char **at, unsigned int *proc)
{
	bool buffer = **at == 'b';

	*at += buffer;
	if (**at == 'r')
		*proc = RCU;
	else if (**at >= '0' && **at < '0' + EXPLORE_THREADS)
		*proc = FIRST + (unsigned int)(**at - '0');
	else
		return false;
	*at += 1;
	*proc += buffer ? BUFFERS : 0;
	return true;
}

static bool parse_number(const char **at, char mark, unsigned long *number)
{
	char *end;

	if (**at != mark)
		return true;
	if ((*at)[1] < '0' || (*at)[1] > '9')
		return false;
	*number = strtoul(*at + 1, &end, 10);
	*at = end;
	return *number <= STEPS;
}

static bool parse_steps(const char *at)
{
	for (;;) {
		unsigned long times = 1, value = 0;
		unsigned int proc;

		if (!parse_proc(&at, &proc) ||
		    !parse_number(&at, '*', &times) ||
		    !parse_number(&at, '=', &value) ||
		    own->count + times > STEPS)
			return false;
		for (; times; times--)
			own->steps[own->count++] =
				(struct scripted){ (uint8_t)proc,
						   (uint16_t)value };
		if (!*at)
			return true;
		if (*at++ != ',')
			return false;
	}
}

/* The name of the case in @text, which lives on; NULL: not a schedule. */
const char *replay_parse(const char *text)
{
	const char *colon = strrchr(text, ':');

	own = ex_map(sizeof(*own));
	if (!colon || (colon[1] && !parse_steps(colon + 1)))
		return NULL;
	return strndup(text, (size_t)(colon - text));
}

/* Beyond its end it goes on as the search does. */
unsigned int replay_choose(unsigned int enabled)
{
	unsigned int proc;

	if (ex.depth >= own->count)
		return (enabled & (1u << ex.current))
			       ? ex.current
			       : (unsigned int)__builtin_ctz(enabled);
	proc = own->steps[ex.depth].proc;
	if (!(enabled & (1u << proc)))
		ex_fail(NULL,
			"the schedule to replay is not one of this "
			"program: at step %u",
			ex.depth);
	return proc;
}

unsigned int replay_value(unsigned int values)
{
	unsigned int at = ex.depth - 1;
	unsigned int value = at < own->count ? own->steps[at].value : 0;

	return value < values ? value : 0;
}

static void print_proc(unsigned int proc)
{
	if (proc >= BUFFERS) {
		putchar('b');
		proc -= BUFFERS;
	}
	putchar(proc == RCU ? 'r' : (int)('0' + proc - FIRST));
}

void replay_print(void)
{
	static const char *const memory[] = { "", " --tso", " --weak" };

	printf("replay: %s%s --replay '%s:", ex.options.program,
	       memory[ex.options.memory], ex.running->name);
	for (unsigned int at = 0, next; at < ex.depth; at = next) {
		const struct node *node = &ex.nodes[at];

		next = at + 1;
		while (next < ex.depth && ex.nodes[next].proc == node->proc &&
		       ex.nodes[next].value == node->value)
			next++;
		if (at)
			putchar(',');
		print_proc(node->proc);
		if (next > at + 1)
			printf("*%u", next - at);
		if (node->value)
			printf("=%u", node->value);
	}
	printf("'\n");
}
