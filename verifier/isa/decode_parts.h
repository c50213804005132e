/* SPDX-License-Identifier: MIT */
/* What the files of the allow-list decoder share: decode.c reads prefixes and finds an opcode's
 * row, decode_operands.c reads what its form demands, decode_message.c words a refusal. */
#ifndef FAY_VERIFIER_DECODE_PARTS_H
#define FAY_VERIFIER_DECODE_PARTS_H

#include "decode.h"
#include "vector.h"

#define MAX_LENGTH 15 /* Intel SDM volume 2, 2.3.11 */

enum form {
#define FORM(name, ...) FORM_##name,
#include "opcodes_forms.def"
	FORM_COUNT
};

enum { WIDTH_B, WIDTH_Q, WIDTH_N, WIDTH_V, WIDTH_Y, WIDTH_W };
enum { MOD_EITHER, MOD_REG, MOD_REGF, MOD_MEM };
enum { LOCK_NOLOCK, LOCK_LOCK };

/* A general instruction: opcodes.def says what the columns mean. */
struct row {
	uint8_t op, form, width, mod, lock;
};

/* Tables of general rows: the maps of struct reader (0F 3A, which has none, as the empty one),
 * those with F3, and VEX maps 2 and 3 with each VEX.pp. */
enum { MAP_ONE, MAP_TWO, MAP_THREE, MAP_EMPTY, MAP_F3ONE, MAP_F3TWO, MAP_VEX, MAP_COUNT = 14 };

/* The digits that a row's column "ext" means. */
enum { FIRST_0, FIRST_1, FIRST_2, FIRST_3, FIRST_4, FIRST_5, FIRST_6, FIRST_7, FIRST_ANY = 0 };
enum { LAST_0, LAST_1, LAST_2, LAST_3, LAST_4, LAST_5, LAST_6, LAST_7, LAST_ANY = 7 };
enum { FIRST_8 = FIRST_ANY, LAST_8 = LAST_ANY };

/* The first four are also the values of VEX.pp. */
enum { PREFIX_NONE, PREFIX_66, PREFIX_F3, PREFIX_F2, PREFIX_F0, PREFIX_67, PREFIX_SEGMENT };
enum { PREFIX_REX = PREFIX_SEGMENT + 1, PREFIX_COUNT, PREFIX_SEVERAL };

enum { REX_B = 1, REX_X = 2, REX_R = 4, REX_W = 8 };

struct reader {
	const uint8_t *bytes;
	size_t size, at;
	bool overrun;

	uint8_t count[PREFIX_COUNT];
	uint8_t pp; /* the mandatory prefix of a vector instruction: the only one, or VEX.pp */
	uint8_t rex, rex_used; /* VEX: the same bits, without 40 */
	bool needs_rex;        /* spl, bpl, sil, dil: a REX without bits has an effect */
	bool vex, vvvv_used;
	uint8_t vvvv, length;              /* length: of vectors, in bytes */
	uint8_t map, opcode, digit, modrm; /* map: 0 one-byte, 1 0F, 2 0F 38, 3 0F 3A */
	bool absent;                       /* no row of either table has this opcode */
	const struct row *row;             /* one of these two */
	const struct fay_vector_row *vector;

	enum fay_rule rule; /* first thing wrong */
	const char *why;
};

static inline void fail(struct reader *reader, enum fay_rule rule, const char *why)
{
	if (reader->rule != FAY_RULE_NONE)
		return;
	reader->rule = rule;
	reader->why = why;
}

/* decode.c: as fay_decode(); the rule, and what led to it, is left in the reader. */
void fay_reader_run(struct reader *reader, const uint8_t *bytes, size_t available, uint64_t address,
		    struct fay_insn *insn);
/* The next byte; 0 and `overrun` behind the end. */
uint8_t fay_reader_take8(struct reader *reader);

/* decode_operands.c: the operands, as the row's form or shape places them. */
void fay_operands_read(struct reader *reader, struct fay_insn *insn);
/* What can be judged only with the operands at hand: which of memory and register, lock, prefix
 * bits without effect. */
void fay_operands_check(struct reader *reader, const struct fay_insn *insn);

#endif
