/* SPDX-License-Identifier: MIT */
/*
 * The aggregator against an exact oracle, with real producer threads: every event is counted once,
 * at the end and (within the events in flight) in every live snapshot; tables overflow constantly;
 * producers die inside a flush; filters, limits and losses.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#include "aggregator/live/aggregator_parts.h"
#include "producer.h"

enum { KEYS = 500, THREADS = 6 };
#ifdef __SANITIZE_THREAD__
enum { EVENTS = 20000 };
#else
enum { EVENTS = 150000 };
#endif

static struct fay_error failure;

/* --- the oracle --- */

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

/* --- threads --- */

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

static uint64_t table_total(const struct fay_result *result)
{
	uint64_t total = 0;
	for (size_t i = 0; i < result->row_count; i++)
		total += ((const struct table_row *)result->rows)[i].count;
	return total;
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
	assert_int_equal(table_total(&result) + result.events_lost_full,
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

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void test_threads(void **state)
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
	double start = seconds();
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
		uint64_t after = recorded(workers), total = table_total(&result);
		if ((total < before && !result.torn) || total > after + THREADS)
			fail_msg("snapshot %u: %lu events, but between %lu and %lu were recorded",
				 snapshots, total, before, after);
		torn += result.torn;
		fay_result_deinit(&result);
		for (int i = 0; i < 5; i++) {
			assert_true(fay_aggregator_poll(aggregator, &failure) >= 0);
			fay_aggregator_wait(aggregator, 1);
		}
		snapshots++;
		if (seconds() - start > 120)
			fail_msg("the producers do not get on");
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	check_end(aggregator, workers);
	print_message("%u events, %u live snapshots, %u of them torn, in %.2f s\n",
		      THREADS * EVENTS, snapshots, torn, seconds() - start);
	assert_true(snapshots > 3);
	fay_aggregator_destroy(aggregator);
	assert_int_equal(shm.control->consumer_alive, 0);
	test_shm_deinit(&shm);
	free(workers);
}

/* --- one producer at a time --- */

struct fixture {
	struct test_shm shm;
	struct fay_aggregator *aggregator;
	struct producer producer;
	struct fay_result result;
};

static const char some_name[NAME_SIZE] = "name";

static void set_up(struct fixture *fixture, uint32_t only_pid)
{
	memset(fixture, 0, sizeof(*fixture));
	test_shm_init(&fixture->shm, 4, 4096);
	assert_int_equal(fay_aggregator_create(&test_schema, &fixture->aggregator, &failure), 0);
	assert_int_equal(fay_aggregator_add(fixture->aggregator, fixture->shm.control,
					    fixture->shm.size, only_pid, &failure),
			 0);
	assert_true(producer_init(&fixture->producer, &fixture->shm, 7));
}

static void tear_down(struct fixture *fixture)
{
	fay_result_deinit(&fixture->result);
	fay_aggregator_destroy(fixture->aggregator);
	test_shm_deinit(&fixture->shm);
}

static uint64_t total_of(struct fixture *fixture)
{
	fay_result_deinit(&fixture->result);
	assert_int_equal(fay_aggregator_snapshot(fixture->aggregator, STATE_TABLE, &fixture->result,
						 &failure),
			 0);
	return table_total(&fixture->result);
}

/* Killed at each step of a flush, with an earlier flush already drained or still in the ring. */
static void test_killed_in_flush(void **state)
{
	for (unsigned polled = 0; polled < 2; polled++)
		for (unsigned step = 0; step < 4; step++)
			for (unsigned snapshot_between = 0; snapshot_between < 2;
			     snapshot_between++) {
				struct fixture fixture;
				set_up(&fixture, 0);
				for (int i = 0; i < 10; i++)
					producer_record(&fixture.producer, i, some_name, i);
				producer_flush(&fixture.producer);
				if (polled)
					assert_true(fay_aggregator_poll(fixture.aggregator,
									&failure) > 0);
				for (int i = 0; i < 9; i++)
					producer_record(&fixture.producer, i, some_name, 2 * i);
				producer_flush_begin(&fixture.producer);
				if (snapshot_between && step)
					assert_int_equal(total_of(&fixture), 19);
				if (step > 0)
					producer_flush_publish(&fixture.producer);
				if (step > 1)
					producer_flush_clear(&fixture.producer,
							     step == 2 ? 3 : TABLE_ROWS);
				/* Dead. Neither lost nor doubled, however often one looks. */
				assert_int_equal(total_of(&fixture), 19);
				assert_true(fay_aggregator_poll(fixture.aggregator, &failure) >= 0);
				assert_int_equal(total_of(&fixture), 19);
				assert_int_equal(fixture.result.row_count, 10);
				tear_down(&fixture);
			}
}

/* --- flushes that take long --- */

/*
 * A table of which the second half lies in a page that cannot be read: what reads it meets a flush
 * at that place, after which the same rows hold other groups, each with values of its own. With
 * every wait the page is locked again. So no copy of the table is whole, however often one looks.
 */
#define TORN_PAGE 4096u
static struct {
	struct producer *producer;
	uint8_t *page;
	int64_t first;
	unsigned flushes;
} tearing;

static void lock_page(int protection)
{
	if (tearing.page && mprotect(tearing.page, TORN_PAGE, protection))
		abort();
}

static long nap_ns; /* each nap takes so long; 0: as it should */
static unsigned naps;

int __real_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	struct timespec longer = { .tv_nsec = nap_ns };
	naps++;
	lock_page(PROT_NONE);
	return __real_nanosleep(nap_ns ? &longer : time, left);
}

