/* SPDX-License-Identifier: MIT */
/* What is left to the root: conditions on aggregates, order, Take, groups of groups. */
#include "check_private.h"

#include <string.h>

static struct fay_root_op *add_op(struct fay_checked *checked)
{
	struct fay_root_op *op = fay_query_alloc(checked->exprs.query, sizeof(*op));
	if (!op)
		return NULL;
	*checked->root_tail = op;
	checked->root_tail = &op->next;
	return op;
}

static struct fay_regroup *last_regroup(const struct fay_checked *checked)
{
	struct fay_regroup *regroup = checked->regroups;
	while (regroup && regroup->next)
		regroup = regroup->next;
	return regroup;
}

/* The operations on the last grouping's rows. */
static struct fay_root_op *operations(const struct fay_checked *checked)
{
	const struct fay_regroup *regroup = last_regroup(checked);
	return regroup ? regroup->root : checked->root;
}

/* The last operation, or NULL. There are few. */
static struct fay_root_op *last_op(const struct fay_checked *checked)
{
	struct fay_root_op *op = operations(checked);
	while (op && op->next)
		op = op->next;
	return op;
}

/* What is done with a row depends on which others there are. */
static bool sees_others(const struct fay_root_op *op)
{
	return op->kind == ROOT_TAKE || op->kind == ROOT_SKIP || op->kind == ROOT_KMEANS;
}

bool fay_check_at_root(const struct fay_checked *checked, const struct fay_expr *condition)
{
	if (condition->has_aggregate || checked->regroups)
		return true;
	for (const struct fay_root_op *op = checked->root; op; op = op->next)
		if (sees_others(op))
			return true;
	return false;
}

bool fay_check_root_filter(struct fay_checked *checked, const struct fay_expr *condition)
{
	struct fay_root_op *op = add_op(checked);
	if (op) {
		op->kind = ROOT_FILTER;
		op->expr = condition;
	}
	return op != NULL;
}

static bool has_order(enum fay_type type)
{
	return type != TYPE_HISTOGRAM && type != TYPE_LIST;
}

static bool append_order(struct fay_checked *checked, struct fay_root_op *op,
			 const struct fay_expr *expr, bool descending)
{
	struct fay_order *order = fay_query_alloc(checked->exprs.query, sizeof(*order));
	if (!order)
		return false;
	*order = (struct fay_order){ .expr = expr, .descending = descending };
	struct fay_order **tail = &op->orders;
	while (*tail)
		tail = &(*tail)->next;
	*tail = order;
	return true;
}

bool fay_check_order(struct fay_checked *checked, const struct fay_node *node,
		     const struct fay_value_node *key, bool descending, bool then)
{
	struct fay_query *query = checked->exprs.query;
	struct fay_root_op *op = then ? last_op(checked) : NULL;
	if (key->kind != VALUE_SCALAR || !has_order(key->expr->type) ||
	    key->expr->type == TYPE_STACK)
		return fay_query_fail(query, FAY_E_USAGE, node->span,
				      "rows are ordered by a number, string, time or function, but "
				      "this is %s",
				      fay_check_describe(checked, key)) != NULL;
	if (then && (!op || op->kind != ROOT_ORDER))
		return fay_query_fail(query, FAY_E_USAGE, node->span,
				      "`ThenBy` follows `OrderBy`") != NULL;
	if (!op) {
		op = add_op(checked);
		if (!op)
			return false;
		op->kind = ROOT_ORDER;
	}
	return append_order(checked, op, key->expr, descending);
}

bool fay_check_window(struct fay_checked *checked, const struct fay_node *node,
		      const struct fay_value_node *count, bool take)
{
	const char *name = take ? "Take" : "Skip";
	if (count->kind != VALUE_SCALAR || count->expr->type != TYPE_INT ||
	    !fay_expr_is_constant(count->expr) || count->expr->value < 0)
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, node->span,
				      "`%s` takes a number of rows, a constant from 0 up",
				      name) != NULL;
	struct fay_root_op *op = add_op(checked);
	if (op) {
		op->kind = take ? ROOT_TAKE : ROOT_SKIP;
		op->count = (uint64_t)count->expr->value;
	}
	return op != NULL;
}

