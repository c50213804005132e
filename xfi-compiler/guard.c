/* SPDX-License-Identifier: MIT */
/*
 * The XFI guards (Erlingsson et al., OSDI 2006, section 3.2), on IR. Every access is traced to the object it is based on:
 * the event, a state object, LOCAL or GLOBAL as a whole, a stack array or a constant. Its address then has the form
 *
 *     base + constant + scale1 * index1 + ...
 *
 * A constant address is checked now. An index that provably stays inside needs nothing. Otherwise it is masked where the
 * number of elements is a power of two and clamped to the last element where not: both are one or two instructions
 * without a branch, hold under speculation too, and are found again by the verifier's intervals and known bits.
 * An index past the end therefore reaches some element of the same object, never anything else.
 *
 * A pointer whose object is not known (loaded from memory, made from an integer) is refused: the traced program's memory
 * is read by fay_try_read only. Loop variables that are pointers into one object are first rewritten as offsets.
 */
#include <stdlib.h>
#include <string.h>

#include "fay/event.h"
#include "unit.h"

#define TERMS_MAX 8

struct address {
	LLVMValueRef base;
	int64_t constant;
	unsigned terms;
	struct {
		LLVMValueRef index;
		int64_t scale;
	} term[TERMS_MAX];
};

struct extent {
	uint64_t size;
	bool writable;
	const char *what;
};

static LLVMTypeRef i64(struct fay_unit *unit)
{
	return LLVMInt64TypeInContext(unit->context);
}

static bool is_gep(LLVMValueRef v)
{
	return LLVMIsAGetElementPtrInst(v) || (LLVMIsAConstantExpr(v) && LLVMGetConstOpcode(v) == LLVMGetElementPtr);
}

/* Adds one GEP's offsets to an address; false if it does not fit the form. */
static bool add_gep(struct fay_unit *unit, LLVMValueRef gep, struct address *a)
{
	LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);

	for (int i = 1; i < LLVMGetNumOperands(gep); i++) {
		LLVMValueRef index = LLVMGetOperand(gep, i);
		int64_t scale;

		if (i > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
			unsigned field = LLVMConstIntGetZExtValue(index);

			a->constant += LLVMOffsetOfElement(unit->layout, type, field);
			type = LLVMStructGetTypeAtIndex(type, field);
			continue;
		}
		if (i > 1)
			type = LLVMGetElementType(type);
		scale = LLVMABISizeOfType(unit->layout, type);
		if (LLVMIsAConstantInt(index)) {
			a->constant += LLVMConstIntGetSExtValue(index) * scale;
			continue;
		}
		if (a->terms == TERMS_MAX)
			return false;
		a->term[a->terms].index = index;
		a->term[a->terms++].scale = scale;
	}
	return true;
}

/* Traces a pointer to its base. false: not of the form. */
static bool trace(struct fay_unit *unit, LLVMValueRef pointer, struct address *a)
{
	memset(a, 0, sizeof(*a));
	while (is_gep(pointer)) {
		if (!add_gep(unit, pointer, a))
			return false;
		pointer = LLVMGetOperand(pointer, 0);
	}
	a->base = pointer;
	return true;
}

static bool extent_of(struct fay_unit *unit, LLVMValueRef base, struct extent *e)
{
	if (LLVMIsAArgument(base)) {
		LLVMValueRef function = LLVMGetParamParent(base);

		if (base == LLVMGetParam(function, 0))
			*e = (struct extent){sizeof(struct fay_event), false, "the event"};
		else if (base == LLVMGetParam(function, 1))
			*e = (struct extent){unit->spec->local_size, true, "LOCAL"};
		else
			*e = (struct extent){unit->spec->global_size, true, "GLOBAL"};
		return true;
	}
	if (LLVMIsAAllocaInst(base)) {
		*e = (struct extent){LLVMABISizeOfType(unit->layout, LLVMGetAllocatedType(base)) *
				     LLVMConstIntGetZExtValue(LLVMGetOperand(base, 0)), true, "the array on the stack"};
		return true;
	}
	if (!LLVMIsAGlobalVariable(base))
		return false;
	for (unsigned i = 0; i < unit->object_count; i++)
		if (unit->objects[i].global == base) {
			*e = (struct extent){unit->objects[i].size, true, "the state object"};
			return true;
		}
	*e = (struct extent){LLVMABISizeOfType(unit->layout, LLVMGlobalGetValueType(base)), !LLVMIsGlobalConstant(base),
			     "the constant"};
	return true;
}

