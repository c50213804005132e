/* SPDX-License-Identifier: MIT */
/*
 * Kinds of values as terms: for each register and stack slot a tag (not readable, number, pointer
 * to a region, return address, a helper's address, a register's value at entry) and, for numbers,
 * which bytes were written. The machine has no tags; they say what provenance an execution gave a
 * value, so that "reads only what was written" or "goes through a pointer to local state" become
 * formulas over bit vectors that any solver can check (smt_proof.c).
 *
 * How tags move is stated here apart from the abstract transfer functions, on purpose: proofs that
 * are written out for a second solver are then also a second opinion on those functions.
 */
#include "smt_kinds_parts.h"

#include <stdlib.h>

#define SLOTS (FAY_STACK_HARD / 4)

bool fay_kinds_init(struct fay_kinds *k)
{
	*k = (struct fay_kinds){ .slot = calloc(SLOTS, sizeof(*k->slot)) };
	return k->slot != NULL;
}

void fay_kinds_deinit(struct fay_kinds *k)
{
	free(k->slot);
}

void fay_kinds_fresh(struct fay_kinds *k, struct query *q, uint32_t slots)
{
	for (unsigned r = 0; r < 16; r++)
		k->reg[r] = fresh_kind(q);
	k->slots = slots;
	for (uint32_t i = 0; i < slots; i++)
		k->slot[i] = fresh_kind(q);
	k->undefined = FLAG_ALL;
}

void fay_kinds_depth(struct fay_kinds *k, struct query *q, uint32_t slots)
{
	for (uint32_t i = k->slots; i < slots && i < SLOTS; i++)
		k->slot[i] = constant_kind(q, TAG_UNREADABLE);
	k->slots = slots;
}

/* ---- formulas ---- */

Z3_ast fay_kinds_is(struct query *q, struct kind kind, unsigned tag)
{
	return Z3_mk_eq(q->z, kind.tag, tag_of(q, tag));
}

static Z3_ast has_bytes(struct query *q, struct kind kind, unsigned mask)
{
	return Z3_mk_eq(q->z, Z3_mk_bvand(q->z, kind.init, bits(q, mask, 8)), bits(q, mask, 8));
}

Z3_ast fay_kinds_number(struct query *q, struct kind kind, unsigned width)
{
	return both(q, fay_kinds_is(q, kind, TAG_NUMBER),
		    has_bytes(q, kind, width >= 64 ? 0xff : (1u << width / 8) - 1));
}

Z3_ast fay_kinds_high(struct query *q, struct kind kind)
{
	return both(q, fay_kinds_is(q, kind, TAG_NUMBER), has_bytes(q, kind, HIGH_BYTE));
}

Z3_ast fay_kinds_pointer(struct query *q, struct kind kind)
{
	return both(q, Z3_mk_bvuge(q->z, kind.tag, tag_of(q, TAG_POINTER)),
		    Z3_mk_bvult(q->z, kind.tag, tag_of(q, TAG_POINTER + REGION_COUNT)));
}

Z3_ast fay_kinds_movable(struct query *q, struct kind kind)
{
	static const uint8_t saved[] = { FAY_RBX, FAY_RBP, FAY_R12, FAY_R13, FAY_R14, FAY_R15 };
	Z3_ast r = either(q, fay_kinds_number(q, kind, 64), fay_kinds_pointer(q, kind));

	for (unsigned i = 0; i < sizeof(saved); i++)
		r = either(q, r, fay_kinds_is(q, kind, TAG_ENTRY + saved[i]));
	for (unsigned i = 0; i < FAY_HELPER_COUNT; i++)
		r = either(q, r, fay_kinds_is(q, kind, TAG_HELPER + i));
	return r;
}

/* ---- stack ---- */

