/* SPDX-License-Identifier: MIT */
#include "cells.h"

#include "fay/sketch.h"

#include <math.h>

const char *const aggregate_names[KINDS] = {"Count", "Count", "Sum", "Min", "Max", "First", "Last", "Average", "Any", "All", "TopK"};

struct cell integer_cell(int64_t x)
{
	return (struct cell){.kind = INTEGER, .integer = x};
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

static struct tally pool[8192];
static size_t pooled;

void forget_tallies(void)
{
	pooled = 0;
}

static struct cell tally_samples(const struct sample *samples, size_t count)
{
	struct tally *tallies = pool + pooled;
	struct tallies list = {.total = count, .tallies = tallies};
	for (size_t i = 0; i < count; i++) {
		size_t at = 0;
		while (at < list.count && tallies[at].value != samples[i].value)
			at++;
		assert_true(pooled + at < sizeof(pool) / sizeof(*pool));
		if (at == list.count)
			tallies[list.count++] = (struct tally){.value = samples[i].value};
		tallies[at].count++;
	}
	pooled += list.count;
	return (struct cell){.kind = LIST, .list = list};
}

struct cell aggregate_samples(enum kind kind, const struct sample *samples, size_t count)
{
	uint64_t matches = 0, sum = 0;
	int64_t least = INT64_MAX, most = INT64_MIN;
	const struct sample *first = samples, *last = samples;
	for (const struct sample *s = samples; s < samples + count; s++) {
		matches += s->value != 0;
		sum += (uint64_t)s->value;
		least = s->value < least ? s->value : least;
		most = s->value > most ? s->value : most;
		/* of equal times the larger value, as it lies in memory */
		if (s->time < first->time || (s->time == first->time && (uint64_t)s->value > (uint64_t)first->value))
			first = s;
		if (s->time > last->time || (s->time == last->time && (uint64_t)s->value > (uint64_t)last->value))
			last = s;
	}
	switch (kind) {
	case COUNT:
		return integer_cell((int64_t)count);
	case COUNT_IF:
		return integer_cell((int64_t)matches);
	case SUM:
		return integer_cell((int64_t)sum);
	case MIN: /* the extreme itself reads as no value: docs/decisions/0004 */
		return least == INT64_MAX ? (struct cell){NONE} : integer_cell(least);
	case MAX:
		return most == INT64_MIN ? (struct cell){NONE} : integer_cell(most);
	case FIRST:
		return count ? integer_cell(first->value) : (struct cell){NONE};
	case LAST:
		return count ? integer_cell(last->value) : (struct cell){NONE};
	case AVERAGE:
		return count ? (struct cell){.kind = REAL,
					     .real = (double)(int64_t)sum / (double)count}
			     : (struct cell){NONE};
	case ANY:
		return integer_cell(matches != 0);
	case TOP:
		return tally_samples(samples, count);
	default:
		return integer_cell(matches == count);
	}
}

/* In memory that the next call uses again. */
static struct cell list_of(const struct fay_schema_column *column, const uint8_t *row)
{
	static struct tally held[256];
	struct tallies list = {.tallies = held, .k = (column->size - sizeof(struct fay_top)) / sizeof(struct fay_pair)};
	struct fay_item item;
	fay_value_top_bound(column, row, &list.total, &list.error);
	for (; fay_value_item(column, row, list.count, &item); list.count++)
		held[list.count] = (struct tally){.value = (int64_t)item.key, .count = item.count};
	return (struct cell){.kind = LIST, .list = list};
}

struct cell cell_of(const struct fay_plan *plan, const struct fay_schema *schema,
			   const uint8_t *row, uint32_t index)
{
	const struct fay_plan_column *c = &plan->columns[index];
	struct fay_schema_column computed = {.offset = c->offset,
					     .size = FAY_RESULT_COMPUTED_SIZE,
					     .type = (uint16_t)c->type,
					     .merge = (uint16_t)c->merge};
	const struct fay_schema_column *column =
		c->source == FAY_PLAN_COMPUTED
			? &computed
			: &schema->columns[c->index + (c->source == FAY_PLAN_VALUE
							       ? schema->states[0].keys
							       : 0u)];
	struct cell cell = {NONE};
	struct fay_value value;
	if (column->merge == FAY_MERGE_TOP)
		return list_of(column, row);
	if (!fay_value_decode(column, row, &value))
		return cell;
	switch (value.kind) {
	case FAY_VALUE_STRING:
		cell.kind = STRING;
		memcpy(cell.string, value.string.bytes, value.string.size);
		return cell;
	case FAY_VALUE_DOUBLE:
		return (struct cell){.kind = REAL, .real = value.d};
	default:
		return integer_cell(value.kind == FAY_VALUE_I64 ? value.i64 : (int64_t)value.u64);
	}
}

static uint64_t count_of(const struct tallies *list, int64_t value)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->tallies[i].value == value)
			return list->tallies[i].count;
	return 0;
}

/* What fay/sketch.h promises: none too high, none too low by more than `error`, which is at most total / (k + 1); the largest first. */
static bool within_bounds(const struct tallies *want, const struct tallies *got)
{
	if (got->total != want->total || got->error * (got->k + 1) > got->total || got->count > got->k)
		return false;
	for (size_t i = 0; i < got->count; i++)
		if (!count_of(want, got->tallies[i].value) || (i && got->tallies[i - 1].count < got->tallies[i].count))
			return false;
	for (size_t i = 0; i < want->count; i++) {
		uint64_t held = count_of(got, want->tallies[i].value);
		if (held > want->tallies[i].count || held + got->error < want->tallies[i].count)
			return false;
	}
	return true;
}

bool equal_cells(const struct cell *want, const struct cell *got)
{
	if (want->kind == REAL && got->kind == REAL)
		return fabs(want->real - got->real) <= 1e-9 * fabs(want->real);
	if (want->kind == LIST)
		return got->kind == LIST && within_bounds(&want->list, &got->list);
	if (want->kind == STRING)
		return got->kind == STRING && !strcmp(want->string, got->string);
	return (want->kind == NONE) == (got->kind == NONE) && want->integer == got->integer;
}
