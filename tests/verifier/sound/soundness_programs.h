/* SPDX-License-Identifier: MIT */
/* The random programs of test_soundness, each a probe of its own in one image; the same seed gives
 * the same programs. */
#ifndef FAY_TESTS_SOUNDNESS_PROGRAMS_H
#define FAY_TESTS_SOUNDNESS_PROGRAMS_H

#include <stdint.h>
#include <stdio.h>

#define LOCAL_SIZE 64
#define GLOBAL_SIZE 256

extern uint64_t program_seed; /* not 0 */
uint64_t program_random(void);
unsigned program_pick(unsigned n); /* below n */
/* Program `number`, with the label p`number`; the tables of an image of `programs` of them. */
void program_write(FILE *f, unsigned number);
/* soundness_quotients.c: a remainder by multiplication. */
void program_quotient(FILE *f);
/*
 * soundness_forms.c: the next form that the decoder admits; depth: of loops around it. And how many
 * forms were executed, of how many.
 */
void program_form(FILE *f, unsigned depth);
struct fay_insn;
void program_executed(const struct fay_insn *insn);
unsigned program_forms_executed(unsigned *of);
void program_tables(FILE *f, unsigned programs);

#endif
