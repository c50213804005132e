/* SPDX-License-Identifier: MIT */
#include "emit_private.h"

#include <string.h>

#include "fay/verify.h"

void fay_emit_byte(struct fay_emitter *e, unsigned value)
{
	if (e->size >= e->capacity) {
		e->failed = true;
		return;
	}
	e->code[e->size++] = (uint8_t)value;
}

void fay_emit_bytes(struct fay_emitter *e, const void *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		fay_emit_byte(e, ((const uint8_t *)data)[i]);
}

void fay_emit_imm32(struct fay_emitter *e, uint32_t value)
{
	fay_emit_bytes(e, &value, 4);
}

void fay_emit_push(struct fay_emitter *e, unsigned reg)
{
	if (reg >= 8)
		fay_emit_byte(e, 0x41);
	fay_emit_byte(e, 0x50 + (reg & 7));
}

void fay_emit_pop(struct fay_emitter *e, unsigned reg)
{
	if (reg >= 8)
		fay_emit_byte(e, 0x41);
	fay_emit_byte(e, 0x58 + (reg & 7));
}

void fay_emit_memory(struct fay_emitter *e, bool wide, unsigned opcode, unsigned reg, unsigned base,
		     int32_t disp)
{
	unsigned rex = 0x40 | (wide ? 8 : 0) | (reg >= 8 ? 4 : 0) | (base >= 8 ? 1 : 0);

	if (rex != 0x40)
		fay_emit_byte(e, rex);
	fay_emit_byte(e, opcode);
	fay_emit_address(e, reg, base, disp);
}

void fay_emit_address(struct fay_emitter *e, unsigned reg, unsigned base, int32_t disp)
{
	bool small = disp >= -128 && disp <= 127;

	fay_emit_byte(e, (small ? 0x40 : 0x80) | (reg & 7) << 3 | (base & 7));
	if ((base & 7) == FAY_RSP)
		fay_emit_byte(e, 0x24);
	if (small)
		fay_emit_byte(e, (uint8_t)disp);
	else
		fay_emit_imm32(e, (uint32_t)disp);
}

void fay_emit_store64(struct fay_emitter *e, unsigned base, int32_t disp, unsigned reg)
{
	fay_emit_memory(e, true, 0x89, reg, base, disp);
}

void fay_emit_store32(struct fay_emitter *e, unsigned base, int32_t disp, unsigned reg)
{
	fay_emit_memory(e, false, 0x89, reg, base, disp);
}

void fay_emit_load64(struct fay_emitter *e, unsigned reg, unsigned base, int32_t disp)
{
	fay_emit_memory(e, true, 0x8b, reg, base, disp);
}

void fay_emit_load32(struct fay_emitter *e, unsigned reg, unsigned base, int32_t disp)
{
	fay_emit_memory(e, false, 0x8b, reg, base, disp);
}

void fay_emit_lea(struct fay_emitter *e, unsigned reg, unsigned base, int32_t disp)
{
	fay_emit_memory(e, true, 0x8d, reg, base, disp);
}

void fay_emit_movabs(struct fay_emitter *e, unsigned reg, uint64_t value)
{
	fay_emit_byte(e, reg >= 8 ? 0x49 : 0x48);
	fay_emit_byte(e, 0xb8 + (reg & 7));
	fay_emit_bytes(e, &value, 8);
}

void fay_emit_rel32(struct fay_emitter *e, uint64_t target, unsigned after)
{
	int64_t distance = (int64_t)(target - (e->address + e->size + 4 + after));

	if (distance != (int32_t)distance)
		e->failed = true;
	fay_emit_imm32(e, (uint32_t)distance);
}

void fay_emit_rip_relative(struct fay_emitter *e, unsigned opcode, unsigned reg, uint64_t target)
{
	fay_emit_byte(e, reg >= 8 ? 0x4c : 0x48);
	fay_emit_byte(e, opcode);
	fay_emit_byte(e, 0x05 | (reg & 7) << 3);
	fay_emit_rel32(e, target, 0);
}

void fay_emit_call(struct fay_emitter *e, uint64_t target)
{
	fay_emit_byte(e, 0xe8);
	fay_emit_rel32(e, target, 0);
}

void fay_emit_jump(struct fay_emitter *e, uint64_t target)
{
	fay_emit_byte(e, 0xe9);
	fay_emit_rel32(e, target, 0);
}

size_t fay_emit_jump_if(struct fay_emitter *e, enum fay_condition condition)
{
	fay_emit_byte(e, 0x0f);
	fay_emit_byte(e, 0x80 | condition);
	fay_emit_imm32(e, 0);
	return e->size - 4;
}

void fay_emit_land(struct fay_emitter *e, size_t at)
{
	uint32_t distance = (uint32_t)(e->size - (at + 4));

	if (!e->failed)
		memcpy(e->code + at, &distance, 4);
}

size_t fay_emit_jump_ahead(struct fay_emitter *e)
{
	fay_emit_byte(e, 0xe9);
	fay_emit_imm32(e, 0);
	return e->size - 4;
}

void fay_emit_jump_back_if(struct fay_emitter *e, enum fay_condition condition, size_t to)
{
	fay_emit_byte(e, 0x0f);
	fay_emit_byte(e, 0x80 | condition);
	fay_emit_rel32(e, e->address + to, 0);
}
