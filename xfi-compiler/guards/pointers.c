/* SPDX-License-Identifier: MIT */
/*
 * Pointer-valued phi and select as offsets: a loop variable that is a pointer into one object
 * becomes base + offset, so that the guards see an index.
 */
#include <stdlib.h>
#include <string.h>

#include "guards_private.h"

struct conversion {
	LLVMValueRef pointer; /* the phi or select, later what replaced it */
	LLVMValueRef offset;
	struct conversion *next;
};

bool fay_is_merge(LLVMValueRef v)
{
	return LLVMIsAPHINode(v) || LLVMIsASelectInst(v);
}

/* Two bases as one: objects of the same region are offsets from the region's start. NULL if they
 * have nothing in common. */
static LLVMValueRef common_base(struct fay_unit *unit, LLVMValueRef function, LLVMValueRef a,
				LLVMValueRef b)
{
	LLVMValueRef region[2];

	if (!a || a == b)
		return b;
	for (int i = 0; i < 2; i++) {
		LLVMValueRef base = i ? b : a;
		const struct fay_object *o = fay_object_of(unit, base);

		region[i] = o ? LLVMGetParam(function, o->scope == FAY_SCOPE_LOCAL ? 1 : 2) : base;
	}
	return region[0] == region[1] ? region[0] : NULL;
}

/* Recursion is bounded by the size of `seen`. */
void fay_find_roots(struct fay_unit *unit, LLVMValueRef function, LLVMValueRef v,
		    struct fay_roots *r)
{
	struct fay_extent e;

	while (fay_is_gep(v))
		v = LLVMGetOperand(v, 0);
	if (LLVMIsUndef(v) || LLVMIsPoison(v))
		return;
	if (LLVMIsNull(v)) {
		r->null = true;
		return;
	}
	if (!fay_is_merge(v)) {
		LLVMValueRef base =
			fay_extent_of(unit, v, &e) ? common_base(unit, function, r->base, v) : NULL;

		if (base)
			r->base = base;
		else
			r->unknown = true;
		return;
	}
	for (unsigned i = 0; i < r->seen_count; i++)
		if (r->seen[i] == v)
			return;
	if (r->seen_count == sizeof(r->seen) / sizeof(*r->seen)) {
		r->unknown = true;
		return;
	}
	r->seen[r->seen_count++] = v;
	if (LLVMIsAPHINode(v)) {
		for (unsigned i = 0; i < LLVMCountIncoming(v); i++)
			fay_find_roots(unit, function, LLVMGetIncomingValue(v, i), r);
	} else {
		fay_find_roots(unit, function, LLVMGetOperand(v, 1), r);
		fay_find_roots(unit, function, LLVMGetOperand(v, 2), r);
	}
}

/* Offset of `pointer` from its root, computed before `at`. */
static LLVMValueRef offset_value(struct fay_unit *unit, LLVMBuilderRef b, struct conversion *done,
				 LLVMValueRef base, LLVMValueRef pointer, LLVMValueRef at)
{
	const struct fay_object *o;
	struct fay_address a;
	LLVMValueRef sum;

	if (LLVMIsUndef(pointer) || LLVMIsPoison(pointer))
		return LLVMConstNull(LLVMInt64TypeInContext(unit->context));
	if (LLVMIsNull(pointer))
		return LLVMConstAllOnes(LLVMInt64TypeInContext(unit->context));
	if (!fay_trace(unit, pointer, &a))
		return NULL;
	LLVMPositionBuilderBefore(b, at);
	o = a.base == base ? NULL : fay_object_of(unit, a.base);
	if (o) /* the common base is the region */
		a.constant += (int64_t)o->offset;
	sum = fay_sum_terms(unit, b, &a);
	for (struct conversion *c = done; c; c = c->next)
		if (c->pointer == a.base)
			return a.terms || a.constant ? LLVMBuildAdd(b, c->offset, sum, "")
						     : c->offset;
	return sum;
}

static LLVMValueRef after_phis(LLVMBasicBlockRef block)
{
	LLVMValueRef i = LLVMGetFirstInstruction(block);

	while (i && LLVMIsAPHINode(i))
		i = LLVMGetNextInstruction(i);
	return i;
}

