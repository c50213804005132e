/* SPDX-License-Identifier: MIT */
/* What the files on counterexamples share: counterexample.c (finding), counterexample_tell.c. */
#ifndef FAY_VERIFIER_COUNTEREXAMPLE_PARTS_H
#define FAY_VERIFIER_COUNTEREXAMPLE_PARTS_H

#include "exec.h"
#include "explain.h"
#include "native.h"

#define MAX_READS 24u

/* An execution by the interpreter. */
struct replay {
	struct fay_analysis *an;
	const struct fay_obligation *o;
	const struct fay_model *model;
	struct fay_machine m;
	uint8_t event[sizeof(struct fay_event)];
	uint8_t *memory[REGION_COUNT]; /* LOCAL, GLOBAL, STACK */
	uint64_t size[REGION_COUNT];
	uint8_t *touched[REGION_COUNT]; /* LOCAL, GLOBAL: bytes written or shown already */
	struct {
		uint8_t region;
		uint32_t offset, size;
		uint64_t value;
	} reads[MAX_READS];
	unsigned read_count;
	struct fay_native_case *native; /* the same execution for the CPU; NULL no memory */
	uint32_t steps[FAY_NATIVE_STEPS];
	uint32_t step_count; /* instructions run */
	size_t path_length;
	uint64_t path[FAY_MAX_PATH_STEPS];
	uint64_t random;
};

static inline const struct fay_operand *memory_operand(const struct fay_insn *insn)
{
	if (insn->dst.kind == OPERAND_MEM)
		return &insn->dst;
	return insn->src.kind == OPERAND_MEM && insn->op != OP_LEA ? &insn->src : NULL;
}

/* Where region `region` begins in the replay's address space. STACK: rsp at entry. */
static inline uint64_t region_base(const struct replay *r, unsigned region)
{
	return region == REGION_RODATA ? r->an->image->rodata.start
				       : fay_native_start(region, r->size[region]);
}

/* counterexample_tell.c: the input that broke the obligation. */
const char *fay_replay_describe(const struct replay *r);
/* The execution just seen, for fay_verdict_replay(); NULL if it is too long. */
struct fay_native_case *fay_replay_native_case(struct replay *r);

#endif
