/* SPDX-License-Identifier: MIT */
#include "check_join.h"

#include <string.h>

typedef struct fay_value_node value;

enum { PAIRS, LEFT, RIGHT };

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
	checked->exprs.query->saved = checked->join->sources[LEFT].saved;
	checked->exprs.query->other_saved = checked->join->sources[RIGHT].saved;
	if (checked->join->active == RIGHT) { /* `saved` is what is asked */
		checked->exprs.query->saved = source->saved;
		checked->exprs.query->other_saved = checked->join->sources[LEFT].saved;
	}
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

static const struct fay_expr *side_expr(struct fay_checked *checked, unsigned side, const struct fay_expr *expr)
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
			struct fay_member *copy = fay_query_alloc(checked->exprs.query, sizeof(*copy));
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
static const struct fay_scope *scope_of_pairs(struct fay_checked *checked, const struct fay_scope *outer, const struct fay_scope *scope)
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
static bool add_keys(struct fay_checked *checked, const struct fay_clause *clause, const value *left, const value *right)
{
	struct fay_query *query = checked->exprs.query;
	struct fay_check_join *join = checked->join;
	if (left->kind == VALUE_RECORD && right->kind == VALUE_RECORD) {
		const struct fay_member *l = left->members, *r = right->members;
		for (; l && r; l = l->next, r = r->next)
			if (!add_keys(checked, clause, l->value, r->value))
				return false;
		if (l || r)
			return fay_query_fail(query, FAY_E_USAGE, clause->c->span, "both keys of a join need the same number of parts") != NULL;
		return true;
	}
	if (left->kind != VALUE_SCALAR || right->kind != VALUE_SCALAR || left->expr->type != right->expr->type)
		return fay_query_fail(query, FAY_E_USAGE, clause->c->span, "the keys of a join must be of one type, but these are %s and %s",
				      fay_check_describe(checked, left), fay_check_describe(checked, right)) != NULL;
	if (left->expr->type == TYPE_MODULE || left->expr->type == TYPE_REAL)
		return fay_query_fail(query, FAY_E_REFUSED, clause->b->span, "a key of type %s is not supported yet", fay_type_name(left->expr->type)) != NULL;
	struct fay_join_key *key = fay_query_alloc(query, sizeof(*key)), **tail = &join->keys;
	if (!key)
		return false;
	key->sides[0] = left->expr;
	key->sides[1] = right->expr;
	while (*tail)
		tail = &(*tail)->next;
	*tail = key;
	if (++join->key_count > FAY_JOIN_KEYS)
		return fay_query_fail(query, FAY_E_LIMIT, clause->b->span, "a join may have %u keys", FAY_JOIN_KEYS) != NULL;
	return true;
}

static bool read_within(struct fay_checked *checked, const struct fay_scope *scope, const struct fay_clause *clause)
{
	const struct fay_expr *within = fay_check_typed(checked, scope, clause->d, TYPE_INT, "how far apart events may be");
	if (!within)
		return false;
	if (!fay_expr_is_constant(within) || within->value < 0)
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, clause->d->span, "`within` takes a constant duration, as in `within 5ms`") != NULL;
	checked->join->within = (uint64_t)within->value;
	return true;
}

/* The source that is joined, while `checked` speaks of it: what its events are. */
static value *read_source(struct fay_checked *checked, const struct fay_scope *outer, const struct fay_clause *clause)
{
	struct fay_query *query = checked->exprs.query;
	const struct fay_root_op *root = checked->root;
	const struct fay_key *keys = checked->keys;
	value *sequence = fay_check_node(checked, outer, clause->a);
	if (!sequence)
		return NULL;
	if (sequence->kind != VALUE_SEQUENCE)
		return fay_query_fail(query, FAY_E_USAGE, clause->a->span, "`join` needs a source such as cluster.Function(\"libc!read\"), but this is %s",
				      fay_check_describe(checked, sequence));
	if (sequence->grouped || checked->root != root || checked->keys != keys)
		return fay_query_fail(query, FAY_E_REFUSED, clause->a->span,
				      "what is joined are events: conditions and a `select` of them, no groups, windows or order");
	return sequence->element;
}

static const char *check_domains(const struct fay_check_join *join)
{
	if ((join->sources[LEFT].domain == DOMAIN_FILE) != (join->sources[RIGHT].domain == DOMAIN_FILE))
		return "saved events and live ones cannot be joined: both sources are files, or neither";
	return NULL;
}

static bool can_begin(struct fay_checked *checked, const struct fay_clause *clause, const value *sequence)
{
	struct fay_query *query = checked->exprs.query;
	if (checked->join)
		return fay_query_fail(query, FAY_E_REFUSED, clause->span, "a second join in one query is not supported yet") != NULL;
	if (sequence->grouped || checked->root || checked->keys)
		return fay_query_fail(query, FAY_E_REFUSED, clause->span,
				      "a join of groups, ordered rows or windows is not supported yet: put the join before them") != NULL;
	checked->join = fay_query_alloc(query, sizeof(*checked->join));
	if (!checked->join)
		return false;
	checked->join->active = LEFT;
	store(checked);
	return true;
}

/* Left behind for the pairs: what they have of the left source, without its conditions. */
static void begin_pairs(struct fay_checked *checked)
{
	struct fay_check_source pairs = checked->join->sources[LEFT];
	pairs.filters = NULL;
	pairs.uses_failed = pairs.uses_end = pairs.uses_duration = false;
	checked->join->sources[PAIRS] = pairs;
	change_to(checked, PAIRS);
}

const struct fay_scope *fay_check_join(struct fay_checked *checked, const struct fay_scope *outer, const struct fay_scope *scope,
				       const struct fay_clause *clause, value **sequence)
{
	if (!can_begin(checked, clause, *sequence))
		return NULL;
	struct fay_check_join *join = checked->join;
	join->names[0] = checked->event_name ? checked->event_name : "left";
	join->names[1] = clause->name;
	change_to(checked, RIGHT);
	value *right = read_source(checked, outer, clause);
	checked->event_name = clause->name;
	change_to(checked, LEFT);
	value *left_key = right && read_within(checked, scope, clause) ? fay_check_node(checked, scope, clause->b) : NULL;
	change_to(checked, RIGHT);
	const struct fay_scope *alone = fay_check_bind(checked, outer, clause->name, right);
	value *right_key = left_key && alone ? fay_check_node(checked, alone, clause->c) : NULL;
	change_to(checked, LEFT);
	begin_pairs(checked);
	if (!right_key || !add_keys(checked, clause, left_key, right_key))
		return NULL;
	const char *wrong = check_domains(join);
	if (wrong)
		return fay_query_fail(checked->exprs.query, FAY_E_REFUSED, clause->a->span, "%s", wrong);
	const struct fay_scope *left = scope_of_pairs(checked, outer, scope);
	value *pair = fay_check_value(checked, VALUE_SEQUENCE);
	if (!left || !pair || !(pair->element = seen_from_pairs(checked, LEFT, (*sequence)->element)))
		return NULL;
	*sequence = pair;
	return fay_check_bind(checked, left, clause->name, seen_from_pairs(checked, RIGHT, right));
}
