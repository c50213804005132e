/* SPDX-License-Identifier: MIT */
/*
 * Unsigned ranges of IR integers, from the value's own definition and from the branches that must have been taken to get
 * there. Only facts that a machine-code analysis finds again with intervals and known bits are used; whatever is too
 * clever here comes back as a refusal by the verifier. Depth-limited, so the cost is bounded for any input.
 */
#include "unit.h"

#define DEPTH_MAX 12
#define CHAIN_MAX 24

static struct fay_range range_value(LLVMValueRef value, LLVMValueRef at, int depth);

static unsigned width_of(LLVMValueRef value)
{
	return LLVMGetIntTypeWidth(LLVMTypeOf(value));
}

static uint64_t width_mask(unsigned width)
{
	return width >= 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
}

static struct fay_range full(unsigned width)
{
	return (struct fay_range){0, width_mask(width)};
}

static bool constant_of(LLVMValueRef value, uint64_t *number)
{
	if (!LLVMIsAConstantInt(value) || width_of(value) > 64)
		return false;
	*number = LLVMConstIntGetZExtValue(value);
	return true;
}

/* The icmp that decides the terminator of `block`, with the constant on the right; false if there is none. */
static bool exit_compare(LLVMBasicBlockRef block, LLVMValueRef *left, LLVMIntPredicate *predicate, uint64_t *right)
{
	LLVMValueRef terminator = LLVMGetBasicBlockTerminator(block);
	LLVMValueRef condition;

	if (!terminator || !LLVMIsABranchInst(terminator) || !LLVMIsConditional(terminator))
		return false;
	condition = LLVMGetCondition(terminator);
	if (!LLVMIsAICmpInst(condition) || LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(condition, 0))) != LLVMIntegerTypeKind)
		return false;
	*left = LLVMGetOperand(condition, 0);
	*predicate = LLVMGetICmpPredicate(condition);
	return constant_of(LLVMGetOperand(condition, 1), right);
}

/* phi = [start, outside], [phi + step, latch] with constants. */
bool fay_induction(LLVMValueRef phi, uint64_t *start, uint64_t *step, LLVMValueRef *next, LLVMBasicBlockRef *latch)
{
	if (!LLVMIsAPHINode(phi) || LLVMCountIncoming(phi) != 2)
		return false;
	for (unsigned i = 0; i < 2; i++) {
		LLVMValueRef add = LLVMGetIncomingValue(phi, i);

		if (!LLVMIsAInstruction(add) || LLVMGetInstructionOpcode(add) != LLVMAdd || LLVMGetOperand(add, 0) != phi ||
		    !constant_of(LLVMGetOperand(add, 1), step) || !constant_of(LLVMGetIncomingValue(phi, 1 - i), start))
			continue;
		*next = add;
		*latch = LLVMGetIncomingBlock(phi, i);
		return true;
	}
	return false;
}

#define REACH_MAX 256

/* Whether `to` can be reached from `from` without passing `header`. Too many blocks: yes. */
static bool reaches(LLVMBasicBlockRef from, LLVMBasicBlockRef to, LLVMBasicBlockRef header)
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

/*
 * The largest value of an induction variable inside its loop: the exit test is in the header or in the latch, which every
 * round passes.
 */
static bool induction_last(LLVMValueRef phi, uint64_t *first, uint64_t *last)
{
	uint64_t start, step, bound, width;
	LLVMValueRef next, left;
	LLVMBasicBlockRef latch, header = LLVMGetInstructionParent(phi);
	LLVMBasicBlockRef tests[2];
	LLVMIntPredicate predicate;

	if (!fay_induction(phi, &start, &step, &next, &latch) || !step || step > (1u << 30))
		return false;
	width = width_mask(width_of(phi));
	tests[0] = header;
	tests[1] = latch;
	for (int t = 0; t < 2; t++) {
		LLVMValueRef terminator;
		bool stays_on_true;
		uint64_t limit;

		if (!exit_compare(tests[t], &left, &predicate, &bound) || (left != phi && left != next))
			continue;
		terminator = LLVMGetBasicBlockTerminator(tests[t]);
		if (tests[t] == latch) {
			stays_on_true = LLVMGetSuccessor(terminator, 0) == header;
			if (stays_on_true == (LLVMGetSuccessor(terminator, 1) == header))
				continue;
		} else {
			stays_on_true = reaches(LLVMGetSuccessor(terminator, 0), latch, header);
			if (stays_on_true == reaches(LLVMGetSuccessor(terminator, 1), latch, header))
				continue; /* not an exit */
		}
		if (!stays_on_true) { /* invert: the loop goes on when the condition is false */
			switch (predicate) {
			case LLVMIntEQ: predicate = LLVMIntNE; break;
			case LLVMIntUGT: predicate = LLVMIntULE; break;
			case LLVMIntUGE: predicate = LLVMIntULT; break;
			case LLVMIntSGT: predicate = LLVMIntSLE; break;
			case LLVMIntSGE: predicate = LLVMIntSLT; break;
			default: continue;
			}
		}
		if ((predicate == LLVMIntSLT || predicate == LLVMIntSLE) && (bound > width / 2 || start > width / 2))
			continue;
		switch (predicate) { /* limit: the largest value of `left` with which the loop goes on */
		case LLVMIntULT: case LLVMIntSLT:
			if (!bound)
				continue;
			limit = bound - 1;
			break;
		case LLVMIntULE: case LLVMIntSLE:
			limit = bound;
			break;
		case LLVMIntNE:
			if (bound <= start || (bound - start) % step)
				continue;
			limit = bound - step;
			break;
		default:
			continue;
		}
		if (limit > width / 2)
			continue;
		/*
		 * The values are start, start + step, ...: round down to one of them. A test of phi itself sees one more; where the
		 * test comes first, the branch into the body takes that one away again (range_value).
		 */
		*first = start;
		*last = limit > start ? limit - (limit - start) % step : start;
		if (left == phi && limit >= start)
			*last += step;
		return true;
	}
	return false;
}

