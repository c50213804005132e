/* SPDX-License-Identifier: MIT */
/* Values with types, and what is reached from them by name: see sources.h. */
#include <bpf/btf.h>
#include <string.h>

#include "query/debug/debug.h"
#include "sources.h"

static const struct btf *btf_of(const struct fay_types *types)
{
	return types->program ? fay_debug_function_types(types->program) : types->kernel;
}

static unsigned kind_of(const struct btf *btf, uint32_t id)
{
	return btf_kind(btf__type_by_id(btf, fay_btf_strip(btf, id)));
}

static bool is_char(const struct btf *btf, uint32_t id)
{
	const struct btf_type *type = btf__type_by_id(btf, fay_btf_strip(btf, id));
	return btf_is_int(type) && type->size == 1 && !(btf_int_encoding(type) & BTF_INT_BOOL);
}

/* Of a structure of which only the name is known, the definition is looked for. */
static bool is_structure(struct fay_types *types, uint32_t id)
{
	const struct btf *btf = btf_of(types);
	if (types->program && kind_of(btf, id) == BTF_KIND_FWD &&
	    fay_debug_function_complete(types->program, fay_btf_strip(btf, id)))
		btf = btf_of(types);
	return kind_of(btf, id) == BTF_KIND_STRUCT || kind_of(btf, id) == BTF_KIND_UNION;
}

/* --- numbers
 * -------------------------------------------------------------------------------------------------
 * */

static const struct fay_expr *operation(struct fay_checked *checked, enum fay_expr_op op,
					const struct fay_expr *a, uint64_t b)
{
	const struct fay_expr *right =
		a ? fay_expr_int(&checked->exprs, TYPE_INT, (int64_t)b) : NULL;
	return right ? fay_expr_make(&checked->exprs, (struct fay_span){ 0, 0 }, op,
				     op == EXPR_NE ? TYPE_BOOL : TYPE_INT, a, right, NULL)
		     : NULL;
}

/* Bits `at` to `at + bits - 1` of a word. */
static const struct fay_expr *part_of(struct fay_checked *checked, const struct fay_expr *word,
				      uint32_t at, uint32_t bits, bool is_signed)
{
	if (bits >= 64)
		return word;
	word = operation(checked, EXPR_SHL, word, 64 - at - bits);
	return operation(checked, is_signed ? EXPR_SHR : EXPR_SHR_LOGICAL, word, 64 - bits);
}

static const struct fay_expr *access_place(struct fay_checked *checked,
					   const struct fay_place *place, uint32_t bytes,
					   bool is_signed)
{
	struct fay_access access = { .offset = place->offset,
				     .bytes = (uint8_t)bytes,
				     .is_signed = is_signed,
				     .words = place->words,
				     .calls = place->calls };
	if (place->word)
		return part_of(checked, place->word, 0, bytes * 8, is_signed);
	return place->address
		       ? fay_expr_member(&checked->exprs, place->address, access, place->name)
		       : fay_expr_named_arg(&checked->exprs, access, place->name);
}

/* The smallest aligned word around the field, shifted up and down. */
static const struct fay_expr *bit_field(struct fay_checked *checked, struct fay_place place,
					bool is_signed)
{
	uint32_t bytes = 1, first = place.offset * 8 + place.bit;
	while (bytes < 8 && first / (bytes * 8) != (first + place.bits - 1) / (bytes * 8))
		bytes *= 2;
	place.offset = first / (bytes * 8) * bytes;
	return part_of(checked, access_place(checked, &place, bytes, false), first % (bytes * 8),
		       place.bits, is_signed);
}

static struct fay_value_node *scalar(struct fay_checked *checked, const struct fay_expr *expr)
{
	return expr ? fay_check_scalar(checked, expr) : NULL;
}

static struct fay_value_node *number(struct fay_checked *checked, const struct fay_place *place,
				     uint32_t bytes, bool is_signed, bool boolean)
{
	const struct fay_expr *expr = place->bits ? bit_field(checked, *place, is_signed)
						  : access_place(checked, place, bytes, is_signed);
	return scalar(checked, boolean ? operation(checked, EXPR_NE, expr, 0) : expr);
}

