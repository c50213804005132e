/* SPDX-License-Identifier: MIT */
/*
 * What each instruction does to the abstract state, and what must hold before it runs.
 *
 * The same code runs during the fixpoint, where failed obligations only end or coarsen the path, and in the last pass (an->checking),
 * where each becomes a pending obligation for the solver. An operation that is not handled here is refused (INS-UNSUPPORTED).
 *
 * A value read at 8, 16 or 32 bits is zero-extended first; it keeps its name only if that changes nothing.
 */
#include "analysis.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t mask_of(unsigned width) { return width >= 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1; }

static const struct fay_insn *insn_of(const struct fay_analysis *an) { return &an->cfg->insns[an->insn]; }

/* ---- obligations ---- */

static struct fay_obligation *add_pending(struct fay_analysis *an, enum fay_goal goal, enum fay_rule rule, enum fay_outcome outcome)
{
	struct fay_obligation *o;

	if (an->pending_count >= (an->keep_all ? FAY_MAX_KEPT : FAY_MAX_PENDING)) {
		an->refusal = fay_refuse(an->arena, FAY_RULE_LIM_RESOURCE, insn_of(an)->address, "too many open obligations");
		return NULL;
	}
	if (an->pending_count == an->pending_capacity) {
		uint32_t capacity = an->pending_capacity ? an->pending_capacity * 2 : 16;
		void *grown = realloc(an->pending, capacity * sizeof(*an->pending));

		if (!grown) {
			an->refusal = fay_refuse(an->arena, FAY_RULE_LIM_RESOURCE, insn_of(an)->address, "out of memory");
			return NULL;
		}
		an->pending = grown;
		an->pending_capacity = capacity;
	}
	o = &an->pending[an->pending_count++];
	*o = (struct fay_obligation){ .node = an->node, .insn = an->insn, .goal = goal, .rule = rule, .outcome = outcome };
	return o;
}

/* The instruction breaks `rule` if it is ever reached. Always false: the path ends. */
static bool __attribute__((format(printf, 3, 4))) refuse(struct fay_analysis *an, enum fay_rule rule, const char *format, ...)
{
	char text[512];
	va_list args;
	struct fay_obligation *o;

	if (!an->checking)
		return false;
	an->obligation_count++;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	o = add_pending(an, GOAL_UNREACHABLE, rule, fay_rule_outcome(rule));
	if (o)
		o->what = fay_arena_printf(an->arena, "%s", text);
	return false;
}

/* ---- values ---- */

static struct fay_value fresh(struct fay_analysis *an, struct fay_scalar scalar)
{
	struct fay_value v = fay_value_scalar(scalar);

	v.id = an->current->next_id++;
	return v;
}

static struct fay_value constant(struct fay_analysis *an, uint64_t number) { return fresh(an, fay_scalar_const(number)); }

static void forget_name(struct fay_analysis *an, struct fay_value *v)
{
	v->id = an->current->next_id++;
	v->delta = 0;
	v->origin = 0;
}

/* The low `width` bits of a numeric value. */
static struct fay_value narrow(struct fay_analysis *an, struct fay_value v, unsigned width)
{
	bool same = v.s.umax <= mask_of(width);

	if (width < 64) {
		v.s = fay_scalar_zext(&v.s, width);
		if (!same)
			forget_name(an, &v);
	}
	v.init = 0xff;
	v.size = 8;
	return v;
}

static void note_read(struct fay_analysis *an, const struct fay_value *v)
{
	static const uint8_t argument[] = { FAY_RDI, FAY_RSI, FAY_RDX };

	if (an->checking && v->kind == KIND_POINTER && v->tag <= REGION_GLOBAL)
		an->facts->arguments_used |= 1u << argument[v->tag];
}

/* Checks that `v` may be read as `width` bits of data. */
static bool readable(struct fay_analysis *an, const struct fay_value *v, unsigned width, const char *name)
{
	unsigned bytes = width / 8, need = bytes >= 8 ? 0xff : (1u << bytes) - 1;

	note_read(an, v);
	switch (v->kind) {
	case KIND_SCALAR:
		if ((v->init & need) != need)
			return refuse(an, FAY_RULE_MEM_UNINIT, "%s is read, but only part of it was written", name);
		return true;
	case KIND_POINTER:
		if (width != 64)
			return refuse(an, FAY_RULE_MEM_POINTER, "%s holds a pointer, and only %u bits of it are used", name, width);
		return true;
	case KIND_UNINIT:
		return refuse(an, FAY_RULE_MEM_UNINIT, "%s is read before it was written", name);
	case KIND_SAVED:
		return refuse(an, FAY_RULE_MEM_UNINIT, "%s holds the traced program's %s, which may only be saved and restored", name,
			      fay_gpr_name(v->tag, 64));
	case KIND_RETURN:
		return refuse(an, FAY_RULE_STK_RETURN, "%s holds a return address", name);
	default:
		return refuse(an, FAY_RULE_MEM_POINTER, "%s holds different kinds of values, depending on the path", name);
	}
}

static bool read_reg(struct fay_analysis *an, unsigned reg, unsigned width, struct fay_value *v)
{
	*v = an->current->loc[reg];
	if (!readable(an, v, width, fay_gpr_name(reg, width)))
		return false;
	*v = narrow(an, *v, width);
	return true;
}

/* Writes of 8 and 16 bits keep the rest of the register. */
static void write_reg(struct fay_analysis *an, unsigned reg, unsigned width, struct fay_value v)
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
	*to = fresh(an, s);
	to->init = kept | (uint8_t)((1u << width / 8) - 1);
	/* All higher bits known zero: the new value's own bounds hold for the whole. */
	if (to->init == 0xff && !((s.value | s.unknown) & ~mask))
		fay_scalar_meet(&to->s, &v.s);
}

/* ---- arithmetic ---- */

/* Ranking tags: r = a + [low, high] without wrapping at the operation's width. */
static void move_origin(struct fay_value *r, const struct fay_value *a, int64_t low, int64_t high)
{
	if (!a->origin || __builtin_add_overflow(a->dlo, low, &r->dlo) || __builtin_add_overflow(a->dhi, high, &r->dhi)) {
		r->origin = 0;
		return;
	}
	r->origin = a->origin;
}

/* a + b where b is within its signed bounds, or a - b. Keeps the name if b is one number. */
static void name_sum(struct fay_value *r, const struct fay_value *a, const struct fay_scalar *b, bool minus, unsigned width)
{
	int64_t low, high;

	if (b->smin == INT64_MIN)
		return;
	low = minus ? -b->smax : b->smin;
	high = minus ? -b->smin : b->smax;
	if (width < 64) {
		/* Exact only if the sum stays within the width; a small negative number may be meant by a large b. */
		struct fay_scalar sb = fay_scalar_sext(b, width);

		low = minus ? -sb.smax : sb.smin;
		high = minus ? -sb.smin : sb.smax;
		if (width < 32 || a->s.smin + low < 0 || a->s.smax + high > (int64_t)mask_of(width))
			return;
	}
	move_origin(r, a, low, high);
	if (low == high) {
		r->id = a->id;
		r->delta = a->delta + (uint64_t)low;
	}
}

static struct fay_scalar shift_count(const struct fay_scalar *count, unsigned width)
{
	struct fay_scalar mask = fay_scalar_const(width == 64 ? 63 : 31);

	return fay_scalar_and(count, &mask);
}

/* Scalar results at `width`; operands are zero-extended. */
static struct fay_scalar compute(enum fay_op op, const struct fay_scalar *a, const struct fay_scalar *b, unsigned width)
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
		count = shift_count(b, width);
		r = fay_scalar_shl(a, &count);
		break;
	case OP_SHR:
		count = shift_count(b, width);
		r = fay_scalar_shr(a, &count);
		break;
	case OP_SAR:
		count = shift_count(b, width);
		sa = fay_scalar_sext(a, width);
		r = fay_scalar_sar(&sa, &count);
		break;
	default:
		r = fay_scalar_top();
	}
	return fay_scalar_zext(&r, width);
}

/* 32-bit arithmetic on numbers that are meant as negative: also by sign extension. */
static struct fay_scalar compute_both(enum fay_op op, const struct fay_scalar *a, const struct fay_scalar *b, unsigned width)
{
	struct fay_scalar r = compute(op, a, b, width);

	if (width < 64 && (op == OP_ADD || op == OP_SUB || op == OP_IMUL)) {
		struct fay_scalar sa = fay_scalar_sext(a, width), sb = fay_scalar_sext(b, width), rs;

		rs = op == OP_ADD ? fay_scalar_add(&sa, &sb) : op == OP_SUB ? fay_scalar_sub(&sa, &sb) : fay_scalar_mul(&sa, &sb);
		rs = fay_scalar_zext(&rs, width);
		fay_scalar_meet(&r, &rs);
	}
	return r;
}

/* Pointer arithmetic, 64 bits. Sets *done if a or b is a pointer. */
static bool pointer_arithmetic(struct fay_analysis *an, enum fay_op op, const struct fay_value *a, const struct fay_value *b,
			       struct fay_value *r, bool *done)
{
	bool pa = a->kind == KIND_POINTER, pb = b->kind == KIND_POINTER;

