/* SPDX-License-Identifier: MIT */
/* Operators: what types their operands must have, and which type comes out. */
#include "check_private.h"

#include <string.h>

/* bytes of a string that a long one is compared with: code is made for each */
#define LITERAL_MAX 256u

static const struct {
	enum fay_operator token;
	enum fay_expr_op op;
	enum { ARITHMETIC, EQUALITY, ORDER, LOGIC } group;
} binary_operators[] = {
	{ OPERATOR_ADD, EXPR_ADD, ARITHMETIC },
	{ OPERATOR_SUB, EXPR_SUB, ARITHMETIC },
	{ OPERATOR_MUL, EXPR_MUL, ARITHMETIC },
	{ OPERATOR_DIV, EXPR_DIV, ARITHMETIC },
	{ OPERATOR_MOD, EXPR_MOD, ARITHMETIC },
	{ OPERATOR_SHL, EXPR_SHL, ARITHMETIC },
	{ OPERATOR_SHR, EXPR_SHR, ARITHMETIC },
	{ OPERATOR_SHR_LOGICAL, EXPR_SHR_LOGICAL, ARITHMETIC },
	{ OPERATOR_BIT_AND, EXPR_BIT_AND, ARITHMETIC },
	{ OPERATOR_BIT_OR, EXPR_BIT_OR, ARITHMETIC },
	{ OPERATOR_BIT_XOR, EXPR_BIT_XOR, ARITHMETIC },
	{ OPERATOR_EQ, EXPR_EQ, EQUALITY },
	{ OPERATOR_NE, EXPR_NE, EQUALITY },
	{ OPERATOR_LT, EXPR_LT, ORDER },
	{ OPERATOR_LE, EXPR_LE, ORDER },
	{ OPERATOR_GT, EXPR_GT, ORDER },
	{ OPERATOR_GE, EXPR_GE, ORDER },
	{ OPERATOR_AND, EXPR_AND, LOGIC },
	{ OPERATOR_OR, EXPR_OR, LOGIC },
};

/* What an operand must be: a scalar that the probe can compute with. */
static const struct fay_expr *operand(struct fay_checked *checked, const struct fay_scope *scope,
				      const struct fay_node *node)
{
	struct fay_value_node *value = fay_check_node(checked, scope, node);
	if (!value)
		return NULL;
	struct fay_query *query = checked->exprs.query;
	if (value->kind != VALUE_SCALAR)
		return fay_query_fail(query, FAY_E_USAGE, node->span,
				      "an operator needs a number, string or time, but this is %s",
				      fay_check_describe(checked, value));
	return value->expr;
}

static bool is_name_hash(enum fay_type type)
{
	return type == TYPE_FUNCTION || type == TYPE_MODULE;
}

/* Of a string that a pointer points to, compared with 0: the pointer. */
static const struct fay_expr *or_pointer(const struct fay_expr *expr, const struct fay_expr *other)
{
	bool null = other->type == TYPE_INT && fay_expr_is_constant(other) && !other->value;
	return null && expr->type == TYPE_STRING && expr->op == EXPR_MEMBER && !*expr->name
		       ? expr->a
		       : expr;
}

/* Whether events of the kernel can have this name; false with the error recorded. */
static bool is_of_source(struct fay_checked *checked, const struct fay_node *node, const char *name,
			 const struct fay_expr *other)
{
	if (other->op == EXPR_SIDE) {
		const struct fay_check_source *side =
			&checked->join->sources[FAY_LEFT + other->value];
		return fay_check_kernel_name(checked, node, side->kind, side->kernel, name);
	}
	return (checked->join && !checked->join->active) ||
	       fay_check_kernel_name(checked, node, checked->kind, checked->kernel, name);
}

/* A string constant compared with a function or module stands for its name's hash, with an
 * enumeration for its constant. */
