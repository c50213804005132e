/* SPDX-License-Identifier: MIT */
/*
 * Abstract values: names, reads and writes of registers, arithmetic on numbers and pointers.
 *
 * A value read at 8, 16 or 32 bits is zero-extended first; it keeps its name only if that changes
 * nothing.
 */
#include "transfer.h"
#include "verifier/prover/state/state.h"

struct fay_value fay_value_fresh(struct fay_analysis *an, struct fay_scalar scalar)
{
	struct fay_value v = fay_value_scalar(scalar);

	v.id = an->current->next_id++;
	return v;
}

struct fay_value fay_value_constant(struct fay_analysis *an, uint64_t number)
{
	return fay_value_fresh(an, fay_scalar_const(number));
}

void fay_value_forget_name(struct fay_analysis *an, struct fay_value *v)
{
	v->id = an->current->next_id++;
	v->delta = 0;
	v->origin = 0;
}

/* The low `width` bits of a numeric value. */
struct fay_value fay_value_narrow(struct fay_analysis *an, struct fay_value v, unsigned width)
{
	struct fay_value whole = v;

	if (width < 64) {
		v.s = fay_scalar_zext(&v.s, width);
		if (whole.s.umax > mask_of(width)) {
			fay_value_forget_name(an, &v);
			fay_form_narrow(an, &whole, width, &v);
		}
	}
	v.init = 0xff;
	v.size = 8;
	return v;
}

void fay_note_read(struct fay_analysis *an, const struct fay_value *v)
{
	static const uint8_t argument[] = { FAY_RDI, FAY_RSI, FAY_RDX };

	if (an->checking && v->kind == KIND_POINTER && v->tag <= REGION_GLOBAL)
		an->facts->arguments_used |= 1u << argument[v->tag];
}

/* Checks that `v` may be read as `width` bits of data. */
bool fay_value_readable(struct fay_analysis *an, const struct fay_value *v, unsigned width,
			const char *name)
{
	unsigned bytes = width / 8, need = bytes >= 8 ? 0xff : (1u << bytes) - 1;

	fay_note_read(an, v);
	switch (v->kind) {
	case KIND_SCALAR:
		if ((v->init & need) != need)
			return fay_path_refuse(an, FAY_RULE_MEM_UNINIT,
					       "%s is read, but only part of it was written", name);
		return true;
	case KIND_POINTER:
		if (width != 64)
			return fay_path_refuse(
				an, FAY_RULE_MEM_POINTER,
				"%s holds a pointer, and only %u bits of it are used", name, width);
		return true;
	case KIND_UNINIT:
		return fay_path_refuse(an, FAY_RULE_MEM_UNINIT, "%s is read before it was written",
				       name);
	case KIND_SAVED:
		return fay_path_refuse(
			an, FAY_RULE_MEM_UNINIT,
			"%s holds the traced program's %s, which may only be saved and restored",
			name, fay_gpr_name(v->tag, 64));
	case KIND_HELPER:
		return fay_path_refuse(
			an, FAY_RULE_MEM_POINTER,
			"%s holds the address of %s, which may only be moved and called", name,
			fay_helper_name(v->tag));
	case KIND_RETURN:
		return fay_path_refuse(an, FAY_RULE_STK_RETURN, "%s holds a return address", name);
	default:
		return fay_path_refuse(an, FAY_RULE_MEM_POINTER,
				       "%s holds different kinds of values, depending on the path",
				       name);
	}
}

bool fay_reg_read(struct fay_analysis *an, unsigned reg, unsigned width, struct fay_value *v)
{
	*v = an->current->loc[reg];
	if (!fay_value_readable(an, v, width, fay_gpr_name(reg, width)))
		return false;
	if (v->s.umax > mask_of(width))
		*v = fay_value_narrow(an, *v, width);
	v->init = 0xff;
	v->size = 8;
	return true;
}

/* Writes of 8 and 16 bits keep the rest of the register. */
void fay_reg_write(struct fay_analysis *an, unsigned reg, unsigned width, struct fay_value v)
{
	struct fay_value *to = &an->current->loc[reg];
	struct fay_scalar s = fay_scalar_top();
	uint64_t mask = mask_of(width);
	uint8_t kept = to->kind == KIND_SCALAR ? to->init : 0;

	v.size = 8;
	if (width >= 32) {
		*to = v;
		return;
	}
	if (kept) {
		s.value = to->s.value & ~mask;
		s.unknown = to->s.unknown & ~mask;
	} else {
		s.unknown = ~mask;
	}
	s.value |= v.s.value & mask;
	s.unknown |= v.s.unknown & mask;
	fay_scalar_normalise(&s);
	*to = fay_value_fresh(an, s);
	to->init = kept | (uint8_t)((1u << width / 8) - 1);
	/* All higher bits known zero: the new value's own bounds hold for the whole. */
	if (to->init == 0xff && !((s.value | s.unknown) & ~mask))
		fay_scalar_meet(&to->s, &v.s);
}

