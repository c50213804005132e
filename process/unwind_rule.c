/* SPDX-License-Identifier: MIT */
/* A function's frame at one place, as its unwind table tells it, as a rule for the walk. */
#include "fay/stacks.h"
#include "unwind_private.h"

#define REGISTERS 16u

static int64_t below(int64_t offset)
{
	return (int64_t)(0 - (uint64_t)offset);
}

static bool in_words(int64_t bytes, int64_t max)
{
	return bytes >= 0 && bytes % 8 == 0 && bytes / 8 <= max;
}

static uint32_t rule_by_register(const struct fay_frame *f, int64_t saved)
{
	/* By DWARF's numbers: words of the kernel's struct ucontext (asm/sigcontext.h). */
	static const uint8_t places[REGISTERS] = { 18, 17, 19, 16, 14, 13, 15, 20,
						   5,  6,  7,  8,  9,  10, 11, 12 };
	if (f->number >= REGISTERS || f->offset || saved / 8 == FAY_STACK_AT_RBP)
		return FAY_STACK_END;
	return fay_stack_register(places[f->number], f->rbp == FAY_FRAME_AT_RBP
							     ? FAY_STACK_AT_RBP
							     : (uint32_t)(saved / 8));
}

uint32_t fay_unwind_rule(const struct fay_frame *f)
{
	if (f->base == FAY_STACK_LINKAGE)
		return fay_stack_linkage((uint32_t)f->offset);
	int64_t offset = f->base == FAY_STACK_INDIRECT ? below(f->offset) : f->offset,
		saved = f->rbp == FAY_FRAME_SAVED ? below(f->rbp_at) : 0;
	bool known = f->base != FAY_STACK_END && f->return_address == FAY_FRAME_SAVED &&
		     f->return_at == -8 && f->rbp != FAY_FRAME_UNKNOWN;
	if (!known || !in_words(saved, FAY_STACK_SAVED_MAX) ||
	    (f->rbp == FAY_FRAME_SAVED && !saved))
		return FAY_STACK_END;
	if (f->base == FAY_STACK_REGISTER)
		return rule_by_register(f, saved);
	if (!in_words(offset, FAY_STACK_OFFSET_MAX) ||
	    (f->rbp == FAY_FRAME_AT_RBP) != (f->base == FAY_STACK_INDIRECT))
		return FAY_STACK_END;
	return fay_stack_rule(f->base, (uint32_t)(offset / 8), (uint32_t)(saved / 8));
}
