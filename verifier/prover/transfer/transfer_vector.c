/* SPDX-License-Identifier: MIT */
/*
 * Vector instructions. What is known of a vector register is which of its bytes the probe has
 * written: one bit a byte (struct fay_state's `vectors`). The numbers in it are not followed: what
 * comes out of one is any number of its width.
 *
 * Rules. A pointer, a saved register or a return address never enters a vector register. What was
 * not written may be computed with (compilers leave garbage in elements that they do not use), but
 * each result byte counts as written only if all the bytes that it depends on were. Where a value
 * leaves the vector registers (memory other than the own stack, general registers, flags) every
 * byte must have been written. Memory operands meet the same obligations as all others, at their
 * true width; aligned forms must be proved aligned (MEM-ALIGN).
 *
 * Writes: VEX forms zero the destination above the vector length, legacy forms keep it (Intel SDM
 * volume 1, 14.1).
 */
#include "transfer.h"
#include "verifier/isa/isa.h"

#define HIGH_LANE 0xffff0000u

static bool refuse_unwritten(struct fay_analysis *an, unsigned reg)
{
	return fay_path_refuse(an, FAY_RULE_MEM_UNINIT, "xmm%u is read before it was written", reg);
}

static uint32_t register_bytes(const struct fay_analysis *an, const struct fay_operand *o)
{
	return o->kind == OPERAND_VEC ? an->current->vectors[o->reg] : 0;
}

/* ---- memory ---- */

/* What alignment the start of each region has: see docs/probe-image.md. The stack's offsets are
 * from rsp at entry, which is 8 modulo 16. */
static bool aligned_at(const struct fay_analysis *an, const struct fay_access *access,
		       unsigned alignment)
{
	static const uint8_t starts[] = { [REGION_EVENT] = 8,
					  [REGION_LOCAL] = 64,
					  [REGION_GLOBAL] = 64,
					  [REGION_RODATA] = 64,
					  [REGION_STACK] = 16 };
	struct fay_scalar offset = access->offset, bias = fay_scalar_const(0);
	uint64_t odd;

	if (access->region == REGION_STACK)
		bias = fay_scalar_const(8);
	if (access->region == REGION_RODATA)
		bias = fay_scalar_const(an->image->rodata.start & 63);
	offset = fay_scalar_add(&offset, &bias);
	odd = (offset.value | offset.unknown) & (alignment - 1);
	return alignment <= starts[access->region] &&
	       (!odd || (offset.modulus % alignment == 0 && offset.remainder % alignment == 0));
}

static bool check_alignment(struct fay_analysis *an, const struct fay_insn *insn,
			    const struct fay_access *access)
{
	uint8_t flags = fay_vector_row(insn)->flags;
	bool strict =
		flags & VFLAG_ALIGN || (!insn->vex && insn->access == 16 && !(flags & VFLAG_LOOSE));

	if (!strict)
		return true;
	if (aligned_at(an, access, insn->access)) {
		if (an->checking && access->region == REGION_STACK)
			an->facts->aligned_stack = true;
		return true;
	}
	return fay_path_refuse(an, FAY_RULE_MEM_ALIGN,
			       "a vector access that needs %u-byte alignment, which is not proved",
			       insn->access);
}

static bool locate(struct fay_analysis *an, const struct fay_insn *insn,
		   const struct fay_operand *mem, bool write, struct fay_access *access)
{
	return fay_mem_locate(an, mem, insn->access, write, access) &&
	       check_alignment(an, insn, access);
}

/* Loads insn->access bytes; *bytes says which of them are initialised. */
static bool load(struct fay_analysis *an, const struct fay_insn *insn,
		 const struct fay_operand *mem, uint32_t *bytes)
{
	struct fay_access access;
	int64_t low;

	*bytes = fay_vector_low(insn->access);
	if (!locate(an, insn, mem, false, &access))
		return false;
	if (access.region == REGION_EVENT)
		fay_note_fields(an, access.proved ? access.offset.smin : 0,
				access.proved ? access.offset.smax + insn->access
					      : (int64_t)sizeof(struct fay_event));
	if (access.region != REGION_STACK)
		return true;
	low = access.offset.smin;
	if (!fay_scalar_is_const(&access.offset)) {
		enum fay_slot_status status =
			fay_stack_check(an->current, low, access.offset.smax + insn->access);

		return status == SLOT_OK || fay_mem_slot_refuse(an, status);
	}
	for (unsigned i = 0; i < insn->access; i++) {
		enum fay_slot_status status = fay_stack_check(an->current, low + i, low + i + 1);

		if (status == SLOT_UNINIT)
			*bytes &= ~(1u << i);
		else if (status != SLOT_OK)
			return fay_mem_slot_refuse(an, status);
	}
	return true;
}

