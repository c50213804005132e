/* SPDX-License-Identifier: MIT */
/*
 * Operands of instructions as terms. Stack slots at constant offsets, the event and read-only data
 * are followed; whatever else is read is an unknown, a new one at every read, so nothing is ever
 * proved from memory that another thread or the process that maps it may write.
 */
#include <string.h>

#include "smt_terms.h"

static uint32_t slot_index(int64_t offset)
{
	return (uint32_t)(-(offset & ~(int64_t)3) / 4) - 1;
}

static bool slot_inside(const struct query *q, int64_t offset, unsigned size)
{
	return offset >= -4 * (int64_t)q->now.slots && offset <= -(int64_t)size;
}

static Z3_ast stack_byte(struct query *q, int64_t offset)
{
	unsigned byte = (unsigned)(offset & 3);

	return Z3_mk_extract(q->z, 8 * byte + 7, 8 * byte, q->now.slot[slot_index(offset)]);
}

Z3_ast fay_smt_stack_load(struct query *q, int64_t offset, unsigned size)
{
	Z3_ast r;

	if (!slot_inside(q, offset, size))
		return fresh_bits(q, 8 * size);
	if (!(offset & 3) && size == 4)
		return q->now.slot[slot_index(offset)];
	if (!(offset & 3) && size == 8)
		return Z3_mk_concat(q->z, q->now.slot[slot_index(offset + 4)],
				    q->now.slot[slot_index(offset)]);
	r = stack_byte(q, offset);
	for (unsigned i = 1; i < size; i++)
		r = Z3_mk_concat(q->z, stack_byte(q, offset + i), r);
	return r;
}

static void stack_store_byte(struct query *q, int64_t offset, Z3_ast byte)
{
	Z3_ast *slot = &q->now.slot[slot_index(offset)], r = NULL;

	for (unsigned k = 4; k-- > 0;) {
		Z3_ast part = k == (unsigned)(offset & 3)
				      ? byte
				      : Z3_mk_extract(q->z, 8 * k + 7, 8 * k, *slot);

		r = r ? Z3_mk_concat(q->z, r, part) : part;
	}
	*slot = r;
}

void fay_smt_stack_store(struct query *q, int64_t offset, unsigned size, Z3_ast value)
{
	if (!slot_inside(q, offset, size))
		return;
	if (!(offset & 3) && size >= 4) {
		q->now.slot[slot_index(offset)] = Z3_mk_extract(q->z, 31, 0, value);
		if (size == 8)
			q->now.slot[slot_index(offset + 4)] = Z3_mk_extract(q->z, 63, 32, value);
		return;
	}
	for (unsigned i = 0; i < size; i++)
		stack_store_byte(q, offset + i, Z3_mk_extract(q->z, 8 * i + 7, 8 * i, value));
}

void fay_smt_stack_forget(struct query *q, int64_t low, int64_t high)
{
	int64_t bottom = -4 * (int64_t)q->now.slots;

	if (low < bottom)
		low = bottom;
	if (high > 0)
		high = 0;
	for (int64_t o = low & ~(int64_t)3; o < high; o += 4)
		if (slot_inside(q, o, 4))
			q->now.slot[slot_index(o)] = fresh_bits(q, 32);
}

static Z3_ast event_load(struct query *q, int64_t offset, unsigned size)
{
	Z3_ast r = NULL;

	for (unsigned i = 0; i < size; i++) {
		unsigned at = (unsigned)offset + i;
		Z3_ast byte = Z3_mk_extract(q->z, 8 * (at & 7) + 7, 8 * (at & 7), q->event[at / 8]);

		r = r ? Z3_mk_concat(q->z, byte, r) : byte;
	}
	return r;
}

static uint64_t rodata_at(const struct query *q, uint64_t offset, unsigned size)
{
	const struct fay_image *image = q->an->image;
	uint64_t number = 0;

	memcpy(&number, image->layout.bytes + (image->rodata.start - image->layout_base) + offset,
	       size);
	return number;
}

Z3_ast fay_smt_address(struct query *q, const struct fay_operand *mem)
{
	Z3_ast r;

	if (mem->rip)
		return bits(q, (uint64_t)mem->disp - q->an->image->rodata.start, 64);
	r = bits(q, (uint64_t)mem->disp, 64);
	if (mem->base != FAY_NO_REG)
		r = Z3_mk_bvadd(q->z, q->now.reg[mem->base], r);
	if (mem->index != FAY_NO_REG)
		r = Z3_mk_bvadd(q->z, r,
				Z3_mk_bvmul(q->z, q->now.reg[mem->index], bits(q, mem->scale, 64)));
	return r;
}

