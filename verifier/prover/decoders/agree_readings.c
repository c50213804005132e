/* SPDX-License-Identifier: MIT */
/* What Zydis and Capstone read, in one form: their mnemonics, registers and operands in our
 * numbers. */
#include <stdlib.h>
#include <string.h>

#include "agree_parts.h"

/* How each library calls an operation: SAME(op, name), or DIFFERENT(op, Zydis's name, Capstone's).
 * */
/* clang-format off */
#define MNEMONICS(SAME, DIFFERENT) \
	SAME(NOP, NOP) DIFFERENT(NOP, ENDBR64, ENDBR64) DIFFERENT(MOV, MOV, MOVABS) \
	SAME(MOV, MOV) SAME(MOVZX, MOVZX) SAME(MOVSX, MOVSX) SAME(MOVSX, MOVSXD) \
	SAME(MOVSX, CBW) SAME(MOVSX, CWDE) SAME(MOVSX, CDQE) SAME(LEA, LEA) SAME(ADD, ADD) \
	SAME(SUB, SUB) SAME(AND, AND) SAME(OR, OR) SAME(XOR, XOR) SAME(ADC, ADC) SAME(SBB, SBB) \
	SAME(CMP, CMP) SAME(TEST, TEST) SAME(NOT, NOT) SAME(NEG, NEG) SAME(INC, INC) \
	SAME(DEC, DEC) SAME(SHL, SHL) DIFFERENT(SHL, SHL, SAL) SAME(SHR, SHR) SAME(SAR, SAR) \
	SAME(ROL, ROL) SAME(ROR, ROR) SAME(SHLD, SHLD) SAME(SHRD, SHRD) SAME(IMUL, IMUL) \
	SAME(MUL1, MUL) SAME(DIV, DIV) SAME(IDIV, IDIV) SAME(CQO, CQO) SAME(CQO, CDQ) \
	SAME(CQO, CWD) SAME(BT, BT) SAME(BTS, BTS) SAME(BTR, BTR) SAME(BTC, BTC) \
	SAME(BSWAP, BSWAP) SAME(BSF, BSF) SAME(BSR, BSR) SAME(TZCNT, TZCNT) SAME(LZCNT, LZCNT) \
	SAME(POPCNT, POPCNT) SAME(XCHG, XCHG) SAME(XADD, XADD) SAME(CMPXCHG, CMPXCHG) \
	SAME(PUSH, PUSH) SAME(POP, POP) SAME(JMP, JMP) SAME(CALL, CALL) SAME(RET, RET) \
	SAME(LFENCE, LFENCE) SAME(RDTSC, RDTSC) SAME(LEAVE, LEAVE) SAME(MFENCE, MFENCE) \
	SAME(MFENCE, SFENCE) SAME(PAUSE, PAUSE) SAME(MOVBE, MOVBE) SAME(ANDN, ANDN) \
	SAME(BLSI, BLSI) SAME(BLSR, BLSR) SAME(BLSMSK, BLSMSK) SAME(BZHI, BZHI) \
	SAME(SHLX, SHLX) SAME(SHRX, SHRX) SAME(SARX, SARX) SAME(RORX, RORX) SAME(MULX, MULX)
/* clang-format on */

/* The width is part of the mnemonic: log2 of the bytes takes the condition's place. */
/* clang-format off */
#define STRINGS(S) \
	S(REP_MOVS, MOVSB, 0) S(REP_MOVS, MOVSD, 2) S(REP_MOVS, MOVSQ, 3) S(REP_STOS, STOSB, 0) \
	S(REP_STOS, STOSD, 2) S(REP_STOS, STOSQ, 3)
/* clang-format on */

/* Condition codes in encoding order, with each library's suffix. */
/* clang-format off */
#define CONDITIONS(C) \
	C(O, O, O) C(NO, NO, NO) C(B, B, B) C(AE, NB, AE) C(E, Z, E) C(NE, NZ, NE) \
	C(BE, BE, BE) C(A, NBE, A) C(S, S, S) C(NS, NS, NS) C(P, P, P) C(NP, NP, NP) C(L, L, L) \
	C(GE, NL, GE) C(LE, LE, LE) C(G, NLE, G)
/* clang-format on */

/* Capstone 4.0.2 has no number for it: see capstone_knows() */
#define X86_INS_ENDBR64 X86_INS_INVALID

