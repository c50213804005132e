/* SPDX-License-Identifier: MIT */
/*
 * What the transfer functions share. Each returns false where the path ends: an obligation was
 * refused, or the way is infeasible.
 *
 * transfer.c           obligations, one instruction, a block, fences
 * transfer_value.c     values: names, registers, arithmetic on numbers and pointers
 * transfer_flags.c     what the flags say; branches
 * transfer_memory.c    addresses, bounds, loads and stores, operands
 * transfer_data.c      moves, lea, exchanges, conditional moves
 * transfer_alu.c       arithmetic, logic, shifts, bits
 * transfer_multiply.c  multiplication and division
 * transfer_form.c      forms of numbers
 * transfer_remainder.c quotients and remainders by multiplication
 * transfer_wrap.c      sums of 32 bits that may wrap
 * transfer_partial.c   registers of which only some bytes were written
 * transfer_stack.c     push, pop, call, ret
 * transfer_jump.c      jumps through tables
 * transfer_helper.c    the helpers' contracts
 * transfer_vector.c    vector registers
 */
#ifndef FAY_VERIFIER_TRANSFER_H
#define FAY_VERIFIER_TRANSFER_H

#include "analysis.h"

static inline uint64_t mask_of(unsigned width)
{
	return width >= 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
}
static inline const struct fay_insn *insn_of(const struct fay_analysis *an)
{
	return &an->cfg->insns[an->insn];
}

/* The operands of the last comparison and their difference. */
struct fay_triple {
	struct fay_value a, b, r;
};

/* A memory access whose region is known. */
struct fay_access {
	enum fay_region region;
	struct fay_scalar offset;
	unsigned size;
	bool proved;            /* within bounds */
	struct fay_place place; /* on the stack, at an offset that varies */
};

/* ---- transfer.c ---- */
struct fay_obligation *fay_obligation_add(struct fay_analysis *an, enum fay_goal goal,
					  enum fay_rule rule, enum fay_outcome outcome);
__attribute__((format(printf, 3, 4))) bool
fay_path_refuse(struct fay_analysis *an, enum fay_rule rule, const char *format, ...);

/* ---- transfer_value.c ---- */
struct fay_value fay_value_fresh(struct fay_analysis *an, struct fay_scalar scalar);
struct fay_value fay_value_constant(struct fay_analysis *an, uint64_t number);
void fay_value_forget_name(struct fay_analysis *an, struct fay_value *v);
struct fay_value fay_value_narrow(struct fay_analysis *an, struct fay_value v, unsigned width);
void fay_note_read(struct fay_analysis *an, const struct fay_value *v);
bool fay_value_readable(struct fay_analysis *an, const struct fay_value *v, unsigned width,
			const char *name);
bool fay_reg_read(struct fay_analysis *an, unsigned reg, unsigned width, struct fay_value *v);
void fay_reg_write(struct fay_analysis *an, unsigned reg, unsigned width, struct fay_value v);
void fay_value_move_origin(struct fay_value *r, const struct fay_value *a, int64_t low,
			   int64_t high);
struct fay_scalar fay_scalar_shift_count(const struct fay_scalar *count, unsigned width);
struct fay_scalar fay_scalar_compute(enum fay_op op, const struct fay_scalar *a,
				     const struct fay_scalar *b, unsigned width);
struct fay_scalar fay_scalar_compute_both(enum fay_op op, const struct fay_scalar *a,
					  const struct fay_scalar *b, unsigned width);
bool fay_value_arithmetic(struct fay_analysis *an, enum fay_op op, const struct fay_value *a,
			  const struct fay_value *b, unsigned width, struct fay_value *r);

/* ---- transfer_flags.c ---- */
void fay_flags_set(struct fay_analysis *an, enum fay_flags_record record, unsigned width,
		   const struct fay_value *a, const struct fay_value *b, const struct fay_value *r,
		   uint8_t covered);
void fay_flags_set_none(struct fay_analysis *an);
bool fay_flags_compare(struct fay_analysis *an, const struct fay_value *a,
		       const struct fay_value *b, const struct fay_value *r, unsigned width,
		       uint8_t covered);
void fay_flags_sum(struct fay_analysis *an, const struct fay_value *a, const struct fay_value *b,
		   const struct fay_value *r, unsigned width, uint8_t covered);
bool fay_flags_refine(const struct fay_state *s, enum fay_cc cc, struct fay_triple *t);
bool fay_flags_ready(struct fay_analysis *an, uint8_t need);
/* v learns what is known of a, b and r, if it is one of them or a constant distance from it. */
bool fay_flags_learn(struct fay_value *v, const struct fay_triple *t);

