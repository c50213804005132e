/* SPDX-License-Identifier: MIT */
/*
 * A snapshot: what was drained so far, merged with what lies in the slots' live cells and tables.
 *
 * Why no event is counted twice or lost. A table's rows reach us through the ring (fay_flush) or
 * are read in place; flush number k of a slot makes the slot's sequence 2k-1, publishes its records
 * (head, release), clears the table, makes the sequence 2k. We
 *
 *     (1) load the sequence s1, acquire; if odd, drain and start again
 *     (2) drain the ring (head, acquire)
 *     (3) copy the table, each word with acquire
 *     (4) load the sequence s2; if s2 != s1, start again
 *
 * Say s1 = s2 = 2k. All of flushes 1..k happened before (1), so (2) finds all their records and (3)
 * finds the table as flush k left it or later. No part of flush k+1 was seen: had (2) seen its head
 * or (3) its clearing, the stores to the sequence before them would be visible at (4), and s2 would
 * be at least 2k+1. So the drained rows are exactly flushes 1..k, the copy holds exactly events
 * after flush k, and each recorded event is in one of them. When (4) fails, what was drained stays
 * drained and the copy is thrown away. Other slots' rings are not drained meanwhile, so a slot that
 * is done stays consistent.
 *
 * Waiting for a flush ends after a while, earlier when some producer asks for its ring to be
 * emptied. The table is then copied row by row, each with (1), (3) and (4) of its own, and a row
 * for which (4) fails is left out: rows may be missing, but none has one group's key and another's
 * values.
 *
 * Events recorded during (3) may be in the copy or not, and of one event's columns some may be: a
 * live picture is off by the events in flight. Once the producers have stopped (detached or dead)
 * the snapshot is exact.
 *
 * A producer killed inside fay_flush leaves the sequence odd for ever. The runtime publishes a
 * table all at once or not at all, so either every row still in the table was also drained since
 * the sequence became odd (ring.c keeps those rows), and the table is skipped, or none was, and the
 * table counts. (Mistaken only if the killed flush had not published and the one before it, drained
 * in the same breath, held every one of the same rows with the same values.)
 */
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fay/clock.h"

#include "aggregator_parts.h"

struct snapshot {
	struct fay_aggregator *aggregator;
	uint32_t index; /* of the state */
	const struct fay_schema_state *state;
	struct fay_rows *rows; /* `own`, or those of the picture before */
	struct fay_rows own;
	struct fay_budget budget;
	uint64_t *copy; /* of one row; or of a table's header and those of its rows in use */
	size_t copy_size;
	uint32_t copied;        /* rows of a table */
	unsigned waits;         /* left, over all slots */
	uint64_t waiting_since; /* monotonic ns; 0: not yet */
	struct fay_result *result;
};

/* A corrupt ring found on the way is for the next poll to report; the other slots' result is wanted
 * all the same. */
static void drain_slot(struct snapshot *snapshot, struct fay_source *source, uint32_t slot)
{
	struct fay_aggregator *aggregator = snapshot->aggregator;
	fay_ring_drain(aggregator, source, slot,
		       aggregator->pending.code ? NULL : &aggregator->pending);
}

static bool is_zero(const uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (words[i])
			return false;
	return true;
}

/* Whether this snapshot has waited for one thread's flush for so long that others, whose rings run
 * full meanwhile, would have to wait for it. */
static bool keeps_others_waiting(struct snapshot *snapshot)
{
	uint64_t now = fay_monotonic();
	if (!snapshot->waiting_since)
		snapshot->waiting_since = now;
	return now - snapshot->waiting_since > FAY_SNAPSHOT_ASKED_NS &&
	       fay_aggregator_is_asked(snapshot->aggregator);
}

/* One of the snapshot's waits: first just lets others run, later sleeps. False when none is left.
 * */
static bool wait_a_little(struct snapshot *snapshot)
{
	struct timespec nap = { .tv_nsec = 100000 };
	if (!snapshot->waits || keeps_others_waiting(snapshot))
		return false;
	if (--snapshot->waits >= FAY_SNAPSHOT_NAPS)
		sched_yield();
	else
		nanosleep(&nap, NULL);
	return true;
}

