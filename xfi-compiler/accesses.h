/* SPDX-License-Identifier: MIT */
/* The accesses of one function, from accesses.c to guard.c. */
#ifndef FAY_COMPILER_ACCESSES_H
#define FAY_COMPILER_ACCESSES_H

#include "address.h"

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
