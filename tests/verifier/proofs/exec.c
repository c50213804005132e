/* SPDX-License-Identifier: MIT */
/* The instructions of LLVM IR. */
#include "exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each value of the functions that were called has a number, counted per function. */
static struct {
	LLVMValueRef v;
	unsigned i;
} *numbers;
static size_t number_size, number_used;

static size_t number_slot(LLVMValueRef v)
{
	size_t h = ((uintptr_t)v >> 4) * 0x9e3779b97f4a7c15u & (number_size - 1);

	while (numbers[h].v && numbers[h].v != v)
		h = (h + 1) & (number_size - 1);
	return h;
}

static void number_value(struct exec *x, LLVMValueRef v, unsigned i)
{
	size_t h;

	if (!numbers) {
		number_size = (size_t)1 << 18;
		numbers = calloc(number_size, sizeof(*numbers));
	}
	if (!numbers || ++number_used > number_size / 2)
		path_fail(x, "too many values");
	h = number_slot(v);
	numbers[h].v = v;
	numbers[h].i = i;
}

/* Numbers the function's values, once; how many it has. */
static unsigned number_function(struct exec *x, LLVMValueRef f)
{
	unsigned n = 0;
	size_t h = numbers ? number_slot(f) : 0;

	if (numbers && numbers[h].v)
		return numbers[h].i;
	for (unsigned i = 0; i < LLVMCountParams(f); i++)
		number_value(x, LLVMGetParam(f, i), n++);
	for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
		for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
			number_value(x, i, n++);
	number_value(x, f, n);
	return n;
}

struct frame {
	term *values;
	term returned;
};

unsigned type_bits(struct exec *x, LLVMTypeRef type)
{
	unsigned n = 0;

	switch (LLVMGetTypeKind(type)) {
	case LLVMIntegerTypeKind: return LLVMGetIntTypeWidth(type);
	case LLVMPointerTypeKind: return 64;
	case LLVMVoidTypeKind: return 0;
	case LLVMStructTypeKind: /* as a value: its fields, the first one lowest */
		for (unsigned i = 0; i < LLVMCountStructElementTypes(type); i++)
			n += type_bits(x, LLVMStructGetTypeAtIndex(type, i));
		return n;
	default: path_fail(x, "a value of a type that is not handled");
	}
}

static uint64_t pointer_offset(struct exec *x, LLVMValueRef v, term *sum, struct frame *f);

term constant(struct exec *x, LLVMValueRef v)
{
	LLVMTypeRef type = LLVMTypeOf(v);
	unsigned bits = type_bits(x, type);
	char *text, *digits;
	term t;

	if (LLVMIsAConstantInt(v)) {
		if (bits <= 64)
			return number(x, LLVMConstIntGetZExtValue(v), bits);
		text = LLVMPrintValueToString(v);
		digits = strchr(text, ' ');
		t = Z3_mk_numeral(x->z, digits + 1, Z3_mk_bv_sort(x->z, bits));
		LLVMDisposeMessage(text);
		return t;
	}
	if (LLVMIsUndef(v) || LLVMIsPoison(v))
		return symbol(x, "undefined", bits);
	if (LLVMIsAConstantPointerNull(v) || LLVMIsNull(v))
		return number(x, 0, bits);
	if (LLVMIsAFunction(v))
		return symbol(x, "function", 64);
	if (LLVMIsAGlobalVariable(v))
		return number(x, global_address(x, v), 64);
	if (LLVMIsAConstantExpr(v) && LLVMGetConstOpcode(v) == LLVMGetElementPtr) {
		term base = NULL;
		uint64_t offset = pointer_offset(x, v, &base, NULL);

		return simple(x, Z3_mk_bvadd(x->z, base, number(x, offset, 64)));
	}
	text = LLVMPrintValueToString(v);
	path_fail(x, "a constant that is not handled: %s", text);
}

static term value(struct exec *x, struct frame *f, LLVMValueRef v)
{
	term t;

	if (LLVMIsConstant(v))
		return constant(x, v);
	t = f->values[numbers[number_slot(v)].i];
	if (!t)
		path_fail(x, "a value that was not computed");
	return t;
}

static term operand(struct exec *x, struct frame *f, LLVMValueRef i, unsigned n)
{
	return value(x, f, LLVMGetOperand(i, n));
}