/* --- enumerations
 * -------------------------------------------------------------------------------------------------
 * */

/* One for each type, so that equal expressions stay equal. */
static const struct fay_enumeration *enumeration_of(struct fay_checked *checked,
						    struct fay_types *types, uint32_t id)
{
	struct fay_query *query = checked->exprs.query;
	const struct btf *btf = btf_of(types);
	const struct btf_type *type = btf__type_by_id(btf, id);
	uint32_t count = btf_vlen(type);
	for (struct fay_enumeration *known = types->enumerations; known; known = known->next)
		if (known->type == id)
			return known;
	struct fay_enumeration *enumeration = fay_query_alloc(
		query, sizeof(*enumeration) + count * sizeof(enumeration->items[0]));
	if (!enumeration)
		return NULL;
	enumeration->name = fay_btf_name(btf, type->name_off);
	enumeration->type = id;
	enumeration->next = types->enumerations;
	types->enumerations = enumeration;
	enumeration->count = count;
	for (uint32_t i = 0; i < count; i++) {
		const struct btf_enum *narrow = &btf_enum(type)[i];
		const struct btf_enum64 *wide = &btf_enum64(type)[i];
		bool is_wide = btf_is_enum64(type);
		enumeration->items[i].name =
			fay_btf_name(btf, is_wide ? wide->name_off : narrow->name_off);
		enumeration->items[i].value =
			is_wide ? (int64_t)btf_enum64_value(wide) : narrow->val;
		enumeration->items[i].mask = -1;
	}
	return enumeration;
}

/* BTF has words of 32 bits for constants, whose sign is theirs; a smaller type is signed if one of
 * them is negative. */
static bool is_signed(const struct btf_type *type)
{
	const struct btf_enum *items = btf_enum(type);
	bool negative = type->size == sizeof(items->val);
	if (btf_is_enum64(type))
		return btf_kflag(type);
	for (uint32_t i = 0; i < btf_vlen(type); i++)
		negative |= items[i].val < 0;
	return negative;
}

static struct fay_value_node *enumerated(struct fay_checked *checked, const struct fay_place *place,
					 uint32_t id)
{
	const struct btf_type *type = btf__type_by_id(btf_of(place->types), id);
	struct fay_value_node *value = number(checked, place, type->size, is_signed(type), false);
	const struct fay_enumeration *enumeration =
		value ? enumeration_of(checked, place->types, id) : NULL;
	return enumeration ? scalar(checked,
				    fay_expr_enumerated(&checked->exprs, value->expr, enumeration))
			   : NULL;
}

/* --- what is reached
 * -------------------------------------------------------------------------------------------------
 * */

/* Functions of the kernel may be native probes' there, which do not. */
static bool reads_whole(const struct fay_checked *checked)
{
	const struct fay_query_options *options = checked->exprs.query->options;
	return options &&
	       (checked->domain == DOMAIN_USER
			? options->long_strings
			: options->long_kernel_strings && fay_source_is_bpf(checked->kind) &&
				  checked->domain == DOMAIN_KERNEL);
}

/* `size`: bytes of the array that it is in; 0: not known. `user`: of an event of the kernel, in the
 * program's memory. */
static struct fay_value_node *string_at(struct fay_checked *checked, const struct fay_expr *address,
					uint32_t offset, uint32_t size, bool user, const char *name)
{
	bool whole = reads_whole(checked);
	struct fay_access access = { .offset = offset,
				     .string = true,
				     .user = user && checked->domain == DOMAIN_KERNEL,
				     .whole = whole,
				     .limit = size < (whole ? FAY_TEXT_MAX : FAY_COMM_SIZE)
						      ? (uint16_t)size
						      : 0 };
	return address ? scalar(checked, fay_expr_member(&checked->exprs, address, access, name))
		       : NULL;
}

static struct fay_value_node *object_at(struct fay_checked *checked, const struct fay_place *place,
					uint32_t type)
{
	struct fay_value_node *object = fay_check_value(checked, VALUE_OBJECT);
	if (object) {
		object->types = place->types;
		object->expr = place->address;
		object->offset = place->offset;
		object->type = type;
		object->path = place->name;
	}
	return object;
}

