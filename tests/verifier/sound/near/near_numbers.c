/* SPDX-License-Identifier: MIT */
/*
 * What rests on the exact numbers: remainders by multiplication, registers written in part,
 * counters that wrap, searches, strings. Each with a small chance of being wrong: see near_code.h.
 */
#include "near_code.h"

static void bytes_of(struct code *c, const uint8_t *bytes, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		near_byte(c, bytes[i]);
}

static void word64(struct code *c, uint64_t value)
{
	near_word32(c, (uint32_t)value);
	near_word32(c, (uint32_t)(value >> 32));
}

/* mov $number, %reg of 32 bits; of the first eight. */
static void constant(struct code *c, unsigned reg, uint32_t number)
{
	near_byte(c, 0xb8 | reg);
	near_word32(c, number);
}

/* Back to `start` on condition cc, if that is near enough. */
static void jump_back(struct code *c, unsigned cc, unsigned start)
{
	near_byte(c, 0x70 | cc);
	near_byte(c, c->size - start < 127 ? start - c->size - 1 : 0);
}

/* imul $by, %reg, %reg; or lea and a shift, as for 10 and the like. */
static void times(struct code *c, unsigned width, unsigned reg, uint32_t by)
{
	if (near_rarely(c, 3) && by % 5 == 0 && (by / 5 & (by / 5 - 1)) == 0) {
		near_op_rm(c, width, 0x8d, reg, reg, reg, 2, 0);
		near_op_rr(c, width, 0xc1, 4, reg);
		near_byte(c, (unsigned)__builtin_ctz(by / 5));
		return;
	}
	near_op_rr(c, width, by < 128 ? 0x6b : 0x69, reg, reg);
	if (by < 128)
		near_byte(c, by);
	else
		near_word32(c, by);
}

/* x % d as x - d * (x * M >> s), used as an index: rightly if d elements fit. */
void near_idiom_remainder(struct code *c)
{
	unsigned scale = (unsigned)near_below(c, 4), width = near_rarely(c, 3) ? 64 : 32, shift = 0;
	uint32_t room = (near_rarely(c, 3) ? SOUNDNESS_GLOBAL : SOUNDNESS_LOCAL) >> scale;
	uint32_t d = near_rarely(c, 3) ? room - 1 + (uint32_t)near_below(c, 3)
				       : 3 + (uint32_t)near_below(c, room);
	unsigned __int128 multiplier;

	while (((uint64_t)1 << shift) < d)
		shift++;
	multiplier = (((unsigned __int128)1 << (width + shift)) + d - 1) / d;
	/* a bit too many: half of it, which is nearly right */
	if (multiplier >> width && !near_rarely(c, 8)) {
		shift--;
		multiplier = multiplier / 2 + near_below(c, 2);
	}
	if (near_rarely(c, 10))
		multiplier += near_below(c, 9) - 4;
	if (near_rarely(c, 20))
		shift = (unsigned)near_below(c, width / 2);
	near_op_rm(c, width, 0x8b, AX, DI, SP, 0, 8 * (int32_t)near_below(c, 10));
	if (near_rarely(c, 4)) { /* of a smaller number */
		near_op_rr(c, width, 0xc1, 5, AX);
		near_byte(c, (unsigned)near_below(c, width));
	}
	near_op_rr(c, width, 0x89, AX, 8);
	if (width == 64) {
		bytes_of(c, (const uint8_t[]){ 0x48, 0xb9 }, 2);
		word64(c, (uint64_t)multiplier);
		near_op_rr(c, 64, 0xf7, 4, CX);
		near_op_rr(c, 64, 0x89, DX, AX);
	} else {
		constant(c, CX, (uint32_t)multiplier);
		near_op_rr(c, near_rarely(c, 15) ? 32 : 64, 0x0faf, AX, CX);
	}
	near_op_rr(c, 64, 0xc1, near_rarely(c, 20) ? 7 : 5, AX);
	near_byte(c, (width == 64 ? 0 : 32) + shift);
	if (near_rarely(c, 10))
		near_random_instruction(c);
	times(c, near_rarely(c, 15) ? 96 - width : width, AX, near_rarely(c, 25) ? d + 1 : d);
	near_op_rr(c, near_rarely(c, 15) ? 96 - width : width, 0x29, AX, 8);
	if (width == 64)
		near_op_rr(c, 64, 0x89, 12, DX);
	near_indexed_access(c, 8, scale, 0);
}

