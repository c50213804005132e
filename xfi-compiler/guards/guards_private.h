/* SPDX-License-Identifier: MIT */
/* Between the files that guard. */
#ifndef FAY_COMPILER_GUARDS_GUARDS_PRIVATE_H
#define FAY_COMPILER_GUARDS_GUARDS_PRIVATE_H

#include "guards.h"

void fay_set_metadata(LLVMContextRef context, LLVMValueRef i, const char *kind,
		      LLVMMetadataRef *operands, size_t count);
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

/* --- the accesses of one function, from accesses.c to guard.c --- */

struct fay_access {
	LLVMValueRef at;
	unsigned operand, block; /* block: index into the flow's */
	uint64_t size;           /* bytes */
	struct fay_address address;
	struct fay_extent extent;
};

/* A guarded value that later accesses may use. */
struct fay_known {
	LLVMValueRef value;
	LLVMBasicBlockRef block;
	uint64_t last;
	unsigned terms;
	/* one term: the index itself; more: their scaled sum */
	struct fay_term term[FAY_TERMS_MAX];
	int64_t shift;
};

struct fay_guards {
	struct fay_unit *unit;
	LLVMBuilderRef b;
	struct fay_flow *flow;
	struct fay_access *access;
	size_t access_count, access_room;
	struct fay_known *known;
	size_t known_count, known_room;
	struct fay_apart apart;
};

/* Takes down the access that instruction i of block number `block` makes, if it makes one with a
 * variable place; nonzero: refused. */
int fay_take_access(struct fay_guards *p, unsigned block, LLVMValueRef i);
/* The bytes [start, end) of its object are all that the access can reach. */
void fay_note_reach(struct fay_guards *p, const struct fay_access *a, uint64_t start, uint64_t end);
/* The array with room for one more element of `size` bytes. */
void *fay_grow(void *array, size_t count, size_t *room, size_t size);

#endif
