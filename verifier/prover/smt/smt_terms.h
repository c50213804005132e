/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the solver's side share: a query in the making, and short names for terms.
 * smt_insn.c says what an instruction does to the terms, smt_memory.c what its operands are,
 * smt_state.c what an invariant says of them, smt_query.c walks the graph and states the goal,
 * smt.c asks.
 */
#ifndef FAY_VERIFIER_SMT_TERMS_H
#define FAY_VERIFIER_SMT_TERMS_H

#include <stdio.h>
#include <z3.h>

#include "smt.h"
#include "verifier/isa/isa.h"

#define FAY_SMT_MAX_UNKNOWNS (1u << 18)    /* of one query: Z3 keeps about 2 KiB for each */
#define FAY_SMT_MAX_TABLE_TERMS (1u << 18) /* entries of read-only tables spelt out in one query */

#define FAY_RANKED 8u /* locations that a loop's bound is looked for in */

#define FAY_SMT_MODELS 24u /* of one query that are kept */
#define FAY_SMT_EVENT_WORDS (sizeof(struct fay_event) / 8)
_Static_assert(sizeof(struct fay_event) % 8 == 0, "the event is whole words");

enum { CF, ZF, SF, OF, PF, FLAGS };

struct sym {
	Z3_ast condition; /* this node is reached; NULL not yet */
	Z3_ast reg[16];
	Z3_ast flag[FLAGS];
	uint32_t slots; /* 4-byte stack slots */
	Z3_ast *slot;
};

struct query {
	struct fay_analysis *an;
	const struct fay_obligation *o;
	Z3_context z;
	Z3_solver solver;
	uint32_t cut, target;
	/* loop bounds: what comes around to the cut, and there is no obligation; else NULL */
	struct sym *again;
	uint32_t ranked[FAY_RANKED], ranked_count; /* locations, and their terms at the cut */
	Z3_ast ranked_terms[FAY_RANKED];
	/* loop bounds: rounds of the loop that refuted a claim, and refute others */
	Z3_model models[FAY_SMT_MODELS];
	unsigned model_count;
	unsigned ms;     /* limit in time */
	unsigned work;   /* limit in Z3's measure; 0: RLIMIT */
	uint32_t *nodes; /* of the region, ascending */
	uint32_t node_count;
	uint32_t *position; /* node -> 1 + index in nodes, for cut..target */
	struct sym *entry;  /* per node of the region */
	struct sym now;
	Z3_ast now_slots[FAY_STACK_HARD / 4];
	Z3_ast event[FAY_SMT_EVENT_WORDS];
	Z3_ast start[16]; /* registers at the cut */
	Z3_ast *facts;
	unsigned fact_count, fact_capacity;
	unsigned fresh_count, table_terms;
	bool inner_cut, failed;
	bool exact; /* tests: also what is too costly to be asked */
	/* of one block, written out only: nothing may rest on the abstract transfer functions */
	bool local;
	Z3_ast record[3]; /* what LOC_FLAGS_A, B, R of a state stand for; NULL not followed */
	/* the operand whose load `loaded` is: read twice by one instruction, it is one read */
	const struct fay_operand *loaded_mem;
	Z3_ast loaded, stored; /* stored: the last value written to memory */
	struct {
		uint32_t node, insn;
		unsigned size;
		Z3_ast var;
	} loads[FAY_MODEL_LOADS];
	unsigned load_count;
};

static inline Z3_ast bits(struct query *q, uint64_t value, unsigned width)
{
	return Z3_mk_unsigned_int64(q->z,
				    width >= 64 ? value : value & (((uint64_t)1 << width) - 1),
				    Z3_mk_bv_sort(q->z, width));
}

static inline Z3_ast fresh_bits(struct query *q, unsigned width)
{
	char name[24];

	snprintf(name, sizeof(name), "u%u", q->fresh_count++);
	return Z3_mk_const(q->z, Z3_mk_string_symbol(q->z, name), Z3_mk_bv_sort(q->z, width));
}

static inline Z3_ast fresh_bool(struct query *q)
{
	char name[24];

	snprintf(name, sizeof(name), "b%u", q->fresh_count++);
	return Z3_mk_const(q->z, Z3_mk_string_symbol(q->z, name), Z3_mk_bool_sort(q->z));
}

static inline Z3_ast both(struct query *q, Z3_ast a, Z3_ast b)
{
	Z3_ast args[2] = { a, b };

	return Z3_mk_and(q->z, 2, args);
}

static inline Z3_ast either(struct query *q, Z3_ast a, Z3_ast b)
{
	Z3_ast args[2] = { a, b };

	return Z3_mk_or(q->z, 2, args);
}

