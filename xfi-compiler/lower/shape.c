/* SPDX-License-Identifier: MIT */
/*
 * The last look at the IR: shapes that are right but that make poor machine code for a proof.
 *
 *   divisions of 8 and 16 bits   have their result in ah, or in pairs of 16-bit registers; done in
 *				  32 bits instead
 *   divisors from elsewhere      were compared with 0 in another block, maybe far away; compared
 *				  again where they are used
 *   remainders by a constant     become products that nothing shows to be small; bounded again
 *				  where they are part of an address
 *   values that do not matter    ("undef") become 0: otherwise a register is read that nobody
 *				  wrote, if only to be ignored
 *   loop tests of the old value  `next = i + 1; if (i < 9) again` becomes `if (next < 10) again`:
 *				  then the register that lives on is the one that is compared, and
 *				  its bound needs no relation between two registers
 */
#include <llvm-c/DebugInfo.h>

#include "lower.h"

static LLVMValueRef widen_division(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef i)
{
	LLVMTypeRef type = LLVMTypeOf(i), i32 = LLVMInt32TypeInContext(unit->context);
	LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
	bool is_signed = opcode == LLVMSDiv || opcode == LLVMSRem;
	LLVMValueRef x, y, made;

	if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(type) >= 32)
		return i;
	LLVMPositionBuilderBefore(b, i);
	x = LLVMBuildIntCast2(b, LLVMGetOperand(i, 0), i32, is_signed, "");
	y = LLVMBuildIntCast2(b, LLVMGetOperand(i, 1), i32, is_signed, "");
	made = LLVMBuildBinOp(b, opcode, x, y, "");
	LLVMReplaceAllUsesWith(i, LLVMBuildTrunc(b, made, type, ""));
	LLVMInstructionEraseFromParent(i);
	return made;
}

static void settle_operands(LLVMValueRef i)
{
	for (int o = 0; o < LLVMGetNumOperands(i); o++) {
		LLVMValueRef v = LLVMGetOperand(i, o);

		if ((LLVMIsUndef(v) || LLVMIsPoison(v)) &&
		    LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMIntegerTypeKind)
			LLVMSetOperand(i, (unsigned)o, LLVMConstNull(LLVMTypeOf(v)));
	}
}

/*
 * The optimiser knows that the divisor is not 0 here (define.c) and would drop this; the code
 * generator would go by flags that something else has left, or by a part of the register, but for
 * fay_hide().
 */
static void repeat_zero_test(LLVMBuilderRef b, LLVMValueRef i)
{
	LLVMValueRef y = LLVMGetOperand(i, 1), zero;

	if (LLVMIsAConstant(y) || LLVMGetTypeKind(LLVMTypeOf(y)) != LLVMIntegerTypeKind ||
	    LLVMGetIntTypeWidth(LLVMTypeOf(y)) > 64)
		return;
	LLVMPositionBuilderBefore(b, i);
	y = fay_hide(b, y);
	zero = LLVMBuildICmp(b, LLVMIntEQ, y, LLVMConstNull(LLVMTypeOf(y)), "");
	LLVMSetOperand(i, 1, LLVMBuildSelect(b, zero, LLVMConstInt(LLVMTypeOf(y), 2, 0), y, ""));
}

/* Whether an address is made of a value, through the arithmetic that indices see. */
static bool feeds(LLVMValueRef v, int depth)
{
	for (LLVMUseRef u = LLVMGetFirstUse(v); u && depth < 6; u = LLVMGetNextUse(u)) {
		LLVMValueRef user = LLVMGetUser(u);

		if (LLVMIsAGetElementPtrInst(user))
			return true;
		if ((LLVMIsABinaryOperator(user) || LLVMIsACastInst(user) ||
		     LLVMIsASelectInst(user) || LLVMIsAPHINode(user)) &&
		    feeds(user, depth + 1))
			return true;
	}
	return false;
}

bool fay_feeds_address(LLVMValueRef v)
{
	return feeds(v, 0);
}

static bool is_product(LLVMValueRef v)
{
	return LLVMIsABinaryOperator(v) && LLVMGetInstructionOpcode(v) == LLVMMul;
}

