/* SPDX-License-Identifier: MIT */
#include "check_join.h"

#include "check_root.h"

#include <string.h>

typedef struct fay_value_node value;

enum { PAIRS, LEFT };

/* --- which source `checked` speaks of --- */

static void store(struct fay_checked *checked)
{
	checked->join->sources[checked->join->active] = (struct fay_check_source){
		.pattern = checked->pattern,
		.event_name = checked->event_name,
		.kind = checked->kind,
		.domain = checked->domain,
		.span = checked->source,
		.kernel = checked->kernel,
		.function = checked->function,
		.uses_failed = checked->uses_failed,
		.uses_end = checked->uses_end,
		.uses_duration = checked->uses_duration,
		.saved_kernel = checked->saved_kernel,
		.filters = checked->filters,
		.saved = checked->exprs.query->saved,
	};
}

static void load(struct fay_checked *checked)
{
	const struct fay_check_source *source = &checked->join->sources[checked->join->active];
	checked->pattern = source->pattern;
	checked->event_name = source->event_name;
	checked->kind = source->kind;
	checked->domain = source->domain;
	checked->source = source->span;
	checked->kernel = source->kernel;
	checked->function = source->function;
	checked->uses_failed = source->uses_failed;
	checked->uses_end = source->uses_end;
	checked->uses_duration = source->uses_duration;
	checked->saved_kernel = source->saved_kernel;
	checked->filters = source->filters;
	checked->filters_tail = &checked->filters;
	while (*checked->filters_tail)
		checked->filters_tail = &(*checked->filters_tail)->next;
	checked->exprs.query->saved = source->saved;
}

static void change_to(struct fay_checked *checked, unsigned source)
{
	store(checked);
	checked->join->active = source;
	load(checked);
}

unsigned fay_check_enter_side(struct fay_checked *checked, unsigned side)
{
	unsigned outside = checked->join ? checked->join->active : PAIRS;
	if (side)
		change_to(checked, side);
	return outside;
}

static value *seen_from_pairs(struct fay_checked *checked, unsigned side, value *of_side);

value *fay_check_leave_side(struct fay_checked *checked, unsigned outside, value *v)
{
	unsigned side = checked->join ? checked->join->active : PAIRS;
	if (side == outside)
		return v;
	change_to(checked, outside);
	return v ? seen_from_pairs(checked, side, v) : NULL;
}

bool fay_check_side_filter(struct fay_checked *checked, const struct fay_expr *condition)
{
	struct fay_filter *filter = fay_query_alloc(checked->exprs.query, sizeof(*filter));
	struct fay_filter **tail = &checked->join->sources[LEFT + condition->value].filters;
	if (!filter)
		return false;
	filter->expr = condition->a;
	while (*tail)
		tail = &(*tail)->next;
	*tail = filter;
	return true;
}

/* --- values of one side as the pairs see them --- */

static const struct fay_expr *side_expr(struct fay_checked *checked, unsigned side,
					const struct fay_expr *expr)
{
	return fay_expr_side(&checked->exprs, side - LEFT, checked->join->names[side - LEFT], expr);
}

/* Records are as deep as the text nests them. */
static value *seen_from_pairs(struct fay_checked *checked, unsigned side, value *of_side)
{
	value *seen = fay_check_value(checked, of_side->kind);
	if (!seen)
		return NULL;
	*seen = *of_side;
	seen->side = side;
	if (of_side->kind == VALUE_EVENT || of_side->kind == VALUE_OBJECT) {
		return seen;
	} else if (of_side->kind == VALUE_SCALAR) {
		seen->expr = side_expr(checked, side, of_side->expr);
		return seen->expr ? seen : NULL;
	} else if (of_side->kind == VALUE_RECORD) {
		struct fay_member **tail = &seen->members;
		for (const struct fay_member *m = of_side->members; m; m = m->next) {
			struct fay_member *copy =
				fay_query_alloc(checked->exprs.query, sizeof(*copy));
			if (!copy || !(copy->value = seen_from_pairs(checked, side, m->value)))
				return NULL;
			copy->name = m->name;
			*tail = copy;
			tail = &copy->next;
		}
		*tail = NULL;
	}
	return seen;
}

/* All names since `outer`, with what the pairs see of them. */
static const struct fay_scope *scope_of_pairs(struct fay_checked *checked,
					      const struct fay_scope *outer,
					      const struct fay_scope *scope)
{
	const struct fay_scope *result = outer;
	const struct fay_scope **tail = &result;
	for (; scope != outer; scope = scope->outer) {
		value *seen = seen_from_pairs(checked, LEFT, scope->value);
		const struct fay_scope *copy = fay_check_bind(checked, outer, scope->name, seen);
		if (!copy)
			return NULL;
		*tail = copy;
		tail = &((struct fay_scope *)copy)->outer;
	}
	return result;
}