/* *sum: the pointer and what is indexed by values; returned: the constant offset. */
static uint64_t pointer_offset(struct exec *x, LLVMValueRef v, term *sum, struct frame *f)
{
	LLVMTypeRef type = LLVMGetGEPSourceElementType(v);
	uint64_t offset = 0, n;
	unsigned count = (unsigned)LLVMGetNumOperands(v);
	Z3_context z = x->z;

	*sum = value(x, f, LLVMGetOperand(v, 0));
	for (unsigned i = 1; i < count; i++) {
		term index = value(x, f, LLVMGetOperand(v, i));
		uint64_t size;

		index = resize(x, index, 64, true);
		if (i > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
			is_number(x, index, &n);
			offset += LLVMOffsetOfElement(x->layout, type, (unsigned)n);
			type = LLVMStructGetTypeAtIndex(type, (unsigned)n);
			continue;
		}
		if (i > 1)
			type = LLVMGetElementType(type);
		size = LLVMABISizeOfType(x->layout, type);
		if (is_number(x, index, &n))
			offset += n * size;
		else
			*sum = Z3_mk_bvadd(z, *sum, Z3_mk_bvmul(z, index, number(x, size, 64)));
	}
	return offset;
}

static bool is_zero(struct exec *x, term t)
{
	uint64_t n = 1;

	return is_number(x, t, &n) && !n;
}

/* a | b, where one has the upper half alone and the other one the lower: as one number again. */
static term join(struct exec *x, term a, term b)
{
	unsigned w = width_of(x, a);
	term ah, al, bh, bl;

	if (w > 1 && w % 2 == 0) {
		ah = part(x, a, w - 1, w / 2);
		al = part(x, a, w / 2 - 1, 0);
		bh = part(x, b, w - 1, w / 2);
		bl = part(x, b, w / 2 - 1, 0);
		if (is_zero(x, ah) && is_zero(x, bl))
			return simple(x, Z3_mk_concat(x->z, bh, al));
		if (is_zero(x, bh) && is_zero(x, al))
			return simple(x, Z3_mk_concat(x->z, ah, bl));
	}
	return simple(x, Z3_mk_bvor(x->z, a, b));
}

static term binary(struct exec *x, LLVMOpcode op, term a, term b)
{
	Z3_context z = x->z;
	uint64_t n = 0;

	switch (op) {
	case LLVMAdd: return simple(x, Z3_mk_bvadd(z, a, b));
	case LLVMSub: return simple(x, Z3_mk_bvsub(z, a, b));
	case LLVMMul: return multiply(x, a, b);
	case LLVMUDiv: return divide_terms(x, a, b, false, false);
	case LLVMSDiv: return divide_terms(x, a, b, true, false);
	case LLVMURem: return divide_terms(x, a, b, false, true);
	case LLVMSRem: return divide_terms(x, a, b, true, true);
	case LLVMShl: return simple(x, Z3_mk_bvshl(z, a, b));
	case LLVMLShr: return simple(x, Z3_mk_bvlshr(z, a, b));
	case LLVMAShr:
		if (is_number(x, b, &n) && n == width_of(x, a) - 1) /* as extensions are written */
			return resize(x, part(x, a, (unsigned)n, (unsigned)n), (unsigned)n + 1,
				      true);
		return simple(x, Z3_mk_bvashr(z, a, b));
	case LLVMAnd: return simple(x, Z3_mk_bvand(z, a, b));
	case LLVMOr: return join(x, a, b);
	default: return simple(x, Z3_mk_bvxor(z, a, b));
	}
}

static term compare(struct exec *x, LLVMIntPredicate p, term a, term b)
{
	Z3_context z = x->z;

	switch (p) {
	case LLVMIntEQ: return Z3_mk_eq(z, a, b);
	case LLVMIntNE: return Z3_mk_not(z, Z3_mk_eq(z, a, b));
	case LLVMIntUGT: return Z3_mk_bvugt(z, a, b);
	case LLVMIntUGE: return Z3_mk_bvuge(z, a, b);
	case LLVMIntULT: return Z3_mk_bvult(z, a, b);
	case LLVMIntULE: return Z3_mk_bvule(z, a, b);
	case LLVMIntSGT: return Z3_mk_bvsgt(z, a, b);
	case LLVMIntSGE: return Z3_mk_bvsge(z, a, b);
	case LLVMIntSLT: return Z3_mk_bvslt(z, a, b);
	default: return Z3_mk_bvsle(z, a, b);
	}
}

