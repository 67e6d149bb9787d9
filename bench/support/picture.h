/* SPDX-License-Identifier: MIT */
/*
 * picture - a table as a script for gnuplot
 */
#ifndef BENCH_PICTURE_H
#define BENCH_PICTURE_H

#include "results.h"

#include <stdio.h>

struct picture {
	const struct results *results;
	const struct result_row **rows; /* of one table */
	size_t count; /* of them, at least 1 */
};

/* Which gnuplot terminals there are pictures for. */
enum picture_format { PICTURE_SVG, PICTURE_PNG, PICTURE_FORMATS };

/* The end of a file's name. */
const char *picture_suffix(enum picture_format format);

/* The script; the picture is what gnuplot writes to its standard output. */
void picture_script(FILE *script, const struct picture *picture,
		    enum picture_format format);

#endif
