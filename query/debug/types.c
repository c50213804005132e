/* SPDX-License-Identifier: MIT */
/* Types of the debug information as BTF. */
#include "types_private.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES_FIRST 1024u
#define DIMENSIONS_MAX 7u
#define MEMBERS_MAX 65535u /* BTF's own limit */
#define BIT_FIELD_OFFSET_MAX 0xffffffu

void fay_debug_types_deinit(struct fay_debug_types *types)
{
	free(types->types.data);
	free(types->strings.data);
	free(types->entries);
	free(types->places);
	free(types->offsets);
	memset(types, 0, sizeof(*types));
}

/* --- bytes
 * -------------------------------------------------------------------------------------------------
 * */

/* Offset of `size` more bytes, copied from `from`; SIZE_MAX and `failed` if there is no memory. */
static size_t append(struct fay_debug_types *types, struct fay_debug_bytes *bytes, const void *from,
		     size_t size)
{
	if (bytes->room - bytes->size < size) {
		size_t room = bytes->room ? 2 * bytes->room : 65536;
		while (room - bytes->size < size)
			room *= 2;
		uint8_t *grown = room <= UINT32_MAX / 4 ? realloc(bytes->data, room) : NULL;
		if (!grown) {
			types->failed = true;
			return SIZE_MAX;
		}
		bytes->data = grown;
		bytes->room = room;
	}
	memcpy(bytes->data + bytes->size, from, size);
	bytes->size += size;
	return bytes->size - size;
}

static uint32_t string_of(struct fay_debug_types *types, const char *text)
{
	if (!types->strings.size)
		append(types, &types->strings, "", 1);
	if (!text || !*text || types->failed)
		return 0;
	size_t at = append(types, &types->strings, text, strlen(text) + 1);
	return at == SIZE_MAX ? 0 : (uint32_t)at;
}

static uint32_t name_of(struct fay_debug_types *types, Dwarf_Die *die)
{
	return string_of(types, dwarf_diename(die));
}

static void describe(struct fay_debug_types *types, Dwarf_Die *die, uint32_t kind, uint32_t count,
		     bool flag, uint32_t size_or_type)
{
	struct btf_type type = { name_of(types, die),
				 (flag ? 1u << 31 : 0) | kind << 24 | count,
				 { .size = size_or_type } };
	append(types, &types->types, &type, sizeof(type));
}

/* --- numbers
 * -------------------------------------------------------------------------------------------------
 * */

static size_t hash_of(const void *die, uint32_t dimension)
{
	uint64_t x = ((uint64_t)(uintptr_t)die << 3 | dimension) * 0x9e3779b97f4a7c15u;
	return (size_t)(x ^ x >> 32);
}

static void place(struct fay_debug_types *types, uint32_t id)
{
	const struct fay_debug_entry *entry = &types->entries[id - 1];
	size_t at = hash_of(entry->die.addr, entry->dimension) & (types->place_count - 1);
	while (types->places[at])
		at = (at + 1) & (types->place_count - 1);
	types->places[at] = id;
}

static bool grow(struct fay_debug_types *types)
{
	size_t room = types->room ? 2 * types->room : ENTRIES_FIRST;
	if (room > FAY_DEBUG_TYPES_MAX)
		return false;
	struct fay_debug_entry *entries = realloc(types->entries, room * sizeof(*entries));
	if (entries)
		types->entries = entries;
	uint32_t *offsets = realloc(types->offsets, room * sizeof(*offsets)),
		 *places = calloc(2 * room, sizeof(*places));
	if (offsets)
		types->offsets = offsets;
	if (!entries || !offsets || !places) {
		free(places);
		return false;
	}
	free(types->places);
	types->places = places;
	types->place_count = 2 * room;
	types->room = room;
	for (uint32_t id = 1; id <= types->count; id++)
		place(types, id);
	return true;
}

