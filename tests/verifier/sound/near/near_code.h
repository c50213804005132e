/* SPDX-License-Identifier: MIT */
/*
 * Probes that are nearly right, as bytes: fuzz_accept.c makes them from a seed. near_code.c emits
 * instructions, near_idioms.c what compilers make of a bounded index, a counted loop, a call,
 * near_frame.c what they make of a frame, near_vectors.c vector instructions, near_numbers.c what
 * rests on exact numbers, near_probe.c a whole probe of them.
 */
#ifndef FAY_TESTS_NEAR_CODE_H
#define FAY_TESTS_NEAR_CODE_H

#include "tests/verifier/sound/soundness.h"

enum { AX, CX, DX, BX, SP, BP, SI, DI };

struct code {
	uint8_t bytes[1024];
	unsigned size;
	struct soundness_random *random;
	const struct soundness_template *template;
	int depth; /* of nested idioms */
	int32_t tables[SOUNDNESS_TABLES];
	unsigned table_count; /* of tables of four, used */
	int32_t frame;        /* the frame's slots begin so far above rsp */
	uint8_t calls[8];     /* ends of calls whose function is not there yet */
	unsigned call_count;
	bool within; /* a function that is called */
};

/* near_code.c */
uint64_t near_below(struct code *c, uint64_t limit);
bool near_rarely(struct code *c, unsigned one_in);
void near_byte(struct code *c, unsigned value);
void near_word32(struct code *c, uint32_t value);
unsigned near_scratch(struct code *c);
unsigned near_pointer(struct code *c);
void near_rex(struct code *c, bool wide, unsigned reg, unsigned index, unsigned base,
	      bool byte_register);
void near_op_rr(struct code *c, unsigned width, unsigned opcode, unsigned reg, unsigned rm);
void near_op_rm(struct code *c, unsigned width, unsigned opcode, unsigned reg, unsigned base,
		unsigned index, unsigned scale, int32_t disp);
void near_op_ri(struct code *c, unsigned width, unsigned digit, unsigned reg, int32_t imm);
unsigned near_some_width(struct code *c);
int32_t near_some_number(struct code *c);
void near_load_event(struct code *c, unsigned reg);
void near_indexed_access(struct code *c, unsigned reg, unsigned scale, int32_t disp);
unsigned near_jump_forward(struct code *c, unsigned cc);
void near_land(struct code *c, unsigned from);
void near_random_instruction(struct code *c);

/* near_idioms.c */
void near_block(struct code *c, unsigned most);
void near_idiom_index(struct code *c);
void near_idiom_loop(struct code *c);
void near_idiom_branch(struct code *c);
void near_idiom_helper(struct code *c);
void near_idiom_memory(struct code *c);
void near_idiom_switch(struct code *c);
void near_idiom_pointers(struct code *c);
void near_idiom_bits(struct code *c);
void near_idiom_call(struct code *c);

/* near_frame.c */
void near_idiom_stack(struct code *c);
void near_idiom_fill(struct code *c);
void near_idiom_push(struct code *c);

/* near_vectors.c */
void near_init(void); /* once */
void near_idiom_vector(struct code *c);

/* near_numbers.c */
void near_idiom_remainder(struct code *c);
void near_idiom_partial(struct code *c);
void near_idiom_rounds(struct code *c);
void near_idiom_search(struct code *c);
void near_idiom_nest(struct code *c);
void near_idiom_string(struct code *c);

/* near_probe.c */
void near_statement(struct code *c);
void near_generate(struct code *c);

#endif
