/* SPDX-License-Identifier: MIT */
/*
 * The room that explains, untrusted: fay_verify() with all that it tells of a refusal (place,
 * facts, path, advice; counterexamples run by the interpreter, exec.h, or by the CPU, native.h),
 * reports as text and JSON, and the command. A mistake here misleads a reader; it admits nothing.
 */
#ifndef FAY_VERIFIER_EXPLAIN_H
#define FAY_VERIFIER_EXPLAIN_H

#include "verifier/prover/prove.h"

/* ---- place.c ---- */

/* One line of text (Zydis's formatter), in Intel's syntax or, if `att`, in AT&T's. Returns the
 * instruction's length or 0. */
int fay_disassemble(const uint8_t *bytes, size_t available, uint64_t address, bool att, char *text,
		    size_t text_size);
/* The line information for `offset` in .text: the last line that does not begin behind it, or NULL.
 */
const struct fay_image_line *fay_source_line(const struct fay_image *image, uint64_t offset);

/*
 * Fills rule, outcome, what, missing, and, if image is not NULL and refusal->address lies in .text,
 * function, offsets, disassembly and source line. Leaves path, counterexample and replayed as they
 * are (zero them before).
 */
void fay_rejection_fill(struct fay_arena *arena, const struct fay_image *image,
			const struct fay_refusal *refusal, struct fay_rejection *rejection);

/* ---- facts.c ---- */

/* "number in [0, 56], multiple of 8", "local + 16", "not written": in the arena. */
const char *fay_value_describe(struct fay_arena *arena, const struct fay_value *v, unsigned reg);
/* Fills facts, steps and advice for a refusal at instruction `insn` of `node`; o may be NULL.
 * rejection->path is there already. */
void fay_facts_fill(struct fay_analysis *an, uint32_t node, uint32_t insn,
		    const struct fay_obligation *o, struct fay_rejection *rejection);

/* ---- counterexample.c ---- */

/*
 * Looks for an execution from the probe's entry that breaks obligation `o`, beginning with `model`
 * (may be NULL). If one is found it has been executed: counterexample, replayed, path are filled in
 * and true is returned.
 */
bool fay_counterexample_find(struct fay_analysis *an, const struct fay_obligation *o,
			     const struct fay_model *model, struct fay_rejection *rejection);

/*
 * Ends the run: what the prover refused is accepted if there is a certificate without its invariant
 * (*certificate then) that the checker accepts, and its verdict stands; or the rejection is filled
 * in. 0, or an errno as of fay_run_end().
 */
int fay_conclude(struct fay_run *run, const void *bytes, size_t size,
		 struct fay_bytes *certificate);

/* ---- certified.c ---- */

/* Of what the prover accepts where the policy demands a certificate: looks for one. The verdict is
 * the checker's then, or a refusal. */
void fay_demand_certificate(const void *bytes, size_t size, const struct fay_policy *policy,
			    struct fay_verdict *verdict);

/* ---- others.c ---- */

/* Of a refused image: looks for everything else that is refused, by another run, and fills in the
 * verdict's `others`. policy as it was for the verdict. */
void fay_others_fill(const void *bytes, size_t size, const struct fay_policy *policy,
		     struct fay_verdict *verdict);

#endif
