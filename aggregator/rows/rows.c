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
	rows->count = rows->room = rows->index_size = rows->sorted = 0;
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
		/* most are numbers, which are compared before a function is called */
		for (uint32_t at = column->offset; at < column->offset + column->size; at += 8) {
			uint64_t a, b;
			memcpy(&a, left + at, sizeof(a));
			memcpy(&b, right + at, sizeof(b));
			if (a != b)
				return false;
		}
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

static void insert_index(uint32_t *index, size_t size, uint64_t hash, size_t row)
{
	size_t at = hash & (size - 1);
	while (index[at])
		at = (at + 1) & (size - 1);
	index[at] = (uint32_t)row + 1;
}

/* Hashes of the keys of rows that lie one behind the other; their places in the index are fetched
 * into the caches, which many groups do not fit into. */
static void hash_keys(const struct fay_rows *rows, const uint8_t *first, size_t count,
		      const uint32_t *index, size_t index_size, uint64_t hashes[FAY_ROWS_AT_ONCE])
{
	for (size_t i = 0; i < count; i++) {
		hashes[i] = hash_key(rows, first + i * rows->state->row_size);
		if (index_size)
			__builtin_prefetch(&index[hashes[i] & (index_size - 1)], 1);
	}
}

static size_t at_once(size_t count)
{
	return count < FAY_ROWS_AT_ONCE ? count : FAY_ROWS_AT_ONCE;
}

static void fill_index(const struct fay_rows *rows, uint32_t *index, size_t size)
{
	uint64_t hashes[FAY_ROWS_AT_ONCE];
	for (size_t row = 0, some; row < rows->count; row += some) {
		some = at_once(rows->count - row);
		hash_keys(rows, rows->rows + row * rows->state->row_size, some, index, size,
			  hashes);
		for (size_t i = 0; i < some; i++)
			insert_index(index, size, hashes[i], row + i);
	}
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
	fill_index(rows, index, size);
	free(rows->index);
	rows->index = index;
	rows->index_size = size;
	return true;
}

/* `hash`: of the row's key. */
static uint8_t *find_hashed(const struct fay_rows *rows, const uint8_t *row, uint64_t hash)
{
	if (!rows->state->keys)
		return rows->count ? rows->rows : NULL;
	if (!rows->index_size)
		return NULL;
	for (size_t at = hash & (rows->index_size - 1); rows->index[at];
	     at = (at + 1) & (rows->index_size - 1)) {
		uint8_t *candidate =
			rows->rows + (size_t)(rows->index[at] - 1) * rows->state->row_size;
		if (same_key(rows, candidate, row))
			return candidate;
	}
	return NULL;
}

uint8_t *fay_rows_find(const struct fay_rows *rows, const uint8_t *row)
{
	return find_hashed(rows, row, hash_key(rows, row));
}

static void mark(const struct fay_rows *rows, uint8_t *row)
{
	const uint64_t here = 1;
	if (rows->again)
		memcpy(row, &here, sizeof(here));
}

static bool add_row(struct fay_rows *rows, const uint8_t *row, uint64_t hash)
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
	mark(rows, to);
	if (rows->state->keys)
		insert_index(rows->index, rows->index_size, hash, rows->count);
	rows->count++;
	return true;
}

static bool merge_hashed(struct fay_rows *rows, const uint8_t *row, uint64_t hash)
{
	uint8_t *to = find_hashed(rows, row, hash);
	if (!to)
		return add_row(rows, row, hash);
	for (unsigned i = rows->state->keys; i < (unsigned)rows->state->keys + rows->state->values;
	     i++)
		fay_merge_column(&rows->columns[i], to, row);
	mark(rows, to);
	return true;
}

bool fay_rows_merge(struct fay_rows *rows, const uint8_t *row)
{
	return merge_hashed(rows, row, hash_key(rows, row));
}

