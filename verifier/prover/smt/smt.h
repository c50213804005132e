/* SPDX-License-Identifier: MIT */
/* Obligations as bit-vector queries: see smt.c. */
#ifndef FAY_VERIFIER_SMT_H
#define FAY_VERIFIER_SMT_H

#include "verifier/prover/transfer/analysis.h"

struct fay_smt2;

enum fay_answer { ANSWER_PROVED, ANSWER_REFUTED, ANSWER_UNKNOWN };

/* A load whose value the model chose. */
struct fay_model_load {
	uint32_t node, insn;
	unsigned size;
	uint64_t value;
};
#define FAY_MODEL_LOADS 256u

struct fay_model {
	/* the query began at the probe's entry and cut no loop: a model is a candidate execution */
	bool from_entry;
	uint8_t event[sizeof(struct fay_event)];
	uint64_t registers[16]; /* at the place where the query began */
	uint32_t load_count;
	struct fay_model_load loads[FAY_MODEL_LOADS];
};

/*
 * Asks Z3 whether obligation `o` holds; model (may be NULL) is filled when REFUTED. If out is not
 * NULL the query is also written there.
 */
enum fay_answer fay_smt_ask(struct fay_analysis *an, const struct fay_obligation *o,
			    struct fay_model *model, struct fay_smt2 *out);

/* What a question about the near way may take of an obligation's `ms` milliseconds, and then the
 * one about the whole, `spent_ns` being gone. 0: not asked. */
unsigned fay_smt_near_ms(unsigned ms);
unsigned fay_smt_whole_ms(unsigned ms, uint64_t spent_ns);

/* Visits of `header` for each time its loop is entered, at most, where the solver shows that each
 * round makes something less; UINT64_MAX: no bound found. */
uint64_t fay_smt_loop_bound(struct fay_analysis *an, uint32_t header);

#endif
