/* SPDX-License-Identifier: MIT */
/* The other two readers on vector instructions; agree.c's alone. */
#ifndef FAY_VERIFIER_AGREE_VECTOR_H
#define FAY_VERIFIER_AGREE_VECTOR_H

#include <Zydis/Zydis.h>
#include <capstone/capstone.h>

#include "verifier/rules/rules.h"
#include "verifier/isa/vector.h"

/* DEC-DISAGREE unless both read the same as *insn, which is an OP_VECTOR. */
struct fay_refusal fay_agree_vector(const ZydisDecoder *zydis, csh capstone, cs_insn *scratch,
				    struct fay_arena *arena, const uint8_t *bytes, size_t size,
				    const struct fay_insn *insn);

#endif
