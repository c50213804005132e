/* SPDX-License-Identifier: MIT */
/*
 * A table's row for an event: found by its keys, or made.
 *
 * Of the keys' hash the upper bits choose the home row. FAY_TABLE_STEPS rows, the home row and
 * others 1, 3, 6, 10 ... behind it, are looked at: tag and keys equal: found; empty: inserted. None
 * of them, or the table is 7/8 full: fay_flush() hands all rows on and clears the table, and the
 * key goes into its home row. Rows that lie ever farther apart leave fewer keys without a place
 * than the next ones would.
 *
 * A table that grows uses its first rows at first, and twice as many after each flush. The header
 * says which row is the last one.
 *
 * The row's address is base + 16 + number * row_size, and a mask, or the shift that leaves the
 * hash's upper bits, bounds the number whatever the branches do, which is what the verifier wants
 * to see, speculation included. The code has no loops.
 *
 * A new row's keys are stored before its tag (with release), so that a reader who sees the tag sees
 * them.
 *
 * Outside the kernel most events find their row at home, which the probe looks at itself. For the
 * rest it calls a function that keeps all registers: what a probe may change, the dispatcher saves
 * at every event.
 */
#include "probe_private.h"

#include <string.h>

#include "fay/compiler.h"

#define HASH_FACTOR 0x9e3779b97f4a7c15u
#define SHORT_ROW 64u /* bytes of a row whose update is short enough to be there twice */

struct table {
	struct fay_key_words keys;
	LLVMValueRef hash, tag;
	LLVMValueRef mask;         /* of rows' numbers: how many there are now, less one */
	LLVMValueRef empty, found; /* phis: the row to fill; that was found, or filled */
	LLVMBasicBlockRef insert, flush, end;
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

/* A product's bits depend on the lower ones of what is multiplied. So the upper ones come to the
 * lower half for the next word, and in the end they choose the row. */
static LLVMValueRef hash_keys(struct fay_codegen *g, const struct fay_key_words *keys)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef hash = fay_codegen_i64(g, 0);
	for (unsigned i = 0; i < keys->count; i++) {
		if (i) {
			LLVMValueRef high = LLVMBuildLShr(b, hash, fay_codegen_i64(g, 32), "");
			hash = LLVMBuildXor(b, hash, high, "");
		}
		hash = LLVMBuildXor(b, hash, fay_codegen_key(g, keys, i), "");
		hash = LLVMBuildMul(b, hash, fay_codegen_i64(g, HASH_FACTOR), "hash");
	}
	return hash;
}

static LLVMValueRef row_address(struct fay_codegen *g, const struct table *table, unsigned step)
{
	LLVMBuilderRef b = g->builder;
	uint64_t distance = (uint64_t)step * (step + 1) / 2;
	uint64_t shift = 64 - (uint64_t)__builtin_ctz(g->p->rows);
	LLVMValueRef number = LLVMBuildLShr(b, table->hash, fay_codegen_i64(g, shift), "");
	number = LLVMBuildAdd(b, number, fay_codegen_i64(g, distance), "");
	if (step || grows(g))
		number = LLVMBuildAnd(b, number, table->mask, "");
	LLVMValueRef words = fay_codegen_i64(g, g->p->row_size / 8);
	LLVMValueRef offset = LLVMBuildMul(b, number, words, "");
	LLVMValueRef row = LLVMBuildInBoundsGEP2(b, g->i64, g->local, &offset, 1, "");
	/* the header's size comes last: with a column's offset it is one displacement */
	return fay_codegen_at(g, row, fay_codegen_i64(g, sizeof(struct fay_table_header)));
}

static void add_row(struct fay_codegen *g, LLVMValueRef phi, LLVMValueRef row)
{
	LLVMBasicBlockRef from = LLVMGetInsertBlock(g->builder);
	LLVMAddIncoming(phi, &row, &from, 1);
}

