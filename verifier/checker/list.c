/* SPDX-License-Identifier: MIT */
/*
 * A join's list: what its node's state says less than that of the first way. It may say anything:
 * nothing of a list is believed, for each way is checked to be included in the state (join.c).
 */
#include "verifier/checker/machine/form.h"
#include "walk.h"

static bool bad_list(struct walk *w, const char *what)
{
	return walk_refuse(w, FAY_RULE_CRT_JOIN, w->certificate.at, what);
}

/* [lo, hi] as it is written: words, signed or not. False: it is none. */
static bool range_at(const uint64_t n[2], wide *lo, wide *hi)
{
	*lo = as_signed(n[0]);
	*hi = *lo + n[1];
	return *hi <= UINT64_MAX && (*lo >= 0 || *hi <= INT64_MAX);
}

/* The variable that an entry introduces. */
static struct meaning introduced(const struct entry *e)
{
	struct meaning x = { .location = (uint32_t)e->location, .bits = 64, .k = 1 };

	if (e->kind == JOIN_NUMBER) {
		x.bits = e->n[0] <= 64 ? (uint8_t)e->n[0] : 0;
	} else {
		x.k = e->n[0] <= INT64_MAX ? (int64_t)e->n[0] : 0;
		x.c = as_signed(e->n[1]);
	}
	return x;
}

/* A variable for the number at a location, or for what a multiple there is a multiple of. */
static bool apply_number(struct walk *w, struct value *v, const struct entry *e, struct meaning *x)
{
	struct value fresh;
	wide lo, hi;
	bool ok = range_at(&e->n[e->kind == JOIN_NUMBER ? 1 : 2], &lo, &hi);

	*x = introduced(e);
	if (!ok || !x->k || !walk_numeric(v) || !x->bits ||
	    (v->kind == KIND_POINTER && x->bits != 64) || lo == hi)
		return bad_list(w, "a join's variable is none");
	fresh = value_fresh(&w->t, lo, hi, x->bits);
	if (w->t.refusal.rule != FAY_RULE_NONE)
		return false;
	v->f = form_number(x->c);
	form_add(&v->f, &fresh.f, x->k);
	v->bits = x->bits;
	x->id = fresh.f.v[0];
	return true;
}

static bool apply_form(struct walk *w, struct value *v, const struct entry *e,
		       const struct meaning *x, uint32_t n)
{
	uint64_t bits = e->n[0], terms = e->n[2];
	struct form f = form_number(as_signed(e->n[1]));

	if (!walk_numeric(v) || bits < 1 || bits > 64 || (v->kind == KIND_POINTER && bits != 64) ||
	    terms > 2)
		return bad_list(w, "a join's form is none");
	for (uint64_t i = 0; i < terms; i++) {
		uint64_t j = e->n[3 + 2 * i];
		const struct var *size =
			j - JOIN_MOST < FAY_INTERFACE_REGIONS
				? var_pinned(&w->t.s, PIN_SIZES + (j - JOIN_MOST), 0)
				: NULL;
		struct form term = { .k[0] = 1, .v[0] = j < n ? x[j].id : size ? size->id : 0 };

		if (!term.v[0] || !form_add(&f, &term, as_signed(e->n[4 + 2 * i])))
			return bad_list(w, "a join's form names no variable of its own");
	}
	v->f = f;
	v->bits = (uint8_t)bits;
	return true;
}

const struct value *walk_number_at(struct state *s, uint32_t node, uint64_t location,
				   struct value *own)
{
	const struct var *v;

	if (location < LOCATION_SIZES)
		return walk_locate(s, location);
	v = location < LOCATION_COUNTS
		    ? var_pinned(s, PIN_SIZES + (location - LOCATION_SIZES), 0)
		    : var_pinned(s, node + 1 - ((location - LOCATION_COUNTS) >> 8), location & 255);
	if (!v)
		return NULL;
	*own = (struct value){ { .k[0] = 1, .v[0] = v->id }, KIND_NUMBER, 0, 0xff, 64 };
	return own;
}

