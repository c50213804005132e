/* SPDX-License-Identifier: MIT */
/*
 * Where the statements of a line begin.
 *
 * A line's rows that begin a statement may be many: a debugger stops at the first one of each
 * block. So it is here. gcc has a statement begin once in each copy of it that loops and branches
 * were given, and says at which column: of code that it has optimised the other copies of that
 * first statement are places, too.
 */
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "places_private.h"

/* What is rarely executed lies apart, before all other code. It does not come first. */
#define COLD (UINT64_C(1) << 40)

/* A row of the line's that begins a statement; `block`, `function`: the places of its innermost
 * scope, and of its innermost function or copy of one, in the debug information. */
struct row {
	struct fay_debug_row own, before; /* before: the row before it */
	uint64_t block, function;
	uint64_t number; /* of the line table, by address */
	bool runs_on; /* the statement before it is of the line, too, or of what the line calls */
	bool opens;   /* it is where the function is declared */
	bool begins;
};

/* Whether the path is the file, or ends with what is asked for behind a slash. */
static bool is_file(const struct fay_debug_asked *asked, const char *path)
{
	size_t length = path ? strlen(path) : 0, wanted = asked->file_name;
	return length >= wanted && !memcmp(path + length - wanted, asked->what, wanted) &&
	       (length == wanted || path[length - wanted - 1] == '/');
}

static void add_row(struct row **rows, size_t *count, struct row row)
{
	if (*count == FAY_DEBUG_PLACES_MAX)
		return;
	if ((*count & (*count - 1)) == 0) {
		struct row *grown = realloc(*rows, (*count ? 2 * *count : 1) * sizeof(**rows));
		if (!grown)
			return;
		*rows = grown;
	}
	(*rows)[(*count)++] = row;
}

bool fay_debug_row_of(Dwarf_Line *line, struct fay_debug_row *row)
{
	bool begins = false, ends = false;
	row->path = dwarf_linesrc(line, NULL, NULL);
	row->column = 0;
	return row->path && !dwarf_linebeginstatement(line, &begins) && begins &&
	       !dwarf_lineendsequence(line, &ends) && !ends && !dwarf_lineno(line, &row->line) &&
	       !dwarf_linecol(line, &row->column) && !dwarf_lineaddr(line, &row->address);
}

/* The unit's rows of that line that begin a statement. */
static size_t read_rows(struct fay_debug_asked *asked, Dwarf_Die *unit, struct row **rows)
{
	Dwarf_Lines *lines;
	size_t line_count, count = 0;
	struct fay_debug_row before = { 0 };
	bool wanted = false;
	if (dwarf_getsrclines(unit, &lines, &line_count))
		return 0;
	for (size_t i = 0; i < line_count; i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);
		struct row row = { .before = before, .number = i };
		if (!fay_debug_row_of(line, &row.own))
			continue;
		if (row.own.path != before.path)
			wanted = is_file(asked, row.own.path);
		before = row.own;
		if (!wanted)
			continue;
		asked->file_seen = true;
		if (row.own.line > asked->line && (!asked->next || row.own.line < asked->next))
			asked->next = row.own.line;
		if (row.own.line == asked->line)
			add_row(rows, &count, row);
	}
	return count;
}

static int by_function(const void *left, const void *right)
{
	const struct row *a = left, *b = right;
	return a->function != b->function ? (a->function < b->function ? -1 : 1)
	       : a->number < b->number    ? -1
					  : a->number > b->number;
}

static int by_block(const void *left, const void *right)
{
	const struct row *a = left, *b = right;
	return a->function != b->function ? (a->function < b->function ? -1 : 1)
	       : a->block != b->block     ? (a->block < b->block ? -1 : 1)
	       : a->number < b->number    ? -1
					  : a->number > b->number;
}

bool fay_debug_has_copies(Dwarf_Die *unit)
{
	Dwarf_Attribute attribute;
	const char *producer =
		dwarf_formstring(dwarf_attr_integrate(unit, DW_AT_producer, &attribute));
	const char *level =
		producer && !strncmp(producer, "GNU ", 4) ? strstr(producer, " -O") : NULL;
	return level && level[3] != '0';
}

/* The scopes of a row, in asked->scopes. */
static Dwarf_Die *scopes_of(struct fay_debug_asked *asked, Dwarf_Die *unit,
			    const struct fay_debug_row *statement)
{
	if (!fay_debug_scopes_at(unit, statement->address, &asked->left, &asked->scopes))
		return NULL;
	fay_debug_scopes_of_line(&asked->scopes, statement->path, statement->line);
	return fay_debug_scopes_function(&asked->scopes);
}

/* Whether the statement before the row is of what the line calls, a copy of which is there. */
static bool follows_call(struct fay_debug_asked *asked, Dwarf_Die *unit, const struct row *row)
{
	const struct fay_debug_scopes *scopes = &asked->scopes;
	Dwarf_Attribute attribute;
	Dwarf_Word line;
	uint32_t i = 0;
	if (!row->before.path || !scopes_of(asked, unit, &row->before))
		return false;
	while (i < scopes->count &&
	       dwarf_dieoffset((Dwarf_Die *)&scopes->items[i]) != row->function)
		i++;
	for (i++; i < scopes->count; i++)
		if (dwarf_tag((Dwarf_Die *)&scopes->items[i]) == DW_TAG_inlined_subroutine)
			return dwarf_attr((Dwarf_Die *)&scopes->items[i], DW_AT_call_line,
					  &attribute) &&
			       !dwarf_formudata(&attribute, &line) &&
			       line == (Dwarf_Word)row->own.line;
	return false;
}

