/* SPDX-License-Identifier: MIT */
/* Operands: who may read what, how parts of registers are written, sums and products. */
#include "machine.h"

bool machine_readable(struct machine *m, const struct value *v, unsigned bits)
{
	const struct fay_interface *interface = m->subject->interface;
	unsigned need = bits >= 64 ? 0xff : (1u << bits / 8) - 1;

	switch (v->kind) {
	case KIND_NUMBER:
		return m->lenient || (v->init & need) == need ||
		       check_refuse(m, FAY_RULE_MEM_UNINIT,
				    "a register is read of which only a part was written");
	case KIND_POINTER:
		for (uint32_t i = 0; i < interface->parameter_count; i++)
			if (interface->parameter[i].kind == FAY_VALUE_START &&
			    interface->parameter[i].of == v->tag)
				m->facts->arguments_used |= 1u << machine_argument(i);
		return bits == 64 || check_refuse(m, FAY_RULE_MEM_POINTER,
						  "a part of a pointer is used as a number");
	case KIND_HELPER:
		return check_refuse(m, FAY_RULE_MEM_POINTER,
				    "a helper's address may only be moved and called");
	case KIND_RETURN: return check_refuse(m, FAY_RULE_STK_RETURN, "a return address is read");
	default:
		return check_refuse(
			m, FAY_RULE_MEM_UNINIT,
			"a register is read that was not written, or whose region ended");
	}
}

/*
 * The low bits of a number of which the rest is anything become a variable of their own, or what it
 * is a multiple of times one, where the number is: so what is learned of them is known when they
 * are read again.
 */
void value_settle(struct machine *m, struct value *v, unsigned bits)
{
	unsigned b = v->bits < bits ? v->bits : bits, zeros;
	struct value low = *v, rest;
	struct range r;

	if (v->kind != KIND_NUMBER)
		return;
	if (!v->f.v[0]) {
		v->f.c &= (int64_t)(UINT64_MAX >> (64 - v->bits));
		v->bits = 64;
		return;
	}
	if (b < 64)
		form_reduce(&low.f, b);
	r = form_range(m, &low.f);
	if ((r.hi >> b) - (r.lo >> b) <= 1)
		return; /* a branch can tell on which side of the wrap it is */
	zeros = (unsigned)__builtin_ctzll((uint64_t)(v->f.c | v->f.k[0] | v->f.k[1])); /* below b */
	low = value_fresh(m, 0, ((wide)1 << (b - zeros)) - 1, 64);
	form_scale(&low.f, (uint64_t)1 << zeros);
	if (v->bits > b) {
		rest = value_fresh(m, 0, ((wide)1 << (v->bits - b)) - 1, 64);
		form_add(&low.f, &rest.f, (int64_t)1 << b);
	}
	v->f = low.f;
	v->bits = 64;
}

bool register_read(struct machine *m, unsigned reg, unsigned bits, struct value *v)
{
	if (bits < 64)
		value_settle(m, &m->s.reg[reg], bits);
	*v = m->s.reg[reg];
	if (!machine_readable(m, v, bits))
		return false;
	v->init = 0xff;
	if (v->bits > bits && v->kind == KIND_NUMBER) {
		v->bits = (uint8_t)bits;
		form_reduce(&v->f, bits);
	}
	return true;
}

struct form value_word(struct machine *m, const struct value *v, unsigned bits)
{
	struct form f;

	if (value_congruent(m, v, bits, &f))
		return f;
	return value_fresh(m, 0, ((wide)1 << v->bits) - 1, 64).f;
}

/* The form in [0, 2^bits) that the low bits are. */
static struct form low_part(struct machine *m, const struct value *v, unsigned bits)
{
	struct range r;
	struct form f;

	if (value_form(m, v, bits, false, &f))
		return f;
	r = value_range(m, v, bits, false);
	return value_fresh(m, r.lo, r.hi, 64).f;
}

/* low + 2^shift * high, over the integers; neither is negative. */
static struct form joined(struct machine *m, struct form low, struct form high, unsigned shift)
{
	struct range r;

	if (form_add(&low, &high, (int64_t)1 << shift))
		return low;
	r = form_range(m, &low);
	low = value_fresh(m, r.lo, r.hi, 64).f;
	r = form_range(m, &high);
	high = value_fresh(m, r.lo, r.hi, 64).f;
	form_add(&low, &high, (int64_t)1 << shift);
	return low;
}

/* Bits [at, at + bits) of a register become those of `v`; the others are kept. */
static void register_put(struct machine *m, unsigned reg, unsigned at, unsigned bits,
			 const struct value *v)
{
	struct value *to = &m->s.reg[reg], old = *to;
	bool kept = old.kind == KIND_NUMBER;
	unsigned end = at + bits, init = ((1u << bits / 8) - 1) << at / 8;
	struct range r = { 0, UINT64_MAX };
	struct form f = form_number(0);

	if (kept)
		r = value_range(m, &old, 64, false);
	if (at)
		f = kept ? low_part(m, &old, at) : value_fresh(m, 0, ((wide)1 << at) - 1, 64).f;
	f = joined(m, f, low_part(m, v, bits), at);
	f = joined(m, f, value_fresh(m, r.lo >> end, r.hi >> end, 64).f, end);
	*to = (struct value){ f, KIND_NUMBER, 0, (uint8_t)((kept ? old.init : 0) | init), 64 };
}

