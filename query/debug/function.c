/* SPDX-License-Identifier: MIT */
/* What the debug information says of one function. */
#include "debug.h"

#include <bpf/btf.h>
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "function_private.h"
#include "types_private.h"

#define SCOPES_MAX 32u /* namespaces in one another */

const struct fay_debug_argument *
fay_debug_function_arguments(const struct fay_debug_function *function, uint32_t *count)
{
	*count = function->argument_count;
	return function->arguments;
}

/* Of a function in assembly language the name is known, no more. */
bool fay_debug_function_result(const struct fay_debug_function *function, uint32_t *type)
{
	*type = function->result;
	return *type || dwarf_srclang((Dwarf_Die *)&function->unit) != DW_LANG_Mips_Assembler;
}

const struct btf *fay_debug_function_types(const struct fay_debug_function *function)
{
	return function->editions[function->edition_count - 1];
}

void fay_debug_function_close(struct fay_debug_function *function)
{
	if (!function)
		return;
	for (uint32_t i = 0; i < function->edition_count; i++)
		fay_btf_close(function->editions[i]);
	fay_debug_types_deinit(&function->types);
	fay_debug_file_close(&function->file);
	for (size_t i = 0; i < function->places.count; i++) {
		free(function->places.items[i].function);
		free(function->places.items[i].arguments);
	}
	free(function->places.items);
	free(function);
}

/* --- finding --- */

/* A function of several parts has no single start: it is entered where the first one begins. */
static bool starts_at(Dwarf_Die *die, uint64_t entry)
{
	Dwarf_Addr start, base, end;
	if (!dwarf_entrypc(die, &start))
		return start == entry;
	return dwarf_ranges(die, 0, &base, &start, &end) > 0 && start == entry;
}

/* The function that begins at `entry` among those of a unit, or of a namespace in it. */
static bool find_in(struct fay_debug_function *function, Dwarf_Die *scope, unsigned depth)
{
	Dwarf_Die child;
	for (int more = dwarf_child(scope, &child); !more; more = dwarf_siblingof(&child, &child)) {
		int tag = dwarf_tag(&child);
		bool inner = tag == DW_TAG_namespace || tag == DW_TAG_module ||
			     tag == DW_TAG_class_type || tag == DW_TAG_structure_type;
		if (inner && depth < SCOPES_MAX && find_in(function, &child, depth + 1))
			return true;
		if (tag != DW_TAG_subprogram || !starts_at(&child, function->entry))
			continue;
		function->die = child;
		return true;
	}
	return false;
}

static bool find_in_unit(struct fay_debug_function *function, Dwarf_Die *unit)
{
	function->unit = *unit;
	return find_in(function, unit, 0);
}

static bool find_function(struct fay_debug_function *function)
{
	Dwarf_Die unit;
	Dwarf_CU *cu = NULL;
	if (dwarf_addrdie(function->file.dwarf, function->entry, &unit) &&
	    find_in_unit(function, &unit))
		return true;
	/* clang writes no table of what lies where. */
	while (!dwarf_get_units(function->file.dwarf, cu, &cu, NULL, NULL, &unit, NULL))
		if (dwarf_haspc(&unit, function->entry) == 1 && find_in_unit(function, &unit))
			return true;
	return false;
}

/* --- where arguments are --- */

#define OUT_OF_REGISTERS "is passed on the stack"

/* The argument register by DWARF's number, or -1. */
static int argument_of_register(unsigned number)
{
	static const uint8_t numbers[] = { 5, 4, 1, 2, 8, 9 }; /* rdi rsi rdx rcx r8 r9 */
	for (unsigned i = 0; i < sizeof(numbers); i++)
		if (numbers[i] == number)
			return (int)i;
	return -1;
}

/*
 * What the compiler says of the argument at the function's first instruction. FRAME: a place that
 * holds for the whole function, so it is not true of its first instruction, where the frame is not
 * there yet. REFERENCE: an object elsewhere, whose address was handed over.
 */
