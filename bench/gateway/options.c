/* SPDX-License-Identifier: MIT */
/*
 * The command line. One table says for each option its name, what it takes,
 * its range and where the value goes; the parser, the messages and --help are
 * made from it. Every refusal is one line on stderr that names the argument
 * and the remedy.
 *
 * We parse by hand rather than by getopt_long(), which prints messages of its
 * own without a remedy and accepts abbreviations that break later.
 */
#include "gateway.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum kind { NUMBER, FLAG, TEXT, CHOICE };

struct option {
	const char *name;
	enum kind kind;
	size_t offset; /* in struct options */
	uint32_t min, max; /* NUMBER */
	const char *choice[2]; /* CHOICE: false, true */
	bool bare; /* means something with --bare too */
	const char *help;
};

#define AT(member) offsetof(struct options, member)

static const struct option table[] = {
	{ "workers",
	  NUMBER,
	  AT(workers),
	  1,
	  WORKERS_MAX,
	  { 0 },
	  false,
	  "threads that route, each with a queue of tun0 (1)" },
	{ "release",
	  CHOICE,
	  AT(completion),
	  0,
	  0,
	  { "xmit", "completion" },
	  false,
	  "where a packet lets go of its route (xmit)" },
	{ "noref",
	  FLAG,
	  AT(noref),
	  0,
	  0,
	  { 0 },
	  false,
	  "borrow routes instead of holding them" },
	{ "early-uncharge",
	  FLAG,
	  AT(early),
	  0,
	  0,
	  { 0 },
	  false,
	  "let go of the sock at transmit too: no back pressure" },
	{ "sndbuf",
	  NUMBER,
	  AT(sndbuf),
	  1,
	  1u << 30,
	  { 0 },
	  false,
	  "bytes that a flow may have in flight (212992)" },
	{ "full",
	  CHOICE,
	  AT(wait),
	  0,
	  0,
	  { "drop", "wait" },
	  false,
	  "what a worker does where the sndbuf is full (drop)" },
	{ "churn",
	  NUMBER,
	  AT(churn),
	  0,
	  100000,
	  { 0 },
	  false,
	  "routes replaced per second under traffic (0)" },
	{ "flows",
	  NUMBER,
	  AT(flows),
	  1,
	  FLOWS_MAX,
	  { 0 },
	  true,
	  "destinations, sixteen to a route (64)" },
	{ "size",
	  NUMBER,
	  AT(size),
	  PACKET_MIN,
	  PACKET_MAX,
	  { 0 },
	  true,
	  "bytes of a packet, headers included (60)" },
	{ "strays",
	  FLAG,
	  AT(strays),
	  0,
	  0,
	  { 0 },
	  false,
	  "send a few packets that must not come through" },
	{ "seconds",
	  NUMBER,
	  AT(seconds),
	  1,
	  86400,
	  { 0 },
	  true,
	  "how long (10); SIGINT ends it earlier, in order" },
	{ "json",
	  TEXT,
	  AT(json),
	  0,
	  0,
	  { 0 },
	  true,
	  "write the summary to this file too; - is standard output" },
	{ "bare",
	  FLAG,
	  AT(bare),
	  0,
	  0,
	  { 0 },
	  true,
	  "no gateway: one thread reads and writes, the floor" },
};

#define OPTIONS (sizeof(table) / sizeof(table[0]))

static void help(void)
{
	printf("usage: " PROGRAM " [OPTION]...\n\n"
	       "Forwards UDP packets between two TUN devices in two network "
	       "namespaces of\nits own, from one kernel socket to another, "
	       "over routes and socks of libdstref.\n\n");
	for (size_t i = 0; i < OPTIONS; i++) {
		const struct option *o = &table[i];
		char left[40] = "";

		if (o->kind == NUMBER)
			snprintf(left, sizeof(left), "=%u..%u", o->min, o->max);
		else if (o->kind == CHOICE)
			snprintf(left, sizeof(left), "=%s|%s", o->choice[0],
				 o->choice[1]);
		else if (o->kind == TEXT)
			snprintf(left, sizeof(left), "=FILE");
		printf("  --%s%-*s %s\n", o->name, 26 - (int)strlen(o->name),
		       left, o->help);
	}
	printf("  --%-26s this text\n\n"
	       "Exit status: 0; 1 when a packet, an object or a report is "
	       "unaccounted for, or\nstandard output cannot be written; 2 "
	       "for a bad argument or a machine that\ndoes not allow it.\n",
	       "help");
}

