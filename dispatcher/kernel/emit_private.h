/* SPDX-License-Identifier: MIT */
/* The instructions that trampolines of the kernel are written with: private to trampoline.c. */
#ifndef FAY_KERNEL_EMIT_PRIVATE_H
#define FAY_KERNEL_EMIT_PRIVATE_H

#include "trampoline.h"

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11 };

struct writer {
	uint8_t *code;
	uint32_t size, capacity;
	uint64_t address;
	bool failed;
};

static const uint8_t argument_registers[6] = { RDI, RSI, RDX, RCX, R8, R9 };

static inline void byte(struct writer *w, unsigned int value)
{
	if (w->size >= w->capacity) {
		w->failed = true;
		return;
	}
	w->code[w->size++] = (uint8_t)value;
}

static inline void bytes(struct writer *w, unsigned int count, uint64_t most_significant_first)
{
	while (count--)
		byte(w, (unsigned int)(most_significant_first >> 8 * count) & 0xff);
}

static inline void imm32(struct writer *w, uint32_t value)
{
	for (unsigned int i = 0; i < 4; i++)
		byte(w, value >> 8 * i & 0xff);
}

static inline void push(struct writer *w, unsigned int reg)
{
	if (reg >= 8)
		byte(w, 0x41);
	byte(w, 0x50 + (reg & 7));
}

static inline void pop(struct writer *w, unsigned int reg)
{
	if (reg >= 8)
		byte(w, 0x41);
	byte(w, 0x58 + (reg & 7));
}

/* opcode with reg and disp32(base); with REX.W if wide. base is not rsp or r12. */
static inline void memory(struct writer *w, bool wide, unsigned int opcode, unsigned int reg,
			  unsigned int base, int disp)
{
	unsigned int rex = 0x40 | (wide ? 8 : 0) | (reg >= 8 ? 4 : 0) | (base >= 8 ? 1 : 0);

	if (rex != 0x40)
		byte(w, rex);
	byte(w, opcode);
	byte(w, 0x80 | (reg & 7) << 3 | (base & 7));
	imm32(w, (uint32_t)disp);
}

static inline void load(struct writer *w, unsigned int reg, unsigned int base, int disp)
{
	memory(w, true, 0x8b, reg, base, disp);
}
static inline void store(struct writer *w, unsigned int base, int disp, unsigned int reg)
{
	memory(w, true, 0x89, reg, base, disp);
}
static inline void lea(struct writer *w, unsigned int reg, unsigned int base, int disp)
{
	memory(w, true, 0x8d, reg, base, disp);
}

/* The operand %gs:offset, an absolute 32-bit address; `prefix_opcode_modrm` with mod 0, rm 4. */
static inline void per_cpu(struct writer *w, unsigned int count, uint64_t prefix_opcode_modrm,
			   uint32_t offset)
{
	byte(w, 0x65);
	bytes(w, count, prefix_opcode_modrm);
	byte(w, 0x25);
	imm32(w, offset);
}

static inline void call(struct writer *w, uint64_t target)
{
	int64_t distance;

	byte(w, 0xe8);
	distance = (int64_t)(target - (w->address + w->size + 4));
	if (distance != (int32_t)distance)
		w->failed = true;
	imm32(w, (uint32_t)distance);
}

/* A call of a function of fay.ko. */
static inline void call_out(struct writer *w, struct fay_kernel_trampoline *t, uint64_t target)
{
	if (!t->relocations) {
		call(w, target);
		return;
	}
	byte(w, 0xe8);
	if (t->relocation_count == FAY_KERNEL_RELOCATIONS_MAX)
		w->failed = true;
	else
		t->relocations[t->relocation_count++] =
			(struct fay_kernel_relocation){ w->size, target };
	imm32(w, 0);
}

/* jmp (0xe9) or jcc (0x0f 0x8?) rel32 to a place not yet known. */
static inline uint32_t jump_ahead(struct writer *w, unsigned int count, unsigned int opcode)
{
	bytes(w, count, opcode);
	imm32(w, 0);
	return w->size;
}

static inline void patch(struct writer *w, uint32_t after, uint32_t target)
{
	uint32_t distance = target - after;

	if (w->failed)
		return;
	for (unsigned int i = 0; i < 4; i++)
		w->code[after - 4 + i] = (uint8_t)(distance >> 8 * i);
}

static inline void jump_back(struct writer *w, uint32_t target)
{
	patch(w, jump_ahead(w, 1, 0xe9), target);
}

#endif
