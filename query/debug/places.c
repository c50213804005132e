/* SPDX-License-Identifier: MIT */
/*
 * Places of code that debug information tells (fay/loader.h, fay_places_reader): where the
 * statements of a line begin, and where copies of inlined functions do.
 *
 * A line's rows that begin a statement may be many: a debugger stops at the first one of each
 * block. So it is here. gcc has a statement begin once in each copy of it that loops and branches
 * were given, and says at which column: of code that it has optimised the other copies of that
 * first statement are places, too.
 */
#include "debug.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fay/loader.h"
#include "scopes_private.h"

#define PLACES_MAX 65536u
#define WORDS_MAX 512u

struct asked {
	struct fay_debug_file file;
	const char *path;
	char what[WORDS_MAX], variables[WORDS_MAX]; /* before the `;`, and behind it */
	bool (*matches)(const char *glob, const char *symbol);
	struct fay_debug_places *places;
	uint64_t left;      /* entries that may still be looked at */
	uint64_t file_name; /* of a line: the length of its file's name in `what` */
	int line, next;     /* next: the first line behind it that has code; 0: none */
	bool file_seen, full;
	/* copies: the scopes around the one that is looked at */
	struct fay_debug_scopes scopes;
};

/* --- a place --- */

/* Appends the operand for one word of the variables. */
static void append_operand(struct asked *asked, struct fay_debug_scopes *scopes, uint64_t pc,
			   const char *word, char *text, size_t size)
{
	bool address = *word == '&', whether = *word == '?';
	char operand[128] = "8@$0";
	Dwarf_Die variable;
	uint64_t left = asked->left;
	size_t used = strlen(text);
	if (*word && fay_debug_variable_at(&asked->file, scopes, word + (address || whether), &left,
					   &variable)) {
		bool there = fay_debug_locate(&asked->file, scopes, &variable, pc, address, operand,
					      sizeof(operand)) ||
			     (whether && fay_debug_locate(&asked->file, scopes, &variable, pc, true,
							  operand, sizeof(operand)));
		if (whether)
			snprintf(operand, sizeof(operand), "8@$%d", there);
	}
	snprintf(text + used, size - used, "%s%s", used ? " " : "", operand);
}

/* The word that begins at `at`; *next: the one behind it, or NULL. */
static const char *take_word(const char *at, char word[WORDS_MAX], const char **next)
{
	size_t length = strcspn(at, ",");
	*next = at[length] ? at + length + 1 : NULL;
	snprintf(word, WORDS_MAX, "%.*s", (int)length, at);
	return word;
}

static bool add_place(struct asked *asked, struct fay_debug_scopes *scopes, uint64_t pc)
{
	struct fay_debug_places *places = asked->places;
	Dwarf_Die *function = fay_debug_scopes_function(scopes);
	const char *name = function ? fay_debug_symbol_of(function) : NULL;
	char arguments[1024] = "", word[WORDS_MAX];
	if (!name)
		return true;
	if (places->count == PLACES_MAX)
		return !(asked->full = true);
	for (const char *at = *asked->variables ? asked->variables : NULL, *next; at; at = next) {
		take_word(at, word, &next);
		append_operand(asked, scopes, pc, word, arguments, sizeof(arguments));
	}
	if ((places->count & (places->count - 1)) == 0) { /* a power of two: full */
		size_t room = places->count ? 2 * places->count : 1;
		void *grown = realloc(places->items, room * sizeof(*places->items));
		if (!grown)
			return !(asked->full = true);
		places->items = grown;
	}
	struct fay_debug_place place = { .address = pc + asked->file.debug_bias -
						    asked->file.main_bias,
					 .function = strdup(name),
					 .arguments = strdup(arguments) };
	places->items[places->count++] = place;
	return place.function && place.arguments;
}

/* Addresses may come more than once: the same code is in several units, or in two copies. */
static int by_address(const void *left, const void *right)
{
	const struct fay_debug_place *a = left, *b = right;
	return a->address < b->address ? -1 : a->address > b->address;
}

static void fold(struct fay_debug_places *places)
{
	size_t kept = 0;
	if (places->count)
		qsort(places->items, places->count, sizeof(*places->items), by_address);
	for (size_t i = 0; i < places->count; i++) {
		if (!kept || places->items[kept - 1].address != places->items[i].address) {
			places->items[kept++] = places->items[i];
			continue;
		}
		free(places->items[i].function);
		free(places->items[i].arguments);
	}
	places->count = kept;
}

/* --- lines --- */

/* A row of the line's; `block`: the place of its innermost scope in the debug information. */
struct row {
	uint64_t address, block;
	int column;
};

/* Whether the path is the file, or ends with what is asked for behind a slash. */
static bool is_file(const struct asked *asked, const char *path)
{
	size_t length = path ? strlen(path) : 0, wanted = asked->file_name;
	return length >= wanted && !memcmp(path + length - wanted, asked->what, wanted) &&
	       (length == wanted || path[length - wanted - 1] == '/');
}

static void add_row(struct row **rows, size_t *count, uint64_t address, int column)
{
	if (*count == PLACES_MAX)
		return;
	if ((*count & (*count - 1)) == 0) {
		struct row *grown = realloc(*rows, (*count ? 2 * *count : 1) * sizeof(**rows));
		if (!grown)
			return;
		*rows = grown;
	}
	(*rows)[(*count)++] = (struct row){ .address = address, .column = column };
}

