/* SPDX-License-Identifier: MIT */
/* Which operators, fields and sources of the language random queries have, and how often. */
#ifndef FAY_TESTS_QUERY_SHARES_H
#define FAY_TESTS_QUERY_SHARES_H

/* What random queries are about. */
enum queries { QUERIES_OF_PROGRAMS = 1, QUERIES_OF_KERNEL = 2, QUERIES_OF_SAVED = 4 };

/* The query was asked of so many streams. */
void count_operators(const char *text, unsigned pairs);
/* Prints the number of pairs that had each operator. Returns the first one that such queries have
 * and no pair had; NULL: none. */
const char *print_shares(enum queries queries);

#endif