static bool apply_range(struct walk *w, uint32_t to, const struct entry *e)
{
	struct value own;
	const struct value *v = walk_number_at(&w->t.s, to, e->location, &own);
	struct var *var = walk_numeric(v) && !v->f.v[1] ? var_find(&w->t.s, v->f.v[0]) : NULL;
	wide lo, hi;

	if (!range_at(e->n, &lo, &hi) || !var)
		return bad_list(w, "a join's range is none");
	var_set(var, lo, hi);
	return true;
}

static bool apply_fact(struct walk *w, uint32_t to, const struct value *a, const struct entry *e)
{
	struct value own;
	const struct value *b = walk_number_at(&w->t.s, to, e->n[0], &own);
	wide lo = as_signed(e->n[3]), hi = lo + e->n[4];
	struct form f = form_number(0);

	if (!walk_numeric(a) || !walk_numeric(b) || !form_add(&f, &a->f, as_signed(e->n[1])) ||
	    !form_add(&f, &b->f, as_signed(e->n[2])))
		return bad_list(w, "a join's fact is none");
	if (f.v[1])
		form_fact(&w->t, &f, lo - f.c, hi - f.c);
	return true;
}

static bool apply_fill(struct walk *w, const struct value *v, const struct entry *e)
{
	int64_t fixed = as_signed(e->n[1]), k = as_signed(e->n[2]);
	struct fill fill = { form_number(as_signed(e->n[3])), (int32_t)fixed, e->n[0] != 0 };
	struct state *s = &w->t.s;

	if (!walk_numeric(v) || fixed < -s->depth || fixed > 0 || s->fills == FILLS ||
	    !form_add(&fill.end, &v->f, k))
		return bad_list(w, "a join's range of the stack is none");
	s->fill[s->fills++] = fill;
	return true;
}

static bool apply_entry(struct walk *w, uint32_t to, const struct entry *e, struct meaning *x,
			uint32_t *n)
{
	struct state *s = &w->t.s;
	bool placed = e->kind == JOIN_BYTES ||
		      (e->kind <= JOIN_FILL && e->kind != JOIN_REGISTERS && e->kind != JOIN_RANGE);
	struct value *v = placed ? walk_locate(s, e->location) : NULL;
	int64_t low = -(int64_t)(e->location & 0xffff);

	if (placed && !v)
		return bad_list(w, "nothing is at a join's location");
	switch (e->kind) {
	case JOIN_FORGET: *v = value_nothing(); return true;
	case JOIN_REGISTERS:
		for (unsigned k = 0; k < 16; k++)
			if (e->location >> k & 1)
				s->reg[k] = value_nothing();
		return true;
	case JOIN_NUMBER:
	case JOIN_MULTIPLE:
		if (*n == JOIN_MOST)
			return bad_list(w, "too many variables of a join");
		return apply_number(w, v, e, &x[(*n)++]);
	case JOIN_FORM: return apply_form(w, v, e, x, *n);
	case JOIN_RANGE: return apply_range(w, to, e);
	case JOIN_FACT: return apply_fact(w, to, v, e);
	case JOIN_FILL: return apply_fill(w, v, e);
	case JOIN_UNDEFINED: s->flags.undefined |= e->location & FLAG_ALL; return true;
	case JOIN_BYTES: v->init &= (uint8_t)e->n[0]; return true;
	case JOIN_VECTOR: s->vector[e->location & 15] &= (uint32_t)e->n[0]; return true;
	default: /* JOIN_UNWRITTEN */
		if (e->location > (uint64_t)s->depth || e->n[0] > e->location)
			return bad_list(w, "a join's bytes are not on the stack");
		stack_mark(s, low, low + (int64_t)e->n[0], false);
		return true;
	}
}

