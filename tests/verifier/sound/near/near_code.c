/* SPDX-License-Identifier: MIT */
/* Instructions as bytes, with operands at random: see near_code.h. */
#include "near_code.h"

uint64_t near_below(struct code *c, uint64_t limit)
{
	return soundness_below(c->random, limit);
}
bool near_rarely(struct code *c, unsigned one_in)
{
	return near_below(c, one_in) == 0;
}

void near_byte(struct code *c, unsigned value)
{
	if (c->size < sizeof(c->bytes))
		c->bytes[c->size++] = (uint8_t)value;
}

void near_word32(struct code *c, uint32_t value)
{
	for (unsigned i = 0; i < 4; i++)
		near_byte(c, value >> 8 * i);
}

/* Registers that idioms compute in: not the stack pointer, seldom an argument or a callee-saved
 * one. */
unsigned near_scratch(struct code *c)
{
	static const uint8_t usual[] = { AX, CX, 8, 9, 10, 11, AX, CX };

	if (near_rarely(c, 40))
		return (unsigned)near_below(c, 16);
	return usual[near_below(c, sizeof(usual))];
}

unsigned near_pointer(struct code *c)
{
	return near_rarely(c, 30) ? near_scratch(c) : near_rarely(c, 4) ? DX : SI;
}

void near_rex(struct code *c, bool wide, unsigned reg, unsigned index, unsigned base,
	      bool byte_register)
{
	unsigned value = 0x40 | wide << 3 | (reg >> 3) << 2 | (index >> 3) << 1 | base >> 3;

	if (value != 0x40 || byte_register)
		near_byte(c, value);
}

/* opcode with register operands; width 64, 32, 16, 8 (the caller picks the byte opcode). reg is a
 * digit of some opcodes. */
void near_op_rr(struct code *c, unsigned width, unsigned opcode, unsigned reg, unsigned rm)
{
	bool digit = opcode == 0x80 || opcode == 0xc0 || opcode == 0xd2 || opcode == 0xf6 ||
		     opcode == 0xfe;

	if (width == 16)
		near_byte(c, 0x66);
	near_rex(c, width == 64, reg, 0, rm,
		 width == 8 && ((reg >= 4 && reg < 8 && !digit) || (rm >= 4 && rm < 8)));
	if (opcode > 0xff)
		near_byte(c, opcode >> 8);
	near_byte(c, opcode);
	near_byte(c, 0xc0 | (reg & 7) << 3 | (rm & 7));
}

/* opcode with disp(base, index, 1 << scale); index 4 (rsp): none. */
void near_op_rm(struct code *c, unsigned width, unsigned opcode, unsigned reg, unsigned base,
		unsigned index, unsigned scale, int32_t disp)
{
	bool sib = index != SP || (base & 7) == SP;
	unsigned mod = disp == 0 && (base & 7) != BP ? 0 : disp >= -128 && disp < 128 ? 1 : 2;

	if (width == 16)
		near_byte(c, 0x66);
	near_rex(c, width == 64, reg, index == SP ? 0 : index, base,
		 width == 8 && reg >= 4 && reg < 8);
	if (opcode > 0xff)
		near_byte(c, opcode >> 8);
	near_byte(c, opcode);
	near_byte(c, mod << 6 | (reg & 7) << 3 | (sib ? 4 : (base & 7)));
	if (sib)
		near_byte(c, (index == SP ? 0 : scale) << 6 | (index & 7) << 3 | (base & 7));
	if (mod == 1)
		near_byte(c, (unsigned)disp);
	else if (mod == 2)
		near_word32(c, (uint32_t)disp);
}

/* Group 1 (add or adc sbb and sub xor cmp) with an immediate. */
void near_op_ri(struct code *c, unsigned width, unsigned digit, unsigned reg, int32_t imm)
{
	bool small = imm >= -128 && imm < 128;

	if (width == 8) {
		near_op_rr(c, 8, 0x80, digit, reg);
		near_byte(c, (unsigned)imm);
		return;
	}
	near_op_rr(c, width, small ? 0x83 : 0x81, digit, reg);
	if (small) {
		near_byte(c, (unsigned)imm);
	} else if (width == 16) {
		near_byte(c, (unsigned)imm);
		near_byte(c, (unsigned)imm >> 8);
	} else {
		near_word32(c, (uint32_t)imm);
	}
}

unsigned near_some_width(struct code *c)
{
	static const uint8_t widths[] = { 64, 64, 64, 32, 32, 32, 16, 8 };
	return widths[near_below(c, sizeof(widths))];
}

int32_t near_some_number(struct code *c)
{
	static const int32_t numbers[] = { 0,  1,  2,   3,    7,    8,     15,         16,       24,
					   31, 32, 63,  64,   127,  128,   255,        256,      -1,
					   -2, -8, -64, -128, 4095, 65535, 0x7fffffff, INT32_MIN };
	uint32_t number = (uint32_t)numbers[near_below(c, sizeof(numbers) / sizeof(*numbers))];

	return (int32_t)(near_rarely(c, 6) ? number + (uint32_t)near_below(c, 3) - 1 : number);
}

