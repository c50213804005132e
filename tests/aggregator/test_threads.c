/* SPDX-License-Identifier: MIT */
/*
 * The aggregator against an exact oracle, with real producer threads: every event is counted once,
 * at the end and (within the events in flight) in every live snapshot; tables overflow constantly.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "producer.h"

static struct fay_error failure;

enum { KEYS = 500, THREADS = 6 };
#ifdef __SANITIZE_THREAD__
enum { EVENTS = 20000 };
#else
enum { EVENTS = 150000 };
#endif

struct expected {
	uint64_t count, sum; /* modulo 2^64 */
	int64_t min, max;
};

static void expect(struct expected *expected, int64_t value)
{
	if (!expected->count || value < expected->min)
		expected->min = value;
	if (!expected->count || value > expected->max)
		expected->max = value;
	expected->count++;
	expected->sum += (uint64_t)value;
}

static void expect_all(struct expected *to, const struct expected *from)
{
	if (!from->count)
		return;
	uint64_t count = to->count + from->count, sum = to->sum + from->sum;
	int64_t max = to->max;
	if (!to->count || from->max > max)
		max = from->max;
	expect(to, from->min);
	*to = (struct expected){ count, sum, to->min, max };
}

static void make_key(unsigned key, int64_t *number, char name[NAME_SIZE])
{
	/* Negative numbers too, and names that differ in the last byte only. */
	memset(name, 0, NAME_SIZE);
	*number = (int64_t)(key / 2) - 60;
	memcpy(name, "redis-server", 12);
	name[NAME_SIZE - 1] = (char)('a' + key % 2);
}

struct worker {
	struct producer producer;
	uint64_t seed, id;
	struct expected table[KEYS], cell;
	uint64_t emitted, lost;
	pthread_t thread;
};

static void *work(void *context)
{
	struct worker *worker = context;
	uint64_t seed = worker->seed;
	for (unsigned i = 0; i < EVENTS; i++) {
		/* Now a few hot keys, now all of them. */
		unsigned key = (unsigned)(test_random(&seed) % ((i >> 10) % 3 ? KEYS : 20));
		int64_t number, value = (int64_t)test_random(&seed) >> (test_random(&seed) % 60);
		char name[NAME_SIZE];
		make_key(key, &number, name);
		if (producer_record(&worker->producer, number, name, value))
			expect(&worker->table[key], value);
		else
			worker->lost++;
		producer_cell(&worker->producer, value);
		expect(&worker->cell, value);
		if (i % 16 == 0 && producer_emit(&worker->producer, worker->id, worker->emitted))
			worker->emitted++;
		if (i % 64 == 0)
			producer_global(&worker->producer);
	}
	return NULL;
}

static uint64_t recorded(struct worker *workers)
{
	uint64_t total = 0;
	for (unsigned i = 0; i < THREADS; i++)
		total += __atomic_load_n(&workers[i].producer.recorded, __ATOMIC_ACQUIRE);
	return total;
}

/* Stream rows must come in each thread's order without a gap. */
static uint64_t next_number[THREADS];
static unsigned disorder;

static void on_row(void *context, uint32_t state, const uint8_t *bytes)
{
	const struct stream_row *row = (const struct stream_row *)bytes;
	if (state != STATE_STREAM || row->thread >= THREADS ||
	    row->number != next_number[row->thread]++)
		disorder++;
}

static void check_table(const struct fay_result *result, struct worker *workers)
{
	const struct table_row *rows = (const struct table_row *)result->rows;
	size_t at = 0;
	assert_int_equal(result->row_size, sizeof(*rows));
	for (unsigned key = 0; key < KEYS; key++) {
		struct expected expected = { 0 };
		int64_t number;
		char name[NAME_SIZE];
		for (unsigned i = 0; i < THREADS; i++)
			expect_all(&expected, &workers[i].table[key]);
		if (!expected.count)
			continue;
		/* make_key() counts up in sort order: numbers signed, then names. */
		make_key(key, &number, name);
		assert_true(at < result->row_count);
		const struct table_row *row = &rows[at++];
		assert_int_equal(row->key, number);
		assert_memory_equal(row->name, name, NAME_SIZE);
		assert_int_equal(row->count, expected.count);
		assert_int_equal(row->sum, expected.sum);
		assert_int_equal(row->average_sum, expected.sum);
		assert_int_equal(row->average_count, expected.count);
		assert_int_equal(row->max, (uint64_t)expected.max ^ 1ull << 63);
		assert_int_equal(row->min, ~((uint64_t)expected.min ^ 1ull << 63));
	}
	assert_int_equal(at, result->row_count);
}

