/* SPDX-License-Identifier: MIT */
/*
 * The XFI guards (Erlingsson et al., OSDI 2006, section 3.2), on IR. Every access is traced to the
 * object it is based on: the event, a state object, LOCAL or GLOBAL as a whole, a stack array or a
 * constant. Its address then has the form
 *
 *     base + constant + scale1 * index1 + ...
 *
 * A constant address is checked now. For an index there are two bounds: the array member that it
 * indexes by its type, so that it does not reach the member's neighbour, and the object, so that it
 * reaches nothing else. An index that provably stays inside needs nothing. Otherwise it is masked
 * where the number of elements is a power of two (or the index a multiple of one) and clamped to
 * the last element where not: one or two instructions without a branch, which hold under
 * speculation too and are found again by the verifier's intervals and known bits. An index past the
 * end therefore reaches some element of the same member, never anything else.
 *
 * One guard does for all accesses of a block that use the same index: it leaves room for the one
 * that reaches furthest, which all of them will get to anyway. It also does for all accesses that
 * it dominates. A guard of an index from outside a loop stays outside.
 *
 * A pointer whose object is not known (loaded from memory, made from an integer) is refused: the
 * traced program's memory is read by fay_try_read only. Loop variables that are pointers into one
 * object are first rewritten as offsets (pointers.c).
 */
#include <stdlib.h>
#include <string.h>

#include "guards_private.h"

static LLVMTypeRef i64(const struct fay_guards *p)
{
	return LLVMInt64TypeInContext(p->unit->context);
}

/* ---- what is known of an index ---- */

/* Range of an index as a GEP takes it, signed; hi is UINT64_MAX where it may be negative. */
static struct fay_range index_range(const struct fay_guards *p, LLVMValueRef index, LLVMValueRef at)
{
	unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(index));
	struct fay_range r = { 0, UINT64_MAX };

	if (width <= 64)
		r = fay_range_of(index, p->unit->confined ? NULL : at);
	if (width > 64 || r.hi >= UINT64_C(1) << (width - 1))
		return (struct fay_range){ 0, UINT64_MAX };
	return r;
}

/* ---- building guards, and finding those that are there ---- */

/* What an index was widened from, if that is the same number wherever it is at most last. */
static LLVMValueRef narrow_of(LLVMValueRef v, uint64_t last)
{
	LLVMValueRef narrow = LLVMIsAZExtInst(v) || LLVMIsASExtInst(v) ? LLVMGetOperand(v, 0) : v;

	return last < UINT64_C(1) << (LLVMGetIntTypeWidth(LLVMTypeOf(narrow)) - 1) ? narrow : v;
}

/* Whether two indices are certainly one number: the same value, or made of the same in the same way
 * by widening and constants (unsigned.c makes such twins). */
static bool same_index(LLVMValueRef v, LLVMValueRef w, int depth)
{
	if (v == w)
		return true;
	if (depth > 3 || !LLVMIsAInstruction(v) || !LLVMIsAInstruction(w) ||
	    LLVMGetInstructionOpcode(v) != LLVMGetInstructionOpcode(w) ||
	    LLVMTypeOf(v) != LLVMTypeOf(w))
		return false;
	switch (LLVMGetInstructionOpcode(v)) {
	case LLVMZExt: return same_index(LLVMGetOperand(v, 0), LLVMGetOperand(w, 0), depth + 1);
	case LLVMShl:
	case LLVMMul:
	case LLVMAdd:
		return LLVMGetOperand(v, 1) == LLVMGetOperand(w, 1) &&
		       same_index(LLVMGetOperand(v, 0), LLVMGetOperand(w, 0), depth + 1);
	default: return false;
	}
}

static bool same_terms(const struct fay_term *a, const struct fay_term *b, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!same_index(a[i].index, b[i].index, 0) ||
		    (count > 1 && a[i].scale != b[i].scale))
			return false;
	return true;
}