/* --- the clause --- */

/* Adds a pair of keys, member by member if they are records. */
static bool add_keys(struct fay_checked *checked, const struct fay_clause *clause,
		     const value *left, const value *right)
{
	struct fay_query *query = checked->exprs.query;
	struct fay_check_step *step = &checked->join->steps[checked->join->source_count - 2];
	if (left->kind == VALUE_RECORD && right->kind == VALUE_RECORD) {
		const struct fay_member *l = left->members, *r = right->members;
		for (; l && r; l = l->next, r = r->next)
			if (!add_keys(checked, clause, l->value, r->value))
				return false;
		if (l || r)
			return fay_query_fail(
				       query, FAY_E_USAGE, clause->c->span,
				       "both keys of a join need the same number of parts") != NULL;
		return true;
	}
	if (left->kind != VALUE_SCALAR || right->kind != VALUE_SCALAR ||
	    left->expr->type != right->expr->type)
		return fay_query_fail(
			       query, FAY_E_USAGE, clause->c->span,
			       "the keys of a join must be of one type, but these are %s and %s",
			       fay_check_describe(checked, left),
			       fay_check_describe(checked, right)) != NULL;
	if (left->expr->type == TYPE_MODULE || left->expr->type == TYPE_REAL)
		return fay_query_fail(query, FAY_E_REFUSED, clause->b->span,
				      "a key of type %s is not supported yet",
				      fay_type_name(left->expr->type)) != NULL;
	if (fay_expr_size(left->expr) != fay_expr_size(right->expr))
		return fay_query_fail(query, FAY_E_USAGE, clause->c->span,
				      "stacks that are keys of a join must have the same number of "
				      "frames") != NULL;
	struct fay_join_key *key = fay_query_alloc(query, sizeof(*key)), **tail = &step->keys;
	if (!key)
		return false;
	key->sides[0] = left->expr;
	key->sides[1] = right->expr;
	while (*tail)
		tail = &(*tail)->next;
	*tail = key;
	if (++step->key_count > FAY_JOIN_KEYS)
		return fay_query_fail(query, FAY_E_LIMIT, clause->b->span,
				      "a join may have %u keys", FAY_JOIN_KEYS) != NULL;
	return true;
}

static bool read_within(struct fay_checked *checked, const struct fay_scope *scope,
			const struct fay_clause *clause)
{
	const struct fay_expr *within =
		fay_check_typed(checked, scope, clause->d, TYPE_INT, "how far apart events may be");
	if (!within)
		return false;
	if (!fay_expr_is_constant(within) || within->value < 0)
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, clause->d->span,
				      "`within` takes a constant duration, as in `within 5ms`") !=
		       NULL;
	checked->join->steps[checked->join->source_count - 2].within = (uint64_t)within->value;
	return true;
}

/* The source that is joined, while `checked` speaks of it: what its events are. */
static value *read_source(struct fay_checked *checked, const struct fay_scope *outer,
			  const struct fay_clause *clause)
{
	struct fay_query *query = checked->exprs.query;
	const struct fay_root_op *root = checked->root;
	const struct fay_key *keys = checked->keys;
	value *sequence = fay_check_node(checked, outer, clause->a);
	if (!sequence)
		return NULL;
	if (sequence->kind != VALUE_SEQUENCE)
		return fay_query_fail(query, FAY_E_USAGE, clause->a->span,
				      "`join` needs a source such as "
				      "cluster.Function(\"libc!read\"), but this is %s",
				      fay_check_describe(checked, sequence));
	if (sequence->grouped || checked->root != root || checked->keys != keys)
		return fay_query_fail(query, FAY_E_REFUSED, clause->a->span,
				      "what is joined are events: conditions and a `select` of "
				      "them, no groups, windows or order");
	return sequence->element;
}

static const char *check_domains(const struct fay_check_join *join)
{
	if ((join->sources[LEFT].domain == DOMAIN_FILE) !=
	    (join->sources[join->source_count].domain == DOMAIN_FILE))
		return "saved events and live ones cannot be joined: all sources are files, or "
		       "none is";
	return NULL;
}

