/* SPDX-License-Identifier: MIT */
/*
 * The probe stage as LLVM IR: void probe0(ptr event, ptr local, ptr global); where the query looks
 * at `Failed`, probe1 does the same for calls that end by an exception.
 *
 *   filters     each leaves the probe early
 *   CELL        updates the values in place
 *   TABLE       table.c
 *   STREAM      builds the row on the stack and hands it to fay_emit()
 */
#include "probe_private.h"

#include <string.h>

static void add_attribute(struct fay_codegen *g, LLVMValueRef function, unsigned index,
			  const char *name)
{
	unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
	LLVMAddAttributeAtIndex(function, index, LLVMCreateEnumAttribute(g->context, kind, 0));
}

void fay_codegen_enter(struct fay_codegen *g, LLVMValueRef function)
{
	memset(g->values, 0, (g->p->checked.exprs.count + 1) * sizeof(*g->values));
	g->function = function;
	g->event = LLVMGetParam(function, 0);
	g->local = LLVMGetParam(function, 1);
	g->global = LLVMGetParam(function, 2);
	if (LLVMTypeOf(g->global) != g->pointer)
		g->global = NULL;
	add_attribute(g, function, LLVMAttributeFunctionIndex, "nounwind");
	add_attribute(g, function, 1, "noalias");
	add_attribute(g, function, 1, "readonly");
	fay_codegen_continue(g, fay_codegen_block(g, "entry"));
	g->leave = fay_codegen_block(g, "leave");
}

void fay_codegen_begin(struct fay_codegen *g, const char *symbol)
{
	LLVMTypeRef parameters[] = { g->pointer, g->pointer, g->pointer };
	LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(g->context), parameters, 3, 0);
	fay_codegen_enter(g, LLVMAddFunction(g->module, symbol, type));
	fay_codegen_place_function(g);
	if (g->p->kind == FAY_STATE_STREAM) /* in the entry block: a fixed place in the frame */
		g->row = LLVMBuildAlloca(g->builder, LLVMArrayType2(g->i64, g->p->row_size / 8),
					 "row");
}

LLVMValueRef fay_codegen_helper(struct fay_codegen *g, const char *name, LLVMValueRef row)
{
	LLVMValueRef arguments[] = { g->local, fay_codegen_i64(g, g->p->state_index), row };
	LLVMValueRef call = fay_codegen_call(g, name, g->i64, arguments, row ? 3 : 2);
	add_attribute(g, LLVMGetCalledValue(call), LLVMAttributeFunctionIndex, "nounwind");
	return call;
}

static void generate_filters(struct fay_codegen *g)
{
	for (struct fay_filter *f = g->p->checked.filters; f; f = f->next) {
		LLVMValueRef passes = fay_codegen_expr(g, f->expr).low;
		LLVMBasicBlockRef next = fay_codegen_block(g, "passed");
		LLVMBuildCondBr(g->builder, passes, next, g->leave);
		fay_codegen_continue(g, next);
	}
}

/* --- values --- */

static void add_to(struct fay_codegen *g, LLVMValueRef row, uint64_t offset, LLVMValueRef value)
{
	LLVMValueRef old = fay_codegen_load(g, row, offset);
	fay_codegen_store(g, row, offset, LLVMBuildAdd(g->builder, old, value, ""));
}

/* x ^ bias, complemented for a minimum: both operators are then an unsigned maximum (fay/image.h).
 * */
static LLVMValueRef extreme(struct fay_codegen *g, const struct fay_aggregate *aggregate,
			    LLVMValueRef x)
{
	uint64_t flip = aggregate->type == TYPE_TIME ? 0 : (uint64_t)1 << 63;
	if (aggregate->merge == FAY_MERGE_MIN)
		flip = ~flip;
	return LLVMBuildXor(g->builder, x, fay_codegen_i64(g, flip), "");
}

static LLVMValueRef log2_bucket(struct fay_codegen *g, LLVMValueRef x)
{
	LLVMValueRef bucket = fay_codegen_log2_bucket(g, x);
	return g->bpf ? fay_bpf_limit(g, bucket, FAY_HIST_LOG2_BUCKETS - 1) : bucket;
}

