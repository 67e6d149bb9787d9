/* SPDX-License-Identifier: MIT */
/*
 * align - objects on their lines, whatever the memory comes from (C21 to C23)
 *
 * Goal: an allocator that returns the worst addresses there are, 8 off a
 * boundary of 16, either serves objects that start on their lines or is
 * refused. Method: an arena of such addresses. 1000 routes and socks are
 * aligned by DSTREF_LINE_ROUND and must come to life; the raw addresses must
 * be refused; slots need no line, and stay where they are. The same arena is
 * then the namespace's own memory hook, with and without keeping its promise.
 * align.sh builds this for each line size, with UBSan, and once with another
 * line size than the library's, which must be refused in words.
 */
#define URCU_API_MAP
#include <urcu/urcu-memb.h>

#include <dstref/dstref.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OBJECTS 1000
#define CHECK(cond) check(cond, #cond, __LINE__)

static void check(bool ok, const char *what, int line)
{
	if (ok)
		return;
	fprintf(stderr, "align.c:%d: %s does not hold\n", line, what);
	exit(1);
}

static bool on_line(const void *ptr)
{
	return (uintptr_t)ptr % DSTREF_LINE_SIZE == 0;
}

/* The arena: addresses 8 off a boundary of 16, given back all at once. */
static unsigned char *arena, *next;
static const size_t arena_size = (size_t)8 << 20;

static void *odd_alloc(size_t size)
{
	unsigned char *ptr = next + 8;

	next += (size + 8 + 15) / 16 * 16;
	CHECK(next <= arena + arena_size);
	CHECK((uintptr_t)ptr % 16 == 8);
	return ptr;
}

static void *line_alloc(size_t size)
{
	uintptr_t ptr = (uintptr_t)odd_alloc(size + DSTREF_LINE_SIZE);

	return (void *)DSTREF_LINE_ROUND(ptr);
}

/* A route that has more before its dst than the dst's line would bear. */
struct route {
	char name[20];
	struct dstref_dst dst;
	uint32_t next_hop;
};

static unsigned int destroyed;

static void route_destroy(struct dstref_dst *dst)
{
	CHECK(on_line(dst));
	destroyed++;
}

static void sock_destroy(struct dstref_sock *sk)
{
	CHECK(on_line(sk));
	destroyed++;
}

static const struct dstref_dst_ops ops = { "route", route_destroy, NULL };
/* A size that is no multiple of a line. */
static const struct dstref_sock_proto proto = {
	"sock", sizeof(struct dstref_sock) + 20, NULL, sock_destroy, NULL,
};

static void routes(struct dstref_net *net)
{
	struct dstref_dst_slot *slots =
		odd_alloc(OBJECTS * sizeof(struct dstref_dst_slot));

	memset(slots, 0, OBJECTS * sizeof(*slots));
	for (int i = 0; i < OBJECTS; i++) {
		struct route *route = line_alloc(sizeof(*route));

		CHECK(on_line(&route->dst));
		CHECK(on_line(&route->dst.count));
		CHECK(dstref_dst_init(&route->dst, net, &ops, NULL, 0) == 0);
		dstref_dst_slot_install(&slots[i], &route->dst);
		CHECK(dstref_dst_init(odd_alloc(sizeof(struct dstref_dst)), net,
				      &ops, NULL, 0) == -EINVAL);
	}
	CHECK(dstref_dst_init(NULL, net, &ops, NULL, 0) == -EINVAL);
	for (int i = 0; i < OBJECTS; i++)
		dstref_dst_slot_clear(&slots[i]);
}

static void socks(struct dstref_net *net)
{
	for (int i = 0; i < OBJECTS; i++) {
		struct dstref_sock *sk = line_alloc(proto.size);

		CHECK(on_line(&sk->wmem) && on_line(&sk->rmem));
		CHECK(dstref_sock_init(sk, net, &proto) == 0);
		dstref_sock_put_outside(sk);
		CHECK(dstref_sock_init(odd_alloc(proto.size), net, &proto) ==
		      -EINVAL);
	}
	CHECK(dstref_sock_init(NULL, net, &proto) == -EINVAL);
}

