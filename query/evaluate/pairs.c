/* SPDX-License-Identifier: MIT */
/*
 * From rows of a join's sources to rows of the result's state. Each source's rows come as its probe
 * has made them; the pairs of the first join are evaluated on the two rows one behind the other,
 * and either they are what the query asks for, or they become left rows of a second join: their
 * time, which is the later event's, their keys and both rows.
 */
#include "evaluate_private.h"

#include <stdlib.h>
#include <string.h>

#define ROW_WORDS (FAY_ROW_MAX_BYTES / 8)

struct fay_pairs {
	const struct fay_plan *plan;
	const struct fay_plan_private *p;
	fay_pairs_row_function *function;
	void *context;
	struct fay_join *joins[FAY_JOIN_SOURCES - 1]; /* NULL: there is none */
	uint64_t kept;
	/* of a pair: of its sources, one behind the other */
	uint64_t rows[FAY_JOIN_SOURCES * ROW_WORDS];
	uint64_t middle[ROW_WORDS], result[ROW_WORDS];
};

static struct fay_evaluator evaluator_of(struct fay_pairs *pairs, uint64_t number)
{
	return (struct fay_evaluator){ .texts = pairs->p->query->texts,
				       .columns = pairs->p->join->columns,
				       .column_of = pairs->p->join->column_of,
				       .row = (const uint8_t *)pairs->rows,
				       .number = number };
}

