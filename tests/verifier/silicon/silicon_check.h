/* SPDX-License-Identifier: MIT */
/* The transfer functions and the solver's terms against one concrete step: silicon_abstract.c,
 * silicon_terms.c. */
#ifndef FAY_TEST_SILICON_CHECK_H
#define FAY_TEST_SILICON_CHECK_H

#include "verifier/explain/exec.h"
#include "verifier/prover/transfer/analysis.h"

/* A concrete state. Memory is SILICON_BELOW + SILICON_STACK bytes at address `base`; rsp points
 * SILICON_BELOW bytes into it. */
struct silicon_state {
	const uint64_t *gpr;
	uint8_t flags;
	const uint8_t *memory;
	uint64_t base;
};

bool silicon_check_create(struct fay_arena *arena);
void silicon_check_destroy(void);
void silicon_check_reset(struct fay_arena *arena);
/* The analysis that both checks use, its current state one that contains `before` if `abstract`,
 * else one of pointers and unknowns only. */
struct fay_analysis *silicon_analysis(const struct fay_insn *insn,
				      const struct silicon_state *before, bool random);

/* NULL, or what is wrong. *ended counts paths that ended with an obligation. */
const char *silicon_check_abstract(const struct fay_insn *insn, const struct silicon_state *before,
				   const struct fay_machine *after, const uint8_t *memory,
				   uint64_t *ended);
const char *silicon_check_terms(const struct fay_insn *insn, const struct silicon_state *before,
				const struct fay_machine *after, const uint8_t *memory);
/* Each operation on terms: Z3's simplifier against term.c. Returns the number of failures. */
unsigned silicon_check_term_operations(unsigned cases);

#endif