static bool same_words(const uint64_t *words, const void *from, size_t size)
{
	const uint64_t *shared = from;
	for (size_t i = 0; i < size / 8; i++)
		if (__atomic_load_n(&shared[i], __ATOMIC_ACQUIRE) != words[i])
			return false;
	return true;
}

/* How much of a table there is to look at: up to the last row that may be occupied. Row and number
 * are the program's, and one that tells less than the truth spoils its own result. */
static size_t part_in_use(const struct snapshot *snapshot, const uint8_t *table)
{
	const struct fay_table_header *header = (const struct fay_table_header *)table;
	uint64_t last = __atomic_load_n(&header->last, __ATOMIC_ACQUIRE);
	uint32_t rows = snapshot->state->rows;
	return sizeof(*header) +
	       (last && last < rows ? last + 1 : rows) * (size_t)snapshot->state->row_size;
}

static bool is_in_use(const uint8_t *row)
{
	return __atomic_load_n((const uint64_t *)row, __ATOMIC_ACQUIRE) != 0;
}

static uint8_t *next_copied(const struct snapshot *snapshot)
{
	return (uint8_t *)snapshot->copy + sizeof(struct fay_table_header) +
	       (size_t)snapshot->copied * snapshot->state->row_size;
}

/* The header and the rows in use, one behind the other. */
static void copy_in_use(struct snapshot *snapshot, const uint8_t *table)
{
	uint32_t size = snapshot->state->row_size;
	size_t end = part_in_use(snapshot, table);
	fay_copy_words(snapshot->copy, table, sizeof(struct fay_table_header));
	snapshot->copied = 0;
	for (size_t at = sizeof(struct fay_table_header); at < end; at += size) {
		if (!is_in_use(table + at))
			continue;
		fay_copy_words(next_copied(snapshot), table + at, size);
		snapshot->copied++;
	}
}

/* Whether the table is as it was copied. */
static bool same_table(const struct snapshot *snapshot, const uint8_t *table)
{
	uint32_t size = snapshot->state->row_size;
	size_t end = part_in_use(snapshot, table);
	const uint8_t *copied = (const uint8_t *)snapshot->copy + sizeof(struct fay_table_header);
	if (!same_words(snapshot->copy, table, sizeof(struct fay_table_header)))
		return false;
	for (size_t at = sizeof(struct fay_table_header); at < end; at += size) {
		if (!is_in_use(table + at))
			continue;
		if (copied == next_copied(snapshot) ||
		    !same_words((const uint64_t *)copied, table + at, size))
			return false;
		copied += size;
	}
	return copied == next_copied(snapshot);
}

/* The rows that no flush touches meanwhile. */
static void copy_rows(struct snapshot *snapshot, const struct fay_slot_header *header,
		      const uint8_t *table)
{
	uint32_t size = snapshot->state->row_size;
	size_t end = part_in_use(snapshot, table);
	snapshot->copied = 0;
	for (size_t at = sizeof(struct fay_table_header); at < end; at += size) {
		uint8_t *row = next_copied(snapshot);
		uint32_t before = __atomic_load_n(&header->sequence, __ATOMIC_ACQUIRE);
		fay_copy_words(row, table + at, size);
		snapshot->copied += *(const uint64_t *)row && !(before & 1) &&
				    __atomic_load_n(&header->sequence, __ATOMIC_ACQUIRE) == before;
	}
}

/* Steps (1) to (4) above. Returns true if the copy was taken under an odd sequence that will not
 * move. */
