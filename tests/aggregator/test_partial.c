/* SPDX-License-Identifier: MIT */
/*
 * Changes between snapshots: a producer records at random, snapshots are taken now and then, and
 * their changes are merged elsewhere in another order. The other aggregator must then hold what the
 * last snapshot shows, byte for byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/live/partial.h"
#include "producer.h"

#define SNAPSHOTS 40u

static void record_some(struct producer *producer, uint64_t *random)
{
	char name[NAME_SIZE] = "x";
	for (uint64_t n = test_random(random) % 30; n; n--) {
		int64_t value = (int64_t)(test_random(random) % 2000) - 1000;
		name[0] = (char)('a' + test_random(random) % 3);
		assert_true(producer_record(producer, (int64_t)(test_random(random) % 40), name,
					    value));
		producer_cell(producer, value);
		if (test_random(random) % 50 == 0)
			assert_true(producer_flush(producer));
		producer_global(producer);
	}
}

/* below: rows whose first key is below are forgotten once they were told; 0: none. */
static void take_changes(struct fay_aggregator *aggregator, struct fay_changes *changes,
			 uint64_t below, struct fay_result *out)
{
	struct fay_error error;
	struct fay_result now, final;
	assert_true(fay_aggregator_poll(aggregator, &error) >= 0);
	for (uint32_t state = 0; state < STATE_COUNT; state++) {
		assert_int_equal(fay_aggregator_snapshot(aggregator, state, &now, &error), FAY_OK);
		assert_int_equal(fay_changes_take(changes, &now, &out[state], &error), FAY_OK);
		fay_result_deinit(&now);
		if (below)
			fay_changes_forget(changes, aggregator, state, below, &final);
	}
}

static void assert_same(struct fay_aggregator *one, struct fay_aggregator *other)
{
	struct fay_error error;
	for (uint32_t state = 0; state < STATE_COUNT; state++) {
		struct fay_result a, b;
		assert_int_equal(fay_aggregator_snapshot(one, state, &a, &error), FAY_OK);
		assert_int_equal(fay_aggregator_snapshot(other, state, &b, &error), FAY_OK);
		assert_int_equal(a.row_count, b.row_count);
		assert_memory_equal(a.rows, b.rows, a.row_count * a.row_size);
		fay_result_deinit(&a);
		fay_result_deinit(&b);
	}
}

static void one_run(uint64_t seed)
{
	static struct fay_result all[SNAPSHOTS][STATE_COUNT];
	struct test_shm shm;
	struct producer producer;
	struct fay_aggregator *here, *there;
	struct fay_changes *changes;
	struct fay_error error;
	uint64_t random = seed * 77 + 1;
	test_shm_init(&shm, 4, 1 << 16);
	assert_true(producer_init(&producer, &shm, 1));
	assert_int_equal(fay_aggregator_create(&test_schema, &here, &error), FAY_OK);
	assert_int_equal(fay_aggregator_create(&test_schema, &there, &error), FAY_OK);
	assert_int_equal(fay_aggregator_add(here, shm.control, shm.size, 0, &error), FAY_OK);
	assert_int_equal(fay_changes_create(&test_schema, 1 << 24, &changes, &error), FAY_OK);
	for (unsigned i = 0; i < SNAPSHOTS; i++) {
		record_some(&producer, &random);
		take_changes(here, changes, 0, all[i]);
	}
	/* Backwards: order does not matter. */
	for (unsigned i = SNAPSHOTS; i-- > 0;)
		for (uint32_t state = 0; state < STATE_COUNT; state++) {
			assert_int_equal(fay_aggregator_merge(there, state, all[i][state].rows,
							      all[i][state].row_count, &error),
					 FAY_OK);
			fay_result_deinit(&all[i][state]);
		}
	assert_same(here, there);
	/* Nothing happened since: nothing is told. */
	take_changes(here, changes, 0, all[0]);
	for (uint32_t state = 0; state < STATE_COUNT; state++) {
		assert_int_equal(all[0][state].row_count, 0);
		fay_result_deinit(&all[0][state]);
	}
	fay_changes_destroy(changes);
	fay_aggregator_destroy(there);
	fay_aggregator_destroy(here);
	test_shm_deinit(&shm);
}

static void test_changes(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++)
		one_run(seed);
}

