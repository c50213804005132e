/* SPDX-License-Identifier: MIT */
/*
 * Counters of loops: phi = [start, outside], [phi + step, latch] with a constant step, and a test
 * in the header or in the latch, which every round passes. The test's bound and the start may be
 * variables; what counts is their range. From that follow the counter's own range and a bound for
 * the rounds, by which fuel.c leaves the loop alone.
 *
 * Only what the verifier can find again: it looks for a register that moves one way and stays
 * within an interval.
 */
#include "ir.h"

#define ROUNDS_MAX 65536
#define REACH_MAX 256
#define STEP_MAX (1 << 30)

static unsigned width_of(LLVMValueRef value)
{
	return LLVMGetIntTypeWidth(LLVMTypeOf(value));
}

static uint64_t width_mask(unsigned width)
{
	return width >= 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
}

bool fay_counter_of(LLVMValueRef phi, struct fay_counter *c)
{
	if (!LLVMIsAPHINode(phi) || LLVMCountIncoming(phi) != 2 ||
	    LLVMGetTypeKind(LLVMTypeOf(phi)) != LLVMIntegerTypeKind || width_of(phi) > 64)
		return false;
	for (unsigned i = 0; i < 2; i++) {
		LLVMValueRef add = LLVMGetIncomingValue(phi, i);

		if (!LLVMIsAInstruction(add) || LLVMGetInstructionOpcode(add) != LLVMAdd ||
		    LLVMGetOperand(add, 0) != phi || !LLVMIsAConstantInt(LLVMGetOperand(add, 1)))
			continue;
		*c = (struct fay_counter){
			.next = add,
			.start = LLVMGetIncomingValue(phi, 1 - i),
			.latch = LLVMGetIncomingBlock(phi, i),
			.entry = LLVMGetIncomingBlock(phi, 1 - i),
			.step = LLVMConstIntGetSExtValue(LLVMGetOperand(add, 1)),
		};
		return c->step && c->step > -STEP_MAX && c->step < STEP_MAX;
	}
	return false;
}

bool fay_induction(LLVMValueRef phi, uint64_t *start, uint64_t *step, LLVMValueRef *next,
		   LLVMBasicBlockRef *latch)
{
	struct fay_counter c;

	if (!fay_counter_of(phi, &c) || !LLVMIsAConstantInt(c.start) || c.step < 0)
		return false;
	*start = LLVMConstIntGetZExtValue(c.start);
	*step = (uint64_t)c.step;
	*next = c.next;
	*latch = c.latch;
	return true;
}

bool fay_reaches(LLVMBasicBlockRef from, LLVMBasicBlockRef to, LLVMBasicBlockRef header)
{
	LLVMBasicBlockRef seen[REACH_MAX];
	unsigned count = 0;

	if (from == header)
		return false;
	seen[count++] = from;
	for (unsigned i = 0; i < count; i++) {
		LLVMValueRef terminator = LLVMGetBasicBlockTerminator(seen[i]);

		if (seen[i] == to)
			return true;
		for (unsigned s = 0; s < LLVMGetNumSuccessors(terminator); s++) {
			LLVMBasicBlockRef next = LLVMGetSuccessor(terminator, s);
			unsigned k = 0;

			while (k < count && seen[k] != next)
				k++;
			if (k < count || next == header)
				continue;
			if (count == REACH_MAX)
				return true;
			seen[count++] = next;
		}
	}
	return false;
}

LLVMIntPredicate fay_predicate_not(LLVMIntPredicate p)
{
	switch (p) {
	case LLVMIntEQ: return LLVMIntNE;
	case LLVMIntNE: return LLVMIntEQ;
	case LLVMIntUGT: return LLVMIntULE;
	case LLVMIntUGE: return LLVMIntULT;
	case LLVMIntULT: return LLVMIntUGE;
	case LLVMIntULE: return LLVMIntUGT;
	case LLVMIntSGT: return LLVMIntSLE;
	case LLVMIntSGE: return LLVMIntSLT;
	case LLVMIntSLT: return LLVMIntSGE;
	default: return LLVMIntSGT;
	}
}