static void fill_registers(struct fay_agree *agree)
{
	/* Both libraries number r8 to r15 in order, per width, but not the first eight. */
	static const ZydisRegister zydis[4][3] = {
		{ ZYDIS_REGISTER_AL, ZYDIS_REGISTER_SPL, ZYDIS_REGISTER_R8B },
		{ ZYDIS_REGISTER_AX, ZYDIS_REGISTER_SP, ZYDIS_REGISTER_R8W },
		{ ZYDIS_REGISTER_EAX, ZYDIS_REGISTER_ESP, ZYDIS_REGISTER_R8D },
		{ ZYDIS_REGISTER_RAX, ZYDIS_REGISTER_RSP, ZYDIS_REGISTER_R8 },
	};
	static const uint16_t capstone[4][8] = {
		{ X86_REG_AL, X86_REG_CL, X86_REG_DL, X86_REG_BL, X86_REG_SPL, X86_REG_BPL,
		  X86_REG_SIL, X86_REG_DIL },
		{ X86_REG_AX, X86_REG_CX, X86_REG_DX, X86_REG_BX, X86_REG_SP, X86_REG_BP,
		  X86_REG_SI, X86_REG_DI },
		{ X86_REG_EAX, X86_REG_ECX, X86_REG_EDX, X86_REG_EBX, X86_REG_ESP, X86_REG_EBP,
		  X86_REG_ESI, X86_REG_EDI },
		{ X86_REG_RAX, X86_REG_RCX, X86_REG_RDX, X86_REG_RBX, X86_REG_RSP, X86_REG_RBP,
		  X86_REG_RSI, X86_REG_RDI },
	};
	static const uint16_t capstone_high[4] = { X86_REG_R8B, X86_REG_R8W, X86_REG_R8D,
						   X86_REG_R8 };

	memset(agree->zydis_reg, REG_OTHER, sizeof(agree->zydis_reg));
	memset(agree->capstone_reg, REG_OTHER, sizeof(agree->capstone_reg));
	agree->zydis_reg[ZYDIS_REGISTER_NONE] = REG_NONE;
	agree->zydis_reg[ZYDIS_REGISTER_RIP] = REG_RIP;
	agree->capstone_reg[X86_REG_INVALID] = REG_NONE;
	agree->capstone_reg[X86_REG_RIZ] = REG_NONE; /* "no index", spelt out */
	agree->capstone_reg[X86_REG_EIZ] = REG_NONE;
	agree->capstone_reg[X86_REG_RIP] = REG_RIP;
	for (unsigned i = 0; i < 4; i++) {
		static const uint16_t high[4] = { X86_REG_AH, X86_REG_CH, X86_REG_DH, X86_REG_BH };

		agree->zydis_reg[ZYDIS_REGISTER_AH + i] = REG_HIGH(i);
		agree->capstone_reg[high[i]] = REG_HIGH(i);
	}
	for (unsigned log = 0; log < 4; log++) {
		for (unsigned i = 0; i < 16; i++) {
			unsigned part = i / 4 > 2 ? 2 : i / 4; /* 0-3, 4-7, 8-15 */
			agree->zydis_reg[zydis[log][part] + (i - 4 * part)] = REG_CODE(i, log);
			agree->capstone_reg[i < 8 ? capstone[log][i]
						  : capstone_high[log] + (i - 8)] =
				REG_CODE(i, log);
		}
	}
}

