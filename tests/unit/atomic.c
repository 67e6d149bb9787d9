/* SPDX-License-Identifier: MIT */
/*
 * unit.atomic - each wrapper returns what its name says
 *
 * Goal: "return" gives the new value, "fetch" the old one, in every width that
 * the library uses, with wrap-around; a failed compare-and-swap stores what it
 * found and nothing else. Method: one thread, values where old, new, and
 * operand all differ. Order cannot be seen from one thread: the stress tests
 * under the thread sanitizer show it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dstref/atomic.h>

static void atomic_load_store(void **state)
{
	DSTREF_ATOMIC(uint32_t) word;
	DSTREF_ATOMIC(void *) pointer;

	(void)state;
	dstref_init_plain(&word, 7u);
	assert_int_equal(dstref_load_relaxed(&word), 7);
	dstref_store_relaxed(&word, 8u);
	assert_int_equal(dstref_load_acquire(&word), 8);
	dstref_store_release(&word, 9u);
	assert_int_equal(dstref_load_acquire(&word), 9);
	dstref_init_plain(&pointer, NULL);
	dstref_store_release(&pointer, (void *)&word);
	assert_ptr_equal(dstref_load_acquire(&pointer), &word);
}

static void atomic_xchg_returns_the_old(void **state)
{
	DSTREF_ATOMIC(uint64_t) word;

	(void)state;
	dstref_init_plain(&word, UINT64_C(1) << 40);
	assert_int_equal(dstref_xchg_relaxed(&word, UINT64_C(2)),
			 UINT64_C(1) << 40);
	assert_int_equal(dstref_xchg_acquire(&word, UINT64_C(3)), 2);
	assert_int_equal(dstref_xchg_acq_rel(&word, UINT64_C(4)), 3);
	assert_int_equal(dstref_load_relaxed(&word), 4);
}

static void atomic_fetch_is_old_return_is_new(void **state)
{
	DSTREF_ATOMIC(uint32_t) word;

	(void)state;
	dstref_init_plain(&word, 100u);
	assert_int_equal(dstref_fetch_add_relaxed(&word, 1u), 100);
	assert_int_equal(dstref_fetch_add_release(&word, 2u), 101);
	assert_int_equal(dstref_fetch_add_acq_rel(&word, 4u), 103);
	assert_int_equal(dstref_fetch_sub_relaxed(&word, 8u), 107);
	assert_int_equal(dstref_fetch_sub_release(&word, 16u), 99);
	assert_int_equal(dstref_load_relaxed(&word), 83);
	assert_int_equal(dstref_add_return_relaxed(&word, 5u), 88);
	assert_int_equal(dstref_sub_return_release(&word, 6u), 82);
	assert_int_equal(dstref_dec_return_release(&word), 81);
	assert_int_equal(dstref_load_relaxed(&word), 81);
}

static void atomic_wraps_in_its_width(void **state)
{
	DSTREF_ATOMIC(uint32_t) narrow;
	DSTREF_ATOMIC(uint64_t) wide;

	(void)state;
	dstref_init_plain(&narrow, 0u);
	assert_true(dstref_dec_return_release(&narrow) == UINT32_MAX);
	assert_true(dstref_add_return_relaxed(&narrow, 1u) == 0);
	dstref_init_plain(&wide, UINT64_C(0));
	assert_true(dstref_sub_return_release(&wide, UINT64_C(1)) ==
		    UINT64_MAX);
	assert_true(dstref_load_relaxed(&wide) == UINT64_MAX);
}

static void atomic_bits_return_the_old(void **state)
{
	DSTREF_ATOMIC(uint32_t) word;

	(void)state;
	dstref_init_plain(&word, 0x1u);
	assert_int_equal(dstref_fetch_or_relaxed(&word, 0x2u), 0x1);
	assert_int_equal(dstref_fetch_or_acquire(&word, 0x4u), 0x3);
	assert_int_equal(dstref_fetch_or_acq_rel(&word, 0x8u), 0x7);
	assert_int_equal(dstref_fetch_and_relaxed(&word, 0xau), 0xf);
	assert_int_equal(dstref_load_relaxed(&word), 0xa);
}

static void atomic_cas_tells_what_it_found(void **state)
{
	DSTREF_ATOMIC(uint32_t) word;
	uint32_t old = 5;

	(void)state;
	dstref_init_plain(&word, 6u);
	assert_false(dstref_cas_relaxed(&word, &old, 7u));
	assert_int_equal(old, 6);
	assert_int_equal(dstref_load_relaxed(&word), 6);
	assert_true(dstref_cas_relaxed(&word, &old, 7u));
	assert_int_equal(old, 6);
	old = 7;
	assert_true(dstref_cas_acquire(&word, &old, 8u));
	assert_false(dstref_cas_acquire(&word, &old, 9u));
	assert_int_equal(old, 8);
	assert_true(dstref_cas_acq_rel(&word, &old, 10u));
	assert_false(dstref_cas_acq_rel(&word, &old, 11u));
	assert_int_equal(old, 10);
	assert_int_equal(dstref_load_relaxed(&word), 10);
}

/* The wrappers promise that a pointer with a side effect is used once. */
static void atomic_evaluates_its_pointer_once(void **state)
{
	DSTREF_ATOMIC(uint32_t) words[8];
	DSTREF_ATOMIC(uint32_t) *p = words;
	uint32_t old = 0;

	(void)state;
	for (int i = 0; i < 8; i++)
		dstref_init_plain(&words[i], 0u);
	(void)dstref_add_return_relaxed(p++, 1u);
	(void)dstref_dec_return_release(p++);
	(void)dstref_fetch_or_relaxed(p++, 1u);
	(void)dstref_cas_acq_rel(p++, &old, 1u);
	(void)dstref_xchg_acq_rel(p++, 1u);
	dstref_store_release(p++, 1u);
	assert_ptr_equal(p, words + 6);
	assert_true(dstref_load_relaxed(&words[1]) == UINT32_MAX);
	assert_int_equal(dstref_load_relaxed(&words[5]), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(atomic_load_store),
		cmocka_unit_test(atomic_xchg_returns_the_old),
		cmocka_unit_test(atomic_fetch_is_old_return_is_new),
		cmocka_unit_test(atomic_wraps_in_its_width),
		cmocka_unit_test(atomic_bits_return_the_old),
		cmocka_unit_test(atomic_cas_tells_what_it_found),
		cmocka_unit_test(atomic_evaluates_its_pointer_once),
	};

	return cmocka_run_group_tests_name("atomic", tests, NULL, NULL);
}
