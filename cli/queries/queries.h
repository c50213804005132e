/* SPDX-License-Identifier: MIT */
/*
 * Queries in files, with parameters, and the library of those that come with fay.
 *
 * A query file is the query's text. Before it there may be a line `#!`, comments, and parameters, a
 * line each, that the query's text has as `$NAME`:
 *
 *     #!/usr/bin/env -S fay trace -f
 *     // Calls that take long
 *     param function = "libc!*"
 *     param least = 10ms // to be shown
 *     from r in cluster.Return("$function") where r.Duration >= $least select new { r.comm }
 *
 * What a parameter is otherwise decides what it may be: a text, a number, or `true` or `false`. A
 * text is put into a string of the query with escapes, and elsewhere is a string of its own, so no
 * argument can be more of the query than its value.
 */
#ifndef FAY_CLI_QUERIES_H
#define FAY_CLI_QUERIES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "fay/error.h"

/* The query of a file (`-`: standard input; a name without a slash that no file has: an example)
 * with these arguments: values in the order of the parameters, or NAME=VALUE. *text is malloc'ed;
 * lines are those of the file. */
int fay_query_file_read(const char *file, char *const *arguments, size_t count, char **text,
			struct fay_error *error);
/* Where the bytes of a query stand in its file: elsewhere only behind values of parameters. */
struct fay_query_map {
	struct fay_query_piece {
		size_t at, size;     /* in the query */
		size_t from, length; /* in the file */
	} *pieces;
	size_t count, room;
};
/* Likewise of a file's bytes, its parameters as they are otherwise. Errors name the file "query".
 * *map is to be given to fay_query_map_deinit(), whatever is returned. */
int fay_query_text_read(const char *bytes, size_t size, char **text, struct fay_query_map *map,
			struct fay_error *error);
void fay_query_map_deinit(struct fay_query_map *map);
/* The byte of the file that byte `at` of the query comes from; within a parameter's value its begin
 * or, of what ends there, its end. */
size_t fay_query_map_back(const struct fay_query_map *map, size_t at, bool end);
/* Of an error in its query: says the file instead of "query", as editors look for. `file` NULL: the
 * query is no file's. */
void fay_query_file_name(const char *file, struct fay_error *error);

/* --- library.c --- */

struct fay_example {
	char topic[32], name[64]; /* TOPIC/NAME.linq in the library's folder */
	char path[PATH_MAX];
	char *text, *title; /* the whole file; the first line's comment */
};

struct fay_examples {
	size_t count;
	struct fay_example *items; /* by topic and name */
};

int fay_examples_read(struct fay_examples *examples, struct fay_error *error);
void fay_examples_deinit(struct fay_examples *examples);
/* NULL: there is none of that name. */
const struct fay_example *fay_examples_find(const struct fay_examples *examples, const char *name);
/* The name that was probably meant; NULL. */
const char *fay_examples_suggest(const struct fay_examples *examples, const char *name);

#endif