/* Stores insn->access bytes of which `bytes` are initialised. */
static bool store(struct fay_analysis *an, const struct fay_insn *insn,
		  const struct fay_operand *mem, uint32_t bytes)
{
	bool whole = (bytes & fay_vector_low(insn->access)) == fay_vector_low(insn->access);
	struct fay_access access;
	enum fay_slot_status status = SLOT_OK;

	if (!locate(an, insn, mem, true, &access))
		return false;
	if (!whole && (access.region != REGION_STACK || !fay_scalar_is_const(&access.offset)))
		return fay_path_refuse(an, FAY_RULE_MEM_UNINIT,
				       "stores a vector of which not all bytes were written");
	if (access.region != REGION_STACK)
		return true;
	if (!fay_scalar_is_const(&access.offset)) {
		status = fay_stack_havoc(an->current, access.offset.smin,
					 access.offset.smax + insn->access, false);
		return status == SLOT_OK || fay_mem_slot_refuse(an, status);
	}
	for (unsigned done = 0, step; done < insn->access && status == SLOT_OK; done += step) {
		int64_t at = access.offset.smin + done;
		struct fay_value v = fay_value_fresh(an, fay_scalar_top());

		step = !(at & 3) && insn->access - done >= 8   ? 8
		       : !(at & 3) && insn->access - done >= 4 ? 4
							       : 1;
		v.init = (uint8_t)(bytes >> done & fay_vector_low(step));
		if (v.init == fay_vector_low(step)) {
			v.init = 0xff;
			v.s = fay_scalar_range(0, mask_of(8 * step));
		} else if (!v.init) {
			v = fay_value_uninit();
		}
		status = fay_stack_store(an->current, at, step, &v);
	}
	return status == SLOT_OK || fay_mem_slot_refuse(an, status);
}

/* ---- registers ---- */

static void note_write(struct fay_analysis *an, const struct fay_insn *insn, uint32_t registers)
{
	if (!an->checking)
		return;
	an->facts->clobbered_vectors |= registers;
	an->facts->clobbers_upper |= insn->vex;
}

/* `bytes` of the first `length` ones are initialised now. */
static void write_vector(struct fay_analysis *an, const struct fay_insn *insn, unsigned reg,
			 unsigned length, uint32_t bytes)
{
	uint32_t mask = fay_vector_low(length), kept = an->current->vectors[reg] & ~mask;

	an->current->vectors[reg] = (bytes & mask) | (insn->vex ? ~mask : kept);
	note_write(an, insn, 1u << reg);
}

/* ---- instructions ---- */

/* src as bytes: a vector register, memory, or a general register that holds a number. */
static bool read_source(struct fay_analysis *an, const struct fay_insn *insn, uint32_t *bytes)
{
	struct fay_value v;

	switch (insn->src.kind) {
	case OPERAND_VEC: *bytes = register_bytes(an, &insn->src); return true;
	case OPERAND_MEM: return load(an, insn, &insn->src, bytes);
	default: { /* pinsrb and pinsrw read the low bytes of a 32-bit register */
		unsigned width = insn->access < insn->width / 8 ? insn->access * 8u : insn->width;

		*bytes = fay_vector_low(width / 8);
		return fay_operand_number(an, &insn->src, width, &v);
	}
	}
}

/* x op x that does not depend on x. */
static bool idiom(const struct fay_insn *insn)
{
	return fay_vector_row(insn)->flags & (VFLAG_ZERO | VFLAG_ONES) &&
	       insn->src.kind == OPERAND_VEC && insn->src2.kind == OPERAND_VEC &&
	       insn->src.reg == insn->src2.reg;
}

static bool to_vector(struct fay_analysis *an, const struct fay_insn *insn)
{
	const struct fay_vector_row *row = fay_vector_row(insn);
	unsigned length =
		row->flags & VFLAG_NARROW || (row->shape == VSHAPE_MRI) ? 16 : insn->vector;
	struct fay_vector_bytes s = { .first = UINT32_MAX, .third = UINT32_MAX };
	uint32_t bytes = UINT32_MAX;

	if (!idiom(insn)) {
		if (!read_source(an, insn, &s.src))
			return false;
		if (insn->src2.kind == OPERAND_VEC)
			s.first = register_bytes(an, &insn->src2);
		if (row->shape == VSHAPE_RVMK)
			s.third = an->current->vectors[insn->vex ? insn->imm : 0];
		else if (row->shape == VSHAPE_FMA)
			s.third = register_bytes(an, &insn->dst);
		bytes = fay_vector_flow(insn, &s,
					row->flags & VFLAG_NARROW ? insn->vector : length);
	}
	write_vector(an, insn, insn->dst.reg, length, bytes);
	return true;
}

