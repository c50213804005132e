/* SPDX-License-Identifier: MIT */
/*
 * Expressions over a merged row. Integers behave as in the probe (fay_expr_fold_ints); real
 * numbers, which the probe does not have, as doubles.
 */
#include "evaluate_private.h"

#include <math.h>
#include <string.h>

#include "fay/aggregator.h"

typedef struct fay_cell cell;

static cell integer(int64_t value)
{
	return (cell){ .kind = CELL_INT, .integer = value };
}

cell fay_cell_real(double value)
{
	return isfinite(value) ? (cell){ .kind = CELL_REAL, .real = value }
			       : (cell){ .kind = CELL_NONE };
}

static double as_real(cell c)
{
	return c.kind == CELL_REAL ? c.real : (double)c.integer;
}

static cell string_value(const struct fay_evaluator *e, const struct fay_schema_column *column)
{
	const uint8_t *raw = e->row + column->offset;
	if (!e->texts || column->size != FAY_TEXT_CELL)
		return (cell){ .kind = CELL_STRING,
			       .string = (const char *)raw,
			       .integer = (int64_t)strnlen((const char *)raw, column->size) };
	struct fay_text_bytes text = fay_text_of(e->texts, raw);
	return (cell){ .kind = CELL_STRING,
		       .string = text.bytes,
		       .integer = (int64_t)text.length,
		       .raw = raw };
}

/* Column `index` of the row. */
static cell column_value(const struct fay_evaluator *e, uint32_t index)
{
	const struct fay_schema_column *column = &e->columns[index];
	struct fay_value value;
	if (!fay_value_decode(column, e->row, &value))
		return (cell){ .kind = CELL_NONE };
	switch (value.kind) {
	case FAY_VALUE_I64: return integer(value.i64);
	case FAY_VALUE_U64: return integer((int64_t)value.u64);
	case FAY_VALUE_DOUBLE: return fay_cell_real(value.d);
	case FAY_VALUE_STRING: return string_value(e, column);
	default: return (cell){ .kind = CELL_NONE };
	}
}

/* All of its bytes. */
static cell stack_value(const struct fay_evaluator *e, uint32_t index)
{
	const struct fay_schema_column *column = &e->columns[index];
	return (cell){ .kind = CELL_STRING,
		       .string = (const char *)e->row + column->offset,
		       .integer = column->size };
}

static cell constant(const struct fay_expr *expr)
{
	if (expr->type == TYPE_REAL)
		return fay_cell_real(expr->real);
	if (expr->type != TYPE_STRING)
		return integer(expr->value);
	return (cell){ .kind = CELL_STRING, .string = expr->string, .integer = expr->length };
}

int fay_cell_compare_strings(cell x, cell y)
{
	size_t a = (size_t)x.integer, b = (size_t)y.integer, common = a < b ? a : b;
	int order = common ? memcmp(x.string, y.string, common) : 0;
	order = order ? order : (a > b) - (a < b);
	/* texts that are lost, or were cut where they still are the same, are not equal */
	return !order && x.raw && y.raw ? memcmp(x.raw, y.raw, FAY_TEXT_CELL) : order;
}

static cell compare(const struct fay_expr *expr, cell x, cell y)
{
	if (x.kind == CELL_STRING)
		return integer((fay_cell_compare_strings(x, y) == 0) == (expr->op == EXPR_EQ));
	if (x.kind == CELL_INT && y.kind == CELL_INT)
		return integer(fay_expr_fold_ints(expr->op, expr->a->type, x.integer, y.integer));
	double a = as_real(x), b = as_real(y);
	switch (expr->op) {
	case EXPR_EQ: return integer(a == b);
	case EXPR_NE: return integer(a != b);
	case EXPR_LT: return integer(a < b);
	case EXPR_LE: return integer(a <= b);
	case EXPR_GT: return integer(a > b);
	default: return integer(a >= b);
	}
}

static cell arithmetic(const struct fay_expr *expr, cell x, cell y)
{
	if (x.kind == CELL_INT && (!expr->b || y.kind == CELL_INT))
		return integer(fay_expr_fold_ints(expr->op, expr->type, x.integer, y.integer));
	double a = as_real(x), b = as_real(y);
	switch (expr->op) {
	case EXPR_NEG: return fay_cell_real(-a);
	case EXPR_ADD: return fay_cell_real(a + b);
	case EXPR_SUB: return fay_cell_real(a - b);
	case EXPR_MUL: return fay_cell_real(a * b);
	default: /* EXPR_DIV: as with integers, nothing faults and x / 0 is 0 */
		return fay_cell_real(b == 0 ? 0 : a / b);
	}
}