Z3_ast fay_kinds_bytes(struct fay_kinds *k, struct query *q, int64_t low, int64_t high)
{
	Z3_ast r = Z3_mk_true(q->z);

	if (!inside(k, low, high))
		return low == high ? r : Z3_mk_false(q->z);
	for (int64_t at = low & ~(int64_t)3; at < high; at += 4) {
		struct kind slot = k->slot[slot_of(at)];
		unsigned mask = 0;

		for (int64_t o = at; o < at + 4; o++)
			if (o >= low && o < high)
				mask |= 1u << (o & 3);
		r = both(q, r,
			 both(q, fay_kinds_is(q, slot, TAG_NUMBER), has_bytes(q, slot, mask)));
	}
	return r;
}

static Z3_ast no_return(struct query *q, struct kind slot)
{
	Z3_ast low = Z3_mk_bvand(q->z, slot.tag, bits(q, 0xff & ~TAG_UPPER, 32));

	return negate(q, Z3_mk_eq(q->z, low, tag_of(q, TAG_RETURN)));
}

Z3_ast fay_kinds_no_return(struct fay_kinds *k, struct query *q, int64_t low, int64_t high)
{
	Z3_ast r = Z3_mk_true(q->z);

	if (!inside(k, low, high))
		return low == high ? r : Z3_mk_false(q->z);
	for (int64_t at = low & ~(int64_t)3; at < high; at += 4)
		r = both(q, r, no_return(q, k->slot[slot_of(at)]));
	return r;
}

static struct kind load_pair(struct fay_kinds *k, struct query *q, int64_t offset)
{
	struct kind low = k->slot[slot_of(offset)], high = k->slot[slot_of(offset + 4)];
	Z3_ast numbers =
		both(q, fay_kinds_is(q, low, TAG_NUMBER), fay_kinds_is(q, high, TAG_NUMBER));
	Z3_ast same = Z3_mk_eq(q->z, high.tag, Z3_mk_bvor(q->z, low.tag, tag_of(q, TAG_UPPER)));

	return (struct kind){
		Z3_mk_ite(q->z, either(q, numbers, same), low.tag, tag_of(q, TAG_UNREADABLE)),
		Z3_mk_concat(q->z, Z3_mk_extract(q->z, 3, 0, high.init),
			     Z3_mk_extract(q->z, 3, 0, low.init)),
	};
}

struct kind fay_kinds_load_stack(struct fay_kinds *k, struct query *q, int64_t offset,
				 unsigned size)
{
	Z3_ast ready;

	if (!inside(k, offset, offset + size))
		return constant_kind(q, TAG_UNREADABLE);
	if (size == 8 && !(offset & 3))
		return load_pair(k, q, offset);
	ready = fay_kinds_bytes(k, q, offset, offset + size);
	return (struct kind){ Z3_mk_ite(q->z, ready, tag_of(q, TAG_NUMBER),
					tag_of(q, TAG_UNREADABLE)),
			      bits(q, 0xff, 8) };
}

void fay_kinds_store_pair(struct fay_kinds *k, struct query *q, int64_t offset, struct kind v)
{
	Z3_ast number = fay_kinds_is(q, v, TAG_NUMBER);

	k->slot[slot_of(offset)] = (struct kind){ v.tag, v.init };
	k->slot[slot_of(offset + 4)] =
		(struct kind){ Z3_mk_ite(q->z, number, v.tag,
					 Z3_mk_bvor(q->z, v.tag, tag_of(q, TAG_UPPER))),
			       Z3_mk_bvlshr(q->z, v.init, bits(q, 4, 8)) };
}

void fay_kinds_store_bytes(struct fay_kinds *k, struct query *q, int64_t low, int64_t high,
			   Z3_ast number)
{
	for (int64_t at = low & ~(int64_t)3; at < high; at += 4) {
		struct kind *slot = &k->slot[slot_of(at)];
		Z3_ast kept;
		unsigned mask = 0;

		for (int64_t o = at; o < at + 4; o++)
			if (o >= low && o < high)
				mask |= 1u << (o & 3);
		kept = Z3_mk_ite(q->z, fay_kinds_is(q, *slot, TAG_NUMBER), slot->init,
				 bits(q, 0, 8));
		slot->tag =
			Z3_mk_ite(q->z, number, tag_of(q, TAG_NUMBER), tag_of(q, TAG_UNREADABLE));
		slot->init = Z3_mk_bvor(q->z, kept, bits(q, mask, 8));
	}
}

