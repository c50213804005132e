/* SPDX-License-Identifier: MIT */
/*
 * The stages of a join. Each source's probe hands on rows of: the time, the keys, and what else the
 * pairs need of that side, computed there (EXPR_SIDE); what nothing needs is not among them. The
 * aggregator puts them together (fay/join.h), and the stage of the pairs, which the plan's own
 * layout describes, is interpreted (query/evaluate/stage.c).
 */
#include "planner_private.h"
#include "query/sources/sources.h"

#include <string.h>

/* Columns for each part of `expr` that is of one side. Depth is bounded by FAY_QUERY_MAX_DEPTH. */
static bool need_sides(struct fay_planner *sides, const struct fay_expr *expr)
{
	if (!expr)
		return true;
	if (expr->op == EXPR_SIDE) {
		struct fay_planner *side = &sides[expr->value];
		const char *name =
			fay_query_format(side->query, "column_%u", side->private_plan->keys + 1);
		return name && fay_planner_key(side, expr->a, name) >= 0;
	}
	if (expr->op == EXPR_AGGREGATE)
		return need_sides(sides, expr->aggregate->operand) &&
		       need_sides(sides, expr->aggregate->condition);
	return need_sides(sides, expr->a) && need_sides(sides, expr->b) &&
	       need_sides(sides, expr->c);
}

/* The stage of one side, with the columns by which rows are joined: the time first, then the keys.
 * */
static bool begin_side(struct fay_planner *planner, unsigned index, struct fay_planner *side)
{
	struct fay_plan_private *pairs = planner->private_plan;
	struct fay_check_source *source = &pairs->checked.join->sources[index + 1];
	struct fay_plan_private *p = fay_query_alloc(planner->query, sizeof(*p));
	if (!p)
		return false;
	*side = *planner;
	side->private_plan = pairs->join->sides[index] = p;
	p->query = planner->query;
	p->kind = FAY_STATE_STREAM;
	p->state_index = index;
	p->checked.exprs.query = planner->query;
	p->checked.pattern = source->pattern;
	p->checked.event_name = pairs->checked.join->names[index];
	p->checked.kind = source->kind;
	p->checked.domain = source->domain;
	p->checked.kernel = source->kernel;
	if (pairs->checked.whole_events && !fay_planner_whole_side(side, planner, index + 1))
		return false;
	p->checked.uses_failed = source->uses_failed;
	p->checked.uses_end = source->uses_end;
	p->checked.uses_duration = source->uses_duration;
	p->checked.saved_kernel = source->saved_kernel;
	p->checked.filters = source->filters;
	fay_rewrite_filters(&p->checked.filters);
	if (source->saved && !fay_saved_own(source->saved, "time"))
		return fay_query_fail(
			       planner->query, FAY_E_REFUSED, source->span,
			       "events are joined by time, which this saved trace does not have") !=
		       NULL;
	fay_plan_find_saved(p, source->saved);
	const struct fay_expr *time = fay_expr_time(&pairs->checked.exprs);
	if (!time || fay_planner_key(side, time, "time") < 0)
		return false;
	const struct fay_join_key *key = pairs->checked.join->steps[index ? index - 1 : 0].keys;
	for (; key && !pairs->checked.whole_events; key = key->next) {
		const char *name = fay_query_format(planner->query, "key_%u", p->keys);
		if (!name || fay_planner_key(side, key->sides[index != 0], name) < 0)
			return false;
	}
	return true;
}

/* Where the keys and the time lie in a source's rows. An expression that is twice a key is one
 * column. */
static void find_keys(struct fay_plan *plan, const struct fay_check_join *join,
		      const struct fay_plan_private *p, unsigned index)
{
	uint32_t k = 0;
	unsigned step = index ? index - 1 : 0, side = index != 0;
	struct fay_join_options *options = &plan->join[step];
	options->sides[side].row_size = p->row_size;
	options->sides[side].time_offset = p->columns[0].offset;
	for (const struct fay_join_key *key = join->steps[step].keys; key; key = key->next, k++)
		for (uint32_t i = 0; i < p->keys; i++)
			/* a constant has no side, but a column of its own */
			if (p->columns[i].expr == key->sides[side])
				options->sides[side].keys[k] =
					(struct fay_join_column){ p->columns[i].offset,
								  p->columns[i].size };
	options->key_count = join->steps[step].key_count;
	options->within = join->steps[step].within;
}