/* Each look-up may miss the caches twice, so all are begun before the first row is merged. */
static bool merge_some(struct fay_rows *rows, const uint8_t *first, size_t count)
{
	uint64_t hashes[FAY_ROWS_AT_ONCE];
	size_t size = rows->state->row_size;
	hash_keys(rows, first, count, rows->index, rows->index_size, hashes);
	for (size_t i = 0; i < count && rows->index_size; i++) {
		uint32_t number = rows->index[hashes[i] & (rows->index_size - 1)];
		if (number)
			__builtin_prefetch(rows->rows + (size_t)(number - 1) * size, 1);
	}
	for (size_t i = 0; i < count; i++)
		if (!merge_hashed(rows, first + i * size, hashes[i]))
			return false;
	return true;
}

bool fay_rows_merge_many(struct fay_rows *rows, const uint8_t *first, size_t count)
{
	for (size_t some; count; count -= some, first += some * rows->state->row_size) {
		some = at_once(count);
		if (!merge_some(rows, first, some))
			return false;
	}
	return true;
}

bool fay_rows_merge_all(struct fay_rows *to, const struct fay_rows *from)
{
	return fay_rows_merge_many(to, from->rows, from->count);
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

/* --- again and again --- */

void fay_rows_again(struct fay_rows *rows)
{
	const struct fay_schema_column *first = &rows->columns[rows->state->keys],
				       *end = first + rows->state->values;
	rows->again = true;
	for (size_t i = 0; i < rows->count; i++) {
		uint8_t *row = rows->rows + i * rows->state->row_size;
		memset(row, 0, sizeof(uint64_t));
		for (const struct fay_schema_column *column = first; column < end; column++)
			memset(row + column->offset, 0, column->size);
	}
}

static int compare_numbered(const void *left, const void *right, void *context)
{
	const struct fay_rows *rows = context;
	size_t size = rows->state->row_size;
	return compare_rows(rows->rows + *(const uint32_t *)left * size,
			    rows->rows + *(const uint32_t *)right * size, context);
}

/* All rows' numbers by key: those that are in order, and the others among them. */
static uint32_t *find_order(struct fay_rows *rows)
{
	size_t others = rows->count - rows->sorted, b = 0;
	uint32_t *order = malloc((rows->count + others + 1) * sizeof(*order)), a = 0;
	if (!order)
		return NULL;
	uint32_t *late = order + rows->count;
	for (size_t i = 0; i < others; i++)
		late[i] = (uint32_t)(rows->sorted + i);
	if (others > 1)
		qsort_r(late, others, sizeof(*late), compare_numbered, rows);
	for (size_t to = 0; to < rows->count; to++) {
		bool is_late = b < others &&
			       (a == rows->sorted || compare_numbered(&late[b], &a, rows) < 0);
		order[to] = is_late ? late[b++] : a++;
	}
	return order;
}

/* Rows are where the order has them. */
static void put_in_order(struct fay_rows *rows, const uint32_t *order)
{
	size_t size = rows->state->row_size;
	uint8_t *ordered = malloc(rows->room * size);
	if (!ordered)
		return; /* they stay where they are */
	for (size_t i = 0; i < rows->count; i++)
		memcpy(ordered + i * size, rows->rows + order[i] * size, size);
	free(rows->rows);
	rows->rows = ordered;
	rows->sorted = rows->count;
	memset(rows->index, 0, rows->index_size * sizeof(*rows->index));
	fill_index(rows, rows->index, rows->index_size);
}

bool fay_rows_take_sorted(struct fay_rows *rows, uint8_t **sorted, size_t *count)
{
	size_t size = rows->state->row_size;
	uint32_t *order = find_order(rows);
	uint8_t *to = *sorted = order ? malloc(rows->count * size + 1) : NULL;
	*count = 0;
	for (size_t i = 0; i < rows->count && to; i++) {
		const uint8_t *row = rows->rows + order[i] * size;
		if (!*(const uint64_t *)row)
			continue;
		memcpy(to, row, size);
		memset(to, 0, sizeof(uint64_t));
		to += size;
		++*count;
	}
	if (to && rows->count - rows->sorted > rows->sorted / 8)
		put_in_order(rows, order);
	free(order);
	return to != NULL;
}
