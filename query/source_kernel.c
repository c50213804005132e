/* SPDX-License-Identifier: MIT */
/*
 * Sources in the kernel: system calls by name, tracepoints with their arguments by name and type. Names and types come from the kernel's
 * own description (BTF), so a query is checked against the kernel that it will run on.
 *
 * An argument that is a number is a value. One that points to a structure is followed by name, `sw.next.pid`, as far as one likes: each pointer on the way is read when
 * the event happens, and what lies behind a null pointer is 0 or "".
 */
#include "check.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "fay/bpf.h"

#define NAMES_MAX 4096u

static const struct {
	const char *name;
	uint32_t number;
} syscalls[] = {
#define FAY_SYSCALL(name, number) {#name, number},
#include "syscalls.def"
};
#define SYSCALL_COUNT (sizeof(syscalls) / sizeof(syscalls[0]))

/* --- patterns ---------------------------------------------------------------------------------------------------------- */

/* Names that match, into `kernel`; what is near to a single one that does not exist, in the message. */
static bool add_matches(struct fay_checked *checked, const struct fay_node *at, const char *glob, const char *const *names, size_t count, const char *what)
{
	struct fay_query *query = checked->exprs.query;
	struct fay_kernel_source *kernel = checked->kernel;
	const uint32_t max = checked->kind == SOURCE_SYSCALL ? sizeof(kernel->points) / sizeof(kernel->points[0]) : FAY_KERNEL_POINTS_MAX;
	for (size_t i = 0; i < count; i++) {
		if (fnmatch(glob, names[i], 0))
			continue;
		if (kernel->count == max)
			return fay_query_fail(query, FAY_E_LIMIT, at->span, "more than %u %ss match", max, what) != NULL;
		const char *copy = fay_query_copy(query, names[i], strlen(names[i]));
		if (!copy)
			return false;
		kernel->points[kernel->count++] = (struct fay_kernel_point){copy, checked->kind == SOURCE_SYSCALL ? syscalls[i].number : 0};
	}
	if (kernel->count)
		return true;
	if (strpbrk(glob, "*?["))
		return fay_query_fail(query, FAY_E_REFUSED, at->span, "no %s matches `%s`", what, glob) != NULL;
	return fay_query_fail(query, FAY_E_USAGE, at->span, "unknown %s `%s`%s", what, glob, fay_query_did_you_mean(query, glob, names, count)) != NULL;
}

static bool find_syscalls(struct fay_checked *checked, const struct fay_node *at)
{
	const char *names[SYSCALL_COUNT];
	for (size_t i = 0; i < SYSCALL_COUNT; i++)
		names[i] = syscalls[i].name;
	return add_matches(checked, at, at->name, names, SYSCALL_COUNT, "system call");
}

static struct fay_btf *kernel_types(struct fay_checked *checked, struct fay_span span)
{
	struct fay_query *query = checked->exprs.query;
	struct fay_error error;
	if (!query->btf && fay_btf_open(getenv("FAY_BTF"), &query->btf, &error))
		return fay_query_fail(query, error.code, span, "%s", error.message);
	return query->btf;
}

/* What one tracepoint hands over; events of several have nothing in common but what all events have. */
static bool find_arguments(struct fay_checked *checked, const struct fay_node *at)
{
	struct fay_kernel_source *kernel = checked->kernel;
	struct fay_btf_tracepoint tracepoint;
	if (kernel->count > 1)
		return true;
	if (!fay_btf_tracepoint(checked->exprs.query->btf, kernel->points[0].name, &tracepoint))
		return fay_query_fail(checked->exprs.query, FAY_E_REFUSED, at->span, "the kernel's types do not describe tracepoint `%s`", kernel->points[0].name) !=
		       NULL;
	kernel->argument_count = tracepoint.argument_count;
	for (uint32_t i = 0; i < tracepoint.argument_count; i++) {
		kernel->arguments[i].name = tracepoint.arguments[i].name;
		kernel->arguments[i].type = tracepoint.arguments[i].type;
	}
	return true;
}

