/* SPDX-License-Identifier: MIT */
/*
 * Two network namespaces, a TUN device in each, kernel sockets at both ends.
 *
 *	namespace A                  this process            namespace B
 *	sender 10.1.0.1 -> tun0 ====> read, route, write ====> tun1 -> receiver
 *
 * No privilege is needed where the machine allows user namespaces: unshare()
 * gives the process one, in which it is root, and the network namespaces
 * belong to it. A socket and a TUN descriptor stay in the namespace that they
 * were opened in, so no thread has to enter one later: we stand in A, open
 * what belongs there, unshare again, stand in B, open the rest. The process
 * ends and with it both namespaces, the devices and the routes; nothing is
 * left behind, whichever way it ends.
 *
 * tun0 has a queue for each worker (IFF_MULTI_QUEUE). The kernel spreads by
 * flow, so packets of a flow stay in order; several workers that read one
 * queue would reorder them and fight for its lock. tun1 has one queue, for
 * one thread writes.
 *
 * Everything is done by ioctl(), so the machine needs no ip(8); the length of
 * the queue alone by netlink, for its ioctl wants to be root of the machine,
 * not only of the namespace. An address on the loopback device makes its whole
 * network local: that is how B receives for all of 10.2.0.0/16 on one socket.
 */
#include "gateway.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/route.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define TUN_DEVICE "/dev/net/tun"
#define TUN_QUEUE 4096 /* packets */
#define SOCKET_BUFFER (32 << 20) /* bytes */
#define TTL 64

/* One line on stderr: what failed, why, what to do. */
static int fail(const char *what, const char *remedy)
{
	fprintf(stderr, PROGRAM ": %s: %s; %s\n", what, strerror(errno),
		remedy);
	return -1;
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, text, strlen(text));
	close(fd);
	return n < 0 ? -1 : 0;
}

/* Become root of a new user namespace, and stand in a new network. */
static int unshare_user(void)
{
	unsigned int uid = geteuid(), gid = getegid();
	char map[32];

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return -1;
	snprintf(map, sizeof(map), "0 %u 1", uid);
	if (write_file("/proc/self/uid_map", map))
		return -1;
	/* Absent before Linux 3.19, and refused where it is set already. */
	(void)write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", gid);
	return write_file("/proc/self/gid_map", map);
}

static int enter_first_namespace(void)
{
	if (!unshare(CLONE_NEWNET) || !unshare_user())
		return 0;
	return fail("network namespace",
		    "run as root, or allow user namespaces (sysctl "
		    "user.max_user_namespaces, kernel.unprivileged_userns_clone"
		    ", kernel.apparmor_restrict_unprivileged_userns)");
}

static void set_addr(struct sockaddr *to, uint32_t addr)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(addr) };

	memcpy(to, &in, sizeof(in));
}

/* Give an interface an address and set it up. */
static int interface_up(const char *name, uint32_t addr)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq req = { .ifr_name = "" };
	int rc;

	if (fd < 0)
		return fail("socket", "raise the limit of open files");
	strncpy(req.ifr_name, name, IFNAMSIZ - 1);
	set_addr(&req.ifr_addr, addr);
	rc = ioctl(fd, SIOCSIFADDR, &req);
	set_addr(&req.ifr_netmask, SINK_MASK);
	rc = rc ? rc : ioctl(fd, SIOCSIFNETMASK, &req);
	req.ifr_flags = IFF_UP | IFF_RUNNING;
	rc = rc ? rc : ioctl(fd, SIOCSIFFLAGS, &req);
	close(fd);
	return rc ? fail(name, "this kernel lets no namespace configure it")
		  : 0;
}

/* How many packets wait at tun0 to be read. */
static int queue_length(const char *name, uint32_t packets)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg info;
		struct rtattr attr;
		uint32_t value;
	} msg = { .head = { .nlmsg_len = sizeof(msg),
			    .nlmsg_type = RTM_SETLINK,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		  .info = { .ifi_index = (int)if_nametoindex(name) },
		  .attr = { .rta_len = RTA_LENGTH(sizeof(uint32_t)),
			    .rta_type = IFLA_TXQLEN },
		  .value = packets };
	struct {
		struct nlmsghdr head;
		struct nlmsgerr err;
		char echo[sizeof(msg)];
	} ack = { .err.error = -EIO };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return fail("netlink", "needs a kernel with rtnetlink");
	errno = EIO;
	if (send(fd, &msg, sizeof(msg), 0) > 0 &&
	    recv(fd, &ack, sizeof(ack), 0) > 0)
		errno = -ack.err.error;
	close(fd);
	return errno ? fail(name, "this kernel lets no namespace configure it")
		     : 0;
}

static int route_add(char *dev, uint32_t net)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct rtentry route = { .rt_flags = RTF_UP };
	int rc;

	if (fd < 0)
		return fail("socket", "raise the limit of open files");
	route.rt_dev = dev;
	set_addr(&route.rt_dst, net);
	set_addr(&route.rt_genmask, SINK_MASK);
	rc = ioctl(fd, SIOCADDRT, &route);
	close(fd);
	return rc ? fail("route", "this kernel lets no namespace add one") : 0;
}

