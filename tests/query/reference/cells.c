/* SPDX-License-Identifier: MIT */
#include "cells.h"

#include "fay/sketch.h"

#include <math.h>

struct cell integer_cell(int64_t x)
{
	return (struct cell){ .kind = INTEGER, .integer = x };
}

struct cell real_cell(double x)
{
	return (struct cell){ .kind = REAL, .real = x, .slack = 1e-12 * fabs(x) };
}

struct cell string_cell(const void *bytes, size_t size)
{
	struct cell cell = { .kind = STRING };
	for (size_t i = 0; i < size; i++) {
		char byte = ((const char *)bytes)[i];
		assert_true(i < sizeof(cell.string) || !byte);
		if (i < sizeof(cell.string))
			cell.string[i] = byte;
	}
	return cell;
}

int compare_cells(const struct cell *x, const struct cell *y)
{
	if (x->kind == NONE || y->kind == NONE)
		return (x->kind != NONE) - (y->kind != NONE);
	if (x->kind == STRING)
		return memcmp(x->string, y->string, sizeof(x->string));
	if (x->kind == REAL)
		return (x->real > y->real) - (x->real < y->real);
	if (x->kind == WORD)
		return ((uint64_t)x->integer > (uint64_t)y->integer) -
		       ((uint64_t)x->integer < (uint64_t)y->integer);
	return (x->integer > y->integer) - (x->integer < y->integer);
}

/* --- decoded --- */

/* Memory for so many, which is used again after many calls. */
static struct tally *take_tallies(size_t count)
{
	static struct tally held[1 << 16];
	static size_t used;
	if (used + count > sizeof(held) / sizeof(*held))
		used = 0;
	used += count;
	return held + used - count;
}

static struct cell top_of(const struct fay_schema_column *column, const uint8_t *row)
{
	struct tally *held =
		take_tallies((column->size - sizeof(struct fay_top)) / sizeof(struct fay_pair));
	struct tallies list = { .tallies = held,
				.k = (column->size - sizeof(struct fay_top)) /
				     sizeof(struct fay_pair) };
	struct fay_item item;
	fay_value_top_bound(column, row, &list.total, &list.error);
	for (; fay_value_item(column, row, list.count, &item); list.count++)
		held[list.count] =
			(struct tally){ .value = (int64_t)item.key, .count = item.count };
	return (struct cell){ .kind = TOP_LIST, .list = list };
}

static struct cell histogram_of(const struct fay_value *value)
{
	struct tally *held = take_tallies(value->histogram.count);
	struct tallies list = { .tallies = held };
	for (size_t i = 0; i < value->histogram.count; i++)
		if (value->histogram.buckets[i])
			held[list.count++] = (struct tally){ .value = (int64_t)i,
							     .count = value->histogram.buckets[i] };
	return (struct cell){ .kind = HISTOGRAM_LIST, .list = list };
}

struct cell cell_of(const struct fay_plan *plan, const struct fay_schema *schema,
		    const uint8_t *row, uint32_t index)
{
	const struct fay_plan_column *c = &plan->columns[index];
	struct fay_schema_column computed = { .offset = c->offset,
					      .size = FAY_RESULT_COMPUTED_SIZE,
					      .type = (uint16_t)c->type,
					      .merge = (uint16_t)c->merge };
	const struct fay_schema_column *column =
		c->source == FAY_PLAN_COMPUTED
			? &computed
			: &schema->columns[c->index + (c->source == FAY_PLAN_VALUE
							       ? schema->states[0].keys
							       : 0u)];
	struct fay_value value;
	if (c->stack_frames)
		return string_cell(row + column->offset, 8 * (size_t)c->stack_frames);
	if (column->merge == FAY_MERGE_TOP)
		return top_of(column, row);
	if (!fay_value_decode(column, row, &value))
		return (struct cell){ NONE };
	switch (value.kind) {
	case FAY_VALUE_STRING: return string_cell(value.string.bytes, value.string.size);
	case FAY_VALUE_DOUBLE: return real_cell(value.d);
	case FAY_VALUE_HISTOGRAM: return histogram_of(&value);
	default: return integer_cell(value.kind == FAY_VALUE_I64 ? value.i64 : (int64_t)value.u64);
	}
}