/* "system:name" or "name". The kernel's types do not tell which system a tracepoint belongs to, so what stands before the colon is for people. */
static bool find_tracepoints(struct fay_checked *checked, const struct fay_node *at)
{
	const char *colon = strchr(at->name, ':'), *glob = colon ? colon + 1 : at->name;
	struct fay_btf *btf = kernel_types(checked, at->span);
	if (!btf)
		return false;
	const char **names = malloc(NAMES_MAX * sizeof(*names));
	if (!names)
		return fay_query_fail(checked->exprs.query, FAY_E_LIMIT, at->span, "out of memory") != NULL;
	size_t count = fay_btf_tracepoints(btf, names, NAMES_MAX);
	bool found = add_matches(checked, at, glob, names, count < NAMES_MAX ? count : NAMES_MAX, "tracepoint");
	free(names);
	return found && find_arguments(checked, at);
}

const char *fay_check_kernel_pattern(struct fay_checked *checked, const struct fay_node *call)
{
	struct fay_query *query = checked->exprs.query;
	bool syscall = checked->kind == SOURCE_SYSCALL;
	const struct fay_node *at = call->item_count == 1 ? call->items->value : NULL;
	if (!at || at->kind != NODE_STRING)
		return fay_query_fail(query, FAY_E_USAGE, at ? at->span : call->span, "`%s` takes one string such as \"%s\"", call->a->name,
				      syscall ? "read" : "sched:sched_switch");
	if (!at->length || at->length >= FAY_IMAGE_MAX_STRING)
		return fay_query_fail(query, at->length ? FAY_E_LIMIT : FAY_E_USAGE, at->span, "a pattern has 1 to %u bytes", FAY_IMAGE_MAX_STRING - 1);
	checked->domain = DOMAIN_KERNEL;
	checked->kernel = fay_query_alloc(query, sizeof(*checked->kernel));
	if (!checked->kernel || !(syscall ? find_syscalls(checked, at) : find_tracepoints(checked, at)))
		return NULL;
	return fay_query_format(query, "kernel!%s%s", syscall ? "syscall:" : "", at->name);
}


const char *fay_check_timer(struct fay_checked *checked, const struct fay_node *call)
{
	struct fay_query *query = checked->exprs.query;
	const struct fay_node *at = call->item_count == 1 ? call->items->value : NULL;
	const struct fay_expr *period = at ? fay_check_typed(checked, NULL, at, TYPE_INT, "a period") : NULL;
	if (!at)
		return fay_query_fail(query, FAY_E_USAGE, call->span, "`Timer` takes a period such as 10ms");
	if (!period)
		return NULL;
	if (!fay_expr_is_constant(period) || period->value < FAY_BPF_PERIOD_LEAST || period->value > (int64_t)FAY_BPF_PERIOD_MOST)
		return fay_query_fail(query, FAY_E_USAGE, at->span, "a timer's period is a constant from 100us to 1h");
	checked->domain = DOMAIN_KERNEL;
	checked->kernel = fay_query_alloc(query, sizeof(*checked->kernel));
	if (!checked->kernel)
		return NULL;
	checked->kernel->period = (uint64_t)period->value;
	checked->kernel->points[checked->kernel->count++].name = "timer";
	return "kernel!timer";
}

bool fay_check_kernel_function(struct fay_checked *checked, const char *pattern)
{
	struct fay_query *query = checked->exprs.query;
	struct fay_btf_tracepoint function;
	const char *name = strchr(pattern, '!') + 1;
	struct fay_kernel_source *kernel = checked->kernel = fay_query_alloc(query, sizeof(*kernel));
	if (!kernel)
		return false;
	if (checked->kind != SOURCE_ENTRY || strpbrk(name, "*?[") || (!query->btf && fay_btf_open(getenv("FAY_BTF"), &query->btf, NULL)) ||
	    !fay_btf_function(query->btf, name, &function))
		return true; /* Arg(n) is known all the same */
	for (uint32_t i = 0; i < function.argument_count && i < 6; i++) {
		kernel->arguments[i].name = function.arguments[i].name;
		kernel->arguments[i].type = function.arguments[i].type;
		kernel->argument_count = i + 1;
		uint32_t size = fay_btf_size(query->btf, function.arguments[i].type);
		if (!size || size > 8)
			break; /* what follows is not in the next register */
	}
	return true;
}

/* --- values ------------------------------------------------------------------------------------------------------------- */

static bool is_char(const struct fay_btf *btf, uint32_t id)
{
	const struct btf_type *type = fay_btf_type(btf, fay_btf_strip(btf, id));
	return type && BTF_INFO_KIND(type->info) == BTF_KIND_INT && type->size == 1 && !(BTF_INT_ENCODING(*(const uint32_t *)(type + 1)) & BTF_INT_BOOL);
}

