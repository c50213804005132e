/* SPDX-License-Identifier: MIT */
#include "cells.h"

#include <math.h>

const char *const aggregate_names[KINDS] = {"Count", "Count", "Sum", "Min", "Max", "First", "Last", "Average", "Any", "All"};

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
	default:
		return integer_cell(matches == count);
	}
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

bool equal_cells(const struct cell *want, const struct cell *got)
{
	if (want->kind == REAL && got->kind == REAL)
		return fabs(want->real - got->real) <= 1e-9 * fabs(want->real);
	if (want->kind == STRING)
		return got->kind == STRING && !strcmp(want->string, got->string);
	return (want->kind == NONE) == (got->kind == NONE) && want->integer == got->integer;
}
