/* SPDX-License-Identifier: MIT */
/* Rows in the order of their times, beside the same rows sorted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/streams/order.h"
#include "tests/xorshift.h"

struct row {
	uint64_t number, time, check; /* number: as they came */
};

#define ROWS 3000u
static struct row rows[ROWS], got[ROWS];
static size_t got_count;
static uint64_t state;

static uint64_t random_below(uint64_t n)
{
	return (xorshift(&state) >> 11) % n;
}

static void take_row(void *context, const uint8_t *row)
{
	assert_ptr_equal(context, got);
	assert_true(got_count < ROWS);
	memcpy(&got[got_count], row, sizeof(got[0]));
	assert_int_equal(got[got_count].check, ~got[got_count].number);
	got_count++;
}

static int by_time(const void *left, const void *right)
{
	const struct row *a = left, *b = right;
	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->number < b->number ? -1 : 1;
}

/* Times that go on by about 5 and are out of order by up to `disorder`; many are equal. */
static void make_rows(uint64_t disorder)
{
	for (uint64_t i = 0; i < ROWS; i++)
		rows[i] = (struct row){ i, 1000 + 5 * i + random_below(disorder) / 3 * 3, ~i };
}

static void run(uint64_t bytes, uint64_t lateness, struct fay_order_counts *counts)
{
	struct fay_order *order;
	struct fay_error error;
	got_count = 0;
	assert_int_equal(fay_order_create(sizeof(struct row), offsetof(struct row, time), bytes,
					  take_row, got, &order, &error),
			 0);
	for (uint64_t i = 0; i < ROWS; i++) {
		fay_order_add(order, (const uint8_t *)&rows[i]);
		if (random_below(20) == 0)
			fay_order_advance(order,
					  1000 + 5 * i > lateness ? 1000 + 5 * i - lateness : 0);
	}
	fay_order_advance(order, UINT64_MAX);
	fay_order_counts(order, counts);
	assert_int_equal(counts->kept, 0);
	assert_int_equal(counts->rows, ROWS);
	assert_int_equal(got_count, ROWS);
	fay_order_destroy(order);
}

/* No row comes after one of a later time was handed on, so all are in order. */
static void in_order(void **unused)
{
	(void)unused;
	for (unsigned round = 1; round <= 20; round++) {
		struct fay_order_counts counts;
		state = round * 77;
		make_rows(1 + random_below(2000));
		run(0, 0, &counts);
		assert_int_equal(counts.late, 0);
		qsort(rows, ROWS, sizeof(rows[0]), by_time);
		assert_memory_equal(rows, got, sizeof(rows));
	}
}

/* Each row is there once, and those that are out of order are counted. */
static void check_rest(const struct fay_order_counts *counts)
{
	static bool seen[ROWS];
	uint64_t late = 0, last = 0;
	memset(seen, 0, sizeof(seen));
	for (size_t i = 0; i < ROWS; i++) {
		late += got[i].time < last;
		last = got[i].time > last ? got[i].time : last;
		assert_false(seen[got[i].number]);
		seen[got[i].number] = true;
	}
	assert_int_equal(counts->late, late);
}

/* Nothing is waited for as long as it would take. */
static void too_late(void **unused)
{
	struct fay_order_counts counts;
	(void)unused;
	state = 5;
	for (uint64_t i = 0; i < ROWS; i++)
		rows[i] = (struct row){ i, 1000 + 5 * i - random_below(900), ~i };
	run(0, 0, &counts);
	check_rest(&counts);
	assert_true(counts.late > 0);
}

static void short_of_memory(void **unused)
{
	struct fay_order_counts counts;
	(void)unused;
	state = 9;
	make_rows(2000);
	run(100 * (sizeof(struct row) + 64), 100000, &counts);
	check_rest(&counts);
	assert_true(counts.late > 0);
	run(1, 0, &counts); /* none at all: as they come */
	check_rest(&counts);
	for (uint64_t i = 0; i < ROWS; i++)
		assert_int_equal(got[i].number, i);
	make_rows(1); /* in order already: little memory is enough */
	run(100 * (sizeof(struct row) + 64), 100000, &counts);
	assert_int_equal(counts.late, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(in_order), cmocka_unit_test(too_late),
					    cmocka_unit_test(short_of_memory) };
	return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