/* Where field `index` of a struct as a value begins, and its size. */
static unsigned field(struct exec *x, LLVMTypeRef type, unsigned index, unsigned *size)
{
	unsigned low = 0;

	for (unsigned i = 0; i < index; i++)
		low += type_bits(x, LLVMStructGetTypeAtIndex(type, i));
	*size = type_bits(x, LLVMStructGetTypeAtIndex(type, index));
	return low;
}

static term insert(struct exec *x, term whole, term piece, unsigned low)
{
	unsigned all = width_of(x, whole), high = low + width_of(x, piece);

	if (low)
		piece = Z3_mk_concat(x->z, piece, Z3_mk_extract(x->z, low - 1, 0, whole));
	if (high < all)
		piece = Z3_mk_concat(x->z, Z3_mk_extract(x->z, all - 1, high, whole), piece);
	return simple(x, piece);
}

static bool is_byval(LLVMValueRef call, unsigned i)
{
	unsigned kind = LLVMGetEnumAttributeKindForName("byval", 5);

	return LLVMGetCallSiteEnumAttribute(call, i + 1, kind) != NULL;
}

static term run_call(struct exec *x, struct frame *f, LLVMValueRef call)
{
	LLVMValueRef callee = LLVMGetCalledValue(call), by;
	unsigned n = LLVMGetNumArgOperands(call), i;
	term a[24], result;
	const char *name;
	size_t length;

	if (!LLVMIsAFunction(callee) || n > 24)
		path_fail(x, "a call that is not handled");
	name = LLVMGetValueName2(callee, &length);
	for (i = 0; i < n; i++) {
		LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(call, i));

		a[i] = LLVMGetTypeKind(type) == LLVMMetadataTypeKind ? NULL
								     : operand(x, f, call, i);
		if (!LLVMIsDeclaration(callee) && is_byval(call, i)) {
			LLVMTypeRef of = LLVMGetTypeAttributeValue(LLVMGetCallSiteEnumAttribute(
				call, i + 1, LLVMGetEnumAttributeKindForName("byval", 5)));
			uint64_t size = LLVMABISizeOfType(x->layout, of);
			uint64_t copy = object_new(x, (uint32_t)size, false);

			memory_move(x, copy, settle(x, a[i]), size);
			a[i] = number(x, copy, 64);
		}
	}
	for (i = 0; i < x->replacements; i++)
		if (!x->replaced[i].inside && !strcmp(name, x->replaced[i].name))
			break;
	if (i < x->replacements) {
		by = LLVMGetNamedFunction(x->module, x->replaced[i].by);
		if (!by)
			path_fail(x, "no function %s", x->replaced[i].by);
		x->replaced[i].inside = true;
		result = run_function(x, by, a, n);
		x->replaced[i].inside = false;
		return result;
	}
	if (LLVMIsDeclaration(callee))
		return run_builtin(x, name, call, a);
	return run_function(x, callee, a, n);
}

