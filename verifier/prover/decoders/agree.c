/* SPDX-License-Identifier: MIT */
/*
 * Two more readers of each instruction, Zydis and Capstone, who may object but not decide.
 *
 * Our decoder alone gives meaning; an instruction stands only if both libraries see the same
 * length, operation, registers, widths, immediates, addresses and branch target in the same bytes.
 * What a library says of effects (flags, access, implicit operands) is not used: Capstone 4.0.2 is
 * known to be wrong there (it calls `rol [m], 1` a load). Both readings are turned into one small
 * form, `struct reading` (agree_readings.c), and compared here with what *insn expects.
 *
 * Both are shown the bytes of the one instruction and no more, so whether they agree is a function
 * of these bytes: of the address only the sums with rip-relative displacements depend, and those
 * are formed here, alike for all three. So a byte string on which all agreed once is not shown to
 * them again within one verification (struct memo): compiled code repeats itself, and Capstone,
 * which prints a text that nobody asked for, costs as much as the analysis.
 *
 * Cost: no allocation per instruction; registers and mnemonics are looked up in tables built once a
 * verification.
 */
#include <string.h>

#include "agree_parts.h"

/* Operations that share a mnemonic are compared as one. */
static unsigned fold(unsigned op)
{
	return op == OP_IMUL1                            ? OP_IMUL
	       : op == OP_JMP_TABLE                      ? OP_JMP
	       : op == OP_CALL_SLOT || op == OP_CALL_REG ? OP_CALL
							 : op;
}

/* What *insn says the libraries should show, in Intel order. */
static unsigned expected_operands(const struct fay_insn *insn, struct fay_operand out[MAX_OPERANDS],
				  unsigned widths[MAX_OPERANDS])
{
	unsigned count = 0;

	for (unsigned i = 0; i < MAX_OPERANDS; i++)
		widths[i] = insn->width;
	switch (insn->op) {
	case OP_NOP:
	case OP_CQO: return 0;
	case OP_JMP:
	case OP_JCC:
	case OP_CALL:
		out[0] = (struct fay_operand){ .kind = OPERAND_IMM, .imm = (int64_t)insn->target };
		return 1;
	case OP_CALL_SLOT:
		out[0] = (struct fay_operand){ .kind = OPERAND_MEM,
					       .rip = true,
					       .base = FAY_NO_REG,
					       .index = FAY_NO_REG,
					       .disp = (int64_t)insn->target };
		return 1;
	default: break;
	}
	if (insn->dst.kind != OPERAND_NONE)
		out[count++] = insn->dst;
	if (insn->op == OP_ANDN || insn->op == OP_MULX)
		out[count++] = insn->src2;
	if (insn->src.kind != OPERAND_NONE) {
		bool count_operand = insn->op >= OP_SHL && insn->op <= OP_ROR;
		widths[count] = count_operand ? 8 : insn->src_width;
		out[count++] = insn->src;
	}
	if (insn->op == OP_IMUL && insn->src2.kind == OPERAND_IMM)
		out[count++] = insn->src2;
	if (insn->op >= OP_BZHI && insn->op <= OP_SARX)
		out[count++] = insn->src2;
	if (insn->op == OP_SHLD || insn->op == OP_SHRD || insn->op == OP_RORX) {
		widths[count] = 8;
		out[count++] = insn->src2;
	}
	return count;
}

static uint8_t reg_code(unsigned gpr, unsigned width)
{
	return gpr == FAY_NO_REG ? REG_NONE
				 : REG_CODE(gpr, width == 8    ? 0
						 : width == 16 ? 1
						 : width == 32 ? 2
							       : 3);
}

static bool same_operand(const struct fay_operand *o, unsigned width,
			 const struct reading_operand *r, bool sized)
{
	if ((o->kind == OPERAND_HIGH ? OPERAND_REG : o->kind) != r->kind)
		return false;
	switch (o->kind) {
	case OPERAND_REG: return r->reg == reg_code(o->reg, width);
	case OPERAND_HIGH: return r->reg == REG_HIGH(o->reg);
	case OPERAND_IMM:
		return ((uint64_t)(o->imm ^ r->value) &
			(width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1)) == 0;
	case OPERAND_MEM:
		return r->base == (o->rip ? REG_RIP : reg_code(o->base, 64)) &&
		       r->index == reg_code(o->index, 64) &&
		       (o->index == FAY_NO_REG || r->scale == o->scale) && r->value == o->disp &&
		       (!sized || r->size == 0 || r->size == width);
	default: return true;
	}
}

/* test and xchg mean the same with their operands exchanged, and the libraries differ in the order
 * they show. */
