/* SPDX-License-Identifier: MIT */
/* Heads of loops: values that move together, measures. */
#include "certify_parts.h"

/* What was refused last was a try. */
static void try_again(struct certify *k)
{
	k->c->refusal.rule = FAY_RULE_NONE;
	k->w->m.refusal.rule = k->w->t.refusal.rule = FAY_RULE_NONE;
}

/* The form of a value with variables that can only be one number put in. */
static struct form plain_form(struct state *s, const struct value *v)
{
	struct form f = form_number(v->f.c);

	for (unsigned i = 0; i < 2 && v->f.v[i]; i++) {
		struct var *var = var_find(s, v->f.v[i]);
		struct form term = { .k[0] = 1, .v[0] = v->f.v[i] };

		if (var && var->lo == var->hi)
			term = form_number((int64_t)var->lo);
		form_add(&f, &term, v->f.k[i]);
	}
	return f;
}

/* What was so many times the variable at *of is so many times that at `base`, beside a constant. */
static void rebase_one(uint64_t *of, int64_t *times, int64_t *rest, uint64_t base, int64_t k,
		       int64_t c)
{
	*of = base;
	*rest = (int64_t)((uint64_t)*rest + (uint64_t)*times * (uint64_t)c);
	*times = (int64_t)((uint64_t)*times * (uint64_t)k);
}

/* What was a form of the variable at `location`, which is k times another now, plus c: words. */
static void rebase(struct place *p, uint64_t location, uint64_t base, int64_t k, int64_t c)
{
	for (uint32_t i = 0; i < p->rep_count; i++) {
		struct rep *q = &p->reps[i];

		if (q->kind != REP_FORM || !q->k)
			continue;
		if (q->base == location)
			rebase_one(&q->base, &q->k, &q->c, base, k, c);
		if (q->also && q->base2 == location)
			rebase_one(&q->base2, &q->k2, &q->c, base, k, c);
	}
}

/* Pointers and counters that move together: p = k * i + c. */
static bool tie(struct certify *k, uint32_t at, struct state **states, uint32_t n,
		struct meaning *x, uint32_t vars)
{
	struct place *p = &k->places[at];
	int64_t step[JOIN_MOST] = { 0 };
	bool known[JOIN_MOST] = { false }, changed = false;
	uint32_t base = UINT32_MAX;

	for (struct waiting *b = p->back; b; b = b->next) {
		certify_assign(&k->w->m.s, b->s);
		k->w->m.defs = 0;
		for (uint32_t i = 0; i < vars; i++) {
			struct var *v = var_find(&k->w->t.s, x[i].id);
			struct form was = { .k[0] = 1, .v[0] = x[i].id }, moved;

			if (!v)
				continue;
			walk_meaning(k->w, &x[i], v);
			moved = x[i].whole;
			known[i] = x[i].exact && form_add(&moved, &was, -1) && !moved.v[0] &&
				   moved.c && (b == p->back || (known[i] && step[i] == moved.c));
			step[i] = moved.c;
		}
	}
	for (uint32_t i = 0; i < vars; i++)
		if (known[i] && (base == UINT32_MAX || llabs(step[i]) < llabs(step[base])))
			base = i;
	if (base == UINT32_MAX)
		return false;
	struct rep *b = certify_rep_of(p, x[base].location);
	int64_t g = llabs(step[base]);