static struct fay_value_node *unsupported(struct fay_checked *checked, const struct fay_node *at,
					  const char *name, const char *what)
{
	return fay_query_fail(checked->exprs.query, FAY_E_REFUSED,
			      at->name_span.end ? at->name_span : at->span,
			      "`%s` is %s, which is not supported", name, what);
}

/* An address; what lies there is known. */
static struct fay_value_node *pointing_to(struct fay_types *types, struct fay_value_node *value,
					  uint32_t target)
{
	if (value && target) {
		value->types = types;
		value->type = target;
		value->path = "";
	}
	return value;
}

static struct fay_value_node *address_value(struct fay_checked *checked,
					    const struct fay_expr *address)
{
	return scalar(checked,
		      address ? fay_expr_enumerated(&checked->exprs, address, fay_pointers) : NULL);
}

static struct fay_value_node *pointer(struct fay_checked *checked, const struct fay_place *place,
				      uint32_t target)
{
	const struct btf *btf = btf_of(place->types);
	const struct fay_expr *address = access_place(checked, place, 8, false);
	/* A pointer from the kernel into the program's memory has a tag of that name. */
	const struct btf_type *type = btf__type_by_id(btf, target);
	bool user =
		type && btf_is_type_tag(type) && !strcmp(fay_btf_name(btf, type->name_off), "user");
	if (user)
		return address_value(checked, address);
	return pointing_to(place->types,
			   is_char(btf, target) ? string_at(checked, address, 0, 0, false, "")
						: address_value(checked, address),
			   target);
}

static struct fay_value_node *array(struct fay_checked *checked, const struct fay_node *at,
				    const struct fay_place *place, uint32_t id)
{
	const struct btf *btf = btf_of(place->types);
	const struct btf_array *array = btf_array(btf__type_by_id(btf, id));
	if (!place->address)
		return unsupported(checked, at, place->name, "an array");
	if (!is_char(btf, array->type))
		return object_at(checked, place, id);
	return pointing_to(place->types,
			   string_at(checked, place->address, place->offset, array->nelems, false,
				     place->name),
			   id);
}

struct fay_value_node *fay_check_typed_value(struct fay_checked *checked, const struct fay_node *at,
					     const struct fay_place *place, uint32_t id)
{
	const struct btf *btf = btf_of(place->types);
	uint32_t stripped = fay_btf_strip(btf, id), encoding;
	const struct btf_type *type = btf__type_by_id(btf, stripped);
	switch (btf_kind(type)) {
	case BTF_KIND_INT:
		encoding = btf_int_encoding(type);
		if (type->size > 8)
			return unsupported(checked, at, place->name,
					   "an integer of more than 64 bits");
		return number(checked, place, type->size, encoding & BTF_INT_SIGNED,
			      encoding & BTF_INT_BOOL);
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64: return enumerated(checked, place, stripped);
	case BTF_KIND_PTR: return pointer(checked, place, type->type);
	case BTF_KIND_ARRAY: return array(checked, at, place, stripped);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		if (place->address)
			return object_at(checked, place, stripped);
		return unsupported(checked, at, place->name, "a structure passed by value");
	case BTF_KIND_FLOAT:
		return unsupported(checked, at, place->name, "a floating-point number");
	default: return unsupported(checked, at, place->name, "of a type without a value");
	}
}

struct fay_value_node *fay_check_typed_result(struct fay_checked *checked,
					      const struct fay_node *at, struct fay_types *types,
					      const struct fay_expr *word, uint32_t id)
{
	struct fay_place place = { .types = types, .word = word, .name = "ReturnValue" };
	switch (kind_of(btf_of(types), id)) {
	case BTF_KIND_INT:
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
	case BTF_KIND_PTR:
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_FLOAT: return fay_check_typed_value(checked, at, &place, id);
	case BTF_KIND_FWD:
	case BTF_KIND_FUNC_PROTO:
		return unsupported(checked, at, place.name, "a structure passed by value");
	default: return scalar(checked, word);
	}
}

