/* SPDX-License-Identifier: MIT */
/*
 * Every loop ends. A loop whose bound can be shown (loop.c) is left alone; every other one counts its rounds in a counter of
 * its own, over all the times it is entered, and when that reaches FUEL the probe is left at once, as by `return`. A counter for each loop, and
 * not one for all: then it moves by exactly one from round to round, whatever loops are inside, and that is its proof.
 *
 * Back edges are found by depth-first search. The counter goes in front of the loop's header, in a block of its own: an outer loop's header that is
 * empty otherwise would become one with the inner loop's, and no single counter would move on every round.
 */
#include <stdlib.h>
#include <string.h>

#include "address.h"

#define FUEL 1024

struct edge {
	LLVMBasicBlockRef latch, header;
	bool bounded;
};

struct search {
	LLVMBasicBlockRef *blocks;
	unsigned char *colour; /* 1 on the path, 2 done */
	size_t count;
	struct edge *edges;
	size_t edge_count;
	LLVMBasicBlockRef *added; /* the blocks that count */
	size_t added_count;
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
			struct edge e = {.latch = s->blocks[top->block], .header = s->blocks[to]};
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

/* A block in front of `header` for all edges that lead there; the phis move into it. */
static LLVMBasicBlockRef block_before(struct fay_unit *unit, LLVMBuilderRef b, struct search *s, LLVMBasicBlockRef header)
{
	LLVMBasicBlockRef before = LLVMInsertBasicBlockInContext(unit->context, header, "fuel");
	LLVMValueRef next;

	for (size_t i = 0; i < s->count; i++) {
		LLVMValueRef terminator = LLVMGetBasicBlockTerminator(s->blocks[i]);

		for (unsigned k = 0; k < LLVMGetNumSuccessors(terminator); k++)
			if (LLVMGetSuccessor(terminator, k) == header)
				LLVMSetSuccessor(terminator, k, before);
	}
	for (size_t i = 0; i < s->added_count; i++) { /* a fuel block of another loop */
		LLVMValueRef terminator = LLVMGetBasicBlockTerminator(s->added[i]);

		if (LLVMGetSuccessor(terminator, 0) == header)
			LLVMSetSuccessor(terminator, 0, before);
	}
	LLVMPositionBuilderAtEnd(b, before);
	for (LLVMValueRef phi = LLVMGetFirstInstruction(header); phi && LLVMIsAPHINode(phi); phi = next) {
		next = LLVMGetNextInstruction(phi);
		LLVMInstructionRemoveFromParent(phi);
		LLVMInsertIntoBuilder(b, phi);
	}
	return before;
}

/* Every visit of the header counts. */
static void fuel_loop(struct fay_unit *unit, LLVMBuilderRef b, struct search *s, LLVMBasicBlockRef header, LLVMBasicBlockRef *leave)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(unit->context);
	LLVMValueRef counter, used;
	LLVMBasicBlockRef block;

	if (!*leave) {
		*leave = LLVMAppendBasicBlockInContext(unit->context, LLVMGetBasicBlockParent(header), "leave");
		LLVMPositionBuilderAtEnd(b, *leave);
		LLVMBuildRetVoid(b);
	}
	LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(s->blocks[0]));
	counter = LLVMBuildAlloca(b, i32, "fuel");
	LLVMBuildStore(b, LLVMConstNull(i32), counter);
	block = block_before(unit, b, s, header);
	LLVMPositionBuilderAtEnd(b, block);
	used = LLVMBuildAdd(b, LLVMBuildLoad2(b, i32, counter, ""), LLVMConstInt(i32, 1, 0), "fuel");
	LLVMBuildStore(b, used, counter);
	LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULE, used, LLVMConstInt(i32, FUEL, 0), ""), header, *leave);
	s->added[s->added_count++] = block;
	unit->count.fuels++;
}

static int fuel_function(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef function)
{
	struct search s = {0};
	LLVMBasicBlockRef leave = NULL;
	struct fay_flow *flow;
	int result = 0;

	s.count = LLVMCountBasicBlocks(function);
	s.blocks = calloc(s.count, sizeof(*s.blocks));
	s.colour = calloc(s.count, 1);
	s.added = calloc(s.count, sizeof(*s.added));
	if (!s.blocks || !s.added || !s.colour) {
		result = fay_error_set(unit->error, FAY_E_LIMIT, "out of memory");
		goto out;
	}
	LLVMGetBasicBlocks(function, s.blocks);
	if (!find_back_edges(&s)) {
		result = fay_error_set(unit->error, FAY_E_LIMIT, "out of memory");
		goto out;
	}
	flow = fay_flow_create(function);
	if (!flow) {
		result = fay_error_set(unit->error, FAY_E_LIMIT, "out of memory");
		goto out;
	}
	fay_range_use(flow);
	for (size_t i = 0; i < s.edge_count; i++)
		s.edges[i].bounded = fay_loop_bounded(s.edges[i].header, s.edges[i].latch);
	fay_range_use(NULL);
	fay_flow_destroy(flow);
	for (size_t i = 0; i < s.edge_count; i++) {
		bool bounded = s.edges[i].bounded, done = false;

		for (size_t k = 0; k < s.edge_count; k++) { /* one of several edges back to this header decides for all */
			bounded &= s.edges[k].header != s.edges[i].header || s.edges[k].bounded;
			done |= k < i && s.edges[k].header == s.edges[i].header;
		}
		if (done)
			continue;
		if (bounded)
			unit->count.bounded++;
		else
			fuel_loop(unit, b, &s, s.edges[i].header, &leave);
	}
out:
	free(s.blocks);
	free(s.colour);
	free(s.edges);
	free(s.added);
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