static void fill_mnemonics(struct fay_agree *agree)
{
	memset(agree->zydis_code, 0xff, sizeof(agree->zydis_code));
	memset(agree->capstone_code, 0xff, sizeof(agree->capstone_code));
#define DIFFERENT(op, z, c)                                                                        \
	agree->zydis_code[ZYDIS_MNEMONIC_##z] = CODE(OP_##op, 0);                                  \
	agree->capstone_code[X86_INS_##c] = CODE(OP_##op, 0);
#define SAME(op, name) DIFFERENT(op, name, name)
	MNEMONICS(SAME, DIFFERENT)
#undef SAME
#undef DIFFERENT
#define STRING(op, name, log)                                                                      \
	agree->zydis_code[ZYDIS_MNEMONIC_##name] = agree->capstone_code[X86_INS_##name] =          \
		CODE(OP_##op, log);
	STRINGS(STRING)
#undef STRING
#define CONDITION(cc, z, c)                                                                        \
	agree->zydis_code[ZYDIS_MNEMONIC_J##z] = agree->capstone_code[X86_INS_J##c] =              \
		CODE(OP_JCC, CC_##cc);                                                             \
	agree->zydis_code[ZYDIS_MNEMONIC_CMOV##z] = agree->capstone_code[X86_INS_CMOV##c] =        \
		CODE(OP_CMOV, CC_##cc);                                                            \
	agree->zydis_code[ZYDIS_MNEMONIC_SET##z] = agree->capstone_code[X86_INS_SET##c] =          \
		CODE(OP_SETCC, CC_##cc);
	CONDITIONS(CONDITION)
#undef CONDITION
	agree->capstone_code[X86_INS_INVALID] = UNKNOWN;
}

struct fay_agree *fay_agree_create(void)
{
	struct fay_agree *agree = calloc(1, sizeof(*agree));

	if (!agree)
		return NULL;
	if (ZYAN_FAILED(ZydisDecoderInit(&agree->zydis, ZYDIS_MACHINE_MODE_LONG_64,
					 ZYDIS_STACK_WIDTH_64)) ||
	    cs_open(CS_ARCH_X86, CS_MODE_64, &agree->capstone) != CS_ERR_OK) {
		free(agree);
		return NULL;
	}
	if (cs_option(agree->capstone, CS_OPT_DETAIL, CS_OPT_ON) != CS_ERR_OK ||
	    !(agree->insn = cs_malloc(agree->capstone))) {
		cs_close(&agree->capstone);
		free(agree);
		return NULL;
	}
	fill_registers(agree);
	fill_mnemonics(agree);
	return agree;
}

void fay_agree_destroy(struct fay_agree *agree)
{
	if (!agree)
		return;
	cs_free(agree->insn, 1);
	cs_close(&agree->capstone);
	free(agree);
}

static struct reading_operand zydis_operand(const struct fay_agree *agree,
					    const ZydisDecodedOperand *o, uint64_t next)
{
	struct reading_operand r = { .size = o->size };

	switch (o->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		r.kind = OPERAND_REG;
		r.reg = agree->zydis_reg[o->reg.value];
		break;
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		r.kind = OPERAND_IMM;
		r.value = o->imm.is_relative ? (int64_t)(next + o->imm.value.u) : o->imm.value.s;
		break;
	case ZYDIS_OPERAND_TYPE_MEMORY:
		r.kind = OPERAND_MEM;
		r.base = agree->zydis_reg[o->mem.base];
		r.index = agree->zydis_reg[o->mem.index];
		r.scale = o->mem.scale;
		r.value = r.base == REG_RIP ? (int64_t)(next + (uint64_t)o->mem.disp.value)
					    : o->mem.disp.value;
		break;
	default: break;
	}
	return r;
}

bool fay_read_zydis(struct fay_agree *agree, const uint8_t *bytes, size_t available,
		    uint64_t address, struct reading *r)
{
	ZydisDecodedInstruction z;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&agree->zydis, bytes, available, &z, operands)))
		return false;
	r->reader = "Zydis";
	r->length = z.length;
	r->code = agree->zydis_code[z.mnemonic];
	r->locked = z.attributes & ZYDIS_ATTRIB_HAS_LOCK;
	r->repeated = z.attributes & ZYDIS_ATTRIB_HAS_REP;
	r->count = z.operand_count_visible;
	for (unsigned i = 0; i < r->count && i < MAX_OPERANDS; i++)
		r->operands[i] = zydis_operand(agree, &operands[i], address + z.length);
	return true;
}

static struct reading_operand capstone_operand(const struct fay_agree *agree, const cs_x86_op *o,
					       uint64_t next)
{
	struct reading_operand r = { 0 };

	switch (o->type) {
	case X86_OP_REG:
		r.kind = OPERAND_REG;
		r.reg = agree->capstone_reg[o->reg];
		break;
	case X86_OP_IMM:
		r.kind = OPERAND_IMM;
		r.value = o->imm;
		break;
	case X86_OP_MEM:
		r.kind = OPERAND_MEM;
		/* The string instructions' [rdi] is said to be in es, whose base is 0 here. */
		r.base = agree->capstone_reg[o->mem.base];
		if (o->mem.segment != X86_REG_INVALID &&
		    (o->mem.segment != X86_REG_ES || o->mem.base != X86_REG_RDI))
			r.base = REG_OTHER;
		r.index = agree->capstone_reg[o->mem.index];
		r.scale = (uint8_t)o->mem.scale;
		r.value = r.base == REG_RIP ? (int64_t)(next + (uint64_t)o->mem.disp) : o->mem.disp;
		break;
	default: break;
	}
	return r;
}

bool fay_read_capstone(struct fay_agree *agree, const uint8_t *bytes, size_t available,
		       uint64_t address, struct reading *r)
{
	const cs_x86 *x86 = &agree->insn->detail->x86;

	if (!cs_disasm_iter(agree->capstone, &bytes, &available, &address, agree->insn))
		return false;
	r->reader = "Capstone";
	r->length = agree->insn->size;
	r->code =
		agree->insn->id < X86_INS_ENDING ? agree->capstone_code[agree->insn->id] : UNKNOWN;
	r->locked = x86->prefix[0] == X86_PREFIX_LOCK;
	r->repeated = x86->prefix[0] == X86_PREFIX_REP;
	r->count = x86->op_count;
	for (unsigned i = 0; i < r->count && i < MAX_OPERANDS; i++)
		r->operands[i] = capstone_operand(agree, &x86->operands[i],
						  agree->insn->address + agree->insn->size);
	return true;
}