static uint64_t time_of(const uint8_t *row, const struct fay_join_options *options, unsigned side)
{
	uint64_t time;
	memcpy(&time, row + options->sides[side].time_offset, sizeof(time));
	return time;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The rows that a left row is of, at the beginning of `rows`; returns where the next one goes. */
static uint8_t *put_left(struct fay_pairs *pairs, unsigned step, const uint8_t *left)
{
	uint32_t header = step ? pairs->p->join->middle.header : 0,
		 size = pairs->plan->join[step].sides[0].row_size - header;
	memcpy(pairs->rows, left + header, size);
	return (uint8_t *)pairs->rows + size;
}

/* A left row without pairs has a row of the result, too: no event adds anything to it. */
static void take_alone(struct fay_pairs *pairs, unsigned step, uint64_t number, const uint8_t *left)
{
	const struct fay_plan_private *p = pairs->p;
	uint8_t *row = (uint8_t *)pairs->result, *right = put_left(pairs, step, left);
	memset(right, 0, pairs->plan->join[step].sides[1].row_size);
	struct fay_evaluator e = evaluator_of(pairs, number);
	if (!fay_stage_all_hold(&e, p->checked.filters))
		return;
	memset(row, 0, p->row_size);
	for (uint32_t i = 0; i < p->keys; i++)
		fay_stage_store(row, &p->columns[i], fay_evaluate(&e, p->columns[i].expr));
	pairs->function(pairs->context, row);
}

/* The least time of rows of the other side with which a row of the first join's may make a pair
 * that is kept. */
static uint64_t since_of(struct fay_pairs *pairs, unsigned side, const uint8_t *row)
{
	const struct fay_plan_join *join = pairs->p->join;
	uint64_t since = 0;
	if (!join->since_count[side])
		return 0;
	const struct fay_join_options *options = &pairs->plan->join[0];
	struct fay_evaluator e = evaluator_of(pairs, 0);
	memcpy((uint8_t *)pairs->rows + (side ? options->sides[0].row_size : 0), row,
	       options->sides[side].row_size);
	for (uint32_t i = 0; i < join->since_count[side]; i++) {
		struct fay_cell cell = fay_evaluate(&e, join->since[side][i]);
		if (cell.kind == CELL_INT)
			since = later(since, (uint64_t)cell.integer);
	}
	return since;
}

static void add_left(struct fay_pairs *pairs, unsigned step, const uint8_t *left)
{
	bool last = step + 2 == pairs->plan->source_count;
	uint64_t number =
		fay_join_add(pairs->joins[step], 0, left, step ? 0 : since_of(pairs, 0, left));
	if (last && pairs->plan->groups_pairs && !pairs->plan->wants_unpaired)
		take_alone(pairs, step, number, left);
}

/* The pair as the query sees it. `First` and `Last` of a group of one row go by the joined events'
 * times. */
static bool take_pair(struct fay_pairs *pairs, unsigned step, uint64_t number, const uint8_t *left,
		      const uint8_t *right)
{
	const struct fay_join_options *options = &pairs->plan->join[step];
	uint64_t time = time_of(right, options, 1);
	struct fay_evaluator e = evaluator_of(pairs, number);
	memcpy(put_left(pairs, step, left), right, options->sides[1].row_size);
	if (!fay_stage_all_hold(&e, pairs->p->checked.filters))
		return false;
	if (pairs->plan->wants_unpaired)
		return fay_stage_all_hold(&e, pairs->p->join->settles);
	pairs->kept++;
	if (!pairs->plan->groups_pairs)
		time = later(time, time_of(left, options, 0));
	fay_stage_row(pairs->p, &e, time, (uint8_t *)pairs->result);
	pairs->function(pairs->context, (const uint8_t *)pairs->result);
	return false;
}

/* The pair as a left row of the second join. */
static void take_middle(struct fay_pairs *pairs, const uint8_t *left, const uint8_t *right)
{
	const struct fay_join_options *options = &pairs->plan->join[0];
	const struct fay_plan_middle *middle = &pairs->p->join->middle;
	uint8_t *row = (uint8_t *)pairs->middle;
	uint64_t time = later(time_of(left, options, 0), time_of(right, options, 1));
	struct fay_evaluator e = evaluator_of(pairs, 0);
	memcpy(put_left(pairs, 0, left), right, options->sides[1].row_size);
	if (!fay_stage_all_hold(&e, middle->filters))
		return;
	memset(row, 0, middle->header);
	memcpy(row, &time, sizeof(time));
	for (uint32_t k = 0; k < middle->key_count; k++)
		fay_stage_store(row, &middle->keys[k], fay_evaluate(&e, middle->keys[k].expr));
	memcpy(row + middle->header, pairs->rows,
	       pairs->plan->join[1].sides[0].row_size - middle->header);
	add_left(pairs, 1, row);
}

static bool on_first(void *context, uint64_t number, const uint8_t *left, const uint8_t *right)
{
	struct fay_pairs *pairs = context;
	if (!pairs->joins[1])
		return take_pair(pairs, 0, number, left, right);
	take_middle(pairs, left, right);
	return false;
}

static bool on_second(void *context, uint64_t number, const uint8_t *left, const uint8_t *right)
{
	return take_pair(context, 1, number, left, right);
}

static void on_alone(void *context, uint64_t number, const uint8_t *left)
{
	struct fay_pairs *pairs = context;
	take_alone(pairs, pairs->plan->source_count - 2, number, left);
}

int fay_pairs_create(const struct fay_plan *plan, fay_pairs_row_function *function, void *context,
		     struct fay_pairs **result, struct fay_error *error)
{
	static fay_join_pair_function *const functions[FAY_JOIN_SOURCES - 1] = { on_first,
										 on_second };
	struct fay_pairs *pairs = calloc(1, sizeof(*pairs));
	if (!pairs)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	pairs->plan = plan;
	pairs->p = fay_plan_private(plan);
	pairs->function = function;
	pairs->context = context;
	for (unsigned step = 0; step + 1 < plan->source_count; step++)
		if (fay_join_create(&plan->join[step], functions[step],
				    plan->wants_unpaired && step + 2 == plan->source_count
					    ? on_alone
					    : NULL,
				    pairs, &pairs->joins[step], error)) {
			fay_pairs_destroy(pairs);
			return (int)error->code;
		}
	*result = pairs;
	return FAY_OK;
}

void fay_pairs_destroy(struct fay_pairs *pairs)
{
	for (unsigned step = 0; pairs && step < FAY_JOIN_SOURCES - 1; step++)
		fay_join_destroy(pairs->joins[step]);
	free(pairs);
}

void fay_pairs_add(struct fay_pairs *pairs, unsigned source, const uint8_t *row)
{
	if (source == 0)
		add_left(pairs, 0, row);
	else
		fay_join_add(pairs->joins[source - 1], 1, row,
			     source > 1 ? 0 : since_of(pairs, 1, row));
}

void fay_pairs_advance(struct fay_pairs *pairs, uint64_t horizon)
{
	for (unsigned step = 0; step < FAY_JOIN_SOURCES - 1; step++)
		if (pairs->joins[step])
			fay_join_advance(pairs->joins[step], horizon);
}

void fay_pairs_counts(const struct fay_pairs *pairs, struct fay_pairs_counts *counts)
{
	*counts = (struct fay_pairs_counts){ .kept = pairs->kept };
	for (unsigned step = 0; step < FAY_JOIN_SOURCES - 1; step++)
		if (pairs->joins[step])
			fay_join_counts(pairs->joins[step], &counts->joins[step]);
}
