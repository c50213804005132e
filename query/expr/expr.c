/* SPDX-License-Identifier: MIT */
/* Operations on typed expressions: hash-consing, limits and simplification. */
#include "expr_private.h"

#include "fay/extension.h"

#include <string.h>

static uint32_t hash_of(const struct fay_expr *expr)
{
	uint64_t words[] = {
		(uint64_t)expr->op << 8 | expr->type,
		expr->a ? expr->a->id + 1u : 0,
		expr->b ? expr->b->id + 1u : 0,
		expr->c ? expr->c->id + 1u : 0,
		(uint64_t)expr->value,
		expr->length,
	};
	uint64_t hash = 0;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 29;
	}
	return (uint32_t)(hash >> 32);
}

static bool same_aggregate(const struct fay_aggregate *a, const struct fay_aggregate *b)
{
	if (!a || !b)
		return a == b;
	return a->merge == b->merge && a->operand == b->operand && a->condition == b->condition &&
	       a->when == b->when && a->k == b->k && a->level == b->level;
}

static bool same(const struct fay_expr *a, const struct fay_expr *b)
{
	return a->op == b->op && a->type == b->type && a->a == b->a && a->b == b->b &&
	       a->c == b->c && a->value == b->value && a->enumeration == b->enumeration &&
	       memcmp(&a->real, &b->real, sizeof(a->real)) == 0 && a->length == b->length &&
	       (a->length == 0 || !a->string || memcmp(a->string, b->string, a->length) == 0) &&
	       same_aggregate(a->aggregate, b->aggregate);
}

const struct fay_expr *fay_expr_intern(struct fay_exprs *exprs, const struct fay_expr *wanted)
{
	struct fay_expr **bucket = &exprs->buckets[hash_of(wanted) % FAY_EXPR_BUCKETS];
	for (struct fay_expr *expr = *bucket; expr; expr = expr->next)
		if (same(expr, wanted))
			return expr;
	struct fay_expr *expr = fay_query_alloc(exprs->query, sizeof(*expr));
	if (!expr)
		return NULL;
	*expr = *wanted;
	expr->id = exprs->count++;
	expr->depth = 1;
	expr->operations = 1;
	expr->has_aggregate =
		expr->op == EXPR_AGGREGATE || expr->op == EXPR_FOLDED || expr->op == EXPR_LABEL;
	expr->level = expr->op == EXPR_AGGREGATE ? expr->aggregate->level
		      : expr->op == EXPR_FOLDED  ? FAY_GROUPINGS_MAX
		      : expr->op == EXPR_LABEL   ? (uint8_t)expr->value
						 : 0;
	const struct fay_expr *children[] = { expr->a, expr->b, expr->c };
	for (unsigned i = 0; i < 3; i++) {
		if (!children[i])
			continue;
		expr->operations += children[i]->operations;
		expr->has_aggregate |= children[i]->has_aggregate;
		expr->level = children[i]->level > expr->level ? children[i]->level : expr->level;
		if (children[i]->depth >= expr->depth)
			expr->depth = children[i]->depth + 1;
	}
	expr->next = *bucket;
	*bucket = expr;
	return expr;
}

/* The operand that says of which side the result is, if all that are not constant are of the same;
 * else NULL. */
static const struct fay_expr *common_side(const struct fay_expr *const operands[3])
{
	const struct fay_expr *found = NULL;
	for (unsigned i = 0; i < 3; i++) {
		if (!operands[i] || fay_expr_is_constant(operands[i]))
			continue;
		if (operands[i]->op != EXPR_SIDE || (found && found->value != operands[i]->value))
			return NULL;
		found = operands[i];
	}
	return found;
}

static const struct fay_expr *inside(const struct fay_expr *expr)
{
	return expr && expr->op == EXPR_SIDE ? expr->a : expr;
}

const struct fay_expr *fay_expr_square_part(struct fay_exprs *exprs, const struct fay_expr *x,
					    int part)
{
	if (x->op == EXPR_SIDE)
		return fay_expr_side(exprs, (unsigned)x->value, x->name,
				     fay_expr_square_part(exprs, x->a, part));
	return fay_expr_intern(
		exprs,
		&(struct fay_expr){ .op = EXPR_SQUARE, .type = TYPE_INT, .a = x, .value = part });
}

static bool strings_equal(const struct fay_expr *a, const struct fay_expr *b)
{
	return a->length == b->length && (!a->length || !memcmp(a->string, b->string, a->length));
}