/* A vector register, or part of it, to memory. */
static bool to_memory(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_vector_bytes s = { register_bytes(an, &insn->src), UINT32_MAX, UINT32_MAX };
	uint32_t bytes = fay_vector_flow(insn, &s, insn->access);

	if (!(bytes & fay_vector_low(insn->access)))
		return refuse_unwritten(an, insn->src.reg);
	return store(an, insn, &insn->dst, bytes);
}

/* The numbers that an instruction can leave in its general register. */
static struct fay_scalar general_range(const struct fay_insn *insn)
{
	const struct fay_vector_row *row = fay_vector_row(insn);

	if (row->shape == VSHAPE_GX || row->shape == VSHAPE_GXI || row->shape == VSHAPE_GRMI)
		return fay_scalar_range(0, mask_of(row->memory * 8u));
	if (row->shape == VSHAPE_GG)
		return fay_scalar_range(0, UINT32_MAX);
	if (row->flow == VFLOW_LANE) /* movmskps, movmskpd, pmovmskb: one bit an element */
		return fay_scalar_range(0, mask_of(insn->vector / (row->opcode == 0xd7  ? 1
								   : row->pp == VPP_PNP ? 4
											: 8)));
	return fay_scalar_range(0, mask_of(insn->width));
}

static bool to_general(struct fay_analysis *an, const struct fay_insn *insn)
{
	const struct fay_vector_row *row = fay_vector_row(insn);
	struct fay_vector_bytes s = { .first = UINT32_MAX, .third = UINT32_MAX };
	uint32_t need = fay_vector_low(row->memory == VMEMORY_VL ? insn->vector
				       : row->shape == VSHAPE_GG ? insn->access
								 : row->memory),
		 bytes;
	struct fay_value v;

	if (row->shape == VSHAPE_GG && !fay_operand_number(an, &insn->dst, insn->width, &v))
		return false;
	if (!read_source(an, insn, &s.src))
		return false;
	bytes = fay_vector_flow(insn, &s, insn->access);
	if ((bytes & need) != need)
		return fay_path_refuse(
			an, FAY_RULE_MEM_UNINIT,
			"a vector of which not all bytes were written becomes a number");
	fay_reg_write(an, insn->dst.reg, insn->width, fay_value_fresh(an, general_range(insn)));
	return true;
}

/* comiss and the like, ptest: all flags are defined, and nothing is known of them. */
static bool compare(struct fay_analysis *an, const struct fay_insn *insn)
{
	uint32_t need = fay_vector_low(insn->access), src;

	if (!read_source(an, insn, &src))
		return false;
	if ((src & register_bytes(an, &insn->dst) & need) != need)
		return fay_path_refuse(
			an, FAY_RULE_MEM_UNINIT,
			"a vector of which not all bytes were written decides a flag");
	fay_flags_set_none(an);
	an->current->flags_undefined = 0;
	return true;
}

/* vzeroupper, vzeroall. */
static bool zero(struct fay_analysis *an, const struct fay_insn *insn)
{
	for (unsigned i = 0; i < 16; i++)
		an->current->vectors[i] =
			insn->vector == 32 ? UINT32_MAX : an->current->vectors[i] | HIGH_LANE;
	note_write(an, insn, 0xffff);
	return true;
}

bool fay_transfer_vector(struct fay_analysis *an, const struct fay_insn *insn)
{
	const struct fay_vector_row *row = fay_vector_row(insn);
	char name[24];

	if (!an->policy->allow_vectors && row->shape != VSHAPE_GG)
		return fay_path_refuse(an, FAY_RULE_POL_VECTOR,
				       "the policy does not allow vector instructions (%s)",
				       fay_vector_name(insn, name));
	if (an->checking) {
		an->facts->cpu_features |= fay_vector_features(insn);
		an->facts->uses_mxcsr |= (row->flags & VFLAG_FP) != 0;
	}
	if (row->shape == VSHAPE_NO)
		return zero(an, insn);
	if (row->shape == VSHAPE_CMP)
		return compare(an, insn);
	if (insn->dst.kind == OPERAND_MEM)
		return to_memory(an, insn);
	return insn->dst.kind == OPERAND_REG ? to_general(an, insn) : to_vector(an, insn);
}
