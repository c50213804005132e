/* SPDX-License-Identifier: MIT */
/*
 * Tables of queries with what they give, cases/TOPIC.cases. A case is
 *
 *   == NAME
 *   the query's text
 *   -- plan
 *   what `fay explain` prints for it, text and JSON
 *
 * or `-- error` with its exit code and message. A blank line stands before the next case. A new
 * case is its first two parts; `ninja query-golden` (FAY_REGENERATE=1) writes the third, and all
 * others anew, for review.
 */
#ifndef FAY_TESTS_QUERY_CASES_H
#define FAY_TESTS_QUERY_CASES_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>

struct query_case {
	const char *name, *text;
	const char *kind, *outcome; /* "plan" or "error"; NULL: not written yet */
};

struct query_table {
	char path[4096];
	char *bytes; /* what the cases point into */
	size_t count;
	struct query_case cases[128];
};

/* The next table of the folder, to be given to query_table_free(); false: there are no more. */
bool query_table_next(DIR *folder, const char *path, struct query_table *table);
void query_table_free(struct query_table *table);
void query_table_write(const struct query_table *table);

#endif