/* ---- registers of which only some bytes were written ---- */

/* Whatever the stack held: nothing that may be read. */
static void unwritten(struct code *c, unsigned reg)
{
	near_op_ri(c, 64, 5, SP, 8);
	near_byte(c, 0x58 | reg);
}

static void partial_step(struct code *c)
{
	unsigned a = near_rarely(c, 2) ? AX : CX, b = near_rarely(c, 2) ? AX : CX,
		 width = near_rarely(c, 2) ? 32 : 64;
	static const uint8_t group[] = { 0x01, 0x09, 0x21, 0x29, 0x31 },
			     eight[] = { 0x00, 0x08, 0x20, 0x28, 0x30, 0x88 };

	switch (near_below(c, 14)) {
	case 0: /* movb field(%rdi), %al or %ah */
		near_byte(c, 0x8a);
		near_byte(c, 0x47 | (near_rarely(c, 3) ? a | 4 : a) << 3);
		near_byte(c, 8 * (unsigned)near_below(c, 8));
		break;
	case 1: /* setcc */
		bytes_of(c,
			 (const uint8_t[]){ 0x0f, (uint8_t)(0x90 | near_below(c, 16)),
					    (uint8_t)(0xc0 | a | (near_rarely(c, 4) ? 4 : 0)) },
			 3);
		break;
	case 2: /* among bytes, low and high */
		near_byte(c, eight[near_below(c, sizeof(eight))]);
		near_byte(c, 0xc0 | (a | 4 * (unsigned)near_below(c, 2)) << 3 | b |
				     4 * (unsigned)near_below(c, 2));
		break;
	case 3:
		near_op_ri(c, width, 4, a,
			   (const int32_t[]){ 1, 0xff, 0xffff, 0xff00, -256, 0x1fe,
					      0x80 }[near_below(c, 7)]);
		break;
	case 4:
		near_op_rr(c, width, 0xc1, 4, a);
		near_byte(c, near_rarely(c, 2) ? 8 : 1 + (unsigned)near_below(c, 31));
		break;
	case 5:
		near_op_rm(c, width, 0x8d, a, b, a, (unsigned)near_below(c, 4),
			   near_some_number(c));
		break;
	case 6: near_op_rr(c, width, 0xf7, 2 + (unsigned)near_below(c, 2), a); break;
	case 7: near_op_rr(c, width, 0xff, (unsigned)near_below(c, 2), a); break;
	case 8: near_op_rr(c, width, near_rarely(c, 2) ? 0x0faf : 0x89, a, b); break;
	case 9: near_op_rr(c, width, 0x0f40 | (unsigned)near_below(c, 16), a, b); break;
	case 10: near_op_rr(c, 8, 0x84, a, b); break;
	case 11: near_op_ri(c, 8, 7, a, near_some_number(c)); break;
	default: near_op_rr(c, width, group[near_below(c, sizeof(group))], a, b);
	}
}

/* What is used in the end is one byte or two, rightly if only written ones reach them. */
void near_idiom_partial(struct code *c)
{
	unsigned steps = 2 + (unsigned)near_below(c, 6), reg = near_rarely(c, 2) ? AX : CX, from;

	if (c->frame > 64)
		return;
	unwritten(c, AX);
	if (near_rarely(c, 2))
		unwritten(c, CX);
	near_byte(c, 0x8a); /* movb 8(%rdi), %al or %cl */
	near_byte(c, 0x47 | reg << 3);
	near_byte(c, 8);
	near_op_rr(c, 8, 0x84, reg, reg);
	while (steps--)
		partial_step(c);
	switch (near_below(c, 5)) {
	case 0: /* movb %al, (%rsi), or %ah */
		near_byte(c, 0x88);
		near_byte(c, 0x06 | (near_rarely(c, 4) ? reg | 4 : reg) << 3);
		break;
	case 1:
		near_op_rr(c, near_rarely(c, 4) ? 8 : 32, 0x0fb6, reg, reg);
		near_indexed_access(c, reg, 0, 0);
		break;
	case 2: /* through the own stack */
		near_op_rm(c, 8, 0x88, reg, SP, SP, 0, c->frame);
		near_op_rm(c, near_rarely(c, 6) ? 32 : 8, 0x8a, reg, SP, SP, 0, c->frame);
		near_op_rm(c, 8, 0x88, reg, SI, SP, 0, 8);
		break;
	case 3:
		near_op_rr(c, near_rarely(c, 8) ? 16 : 8, 0x84, reg, reg);
		from = near_jump_forward(c, 4 + (unsigned)near_below(c, 2));
		near_random_instruction(c);
		near_land(c, from);
		break;
	default: near_op_rm(c, near_some_width(c), 0x89, reg, SI, SP, 0, 16);
	}
	near_op_rr(c, 32, 0x31, AX, AX);
	near_op_rr(c, 32, 0x31, CX, CX);
}

