/* SPDX-License-Identifier: MIT */
/*
 * Checking of what runs over many events: the methods of sequences and groups, and comprehensions,
 * which call the same functions.
 *
 * `Where` on the whole sequence appends filters to the query; on a group it narrows which events an
 * aggregate sees. `Select` maps the element. `GroupBy` records the keys and makes the element a
 * group.
 */
#include "check_private.h"

#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

typedef struct fay_value_node value;

/* Evaluates `name => body` with the element bound. `lambda` may have any kind: checked here. */
value *fay_check_apply(struct fay_checked *checked, const struct fay_scope *scope,
		       const struct fay_node *lambda, value *element, const char *method)
{
	if (lambda->kind != NODE_LAMBDA)
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, lambda->span,
				      "`%s` takes a lambda, as in `%s(x => ...)`", method, method);
	if (!checked->event_name && element->kind == VALUE_EVENT)
		checked->event_name = lambda->name;
	struct fay_scope inner = { lambda->name, element, scope };
	return fay_check_node(checked, &inner, lambda->a);
}

const struct fay_expr *fay_check_bool(struct fay_checked *checked, const struct fay_node *node,
				      value *v, const char *what)
{
	if (v && v->kind == VALUE_SCALAR && v->expr->type == TYPE_BOOL)
		return v->expr;
	return v ? fay_query_fail(checked->exprs.query, FAY_E_USAGE, node->span,
				  "%s needs a bool, but this is %s", what,
				  fay_check_describe(checked, v))
		 : NULL;
}

static bool append_filter(struct fay_checked *checked, const struct fay_expr *expr)
{
	struct fay_filter *filter = fay_query_alloc(checked->exprs.query, sizeof(*filter));
	if (!filter)
		return false;
	filter->expr = expr;
	*checked->filters_tail = filter;
	checked->filters_tail = &filter->next;
	return true;
}

/* Splits `a && b` so that each part can leave the probe early. Depth is bounded by the
 * expression's. */
static bool add_filter(struct fay_checked *checked, const struct fay_node *node,
		       const struct fay_expr *expr)
{
	if (expr->op == EXPR_AND)
		return add_filter(checked, node, expr->a) && add_filter(checked, node, expr->b);
	if (fay_check_at_root(checked, expr))
		return fay_check_root_filter(checked, expr);
	return expr->op == EXPR_SIDE ? fay_check_side_filter(checked, expr)
				     : append_filter(checked, expr);
}

static value *with_element(struct fay_checked *checked, const value *object, value *element,
			   const char *name)
{
	value *copy = element ? fay_check_value(checked, object->kind) : NULL;
	if (!copy)
		return NULL;
	*copy = *object;
	copy->element = element;
	copy->name = name;
	return copy;
}

/* Flattens a key value into key columns "a", "a.x". Returns its form seen from after the grouping.
 * */
