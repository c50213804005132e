/* SPDX-License-Identifier: MIT */
/* Joins by key and time, beside all pairs of two streams looked at one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fay/join.h"
#include "tests/xorshift.h"

/* Left: time, key, number. Right: number, key of two words (the second is zero on the left, too),
 * time. */
struct left {
	uint64_t time, key[2], number;
};
struct right {
	uint64_t number, key[2], time;
};

#define ROWS 600u
static struct left lefts[ROWS];
static struct right rights[ROWS];
static uint8_t found[ROWS][ROWS];
static uint64_t state;

static uint64_t random_below(uint64_t n)
{
	return (xorshift(&state) >> 11) % n;
}

static struct fay_join_options options_of(uint64_t within, uint64_t bytes)
{
	return (struct fay_join_options){
		.sides = { { sizeof(struct left),
			     offsetof(struct left, time),
			     { { offsetof(struct left, key), 16 } } },
			   { sizeof(struct right),
			     offsetof(struct right, time),
			     { { offsetof(struct right, key), 16 } } } },
		.key_count = 1,
		.within = within,
		.bytes = bytes,
	};
}

static bool settles;         /* a right row settles a left one that is earlier */
static unsigned alone[ROWS]; /* times that a left row was said to be */

static bool take_pair(void *context, uint64_t number, const uint8_t *left, const uint8_t *right)
{
	const struct left *l = (const void *)left;
	const struct right *r = (const void *)right;
	assert_ptr_equal(context, found);
	assert_true(settles || number == l->number);      /* they come in this order */
	assert_int_equal(found[l->number][r->number], 0); /* each pair once */
	found[l->number][r->number] = 1;
	return settles && r->time > l->time;
}

static void take_alone(void *context, uint64_t number, const uint8_t *left)
{
	assert_ptr_equal(context, found);
	assert_true(number >= ((const struct left *)(const void *)left)->number);
	alone[((const struct left *)(const void *)left)->number]++;
}

/* Rows whose times go on by `step` or so and are out of order by up to `disorder`. */
static void make_rows(uint64_t step, uint64_t disorder, uint64_t keys)
{
	memset(found, 0, sizeof(found));
	for (unsigned i = 0; i < ROWS; i++) {
		lefts[i] = (struct left){ 1000 + i * step + random_below(disorder + 1),
					  { random_below(keys), 0 },
					  i };
		rights[i] = (struct right){ i,
					    { random_below(keys), 0 },
					    1000 + i * step + random_below(disorder + 1) };
	}
}

static struct fay_join *start(const struct fay_join_options *options)
{
	struct fay_join *join;
	struct fay_error error;
	assert_int_equal(fay_join_create(options, take_pair, settles ? take_alone : NULL, found,
					 &join, &error),
			 0);
	return join;
}

/* If asked for: no left row that is earlier than a right one is wanted when that one comes. */
static bool only_later;
static unsigned came[2][ROWS];

/* In any interleaving; if `disorder` bounds it, what is too old is dropped as it may be. */
static void add_all(struct fay_join *join, uint64_t step, uint64_t disorder,
		    struct fay_join_counts *counts)
{
	for (unsigned l = 0, r = 0; l < ROWS || r < ROWS;) {
		if (r == ROWS || (l < ROWS && random_below(2)))
			came[0][l] = l + r, fay_join_add(join, 0, (const uint8_t *)&lefts[l], 0),
			l++;
		else
			came[1][r] = l + r,
			fay_join_add(join, 1, (const uint8_t *)&rights[r],
				     only_later ? rights[r].time : 0),
			r++;
		unsigned least = l < r ? l : r;
		if (disorder != UINT64_MAX && least < ROWS)
			fay_join_advance(join, 1000 + least * step);
	}
	fay_join_counts(join, counts);
	assert_int_equal(counts->rows[0], ROWS);
	assert_int_equal(counts->rows[1], ROWS);
}

static bool matches(unsigned l, unsigned r, uint64_t within)
{
	uint64_t a = lefts[l].time, b = rights[r].time;
	if (only_later && came[1][r] > came[0][l] && a < b)
		return false;
	return lefts[l].key[0] == rights[r].key[0] && (a > b ? a - b : b - a) <= within;
}

/* Pairs that should be there: all found pairs are among them. */
static uint64_t expected(uint64_t within)
{
	uint64_t count = 0;
	for (unsigned l = 0; l < ROWS; l++)
		for (unsigned r = 0; r < ROWS; r++) {
			count += matches(l, r, within);
			assert_true(!found[l][r] || matches(l, r, within));
		}
	return count;
}

static void all_pairs(void **unused)
{
	(void)unused;
	for (unsigned round = 0; round < 40; round++) {
		struct fay_join_counts counts;
		uint64_t within = random_below(300), step = random_below(40),
			 disorder = random_below(500);
		only_later = round % 4 > 1;
		struct fay_join_options options = options_of(within, 0);
		struct fay_join *join = start(&options);
		make_rows(step, disorder, 1 + random_below(20));
		add_all(join, step, round % 2 ? disorder : UINT64_MAX, &counts);
		assert_int_equal(counts.pairs, expected(within));
		assert_int_equal(
			counts.evicted[0] + counts.evicted[1] + counts.late[0] + counts.late[1], 0);
		fay_join_destroy(join);
	}
	only_later = false;
}