#define FOLLOWED 512 /* bytes that an access may reach, for it to be followed byte by byte */

/* Whether an access of `size` bytes at offset `at`, of which `of` is known, touches byte o. */
static Z3_ast touches(struct query *q, Z3_ast at, const struct fay_scalar *of, unsigned size,
		      int64_t o)
{
	Z3_ast any = Z3_mk_false(q->z);

	for (int64_t start = o - size + 1; start <= o; start++)
		if (fay_scalar_contains(of, (uint64_t)start))
			any = either(q, any, Z3_mk_eq(q->z, at, bits(q, (uint64_t)start, 64)));
	return any;
}

/* A number is written there: what the invariants say of arrays that are written up to a counter
 * rests on that. */
static void store_somewhere(struct fay_kinds *k, struct query *q, Z3_ast at,
			    const struct fay_scalar *of, unsigned size, int64_t low, int64_t high)
{
	for (int64_t place = low & ~(int64_t)3; place < high && high - low <= FOLLOWED;
	     place += 4) {
		struct kind *slot = &k->slot[slot_of(place)];
		Z3_ast old = Z3_mk_ite(q->z, fay_kinds_is(q, *slot, TAG_NUMBER), slot->init,
				       bits(q, 0, 8)),
		       hits = bits(q, 0, 8), any;

		for (int64_t o = place; o < place + 4; o++)
			hits = Z3_mk_bvor(q->z, hits,
					  Z3_mk_ite(q->z, touches(q, at, of, size, o),
						    bits(q, 1u << (o & 3), 8), bits(q, 0, 8)));
		any = negate(q, Z3_mk_eq(q->z, hits, bits(q, 0, 8)));
		slot->tag = Z3_mk_ite(q->z, any, tag_of(q, TAG_NUMBER), slot->tag);
		slot->init = Z3_mk_ite(q->z, any, Z3_mk_bvor(q->z, old, hits), slot->init);
	}
}

/* The bytes there hold numbers that were written. */
static Z3_ast bytes_somewhere(struct fay_kinds *k, struct query *q, Z3_ast at,
			      const struct fay_scalar *of, unsigned size, int64_t low, int64_t high)
{
	Z3_ast all = Z3_mk_true(q->z);

	if (high - low > FOLLOWED || !inside(k, low, high))
		return fay_kinds_bytes(k, q, low, high);
	for (int64_t o = low; o < high; o++)
		all = both(q, all,
			   either(q, negate(q, touches(q, at, of, size, o)),
				  fay_kinds_bytes(k, q, o, o + 1)));
	return all;
}

void fay_kinds_forget_bytes(struct fay_kinds *k, struct query *q, int64_t low, int64_t high)
{
	for (int64_t at = low & ~(int64_t)3; at < high; at += 4) {
		struct kind *slot = &k->slot[slot_of(at)];

		slot->tag = Z3_mk_ite(q->z, fay_kinds_is(q, *slot, TAG_NUMBER), slot->tag,
				      tag_of(q, TAG_UNREADABLE));
	}
}

static void store_operand(struct fay_kinds *k, struct query *q, const struct fay_operand *mem,
			  unsigned width, struct kind v)
{
	struct fay_value at;
	int64_t low, high;

	if (!fay_transfer_address(q->an, mem, &at) || at.tag != REGION_STACK)
		return;
	low = at.s.smin;
	high = at.s.smax + width / 8;
	if (!inside(k, low, high))
		return;
	if (!fay_scalar_is_const(&at.s)) {
		fay_kinds_forget_bytes(k, q, low, high);
		store_somewhere(k, q, fay_smt_address(q, mem), &at.s, width / 8, low, high);
	} else if (width == 64 && !(low & 3))
		fay_kinds_store_pair(k, q, low, v);
	else
		fay_kinds_store_bytes(k, q, low, high, fay_kinds_number(q, v, width));
}

