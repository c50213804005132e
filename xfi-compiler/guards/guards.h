/* SPDX-License-Identifier: MIT */
/*
 * The XFI guards: every access inside its region for every input, and every loop ends.
 *
 *   accesses.c which accesses there are
 *   guard.c    the guards
 *   bound.c    what a guard does to an index: mask, clamp, check
 *   unsigned.c numbers that are never negative
 *   pointers.c loop variables that are pointers, as offsets
 *   splitload.c loads from one of several objects
 *   shorten.c  loops of no more rounds than the array has elements
 *   apart.c    accesses that never meet
 *   fuel.c     every loop ends
 */
#ifndef FAY_COMPILER_GUARDS_GUARDS_H
#define FAY_COMPILER_GUARDS_GUARDS_H

#include "xfi-compiler/ir/ir.h"

int fay_guard(struct fay_unit *unit);
/* after the optimiser: guards that it must not judge */
void fay_lower_bounds(struct fay_unit *unit);
void fay_lower_checks(struct fay_unit *unit); /* at the very end: those that are branches */
/* optimisation merges loads of different objects; take them apart again */
void fay_split_loads(struct fay_unit *unit);
int fay_fuel(struct fay_unit *unit);

#endif
