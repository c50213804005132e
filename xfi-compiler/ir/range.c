/* SPDX-License-Identifier: MIT */
/*
 * Unsigned ranges of IR integers, from the value's own definition and from the branches that must
 * have been taken to get there. Only facts that a machine-code analysis finds again with intervals
 * and known bits are used; whatever is too clever here comes back as a refusal by the verifier.
 * Depth-limited, so the cost is bounded for any input.
 */
#include "ir.h"

#define DEPTH_MAX 12
#define CHAIN_MAX 24

static _Thread_local const struct fay_flow *flow;

static struct fay_range range_value(LLVMValueRef value, LLVMValueRef at, int depth);

void fay_range_use(const struct fay_flow *f)
{
	flow = f;
}

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
	return (struct fay_range){ 0, width_mask(width) };
}

static bool constant_of(LLVMValueRef value, uint64_t *number)
{
	if (!LLVMIsAConstantInt(value) || width_of(value) > 64)
		return false;
	*number = LLVMConstIntGetZExtValue(value);
	return true;
}

static struct fay_range join(struct fay_range a, struct fay_range b)
{
	return (struct fay_range){ a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi };
}

static uint64_t ones_up_to(uint64_t number)
{
	return number ? UINT64_MAX >> __builtin_clzll(number) : 0;
}

static struct fay_range range_binary(LLVMValueRef value, LLVMOpcode opcode, LLVMValueRef at,
				     int depth)
{
	unsigned width = width_of(value);
	struct fay_range a = range_value(LLVMGetOperand(value, 0), at, depth + 1);
	struct fay_range b = range_value(LLVMGetOperand(value, 1), at, depth + 1);
	uint64_t mask = width_mask(width), lo, hi;

	switch (opcode) {
	case LLVMAnd: return (struct fay_range){ 0, a.hi < b.hi ? a.hi : b.hi };
	case LLVMOr:
		return (struct fay_range){ a.lo > b.lo ? a.lo : b.lo, ones_up_to(a.hi | b.hi) };
	case LLVMXor: return (struct fay_range){ 0, ones_up_to(a.hi | b.hi) };
	case LLVMURem:
		/* By a constant it becomes multiplications, in whose result a proof does not see
		 * the remainder (guard.c clamps it). */
		if (b.lo == b.hi && (b.lo & (b.lo - 1)) && a.hi >= b.lo)
			break;
		if (b.lo)
			return (struct fay_range){ 0, b.hi - 1 < a.hi ? b.hi - 1 : a.hi };
		break;
	case LLVMUDiv:
		if (b.hi) /* there is no quotient by 0 */
			return (struct fay_range){ a.lo / b.hi, a.hi / (b.lo ? b.lo : 1) };
		break;
	case LLVMLShr:
		if (b.lo == b.hi && b.lo < width)
			return (struct fay_range){ a.lo >> b.lo, a.hi >> b.lo };
		return (struct fay_range){ 0, a.hi };
	case LLVMShl:
		if (b.lo == b.hi && b.lo < width && a.hi <= mask >> b.lo)
			return (struct fay_range){ a.lo << b.lo, a.hi << b.lo };
		break;
	case LLVMMul:
		if (!__builtin_mul_overflow(a.hi, b.hi, &hi) && hi <= mask)
			return (struct fay_range){ a.lo * b.lo, hi };
		break;
	case LLVMAdd:
		if (!__builtin_add_overflow(a.hi, b.hi, &hi) && hi <= mask)
			return (struct fay_range){ a.lo + b.lo, hi };
		/* x + (-c) with x at least c */
		if (b.lo == b.hi && b.lo > mask / 2 && a.lo >= ((~b.lo + 1) & mask)) {
			lo = (~b.lo + 1) & mask;
			return (struct fay_range){ a.lo - lo, a.hi - lo };
		}
		break;
	case LLVMSub:
		if (a.lo >= b.hi)
			return (struct fay_range){ a.lo - b.hi, a.hi - b.lo };
		break;
	default: break;
	}
	return full(width);
}