/* The scalars of an element, one after the other. Records are as deep as the text nests them. */
static bool add_columns(struct fay_checked *checked, struct fay_span span, struct fay_root_op *op,
			const struct fay_value_node *v)
{
	if (v->kind == VALUE_RECORD) {
		for (const struct fay_member *m = v->members; m; m = m->next)
			if (!add_columns(checked, span, op, m->value))
				return false;
		return true;
	}
	if (v->kind == VALUE_SCALAR && has_order(v->expr->type))
		return append_order(checked, op, v->expr, false);
	return fay_query_fail(checked->exprs.query, FAY_E_USAGE, span,
			      "rows with %s in them cannot be compared",
			      fay_check_describe(checked, v)) != NULL;
}

bool fay_check_distinct(struct fay_checked *checked, struct fay_span span,
			const struct fay_value_node *element)
{
	struct fay_root_op *op = add_op(checked);
	if (!op)
		return false;
	op->kind = ROOT_DISTINCT;
	return add_columns(checked, span, op, element);
}

static bool add_member(struct fay_checked *checked, struct fay_value_node *record, const char *name,
		       struct fay_value_node *v)
{
	struct fay_member *member =
		v ? fay_query_alloc(checked->exprs.query, sizeof(*member)) : NULL;
	if (!member)
		return false;
	*member = (struct fay_member){ .name = name, .value = v };
	struct fay_member **tail = &record->members;
	while (*tail)
		tail = &(*tail)->next;
	*tail = member;
	return true;
}

/* Whether something of this kind, a ROOT_, is done with the last grouping's rows. */
static bool has_op(const struct fay_checked *checked, unsigned kind)
{
	for (const struct fay_root_op *op = operations(checked); op; op = op->next)
		if (op->kind == kind)
			return true;
	return false;
}

/* `role` of a vector's parts: 0 what tells vectors apart, 1 what tells a vector's values apart, 2
 * the value. */
static bool fits_kmeans(const struct fay_value_node *v, unsigned role)
{
	if (v->kind != VALUE_SCALAR)
		return false;
	return role < 2 ? has_order(v->expr->type)
			: v->expr->type == TYPE_INT || v->expr->type == TYPE_REAL;
}

struct fay_value_node *fay_check_kmeans(struct fay_checked *checked, const struct fay_node *call,
					const struct fay_expr *k,
					struct fay_value_node *const parts[3])
{
	static const char *const names[] = { "Vector", "Dimension", "Value" };
	static const char *const wanted[] = {
		"a number, string, time or function that tells vectors apart",
		"a number, string, time or function that tells a vector's values apart", "a number"
	};
	struct fay_query *query = checked->exprs.query;
	if (k->type != TYPE_INT || !fay_expr_is_constant(k) || k->value < 1 ||
	    k->value > FAY_KMEANS_CLUSTERS_MAX)
		return fay_query_fail(
			query, FAY_E_USAGE, call->items->value->span,
			"`KMeans` takes a number of clusters, a constant from 1 to %u",
			FAY_KMEANS_CLUSTERS_MAX);
	if (has_op(checked, ROOT_KMEANS))
		return fay_query_fail(query, FAY_E_USAGE, call->a->name_span,
				      "these rows already have clusters: group them first");
	struct fay_root_op *op = add_op(checked);
	struct fay_value_node *record = op ? fay_check_value(checked, VALUE_RECORD) : NULL;
	if (!record)
		return NULL;
	op->kind = ROOT_KMEANS;
	op->count = (uint64_t)k->value;
	const struct fay_argument *item = call->items->next;
	for (unsigned i = 0; i < 3; i++, item = item->next) {
		if (!fits_kmeans(parts[i], i))
			return fay_query_fail(query, FAY_E_USAGE, item->value->span,
					      "`KMeans` needs %s here, but this is %s", wanted[i],
					      fay_check_describe(checked, parts[i]));
		if (!append_order(checked, op, parts[i]->expr, false) ||
		    !add_member(checked, record, names[i], parts[i]))
			return NULL;
	}
	struct fay_value_node *label = fay_check_scalar(
		checked, fay_expr_label(&checked->exprs, fay_check_level(checked)));
	return add_member(checked, record, "Cluster", label) ? record : NULL;
}