static LLVMValueRef find_known(struct fay_guards *p, const struct fay_access *a,
			       const struct fay_term *terms, unsigned count, int64_t shift,
			       uint64_t last)
{
	for (size_t i = 0; i < p->known_count; i++) {
		const struct fay_known *k = &p->known[i];

		if (k->terms == count && k->last == last && k->shift == shift &&
		    (same_terms(k->term, terms, count) ||
		     (count == 1 &&
		      narrow_of(k->term[0].index, last) == narrow_of(terms[0].index, last))) &&
		    fay_flow_dominates(p->flow, k->block, p->flow->blocks[a->block])) {
			p->unit->count.merged++;
			return k->value;
		}
	}
	return NULL;
}

static LLVMBasicBlockRef home_of(const struct fay_guards *p, LLVMValueRef v)
{
	return LLVMIsAInstruction(v) ? LLVMGetInstructionParent(v) : p->flow->blocks[0];
}

/* Where a guard of these terms goes: before the access, or at once after the index if that comes
 * from outside the access's loop. */
static LLVMBasicBlockRef place_guard(struct fay_guards *p, const struct fay_access *a,
				     const struct fay_term *terms, unsigned count)
{
	LLVMValueRef last = terms[0].index, next;
	LLVMBasicBlockRef home;

	for (unsigned i = 1; i < count; i++)
		if (!fay_flow_dominates(p->flow, home_of(p, terms[i].index), home_of(p, last)))
			last = terms[i].index;
	home = home_of(p, last);
	if (p->flow->depth[fay_flow_index(p->flow, home)] >= p->flow->depth[a->block] ||
	    count > 1) {
		LLVMPositionBuilderBefore(p->b, a->at);
		return p->flow->blocks[a->block];
	}
	next = LLVMIsAInstruction(last) ? LLVMGetNextInstruction(last)
					: LLVMGetFirstInstruction(home);
	while (LLVMIsAPHINode(next))
		next = LLVMGetNextInstruction(next);
	LLVMPositionBuilderBefore(p->b, next);
	p->unit->count.hoisted++;
	return home;
}

static LLVMValueRef build_bound(struct fay_guards *p, const struct fay_access *a, LLVMValueRef v,
				uint64_t last, unsigned zeros, LLVMBasicBlockRef block)
{
	return fay_build_bound(p->unit, p->b, a->at, v, last, zeros,
			       p->flow->depth[fay_flow_index(p->flow, block)] > 0);
}

static void remember(struct fay_guards *p, const struct fay_known *k)
{
	p->known = fay_grow(p->known, p->known_count, &p->known_room, sizeof(*p->known));
	p->known[p->known_count++] = *k;
}

/* x >> c is within [0, last] if x is within what is made of it: then a guard of x serves both. How
 * often to shift; x becomes the term's index. */
static unsigned take_shift(struct fay_term *term, uint64_t *last)
{
	LLVMValueRef v = LLVMIsAZExtInst(term->index) ? LLVMGetOperand(term->index, 0)
						      : term->index,
		     c;

	if (!LLVMIsABinaryOperator(v) || LLVMGetInstructionOpcode(v) != LLVMLShr)
		return 0;
	c = LLVMGetOperand(v, 1);
	if (!LLVMIsAConstantInt(c) || LLVMConstIntGetZExtValue(c) > 31 || *last > UINT32_MAX)
		return 0;
	term->index = LLVMGetOperand(v, 0);
	*last = ((*last + 1) << LLVMConstIntGetZExtValue(c)) - 1;
	return (unsigned)LLVMConstIntGetZExtValue(c);
}

static LLVMValueRef bound_whole(struct fay_guards *p, const struct fay_access *a,
				const struct fay_term *term, uint64_t last)
{
	LLVMValueRef v = find_known(p, a, term, 1, 0, last);
	struct fay_known k = { .last = last, .terms = 1, .term = { *term } };

	if (v)
		return v;
	k.block = place_guard(p, a, term, 1);
	v = fay_widen(p->unit, p->b, term->index);
	k.value = build_bound(p, a, v, last, fay_zero_bits(term->index), k.block);
	remember(p, &k);
	return k.value;
}

