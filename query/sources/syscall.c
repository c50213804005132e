/* SPDX-License-Identifier: MIT */
/*
 * System calls: which there are, and their arguments by name and type. Several calls may have one
 * argument in different places, `filename` of open and of openat; which place it is, the event's
 * function tells.
 */
#include "sources.h"

#include <string.h>

#define ARGUMENTS 6u

static const struct fay_syscall syscalls[] = {
#define FAY_SYSCALL(name, number) { #name, number },
#include "syscalls.def"
};

static const struct {
	const char *name, *arguments;
} signatures[] = {
#define FAY_SIGNATURE(name, arguments) { #name, arguments },
#include "syscall_signatures.def"
};

const struct fay_syscall *fay_syscalls(size_t *count)
{
	*count = sizeof(syscalls) / sizeof(syscalls[0]);
	return syscalls;
}

const char *fay_syscall_arguments(const char *name)
{
	for (size_t i = 0; i < sizeof(signatures) / sizeof(signatures[0]); i++)
		if (strcmp(signatures[i].name, name) == 0)
			return signatures[i].arguments;
	return NULL;
}

/* --- one signature --- */

struct argument {
	const char *type, *name; /* in the signature, with their lengths */
	size_t type_length, name_length;
	uint32_t index;
};

/* The next argument of what is left of a signature, which is moved behind it; false: none. */
static bool next_argument(const char **signature, struct argument *argument)
{
	const char *text = *signature;
	size_t whole = strcspn(text, ","), name = whole;
	if (!whole)
		return false;
	while (name && text[name - 1] != ' ' && text[name - 1] != '*')
		name--;
	argument->type = text;
	argument->type_length = name && text[name - 1] == ' ' ? name - 1 : name;
	argument->name = text + name;
	argument->name_length = whole - name;
	argument->index++;
	*signature = text + whole + strspn(text + whole, ", ");
	return true;
}

static bool is(const char *text, size_t length, const char *what)
{
	return strlen(what) == length && !memcmp(text, what, length);
}

static bool find_argument(const char *call, const char *name, struct argument *argument)
{
	const char *signature = fay_syscall_arguments(call) ?: "";
	*argument = (struct argument){ .index = UINT32_MAX };
	while (next_argument(&signature, argument))
		if (is(argument->name, argument->name_length, name))
			return true;
	return false;
}

bool fay_check_name_arguments(struct fay_checked *checked)
{
	struct fay_kernel_source *kernel = checked->kernel;
	struct argument argument = { .index = UINT32_MAX };
	const char *signature = fay_syscall_arguments(kernel->points[0].name);
	if (kernel->count > 1 || !signature)
		return true;
	while (next_argument(&signature, &argument)) {
		kernel->arguments[argument.index].name =
			fay_query_copy(checked->exprs.query, argument.name, argument.name_length);
		if (!kernel->arguments[argument.index].name)
			return false;
		kernel->argument_count = argument.index + 1;
	}
	return true;
}

/* --- types --- */

struct shape {
	struct fay_access access;
	bool string;
	const struct fay_enumeration *values;
};

/* Numbers that do not fill a register; all others do. */
static const struct {
	const char *name;
	uint8_t bytes;
	bool is_signed;
} narrow[] = {
	{ "int", 4, true },
	{ "unsigned int", 4, false },
	{ "u32", 4, false },
	{ "__u32", 4, false },
	{ "__s32", 4, true },
	{ "pid_t", 4, true },
	{ "uid_t", 4, false },
	{ "gid_t", 4, false },
	{ "qid_t", 4, false },
	{ "umode_t", 2, false },
	{ "key_t", 4, true },
	{ "key_serial_t", 4, true },
	{ "clockid_t", 4, true },
	{ "mqd_t", 4, true },
	{ "timer_t", 4, true },
	{ "rwf_t", 4, true },
	{ "enum landlock_rule_type", 4, false },
};

static struct shape shape_of(struct fay_checked *checked, const char *call,
			     const struct argument *argument)
{
	const char *name =
		fay_query_copy(checked->exprs.query, argument->name, argument->name_length);
	struct shape shape = { .access = { .bytes = 8 },
			       .string = is(argument->type, argument->type_length, "const char *"),
			       .values = name ? fay_syscall_values(call, name) : NULL };
	for (size_t i = 0; i < sizeof(narrow) / sizeof(narrow[0]); i++)
		if (is(argument->type, argument->type_length, narrow[i].name)) {
			shape.access.bytes = narrow[i].bytes;
			shape.access.is_signed = narrow[i].is_signed;
		}
	if (is(argument->type, argument->type_length, "umode_t"))
		shape.values = fay_syscall_modes;
	if (!shape.values && !shape.string && argument->type_length &&
	    argument->type[argument->type_length - 1] == '*')
		shape.values = fay_pointers;
	/* flags are bits, whatever their type */
	if (shape.values && shape.values->rest != FAY_REST_DECIMAL)
		shape.access.is_signed = false;
	return shape;
}

static bool same_shape(const struct shape *a, const struct shape *b)
{
	return a->string == b->string && a->values == b->values &&
	       a->access.bytes == b->access.bytes && a->access.is_signed == b->access.is_signed;
}

