/* SPDX-License-Identifier: MIT */
/* What the two files on sets of numbers share: domain.c (the sets) and domain_arithmetic.c
 * (operations on their members). */
#ifndef FAY_VERIFIER_DOMAIN_PARTS_H
#define FAY_VERIFIER_DOMAIN_PARTS_H

#include "domain.h"
#include "integers.h"

#define MODULUS_MAX ((uint64_t)1 << 31)

/* x modulo m as a number in [0, m). */
static inline uint64_t modulo(wide x, uint64_t m)
{
	wide r = x % (wide)m;

	return (uint64_t)(r < 0 ? r + (wide)m : r);
}

/* The same for a number of 64 bits and a modulus of at most MODULUS_MAX. */
static inline uint64_t modulo_small(int64_t x, uint64_t m)
{
	int64_t r = x % (int64_t)m;

	return (uint64_t)(r < 0 ? r + (int64_t)m : r);
}

/* The modulus as the lattice sees it: 0 for a single number. */
static inline uint64_t lattice_modulus(const struct fay_scalar *s)
{
	return fay_scalar_is_const(s) ? 0 : s->modulus;
}
static inline uint64_t lattice_remainder(const struct fay_scalar *s, uint64_t m)
{
	if (!fay_scalar_is_const(s))
		return s->remainder % m;
	return m <= MODULUS_MAX ? modulo_small((int64_t)s->umin, m) : modulo((int64_t)s->umin, m);
}

static inline void set_modulus(struct fay_scalar *s, uint64_t m, uint64_t remainder)
{
	if (m > 1 && m <= MODULUS_MAX) {
		s->modulus = m;
		s->remainder = remainder % m;
	} else {
		s->modulus = 1;
		s->remainder = 0;
	}
}

#endif