/* The unit's rows of that line that begin a statement. */
static size_t read_rows(struct asked *asked, Dwarf_Die *unit, struct row **rows)
{
	Dwarf_Lines *lines;
	size_t line_count, count = 0;
	const char *known = NULL;
	bool wanted = false;
	if (dwarf_getsrclines(unit, &lines, &line_count))
		return 0;
	for (size_t i = 0; i < line_count; i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);
		const char *path = dwarf_linesrc(line, NULL, NULL);
		bool begins = false, ends = false;
		int number = 0, column = 0;
		Dwarf_Addr address;
		if (path != known)
			wanted = is_file(asked, path);
		known = path;
		if (!wanted || dwarf_lineno(line, &number) ||
		    dwarf_linebeginstatement(line, &begins) || !begins ||
		    dwarf_lineendsequence(line, &ends) || ends || dwarf_lineaddr(line, &address))
			continue;
		asked->file_seen = true;
		if (number > asked->line && (!asked->next || number < asked->next))
			asked->next = number;
		dwarf_linecol(line, &column);
		if (number == asked->line)
			add_row(rows, &count, address, column);
	}
	return count;
}

static int by_block(const void *left, const void *right)
{
	const struct row *a = left, *b = right;
	return a->block != b->block      ? (a->block < b->block ? -1 : 1)
	       : a->address < b->address ? -1
					 : a->address > b->address;
}

/* Whether gcc has optimised the unit. */
static bool has_copies(Dwarf_Die *unit)
{
	Dwarf_Attribute attribute;
	const char *producer =
		dwarf_formstring(dwarf_attr_integrate(unit, DW_AT_producer, &attribute));
	const char *level =
		producer && !strncmp(producer, "GNU ", 4) ? strstr(producer, " -O") : NULL;
	return level && level[3] != '0';
}

static void add_unit_lines(struct asked *asked, Dwarf_Die *unit)
{
	struct row *rows = NULL;
	size_t count = read_rows(asked, unit, &rows);
	bool copies = has_copies(unit);
	for (size_t i = 0; i < count; i++)
		if (fay_debug_scopes_at(unit, rows[i].address, &asked->left, &asked->scopes))
			rows[i].block =
				dwarf_dieoffset(&asked->scopes.items[asked->scopes.count - 1]);
	if (count)
		qsort(rows, count, sizeof(*rows), by_block);
	for (size_t i = 0, first = 0; i < count; i++) {
		if (rows[i].block != rows[first].block)
			first = i;
		if (!rows[i].block ||
		    (i != first && (!copies || rows[i].column != rows[first].column ||
				    rows[i].address == rows[i - 1].address)))
			continue;
		if (!fay_debug_scopes_at(unit, rows[i].address, &asked->left, &asked->scopes) ||
		    !add_place(asked, &asked->scopes, rows[i].address))
			break;
	}
	free(rows);
}

static int no_line(const struct asked *asked, struct fay_error *error)
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

static int read_line(struct asked *asked, struct fay_error *error)
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

/* --- copies of functions --- */

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
	     i < PLACES_MAX && (at = dwarf_ranges(die, at, &base, &start, &end)) > 0; i++) {
		*pc = found && *pc < start ? *pc : start;
		found = true;
	}
	return found;
}

static void visit(struct asked *asked, Dwarf_Die scope)
{
	Dwarf_Die child;
	if (asked->scopes.count == FAY_DEBUG_SCOPES_MAX)
		return;
	asked->scopes.items[asked->scopes.count++] = scope;
	if (dwarf_tag(&scope) == DW_TAG_inlined_subroutine) {
		const char *name = fay_debug_symbol_of(&scope);
		uint64_t pc;
		if (name && asked->matches(asked->what, name) && entry_of(&scope, &pc))
			add_place(asked, &asked->scopes, pc);
	}
	for (int more = dwarf_child(&scope, &child); !more && asked->left && !asked->full;
	     more = dwarf_siblingof(&child, &child), asked->left--) {
		int tag = dwarf_tag(&child);
		if (fay_debug_is_room(tag) || fay_debug_is_code(tag))
			visit(asked, child);
	}
	asked->scopes.count--;
}

static int read_copies(struct asked *asked, struct fay_error *error)
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

/* --- the whole --- */

static int read_places(struct asked *asked, const char *text, struct fay_error *error)
{
	static const struct {
		const char *word;
		int (*read)(struct asked *asked, struct fay_error *error);
	} kinds[] = { { "line ", read_line }, { "inlined ", read_copies } };
	const char *semicolon = strchr(text, ';');
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t length = strlen(kinds[i].word);
		if (strncmp(text, kinds[i].word, length))
			continue;
		snprintf(asked->what, sizeof(asked->what), "%.*s",
			 semicolon ? (int)(semicolon - text - (ptrdiff_t)length) : 400,
			 text + length);
		snprintf(asked->variables, sizeof(asked->variables), "%s",
			 semicolon ? semicolon + 1 : "");
		return kinds[i].read(asked, error);
	}
	return fay_error_set(error, FAY_E_USAGE, "`@%s` is no place that debug information tells",
			     text);
}

int fay_debug_places_read(int fd, const char *path, const char *text,
			  bool (*matches)(const char *glob, const char *symbol),
			  struct fay_debug_places *places, struct fay_error *error)
{
	struct asked *asked = calloc(1, sizeof(*asked));
	if (!asked)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	asked->path = path;
	asked->matches = matches;
	asked->places = places;
	asked->left = FAY_DEBUG_ENTRIES_MAX;
	int code = fay_debug_file_open(&asked->file, fd, path, error);
	if (!code)
		code = read_places(asked, text, error);
	if (!code && (!asked->left || asked->full))
		code = fay_error_set(error, FAY_E_LIMIT,
				     "the debug information of %s has too much for `%s`: more than "
				     "%u places, or more to look at than is looked at",
				     path, asked->what, PLACES_MAX);
	fay_debug_file_close(&asked->file);
	free(asked);
	if (!code)
		fold(places);
	return code;
}
