/* SPDX-License-Identifier: MIT */
#include "trampoline_private.h"

#include <Zydis/Zydis.h>

#define INLINE_MAX 96u /* bytes */
#define JUMPS_MAX (INLINE_MAX / 2)

struct jump {
	size_t target;  /* from the probe's begin */
	bool may_leave; /* jcc */
	bool backward;
};

struct scan {
	uint64_t starts[2]; /* bit per byte: an instruction begins here */
	struct jump jumps[JUMPS_MAX];
	unsigned jump_count;
	unsigned state_operands; /* memory operands other than the event's */
	bool state_kept;         /* something of it may be in a register or decide a jump */
	bool event_moved;        /* rdi changed */
};

static bool decode(const uint8_t *code, size_t available, ZydisDecodedInstruction *insn,
		   ZydisDecodedOperand *operands)
{
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, available, insn, operands));
}

static bool starts_at(const struct scan *scan, size_t at)
{
	return scan->starts[at / 64] >> at % 64 & 1;
}

/* jcc, which tests flags and nothing else */
static bool is_condition(const ZydisDecodedInstruction *insn)
{
	if (insn->meta.category != ZYDIS_CATEGORY_COND_BR)
		return false;
	return insn->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT
		       ? (insn->opcode & 0xf0) == 0x70
		       : insn->opcode_map == ZYDIS_OPCODE_MAP_0F && (insn->opcode & 0xf0) == 0x80;
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

/* Notes a direct jump; any other transfer of control is refused. */
static bool scan_flow(struct scan *scan, const ZydisDecodedInstruction *insn, size_t at)
{
	switch (insn->meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_UNCOND_BR:
		if (!insn->raw.imm[0].is_relative || insn->raw.imm[0].size == 0 ||
		    scan->jump_count == JUMPS_MAX)
			return false;
		scan->jumps[scan->jump_count++] = (struct jump){
			.target = at + insn->length + (size_t)insn->raw.imm[0].value.s,
			.may_leave = is_condition(insn),
			.backward = insn->raw.imm[0].value.s < 0,
		};
		return true;
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET: return false;
	default: return true;
	}
}

/* Each jump leads to an instruction before the ret at `end`, or to the ret, which becomes the
 * copy's end; or all of them are conditional ones that leave it. */
static struct fay_inline judge_jumps(const struct scan *scan, size_t end, size_t available)
{
	unsigned leave = 0;
	bool again = false;

	for (unsigned i = 0; i < scan->jump_count; i++) {
		const struct jump *jump = &scan->jumps[i];
		bool leaves = jump->target > end;

		if (leaves ? !jump->may_leave || jump->target >= available
			   : !starts_at(scan, jump->target))
			return (struct fay_inline){ 0 };
		leave += leaves;
		again |= jump->backward;
	}
	return (struct fay_inline){
		.possible = !leave || (leave == scan->jump_count && leave <= FAY_INLINE_EXITS),
		.size = end,
		.leaves = leave > 0,
		.reentrant = !leave &&
			     ((scan->state_operands <= 1 && !again) || !scan->state_kept) &&
			     !scan->event_moved,
	};
}

struct fay_inline fay_inline_judge(const uint8_t *code, size_t available)
{
	struct fay_inline none = { 0 };
	struct scan scan = { 0 };

	for (size_t at = 0; at < available && at < INLINE_MAX;) {
		ZydisDecodedInstruction insn;
		ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

		if (!decode(code + at, available - at, &insn, operands))
			return none;
		scan.starts[at / 64] |= UINT64_C(1) << at % 64;
		if (insn.length == 1 && code[at] == 0xc3)
			return judge_jumps(&scan, at, available);
		if (!scan_flow(&scan, &insn, at) || !scan_operands(&scan, &insn, operands))
			return none;
		at += insn.length;
	}
	return none;
}

/* The next jump out of the copy, from `at` on: where it begins, else probe->size. */
static size_t next_exit(const struct fay_trampoline_probe *probe, size_t at, size_t *after,
			size_t *target, unsigned *condition)
{
	for (; at < probe->size; at = *after) {
		ZydisDecodedInstruction insn;
		ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

		if (!decode(probe->bytes + at, probe->size - at, &insn, operands))
			return probe->size; /* it was decoded before */
		*after = at + insn.length;
		if (!is_condition(&insn))
			continue;
		*target = *after + (size_t)insn.raw.imm[0].value.s;
		*condition = insn.opcode & 0xf;
		if (*target > probe->size)
			return at;
	}
	return probe->size;
}

void fay_inline_emit(struct fay_emitter *e, const struct fay_trampoline_probe *probe,
		     struct fay_exits *exits)
{
	size_t at = 0, after = 0, target = 0, exit, jump, ends[FAY_INLINE_EXITS], end_count = 0;
	unsigned condition = 0, first = exits->count;

	while (probe->leaves &&
	       (exit = next_exit(probe, at, &after, &target, &condition)) < probe->size) {
		fay_emit_bytes(e, probe->bytes + at, exit - at);
		jump = fay_emit_jump_if(e, (enum fay_condition)condition);
		if (probe->bytes[target] == 0xc3)
			ends[end_count++] = jump;
		else
			exits->exits[exits->count++] =
				(struct fay_exit){ .jump = jump, .target = probe->code + target };
		at = after;
	}
	fay_emit_bytes(e, probe->bytes + at, probe->size - at);
	for (size_t i = 0; i < end_count; i++)
		fay_emit_land(e, ends[i]);
	for (unsigned i = first; i < exits->count; i++)
		exits->exits[i].back = e->size;
}

void fay_inline_aside(struct fay_emitter *e, const struct fay_exits *exits)
{
	for (unsigned i = 0; i < exits->count; i++) {
		fay_emit_land(e, exits->exits[i].jump);
		fay_emit_call(e, exits->exits[i].target);
		fay_emit_jump(e, e->address + exits->exits[i].back);
	}
}
