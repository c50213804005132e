/* SPDX-License-Identifier: MIT */
/*
 * Relations between two values of one state: lo <= a * S(x + dx) + b * S(y + dy) <= hi, where x and y are names, dx and dy distances
 * from them, S the signed reading of a 64-bit word, and the sum is one of integers (never of words that wrap).
 *
 * A name stands for one number as long as its state lives, so a relation once true stays true: writing a register gives the register
 * another name and leaves the relation alone, and what nobody bears the name of any more is dropped when the state is stored. No
 * instruction has to forget anything, hence none can be missed. Relations come from comparisons of two numbers that are not
 * constant, from sums and products, and, at loop heads, from templates that loops.c guesses; a join keeps one only with bounds that hold on both
 * sides, and the last pass of the fixpoint checks each as it checks intervals.
 *
 * Where a distance has to be moved (S(x + 1) against S(x)) the known interval must show that nothing wraps; if it does not, the
 * relation is not used. Limits: FAY_MAX_RELATIONS a state, the oldest goes first; two values each; factors up to FACTOR_MAX.
 * After Simon, King and Howe, "Two Variables per Linear Inequality as an Abstract Domain" (LOPSTR 2002), without the closure.
 */
#include "relations.h"

#include <string.h>

#define FACTOR_MAX ((int64_t)1 << 24)
#define FAR ((wide)1 << 62) /* bounds beyond are no use */
#define BEARERS 3u /* locations looked at for each name in a join */
#define NAMES_HASH 64u

typedef __int128 wide;

static const wide wide_none = (wide)1 << 120; /* beyond any sum */

/* One side of a relation: a name, a distance, and what is known of its signed reading. */
struct term {
	uint32_t id;
	uint64_t delta;
	int64_t low, high;
	uint64_t modulus, remainder; /* of the reading; modulus 0: it is `low` */
};

struct sum {
	wide lo, hi;
};

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t t = a % b;

		a = b;
		b = t;
	}
	return a;
}

static wide floor_divide(wide n, wide d) { return n / d - (n % d && (n < 0) != (d < 0)); }
static wide ceil_divide(wide n, wide d) { return -floor_divide(-n, d); }
static int64_t clamp_low(wide x) { return x <= INT64_MIN ? INT64_MIN : x > INT64_MAX ? INT64_MAX : (int64_t)x; }
static int64_t clamp_high(wide x) { return x >= INT64_MAX ? INT64_MAX : x < INT64_MIN ? INT64_MIN : (int64_t)x; }
static wide open_low(int64_t x) { return x == INT64_MIN ? -wide_none : x; }
static wide open_high(int64_t x) { return x == INT64_MAX ? wide_none : x; }
static uint64_t magnitude(int64_t x) { return x < 0 ? -(uint64_t)x : (uint64_t)x; }

static bool related(const struct fay_value *v) { return fay_value_numeric(v) && v->init == 0xff && v->id; }
static bool is_flags(uint32_t location) { return location >= LOC_FLAGS_A && location <= LOC_FLAGS_R; }

static struct term term_of(const struct fay_value *v)
{
	struct term t = { .id = v->id, .delta = v->delta, .low = v->s.smin, .high = v->s.smax, .modulus = v->s.modulus, .remainder = v->s.remainder };
	uint64_t step = v->s.unknown & -v->s.unknown;

	if (fay_scalar_is_const(&v->s)) {
		t.modulus = 0;
	} else if (step > t.modulus && step <= (uint64_t)1 << 31) {
		t.modulus = step;
		t.remainder = v->s.value & (step - 1);
	}
	return t;
}

/* t + k without wrapping. */
static bool shift_term(struct term *t, int64_t k)
{
	int64_t low, high;

	if (__builtin_add_overflow(t->low, k, &low) || __builtin_add_overflow(t->high, k, &high))
		return false;
	t->low = low;
	t->high = high;
	t->delta += (uint64_t)k;
	if (t->modulus) {
		int64_t m = (int64_t)t->modulus, r = k % m;

		t->remainder = (t->remainder + (uint64_t)(r < 0 ? r + m : r)) % t->modulus;
	}
	return true;
}

/* The same, and if it may wrap nothing is known but the name. */
static void move_term(struct term *t, int64_t k)
{
	if (!shift_term(t, k))
		*t = (struct term){ .id = t->id, .delta = t->delta + (uint64_t)k, .low = INT64_MIN, .high = INT64_MAX, .modulus = 1 };
}

