/* SPDX-License-Identifier: MIT */
/* Leaves of expressions: the types, an event's fields, and what stands for a value of its own. */
#include "expr_private.h"

#define OFFSET(member) (uint16_t)offsetof(struct fay_event, member)
#define SIZE(member) (uint16_t)sizeof(((struct fay_event *)0)->member)

#define NATIVE (SOURCE_ENTRY | SOURCE_RETURN | SOURCE_MARKER | SOURCE_LINE)
#define ANY (NATIVE | SOURCE_SYSCALL | SOURCE_TRACEPOINT | SOURCE_TIMER)
#define ENDS (SOURCE_RETURN | SOURCE_SYSCALL)

const struct fay_field fay_fields[] = {
	{ "time", TYPE_TIME, OFFSET(time), SIZE(time), ANY },
	{ "pid", TYPE_INT, OFFSET(pid), SIZE(pid), ANY },
	{ "tid", TYPE_INT, OFFSET(tid), SIZE(tid), ANY },
	{ "cpu", TYPE_INT, OFFSET(cpu), SIZE(cpu), ANY },
	{ "comm", TYPE_STRING, OFFSET(comm), SIZE(comm), ANY },
	{ "function", TYPE_FUNCTION, OFFSET(function), SIZE(function), ANY },
	{ "module", TYPE_MODULE, OFFSET(module), SIZE(module), ANY },
	{ "cycles", TYPE_INT, OFFSET(cycles), SIZE(cycles), NATIVE },
	{ "Duration", TYPE_INT, OFFSET(duration), SIZE(duration), ENDS },
	{ "ReturnValue", TYPE_INT, OFFSET(retval), SIZE(retval), ENDS },
	{ "Failed", TYPE_BOOL, FAY_FIELD_FAILED, 0, ENDS },
	{ "Inlined", TYPE_BOOL, FAY_FIELD_INLINED, 0, SOURCE_ENTRY },
	{ "Caller", TYPE_ADDRESS, OFFSET(caller), SIZE(caller), 0 }, /* fay_check_caller() */
};
const size_t fay_field_count = sizeof(fay_fields) / sizeof(fay_fields[0]);

const char *fay_type_name(enum fay_type type)
{
	static const char *const names[] = {
		[TYPE_INT] = "integer",         [TYPE_BOOL] = "bool",
		[TYPE_STRING] = "string",       [TYPE_TIME] = "time",
		[TYPE_FUNCTION] = "function",   [TYPE_MODULE] = "module",
		[TYPE_ADDRESS] = "address",     [TYPE_SYMBOL] = "symbol",
		[TYPE_STACK] = "stack",         [TYPE_REAL] = "real number",
		[TYPE_HISTOGRAM] = "histogram", [TYPE_LIST] = "list",
	};
	return names[type];
}

const struct fay_expr *fay_expr_int(struct fay_exprs *exprs, enum fay_type type, int64_t value)
{
	return fay_expr_intern(
		exprs, &(struct fay_expr){ .op = EXPR_CONSTANT, .type = type, .value = value });
}

const struct fay_expr *fay_expr_real(struct fay_exprs *exprs, double value)
{
	return fay_expr_intern(
		exprs, &(struct fay_expr){ .op = EXPR_CONSTANT, .type = TYPE_REAL, .real = value });
}

const struct fay_expr *fay_expr_string(struct fay_exprs *exprs, const char *bytes, uint32_t length)
{
	return fay_expr_intern(exprs, &(struct fay_expr){ .op = EXPR_CONSTANT,
							  .type = TYPE_STRING,
							  .string = bytes,
							  .length = length });
}

const struct fay_expr *fay_expr_arg(struct fay_exprs *exprs, unsigned index)
{
	exprs->arguments |= (uint8_t)(1u << (index & 7));
	return fay_expr_intern(
		exprs,
		&(struct fay_expr){ .op = EXPR_ARG, .type = TYPE_INT, .value = (int64_t)index });
}

const struct fay_expr *fay_expr_named_arg(struct fay_exprs *exprs, struct fay_access access,
					  const char *name)
{
	for (uint32_t i = 0; i == 0 || i < access.words; i++)
		exprs->arguments |= (uint8_t)(1u << ((access.offset + i) & 7));
	return fay_expr_intern(exprs, &(struct fay_expr){ .op = EXPR_ARG,
							  .type = TYPE_INT,
							  .value = fay_access_pack(access),
							  .name = name });
}

