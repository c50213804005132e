/* SPDX-License-Identifier: MIT */
/*
 * Which strings a probe reads whole, and what an image needs for that. A string of which nothing is
 * asked but whether it is, or begins with, a short constant is read as far as that needs. All
 * others have a buffer each, behind all else in LOCAL; those that rows show are sent, by a stream
 * of pieces.
 */
#include "planner_private.h"

#include <string.h>

enum use { USE_COMPARED, USE_SHOWN };

struct walk {
	struct fay_planner *planner;
	struct fay_plan_private *p;
	bool failed;
};

static void note(struct walk *walk, const struct fay_expr *expr, enum use use)
{
	struct fay_plan_private *p = walk->p;
	int number = fay_plan_text_number(p, expr);
	if (number < 0 && p->text_count == FAY_PLAN_TEXTS) {
		fay_query_fail(walk->planner->query, FAY_E_LIMIT, walk->planner->span,
			       "a query may look at %u strings of an event", FAY_PLAN_TEXTS);
		walk->failed = true;
		return;
	}
	if (number < 0)
		p->texts[number = (int)p->text_count++].expr = expr;
	p->texts[number].shown |= use == USE_SHOWN;
}

/* What a comparison needs to know of `string` is in its first 15 bytes. */
static bool is_short(enum fay_expr_op op, const struct fay_expr *constant)
{
	if (!constant || !fay_expr_is_constant(constant))
		return false;
	return op == EXPR_STARTS_WITH
		       ? constant->length <= FAY_TEXT_INLINE
		       : (op == EXPR_EQ || op == EXPR_NE) && constant->length < FAY_TEXT_INLINE;
}

static void visit(struct walk *walk, const struct fay_expr *expr, enum use use);

static void visit_operand(struct walk *walk, const struct fay_expr *expr, enum fay_expr_op op,
			  const struct fay_expr *other)
{
	if (!fay_expr_is_text(expr) || !is_short(op, other))
		visit(walk, expr, USE_COMPARED);
}

/* The arguments of a function of C are the first 15 bytes. Depth is bounded by FAY_QUERY_MAX_DEPTH.
 */
static void visit(struct walk *walk, const struct fay_expr *expr, enum use use)
{
	if (!expr || walk->failed || expr->op == EXPR_CALL)
		return;
	if (fay_expr_is_text(expr)) {
		note(walk, expr, use);
	} else if (expr->op == EXPR_AGGREGATE) {
		visit(walk, expr->aggregate->operand, USE_COMPARED);
		visit(walk, expr->aggregate->condition, USE_COMPARED);
	} else if (expr->op == EXPR_COND || expr->op == EXPR_KEY) {
		visit(walk, expr->a, expr->op == EXPR_KEY ? use : USE_COMPARED);
		visit(walk, expr->b, use);
		visit(walk, expr->c, use);
	} else if (expr->a && expr->a->type == TYPE_STRING) {
		visit_operand(walk, expr->a, expr->op, expr->b);
		if (expr->b)
			visit_operand(walk, expr->b, expr->op, expr->a);
	} else {
		visit(walk, expr->a, USE_COMPARED);
		visit(walk, expr->b, USE_COMPARED);
		visit(walk, expr->c, USE_COMPARED);
	}
}

static bool find_texts(struct fay_planner *planner, struct fay_plan_private *p)
{
	struct walk walk = { .planner = planner, .p = p };
	for (const struct fay_filter *filter = p->checked.filters; filter; filter = filter->next)
		visit(&walk, filter->expr, USE_COMPARED);
	for (uint32_t i = 0; i < p->keys + p->values; i++)
		visit(&walk, p->columns[i].expr, USE_SHOWN);
	return !walk.failed;
}