static const struct fay_expr *adapt(struct fay_checked *checked, const struct fay_node *node,
				    const struct fay_expr *expr, const struct fay_expr *other)
{
	struct fay_query *query = checked->exprs.query;
	if (expr->type != TYPE_STRING || !fay_expr_is_constant(expr))
		return expr;
	if (is_name_hash(other->type)) {
		if (fay_check_has_bang(expr->string))
			return fay_query_fail(query, FAY_E_USAGE, node->span,
					      "a %s is compared by its bare name, without `!`",
					      fay_type_name(other->type));
		if (strstr(expr->string, "::"))
			return fay_query_fail(query, FAY_E_USAGE, node->span,
					      "a function is compared by its symbol's name (as nm "
					      "prints it), and no symbol has `::`; the name goes "
					      "into the source: Function(\"*!%s\")",
					      expr->string);
		if (other->type == TYPE_FUNCTION &&
		    !is_of_source(checked, node, expr->string, other))
			return NULL;
		return fay_expr_int(&checked->exprs, other->type,
				    (int64_t)fay_name_hash(expr->string));
	}
	if (other->type == TYPE_INT && other->enumeration && other->enumeration != fay_pointers) {
		int64_t value;
		if (!fay_check_enumerator(checked, node, other->enumeration, expr->string, &value))
			return NULL;
		return fay_expr_int(&checked->exprs, TYPE_INT, value);
	}
	if (other->type == TYPE_STRING && fay_expr_is_long(other)) {
		if (expr->length > LITERAL_MAX)
			return fay_query_fail(query, FAY_E_LIMIT, node->span,
					      "a string is compared with at most %u bytes",
					      LITERAL_MAX);
	} else if (other->type == TYPE_STRING && expr->length >= FAY_COMM_SIZE) {
		return fay_query_fail(
			query, FAY_E_USAGE, node->span, "%s %d bytes, so it is never this%s",
			fay_expr_is_comm(other) ? "a thread's name has at most"
						: "a string is cut to",
			FAY_COMM_SIZE - 1,
			fay_expr_is_comm(other) ? ""
						: ": compare it with what fits, by `StartsWith`");
	}
	return expr;
}

static bool is_number(const struct fay_expr *expr)
{
	return expr->type == TYPE_INT || expr->type == TYPE_REAL;
}

static const struct fay_expr *mismatch(struct fay_checked *checked, const struct fay_node *node,
				       const struct fay_expr *a, const struct fay_expr *b)
{
	const char *extra = "";
	if ((a->type == TYPE_BOOL && b->type == TYPE_INT) ||
	    (a->type == TYPE_INT && b->type == TYPE_BOOL))
		extra = "; is a bracket missing? Comparisons bind tighter than & | ^";
	if (is_number(a) && is_number(b))
		extra = "; a probe computes with integers, real numbers are for computing with "
			"aggregates";
	return fay_query_fail(checked->exprs.query, FAY_E_USAGE, node->span,
			      "`%s` does not go with %s and %s%s", fay_operator_text(node->op),
			      fay_type_name(a->type), fay_type_name(b->type), extra);
}

/* Computing with real numbers: at the root only, that is, where an aggregate is among the operands.
 * */
static bool is_real(const struct fay_expr *a, const struct fay_expr *b)
{
	return is_number(a) && is_number(b) && (a->type == TYPE_REAL || b->type == TYPE_REAL) &&
	       (a->has_aggregate || b->has_aggregate);
}

/* Two times differ by nanoseconds; nanoseconds are added to a time or taken from it. */
static bool is_time_arithmetic(enum fay_expr_op op, const struct fay_expr *a,
			       const struct fay_expr *b, enum fay_type *type)
{
	bool difference = op == EXPR_SUB && a->type == TYPE_TIME && b->type == TYPE_TIME;
	bool moved =
		(op == EXPR_SUB || op == EXPR_ADD) && a->type == TYPE_TIME && b->type == TYPE_INT;
	*type = difference ? TYPE_INT : TYPE_TIME;
	return difference || moved;
}

