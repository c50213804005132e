/* SPDX-License-Identifier: MIT */
/* Expressions as a query would write them, with all `let`s put in; times and strings. */
#include "expr.h"

#include <inttypes.h>
#include <time.h>

#define PRINT_MAX_OPERATIONS 60u /* larger expressions are abridged inside */

void fay_time_print(FILE *out, uint64_t time)
{
	time_t seconds = (time_t)(time / 1000000000u);
	struct tm tm;
	char text[40] = "?";
	if (gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	fputs(text, out);
	if (time % 1000000000u)
		fprintf(out, ".%09u", (unsigned)(time % 1000000000u));
	fputc('Z', out);
}

void fay_print_string(FILE *out, const char *bytes, size_t length)
{
	fputc('"', out);
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)bytes[i];
		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			fprintf(out, "\\u%04x", c); /* so that it is JSON, whatever the bytes */
		else
			fputc(c, out);
	}
	fputc('"', out);
}

static const struct {
	const char *text;
	unsigned level; /* of precedence; 11: unary */
} operators[] = {
	[EXPR_NEG] = { "-", 11 },
	[EXPR_BIT_NOT] = { "~", 11 },
	[EXPR_NOT] = { "!", 11 },
	[EXPR_ADD] = { "+", 9 },
	[EXPR_SUB] = { "-", 9 },
	[EXPR_MUL] = { "*", 10 },
	[EXPR_DIV] = { "/", 10 },
	[EXPR_MOD] = { "%", 10 },
	[EXPR_SHL] = { "<<", 8 },
	[EXPR_SHR] = { ">>", 8 },
	[EXPR_SHR_LOGICAL] = { ">>>", 8 },
	[EXPR_BIT_AND] = { "&", 5 },
	[EXPR_BIT_OR] = { "|", 3 },
	[EXPR_BIT_XOR] = { "^", 4 },
	[EXPR_EQ] = { "==", 6 },
	[EXPR_NE] = { "!=", 6 },
	[EXPR_LT] = { "<", 7 },
	[EXPR_LE] = { "<=", 7 },
	[EXPR_GT] = { ">", 7 },
	[EXPR_GE] = { ">=", 7 },
	[EXPR_AND] = { "&&", 2 },
	[EXPR_OR] = { "||", 1 },
};

/* Of a string; NULL: another operation. */
static const char *method_of(enum fay_expr_op op)
{
	return op == EXPR_STARTS_WITH ? "StartsWith"
	       : op == EXPR_ENDS_WITH ? "EndsWith"
	       : op == EXPR_CONTAINS  ? "Contains"
	       : op == EXPR_LENGTH    ? "Length"
				      : NULL;
}

/* What no query writes; NULL: another operation. */
static const char *in_words(enum fay_expr_op op)
{
	switch (op) {
	case EXPR_LABEL: return "the cluster";
	case EXPR_WINDOW: return "the window's number";
	case EXPR_ROW: return "the joined row";
	case EXPR_FOLDED: return "the aggregate of all rows";
	default: return NULL;
	}
}

struct printer {
	FILE *out;
	const char *event;
};

static void print_expr(const struct printer *printer, const struct fay_expr *expr, unsigned outer);

static void print_constant(const struct printer *printer, const struct fay_expr *expr)
{
	switch (expr->type) {
	case TYPE_BOOL: fputs(expr->value ? "true" : "false", printer->out); break;
	case TYPE_STRING: fay_print_string(printer->out, expr->string, expr->length); break;
	case TYPE_TIME: fay_time_print(printer->out, (uint64_t)expr->value); break;
	case TYPE_REAL: fprintf(printer->out, "%g", expr->real); break;
	case TYPE_FUNCTION:
	case TYPE_MODULE:
		fprintf(printer->out, "name_hash 0x%016" PRIx64, (uint64_t)expr->value);
		break;
	default: fprintf(printer->out, "%" PRId64, expr->value); break;
	}
}

static void print_operation(const struct printer *printer, const struct fay_expr *expr)
{
	unsigned level = operators[expr->op].level;
	if (!expr->b) {
		fputs(operators[expr->op].text, printer->out);
		print_expr(printer, expr->a, level);
		return;
	}
	print_expr(printer, expr->a, level);
	fprintf(printer->out, " %s ", operators[expr->op].text);
	if (expr->op == EXPR_ADD && expr->type == TYPE_TIME && fay_expr_is_constant(expr->b))
		fprintf(printer->out, "%" PRId64 " ns", expr->b->value);
	else
		print_expr(printer, expr->b, level + 1);
}

