/* SPDX-License-Identifier: MIT */
/*
 * Looks for unsound acceptances: random probes that are nearly right, executed whenever the verifier accepts them.
 *
 *	fuzz_accept TEMPLATE SECONDS [SEED [FOLDER]]
 *
 * A probe is made of idioms (bounded index and access, counted loop, spill and reload, helper call, save and restore) and of single random
 * instructions, and then damaged with small probability: another register, constant, condition or width. So about half are accepted, and the other half lie close to
 * the border. soundness.c (the interpreter) and native.c (the CPU) say what is checked. FOLDER gets the code of each accepted probe (seeds of fuzz_code). An unsound image is kept as fuzz_accept-SEED.fay and the program fails.
 *
 * Limits: it finds only what random search finds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fay/verify.h"
#include "native.h"
#include "soundness.h"
#include "vector_forms.h"

static uint64_t native_steps;

enum { AX, CX, DX, BX, SP, BP, SI, DI };

struct code {
	uint8_t bytes[1024];
	unsigned size;
	struct soundness_random *random;
	const struct soundness_template *template;
	int depth; /* of nested idioms */
	int32_t tables[SOUNDNESS_TABLES];
	unsigned table_count; /* of tables of four, used */
	int32_t frame;        /* the frame's slots begin so far above rsp */
	uint8_t calls[8];     /* ends of calls whose function is not there yet */
	unsigned call_count;
	bool within;          /* a function that is called */
};

static uint64_t below(struct code *c, uint64_t limit) { return soundness_below(c->random, limit); }
static bool rarely(struct code *c, unsigned one_in) { return below(c, one_in) == 0; }

static void byte(struct code *c, unsigned value)
{
	if (c->size < sizeof(c->bytes))
		c->bytes[c->size++] = (uint8_t)value;
}

static void word32(struct code *c, uint32_t value)
{
	for (unsigned i = 0; i < 4; i++)
		byte(c, value >> 8 * i);
}

/* Registers that idioms compute in: not the stack pointer, seldom an argument or a callee-saved one. */
static unsigned scratch(struct code *c)
{
	static const uint8_t usual[] = { AX, CX, 8, 9, 10, 11, AX, CX };

	if (rarely(c, 40))
		return (unsigned)below(c, 16);
	return usual[below(c, sizeof(usual))];
}

static unsigned pointer(struct code *c)
{
	return rarely(c, 30) ? scratch(c) : rarely(c, 4) ? DX : SI;
}

static void rex(struct code *c, bool wide, unsigned reg, unsigned index, unsigned base, bool byte_register)
{
	unsigned value = 0x40 | wide << 3 | (reg >> 3) << 2 | (index >> 3) << 1 | base >> 3;

	if (value != 0x40 || byte_register)
		byte(c, value);
}

/* opcode with register operands; width 64, 32, 16, 8 (the caller picks the byte opcode). */
static void op_rr(struct code *c, unsigned width, unsigned opcode, unsigned reg, unsigned rm)
{
	if (width == 16)
		byte(c, 0x66);
	rex(c, width == 64, reg, 0, rm, width == 8 && ((reg >= 4 && reg < 8) || (rm >= 4 && rm < 8)));
	if (opcode > 0xff)
		byte(c, opcode >> 8);
	byte(c, opcode);
	byte(c, 0xc0 | (reg & 7) << 3 | (rm & 7));
}

/* opcode with disp(base, index, 1 << scale); index 4 (rsp): none. */
static void op_rm(struct code *c, unsigned width, unsigned opcode, unsigned reg, unsigned base, unsigned index, unsigned scale, int32_t disp)
{
	bool sib = index != SP || (base & 7) == SP;
	unsigned mod = disp == 0 && (base & 7) != BP ? 0 : disp >= -128 && disp < 128 ? 1 : 2;

	if (width == 16)
		byte(c, 0x66);
	rex(c, width == 64, reg, index == SP ? 0 : index, base, width == 8 && reg >= 4 && reg < 8);
	if (opcode > 0xff)
		byte(c, opcode >> 8);
	byte(c, opcode);
	byte(c, mod << 6 | (reg & 7) << 3 | (sib ? 4 : (base & 7)));
	if (sib)
		byte(c, (index == SP ? 0 : scale) << 6 | (index & 7) << 3 | (base & 7));
	if (mod == 1)
		byte(c, (unsigned)disp);
	else if (mod == 2)
		word32(c, (uint32_t)disp);
}

/* Group 1 (add or adc sbb and sub xor cmp) with an immediate. */
static void op_ri(struct code *c, unsigned width, unsigned digit, unsigned reg, int32_t imm)
{
	bool small = imm >= -128 && imm < 128;

	if (width == 8) {
		op_rr(c, 8, 0x80, digit, reg);
		byte(c, (unsigned)imm);
		return;
	}
	op_rr(c, width, small ? 0x83 : 0x81, digit, reg);
	if (small) {
		byte(c, (unsigned)imm);
	} else if (width == 16) {
		byte(c, (unsigned)imm);
		byte(c, (unsigned)imm >> 8);
	} else {
		word32(c, (uint32_t)imm);
	}
}

static unsigned some_width(struct code *c)
{
	static const uint8_t widths[] = { 64, 64, 64, 32, 32, 32, 16, 8 };
	return widths[below(c, sizeof(widths))];
}

static int32_t some_number(struct code *c)
{
	static const int32_t numbers[] = { 0, 1, 2, 3, 7, 8, 15, 16, 24, 31, 32, 63, 64, 127, 128, 255, 256, -1, -2, -8, -64, -128, 4095, 65535,
		0x7fffffff, INT32_MIN };
	uint32_t number = (uint32_t)numbers[below(c, sizeof(numbers) / sizeof(*numbers))];

	return (int32_t)(rarely(c, 6) ? number + (uint32_t)below(c, 3) - 1 : number);
}

