/* SPDX-License-Identifier: MIT */
/*
 * Relations between two values of one state: lo <= a * S(x + dx) + b * S(y + dy) <= hi, where x and
 * y are names, dx and dy distances from them, S the signed reading of a 64-bit word, and the sum is
 * one of integers (never of words that wrap).
 *
 * A name stands for one number as long as its state lives, so a relation once true stays true:
 * writing a register gives the register another name and leaves the relation alone, and what nobody
 * bears the name of any more is dropped when the state is stored. No instruction has to forget
 * anything, hence none can be missed. Relations come from comparisons of two numbers that are not
 * constant, from sums and products, and, at loop heads, from templates that loops.c guesses; a join
 * keeps one only with bounds that hold on both sides, and the last pass of the fixpoint checks each
 * as it checks intervals.
 *
 * Where a distance has to be moved (S(x + 1) against S(x)) the known interval must show that
 * nothing wraps; if it does not, the relation is not used. Limits: FAY_MAX_RELATIONS a state, the
 * oldest goes first; two values each; factors up to FACTOR_MAX. After Simon, King and Howe, "Two
 * Variables per Linear Inequality as an Abstract Domain" (LOPSTR 2002), without the closure.
 */
#include "relations_parts.h"

#include <string.h>

#define FACTOR_MAX ((int64_t)1 << 24)

static uint64_t magnitude(int64_t x)
{
	return x < 0 ? -(uint64_t)x : (uint64_t)x;
}

struct term fay_term_of(const struct fay_value *v)
{
	struct term t = { .id = v->id,
			  .delta = v->delta,
			  .low = v->s.smin,
			  .high = v->s.smax,
			  .modulus = v->s.modulus,
			  .remainder = v->s.remainder };
	uint64_t step = v->s.unknown & -v->s.unknown;

	if (fay_scalar_is_const(&v->s)) {
		t.modulus = 0;
	} else if (step > t.modulus && step <= (uint64_t)1 << 31) {
		t.modulus = step;
		t.remainder = v->s.value & (step - 1);
	}
	return t;
}

bool fay_term_shift(struct term *t, int64_t k)
{
	int64_t low, high;

	if (__builtin_add_overflow(t->low, k, &low) || __builtin_add_overflow(t->high, k, &high))
		return false;
	t->low = low;
	t->high = high;
	t->delta += (uint64_t)k;
	if (t->modulus > 1 && k) {
		int64_t m = (int64_t)t->modulus, r = k % m;

		t->remainder = (t->remainder + (uint64_t)(r < 0 ? r + m : r)) % t->modulus;
	}
	return true;
}

void fay_names_collect(struct names *n, const struct fay_state *s)
{
	memset(n->first, 0, sizeof(n->first));
	for (uint32_t i = s->count; i-- > 0;)
		if (related(&s->loc[i])) {
			uint16_t *first = &n->first[s->loc[i].id % NAMES_HASH];

			n->next[i] = *first;
			*first = (uint16_t)(i + 1);
		}
}

uint32_t fay_names_bearer(const struct names *n, const struct fay_state *s, uint32_t id,
			  uint32_t location)
{
	while (location && s->loc[location - 1].id != id)
		location = n->next[location - 1];
	return location;
}

/* What the state knows of S(id + delta), from all that bear the name. False: nobody does. */
bool fay_term_find(const struct fay_state *s, const struct names *n, uint32_t id, uint64_t delta,
		   struct term *t)
{
	bool found = false;

	*t = (struct term){
		.id = id, .delta = delta, .low = INT64_MIN, .high = INT64_MAX, .modulus = 1
	};
	FOR_BEARERS(i, n, s, id)
	{
		struct term v;

		found = true;
		v = fay_term_of(&s->loc[i]);
		if (!fay_term_shift(&v, (int64_t)(delta - v.delta)))
			continue;
		if (v.low > t->low)
			t->low = v.low;
		if (v.high < t->high)
			t->high = v.high;
		if (!v.modulus || v.modulus > t->modulus) {
			t->modulus = v.modulus;
			t->remainder = v.remainder;
		}
		if (!v.modulus) /* one number: the others cannot say more */
			break;
	}
	return found && t->low <= t->high;
}

