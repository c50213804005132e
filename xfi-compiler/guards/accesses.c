/* SPDX-License-Identifier: MIT */
/*
 * Which accesses a probe makes, each traced to its object; what cannot be traced is refused. Places
 * that are constants are checked here, once and for all.
 */
#include <stdlib.h>
#include <string.h>

#include "guards_private.h"
#include "xfi-compiler/lower/lower.h"

void *fay_grow(void *array, size_t count, size_t *room, size_t size)
{
	if (count < *room)
		return array;
	*room = *room ? 2 * *room : 64;
	array = realloc(array, *room * size);
	if (!array)
		abort();
	return array;
}

static int refuse_pointer(struct fay_unit *unit, LLVMValueRef at, LLVMValueRef base)
{
	if (LLVMIsNull(base))
		return fay_refuse_at(unit, at, "access through a null pointer");
	return fay_refuse_at(unit, at,
			     "access through a pointer that does not lead to the event, to this "
			     "probe's state, constants or "
			     "local variables; memory of the traced program is read with "
			     "fay_try_read(to, size, address)");
}

void fay_note_reach(struct fay_guards *p, const struct fay_access *a, uint64_t start, uint64_t end)
{
	if (LLVMIsALoadInst(a->at) || LLVMIsAStoreInst(a->at))
		fay_apart_add(&p->apart, a->at, a->address.base, start, end);
}

/* Takes down operand `operand` of `at`, an access of `size` bytes. */
static int take_access(struct fay_guards *p, unsigned block, LLVMValueRef at, unsigned operand,
		       uint64_t size, bool write)
{
	struct fay_access a = { .at = at, .operand = operand, .block = block, .size = size };

	if (!fay_trace(p->unit, LLVMGetOperand(at, operand), &a.address) ||
	    !fay_extent_of(p->unit, a.address.base, &a.extent))
		return refuse_pointer(p->unit, at, a.address.base);
	if (write && !a.extent.writable)
		return fay_refuse_at(p->unit, at, "store to %s, which is read only", a.extent.what);
	if (size > a.extent.size ||
	    (!a.address.terms &&
	     (a.address.constant < 0 || (uint64_t)a.address.constant > a.extent.size - size)))
		return fay_refuse_at(
			p->unit, at,
			"access of %llu bytes at offset %lld of %s, which has %llu bytes",
			(unsigned long long)size, (long long)a.address.constant, a.extent.what,
			(unsigned long long)a.extent.size);
	p->unit->count.accesses++;
	if (!a.address.terms) {
		p->unit->count.constant++;
		fay_note_reach(p, &a, (uint64_t)a.address.constant,
			       (uint64_t)a.address.constant + size);
		return 0;
	}
	/* what lies elements further must be inside, too */
	for (unsigned i = 0; i < a.address.terms; i++) {
		struct fay_term *t = &a.address.term[i];
		uint64_t further =
			t->limit && t->scale > 0 ? (t->beyond + size - 1) / (uint64_t)t->scale : 0;

		t->limit = further < t->limit ? t->limit - further : 0;
	}
	p->access = fay_grow(p->access, p->access_count, &p->access_room, sizeof(*p->access));
	p->access[p->access_count++] = a;
	return 0;
}

/* fay_try_read(to, size, address): the piece it writes. A variable size is clamped to what is left
 * of a constant place. */
static int take_try_read(struct fay_guards *p, unsigned block, LLVMValueRef call)
{
	struct fay_unit *unit = p->unit;
	LLVMValueRef size = LLVMGetOperand(call, 1), bound;
	struct fay_address a;
	struct fay_extent e;
	uint64_t most;

	if (LLVMIsAConstantInt(size)) {
		if (LLVMConstIntGetZExtValue(size) > FAY_TRY_READ_MAX)
			return fay_refuse_at(unit, call, "fay_try_read of more than %u bytes",
					     FAY_TRY_READ_MAX);
		return take_access(p, block, call, 0, LLVMConstIntGetZExtValue(size), true);
	}
	if (!fay_trace(unit, LLVMGetOperand(call, 0), &a) || !fay_extent_of(unit, a.base, &e))
		return refuse_pointer(unit, call, a.base);
	if (!e.writable)
		return fay_refuse_at(unit, call, "store to %s, which is read only", e.what);
	if (a.terms || a.constant < 0 || (uint64_t)a.constant > e.size)
		return fay_refuse_at(unit, call,
				     "fay_try_read with both a variable destination and a variable "
				     "size; make one of them constant");
	most = e.size - (uint64_t)a.constant;
	if (most > FAY_TRY_READ_MAX)
		most = FAY_TRY_READ_MAX;
	unit->count.accesses++;
	if (fay_range_of(size, unit->confined ? NULL : call).hi <= most) {
		unit->count.in_range++;
		return 0;
	}
	LLVMPositionBuilderBefore(p->b, call);
	bound = LLVMConstInt(LLVMTypeOf(size), most, 0);
	LLVMSetOperand(call, 1,
		       LLVMBuildSelect(p->b, LLVMBuildICmp(p->b, LLVMIntULT, size, bound, ""), size,
				       bound, "guard"));
	unit->count.clamps++;
	return 0;
}

