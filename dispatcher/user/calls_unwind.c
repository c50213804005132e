/* SPDX-License-Identifier: MIT */
/*
 * Unwind information for return points.
 *
 * The unwinder (libgcc's, which serves C++, Rust, Ada, Go's cgo and glibc's own cancellation and backtrace()) meets a return point
 * where it expects the caller. _dl_find_object(), or _Unwind_Find_FDE(), is hooked to answer for these addresses with the unwind information below, as
 * if a frame without size stood between the two: same registers, same rsp, and as return address the real one, which a DWARF expression finds in the call
 * stack. Its personality routine, called as the unwinder passes (Itanium C++ ABI: Exception Handling, 1.3 and 2.5.2), runs the exception probes.
 *
 *	CIE  "zPR", rsp = CFA + step, return address column 16
 *	FDE  all zones; CFA and return address at: the expressions
 *
 * The step, a different one from 1 to 7 for each session in a process, makes this frame's CFA unlike its caller's: libgcc tells frames apart by
 * their CFA (uw_identify_context in unwind-dw2.c).
 *
 * Chains. A slot may stand for several calls, each a tail call of the one before, and each may be watched by several sessions. Each call's record has as its address where the return
 * goes on: a return point again, of this session or another, until the last, whose address is the program's. Those of one session that follow one another are one frame. So the unwinder
 * comes to a session's return points at one slot once for each call of the chain that another session watches, too; each session knows its own calls only, and the unwinder's state
 * between two frames is the CFA. It holds in its upper bits how often each session was visited: the first two times a frame stands for just the calls that it has in the chain, and the
 * last time for all that are left, which leads from there past the same calls of others, but to the same end. A further visit ends the stack: no walk is endless. The last frame of a
 * chain has a CFA without these bits: what follows is the program's, and glibc compares it with addresses of the stack when it cancels a thread.
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
	DW_OP_PICK = 0x15,
	DW_OP_SWAP = 0x16,
	DW_OP_ROT = 0x17,
	DW_OP_AND = 0x1a,
	DW_OP_MINUS = 0x1c,
	DW_OP_PLUS = 0x22,
	DW_OP_PLUS_UCONST = 0x23,
	DW_OP_SHR = 0x25,
	DW_OP_BRA = 0x28,
	DW_OP_EQ = 0x29,
	DW_OP_GE = 0x2a,
	DW_OP_LT = 0x2d,
	DW_OP_NE = 0x2e,
	DW_OP_SKIP = 0x2f,
	DW_OP_BREG7 = 0x77,
	DW_CFA_DEF_CFA_EXPRESSION = 0x0f,
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

static void put_all(struct writer *w, const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		put(w, bytes[i]);
}

#define PUT(w, ...) put_all(w, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

#define RECORD_ADDRESS offsetof(struct fay_call, address)

/* rsp as the frame before has left it, without the visits: slot + 8 */
static void put_behind_slot(struct writer *w)
{
	PUT(w, DW_OP_BREG7, 0);
	put_const8(w, FAY_UNWIND_ADDRESS);
	put(w, DW_OP_AND);
}

/* a -> whether it is in another session's code. Both comparisons are of the one start that was read: struct fay_others. */
static void put_is_others(struct writer *w)
{
	const struct fay_others *others = fay_others();
	uint8_t *loop, *no, *yes, *end;

	put_const8(w, (uint64_t)others->ranges);
	loop = w->at; /* a range */
	put(w, DW_OP_DUP);
	put_const8(w, (uint64_t)&others->end);
	PUT(w, DW_OP_DEREF, DW_OP_GE);
	no = put_branch(w, DW_OP_BRA, NULL);
	PUT(w, DW_OP_OVER, DW_OP_OVER, DW_OP_DEREF, DW_OP_MINUS, DW_OP_DUP, DW_OP_CONST1U, 0, DW_OP_GE, DW_OP_SWAP);
	PUT(w, DW_OP_PICK, 2, DW_OP_PLUS_UCONST, offsetof(struct fay_other_code, size), DW_OP_DEREF, DW_OP_LT, DW_OP_AND);
	yes = put_branch(w, DW_OP_BRA, NULL);
	PUT(w, DW_OP_PLUS_UCONST, sizeof(struct fay_other_code));
	put_branch(w, DW_OP_SKIP, loop);
	land(w, yes);
	PUT(w, DW_OP_DROP, DW_OP_DROP, DW_OP_CONST1U, 1);
	end = put_branch(w, DW_OP_SKIP, NULL);
	land(w, no);
	PUT(w, DW_OP_DROP, DW_OP_DROP, DW_OP_CONST1U, 0);
	land(w, end);
}