/* --- the argument of those that match --- */

struct places {
	struct shape shape;
	const char *first, *lacking; /* a call that has it, one that has not; NULL */
	/* whether the event is of one of the calls that have it there; NULL: there is none */
	const struct fay_expr *calls[ARGUMENTS];
};

static const struct fay_expr *is_call(struct fay_checked *checked, const struct fay_node *node,
				      const char *call, const struct fay_expr *others)
{
	struct fay_exprs *exprs = &checked->exprs;
	const struct fay_expr *function = fay_expr_field(exprs, fay_field_of("function"));
	const struct fay_expr *name =
		fay_expr_int(exprs, TYPE_FUNCTION, (int64_t)fay_name_hash(call));
	const struct fay_expr *is =
		function && name
			? fay_expr_make(exprs, node->span, EXPR_EQ, TYPE_BOOL, function, name, NULL)
			: NULL;
	return is && others ? fay_expr_make(exprs, node->span, EXPR_OR, TYPE_BOOL, others, is, NULL)
			    : is;
}

/* false with the error recorded */
static bool find_places(struct fay_checked *checked, const struct fay_node *node,
			struct places *places)
{
	const struct fay_kernel_source *kernel = checked->kernel;
	for (uint32_t i = 0; i < kernel->count; i++) {
		const char *call = kernel->points[i].name;
		struct argument argument;
		if (!find_argument(call, node->name, &argument)) {
			places->lacking = call;
			continue;
		}
		struct shape shape = shape_of(checked, call, &argument);
		if (!places->first) {
			places->first = call;
			places->shape = shape;
		} else if (!same_shape(&places->shape, &shape)) {
			return fay_query_fail(checked->exprs.query, FAY_E_USAGE, node->name_span,
					      "`%s` of `%s` and of `%s` are different things: name "
					      "one of them",
					      node->name, places->first, call) != NULL;
		}
		const struct fay_expr **calls = &places->calls[argument.index];
		*calls = is_call(checked, node, call, *calls);
		if (!*calls)
			return false;
	}
	return true;
}

static const struct fay_expr *choose(struct fay_checked *checked, const struct fay_node *node,
				     const struct places *places)
{
	struct fay_exprs *exprs = &checked->exprs;
	const struct fay_expr *value = places->lacking ? fay_expr_int(exprs, TYPE_INT, 0) : NULL;
	for (uint32_t i = 0; i < ARGUMENTS; i++) {
		struct fay_access access = places->shape.access;
		if (!places->calls[i])
			continue;
		access.offset = i;
		const struct fay_expr *argument = fay_expr_named_arg(exprs, access, node->name);
		if (!argument)
			return NULL;
		value = value ? fay_expr_make(exprs, node->span, EXPR_COND, TYPE_INT,
					      places->calls[i], argument, value)
			      : argument;
		if (!value)
			return NULL;
	}
	return value;
}

struct fay_value_node *fay_check_syscall_argument(struct fay_checked *checked,
						  const struct fay_node *node)
{
	struct places places = { 0 };
	if (!find_places(checked, node, &places) || !places.first)
		return NULL;
	if (places.lacking && !places.shape.string)
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, node->name_span,
				      "`%s` has no `%s`: name system calls that all have it",
				      places.lacking, node->name);
	const struct fay_expr *value = choose(checked, node, &places);
	if (value && places.shape.values)
		value = fay_expr_enumerated(&checked->exprs, value, places.shape.values);
	struct fay_value_node *number = fay_check_scalar(checked, value);
	return number && places.shape.string ? fay_check_text(checked, node, number) : number;
}

/* -4095 to -1 are errors. */
struct fay_value_node *fay_check_syscall_error(struct fay_checked *checked,
					       const struct fay_node *node)
{
	struct fay_exprs *exprs = &checked->exprs;
	if (checked->domain == DOMAIN_FILE &&
	    !fay_check_saved(checked, node->name_span, "ReturnValue"))
		return NULL;
	checked->uses_end = true;
	const struct fay_expr *result = fay_expr_field(exprs, fay_field_of("ReturnValue"));
	const struct fay_expr *zero = fay_expr_int(exprs, TYPE_INT, 0),
			      *last = fay_expr_int(exprs, TYPE_INT, -4095);
	if (!result || !zero || !last)
		return NULL;
	const struct fay_expr *below =
		fay_expr_make(exprs, node->span, EXPR_LT, TYPE_BOOL, result, zero, NULL);
	const struct fay_expr *above =
		fay_expr_make(exprs, node->span, EXPR_GE, TYPE_BOOL, result, last, NULL);
	const struct fay_expr *failed =
		below && above
			? fay_expr_make(exprs, node->span, EXPR_AND, TYPE_BOOL, below, above, NULL)
			: NULL;
	const struct fay_expr *number =
		fay_expr_make(exprs, node->span, EXPR_NEG, TYPE_INT, result, NULL, NULL);
	const struct fay_expr *error = failed && number
					       ? fay_expr_make(exprs, node->span, EXPR_COND,
							       TYPE_INT, failed, number, zero)
					       : NULL;
	return error ? fay_check_scalar(checked,
					fay_expr_enumerated(exprs, error, fay_syscall_errors))
		     : NULL;
}