static void add_producer(struct test_shm *shm, struct producer *producer,
			 struct fay_aggregator **aggregator)
{
	struct fay_error error;
	test_shm_init(shm, 4, 1 << 16);
	assert_true(producer_init(producer, shm, 1));
	assert_int_equal(fay_aggregator_create(&test_schema, aggregator, &error), FAY_OK);
	assert_int_equal(fay_aggregator_add(*aggregator, shm->control, shm->size, 0, &error),
			 FAY_OK);
}

/* The same events twice. Where some groups are forgotten again and again, even as they are still
 * counted in, the changes add up to what is there where none are. */
static void test_forget(void **state)
{
	struct test_shm shm[2];
	struct producer producers[2];
	struct fay_aggregator *forgets, *keeps, *there;
	struct fay_changes *changes;
	struct fay_error error;
	struct fay_result out[STATE_COUNT];
	uint64_t random = 5, same;
	add_producer(&shm[0], &producers[0], &forgets);
	add_producer(&shm[1], &producers[1], &keeps);
	assert_int_equal(fay_aggregator_create(&test_schema, &there, &error), FAY_OK);
	assert_int_equal(fay_changes_create(&test_schema, 1 << 24, &changes, &error), FAY_OK);
	for (unsigned i = 0; i < 400; i++) {
		same = random;
		record_some(&producers[0], &random);
		record_some(&producers[1], &same);
		assert_true(fay_aggregator_poll(keeps, &error) >= 0); /* its ring is small */
		take_changes(forgets, changes, test_random(&random) % 60, out);
		for (uint32_t s = 0; s < STATE_COUNT; s++) {
			assert_int_equal(fay_aggregator_merge(there, s, out[s].rows,
							      out[s].row_count, &error),
					 FAY_OK);
			fay_result_deinit(&out[s]);
		}
	}
	assert_same(keeps, there);
	fay_changes_destroy(changes);
	fay_aggregator_destroy(there);
	fay_aggregator_destroy(keeps);
	fay_aggregator_destroy(forgets);
	test_shm_deinit(&shm[0]);
	test_shm_deinit(&shm[1]);
}

/* Groups without end, in memory for few of them: what is over takes none. */
static void test_forget_limit(void **state)
{
	struct fay_aggregator *aggregator;
	struct fay_changes *changes;
	struct fay_error error;
	struct fay_result now, out, final;
	assert_int_equal(fay_aggregator_create(&test_schema, &aggregator, &error), FAY_OK);
	assert_int_equal(fay_changes_create(&test_schema, 64 << 10, &changes, &error), FAY_OK);
	for (int64_t key = 0; key < 10000; key++) {
		struct table_row row = { .key = key, .name = "a", .count = 1 };
		assert_int_equal(fay_aggregator_merge(aggregator, STATE_TABLE,
						      (const uint8_t *)&row, 1, &error),
				 FAY_OK);
		assert_int_equal(fay_aggregator_snapshot(aggregator, STATE_TABLE, &now, &error),
				 FAY_OK);
		assert_true(now.row_count < 50);
		assert_int_equal(fay_changes_take(changes, &now, &out, &error), FAY_OK);
		assert_int_equal(out.row_count, 1);
		fay_changes_forget(changes, aggregator, STATE_TABLE,
				   key > 10 ? (uint64_t)key - 10 : 0, &final);
		fay_result_deinit(&now);
		fay_result_deinit(&out);
	}
	fay_changes_destroy(changes);
	fay_aggregator_destroy(aggregator);
}

/* Pictures of one group whose counts are `counts`, and of another one that some do not have; each
 * is told what it changes, and all told is merged. */
static struct fay_schema_column quantile_columns[] = {
	{ "key", FAY_TYPE_U64, FAY_MERGE_KEY, 8, 8, { 0 } },
	{ "p", FAY_TYPE_I64, FAY_MERGE_QUANTILE, 16, 8, { 0 } },
	{ "n", FAY_TYPE_U64, FAY_MERGE_COUNT, 24, 8, { 0 } }
};
static struct fay_schema_state quantile_state = {
	"q", FAY_STATE_TABLE, FAY_SCOPE_LOCAL, 0, 16 + 4 * 32, 4, 32, 0, 1, 2
};
static const struct fay_schema quantile_schema = { .local_size = 256,
						   .state_count = 1,
						   .column_count = 3,
						   .states = &quantile_state,
						   .columns = quantile_columns };
