/* SPDX-License-Identifier: MIT */
/* The layout of one stage: columns of keys and values, where they lie in a row, the state and the
 * schema that they come to. */
#include "planner_private.h"

#include "fay/sketch.h"
#include "fay/stacks.h"

#include <string.h>

/* The key without the marks that say it is seen from after the stage's grouping, or a later one. */
static const struct fay_expr *strip(const struct fay_plan_private *p, const struct fay_expr *expr)
{
	while (expr->op == EXPR_KEY && expr->value > p->number)
		expr = expr->a;
	return expr;
}

static bool storable(struct fay_planner *planner, const struct fay_expr *expr)
{
	enum fay_type type = expr->type;
	if (type == TYPE_REAL || type == TYPE_HISTOGRAM || type == TYPE_LIST ||
	    (type == TYPE_MODULE && fay_check_of_kernel(planner->checked)))
		return fay_query_fail(planner->query, FAY_E_REFUSED, planner->span,
				      "a column of type %s is not supported yet",
				      fay_type_name(type)) != NULL;
	if (type == TYPE_STRING && fay_expr_is_constant(expr) && expr->length > FAY_COMM_SIZE)
		return fay_query_fail(planner->query, FAY_E_REFUSED, planner->span,
				      "a string column of more than %d bytes is not supported yet",
				      FAY_COMM_SIZE) != NULL;
	return true;
}

int fay_planner_key(struct fay_planner *planner, const struct fay_expr *expr, const char *name)
{
	struct fay_plan_private *p = planner->private_plan;
	expr = strip(p, expr);
	for (uint32_t i = 0; i < p->keys; i++)
		if (p->columns[i].expr == expr)
			return (int)i;
	if (!storable(planner, expr))
		return -1;
	if (p->keys == FAY_QUERY_MAX_COLUMNS) {
		fay_query_fail(planner->query, FAY_E_LIMIT, planner->span,
			       "a query may have at most %u keys", FAY_QUERY_MAX_COLUMNS);
		return -1;
	}
	p->columns[p->keys] = (struct fay_layout_column){ .name = name,
							  .expr = expr,
							  .size = fay_expr_size(expr) };
	return (int)p->keys++;
}

static uint32_t value_size(const struct fay_aggregate *aggregate)
{
	switch (aggregate->merge) {
	case FAY_MERGE_AVERAGE:
	case FAY_MERGE_FIRST:
	case FAY_MERGE_LAST: return 16;
	case FAY_MERGE_HIST_LOG2: return 8 * FAY_HIST_LOG2_BUCKETS;
	case FAY_MERGE_QUANTILE: return sizeof(struct fay_quantiles);
	case FAY_MERGE_DISTINCT: return sizeof(struct fay_distinct);
	case FAY_MERGE_TOP:
		return (uint32_t)(sizeof(struct fay_top) + aggregate->k * sizeof(struct fay_pair));
	default: return 8;
	}
}

uint32_t fay_planner_value(struct fay_planner *planner, const struct fay_expr *expr,
			   const char *name)
{
	struct fay_plan_private *p = planner->private_plan;
	struct fay_layout_column *values = p->columns + FAY_QUERY_MAX_COLUMNS;
	for (uint32_t i = 0; i < p->values; i++)
		if (values[i].expr == expr)
			return i;
	if (p->values == FAY_QUERY_MAX_COLUMNS) {
		fay_query_fail(planner->query, FAY_E_LIMIT, planner->span,
			       "a grouping may have at most %u aggregates; `StdDev` takes six and "
			       "`Count()`, `Average` two",
			       FAY_QUERY_MAX_COLUMNS);
		return 0;
	}
	values[p->values] = (struct fay_layout_column){ .name = name,
							.expr = expr,
							.size = value_size(expr->aggregate) };
	return p->values++;
}

