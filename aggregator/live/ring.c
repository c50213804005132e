/* SPDX-License-Identifier: MIT */
/*
 * The consumer's side of a slot's spill ring.
 *
 * Ordering guarantees: one producer (the slot's owner), one consumer (us; an aggregator is used by
 * one thread at a time). The head is loaded with acquire, so every byte before it is there; the
 * tail is stored with release after the bytes are copied. The tail is our own: what shared memory
 * says about it is read once, when the slot is first seen, and only written since.
 *
 * The producer is not trusted. Each record's header is copied before it is looked at and each row
 * before it is merged, so nothing is read twice. A head that moved backwards or too far, a size
 * that is not what its rows need, an unknown state: the slot is reported once and ignored from then
 * on, for where the next record begins cannot be known.
 *
 * Of a ring whose producer overwrites (FAY_FULL_OVERWRITE) a record is ours once we have moved the
 * tail past it by compare-and-swap. What is copied before that may be torn; it is looked at only to
 * find out how far the record reaches, within bounds, and is thrown away if the tail has moved
 * meanwhile.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator_parts.h"

static void copy_out(const uint8_t *ring, uint64_t size, uint64_t at, void *to, size_t count)
{
	uint64_t start = at & (size - 1);
	size_t first = count < size - start ? count : size - start;
	memcpy(to, ring + start, first);
	memcpy((uint8_t *)to + first, ring, count - first);
}

static bool keep_open_row(struct fay_slot_view *view, struct fay_budget *budget, uint64_t state,
			  const uint8_t *row, size_t size)
{
	size_t needed = view->open_size + sizeof(state) + size;
	if (needed > view->open_room) {
		size_t room = needed * 2;
		if (room - view->open_room > budget->limit - budget->used)
			return false;
		uint8_t *grown = realloc(view->open_rows, room);
		if (!grown)
			return false;
		budget->used += room - view->open_room;
		view->open_rows = grown;
		view->open_room = room;
	}
	memcpy(view->open_rows + view->open_size, &state, sizeof(state));
	memcpy(view->open_rows + view->open_size + sizeof(state), row, size);
	view->open_size = needed;
	return true;
}

struct drain {
	struct fay_aggregator *aggregator;
	struct fay_source *source;
	struct fay_slot_view *view;
	const uint8_t *ring;
	bool wanted; /* the slot passes the pid filter; else its records are thrown away */
	bool odd;    /* a flush may be in progress */
};

/* NULL, or what is wrong with the record. */
static const char *check_record(const struct drain *drain, const struct fay_spill_record *record,
				uint64_t available)
{
	const struct fay_schema *schema = drain->aggregator->schema;
	if (record->size < sizeof(*record) || record->size % 8 || record->size > available)
		return "a record's size is invalid";
	if (record->state >= schema->state_count)
		return "a record names a state that does not exist";
	const struct fay_schema_state *state = &schema->states[record->state];
	if (state->kind != FAY_STATE_TABLE && state->kind != FAY_STATE_STREAM)
		return "a record names a state that is neither table nor stream";
	if (record->size != sizeof(*record) + (uint64_t)record->rows * state->row_size)
		return "a record's size does not fit its rows";
	return NULL;
}

void fay_aggregator_hand_on(struct fay_aggregator *aggregator, uint32_t index, const uint8_t *row)
{
	if (aggregator->texts && index == aggregator->text_state)
		fay_texts_take(aggregator->texts, row);
	else if (aggregator->on_row)
		aggregator->on_row(aggregator->on_row_context, index, row);
}

/* False: over the budget. */
static bool take_rows(const struct drain *drain, uint32_t index, const uint8_t *rows, size_t count)
{
	struct fay_aggregator *aggregator = drain->aggregator;
	const struct fay_schema_state *state = &aggregator->schema->states[index];
	if (!drain->wanted)
		return true;
	for (size_t i = 0; i < count; i++) {
		const uint8_t *row = rows + i * state->row_size;
		if (state->kind == FAY_STATE_STREAM)
			fay_aggregator_hand_on(aggregator, index, row);
		else if (state->kind == FAY_STATE_TABLE && drain->odd &&
			 !keep_open_row(drain->view, &aggregator->budget, index, row,
					state->row_size))
			return false;
	}
	return state->kind == FAY_STATE_STREAM ||
	       fay_rows_merge_many(&aggregator->drained[index], rows, count);
}