static void load_event(struct code *c, unsigned reg)
{
	unsigned width = rarely(c, 3) ? 32 : 64;

	op_rm(c, width, 0x8b, reg, DI, SP, 0, rarely(c, 60) ? 124 : 8 * (int32_t)below(c, 15));
}

/* An access of `pointer + reg * scale`, which the idiom before has bounded by 0 <= reg * scale <= room, sometimes one too far. */
static void indexed_access(struct code *c, unsigned reg, unsigned scale, int32_t disp)
{
	unsigned base = pointer(c), width = scale == 3 ? 64 : scale == 2 ? 32 : scale == 1 ? 16 : 8, other = scratch(c);

	if (rarely(c, 20))
		width = some_width(c);
	switch (below(c, 4)) {
	case 0:
		op_rm(c, width, width == 8 ? 0xfe : 0xff, 0, base, reg, scale, disp);
		break;
	case 1:
		op_rm(c, width, width == 8 ? 0x8a : 0x8b, other, base, reg, scale, disp);
		break;
	case 2:
		op_rm(c, width, width == 8 ? 0x80 : 0x83, (unsigned)below(c, 8), base, reg, scale, disp);
		byte(c, (unsigned)some_number(c));
		break;
	default:
		op_rm(c, width, width == 8 ? 0x88 : 0x89, reg, base, reg, scale, disp);
	}
}

static unsigned jump_forward(struct code *c, unsigned cc)
{
	byte(c, 0x70 | cc);
	byte(c, 0);
	return c->size;
}

static void land(struct code *c, unsigned from)
{
	if (c->size - from < 128 && from)
		c->bytes[from - 1] = (uint8_t)(c->size - from);
}

static void statement(struct code *c);

static void block(struct code *c, unsigned most)
{
	unsigned count = 1 + (unsigned)below(c, most);

	if (++c->depth < 4 && c->size < 700) {
		while (count--)
			statement(c);
	}
	c->depth--;
}

static void bytes_of(struct code *c, const char *bytes, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		byte(c, (uint8_t)bytes[i]);
}

/* VEX forms on the first eight registers: andn bzhi mulx shlx sarx shrx, blsr blsmsk blsi. */
static void vex_instruction(struct code *c)
{
	static const uint8_t rows[][2] = { { 0, 0xf2 }, { 0, 0xf5 }, { 3, 0xf6 }, { 1, 0xf7 }, { 2, 0xf7 }, { 3, 0xf7 }, { 0, 0xf3 } };
	static const uint8_t usual[] = { AX, CX, DX, AX, CX };
	unsigned row = (unsigned)below(c, 7), a = usual[below(c, 5)], b = usual[below(c, 5)], v = usual[below(c, 5)];

	bytes_of(c, "\xc4\xe2", 2);
	byte(c, (unsigned)below(c, 2) << 7 | (~v & 15) << 3 | rows[row][0]);
	byte(c, rows[row][1]);
	byte(c, 0xc0 | (row == 6 ? 1 + (unsigned)below(c, 3) : a) << 3 | b);
}

/* High bytes, 8 and 16 bits, bits, exchanges with memory, double shifts, strings. */
static void rare_instruction(struct code *c)
{
	unsigned a = scratch(c), b = scratch(c), width = some_width(c);
	static const uint8_t group[] = { 0x00, 0x08, 0x20, 0x28, 0x30, 0x38, 0x88 };

	switch (below(c, 12)) {
	case 0: /* a high byte: no REX */
		byte(c, group[below(c, 7)]);
		byte(c, 0xc0 | (unsigned)below(c, 7) << 3 | (unsigned)below(c, 7));
		break;
	case 1:
		op_rr(c, width >= 32 ? width : 32, (const unsigned[]){ 0x0fab, 0x0fb3, 0x0fbb, 0x0fa3 }[below(c, 4)], a, b);
		break;
	case 2:
		op_rm(c, width >= 32 ? width : 32, 0x0fba, 4 + (unsigned)below(c, 4), pointer(c), SP, 0, 8 * (int32_t)below(c, 9));
		byte(c, (unsigned)below(c, 256));
		break;
	case 3:
		op_rr(c, width, width == 8 ? 0xf6 : 0xf7, 4 + (unsigned)below(c, 4), a);
		break;
	case 4:
		op_rr(c, width == 8 ? 16 : width, 0x0f40 | (unsigned)below(c, 16), a, b);
		break;
	case 5:
		op_rr(c, width >= 32 ? width : 32, rarely(c, 2) ? 0x0fa5 : 0x0fad, a, b);
		break;
	case 6:
		op_rm(c, width, width == 8 ? 0x86 : 0x87, a, pointer(c), SP, 0, 8 * (int32_t)below(c, 9));
		break;
	case 7:
		byte(c, 0xf0);
		op_rm(c, width, width == 8 ? 0x0fc0 : 0x0fc1, a, pointer(c), SP, 0, 8 * (int32_t)below(c, 9));
		break;
	case 8:
		byte(c, 0xf0);
		op_rm(c, width, width == 8 ? 0x0fb0 : 0x0fb1, a, pointer(c), SP, 0, 8 * (int32_t)below(c, 9));
		break;
	case 9:
		op_rm(c, 32, 0xff, 6, rarely(c, 2) ? DI : SI, SP, 0, 8 * (int32_t)below(c, 9));
		byte(c, 0x58 | (rarely(c, 2) ? AX : CX));
		break;
	case 10: /* mov %rdi, %rdx; mov %rsi, %rdi; mov $n, %ecx; rep stos; mov %rdx, %rdi */
		bytes_of(c, "\x48\x89\xfa\x48\x89\xf7\xb9", 7);
		word32(c, (uint32_t)below(c, 10));
		bytes_of(c, rarely(c, 2) ? "\xf3\x48\xab" : "\x90\xf3\xaa", 3);
		bytes_of(c, "\x48\x89\xd7", 3);
		break;
	default:
		vex_instruction(c);
	}
}

