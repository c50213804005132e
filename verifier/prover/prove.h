/* SPDX-License-Identifier: MIT */
/*
 * The room that decides: image and policy in, verdict out. Any doubt is a refusal. The rooms below
 * it have the parts: control flow, states, transfer, solver, loops, fixpoint, sweep, SMT-LIB.
 *
 * Nothing is explained here. Of a refusal the run keeps what was known at its place, so that
 * verifier/explain can say more of it before the run ends; that cannot turn it into an acceptance,
 * for only fay_prove() puts a layout into the verdict.
 *
 * Limits: the policy's times, 512 MiB for what the verdict owns, 1 GiB of states.
 */
#ifndef FAY_VERIFIER_PROVE_H
#define FAY_VERIFIER_PROVE_H

#include "verifier/prover/certify/certify.h"
#include "verifier/prover/smt/smt_cache.h"
#include "verifier/prover/smtlib/smt_proof.h"

/* What is known of a refusal, beside the verdict. */
enum fay_refused {
	REFUSED_PLAIN,       /* rule and words only */
	REFUSED_OBLIGATION,  /* run->broken, and run->model if the solver found one */
	REFUSED_LOOP,        /* the loop's head is at refusal.address */
	REFUSED_SPECULATION, /* run->broken, where no branch is believed */
};

struct fay_run;

/* Told of each probe that was proved, while run->an and run->graph are its own. */
struct fay_observer {
	void (*proved)(void *context, struct fay_run *run);
	void *context;
};

/* One verification. */
struct fay_run {
	struct fay_arena *arena;
	const struct fay_policy *policy;
	struct fay_policy standard;
	struct fay_verdict *verdict;
	struct fay_image image;
	struct fay_cfg cfg;
	uint64_t begin, deadline; /* monotonic ns */
	struct fay_smt2 *smt2;    /* &files, or NULL */
	struct fay_smt2 files;
	struct fay_smt_cache *cache;
	/* What is proved is written here, unless it is NULL; `certify` has the subject, and why
	 * nothing was written. */
	struct fay_bytes *certificate;
	struct fay_bytes *found; /* fay_prove_or_find()'s, or NULL */
	const void *bytes;       /* the image */
	size_t size;
	struct fay_certify certify;
	struct check_subject subject;
	const struct fay_observer *observer; /* or NULL */
	struct fay_thresholds *thresholds;   /* NULL: no probe was begun */
	uint32_t probe;                      /* the one in hand, its number */
	/* The probe in hand; after a refusal, the one refused. */
	struct fay_graph graph;
	struct fay_analysis an;
	/* The refusal. */
	enum fay_refused refused;
	struct fay_refusal refusal;
	bool placed; /* refusal.address is in the image, which was read */
	const struct fay_obligation *broken;
	struct fay_model *model;
};

/*
 * Decides. smt2_dir: where every obligation is written (fay_verify_smt2()), or NULL. certificate:
 * where one is written of what is accepted (to be freed), or NULL. observer: or NULL. The run is to
 * be ended; NULL if there was no memory for it, and the verdict says so.
 */
struct fay_run *fay_prove(const void *bytes, size_t size, const struct fay_policy *policy,
			  const char *smt2_dir, struct fay_bytes *certificate,
			  const struct fay_observer *observer, struct fay_verdict *verdict);
/*
 * The same, but before the solver is asked what takes long a certificate of the whole image is
 * looked for, with little work: *found, to be freed. If its size is not 0, there is one, and the
 * run decided nothing.
 */
struct fay_run *fay_prove_or_find(const void *bytes, size_t size, const struct fay_policy *policy,
				  struct fay_bytes *found, struct fay_verdict *verdict);
/*
 * After a refusal at a probe: tries the probes behind it as well, and tells of each that is refused
 * while it is in hand; run->verdict is then a scratch one. What was decided stays as it is.
 */
void fay_prove_rest(struct fay_run *run, void (*refused)(void *context, struct fay_run *run),
		    void *context);
/*
 * After a refusal for want of an invariant: looks for a certificate of the whole image without one.
 * False: there is none. It decides nothing; run->verdict stays as it is.
 */
bool fay_certify_refused(struct fay_run *run, const void *bytes, size_t size,
			 struct fay_bytes *certificate);
/* Frees all but what the verdict owns. 0, or the errno of what could not be written. */
int fay_run_end(struct fay_run *run);

/* What a policy does not allow; the first one is returned. */
#define FAY_MAX_VIOLATIONS 64u
struct fay_violations {
	uint32_t count;
	struct fay_refusal at[FAY_MAX_VIOLATIONS];
};
/* Sizes of state, kinds and patterns of the probes. all: where each is added, or NULL. */
struct fay_refusal fay_policy_image(const struct fay_run *run, struct fay_violations *all);
/* All instructions that were decoded. */
struct fay_refusal fay_policy_operations(const struct fay_run *run, struct fay_violations *all);
/* What the probe in hand costs and reads, which becomes facts. */
struct fay_refusal fay_policy_costs(struct fay_analysis *an, struct fay_violations *all);

/* Fills an->in, gathers facts and open obligations: first the cheap attempt (sweep), then the
 * thorough way (fixpoint), and if something is left to prove, once more with relations between what
 * moves in the loops. */
struct fay_refusal fay_prove_invariant(struct fay_analysis *an);
struct fay_refusal fay_obligation_refusal(const struct fay_analysis *an,
					  const struct fay_obligation *o);
/* Of an obligation that is open where no branch is believed. */
struct fay_refusal fay_speculation_refusal(const struct fay_analysis *an,
					   const struct fay_obligation *o);

#endif
