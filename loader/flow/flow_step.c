/* SPDX-License-Identifier: MIT */
/* What is to be known of a single instruction. */
#include "flow_private.h"

#define NULL_PAGE 4096u

static bool is_nop(const ZydisDecodedInstruction *insn, const uint8_t *bytes)
{
	if (insn->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT)
		return insn->opcode == 0xcc ||
		       (insn->opcode == 0x90 && bytes[0] != 0xf3 && !insn->raw.rex.B);
	return insn->opcode_map == ZYDIS_OPCODE_MAP_0F && insn->opcode == 0x1f;
}

bool fay_step_stores_near_null(const ZydisDecodedInstruction *insn, uint64_t *address)
{
	bool mov = insn->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
		   insn->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
		   (insn->opcode == 0x88 || insn->opcode == 0x89 ||
		    ((insn->opcode == 0xc6 || insn->opcode == 0xc7) && insn->raw.modrm.reg == 0));

	if (!mov || insn->raw.modrm.mod != 0 || insn->raw.modrm.rm != 4 ||
	    insn->raw.sib.base != 5 || insn->raw.sib.index != 4 || insn->raw.rex.X ||
	    insn->address_width != 64)
		return false;
	for (unsigned i = 0; i < insn->raw.prefix_count; i++)
		if (insn->raw.prefixes[i].value == 0x64 || insn->raw.prefixes[i].value == 0x65)
			return false; /* fs or gs: of the thread */
	*address = (uint64_t)insn->raw.disp.value;
	return *address < NULL_PAGE;
}

static enum fay_step_kind kind_of_default(const ZydisDecodedInstruction *insn)
{
	switch (insn->opcode) {
	case 0xc2:
	case 0xc3: return FAY_STEP_RETURN;
	case 0xe8: return FAY_STEP_CALL;
	case 0xe9:
	case 0xeb: return FAY_STEP_JUMP;
	case 0x70 ... 0x7f: return FAY_STEP_BRANCH;
	case 0xf4: return FAY_STEP_STOP;
	case 0xca:
	case 0xcb:
	case 0xcd:
	case 0xcf:
	case 0xe0 ... 0xe3:
	case 0xf1: return FAY_STEP_FIXED;
	case 0xc6:
	/* xabort, xbegin */
	case 0xc7:
		return insn->raw.modrm.mod == 3 && insn->raw.modrm.reg == 7 ? FAY_STEP_FIXED
									    : FAY_STEP_PLAIN;
	case 0xff:
		if (insn->raw.modrm.reg == 2)
			return FAY_STEP_CALL;
		if (insn->raw.modrm.reg == 4)
			return FAY_STEP_INDIRECT;
		return insn->raw.modrm.reg == 3 || insn->raw.modrm.reg == 5 ? FAY_STEP_FIXED
									    : FAY_STEP_PLAIN;
	default: return FAY_STEP_PLAIN;
	}
}

enum fay_step_kind fay_step_kind_of(const ZydisDecodedInstruction *insn, const uint8_t *bytes)
{
	if (is_nop(insn, bytes))
		return FAY_STEP_PADDING;
	if (insn->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return FAY_STEP_PLAIN;
	if (insn->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT)
		return kind_of_default(insn);
	if (insn->opcode_map != ZYDIS_OPCODE_MAP_0F)
		return FAY_STEP_PLAIN;
	switch (insn->opcode) {
	case 0x0b: return FAY_STEP_STOP;
	case 0xb9:
	case 0xff: return FAY_STEP_STOP; /* ud1, ud0 */
	case 0x80 ... 0x8f: return FAY_STEP_BRANCH;
	case 0x05:
	case 0x07:
	case 0x34:
	case 0x35: return FAY_STEP_FIXED;
	default: return FAY_STEP_PLAIN;
	}
}

bool fay_step_goes_away(const ZydisDecodedInstruction *insn)
{
	if (insn->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
	    insn->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT)
		return false;
	switch (insn->opcode) {
	case 0xca: /* retf, iret */
	case 0xcb:
	case 0xcf: return true;
	case 0xc6: return insn->raw.modrm.mod == 3 && insn->raw.modrm.reg == 7;
	case 0xff: return insn->raw.modrm.reg == 5;
	default: return false;
	}
}

size_t fay_padding_length(const uint8_t *bytes, size_t size)
{
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
	if (!size ||
	    !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, size, &insn)))
		return 0;
	return fay_step_kind_of(&insn, bytes) == FAY_STEP_PADDING ? insn.length : 0;
}