struct fay_value_node *fay_check_fold(struct fay_checked *checked, struct fay_span span,
				      const char *text, enum fay_merge merge,
				      const struct fay_expr *operand)
{
	if (merge > FAY_MERGE_AVERAGE)
		return fay_query_fail(checked->exprs.query, FAY_E_REFUSED, span,
				      "`%s` over the groups is not supported yet; inside the "
				      "select use it on the group, as in `g.%s(...)`",
				      text, text);
	struct fay_root_op *op = add_op(checked);
	if (!op)
		return NULL;
	op->kind = ROOT_FOLD;
	op->merge = merge;
	op->expr = operand;
	op->text = text;
	enum fay_type type = merge == FAY_MERGE_AVERAGE ? TYPE_REAL
			     : operand                  ? operand->type
							: TYPE_INT;
	checked->result_name = text;
	return fay_check_scalar(checked, fay_expr_folded(&checked->exprs, type));
}

bool fay_check_before_root(struct fay_checked *checked, struct fay_span span, const char *what)
{
	static const char *const names[] = {
		[ROOT_FILTER] = "a condition on aggregates",
		[ROOT_ORDER] = "an order",
		[ROOT_DISTINCT] = "`Distinct`",
		[ROOT_TAKE] = "`Take`",
		[ROOT_SKIP] = "`Skip`",
		[ROOT_FOLD] = "an aggregate",
		[ROOT_KMEANS] = "`KMeans`",
	};
	if (!operations(checked))
		return true;
	return fay_query_fail(checked->exprs.query, FAY_E_REFUSED, span,
			      "%s after %s is not supported yet", what,
			      names[last_op(checked)->kind]) != NULL;
}

struct fay_key **fay_check_keys(struct fay_checked *checked)
{
	struct fay_regroup *regroup = last_regroup(checked);
	struct fay_key **tail = regroup ? &regroup->keys : &checked->keys;
	while (*tail)
		tail = &(*tail)->next;
	return tail;
}

/* The rows of each window are grouped by themselves. */
static bool regroup_window(struct fay_checked *checked, struct fay_regroup *regroup)
{
	struct fay_window *window = &checked->window;
	struct fay_key *key = fay_query_alloc(checked->exprs.query, sizeof(*key));
	const struct fay_expr *before =
		key ? fay_expr_key(&checked->exprs, window->shown, fay_check_level(checked)) : NULL;
	if (!before)
		return false;
	*key = (struct fay_key){ .name = "window", .expr = before };
	regroup->keys = key;
	window->shown = fay_expr_key(&checked->exprs, before, fay_check_level(checked) + 1);
	return window->shown != NULL;
}

bool fay_check_regroup(struct fay_checked *checked, struct fay_span span)
{
	struct fay_regroup *last = last_regroup(checked),
			   *regroup = fay_query_alloc(checked->exprs.query, sizeof(*regroup));
	if (!regroup)
		return false;
	if (fay_check_level(checked) == FAY_GROUPINGS_MAX)
		return fay_query_fail(checked->exprs.query, FAY_E_LIMIT, span,
				      "a query may group at most %u times",
				      FAY_GROUPINGS_MAX) != NULL;
	if (checked->window.step && !regroup_window(checked, regroup))
		return false;
	regroup->ordered = has_op(checked, ROOT_ORDER);
	*(last ? &last->next : &checked->regroups) = regroup;
	checked->regroup_count++;
	checked->root_tail = &regroup->root;
	return true;
}