/* C22: no two elements of an array share a line. */
static void neighbours(void)
{
	static struct dstref_dst dsts[64];
	static struct route routes[64];

	CHECK(on_line(dsts) && on_line(routes));
	for (int i = 1; i < 64; i++) {
		uintptr_t end = (uintptr_t)&dsts[i] - 1;

		CHECK((uintptr_t)&dsts[i] / DSTREF_LINE_SIZE !=
		      end / DSTREF_LINE_SIZE);
		end = (uintptr_t)&routes[i - 1].next_hop;
		CHECK((uintptr_t)&routes[i].name / DSTREF_LINE_SIZE !=
		      end / DSTREF_LINE_SIZE);
	}
	CHECK(DSTREF_LINE_ROUND(0) == 0);
	CHECK(DSTREF_LINE_ROUND(1) == DSTREF_LINE_SIZE);
	CHECK(DSTREF_LINE_ROUND(DSTREF_LINE_SIZE) == DSTREF_LINE_SIZE);
}

/* The arena as a namespace's memory: what it asked for, what it gets. */
enum mode { LINES, ODD, NONE };
static enum mode mode;
static unsigned int given;

static void *hook_alloc(void *ctx, size_t size, size_t align, int node)
{
	(void)ctx;
	(void)node;
	CHECK(align == DSTREF_LINE_SIZE);
	CHECK(size % DSTREF_LINE_SIZE == 0);
	if (mode == NONE)
		return NULL;
	given++;
	return mode == LINES ? line_alloc(size) : odd_alloc(size);
}

static void hook_free(void *ctx, void *ptr, size_t size)
{
	(void)ctx;
	(void)ptr;
	CHECK(size % DSTREF_LINE_SIZE == 0);
	given--;
}

static void hooks(void)
{
	struct dstref_net_attr attr = {
		.flavour = &rcu_flavor,
		.mem = { hook_alloc, hook_free, NULL },
	};
	struct dstref_net *net = NULL;
	struct dstref_sock *sk = NULL;

	for (mode = ODD; mode <= NONE; mode++)
		CHECK(dstref_net_create(&net, &attr) == -ENOMEM && !net);
	mode = LINES;
	CHECK(dstref_net_create(&net, &attr) == 0 && on_line(net));
	for (mode = ODD; mode <= NONE; mode++)
		CHECK(dstref_sock_alloc(&sk, net, &proto) == -ENOMEM && !sk);
	mode = LINES;
	CHECK(dstref_sock_alloc(&sk, net, &proto) == 0 && on_line(sk));
	dstref_sock_put_outside(sk);
	CHECK(dstref_net_barrier(net, -1) == 0);
	CHECK(dstref_net_destroy(net) == 0);
	CHECK(given == 0);
}

/* A program of another line size: refused, with both sizes in the report. */
static bool refused;

static void hook(const struct dstref_report *report, void *ctx)
{
	char want[64];

	(void)ctx;
	CHECK(report->kind == DSTREF_REPORT_ABI_MISMATCH);
	snprintf(want, sizeof(want), "lines of %u,", DSTREF_LINE_SIZE);
	CHECK(report->text && strstr(report->text, want));
	snprintf(want, sizeof(want), "lines of %u", dstref_line_size());
	CHECK(strstr(strstr(report->text, "library"), want));
	refused = true;
}

static int mismatch(const struct dstref_net_attr *attr)
{
	static const struct dstref_report_hook told = { hook, NULL };
	struct dstref_net *net = NULL;

	dstref_report_set_hook(&told);
	CHECK(dstref_net_create(&net, attr) == -EPROTO && !net);
	CHECK(refused);
	puts("refused");
	return 0;
}

int main(void)
{
	struct dstref_net_attr attr = { .flavour = &rcu_flavor };
	struct dstref_net *net;

	rcu_register_thread();
	if (dstref_line_size() != DSTREF_LINE_SIZE)
		return mismatch(&attr);
	arena = aligned_alloc(16, arena_size);
	next = arena;
	CHECK(arena);
	CHECK(dstref_net_create(&net, &attr) == 0);
	routes(net);
	socks(net);
	CHECK(dstref_net_barrier(net, -1) == 0);
	CHECK(dstref_net_destroy(net) == 0);
	CHECK(destroyed == 2 * OBJECTS);
	neighbours();
	hooks();
	/* The odd addresses of hooks(), and nothing else. */
	CHECK(dstref_report_count(DSTREF_REPORT_NET_MEMORY) == 2);
	CHECK(dstref_report_total() == 2);
	free(arena);
	rcu_unregister_thread();
	printf("%u objects on lines of %d\n", destroyed, DSTREF_LINE_SIZE);
	return 0;
}
