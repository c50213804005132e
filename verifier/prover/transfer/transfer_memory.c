/* SPDX-License-Identifier: MIT */
/*
 * Addresses, their obligations, loads and stores; operands of instructions.
 */
#include <stdlib.h>
#include <string.h>

#include "transfer.h"

static const char *const region_names[] = { "the event", "local state", "global state",
					    "read-only data", "the stack" };

static uint64_t region_size(const struct fay_analysis *an, enum fay_region region)
{
	switch (region) {
	case REGION_EVENT: return sizeof(struct fay_event);
	case REGION_LOCAL: return an->image->header.local_size;
	case REGION_GLOBAL: return an->image->header.global_size;
	case REGION_RODATA: return an->image->rodata.size;
	default: return 0;
	}
}

bool fay_mem_address(struct fay_analysis *an, const struct fay_operand *mem, struct fay_value *v)
{
	struct fay_value index;

	if (mem->rip) {
		*v = fay_value_constant(an, (uint64_t)mem->disp - an->image->rodata.start);
		v->kind = KIND_POINTER;
		v->tag = REGION_RODATA;
		return true;
	}
	if (mem->base != FAY_NO_REG) {
		if (!fay_reg_read(an, mem->base, 64, v))
			return false;
	} else {
		*v = fay_value_constant(an, 0);
	}
	if (mem->index != FAY_NO_REG) {
		if (!fay_reg_read(an, mem->index, 64, &index))
			return false;
		if (mem->scale != 1) {
			struct fay_scalar scale = fay_scalar_const(mem->scale);

			if (index.kind == KIND_POINTER)
				return fay_path_refuse(an, FAY_RULE_MEM_POINTER,
						       "a pointer is scaled");
			index = fay_value_fresh(an, fay_scalar_mul(&index.s, &scale));
		}
		if (mem->base == FAY_NO_REG)
			*v = index;
		else {
			struct fay_value sum;

			if (!fay_value_arithmetic(an, OP_ADD, v, &index, 64, &sum))
				return false;
			*v = sum;
		}
	}
	if (mem->disp && v->kind == KIND_POINTER) {
		struct fay_scalar disp = fay_scalar_const((uint64_t)mem->disp);

		v->s = fay_scalar_add(&v->s, &disp);
		v->delta += (uint64_t)mem->disp;
		fay_value_move_origin(v, v, mem->disp, mem->disp);
	} else if (mem->disp) {
		struct fay_value disp = fay_value_constant(an, (uint64_t)mem->disp), sum;

		if (!fay_value_arithmetic(an, OP_ADD, v, &disp, 64, &sum))
			return false;
		*v = sum;
	}
	return true;
}

/* Whether [offset, offset + size) lies in [low, high + size) for every offset; else an obligation.
 * False if the path must end. */
static bool check_bounds(struct fay_analysis *an, struct fay_access *access, int64_t low,
			 int64_t high, bool helper)
{
	const struct fay_scalar *o = &access->offset;
	struct fay_scalar clipped;
	enum fay_rule rule = FAY_RULE_MEM_BOUNDS;
	struct fay_obligation *pending;
	bool never;
	char text[96];

	if (an->checking)
		an->obligation_count++;
	access->proved = o->smin >= low && o->smax <= high;
	if (access->proved)
		return true;
	never = o->smax < low || o->smin > high;
	if (access->region == REGION_STACK)
		rule = o->smin < low ? FAY_RULE_MEM_BELOW_SP : FAY_RULE_STK_RETURN;
	if (an->checking) {
		/* Where the analysis does not go on, only unreachability discharges. */
		pending = fay_obligation_add(an, helper || never ? GOAL_UNREACHABLE : GOAL_BOUNDS,
					     rule, never ? fay_rule_outcome(rule) : FAY_UNPROVED);
		if (!pending)
			return false;
		pending->region = (uint8_t)access->region;
		pending->size = access->size;
		pending->low = low;
		pending->high = high;
		fay_scalar_print(o, text, sizeof(text));
		pending->what = fay_arena_printf(an->arena,
						 "accesses %u byte%s at offset %s of %s, where "
						 "%lld to %lld would be allowed",
						 access->size, access->size == 1 ? "" : "s", text,
						 region_names[access->region], (long long)low,
						 (long long)high);
		if (!never)
			pending->missing = fay_arena_printf(
				an->arena, "that the offset stays within [%lld, %lld]; known is %s",
				(long long)low, (long long)high, text);
	}
	if (never || access->region != REGION_STACK)
		return !never;
	/* The rest of the path is one on which the obligation held. */
	clipped = fay_scalar_srange(low, high);
	return !helper && fay_scalar_meet(&access->offset, &clipped);
}

