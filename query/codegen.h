/* SPDX-License-Identifier: MIT */
/*
 * Shared by codegen_module.c (which probes there are), codegen.c (the probe's shape: filters,
 * table, stream) and codegen_expr.c (expressions).
 */
#ifndef FAY_QUERY_CODEGEN_H
#define FAY_QUERY_CODEGEN_H

#include <llvm-c/Core.h>

#include "plan.h"

/* An expression's value: BOOL as i1, STRING as two i64 words (little endian bytes), STACK as a
 * pointer to its frames, else one i64. */
struct fay_operand_value {
	LLVMValueRef low, high;
};

struct fay_codegen {
	const struct fay_plan *plan;
	const struct fay_plan_private *p;
	const struct fay_event_filter *filter; /* which events there are; NULL: all */
	LLVMContextRef context;
	LLVMModuleRef module;
	LLVMBuilderRef builder;
	LLVMValueRef function, event, local, global;
	LLVMTypeRef i1, i8, i64, pointer;
	LLVMValueRef frames;     /* of the event's stack; NULL: not walked yet */
	LLVMValueRef row;        /* STREAM: the row on the stack */
	LLVMBasicBlockRef leave; /* `ret void` */
	/* the arguments that the call's beginning has kept; NULL: they are the event's */
	LLVMValueRef kept;
	/* the query, and its lines; NULL: nothing is called that has lines */
	LLVMMetadataRef file;
	LLVMDIBuilderRef lines;
	bool extends;                        /* functions of C are called */
	bool sketches, reads, stacks, calls; /* functions of sketches.c and so on are called */
	bool failed;                         /* this probe is of calls that end by an exception */
	struct fay_codegen_bpf *bpf;      /* the kernel's machine is generated for; NULL: x86-64 */
	struct fay_operand_value *values; /* by expression id: already generated */
};

LLVMValueRef fay_codegen_i64(const struct fay_codegen *g, uint64_t value);
/* base + offset bytes */
LLVMValueRef fay_codegen_at(const struct fay_codegen *g, LLVMValueRef base, LLVMValueRef offset);
LLVMValueRef fay_codegen_load(const struct fay_codegen *g, LLVMValueRef base, uint64_t offset);
void fay_codegen_store(const struct fay_codegen *g, LLVMValueRef base, uint64_t offset,
		       LLVMValueRef value);
LLVMValueRef fay_codegen_intrinsic(const struct fay_codegen *g, const char *name,
				   LLVMValueRef *arguments, unsigned count);
/*
 * The expression's value, generated at the builder's place unless it is there already. All places
 * lie on one chain of blocks of which each dominates the next, so an earlier value may always be
 * used.
 */
struct fay_operand_value fay_codegen_expr(struct fay_codegen *g, const struct fay_expr *expr);

/* 8 bytes of a constant string from `from` on, zero padded, as a little-endian word; *mask covers
 * those that it has. */
uint64_t fay_codegen_string_word(const struct fay_expr *string, uint32_t from, uint64_t *mask);
/* --- codegen_strings.c: StartsWith and the like; x is the value of expr->a --- */
LLVMValueRef fay_codegen_string(struct fay_codegen *g, const struct fay_expr *expr,
				struct fay_operand_value x);

/* --- codegen_extend.c --- */
/* The value of an EXPR_CALL. */
LLVMValueRef fay_codegen_function_call(struct fay_codegen *g, const struct fay_expr *expr);
/* Lines of the module's code, where functions of C are called: before the first function, at the
 * beginning of each, behind the last. */
void fay_codegen_begin_lines(struct fay_codegen *g);
void fay_codegen_place_function(struct fay_codegen *g);
void fay_codegen_end_lines(struct fay_codegen *g);

/* --- codegen_stack.c --- */
/* Walks the stack, as deep as the query asks for; a pointer to the frames. */
LLVMValueRef fay_codegen_frames(struct fay_codegen *g);
/* One word that stands for the first `count` of them. */
LLVMValueRef fay_codegen_frames_word(struct fay_codegen *g, LLVMValueRef frames, uint32_t count);