static struct fay_range range_call(LLVMValueRef value, LLVMValueRef at, int depth)
{
	unsigned width = width_of(value);
	const char *name = fay_callee(value);
	struct fay_range a, b;
	uint64_t half = width_mask(width) / 2;

	if (!name)
		return full(width);
	if (!__builtin_strncmp(name, "llvm.ctlz", 9)) {
		a = range_value(LLVMGetOperand(value, 0), at, depth + 1);
		return (struct fay_range){ 0, a.lo ? (unsigned)__builtin_clzll(a.lo) - (64 - width)
						   : width };
	}
	if (!__builtin_strncmp(name, "llvm.ct", 7))
		return (struct fay_range){ 0, width };
	if (__builtin_strncmp(name, "llvm.um", 7) && __builtin_strncmp(name, "llvm.smin.", 10) &&
	    __builtin_strncmp(name, "llvm.smax.", 10))
		return full(width);
	a = range_value(LLVMGetOperand(value, 0), at, depth + 1);
	b = range_value(LLVMGetOperand(value, 1), at, depth + 1);
	if (!__builtin_strncmp(name, "llvm.umin", 9))
		return (struct fay_range){ a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi };
	if (!__builtin_strncmp(name, "llvm.umax", 9))
		return (struct fay_range){ a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi };
	if (a.hi <= half && b.hi <= half) {
		if (name[7] == 'i')
			return (struct fay_range){ a.lo < b.lo ? a.lo : b.lo,
						   a.hi < b.hi ? a.hi : b.hi };
		return (struct fay_range){ a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi };
	}
	/* The larger of anything and what is not negative is not negative. */
	if (name[7] == 'a' && (a.hi <= half || b.hi <= half))
		return (struct fay_range){ a.hi <= half ? a.lo : b.lo, half };
	return full(width);
}

static struct fay_range range_branch(struct fay_range r, LLVMValueRef value,
				     LLVMBasicBlockRef before, LLVMBasicBlockRef block, int depth);

#define LEAVES_MAX 48

/* The values that a web of phi and select can take, each with the place where it is chosen. */
struct web {
	unsigned count;
	struct {
		LLVMValueRef value, at;
		/* chosen on the way from at's block to here; NULL: by a select */
		LLVMBasicBlockRef to;
	} entry[LEAVES_MAX];
};

static bool is_web(LLVMValueRef v)
{
	return LLVMIsAPHINode(v) || LLVMIsASelectInst(v);
}

static bool web_add(struct web *w, LLVMValueRef value, LLVMValueRef at, LLVMBasicBlockRef to)
{
	for (unsigned i = 0; i < w->count; i++)
		if (w->entry[i].value == value && (is_web(value) || w->entry[i].at == at))
			return true;
	if (w->count == LEAVES_MAX)
		return false;
	w->entry[w->count].value = value;
	w->entry[w->count].to = to;
	w->entry[w->count++].at = at;
	return true;
}

/* Phi and select only choose, so the range of the web is the join over what enters it, cycles or
 * not. */
static struct fay_range range_web(LLVMValueRef root, LLVMValueRef at, int depth)
{
	struct fay_range result = { UINT64_MAX, 0 };
	struct web w = { 1, { { root, at, NULL } } };

