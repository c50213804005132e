/* SPDX-License-Identifier: MIT */
/* What the files on the other decoders share: agree.c (comparing), agree_readings.c (reading),
 * agree_vector.c (vector instructions). */
#ifndef FAY_VERIFIER_AGREE_PARTS_H
#define FAY_VERIFIER_AGREE_PARTS_H

#include <Zydis/Zydis.h>
#include <capstone/capstone.h>

#include "agree.h"

#define MAX_LENGTH 15
#define MAX_OPERANDS 3

#define UNKNOWN 0xffff
#define CODE(op, cc) ((uint16_t)((op) << 4 | (cc)))

/* Register codes: 0 is none, else 1 + gpr * 4 + log2(width / 8). */
#define REG_NONE 0
#define REG_RIP 0xfe
#define REG_OTHER 0xff
#define REG_HIGH(gpr) ((uint8_t)(0x80 + (gpr))) /* ah, ch, dh, bh */
#define REG_CODE(gpr, log) ((uint8_t)(1 + (gpr) * 4 + (log)))

/* A byte string on which all readers agreed; length 0: none. */
struct memo {
	uint8_t length;
	uint8_t bytes[MAX_LENGTH];
};
#define MEMO_BITS 13

struct fay_agree {
	/* direct-mapped: a newer string takes an older one's place */
	struct memo memo[1 << MEMO_BITS];
	ZydisDecoder zydis;
	csh capstone;
	cs_insn *insn;
	uint16_t zydis_code[ZYDIS_MNEMONIC_MAX_VALUE + 1];
	uint16_t capstone_code[X86_INS_ENDING];
	uint8_t zydis_reg[ZYDIS_REGISTER_MAX_VALUE + 1];
	uint8_t capstone_reg[X86_REG_ENDING];
};

struct reading_operand {
	uint8_t kind; /* enum fay_operand_kind */
	uint8_t reg, base, index, scale;
	uint16_t size; /* bits; 0: not said */
	int64_t value; /* immediate, displacement (absolute if rip) or target */
};

struct reading {
	const char *reader;
	unsigned length, count;
	uint16_t code;
	bool locked, repeated;
	struct reading_operand operands[MAX_OPERANDS];
};

/* agree_readings.c. False: the library knows no such instruction. */
bool fay_read_zydis(struct fay_agree *agree, const uint8_t *bytes, size_t available,
		    uint64_t address, struct reading *r);
bool fay_read_capstone(struct fay_agree *agree, const uint8_t *bytes, size_t available,
		       uint64_t address, struct reading *r);

/* agree_vector.c */
/* DEC-DISAGREE unless both read the same as *insn, which is an OP_VECTOR. */
struct fay_refusal fay_agree_vector(const ZydisDecoder *zydis, csh capstone, cs_insn *scratch,
				    struct fay_arena *arena, const uint8_t *bytes, size_t size,
				    const struct fay_insn *insn);

#endif
