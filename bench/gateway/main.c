/* SPDX-License-Identifier: MIT */
/*
 * A UDP gateway on libdstref: a small packet path that is real, to be read as
 * a model by those who build a larger one. Packets come from a kernel socket
 * through a TUN device, are routed, and leave through another TUN device to
 * another kernel socket; gateway.h has the map of the files.
 *
 *	sender -> tun0 -> worker -> ring -> device thread -> tun1 -> receiver
 *	                    ^
 *	                 control (time, new routes)
 *
 * This file is the order of things. At the start: what may be refused is
 * refused before a thread runs; the namespaces come first, since a process
 * that has threads may not enter a user namespace. At the end, in the
 * direction of the packets: the sender stops, the workers read what is left,
 * the device sends what they posted, the receiver takes what arrived; then the
 * books are closed, and the namespace of the library is destroyed, which it
 * refuses if anything was left in it.
 *
 * Signals are blocked in all threads and waited for here, with the second as
 * the timeout: no handler, and SIGINT, SIGTERM or SIGHUP ends a run as the
 * clock does.
 */
#include "gateway.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define END_TIMEOUT_NS INT64_C(5000000000) /* for the last callbacks */

enum { EXIT_OK, EXIT_FALSE, EXIT_REFUSED };

static int fail(const char *what)
{
	fprintf(stderr,
		PROGRAM ": %s: no memory or too many threads; give "
			"fewer --flows or --workers, or raise the limit\n",
		what);
	return -1;
}

/* Output that is not there is not a success. */
static int stdout_flush(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	fprintf(stderr, PROGRAM ": standard output: cannot be written; "
				"give a file that has room\n");
	return -1;
}

/*
 * A blocked signal comes though it is ignored; so who was started by nohup
 * must look.
 */
static bool is_ignored(int sig)
{
	struct sigaction action;

	return !sigaction(sig, NULL, &action) && action.sa_handler == SIG_IGN;
}

/*
 * What all threads inherit: signals blocked, a broken pipe an error and not a
 * death, and sleeps of 50 us that do not take 100.
 */
static void process_setup(sigset_t *set)
{
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_TIMERSLACK, 1000);
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	if (!is_ignored(SIGHUP))
		sigaddset(set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, set, NULL);
}

/* A line a second, until the time is up or a signal comes: seconds it took. */
static double watch(const struct gateway *gw, const sigset_t *set)
{
	struct totals last = { .seconds = 0 };
	uint64_t start = now_ns();

	for (uint32_t second = 1; second <= gw->opt.seconds; second++) {
		uint64_t due = start + second * UINT64_C(1000000000);
		uint64_t now = now_ns();
		uint64_t left = due > now ? due - now : 0;
		struct timespec t = { (time_t)(left / 1000000000u),
				      (long)(left % 1000000000u) };

		if (sigtimedwait(set, NULL, &t) > 0)
			break;
		progress_print(gw, &last, (double)(now_ns() - start) / 1e9);
	}
	return (double)(now_ns() - start) / 1e9;
}

static uint64_t packets_out(const struct gateway *gw)
{
	struct totals t;

	totals_read(&t, gw);
	return t.out;
}

/*
 * Start what is behind before what is in front, so that nothing piles up. All
 * of them run afterwards, or none.
 */
static int start_threads(struct gateway *gw)
{
	bool bare = gw->opt.bare;
	const char *what = "device";

	if (!bare && nic_start(&gw->nic))
		goto none;
	what = "control";
	if (!bare && control_start(gw))
		goto stop_nic;
	what = "workers";
	if (workers_start(gw))
		goto stop_control;
	what = "traffic";
	if (!traffic_start(gw))
		return 0;
	workers_stop(gw);
stop_control:
	if (!bare)
		control_stop(&gw->control);
stop_nic:
	if (!bare)
		nic_stop(&gw->nic);
none:
	return fail(what);
}

static void stop_threads(struct gateway *gw)
{
	traffic_stop_sender(&gw->traffic);
	workers_stop(gw);
	if (!gw->opt.bare) {
		control_stop(&gw->control);
		nic_stop(&gw->nic);
	}
	traffic_stop_receiver(&gw->traffic);
}

/* Let go of everything, and see that it is gone. */
static void close_books(struct gateway *gw, struct totals *totals)
{
	struct tables *tables = &gw->tables;

	totals->accounts = tables_accounts(tables);
	tables_clear(tables);
	totals->busy = dstref_net_barrier(tables->net, END_TIMEOUT_NS) != 0;
	totals_net(totals, tables->net);
	totals->busy |= dstref_net_destroy(tables->net) != 0;
	totals->reports = dstref_report_total();
}

static int run(struct gateway *gw, struct json_file *json, const sigset_t *set)
{
	struct totals totals;
	const char *verdict;
	double seconds;
	uint64_t out;

	if (start_threads(gw))
		return EXIT_REFUSED;
	start_print(&gw->opt);
	out = packets_out(gw);
	seconds = watch(gw, set);
	/* Now, and not when what is still on its way has come through. */
	out = packets_out(gw) - out;
	stop_threads(gw);
	totals_read(&totals, gw);
	totals.seconds = seconds;
	totals.mpps = seconds > 0 ? (double)out / seconds / 1e6 : 0;
	if (!gw->opt.bare)
		close_books(gw, &totals);
	verdict = totals_verdict(&totals, &gw->opt);
	summary_print(&totals, &gw->opt, verdict);
	if (stdout_flush())
		return EXIT_FALSE;
	if (json && json_file_write(json, &totals, &gw->opt, verdict))
		return EXIT_REFUSED;
	return verdict ? EXIT_FALSE : EXIT_OK;
}

/* All that needs no thread of ours. */
static int prepare(struct gateway *gw)
{
	gw->workers = aligned_alloc(DSTREF_LINE_SIZE,
				    gw->opt.workers * sizeof(*gw->workers));
	if (!gw->workers)
		return fail("workers");
	memset((void *)gw->workers, 0, gw->opt.workers * sizeof(*gw->workers));
	if (wires_open(&gw->wires, &gw->opt))
		return -1;
	if (gw->opt.bare)
		return 0;
	if (nic_open(&gw->nic, &gw->opt, gw->wires.tun1))
		return fail("rings");
	return tables_open(&gw->tables, &gw->opt, &gw->nic) ? fail("tables")
							    : 0;
}

int main(int argc, char **argv)
{
	static struct gateway gw;
	struct json_file *json = NULL;
	int rc = options_parse(&gw.opt, argc, argv);
	sigset_t set;

	if (rc < 0)
		return EXIT_REFUSED;
	if (rc)
		return stdout_flush() ? EXIT_FALSE : EXIT_OK;
	process_setup(&set);
	/* The file last: with the rights that it will be renamed with. */
	if (prepare(&gw) || (gw.opt.json && json_file_open(&json, gw.opt.json)))
		rc = EXIT_REFUSED;
	else
		rc = run(&gw, json, &set);
	json_file_close(json);
	if (rc == EXIT_OK) {
		nic_free(&gw.nic);
		tables_free(&gw.tables);
	}
	if (gw.wires.senders)
		wires_close(&gw.wires, &gw.opt);
	free(gw.workers);
	return rc;
}
