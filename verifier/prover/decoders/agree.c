/* SPDX-License-Identifier: MIT */
/*
 * Two more readers of each instruction, Zydis and Capstone, who may object but not decide.
 *
 * Our decoder alone gives meaning; an instruction stands only if both libraries see the same
 * length, operation, registers, widths, immediates, addresses and branch target in the same bytes.
 * What a library says of effects (flags, access, implicit operands) is not used: Capstone 4.0.2 is
 * known to be wrong there (it calls `rol [m], 1` a load). Both readings are turned into one small
 * form, `struct reading`, and compared with what *insn expects.
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
#include <stdlib.h>
#include <string.h>

#include <Zydis/Zydis.h>
#include <capstone/capstone.h>

#include "agree_vector.h"
#include "verifier/isa/decode.h"
#include "verifier/rules/rules.h"

#define MAX_LENGTH 15
#define MAX_OPERANDS 3

/* Operations that share a mnemonic are compared as one. */
static unsigned fold(unsigned op)
{
	return op == OP_IMUL1                            ? OP_IMUL
	       : op == OP_JMP_TABLE                      ? OP_JMP
	       : op == OP_CALL_SLOT || op == OP_CALL_REG ? OP_CALL
							 : op;
}

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

#define UNKNOWN 0xffff
#define CODE(op, cc) ((uint16_t)((op) << 4 | (cc)))

/* Register codes: 0 is none, else 1 + gpr * 4 + log2(width / 8). */
#define REG_NONE 0
#define REG_RIP 0xfe
#define REG_OTHER 0xff
#define REG_HIGH(gpr) ((uint8_t)(0x80 + (gpr))) /* ah, ch, dh, bh */
#define REG_CODE(gpr, log) ((uint8_t)(1 + (gpr) * 4 + (log)))

/* Capstone 4.0.2 has no number for it: see capstone_knows() */
#define X86_INS_ENDBR64 X86_INS_INVALID

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

static bool read_zydis(struct fay_agree *agree, const uint8_t *bytes, size_t available,
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

static bool read_capstone(struct fay_agree *agree, const uint8_t *bytes, size_t available,
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
	} readers[] = { { "Zydis", read_zydis }, { "Capstone", read_capstone } };
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

int fay_disassemble(const uint8_t *bytes, size_t available, uint64_t address, char *text,
		    size_t text_size)
{
	ZydisDecoder decoder;
	ZydisFormatter formatter;
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

	if (ZYAN_FAILED(
		    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
	    ZYAN_FAILED(ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL)) ||
	    ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, bytes, available, &insn, operands)) ||
	    ZYAN_FAILED(ZydisFormatterFormatInstruction(&formatter, &insn, operands,
							insn.operand_count_visible, text, text_size,
							address, NULL)))
		return 0;
	return insn.length;
}
