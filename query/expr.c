/* SPDX-License-Identifier: MIT */
/*
 * Making typed expressions: hash-consing, limits and constant folding. The semantics that folding
 * uses here are those that codegen.c emits; tests/query compares the two over random expressions.
 */
#include "expr.h"
#include "fay/extension.h"
#include "rewrite.h"

#include <string.h>

#define OFFSET(member) (uint8_t)offsetof(struct fay_event, member)
#define SIZE(member) (uint8_t)sizeof(((struct fay_event *)0)->member)

#define NATIVE (SOURCE_ENTRY | SOURCE_RETURN | SOURCE_MARKER)
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
	{ "Failed", TYPE_BOOL, 0, 0, ENDS },
	{ "stack_pointer", TYPE_INT, OFFSET(stack_pointer), SIZE(stack_pointer), 0 },
};
const size_t fay_field_count = sizeof(fay_fields) / sizeof(fay_fields[0]);

const char *fay_type_name(enum fay_type type)
{
	static const char *const names[] = {
		[TYPE_INT] = "integer",       [TYPE_BOOL] = "bool",
		[TYPE_STRING] = "string",     [TYPE_TIME] = "time",
		[TYPE_FUNCTION] = "function", [TYPE_MODULE] = "module",
		[TYPE_ADDRESS] = "address",   [TYPE_STACK] = "stack",
		[TYPE_REAL] = "real number",  [TYPE_HISTOGRAM] = "histogram",
		[TYPE_LIST] = "list",
	};
	return names[type];
}

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

/* The one node equal to *wanted. */
static const struct fay_expr *intern(struct fay_exprs *exprs, const struct fay_expr *wanted)
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

const struct fay_expr *fay_expr_int(struct fay_exprs *exprs, enum fay_type type, int64_t value)
{
	return intern(exprs,
		      &(struct fay_expr){ .op = EXPR_CONSTANT, .type = type, .value = value });
}

const struct fay_expr *fay_expr_real(struct fay_exprs *exprs, double value)
{
	return intern(exprs,
		      &(struct fay_expr){ .op = EXPR_CONSTANT, .type = TYPE_REAL, .real = value });
}

const struct fay_expr *fay_expr_string(struct fay_exprs *exprs, const char *bytes, uint32_t length)
{
	return intern(exprs, &(struct fay_expr){ .op = EXPR_CONSTANT,
						 .type = TYPE_STRING,
						 .string = bytes,
						 .length = length });
}

const struct fay_expr *fay_expr_arg(struct fay_exprs *exprs, unsigned index)
{
	exprs->arguments |= (uint8_t)(1u << (index & 7));
	return intern(exprs, &(struct fay_expr){
				     .op = EXPR_ARG, .type = TYPE_INT, .value = (int64_t)index });
}

const struct fay_expr *fay_expr_named_arg(struct fay_exprs *exprs, struct fay_access access,
					  const char *name)
{
	exprs->arguments |= (uint8_t)(1u << (access.offset & 7));
	return intern(exprs, &(struct fay_expr){ .op = EXPR_ARG,
						 .type = TYPE_INT,
						 .value = fay_access_pack(access),
						 .name = name });
}

const struct fay_expr *fay_expr_saved(struct fay_exprs *exprs, uint32_t word, enum fay_type type,
				      const char *name)
{
	return intern(exprs, &(struct fay_expr){ .op = EXPR_ARG,
						 .type = type,
						 .value = fay_access_pack((struct fay_access){
							 .offset = word, .bytes = 8 }),
						 .name = name });
}