static void update_value(struct fay_codegen *g, LLVMValueRef row,
			 const struct fay_layout_column *column)
{
	LLVMBuilderRef b = g->builder;
	const struct fay_aggregate *aggregate = column->expr->aggregate;
	LLVMValueRef one = fay_codegen_i64(g, 1), x = one;
	if (fay_codegen_is_sketch(aggregate->merge)) {
		fay_codegen_sketch(g, aggregate, row, column->offset);
		return;
	}
	/* An event that does not take part adds the identity, zero, whatever the operator. */
	LLVMValueRef part = NULL;
	if (aggregate->condition)
		part = fay_codegen_expr(g, aggregate->condition).low;
	if (aggregate->operand)
		x = fay_codegen_word(g, fay_codegen_expr(g, aggregate->operand).low);
	if (aggregate->merge == FAY_MERGE_MIN || aggregate->merge == FAY_MERGE_MAX)
		x = extreme(g, aggregate, x);
	LLVMValueRef weight = part ? LLVMBuildZExt(b, part, g->i64, "") : one;
	if (part && aggregate->merge != FAY_MERGE_HIST_LOG2)
		x = LLVMBuildSelect(b, part, x, fay_codegen_i64(g, 0), "");
	switch (aggregate->merge) {
	case FAY_MERGE_MIN:
	case FAY_MERGE_MAX: {
		LLVMValueRef old = fay_codegen_load(g, row, column->offset);
		LLVMValueRef more = LLVMBuildICmp(b, LLVMIntUGT, x, old, "");
		fay_codegen_store(g, row, column->offset, LLVMBuildSelect(b, more, x, old, ""));
		break;
	}
	case FAY_MERGE_AVERAGE:
		add_to(g, row, column->offset, x);
		add_to(g, row, column->offset + 8, weight);
		break;
	case FAY_MERGE_HIST_LOG2: {
		LLVMValueRef offset = LLVMBuildShl(b, log2_bucket(g, x), fay_codegen_i64(g, 3), "");
		LLVMValueRef bucket = fay_codegen_at(g, row, offset);
		add_to(g, bucket, column->offset, weight);
		break;
	}
	default: /* COUNT, SUM */ add_to(g, row, column->offset, x); break;
	}
}

void fay_codegen_update(struct fay_codegen *g, LLVMValueRef row)
{
	for (uint32_t i = 0; i < g->p->values; i++)
		update_value(g, row, &g->p->columns[g->p->keys + i]);
}

/* --- keys --- */

LLVMValueRef fay_codegen_key(struct fay_codegen *g, const struct fay_key_words *keys, unsigned i)
{
	return keys->words[i].value ? keys->words[i].value
				    : fay_bpf_word(g, keys->words[i].memory, keys->words[i].from);
}

static void add_word(struct fay_key_words *keys, LLVMValueRef value, uint32_t offset)
{
	keys->words[keys->count].value = value;
	keys->words[keys->count++].offset = offset;
}

void fay_codegen_keys(struct fay_codegen *g, struct fay_key_words *keys)
{
	keys->count = 0;
	for (uint32_t i = 0; i < g->p->keys; i++) {
		const struct fay_layout_column *column = &g->p->columns[i];
		struct fay_operand_value value = fay_codegen_expr(g, column->expr);
		fay_codegen_send_texts(g, column->expr);
		if (column->expr->type == TYPE_STACK) {
			for (uint32_t at = 0; at < column->size; at += 8) {
				keys->words[keys->count].memory = value.low;
				keys->words[keys->count].from = at;
				add_word(keys, g->bpf ? NULL : fay_codegen_load(g, value.low, at),
					 column->offset + at);
			}
			continue;
		}
		add_word(keys, fay_codegen_word(g, value.low), column->offset);
		if (value.high)
			add_word(keys, value.high, column->offset + 8);
	}
}

void fay_codegen_store_keys(struct fay_codegen *g, LLVMValueRef row,
			    const struct fay_key_words *keys)
{
	for (unsigned i = 0; i < keys->count; i++)
		fay_codegen_store(g, row, keys->words[i].offset, fay_codegen_key(g, keys, i));
}

static void generate_stream(struct fay_codegen *g)
{
	struct fay_key_words keys;
	fay_codegen_keys(g, &keys);
	LLVMValueRef row = g->bpf ? fay_bpf_reserve(g, false) : g->row;
	fay_codegen_store_keys(g, row, &keys);
	if (g->bpf)
		fay_bpf_submit(g, row);
	else
		fay_codegen_helper(g, "fay_emit", row);
	LLVMBuildBr(g->builder, g->leave);
}

void fay_codegen_body(struct fay_codegen *g)
{
	/* strings that are read whole lie in the processor's state */
	bool texts = g->bpf && g->p->text_count;
	if (texts)
		fay_bpf_enter(g);
	generate_filters(g);
	if (g->bpf && !texts)
		fay_bpf_enter(g);
	switch (g->p->kind) {
	case FAY_STATE_CELL:
		fay_codegen_update(g, g->local);
		LLVMBuildBr(g->builder, g->leave);
		break;
	case FAY_STATE_TABLE: fay_codegen_table(g); break;
	case FAY_STATE_STREAM: generate_stream(g); break;
	}
	fay_codegen_continue(g, g->leave);
}