const struct fay_expr *fay_check_binary(struct fay_checked *checked, const struct fay_scope *scope,
					const struct fay_node *node)
{
	struct fay_exprs *exprs = &checked->exprs;
	size_t i = 0;
	while (binary_operators[i].token != node->op)
		i++;
	enum fay_expr_op op = binary_operators[i].op;
	const struct fay_expr *a = operand(checked, scope, node->a);
	const struct fay_expr *b = a ? operand(checked, scope, node->b) : NULL;
	if (b && binary_operators[i].group == EQUALITY) {
		a = or_pointer(a, b);
		b = or_pointer(b, a);
	}
	if (b && (a = adapt(checked, node->a, a, b)))
		b = adapt(checked, node->b, b, a);
	if (!a || !b)
		return NULL;
	bool real = is_real(a, b);
	bool fine = a->type == b->type && a->type != TYPE_REAL;
	enum fay_type type = TYPE_BOOL;
	switch (binary_operators[i].group) {
	case ARITHMETIC:
		if (is_time_arithmetic(op, a, b, &type))
			return fay_expr_make(exprs, node->span, op, type, a, b, NULL);
		type = real ? TYPE_REAL : a->type;
		fine = fine && (a->type == TYPE_INT ||
				(a->type == TYPE_BOOL &&
				 (op == EXPR_BIT_AND || op == EXPR_BIT_OR || op == EXPR_BIT_XOR)));
		fine |= real &&
			(op == EXPR_ADD || op == EXPR_SUB || op == EXPR_MUL || op == EXPR_DIV);
		break;
	case ORDER: fine = real || (fine && (a->type == TYPE_INT || a->type == TYPE_TIME)); break;
	case LOGIC: fine = fine && a->type == TYPE_BOOL; break;
	case EQUALITY:
		fine = (fine || real) && a->type != TYPE_HISTOGRAM && a->type != TYPE_LIST &&
		       a->type != TYPE_STACK;
		break;
	}
	if (!fine)
		return mismatch(checked, node, a, b);
	return fay_expr_make(exprs, node->span, op, type, a, b, NULL);
}

const struct fay_expr *fay_check_unary(struct fay_checked *checked, const struct fay_scope *scope,
				       const struct fay_node *node)
{
	const struct fay_expr *a = operand(checked, scope, node->a);
	if (!a)
		return NULL;
	if (a->type == TYPE_REAL && fay_expr_is_constant(a) && node->op == OPERATOR_SUB)
		return fay_expr_real(&checked->exprs, -a->real);
	enum fay_type needed = node->op == OPERATOR_NOT ? TYPE_BOOL : TYPE_INT;
	bool real = a->type == TYPE_REAL && a->has_aggregate &&
		    (node->op == OPERATOR_SUB || node->op == OPERATOR_ADD);
	if (a->type != needed && !real)
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, node->span,
				      "`%s` needs %s %s, but this is %s %s",
				      fay_operator_text(node->op), needed == TYPE_INT ? "an" : "a",
				      fay_type_name(needed), a->type == TYPE_INT ? "an" : "a",
				      fay_type_name(a->type));
	if (node->op == OPERATOR_ADD)
		return a;
	enum fay_expr_op op = node->op == OPERATOR_SUB   ? EXPR_NEG
			      : node->op == OPERATOR_NOT ? EXPR_NOT
							 : EXPR_BIT_NOT;
	return fay_expr_make(&checked->exprs, node->span, op, a->type, a, NULL, NULL);
}

static bool is_too_long(const struct fay_expr *expr)
{
	return expr->type == TYPE_STRING && fay_expr_is_constant(expr) &&
	       expr->length >= FAY_COMM_SIZE;
}

const struct fay_expr *fay_check_cond(struct fay_checked *checked, const struct fay_scope *scope,
				      const struct fay_node *node)
{
	const struct fay_expr *a = operand(checked, scope, node->a);
	const struct fay_expr *b = a ? operand(checked, scope, node->b) : NULL;
	const struct fay_expr *c = b ? operand(checked, scope, node->c) : NULL;
	if (c && (b = adapt(checked, node->b, b, c)))
		c = adapt(checked, node->c, c, b);
	if (!b || !c)
		return NULL;
	if (is_too_long(b) || is_too_long(c))
		return fay_query_fail(checked->exprs.query, FAY_E_REFUSED, node->span,
				      "a string that is written in a query is a value only up to "
				      "%d bytes",
				      FAY_COMM_SIZE - 1);
	if (a->type != TYPE_BOOL)
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, node->a->span,
				      "the condition of `? :` must be a bool, but this is %s %s",
				      a->type == TYPE_INT ? "an" : "a", fay_type_name(a->type));
	bool real =
		is_real(b, c) || (a->has_aggregate && b->type == TYPE_REAL && c->type == TYPE_REAL);
	if ((b->type != c->type || b->type == TYPE_REAL || b->type == TYPE_HISTOGRAM ||
	     b->type == TYPE_LIST || b->type == TYPE_STACK) &&
	    !real)
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, node->span,
				      "the sides of `? :` must be of one type, not %s and %s",
				      fay_type_name(b->type), fay_type_name(c->type));
	return fay_expr_make(&checked->exprs, node->span, EXPR_COND, real ? TYPE_REAL : b->type, a,
			     b, c);
}