/* --- members and elements
 * -----------------------------------------------------------------------------------------------
 * */

bool fay_check_has_members(const struct fay_value_node *value)
{
	return value->kind == VALUE_OBJECT || (value->kind == VALUE_SCALAR && value->types);
}

/* What the pairs of a join see of one side, as that side's probe has it. */
static struct fay_value_node as_its_side_has_it(const struct fay_value_node *object)
{
	struct fay_value_node own = *object;
	if (own.side && own.expr && own.expr->op == EXPR_SIDE)
		own.expr = own.expr->a;
	return own;
}

bool fay_check_is_text(const struct fay_node *node, const struct fay_value_node *object)
{
	return !strcmp(node->name, "Text") && object->kind == VALUE_SCALAR &&
	       object->expr->type == TYPE_INT && !fay_expr_is_constant(object->expr);
}

/* Depth is bounded by FAY_QUERY_MAX_DEPTH. */
bool fay_check_is_grouped(const struct fay_expr *expr)
{
	return expr &&
	       (expr->op == EXPR_KEY || expr->has_aggregate || fay_check_is_grouped(expr->a) ||
		fay_check_is_grouped(expr->b) || fay_check_is_grouped(expr->c));
}

/* The string at an address. */
static struct fay_value_node *text_at(struct fay_checked *checked, const struct fay_node *node,
				      const struct fay_expr *address)
{
	struct fay_query *query = checked->exprs.query;
	bool native = checked->domain == DOMAIN_KERNEL && !fay_source_is_bpf(checked->kind);
	if (native || checked->domain == DOMAIN_FILE || address->op == EXPR_SIDE)
		return fay_query_fail(query, FAY_E_REFUSED, node->name_span,
				      "`%s` is a program's: of functions, returns and USDT probes "
				      "of programs, of system calls and tracepoints",
				      node->name);
	if (checked->domain == DOMAIN_KERNEL && !reads_whole(checked))
		return fay_query_fail(query, FAY_E_REFUSED, node->name_span,
				      "`%s` of the kernel's events is not supported on a cluster "
				      "yet",
				      node->name);
	if (fay_check_is_grouped(address))
		return fay_query_fail(query, FAY_E_USAGE, node->name_span,
				      "`%s` is read when the event happens: write it before the "
				      "grouping",
				      node->name);
	return string_at(checked, address, 0, 0, true, "Text");
}

static struct fay_value_node *member_of(struct fay_checked *checked, const struct fay_node *node,
					const struct fay_value_node *object)
{
	struct fay_query *query = checked->exprs.query;
	const char *candidates[512];
	struct fay_btf_field field;
	bool structure = is_structure(object->types, object->type);
	const struct btf *btf = btf_of(object->types);
	const struct btf_type *type = btf__type_by_id(btf, fay_btf_strip(btf, object->type));
	const char *name = fay_btf_name(btf, type->name_off);
	if (!structure && *name && kind_of(btf, object->type) == BTF_KIND_FWD)
		return fay_query_fail(
			query, FAY_E_REFUSED, node->name_span,
			"`struct %s` is not described here, so its members are not known", name);
	if (!structure && fay_check_is_text(node, object))
		return text_at(checked, node, object->expr);
	if ((!structure || !fay_btf_member(btf, object->type, node->name, &field)) &&
	    fay_check_is_symbol(node, object))
		return fay_check_symbol(checked, node, object->expr);
	if (!structure)
		return fay_query_fail(query, FAY_E_USAGE, node->name_span,
				      "this is not a structure, so it has no member `%s`",
				      node->name);
	if (!fay_btf_member(btf, object->type, node->name, &field)) {
		size_t count = fay_btf_member_names(btf, object->type, candidates, 512);
		return fay_query_fail(query, FAY_E_USAGE, node->name_span,
				      "`%s %s` has no member `%s`%s",
				      btf_is_union(type) ? "union" : "struct", name, node->name,
				      fay_query_did_you_mean(query, node->name, candidates, count));
	}
	struct fay_place place = { .types = object->types,
				   .address = object->expr,
				   .offset = object->offset + field.bit_offset / 8,
				   .bit = field.bit_offset % 8,
				   .bits = field.bits,
				   .name = fay_query_format(query, "%s%s%s", object->path,
							    *object->path ? "." : "", field.name) };
	return place.name ? fay_check_typed_value(checked, node, &place, field.type) : NULL;
}

