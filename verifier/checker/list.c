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

/* A variable for the number at a location, or for what a multiple there is a multiple of. */
static bool apply_number(struct walk *w, struct value *v, uint64_t kind, struct meaning *x)
{
	struct reader *r = &w->certificate;
	uint64_t bits = kind == JOIN_NUMBER ? read_number(r) : 64;
	wide lo, hi;
	struct value fresh;

	*x = (struct meaning){ .location = x->location, .bits = (uint8_t)bits, .k = 1 };
	if (kind == JOIN_MULTIPLE) {
		uint64_t k = read_number(r);

		x->k = k <= INT64_MAX ? (int64_t)k : 0;
		x->c = read_signed(r);
	}
	lo = read_signed(r);
	hi = lo + read_number(r);
	if (!x->k || !walk_numeric(v) || bits < 1 || bits > 64 ||
	    (v->kind == KIND_POINTER && bits != 64) || lo == hi || hi > UINT64_MAX ||
	    (lo < 0 && hi > INT64_MAX))
		return bad_list(w, "a join's variable is none");
	fresh = value_fresh(&w->t, lo, hi, (unsigned)bits);
	if (w->t.refusal.rule != FAY_RULE_NONE)
		return false;
	v->f = form_number(x->c);
	form_add(&v->f, &fresh.f, x->k);
	v->bits = (uint8_t)bits;
	x->id = fresh.f.v[0];
	return true;
}

