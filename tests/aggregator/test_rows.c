/* SPDX-License-Identifier: MIT */
/* Rows by key: the keyed hash of their index is the published one, it does not collide where weaker
 * ones do, and nothing that is seen depends on it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/live/aggregator_parts.h"
#include "producer.h"

enum { WORDS = 8, KEY_BYTES = WORDS * 8, ROW_BYTES = 8 + KEY_BYTES + 8, ROWS = 4000, KEYS = 700 };

static struct fay_schema_column columns[] = {
	{ "name", FAY_TYPE_STRING, FAY_MERGE_KEY, 8, KEY_BYTES, { 0 } },
	{ "count", FAY_TYPE_U64, FAY_MERGE_COUNT, 8 + KEY_BYTES, 8, { 0 } },
};
static struct fay_schema_state table = {
	.name = "t", .row_size = ROW_BYTES, .first_column = 0, .keys = 1, .values = 1
};
static const struct fay_schema schema = {
	.states = &table, .state_count = 1, .columns = columns, .column_count = 2
};

/* SipHash-1-3 of the bytes 0, 1, 2 ... with the key 0 to 15, as its authors' reference
 * implementation gives them. */
static void test_published_values(void **state)
{
	static const struct fay_hash_key key = { { 0x0706050403020100u, 0x0f0e0d0c0b0a0908u } };
	static const uint64_t published[] = { 0xabac0158050fc4dcu, 0x369095118d299a8eu,
					      0xcc4fdd1a7d908b66u, 0xf464aeb267349c8cu };
	uint8_t bytes[24];

	for (uint8_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i;
	for (size_t words = 0; words < 4; words++) {
		struct fay_hash hash = fay_hash_begin(&key);

		fay_hash_add(&hash, bytes, 8 * words);
		assert_true(fay_hash_end(&hash) == published[words]);
	}
}

/* By a difference in the first word that one in the next takes back: with a hash that multiplies
 * and folds, such keys collide whatever it begins with. */
static void test_differences(void **state)
{
	struct fay_hash_key key = { { 1, 2 } };
	uint64_t words[WORDS], seen[1 << (WORDS / 2)];

	for (size_t chosen = 0; chosen < sizeof(seen) / sizeof(seen[0]); chosen++) {
		struct fay_hash hash = fay_hash_begin(&key);

		memset(words, 0, sizeof(words));
		for (size_t i = 0; i < WORDS / 2; i++)
			if (chosen >> i & 1) {
				words[2 * i] = UINT64_C(1) << 63;
				words[2 * i + 1] = UINT64_C(1) << 63 | UINT64_C(1) << 31;
			}
		fay_hash_add(&hash, words, sizeof(words));
		seen[chosen] = fay_hash_end(&hash);
		for (size_t i = 0; i < chosen; i++)
			assert_true(seen[i] != seen[chosen]);
	}
}

/* Row `number` of a stream in which keys come again. */
static void make_row(unsigned number, uint8_t row[ROW_BYTES])
{
	uint64_t seed = number, one = 1;

	memset(row, 0, ROW_BYTES);
	snprintf((char *)row + 8, KEY_BYTES, "key %u", (unsigned)(test_random(&seed) % KEYS));
	memcpy(row + 8 + KEY_BYTES, &one, sizeof(one));
}

static void fill(struct fay_rows *rows, struct fay_budget *budget, struct fay_hash_key key)
{
	uint8_t row[ROW_BYTES];

	fay_rows_init(rows, &schema, 0, budget);
	rows->hash_key = key;
	for (unsigned i = 0; i < ROWS; i++) {
		make_row(i, row);
		assert_true(fay_rows_merge(rows, row));
	}
}

static void test_order_is_not_the_hash(void **state)
{
	struct fay_budget budget = { .limit = 1 << 26 };
	struct fay_rows first, other;
	uint8_t row[ROW_BYTES];

	fill(&first, &budget, (struct fay_hash_key){ { 1, 2 } });
	assert_true(first.count > KEYS / 2 && first.count <= KEYS);
	for (uint64_t k = 3; k < 10; k++) {
		fill(&other, &budget, (struct fay_hash_key){ { k, ~k } });
		assert_int_equal(other.count, first.count);
		assert_memory_equal(other.rows, first.rows, first.count * ROW_BYTES);
		make_row((unsigned)k, row);
		assert_non_null(fay_rows_find(&other, row));
		fay_rows_deinit(&other);
	}
	fay_rows_deinit(&first);
	assert_int_equal(budget.used, 0);
}

/* In parts of any size, in which keys come twice and the index grows: as one after the other. */
static void test_many_at_once(void **state)
{
	struct fay_budget budget = { .limit = 1 << 26 };
	struct fay_hash_key key = { { 1, 2 } };
	struct fay_rows each, many, none;
	uint8_t *all = malloc((size_t)ROWS * ROW_BYTES);
	uint64_t seed = 7;

	assert_non_null(all);
	fill(&each, &budget, key);
	for (unsigned i = 0; i < ROWS; i++)
		make_row(i, all + (size_t)i * ROW_BYTES);
	fay_rows_init(&many, &schema, 0, &budget);
	many.hash_key = key;
	for (size_t at = 0, count; at < ROWS; at += count) {
		count = test_random(&seed) % (3 * FAY_ROWS_AT_ONCE);
		count = count < ROWS - at ? count : ROWS - at;
		assert_true(fay_rows_merge_many(&many, all + at * ROW_BYTES, count));
	}
	assert_int_equal(many.count, each.count);
	assert_memory_equal(many.rows, each.rows, each.count * ROW_BYTES);
	budget.limit = budget.used; /* no room: nothing is merged, and it says so */
	fay_rows_init(&none, &schema, 0, &budget);
	assert_false(fay_rows_merge_many(&none, all, ROWS));
	assert_int_equal(none.count, 0);
	fay_rows_deinit(&none);
	fay_rows_deinit(&many);
	fay_rows_deinit(&each);
	free(all);
	assert_int_equal(budget.used, 0);
}

/* Merged anew in each round, some groups with more, some gone and back, some new: what comes out is
 * what rows that know nothing of earlier rounds come to. */
static void test_again(void **state)
{
	struct fay_budget budget = { .limit = 1 << 26 };
	struct fay_rows kept, fresh;
	uint8_t row[ROW_BYTES], *sorted;
	size_t count, places = 0;

	fay_rows_init(&kept, &schema, 0, &budget);
	for (unsigned round = 0; round < 60; round++) {
		fay_rows_init(&fresh, &schema, 0, &budget);
		fay_rows_again(&kept);
		for (unsigned i = 0; i < 40 * round; i++) {
			make_row(i * (1 + round % 3), row);
			assert_true(fay_rows_merge(&kept, row) && fay_rows_merge(&fresh, row));
		}
		fay_rows_sort(&fresh);
		assert_true(fay_rows_take_sorted(&kept, &sorted, &count));
		assert_int_equal(count, fresh.count);
		assert_memory_equal(sorted, fresh.rows, count * ROW_BYTES);
		assert_true(kept.count >= count && kept.count >= places);
		places = kept.count;
		free(sorted);
		fay_rows_deinit(&fresh);
	}
	assert_in_range(places, KEYS / 2, KEYS);
	assert_in_range(kept.sorted, places - places / 4, places);
	fay_rows_deinit(&kept);
	assert_int_equal(budget.used, 0);
}

static void test_key_is_drawn(void **state)
{
	static const struct fay_hash_key none;
	struct fay_budget budget = { .limit = 1 << 20 };
	struct fay_rows rows;

	assert_ptr_equal(fay_hash_key(), fay_hash_key());
	assert_memory_not_equal(fay_hash_key(), &none, sizeof(none));
	fay_rows_init(&rows, &schema, 0, &budget);
	assert_memory_equal(&rows.hash_key, fay_hash_key(), sizeof(none));
	fay_rows_deinit(&rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published_values),
		cmocka_unit_test(test_differences),
		cmocka_unit_test(test_order_is_not_the_hash),
		cmocka_unit_test(test_many_at_once),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_key_is_drawn),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