static int take_call(struct fay_guards *p, unsigned block, LLVMValueRef call)
{
	struct fay_unit *unit = p->unit;
	const char *name = fay_callee(call);
	uint64_t state;

	if (!strncmp(name, "llvm.", 5) || fay_is_called(LLVMGetCalledValue(call)))
		return 0;
	if (!strcmp(name, "fay_try_read"))
		return take_try_read(p, block, call);
	if (!LLVMIsAConstantInt(LLVMGetOperand(call, 1)))
		return fay_refuse_at(unit, call, "%s needs a constant state number", name);
	state = LLVMConstIntGetZExtValue(LLVMGetOperand(call, 1));
	if (state >= unit->spec->state_count)
		return fay_refuse_at(unit, call, "%s of state %llu; there are %u", name,
				     (unsigned long long)state, unit->spec->state_count);
	if (unit->spec->states[state].kind !=
	    (!strcmp(name, "fay_emit") ? FAY_STATE_STREAM : FAY_STATE_TABLE))
		return fay_refuse_at(unit, call, "%s of %s, which is not a %s", name,
				     unit->spec->states[state].name,
				     !strcmp(name, "fay_emit") ? "stream" : "table");
	if (!strcmp(name, "fay_emit"))
		return take_access(p, block, call, 2, unit->spec->states[state].row_size, false);
	return 0;
}

/* A pointer that is a number: null, a function's (pointer_calls.c), or one that was kept as such.
 * */
static bool is_number(LLVMValueRef pointer, int depth)
{
	if (LLVMIsAConstantPointerNull(pointer) || LLVMIsALoadInst(pointer))
		return true;
	if (LLVMIsAConstantExpr(pointer))
		return LLVMGetConstOpcode(pointer) == LLVMIntToPtr &&
		       LLVMIsAConstantInt(LLVMGetOperand(pointer, 0));
	if (LLVMIsASelectInst(pointer))
		return depth < 8 && is_number(LLVMGetOperand(pointer, 1), depth + 1) &&
		       is_number(LLVMGetOperand(pointer, 2), depth + 1);
	if (!LLVMIsAPHINode(pointer) || depth == 8)
		return false;
	for (unsigned i = 0; i < LLVMCountIncoming(pointer); i++)
		if (!is_number(LLVMGetIncomingValue(pointer, i), depth + 1))
			return false;
	return true;
}

int fay_take_access(struct fay_guards *p, unsigned block, LLVMValueRef i)
{
	LLVMTargetDataRef layout = p->unit->layout;

	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMLoad:
		return take_access(p, block, i, 0, LLVMStoreSizeOfType(layout, LLVMTypeOf(i)),
				   false);
	case LLVMStore:
		if (LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(i, 0))) == LLVMPointerTypeKind &&
		    !is_number(LLVMGetOperand(i, 0), 0))
			return fay_refuse_at(p->unit, i,
					     "a pointer would be stored; state holds numbers and "
					     "text only, keep an index instead");
		return take_access(p, block, i, 1,
				   LLVMStoreSizeOfType(layout, LLVMTypeOf(LLVMGetOperand(i, 0))),
				   true);
	case LLVMAtomicRMW:
	case LLVMAtomicCmpXchg:
		return take_access(p, block, i, 0,
				   LLVMStoreSizeOfType(layout, LLVMTypeOf(LLVMGetOperand(i, 1))),
				   true);
	case LLVMCall: return take_call(p, block, i);
	default: return 0;
	}
}