static uint32_t entry_id(struct fay_debug_types *types, Dwarf_Die *die, uint32_t dimension)
{
	for (size_t at = hash_of(die->addr, dimension); types->place_count; at++) {
		uint32_t id = types->places[at & (types->place_count - 1)];
		if (!id)
			break;
		if (types->entries[id - 1].die.addr == die->addr &&
		    types->entries[id - 1].dimension == dimension)
			return id;
	}
	if (types->count == types->room && !grow(types)) {
		types->failed = true;
		return 0;
	}
	types->entries[types->count++] = (struct fay_debug_entry){ *die, dimension };
	place(types, (uint32_t)types->count);
	return (uint32_t)types->count;
}

uint32_t fay_debug_types_id(struct fay_debug_types *types, Dwarf_Die *die)
{
	return die ? entry_id(types, die, 0) : 0;
}

uint32_t fay_debug_types_of(struct fay_debug_types *types, Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	Dwarf_Die type;
	if (!dwarf_attr_integrate(die, DW_AT_type, &attribute) ||
	    !dwarf_formref_die(&attribute, &type))
		return 0;
	return fay_debug_types_id(types, &type);
}

/* --- descriptions
 * -------------------------------------------------------------------------------------------------
 * */

static bool number(Dwarf_Die *die, unsigned name, uint64_t *value)
{
	Dwarf_Attribute attribute;
	Dwarf_Word word;
	if (!dwarf_attr_integrate(die, name, &attribute) || dwarf_formudata(&attribute, &word))
		return false;
	*value = word;
	return true;
}

static uint32_t size_of(Dwarf_Die *die)
{
	uint64_t size;
	return number(die, DW_AT_byte_size, &size) && size < UINT32_MAX / 8 ? (uint32_t)size : 0;
}

static void describe_base(struct fay_debug_types *types, Dwarf_Die *die)
{
	uint64_t encoding = 0;
	uint32_t size = size_of(die), flags = 0;
	number(die, DW_AT_encoding, &encoding);
	switch (encoding) {
	case DW_ATE_boolean: flags = BTF_INT_BOOL; break;
	case DW_ATE_signed: flags = BTF_INT_SIGNED; break;
	case DW_ATE_signed_char: flags = BTF_INT_SIGNED | BTF_INT_CHAR; break;
	case DW_ATE_unsigned_char: flags = BTF_INT_CHAR; break;
	case DW_ATE_unsigned:
	case DW_ATE_UTF:
	case DW_ATE_address: break;
	case DW_ATE_float: describe(types, die, BTF_KIND_FLOAT, 0, false, size); return;
	default: /* complex and decimal numbers */
		describe(types, die, BTF_KIND_FWD, 0, false, 0);
		return;
	}
	uint32_t word = flags << 24 | (size <= 16 ? size * 8 : 0);
	describe(types, die, BTF_KIND_INT, 0, false, size);
	append(types, &types->types, &word, sizeof(word));
}

/* Bytes from the structure's start; false: it is computed. */
static bool member_location(Dwarf_Die *member, uint64_t *offset)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *ops;
	size_t count;
	*offset = 0;
	if (!dwarf_attr_integrate(member, DW_AT_data_member_location, &attribute) ||
	    number(member, DW_AT_data_member_location, offset))
		return true;
	if (dwarf_getlocation(&attribute, &ops, &count) || count != 1 ||
	    ops[0].atom != DW_OP_plus_uconst)
		return false;
	*offset = ops[0].number;
	return true;
}

/* Bytes of the unit that DWARF 3 counts a bit field's place in; 0: unknown. */
static uint64_t storage_of(Dwarf_Die *member)
{
	Dwarf_Attribute attribute;
	Dwarf_Die type;
	uint64_t size;
	if (number(member, DW_AT_byte_size, &size))
		return size;
	if (!dwarf_attr_integrate(member, DW_AT_type, &attribute) ||
	    !dwarf_formref_die(&attribute, &type) || dwarf_peel_type(&type, &type))
		return 0;
	return size_of(&type);
}

/* Where a member lies in its structure; bits: of a bit field, else 0. */
static bool member_place(Dwarf_Die *member, uint64_t *bit, uint64_t *bits)
{
	uint64_t storage, from_top;
	*bits = 0;
	number(member, DW_AT_bit_size, bits);
	if (number(member, DW_AT_data_bit_offset, bit))
		return true;
	if (!member_location(member, bit))
		return false;
	*bit *= 8;
	if (!*bits || !number(member, DW_AT_bit_offset, &from_top))
		return true;
	/* DWARF 3 and before: from the most significant bit of the storage unit. */
	storage = 8 * storage_of(member);
	if (from_top + *bits > storage)
		return false;
	*bit += storage - from_top - *bits;
	return true;
}

