/* SPDX-License-Identifier: MIT */
/*
 * From a refusal (rule, address, words) to a rejection that a person can act on: function, offset,
 * source line, marked disassembly.
 */
#ifndef FAY_VERIFIER_REPORT_H
#define FAY_VERIFIER_REPORT_H

#include "verifier/image/image.h"

/*
 * Disassembly of up to three instructions before and after virtual address `address`, that one
 * marked "=>", one a line, in the arena. NULL if the address is not in .text. Lines before are
 * found by decoding from the nearest symbol, so they are right where the code is, and left out
 * where it is not.
 */
const char *fay_verify_disassembly(struct fay_arena *arena, const struct fay_image *image,
				   uint64_t address);

/* Name of the function that holds `address`: nearest symbol at or before it, else "probe N", else
 * ".text". *start is set to its first address. */
const char *fay_verify_function(struct fay_arena *arena, const struct fay_image *image,
				uint64_t address, uint64_t *start);

/*
 * Fills rule, outcome, what, missing, and, if image is not NULL and refusal->address lies in .text,
 * function, offsets, disassembly and source line. Leaves path, counterexample and replayed as they
 * are (zero them before).
 */
void fay_rejection_fill(struct fay_arena *arena, const struct fay_image *image,
			const struct fay_refusal *refusal, struct fay_rejection *rejection);

/* What to change in a probe that breaks the rule; NULL if nothing is said. */
const char *fay_rule_hint(enum fay_rule rule);

/* "not run" and so on. */
const char *fay_native_name(enum fay_native native);

#endif
