/* SPDX-License-Identifier: MIT */
/* Decoding by the allow-list tables, which alone give meaning (decode.c). */
#ifndef FAY_VERIFIER_DECODE_H
#define FAY_VERIFIER_DECODE_H

#include "insn.h"
#include "verifier/rules/rules.h"

/*
 * Decodes one instruction at `bytes`, of which `available` bytes (to the end of .text) may be read;
 * `address` is its virtual address. On success rule NONE and *insn filled. Otherwise the rule
 * (DEC-*, INS-*) with the offending bytes named in `what`. Static and pure: no state, no allocation
 * but for the message.
 */
struct fay_refusal fay_decode(struct fay_arena *arena, const uint8_t *bytes, size_t available,
			      uint64_t address, struct fay_insn *insn);

/*
 * The same without words, and so without an allocation. The rule is coarser: what has no row is
 * DEC-ENCODING or INS-UNSUPPORTED, also where fay_decode() finds it in opcodes_refused.def.
 */
enum fay_rule fay_decode_bytes(const uint8_t *bytes, size_t available, uint64_t address,
			       struct fay_insn *insn);

#endif