static bool is_data(Dwarf_Die *child, int tag)
{
	return dwarf_tag(child) == tag && !dwarf_hasattr(child, DW_AT_declaration) &&
	       !dwarf_hasattr(child, DW_AT_external);
}

/* Calls `take` for each data member, those of base classes last: a class's own member hides one of
 * the same name. */
static uint32_t each_member(struct fay_debug_types *types, Dwarf_Die *structure, bool bit_fields,
			    bool add, bool *any_bit_field)
{
	uint32_t count = 0;
	static const int tags[] = { DW_TAG_member, DW_TAG_inheritance };
	for (unsigned pass = 0; pass < 2; pass++) {
		Dwarf_Die child;
		int more = dwarf_child(structure, &child);
		for (; !more && count < MEMBERS_MAX; more = dwarf_siblingof(&child, &child)) {
			uint64_t bit, bits;
			if (!is_data(&child, tags[pass]) || !member_place(&child, &bit, &bits) ||
			    bit > UINT32_MAX || bits > 64 ||
			    (bit_fields && bit > BIT_FIELD_OFFSET_MAX))
				continue;
			*any_bit_field |= bits != 0;
			count++;
			if (!add)
				continue;
			struct btf_member member = { pass ? 0 : name_of(types, &child),
						     fay_debug_types_of(types, &child),
						     (uint32_t)(bit |
								(bit_fields ? bits << 24 : 0)) };
			append(types, &types->types, &member, sizeof(member));
		}
	}
	return count;
}

static void describe_structure(struct fay_debug_types *types, Dwarf_Die *die)
{
	bool is_union = dwarf_tag(die) == DW_TAG_union_type, bit_fields = false, ignored = false;
	if (dwarf_hasattr_integrate(die, DW_AT_declaration)) {
		describe(types, die, BTF_KIND_FWD, 0, is_union, 0);
		return;
	}
	each_member(types, die, false, false, &bit_fields);
	uint32_t count = each_member(types, die, bit_fields, false, &ignored);
	describe(types, die, is_union ? BTF_KIND_UNION : BTF_KIND_STRUCT, count, bit_fields,
		 size_of(die));
	each_member(types, die, bit_fields, true, &ignored);
}

/*
 * Compilers write a negative value as a signed number (DW_FORM_sdata), and what is not negative in
 * as few bytes as hold it (DW_FORM_data1: 128 to 255, too) or as an unsigned one. dwarf_formudata()
 * reads each as it was meant; dwarf_formsdata() takes the highest bit of data1, data2 and data4 for
 * a sign.
 */
static bool enumerator(Dwarf_Die *child, int64_t *value)
{
	uint64_t word;
	if (dwarf_tag(child) != DW_TAG_enumerator || !number(child, DW_AT_const_value, &word))
		return false;
	*value = (int64_t)word;
	return true;
}

/* All as 64-bit values, so that nothing has to be known of their sign. */
static void describe_enumeration(struct fay_debug_types *types, Dwarf_Die *die)
{
	Dwarf_Die child;
	uint32_t count = 0;
	bool negative = false;
	int64_t value;
	for (int more = dwarf_child(die, &child); !more && count < MEMBERS_MAX;
	     more = dwarf_siblingof(&child, &child)) {
		if (!enumerator(&child, &value))
			continue;
		count++;
		negative |= value < 0;
	}
	describe(types, die, BTF_KIND_ENUM64, count, negative, size_of(die));
	for (int more = dwarf_child(die, &child); !more && count;
	     more = dwarf_siblingof(&child, &child)) {
		if (!enumerator(&child, &value))
			continue;
		struct btf_enum64 item = { name_of(types, &child), (uint32_t)value,
					   (uint32_t)((uint64_t)value >> 32) };
		append(types, &types->types, &item, sizeof(item));
		count--;
	}
}