/* Open a queue of a TUN device; the first one makes the device. */
static int tun_queue(const char *name, bool multi, int open_flags)
{
	struct ifreq req = { .ifr_name = "" };
	int fd = open(TUN_DEVICE, O_RDWR | O_CLOEXEC | open_flags);

	if (fd < 0)
		return fail(TUN_DEVICE, "load the tun module (modprobe tun), "
					"in a container pass the device in, "
					"and let this user open it");
	strncpy(req.ifr_name, name, IFNAMSIZ - 1);
	req.ifr_flags = IFF_TUN | IFF_NO_PI;
	if (multi)
		req.ifr_flags |= IFF_MULTI_QUEUE;
	if (ioctl(fd, TUNSETIFF, &req)) {
		(void)fail(name, "is " TUN_DEVICE " what it is called, "
				 "and Linux 3.8 or later?");
		close(fd);
		return -1;
	}
	return fd;
}

/* As root of the namespace we may pass the machine's limit. */
static int socket_buffer(int fd, int option, int force)
{
	int size = SOCKET_BUFFER;

	if (setsockopt(fd, SOL_SOCKET, force, &size, sizeof(size)))
		return setsockopt(fd, SOL_SOCKET, option, &size, sizeof(size));
	return 0;
}

/* A socket that sends to one address; connected: the kernel looks up once. */
static int sender_open(uint32_t addr, int type, int protocol, int ttl)
{
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, protocol);
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(PORT),
				  .sin_addr.s_addr = htonl(addr) };

	if (fd < 0)
		return fail("socket", "raise the limit of open files, or give "
				      "fewer --flows");
	if (setsockopt(fd, IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl)) ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to))) {
		(void)fail("connect", "is IPv4 switched off?");
		close(fd);
		return -1;
	}
	return fd;
}

static int receiver_open(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(PORT) };

	if (fd < 0)
		return fail("socket", "raise the limit of open files");
	if (socket_buffer(fd, SO_RCVBUF, SO_RCVBUFFORCE) ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at))) {
		(void)fail("receiving socket", "needs CAP_NET_BIND_SERVICE in "
					       "its own namespace");
		close(fd);
		return -1;
	}
	return fd;
}

/* One for each flow, and one for each kind of stray packet. */
static int senders_open(int *senders, uint32_t flows)
{
	for (uint32_t i = 0; i < flows; i++) {
		senders[i] = sender_open(SINK_NET + i, SOCK_DGRAM, 0, TTL);
		if (senders[i] < 0)
			return -1;
	}
	senders += flows;
	senders[0] = sender_open(SINK_NET, SOCK_DGRAM, 0, 1);
	senders[1] = sender_open(SINK_NET + FLOWS_MAX, SOCK_DGRAM, 0, TTL);
	senders[2] = sender_open(SINK_NET, SOCK_RAW, IPPROTO_ICMP, TTL);
	return senders[0] < 0 || senders[1] < 0 || senders[2] < 0 ? -1 : 0;
}

static int open_side_a(struct wires *wires, const struct options *opt)
{
	char name[] = "tun0";

	for (uint32_t i = 0; i < opt->workers; i++) {
		wires->tun0[i] = tun_queue(name, opt->workers > 1, O_NONBLOCK);
		if (wires->tun0[i] < 0)
			return -1;
	}
	if (queue_length(name, TUN_QUEUE) || interface_up(name, SOURCE_ADDR) ||
	    route_add(name, SINK_NET))
		return -1;
	return senders_open(wires->senders, opt->flows);
}

static int open_side_b(struct wires *wires)
{
	wires->tun1 = tun_queue("tun1", false, 0);
	if (wires->tun1 < 0 || interface_up("tun1", SINK_ADDR) ||
	    interface_up("lo", SINK_NET + 1))
		return -1;
	wires->receiver = receiver_open();
	return wires->receiver < 0 ? -1 : 0;
}

int wires_open(struct wires *wires, const struct options *opt)
{
	size_t bytes = (opt->flows + STRAYS) * sizeof(*wires->senders);

	memset(wires->tun0, -1, sizeof(wires->tun0));
	wires->tun1 = wires->receiver = -1;
	wires->senders = malloc(bytes);
	if (!wires->senders)
		return fail("memory", "give fewer --flows");
	memset(wires->senders, -1, bytes);
	if (enter_first_namespace() || open_side_a(wires, opt))
		return -1;
	if (unshare(CLONE_NEWNET))
		return fail("second network namespace",
			    "raise sysctl user.max_net_namespaces");
	return open_side_b(wires);
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void wires_close(struct wires *wires, const struct options *opt)
{
	for (uint32_t i = 0; wires->senders && i < opt->flows + STRAYS; i++)
		close_fd(wires->senders[i]);
	free(wires->senders);
	for (uint32_t i = 0; i < WORKERS_MAX; i++)
		close_fd(wires->tun0[i]);
	close_fd(wires->tun1);
	close_fd(wires->receiver);
}
