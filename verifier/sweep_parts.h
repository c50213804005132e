/* SPDX-License-Identifier: MIT */
/* What the two files of the sweep share: sweep.c runs the nodes in order, sweep_loops.c decides on the rounds of the loops. */
#ifndef FAY_VERIFIER_SWEEP_PARTS_H
#define FAY_VERIFIER_SWEEP_PARTS_H

#include "order.h"
#include "pool.h"
#include "ranking.h"
#include "widening.h"

/* A loop that is being run. */
struct fay_sweep_frame {
	uint32_t head, mark; /* mark: length of the log when the round began */
	unsigned rounds;
	bool narrowing;           /* this round tries a smaller state than the one that held */
	bool settled;             /* no smaller one is to be tried */
	bool open;                /* something is not proved in this round */
	struct fay_state *entered; /* what came from outside, with the tags of the loop around */
	struct fay_state *wide;    /* narrowing: the state that held */
	struct fay_probe_facts facts; /* when the round began */
	uint64_t obligations;
	int64_t deepest;
};

/* What left a loop while it was run. */
struct fay_sweep_exit {
	uint32_t to;
	struct fay_state *state;
};

struct fay_sweep {
	struct fay_analysis *an;
	struct fay_order order;
	struct fay_state **waiting; /* per node, latest first */
	struct fay_sweep_frame *frames;
	uint32_t depth, frames_capacity;
	struct fay_sweep_exit *log;
	uint32_t log_count, log_capacity;
	struct fay_widening widening;
	struct fay_pool pool;
	struct fay_unroll unroll; /* unroll.an is NULL until it is needed */
	uint64_t runs;
	bool related;              /* all of the probe is run with relations */
	enum fay_sweep_mode mode;  /* of the outermost loop in hand */
};

/* sweep.c */
bool fay_sweep_fall_short(struct fay_sweep *w);
bool fay_sweep_inside(const struct fay_sweep *w, uint32_t node, uint32_t head);
/* NULL: it fell short. */
struct fay_state *fay_sweep_copy(struct fay_sweep *w, const struct fay_state *s);
void fay_sweep_drop(struct fay_sweep *w, struct fay_state *s);
void fay_sweep_run(struct fay_sweep *w, uint32_t node, struct fay_state *s);
/* Something is not proved in this round of the innermost loop; without a loop there is no other round. */
void fay_sweep_leave_open(struct fay_sweep *w);
/* Makes room for one element more. */
bool fay_sweep_grow(void **array, uint32_t *capacity, uint32_t count, size_t size);

/* sweep_loops.c: a loop is entered with `entered`, which becomes the frame's. */
void fay_sweep_enter(struct fay_sweep *w, uint32_t head, struct fay_state *entered);
/* The end of a round of the innermost loop. The node whose loop is to be run on from behind it; FAY_NONE: the loop was left. */
uint32_t fay_sweep_finish(struct fay_sweep *w);

#endif