static value *add_keys(struct fay_checked *checked, const struct fay_node *node, value *key,
		       const char *name, struct fay_key ***tail)
{
	struct fay_query *query = checked->exprs.query;
	if (key->kind == VALUE_RECORD) {
		value *seen = fay_check_value(checked, VALUE_RECORD);
		struct fay_member **members = seen ? &seen->members : NULL;
		for (struct fay_member *m = key->members; m && seen; m = m->next) {
			struct fay_member *copy = fay_query_alloc(query, sizeof(*copy));
			if (!copy)
				return NULL;
			copy->name = m->name;
			copy->value = add_keys(checked, node, m->value, m->name, tail);
			if (!copy->value)
				return NULL;
			*members = copy;
			members = &copy->next;
		}
		return seen;
	}
	if (key->kind != VALUE_SCALAR)
		return fay_query_fail(query, FAY_E_USAGE, node->span, "a key cannot be %s",
				      fay_check_describe(checked, key));
	if (key->expr->type == TYPE_REAL || key->expr->type == TYPE_HISTOGRAM ||
	    key->expr->type == TYPE_LIST ||
	    (key->expr->type == TYPE_MODULE && fay_check_of_kernel(checked)) ||
	    key->expr->level >= fay_check_level(checked))
		return fay_query_fail(query, FAY_E_REFUSED, node->span,
				      "a key of type %s is not supported yet",
				      fay_type_name(key->expr->type));
	struct fay_key *entry = fay_query_alloc(query, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->name = name;
	entry->expr = key->expr;
	**tail = entry;
	*tail = &entry->next;
	return fay_check_scalar(checked,
				fay_expr_key(&checked->exprs, key->expr, fay_check_level(checked)));
}

static value *group_by(struct fay_checked *checked, const struct fay_node *node, value *sequence,
		       value *key, value *element)
{
	if (!key || !element)
		return NULL;
	if (sequence->grouped ? !fay_check_regroup(checked, node->span)
			      : !fay_check_before_root(checked, node->span, "grouping"))
		return NULL;
	value *group = fay_check_value(checked, VALUE_GROUP);
	struct fay_key **tail = fay_check_keys(checked);
	if (!group)
		return NULL;
	group->level = (uint8_t)fay_check_level(checked);
	const char *name = fay_check_inferred_name(node);
	group->key = add_keys(checked, node, key, name ? name : "key", &tail);
	group->element = element;
	value *result = group->key ? with_element(checked, sequence, group, NULL) : NULL;
	if (result)
		result->grouped = true;
	return result;
}

/* Adds the predicate of Count(pred): to the group's condition, or to the query's filters. */
bool fay_check_narrow(struct fay_checked *checked, const struct fay_node *node, value *object,
		      const struct fay_expr *predicate)
{
	if (object->kind == VALUE_SEQUENCE)
		return add_filter(checked, node, predicate);
	if (predicate->level >= object->level)
		return fay_query_fail(
			       checked->exprs.query, FAY_E_USAGE, node->span,
			       "a condition on the events of a group cannot use aggregates") !=
		       NULL;
	object->condition = object->condition
				    ? fay_expr_make(&checked->exprs, node->span, EXPR_AND,
						    TYPE_BOOL, object->condition, predicate, NULL)
				    : predicate;
	return object->condition != NULL;
}

/* --- methods --- */

static value *where(struct fay_checked *checked, const struct fay_scope *scope,
		    const struct fay_node *call, value *object)
{
	const struct fay_node *lambda = call->items->value;
	value *v = fay_check_apply(checked, scope, lambda, object->element, "Where");
	const struct fay_expr *predicate =
		v ? fay_check_bool(checked, lambda->a, v, "`Where`") : NULL;
	value *copy =
		predicate ? with_element(checked, object, object->element, object->name) : NULL;
	return copy && fay_check_narrow(checked, lambda->a, copy, predicate) ? copy : NULL;
}

static value *select_method(struct fay_checked *checked, const struct fay_scope *scope,
			    const struct fay_node *call, value *object)
{
	const struct fay_node *lambda = call->items->value;
	value *v = fay_check_apply(checked, scope, lambda, object->element, "Select");
	if (!v)
		return NULL;
	return with_element(checked, object, v, fay_check_inferred_name(lambda->a));
}

static value *group_by_method(struct fay_checked *checked, const struct fay_scope *scope,
			      const struct fay_node *call, value *object)
{
	const struct fay_node *lambda = call->items->value;
	value *key = fay_check_apply(checked, scope, lambda, object->element, "GroupBy");
	value *element = object->element;
	if (key && call->item_count == 2)
		element = fay_check_apply(checked, scope, call->items->next->value, object->element,
					  "GroupBy");
	return key ? group_by(checked, lambda->a, object, key, element) : NULL;
}

static value *order_by(struct fay_checked *checked, const struct fay_scope *scope,
		       const struct fay_node *call, value *object)
{
	const struct fay_node *lambda = call->items->value;
	const char *name = call->a->name;
	value *key = fay_check_apply(checked, scope, lambda, object->element, name);
	bool descending = strstr(name, "Descending") != NULL, then = strncmp(name, "Then", 4) == 0;
	return key && fay_check_order(checked, lambda->a, key, descending, then) ? object : NULL;
}

static value *window(struct fay_checked *checked, const struct fay_scope *scope,
		     const struct fay_node *call, value *object)
{
	const struct fay_node *argument = call->items->value;
	value *count = fay_check_node(checked, scope, argument);
	return count && fay_check_window(checked, argument, count, call->a->name[0] == 'T') ? object
											    : NULL;
}

/* Of rows of groups: at the root. Of events: each element is a key, so that the probe drops
 * repeated ones. */
static value *distinct(struct fay_checked *checked, struct fay_span span, value *object)
{
	if (object->grouped)
		return fay_check_distinct(checked, span, object->element) ? object : NULL;
	if (object->element->kind == VALUE_EVENT)
		return fay_query_fail(
			checked->exprs.query, FAY_E_USAGE, span,
			"no two events are the same: select first what should be distinct");
	if (!fay_check_before_root(checked, span, "`Distinct`"))
		return NULL;
	struct fay_node place = { .kind = NODE_NAME, .span = span };
	struct fay_key **tail = fay_check_keys(checked);
	value *element = add_keys(checked, &place, object->element,
				  object->name ? object->name : "value", &tail);
	value *result = element ? with_element(checked, object, element, object->name) : NULL;
	if (result)
		result->grouped = true;
	return result;
}

static value *distinct_method(struct fay_checked *checked, const struct fay_scope *scope,
			      const struct fay_node *call, value *object)
{
	(void)scope;
	return distinct(checked, call->a->name_span, object);
}

/* KMeans(k, g => VECTOR, g => DIMENSION, g => VALUE) */
static value *kmeans(struct fay_checked *checked, const struct fay_scope *scope,
		     const struct fay_node *call, value *object)
{
	if (!object->grouped)
		return fay_query_fail(
			checked->exprs.query, FAY_E_USAGE, call->a->name_span,
			"`KMeans` applies to groups: a group is one value of one vector");
	value *k = fay_check_node(checked, scope, call->items->value), *parts[3] = { NULL };
	const struct fay_argument *item = call->items->next;
	for (unsigned i = 0; i < 3; i++, item = item->next)
		if (!k || !(parts[i] = fay_check_apply(checked, scope, item->value, object->element,
						       "KMeans")))
			return NULL;
	if (k->kind != VALUE_SCALAR)
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, call->items->value->span,
				      "`KMeans` takes the number of clusters first");
	return with_element(checked, object, fay_check_kmeans(checked, call, k->expr, parts), NULL);
}

