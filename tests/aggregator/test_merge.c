/* SPDX-License-Identifier: MIT */
/* The merge operators' laws (identity, commutative, associative, equal to feeding everything into
 * one) and the decoding of partials. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "producer.h"

#define WORDS (2 + 8)
#define ROUNDS 500

static const struct fay_schema_column operators[] = {
	{ "count", FAY_TYPE_U64, FAY_MERGE_COUNT, 8, 8, { 0 } },
	{ "sum", FAY_TYPE_I64, FAY_MERGE_SUM, 8, 8, { 0 } },
	{ "sum", FAY_TYPE_U64, FAY_MERGE_SUM, 8, 8, { 0 } },
	{ "min", FAY_TYPE_I64, FAY_MERGE_MIN, 8, 8, { 0 } },
	{ "min", FAY_TYPE_U64, FAY_MERGE_MIN, 8, 8, { 0 } },
	{ "max", FAY_TYPE_I64, FAY_MERGE_MAX, 8, 8, { 0 } },
	{ "max", FAY_TYPE_U64, FAY_MERGE_MAX, 8, 8, { 0 } },
	{ "average", FAY_TYPE_I64, FAY_MERGE_AVERAGE, 8, 16, { 0 } },
	{ "linear", FAY_TYPE_I64, FAY_MERGE_HIST_LINEAR, 8, WORDS * 8, { 0, 10 } },
	{ "log2", FAY_TYPE_I64, FAY_MERGE_HIST_LOG2, 8, FAY_HIST_LOG2_BUCKETS * 8, { 0 } },
	{ "loglinear",
	  FAY_TYPE_I64,
	  FAY_MERGE_HIST_LOGLINEAR,
	  8,
	  FAY_HIST_LOGLINEAR_BUCKETS * 8,
	  { 0 } },
	{ "quantiles", FAY_TYPE_I64, FAY_MERGE_QUANTILE, 8, FAY_QUANTILE_BUCKETS * 4, { 0 } },
	{ "distinct", FAY_TYPE_U64, FAY_MERGE_DISTINCT, 8, 256, { 0 } },
	{ "first", FAY_TYPE_I64, FAY_MERGE_FIRST, 8, 16, { 0 } },
	{ "last", FAY_TYPE_I64, FAY_MERGE_LAST, 8, 16, { 0 } },
};
#define OPERATORS (sizeof(operators) / sizeof(operators[0]))
#define ROW_WORDS (1 + FAY_HIST_LOGLINEAR_BUCKETS + 1)

typedef uint64_t row[ROW_WORDS];

static void randomize(uint64_t *seed, row to)
{
	for (size_t i = 0; i < ROW_WORDS; i++)
		to[i] = test_random(seed) >> (test_random(seed) % 64);
}

static void merge(const struct fay_schema_column *column, row to, const row from)
{
	fay_merge_column(column, (uint8_t *)to, (const uint8_t *)from);
}

static void test_laws(void **state)
{
	uint64_t seed = 42;
	for (size_t o = 0; o < OPERATORS; o++)
		for (int round = 0; round < ROUNDS; round++) {
			row a, b, c, left, right, zero = { 0 };
			randomize(&seed, a);
			randomize(&seed, b);
			randomize(&seed, c);
			/* Identity: both ways, and bytes outside the column stay. */
			memcpy(left, a, sizeof(row));
			merge(&operators[o], left, zero);
			assert_memory_equal(left, a, sizeof(row));
			memcpy(left, zero, sizeof(row));
			merge(&operators[o], left, a);
			assert_memory_equal((uint8_t *)left + 8, (uint8_t *)a + 8,
					    operators[o].size);
			assert_int_equal(left[0], 0);
			/* Commutative. */
			memcpy(left, a, sizeof(row));
			memcpy(right, b, sizeof(row));
			merge(&operators[o], left, b);
			merge(&operators[o], right, a);
			assert_memory_equal((uint8_t *)left + 8, (uint8_t *)right + 8,
					    operators[o].size);
			/* Associative: (a+b)+c = a+(b+c). */
			row bc;
			memcpy(bc, b, sizeof(row));
			merge(&operators[o], bc, c);
			memcpy(right, a, sizeof(row));
			merge(&operators[o], right, bc);
			merge(&operators[o], left, c);
			assert_memory_equal(left, right, 8 + operators[o].size);
			/* The word after the column is not touched. */
			if (operators[o].size < sizeof(row) - 8)
				assert_int_equal(left[1 + operators[o].size / 8],
						 a[1 + operators[o].size / 8]);
		}
}

static uint64_t encode(const struct fay_schema_column *column, int64_t x)
{
	uint64_t biased = (uint64_t)x ^ (column->type == FAY_TYPE_I64 ? 1ull << 63 : 0);
	return column->merge == FAY_MERGE_MIN ? ~biased : biased;
}