/* A thread loses its processor in a flush, on a machine where a nap of 100 us takes 5 ms: another
 * one, whose ring is full, is not kept waiting for long. */
static void test_slow_flush(void **state)
{
	for (int asked = 0; asked < 2; asked++) {
		struct fixture fixture;
		set_up(&fixture, 0);
		for (int i = 0; i < 9; i++)
			producer_record(&fixture.producer, i, some_name, i);
		producer_flush_begin(&fixture.producer);
		assert_int_equal(fay_aggregator_poll(fixture.aggregator, &failure), 0);
		fixture.shm.control->wake += (uint32_t)asked;
		nap_ns = asked ? 5000000 : 0;
		naps = 0;
		assert_int_equal(total_of(&fixture), 9);
		assert_true(asked ? naps < 10 : naps == FAY_SNAPSHOT_NAPS);
		nap_ns = 0;
		producer_flush_publish(&fixture.producer);
		producer_flush_clear(&fixture.producer, TABLE_ROWS);
		producer_flush_end(&fixture.producer);
		assert_int_equal(total_of(&fixture), 9);
		tear_down(&fixture);
	}
}

static void fill_again(void)
{
	const char name[NAME_SIZE] = { (char)('a' + tearing.first) };
	producer_flush_begin(tearing.producer);
	producer_flush_clear(tearing.producer, TABLE_ROWS);
	producer_flush_end(tearing.producer);
	for (int64_t key = tearing.first; key < tearing.first + 12; key++)
		producer_record(tearing.producer, key, name, 1000 + key);
	tearing.first ^= TABLE_ROWS;
	tearing.flushes++;
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	uint8_t *at = info->si_addr;
	if (!tearing.page || at < tearing.page || at >= tearing.page + TORN_PAGE)
		abort();
	lock_page(PROT_READ | PROT_WRITE);
	fill_again();
}

int __real_sched_yield(void);
int __wrap_sched_yield(void);

int __wrap_sched_yield(void)
{
	lock_page(PROT_NONE);
	return __real_sched_yield();
}

static void check_whole(const struct table_row *row)
{
	uint64_t value = (uint64_t)(1000 + row->key) ^ 1ull << 63;
	assert_int_equal(row->name[0], 'a' + (row->key & TABLE_ROWS));
	assert_int_equal(row->count, 1);
	assert_int_equal(row->sum, 1000 + row->key);
	assert_int_equal(row->max, value);
	assert_int_equal(row->min, ~value);
	assert_int_equal(row->average_sum, 1000 + row->key);
}

/* Shared memory at such an address that the page begins in the middle of a row of the first slot's
 * table. */
