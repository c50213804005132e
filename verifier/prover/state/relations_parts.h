/* SPDX-License-Identifier: MIT */
/* What the files on relations share: relations.c (what is learned of two values),
 * relations_reduce.c (what follows of each), relations_join.c (joins, inclusion, widening). */
#ifndef FAY_VERIFIER_RELATIONS_PARTS_H
#define FAY_VERIFIER_RELATIONS_PARTS_H

#include "state.h"
#include "verifier/prover/domain/integers.h"

#define NAMES_HASH 64u

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

static inline wide floor_divide(wide n, int64_t d)
{
	if (d == 1 || d == -1) /* mostly */
		return n * d;
	return n / d - (n % d && (n < 0) != (d < 0));
}

static inline wide ceil_divide(wide n, int64_t d)
{
	return -floor_divide(-n, d);
}

static inline int64_t clamp_low(wide x)
{
	return x <= INT64_MIN ? INT64_MIN : x > INT64_MAX ? INT64_MAX : (int64_t)x;
}
static inline int64_t clamp_high(wide x)
{
	return x >= INT64_MAX ? INT64_MAX : x < INT64_MIN ? INT64_MIN : (int64_t)x;
}
static inline wide open_low(int64_t x)
{
	return x == INT64_MIN ? -wide_none : x;
}
static inline wide open_high(int64_t x)
{
	return x == INT64_MAX ? wide_none : x;
}

static inline bool related(const struct fay_value *v)
{
	return fay_value_numeric(v) && v->init == 0xff && v->id;
}
static inline bool is_flags(uint32_t location)
{
	return location >= LOC_FLAGS_A && location <= LOC_FLAGS_R;
}

/* Who bears which name: chains of 1 + location, ascending, by a hash of the name. */
struct names {
	uint16_t first[NAMES_HASH], next[FAY_MAX_LOCATIONS];
};
_Static_assert(FAY_MAX_LOCATIONS < UINT16_MAX, "a chain holds 1 + any location");

#define FOR_BEARERS(i, n, s, id)                                                                   \
	for (uint32_t i##_ = fay_names_bearer(n, s, id, (n)->first[(id) % NAMES_HASH]),            \
		      i = i##_ - 1;                                                                \
	     i##_; i##_ = fay_names_bearer(n, s, id, (n)->next[i]), i = i##_ - 1)

/* relations.c */
struct term fay_term_of(const struct fay_value *v);
/* t + k without wrapping; false: it may wrap. */
bool fay_term_shift(struct term *t, int64_t k);
void fay_names_collect(struct names *n, const struct fay_state *s);
/* The first bearer of `id` among location - 1 and those that follow it in its chain, as 1 +
 * location; 0: none. */
uint32_t fay_names_bearer(const struct names *n, const struct fay_state *s, uint32_t id,
			  uint32_t location);
/* Bounds of a * x + b * y in state s. */
struct sum fay_relations_evaluate(const struct fay_state *s, const struct term *x, int64_t a,
				  const struct term *y, int64_t b);

/* What the state knows of S(id + delta), from all that bear the name. False: nobody does. */
bool fay_term_find(const struct fay_state *s, const struct names *n, uint32_t id, uint64_t delta,
		   struct term *t);
void fay_sum_tighten(struct sum *sum, const struct term *x, int64_t a, const struct term *y,
		     int64_t b);

#endif