/* --- codegen_calls.c --- */
/* The whole work of the probe at a call's beginning. */
void fay_codegen_keep_call(struct fay_codegen *g);
/* At its end: finds what was kept, or leaves. */
void fay_codegen_find_call(struct fay_codegen *g);

/* A new block at the end of the function; going on there. */
LLVMBasicBlockRef fay_codegen_block(struct fay_codegen *g, const char *name);
void fay_codegen_continue(struct fay_codegen *g, LLVMBasicBlockRef block);
/* Zero-extended if it is a truth value. */
LLVMValueRef fay_codegen_word(struct fay_codegen *g, LLVMValueRef value);
/* Begins a probe's function. */
void fay_codegen_begin(struct fay_codegen *g, const char *symbol);
/* From the function's beginning to `leave`, where the caller goes on: conditions, then the state's
 * update. */
void fay_codegen_body(struct fay_codegen *g);
void fay_codegen_init(struct fay_codegen *g);

/* The part of an argument's word, or of a member's, that the access asks for. */
/* Whether a value that the kernel returned is one of its error numbers. */
LLVMValueRef fay_codegen_is_error(struct fay_codegen *g, LLVMValueRef value);
LLVMValueRef fay_codegen_extend(struct fay_codegen *g, LLVMValueRef word, struct fay_access access);

/* --- codegen_bpf.c: where the kernel's machine differs --- */
/* An event's field, argument or member. */
struct fay_operand_value fay_bpf_leaf(struct fay_codegen *g, const struct fay_expr *expr);
LLVMValueRef fay_bpf_time(struct fay_codegen *g);
/* Walks the stack: a pointer to as many frames as `expr` has. And one of its words. */
LLVMValueRef fay_bpf_frames(struct fay_codegen *g, const struct fay_expr *expr);
LLVMValueRef fay_bpf_word(struct fay_codegen *g, LLVMValueRef memory, uint32_t offset);
/* Finds the processor's state: g->local. Leaves if it is in use. */
void fay_bpf_enter(struct fay_codegen *g);
/* Room for a row in the ring, zeroed if `zeroed`. Leaves, the event counted as lost, if there is
 * none. */
LLVMValueRef fay_bpf_reserve(struct fay_codegen *g, bool zeroed);
void fay_bpf_submit(struct fay_codegen *g, LLVMValueRef row);
/* The value, which the optimiser cannot see through. */
LLVMValueRef fay_bpf_hide(struct fay_codegen *g, LLVMValueRef value);
/* Such a value, limited to `limit`: the kernel's verifier knows its bounds then. */
LLVMValueRef fay_bpf_limit(struct fay_codegen *g, LLVMValueRef value, uint64_t limit);
/* What was stored before is seen before what is stored afterwards. */
void fay_bpf_order(struct fay_codegen *g);
/* x / y or x % y, y neither 0 nor -1: the machine divides unsigned numbers only. */
LLVMValueRef fay_bpf_divide(struct fay_codegen *g, LLVMValueRef x, LLVMValueRef y, bool quotient);
/* Feeds x to a summary. */
void fay_bpf_sketch(struct fay_codegen *g, const struct fay_aggregate *aggregate,
		    LLVMValueRef column, LLVMValueRef x);
/* 32 bits of the square of x, which has 128. */
LLVMValueRef fay_bpf_square_part(struct fay_codegen *g, LLVMValueRef x, int part);

/* --- codegen_sketch.c --- */
bool fay_codegen_is_sketch(enum fay_merge merge);
/* Feeds the operand to the column at row + offset. Continues in another block. */
void fay_codegen_sketch(struct fay_codegen *g, const struct fay_aggregate *aggregate,
			LLVMValueRef row, uint32_t offset);
/* Links in the bitcode of what is called. */
int fay_codegen_link(struct fay_codegen *g, struct fay_error *error);

#endif