static wide residue(wide x, uint64_t m)
{
	wide r = x % (wide)m;

	return r < 0 ? r + (wide)m : r;
}

/* The nearest numbers within that the congruences of both terms allow. */
void fay_sum_tighten(struct sum *sum, const struct term *x, int64_t a, const struct term *y,
		     int64_t b)
{
	uint64_t g;
	wide r;

	if (x->modulus > (uint64_t)1 << 31 || y->modulus > (uint64_t)1 << 31)
		return;
	g = gcd(magnitude(a) * x->modulus, magnitude(b) * y->modulus);
	if (g <= 1)
		return;
	r = (wide)a * (x->modulus ? (wide)x->remainder : x->low) +
	    (wide)b * (y->modulus ? (wide)y->remainder : y->low);
	if (sum->lo > -wide_none)
		sum->lo += residue(r - sum->lo, g);
	if (sum->hi < wide_none)
		sum->hi -= residue(sum->hi - r, g);
}

static struct sum by_intervals(const struct term *x, int64_t a, const struct term *y, int64_t b)
{
	wide xl = (wide)a * (a < 0 ? x->high : x->low), xh = (wide)a * (a < 0 ? x->low : x->high);
	wide yl = (wide)b * (b < 0 ? y->high : y->low), yh = (wide)b * (b < 0 ? y->low : y->high);

	return (struct sum){ .lo = xl + yl, .hi = xh + yh };
}

/*
 * The bounds that relation r gives for a * x + b * y, if it is about these terms with these factors
 * (or both negated): the distances are moved to r's where the terms' intervals allow it.
 */
static bool by_relation(const struct fay_relation *r, const struct term *x, int64_t a,
			const struct term *y, int64_t b, struct sum *sum)
{
	const struct term *rx = x, *ry = y;
	int64_t ra = a, rb = b;
	struct term mx, my;
	wide moved, lo, hi;

	if (r->x != x->id) {
		rx = y;
		ry = x;
		ra = b;
		rb = a;
	}
	if (r->x != rx->id || r->y != ry->id)
		return false;
	if (!(r->a == ra && r->b == rb) && !(r->a == -ra && r->b == -rb))
		return false;
	mx = *rx;
	my = *ry;
	if (!fay_term_shift(&mx, (int64_t)(r->dx - rx->delta)) ||
	    !fay_term_shift(&my, (int64_t)(r->dy - ry->delta)))
		return false;
	moved = (wide)r->a * (int64_t)(r->dx - rx->delta) +
		(wide)r->b * (int64_t)(r->dy - ry->delta);
	lo = r->lo == INT64_MIN ? -wide_none : r->lo - moved;
	hi = r->hi == INT64_MAX ? wide_none : r->hi - moved;
	*sum = r->a == ra ? (struct sum){ lo, hi } : (struct sum){ -hi, -lo };
	return true;
}

struct sum fay_relations_evaluate(const struct fay_state *s, const struct term *x, int64_t a,
				  const struct term *y, int64_t b)
{
	struct sum best = by_intervals(x, a, y, b), other;

	if (x->id && x->id == y->id && a == -b) {
		struct term moved = *y;
		int64_t apart = (int64_t)(x->delta - y->delta);

		if (fay_term_shift(&moved, apart))
			best.lo = best.hi = (wide)a * apart;
		return best;
	}
	for (uint32_t i = 0; i < s->relation_count; i++) {
		const struct fay_relation *r = &s->relations[i];

		/* Of other names, as most are. */
		if (!(r->x == x->id && r->y == y->id) && !(r->x == y->id && r->y == x->id))
			continue;
		if (!by_relation(r, x, a, y, b, &other))
			continue;
		if (other.lo > best.lo)
			best.lo = other.lo;
		if (other.hi < best.hi)
			best.hi = other.hi;
	}
	fay_sum_tighten(&best, x, a, y, b);
	return best;
}