	if (depth > 6)
		return full(width_of(root));
	for (unsigned i = 0; i < w.count; i++) {
		LLVMValueRef v = w.entry[i].value;
		bool fits = true;
		struct fay_range counter;
		uint64_t step;

		/* what the branch on this edge says may be all that is needed */
		if (at && w.entry[i].to && LLVMIsAInstruction(v)) {
			struct fay_range on_edge = range_branch(
				full(width_of(v)), v, LLVMGetInstructionParent(w.entry[i].at),
				w.entry[i].to, depth);

			if (on_edge.hi < width_mask(width_of(v)) / 2) {
				if (!is_web(v))
					on_edge = range_branch(
						range_value(v, w.entry[i].at, depth + 2), v,
						LLVMGetInstructionParent(w.entry[i].at),
						w.entry[i].to, depth);
				result = join(result, on_edge);
				continue;
			}
		}
		if (at && LLVMIsAPHINode(v) && fay_counter_range(v, depth + 1, &counter, &step)) {
			result = join(result, counter);
		} else if (LLVMIsAPHINode(v)) {
			for (unsigned n = 0; n < LLVMCountIncoming(v) && fits; n++)
				fits = web_add(
					&w, LLVMGetIncomingValue(v, n),
					at ? LLVMGetBasicBlockTerminator(LLVMGetIncomingBlock(v, n))
					   : NULL,
					LLVMGetInstructionParent(v));
		} else if (LLVMIsASelectInst(v)) {
			fits = web_add(&w, LLVMGetOperand(v, 1), at ? v : NULL, NULL) &&
			       web_add(&w, LLVMGetOperand(v, 2), at ? v : NULL, NULL);
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

	if (LLVMIsAICmpInst(condition) && constant_of(bound, &number) &&
	    LLVMGetOperand(condition, 1) == bound &&
	    LLVMGetOperand(condition, 0) == LLVMGetOperand(select, 1) &&
	    LLVMGetICmpPredicate(condition) == LLVMIntULT) {
		struct fay_range r = range_value(LLVMGetOperand(select, 1), at, depth + 1);

		return (struct fay_range){ r.lo < number ? r.lo : number,
					   r.hi < number ? r.hi : number };
	}
	return range_web(select, at, depth);
}

/* How many numbers a table may have for the verifier to look at them one by one. */
#define TABLE_MAX 64u

/* The numbers of a constant table, where one of them is read whole. */
static struct fay_range range_load(LLVMValueRef load)
{
	LLVMValueRef address = LLVMGetOperand(load, 0),
		     table = LLVMIsAGetElementPtrInst(address) ? LLVMGetOperand(address, 0) : NULL,
		     numbers;
	LLVMTypeRef number = LLVMTypeOf(load),
		    type = table ? LLVMGetGEPSourceElementType(address) : NULL;
	struct fay_range r = full(width_of(load));
	uint64_t n;

	if (!table || !LLVMIsAGlobalVariable(table) || !LLVMIsGlobalConstant(table) ||
	    LLVMIsDeclaration(table))
		return r;
	numbers = LLVMGetInitializer(table);
	if (LLVMGetTypeKind(type) == LLVMArrayTypeKind)
		type = LLVMGetElementType(type);
	if (!LLVMIsAConstantDataArray(numbers) || type != number ||
	    LLVMGetElementType(LLVMTypeOf(numbers)) != number ||
	    LLVMGetArrayLength2(LLVMTypeOf(numbers)) > TABLE_MAX)
		return r;
	r = (struct fay_range){ UINT64_MAX, 0 };
	for (unsigned i = 0; i < LLVMGetArrayLength2(LLVMTypeOf(numbers)); i++) {
		n = LLVMConstIntGetZExtValue(LLVMGetAggregateElement(numbers, i));
		r.lo = n < r.lo ? n : r.lo;
		r.hi = n > r.hi ? n : r.hi;
	}
	return r;
}

static struct fay_range range_definition(LLVMValueRef value, LLVMValueRef at, int depth)
{
	unsigned width = width_of(value);
	struct fay_range source;
	uint64_t number;

	if (constant_of(value, &number))
		return (struct fay_range){ number, number };
	if (!LLVMIsAInstruction(value) || depth > DEPTH_MAX)
		return full(width);
	switch (LLVMGetInstructionOpcode(value)) {
	case LLVMZExt:
		return width_of(LLVMGetOperand(value, 0)) > 64
			       ? full(width)
			       : range_value(LLVMGetOperand(value, 0), at, depth + 1);
	case LLVMSExt:
		source = range_value(LLVMGetOperand(value, 0), at, depth + 1);
		return source.hi <= width_mask(width_of(LLVMGetOperand(value, 0))) / 2
			       ? source
			       : full(width);
	case LLVMTrunc:
		if (width_of(LLVMGetOperand(value, 0)) > 64)
			return full(width);
		source = range_value(LLVMGetOperand(value, 0), at, depth + 1);
		return source.hi <= width_mask(width) ? source : full(width);
	case LLVMFreeze: return range_value(LLVMGetOperand(value, 0), at, depth + 1);
	case LLVMSelect: return range_select(value, at, depth);
	case LLVMPHI: return range_web(value, at, depth);
	case LLVMCall: return range_call(value, at, depth);
	case LLVMLoad: return at && width <= 64 ? range_load(value) : full(width);
	case LLVMAnd:
	case LLVMOr:
	case LLVMXor:
	case LLVMURem:
	case LLVMUDiv:
	case LLVMLShr:
	case LLVMShl:
	case LLVMMul:
	case LLVMAdd:
	case LLVMSub: return range_binary(value, LLVMGetInstructionOpcode(value), at, depth);
	default: return full(width);
	}
}

/* What `value predicate b` says about a value in r. */
static struct fay_range narrow(struct fay_range r, LLVMIntPredicate predicate, struct fay_range b)
{
	struct fay_range n = r;

	switch (predicate) {
	case LLVMIntEQ:
		n = (struct fay_range){ r.lo > b.lo ? r.lo : b.lo, r.hi < b.hi ? r.hi : b.hi };
		break;
	case LLVMIntNE:
		if (b.lo == b.hi && r.lo == b.lo)
			n.lo++;
		break;
	case LLVMIntULT:
	case LLVMIntSLT:
		if (b.hi && b.hi - 1 < r.hi)
			n.hi = b.hi - 1;
		break;
	case LLVMIntULE:
	case LLVMIntSLE: n.hi = r.hi < b.hi ? r.hi : b.hi; break;
	case LLVMIntUGT:
	case LLVMIntSGT:
		if (b.lo != UINT64_MAX && b.lo + 1 > r.lo)
			n.lo = b.lo + 1;
		break;
	case LLVMIntUGE:
	case LLVMIntSGE: n.lo = r.lo > b.lo ? r.lo : b.lo; break;
	default: break;
	}
	return n.lo <= n.hi ? n : r;
}

/* The block from which alone `block` is entered; edges back from within its own loop do not count.
 * */
static LLVMBasicBlockRef single_predecessor(LLVMBasicBlockRef block)
{
	LLVMBasicBlockRef found = NULL;

	for (LLVMUseRef u = LLVMGetFirstUse(LLVMBasicBlockAsValue(block)); u;
	     u = LLVMGetNextUse(u)) {
		LLVMValueRef user = LLVMGetUser(u);

		if (!LLVMIsAInstruction(user) || LLVMIsAPHINode(user))
			continue;
		if (flow && fay_flow_dominates(flow, block, LLVMGetInstructionParent(user)))
			continue;
		if (found)
			return NULL;
		found = LLVMGetInstructionParent(user);
	}
	return found;
}

/* `value + c < d`, which is how "value lies between" is tested: its range on the side of the branch
 * where `holds`. */
static bool range_between(LLVMBasicBlockRef before, LLVMValueRef value, bool first_side,
			  struct fay_range *r)
{
	LLVMValueRef terminator = LLVMGetBasicBlockTerminator(before), condition, sum;
	uint64_t mask = width_mask(width_of(value)), c, d, lo, hi;
	LLVMIntPredicate predicate;

	if (!terminator || !LLVMIsABranchInst(terminator) || !LLVMIsConditional(terminator))
		return false;
	condition = LLVMGetCondition(terminator);
	if (!LLVMIsAICmpInst(condition) || !constant_of(LLVMGetOperand(condition, 1), &d))
		return false;
	sum = LLVMGetOperand(condition, 0);
	if (!LLVMIsAInstruction(sum) || LLVMGetInstructionOpcode(sum) != LLVMAdd ||
	    LLVMGetOperand(sum, 0) != value || !constant_of(LLVMGetOperand(sum, 1), &c))
		return false;
	predicate = LLVMGetICmpPredicate(condition);
	if (!first_side)
		predicate = fay_predicate_not(predicate);
	switch (predicate) { /* the sum's range, then the value's */
	case LLVMIntULT:
		lo = 0;
		hi = d - 1;
		break;
	case LLVMIntULE:
		lo = 0;
		hi = d;
		break;
	case LLVMIntUGT:
		lo = d + 1;
		hi = mask;
		break;
	case LLVMIntUGE:
		lo = d;
		hi = mask;
		break;
	default: return false;
	}
	*r = (struct fay_range){ (lo - c) & mask, (hi - c) & mask };
	return r->lo <= r->hi;
}

static LLVMBasicBlockRef dominator_of(LLVMBasicBlockRef block)
{
	unsigned i = flow ? fay_flow_index(flow, block) : 0;

	return flow && i && i < flow->count ? flow->blocks[flow->idom[i]] : NULL;
}

/* What is known of `value` after the branch at the end of `before` that leads to `block`. */
static struct fay_range range_branch(struct fay_range r, LLVMValueRef value,
				     LLVMBasicBlockRef before, LLVMBasicBlockRef block, int depth)
{
	LLVMValueRef branch = LLVMGetBasicBlockTerminator(before);
	uint64_t half = width_mask(width_of(value)) / 2;
	struct fay_range between;
	struct fay_compare c;

	if (range_between(before, value,
			  LLVMGetNumSuccessors(branch) == 2 && LLVMGetSuccessor(branch, 0) == block,
			  &between)) {
		if (between.lo > r.lo && between.lo <= r.hi)
			r.lo = between.lo;
		if (between.hi < r.hi && between.hi >= r.lo)
			r.hi = between.hi;
	} else if (fay_exit_compare(before, value, &c)) {
		struct fay_range b = range_value(c.right, branch, depth + 3);

		LLVMIntPredicate p = LLVMGetSuccessor(branch, 0) == block
					     ? c.predicate
					     : fay_predicate_not(c.predicate);

		/* Above what is not negative: not negative. */
		if ((p == LLVMIntSGT || p == LLVMIntSGE) && b.hi <= half)
			return narrow((struct fay_range){ r.lo <= half ? r.lo : 0,
							  r.hi < half ? r.hi : half },
				      p, b);
		/* A signed comparison is as good as an unsigned one if neither side is negative. */
		if (c.predicate < LLVMIntSGT || (r.hi <= half && b.hi <= half))
			r = narrow(r, p, b);
	}
	return r;
}

/* What the branches on the way to `at` say about `value` itself. */
static struct fay_range range_value(LLVMValueRef value, LLVMValueRef at, int depth)
{
	struct fay_range r = range_definition(value, at, depth);
	LLVMBasicBlockRef block =
		at && LLVMIsAInstruction(at) ? LLVMGetInstructionParent(at) : NULL;

	if (LLVMIsAConstantInt(value) || depth > DEPTH_MAX)
		return r;
	for (int i = 0; block && i < CHAIN_MAX; i++) {
		LLVMBasicBlockRef before = single_predecessor(block);

		r = before ? range_branch(r, value, before, block, depth) : r;
		block = before ? before : dominator_of(block);
	}
	return r;
}

struct fay_range fay_range_at(LLVMValueRef value, LLVMValueRef at, int depth)
{
	return range_value(value, at, depth);
}

struct fay_range fay_range_of(LLVMValueRef value, LLVMValueRef at)
{
	return range_value(value, at, 0);
}