	*done = pa || pb;
	if (!*done)
		return true;
	if (op == OP_ADD && pa != pb) {
		const struct fay_value *p = pa ? a : b, *n = pa ? b : a;

		*r = fresh(an, fay_scalar_add(&p->s, &n->s));
		r->kind = KIND_POINTER;
		r->tag = p->tag;
		name_sum(r, p, &n->s, false, 64);
		if (fay_scalar_is_const(&p->s))
			name_sum(r, n, &p->s, false, 64);
		return true;
	}
	if (op == OP_SUB && pa && !pb) {
		*r = fresh(an, fay_scalar_sub(&a->s, &b->s));
		r->kind = KIND_POINTER;
		r->tag = a->tag;
		name_sum(r, a, &b->s, true, 64);
		return true;
	}
	if (op == OP_SUB && pa && pb && a->tag == b->tag) {
		*r = fresh(an, fay_scalar_sub(&a->s, &b->s));
		return true;
	}
	return refuse(an, FAY_RULE_MEM_POINTER, "arithmetic on a pointer other than adding or subtracting a number");
}

static bool arithmetic(struct fay_analysis *an, enum fay_op op, const struct fay_value *a, const struct fay_value *b, unsigned width,
		       struct fay_value *r)
{
	bool done;

	if (!pointer_arithmetic(an, op, a, b, r, &done))
		return false;
	if (done)
		return true;
	*r = fresh(an, compute_both(op, &a->s, &b->s, width));
	if (op == OP_ADD) {
		name_sum(r, a, &b->s, false, width);
		if (!r->origin && (r->id != a->id || !a->id) && !fay_scalar_is_const(&b->s))
			name_sum(r, b, &a->s, false, width);
	} else if (op == OP_SUB) {
		name_sum(r, a, &b->s, true, width);
	}
	return true;
}

/* ---- flags ---- */

static void set_record(struct fay_analysis *an, enum fay_flags_record record, unsigned width, const struct fay_value *a,
		       const struct fay_value *b, const struct fay_value *r, uint8_t covered)
{
	struct fay_state *s = an->current;
	const struct fay_op_info *info = &fay_op_table[insn_of(an)->op];

	s->record = (uint8_t)record;
	s->flags_width = (uint8_t)width;
	s->carry_inverted = false;
	s->flags_undefined = (uint8_t)((s->flags_undefined & ~info->flags_written) | info->flags_undefined);
	s->flags_covered = covered & (uint8_t)~s->flags_undefined;
	s->loc[LOC_FLAGS_A] = a ? *a : fay_value_uninit();
	s->loc[LOC_FLAGS_B] = b ? *b : fay_value_uninit();
	s->loc[LOC_FLAGS_R] = r ? *r : fay_value_uninit();
}

static void set_no_record(struct fay_analysis *an) { set_record(an, RECORD_NONE, 64, NULL, NULL, NULL, 0); }

/* Order of two addresses of a region is that of their offsets only while both lie within it (or at its end). */
static bool within_region(const struct fay_analysis *an, const struct fay_value *v)
{
	int64_t size = 0;

	switch (v->tag) {
	case REGION_EVENT: size = sizeof(struct fay_event); break;
	case REGION_LOCAL: size = an->image->header.local_size; break;
	case REGION_GLOBAL: size = an->image->header.global_size; break;
	case REGION_RODATA: size = (int64_t)an->image->rodata.size; break;
	case REGION_STACK: return v->s.smin >= -(int64_t)FAY_STACK_HARD && v->s.smax <= 0;
	}
	return v->s.smin >= 0 && v->s.smax <= size;
}

static bool record_compare(struct fay_analysis *an, const struct fay_value *a, const struct fay_value *b, const struct fay_value *r,
			   unsigned width, uint8_t covered)
{
	if (a->kind == KIND_POINTER || b->kind == KIND_POINTER) {
		if (a->kind != b->kind || a->tag != b->tag)
			return refuse(an, FAY_RULE_MEM_POINTER, "compares a pointer with something that does not point to the same region");
		if (!within_region(an, a) || !within_region(an, b))
			covered &= FLAG_ZF;
	}
	set_record(an, RECORD_COMPARE, width, a, b, r, covered);
	return true;
}

/* The flags of a + b: those of a - (-b), CF inverted, if b is one number other than 0 and the most negative. */
static void record_sum(struct fay_analysis *an, const struct fay_value *a, const struct fay_value *b, const struct fay_value *r,
		       unsigned width, uint8_t covered)
{
	uint64_t mask = mask_of(width), n = b->s.umin & mask;
	struct fay_value minus;

	if (a->kind == KIND_POINTER || b->kind == KIND_POINTER) {
		set_no_record(an); /* signs of addresses are not known */
		an->current->flags_undefined |= FLAG_ALL;
		return;
	}
	if (!fay_scalar_is_const(&b->s) || n == 0 || n == (mask >> 1) + 1) {
		set_record(an, RECORD_RESULT, width, NULL, NULL, r, covered & (FLAG_ZF | FLAG_SF));
		return;
	}
	minus = constant(an, -n & mask);
	set_record(an, RECORD_COMPARE, width, a, &minus, r, covered);
	an->current->carry_inverted = true;
}

struct triple {
	struct fay_value a, b, r;
};

static bool meet_value(struct fay_value *v, const struct fay_scalar *with) { return fay_scalar_meet(&v->s, with); }

/* Signed order at `width` of zero-extended operands. */
static bool assume_signed(struct triple *t, unsigned width, bool less, bool or_equal, bool swap)
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
static bool reconcile(struct triple *t, unsigned width)
{
	struct fay_scalar r = compute_both(OP_SUB, &t->a.s, &t->b.s, width), a;

	if (!fay_value_numeric(&t->r))
		return true;
	if (!meet_value(&t->r, &r))
		return false;
	a = compute_both(OP_ADD, &t->r.s, &t->b.s, width);
	if (!meet_value(&t->a, &a))
		return false;
	r = compute_both(OP_SUB, &t->a.s, &t->b.s, width);
	return meet_value(&t->r, &r);
}

static bool assume_compare(struct triple *t, enum fay_cc cc, unsigned width, bool carry_inverted)
{
	struct fay_scalar zero = fay_scalar_const(0);
	bool ok = true;

	if (carry_inverted) {
		switch (cc) {
		case CC_B: case CC_BE: cc = CC_AE; break;
		case CC_AE: case CC_A: cc = CC_B; break;
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
	case CC_S: case CC_NS:
		if (fay_value_numeric(&t->r))
			ok = assume_sign(&t->r, width, cc == CC_S);
		break;
	default:
		return true;
	}
	return ok && reconcile(t, width);
}

/* ZF, SF of r; LOGIC also CF = OF = 0. */
static bool assume_result(struct triple *t, enum fay_cc cc, unsigned width, bool logic)
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
	case CC_B: case CC_O: return false;
	case CC_BE: return meet_value(&t->r, &zero);
	case CC_A: return fay_scalar_assume_ne(&t->r.s, &zero);
	case CC_L: return assume_sign(&t->r, width, true);
	case CC_GE: return assume_sign(&t->r, width, false);
	case CC_G: return assume_sign(&t->r, width, false) && fay_scalar_assume_ne(&t->r.s, &zero);
	default: return true; /* LE: zero or negative, not one interval */
	}
}

/* r = a & mask tested: its bits say something of a's. */
static bool back_through_mask(struct triple *t)
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

static bool assume_bit(struct triple *t, enum fay_cc cc)
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
static bool refine_triple(const struct fay_state *s, enum fay_cc cc, struct triple *t)
{
	uint8_t need = fay_cc_flags(cc);

	t->a = s->loc[LOC_FLAGS_A];
	t->b = s->loc[LOC_FLAGS_B];
	t->r = s->loc[LOC_FLAGS_R];
	if ((need & s->flags_covered) != need)
		return true;
	switch (s->record) {
	case RECORD_COMPARE:
		return assume_compare(t, cc, s->flags_width, s->carry_inverted);
	case RECORD_RESULT:
		return assume_result(t, cc, s->flags_width, false);
	case RECORD_LOGIC:
		return assume_result(t, cc, s->flags_width, true) && back_through_mask(t);
	case RECORD_BIT:
		return assume_bit(t, cc);
	default:
		return true;
	}
}

/* v learns what is known of `from`, if it is that value or a constant distance from it. */
static bool learn(struct fay_value *v, const struct fay_value *from)
{
	struct fay_scalar apart, s;

	if (!from->id || v->id != from->id || !fay_value_numeric(v) || !fay_value_numeric(from) || v->init != 0xff)
		return true;
	apart = fay_scalar_const(v->delta - from->delta);
	s = fay_scalar_add(&from->s, &apart);
	return fay_scalar_meet(&v->s, &s);
}

static bool learn_all(struct fay_value *v, const struct triple *t)
{
	return learn(v, &t->a) && learn(v, &t->b) && learn(v, &t->r);
}

