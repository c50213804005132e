/* SPDX-License-Identifier: MIT */
/*
 * Changes between snapshots, and merging what other machines changed.
 *
 * A difference of sums is exact modulo 2^64 even if the later snapshot is the smaller one, as a
 * torn one can be. 32-bit counts of quantiles stop at their maximum: a count that fell is told as
 * no change, and the larger one is remembered. Extrema, distinct, first and last are told whole:
 * merging them again changes nothing.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator_parts.h"
#include "partial.h"

#define ROW_MAX 4096u /* fay/image.h, row_size */

struct fay_changes {
	const struct fay_schema *schema;
	struct fay_rows *last; /* by state: the last snapshot, less what was forgotten of it */
	bool *forgot;          /* by state: `last` may have rows that no snapshot has any more */
	/* by state: rows that the last snapshot, a torn one, had not, and that may come back */
	uint64_t *missing;
	struct fay_budget budget;
	bool replaces;
};

bool fay_schema_replaces(const struct fay_schema *schema)
{
	for (uint32_t i = 0; i < schema->column_count; i++)
		if (schema->columns[i].merge == FAY_MERGE_TOP ||
		    schema->columns[i].merge == FAY_MERGE_SAMPLE)
			return true;
	return false;
}

static void free_changes(struct fay_changes *changes)
{
	free(changes->last);
	free(changes->forgot);
	free(changes->missing);
	free(changes);
}

