/* SPDX-License-Identifier: MIT */
/*
 * What the flags say: records of comparisons, and what a branch that was taken tells of the values
 * compared.
 */
#include "transfer.h"
#include "verifier/prover/state/state.h"

void fay_flags_set(struct fay_analysis *an, enum fay_flags_record record, unsigned width,
		   const struct fay_value *a, const struct fay_value *b, const struct fay_value *r,
		   uint8_t covered)
{
	struct fay_state *s = an->current;
	const struct fay_op_info *info = &fay_op_table[insn_of(an)->op];

	s->record = (uint8_t)record;
	s->flags_width = (uint8_t)width;
	s->carry_inverted = false;
	s->assumed = 0;
	s->flags_undefined =
		(uint8_t)((s->flags_undefined & ~info->flags_written) | info->flags_undefined);
	s->flags_covered = covered & (uint8_t)~s->flags_undefined;
	s->loc[LOC_FLAGS_A] = a ? *a : fay_value_uninit();
	s->loc[LOC_FLAGS_B] = b ? *b : fay_value_uninit();
	s->loc[LOC_FLAGS_R] = r ? *r : fay_value_uninit();
}

void fay_flags_set_none(struct fay_analysis *an)
{
	fay_flags_set(an, RECORD_NONE, 64, NULL, NULL, NULL, 0);
}

/* Order of two addresses of a region is that of their offsets only while both lie within it (or at
 * its end). */
static bool within_region(const struct fay_analysis *an, const struct fay_value *v)
{
	int64_t size = 0;

	switch (v->tag) {
	case REGION_EVENT: size = sizeof(struct fay_event); break;
	case REGION_LOCAL: size = an->image->header.local_size; break;
	case REGION_GLOBAL: size = an->image->header.global_size; break;
	case REGION_RODATA: size = (int64_t)an->image->rodata.size; break;
	/* Offsets below 0 only: 0 is above them as an address, below them as an unsigned number. */
	case REGION_STACK: return v->s.smin >= -(int64_t)FAY_STACK_HARD && v->s.smax < 0;
	}
	return v->s.smin >= 0 && v->s.smax <= size;
}

bool fay_flags_compare(struct fay_analysis *an, const struct fay_value *a,
		       const struct fay_value *b, const struct fay_value *r, unsigned width,
		       uint8_t covered)
{
	bool order = true;

	if (a->kind == KIND_POINTER || b->kind == KIND_POINTER) {
		if (a->kind != b->kind || a->tag != b->tag)
			return fay_path_refuse(an, FAY_RULE_MEM_POINTER,
					       "compares a pointer with something that does not "
					       "point to the same region");
		order = within_region(an, a) && within_region(an, b);
		if (!order)
			covered &= FLAG_ZF;
	}
	fay_flags_set(an, RECORD_COMPARE, width, a, b, r, covered);
	/* Carry and overflow would tell where the address plus a number wraps: a secret. */
	if (!order)
		an->current->flags_undefined |= FLAG_CF | FLAG_OF;
	return true;
}

/* The flags of a + b: those of a - (-b), CF inverted, if b is one number other than 0 and the most
 * negative. */
void fay_flags_sum(struct fay_analysis *an, const struct fay_value *a, const struct fay_value *b,
		   const struct fay_value *r, unsigned width, uint8_t covered)
{
	uint64_t mask = mask_of(width), n = b->s.umin & mask;
	struct fay_value minus;

	if (a->kind == KIND_POINTER || b->kind == KIND_POINTER) {
		fay_flags_set_none(an); /* signs of addresses are not known */
		an->current->flags_undefined |= FLAG_ALL;
		return;
	}
	if (!fay_scalar_is_const(&b->s) || n == 0 || n == (mask >> 1) + 1) {
		fay_flags_set(an, RECORD_RESULT, width, NULL, NULL, r,
			      covered & (FLAG_ZF | FLAG_SF));
		return;
	}
	minus = fay_value_constant(an, -n & mask);
	fay_flags_set(an, RECORD_COMPARE, width, a, &minus, r, covered);
	an->current->carry_inverted = true;
}