bool fay_loop_bounded(LLVMBasicBlockRef header, LLVMBasicBlockRef latch)
{
	for (LLVMValueRef i = LLVMGetFirstInstruction(header); i && LLVMIsAPHINode(i); i = LLVMGetNextInstruction(i)) {
		uint64_t first, last, start, step;
		LLVMValueRef next;
		LLVMBasicBlockRef from;

		if (LLVMGetTypeKind(LLVMTypeOf(i)) != LLVMIntegerTypeKind || width_of(i) > 64)
			continue;
		if (fay_induction(i, &start, &step, &next, &from) && from == latch && induction_last(i, &first, &last) &&
		    (last - first) / step <= 65536)
			return true;
	}
	return false;
}

static struct fay_range join(struct fay_range a, struct fay_range b)
{
	return (struct fay_range){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
}

static uint64_t ones_up_to(uint64_t number)
{
	return number ? UINT64_MAX >> __builtin_clzll(number) : 0;
}

static struct fay_range range_binary(LLVMValueRef value, LLVMOpcode opcode, LLVMValueRef at, int depth)
{
	unsigned width = width_of(value);
	struct fay_range a = range_value(LLVMGetOperand(value, 0), at, depth + 1);
	struct fay_range b = range_value(LLVMGetOperand(value, 1), at, depth + 1);
	uint64_t mask = width_mask(width), lo, hi;

	switch (opcode) {
	case LLVMAnd:
		return (struct fay_range){0, a.hi < b.hi ? a.hi : b.hi};
	case LLVMOr:
		return (struct fay_range){a.lo > b.lo ? a.lo : b.lo, ones_up_to(a.hi | b.hi)};
	case LLVMXor:
		return (struct fay_range){0, ones_up_to(a.hi | b.hi)};
	case LLVMURem:
		if (b.lo)
			return (struct fay_range){0, b.hi - 1 < a.hi ? b.hi - 1 : a.hi};
		break;
	case LLVMUDiv:
		if (b.lo)
			return (struct fay_range){a.lo / b.hi, a.hi / b.lo};
		break;
	case LLVMLShr:
		if (b.lo == b.hi && b.lo < width)
			return (struct fay_range){a.lo >> b.lo, a.hi >> b.lo};
		return (struct fay_range){0, a.hi};
	case LLVMShl:
		if (b.lo == b.hi && b.lo < width && a.hi <= mask >> b.lo)
			return (struct fay_range){a.lo << b.lo, a.hi << b.lo};
		break;
	case LLVMMul:
		if (!__builtin_mul_overflow(a.hi, b.hi, &hi) && hi <= mask)
			return (struct fay_range){a.lo * b.lo, hi};
		break;
	case LLVMAdd:
		if (!__builtin_add_overflow(a.hi, b.hi, &hi) && hi <= mask)
			return (struct fay_range){a.lo + b.lo, hi};
		/* x + (-c) with x at least c */
		if (b.lo == b.hi && b.lo > mask / 2 && a.lo >= ((~b.lo + 1) & mask)) {
			lo = (~b.lo + 1) & mask;
			return (struct fay_range){a.lo - lo, a.hi - lo};
		}
		break;
	case LLVMSub:
		if (a.lo >= b.hi)
			return (struct fay_range){a.lo - b.hi, a.hi - b.lo};
		break;
	default:
		break;
	}
	return full(width);
}

static struct fay_range range_call(LLVMValueRef value, LLVMValueRef at, int depth)
{
	unsigned width = width_of(value);
	const char *name = fay_callee(value);
	struct fay_range a, b;