const struct fay_expr *fay_expr_saved(struct fay_exprs *exprs, uint32_t word, enum fay_type type,
				      const char *name)
{
	return fay_expr_intern(exprs,
			       &(struct fay_expr){ .op = EXPR_ARG,
						   .type = type,
						   .value = fay_access_pack((struct fay_access){
							   .offset = word, .bytes = 8 }),
						   .name = name });
}

const struct fay_expr *fay_expr_saved_stack(struct fay_exprs *exprs, uint32_t word, uint32_t frames,
					    bool of_kernel)
{
	const struct fay_expr *at = fay_expr_int(exprs, TYPE_INT, word);
	return at ? fay_expr_intern(exprs, &(struct fay_expr){ .op = EXPR_STACK,
							       .type = TYPE_STACK,
							       .a = at,
							       .value = frames,
							       .length = of_kernel })
		  : NULL;
}

const struct fay_expr *fay_expr_member(struct fay_exprs *exprs, const struct fay_expr *address,
				       struct fay_access access, const char *name)
{
	exprs->members = true;
	return fay_expr_intern(exprs,
			       &(struct fay_expr){ .op = EXPR_MEMBER,
						   .type = access.string ? TYPE_STRING : TYPE_INT,
						   .a = address,
						   .value = fay_access_pack(access),
						   .name = name });
}

const struct fay_expr *fay_expr_enumerated(struct fay_exprs *exprs, const struct fay_expr *expr,
					   const struct fay_enumeration *enumeration)
{
	struct fay_expr copy = *expr;
	copy.enumeration = enumeration;
	return fay_expr_intern(exprs, &copy);
}

const struct fay_expr *fay_expr_symbol(struct fay_exprs *exprs, const struct fay_expr *address)
{
	if (address->op == EXPR_SIDE)
		return fay_expr_side(exprs, (unsigned)address->value, address->name,
				     fay_expr_symbol(exprs, address->a));
	struct fay_expr copy = *address;
	copy.type = TYPE_SYMBOL;
	copy.enumeration = NULL;
	return fay_expr_intern(exprs, &copy);
}

const struct fay_expr *fay_expr_caller(struct fay_exprs *exprs)
{
	return fay_expr_field(exprs, &fay_fields[fay_field_count - 1]);
}

const struct fay_expr *fay_expr_stack(struct fay_exprs *exprs, uint32_t frames, bool of_kernel)
{
	exprs->stack_frames = frames > exprs->stack_frames ? frames : exprs->stack_frames;
	return fay_expr_intern(exprs, &(struct fay_expr){ .op = EXPR_STACK,
							  .type = TYPE_STACK,
							  .value = frames,
							  .length = of_kernel });
}

const struct fay_expr *fay_expr_field(struct fay_exprs *exprs, const struct fay_field *field)
{
	return fay_expr_intern(exprs, &(struct fay_expr){ .op = EXPR_FIELD,
							  .type = field->type,
							  .value = field - fay_fields });
}

bool fay_expr_is_comm(const struct fay_expr *expr)
{
	while (expr->op == EXPR_SIDE || expr->op == EXPR_KEY)
		expr = expr->a;
	return expr->op == EXPR_FIELD &&
	       fay_fields[expr->value].offset == offsetof(struct fay_event, comm);
}

bool fay_expr_is_register(const struct fay_expr *expr)
{
	while (expr->op == EXPR_SIDE || expr->op == EXPR_KEY)
		expr = expr->a;
	return expr->type == TYPE_INT &&
	       ((expr->op == EXPR_ARG && !expr->name) ||
		(expr->op == EXPR_FIELD &&
		 fay_fields[expr->value].offset == offsetof(struct fay_event, retval)));
}

bool fay_expr_is_long(const struct fay_expr *expr)
{
	while (expr->op == EXPR_SIDE || expr->op == EXPR_KEY)
		expr = expr->a;
	if (expr->op == EXPR_COND)
		return fay_expr_is_long(expr->b) || fay_expr_is_long(expr->c);
	return fay_expr_is_text(expr);
}