static LLVMIntPredicate swapped(LLVMIntPredicate p)
{
	switch (p) {
	case LLVMIntUGT: return LLVMIntULT;
	case LLVMIntUGE: return LLVMIntULE;
	case LLVMIntULT: return LLVMIntUGT;
	case LLVMIntULE: return LLVMIntUGE;
	case LLVMIntSGT: return LLVMIntSLT;
	case LLVMIntSGE: return LLVMIntSLE;
	case LLVMIntSLT: return LLVMIntSGT;
	case LLVMIntSLE: return LLVMIntSGE;
	default: return p;
	}
}

bool fay_exit_compare(LLVMBasicBlockRef block, LLVMValueRef about, struct fay_compare *c)
{
	LLVMValueRef terminator = LLVMGetBasicBlockTerminator(block), condition;

	if (!terminator || !LLVMIsABranchInst(terminator) || !LLVMIsConditional(terminator))
		return false;
	condition = LLVMGetCondition(terminator);
	if (!LLVMIsAICmpInst(condition) ||
	    LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(condition, 0))) != LLVMIntegerTypeKind ||
	    width_of(LLVMGetOperand(condition, 0)) > 64)
		return false;
	c->predicate = LLVMGetICmpPredicate(condition);
	c->left = LLVMGetOperand(condition, 0);
	c->right = LLVMGetOperand(condition, 1);
	if (c->left == about)
		return true;
	if (c->right != about)
		return false;
	c->right = c->left;
	c->left = about;
	c->predicate = swapped(c->predicate);
	return true;
}

bool fay_counter_test(LLVMValueRef phi, const struct fay_counter *c, LLVMBasicBlockRef test,
		      struct fay_compare *compare)
{
	LLVMBasicBlockRef header = LLVMGetInstructionParent(phi);
	LLVMValueRef terminator = LLVMGetBasicBlockTerminator(test);
	bool on[2];

	if (!fay_exit_compare(test, phi, compare) && !fay_exit_compare(test, c->next, compare))
		return false;
	for (unsigned i = 0; i < 2; i++)
		on[i] = test == c->latch
				? LLVMGetSuccessor(terminator, i) == header
				: fay_reaches(LLVMGetSuccessor(terminator, i), c->latch, header);
	if (on[0] == on[1])
		return false; /* not an exit */
	if (on[1])
		compare->predicate = fay_predicate_not(compare->predicate);
	return true;
}

/*
 * Upwards. The values are start, start + step, ...: with a constant start the last one is rounded
 * down to one of them. A test of phi itself sees one more; where the test comes first, the branch
 * into the body takes that one away again (range.c).
 */
static bool count_up(const struct fay_counter *c, const struct fay_compare *compare,
		     bool tests_next, struct fay_range start, struct fay_range bound, uint64_t half,
		     struct fay_range *result)
{
	/* limit: the largest value with which the loop goes on */
	uint64_t limit, step = (uint64_t)c->step;

	switch (compare->predicate) {
	case LLVMIntSLT:
	case LLVMIntSLE:
		if (bound.hi > half || start.hi > half)
			return false;
		limit = bound.hi - (compare->predicate == LLVMIntSLT);
		break;
	case LLVMIntULT: limit = bound.hi - 1; break;
	case LLVMIntULE: limit = bound.hi; break;
	case LLVMIntNE:
		if (start.lo != start.hi || bound.lo != bound.hi || bound.lo <= start.lo ||
		    (bound.lo - start.lo) % step)
			return false;
		limit = bound.lo - step;
		break;
	default: return false;
	}
	/* could wrap; also where nothing is below the bound */
	if (limit > 2 * half + 1 - step || start.hi > 2 * half + 1 - step)
		return false;
	result->lo = start.lo;
	if (start.lo == start.hi && limit > start.lo)
		result->hi = limit - (limit - start.lo) % step;
	else
		result->hi = limit > start.hi ? limit : start.hi;
	if (!tests_next && limit >= start.lo)
		result->hi += step;
	return true;
}

