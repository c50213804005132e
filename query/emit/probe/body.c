/* SPDX-License-Identifier: MIT */
/*
 * The probe stage as LLVM IR: void probe0(ptr event, ptr local, ptr global); where the query looks
 * at `Failed`, probe1 does the same for calls that end by an exception.
 *
 *   filters     each leaves the probe early
 *   CELL        updates the values in place
 *   TABLE       hash of the keys; FAY_TABLE_STEPS rows, the home row and others 1, 3, 6, 10 ...
 *		 behind it, are looked at: tag and keys equal: found; empty: inserted. None of
 *		 them, or the table is 7/8 full: fay_flush() hands all rows on and clears the
 *		 table, and the key goes into its home row. Rows that lie ever farther apart leave
 *		 fewer keys without a place than the next ones would
 *   STREAM      builds the row on the stack and hands it to fay_emit()
 *
 * A table that grows uses its first rows at first, and twice as many after each flush. The header
 * says which row is the last one.
 *
 * The row's address is base + 16 + (hash + distance & rows - 1) * row_size: the mask bounds it
 * whatever the branches do, which is what the verifier wants to see, speculation included. The code
 * has no loops.
 *
 * A new row's keys are stored before its tag (with release), so that a reader who sees the tag sees
 * them.
 */
#include "probe_private.h"

#include <string.h>

#define HASH_FACTOR 0x9e3779b97f4a7c15u
#define SHORT_ROW 64u /* bytes of a row whose update is short enough to be there twice */

static void add_attribute(struct fay_codegen *g, LLVMValueRef function, unsigned index,
			  const char *name)
{
	unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
	LLVMAddAttributeAtIndex(function, index, LLVMCreateEnumAttribute(g->context, kind, 0));
}

void fay_codegen_begin(struct fay_codegen *g, const char *symbol)
{
	LLVMTypeRef parameters[] = { g->pointer, g->pointer, g->pointer };
	LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(g->context), parameters, 3, 0);
	g->function = LLVMAddFunction(g->module, symbol, type);
	fay_codegen_place_function(g);
	g->event = LLVMGetParam(g->function, 0);
	g->local = LLVMGetParam(g->function, 1);
	g->global = LLVMGetParam(g->function, 2);
	add_attribute(g, g->function, LLVMAttributeFunctionIndex, "nounwind");
	add_attribute(g, g->function, 1, "noalias");
	add_attribute(g, g->function, 1, "readonly");
	fay_codegen_continue(g, fay_codegen_block(g, "entry"));
	if (g->p->kind == FAY_STATE_STREAM) /* in the entry block: a fixed place in the frame */
		g->row = LLVMBuildAlloca(g->builder, LLVMArrayType2(g->i64, g->p->row_size / 8),
					 "row");
	g->leave = fay_codegen_block(g, "leave");
}

static LLVMValueRef call_helper(struct fay_codegen *g, const char *name, LLVMValueRef row)
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

static void update_values(struct fay_codegen *g, LLVMValueRef row)
{
	for (uint32_t i = 0; i < g->p->values; i++)
		update_value(g, row, &g->p->columns[g->p->keys + i]);
}

/* --- keys --- */

/* The key columns' words with their offsets in the row; a STRING has two, a STACK as many as it has
 * frames. */
struct key_words {
	unsigned count;
	struct {
		/* NULL: it lies `from` bytes behind `memory`, and is loaded where it is needed: a
		 * BPF program has no room to keep it twice */
		LLVMValueRef value;
		LLVMValueRef memory;
		uint32_t from, offset;
	} words[FAY_ROW_MAX_BYTES / 8];
};

static LLVMValueRef key_word(struct fay_codegen *g, const struct key_words *keys, unsigned i)
{
	return keys->words[i].value ? keys->words[i].value
				    : fay_bpf_word(g, keys->words[i].memory, keys->words[i].from);
}

static void add_word(struct key_words *keys, LLVMValueRef value, uint32_t offset)
{
	keys->words[keys->count].value = value;
	keys->words[keys->count++].offset = offset;
}

static void generate_keys(struct fay_codegen *g, struct key_words *keys)
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