static void add_probes(struct fay_image_spec *spec, struct fay_spec_probe *probes,
		       const struct fay_plan_private *p)
{
	memcpy(probes + spec->probe_count, p->probes, p->probe_count * sizeof(p->probes[0]));
	spec->probe_count += p->probe_count;
}

/* Whether something of a source from `from` on is asked. Depth is bounded by FAY_QUERY_MAX_DEPTH.
 * */
static bool asks_of(const struct fay_expr *expr, unsigned from)
{
	if (!expr)
		return false;
	if (expr->op == EXPR_SIDE)
		return expr->value >= from;
	return asks_of(expr->a, from) || asks_of(expr->b, from) || asks_of(expr->c, from);
}

/* Conditions that are about the first join's pairs alone hold for these before they are joined once
 * more. */
static void move_filters(struct fay_plan_private *pairs)
{
	struct fay_filter **from = &pairs->checked.filters, **to = &pairs->join->middle.filters;
	while (*from) {
		struct fay_filter *filter = *from;
		if (asks_of(filter->expr, 2)) {
			from = &filter->next;
			continue;
		}
		*from = filter->next;
		filter->next = NULL;
		*to = filter;
		to = &filter->next;
	}
}

static bool is_time_of(const struct fay_expr *expr, const struct fay_plan_join *join)
{
	return expr->op == EXPR_SIDE && expr->type == TYPE_TIME && expr->value < 2 &&
	       expr->a == join->sides[expr->value]->columns[0].expr;
}

/*
 * Conditions such as `b.time >= a.time - a.Duration`: what lies too far back is not even looked at.
 * (What lies too far ahead need not be found apart: most rows come nearly in order, so that there
 * is little of it.)
 */
static void find_since(struct fay_plan_join *join, const struct fay_filter *filter)
{
	for (; filter; filter = filter->next) {
		const struct fay_expr *expr = filter->expr;
		bool greater = expr->op == EXPR_GT || expr->op == EXPR_GE;
		if (!greater && expr->op != EXPR_LT && expr->op != EXPR_LE)
			continue;
		const struct fay_expr *later = greater ? expr->a : expr->b,
				      *earlier = greater ? expr->b : expr->a;
		if (!is_time_of(later, join) || earlier->op != EXPR_SIDE ||
		    earlier->type != TYPE_TIME || earlier->value != !later->value)
			continue;
		uint32_t *count = &join->since_count[earlier->value];
		if (*count < FAY_JOIN_SINCE)
			join->since[earlier->value][(*count)++] = earlier;
	}
}

/* Whether it holds for none of a group's pairs: `g.Count(x => ..) == 0`, `!g.Any(x => ..)`. */
static bool is_none(const struct fay_expr *expr)
{
	bool negated = expr->op == EXPR_NOT;
	const struct fay_expr *compared = negated ? expr->a : expr;
	return compared->op == (negated ? EXPR_GT : EXPR_EQ) && compared->a->op == EXPR_AGGREGATE &&
	       compared->a->aggregate->merge == FAY_MERGE_COUNT &&
	       compared->b->op == EXPR_CONSTANT && !compared->b->value;
}

/* What a left row must not be paired with, if nothing else is asked of its pairs. */
static bool find_unpaired(struct fay_planner *planner)
{
	const struct fay_plan_private *pairs = planner->private_plan;
	const struct fay_root_op *op = pairs->root;
	while (op && op->kind == ROOT_FILTER && !is_none(op->expr))
		op = op->next;
	if (!planner->plan->groups_pairs || pairs->values != 1 || !op || op->kind != ROOT_FILTER)
		return true;
	const struct fay_expr *count = op->expr->op == EXPR_NOT ? op->expr->a->a : op->expr->a;
	planner->plan->wants_unpaired = true;
	if (!count->aggregate->condition)
		return true;
	struct fay_filter *filter = fay_query_alloc(planner->query, sizeof(*filter));
	if (!filter)
		return false;
	filter->expr = count->aggregate->condition;
	pairs->join->settles = filter;
	fay_rewrite_filters(&pairs->join->settles);
	return true;
}

