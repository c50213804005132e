/* SPDX-License-Identifier: MIT */
/*
 * Vector instructions. Of a vector register it is known which bytes the probe has written, nothing
 * of the numbers. Bytes that were not written may be computed with, but a byte of the result counts
 * as written only if all that it depends on were, and where a value leaves the vector registers
 * every byte must be.
 *
 * VEX forms zero the destination above the vector length, legacy forms keep it (SDM 1, 14.1).
 */
#include "verifier/isa/vector.h"
#include "machine.h"

static bool has(uint32_t bytes, uint32_t all)
{
	return (bytes & all) == all;
}

static bool unwritten(struct machine *m)
{
	return check_refuse(m, FAY_RULE_MEM_UNINIT,
			    "a vector is used of which not all bytes were written");
}

/* ---- memory ---- */

static bool locate(struct machine *m, const struct fay_insn *insn, const struct fay_operand *mem,
		   bool write, struct access *a)
{
	unsigned flags = fay_vector_row(insn)->flags;
	bool strict =
		flags & VFLAG_ALIGN || (!insn->vex && insn->access == 16 && !(flags & VFLAG_LOOSE));

	return machine_locate(m, mem, insn->access, write, strict ? insn->access : 1, a);
}

/* *bytes: which of them were written. */
static bool load(struct machine *m, const struct fay_insn *insn, uint32_t *bytes)
{
	struct access a;
	int64_t at;

	*bytes = fay_vector_low(insn->access);
	if (!locate(m, insn, &insn->src, false, &a))
		return false;
	if (a.region != REGION_STACK)
		return true;
	at = (int64_t)a.at.lo;
	if (a.at.lo != a.at.hi)
		return stack_written(m, at, (int64_t)a.at.hi + a.size);
	for (unsigned i = 0; i < a.size; i++)
		if (!stack_all_written(&m->s, at + i, at + i + 1))
			*bytes &= ~(1u << i);
	/* refuses what is no number */
	return stack_numbers(m, at, at + a.size);
}

static bool store(struct machine *m, const struct fay_insn *insn, uint32_t bytes)
{
	bool all = has(bytes, fay_vector_low(insn->access));
	struct access a;
	int64_t at;

	if (!locate(m, insn, &insn->dst, true, &a))
		return false;
	if (!all && (a.region != REGION_STACK || a.at.lo != a.at.hi))
		return unwritten(m);
	if (a.region != REGION_STACK)
		return true;
	at = (int64_t)a.at.lo;
	if (!stack_forget(m, at, (int64_t)a.at.hi + a.size))
		return false;
	if (!all)
		m->s.fills = 0;
	for (unsigned i = 0; a.at.lo == a.at.hi && i < a.size; i++)
		stack_mark(&m->s, at + i, at + i + 1, bytes >> i & 1);
	return true;
}

/* ---- instructions ---- */

/* src: a vector register, memory, or a general register that holds a number. */
static bool read_source(struct machine *m, const struct fay_insn *insn, uint32_t *bytes)
{
	unsigned bits = insn->access < insn->width / 8 ? insn->access * 8u : insn->width;
	struct value v;

	*bytes = fay_vector_low(bits / 8);
	if (insn->src.kind == OPERAND_MEM)
		return load(m, insn, bytes);
	if (insn->src.kind != OPERAND_VEC)
		return operand_number(m, &insn->src, bits, &v);
	*bytes = m->s.vector[insn->src.reg];
	return true;
}

static void note_write(struct machine *m, const struct fay_insn *insn, uint32_t registers)
{
	m->facts->clobbered_vectors |= registers;
	m->facts->clobbers_upper |= insn->vex;
}

