/* SPDX-License-Identifier: MIT */
/*
 * million - a few hot routes among a million cold ones (S2)
 *
 * The objection of 2012 to anything larger per entry: "a machine can have a
 * million entries". So the library gives cells to a few, and looks for those
 * few itself.
 *
 * `memory` is what this costs: 10^3 to 10^6 entries, 64 threads attached, 100
 * entries split, 255 cells to a thread as by default. The extra bytes are all
 * that the namespace took through its memory hooks, the namespace itself among
 * them, and each thread's pointers; they are set against the bytes of the
 * entries. What a dst has of its own for this, 10 bytes, lies in the two lines
 * that it has anyway. `all-hot` is the rival, a cell for each entry and thread,
 * as a counter per CPU would have it. It is measured on a thousand, and its
 * share does not depend on how many they are.
 *
 * `zipf` is traffic over a million entries, by their popularity: the k-th is
 * drawn 1/k times as often as the first (Zipf, s = 1), with places in memory
 * that have nothing to do with it. 2^17 draws for each thread are made once,
 * from a fixed seed, and gone through in turn; packets come in bursts of 32
 * that hold, and then let go. Thread 0 ticks every millisecond.
 *
 *	never	no entry may be split
 *	auto	by default: those that threads contend for are split
 *	told	the 255 most popular are split before the start: what somebody
 *		knew who had seen the traffic. A tick merges of them what it
 *		finds quiet, as of all
 *	noref	borrowed: what the entries cost when nothing is counted
 *	empty	the draws and the loop alone
 *
 * The counter `split` is the share of packets whose entry was split when it was
 * held; how many entries that were is told below the table.
 *
 * Different from life: the traffic does not change, a run is short, and two
 * threads contend less than many: of a million entries only those are promoted
 * whose owner changes 64 times within about a tick.
 */
#include "million/zipf.h"
#include "stage.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MEMORY_THREADS 64
#define HOT 100
#define MILLION 1000000u
#define DRAWS (1u << 17) /* of a thread */
#define ZIPF_THREADS 2
#define TOLD DSTREF_SPLIT_CELLS_DEFAULT
#define TICK_NS 1000000
#define HUGE_PAGE ((size_t)2 << 20)

enum counter { EXTRA, ENTRIES, SPLIT_PACKETS = 0 };

/* What a variant is, beside its work. */
struct shape {
	uint32_t entries;
	uint32_t max_hot; /* of the namespace; 0 is the default */
	uint32_t hot; /* most popular entries that are split at the start */
	uint32_t flags; /* of the others */
};

struct million {
	const struct shape *shape;
	struct dstref_net *net;
	struct dstref_dst *dst;
	size_t size; /* bytes of all of them */
	uint64_t due; /* the next tick; thread 0's */
	pthread_barrier_t attached, looked;
	DSTREF_ATOMIC(uint64_t) hooked; /* bytes that the namespace has */
};

