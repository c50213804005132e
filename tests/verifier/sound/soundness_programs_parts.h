/* SPDX-License-Identifier: MIT */
/* What soundness_programs.c, which makes random programs, and soundness_items.c, which makes single
 * instructions of them, share. */
#ifndef FAY_TESTS_SOUNDNESS_PROGRAMS_PARTS_H
#define FAY_TESTS_SOUNDNESS_PROGRAMS_PARTS_H

#include "soundness_programs.h"

#define REGS 7 /* those that programs compute with */

/* Widths are 0 to 3: 8, 16, 32, 64 bits. */
extern const char *const names[4][REGS];
extern const char suffixes[];
int64_t constant(unsigned width); /* that fits as an immediate */
const char *reg(unsigned width);
const char *condition(void);
void compare(FILE *f);

/* Moves, sums, shifts, products: `kind` is 0 to 16. */
void arithmetic_item(FILE *f, unsigned kind, unsigned width);
/* Forms that are rarer: high bytes, 8 and 16 bits, bits, exchanges, double shifts, BMI, strings. */
void rare_item(FILE *f);

#endif