static bool same_operands(const struct fay_insn *insn, const struct reading *r)
{
	struct fay_operand expected[MAX_OPERANDS];
	unsigned widths[MAX_OPERANDS], count = expected_operands(insn, expected, widths);
	bool sized = insn->op != OP_LEA, exchanged;

	/* What a string instruction works on follows from its mnemonic; the libraries differ in how
	 * much of it they show. */
	if (insn->op == OP_NOP || insn->op == OP_REP_MOVS || insn->op == OP_REP_STOS)
		return true;
	/* cbw, cwde, cdqe: only decode.c's FORM_EXTEND_A has rax to rax without operands */
	if (insn->op == OP_MOVSX && r->count == 0)
		return insn->length <= 2 && insn->dst.reg == FAY_RAX &&
		       insn->src.kind == OPERAND_REG && insn->src.reg == FAY_RAX;
	if (insn->op >= OP_SHL && insn->op <= OP_ROR && r->count == 1 &&
	    insn->src.kind == OPERAND_IMM && insn->src.imm == 1)
		count = 1; /* the one in "shift by 1" is part of the opcode */
	if (r->count != count)
		return false;
	exchanged = (insn->op == OP_TEST || insn->op == OP_XCHG) &&
		    !same_operand(&expected[0], widths[0], &r->operands[0], sized);
	for (unsigned i = 0; i < count; i++) {
		if (!same_operand(&expected[i], widths[i], &r->operands[exchanged ? 1 - i : i],
				  sized))
			return false;
	}
	return true;
}

static unsigned log2_bytes(unsigned width)
{
	return width == 8 ? 0 : width == 16 ? 1 : width == 32 ? 2 : 3;
}

/* NULL if the reading is the same as ours, else what differs. */
static const char *difference(const struct fay_insn *insn, const struct reading *r)
{
	bool string = insn->op == OP_REP_MOVS || insn->op == OP_REP_STOS;
	unsigned suffix = fay_op_table[insn->op].attributes & ATTR_CC ? insn->cc
			  : string                                    ? log2_bytes(insn->width)
								      : 0;
	/* 66 90 is xchg %ax,%ax too */
	bool xchg_nop = insn->op == OP_NOP && insn->length == 2 && r->code == CODE(OP_XCHG, 0);

	if (r->length != insn->length)
		return "its length";
	if (!xchg_nop && (r->code == UNKNOWN || r->code != CODE(fold(insn->op), suffix)))
		return "the operation";
	if (r->locked != insn->locked)
		return "the lock prefix";
	if (string && !r->repeated)
		return "the repeat prefix";
	return same_operands(insn, r) ? NULL : "the operands";
}

/* endbr64 is younger than Capstone 4.0.2, which reads F3 0F 1E FA as a no-operation or not at all.
 * Our decoder and Zydis match all four bytes. */
static bool is_endbr64(const uint8_t *bytes, const struct fay_insn *insn)
{
	return insn->op == OP_NOP && insn->length == 4 && bytes[0] == 0xf3;
}

static struct memo *find_memo(struct fay_agree *agree, const uint8_t *bytes, unsigned length,
			      struct memo *key)
{
	uint64_t low, high;

	*key = (struct memo){ .length = (uint8_t)length };
	memcpy(key->bytes, bytes, length);
	memcpy(&low, key, 8);
	memcpy(&high, (const uint8_t *)key + 8, 8);
	return &agree->memo[(low * 0x9e3779b97f4a7c15u ^ high * 0xc2b2ae3d27d4eb4fu) >>
			    (64 - MEMO_BITS)];
}

struct fay_refusal fay_agree_check(struct fay_agree *agree, struct fay_arena *arena,
				   const uint8_t *bytes, size_t available,
				   const struct fay_insn *insn)
{
	typedef bool reader(struct fay_agree *, const uint8_t *, size_t, uint64_t,
			    struct reading *);
	static const struct {
		const char *name;
		reader *read;
	} readers[] = { { "Zydis", fay_read_zydis }, { "Capstone", fay_read_capstone } };
	struct memo key, *memo;

	if (insn->length == 0 || insn->length > MAX_LENGTH || insn->length > available)
		return fay_refuse(arena, FAY_RULE_DEC_DISAGREE, insn->address,
				  "an instruction of %u bytes", insn->length);
	memo = find_memo(agree, bytes, insn->length, &key);
	if (memcmp(memo, &key, sizeof(key)) == 0)
		return (struct fay_refusal){ .rule = FAY_RULE_NONE };
	if (insn->op == OP_VECTOR) {
		struct fay_refusal refusal =
			fay_agree_vector(&agree->zydis, agree->capstone, agree->insn, arena, bytes,
					 insn->length, insn);

		if (refusal.rule == FAY_RULE_NONE)
			*memo = key;
		return refusal;
	}
	for (unsigned i = 0; i < 2; i++) {
		struct reading reading = { .code = UNKNOWN };
		const char *what;

		if (i == 1 && is_endbr64(bytes, insn))
			continue;
		if (!readers[i].read(agree, bytes, insn->length, insn->address, &reading))
			return fay_refuse(arena, FAY_RULE_DEC_DISAGREE, insn->address,
					  "%s does not know this instruction (read here as %s)",
					  readers[i].name, fay_op_table[insn->op].name);
		what = difference(insn, &reading);
		if (what)
			return fay_refuse(arena, FAY_RULE_DEC_DISAGREE, insn->address,
					  "%s disagrees about %s (read here as %s, %u bytes)",
					  readers[i].name, what, fay_op_table[insn->op].name,
					  insn->length);
	}
	*memo = key;
	return (struct fay_refusal){ .rule = FAY_RULE_NONE };
}
