/* SPDX-License-Identifier: MIT */
#include "trampoline.h"

#include <Zydis/Zydis.h>

#define INLINE_MAX 96u /* bytes */

struct scan {
	uint64_t starts[2]; /* bit per byte: an instruction begins here */
	uint64_t targets[2];
	unsigned state_operands; /* memory operands other than the event's */
	bool state_kept;         /* something of it may be in a register or decide a jump */
	bool event_moved;        /* rdi changed */
};

static void set_bit(uint64_t bits[2], size_t at)
{
	bits[at / 64] |= UINT64_C(1) << at % 64;
}

/* add $n, memory and the like: run twice in any order, they do the same. Jumps may look at the
 * flags, which say something of what was there. */
static bool only_adds(ZydisMnemonic mnemonic)
{
	return mnemonic == ZYDIS_MNEMONIC_INC || mnemonic == ZYDIS_MNEMONIC_DEC ||
	       mnemonic == ZYDIS_MNEMONIC_ADD || mnemonic == ZYDIS_MNEMONIC_SUB;
}

/* False: this instruction keeps the probe from being inlined. */
static bool scan_operands(struct scan *scan, const ZydisDecodedInstruction *insn,
			  const ZydisDecodedOperand *operands)
{
	for (unsigned i = 0; i < insn->operand_count; i++) {
		const ZydisDecodedOperand *operand = &operands[i];

		if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			ZydisRegister whole = ZydisRegisterGetLargestEnclosing(
				ZYDIS_MACHINE_MODE_LONG_64, operand->reg.value);

			if (whole == ZYDIS_REGISTER_RSP)
				return false;
			scan->event_moved |= whole == ZYDIS_REGISTER_RDI &&
					     operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
		} else if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY) {
			if (operand->mem.base == ZYDIS_REGISTER_RSP ||
			    operand->mem.base == ZYDIS_REGISTER_RIP ||
			    operand->mem.base == ZYDIS_REGISTER_EIP ||
			    operand->mem.index == ZYDIS_REGISTER_RSP)
				return false;
			if (operand->mem.type == ZYDIS_MEMOP_TYPE_AGEN ||
			    operand->mem.base == ZYDIS_REGISTER_RDI)
				continue;
			scan->state_operands++;
			scan->state_kept |= !only_adds(insn->mnemonic) ||
					    !(operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE);
		}
	}
	return true;
}

/* A direct jump's target goes to `targets`; any other transfer of control is refused. */
static bool scan_flow(struct scan *scan, const ZydisDecodedInstruction *insn, size_t at)
{
	switch (insn->meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_UNCOND_BR:
		if (!insn->raw.imm[0].is_relative || insn->raw.imm[0].size == 0)
			return false;
		at += insn->length + (size_t)insn->raw.imm[0].value.s;
		if (at >= INLINE_MAX)
			return false;
		set_bit(scan->targets, at);
		return true;
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET: return false;
	default: return true;
	}
}

struct fay_inline fay_inline_judge(const uint8_t *code, size_t available)
{
	struct fay_inline none = { 0 };
	struct scan scan = { 0 };
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t at = 0; at < available && at < INLINE_MAX;) {
		ZydisDecodedInstruction insn;
		ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code + at, available - at, &insn,
							 operands)))
			return none;
		set_bit(scan.starts, at);
		if (insn.length == 1 && code[at] == 0xc3) {
			/* Every jump leads to an instruction before the ret, or to the ret, which
			 * becomes the copy's end. */
			uint64_t after = at % 64 == 63 ? 0 : ~UINT64_C(0) << (at % 64 + 1);
			uint64_t beyond = at < 64 ? (scan.targets[0] & after) | scan.targets[1]
						  : scan.targets[1] & after;
			uint64_t astray = (scan.targets[0] & ~scan.starts[0]) |
					  (scan.targets[1] & ~scan.starts[1]);

			if (beyond || astray)
				return none;
			return (struct fay_inline){ .possible = true,
						    .size = at,
						    .reentrant = (scan.state_operands <= 1 ||
								  !scan.state_kept) &&
								 !scan.event_moved };
		}
		if (!scan_flow(&scan, &insn, at) || !scan_operands(&scan, &insn, operands))
			return none;
		at += insn.length;
	}
	return none;
}