/* The offset of a stack operand as a constant plus a multiple of one register's number, or of a
 * pointer's offset. */
static struct fay_place place_of(const struct fay_analysis *an, const struct fay_operand *mem)
{
	const struct fay_value *base =
		mem->base == FAY_NO_REG ? NULL : &an->current->loc[mem->base];
	const struct fay_value *index =
		mem->index == FAY_NO_REG ? NULL : &an->current->loc[mem->index];
	struct fay_place p = { .fixed = mem->disp };

	if (base && index && base->kind == KIND_SCALAR && index->kind == KIND_POINTER &&
	    mem->scale == 1) {
		const struct fay_value *number = base;

		base = index;
		index = number;
	}
	if (!base || base->kind != KIND_POINTER)
		return p;
	if (!index) {
		p.value = *base;
		p.step = 1;
	} else if (fay_scalar_is_const(&base->s) && base->s.smin > -FAY_FAR_APART &&
		   base->s.smin < FAY_FAR_APART && index->kind == KIND_SCALAR) {
		p.fixed += base->s.smin;
		p.value = *index;
		p.step = mem->scale;
	} else if (fay_scalar_is_const(&index->s) && index->kind == KIND_SCALAR &&
		   index->s.smin > -FAY_FAR_APART && index->s.smin < FAY_FAR_APART) {
		p.fixed += index->s.smin * mem->scale;
		p.value = *base;
		p.step = 1;
	}
	return p;
}

bool fay_mem_resolve(struct fay_analysis *an, const struct fay_value *address, unsigned size,
		     bool write, bool helper, struct fay_access *access)
{
	int64_t low = 0, high;

	if (address->kind != KIND_POINTER)
		return fay_path_refuse(an, FAY_RULE_MEM_REGION,
				       "the address is not made from a pointer to a region");
	access->region = (enum fay_region)address->tag;
	access->offset = address->s;
	access->size = size;
	access->place.step = 0;
	if (write && (access->region == REGION_EVENT || access->region == REGION_RODATA))
		return fay_path_refuse(an, FAY_RULE_MEM_PERMISSION, "writes to %s",
				       region_names[access->region]);
	if (access->region == REGION_STACK) {
		low = -fay_state_depth(an->current);
		high = -(int64_t)size;
	} else {
		high = (int64_t)region_size(an, access->region) - (int64_t)size;
	}
	return check_bounds(an, access, low, high, helper);
}

/* A locked access across a cache line stops every core of the machine, or raises #AC (split-lock
 * detection). Regions begin at multiples of 8; of the stack that is to be seen to. */
static bool aligned(struct fay_analysis *an, const struct fay_access *access)
{
	const struct fay_scalar *o = &access->offset;

	if (!(insn_of(an)->locked || fay_op_table[insn_of(an)->op].attributes & ATTR_LOCKS))
		return true;
	if ((o->value | o->unknown) & (access->size - 1))
		return fay_path_refuse(
			an, FAY_RULE_MEM_ALIGN,
			"a locked access that is not proved to be at a multiple of its size");
	if (an->checking && access->region == REGION_STACK)
		an->facts->aligned_stack = true;
	return true;
}

bool fay_mem_locate(struct fay_analysis *an, const struct fay_operand *mem, unsigned size,
		    bool write, struct fay_access *access)
{
	struct fay_value address;
	bool known;

	an->addressing = true;
	known = fay_mem_address(an, mem, &address);
	an->addressing = false;
	if (!known || !fay_mem_resolve(an, &address, size, write, false, access) ||
	    !aligned(an, access))
		return false;
	if (access->region == REGION_STACK && !fay_scalar_is_const(&access->offset))
		access->place = place_of(an, mem);
	return true;
}

bool fay_mem_slot_refuse(struct fay_analysis *an, enum fay_slot_status status)
{
	if (status == SLOT_UNINIT)
		return fay_path_refuse(an, FAY_RULE_MEM_UNINIT,
				       "reads stack bytes that were not written");
	if (status == SLOT_RETURN)
		return fay_path_refuse(an, FAY_RULE_STK_RETURN,
				       "accesses a return address on the stack");
	return fay_path_refuse(an, FAY_RULE_MEM_POINTER,
			       "accesses part of a pointer or saved register on the stack");
}