/* ---- pointer-valued phi and select as offsets ---- */

struct conversion {
	LLVMValueRef pointer; /* the phi or select, later what replaced it */
	LLVMValueRef offset;
	struct conversion *next;
};

static bool is_merge(LLVMValueRef v)
{
	return LLVMIsAPHINode(v) || LLVMIsASelectInst(v);
}

struct roots {
	LLVMValueRef base;
	bool unknown, null;
	unsigned seen_count;
	LLVMValueRef seen[256];
};

/* The state object that a base is, or NULL. */
static const struct fay_object *object_of(struct fay_unit *unit, LLVMValueRef base)
{
	for (unsigned i = 0; i < unit->object_count; i++)
		if (unit->objects[i].global == base)
			return &unit->objects[i];
	return NULL;
}

/* Two bases as one: objects of the same region are offsets from the region's start. NULL if they have nothing in common. */
static LLVMValueRef common_base(struct fay_unit *unit, LLVMValueRef function, LLVMValueRef a, LLVMValueRef b)
{
	LLVMValueRef region[2];

	if (!a || a == b)
		return b;
	for (int i = 0; i < 2; i++) {
		LLVMValueRef base = i ? b : a;
		const struct fay_object *o = object_of(unit, base);

		region[i] = o ? LLVMGetParam(function, o->scope == FAY_SCOPE_LOCAL ? 1 : 2) : base;
	}
	return region[0] == region[1] ? region[0] : NULL;
}

/* All bases that a pointer can come from; recursion is bounded by the size of `seen`. */
static void find_roots(struct fay_unit *unit, LLVMValueRef function, LLVMValueRef v, struct roots *r)
{
	struct extent e;

	while (is_gep(v))
		v = LLVMGetOperand(v, 0);
	if (LLVMIsUndef(v) || LLVMIsPoison(v))
		return;
	if (LLVMIsNull(v)) {
		r->null = true;
		return;
	}
	if (!is_merge(v)) {
		LLVMValueRef base = extent_of(unit, v, &e) ? common_base(unit, function, r->base, v) : NULL;

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
			find_roots(unit, function, LLVMGetIncomingValue(v, i), r);
	} else {
		find_roots(unit, function, LLVMGetOperand(v, 1), r);
		find_roots(unit, function, LLVMGetOperand(v, 2), r);
	}
}

static LLVMValueRef widen(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef index)
{
	return LLVMBuildSExt(b, index, i64(unit), "");
}

static LLVMValueRef sum_terms(struct fay_unit *unit, LLVMBuilderRef b, const struct address *a)
{
	LLVMValueRef sum = NULL;

	for (unsigned i = 0; i < a->terms; i++) {
		LLVMValueRef t = widen(unit, b, a->term[i].index);

		if (a->term[i].scale != 1)
			t = LLVMBuildMul(b, t, LLVMConstInt(i64(unit), (uint64_t)a->term[i].scale, 1), "");
		sum = sum ? LLVMBuildAdd(b, sum, t, "") : t;
	}
	if (!sum)
		return LLVMConstInt(i64(unit), (uint64_t)a->constant, 1);
	return a->constant ? LLVMBuildAdd(b, sum, LLVMConstInt(i64(unit), (uint64_t)a->constant, 1), "") : sum;
}