static void move_shm(struct test_shm *shm)
{
	size_t table = 2 * TORN_PAGE + FAY_SLOT_HEADER + sizeof(struct fay_table_header),
	       middle = 6 * sizeof(struct table_row) + sizeof(struct table_row) / 2;
	size_t shift = TORN_PAGE - ((table + middle) % TORN_PAGE & ~63ul);
	uint8_t *room = mmap(NULL, shm->size + 2 * TORN_PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(room != MAP_FAILED);
	memcpy(room + shift, shm->control, shm->size);
	munmap(shm->control, shm->size);
	shm->control = (struct fay_shm_control *)(room + shift);
	tearing.page = (uint8_t *)(((uintptr_t)room + shift + table + middle) &
				   ~(uintptr_t)(TORN_PAGE - 1));
}

/* A table that is flushed whenever it is read: rows may be missing from the picture, but none is
 * made of two. */
static void test_torn(void **state)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER },
			 before;
	struct fixture fixture = { .producer = { .recorded = 0 } };
	test_shm_init(&fixture.shm, 1, 4096);
	move_shm(&fixture.shm);
	assert_int_equal(fay_aggregator_create(&test_schema, &fixture.aggregator, &failure), 0);
	assert_int_equal(fay_aggregator_add(fixture.aggregator, fixture.shm.control,
					    fixture.shm.size, 0, &failure),
			 0);
	assert_true(producer_init(&fixture.producer, &fixture.shm, 7));
	tearing.producer = &fixture.producer;
	fill_again();
	sigaction(SIGSEGV, &action, &before);
	lock_page(PROT_NONE);
	total_of(&fixture);
	unsigned flushes = tearing.flushes;
	lock_page(PROT_READ | PROT_WRITE);
	sigaction(SIGSEGV, &before, NULL);
	tearing.page = NULL;
	assert_true(fixture.result.torn);
	assert_true(flushes > 100);
	assert_true(fixture.result.row_count > 4);
	for (size_t r = 0; r < fixture.result.row_count; r++)
		check_whole((const struct table_row *)fixture.result.rows + r);
	assert_int_equal(total_of(&fixture), 12);
	assert_false(fixture.result.torn);
	fay_result_deinit(&fixture.result);
	fay_aggregator_destroy(fixture.aggregator);
	munmap((void *)((uintptr_t)fixture.shm.control & ~(uintptr_t)(TORN_PAGE - 1)),
	       fixture.shm.size + TORN_PAGE);
}

static void test_pid_filter(void **state)
{
	struct fixture fixture;
	struct producer child;
	set_up(&fixture, 7);
	assert_true(producer_init(&child, &fixture.shm, 8));
	producer_record(&fixture.producer, 1, some_name, 1);
	producer_record(&child, 2, some_name, 1);
	producer_record(&child, 3, some_name, 1);
	assert_int_equal(total_of(&fixture), 1);
	/* The child's ring is emptied all the same: it must not wait. */
	producer_flush(&child);
	producer_flush(&fixture.producer);
	assert_true(fay_aggregator_poll(fixture.aggregator, &failure) > 0);
	assert_int_equal(test_slot(&fixture.shm, 1)->spill_head,
			 test_slot(&fixture.shm, 1)->spill_tail);
	assert_int_equal(total_of(&fixture), 1);
	assert_int_equal(fixture.result.threads, 1);
	/* In a PID namespace of its own another child has the program's number. */
	struct producer namesake;
	assert_true(producer_init(&namesake, &fixture.shm, 7));
	namesake.slot->process = FAY_PROCESS_TRACED + 1;
	producer_record(&namesake, 4, some_name, 1);
	assert_int_equal(total_of(&fixture), 1);
	producer_flush(&namesake);
	assert_true(fay_aggregator_poll(fixture.aggregator, &failure) >= 0);
	assert_int_equal(total_of(&fixture), 1);
	tear_down(&fixture);
}

static void test_losses(void **state)
{
	struct fixture fixture;
	struct producer more;
	set_up(&fixture, 0);
	for (int i = 0; i < 5; i++)
		producer_init(&more, &fixture.shm, 7);
	fixture.producer.slot->lost_reentrant = 11;
	fixture.producer.slot->lost_full = 22;
	assert_int_equal(total_of(&fixture), 0);
	assert_int_equal(fixture.result.events_lost_reentrant, 11);
	assert_int_equal(fixture.result.events_lost_full, 22);
	assert_int_equal(fixture.result.events_lost_no_slot, 2);
	assert_int_equal(fixture.result.threads, 0);
	tear_down(&fixture);
}