void fay_note_fields(struct fay_analysis *an, int64_t low, int64_t high)
{
	static const struct {
		int16_t start, end;
	} field[] = {
		{ 0, 8 },     { 8, 16 },    { 16, 24 },   { 24, 32 },   { 32, 40 },   { 40, 48 },
		{ 48, 56 },   { 56, 64 },   { 64, 72 },   { 72, 80 },   { 80, 88 },   { 88, 92 },
		{ 92, 96 },   { 96, 100 },  { 100, 104 }, { 104, 120 }, { 120, 128 }, { 128, 136 },
		{ 136, 144 }, { 144, 152 }, { 152, 160 }, { 160, 288 }, { 288, 296 },
	};

	if (!an->checking)
		return;
	for (unsigned i = 0; i < sizeof(field) / sizeof(field[0]); i++)
		if (low < field[i].end && high > field[i].start)
			an->facts->event_fields |= 1u << i;
}

#define RODATA_VALUES 64u

/* What constants a read of read-only data may give: joined one by one if they are few. */
static struct fay_scalar rodata_values(const struct fay_analysis *an,
				       const struct fay_access *access)
{
	const uint8_t *bytes =
		an->image->layout.bytes + (an->image->rodata.start - an->image->layout_base);
	uint64_t low = access->offset.umin, high = access->offset.umax, step = 1, count = 0;
	struct fay_scalar all = fay_scalar_top();

	/* Steps that the first offset is really on. */
	if (access->offset.unknown)
		step = access->offset.unknown & -access->offset.unknown;
	if ((low ^ access->offset.value) & (step - 1))
		step = 1;
	if (access->offset.modulus > step &&
	    low % access->offset.modulus == access->offset.remainder)
		step = access->offset.modulus;
	if (!access->proved || (high - low) / step >= RODATA_VALUES)
		return fay_scalar_range(0, mask_of(access->size * 8));
	for (uint64_t offset = low; offset <= high; offset += step) {
		uint64_t number = 0;
		struct fay_scalar one;

		memcpy(&number, bytes + offset, access->size);
		one = fay_scalar_const(number);
		all = count++ ? fay_scalar_join(&all, &one) : one;
	}
	return all;
}

bool fay_mem_load(struct fay_analysis *an, const struct fay_access *access, struct fay_value *v)
{
	switch (access->region) {
	case REGION_EVENT:
		fay_note_fields(an, access->proved ? access->offset.smin : 0,
				access->proved ? access->offset.smax + access->size
					       : (int64_t)sizeof(struct fay_event));
		*v = fay_value_fresh(an, fay_scalar_range(0, mask_of(access->size * 8)));
		return true;
	case REGION_RODATA:
		*v = fay_value_fresh(an, rodata_values(an, access));
		fay_note_table_read(an, v, access);
		return true;
	case REGION_STACK: {
		enum fay_slot_status status;

		/* the states are still being looked for */
		if (!an->checking && !fay_scalar_is_const(&access->offset)) {
			*v = fay_value_fresh(an, fay_scalar_range(0, mask_of(access->size * 8)));
			return true;
		}
		if (fay_scalar_is_const(&access->offset)) {
			status = fay_stack_load(an->current, access->offset.smin, access->size, v);
			if (v->id == 0)
				fay_value_forget_name(an, v);
			fay_note_read(an, v);
			return status == SLOT_OK ? true : fay_mem_slot_refuse(an, status);
		}
		fay_fills_settle(an->current);
		status = fay_stack_check(an->current, access->offset.smin,
					 access->offset.smax + access->size);
		if (status == SLOT_UNINIT &&
		    fay_fills_cover(an->current, &access->place, access->size, access->offset.smin))
			status = SLOT_OK;
		*v = fay_value_fresh(an, fay_scalar_range(0, mask_of(access->size * 8)));
		return status == SLOT_OK ? true : fay_mem_slot_refuse(an, status);
	}
	default:
		*v = fay_value_fresh(an, fay_scalar_range(0, mask_of(access->size * 8)));
		return true;
	}
}

bool fay_mem_store(struct fay_analysis *an, const struct fay_access *access,
		   const struct fay_value *v)
{
	enum fay_slot_status status;

	if (access->region != REGION_STACK) {
		if (v->kind != KIND_SCALAR)
			return fay_path_refuse(an, FAY_RULE_MEM_LEAK, "writes %s to %s",
					       v->kind == KIND_POINTER ? "a pointer"
					       : v->kind == KIND_HELPER
						       ? "a helper's address"
						       : "a value of the traced program",
					       region_names[access->region]);
		return true;
	}
	if (fay_scalar_is_const(&access->offset))
		status = fay_stack_store(an->current, access->offset.smin, access->size, v);
	else if (v->kind != KIND_SCALAR)
		return fay_path_refuse(an, FAY_RULE_MEM_POINTER,
				       "stores a pointer at a stack offset that is not constant");
	else {
		status = fay_stack_havoc(an->current, access->offset.smin,
					 access->offset.smax + access->size, false);
		fay_fills_store(an->current, &access->place, access->size);
	}
	return status == SLOT_OK ? true : fay_mem_slot_refuse(an, status);
}

