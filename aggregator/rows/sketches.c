/* SPDX-License-Identifier: MIT */
/*
 * The operators that summarise: merging and reading of quantiles, distinct counts, the most
 * frequent values, samples, first and last. include/fay/sketch.h says what each guarantees and
 * where it comes from. Partials come from shared memory that the traced program can write: any
 * bytes must be harmless.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fay/sketch.h"
#include "rows_parts.h"

#define PAIRS_MAX (4096u / sizeof(struct fay_pair))

void fay_merge_saturating(uint64_t *to, const uint64_t *from, size_t words)
{
	for (size_t i = 0; i < words; i++) {
		uint64_t low = (to[i] & UINT32_MAX) + (from[i] & UINT32_MAX),
			 high = (to[i] >> 32) + (from[i] >> 32);

		to[i] = (low > UINT32_MAX ? UINT32_MAX : low) |
			(high > UINT32_MAX ? UINT32_MAX : high) << 32;
	}
}

void fay_merge_bytes(uint64_t *to_words, const uint64_t *from_words, size_t words)
{
	uint8_t *to = (uint8_t *)to_words;
	const uint8_t *from = (const uint8_t *)from_words;

	for (size_t i = 0; i < 8 * words; i++)
		if (from[i] > to[i])
			to[i] = from[i];
}

/* The pair (time, value) that is larger. */
void fay_merge_pair(uint64_t *to, const uint64_t *from, size_t words)
{
	if (words >= 2 && (from[0] > to[0] || (from[0] == to[0] && from[1] > to[1])))
		memcpy(to, from, 2 * sizeof(*to));
}

/* Largest count first, then largest key: one order for one set, so that merging is commutative. */
static int by_count(const void *left, const void *right)
{
	const struct fay_pair *a = left, *b = right;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return a->key > b->key ? -1 : a->key < b->key;
}

static size_t add_pairs(struct fay_pair *all, size_t count, const struct fay_pair *more, size_t k,
			bool sum)
{
	for (size_t i = 0; i < k; i++) {
		size_t at = sum ? 0 : count;

		if (!more[i].count)
			continue;
		while (at < count && all[at].key != more[i].key)
			at++;
		if (at == count)
			all[count++] = more[i];
		else
			all[at].count += more[i].count;
	}
	return count;
}

/* Agarwal et al., section 3.1. Nothing merged with a summary is the summary as it was. */
void fay_merge_top(uint64_t *to, const uint64_t *from, size_t words)
{
	struct fay_pair all[2 * PAIRS_MAX];
	size_t k = words >= 2 ? (words - 2) / 2 : 0, count;
	struct fay_pair *entry = (struct fay_pair *)(to + 2);
	uint64_t less;

	if (!k || k > PAIRS_MAX)
		return;
	if (!from[0] || !to[0]) {
		if (from[0])
			memcpy(to, from, words * sizeof(*to));
		return;
	}
	to[0] += from[0];
	to[1] += from[1];
	count = add_pairs(all, 0, entry, k, true);
	count = add_pairs(all, count, (const struct fay_pair *)(from + 2), k, true);
	qsort(all, count, sizeof(*all), by_count);
	less = count > k ? all[k].count : 0;
	to[1] += less;
	memset(entry, 0, k * sizeof(*entry));
	for (size_t i = 0; i < k && i < count && all[i].count > less; i++)
		entry[i] = (struct fay_pair){ all[i].key, all[i].count - less };
}

void fay_merge_sample(uint64_t *to, const uint64_t *from, size_t words)
{
	struct fay_pair all[2 * PAIRS_MAX];
	size_t k = words / 2, count;

	if (k > PAIRS_MAX)
		return;
	count = add_pairs(all, 0, (const struct fay_pair *)to, k, false);
	count = add_pairs(all, count, (const struct fay_pair *)from, k, false);
	qsort(all, count, sizeof(*all), by_count);
	memset(to, 0, k * sizeof(*all));
	memcpy(to, all, (count < k ? count : k) * sizeof(*all));
}

/* The middle of a bucket of fay_loglinear_bucket(x, bits), as a value that was fed in could be. */
static double middle_of(size_t bucket, unsigned bits)
{
	unsigned exponent = (unsigned)(bucket >> bits);
	double low, width;

	if (exponent == 0)
		return (double)bucket;
	width = ldexp(1, (int)exponent - 1);
	low = width * (double)((bucket & ((1u << bits) - 1)) + (1u << bits));
	return low + (width - 1) / 2;
}

double fay_value_quantile(const struct fay_schema_column *column, const uint8_t *row, double q)
{
	uint32_t bucket[FAY_QUANTILE_BUCKETS];
	uint64_t total = 0, rank, seen = 0;

	memcpy(bucket, row + column->offset, sizeof(bucket));
	for (size_t i = 0; i < FAY_QUANTILE_BUCKETS; i++)
		total += bucket[i];
	if (!total)
		return NAN;
	/* 0.29 of 100 is 28.999999999999996 in doubles, for 29 stands there. */
	rank = (uint64_t)(q * (double)(total - 1) * (1 + 0x1p-50));
	for (size_t i = 0; i < FAY_QUANTILE_BUCKETS; i++) {
		seen += bucket[i];
		if (seen > rank)
			return middle_of(i, FAY_QUANTILE_BITS);
	}
	return NAN;
}

