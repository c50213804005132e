/* SPDX-License-Identifier: MIT */
/* Counterexamples run by the CPU: see native.c. */
#ifndef FAY_VERIFIER_NATIVE_H
#define FAY_VERIFIER_NATIVE_H

#include "verifier/prover/transfer/analysis.h"

#define FAY_NATIVE_STEPS 20000u
#define FAY_NATIVE_POKES 256u
#define FAY_NATIVE_FILLED 4096u /* bytes of local and global state that are not zero at first */

/* Where regions lie, in the interpreter's replay as in the native one: apart, and ending (the stack
 * aside) where a page ends. */
#define FAY_NATIVE_PAGE ((uint64_t)4096)
#define FAY_NATIVE_BASE(region) ((uint64_t)((region) + 1) << 40)
#define FAY_NATIVE_CODE ((uint64_t)8 << 40) /* plus the image's virtual address */
#define FAY_NATIVE_STACK_BELOW ((uint64_t)FAY_STACK_HARD + 256)
/* plus enum fay_helper: what a slot holds; nothing is there */
#define FAY_NATIVE_HELPER ((uint64_t)9 << 40)
static inline uint64_t fay_native_start(unsigned region, uint64_t size)
{
	return FAY_NATIVE_BASE(region) +
	       (region == REGION_STACK
			? 0
			: (FAY_NATIVE_PAGE - size % FAY_NATIVE_PAGE) % FAY_NATIVE_PAGE);
}

/* One execution that the interpreter saw break a rule. */
struct fay_native_case {
	const uint8_t *layout;
	uint64_t layout_size, layout_base, text_start, rodata_start;
	uint64_t local_size, global_size;
	uint8_t event[sizeof(struct fay_event)], local[FAY_NATIVE_FILLED],
		global[FAY_NATIVE_FILLED];
	uint64_t gpr[16];
	uint32_t step_count;
	uint32_t *steps; /* offsets in .text of the instructions run, the broken one last */
	uint32_t poke_count;
	struct fay_native_poke {
		uint32_t step, offset;
		uint8_t region, size;
		uint64_t value;
		/* what others wrote to state, before the step's instruction reads it */
	} pokes[FAY_NATIVE_POKES];
	struct fay_insn insn; /* the broken one */
	bool divide, bounds;  /* it should fault by #DE; its address lies outside */
	enum fay_rule rule;
	unsigned region;
	int64_t low, high;
	uint32_t helpers[FAY_IMAGE_MAX_HELPERS]; /* of the slots */
	uint64_t slots[FAY_IMAGE_MAX_HELPERS];   /* virtual addresses */
	uint32_t slot_count;
};

#endif
