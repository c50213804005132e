/* SPDX-License-Identifier: MIT */
/* Decoding by the allow-list tables, which alone give meaning (decode.c). */
#ifndef FAY_VERIFIER_DECODE_H
#define FAY_VERIFIER_DECODE_H

#include "fay/facts.h"
#include "insn.h"

/*
 * Decodes one instruction at `bytes`, of which `available` bytes (to the end of .text) may be read;
 * `address` is its virtual address. On success rule NONE and *insn filled. Otherwise the rule
 * (DEC-*, INS-*); what has no row is DEC-ENCODING or INS-UNSUPPORTED. Pure: no state, no
 * allocation.
 */
enum fay_rule fay_decode_bytes(const uint8_t *bytes, size_t available, uint64_t address,
			       struct fay_insn *insn);

#endif
