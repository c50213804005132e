/* SPDX-License-Identifier: MIT */
/* Forms of variables, and values of forms. */
#include "form.h"

bool check_refuse(struct machine *m, enum fay_rule rule, const char *what)
{
	if (m->refusal.rule == FAY_RULE_NONE)
		m->refusal = (struct check_refusal){ rule, 0, what };
	return false;
}

/* ---- variables ---- */

struct var *var_find(struct state *s, uint32_t id)
{
	struct var *v = s->var;

	/* in the next n, if at all; no branch for the processor to guess */
	for (unsigned n = s->vars; n > 1; n -= n / 2)
		v = v[n / 2].id <= id ? v + n / 2 : v;
	return s->vars && v->id == id ? v : NULL;
}

struct var *var_pinned(struct state *s, uint64_t pin, uint64_t which)
{
	for (unsigned i = 0; i < s->vars; i++)
		if (s->var[i].pin && s->var[i].pin == pin && !which--)
			return &s->var[i];
	return NULL;
}

void var_set(struct var *v, wide lo, wide hi)
{
	v->negative = lo < 0;
	v->lo = (uint64_t)lo;
	v->hi = (uint64_t)hi;
}

struct value value_fresh(struct machine *m, wide lo, wide hi, unsigned bits)
{
	struct value v = { .kind = KIND_NUMBER, .init = 0xff, .bits = (uint8_t)bits };
	struct state *s = &m->s;

	if (lo > hi)
		hi = lo;
	if (lo == hi && lo >= INT64_MIN && hi <= INT64_MAX) {
		v.f.c = (int64_t)lo;
		return v;
	}
	if (s->vars == VARS || m->shared->next_id == UINT32_MAX) {
		check_refuse(m, FAY_RULE_LIM_RESOURCE, "too many variables at once");
		return value_number(0);
	}
	if (lo < INT64_MIN || hi > UINT64_MAX || (lo < 0 && hi > INT64_MAX)) {
		lo = 0; /* any number of so many bits, as it is read unsigned */
		hi = POWER(bits) - 1;
	}
	s->var[s->vars] = (struct var){ .id = ++m->shared->next_id };
	var_set(&s->var[s->vars++], lo, hi);
	v.f.v[0] = m->shared->next_id;
	v.f.k[0] = 1;
	return v;
}

static void mark(struct state *s, const struct form *f, uint8_t *used)
{
	for (unsigned i = 0; i < 2; i++) {
		struct var *v = f->v[i] ? var_find(s, f->v[i]) : NULL;

		if (v)
			used[v - s->var] = 1;
	}
}

static bool marked(struct state *s, const struct form *f, const uint8_t *used)
{
	struct var *a = var_find(s, f->v[0]), *b = var_find(s, f->v[1]);

	return a && b && (used[a - s->var] || a->pin) && (used[b - s->var] || b->pin);
}

/* What definitions, which end with the node, tell of sums of two variables becomes facts. */
static void keep_defined(struct machine *m)
{
	uint32_t defs = m->defs;

	for (unsigned i = 0; i < 16 && defs; i++) {
		struct form f = m->s.reg[i].f;
		struct range known, plain;

		if (!f.v[1])
			continue;
		form_reduce(&f, m->s.reg[i].bits);
		known = form_range(m, &f);
		m->defs = 0;
		plain = form_range(m, &f);
		m->defs = defs;
		if (known.lo > plain.lo || known.hi < plain.hi)
			form_fact(m, &f, known.lo - f.c, known.hi - f.c);
	}
}

void check_collect(struct machine *m)
{
	struct state *s = &m->s;
	uint8_t used[VARS];
	unsigned kept = 0;

	memset(used, 0, s->vars);
	keep_defined(m);
	for (unsigned i = 0; i < 16; i++)
		mark(s, &s->reg[i].f, used);
	mark(s, &s->flags.a.f, used);
	mark(s, &s->flags.b.f, used);
	for (unsigned i = 0; i < s->slots; i++)
		mark(s, &s->slot[i].v.f, used);
	for (unsigned i = 0; i < s->fills; i++)
		mark(s, &s->fill[i].end, used);
	for (unsigned i = 0; i < m->defs; i++)
		mark(s, &m->def[i].f, used);
	for (unsigned i = 0; i < s->facts; i++)
		if (marked(s, &s->fact[i].f, used))
			s->fact[kept++] = s->fact[i];
	s->facts = (uint16_t)kept;
	kept = 0;
	for (unsigned i = 0; i < s->vars; i++)
		if ((used[i] || s->var[i].pin) && kept++ != i)
			s->var[kept - 1] = s->var[i];
	s->vars = (uint16_t)kept;
}

/* ---- forms ---- */

