/* SPDX-License-Identifier: MIT */
/*
 * The aggregator with one producer at a time, stopped where it is told to: producers die inside a
 * flush, or take long for one; tables are torn; filters, limits and losses.
 */
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "aggregator/live/aggregator_parts.h"
#include "producer.h"

static struct fay_error failure;

struct fixture {
	struct test_shm shm;
	struct fay_aggregator *aggregator;
	struct producer producer;
	struct fay_result result;
};

static const char some_name[NAME_SIZE] = "name";

/* Whether snapshots share what they can: all tests are run without and with that. */
static bool keep;

static void set_up(struct fixture *fixture, uint32_t only_pid)
{
	memset(fixture, 0, sizeof(*fixture));
	test_shm_init(&fixture->shm, 4, 4096);
	assert_int_equal(fay_aggregator_create(&test_schema, &fixture->aggregator, &failure), 0);
	if (keep)
		assert_true(fay_aggregator_keep_pictures(fixture->aggregator));
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
	return test_table_total(&fixture->result);
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

/* ---- tables of which only a part is in use ---- */

static void test_last_row(void **state)
{
	struct fixture fixture;
	set_up(&fixture, 0);
	for (int i = 0; i < 10; i++)
		producer_record(&fixture.producer, i, some_name, 1);
	struct fay_table_header *header =
		(void *)(fixture.producer.local + test_schema.states[STATE_TABLE].offset);
	const struct table_row *rows = (const struct table_row *)(header + 1);
	uint64_t last = TABLE_ROWS - 1;
	while (!rows[last].tag)
		last--;
	assert_in_range(last, 9, TABLE_ROWS - 1);
	const struct {
		uint64_t told, seen;
	} cases[] = {
		{ 0, 10 },     { last, 10 },      { TABLE_ROWS - 1, 10 }, { TABLE_ROWS, 10 },
		{ ~0ull, 10 }, { ~0ull - 1, 10 }, { last - 1, 9 },        { 1ull << 32, 10 }
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		header->last = cases[i].told;
		assert_int_equal(total_of(&fixture), cases[i].seen);
	}
	tear_down(&fixture);
}

/* ---- flushes that take long ---- */

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
	double start = test_seconds();
	fay_aggregator_wait(fixture.aggregator, 30, NULL, 0);
	assert_true(test_seconds() - start > 0.025);
	/* A wake-up between the poll and the wait is not lost. */
	pthread_create(&thread, NULL, bump_wake, fixture.shm.control);
	pthread_join(thread, NULL);
	start = test_seconds();
	fay_aggregator_wait(fixture.aggregator, 60000, NULL, 0);
	assert_true(test_seconds() - start < 30);
	/* Once polled, it is old news. */
	assert_int_equal(fay_aggregator_poll(fixture.aggregator, &failure), 0);
	start = test_seconds();
	fay_aggregator_wait(fixture.aggregator, 30, NULL, 0);
	assert_true(test_seconds() - start > 0.025);
	tear_down(&fixture);
}

static void *wake_word(void *context)
{
	uint32_t *word = context;
	struct timespec nap = { .tv_nsec = 20000000 };
	nanosleep(&nap, NULL);
	__atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	return NULL;
}

/* With one source, with none and with two: that word ends the wait, too, and its time does if it
 * is as it was seen. */
static void wait_also(struct fay_aggregator *aggregator)
{
	static uint32_t word;
	uint32_t seen = word;
	pthread_t thread;
	double start = test_seconds();
	fay_aggregator_wait(aggregator, 30, &word, seen);
	assert_true(test_seconds() - start > 0.025);
	pthread_create(&thread, NULL, wake_word, &word);
	start = test_seconds();
	fay_aggregator_wait(aggregator, 60000, &word, seen);
	assert_true(test_seconds() - start < 30);
	pthread_join(thread, NULL);
	/* what changed before the wait is not lost */
	start = test_seconds();
	fay_aggregator_wait(aggregator, 60000, &word, seen);
	assert_true(test_seconds() - start < 30);
}

static void test_wait_also(void **state)
{
	struct fixture fixture;
	struct test_shm other;
	struct fay_aggregator *without;
	set_up(&fixture, 0);
	assert_int_equal(fay_aggregator_poll(fixture.aggregator, &failure), 0);
	wait_also(fixture.aggregator);
	assert_int_equal(fay_aggregator_create(&test_schema, &without, &failure), 0);
	wait_also(without);
	fay_aggregator_destroy(without);
	test_shm_init(&other, 1, 4096);
	assert_int_equal(
		fay_aggregator_add(fixture.aggregator, other.control, other.size, 0, &failure), 0);
	wait_also(fixture.aggregator);
	tear_down(&fixture);
	test_shm_deinit(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_killed_in_flush),
		cmocka_unit_test(test_last_row),
		cmocka_unit_test(test_slow_flush),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_pid_filter),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_memory_limit),
		cmocka_unit_test(test_many_keys),
		cmocka_unit_test(test_wait),
		cmocka_unit_test(test_wait_also),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	keep = true;
	return failed + cmocka_run_group_tests_name("with kept pictures", tests, NULL, NULL);
}
