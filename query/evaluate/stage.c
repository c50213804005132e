/* SPDX-License-Identifier: MIT */
/*
 * Stages outside the probe: of a join's pairs (pairs.c), and of groups that are grouped again.
 * Conditions, keys and values are interpreted: what query/emit/probe/body.c generates for a probe
 * is done here to a row of its own, which the aggregator then merges, by the same operators of
 * fay/image.h.
 */
#include "evaluate_private.h"

#include <string.h>

#include "fay/sketch.h"

void fay_stage_store(uint8_t *at, const struct fay_layout_column *column, struct fay_cell cell)
{
	if (cell.raw) {
		memcpy(at + column->offset, cell.raw, FAY_TEXT_CELL);
	} else if (cell.kind == CELL_STRING) {
		size_t length = (size_t)cell.integer;
		memcpy(at + column->offset, cell.string,
		       length < column->size ? length : column->size);
	} else {
		memcpy(at + column->offset, &cell.integer, sizeof(cell.integer));
	}
}

/* Of a stack. */
static uint64_t hash_of(const char *bytes, size_t length)
{
	uint64_t hash = 0, word;
	for (size_t i = 0; i < length; i += sizeof(word)) {
		memcpy(&word, bytes + i, sizeof(word));
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 32;
	}
	return hash;
}

/* As query/emit/probe/sketch.c makes one word of a string. */
static uint64_t word_of(struct fay_cell cell)
{
	uint64_t words[2] = { 0, 0 };
	if (cell.kind != CELL_STRING)
		return (uint64_t)cell.integer;
	size_t length = cell.raw ? sizeof(words) : (size_t)cell.integer;
	if (length > sizeof(words))
		return hash_of(cell.string, length);
	memcpy(words, cell.raw ? cell.raw : (const uint8_t *)cell.string, length);
	return words[0] ^ words[1] * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t extreme(const struct fay_aggregate *aggregate, uint64_t x)
{
	uint64_t flip = aggregate->type == TYPE_TIME ? 0 : UINT64_C(1) << 63;
	return x ^ (aggregate->merge == FAY_MERGE_MIN ? ~flip : flip);
}

static void feed_sketch(const struct fay_aggregate *aggregate, void *column, uint64_t x,
			uint64_t time)
{
	switch (aggregate->merge) {
	case FAY_MERGE_QUANTILE: fay_quantiles(column, (int64_t)x); break;
	case FAY_MERGE_DISTINCT: fay_distinct(column, x); break;
	case FAY_MERGE_TOP:
		fay_top_add(column, (struct fay_pair *)((struct fay_top *)column + 1), aggregate->k,
			    x);
		break;
	case FAY_MERGE_FIRST: fay_first(column, time, x); break;
	default: /* LAST */ fay_last(column, time, x); break;
	}
}

/* The partial aggregate of one event, in a column that is zero. */
static void feed(const struct fay_aggregate *aggregate, uint64_t *column, uint64_t x, uint64_t time)
{
	switch (aggregate->merge) {
	case FAY_MERGE_COUNT: column[0] = 1; break;
	case FAY_MERGE_SUM: column[0] = x; break;
	case FAY_MERGE_MIN:
	case FAY_MERGE_MAX: column[0] = extreme(aggregate, x); break;
	case FAY_MERGE_AVERAGE:
		column[0] = x;
		column[1] = 1;
		break;
	case FAY_MERGE_HIST_LOG2: column[(int64_t)x <= 0 ? 0 : 64 - __builtin_clzll(x)] = 1; break;
	default: feed_sketch(aggregate, column, x, time); break;
	}
}

static bool holds(const struct fay_evaluator *e, const struct fay_expr *condition)
{
	return !condition || fay_evaluate(e, condition).integer;
}

bool fay_stage_all_hold(const struct fay_evaluator *e, const struct fay_filter *filter)
{
	while (filter && holds(e, filter->expr))
		filter = filter->next;
	return !filter;
}

void fay_stage_row(const struct fay_plan_private *p, const struct fay_evaluator *e, uint64_t time,
		   uint8_t *row)
{
	_Alignas(8) uint64_t value[4096 / 8];
	memset(row, 0, p->row_size);
	for (uint32_t i = 0; i < p->keys; i++)
		fay_stage_store(row, &p->columns[i], fay_evaluate(e, p->columns[i].expr));
	for (uint32_t i = p->keys; i < p->keys + p->values; i++) {
		const struct fay_layout_column *column = &p->columns[i];
		const struct fay_aggregate *aggregate = column->expr->aggregate;
		struct fay_cell x = { .kind = CELL_INT, .integer = 1 };
		if (!holds(e, aggregate->condition))
			continue;
		if (aggregate->operand)
			x = fay_evaluate(e, aggregate->operand);
		if (x.kind == CELL_NONE) /* takes no part */
			continue;
		memset(value, 0, column->size);
		feed(aggregate, value, word_of(x),
		     aggregate->when ? (uint64_t)fay_evaluate(e, aggregate->when).integer : time);
		memcpy(row + column->offset, value, column->size);
	}
}

bool fay_plan_event(const struct fay_plan *plan, uint64_t window, const uint8_t *event,
		    uint8_t *row)
{
	const struct fay_plan_private *p = fay_plan_private(plan);
	_Alignas(8) uint8_t numbered[sizeof(window) + FAY_ROW_MAX_BYTES];
	struct fay_evaluator e = { .texts = p->query->texts,
				   .columns = p->events->columns,
				   .column_of = p->events->column_of,
				   .row = numbered };
	uint64_t time;
	memcpy(numbered, &window, sizeof(window));
	memcpy(numbered + sizeof(window), event, plan->event_size);
	memcpy(&time, event + plan->event_time_offset, sizeof(time));
	if (!fay_stage_all_hold(&e, p->checked.filters))
		return false;
	fay_stage_row(p, &e, time, row);
	return true;
}