/* *r = a + b * k. False: it wraps. */
static bool plus(int64_t a, int64_t b, int64_t k, int64_t *r)
{
	int64_t product = (int64_t)((uint64_t)b * (uint64_t)k);

	*r = (int64_t)((uint64_t)a + (uint64_t)product);
	return (wide)b * k == product && (wide)a + product == *r;
}

/* *wraps: some number of the sum is right only modulo 2^64. */
static bool merge(struct form *f, const struct form *g, int64_t k, bool *wraps)
{
	struct form sum = *f;
	unsigned i = 0, j = 0, n = 0;

	*wraps = !plus(f->c, g->c, k, &sum.c);
	if (!g->v[0]) {
		*f = sum;
		return true;
	}
	sum = form_number(sum.c);
	/* both lists are in order of ids; 0 ends one */
	while ((i < 2 && f->v[i]) || (j < 2 && g->v[j])) {
		uint32_t a = i < 2 && f->v[i] ? f->v[i] : UINT32_MAX;
		uint32_t b = j < 2 && g->v[j] ? g->v[j] : UINT32_MAX;
		int64_t by;

		*wraps |= !plus(a <= b ? f->k[i] : 0, b <= a ? g->k[j] : 0, k, &by);
		i += a <= b;
		j += b <= a;
		if (!by)
			continue;
		if (n == 2)
			return false;
		sum.v[n] = a < b ? a : b;
		sum.k[n++] = by;
	}
	*f = sum;
	return true;
}

bool form_add(struct form *f, const struct form *g, int64_t k)
{
	bool wraps;

	return merge(f, g, k, &wraps);
}

bool form_plus(struct form *f, const struct form *g, int64_t k)
{
	bool wraps;

	return merge(f, g, k, &wraps) && !wraps;
}

void form_scale(struct form *f, uint64_t by)
{
	struct form zero = form_number(0);

	form_add(&zero, f, (int64_t)by);
	*f = zero;
}

/* ---- values ---- */

static int64_t low_bits(int64_t n, unsigned bits)
{
	return bits == 64 ? n : (int64_t)((uint64_t)n << (64 - bits)) >> (64 - bits);
}

void form_reduce(struct form *f, unsigned bits)
{
	struct form g = { .c = low_bits(f->c, bits) };
	unsigned n = 0;

	for (unsigned i = 0; i < 2 && f->v[i]; i++) {
		g.v[n] = f->v[i];
		g.k[n] = low_bits(f->k[i], bits);
		if (g.k[n])
			n++;
		else
			g.v[n] = 0;
	}
	*f = g;
}

struct range value_read(struct machine *m, const struct value *v, unsigned bits, bool sign,
			struct form *f, wide *shift, bool *exact)
{
	unsigned b = v->bits < bits ? v->bits : bits;
	wide base = sign && b == bits ? -POWER(b - 1) : 0, window;
	struct range r;

	*f = v->f;
	if (b < 64)
		form_reduce(f, b);
	r = form_range(m, f);
	if (r.lo >= base && r.hi < base + POWER(b)) { /* as mostly */
		*exact = true;
		*shift = 0;
		return r;
	}
	window = (r.lo - base) >> b;
	*exact = (r.hi - base) >> b == window && r.lo > -POWER(100) && r.hi < POWER(100);
	*shift = *exact ? -window * POWER(b) : 0;
	if (!*exact)
		return (struct range){ base, base + POWER(b) - 1 };
	return (struct range){ r.lo + *shift, r.hi + *shift };
}

bool value_form(struct machine *m, const struct value *v, unsigned bits, bool sign, struct form *f)
{
	bool exact;
	wide shift;

	value_read(m, v, bits, sign, f, &shift, &exact);
	if (!exact || f->c + shift < INT64_MIN || f->c + shift > INT64_MAX)
		return false;
	f->c = (int64_t)(f->c + shift);
	return true;
}

bool value_congruent(struct machine *m, const struct value *v, unsigned bits, struct form *f)
{
	*f = v->f;
	return v->bits >= bits || value_form(m, v, bits, false, f);
}

struct range value_range(struct machine *m, const struct value *v, unsigned bits, bool sign)
{
	struct form f;
	bool exact;
	wide shift;

	return value_read(m, v, bits, sign, &f, &shift, &exact);
}

void check_define(struct machine *m, const struct value *v, struct def def)
{
	if (v->f.c || v->f.k[0] != 1 || v->f.v[1])
		return;
	def.id = v->f.v[0];
	m->def[m->defs < DEFS ? m->defs++ : m->turn++ % DEFS] = def;
}

const struct def *check_definition(const struct machine *m, const struct form *f,
				   enum def_kind kind)
{
	for (unsigned i = m->defs; i-- > 0;)
		if (m->def[i].kind == kind && f->v[0] == m->def[i].id && f->k[0] == 1 && !f->v[1] &&
		    !f->c)
			return &m->def[i];
	return NULL;
}