/* ---- operands ---- */

struct kind fay_kinds_address(struct fay_kinds *k, struct query *q, const struct fay_operand *mem)
{
	struct kind base, index, r;
	Z3_ast other;

	if (mem->rip)
		return constant_kind(q, TAG_POINTER + REGION_RODATA);
	base = mem->base == FAY_NO_REG ? constant_kind(q, TAG_NUMBER) : k->reg[mem->base];
	if (mem->index == FAY_NO_REG)
		return base;
	index = k->reg[mem->index];
	other = mem->scale == 1 ? Z3_mk_ite(q->z, fay_kinds_is(q, base, TAG_NUMBER), index.tag,
					    tag_of(q, TAG_UNREADABLE))
				: tag_of(q, TAG_UNREADABLE);
	r.tag = Z3_mk_ite(q->z, fay_kinds_is(q, index, TAG_NUMBER), base.tag, other);
	r.init = Z3_mk_bvand(q->z, base.init, index.init);
	return r;
}

struct kind fay_kinds_operand(struct fay_kinds *k, struct query *q,
			      const struct fay_operand *operand, unsigned width)
{
	struct fay_value at;

	if (operand->kind == OPERAND_REG)
		return k->reg[operand->reg];
	if (operand->kind != OPERAND_MEM || !fay_transfer_address(q->an, operand, &at) ||
	    at.tag != REGION_STACK)
		return constant_kind(q, TAG_NUMBER);
	if (fay_scalar_is_const(&at.s))
		return fay_kinds_load_stack(k, q, at.s.smin, width / 8);
	return (struct kind){ Z3_mk_ite(q->z,
					bytes_somewhere(k, q, fay_smt_address(q, operand), &at.s,
							width / 8, at.s.smin,
							at.s.smax + width / 8),
					tag_of(q, TAG_NUMBER), tag_of(q, TAG_UNREADABLE)),
			      bits(q, 0xff, 8) };
}

/* These bytes of a register are written with a number; of the others those are kept that were. */
static void write_part(struct fay_kinds *k, struct query *q, unsigned reg, unsigned bytes)
{
	struct kind *to = &k->reg[reg];
	Z3_ast kept = Z3_mk_ite(q->z, fay_kinds_is(q, *to, TAG_NUMBER), to->init, bits(q, 0, 8));

	*to = (struct kind){ tag_of(q, TAG_NUMBER), Z3_mk_bvor(q->z, kept, bits(q, bytes, 8)) };
}

void fay_kinds_write_reg(struct fay_kinds *k, struct query *q, unsigned reg, unsigned width,
			 struct kind v)
{
	if (width == 64)
		k->reg[reg] = v;
	else if (width == 32)
		k->reg[reg] = constant_kind(q, TAG_NUMBER);
	else
		write_part(k, q, reg, (1u << width / 8) - 1);
}

void fay_kinds_write_operand(struct fay_kinds *k, struct query *q,
			     const struct fay_operand *operand, unsigned width, struct kind v)
{
	if (operand->kind == OPERAND_REG)
		fay_kinds_write_reg(k, q, operand->reg, width, v);
	else if (operand->kind == OPERAND_HIGH)
		write_part(k, q, operand->reg, HIGH_BYTE);
	else if (operand->kind == OPERAND_MEM)
		store_operand(k, q, operand, width, v);
}

/* ---- states ---- */

static void assume_reg(struct query *q, struct kind kind, const struct fay_value *v)
{
	switch (v->kind) {
	case KIND_SCALAR:
		fay_smt_assume(
			q, both(q, fay_kinds_is(q, kind, TAG_NUMBER), has_bytes(q, kind, v->init)));
		return;
	case KIND_POINTER: fay_smt_assume(q, fay_kinds_is(q, kind, TAG_POINTER + v->tag)); return;
	case KIND_HELPER: fay_smt_assume(q, fay_kinds_is(q, kind, TAG_HELPER + v->tag)); return;
	case KIND_UNINIT:
	case KIND_SAVED:
		if (v->tag != TAG_NONE)
			fay_smt_assume(q, fay_kinds_is(q, kind, TAG_ENTRY + v->tag));
		return;
	default: return;
	}
}

