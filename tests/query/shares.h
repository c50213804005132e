/* SPDX-License-Identifier: MIT */
/* Which operators, fields and sources of the language random queries have, and how often. */
#ifndef FAY_TESTS_QUERY_SHARES_H
#define FAY_TESTS_QUERY_SHARES_H

#include <stdbool.h>

/* The query was asked of so many streams. */
void count_operators(const char *text, unsigned pairs);
/* Prints the number of pairs that had each operator. `kernel`: of those that queries about the kernel have. Returns the first one that no pair had; NULL: none. */
const char *print_shares(bool kernel);

#endif