/* Opcodes of the first two maps that do nothing but set flags: without a group's operations, which
 * are told by modrm.reg. */
static bool only_sets_flags(const ZydisDecodedInstruction *insn)
{
	bool first = insn->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;

	if (insn->opcode_map == ZYDIS_OPCODE_MAP_0F38)
		/* ptest, vtestps, vtestpd */
		return insn->opcode == 0x17 || insn->opcode == 0x0e || insn->opcode == 0x0f;
	if (insn->opcode_map == ZYDIS_OPCODE_MAP_0F)
		return insn->opcode == 0xa3 || (insn->opcode == 0xba && insn->raw.modrm.reg == 4) ||
		       insn->opcode == 0x2e || insn->opcode == 0x2f;
	if (!first)
		return false;
	switch (insn->opcode) {
	case 0x38 ... 0x3d: /* cmp */
	case 0x84:          /* test */
	case 0x85:
	case 0xa8:
	case 0xa9:
	case 0x9d: /* popf, sahf, cmc, clc, stc, std, cld */
	case 0x9e:
	case 0xf5:
	case 0xf8:
	case 0xf9:
	case 0xfc:
	case 0xfd: return true;
	case 0x80 ... 0x83: return insn->raw.modrm.reg == 7;
	case 0xf6:
	case 0xf7: return insn->raw.modrm.reg <= 1;
	default: return false;
	}
}

enum fay_step_flags fay_step_flags_of(const ZydisDecodedInstruction *insn)
{
	if (only_sets_flags(insn))
		return FAY_FLAGS_SET;
	if (insn->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return FAY_FLAGS_KEPT;
	if (insn->opcode_map == ZYDIS_OPCODE_MAP_0F)
		switch (insn->opcode) {
		case 0x10 ... 0x17:
		case 0x1e ... 0x1f:
		case 0x28 ... 0x29:
		case 0x57:
		case 0x6e ... 0x6f:
		case 0x7e ... 0x7f:
		case 0xb6 ... 0xb7:
		case 0xbe ... 0xbf:
		case 0xc8 ... 0xcf:
		case 0xd6:
		case 0xef: return FAY_FLAGS_KEPT;
		default: return FAY_FLAGS_USED;
		}
	if (insn->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT)
		return FAY_FLAGS_USED;
	switch (insn->opcode) {
	case 0x50 ... 0x5f:
	case 0x63:
	case 0x86 ... 0x8b:
	case 0x8d:
	case 0x8f ... 0x99:
	case 0xa4 ... 0xa5:
	case 0xaa ... 0xab:
	case 0xb0 ... 0xbf:
	case 0xc6 ... 0xc7:
	case 0xc9: return FAY_FLAGS_KEPT;
	default: return FAY_FLAGS_USED;
	}
}

/* mov, or lea, of something else than rbp to rsp: to another stack, or, in OCaml, to a handler's
 * frame. */
bool fay_step_moves_stack(const ZydisDecodedInstruction *insn)
{
	bool legacy = insn->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
		      insn->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
	bool to_rm = legacy && insn->opcode == 0x89 && insn->raw.modrm.mod == 3 &&
		     insn->raw.modrm.rm == 4 && !insn->raw.rex.B;
	bool to_reg = legacy && (insn->opcode == 0x8b || insn->opcode == 0x8d) &&
		      insn->raw.modrm.reg == 4 && !insn->raw.rex.R;
	bool of_rsp = insn->raw.modrm.rm == 4 && insn->opcode == 0x8d;

	if (to_rm)
		return insn->raw.modrm.reg != 5 || insn->raw.rex.R;
	return to_reg && !of_rsp && (insn->raw.modrm.rm != 5 || insn->raw.rex.B);
}

bool fay_step_splits(const ZydisDecodedInstruction *insn, const uint8_t *bytes)
{
	return bytes[0] == 0x64 && insn->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
	       insn->opcode == 0x3b && insn->raw.modrm.mod == 0 && insn->raw.disp.size == 32 &&
	       insn->raw.disp.value == 0x70;
}

/* Other than by an access of the stack, or of the module's own data. */
bool fay_step_may_fault(const ZydisDecodedInstruction *insn, const uint8_t *bytes)
{
	bool first = insn->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
		     insn->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
	uint8_t mod = insn->raw.modrm.mod, rm = insn->raw.modrm.rm;

	if (first && ((insn->opcode >= 0xa4 && insn->opcode <= 0xa7) ||
		      (insn->opcode >= 0xaa && insn->opcode <= 0xaf)))
		return true; /* strings */
	if (first && (insn->opcode | 1) == 0xf7 && insn->raw.modrm.reg >= 6)
		return true; /* div, idiv */
	if (!insn->raw.modrm.offset || mod == 3 || (first && insn->opcode == 0x8d))
		return false;
	if (rm == 4 && !insn->raw.rex.B && (bytes[insn->raw.modrm.offset + 1] & 0x3f) == 0x24)
		return false;                            /* rsp, without an index */
	return rm != 5 || (mod != 0 && insn->raw.rex.B); /* neither rip nor rbp */
}

bool fay_code_faults(const uint8_t *bytes, size_t size)
{
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t at = 0; at < size; at += insn.length) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes + at,
								size - at, &insn)))
			return false;
		if (fay_step_may_fault(&insn, bytes + at))
			return true;
	}
	return false;
}

