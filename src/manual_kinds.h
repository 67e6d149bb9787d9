/* SPDX-License-Identifier: MIT */
/*
 * Not part of the library: preprocessed, it is the list of the kinds of
 * report from which src/manual.awk makes the table of dstref_report(3).
 */
#include <dstref/report.h>

#define MANUAL_KIND(name, text, cause) KIND text CAUSE cause

DSTREF_REPORT_KINDS(MANUAL_KIND)