/* The rows of pairs that are joined once more. */
static bool lay_out_middle(struct fay_planner *planner)
{
	struct fay_plan_private *pairs = planner->private_plan;
	struct fay_plan_middle *middle = &pairs->join->middle;
	struct fay_join_options *options = &planner->plan->join[1];
	uint32_t at = 8;
	for (const struct fay_join_key *key = pairs->checked.join->steps[1].keys; key;
	     key = key->next) {
		uint32_t size = fay_expr_size(key->sides[0]);
		middle->keys[middle->key_count] = (struct fay_layout_column){ .expr = key->sides[0],
									      .offset = at,
									      .size = size };
		options->sides[0].keys[middle->key_count++] = (struct fay_join_column){ at, size };
		at += size;
	}
	middle->header = at;
	options->sides[0].time_offset = 0;
	options->sides[0].row_size =
		at + pairs->join->sides[0]->row_size + pairs->join->sides[1]->row_size;
	if (options->sides[0].row_size > FAY_ROW_MAX_BYTES)
		return fay_query_fail(planner->query, FAY_E_LIMIT, planner->span,
				      "pairs that are joined again may have at most %u bytes, and "
				      "these have %u",
				      FAY_ROW_MAX_BYTES, options->sides[0].row_size) != NULL;
	return true;
}

/* An image has the states of all sources, whatever it has probes of: their rows come together. */
static void add_to_image(struct fay_plan *plan, struct fay_plan_join *join,
			 const struct fay_plan_private *p)
{
	static const char *const names[FAY_JOIN_SOURCES] = { "left", "right", "third" };
	struct fay_image_spec *spec = &plan->spec;
	if (plan->domain != DOMAIN_USER || p->checked.domain != DOMAIN_KERNEL)
		add_probes(spec, join->probes, p);
	else if (!fay_source_is_bpf(p->checked.kind))
		add_probes(&plan->kernel_spec, join->kernel_probes, p);
	memcpy(join->spec_columns + spec->column_count, p->spec_columns,
	       p->keys * sizeof(p->spec_columns[0]));
	join->states[p->state_index] = p->state;
	join->states[p->state_index].name = names[p->state_index];
	join->states[p->state_index].first_column = spec->column_count;
	spec->column_count += p->keys;
	spec->state_count++;
}

static void share_states(struct fay_plan *plan)
{
	plan->kernel_spec.local_size = plan->spec.local_size;
	plan->kernel_spec.states = plan->spec.states;
	plan->kernel_spec.state_count = plan->spec.state_count;
	plan->kernel_spec.columns = plan->spec.columns;
	plan->kernel_spec.column_count = plan->spec.column_count;
}

/* The deepest stack in it, 0: none. Depth is bounded by FAY_QUERY_MAX_DEPTH. */
static uint32_t frames_in(const struct fay_expr *expr)
{
	if (!expr)
		return 0;
	uint32_t a = frames_in(expr->a), b = frames_in(expr->b), c = frames_in(expr->c),
		 most = a > b ? a : b, own = expr->op == EXPR_STACK ? (uint32_t)expr->value : 0;
	most = most > c ? most : c;
	return most > own ? most : own;
}

/* What the code generator finds expressions by is the whole query's; how deep stacks are, the
 * source's own. */
static void find_stacks(struct fay_plan_private *p)
{
	uint32_t most = 0, one;
	for (const struct fay_filter *filter = p->checked.filters; filter; filter = filter->next)
		most = (one = frames_in(filter->expr)) > most ? one : most;
	for (uint32_t i = 0; i < p->keys; i++)
		most = (one = frames_in(p->columns[i].expr)) > most ? one : most;
	p->checked.exprs.stack_frames = most;
}

/* Where the events are: processes are attached to if one source needs it. All are native code in
 * the kernel only if all are functions of it. */