const struct fay_expr *fay_expr_time(struct fay_exprs *exprs)
{
	const struct fay_field *field = fay_fields;
	while (field->type != TYPE_TIME)
		field++;
	return fay_expr_field(exprs, field);
}

const struct fay_expr *fay_expr_key(struct fay_exprs *exprs, const struct fay_expr *key,
				    unsigned level)
{
	return fay_expr_intern(exprs, &(struct fay_expr){ .op = EXPR_KEY,
							  .type = key->type,
							  .a = key,
							  .value = level,
							  .enumeration = key->enumeration });
}

const struct fay_expr *fay_expr_aggregate(struct fay_exprs *exprs, struct fay_aggregate aggregate,
					  enum fay_type type)
{
	struct fay_aggregate *copy = fay_query_alloc(exprs->query, sizeof(*copy));
	if (!copy)
		return NULL;
	*copy = aggregate;
	return fay_expr_intern(
		exprs, &(struct fay_expr){ .op = EXPR_AGGREGATE, .type = type, .aggregate = copy });
}

const struct fay_expr *fay_expr_side(struct fay_exprs *exprs, unsigned side, const char *event,
				     const struct fay_expr *expr)
{
	if (!expr || fay_expr_is_constant(expr))
		return expr;
	return fay_expr_intern(exprs, &(struct fay_expr){ .op = EXPR_SIDE,
							  .type = expr->type,
							  .a = expr,
							  .value = side,
							  .name = event,
							  .enumeration = expr->enumeration });
}

const struct fay_expr *fay_expr_quantile(struct fay_exprs *exprs, const struct fay_expr *aggregate,
					 double q)
{
	return fay_expr_intern(
		exprs, &(struct fay_expr){
			       .op = EXPR_QUANTILE, .type = TYPE_REAL, .a = aggregate, .real = q });
}

const struct fay_expr *fay_expr_bucket(struct fay_exprs *exprs, enum fay_merge sketch,
				       const struct fay_expr *value,
				       const struct fay_expr *condition)
{
	return fay_expr_intern(exprs, &(struct fay_expr){ .op = EXPR_BUCKET,
							  .type = TYPE_INT,
							  .a = value,
							  .b = condition,
							  .value = sketch });
}

const struct fay_expr *fay_expr_folded(struct fay_exprs *exprs, enum fay_type type)
{
	return fay_expr_intern(exprs, &(struct fay_expr){ .op = EXPR_FOLDED, .type = type });
}

const struct fay_expr *fay_expr_row(struct fay_exprs *exprs)
{
	return fay_expr_intern(exprs, &(struct fay_expr){ .op = EXPR_ROW, .type = TYPE_INT });
}

const struct fay_expr *fay_expr_label(struct fay_exprs *exprs, unsigned level)
{
	return fay_expr_intern(
		exprs, &(struct fay_expr){ .op = EXPR_LABEL, .type = TYPE_INT, .value = level });
}

const struct fay_expr *fay_expr_window(struct fay_exprs *exprs)
{
	return fay_expr_intern(exprs, &(struct fay_expr){ .op = EXPR_WINDOW, .type = TYPE_INT });
}

uint32_t fay_expr_size(const struct fay_expr *expr)
{
	const struct fay_expr *stack = expr;
	/* of an earlier grouping, or of one side of a join */
	while (expr->type == TYPE_STACK && stack->op != EXPR_STACK)
		stack = stack->a;
	return expr->type == TYPE_STACK    ? 8 * (uint32_t)stack->value
	       : expr->type == TYPE_STRING ? FAY_COMM_SIZE
					   : 8;
}

enum fay_column_type fay_type_column(enum fay_type type)
{
	switch (type) {
	case TYPE_BOOL: return FAY_TYPE_BOOL;
	case TYPE_STRING:
	case TYPE_STACK: return FAY_TYPE_STRING;
	case TYPE_TIME: return FAY_TYPE_TIME;
	case TYPE_FUNCTION:
	case TYPE_MODULE: return FAY_TYPE_FUNCTION; /* a name's hash, too */
	case TYPE_ADDRESS:
	case TYPE_SYMBOL: return FAY_TYPE_U64;
	/* computed at the root; an average's column is of what it is the average of */
	case TYPE_REAL: return FAY_RESULT_REAL;
	default: return FAY_TYPE_I64;
	}
}