static bool copy_table(struct snapshot *snapshot, struct fay_source *source, uint32_t slot)
{
	const struct fay_slot_header *header = fay_source_slot(source, slot);
	struct fay_slot_view *view = &source->slots[slot];
	const uint8_t *table = (const uint8_t *)header + FAY_SLOT_HEADER + snapshot->state->offset;
	for (;;) {
		uint32_t before = __atomic_load_n(&header->sequence, __ATOMIC_ACQUIRE);
		bool odd = before & 1;
		drain_slot(snapshot, source, slot);
		if (odd && !(view->stuck && view->stuck_at == before)) {
			if (wait_a_little(snapshot))
				continue;
			view->stuck = true;
			view->stuck_at = before;
		}
		copy_in_use(snapshot, table);
		/* A flush that was taken for dead, and is not, hands rows on and empties the table.
		 * */
		bool moved = odd && (__atomic_load_n(&header->spill_head, __ATOMIC_ACQUIRE) !=
					     view->tail ||
				     !same_table(snapshot, table));
		if (!moved && __atomic_load_n(&header->sequence, __ATOMIC_ACQUIRE) == before)
			return odd;
		if (!wait_a_little(snapshot)) {
			copy_rows(snapshot, header, table);
			snapshot->result->torn = true;
			return false;
		}
	}
}

/*
 * After a flush that never ended: did the table go out? Records hold rows in the table's order, so
 * what is left of the table must be a subsequence of the rows kept: one pass over both.
 */
static bool all_rows_drained(const struct snapshot *snapshot, const struct fay_slot_view *view)
{
	const struct fay_schema_state *states = snapshot->aggregator->schema->states;
	const uint8_t *rows = (const uint8_t *)snapshot->copy + sizeof(struct fay_table_header);
	size_t at = 0;
	for (uint32_t i = 0; i < snapshot->copied; i++, rows += snapshot->state->row_size) {
		bool found = false;
		while (!found && at < view->open_size) {
			uint64_t state;
			memcpy(&state, view->open_rows + at, sizeof(state));
			found = state == snapshot->index &&
				!memcmp(view->open_rows + at + sizeof(state), rows,
					states[state].row_size);
			at += sizeof(state) + states[state].row_size;
		}
		if (!found)
			return false;
	}
	return true;
}

/* Returns 1 if the slot holds anything live, 0 if not, -1 over the budget. */
static int take_table(struct snapshot *snapshot, struct fay_source *source, uint32_t slot)
{
	const uint8_t *rows = (const uint8_t *)snapshot->copy + sizeof(struct fay_table_header);
	if (copy_table(snapshot, source, slot) && all_rows_drained(snapshot, &source->slots[slot]))
		return 0;
	snapshot->result->live_rows += snapshot->copied;
	if (!fay_rows_merge_many(snapshot->rows, rows, snapshot->copied))
		return -1;
	return snapshot->copied != 0;
}

static int take_cell(struct snapshot *snapshot, const uint8_t *cell)
{
	fay_copy_words(snapshot->copy, cell, snapshot->copy_size);
	if (!fay_rows_merge(snapshot->rows, (const uint8_t *)snapshot->copy))
		return -1;
	bool live = !is_zero(snapshot->copy, snapshot->copy_size / 8);
	snapshot->result->live_rows += live;
	return live;
}

static int take_slot(struct snapshot *snapshot, struct fay_source *source, uint32_t slot)
{
	const struct fay_slot_header *header = fay_source_slot(source, slot);
	const struct fay_slot_view *view = &source->slots[slot];
	int live = 0;
	if (!fay_source_wants(source, header))
		return 0;
	snapshot->result->calls_lost += __atomic_load_n(&header->lost_calls, __ATOMIC_RELAXED);
	snapshot->result->calls_jumped += __atomic_load_n(&header->left_by_jump, __ATOMIC_RELAXED);
	snapshot->result->events_lost_reentrant +=
		__atomic_load_n(&header->lost_reentrant, __ATOMIC_RELAXED);
	snapshot->result->events_lost_full += __atomic_load_n(&header->lost_full, __ATOMIC_RELAXED);
	if (view->corrupt)
		return 0;
	if (snapshot->state->kind == FAY_STATE_TABLE)
		live = take_table(snapshot, source, slot);
	else if (snapshot->state->kind == FAY_STATE_CELL &&
		 snapshot->state->scope == FAY_SCOPE_LOCAL)
		live = take_cell(snapshot, (const uint8_t *)header + FAY_SLOT_HEADER +
						   snapshot->state->offset);
	if (live > 0 || (view->drained && snapshot->state->kind != FAY_STATE_CELL))
		snapshot->result->threads++;
	return live < 0 ? -1 : 0;
}