void near_load_event(struct code *c, unsigned reg)
{
	unsigned width = near_rarely(c, 3) ? 32 : 64;

	near_op_rm(c, width, 0x8b, reg, DI, SP, 0,
		   near_rarely(c, 60) ? 124 : 8 * (int32_t)near_below(c, 15));
}

/* An access of `pointer + reg * scale`, which the idiom before has bounded by 0 <= reg * scale <=
 * room, sometimes one too far. */
void near_indexed_access(struct code *c, unsigned reg, unsigned scale, int32_t disp)
{
	unsigned base = near_pointer(c),
		 width = scale == 3   ? 64
			 : scale == 2 ? 32
			 : scale == 1 ? 16
				      : 8,
		 other = near_scratch(c);

	if (near_rarely(c, 20))
		width = near_some_width(c);
	switch (near_below(c, 4)) {
	case 0: near_op_rm(c, width, width == 8 ? 0xfe : 0xff, 0, base, reg, scale, disp); break;
	case 1:
		near_op_rm(c, width, width == 8 ? 0x8a : 0x8b, other, base, reg, scale, disp);
		break;
	case 2:
		near_op_rm(c, width, width == 8 ? 0x80 : 0x83, (unsigned)near_below(c, 8), base,
			   reg, scale, disp);
		near_byte(c, (unsigned)near_some_number(c));
		break;
	default: near_op_rm(c, width, width == 8 ? 0x88 : 0x89, reg, base, reg, scale, disp);
	}
}

unsigned near_jump_forward(struct code *c, unsigned cc)
{
	near_byte(c, 0x70 | cc);
	near_byte(c, 0);
	return c->size;
}

void near_land(struct code *c, unsigned from)
{
	if (c->size - from < 128 && from)
		c->bytes[from - 1] = (uint8_t)(c->size - from);
}

static void bytes_of(struct code *c, const char *bytes, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		near_byte(c, (uint8_t)bytes[i]);
}

/* VEX forms on the first eight registers: andn bzhi mulx shlx sarx shrx, blsr blsmsk blsi. */
static void vex_instruction(struct code *c)
{
	static const uint8_t rows[][2] = { { 0, 0xf2 }, { 0, 0xf5 }, { 3, 0xf6 }, { 1, 0xf7 },
					   { 2, 0xf7 }, { 3, 0xf7 }, { 0, 0xf3 } };
	static const uint8_t usual[] = { AX, CX, DX, AX, CX };
	unsigned row = (unsigned)near_below(c, 7), a = usual[near_below(c, 5)],
		 b = usual[near_below(c, 5)], v = usual[near_below(c, 5)];

	bytes_of(c, "\xc4\xe2", 2);
	near_byte(c, (unsigned)near_below(c, 2) << 7 | (~v & 15) << 3 | rows[row][0]);
	near_byte(c, rows[row][1]);
	near_byte(c, 0xc0 | (row == 6 ? 1 + (unsigned)near_below(c, 3) : a) << 3 | b);
}

/* High bytes, 8 and 16 bits, bits, exchanges with memory, double shifts, strings. */
static void rare_instruction(struct code *c)
{
	unsigned a = near_scratch(c), b = near_scratch(c), width = near_some_width(c);
	static const uint8_t group[] = { 0x00, 0x08, 0x20, 0x28, 0x30, 0x38, 0x88 };

	switch (near_below(c, 12)) {
	case 0: /* a high byte: no REX */
		near_byte(c, group[near_below(c, 7)]);
		near_byte(c, 0xc0 | (unsigned)near_below(c, 7) << 3 | (unsigned)near_below(c, 7));
		break;
	case 1:
		near_op_rr(c, width >= 32 ? width : 32,
			   (const unsigned[]){ 0x0fab, 0x0fb3, 0x0fbb, 0x0fa3 }[near_below(c, 4)],
			   a, b);
		break;
	case 2:
		near_op_rm(c, width >= 32 ? width : 32, 0x0fba, 4 + (unsigned)near_below(c, 4),
			   near_pointer(c), SP, 0, 8 * (int32_t)near_below(c, 9));
		near_byte(c, (unsigned)near_below(c, 256));
		break;
	case 3:
		near_op_rr(c, width, width == 8 ? 0xf6 : 0xf7, 4 + (unsigned)near_below(c, 4), a);
		break;
	case 4:
		near_op_rr(c, width == 8 ? 16 : width, 0x0f40 | (unsigned)near_below(c, 16), a, b);
		break;
	case 5:
		near_op_rr(c, width >= 32 ? width : 32, near_rarely(c, 2) ? 0x0fa5 : 0x0fad, a, b);
		break;
	case 6:
		near_op_rm(c, width, width == 8 ? 0x86 : 0x87, a, near_pointer(c), SP, 0,
			   8 * (int32_t)near_below(c, 9));
		break;
	case 7:
		near_byte(c, 0xf0);
		near_op_rm(c, width, width == 8 ? 0x0fc0 : 0x0fc1, a, near_pointer(c), SP, 0,
			   8 * (int32_t)near_below(c, 9));
		break;
	case 8:
		near_byte(c, 0xf0);
		near_op_rm(c, width, width == 8 ? 0x0fb0 : 0x0fb1, a, near_pointer(c), SP, 0,
			   8 * (int32_t)near_below(c, 9));
		break;
	case 9:
		near_op_rm(c, 32, 0xff, 6, near_rarely(c, 2) ? DI : SI, SP, 0,
			   8 * (int32_t)near_below(c, 9));
		near_byte(c, 0x58 | (near_rarely(c, 2) ? AX : CX));
		break;
	case 10: /* mov %rdi, %rdx; mov %rsi, %rdi; mov $n, %ecx; rep stos; mov %rdx, %rdi */
		bytes_of(c, "\x48\x89\xfa\x48\x89\xf7\xb9", 7);
		near_word32(c, (uint32_t)near_below(c, 10));
		bytes_of(c, near_rarely(c, 2) ? "\xf3\x48\xab" : "\x90\xf3\xaa", 3);
		bytes_of(c, "\x48\x89\xd7", 3);
		break;
	default: vex_instruction(c);
	}
}

