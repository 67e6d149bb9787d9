/* SPDX-License-Identifier: MIT */
/*
 * unit.alloc - the memory hooks that the other tests trust, tested themselves
 *
 * Goal: tests/support/alloc.c gives memory exactly as aligned as was asked,
 * refuses the n-th request, and finds what comes back wrong. Method: do each
 * wrong thing once and look at the ledger. Its lines on stderr are expected.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "alloc.h"

static struct alloc alloc;
static struct dstref_net_mem mem;

static int setup(void **state)
{
	(void)state;
	alloc_init(&alloc);
	mem = alloc_mem(&alloc);
	return 0;
}

static void *get(size_t size, size_t align)
{
	return mem.alloc(mem.ctx, size, align, -1);
}

static void alloc_is_as_aligned_as_asked(void **state)
{
	(void)state;
	for (size_t align = 16; align <= 4096; align *= 2) {
		unsigned char *p = get(100, align);

		assert_int_equal((uintptr_t)p % align, 0);
		assert_int_equal((uintptr_t)p % (2 * align), align);
		for (int i = 0; i < 100; i++)
			assert_int_equal(p[i], ALLOC_FRESH);
		memset(p, 0, 100);
		mem.free(mem.ctx, p, 100);
	}
	assert_int_equal(alloc.calls, 9);
	assert_int_equal(alloc_fini(&alloc), 0);
}

static void alloc_counts_what_is_alive(void **state)
{
	void *a = get(100, 64), *b = get(28, 64);

	(void)state;
	assert_int_equal(alloc.blocks, 2);
	assert_int_equal(alloc.bytes, 128);
	mem.free(mem.ctx, a, 100);
	assert_int_equal(alloc.bytes, 28);
	assert_int_equal(alloc_fini(&alloc), 1);
	mem.free(mem.ctx, b, 28);
	assert_int_equal(alloc_fini(&alloc), 0);
}

static void alloc_refuses_the_nth(void **state)
{
	void *got[4];

	(void)state;
	alloc_refuse(&alloc, 3);
	for (int i = 0; i < 4; i++)
		got[i] = get(8, 8);
	assert_null(got[2]);
	assert_true(got[0] && got[1] && got[3]);
	alloc_refuse(&alloc, 1);
	assert_null(get(8, 8));
	assert_int_equal(alloc.refused, 2);
	alloc_refuse(&alloc, 1);
	alloc_refuse(&alloc, 0);
	got[2] = get(8, 8);
	assert_non_null(got[2]);
	for (int i = 0; i < 4; i++)
		mem.free(mem.ctx, got[i], 8);
	assert_int_equal(alloc_fini(&alloc), 0);
}

static void alloc_finds_the_wrong_size(void **state)
{
	(void)state;
	mem.free(mem.ctx, get(64, 64), 63);
	assert_int_equal(alloc.faults, 1);
	assert_int_equal(alloc_fini(&alloc), 1);
}

static void alloc_finds_an_overrun(void **state)
{
	unsigned char *p = get(64, 64);

	(void)state;
	p[64] = 0; /* inside the block that the sanitizer knows */
	mem.free(mem.ctx, p, 64);
	assert_int_equal(alloc_fini(&alloc), 1);
}

static void alloc_finds_a_bad_request(void **state)
{
	(void)state;
	assert_null(get(0, 64));
	assert_null(get(64, 48));
	assert_null(get(64, 1));
	assert_int_equal(alloc_fini(&alloc), 3);
}

/* What the address sanitizer would find by itself. */
static void alloc_finds_use_after_free(void **state)
{
	unsigned char *volatile p = get(64, 64);

	(void)state;
	mem.free(mem.ctx, p, 64);
	if (!ALLOC_KEEPS)
		skip();
	assert_int_equal(p[0], ALLOC_STALE);
	mem.free(mem.ctx, p, 64); /* twice */
	assert_int_equal(alloc.faults, 1);
	p[3] = 0; /* written to */
	assert_int_equal(alloc_fini(&alloc), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(alloc_is_as_aligned_as_asked, setup),
		cmocka_unit_test_setup(alloc_counts_what_is_alive, setup),
		cmocka_unit_test_setup(alloc_refuses_the_nth, setup),
		cmocka_unit_test_setup(alloc_finds_the_wrong_size, setup),
		cmocka_unit_test_setup(alloc_finds_an_overrun, setup),
		cmocka_unit_test_setup(alloc_finds_a_bad_request, setup),
		cmocka_unit_test_setup(alloc_finds_use_after_free, setup),
	};

	return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}
