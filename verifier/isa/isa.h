/* SPDX-License-Identifier: MIT */
/*
 * The room of the instruction set, all of it tables: operations (ops.def), encodings (opcodes.def,
 * opcodes_vector.def), what is made of bytes (decode.h), and what each operation computes
 * (semantics.h). It knows nothing of images, of states or of whoever proves something; prover and
 * checker both stand on it. Nothing here allocates but for the words of a refusal, and every loop
 * is bounded by the 15 bytes of an instruction or by a table.
 */
#ifndef FAY_VERIFIER_ISA_H
#define FAY_VERIFIER_ISA_H

#include "decode.h"
#include "insn.h"
#include "semantics.h"
#include "vector.h"
#include "verifier/rules/rules.h"

/*
 * As fay_decode_bytes(), with the offending bytes named in `what`. The rule is finer: what
 * opcodes_refused.def has is refused by the rule that it names.
 */
struct fay_refusal fay_decode(struct fay_arena *arena, const uint8_t *bytes, size_t available,
			      uint64_t address, struct fay_insn *insn);

#endif
