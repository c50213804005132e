/* SPDX-License-Identifier: MIT */
/* What may be a key, a column or what an aggregate is of: an expression of numbers, or a field of
 * another type. */
#ifndef FAY_TESTS_QUERY_SCALARS_H
#define FAY_TESTS_QUERY_SCALARS_H

#include "cells.h"
#include "trees.h"

enum type { INT, BOOL, TIME, FUNCTION, NAME, MODULE, CALLER, STACK, TYPES };
#define OF(type) (1u << (type))
#define OF_WORDS (OF(INT) | OF(BOOL) | OF(TIME) | OF(FUNCTION))
#define OF_KEYS (OF_WORDS | OF(NAME) | OF(CALLER) | OF(STACK))
#define OF_ANYTHING (OF_KEYS | OF(MODULE))

struct scalar {
	enum type type;
	struct tree *tree; /* INT, BOOL */
	/* NAME: 1: the name or another string; STACK: how many frames, 0: UserStack */
	unsigned form;
};

/* Of one of these types, as far as the source's events have it; an integer more often than others.
 * `of_few`: integers of few values. */
struct scalar random_scalar(unsigned types, bool of_few);
void free_scalar(struct scalar *s);
void print_scalar(FILE *out, const struct scalar *s); /* the event is `x` */
struct cell scalar_cell(const struct scalar *s, const struct fay_event *e);

#endif