/* a -> a; goes on at `loop` without it if it is in this session's code */
static void put_skip_own(struct writer *w, const uint8_t *loop)
{
	uint8_t *own[FAY_RUNTIME_MAX_ZONES], *other;

	for (uint64_t i = 0; i < fay_config.zone_count; i++) {
		put(w, DW_OP_DUP);
		put_const8(w, fay_config.zones[i].start);
		PUT(w, DW_OP_GE, DW_OP_OVER);
		put_const8(w, fay_config.zones[i].end);
		PUT(w, DW_OP_LT, DW_OP_AND);
		own[i] = put_branch(w, DW_OP_BRA, NULL);
	}
	other = put_branch(w, DW_OP_SKIP, NULL);
	for (uint64_t i = 0; i < fay_config.zone_count; i++)
		land(w, own[i]);
	put(w, DW_OP_DROP);
	put_branch(w, DW_OP_SKIP, loop);
	land(w, other);
}

/*
 * The last visit: behind best visits call a. The oldest call of the chain, which has the marks of the newest: older ones at the slot have others, or lie behind the chain's end. Goes on at
 * `loop` with the next; lands with behind best visits call at *best, or at *found if this is it.
 */
static void put_last_visit(struct writer *w, const uint8_t *loop, uint8_t **best, uint8_t **found)
{
	uint8_t *have, *take, *unlike, *others;

	PUT(w, DW_OP_PICK, 3);
	have = put_branch(w, DW_OP_BRA, NULL);
	take = put_branch(w, DW_OP_SKIP, NULL);
	land(w, have);
	PUT(w, DW_OP_PICK, 3, DW_OP_DEREF, DW_OP_PICK, 2, DW_OP_DEREF, DW_OP_NE);
	unlike = put_branch(w, DW_OP_BRA, NULL);
	land(w, take);
	put_is_others(w);
	others = put_branch(w, DW_OP_BRA, NULL);
	*found = put_branch(w, DW_OP_SKIP, NULL);
	land(w, others);
	PUT(w, DW_OP_ROT, DW_OP_SWAP, DW_OP_DROP, DW_OP_OVER); /* it is the best */
	put_branch(w, DW_OP_SKIP, loop);
	land(w, unlike);
	put(w, DW_OP_DROP);
	*best = put_branch(w, DW_OP_SKIP, NULL);
}

/* -> behind best visits call: where the slot ends, no call yet, how often the unwinder was here, the top */
static void put_start(struct writer *w, const struct fay_call_stack *stack)
{
	put_behind_slot(w);
	PUT(w, DW_OP_CONST1U, 0);
	PUT(w, DW_OP_BREG7, 0, DW_OP_CONST1U, FAY_UNWIND_VISITS_AT((uint8_t)fay_config.unwind_step), DW_OP_SHR, DW_OP_CONST1U, FAY_UNWIND_VISITS, DW_OP_AND);
	put_const8(w, stack->entry + offsetof(struct fay_thread_entry, top));
	put(w, DW_OP_DEREF);
}

/*
 * -> behind call: where the slot ends, and the last of the calls that this frame stands for. *none: where that goes on, with four words on the stack, if there is no such call; it is to be
 * landed. Calls are looked at from the newest down; `visits` are still to be passed over.
 */
