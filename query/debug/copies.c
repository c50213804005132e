/* SPDX-License-Identifier: MIT */
/*
 * Where copies of inlined functions begin: where the debug information says that they are entered.
 * gcc may have given a copy several beginnings, as of one that is a loop's condition. It marks each
 * by a row of the line table that has the function's own place in the source.
 */
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "places_private.h"

#define MADE_COSTS 64u

/* Where a copy is entered: where it says so, else its lowest address. */
static bool entry_of(Dwarf_Die *die, uint64_t *pc)
{
	Dwarf_Attribute attribute;
	Dwarf_Word offset;
	Dwarf_Addr low, start, end, base;
	ptrdiff_t at = 0;
	bool found = false;
	if (dwarf_attr(die, DW_AT_entry_pc, &attribute)) {
		if (!dwarf_formaddr(&attribute, pc))
			return true;
		if (!dwarf_formudata(&attribute, &offset) && !dwarf_lowpc(die, &low)) {
			*pc = low + offset;
			return true;
		}
	}
	for (unsigned i = 0;
	     i < FAY_DEBUG_PLACES_MAX && (at = dwarf_ranges(die, at, &base, &start, &end)) > 0;
	     i++) {
		*pc = found && *pc < start ? *pc : start;
		found = true;
	}
	return found;
}

/* The first row at the address or behind it. */
static size_t row_at(Dwarf_Lines *lines, size_t count, uint64_t address)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		Dwarf_Addr at = 0;
		dwarf_lineaddr(dwarf_onesrcline(lines, middle), &at);
		if (at < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Whether the row is where the function says that it is declared, and of this copy, neither of one
 * in it nor of a part of the function. */
static bool is_opening(struct fay_debug_asked *asked, const struct fay_debug_row *own,
		       const struct fay_debug_row *row)
{
	struct fay_debug_scopes scopes = asked->scopes;
	uint32_t copy = scopes.count - 1;
	if (row->line != own->line || row->column != own->column || strcmp(row->path, own->path))
		return false;
	fay_debug_scopes_extend(&scopes, row->address, &asked->left);
	fay_debug_scopes_of_line(&scopes, row->path, row->line);
	for (uint32_t i = copy + 1; i < scopes.count; i++)
		if (dwarf_tag(&scopes.items[i]) == DW_TAG_inlined_subroutine)
			return false;
	return scopes.count > copy;
}

/* The copy's beginnings by the line table. */
static void add_openings(struct fay_debug_asked *asked, Dwarf_Die *die)
{
	struct fay_debug_row own = { .path = dwarf_decl_file(die) }, row;
	Dwarf_Lines *lines;
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	size_t count;
	if (!fay_debug_has_copies(&asked->scopes.items[0]) || !own.path ||
	    dwarf_decl_line(die, &own.line) || dwarf_decl_column(die, &own.column) ||
	    dwarf_getsrclines(&asked->scopes.items[0], &lines, &count))
		return;
	for (unsigned i = 0; i < FAY_DEBUG_PLACES_MAX && asked->left && !asked->full &&
			     (at = dwarf_ranges(die, at, &base, &start, &end)) > 0;
	     i++)
		for (size_t j = row_at(lines, count, start); j < count && asked->left;
		     j++, asked->left--) {
			Dwarf_Line *line = dwarf_onesrcline(lines, j);
			/* gcc's beginnings may be ranges without bytes */
			if (dwarf_lineaddr(line, &row.address) ||
			    (row.address >= end && row.address > start))
				break;
			if (fay_debug_row_of(line, &row) && is_opening(asked, &own, &row))
				fay_debug_add_place(asked, &asked->scopes, row.address);
		}
}

/* Whether a pattern that the bare name does not match may mean it with its namespaces. */
static bool may_be(const char *what, const char *name)
{
	char bare[128];
	snprintf(bare, sizeof(bare), "%.*s", (int)strcspn(name, "<"), name);
	return strncmp(name, "_Z", 2) != 0 && (strpbrk(what, "*?[") || strstr(what, bare));
}

static bool is_asked(struct fay_debug_asked *asked, Dwarf_Die *copy)
{
	const char *name = fay_debug_symbol_of(copy);
	if (name && asked->matches(asked->what, name))
		return true;
	/* that takes a look at the whole unit */
	if (!name || asked->left <= MADE_COSTS || !may_be(asked->what, name))
		return false;
	asked->left -= MADE_COSTS;
	char *made = fay_debug_made_symbol(&asked->scopes.items[0], copy);
	bool asked_for = made && asked->matches(asked->what, made);
	free(made);
	return asked_for;
}

static void visit(struct fay_debug_asked *asked, Dwarf_Die scope)
{
	Dwarf_Die child;
	if (asked->scopes.count == FAY_DEBUG_SCOPES_MAX)
		return;
	asked->scopes.items[asked->scopes.count++] = scope;
	if (dwarf_tag(&scope) == DW_TAG_inlined_subroutine && fay_debug_is_function(&scope)) {
		uint64_t pc;
		if (is_asked(asked, &scope) && entry_of(&scope, &pc)) {
			fay_debug_add_place(asked, &asked->scopes, pc);
			add_openings(asked, &scope);
		}
	}
	for (int more = dwarf_child(&scope, &child); !more && asked->left && !asked->full;
	     more = dwarf_siblingof(&child, &child), asked->left--) {
		int tag = dwarf_tag(&child);
		if (fay_debug_is_room(tag) || fay_debug_is_code(tag))
			visit(asked, child);
	}
	asked->scopes.count--;
}

int fay_debug_read_copies(struct fay_debug_asked *asked, struct fay_error *error)
{
	Dwarf_Die unit;
	Dwarf_CU *cu = NULL;
	while (asked->left && !asked->full &&
	       !dwarf_get_units(asked->file.dwarf, cu, &cu, NULL, NULL, &unit, NULL))
		visit(asked, unit);
	return asked->places->count || !asked->left || asked->full
		       ? FAY_OK
		       : fay_error_set(error, FAY_E_USAGE,
				       "no function `%s` is inlined anywhere in %s", asked->what,
				       asked->path);
}