/* Old rows go once nothing can match them. */
static void forgets(void **unused)
{
	(void)unused;
	struct fay_join_counts counts;
	struct fay_join_options options = options_of(50, 0);
	struct fay_join *join = start(&options);
	make_rows(10, 0, 5);
	add_all(join, 10, 0, &counts);
	assert_int_equal(counts.pairs, expected(50));
	assert_true(counts.kept[0] < ROWS / 2);
	fay_join_advance(join, UINT64_MAX);
	fay_join_counts(join, &counts);
	assert_int_equal(counts.kept[0] + counts.kept[1], 0);
	lefts[0].number = 0;
	fay_join_add(join, 0, (const uint8_t *)&lefts[0], 0);
	fay_join_counts(join, &counts);
	assert_int_equal(counts.late[0], 1);
	fay_join_destroy(join);
}

/* In memory for few rows, some pairs are missing and the rows to blame are counted. */
static void counts_what_it_drops(void **unused)
{
	(void)unused;
	struct fay_join_counts counts;
	struct fay_join_options options = options_of(2000, 64 * 80);
	struct fay_join *join = start(&options);
	make_rows(10, 0, 3);
	add_all(join, 10, UINT64_MAX, &counts);
	uint64_t pairs = expected(2000);
	assert_true(counts.pairs < pairs);
	assert_true(counts.kept[0] <= 64 && counts.kept[1] <= 64);
	assert_int_equal(counts.evicted[0] + counts.kept[0], ROWS);
	assert_int_equal(counts.evicted[1] + counts.kept[1], ROWS);
	fay_join_destroy(join);
}

/* What no later right row has settled is alone, once, and a settled row makes no more pairs. In a
 * ring that is too small for all rows, but not for those that wait, none is missing either. */
static void settled_rows(void **unused)
{
	(void)unused;
	settles = true;
	for (unsigned round = 0; round < 60; round++) {
		struct fay_join_counts counts;
		bool small = round % 3 == 2;
		uint64_t within = small ? 200 : random_below(300), step = 1 + random_below(40);
		struct fay_join_options options =
			options_of(small ? 300 * step : within, small ? 64 * 256 : 0);
		struct fay_join *join = start(&options);
		make_rows(step, small ? 0 : random_below(500), 1 + random_below(20));
		memset(alone, 0, sizeof(alone));
		only_later = false;
		add_all(join, step, round % 2 || small ? 0 : UINT64_MAX, &counts);
		fay_join_advance(join, UINT64_MAX);
		fay_join_counts(join, &counts);
		for (unsigned l = 0; l < ROWS; l++) {
			unsigned settling = 0, seen = 0;
			for (unsigned r = 0; r < ROWS; r++) {
				bool later = rights[r].time > lefts[l].time;
				settling += later && matches(l, r, options.within);
				seen += later && found[l][r];
			}
			assert_int_equal(alone[l], !settling);
			assert_int_equal(seen, settling != 0);
		}
		assert_int_equal(counts.kept[0] + counts.kept[1] + counts.evicted[0], 0);
		fay_join_destroy(join);
	}
	settles = false;
}

static void extremes(void **unused)
{
	(void)unused;
	struct fay_join_counts counts;
	struct fay_join_options options = options_of(UINT64_MAX, 0);
	struct fay_join *join = start(&options);
	make_rows(0, 0, 1);
	lefts[0].time = 0;
	rights[0].time = UINT64_MAX;
	add_all(join, 0, UINT64_MAX, &counts);
	assert_int_equal(counts.pairs, (uint64_t)ROWS * ROWS);
	fay_join_destroy(join);
}

static void refuses_bad_options(void **unused)
{
	(void)unused;
	struct fay_join *join = NULL;
	struct fay_error error;
	struct fay_join_options good = options_of(1, 0), bad = good;
	bad.key_count = 0;
	assert_int_not_equal(fay_join_create(&bad, take_pair, NULL, found, &join, &error), 0);
	bad = good;
	bad.sides[1].keys[0].size = 8;
	assert_int_not_equal(fay_join_create(&bad, take_pair, NULL, found, &join, &error), 0);
	bad = good;
	bad.sides[0].keys[0].offset = sizeof(struct left) - 8;
	assert_int_not_equal(fay_join_create(&bad, take_pair, NULL, found, &join, &error), 0);
	bad = good;
	bad.sides[0].time_offset = sizeof(struct left);
	assert_int_not_equal(fay_join_create(&bad, take_pair, NULL, found, &join, &error), 0);
	assert_null(join);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(all_pairs),
					    cmocka_unit_test(forgets),
					    cmocka_unit_test(counts_what_it_drops),
					    cmocka_unit_test(settled_rows),
					    cmocka_unit_test(extremes),
					    cmocka_unit_test(refuses_bad_options) };
	state = 0x5eed;
	return cmocka_run_group_tests_name("joins", tests, NULL, NULL);
}
