/* SPDX-License-Identifier: MIT */
/* Widening of one set of numbers: what still grows is let go, as far as the next threshold. */
#include "domain_parts.h"

static int64_t threshold_up(const struct fay_thresholds *t, int64_t from, int64_t otherwise)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (t->values[i] >= from)
			return t->values[i];
	return otherwise;
}

static int64_t threshold_down(const struct fay_thresholds *t, int64_t from, int64_t otherwise)
{
	for (uint32_t i = t->count; i-- > 0;)
		if (t->values[i] <= from)
			return t->values[i];
	return otherwise;
}

struct fay_scalar fay_scalar_widen(const struct fay_scalar *old, const struct fay_scalar *joined,
				   const struct fay_thresholds *t)
{
	struct fay_scalar s = *joined;
	uint64_t changed = joined->unknown & ~old->unknown;

	if (changed) {
		/* Give up every bit from the lowest new unknown one up: the bounds say again which
		 * high bits are zero. */
		uint64_t above = ~((changed & -changed) - 1);

		s.unknown |= above;
		s.value &= ~above;
	}
	if (joined->umax > old->umax) {
		s.umax = UINT64_MAX;
		if (joined->umax <= INT64_MAX)
			s.umax = (uint64_t)threshold_up(t, (int64_t)joined->umax, -1);
	}
	if (joined->umin < old->umin) {
		s.umin = 0;
		if (joined->umin <= INT64_MAX) {
			int64_t down = threshold_down(t, (int64_t)joined->umin, 0);

			s.umin = down > 0 ? (uint64_t)down : 0;
		}
	}
	if (joined->smax > old->smax)
		s.smax = threshold_up(t, joined->smax, INT64_MAX);
	if (joined->smin < old->smin)
		s.smin = threshold_down(t, joined->smin, INT64_MIN);
	fay_scalar_normalise(&s);
	return s;
}