/* The index of a term, as i64 within [0, last]. */
static LLVMValueRef bound_index(struct fay_guards *p, const struct fay_access *a,
				const struct fay_term *term, uint64_t last)
{
	struct fay_term whole = *term;
	unsigned shift = take_shift(&whole, &last);
	LLVMValueRef v = bound_whole(p, a, &whole, last);

	if (!shift)
		return v;
	LLVMPositionBuilderBefore(p->b, a->at);
	return LLVMBuildLShr(p->b, v, LLVMConstInt(i64(p), shift, 0), "");
}

/* The scaled sum of the terms + shift, within [0, last]. */
static LLVMValueRef bound_sum(struct fay_guards *p, const struct fay_access *a,
			      const struct fay_address *address, int64_t shift, uint64_t last)
{
	LLVMValueRef v = find_known(p, a, address->term, address->terms, shift, last);
	struct fay_known k = { .last = last, .terms = address->terms, .shift = shift };
	struct fay_address sum = *address;

	if (v)
		return v;
	memcpy(k.term, address->term, sizeof(k.term));
	k.block = place_guard(p, a, address->term, address->terms);
	sum.constant = shift;
	v = fay_sum_terms(p->unit, p->b, &sum);
	k.value = build_bound(p, a, v, last, 0, k.block);
	remember(p, &k);
	return k.value;
}

/* ---- one access ---- */

/* The largest value of the sum of terms, given what each is bounded to; false if it may be negative
 * or wrap. */
static bool greatest_sum(const struct fay_address *a, const struct fay_range *range, uint64_t *sum)
{
	*sum = 0;
	for (unsigned i = 0; i < a->terms; i++) {
		uint64_t part;

		if (a->term[i].scale < 0 || range[i].hi > INT64_MAX ||
		    __builtin_mul_overflow(range[i].hi, (uint64_t)a->term[i].scale, &part) ||
		    __builtin_add_overflow(*sum, part, sum))
			return false;
	}
	return *sum <= INT64_MAX;
}

/* The accesses of a's block with the same terms: the lowest constant, and the room that the one
 * which reaches furthest leaves. */
static void reach(const struct fay_guards *p, const struct fay_access *a, int64_t *lowest,
		  int64_t *room)
{
	*lowest = a->address.constant;
	*room = (int64_t)(a->extent.size - a->size) - a->address.constant;
	for (const struct fay_access *o = p->access; o < p->access + p->access_count; o++) {
		int64_t left = (int64_t)(o->extent.size - o->size) - o->address.constant;

		if (o->block != a->block || o->address.base != a->address.base ||
		    o->address.terms != a->address.terms || left < 0 ||
		    !same_terms(o->address.term, a->address.term, a->address.terms) ||
		    o->address.term[0].scale != a->address.term[0].scale)
			continue;
		if (o->address.constant < *lowest && o->address.constant > -(int64_t)a->extent.size)
			*lowest = o->address.constant;
		if (left < *room)
			*room = left;
	}
}

/* The least limit of term i among the accesses of a's block with the same terms: one guard then
 * serves all. */
static uint64_t common_limit(const struct fay_guards *p, const struct fay_access *a, unsigned i)
{
	uint64_t limit = a->address.term[i].limit;

	for (const struct fay_access *o = p->access; o < p->access + p->access_count; o++)
		if (o->block == a->block && o->address.base == a->address.base &&
		    o->address.terms == a->address.terms &&
		    same_terms(o->address.term, a->address.term, a->address.terms) &&
		    o->address.term[i].limit > 1 && o->address.term[i].limit < limit)
			limit = o->address.term[i].limit;
	return limit;
}

static void set_address(struct fay_guards *p, const struct fay_access *a, LLVMValueRef offset,
			int64_t constant)
{
	LLVMPositionBuilderBefore(p->b, a->at);
	if (constant)
		offset =
			LLVMBuildAdd(p->b, offset, LLVMConstInt(i64(p), (uint64_t)constant, 1), "");
	LLVMSetOperand(a->at, a->operand,
		       LLVMBuildGEP2(p->b, LLVMInt8TypeInContext(p->unit->context), a->address.base,
				     &offset, 1, ""));
}

