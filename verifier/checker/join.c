/* SPDX-License-Identifier: MIT */
/*
 * States at nodes that several ways lead to. The first way makes the state: its own, made weaker as
 * the certificate's list says. Each way, the first and every later one, must be included in it:
 * variables that the list introduced stand for what is at their location, and with these every
 * location, range and fact of the node's state must be shown of the state that comes.
 */
#include "walk.h"

static uint32_t location_at(uint64_t location, int64_t *at)
{
	*at = -1 - (int64_t)((location - LOCATION_STACK) >> 2);
	return 1u << ((location - LOCATION_STACK) & 3);
}

struct value *walk_locate(struct state *s, uint64_t location)
{
	int64_t at;
	uint32_t size;
	const struct slot *slot;

	if (location < LOCATION_STACK)
		return &s->reg[location];
	if (location > LOCATION_STACK + 4 * STACK_MOST)
		return NULL;
	size = location_at(location, &at);
	slot = stack_find(s, at, size);
	return slot ? &s->slot[slot - s->slot].v : NULL;
}

bool walk_numeric(const struct value *v)
{
	return v && (v->kind == KIND_NUMBER || v->kind == KIND_POINTER);
}

/* ---- inclusion: w->m has the state that comes, w->other the node's ---- */

bool walk_meaning(struct walk *w, struct meaning *x, const struct var *v)
{
	const struct value *at = walk_locate(&w->m.s, x->location);
	struct range r = { 0, 0 }, known;
	unsigned bits = x->bits;

	x->exact = false;
	if (!v) /* nothing names it */
		return true;
	r = var_range(v);

	/* of a number of more bits it must be known that it has no more */
	if (!walk_numeric(at) || (at->bits > bits && value_range(&w->m, at, 64, false).hi >> bits))
		return false;
	x->raw = at->f;
	x->exact = value_form(&w->m, at, bits, r.lo < 0, &x->whole);
	x->low = at->bits < bits ? at->bits : (uint8_t)bits;
	if (x->k != 1 || x->c) {
		struct form off = form_number(x->c);

		if (!x->exact || !form_plus(&x->whole, &off, -1) || x->whole.c % x->k ||
		    x->whole.k[0] % x->k || x->whole.k[1] % x->k)
			return x->exact = false;
		x->whole.c /= x->k;
		x->whole.k[0] /= x->k;
		x->whole.k[1] /= x->k;
	}
	known = x->exact ? form_range(&w->m, &x->whole) : value_range(&w->m, at, bits, r.lo < 0);
	return known.lo >= r.lo && known.hi <= r.hi;
}

/* f of the node's state in terms of the state that comes, modulo 2^bits. */
static bool translate(const struct meaning *meanings, uint32_t count, struct form *f, unsigned bits,
		      bool exact)
{
	struct form r = form_number(f->c);

	for (unsigned i = 0; i < 2 && f->v[i]; i++) {
		struct form term = { .k[0] = 1, .v[0] = f->v[i] };

		for (uint32_t j = 0; j < count; j++) {
			const struct meaning *x = &meanings[j];

			if (x->id != f->v[i])
				continue;
			if (!x->exact && (exact || x->low < bits))
				return false;
			term = x->exact ? x->whole : x->raw;
			break;
		}
		if (!(exact ? form_plus : form_add)(&r, &term, f->k[i]))
			return false;
	}
	*f = r;
	return true;
}

/* Whether the value is nothing but the variable that stands for what is at this location. */
static bool defined(const struct meaning *x, uint32_t n, uint64_t location,
		    const struct value *want)
{
	for (uint32_t i = 0; i < n; i++)
		if (x[i].location == location)
			return want->bits == x[i].bits && want->f.v[0] == x[i].id &&
			       !want->f.v[1] && want->f.k[0] == x[i].k && want->f.c == x[i].c;
	return false;
}

bool walk_same(struct walk *w, const struct meaning *meanings, uint32_t count, uint64_t location,
	       const struct value *have, const struct value *want)
{
	struct value apart = { .kind = KIND_NUMBER, .bits = want->bits };
	struct form f = want->f;
	struct range r;

	if (value_unknown(want))
		return true;
	if (!have || have->kind != want->kind || have->tag != want->tag)
		return false;
	if (!walk_numeric(want))
		return want->kind != KIND_RETURN || have->f.c == want->f.c;
	if ((have->init & want->init) != want->init)
		return false;
	if (defined(meanings, count, location, want))
		return true;
	if (!translate(meanings, count, &f, want->bits, false))
		return false;
	apart.f = have->f;
	if (have->bits != want->bits) {
		if (!value_form(&w->m, have, 64, false, &apart.f))
			return false;
		r = form_range(&w->m, &f);
		if (r.lo < 0 || r.hi >> want->bits)
			return false;
		apart.bits = 64;
	}
	if (!form_add(&apart.f, &f, -1))
		return false;
	r = value_range(&w->m, &apart, apart.bits, false);
	return r.lo == 0 && r.hi == 0;
}