/* ---- loops ---- */

/* Round by round: a counter of 8 or 32 bits that meets a number, perhaps after it wrapped; a number
 * that is shifted to nothing. */
void near_idiom_rounds(struct code *c)
{
	unsigned kind = (unsigned)near_below(c, 3), width = near_rarely(c, 2) ? 8 : 32, start;
	unsigned step = near_rarely(c, 2) ? 1 : 1 + 2 * (unsigned)near_below(c, 8),
		 first = (unsigned)near_below(c, 256);
	unsigned rounds = 1 + (unsigned)near_below(c, near_rarely(c, 8) ? 40 : 12);

	if (kind == 0) { /* add until it is what it should be */
		constant(c, CX, width == 8 ? first : first - 128);
		start = c->size;
		near_op_ri(c, width, 0, CX, (int32_t)step);
		if (near_rarely(c, 6))
			near_block(c, 1);
		near_op_ri(c, width, 7, CX,
			   width == 8 ? (int8_t)(first + rounds * step)
				      : (int32_t)(first - 128 + rounds * step));
		jump_back(c, near_rarely(c, 12) ? 2 : 5, start);
		return;
	}
	near_load_event(c, 8);
	if (near_rarely(c, 2)) {
		near_op_rr(c, 64, 0xc1, 5, 8);
		near_byte(c, (unsigned)near_below(c, 64));
	}
	constant(c, CX, 0);
	start = c->size;
	if (near_rarely(c, 2))
		near_indexed_access(c, CX, near_rarely(c, 4) ? 3 : 0, 0);
	if (kind == 1) {
		near_op_ri(c, 64, 0, CX, 1);
		near_op_rr(c, 64, 0xc1, near_rarely(c, 12) ? 7 : 5, 8);
		near_byte(c, (unsigned)near_below(c, near_rarely(c, 12) ? 3 : 8) +
				     (near_rarely(c, 12) ? 0 : 1));
	} else { /* x &= x - 1: for the solver */
		near_op_ri(c, 64, 0, CX, near_rarely(c, 10) ? 2 : 1);
		near_op_rm(c, 64, 0x8d, 9, 8, SP, 0, near_rarely(c, 12) ? -2 : -1);
		near_op_rr(c, 64, 0x21, 9, 8);
	}
	if (near_rarely(c, 2))
		near_op_rr(c, 64, 0x85, 8, 8);
	jump_back(c, near_rarely(c, 15) ? 4 : 5, start);
}

/* Where a key belongs in an array: lo and hi come closer until they meet. */
void near_idiom_search(struct code *c)
{
	unsigned start, out, lower, end;

	near_load_event(c, 10);
	constant(c, AX, (uint32_t)near_below(c, 2));
	constant(c, CX, near_rarely(c, 8) ? 33 : 32);
	start = c->size;
	near_op_rr(c, 32, 0x39, CX, AX);
	out = near_jump_forward(c, near_rarely(c, 15) ? 7 : 3);
	near_op_rm(c, 32, 0x8d, 8, AX, CX, 0, near_rarely(c, 15) ? 1 : 0);
	near_op_rr(c, 32, 0xc1, 5, 8);
	near_byte(c, 1);
	near_op_rm(c, 64, 0x3b, 10, SI, 8, 3, 0);
	lower = near_jump_forward(c, 2);
	near_op_rm(c, 32, 0x8d, AX, 8, SP, 0, near_rarely(c, 12) ? 0 : 1);
	jump_back(c, near_rarely(c, 20) ? 4 : 5, start);
	near_byte(c, 0xeb); /* jmp */
	near_byte(c, start - c->size - 1);
	near_land(c, lower);
	near_op_rm(c, 32, 0x8d, CX, 8, SP, 0, near_rarely(c, 15) ? 1 : 0);
	end = c->size;
	near_byte(c, 0xeb);
	near_byte(c, start - end - 2);
	near_land(c, out);
	if (near_rarely(c, 2)) {
		near_op_ri(c, 32, 7, AX, 32);
		out = near_jump_forward(c, 3);
		near_indexed_access(c, AX, 3, 0);
		near_land(c, out);
	}
}

