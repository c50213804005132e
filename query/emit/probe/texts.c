/* SPDX-License-Identifier: MIT */
/*
 * Strings that are read whole: calls of the functions in query/runtime/texts.c, of BPF programs in
 * texts_bpf.c, which keep each in a buffer of the probe's own behind the state. A string is read
 * once an event, where the first question about it is asked.
 */
#include "probe_private.h"

#define LENGTH offsetof(struct fay_text_buffer, length)
#define CELL offsetof(struct fay_text_buffer, cell)
#define WORDS offsetof(struct fay_text_buffer, words)

static LLVMValueRef in_local(struct fay_codegen *g, uint64_t offset)
{
	return fay_codegen_at(g, g->local, fay_codegen_i64(g, offset));
}

/* Its buffer, with the string. */
static LLVMValueRef buffer_of(struct fay_codegen *g, unsigned number)
{
	struct fay_codegen_text *text = &g->texts[number];
	const struct fay_expr *expr = g->p->texts[number].expr;
	struct fay_access access = fay_access_unpack(expr->value);
	if (text->buffer)
		return text->buffer;
	LLVMValueRef address = LLVMBuildAdd(g->builder, fay_codegen_expr(g, expr->a).low,
					    fay_codegen_i64(g, access.offset), "");
	text->buffer = in_local(g, g->p->texts_at + sizeof(struct fay_text_scratch) +
					   number * sizeof(struct fay_text_buffer));
	LLVMValueRef arguments[] = { text->buffer, address,
				     fay_codegen_i64(g, access.limit ? access.limit : UINT64_MAX) };
	/* a BPF program may be asked for either's memory */
	bool user = g->bpf && (access.user || g->bpf->trap);
	fay_codegen_call(g, user ? "fay_query_text_read_user" : "fay_query_text_read",
			 LLVMVoidTypeInContext(g->context), arguments, 3);
	g->texts_read = true;
	return text->buffer;
}

struct fay_operand_value fay_codegen_text_cell(struct fay_codegen *g, unsigned number)
{
	LLVMValueRef buffer = buffer_of(g, number);
	LLVMValueRef arguments[] = { buffer, fay_codegen_i64(g, g->plan->text_key.words[0]),
				     fay_codegen_i64(g, g->plan->text_key.words[1]) };
	fay_codegen_call(g, "fay_query_text_cell", LLVMVoidTypeInContext(g->context), arguments, 3);
	return (struct fay_operand_value){ fay_codegen_load(g, buffer, CELL),
					   fay_codegen_load(g, buffer, CELL + 8) };
}

struct fay_operand_value fay_codegen_text_beginning(struct fay_codegen *g, unsigned number)
{
	LLVMValueRef buffer = buffer_of(g, number), high = fay_codegen_load(g, buffer, WORDS + 8);
	return (struct fay_operand_value){ fay_codegen_load(g, buffer, WORDS),
					   LLVMBuildAnd(g->builder, high,
							fay_codegen_i64(g, UINT64_MAX >> 8), "") };
}

/* --- comparisons --- */

/* 0 if the constant's bytes lie in the text from `place` on, else some bits. */
static LLVMValueRef differences(struct fay_codegen *g, LLVMValueRef buffer, LLVMValueRef place,
				const struct fay_expr *constant)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef all = fay_codegen_i64(g, 0);
	for (uint32_t from = 0; from < constant->length; from += 8) {
		uint64_t mask, word = fay_codegen_string_word(constant, from, &mask);
		LLVMValueRef arguments[] = { buffer,
					     LLVMBuildAdd(b, place, fay_codegen_i64(g, from), "") };
		LLVMValueRef is = fay_codegen_call(g, "fay_query_text_word", g->i64, arguments, 2);
		LLVMValueRef differs =
			LLVMBuildAnd(b, LLVMBuildXor(b, is, fay_codegen_i64(g, word), ""),
				     fay_codegen_i64(g, mask), "");
		all = LLVMBuildOr(b, all, differs, "");
	}
	return all;
}

