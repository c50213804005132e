/* SPDX-License-Identifier: MIT */
#include "debug_function.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "debug_types.h"

#define EDITIONS_MAX 64u /* of the types, each with one more structure looked up */

struct fay_debug_function {
	char *debug_path;
	Dwfl_Callbacks callbacks;
	Dwfl *dwfl;
	Dwarf *dwarf;
	Dwarf_Die unit, die;
	uint64_t entry; /* as the debug information counts */
	struct fay_debug_types types;
	struct fay_btf *editions[EDITIONS_MAX];
	uint32_t edition_count;
	uint32_t result;
	struct fay_debug_argument arguments[FAY_DEBUG_ARGUMENTS_MAX];
	uint32_t argument_count;
	bool own_convention; /* the compiler may hand over arguments otherwise than the ABI says */
};

const struct fay_debug_argument *fay_debug_function_arguments(const struct fay_debug_function *function, uint32_t *count)
{
	*count = function->argument_count;
	return function->arguments;
}

uint32_t fay_debug_function_result(const struct fay_debug_function *function)
{
	return function->result;
}

const struct fay_btf *fay_debug_function_types(const struct fay_debug_function *function)
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
	if (function->dwfl)
		dwfl_end(function->dwfl);
	free(function->debug_path);
	free(function);
}

/* --- finding ------------------------------------------------------------------------------------------------------------ */

static int open_dwarf(struct fay_debug_function *function, int fd, const char *path, uint64_t address, struct fay_error *error)
{
	const char *folder = getenv("FAY_DEBUG_DIR");
	GElf_Addr main_bias;
	Dwarf_Addr debug_bias;
	if (asprintf(&function->debug_path, "+:.debug:%s", folder && *folder ? folder : "/usr/lib/debug") < 0) {
		function->debug_path = NULL;
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	function->callbacks = (Dwfl_Callbacks){.find_elf = dwfl_build_id_find_elf,
					       .find_debuginfo = dwfl_standard_find_debuginfo,
					       .section_address = dwfl_offline_section_address,
					       .debuginfo_path = &function->debug_path};
	function->dwfl = dwfl_begin(&function->callbacks);
	int own = dup(fd);
	Dwfl_Module *module = function->dwfl && own >= 0 ? dwfl_report_offline(function->dwfl, path, path, own) : NULL;
	if (!module) {
		if (own >= 0)
			close(own);
		return fay_error_set(error, FAY_E_REFUSED, "%s: %s", path, dwfl_errmsg(-1));
	}
	dwfl_report_end(function->dwfl, NULL, NULL);
	if (!dwfl_module_getelf(module, &main_bias) || !(function->dwarf = dwfl_module_getdwarf(module, &debug_bias)))
		return fay_error_set(error, FAY_E_REFUSED, "%s has no debug information (it would be in the file or, by its build ID, below %s)", path,
				     folder && *folder ? folder : "/usr/lib/debug");
	function->entry = address + main_bias - debug_bias;
	return FAY_OK;
}

/* A function of several parts has no single start: it is entered where the first one begins. */
static bool starts_at(Dwarf_Die *die, uint64_t entry)
{
	Dwarf_Addr start, base, end;
	if (!dwarf_entrypc(die, &start))
		return start == entry;
	return dwarf_ranges(die, 0, &base, &start, &end) > 0 && start == entry;
}

/* The function that begins at `entry` among those of one unit. */
static bool find_in_unit(struct fay_debug_function *function, Dwarf_Die *unit)
{
	Dwarf_Die *scopes = NULL;
	bool found = false;
	int count = dwarf_getscopes(unit, function->entry, &scopes);
	for (int i = 0; i < count && !found; i++) {
		found = dwarf_tag(&scopes[i]) == DW_TAG_subprogram && starts_at(&scopes[i], function->entry);
		if (found)
			function->die = scopes[i];
	}
	free(scopes);
	if (found)
		function->unit = *unit;
	return found;
}

static bool find_function(struct fay_debug_function *function)
{
	Dwarf_Die unit;
	Dwarf_CU *cu = NULL;
	if (dwarf_addrdie(function->dwarf, function->entry, &unit) && find_in_unit(function, &unit))
		return true;
	/* clang writes no table of what lies where. */
	while (!dwarf_get_units(function->dwarf, cu, &cu, NULL, NULL, &unit, NULL))
		if (dwarf_haspc(&unit, function->entry) == 1 && find_in_unit(function, &unit))
			return true;
	return false;
}

/* --- where arguments are ------------------------------------------------------------------------------------------------ */

#define OUT_OF_REGISTERS "is handed over on the stack"

/* The argument register by DWARF's number, or -1. */
static int argument_of_register(unsigned number)
{
	static const uint8_t numbers[] = {5, 4, 1, 2, 8, 9}; /* rdi rsi rdx rcx r8 r9 */
	for (unsigned i = 0; i < sizeof(numbers); i++)
		if (numbers[i] == number)
			return (int)i;
	return -1;
}

enum location { LOCATION_REGISTER, LOCATION_FRAME, LOCATION_NONE, LOCATION_OTHER };

/* What the compiler says of the argument at the function's first instruction. */
static enum location location_of(const struct fay_debug_function *function, Dwarf_Die *parameter, int *index)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *ops;
	size_t count;
	if (!dwarf_attr_integrate(parameter, DW_AT_location, &attribute))
		return LOCATION_NONE;
	int found = dwarf_getlocation_addr(&attribute, function->entry, &ops, &count, 1);
	if (found != 1 || !count)
		return LOCATION_NONE;
	if (count == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31) {
		*index = argument_of_register(ops[0].atom - DW_OP_reg0);
		return *index < 0 ? LOCATION_OTHER : LOCATION_REGISTER;
	}
	unsigned form = dwarf_whatform(&attribute);
	bool everywhere = form == DW_FORM_exprloc || form == DW_FORM_block1 || form == DW_FORM_block2 || form == DW_FORM_block4 || form == DW_FORM_block;
	/* A place that holds for the whole function is not true of its first instruction, where the frame is not there yet. */
	return count == 1 && ops[0].atom == DW_OP_fbreg && everywhere ? LOCATION_FRAME : LOCATION_OTHER;
}