/*
 * A 32-bit difference that could have wrapped is exact once the branch has excluded that: r is then a minus a constant, and
 * bears a's name and ranking tag.
 */
static void name_exact(struct fay_state *s, const struct triple *t)
{
	uint64_t b = t->b.s.umin, wrapped = ((uint64_t)1 << 32) - b, apart;

	if (s->record != RECORD_COMPARE || s->flags_width != 32 || !fay_value_numeric(&t->r) || !fay_scalar_is_const(&t->b.s) ||
	    t->a.kind != KIND_SCALAR || !t->a.id || !t->r.id || t->r.id == t->a.id)
		return;
	if (t->a.s.umin >= b)
		apart = -b;
	else if (t->a.s.umax < b) /* always wraps: adds 2^32 - b */
		apart = wrapped;
	else
		return;
	for (uint32_t i = 0; i < s->count; i++) {
		struct fay_value *v = &s->loc[i];

		if (v->id != t->r.id || !fay_value_numeric(v) || v->init != 0xff)
			continue;
		if (v->delta == t->r.delta)
			move_origin(v, &t->a, (int64_t)apart, (int64_t)apart);
		v->id = t->a.id;
		v->delta = v->delta - t->r.delta + t->a.delta + apart;
	}
}

bool fay_transfer_assume(const struct fay_analysis *an, struct fay_state *s, enum fay_cc cc, bool holds)
{
	struct triple t;

	if (!an->refine)
		return true;
	if (!holds)
		cc = (enum fay_cc)(cc ^ 1);
	if (!refine_triple(s, cc, &t))
		return false;
	for (uint32_t i = 0; i < s->count; i++)
		if (!learn_all(&s->loc[i], &t))
			return false;
	name_exact(s, &t);
	return true;
}

static bool flags_ready(struct fay_analysis *an, uint8_t need)
{
	if (need & an->current->flags_undefined)
		return refuse(an, FAY_RULE_ENV_FLAGS, "reads a flag that is not defined here");
	return true;
}

/* ---- memory ---- */

struct access {
	enum fay_region region;
	struct fay_scalar offset;
	unsigned size;
	bool proved; /* within bounds */
};

static const char *const region_names[] = { "the event", "local state", "global state", "read-only data", "the stack" };

static uint64_t region_size(const struct fay_analysis *an, enum fay_region region)
{
	switch (region) {
	case REGION_EVENT: return sizeof(struct fay_event);
	case REGION_LOCAL: return an->image->header.local_size;
	case REGION_GLOBAL: return an->image->header.global_size;
	case REGION_RODATA: return an->image->rodata.size;
	default: return 0;
	}
}

static bool address_of(struct fay_analysis *an, const struct fay_operand *mem, struct fay_value *v)
{
	struct fay_value index;

	if (mem->rip) {
		*v = constant(an, (uint64_t)mem->disp - an->image->rodata.start);
		v->kind = KIND_POINTER;
		v->tag = REGION_RODATA;
		return true;
	}
	if (mem->base != FAY_NO_REG) {
		if (!read_reg(an, mem->base, 64, v))
			return false;
	} else {
		*v = constant(an, 0);
	}
	if (mem->index != FAY_NO_REG) {
		if (!read_reg(an, mem->index, 64, &index))
			return false;
		if (mem->scale != 1) {
			struct fay_scalar scale = fay_scalar_const(mem->scale);

			if (index.kind == KIND_POINTER)
				return refuse(an, FAY_RULE_MEM_POINTER, "a pointer is scaled");
			index = fresh(an, fay_scalar_mul(&index.s, &scale));
		}
		if (mem->base == FAY_NO_REG)
			*v = index;
		else {
			struct fay_value sum;

			if (!arithmetic(an, OP_ADD, v, &index, 64, &sum))
				return false;
			*v = sum;
		}
	}
	if (mem->disp) {
		struct fay_value disp = constant(an, (uint64_t)mem->disp), sum;

		if (!arithmetic(an, OP_ADD, v, &disp, 64, &sum))
			return false;
		*v = sum;
	}
	return true;
}

/* A discharged obligation that is to be written out. */
static void keep_bounds(struct fay_analysis *an, const struct access *access, int64_t low, int64_t high)
{
	struct fay_obligation *o = add_pending(an, GOAL_BOUNDS, FAY_RULE_MEM_BOUNDS, FAY_UNPROVED);

	if (!o)
		return;
	o->discharged = true;
	o->region = (uint8_t)access->region;
	o->size = access->size;
	o->low = low;
	o->high = high;
}

/* Whether [offset, offset + size) lies in [low, high + size) for every offset; else an obligation. False if the path must end. */
static bool check_bounds(struct fay_analysis *an, struct access *access, int64_t low, int64_t high, bool helper)
{
	const struct fay_scalar *o = &access->offset;
	enum fay_rule rule = FAY_RULE_MEM_BOUNDS;
	struct fay_obligation *pending;
	bool never;
	char text[96];

	if (an->checking)
		an->obligation_count++;
	access->proved = o->smin >= low && o->smax <= high;
	if (access->proved) {
		if (an->checking && an->keep_all && !helper)
			keep_bounds(an, access, low, high);
		return true;
	}
	never = o->smax < low || o->smin > high;
	if (access->region == REGION_STACK)
		rule = o->smin < low ? FAY_RULE_MEM_BELOW_SP : FAY_RULE_STK_RETURN;
	if (an->checking) {
		/* Where the analysis does not go on, only unreachability discharges. */
		pending = add_pending(an, helper || never || access->region == REGION_STACK ? GOAL_UNREACHABLE : GOAL_BOUNDS, rule, never ? fay_rule_outcome(rule) : FAY_UNPROVED);
		if (!pending)
			return false;
		pending->region = (uint8_t)access->region;
		pending->size = access->size;
		pending->low = low;
		pending->high = high;
		fay_scalar_print(o, text, sizeof(text));
		pending->what = fay_arena_printf(an->arena, "accesses %u byte%s at offset %s of %s, where %lld to %lld would be allowed",
						 access->size, access->size == 1 ? "" : "s", text, region_names[access->region],
						 (long long)low, (long long)high);
		if (!never)
			pending->missing = fay_arena_printf(an->arena, "that the offset stays within [%lld, %lld]; known is %s",
							    (long long)low, (long long)high, text);
	}
	return !never && access->region != REGION_STACK;
}

static bool resolve(struct fay_analysis *an, const struct fay_value *address, unsigned size, bool write, bool helper, struct access *access)
{
	int64_t low = 0, high;

	if (address->kind != KIND_POINTER)
		return refuse(an, FAY_RULE_MEM_REGION, "the address is not made from a pointer to a region");
	access->region = (enum fay_region)address->tag;
	access->offset = address->s;
	access->size = size;
	if (write && (access->region == REGION_EVENT || access->region == REGION_RODATA))
		return refuse(an, FAY_RULE_MEM_PERMISSION, "writes to %s", region_names[access->region]);
	if (access->region == REGION_STACK) {
		low = -fay_state_depth(an->current);
		high = -(int64_t)size;
	} else {
		high = (int64_t)region_size(an, access->region) - (int64_t)size;
	}
	return check_bounds(an, access, low, high, helper);
}

/* A locked access across a cache line stops every core of the machine, or raises #AC (split-lock detection). Regions begin at multiples of 8. */
static bool aligned(struct fay_analysis *an, const struct access *access)
{
	const struct fay_scalar *o = &access->offset;

	if (!insn_of(an)->locked || !((o->value | o->unknown) & (access->size - 1)))
		return true;
	return refuse(an, FAY_RULE_MEM_ALIGN, "a locked access that is not proved to be at a multiple of its size");
}

static bool locate(struct fay_analysis *an, const struct fay_operand *mem, unsigned size, bool write, struct access *access)
{
	struct fay_value address;

	return address_of(an, mem, &address) && resolve(an, &address, size, write, false, access) && aligned(an, access);
}

static bool slot_refuse(struct fay_analysis *an, enum fay_slot_status status)
{
	if (status == SLOT_UNINIT)
		return refuse(an, FAY_RULE_MEM_UNINIT, "reads stack bytes that were not written");
	if (status == SLOT_RETURN)
		return refuse(an, FAY_RULE_STK_RETURN, "accesses a return address on the stack");
	return refuse(an, FAY_RULE_MEM_POINTER, "accesses part of a pointer or saved register on the stack");
}

static void note_fields(struct fay_analysis *an, int64_t low, int64_t high)
{
	static const struct { int16_t start, end; } field[] = {
		{ 0, 8 }, { 8, 16 }, { 16, 24 }, { 24, 32 }, { 32, 40 }, { 40, 48 }, { 48, 56 }, { 56, 64 }, { 64, 72 },
		{ 72, 80 }, { 80, 88 }, { 88, 92 }, { 92, 96 }, { 96, 100 }, { 100, 104 }, { 104, 120 }, { 120, 128 },
	};

	if (!an->checking)
		return;
	for (unsigned i = 0; i < sizeof(field) / sizeof(field[0]); i++)
		if (low < field[i].end && high > field[i].start)
			an->facts->event_fields |= 1u << i;
}

