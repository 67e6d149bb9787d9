/* SPDX-License-Identifier: MIT */
/*
 * cold - what a light load pays: its packet finds nothing in the caches
 *
 * A throughput run keeps everything hot, and there a pointer more costs a
 * cycle. Most real traffic is light, and each packet brings its lines in from
 * memory: what counts is how many, one after another. support/cold.c makes
 * objects cold and times the visits to them; the parts in experiments/cold
 * say what an object is and what a packet does to it.
 *
 * A value is the median over the passes of a run, and a row has the same
 * visits hot beside it, from the same passes. Where cold is not COLD_RATIO
 * times as dear as hot, the pass is counted as warm, and a row with more than
 * a few of those is called out below the tables: something kept the lines, and
 * its value is not what it says.
 *
 * In `written` two threads take turns: one asks, the other writes to each
 * object, and then the first one times its visits. Pairs: the writer gives the
 * turn back with release (R1), the asker takes it with acquire (A1), so that
 * no write is still to come when the visits begin; and the same the other way
 * (R2, A2), so that none is made before they have ended.
 */
#include "cold/shape.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include <dstref/atomic.h>

#define WARM_SHARE 0.05 /* of the passes; what is above is called out */
#define SPINS 1000 /* before the CPU is given to others */

/* A test has another. */
static const struct cold_flush *(*find_flush)(void) = cold_flush_of_machine;
static struct cold_way way; /* as long as the program */
static bool is_open;

enum turn { VISIT, WRITE };

struct run {
	_Alignas(COLD_PAIR) struct cold_set set;
	const struct cold_shape *shape;
	size_t made;
	_Alignas(COLD_PAIR) DSTREF_ATOMIC(uint32_t) turn;
};

/* Once, before the first run of all. */
static int prepare(const struct bench_table *table, const char **why)
{
	int rc = is_open ? 0 : cold_way_open(&way, find_flush());

	(void)table;
	if (rc)
		*why = "no memory to read so that caches forget; free some";
	else
		is_open = true;
	return rc;
}

int cold_setup(const struct bench_variant *variant, unsigned int threads,
	       void **state)
{
	const struct cold_shape *shape = variant->context;
	struct run *run = aligned_alloc(COLD_PAIR, sizeof(*run));
	int rc = run ? cold_set_open(&run->set, &way, shape->size) : -ENOMEM;

	(void)threads;
	if (rc) {
		free(run);
		return rc;
	}
	run->shape = shape;
	dstref_init_plain(&run->turn, (uint32_t)VISIT);
	for (run->made = 0; run->made < COLD_OBJECTS && !rc; run->made += !rc)
		if (shape->make)
			rc = shape->make(cold_object(&run->set, run->made),
					 shape);
	if (rc)
		cold_teardown(run);
	else
		*state = run;
	return rc;
}

void cold_teardown(void *state)
{
	struct run *run = state;

	while (run->made--)
		if (run->shape->end)
			run->shape->end(cold_object(&run->set, run->made));
	cold_set_close(&run->set);
	free(run);
}

void cold_work(struct bench_self *self)
{
	struct run *run = self->state;
	const struct cold_shape *shape = run->shape;

	do {
		struct cold_times times = cold_pass(&run->set, shape->lap);
		double own = way.empty * (1 + shape->waits);
		bool warm = !shape->hot && cold_is_warm(&times, own);

		bench_sample(self, shape->hot ? times.hot : times.cold);
		self->ops += COLD_OBJECTS;
		self->counter[COLD_HOT_NS] +=
			(uint64_t)(times.hot * COLD_OBJECTS + 0.5);
		self->counter[COLD_WARM] += warm ? COLD_OBJECTS : 0;
		self->counter[COLD_TOUCHED] += shape->lines * COLD_OBJECTS;
	} while (!bench_over(self));
}

/* Until it is this one's turn; false when the time is up. */
static bool wait_for(const struct bench_self *self, struct run *run,
		     enum turn turn)
{
	/* A1, A2. */
	for (int i = 1; dstref_load_acquire(&run->turn) != turn; i++) {
		if (bench_over(self))
			return false;
		if (i % SPINS == 0)
			sched_yield();
	}
	return true;
}