/* Comparisons of a converted pointer with null become comparisons of its offset with -1. */
static void compare_null(struct fay_unit *unit, LLVMBuilderRef b, struct conversion *c)
{
	LLVMUseRef next;

	for (LLVMUseRef u = LLVMGetFirstUse(c->pointer); u; u = next) {
		LLVMValueRef user = LLVMGetUser(u), same;

		next = LLVMGetNextUse(u);
		if (!LLVMIsAICmpInst(user) || !LLVMIsNull(LLVMGetOperand(user, 1)))
			continue;
		LLVMPositionBuilderBefore(b, user);
		same = LLVMBuildICmp(b, LLVMGetICmpPredicate(user), c->offset,
				     LLVMConstAllOnes(LLVMInt64TypeInContext(unit->context)), "");
		LLVMReplaceAllUsesWith(user, same);
		LLVMInstructionEraseFromParent(user);
		next = LLVMGetFirstUse(c->pointer);
	}
}

static int convert_set(struct fay_unit *unit, LLVMBuilderRef b, const struct fay_roots *r)
{
	struct conversion *all = NULL, *c;
	int result = 0;

	/* the offsets first: they may refer to each other */
	for (unsigned i = 0; i < r->seen_count; i++) {
		LLVMValueRef v = r->seen[i];

		c = calloc(1, sizeof(*c));
		if (!c)
			abort();
		LLVMPositionBuilderBefore(b, v);
		if (LLVMIsAPHINode(v))
			c->offset =
				LLVMBuildPhi(b, LLVMInt64TypeInContext(unit->context), "offset");
		else
			c->offset = LLVMBuildSelect(
				b, LLVMGetOperand(v, 0),
				LLVMConstNull(LLVMInt64TypeInContext(unit->context)),
				LLVMConstAllOnes(LLVMInt64TypeInContext(unit->context)), "offset");
		c->pointer = v;
		/* a constant condition: folded; nothing that we could fill in */
		if (!LLVMIsAInstruction(c->offset)) {
			result = -1;
		}
		c->next = all;
		all = c;
	}
	for (c = all; c && !result; c = c->next) {
		unsigned n = LLVMIsAPHINode(c->pointer) ? LLVMCountIncoming(c->pointer) : 2;

		for (unsigned i = 0; i < n && !result; i++) {
			bool phi = LLVMIsAPHINode(c->pointer) != NULL;
			LLVMValueRef in = phi ? LLVMGetIncomingValue(c->pointer, i)
					      : LLVMGetOperand(c->pointer, i + 1);
			LLVMBasicBlockRef from = phi ? LLVMGetIncomingBlock(c->pointer, i) : NULL;
			LLVMValueRef offset =
				offset_value(unit, b, all, r->base, in,
					     phi ? LLVMGetBasicBlockTerminator(from) : c->offset);

			if (!offset)
				result = -1;
			else if (phi)
				LLVMAddIncoming(c->offset, &offset, &from, 1);
			else
				LLVMSetOperand(c->offset, i + 1, offset);
		}
	}
	for (c = all; c && !result; c = c->next) {
		LLVMValueRef pointer;

		compare_null(unit, b, c);
		LLVMPositionBuilderBefore(b,
					  LLVMIsAPHINode(c->offset)
						  ? after_phis(LLVMGetInstructionParent(c->offset))
						  : c->pointer);
		pointer = LLVMBuildGEP2(b, LLVMInt8TypeInContext(unit->context), r->base,
					&c->offset, 1, "");
		LLVMReplaceAllUsesWith(c->pointer, pointer);
	}
	while (all) {
		c = all;
		all = c->next;
		if (!result)
			LLVMInstructionEraseFromParent(c->pointer);
		free(c);
	}
	return result;
}

int fay_convert_pointers(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef function)
{
	struct fay_roots *r = malloc(sizeof(*r));

	if (!r)
		abort();
again:
	for (LLVMValueRef i = fay_first_of_function(function); i; i = fay_next_of_function(i)) {
		if (!fay_is_merge(i) || LLVMGetTypeKind(LLVMTypeOf(i)) != LLVMPointerTypeKind)
			continue;
		memset(r, 0, sizeof(*r));
		fay_find_roots(unit, function, i, r);
		if (r->unknown || !r->base)
			continue; /* refused where it is used */
		if (LLVMIsAInstruction(r->base) && !LLVMIsAAllocaInst(r->base))
			continue;
		if (convert_set(unit, b, r)) {
			free(r);
			return -1;
		}
		goto again;
	}
	free(r);
	return 0;
}
