/* SPDX-License-Identifier: MIT */
/*
 * Joins: `join b in SOURCE on KEY equals KEY within DURATION`, and `.. into g`. Each side is
 * checked as a source of its own; what the pairs see of it is marked by EXPR_SIDE, and a condition
 * on one side alone goes into that side's filters: its probe leaves early.
 */
#include "check_private.h"

#include <string.h>

typedef struct fay_value_node value;

bool fay_check_side_filter(struct fay_checked *checked, const struct fay_expr *condition)
{
	struct fay_filter *filter = fay_query_alloc(checked->exprs.query, sizeof(*filter));
	struct fay_filter **tail = &checked->join->sources[FAY_LEFT + condition->value].filters;
	if (!filter)
		return false;
	filter->expr = condition->a;
	while (*tail)
		tail = &(*tail)->next;
	*tail = filter;
	return true;
}

/* --- values of one side as the pairs see them --- */

/* All names since `outer`, with what the pairs see of them. */
static const struct fay_scope *scope_of_pairs(struct fay_checked *checked,
					      const struct fay_scope *outer,
					      const struct fay_scope *scope)
{
	const struct fay_scope *result = outer;
	const struct fay_scope **tail = &result;
	for (; scope != outer; scope = scope->outer) {
		value *seen = fay_check_seen_from_pairs(checked, FAY_LEFT, scope->value);
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
				      "a join may have at most %u keys", FAY_JOIN_KEYS) != NULL;
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
				      "a join takes events, with conditions and a `select`, but no "
				      "groups, windows or order");
	return sequence->element;
}

static const char *check_domains(const struct fay_check_join *join)
{
	if ((join->sources[FAY_LEFT].domain == DOMAIN_FILE) !=
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
	if (checked->join && checked->join->active != FAY_PAIRS)
		return fay_query_fail(query, FAY_E_REFUSED, clause->span,
				      "a join takes one source: write one join after the other") !=
		       NULL;
	if (!checked->join) {
		checked->join = fay_query_alloc(query, sizeof(*checked->join));
		if (!checked->join)
			return false;
		checked->join->active = FAY_LEFT;
		checked->join->source_count = 1;
		checked->join->names[0] = checked->event_name ? checked->event_name : "left";
		fay_check_change_source(checked, FAY_LEFT);
	}
	checked->join->names[checked->join->source_count++] = clause->name;
	return true;
}

/* Left behind for the pairs: what they have of the first source, without its conditions. */
static void begin_pairs(struct fay_checked *checked)
{
	struct fay_check_source pairs = checked->join->sources[FAY_LEFT];
	pairs.filters = NULL;
	pairs.uses_failed = pairs.uses_end = pairs.uses_duration = false;
	checked->join->sources[FAY_PAIRS] = pairs;
	fay_check_change_source(checked, FAY_PAIRS);
}

/* Both keys, and the source that is joined, of which it returns what its events are. `before`: what
 * `checked` speaks of outside. */
static value *read_parts(struct fay_checked *checked, const struct fay_scope *outer,
			 const struct fay_scope *scope, const struct fay_clause *clause,
			 unsigned before)
{
	unsigned source = checked->join->source_count;
	fay_check_change_source(checked, source);
	value *right = read_source(checked, outer, clause);
	checked->event_name = clause->name;
	fay_check_change_source(checked, before);
	value *left_key = right && read_within(checked, scope, clause)
				  ? fay_check_node(checked, scope, clause->b)
				  : NULL;
	fay_check_change_source(checked, source);
	const struct fay_scope *alone = fay_check_bind(checked, outer, clause->name, right);
	value *right_key = left_key && alone ? fay_check_node(checked, alone, clause->c) : NULL;
	fay_check_change_source(checked, before);
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
	value *right = read_parts(checked, outer, scope, clause, first ? FAY_LEFT : FAY_PAIRS);
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
	    !(pair->element =
		      first ? fay_check_seen_from_pairs(checked, FAY_LEFT, (*sequence)->element)
			    : (*sequence)->element))
		return NULL;
	*sequence = pair;
	value *joined = fay_check_seen_from_pairs(checked, checked->join->source_count, right);
	if (joined && clause->into)
		joined = make_groups(checked, clause, pair, joined);
	return fay_check_bind(checked, known, clause->into ? clause->into : clause->name, joined);
}
