/* SPDX-License-Identifier: MIT */
/*
 * The merge operators and the reading of their partials. One table says what each operator does
 * with the 8-byte words of its column; all are associative and commutative with all-zero bytes as
 * identity (fay/image.h states the encodings), so partials of threads, flushes, processes and
 * machines can be merged in any order and grouping.
 */
#include <string.h>

#include "rows_parts.h"

static void add_words(uint64_t *to, const uint64_t *from, size_t words)
{
	for (size_t i = 0; i < words; i++)
		to[i] += from[i];
}

static void max_words(uint64_t *to, const uint64_t *from, size_t words)
{
	for (size_t i = 0; i < words; i++)
		if (from[i] > to[i])
			to[i] = from[i];
}

static void keep_words(uint64_t *to, const uint64_t *from, size_t words)
{
}

static void (*const merge_words[])(uint64_t *to, const uint64_t *from, size_t words) = {
	[FAY_MERGE_KEY] = keep_words,
	[FAY_MERGE_COUNT] = add_words,
	[FAY_MERGE_SUM] = add_words,
	[FAY_MERGE_MIN] = max_words,
	[FAY_MERGE_MAX] = max_words,
	[FAY_MERGE_AVERAGE] = add_words,
	[FAY_MERGE_HIST_LOG2] = add_words,
	[FAY_MERGE_HIST_LINEAR] = add_words,
	[FAY_MERGE_HIST_LOGLINEAR] = add_words,
	[FAY_MERGE_QUANTILE] = fay_merge_saturating,
	[FAY_MERGE_DISTINCT] = fay_merge_bytes,
	[FAY_MERGE_TOP] = fay_merge_top,
	[FAY_MERGE_FIRST] = fay_merge_pair,
	[FAY_MERGE_LAST] = fay_merge_pair,
	[FAY_MERGE_SAMPLE] = fay_merge_sample,
};

void fay_merge_column(const struct fay_schema_column *column, uint8_t *to_row,
		      const uint8_t *from_row)
{
	if (column->merge < sizeof(merge_words) / sizeof(merge_words[0]))
		merge_words[column->merge]((uint64_t *)(to_row + column->offset),
					   (const uint64_t *)(from_row + column->offset),
					   column->size / 8);
}

static bool decode_integer(const struct fay_schema_column *column, uint64_t word,
			   struct fay_value *value)
{
	if (column->type == FAY_TYPE_I64) {
		value->kind = FAY_VALUE_I64;
		value->i64 = (int64_t)word;
	} else {
		value->kind = FAY_VALUE_U64;
		value->u64 = word;
	}
	return true;
}

/* An extremum of zero bytes is the identity: nothing was fed in. Only an unsigned maximum of 0
 * looks the same and is shown as 0. */
static bool decode_extremum(const struct fay_schema_column *column, uint64_t word,
			    struct fay_value *value)
{
	bool is_signed = column->type == FAY_TYPE_I64;
	if (!word && (is_signed || column->merge == FAY_MERGE_MIN || column->type == FAY_TYPE_TIME))
		return false;
	if (column->merge == FAY_MERGE_MIN)
		word = ~word;
	return decode_integer(column, is_signed ? word ^ 1ull << 63 : word, value);
}

static bool decode_average(const struct fay_schema_column *column, uint64_t sum, uint64_t count,
			   struct fay_value *value)
{
	if (!count)
		return false;
	value->kind = FAY_VALUE_DOUBLE;
	value->d =
		(column->type == FAY_TYPE_I64 ? (double)(int64_t)sum : (double)sum) / (double)count;
	return true;
}

static bool decode_key(const struct fay_schema_column *column, const uint8_t *bytes,
		       struct fay_value *value)
{
	uint64_t word;
	if (column->type == FAY_TYPE_STRING) {
		value->kind = FAY_VALUE_STRING;
		value->string.bytes = (const char *)bytes;
		value->string.size = strnlen((const char *)bytes, column->size);
		return true;
	}
	memcpy(&word, bytes, sizeof(word));
	return decode_integer(column, word, value);
}

/* Two words: whether there is a value, and the value. */
static bool decode_computed(const struct fay_schema_column *column, const uint64_t words[2],
			    struct fay_value *value)
{
	if (!words[0])
		return false;
	if (column->type != (uint16_t)FAY_RESULT_REAL)
		return decode_integer(column, words[1], value);
	value->kind = FAY_VALUE_DOUBLE;
	memcpy(&value->d, &words[1], sizeof(value->d));
	return true;
}

bool fay_value_decode(const struct fay_schema_column *column, const uint8_t *row,
		      struct fay_value *value)
{
	const uint8_t *bytes = row + column->offset;
	uint64_t words[2] = { 0 };
	memcpy(words, bytes, column->size < sizeof(words) ? column->size : sizeof(words));
	if (column->merge == (uint16_t)FAY_RESULT_COMPUTED)
		return decode_computed(column, words, value);
	switch (column->merge) {
	case FAY_MERGE_KEY: return decode_key(column, bytes, value);
	case FAY_MERGE_COUNT:
		value->kind = FAY_VALUE_U64;
		value->u64 = words[0];
		return true;
	case FAY_MERGE_SUM: return decode_integer(column, words[0], value);
	case FAY_MERGE_MIN:
	case FAY_MERGE_MAX: return decode_extremum(column, words[0], value);
	case FAY_MERGE_AVERAGE: return decode_average(column, words[0], words[1], value);
	case FAY_MERGE_HIST_LOG2:
	case FAY_MERGE_HIST_LINEAR:
	case FAY_MERGE_HIST_LOGLINEAR:
		value->kind = FAY_VALUE_HISTOGRAM;
		value->histogram.buckets = (const uint64_t *)bytes;
		value->histogram.count = column->size / 8;
		return true;
	case FAY_MERGE_FIRST:
	case FAY_MERGE_LAST: return words[0] && decode_integer(column, words[1], value);
	default: return fay_sketch_decode(column, row, value);
	}
}
