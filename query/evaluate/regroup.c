/* SPDX-License-Identifier: MIT */
/* Groups that are grouped again, at the root: an aggregator of one state merges what each row adds.
 * */
#include "evaluate_private.h"

#include "fay/aggregator.h"

static int group(const struct fay_plan_private *p, struct fay_evaluator *before,
		 const uint8_t *const *rows, size_t count, struct fay_aggregator *aggregator,
		 struct fay_result *out, struct fay_error *error)
{
	_Alignas(8) uint8_t row[4096];
	for (size_t r = 0; r < count; r++) {
		before->row = rows[r];
		/* First and Last of rows that have an order: by their places */
		fay_stage_row(p, before, r + 1, row);
		if (fay_aggregator_take_row(aggregator, 0, row, error))
			return (int)error->code;
	}
	return fay_aggregator_snapshot(aggregator, 0, out, error);
}

int fay_stage_group(struct fay_plan_private *p, struct fay_evaluator *before,
		    const uint8_t *const *rows, size_t count, struct fay_result *out,
		    struct fay_error *error)
{
	struct fay_schema schema;
	struct fay_aggregator *aggregator;
	fay_stage_schema(p, &schema);
	if (fay_aggregator_create(&schema, &aggregator, error))
		return (int)error->code;
	int result = group(p, before, rows, count, aggregator, out, error);
	fay_aggregator_destroy(aggregator);
	return result;
}
