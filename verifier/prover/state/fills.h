/* SPDX-License-Identifier: MIT */
/* Stack arrays that loops have written up to a counter: see fills.c. */
#ifndef FAY_VERIFIER_FILLS_H
#define FAY_VERIFIER_FILLS_H

#include "verifier/prover/transfer/analysis.h"

/* counters, factors times counters and distances are less: sums of a few do not wrap */
#define FAY_FAR_APART ((int64_t)1 << 40)

/* An access at `fixed + step * S(v)`, v the value in `value`: what its operand says of it. step 0:
 * nothing. */
struct fay_place {
	struct fay_value value;
	int64_t fixed, step;
};

/* Numbers were written to `size` bytes at `at`: ranges that end there grow. */
void fay_fills_store(struct fay_state *s, const struct fay_place *at, unsigned size);
/* Whether the `size` bytes at `at`, somewhere in [low, high), were written. */
bool fay_fills_cover(const struct fay_state *s, const struct fay_place *at, unsigned size,
		     int64_t low);
/* What is written whatever the counters are is put into the slots. */
void fay_fills_settle(struct fay_state *s);
/* Bytes of [low, high) may no longer hold numbers that were written. */
void fay_fills_forget(struct fay_state *s, int64_t low, int64_t high);
/* The least and the greatest end of f, if the state knows its counter. */
bool fay_fill_ends(const struct fay_state *s, const struct fay_fill *f, int64_t *least,
		   int64_t *greatest);

/* Joins: the ranges of two states, by location, then put into the joined state. */
struct fay_fill_join {
	uint32_t count;
	struct {
		uint32_t location;
		struct fay_fill fill;
	} list[FAY_MAX_FILLS];
};
void fay_fills_gather(struct fay_fill_join *join, const struct fay_state *a,
		      const struct fay_state *b, const struct fay_join_plan *plan);
void fay_fills_scatter(const struct fay_fill_join *join, struct fay_state *joined);
/* Every range of `outer`, whose names are canonical, is written in `inner`. */
bool fay_fills_include(const struct fay_state *outer, const struct fay_state *inner);

#endif