void register_write(struct machine *m, unsigned reg, unsigned bits, const struct value *v)
{
	struct value *to = &m->s.reg[reg];

	if (bits < 32) {
		register_put(m, reg, 0, bits, v);
		return;
	}
	*to = *v;
	to->bits = v->bits < bits ? v->bits : (uint8_t)bits;
	if (!to->f.v[0])
		value_settle(m, to, 64);
}

/* Bits 15 to 8 of a register. */
static bool read_high(struct machine *m, unsigned reg, struct value *v)
{
	*v = m->s.reg[reg];
	if (v->kind != KIND_NUMBER)
		return machine_readable(m, v, 8);
	if (!(v->init & 2))
		return check_refuse(m, FAY_RULE_MEM_UNINIT,
				    "the second byte of a register is read that was not written");
	*v = value_fresh(m, 0, value_range(m, v, 16, false).hi >> 8, 64);
	return true;
}

bool operand_read(struct machine *m, const struct fay_operand *o, unsigned bits, struct value *v)
{
	struct access a;

	switch (o->kind) {
	case OPERAND_REG: return register_read(m, o->reg, bits, v);
	case OPERAND_HIGH: return read_high(m, o->reg, v);
	case OPERAND_IMM:
		*v = value_number((uint64_t)o->imm);
		v->bits = (uint8_t)bits;
		return true;
	case OPERAND_MEM:
		return machine_locate(m, o, bits / 8, false, 1, &a) && machine_load(m, &a, v) &&
		       machine_readable(m, v, bits);
	default: return check_refuse(m, FAY_RULE_INS_UNSUPPORTED, "an unknown operand");
	}
}

bool operand_number(struct machine *m, const struct fay_operand *o, unsigned bits, struct value *v)
{
	return operand_read(m, o, bits, v) &&
	       (v->kind == KIND_NUMBER ||
		check_refuse(m, FAY_RULE_MEM_POINTER, "a pointer is used as a number"));
}

bool operand_write(struct machine *m, const struct fay_insn *insn, const struct fay_operand *o,
		   unsigned bits, const struct value *v)
{
	struct access a;

	if (o->kind == OPERAND_REG) {
		register_write(m, o->reg, bits, v);
		return true;
	}
	if (o->kind == OPERAND_HIGH) {
		register_put(m, o->reg, 8, 8, v);
		return true;
	}
	/* a locked access that crosses a cache line would stop every core */
	return machine_locate(m, o, bits / 8, true, insn->locked ? bits / 8 : 1, &a) &&
	       machine_store(m, &a, v);
}

/* ---- sums and products ---- */

static struct value sum(struct machine *m, const struct value *a, const struct value *b, int64_t k,
			unsigned bits)
{
	struct form fa = value_word(m, a, bits), fb = value_word(m, b, bits);
	struct value r = { fa, KIND_NUMBER, 0, 0xff, (uint8_t)bits };
	struct range ra, rb;
	bool sign;

	if (form_add(&r.f, &fb, k))
		return r;
	sign = value_range(m, a, bits, false).hi >> (bits - 1) ||
	       value_range(m, b, bits, false).hi >> (bits - 1);
	ra = value_range(m, a, bits, sign);
	rb = value_range(m, b, bits, sign);
	if (k < -8 || k > 8)
		return value_fresh(m, 0, ((wide)1 << bits) - 1, bits);
	return value_fresh(m, ra.lo + k * (k > 0 ? rb.lo : rb.hi),
			   ra.hi + k * (k > 0 ? rb.hi : rb.lo), bits);
}

bool value_add(struct machine *m, const struct value *a, const struct value *b, int64_t k,
	       unsigned bits, struct value *r)
{
	const struct value *t = a;
	struct value v;

	if (a->kind == KIND_NUMBER && b->kind == KIND_NUMBER) {
		*r = sum(m, a, b, k, bits);
		return true;
	}
	if (k == 1 && b->kind == KIND_POINTER) {
		a = b;
		b = t;
	}
	if (bits != 64 || a->kind != KIND_POINTER ||
	    (b->kind != KIND_NUMBER && (b->kind != KIND_POINTER || b->tag != a->tag || k != -1)))
		return check_refuse(m, FAY_RULE_MEM_POINTER,
				    "arithmetic on a pointer other than adding a number");
	v = sum(m, a, b, k, 64);
	if (b->kind == KIND_NUMBER) {
		v.kind = KIND_POINTER;
		v.tag = a->tag;
	}
	*r = v;
	return true;
}

void value_product(struct machine *m, const struct value *a, const struct value *b, unsigned bits,
		   struct value *r)
{
	struct range ra = value_range(m, a, bits, true), rb = value_range(m, b, bits, true);
	wide p[4] = { ra.lo * rb.lo, ra.lo * rb.hi, ra.hi * rb.lo, ra.hi * rb.hi };
	struct range all = { p[0], p[0] };

	if (ra.lo == ra.hi || rb.lo == rb.hi) {
		const struct value *of = ra.lo == ra.hi ? b : a;

		*r = (struct value){ value_word(m, of, bits), KIND_NUMBER, 0, 0xff, (uint8_t)bits };
		form_scale(&r->f, (uint64_t)(ra.lo == ra.hi ? ra.lo : rb.lo));
		return;
	}
	for (unsigned i = 1; i < 4; i++) {
		all.lo = p[i] < all.lo ? p[i] : all.lo;
		all.hi = p[i] > all.hi ? p[i] : all.hi;
	}
	*r = value_fresh(m, all.lo, all.hi, bits);
}
