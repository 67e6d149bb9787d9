/* SPDX-License-Identifier: MIT */
/*
 * --csv: a line for each row, as RFC 4180 has it; nothing between the commas
 * where a value was not measured. The columns are the same for all tables, so
 * a table's own counters stand in one of them, as NAME=VALUE.
 */
#include "harness.h"

#include <math.h>

static void text(FILE *out, const char *s)
{
	fputc('"', out);
	for (; *s; s++) {
		if (*s == '"')
			fputc('"', out);
		fputc(*s, out);
	}
	fputs("\",", out);
}

static void number(FILE *out, double x)
{
	if (isfinite(x))
		fprintf(out, "%.6g", x);
	fputc(',', out);
}

static void counters(FILE *out, const struct bench_row *r)
{
	const char *blank = "";

	fputc('"', out);
	for (size_t i = 0; i < BENCH_COUNTERS; i++) {
		if (!r->table->counters[i] || !isfinite(r->counter[i]))
			continue;
		fprintf(out, "%s%s=%.6g", blank, r->table->counters[i],
			r->counter[i]);
		blank = " ";
	}
	fputs("\"\n", out);
}

static void row(FILE *out, const char *experiment, const struct bench_row *r)
{
	text(out, experiment);
	text(out, r->table->name);
	text(out, r->variant->name);
	fprintf(out, "%u,%u,%u,%zu,", r->threads, r->oversubscribed,
		r->unpinned, r->runs);
	text(out, r->table->unit);
	number(out, r->median);
	number(out, r->q1);
	number(out, r->q3);
	number(out, r->min);
	text(out, r->table->variants[r->table->baseline].name);
	number(out, r->ratio);
	number(out, r->ratio_q1);
	number(out, r->ratio_q3);
	number(out, r->fairness);
	number(out, r->fastest);
	number(out, r->slowest);
	counters(out, r);
}

int csv_write(FILE *out, const struct session *s)
{
	const struct options *o = s->options;

	fputs("experiment,table,variant,threads,oversubscribed,unpinned,runs,"
	      "unit,"
	      "median,q1,q3,min,baseline,ratio,ratio_q1,ratio_q3,fairness,"
	      "thread_min_ns,thread_max_ns,counters\n",
	      out);
	for (size_t i = 0; i < o->count; i++)
		for (size_t j = 0; j < o->chosen[i]->count; j++)
			for (size_t k = 0; k < s->outcomes[i][j].count; k++)
				row(out, o->chosen[i]->name,
				    &s->outcomes[i][j].rows[k]);
	return ferror(out) ? -1 : 0;
}