/* Bounds the whole address by the object, where indices and members are not enough. */
static void guard_object(struct fay_guards *p, const struct fay_access *a,
			 const struct fay_address *address, uint64_t limit)
{
	struct fay_address address_now = *address;
	int64_t lowest, room;
	uint64_t last;

	reach(p, a, &lowest, &room);
	if (room < 0) { /* past the end whatever the index: pin to the last place */
		address_now.constant = (int64_t)(a->extent.size - a->size);
		lowest = address_now.constant < 0 ? address_now.constant : 0;
		room = 0;
	}
	if (address->terms == 1 && address->term[0].scale > 0 && lowest >= 0) {
		last = (uint64_t)room / (uint64_t)address->term[0].scale;
		if (limit && limit - 1 < last)
			last = limit - 1;
		address_now.term[0].index = bound_index(p, a, &address->term[0], last);
		LLVMPositionBuilderBefore(p->b, a->at);
		address_now.constant = address_now.constant < 0 ? 0 : address_now.constant;
		fay_note_reach(p, a, (uint64_t)address_now.constant,
			       (uint64_t)address_now.constant +
				       last * (uint64_t)address->term[0].scale + a->size);
		set_address(p, a, fay_sum_terms(p->unit, p->b, &address_now), 0);
		return;
	}
	fay_note_reach(p, a, 0, a->extent.size);
	if (lowest > 0)
		lowest = 0;
	room += lowest;
	if (room < 0) { /* the accesses of the block do not fit into the object together */
		lowest = address_now.constant < 0 ? address_now.constant : 0;
		room = (int64_t)(a->extent.size - a->size) - address_now.constant + lowest;
	}
	set_address(p, a, bound_sum(p, a, address, lowest, (uint64_t)room),
		    address_now.constant - lowest);
}

/* Whether indices in these ranges keep the access inside the object; the largest value of their
 * sum. */
static bool fits(const struct fay_access *a, const struct fay_address *address,
		 const struct fay_range *range, uint64_t *sum)
{
	uint64_t most = a->extent.size - a->size;

	return greatest_sum(address, range, sum) && address->constant >= 0 &&
	       (uint64_t)address->constant <= most && *sum <= most - (uint64_t)address->constant;
}

/* Moves what is added to an index, or what it is multiplied by, into the address, as far as that
 * cannot wrap; whether there was any. */
static bool strip_constants(struct fay_address *address)
{
	bool stripped = false;

	for (struct fay_term *t = address->term; t < address->term + address->terms; t++)
		for (LLVMValueRef v = t->index;
		     LLVMIsABinaryOperator(v) && LLVMIsAConstantInt(LLVMGetOperand(v, 1));
		     v = t->index) {
			uint64_t c = LLVMConstIntGetZExtValue(LLVMGetOperand(v, 1));
			LLVMOpcode opcode = LLVMGetInstructionOpcode(v);

			if (t->scale <= 0 || t->scale > 65536 || c > 65536 ||
			    LLVMGetIntTypeWidth(LLVMTypeOf(v)) != 64 ||
			    !(opcode == LLVMAdd || (opcode == LLVMShl && c < 16)) || !LLVMGetNUW(v))
				break;
			if (opcode == LLVMAdd)
				address->constant += t->scale * (int64_t)c;
			else
				t->scale <<= c;
			t->index = LLVMGetOperand(v, 0);
			stripped = true;
		}
	return stripped;
}

/*
 * Where speculation is confined, what branches say of several indices proves nothing, but it says
 * to what each is bounded again at little cost: that guard serves all accesses with the index, and
 * the sum needs none. false: branches do not say enough, or each index has its own limit (`enough`)
 * and the guard would not be shared.
 */
static bool bound_by_branches(const struct fay_guards *p, const struct fay_access *a, bool enough,
			      struct fay_address *address, struct fay_range *range, uint64_t *sum)
{
	struct fay_address stripped = *address;
	struct fay_range by_branches[FAY_TERMS_MAX];
	uint64_t greatest;