	if (!name)
		return full(width);
	if (!__builtin_strncmp(name, "llvm.ct", 7))
		return (struct fay_range){0, width};
	if (__builtin_strncmp(name, "llvm.um", 7))
		return full(width);
	a = range_value(LLVMGetOperand(value, 0), at, depth + 1);
	b = range_value(LLVMGetOperand(value, 1), at, depth + 1);
	if (!__builtin_strncmp(name, "llvm.umin", 9))
		return (struct fay_range){a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
	if (!__builtin_strncmp(name, "llvm.umax", 9))
		return (struct fay_range){a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
	return full(width);
}

#define LEAVES_MAX 48

/* The values that a web of phi and select can take, each with the place where it is chosen. */
struct web {
	unsigned count;
	struct {
		LLVMValueRef value, at;
	} entry[LEAVES_MAX];
};

static bool is_web(LLVMValueRef v)
{
	return LLVMIsAPHINode(v) || LLVMIsASelectInst(v);
}

static bool web_add(struct web *w, LLVMValueRef value, LLVMValueRef at)
{
	for (unsigned i = 0; i < w->count; i++)
		if (w->entry[i].value == value && (is_web(value) || w->entry[i].at == at))
			return true;
	if (w->count == LEAVES_MAX)
		return false;
	w->entry[w->count].value = value;
	w->entry[w->count++].at = at;
	return true;
}

/* Phi and select only choose, so the range of the web is the join over what enters it, cycles or not. */
static struct fay_range range_web(LLVMValueRef root, LLVMValueRef at, int depth)
{
	struct fay_range result = {UINT64_MAX, 0};
	struct web w = {1, {{root, at}}};

	if (depth > 6)
		return full(width_of(root));
	for (unsigned i = 0; i < w.count; i++) {
		LLVMValueRef v = w.entry[i].value;
		bool fits = true;
		uint64_t first, last;

		if (at && LLVMIsAPHINode(v) && induction_last(v, &first, &last)) {
			result = join(result, (struct fay_range){first, last});
		} else if (LLVMIsAPHINode(v)) {
			for (unsigned n = 0; n < LLVMCountIncoming(v) && fits; n++)
				fits = web_add(&w, LLVMGetIncomingValue(v, n),
					       at ? LLVMGetBasicBlockTerminator(LLVMGetIncomingBlock(v, n)) : NULL);
		} else if (LLVMIsASelectInst(v)) {
			fits = web_add(&w, LLVMGetOperand(v, 1), at ? v : NULL) && web_add(&w, LLVMGetOperand(v, 2), at ? v : NULL);
		} else if (!LLVMIsUndef(v) && !LLVMIsPoison(v)) {
			result = join(result, range_value(v, w.entry[i].at, depth + 2));
		}
		if (!fits)
			return full(width_of(root));
	}
	return result.lo <= result.hi ? result : full(width_of(root));
}

/* select (v < c), v, c: the guards' own clamp */
static struct fay_range range_select(LLVMValueRef select, LLVMValueRef at, int depth)
{
	LLVMValueRef condition = LLVMGetOperand(select, 0), bound = LLVMGetOperand(select, 2);
	uint64_t number;

	if (LLVMIsAICmpInst(condition) && constant_of(bound, &number) && LLVMGetOperand(condition, 1) == bound &&
	    LLVMGetOperand(condition, 0) == LLVMGetOperand(select, 1) && LLVMGetICmpPredicate(condition) == LLVMIntULT) {
		struct fay_range r = range_value(LLVMGetOperand(select, 1), at, depth + 1);

		return (struct fay_range){r.lo < number ? r.lo : number, r.hi < number ? r.hi : number};
	}
	return range_web(select, at, depth);
}

static struct fay_range range_definition(LLVMValueRef value, LLVMValueRef at, int depth)
{
	unsigned width = width_of(value);
	struct fay_range source;
	uint64_t number;

	if (constant_of(value, &number))
		return (struct fay_range){number, number};
	if (!LLVMIsAInstruction(value) || depth > DEPTH_MAX)
		return full(width);
	switch (LLVMGetInstructionOpcode(value)) {
	case LLVMZExt:
		return width_of(LLVMGetOperand(value, 0)) > 64 ? full(width) : range_value(LLVMGetOperand(value, 0), at, depth + 1);
	case LLVMSExt:
		source = range_value(LLVMGetOperand(value, 0), at, depth + 1);
		return source.hi <= width_mask(width_of(LLVMGetOperand(value, 0))) / 2 ? source : full(width);
	case LLVMTrunc:
		if (width_of(LLVMGetOperand(value, 0)) > 64)
			return full(width);
		source = range_value(LLVMGetOperand(value, 0), at, depth + 1);
		return source.hi <= width_mask(width) ? source : full(width);
	case LLVMFreeze:
		return range_value(LLVMGetOperand(value, 0), at, depth + 1);
	case LLVMSelect:
		return range_select(value, at, depth);
	case LLVMPHI:
		return range_web(value, at, depth);
	case LLVMCall:
		return range_call(value, at, depth);
	case LLVMAnd: case LLVMOr: case LLVMXor: case LLVMURem: case LLVMUDiv: case LLVMLShr: case LLVMShl: case LLVMMul:
	case LLVMAdd: case LLVMSub:
		return range_binary(value, LLVMGetInstructionOpcode(value), at, depth);
	default:
		return full(width);
	}
}

static struct fay_range narrow(struct fay_range r, LLVMIntPredicate predicate, uint64_t bound, bool holds)
{
	struct fay_range n = r;

	switch (predicate) {
	case LLVMIntEQ:
		if (holds)
			n = (struct fay_range){bound, bound};
		else if (r.lo == bound)
			n.lo++;
		break;
	case LLVMIntNE:
		if (!holds)
			n = (struct fay_range){bound, bound};
		else if (r.lo == bound)
			n.lo++;
		break;
	case LLVMIntULT:
		if (holds && bound)
			n.hi = r.hi < bound - 1 ? r.hi : bound - 1;
		else if (!holds)
			n.lo = r.lo > bound ? r.lo : bound;
		break;
	case LLVMIntULE:
		if (holds)
			n.hi = r.hi < bound ? r.hi : bound;
		break;
	case LLVMIntUGT:
		if (!holds)
			n.hi = r.hi < bound ? r.hi : bound;
		else if (bound != UINT64_MAX)
			n.lo = r.lo > bound + 1 ? r.lo : bound + 1;
		break;
	case LLVMIntUGE:
		if (!holds && bound)
			n.hi = r.hi < bound - 1 ? r.hi : bound - 1;
		break;
	case LLVMIntSLT: /* the caller has made sure that neither side is negative */
		return narrow(r, LLVMIntULT, bound, holds);
	case LLVMIntSLE:
		return narrow(r, LLVMIntULE, bound, holds);
	case LLVMIntSGT:
		return narrow(r, LLVMIntUGT, bound, holds);
	case LLVMIntSGE:
		return narrow(r, LLVMIntUGE, bound, holds);
	default:
		break;
	}
	return n.lo <= n.hi ? n : r;
}

static LLVMBasicBlockRef single_predecessor(LLVMBasicBlockRef block)
{
	LLVMBasicBlockRef found = NULL;

	for (LLVMUseRef u = LLVMGetFirstUse(LLVMBasicBlockAsValue(block)); u; u = LLVMGetNextUse(u)) {
		LLVMValueRef user = LLVMGetUser(u);

		if (!LLVMIsAInstruction(user) || LLVMIsAPHINode(user))
			continue;
		if (found)
			return NULL;
		found = LLVMGetInstructionParent(user);
	}
	return found;
}

/* What the branches on the way to `at` say about `value` itself. */
static struct fay_range range_value(LLVMValueRef value, LLVMValueRef at, int depth)
{
	struct fay_range r = range_definition(value, at, depth);
	LLVMBasicBlockRef block = at && LLVMIsAInstruction(at) ? LLVMGetInstructionParent(at) : NULL;

	if (LLVMIsAConstantInt(value) || depth > DEPTH_MAX)
		return r;
	for (int i = 0; block && i < CHAIN_MAX; i++) {
		LLVMBasicBlockRef before = single_predecessor(block);
		LLVMIntPredicate predicate;
		LLVMValueRef left;
		uint64_t bound;

		if (before && exit_compare(before, &left, &predicate, &bound) && left == value &&
		    (predicate < LLVMIntSGT || (r.hi <= width_mask(width_of(value)) / 2 && bound <= width_mask(width_of(value)) / 2)))
			r = narrow(r, predicate, bound,
				   LLVMGetSuccessor(LLVMGetBasicBlockTerminator(before), 0) == block);
		block = before;
	}
	return r;
}

struct fay_range fay_range_of(LLVMValueRef value, LLVMValueRef at)
{
	return range_value(value, at, 0);
}