static void test_extrema(void **state)
{
	static const int64_t values[] = { -5, 3, 1000, -1, 7 };
	for (size_t o = 3; o < 7; o++) {
		row all = { 0 };
		struct fay_value value;
		/* Nothing fed in: no value, but for the unsigned maximum. */
		assert_int_equal(fay_value_decode(&operators[o], (uint8_t *)all, &value),
				 operators[o].merge == FAY_MERGE_MAX &&
					 operators[o].type == FAY_TYPE_U64);
		for (size_t i = 0; i < 5; i++) {
			row one = { 0, encode(&operators[o], values[i]) };
			merge(&operators[o], all, one);
		}
		assert_true(fay_value_decode(&operators[o], (uint8_t *)all, &value));
		if (operators[o].type == FAY_TYPE_I64)
			assert_int_equal(value.i64,
					 operators[o].merge == FAY_MERGE_MIN ? -5 : 1000);
		else
			assert_int_equal(value.u64,
					 operators[o].merge == FAY_MERGE_MIN ? 3 : UINT64_MAX);
	}
}

static void test_decode(void **state)
{
	row partial = { 0, (uint64_t)-10, 4 };
	struct fay_value value;
	assert_true(fay_value_decode(&operators[7], (uint8_t *)partial, &value));
	assert_int_equal(value.kind, FAY_VALUE_DOUBLE);
	assert_true(value.d == -2.5);
	partial[2] = 0;
	assert_false(fay_value_decode(&operators[7], (uint8_t *)partial, &value));
	assert_true(fay_value_decode(&operators[1], (uint8_t *)partial, &value));
	assert_int_equal(value.kind, FAY_VALUE_I64);
	assert_int_equal(value.i64, -10);
	assert_true(fay_value_decode(&operators[8], (uint8_t *)partial, &value));
	assert_int_equal(value.histogram.count, WORDS);
	assert_ptr_equal(value.histogram.buckets, &partial[1]);
	struct fay_schema_column name = { "name", FAY_TYPE_STRING, FAY_MERGE_KEY, 8, 8, { 0 } };
	memcpy(&partial[1], "redis\0\0", 8);
	assert_true(fay_value_decode(&name, (uint8_t *)partial, &value));
	assert_int_equal(value.string.size, 5);
	memcpy(&partial[1], "12345678", 8);
	assert_true(fay_value_decode(&name, (uint8_t *)partial, &value));
	assert_int_equal(value.string.size, 8);
}

/* Registers that no stream of values fills: the estimate is infinite, the number that is shown is
 * the largest. */
static void test_full_sketch(void **state)
{
	const struct fay_schema_column *distinct = &operators[12];
	row full = { 0 };
	struct fay_value value;

	memset(&full[1], 0xff, distinct->size);
	assert_true(fay_value_decode(distinct, (uint8_t *)full, &value));
	assert_true(value.u64 == UINT64_MAX);
	memset(&full[1], 0, distinct->size);
	assert_true(fay_value_decode(distinct, (uint8_t *)full, &value));
	assert_true(value.u64 == 0);
}

/* Pairs: summaries of the most frequent keep their bound in any grouping, samples are one set
 * whatever the order; any bytes are harmless. */
static void test_pairs(void **state)
{
	static const struct fay_schema_column top = { "top", FAY_TYPE_U64, FAY_MERGE_TOP,
						      8,     16 + 4 * 16,  { 0 } };
	static const struct fay_schema_column sample = { "sample", FAY_TYPE_U64, FAY_MERGE_SAMPLE,
							 8,        4 * 16,       { 0 } };
	row a = { 0, 100, 2, 7, 50, 8, 30, 9, 10, 10, 2 }, b = { 0, 60, 0, 8, 25, 11, 20, 12, 15 },
	    zero = { 0 }, left, right;
	row even = { 0, 5, 1 }; /* five values, one each: all counts are down to 0 */
	struct fay_item item;
	struct fay_value value;
	uint64_t total, error, seed = 3;

	assert_false(fay_value_decode(&top, (uint8_t *)zero, &value));
	assert_true(fay_value_decode(&top, (uint8_t *)even, &value));
	assert_int_equal(value.list.count, 0);
	memcpy(left, a, sizeof(row));
	merge(&top, left, b);
	memcpy(right, b, sizeof(row));
	merge(&top, right, a);
	assert_memory_equal(left, right, sizeof(row));
	fay_value_top_bound(&top, (uint8_t *)left, &total, &error);
	assert_int_equal(total, 160);
	assert_int_equal(error, 2 + 10); /* 55, 50, 20, 15, and 10 is the fifth */
	assert_true(fay_value_item(&top, (uint8_t *)left, 0, &item));
	assert_int_equal(item.key, 8);
	assert_int_equal(item.count, 45);
	assert_true(fay_value_item(&top, (uint8_t *)left, 3, &item));
	assert_int_equal(item.count, 5);
	memcpy(right, left, sizeof(row));
	merge(&top, left, zero);
	assert_memory_equal(left, right, sizeof(row));
	for (int round = 0; round < ROUNDS; round++) {
		row c, d, e;

		randomize(&seed, c);
		randomize(&seed, d);
		randomize(&seed, e);
		memcpy(left, c, sizeof(row));
		merge(&sample, left, d);
		merge(&sample, left, e);
		memcpy(right, e, sizeof(row));
		merge(&sample, right, c);
		merge(&sample, right, d);
		assert_memory_equal((uint8_t *)left + 8, (uint8_t *)right + 8, sample.size);
		merge(&top, c, d);
		for (size_t i = 0; fay_value_item(&top, (uint8_t *)c, i, &item); i++)
			assert_true(i < 4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pairs),       cmocka_unit_test(test_laws),
		cmocka_unit_test(test_extrema),     cmocka_unit_test(test_decode),
		cmocka_unit_test(test_full_sketch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
