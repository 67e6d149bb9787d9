/* SPDX-License-Identifier: MIT */
/*
 * The tables that people read. The text is the same on a terminal and in a
 * pipe: columns as wide as what is in them, no control sequences.
 *
 * A row has its values, and after them what must not be missed: more threads
 * than CPUs, threads that did not run where they were told, a run that
 * failed, and quartiles that lie so far apart that the median alone would
 * mislead.
 */
#include "harness.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define CELL 64
#define LINE 80 /* that text is broken to; tables are as wide as they are */
#define MARGIN 11
#define WIDE 1.5 /* q3 by q1, from where on a row is remarked on */

/* Columns that every table has; counters, notes and remarks follow. */
enum { NAME, THREADS, MEDIAN, QUARTILES, MIN, THREAD, FAIR, RATIO, OWN };

struct grid {
	size_t columns, rows; /* the first is the heading */
	size_t left; /* columns from here on are aligned to the left */
	char (*cell)[CELL];
};

static char *cell(const struct grid *grid, size_t row, size_t column)
{
	return grid->cell[row * grid->columns + column];
}

__attribute__((format(printf, 4, 5))) static void
put(const struct grid *grid, size_t row, size_t column, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(cell(grid, row, column), CELL, format, args);
	va_end(args);
}

static int width(const struct grid *grid, size_t column)
{
	size_t widest = 0;

	for (size_t row = 0; row < grid->rows; row++) {
		size_t len = strlen(cell(grid, row, column));

		widest = len > widest ? len : widest;
	}
	return (int)widest;
}

static void print_line(FILE *out, const struct grid *grid, size_t row,
		       const int *widths)
{
	int pending = 0; /* blanks, which no line ends in */

	for (size_t i = 0; i < grid->columns; i++) {
		const char *text = cell(grid, row, i);
		int blanks = widths[i] - (int)strlen(text);
		bool left = i == NAME || i >= grid->left;

		if (!widths[i])
			continue;
		pending += left ? 0 : blanks;
		if (*text)
			pending = (fprintf(out, "%*s%s", pending, "", text), 0);
		pending += (left ? blanks : 0) + 2;
	}
	fputc('\n', out);
}

static void grid_print(FILE *out, const struct grid *grid)
{
	int *widths = calloc(grid->columns, sizeof(*widths));

	for (size_t i = 0; widths && i < grid->columns; i++)
		widths[i] = width(grid, i);
	for (size_t row = 0; widths && row < grid->rows; row++)
		print_line(out, grid, row, widths);
	free(widths);
}

/* Three digits, or so. */
static const char *figure(double x, char buf[static 16])
{
	if (!isfinite(x))
		return "-";
	snprintf(buf, 16, "%.*f", x < 9.995 ? 2 : x < 99.95 ? 1 : 0, x);
	return buf;
}

static void put_figure(const struct grid *grid, size_t row, size_t column,
		       double x)
{
	char buf[16];

	put(grid, row, column, "%s", figure(x, buf));
}

static void put_span(const struct grid *grid, size_t row, size_t column,
		     double from, double to)
{
	char a[16], b[16];

	if (isfinite(from) && isfinite(to))
		put(grid, row, column, "%s-%s", figure(from, a), figure(to, b));
	else
		put(grid, row, column, "-");
}

static void put_ratio(const struct grid *grid, size_t row,
		      const struct bench_row *r)
{
	char m[16], a[16], b[16];

	if (r->variant == &r->table->variants[r->table->baseline])
		put(grid, row, RATIO, "baseline");
	else if (isfinite(r->ratio))
		put(grid, row, RATIO, "%s (%s-%s)", figure(r->ratio, m),
		    figure(r->ratio_q1, a), figure(r->ratio_q3, b));
	else
		put(grid, row, RATIO, "-");
}

/*
 * Quartiles far apart: two modes when no value lies in the middle third
 * between them, else simply wide.
 */
static const char *spread(const struct bench_row *r,
			  const struct sample *samples, unsigned int runs)
{
	double third = (r->q3 - r->q1) / 3;

	if (!(r->q3 > WIDE * r->q1))
		return "";
	for (unsigned int i = 0; i < runs; i++)
		if (samples[i].value > r->q1 + third &&
		    samples[i].value < r->q3 - third)
			return "wide";
	return "bimodal";
}

static void remark(char *to, const char *format, unsigned int n)
{
	size_t len = strlen(to);

	len += (size_t)snprintf(to + len, CELL - len, "%s", len ? ", " : "");
	snprintf(to + len, CELL - len, format, n);
}

static void put_remarks(const struct grid *grid, size_t row,
			const struct bench_row *r, const struct sample *samples,
			unsigned int runs)
{
	char *to = cell(grid, row, grid->columns - 1);
	const char *wide = spread(r, samples, runs);
	int error = 0;

	for (unsigned int i = 0; i < runs; i++)
		if (samples[i].error)
			error = -samples[i].error;
	if (error)
		put(grid, row, grid->columns - 1, "%.40s", strerror(error));
	if (r->oversubscribed)
		remark(to, "oversubscribed", 0);
	if (r->unpinned)
		remark(to, "%u not pinned", r->unpinned);
	if (*wide)
		remark(to, wide, 0);
}

