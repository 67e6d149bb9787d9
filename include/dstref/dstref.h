/* SPDX-License-Identifier: MIT */
/**
 * DOC: dstref - the umbrella: includes only
 */
#ifndef DSTREF_DSTREF_H
#define DSTREF_DSTREF_H

#include <dstref/atomic.h>
#include <dstref/config.h>
#include <dstref/count.h>
#include <dstref/dst.h>
#include <dstref/line.h>
#include <dstref/net.h>
#include <dstref/report.h>
#include <dstref/skb.h>
#include <dstref/sock.h>
#include <dstref/split.h>
#include <dstref/wmem.h>

#endif
