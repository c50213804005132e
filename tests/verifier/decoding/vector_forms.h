/* SPDX-License-Identifier: MIT */
/* Encodings of every vector form in the verifier's table, made here from the Intel SDM's rules and
 * not with the decoder's help. */
#ifndef FAY_TESTS_VECTOR_FORMS_H
#define FAY_TESTS_VECTOR_FORMS_H

#include "verifier/isa/isa.h"

struct vector_form {
	const struct fay_vector_row *row;
	bool vex, wide_register; /* VEX encoding; W set where it chooses the general register */
	unsigned length;         /* 16 or 32 */
	bool memory;             /* r/m is memory */
};

/* All forms of the table, one after the other: starts at *state = 0; false at the end. */
bool vector_form_next(unsigned *state, struct vector_form *form);

struct vector_operands {
	unsigned reg, vvvv, rm; /* register numbers; rm only if not memory */
	unsigned base;          /* general register, not rsp, rbp, r12, r13 */
	int8_t disp;
	uint8_t imm;
};
/* Writes the instruction to `code` (16 bytes); returns its length. */
unsigned vector_form_encode(const struct vector_form *form, const struct vector_operands *operands,
			    uint8_t *code);

#endif
