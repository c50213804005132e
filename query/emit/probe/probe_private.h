/* SPDX-License-Identifier: MIT */
/* Between the files that generate a probe's code. */
#ifndef FAY_QUERY_EMIT_PROBE_PROBE_PRIVATE_H
#define FAY_QUERY_EMIT_PROBE_PROBE_PRIVATE_H

#include "probe.h"
#include "query/emit/bpf_machine/bpf_machine.h"

/*
 * The expression's value, generated at the builder's place unless it is there already. All places
 * lie on one chain of blocks of which each dominates the next, so an earlier value may always be
 * used.
 */
struct fay_operand_value fay_codegen_expr(struct fay_codegen *g, const struct fay_expr *expr);

/* 8 bytes of a constant string from `from` on, zero padded, as a little-endian word; *mask covers
 * those that it has. */
uint64_t fay_codegen_string_word(const struct fay_expr *string, uint32_t from, uint64_t *mask);
/* --- strings.c --- */
/* StartsWith and the like, == and != of strings. */
LLVMValueRef fay_codegen_string(struct fay_codegen *g, const struct fay_expr *expr);
/* The string's first 15 bytes, NUL padded. */
struct fay_operand_value fay_codegen_beginning(struct fay_codegen *g, const struct fay_expr *expr);

/* --- texts.c: strings that are read whole, by their number --- */
/* What stands for it in rows. */
struct fay_operand_value fay_codegen_text_cell(struct fay_codegen *g, unsigned number);
struct fay_operand_value fay_codegen_text_beginning(struct fay_codegen *g, unsigned number);
/* StartsWith and the like; EXPR_EQ: whether it is the constant. */
LLVMValueRef fay_codegen_text_test(struct fay_codegen *g, unsigned number, enum fay_expr_op op,
				   const struct fay_expr *constant);
/* Sends the texts that a row shows with the value of `expr`, if they are long and new. */
void fay_codegen_send_texts(struct fay_codegen *g, const struct fay_expr *expr);

/* --- extend.c --- */
/* The value of an EXPR_CALL. */
LLVMValueRef fay_codegen_function_call(struct fay_codegen *g, const struct fay_expr *expr);
/* Where the module has lines: gives the function its own. */
void fay_codegen_place_function(struct fay_codegen *g);

/* --- stack.c --- */
/* Walks the stack, as deep as the query asks for; a pointer to the frames. */
LLVMValueRef fay_codegen_frames(struct fay_codegen *g);
/* One word that stands for the first `count` of them. */
LLVMValueRef fay_codegen_frames_word(struct fay_codegen *g, LLVMValueRef frames, uint32_t count);

/* --- sketch.c --- */
bool fay_codegen_is_sketch(enum fay_merge merge);
/* Feeds the operand to the column at row + offset. Continues in another block. */
void fay_codegen_sketch(struct fay_codegen *g, const struct fay_aggregate *aggregate,
			LLVMValueRef row, uint32_t offset);

#endif