static uint32_t elements_of(Dwarf_Die *range)
{
	uint64_t count, last;
	if (number(range, DW_AT_count, &count))
		return count <= UINT32_MAX ? (uint32_t)count : 0;
	return number(range, DW_AT_upper_bound, &last) && last < UINT32_MAX ? (uint32_t)last + 1
									    : 0;
}

static void describe_array(struct fay_debug_types *types, Dwarf_Die *die, uint32_t dimension)
{
	struct btf_array array = { 0 };
	uint32_t index = 0;
	Dwarf_Die child;
	if (dwarf_hasattr(die, DW_AT_GNU_vector)) {
		describe(types, die, BTF_KIND_FWD, 0, false, 0);
		return;
	}
	for (int more = dwarf_child(die, &child); !more; more = dwarf_siblingof(&child, &child)) {
		if (dwarf_tag(&child) != DW_TAG_subrange_type)
			continue;
		if (index == dimension)
			array.nelems = elements_of(&child);
		index++;
	}
	array.type = dimension + 1 < index && dimension < DIMENSIONS_MAX
			     ? entry_id(types, die, dimension + 1)
			     : fay_debug_types_of(types, die);
	describe(types, die, BTF_KIND_ARRAY, 0, false, 0);
	append(types, &types->types, &array, sizeof(array));
}

static void describe_entry(struct fay_debug_types *types, struct fay_debug_entry entry)
{
	Dwarf_Die *die = &entry.die;
	switch (dwarf_tag(die)) {
	case DW_TAG_base_type: describe_base(types, die); break;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type: describe_structure(types, die); break;
	case DW_TAG_enumeration_type: describe_enumeration(types, die); break;
	case DW_TAG_array_type: describe_array(types, die, entry.dimension); break;
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		describe(types, die, BTF_KIND_PTR, 0, false, fay_debug_types_of(types, die));
		break;
	case DW_TAG_typedef:
		describe(types, die, BTF_KIND_TYPEDEF, 0, false, fay_debug_types_of(types, die));
		break;
	case DW_TAG_const_type:
	case DW_TAG_volatile_type:
	case DW_TAG_restrict_type:
	case DW_TAG_atomic_type:
	case DW_TAG_immutable_type:
		describe(types, die, BTF_KIND_CONST, 0, false, fay_debug_types_of(types, die));
		break;
	default: /* functions, and what has no value that could be shown */
		describe(types, die, BTF_KIND_FWD, 0, false, 0);
		break;
	}
}

/* --- results
 * -------------------------------------------------------------------------------------------------
 * */

void fay_debug_types_complete(struct fay_debug_types *types, uint32_t id, Dwarf_Die *die)
{
	uint32_t definition = fay_debug_types_id(types, die);
	if (!definition || id > types->described)
		return;
	/* A typedef takes as many bytes. */
	struct btf_type *type = (void *)(types->types.data + types->offsets[id - 1]);
	type->info = BTF_KIND_TYPEDEF << 24;
	type->type = definition;
}

int fay_debug_types_btf(struct fay_debug_types *types, struct fay_btf **btf,
			struct fay_error *error)
{
	string_of(types, "");
	for (; types->described < types->count && !types->failed; types->described++) {
		types->offsets[types->described] = (uint32_t)types->types.size;
		describe_entry(types, types->entries[types->described]);
	}
	size_t size = sizeof(struct btf_header) + types->types.size + types->strings.size;
	uint8_t *bytes = types->failed ? NULL : malloc(size);
	if (!bytes)
		return fay_error_set(error, FAY_E_LIMIT,
				     "debug information: more than %u types, or no memory",
				     FAY_DEBUG_TYPES_MAX);
	struct btf_header header = { .magic = BTF_MAGIC,
				     .version = BTF_VERSION,
				     .hdr_len = sizeof(header) };
	header.type_len = header.str_off = (uint32_t)types->types.size;
	header.str_len = (uint32_t)types->strings.size;
	memcpy(bytes, &header, sizeof(header));
	if (types->types.size)
		memcpy(bytes + sizeof(header), types->types.data, types->types.size);
	memcpy(bytes + sizeof(header) + types->types.size, types->strings.data,
	       types->strings.size);
	return fay_btf_create(bytes, size, "debug information", btf, error);
}
