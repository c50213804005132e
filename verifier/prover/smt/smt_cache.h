/* SPDX-License-Identifier: MIT */
/* The solver's answers within one verification: see smt_cache.c. */
#ifndef FAY_VERIFIER_SMT_CACHE_H
#define FAY_VERIFIER_SMT_CACHE_H

#include <z3.h>

#include "verifier/prover/transfer/analysis.h"

#define FAY_SMT_CACHE_ANSWERS 1024u
#define FAY_SMT_CACHE_FACTS 20000u /* larger questions are not looked up */

struct fay_smt_cache {
	uint32_t count;
	uint8_t keys[FAY_SMT_CACHE_ANSWERS][32]; /* of questions that were proved */
};

/* The digest of a question. False: it is too large. */
bool fay_smt_cache_key(Z3_context z, unsigned count, Z3_ast *facts, uint8_t key[32]);
bool fay_smt_cache_has(const struct fay_smt_cache *cache, const uint8_t key[32]);
void fay_smt_cache_add(struct fay_smt_cache *cache, const uint8_t key[32]);

#endif