static LLVMValueRef is_zero(struct fay_codegen *g, LLVMValueRef word)
{
	return LLVMBuildICmp(g->builder, LLVMIntEQ, word, fay_codegen_i64(g, 0), "");
}

/*
 *	for (place = 0; place < FAY_TEXT_MAX; place++) {
 *		if (place + size > length)
 *			return false;
 *		if (what lies there is the constant)
 *			return true;
 *	}
 *	return false;
 */
static LLVMValueRef contains(struct fay_codegen *g, LLVMValueRef buffer, LLVMValueRef length,
			     const struct fay_expr *constant)
{
	LLVMBuilderRef b = g->builder;
	LLVMBasicBlockRef before = LLVMGetInsertBlock(b), head = fay_codegen_block(g, "place"),
			  inside = fay_codegen_block(g, "inside"),
			  look = fay_codegen_block(g, "look"), end = fay_codegen_block(g, "found");
	LLVMValueRef one = fay_codegen_i64(g, 1), size = fay_codegen_i64(g, constant->length),
		     most = fay_codegen_i64(g, FAY_TEXT_MAX);
	LLVMBuildBr(b, head);
	fay_codegen_continue(g, head);
	LLVMValueRef place = LLVMBuildPhi(b, g->i64, "");
	LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULT, place, most, ""), inside, end);
	fay_codegen_continue(g, inside);
	LLVMValueRef until = LLVMBuildAdd(b, place, size, "");
	LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULE, until, length, ""), look, end);
	fay_codegen_continue(g, look);
	LLVMValueRef found = is_zero(g, differences(g, buffer, place, constant));
	LLVMValueRef places[] = { fay_codegen_i64(g, 0), LLVMBuildAdd(b, place, one, "") };
	LLVMBasicBlockRef after = LLVMGetInsertBlock(b), from[] = { before, after };
	LLVMBuildCondBr(b, found, end, head);
	LLVMAddIncoming(place, places, from, 2);
	fay_codegen_continue(g, end);
	LLVMValueRef result = LLVMBuildPhi(b, g->i1, "contains"), no = LLVMConstInt(g->i1, 0, 0);
	LLVMValueRef results[] = { no, no, LLVMConstInt(g->i1, 1, 0) };
	LLVMBasicBlockRef ends[] = { head, inside, after };
	LLVMAddIncoming(result, results, ends, 3);
	return result;
}

/*
 * The same in a BPF program, whose verifier goes through every round and remembers each branch that
 * it has not taken: one a round is few enough.
 */
static LLVMValueRef contains_in_kernel(struct fay_codegen *g, LLVMValueRef buffer,
				       LLVMValueRef length, const struct fay_expr *constant)
{
	LLVMBuilderRef b = g->builder;
	LLVMBasicBlockRef before, head = fay_codegen_block(g, "place"),
				  look = fay_codegen_block(g, "look"),
				  end = fay_codegen_block(g, "found");
	LLVMValueRef zero = fay_codegen_i64(g, 0), size = fay_codegen_i64(g, constant->length - 1);
	LLVMValueRef last = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntUGT, length, size, ""),
					    LLVMBuildSub(b, length, size, ""), zero, "");
	last = fay_bpf_limit(g, last, FAY_TEXT_MAX);
	before = LLVMGetInsertBlock(b);
	LLVMBuildBr(b, head);
	fay_codegen_continue(g, head);
	LLVMValueRef place = LLVMBuildPhi(b, g->i64, ""), so_far = LLVMBuildPhi(b, g->i64, "");
	LLVMValueRef hidden = fay_bpf_hide(g, place);
	LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULT, hidden, last, ""), look, end);
	fay_codegen_continue(g, look);
	LLVMValueRef differs = differences(g, buffer, hidden, constant);
	/* the highest bit: it is 0 */
	LLVMValueRef is =
		LLVMBuildNot(b, LLVMBuildOr(b, differs, LLVMBuildNeg(b, differs, ""), ""), "");
	LLVMValueRef found = fay_bpf_hide(g, LLVMBuildOr(b, so_far, is, ""));
	LLVMValueRef places[] = { zero, LLVMBuildAdd(b, hidden, fay_codegen_i64(g, 1), "") },
		     founds[] = { zero, found };
	LLVMBasicBlockRef after = LLVMGetInsertBlock(b), from[] = { before, after };
	LLVMBuildBr(b, head);
	LLVMAddIncoming(place, places, from, 2);
	LLVMAddIncoming(so_far, founds, from, 2);
	fay_codegen_continue(g, end);
	return LLVMBuildICmp(b, LLVMIntSLT, so_far, zero, "contains");
}