/* What a shift of 32 or 64 bits leaves at most, as every proof sees; 0: it is none, or not by a
 * constant. */
static uint64_t left_by_shift(LLVMValueRef i)
{
	unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(i));
	LLVMValueRef c = LLVMGetOperand(i, 1);

	if (width < 32 || !LLVMIsAConstantInt(c) || LLVMConstIntGetZExtValue(c) >= width)
		return 0;
	return (UINT64_MAX >> (64 - width)) >> LLVMConstIntGetZExtValue(c);
}

/* Whether i is like x % 40 or (x * 40 + 7) >> 32, whose products and differences no interval shows
 * to be small; its largest value. */
static bool has_largest(LLVMValueRef i, uint64_t *largest)
{
	LLVMOpcode opcode = LLVMIsABinaryOperator(i) ? LLVMGetInstructionOpcode(i) : LLVMRet;
	LLVMValueRef right, product;

	if ((opcode != LLVMURem && opcode != LLVMLShr) ||
	    LLVMGetTypeKind(LLVMTypeOf(i)) != LLVMIntegerTypeKind ||
	    LLVMGetIntTypeWidth(LLVMTypeOf(i)) > 64)
		return false;
	if (opcode == LLVMLShr) {
		product = LLVMGetOperand(i, 0);
		if (!LLVMIsABinaryOperator(product) ||
		    (!is_product(product) && !is_product(LLVMGetOperand(product, 0)) &&
		     !is_product(LLVMGetOperand(product, 1))))
			return false;
		*largest = fay_range_of(i, i).hi;
		return *largest < 65536 && *largest != left_by_shift(i);
	}
	right = LLVMGetOperand(i, 1);
	*largest = LLVMIsAConstantInt(right) ? LLVMConstIntGetZExtValue(right) - 1 : 0;
	return *largest > 1 && (*largest & (*largest + 1));
}

/*
 * Bounds such a value again where it is part of an address: a comparison and a conditional move, of
 * which the code generator must not know that both are superfluous.
 */
static void bound_again(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef i)
{
	LLVMTypeRef type = LLVMTypeOf(i), i64 = LLVMInt64TypeInContext(unit->context);
	LLVMValueRef last, wide, stand_in, bounded;
	uint64_t largest;

	if (!has_largest(i, &largest) || !feeds(i, 0))
		return;
	LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(i));
	last = LLVMConstInt(i64, largest, 0);
	fay_mark(unit, b, i, "not above %llu, which the machine code does not show",
		 (unsigned long long)largest);
	stand_in = LLVMBuildFreeze(b, LLVMConstNull(type), "");
	LLVMReplaceAllUsesWith(i, stand_in);
	wide = fay_hide(b, LLVMBuildZExt(b, i, i64, ""));
	bounded = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntULT, wide, last, ""), wide, last,
				  "bounded");
	bounded = LLVMBuildTrunc(b, bounded, type, "");
	LLVMReplaceAllUsesWith(stand_in, bounded);
	LLVMInstructionEraseFromParent(stand_in);
	LLVMSetCurrentDebugLocation2(b, NULL);
}

static void test_next(LLVMBuilderRef b, LLVMValueRef phi)
{
	uint64_t start, step, bound;
	LLVMValueRef next, terminator, condition, right;
	LLVMBasicBlockRef latch;
	unsigned width;

	if (LLVMGetTypeKind(LLVMTypeOf(phi)) != LLVMIntegerTypeKind ||
	    !fay_induction(phi, &start, &step, &next, &latch))
		return;
	width = LLVMGetIntTypeWidth(LLVMTypeOf(phi));
	terminator = LLVMGetBasicBlockTerminator(latch);
	if (width > 64 || !LLVMIsABranchInst(terminator) || !LLVMIsConditional(terminator))
		return;
	condition = LLVMGetCondition(terminator);
	if (!LLVMIsAICmpInst(condition) || LLVMGetOperand(condition, 0) != phi ||
	    !LLVMIsAConstantInt(LLVMGetOperand(condition, 1)))
		return;
	/* Adding the step to both sides is right if neither overflows: the loop is known to end,
	 * and small. */
	right = LLVMGetOperand(condition, 1);
	bound = LLVMConstIntGetZExtValue(right);
	if (!fay_loop_rounds(LLVMGetInstructionParent(phi), latch) || step > 65536 ||
	    bound > (UINT64_MAX >> (65 - width)) - step)
		return;
	LLVMPositionBuilderBefore(b, terminator);
	LLVMSetCondition(terminator,
			 LLVMBuildICmp(b, LLVMGetICmpPredicate(condition), next,
				       LLVMConstInt(LLVMTypeOf(phi), bound + step, 0), ""));
	if (!LLVMGetFirstUse(condition))
		LLVMInstructionEraseFromParent(condition);
}

