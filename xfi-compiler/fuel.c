/* SPDX-License-Identifier: MIT */
/*
 * Every loop ends. A loop with an obvious constant bound (range.c) is left alone; every other one counts its rounds in a
 * counter of the probe, and when that reaches FUEL the probe is left at once, as by `return`. One counter serves all
 * loops of a probe, so that nested loops share the fuel.
 *
 * Back edges are found by depth-first search; the counter goes on the edge, in a block of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#define FUEL 1024

struct edge {
	LLVMBasicBlockRef latch, header;
};

struct search {
	LLVMBasicBlockRef *blocks;
	unsigned char *colour; /* 1 on the path, 2 done */
	size_t count;
	struct edge *edges;
	size_t edge_count;
};

static size_t index_of(const struct search *s, LLVMBasicBlockRef block)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->blocks[i] == block)
			return i;
	abort();
}

/* Iterative: the path is kept in `stack` with the next successor to look at. */
static bool find_back_edges(struct search *s)
{
	struct frame {
		size_t block;
		unsigned next;
	} *stack = calloc(s->count + 1, sizeof(*stack));
	size_t depth = 0, edge_max = 0;

	if (!stack)
		return false;
	stack[depth++] = (struct frame){0, 0};
	s->colour[0] = 1;
	while (depth) {
		struct frame *top = &stack[depth - 1];
		LLVMValueRef terminator = LLVMGetBasicBlockTerminator(s->blocks[top->block]);
		size_t to;

		if (top->next >= LLVMGetNumSuccessors(terminator)) {
			s->colour[top->block] = 2;
			depth--;
			continue;
		}
		to = index_of(s, LLVMGetSuccessor(terminator, top->next++));
		if (s->colour[to] == 1) {
			struct edge e = {s->blocks[top->block], s->blocks[to]};
			bool known = false;

			for (size_t i = 0; i < s->edge_count; i++)
				known |= s->edges[i].latch == e.latch && s->edges[i].header == e.header;
			if (known)
				continue;
			if (s->edge_count == edge_max) {
				edge_max = edge_max ? edge_max * 2 : 16;
				s->edges = realloc(s->edges, edge_max * sizeof(*s->edges));
				if (!s->edges) {
					free(stack);
					return false;
				}
			}
			s->edges[s->edge_count++] = e;
		} else if (!s->colour[to]) {
			s->colour[to] = 1;
			stack[depth++] = (struct frame){to, 0};
		}
	}
	free(stack);
	return true;
}

/* The C API cannot change a phi's incoming block: build each phi of `header` anew with `from` instead of `latch`. */
static void move_phis(LLVMBuilderRef b, LLVMBasicBlockRef header, LLVMBasicBlockRef latch, LLVMBasicBlockRef from)
{
	LLVMValueRef next;

	for (LLVMValueRef phi = LLVMGetFirstInstruction(header); phi && LLVMIsAPHINode(phi); phi = next) {
		LLVMValueRef copy;
		bool taken = false;

		next = LLVMGetNextInstruction(phi);
		LLVMPositionBuilderBefore(b, phi);
		copy = LLVMBuildPhi(b, LLVMTypeOf(phi), "");
		for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
			LLVMValueRef value = LLVMGetIncomingValue(phi, i);
			LLVMBasicBlockRef block = LLVMGetIncomingBlock(phi, i);

			if (block == latch) {
				if (taken) /* both sides of a branch led here */
					continue;
				taken = true;
				block = from;
			}
			LLVMAddIncoming(copy, &value, &block, 1);
		}
		LLVMReplaceAllUsesWith(phi, copy);
		LLVMInstructionEraseFromParent(phi);
	}
}

static void fuel_edge(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef counter, LLVMBasicBlockRef leave,
		      const struct edge *e)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(unit->context);
	LLVMBasicBlockRef block = LLVMInsertBasicBlockInContext(unit->context, leave, "fuel");
	LLVMValueRef terminator = LLVMGetBasicBlockTerminator(e->latch), used;

	for (unsigned i = 0; i < LLVMGetNumSuccessors(terminator); i++)
		if (LLVMGetSuccessor(terminator, i) == e->header)
			LLVMSetSuccessor(terminator, i, block);
	move_phis(b, e->header, e->latch, block);
	LLVMPositionBuilderAtEnd(b, block);
	used = LLVMBuildAdd(b, LLVMBuildLoad2(b, i32, counter, ""), LLVMConstInt(i32, 1, 0), "fuel");
	LLVMBuildStore(b, used, counter);
	LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULT, used, LLVMConstInt(i32, FUEL, 0), ""), e->header, leave);
	unit->fuels++;
}

static int fuel_function(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef function)
{
	struct search s = {0};
	LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(function), leave = NULL;
	LLVMValueRef counter = NULL;
	int result = 0;

	s.count = LLVMCountBasicBlocks(function);
	s.blocks = calloc(s.count, sizeof(*s.blocks));
	s.colour = calloc(s.count, 1);
	if (!s.blocks || !s.colour) {
		result = fay_error_set(unit->error, FAY_E_LIMIT, "out of memory");
		goto out;
	}
	LLVMGetBasicBlocks(function, s.blocks);
	if (!find_back_edges(&s)) {
		result = fay_error_set(unit->error, FAY_E_LIMIT, "out of memory");
		goto out;
	}
	for (size_t i = 0; i < s.edge_count; i++) {
		if (fay_loop_bounded(s.edges[i].header, s.edges[i].latch))
			continue;
		if (!counter) {
			LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(entry));
			counter = LLVMBuildAlloca(b, LLVMInt32TypeInContext(unit->context), "fuel");
			LLVMBuildStore(b, LLVMConstNull(LLVMInt32TypeInContext(unit->context)), counter);
			leave = LLVMAppendBasicBlockInContext(unit->context, function, "leave");
			LLVMPositionBuilderAtEnd(b, leave);
			LLVMBuildRetVoid(b);
		}
		fuel_edge(unit, b, counter, leave, &s.edges[i]);
	}
out:
	free(s.blocks);
	free(s.colour);
	free(s.edges);
	return result;
}

int fay_fuel(struct fay_unit *unit)
{
	LLVMBuilderRef b = LLVMCreateBuilderInContext(unit->context);
	int result = 0;

	for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f && !result; f = LLVMGetNextFunction(f))
		if (!LLVMIsDeclaration(f))
			result = fuel_function(unit, b, f);
	LLVMDisposeBuilder(b);
	return result;
}