static int take_source(struct snapshot *snapshot, struct fay_source *source)
{
	uint32_t count = fay_source_slot_count(source);
	snapshot->result->events_lost_no_slot +=
		__atomic_load_n(&source->control->lost_no_slot, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < count; i++)
		if (take_slot(snapshot, source, i) < 0)
			return -1;
	if (snapshot->state->kind == FAY_STATE_CELL && snapshot->state->scope == FAY_SCOPE_GLOBAL)
		return take_cell(snapshot,
				 source->base + source->global_offset + snapshot->state->offset) < 0
			       ? -1
			       : 0;
	return 0;
}

/* A cell has its row, of zeroes, also before the first event. */
static int take_all(struct snapshot *snapshot)
{
	struct fay_aggregator *aggregator = snapshot->aggregator;
	bool cell = snapshot->state->kind == FAY_STATE_CELL;
	if (cell)
		memset(snapshot->copy, 0, snapshot->copy_size);
	if (cell && !fay_rows_merge(snapshot->rows, (const uint8_t *)snapshot->copy))
		return -1;
	for (size_t i = 0; i < aggregator->source_count; i++)
		if (take_source(snapshot, &aggregator->sources[i]))
			return -1;
	/* Last: the slots' draining above added to it. */
	return fay_rows_merge_all(snapshot->rows, &aggregator->drained[snapshot->index]) ? 0 : -1;
}

static size_t copy_size(const struct fay_schema_state *state)
{
	if (state->kind != FAY_STATE_TABLE)
		return state->row_size;
	return sizeof(struct fay_table_header) + (size_t)state->rows * state->row_size;
}

/* Where pictures share what they can: what this one starts from; else NULL. */
static struct fay_picture *kept_by(const struct snapshot *snapshot)
{
	const struct fay_aggregator *aggregator = snapshot->aggregator;
	return aggregator->pictures ? &aggregator->pictures[snapshot->index] : NULL;
}

/* False: no memory. `picture`: it will be taken again. */
static bool begin(struct snapshot *snapshot, bool picture)
{
	struct fay_aggregator *aggregator = snapshot->aggregator;
	struct fay_picture *kept = kept_by(snapshot);
	snapshot->state = &aggregator->schema->states[snapshot->index];
	/* Room for all that was drained, should that have hit its limit, and for what is live. */
	snapshot->budget.limit = 2 * aggregator->budget.limit;
	fay_rows_init(&snapshot->own, aggregator->schema, snapshot->index, &snapshot->budget);
	snapshot->rows = &snapshot->own;
	if (picture && kept && kept->rows.state) {
		snapshot->rows = &kept->rows;
		kept->budget.limit = snapshot->budget.limit;
		fay_rows_again(snapshot->rows);
	}
	snapshot->copy_size = copy_size(snapshot->state);
	snapshot->copy = kept && kept->copy ? kept->copy : malloc(snapshot->copy_size);
	if (kept)
		kept->copy = snapshot->copy;
	return snapshot->copy != NULL;
}

/* Kept rows of which many are not there any more, or too many, are not kept. */
static void end(struct snapshot *snapshot)
{
	struct fay_picture *kept = kept_by(snapshot);
	if (!kept)
		free(snapshot->copy);
	if (snapshot->rows != &snapshot->own &&
	    snapshot->result->row_count < snapshot->rows->count / 2) {
		fay_rows_deinit(&kept->rows);
		fay_rows_init(&kept->rows, snapshot->aggregator->schema, snapshot->index,
			      &kept->budget);
	}
	fay_rows_deinit(&snapshot->own);
}

static bool can_be_kept(const struct fay_schema *schema, const struct fay_schema_state *state)
{
	bool can = state->kind == FAY_STATE_TABLE && state->keys;
	for (uint32_t i = 0; can && i < (uint32_t)state->keys + state->values; i++)
		can = schema->columns[state->first_column + i].offset >= sizeof(uint64_t);
	return can;
}