struct fay_value_node *fay_check_typed_member(struct fay_checked *checked,
					      const struct fay_node *node,
					      const struct fay_value_node *object)
{
	struct fay_value_node own = as_its_side_has_it(object);
	unsigned outside = fay_check_enter_side(checked, object->side);
	checked->exprs.query->typed |= object->types->program != NULL;
	return fay_check_leave_side(checked, outside, member_of(checked, node, &own));
}

struct fay_value_node *fay_check_text(struct fay_checked *checked, const struct fay_node *node,
				      const struct fay_value_node *object)
{
	struct fay_value_node own = as_its_side_has_it(object);
	unsigned outside = fay_check_enter_side(checked, object->side);
	return fay_check_leave_side(checked, outside, text_at(checked, node, own.expr));
}

/* What is counted: an array's elements, or what a pointer points to. */
static uint32_t element_of(const struct fay_value_node *object, uint64_t *count)
{
	const struct btf *btf = btf_of(object->types);
	uint32_t id = fay_btf_strip(btf, object->type);
	*count = UINT32_MAX;
	if (kind_of(btf, id) != BTF_KIND_ARRAY ||
	    (object->kind == VALUE_SCALAR && object->expr->type != TYPE_STRING))
		return object->kind == VALUE_SCALAR ? object->type : 0;
	const struct btf_array *array = btf_array(btf__type_by_id(btf, id));
	*count = array->nelems ? array->nelems : UINT32_MAX; /* a last member without a size */
	return array->type;
}

static struct fay_value_node *element_at(struct fay_checked *checked, const struct fay_node *node,
					 const struct fay_value_node *object,
					 const struct fay_expr *index)
{
	struct fay_query *query = checked->exprs.query;
	uint64_t count = 0;
	uint32_t element = fay_check_has_members(object) ? element_of(object, &count) : 0;
	if (!element)
		return fay_query_fail(
			query, FAY_E_USAGE, node->a->span,
			"this has no elements: it is neither an array nor a pointer to something");
	if (!fay_expr_is_constant(index))
		return fay_query_fail(query, FAY_E_USAGE, node->b->span,
				      "an index must be a constant");
	if (index->value < 0 || (uint64_t)index->value >= count)
		return fay_query_fail(query, FAY_E_USAGE, node->b->span,
				      "the array has %u elements, 0 to %u", (uint32_t)count,
				      (uint32_t)count - 1);
	is_structure(object->types, element); /* its size is wanted */
	/* A string is what lies at an address, which its elements are counted from. */
	bool string = object->kind == VALUE_SCALAR && object->expr->type == TYPE_STRING;
	const struct fay_expr *base = string ? object->expr->a : object->expr;
	query->typed |= object->types->program != NULL;
	uint32_t first = string ? fay_access_unpack(object->expr->value).offset : object->offset;
	uint64_t at = (uint64_t)index->value * fay_btf_size(btf_of(object->types), element) + first;
	if (at > INT32_MAX)
		return fay_query_fail(query, FAY_E_LIMIT, node->b->span,
				      "this element is more than 2 GiB away");
	struct fay_place place = { .types = object->types,
				   .address = base,
				   .offset = (uint32_t)at,
				   .name = fay_query_format(query, "%s[%lld]",
							    string ? object->expr->name
								   : object->path,
							    (long long)index->value) };
	return place.name ? fay_check_typed_value(checked, node, &place, element) : NULL;
}

struct fay_value_node *fay_check_element(struct fay_checked *checked, const struct fay_node *node,
					 const struct fay_value_node *object,
					 const struct fay_expr *index)
{
	struct fay_value_node own = as_its_side_has_it(object);
	unsigned outside = fay_check_enter_side(checked, object->side);
	return fay_check_leave_side(checked, outside, element_at(checked, node, &own, index));
}