/* Ertl, New cardinality estimation algorithms for HyperLogLog sketches (2017), section 4: no range
 * needs a correction. */
static double sigma(double x)
{
	double y = 1, z = x, before;

	if (x == 1)
		return INFINITY;
	do {
		x *= x;
		before = z;
		z += x * y;
		y += y;
	} while (z != before);
	return z;
}

static double tau(double x)
{
	double y = 1, z = 1 - x, before;

	if (x == 0 || x == 1)
		return 0;
	do {
		x = sqrt(x);
		before = z;
		y *= 0.5;
		z -= (1 - x) * (1 - x) * y;
	} while (z != before);
	return z / 3;
}

static uint64_t estimate_distinct(const uint8_t *rank, size_t registers)
{
	unsigned p = (unsigned)__builtin_ctzll(registers), q = 64 - p;
	uint32_t count[66] = { 0 };
	double m = (double)registers, z, estimate;

	for (size_t i = 0; i < registers; i++)
		count[rank[i] <= q + 1 ? rank[i] : q + 1]++;
	if (count[0] == registers)
		return 0;
	z = m * tau(1 - count[q + 1] / m);
	for (unsigned k = q; k >= 1; k--)
		z = 0.5 * (z + count[k]);
	z += m * sigma(count[0] / m);
	estimate = m / (2 * M_LN2) * m / z + 0.5;
	/* infinite where all registers are full: no stream does that, a hostile program can */
	return estimate < 0x1p64 ? (uint64_t)estimate : UINT64_MAX;
}

static bool any_counted(const struct fay_schema_column *column, const uint8_t *row)
{
	uint64_t total, error;

	fay_value_top_bound(column, row, &total, &error);
	return total != 0;
}

bool fay_sketch_decode(const struct fay_schema_column *column, const uint8_t *row,
		       struct fay_value *value)
{
	const uint8_t *bytes = row + column->offset;
	struct fay_item item;

	switch (column->merge) {
	case FAY_MERGE_DISTINCT:
		value->kind = FAY_VALUE_U64;
		value->u64 = estimate_distinct(bytes, column->size);
		return true;
	case FAY_MERGE_QUANTILE:
	case FAY_MERGE_TOP:
	case FAY_MERGE_SAMPLE:
		value->kind = FAY_VALUE_LIST;
		value->list.count = 0;
		while (fay_value_item(column, row, value->list.count, &item))
			value->list.count++;
		/* Where each value is as rare as the others, none is left in a summary that has
		 * counted them. */
		return value->list.count != 0 ||
		       (column->merge == FAY_MERGE_TOP && any_counted(column, row));
	default: return false;
	}
}

static bool quantile_item(const struct fay_schema_column *column, const uint8_t *row, size_t index,
			  struct fay_item *item)
{
	static const struct {
		const char *label;
		double q;
	} shown[] = { { "min", 0 },    { "p50", 0.5 },     { "p90", 0.9 },
		      { "p99", 0.99 }, { "p99.9", 0.999 }, { "max", 1 } };

	if (index >= sizeof(shown) / sizeof(*shown))
		return false;
	item->label = shown[index].label;
	item->value = fay_value_quantile(column, row, shown[index].q);
	return !isnan(item->value);
}

bool fay_value_item(const struct fay_schema_column *column, const uint8_t *row, size_t index,
		    struct fay_item *item)
{
	size_t head = column->merge == FAY_MERGE_TOP ? sizeof(struct fay_top) : 0;
	size_t k = (column->size - head) / sizeof(struct fay_pair), count;
	struct fay_pair sorted[PAIRS_MAX];

	memset(item, 0, sizeof(*item));
	if (column->merge == FAY_MERGE_QUANTILE)
		return quantile_item(column, row, index, item);
	if ((column->merge != FAY_MERGE_TOP && column->merge != FAY_MERGE_SAMPLE) || k > PAIRS_MAX)
		return false;
	count = add_pairs(sorted, 0, (const struct fay_pair *)(row + column->offset + head), k,
			  false);
	qsort(sorted, count, sizeof(*sorted), by_count);
	if (index >= count)
		return false;
	item->key = sorted[index].key;
	item->count = column->merge == FAY_MERGE_TOP ? sorted[index].count : 1;
	return true;
}

void fay_value_top_bound(const struct fay_schema_column *column, const uint8_t *row,
			 uint64_t *total, uint64_t *error)
{
	memcpy(total, row + column->offset, sizeof(*total));
	memcpy(error, row + column->offset + 8, sizeof(*error));
}
