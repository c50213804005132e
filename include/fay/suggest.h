/* SPDX-License-Identifier: MIT */
/* "Did you mean". */
#ifndef FAY_SUGGEST_H
#define FAY_SUGGEST_H

#include <stddef.h>

/* The candidate that `word` was probably meant to be, or NULL; query/syntax/suggest.c. */
const char *fay_query_suggest(const char *word, const char *const *candidates, size_t count);

#endif
