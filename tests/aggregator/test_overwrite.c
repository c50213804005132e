/* SPDX-License-Identifier: MIT */
/* Rings whose oldest records are given up: each row is either counted by the consumer or lost, and
 * those that remain are the newest, while both sides run. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/live/aggregator_parts.h"
#include "producer.h"

#ifdef __SANITIZE_THREAD__
enum { ROWS = 5000 };
#else
enum { ROWS = 50000 };
#endif
#define RING 1024u
#define RECORD (sizeof(struct fay_spill_record) + sizeof(struct stream_row))

struct seen {
	uint64_t next, count; /* next: one more than the last number */
	bool gaps;            /* numbers were left out after the first one */
};

struct setting {
	struct test_shm shm;
	struct fay_aggregator *aggregator;
	struct producer producer;
	struct seen seen;
};

static void take_row(void *context, uint32_t state, const uint8_t *bytes)
{
	struct seen *seen = context;
	struct stream_row row;
	memcpy(&row, bytes, sizeof(row));
	assert_int_equal(state, STATE_STREAM);
	assert_int_equal(row.thread, ~row.number); /* whole */
	assert_true(row.number >= seen->next);
	seen->gaps |= seen->count && row.number != seen->next;
	seen->next = row.number + 1;
	seen->count++;
}

static void begin(struct setting *s)
{
	struct fay_error error;
	memset(s, 0, sizeof(*s));
	test_shm_init(&s->shm, 2, RING);
	s->shm.control->when_full = FAY_FULL_OVERWRITE;
	assert_int_equal(fay_aggregator_create(&test_schema, &s->aggregator, &error), 0);
	fay_aggregator_on_row(s->aggregator, take_row, &s->seen);
	assert_int_equal(fay_aggregator_add(s->aggregator, s->shm.control, s->shm.size, 0, &error),
			 0);
	assert_true(producer_init(&s->producer, &s->shm, 77));
}

static void end(struct setting *s)
{
	fay_aggregator_destroy(s->aggregator);
	test_shm_deinit(&s->shm);
}

static void poll(struct setting *s)
{
	struct fay_error error;
	if (fay_aggregator_poll(s->aggregator, &error) < 0)
		fail_msg("%s", error.message);
}

/* Nobody looks: the newest rows remain, as many as fit. */
static void the_newest_remain(void **unused)
{
	struct setting s;
	(void)unused;
	begin(&s);
	for (uint64_t i = 0; i < 1000; i++)
		assert_true(producer_emit(&s.producer, ~i, i));
	poll(&s);
	assert_int_equal(s.seen.count, RING / RECORD);
	assert_int_equal(s.seen.next, 1000);
	assert_false(s.seen.gaps);
	assert_int_equal(s.producer.slot->lost_full, 1000 - RING / RECORD);
	for (uint64_t i = 1000; i < 1010; i++)
		assert_true(producer_emit(&s.producer, ~i, i));
	poll(&s);
	assert_int_equal(s.seen.next, 1010);
	assert_int_equal(s.producer.slot->lost_full, 1000 - RING / RECORD);
	end(&s);
}

static void *emit_all(void *context)
{
	struct setting *s = context;
	for (uint64_t i = 0; i < ROWS; i++) {
		producer_emit(&s->producer, ~i, i);
		if (i % 97 == 0)
			sched_yield();
	}
	return NULL;
}

static void both_run(void **unused)
{
	struct setting s;
	pthread_t thread;
	(void)unused;
	begin(&s);
	pthread_create(&thread, NULL, emit_all, &s);
	while (__atomic_load_n(&s.producer.slot->spill_head, __ATOMIC_RELAXED) < ROWS * RECORD)
		poll(&s);
	pthread_join(thread, NULL);
	poll(&s);
	assert_int_equal(s.seen.next, ROWS);
	assert_int_equal(s.seen.count + s.producer.slot->lost_full, ROWS);
	assert_true(s.seen.count > 0);
	print_message("%llu rows seen, %llu given up\n", (unsigned long long)s.seen.count,
		      (unsigned long long)s.producer.slot->lost_full);
	end(&s);
}

static void expect_corrupt(struct setting *s, const char *why)
{
	struct fay_error error = { 0 };
	assert_int_equal(fay_aggregator_poll(s->aggregator, &error), -1);
	if (!strstr(error.message, why))
		fail_msg("%s", error.message);
	assert_int_equal(fay_aggregator_poll(s->aggregator, &error), 0); /* once */
	end(s);
}

/* The program writes over its ring. */
static void overwritten_by_others(void **unused)
{
	struct setting s;
	struct fay_spill_record *record;
	(void)unused;
	begin(&s);
	producer_emit(&s.producer, ~UINT64_C(0), 0);
	record = (void *)((uint8_t *)s.producer.slot + s.shm.control->spill_offset);
	record->size = 4096;
	expect_corrupt(&s, "a record's size");
	begin(&s);
	for (uint64_t i = 0; i < 2; i++)
		producer_emit(&s.producer, ~i, i);
	record = (void *)((uint8_t *)s.producer.slot + s.shm.control->spill_offset);
	record->rows = 2;
	record->size = (uint32_t)(sizeof(*record) + 2 * sizeof(struct stream_row));
	expect_corrupt(&s, "several rows");
	begin(&s);
	s.producer.slot->spill_head = 1u << 20;
	expect_corrupt(&s, "more than it can");
	begin(&s);
	producer_emit(&s.producer, ~UINT64_C(0), 0);
	poll(&s);
	s.producer.slot->spill_tail = 0; /* back: the row is not counted twice */
	expect_corrupt(&s, "more than it can");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(the_newest_remain),
					    cmocka_unit_test(both_run),
					    cmocka_unit_test(overwritten_by_others) };
	return cmocka_run_group_tests_name("overwritten rings", tests, NULL, NULL);
}
