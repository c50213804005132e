/* SPDX-License-Identifier: MIT */
/* Which probes are copied into the trampolines, and whether the threads need to be marked as busy
 * while they run. */
#include "plan_private.h"

#include "dispatcher/user/trampoline.h"

#define UNGUARDED_KINDS (1u << FAY_PROBE_ENTRY | 1u << FAY_PROBE_RETURN)

void fay_dispatch_choose(const struct fay_verdict *verdict, struct fay_dispatch *dispatch)
{
	uint32_t end = verdict->layout.code_offset + verdict->layout.code_size;

	*dispatch = (struct fay_dispatch){ .unguarded = true };
	for (uint32_t i = 0; i < verdict->probe_count; i++) {
		const struct fay_probe_facts *facts = &verdict->probes[i];
		struct fay_inline judged = { 0 };

		if (facts->code_offset < end)
			judged = fay_inline_judge(verdict->layout.bytes + facts->code_offset,
						  end - facts->code_offset);
		dispatch->inlined[i] = judged.possible && !facts->aligned_stack;
		dispatch->size[i] = dispatch->inlined[i] ? (uint32_t)judged.size : 0;
		dispatch->unguarded &= dispatch->inlined[i] && judged.reentrant &&
				       UNGUARDED_KINDS >> facts->kind & 1;
	}
}