/* One random instruction on scratch registers. */
static void random_instruction(struct code *c)
{
	unsigned a = scratch(c), b = scratch(c), width = some_width(c);
	static const uint8_t group[] = { 0x00, 0x08, 0x10, 0x18, 0x20, 0x28, 0x30, 0x38 };
	static const uint8_t shifts[] = { 0, 1, 4, 5, 7 };

	if (rarely(c, 5)) {
		rare_instruction(c);
		return;
	}
	switch (below(c, 21)) {
	case 0:
	case 1:
		op_rr(c, width, group[below(c, 8)] + (width != 8), a, b);
		break;
	case 2:
	case 3:
		op_ri(c, width, (unsigned)below(c, 8), a, some_number(c));
		break;
	case 4:
		op_rr(c, width, width == 8 ? 0x88 : 0x89, a, b);
		break;
	case 5:
		op_rm(c, rarely(c, 3) ? 32 : 64, 0x8d, a, b, scratch(c) & 11, (unsigned)below(c, 4), some_number(c));
		break;
	case 6:
		op_rr(c, width, width == 8 ? 0xc0 : 0xc1, shifts[below(c, 5)], a);
		byte(c, (unsigned)below(c, width + 1));
		break;
	case 7:
		op_rr(c, width, width == 8 ? 0xd2 : 0xd3, shifts[below(c, 5)], a);
		break;
	case 8:
		op_rr(c, width == 8 ? 32 : width, rarely(c, 2) ? 0x0fb6 : 0x0fbe, a, b & 11);
		break;
	case 9:
		op_rr(c, width >= 32 ? width : 32, rarely(c, 2) ? 0x0fb7 : 0x0fbf, a, b);
		break;
	case 10:
		op_rr(c, width >= 32 ? width : 32, 0x0f40 | (unsigned)below(c, 16), a, b);
		break;
	case 11:
		op_rr(c, 8, 0x0f90 | (unsigned)below(c, 16), 0, a);
		break;
	case 12:
		op_rr(c, width >= 32 ? width : 32, 0x0faf, a, b);
		break;
	case 13:
		op_rr(c, width, width == 8 ? 0xf6 : 0xf7, 2 + (unsigned)below(c, 2), a);
		break;
	case 14:
		op_rr(c, width, width == 8 ? 0xfe : 0xff, (unsigned)below(c, 2), a);
		break;
	case 15:
		op_rr(c, width >= 32 ? width : 32, rarely(c, 2) ? 0x0fbc : 0x0fbd, a, b);
		break;
	case 16:
		op_rr(c, 64, 0x63, a, b);
		break;
	case 17:
		op_rr(c, width >= 32 ? width : 32, 0x87, a, b);
		break;
	case 18:
		op_rr(c, width, width == 8 ? 0x84 : 0x85, a, b);
		break;
	case 19:
		op_rr(c, width >= 32 ? width : 32, rarely(c, 2) ? 0x0fa4 : 0x0fac, a, b);
		byte(c, (unsigned)below(c, 64));
		break;
	default:
		op_rr(c, 32, 0x0fba, 4, a);
		byte(c, (unsigned)below(c, 32));
	}
}

/* Index from the event, bounded in one of many ways, then used. */
static void idiom_index(struct code *c)
{
	unsigned reg = scratch(c), other = scratch(c), scale = (unsigned)below(c, 4), from = 0;
	int32_t limit = (rarely(c, 3) ? SOUNDNESS_LOCAL : SOUNDNESS_GLOBAL) >> scale, disp = 0;
	unsigned width = rarely(c, 3) ? 32 : 64;

	load_event(c, reg);
	if (rarely(c, 25))
		limit += (int32_t)below(c, 3) - 1;
	switch (below(c, 10)) {
	case 0:
		op_ri(c, width, 4, reg, limit - 1);
		break;
	case 1: /* cmp; jae */
		op_ri(c, width, 7, reg, limit);
		if (rarely(c, 8))
			op_rr(c, 64, 0xff, 0, other); /* inc keeps CF */
		from = jump_forward(c, rarely(c, 15) ? (unsigned)below(c, 16) : 3);
		break;
	case 2: /* cmp; ja */
		op_ri(c, width, 7, reg, limit - 1);
		from = jump_forward(c, rarely(c, 15) ? (unsigned)below(c, 16) : 7);
		break;
	case 3: /* clamp */
		byte(c, 0x40 | (other >> 3));
		c->size -= other < 8;
		byte(c, 0xb8 | (other & 7));
		word32(c, (uint32_t)limit - 1);
		op_rr(c, width, 0x39, other, reg);
		op_rr(c, width, rarely(c, 10) ? 0x0f4f : 0x0f47, reg, other);
		break;
	case 4: /* shift */
		op_rr(c, 64, 0xc1, 5, reg);
		byte(c, 64u - (unsigned)__builtin_ctz((unsigned)limit | 0x400) + rarely(c, 10) - rarely(c, 10));
		break;
	case 5: /* subtract, compare, displacement the other way */
		disp = (int32_t)below(c, 64);
		op_ri(c, 64, 5, reg, disp);
		op_ri(c, width, 7, reg, limit);
		from = jump_forward(c, 3);
		if (rarely(c, 2)) {
			op_ri(c, 64, 0, reg, disp);
			disp = -disp * (1 << scale);
		} else {
			disp = 0;
		}
		break;
	case 6: /* copy checked */
		op_rr(c, rarely(c, 4) ? 32 : 64, 0x89, reg, other);
		op_ri(c, width, 7, other, limit);
		from = jump_forward(c, 3);
		break;
	case 7: /* signed on both sides */
		op_ri(c, width, 7, reg, rarely(c, 3) ? 1 : 0);
		from = jump_forward(c, 12);
		op_ri(c, width, 7, reg, limit);
		unsigned second = jump_forward(c, rarely(c, 10) ? 15 : 13);
		indexed_access(c, reg, scale, disp);
		land(c, second);
		land(c, from);
		return;
	case 8: /* remainder */
		op_rr(c, 64, 0x89, reg, AX);
		op_rr(c, 32, 0x31, DX, DX);
		byte(c, 0xb9);
		word32(c, (uint32_t)limit);
		op_rr(c, rarely(c, 10) ? 32 : 64, 0xf7, 6, CX);
		op_rm(c, 64, 0xff, 0, SI, DX, scale, 0);
		return;
	default: /* sign extension */
		op_rr(c, 64, rarely(c, 2) ? 0x63 : 0x0fbe, reg, AX);
		op_ri(c, 64, 4, reg, limit - 1);
	}
	if (rarely(c, 10))
		random_instruction(c);
	indexed_access(c, reg, scale, disp);
	if (rarely(c, 3) && from)
		block(c, 2);
	land(c, from);
}