struct quantile_row {
	uint64_t tag, key;
	uint32_t counts[2];
	uint64_t n;
};

static void tell(struct fay_changes *changes, struct fay_aggregator *there,
		 const struct quantile_row *rows, size_t count, bool torn)
{
	struct fay_error error;
	struct fay_result out, now = { .row_size = sizeof(*rows),
				       .row_count = count,
				       .rows = (uint8_t *)(uintptr_t)rows,
				       .torn = torn };
	assert_int_equal(fay_changes_take(changes, &now, &out, &error), FAY_OK);
	assert_int_equal(fay_aggregator_merge(there, 0, out.rows, out.row_count, &error), FAY_OK);
	fay_result_deinit(&out);
}

/* A torn picture has less than the one before, or not all groups, also where some were forgotten:
 * in the end each event is told once. */
static void test_torn(void **state)
{
	struct quantile_row rows[] = { { 0, 1, { 5, 9 }, 14 }, { 0, 2, { 3, 0 }, 3 } };
	struct fay_aggregator *here, *there;
	struct fay_changes *changes;
	struct fay_error error;
	struct fay_result result, final;
	assert_int_equal(fay_aggregator_create(&quantile_schema, &here, &error), FAY_OK);
	assert_int_equal(fay_aggregator_create(&quantile_schema, &there, &error), FAY_OK);
	assert_int_equal(fay_changes_create(&quantile_schema, 1 << 20, &changes, &error), FAY_OK);
	tell(changes, there, rows, 2, false);
	/* A third group is drained, and forgotten. */
	struct quantile_row old = { 0, 0, { 1, 1 }, 2 };
	assert_int_equal(fay_aggregator_merge(here, 0, (const uint8_t *)&old, 1, &error), FAY_OK);
	tell(changes, there, &old, 1, true);
	fay_changes_forget(changes, here, 0, 1, &final);
	rows[0] = (struct quantile_row){ 0, 1, { 2, 9 }, 11 };
	tell(changes, there, rows, 1, true);
	rows[0] = (struct quantile_row){ 0, 1, { 6, 9 }, 15 };
	rows[1] = (struct quantile_row){ 0, 2, { 4, 0 }, 4 };
	tell(changes, there, rows, 2, false);
	assert_int_equal(fay_aggregator_snapshot(there, 0, &result, &error), FAY_OK);
	assert_int_equal(result.row_count, 3);
	assert_memory_equal(result.rows, &old, sizeof(old));
	assert_memory_equal(result.rows + sizeof(old), rows, sizeof(rows));
	fay_result_deinit(&result);
	fay_changes_destroy(changes);
	fay_aggregator_destroy(there);
	fay_aggregator_destroy(here);
}

/*
 * Every picture is torn, always without the same group, and old groups are forgotten all the while:
 * what is remembered stays as much as is counted. The group that was missing comes back, and what
 * it had before is not told again.
 */
static void test_torn_always(void **state)
{
	struct fay_aggregator *here, *there;
	struct fay_changes *changes;
	struct fay_error error;
	struct fay_result result, final;
	struct quantile_row live = { 0, UINT64_MAX, { 1, 0 }, 1 };
	assert_int_equal(fay_aggregator_create(&quantile_schema, &here, &error), FAY_OK);
	assert_int_equal(fay_aggregator_create(&quantile_schema, &there, &error), FAY_OK);
	/* some 100 rows */
	assert_int_equal(fay_changes_create(&quantile_schema, 16 << 10, &changes, &error), FAY_OK);
	tell(changes, there, &live, 1, false);
	for (uint64_t key = 1; key <= 10000; key++) {
		struct quantile_row row = { 0, key, { 1, 1 }, 2 };
		assert_int_equal(fay_aggregator_merge(here, 0, (const uint8_t *)&row, 1, &error),
				 FAY_OK);
		tell(changes, there, &row, 1, true);
		fay_changes_forget(changes, here, 0, key + 1, &final);
	}
	assert_int_equal(fay_changes_missing(changes), 1);
	live = (struct quantile_row){ 0, UINT64_MAX, { 4, 0 }, 4 };
	tell(changes, there, &live, 1, false);
	assert_int_equal(fay_changes_missing(changes), 0);
	assert_int_equal(fay_aggregator_snapshot(there, 0, &result, &error), FAY_OK);
	assert_int_equal(result.row_count, 10001);
	assert_memory_equal(result.rows + 10000 * sizeof(live), &live, sizeof(live));
	fay_result_deinit(&result);
	fay_changes_destroy(changes);
	fay_aggregator_destroy(there);
	fay_aggregator_destroy(here);
}

