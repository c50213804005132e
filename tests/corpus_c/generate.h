/* SPDX-License-Identifier: MIT */
/*
 * Random probe programs against corpus.h, in the manner of Csmith (Yang et al., PLDI 2011): every program is valid C whose result depends on the event
 * and the earlier state only. Arithmetic wraps (-fwrapv), shifts and divisions are guarded where they stand, indices are brought into range in
 * one of several ways that people use, loops have bounds. One seed, one program.
 */
#ifndef FAY_TEST_GENERATE_H
#define FAY_TEST_GENERATE_H

#include <stdint.h>
#include <stdio.h>

void generate_program(uint64_t seed, FILE *out);

#endif
