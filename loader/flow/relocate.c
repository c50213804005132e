/* SPDX-License-Identifier: MIT */
/*
 * Relocation of the instructions that a patch overwrites. What becomes of each:
 *
 *	rip-relative operand       displacement corrected, if still within 2 GiB
 *	jmp rel8, rel32            jmp rel32
 *	jcc rel8, rel32            jcc rel32
 *	call rel32                 push the original return address; jmp rel32
 *	call r/m64                 push the original return address; jmp r/m64   (not through rsp)
 *	anything else              copied
 *
 * A call keeps its original return address so that no address of the trampoline is ever left on the
 * stack: stack walks and C++ exceptions work through it, and detaching need not wait for it.
 * Because of that return address a displaced call must be the last displaced instruction. loop,
 * jrcxz, xbegin, int3, a system call that ends behind the jump and whatever does not decode are
 * refused: a skipped point is better than a doubtful one.
 */
#include "relocate.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <Zydis/Zydis.h>

#define INSTRUCTION_MAX 15u

static bool __attribute__((format(printf, 2, 3))) refuse(char reason[FAY_REASON_MAX],
							 const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reason, FAY_REASON_MAX, format, args);
	va_end(args);
	return false;
}

static bool decode(const uint8_t *bytes, size_t available, ZydisDecodedInstruction *insn,
		   ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT])
{
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, available, insn, operands));
}

/* Does the instruction have a relative immediate (direct jump, call, loop, xbegin)? */
static bool branch_target(const ZydisDecodedInstruction *insn, uint64_t address, uint64_t *target)
{
	for (unsigned i = 0; i < 2; i++)
		if (insn->raw.imm[i].size && insn->raw.imm[i].is_relative) {
			*target = address + insn->length + (uint64_t)insn->raw.imm[i].value.s;
			return true;
		}
	return false;
}

static bool is_call(const ZydisDecodedInstruction *insn)
{
	return insn->meta.category == ZYDIS_CATEGORY_CALL;
}

/* Nothing after it runs but by a jump to it. */
static bool ends_flow(const ZydisDecodedInstruction *insn)
{
	return insn->meta.category == ZYDIS_CATEGORY_RET ||
	       insn->meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
	       insn->mnemonic == ZYDIS_MNEMONIC_UD2 || insn->mnemonic == ZYDIS_MNEMONIC_HLT;
}

static void put(struct fay_displaced *displaced, const void *bytes, size_t size)
{
	if (displaced->size + size <= sizeof(displaced->code))
		memcpy(displaced->code + displaced->size, bytes, size);
	displaced->size += size;
}

static bool put_rel32(struct fay_displaced *displaced, uint64_t to, uint64_t target)
{
	int64_t distance = (int64_t)(target - (to + displaced->size + 4));
	int32_t rel = (int32_t)distance;

	put(displaced, &rel, 4);
	return distance == rel;
}

/* push imm32 (sign-extended); mov imm32 to the upper half, if it differs. */
static void put_push_address(struct fay_displaced *displaced, uint64_t address)
{
	int32_t low = (int32_t)address;
	uint32_t high = (uint32_t)(address >> 32);

	displaced->pushed = displaced->size + 1;
	put(displaced, "\x68", 1);
	put(displaced, &low, 4);
	if ((uint64_t)(int64_t)low != address) {
		put(displaced, "\xc7\x44\x24\x04", 4);
		put(displaced, &high, 4);
	}
}

static bool put_branch(struct fay_displaced *displaced, const ZydisDecodedInstruction *insn,
		       uint64_t next, uint64_t to, uint64_t target, char reason[FAY_REASON_MAX])
{
	uint8_t jcc[2] = { 0x0f, 0x80 | (insn->opcode & 15) };
	bool conditional = (insn->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && insn->opcode >= 0x70 &&
			    insn->opcode <= 0x7f) ||
			   (insn->opcode_map == ZYDIS_OPCODE_MAP_0F && insn->opcode >= 0x80 &&
			    insn->opcode <= 0x8f);

	if (is_call(insn)) {
		put_push_address(displaced, next);
		put(displaced, "\xe9", 1);
	} else if (insn->mnemonic == ZYDIS_MNEMONIC_JMP) {
		put(displaced, "\xe9", 1);
	} else if (conditional) {
		put(displaced, jcc, 2);
	} else {
		return refuse(reason, "begins with %s, which cannot be moved",
			      ZydisMnemonicGetString(insn->mnemonic));
	}
	if (!put_rel32(displaced, to, target))
		return refuse(reason, "begins with a branch to a place out of reach");
	return true;
}

