/* SPDX-License-Identifier: MIT */
/*
 * The floor: one thread that reads a packet at tun0 and writes it at tun1,
 * the same traffic on both sides, no routes, no socks, no ring. What the
 * gateway does beyond this is what the figure gateway-ratio tells.
 *
 * tun_wait() is here because the workers wait in the same way.
 */
#include "gateway.h"

#include <errno.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_US 50

/*
 * Wait for packets at a TUN descriptor. After a burst that was not empty
 * packets are under way: a short sleep lets the next burst gather, where
 * poll() would return for the first of them.
 */
void tun_wait(int fd, uint32_t last_burst)
{
	struct timespec t = { 0, PAUSE_US * 1000 };
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (last_burst)
		nanosleep(&t, NULL);
	else
		poll(&p, 1, 10);
}

void *bare_main(void *arg)
{
	struct worker *w = arg;
	unsigned char data[PACKET_MAX];
	int out = w->gw->wires.tun1;
	uint32_t burst = 0;

	pthread_setname_np(pthread_self(), "bare");
	for (;;) {
		ssize_t len = read(w->fd, data, sizeof(data));

		if (len > 0) {
			burst++;
			counter_add(&w->counters.in, 1);
			if (write(out, data, (size_t)len) == len)
				counter_add(&w->counters.out, 1);
			else
				counter_add(&w->counters.drop[DROP_WRITE_ERROR],
					    1);
			continue;
		}
		if (dstref_load_relaxed(&w->gw->stop_workers))
			return NULL;
		tun_wait(w->fd, burst);
		burst = 0;
	}
}