/* Fills a zeroed row and publishes it. */
static void insert_row(struct fay_codegen *g, struct table *table, LLVMValueRef row)
{
	if (grows(g))
		fay_codegen_store(g, g->local, offsetof(struct fay_table_header, last),
				  table->mask);
	fay_codegen_store_keys(g, row, &table->keys);
	if (g->bpf)
		fay_bpf_order(g);
	LLVMValueRef store = LLVMBuildStore(g->builder, table->tag, row);
	LLVMSetAlignment(store, 8);
	if (!g->bpf)
		LLVMSetOrdering(store, LLVMAtomicOrderingRelease);
	add_row(g, table->found, row);
	LLVMBuildBr(g->builder, table->end);
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
		LLVMValueRef x = LLVMBuildXor(b, word, fay_codegen_key(g, &table->keys, i), "");
		difference = difference ? LLVMBuildOr(b, difference, x, "") : x;
		if (!table->keys.words[i].value)
			/* else all words would be read before the first is compared */
			difference = fay_bpf_hide(g, difference);
	}
	return difference;
}

/* One row: found, empty (then inserted) or taken by another key (then `next`). */
static void look_at_row(struct fay_codegen *g, struct table *table, unsigned step,
			LLVMBasicBlockRef next)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef zero = fay_codegen_i64(g, 0);
	LLVMValueRef row = row_address(g, table, step);
	LLVMValueRef tag = fay_codegen_load(g, row, 0);
	LLVMBasicBlockRef same = fay_codegen_block(g, "same_tag"),
			  other = fay_codegen_block(g, "other_tag");
	LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, tag, table->tag, ""), same, other);
	fay_codegen_continue(g, same);
	LLVMValueRef difference = key_difference(g, table, row);
	add_row(g, table->found, row);
	LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, difference, zero, ""), table->end, next);
	fay_codegen_continue(g, other);
	add_row(g, table->empty, row);
	LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, tag, zero, ""), table->insert, next);
	fay_codegen_continue(g, next);
}

static void generate_insert(struct fay_codegen *g, struct table *table)
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
	insert_row(g, table, table->empty);
}

/* The kernel's machine hands on the one row that has no place. */
static void generate_overflow(struct fay_codegen *g, struct table *table)
{
	LLVMValueRef row = fay_bpf_reserve(g, true);
	fay_codegen_store(g, row, 0, table->tag);
	fay_codegen_store_keys(g, row, &table->keys);
	fay_codegen_update(g, row);
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
	LLVMValueRef full = fay_codegen_helper(g, "fay_flush", NULL);
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

/* Goes on where the row is found; table->found. Leaves if there is no room for it. */
static void generate_search(struct fay_codegen *g, struct table *table)
{
	LLVMBasicBlockRef start = LLVMGetInsertBlock(g->builder);
	table->insert = fay_codegen_block(g, "insert");
	table->end = fay_codegen_block(g, "found");
	table->flush = fay_codegen_block(g, "flush");
	fay_codegen_continue(g, table->insert);
	table->empty = LLVMBuildPhi(g->builder, g->pointer, "row");
	fay_codegen_continue(g, table->end);
	table->found = LLVMBuildPhi(g->builder, g->pointer, "row");
	fay_codegen_continue(g, start);
	table->tag = LLVMBuildOr(g->builder, table->hash, fay_codegen_i64(g, 1), "tag");
	for (unsigned step = 0; step < FAY_TABLE_STEPS; step++)
		look_at_row(g, table, step,
			    step + 1 < FAY_TABLE_STEPS ? fay_codegen_block(g, "next")
						       : table->flush);
	fay_codegen_continue(g, table->insert);
	generate_insert(g, table);
	fay_codegen_continue(g, table->flush);
	generate_flush(g, table);
	fay_codegen_continue(g, table->end);
}

/*
 * Most events find their row at home. There the keys alone tell, if the row is not empty: those
 * that are equal have the same tag. Goes on with the search.
 */
static LLVMValueRef look_at_home(struct fay_codegen *g, struct table *table, LLVMBasicBlockRef home)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef row = row_address(g, table, 0), zero = fay_codegen_i64(g, 0);
	LLVMBasicBlockRef same = fay_codegen_block(g, "same_keys"),
			  search = fay_codegen_block(g, "search");
	LLVMValueRef equal = LLVMBuildICmp(b, LLVMIntEQ, key_difference(g, table, row), zero, "");
	fay_codegen_likely(g, LLVMBuildCondBr(b, equal, same, search));
	fay_codegen_continue(g, same);
	LLVMValueRef taken = LLVMBuildICmp(b, LLVMIntNE, fay_codegen_load(g, row, 0), zero, "");
	fay_codegen_likely(g, LLVMBuildCondBr(b, taken, home, search));
	fay_codegen_continue(g, search);
	return row;
}