#define RODATA_VALUES 64u

/* What constants a read of read-only data may give: joined one by one if they are few. */
static struct fay_scalar rodata_values(const struct fay_analysis *an, const struct access *access)
{
	const uint8_t *bytes = an->image->layout.bytes + (an->image->rodata.start - an->image->layout_base);
	uint64_t low = access->offset.umin, high = access->offset.umax, step = 1, count = 0;
	struct fay_scalar all = fay_scalar_top();

	/* Steps that the first offset is really on. */
	if (access->offset.unknown)
		step = access->offset.unknown & -access->offset.unknown;
	if ((low ^ access->offset.value) & (step - 1))
		step = 1;
	if (access->offset.modulus > step && low % access->offset.modulus == access->offset.remainder)
		step = access->offset.modulus;
	if (!access->proved || (high - low) / step >= RODATA_VALUES)
		return fay_scalar_range(0, mask_of(access->size * 8));
	for (uint64_t offset = low; offset <= high; offset += step) {
		uint64_t number = 0;
		struct fay_scalar one;

		memcpy(&number, bytes + offset, access->size);
		one = fay_scalar_const(number);
		all = count++ ? fay_scalar_join(&all, &one) : one;
	}
	return all;
}

static bool load_from(struct fay_analysis *an, const struct access *access, struct fay_value *v)
{
	switch (access->region) {
	case REGION_EVENT:
		note_fields(an, access->proved ? access->offset.smin : 0, access->proved ? access->offset.smax + access->size : 128);
		*v = fresh(an, fay_scalar_range(0, mask_of(access->size * 8)));
		return true;
	case REGION_RODATA:
		*v = fresh(an, rodata_values(an, access));
		return true;
	case REGION_STACK: {
		enum fay_slot_status status;

		if (fay_scalar_is_const(&access->offset)) {
			status = fay_stack_load(an->current, access->offset.smin, access->size, v);
			if (v->id == 0)
				forget_name(an, v);
			note_read(an, v);
			return status == SLOT_OK ? true : slot_refuse(an, status);
		}
		status = fay_stack_check(an->current, access->offset.smin, access->offset.smax + access->size);
		*v = fresh(an, fay_scalar_range(0, mask_of(access->size * 8)));
		return status == SLOT_OK ? true : slot_refuse(an, status);
	}
	default:
		*v = fresh(an, fay_scalar_range(0, mask_of(access->size * 8)));
		return true;
	}
}

static bool store_to(struct fay_analysis *an, const struct access *access, const struct fay_value *v)
{
	enum fay_slot_status status;

	if (access->region != REGION_STACK) {
		if (v->kind != KIND_SCALAR)
			return refuse(an, FAY_RULE_MEM_LEAK, "writes %s to %s",
				      v->kind == KIND_POINTER ? "a pointer" : "a value of the traced program", region_names[access->region]);
		return true;
	}
	if (fay_scalar_is_const(&access->offset))
		status = fay_stack_store(an->current, access->offset.smin, access->size, v);
	else if (v->kind != KIND_SCALAR)
		return refuse(an, FAY_RULE_MEM_POINTER, "stores a pointer at a stack offset that is not constant");
	else
		status = fay_stack_havoc(an->current, access->offset.smin, access->offset.smax + access->size, false);
	return status == SLOT_OK ? true : slot_refuse(an, status);
}

/* ---- operands ---- */

static bool read_operand(struct fay_analysis *an, const struct fay_operand *operand, unsigned width, struct fay_value *v)
{
	struct access access;

	switch (operand->kind) {
	case OPERAND_REG:
		return read_reg(an, operand->reg, width, v);
	case OPERAND_IMM:
		*v = constant(an, (uint64_t)operand->imm & mask_of(width));
		return true;
	case OPERAND_MEM:
		if (!locate(an, operand, width / 8, false, &access) || !load_from(an, &access, v))
			return false;
		if (v->kind == KIND_SAVED || v->kind == KIND_MIXED)
			return readable(an, v, width, "the stack slot");
		return true;
	default:
		return refuse(an, FAY_RULE_INS_UNSUPPORTED, "an operand that the analysis does not know");
	}
}

static bool write_operand(struct fay_analysis *an, const struct fay_operand *operand, unsigned width, struct fay_value v)
{
	struct access access;

	if (operand->kind == OPERAND_REG) {
		write_reg(an, operand->reg, width, v);
		return true;
	}
	if (operand->kind == OPERAND_MEM)
		return locate(an, operand, width / 8, true, &access) && store_to(an, &access, &v);
	return refuse(an, FAY_RULE_INS_UNSUPPORTED, "an operand that the analysis does not know");
}

/* The value of a register that is only moved: saved registers too. */
static bool read_whole(struct fay_analysis *an, unsigned reg, struct fay_value *v)
{
	*v = an->current->loc[reg];
	note_read(an, v);
	if (v->kind == KIND_SAVED)
		return true;
	return readable(an, v, 64, fay_gpr_name(reg, 64));
}

/* ---- instructions ---- */

static bool do_mov(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_value v;
	struct access access;

	if (insn->width == 64 && insn->src.kind == OPERAND_REG) {
		if (!read_whole(an, insn->src.reg, &v))
			return false;
	} else if (insn->width == 64 && insn->src.kind == OPERAND_MEM) {
		/* A saved register may be reloaded from the stack. */
		if (!locate(an, &insn->src, 8, false, &access) || !load_from(an, &access, &v))
			return false;
	} else if (!read_operand(an, &insn->src, insn->width, &v)) {
		return false;
	}
	return write_operand(an, &insn->dst, insn->width, v);
}

static bool do_extend(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_value v, r;

	if (!read_operand(an, &insn->src, insn->src_width, &v))
		return false;
	if (v.kind == KIND_POINTER)
		return refuse(an, FAY_RULE_MEM_POINTER, "extends a pointer");
	r = narrow(an, v, insn->src_width);
	if (insn->op == OP_MOVSX) {
		bool same;

		r.s = fay_scalar_sext(&r.s, insn->src_width);
		r.s = fay_scalar_zext(&r.s, insn->width);
		same = v.s.umax <= mask_of(insn->src_width) >> 1;
		if (!same)
			forget_name(an, &r);
	}
	return write_operand(an, &insn->dst, insn->width, r);
}

static bool do_lea(struct fay_analysis *an, const struct fay_insn *insn)
{
	const struct fay_operand *mem = &insn->src;
	struct fay_value v;

	if (insn->width < 64) {
		/* Only the low bits count: the parts are read narrow, and 64-bit carries drop out. */
		struct fay_scalar sum = fay_scalar_const((uint64_t)mem->disp & mask_of(insn->width)), scale = fay_scalar_const(mem->scale);
		struct fay_value part;

		if (mem->rip)
			return refuse(an, FAY_RULE_MEM_POINTER, "part of an address is used as a number");
		if (mem->index == FAY_NO_REG && mem->base != FAY_NO_REG) {
			struct fay_value disp = constant(an, (uint64_t)mem->disp & mask_of(insn->width));

			if (!read_reg(an, mem->base, insn->width, &part) || !arithmetic(an, OP_ADD, &part, &disp, insn->width, &v))
				return false;
			write_reg(an, insn->dst.reg, insn->width, v);
			return true;
		}
		if (mem->base != FAY_NO_REG) {
			if (!read_reg(an, mem->base, insn->width, &part))
				return false;
			sum = compute_both(OP_ADD, &sum, &part.s, insn->width);
		}
		if (mem->index != FAY_NO_REG) {
			struct fay_scalar scaled;

			if (!read_reg(an, mem->index, insn->width, &part))
				return false;
			scaled = compute_both(OP_IMUL, &part.s, &scale, insn->width);
			sum = compute_both(OP_ADD, &sum, &scaled, insn->width);
		}
		write_reg(an, insn->dst.reg, insn->width, fresh(an, sum));
		return true;
	}
	if (!address_of(an, mem, &v))
		return false;
	write_reg(an, insn->dst.reg, 64, v);
	return true;
}