/* ---- transfer_memory.c ---- */
bool fay_mem_address(struct fay_analysis *an, const struct fay_operand *mem, struct fay_value *v);
bool fay_mem_resolve(struct fay_analysis *an, const struct fay_value *address, unsigned size,
		     bool write, bool helper, struct fay_access *access);
bool fay_mem_locate(struct fay_analysis *an, const struct fay_operand *mem, unsigned size,
		    bool write, struct fay_access *access);
bool fay_mem_slot_refuse(struct fay_analysis *an, enum fay_slot_status status);
void fay_note_fields(struct fay_analysis *an, int64_t low, int64_t high);
bool fay_mem_load(struct fay_analysis *an, const struct fay_access *access, struct fay_value *v);
bool fay_mem_store(struct fay_analysis *an, const struct fay_access *access,
		   const struct fay_value *v);
bool fay_operand_read(struct fay_analysis *an, const struct fay_operand *operand, unsigned width,
		      struct fay_value *v);
bool fay_operand_write(struct fay_analysis *an, const struct fay_operand *operand, unsigned width,
		       struct fay_value v);
bool fay_reg_read_whole(struct fay_analysis *an, unsigned reg, struct fay_value *v);
bool fay_operand_number(struct fay_analysis *an, const struct fay_operand *operand, unsigned width,
			struct fay_value *v);

/* ---- transfer_stack.c ---- */
bool fay_stack_pointer_check(struct fay_analysis *an);

typedef bool fay_transfer_function(struct fay_analysis *an, const struct fay_insn *insn);
/* The functions that the rows of ops.def name, and the one of each operation (transfer.c). */
#define OP(ident, name, dst, src, reads, writes, undefined, attributes, transfer, semantics, step, \
	   flow, implicit, meaning)                                                                \
	fay_transfer_function fay_transfer_##transfer;
#include "verifier/isa/ops.def"
#undef OP
extern fay_transfer_function *const fay_transfer_functions[OP_COUNT];

/* ---- transfer_partial.c ---- */
/* Whether the operation follows bytes that were not written, and some register that it reads has
 * such. */
bool fay_partial_needed(const struct fay_state *s, const struct fay_insn *insn);
bool fay_transfer_partial(struct fay_analysis *an, const struct fay_insn *insn);
/* The registers whose unwritten bytes the operation may take in. */
unsigned fay_partial_reads(const struct fay_insn *insn, uint8_t regs[3]);

/* ---- transfer_remainder.c: r, the result of an operation on numbers of `width` bits, may learn
 * its bounds ---- */
/* unsigned */
void fay_form_product_high(struct fay_analysis *an, const struct fay_value *a,
			   const struct fay_value *b, unsigned width, struct fay_value *r);
void fay_form_product(struct fay_analysis *an, const struct fay_value *a, const struct fay_value *b,
		      unsigned width, struct fay_value *r);
void fay_form_sum(struct fay_analysis *an, bool minus, const struct fay_value *a,
		  const struct fay_value *b, unsigned width, struct fay_value *r);
void fay_form_shift_up(struct fay_analysis *an, const struct fay_value *a, unsigned by,
		       unsigned width, struct fay_value *r);
/* unsigned */
void fay_form_shift_down(struct fay_analysis *an, const struct fay_value *a, unsigned by,
			 unsigned width, struct fay_value *r);
void fay_form_mask(struct fay_analysis *an, const struct fay_value *a, const struct fay_value *b,
		   unsigned width, struct fay_value *r);
void fay_form_narrow(struct fay_analysis *an, const struct fay_value *a, unsigned width,
		     struct fay_value *r);
void fay_form_address(struct fay_analysis *an, const struct fay_operand *mem, unsigned width,
		      struct fay_value *r);

/* ---- transfer_wrap.c: sum is (of + add) modulo 2^32; what a comparison tells of such a sum is
 * known of the number, too. False: impossible. ---- */
void fay_wrap_note(struct fay_analysis *an, const struct fay_value *of, uint64_t add,
		   const struct fay_value *sum);
bool fay_wrap_learn(const struct fay_analysis *an, struct fay_state *s, const struct fay_triple *t);

/* ---- transfer_jump.c ---- */
/* A number was read from read-only data; it was extended from 32 to 64 bits with its sign. */
void fay_note_table_read(struct fay_analysis *an, const struct fay_value *v,
			 const struct fay_access *access);
void fay_note_sign_extension(struct fay_analysis *an, const struct fay_value *from,
			     const struct fay_value *to);

#endif