static uint64_t location_of(const struct slot *slot)
{
	return LOCATION_STACK + 4 * (uint64_t)(-1 - slot->at) + (uint64_t)__builtin_ctz(slot->size);
}

/* As mostly: all the same, and no variable is of those from `made` on. */
static inline bool alike(uint32_t made, const struct value *have, const struct value *want)
{
	return form_equal(&have->f, &want->f) && have->kind == want->kind &&
	       have->tag == want->tag && have->bits == want->bits && !(want->init & ~have->init) &&
	       want->f.v[0] < made && want->f.v[1] < made;
}

static bool includes_values(struct walk *w, const struct meaning *x, uint32_t n)
{
	struct state *s = &w->m.s, *t = &w->t.s;
	const struct slot *have = s->slot, *end = have + s->slots;
	uint32_t made = n ? x[0].id : UINT32_MAX;

	for (uint32_t i = 0; i < 16; i++)
		if ((!alike(made, &s->reg[i], &t->reg[i]) &&
		     !walk_same(w, x, n, i, &s->reg[i], &t->reg[i])) ||
		    t->vector[i] & ~s->vector[i])
			return false;
	for (const struct slot *want = t->slot; want < t->slot + t->slots; want++) {
		while (have < end && have->at < want->at) /* both are in order */
			have++;
		bool there = have < end && have->at == want->at && have->size == want->size;

		if ((!there || !alike(made, &have->v, &want->v)) &&
		    !walk_same(w, x, n, location_of(want), there ? &have->v : NULL, &want->v))
			return false;
	}
	for (int32_t i = 0; i < (t->depth + 7) / 8; i++)
		if (t->written[i] & ~s->written[i])
			return false;
	return true;
}

static bool includes_fill(struct walk *w, const struct fill *fill, const struct form *end)
{
	struct range r = form_range(&w->m, end);
	int64_t from = fill->down ? -w->m.s.depth : fill->fixed;

	for (unsigned i = 0; i < w->m.s.fills; i++)
		if (w->m.s.fill[i].fixed == fill->fixed && w->m.s.fill[i].down == fill->down &&
		    form_equal(&w->m.s.fill[i].end, end))
			return true;
	if (fill->down ? r.lo >= fill->fixed : r.hi <= from)
		return true;
	if (r.lo < -w->m.s.depth || r.hi > 0 || from < -w->m.s.depth)
		return false;
	return fill->down ? stack_all_written(&w->m.s, (int64_t)r.lo, fill->fixed)
			  : stack_all_written(&w->m.s, from, (int64_t)r.hi);
}

bool walk_includes(struct walk *w, struct meaning *x, uint32_t n)
{
	struct state *s = &w->m.s, *t = &w->t.s;
	const struct var *have = s->var, *end = have + s->vars;

	if (t->depth != s->depth || (s->flags.undefined & ~t->flags.undefined))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!walk_meaning(w, &x[i], var_find(t, x[i].id)))
			return false;
	for (unsigned i = 0; i < t->vars; i++) {
		struct range want = var_range(&t->var[i]), r;

		if (n && t->var[i].id >= x[0].id) /* of those that the list made, the newest */
			break;
		while (have < end && have->id < t->var[i].id) /* both are in order */
			have++;
		if (have == end || have->id != t->var[i].id)
			return false;
		if (!memcmp(have, &t->var[i], sizeof(*have)))
			continue;
		r = var_range(have);
		if (r.lo < want.lo || r.hi > want.hi)
			return false;
	}
	if (!includes_values(w, x, n))
		return false;
	for (unsigned i = 0; i < t->facts; i++) {
		struct form f = t->fact[i].f;
		struct range r;

		if (!translate(x, n, &f, 64, true))
			return false;
		r = form_range(&w->m, &f);
		if (r.lo < t->fact[i].lo || r.hi > t->fact[i].hi)
			return false;
	}
	for (unsigned i = 0; i < t->fills; i++) {
		struct form to = t->fill[i].end;

		if (!translate(x, n, &to, 64, true) || !includes_fill(w, &t->fill[i], &to))
			return false;
	}
	return true;
}
