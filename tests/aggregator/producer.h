/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for the runtime in the target: fills shared memory as fay/shm.h says, with threads of
 * this process. Every shared word is written atomically, so that ThreadSanitizer checks the
 * aggregator's side of the protocol.
 */
#ifndef FAY_TEST_PRODUCER_H
#define FAY_TEST_PRODUCER_H

#include <stdbool.h>
#include <stdint.h>

#include "fay/aggregator.h"

/* The test image's states. */
enum { STATE_TABLE, STATE_CELL, STATE_STREAM, STATE_GLOBAL, STATE_COUNT };
enum { TABLE_ROWS = 16, NAME_SIZE = 16 };

struct table_row {
	uint64_t tag;
	int64_t key;
	char name[NAME_SIZE];
	uint64_t count;
	int64_t sum;
	uint64_t min, max;
	uint64_t average_sum, average_count;
};
struct cell_row {
	uint64_t count, histogram[FAY_HIST_LOG2_BUCKETS];
};
struct stream_row {
	uint64_t thread, number;
};

extern const struct fay_schema test_schema;

struct test_shm {
	struct fay_shm_control *control;
	size_t size;
};
void test_shm_init(struct test_shm *shm, uint32_t slots, uint64_t spill_size);
void test_shm_deinit(struct test_shm *shm);

struct producer {
	struct fay_shm_control *control;
	struct fay_slot_header *slot;
	uint8_t *local;
	uint64_t recorded; /* events recorded so far in the table; atomic */
};
/* Takes the next slot; false if there is none left. */
bool producer_init(struct producer *producer, struct test_shm *shm, uint32_t pid);
struct fay_slot_header *test_slot(struct test_shm *shm, uint32_t slot);

/* Each returns false if the event was lost (and counted so). */
bool producer_record(struct producer *producer, int64_t key, const char name[NAME_SIZE],
		     int64_t value);
bool producer_flush(struct producer *producer);
bool producer_emit(struct producer *producer, uint64_t thread, uint64_t number);
void producer_cell(struct producer *producer, int64_t value);
void producer_global(struct producer *producer);

/* producer_flush() in pieces, to stop in the middle. */
void producer_flush_begin(struct producer *producer);   /* the sequence becomes odd */
void producer_flush_publish(struct producer *producer); /* records go out */
/* the first `rows` rows are cleared */
void producer_flush_clear(struct producer *producer, uint32_t rows);
void producer_flush_end(struct producer *producer);

/* Events counted in the rows of STATE_TABLE. */
uint64_t test_table_total(const struct fay_result *result);
double test_seconds(void);             /* monotonic */
uint64_t test_random(uint64_t *state); /* xorshift; *state not 0 */

#endif