static bool apply_form(struct walk *w, struct value *v, const struct meaning *x, uint32_t n)
{
	struct reader *r = &w->certificate;
	uint64_t bits = read_number(r);
	struct form f = form_number(read_signed(r));
	uint64_t terms = read_number(r);

	if (!walk_numeric(v) || bits < 1 || bits > 64 || (v->kind == KIND_POINTER && bits != 64) ||
	    terms > 2)
		return bad_list(w, "a join's form is none");
	for (uint64_t i = 0; i < terms; i++) {
		uint64_t j = read_number(r);
		const struct var *size =
			j - JOIN_MOST < FAY_INTERFACE_REGIONS
				? var_pinned(&w->t.s, PIN_SIZES + (j - JOIN_MOST), 0)
				: NULL;
		struct form term = { .k[0] = 1, .v[0] = j < n ? x[j].id : size ? size->id : 0 };

		if (!term.v[0] || !form_add(&f, &term, read_signed(r)))
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
	*own = value_number(0);
	own->f.k[0] = 1;
	own->f.v[0] = v->id;
	return own;
}

static bool apply_range(struct walk *w, uint32_t to, uint64_t location)
{
	struct reader *r = &w->certificate;
	wide lo = read_signed(r), hi = lo + read_number(r);
	struct value own;
	const struct value *v = walk_number_at(&w->t.s, to, location, &own);
	struct var *var = walk_numeric(v) && !v->f.v[1] ? var_find(&w->t.s, v->f.v[0]) : NULL;

	if (!var || hi > UINT64_MAX || (lo < 0 && hi > INT64_MAX))
		return bad_list(w, "a join's range is none");
	var_set(var, lo, hi);
	return true;
}

static bool apply_fact(struct walk *w, const struct value *a, const struct value *b)
{
	struct reader *r = &w->certificate;
	int64_t ka = read_signed(r), kb = read_signed(r);
	wide lo = read_signed(r), hi = lo + read_number(r);
	struct form f = form_number(0);

	if (!walk_numeric(a) || !walk_numeric(b) || !form_add(&f, &a->f, ka) ||
	    !form_add(&f, &b->f, kb))
		return bad_list(w, "a join's fact is none");
	if (f.v[1])
		form_fact(&w->t, &f, lo - f.c, hi - f.c);
	return true;
}

static bool apply_fill(struct walk *w, const struct value *v)
{
	struct reader *r = &w->certificate;
	uint64_t down = read_number(r);
	int64_t fixed = read_signed(r), k = read_signed(r);
	struct fill fill = { form_number(read_signed(r)), (int32_t)fixed, down != 0 };
	struct state *s = &w->t.s;

	if (!walk_numeric(v) || fixed < -s->depth || fixed > 0 || s->fills == FILLS ||
	    !form_add(&fill.end, &v->f, k))
		return bad_list(w, "a join's range of the stack is none");
	s->fill[s->fills++] = fill;
	return true;
}

static bool apply(struct walk *w, uint32_t to, struct meaning *x, uint32_t *n)
{
	const struct node *node = &w->nodes[to];
	struct reader *r = &w->certificate;
	struct state *s = &w->t.s;
	uint64_t entries, location;
	struct value own;

	r->at = node->list;
	entries = read_number(r);
	*n = 0;
	for (uint64_t i = 0; i < entries; i++) {
		uint64_t kind = read_number(r);
		struct value *v = NULL;

		location = read_number(r);
		if (kind == JOIN_BYTES ||
		    (kind <= JOIN_FILL && kind != JOIN_REGISTERS && kind != JOIN_RANGE)) {
			v = walk_locate(s, location);
			if (!v)
				return bad_list(w, "nothing is at a join's location");
		}
		switch (kind) {
		case JOIN_FORGET: *v = value_nothing(); break;
		case JOIN_REGISTERS:
			for (unsigned k = 0; k < 16; k++)
				if (location >> k & 1)
					s->reg[k] = value_nothing();
			break;
		case JOIN_NUMBER:
		case JOIN_MULTIPLE:
			if (*n == JOIN_MOST)
				return bad_list(w, "too many variables of a join");
			x[*n].location = (uint32_t)location;
			if (!apply_number(w, v, kind, &x[(*n)++]))
				return false;
			break;
		case JOIN_FORM:
			if (!apply_form(w, v, x, *n))
				return false;
			break;
		case JOIN_RANGE:
			if (!apply_range(w, to, location))
				return false;
			break;
		case JOIN_FACT:
			if (!apply_fact(w, v, walk_number_at(s, to, read_number(r), &own)))
				return false;
			break;
		case JOIN_FILL:
			if (!apply_fill(w, v))
				return false;
			break;
		case JOIN_UNDEFINED: s->flags.undefined |= location & FLAG_ALL; break;
		case JOIN_BYTES: v->init &= (uint8_t)read_number(r); break;
		case JOIN_VECTOR: s->vector[location & 15] &= (uint32_t)read_number(r); break;
		default: { /* JOIN_UNWRITTEN */
			uint64_t size = read_number(r);
			int64_t low = -(int64_t)(location & 0xffff);

			if (location > (uint64_t)s->depth || size > location)
				return bad_list(w, "a join's bytes are not on the stack");
			stack_mark(s, low, low + (int64_t)size, false);
		}
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
	walk_fetch(w, node, &w->m.s);
	unpin(w, &w->m.s, node);
	check_collect(&w->m);
}

void walk_skip_entry(struct reader *r, uint64_t kind)
{
	static const uint8_t numbers[JOIN_KINDS] = {
		[JOIN_NUMBER] = 3, [JOIN_MULTIPLE] = 4, [JOIN_RANGE] = 2, [JOIN_FACT] = 5,
		[JOIN_FILL] = 4,   [JOIN_VECTOR] = 1,   [JOIN_BYTES] = 1, [JOIN_UNWRITTEN] = 1
	};
	uint64_t n = kind < JOIN_KINDS ? numbers[kind] : 0;

	if (kind == JOIN_FORM) {
		read_number(r);
		read_number(r);
		n = 2 * (read_number(r) & 3);
	}
	while (n--)
		read_number(r);
}

/* The variables that a list introduces, once more. */
static void recall(struct walk *w, const struct node *node, struct meaning *x, uint32_t *n)
{
	struct reader *r = &w->certificate;
	uint64_t entries;

	*n = 0;
	r->at = node->list;
	entries = read_number(r);
	for (uint64_t i = 0; i < entries && *n < node->variables; i++) {
		uint64_t kind = read_number(r), location = read_number(r);

		if (kind == JOIN_NUMBER || kind == JOIN_MULTIPLE) {
			struct meaning *y = &x[*n];

			*y = (struct meaning){ .id = node->first + *n,
					       .location = (uint32_t)location,
					       .bits = 64,
					       .k = 1 };
			++*n;
			if (kind == JOIN_NUMBER) {
				y->bits = (uint8_t)read_number(r);
			} else {
				y->k = (int64_t)read_number(r);
				y->c = read_signed(r);
			}
			read_signed(r);
			read_number(r);
		} else {
			walk_skip_entry(r, kind);
		}
	}
}

bool walk_make(struct walk *w, uint32_t to, struct meaning *x, uint32_t *n)
{
	struct node *node = &w->nodes[to];
	struct state *t = &w->t.s;

	walk_copy(t, &w->m.s);
	t->flags.covered = 0;
	t->flags.a = t->flags.b = value_nothing();
	t->facts = t->fills = 0;
	while (t->slots && t->slot[t->slots - 1].at >= 0)
		t->slots--; /* of region 0 */
	unpin(w, t, to);
	if (!apply(w, to, x, n))
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
		return walk_keep(w, to, &w->m.s);
	}
	if (!first) {
		walk_fetch(w, to, &w->t.s);
		recall(w, node, x, &n);
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