static void idiom_loop(struct code *c)
{
	unsigned counter = scratch(c), width = rarely(c, 3) ? 32 : 64;
	int32_t bound = 1 + (int32_t)below(c, 8), stride = rarely(c, 4) ? 1 + (int32_t)below(c, 3) : 1;
	bool up = rarely(c, 2);
	unsigned start;

	op_rr(c, 32, 0x31, counter, counter);
	if (!up || rarely(c, 5))
		op_ri(c, 64, 0, counter, bound * stride);
	start = c->size;
	if (up && rarely(c, 2))
		indexed_access(c, counter, 3, 0);
	if (rarely(c, 2))
		block(c, 2);
	op_ri(c, width, up ? 0 : 5, counter, stride);
	if (up)
		op_ri(c, width, 7, counter, rarely(c, 2) ? bound : bound * stride);
	else if (rarely(c, 3))
		indexed_access(c, counter, 3, 0);
	byte(c, 0x70 | (rarely(c, 15) ? (unsigned)below(c, 16) : rarely(c, 2) ? 5 : up ? 2 : 15));
	byte(c, start - c->size - 1);
}

/* Frame slots: 8 of 8 bytes at 0(%rsp), see generate(). */
static void idiom_stack(struct code *c)
{
	unsigned reg = scratch(c), width = some_width(c);
	int32_t slot = c->frame + 8 * (int32_t)below(c, 6) + (rarely(c, 6) ? (int32_t)below(c, 8) : 0);

	switch (below(c, 6)) {
	case 0:
		op_rm(c, width, width == 8 ? 0x88 : 0x89, reg, SP, SP, 0, slot);
		break;
	case 1:
		op_rm(c, width, width == 8 ? 0x8a : 0x8b, reg, SP, SP, 0, slot);
		break;
	case 2: /* spill a pointer and reload it */
		op_rm(c, 64, 0x89, SI, SP, SP, 0, slot & ~7);
		if (rarely(c, 2))
			block(c, 2);
		op_rm(c, 64, 0x8b, rarely(c, 2) ? SI : scratch(c), SP, SP, 0, slot & ~7);
		break;
	case 3: /* indexed */
		load_event(c, reg);
		op_ri(c, 32, 4, reg, rarely(c, 10) ? 7 : 3);
		op_rm(c, width, width == 8 ? 0x88 : 0x89, scratch(c), SP, reg, width == 64 ? 3 : (unsigned)below(c, 3), c->frame);
		break;
	case 4: /* compare the slot */
		op_rm(c, 64, 0x83, 7, SP, SP, 0, slot & ~7);
		byte(c, (unsigned)some_number(c));
		{
			unsigned from = jump_forward(c, (unsigned)below(c, 16));
			op_rm(c, 64, 0x8b, reg, SP, SP, 0, slot & ~7);
			if (rarely(c, 2))
				indexed_access(c, reg, (unsigned)below(c, 4), 0);
			land(c, from);
		}
		break;
	default:
		op_rm(c, width, width == 8 ? 0xfe : 0xff, (unsigned)below(c, 2), SP, SP, 0, slot);
	}
}

static void idiom_branch(struct code *c)
{
	unsigned from;

	if (rarely(c, 3))
		load_event(c, scratch(c));
	op_ri(c, some_width(c), 7, scratch(c), some_number(c));
	from = jump_forward(c, (unsigned)below(c, 16));
	block(c, 3);
	land(c, from);
}

/* Through the slot, or through a register loaded from it that may have been moved, kept on the stack, or spoilt in between. */
static void call_helper(struct code *c, unsigned helper)
{
	static const uint8_t scratch[] = { AX, CX, 8, 9, 10, 11 };
	unsigned reg = scratch[below(c, sizeof(scratch))], to = reg;
	uint64_t slot = c->template->slots[rarely(c, 30) ? below(c, FAY_HELPER_COUNT) : helper] + (rarely(c, 30) ? 8 * below(c, 3) - 8 : 0);

	if (rarely(c, 2)) {
		byte(c, 0xff);
		byte(c, 0x15);
		word32(c, (uint32_t)(slot - (c->template->text + c->size + 4)));
		return;
	}
	byte(c, reg >= 8 ? 0x4c : 0x48);
	byte(c, 0x8b);
	byte(c, (uint8_t)(0x05 | (reg & 7) << 3));
	word32(c, (uint32_t)(slot - (c->template->text + c->size + 4)));
	if (rarely(c, 3)) {
		op_rm(c, 64, 0x89, reg, SP, SP, 0, c->frame + 40);
		if (rarely(c, 10))
			random_instruction(c);
		to = scratch[below(c, sizeof(scratch))];
		op_rm(c, rarely(c, 20) ? some_width(c) : 64, 0x8b, to, SP, SP, 0, c->frame + (rarely(c, 20) ? 36 : 40));
	} else if (rarely(c, 3)) {
		to = scratch[below(c, sizeof(scratch))];
		op_rr(c, rarely(c, 20) ? some_width(c) : 64, 0x89, reg, to);
	}
	if (rarely(c, 10))
		random_instruction(c);
	if (to >= 8)
		byte(c, 0x41);
	byte(c, 0xff);
	byte(c, (uint8_t)(0xd0 | (to & 7)));
}

