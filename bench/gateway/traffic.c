/* SPDX-License-Identifier: MIT */
/*
 * The two ends: a thread that sends through kernel sockets in namespace A, and
 * one that receives in B.
 *
 * The sender is paced by what was read at tun0: it keeps no more than WINDOW
 * packets in the device's queue, as a link with pause frames would. Without
 * that it would spend its core on packets that the queue throws away, and
 * since all threads share the machine the figure would tell how the scheduler
 * feels. Packets that are lost before they are read (none should be) and
 * packets that the kernel sends by itself (router solicitations) shift the
 * difference; so the sender starts counting anew when nothing was read for
 * RESYNC_NS though it waits.
 *
 * Each packet carries a mark and its flow, so that the receiver can tell that
 * what arrives was sent and not damaged: the kernel checks the sum, we check
 * the contents.
 *
 * Both threads take packets by the batch and sleep when there is nothing to
 * do. A wake-up for each packet would cost more than the packet; so who finds
 * too little sleeps PAUSE_US, and lets a batch gather, as network cards
 * moderate their interrupts.
 */
#include "gateway.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#define WINDOW 2048 /* packets; half of the queue of tun0 */
#define BATCH 64
#define PAUSE_US 200
#define RESYNC_NS 20000000u
#define HEADERS 28 /* bytes of IPv4 and UDP */
#define MARK UINT32_C(0x64737472)

struct payload {
	uint32_t mark;
	uint32_t flow;
	uint64_t number;
	unsigned char rest[PACKET_MAX - HEADERS - 16];
};

struct batch {
	struct mmsghdr msgs[BATCH];
	struct iovec iov[BATCH];
	struct payload data[BATCH];
};

/* One for each thread. */
static struct batch sending, receiving;

/* A batch of @len bytes each. */
static void batch_init(struct batch *batch, size_t len)
{
	for (int i = 0; i < BATCH; i++) {
		batch->iov[i] = (struct iovec){ &batch->data[i], len };
		batch->msgs[i].msg_hdr.msg_iov = &batch->iov[i];
		batch->msgs[i].msg_hdr.msg_iovlen = 1;
	}
}

static void pause_us(long us)
{
	struct timespec t = { 0, us * 1000 };

	nanosleep(&t, NULL);
}

static uint64_t packets_read(const struct gateway *gw)
{
	uint64_t in = 0;

	for (uint32_t i = 0; i < gw->opt.workers; i++)
		in += counter_read(&gw->workers[i].counters.in);
	return in;
}

/*
 * Wait until the queue has room for a batch; once there is none, until half of
 * it is free, so that the next sleep is far away.
 */
static void wait_window(struct traffic *traffic, uint64_t *base)
{
	uint64_t sent = counter_read(&traffic->sent), last = 0, since = 0;
	int64_t limit = WINDOW - BATCH;

	while (!dstref_load_relaxed(&traffic->stop_sender)) {
		uint64_t in = packets_read(traffic->gw);

		if ((int64_t)(sent - *base - in) <= limit)
			return;
		limit = WINDOW / 2;
		if (in != last) {
			last = in;
			since = now_ns();
		} else if (now_ns() - since > RESYNC_NS) {
			*base = sent - in;
		}
		pause_us(PAUSE_US);
	}
}

/* Refused for their time to live, their destination, their protocol. */
static void send_strays(struct traffic *traffic, const struct batch *batch)
{
	const struct options *opt = &traffic->gw->opt;
	const int *fds = traffic->gw->wires.senders + opt->flows;

	for (int i = 0; i < STRAYS; i++)
		if (send(fds[i], &batch->data[0], opt->size - HEADERS, 0) > 0)
			counter_add(&traffic->sent, 1);
}

static void *sender_main(void *arg)
{
	struct traffic *traffic = arg;
	const struct options *opt = &traffic->gw->opt;
	struct batch *batch = &sending;
	uint64_t number = 0, base = 0;
	uint32_t flow = 0;

	pthread_setname_np(pthread_self(), "sender");
	batch_init(batch, opt->size - HEADERS);
	while (!dstref_load_relaxed(&traffic->stop_sender)) {
		int n;

		for (int i = 0; i < BATCH; i++) {
			batch->data[i].mark = MARK;
			batch->data[i].flow = flow;
			batch->data[i].number = number++;
		}
		n = sendmmsg(traffic->gw->wires.senders[flow], batch->msgs,
			     BATCH, 0);
		if (n > 0)
			counter_add(&traffic->sent, (uint64_t)n);
		else
			pause_us(PAUSE_US);
		flow = flow + 1 < opt->flows ? flow + 1 : 0;
		if (!flow && opt->strays)
			send_strays(traffic, batch);
		wait_window(traffic, &base);
	}
	return NULL;
}

static uint64_t damaged(const struct batch *batch, int n,
			const struct options *opt)
{
	uint64_t bad = 0;

	for (int i = 0; i < n; i++)
		bad += batch->data[i].mark != MARK ||
		       batch->data[i].flow >= opt->flows ||
		       batch->msgs[i].msg_len != opt->size - HEADERS;
	return bad;
}

static void receiver_wait(int fd, int last)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (last >= BATCH)
		return;
	if (last > 0)
		pause_us(PAUSE_US);
	else
		poll(&p, 1, 10);
}

static void *receiver_main(void *arg)
{
	struct traffic *traffic = arg;
	const struct options *opt = &traffic->gw->opt;
	struct batch *batch = &receiving;
	int fd = traffic->gw->wires.receiver, n = 0;

	pthread_setname_np(pthread_self(), "receiver");
	batch_init(batch, sizeof(struct payload));
	while (n > 0 || !dstref_load_relaxed(&traffic->stop_receiver)) {
		n = recvmmsg(fd, batch->msgs, BATCH, MSG_DONTWAIT, NULL);
		if (n > 0) {
			counter_add(&traffic->received, (uint64_t)n);
			counter_add(&traffic->damaged, damaged(batch, n, opt));
		}
		receiver_wait(fd, n);
	}
	return NULL;
}

int traffic_start(struct gateway *gw)
{
	struct traffic *traffic = &gw->traffic;

	traffic->gw = gw;
	if (pthread_create(&traffic->receiver, NULL, receiver_main, traffic))
		return -1;
	if (!pthread_create(&traffic->sender, NULL, sender_main, traffic))
		return 0;
	traffic_stop_receiver(traffic);
	return -1;
}

void traffic_stop_sender(struct traffic *traffic)
{
	dstref_store_relaxed(&traffic->stop_sender, true);
	pthread_join(traffic->sender, NULL);
}

/* Once nobody writes to tun1 any more: what was written is in the socket. */
void traffic_stop_receiver(struct traffic *traffic)
{
	dstref_store_relaxed(&traffic->stop_receiver, true);
	pthread_join(traffic->receiver, NULL);
}
