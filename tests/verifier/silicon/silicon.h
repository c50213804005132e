/* SPDX-License-Identifier: MIT */
/*
 * Instructions run natively, for comparison with what the verifier says of them (test_silicon.c).
 *
 * To add instructions that use other registers (vectors): add their registers to struct
 * silicon_frame and to the code that silicon_native.c emits around the instruction, give the forms'
 * bytes in silicon_forms.c, and compare the new registers in test_silicon.c; whether an instruction
 * needs a feature of the CPU is asked of its row's `features`. The vector table has its own
 * enumeration of forms and its own test, vector_forms.c and test_vector.c.
 */
#ifndef FAY_TEST_SILICON_H
#define FAY_TEST_SILICON_H

#include <stddef.h>

#include "verifier/isa/isa.h"

/* bytes of memory that instructions work on: the frame of the abstract state */
#define SILICON_STACK 128u
#define SILICON_BELOW 64u /* pushes go there */

/* Laid out for the generated code, which reaches it rip-relative. Behind `stack` follows a page
 * without access. */
struct silicon_frame {
	uint64_t in[16], out[16];
	uint64_t flags_in, flags_out, saved_rsp;
	uint8_t *below; /* SILICON_BELOW bytes, then SILICON_STACK bytes up to the guard page */
	uint8_t *stack;
};

extern struct silicon_frame *frame;

void silicon_set_up(void);
/* The next runs are of these bytes. */
void silicon_load(const uint8_t *bytes, size_t length);
/* frame->in and flags_in to frame->out and flags_out. False: #DE. */
bool silicon_run(bool may_divide);
uint64_t silicon_eflags(uint8_t flags);
uint8_t silicon_flags(uint64_t eflags);
/* Whether the CPU has all of these (enum fay_cpu_feature). */
bool silicon_has(uint32_t features);

uint64_t next_random(void);
uint64_t random_value(void);
void random_seed(uint64_t seed);

/* A form: what an instruction's bytes have in common while registers, numbers and addresses vary.
 * */
struct form {
	uint8_t map, opcode, digit, rex_w, p66, lock, memory;
	uint8_t vex_pp, vex_map; /* map 4: VEX with general registers */
	bool any_digit;          /* the ModRM reg field is a register, or there is no ModRM byte */
};

/* Calls `each` for every form that the decoder admits and that does not jump, in order. */
/* `each` may put another arena in place of *arena. */
void silicon_each_form(struct fay_arena **arena, void (*each)(const struct form *));
/* An instance that can run here: random registers other than rsp, memory at [r14 + ...]. False:
 * none found. */
bool silicon_instance(struct fay_arena *arena, const struct form *form, uint8_t bytes[15],
		      struct fay_insn *insn, unsigned attempts);

#endif
