/* SPDX-License-Identifier: MIT */
/*
 * Unwind information for return points.
 *
 * The unwinder (libgcc's, which serves C++, Rust, Ada, Go's cgo and glibc's own cancellation and backtrace()) meets a return point
 * where it expects the caller. _dl_find_object(), or _Unwind_Find_FDE(), is hooked to answer for these addresses with the unwind information below, as
 * if a frame without size stood between the two: same registers, same rsp, and as return address the real one, which a DWARF expression finds in the call
 * stack. Its personality routine, called as the unwinder passes (Itanium C++ ABI: Exception Handling, 1.3 and 2.5.2), runs the exception probes.
 *
 *	CIE  "zPR", CFA = rsp - step, rsp = CFA + step, return address column 16
 *	FDE  all zones; return address at: the expression
 *
 * The step, a different one from 1 to 7 for each session in a process, makes this frame's CFA unlike its caller's: libgcc tells frames apart by
 * their CFA (uw_identify_context in unwind-dw2.c).
 */
#include "runtime_internal.h"

enum { /* DWARF 4, 7.7.1 and 7.23 */
	DW_OP_DEREF = 0x06,
	DW_OP_CONST1U = 0x08,
	DW_OP_CONST1S = 0x09,
	DW_OP_CONST8U = 0x0e,
	DW_OP_DUP = 0x12,
	DW_OP_DROP = 0x13,
	DW_OP_OVER = 0x14,
	DW_OP_AND = 0x1a,
	DW_OP_MINUS = 0x1c,
	DW_OP_PLUS = 0x22,
	DW_OP_PLUS_UCONST = 0x23,
	DW_OP_BRA = 0x28,
	DW_OP_GE = 0x2a,
	DW_OP_LT = 0x2d,
	DW_OP_NE = 0x2e,
	DW_OP_SKIP = 0x2f,
	DW_CFA_EXPRESSION = 0x10,
	DW_CFA_DEF_CFA_SF = 0x12,
	DW_CFA_VAL_OFFSET_SF = 0x15,
	DW_EH_PE_ABSPTR = 0x00,
	DW_EH_PE_OMIT = 0xff,
	COLUMN_RSP = 7,
	COLUMN_RETURN = 16,
};

/* What is written; `room` is enough for FAY_RUNTIME_MAX_ZONES zones, which the loader sees to. */
struct writer {
	uint8_t *at;
};

static void put(struct writer *w, uint8_t byte)
{
	*w->at++ = byte;
}

static void put_word(struct writer *w, uint64_t word, unsigned size)
{
	memcpy(w->at, &word, size);
	w->at += size;
}

static void put_const8(struct writer *w, uint64_t value)
{
	put(w, DW_OP_CONST8U);
	put_word(w, value, 8);
}

/* A branch to `to`, or ahead to be landed. Returns the place of its offset. */
static uint8_t *put_branch(struct writer *w, uint8_t opcode, const uint8_t *to)
{
	put(w, opcode);
	put_word(w, (uint64_t)(to ? to - (w->at + 2) : 0), 2);
	return w->at - 2;
}

static void land(struct writer *w, uint8_t *offset)
{
	int16_t distance = (int16_t)(w->at - (offset + 2));

	memcpy(offset, &distance, 2);
}

/*
 * On the stack: the CFA, which is slot + 8 - step. Leaves the address of the word with the return address: that of the newest call at this slot;
 * if that is itself one of our return points (a tail call from one watched function to another), that of the call before it at the same slot; and so on.
 */
static void put_expression(struct writer *w, struct fay_call_stack *stack)
{
	uint8_t *loop, *none, *end, *tail[FAY_RUNTIME_MAX_ZONES];

	put_const8(w, stack->entry + offsetof(struct fay_thread_entry, top));
	put(w, DW_OP_DEREF); /* cfa call */
	loop = w->at;
	put(w, DW_OP_CONST1U);
	put(w, sizeof(struct fay_call));
	put(w, DW_OP_MINUS);
	put(w, DW_OP_DUP);
	put_const8(w, (uint64_t)fay_first_call(stack));
	put(w, DW_OP_LT);
	none = put_branch(w, DW_OP_BRA, NULL);
	put(w, DW_OP_OVER);
	put(w, DW_OP_OVER);
	put(w, DW_OP_DEREF);
	put(w, DW_OP_CONST1S);
	put(w, (uint8_t)~FAY_CALL_MARKS);
	put(w, DW_OP_AND);
	put(w, DW_OP_PLUS_UCONST);
	put(w, (uint8_t)(8 - fay_config.unwind_step));
	put(w, DW_OP_NE); /* cfa call, cfa != call->slot + 8 - step */
	put_branch(w, DW_OP_BRA, loop);
	put(w, DW_OP_DUP);
	put(w, DW_OP_PLUS_UCONST);
	put(w, offsetof(struct fay_call, address));
	put(w, DW_OP_DEREF); /* cfa call address */
	for (uint64_t i = 0; i < fay_config.zone_count; i++) {
		put(w, DW_OP_DUP);
		put_const8(w, fay_config.zones[i].start);
		put(w, DW_OP_GE);
		put(w, DW_OP_OVER);
		put_const8(w, fay_config.zones[i].end);
		put(w, DW_OP_LT);
		put(w, DW_OP_AND);
		tail[i] = put_branch(w, DW_OP_BRA, NULL);
	}
	put(w, DW_OP_DROP);
	put(w, DW_OP_PLUS_UCONST);
	put(w, offsetof(struct fay_call, address));
	end = put_branch(w, DW_OP_SKIP, NULL);
	for (uint64_t i = 0; i < fay_config.zone_count; i++)
		land(w, tail[i]);
	put(w, DW_OP_DROP);
	put_branch(w, DW_OP_SKIP, loop);
	land(w, none);
	put_const8(w, (uint64_t)&stack->zero); /* return address 0: the end of the stack */
	land(w, end);
}

