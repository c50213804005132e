/* SPDX-License-Identifier: MIT */
/*
 * Sets of 64-bit numbers: see domain.h. Nothing here allocates, loops over input or can fail;
 * tests/verifier/analysis/test_domain.c compares every operation with the concrete one on random
 * members. domain_arithmetic.c has the arithmetic.
 *
 * Limits: the congruence is kept for moduli up to 2^31 and given up where an operation may wrap.
 */
#include "domain_parts.h"

#include <inttypes.h>
#include <stdio.h>

#define SIGN_BIT ((uint64_t)1 << 63)

struct fay_scalar fay_scalar_range(uint64_t umin, uint64_t umax)
{
	struct fay_scalar s = fay_scalar_top();

	s.umin = umin;
	s.umax = umax;
	if (umin == 0 && umax <= INT64_MAX && (umax & (umax + 1)) == 0) { /* as normalised */
		s.unknown = umax;
		s.smin = 0;
		s.smax = (int64_t)umax;
	}
	fay_scalar_normalise(&s);
	return s;
}

struct fay_scalar fay_scalar_srange(int64_t smin, int64_t smax)
{
	struct fay_scalar s = fay_scalar_top();

	s.smin = smin;
	s.smax = smax;
	fay_scalar_normalise(&s);
	return s;
}

/* Known bits that follow from the common prefix of both bounds. False if they contradict what is
 * known. */
static bool tighten_bits(struct fay_scalar *s)
{
	uint64_t differ = s->umin ^ s->umax;
	uint64_t free_bits = differ ? UINT64_MAX >> __builtin_clzll(differ) : 0;
	uint64_t newly = s->unknown & ~free_bits;

	if ((s->value ^ s->umin) & ~free_bits & ~s->unknown)
		return false;
	s->value |= s->umin & newly;
	s->unknown &= free_bits;
	return true;
}

static bool tighten_unsigned(struct fay_scalar *s)
{
	uint64_t step;

	s->umin = max_u(s->umin, s->value);
	s->umax = min_u(s->umax, s->value | s->unknown);
	if (s->umin > s->umax)
		return false;
	/* Known low bits: the bounds themselves must have them. */
	if (s->unknown && !(s->unknown & 1)) {
		step = s->unknown & -s->unknown;
		uint64_t up = (s->value - s->umin) & (step - 1),
			 down = (s->umax - s->value) & (step - 1);

		if (up > s->umax - s->umin || down > s->umax - s->umin)
			return false;
		s->umin += up;
		s->umax -= down;
	}
	return s->umin <= s->umax;
}

static bool tighten_signed(struct fay_scalar *s)
{
	uint64_t low = s->value, high = s->value | s->unknown;

	if (s->unknown & SIGN_BIT) {
		low |= SIGN_BIT;
		high &= ~SIGN_BIT;
	}
	s->smin = max_s(s->smin, (int64_t)low);
	s->smax = min_s(s->smax, (int64_t)high);
	if ((int64_t)s->umin <= (int64_t)s->umax) {
		s->smin = max_s(s->smin, (int64_t)s->umin);
		s->smax = min_s(s->smax, (int64_t)s->umax);
	}
	if (s->smin > s->smax)
		return false;
	if (s->modulus > 1) {
		uint64_t m = s->modulus, first = modulo_small(s->smin, m),
			 last = modulo_small(s->smax, m);
		wide up = (wide)s->smin +
			  (s->remainder >= first ? s->remainder - first : s->remainder + m - first);
		wide down = (wide)s->smax -
			    (last >= s->remainder ? last - s->remainder : last + m - s->remainder);

		if (up > down)
			return false;
		s->smin = (int64_t)up;
		s->smax = (int64_t)down;
	}
	if (s->smin >= 0 || s->smax < 0) {
		s->umin = max_u(s->umin, (uint64_t)s->smin);
		s->umax = min_u(s->umax, (uint64_t)s->smax);
	}
	return s->umin <= s->umax;
}