	/* what the base is a multiple of */
	if (b->kind == REP_NUMBER && b->mult == 1 && g > 1 && !b->no_mult && b->bits == 64) {
		bool ok = true;
		int64_t off = 0;

		for (uint32_t j = 0; ok && j < n; j++) {
			const struct value *v = walk_locate(states[j], b->location);

			ok = certify_numeric(v) && v->f.k[0] % g == 0 && v->f.k[1] % g == 0 &&
			     (!j || (v->f.c - off) % g == 0);
			off = v->f.c;
		}
		if (ok) {
			off %= g;
			if (off < 0)
				off += g;
			b->mult = g;
			b->off = off;
			b->lo = (b->lo - off) / g;
			b->hi = (b->hi - off) / g;
			rebase(p, b->location, b->location, g, off);
			changed = true;
		}
	}
	for (uint32_t i = 0; b->kind == REP_NUMBER && i < vars; i++) {
		struct rep *r = certify_rep_of(p, x[i].location);
		/* of the base's variable, which may have become a multiple just now */
		int64_t unit = step[base] * x[base].k / b->mult;
		bool tied = known[i] && i != base && r->kind == REP_NUMBER && !r->no_form && unit &&
			    step[i] * x[i].k % unit == 0;
		int64_t by = tied ? step[i] * x[i].k / unit : 0, c = 0;

		for (uint32_t j = 0; tied && j < n; j++) {
			const struct value *vi = walk_locate(states[j], x[i].location);
			const struct value *vb = walk_locate(states[j], b->location);
			struct form d, var;

			tied = certify_numeric(vi) && certify_numeric(vb);
			if (!tied)
				break;
			var = plain_form(states[j], vb); /* mult * variable + off */
			var.c -= b->off;
			tied = !(var.c % b->mult) && !(var.k[0] % b->mult) && !(var.k[1] % b->mult);
			var.c /= b->mult;
			var.k[0] /= b->mult;
			var.k[1] /= b->mult;
			d = plain_form(states[j], vi);
			tied = tied && form_add(&d, &var, -by) && !d.v[0] && (!j || d.c == c);
			c = d.c;
		}
		if (!tied)
			continue;
		r->kind = REP_FORM;
		r->also = false;
		r->base = b->location;
		r->k = by;
		r->c = c;
		c = (int64_t)((uint64_t)c - (uint64_t)r->off);
		if (by % r->mult == 0 && c % r->mult == 0)
			rebase(p, r->location, b->location, by / r->mult, c / r->mult);
		changed = true;
	}
	return changed;
}

/* The rounds at most if the head counts by `measure`; UINT64_MAX: it cannot. */
static uint64_t rounds_by(struct certify *k, uint32_t at, struct meaning *x, uint32_t n,
			  uint32_t measure)
{
	struct place *p = &k->places[at];
	struct node *node = &k->w->nodes[at];
	uint32_t i = (measure - 1) % JOIN_MOST, j = (measure - 1) / JOIN_MOST;
	struct var *vi = var_find(&k->w->t.s, x[i].id),
		   *vj = j ? var_find(&k->w->t.s, x[j - 1].id) : NULL;

	if (!vi || (j && !vj))
		return UINT64_MAX;
	node->measure = (uint16_t)measure;
	node->flags &= (uint8_t)~NODE_WAYS;
	node->bound = 1;
	for (struct waiting *b = p->back; b; b = b->next) {
		bool ok;

		certify_assign(&k->w->m.s, b->s);
		k->w->m.defs = b->defs;
		memcpy(k->w->m.def, b->def, sizeof(b->def));
		ok = walk_meaning(k->w, &x[i], vi) && (!j || walk_meaning(k->w, &x[j - 1], vj)) &&
		     walk_count(k->w, node, x, n);
		k->w->m.refusal.rule = FAY_RULE_NONE;
		if (!ok)
			return UINT64_MAX;
	}
	node->flags &= (uint8_t)~NODE_WAYS;
	return node->bound;
}

/* If a variable's range bounds no fewer, a difference may, by a fact. */
#define ROUNDS_MANY 65536u
#define TIGHTER_MOST 4u /* so often ranges end where facts end them */

/* A variable, or a difference of two, that each way back moves one way; *many: rounds. */
static bool measure(struct certify *k, uint32_t at, struct meaning *x, uint32_t n, bool *many)
{
	struct place *p = &k->places[at];
	uint64_t best = UINT64_MAX;

	p->measure = 0;
	*many = false;
	if (!p->back || !k->w->m.refine)
		return true;
	for (uint32_t j = 0; j <= n && (!j || best > ROUNDS_MANY); j++)
		for (uint32_t i = 0; i < n; i++) {
			uint64_t rounds;

			if (i + 1 == j)
				continue;
			rounds = rounds_by(k, at, x, n, 1 + i + j * JOIN_MOST);
			if (rounds < best) {
				best = rounds;
				p->measure = 1 + i + j * JOIN_MOST;
			}
		}
	*many = k->c->sums && best > ROUNDS_MANY;
	return p->measure != 0;
}

static void clear(struct certify *k, uint32_t begin, uint32_t end)
{
	for (uint32_t i = begin; i < end; i++) {
		certify_drop(&k->places[i].in);
		certify_drop(&k->places[i].back);
		k->places[i].join = false;
	}
}