static void test_memory_limit(void **state)
{
	struct fixture fixture;
	set_up(&fixture, 0);
	fay_aggregator_set_limit(fixture.aggregator, 64 << 10);
	int64_t drained = 0;
	unsigned keys = 0;
	for (; keys < 100000 && drained >= 0; keys++) {
		producer_record(&fixture.producer, keys, some_name, 1);
		drained = fay_aggregator_poll(fixture.aggregator, &failure);
	}
	assert_int_equal(drained, -1);
	assert_int_equal(failure.code, FAY_E_LIMIT);
	assert_non_null(strstr(failure.message, "limit"));
	assert_true(keys > 200);
	/* Told once; producers do not wait any more, and count what they lose; what was gathered
	 * can still be had. */
	assert_int_equal(fay_aggregator_poll(fixture.aggregator, &failure), 0);
	assert_int_equal(fixture.shm.control->consumer_alive, 0);
	for (int64_t i = 0; i < 1000; i++)
		producer_record(&fixture.producer, i, some_name, 1);
	assert_true(fixture.producer.slot->lost_full > 0);
	assert_true(total_of(&fixture) > 200);
	assert_true(fixture.result.events_lost_full > 0);
	tear_down(&fixture);
}

/* Two processes merge; 200,000 keys; the snapshot is sorted. */
static void test_many_keys(void **state)
{
	struct fixture fixture;
	struct test_shm other;
	struct producer second;
	enum { MANY = 100000 };
	set_up(&fixture, 0);
	test_shm_init(&other, 1, 4096);
	assert_int_equal(
		fay_aggregator_add(fixture.aggregator, other.control, other.size, 0, &failure), 0);
	assert_true(producer_init(&second, &other, 9));
	for (int64_t i = 0; i < MANY; i++) {
		int64_t key = i * 7919 % MANY - MANY / 2;
		producer_record(&fixture.producer, key, some_name, i);
		producer_record(&second, -key, some_name, i);
		if (i % 8 == 0)
			assert_true(fay_aggregator_poll(fixture.aggregator, &failure) >= 0);
	}
	assert_int_equal(total_of(&fixture), 2 * MANY);
	assert_int_equal(fixture.result.row_count, MANY + 1);
	assert_int_equal(fixture.result.threads, 2);
	const struct table_row *rows = (const struct table_row *)fixture.result.rows;
	for (int64_t i = 0; i <= MANY; i++)
		assert_int_equal(rows[i].key, i - MANY / 2);
	tear_down(&fixture);
	test_shm_deinit(&other);
}

static void *bump_wake(void *context)
{
	struct fay_shm_control *control = context;
	struct timespec nap = { .tv_nsec = 20000000 };
	nanosleep(&nap, NULL);
	__atomic_fetch_add(&control->wake, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void test_wait(void **state)
{
	struct fixture fixture;
	pthread_t thread;
	set_up(&fixture, 0);
	assert_int_equal(fay_aggregator_poll(fixture.aggregator, &failure), 0);
	double start = seconds();
	fay_aggregator_wait(fixture.aggregator, 30);
	assert_true(seconds() - start > 0.025);
	/* A wake-up between the poll and the wait is not lost. */
	pthread_create(&thread, NULL, bump_wake, fixture.shm.control);
	pthread_join(thread, NULL);
	start = seconds();
	fay_aggregator_wait(fixture.aggregator, 60000);
	assert_true(seconds() - start < 30);
	/* Once polled, it is old news. */
	assert_int_equal(fay_aggregator_poll(fixture.aggregator, &failure), 0);
	start = seconds();
	fay_aggregator_wait(fixture.aggregator, 30);
	assert_true(seconds() - start > 0.025);
	tear_down(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),      cmocka_unit_test(test_killed_in_flush),
		cmocka_unit_test(test_slow_flush),   cmocka_unit_test(test_torn),
		cmocka_unit_test(test_pid_filter),   cmocka_unit_test(test_losses),
		cmocka_unit_test(test_memory_limit), cmocka_unit_test(test_many_keys),
		cmocka_unit_test(test_wait),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