/* A class with a copy constructor or the like is handed over by its address. */
static bool by_reference(Dwarf_Die *parameter)
{
	Dwarf_Attribute attribute;
	Dwarf_Die type;
	Dwarf_Word convention;
	if (!dwarf_attr_integrate(parameter, DW_AT_type, &attribute) || !dwarf_formref_die(&attribute, &type) || dwarf_peel_type(&type, &type))
		return false;
	return dwarf_attr_integrate(&type, DW_AT_calling_convention, &attribute) && !dwarf_formudata(&attribute, &convention) &&
	       convention == DW_CC_pass_by_reference;
}

/* How a value is handed over: in so many general registers; 0: not in general registers, *why says where; -1: not known. */
static int general_registers(const struct fay_btf *btf, uint32_t id, const char **why)
{
	uint32_t stripped = fay_btf_strip(btf, id), size = fay_btf_size(btf, stripped);
	const struct btf_type *type = fay_btf_type(btf, stripped);
	switch (type ? BTF_INFO_KIND(type->info) : BTF_KIND_UNKN) {
	case BTF_KIND_PTR:
		return 1;
	case BTF_KIND_INT:
	case BTF_KIND_ENUM64:
		return size && size <= 8 ? 1 : size == 16 ? 2 : -1;
	case BTF_KIND_FLOAT:
		*why = size <= 8 ? "is a floating-point number, which probes do not see" : OUT_OF_REGISTERS;
		return 0;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		*why = "is a structure on the stack";
		return size > 16 ? 0 : -1;
	default:
		return -1;
	}
}

#define AFTER_UNKNOWN "follows an argument that may be in several registers, so its own is not known"

/* The ABI's register for each argument, as far as the types tell. */
static void place_by_abi(struct fay_debug_function *function, const bool *references, bool hidden_result)
{
	const struct fay_btf *btf = fay_debug_function_types(function);
	int used = hidden_result;
	bool known = true;
	for (uint32_t i = 0; i < function->argument_count; i++) {
		struct fay_debug_argument *argument = &function->arguments[i];
		argument->why = "is not in a register by itself";
		int registers = !known ? -1 : references[i] ? 1 : general_registers(btf, argument->type, &argument->why);
		if (registers < 0) {
			argument->why = known ? "is a small structure, or of a type that is not understood" : AFTER_UNKNOWN;
			known = false;
		} else if (registers && used + registers > 6) {
			argument->why = OUT_OF_REGISTERS;
		} else if (registers) {
			argument->index = (uint32_t)used;
			argument->why = registers == 1 && !references[i] ? NULL : references[i] ? "is an object handed over by its address" : "has more than 64 bits";
			used += registers;
		}
	}
}

/* What the compiler says goes before what the ABI says. */
static void place_by_location(struct fay_debug_function *function, uint32_t i, Dwarf_Die *parameter, bool reference)
{
	struct fay_debug_argument *argument = &function->arguments[i];
	int index = -1;
	switch (location_of(function, parameter, &index)) {
	case LOCATION_REGISTER:
		if (reference)
			return;
		argument->index = (uint32_t)index;
		argument->why = NULL;
		break;
	case LOCATION_FRAME:
	case LOCATION_NONE:
		if (!argument->why && function->own_convention)
			argument->why = "was left out by the compiler";
		break;
	case LOCATION_OTHER:
		if (!argument->why)
			argument->why = "is not in a register when the function begins";
		break;
	}
}