/* A helper, with local kept in rbx (see generate) and everything else forgotten. */
static void idiom_helper(struct code *c)
{
	unsigned helper = (unsigned)below(c, FAY_HELPER_COUNT);

	if (helper == FAY_HELPER_TRY_READ) {
		load_event(c, DX);
		byte(c, 0xbe);
		word32(c, rarely(c, 8) ? (uint32_t)some_number(c) : (uint32_t)below(c, 41));
		op_rm(c, 64, 0x8d, DI, rarely(c, 3) ? BX : SP, SP, 0, c->frame + (rarely(c, 4) ? 8 * (int32_t)below(c, 7) : 0));
	} else {
		if (helper == FAY_HELPER_EMIT)
			op_rm(c, 64, 0x8d, DX, rarely(c, 2) ? SP : rarely(c, 2) ? SI : DI, SP, 0, c->frame + 8 * (int32_t)below(c, 6));
		op_rr(c, 64, 0x89, BX, DI);
		byte(c, 0xbe);
		word32(c, rarely(c, 20) ? (uint32_t)below(c, 4) : helper == FAY_HELPER_FLUSH ? 2 : 1);
	}
	call_helper(c, helper);
	if (rarely(c, 20))
		return;
	for (unsigned i = 0; i < 6; i++) { /* scratch registers have to be written again; rsi and rdi come from rbx and rbp */
		static const uint8_t again[] = { CX, 8, 9, 10, 11, DX };
		if (!rarely(c, 40))
			op_rr(c, 32, 0x31, again[i], again[i]);
	}
	op_rr(c, 64, 0x89, BX, SI);
	op_rr(c, 64, 0x89, BP, DI);
	op_rr(c, 64, 0x89, 12, DX);
}

static void idiom_memory(struct code *c)
{
	unsigned reg = scratch(c), width = some_width(c), base = pointer(c);
	int32_t disp = rarely(c, 30) ? 60 : 8 * (int32_t)below(c, 8);

	switch (below(c, 7)) {
	case 0:
	case 1:
		op_rm(c, width, width == 8 ? 0x88 : 0x89, reg, base, SP, 0, disp);
		break;
	case 2:
	case 3:
		op_rm(c, width, width == 8 ? 0x8a : 0x8b, reg, base, SP, 0, disp);
		break;
	case 4:
		byte(c, 0xf0);
		op_rm(c, 64, rarely(c, 2) ? 0x0fc1 : 0x0fb1, reg, base, SP, 0, disp);
		break;
	case 5: /* constants */
		rex(c, true, reg, 0, 0, false);
		byte(c, 0x8d);
		byte(c, (reg & 7) << 3 | 5);
		word32(c, (uint32_t)(c->template->rodata - (c->template->text + c->size + 4)));
		{
			unsigned index = scratch(c);
			load_event(c, index);
			op_ri(c, 32, 4, index, rarely(c, 10) ? 63 : 15);
			op_rm(c, 32, 0x0fb6, index, reg, index, 0, rarely(c, 2) ? 16 : 0);
			if (rarely(c, 2))
				indexed_access(c, index, 0, 0);
		}
		break;
	default: /* move the pointer there and back */
		op_ri(c, 64, 0, SI, 8);
		op_rm(c, 64, 0xff, 0, SI, SP, 0, disp);
		op_ri(c, 64, 5, SI, 8);
	}
}

static struct vector_form vector_forms[2048];
static unsigned vector_form_count;

/* A vector instruction of any form; registers mostly such as were written before. */
static void vector_instruction(struct code *c, bool memory, unsigned base, int32_t disp)
{
	struct vector_form form;
	struct vector_operands o = { .reg = (unsigned)below(c, rarely(c, 20) ? 16 : 8), .vvvv = (unsigned)below(c, rarely(c, 20) ? 16 : 8),
				     .rm = (unsigned)below(c, rarely(c, 20) ? 16 : 8), .base = base, .disp = (int8_t)disp, .imm = (uint8_t)below(c, 256) };
	uint8_t bytes[16];
	unsigned size;

	do {
		form = vector_forms[below(c, vector_form_count)];
	} while (form.memory != memory);
	if (form.row->shape == VSHAPE_GG && !memory)
		o.rm = scratch(c);
	if (form.row->shape == VSHAPE_GG || form.row->shape == VSHAPE_GRM || form.row->shape == VSHAPE_GRMI)
		o.reg = scratch(c);
	if (!memory && (form.row->shape == VSHAPE_GX || form.row->shape == VSHAPE_GXI || form.row->shape == VSHAPE_XG || form.row->shape == VSHAPE_XVGI ||
			form.row->shape == VSHAPE_XVG))
		o.rm = scratch(c);
	size = vector_form_encode(&form, &o, bytes);
	for (unsigned i = 0; i < size; i++)
		byte(c, bytes[i]);
}

