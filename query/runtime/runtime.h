/* SPDX-License-Identifier: MIT */
/*
 * Functions that generated probes call, compiled to LLVM bitcode when Fay is built: reads of memory
 * (reads.c), walks of stacks (stacks.c), summaries (sketches.c) and calls that are under way
 * (calls.c). They are linked into a query's module, guarded and verified with it, and see nothing
 * but what a probe may see.
 */
#ifndef FAY_QUERY_RUNTIME_RUNTIME_H
#define FAY_QUERY_RUNTIME_RUNTIME_H

#include <stdint.h>

/* Bitcode of the functions that probes call: from one address to the other. */
extern const char fay_query_sketches[], fay_query_sketches_end[], fay_query_reads[],
	fay_query_reads_end[], fay_query_stacks[], fay_query_stacks_end[], fay_query_calls[],
	fay_query_calls_end[];

/*
 * Arguments of calls that are under way, kept by an entry probe until the return probe asks for
 * them. A call is known by its function's address and by the stack pointer at its first
 * instruction, which the events of both its ends have: so nothing depends on calls ending in order,
 * and what a call that never ended (longjmp) has left is overwritten by the next one at its place.
 */
#define FAY_CALLS_SLOTS 4096u /* more than the dispatcher watches of one thread; a power of two */
#define FAY_CALLS_STEPS 8u    /* slots that are looked at for one call */

struct fay_kept_call {
	uint64_t stack_pointer, address; /* stack_pointer 0: the slot is free */
	uint64_t args[6];
};

/* In LOCAL, behind the state. */
struct fay_kept_calls {
	uint64_t unknown; /* calls that ended and were not found; the image's second state */
	struct fay_kept_call slots[FAY_CALLS_SLOTS];
};

/* Keeps a call. If no slot is free, another call's is taken. */
void fay_query_call_begin(struct fay_kept_calls *calls, uint64_t stack_pointer, uint64_t address,
			  uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f);
/* The call's slot, which is free from now on and keeps its arguments for the moment;
 * FAY_CALLS_SLOTS: it is not known, and counted. */
uint64_t fay_query_call_end(struct fay_kept_calls *calls, uint64_t stack_pointer, uint64_t address);

#endif
