/* SPDX-License-Identifier: MIT */
/*
 * Every loop ends. A loop whose bound can be shown (loop.c) is left alone; every other one counts
 * its rounds each time it is entered, and when there were too many the probe is left at once, as by
 * `return`. A counter for each loop, and not one for all: then it moves by exactly one from round
 * to round, whatever loops are inside, and that is its proof.
 *
 * Back edges are found by depth-first search. The counter goes in front of the loop's header, in a
 * block of its own: an outer loop's header that is empty otherwise would become one with the inner
 * loop's, and no single counter would move on every round.
 */
#include <stdlib.h>
#include <string.h>

#include "guards_private.h"
#include "xfi-compiler/lower/lower.h"

#define FUEL 1024
#define ROUNDS 16384

struct edge {
	LLVMBasicBlockRef latch, header;
	uint64_t rounds; /* at most; 0: not known */
	unsigned fuel;
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
	stack[depth++] = (struct frame){ 0, 0 };
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
			struct edge e = { .latch = s->blocks[top->block], .header = s->blocks[to] };
			bool known = false;

			for (size_t i = 0; i < s->edge_count; i++)
				known |= s->edges[i].latch == e.latch &&
					 s->edges[i].header == e.header;
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
			stack[depth++] = (struct frame){ to, 0 };
		}
	}
	free(stack);
	return true;
}

static bool is_back_edge(const struct search *s, LLVMBasicBlockRef from, LLVMBasicBlockRef to)
{
	for (size_t i = 0; i < s->edge_count; i++)
		if (s->edges[i].latch == from && s->edges[i].header == to)
			return true;
	return false;
}

/* A block in front of `header` for all edges that lead there; the phis move into it. Returns the
 * count of rounds that are left, without operands. */
static LLVMValueRef block_before(struct fay_unit *unit, LLVMBuilderRef b, const struct search *s,
				 LLVMBasicBlockRef header)
{
	LLVMBasicBlockRef before = LLVMInsertBasicBlockInContext(unit->context, header, "fuel");
	LLVMValueRef count, next;

	LLVMPositionBuilderAtEnd(b, before);
	for (LLVMValueRef phi = LLVMGetFirstInstruction(header); phi && LLVMIsAPHINode(phi);
	     phi = next) {
		next = LLVMGetNextInstruction(phi);
		LLVMInstructionRemoveFromParent(phi);
		LLVMInsertIntoBuilder(b, phi);
	}
	count = LLVMBuildPhi(b, LLVMInt32TypeInContext(unit->context), "fuel");
	return count;
}

/* Every visit of the header counts, downwards, which takes one instruction less; anew each time the
 * loop is entered. */
static void fuel_loop(struct fay_unit *unit, LLVMBuilderRef b, struct search *s,
		      LLVMBasicBlockRef header, LLVMBasicBlockRef *leave, unsigned fuel)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(unit->context);
	LLVMValueRef left, rest, all = LLVMConstInt(i32, fuel + 1, 0);
	LLVMBasicBlockRef block;

	if (!*leave) {
		*leave = LLVMAppendBasicBlockInContext(unit->context,
						       LLVMGetBasicBlockParent(header), "leave");
		LLVMPositionBuilderAtEnd(b, *leave);
		fay_build_leave(b, LLVMGetBasicBlockParent(header));
	}
	left = block_before(unit, b, s, header);
	block = LLVMGetInstructionParent(left);
	LLVMPositionBuilderAtEnd(b, block);
	fay_mark(unit, b, LLVMGetBasicBlockTerminator(header), "at most %u iterations of the loop",
		 fuel);
	rest = LLVMBuildSub(b, left, LLVMConstInt(i32, 1, 0), "fuel");
	LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, rest, LLVMConstNull(i32), ""), *leave,
			header);
	LLVMSetCurrentDebugLocation2(b, NULL);
	for (size_t i = 0; i < s->count; i++) {
		LLVMValueRef terminator = LLVMGetBasicBlockTerminator(s->blocks[i]);

		for (unsigned k = 0; k < LLVMGetNumSuccessors(terminator); k++)
			if (LLVMGetSuccessor(terminator, k) == header) {
				LLVMSetSuccessor(terminator, k, block);
				LLVMAddIncoming(
					left, is_back_edge(s, s->blocks[i], header) ? &rest : &all,
					&s->blocks[i], 1);
			}
	}
	unit->count.fuels++;
}

