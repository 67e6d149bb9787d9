/* SPDX-License-Identifier: MIT */
#include <dstref/dstref.h>
#include <stdio.h>
#include <urcu/urcu-qsbr.h>

static void gone(struct dstref_dst *dst)
{
	printf("the route by %s is gone\n", (const char *)dst->dev);
}

int main(void)
{
	static struct dstref_dst route; /* embedded in your own route */
	struct dstref_skb skb = { { 0 }, 0, 0, 1500 }; /* in your packet */
	struct dstref_sock *sk; /* at the head of your own socket */
	struct dstref_net *ns;
	struct dstref_net_attr attr = { &urcu_qsbr_flavor, { 0, 0, 0 }, 0, 0 };
	struct dstref_dst_ops ops = { "route", gone, 0 };
	struct dstref_sock_proto udp = { "udp", sizeof(*sk), 0, 0, 0 };
	urcu_qsbr_register_thread(); /* from here on inside a reader */
	if (dstref_net_create(&ns, &attr) || dstref_sock_alloc(&sk, ns, &udp) ||
	    dstref_dst_init(&route, ns, &ops, (void *)"eth0", 0))
		return 1;
	dstref_dst_slot_install(&sk->dst, &route);
	dstref_skb_dst_set_noref(&skb, dstref_dst_slot_borrow(&sk->dst));
	dstref_skb_set_owner_w(&skb, sk); /* 1500 bytes are charged */
	dstref_skb_free(&skb);
	dstref_sock_put(sk);
	return dstref_net_destroy(ns) != 0;
}