const struct fay_expr *fay_expr_saved_stack(struct fay_exprs *exprs, uint32_t word, uint32_t frames,
					    bool of_kernel)
{
	const struct fay_expr *at = fay_expr_int(exprs, TYPE_INT, word);
	return at ? intern(exprs, &(struct fay_expr){ .op = EXPR_STACK,
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
	return intern(exprs, &(struct fay_expr){ .op = EXPR_MEMBER,
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
	return intern(exprs, &copy);
}

const struct fay_expr *fay_expr_caller(struct fay_exprs *exprs)
{
	const struct fay_expr *stack = fay_expr_field(exprs, &fay_fields[fay_field_count - 1]);
	exprs->members = true;
	return stack ? intern(exprs, &(struct fay_expr){ .op = EXPR_MEMBER,
							 .type = TYPE_ADDRESS,
							 .a = stack,
							 .value = fay_access_pack(
								 (struct fay_access){ .bytes = 8 }),
							 .name = "Caller" })
		     : NULL;
}

const struct fay_expr *fay_expr_stack(struct fay_exprs *exprs, uint32_t frames, bool of_kernel)
{
	exprs->stack_frames = frames > exprs->stack_frames ? frames : exprs->stack_frames;
	return intern(exprs, &(struct fay_expr){ .op = EXPR_STACK,
						 .type = TYPE_STACK,
						 .value = frames,
						 .length = of_kernel });
}

const struct fay_expr *fay_expr_field(struct fay_exprs *exprs, const struct fay_field *field)
{
	return intern(exprs, &(struct fay_expr){ .op = EXPR_FIELD,
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
	return intern(exprs, &(struct fay_expr){ .op = EXPR_KEY,
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
	return intern(exprs,
		      &(struct fay_expr){ .op = EXPR_AGGREGATE, .type = type, .aggregate = copy });
}

const struct fay_expr *fay_expr_side(struct fay_exprs *exprs, unsigned side, const char *event,
				     const struct fay_expr *expr)
{
	if (!expr || fay_expr_is_constant(expr))
		return expr;
	return intern(exprs, &(struct fay_expr){ .op = EXPR_SIDE,
						 .type = expr->type,
						 .a = expr,
						 .value = side,
						 .name = event,
						 .enumeration = expr->enumeration });
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
	return intern(exprs, &(struct fay_expr){
				     .op = EXPR_SQUARE, .type = TYPE_INT, .a = x, .value = part });
}

const struct fay_expr *fay_expr_quantile(struct fay_exprs *exprs, const struct fay_expr *aggregate,
					 double q)
{
	return intern(exprs,
		      &(struct fay_expr){
			      .op = EXPR_QUANTILE, .type = TYPE_REAL, .a = aggregate, .real = q });
}

const struct fay_expr *fay_expr_folded(struct fay_exprs *exprs, enum fay_type type)
{
	return intern(exprs, &(struct fay_expr){ .op = EXPR_FOLDED, .type = type });
}

const struct fay_expr *fay_expr_row(struct fay_exprs *exprs)
{
	return intern(exprs, &(struct fay_expr){ .op = EXPR_ROW, .type = TYPE_INT });
}

const struct fay_expr *fay_expr_label(struct fay_exprs *exprs, unsigned level)
{
	return intern(exprs,
		      &(struct fay_expr){ .op = EXPR_LABEL, .type = TYPE_INT, .value = level });
}

const struct fay_expr *fay_expr_window(struct fay_exprs *exprs)
{
	return intern(exprs, &(struct fay_expr){ .op = EXPR_WINDOW, .type = TYPE_INT });
}

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

static bool strings_equal(const struct fay_expr *a, const struct fay_expr *b)
{
	return a->length == b->length && (!a->length || !memcmp(a->string, b->string, a->length));
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
				      "an expression may be %u operators deep",
				      FAY_QUERY_MAX_DEPTH);
	if (result->operations > FAY_QUERY_MAX_OPERATIONS)
		return fay_query_fail(exprs->query, FAY_E_LIMIT, span,
				      "an expression may have %u operations, `let`s included",
				      FAY_QUERY_MAX_OPERATIONS);
	return result;
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
	return limited(exprs, span,
		       intern(exprs, &(struct fay_expr){
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
			       intern(exprs, &(struct fay_expr){ .op = EXPR_PAIR,
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
	const struct fay_expr *call = limited(exprs, span, intern(exprs, &wanted));
	return call && one ? fay_expr_side(exprs, (unsigned)side->value, side->name, call) : call;
}