/* One random instruction on scratch registers. */
void near_random_instruction(struct code *c)
{
	unsigned a = near_scratch(c), b = near_scratch(c), width = near_some_width(c);
	static const uint8_t group[] = { 0x00, 0x08, 0x10, 0x18, 0x20, 0x28, 0x30, 0x38 };
	static const uint8_t shifts[] = { 0, 1, 4, 5, 7 };

	if (near_rarely(c, 5)) {
		rare_instruction(c);
		return;
	}
	switch (near_below(c, 21)) {
	case 0:
	case 1: near_op_rr(c, width, group[near_below(c, 8)] + (width != 8), a, b); break;
	case 2:
	case 3: near_op_ri(c, width, (unsigned)near_below(c, 8), a, near_some_number(c)); break;
	case 4: near_op_rr(c, width, width == 8 ? 0x88 : 0x89, a, b); break;
	case 5:
		near_op_rm(c, near_rarely(c, 3) ? 32 : 64, 0x8d, a, b, near_scratch(c) & 11,
			   (unsigned)near_below(c, 4), near_some_number(c));
		break;
	case 6:
		near_op_rr(c, width, width == 8 ? 0xc0 : 0xc1, shifts[near_below(c, 5)], a);
		near_byte(c, (unsigned)near_below(c, width + 1));
		break;
	case 7: near_op_rr(c, width, width == 8 ? 0xd2 : 0xd3, shifts[near_below(c, 5)], a); break;
	case 8:
		near_op_rr(c, width == 8 ? 32 : width, near_rarely(c, 2) ? 0x0fb6 : 0x0fbe, a,
			   b & 11);
		break;
	case 9:
		near_op_rr(c, width >= 32 ? width : 32, near_rarely(c, 2) ? 0x0fb7 : 0x0fbf, a, b);
		break;
	case 10:
		near_op_rr(c, width >= 32 ? width : 32, 0x0f40 | (unsigned)near_below(c, 16), a, b);
		break;
	case 11: near_op_rr(c, 8, 0x0f90 | (unsigned)near_below(c, 16), 0, a); break;
	case 12: near_op_rr(c, width >= 32 ? width : 32, 0x0faf, a, b); break;
	case 13:
		near_op_rr(c, width, width == 8 ? 0xf6 : 0xf7, 2 + (unsigned)near_below(c, 2), a);
		break;
	case 14:
		near_op_rr(c, width, width == 8 ? 0xfe : 0xff, (unsigned)near_below(c, 2), a);
		break;
	case 15:
		near_op_rr(c, width >= 32 ? width : 32, near_rarely(c, 2) ? 0x0fbc : 0x0fbd, a, b);
		break;
	case 16: near_op_rr(c, 64, 0x63, a, b); break;
	case 17: near_op_rr(c, width >= 32 ? width : 32, 0x87, a, b); break;
	case 18: near_op_rr(c, width, width == 8 ? 0x84 : 0x85, a, b); break;
	case 19:
		near_op_rr(c, width >= 32 ? width : 32, near_rarely(c, 2) ? 0x0fa4 : 0x0fac, a, b);
		near_byte(c, (unsigned)near_below(c, 64));
		break;
	default: near_op_rr(c, 32, 0x0fba, 4, a); near_byte(c, (unsigned)near_below(c, 32));
	}
}