/* Changes the state that is made; or, of one that was `made`, says again which variables it has. */
static bool apply(struct walk *w, uint32_t to, bool made, struct meaning *x, uint32_t *n)
{
	struct reader *r = &w->certificate;
	const struct node *node = &w->nodes[to];
	uint64_t entries;
	struct entry e;

	*n = 0;
	r->at = node->list;
	entries = read_number(r);
	for (uint64_t i = 0; i < entries && !(made && *n == node->variables); i++) {
		walk_entry(r, &e);
		if (!made && !apply_entry(w, to, &e, x, n))
			return false;
		if (made && (e.kind == JOIN_NUMBER || e.kind == JOIN_MULTIPLE)) {
			x[*n] = introduced(&e);
			x[*n].id = node->first + *n;
			++*n;
		}
	}
	return !r->bad || bad_list(w, "a join's list is cut off");
}

/* ---- entering ---- */

/*
 * What the head counts by: one of its variables, or the difference of two. `now`: what it is in the
 * state that comes, `was`: at the head, in the same terms.
 */
static bool find_measure(const struct node *head, const struct meaning *x, uint32_t n,
			 struct form *was, struct form *now)
{
	uint32_t i = (head->measure - 1u) % JOIN_MOST, j = (head->measure - 1u) / JOIN_MOST;
	struct form minus = { .k[0] = 1, .v[0] = j && j <= n ? x[j - 1].id : 0 };

	if (!head->measure || i >= n || j > n || !x[i].exact || (j && !x[j - 1].exact))
		return false;
	*was = (struct form){ .k[0] = 1, .v[0] = x[i].id };
	*now = x[i].whole;
	return !j || (form_plus(was, &minus, -1) && form_plus(now, &x[j - 1].whole, -1));
}

/* Whether `now` is `was` with some of its bits cleared. */
static bool is_part(const struct machine *m, const struct form *now, const struct form *was)
{
	for (unsigned i = 0; i < m->defs; i++)
		if (m->def[i].kind == DEF_PART && now->v[0] == m->def[i].id && !now->v[1] &&
		    now->k[0] == 1 && !now->c && form_equal(&m->def[i].f, was))
			return true;
	return false;
}

/*
 * How the head's measure moved along an edge back, by what it is bounded:
 *
 *	it is at least 1 still, and at most half of what it was: by the logarithm of its greatest
 *	it has lost a bit and got none:                          by 64
 *	it moved by some number up, or down, each time:          by its range over that
 *
 * The same of the three along all edges back.
 */
bool walk_count(struct walk *w, struct node *head, const struct meaning *x, uint32_t n)
{
	struct form was, now, moved, twice;
	struct range all, step = { 0, 0 }, half = { 0, 1 };
	uint64_t rounds = 2;
	unsigned way;

	if (!find_measure(head, x, n, &was, &now))
		return walk_refuse(w, FAY_RULE_TRM_LOOP, head->address, "a loop without a measure");
	all = form_range(&w->t, &was);
	moved = twice = now;
	if (all.hi - all.lo > UINT64_MAX || !form_plus(&moved, &was, -1))
		return walk_refuse(w, FAY_RULE_TRM_LOOP, head->address,
				   "it is not known how a loop's measure moves");
	step = form_range(&w->m, &moved);
	if (form_plus(&twice, &now, 1) && form_plus(&twice, &was, -1))
		half = form_range(&w->m, &twice);
	if (half.hi <= 0 && form_range(&w->m, &now).lo >= 1) {
		way = NODE_HALVES;
		while (rounds < 66 && all.hi >> (rounds - 1) > 0)
			rounds++;
	} else if (step.hi < 0 && is_part(&w->m, &now, &was)) {
		way = NODE_BITS;
		rounds = 65;
	} else {
		way = step.lo > 0 ? NODE_UP : step.hi < 0 ? NODE_DOWN : 0;
		step.lo = way == NODE_DOWN ? -step.hi : step.lo;
		rounds = !way || step.lo > UINT64_MAX
				 ? 0
				 : (uint64_t)(all.hi - all.lo) / (uint64_t)step.lo;
		rounds += rounds != UINT64_MAX;
	}
	if (!way || (head->flags & NODE_WAYS && (head->flags & NODE_WAYS) != way))
		return walk_refuse(w, FAY_RULE_TRM_LOOP, head->address,
				   "a loop's measure may stay, or moves in several ways");
	head->flags |= (uint8_t)way;
	head->bound = rounds > head->bound ? rounds : head->bound;
	return true;
}

