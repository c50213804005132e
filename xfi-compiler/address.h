/* SPDX-License-Identifier: MIT */
/* Where an access goes: a known object, a constant, and scaled indices. For the passes that deal in
 * addresses. */
#ifndef FAY_COMPILER_ADDRESS_H
#define FAY_COMPILER_ADDRESS_H

#include "unit.h"

#define FAY_TERMS_MAX 8

/* base + constant + scale * index + ... */
struct fay_address {
	LLVMValueRef base;
	int64_t constant;
	unsigned terms;
	struct fay_term {
		LLVMValueRef index;
		int64_t scale;
		/* elements of the array that it indexes by its type; 0: not known */
		uint64_t limit;
		/* bytes from the start of that element to the address, without what other indices
		 * add */
		uint64_t beyond;
	} term[FAY_TERMS_MAX];
};

/* Traces a pointer to its base. false: not of the form. */
bool fay_trace(struct fay_unit *unit, LLVMValueRef pointer, struct fay_address *address);

struct fay_extent {
	uint64_t size;
	bool writable;
	const char *what;
};
/* false: not an object that a probe may touch. */
bool fay_extent_of(struct fay_unit *unit, LLVMValueRef base, struct fay_extent *extent);
/* The state object that a base is, or NULL. */
const struct fay_object *fay_object_of(struct fay_unit *unit, LLVMValueRef base);

bool fay_is_gep(LLVMValueRef v);
LLVMValueRef fay_widen(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef index);
/* constant + the terms, as i64. */
LLVMValueRef fay_sum_terms(struct fay_unit *unit, LLVMBuilderRef b,
			   const struct fay_address *address);

/* phi or select */
bool fay_is_merge(LLVMValueRef v);
/* All bases that a pointer can come from, and the webs of phi and select on the way. */
struct fay_roots {
	LLVMValueRef base; /* the one that they have in common */
	bool unknown, null;
	unsigned seen_count;
	LLVMValueRef seen[256];
};
void fay_find_roots(struct fay_unit *unit, LLVMValueRef function, LLVMValueRef pointer,
		    struct fay_roots *roots);

/* 0, or -1 where a phi could not be rewritten. */
int fay_convert_pointers(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef function);
void fay_split_loads_in(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef function);

/* Dominators and loop depth of one function's blocks, as they are when it is created; blocks in
 * reverse postorder. */
struct fay_flow {
	unsigned count;
	LLVMBasicBlockRef *blocks;
	unsigned *idom, *depth; /* indices into blocks */
};
/* NULL: out of memory. Blocks that cannot be reached are left out. */
struct fay_flow *fay_flow_create(LLVMValueRef function);
void fay_flow_destroy(struct fay_flow *flow);
/* Index of a block; flow->count if it cannot be reached. */
unsigned fay_flow_index(const struct fay_flow *flow, LLVMBasicBlockRef block);
bool fay_flow_dominates(const struct fay_flow *flow, LLVMBasicBlockRef over,
			LLVMBasicBlockRef block);

/* A loop's counter: phi = [start, entry], [next = phi + step, latch]. */
struct fay_counter {
	LLVMValueRef next, start;
	LLVMBasicBlockRef latch, entry;
	int64_t step;
};
bool fay_counter_of(LLVMValueRef phi, struct fay_counter *counter);
/* The condition, about phi or next, under which block `test` goes on with the loop. */
bool fay_counter_test(LLVMValueRef phi, const struct fay_counter *counter, LLVMBasicBlockRef test,
		      struct fay_compare *compare);
/* The rounds of a loop of one block whose counter starts at 0 and goes up by 1 to a constant; 0:
 * another loop, or another way out. */
uint64_t fay_exact_rounds(LLVMValueRef phi, const struct fay_counter *counter);
/* How many low bits of v are certainly 0. */
unsigned fay_zero_bits(LLVMValueRef v);
/* v, an i64 with `zeros` low bits 0, as one within [0, last], the same if it is there already.
 * `at`: the access that it is for. */
LLVMValueRef fay_build_bound(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef at,
			     LLVMValueRef v, uint64_t last, unsigned zeros, bool in_loop);
void fay_make_unsigned(LLVMBuilderRef b, LLVMValueRef function);

/* The bytes that each load and store of a function can reach; the optimiser then knows which of
 * them never meet (apart.c). */
struct fay_apart {
	struct fay_touch {
		LLVMValueRef at, base;
		uint64_t start, end; /* bytes of the object */
		unsigned object, group;
	} *touch;
	size_t count, room;
};
void fay_apart_add(struct fay_apart *apart, LLVMValueRef at, LLVMValueRef base, uint64_t start,
		   uint64_t end);
/* Tells the optimiser; empties the list. */
void fay_apart_mark(struct fay_unit *unit, struct fay_apart *apart);
void fay_apart_deinit(struct fay_apart *apart);
void fay_shorten_loops(struct fay_unit *unit, LLVMBuilderRef b, const struct fay_flow *flow);

#endif
