/* SPDX-License-Identifier: MIT */
/*
 * What operations of constants are. The generated code computes the same: tests/query compares the
 * two over random expressions.
 */
#include "expr.h"

#include <string.h>

static int64_t divide(int64_t x, int64_t y)
{
	if (y == 0)
		return 0;
	return y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}

static int64_t remainder_of(int64_t x, int64_t y)
{
	return y == 0 || y == -1 ? 0 : x % y;
}

/* -1, 0, 1 in the order of the type. */
static int compare(enum fay_type type, int64_t x, int64_t y)
{
	if (type == TYPE_TIME)
		return ((uint64_t)x > (uint64_t)y) - ((uint64_t)x < (uint64_t)y);
	return (x > y) - (x < y);
}

int64_t fay_expr_fold_ints(enum fay_expr_op op, enum fay_type type, int64_t x, int64_t y)
{
	uint64_t u = (uint64_t)x, v = (uint64_t)y;
	switch (op) {
	case EXPR_NEG: return (int64_t)(0 - u);
	case EXPR_BIT_NOT: return ~x;
	case EXPR_NOT: return !x;
	case EXPR_ADD: return (int64_t)(u + v);
	case EXPR_SUB: return (int64_t)(u - v);
	case EXPR_MUL: return (int64_t)(u * v);
	case EXPR_DIV: return divide(x, y);
	case EXPR_MOD: return remainder_of(x, y);
	case EXPR_SHL: return (int64_t)(u << (v & 63));
	case EXPR_SHR: return x >> (v & 63);
	case EXPR_SHR_LOGICAL: return (int64_t)(u >> (v & 63));
	case EXPR_BIT_AND:
	case EXPR_AND: return x & y;
	case EXPR_BIT_OR:
	case EXPR_OR: return x | y;
	case EXPR_BIT_XOR: return x ^ y;
	case EXPR_EQ: return x == y;
	case EXPR_NE: return x != y;
	case EXPR_LT: return compare(type, x, y) < 0;
	case EXPR_LE: return compare(type, x, y) <= 0;
	case EXPR_GT: return compare(type, x, y) > 0;
	default: /* EXPR_GE */ return compare(type, x, y) >= 0;
	}
}

bool fay_expr_fold_strings(enum fay_expr_op op, const char *string, size_t length, const char *part,
			   size_t part_length)
{
	if (part_length > length)
		return false;
	if (!part_length)
		return true;
	if (op == EXPR_CONTAINS)
		return memmem(string, length, part, part_length) != NULL;
	return memcmp(string + (op == EXPR_ENDS_WITH ? length - part_length : 0), part,
		      part_length) == 0;
}