static size_t count_notes(const struct bench_table *table)
{
	size_t n = 0;

	while (table->notes && table->notes[n])
		n++;
	return n;
}

static size_t count_counters(const struct bench_table *table)
{
	size_t n = 0;

	for (size_t i = 0; i < BENCH_COUNTERS; i++)
		n += table->counters[i] != NULL;
	return n;
}

static void fill_heading(const struct grid *grid,
			 const struct bench_table *table)
{
	static const char *const heads[OWN] = { "variant", "threads",
						"median",  "q1-q3",
						"min",	   "thread ns",
						"fair",	   "ratio" };
	size_t column = 0;

	for (; column < OWN; column++)
		put(grid, 0, column, "%s", heads[column]);
	for (size_t i = 0; i < BENCH_COUNTERS; i++)
		if (table->counters[i])
			put(grid, 0, column++, "%s/op", table->counters[i]);
	for (size_t i = 0; table->notes && table->notes[i]; i++)
		put(grid, 0, column++, "%s", table->notes[i]);
}

static void fill_own(const struct grid *grid, size_t row,
		     const struct bench_row *r)
{
	const struct bench_table *table = r->table;
	const char *const *note = r->variant->note;
	size_t column = OWN;

	for (size_t i = 0; i < BENCH_COUNTERS; i++)
		if (table->counters[i])
			put_figure(grid, row, column++, r->counter[i]);
	for (size_t i = 0; note && i < count_notes(table); i++)
		put(grid, row, column++, "%s", note[i] ? note[i] : "");
}

static void fill_row(const struct grid *grid, size_t row,
		     const struct bench_row *r)
{
	put(grid, row, NAME, "%s", r->variant->name);
	put(grid, row, THREADS, "%u", r->threads);
	put_figure(grid, row, MEDIAN, r->median);
	put_span(grid, row, QUARTILES, r->q1, r->q3);
	put_figure(grid, row, MIN, r->min);
	put_figure(grid, row, FAIR, r->threads > 1 ? r->fairness : NAN);
	if (r->threads > 1)
		put_span(grid, row, THREAD, r->fastest, r->slowest);
	put_ratio(grid, row, r);
	fill_own(grid, row, r);
}

/* Rows by number of threads, so that what is compared stands together. */
static void table_body(FILE *out, const struct outcome *o)
{
	const struct bench_table *table = o->table;
	size_t counts = o->count / table->count;
	size_t counters = count_counters(table);
	struct grid grid = {
		.columns = OWN + counters + count_notes(table) + 1,
		.rows = o->count + 1,
		.left = OWN + counters,
	};

	grid.cell = calloc(grid.rows * grid.columns, CELL);
	if (!grid.cell)
		return;
	fill_heading(&grid, table);
	for (size_t i = 0; i < o->count; i++) {
		size_t at = i % table->count * counts + i / table->count;

		fill_row(&grid, i + 1, &o->rows[at]);
		put_remarks(&grid, i + 1, &o->rows[at],
			    &o->samples[at * o->runs], o->runs);
	}
	grid_print(out, &grid);
	free(grid.cell);
}

void table_print(FILE *out, const struct bench_experiment *experiment,
		 const struct outcome *o)
{
	const struct bench_table *table = o->table;

	fprintf(out, "\n%s/%s: %s\n", experiment->name, table->name,
		table->title);
	if (o->skipped) {
		fprintf(out, "not measured: %s\n", o->skipped);
		return;
	}
	fprintf(out, "%s, %s is better; %u runs; ratio to %s\n", table->unit,
		table->more_is_better ? "more" : "less", o->runs,
		table->variants[table->baseline].name);
	table_body(out, o);
}

/* How much of @text goes on a line of @room: up to a blank, if there is one. */
static int line_length(const char *text, int room)
{
	int len = (int)strcspn(text, "\n"), at = room;

	if (len <= room)
		return len;
	while (at > 0 && text[at] != ' ')
		at--;
	return at ? at : room;
}

/* Text of one line or more, broken at blanks, each line after a margin. */
static void print_text(FILE *out, const char *label, const char *text)
{
	while (text && *text) {
		int len = line_length(text, LINE - MARGIN);

		fprintf(out, "%-*s%.*s\n", MARGIN, label, len, text);
		text += len;
		text += *text == '\n' || *text == ' ';
		label = "";
	}
}

void table_print_head(FILE *out, const struct bench_experiment *experiment)
{
	fprintf(out, "\n== %s ==\n", experiment->name);
	print_text(out, "question", experiment->question);
	print_text(out, "seed", experiment->seed);
	print_text(out, "published", experiment->published);
	print_text(out, "measured", experiment->measured);
}