bool fay_scalar_normalise(struct fay_scalar *s)
{
	/* The most frequent sets have nothing to be tightened: one number, every number, every
	 * number of so many bits. */
	if (s->modulus == 1) {
		if (s->value == 0 && s->umin == 0 && s->umax == s->unknown &&
		    (s->unknown & (s->unknown + 1)) == 0 && s->smin == 0 && s->smax >= 0 &&
		    (uint64_t)s->smax == s->unknown)
			return true;
		if (s->unknown == 0 && s->umin == s->value && s->umax == s->value &&
		    s->smin == (int64_t)s->value && s->smax == s->smin)
			return true;
		if (s->unknown == UINT64_MAX && s->umin == 0 && s->umax == UINT64_MAX &&
		    s->smin == INT64_MIN && s->smax == INT64_MAX)
			return true;
	}
	for (int round = 0; round < 4; round++) {
		uint64_t umin, umax, unknown = s->unknown;

		if (!tighten_unsigned(s))
			return false;
		umin = s->umin;
		umax = s->umax;
		if (!tighten_signed(s) || !tighten_bits(s))
			return false;
		/* Each of the three has seen what the others left: another round would change
		 * nothing. */
		if (umin == s->umin && umax == s->umax && unknown == s->unknown)
			break;
	}
	if (s->umin == s->umax) {
		if ((int64_t)s->umin < s->smin || (int64_t)s->umin > s->smax)
			return false;
		*s = fay_scalar_const(s->umin);
	}
	return true;
}

/* Chinese remainder for the one easy case: one modulus divides the other; otherwise the larger one
 * is kept. */
static bool meet_congruence(struct fay_scalar *to, const struct fay_scalar *with)
{
	if (with->modulus <= 1)
		return true;
	if (to->modulus % with->modulus == 0)
		return to->remainder % with->modulus == with->remainder;
	if (with->modulus % to->modulus == 0 && with->remainder % to->modulus != to->remainder)
		return false;
	if (with->modulus > to->modulus) {
		to->modulus = with->modulus;
		to->remainder = with->remainder;
	}
	return true;
}

bool fay_scalar_meet(struct fay_scalar *to, const struct fay_scalar *with)
{
	uint64_t both_known = ~to->unknown & ~with->unknown;

	/* One within the other: nothing is to be made to agree. */
	if (fay_scalar_includes(with, to))
		return true;
	if (fay_scalar_includes(to, with)) {
		*to = *with;
		return true;
	}
	if ((to->value ^ with->value) & both_known)
		return false;
	to->value |= with->value;
	to->unknown &= with->unknown;
	to->umin = max_u(to->umin, with->umin);
	to->umax = min_u(to->umax, with->umax);
	to->smin = max_s(to->smin, with->smin);
	to->smax = min_s(to->smax, with->smax);
	if (to->umin > to->umax || to->smin > to->smax || !meet_congruence(to, with))
		return false;
	return fay_scalar_normalise(to);
}

struct fay_scalar fay_scalar_join(const struct fay_scalar *a, const struct fay_scalar *b)
{
	uint64_t differ = (a->value ^ b->value) | a->unknown | b->unknown;

	if (fay_scalar_equal(a, b))
		return *a;
	struct fay_scalar s = {
		.value = a->value & ~differ,
		.unknown = differ,
		.umin = min_u(a->umin, b->umin),
		.umax = max_u(a->umax, b->umax),
		.smin = min_s(a->smin, b->smin),
		.smax = max_s(a->smax, b->smax),
		.modulus = 1,
	};
	uint64_t m = gcd(lattice_modulus(a), lattice_modulus(b));

	if (m != 1) {
		int64_t ra = fay_scalar_is_const(a) ? (int64_t)a->umin : (int64_t)a->remainder;
		int64_t rb = fay_scalar_is_const(b) ? (int64_t)b->umin : (int64_t)b->remainder;
		wide apart = (wide)ra - rb;

		if (apart < 0)
			apart = -apart;
		if (apart <= UINT64_MAX) {
			m = gcd(m, (uint64_t)apart);
			if (m > 1)
				set_modulus(&s, m, modulo(ra, m));
		}
	}
	fay_scalar_normalise(&s);
	return s;
}

bool fay_scalar_includes(const struct fay_scalar *outer, const struct fay_scalar *inner)
{
	if (inner->unknown & ~outer->unknown)
		return false;
	if ((inner->value ^ outer->value) & ~outer->unknown)
		return false;
	if (inner->umin < outer->umin || inner->umax > outer->umax || inner->smin < outer->smin ||
	    inner->smax > outer->smax)
		return false;
	if (outer->modulus > 1 && !fay_scalar_is_const(outer)) {
		if (fay_scalar_is_const(inner))
			return modulo((int64_t)inner->umin, outer->modulus) == outer->remainder;
		return inner->modulus % outer->modulus == 0 &&
		       inner->remainder % outer->modulus == outer->remainder;
	}
	return true;
}