/* Sum(io.Arg(2) where io.cpu == 0) */
static void print_aggregate_of(const struct printer *printer, const struct fay_expr *expr)
{
	FILE *out = printer->out;
	const struct fay_aggregate *aggregate =
		expr->op == EXPR_QUANTILE ? expr->a->aggregate : expr->aggregate;
	fprintf(out, "%s(", aggregate->text);
	if (expr->op == EXPR_QUANTILE)
		fprintf(out, "%g, ", expr->real);
	if (aggregate->operand)
		print_expr(printer, aggregate->operand, 0);
	if (aggregate->condition) {
		fputs(aggregate->operand ? " where " : "where ", out);
		print_expr(printer, aggregate->condition, 0);
	}
	fputc(')', out);
}

static void print_bucket(const struct printer *printer, const struct fay_expr *expr)
{
	fputs(expr->value == FAY_MERGE_QUANTILE ? "quantiles' bucket of " : "bucket of ",
	      printer->out);
	print_expr(printer, expr->a, expr->b ? 0 : 12);
	if (expr->b) {
		fputs(" where ", printer->out);
		print_expr(printer, expr->b, 0);
	}
}

static void print_expr(const struct printer *printer, const struct fay_expr *expr, unsigned outer)
{
	FILE *out = printer->out;
	if (expr->type == TYPE_SYMBOL && expr->op != EXPR_SIDE && expr->op != EXPR_KEY) {
		struct fay_expr number = *expr;
		number.type = TYPE_INT;
		print_expr(printer, &number, 12);
		fputs(".Symbol", out);
		return;
	}
	switch (expr->op) {
	case EXPR_CONSTANT: print_constant(printer, expr); return;
	case EXPR_ARG:
		if (expr->name)
			fprintf(out, "%s.%s", printer->event, expr->name);
		else
			fprintf(out, "%s.Arg(%" PRId64 ")", printer->event, expr->value);
		return;
	case EXPR_MEMBER:
		if (expr->type == TYPE_ADDRESS)
			fputs(printer->event, out);
		else
			print_expr(printer, expr->a, 12);
		fprintf(out, "%s%s", *expr->name && *expr->name != '[' ? "." : "", expr->name);
		return;
	case EXPR_FIELD:
		fprintf(out, "%s.%s", printer->event, fay_fields[expr->value].name);
		return;
	case EXPR_STACK:
		fprintf(out, "%s.%s(%" PRId64 ")", printer->event,
			expr->length ? "KernelStack" : "UserStack", expr->value);
		return;
	case EXPR_CALL:
		fprintf(out, "%s(", expr->name);
		for (const struct fay_expr *at = expr->a; at; at = at->b) {
			print_expr(printer, at->a, 0);
			fputs(at->b ? ", " : ")", out);
		}
		return;
	case EXPR_KEY: print_expr(printer, expr->a, outer); return;
	case EXPR_SIDE: print_expr(&(struct printer){ out, expr->name }, expr->a, outer); return;
	default: break;
	}
	if (expr->op == EXPR_AGGREGATE || expr->op == EXPR_QUANTILE) {
		print_aggregate_of(printer, expr);
		return;
	}
	if (expr->op == EXPR_AVERAGE) {
		print_aggregate_of(printer, expr->a);
		return;
	}
	if (expr->op == EXPR_DEVIATION) {
		fputs("StdDev(", out);
		print_expr(printer, expr->b->a->aggregate->operand->a, 0);
		fputc(')', out);
		return;
	}
	if (expr->op == EXPR_SQUARE) {
		fprintf(out, "bits %" PRId64 " to %" PRId64 " of the square of ", 32 * expr->value,
			32 * expr->value + 31);
		print_expr(printer, expr->a, 12);
		return;
	}
	if (expr->op == EXPR_BUCKET) {
		print_bucket(printer, expr);
		return;
	}
	if (in_words(expr->op)) {
		fputs(in_words(expr->op), out);
		return;
	}
	if (expr->operations > PRINT_MAX_OPERATIONS) {
		fprintf(out, "(%" PRIu32 " operations)", expr->operations);
		return;
	}
	if (method_of(expr->op)) {
		print_expr(printer, expr->a, 12);
		fprintf(out, ".%s", method_of(expr->op));
		if (expr->op == EXPR_LENGTH)
			return;
		fputc('(', out);
		print_expr(printer, expr->b, 0);
		fputc(')', out);
		return;
	}
	bool brackets = expr->op == EXPR_COND ? outer > 0 : operators[expr->op].level < outer;
	if (brackets)
		fputc('(', out);
	if (expr->op == EXPR_COND) {
		print_expr(printer, expr->a, 1);
		fputs(" ? ", out);
		print_expr(printer, expr->b, 1);
		fputs(" : ", out);
		print_expr(printer, expr->c, 1);
	} else {
		print_operation(printer, expr);
	}
	if (brackets)
		fputc(')', out);
}

void fay_expr_print(FILE *out, const struct fay_expr *expr, const char *event)
{
	/* Constants on the left of == and the like are printed as they are; nothing is reordered.
	 * */
	print_expr(&(struct printer){ out, event }, expr, 0);
}