/* Loads, arithmetic, stores of vectors; through state, the event, the stack and an index. */
static void idiom_vector(struct code *c)
{
	unsigned count = 1 + (unsigned)below(c, 4), reg = scratch(c);

	if (reg == SP || reg == BP || reg == 12 || reg == 13)
		reg = 9;
	while (count--) {
		switch (below(c, 6)) {
		case 0:
			vector_instruction(c, true, SI, 16 * (int32_t)below(c, 8) - (rarely(c, 12) ? 8 : 0));
			break;
		case 1:
			vector_instruction(c, true, rarely(c, 3) ? DX : DI, 8 * (int32_t)below(c, rarely(c, 8) ? 16 : 5));
			break;
		case 2: /* the frame: 48 bytes, from a multiple of 16 */
			op_rm(c, 64, 0x8d, reg, SP, SP, 0, c->frame);
			vector_instruction(c, true, reg, 16 * (int32_t)below(c, 2) + (rarely(c, 6) ? 8 : 0));
			break;
		case 3: /* one of eight elements of 16 or 32 bytes */
			load_event(c, reg);
			op_ri(c, 32, 4, reg, rarely(c, 10) ? 15 : 7);
			op_rr(c, 32, 0xc1, 4, reg);
			byte(c, rarely(c, 12) ? 3 : 4);
			op_rr(c, 64, 0x01, SI, reg);
			vector_instruction(c, true, reg, 0);
			break;
		default:
			vector_instruction(c, false, 0, 0);
		}
	}
}

/* A switch of four through a table; now and then without a check that is enough, or with an entry that is off. */
static void idiom_switch(struct code *c)
{
	unsigned index = scratch(c), base = scratch(c), to = scratch(c), number = c->table_count;
	uint64_t table = c->template->rodata + 32 + 16 * (uint64_t)number;

	if (4 * number >= SOUNDNESS_TABLES || c->depth > 2 || base == SP || to == SP || index == SP)
		return;
	c->table_count++;
	c->depth++;
	load_event(c, index);
	op_ri(c, rarely(c, 20) ? 8 : 32, 4, index, rarely(c, 20) ? 7 : rarely(c, 3) ? 1 : 3);
	rex(c, true, base, 0, 0, false);
	byte(c, 0x8d);
	byte(c, (base & 7) << 3 | 5);
	word32(c, (uint32_t)(table - (c->template->text + c->size + 4)));
	op_rm(c, 64, rarely(c, 20) ? 0x8b : 0x63, to, base, index, rarely(c, 20) ? 1 : 2, 0);
	op_rr(c, 64, 0x01, rarely(c, 30) ? index : base, to);
	if (to >= 8)
		byte(c, 0x41);
	byte(c, 0xff);
	byte(c, 0xe0 | (to & 7));
	for (unsigned i = 0; i < 4; i++) {
		c->tables[4 * number + i] = (int32_t)(c->template->text + c->size - table) + (rarely(c, 60) ? 1 : 0);
		statement(c);
	}
	c->depth--;
}

/*
 * Two places of one region, at or beyond its ends and the frame's, compared; what the comparison says decides whether an access far outside runs. So the probe is
 * accepted only if the verifier believes that it never does.
 */
static void idiom_pointers(struct code *c)
{
	static const uint8_t bases[] = { SP, SP, SI, DX, DI };
	static const uint16_t sizes[] = { 72, 72, SOUNDNESS_LOCAL, SOUNDNESS_GLOBAL, 296 };
	unsigned region = (unsigned)below(c, 5), a = rarely(c, 2) ? AX : 8, b = rarely(c, 2) ? CX : 9, from;

	for (unsigned i = 0; i < 2; i++) {
		int32_t edge = rarely(c, 3) ? 0 : rarely(c, 2) ? sizes[region] + (region < 2 ? c->frame : 0) : 8 * (int32_t)below(c, sizes[region] / 8);
		unsigned index = SP;

		if (rarely(c, 4)) {
			index = 10;
			load_event(c, index);
			op_ri(c, 32, 4, index, rarely(c, 2) ? 8 : 24);
		}
		op_rm(c, 64, 0x8d, i ? b : a, bases[region], index, 0, edge + (rarely(c, 3) ? 8 * (int32_t)below(c, 3) - 8 : 0));
	}
	if (rarely(c, 4))
		op_rr(c, 64, 0x89, a, 11);
	op_rr(c, 64, rarely(c, 4) ? 0x29 : 0x39, b, a);
	if (rarely(c, 3)) { /* an index of 0 or 2^20 */
		op_rr(c, 8, 0x0f90 | (unsigned)below(c, 16), 0, 10);
		op_rr(c, 32, 0x0fb6, 10, 10);
		op_rr(c, 32, 0xc1, 4, 10);
		byte(c, 20);
		op_rm(c, 64, 0x8b, AX, SI, 10, 0, 0);
	} else {
		from = jump_forward(c, (unsigned)below(c, 16));
		op_rm(c, 64, 0x8b, AX, SI, SP, 0, 1 << 20);
		land(c, from);
	}
	op_rr(c, 32, 0x31, a, a);
	op_rr(c, 32, 0x31, b, b);
	op_rr(c, 32, 0x31, 11, 11);
}

/* Bounds that follow from the bits only, which intervals do not show: the solver's. Sometimes they do not follow. */
static void idiom_bits(struct code *c)
{
	unsigned reg = rarely(c, 2) ? AX : 8, other = rarely(c, 2) ? CX : 9, shift = 1 + (unsigned)below(c, 3);

	load_event(c, reg);
	switch (below(c, 4)) {
	case 0: /* x - (x >> n << n) */
		op_rr(c, 64, 0x89, reg, other);
		op_rr(c, 64, 0xc1, 5, other);
		byte(c, shift);
		op_rr(c, 64, 0xc1, 4, other);
		byte(c, rarely(c, 10) ? shift + 1 : shift);
		op_rr(c, 64, 0x29, other, reg);
		break;
	case 1: /* a mask of all ones or zeros, from the carry */
		op_ri(c, 64, 7, reg, rarely(c, 10) ? 33 : 8);
		op_rr(c, 64, 0x19, other, other);
		op_rr(c, 64, 0x21, other, reg);
		break;
	case 2: /* x ^ (x & ~7) */
		op_rr(c, 64, 0x89, reg, other);
		op_ri(c, 64, 4, other, rarely(c, 10) ? -64 : -8);
		op_rr(c, 64, 0x31, other, reg);
		break;
	default: /* two tests of one number's bits */
		op_rr(c, 64, 0x89, reg, other);
		op_ri(c, 64, 1, other, 7);
		op_rr(c, 64, 0x29, other, reg);
		op_rr(c, 64, 0xf7, 3, reg);
	}
	indexed_access(c, reg, rarely(c, 10) ? 1 : 3, 0);
}

