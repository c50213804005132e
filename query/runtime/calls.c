/* SPDX-License-Identifier: MIT */
/* Kept calls as functions that generated probes call: compiled to LLVM bitcode when Fay is built,
 * linked into a query's module, guarded and verified with it. */
#include "runtime.h"

static uint64_t home_of(uint64_t stack_pointer, uint64_t address)
{
	uint64_t hash = (stack_pointer ^ address * 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;
	return hash >> 40;
}

/* The slot of this call, FAY_CALLS_SLOTS if there is none; *free: the first free one on the way,
 * likewise. */
static uint64_t find(const struct fay_kept_calls *calls, uint64_t stack_pointer, uint64_t address,
		     uint64_t *free)
{
	uint64_t home = home_of(stack_pointer, address), found = FAY_CALLS_SLOTS;
	*free = FAY_CALLS_SLOTS;
	for (uint64_t step = FAY_CALLS_STEPS; step-- > 0;) {
		uint64_t at = (home + step) & (FAY_CALLS_SLOTS - 1);
		const struct fay_kept_call *call = &calls->slots[at];
		*free = call->stack_pointer == 0 ? at : *free;
		found = call->stack_pointer == stack_pointer && call->address == address ? at
											 : found;
	}
	return found;
}

void fay_query_call_begin(struct fay_kept_calls *calls, uint64_t stack_pointer, uint64_t address,
			  uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	uint64_t free, at = find(calls, stack_pointer, address, &free);
	at = at != FAY_CALLS_SLOTS     ? at
	     : free != FAY_CALLS_SLOTS ? free
				       : home_of(stack_pointer, address);
	struct fay_kept_call *call = &calls->slots[at & (FAY_CALLS_SLOTS - 1)];
	call->stack_pointer = stack_pointer;
	call->address = address;
	call->args[0] = a;
	call->args[1] = b;
	call->args[2] = c;
	call->args[3] = d;
	call->args[4] = e;
	call->args[5] = f;
}

uint64_t fay_query_call_end(struct fay_kept_calls *calls, uint64_t stack_pointer, uint64_t address)
{
	uint64_t free, at = find(calls, stack_pointer, address, &free);
	if (at == FAY_CALLS_SLOTS) {
		calls->unknown++;
		return at;
	}
	calls->slots[at & (FAY_CALLS_SLOTS - 1)].stack_pointer = 0;
	return at;
}
