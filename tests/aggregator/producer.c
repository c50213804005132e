/* SPDX-License-Identifier: MIT */
/* See producer.h. The order of stores here is the producer's half of the argument in
 * aggregator/live/snapshot.c. */
#include <assert.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "producer.h"
#include "tests/xorshift.h"

#define OFFSET_TABLE 0u
#define TABLE_SIZE (16u + TABLE_ROWS * (uint32_t)sizeof(struct table_row))
#define OFFSET_CELL TABLE_SIZE
#define LOCAL_SIZE (OFFSET_CELL + (uint32_t)sizeof(struct cell_row))
#define AT(type, member) offsetof(struct type, member), sizeof(((struct type *)0)->member)

static struct fay_schema_column columns[] = {
	{ "key", FAY_TYPE_I64, FAY_MERGE_KEY, AT(table_row, key), { 0 } },
	{ "name", FAY_TYPE_STRING, FAY_MERGE_KEY, AT(table_row, name), { 0 } },
	{ "count", FAY_TYPE_U64, FAY_MERGE_COUNT, AT(table_row, count), { 0 } },
	{ "sum", FAY_TYPE_I64, FAY_MERGE_SUM, AT(table_row, sum), { 0 } },
	{ "min", FAY_TYPE_I64, FAY_MERGE_MIN, AT(table_row, min), { 0 } },
	{ "max", FAY_TYPE_I64, FAY_MERGE_MAX, AT(table_row, max), { 0 } },
	{ "average",
	  FAY_TYPE_I64,
	  FAY_MERGE_AVERAGE,
	  offsetof(struct table_row, average_sum),
	  16,
	  { 0 } },
	{ "count", FAY_TYPE_U64, FAY_MERGE_COUNT, AT(cell_row, count), { 0 } },
	{ "histogram", FAY_TYPE_I64, FAY_MERGE_HIST_LOG2, AT(cell_row, histogram), { 0 } },
	{ "thread", FAY_TYPE_U64, FAY_MERGE_KEY, AT(stream_row, thread), { 0 } },
	{ "number", FAY_TYPE_U64, FAY_MERGE_KEY, AT(stream_row, number), { 0 } },
	{ "count", FAY_TYPE_U64, FAY_MERGE_COUNT, 0, 8, { 0 } },
};
static struct fay_schema_state states[STATE_COUNT] = {
	{ "table", FAY_STATE_TABLE, FAY_SCOPE_LOCAL, OFFSET_TABLE, TABLE_SIZE, TABLE_ROWS,
	  sizeof(struct table_row), 0, 2, 5 },
	{ "cell", FAY_STATE_CELL, FAY_SCOPE_LOCAL, OFFSET_CELL, sizeof(struct cell_row), 1,
	  sizeof(struct cell_row), 7, 0, 2 },
	{ "stream", FAY_STATE_STREAM, FAY_SCOPE_LOCAL, 0, 0, 1, sizeof(struct stream_row), 9, 2,
	  0 },
	{ "global", FAY_STATE_CELL, FAY_SCOPE_GLOBAL, 8, 8, 1, 8, 11, 0, 1 },
};
const struct fay_schema test_schema = { .local_size = LOCAL_SIZE,
					.global_size = 16,
					.state_count = STATE_COUNT,
					.column_count = 12,
					.states = states,
					.columns = columns };

uint64_t test_random(uint64_t *state)
{
	return xorshift(state) * 0x2545f4914f6cdd1du;
}

