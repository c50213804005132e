/* SPDX-License-Identifier: MIT */
/*
 * The room of the other decoders: Zydis and Capstone must read each instruction as ours did. They
 * may object, not decide: what they say can only be a reason to refuse.
 */
#ifndef FAY_VERIFIER_AGREE_H
#define FAY_VERIFIER_AGREE_H

#include "verifier/isa/isa.h"

/* Create once a verification (each costs a library handle), use for every
 * instruction of the CFG. */
struct fay_agree;
struct fay_agree *fay_agree_create(void);
void fay_agree_destroy(struct fay_agree *agree);
/*
 * DEC-DISAGREE unless Zydis and Capstone read the same length, operation and operands as *insn,
 * which must be what fay_decode() made of `bytes`: the answer for a byte string is kept for the
 * next time.
 */
struct fay_refusal fay_agree_check(struct fay_agree *agree, struct fay_arena *arena,
				   const uint8_t *bytes, size_t available,
				   const struct fay_insn *insn);

#endif