static bool meet_value(struct fay_value *v, const struct fay_scalar *with)
{
	return fay_scalar_meet(&v->s, with);
}

/* Signed order at `width` of zero-extended operands. */
static bool assume_signed(struct fay_triple *t, unsigned width, bool less, bool or_equal, bool swap)
{
	struct fay_scalar a = fay_scalar_sext(&t->a.s, width), b = fay_scalar_sext(&t->b.s, width);
	struct fay_scalar *x = swap ? &b : &a, *y = swap ? &a : &b;

	(void)less;
	if (or_equal ? !fay_scalar_assume_sle(x, y) : !fay_scalar_assume_slt(x, y))
		return false;
	a = fay_scalar_zext(&a, width);
	b = fay_scalar_zext(&b, width);
	return meet_value(&t->a, &a) && meet_value(&t->b, &b);
}

static bool assume_sign(struct fay_value *v, unsigned width, bool negative)
{
	struct fay_scalar s = fay_scalar_sext(&v->s, width), zero = fay_scalar_const(0);

	if (negative ? !fay_scalar_assume_slt(&s, &zero) : !fay_scalar_assume_sle(&zero, &s))
		return false;
	s = fay_scalar_zext(&s, width);
	return meet_value(v, &s);
}

/* a, b, r = a - b again made consistent. */
static bool reconcile(struct fay_triple *t, unsigned width)
{
	struct fay_scalar r, a, before = t->a.s;

	if (!fay_value_numeric(&t->r))
		return true;
	r = fay_scalar_compute_both(OP_SUB, &t->a.s, &t->b.s, width);
	if (!meet_value(&t->r, &r))
		return false;
	/* Where r says no more than a and b do, a learns nothing from it; and r nothing from an a
	 * that is the same. */
	if (fay_scalar_equal(&t->r.s, &r))
		return true;
	a = fay_scalar_compute_both(OP_ADD, &t->r.s, &t->b.s, width);
	if (!meet_value(&t->a, &a))
		return false;
	if (fay_scalar_equal(&t->a.s, &before))
		return true;
	r = fay_scalar_compute_both(OP_SUB, &t->a.s, &t->b.s, width);
	return meet_value(&t->r, &r);
}

static bool assume_compare(struct fay_triple *t, enum fay_cc cc, unsigned width,
			   bool carry_inverted)
{
	struct fay_scalar zero = fay_scalar_const(0);
	bool ok = true;

	if (carry_inverted) {
		switch (cc) {
		case CC_B:
		case CC_BE: cc = CC_AE; break;
		case CC_AE:
		case CC_A: cc = CC_B; break;
		default: break;
		}
	}
	switch (cc) {
	case CC_E:
		ok = fay_scalar_assume_eq(&t->a.s, &t->b.s);
		if (ok && fay_value_numeric(&t->r))
			ok = meet_value(&t->r, &zero);
		break;
	case CC_NE:
		ok = fay_scalar_assume_ne(&t->a.s, &t->b.s);
		if (ok && fay_value_numeric(&t->r))
			ok = fay_scalar_assume_ne(&t->r.s, &zero);
		break;
	case CC_B: ok = fay_scalar_assume_ult(&t->a.s, &t->b.s); break;
	case CC_BE: ok = fay_scalar_assume_ule(&t->a.s, &t->b.s); break;
	case CC_A: ok = fay_scalar_assume_ult(&t->b.s, &t->a.s); break;
	case CC_AE: ok = fay_scalar_assume_ule(&t->b.s, &t->a.s); break;
	case CC_L: ok = assume_signed(t, width, true, false, false); break;
	case CC_LE: ok = assume_signed(t, width, true, true, false); break;
	case CC_G: ok = assume_signed(t, width, true, false, true); break;
	case CC_GE: ok = assume_signed(t, width, true, true, true); break;
	case CC_S:
	case CC_NS:
		if (fay_value_numeric(&t->r))
			ok = assume_sign(&t->r, width, cc == CC_S);
		break;
	default: return true;
	}
	return ok && reconcile(t, width);
}