void certify_drop_from(struct waiting **list, uint32_t begin, uint32_t end)
{
	while (*list) {
		struct waiting *next = (*list)->next;

		if ((*list)->from >= begin && (*list)->from < end) {
			free((*list)->s);
			free(*list);
			*list = next;
		} else {
			list = &(*list)->next;
		}
	}
}

/* What loops send out while they are still being looked at. */
static void clear_outside(struct certify *k, uint32_t begin, uint32_t end)
{
	for (uint32_t i = end; i < k->count; i++)
		certify_drop_from(&k->places[i].in, begin, end);
	for (uint32_t i = 0; i < begin; i++)
		certify_drop_from(&k->places[i].back, begin, end);
}

/* What the loop's nodes had, but for what its head is entered with, goes. */
static void rewind_loop(struct certify *k, uint32_t at)
{
	certify_drop(&k->places[at].back);
	if (k->unfold) {
		certify_unfold_rewind(k, at);
		return;
	}
	clear(k, at + 1, k->places[at].end);
	clear_outside(k, at, k->places[at].end);
}

static bool run_loop(struct certify *k, uint32_t at)
{
	return certify_run_from(k, at) &&
	       (k->unfold ? certify_unfold_loop(k, at)
			  : certify_process(k, at + 1, k->places[at].end));
}

/* Which bytes of the stack the first round has written, if they lie together. */
static void note_filled(struct place *p, const struct state *entry, const struct state *back)
{
	p->filled_low = p->filled_high = 0;
	for (int32_t i = 0; i < back->depth; i++) {
		if (!((back->written[i / 8] & ~entry->written[i / 8]) >> i % 8 & 1))
			continue;
		if (p->filled_low == p->filled_high)
			p->filled_low = p->filled_high = -i;
		p->filled_low = -i - 1;
	}
}

/* Arrays that the loop writes by a counter that moves steadily. */
static bool fill(struct certify *k, uint32_t at, struct state **states, struct meaning *x,
		 uint32_t vars)
{
	struct place *p = &k->places[at];
	int32_t size = p->filled_high - p->filled_low;

	p->fill_count = 0;
	for (uint32_t i = 0; size && p->back && i < vars && !p->fill_count; i++) {
		struct var *v = var_find(&k->w->t.s, x[i].id);
		struct form was = { .k[0] = 1, .v[0] = x[i].id }, moved;
		struct value *first = walk_locate(states[0], x[i].location);
		int64_t step;

		certify_assign(&k->w->m.s, p->back->s);
		k->w->m.defs = 0;
		if (!v || !certify_numeric(first) || first->f.v[0])
			continue;
		walk_meaning(k->w, &x[i], v);
		moved = x[i].whole;
		if (!x[i].exact || !form_plus(&moved, &was, -1) || moved.v[0] || !moved.c)
			continue;
		step = moved.c * x[i].k;
		if (size % step)
			continue;
		p->fills[0] = (struct guessed_fill){ x[i].location, size / step,
						     p->filled_low - size / step * first->f.c,
						     p->filled_low, false };
		p->fills[1] = (struct guessed_fill){ x[i].location, -(size / step),
						     p->filled_high + size / step * first->f.c,
						     p->filled_high, true };
		p->fill_count = 2;
	}
	return p->fill_count > 0;
}

/* Once more from the start, with relations. False: there are none. */
static bool begin_related(struct certify *k, uint32_t at, struct state **states, uint32_t n,
			  struct meaning *x, uint32_t vars)
{
	struct place *p = &k->places[at];
	struct check_refusal why = k->c->refusal;
	uint32_t facts;

	certify_relate(k, at, states, n, x, vars);
	facts = p->fact_count;
	if (facts) {
		certify_find_list(k, p, states, n);
		p->fact_count = facts;
		try_again(k);
	} else {
		k->c->refusal = why;
	}
	return facts;
}

/* What the head may count by must be there all along. */
static void pin(struct certify *k, uint32_t at, const struct meaning *x, uint32_t vars)
{
	for (uint32_t i = 0; i < vars; i++) {
		struct var *v = var_find(&k->w->t.s, x[i].id);

		if (v)
			v->pin = at + 1;
	}
}

