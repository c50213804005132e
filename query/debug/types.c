/* SPDX-License-Identifier: MIT */
/* Types of the debug information as BTF. */
#include "types_private.h"

#include <bpf/btf.h>
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES_FIRST 1024u
#define DIMENSIONS_MAX 7u
#define MEMBERS_MAX 65535u /* BTF's own limit */
#define BIT_FIELD_OFFSET_MAX 0xffffffu

void fay_debug_types_deinit(struct fay_debug_types *types)
{
	btf__free(types->btf);
	free(types->entries);
	free(types->places);
	memset(types, 0, sizeof(*types));
}

/* --- numbers --- */

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
	uint32_t *places = calloc(2 * room, sizeof(*places));
	if (!entries || !places) {
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

/* The number of a type; NULL: void, 0. It is described with all that it refers to when
 * fay_debug_types_btf() is called next. */
static uint32_t id_of(struct fay_debug_types *types, Dwarf_Die *die)
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
	return id_of(types, &type);
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

/* A type without a value that could be shown: of which the name is known, or not even that. */
static int add_nothing(struct fay_debug_types *types, const char *name, bool is_union)
{
	if (name && *name)
		return btf__add_fwd(types->btf, name, is_union ? BTF_FWD_UNION : BTF_FWD_STRUCT);
	return btf__add_func_proto(types->btf, 0);
}

static int add_base(struct fay_debug_types *types, Dwarf_Die *die)
{
	uint64_t encoding = 0;
	const char *name = dwarf_diename(die) ?: "?";
	number(die, DW_AT_encoding, &encoding);
	switch (encoding) {
	case DW_ATE_boolean: return btf__add_int(types->btf, name, size_of(die), BTF_INT_BOOL);
	case DW_ATE_signed: return btf__add_int(types->btf, name, size_of(die), BTF_INT_SIGNED);
	case DW_ATE_signed_char:
		return btf__add_int(types->btf, name, size_of(die), BTF_INT_SIGNED | BTF_INT_CHAR);
	case DW_ATE_unsigned_char:
		return btf__add_int(types->btf, name, size_of(die), BTF_INT_CHAR);
	case DW_ATE_unsigned:
	case DW_ATE_UTF:
	case DW_ATE_address: return btf__add_int(types->btf, name, size_of(die), 0);
	case DW_ATE_float: return btf__add_float(types->btf, name, size_of(die));
	default: return -EINVAL; /* complex and decimal numbers */
	}
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

/* BTF's word for a member's place holds the bits of a bit field, too, if there is any in the
 * structure. */
static bool member_fits(Dwarf_Die *member, bool bit_fields, uint64_t *bit, uint64_t *bits)
{
	return member_place(member, bit, bits) && *bits <= 64 &&
	       *bit <= (bit_fields ? BIT_FIELD_OFFSET_MAX : UINT32_MAX);
}

static bool has_bit_fields(Dwarf_Die *structure)
{
	Dwarf_Die child;
	uint64_t bit, bits;
	for (int more = dwarf_child(structure, &child); !more;
	     more = dwarf_siblingof(&child, &child))
		if (is_data(&child, DW_TAG_member) && member_fits(&child, false, &bit, &bits) &&
		    bits)
			return true;
	return false;
}

/* Those of base classes last: a class's own member hides one of the same name. */
static void add_members(struct fay_debug_types *types, Dwarf_Die *structure)
{
	static const int tags[] = { DW_TAG_member, DW_TAG_inheritance };
	bool bit_fields = has_bit_fields(structure);
	uint32_t count = 0;
	for (unsigned pass = 0; pass < 2; pass++) {
		Dwarf_Die child;
		int more = dwarf_child(structure, &child);
		for (; !more && count < MEMBERS_MAX; more = dwarf_siblingof(&child, &child)) {
			uint64_t bit, bits;
			if (!is_data(&child, tags[pass]) ||
			    !member_fits(&child, bit_fields, &bit, &bits))
				continue;
			int code = btf__add_field(types->btf, pass ? NULL : dwarf_diename(&child),
						  (int)fay_debug_types_of(types, &child),
						  (uint32_t)bit, (uint32_t)bits);
			types->failed |= code == -ENOMEM;
			count += !code;
		}
	}
}

static int add_structure(struct fay_debug_types *types, Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);
	bool is_union = dwarf_tag(die) == DW_TAG_union_type;
	if (dwarf_hasattr_integrate(die, DW_AT_declaration))
		return add_nothing(types, name, is_union);
	int id = is_union ? btf__add_union(types->btf, name, size_of(die))
			  : btf__add_struct(types->btf, name, size_of(die));
	if (id > 0)
		add_members(types, die);
	return id;
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

static bool has_negative(Dwarf_Die *enumeration)
{
	Dwarf_Die child;
	int64_t value;
	for (int more = dwarf_child(enumeration, &child); !more;
	     more = dwarf_siblingof(&child, &child))
		if (enumerator(&child, &value) && value < 0)
			return true;
	return false;
}

/* All as 64-bit values, so that nothing has to be known of their sign. */
static int add_enumeration(struct fay_debug_types *types, Dwarf_Die *die)
{
	Dwarf_Die child;
	uint32_t count = 0;
	int64_t value;
	int id = btf__add_enum64(types->btf, dwarf_diename(die), size_of(die), has_negative(die));
	int more = id > 0 ? dwarf_child(die, &child) : 1;
	for (; !more && count < MEMBERS_MAX; more = dwarf_siblingof(&child, &child)) {
		if (!enumerator(&child, &value))
			continue;
		int code =
			btf__add_enum64_value(types->btf, dwarf_diename(&child), (uint64_t)value);
		types->failed |= code == -ENOMEM;
		count += !code;
	}
	return id;
}

static uint32_t elements_of(Dwarf_Die *range)
{
	uint64_t count, last;
	if (number(range, DW_AT_count, &count))
		return count <= UINT32_MAX ? (uint32_t)count : 0;
	return number(range, DW_AT_upper_bound, &last) && last < UINT32_MAX ? (uint32_t)last + 1
									    : 0;
}

static int add_array(struct fay_debug_types *types, Dwarf_Die *die, uint32_t dimension)
{
	uint32_t index = 0, elements = 0;
	Dwarf_Die child;
	if (dwarf_hasattr(die, DW_AT_GNU_vector))
		return -EINVAL;
	for (int more = dwarf_child(die, &child); !more; more = dwarf_siblingof(&child, &child)) {
		if (dwarf_tag(&child) != DW_TAG_subrange_type)
			continue;
		if (index == dimension)
			elements = elements_of(&child);
		index++;
	}
	uint32_t element = dimension + 1 < index && dimension < DIMENSIONS_MAX
				   ? entry_id(types, die, dimension + 1)
				   : fay_debug_types_of(types, die);
	return btf__add_array(types->btf, 0, (int)element, elements);
}

static int add_entry(struct fay_debug_types *types, struct fay_debug_entry entry)
{
	Dwarf_Die *die = &entry.die;
	switch (dwarf_tag(die)) {
	case DW_TAG_base_type: return add_base(types, die);
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type: return add_structure(types, die);
	case DW_TAG_enumeration_type: return add_enumeration(types, die);
	case DW_TAG_array_type: return add_array(types, die, entry.dimension);
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		return btf__add_ptr(types->btf, (int)fay_debug_types_of(types, die));
	case DW_TAG_typedef:
		return btf__add_typedef(types->btf, dwarf_diename(die),
					(int)fay_debug_types_of(types, die));
	case DW_TAG_const_type:
	case DW_TAG_volatile_type:
	case DW_TAG_restrict_type:
	case DW_TAG_atomic_type:
	case DW_TAG_immutable_type:
		return btf__add_const(types->btf, (int)fay_debug_types_of(types, die));
	default: return -EINVAL; /* functions, and what has no value that could be shown */
	}
}

/* libbpf's next number is the entry's. What BTF cannot say is nothing, by its name. */
static void describe_entry(struct fay_debug_types *types, struct fay_debug_entry entry)
{
	int id = add_entry(types, entry);
	if (id == -EINVAL)
		id = add_nothing(types, dwarf_diename(&entry.die), false);
	types->failed |= id != (int)++types->described;
}

/* --- results --- */

void fay_debug_types_complete(struct fay_debug_types *types, uint32_t id, Dwarf_Die *die)
{
	uint32_t definition = id_of(types, die);
	if (!definition || id > types->described)
		return;
	/* A typedef takes as many bytes. libbpf changes no type that is there; to be asked for a
	 * string makes it forget its own picture of the whole (btf__raw_data()). */
	btf__find_str(types->btf, "");
	struct btf_type *type = (struct btf_type *)btf__type_by_id(types->btf, id);
	type->info = BTF_KIND_TYPEDEF << 24;
	type->type = definition;
}

int fay_debug_types_btf(struct fay_debug_types *types, const struct btf **btf,
			struct fay_error *error)
{
	uint32_t size;
	if (!types->btf)
		types->btf = btf__new_empty();
	types->failed |= !types->btf;
	while (types->described < types->count && !types->failed)
		describe_entry(types, types->entries[types->described]);
	const void *bytes = types->failed ? NULL : btf__raw_data(types->btf, &size);
	struct btf *copy = bytes ? btf__new(bytes, size) : NULL;
	if (!copy)
		return fay_error_set(error, FAY_E_LIMIT,
				     "debug information: more than %u types, or no memory",
				     FAY_DEBUG_TYPES_MAX);
	btf__set_pointer_size(copy, 8);
	*btf = copy;
	return FAY_OK;
}
