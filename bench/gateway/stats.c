/* SPDX-License-Identifier: MIT */
/*
 * Totals, the verdict, and how they are shown.
 *
 * The books must balance after every run, whatever the options and however it
 * ended: each packet that was read is written or dropped for a reason that
 * has a name; each sock has only its own unit left before it is let go; then
 * nothing is alive, no callback is under way, and the library has nothing to
 * report. totals_verdict() says which of these is false.
 *
 * "in" and "out" are what read() and write() at the TUN descriptors returned.
 * What the kernel loses before the one or after the other (its queues are
 * finite) is not the gateway's: sent and received, beside them, tell of that.
 */
#include "gateway.h"

#include <string.h>
#include <time.h>

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void counters_add(struct totals *totals, const struct counters *c)
{
	totals->in += counter_read(&c->in);
	totals->out += counter_read(&c->out);
	totals->ring_full += counter_read(&c->ring_full);
	for (int i = 0; i < DROP_COUNT; i++) {
		totals->drop[i] += counter_read(&c->drop[i]);
		totals->dropped += counter_read(&c->drop[i]);
	}
}

/* What the threads count; exact once they have ended. */
void totals_read(struct totals *totals, const struct gateway *gw)
{
	memset(totals, 0, sizeof(*totals));
	counters_add(totals, &gw->nic.counters);
	for (uint32_t i = 0; i < gw->opt.workers; i++)
		counters_add(totals, &gw->workers[i].counters);
	totals->sent = counter_read(&gw->traffic.sent);
	totals->received = counter_read(&gw->traffic.received);
	totals->damaged = counter_read(&gw->traffic.damaged);
	totals->replaced = counter_read(&gw->control.replaced);
	totals->failed = counter_read(&gw->control.failed);
}

/* What the namespace counts, and the library as a whole. */
void totals_net(struct totals *totals, const struct dstref_net *net)
{
	struct dstref_net_counters stats;

	dstref_net_stats(net, &stats);
	totals->dst_alive = stats.dst;
	totals->sock_alive = stats.sock;
	totals->callbacks = stats.callbacks;
	totals->sleeps_room = stats.sleeps_room;
	totals->sleeps_data = stats.sleeps_data;
	totals->wakeups_room = stats.wakeups_room;
	totals->wakeups_data = stats.wakeups_data;
	totals->promotions = stats.promotions;
	totals->demotions = stats.demotions;
	totals->cells_refused = stats.cells_refused;
}

/* NULL when the books balance, else what does not. */
const char *totals_verdict(const struct totals *t, const struct options *opt)
{
	if (t->in != t->out + t->dropped)
		return "packets are unexplained: in is not out + dropped";
	if (t->damaged)
		return "packets were damaged on the way";
	if (opt->bare)
		return NULL;
	if (t->accounts != opt->flows)
		return "an account was not at one unit before its close";
	if (t->busy || t->dst_alive || t->sock_alive || t->callbacks)
		return "objects are still alive";
	if (t->reports)
		return "the library reported misuse";
	return NULL;
}

/* Packets move from here on. */
void start_print(const struct options *opt)
{
	char policy[64];

	printf("forwarding by %s\n",
	       options_policy(opt, policy, sizeof(policy)));
	fflush(stdout);
}

/* A line for the time since @last, which becomes now; the counts are totals. */
void progress_print(const struct gateway *gw, struct totals *last,
		    double seconds)
{
	struct totals t;

	totals_read(&t, gw);
	t.seconds = seconds;
	printf("%4.0f s  in %-11llu out %-11llu dropped %-9llu %.3f Mpps\n",
	       seconds, (unsigned long long)t.in, (unsigned long long)t.out,
	       (unsigned long long)t.dropped,
	       (double)(t.out - last->out) / (seconds - last->seconds) / 1e6);
	fflush(stdout);
	*last = t;
}

static void line(const char *name, uint64_t value)
{
	printf("%-16s%llu\n", name, (unsigned long long)value);
}

static void print_drops(const struct totals *t)
{
	static const char *const words[] = {
#define DROP_WORDS(name, key, text) text,
		DROPS(DROP_WORDS)
#undef DROP_WORDS
	};

	line("dropped", t->dropped);
	for (int i = 1; i < DROP_COUNT; i++)
		if (t->drop[i])
			printf("  %-14llu%s\n", (unsigned long long)t->drop[i],
			       words[i]);
}

static void print_reports(const struct totals *t)
{
	line("reports", t->reports);
	for (int i = 0; i < DSTREF_REPORT_KIND_COUNT; i++) {
		enum dstref_report_kind kind = (enum dstref_report_kind)i;
		uint64_t n = dstref_report_count(kind);

		if (n)
			printf("  %-14llu%s\n", (unsigned long long)n,
			       dstref_report_name(kind));
	}
}

static void print_library(const struct totals *t, const struct options *opt)
{
	line("back pressure", t->drop[DROP_BACK_PRESSURE] + t->sleeps_room);
	line("ring full", t->ring_full);
	printf("%-16sroom %llu, data %llu (sleeps %llu, %llu)\n", "wakeups",
	       (unsigned long long)t->wakeups_room,
	       (unsigned long long)t->wakeups_data,
	       (unsigned long long)t->sleeps_room,
	       (unsigned long long)t->sleeps_data);
	line("routes replaced", t->replaced);
	if (t->failed)
		line("  no memory", t->failed);
	printf("%-16s%llu routes, %llu merged, %llu refused\n", "split",
	       (unsigned long long)t->promotions,
	       (unsigned long long)t->demotions,
	       (unsigned long long)t->cells_refused);
	printf("%-16s%llu of %u at one unit before close\n", "accounts",
	       (unsigned long long)t->accounts, opt->flows);
	printf("%-16sdst %llu, sock %llu, callbacks %llu\n", "alive",
	       (unsigned long long)t->dst_alive,
	       (unsigned long long)t->sock_alive,
	       (unsigned long long)t->callbacks);
	print_reports(t);
}

void summary_print(const struct totals *t, const struct options *opt,
		   const char *verdict)
{
	char policy[64];

	printf("\n%-16s%s\n", "policy",
	       options_policy(opt, policy, sizeof(policy)));
	printf("%-16s%.2f\n", "seconds", t->seconds);
	line("sent", t->sent);
	line("in", t->in);
	line("out", t->out);
	line("received", t->received);
	printf("%-16s%.3f\n", "Mpps", t->mpps);
	print_drops(t);
	if (!opt->bare)
		print_library(t, opt);
	printf("%-16s%s\n", "verdict", verdict ? verdict : "ok");
	fflush(stdout);
}
