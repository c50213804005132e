/* SPDX-License-Identifier: MIT */
/* One question for places (places.c), and who answers it. */
#ifndef FAY_QUERY_DEBUG_PLACES_PRIVATE_H
#define FAY_QUERY_DEBUG_PLACES_PRIVATE_H

#include "fay/loader.h"
#include "scopes_private.h"

#define FAY_DEBUG_PLACES_MAX 65536u
#define FAY_DEBUG_WORDS_MAX 512u

struct fay_debug_asked {
	struct fay_debug_file file;
	const char *path;
	char what[FAY_DEBUG_WORDS_MAX],
		variables[FAY_DEBUG_WORDS_MAX]; /* before the `;`, and behind it */
	bool (*matches)(const char *glob, const char *symbol);
	struct fay_debug_places *places;
	uint64_t left;      /* entries that may still be looked at */
	uint64_t file_name; /* of a line: the length of its file's name in `what` */
	int line, next;     /* next: the first line behind it that has code; 0: none */
	bool file_seen, full;
	bool calls; /* a place is where the call begins that the line is in */
	/* copies: the scopes around the one that is looked at */
	struct fay_debug_scopes scopes;
};

/* A row of the line table. */
struct fay_debug_row {
	uint64_t address;
	const char *path; /* of its file */
	int line, column;
};

/* Whether it begins a statement. */
bool fay_debug_row_of(Dwarf_Line *line, struct fay_debug_row *row);
/* Whether gcc has optimised the unit. */
bool fay_debug_has_copies(Dwarf_Die *unit);
/* What the symbol of a C++ function would be that has none, to be freed; NULL: it has one, or is
 * not of C++. */
char *fay_debug_made_symbol(Dwarf_Die *unit, Dwarf_Die *function);
/* false: no more is to be looked for. */
bool fay_debug_add_place(struct fay_debug_asked *asked, struct fay_debug_scopes *scopes,
			 uint64_t pc);
/* Where the functions begin in which the line's statements do. */
int fay_debug_read_calls(struct fay_debug_asked *asked, struct fay_error *error);
int fay_debug_read_line(struct fay_debug_asked *asked, struct fay_error *error);
int fay_debug_read_copies(struct fay_debug_asked *asked, struct fay_error *error);

#endif