static bool count_down(const struct fay_counter *c, const struct fay_compare *compare,
		       bool tests_next, struct fay_range start, struct fay_range bound,
		       uint64_t half, struct fay_range *result)
{
	/* least: the smallest value with which the loop goes on */
	uint64_t step = (uint64_t)-c->step, least;

	if (start.hi > half || bound.lo != bound.hi)
		return false;
	switch (compare->predicate) {
	case LLVMIntNE:
		if (bound.lo || step != 1 || (tests_next && !start.lo))
			return false;
		least = 1;
		break;
	case LLVMIntUGT:
	case LLVMIntSGT:
		least = compare->predicate == LLVMIntSGT && bound.lo == 2 * half + 1 ? 0
										     : bound.lo + 1;
		if (least > half || (compare->predicate == LLVMIntUGT &&
				     (least < start.lo ? least : start.lo) < step))
			return false;
		break;
	default: return false;
	}
	if (!tests_next) {
		if (least < step)
			return false;
		least -= step;
	}
	*result = (struct fay_range){ least < start.lo ? least : start.lo, start.hi };
	return true;
}

bool fay_counter_range(LLVMValueRef phi, int depth, struct fay_range *range, uint64_t *step)
{
	LLVMBasicBlockRef tests[2] = { LLVMGetInstructionParent(phi) };
	struct fay_counter c;

	if (!fay_counter_of(phi, &c))
		return false;
	tests[1] = c.latch;
	for (int t = 0; t < 2; t++) {
		struct fay_compare compare;
		struct fay_range start, bound;
		uint64_t half = width_mask(width_of(phi)) / 2;

		if (!fay_counter_test(phi, &c, tests[t], &compare))
			continue;
		start = fay_range_at(c.start, LLVMGetBasicBlockTerminator(c.entry), depth + 1);
		bound = fay_range_at(compare.right, LLVMGetBasicBlockTerminator(tests[t]),
				     depth + 1);
		*step = (uint64_t)(c.step > 0 ? c.step : -c.step);
		if ((c.step > 0 ? count_up : count_down)(&c, &compare, compare.left == c.next,
							 start, bound, half, range))
			return true;
	}
	return false;
}

uint64_t fay_loop_rounds(LLVMBasicBlockRef header, LLVMBasicBlockRef latch)
{
	for (LLVMValueRef i = LLVMGetFirstInstruction(header); i && LLVMIsAPHINode(i);
	     i = LLVMGetNextInstruction(i)) {
		struct fay_counter c;
		struct fay_range r;
		uint64_t step;

		if (fay_counter_of(i, &c) && c.latch == latch &&
		    fay_counter_range(i, 0, &r, &step) && (r.hi - r.lo) / step <= ROUNDS_MAX)
			return (r.hi - r.lo) / step + 1;
	}
	return 0;
}

uint64_t fay_exact_rounds(LLVMValueRef phi, const struct fay_counter *c)
{
	LLVMValueRef terminator = LLVMGetBasicBlockTerminator(c->latch);
	struct fay_compare compare;
	uint64_t bound;

	if (LLVMGetInstructionParent(phi) != c->latch || c->step != 1 ||
	    !LLVMIsAConstantInt(c->start) || LLVMConstIntGetZExtValue(c->start) ||
	    !fay_counter_test(phi, c, c->latch, &compare) || !LLVMIsAConstantInt(compare.right) ||
	    LLVMGetNumSuccessors(terminator) != 2)
		return 0;
	bound = LLVMConstIntGetZExtValue(compare.right);
	if (compare.left == phi) /* the round of value n goes on to n + 1 */
		bound++;
	if ((compare.predicate != LLVMIntULT && compare.predicate != LLVMIntNE) ||
	    bound > width_mask(width_of(phi)) / 2)
		return 0;
	return bound ? bound : 0;
}