/* ADD SUB AND OR XOR CMP TEST INC DEC. */
static bool do_alu(struct fay_analysis *an, const struct fay_insn *insn)
{
	enum fay_op op = (enum fay_op)insn->op;
	unsigned width = insn->width;
	uint8_t covered = FLAG_ALL & (uint8_t)~FLAG_PF;
	bool same = insn->dst.kind == OPERAND_REG && insn->src.kind == OPERAND_REG && insn->dst.reg == insn->src.reg;
	struct fay_value a, b, r;

	if ((op == OP_XOR || op == OP_SUB) && same) {
		r = constant(an, 0);
		set_record(an, RECORD_LOGIC, width, NULL, NULL, &r, covered);
		write_reg(an, insn->dst.reg, width, r);
		return true;
	}
	if (op == OP_OR && insn->src.kind == OPERAND_IMM && insn->src.imm == -1 && insn->dst.kind == OPERAND_REG) {
		r = constant(an, mask_of(width));
		set_record(an, RECORD_LOGIC, width, NULL, NULL, &r, covered);
		write_reg(an, insn->dst.reg, width, r);
		return true;
	}
	if (!read_operand(an, &insn->dst, width, &a))
		return false;
	if (op == OP_INC || op == OP_DEC)
		b = constant(an, 1);
	else if (!read_operand(an, &insn->src, width, &b))
		return false;
	switch (op) {
	case OP_CMP: case OP_SUB: case OP_DEC:
		if (op == OP_CMP && (a.kind == KIND_POINTER) != (b.kind == KIND_POINTER))
			return refuse(an, FAY_RULE_MEM_POINTER, "compares a pointer with a number");
		if (!arithmetic(an, OP_SUB, &a, &b, width, &r))
			return false;
		if (op == OP_DEC)
			covered &= ~FLAG_CF;
		if (a.kind == KIND_POINTER && b.kind != KIND_POINTER) {
			set_no_record(an);
			an->current->flags_undefined |= FLAG_ALL;
		} else if (!record_compare(an, &a, &b, &r, width, covered)) {
			return false;
		}
		return op == OP_CMP ? true : write_operand(an, &insn->dst, width, r);
	case OP_ADD: case OP_INC:
		if (!arithmetic(an, OP_ADD, &a, &b, width, &r))
			return false;
		record_sum(an, &a, &b, &r, width, op == OP_INC ? covered & ~FLAG_CF : covered);
		return write_operand(an, &insn->dst, width, r);
	default:
		break;
	}
	if (a.kind == KIND_POINTER || b.kind == KIND_POINTER)
		return refuse(an, FAY_RULE_MEM_POINTER, "a logic operation on a pointer");
	if ((op == OP_TEST || op == OP_AND || op == OP_OR) && same)
		r = a;
	else if (!arithmetic(an, op == OP_TEST ? OP_AND : op, &a, &b, width, &r))
		return false;
	set_record(an, RECORD_LOGIC, width, op == OP_OR || op == OP_XOR ? NULL : &a, op == OP_OR || op == OP_XOR ? NULL : &b, &r, covered);
	return op == OP_TEST ? true : write_operand(an, &insn->dst, width, r);
}

static bool do_carry_alu(struct fay_analysis *an, const struct fay_insn *insn)
{
	bool same = insn->op == OP_SBB && insn->dst.kind == OPERAND_REG && insn->src.kind == OPERAND_REG && insn->dst.reg == insn->src.reg;
	struct fay_scalar carry = fay_scalar_range(0, 1), sum;
	struct fay_value a, b, r;
	unsigned width = insn->width;

	if (!flags_ready(an, FLAG_CF))
		return false;
	if (same) {
		struct fay_scalar zero = fay_scalar_const(0), ones = fay_scalar_const(mask_of(width));

		r = fresh(an, fay_scalar_join(&zero, &ones));
	} else {
		if (!read_operand(an, &insn->dst, width, &a) || !read_operand(an, &insn->src, width, &b))
			return false;
		if (a.kind == KIND_POINTER || b.kind == KIND_POINTER)
			return refuse(an, FAY_RULE_MEM_POINTER, "adds a pointer with carry");
		sum = compute_both(insn->op == OP_ADC ? OP_ADD : OP_SUB, &a.s, &b.s, width);
		r = fresh(an, compute_both(insn->op == OP_ADC ? OP_ADD : OP_SUB, &sum, &carry, width));
	}
	set_record(an, RECORD_RESULT, width, NULL, NULL, &r, FLAG_ZF | FLAG_SF);
	return write_operand(an, &insn->dst, width, r);
}

static bool read_number(struct fay_analysis *an, const struct fay_operand *operand, unsigned width, struct fay_value *v)
{
	if (!read_operand(an, operand, width, v))
		return false;
	if (v->kind == KIND_POINTER)
		return refuse(an, FAY_RULE_MEM_POINTER, "a pointer is used as a number");
	return true;
}

static bool do_unary(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_value a, r, zero = constant(an, 0), ones = constant(an, mask_of(insn->width));

	if (!read_number(an, &insn->dst, insn->width, &a))
		return false;
	if (insn->op == OP_NOT) {
		r = fresh(an, compute_both(OP_SUB, &ones.s, &a.s, insn->width));
	} else {
		r = fresh(an, compute_both(OP_SUB, &zero.s, &a.s, insn->width));
		set_record(an, RECORD_COMPARE, insn->width, &zero, &a, &r, FLAG_ALL & (uint8_t)~FLAG_PF);
	}
	return write_operand(an, &insn->dst, insn->width, r);
}

static bool do_shift(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_value a, b, r;
	struct fay_scalar count;
	unsigned width = insn->width;
	enum fay_op op = (enum fay_op)insn->op;
	bool rotate = op == OP_ROL || op == OP_ROR || op == OP_SHLD || op == OP_SHRD;

	if (!read_number(an, &insn->dst, width, &a))
		return false;
	if (op == OP_SHLD || op == OP_SHRD) {
		if (!read_number(an, &insn->src, width, &b))
			return false;
		count = fay_scalar_const(insn->imm);
	} else {
		if (!read_number(an, &insn->src, 8, &b))
			return false;
		count = b.s;
	}
	count = shift_count(&count, width);
	if (rotate)
		r = fresh(an, fay_scalar_range(0, mask_of(width)));
	else
		r = fresh(an, compute(op, &a.s, &count, width));
	if (fay_scalar_is_const(&count) && count.umin == 0) {
		/* Flags are kept, and so is the value (a 32-bit register is still zero-extended). */
		return write_operand(an, &insn->dst, width, a);
	}
	if (fay_scalar_is_const(&count) && !rotate && count.umin < width) {
		set_record(an, RECORD_RESULT, width, NULL, NULL, &r, FLAG_ZF | FLAG_SF);
		if (count.umin != 1)
			an->current->flags_undefined |= FLAG_OF;
	} else {
		set_no_record(an);
		an->current->flags_undefined = FLAG_ALL;
	}
	return write_operand(an, &insn->dst, width, r);
}

static bool do_imul(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_value a, b, r;

	if (!read_number(an, &insn->src, insn->width, &a) || !read_number(an, &insn->src2, insn->width, &b))
		return false;
	r = fresh(an, compute_both(OP_IMUL, &a.s, &b.s, insn->width));
	set_no_record(an);
	return write_operand(an, &insn->dst, insn->width, r);
}

/* rdx:rax = rax * src. */
static bool do_wide_multiply(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_operand rax = { .kind = OPERAND_REG, .reg = FAY_RAX };
	struct fay_value a, b;
	struct fay_scalar low, high;
	unsigned width = insn->width;

	if (width != 32 && width != 64)
		return refuse(an, FAY_RULE_INS_UNSUPPORTED, "a multiplication of this width");
	if (!read_number(an, &rax, width, &a) || !read_number(an, &insn->src, width, &b))
		return false;
	low = compute_both(OP_IMUL, &a.s, &b.s, width);
	high = fay_scalar_range(0, mask_of(width));
	if (insn->op == OP_MUL1 && width == 64) {
		high = fay_scalar_mul_high(&a.s, &b.s);
	} else if (insn->op == OP_MUL1) {
		struct fay_scalar by = fay_scalar_const(32), product = fay_scalar_mul(&a.s, &b.s);

		high = fay_scalar_shr(&product, &by);
	}
	set_no_record(an);
	write_reg(an, FAY_RAX, width, fresh(an, low));
	write_reg(an, FAY_RDX, width, fresh(an, high));
	return true;
}

static bool divide_obligation(struct fay_analysis *an, bool holds, const char *missing)
{
	struct fay_obligation *o;

	if (!an->checking)
		return true;
	an->obligation_count++;
	if (holds && !an->keep_all)
		return true;
	o = add_pending(an, GOAL_DIVIDE, FAY_RULE_ARI_DIVIDE, FAY_UNPROVED);
	if (!o)
		return false;
	o->discharged = holds;
	o->what = "a division that may fault";
	o->missing = fay_arena_printf(an->arena, "%s", missing);
	return true;
}

