/* SPDX-License-Identifier: MIT */
/* The rows of one window, for the root stage. */
#include "query/plan/plan.h"

#include <stdlib.h>
#include <string.h>

/* Whether the rows become one value at the root. */
static bool folds(const struct fay_plan_private *p)
{
	while (p->next)
		p = p->next;
	for (const struct fay_root_op *op = p->root; op; op = op->next)
		if (op->kind == ROOT_FOLD)
			return true;
	return false;
}

bool fay_plan_shows_empty_windows(const struct fay_plan *plan)
{
	return fay_plan_private(plan)->checked.result->kind == VALUE_SCALAR;
}

bool fay_plan_window_count(const struct fay_plan *plan, uint32_t *offset)
{
	const struct fay_plan_private *p = fay_plan_merged(plan);
	for (uint32_t i = p->keys; i < p->keys + p->values; i++) {
		const struct fay_aggregate *aggregate = p->columns[i].expr->aggregate;
		if (aggregate->merge != FAY_MERGE_COUNT || aggregate->condition)
			continue;
		*offset = p->columns[i].offset;
		return true;
	}
	return false;
}

int fay_plan_window(const struct fay_plan *plan, const struct fay_schema *schema,
		    const struct fay_result *merged, uint64_t end, struct fay_result *out,
		    struct fay_error *error)
{
	const struct fay_plan_private *p = fay_plan_private(plan);
	uint64_t start = end < plan->window_width ? 0 : end - plan->window_width;
	if (fay_result_window(schema, merged, start, end, out, error))
		return (int)error->code;
	if (out->row_count || !fay_plan_shows_empty_windows(plan))
		return FAY_OK;
	free(out->rows);
	out->rows = calloc(1, out->row_size); /* zeros are no event yet, for each aggregate */
	if (!out->rows)
		return fay_error_set(error, FAY_E_LIMIT, "query: out of memory for the result");
	memcpy(out->rows + p->columns[0].offset, &start, sizeof(start));
	/* else fay_plan_finish() makes one row of none, and takes the window's start from here */
	out->row_count = !folds(p);
	return FAY_OK;
}
