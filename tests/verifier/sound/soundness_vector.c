/* SPDX-License-Identifier: MIT */
/*
 * Vector instructions for soundness.c: run on the CPU, since the interpreter has none, with the
 * memory operand copied beside. The copy has the address's own alignment, so that an aligned form
 * of an unaligned address faults here as it would there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "soundness_vector.h"

static const struct {
	unsigned bit;
	uint8_t flag;
} flag_bits[] = { { 0, FLAG_CF }, { 2, FLAG_PF }, { 6, FLAG_ZF }, { 7, FLAG_SF }, { 11, FLAG_OF } };

static const struct fay_operand *memory_of(const struct fay_insn *insn)
{
	return insn->dst.kind == OPERAND_MEM   ? &insn->dst
	       : insn->src.kind == OPERAND_MEM ? &insn->src
					       : NULL;
}

/* The encoding with `base` as the base of a memory operand. */
static unsigned encode(const struct fay_insn *insn, unsigned base, uint8_t *code)
{
	const struct fay_vector_row *row = fay_vector_row(insn);
	struct vector_form form = { .row = row,
				    .vex = insn->vex,
				    .wide_register = row->w == VW_GW && insn->width == 64,
				    .length = insn->vector,
				    .memory = memory_of(insn) != NULL };
	struct vector_operands o = { .reg = insn->dst.reg,
				     .vvvv = insn->src2.reg,
				     .rm = insn->src.reg,
				     .base = base,
				     .imm = insn->imm };

	switch (row->shape) {
	case VSHAPE_MR:
	case VSHAPE_MRI:
	case VSHAPE_GX:
	case VSHAPE_GXI:
		o.reg = insn->src.reg;
		o.rm = insn->dst.reg;
		break;
	case VSHAPE_VMI: o.vvvv = insn->dst.reg; break;
	case VSHAPE_RVMK: o.imm = (uint8_t)(insn->imm << 4); break;
	default: break;
	}
	return vector_place(&form, &o, code);
}

static uint8_t *bytes_at(struct fay_machine *m, uint64_t address, unsigned size, bool write)
{
	for (unsigned i = 0; i < m->region_count; i++) {
		struct fay_exec_region *r = &m->regions[i];

		if (address - r->base < r->size && size <= r->size - (address - r->base) &&
		    (!write || r->writable))
			return r->bytes + (address - r->base);
	}
	m->fault_address = address;
	m->fault_size = size;
	return NULL;
}

static void take_flags(struct fay_machine *m, uint64_t eflags)
{
	m->flags = 0;
	for (unsigned i = 0; i < 5; i++)
		m->flags |= eflags >> flag_bits[i].bit & 1 ? flag_bits[i].flag : 0;
	m->flags_undefined = 0;
}

static const char *check_facts(const struct frame *before, const struct frame *after,
			       const struct fay_insn *insn, const struct fay_probe_facts *facts)
{
	for (unsigned i = 0; i < 16; i++) {
		if (memcmp(before->vectors[i], after->vectors[i], 32) &&
		    !(facts->clobbered_vectors >> i & 1))
			return "a vector register changes that the facts do not name";
		if (memcmp(before->vectors[i] + 16, after->vectors[i] + 16, 16) &&
		    !facts->clobbers_upper)
			return "the upper half of a vector register changes, which the facts deny";
	}
	if (before->mxcsr != after->mxcsr && !facts->uses_mxcsr)
		return "MXCSR changes, which the facts deny";
	return fay_vector_features(insn) & ~facts->cpu_features
		       ? "a CPU feature is used that the facts do not name"
		       : NULL;
}

enum soundness_vector_status soundness_vector_step(struct frame *vectors, struct fay_machine *m,
						   const struct fay_insn *insn,
						   const struct fay_probe_facts *facts,
						   const char **wrong)
{
	static uint8_t *code, bounce[192] __attribute__((aligned(64)));
	const struct fay_operand *mem = memory_of(insn);
	uint64_t address = mem ? (uint64_t)mem->disp : 0;
	unsigned base =
		insn->dst.kind == OPERAND_REG && insn->dst.reg == FAY_RAX ? FAY_RCX : FAY_RAX;
	uint8_t *place = NULL, *copy = NULL;
	struct frame f = *vectors;

	if (!code)
		code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED) {
		perror("soundness_vector");
		exit(1);
	}
	if (!vector_cpu_has(fay_vector_features(insn) | FAY_CPU_AVX))
		return SOUNDNESS_VECTOR_UNKNOWN;
	memcpy(f.gpr, m->gpr, sizeof(f.gpr));
	f.flags = 2;
	f.mxcsr = 0x1f80;
	if (mem) {
		if (mem->base != FAY_NO_REG)
			address += m->gpr[mem->base];
		if (mem->index != FAY_NO_REG)
			address += m->gpr[mem->index] * mem->scale;
		place = bytes_at(m, address, insn->access, mem == &insn->dst);
		if (!place) {
			*wrong = "a vector access outside every region";
			return SOUNDNESS_VECTOR_BROKEN;
		}
		copy = bounce + 64 + address % 64;
		memcpy(copy, place, insn->access);
		f.gpr[base] = (uint64_t)copy;
	}
	encode(insn, base, code);
	vectors->mxcsr = f.mxcsr;
	vector_run(&f, code);
	*wrong = check_facts(vectors, &f, insn, facts);
	memcpy(vectors, &f, sizeof(*vectors));
	if (mem == &insn->dst && mem)
		memcpy(place, copy, insn->access);
	if (insn->dst.kind == OPERAND_REG)
		m->gpr[insn->dst.reg] = f.gpr[insn->dst.reg];
	if (fay_vector_row(insn)->flags & VFLAG_FLAGS)
		take_flags(m, f.flags);
	m->rip = insn->address + insn->length;
	return *wrong ? SOUNDNESS_VECTOR_BROKEN : SOUNDNESS_VECTOR_DONE;
}