bool fay_planner_need(struct fay_planner *planner, const struct fay_expr *expr)
{
	const struct fay_plan_private *p = planner->private_plan;
	if (expr->op == EXPR_CONSTANT || expr->op == EXPR_FOLDED || expr->op == EXPR_LABEL)
		return true;
	bool grouped = planner->private_plan->kind == FAY_STATE_TABLE;
	if (expr->op == EXPR_AGGREGATE) {
		fay_planner_value(planner, expr,
				  fay_query_format(planner->query, "%s_%u", expr->aggregate->text,
						   p->values + 1));
		return true;
	}
	if (expr->op == EXPR_KEY && expr->value > p->number + 1)
		return fay_planner_need(planner, expr->a);
	/* What a row that a join makes a group for has depends on the row. */
	if (expr->op == EXPR_KEY || expr->op == EXPR_CALL || expr->op == EXPR_SIDE ||
	    (!expr->has_aggregate && !grouped))
		return fay_planner_key(planner, expr,
				       fay_query_format(planner->query, "root_%u", p->keys + 1)) >=
		       0;
	return fay_planner_need(planner, expr->a) &&
	       (!expr->b || fay_planner_need(planner, expr->b)) &&
	       (!expr->c || fay_planner_need(planner, expr->c));
}

bool fay_planner_lay_out(struct fay_planner *planner)
{
	struct fay_plan_private *p = planner->private_plan;
	if (planner->query->failed)
		return false;
	memmove(p->columns + p->keys, p->columns + FAY_QUERY_MAX_COLUMNS,
		p->values * sizeof(p->columns[0]));
	if (fay_planner_has_buckets(p))
		fay_planner_shrink(p);
	uint32_t offset = p->kind == FAY_STATE_TABLE ? 8 : 0;
	for (uint32_t i = 0; i < p->keys + p->values; i++) {
		p->columns[i].offset = offset;
		offset += p->columns[i].size;
	}
	p->row_size = offset;
	if (offset > FAY_ROW_MAX_BYTES)
		return fay_query_fail(planner->query, FAY_E_LIMIT, planner->span,
				      "one row of the result would take %u bytes, more than %u: "
				      "select fewer aggregates",
				      offset, FAY_ROW_MAX_BYTES) != NULL;
	p->rows = 1;
	if (p->kind != FAY_STATE_TABLE)
		return true;
	p->rows = FAY_TABLE_MAX_ROWS;
	while (sizeof(struct fay_table_header) + (size_t)p->rows * offset > FAY_TABLE_MAX_BYTES)
		p->rows /= 2;
	p->first_rows = p->rows;
	return true;
}

bool fay_planner_prepare_rows(struct fay_planner *planner)
{
	struct fay_plan_private *p = planner->private_plan;
	p->column_of = fay_query_alloc(planner->query,
				       (planner->exprs->count + 1u) * sizeof(*p->column_of));
	if (!p->column_of)
		return false;
	for (uint32_t i = 0; i < p->keys + p->values; i++) {
		const struct fay_spec_column *column = &p->spec_columns[i];
		p->schema[i] = (struct fay_schema_column){ .name = column->name,
							   .type = (uint16_t)column->type,
							   .merge = (uint16_t)column->merge,
							   .offset = column->offset,
							   .size = column->size };
		p->column_of[p->columns[i].expr->id] = i + 1;
	}
	return true;
}

void fay_planner_fill_state(struct fay_plan_private *p)
{
	for (uint32_t i = 0; i < p->keys + p->values; i++) {
		const struct fay_layout_column *column = &p->columns[i];
		/* a key may be an aggregate of the stage before */
		const struct fay_aggregate *aggregate =
			i < p->keys ? NULL : column->expr->aggregate;
		p->spec_columns[i] = (struct fay_spec_column){
			.name = column->name,
			.type = fay_type_column(aggregate ? aggregate->type : column->expr->type),
			.merge = aggregate ? aggregate->merge : FAY_MERGE_KEY,
			.offset = column->offset,
			.size = column->size,
		};
	}
	uint32_t size = p->kind == FAY_STATE_TABLE
				? (uint32_t)sizeof(struct fay_table_header) + p->rows * p->row_size
			: p->kind == FAY_STATE_CELL ? p->row_size
						    : 0;
	p->state = (struct fay_spec_state){
		.name = "result",
		.kind = p->kind,
		.scope = FAY_SCOPE_LOCAL,
		.size = size,
		.rows = p->rows,
		.row_size = p->row_size,
		.keys = (uint16_t)p->keys,
		.values = (uint16_t)p->values,
	};
}

