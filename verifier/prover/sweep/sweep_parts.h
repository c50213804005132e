/* SPDX-License-Identifier: MIT */
/*
 * What the files of the sweep share: sweep.c runs the nodes in order, sweep_loops.c decides on the
 * rounds of the loops, sweep_results.c keeps what loops within loops gave.
 */
#ifndef FAY_VERIFIER_SWEEP_PARTS_H
#define FAY_VERIFIER_SWEEP_PARTS_H

#include "pool.h"
#include "verifier/prover/graph/cfg.h"
#include "verifier/prover/loops/loops.h"
#include "verifier/prover/transfer/live.h"
#include "widening.h"

/* What checking gathers: struct fay_analysis. */
struct fay_sweep_gain {
	struct fay_probe_facts facts;
	uint64_t obligations;
	int64_t deepest;
};

/* A loop that is being run. */
struct fay_sweep_frame {
	uint32_t head, mark; /* mark: length of the log when the round began */
	unsigned rounds;
	bool narrowing;            /* this round tries a smaller state than the one that held */
	bool settled;              /* no smaller one is to be tried */
	bool open;                 /* something is not proved in this round */
	bool first;                /* it was not entered before, in no round of the loops around */
	bool ranked;               /* its bound follows from its head's state alone */
	struct fay_state *entered; /* what came from outside, with the tags of the loop around */
	struct fay_state *wide;    /* narrowing: the state that held */
	/* when it was entered; since then only what the round gave is gathered */
	struct fay_sweep_gain before;
};

/* What left a loop while it was run. */
struct fay_sweep_exit {
	uint32_t to;
	struct fay_state *state;
};

/* What the last round of a loop within a loop gave, when its head had the state that it still has:
 * see sweep_results.c. */
struct fay_sweep_result {
	struct fay_state *back;       /* what came over its back edges; NULL nothing */
	struct fay_sweep_exit *exits; /* with the tags of this loop */
	uint32_t exit_count;
	bool open;
	struct fay_sweep_gain gain;
};

struct fay_sweep {
	struct fay_analysis *an;
	struct fay_order order;
	struct fay_state **waiting; /* per node, latest first */
	uint32_t next;  /* the node that comes next in the order, while one is run; FAY_NONE none */
	bool carried;   /* the state of that node is an->current */
	uint32_t *live; /* per node, see live.h; NULL: not known */
	struct fay_sweep_result **results; /* per node that heads a loop within a loop; NULL none */
	struct fay_sweep_frame *frames;
	uint32_t depth, frames_capacity;
	struct fay_sweep_exit *log;
	uint32_t log_count, log_capacity;
	struct fay_widening widening;
	struct fay_pool pool;
	struct fay_unroll unroll; /* unroll.an is NULL until it is needed */
	uint64_t runs;
	bool related;             /* all of the probe is run with relations */
	enum fay_sweep_mode mode; /* of the outermost loop in hand */
};

/* sweep.c */
bool fay_sweep_fall_short(struct fay_sweep *w);
bool fay_sweep_inside(const struct fay_sweep *w, uint32_t node, uint32_t head);
/* NULL: it fell short. */
struct fay_state *fay_sweep_copy(struct fay_sweep *w, const struct fay_state *s);
void fay_sweep_drop(struct fay_sweep *w, struct fay_state *s);
void fay_sweep_run(struct fay_sweep *w, uint32_t node, struct fay_state *s);
/* Something is not proved in this round of the innermost loop; without a loop there is no other
 * round. */
void fay_sweep_leave_open(struct fay_sweep *w);
/* Makes room for one element more. */
bool fay_sweep_grow(void **array, uint32_t *capacity, uint32_t count, size_t size);

/* `s`, from node s->from, waits for `to` from now on; taken back with the round, if it leaves the
 * innermost loop. */
void fay_sweep_deliver(struct fay_sweep *w, uint32_t to, struct fay_state *s);

/* sweep_loops.c: a loop is entered with `entered`, which is the sweep's from now on. False: what it
 * gives is known and has been delivered. */
bool fay_sweep_enter(struct fay_sweep *w, uint32_t head, struct fay_state *entered);
/* The end of a round of the innermost loop. The node whose loop is to be run on from behind it;
 * FAY_NONE: the loop was left. */
uint32_t fay_sweep_finish(struct fay_sweep *w);

/* sweep_results.c */
void fay_sweep_gain_begin(struct fay_analysis *an);
struct fay_sweep_gain fay_sweep_gain_of(const struct fay_analysis *an);
void fay_sweep_gain_add(struct fay_analysis *an, const struct fay_sweep_gain *gain);
/* The tags of *left, which left a loop: of the loop around, from those at the entry. `back`: what
 * came over the back edges. */
void fay_sweep_compose_tags(struct fay_state *left, const struct fay_state *entered,
			    const struct fay_state *back);
/* Before tags are composed: what innermost loop f gave. Its head's state must not change
 * afterwards, else the result is to be dropped. */
void fay_sweep_result_keep(struct fay_sweep *w, const struct fay_sweep_frame *f);
void fay_sweep_result_drop(struct fay_sweep *w, uint32_t head);
/* Delivers what the loop of `head` gives if it is entered with `entered`, and drops that. False:
 * not known. */
bool fay_sweep_result_use(struct fay_sweep *w, uint32_t head, struct fay_state *entered);

#endif