/* A state whose rows replace: a key, a summary of the most frequent two, a count. */
static struct fay_schema_column top_columns[] = {
	{ "key", FAY_TYPE_U64, FAY_MERGE_KEY, 8, 8, { 0 } },
	{ "t", FAY_TYPE_I64, FAY_MERGE_TOP, 16, 48, { 0 } },
	{ "n", FAY_TYPE_U64, FAY_MERGE_COUNT, 64, 8, { 0 } }
};
static struct fay_schema_state top_state = {
	"t", FAY_STATE_TABLE, FAY_SCOPE_LOCAL, 0, 16 + 4 * 72, 4, 72, 0, 1, 2
};
static const struct fay_schema top_schema = { .local_size = 512,
					      .state_count = 1,
					      .column_count = 3,
					      .states = &top_state,
					      .columns = top_columns };
struct top_row {
	uint64_t tag, key;
	struct {
		uint64_t total, error;
		struct {
			uint64_t item, count;
		} pairs[2];
	} top;
	uint64_t n;
};

struct replacing {
	/* what was drained and what is live on a machine; what the other side has of it */
	struct fay_aggregator *here, *live, *own, *settled;
	struct fay_changes *changes;
	uint64_t final; /* rows */
};

/* So many events of a group; live ones lie in a thread's table. */
static void record_top(struct fay_aggregator *where, uint64_t key, uint64_t count)
{
	struct fay_error error;
	struct top_row row = { .key = key,
			       .top = { .total = count, .pairs = { { 7, count } } },
			       .n = count };
	assert_int_equal(fay_aggregator_merge(where, 0, (const uint8_t *)&row, 1, &error), FAY_OK);
}

/* A picture is told, and then what lies below is forgotten. */
static void tell_top(struct replacing *r, uint64_t below, bool torn)
{
	struct fay_aggregator *all;
	struct fay_error error;
	struct fay_result now, out;
	assert_int_equal(fay_aggregator_create(&top_schema, &all, &error), FAY_OK);
	assert_int_equal(fay_aggregator_merge_all(all, r->here, &error), FAY_OK);
	if (!torn)
		assert_int_equal(fay_aggregator_merge_all(all, r->live, &error), FAY_OK);
	assert_int_equal(fay_aggregator_snapshot(all, 0, &now, &error), FAY_OK);
	now.torn = torn;
	assert_int_equal(fay_changes_take(r->changes, &now, &out, &error), FAY_OK);
	assert_int_equal(fay_aggregator_replace(r->own, 0, out.rows, out.row_count, &error),
			 FAY_OK);
	fay_result_deinit(&out);
	fay_changes_forget(r->changes, r->here, 0, below, &out);
	r->final += out.row_count;
	assert_int_equal(
		fay_aggregator_settle(r->settled, r->own, 0, out.rows, out.row_count, &error),
		FAY_OK);
	fay_result_deinit(&out);
	fay_result_deinit(&now);
	fay_aggregator_destroy(all);
}

static void assert_tops(struct replacing *r, const uint64_t want[2])
{
	struct fay_error error;
	struct fay_result result;
	struct fay_aggregator *all;
	assert_int_equal(fay_aggregator_create(&top_schema, &all, &error), FAY_OK);
	assert_int_equal(fay_aggregator_merge_all(all, r->settled, &error), FAY_OK);
	assert_int_equal(fay_aggregator_merge_all(all, r->own, &error), FAY_OK);
	assert_int_equal(fay_aggregator_snapshot(all, 0, &result, &error), FAY_OK);
	assert_int_equal(result.row_count, 2);
	for (uint64_t i = 0; i < 2; i++) {
		const struct top_row *row = (const struct top_row *)result.rows + i;
		assert_int_equal(row->key, i + 1);
		assert_int_equal(row->n, want[i]);
		assert_int_equal(row->top.pairs[0].count, want[i]);
	}
	fay_result_deinit(&result);
	fay_aggregator_destroy(all);
}