/* Two states behind those that there are: the pieces, and how many texts were not sent. */
static bool add_states(struct fay_planner *planner, uint32_t scratch_at)
{
	struct fay_plan *plan = planner->plan;
	struct fay_image_spec *spec = &plan->spec;
	struct fay_spec_state *states =
		fay_query_alloc(planner->query, (spec->state_count + 2) * sizeof(*states));
	struct fay_spec_column *columns =
		fay_query_alloc(planner->query, (spec->column_count + 2) * sizeof(*columns));
	if (!states || !columns)
		return false;
	memcpy(states, spec->states, spec->state_count * sizeof(*states));
	memcpy(columns, spec->columns, spec->column_count * sizeof(*columns));
	columns[spec->column_count] =
		(struct fay_spec_column){ .name = "piece",
					  .type = FAY_TYPE_STRING,
					  .merge = FAY_MERGE_KEY,
					  .size = sizeof(struct fay_text_row) };
	columns[spec->column_count + 1] = (struct fay_spec_column){
		.name = "texts", .type = FAY_TYPE_U64, .merge = FAY_MERGE_SUM, .size = 8
	};
	states[spec->state_count] =
		(struct fay_spec_state){ .name = "texts",
					 .kind = FAY_STATE_STREAM,
					 .scope = FAY_SCOPE_LOCAL,
					 .rows = 1,
					 .row_size = sizeof(struct fay_text_row),
					 .first_column = spec->column_count,
					 .keys = 1 };
	states[spec->state_count + 1] = (struct fay_spec_state){
		.name = "texts_lost",
		.kind = FAY_STATE_CELL,
		.scope = FAY_SCOPE_LOCAL,
		.offset = scratch_at + (uint32_t)offsetof(struct fay_text_scratch, lost),
		.size = 8,
		.rows = 1,
		.row_size = 8,
		.first_column = spec->column_count + 1,
		.values = 1
	};
	plan->texts = true;
	plan->text_state = spec->state_count;
	spec->states = states;
	spec->state_count += 2;
	spec->columns = columns;
	spec->column_count += 2;
	return true;
}

bool fay_planner_texts(struct fay_planner *planner)
{
	struct fay_plan *plan = planner->plan;
	uint32_t scratch_at = (plan->spec.local_size + 7) & ~7u, most = 0;
	bool shown = false;
	for (unsigned side = 0; side < plan->source_count; side++) {
		/* the planner's own, which the plan shows to others as constant */
		struct fay_plan_private *p = (struct fay_plan_private *)fay_plan_stage(plan, side);
		if (!find_texts(planner, p))
			return false;
		p->texts_at = scratch_at;
		most = p->text_count > most ? p->text_count : most;
		for (uint32_t i = 0; i < p->text_count; i++)
			shown |= p->texts[i].shown;
	}
	if (!most)
		return true;
	plan->unfuelled = true;
	plan->spec.local_size = scratch_at + (uint32_t)(sizeof(struct fay_text_scratch) +
							most * sizeof(struct fay_text_buffer));
	plan->kernel_spec.local_size = plan->spec.local_size; /* one aggregator reads both */
	return !shown || add_states(planner, scratch_at);
}

bool fay_plan_add_texts(const struct fay_plan *plan, struct fay_schema *schema)
{
	struct fay_query *query = fay_plan_private(plan)->query;
	const struct fay_image_spec *spec = &plan->spec;
	if (!plan->texts)
		return true;
	struct fay_schema_state *states =
		fay_query_alloc(query, (schema->state_count + 2) * sizeof(*states));
	struct fay_schema_column *columns =
		fay_query_alloc(query, (schema->column_count + 2) * sizeof(*columns));
	if (!states || !columns)
		return false;
	memcpy(states, schema->states, schema->state_count * sizeof(*states));
	memcpy(columns, schema->columns, schema->column_count * sizeof(*columns));
	for (uint32_t i = 0; i < 2; i++) {
		const struct fay_spec_state *s = &spec->states[plan->text_state + i];
		const struct fay_spec_column *c = &spec->columns[s->first_column];
		states[schema->state_count + i] =
			(struct fay_schema_state){ .name = s->name,
						   .kind = (uint16_t)s->kind,
						   .scope = (uint16_t)s->scope,
						   .offset = s->offset,
						   .size = s->size,
						   .rows = s->rows,
						   .row_size = s->row_size,
						   .keys = s->keys,
						   .values = s->values,
						   .first_column = schema->column_count + i };
		columns[schema->column_count + i] =
			(struct fay_schema_column){ .name = c->name,
						    .type = (uint16_t)c->type,
						    .merge = (uint16_t)c->merge,
						    .offset = c->offset,
						    .size = c->size };
	}
	schema->local_size = spec->local_size;
	schema->states = states;
	schema->state_count += 2;
	schema->columns = columns;
	schema->column_count += 2;
	return true;
}

void fay_plan_set_texts(const struct fay_plan *plan, const struct fay_texts *texts)
{
	fay_plan_private(plan)->query->texts = texts;
}
