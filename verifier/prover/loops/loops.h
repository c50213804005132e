/* SPDX-License-Identifier: MIT */
/*
 * The room of loops: how often a loop runs at most (ranking.c, unroll.c, the solver's share in
 * verifier/prover/smt), what the worst case of a probe costs (loops.c), and guesses that help to
 * find an invariant: pairs of values to relate, and numbers at which widening may stop
 * (thresholds.c). Bounds must be right; guesses need not be. Bounds that are not found are
 * UINT64_MAX, a refusal.
 */
#ifndef FAY_VERIFIER_LOOPS_H
#define FAY_VERIFIER_LOOPS_H

#include "verifier/prover/transfer/analysis.h"

/* Fills an->bounds and an->worst_instructions; TRM-LOOP where no bound is found. */
struct fay_refusal fay_loops_bound(struct fay_analysis *an);
/* Guesses for another fixpoint: an->templates. */
struct fay_refusal fay_loops_templates(struct fay_analysis *an);

/* ---- ranking.c ---- */

#define STEP_MAX ((int64_t)1 << 20) /* of values that templates relate */
#define FAY_MAX_TEMPLATES 4096u
#define FAY_LOOP_TEMPLATES 16u

struct fay_ranking {
	struct fay_analysis *an;
	uint32_t header;
	uint32_t last;             /* greatest node of the loop */
	struct fay_state **tagged; /* per node: the proved state, with tags */
	uint8_t *pending;
	uint8_t *changes;       /* per node, saturating */
	struct fay_state *back; /* tags at the back edges, joined */
	bool failed;            /* memory or time */
};

bool fay_ranking_init(struct fay_ranking *r, struct fay_analysis *an);
void fay_ranking_deinit(struct fay_ranking *r);
/* Leaves r->tagged and r->back for the loop of `header`; until fay_ranking_clear(). */
void fay_ranking_run(struct fay_ranking *r, uint32_t header);
void fay_ranking_clear(struct fay_ranking *r);
/* Visits of `header` for each time its loop is entered, at most; UINT64_MAX: no bound found. */
uint64_t fay_ranking_bound(struct fay_ranking *r, uint32_t header);
/* The same for a head's state, and one that includes all that the back edges bring (NULL: nothing),
 * its tags relative to the head. */
uint64_t fay_ranking_bound_of(const struct fay_state *head, const struct fay_state *back);
/* Joins s's tags to those of `back`. */
void fay_ranking_merge(struct fay_state *back, const struct fay_state *s);
/* Whether location i is the same at the back edges as it was at the head. */
bool fay_ranking_unmoved(const struct fay_state *back, uint32_t i);
/* Appends to an->templates. False: memory or time. */
bool fay_ranking_templates(struct fay_ranking *r, uint32_t header);

/* ---- unroll.c ---- */

#define FAY_UNROLL_ROUNDS 1024u
#define FAY_UNROLL_RUNS (1u << 14)
#define FAY_UNROLL_BYTES ((size_t)64 << 20)

struct fay_unroll {
	struct fay_analysis *an;
	uint32_t header;
	struct fay_state **at;   /* per node of the loop: its state in this round */
	struct fay_state *again; /* at the head in the next round */
	struct fay_state *scratch;
	uint32_t runs; /* of blocks, over all loops */
	size_t bytes;  /* of states held */
	bool failed;
};

/* Out of memory is no error: then no bound is found. */
void fay_unroll_init(struct fay_unroll *u, struct fay_analysis *an);
void fay_unroll_deinit(struct fay_unroll *u);
/*
 * Visits of `header` for each time its loop is entered, at most; UINT64_MAX: no bound found. an->in
 * holds the invariant of the heads of loops within. `entered` includes all that the loop is entered
 * with; NULL: it is to be found out, an->in holds the invariant of all that leads into the loop.
 */
uint64_t fay_unroll_bound(struct fay_unroll *u, uint32_t header, const struct fay_state *entered);

/* ---- thresholds.c ---- */

/* Numbers that widening may stop at: of any image; of this one; and those of the loop of `header`,
 * entered with `entered`, which are added. */
void fay_thresholds_add(struct fay_thresholds *t, int64_t value);
void fay_thresholds_add_one(struct fay_thresholds *t, int64_t value); /* not its neighbours */
void fay_thresholds_common(struct fay_thresholds *t, const struct fay_image *image);
void fay_thresholds_collect(struct fay_thresholds *t, const struct fay_image *image,
			    const struct fay_cfg *cfg);
void fay_thresholds_add_loop(struct fay_thresholds *t, const struct fay_analysis *an,
			     uint32_t header, const struct fay_state *entered);

extern const struct fay_thresholds fay_thresholds_coarse;

#endif
