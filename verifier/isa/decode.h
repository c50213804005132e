/* SPDX-License-Identifier: MIT */
/*
 * Decoding by three readers that must agree: the allow-list table of decode.c (which alone gives
 * meaning), Zydis and Capstone.
 */
#ifndef FAY_VERIFIER_DECODE_H
#define FAY_VERIFIER_DECODE_H

#include "verifier/rules/rules.h"
#include "insn.h"

/*
 * Decodes one instruction at `bytes`, of which `available` bytes (to the end of .text) may be read;
 * `address` is its virtual address. On success rule NONE and *insn filled. Otherwise the rule
 * (DEC-*, INS-*) with the offending bytes named in `what`. Static and pure: no state, no allocation
 * but for the message.
 */
struct fay_refusal fay_decode(struct fay_arena *arena, const uint8_t *bytes, size_t available,
			      uint64_t address, struct fay_insn *insn);

/* The other two readers. Create once a verification (each costs a library handle), use for every
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

/* One line of AT&T or Intel text for messages (Zydis's formatter). Returns the instruction's length
 * or 0. */
int fay_disassemble(const uint8_t *bytes, size_t available, uint64_t address, char *text,
		    size_t text_size);

#endif