enum location {
	LOCATION_REGISTER,
	LOCATION_FRAME,
	LOCATION_REFERENCE,
	LOCATION_NONE,
	LOCATION_OTHER
};

/* LLVM says of a small integer that it is a register's value with the upper bits masked off. */
static bool is_masked_register(const Dwarf_Op *ops, size_t count)
{
	if (count < 2 || ops[count - 1].atom != DW_OP_stack_value)
		return false;
	for (size_t i = 1; i + 1 < count; i++)
		if (ops[i].atom != DW_OP_constu && ops[i].atom != DW_OP_and &&
		    ops[i].atom != DW_OP_convert && ops[i].atom != DW_OP_GNU_convert)
			return false;
	return true;
}

/* index: of the register, or -1. */
static enum location location_of(const struct fay_debug_function *function, Dwarf_Die *parameter,
				 int *index)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *ops;
	size_t count;
	*index = -1;
	if (!dwarf_attr_integrate(parameter, DW_AT_location, &attribute) ||
	    dwarf_getlocation_addr(&attribute, function->entry, &ops, &count, 1) != 1 || !count)
		return LOCATION_NONE;
	if (count == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)
		*index = argument_of_register(ops[0].atom - DW_OP_reg0);
	else if (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31 && !ops[0].number)
		*index = argument_of_register(ops[0].atom - DW_OP_breg0);
	unsigned form = dwarf_whatform(&attribute);
	bool everywhere = form == DW_FORM_exprloc || form == DW_FORM_block1 ||
			  form == DW_FORM_block2 || form == DW_FORM_block4 || form == DW_FORM_block;
	if (ops[0].atom == DW_OP_fbreg && everywhere)
		return count == 1                                 ? LOCATION_FRAME
		       : count == 2 && ops[1].atom == DW_OP_deref ? LOCATION_REFERENCE
								  : LOCATION_OTHER;
	if (*index < 0)
		return LOCATION_OTHER;
	if (count == 1)
		return ops[0].atom >= DW_OP_breg0 ? LOCATION_REFERENCE : LOCATION_REGISTER;
	return is_masked_register(ops, count) ? LOCATION_REGISTER : LOCATION_OTHER;
}

static bool is_structure(const struct btf *btf, uint32_t id)
{
	return btf_is_composite(btf__type_by_id(btf, fay_btf_strip(btf, id)));
}

/* A class with a copy constructor or the like is handed over by its address. What is not said of a
 * class of C++ is not known. */
enum passing { PASSED_BY_VALUE, PASSED_BY_ADDRESS, PASSED_UNKNOWN };
static enum passing passing_of(const struct fay_debug_function *function, Dwarf_Die *die,
			       uint32_t id)
{
	Dwarf_Attribute attribute;
	Dwarf_Die type;
	Dwarf_Word convention;
	if (!is_structure(fay_debug_function_types(function), id))
		return PASSED_BY_VALUE;
	if (dwarf_attr_integrate(die, DW_AT_type, &attribute) &&
	    dwarf_formref_die(&attribute, &type) && !dwarf_peel_type(&type, &type) &&
	    dwarf_attr_integrate(&type, DW_AT_calling_convention, &attribute) &&
	    !dwarf_formudata(&attribute, &convention))
		return convention == DW_CC_pass_by_reference ? PASSED_BY_ADDRESS : PASSED_BY_VALUE;
	int language = dwarf_srclang((Dwarf_Die *)&function->unit);
	return language == DW_LANG_C89 || language == DW_LANG_C99 || language == DW_LANG_C11
		       ? PASSED_BY_VALUE
		       : PASSED_UNKNOWN;
}

static enum passing passing_of_parameter(const struct fay_debug_function *function,
					 Dwarf_Die *parameter, uint32_t id)
{
	int index;
	enum passing passing = passing_of(function, parameter, id);
	if (passing != PASSED_UNKNOWN)
		return passing;
	switch (location_of(function, parameter, &index)) {
	case LOCATION_REFERENCE: return PASSED_BY_ADDRESS;
	case LOCATION_FRAME: return PASSED_BY_VALUE;
	default: return PASSED_UNKNOWN;
	}
}

