/* SPDX-License-Identifier: MIT */
/* Scopes around an address, and the variables in them. */
#include "scopes_private.h"

#include <dwarf.h>
#include <string.h>

bool fay_debug_is_room(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_class_type ||
	       tag == DW_TAG_structure_type;
}

bool fay_debug_is_code(int tag)
{
	return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine ||
	       tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
}

/* gcc's copies may begin with a range without bytes. */
static bool is_entered_at(Dwarf_Die *die, uint64_t pc)
{
	Dwarf_Addr entry;
	return dwarf_tag(die) == DW_TAG_inlined_subroutine && !dwarf_entrypc(die, &entry) &&
	       entry == pc;
}

/* As deep as it goes. false: the scope is a room, and has no code there. */
static bool descend(Dwarf_Die scope, uint64_t pc, uint64_t *left, struct fay_debug_scopes *scopes)
{
	Dwarf_Die child, entered;
	bool is_entered = false;
	if (scopes->count == FAY_DEBUG_SCOPES_MAX)
		return true;
	scopes->items[scopes->count++] = scope;
	for (int more = dwarf_child(&scope, &child); !more && *left;
	     more = dwarf_siblingof(&child, &child), --*left) {
		int tag = dwarf_tag(&child);
		bool inside = fay_debug_is_room(tag) ||
			      (fay_debug_is_code(tag) && dwarf_haspc(&child, pc) == 1);
		if (inside && descend(child, pc, left, scopes))
			return true;
		if (fay_debug_is_code(tag) && !is_entered && is_entered_at(&child, pc)) {
			is_entered = true;
			entered = child;
		}
	}
	if (is_entered)
		return descend(entered, pc, left, scopes);
	if (fay_debug_is_code(dwarf_tag(&scope)))
		return true;
	scopes->count--;
	return false;
}

bool fay_debug_scopes_at(Dwarf_Die *unit, uint64_t pc, uint64_t *left,
			 struct fay_debug_scopes *scopes)
{
	scopes->count = 0;
	return descend(*unit, pc, left, scopes);
}

/* What a copy, or a function with copies, is made of. */
static bool origin_of(Dwarf_Die *scope, Dwarf_Die *origin)
{
	Dwarf_Attribute attribute;
	return dwarf_attr(scope, DW_AT_abstract_origin, &attribute) &&
	       dwarf_formref_die(&attribute, origin);
}

void fay_debug_scopes_extend(struct fay_debug_scopes *scopes, uint64_t pc, uint64_t *left)
{
	Dwarf_Die innermost = scopes->items[--scopes->count];
	descend(innermost, pc, left, scopes);
}

static bool is_number(Dwarf_Die *die, unsigned name, Dwarf_Word expected)
{
	Dwarf_Attribute attribute;
	Dwarf_Word number;
	return dwarf_attr(die, name, &attribute) && !dwarf_formudata(&attribute, &number) &&
	       number == expected;
}

bool fay_debug_is_function(Dwarf_Die *die)
{
	Dwarf_Die origin;
	int line, column;
	if (dwarf_tag(die) != DW_TAG_inlined_subroutine)
		return dwarf_tag(die) == DW_TAG_subprogram;
	return !origin_of(die, &origin) || dwarf_decl_line(&origin, &line) ||
	       dwarf_decl_column(&origin, &column) ||
	       !is_number(die, DW_AT_call_line, (Dwarf_Word)line) ||
	       !is_number(die, DW_AT_call_column, (Dwarf_Word)column);
}

Dwarf_Die *fay_debug_scopes_function(struct fay_debug_scopes *scopes)
{
	for (uint32_t i = scopes->count; i-- > 0;)
		if (fay_debug_is_function(&scopes->items[i]))
			return &scopes->items[i];
	return NULL;
}

void fay_debug_scopes_of_line(struct fay_debug_scopes *scopes, const char *path, int line)
{
	uint32_t kept = scopes->count;
	int best = 0;
	for (uint32_t i = scopes->count, end = scopes->count; i-- > 1;) {
		Dwarf_Die *scope = &scopes->items[i];
		const char *own = fay_debug_is_function(scope) ? dwarf_decl_file(scope) : NULL;
		int begins;
		if (own && !strcmp(own, path) && !dwarf_decl_line(scope, &begins) &&
		    begins <= line && begins > best) {
			best = begins;
			kept = end;
		}
		if (fay_debug_is_function(scope))
			end = i;
	}
	scopes->count = kept;
}