/* Who bears which name: chains of 1 + location, ascending, by a hash of the name. */
struct names {
	uint16_t first[NAMES_HASH], next[FAY_MAX_LOCATIONS];
};
_Static_assert(FAY_MAX_LOCATIONS < UINT16_MAX, "a chain holds 1 + any location");

static void names_collect(struct names *n, const struct fay_state *s)
{
	memset(n->first, 0, sizeof(n->first));
	for (uint32_t i = s->count; i-- > 0;)
		if (related(&s->loc[i])) {
			uint16_t *first = &n->first[s->loc[i].id % NAMES_HASH];

			n->next[i] = *first;
			*first = (uint16_t)(i + 1);
		}
}

/* The first bearer of `id` among location - 1 and those that follow it in its chain, as 1 + location; 0: none. */
static uint32_t bearer_from(const struct names *n, const struct fay_state *s, uint32_t id, uint32_t location)
{
	while (location && s->loc[location - 1].id != id)
		location = n->next[location - 1];
	return location;
}

#define FOR_BEARERS(i, n, s, id) \
	for (uint32_t i##_ = bearer_from(n, s, id, (n)->first[(id) % NAMES_HASH]), i = i##_ - 1; i##_; \
	     i##_ = bearer_from(n, s, id, (n)->next[i]), i = i##_ - 1)

/* What the state knows of S(id + delta), from all that bear the name. False: nobody does. */
static bool term_find(const struct fay_state *s, const struct names *n, uint32_t id, uint64_t delta, struct term *t)
{
	bool found = false;

	*t = (struct term){ .id = id, .delta = delta, .low = INT64_MIN, .high = INT64_MAX, .modulus = 1 };
	FOR_BEARERS(i, n, s, id) {
		struct term v;

		found = true;
		v = term_of(&s->loc[i]);
		if (!shift_term(&v, (int64_t)(delta - v.delta)))
			continue;
		if (v.low > t->low)
			t->low = v.low;
		if (v.high < t->high)
			t->high = v.high;
		if (!v.modulus || v.modulus > t->modulus) {
			t->modulus = v.modulus;
			t->remainder = v.remainder;
		}
	}
	return found && t->low <= t->high;
}

static wide residue(wide x, uint64_t m)
{
	wide r = x % (wide)m;

	return r < 0 ? r + (wide)m : r;
}

/* The nearest numbers within that the congruences of both terms allow. */
static void tighten(struct sum *sum, const struct term *x, int64_t a, const struct term *y, int64_t b)
{
	uint64_t g;
	wide r;

	if (x->modulus > (uint64_t)1 << 31 || y->modulus > (uint64_t)1 << 31)
		return;
	g = gcd(magnitude(a) * x->modulus, magnitude(b) * y->modulus);
	if (g <= 1)
		return;
	r = (wide)a * (x->modulus ? (wide)x->remainder : x->low) + (wide)b * (y->modulus ? (wide)y->remainder : y->low);
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
 * The bounds that relation r gives for a * x + b * y, if it is about these terms with these factors (or both negated): the
 * distances are moved to r's where the terms' intervals allow it.
 */
static bool by_relation(const struct fay_relation *r, const struct term *x, int64_t a, const struct term *y, int64_t b, struct sum *sum)
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
	if (!shift_term(&mx, (int64_t)(r->dx - rx->delta)) || !shift_term(&my, (int64_t)(r->dy - ry->delta)))
		return false;
	moved = (wide)r->a * (int64_t)(r->dx - rx->delta) + (wide)r->b * (int64_t)(r->dy - ry->delta);
	lo = r->lo == INT64_MIN ? -wide_none : r->lo - moved;
	hi = r->hi == INT64_MAX ? wide_none : r->hi - moved;
	*sum = r->a == ra ? (struct sum){ lo, hi } : (struct sum){ -hi, -lo };
	return true;
}

/* Bounds of a * x + b * y in state s. */
static struct sum evaluate(const struct fay_state *s, const struct term *x, int64_t a, const struct term *y, int64_t b)
{
	struct sum best = by_intervals(x, a, y, b), other;

	if (x->id && x->id == y->id && a == -b) {
		struct term moved = *y;
		int64_t apart = (int64_t)(x->delta - y->delta);

		if (shift_term(&moved, apart))
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
	tighten(&best, x, a, y, b);
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

		if (old->x != r->x || old->y != r->y || old->a != r->a || old->b != r->b || old->dx != r->dx || old->dy != r->dy)
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

void fay_relations_add(struct fay_state *s, const struct fay_value *x, int64_t a, const struct fay_value *y, int64_t b, int64_t lo, int64_t hi)
{
	struct fay_relation r = { .x = x->id, .y = y->id, .dx = x->delta, .dy = y->delta, .a = a, .b = b, .lo = lo, .hi = hi };
	struct term tx, ty;
	struct sum plain;

	if (s->plain || !related(x) || !related(y) || x->id == y->id)
		return;
	/* A constant may be a loop's variable on its first round: a join will ask. */
	if ((fay_scalar_is_const(&x->s) && !borne(s, x->id)) || (fay_scalar_is_const(&y->s) && !borne(s, y->id)))
		return;
	if (!a || !b || magnitude(a) > (uint64_t)FACTOR_MAX || magnitude(b) > (uint64_t)FACTOR_MAX)
		return;
	tx = term_of(x);
	ty = term_of(y);
	plain = by_intervals(&tx, a, &ty, b);
	if (open_low(lo) <= plain.lo && open_high(hi) >= plain.hi && !fay_scalar_is_const(&x->s) && !fay_scalar_is_const(&y->s))
		return;
	normalise(&r);
	insert(s, &r);
}

void fay_relations_difference(const struct fay_state *s, const struct fay_value *x, const struct fay_value *y, int64_t *lo, int64_t *hi)
{
	struct term tx = term_of(x), ty = term_of(y);
	struct sum sum = evaluate(s, &tx, 1, &ty, -1);

	*lo = clamp_low(sum.lo);
	*hi = clamp_high(sum.hi);
}

void fay_relations_settle(struct fay_state *s)
{
	uint32_t kept = 0;
	struct names names;

	if (s->relation_count)
		names_collect(&names, s);
	for (uint32_t i = 0; i < s->relation_count; i++) {
		struct fay_relation r = s->relations[i];
		struct term x, y;

		if (r.x == r.y)
			continue;
		if ((r.dx || r.dy) && term_find(s, &names, r.x, 0, &x) && term_find(s, &names, r.y, 0, &y)) {
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

/* The readings are what the comparison ordered: 64 bits signed; or, where neither can be negative, of any kind. */
bool fay_relations_compare(struct fay_state *s, enum fay_cc cc, unsigned width, const struct fay_value *x, const struct fay_value *y)
{
	bool positive = x->s.smin >= 0 && y->s.smin >= 0;
	bool same_sign = positive && (width == 64 || (width == 32 && x->s.umax <= INT32_MAX && y->s.umax <= INT32_MAX));
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
	case CC_B: case CC_BE:
		if (positive)
			fay_relations_add(s, x, 1, y, -1, INT64_MIN, cc == CC_B ? -1 : 0);
		return true;
	case CC_A: case CC_AE:
		if (positive)
			fay_relations_add(s, x, 1, y, -1, cc == CC_A ? 1 : 0, INT64_MAX);
		return true;
	case CC_L: case CC_LE:
		if (width == 64 || same_sign)
			fay_relations_add(s, x, 1, y, -1, INT64_MIN, cc == CC_L ? -1 : 0);
		return true;
	case CC_G: case CC_GE:
		if (width == 64 || same_sign)
			fay_relations_add(s, x, 1, y, -1, cc == CC_G ? 1 : 0, INT64_MAX);
		return true;
	default:
		return true;
	}
}

/* ---- reduction ---- */

/* Everyone who bears the name learns that S(id + delta) lies in [lo, hi]. */
static bool teach(struct fay_state *s, const struct names *n, uint32_t id, uint64_t delta, wide lo, wide hi)
{
	FOR_BEARERS(i, n, s, id) {
		struct fay_value *v = &s->loc[i];
		struct fay_scalar range;
		wide k = (int64_t)(v->delta - delta);

		if (lo + k < INT64_MIN || hi + k > INT64_MAX)
			continue;
		if (lo + k <= v->s.smin && hi + k >= v->s.smax)
			continue;
		range = fay_scalar_srange((int64_t)(lo + k), (int64_t)(hi + k));
		if (!fay_scalar_meet(&v->s, &range))
			return false;
	}
	return true;
}

/* Bounds of one side: (bounds of the sum - the other side) / factor. */
static bool solve(struct fay_state *s, const struct names *n, const struct sum *sum, const struct term *of, int64_t a, const struct term *other, int64_t b,
		  bool *changed)
{
	wide least = (wide)b * (b < 0 ? other->high : other->low), most = (wide)b * (b < 0 ? other->low : other->high);
	bool has_low = sum->lo > -wide_none, has_high = sum->hi < wide_none;
	wide from = -wide_none, to = wide_none;

	if (a > 0 ? has_low : has_high)
		from = ceil_divide(a > 0 ? sum->lo - most : sum->hi - least, a);
	if (a > 0 ? has_high : has_low)
		to = floor_divide(a > 0 ? sum->hi - least : sum->lo - most, a);
	from = from > of->low ? from : of->low;
	to = to < of->high ? to : of->high;
	if (from > to)
		return false;
	if (from == of->low && to == of->high)
		return true;
	*changed = true;
	return teach(s, n, of->id, of->delta, from, to);
}

bool fay_relations_reduce(struct fay_state *s)
{
	bool changed = s->relation_count > 0;
	struct names names;

	if (changed)
		names_collect(&names, s);
	for (int round = 0; round < 2 && changed; round++) {
		changed = false;
		for (uint32_t i = 0; i < s->relation_count; i++) {
			const struct fay_relation *r = &s->relations[i];
			struct term x, y;
			struct sum sum = { open_low(r->lo), open_high(r->hi) };

			if (!term_find(s, &names, r->x, r->dx, &x) || !term_find(s, &names, r->y, r->dy, &y))
				continue;
			tighten(&sum, &x, r->a, &y, r->b);
			if (!solve(s, &names, &sum, &x, r->a, &y, r->b, &changed))
				return false;
			if (!term_find(s, &names, r->x, r->dx, &x) || !solve(s, &names, &sum, &y, r->b, &x, r->a, &changed))
				return false;
		}
	}
	return true;
}

/* ---- joins, inclusion, widening ---- */

static struct sum evaluate_at(const struct fay_state *s, uint32_t x, int64_t a, uint32_t y, int64_t b)
{
	struct term tx = term_of(&s->loc[x]), ty = term_of(&s->loc[y]);

	return evaluate(s, &tx, a, &ty, b);
}

static void offer(struct fay_relation_join *join, const struct fay_state *s, const struct fay_state *t, uint32_t x, int64_t a, uint32_t y,
		  int64_t b)
{
	struct sum one, two;

	if (join->count == FAY_MAX_RELATIONS || x == y || !related(&s->loc[x]) || !related(&s->loc[y]) || !related(&t->loc[x]) ||
	    !related(&t->loc[y]))
		return;
	for (uint32_t i = 0; i < join->count; i++)
		if (join->list[i].x == x && join->list[i].y == y && join->list[i].a == a && join->list[i].b == b)
			return;
	one = evaluate_at(s, x, a, y, b);
	two = evaluate_at(t, x, a, y, b);
	one.lo = one.lo < two.lo ? one.lo : two.lo;
	one.hi = one.hi > two.hi ? one.hi : two.hi;
	if (one.lo < -FAR && one.hi > FAR)
		return;
	join->list[join->count].x = x;
	join->list[join->count].y = y;
	join->list[join->count].a = a;
	join->list[join->count].b = b;
	join->list[join->count].lo = one.lo < -FAR ? INT64_MIN : clamp_low(one.lo);
	join->list[join->count++].hi = one.hi > FAR ? INT64_MAX : clamp_high(one.hi);
}

static uint32_t bearers(const struct fay_state *s, const struct names *n, uint32_t id, uint32_t found[BEARERS])
{
	uint32_t count = 0;

	FOR_BEARERS(i, n, s, id)
		if (count < BEARERS && !is_flags(i))
			found[count++] = i;
	return count;
}

static void offer_all(struct fay_relation_join *join, const struct fay_state *of, const struct fay_state *other)
{
	struct names names;

	if (of->relation_count)
		names_collect(&names, of);
	for (uint32_t i = 0; i < of->relation_count; i++) {
		const struct fay_relation *r = &of->relations[i];
		uint32_t xs[BEARERS], ys[BEARERS], nx = bearers(of, &names, r->x, xs), ny = bearers(of, &names, r->y, ys);

		for (uint32_t k = 0; k < nx * ny; k++) {
			uint32_t x = xs[k / ny], y = ys[k % ny];

			if (x < y)
				offer(join, of, other, x, r->a, y, r->b);
			else if (r->b > 0)
				offer(join, of, other, y, r->b, x, r->a);
			else
				offer(join, of, other, y, -r->b, x, -r->a);
		}
	}
}

void fay_relations_gather(struct fay_relation_join *join, const struct fay_state *a, const struct fay_state *b,
			  const struct fay_join_plan *plan)
{
	join->count = 0;
	for (uint32_t i = 0; !plan->settle && i < plan->template_count; i++) {
		const struct fay_template *t = &plan->templates[i];

		if (t->x < a->count && t->y < a->count)
			offer(join, a, b, t->x, t->a, t->y, t->b);
	}
	offer_all(join, a, b);
	if (!plan->settle)
		offer_all(join, b, a);
}

void fay_relations_scatter(const struct fay_relation_join *join, struct fay_state *joined)
{
	joined->relation_count = 0;
	for (uint32_t i = 0; i < join->count; i++)
		if (!fay_scalar_is_const(&joined->loc[join->list[i].x].s) || !fay_scalar_is_const(&joined->loc[join->list[i].y].s))
			fay_relations_add(joined, &joined->loc[join->list[i].x], join->list[i].a, &joined->loc[join->list[i].y],
					  join->list[i].b, join->list[i].lo, join->list[i].hi);
}

static bool within(const struct fay_state *s, const struct term *x, const struct term *y, const struct fay_relation *r)
{
	struct sum sum = evaluate(s, x, r->a, y, r->b);

	return sum.lo >= open_low(r->lo) && sum.hi <= open_high(r->hi);
}

/* A location that bears the name at this very distance, or UINT32_MAX: what holds of it need not be moved, which the bounds may not allow. */
static uint32_t bearer_at(const struct fay_state *s, uint32_t id, uint64_t delta)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->loc[i].id == id && s->loc[i].delta == delta && related(&s->loc[i]) && !is_flags(i))
			return i;
	return UINT32_MAX;
}

static bool include_one(const struct fay_state *outer, const struct fay_state *inner, const struct fay_relation *r)
{
	struct term x = term_of(&inner->loc[r->x - 1]), y = term_of(&inner->loc[r->y - 1]);
	uint32_t at_x, at_y;

	move_term(&x, (int64_t)r->dx);
	move_term(&y, (int64_t)r->dy);
	if (within(inner, &x, &y, r))
		return true;
	at_x = bearer_at(outer, r->x, r->dx);
	at_y = bearer_at(outer, r->y, r->dy);
	if (at_x != UINT32_MAX && related(&inner->loc[at_x]))
		x = term_of(&inner->loc[at_x]);
	if (at_y != UINT32_MAX && related(&inner->loc[at_y]))
		y = term_of(&inner->loc[at_y]);
	return within(inner, &x, &y, r);
}

static bool shows(const struct fay_state *outer, const struct fay_state *inner, const struct fay_relation *r)
{
	return r->x <= outer->count && r->y <= outer->count && related(&inner->loc[r->x - 1]) && related(&inner->loc[r->y - 1]) &&
	       include_one(outer, inner, r);
}

bool fay_relations_include(const struct fay_state *outer, const struct fay_state *inner)
{
	for (uint32_t i = 0; i < outer->relation_count; i++)
		if (!shows(outer, inner, &outer->relations[i]))
			return false;
	return true;
}

void fay_relations_keep_shown(struct fay_state *outer, const struct fay_state *inner)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < outer->relation_count; i++)
		if (shows(outer, inner, &outer->relations[i]))
			outer->relations[kept++] = outer->relations[i];
	outer->relation_count = kept;
}

static const struct fay_relation *same_in(const struct fay_state *s, const struct fay_relation *r)
{
	for (uint32_t i = 0; i < s->relation_count; i++) {
		const struct fay_relation *o = &s->relations[i];

		if (o->x == r->x && o->y == r->y && o->dx == r->dx && o->dy == r->dy && o->a == r->a && o->b == r->b)
			return o;
	}
	return NULL;
}

void fay_relations_widen(struct fay_state *joined, const struct fay_state *old, unsigned round)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < joined->relation_count; i++) {
		struct fay_relation r = joined->relations[i];
		const struct fay_relation *o = same_in(old, &r);

		if (!o && round > 8)
			continue;
		if (o && r.lo < o->lo)
			r.lo = r.lo > 0 && round < 6 ? 1 : INT64_MIN;
		if (o && r.hi > o->hi)
			r.hi = r.hi < 0 && round < 6 ? -1 : INT64_MAX;
		if (r.lo != INT64_MIN || r.hi != INT64_MAX)
			joined->relations[kept++] = r;
	}
	joined->relation_count = kept;
}