/* --- compared --- */

static uint64_t count_of(const struct tallies *list, int64_t value)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->tallies[i].value == value)
			return list->tallies[i].count;
	return 0;
}

/* What fay/sketch.h promises: none too high, none too low by more than `error`, which is at most
 * total / (k + 1); the largest first. */
static bool within_bounds(const struct tallies *want, const struct tallies *got)
{
	if (got->total != want->total || got->error * (got->k + 1) > got->total ||
	    got->count > got->k)
		return false;
	for (size_t i = 0; i < got->count; i++)
		if (!count_of(want, got->tallies[i].value) ||
		    (i && got->tallies[i - 1].count < got->tallies[i].count))
			return false;
	for (size_t i = 0; i < want->count; i++) {
		uint64_t held = count_of(got, want->tallies[i].value);
		if (held > want->tallies[i].count || held + got->error < want->tallies[i].count)
			return false;
	}
	return true;
}

static bool same_tallies(const struct tallies *want, const struct tallies *got)
{
	for (size_t i = 0; i < got->count; i++)
		if (count_of(want, got->tallies[i].value) != got->tallies[i].count)
			return false;
	return got->count == want->count;
}

static double squares;
static size_t estimates;

double estimates_error(size_t *count)
{
	*count = estimates;
	return estimates ? sqrt(squares / (double)estimates) : 0;
}

static void note_estimate(uint64_t exact, int64_t estimate)
{
	double off = ((double)estimate - (double)exact) / (double)exact;
	squares += off * off;
	estimates++;
}

bool equal_cells(const struct cell *want, const struct cell *got)
{
	if ((want->kind == NONE) != (got->kind == NONE))
		return false;
	switch (want->kind) {
	case NONE: return true;
	case REAL: return got->kind == REAL && fabs(want->real - got->real) <= want->slack;
	case STRING: return got->kind == STRING && !compare_cells(want, got);
	case TOP_LIST: return got->kind == TOP_LIST && within_bounds(&want->list, &got->list);
	case HISTOGRAM_LIST:
		return got->kind == HISTOGRAM_LIST && same_tallies(&want->list, &got->list);
	case ESTIMATE:
		if (want->exact >= 40)
			note_estimate(want->exact, got->integer);
		return got->kind == INTEGER && want->least <= got->integer &&
		       got->integer <= want->integer;
	default: return got->kind == INTEGER && want->integer == got->integer;
	}
}

const char *describe_cell(const struct cell *cell)
{
	static char texts[4][200];
	static unsigned next;
	char *text = texts[next++ % 4];
	size_t size = sizeof(texts[0]);
	switch (cell->kind) {
	case NONE: return "nothing";
	case REAL: snprintf(text, size, "%.17g", cell->real); return text;
	case STRING: snprintf(text, size, "\"%.*s\"", CELL_BYTES, cell->string); return text;
	case TOP_LIST:
	case HISTOGRAM_LIST:
		snprintf(text, size,
			 "%zu values of %llu (error %llu), the first one %lld, %llu times",
			 cell->list.count, (unsigned long long)cell->list.total,
			 (unsigned long long)cell->list.error,
			 cell->list.count ? (long long)cell->list.tallies[0].value : 0,
			 cell->list.count ? (unsigned long long)cell->list.tallies[0].count : 0);
		return text;
	case ESTIMATE:
		snprintf(text, size, "%lld to %lld, for %llu", (long long)cell->least,
			 (long long)cell->integer, (unsigned long long)cell->exact);
		return text;
	default: snprintf(text, size, "%lld", (long long)cell->integer); return text;
	}
}
