/* SPDX-License-Identifier: MIT */
/*
 * Values that the machine code shows to be what the IR knows they are. The code generator is free
 * to leave the upper bits of a register as they were, to compare a part of it, or to choose between
 * two addresses instead of two values; the program stays right, and its proof is gone. So, after
 * all passes on IR:
 *
 *   choices of 8 to 32 bits    that become part of an address are made in 64 bits: `cmp %cx, ...;
 *				cmov; movzx` bounds a part of a register only
 *   truth values               that become numbers are written whole: as a number added to an
 *				address they would be an addition with carry
 *   choices of two loads       stay so: the code generator would load through a pointer to one of
 *				two regions
 *   loads of 8 and 16 bits     from the stack are not made longer, over bytes that were not written
 *   loops that count down      carry the number that they compare with 0
 *
 * The means is an assembly statement without text (fay_hide): no instruction, but the code
 * generator has to have the value in a register there, whole, and draws no conclusions from what it
 * was made of.
 */
#include <string.h>

#include "lower.h"

static unsigned width_of(LLVMValueRef v)
{
	return LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMIntegerTypeKind
		       ? LLVMGetIntTypeWidth(LLVMTypeOf(v))
		       : 0;
}

static bool is_narrow(LLVMValueRef v)
{
	unsigned width = width_of(v);

	return width > 1 && width <= 32;
}

/* Places the builder behind the definition of v, an instruction. */
static void position_after(LLVMBuilderRef b, LLVMValueRef v)
{
	LLVMValueRef next = LLVMGetNextInstruction(v);

	while (LLVMIsAPHINode(next))
		next = LLVMGetNextInstruction(next);
	LLVMPositionBuilderBefore(b, next);
}

/* Puts `wide`, of 64 bits, for v, a narrower number: cut to size, or as it is where it would only
 * be widened again. */
static void replace_by_wide(LLVMBuilderRef b, LLVMValueRef v, LLVMValueRef wide)
{
	LLVMUseRef next;

	for (LLVMUseRef u = LLVMGetFirstUse(v); u; u = next) {
		LLVMValueRef user = LLVMGetUser(u);

		next = LLVMGetNextUse(u);
		if (!LLVMIsAZExtInst(user))
			continue;
		/* what stays of it is dead; the caller may be about to look at it */
		LLVMPositionBuilderBefore(b, user);
		LLVMReplaceAllUsesWith(user, LLVMBuildIntCast2(b, wide, LLVMTypeOf(user), 0, ""));
	}
	if (LLVMGetFirstUse(v)) {
		position_after(b, wide);
		LLVMReplaceAllUsesWith(v, LLVMBuildTrunc(b, wide, LLVMTypeOf(v), ""));
	}
	LLVMInstructionEraseFromParent(v);
}

/* ---- choices that become part of an address ---- */

/* x, unsigned, as a number of 64 bits that the code generator takes for any; a constant as it is.
 * */
static LLVMValueRef widen(LLVMBuilderRef b, LLVMValueRef x)
{
	LLVMTypeRef i64 = LLVMInt64TypeInContext(LLVMGetTypeContext(LLVMTypeOf(x)));

	if (LLVMIsAConstantInt(x))
		return LLVMConstInt(i64, LLVMConstIntGetZExtValue(x), 0);
	return fay_hide(b, LLVMBuildZExt(b, x, i64, ""));
}

/* The condition of a choice between x and y; a comparison of x or y itself, unsigned, is made of
 * what x and y have become. */
static LLVMValueRef widen_condition(LLVMBuilderRef b, LLVMValueRef condition,
				    const LLVMValueRef narrow[2], const LLVMValueRef wide[2])
{
	LLVMValueRef side[2];

	if (!LLVMIsAICmpInst(condition) || LLVMGetICmpPredicate(condition) >= LLVMIntSGT)
		return condition;
	for (unsigned s = 0; s < 2; s++) {
		LLVMValueRef operand = LLVMGetOperand(condition, s);

		side[s] = operand == narrow[0] ? wide[0] : operand == narrow[1] ? wide[1] : NULL;
		if (!side[s] && LLVMIsAConstantInt(operand) && is_narrow(operand))
			side[s] = widen(b, operand);
	}
	return side[0] && side[1]
		       ? LLVMBuildICmp(b, LLVMGetICmpPredicate(condition), side[0], side[1], "")
		       : condition;
}