static value *unknown_method(struct fay_checked *checked, const struct fay_node *call,
			     const value *object)
{
	static const char *const known[] = { "Count",
					     "Sum",
					     "Min",
					     "Max",
					     "Average",
					     "Histogram",
					     "StdDev",
					     "Quantile",
					     "DistinctCount",
					     "TopK",
					     "First",
					     "Last",
					     "Any",
					     "All",
					     "Where",
					     "Select",
					     "GroupBy",
					     "OrderBy",
					     "ThenBy",
					     "OrderByDescending",
					     "ThenByDescending",
					     "Take",
					     "Skip",
					     "Distinct",
					     "Tumbling",
					     "Sliding",
					     "Every",
					     "WhenFull",
					     "KMeans" };
	static const char *const later[] = { "Join", "ToList", "SelectMany", "Aggregate" };
	struct fay_query *query = checked->exprs.query;
	const char *name = call->a->name;
	bool group = object->kind == VALUE_GROUP;
	for (size_t i = 0; i < COUNT_OF(later); i++)
		if (strcmp(later[i], name) == 0)
			return fay_query_fail(query, FAY_E_REFUSED, call->a->name_span,
					      "`%s` is not supported yet", name);
	if (group && strcmp(name, "Key") == 0)
		return fay_query_fail(query, FAY_E_USAGE, call->span,
				      "`Key` is a field, not a method");
	return fay_query_fail(
		query, FAY_E_USAGE, call->a->name_span, "unknown function `%s` of a %s%s", name,
		group ? "group" : "sequence",
		fay_query_did_you_mean(query, name, known, group ? 16 : COUNT_OF(known)));
}