DSTREF_COLD static void require(bool right, const char *what)
{
	if (right)
		return;
	(void)fprintf(stderr, "million: %s; the figures mean nothing\n", what);
	abort();
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Memory. */

static void *hook_alloc(void *ctx, size_t size, size_t align, int node)
{
	struct million *m = ctx;

	(void)node;
	(void)dstref_fetch_add_relaxed(&m->hooked, (uint64_t)size);
	return aligned_alloc(align, size);
}

static void hook_free(void *ctx, void *ptr, size_t size)
{
	struct million *m = ctx;

	(void)dstref_fetch_sub_relaxed(&m->hooked, (uint64_t)size);
	free(ptr);
}

/* In large pages where the kernel has them, else the first touch takes long. */
static struct dstref_dst *entries_alloc(size_t *size)
{
	*size = (*size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	void *p = aligned_alloc(HUGE_PAGE, *size);

	if (p)
		(void)madvise(p, *size, MADV_HUGEPAGE);
	return p;
}

/* The entries. */

static void dst_destroy(struct dstref_dst *dst)
{
	(void)dst; /* of an array that goes as a whole */
}

static const struct dstref_dst_ops ops = {
	.name = "million",
	.destroy = dst_destroy,
};

static void entries_open(struct million *m)
{
	const struct shape *shape = m->shape;

	for (uint32_t i = 0; i < shape->entries; i++) {
		bool is_hot = zipf_rank(i, shape->entries) < shape->hot;

		require(!dstref_dst_init(&m->dst[i], m->net, &ops, NULL,
					 is_hot ? DSTREF_DST_SPLIT_ALWAYS
						: shape->flags),
			"an entry was refused");
	}
	require(dstref_net_tick(m->net, now_ns(), UINT32_MAX) ==
			(int)shape->hot,
		"not all were split that were to be");
}

/* Nobody else is there any more, so only what is split needs time to end. */
static void entries_close(struct million *m)
{
	for (uint32_t i = 0; i < m->shape->entries; i++) {
		struct dstref_dst *dst = &m->dst[i];

		require(dstref_dst_refs(dst) == 1, "references were lost");
		if (dstref_load_relaxed(&dst->cell) & DSTREF_CELL_NUMBER)
			dstref_dst_dead(dst);
		dstref_dst_release_now(dst);
	}
}

static void destroy(struct million *m)
{
	if (!stage_close(m->net))
		return;
	require(!dstref_load_relaxed(&m->hooked), "memory was lost");
	pthread_barrier_destroy(&m->attached);
	pthread_barrier_destroy(&m->looked);
	free(m->dst);
	free(m);
}

static int create(struct million *m, unsigned int threads)
{
	const struct dstref_net_attr attr = {
		.flavour = &urcu_qsbr_flavor,
		.mem = { hook_alloc, hook_free, m },
		.max_hot = m->shape->max_hot,
	};

	m->size = m->shape->entries * sizeof(*m->dst);
	m->dst = entries_alloc(&m->size);
	if (!m->dst)
		return -ENOMEM;
	pthread_barrier_init(&m->attached, NULL, threads);
	pthread_barrier_init(&m->looked, NULL, threads);
	return dstref_net_create(&m->net, &attr);
}

static int setup(const struct bench_variant *variant, unsigned int threads,
		 void **state)
{
	struct million *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return -ENOMEM;
	m->shape = variant->context;
	rc = create(m, threads);
	if (rc) {
		free(m->dst);
		free(m);
		return rc;
	}
	entries_open(m);
	*state = m;
	return 0;
}

static void teardown(void *state)
{
	entries_close(state);
	destroy(state);
}

/* What it takes in memory. */

static void look(struct bench_self *self, const struct million *m)
{
	struct dstref_net_counters stats;

	dstref_net_stats(m->net, &stats);
	require(stats.threads == self->threads &&
			stats.promoted == m->shape->hot,
		"not as many threads and split entries as were asked for");
	self->counter[EXTRA] = dstref_load_relaxed(&m->hooked) +
			       self->threads * (sizeof(dstref_split_cells) +
						sizeof(dstref_split_self));
	self->counter[ENTRIES] = m->shape->entries * sizeof(*m->dst);
	self->ops = 1;
}

static void memory_work(struct bench_self *self)
{
	struct million *m = self->state;

	require(!dstref_net_attach(m->net), "a thread has no cells");
	pthread_barrier_wait(&m->attached);
	if (!self->id)
		look(self, m);
	pthread_barrier_wait(&m->looked);
	dstref_net_detach(m->net);
}

static double percent(const struct bench_run *run)
{
	const uint64_t *counter = run->thread[0].counter;

	return 100.0 * (double)counter[EXTRA] / (double)counter[ENTRIES];
}

/* Traffic. */

static uint32_t draws[ZIPF_THREADS][DRAWS];
static uint64_t split_entries; /* of auto, in its last run */

static int prepare(const struct bench_table *table, const char **why)
{
	(void)table;
	*why = "no memory for the popularity of a million entries";
	return zipf_draw(draws[0], ZIPF_THREADS * DRAWS, MILLION);
}

static void tick(struct million *m)
{
	uint64_t now = now_ns();

	if (now < m->due)
		return;
	m->due = now + TICK_NS;
	(void)dstref_net_tick(m->net, now, UINT32_MAX);
}

typedef uint32_t (*burst_fn)(struct million *m, const uint32_t *place);

/* Bursts until the time is up; fn is inlined. */
STAGE_INLINE void run(struct bench_self *self, burst_fn fn)
{
	struct million *m = self->state;
	const uint32_t *place = draws[self->id];
	uint32_t at = 0;

	urcu_qsbr_register_thread();
	require(!dstref_net_attach(m->net), "a thread has no cells");
	do {
		self->counter[SPLIT_PACKETS] += fn(m, place + at);
		at = (at + BURST) % DRAWS;
		self->ops += BURST;
		if (!self->id)
			tick(m);
		urcu_qsbr_quiescent_state();
	} while (!bench_over(self));
	dstref_net_detach(m->net);
	urcu_qsbr_unregister_thread();
}

/* Packets whose entry was split. */
STAGE_INLINE uint32_t held(struct million *m, const uint32_t *place)
{
	uint32_t split = 0;

	for (int i = 0; i < BURST; i++) {
		struct dstref_dst *dst = &m->dst[place[i]];

		split += (dstref_load_relaxed(&dst->cell) &
			  DSTREF_CELL_NUMBER) != 0;
		dstref_dst_hold(dst);
	}
	for (int i = 0; i < BURST; i++)
		dstref_dst_release(&m->dst[place[i]]);
	return split;
}

STAGE_INLINE uint32_t borrowed(struct million *m, const uint32_t *place)
{
	struct dstref_dst_ref ref[BURST];

	for (int i = 0; i < BURST; i++) {
		ref[i].word = 0;
		dstref_dst_ref_set_noref(&ref[i], &m->dst[place[i]]);
	}
	__asm__ volatile("" ::"r"(ref) : "memory");
	for (int i = 0; i < BURST; i++)
		dstref_dst_ref_drop(&ref[i]);
	return 0;
}

STAGE_INLINE uint32_t nothing(struct million *m, const uint32_t *place)
{
	(void)m;
	for (int i = 0; i < BURST; i++)
		BENCH_KEEP(place[i]);
	return 0;
}

static void held_work(struct bench_self *self)
{
	run(self, held);
}

static void borrowed_work(struct bench_self *self)
{
	run(self, borrowed);
}

static void nothing_work(struct bench_self *self)
{
	run(self, nothing);
}

static void auto_teardown(void *state)
{
	struct million *m = state;
	struct dstref_net_counters stats;

	dstref_net_stats(m->net, &stats);
	split_entries = stats.promoted;
	teardown(state);
}

/* Tables. */

static const struct shape thousand = { 1000, 0, HOT, 0 };
static const struct shape ten_thousand = { 10000, 0, HOT, 0 };
static const struct shape hundred_thousand = { 100000, 0, HOT, 0 };
static const struct shape million = { MILLION, 0, HOT, 0 };
static const struct shape all_hot = { 1000, 1000, HOT, 0 };
static const struct shape zipf_never = { MILLION, 0, 0,
					 DSTREF_DST_SPLIT_NEVER };
static const struct shape zipf_auto = { MILLION, 0, 0, 0 };
static const struct shape zipf_told = { MILLION, 0, TOLD,
					DSTREF_DST_SPLIT_NEVER };
static const struct shape zipf_few = { 1000, 0, 0, DSTREF_DST_SPLIT_NEVER };

#define OF(id, of_kind, fn, of_shape, text)                              \
	{                                                                \
		.name = (id), .kind = (of_kind), .what = (text),         \
		.setup = setup, .work = fn##_work, .teardown = teardown, \
		.context = &(of_shape)                                   \
	}

enum { MEMORY_MILLION = 3 };

static const struct bench_variant memory[] = {
	OF("1000", BENCH_OURS, memory, thousand, "10^3 entries"),
	OF("10000", BENCH_OURS, memory, ten_thousand, "10^4 entries"),
	OF("100000", BENCH_OURS, memory, hundred_thousand, "10^5 entries"),
	[MEMORY_MILLION] =
		OF("1000000", BENCH_OURS, memory, million, "10^6 entries"),
	OF("all-hot", BENCH_RIVAL, memory, all_hot,
	   "10^3 entries, each with a cell on each thread"),
};

static const struct bench_variant zipf[] = {
	OF("never", BENCH_OURS, held, zipf_never, "none may be split"),
	{ .name = "auto",
	  .kind = BENCH_OURS,
	  .what = "by default, ticked each ms",
	  .setup = setup,
	  .work = held_work,
	  .teardown = auto_teardown,
	  .context = &zipf_auto },
	OF("told", BENCH_RIVAL, held, zipf_told,
	   "the most popular are split from the start"),
	OF("noref", BENCH_OURS, borrowed, zipf_never, "borrowed"),
	OF("empty", BENCH_EMPTY, nothing, zipf_few, "the draws alone"),
};

static const unsigned int memory_threads[] = { MEMORY_THREADS, 0 };
static const unsigned int zipf_threads[] = { ZIPF_THREADS, 0 };

static const struct bench_table tables[] = {
	{ .name = "memory",
	  .title = "memory for splitting over that of the entries, 64 threads, "
		   "100 hot",
	  .variants = memory,
	  .count = sizeof(memory) / sizeof(memory[0]),
	  .baseline = MEMORY_MILLION,
	  .unit = "%",
	  .threads = memory_threads,
	  .value = percent,
	  .counters = { "extra bytes", "entry bytes" } },
	{ .name = "zipf",
	  .title = "a packet over 10^6 entries, few of them popular",
	  .variants = zipf,
	  .count = sizeof(zipf) / sizeof(zipf[0]),
	  .baseline = 0,
	  .unit = "ns",
	  .threads = zipf_threads,
	  .counters = { "split" },
	  .prepare = prepare },
};

static void report(FILE *out, const struct bench_result *result)
{
	const struct bench_row *row =
		bench_row(result, "zipf", "auto", ZIPF_THREADS);

	if (!row || !row->runs)
		return;
	fprintf(out,
		"\nauto: %llu of %u entries were split at the end of the last "
		"run (%.4f %%); they took %.0f %% of the packets, from the "
		"start of a run on\n",
		(unsigned long long)split_entries, MILLION,
		100.0 * (double)split_entries / MILLION,
		100 * row->counter[SPLIT_PACKETS]);
}

const struct bench_experiment bench_million = {
	.name = "million",
	.seed = "S2",
	.question = "What does splitting a few hot routes cost those who have "
		    "a million?",
	.published = "2012: the objection that a machine can have a million "
		     "entries, so that their size matters; the replies: clone "
		     "very hot ones on demand, make them per-CPU. No figures.",
	.measured = "Bytes through the namespace's own memory hooks, all "
		    "threads attached and the hot entries split; and traffic "
		    "over a million entries by Zipf's law, with which entries "
		    "were split left to the library.",
	.tables = tables,
	.count = sizeof(tables) / sizeof(tables[0]),
	.report = report,
};