/* ---- adding ---- */

static void normalise(struct fay_relation *r)
{
	int64_t g = (int64_t)gcd(magnitude(r->a), magnitude(r->b));

	if (r->x > r->y) {
		struct fay_relation o = *r;

		r->x = o.y;
		r->y = o.x;
		r->dx = o.dy;
		r->dy = o.dx;
		r->a = o.b;
		r->b = o.a;
	}
	if (r->a < 0) {
		int64_t lo = r->lo;

		r->a = -r->a;
		r->b = -r->b;
		r->lo = r->hi == INT64_MAX ? INT64_MIN : r->hi == INT64_MIN ? INT64_MAX : -r->hi;
		r->hi = lo == INT64_MIN ? INT64_MAX : -lo;
	}
	if (g > 1) {
		r->a /= g;
		r->b /= g;
		if (r->lo != INT64_MIN)
			r->lo = (int64_t)ceil_divide(r->lo, g);
		if (r->hi != INT64_MAX)
			r->hi = (int64_t)floor_divide(r->hi, g);
	}
}

static void insert(struct fay_state *s, const struct fay_relation *r)
{
	for (uint32_t i = 0; i < s->relation_count; i++) {
		struct fay_relation *old = &s->relations[i];

		if (old->x != r->x || old->y != r->y || old->a != r->a || old->b != r->b ||
		    old->dx != r->dx || old->dy != r->dy)
			continue;
		if (r->lo > old->lo)
			old->lo = r->lo;
		if (r->hi < old->hi)
			old->hi = r->hi;
		return;
	}
	if (s->relation_count == FAY_MAX_RELATIONS)
		memmove(&s->relations[0], &s->relations[1], --s->relation_count * sizeof(*r));
	s->relations[s->relation_count++] = *r;
}

static bool borne(const struct fay_state *s, uint32_t id)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->loc[i].id == id && related(&s->loc[i]) && !is_flags(i))
			return true;
	return false;
}

void fay_relations_add(struct fay_state *s, const struct fay_value *x, int64_t a,
		       const struct fay_value *y, int64_t b, int64_t lo, int64_t hi)
{
	struct fay_relation r = { .x = x->id,
				  .y = y->id,
				  .dx = x->delta,
				  .dy = y->delta,
				  .a = a,
				  .b = b,
				  .lo = lo,
				  .hi = hi };
	struct term tx, ty;
	struct sum plain;

	if (s->plain || !related(x) || !related(y) || x->id == y->id)
		return;
	/* A constant may be a loop's variable on its first round: a join will ask. */
	if ((fay_scalar_is_const(&x->s) && !borne(s, x->id)) ||
	    (fay_scalar_is_const(&y->s) && !borne(s, y->id)))
		return;
	if (!a || !b || magnitude(a) > (uint64_t)FACTOR_MAX || magnitude(b) > (uint64_t)FACTOR_MAX)
		return;
	tx = fay_term_of(x);
	ty = fay_term_of(y);
	plain = by_intervals(&tx, a, &ty, b);
	if (open_low(lo) <= plain.lo && open_high(hi) >= plain.hi && !fay_scalar_is_const(&x->s) &&
	    !fay_scalar_is_const(&y->s))
		return;
	normalise(&r);
	insert(s, &r);
}

void fay_relations_difference(const struct fay_state *s, const struct fay_value *x,
			      const struct fay_value *y, int64_t *lo, int64_t *hi)
{
	struct term tx = fay_term_of(x), ty = fay_term_of(y);
	struct sum sum = fay_relations_evaluate(s, &tx, 1, &ty, -1);

	*lo = clamp_low(sum.lo);
	*hi = clamp_high(sum.hi);
}