static inline Z3_ast negate(struct query *q, Z3_ast a)
{
	return Z3_mk_not(q->z, a);
}
static inline Z3_ast low_bits(struct query *q, Z3_ast a, unsigned width)
{
	return width >= 64 ? a : Z3_mk_extract(q->z, width - 1, 0, a);
}
static inline Z3_ast zero_extend(struct query *q, Z3_ast a, unsigned from, unsigned to)
{
	return from >= to ? a : Z3_mk_zero_ext(q->z, to - from, a);
}
static inline Z3_ast sign_extend(struct query *q, Z3_ast a, unsigned from, unsigned to)
{
	return from >= to ? a : Z3_mk_sign_ext(q->z, to - from, a);
}
static inline Z3_ast top_bit(struct query *q, Z3_ast a, unsigned width)
{
	return Z3_mk_eq(q->z, Z3_mk_extract(q->z, width - 1, width - 1, a), bits(q, 1, 1));
}

/* ---- smt.c ---- */

struct query *fay_smt_query_create(struct fay_analysis *an);
void fay_smt_query_destroy(struct query *q);
/* PROVED: Z3 shows, within the limits, that the facts cannot all hold. */
enum fay_answer fay_smt_facts_contradict(struct query *q);
/* Whether the claim is false in one of the models that are kept: it need not be asked. */
bool fay_smt_model_denies(struct query *q, Z3_ast claim);

/* ---- smt_query.c ---- */

Z3_ast fay_smt_goal(struct query *q, const struct fay_obligation *o, const struct fay_insn *insn);
/* Where a question about `target` begins: the head of the innermost loop around it, or the entry.
 * */
uint32_t fay_smt_cut(const struct fay_analysis *an, uint32_t target);
/* A node from which on all ways from `cut` lead to `target`, few instructions before it: its
 * invariant mostly suffices, and the question is small. Else `cut`. */
uint32_t fay_smt_near_cut(const struct fay_analysis *an, uint32_t target, uint32_t cut);
/* All nodes on acyclic ways from the cut to the target. False: too many, or out of memory. */
bool fay_smt_find_region(struct query *q);
/* All nodes of the loop of the cut. False likewise. */
bool fay_smt_find_loop(struct query *q);
/* The facts of the query, the negated goal among them. */
bool fay_smt_build(struct query *q);
void fay_smt_assume(struct query *q, Z3_ast fact);

/* ---- smt_state.c ---- */

/* Location i of a state as a 64-bit term; NULL if it holds no number. */
Z3_ast fay_smt_location(struct query *q, const struct fay_state *s, uint32_t i);
/* What s says of numbers, assumed of the terms as they are. */
void fay_smt_assume_state(struct query *q, const struct fay_state *s);
/* Registers, flags and slots of q->now become unknowns of which the state is assumed. */
void fay_smt_fresh_state(struct query *q, const struct fay_state *s);
/* After an instruction: what the abstract state knows, and where terms would say too much. */
void fay_smt_after(struct query *q, const struct fay_insn *insn);
/* The stack pointer and the depth are the abstract state's. */
void fay_smt_set_depth(struct query *q, uint32_t slots);

/* ---- smt_memory.c ---- */

Z3_ast fay_smt_stack_load(struct query *q, int64_t offset, unsigned size);
/* Bytes of [low, high) become unknown. */
void fay_smt_stack_forget(struct query *q, int64_t low, int64_t high);
void fay_smt_stack_store(struct query *q, int64_t offset, unsigned size, Z3_ast value);
/* Bytes from low up to below high are unknown. */
void fay_smt_stack_forget(struct query *q, int64_t low, int64_t high);
/* The offset in its region of a memory operand's first byte. */
Z3_ast fay_smt_address(struct query *q, const struct fay_operand *mem);
Z3_ast fay_smt_read(struct query *q, const struct fay_operand *operand, unsigned width);
void fay_smt_write_reg(struct query *q, unsigned reg, unsigned width, Z3_ast value);
void fay_smt_write(struct query *q, const struct fay_operand *operand, unsigned width,
		   Z3_ast value);

/* The `size` bytes at mem, on the stack, become unknowns. */
void fay_smt_store_unknown(struct query *q, const struct fay_operand *mem, unsigned size);

/* ---- smt_insn.c ---- */

/* A term of the semantics as Z3's, and an operation on such terms. */
Z3_ast fay_smt_lower(struct query *q, struct fay_term t);
struct fay_term fay_smt_build_term(struct query *q, enum fay_term_op op,
				   const struct fay_term *args, unsigned count, unsigned width,
				   unsigned low);

/* What one instruction does to q->now. */
void fay_smt_step(struct query *q, const struct fay_insn *insn);
Z3_ast fay_smt_condition(struct query *q, enum fay_cc cc);
void fay_smt_forget_flags(struct query *q);

#endif
