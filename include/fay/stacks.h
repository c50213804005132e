/* SPDX-License-Identifier: MIT */
/*
 * What a probe walks stacks by: for every place in a process's code, where the frame of the
 * function's caller is. The session's side makes it of the modules' .eh_frame (process/unwind.c)
 * and writes it into the image's GLOBAL region; the walk is probe code (query/runtime/stacks.c).
 * Nobody trusts it: wrong contents give wrong addresses.
 *
 * Rows are added behind those that are there and never change; the list of modules is written
 * beside the current one before `current` says so. So a probe that runs meanwhile sees one list or
 * the other.
 */
#ifndef FAY_STACKS_H
#define FAY_STACKS_H

#include <stdint.h>

#define FAY_STACK_FRAMES_MAX 32u
#define FAY_STACK_FRAMES 16u    /* of a stack for which the query does not say how many */
#define FAY_STACK_MODULES 1024u /* executable mappings; a power of two */
#define FAY_STACK_ROWS 2000000u /* with which the tables fill FAY_IMAGE_MAX_GLOBAL nearly */

/*
 * A rule: where the caller's frame begins (the canonical frame address, DWARF 5 section 6.4.1), and
 * where the function has saved rbp.
 *
 *   bits 0-1    base: 0 nothing is known, the walk ends; 1 rsp; 2 rbp; 3 rbp, indirectly
 *   bits 2-17   the frame address is so many words above the base; 3: it lies in memory, so many
 *		 words below where rbp points to
 *   bits 18-31  rbp was saved so many words below the frame address; 0: it is the caller's; 3: 0,
 *		 it was saved where rbp points to
 *
 * The return address lies one word below the frame address. Where a signal's handler returns to,
 * the stack pointer is at what the kernel has saved of the interrupted code: FAY_STACK_SIGNAL.
 * Entries of a procedure linkage table have 16 bytes each and push a word behind the instruction
 * that bits 18-31 tell: FAY_STACK_LINKAGE. In the prologues of functions that align their stack the
 * frame address is in another register, which is known only of code that a signal interrupted:
 * FAY_STACK_REGISTER, with the register's place in the ucontext_t in bits 4-8, in words, and bits
 * 18-31 as above, or FAY_STACK_AT_RBP: saved where rbp points to.
 */
enum { FAY_STACK_END, FAY_STACK_RSP, FAY_STACK_RBP, FAY_STACK_INDIRECT };
#define FAY_STACK_SIGNAL (FAY_STACK_END | 1u << 2)
#define FAY_STACK_LINKAGE (FAY_STACK_END | 2u << 2)
#define FAY_STACK_REGISTER (FAY_STACK_END | 3u << 2)
#define FAY_STACK_KIND 15u /* the bits of these four */
#define FAY_STACK_AT_RBP FAY_STACK_SAVED_MAX
#define FAY_STACK_OFFSET_MAX 0xffffu /* words */
#define FAY_STACK_SAVED_MAX 0x3fffu

static inline uint32_t fay_stack_rule(uint32_t base, uint32_t offset, uint32_t saved)
{
	return base | offset << 2 | saved << 18;
}
/* From so many bytes behind the beginning of an entry on there is a word more. */
static inline uint32_t fay_stack_linkage(uint32_t pushed_from)
{
	return FAY_STACK_LINKAGE | pushed_from << 18;
}
/* The frame's address is in the register that lies at `place` of a ucontext_t. */
static inline uint32_t fay_stack_register(uint32_t place, uint32_t saved)
{
	return FAY_STACK_REGISTER | place << 4 | saved << 18;
}
/* At a function's first instruction. */
#define FAY_STACK_CALLED (FAY_STACK_RSP | 1u << 2)

/* From `place` up to the next row's: bytes from the start of the mapping. */
struct fay_stack_row {
	uint32_t place, rule;
};

struct fay_stack_module {
	uint64_t start, size;  /* of the mapping */
	uint32_t first, count; /* rows, ascending */
};

struct fay_stack_modules {
	uint64_t count;
	struct fay_stack_module items[FAY_STACK_MODULES]; /* by address */
};

struct fay_stack_tables {
	uint64_t current; /* counts the lists that were made: of the two, its lowest bit is valid */
	uint64_t row_count;
	struct fay_stack_modules lists[2];
	struct fay_stack_row rows[FAY_STACK_ROWS];
};

/* The walk's own memory, in LOCAL. */
#define FAY_STACK_WINDOW 32u
#define FAY_STACK_KNOWN 512u /* a power of two */
struct fay_stack_scratch {
	uint64_t frames[FAY_STACK_FRAMES_MAX];
	uint64_t window[FAY_STACK_WINDOW]; /* what was read of the stack last */
	struct fay_stack_known {
		uint64_t address;
		uint32_t rule, current; /* of the tables, whose lowest bits these are */
	} known[FAY_STACK_KNOWN];       /* by address */
};

#endif