/* Whether the result is written to where the caller says, whose address takes the first register. */
static bool hides_result(const struct fay_debug_function *function, Dwarf_Die *die)
{
	const struct fay_btf *btf = fay_debug_function_types(function);
	const struct btf_type *type = fay_btf_type(btf, fay_btf_strip(btf, function->result));
	if (!type || (BTF_INFO_KIND(type->info) != BTF_KIND_STRUCT && BTF_INFO_KIND(type->info) != BTF_KIND_UNION))
		return false;
	return type->size > 16 || by_reference(die);
}

/* C's and C++'s compilers keep to the ABI, but for functions that nobody outside the unit can call: gcc names those otherwise, LLVM does not. */
static bool has_own_convention(struct fay_debug_function *function, const char *name)
{
	Dwarf_Attribute attribute;
	const char *producer = dwarf_formstring(dwarf_attr_integrate(&function->unit, DW_AT_producer, &attribute));
	bool external = dwarf_hasattr_integrate(&function->die, DW_AT_external), gnu = producer && !strncmp(producer, "GNU C", 5);
	switch (dwarf_srclang(&function->unit)) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
		return strchr(name, '.') || !(external || gnu);
	default:
		return true;
	}
}

/* --- the whole ----------------------------------------------------------------------------------------------------------- */

static int next_edition(struct fay_debug_function *function, struct fay_error *error)
{
	int code = fay_debug_types_btf(&function->types, &function->editions[function->edition_count], error);
	if (!code)
		function->edition_count++;
	return code;
}

static int read_arguments(struct fay_debug_function *function, const char *name, struct fay_error *error)
{
	Dwarf_Die parameters[FAY_DEBUG_ARGUMENTS_MAX], child;
	bool references[FAY_DEBUG_ARGUMENTS_MAX];
	uint32_t count = 0;
	if (dwarf_srclang(&function->unit) == DW_LANG_Go)
		return fay_error_set(error, FAY_E_REFUSED, "`%s` is written in Go, whose functions get their arguments in other registers", name);
	for (int more = dwarf_child(&function->die, &child); !more && count < FAY_DEBUG_ARGUMENTS_MAX; more = dwarf_siblingof(&child, &child)) {
		if (dwarf_tag(&child) != DW_TAG_formal_parameter)
			continue;
		const char *own = dwarf_diename(&child);
		function->arguments[count].name = own ? own : "";
		function->arguments[count].type = fay_debug_types_of(&function->types, &child);
		references[count] = by_reference(&child);
		parameters[count++] = child;
	}
	function->argument_count = count;
	function->result = fay_debug_types_of(&function->types, &function->die);
	if (next_edition(function, error))
		return error->code;
	function->own_convention = has_own_convention(function, name);
	place_by_abi(function, references, hides_result(function, &function->die));
	for (uint32_t i = 0; i < count; i++)
		place_by_location(function, i, &parameters[i], references[i]);
	return FAY_OK;
}

int fay_debug_function_open(int fd, const char *path, uint64_t address, const char *name, struct fay_debug_function **result, struct fay_error *error)
{
	struct fay_debug_function *function = calloc(1, sizeof(*function));
	if (!function)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	int code = open_dwarf(function, fd, path, address, error);
	if (!code && !find_function(function))
		code = fay_error_set(error, FAY_E_REFUSED, "the debug information of %s does not know `%s`", path, name);
	if (!code)
		code = read_arguments(function, name, error);
	if (code)
		fay_debug_function_close(function);
	else
		*result = function;
	return code;
}

/* --- structures of which the unit knows the name only ---------------------------------------------------------------------- */

static bool defines(Dwarf_Die *die, const char *name)
{
	int tag = dwarf_tag(die);
	const char *own = tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type || tag == DW_TAG_enumeration_type ? dwarf_diename(die) : NULL;
	return own && !strcmp(own, name) && !dwarf_hasattr(die, DW_AT_declaration);
}

static bool find_definition(struct fay_debug_function *function, const char *name, Dwarf_Die *die)
{
	Dwarf_Die unit;
	Dwarf_CU *cu = NULL;
	while (!dwarf_get_units(function->dwarf, cu, &cu, NULL, NULL, &unit, NULL))
		for (int more = dwarf_child(&unit, die); !more; more = dwarf_siblingof(die, die))
			if (defines(die, name))
				return true;
	return false;
}

bool fay_debug_function_complete(struct fay_debug_function *function, uint32_t id)
{
	const struct fay_btf *btf = fay_debug_function_types(function);
	const struct btf_type *type = fay_btf_type(btf, id);
	const char *name = type && BTF_INFO_KIND(type->info) == BTF_KIND_FWD ? fay_btf_string(btf, type->name_off) : "";
	Dwarf_Die die;
	if (!*name || function->edition_count == EDITIONS_MAX || !find_definition(function, name, &die))
		return false;
	fay_debug_types_complete(&function->types, id, &die);
	return next_edition(function, NULL) == FAY_OK;
}