static bool is_structure(const struct fay_btf *btf, uint32_t id)
{
	const struct btf_type *type = fay_btf_type(btf, fay_btf_strip(btf, id));
	return type && (BTF_INFO_KIND(type->info) == BTF_KIND_STRUCT || BTF_INFO_KIND(type->info) == BTF_KIND_UNION);
}

/* A value of some type: an argument, or what lies `offset` bytes behind an address. */
struct place {
	const struct fay_expr *address; /* NULL: the argument number `offset` itself */
	uint32_t offset, bit, bits;     /* bits: of a bit field that begins at `bit` of the byte there; 0 */
	const char *name;
};

static const struct fay_expr *access_place(struct fay_checked *checked, const struct place *place, uint32_t bytes, bool is_signed)
{
	struct fay_access access = {place->offset, (uint8_t)bytes, is_signed, false};
	return place->address ? fay_expr_member(&checked->exprs, place->address, access, place->name) : fay_expr_kernel_arg(&checked->exprs, access, place->name);
}

static struct fay_value_node *scalar(struct fay_checked *checked, const struct fay_expr *expr)
{
	return expr ? fay_check_scalar(checked, expr) : NULL;
}

/* The smallest aligned word around the field, shifted up and down. */
static const struct fay_expr *bit_field(struct fay_checked *checked, struct place place, bool is_signed)
{
	struct fay_exprs *exprs = &checked->exprs;
	struct fay_span span = {0, 0};
	uint32_t bytes = 1, first = place.offset * 8 + place.bit;
	while (bytes < 8 && first / (bytes * 8) != (first + place.bits - 1) / (bytes * 8))
		bytes *= 2;
	uint32_t at = first % (bytes * 8);
	place.offset = first / (bytes * 8) * bytes;
	const struct fay_expr *word = access_place(checked, &place, bytes, false), *left, *right;
	left = fay_expr_int(exprs, TYPE_INT, 64 - at - place.bits);
	right = fay_expr_int(exprs, TYPE_INT, 64 - place.bits);
	if (!word || !left || !right)
		return NULL;
	word = fay_expr_make(exprs, span, EXPR_SHL, TYPE_INT, word, left, NULL);
	return word ? fay_expr_make(exprs, span, is_signed ? EXPR_SHR : EXPR_SHR_LOGICAL, TYPE_INT, word, right, NULL) : NULL;
}

static struct fay_value_node *number(struct fay_checked *checked, const struct place *place, uint32_t bytes, bool is_signed, bool boolean)
{
	const struct fay_expr *expr = place->bits ? bit_field(checked, *place, is_signed) : access_place(checked, place, bytes, is_signed);
	const struct fay_expr *zero = boolean ? fay_expr_int(&checked->exprs, TYPE_INT, 0) : NULL;
	if (expr && zero)
		expr = fay_expr_make(&checked->exprs, (struct fay_span){0, 0}, EXPR_NE, TYPE_BOOL, expr, zero, NULL);
	return scalar(checked, expr);
}

static struct fay_value_node *string_at(struct fay_checked *checked, const struct fay_expr *address, uint32_t offset, const char *name)
{
	return address ? scalar(checked, fay_expr_member(&checked->exprs, address, (struct fay_access){.offset = offset, .string = true}, name)) : NULL;
}

static struct fay_value_node *object_at(struct fay_checked *checked, const struct fay_expr *address, uint32_t offset, uint32_t type, const char *path)
{
	struct fay_value_node *object = address && path ? fay_check_value(checked, VALUE_OBJECT) : NULL;
	if (object) {
		object->expr = address;
		object->offset = offset;
		object->type = type;
		object->path = path;
	}
	return object;
}

static struct fay_value_node *unsupported(struct fay_checked *checked, const struct fay_node *at, const char *name, const char *what)
{
	return fay_query_fail(checked->exprs.query, FAY_E_REFUSED, at->name_span.end ? at->name_span : at->span, "`%s` is %s, which is not supported", name, what);
}

static struct fay_value_node *pointer(struct fay_checked *checked, const struct place *place, uint32_t target)
{
	const struct fay_btf *btf = checked->exprs.query->btf;
	const struct fay_expr *address = access_place(checked, place, 8, false);
	/* A pointer into the program's memory has a tag of that name. */
	const struct btf_type *type = fay_btf_type(btf, target);
	bool user = type && BTF_INFO_KIND(type->info) == BTF_KIND_TYPE_TAG && !strcmp(fay_btf_string(btf, type->name_off), "user");
	if (user)
		return scalar(checked, address);
	if (is_structure(btf, target))
		return object_at(checked, address, 0, target, "");
	return is_char(btf, target) ? string_at(checked, address, 0, "") : scalar(checked, address);
}