/* Ends the length field at `length` and what it covers, padded by DW_CFA_nop. */
static void end_record(struct writer *w, uint8_t *length)
{
	uint32_t size;

	while ((w->at - length) % 8 != 4)
		put(w, 0);
	size = (uint32_t)(w->at - (length + 4));
	memcpy(length, &size, 4);
}

static void write_cie(struct writer *w)
{
	static const char augmentation[] = "zPR";
	uint8_t *length = w->at;

	put_word(w, 0, 4);
	put_word(w, 0, 4); /* a CIE */
	put(w, 1);	   /* version */
	for (unsigned i = 0; i < sizeof(augmentation); i++)
		put(w, (uint8_t)augmentation[i]);
	put(w, 1);    /* code alignment */
	put(w, 0x7f); /* data alignment -1 */
	put(w, COLUMN_RETURN);
	put(w, 10); /* bytes of augmentation */
	put(w, DW_EH_PE_ABSPTR);
	put_word(w, (uint64_t)fay_rt_personality, 8);
	put(w, DW_EH_PE_ABSPTR);
	put(w, DW_CFA_DEF_CFA_SF);
	put(w, COLUMN_RSP);
	put(w, (uint8_t)fay_config.unwind_step); /* times -1 */
	put(w, DW_CFA_VAL_OFFSET_SF);
	put(w, COLUMN_RSP);
	put(w, 0x80 - (uint8_t)fay_config.unwind_step); /* -step as a one-byte SLEB128, times -1 */
	end_record(w, length);
}

static void write_fde(struct writer *w, struct fay_call_stack *stack, const uint8_t *cie)
{
	uint8_t *length = w->at, *expression;
	uint64_t low = ~0ull, high = 0;
	uint32_t size;

	for (uint64_t i = 0; i < fay_config.zone_count; i++) {
		low = fay_config.zones[i].start < low ? fay_config.zones[i].start : low;
		high = fay_config.zones[i].end > high ? fay_config.zones[i].end : high;
	}
	put_word(w, 0, 4);
	put_word(w, (uint64_t)(w->at - cie), 4);
	put_word(w, low, 8);
	put_word(w, high - low, 8);
	put(w, 0); /* no augmentation data */
	put(w, DW_CFA_EXPRESSION);
	put(w, COLUMN_RETURN);
	put_word(w, 0, 2); /* the expression's size, a two-byte ULEB128 */
	expression = w->at;
	put_expression(w, stack);
	size = (uint32_t)(w->at - expression);
	expression[-2] = (uint8_t)(size | 0x80);
	expression[-1] = (uint8_t)(size >> 7);
	end_record(w, length);
	put_word(w, 0, 4); /* end of the table */
}

#define CIE_AT 16u /* behind the .eh_frame_hdr; with its length field it has the bytes up to FAY_UNWIND_FDE_AT */

/* .eh_frame_hdr without a search table (Linux Standard Base, .eh_frame_hdr), then the CIE and the FDE. */
void fay_rt_unwind_write(struct fay_call_stack *stack)
{
	struct writer w = { stack->unwind };

	put(&w, 1);
	put(&w, DW_EH_PE_ABSPTR);
	put(&w, DW_EH_PE_OMIT);
	put(&w, DW_EH_PE_OMIT);
	put_word(&w, (uint64_t)(stack->unwind + CIE_AT), 8);
	w.at = stack->unwind + CIE_AT;
	write_cie(&w);
	w.at = stack->unwind + FAY_UNWIND_FDE_AT;
	write_fde(&w, stack, stack->unwind + CIE_AT);
}