/* ZF, SF of r; LOGIC also CF = OF = 0. */
static bool assume_result(struct fay_triple *t, enum fay_cc cc, unsigned width, bool logic)
{
	struct fay_scalar zero = fay_scalar_const(0);

	if (!fay_value_numeric(&t->r))
		return true;
	switch (cc) {
	case CC_E: return meet_value(&t->r, &zero);
	case CC_NE: return fay_scalar_assume_ne(&t->r.s, &zero);
	case CC_S: return assume_sign(&t->r, width, true);
	case CC_NS: return assume_sign(&t->r, width, false);
	default: break;
	}
	if (!logic)
		return true;
	switch (cc) {
	case CC_B:
	case CC_O: return false;
	case CC_BE: return meet_value(&t->r, &zero);
	case CC_A: return fay_scalar_assume_ne(&t->r.s, &zero);
	case CC_L: return assume_sign(&t->r, width, true);
	case CC_GE: return assume_sign(&t->r, width, false);
	case CC_G: return assume_sign(&t->r, width, false) && fay_scalar_assume_ne(&t->r.s, &zero);
	default: return true; /* LE: zero or negative, not one interval */
	}
}

/* r = a & mask tested: its bits say something of a's. */
static bool back_through_mask(struct fay_triple *t)
{
	struct fay_scalar bits = fay_scalar_top();
	uint64_t mask;

	if (!fay_value_numeric(&t->a) || !fay_value_numeric(&t->b) || !fay_scalar_is_const(&t->b.s))
		return true;
	mask = t->b.s.umin;
	bits.unknown = ~mask;
	if (t->r.s.umax == 0)
		return fay_scalar_normalise(&bits) && meet_value(&t->a, &bits);
	if (t->r.s.umin > 0 && mask && !(mask & (mask - 1))) {
		bits.value = mask;
		return fay_scalar_normalise(&bits) && meet_value(&t->a, &bits);
	}
	return true;
}

static bool assume_bit(struct fay_triple *t, enum fay_cc cc)
{
	struct fay_scalar bits = fay_scalar_top();
	uint64_t mask;

	if (!fay_scalar_is_const(&t->b.s) || (cc != CC_B && cc != CC_AE))
		return true;
	mask = (uint64_t)1 << (t->b.s.umin & 63);
	bits.unknown = ~mask;
	bits.value = cc == CC_B ? mask : 0;
	return fay_scalar_normalise(&bits) && meet_value(&t->a, &bits);
}

/* What cc says of the last comparison's operands. False: cc cannot hold. */
bool fay_flags_refine(const struct fay_state *s, enum fay_cc cc, struct fay_triple *t)
{
	uint8_t need = fay_cc_flags(cc);

	t->a = s->loc[LOC_FLAGS_A];
	t->b = s->loc[LOC_FLAGS_B];
	t->r = s->loc[LOC_FLAGS_R];
	if (s->assumed && (enum fay_cc)(s->assumed - 1) == (enum fay_cc)(cc ^ 1))
		return false;
	if ((need & s->flags_covered) != need)
		return true;
	switch (s->record) {
	case RECORD_COMPARE: return assume_compare(t, cc, s->flags_width, s->carry_inverted);
	case RECORD_RESULT: return assume_result(t, cc, s->flags_width, false);
	case RECORD_LOGIC:
		return assume_result(t, cc, s->flags_width, true) && back_through_mask(t);
	case RECORD_BIT: return assume_bit(t, cc);
	default: return true;
	}
}

/* v learns what is known of `from`, if it is that value or a constant distance from it. */
static bool learn(struct fay_value *v, const struct fay_value *from)
{
	struct fay_scalar apart, s;

	if (!from->id || v->id != from->id || !fay_value_numeric(v) || !fay_value_numeric(from) ||
	    v->init != 0xff)
		return true;
	if (v->delta == from->delta)
		return fay_scalar_meet(&v->s, &from->s);
	apart = fay_scalar_const(v->delta - from->delta);
	s = fay_scalar_add(&from->s, &apart);
	return fay_scalar_meet(&v->s, &s);
}