static bool walks_stacks(const struct fay_plan_private *p)
{
	return p->checked.domain == DOMAIN_USER && p->checked.exprs.stack_frames;
}

/* Sources of a join that walk stacks share the memory for it: no two events are at once in it. */
void fay_planner_stacks(struct fay_planner *planner)
{
	const struct fay_plan_private *p = planner->private_plan;
	struct fay_image_spec *spec = &planner->plan->spec;
	if (!walks_stacks(p))
		return;
	planner->plan->walks_stacks = true;
	spec->global_size = sizeof(struct fay_stack_tables);
	spec->local_size = fay_plan_scratch_offset(p) + (uint32_t)sizeof(struct fay_stack_scratch);
}

void fay_planner_fill_stage(struct fay_planner *planner, const char *const symbols[2])
{
	struct fay_plan_private *p = planner->private_plan;
	static const enum fay_probe_kind kinds[] = {
		[SOURCE_ENTRY] = FAY_PROBE_ENTRY,      [SOURCE_RETURN] = FAY_PROBE_RETURN,
		[SOURCE_MARKER] = FAY_PROBE_MARKER,    [SOURCE_SYSCALL] = FAY_PROBE_ENTRY,
		[SOURCE_TRACEPOINT] = FAY_PROBE_ENTRY, [SOURCE_TIMER] = FAY_PROBE_TIMER,
		[SOURCE_LINE] = FAY_PROBE_OFFSET
	};
	bool saved = p->checked.domain == DOMAIN_FILE;
	/* a file's name may be longer than an image's strings */
	const char *pattern = saved ? "saved!events" : p->checked.pattern;
	p->probes[0] = (struct fay_spec_probe){ .pattern = pattern,
						.kind = kinds[p->checked.kind],
						.symbol = symbols[0] };
	if (saved && p->checked.kind == SOURCE_TIMER) /* nothing ticks */
		p->probes[0].kind = FAY_PROBE_ENTRY;
	p->probes[1] = (struct fay_spec_probe){ .pattern = pattern,
						.kind = FAY_PROBE_EXCEPTION,
						.symbol = symbols[1] };
	p->probe_count = fay_check_has_exceptions(&p->checked) ? 2 : 1;
	if (p->checked.inlined) {
		p->probes[1].pattern = p->checked.inlined;
		p->probes[1].kind = FAY_PROBE_OFFSET;
		p->probe_count = 2;
	}
	if (p->checked.calls) {
		p->probes[1].pattern = p->checked.calls;
		p->probes[1].kind = FAY_PROBE_ENTRY;
		p->probe_count = 2;
	}
	fay_planner_fill_state(p);
}

uint32_t fay_plan_calls_offset(const struct fay_plan_private *p)
{
	return walks_stacks(p) ? (sizeof(struct fay_stack_tables) + 63) & ~63u : 0;
}

void fay_stage_schema(struct fay_plan_private *p, struct fay_schema *schema)
{
	p->schema_state = (struct fay_schema_state){
		.name = p->state.name,
		.kind = (uint16_t)p->state.kind,
		.scope = (uint16_t)p->state.scope,
		.size = p->state.size,
		.rows = p->state.rows,
		.row_size = p->state.row_size,
		.keys = p->state.keys,
		.values = p->state.values,
	};
	*schema = (struct fay_schema){ .local_size = p->state.size ? p->state.size : 8,
				       .state_count = 1,
				       .column_count = p->keys + p->values,
				       .states = &p->schema_state,
				       .columns = p->schema };
}
