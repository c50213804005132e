/* SPDX-License-Identifier: MIT */
/* Whether the checker's state describes the interpreter's machine: see watch.h. */
#include "watch.h"

#include <stdio.h>

#include "verifier/checker/machine/machine.h"

struct watch watch;
static struct machine *const m = &watch.walk.m;

bool watch_bad(const char *what, uint64_t a, uint64_t b)
{
	if (!*watch.wrong)
		snprintf(watch.wrong, sizeof(watch.wrong), "%s (%#llx, %#llx)", what,
			 (unsigned long long)a, (unsigned long long)b);
	return false;
}

bool watch_within(struct range r, wide n)
{
	return r.lo <= n && n <= r.hi;
}

/* The variable's integer, as it is read now. */
wide watch_integer(const struct var *v)
{
	uint64_t n = watch.variable[v->id].number;

	return v->negative ? (wide)(int64_t)n : (wide)n;
}

static bool settle(struct var *v, uint64_t n)
{
	if (watch.variable[v->id].known && watch.variable[v->id].number != n)
		return watch_bad("a variable is two numbers", n, watch.variable[v->id].number);
	if (!watch.variable[v->id].known)
		watch.seen.variables++;
	watch.variable[v->id].known = true;
	watch.variable[v->id].number = n;
	if (!watch_within(var_range(v), watch_integer(v)))
		return watch_bad("a variable is out of its range", n, v->lo);
	return true;
}

/* form = number modulo 2^bits: what that tells of a variable that is not known. */
static bool equation(const struct form *f, unsigned bits, uint64_t number)
{
	uint64_t mask = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1, k = 0, inverse;
	struct var *open = NULL;
	struct range r;
	wide n;

	number -= (uint64_t)f->c;
	for (unsigned i = 0; i < 2 && f->v[i]; i++) {
		struct var *v = var_find(&m->s, f->v[i]);

		if (!v || f->v[i] >= WATCH_IDS)
			return true;
		if (watch.variable[f->v[i]].known) {
			number -= (uint64_t)f->k[i] * watch.variable[f->v[i]].number;
		} else if (open) {
			return true;
		} else {
			open = v;
			k = (uint64_t)f->k[i];
		}
	}
	number &= mask;
	if (!open)
		return !number || watch_bad("a form is another number", number, bits);
	if (!(k & 1))
		return number & ((k & -k) - 1) ? watch_bad("a form is no such multiple", number, k)
					       : true;
	inverse = k;
	for (unsigned i = 0; i < 6; i++)
		inverse *= 2 - k * inverse;
	number = number * inverse & mask;
	r = var_range(open);
	n = (wide)number + ((r.lo - (wide)number + mask) >> bits) * POWER(bits);
	if (n > r.hi || n < r.lo)
		return watch_bad("no number of a variable's range fits", number, (uint64_t)r.lo);
	if (n + POWER(bits) <= r.hi)
		return true; /* or another */
	return settle(open, (uint64_t)n);
}

static bool value_holds(const struct value *v, uint64_t number, unsigned bits)
{
	int64_t as_signed = (int64_t)(number << (64 - bits)) >> (64 - bits);

	if (v->kind == KIND_POINTER)
		number -= WATCH_BASE(v->tag);
	else if (v->kind != KIND_NUMBER)
		return true;
	if (v->kind == KIND_NUMBER && (!watch_within(value_range(m, v, bits, false), number) ||
				       !watch_within(value_range(m, v, bits, true), as_signed)))
		return watch_bad("a number is out of its range", number, bits);
	if (v->bits < bits && number >> v->bits)
		return watch_bad("a number has more bits than its value", number, v->bits);
	return equation(&v->f, v->bits < bits ? v->bits : bits, number);
}

static bool evaluate(const struct form *f, wide *n)
{
	*n = f->c;
	for (unsigned i = 0; i < 2 && f->v[i]; i++) {
		struct var *v = var_find(&m->s, f->v[i]);

		if (!v || f->v[i] >= WATCH_IDS || !watch.variable[f->v[i]].known)
			return false;
		*n += (wide)f->k[i] * watch_integer(v);
	}
	return true;
}