static void find_domains(struct fay_plan *plan, const struct fay_check_join *join)
{
	for (unsigned s = 0; s < join->source_count; s++) {
		const struct fay_check_source *source = &join->sources[s + 1];
		if (source->domain != DOMAIN_KERNEL)
			plan->domain = source->domain;
		else
			plan->kernel_sides |= 1u << s;
	}
	for (unsigned s = 1; s < join->source_count; s++)
		if (plan->domain == DOMAIN_KERNEL && plan->kernel == FAY_KERNEL_FUNCTIONS &&
		    fay_source_is_bpf(join->sources[s + 1].kind))
			plan->kernel = fay_kernel_kind_of(join->sources[s + 1].kind);
}

/* How a pair's columns are read. */
static bool describe_pairs(struct fay_planner *planner)
{
	struct fay_plan_private *pairs = planner->private_plan;
	struct fay_plan_join *join = pairs->join;
	struct fay_exprs *exprs = &pairs->checked.exprs;
	uint32_t count = 0, base = 0;
	for (unsigned s = 0; s < planner->plan->source_count; s++) {
		const struct fay_plan_private *p = join->sides[s];
		for (uint32_t i = 0; i < p->keys; i++) {
			const struct fay_expr *seen = fay_expr_side(
				exprs, s, pairs->checked.join->names[s], p->columns[i].expr);
			if (!seen)
				return false;
			const struct fay_spec_column *c = &p->spec_columns[i];
			join->columns[count++] =
				(struct fay_schema_column){ .name = c->name,
							    .type = (uint16_t)c->type,
							    .merge = (uint16_t)c->merge,
							    .offset = base + c->offset,
							    .size = c->size };
		}
		base += p->row_size;
	}
	join->column_of =
		fay_query_alloc(planner->query, (exprs->count + 1u) * sizeof(*join->column_of));
	for (unsigned s = 0, column = 1; s < planner->plan->source_count && join->column_of; s++)
		for (uint32_t i = 0; i < join->sides[s]->keys; i++, column++) {
			const struct fay_expr *seen =
				fay_expr_side(exprs, s, NULL, join->sides[s]->columns[i].expr);
			if (seen && seen->op == EXPR_SIDE)
				join->column_of[seen->id] = column;
		}
	return join->column_of != NULL;
}

/* What is saved are both sources' events, each as it is: the pairs are made of them later. */
static bool need_all(struct fay_planner *planner, struct fay_planner *sides)
{
	const struct fay_plan_private *pairs = planner->private_plan;
	if (pairs->checked.whole_events)
		return true;
	for (const struct fay_filter *filter = pairs->checked.filters; filter;
	     filter = filter->next)
		if (!need_sides(sides, filter->expr))
			return false;
	for (uint32_t i = 0; i < pairs->keys + pairs->values; i++)
		if (!need_sides(sides, pairs->columns[i].expr))
			return false;
	for (const struct fay_join_key *key = pairs->checked.join->steps[1].keys; key;
	     key = key->next)
		if (!need_sides(sides, key->sides[0]))
			return false;
	return true;
}

/* The sources' states, as an image has them. */
void fay_plan_sources_schema(const struct fay_plan *plan, struct fay_schema *schema)
{
	struct fay_plan_join *join = fay_plan_private(plan)->join;
	uint32_t column = 0;
	if (!join) {
		fay_stage_schema(fay_plan_private(plan)->events->source, schema);
		return;
	}
	for (unsigned s = 0; s < plan->source_count; s++) {
		struct fay_plan_private *p = join->sides[s];
		join->schema_states[s] = (struct fay_schema_state){ .name = join->states[s].name,
								    .kind = FAY_STATE_STREAM,
								    .scope = FAY_SCOPE_LOCAL,
								    .rows = p->state.rows,
								    .row_size = p->row_size,
								    .keys = (uint16_t)p->keys,
								    .first_column = column };
		for (uint32_t i = 0; i < p->keys; i++, column++) {
			const struct fay_spec_column *c = &p->spec_columns[i];
			join->schema_columns[column] =
				(struct fay_schema_column){ .name = c->name,
							    .type = (uint16_t)c->type,
							    .merge = (uint16_t)c->merge,
							    .offset = c->offset,
							    .size = c->size };
		}
	}
	*schema = (struct fay_schema){ .local_size = plan->spec.local_size,
				       .state_count = plan->source_count,
				       .column_count = column,
				       .states = join->schema_states,
				       .columns = join->schema_columns };
}