static void put_find(struct writer *w, struct fay_call_stack *stack, uint8_t **none)
{
	uint8_t *loop, *over, *end, *last, *more, *found[2], *best;

	put_start(w, stack);
	PUT(w, DW_OP_OVER, DW_OP_CONST1U, FAY_UNWIND_LAST_VISIT + 1, DW_OP_EQ);
	over = put_branch(w, DW_OP_BRA, NULL);
	loop = w->at;
	PUT(w, DW_OP_CONST1U, sizeof(struct fay_call), DW_OP_MINUS, DW_OP_DUP);
	put_const8(w, (uint64_t)fay_first_call(stack));
	put(w, DW_OP_LT);
	end = put_branch(w, DW_OP_BRA, NULL);
	PUT(w, DW_OP_DUP, DW_OP_DEREF, DW_OP_CONST1S, (uint8_t)~FAY_CALL_MARKS, DW_OP_AND, DW_OP_PLUS_UCONST, 8, DW_OP_PICK, 4, DW_OP_NE);
	put_branch(w, DW_OP_BRA, loop);
	PUT(w, DW_OP_DUP, DW_OP_PLUS_UCONST, RECORD_ADDRESS, DW_OP_DEREF); /* behind best visits call address */
	put_skip_own(w, loop);
	PUT(w, DW_OP_PICK, 2, DW_OP_CONST1U, FAY_UNWIND_LAST_VISIT, DW_OP_EQ);
	last = put_branch(w, DW_OP_BRA, NULL);
	PUT(w, DW_OP_DROP, DW_OP_OVER);
	more = put_branch(w, DW_OP_BRA, NULL);
	found[0] = put_branch(w, DW_OP_SKIP, NULL);
	land(w, more);
	PUT(w, DW_OP_SWAP, DW_OP_CONST1U, 1, DW_OP_MINUS, DW_OP_SWAP);
	put_branch(w, DW_OP_SKIP, loop);
	land(w, last);
	put_last_visit(w, loop, &best, &found[1]);
	land(w, over); /* and no best one */
	land(w, end);
	land(w, best);
	PUT(w, DW_OP_PICK, 2, DW_OP_CONST1U, 0, DW_OP_EQ);
	*none = put_branch(w, DW_OP_BRA, NULL);
	PUT(w, DW_OP_DROP, DW_OP_OVER); /* the best in the call's place */
	land(w, found[0]);
	land(w, found[1]);
	PUT(w, DW_OP_ROT, DW_OP_DROP, DW_OP_DROP);
}

/* -> the word with the return address: it is in the program, or a return point of another session. */
static void put_return_expression(struct writer *w, struct fay_call_stack *stack)
{
	uint8_t *none, *end;

	put_find(w, stack, &none);
	PUT(w, DW_OP_PLUS_UCONST, RECORD_ADDRESS);
	end = put_branch(w, DW_OP_SKIP, NULL);
	land(w, none);
	put_const8(w, (uint64_t)&stack->zero); /* return address 0: the end of the stack */
	land(w, end);
}

/* -> slot + 8 - step, with the visits, one more of this session, if the return address is another session's */
static void put_cfa_expression(struct writer *w, struct fay_call_stack *stack)
{
	uint8_t step = (uint8_t)fay_config.unwind_step, *alone, *none, *inside, *end;

	put_const8(w, (uint64_t)&fay_others()->end);
	PUT(w, DW_OP_DEREF, DW_OP_CONST1U, 0, DW_OP_EQ);
	alone = put_branch(w, DW_OP_BRA, NULL);
	put_find(w, stack, &none);
	PUT(w, DW_OP_PLUS_UCONST, RECORD_ADDRESS, DW_OP_DEREF);
	put_is_others(w);
	inside = put_branch(w, DW_OP_BRA, NULL);
	land(w, alone);
	land(w, none);
	put_behind_slot(w);
	end = put_branch(w, DW_OP_SKIP, NULL);
	land(w, inside);
	PUT(w, DW_OP_BREG7, 0);
	put_const8(w, UINT64_C(1) << FAY_UNWIND_VISITS_AT(step));
	put(w, DW_OP_PLUS);
	land(w, end);
	PUT(w, DW_OP_CONST1U, step, DW_OP_MINUS);
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

/* An expression's size is a two-byte ULEB128 before it. */
static uint8_t *begin_expression(struct writer *w)
{
	put_word(w, 0, 2);
	return w->at;
}

static void end_expression(const struct writer *w, uint8_t *expression)
{
	uint64_t size = (uint64_t)(w->at - expression);

	expression[-2] = (uint8_t)(size | 0x80);
	expression[-1] = (uint8_t)(size >> 7);
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

	for (uint64_t i = 0; i < fay_config.zone_count; i++) {
		low = fay_config.zones[i].start < low ? fay_config.zones[i].start : low;
		high = fay_config.zones[i].end > high ? fay_config.zones[i].end : high;
	}
	put_word(w, 0, 4);
	put_word(w, (uint64_t)(w->at - cie), 4);
	put_word(w, low, 8);
	put_word(w, high - low, 8);
	put(w, 0); /* no augmentation data */
	put(w, DW_CFA_DEF_CFA_EXPRESSION);
	expression = begin_expression(w);
	put_cfa_expression(w, stack);
	end_expression(w, expression);
	PUT(w, DW_CFA_EXPRESSION, COLUMN_RETURN);
	expression = begin_expression(w);
	put_return_expression(w, stack);
	end_expression(w, expression);
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