LLVMValueRef fay_codegen_text_test(struct fay_codegen *g, unsigned number, enum fay_expr_op op,
				   const struct fay_expr *constant)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef buffer = buffer_of(g, number), length = fay_codegen_load(g, buffer, LENGTH);
	if (op == EXPR_LENGTH)
		return length;
	if (op == EXPR_CONTAINS)
		return g->bpf ? contains_in_kernel(g, buffer, length, constant)
			      : contains(g, buffer, length, constant);
	LLVMValueRef size = fay_codegen_i64(g, constant->length),
		     place = op == EXPR_ENDS_WITH ? LLVMBuildSub(b, length, size, "")
						  : fay_codegen_i64(g, 0);
	LLVMValueRef fits =
		LLVMBuildICmp(b, op == EXPR_EQ ? LLVMIntEQ : LLVMIntUGE, length, size, "");
	return LLVMBuildAnd(b, fits, is_zero(g, differences(g, buffer, place, constant)), "");
}

/* --- sending --- */

/* uint64_t fay_query_emit_text(void *local, const void *row); in BPF programs (const void *record,
 * uint64_t size). Where no row shows a text, nothing
 * calls it, and the image has no state for it. */
void fay_codegen_text_emitter(struct fay_codegen *g)
{
	if (!g->p->text_count || LLVMGetNamedFunction(g->module, "fay_query_emit_text"))
		return;
	LLVMTypeRef parameters[] = { g->pointer, g->bpf ? g->i64 : g->pointer },
		    type = LLVMFunctionType(g->i64, parameters, 2, 0);
	LLVMValueRef function = LLVMAddFunction(g->module, "fay_query_emit_text", type);
	LLVMPositionBuilderAtEnd(g->builder,
				 LLVMAppendBasicBlockInContext(g->context, function, ""));
	LLVMValueRef sent = fay_codegen_i64(g, 1), first = LLVMGetParam(function, 0),
		     second = LLVMGetParam(function, 1);
	LLVMValueRef arguments[] = { first, fay_codegen_i64(g, g->plan->text_state), second };
	if (g->plan->texts && g->bpf)
		sent = fay_bpf_send(g, first, second);
	else if (g->plan->texts)
		sent = fay_codegen_call(g, "fay_emit", g->i64, arguments, 3);
	LLVMBuildRet(g->builder, sent);
}

static void send(struct fay_codegen *g, unsigned number, const struct fay_expr *expr)
{
	struct fay_operand_value cell = fay_codegen_expr(g, expr);
	LLVMValueRef arguments[] = { g->local, in_local(g, g->p->texts_at), buffer_of(g, number),
				     cell.low, cell.high };
	if (g->texts[number].sent)
		return;
	fay_codegen_call(g, "fay_query_text_send", LLVMVoidTypeInContext(g->context), arguments, 5);
	g->texts[number].sent = true;
}

/* Depth is bounded by FAY_QUERY_MAX_DEPTH. */
void fay_codegen_send_texts(struct fay_codegen *g, const struct fay_expr *expr)
{
	int number = fay_plan_text_number(g->p, expr);
	if (number >= 0)
		send(g, (unsigned)number, expr);
	if (expr->op == EXPR_KEY)
		fay_codegen_send_texts(g, expr->a);
	if (expr->op == EXPR_COND && expr->type == TYPE_STRING) {
		fay_codegen_send_texts(g, expr->b);
		fay_codegen_send_texts(g, expr->c);
	}
}
