/* SPDX-License-Identifier: MIT */
/* Aggregates, of a group or of the whole query. */
#include <string.h>

#include "check_private.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

typedef struct fay_value_node value;

enum needs {
	OF_NOTHING, /* a condition may be given */
	OF_INTEGERS,
	OF_ORDERED,  /* integers or times */
	OF_WORDS,    /* anything of 64 bits */
	OF_ANYTHING, /* also strings */
};

struct fay_aggregate_kind {
	const char *name;
	enum fay_merge merge;
	enum needs needs;
	const char *number; /* what the first argument is, if it is a number */
};

static const struct fay_aggregate_kind kinds[] = {
	{ "Count", FAY_MERGE_COUNT, OF_NOTHING, NULL },
	{ "Sum", FAY_MERGE_SUM, OF_INTEGERS, NULL },
	{ "Min", FAY_MERGE_MIN, OF_ORDERED, NULL },
	{ "Max", FAY_MERGE_MAX, OF_ORDERED, NULL },
	{ "Average", FAY_MERGE_AVERAGE, OF_INTEGERS, NULL },
	{ "Histogram", FAY_MERGE_HIST_LOG2, OF_INTEGERS, NULL },
	{ "StdDev", FAY_MERGE_AVERAGE, OF_INTEGERS, NULL },
	{ "Quantile", FAY_MERGE_QUANTILE, OF_INTEGERS, "which one, such as 0.99" },
	{ "TopK", FAY_MERGE_TOP, OF_WORDS, "how many" },
	{ "DistinctCount", FAY_MERGE_DISTINCT, OF_ANYTHING, NULL },
	{ "First", FAY_MERGE_FIRST, OF_WORDS, NULL },
	{ "Last", FAY_MERGE_LAST, OF_WORDS, NULL },
	{ "Any", FAY_MERGE_COUNT, OF_NOTHING, NULL },
	{ "All", FAY_MERGE_COUNT, OF_NOTHING, NULL },
};