/* The head's first list, from what waits there. */
static void begin_loop(struct certify *k, uint32_t at, struct state **states, uint32_t n)
{
	struct place *p = &k->places[at];

	p->measure = p->fact_count = 0;
	p->narrowed = false;
	p->plain = !k->c->hint;
	if (k->unfold)
		certify_unfold_begin(k, at);
	certify_find_list(k, p, states, n);
}

/* Runs the loop once; the head's state is in w->t, before and behind it. */
static bool run_once(struct certify *k, uint32_t at, struct meaning *x, uint32_t pinned)
{
	struct state *t;
	bool ran;

	pin(k, at, x, pinned);
	t = certify_copy(&k->w->t.s);
	ran = run_loop(k, at);
	certify_assign(&k->w->t.s, t);
	free(t);
	return ran;
}

/* So often ranges end where facts end them. */
static bool tighter(struct certify *k, struct place *p, unsigned *times)
{
	return *times < TIGHTER_MOST && certify_tighten(k, p) && ++*times;
}

bool certify_process_loop(struct certify *k, uint32_t at)
{
	struct place *p = &k->places[at];
	struct state **states;
	struct meaning *x = calloc(JOIN_MOST, sizeof(*x));
	uint32_t n = certify_gather(p->in, &states), vars = 0;
	bool ok = false, tied = false, fixed = false, related = false, renewed = false,
	     many = false;
	unsigned tightened = 0;

	begin_loop(k, at, states, n);
	for (unsigned round = 0; round < 60; round++) {
		bool changed = false, ran;

		rewind_loop(k, at);
		if (!certify_settle(k, at, states, n, x, &vars))
			break;
		ran = run_once(k, at, x, fixed ? 0 : vars);
		if (!tied && round && ran && tie(k, at, states, n, x, vars)) {
			tied = true;
			continue;
		}
		if (!round && p->back)
			note_filled(p, states[0], p->back->s);
		if (k->effort != EFFORT_NEEDED && !related && round && ran)
			fill(k, at, states, x, vars);
		if (k->effort != EFFORT_NEEDED && !related && (round || !ran)) {
			related = round > 0;
			if (certify_relate(k, at, states, n, x, vars) || p->fill_count) {
				if (!ran)
					try_again(k);
				continue;
			}
		}
		for (struct waiting *b = p->back; b && !changed; b = b->next)
			if (!certify_check_one(k, at, b->s, states[0], x, vars, &changed))
				goto out;
		if (changed && round >= 50)
			break;
		if (p->parted_form && k->effort != EFFORT_NEEDED)
			related = p->parted_form = false;
		if (changed) {
			try_again(k);
			continue;
		}
		if (!ran && k->c->sums && tighter(k, p, &tightened)) {
			try_again(k);
			continue;
		}
		ok = ran && fixed;
		if (ok && many && tighter(k, p, &tightened)) {
			ok = fixed = false; /* it goes around far less often than its range says */
			continue;
		}
		if (ok)
			break;
		if (ran && measure(k, at, x, vars, &many)) {
			fixed = true;
			continue;
		}
		if (related && !renewed && k->effort != EFFORT_NEEDED) {
			renewed = true; /* ranges are wider now, and say less than relations may */
			if (certify_relate(k, at, states, n, x, vars)) {
				try_again(k);
				continue;
			}
		}
		if (!ran && !p->plain) {
			p->plain = true;
			tied = false;
			certify_find_list(k, p, states, n);
			try_again(k);
			continue;
		}
		if (round && (!related || (!ran && !p->narrowed && k->c->last))) {
			p->narrowed =
				related; /* relations came when ranges were too wide already */
			related = true;
			tied = false;
			if (begin_related(k, at, states, n, x, vars))
				continue;
		}
		k->at = ran ? at : k->at;
		if (ran)
			certify_fail(k, FAY_RULE_TRM_LOOP, k->w->nodes[at].address,
				     "a loop without a measure");
		break;
	}
	if (!ok && k->c->refusal.rule == FAY_RULE_NONE)
		certify_fail(k, FAY_RULE_CRT_JOIN, k->w->nodes[at].address,
			     "a loop does not settle");
out:
	if (k->unfold)
		certify_unfold_end(k, at);
	p->join = true;
	free(states);
	free(x);
	certify_drop(&p->in);
	return ok;
}
