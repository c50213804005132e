/* SPDX-License-Identifier: MIT */
/*
 * Arithmetic on sets of 64-bit numbers: the result contains the concrete one for every choice of
 * members. What is kept of a sum or product that may wrap are the views in which it does not.
 */
#include "domain_parts.h"

static uint64_t width_mask(unsigned width)
{
	return width >= 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
}

struct fay_scalar fay_scalar_zext(const struct fay_scalar *s, unsigned width)
{
	uint64_t mask = width_mask(width);
	struct fay_scalar r = fay_scalar_top();

	if (s->umax <= mask)
		return *s;
	r.value = s->value & mask;
	r.unknown = s->unknown & mask;
	r.umax = mask;
	if (s->umin >> width == s->umax >> width) {
		r.umin = s->umin & mask;
		r.umax = s->umax & mask;
	} else if (s->smin >> width == s->smax >> width) {
		r.umin = (uint64_t)s->smin & mask;
		r.umax = (uint64_t)s->smax & mask;
	}
	fay_scalar_normalise(&r);
	return r;
}

struct fay_scalar fay_scalar_sext(const struct fay_scalar *s, unsigned width)
{
	uint64_t mask = width_mask(width), sign = (uint64_t)1 << (width - 1);
	struct fay_scalar z, r;

	if (width >= 64 || (s->smin >= -(int64_t)sign && s->smax < (int64_t)sign))
		return *s;
	z = fay_scalar_zext(s, width);
	if (z.umax < sign)
		return z;
	if (z.umin >= sign) {
		r = fay_scalar_const(~mask);
		return fay_scalar_add(&z, &r);
	}
	r = fay_scalar_top();
	r.value = z.value & ~sign;
	r.unknown = z.unknown | ~mask | sign;
	r.smin = -(int64_t)sign;
	r.smax = (int64_t)(sign - 1);
	fay_scalar_normalise(&r);
	return r;
}

static void bits_add(struct fay_scalar *s, const struct fay_scalar *a, const struct fay_scalar *b)
{
	uint64_t masks = a->unknown + b->unknown, values = a->value + b->value;
	uint64_t chi = (masks + values) ^ values, mu = chi | a->unknown | b->unknown;

	s->value = values & ~mu;
	s->unknown = mu;
}

static void bits_sub(struct fay_scalar *s, const struct fay_scalar *a, const struct fay_scalar *b)
{
	uint64_t dv = a->value - b->value, alpha = dv + a->unknown, beta = dv - b->unknown;
	uint64_t chi = alpha ^ beta, mu = chi | a->unknown | b->unknown;

	s->value = dv & ~mu;
	s->unknown = mu;
}

struct fay_scalar fay_scalar_add(const struct fay_scalar *a, const struct fay_scalar *b)
{
	struct fay_scalar s = fay_scalar_top();
	uint64_t low, high;
	bool low_wraps = __builtin_add_overflow(a->umin, b->umin, &low),
	     high_wraps = __builtin_add_overflow(a->umax, b->umax, &high);
	int64_t slow, shigh;

	if (fay_scalar_is_const(a) && fay_scalar_is_const(b))
		return fay_scalar_const(low);

	bits_add(&s, a, b);
	if (low_wraps == high_wraps) {
		s.umin = low;
		s.umax = high;
	}
	if (!__builtin_add_overflow(a->smin, b->smin, &slow) &&
	    !__builtin_add_overflow(a->smax, b->smax, &shigh)) {
		uint64_t m = gcd(lattice_modulus(a), lattice_modulus(b));

		s.smin = slow;
		s.smax = shigh;
		if (m > 1)
			set_modulus(&s, m, (lattice_remainder(a, m) + lattice_remainder(b, m)) % m);
	}
	fay_scalar_normalise(&s);
	return s;
}

struct fay_scalar fay_scalar_sub(const struct fay_scalar *a, const struct fay_scalar *b)
{
	struct fay_scalar s = fay_scalar_top();
	uint64_t low, high;
	bool low_wraps = __builtin_sub_overflow(a->umin, b->umax, &low),
	     high_wraps = __builtin_sub_overflow(a->umax, b->umin, &high);
	int64_t slow, shigh;

	if (fay_scalar_is_const(a) && fay_scalar_is_const(b))
		return fay_scalar_const(low);

	bits_sub(&s, a, b);
	if (low_wraps == high_wraps) {
		s.umin = low;
		s.umax = high;
	}
	if (!__builtin_sub_overflow(a->smin, b->smax, &slow) &&
	    !__builtin_sub_overflow(a->smax, b->smin, &shigh)) {
		uint64_t m = gcd(lattice_modulus(a), lattice_modulus(b));

		s.smin = slow;
		s.smax = shigh;
		if (m > 1)
			set_modulus(&s, m,
				    (lattice_remainder(a, m) + m - lattice_remainder(b, m)) % m);
	}
	fay_scalar_normalise(&s);
	return s;
}

struct fay_scalar fay_scalar_and(const struct fay_scalar *a, const struct fay_scalar *b)
{
	struct fay_scalar s = fay_scalar_top();
	uint64_t possible_a = a->value | a->unknown, possible_b = b->value | b->unknown;

	s.value = a->value & b->value;
	s.unknown = possible_a & possible_b & ~s.value;
	s.umax = min_u(a->umax, b->umax);
	fay_scalar_normalise(&s);
	return s;
}

static uint64_t fill_below(uint64_t x)
{
	return x ? UINT64_MAX >> __builtin_clzll(x) : 0;
}

