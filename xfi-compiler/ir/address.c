/* SPDX-License-Identifier: MIT */
/*
 * Addresses, traced from the access back to the object. On the way the types of the GEPs say which
 * array member an index belongs to, and so how many elements it has (`limit`), which is less than
 * what the object as a whole would allow.
 */
#include <string.h>

#include "fay/event.h"
#include "ir.h"

bool fay_is_gep(LLVMValueRef v)
{
	return LLVMIsAGetElementPtrInst(v) ||
	       (LLVMIsAConstantExpr(v) && LLVMGetConstOpcode(v) == LLVMGetElementPtr);
}

/* What the last GEP of a trace, the one next to the base, was like. */
struct nearest {
	unsigned first_term, terms;
	int64_t before; /* constant of that GEP in front of its only index */
	int64_t so_far; /* sum of constants up to and with it */
};

/* Adds one GEP's offsets to an address; false if it does not fit the form. */
static bool add_gep(struct fay_unit *unit, LLVMValueRef gep, struct fay_address *a,
		    struct nearest *near)
{
	LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
	/* Behind a negative step or an index of no known array, this GEP may well point past the
	 * end of its own. */
	bool plain = a->constant >= 0;
	int64_t own = 0;

	for (unsigned i = 0; i < a->terms; i++)
		plain &= a->term[i].limit != 0;
	*near = (struct nearest){ .first_term = a->terms };
	for (int i = 1; i < LLVMGetNumOperands(gep); i++) {
		LLVMValueRef index = LLVMGetOperand(gep, i);
		uint64_t limit = 0;
		int64_t scale;

		if (i > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
			unsigned field = LLVMConstIntGetZExtValue(index);

			own += LLVMOffsetOfElement(unit->layout, type, field);
			type = LLVMStructGetTypeAtIndex(type, field);
			continue;
		}
		if (i > 1) {
			if (plain && LLVMGetTypeKind(type) == LLVMArrayTypeKind)
				limit = LLVMGetArrayLength2(type);
			type = LLVMGetElementType(type);
		}
		scale = LLVMABISizeOfType(unit->layout, type);
		if (LLVMIsAConstantInt(index)) {
			own += LLVMConstIntGetSExtValue(index) * scale;
			continue;
		}
		if (a->terms == FAY_TERMS_MAX)
			return false;
		near->before = own;
		near->terms++;
		a->term[a->terms++] =
			(struct fay_term){ index, scale, limit, limit ? (uint64_t)a->constant : 0 };
	}
	a->constant += own;
	near->so_far = a->constant;
	return true;
}

/*
 * The end of the array member of `type` that covers `offset`, where elements of `scale` bytes are
 * counted: arrays of arrays are one, so that a matrix can be walked as a whole. 0: none.
 */
static uint64_t member_end(struct fay_unit *unit, LLVMTypeRef type, uint64_t offset, uint64_t scale)
{
	uint64_t start = 0;

	for (;;) {
		LLVMTypeRef leaf = type;
		uint64_t size;

		if (LLVMGetTypeKind(type) == LLVMStructTypeKind) {
			unsigned field = LLVMElementAtOffset(unit->layout, type, offset - start);

			start += LLVMOffsetOfElement(unit->layout, type, field);
			type = LLVMStructGetTypeAtIndex(type, field);
			if (offset - start >= LLVMABISizeOfType(unit->layout, type))
				return 0;
			continue;
		}
		if (LLVMGetTypeKind(type) != LLVMArrayTypeKind)
			return 0;
		while (LLVMGetTypeKind(leaf) == LLVMArrayTypeKind)
			leaf = LLVMGetElementType(leaf);
		size = LLVMABISizeOfType(unit->layout, leaf);
		if (LLVMGetTypeKind(leaf) != LLVMStructTypeKind || scale >= size)
			return start + LLVMABISizeOfType(unit->layout, type);
		start += (offset - start) / size * size;
		type = leaf;
	}
}

/* The index next to the base: its member is known from the object's own type, beyond the row that
 * the GEP names. */