/* A call of a function that is put behind the probe's end. */
static void idiom_call(struct code *c)
{
	if (c->within || c->call_count == sizeof(c->calls) || c->size > 250)
		return;
	byte(c, 0xe8);
	word32(c, 0);
	c->calls[c->call_count++] = (uint8_t)c->size;
}

/* An array in a frame of its own that a loop writes, wholly or nearly, and that is read then, or while it is written. */
static void idiom_fill(struct code *c)
{
	unsigned scale = rarely(c, 3) ? 2 : 3, width = rarely(c, 10) ? some_width(c) : scale == 2 ? 32 : 64, start, from = 0, elements = 32u >> scale;
	bool down = rarely(c, 4);

	if (c->frame > 64 || c->depth > 2)
		return;
	op_ri(c, 64, 5, SP, 32);
	c->frame += 32;
	byte(c, 0xb9); /* mov $first, %ecx */
	word32(c, (down ? elements : 0) + (rarely(c, 10) ? 1 : 0));
	start = c->size;
	if (rarely(c, 6))
		random_instruction(c);
	if (rarely(c, 6)) { /* left early */
		op_ri(c, 64, 7, 8, some_number(c));
		from = jump_forward(c, 4 + (unsigned)below(c, 2));
	}
	if (rarely(c, 8))
		op_rm(c, 64, 0x89, rarely(c, 2) ? SI : AX, SP, SP, 0, 8 * (int32_t)below(c, 4));
	op_rm(c, width, width == 8 ? 0x88 : 0x89, AX, SP, CX, scale, (down ? -(1 << scale) : 0) + (rarely(c, 20) ? 4 : 0));
	if (rarely(c, 4)) /* the one just written, or another */
		op_rm(c, scale == 2 ? 32 : 64, 0x8b, 9, SP, CX, scale, (int32_t)below(c, 3) * (1 << scale) - (1 << scale));
	op_ri(c, rarely(c, 4) ? 32 : 64, down ? 5 : 0, CX, rarely(c, 15) ? 2 : 1);
	if (!down || rarely(c, 4))
		op_ri(c, 64, 7, CX, down ? 0 : (int32_t)(elements + (rarely(c, 12) ? (unsigned)below(c, 3) - 1 : 0)));
	byte(c, 0x70 | (rarely(c, 4) && !down ? 2 : 5));
	byte(c, start - c->size - 1);
	if (from && rarely(c, 2)) {
		land(c, from);
		from = 0;
	}
	if (rarely(c, 3)) {
		block(c, 1);
	} else {
		load_event(c, 9);
		op_ri(c, 32, 4, 9, (int32_t)(elements - (rarely(c, 8) ? 0 : 1)));
		op_rm(c, scale == 2 ? 32 : 64, 0x8b, AX, SP, 9, scale, 0);
		op_rm(c, 64, 0x89, AX, SI, SP, 0, 8 * (int32_t)below(c, 8));
	}
	if (from)
		land(c, from);
	op_ri(c, 64, 0, SP, 32);
	c->frame -= 32;
}

/* Something pushed meanwhile, and popped, not always evenly. */
static void idiom_push(struct code *c)
{
	unsigned reg = rarely(c, 3) ? 3 + 9 * (unsigned)below(c, 2) : scratch(c), to = rarely(c, 10) ? scratch(c) : reg;

	if (reg == SP || to == SP || c->frame > 64)
		return;
	if (reg >= 8)
		byte(c, 0x41);
	byte(c, 0x50 | (reg & 7));
	c->frame += 8;
	block(c, 2);
	c->frame -= 8;
	if (to >= 8)
		byte(c, 0x41);
	byte(c, 0x58 | (to & 7));
}

static void statement(struct code *c)
{
	switch (below(c, 27)) {
	case 25:
	case 26:
		idiom_fill(c);
		break;
	case 20:
	case 21:
		idiom_pointers(c);
		break;
	case 22:
		idiom_bits(c);
		break;
	case 23:
		idiom_call(c);
		break;
	case 24:
		idiom_push(c);
		break;
	case 16:
	case 17:
	case 18:
		idiom_vector(c);
		break;
	case 19:
		idiom_switch(c);
		break;
	case 0:
	case 1:
	case 2:
		idiom_index(c);
		break;
	case 3:
	case 4:
		idiom_loop(c);
		break;
	case 5:
	case 6:
		idiom_stack(c);
		break;
	case 7:
	case 8:
		idiom_branch(c);
		break;
	case 9:
		idiom_helper(c);
		break;
	case 10:
	case 11:
		idiom_memory(c);
		break;
	case 12:
		load_event(c, scratch(c));
		break;
	default:
		random_instruction(c);
	}
}

/* The functions that calls want: two at most, each with a frame of its own of 8 bytes. */
static void functions(struct code *c)
{
	unsigned starts[2] = { 0, 0 }, count = 0;

	c->within = true;
	c->frame = 16;
	for (unsigned i = 0; i < c->call_count; i++) {
		unsigned which = count && rarely(c, 2) ? (unsigned)below(c, count) : count, at = c->calls[i], to;

		if (which == 2)
			which = 1;
		if (which == count) {
			starts[count++] = c->size;
			op_ri(c, 64, 5, SP, 8);
			block(c, 3);
			if (!rarely(c, 60))
				op_ri(c, 64, 0, SP, 8);
			byte(c, 0xc3);
		}
		to = starts[which] - at;
		for (unsigned k = 0; k < 4; k++)
			c->bytes[at - 4 + k] = (uint8_t)(to >> 8 * k);
	}
}