static bool do_divide(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_operand rax = { .kind = OPERAND_REG, .reg = FAY_RAX }, rdx = { .kind = OPERAND_REG, .reg = FAY_RDX };
	struct fay_value low, high, divisor;
	struct fay_scalar quotient = fay_scalar_range(0, mask_of(insn->width)), remainder = quotient;
	unsigned width = insn->width;
	bool holds;

	if (width != 32 && width != 64)
		return refuse(an, FAY_RULE_INS_UNSUPPORTED, "a division of this width");
	if (!read_number(an, &rax, width, &low) || !read_number(an, &rdx, width, &high) ||
	    !read_number(an, &insn->src, width, &divisor))
		return false;
	if (insn->op == OP_DIV) {
		/* The quotient fits if the upper half is less than the divisor (Intel SDM, DIV). */
		holds = divisor.s.umin > 0 && high.s.umax < divisor.s.umin;
		if (holds && high.s.umax == 0) {
			quotient = fay_scalar_udiv(&low.s, &divisor.s);
			remainder = fay_scalar_urem(&low.s, &divisor.s);
		} else if (divisor.s.umax > 0) {
			remainder = fay_scalar_range(0, divisor.s.umax - 1);
		}
	} else {
		/* rdx must be the sign of rax: known here if the sign is; the rest is the solver's. */
		struct fay_scalar d = fay_scalar_sext(&divisor.s, width), n = fay_scalar_sext(&low.s, width);
		struct fay_scalar h = fay_scalar_sext(&high.s, width);
		bool extended = (h.smin == 0 && h.smax == 0 && n.smin >= 0) || (h.smin == -1 && h.smax == -1 && n.smax < 0);

		holds = extended && d.smin > 0;
		if (holds && n.smin >= 0) {
			quotient = fay_scalar_udiv(&low.s, &divisor.s);
			remainder = fay_scalar_urem(&low.s, &divisor.s);
		}
	}
	if (!divide_obligation(an, holds, insn->op == OP_DIV ? "that the divisor is greater than rdx (the dividend's upper half)"
							      : "that the divisor is positive and rdx:rax a sign extension"))
		return false;
	set_no_record(an);
	write_reg(an, FAY_RAX, width, fresh(an, quotient));
	write_reg(an, FAY_RDX, width, fresh(an, remainder));
	return true;
}

static bool do_cqo(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_operand rax = { .kind = OPERAND_REG, .reg = FAY_RAX };
	struct fay_scalar by = fay_scalar_const(63), s;
	struct fay_value a;

	if (!read_number(an, &rax, insn->width, &a))
		return false;
	s = fay_scalar_sext(&a.s, insn->width);
	s = fay_scalar_sar(&s, &by);
	write_reg(an, FAY_RDX, insn->width, fresh(an, fay_scalar_zext(&s, insn->width)));
	return true;
}

static bool do_bt(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_value a, b;
	struct fay_scalar mask = fay_scalar_const(insn->width - 1);

	if (insn->dst.kind != OPERAND_REG)
		return refuse(an, FAY_RULE_INS_UNSUPPORTED, "bt on memory");
	if (!read_number(an, &insn->dst, insn->width, &a) || !read_number(an, &insn->src, insn->width, &b))
		return false;
	b = fresh(an, fay_scalar_and(&b.s, &mask));
	set_record(an, RECORD_BIT, insn->width, &a, &b, NULL, FLAG_CF);
	return true;
}

static bool do_bits(struct fay_analysis *an, const struct fay_insn *insn)
{
	unsigned width = insn->width;
	struct fay_value a, r;
	struct fay_scalar s = fay_scalar_range(0, width);

	if (!read_number(an, insn->op == OP_BSWAP ? &insn->dst : &insn->src, width, &a))
		return false;
	switch (insn->op) {
	case OP_BSWAP:
		write_reg(an, insn->dst.reg, width, fresh(an, fay_scalar_range(0, mask_of(width))));
		return true;
	case OP_BSF:
	case OP_BSR:
	case OP_TZCNT: /* CPUs without it run bsf, */
	case OP_LZCNT: /* and bsr for this one */
		if (a.s.umin == 0) {
			/* For a zero source the destination keeps its value (AMD) or is undefined (Intel). */
			if (an->checking) {
				struct fay_obligation *o;

				an->obligation_count++;
				o = add_pending(an, GOAL_UNREACHABLE, FAY_RULE_MEM_UNINIT, FAY_UNPROVED);
				if (o)
					o->what = "a bit scan whose source may be zero leaves its result undefined";
			}
			return false;
		}
		if (insn->op == OP_LZCNT)
			s = fay_scalar_range(0, width - 1);
		else if (insn->op == OP_BSR)
			s = fay_scalar_range(63 - (unsigned)__builtin_clzll(a.s.umin), 63 - (unsigned)__builtin_clzll(a.s.umax));
		else /* the lowest bit set: at least the lowest possible one, at most the lowest certain one */
			s = fay_scalar_range((unsigned)__builtin_ctzll(a.s.value | a.s.unknown),
					     a.s.value ? (unsigned)__builtin_ctzll(a.s.value) : 63 - (unsigned)__builtin_clzll(a.s.umax));
		break;
	default:
		break;
	}
	r = fresh(an, s);
	if (insn->op == OP_POPCNT)
		set_record(an, RECORD_RESULT, width, NULL, NULL, &a, FLAG_ZF);
	else
		set_no_record(an);
	write_reg(an, insn->dst.reg, width, r);
	return true;
}

static bool do_xchg(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_value a, b;

	if (insn->dst.kind != OPERAND_REG || insn->src.kind != OPERAND_REG)
		return refuse(an, FAY_RULE_INS_UNSUPPORTED, "xchg with memory");
	if (insn->width == 64) {
		if (!read_whole(an, insn->dst.reg, &a) || !read_whole(an, insn->src.reg, &b))
			return false;
	} else if (!read_number(an, &insn->dst, insn->width, &a) || !read_number(an, &insn->src, insn->width, &b)) {
		return false;
	}
	write_reg(an, insn->dst.reg, insn->width, b);
	write_reg(an, insn->src.reg, insn->width, a);
	return true;
}

static bool do_xadd(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_value a, b, r;
	struct access access;

	if (insn->dst.kind != OPERAND_MEM || insn->src.kind != OPERAND_REG)
		return refuse(an, FAY_RULE_INS_UNSUPPORTED, "xadd between registers");
	/* One address for both accesses: the register written may be part of it. */
	if (!read_number(an, &insn->src, insn->width, &b) || !locate(an, &insn->dst, insn->width / 8, true, &access) ||
	    !load_from(an, &access, &a))
		return false;
	if (a.kind != KIND_SCALAR)
		return refuse(an, FAY_RULE_MEM_POINTER, "xadd on a pointer");
	if (!arithmetic(an, OP_ADD, &a, &b, insn->width, &r) || !store_to(an, &access, &r))
		return false;
	set_record(an, RECORD_RESULT, insn->width, NULL, NULL, &r, FLAG_ZF | FLAG_SF);
	write_reg(an, insn->src.reg, insn->width, a);
	return true;
}

static bool do_cmpxchg(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_operand rax = { .kind = OPERAND_REG, .reg = FAY_RAX };
	struct fay_value expected, found, desired, either;
	struct access access;
	unsigned width = insn->width;

	if (insn->dst.kind != OPERAND_MEM)
		return refuse(an, FAY_RULE_INS_UNSUPPORTED, "cmpxchg with a register");
	if (!read_number(an, &rax, width, &expected) || !read_number(an, &insn->src, width, &desired) ||
	    !locate(an, &insn->dst, width / 8, true, &access) || !load_from(an, &access, &found))
		return false;
	if (found.kind != KIND_SCALAR)
		return refuse(an, FAY_RULE_MEM_POINTER, "cmpxchg on a pointer");
	either = fresh(an, fay_scalar_join(&found.s, &desired.s));
	if (!store_to(an, &access, &either))
		return false;
	set_no_record(an);
	/* On success rax keeps what it held, which is then what was found; width 32 zero-extends on failure only. */
	if (width == 32)
		an->current->loc[FAY_RAX] = fresh(an, an->current->loc[FAY_RAX].s.umax <= UINT32_MAX ? fay_scalar_range(0, UINT32_MAX)
												      : fay_scalar_top());
	else
		write_reg(an, FAY_RAX, width, fresh(an, found.s));
	return true;
}

/* dst = cc ? src : dst: each side learns what its condition says. */
static bool do_cmov(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_state *s = an->current;
	struct fay_value yes, no, r;
	struct triple t;
	bool may, may_not;

	if (!flags_ready(an, fay_cc_flags((enum fay_cc)insn->cc)))
		return false;
	if (!read_operand(an, &insn->src, insn->width, &yes) || !read_operand(an, &insn->dst, insn->width, &no))
		return false;
	/* Also without branch refinement: a conditional move waits for its flags, it is not predicted. */
	may = refine_triple(s, (enum fay_cc)insn->cc, &t) && learn_all(&yes, &t);
	may_not = refine_triple(s, (enum fay_cc)(insn->cc ^ 1), &t) && learn_all(&no, &t);
	if (!may && !may_not)
		return false; /* not reachable */
	if (may && may_not) {
		if (yes.kind != no.kind || yes.tag != no.tag) {
			r = fresh(an, fay_scalar_top());
			r.kind = KIND_MIXED;
		} else {
			r = yes;
			r.s = fay_scalar_join(&yes.s, &no.s);
			if (yes.id != no.id || yes.delta != no.delta)
				forget_name(an, &r);
			if (yes.origin && yes.origin == no.origin) {
				r.origin = yes.origin;
				r.dlo = yes.dlo < no.dlo ? yes.dlo : no.dlo;
				r.dhi = yes.dhi > no.dhi ? yes.dhi : no.dhi;
			}
		}
	} else {
		r = may ? yes : no;
	}
	write_reg(an, insn->dst.reg, insn->width, r);
	return true;
}

