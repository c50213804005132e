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

static uint32_t low(unsigned bytes)
{
	return bytes >= 32 ? UINT32_MAX : (1u << bytes) - 1;
}

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

	*bytes = low(insn->access);
	if (!locate(m, insn, &insn->src, false, &a))
		return false;
	if (a.region == REGION_EVENT)
		machine_fields(m, &a);
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
	bool all = has(bytes, low(insn->access));
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

/* ---- which bytes of a result count as written ---- */

/* What the operands have to offer. */
struct sources {
	uint32_t src, first, third;
};

/* Groups of `size` bytes: all of them or none. */
static uint32_t groups(uint32_t bytes, unsigned size)
{
	uint32_t r = 0;

	for (unsigned i = 0; i < 32; i += size)
		if (has(bytes >> i, low(size)))
			r |= low(size) << i;
	return r;
}

/* The low `size` bytes if all `read` bytes are there; the rest is `kept`. */
static uint32_t low_then(uint32_t from, unsigned read, unsigned size, uint32_t kept)
{
	return (kept & ~low(size)) | (has(from, low(read)) ? low(size) : 0);
}

static uint32_t permuted(const struct fay_insn *insn, const struct sources *s, unsigned length)
{
	uint32_t r = 0;

	for (unsigned i = 0; i < length; i++) {
		unsigned from = fay_vector_source(insn, i);
		uint32_t bytes = from & FAY_FROM_FIRST ? s->first : s->src;

		r |= (from == FAY_FROM_NOTHING ? 1 : bytes >> (from & 31) & 1) << i;
	}
	return r;
}

/* A shift by an immediate: a byte depends on one or two bytes of its element. */
static uint32_t shifted(const struct fay_insn *insn, uint32_t from, unsigned size)
{
	unsigned digit = fay_vector_row(insn)->ext; /* 2 logical right, 4 arithmetic, 6 left */
	int bytes = insn->imm / 8, part = insn->imm % 8 != 0, last = (int)size - 1;
	uint32_t r = 0;

	for (unsigned i = 0; i < 32; i++) {
		int base = (int)(i / size * size), at = (int)(i % size);
		int first = digit == 6 ? at - bytes - part : at + bytes;
		bool all = true;

		for (int k = first; k <= first + part; k++) {
			int source = digit == 4 && k > last ? last : k; /* the sign's byte */

			if (source >= 0 && source <= last)
				all = all && (from >> (base + source) & 1);
		}
		r |= (uint32_t)all << i;
	}
	return r;
}

static uint32_t flow(const struct fay_insn *insn, const struct sources *s, unsigned length)
{
	const struct fay_vector_row *row = fay_vector_row(insn);
	uint32_t all = low(length), both = s->src & s->first & s->third;
	uint32_t kept = row->shape == VSHAPE_FMA ? s->third : s->first; /* above a scalar result */
	unsigned at = insn->imm * row->memory % 16;
	bool count = row->shape == VSHAPE_VMI && row->flow != VFLOW_PERM;

	switch ((enum fay_vector_flow)row->flow) {
	case VFLOW_L1: return both;
	case VFLOW_L2: return count ? shifted(insn, s->src, 2) : groups(both, 2);
	case VFLOW_L4: return count ? shifted(insn, s->src, 4) : groups(both, 4);
	case VFLOW_L8: return count ? shifted(insn, s->src, 8) : groups(both, 8);
	case VFLOW_LANE: return groups(both, 16);
	case VFLOW_ALL: return has(both, all) ? all : 0;
	case VFLOW_S4: return low_then(both, 4, 4, kept);
	case VFLOW_S8: return low_then(both, 8, 8, kept);
	case VFLOW_U4: return low_then(s->src, insn->access, 4, s->first);
	case VFLOW_U8: return low_then(s->src, insn->access, 8, s->first);
	case VFLOW_U4TO8: return low_then(s->src, 4, 8, s->first);
	case VFLOW_U8TO4: return low_then(s->src, 8, 4, s->first);
	case VFLOW_LOW: return has(s->src, low(insn->access)) ? all : 0;
	case VFLOW_INTO:
		return (s->first & ~(low(row->memory) << at)) | (s->src & low(row->memory)) << at;
	case VFLOW_COUNT: return has(s->src, low(8)) ? groups(s->first, 8) : 0;
	case VFLOW_PERM: return permuted(insn, s, length);
	}
	return 0;
}

/* ---- instructions ---- */

/* src: a vector register, memory, or a general register that holds a number. */
static bool read_source(struct machine *m, const struct fay_insn *insn, uint32_t *bytes)
{
	unsigned bits = insn->access < insn->width / 8 ? insn->access * 8u : insn->width;
	struct value v;

	*bytes = low(bits / 8);
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
	struct sources s = { .first = UINT32_MAX, .third = UINT32_MAX };
	uint32_t bytes = UINT32_MAX, *to = &m->s.vector[insn->dst.reg];
	/* x op x that does not depend on x */
	bool idiom = row->flags & (VFLAG_ZERO | VFLAG_ONES) && insn->src.kind == OPERAND_VEC &&
		     insn->src2.kind == OPERAND_VEC && insn->src.reg == insn->src2.reg;

	if (!idiom) {
		if (!read_source(m, insn, &s.src))
			return false;
		if (insn->src2.kind == OPERAND_VEC && !(row->flow == VFLOW_ALL && narrow))
			s.first = m->s.vector[insn->src2.reg];
		if (row->shape == VSHAPE_RVMK)
			s.third = m->s.vector[insn->vex ? insn->imm & 15 : 0];
		else if (row->shape == VSHAPE_FMA)
			s.third = *to;
		bytes = flow(insn, &s, narrow ? insn->vector : length);
	}
	*to = (bytes & low(length)) | (insn->vex ? ~low(length) : *to & ~low(length));
	note_write(m, insn, 1u << insn->dst.reg);
	return true;
}

static bool to_memory(struct machine *m, const struct fay_insn *insn)
{
	struct sources s = { .src = m->s.vector[insn->src.reg], .first = UINT32_MAX };
	uint32_t bytes =
		fay_vector_row(insn)->flow == VFLOW_PERM ? permuted(insn, &s, insn->access) : s.src;

	return bytes & low(insn->access) ? store(m, insn, bytes) : unwritten(m);
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
	struct sources s = { .first = UINT32_MAX };
	unsigned size = row->memory == VMEMORY_VL ? insn->vector
			: row->shape == VSHAPE_GG ? insn->access
						  : row->memory;
	uint32_t bytes;
	struct value v;

	if (row->shape == VSHAPE_GG && !operand_number(m, &insn->dst, insn->width, &v))
		return false;
	if (!read_source(m, insn, &s.src))
		return false;
	bytes = row->flow == VFLOW_PERM ? permuted(insn, &s, row->memory) : s.src;
	if (!has(bytes, low(size)))
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
			m->s.vector[i] |= insn->vector == 32 ? UINT32_MAX : ~low(16);
		note_write(m, insn, 0xffff);
		return true;
	}
	if (row->shape == VSHAPE_CMP) { /* all flags are defined, and nothing is known of them */
		if (!read_source(m, insn, &bytes))
			return false;
		if (!has(bytes & m->s.vector[insn->dst.reg], low(insn->access)))
			return unwritten(m);
		flags_set(m, insn, NULL, NULL, 0);
		m->s.flags.undefined = 0;
		return true;
	}
	if (insn->dst.kind == OPERAND_MEM)
		return to_memory(m, insn);
	return insn->dst.kind == OPERAND_REG ? to_general(m, insn) : to_vector(m, insn);
}