static int refuse(const char *arg, const char *remedy)
{
	fprintf(stderr, PROGRAM ": %s: %s\n", arg, remedy);
	return -1;
}

/* The option that "--name" or "--name=value" means; *value or NULL. */
static const struct option *find(const char *arg, const char **value)
{
	size_t len = strcspn(arg, "=");

	*value = arg[len] ? arg + len + 1 : NULL;
	if (strncmp(arg, "--", 2) != 0)
		return NULL;
	for (size_t i = 0; i < OPTIONS; i++)
		if (strlen(table[i].name) == len - 2 &&
		    !strncmp(table[i].name, arg + 2, len - 2))
			return &table[i];
	return NULL;
}

static int set_number(const struct option *o, const char *value, void *to)
{
	char *end;
	char text[80];
	unsigned long long n;

	errno = 0;
	n = strtoull(value, &end, 10);
	if (value[0] >= '0' && value[0] <= '9' && !*end && !errno &&
	    n >= o->min && n <= o->max) {
		*(uint32_t *)to = (uint32_t)n;
		return 0;
	}
	snprintf(text, sizeof(text), "--%s=%.40s", o->name, value);
	fprintf(stderr, PROGRAM ": %s: give a number from %u to %u\n", text,
		o->min, o->max);
	return -1;
}

static int set_choice(const struct option *o, const char *value, void *to)
{
	for (int i = 0; i < 2; i++) {
		if (!strcmp(value, o->choice[i])) {
			*(bool *)to = i;
			return 0;
		}
	}
	fprintf(stderr, PROGRAM ": --%s=%.40s: give %s or %s\n", o->name, value,
		o->choice[0], o->choice[1]);
	return -1;
}

static int set(const struct option *o, const char *value, struct options *opt)
{
	void *to = (char *)opt + o->offset;

	if (o->kind == FLAG) {
		*(bool *)to = true;
		return 0;
	}
	if (o->kind == NUMBER)
		return set_number(o, value, to);
	if (o->kind == CHOICE)
		return set_choice(o, value, to);
	*(const char **)to = value;
	return 0;
}

/* What no single option can tell. */
static int check(const struct options *opt, const char *not_bare)
{
	if (opt->bare && not_bare)
		return refuse(not_bare, "means nothing with --bare; leave one "
					"of them out");
	if (opt->early && opt->completion)
		return refuse("--early-uncharge",
			      "needs --release=xmit: a device that keeps the "
			      "route until completion keeps the sock too");
	if (opt->early && opt->wait)
		return refuse("--full=wait", "nothing to wait for with "
					     "--early-uncharge; leave one of "
					     "them out");
	return 0;
}

int options_parse(struct options *opt, int argc, char **argv)
{
	const char *not_bare = NULL;

	*opt = (struct options){ .workers = 1,
				 .seconds = 10,
				 .flows = 64,
				 .size = PACKET_MIN,
				 .sndbuf = DSTREF_SOCK_SNDBUF };
	for (int i = 1; i < argc; i++) {
		const char *arg = argv[i], *value;
		const struct option *o;

		if (!strcmp(arg, "--help")) {
			help();
			return 1;
		}
		o = find(arg, &value);
		if (!o)
			return refuse(arg, "no such option; --help lists them");
		if (o->kind == FLAG && value)
			return refuse(arg, "takes no value; leave it out");
		if (!value)
			value = o->kind == FLAG ? "" : argv[++i];
		if (!value || (o->kind != FLAG && !*value))
			return refuse(arg, "needs a value; --help tells which");
		if (set(o, value, opt))
			return -1;
		if (!o->bare)
			not_bare = arg;
	}
	return check(opt, not_bare);
}

const char *options_policy(const struct options *opt, char *buf, size_t size)
{
	if (opt->bare)
		snprintf(buf, size, "bare");
	else
		snprintf(buf, size, "%s%s%s",
			 opt->completion ? "completion" : "xmit",
			 opt->noref ? " noref" : "",
			 opt->early ? " early-uncharge" : "");
	return buf;
}