/* The symbol that the address is in; "". */
static const char *symbol_at(struct fay_debug_asked *asked, uint64_t address)
{
	const char *symbol =
		dwfl_module_addrname(asked->file.module, address + asked->file.debug_bias);
	return symbol ? symbol : "";
}

/* Whether the row is of a part of the function that gcc has taken out: one that is a function now,
 * or one that was put back. */
static bool in_part(struct fay_debug_asked *asked, Dwarf_Die *function, const char *symbol)
{
	struct fay_debug_scopes *scopes = &asked->scopes;
	if (dwarf_tag(function) == DW_TAG_subprogram && strstr(symbol, ".part."))
		return true;
	for (uint32_t i = scopes->count; i-- > 0 && &scopes->items[i] != function;)
		if (dwarf_tag(&scopes->items[i]) == DW_TAG_inlined_subroutine)
			return true;
	return false;
}

/* Says where each row is; what lies in no function goes. */
static size_t place_rows(struct fay_debug_asked *asked, Dwarf_Die *unit, struct row *rows,
			 size_t count)
{
	size_t kept = 0;
	int declared;
	for (size_t i = 0; i < count && asked->left; i++) {
		struct row *row = &rows[i];
		Dwarf_Die *function = scopes_of(asked, unit, &row->own);
		if (!function)
			continue;
		row->function = dwarf_dieoffset(function);
		row->block = dwarf_dieoffset(&asked->scopes.items[asked->scopes.count - 1]);
		row->opens = !dwarf_decl_line(function, &declared) && declared == asked->line;
		const char *symbol = symbol_at(asked, row->own.address);
		if (row->opens && in_part(asked, function, symbol))
			continue;
		if (strstr(symbol, ".cold"))
			row->number += COLD;
		row->runs_on =
			(row->before.line == asked->line && is_file(asked, row->before.path)) ||
			follows_call(asked, unit, row);
		rows[kept++] = *row;
	}
	return kept;
}

/*
 * Of one function's rows those at which the line begins. A row that runs on from the one before it
 * is a statement within the line. Where it has that one's column, too, the line is a macro's, whose
 * statements all have the place of its use: the others of them may lie anywhere, and look like
 * copies.
 */
static void choose_rows(struct row *rows, size_t count, bool copies)
{
	bool once = false;
	for (size_t i = 1; i < count; i++) {
		once |= copies && rows[i].runs_on && rows[i].own.column == rows[i - 1].own.column;
		rows[i].begins = !rows[i].runs_on && rows[i].own.address != rows[i - 1].own.address;
	}
	rows[0].begins = true;
	for (size_t i = 1; i < count && once; i++)
		rows[i].begins = false;
	qsort(rows, count, sizeof(*rows), by_block);
	for (size_t i = 1, first = 0; i < count; i++) {
		if (rows[i].block != rows[first].block)
			first = i;
		else
			rows[i].begins &= copies && rows[i].own.column == rows[first].own.column;
	}
}

static void add_unit_lines(struct fay_debug_asked *asked, Dwarf_Die *unit)
{
	struct row *rows = NULL;
	size_t count = read_rows(asked, unit, &rows);
	count = place_rows(asked, unit, rows, count);
	bool copies = fay_debug_has_copies(unit);
	if (count)
		qsort(rows, count, sizeof(*rows), by_function);
	for (size_t i = 0, first = 0; i < count; i++) {
		if (i + 1 < count && rows[i + 1].function == rows[first].function)
			continue;
		choose_rows(&rows[first], i + 1 - first, copies);
		first = i + 1;
	}
	for (size_t i = 0; i < count; i++)
		if (rows[i].begins &&
		    (!scopes_of(asked, unit, &rows[i].own) ||
		     !fay_debug_add_place(asked, &asked->scopes, rows[i].own.address)))
			break;
	free(rows);
}

static int no_line(const struct fay_debug_asked *asked, struct fay_error *error)
{
	if (!asked->file_seen)
		return fay_error_set(error, FAY_E_USAGE,
				     "no source file `%.*s` in the debug information of %s",
				     (int)asked->file_name, asked->what, asked->path);
	if (!asked->next)
		return fay_error_set(error, FAY_E_USAGE,
				     "no statement begins at %s in %s, nor behind it", asked->what,
				     asked->path);
	return fay_error_set(error, FAY_E_USAGE,
			     "no statement begins at %s in %s; the next one is in line %d",
			     asked->what, asked->path, asked->next);
}

int fay_debug_read_line(struct fay_debug_asked *asked, struct fay_error *error)
{
	const char *colon = strrchr(asked->what, ':');
	char *end = NULL;
	long line = colon ? strtol(colon + 1, &end, 10) : 0;
	Dwarf_Die unit;
	Dwarf_CU *cu = NULL;
	if (!colon || colon == asked->what || *end || line <= 0 || line > INT32_MAX)
		return fay_error_set(error, FAY_E_USAGE,
				     "a line is given as \"module!file.c:123\", not `%s`",
				     asked->what);
	asked->line = (int)line;
	asked->file_name = (uint64_t)(colon - asked->what);
	while (asked->left && !asked->full &&
	       !dwarf_get_units(asked->file.dwarf, cu, &cu, NULL, NULL, &unit, NULL))
		add_unit_lines(asked, &unit);
	return asked->places->count || !asked->left || asked->full ? FAY_OK : no_line(asked, error);
}