static void store_keys(struct fay_codegen *g, LLVMValueRef row, const struct key_words *keys)
{
	for (unsigned i = 0; i < keys->count; i++)
		fay_codegen_store(g, row, keys->words[i].offset, key_word(g, keys, i));
}

/* A product's bits depend on the lower ones of what is multiplied. So the upper ones come to the
 * lower half for the next word, and in the end those near the top to the lowest, which choose the
 * row. */
static LLVMValueRef hash_keys(struct fay_codegen *g, const struct key_words *keys)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef hash = fay_codegen_i64(g, 0);
	for (unsigned i = 0; i < keys->count; i++) {
		hash = LLVMBuildXor(b, hash, key_word(g, keys, i), "");
		hash = LLVMBuildMul(b, hash, fay_codegen_i64(g, HASH_FACTOR), "");
		uint64_t shift = i + 1 < keys->count ? 32 : 47;
		LLVMValueRef high = LLVMBuildLShr(b, hash, fay_codegen_i64(g, shift), "");
		hash = LLVMBuildXor(b, hash, high, "hash");
	}
	return hash;
}

/* --- the table --- */

struct table {
	struct key_words keys;
	LLVMValueRef hash, tag;
	LLVMValueRef mask;  /* of rows' numbers: how many there are now, less one */
	LLVMValueRef found; /* phi of the row to update */
	LLVMBasicBlockRef update, flush;
};

static bool grows(const struct fay_codegen *g)
{
	return g->p->first_rows < g->p->rows;
}

static LLVMValueRef row_mask(struct fay_codegen *g)
{
	LLVMValueRef all = fay_codegen_i64(g, g->p->rows - 1);
	if (!grows(g))
		return all;
	LLVMValueRef last = fay_codegen_load(g, g->local, offsetof(struct fay_table_header, last));
	last = LLVMBuildOr(g->builder, last, fay_codegen_i64(g, g->p->first_rows - 1), "");
	return LLVMBuildAnd(g->builder, last, all, "mask");
}

static LLVMValueRef row_address(struct fay_codegen *g, const struct table *table, unsigned step)
{
	LLVMBuilderRef b = g->builder;
	uint64_t distance = (uint64_t)step * (step + 1) / 2;
	LLVMValueRef index = LLVMBuildAdd(b, table->hash, fay_codegen_i64(g, distance), "");
	index = LLVMBuildAnd(b, index, table->mask, "");
	LLVMValueRef offset = LLVMBuildMul(b, index, fay_codegen_i64(g, g->p->row_size), "");
	LLVMValueRef header = fay_codegen_i64(g, sizeof(struct fay_table_header));
	/* Where the mask alone bounds the offset, the header's size comes last: with a column's
	 * offset it is one displacement. */
	if (!(g->p->row_size & (g->p->row_size - 1)))
		return fay_codegen_at(g, fay_codegen_at(g, g->local, offset), header);
	return fay_codegen_at(g, g->local, LLVMBuildAdd(b, offset, header, ""));
}

static void go_to_update(struct fay_codegen *g, struct table *table, LLVMValueRef row)
{
	LLVMBasicBlockRef from = LLVMGetInsertBlock(g->builder);
	LLVMBuildBr(g->builder, table->update);
	LLVMAddIncoming(table->found, &row, &from, 1);
}

/* Fills a zeroed row and publishes it. */
static void insert_row(struct fay_codegen *g, struct table *table, LLVMValueRef row)
{
	if (grows(g))
		fay_codegen_store(g, g->local, offsetof(struct fay_table_header, last),
				  table->mask);
	store_keys(g, row, &table->keys);
	if (g->bpf)
		fay_bpf_order(g);
	LLVMValueRef store = LLVMBuildStore(g->builder, table->tag, row);
	LLVMSetAlignment(store, 8);
	if (!g->bpf)
		LLVMSetOrdering(store, LLVMAtomicOrderingRelease);
	go_to_update(g, table, row);
}