struct fay_scalar fay_scalar_or(const struct fay_scalar *a, const struct fay_scalar *b)
{
	struct fay_scalar s = fay_scalar_top();

	s.value = a->value | b->value;
	s.unknown = (a->unknown | b->unknown) & ~s.value;
	s.umin = max_u(a->umin, b->umin);
	s.umax = fill_below(a->umax | b->umax);
	fay_scalar_normalise(&s);
	return s;
}

struct fay_scalar fay_scalar_xor(const struct fay_scalar *a, const struct fay_scalar *b)
{
	struct fay_scalar s = fay_scalar_top();

	s.unknown = a->unknown | b->unknown;
	s.value = (a->value ^ b->value) & ~s.unknown;
	s.umax = fill_below(a->umax | b->umax);
	fay_scalar_normalise(&s);
	return s;
}

static unsigned low_zeros(const struct fay_scalar *s)
{
	uint64_t possible = s->value | s->unknown;

	return possible ? (unsigned)__builtin_ctzll(possible) : 64;
}

struct fay_scalar fay_scalar_mul(const struct fay_scalar *a, const struct fay_scalar *b)
{
	struct fay_scalar s = fay_scalar_top();
	unsigned zeros = low_zeros(a) + low_zeros(b);
	uwide uhigh = (uwide)a->umax * b->umax;
	wide p[4] = { (wide)a->smin * b->smin, (wide)a->smin * b->smax, (wide)a->smax * b->smin,
		      (wide)a->smax * b->smax };
	wide low = p[0], high = p[0];

	if (fay_scalar_is_const(a) && fay_scalar_is_const(b))
		return fay_scalar_const(a->umin * b->umin);
	if (zeros >= 64)
		return fay_scalar_const(0);
	s.unknown = UINT64_MAX << zeros;
	if (uhigh <= UINT64_MAX) {
		s.umin = a->umin * b->umin;
		s.umax = (uint64_t)uhigh;
	}
	for (int i = 1; i < 4; i++) {
		low = p[i] < low ? p[i] : low;
		high = p[i] > high ? p[i] : high;
	}
	if (low >= INT64_MIN && high <= INT64_MAX) {
		const struct fay_scalar *c = fay_scalar_is_const(a) ? a : b, *x = c == a ? b : a;

		s.smin = (int64_t)low;
		s.smax = (int64_t)high;
		if (fay_scalar_is_const(c) && c->umin && c->umin <= MODULUS_MAX &&
		    x->modulus <= MODULUS_MAX / c->umin)
			set_modulus(&s, x->modulus * c->umin, x->remainder * c->umin);
	}
	fay_scalar_normalise(&s);
	return s;
}

struct fay_scalar fay_scalar_mul_high(const struct fay_scalar *a, const struct fay_scalar *b)
{
	return fay_scalar_range((uint64_t)((uwide)a->umin * b->umin >> 64),
				(uint64_t)((uwide)a->umax * b->umax >> 64));
}

struct fay_scalar fay_scalar_shl(const struct fay_scalar *a, const struct fay_scalar *count)
{
	struct fay_scalar s = fay_scalar_top();
	unsigned least = (unsigned)count->umin, most = (unsigned)count->umax;

	if (fay_scalar_is_const(count)) {
		if (least < 63) {
			struct fay_scalar factor = fay_scalar_const((uint64_t)1 << least);

			s = fay_scalar_mul(a, &factor);
		}
		uint64_t unknown = a->unknown << least, value = a->value << least;
		struct fay_scalar bits = fay_scalar_top();

		bits.unknown = unknown;
		bits.value = value;
		fay_scalar_normalise(&bits);
		fay_scalar_meet(&s, &bits);
		return s;
	}
	unsigned zeros = low_zeros(a) + least;

	if (zeros < 64)
		s.unknown = UINT64_MAX << zeros;
	else
		return fay_scalar_const(0);
	if (a->umax <= UINT64_MAX >> most) {
		s.umin = a->umin << least;
		s.umax = a->umax << most;
	}
	fay_scalar_normalise(&s);
	return s;
}

struct fay_scalar fay_scalar_shr(const struct fay_scalar *a, const struct fay_scalar *count)
{
	struct fay_scalar s = fay_scalar_top();
	unsigned least = (unsigned)count->umin, most = (unsigned)count->umax;

	if (fay_scalar_is_const(count)) {
		s.value = a->value >> least;
		s.unknown = a->unknown >> least;
	}
	s.umin = a->umin >> most;
	s.umax = a->umax >> least;
	fay_scalar_normalise(&s);
	return s;
}

struct fay_scalar fay_scalar_sar(const struct fay_scalar *a, const struct fay_scalar *count)
{
	struct fay_scalar s = fay_scalar_top();
	unsigned least = (unsigned)count->umin, most = (unsigned)count->umax;

	if (fay_scalar_is_const(count)) {
		s.unknown = (uint64_t)((int64_t)a->unknown >> least);
		s.value = (uint64_t)((int64_t)a->value >> least) & ~s.unknown;
	}
	s.smin = a->smin >> (a->smin < 0 ? least : most);
	s.smax = a->smax >> (a->smax < 0 ? most : least);
	fay_scalar_normalise(&s);
	return s;
}

struct fay_scalar fay_scalar_udiv(const struct fay_scalar *a, const struct fay_scalar *b)
{
	return fay_scalar_range(a->umin / b->umax, a->umax / b->umin);
}

struct fay_scalar fay_scalar_urem(const struct fay_scalar *a, const struct fay_scalar *b)
{
	if (a->umax < b->umin)
		return *a;
	return fay_scalar_range(0, min_u(a->umax, b->umax - 1));
}
