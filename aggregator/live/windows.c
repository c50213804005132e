/* SPDX-License-Identifier: MIT */
/* Rows by time: the first key of a query with windows is where the pane begins. */
#include <string.h>

#include "aggregator_parts.h"

static uint64_t pane_of(const struct fay_schema_column *key, const uint8_t *row)
{
	uint64_t start;
	memcpy(&start, row + key->offset, sizeof(start));
	return start;
}

/* Rows are in their keys' order, as fay_rows_sort() leaves them: integers by their sign. */
static bool is_before(const struct fay_schema_column *key, uint64_t a, uint64_t b)
{
	uint64_t bias = key->type == FAY_TYPE_I64 ? UINT64_C(1) << 63 : 0;
	return (a ^ bias) < (b ^ bias);
}

size_t fay_result_row_from(const struct fay_schema *schema, const struct fay_result *all,
			   uint64_t from)
{
	const struct fay_schema_column *key =
		&schema->columns[schema->states[all->state].first_column];
	size_t low = 0, high = all->row_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (is_before(key, pane_of(key, all->rows + middle * all->row_size), from))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool put_together(struct fay_rows *rows, const struct fay_schema *schema,
			 const struct fay_result *all, uint64_t from, uint64_t to)
{
	uint8_t row[4096]; /* check_state() allows no more */
	for (size_t r = fay_result_row_from(schema, all, from); r < all->row_count; r++) {
		const uint8_t *at = all->rows + r * all->row_size;
		if (!is_before(rows->columns, pane_of(rows->columns, at), to))
			break;
		memcpy(row, at, all->row_size);
		memcpy(row + rows->columns->offset, &from, sizeof(from));
		if (!fay_rows_merge(rows, row))
			return false;
	}
	return true;
}

int fay_result_window(const struct fay_schema *schema, const struct fay_result *all, uint64_t from,
		      uint64_t to, struct fay_result *window, struct fay_error *error)
{
	struct fay_budget budget = { .limit = FAY_AGGREGATOR_MEMORY_MAX };
	struct fay_rows rows;
	*window = *all;
	window->rows = NULL;
	window->row_count = 0;
	if (all->state >= schema->state_count || !schema->states[all->state].keys ||
	    all->row_size != schema->states[all->state].row_size || all->row_size > 4096)
		return fay_error_set(error, FAY_E_INTERNAL, "rows without a window");
	fay_rows_init(&rows, schema, all->state, &budget);
	bool fine = put_together(&rows, schema, all, from, to);
	if (fine) {
		fay_rows_sort(&rows);
		window->row_count = rows.count;
		window->rows = rows.rows;
		rows.rows = NULL;
	}
	fay_rows_deinit(&rows);
	return fine ? FAY_OK
		    : fay_error_set(error, FAY_E_LIMIT,
				    "a window's rows are over the aggregator's memory limit");
}

/* Whether the row lies below, and is as it was told, if that matters. */
static bool is_over(const struct fay_rows *rows, const uint8_t *row, uint64_t below,
		    const struct fay_rows *told)
{
	if (pane_of(rows->columns, row) >= below)
		return false;
	const uint8_t *as_told = told ? fay_rows_find(told, row) : row;
	return as_told && !memcmp(as_told, row, rows->state->row_size);
}

bool fay_aggregator_split(struct fay_aggregator *aggregator, uint32_t state, uint64_t below,
			  const struct fay_rows *told, struct fay_rows *gone)
{
	struct fay_rows *rows = &aggregator->drained[state], kept;
	bool fine = true;
	size_t old = 0;
	if (!rows->state->keys || rows->columns->size != sizeof(uint64_t))
		return false;
	for (size_t r = 0; r < rows->count; r++)
		old += is_over(rows, rows->rows + r * rows->state->row_size, below, told);
	if (old * 2 < rows->count || !old)
		return false; /* not worth the copy yet */
	fay_rows_init(&kept, aggregator->schema, state, &aggregator->budget);
	fay_rows_init(gone, aggregator->schema, state, &aggregator->budget);
	for (size_t r = 0; fine && r < rows->count; r++) {
		const uint8_t *row = rows->rows + r * rows->state->row_size;
		fine = fay_rows_merge(is_over(rows, row, below, told) ? gone : &kept, row);
	}
	if (!fine) {
		fay_rows_deinit(&kept);
		fay_rows_deinit(gone);
		return false;
	}
	fay_rows_deinit(rows);
	*rows = kept;
	return true;
}

uint64_t fay_aggregator_forget_counted(struct fay_aggregator *aggregator, uint32_t state,
				       uint64_t below, uint32_t count_offset)
{
	struct fay_rows gone;
	uint64_t sum = 0, count;
	if (!fay_aggregator_split(aggregator, state, below, NULL, &gone))
		return 0;
	for (size_t r = 0; r < gone.count; r++) {
		memcpy(&count, gone.rows + r * gone.state->row_size + count_offset, sizeof(count));
		sum += count;
	}
	fay_rows_deinit(&gone);
	return sum;
}

void fay_aggregator_forget(struct fay_aggregator *aggregator, uint32_t state, uint64_t below)
{
	fay_aggregator_forget_counted(aggregator, state, below, 0);
}