/* A trace ends when no pair can come any more: of a source whose events end, and what lies within
 * reach of the last one. */
static void find_deadline(struct fay_plan *plan, const struct fay_plan_private *p, unsigned source)
{
	uint64_t end = fay_planner_deadline(p);
	/* what is joined to it is there without it, too */
	bool outer = plan->groups_pairs && source + 1 == plan->source_count;
	if (!end || outer)
		return;
	for (unsigned step = source ? source - 1 : 0; step + 1 < plan->source_count; step++)
		if (__builtin_add_overflow(end, plan->join[step].within, &end))
			end = UINT64_MAX;
	if (!plan->deadline || end < plan->deadline)
		plan->deadline = end;
}

/* Events of the kernel come to a query about programs in one way. */
static bool one_back_end(struct fay_planner *planner)
{
	const struct fay_plan *plan = planner->plan;
	const struct fay_check_join *join = planner->private_plan->checked.join;
	for (unsigned s = 1; plan->kernel_spec.probe_count && s <= join->source_count; s++)
		if (join->sources[s].domain == DOMAIN_KERNEL &&
		    fay_source_is_bpf(join->sources[s].kind))
			return fay_query_fail(
				       planner->query, FAY_E_REFUSED, join->sources[s].span,
				       "a query cannot yet combine programs, functions of the "
				       "kernel and its system calls, tracepoints or timers") !=
			       NULL;
	return true;
}

bool fay_planner_join(struct fay_planner *planner)
{
	static const char *const symbols[FAY_JOIN_SOURCES][2] = { { "probe0", "probe1" },
								  { "probe2", "probe3" },
								  { "probe4", "probe5" } };
	struct fay_plan *plan = planner->plan;
	struct fay_plan_private *pairs = planner->private_plan;
	const struct fay_check_join *join = pairs->checked.join;
	struct fay_planner sides[FAY_JOIN_SOURCES];
	pairs->join = fay_query_alloc(planner->query, sizeof(*pairs->join));
	plan->source_count = join->source_count;
	plan->groups_pairs = join->into != NULL;
	plan->joins = true;
	for (unsigned s = 0; s < plan->source_count; s++)
		if (!pairs->join || !begin_side(planner, s, &sides[s]))
			return false;
	if (!need_all(planner, sides))
		return false;
	find_domains(plan, join);
	plan->deadline = 0;
	plan->spec = (struct fay_image_spec){ .local_size = 8,
					      .probes = pairs->join->probes,
					      .states = pairs->join->states,
					      .columns = pairs->join->spec_columns };
	plan->kernel_spec.probes = pairs->join->kernel_probes;
	for (unsigned s = 0; s < plan->source_count; s++) {
		struct fay_plan_private *p = sides[s].private_plan;
		if (!fay_planner_lay_out(&sides[s]))
			return false;
		find_stacks(p);
		fay_planner_stacks(&sides[s]);
		plan->only_bpf |= plan->domain == DOMAIN_KERNEL && p->checked.exprs.stack_frames;
		fay_planner_fill_stage(&sides[s], symbols[s]);
		find_keys(plan, join, p, s);
		add_to_image(plan, pairs->join, p);
	}
	share_states(plan);
	for (unsigned s = 0; s < plan->source_count; s++)
		find_deadline(plan, sides[s].private_plan, s);
	if (!one_back_end(planner) || !describe_pairs(planner))
		return false;
	if (plan->source_count > 2) {
		move_filters(pairs);
		if (!lay_out_middle(planner))
			return false;
	}
	if (!find_unpaired(planner))
		return false;
	find_since(pairs->join,
		   plan->source_count > 2 ? pairs->join->middle.filters : pairs->checked.filters);
	if (plan->source_count == 2)
		find_since(pairs->join, pairs->join->settles);
	/* the code generator's tables are by expression */
	for (unsigned s = 0; s < plan->source_count; s++) {
		sides[s].private_plan->checked.exprs = pairs->checked.exprs;
		find_stacks(sides[s].private_plan);
	}
	return true;
}