/* ---- arithmetic ---- */

/* Ranking tags: r = a + [low, high] without wrapping at the operation's width. */
void fay_value_move_origin(struct fay_value *r, const struct fay_value *a, int64_t low,
			   int64_t high)
{
	if (!a->origin || __builtin_add_overflow(a->dlo, low, &r->dlo) ||
	    __builtin_add_overflow(a->dhi, high, &r->dhi)) {
		r->origin = 0;
		return;
	}
	r->origin = a->origin;
}

/* a + b where b is within its signed bounds, or a - b. Keeps the name if b is one number. */
static void name_sum(struct fay_value *r, const struct fay_value *a, const struct fay_scalar *b,
		     bool minus, unsigned width)
{
	int64_t low, high;

	if (b->smin == INT64_MIN)
		return;
	low = minus ? -b->smax : b->smin;
	high = minus ? -b->smin : b->smax;
	if (width < 64) {
		/* Exact only if the sum stays within the width; a small negative number may be
		 * meant by a large b. */
		struct fay_scalar sb = fay_scalar_sext(b, width);

		low = minus ? -sb.smax : sb.smin;
		high = minus ? -sb.smin : sb.smax;
		if (width < 32 || a->s.smin + low < 0 || a->s.smax + high > (int64_t)mask_of(width))
			return;
	}
	fay_value_move_origin(r, a, low, high);
	if (low == high) {
		r->id = a->id;
		r->delta = a->delta + (uint64_t)low;
	}
}

struct fay_scalar fay_scalar_shift_count(const struct fay_scalar *count, unsigned width)
{
	struct fay_scalar mask = fay_scalar_const(width == 64 ? 63 : 31);

	return fay_scalar_and(count, &mask);
}

/* Scalar results at `width`; operands are zero-extended. */
struct fay_scalar fay_scalar_compute(enum fay_op op, const struct fay_scalar *a,
				     const struct fay_scalar *b, unsigned width)
{
	struct fay_scalar r, count, sa;

	switch (op) {
	case OP_ADD: r = fay_scalar_add(a, b); break;
	case OP_SUB: r = fay_scalar_sub(a, b); break;
	case OP_AND: r = fay_scalar_and(a, b); break;
	case OP_OR: r = fay_scalar_or(a, b); break;
	case OP_XOR: r = fay_scalar_xor(a, b); break;
	case OP_IMUL: r = fay_scalar_mul(a, b); break;
	case OP_SHL:
		count = fay_scalar_shift_count(b, width);
		r = fay_scalar_shl(a, &count);
		break;
	case OP_SHR:
		count = fay_scalar_shift_count(b, width);
		r = fay_scalar_shr(a, &count);
		break;
	case OP_SAR:
		count = fay_scalar_shift_count(b, width);
		sa = fay_scalar_sext(a, width);
		r = fay_scalar_sar(&sa, &count);
		break;
	default: r = fay_scalar_top();
	}
	return fay_scalar_zext(&r, width);
}

/* 32-bit arithmetic on numbers that are meant as negative: also by sign extension. */
struct fay_scalar fay_scalar_compute_both(enum fay_op op, const struct fay_scalar *a,
					  const struct fay_scalar *b, unsigned width)
{
	struct fay_scalar r = fay_scalar_compute(op, a, b, width);

	/* Numbers that no sign extension changes would give the same again. */
	if (width < 64 && (op == OP_ADD || op == OP_SUB || op == OP_IMUL) &&
	    !fay_scalar_is_const(&r) && (a->umax | b->umax) >> (width - 1)) {
		struct fay_scalar sa = fay_scalar_sext(a, width), sb = fay_scalar_sext(b, width),
				  rs;

		rs = op == OP_ADD   ? fay_scalar_add(&sa, &sb)
		     : op == OP_SUB ? fay_scalar_sub(&sa, &sb)
				    : fay_scalar_mul(&sa, &sb);
		rs = fay_scalar_zext(&rs, width);
		fay_scalar_meet(&r, &rs);
	}
	return r;
}