static struct fay_value_node *value_of(struct fay_checked *checked, const struct fay_node *at, const struct place *place, uint32_t id)
{
	const struct fay_btf *btf = checked->exprs.query->btf;
	uint32_t stripped = fay_btf_strip(btf, id), size = fay_btf_size(btf, stripped);
	const struct btf_type *type = fay_btf_type(btf, stripped);
	uint32_t encoding;
	switch (type ? BTF_INFO_KIND(type->info) : BTF_KIND_UNKN) {
	case BTF_KIND_INT:
		encoding = BTF_INT_ENCODING(*(const uint32_t *)(type + 1));
		if (size > 8)
			return unsupported(checked, at, place->name, "an integer of more than 64 bits");
		return number(checked, place, size, encoding & BTF_INT_SIGNED, encoding & BTF_INT_BOOL);
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		return number(checked, place, size, size < 8, false);
	case BTF_KIND_PTR:
		return pointer(checked, place, type->type);
	case BTF_KIND_ARRAY:
		if (place->address && is_char(btf, ((const struct btf_array *)(type + 1))->type))
			return string_at(checked, place->address, place->offset, place->name);
		return unsupported(checked, at, place->name, "an array");
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		if (place->address)
			return object_at(checked, place->address, place->offset, stripped, fay_query_format(checked->exprs.query, "%s.", place->name));
		return unsupported(checked, at, place->name, "a structure handed over by value");
	default:
		return unsupported(checked, at, place->name, "of a type without a value");
	}
}

struct fay_value_node *fay_check_kernel_argument(struct fay_checked *checked, const struct fay_node *node)
{
	const struct fay_kernel_source *kernel = checked->kernel;
	if (checked->kind == SOURCE_TRACEPOINT && kernel->count > 1)
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, node->name_span,
				      "unknown field `%s`: events of several tracepoints (%u match) have only what all events have; name one tracepoint", node->name,
				      kernel->count);
	for (uint32_t i = 0; i < kernel->argument_count; i++) {
		struct place place = {.offset = i, .name = kernel->arguments[i].name};
		if (strcmp(kernel->arguments[i].name, node->name) == 0)
			return value_of(checked, node, &place, kernel->arguments[i].type);
	}
	return NULL;
}

struct fay_value_node *fay_check_kernel_arg(struct fay_checked *checked, const struct fay_node *at, uint32_t index)
{
	const struct fay_kernel_source *kernel = checked->kernel;
	if (index >= kernel->argument_count)
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, at->span, "there is no such argument: `%s` has %u", kernel->points[0].name,
				      kernel->argument_count);
	struct place place = {.offset = index, .name = kernel->arguments[index].name};
	struct fay_value_node *value = value_of(checked, at, &place, kernel->arguments[index].type);
	if (value && (value->kind != VALUE_SCALAR || value->expr->type == TYPE_STRING))
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, at->span, "argument %u is no number; it is known as `%s`", index,
				      kernel->arguments[index].name);
	return value;
}

struct fay_value_node *fay_check_kernel_member(struct fay_checked *checked, const struct fay_node *node, const struct fay_value_node *object)
{
	struct fay_query *query = checked->exprs.query;
	const char *candidates[512];
	struct fay_btf_field field;
	if (!fay_btf_member(query->btf, object->type, node->name, &field)) {
		const struct btf_type *type = fay_btf_type(query->btf, fay_btf_strip(query->btf, object->type));
		size_t count = fay_btf_member_names(query->btf, object->type, candidates, 512);
		return fay_query_fail(query, FAY_E_USAGE, node->name_span, "`struct %s` has no member `%s`%s",
				      type ? fay_btf_string(query->btf, type->name_off) : "", node->name,
				      fay_query_did_you_mean(query, node->name, candidates, count));
	}
	struct place place = {.address = object->expr,
			      .offset = object->offset + field.bit_offset / 8,
			      .bit = field.bit_offset % 8,
			      .bits = field.bits,
			      .name = fay_query_format(query, "%s%s", object->path, field.name)};
	return place.name ? value_of(checked, node, &place, field.type) : NULL;
}