/* Of all variables that are known, also of those that nothing names now. */
static bool ranges_hold(void)
{
	for (unsigned i = 0; i < m->s.vars; i++) {
		const struct var *v = &m->s.var[i];

		if (v->id < WATCH_IDS && watch.variable[v->id].known &&
		    !watch_within(var_range(v), watch_integer(v)))
			return watch_bad("a variable is no more in its range",
					 watch.variable[v->id].number, v->lo);
	}
	return true;
}

static bool facts_hold(void)
{
	for (unsigned i = 0; i < m->s.facts; i++) {
		const struct fact *fact = &m->s.fact[i];
		wide n;

		if (!evaluate(&fact->f, &n))
			continue;
		watch.seen.facts++;
		if ((fact->lo != INT64_MIN && n < fact->lo) ||
		    (fact->hi != INT64_MAX && n > fact->hi))
			return watch_bad("a fact is none", (uint64_t)n, (uint64_t)fact->lo);
	}
	return true;
}

static bool defs_hold(void)
{
	for (unsigned i = 0; i < m->defs; i++) {
		const struct def *d = &m->def[i];
		struct form is = { .k[0] = 1, .v[0] = d->id };
		wide n, q, rest = POWER(d->shift) - 1;

		if (!evaluate(&is, &q))
			continue;
		if (d->kind == DEF_ONES && (d->factor & ~(uint64_t)q))
			return watch_bad("bits are not set", d->factor, (uint64_t)q);
		if (d->kind == DEF_ONES || d->kind == DEF_TABLE || !evaluate(&d->f, &n))
			continue;
		watch.seen.defs++;
		if (d->kind == DEF_PART && ((uint64_t)q & ~(uint64_t)n))
			return watch_bad("a part is none", (uint64_t)q, (uint64_t)n);
		if (d->kind == DEF_SIGN && q != -(wide)((uint64_t)n >> (d->shift - 1) & 1))
			return watch_bad("a sign is none", (uint64_t)q, (uint64_t)n);
		if (d->kind == DEF_FLOOR && n < POWER(63) && n > -POWER(63)) {
			n = (wide)d->factor * n - q * POWER(d->shift);
			if (n < 0 || n > rest)
				return watch_bad("a quotient is none", (uint64_t)q, (uint64_t)n);
		}
	}
	return true;
}

bool watch_state(void)
{
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned r = 0; r < 16; r++) {
			const struct value *v = &m->s.reg[r];

			if (v->kind == KIND_SAVED && watch.cpu.gpr[r] != watch.initial[v->tag])
				return watch_bad("a register is not the saved one", r, v->tag);
			if (!value_holds(v, watch.cpu.gpr[r], 64))
				return false;
		}
		for (unsigned i = 0; i < m->s.slots; i++) {
			const struct slot *slot = &m->s.slot[i];
			uint64_t n = 0;

			memcpy(&n,
			       slot->at < 0 ? watch.stack + sizeof(watch.stack) - 64 + slot->at
					    : watch.event + slot->at,
			       slot->size);
			if (!value_holds(&slot->v, n, 8u * slot->size))
				return false;
		}
	}
	return ranges_hold() && facts_hold() && defs_hold();
}

bool watch_condition(unsigned cc)
{
	bool c = watch.cpu.flags & FLAG_CF, z = watch.cpu.flags & FLAG_ZF,
	     s = watch.cpu.flags & FLAG_SF, o = watch.cpu.flags & FLAG_OF,
	     p = watch.cpu.flags & FLAG_PF;
	bool holds[] = { o, c, z, c || z, s, p, s != o, z || s != o };

	return holds[cc / 2] != (cc & 1);
}

/* Each condition that holds may hold, and what is learned of it is so. */
bool watch_conditions(void)
{
	bool ok = true;

	if (watch.cpu.flags_undefined & ~m->s.flags.undefined)
		return watch_bad("a flag is not defined", watch.cpu.flags_undefined,
				 m->s.flags.undefined);
	for (unsigned cc = 0; ok && cc < 16; cc++) {
		if (fay_cc_flags((enum fay_cc)cc) & m->s.flags.undefined || !watch_condition(cc))
			continue;
		watch.seen.conditions++;
		assume_begin(m);
		ok = flags_assume(m, cc) ? watch_state()
					 : watch_bad("a condition may not hold", cc, 0);
		assume_undo(m);
	}
	return ok;
}