static void check_cell(struct fay_aggregator *aggregator, struct worker *workers)
{
	struct fay_result result;
	uint64_t sum = 0;
	assert_int_equal(fay_aggregator_snapshot(aggregator, STATE_CELL, &result, &failure), 0);
	assert_int_equal(result.row_count, 1);
	const struct cell_row *cell = (const struct cell_row *)result.rows;
	for (unsigned i = 0; i < FAY_HIST_LOG2_BUCKETS; i++)
		sum += cell->histogram[i];
	assert_int_equal(cell->count, (uint64_t)THREADS * EVENTS);
	assert_int_equal(sum, (uint64_t)THREADS * EVENTS);
	assert_int_equal(result.threads, THREADS);
	fay_result_deinit(&result);
	assert_int_equal(fay_aggregator_snapshot(aggregator, STATE_GLOBAL, &result, &failure), 0);
	assert_int_equal(*(uint64_t *)result.rows, (uint64_t)THREADS * ((EVENTS + 63) / 64));
	fay_result_deinit(&result);
}

static void check_end(struct fay_aggregator *aggregator, struct worker *workers)
{
	struct fay_result result;
	uint64_t emitted = 0, received = 0;
	assert_true(fay_aggregator_poll(aggregator, &failure) >= 0);
	assert_int_equal(fay_aggregator_snapshot(aggregator, STATE_TABLE, &result, &failure), 0);
	check_table(&result, workers);
	assert_int_equal(test_table_total(&result) + result.events_lost_full,
			 (uint64_t)THREADS * EVENTS);
	assert_int_equal(result.threads, THREADS);
	fay_result_deinit(&result);
	check_cell(aggregator, workers);
	for (unsigned i = 0; i < THREADS; i++) {
		emitted += workers[i].emitted;
		received += next_number[i];
		assert_int_equal(workers[i].lost, 0);
	}
	assert_int_equal(disorder, 0);
	assert_int_equal(emitted, received);
	assert_int_equal(emitted, (uint64_t)THREADS * ((EVENTS + 15) / 16));
}

static void count_threads(bool keep)
{
	struct worker *workers = calloc(THREADS, sizeof(*workers));
	struct fay_aggregator *aggregator;
	struct test_shm shm;
	unsigned snapshots = 0, torn = 0;
	memset(next_number, 0, sizeof(next_number));
	/* The smallest ring that holds a table: it is full all the time, and every record wraps
	 * some time. */
	test_shm_init(&shm, THREADS + 2, 2048);
	assert_int_equal(fay_aggregator_create(&test_schema, &aggregator, &failure), 0);
	assert_int_equal(fay_aggregator_add(aggregator, shm.control, shm.size, 0, &failure), 0);
	fay_aggregator_on_row(aggregator, on_row, NULL);
	if (keep)
		assert_true(fay_aggregator_keep_pictures(aggregator));
	double start = test_seconds();
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i].seed = 0x9e3779b97f4a7c15u * (i + 1);
		workers[i].id = i;
		assert_true(producer_init(&workers[i].producer, &shm, 100));
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	/* Live pictures: nothing twice, nothing missing but what is in flight. */
	while (recorded(workers) < (uint64_t)THREADS * EVENTS) {
		struct fay_result result;
		uint64_t before = recorded(workers);
		assert_int_equal(
			fay_aggregator_snapshot(aggregator, STATE_TABLE, &result, &failure), 0);
		uint64_t after = recorded(workers), total = test_table_total(&result);
		if ((total < before && !result.torn) || total > after + THREADS)
			fail_msg("snapshot %u: %lu events, but between %lu and %lu were recorded",
				 snapshots, total, before, after);
		torn += result.torn;
		fay_result_deinit(&result);
		for (int i = 0; i < 5; i++) {
			assert_true(fay_aggregator_poll(aggregator, &failure) >= 0);
			fay_aggregator_wait(aggregator, 1, NULL, 0);
		}
		snapshots++;
		if (test_seconds() - start > 120)
			fail_msg("the producers do not get on");
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	check_end(aggregator, workers);
	print_message("%u events, %u live snapshots, %u of them torn, in %.2f s\n",
		      THREADS * EVENTS, snapshots, torn, test_seconds() - start);
	assert_true(snapshots > 3);
	fay_aggregator_destroy(aggregator);
	assert_int_equal(shm.control->consumer_alive, 0);
	test_shm_deinit(&shm);
	free(workers);
}

static void test_threads(void **state)
{
	count_threads(false);
}

static void test_kept_pictures(void **state)
{
	count_threads(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_threads),
					    cmocka_unit_test(test_kept_pictures) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