/* An instruction without a relative branch: copied, its rip-relative displacement corrected. */
static bool put_plain(struct fay_displaced *displaced, const uint8_t *bytes,
		      const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operands,
		      uint64_t from, uint64_t to, char reason[FAY_REASON_MAX])
{
	uint8_t copy[INSTRUCTION_MAX];
	uint64_t target = from + insn->length + (uint64_t)insn->raw.disp.value;
	bool rip = false;

	memcpy(copy, bytes, insn->length);
	for (unsigned i = 0; i < insn->operand_count; i++)
		if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY) {
			rip |= operands[i].mem.base == ZYDIS_REGISTER_RIP;
			if (operands[i].mem.base == ZYDIS_REGISTER_EIP)
				return refuse(reason, "begins with an eip-relative instruction");
			if (is_call(insn) &&
			    operands[i].visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT &&
			    (operands[i].mem.base == ZYDIS_REGISTER_RSP))
				return refuse(reason,
					      "begins with a call through the stack pointer");
		}
	if (is_call(insn)) {
		if (insn->opcode != 0xff || insn->raw.modrm.reg != 2 ||
		    insn->attributes & ZYDIS_ATTRIB_HAS_SEGMENT)
			return refuse(reason, "begins with an unusual call");
		put_push_address(displaced, from + insn->length);
		copy[insn->raw.modrm.offset] = (copy[insn->raw.modrm.offset] & ~0x38) | 4 << 3;
	}
	if (rip) {
		int64_t distance = (int64_t)(target - (to + displaced->size + insn->length));
		int32_t disp = (int32_t)distance;

		if (distance != disp || insn->raw.disp.size != 32)
			return refuse(reason, "begins with an access to data out of reach");
		memcpy(copy + insn->raw.disp.offset, &disp, 4);
	}
	put(displaced, copy, insn->length);
	return true;
}

bool fay_displace(const uint8_t *bytes, size_t available, unsigned need, uint64_t from, uint64_t to,
		  struct fay_displaced *displaced, char reason[FAY_REASON_MAX])
{
	bool flow_ended = false;

	memset(displaced, 0, sizeof(*displaced));
	while (displaced->length < need) {
		unsigned at = displaced->length;
		ZydisDecodedInstruction insn;
		ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
		uint64_t target;

		if (at >= available || !decode(bytes + at, available - at, &insn, operands))
			return refuse(reason, "begins with bytes that are not an instruction");
		if (flow_ended && insn.mnemonic != ZYDIS_MNEMONIC_NOP &&
		    insn.mnemonic != ZYDIS_MNEMONIC_INT3)
			return refuse(reason, "ends after %u bytes and other code follows", at);
		if (insn.mnemonic == ZYDIS_MNEMONIC_INT3 && !flow_ended)
			return refuse(reason, "has a breakpoint (int3) at +%u", at);
		/* A thread waiting in it is past it; restarting the call takes it back, into the
		 * jump. */
		if ((insn.mnemonic == ZYDIS_MNEMONIC_SYSCALL ||
		     insn.mnemonic == ZYDIS_MNEMONIC_INT) &&
		    at + insn.length >= FAY_JUMP_BYTES && at > 0)
			return refuse(reason, "makes a system call at +%u", at);
		if (displaced->count == sizeof(displaced->map) / sizeof(*displaced->map))
			return refuse(reason, "has too many instructions to move");
		displaced->map[displaced->count].from = (uint8_t)at;
		displaced->map[displaced->count].to = (uint8_t)displaced->size;
		displaced->count++;
		displaced->length += insn.length;
		if (is_call(&insn) && displaced->length < FAY_JUMP_BYTES)
			return refuse(reason, "has a call within its first %u bytes",
				      FAY_JUMP_BYTES);
		if (branch_target(&insn, from + at, &target)) {
			if (target > from &&
			    target < from + (need < FAY_JUMP_BYTES ? need : FAY_JUMP_BYTES))
				return refuse(reason, "has a jump into its first %u bytes",
					      FAY_JUMP_BYTES);
			if (!put_branch(displaced, &insn, from + displaced->length, to, target,
					reason))
				return false;
		} else if (!put_plain(displaced, bytes + at, &insn, operands, from + at, to,
				      reason)) {
			return false;
		}
		flow_ended |= ends_flow(&insn);
	}
	put(displaced, "\xe9", 1);
	if (!put_rel32(displaced, to, from + displaced->length))
		return refuse(reason, "is out of the trampoline's reach");
	if (displaced->size > sizeof(displaced->code))
		return refuse(reason, "begins with instructions too long to move");
	return true;
}