static void ask(struct bench_self *self, struct run *run)
{
	const struct cold_shape *shape = run->shape;
	double hot;

	do {
		/* R2. */
		dstref_store_release(&run->turn, (uint32_t)WRITE);
		if (!wait_for(self, run, VISIT))
			return;
		bench_sample(self, cold_time(&run->set, shape->lap, 1));
		hot = cold_hot(&run->set, shape->lap);
		self->ops += COLD_OBJECTS;
		self->counter[COLD_HOT_NS] +=
			(uint64_t)(hot * COLD_OBJECTS + 0.5);
	} while (!bench_over(self));
}

static void answer(struct bench_self *self, struct run *run)
{
	while (wait_for(self, run, WRITE)) {
		for (size_t i = 0; run->shape->write && i < COLD_OBJECTS; i++)
			run->shape->write(cold_object(&run->set, i));
		/* R1. */
		dstref_store_release(&run->turn, (uint32_t)VISIT);
	}
}

/* The visits are the operations. */
void cold_work_written(struct bench_self *self)
{
	if (self->id)
		answer(self, self->state);
	else
		ask(self, self->state);
}

static const unsigned int one[] = { 1, 0 };
static const unsigned int two[] = { 2, 0 };

static const struct bench_table tables[] = {
	{ .name = "lines",
	  .title = "the instrument itself: lines read one after another",
	  .variants = cold_lines,
	  .count = COLD_LINES_VARIANTS,
	  .baseline = 1,
	  .unit = "ns",
	  .threads = one,
	  .value = bench_sampled,
	  .counters = COLD_COLUMNS,
	  .prepare = prepare },
	{ .name = "hashinfo",
	  .title = "hashinfo and the bucket limit, from a cold namespace",
	  .variants = cold_hashinfo,
	  .count = COLD_HASHINFO_VARIANTS,
	  .baseline = 2,
	  .unit = "ns",
	  .threads = one,
	  .value = bench_sampled,
	  .counters = COLD_COLUMNS,
	  .prepare = prepare },
	{ .name = "written",
	  .title = "the same, hot, after another thread wrote the row's count",
	  .variants = cold_written,
	  .count = COLD_WRITTEN_VARIANTS,
	  .baseline = 1,
	  .unit = "ns",
	  .threads = two,
	  .value = bench_sampled,
	  .counters = COLD_COLUMNS_WRITTEN,
	  .prepare = prepare },
	{ .name = "dst",
	  .title = "a packet forwarded by a cold route, all it does at once",
	  .variants = cold_dst,
	  .count = COLD_DST_VARIANTS,
	  .baseline = 2,
	  .unit = "ns",
	  .threads = one,
	  .value = bench_sampled,
	  .counters = COLD_COLUMNS,
	  .prepare = prepare },
	{ .name = "dst-steps",
	  .title = "the same, each step begun when the one before has ended",
	  .variants = cold_dst_steps,
	  .count = COLD_DST_STEPS_VARIANTS,
	  .baseline = 1,
	  .unit = "ns",
	  .threads = one,
	  .value = bench_sampled,
	  .counters = COLD_COLUMNS,
	  .prepare = prepare },
};

static void report(FILE *out, const struct bench_result *result)
{
	fprintf(out, "Lines were made cold %s.\n", way.what);
	for (size_t i = 0; i < result->count; i++) {
		const struct bench_row *row = &result->rows[i];

		if (row->table->value == bench_sampled &&
		    row->table->counters[COLD_WARM] &&
		    row->counter[COLD_WARM] > WARM_SHARE)
			fprintf(out,
				"NOT COLD: %s/%s: %.0f %% of the passes were "
				"less than %d times as dear as hot.\n",
				row->table->name, row->variant->name,
				100 * row->counter[COLD_WARM], COLD_RATIO);
	}
}

const struct bench_experiment bench_cold = {
	.name = "cold",
	.seed = "S3",
	.question = "What does a packet pay that finds nothing in the caches?",
	.published =
		"2022: no latency. Each packet reads hashinfo: two lines "
		"through the pointer, one when the row is embedded; a packet "
		"brings X lines into L1, and \"X slowly increases\".",
	.measured =
		"The latency of a visit to an object whose lines were put out "
		"of the caches; how, is said below. Then, it was lines that "
		"were counted, in a kernel; here it is their time, and the "
		"object's alone: code, stack and page translations are hot. "
		"`hot ns` is the same visit right afterwards, `warm` the share "
		"of visits in passes that were less than 5 times as dear cold "
		"as hot, `lines` what a visit brings in.",
	.tables = tables,
	.count = sizeof(tables) / sizeof(tables[0]),
	.report = report,
};