/* A record's rows, which begin at `at`. */
static bool take_record(const struct drain *drain, const struct fay_spill_record *record,
			uint64_t at)
{
	_Alignas(8) uint8_t rows[4096]; /* check_state() allows no larger row */
	size_t size = drain->aggregator->schema->states[record->state].row_size, count;
	size_t most =
		sizeof(rows) / size < FAY_ROWS_AT_ONCE ? sizeof(rows) / size : FAY_ROWS_AT_ONCE;
	for (size_t left = record->rows; left; left -= count, at += count * size) {
		count = left < most ? left : most;
		copy_out(drain->ring, drain->source->spill_size, at, rows, count * size);
		if (!take_rows(drain, record->state, rows, count))
			return false;
	}
	return true;
}

int fay_aggregator_take_row(struct fay_aggregator *aggregator, uint32_t index, const uint8_t *row,
			    struct fay_error *error)
{
	aggregator->traffic[index].rows++;
	aggregator->traffic[index].bytes += aggregator->schema->states[index].row_size;
	if (aggregator->schema->states[index].kind == FAY_STATE_STREAM) {
		fay_aggregator_hand_on(aggregator, index, row);
		return FAY_OK;
	}
	if (fay_rows_merge(&aggregator->drained[index], row))
		return FAY_OK;
	return fay_error_set(error, FAY_E_LIMIT,
			     "the result is over the aggregator's memory limit of %" PRIu64
			     " MiB; group by fewer keys",
			     aggregator->budget.limit >> 20);
}

static int64_t over_limit(struct fay_aggregator *aggregator, struct fay_error *error)
{
	aggregator->over_limit = true;
	/* Nobody waits for room that will not come; producers count what they lose. */
	for (size_t i = 0; i < aggregator->source_count; i++)
		__atomic_store_n(&aggregator->sources[i].control->consumer_alive, 0,
				 __ATOMIC_RELEASE);
	fay_error_set(error, FAY_E_LIMIT,
		      "the result is over the aggregator's memory limit of %" PRIu64
		      " MiB; group by fewer keys",
		      aggregator->budget.limit >> 20);
	return -1;
}

/* Nobody waits for room in a ring that is ignored: a tail that cannot be says so to the producer,
 * which then counts its events as lost. */
static void refuse_ring(const struct fay_source *source, struct fay_slot_header *header)
{
	uint64_t head = __atomic_load_n(&header->spill_head, __ATOMIC_RELAXED);
	__atomic_store_n(&header->spill_tail, head - 2 * source->spill_size, __ATOMIC_RELEASE);
}

static int64_t corrupt(struct drain *drain, uint32_t slot, const char *what,
		       struct fay_error *error)
{
	struct fay_slot_header *header = fay_source_slot(drain->source, slot);
	uint32_t pid = __atomic_load_n(&header->pid, __ATOMIC_RELAXED);
	drain->view->corrupt = true;
	refuse_ring(drain->source, header);
	fay_error_set(error, FAY_E_REFUSED,
		      "the shared memory of slot %u (%sprocess %u) was overwritten: %s; this "
		      "thread's further results are ignored",
		      slot, pid == FAY_PID_UNKNOWN ? "a child of " : "",
		      pid == FAY_PID_UNKNOWN ? __atomic_load_n(&drain->source->control->target_pid,
							       __ATOMIC_RELAXED)
					     : pid,
		      what);
	return -1;
}

static void copy_words(const uint8_t *ring, uint64_t size, uint64_t at, void *to, size_t count)
{
	for (size_t i = 0; i < count; i += 8) {
		uint64_t word = __atomic_load_n((const uint64_t *)(ring + ((at + i) & (size - 1))),
						__ATOMIC_RELAXED);
		memcpy((uint8_t *)to + i, &word, sizeof(word));
	}
}

/* One attempt to take the record at the tail into *row. 1: taken, 0: the producer has moved the
 * tail meanwhile, -1: the ring is empty up to `until`; or *wrong is set. */
