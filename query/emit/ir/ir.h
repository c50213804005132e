/* SPDX-License-Identifier: MIT */
/*
 * What all code that is generated of a plan is made of: the module under construction and its
 * building blocks. Values are words of 64 bits; memory is base + offset.
 */
#ifndef FAY_QUERY_EMIT_IR_IR_H
#define FAY_QUERY_EMIT_IR_IR_H

#include <llvm-c/Core.h>

#include "query/plan/plan.h"

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
	/* the query, and its lines; NULL: nothing is called that has lines */
	LLVMMetadataRef file;
	LLVMDIBuilderRef lines;
	bool extends;                                       /* functions of C are called */
	bool sketches, reads, computes, stacks, texts_read; /* functions of query/runtime/ */
	/* strings that are read whole, by number */
	struct fay_codegen_text {
		LLVMValueRef buffer; /* NULL: not read yet */
		bool sent;
	} texts[FAY_PLAN_TEXTS];
	bool failed;                      /* this probe is of calls that end by an exception */
	bool inlined;                     /* likewise, of inlined copies */
	struct fay_codegen_bpf *bpf;      /* the kernel's machine is generated for; NULL: x86-64 */
	struct fay_operand_value *values; /* by expression id: already generated */
};

void fay_codegen_init(struct fay_codegen *g);
LLVMValueRef fay_codegen_i64(const struct fay_codegen *g, uint64_t value);
/* base + offset bytes */
LLVMValueRef fay_codegen_at(const struct fay_codegen *g, LLVMValueRef base, LLVMValueRef offset);
LLVMValueRef fay_codegen_load(const struct fay_codegen *g, LLVMValueRef base, uint64_t offset);
void fay_codegen_store(const struct fay_codegen *g, LLVMValueRef base, uint64_t offset,
		       LLVMValueRef value);
LLVMValueRef fay_codegen_intrinsic(const struct fay_codegen *g, const char *name,
				   LLVMValueRef *arguments, unsigned count);
/* Calls a function that is linked in later; what it takes has the arguments' types. */
LLVMValueRef fay_codegen_call(struct fay_codegen *g, const char *name, LLVMTypeRef result,
			      LLVMValueRef *arguments, unsigned count);
/* Links code in that was compiled when Fay was built: from one address to the other. */
int fay_codegen_link_bitcode(struct fay_codegen *g, const char *bytes, const char *end,
			     struct fay_error *error);
/* A new block at the end of the function; going on there. */
LLVMBasicBlockRef fay_codegen_block(struct fay_codegen *g, const char *name);
void fay_codegen_continue(struct fay_codegen *g, LLVMBasicBlockRef block);
/* Of a conditional branch: its first way is the usual one. */
void fay_codegen_likely(struct fay_codegen *g, LLVMValueRef branch);
/* ir/bucket.c: the bucket that x falls into, of a histogram by powers of two, and of quantiles. */
LLVMValueRef fay_codegen_log2_bucket(struct fay_codegen *g, LLVMValueRef x);
LLVMValueRef fay_codegen_quantile_bucket(struct fay_codegen *g, LLVMValueRef x);
/* floor(log2(x)); 0 for x = 0. */
LLVMValueRef fay_codegen_log2(struct fay_codegen *g, LLVMValueRef x);
/* Zero-extended if it is a truth value. */
LLVMValueRef fay_codegen_word(struct fay_codegen *g, LLVMValueRef value);
/* Whether a value that the kernel returned is one of its error numbers. */
LLVMValueRef fay_codegen_is_error(struct fay_codegen *g, LLVMValueRef value);
/* The part of an argument's word, or of a member's, that the access asks for. */
LLVMValueRef fay_codegen_extend(struct fay_codegen *g, LLVMValueRef word, struct fay_access access);

#endif