#define TABLE_ENTRIES 256

static Z3_ast load_once(struct query *q, const struct fay_operand *mem, unsigned size)
{
	struct fay_value at;
	Z3_ast r, address;

	if (!fay_transfer_address(q->an, mem, &at))
		return fresh_bits(q, 8 * size);
	if (at.tag == REGION_STACK)
		return fay_scalar_is_const(&at.s) ? fay_smt_stack_load(q, at.s.smin, size)
						  : fresh_bits(q, 8 * size);
	if (at.tag == REGION_EVENT && fay_scalar_is_const(&at.s) && at.s.smin >= 0 &&
	    at.s.smin + size <= (int64_t)sizeof(struct fay_event))
		return event_load(q, at.s.smin, size);
	if (at.tag == REGION_RODATA && at.s.smin >= 0 &&
	    (uint64_t)at.s.smax + size <= q->an->image->rodata.size &&
	    at.s.smax - at.s.smin < TABLE_ENTRIES) {
		q->table_terms += (unsigned)(at.s.smax - at.s.smin);
		address = fay_smt_address(q, mem);
		r = bits(q, rodata_at(q, (uint64_t)at.s.smax, size), 8 * size);
		for (int64_t o = at.s.smin; o < at.s.smax; o++)
			if (fay_scalar_contains(&at.s, (uint64_t)o))
				r = Z3_mk_ite(
					q->z, Z3_mk_eq(q->z, address, bits(q, (uint64_t)o, 64)),
					bits(q, rodata_at(q, (uint64_t)o, size), 8 * size), r);
		return r;
	}
	r = fresh_bits(q, 8 * size);
	if (q->load_count < FAY_MODEL_LOADS) {
		q->loads[q->load_count].node = q->an->node;
		q->loads[q->load_count].insn = q->an->insn;
		q->loads[q->load_count].size = size;
		q->loads[q->load_count++].var = r;
	}
	return r;
}

/* One instruction reads its operand once, however often its term is asked for. */
static Z3_ast load(struct query *q, const struct fay_operand *mem, unsigned size)
{
	if (q->loaded_mem != mem) {
		q->loaded = load_once(q, mem, size);
		q->loaded_mem = mem;
	}
	return q->loaded;
}

static void store(struct query *q, const struct fay_operand *mem, unsigned size, Z3_ast value)
{
	struct fay_value at;

	q->stored = value;
	if (!fay_transfer_address(q->an, mem, &at) || at.tag != REGION_STACK)
		return;
	if (fay_scalar_is_const(&at.s))
		fay_smt_stack_store(q, at.s.smin, size, value);
	else
		fay_smt_stack_forget(q, at.s.smin, at.s.smax < 0 ? at.s.smax + size : 0);
}

void fay_smt_store_unknown(struct query *q, const struct fay_operand *mem, unsigned size)
{
	struct fay_value at;

	if (fay_transfer_address(q->an, mem, &at) && at.tag == REGION_STACK)
		fay_smt_stack_forget(q, at.s.smin, at.s.smax < 0 ? at.s.smax + size : 0);
}

Z3_ast fay_smt_read(struct query *q, const struct fay_operand *operand, unsigned width)
{
	switch (operand->kind) {
	case OPERAND_REG: return low_bits(q, q->now.reg[operand->reg], width);
	case OPERAND_HIGH: return Z3_mk_extract(q->z, 15, 8, q->now.reg[operand->reg]);
	case OPERAND_IMM: return bits(q, (uint64_t)operand->imm, width);
	case OPERAND_MEM: return load(q, operand, width / 8);
	default: return fresh_bits(q, width);
	}
}

void fay_smt_write_reg(struct query *q, unsigned reg, unsigned width, Z3_ast value)
{
	if (width == 64)
		q->now.reg[reg] = value;
	else if (width == 32)
		q->now.reg[reg] = Z3_mk_zero_ext(q->z, 32, value);
	else
		q->now.reg[reg] =
			Z3_mk_concat(q->z, Z3_mk_extract(q->z, 63, width, q->now.reg[reg]), value);
}

void fay_smt_write(struct query *q, const struct fay_operand *operand, unsigned width, Z3_ast value)
{
	if (operand->kind == OPERAND_REG)
		fay_smt_write_reg(q, operand->reg, width, value);
	else if (operand->kind == OPERAND_HIGH)
		fay_smt_write_reg(
			q, operand->reg, 16,
			Z3_mk_concat(q->z, value,
				     Z3_mk_extract(q->z, 7, 0, q->now.reg[operand->reg])));
	else if (operand->kind == OPERAND_MEM)
		store(q, operand, width / 8, value);
}