static term run_plain(struct exec *x, struct frame *f, LLVMValueRef i)
{
	LLVMOpcode op = LLVMGetInstructionOpcode(i);
	unsigned bits = 0, size, low;
	term a, b;

	if (op != LLVMStore)
		bits = type_bits(x, LLVMTypeOf(i));
	switch (op) {
	case LLVMAlloca:
		return number(
			x,
			object_new(x,
				   (uint32_t)LLVMABISizeOfType(x->layout, LLVMGetAllocatedType(i)),
				   false),
			64);
	case LLVMLoad: return memory_load(x, settle(x, operand(x, f, i, 0)), bits);
	case LLVMStore:
		memory_store(x, settle(x, operand(x, f, i, 1)), operand(x, f, i, 0));
		return NULL;
	case LLVMGetElementPtr: {
		uint64_t offset = pointer_offset(x, i, &a, f);

		return simple(x, Z3_mk_bvadd(x->z, a, number(x, offset, 64)));
	}
	case LLVMTrunc:
	case LLVMZExt:
	case LLVMPtrToInt:
	case LLVMIntToPtr: return resize(x, operand(x, f, i, 0), bits, false);
	case LLVMSExt: return resize(x, operand(x, f, i, 0), bits, true);
	case LLVMFreeze: return operand(x, f, i, 0);
	case LLVMICmp:
		return truth(x, compare(x, LLVMGetICmpPredicate(i), operand(x, f, i, 0),
					operand(x, f, i, 1)));
	case LLVMSelect:
		a = condition(x, operand(x, f, i, 0));
		return simple(x, Z3_mk_ite(x->z, a, operand(x, f, i, 1), operand(x, f, i, 2)));
	case LLVMExtractValue:
		a = operand(x, f, i, 0);
		low = field(x, LLVMTypeOf(LLVMGetOperand(i, 0)), *LLVMGetIndices(i), &size);
		return part(x, a, low + size - 1, low);
	case LLVMInsertValue:
		low = field(x, LLVMTypeOf(i), *LLVMGetIndices(i), &size);
		return insert(x, operand(x, f, i, 0), operand(x, f, i, 1), low);
	case LLVMCall: return run_call(x, f, i);
	default: break;
	}
	if (!LLVMIsABinaryOperator(i)) {
		path_fail(x, "an instruction that is not handled: %s", LLVMPrintValueToString(i));
	}
	a = operand(x, f, i, 0);
	b = operand(x, f, i, 1);
	return binary(x, op, a, b);
}

/* The next block; NULL: the function returns. */
static LLVMBasicBlockRef run_end(struct exec *x, struct frame *f, LLVMValueRef i)
{
	unsigned n = (unsigned)LLVMGetNumOperands(i);

	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMRet: f->returned = n ? operand(x, f, i, 0) : NULL; return NULL;
	case LLVMBr:
		if (!LLVMIsConditional(i))
			return LLVMGetSuccessor(i, 0);
		return LLVMGetSuccessor(i,
					!decide(x, condition(x, value(x, f, LLVMGetCondition(i)))));
	case LLVMSwitch:
		for (unsigned k = 2; k < n; k += 2)
			if (decide(x, Z3_mk_eq(x->z, operand(x, f, i, 0), operand(x, f, i, k))))
				return LLVMValueAsBasicBlock(LLVMGetOperand(i, k + 1));
		return LLVMGetSwitchDefaultDest(i);
	default: path_fail(x, "an end of a block that is not handled");
	}
}

static void run_phis(struct exec *x, struct frame *f, LLVMBasicBlockRef b, LLVMBasicBlockRef from)
{
	LLVMValueRef i;
	term new[256];
	unsigned n = 0;

	for (i = LLVMGetFirstInstruction(b); LLVMIsAPHINode(i); i = LLVMGetNextInstruction(i)) {
		unsigned k = 0;

		while (k < LLVMCountIncoming(i) && LLVMGetIncomingBlock(i, k) != from)
			k++;
		if (n == 256)
			path_fail(x, "too many phis");
		new[n++] = value(x, f, LLVMGetIncomingValue(i, k));
	}
	n = 0;
	for (i = LLVMGetFirstInstruction(b); LLVMIsAPHINode(i); i = LLVMGetNextInstruction(i))
		f->values[numbers[number_slot(i)].i] = new[n++];
}

term run_function(struct exec *x, LLVMValueRef function, term *arguments, unsigned count)
{
	unsigned n = number_function(x, function);
	LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function), from = NULL;
	/* an object's cells, so that it is freed however the path ends */
	uint64_t keep = object_new(x, n + 1, false);
	struct frame f = { (term *)(void *)x->object[(keep >> 32) - 1].cells, NULL };

	for (unsigned i = 0; i < count; i++)
		f.values[i] = arguments[i];
	while (b) {
		LLVMValueRef end = LLVMGetBasicBlockTerminator(b), i;
		LLVMBasicBlockRef at = b;

		run_phis(x, &f, b, from);
		for (i = LLVMGetFirstInstruction(b); i != end; i = LLVMGetNextInstruction(i)) {
			if (LLVMIsAPHINode(i))
				continue;
			if (++x->steps > 1000000)
				path_fail(x, "a path without an end");
			f.values[numbers[number_slot(i)].i] = run_plain(x, &f, i);
		}
		b = run_end(x, &f, end);
		from = at;
	}
	return f.returned;
}