static cell operation(const struct fay_evaluator *e, const struct fay_expr *expr)
{
	cell x = fay_evaluate(e, expr->a), y = { .kind = CELL_INT };
	if (expr->op == EXPR_COND)
		return fay_evaluate(e, x.kind == CELL_INT && x.integer ? expr->b : expr->c);
	if (expr->b)
		y = fay_evaluate(e, expr->b);
	bool none = x.kind == CELL_NONE || y.kind == CELL_NONE;
	switch (expr->op) {
	case EXPR_SQUARE:
		return integer((int64_t)((unsigned __int128)((__int128)x.integer * x.integer) >>
						 32 * expr->value &
					 UINT32_MAX));
	case EXPR_AND:
	case EXPR_OR: {
		bool a = x.kind == CELL_INT && x.integer, b = y.kind == CELL_INT && y.integer;
		return integer(expr->op == EXPR_AND ? a && b : a || b);
	}
	case EXPR_EQ:
	case EXPR_NE:
	case EXPR_LT:
	case EXPR_LE:
	case EXPR_GT:
	case EXPR_GE: return none ? integer(0) : compare(expr, x, y);
	case EXPR_STARTS_WITH:
	case EXPR_ENDS_WITH:
	case EXPR_CONTAINS:
		return integer(!none && fay_expr_fold_strings(expr->op, x.string, (size_t)x.integer,
							      expr->b->string, expr->b->length));
	case EXPR_LENGTH: return none ? (cell){ .kind = CELL_NONE } : integer(x.integer);
	default: return none ? (cell){ .kind = CELL_NONE } : arithmetic(expr, x, y);
	}
}

/*
 * Of n values with known sums of x and of x * x. With k the mean, rounded, the sum of (x - k)^2 is
 * computed modulo 2^128, that is, exactly if it is smaller; if it may not be, 113 bits of mantissa
 * lose nothing that counts.
 */
static double deviation_of(uint64_t n, __int128 sum, const uint64_t squares[4])
{
	__float128 wide = 0, mean = (__float128)sum / (__float128)n;
	unsigned __int128 exact = 0,
			  k = (unsigned __int128)(__int128)(mean < 0 ? mean - 0.5 : mean + 0.5);
	for (int i = 3; i >= 0; i--) {
		wide = wide * 4294967296.0 + (__float128)squares[i];
		exact = (exact << 32) + squares[i];
	}
	wide -= mean * (__float128)sum;
	exact += k * k * n - 2 * k * (unsigned __int128)sum;
	if (wide > 0x1p120)
		return sqrt((double)(wide / (__float128)n));
	__float128 off = mean - (__float128)(__int128)k; /* at most a half */
	__float128 variance = (__float128)exact / (__float128)n - off * off;
	return variance > 0 ? sqrt((double)variance) : 0;
}

static cell deviation(const struct fay_evaluator *e, const struct fay_expr *expr)
{
	const struct fay_expr *parts[4] = { expr->b->a, expr->b->b, expr->c->a, expr->c->b };
	uint64_t n = (uint64_t)fay_evaluate(e, expr->a->a).integer, squares[4];
	__int128 low = (__int128)(uint64_t)fay_evaluate(e, expr->a->b->a).integer,
		 high = fay_evaluate(e, expr->a->b->b).integer;
	for (int i = 0; i < 4; i++)
		squares[i] = (uint64_t)fay_evaluate(e, parts[i]).integer;
	return n ? fay_cell_real(deviation_of(n, low + high * ((__int128)1 << 32), squares))
		 : (cell){ .kind = CELL_NONE };
}

/*
 * The sum of n values from that sum modulo 2^64 and the sum of their upper halves. Below 2^32
 * values there is one such number; of more the one that did not wrap, if it is one of them, else
 * the one in the middle, which is as good as a double.
 */
static __int128 whole_sum(uint64_t n, uint64_t wrapped, int64_t high)
{
	const __int128 half = (__int128)1 << 32, turn = (__int128)1 << 64;
	__int128 least = high * half, room = n * half, as_is = (int64_t)wrapped;
	if (n >> 32 && as_is >= least && as_is < least + room)
		return as_is;
	__int128 sum = least + (__int128)(uint64_t)(wrapped - (uint64_t)least);
	return n >> 32 ? sum + (least + room / 2 - sum) / turn * turn : sum;
}

static cell average(const struct fay_evaluator *e, const struct fay_expr *expr)
{
	uint64_t words[2]; /* sum, count */
	memcpy(words, e->row + e->columns[e->column_of[expr->a->id] - 1].offset, sizeof(words));
	__int128 sum = whole_sum(words[1], words[0], fay_evaluate(e, expr->b).integer);
	return words[1] ? fay_cell_real((double)((__float128)sum / (__float128)words[1]))
			: (cell){ .kind = CELL_NONE };
}

static cell quantile(const struct fay_evaluator *e, uint32_t column, double q)
{
	return fay_cell_real(e->buckets ? fay_buckets_quantile(e, column, q)
					: fay_value_quantile(&e->columns[column], e->row, q));
}

cell fay_evaluate(const struct fay_evaluator *e, const struct fay_expr *expr)
{
	/* a key of a later grouping may be one of an earlier's */
	while (expr->op == EXPR_KEY && !e->column_of[expr->id])
		expr = expr->a;
	uint32_t column = e->column_of[expr->id];
	if (column)
		return expr->type == TYPE_STACK ? stack_value(e, column - 1)
						: column_value(e, column - 1);
	switch (expr->op) {
	case EXPR_CONSTANT: return constant(expr);
	case EXPR_LABEL:
		return integer(e->labels ? e->labels[(size_t)(e->row - e->first_row) / e->row_size]
					 : 0);
	case EXPR_ROW: return integer((int64_t)e->number);
	case EXPR_FOLDED: return e->folded;
	case EXPR_DEVIATION: return deviation(e, expr);
	case EXPR_AVERAGE: return average(e, expr);
	case EXPR_QUANTILE: return quantile(e, e->column_of[expr->a->id] - 1, expr->real);
	default: return operation(e, expr);
	}
}
