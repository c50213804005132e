/* SPDX-License-Identifier: MIT */
/* What is known at the places of a line: the variables that can be seen from there. */
#include "function_private.h"

#include <stdlib.h>
#include <string.h>

/* The scopes around a place. */
static bool find_scopes(struct fay_debug_function *function, const struct fay_debug_place *place,
			uint64_t *left)
{
	uint64_t pc = place->address + function->file.main_bias - function->file.debug_bias;
	Dwarf_CU *cu = NULL;
	while (!dwarf_get_units(function->file.dwarf, cu, &cu, NULL, NULL, &function->unit, NULL))
		if (dwarf_haspc(&function->unit, pc) == 1 &&
		    fay_debug_scopes_at(&function->unit, pc, left, &function->scopes)) {
			fay_debug_scopes_of_function(&function->scopes, place->function);
			return true;
		}
	return false;
}

/* Names of copies. */
static bool is_same(const char *name, const char *symbol)
{
	return !strcmp(name, symbol);
}

int fay_debug_line_open(int fd, const char *path, const char *text,
			struct fay_debug_function **result, struct fay_error *error)
{
	struct fay_debug_function *function = calloc(1, sizeof(*function));
	if (!function)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	int code = fay_debug_places_read(fd, path, text, is_same, &function->places, error);
	if (!code)
		code = fay_debug_file_open(&function->file, fd, path, error);
	if (!code)
		code = fay_debug_next_edition(function, error);
	if (code)
		fay_debug_function_close(function);
	else
		*result = function;
	return code;
}

bool fay_debug_line_variable(struct fay_debug_function *function, const char *name, uint32_t *type)
{
	uint64_t left = FAY_DEBUG_ENTRIES_MAX;
	Dwarf_Die variable;
	for (size_t i = 0; i < function->places.count && left; i++) {
		if (function->edition_count == FAY_DEBUG_EDITIONS_MAX)
			return false;
		if (!find_scopes(function, &function->places.items[i], &left) ||
		    !fay_debug_variable_at(&function->file, &function->scopes, name, &left,
					   &variable))
			continue;
		*type = fay_debug_types_of(&function->types, &variable);
		return fay_debug_next_edition(function, NULL) == FAY_OK;
	}
	return false;
}

struct fay_debug_words fay_debug_line_words(struct fay_debug_function *function, const char *name,
					    bool address)
{
	struct fay_debug_words words = { 0 };
	uint64_t left = FAY_DEBUG_ENTRIES_MAX;
	uint32_t longest = 0;
	bool needed = false;
	for (size_t i = 0; i < function->places.count && left; i++) {
		const struct fay_debug_place *place = &function->places.items[i];
		uint64_t pc = place->address + function->file.main_bias - function->file.debug_bias;
		struct fay_debug_program program;
		Dwarf_Die variable;
		char operand[128];
		if (!find_scopes(function, place, &left) ||
		    !fay_debug_variable_at(&function->file, &function->scopes, name, &left,
					   &variable) ||
		    !fay_debug_compute(&function->file, &function->scopes, &variable, pc, address,
				       &program))
			continue;
		longest = program.length > longest ? program.length : longest;
		if (fay_debug_locate(&function->file, &function->scopes, &variable, pc, address,
				     operand, sizeof(operand)))
			continue;
		needed = true;
		words.calls |= program.entries;
	}
	words.count = needed ? (uint8_t)((longest + 7) / 8) : 0;
	return words;
}

size_t fay_debug_line_names(struct fay_debug_function *function, const char **names, size_t max)
{
	uint64_t left = FAY_DEBUG_ENTRIES_MAX;
	return function->places.count && find_scopes(function, &function->places.items[0], &left)
		       ? fay_debug_variable_names(&function->scopes, names, max)
		       : 0;
}