static bool to_vector(struct machine *m, const struct fay_insn *insn)
{
	const struct fay_vector_row *row = fay_vector_row(insn);
	bool narrow = row->flags & VFLAG_NARROW;
	unsigned length = narrow || row->shape == VSHAPE_MRI ? 16 : insn->vector;
	struct fay_vector_bytes s = { .first = UINT32_MAX, .third = UINT32_MAX };
	uint32_t bytes = UINT32_MAX, *to = &m->s.vector[insn->dst.reg];
	/* x op x that does not depend on x */
	bool idiom = row->flags & (VFLAG_ZERO | VFLAG_ONES) && insn->src.kind == OPERAND_VEC &&
		     insn->src2.kind == OPERAND_VEC && insn->src.reg == insn->src2.reg;

	if (!idiom) {
		if (!read_source(m, insn, &s.src))
			return false;
		if (insn->src2.kind == OPERAND_VEC)
			s.first = m->s.vector[insn->src2.reg];
		if (row->shape == VSHAPE_RVMK)
			s.third = m->s.vector[insn->vex ? insn->imm & 15 : 0];
		else if (row->shape == VSHAPE_FMA)
			s.third = *to;
		bytes = fay_vector_flow(insn, &s, narrow ? insn->vector : length);
	}
	*to = (bytes & fay_vector_low(length)) |
	      (insn->vex ? ~fay_vector_low(length) : *to & ~fay_vector_low(length));
	note_write(m, insn, 1u << insn->dst.reg);
	return true;
}

static bool to_memory(struct machine *m, const struct fay_insn *insn)
{
	struct fay_vector_bytes s = { m->s.vector[insn->src.reg], UINT32_MAX, UINT32_MAX };
	uint32_t bytes = fay_vector_flow(insn, &s, insn->access);

	return bytes & fay_vector_low(insn->access) ? store(m, insn, bytes) : unwritten(m);
}

/* How many bits a number has that an instruction leaves in its general register. */
static unsigned general_bits(const struct fay_insn *insn)
{
	const struct fay_vector_row *row = fay_vector_row(insn);

	if (row->shape == VSHAPE_GX || row->shape == VSHAPE_GXI || row->shape == VSHAPE_GRMI)
		return row->memory * 8u;
	if (row->shape == VSHAPE_GG)
		return 32;
	if (row->flow == VFLOW_LANE) /* movmskps, movmskpd, pmovmskb: one bit an element */
		return insn->vector / (row->opcode == 0xd7 ? 1 : row->pp == VPP_PNP ? 4 : 8);
	return insn->width;
}

static bool to_general(struct machine *m, const struct fay_insn *insn)
{
	const struct fay_vector_row *row = fay_vector_row(insn);
	struct fay_vector_bytes s = { .first = UINT32_MAX, .third = UINT32_MAX };
	unsigned size = row->memory == VMEMORY_VL ? insn->vector
			: row->shape == VSHAPE_GG ? insn->access
						  : row->memory;
	uint32_t bytes;
	struct value v;

	if (row->shape == VSHAPE_GG && !operand_number(m, &insn->dst, insn->width, &v))
		return false;
	if (!read_source(m, insn, &s.src))
		return false;
	bytes = fay_vector_flow(insn, &s, size);
	if (!has(bytes, fay_vector_low(size)))
		return unwritten(m);
	v = value_fresh(m, 0, ((wide)1 << general_bits(insn)) - 1, 64);
	register_write(m, insn->dst.reg, insn->width, &v);
	return true;
}

bool step_vector(struct machine *m, const struct fay_insn *insn)
{
	const struct fay_vector_row *row = fay_vector_row(insn);
	uint32_t bytes;

	if (!m->policy->allow_vectors && row->shape != VSHAPE_GG)
		return check_refuse(m, FAY_RULE_POL_VECTOR,
				    "the policy does not allow vector instructions");
	m->facts->cpu_features |= fay_vector_features(insn);
	m->facts->uses_mxcsr |= (row->flags & VFLAG_FP) != 0;
	if (row->shape == VSHAPE_NO) { /* vzeroupper, vzeroall */
		for (unsigned i = 0; i < 16; i++)
			m->s.vector[i] |= insn->vector == 32 ? UINT32_MAX : ~fay_vector_low(16);
		note_write(m, insn, 0xffff);
		return true;
	}
	if (row->shape == VSHAPE_CMP) { /* all flags are defined, and nothing is known of them */
		if (!read_source(m, insn, &bytes))
			return false;
		if (!has(bytes & m->s.vector[insn->dst.reg], fay_vector_low(insn->access)))
			return unwritten(m);
		flags_set(m, insn, NULL, NULL, 0);
		m->s.flags.undefined = 0;
		return true;
	}
	if (insn->dst.kind == OPERAND_MEM)
		return to_memory(m, insn);
	return insn->dst.kind == OPERAND_REG ? to_general(m, insn) : to_vector(m, insn);
}