const char *fay_debug_symbol_of(Dwarf_Die *function)
{
	Dwarf_Attribute attribute;
	const char *name =
		dwarf_formstring(dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute));
	if (!name)
		name = dwarf_formstring(
			dwarf_attr_integrate(function, DW_AT_MIPS_linkage_name, &attribute));
	return name ? name : dwarf_diename(function);
}

void fay_debug_scopes_of_function(struct fay_debug_scopes *scopes, const char *symbol)
{
	for (uint32_t i = scopes->count, end = scopes->count; i-- > 1;) {
		Dwarf_Die *scope = &scopes->items[i];
		const char *own = fay_debug_is_function(scope) ? fay_debug_symbol_of(scope) : NULL;
		if (own && !strcmp(own, symbol)) {
			scopes->count = end;
			return;
		}
		if (fay_debug_is_function(scope))
			end = i;
	}
}

bool fay_debug_entry_of(const struct fay_debug_file *file, Dwarf_Die *function, uint64_t *pc)
{
	Dwarf_Addr base, end, bias = file->debug_bias;
	if (!dwarf_entrypc(function, pc))
		return true;
	if (dwarf_ranges(function, 0, &base, pc, &end) <= 0)
		return false;
	const char *symbol = dwfl_module_addrname(file->module, *pc + bias);
	return symbol && !strstr(symbol, ".cold");
}

/* --- variables --- */

static bool is_variable(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);
	return tag == DW_TAG_formal_parameter || tag == DW_TAG_variable;
}

static bool child_named(Dwarf_Die *scope, const char *name, uint64_t *left, Dwarf_Die *variable)
{
	for (int more = dwarf_child(scope, variable); !more && *left;
	     more = dwarf_siblingof(variable, variable), --*left) {
		const char *own = is_variable(variable) ? dwarf_diename(variable) : NULL;
		if (own && !strcmp(own, name))
			return true;
	}
	return false;
}

/* A variable outside of functions that is defined, not only declared. */
static bool is_defined(Dwarf_Die *die, const char *name)
{
	const char *own = dwarf_tag(die) == DW_TAG_variable ? dwarf_diename(die) : NULL;
	return own && !strcmp(own, name) &&
	       (dwarf_hasattr(die, DW_AT_location) || dwarf_hasattr(die, DW_AT_const_value));
}

static bool find_global(Dwarf_Die scope, const char *name, unsigned depth, uint64_t *left,
			Dwarf_Die *variable)
{
	Dwarf_Die child;
	for (int more = dwarf_child(&scope, &child); !more && *left;
	     more = dwarf_siblingof(&child, &child), --*left) {
		if (fay_debug_is_room(dwarf_tag(&child)) && depth < FAY_DEBUG_SCOPES_MAX &&
		    find_global(child, name, depth + 1, left, variable))
			return true;
		if (!is_defined(&child, name))
			continue;
		*variable = child;
		return true;
	}
	return false;
}

/* Of another unit, which the whole program sees. */
static bool find_external(const struct fay_debug_file *file, const char *name, uint64_t *left,
			  Dwarf_Die *variable)
{
	Dwarf_Die unit;
	Dwarf_CU *cu = NULL;
	while (*left && !dwarf_get_units(file->dwarf, cu, &cu, NULL, NULL, &unit, NULL))
		if (find_global(unit, name, 0, left, variable) &&
		    dwarf_hasattr_integrate(variable, DW_AT_external))
			return true;
	return false;
}

bool fay_debug_variable_at(const struct fay_debug_file *file, struct fay_debug_scopes *scopes,
			   const char *name, uint64_t *left, Dwarf_Die *variable)
{
	Dwarf_Die origin;
	for (uint32_t i = scopes->count; i-- > 1;) {
		Dwarf_Die *scope = &scopes->items[i];
		if (child_named(scope, name, left, variable) ||
		    (origin_of(scope, &origin) && child_named(&origin, name, left, variable)))
			return true;
		if (fay_debug_is_function(scope))
			break;
	}
	return scopes->count && (find_global(scopes->items[0], name, 0, left, variable) ||
				 find_external(file, name, left, variable));
}

size_t fay_debug_variable_names(struct fay_debug_scopes *scopes, const char **names, size_t max)
{
	uint64_t left = FAY_DEBUG_ENTRIES_MAX;
	size_t count = 0;
	for (uint32_t i = scopes->count; i-- > 1 && count < max;) {
		Dwarf_Die *scope = &scopes->items[i], child;
		for (int more = dwarf_child(scope, &child); !more && left-- && count < max;
		     more = dwarf_siblingof(&child, &child))
			if (is_variable(&child) && dwarf_diename(&child))
				names[count++] = dwarf_diename(&child);
		if (fay_debug_is_function(scope))
			break;
	}
	return count;
}