/* Pointer arithmetic, 64 bits. Sets *done if a or b is a pointer. */
static bool pointer_arithmetic(struct fay_analysis *an, enum fay_op op, const struct fay_value *a,
			       const struct fay_value *b, struct fay_value *r, bool *done)
{
	bool pa = a->kind == KIND_POINTER, pb = b->kind == KIND_POINTER;

	*done = pa || pb;
	if (!*done)
		return true;
	if (op == OP_ADD && pa != pb) {
		const struct fay_value *p = pa ? a : b, *n = pa ? b : a;

		*r = fay_value_fresh(an, fay_scalar_add(&p->s, &n->s));
		r->kind = KIND_POINTER;
		r->tag = p->tag;
		name_sum(r, p, &n->s, false, 64);
		if (fay_scalar_is_const(&p->s) && !fay_scalar_is_const(&n->s))
			name_sum(r, n, &p->s, false, 64);
		return true;
	}
	if (op == OP_SUB && pa && !pb) {
		*r = fay_value_fresh(an, fay_scalar_sub(&a->s, &b->s));
		r->kind = KIND_POINTER;
		r->tag = a->tag;
		name_sum(r, a, &b->s, true, 64);
		return true;
	}
	if (op == OP_SUB && pa && pb && a->tag == b->tag) {
		*r = fay_value_fresh(an, fay_scalar_sub(&a->s, &b->s));
		return true;
	}
	return fay_path_refuse(an, FAY_RULE_MEM_POINTER,
			       "arithmetic on a pointer other than adding or subtracting a number");
}

/* Sums and differences of two numbers that vary: how they lie to one another, and what is known of
 * that already. */
static void relate(struct fay_analysis *an, enum fay_op op, const struct fay_value *a,
		   const struct fay_value *b, unsigned width, struct fay_value *r)
{
	int64_t lo, hi, most = width == 64 ? INT64_MAX : (int64_t)mask_of(width),
			least = width == 64 ? INT64_MIN : 0;

	if (an->addressing || (an->current->plain && a->id != b->id) ||
	    fay_scalar_is_const(&a->s) || fay_scalar_is_const(&b->s))
		return;
	if (op == OP_SUB) {
		fay_relations_difference(an->current, a, b, &lo, &hi);
		if (lo > INT64_MIN && hi < INT64_MAX && lo >= least && hi <= most) {
			struct fay_scalar range = fay_scalar_srange(lo, hi);

			fay_scalar_meet(&r->s, &range);
			fay_relations_add(an->current, r, 1, a, -1,
					  b->s.smax == INT64_MIN ? INT64_MIN : -b->s.smax,
					  b->s.smin == INT64_MIN ? INT64_MAX : -b->s.smin);
		}
	} else if (op == OP_ADD && !__builtin_add_overflow(a->s.smin, b->s.smin, &lo) &&
		   !__builtin_add_overflow(a->s.smax, b->s.smax, &hi) && lo >= least &&
		   hi <= most) {
		fay_relations_add(an->current, r, 1, a, -1, b->s.smin, b->s.smax);
		fay_relations_add(an->current, r, 1, b, -1, a->s.smin, a->s.smax);
	} else if (op == OP_AND && a->s.smin >= 0) {
		fay_relations_add(an->current, r, 1, a, -1, INT64_MIN, 0);
	}
}

bool fay_value_arithmetic(struct fay_analysis *an, enum fay_op op, const struct fay_value *a,
			  const struct fay_value *b, unsigned width, struct fay_value *r)
{
	bool done;

	if (!pointer_arithmetic(an, op, a, b, r, &done))
		return false;
	if (done) {
		relate(an, op, a, b, width, r);
		return true;
	}
	*r = fay_value_fresh(an, fay_scalar_compute_both(op, &a->s, &b->s, width));
	if (op == OP_ADD) {
		name_sum(r, a, &b->s, false, width);
		if (!r->origin && (r->id != a->id || !a->id) && !fay_scalar_is_const(&b->s))
			name_sum(r, b, &a->s, false, width);
	} else if (op == OP_SUB) {
		name_sum(r, a, &b->s, true, width);
	}
	if (width == 32 && (op == OP_ADD || op == OP_SUB) && fay_scalar_is_const(&b->s))
		fay_wrap_note(an, a, op == OP_ADD ? b->s.umin : -b->s.umin, r);
	relate(an, op, a, b, width, r);
	return true;
}