/* Makes room for one more source; of the first join, `checked` spoke of the left one until now. */
static bool begin(struct fay_checked *checked, const struct fay_clause *clause,
		  const value *sequence)
{
	struct fay_query *query = checked->exprs.query;
	if (checked->join && checked->join->source_count == FAY_JOIN_SOURCES)
		return fay_query_fail(query, FAY_E_REFUSED, clause->span,
				      "a query joins %u sources at most", FAY_JOIN_SOURCES) != NULL;
	if (sequence->grouped || checked->root || checked->keys)
		return fay_query_fail(query, FAY_E_REFUSED, clause->span,
				      "a join of groups, ordered rows or windows is not supported "
				      "yet: put the join before them") != NULL;
	if (checked->join && checked->join->active != PAIRS)
		return fay_query_fail(
			       query, FAY_E_REFUSED, clause->span,
			       "what is joined is one source: write one join behind the other") !=
		       NULL;
	if (!checked->join) {
		checked->join = fay_query_alloc(query, sizeof(*checked->join));
		if (!checked->join)
			return false;
		checked->join->active = LEFT;
		checked->join->source_count = 1;
		checked->join->names[0] = checked->event_name ? checked->event_name : "left";
		store(checked);
	}
	checked->join->names[checked->join->source_count++] = clause->name;
	return true;
}

/* Left behind for the pairs: what they have of the first source, without its conditions. */
static void begin_pairs(struct fay_checked *checked)
{
	struct fay_check_source pairs = checked->join->sources[LEFT];
	pairs.filters = NULL;
	pairs.uses_failed = pairs.uses_end = pairs.uses_duration = false;
	checked->join->sources[PAIRS] = pairs;
	change_to(checked, PAIRS);
}

/* Both keys, and the source that is joined, of which it returns what its events are. `before`: what
 * `checked` speaks of outside. */
static value *read_parts(struct fay_checked *checked, const struct fay_scope *outer,
			 const struct fay_scope *scope, const struct fay_clause *clause,
			 unsigned before)
{
	unsigned source = checked->join->source_count;
	change_to(checked, source);
	value *right = read_source(checked, outer, clause);
	checked->event_name = clause->name;
	change_to(checked, before);
	value *left_key = right && read_within(checked, scope, clause)
				  ? fay_check_node(checked, scope, clause->b)
				  : NULL;
	change_to(checked, source);
	const struct fay_scope *alone = fay_check_bind(checked, outer, clause->name, right);
	value *right_key = left_key && alone ? fay_check_node(checked, alone, clause->c) : NULL;
	change_to(checked, before);
	return right_key && add_keys(checked, clause, left_key, right_key) ? right : NULL;
}

/* `into NAME`: each row of before with the group of what it is joined with, which may have no
 * events. A row is told apart by its number, so that equal ones stay two. */
static value *make_groups(struct fay_checked *checked, const struct fay_clause *clause,
			  value *sequence, value *right)
{
	struct fay_key *key = fay_query_alloc(checked->exprs.query, sizeof(*key)),
		       **tail = fay_check_keys(checked);
	value *group = fay_check_value(checked, VALUE_GROUP);
	if (!key || !group || !(key->expr = fay_expr_row(&checked->exprs)))
		return NULL;
	key->name = "row";
	*tail = key;
	group->level = (uint8_t)fay_check_level(checked);
	group->element = right;
	checked->join->into = clause->into;
	sequence->grouped = true;
	sequence->element = group;
	return group;
}

const struct fay_scope *fay_check_join(struct fay_checked *checked, const struct fay_scope *outer,
				       const struct fay_scope *scope,
				       const struct fay_clause *clause, value **sequence)
{
	bool first = !checked->join;
	if (!begin(checked, clause, *sequence))
		return NULL;
	value *right = read_parts(checked, outer, scope, clause, first ? LEFT : PAIRS);
	if (first)
		begin_pairs(checked);
	if (!right)
		return NULL;
	const char *wrong = check_domains(checked->join);
	if (wrong)
		return fay_query_fail(checked->exprs.query, FAY_E_REFUSED, clause->a->span, "%s",
				      wrong);
	const struct fay_scope *known = first ? scope_of_pairs(checked, outer, scope) : scope;
	value *pair = fay_check_value(checked, VALUE_SEQUENCE);
	if (!known || !pair ||
	    !(pair->element = first ? seen_from_pairs(checked, LEFT, (*sequence)->element)
				    : (*sequence)->element))
		return NULL;
	*sequence = pair;
	value *joined = seen_from_pairs(checked, checked->join->source_count, right);
	if (joined && clause->into)
		joined = make_groups(checked, clause, pair, joined);
	return fay_check_bind(checked, known, clause->into ? clause->into : clause->name, joined);
}
