/* SPDX-License-Identifier: MIT */
#include "libdw_rule.h"

#include <dwarf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ucontext.h>

#include "fay/stacks.h"

/* What a frame's address is, as libdw says it. */
static bool base_of(Dwarf_Frame *frame, uint32_t *base, int64_t *offset)
{
	Dwarf_Op *ops;
	size_t count;
	if (dwarf_frame_cfa(frame, &ops, &count) || !count)
		return false;
	bool bregx = ops[0].atom == DW_OP_bregx;
	uint64_t number = bregx ? ops[0].number : (uint64_t)ops[0].atom - DW_OP_breg0;
	*offset = (int64_t)(bregx ? ops[0].number2 : ops[0].number);
	*base = number == 7 && count == 1   ? FAY_STACK_RSP
		: number == 6 && count == 1 ? FAY_STACK_RBP
					    : FAY_STACK_END;
	if (number == 6 && count == 2 && ops[1].atom == DW_OP_deref) {
		*base = FAY_STACK_INDIRECT;
		*offset = -*offset;
	}
	return *base != FAY_STACK_END && *offset >= 0 && *offset % 8 == 0 &&
	       *offset / 8 <= (int64_t)FAY_STACK_OFFSET_MAX;
}

/* In a function that aligns its stack: the caller's rbp lies where rbp points to. */
static bool saved_at_rbp(Dwarf_Frame *frame)
{
	Dwarf_Op memory[3], *ops;
	size_t count;
	return !dwarf_frame_register(frame, 6, memory, &ops, &count) && count &&
	       ops[count - 1].atom == DW_OP_breg6 && !ops[count - 1].number;
}

/* Bytes below the frame's address where a register was saved; 0: it is the caller's. */
static bool saved_of(Dwarf_Frame *frame, int number, int64_t *below)
{
	Dwarf_Op memory[3], *ops;
	size_t count;
	*below = 0;
	if (dwarf_frame_register(frame, number, memory, &ops, &count))
		return false;
	if (!count)
		return ops == NULL; /* else undefined */
	if (ops[0].atom != DW_OP_call_frame_cfa || count > 2 ||
	    (count == 2 && ops[1].atom != DW_OP_plus_uconst))
		return false;
	*below = count == 2 ? (int64_t)(0 - ops[1].number) : 0;
	return *below > 0 && *below % 8 == 0 && *below / 8 <= (int64_t)FAY_STACK_SAVED_MAX;
}

/* From where on in its entries a procedure linkage table has a word more on the stack; -1: it is
 * none. */
static int linkage_of(Dwarf_Frame *frame)
{
	static const uint8_t atoms[] = { DW_OP_breg7, DW_OP_breg16, DW_OP_lit15, DW_OP_and, 0,
					 DW_OP_ge,    DW_OP_lit3,   DW_OP_shl,   DW_OP_plus };
	Dwarf_Op *ops;
	size_t count;
	if (dwarf_frame_cfa(frame, &ops, &count) || count != sizeof(atoms))
		return -1;
	for (size_t i = 0; i < count; i++)
		if (atoms[i] && ops[i].atom != atoms[i])
			return -1;
	return ops[0].number == 8 && !ops[1].number ? ops[4].atom - DW_OP_lit0 : -1;
}

/* The frame's address is in a register that lies there in a ucontext_t, in words; -1: it is not. */
static int register_of(Dwarf_Frame *frame)
{
	static const int places[] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
				      REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
				      REG_R12, REG_R13, REG_R14, REG_R15 };
	Dwarf_Op *ops;
	size_t count;
	if (dwarf_frame_cfa(frame, &ops, &count) || count != 1)
		return -1;
	bool bregx = ops[0].atom == DW_OP_bregx;
	uint64_t number = bregx ? ops[0].number : (uint64_t)ops[0].atom - DW_OP_breg0;
	return number >= 16 || number == 6 || number == 7 ||
			       (bregx ? ops[0].number2 : ops[0].number)
		       ? -1
		       : (int)(offsetof(ucontext_t, uc_mcontext.gregs) / 8) + places[number];
}

uint32_t libdw_rule(Dwarf_CFI *cfi, uint64_t address)
{
	Dwarf_Frame *frame;
	Dwarf_Addr start, end;
	uint32_t base, rule = FAY_STACK_END;
	int64_t offset, rbp, back;
	bool is_signal;
	if (dwarf_cfi_addrframe(cfi, address, &frame))
		return FAY_STACK_END;
	if (dwarf_frame_info(frame, &start, &end, &is_signal) >= 0 && is_signal)
		rule = FAY_STACK_SIGNAL;
	else if (linkage_of(frame) >= 0)
		rule = fay_stack_linkage((uint32_t)linkage_of(frame));
	else if (register_of(frame) >= 0)
		rule = saved_at_rbp(frame)
			       ? fay_stack_register((uint32_t)register_of(frame), FAY_STACK_AT_RBP)
		       : saved_of(frame, 16, &back) && back == 8 && saved_of(frame, 6, &rbp)
			       ? fay_stack_register((uint32_t)register_of(frame),
						    (uint32_t)(rbp / 8))
			       : FAY_STACK_END;
	else if (!base_of(frame, &base, &offset) || !saved_of(frame, 16, &back) || back != 8)
		rule = FAY_STACK_END;
	else if (base == FAY_STACK_INDIRECT)
		rule = saved_at_rbp(frame) ? fay_stack_rule(base, (uint32_t)(offset / 8), 0)
					   : FAY_STACK_END;
	else if (saved_of(frame, 6, &rbp))
		rule = fay_stack_rule(base, (uint32_t)(offset / 8), (uint32_t)(rbp / 8));
	free(frame);
	return rule;
}