/* 0: all key words are equal. */
static LLVMValueRef key_difference(struct fay_codegen *g, const struct table *table,
				   LLVMValueRef row)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef difference = NULL;
	for (unsigned i = 0; i < table->keys.count; i++) {
		uint32_t offset = table->keys.words[i].offset;
		LLVMValueRef word = table->keys.words[i].value ? fay_codegen_load(g, row, offset)
							       : fay_bpf_word(g, row, offset);
		LLVMValueRef x = LLVMBuildXor(b, word, key_word(g, &table->keys, i), "");
		difference = difference ? LLVMBuildOr(b, difference, x, "") : x;
		if (!table->keys.words[i].value)
			/* else all words would be read before the first is compared */
			difference = fay_bpf_hide(g, difference);
	}
	return difference;
}

/* All key words equal: to update, else to `next`. */
static void compare_keys(struct fay_codegen *g, struct table *table, LLVMValueRef row,
			 LLVMBasicBlockRef next)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef difference = key_difference(g, table, row);
	LLVMBasicBlockRef equal = fay_codegen_block(g, "equal");
	LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, difference, fay_codegen_i64(g, 0), ""),
			equal, next);
	fay_codegen_continue(g, equal);
	go_to_update(g, table, row);
}

/* One row: found, empty (then inserted) or taken by another key (then `next`). */
static void look_at_row(struct fay_codegen *g, struct table *table, unsigned step,
			LLVMBasicBlockRef insert, LLVMValueRef insert_phi, LLVMBasicBlockRef next)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef row = row_address(g, table, step);
	LLVMValueRef tag = fay_codegen_load(g, row, 0);
	LLVMBasicBlockRef same = fay_codegen_block(g, "same_tag"),
			  other = fay_codegen_block(g, "other_tag");
	LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, tag, table->tag, ""), same, other);
	fay_codegen_continue(g, same);
	compare_keys(g, table, row, next);
	fay_codegen_continue(g, other);
	LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, tag, fay_codegen_i64(g, 0), ""), insert,
			next);
	LLVMAddIncoming(insert_phi, &row, &other, 1);
	fay_codegen_continue(g, next);
}

/*
 * Most events find their row at home. There the keys alone tell, if the row is not empty: those
 * that are equal have the same tag.
 */
static void look_at_home(struct fay_codegen *g, struct table *table)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef row = row_address(g, table, 0), zero = fay_codegen_i64(g, 0);
	LLVMBasicBlockRef same = fay_codegen_block(g, "same_keys"),
			  home = fay_codegen_block(g, "home"),
			  search = fay_codegen_block(g, "search");
	LLVMValueRef equal = LLVMBuildICmp(b, LLVMIntEQ, key_difference(g, table, row), zero, "");
	fay_codegen_likely(g, LLVMBuildCondBr(b, equal, same, search));
	fay_codegen_continue(g, same);
	LLVMValueRef taken = LLVMBuildICmp(b, LLVMIntNE, fay_codegen_load(g, row, 0), zero, "");
	fay_codegen_likely(g, LLVMBuildCondBr(b, taken, home, search));
	fay_codegen_continue(g, home);
	if (g->p->row_size <= SHORT_ROW) {
		update_values(g, row);
		LLVMBuildBr(b, g->leave);
	} else {
		go_to_update(g, table, row);
	}
	fay_codegen_continue(g, search);
}

static void generate_insert(struct fay_codegen *g, struct table *table, LLVMValueRef row)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef used = fay_codegen_load(g, g->local, offsetof(struct fay_table_header, used));
	LLVMValueRef eighth = LLVMBuildLShr(b, table->mask, fay_codegen_i64(g, 3), "");
	LLVMValueRef room =
		LLVMBuildICmp(b, LLVMIntULT, used, LLVMBuildSub(b, table->mask, eighth, ""), "");
	LLVMBasicBlockRef roomy = fay_codegen_block(g, "room");
	LLVMBuildCondBr(b, room, roomy, table->flush);
	fay_codegen_continue(g, roomy);
	fay_codegen_store(g, g->local, offsetof(struct fay_table_header, used),
			  LLVMBuildAdd(b, used, fay_codegen_i64(g, 1), ""));
	insert_row(g, table, row);
}