const struct fay_aggregate_kind *fay_check_aggregate_kind(const char *name)
{
	for (size_t i = 0; i < COUNT_OF(kinds); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}

/* One call being checked. */
struct call {
	struct fay_checked *checked;
	const struct fay_aggregate_kind *kind;
	const struct fay_node *node;
	const struct fay_node *lambda; /* or NULL */
	value object;                  /* a copy that conditions may narrow */
	bool of_rows;                  /* over groups: the root does it */
	const struct fay_expr *number; /* the first argument, if the kind has one */
};

static bool is(const struct call *c, const char *name)
{
	return strcmp(c->kind->name, name) == 0;
}

static bool has_type(const struct call *c, enum fay_type type)
{
	switch (c->kind->needs) {
	case OF_ORDERED:
		return type == TYPE_INT || type == TYPE_TIME || (c->of_rows && type == TYPE_REAL);
	case OF_WORDS:
		return type == TYPE_INT || type == TYPE_TIME || type == TYPE_BOOL ||
		       type == TYPE_FUNCTION;
	case OF_ANYTHING:
		return type == TYPE_INT || type == TYPE_TIME || type == TYPE_BOOL ||
		       type == TYPE_FUNCTION || type == TYPE_STRING || type == TYPE_MODULE ||
		       type == TYPE_ADDRESS || type == TYPE_SYMBOL || type == TYPE_STACK;
	default: return type == TYPE_INT || (c->of_rows && type == TYPE_REAL);
	}
}

static const char *needed(const struct call *c)
{
	static const char *const texts[] = {
		[OF_INTEGERS] = "an integer",
		[OF_ORDERED] = "an integer or a time",
		[OF_WORDS] = "an integer, time, bool or function",
		[OF_ANYTHING] = "a scalar",
	};
	return texts[c->kind->needs];
}

/* What is summed, or NULL with the error recorded. */
static const struct fay_expr *read_operand(struct call *c, value *argument)
{
	struct fay_query *query = c->checked->exprs.query;
	struct fay_span span = c->lambda ? c->lambda->a->span : c->node->a->name_span;
	const char *name = c->kind->name;
	if (argument->kind == VALUE_EVENT)
		return fay_query_fail(query, FAY_E_USAGE, span,
				      "`%s` of what? As in `%s(%sx => x.Arg(2))`", name, name,
				      is(c, "Quantile") ? "0.99, "
				      : is(c, "TopK")   ? "10, "
							: "");
	if (argument->kind != VALUE_SCALAR || !has_type(c, argument->expr->type))
		return fay_query_fail(query, FAY_E_USAGE, span, "`%s` needs %s, but this is %s",
				      name, needed(c), fay_check_describe(c->checked, argument));
	if (!c->of_rows && argument->expr->level >= (c->object.level ? c->object.level : 1))
		return fay_query_fail(
			query, FAY_E_USAGE, span,
			"an aggregate of the events in a group cannot use aggregates");
	return argument->expr;
}

/* The arguments: a number where the kind has one, then a lambda. */
static bool read_arguments(struct call *c, const struct fay_scope *scope)
{
	struct fay_query *query = c->checked->exprs.query;
	const struct fay_argument *next = c->node->items;
	if (c->kind->number) {
		value *number = next && next->value->kind != NODE_LAMBDA
					? fay_check_node(c->checked, scope, next->value)
					: NULL;
		if (c->checked->exprs.query->failed)
			return false;
		if (!number || number->kind != VALUE_SCALAR ||
		    !fay_expr_is_constant(number->expr) ||
		    (number->expr->type != TYPE_INT && number->expr->type != TYPE_REAL))
			return fay_query_fail(query, FAY_E_USAGE,
					      next ? next->value->span : c->node->span,
					      "`%s` takes a constant first: %s", c->kind->name,
					      c->kind->number) != NULL;
		c->number = number->expr;
		next = next->next;
	}
	if (next && next->next)
		return fay_query_fail(query, FAY_E_USAGE, c->node->span, "`%s` takes %sone lambda",
				      c->kind->name,
				      c->kind->number ? "a number and " : "") != NULL;
	c->lambda = next ? next->value : NULL;
	return true;
}

/*
 * First and Last of groups that have no order: a group is as early as its first event for First, as
 * late as its last one for Last. Such a time is an aggregate of each grouping before. A group of a
 * join's `into` may be empty: it goes by the time of its row, which is no aggregate.
 */
static bool find_when(struct call *c, struct fay_aggregate *entry)
{
	struct fay_checked *checked = c->checked;
	const struct fay_regroup *regroup = checked->regroups;
	bool first = entry->merge == FAY_MERGE_FIRST;
	if (entry->level < 2)
		return fay_check_has_time(checked, c->node->a->name_span);
	for (unsigned level = 2; level < entry->level; level++)
		regroup = regroup->next;
	if (regroup->ordered)
		return true;
	if (!fay_check_has_time(checked, c->node->a->name_span))
		return false;
	entry->when = fay_check_event_time(checked, c->node->span);
	for (uint8_t level = checked->join && checked->join->into ? 2 : 1;
	     level < entry->level && entry->when; level++) {
		struct fay_aggregate of_group = { .merge = first ? FAY_MERGE_MIN : FAY_MERGE_MAX,
						  .operand = entry->when,
						  .type = TYPE_TIME,
						  .text = first ? "Min" : "Max",
						  .level = level };
		entry->when = fay_expr_aggregate(&checked->exprs, of_group, TYPE_TIME);
	}
	return entry->when != NULL;
}

/* The plain aggregate over what is left of the object, or for groups the root's fold. */
static const struct fay_expr *plain(struct call *c, const char *text, enum fay_merge merge,
				    const struct fay_expr *operand)
{
	struct fay_checked *checked = c->checked;
	struct fay_aggregate entry = { .merge = merge,
				       .operand = operand,
				       .condition = c->object.condition,
				       .type = operand ? operand->type : TYPE_INT,
				       .text = text,
				       .level = c->object.level ? c->object.level : 1 };
	if (c->of_rows) {
		value *folded =
			fay_check_fold(checked, c->node->a->name_span, text, merge, operand);
		return folded ? folded->expr : NULL;
	}
	if (entry.condition && fay_expr_is_constant(entry.condition) && entry.condition->value)
		entry.condition = NULL;
	if (merge == FAY_MERGE_DISTINCT)
		entry.type = TYPE_INT;
	if (merge == FAY_MERGE_TOP)
		entry.k = (uint32_t)c->number->value;
	if ((merge == FAY_MERGE_FIRST || merge == FAY_MERGE_LAST) && !find_when(c, &entry))
		return NULL;
	enum fay_type type = merge == FAY_MERGE_AVERAGE     ? TYPE_REAL
			     : merge == FAY_MERGE_HIST_LOG2 ? TYPE_HISTOGRAM
			     : merge == FAY_MERGE_TOP || merge == FAY_MERGE_QUANTILE ? TYPE_LIST
										     : entry.type;
	return fay_expr_aggregate(&checked->exprs, entry, type);
}

/* Count, Any, All: how many there are for which a condition holds, or does not. */
static const struct fay_expr *counted(struct call *c, const struct fay_scope *scope)
{
	struct fay_exprs *exprs = &c->checked->exprs;
	if (!c->lambda && is(c, "All"))
		return fay_query_fail(exprs->query, FAY_E_USAGE, c->node->span,
				      "`All` takes one lambda");
	if (c->lambda) {
		value *v = fay_check_apply(c->checked, scope, c->lambda, c->object.element,
					   c->kind->name);
		const char *what = fay_query_format(exprs->query, "`%s`", c->kind->name);
		const struct fay_expr *predicate =
			fay_check_bool(c->checked, c->lambda->a, v, what);
		if (predicate && is(c, "All"))
			predicate = fay_expr_make(exprs, c->lambda->a->span, EXPR_NOT, TYPE_BOOL,
						  predicate, NULL, NULL);
		if (!predicate ||
		    !fay_check_narrow(c->checked, c->lambda->a, &c->object, predicate))
			return NULL;
	}
	const struct fay_expr *count = plain(c, c->kind->name, FAY_MERGE_COUNT, NULL);
	const struct fay_expr *zero = fay_expr_int(exprs, TYPE_INT, 0);
	if (!count || !zero || is(c, "Count"))
		return count;
	return fay_expr_make(exprs, c->node->span, is(c, "Any") ? EXPR_GT : EXPR_EQ, TYPE_BOOL,
			     count, zero, NULL);
}

/* The sum of a part of x. */
static const struct fay_expr *sum_of(struct call *c, const struct fay_expr *part)
{
	return part ? plain(c, "Sum", FAY_MERGE_SUM, part) : NULL;
}

static const struct fay_expr *pair(struct call *c, const struct fay_expr *a,
				   const struct fay_expr *b)
{
	return a && b ? fay_expr_make(&c->checked->exprs, c->node->span, EXPR_PAIR, TYPE_INT, a, b,
				      NULL)
		      : NULL;
}

/*
 * The square root of E(x^2) - E(x)^2, from sums that are exact: of x's two halves, and of the four
 * 32-bit parts of x * x, so that neither large values nor a small deviation about a large mean lose
 * digits.
 */
static const struct fay_expr *deviation(struct call *c, const struct fay_expr *x)
{
	struct fay_exprs *exprs = &c->checked->exprs;
	struct fay_span span = c->node->span;
	const struct fay_expr *squares[4];
	if (c->of_rows)
		return fay_query_fail(exprs->query, FAY_E_REFUSED, span,
				      "`StdDev` over the groups is not supported yet");
	const struct fay_expr *ones = fay_expr_int(exprs, TYPE_INT, UINT32_MAX),
			      *half = fay_expr_int(exprs, TYPE_INT, 32);
	if (!ones || !half)
		return NULL;
	const struct fay_expr *low =
		sum_of(c, fay_expr_make(exprs, span, EXPR_BIT_AND, TYPE_INT, x, ones, NULL));
	const struct fay_expr *high =
		sum_of(c, fay_expr_make(exprs, span, EXPR_SHR, TYPE_INT, x, half, NULL));
	const struct fay_expr *first =
		pair(c, plain(c, "Count", FAY_MERGE_COUNT, NULL), pair(c, low, high));
	for (int i = 0; i < 4; i++)
		squares[i] = sum_of(c, fay_expr_square_part(exprs, x, i));
	const struct fay_expr *second = pair(c, squares[0], squares[1]),
			      *third = pair(c, squares[2], squares[3]);
	if (!first || !second || !third)
		return NULL;
	const struct fay_expr *result =
		fay_expr_make(exprs, span, EXPR_DEVIATION, TYPE_REAL, first, second, third);
	return result;
}

/* Durations of all calls together are less than 2^63 ns, 292 years, and so many numbers of
 * processes are not summed up. */
static bool sum_is_small(const struct fay_expr *x)
{
	static const char *const small[] = { "Duration", "pid", "tid", "cpu" };
	for (size_t i = 0; x->op == EXPR_FIELD && i < COUNT_OF(small); i++)
		if (!strcmp(fay_fields[x->value].name, small[i]))
			return true;
	return false;
}

/* From sums of whole values and of their upper halves: together they are exact beyond 64 bits. Over
 * groups the root adds up with more digits by itself. */
static const struct fay_expr *average(struct call *c, const struct fay_expr *x)
{
	struct fay_exprs *exprs = &c->checked->exprs;
	struct fay_span span = c->node->span;
	const struct fay_expr *wrapped = plain(c, "Average", FAY_MERGE_AVERAGE, x);
	if (c->of_rows || !wrapped || sum_is_small(x))
		return wrapped;
	const struct fay_expr *half = fay_expr_int(exprs, TYPE_INT, 32);
	const struct fay_expr *high =
		half ? sum_of(c, fay_expr_make(exprs, span, EXPR_SHR, TYPE_INT, x, half, NULL))
		     : NULL;
	return high ? fay_expr_make(exprs, span, EXPR_AVERAGE, TYPE_REAL, wrapped, high, NULL)
		    : NULL;
}

static const struct fay_expr *quantile(struct call *c, const struct fay_expr *operand)
{
	struct fay_exprs *exprs = &c->checked->exprs;
	double q = c->number->type == TYPE_REAL ? c->number->real : (double)c->number->value;
	if (!(q >= 0 && q <= 1))
		return fay_query_fail(exprs->query, FAY_E_USAGE, c->node->items->value->span,
				      "a quantile is a number from 0 to 1: 0.5 is the median");
	const struct fay_expr *sketch = plain(c, "Quantile", FAY_MERGE_QUANTILE, operand);
	return sketch && !c->of_rows ? fay_expr_quantile(exprs, sketch, q) : NULL;
}

static const struct fay_expr *measured(struct call *c, const struct fay_scope *scope)
{
	value *argument = c->lambda ? fay_check_apply(c->checked, scope, c->lambda,
						      c->object.element, c->kind->name)
				    : c->object.element;
	const struct fay_expr *operand = argument ? read_operand(c, argument) : NULL;
	if (!operand)
		return NULL;
	if (is(c, "StdDev"))
		return deviation(c, operand);
	if (is(c, "Average"))
		return average(c, operand);
	if (is(c, "Quantile"))
		return quantile(c, operand);
	if (is(c, "TopK") &&
	    (c->number->type != TYPE_INT || c->number->value < 1 || c->number->value > FAY_TOP_MAX))
		return fay_query_fail(c->checked->exprs.query, FAY_E_USAGE,
				      c->node->items->value->span,
				      "`TopK` keeps from 1 to %u values", FAY_TOP_MAX);
	return plain(c, c->kind->name, c->kind->merge, operand);
}

value *fay_check_aggregate(struct fay_checked *checked, const struct fay_scope *scope,
			   const struct fay_node *call, const value *on,
			   const struct fay_aggregate_kind *kind)
{
	struct call c = { .checked = checked, .kind = kind, .node = call, .object = *on };
	c.of_rows = on->kind == VALUE_SEQUENCE && on->grouped;
	if (on->kind == VALUE_SEQUENCE && !on->grouped &&
	    !fay_check_before_root(checked, call->a->name_span,
				   fay_query_format(checked->exprs.query, "`%s`", kind->name)))
		return NULL;
	if (!read_arguments(&c, scope))
		return NULL;
	const struct fay_expr *expr =
		kind->needs == OF_NOTHING ? counted(&c, scope) : measured(&c, scope);
	checked->result_name = kind->name;
	return fay_check_scalar(checked, expr);
}