static void widen_limit(struct fay_unit *unit, struct fay_address *a, const struct nearest *near)
{
	int64_t start = a->constant - near->so_far + near->before;
	struct fay_term *t = &a->term[near->first_term];
	LLVMTypeRef type;
	uint64_t end;

	if (near->terms != 1 || !t->limit || t->scale <= 0 || start < 0)
		return;
	if (LLVMIsAAllocaInst(a->base))
		type = LLVMGetAllocatedType(a->base);
	else if (LLVMIsAGlobalVariable(a->base))
		type = LLVMGlobalGetValueType(a->base);
	else
		return;
	if ((uint64_t)start >= LLVMABISizeOfType(unit->layout, type))
		return;
	end = member_end(unit, type, (uint64_t)start, (uint64_t)t->scale);
	if (end > (uint64_t)start && (end - (uint64_t)start) / (uint64_t)t->scale > t->limit)
		t->limit = (end - (uint64_t)start) / (uint64_t)t->scale;
}

bool fay_trace(struct fay_unit *unit, LLVMValueRef pointer, struct fay_address *a)
{
	struct nearest near = { 0 }, variable = { 0 };

	memset(a, 0, sizeof(*a));
	while (fay_is_gep(pointer)) {
		if (!add_gep(unit, pointer, a, &near)) {
			a->base = pointer;
			return false;
		}
		if (near.terms)
			variable = near;
		pointer = LLVMGetOperand(pointer, 0);
	}
	a->base = pointer;
	if (variable.terms)
		widen_limit(unit, a, &variable);
	return true;
}

const struct fay_object *fay_object_of(struct fay_unit *unit, LLVMValueRef base)
{
	for (unsigned i = 0; i < unit->object_count; i++)
		if (unit->objects[i].global == base)
			return &unit->objects[i];
	return NULL;
}

bool fay_extent_of(struct fay_unit *unit, LLVMValueRef base, struct fay_extent *e)
{
	const struct fay_object *o;

	if (LLVMIsAArgument(base)) {
		LLVMValueRef function = LLVMGetParamParent(base);

		if (base == LLVMGetParam(function, 0))
			*e = (struct fay_extent){ sizeof(struct fay_event), false, "the event" };
		else if (base == LLVMGetParam(function, 1))
			*e = (struct fay_extent){ unit->spec->local_size, true, "LOCAL" };
		else
			*e = (struct fay_extent){ unit->spec->global_size, true, "GLOBAL" };
		return true;
	}
	if (LLVMIsAAllocaInst(base)) {
		*e = (struct fay_extent){ LLVMABISizeOfType(unit->layout,
							    LLVMGetAllocatedType(base)) *
						  LLVMConstIntGetZExtValue(LLVMGetOperand(base, 0)),
					  true, "the array on the stack" };
		return true;
	}
	if (!LLVMIsAGlobalVariable(base))
		return false;
	o = fay_object_of(unit, base);
	if (o)
		*e = (struct fay_extent){ o->size, true, "the state object" };
	else
		*e = (struct fay_extent){ LLVMABISizeOfType(unit->layout,
							    LLVMGlobalGetValueType(base)),
					  !LLVMIsGlobalConstant(base), "the constant" };
	return true;
}

LLVMValueRef fay_widen(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef index)
{
	return LLVMBuildSExt(b, index, LLVMInt64TypeInContext(unit->context), "");
}

LLVMValueRef fay_sum_terms(struct fay_unit *unit, LLVMBuilderRef b, const struct fay_address *a)
{
	LLVMTypeRef i64 = LLVMInt64TypeInContext(unit->context);
	LLVMValueRef sum = NULL;

	for (unsigned i = 0; i < a->terms; i++) {
		LLVMValueRef t = fay_widen(unit, b, a->term[i].index);

		if (a->term[i].scale != 1)
			t = LLVMBuildMul(b, t, LLVMConstInt(i64, (uint64_t)a->term[i].scale, 1),
					 "");
		sum = sum ? LLVMBuildAdd(b, sum, t, "") : t;
	}
	if (!sum)
		return LLVMConstInt(i64, (uint64_t)a->constant, 1);
	return a->constant ? LLVMBuildAdd(b, sum, LLVMConstInt(i64, (uint64_t)a->constant, 1), "")
			   : sum;
}
