/* SPDX-License-Identifier: MIT */
/*
 * Rows by key: a growing hash table whose keys are the key columns' bytes. The rows themselves lie
 * densely, so that a snapshot is a copy and a sort; the index holds row numbers only, and is at
 * most half full. Keys come from the traced program, which cannot know where they hash to (hash.h).
 */
#include <stdlib.h>
#include <string.h>

#include "rows.h"

void fay_rows_init(struct fay_rows *rows, const struct fay_schema *schema, uint32_t state,
		   struct fay_budget *budget)
{
	memset(rows, 0, sizeof(*rows));
	rows->state = &schema->states[state];
	rows->columns = schema->columns + rows->state->first_column;
	rows->budget = budget;
	rows->hash_key = *fay_hash_key();
}

void fay_rows_deinit(struct fay_rows *rows)
{
	rows->budget->used -=
		rows->room * rows->state->row_size + rows->index_size * sizeof(uint32_t);
	free(rows->rows);
	free(rows->index);
	rows->rows = NULL;
	rows->index = NULL;
	rows->count = rows->room = rows->index_size = 0;
}

static uint64_t hash_key(const struct fay_rows *rows, const uint8_t *row)
{
	struct fay_hash hash = fay_hash_begin(&rows->hash_key);
	for (unsigned i = 0; i < rows->state->keys; i++)
		fay_hash_add(&hash, row + rows->columns[i].offset, rows->columns[i].size);
	return fay_hash_end(&hash);
}

static bool same_key(const struct fay_rows *rows, const uint8_t *left, const uint8_t *right)
{
	for (unsigned i = 0; i < rows->state->keys; i++) {
		const struct fay_schema_column *column = &rows->columns[i];
		if (memcmp(left + column->offset, right + column->offset, column->size))
			return false;
	}
	return true;
}

static bool charge(struct fay_budget *budget, uint64_t bytes)
{
	if (bytes > budget->limit - budget->used)
		return false;
	budget->used += bytes;
	return true;
}

static bool grow_rows(struct fay_rows *rows)
{
	size_t room = rows->room ? rows->room * 2 : rows->state->keys ? 64 : 1;
	uint64_t added = (room - rows->room) * rows->state->row_size;
	if (room >= UINT32_MAX || !charge(rows->budget, added))
		return false;
	uint8_t *grown = realloc(rows->rows, room * rows->state->row_size);
	if (!grown) {
		rows->budget->used -= added;
		return false;
	}
	rows->rows = grown;
	rows->room = room;
	return true;
}

static void insert_index(const struct fay_rows *rows, uint32_t *index, size_t size, uint32_t row)
{
	size_t at = hash_key(rows, rows->rows + (size_t)row * rows->state->row_size) & (size - 1);
	while (index[at])
		at = (at + 1) & (size - 1);
	index[at] = row + 1;
}

static bool grow_index(struct fay_rows *rows)
{
	size_t size = rows->index_size ? rows->index_size * 2 : 128;
	uint64_t added = (size - rows->index_size) * sizeof(uint32_t);
	if (!charge(rows->budget, added))
		return false;
	uint32_t *index = calloc(size, sizeof(*index));
	if (!index) {
		rows->budget->used -= added;
		return false;
	}
	for (size_t i = 0; i < rows->count; i++)
		insert_index(rows, index, size, (uint32_t)i);
	free(rows->index);
	rows->index = index;
	rows->index_size = size;
	return true;
}

uint8_t *fay_rows_find(const struct fay_rows *rows, const uint8_t *row)
{
	if (!rows->state->keys)
		return rows->count ? rows->rows : NULL;
	if (!rows->index_size)
		return NULL;
	for (size_t at = hash_key(rows, row) & (rows->index_size - 1); rows->index[at];
	     at = (at + 1) & (rows->index_size - 1)) {
		uint8_t *candidate =
			rows->rows + (size_t)(rows->index[at] - 1) * rows->state->row_size;
		if (same_key(rows, candidate, row))
			return candidate;
	}
	return NULL;
}

static bool add_row(struct fay_rows *rows, const uint8_t *row)
{
	if (rows->count == rows->room && !grow_rows(rows))
		return false;
	if (rows->state->keys && (rows->count + 1) * 2 > rows->index_size && !grow_index(rows))
		return false;
	uint8_t *to = rows->rows + rows->count * rows->state->row_size;
	memset(to, 0, rows->state->row_size);
	for (unsigned i = 0; i < (unsigned)rows->state->keys + rows->state->values; i++)
		memcpy(to + rows->columns[i].offset, row + rows->columns[i].offset,
		       rows->columns[i].size);
	if (rows->state->keys)
		insert_index(rows, rows->index, rows->index_size, (uint32_t)rows->count);
	rows->count++;
	return true;
}

bool fay_rows_merge(struct fay_rows *rows, const uint8_t *row)
{
	uint8_t *to = fay_rows_find(rows, row);
	if (!to)
		return add_row(rows, row);
	for (unsigned i = rows->state->keys; i < (unsigned)rows->state->keys + rows->state->values;
	     i++)
		fay_merge_column(&rows->columns[i], to, row);
	return true;
}

bool fay_rows_merge_all(struct fay_rows *to, const struct fay_rows *from)
{
	for (size_t i = 0; i < from->count; i++)
		if (!fay_rows_merge(to, from->rows + i * from->state->row_size))
			return false;
	return true;
}

static int compare_rows(const void *left, const void *right, void *context)
{
	const struct fay_rows *rows = context;
	for (unsigned i = 0; i < rows->state->keys; i++) {
		const struct fay_schema_column *column = &rows->columns[i];
		const uint8_t *a = (const uint8_t *)left + column->offset,
			      *b = (const uint8_t *)right + column->offset;
		if (column->type == FAY_TYPE_STRING) {
			int order = memcmp(a, b, column->size);
			if (order)
				return order;
			continue;
		}
		uint64_t bias = column->type == FAY_TYPE_I64 ? 1ull << 63 : 0, x, y;
		memcpy(&x, a, sizeof(x));
		memcpy(&y, b, sizeof(y));
		if (x != y)
			return (x ^ bias) < (y ^ bias) ? -1 : 1;
	}
	return 0;
}

void fay_rows_sort(struct fay_rows *rows)
{
	if (rows->count > 1)
		qsort_r(rows->rows, rows->count, rows->state->row_size, compare_rows, rows);
}