bool fay_aggregator_keep_pictures(struct fay_aggregator *aggregator)
{
	const struct fay_schema *schema = aggregator->schema;
	if (!aggregator->pictures)
		aggregator->pictures =
			calloc(schema->state_count + 1, sizeof(*aggregator->pictures));
	for (uint32_t i = 0; aggregator->pictures && i < schema->state_count; i++) {
		struct fay_picture *kept = &aggregator->pictures[i];
		if (!kept->rows.state && can_be_kept(schema, &schema->states[i]))
			fay_rows_init(&kept->rows, schema, i, &kept->budget);
	}
	return aggregator->pictures != NULL;
}

void fay_pictures_forget(struct fay_aggregator *aggregator)
{
	for (uint32_t i = 0; aggregator->pictures && i < aggregator->schema->state_count; i++) {
		free(aggregator->pictures[i].copy);
		if (aggregator->pictures[i].rows.state)
			fay_rows_deinit(&aggregator->pictures[i].rows);
	}
	free(aggregator->pictures);
}

void fay_losses_add(struct fay_result *to, const struct fay_result *from)
{
	to->events_lost_reentrant += from->events_lost_reentrant;
	to->events_lost_full += from->events_lost_full;
	to->events_lost_no_slot += from->events_lost_no_slot;
	to->calls_lost += from->calls_lost;
	to->calls_jumped += from->calls_jumped;
	to->threads += from->threads;
}

int fay_source_take_over(struct fay_aggregator *aggregator, struct fay_source *source,
			 uint32_t state)
{
	struct fay_result result = { 0 };
	struct snapshot snapshot = { .aggregator = aggregator,
				     .index = state,
				     .waits = FAY_SNAPSHOT_YIELDS + FAY_SNAPSHOT_NAPS,
				     .result = &result };
	int failed = !begin(&snapshot, false) || take_source(&snapshot, source) ||
		     !fay_rows_merge_all(&aggregator->drained[state], snapshot.rows);
	if (!failed)
		fay_losses_add(&aggregator->retired[state], &result);
	end(&snapshot);
	return failed ? -1 : 0;
}

static int no_room(const struct snapshot *snapshot, struct fay_error *error)
{
	return fay_error_set(error, FAY_E_LIMIT,
			     "the result is over the aggregator's memory limit of %" PRIu64
			     " MiB; group by fewer keys",
			     snapshot->budget.limit >> 20);
}

/* By key. */
static bool hand_on(struct snapshot *snapshot)
{
	struct fay_result *result = snapshot->result;
	result->state = snapshot->index;
	result->row_size = snapshot->state->row_size;
	if (snapshot->rows != &snapshot->own)
		return fay_rows_take_sorted(snapshot->rows, &result->rows, &result->row_count);
	fay_rows_sort(snapshot->rows);
	result->row_count = snapshot->rows->count;
	result->rows = snapshot->rows->rows;
	snapshot->rows->rows = NULL;
	return true;
}

int fay_aggregator_snapshot(struct fay_aggregator *aggregator, uint32_t state,
			    struct fay_result *result, struct fay_error *error)
{
	struct snapshot snapshot = { .aggregator = aggregator,
				     .index = state,
				     .waits = FAY_SNAPSHOT_YIELDS + FAY_SNAPSHOT_NAPS,
				     .result = result };
	memset(result, 0, sizeof(*result));
	if (state >= aggregator->schema->state_count)
		return fay_error_set(error, FAY_E_INTERNAL, "snapshot of state %u of %u", state,
				     aggregator->schema->state_count);
	if (!begin(&snapshot, true) || take_all(&snapshot) || !hand_on(&snapshot)) {
		memset(result, 0, sizeof(*result));
		end(&snapshot);
		return no_room(&snapshot, error);
	}
	fay_losses_add(result, &aggregator->retired[state]);
	end(&snapshot);
	return FAY_OK;
}

void fay_result_deinit(struct fay_result *result)
{
	free(result->rows);
	result->rows = NULL;
	result->row_count = 0;
}