/* Whether loop `outer` contains loop `inner`, each named by an edge. */
static bool contains(const struct search *s, const struct fay_flow *flow, size_t outer,
		     size_t inner)
{
	LLVMBasicBlockRef header = s->edges[outer].header, block = s->edges[inner].header;

	return header != block && fay_flow_dominates(flow, header, block) &&
	       fay_reaches(block, s->edges[outer].latch, header);
}

/* Whether a function that was kept is called in loop i. */
static bool calls_in(const struct search *s, const struct fay_flow *flow, size_t i)
{
	LLVMBasicBlockRef header = s->edges[i].header;

	for (size_t k = 0; k < s->count; k++) {
		if (s->blocks[k] != header &&
		    !(fay_flow_dominates(flow, header, s->blocks[k]) &&
		      fay_reaches(s->blocks[k], s->edges[i].latch, header)))
			continue;
		for (LLVMValueRef c = LLVMGetFirstInstruction(s->blocks[k]); c;
		     c = LLVMGetNextInstruction(c))
			if (LLVMIsACallInst(c) && LLVMIsAFunction(LLVMGetCalledValue(c)) &&
			    fay_is_called(LLVMGetCalledValue(c)))
				return true;
	}
	return false;
}

/*
 * How many rounds loop i may take each time it is entered. The worst case of a probe is what its
 * loops' rounds multiply to, so loops in loops get less, together ROUNDS. A function that is called
 * may be called in a loop.
 */
static unsigned fuel_of(const struct search *s, const struct fay_flow *flow, size_t i, bool called)
{
	/* loops in a nest that count; this one's place */
	static const unsigned by_level[3][3] = { { FUEL }, { 256, 128 }, { 64, 16, 16 } };
	unsigned above = called, below = calls_in(s, flow, i), fuel;
	uint64_t rounds = 1;

	for (size_t k = 0; k < s->edge_count; k++) {
		bool first = true;

		for (size_t n = 0; n < k; n++)
			first &= s->edges[n].header != s->edges[k].header;
		if (!first)
			continue;
		if (contains(s, flow, k, i)) {
			above += !s->edges[k].rounds;
			rounds *= s->edges[k].rounds && rounds < ROUNDS ? s->edges[k].rounds : 1;
		} else if (contains(s, flow, i, k) && !s->edges[k].rounds) {
			below = 1;
		}
	}
	if (above > 2)
		above = 2;
	if (above + below > 2)
		below = 2 - above;
	fuel = by_level[above + below][above];
	if (rounds > 1 && ROUNDS / rounds < fuel)
		fuel = ROUNDS / rounds < 16 ? 16 : (unsigned)(ROUNDS / rounds);
	return fuel;
}

static int fuel_function(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef function)
{
	struct search s = { 0 };
	LLVMBasicBlockRef leave = NULL;
	struct fay_flow *flow;
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
	flow = fay_flow_create(function);
	if (!flow) {
		result = fay_error_set(unit->error, FAY_E_LIMIT, "out of memory");
		goto out;
	}
	fay_range_use(flow);
	for (size_t i = 0; i < s.edge_count; i++)
		s.edges[i].rounds = fay_loop_rounds(s.edges[i].header, s.edges[i].latch);
	fay_range_use(NULL);
	/* one of several edges back to a header decides for all */
	for (size_t i = 0; i < s.edge_count; i++)
		for (size_t k = 0; k < s.edge_count; k++)
			if (s.edges[k].header == s.edges[i].header && !s.edges[k].rounds)
				s.edges[i].rounds = 0;
	for (size_t i = 0; i < s.edge_count; i++)
		s.edges[i].fuel =
			s.edges[i].rounds ? 0 : fuel_of(&s, flow, i, fay_is_called(function));
	fay_flow_destroy(flow);
	for (size_t i = 0; i < s.edge_count; i++) {
		bool done = false;

		for (size_t k = 0; k < i; k++)
			done |= s.edges[k].header == s.edges[i].header;
		if (done)
			continue;
		if (s.edges[i].rounds)
			unit->count.bounded++;
		else if (!unit->unfuelled)
			fuel_loop(unit, b, &s, s.edges[i].header, &leave, s.edges[i].fuel);
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

	for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f && !result;
	     f = LLVMGetNextFunction(f))
		if (!LLVMIsDeclaration(f))
			result = fuel_function(unit, b, f);
	LLVMDisposeBuilder(b);
	return result;
}