static bool do_setcc(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_scalar s = fay_scalar_range(0, 1);
	struct triple t;

	if (!flags_ready(an, fay_cc_flags((enum fay_cc)insn->cc)))
		return false;
	if (!refine_triple(an->current, (enum fay_cc)insn->cc, &t))
		s = fay_scalar_const(0);
	else if (!refine_triple(an->current, (enum fay_cc)(insn->cc ^ 1), &t))
		s = fay_scalar_const(1);
	return write_operand(an, &insn->dst, 8, fresh(an, s));
}

/* ---- stack and calls ---- */

/* Brings the state's depth to a new stack pointer. */
static bool move_stack(struct fay_analysis *an, int64_t depth)
{
	struct fay_state *s = an->current;
	struct fay_value *rsp = &s->loc[FAY_RSP];

	if (depth < 0)
		return refuse(an, FAY_RULE_STK_RETURN, "the stack pointer is raised above the return address");
	if (depth & 7)
		return refuse(an, FAY_RULE_STK_POINTER, "the stack pointer is not a multiple of 8");
	if (depth > (int64_t)FAY_STACK_HARD)
		return refuse(an, FAY_RULE_STK_LIMIT, "%lld bytes of stack; the verifier follows at most %u", (long long)depth, FAY_STACK_HARD);
	fay_state_set_depth(s, depth);
	*rsp = fresh(an, fay_scalar_const((uint64_t)-depth));
	rsp->kind = KIND_POINTER;
	rsp->tag = REGION_STACK;
	if (an->checking && depth > an->deepest) {
		an->deepest = depth;
		if ((uint64_t)depth + 8 > an->policy->max_stack)
			return refuse(an, FAY_RULE_POL_STACK, "%lld bytes of stack; the policy allows %llu", (long long)depth + 8,
				      (unsigned long long)an->policy->max_stack);
	}
	return true;
}

/* After any instruction that may have written rsp. */
static bool check_stack_pointer(struct fay_analysis *an)
{
	const struct fay_value *rsp = &an->current->loc[FAY_RSP];

	if (rsp->kind != KIND_POINTER || rsp->tag != REGION_STACK || !fay_scalar_is_const(&rsp->s))
		return refuse(an, FAY_RULE_STK_POINTER, "the stack pointer is not a constant distance from its value at entry");
	if (rsp->s.smin == -fay_state_depth(an->current))
		return true;
	if (rsp->s.smin < -(int64_t)FAY_STACK_HARD - 64)
		return refuse(an, FAY_RULE_STK_LIMIT, "the stack pointer is lowered by %lld bytes", -(long long)rsp->s.smin);
	return move_stack(an, -rsp->s.smin);
}

static bool do_push(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_value v;
	int64_t depth = fay_state_depth(an->current) + 8;

	if (insn->src.kind == OPERAND_REG) {
		/* Anything may be kept on the own stack: also a value that must not be read. */
		v = an->current->loc[insn->src.reg];
		note_read(an, &v);
	} else if (!read_operand(an, &insn->src, 64, &v)) {
		return false;
	}
	if (!move_stack(an, depth))
		return false;
	fay_stack_store(an->current, -depth, 8, &v);
	return true;
}

static bool do_pop(struct fay_analysis *an, const struct fay_insn *insn)
{
	int64_t depth = fay_state_depth(an->current);
	struct fay_value v;
	enum fay_slot_status status;

	if (depth < 8)
		return refuse(an, FAY_RULE_STK_RETURN, "pops the return address");
	status = fay_stack_load(an->current, -depth, 8, &v);
	if (status == SLOT_UNINIT) {
		uint8_t tag = v.kind == KIND_UNINIT ? v.tag : TAG_NONE;

		v = fay_value_uninit();
		v.tag = tag;
	} else if (status != SLOT_OK) {
		return slot_refuse(an, status);
	}
	if (v.id == 0)
		forget_name(an, &v);
	if (insn->dst.kind != OPERAND_REG)
		return refuse(an, FAY_RULE_INS_UNSUPPORTED, "pop to memory");
	if (!move_stack(an, depth - 8))
		return false;
	if (insn->dst.reg == FAY_RSP)
		return refuse(an, FAY_RULE_STK_POINTER, "pop writes the stack pointer");
	write_reg(an, insn->dst.reg, 64, v);
	return true;
}

static bool do_call(struct fay_analysis *an, const struct fay_insn *insn)
{
	int64_t depth = fay_state_depth(an->current) + 8;
	const struct fay_node *node = &an->graph->nodes[an->node];
	struct fay_value token = fay_value_scalar(fay_scalar_const(an->graph->nodes[node->succ[0]].context));

	token.kind = KIND_RETURN;
	if (!move_stack(an, depth))
		return false;
	fay_stack_store(an->current, -depth, 8, &token);
	return true;
}

static bool unchanged(const struct fay_value *v, unsigned reg)
{
	if (v->kind == KIND_SAVED || v->kind == KIND_UNINIT)
		return v->tag == reg;
	if (v->kind != KIND_POINTER || !fay_scalar_is_const(&v->s) || v->s.umin != 0)
		return false;
	return (reg == FAY_RDI && v->tag == REGION_EVENT) || (reg == FAY_RSI && v->tag == REGION_LOCAL) ||
	       (reg == FAY_RDX && v->tag == REGION_GLOBAL);
}

static bool do_ret(struct fay_analysis *an)
{
	struct fay_state *s = an->current;
	uint32_t context = an->graph->nodes[an->node].context;
	int64_t depth = fay_state_depth(s);

	if (an->graph->contexts[context].parent != FAY_NONE) {
		const struct fay_value *v = depth >= 8 ? &s->loc[s->count - 1] : NULL;

		if (!v || v->kind != KIND_RETURN || v->s.umin != context)
			return refuse(an, FAY_RULE_CFI_RETURN, "the stack pointer is not at this call's return address");
		return move_stack(an, depth - 8);
	}
	if (depth)
		return refuse(an, FAY_RULE_CFI_RETURN, "the stack pointer is %lld bytes below the return address", (long long)depth);
	for (unsigned r = 0; r < 16; r++) {
		if (r == FAY_RSP || unchanged(&s->loc[r], r))
			continue;
		if (r == FAY_RBX || r == FAY_RBP || r >= FAY_R12)
			return refuse(an, FAY_RULE_ENV_SAVED, "%s is not as it was at entry", fay_gpr_name(r, 64));
		if (an->checking)
			an->facts->clobbered_gprs |= 1u << r;
	}
	return true;
}

/* ---- helpers ---- */

static bool state_index(struct fay_analysis *an, unsigned helper, uint16_t kind, uint32_t *index)
{
	struct fay_value v;

	if (!read_reg(an, FAY_RSI, 64, &v))
		return false;
	if (v.kind != KIND_SCALAR || !fay_scalar_is_const(&v.s) || v.s.umin >= an->image->schema.state_count ||
	    an->image->schema.states[v.s.umin].kind != kind)
		return refuse(an, FAY_RULE_HLP_CONTRACT, "%s: the second argument must be the constant number of a %s", fay_helper_name(helper),
			      kind == FAY_STATE_TABLE ? "table" : "stream");
	*index = (uint32_t)v.s.umin;
	return true;
}

static bool local_start(struct fay_analysis *an, unsigned helper)
{
	struct fay_value v;

	if (!read_reg(an, FAY_RDI, 64, &v))
		return false;
	if (v.kind != KIND_POINTER || v.tag != REGION_LOCAL || !fay_scalar_is_const(&v.s) || v.s.umin)
		return refuse(an, FAY_RULE_HLP_CONTRACT, "%s: the first argument must be the start of local state", fay_helper_name(helper));
	return true;
}

static bool helper_pointer(struct fay_analysis *an, unsigned reg, unsigned size, bool write, unsigned helper, struct access *access)
{
	struct fay_value v;

	if (!read_reg(an, reg, 64, &v))
		return false;
	if (v.kind != KIND_POINTER)
		return refuse(an, FAY_RULE_HLP_CONTRACT, "%s: %s is not a pointer", fay_helper_name(helper), fay_gpr_name(reg, 64));
	if (write && v.tag != REGION_STACK && v.tag != REGION_LOCAL)
		return refuse(an, FAY_RULE_HLP_CONTRACT, "%s: writes only to the stack and to local state", fay_helper_name(helper));
	if (!resolve(an, &v, size, write, true, access))
		return false;
	return access->proved;
}

static bool call_emit(struct fay_analysis *an, struct fay_scalar *result)
{
	struct access access;
	uint32_t index;
	unsigned size;

	if (!local_start(an, FAY_HELPER_EMIT) || !state_index(an, FAY_HELPER_EMIT, FAY_STATE_STREAM, &index))
		return false;
	size = an->image->schema.states[index].row_size;
	if (!helper_pointer(an, FAY_RDX, size, false, FAY_HELPER_EMIT, &access))
		return false;
	if (access.region == REGION_EVENT)
		note_fields(an, access.offset.smin, access.offset.smax + size);
	if (access.region == REGION_STACK) {
		enum fay_slot_status status = fay_stack_check(an->current, access.offset.smin, access.offset.smax + size);

		if (status == SLOT_KIND)
			return refuse(an, FAY_RULE_MEM_LEAK, "the row holds a pointer or a value of the traced program");
		if (status != SLOT_OK)
			return slot_refuse(an, status);
	}
	*result = fay_scalar_range(0, 1);
	return true;
}

