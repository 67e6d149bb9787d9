/* SPDX-License-Identifier: MIT */
/*
 * The script for one table. A table that was measured with three numbers of
 * threads or more is drawn as lines over them, a line for each variant. With
 * one or two numbers a line shows nothing, and a dozen of them hide each
 * other: then each variant has a row, with a dot for each number of threads.
 * A bar is what lies between the quartiles.
 *
 * An axis starts at zero, unless the medians differ by more than a factor of
 * LOG_FROM: then the small ones would lie on the axis, and it is logarithmic.
 * Where there are more threads than CPUs a line says so.
 *
 * Texts come from a file that anybody may have written. In single quotes
 * gnuplot takes every character as it is but the quote, which is doubled, and
 * the end of a line, which is left out.
 */
#include "picture.h"
#include "stats.h"

#include <stdlib.h>
#include <string.h>

#define LOG_FROM 20
#define COLOURS 8

/* Told apart by most who see colours differently; after Okabe and Ito. */
static const char *const colours[COLOURS] = {
	"#0072B2", "#D55E00", "#009E73", "#CC79A7",
	"#E69F00", "#56B4E9", "#000000", "#7F7F7F",
};

const char *picture_suffix(enum picture_format format)
{
	return format == PICTURE_SVG ? ".svg" : ".png";
}

static void put_escaped(FILE *out, const char *text, const char *doubled)
{
	putc('\'', out);
	for (; *text; text++) {
		if (strchr(doubled, *text))
			putc(*text, out);
		if ((unsigned char)*text >= ' ')
			putc(*text, out);
	}
	putc('\'', out);
}

static void put_text(FILE *out, const char *text)
{
	put_escaped(out, text, "'");
}

/* What stands at an axis is a format. */
static void put_tic(FILE *out, const char *text)
{
	put_escaped(out, text, "'%");
}

static double quantile(const struct result_row *row, double q)
{
	return stats_quantile(row->values, row->count, q);
}

/* By threads, then as in the file. */
static int by_threads(const void *a, const void *b)
{
	const struct result_row *x = *(const struct result_row *const *)a;
	const struct result_row *y = *(const struct result_row *const *)b;

	if (x->threads != y->threads)
		return x->threads < y->threads ? -1 : 1;
	return (x > y) - (x < y);
}

/* Whether row @i is the first of its variant. */
static bool opens_variant(const struct picture *picture, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(picture->rows[k]->variant,
			    picture->rows[i]->variant))
			return false;
	return true;
}

static size_t variants(const struct picture *picture)
{
	size_t n = 0;

	for (size_t i = 0; i < picture->count; i++)
		n += opens_variant(picture, i);
	return n;
}

static void put_value_axis(FILE *out, const struct picture *picture, char axis)
{
	double least = quantile(picture->rows[0], 0.5), most = least;
	const char *unit = picture->rows[0]->unit;

	for (size_t i = 1; i < picture->count; i++) {
		double median = quantile(picture->rows[i], 0.5);

		least = median < least ? median : least;
		most = median > most ? median : most;
	}
	if (least > 0 && most / least > LOG_FROM)
		fprintf(out, "set logscale %c\n", axis);
	else
		fprintf(out, "set %crange [0:%s]\n", axis,
			most > 0 ? "*" : "1");
	fprintf(out, "set %clabel ", axis);
	put_text(out, strcmp(unit, "ns") ? unit : "ns per operation");
	fprintf(out, "\nset grid %ctics lt 1 lc rgb '#dddddd'\n", axis);
}

static void put_head(FILE *out, const struct picture *picture,
		     enum picture_format format, size_t height)
{
	const struct results *results = picture->results;

	fprintf(out,
		"set encoding utf8\nset terminal %s size %d,%zu noenhanced "
		"font 'sans,%d' "
		"background 'white'\n",
		format == PICTURE_SVG ? "svg" : "pngcairo", 960, height,
		format == PICTURE_SVG ? 13 : 10);
	fputs("set title ", out);
	put_text(out, picture->rows[0]->title);
	fputs("\nset label ", out);
	put_text(out, results->where);
	fputs(".' (medians and quartiles)' at screen 0.01,character 1 left tc "
	      "rgb '#666666'\n"
	      "set border 3\nset tics nomirror\nset errorbars small\n"
	      "set bmargin 5\n",
	      out);
}

static void put_row(FILE *out, double place, const struct result_row *row)
{
	fprintf(out, "%g %.9g %.9g %.9g\n", place, quantile(row, 0.5),
		quantile(row, 0.25), quantile(row, 0.75));
}

/* How many numbers of threads there are; the rows are sorted by them. */
static size_t thread_counts(const struct picture *picture)
{
	size_t n = 1;

	for (size_t i = 1; i < picture->count; i++)
		n += picture->rows[i]->threads != picture->rows[i - 1]->threads;
	return n;
}

/* ---- dots: one or two numbers of threads ---- */
/* The place of a row's variant among the variants. */
static size_t place(const struct picture *picture, size_t row)
{
	size_t n = 0;

	for (size_t i = 0; strcmp(picture->rows[i]->variant,
				  picture->rows[row]->variant) != 0;
	     i++)
		n += opens_variant(picture, i);
	return n;
}

