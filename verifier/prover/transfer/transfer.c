/* SPDX-License-Identifier: MIT */
/*
 * What each instruction does to the abstract state, and what must hold before it runs.
 *
 * The same code runs during the fixpoint, where failed obligations only end or coarsen the path,
 * and in the last pass (an->checking), where each becomes a pending obligation for the solver.
 * Which function an operation has is said in ops.def.
 *
 * A value read at 8, 16 or 32 bits is zero-extended first; it keeps its name only if that changes
 * nothing.
 */
#include "transfer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

fay_transfer_function *const fay_transfer_functions[OP_COUNT] = {
#define OP(ident, name, dst, src, reads, writes, undefined, attributes, transfer, semantics, step, \
	   flow, implicit, meaning)                                                                \
	[OP_##ident] = fay_transfer_##transfer,
#include "verifier/isa/ops.def"
#undef OP
};

/* ---- obligations ---- */

struct fay_obligation *fay_obligation_add(struct fay_analysis *an, enum fay_goal goal,
					  enum fay_rule rule, enum fay_outcome outcome)
{
	struct fay_obligation *o;

	if (an->sweeping) {
		an->open = true;
		return NULL;
	}
	if (an->pending_count >= FAY_MAX_PENDING) {
		an->refusal = fay_refuse(an->arena, FAY_RULE_LIM_RESOURCE, insn_of(an)->address,
					 "too many open obligations");
		return NULL;
	}
	if (an->pending_count == an->pending_capacity) {
		uint32_t capacity = an->pending_capacity ? an->pending_capacity * 2 : 16;
		void *grown = realloc(an->pending, capacity * sizeof(*an->pending));

		if (!grown) {
			an->refusal = fay_refuse(an->arena, FAY_RULE_LIM_RESOURCE,
						 insn_of(an)->address, "out of memory");
			return NULL;
		}
		an->pending = grown;
		an->pending_capacity = capacity;
	}
	o = &an->pending[an->pending_count++];
	*o = (struct fay_obligation){
		.node = an->node, .insn = an->insn, .goal = goal, .rule = rule, .outcome = outcome
	};
	return o;
}

/* The instruction breaks `rule` if it is ever reached. Always false: the path ends. */
bool __attribute__((format(printf, 3, 4)))
fay_path_refuse(struct fay_analysis *an, enum fay_rule rule, const char *format, ...)
{
	char text[512];
	va_list args;
	struct fay_obligation *o;

	if (!an->checking)
		return false;
	an->obligation_count++;
	if (an->sweeping) {
		an->open = true;
		return false;
	}
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	o = fay_obligation_add(an, GOAL_UNREACHABLE, rule, fay_rule_outcome(rule));
	if (o)
		o->what = fay_arena_printf(an->arena, "%s", text);
	return false;
}

/*
 * Speculation pass: nothing that was mispredicted runs past an lfence, so after it the state is the
 * architectural one, which the first pass proved.
 */
bool fay_transfer_fence(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_state *speculative = an->current, **proved = an->architectural;
	const struct fay_block *block = &an->cfg->blocks[an->graph->nodes[an->node].block];
	uint32_t fence = an->insn;
	bool checking = an->checking, ok;

	(void)insn;
	if (!proved)
		return true;
	if (!proved[an->node])
		return false;
	if (an->fence_steps += fence - block->first, an->fence_steps > FAY_MAX_FENCE_STEPS) {
		an->refusal = fay_refuse(an->arena, FAY_RULE_LIM_RESOURCE, insn_of(an)->address,
					 "too many fences in long blocks");
		return false;
	}
	an->current = an->branch;
	an->architectural = NULL;
	an->checking = false;
	fay_state_copy(an->current, proved[an->node]);
	ok = true;
	for (uint32_t i = block->first; ok && i < fence; i++)
		ok = fay_transfer_step(an, an->node, i);
	an->insn = fence;
	an->checking = checking;
	an->architectural = proved;
	an->current = speculative;
	if (ok)
		fay_state_copy(an->current, an->branch);
	return ok;
}

bool fay_transfer_none(struct fay_analysis *an, const struct fay_insn *insn)
{
	(void)an;
	(void)insn;
	return true;
}

bool fay_transfer_rdtsc(struct fay_analysis *an, const struct fay_insn *insn)
{
	(void)insn;
	if (!an->policy->allow_rdtsc)
		return fay_path_refuse(an, FAY_RULE_INS_FORBIDDEN,
				       "the policy does not allow rdtsc");
	fay_reg_write(an, FAY_RAX, 32, fay_value_fresh(an, fay_scalar_range(0, UINT32_MAX)));
	fay_reg_write(an, FAY_RDX, 32, fay_value_fresh(an, fay_scalar_range(0, UINT32_MAX)));
	return true;
}

bool fay_node_branches(const struct fay_analysis *an, uint32_t node, enum fay_cc *cc)
{
	const struct fay_node *n = &an->graph->nodes[node];
	const struct fay_block *block = &an->cfg->blocks[n->block];
	const struct fay_insn *last = &an->cfg->insns[block->first + block->count - 1];

	*cc = (enum fay_cc)(n->branch ? n->branch - 1 : last->cc);
	return n->branch || last->op == OP_JCC;
}

static bool run_insn(struct fay_analysis *an, const struct fay_insn *insn)
{
	const struct fay_op_info *info = &fay_op_table[insn->op];
	bool ok = fay_partial_needed(an->current, insn)
			  ? fay_transfer_partial(an, insn)
			  : fay_transfer_functions[insn->op](an, insn);

	if (info->flags_written || info->flags_undefined || insn->op == OP_VECTOR ||
	    insn->op == OP_CALL_SLOT || insn->op == OP_CALL_REG)
		an->current->assumed = 0;
	return ok;
}

bool fay_transfer_step(struct fay_analysis *an, uint32_t node, uint32_t insn)
{
	an->node = node;
	an->insn = insn;
	if (insn == an->cfg->blocks[an->graph->nodes[node].block].first) {
		an->read_count = an->form_count = an->error_count = an->narrow_count =
			an->wrap_count = 0;
		an->sign.width = 0;
	}
	/* Blocks may be long. Whoever ignores the refusal sees the same deadline passed before
	 * believing the end of this path. */
	if (an->deadline && !(++an->steps & 15) && fay_monotonic_ns() > an->deadline) {
		an->refusal = fay_refuse(an->arena, FAY_RULE_LIM_TIME, insn_of(an)->address,
					 "time ran out in the analysis");
		return false;
	}
	if (an->current->next_id > UINT32_MAX / 2)
		return fay_path_refuse(an, FAY_RULE_LIM_RESOURCE, "a path with too many values");
	if (an->checking)
		an->facts->cpu_features |= fay_op_table[insn_of(an)->op].features;
	return run_insn(an, insn_of(an)) && fay_stack_pointer_check(an);
}

bool fay_transfer_block(struct fay_analysis *an, uint32_t node)
{
	const struct fay_block *block = &an->cfg->blocks[an->graph->nodes[node].block];

	for (uint32_t i = 0; i < block->count; i++)
		if (!fay_transfer_step(an, node, block->first + i))
			return false;
	return true;
}

bool fay_transfer_address(struct fay_analysis *an, const struct fay_operand *mem,
			  struct fay_value *address)
{
	bool checking = an->checking, ok;

	an->checking = false;
	ok = fay_mem_address(an, mem, address);
	an->checking = checking;
	return ok && address->kind == KIND_POINTER;
}