	if (!p->unit->confined || (!strip_constants(&stripped) && enough))
		return false;
	for (unsigned i = 0; i < stripped.terms; i++) {
		LLVMValueRef index = stripped.term[i].index;
		unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(index));

		if (width > 64)
			return false;
		by_branches[i] = fay_range_of(index, a->at);
		if (by_branches[i].hi >= UINT64_C(1) << (width - 1))
			return false;
	}
	if (!fits(a, &stripped, by_branches, &greatest))
		return false;
	*sum = greatest;
	*address = stripped;
	memcpy(range, by_branches, sizeof(by_branches));
	return true;
}

static void guard_access(struct fay_guards *p, const struct fay_access *a)
{
	struct fay_address guarded = a->address;
	struct fay_range range[FAY_TERMS_MAX];
	bool changed = false, by_branches = false, enough;
	uint64_t sum;

	for (unsigned i = 0; i < guarded.terms; i++) {
		range[i] = index_range(p, guarded.term[i].index, a->at);
		changed |= guarded.term[i].limit > 1 && range[i].hi >= guarded.term[i].limit;
		if (guarded.term[i].limit > 1 && range[i].hi >= guarded.term[i].limit)
			range[i].hi = guarded.term[i].limit - 1;
	}
	enough = fits(a, &guarded, range, &sum);
	if (!enough || changed)
		by_branches = bound_by_branches(p, a, enough, &guarded, range, &sum);
	if (!enough && !by_branches) {
		guard_object(p, a, &guarded, guarded.term[0].limit > 1 ? common_limit(p, a, 0) : 0);
		return;
	}
	fay_note_reach(p, a, (uint64_t)guarded.constant,
		       (uint64_t)guarded.constant + sum + a->size);
	if (!changed && !by_branches) {
		p->unit->count.in_range++;
		return;
	}
	for (unsigned i = 0; i < guarded.terms; i++) {
		struct fay_term *t = &guarded.term[i];

		if (index_range(p, t->index, a->at).hi > range[i].hi)
			t->index = bound_index(
				p, a, t, by_branches ? range[i].hi : common_limit(p, a, i) - 1);
	}
	LLVMPositionBuilderBefore(p->b, a->at);
	set_address(p, a, fay_sum_terms(p->unit, p->b, &guarded), 0);
}

static int guard_function(struct fay_guards *p, LLVMValueRef function)
{
	int result = 0;

	fay_make_unsigned(p->b, function);
	fay_shorten_loops(p->unit, p->b, p->flow);
	p->access_count = p->known_count = 0;
	for (unsigned k = 0; k < p->flow->count && !result; k++)
		for (LLVMValueRef i = LLVMGetFirstInstruction(p->flow->blocks[k]), next;
		     i && !result; i = next) {
			next = LLVMGetNextInstruction(i);
			result = fay_take_access(p, k, i);
		}
	for (size_t i = 0; i < p->access_count && !result; i++)
		guard_access(p, &p->access[i]);
	fay_apart_mark(p->unit, &p->apart);
	return result;
}

int fay_guard(struct fay_unit *unit)
{
	struct fay_guards p = { .unit = unit, .b = LLVMCreateBuilderInContext(unit->context) };
	int result = 0;

	for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f && !result;
	     f = LLVMGetNextFunction(f)) {
		if (LLVMIsDeclaration(f))
			continue;
		p.flow = fay_flow_create(f);
		if (!p.flow) {
			result = fay_error_set(unit->error, FAY_E_LIMIT, "out of memory");
			break;
		}
		fay_range_use(p.flow);
		fay_make_unsigned(p.b, f);
		fay_split_loads_in(unit, p.b, f);
		if (fay_convert_pointers(unit, p.b, f))
			result = fay_error_set(
				unit->error, FAY_E_INTERNAL,
				"pointers of a loop could not be rewritten as offsets");
		else
			result = guard_function(&p, f);
		fay_range_use(NULL);
		fay_flow_destroy(p.flow);
	}
	free(p.access);
	free(p.known);
	fay_apart_deinit(&p.apart);
	LLVMDisposeBuilder(p.b);
	return result;
}