/* Whether a choice is made by comparing one of the two, unsigned: a clamp. */
static bool compares_own(LLVMValueRef select)
{
	LLVMValueRef condition = LLVMGetOperand(select, 0);

	if (!LLVMIsAICmpInst(condition) || LLVMGetICmpPredicate(condition) >= LLVMIntSGT)
		return false;
	for (unsigned s = 0; s < 2; s++)
		for (unsigned o = 1; o < 3; o++)
			if (!LLVMIsAConstant(LLVMGetOperand(condition, s)) &&
			    LLVMGetOperand(condition, s) == LLVMGetOperand(select, o))
				return true;
	return false;
}

static bool is_call_of(LLVMValueRef v, const char *prefix)
{
	const char *name =
		LLVMIsACallInst(v) && LLVMIsAFunction(LLVMGetCalledValue(v)) ? fay_callee(v) : NULL;

	return name && !strncmp(name, prefix, strlen(prefix));
}

static void widen_choice(LLVMBuilderRef b, LLVMValueRef i)
{
	bool select = LLVMIsASelectInst(i), minimum = is_call_of(i, "llvm.umin."),
	     maximum = is_call_of(i, "llvm.umax.");
	LLVMValueRef narrow[2], wide[2], condition;

	if (!is_narrow(i) || (!select && !minimum && !maximum) || !fay_feeds_address(i))
		return;
	/* the register is written whole, whichever it is */
	if (select && width_of(i) == 32 && !compares_own(i))
		return;
	LLVMPositionBuilderBefore(b, i);
	for (unsigned s = 0; s < 2; s++) {
		narrow[s] = LLVMGetOperand(i, s + select);
		wide[s] = widen(b, narrow[s]);
	}
	condition =
		select ? widen_condition(b, LLVMGetOperand(i, 0), narrow, wide)
		       : LLVMBuildICmp(b, minimum ? LLVMIntULT : LLVMIntUGT, wide[0], wide[1], "");
	replace_by_wide(b, i, LLVMBuildSelect(b, condition, wide[0], wide[1], "choice"));
}

/*
 * x | c that is x + c, because x is below all that c has set, becomes part of an address as a sum
 * only.
 */
static void add_disjoint(const struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef i)
{
	LLVMValueRef x = LLVMGetOperand(i, 0), c = LLVMGetOperand(i, 1), sum;
	uint64_t bits =
		LLVMIsAConstantInt(c) && width_of(i) <= 64 ? LLVMConstIntGetZExtValue(c) : 0;

	if (!bits || !fay_feeds_address(i) ||
	    fay_range_of(x, unit->confined ? NULL : i).hi >= (bits & -bits))
		return;
	LLVMPositionBuilderBefore(b, i);
	sum = LLVMBuildNUWAdd(b, x, c, "");
	LLVMReplaceAllUsesWith(i, sum);
	LLVMInstructionEraseFromParent(i);
}

/* ---- truth values ---- */

/* The number that a truth value becomes. */
static void widen_truth(LLVMBuilderRef b, LLVMValueRef cast)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(LLVMGetTypeContext(LLVMTypeOf(cast))),
		    type = LLVMTypeOf(cast);
	LLVMValueRef whole;

	if (width_of(cast) < 8 || width_of(cast) > 64 ||
	    !LLVMIsAInstruction(LLVMGetOperand(cast, 0)))
		return;
	LLVMPositionBuilderBefore(b, cast);
	whole = fay_hide(b, LLVMBuildZExt(b, LLVMGetOperand(cast, 0), i32, ""));
	whole = LLVMBuildIntCast2(b, whole, type, 0, "");
	LLVMReplaceAllUsesWith(cast, LLVMIsASExtInst(cast) ? LLVMBuildNeg(b, whole, "") : whole);
	LLVMInstructionEraseFromParent(cast);
}

/* ---- choices of two loads ---- */

static LLVMValueRef object_of(LLVMValueRef pointer)
{
	while (LLVMIsAGetElementPtrInst(pointer) ||
	       (LLVMIsAConstantExpr(pointer) && LLVMGetConstOpcode(pointer) == LLVMGetElementPtr))
		pointer = LLVMGetOperand(pointer, 0);
	return pointer;
}