static int take_contended(const struct drain *drain, struct fay_slot_header *header, uint64_t until,
			  struct fay_spill_record *record, uint8_t *row, const char **wrong)
{
	uint64_t size = drain->source->spill_size,
		 tail = __atomic_load_n(&header->spill_tail, __ATOMIC_ACQUIRE);
	uint64_t head = __atomic_load_n(&header->spill_head, __ATOMIC_ACQUIRE);
	if ((int64_t)(tail - until) >= 0)
		return -1;
	if (head - tail > size || tail < drain->view->tail || (head | tail) % 8) {
		*wrong = "its ring holds more than it can";
	} else {
		copy_words(drain->ring, size, tail, record, sizeof(*record));
		*wrong = check_record(drain, record, head - tail);
		if (!*wrong && record->rows != 1)
			*wrong = "a record has several rows";
	}
	if (!*wrong)
		copy_words(drain->ring, size, tail + sizeof(*record), row,
			   record->size - sizeof(*record));
	uint64_t was = tail;
	bool moved = *wrong ? __atomic_load_n(&header->spill_tail, __ATOMIC_ACQUIRE) != tail
			    : !__atomic_compare_exchange_n(&header->spill_tail, &was,
							   tail + record->size, false,
							   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	if (moved) {
		*wrong = NULL;
		return 0;
	}
	if (!*wrong)
		drain->view->tail = tail + record->size;
	return 1;
}

/* Each attempt takes a record, or finds that the producer has given up one; a tail that is moved
 * about for ever ends it, too. */
static int64_t drain_contended(struct drain *drain, struct fay_slot_header *header, uint32_t slot,
			       struct fay_error *error)
{
	_Alignas(8) uint8_t row[4096];
	uint64_t until = __atomic_load_n(&header->spill_head, __ATOMIC_ACQUIRE);
	int64_t bytes = 0;
	for (uint64_t attempts = drain->source->spill_size / sizeof(struct fay_spill_record);
	     attempts; attempts--) {
		struct fay_spill_record record;
		const char *wrong = NULL;
		int taken = take_contended(drain, header, until, &record, row, &wrong);
		if (wrong)
			return corrupt(drain, slot, wrong, error);
		if (taken < 0)
			break;
		if (!taken)
			continue;
		drain->view->drained |= drain->wanted;
		if (!take_rows(drain, record.state, row, 1))
			return over_limit(drain->aggregator, error);
		drain->aggregator->traffic[record.state].rows++;
		drain->aggregator->traffic[record.state].bytes += record.size;
		bytes += record.size;
	}
	return bytes;
}

int64_t fay_ring_drain(struct fay_aggregator *aggregator, struct fay_source *source, uint32_t slot,
		       struct fay_error *error)
{
	struct fay_slot_header *header = fay_source_slot(source, slot);
	struct fay_slot_view *view = &source->slots[slot];
	struct drain drain = { aggregator, source, view, (uint8_t *)header + source->spill_offset,
			       false,      false };
	if (aggregator->over_limit || !source->spill_size)
		return 0;
	if (view->corrupt) {
		/* again: the head may have been overwritten once more */
		refuse_ring(source, header);
		return 0;
	}
	if (source->overwrites) {
		drain.wanted = fay_source_wants(source, header);
		return drain_contended(&drain, header, slot, error);
	}
	if (!view->seen) {
		view->tail = __atomic_load_n(&header->spill_tail, __ATOMIC_RELAXED);
		view->seen = true;
	}
	uint64_t head = __atomic_load_n(&header->spill_head, __ATOMIC_ACQUIRE), first = view->tail;
	if (head == first)
		return 0;
	if (head - first > source->spill_size || (head | first) % 8)
		return corrupt(&drain, slot, "its ring holds more than it can", error);
	/* Read after the head: even means that the flushes of all records before it are over. */
	drain.odd = __atomic_load_n(&header->sequence, __ATOMIC_ACQUIRE) & 1;
	drain.wanted = fay_source_wants(source, header);
	view->open_size = 0;
	view->drained |= drain.wanted;
	while (view->tail != head) {
		struct fay_spill_record record;
		uint64_t available = head - view->tail;
		copy_out(drain.ring, source->spill_size, view->tail, &record, sizeof(record));
		const char *wrong = check_record(&drain, &record, available);
		if (wrong)
			return corrupt(&drain, slot, wrong, error);
		if (!take_record(&drain, &record, view->tail + sizeof(record)))
			return over_limit(aggregator, error);
		aggregator->traffic[record.state].rows += record.rows;
		aggregator->traffic[record.state].bytes += record.size;
		view->tail += record.size;
		__atomic_store_n(&header->spill_tail, view->tail, __ATOMIC_RELEASE);
	}
	return (int64_t)(head - first);
}