bool fay_flags_learn(struct fay_value *v, const struct fay_triple *t)
{
	return learn(v, &t->a) && learn(v, &t->b) && learn(v, &t->r);
}

/*
 * A 32-bit difference that could have wrapped is exact once the branch has excluded that: r is then
 * a minus a constant, and bears a's name and ranking tag.
 */
static void name_exact(struct fay_state *s, const struct fay_triple *t)
{
	uint64_t b = t->b.s.umin, wrapped = ((uint64_t)1 << 32) - b, apart;

	if (s->record != RECORD_COMPARE || s->flags_width != 32 || !fay_value_numeric(&t->r) ||
	    !fay_scalar_is_const(&t->b.s) || t->a.kind != KIND_SCALAR || !t->a.id || !t->r.id ||
	    t->r.id == t->a.id)
		return;
	if (t->a.s.umin >= b)
		apart = -b;
	else if (t->a.s.umax < b) /* always wraps: adds 2^32 - b */
		apart = wrapped;
	else
		return;
	for (struct fay_value *v = s->loc, *end = v + s->count; v < end; v++) {
		if (v->id != t->r.id || !fay_value_numeric(v) || v->init != 0xff)
			continue;
		if (v->delta == t->r.delta)
			fay_value_move_origin(v, &t->a, (int64_t)apart, (int64_t)apart);
		v->id = t->a.id;
		v->delta = v->delta - t->r.delta + t->a.delta + apart;
	}
}

/* Everyone who bears the name of a, b or r learns. False: impossible. */
static bool tell(struct fay_state *s, const struct fay_triple *t)
{
	static const uint32_t nobody = UINT32_MAX;
	uint32_t a = t->a.id ? t->a.id : nobody, b = t->b.id ? t->b.id : nobody,
		 r = t->r.id ? t->r.id : nobody;

	/* Nothing new of it: nothing to tell. (With relations, what others know may have become
	 * less since the comparison.) */
	if (s->plain) {
		a = fay_scalar_equal(&t->a.s, &s->loc[LOC_FLAGS_A].s) ? nobody : a;
		b = fay_scalar_equal(&t->b.s, &s->loc[LOC_FLAGS_B].s) ? nobody : b;
		r = fay_scalar_equal(&t->r.s, &s->loc[LOC_FLAGS_R].s) ? nobody : r;
		if (a == nobody && b == nobody && r == nobody)
			return true;
	}
	for (struct fay_value *v = s->loc, *end = v + s->count; v < end; v++)
		if ((v->id == a || v->id == b || v->id == r) && !fay_flags_learn(v, t))
			return false;
	return true;
}

bool fay_transfer_assume(const struct fay_analysis *an, struct fay_state *s, enum fay_cc cc,
			 bool holds)
{
	struct fay_triple t;

	if (!an->refine)
		return true;
	if (!holds)
		cc = (enum fay_cc)(cc ^ 1);
	if (!fay_flags_refine(s, cc, &t) || !tell(s, &t) || !fay_wrap_learn(an, s, &t))
		return false;
	name_exact(s, &t);
	s->assumed = (uint8_t)(1 + cc);
	if (s->record == RECORD_COMPARE && (fay_cc_flags(cc) & ~s->flags_covered) == 0 &&
	    !(s->carry_inverted && fay_cc_flags(cc) & FLAG_CF) &&
	    !fay_relations_compare(s, cc, s->flags_width, &t.a, &t.b))
		return false;
	return fay_relations_reduce(s);
}

bool fay_flags_ready(struct fay_analysis *an, uint8_t need)
{
	if (need & an->current->flags_undefined)
		return fay_path_refuse(an, FAY_RULE_ENV_FLAGS,
				       "reads a flag that is not defined here");
	return true;
}