/* Offset of `pointer` from its root, computed before `at`. */
static LLVMValueRef offset_value(struct fay_unit *unit, LLVMBuilderRef b, struct conversion *done, LLVMValueRef base,
				 LLVMValueRef pointer, LLVMValueRef at)
{
	const struct fay_object *o;
	struct address a;
	LLVMValueRef sum;

	if (LLVMIsUndef(pointer) || LLVMIsPoison(pointer))
		return LLVMConstNull(i64(unit));
	if (LLVMIsNull(pointer))
		return LLVMConstAllOnes(i64(unit));
	if (!trace(unit, pointer, &a))
		return NULL;
	LLVMPositionBuilderBefore(b, at);
	o = a.base == base ? NULL : object_of(unit, a.base);
	if (o) /* the common base is the region */
		a.constant += (int64_t)o->offset;
	sum = sum_terms(unit, b, &a);
	for (struct conversion *c = done; c; c = c->next)
		if (c->pointer == a.base)
			return a.terms || a.constant ? LLVMBuildAdd(b, c->offset, sum, "") : c->offset;
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
		same = LLVMBuildICmp(b, LLVMGetICmpPredicate(user), c->offset, LLVMConstAllOnes(i64(unit)), "");
		LLVMReplaceAllUsesWith(user, same);
		LLVMInstructionEraseFromParent(user);
		next = LLVMGetFirstUse(c->pointer);
	}
}

