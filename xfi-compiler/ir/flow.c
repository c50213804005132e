/* SPDX-License-Identifier: MIT */
/*
 * Dominators (Cooper, Harvey, Kennedy: "A simple, fast dominance algorithm", 2001) and loop depth,
 * which LLVM has but its C API has not.
 */
#include <stdlib.h>

#include "ir.h"

unsigned fay_flow_index(const struct fay_flow *f, LLVMBasicBlockRef block)
{
	unsigned i = 0;

	while (i < f->count && f->blocks[i] != block)
		i++;
	return i;
}

/* Reverse postorder, iteratively; blocks[] is filled from the end and moved to the front. */
static bool order_blocks(struct fay_flow *f, LLVMValueRef function)
{
	unsigned all = LLVMCountBasicBlocks(function), depth = 0, place = all, seen_count = 0;
	struct frame {
		LLVMBasicBlockRef block;
		unsigned next;
	} *stack = calloc(all + 1, sizeof(*stack));
	LLVMBasicBlockRef *seen = calloc(all + 1, sizeof(LLVMBasicBlockRef));
	bool result = stack && seen;

	if (result) {
		seen[seen_count++] = LLVMGetEntryBasicBlock(function);
		stack[depth++] = (struct frame){ seen[0], 0 };
	}
	while (depth) {
		struct frame *top = &stack[depth - 1];
		LLVMValueRef terminator = LLVMGetBasicBlockTerminator(top->block);
		LLVMBasicBlockRef to;
		unsigned i = 0;

		if (top->next >= LLVMGetNumSuccessors(terminator)) {
			f->blocks[--place] = top->block;
			depth--;
			continue;
		}
		to = LLVMGetSuccessor(terminator, top->next++);
		while (i < seen_count && seen[i] != to)
			i++;
		if (i == seen_count) {
			seen[seen_count++] = to;
			stack[depth++] = (struct frame){ to, 0 };
		}
	}
	f->count = all - place;
	for (unsigned i = 0; i < f->count; i++)
		f->blocks[i] = f->blocks[place + i];
	free(stack);
	free(seen);
	return result;
}

static unsigned meet(const struct fay_flow *f, unsigned a, unsigned b)
{
	while (a != b) {
		while (a > b)
			a = f->idom[a];
		while (b > a)
			b = f->idom[b];
	}
	return a;
}

static void find_dominators(struct fay_flow *f)
{
	bool changed = true;

	for (unsigned i = 0; i < f->count; i++)
		f->idom[i] = f->count;
	f->idom[0] = 0;
	while (changed) {
		changed = false;
		for (unsigned i = 0; i < f->count; i++) {
			LLVMValueRef terminator = LLVMGetBasicBlockTerminator(f->blocks[i]);

			if (f->idom[i] == f->count)
				continue;
			for (unsigned s = 0; s < LLVMGetNumSuccessors(terminator); s++) {
				unsigned to = fay_flow_index(f, LLVMGetSuccessor(terminator, s));
				unsigned idom =
					f->idom[to] == f->count ? i : meet(f, f->idom[to], i);

				if (to && idom != f->idom[to]) {
					f->idom[to] = idom;
					changed = true;
				}
			}
		}
	}
}

static bool dominates(const struct fay_flow *f, unsigned over, unsigned block)
{
	while (block > over)
		block = f->idom[block];
	return block == over;
}

bool fay_flow_dominates(const struct fay_flow *f, LLVMBasicBlockRef over, LLVMBasicBlockRef block)
{
	unsigned a = fay_flow_index(f, over), b = fay_flow_index(f, block);

	return a < f->count && b < f->count && dominates(f, a, b);
}

/* Adds 1 to the depth of the natural loop of head `to`: the blocks that reach one of its latches
 * without passing the head. */
static void deepen(struct fay_flow *f, unsigned to, unsigned char *in)
{
	bool changed = true;

	in[to] = 1;
	while (changed) { /* against the order: mostly one pass */
		changed = false;
		for (unsigned i = f->count; i-- > to;) {
			LLVMValueRef terminator = LLVMGetBasicBlockTerminator(f->blocks[i]);

			for (unsigned s = 0; s < LLVMGetNumSuccessors(terminator) && !in[i]; s++) {
				unsigned k = fay_flow_index(f, LLVMGetSuccessor(terminator, s));

				if (k != to && in[k]) {
					in[i] = 1;
					changed = true;
				}
			}
		}
	}
	for (unsigned i = 0; i < f->count; i++)
		f->depth[i] += in[i];
}

static bool find_depths(struct fay_flow *f)
{
	unsigned char *in = malloc(f->count);

	for (unsigned to = 0; in && to < f->count; to++) {
		bool head = false;

		for (unsigned i = 0; i < f->count; i++)
			in[i] = 0;
		for (unsigned i = to; i < f->count; i++) {
			LLVMValueRef terminator = LLVMGetBasicBlockTerminator(f->blocks[i]);

			for (unsigned s = 0; s < LLVMGetNumSuccessors(terminator); s++)
				if (LLVMGetSuccessor(terminator, s) == f->blocks[to] &&
				    dominates(f, to, i)) {
					in[i] = 1;
					head = true;
				}
		}
		if (head)
			deepen(f, to, in);
	}
	free(in);
	return in;
}

struct fay_flow *fay_flow_create(LLVMValueRef function)
{
	struct fay_flow *f = calloc(1, sizeof(*f));
	unsigned all = LLVMCountBasicBlocks(function);

	if (!f)
		return NULL;
	f->blocks = calloc(all + 1, sizeof(*f->blocks));
	f->idom = calloc(all + 1, sizeof(*f->idom));
	f->depth = calloc(all + 1, sizeof(*f->depth));
	if (f->blocks && f->idom && f->depth && order_blocks(f, function)) {
		find_dominators(f);
		if (find_depths(f))
			return f;
	}
	fay_flow_destroy(f);
	return NULL;
}

void fay_flow_destroy(struct fay_flow *f)
{
	if (!f)
		return;
	free(f->blocks);
	free(f->idom);
	free(f->depth);
	free(f);
}
