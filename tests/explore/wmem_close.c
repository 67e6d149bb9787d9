/* SPDX-License-Identifier: MIT */
/*
 * wmem_close - the owner's close against uncharges and a holder's charge
 *
 * Goal: exactly one thread takes the last unit and is told so; he sees what
 * each of the others wrote before he let go of his; nobody touches the account
 * afterwards. Method: an account on the heap with a plain word for each thread.
 * Each writes his word before his last call; who is told reads all and
 * frees at once. So a second who is told, a late look at the account, or a
 * release or an acquire that is missing is a race with the free or the reads.
 * Three threads of up to four calls each.
 */
#include "explore.h"

#include <stdlib.h>

#define BYTES 100u

struct account {
	struct dstref_wmem wmem;
	int written[EXPLORE_THREADS];
};

static struct account *account;
static unsigned int told;
static DSTREF_ATOMIC(uint32_t) sent; /* a packet was handed on */

static void free_if(bool last)
{
	if (!last)
		return;
	for (int i = 0; i < EXPLORE_THREADS; i++)
		explore_assert(account->written[i] <= 1);
	told++;
	free(account);
}

static void charge(uint32_t bytes)
{
	explore_assert(dstref_wmem_charge(&account->wmem, bytes, NULL));
}

static void uncharge(uint32_t bytes)
{
	account->written[explore_self()] = 1;
	free_if(dstref_wmem_uncharge(&account->wmem, bytes, NULL));
}

/* As many packets in flight. */
static void start(unsigned int packets)
{
	account = calloc(1, sizeof(*account));
	dstref_wmem_init(&account->wmem);
	while (packets--)
		charge(BYTES);
}

static void start_0(void)
{
	start(0);
}

static void start_1(void)
{
	start(1);
}

static void start_2(void)
{
	start(2);
}

static void start_3(void)
{
	start(3);
}

static void close_it(void)
{
	account->written[explore_self()] = 1;
	free_if(dstref_wmem_close(&account->wmem, NULL));
}

static void complete(void)
{
	uncharge(BYTES);
}

/* A burst of two that were sent. */
static void complete_n(void)
{
	account->written[explore_self()] = 1;
	free_if(dstref_wmem_uncharge_n(&account->wmem, 2, 2 * BYTES, NULL));
}

/* As a completion with a callback: the bytes, a look, then the unit. */
static void complete_in_two(void)
{
	uint64_t after = dstref_wmem_recharge(&account->wmem, BYTES, 0);

	explore_assert(dstref_wmem_value_units(after) >= 1);
	uncharge(0);
}

/* A fragment, charged on the strength of the packet that the thread has. */
static void split(void)
{
	charge(BYTES / 2);
	dstref_wmem_recharge(&account->wmem, BYTES, BYTES / 2);
	uncharge(BYTES / 2);
	uncharge(BYTES / 2);
}

/* The owner charges, hands on and closes; his packet outlives his unit. */
static void send_and_close(void)
{
	charge(BYTES);
	dstref_store_release(&sent, 1u);
	close_it();
}

static bool was_sent(void)
{
	return dstref_load_relaxed(&sent);
}

static void complete_sent(void)
{
	explore_await(was_sent);
	complete();
}

/* Somebody waits: who sees the room sees what the completion wrote before. */
static void wait_for_room(void)
{
	uint64_t value = dstref_wmem_wait(&account->wmem);

	if (!dstref_wmem_value_bytes(value))
		explore_assert(account->written[1]);
	dstref_wmem_wait_end(&account->wmem);
	close_it();
}

static void give_room(void)
{
	account->written[1] = 1;
	dstref_wmem_recharge(&account->wmem, BYTES, 0);
	free_if(dstref_wmem_uncharge(&account->wmem, 0, NULL));
}

/* An uncharge tells of a waiter if it is after his mark. */
static void give_all(void)
{
	uint64_t after;

	account->written[1] = 1;
	bool last = dstref_wmem_uncharge(&account->wmem, BYTES, &after);

	explore_assert(!dstref_wmem_value_bytes(after));
	free_if(last);
}

static void check(void)
{
	explore_assert(told == 1);
}

const struct explore_case explore_cases[] = {
	{ .name = "close-complete",
	  .setup = start_1,
	  .thread = { close_it, complete },
	  .check = check },
	{ .name = "close-two",
	  .setup = start_1,
	  .thread = { close_it, complete_in_two },
	  .check = check },
	{ .name = "close-split",
	  .setup = start_1,
	  .thread = { close_it, split },
	  .check = check },
	{ .name = "send-complete",
	  .setup = start_0,
	  .thread = { send_and_close, complete_sent },
	  .check = check },
	{ .name = "wait-room",
	  .setup = start_1,
	  .thread = { wait_for_room, give_room },
	  .check = check },
	{ .name = "wait-all",
	  .setup = start_1,
	  .thread = { wait_for_room, give_all },
	  .check = check },
	{ .name = "close-complete-complete",
	  .setup = start_2,
	  .thread = { close_it, complete, complete },
	  .check = check },
	{ .name = "close-complete_n-complete",
	  .setup = start_3,
	  .thread = { close_it, complete_n, complete },
	  .check = check },
	{ .name = "close-split-two",
	  .setup = start_2,
	  .thread = { close_it, split, complete_in_two },
	  .check = check },
	{ .name = "send-complete-split",
	  .setup = start_1,
	  .thread = { send_and_close, complete_sent, split },
	  .check = check },
	{ 0 },
};