void fay_relations_settle(struct fay_state *s)
{
	uint32_t kept = 0;
	struct names names;

	if (s->relation_count)
		fay_names_collect(&names, s);
	for (uint32_t i = 0; i < s->relation_count; i++) {
		struct fay_relation r = s->relations[i];
		struct term x, y;

		if (r.x == r.y)
			continue;
		if ((r.dx || r.dy) && fay_term_find(s, &names, r.x, 0, &x) &&
		    fay_term_find(s, &names, r.y, 0, &y)) {
			struct sum sum;

			if (by_relation(&r, &x, r.a, &y, r.b, &sum)) {
				r.dx = r.dy = 0;
				r.lo = clamp_low(sum.lo);
				r.hi = clamp_high(sum.hi);
			}
		}
		normalise(&r);
		s->relations[kept++] = r;
	}
	s->relation_count = kept;
}

void fay_relations_unify(struct fay_state *s, const struct fay_value *x, const struct fay_value *y)
{
	uint32_t from = y->id, to = x->id;
	uint64_t move = x->delta - y->delta;
	uint32_t kept = 0;

	if (!related(x) || !related(y) || from == to || fay_scalar_is_const(&x->s))
		return;
	for (uint32_t i = 0; i < s->count; i++)
		if (s->loc[i].id == from && fay_value_numeric(&s->loc[i])) {
			s->loc[i].id = to;
			s->loc[i].delta += move;
		}
	for (uint32_t i = 0; i < s->relation_count; i++) {
		struct fay_relation r = s->relations[i];

		if (r.x == from) {
			r.x = to;
			r.dx += move;
		}
		if (r.y == from) {
			r.y = to;
			r.dy += move;
		}
		if (r.x == r.y)
			continue;
		normalise(&r);
		s->relations[kept++] = r;
	}
	s->relation_count = kept;
}

/* The readings are what the comparison ordered: 64 bits signed; or, where neither can be negative,
 * of any kind. */
bool fay_relations_compare(struct fay_state *s, enum fay_cc cc, unsigned width,
			   const struct fay_value *x, const struct fay_value *y)
{
	bool positive = x->s.smin >= 0 && y->s.smin >= 0;
	bool same_sign =
		positive &&
		(width == 64 || (width == 32 && x->s.umax <= INT32_MAX && y->s.umax <= INT32_MAX));
	int64_t lo, hi;

	if (!related(x) || !related(y))
		return true;
	switch (cc) {
	case CC_E:
		if (fay_scalar_is_const(&x->s) || fay_scalar_is_const(&y->s))
			return true;
		fay_relations_unify(s, x, y);
		return true;
	case CC_NE:
		fay_relations_difference(s, x, y, &lo, &hi);
		if (lo == 0 && hi == 0)
			return false;
		if (lo >= 0)
			fay_relations_add(s, x, 1, y, -1, lo ? lo : 1, INT64_MAX);
		else if (hi <= 0)
			fay_relations_add(s, x, 1, y, -1, INT64_MIN, hi ? hi : -1);
		return true;
	case CC_B:
	case CC_BE:
		if (positive)
			fay_relations_add(s, x, 1, y, -1, INT64_MIN, cc == CC_B ? -1 : 0);
		return true;
	case CC_A:
	case CC_AE:
		if (positive)
			fay_relations_add(s, x, 1, y, -1, cc == CC_A ? 1 : 0, INT64_MAX);
		return true;
	case CC_L:
	case CC_LE:
		if (width == 64 || same_sign)
			fay_relations_add(s, x, 1, y, -1, INT64_MIN, cc == CC_L ? -1 : 0);
		return true;
	case CC_G:
	case CC_GE:
		if (width == 64 || same_sign)
			fay_relations_add(s, x, 1, y, -1, cc == CC_G ? 1 : 0, INT64_MAX);
		return true;
	default: return true;
	}
}
