/* SPDX-License-Identifier: MIT */
/* The models of bench/history, whose offsets are asserted beside them. */
#include "../../bench/history/route_2012.h"
#include "../../bench/history/row_2022.h"

struct history {
	struct route_2008_before before_2008;
	struct route_2008_padded padded_2008;
	struct route_2012_before before_2012;
	struct route_2012_after after_2012;
	struct net_2022_before before_2022;
	struct net_2022_proposed proposed_2022;
	struct net_2022_since since_2022;
};

DSTREF_STATIC_ASSERT(sizeof(struct history) > 0, "all are complete");