void fay_kinds_assume_slot(struct fay_kinds *k, struct query *q, const struct fay_state *s,
			   uint32_t i)
{
	const struct fay_value *v = &s->loc[LOC_SLOTS + i];
	bool pair = i && s->loc[LOC_SLOTS + i - 1].kind == KIND_UPPER;
	unsigned tag = (unsigned)TAG_ENTRY + v->tag;

	if (v->kind == KIND_POINTER)
		tag = (unsigned)TAG_POINTER + v->tag;
	else if (v->kind == KIND_RETURN)
		tag = TAG_RETURN | (unsigned)v->s.umin << 8;
	else if (v->kind == KIND_HELPER)
		tag = (unsigned)TAG_HELPER + v->tag;
	switch (v->kind) {
	case KIND_SCALAR:
		fay_smt_assume(q, both(q, fay_kinds_is(q, k->slot[i], TAG_NUMBER),
				       has_bytes(q, k->slot[i], v->init & 0xf)));
		if (pair)
			fay_smt_assume(q, both(q, fay_kinds_is(q, k->slot[i - 1], TAG_NUMBER),
					       has_bytes(q, k->slot[i - 1], v->init >> 4)));
		return;
	case KIND_UNINIT:
	case KIND_SAVED:
		if (v->tag != TAG_NONE)
			break;
		fay_smt_assume(q, no_return(q, k->slot[i]));
		return;
	case KIND_POINTER:
	case KIND_RETURN:
	case KIND_HELPER: break;
	default: return;
	}
	if (!pair)
		return;
	fay_smt_assume(q, fay_kinds_is(q, k->slot[i], tag));
	fay_smt_assume(q, fay_kinds_is(q, k->slot[i - 1], tag | TAG_UPPER));
}

/* All bytes from a constant to where a counter says, or the other way. */
static void assume_fill(struct fay_kinds *k, struct query *q, const struct fay_state *s,
			const struct fay_fill *f)
{
	Z3_ast x = f->x <= s->count ? fay_smt_location(q, s, f->x - 1) : NULL, end;
	int64_t least, greatest, low, high;

	if (!x || !fay_fill_ends(s, f, &least, &greatest))
		return;
	low = f->down ? least : f->fixed;
	high = f->down ? f->fixed : greatest;
	low = low < -4 * (int64_t)k->slots ? -4 * (int64_t)k->slots : low;
	high = high > 0 ? 0 : high;
	end = Z3_mk_bvadd(q->z, bits(q, (uint64_t)f->moving, 64),
			  Z3_mk_bvmul(q->z, bits(q, (uint64_t)f->step, 64),
				      Z3_mk_bvadd(q->z, x, bits(q, f->dx, 64))));
	for (int64_t o = low; o < high; o++) {
		Z3_ast within = f->down ? Z3_mk_bvsle(q->z, end, bits(q, (uint64_t)o, 64))
					: Z3_mk_bvsgt(q->z, end, bits(q, (uint64_t)o, 64));

		fay_smt_assume(q, Z3_mk_implies(q->z, within, fay_kinds_bytes(k, q, o, o + 1)));
	}
}

void fay_kinds_assume(struct fay_kinds *k, struct query *q, const struct fay_state *s)
{
	for (uint32_t i = 0; i < s->fill_count; i++)
		assume_fill(k, q, s, &s->fills[i]);
	for (unsigned r = 0; r < 16; r++)
		assume_reg(q, k->reg[r], &s->loc[r]);
	for (uint32_t i = 0; i < k->slots && i < s->count - LOC_SLOTS; i++)
		fay_kinds_assume_slot(k, q, s, i);
}