/*
 * A variable of 1, 8 or 16 bits that lives from block to block is kept in a register of which only
 * a part is ever written. As one of 32 bits it is written whole, and what is known of it is known
 * of the register.
 */
static void widen_phi(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef phi)
{
	LLVMTypeRef type = LLVMTypeOf(phi), i32 = LLVMInt32TypeInContext(unit->context);
	LLVMValueRef wide, after, next;
	LLVMUseRef u;

	if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(type) >= 32)
		return;
	LLVMPositionBuilderBefore(b, phi);
	wide = LLVMBuildPhi(b, i32, "");
	for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
		LLVMBasicBlockRef from = LLVMGetIncomingBlock(phi, i);
		LLVMValueRef value = LLVMGetIncomingValue(phi, i);

		LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(from));
		value = LLVMIsUndef(value) || LLVMIsPoison(value)
				? LLVMConstNull(i32)
				: LLVMBuildZExt(b, value, i32, "");
		LLVMAddIncoming(wide, &value, &from, 1);
	}
	for (u = LLVMGetFirstUse(phi); u;) {
		LLVMValueRef user = LLVMGetUser(u);

		u = LLVMGetNextUse(u);
		if (!LLVMIsAZExtInst(user))
			continue;
		LLVMPositionBuilderBefore(b, user);
		next = LLVMBuildIntCast2(b, wide, LLVMTypeOf(user), 0, "");
		LLVMReplaceAllUsesWith(user, next);
		LLVMInstructionEraseFromParent(user);
	}
	for (after = phi; LLVMIsAPHINode(after); after = LLVMGetNextInstruction(after))
		;
	LLVMPositionBuilderBefore(b, after);
	LLVMReplaceAllUsesWith(phi, LLVMBuildTrunc(b, wide, type, ""));
	LLVMInstructionEraseFromParent(phi);
}

static void widen_phis(struct fay_unit *unit, LLVMBuilderRef b, LLVMBasicBlockRef block)
{
	LLVMValueRef next;

	for (LLVMValueRef i = LLVMGetFirstInstruction(block); i && LLVMIsAPHINode(i); i = next) {
		next = LLVMGetNextInstruction(i);
		widen_phi(unit, b, i);
	}
}

void fay_shape(struct fay_unit *unit)
{
	LLVMBuilderRef b = LLVMCreateBuilderInContext(unit->context);

	for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
		for (LLVMBasicBlockRef k = LLVMGetFirstBasicBlock(f); k;
		     k = LLVMGetNextBasicBlock(k)) {
			widen_phis(unit, b, k);
			for (LLVMValueRef i = LLVMGetFirstInstruction(k); i && LLVMIsAPHINode(i);
			     i = LLVMGetNextInstruction(i))
				test_next(b, i);
			for (LLVMValueRef i = LLVMGetFirstInstruction(k), next; i; i = next) {
				LLVMOpcode opcode = LLVMGetInstructionOpcode(i);

				next = LLVMGetNextInstruction(i);
				settle_operands(i);
				bound_again(unit, b, i);
				if (opcode == LLVMUDiv || opcode == LLVMSDiv ||
				    opcode == LLVMURem || opcode == LLVMSRem)
					i = widen_division(unit, b, i);
				if (opcode == LLVMUDiv || opcode == LLVMURem)
					repeat_zero_test(b, i);
			}
		}
	LLVMDisposeBuilder(b);
}