/* ---- operands ---- */

/* Bits 15..8 of a register: a number whose second byte was written. */
static bool read_high(struct fay_analysis *an, unsigned reg, struct fay_value *v)
{
	const struct fay_value *from = &an->current->loc[reg];
	struct fay_scalar by = fay_scalar_const(8), s = fay_scalar_zext(&from->s, 16);

	if (from->kind == KIND_SCALAR && !(from->init & 2))
		return fay_path_refuse(an, FAY_RULE_MEM_UNINIT,
				       "the second byte of %s is read before it was written",
				       fay_gpr_name(reg, 64));
	if (from->kind != KIND_SCALAR)
		/* refuses: no other kind may be read in part */
		return fay_value_readable(an, from, 8, fay_gpr_name(reg, 16));
	*v = fay_value_fresh(an, fay_scalar_shr(&s, &by));
	return true;
}

/* The other bits of the register are kept; so are the others that must not be read. */
static void write_high(struct fay_analysis *an, unsigned reg, const struct fay_value *v)
{
	struct fay_value *to = &an->current->loc[reg];
	uint8_t kept = to->kind == KIND_SCALAR ? to->init : 0;
	struct fay_scalar s = fay_scalar_top();

	if (kept) {
		s.value = to->s.value & ~(uint64_t)0xff00;
		s.unknown = to->s.unknown & ~(uint64_t)0xff00;
	} else {
		s.unknown = ~(uint64_t)0xff00;
	}
	s.value |= (v->s.value & 0xff) << 8;
	s.unknown |= (v->s.unknown & 0xff) << 8;
	fay_scalar_normalise(&s);
	*to = fay_value_fresh(an, s);
	to->init = kept | 2;
}

bool fay_operand_read(struct fay_analysis *an, const struct fay_operand *operand, unsigned width,
		      struct fay_value *v)
{
	struct fay_access access;

	switch (operand->kind) {
	case OPERAND_REG: return fay_reg_read(an, operand->reg, width, v);
	case OPERAND_HIGH: return read_high(an, operand->reg, v);
	case OPERAND_IMM:
		*v = fay_value_constant(an, (uint64_t)operand->imm & mask_of(width));
		return true;
	case OPERAND_MEM:
		if (!fay_mem_locate(an, operand, width / 8, false, &access) ||
		    !fay_mem_load(an, &access, v))
			return false;
		if (v->kind == KIND_SAVED || v->kind == KIND_HELPER || v->kind == KIND_MIXED)
			return fay_value_readable(an, v, width, "the stack slot");
		return true;
	default:
		return fay_path_refuse(an, FAY_RULE_INS_UNSUPPORTED,
				       "an operand that the analysis does not know");
	}
}

bool fay_operand_write(struct fay_analysis *an, const struct fay_operand *operand, unsigned width,
		       struct fay_value v)
{
	struct fay_access access;

	if (operand->kind == OPERAND_REG) {
		fay_reg_write(an, operand->reg, width, v);
		return true;
	}
	if (operand->kind == OPERAND_HIGH) {
		write_high(an, operand->reg, &v);
		return true;
	}
	if (operand->kind == OPERAND_MEM)
		return fay_mem_locate(an, operand, width / 8, true, &access) &&
		       fay_mem_store(an, &access, &v);
	return fay_path_refuse(an, FAY_RULE_INS_UNSUPPORTED,
			       "an operand that the analysis does not know");
}

/* The value of a register that is only moved: saved registers and helpers' addresses too. */
bool fay_reg_read_whole(struct fay_analysis *an, unsigned reg, struct fay_value *v)
{
	*v = an->current->loc[reg];
	fay_note_read(an, v);
	if (v->kind == KIND_SAVED || v->kind == KIND_HELPER)
		return true;
	return fay_value_readable(an, v, 64, fay_gpr_name(reg, 64));
}

bool fay_operand_number(struct fay_analysis *an, const struct fay_operand *operand, unsigned width,
			struct fay_value *v)
{
	if (!fay_operand_read(an, operand, width, v))
		return false;
	if (v->kind == KIND_POINTER)
		return fay_path_refuse(an, FAY_RULE_MEM_POINTER, "a pointer is used as a number");
	return true;
}