static void keep_loads_apart(LLVMBuilderRef b, LLVMValueRef select)
{
	LLVMValueRef one = LLVMGetOperand(select, 1), other = LLVMGetOperand(select, 2), hidden;
	LLVMTypeRef type = LLVMTypeOf(select);

	if (!LLVMIsALoadInst(one) || !LLVMIsALoadInst(other) || !width_of(one) ||
	    width_of(one) > 64 ||
	    object_of(LLVMGetOperand(one, 0)) == object_of(LLVMGetOperand(other, 0)))
		return;
	LLVMPositionBuilderBefore(b, select);
	if (width_of(one) >= 32)
		hidden = fay_hide(b, one);
	else
		hidden = LLVMBuildTrunc(b, widen(b, one), type, "");
	LLVMSetOperand(select, 1, hidden);
}

/* ---- loads of 8 and 16 bits ---- */

/*
 * Where the alignment says that it cannot fault, the code generator loads four bytes instead of one
 * or two and ignores the rest. On the stack these may not have been written; it knows the alignment
 * of constant places there.
 */
static void load_no_more(struct fay_unit *unit, LLVMValueRef load)
{
	struct fay_address a;

	if (width_of(load) < 8 || width_of(load) > 16)
		return;
	LLVMSetAlignment(load, 1);
	if (fay_trace(unit, LLVMGetOperand(load, 0), &a) && LLVMIsAAllocaInst(a.base) && !a.terms &&
	    !(a.constant & 1))
		LLVMSetVolatile(load, 1);
}

/* ---- loops that count down ---- */

/* Whether the block ends with a branch that compares v with 0, for being equal to it. */
static bool tests_zero(LLVMBasicBlockRef block, LLVMValueRef v)
{
	LLVMValueRef terminator = LLVMGetBasicBlockTerminator(block), condition;

	if (!LLVMIsABranchInst(terminator) || !LLVMIsConditional(terminator))
		return false;
	condition = LLVMGetCondition(terminator);
	return LLVMIsAICmpInst(condition) && LLVMGetOperand(condition, 0) == v &&
	       LLVMIsNull(LLVMGetOperand(condition, 1)) &&
	       (LLVMGetICmpPredicate(condition) == LLVMIntEQ ||
		LLVMGetICmpPredicate(condition) == LLVMIntNE);
}

/*
 *     head: i = phi [start], [next]; ...     becomes head: above = phi [start + 1], [i]; i = above
 *					      - 1; ...
 *     next = i - 1; if (i != 0) goto head;               if (i != 0) goto head;
 *
 * so that what goes round is what is compared with 0.
 */
static void carry_tested(LLVMBuilderRef b, LLVMValueRef phi)
{
	LLVMTypeRef type = LLVMTypeOf(phi);
	LLVMValueRef above, i, start;
	struct fay_counter c;

	if (width_of(phi) < 32 || width_of(phi) > 64 || !fay_counter_of(phi, &c) || c.step != -1 ||
	    !tests_zero(c.latch, phi))
		return;
	LLVMPositionBuilderBefore(b, phi);
	above = LLVMBuildPhi(b, type, "above");
	position_after(b, phi);
	i = LLVMBuildAdd(b, above, LLVMConstAllOnes(type), "");
	LLVMReplaceAllUsesWith(phi, i);
	LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(c.entry));
	start = LLVMBuildAdd(b, c.start, LLVMConstInt(type, 1, 0), "");
	LLVMAddIncoming(above, &start, &c.entry, 1);
	LLVMAddIncoming(above, &i, &c.latch, 1);
	LLVMInstructionEraseFromParent(phi);
}

/* ---- all of it ---- */

static void plain_instruction(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef i)
{
	LLVMOpcode opcode = LLVMGetInstructionOpcode(i);

	if ((opcode == LLVMZExt || opcode == LLVMSExt) && width_of(LLVMGetOperand(i, 0)) == 1) {
		widen_truth(b, i);
		return;
	}
	if (opcode == LLVMOr)
		add_disjoint(unit, b, i);
	else if (opcode == LLVMLoad)
		load_no_more(unit, i);
	else if (opcode == LLVMSelect)
		keep_loads_apart(b, i);
	if (opcode == LLVMSelect || opcode == LLVMCall)
		widen_choice(b, i);
}

static void plain_function(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef function)
{
	for (LLVMValueRef i = fay_first_of_function(function), next; i; i = next) {
		next = fay_next_of_function(i);
		if (LLVMIsAPHINode(i))
			carry_tested(b, i);
		else
			plain_instruction(unit, b, i);
	}
}

void fay_make_plain(struct fay_unit *unit)
{
	LLVMBuilderRef b = LLVMCreateBuilderInContext(unit->context);

	for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
		plain_function(unit, b, f);
	LLVMDisposeBuilder(b);
}
