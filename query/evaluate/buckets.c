/* SPDX-License-Identifier: MIT */
/* Rows by bucket become rows with summaries (query/plan/buckets.c). What the rows hold comes from
 * traced programs: any bytes. */
#include "evaluate_private.h"

#include <stdlib.h>
#include <string.h>

#include "fay/aggregator.h"
#include "fay/sketch.h"

/* In the place of a group's quantiles: which of the rows by bucket are its own. */
struct slice {
	uint64_t first, count;
};
_Static_assert(sizeof(struct slice) == FAY_BUCKETS_VALUE_MAX, "query/plan/buckets.c");

/* The keys of a group are the first ones of both rows, and lie at the same places. */
static size_t key_bytes(const struct fay_plan_private *p)
{
	const struct fay_layout_column *last = &p->columns[p->keys - 1];
	return last->offset + last->size - p->columns[0].offset;
}

static bool begins_group(const struct fay_plan_private *p, const struct fay_result *rows, size_t r)
{
	const uint8_t *keys = rows->rows + r * rows->row_size + p->columns[0].offset;
	return !r || memcmp(keys - rows->row_size, keys, key_bytes(p)) != 0;
}

static uint64_t word_at(const uint8_t *row, const struct fay_layout_column *column)
{
	uint64_t word;
	memcpy(&word, row + column->offset, sizeof(word));
	return word;
}

/* The histogram's bucket in which the values of a bucket of quantiles lie: of 16 to a power of two,
 * or of one value. */
static uint64_t coarser(uint64_t bucket)
{
	if (bucket >> FAY_QUANTILE_BITS)
		return (bucket >> FAY_QUANTILE_BITS) + FAY_QUANTILE_BITS;
	return bucket ? 64u - (unsigned)__builtin_clzll(bucket) : 0;
}

/* Whether the row's events take part in the summaries: a bucket that there is. */
static bool takes_part(const struct fay_plan_buckets *buckets, uint64_t bucket)
{
	return bucket < (buckets->sketch == FAY_MERGE_QUANTILE ? FAY_QUANTILE_BUCKETS
							       : FAY_HIST_LOG2_BUCKETS);
}

/* A histogram is made now; of quantiles the group's row says where its rows by bucket are. */
static void add_bucket(const struct fay_plan_private *p, const struct fay_layout_column *column,
		       uint8_t *to, const uint8_t *from)
{
	const struct fay_plan_buckets *buckets = p->buckets;
	uint64_t bucket = word_at(from, &buckets->source->columns[buckets->key]), *at;
	at = (uint64_t *)(to + column->offset);
	if (column->expr->aggregate->merge == FAY_MERGE_QUANTILE)
		((struct slice *)at)->count++;
	else if (takes_part(buckets, bucket))
		at[buckets->sketch == FAY_MERGE_QUANTILE ? coarser(bucket) : bucket] +=
			word_at(from, &buckets->source->columns[buckets->count]);
}

/* `column` lies elsewhere in `from`. */
static void merge_value(const struct fay_schema_column *column, uint8_t *to, const uint8_t *from)
{
	_Alignas(8) uint8_t words[2][FAY_BUCKETS_VALUE_MAX];
	struct fay_schema_column alone = *column;
	alone.offset = 0;
	memcpy(words[0], to + column->offset, column->size);
	memcpy(words[1], from, column->size);
	fay_merge_column(&alone, words[0], words[1]);
	memcpy(to + column->offset, words[0], column->size);
}

static void add_row(const struct fay_plan_private *p, uint8_t *to, const uint8_t *from)
{
	for (uint32_t i = 0; i < p->values; i++) {
		uint32_t at = p->buckets->from[i];
		if (at)
			merge_value(&p->schema[p->keys + i], to,
				    from + p->buckets->source->columns[at].offset);
		else
			add_bucket(p, &p->columns[p->keys + i], to, from);
	}
}

static void begin_row(const struct fay_plan_private *p, uint8_t *to, const uint8_t *from,
		      size_t number)
{
	memcpy(to + p->columns[0].offset, from + p->columns[0].offset, key_bytes(p));
	for (uint32_t i = p->keys; i < p->keys + p->values; i++)
		if (p->columns[i].expr->aggregate->merge == FAY_MERGE_QUANTILE)
			((struct slice *)(to + p->columns[i].offset))->first = number;
}

int fay_buckets_fold(const struct fay_plan_private *p, const struct fay_result *rows,
		     struct fay_result *out, struct fay_error *error)
{
	size_t count = 0;
	for (size_t r = 0; r < rows->row_count; r++)
		count += begins_group(p, rows, r);
	*out = *rows;
	out->row_size = p->row_size;
	out->row_count = 0;
	out->rows = calloc(count + 1, p->row_size);
	if (!out->rows)
		return fay_error_set(error, FAY_E_LIMIT, "query: out of memory for the result");
	uint8_t *to = out->rows;
	for (size_t r = 0; r < rows->row_count; r++) {
		const uint8_t *row = rows->rows + r * rows->row_size;
		if (begins_group(p, rows, r)) {
			to = out->rows + out->row_count++ * p->row_size;
			begin_row(p, to, row, r);
		}
		add_row(p, to, row);
	}
	return FAY_OK;
}

double fay_buckets_quantile(const struct fay_evaluator *e, uint32_t index, double q)
{
	static const struct fay_schema_column whole = { .merge = FAY_MERGE_QUANTILE,
							.size = sizeof(struct fay_quantiles) };
	const struct fay_plan_buckets *buckets = e->buckets;
	const struct fay_layout_column *columns = buckets->source->columns;
	struct fay_quantiles sketch = { { 0 } };
	struct slice slice;
	memcpy(&slice, e->row + e->columns[index].offset, sizeof(slice));
	for (uint64_t i = 0; i < slice.count; i++) {
		const uint8_t *row =
			e->by_bucket->rows + (slice.first + i) * e->by_bucket->row_size;
		uint64_t bucket = word_at(row, &columns[buckets->key]),
			 count = word_at(row, &columns[buckets->count]);
		if (takes_part(buckets, bucket)) /* of each there is one row */
			sketch.bucket[bucket] = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
	}
	return fay_value_quantile(&whole, (const uint8_t *)&sketch, q);
}