/* The constant that `op` of constants is, or NULL if it does not fold. */
static const struct fay_expr *fold(struct fay_exprs *exprs, enum fay_expr_op op, enum fay_type type,
				   const struct fay_expr *a, const struct fay_expr *b)
{
	if (a->type == TYPE_REAL || (b && b->type == TYPE_REAL))
		return NULL;
	if (op == EXPR_LENGTH)
		return fay_expr_int(exprs, type, a->length);
	if (op == EXPR_STARTS_WITH || op == EXPR_ENDS_WITH || op == EXPR_CONTAINS)
		return fay_expr_int(
			exprs, type,
			fay_expr_fold_strings(op, a->string, a->length, b->string, b->length));
	if (a->type == TYPE_STRING)
		return fay_expr_int(exprs, type, strings_equal(a, b) == (op == EXPR_EQ));
	return fay_expr_int(exprs, type,
			    fay_expr_fold_ints(op, a->type, a->value, b ? b->value : 0));
}

/* Rules for && and || with one constant side, and ?: with a constant condition. NULL: none applies.
 * */
static const struct fay_expr *simplify(enum fay_expr_op op, const struct fay_expr *a,
				       const struct fay_expr *b, const struct fay_expr *c)
{
	if (op == EXPR_COND)
		return fay_expr_is_constant(a) ? (a->value ? b : c) : b == c ? b : NULL;
	if (op != EXPR_AND && op != EXPR_OR)
		return NULL;
	if (fay_expr_is_constant(a))
		return (op == EXPR_AND) == (a->value != 0) ? b : a;
	if (fay_expr_is_constant(b))
		return (op == EXPR_AND) == (b->value != 0) ? a : b;
	return NULL;
}

/* The node, unless it is larger than an expression may be. */
static const struct fay_expr *limited(struct fay_exprs *exprs, struct fay_span span,
				      const struct fay_expr *result)
{
	if (!result)
		return NULL;
	if (result->depth > FAY_QUERY_MAX_DEPTH)
		return fay_query_fail(exprs->query, FAY_E_LIMIT, span,
				      "an expression may be at most %u operators deep",
				      FAY_QUERY_MAX_DEPTH);
	if (result->operations > FAY_QUERY_MAX_OPERATIONS)
		return fay_query_fail(
			exprs->query, FAY_E_LIMIT, span,
			"an expression may have at most %u operations, `let`s included",
			FAY_QUERY_MAX_OPERATIONS);
	return result;
}

const struct fay_expr *fay_expr_make(struct fay_exprs *exprs, struct fay_span span,
				     enum fay_expr_op op, enum fay_type type,
				     const struct fay_expr *a, const struct fay_expr *b,
				     const struct fay_expr *c)
{
	const struct fay_expr *result = simplify(op, a, b, c);
	if (result)
		return result;
	const struct fay_expr *side = common_side((const struct fay_expr *const[]){ a, b, c });
	if (side)
		return fay_expr_side(
			exprs, (unsigned)side->value, side->name,
			fay_expr_make(exprs, span, op, type, inside(a), inside(b), inside(c)));
	if (!c && fay_expr_is_constant(a) && (!b || fay_expr_is_constant(b))) {
		result = fold(exprs, op, type, a, b);
		if (result || exprs->query->failed)
			return result;
	}
	result = c ? NULL : fay_rewrite_operation(exprs, op, type, a, b);
	if (result || exprs->query->failed)
		return result;
	return limited(
		exprs, span,
		fay_expr_intern(exprs, &(struct fay_expr){
					       .op = op, .type = type, .a = a, .b = b, .c = c }));
}

const struct fay_extension_function *fay_expr_callee(const struct fay_query *query,
						     const struct fay_expr *call)
{
	return &query->extensions[call->value >> 32].code->functions[(uint32_t)call->value];
}

const struct fay_expr *fay_expr_call(struct fay_exprs *exprs, struct fay_span span, unsigned file,
				     unsigned index, enum fay_type type,
				     const struct fay_expr *const *arguments, unsigned count)
{
	const struct fay_expr *list = NULL, *side = NULL;
	bool one = true; /* all that is not constant is of one side, if of any */
	for (unsigned i = 0; i < count; i++) {
		if (fay_expr_is_constant(arguments[i]))
			continue;
		one &= arguments[i]->op == EXPR_SIDE &&
		       (!side || side->value == arguments[i]->value);
		side = arguments[i];
	}
	for (unsigned i = count; i-- > 0;) {
		const struct fay_expr *argument = one ? inside(arguments[i]) : arguments[i];
		list = limited(exprs, span,
			       fay_expr_intern(exprs, &(struct fay_expr){ .op = EXPR_PAIR,
									  .type = argument->type,
									  .a = argument,
									  .b = list }));
		if (!list)
			return NULL;
	}
	struct fay_expr wanted = { .op = EXPR_CALL,
				   .type = type,
				   .a = list,
				   .value = (int64_t)((uint64_t)file << 32 | index) };
	wanted.name = fay_expr_callee(exprs->query, &wanted)->name;
	const struct fay_expr *call = limited(exprs, span, fay_expr_intern(exprs, &wanted));
	return call && one ? fay_expr_side(exprs, (unsigned)side->value, side->name, call) : call;
}