bool fay_scalar_contains(const struct fay_scalar *s, uint64_t number)
{
	struct fay_scalar one = fay_scalar_const(number);

	return fay_scalar_includes(s, &one);
}

/* No more than `most`, no less than `least`: what holds already is not looked at again. */
static bool at_most(struct fay_scalar *s, uint64_t most)
{
	if (s->umax <= most)
		return true;
	s->umax = most;
	return s->umin <= s->umax && fay_scalar_normalise(s);
}

static bool at_least(struct fay_scalar *s, uint64_t least)
{
	if (s->umin >= least)
		return true;
	s->umin = least;
	return s->umin <= s->umax && fay_scalar_normalise(s);
}

static bool at_most_signed(struct fay_scalar *s, int64_t most)
{
	if (s->smax <= most)
		return true;
	s->smax = most;
	return s->smin <= s->smax && fay_scalar_normalise(s);
}

static bool at_least_signed(struct fay_scalar *s, int64_t least)
{
	if (s->smin >= least)
		return true;
	s->smin = least;
	return s->smin <= s->smax && fay_scalar_normalise(s);
}

bool fay_scalar_assume_ult(struct fay_scalar *x, struct fay_scalar *y)
{
	uint64_t least = x->umin;

	return y->umax != 0 && least != UINT64_MAX && at_most(x, y->umax - 1) &&
	       at_least(y, least + 1);
}

bool fay_scalar_assume_ule(struct fay_scalar *x, struct fay_scalar *y)
{
	uint64_t least = x->umin;

	return at_most(x, y->umax) && at_least(y, least);
}

bool fay_scalar_assume_slt(struct fay_scalar *x, struct fay_scalar *y)
{
	int64_t least = x->smin;

	return y->smax != INT64_MIN && least != INT64_MAX && at_most_signed(x, y->smax - 1) &&
	       at_least_signed(y, least + 1);
}

bool fay_scalar_assume_sle(struct fay_scalar *x, struct fay_scalar *y)
{
	int64_t least = x->smin;

	return at_most_signed(x, y->smax) && at_least_signed(y, least);
}

bool fay_scalar_assume_eq(struct fay_scalar *x, struct fay_scalar *y)
{
	if (!fay_scalar_meet(x, y))
		return false;
	*y = *x;
	return true;
}

/* Removes one number where it is a bound. */
static bool exclude(struct fay_scalar *s, uint64_t number)
{
	if (s->umin == s->umax)
		return s->umin != number;
	if (s->umin == number)
		s->umin++;
	if (s->umax == number)
		s->umax--;
	if (s->smin == (int64_t)number)
		s->smin++;
	if (s->smax == (int64_t)number)
		s->smax--;
	return s->umin <= s->umax && s->smin <= s->smax && fay_scalar_normalise(s);
}

bool fay_scalar_assume_ne(struct fay_scalar *x, struct fay_scalar *y)
{
	if (fay_scalar_is_const(y) && !exclude(x, y->umin))
		return false;
	if (fay_scalar_is_const(x) && !exclude(y, x->umin))
		return false;
	return true;
}

const char *fay_scalar_print(const struct fay_scalar *s, char *buffer, unsigned size)
{
	char stride[32] = "";

	if (s->modulus > 1 && !fay_scalar_is_const(s))
		snprintf(stride, sizeof(stride), " step %" PRIu64, s->modulus);
	if (fay_scalar_is_const(s))
		snprintf(buffer, size, "%" PRId64, (int64_t)s->umin);
	else if (s->umin == 0 && s->umax == UINT64_MAX && s->smin == INT64_MIN &&
		 s->smax == INT64_MAX)
		snprintf(buffer, size, "anything");
	else if (s->smin < 0 && s->smax - (uint64_t)s->smin < s->umax - s->umin)
		snprintf(buffer, size, "[%" PRId64 ", %" PRId64 "]%s", s->smin, s->smax, stride);
	else
		snprintf(buffer, size, "[%" PRIu64 ", %" PRIu64 "]%s", s->umin, s->umax, stride);
	return buffer;
}