static void generate(struct code *c)
{
	static const uint8_t first[] = { AX, CX, 8, 9, 10, 11 };
	unsigned statements = 1 + (unsigned)below(c, 6), damage;

	byte(c, 0x53);		 /* push %rbx, %rbp, %r12 */
	byte(c, 0x55);
	byte(c, 0x41);
	byte(c, 0x54);
	op_ri(c, 64, 5, SP, 48); /* aligned for helpers */
	op_rr(c, 64, 0x89, SI, BX);
	op_rr(c, 64, 0x89, DI, BP);
	op_rr(c, 64, 0x89, DX, 12);
	for (unsigned i = 0; i < sizeof(first); i++) {
		if (rarely(c, 2))
			op_rr(c, 32, 0x31, first[i], first[i]);
		else
			load_event(c, first[i]);
	}
	for (int32_t slot = 0; slot < 48; slot += 8) {
		if (!rarely(c, 10))
			op_rm(c, 64, 0x89, AX, SP, SP, 0, slot);
	}
	for (unsigned i = 0; i < 8; i++) { /* vmovups (%rdi), %ymm: sometimes only half, sometimes not at all */
		uint8_t load[] = { 0xc5, rarely(c, 6) ? 0xf8 : 0xfc, 0x10, (uint8_t)(0x07 | i << 3) };

		if (rarely(c, 4))
			continue;
		for (unsigned k = 0; k < 4; k++)
			byte(c, load[k]);
	}
	while (statements--)
		statement(c);
	op_ri(c, 64, 0, SP, 48);
	byte(c, 0x41);
	byte(c, 0x5c);
	byte(c, 0x5d);
	byte(c, 0x5b);
	byte(c, 0xc3);
	functions(c);
	damage = rarely(c, 6) ? 1 + (unsigned)below(c, 2) : 0;
	while (damage--)
		c->bytes[below(c, c->size)] ^= (uint8_t)(1u << below(c, 8));
}

static void keep(const struct soundness_template *template, uint64_t seed)
{
	char name[64];
	FILE *stream;

	snprintf(name, sizeof(name), "fuzz_accept-%llu.fay", (unsigned long long)seed);
	stream = fopen(name, "wb");
	if (stream) {
		fwrite(template->file, 1, template->size, stream);
		fclose(stream);
	}
	printf("     kept as %s\n", name);
}

static void save(const char *folder, uint64_t seed, const struct code *code)
{
	char path[512];
	FILE *stream;

	snprintf(path, sizeof(path), "%s/%llu", folder, (unsigned long long)seed);
	stream = fopen(path, "wb");
	if (stream) {
		fwrite(code->bytes, 1, code->size, stream);
		fclose(stream);
	}
}

static const char *folder; /* or NULL */

/* Verifies the probe of `seed`; executes it if accepted. */
static bool try_seed(struct soundness_template *template, const struct fay_policy *policy, uint64_t seed, unsigned *accepted, unsigned *rules)
{
	struct soundness_random random = { seed };
	struct code code = { .random = &random, .template = template };
	struct fay_verdict verdict;
	const char *wrong = NULL;

	generate(&code);
	memset(template->file + template->code_at, 0xc3, template->code_size);
	memcpy(template->file + template->code_at, code.bytes, code.size);
	/* Sections lie in the file as they do in memory. */
	memcpy(template->file + template->code_at + (template->rodata + 32 - template->text), code.tables, sizeof(code.tables));
	fay_verify(template->file, template->size, policy, &verdict);
	if (verdict.outcome == FAY_ACCEPTED) {
		++*accepted;
		if (folder)
			save(folder, seed, &code);
		wrong = soundness_check(template->file, template->size, &verdict, seed * 31, 24);
		if (!wrong)
			wrong = native_check(template->file, template->size, &verdict, seed * 37, 2, &native_steps);
	} else {
		rules[verdict.rejection.rule]++;
	}
	fay_verdict_deinit(&verdict);
	if (wrong) {
		printf("UNSOUND seed %llu: %s\n", (unsigned long long)seed, wrong);
		keep(template, seed);
	}
	return !wrong;
}

int main(int argc, char **argv)
{
	unsigned tried = 0, accepted = 0, unsound = 0, rules[FAY_RULE_COUNT] = { 0 };
	struct soundness_template template;
	struct fay_policy policy;
	uint64_t seed;
	time_t end;

	if (argc < 3 || !soundness_template_read(argv[1], &template) || native_init()) {
		fprintf(stderr, "usage: fuzz_accept TEMPLATE SECONDS [SEED [FOLDER]]\n");
		return 2;
	}
	for (unsigned at = 0; vector_form_count < 2048 && vector_form_next(&at, &vector_forms[vector_form_count]);)
		vector_form_count++;
	seed = argc > 3 ? strtoull(argv[3], NULL, 0) : (uint64_t)time(NULL) * 1000003;
	folder = argc > 4 ? argv[4] : NULL;
	end = time(NULL) + strtol(argv[2], NULL, 0);
	fay_policy_default(&policy);
	policy.solver_ms = 100;
	policy.total_ms = 3000;
	policy.max_instructions = 50000;
	printf("first seed %llu\n", (unsigned long long)seed);
	do {
		unsound += !try_seed(&template, &policy, seed++, &accepted, rules);
		tried++;
	} while (time(NULL) < end && unsound < 10);
	printf("%u probes, %u accepted and executed (%llu instructions on the CPU), %u unsound\n", tried, accepted, (unsigned long long)native_steps,
	       unsound);
	for (unsigned i = 1; i < FAY_RULE_COUNT; i++) {
		if (rules[i])
			printf("  %s %u\n", fay_rule_id(i), rules[i]);
	}
	if (tried >= 100 && accepted * 20 < tried) {
		printf("FAIL fewer than 5 %% accepted: the generator tests nothing\n");
		return 1;
	}
	free(template.file);
	return unsound != 0;
}
