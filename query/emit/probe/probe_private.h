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
/* --- body.c --- */
/* Goes on at the beginning of a function whose first arguments are a probe's: nothing is computed
 * yet. Instead of GLOBAL there may be a number, and g->global is NULL. */
void fay_codegen_enter(struct fay_codegen *g, LLVMValueRef function);
/* Calls a helper of the state; row: NULL if it takes none. */
LLVMValueRef fay_codegen_helper(struct fay_codegen *g, const char *name, LLVMValueRef row);
/* The values of a row take the event in. May continue in another block. */
void fay_codegen_update(struct fay_codegen *g, LLVMValueRef row);
/* The key columns' words with their offsets in the row; a STRING has two, a STACK as many as it has
 * frames. */
struct fay_key_words {
	unsigned count;
	struct {
		/* NULL: it lies `from` bytes behind `memory`, and is loaded where it is needed: a
		 * BPF program has no room to keep it twice */
		LLVMValueRef value;
		LLVMValueRef memory;
		uint32_t from, offset;
	} words[FAY_ROW_MAX_BYTES / 8];
};
void fay_codegen_keys(struct fay_codegen *g, struct fay_key_words *keys);
LLVMValueRef fay_codegen_key(struct fay_codegen *g, const struct fay_key_words *keys, unsigned i);
void fay_codegen_store_keys(struct fay_codegen *g, LLVMValueRef row,
			    const struct fay_key_words *keys);

/* --- table.c --- */
/* Finds the row of the event's keys, or makes it, and updates it. */
void fay_codegen_table(struct fay_codegen *g);

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

/* --- compute.c --- */
/* The value of the program that arguments are, or whether it has one. */
struct fay_operand_value fay_codegen_computed(struct fay_codegen *g, struct fay_access access);

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