/* How a value is handed over: in so many general registers; 0: not in general registers, *why says
 * where; -1: not known. */
static int general_registers(const struct btf *btf, uint32_t id, const char **why)
{
	uint32_t stripped = fay_btf_strip(btf, id), size = fay_btf_size(btf, stripped);
	const struct btf_type *type = btf__type_by_id(btf, stripped);
	switch (btf_kind(type)) {
	case BTF_KIND_PTR: return 1;
	case BTF_KIND_INT:
	case BTF_KIND_ENUM64: return size && size <= 8 ? 1 : size == 16 ? 2 : -1;
	case BTF_KIND_FLOAT:
		*why = size <= 8 ? "is a floating-point number, which probes do not see"
				 : OUT_OF_REGISTERS;
		return 0;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION: *why = "is a structure on the stack"; return size > 16 ? 0 : -1;
	default: return -1;
	}
}

#define AFTER_UNKNOWN "follows one whose registers are not known, so its own is not known"

/* The ABI's register for each argument, as far as the types tell. */
static void place_by_abi(struct fay_debug_function *function, const enum passing *passing,
			 enum passing result)
{
	const struct btf *btf = fay_debug_function_types(function);
	int used = result == PASSED_BY_ADDRESS;
	bool known = result != PASSED_UNKNOWN;
	for (uint32_t i = 0; i < function->argument_count; i++) {
		struct fay_debug_argument *argument = &function->arguments[i];
		argument->by_address = passing[i] == PASSED_BY_ADDRESS;
		int registers = passing[i] == PASSED_UNKNOWN ? -1
				: argument->by_address
					? 1
					: general_registers(btf, argument->type, &argument->why);
		if (!known || registers < 0) {
			argument->why =
				known ? "is a small structure, or of a type that is not understood"
				      : AFTER_UNKNOWN;
			known = false;
		} else if (registers && used + registers > 6) {
			argument->why = OUT_OF_REGISTERS;
		} else if (registers) {
			argument->index = (uint32_t)used;
			argument->why = registers == 1 ? NULL : "has more than 64 bits";
			used += registers;
		}
	}
}

/* What the compiler says goes before what the ABI says. */
static void place_by_location(struct fay_debug_function *function,
			      struct fay_debug_argument *argument, Dwarf_Die *parameter)
{
	int index;
	enum location location = location_of(function, parameter, &index);
	bool structure = is_structure(fay_debug_function_types(function), argument->type);
	if (index >= 0 &&
	    (location == LOCATION_REGISTER ? !structure
					   : location == LOCATION_REFERENCE && structure)) {
		argument->index = (uint32_t)index;
		argument->by_address = structure;
		argument->why = NULL;
	} else if (!argument->why && location == LOCATION_OTHER) {
		argument->why = "is not in a register when the function begins";
	} else if (!argument->why && function->own_convention) {
		argument->why = "was left out by the compiler";
	}
}

/* Whether the result is written to where the caller says, whose address takes the first register.
 * */
static enum passing passing_of_result(struct fay_debug_function *function)
{
	const struct btf *btf = fay_debug_function_types(function);
	bool large =
		is_structure(btf, function->result) && fay_btf_size(btf, function->result) > 16;
	return large ? PASSED_BY_ADDRESS : passing_of(function, &function->die, function->result);
}

/* C's and C++'s compilers keep to the ABI, but for functions that nobody outside the unit can call:
 * gcc names those otherwise, LLVM does not. */
static bool has_own_convention(struct fay_debug_function *function, const char *name)
{
	Dwarf_Attribute attribute;
	const char *producer =
		dwarf_formstring(dwarf_attr_integrate(&function->unit, DW_AT_producer, &attribute));
	bool external = dwarf_hasattr_integrate(&function->die, DW_AT_external),
	     gnu = producer && !strncmp(producer, "GNU C", 5);
	switch (dwarf_srclang(&function->unit)) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14: return strchr(name, '.') || !(external || gnu);
	default: return true;
	}
}

/* --- the whole --- */

