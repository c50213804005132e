/* SPDX-License-Identifier: MIT */
/* Which registers and flags may still be read from each node of a probe's graph on: see live.c. */
#ifndef FAY_VERIFIER_LIVE_H
#define FAY_VERIFIER_LIVE_H

#include "verifier/prover/transfer/analysis.h"

#define FAY_LIVE_ALL UINT32_MAX

/* Per node a mask: bit r of general register r, bits 16 and up of flags (FLAG_* << 16). To be
 * released with free(); NULL: not known, take FAY_LIVE_ALL. */
uint32_t *fay_live_find(const struct fay_analysis *an);
/* Forgets the numbers and pointers that `live` says are not read any more. */
void fay_live_forget(struct fay_state *s, uint32_t live);

#endif