/* Rows that replace are forgotten once nothing of them is live; what comes for them later, even
 * just as much as before, or was not seen by a torn picture, is added. */
static void test_forget_replaced(void **state)
{
	struct replacing r = { 0 };
	struct fay_error error;
	assert_int_equal(fay_aggregator_create(&top_schema, &r.here, &error), FAY_OK);
	assert_int_equal(fay_aggregator_create(&top_schema, &r.live, &error), FAY_OK);
	assert_int_equal(fay_aggregator_create(&top_schema, &r.own, &error), FAY_OK);
	assert_int_equal(fay_aggregator_create(&top_schema, &r.settled, &error), FAY_OK);
	assert_int_equal(fay_changes_create(&top_schema, 1 << 20, &r.changes, &error), FAY_OK);
	record_top(r.here, 1, 5);
	record_top(r.here, 2, 3);
	record_top(r.live, 2, 4);
	tell_top(&r, 3, false); /* 2 is live */
	assert_int_equal(r.final, 1);
	assert_tops(&r, (const uint64_t[]){ 5, 7 });
	record_top(r.here, 1, 5); /* late, and as much as before */
	tell_top(&r, 0, false);
	assert_tops(&r, (const uint64_t[]){ 10, 7 });
	tell_top(&r, 3, true); /* what is live of 2 is not seen */
	assert_int_equal(r.final, 3);
	tell_top(&r, 3, false);
	assert_tops(&r, (const uint64_t[]){ 10, 7 });
	assert_int_equal(fay_aggregator_row_bytes(r.here), 0);
	fay_changes_destroy(r.changes);
	fay_aggregator_destroy(r.here);
	fay_aggregator_destroy(r.live);
	fay_aggregator_destroy(r.own);
	fay_aggregator_destroy(r.settled);
}

static void test_replace(void **state)
{
	struct fay_aggregator *aggregator;
	struct fay_error error;
	struct fay_result result;
	struct table_row row = { .key = 1, .name = "a", .count = 5, .sum = 9 };
	assert_int_equal(fay_aggregator_create(&test_schema, &aggregator, &error), FAY_OK);
	assert_int_equal(
		fay_aggregator_replace(aggregator, STATE_TABLE, (const uint8_t *)&row, 1, &error),
		FAY_OK);
	row.count = 7;
	assert_int_equal(
		fay_aggregator_replace(aggregator, STATE_TABLE, (const uint8_t *)&row, 1, &error),
		FAY_OK);
	assert_int_equal(fay_aggregator_snapshot(aggregator, STATE_TABLE, &result, &error), FAY_OK);
	assert_int_equal(result.row_count, 1);
	assert_int_equal(((const struct table_row *)result.rows)->count, 7);
	fay_result_deinit(&result);
	assert_int_equal(
		fay_aggregator_merge(aggregator, STATE_COUNT, (const uint8_t *)&row, 1, &error),
		FAY_E_REFUSED);
	fay_aggregator_destroy(aggregator);
}

static void test_limit(void **state)
{
	struct fay_changes *changes;
	struct fay_error error;
	struct fay_result now = { .state = STATE_TABLE,
				  .row_size = sizeof(struct table_row),
				  .row_count = 1000 },
			  out;
	struct table_row *rows = calloc(now.row_count, sizeof(*rows));
	assert_non_null(rows);
	for (size_t i = 0; i < now.row_count; i++)
		rows[i].key = (int64_t)i;
	now.rows = (uint8_t *)rows;
	assert_int_equal(fay_changes_create(&test_schema, 16 << 10, &changes, &error), FAY_OK);
	assert_int_equal(fay_changes_take(changes, &now, &out, &error), FAY_E_LIMIT);
	fay_changes_destroy(changes);
	free(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changes),      cmocka_unit_test(test_forget),
		cmocka_unit_test(test_forget_limit), cmocka_unit_test(test_torn),
		cmocka_unit_test(test_torn_always),  cmocka_unit_test(test_forget_replaced),
		cmocka_unit_test(test_replace),      cmocka_unit_test(test_limit)
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