int fay_debug_next_edition(struct fay_debug_function *function, struct fay_error *error)
{
	int code = fay_debug_types_btf(&function->types,
				       &function->editions[function->edition_count], error);
	if (!code)
		function->edition_count++;
	return code;
}

static int read_arguments(struct fay_debug_function *function, const char *name,
			  struct fay_error *error)
{
	Dwarf_Die parameters[FAY_DEBUG_ARGUMENTS_MAX], child;
	enum passing passing[FAY_DEBUG_ARGUMENTS_MAX];
	uint32_t count = 0;
	if (dwarf_srclang(&function->unit) == DW_LANG_Go)
		return fay_error_set(error, FAY_E_REFUSED,
				     "`%s` is written in Go, whose functions take their arguments "
				     "in other registers",
				     name);
	for (int more = dwarf_child(&function->die, &child);
	     !more && count < FAY_DEBUG_ARGUMENTS_MAX; more = dwarf_siblingof(&child, &child)) {
		if (dwarf_tag(&child) != DW_TAG_formal_parameter)
			continue;
		const char *own = dwarf_diename(&child);
		function->arguments[count].name = own ? own : "";
		function->arguments[count].type = fay_debug_types_of(&function->types, &child);
		parameters[count++] = child;
	}
	function->argument_count = count;
	function->result = fay_debug_types_of(&function->types, &function->die);
	if (fay_debug_next_edition(function, error))
		return error->code;
	function->own_convention = has_own_convention(function, name);
	for (uint32_t i = 0; i < count; i++)
		passing[i] =
			passing_of_parameter(function, &parameters[i], function->arguments[i].type);
	place_by_abi(function, passing, passing_of_result(function));
	for (uint32_t i = 0; i < count; i++)
		place_by_location(function, &function->arguments[i], &parameters[i]);
	return FAY_OK;
}

int fay_debug_function_open(int fd, const char *path, uint64_t address, const char *name,
			    struct fay_debug_function **result, struct fay_error *error)
{
	struct fay_debug_function *function = calloc(1, sizeof(*function));
	if (!function)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	int code = fay_debug_file_open(&function->file, fd, path, error);
	function->entry = address + function->file.main_bias - function->file.debug_bias;
	if (!code && !find_function(function))
		code = fay_error_set(error, FAY_E_REFUSED,
				     "the debug information of %s does not describe `%s`", path,
				     name);
	if (!code)
		code = read_arguments(function, name, error);
	if (code)
		fay_debug_function_close(function);
	else
		*result = function;
	return code;
}

/* --- structures of which the unit knows the name only
 * ---------------------------------------------------------------------- */

static bool defines(Dwarf_Die *die, const char *name)
{
	int tag = dwarf_tag(die);
	const char *own = tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
					  tag == DW_TAG_union_type || tag == DW_TAG_enumeration_type
				  ? dwarf_diename(die)
				  : NULL;
	return own && !strcmp(own, name) && !dwarf_hasattr(die, DW_AT_declaration);
}

static bool find_definition(struct fay_debug_function *function, const char *name, Dwarf_Die *die)
{
	Dwarf_Die unit;
	Dwarf_CU *cu = NULL;
	while (!dwarf_get_units(function->file.dwarf, cu, &cu, NULL, NULL, &unit, NULL))
		for (int more = dwarf_child(&unit, die); !more; more = dwarf_siblingof(die, die))
			if (defines(die, name))
				return true;
	return false;
}

bool fay_debug_function_complete(struct fay_debug_function *function, uint32_t id)
{
	const struct btf *btf = fay_debug_function_types(function);
	const struct btf_type *type = btf__type_by_id(btf, id);
	const char *name = type && btf_is_fwd(type) ? fay_btf_name(btf, type->name_off) : "";
	Dwarf_Die die;
	if (!*name || function->edition_count == FAY_DEBUG_EDITIONS_MAX ||
	    !find_definition(function, name, &die))
		return false;
	fay_debug_types_complete(&function->types, id, &die);
	return fay_debug_next_edition(function, NULL) == FAY_OK;
}
