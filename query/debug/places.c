/* SPDX-License-Identifier: MIT */
/*
 * Places of code that debug information tells (fay/loader.h, fay_places_reader): where the
 * statements of a line begin (lines.c), and where copies of inlined functions do (copies.c).
 */
#include "debug.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fay/loader.h"
#include "places_private.h"

/* --- a place --- */

/* "1#name": the second word of the program that computes it, 0 where there is none. */
static bool is_program(const char *word)
{
	return *word >= '0' && *word < '0' + (int)FAY_COMPUTE_WORDS && word[1] == '#';
}

static void append_program(struct fay_debug_asked *asked, struct fay_debug_scopes *scopes,
			   uint64_t pc, const char *word, char *text, size_t size)
{
	unsigned number = (unsigned)(*word - '0');
	bool address = word[2] == '&';
	struct fay_debug_program program = { 0 };
	uint64_t left = asked->left, value = 0;
	Dwarf_Die variable;
	if (fay_debug_variable_at(&asked->file, scopes, word + 2 + address, &left, &variable) &&
	    fay_debug_compute(&asked->file, scopes, &variable, pc, address, &program))
		memcpy(&value, program.bytes + 8 * number, sizeof(value));
	snprintf(text, size, "8@$0x%" PRIx64, value);
}

/* Appends the operand for one word of the variables. */
static void append_operand(struct fay_debug_asked *asked, struct fay_debug_scopes *scopes,
			   uint64_t pc, const char *word, char *text, size_t size)
{
	bool address = *word == '&', whether = *word == '?';
	char operand[128] = "8@$0";
	Dwarf_Die variable;
	uint64_t left = asked->left;
	size_t used = strlen(text);
	if (is_program(word))
		append_program(asked, scopes, pc, word, operand, sizeof(operand));
	else if (*word && fay_debug_variable_at(&asked->file, scopes, word + (address || whether),
						&left, &variable)) {
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
static const char *take_word(const char *at, char word[FAY_DEBUG_WORDS_MAX], const char **next)
{
	size_t length = strcspn(at, ",");
	*next = at[length] ? at + length + 1 : NULL;
	snprintf(word, FAY_DEBUG_WORDS_MAX, "%.*s", (int)length, at);
	return word;
}

/* Of what begins where the function does in which the place lies. */
static bool find_call(const struct fay_debug_file *file, struct fay_debug_scopes *scopes,
		      uint64_t *pc)
{
	while (scopes->count && dwarf_tag(&scopes->items[scopes->count - 1]) != DW_TAG_subprogram)
		scopes->count--;
	return scopes->count && fay_debug_entry_of(file, &scopes->items[scopes->count - 1], pc);
}

bool fay_debug_add_place(struct fay_debug_asked *asked, struct fay_debug_scopes *scopes,
			 uint64_t pc)
{
	if (asked->calls && !find_call(&asked->file, scopes, &pc))
		return true;
	struct fay_debug_places *places = asked->places;
	Dwarf_Die *function = fay_debug_scopes_function(scopes);
	const char *name = function ? fay_debug_symbol_of(function) : NULL;
	char arguments[1024] = "", word[FAY_DEBUG_WORDS_MAX];
	if (!name)
		return true;
	if (places->count == FAY_DEBUG_PLACES_MAX)
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

/* --- the whole --- */

static int read_places(struct fay_debug_asked *asked, const char *text, struct fay_error *error)
{
	static const struct {
		const char *word;
		int (*read)(struct fay_debug_asked *asked, struct fay_error *error);
	} kinds[] = { { "line ", fay_debug_read_line },
		      { "calls ", fay_debug_read_calls },
		      { "inlined ", fay_debug_read_copies } };
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

int fay_debug_read_calls(struct fay_debug_asked *asked, struct fay_error *error)
{
	asked->calls = true;
	return fay_debug_read_line(asked, error);
}

int fay_debug_places_read(int fd, const char *path, const char *text,
			  bool (*matches)(const char *glob, const char *symbol),
			  struct fay_debug_places *places, struct fay_error *error)
{
	struct fay_debug_asked *asked = calloc(1, sizeof(*asked));
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
				     path, asked->what, FAY_DEBUG_PLACES_MAX);
	fay_debug_file_close(&asked->file);
	free(asked);
	if (!code)
		fold(places);
	return code;
}
