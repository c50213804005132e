/* SPDX-License-Identifier: MIT */
/* Files of SMT-LIB 2: see smt_write.c. */
#ifndef FAY_VERIFIER_SMT2_H
#define FAY_VERIFIER_SMT2_H

#include <stdio.h>

#include "smt_terms.h"

#define FAY_SMT2_MAX_FILES 200000u
#define FAY_SMT2_MAX_BYTES ((uint64_t)1 << 30)

/* A directory of SMT-LIB files with its index.json in the making. */
struct fay_smt2 {
	const char *directory;
	FILE *index;
	unsigned probe;
	uint32_t count, unstated; /* entries of the index: files; obligations without a file */
	uint64_t bytes;
	int error;      /* errno of the first failure; nothing is written after it */
	bool truncated; /* a limit was reached: later obligations have no file */
};

/* Creates the directory and the index. False with errno in out->error. */
bool fay_smt2_open(struct fay_smt2 *out, const char *directory, const struct fay_verdict *verdict);
/* Ends the index. False: something was not written, out->error. */
bool fay_smt2_close(struct fay_smt2 *out, const struct fay_verdict *verdict);
/*
 * One file: the facts of q that bear on `claim`, and claim, whose unsatisfiability is the proof.
 * expected is "unsat", or what the solver said. address is the instruction's; rule and what must
 * need no quoting.
 */
void fay_smt2_put(struct fay_smt2 *out, struct query *q, const char *rule, uint64_t address,
		  const char *what, Z3_ast claim, const char *expected);
/* An obligation that is not a formula over bit vectors; `why` says how it is decided. */
void fay_smt2_unstated(struct fay_smt2 *out, const char *rule, const char *what, const char *why);

#endif