static bool call_try_read(struct fay_analysis *an, struct fay_scalar *result)
{
	struct fay_value size, address;
	struct access access;

	if (!read_reg(an, FAY_RSI, 64, &size) || !read_reg(an, FAY_RDX, 64, &address))
		return false;
	if (size.kind != KIND_SCALAR || size.s.umax > FAY_TRY_READ_MAX)
		return refuse(an, FAY_RULE_HLP_CONTRACT, "fay_try_read: the size may be more than %u", FAY_TRY_READ_MAX);
	if (!helper_pointer(an, FAY_RDI, (unsigned)size.s.umax, true, FAY_HELPER_TRY_READ, &access))
		return false;
	if (access.region == REGION_STACK) {
		int64_t low = access.offset.smin, high = access.offset.smax;
		enum fay_slot_status status = fay_stack_havoc(an->current, low, high + (int64_t)size.s.umax, false);

		if (status == SLOT_OK && low == high)
			status = fay_stack_havoc(an->current, low, low + (int64_t)size.s.umin, true);
		if (status != SLOT_OK)
			return slot_refuse(an, status);
	}
	*result = fay_scalar_srange(-1, 0);
	return true;
}

static bool do_call_slot(struct fay_analysis *an, const struct fay_insn *insn)
{
	static const uint8_t clobbered[] = { FAY_RAX, FAY_RCX, FAY_RDX, FAY_RSI, FAY_RDI, FAY_R8, FAY_R9, FAY_R10, FAY_R11 };
	int helper = fay_image_slot(an->image, insn->target);
	struct fay_scalar result = fay_scalar_range(0, 1);
	uint32_t index;
	bool ok;

	if (helper < 0)
		return refuse(an, FAY_RULE_CFI_CALL, "an indirect call that is not to an imported helper");
	if (!(an->policy->allow_helpers >> helper & 1))
		return refuse(an, FAY_RULE_POL_HELPER, "the policy does not allow %s", fay_helper_name((unsigned)helper));
	if (an->checking) {
		int64_t depth = fay_state_depth(an->current) + 8;

		an->facts->helpers |= 1u << helper;
		if (depth > an->deepest)
			an->deepest = depth;
	}
	/* rsp is 8 modulo 16 at entry and must be 0 modulo 16 at a call. */
	if ((fay_state_depth(an->current) & 15) != 8)
		return refuse(an, FAY_RULE_HLP_STACK, "the stack pointer is not a multiple of 16 at this call");
	switch (helper) {
	case FAY_HELPER_FLUSH:
		ok = local_start(an, FAY_HELPER_FLUSH) && state_index(an, FAY_HELPER_FLUSH, FAY_STATE_TABLE, &index);
		break;
	case FAY_HELPER_EMIT:
		ok = call_emit(an, &result);
		break;
	case FAY_HELPER_TRY_READ:
		ok = call_try_read(an, &result);
		break;
	default:
		return refuse(an, FAY_RULE_CFI_CALL, "a helper without a contract");
	}
	if (!ok)
		return false;
	for (unsigned i = 0; i < sizeof(clobbered); i++)
		an->current->loc[clobbered[i]] = fay_value_uninit();
	an->current->loc[FAY_RAX] = fresh(an, result);
	set_no_record(an);
	an->current->flags_undefined = FLAG_ALL;
	return true;
}

/*
 * Speculation pass: nothing that was mispredicted runs past an lfence, so after it the state is the architectural one, which
 * the first pass proved.
 */
static bool do_fence(struct fay_analysis *an)
{
	struct fay_state *speculative = an->current, **proved = an->architectural;
	const struct fay_block *block = &an->cfg->blocks[an->graph->nodes[an->node].block];
	uint32_t fence = an->insn;
	bool checking = an->checking, ok;

	if (!proved)
		return true;
	if (!proved[an->node])
		return false;
	if (an->fence_steps += fence - block->first, an->fence_steps > FAY_MAX_FENCE_STEPS) {
		an->refusal = fay_refuse(an->arena, FAY_RULE_LIM_RESOURCE, insn_of(an)->address, "too many fences in long blocks");
		return false;
	}
	an->current = an->branch;
	an->architectural = NULL;
	an->checking = false;
	fay_state_copy(an->current, proved[an->node]);
	ok = true;
	for (uint32_t i = block->first; ok && i < fence; i++)
		ok = fay_transfer_step(an, an->node, i);
	an->insn = fence;
	an->checking = checking;
	an->architectural = proved;
	an->current = speculative;
	if (ok)
		fay_state_copy(an->current, an->branch);
	return ok;
}

static bool step(struct fay_analysis *an, const struct fay_insn *insn)
{
	switch (insn->op) {
	case OP_LFENCE:
		return do_fence(an);
	case OP_NOP: case OP_JMP:
		return true;
	case OP_MOV:
		return do_mov(an, insn);
	case OP_MOVZX: case OP_MOVSX:
		return do_extend(an, insn);
	case OP_LEA:
		return do_lea(an, insn);
	case OP_ADD: case OP_SUB: case OP_AND: case OP_OR: case OP_XOR: case OP_CMP: case OP_TEST: case OP_INC: case OP_DEC:
		return do_alu(an, insn);
	case OP_ADC: case OP_SBB:
		return do_carry_alu(an, insn);
	case OP_NOT: case OP_NEG:
		return do_unary(an, insn);
	case OP_SHL: case OP_SHR: case OP_SAR: case OP_ROL: case OP_ROR: case OP_SHLD: case OP_SHRD:
		return do_shift(an, insn);
	case OP_IMUL:
		return do_imul(an, insn);
	case OP_MUL1: case OP_IMUL1:
		return do_wide_multiply(an, insn);
	case OP_DIV: case OP_IDIV:
		return do_divide(an, insn);
	case OP_CQO:
		return do_cqo(an, insn);
	case OP_BT:
		return do_bt(an, insn);
	case OP_BSWAP: case OP_BSF: case OP_BSR: case OP_TZCNT: case OP_LZCNT: case OP_POPCNT:
		return do_bits(an, insn);
	case OP_XCHG:
		return do_xchg(an, insn);
	case OP_XADD:
		return do_xadd(an, insn);
	case OP_CMPXCHG:
		return do_cmpxchg(an, insn);
	case OP_CMOV:
		return do_cmov(an, insn);
	case OP_SETCC:
		return do_setcc(an, insn);
	case OP_PUSH:
		return do_push(an, insn);
	case OP_POP:
		return do_pop(an, insn);
	case OP_JCC:
		return flags_ready(an, fay_cc_flags((enum fay_cc)insn->cc));
	case OP_CALL:
		return do_call(an, insn);
	case OP_CALL_SLOT:
		return do_call_slot(an, insn);
	case OP_RET:
		return do_ret(an);
	case OP_RDTSC:
		if (!an->policy->allow_rdtsc)
			return refuse(an, FAY_RULE_INS_FORBIDDEN, "the policy does not allow rdtsc");
		write_reg(an, FAY_RAX, 32, fresh(an, fay_scalar_range(0, UINT32_MAX)));
		write_reg(an, FAY_RDX, 32, fresh(an, fay_scalar_range(0, UINT32_MAX)));
		return true;
	default:
		return refuse(an, FAY_RULE_INS_UNSUPPORTED, "an instruction that the analysis does not know");
	}
}

bool fay_transfer_step(struct fay_analysis *an, uint32_t node, uint32_t insn)
{
	an->node = node;
	an->insn = insn;
	/* Blocks may be long. Whoever ignores the refusal sees the same deadline passed before believing the end of this path. */
	if (an->deadline && !(++an->steps & 15) && fay_monotonic_ns() > an->deadline) {
		an->refusal = fay_refuse(an->arena, FAY_RULE_LIM_TIME, insn_of(an)->address, "time ran out in the analysis");
		return false;
	}
	if (an->current->next_id > UINT32_MAX / 2)
		return refuse(an, FAY_RULE_LIM_RESOURCE, "a path with too many values");
	return step(an, insn_of(an)) && check_stack_pointer(an);
}

bool fay_transfer_block(struct fay_analysis *an, uint32_t node)
{
	const struct fay_block *block = &an->cfg->blocks[an->graph->nodes[node].block];

	for (uint32_t i = 0; i < block->count; i++)
		if (!fay_transfer_step(an, node, block->first + i))
			return false;
	return true;
}

bool fay_transfer_address(struct fay_analysis *an, const struct fay_operand *mem, struct fay_value *address)
{
	bool checking = an->checking, ok;

	an->checking = false;
	ok = address_of(an, mem, address);
	an->checking = checking;
	return ok && address->kind == KIND_POINTER;
}
