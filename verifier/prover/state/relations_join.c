/* SPDX-License-Identifier: MIT */
/*
 * Relations where states meet: candidates for a join, kept with bounds that both sides show;
 * whether one state shows what another says; and widening, which gives up bounds that still move.
 */
#include "relations_parts.h"

#define FAR ((wide)1 << 62) /* bounds beyond are no use */
#define BEARERS 3u          /* locations looked at for each name in a join */

/* t + k; if it may wrap, nothing is known but the name. */
static void move_term(struct term *t, int64_t k)
{
	if (!fay_term_shift(t, k))
		*t = (struct term){ .id = t->id,
				    .delta = t->delta + (uint64_t)k,
				    .low = INT64_MIN,
				    .high = INT64_MAX,
				    .modulus = 1 };
}

static struct sum evaluate_at(const struct fay_state *s, uint32_t x, int64_t a, uint32_t y,
			      int64_t b)
{
	struct term tx = fay_term_of(&s->loc[x]), ty = fay_term_of(&s->loc[y]);

	return fay_relations_evaluate(s, &tx, a, &ty, b);
}

static void offer(struct fay_relation_join *join, const struct fay_state *s,
		  const struct fay_state *t, uint32_t x, int64_t a, uint32_t y, int64_t b)
{
	struct sum one, two;

	if (join->count == FAY_MAX_RELATIONS || x == y || !related(&s->loc[x]) ||
	    !related(&s->loc[y]) || !related(&t->loc[x]) || !related(&t->loc[y]))
		return;
	for (uint32_t i = 0; i < join->count; i++)
		if (join->list[i].x == x && join->list[i].y == y && join->list[i].a == a &&
		    join->list[i].b == b)
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

static uint32_t bearers(const struct fay_state *s, const struct names *n, uint32_t id,
			uint32_t found[BEARERS])
{
	uint32_t count = 0;

	FOR_BEARERS(i, n, s, id)
	if (count < BEARERS && !is_flags(i))
		found[count++] = i;
	return count;
}

static void offer_all(struct fay_relation_join *join, const struct fay_state *of,
		      const struct fay_state *other)
{
	struct names names;

	if (of->relation_count)
		fay_names_collect(&names, of);
	for (uint32_t i = 0; i < of->relation_count; i++) {
		const struct fay_relation *r = &of->relations[i];
		uint32_t xs[BEARERS], ys[BEARERS], nx = bearers(of, &names, r->x, xs),
						   ny = bearers(of, &names, r->y, ys);

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

void fay_relations_gather(struct fay_relation_join *join, const struct fay_state *a,
			  const struct fay_state *b, const struct fay_join_plan *plan)
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
		if (!fay_scalar_is_const(&joined->loc[join->list[i].x].s) ||
		    !fay_scalar_is_const(&joined->loc[join->list[i].y].s))
			fay_relations_add(joined, &joined->loc[join->list[i].x], join->list[i].a,
					  &joined->loc[join->list[i].y], join->list[i].b,
					  join->list[i].lo, join->list[i].hi);
}

static bool within(const struct fay_state *s, const struct term *x, const struct term *y,
		   const struct fay_relation *r)
{
	struct sum sum = fay_relations_evaluate(s, x, r->a, y, r->b);

	return sum.lo >= open_low(r->lo) && sum.hi <= open_high(r->hi);
}

/* A location that bears the name at this very distance, or UINT32_MAX: what holds of it need not be
 * moved, which the bounds may not allow. */
static uint32_t bearer_at(const struct fay_state *s, uint32_t id, uint64_t delta)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->loc[i].id == id && s->loc[i].delta == delta && related(&s->loc[i]) &&
		    !is_flags(i))
			return i;
	return UINT32_MAX;
}

static bool include_one(const struct fay_state *outer, const struct fay_state *inner,
			const struct fay_relation *r)
{
	struct term x = fay_term_of(&inner->loc[r->x - 1]), y = fay_term_of(&inner->loc[r->y - 1]);
	uint32_t at_x, at_y;

	move_term(&x, (int64_t)r->dx);
	move_term(&y, (int64_t)r->dy);
	if (within(inner, &x, &y, r))
		return true;
	at_x = bearer_at(outer, r->x, r->dx);
	at_y = bearer_at(outer, r->y, r->dy);
	if (at_x != UINT32_MAX && related(&inner->loc[at_x]))
		x = fay_term_of(&inner->loc[at_x]);
	if (at_y != UINT32_MAX && related(&inner->loc[at_y]))
		y = fay_term_of(&inner->loc[at_y]);
	return within(inner, &x, &y, r);
}

static bool shows(const struct fay_state *outer, const struct fay_state *inner,
		  const struct fay_relation *r)
{
	return r->x <= outer->count && r->y <= outer->count && related(&inner->loc[r->x - 1]) &&
	       related(&inner->loc[r->y - 1]) && include_one(outer, inner, r);
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

		if (o->x == r->x && o->y == r->y && o->dx == r->dx && o->dy == r->dy &&
		    o->a == r->a && o->b == r->b)
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