static void update_and_leave(struct fay_codegen *g, LLVMValueRef row)
{
	fay_codegen_update(g, row);
	LLVMBuildBr(g->builder, g->leave);
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

/* Keys and operands; what else the search begins with. `first`: the keys' first word, if it is
 * known. */
static void begin_table(struct fay_codegen *g, struct table *table, LLVMValueRef first)
{
	fay_codegen_keys(g, &table->keys);
	if (first)
		table->keys.words[0].value = first;
	generate_operands(g);
	table->hash = hash_keys(g, &table->keys);
	table->mask = row_mask(g);
}

/*
 * The rest as a function of its own, which begins anew. The code generator takes the registers of
 * arguments for the function's to change. Those of the event and of LOCAL the dispatcher saves in
 * any case; and so that the third one is not GLOBAL's, which would be read where it is saved, the
 * first word of the keys is there.
 */
static void call_search(struct fay_codegen *g, const struct fay_key_words *keys)
{
	static const char *const attributes[] = { FAY_CALLED, "no_caller_saved_registers" };
	LLVMTypeRef parameters[] = { g->pointer, g->pointer, g->i64 };
	LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(g->context), parameters, 3, 0);
	LLVMValueRef function = LLVMAddFunction(g->module, "search", type);
	LLVMValueRef arguments[] = { g->event, g->local, keys->words[0].value };
	LLVMBuildCall2(g->builder, type, function, arguments, 3, "");
	LLVMBuildBr(g->builder, g->leave);
	for (unsigned i = 0; i < 2; i++)
		LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
					LLVMCreateStringAttribute(g->context, attributes[i],
								  (unsigned)strlen(attributes[i]),
								  "", 0));
	struct fay_codegen outer = *g;
	struct table table;
	fay_codegen_enter(g, function);
	begin_table(g, &table, LLVMGetParam(function, 2));
	generate_search(g, &table);
	update_and_leave(g, table.found);
	fay_codegen_continue(g, g->leave);
	LLVMBuildRetVoid(g->builder);
	*g = outer;
}

/* Whether keys and operands are the event's fields and what is computed of them. */
static bool is_plain(const struct fay_codegen *g)
{
	return !g->reads && !g->stacks && !g->texts_read && !g->extends && !g->computes;
}

/* A row at home is updated there if that is short, else where the search's row is. */
static void generate_native(struct fay_codegen *g, struct table *table)
{
	LLVMBasicBlockRef home = fay_codegen_block(g, "home");
	LLVMValueRef at_home = look_at_home(g, table, home);
	LLVMBasicBlockRef search = LLVMGetInsertBlock(g->builder);
	if (g->p->row_size <= SHORT_ROW) {
		fay_codegen_continue(g, home);
		update_and_leave(g, at_home);
		fay_codegen_continue(g, search);
		if (is_plain(g)) {
			call_search(g, &table->keys);
			return;
		}
		generate_search(g, table);
	} else {
		generate_search(g, table);
		LLVMAddIncoming(table->found, &at_home, &home, 1);
		fay_codegen_continue(g, home);
		LLVMBuildBr(g->builder, table->end);
		fay_codegen_continue(g, table->end);
	}
	update_and_leave(g, table->found);
}

void fay_codegen_table(struct fay_codegen *g)
{
	struct table table;
	begin_table(g, &table, NULL);
	if (!g->bpf) {
		generate_native(g, &table);
		return;
	}
	generate_search(g, &table);
	update_and_leave(g, table.found);
}