/* How the instruction changes the stack's depth; false: that is not known. */
bool fay_step_depth_after(const ZydisDecodedInstruction *insn, const uint8_t *bytes, int32_t *depth)
{
	const uint8_t *modrm = bytes + insn->raw.modrm.offset;

	if (insn->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
	    insn->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT)
		return true;
	switch (insn->opcode) {
	case 0xc8:
	case 0x87: /* enter, xchg */
	case 0x94: return insn->opcode == 0x94 && insn->raw.rex.B;
	case 0x50 ... 0x57:
	case 0x68:
	case 0x6a:
	case 0x9c: *depth += 8; return true;
	case 0x58 ... 0x5f:
	case 0x9d: *depth -= 8; return insn->opcode != 0x5c || insn->raw.rex.B;
	case 0xc9: *depth = 0; return true;
	case 0x8f: *depth -= 8; return true;
	case 0xff:
		if (insn->raw.modrm.reg == 6)
			*depth += 8;
		return true;
	case 0x81:
	case 0x83:
		if (insn->raw.modrm.mod != 3 || insn->raw.modrm.rm != 4 || insn->raw.rex.B)
			return true;
		if (insn->raw.modrm.reg == 0)
			*depth -= (int32_t)insn->raw.imm[0].value.s;
		if (insn->raw.modrm.reg == 5)
			*depth += (int32_t)insn->raw.imm[0].value.s;
		return insn->raw.modrm.reg == 0 || insn->raw.modrm.reg == 5 ||
		       insn->raw.modrm.reg == 7;
	case 0x8d:
		if (insn->raw.modrm.reg != 4 || insn->raw.rex.R)
			return true;
		*depth -= (int32_t)insn->raw.disp.value;
		return insn->raw.modrm.rm == 4 && modrm[1] == 0x24;
	case 0x89:
	case 0x31:
	case 0x01:
	case 0x29:
	case 0x21: return insn->raw.modrm.mod != 3 || insn->raw.modrm.rm != 4 || insn->raw.rex.B;
	case 0x8b:
	case 0x03:
	case 0x2b: return insn->raw.modrm.reg != 4 || insn->raw.rex.R;
	default: return true;
	}
}