static int convert_set(struct fay_unit *unit, LLVMBuilderRef b, const struct roots *r)
{
	struct conversion *all = NULL, *c;
	int result = 0;

	for (unsigned i = 0; i < r->seen_count; i++) { /* the offsets first: they may refer to each other */
		LLVMValueRef v = r->seen[i];

		c = calloc(1, sizeof(*c));
		if (!c)
			abort();
		LLVMPositionBuilderBefore(b, v);
		if (LLVMIsAPHINode(v))
			c->offset = LLVMBuildPhi(b, i64(unit), "offset");
		else
			c->offset = LLVMBuildSelect(b, LLVMGetOperand(v, 0), LLVMConstNull(i64(unit)),
						    LLVMConstAllOnes(i64(unit)), "offset");
		c->pointer = v;
		if (!LLVMIsAInstruction(c->offset)) { /* a constant condition: folded; nothing that we could fill in */
			result = -1;
		}
		c->next = all;
		all = c;
	}
	for (c = all; c && !result; c = c->next) {
		unsigned n = LLVMIsAPHINode(c->pointer) ? LLVMCountIncoming(c->pointer) : 2;

		for (unsigned i = 0; i < n && !result; i++) {
			bool phi = LLVMIsAPHINode(c->pointer) != NULL;
			LLVMValueRef in = phi ? LLVMGetIncomingValue(c->pointer, i) : LLVMGetOperand(c->pointer, i + 1);
			LLVMBasicBlockRef from = phi ? LLVMGetIncomingBlock(c->pointer, i) : NULL;
			LLVMValueRef offset = offset_value(unit, b, all, r->base, in, phi ? LLVMGetBasicBlockTerminator(from) : c->offset);

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
		LLVMPositionBuilderBefore(b, LLVMIsAPHINode(c->offset) ? after_phis(LLVMGetInstructionParent(c->offset))
								       : c->pointer);
		pointer = LLVMBuildGEP2(b, LLVMInt8TypeInContext(unit->context), r->base, &c->offset, 1, "");
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

static int convert_pointers(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef function)
{
	struct roots *r = malloc(sizeof(*r));

	if (!r)
		abort();
again:
	for (LLVMBasicBlockRef k = LLVMGetFirstBasicBlock(function); k; k = LLVMGetNextBasicBlock(k))
		for (LLVMValueRef i = LLVMGetFirstInstruction(k); i; i = LLVMGetNextInstruction(i)) {
			if (!is_merge(i) || LLVMGetTypeKind(LLVMTypeOf(i)) != LLVMPointerTypeKind)
				continue;
			memset(r, 0, sizeof(*r));
			find_roots(unit, function, i, r);
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

/* ---- loads through a pointer into one of several objects ---- */

static bool writes(LLVMValueRef i)
{
	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMStore: case LLVMCall: case LLVMAtomicRMW: case LLVMAtomicCmpXchg: case LLVMFence:
		return true;
	default:
		return false;
	}
}

/* The pointer `v` with `merge`, on which it is based, replaced by one of its choices; before the builder's place. */
static LLVMValueRef with_choice(LLVMBuilderRef b, LLVMValueRef v, LLVMValueRef merge, LLVMValueRef choice, int depth)
{
	LLVMValueRef indices[8], base;
	int count = LLVMGetNumOperands(v) - 1;

	if (v == merge)
		return choice;
	if (!LLVMIsAGetElementPtrInst(v) || count > 8 || depth > 8)
		return NULL;
	base = with_choice(b, LLVMGetOperand(v, 0), merge, choice, depth + 1);
	for (int i = 0; i < count; i++) {
		indices[i] = LLVMGetOperand(v, i + 1);
		if (LLVMIsAPHINode(merge) && !LLVMIsAConstant(indices[i]) &&
		    (!LLVMIsAInstruction(indices[i]) ||
		     LLVMGetInstructionParent(indices[i]) == LLVMGetInstructionParent(merge)))
			return NULL;
	}
	return base ? LLVMBuildGEP2(b, LLVMGetGEPSourceElementType(v), base, indices, (unsigned)count, "") : NULL;
}

/*
 * Simplification turns "this of a, or that of b" into one load through a pointer to a or b. Such a load is taken apart again: both
 * loads and a choice (every object can always be read), or one load on each way in. Returns whether it did.
 */
static bool split_load(LLVMBuilderRef b, LLVMValueRef load)
{
	LLVMValueRef pointer = LLVMGetOperand(load, 0), merge = pointer, made, values[16];
	LLVMBasicBlockRef from[16];
	unsigned n;

	while (LLVMIsAGetElementPtrInst(merge))
		merge = LLVMGetOperand(merge, 0);
	if (!is_merge(merge) || LLVMGetVolatile(load))
		return false;
	if (LLVMIsAPHINode(merge)) {
		if (LLVMGetInstructionParent(merge) != LLVMGetInstructionParent(load) || LLVMCountIncoming(merge) > 16)
			return false;
		for (LLVMValueRef i = merge; i != load; i = LLVMGetNextInstruction(i))
			if (writes(i))
				return false;
	}
	n = LLVMIsAPHINode(merge) ? LLVMCountIncoming(merge) : 2;
	for (unsigned i = 0; i < n; i++) {
		LLVMValueRef choice = LLVMIsAPHINode(merge) ? LLVMGetIncomingValue(merge, i) : LLVMGetOperand(merge, i + 1), p;

		from[i] = LLVMIsAPHINode(merge) ? LLVMGetIncomingBlock(merge, i) : NULL;
		LLVMPositionBuilderBefore(b, from[i] ? LLVMGetBasicBlockTerminator(from[i]) : load);
		p = with_choice(b, pointer, merge, choice, 0);
		if (!p)
			return false; /* what was built so far is dead and harmless */
		values[i] = LLVMBuildLoad2(b, LLVMTypeOf(load), p, "");
		LLVMSetAlignment(values[i], LLVMGetAlignment(load));
	}
	if (LLVMIsAPHINode(merge)) {
		LLVMPositionBuilderBefore(b, merge);
		made = LLVMBuildPhi(b, LLVMTypeOf(load), "");
		LLVMAddIncoming(made, values, from, n);
	} else {
		LLVMPositionBuilderBefore(b, load);
		made = LLVMBuildSelect(b, LLVMGetOperand(merge, 0), values[0], values[1], "");
	}
	LLVMReplaceAllUsesWith(load, made);
	LLVMInstructionEraseFromParent(load);
	return true;
}

static void split_loads(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef function)
{
	struct roots *r = malloc(sizeof(*r));
	int left = 256; /* a load can be taken apart more than once */

	if (!r)
		abort();
again:
	for (LLVMBasicBlockRef k = LLVMGetFirstBasicBlock(function); k; k = LLVMGetNextBasicBlock(k))
		for (LLVMValueRef i = LLVMGetFirstInstruction(k); i; i = LLVMGetNextInstruction(i)) {
			if (!LLVMIsALoadInst(i))
				continue;
			memset(r, 0, sizeof(*r));
			find_roots(unit, function, LLVMGetOperand(i, 0), r);
			if (r->unknown && left-- > 0 && split_load(b, i))
				goto again;
		}
	free(r);
}

void fay_split_loads(struct fay_unit *unit)
{
	LLVMBuilderRef b = LLVMCreateBuilderInContext(unit->context);

	for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
		if (!LLVMIsDeclaration(f))
			split_loads(unit, b, f);
	LLVMDisposeBuilder(b);
}

/* ---- the guards ---- */

static LLVMValueRef build_umin(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef v, uint64_t most)
{
	LLVMValueRef bound = LLVMConstInt(LLVMTypeOf(v), most, 0);

	return LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntULT, v, bound, ""), v, bound, "guard");
}

/* Whether index stays in [0, most] by itself. GEP indices are signed; a range past the sign bit counts as unknown. */
static bool index_within(LLVMValueRef index, LLVMValueRef at, uint64_t most)
{
	unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(index));
	struct fay_range r;

	if (width > 64)
		return false;
	r = fay_range_of(index, at);
	return r.hi <= most && (width == 64 ? r.hi <= INT64_MAX : r.hi < UINT64_C(1) << (width - 1));
}

static bool sum_within(const struct address *a, LLVMValueRef at, uint64_t most)
{
	uint64_t sum = (uint64_t)a->constant;

	if (a->constant < 0)
		return false;
	for (unsigned i = 0; i < a->terms; i++) {
		uint64_t part;
		struct fay_range r;

		if (a->term[i].scale < 0 || !index_within(a->term[i].index, at, INT64_MAX))
			return false;
		r = fay_range_of(a->term[i].index, at);
		if (__builtin_mul_overflow(r.hi, (uint64_t)a->term[i].scale, &part) || __builtin_add_overflow(sum, part, &sum))
			return false;
	}
	return sum <= most;
}

static LLVMValueRef build_guard(struct fay_unit *unit, LLVMBuilderRef b, const struct address *a, uint64_t most)
{
	LLVMTypeRef byte = LLVMInt8TypeInContext(unit->context);
	LLVMValueRef offset;

	unit->guards++;
	if (a->terms == 1 && a->term[0].scale > 0 && a->constant >= 0) {
		uint64_t last = (most - (uint64_t)a->constant) / (uint64_t)a->term[0].scale;
		LLVMValueRef index = LLVMBuildFreeze(b, widen(unit, b, a->term[0].index), "");

		if ((last & (last + 1)) == 0)
			index = LLVMBuildAnd(b, index, LLVMConstInt(i64(unit), last, 0), "guard");
		else
			index = build_umin(unit, b, index, last);
		offset = LLVMBuildMul(b, index, LLVMConstInt(i64(unit), (uint64_t)a->term[0].scale, 0), "");
		offset = LLVMBuildAdd(b, offset, LLVMConstInt(i64(unit), (uint64_t)a->constant, 0), "");
	} else {
		offset = LLVMBuildFreeze(b, sum_terms(unit, b, a), "");
		if ((most & (most + 1)) == 0)
			offset = LLVMBuildAnd(b, offset, LLVMConstInt(i64(unit), most, 0), "guard");
		else
			offset = build_umin(unit, b, offset, most);
	}
	return LLVMBuildGEP2(b, byte, a->base, &offset, 1, "");
}

static int refuse_pointer(struct fay_unit *unit, LLVMValueRef at, LLVMValueRef base)
{
	if (LLVMIsNull(base))
		return fay_refuse_at(unit, at, "access through a null pointer");
	return fay_refuse_at(unit, at, "access through a pointer that does not lead to the event, to this probe's state, constants or "
			     "local variables; memory of the traced program is read with fay_try_read(to, size, address)");
}

/* Guards operand `operand` of `at`, an access of `size` bytes. */
static int guard_access(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef at, unsigned operand, uint64_t size, bool write)
{
	LLVMValueRef pointer = LLVMGetOperand(at, operand);
	struct address a;
	struct extent e;

	if (!trace(unit, pointer, &a) || !extent_of(unit, a.base, &e))
		return refuse_pointer(unit, at, a.base);
	if (write && !e.writable)
		return fay_refuse_at(unit, at, "store to %s, which is read only", e.what);
	if (size > e.size || (!a.terms && (a.constant < 0 || (uint64_t)a.constant > e.size - size)))
		return fay_refuse_at(unit, at, "access of %llu bytes at offset %lld of %s, which has %llu bytes",
				     (unsigned long long)size, (long long)a.constant, e.what, (unsigned long long)e.size);
	if (!a.terms || sum_within(&a, unit->confined ? NULL : at, e.size - size))
		return 0;
	LLVMPositionBuilderBefore(b, at);
	if (a.constant >= 0 && (uint64_t)a.constant > e.size - size)
		a.constant = (int64_t)(e.size - size); /* beyond the end for any index: pin to the last place */
	LLVMSetOperand(at, operand, build_guard(unit, b, &a, e.size - size));
	return 0;
}

/* fay_try_read(to, size, address): the piece it writes. A variable size is clamped to what is left of a constant place. */
static int guard_try_read(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef call)
{
	LLVMValueRef size = LLVMGetOperand(call, 1);
	struct address a;
	struct extent e;
	uint64_t most;

	if (LLVMIsAConstantInt(size)) {
		if (LLVMConstIntGetZExtValue(size) > FAY_TRY_READ_MAX)
			return fay_refuse_at(unit, call, "fay_try_read of more than %u bytes", FAY_TRY_READ_MAX);
		return guard_access(unit, b, call, 0, LLVMConstIntGetZExtValue(size), true);
	}
	if (!trace(unit, LLVMGetOperand(call, 0), &a) || !extent_of(unit, a.base, &e))
		return refuse_pointer(unit, call, a.base);
	if (a.terms || a.constant < 0 || (uint64_t)a.constant > e.size)
		return fay_refuse_at(unit, call, "fay_try_read with both a variable place and a variable size; make one of them constant");
	most = e.size - (uint64_t)a.constant;
	if (most > FAY_TRY_READ_MAX)
		most = FAY_TRY_READ_MAX;
	if (fay_range_of(size, unit->confined ? NULL : call).hi <= most)
		return 0;
	LLVMPositionBuilderBefore(b, call);
	LLVMSetOperand(call, 1, build_umin(unit, b, size, most));
	unit->guards++;
	return 0;
}

static int guard_call(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef call)
{
	const char *name = fay_callee(call);
	uint64_t state;

	if (!strncmp(name, "llvm.", 5))
		return 0;
	if (!strcmp(name, "fay_try_read"))
		return guard_try_read(unit, b, call);
	if (!LLVMIsAConstantInt(LLVMGetOperand(call, 1)))
		return fay_refuse_at(unit, call, "%s needs a constant state number", name);
	state = LLVMConstIntGetZExtValue(LLVMGetOperand(call, 1));
	if (state >= unit->spec->state_count)
		return fay_refuse_at(unit, call, "%s of state %llu; there are %u", name, (unsigned long long)state,
				     unit->spec->state_count);
	if (unit->spec->states[state].kind != (!strcmp(name, "fay_emit") ? FAY_STATE_STREAM : FAY_STATE_TABLE))
		return fay_refuse_at(unit, call, "%s of %s, which is not a %s", name, unit->spec->states[state].name,
				     !strcmp(name, "fay_emit") ? "stream" : "table");
	if (!strcmp(name, "fay_emit"))
		return guard_access(unit, b, call, 2, unit->spec->states[state].row_size, false);
	return 0;
}

static bool never_negative(LLVMValueRef v, LLVMValueRef at)
{
	unsigned width = LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(LLVMTypeOf(v)) : 65;

	return width > 1 && width <= 64 && fay_range_of(v, at).hi < UINT64_C(1) << (width - 1);
}

/* Signed comparisons and extensions of what is never negative, as unsigned ones: intervals say more about those. */
static void make_unsigned(LLVMBuilderRef b, LLVMValueRef i)
{
	LLVMValueRef left = LLVMGetOperand(i, 0), made;
	LLVMIntPredicate predicate;

	if (!never_negative(left, i))
		return;
	LLVMPositionBuilderBefore(b, i);
	if (LLVMGetInstructionOpcode(i) == LLVMSExt) {
		made = LLVMBuildZExt(b, left, LLVMTypeOf(i), "");
	} else {
		predicate = LLVMGetICmpPredicate(i);
		if (predicate < LLVMIntSGT || !never_negative(LLVMGetOperand(i, 1), i))
			return;
		made = LLVMBuildICmp(b, predicate - LLVMIntSGT + LLVMIntUGT, left, LLVMGetOperand(i, 1), "");
	}
	LLVMReplaceAllUsesWith(i, made);
	LLVMInstructionEraseFromParent(i);
}

static void make_all_unsigned(LLVMBuilderRef b, LLVMValueRef function)
{
	for (LLVMBasicBlockRef k = LLVMGetFirstBasicBlock(function); k; k = LLVMGetNextBasicBlock(k))
		for (LLVMValueRef i = LLVMGetFirstInstruction(k), next; i; i = next) {
			next = LLVMGetNextInstruction(i);
			if (LLVMGetInstructionOpcode(i) == LLVMSExt || LLVMGetInstructionOpcode(i) == LLVMICmp)
				make_unsigned(b, i);
		}
}

static int guard_instruction(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef i)
{
	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMLoad:
		return guard_access(unit, b, i, 0, LLVMStoreSizeOfType(unit->layout, LLVMTypeOf(i)), false);
	case LLVMStore:
		if (LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(i, 0))) == LLVMPointerTypeKind)
			return fay_refuse_at(unit, i, "a pointer would be stored; state holds numbers and text only, keep an index instead");
		return guard_access(unit, b, i, 1, LLVMStoreSizeOfType(unit->layout, LLVMTypeOf(LLVMGetOperand(i, 0))), true);
	case LLVMAtomicRMW:
	case LLVMAtomicCmpXchg:
		return guard_access(unit, b, i, 0, LLVMStoreSizeOfType(unit->layout, LLVMTypeOf(LLVMGetOperand(i, 1))), true);
	case LLVMCall:
		return guard_call(unit, b, i);
	default:
		return 0;
	}
}

int fay_guard(struct fay_unit *unit)
{
	LLVMBuilderRef b = LLVMCreateBuilderInContext(unit->context);
	int result = 0;

	for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f && !result; f = LLVMGetNextFunction(f)) {
		if (LLVMIsDeclaration(f))
			continue;
		make_all_unsigned(b, f);
		split_loads(unit, b, f);
		if (convert_pointers(unit, b, f)) {
			result = fay_error_set(unit->error, FAY_E_INTERNAL, "pointers of a loop could not be rewritten as offsets");
			break;
		}
		for (LLVMBasicBlockRef k = LLVMGetFirstBasicBlock(f); k && !result; k = LLVMGetNextBasicBlock(k))
			for (LLVMValueRef i = LLVMGetFirstInstruction(k), next; i && !result; i = next) {
				next = LLVMGetNextInstruction(i);
				result = guard_instruction(unit, b, i);
			}
	}
	LLVMDisposeBuilder(b);
	return result;
}
