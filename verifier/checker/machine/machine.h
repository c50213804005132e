/* SPDX-License-Identifier: MIT */
/* What an instruction does to a state. */
#ifndef FAY_CHECKER_MACHINE_H
#define FAY_CHECKER_MACHINE_H

#include "state.h"

/* ---- memory.c: all return false where the rules do not allow it ---- */

/* An access whose region is known and whose bounds hold. */
struct access {
	struct form offset;
	struct range at; /* of the offset */
	uint8_t region;
	uint32_t size;
};
/* But for the stack's: 0. If it is passed, at most. */
uint32_t region_size(const struct machine *m, unsigned region);
bool region_passed(const struct machine *m, unsigned region);
/* Whether the image, or with FAY_REGION_FILLED a helper for it, has the permission there. */
bool region_permits(const struct machine *m, unsigned region, uint8_t permission);
/* The pointer or number that an address operand comes to. */
bool machine_address(struct machine *m, const struct fay_operand *mem, struct value *v);
bool machine_access(struct machine *m, const struct value *address, uint32_t size, bool write,
		    struct access *a);
/* alignment: that must be shown; 1 none */
bool machine_locate(struct machine *m, const struct fay_operand *mem, uint32_t size, bool write,
		    uint32_t alignment, struct access *a);
/* Any kind may come of a load; only numbers leave the stack. */
bool machine_load(struct machine *m, const struct access *a, struct value *v);
bool machine_store(struct machine *m, const struct access *a, const struct value *v);
/* Whether bytes [low, high) of the stack are numbers that were written. */
bool stack_written(struct machine *m, int64_t low, int64_t high);
/* Whether nothing but numbers and unwritten bytes lies there. */
bool stack_numbers(struct machine *m, int64_t low, int64_t high);
bool stack_all_written(const struct state *s, int64_t low, int64_t high);
/* Values there are forgotten. False: a return address is there. */
bool stack_forget(struct machine *m, int64_t low, int64_t high);
void stack_mark(struct state *s, int64_t low, int64_t high, bool written);
const struct slot *stack_find(const struct state *s, int64_t at, uint32_t size);
bool stack_put(struct machine *m, int64_t at, uint32_t size, const struct value *v);
bool machine_depth(struct machine *m, int64_t depth);

/* ---- operand.c ---- */
bool machine_readable(struct machine *m, const struct value *v, unsigned bits);
bool register_read(struct machine *m, unsigned reg, unsigned bits, struct value *v);
void register_write(struct machine *m, unsigned reg, unsigned bits, const struct value *v);
/* A number or a pointer; a number alone. */
bool operand_read(struct machine *m, const struct fay_operand *o, unsigned bits, struct value *v);
bool operand_number(struct machine *m, const struct fay_operand *o, unsigned bits, struct value *v);
bool operand_write(struct machine *m, const struct fay_insn *insn, const struct fay_operand *o,
		   unsigned bits, const struct value *v);
/* a + k * b modulo 2^bits; a may be a pointer if bits is 64. */
bool value_add(struct machine *m, const struct value *a, const struct value *b, int64_t k,
	       unsigned bits, struct value *r);
void value_settle(struct machine *m, struct value *v, unsigned bits);
/* The low `bits` bits as a form, or a variable of its own for it. */
struct form value_word(struct machine *m, const struct value *v, unsigned bits);
void value_product(struct machine *m, const struct value *a, const struct value *b, unsigned bits,
		   struct value *r);

/* ---- flags.c ---- */
/* The flags are those of a - b, as far as `covered`; b NULL: of a. a NULL: nothing is known. */
void flags_set(struct machine *m, const struct fay_insn *insn, const struct value *a,
	       const struct value *b, unsigned covered);
/* Whether the condition's flags are defined. */
bool flags_ready(struct machine *m, unsigned cc);
/* What the condition says is learned. False: it cannot hold. */
bool flags_assume(struct machine *m, unsigned cc);
/* Whether the condition may hold; *r: what `v` is where it does. */
bool flags_where(struct machine *m, unsigned cc, const struct value *v, unsigned bits,
		 struct range *r);
/* 1 where the condition holds, else 0. */
struct value flags_truth(struct machine *m, unsigned cc);

/* ---- the instructions ---- */
/* One instruction but for control transfers. */
bool machine_step(struct machine *m, const struct fay_insn *insn);
bool step_vector(struct machine *m, const struct fay_insn *insn);
bool step_call_helper(struct machine *m, const struct fay_insn *insn);
/* The helper whose slot is at this address; -1: none. */
int machine_slot(const struct machine *m, uint64_t address);
/* The register of a parameter or argument. */
static inline unsigned machine_argument(unsigned i)
{
	return (const uint8_t[]){ FAY_RDI, FAY_RSI, FAY_RDX, FAY_RCX, FAY_R8, FAY_R9 }[i];
}
void machine_entry(struct machine *m);
/* Whether register `r` holds what it held at entry. */
bool machine_unchanged(const struct machine *m, const struct value *v, unsigned r);
bool machine_return(struct machine *m); /* from the probe */

#endif