/* Variables that count loops which node `to` lies outside of are like others there. */
static void unpin(const struct walk *w, struct state *s, uint32_t to)
{
	for (unsigned i = 0; i < s->vars; i++) {
		uint32_t pin = s->var[i].pin;

		if (pin && pin < PIN_SIZES &&
		    (to < pin - 1 || to >= pin - 1 + w->nodes[pin - 1].body))
			s->var[i].pin = 0;
	}
}

void walk_load(struct walk *w, uint32_t node)
{
	w->m.defs = 0;
	if (w->nodes[node].state != NODE_IN_HAND)
		walk_fetch(w, node, &w->m.s);
	unpin(w, &w->m.s, node);
}

static void copy(struct state *to, const struct state *from)
{
	memcpy(to, from, offsetof(struct state, written));
	memcpy(to->written, from->written, ((uint32_t)from->depth + 7) / 8);
	memcpy(to->fact, from->fact, from->facts * sizeof(from->fact[0]));
	memcpy(to->fill, from->fill, from->fills * sizeof(from->fill[0]));
	memcpy(to->slot, from->slot, from->slots * sizeof(from->slot[0]));
	memcpy(to->var, from->var, from->vars * sizeof(from->var[0]));
}

bool walk_make(struct walk *w, uint32_t to, struct meaning *x, uint32_t *n)
{
	struct node *node = &w->nodes[to];
	struct state *t = &w->t.s;

	copy(t, &w->m.s);
	t->flags.covered = 0;
	t->flags.a = t->flags.b = value_nothing();
	t->facts = t->fills = 0;
	while (t->slots && t->slot[t->slots - 1].at >= 0)
		t->slots--; /* of region 0 */
	unpin(w, t, to);
	if (!apply(w, to, false, x, n))
		return false;
	node->first = *n ? x[0].id : 0;
	node->variables = (uint16_t)*n;
	for (uint32_t i = 0; i < *n; i++)
		if (node->measure && (i == (node->measure - 1u) % JOIN_MOST ||
				      i + 1 == (node->measure - 1u) / JOIN_MOST))
			var_find(t, x[i].id)->pin = to + 1;
	check_collect(&w->t);
	return true;
}

bool walk_enter(struct walk *w, uint32_t to, bool back)
{
	struct node *node = &w->nodes[to];
	struct meaning *x = w->meanings;
	bool first = !node->state;
	uint32_t n = 0;

	if (!(node->flags & (NODE_JOIN | NODE_HEAD))) {
		if (!first)
			return walk_refuse(w, FAY_RULE_CRT_JOIN, node->address,
					   "two ways lead to a node that is no join");
		if (!w->stays)
			return walk_keep(w, to, &w->m.s);
		node->state = NODE_IN_HAND;
		return true;
	}
	if (!first) {
		walk_fetch(w, to, &w->t.s);
		apply(w, to, true, x, &n);
	} else if (back || !walk_make(w, to, x, &n)) {
		return walk_refuse(w, FAY_RULE_CRT_JOIN, node->address, "a loop without an entry");
	}
	if (!walk_includes(w, x, n))
		return walk_refuse(w, FAY_RULE_CRT_JOIN, node->address,
				   "a state is not included in its node's");
	if (first)
		return walk_keep(w, to, &w->t.s);
	return !back || !w->m.refine || walk_count(w, node, x, n);
}
