/* SPDX-License-Identifier: MIT */
/*
 * Relations between two values of one state: lo <= a * x + b * y <= hi, over the integers. See
 * relations.c.
 */
#ifndef FAY_VERIFIER_RELATIONS_H
#define FAY_VERIFIER_RELATIONS_H

#include "verifier/prover/transfer/analysis.h"

/* A pair of locations, with factors, that is worth relating at the head of a loop: a guess, which
 * joins put to the proof. */
struct fay_template {
	uint32_t node; /* the loop's head */
	uint32_t x, y; /* locations */
	int64_t a, b;
};

/* Learns lo <= a * S(x) + b * S(y) <= hi; INT64_MIN and INT64_MAX say nothing. Values without
 * names, and constants, are passed over. */
void fay_relations_add(struct fay_state *s, const struct fay_value *x, int64_t a,
		       const struct fay_value *y, int64_t b, int64_t lo, int64_t hi);
/* What is known of S(x) - S(y). */
void fay_relations_difference(const struct fay_state *s, const struct fay_value *x,
			      const struct fay_value *y, int64_t *lo, int64_t *hi);
/* Branch: x `cc` y was found to hold, operands and flags of `width` bits. False: impossible. */
bool fay_relations_compare(struct fay_state *s, enum fay_cc cc, unsigned width,
			   const struct fay_value *x, const struct fay_value *y);
/* Makes the intervals as tight as the relations allow. False: no values are left. */
bool fay_relations_reduce(struct fay_state *s);
/* After renaming: puts the two sides of each relation in order and measures from the names
 * themselves where that is exact. */
void fay_relations_settle(struct fay_state *s);
/* x and y are equal: from now on one name. */
void fay_relations_unify(struct fay_state *s, const struct fay_value *x, const struct fay_value *y);

/* Joins: the candidates of two states, by location, then put into the joined state. */
struct fay_relation_join {
	uint32_t count;
	struct {
		uint32_t x, y;
		int64_t a, b, lo, hi;
	} list[FAY_MAX_RELATIONS];
};
void fay_relations_gather(struct fay_relation_join *join, const struct fay_state *a,
			  const struct fay_state *b, const struct fay_join_plan *plan);
void fay_relations_scatter(const struct fay_relation_join *join, struct fay_state *joined);
/* Every relation of `outer`, whose names are canonical, holds in `inner`. */
bool fay_relations_include(const struct fay_state *outer, const struct fay_state *inner);
/* Drops the others. */
void fay_relations_keep_shown(struct fay_state *outer, const struct fay_state *inner);
void fay_relations_widen(struct fay_state *joined, const struct fay_state *old, unsigned round);

#endif