value *fay_check_method(struct fay_checked *checked, const struct fay_scope *scope,
			const struct fay_node *call, value *object)
{
	static const struct {
		const char *name;
		value *(*check)(struct fay_checked *, const struct fay_scope *,
				const struct fay_node *, value *);
		unsigned least, most; /* arguments */
		const char *takes;
		bool of_groups; /* of one group, too */
	} methods[] = {
		{ "Where", where, 1, 1, "one lambda", true },
		{ "Select", select_method, 1, 1, "one lambda", true },
		{ "GroupBy", group_by_method, 1, 2, "one lambda", false },
		{ "OrderBy", order_by, 1, 1, "one lambda", false },
		{ "OrderByDescending", order_by, 1, 1, "one lambda", false },
		{ "ThenBy", order_by, 1, 1, "one lambda", false },
		{ "ThenByDescending", order_by, 1, 1, "one lambda", false },
		{ "Take", window, 1, 1, "one number", false },
		{ "Skip", window, 1, 1, "one number", false },
		{ "KMeans", kmeans, 4, 4,
		  "the number of clusters and three lambdas: what tells vectors apart, what a "
		  "vector's values, and the value",
		  false },
		{ "Distinct", distinct_method, 0, 0, "nothing", false },
		{ "Tumbling", fay_check_time_window, 1, 1, "one duration", false },
		{ "Sliding", fay_check_time_window, 2, 2,
		  "two durations: how long a window is, and how far apart they begin", false },
		{ "WhenFull", fay_check_when_full, 1, 1, "one of `Block`, `Drop`, `Overwrite`",
		  false },
		{ "Every", fay_check_count_window, 1, 1, "the number of events in a window",
		  false },
	};
	const char *name = call->a->name;
	const struct fay_aggregate_kind *kind = fay_check_aggregate_kind(name);
	if (kind)
		return fay_check_aggregate(checked, scope, call, object, kind);
	for (size_t i = 0; i < COUNT_OF(methods); i++) {
		if (strcmp(methods[i].name, name) != 0 ||
		    (object->kind == VALUE_GROUP && !methods[i].of_groups))
			continue;
		if (call->item_count < methods[i].least || call->item_count > methods[i].most)
			return fay_query_fail(checked->exprs.query, FAY_E_USAGE, call->span,
					      "`%s` takes %s", name, methods[i].takes);
		return methods[i].check(checked, scope, call, object);
	}
	return unknown_method(checked, call, object);
}

/* --- comprehensions --- */

const struct fay_scope *fay_check_bind(struct fay_checked *checked, const struct fay_scope *outer,
				       const char *name, value *v)
{
	struct fay_scope *scope = v ? fay_query_alloc(checked->exprs.query, sizeof(*scope)) : NULL;
	if (scope)
		*scope = (struct fay_scope){ name, v, outer };
	return scope;
}

static value *check_from(struct fay_checked *checked, const struct fay_scope *scope,
			 const struct fay_clause *from)
{
	value *sequence = fay_check_node(checked, scope, from->a);
	if (!sequence)
		return NULL;
	if (sequence->kind != VALUE_SEQUENCE)
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, from->a->span,
				      "`from` needs a source such as "
				      "cluster.Function(\"libc!read\"), but this is %s",
				      fay_check_describe(checked, sequence));
	if (!checked->event_name && sequence->element->kind == VALUE_EVENT)
		checked->event_name = from->name;
	return sequence;
}

static bool check_where(struct fay_checked *checked, const struct fay_scope *scope,
			const struct fay_clause *clause)
{
	value *v = fay_check_node(checked, scope, clause->a);
	const struct fay_expr *expr = fay_check_bool(checked, clause->a, v, "`where`");
	return expr && add_filter(checked, clause->a, expr);
}