/* A loop in a loop, counted by r8 and r9; what moves in both; ways back to the outer head and out
 * of both from within. */
void near_idiom_nest(struct code *c)
{
	unsigned outer, inner, early = 0, next = 0, width = near_rarely(c, 4) ? 32 : 64;
	int32_t most = 1 + (int32_t)near_below(c, 6);

	if (c->depth > 2)
		return;
	near_op_rr(c, 32, 0x31, 8, 8);
	near_op_rr(c, 32, 0x31, 10, 10);
	outer = c->size;
	if (near_rarely(c, 3))
		near_op_rr(c, 64, 0x89, 8, 9);
	else
		near_op_rr(c, 32, 0x31, 9, 9);
	inner = c->size;
	near_indexed_access(c,
			    near_rarely(c, 3)   ? 10
			    : near_rarely(c, 2) ? 8
						: 9,
			    near_rarely(c, 2) ? 3 : 2, 0);
	if (near_rarely(c, 3)) {
		near_op_ri(c, 64, 7, 11, near_some_number(c));
		next = near_jump_forward(c, 4 + (unsigned)near_below(c, 2));
	}
	if (near_rarely(c, 4)) {
		near_op_ri(c, 64, 7, CX, near_some_number(c));
		early = near_jump_forward(c, (unsigned)near_below(c, 16));
	}
	near_op_ri(c, width, 0, near_rarely(c, 20) ? 8 : 9, near_rarely(c, 4) ? 2 : 1);
	if (near_rarely(c, 3))
		near_op_ri(c, 64, 0, 10, near_rarely(c, 8) ? -1 : 1);
	if (near_rarely(c, 12)) { /* round again without the latch */
		near_op_rr(c, 64, 0x85, 11, 11);
		jump_back(c, 4, outer);
	}
	if (near_rarely(c, 4))
		near_op_rr(c, width, 0x39, 8, 9);
	else
		near_op_ri(c, width, 7, 9, most);
	jump_back(c, near_rarely(c, 3) ? 6 : 2, inner);
	near_land(c, next);
	near_op_ri(c, 64, 0, near_rarely(c, 20) ? 9 : 8, near_rarely(c, 15) ? 0 : 1);
	near_op_ri(c, width, 7, 8, most);
	jump_back(c, near_rarely(c, 15) ? 5 : 2, outer);
	near_land(c, early);
}

/* rep movs or rep stos between the frame, local state and the event; then the bytes are read. */
void near_idiom_string(struct code *c)
{
	unsigned width = near_rarely(c, 2)   ? 64
			 : near_rarely(c, 2) ? 32
					     : 8,
		 room = near_rarely(c, 2) ? 64 : 48, count;
	bool copy = near_rarely(c, 2), stack = !near_rarely(c, 4);

	if (c->frame > 64)
		return;
	near_op_ri(c, 64, 5, SP, 64);
	count = room / (width / 8) + (near_rarely(c, 8) ? 1 : 0);
	near_op_rr(c, 64, 0x89, DI, 8);
	near_op_rr(c, 64, 0x89, SI, 9);
	if (copy && near_rarely(c, 2))
		near_op_rm(c, 64, 0x8d, SI, DI, SP, 0, 8 * (int32_t)near_below(c, 4));
	near_op_rm(c, 64, 0x8d, DI, stack ? SP : 9, SP, 0,
		   near_rarely(c, 3) ? 64 - (int32_t)room : 0);
	constant(c, CX, count);
	near_byte(c, 0xf3);
	if (width == 64)
		near_byte(c, 0x48);
	near_byte(c, (copy ? 0xa4 : 0xaa) | (width != 8));
	if (near_rarely(c, 4)) /* where it ended */
		near_op_rm(c, 64, 0x89, CX, DI, SP, 0, near_rarely(c, 4) ? 0 : -8);
	near_op_rr(c, 64, 0x89, 9, SI);
	near_op_rr(c, 64, 0x89, 8, DI);
	near_load_event(c, 9);
	near_op_ri(c, 32, 4, 9, near_rarely(c, 8) ? 15 : near_rarely(c, 4) ? 7 : 3);
	near_op_rm(c, 64, 0x8b, AX, SP, 9, 3, 0);
	near_op_rm(c, 64, 0x89, AX, SI, SP, 0, 8);
	near_op_ri(c, 64, 0, SP, 64);
}
