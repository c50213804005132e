/* SPDX-License-Identifier: MIT */
/* What the flags say: of which subtraction they are, and what a condition tells of its operands. */
#include "machine.h"

#define FAR ((wide)1 << 66) /* beyond every word */

void flags_set(struct machine *m, const struct fay_insn *insn, const struct value *a,
	       const struct value *b, unsigned covered)
{
	const struct fay_op_info *info = &fay_op_table[insn->op];
	struct flags *f = &m->s.flags;

	f->undefined = (uint8_t)((f->undefined & ~info->flags_written) | info->flags_undefined);
	f->covered = a ? covered & info->flags_written & ~f->undefined & FLAG_ALL : 0;
	f->bits = insn->width;
	f->inverted = false;
	f->a = a ? *a : value_nothing();
	f->b = b ? *b : a ? value_number(0) : value_nothing();
}

bool flags_ready(struct machine *m, unsigned cc)
{
	return !(fay_cc_flags((enum fay_cc)cc) & m->s.flags.undefined) ||
	       check_refuse(m, FAY_RULE_ENV_FLAGS, "a flag is read that is not defined here");
}

/* x, read as `bits` bits, is at least lo and at most hi; as far as is known it is in r. */
static bool bound(struct machine *m, const struct value *x, unsigned bits, bool sign,
		  const struct form *f, struct range r, wide lo, wide hi)
{
	unsigned b = x->bits < bits ? x->bits : bits;
	wide base = sign && b == bits ? -((wide)1 << (b - 1)) : 0, top = base + ((wide)1 << b) - 1;

	if (!f->v[0])
		return lo <= r.lo && r.hi <= hi;
	lo = lo > base ? lo : base;
	hi = hi < top ? hi : top;
	return lo <= hi && form_window(m, f, b, lo, hi);
}

/* lo <= a - b <= hi over the integers, both read as signed or not. */
static bool assume_order(struct machine *m, bool sign, wide lo, wide hi)
{
	const struct flags *f = &m->s.flags;
	struct form a, b;
	bool exact_a, exact_b;
	wide shift_a, shift_b;
	struct range ra = value_read(m, &f->a, f->bits, sign, &a, &shift_a, &exact_a);
	struct range rb = value_read(m, &f->b, f->bits, sign, &b, &shift_b, &exact_b);

	if (!bound(m, &f->a, f->bits, sign, &a, ra, rb.lo + lo, rb.hi + hi) ||
	    !bound(m, &f->b, f->bits, sign, &b, rb, ra.lo - hi, ra.hi - lo))
		return false;
	if (!exact_a || !exact_b) { /* now some word may be read as signed */
		value_read(m, &f->a, f->bits, sign, &a, &shift_a, &exact_a);
		value_read(m, &f->b, f->bits, sign, &b, &shift_b, &exact_b);
	}
	if (!exact_a || !exact_b || !b.v[0] || !form_plus(&a, &b, -1))
		return true;
	return form_narrow(m, &a, lo - shift_a + shift_b, hi - shift_a + shift_b);
}

/* a - b, modulo 2^bits. */
static bool difference(struct machine *m, struct form *d)
{
	const struct flags *f = &m->s.flags;
	struct form b;

	if (!value_congruent(m, &f->a, f->bits, d) || !value_congruent(m, &f->b, f->bits, &b) ||
	    !form_add(d, &b, -1))
		return false;
	form_reduce(d, f->bits);
	return true;
}

static bool assume_different(struct machine *m, const struct form *d)
{
	wide mask = ((wide)1 << m->s.flags.bits) - 1;
	struct range r = form_range(m, d);

	if (!(r.lo & mask))
		r.lo++;
	if (!(r.hi & mask))
		r.hi--;
	return r.lo <= r.hi && form_narrow(m, d, r.lo, r.hi);
}

bool flags_assume(struct machine *m, unsigned cc)
{
	const struct flags *f = &m->s.flags;
	unsigned need = fay_cc_flags((enum fay_cc)cc);
	wide half = (wide)1 << (f->bits - 1);
	struct form d;

	if ((need & f->covered) != need)
		return true;
	/* a + n is a - (-n), n not 0: where one carries, the other does not borrow */
	if (f->inverted && (cc == CC_B || cc == CC_BE))
		cc = CC_AE;
	else if (f->inverted && (cc == CC_AE || cc == CC_A))
		cc = CC_B;
	switch (cc) {
	case CC_B: return assume_order(m, false, -FAR, -1);
	case CC_AE: return assume_order(m, false, 0, FAR);
	case CC_BE: return assume_order(m, false, -FAR, 0);
	case CC_A: return assume_order(m, false, 1, FAR);
	case CC_L: return assume_order(m, true, -FAR, -1);
	case CC_GE: return assume_order(m, true, 0, FAR);
	case CC_LE: return assume_order(m, true, -FAR, 0);
	case CC_G: return assume_order(m, true, 1, FAR);
	case CC_E:
		return assume_order(m, false, 0, 0) &&
		       (!difference(m, &d) || form_window(m, &d, f->bits, 0, 0));
	case CC_NE: return !difference(m, &d) || assume_different(m, &d);
	case CC_S: return !difference(m, &d) || form_window(m, &d, f->bits, -half, -1);
	case CC_NS: return !difference(m, &d) || form_window(m, &d, f->bits, 0, half - 1);
	default: return true;
	}
}

bool flags_where(struct machine *m, unsigned cc, const struct value *v, unsigned bits,
		 struct range *r)
{
	bool may;

	assume_begin(m);
	may = flags_assume(m, cc);
	if (may)
		*r = value_range(m, v, bits, v->kind == KIND_POINTER);
	assume_undo(m);
	return may;
}

struct value flags_truth(struct machine *m, unsigned cc)
{
	struct value one = value_number(1);
	struct range r;

	return value_fresh(m, flags_where(m, cc ^ 1, &one, 64, &r) ? 0 : 1,
			   flags_where(m, cc, &one, 64, &r) ? 1 : 0, 64);
}
