/* SPDX-License-Identifier: MIT */
/*
 * Not part of the library: preprocessed, these are the lists of which
 * src/manual.awk makes tables: the kinds of report of dstref_report(3), and
 * who reads and writes the fields of dstref_net(3), dstref_dst(3) and
 * dstref_sock(3).
 */
#include <dstref/dstref.h>

#define MANUAL_KIND(name, text, cause) KIND text CAUSE cause
#define MANUAL_FIELD(type, member, group, receive, transmit, completion, \
		     control)                                            \
	FIELD type member group receive transmit completion control END

DSTREF_REPORT_KINDS(MANUAL_KIND)
DSTREF_NET_FIELDS(MANUAL_FIELD)
DSTREF_DST_FIELDS(MANUAL_FIELD)
DSTREF_SOCK_FIELDS(MANUAL_FIELD)