int fay_changes_create(const struct fay_schema *schema, uint64_t limit, struct fay_changes **result,
		       struct fay_error *error)
{
	struct fay_changes *changes = calloc(1, sizeof(*changes));
	if (!changes)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	changes->last = calloc(schema->state_count + 1, sizeof(*changes->last));
	changes->forgot = calloc(schema->state_count + 1, sizeof(*changes->forgot));
	changes->missing = calloc(schema->state_count + 1, sizeof(*changes->missing));
	if (!changes->last || !changes->forgot || !changes->missing) {
		free_changes(changes);
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	changes->schema = schema;
	changes->budget.limit = limit;
	changes->replaces = fay_schema_replaces(schema);
	for (uint32_t i = 0; i < schema->state_count; i++)
		fay_rows_init(&changes->last[i], schema, i, &changes->budget);
	*result = changes;
	return FAY_OK;
}

void fay_changes_destroy(struct fay_changes *changes)
{
	if (!changes)
		return;
	for (uint32_t i = 0; i < changes->schema->state_count; i++)
		fay_rows_deinit(&changes->last[i]);
	free_changes(changes);
}

static void subtract_words(uint8_t *out, const uint8_t *now, const uint8_t *before, uint32_t size)
{
	uint64_t x, y;
	for (uint32_t at = 0; at < size; at += sizeof(x)) {
		memcpy(&x, now + at, sizeof(x));
		memcpy(&y, before + at, sizeof(y));
		x -= y;
		memcpy(out + at, &x, sizeof(x));
	}
}

static void subtract_counts(uint8_t *out, const uint8_t *now, const uint8_t *before, uint32_t size)
{
	uint32_t x, y;
	for (uint32_t at = 0; at < size; at += sizeof(x)) {
		memcpy(&x, now + at, sizeof(x));
		memcpy(&y, before + at, sizeof(y));
		x = x > y ? x - y : 0;
		memcpy(out + at, &x, sizeof(x));
	}
}

static void keep_larger_counts(uint8_t *before, const uint8_t *now, uint32_t size)
{
	uint32_t x, y;
	for (uint32_t at = 0; at < size; at += sizeof(x)) {
		memcpy(&x, now + at, sizeof(x));
		memcpy(&y, before + at, sizeof(y));
		memcpy(before + at, x > y ? &x : &y, sizeof(x));
	}
}

static bool has_differences(const struct fay_schema_column *column)
{
	switch (column->merge) {
	case FAY_MERGE_COUNT:
	case FAY_MERGE_SUM:
	case FAY_MERGE_AVERAGE:
	case FAY_MERGE_HIST_LOG2:
	case FAY_MERGE_HIST_LINEAR:
	case FAY_MERGE_HIST_LOGLINEAR:
	case FAY_MERGE_QUANTILE: return true;
	default: return false;
	}
}

/* Where an operator has differences: one column of `out` becomes now - before. */
static bool column_difference(const struct fay_schema_column *column, uint8_t *out,
			      const uint8_t *now, const uint8_t *before)
{
	uint32_t at = column->offset;
	if (!has_differences(column))
		return false;
	(column->merge == FAY_MERGE_QUANTILE ? subtract_counts : subtract_words)(
		out + at, now + at, before + at, column->size);
	return true;
}

/* One value column of `out` becomes what has to be merged into `before` to get `now`. */
static void column_change(const struct fay_schema_column *column, uint8_t *out, const uint8_t *now,
			  const uint8_t *before)
{
	uint32_t at = column->offset;
	if (column_difference(column, out, now, before))
		return;
	if (memcmp(now + at, before + at, column->size))
		memcpy(out + at, now + at, column->size);
	else
		memset(out + at, 0, column->size);
}

/* What was told of a row so far. */
static void remember(const struct fay_rows *last, uint8_t *before, const uint8_t *now)
{
	for (unsigned i = last->state->keys; i < (unsigned)last->state->keys + last->state->values;
	     i++) {
		uint32_t at = last->columns[i].offset, size = last->columns[i].size;
		if (last->columns[i].merge == FAY_MERGE_QUANTILE)
			keep_larger_counts(before + at, now + at, size);
		else
			memcpy(before + at, now + at, size);
	}
}

static bool is_zero(const struct fay_schema_column *column, const uint8_t *row)
{
	for (uint32_t at = 0; at < column->size; at++)
		if (row[column->offset + at])
			return false;
	return true;
}

static bool values_are_zero(const struct fay_rows *rows, const uint8_t *row)
{
	for (unsigned i = rows->state->keys; i < (unsigned)rows->state->keys + rows->state->values;
	     i++)
		if (!is_zero(&rows->columns[i], row))
			return false;
	return true;
}

/* Whether all that was told of a remembered row was forgotten since: what comes of it later is told
 * whole, as of a row that is not remembered. */
static bool is_settled(const struct fay_rows *last, const uint8_t *row)
{
	for (unsigned i = last->state->keys; i < (unsigned)last->state->keys + last->state->values;
	     i++)
		if (has_differences(&last->columns[i]) && !is_zero(&last->columns[i], row))
			return false;
	return true;
}

/* Whether `row` changed since; *out is then what is to be told, and the row is remembered. -1: no
 * room to remember it. */
static int row_change(struct fay_changes *changes, struct fay_rows *last, const uint8_t *row,
		      uint8_t *out)
{
	uint8_t *before = fay_rows_find(last, row);
	uint32_t size = last->state->row_size;
	memcpy(out, row, size);
	if (!before) {
		/* A group that is new is told even if all its values are still the identity. */
		if (!fay_rows_merge(last, row))
			return -1;
		return last->state->keys || !values_are_zero(last, row);
	}
	if (!changes->replaces)
		for (unsigned i = last->state->keys;
		     i < (unsigned)last->state->keys + last->state->values; i++)
			column_change(&last->columns[i], out, row, before);
	bool changed =
		changes->replaces ? memcmp(row, before, size) != 0 : !values_are_zero(last, out);
	if (changes->replaces)
		memcpy(before, row, size);
	else
		remember(last, before, row);
	return changed;
}

/* Rows that a torn snapshot has not, and that may come back: what is live of them was told. They
 * are no more than threads' tables hold. */
static bool keep_missing(const struct fay_rows *last, struct fay_rows *only, uint64_t *count)
{
	for (size_t i = 0; i < last->count; i++) {
		const uint8_t *row = last->rows + i * last->state->row_size;
		if (fay_rows_find(only, row) || is_settled(last, row))
			continue;
		if (!fay_rows_merge(only, row))
			return false;
		++*count;
	}
	return true;
}

/* Rows that this snapshot does not have any more are no longer remembered; without memory for that
 * they are. */
static void remember_only(struct fay_changes *changes, const struct fay_result *now)
{
	struct fay_rows *last = &changes->last[now->state], only;
	uint64_t missing = 0;
	bool fine = true;
	fay_rows_init(&only, changes->schema, now->state, &changes->budget);
	for (size_t i = 0; fine && i < now->row_count; i++)
		fine = fay_rows_merge(&only, fay_rows_find(last, now->rows + i * now->row_size));
	if (!fine || (now->torn && !keep_missing(last, &only, &missing))) {
		fay_rows_deinit(&only);
		return;
	}
	fay_rows_deinit(last);
	*last = only;
	changes->forgot[now->state] = missing;
	changes->missing[now->state] = missing;
}

int fay_changes_take(struct fay_changes *changes, const struct fay_result *now,
		     struct fay_result *out, struct fay_error *error)
{
	memset(out, 0, sizeof(*out));
	if (now->state >= changes->schema->state_count ||
	    now->row_size != changes->schema->states[now->state].row_size)
		return fay_error_set(error, FAY_E_INTERNAL, "changes of state %u", now->state);
	out->state = now->state;
	out->row_size = now->row_size;
	out->rows = malloc(now->row_count * now->row_size + 1);
	if (!out->rows)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	for (size_t i = 0; i < now->row_count; i++) {
		int changed = row_change(changes, &changes->last[now->state],
					 now->rows + i * now->row_size,
					 out->rows + out->row_count * out->row_size);
		if (changed < 0) {
			fay_result_deinit(out);
			return fay_error_set(error, FAY_E_LIMIT,
					     "more groups than %" PRIu64 " MiB hold",
					     changes->budget.limit >> 20);
		}
		out->row_count += (size_t)changed;
	}
	if (changes->forgot[now->state])
		remember_only(changes, now);
	return FAY_OK;
}

uint64_t fay_changes_missing(const struct fay_changes *changes)
{
	uint64_t missing = 0;
	for (uint32_t i = 0; i < changes->schema->state_count; i++)
		missing += changes->missing[i];
	return missing;
}

static void zero_values(const struct fay_rows *rows, uint8_t *row)
{
	for (unsigned i = rows->state->keys; i < (unsigned)rows->state->keys + rows->state->values;
	     i++)
		memset(row + rows->columns[i].offset, 0, rows->columns[i].size);
}

/*
 * Rows of which nothing is live, by the snapshot that was told, are told once more, as final, and
 * forgotten; the others stay. What is counted for such a row later, or was not seen by a torn
 * snapshot, is a row of its own then, which elsewhere is merged with the final one.
 */
static void forget_final(struct fay_changes *changes, struct fay_aggregator *aggregator,
			 uint32_t state, uint64_t below, struct fay_result *final)
{
	struct fay_rows gone, *last = &changes->last[state];
	if (!fay_aggregator_split(aggregator, state, below, last, &gone))
		return;
	for (size_t i = 0; i < gone.count; i++)
		zero_values(last, fay_rows_find(last, gone.rows + i * gone.state->row_size));
	*final = (struct fay_result){ .state = state,
				      .row_size = gone.state->row_size,
				      .row_count = gone.count,
				      .rows = gone.rows };
	gone.rows = NULL;
	fay_rows_deinit(&gone);
	changes->forgot[state] = true;
}

/*
 * A row's last snapshot L was D, drained, and what lies in threads' tables and rings. With D
 * forgotten later snapshots have their total less D; so L - D is what they are compared with.
 * Operators without differences are told whole again, which changes nothing.
 */
static void forget_differences(struct fay_changes *changes, struct fay_aggregator *aggregator,
			       uint32_t state, uint64_t below)
{
	struct fay_rows gone, *last = &changes->last[state];
	if (!fay_aggregator_split(aggregator, state, below, NULL, &gone))
		return;
	for (size_t i = 0; i < gone.count; i++) {
		const uint8_t *row = gone.rows + i * gone.state->row_size;
		uint8_t *before = fay_rows_find(last, row);
		for (unsigned c = last->state->keys;
		     before && c < (unsigned)last->state->keys + last->state->values; c++)
			column_difference(&last->columns[c], before, before, row);
	}
	fay_rows_deinit(&gone);
	changes->forgot[state] = true;
}

void fay_changes_forget(struct fay_changes *changes, struct fay_aggregator *aggregator,
			uint32_t state, uint64_t below, struct fay_result *final)
{
	memset(final, 0, sizeof(*final));
	if (changes->replaces)
		forget_final(changes, aggregator, state, below, final);
	else
		forget_differences(changes, aggregator, state, below);
}

/* --- merging --- */

static bool put_row(struct fay_rows *rows, const uint8_t *row, bool replace)
{
	uint8_t *there = replace ? fay_rows_find(rows, row) : NULL;
	if (!there)
		return fay_rows_merge(rows, row);
	for (unsigned i = rows->state->keys; i < (unsigned)rows->state->keys + rows->state->values;
	     i++)
		memcpy(there + rows->columns[i].offset, row + rows->columns[i].offset,
		       rows->columns[i].size);
	return true;
}

static int put_rows(struct fay_aggregator *aggregator, uint32_t state, const uint8_t *rows,
		    size_t count, bool replace, struct fay_error *error)
{
	_Alignas(8) uint8_t row[ROW_MAX];
	if (state >= aggregator->schema->state_count)
		return fay_error_set(error, FAY_E_REFUSED, "rows of state %u of %u", state,
				     aggregator->schema->state_count);
	const struct fay_schema_state *of = &aggregator->schema->states[state];
	for (size_t i = 0; i < count; i++) {
		memcpy(row, rows + i * of->row_size, of->row_size);
		if (of->kind == FAY_STATE_STREAM) {
			fay_aggregator_hand_on(aggregator, state, row);
			continue;
		}
		if (!put_row(&aggregator->drained[state], row, replace))
			return fay_error_set(error, FAY_E_LIMIT,
					     "the result is over the memory limit of %" PRIu64
					     " MiB; group by fewer keys",
					     aggregator->budget.limit >> 20);
	}
	return FAY_OK;
}

int fay_aggregator_merge(struct fay_aggregator *aggregator, uint32_t state, const uint8_t *rows,
			 size_t count, struct fay_error *error)
{
	return put_rows(aggregator, state, rows, count, false, error);
}

int fay_aggregator_replace(struct fay_aggregator *aggregator, uint32_t state, const uint8_t *rows,
			   size_t count, struct fay_error *error)
{
	return put_rows(aggregator, state, rows, count, true, error);
}

int fay_aggregator_settle(struct fay_aggregator *settled, struct fay_aggregator *replaced,
			  uint32_t state, const uint8_t *rows, size_t count,
			  struct fay_error *error)
{
	if (fay_aggregator_merge(settled, state, rows, count, error))
		return error->code;
	struct fay_rows *there = &replaced->drained[state];
	for (size_t i = 0; i < count; i++) {
		_Alignas(8) uint8_t row[ROW_MAX];
		memcpy(row, rows + i * there->state->row_size, there->state->row_size);
		uint8_t *before = fay_rows_find(there, row);
		if (before)
			zero_values(there, before);
	}
	return FAY_OK;
}

int fay_aggregator_merge_all(struct fay_aggregator *to, const struct fay_aggregator *from,
			     struct fay_error *error)
{
	for (uint32_t i = 0; i < from->schema->state_count; i++)
		if (!fay_rows_merge_all(&to->drained[i], &from->drained[i]))
			return fay_error_set(error, FAY_E_LIMIT,
					     "the result is over the memory limit of %" PRIu64
					     " MiB; group by fewer keys",
					     to->budget.limit >> 20);
	return FAY_OK;
}

void fay_aggregator_account(struct fay_aggregator *aggregator, const struct fay_result *losses)
{
	for (uint32_t i = 0; i < aggregator->schema->state_count; i++)
		fay_losses_add(&aggregator->retired[i], losses);
}

uint64_t fay_aggregator_row_bytes(const struct fay_aggregator *aggregator)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < aggregator->schema->state_count; i++)
		bytes += aggregator->drained[i].count * aggregator->drained[i].state->row_size;
	return bytes;
}