/* The kernel's machine hands on the one row that has no place. */
static void generate_overflow(struct fay_codegen *g, struct table *table)
{
	LLVMValueRef row = fay_bpf_reserve(g, true);
	fay_codegen_store(g, row, 0, table->tag);
	store_keys(g, row, &table->keys);
	update_values(g, row);
	fay_bpf_submit(g, row);
	LLVMBuildBr(g->builder, g->leave);
}

static void generate_flush(struct fay_codegen *g, struct table *table)
{
	if (g->bpf) {
		generate_overflow(g, table);
		return;
	}
	LLVMBuilderRef b = g->builder;
	LLVMValueRef full = call_helper(g, "fay_flush", NULL);
	LLVMBasicBlockRef flushed = fay_codegen_block(g, "flushed");
	LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, full, fay_codegen_i64(g, 0), ""), flushed,
			g->leave);
	fay_codegen_continue(g, flushed);
	fay_codegen_store(g, g->local, offsetof(struct fay_table_header, used),
			  fay_codegen_i64(g, 1));
	if (grows(g)) {
		LLVMValueRef more = LLVMBuildShl(b, table->mask, fay_codegen_i64(g, 1), "");
		more = LLVMBuildOr(b, more, fay_codegen_i64(g, 1), "");
		table->mask = LLVMBuildAnd(b, more, fay_codegen_i64(g, g->p->rows - 1), "");
	}
	insert_row(g, table, row_address(g, table, 0));
}

/* Operands of all values, before the search: there they dominate every use. */
static void generate_operands(struct fay_codegen *g)
{
	for (uint32_t i = 0; i < g->p->values; i++) {
		const struct fay_aggregate *a = g->p->columns[g->p->keys + i].expr->aggregate;
		if (a->operand)
			fay_codegen_expr(g, a->operand);
		if (a->condition)
			fay_codegen_expr(g, a->condition);
	}
}

static void generate_table(struct fay_codegen *g)
{
	struct table table;
	generate_keys(g, &table.keys);
	generate_operands(g);
	table.hash = hash_keys(g, &table.keys);
	table.mask = row_mask(g);
	LLVMBasicBlockRef insert = fay_codegen_block(g, "insert"),
			  start = LLVMGetInsertBlock(g->builder);
	table.update = fay_codegen_block(g, "update");
	table.flush = fay_codegen_block(g, "flush");
	fay_codegen_continue(g, insert);
	LLVMValueRef insert_phi = LLVMBuildPhi(g->builder, g->pointer, "empty_row");
	fay_codegen_continue(g, table.update);
	table.found = LLVMBuildPhi(g->builder, g->pointer, "row");
	fay_codegen_continue(g, start);
	if (!g->bpf)
		look_at_home(g, &table);
	table.tag = LLVMBuildOr(g->builder, table.hash, fay_codegen_i64(g, 1), "tag");
	for (unsigned step = 0; step < FAY_TABLE_STEPS; step++)
		look_at_row(g, &table, step, insert, insert_phi,
			    step + 1 < FAY_TABLE_STEPS ? fay_codegen_block(g, "next")
						       : table.flush);
	fay_codegen_continue(g, insert);
	generate_insert(g, &table, insert_phi);
	fay_codegen_continue(g, table.flush);
	generate_flush(g, &table);
	fay_codegen_continue(g, table.update);
	update_values(g, table.found);
	LLVMBuildBr(g->builder, g->leave);
}

static void generate_stream(struct fay_codegen *g)
{
	struct key_words keys;
	generate_keys(g, &keys);
	LLVMValueRef row = g->bpf ? fay_bpf_reserve(g, false) : g->row;
	store_keys(g, row, &keys);
	if (g->bpf)
		fay_bpf_submit(g, row);
	else
		call_helper(g, "fay_emit", row);
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
		update_values(g, g->local);
		LLVMBuildBr(g->builder, g->leave);
		break;
	case FAY_STATE_TABLE: generate_table(g); break;
	case FAY_STATE_STREAM: generate_stream(g); break;
	}
	fay_codegen_continue(g, g->leave);
}