static value *check_group(struct fay_checked *checked, const struct fay_scope *scope,
			  const struct fay_clause *clause, value *sequence)
{
	value *element = fay_check_node(checked, scope, clause->a);
	value *key = element ? fay_check_node(checked, scope, clause->b) : NULL;
	return key ? group_by(checked, clause->b, sequence, key, element) : NULL;
}

/* Clauses that leave what is known as it is. */
static value *check_rows(struct fay_checked *checked, const struct fay_scope *scope,
			 const struct fay_clause *clause, value *sequence)
{
	if (clause->kind == CLAUSE_DISTINCT)
		return distinct(checked, clause->span, sequence);
	value *v = fay_check_node(checked, scope, clause->a);
	bool order = clause->kind == CLAUSE_ORDER || clause->kind == CLAUSE_THEN;
	bool fine =
		v && (order ? fay_check_order(checked, clause->a, v, clause->descending,
					      clause->kind == CLAUSE_THEN)
			    : fay_check_window(checked, clause->a, v, clause->kind == CLAUSE_TAKE));
	return fine ? sequence : NULL;
}

value *fay_check_comprehension(struct fay_checked *checked, const struct fay_scope *outer,
			       const struct fay_node *node)
{
	const struct fay_clause *clause = node->clauses;
	const char *name = clause->name; /* of an element */
	value *sequence = check_from(checked, outer, clause);
	const struct fay_scope *scope =
		sequence ? fay_check_bind(checked, outer, clause->name, sequence->element) : NULL;
	while (scope && sequence && (clause = clause->next)) {
		switch (clause->kind) {
		case CLAUSE_LET:
			scope = fay_check_bind(checked, scope, clause->name,
					       fay_check_node(checked, scope, clause->a));
			continue;
		case CLAUSE_WHERE:
			scope = check_where(checked, scope, clause) ? scope : NULL;
			continue;
		case CLAUSE_JOIN:
			scope = fay_check_join(checked, outer, scope, clause, &sequence);
			continue;
		case CLAUSE_GROUP: sequence = check_group(checked, scope, clause, sequence); break;
		case CLAUSE_SELECT: {
			value *v = fay_check_node(checked, scope, clause->a);
			sequence = with_element(checked, sequence, v,
						fay_check_inferred_name(clause->a));
			break;
		}
		default: {
			bool grouped = sequence->grouped;
			sequence = check_rows(checked, scope, clause, sequence);
			/* what is distinct is a group of equal elements: nothing else of an event
			 * is known behind it */
			if (sequence && name && sequence->grouped != grouped)
				scope = fay_check_bind(checked, outer, name, sequence->element);
			continue;
		}
		}
		name = clause->name;
		if (sequence && clause->name)
			scope = fay_check_bind(checked, outer, clause->name, sequence->element);
	}
	return scope ? sequence : NULL;
}

bool fay_query_check(struct fay_checked *checked, const struct fay_node *root)
{
	checked->filters_tail = &checked->filters;
	checked->root_tail = &checked->root;
	struct fay_query *query = checked->exprs.query;
	checked->result = fay_check_extensions(query) ? fay_check_node(checked, NULL, root) : NULL;
	value *result = checked->result;
	if (!result)
		return false;
	if (result->kind == VALUE_SEQUENCE ||
	    (result->kind == VALUE_SCALAR && result->expr->has_aggregate))
		return fay_check_window_used(checked, root->span);
	if (!checked->pattern)
		fay_query_fail(query, FAY_E_USAGE, root->span,
			       "a query begins with a source, as in "
			       "cluster.Function(\"libc!read\").Count()");
	else
		fay_query_fail(query, FAY_E_USAGE, root->span,
			       "a query must result in rows or an aggregate, but this is %s",
			       fay_check_describe(checked, result));
	return false;
}
