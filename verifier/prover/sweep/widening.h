/* SPDX-License-Identifier: MIT */
/* How the sweep's guesses grow: see widening.c. */
#ifndef FAY_VERIFIER_WIDENING_H
#define FAY_VERIFIER_WIDENING_H

#include "verifier/prover/graph/cfg.h"
#include "verifier/prover/loops/loops.h"

/* How a nest of loops is run: each mode is tried when the one before left something open. */
enum fay_sweep_mode {
	SWEEP_PLAIN,   /* no relations, no ranges of arrays */
	SWEEP_RELATED, /* with them */
	SWEEP_FINE,    /* and widened by smaller steps */
};

struct fay_widening {
	/* of any loop; of that in hand, once they are asked for */
	struct fay_thresholds common, loop;
	bool loop_known;
	const struct fay_analysis *an;
	const struct fay_state *entered; /* with what the loop in hand was */
	uint32_t head;                   /* of that in hand */
	/* per register: one of those that it is copied from or to there, the same for all of them
	 * */
	uint8_t kin[16];
	uint32_t compared; /* registers that it compares, a bit each, and one for memory */
	uint32_t limit_count;
	struct fay_widening_limit {
		uint32_t bearer; /* as in `compared` */
		int64_t low, high;
		/* the values at the head come up to them, as they are compared before they change
		 * */
		bool reached;
	} limits[32]; /* with what, where that may end the loop */
};

/* Whether it is likely that intervals alone bound nothing in the loop of `head`: it ends where two
 * values meet of which at least one varies from the start, and compares no register with a constant
 * to end. */
bool fay_widening_needs_relations(const struct fay_analysis *an, const struct fay_order *order,
				  uint32_t head, const struct fay_state *entered);
void fay_widening_init(struct fay_widening *w, const struct fay_image *image);
/* Turns to the loop of `head`, which was entered with `entered`; that is to stay until the next
 * loop. */
void fay_widening_loop(struct fay_widening *w, const struct fay_analysis *an,
		       const struct fay_order *order, uint32_t head,
		       const struct fay_state *entered);
/* Makes `joined`, which includes `old`, larger, so that it soon stops growing. `round`: of this
 * loop, from 1. */
void fay_widening_apply(struct fay_widening *w, struct fay_state *joined,
			const struct fay_state *old, unsigned round, enum fay_sweep_mode mode);

#endif