static void put_variant_axis(FILE *out, const struct picture *picture)
{
	size_t n = 0;

	fputs("set ytics scale 0 (", out);
	for (size_t i = 0; i < picture->count; i++) {
		if (!opens_variant(picture, i))
			continue;
		fputs(n ? ", " : "", out);
		put_tic(out, picture->rows[i]->variant);
		fprintf(out, " %zu", n++);
	}
	fprintf(out,
		")\nset yrange [%zu.5:-0.5]\nset border 1\n"
		"set rmargin 10\n"
		"set key at screen 0.99,character 1.5 right bottom "
		"horizontal\n",
		n - 1);
}

static void put_dots(FILE *out, const struct picture *picture)
{
	size_t counts = thread_counts(picture), series = 0;

	put_variant_axis(out, picture);
	for (size_t i = 0; i < picture->count; i++) {
		if (!i ||
		    picture->rows[i]->threads != picture->rows[i - 1]->threads)
			fprintf(out, "%s$dots%zu << END\n", i ? "END\n" : "",
				series++);
		put_row(out,
			(double)place(picture, i) +
				0.28 * (double)(series - 1) -
				0.14 * (double)(counts - 1),
			picture->rows[i]);
	}
	fputs("END\nnumber(x) = sprintf(x < 999.5 ? '%.3g' : '%.0f', x)\nplot",
	      out);
	for (size_t i = 0; i < counts; i++)
		fprintf(out,
			"%s $dots%zu using 2:1:3:4 with xerrorbars pt 7 ps 1 "
			"lw 2 lc rgb '%s' title '%u thread%s', "
			"$dots%zu using 4:1:(number($2)) with labels "
			"left offset 0.7,0 notitle",
			i ? "," : "", i, colours[i],
			picture->rows[i ? picture->count - 1 : 0]->threads,
			picture->rows[i ? picture->count - 1 : 0]->threads == 1
				? ""
				: "s",
			i);
	putc('\n', out);
}

/* ---- lines: over the numbers of threads ---- */
/* Steps that double are best seen evenly spaced. */
static bool doubles(const struct picture *picture)
{
	unsigned int last = picture->rows[picture->count - 1]->threads;
	unsigned int before = 0;

	for (size_t i = 0; i < picture->count; i++)
		if (picture->rows[i]->threads < last)
			before = picture->rows[i]->threads;
	return last >= 8 && before <= last / 2;
}

static void put_threads_axis(FILE *out, const struct picture *picture)
{
	unsigned int first = picture->rows[0]->threads;
	unsigned int last = picture->rows[picture->count - 1]->threads;
	unsigned int cpus = picture->results->cpus, before = 0;

	fputs("set xlabel 'threads'\nset xtics (", out);
	for (size_t i = 0; i < picture->count; i++) {
		unsigned int threads = picture->rows[i]->threads;

		if (threads != before)
			fprintf(out, "%s%u", before ? ", " : "", threads);
		before = threads;
	}
	fputs(")\n", out);
	if (doubles(picture))
		fprintf(out, "set logscale x 2\nset xrange [%g:%g]\n",
			first / 1.1, last * 1.1);
	else
		fprintf(out, "set xrange [%g:%g]\n",
			first - 0.05 * (last - first),
			last + 0.05 * (last - first));
	if (cpus && last > cpus && first <= cpus)
		fprintf(out,
			"set arrow from %u,graph 0 to %u,graph 1 nohead dt 3"
			" lc rgb '#666666'\n"
			"set label ' more threads than CPUs' at %u,graph 0.97"
			" left tc rgb '#666666'\n",
			cpus, cpus, cpus);
}

static void put_line(FILE *out, const struct picture *picture, size_t first)
{
	const char *variant = picture->rows[first]->variant;

	fprintf(out, "$line%zu << END\n", first);
	for (size_t i = first; i < picture->count; i++)
		if (!strcmp(picture->rows[i]->variant, variant))
			put_row(out, picture->rows[i]->threads,
				picture->rows[i]);
	fputs("END\n", out);
}

static void put_lines(FILE *out, const struct picture *picture)
{
	size_t n = 0;

	put_threads_axis(out, picture);
	fputs("set key outside right top reverse Left samplen 2\n", out);
	for (size_t i = 0; i < picture->count; i++)
		if (opens_variant(picture, i))
			put_line(out, picture, i);
	for (size_t i = 0; i < picture->count; i++) {
		if (!opens_variant(picture, i))
			continue;
		fprintf(out,
			"%s $line%zu using 1:2:3:4 with yerrorlines lw 2"
			" ps 1 pt %zu dt %zu lc rgb '%s' title ",
			n ? ", \\\n" : "plot", i, 4 + n % 10, 1 + n / COLOURS,
			colours[n % COLOURS]);
		put_text(out, picture->rows[i]->variant);
		n++;
	}
	putc('\n', out);
}

void picture_script(FILE *script, const struct picture *picture,
		    enum picture_format format)
{
	size_t counts;

	qsort(picture->rows, picture->count, sizeof(*picture->rows),
	      by_threads);
	counts = thread_counts(picture);
	if (counts > 2) {
		put_head(script, picture, format, 560);
		put_value_axis(script, picture, 'y');
		put_lines(script, picture);
	} else {
		put_head(script, picture, format,
			 150 + (14 + 20 * counts) * variants(picture));
		put_value_axis(script, picture, 'x');
		put_dots(script, picture);
	}
}