void test_shm_init(struct test_shm *shm, uint32_t slots, uint64_t spill_size)
{
	uint64_t spill_offset = (FAY_SLOT_HEADER + LOCAL_SIZE + 63) & ~63ull;
	uint64_t stride =
		(spill_offset + spill_size + FAY_SHM_PAGE - 1) & ~(uint64_t)(FAY_SHM_PAGE - 1);
	shm->size = 2 * FAY_SHM_PAGE + slots * stride;
	shm->control =
		mmap(NULL, shm->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert(shm->control != MAP_FAILED);
	shm->control->magic = FAY_SHM_MAGIC;
	shm->control->version = 1;
	shm->control->slot_max = slots;
	shm->control->slot_stride = stride;
	shm->control->slots_offset = 2 * FAY_SHM_PAGE;
	shm->control->global_offset = FAY_SHM_PAGE;
	shm->control->global_size = 16;
	shm->control->local_size = LOCAL_SIZE;
	shm->control->spill_offset = spill_offset;
	shm->control->spill_size = spill_size;
}

void test_shm_deinit(struct test_shm *shm)
{
	munmap(shm->control, shm->size);
}

struct fay_slot_header *test_slot(struct test_shm *shm, uint32_t slot)
{
	return (struct fay_slot_header *)((uint8_t *)shm->control + shm->control->slots_offset +
					  slot * shm->control->slot_stride);
}

bool producer_init(struct producer *producer, struct test_shm *shm, uint32_t pid)
{
	uint32_t slot = __atomic_fetch_add(&shm->control->slot_next, 1, __ATOMIC_ACQ_REL);
	memset(producer, 0, sizeof(*producer));
	producer->control = shm->control;
	if (slot >= shm->control->slot_max) {
		__atomic_fetch_add(&shm->control->lost_no_slot, 1, __ATOMIC_RELAXED);
		return false;
	}
	producer->slot = test_slot(shm, slot);
	producer->local = (uint8_t *)producer->slot + FAY_SLOT_HEADER;
	__atomic_store_n(&producer->slot->pid, pid, __ATOMIC_RELAXED);
	return true;
}

/* --- shared words --- */

static void put(void *word, uint64_t value)
{
	__atomic_store_n((uint64_t *)word, value, __ATOMIC_RELEASE);
}

static void add(void *word, uint64_t value)
{
	put(word, *(uint64_t *)word + value);
}

static void maximum(void *word, uint64_t value)
{
	if (value > *(uint64_t *)word)
		put(word, value);
}

/* --- the ring --- */

static uint64_t used(const struct producer *producer)
{
	return producer->slot->spill_head -
	       __atomic_load_n(&producer->slot->spill_tail, __ATOMIC_ACQUIRE);
}

/* More than it can hold: the consumer refuses it. */
static bool is_refused(const struct producer *producer)
{
	return used(producer) > producer->control->spill_size;
}

static uint64_t room(const struct producer *producer)
{
	return is_refused(producer) ? 0 : producer->control->spill_size - used(producer);
}

/* The oldest records go, unless the consumer takes them first. */
static void give_up(struct producer *producer, uint64_t bytes)
{
	const uint8_t *ring = (const uint8_t *)producer->slot + producer->control->spill_offset;
	while (room(producer) < bytes && !is_refused(producer)) {
		uint64_t tail = __atomic_load_n(&producer->slot->spill_tail, __ATOMIC_ACQUIRE);
		struct fay_spill_record record;
		if (producer->control->spill_size - (producer->slot->spill_head - tail) >= bytes)
			return; /* by the consumer, meanwhile */
		memcpy(&record, ring + (tail & (producer->control->spill_size - 1)),
		       sizeof(record));
		if (__atomic_compare_exchange_n(&producer->slot->spill_tail, &tail,
						tail + record.size, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			__atomic_store_n(&producer->slot->lost_full, producer->slot->lost_full + 1,
					 __ATOMIC_RELAXED);
	}
}

static bool reserve(struct producer *producer, uint64_t bytes)
{
	if (producer->control->when_full == FAY_FULL_OVERWRITE)
		give_up(producer, bytes);
	while (room(producer) < bytes) {
		if (is_refused(producer) ||
		    !__atomic_load_n(&producer->control->consumer_alive, __ATOMIC_ACQUIRE)) {
			__atomic_store_n(&producer->slot->lost_full, producer->slot->lost_full + 1,
					 __ATOMIC_RELAXED);
			return false;
		}
		__atomic_fetch_add(&producer->control->wake, 1, __ATOMIC_RELEASE);
		sched_yield();
	}
	return true;
}

static uint64_t ring_put(struct producer *producer, uint64_t at, const void *from, size_t size)
{
	uint8_t *ring = (uint8_t *)producer->slot + producer->control->spill_offset;
	for (size_t i = 0; i < size; i += 8) {
		uint64_t word;
		memcpy(&word, (const uint8_t *)from + i, sizeof(word));
		__atomic_store_n(
			(uint64_t *)(ring + ((at + i) & (producer->control->spill_size - 1))), word,
			__ATOMIC_RELAXED);
	}
	return at + size;
}

bool producer_emit(struct producer *producer, uint64_t thread, uint64_t number)
{
	struct stream_row row = { thread, number };
	struct fay_spill_record record = { sizeof(record) + sizeof(row), STATE_STREAM, 1 };
	if (!reserve(producer, record.size))
		return false;
	uint64_t head = ring_put(producer, producer->slot->spill_head, &record, sizeof(record));
	head = ring_put(producer, head, &row, sizeof(row));
	__atomic_store_n(&producer->slot->spill_head, head, __ATOMIC_RELEASE);
	return true;
}

/* --- cells --- */

void producer_cell(struct producer *producer, int64_t value)
{
	struct cell_row *cell = (struct cell_row *)(producer->local + OFFSET_CELL);
	add(&cell->count, 1);
	add(&cell->histogram[value > 0 ? 64 - __builtin_clzll((uint64_t)value) : 0], 1);
}

void producer_global(struct producer *producer)
{
	uint8_t *global = (uint8_t *)producer->control + producer->control->global_offset;
	__atomic_fetch_add((uint64_t *)(global + 8), 1, __ATOMIC_RELAXED);
}

/* --- the table --- */

static struct fay_table_header *table_of(const struct producer *producer)
{
	return (struct fay_table_header *)(producer->local + OFFSET_TABLE);
}

static struct table_row *rows_of(const struct producer *producer)
{
	return (struct table_row *)(table_of(producer) + 1);
}

void producer_flush_begin(struct producer *producer)
{
	__atomic_store_n(&producer->slot->sequence, producer->slot->sequence + 1, __ATOMIC_RELEASE);
}

void producer_flush_publish(struct producer *producer)
{
	const struct table_row *rows = rows_of(producer);
	uint64_t head = producer->slot->spill_head, used = table_of(producer)->used;
	/* In two records, if there are enough rows: a table may need several. */
	uint64_t parts[2] = { used / 2, used - used / 2 };
	unsigned row = 0;
	for (unsigned part = 0; part < 2; part++) {
		struct fay_spill_record record = { (uint32_t)(sizeof(record) +
							      parts[part] * sizeof(*rows)),
						   STATE_TABLE, (uint16_t)parts[part] };
		head = ring_put(producer, head, &record, sizeof(record));
		for (uint64_t i = 0; i < parts[part]; row++)
			if (rows[row].tag) {
				head = ring_put(producer, head, &rows[row], sizeof(*rows));
				i++;
			}
	}
	__atomic_store_n(&producer->slot->spill_head, head, __ATOMIC_RELEASE);
}

void producer_flush_clear(struct producer *producer, uint32_t count)
{
	uint64_t *words = (uint64_t *)rows_of(producer);
	for (size_t i = 0; i < count * sizeof(struct table_row) / 8; i++)
		put(&words[i], 0);
	if (count == TABLE_ROWS)
		put(&table_of(producer)->used, 0);
}

void producer_flush_end(struct producer *producer)
{
	__atomic_store_n(&producer->slot->sequence, producer->slot->sequence + 1, __ATOMIC_RELEASE);
}

bool producer_flush(struct producer *producer)
{
	if (!reserve(producer, 2 * sizeof(struct fay_spill_record) +
				       table_of(producer)->used * sizeof(struct table_row)))
		return false;
	producer_flush_begin(producer);
	producer_flush_publish(producer);
	producer_flush_clear(producer, TABLE_ROWS);
	producer_flush_end(producer);
	return true;
}

static struct table_row *find_row(struct producer *producer, int64_t key,
				  const char name[NAME_SIZE], bool *fresh)
{
	struct table_row *rows = rows_of(producer);
	*fresh = false;
	for (unsigned i = 0, at = (unsigned)key; i < TABLE_ROWS; i++, at++) {
		struct table_row *row = &rows[at % TABLE_ROWS];
		if (!row->tag) {
			*fresh = true;
			return row;
		}
		if (row->key == key && !memcmp(row->name, name, NAME_SIZE))
			return row;
	}
	return NULL;
}

bool producer_record(struct producer *producer, int64_t key, const char name[NAME_SIZE],
		     int64_t value)
{
	bool fresh;
	uint64_t bias = 1ull << 63, words[NAME_SIZE / 8];
	struct table_row *row = find_row(producer, key, name, &fresh);
	/* As the compiled probes do: at most three quarters full, else emit and clear. */
	if (!row || (fresh && table_of(producer)->used >= TABLE_ROWS * 3 / 4)) {
		if (!producer_flush(producer))
			return false;
		row = find_row(producer, key, name, &fresh);
	}
	if (fresh) {
		memcpy(words, name, sizeof(words));
		put(&row->key, (uint64_t)key);
		for (unsigned i = 0; i < NAME_SIZE / 8; i++)
			put(row->name + i * 8, words[i]);
		put(&row->tag, (uint64_t)key << 1 | 1); /* never 0 */
		add(&table_of(producer)->used, 1);
	}
	add(&row->sum, (uint64_t)value);
	maximum(&row->min, ~((uint64_t)value ^ bias));
	maximum(&row->max, (uint64_t)value ^ bias);
	add(&row->average_sum, (uint64_t)value);
	add(&row->average_count, 1);
	add(&row->count, 1);
	__atomic_store_n(&producer->recorded, producer->recorded + 1, __ATOMIC_RELEASE);
	return true;
}

uint64_t test_table_total(const struct fay_result *result)
{
	uint64_t total = 0;
	for (size_t i = 0; i < result->row_count; i++)
		total += ((const struct table_row *)result->rows)[i].count;
	return total;
}

double test_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
