/* SPDX-License-Identifier: MIT */
/* Reduction: what relations and intervals say of each other. */
#include "relations_parts.h"

/* Everyone who bears the name learns that S(id + delta) lies in [lo, hi]. */
static bool teach(struct fay_state *s, const struct names *n, uint32_t id, uint64_t delta, wide lo,
		  wide hi)
{
	FOR_BEARERS(i, n, s, id)
	{
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

/* Bounds of one side: (bounds of the sum - the other side) / factor. Sets *changed if they are less
 * than was known. */
static bool solve(struct fay_state *s, const struct names *n, const struct sum *sum,
		  const struct term *of, int64_t a, const struct term *other, int64_t b,
		  bool *changed)
{
	wide least = (wide)b * (b < 0 ? other->high : other->low),
	     most = (wide)b * (b < 0 ? other->low : other->high);
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
		fay_names_collect(&names, s);
	for (int round = 0; round < 2 && changed; round++) {
		changed = false;
		for (uint32_t i = 0; i < s->relation_count; i++) {
			const struct fay_relation *r = &s->relations[i];
			struct term x, y;
			struct sum sum = { open_low(r->lo), open_high(r->hi) };
			bool moved = false;

			if (!fay_term_find(s, &names, r->x, r->dx, &x) ||
			    !fay_term_find(s, &names, r->y, r->dy, &y))
				continue;
			fay_sum_tighten(&sum, &x, r->a, &y, r->b);
			if (!solve(s, &names, &sum, &x, r->a, &y, r->b, &moved))
				return false;
			if ((moved && !fay_term_find(s, &names, r->x, r->dx, &x)) ||
			    !solve(s, &names, &sum, &y, r->b, &x, r->a, &moved))
				return false;
			changed |= moved;
		}
	}
	return true;
}
