/* SPDX-License-Identifier: MIT */
/*
 * Stack pointer, push, pop, calls and returns.
 */
#include "transfer.h"

static bool move_stack(struct fay_analysis *an, int64_t depth)
{
	struct fay_state *s = an->current;
	struct fay_value *rsp = &s->loc[FAY_RSP];

	if (depth < 0)
		return fay_path_refuse(an, FAY_RULE_STK_RETURN,
				       "the stack pointer is raised above the return address");
	if (depth & 7)
		return fay_path_refuse(an, FAY_RULE_STK_POINTER,
				       "the stack pointer is not a multiple of 8");
	if (depth > (int64_t)FAY_STACK_HARD)
		return fay_path_refuse(an, FAY_RULE_STK_LIMIT,
				       "%lld bytes of stack; the verifier follows at most %u",
				       (long long)depth, FAY_STACK_HARD);
	fay_state_set_depth(s, depth);
	*rsp = fay_value_fresh(an, fay_scalar_const((uint64_t)-depth));
	rsp->kind = KIND_POINTER;
	rsp->tag = REGION_STACK;
	if (an->checking && depth > an->deepest) {
		an->deepest = depth;
		if ((uint64_t)depth + 8 > an->policy->max_stack)
			return fay_path_refuse(an, FAY_RULE_POL_STACK,
					       "%lld bytes of stack; the policy allows %llu",
					       (long long)depth + 8,
					       (unsigned long long)an->policy->max_stack);
	}
	return true;
}

/* After any instruction that may have written rsp. */
bool fay_stack_pointer_check(struct fay_analysis *an)
{
	const struct fay_value *rsp = &an->current->loc[FAY_RSP];

	if (rsp->kind != KIND_POINTER || rsp->tag != REGION_STACK || !fay_scalar_is_const(&rsp->s))
		return fay_path_refuse(
			an, FAY_RULE_STK_POINTER,
			"the stack pointer is not a constant distance from its value at entry");
	if (rsp->s.smin == -fay_state_depth(an->current))
		return true;
	if (rsp->s.smin < -(int64_t)FAY_STACK_HARD - 64)
		return fay_path_refuse(an, FAY_RULE_STK_LIMIT,
				       "the stack pointer is lowered by %lld bytes",
				       -(long long)rsp->s.smin);
	return move_stack(an, -rsp->s.smin);
}

bool fay_transfer_push(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_value v;
	int64_t depth = fay_state_depth(an->current) + 8;

	if (insn->src.kind == OPERAND_REG) {
		/* Anything may be kept on the own stack: also a value that must not be read. */
		v = an->current->loc[insn->src.reg];
		fay_note_read(an, &v);
	} else if (!fay_operand_read(an, &insn->src, 64, &v)) {
		return false;
	}
	if (!move_stack(an, depth))
		return false;
	fay_stack_store(an->current, -depth, 8, &v);
	return true;
}

/* The 8 bytes at the stack pointer into a register. */
static bool pop(struct fay_analysis *an, unsigned reg)
{
	int64_t depth = fay_state_depth(an->current);
	struct fay_value v;
	enum fay_slot_status status;

	if (depth < 8)
		return fay_path_refuse(an, FAY_RULE_STK_RETURN, "pops the return address");
	status = fay_stack_load(an->current, -depth, 8, &v);
	if (status == SLOT_UNINIT) {
		uint8_t tag = v.kind == KIND_UNINIT ? v.tag : TAG_NONE;

		v = fay_value_uninit();
		v.tag = tag;
	} else if (status != SLOT_OK) {
		return fay_mem_slot_refuse(an, status);
	}
	if (v.id == 0)
		fay_value_forget_name(an, &v);
	if (!move_stack(an, depth - 8))
		return false;
	if (reg == FAY_RSP)
		return fay_path_refuse(an, FAY_RULE_STK_POINTER, "pop writes the stack pointer");
	fay_reg_write(an, reg, 64, v);
	return true;
}

bool fay_transfer_pop(struct fay_analysis *an, const struct fay_insn *insn)
{
	if (insn->dst.kind != OPERAND_REG)
		return fay_path_refuse(an, FAY_RULE_INS_UNSUPPORTED, "pop to memory");
	return pop(an, insn->dst.reg);
}

/* Only upward: the frame that rbp points to is the current one, or the function's own before it was
 * made larger. */
bool fay_transfer_leave(struct fay_analysis *an, const struct fay_insn *insn)
{
	const struct fay_value *rbp = &an->current->loc[FAY_RBP];

	(void)insn;
	if (rbp->kind != KIND_POINTER || rbp->tag != REGION_STACK || !fay_scalar_is_const(&rbp->s))
		return fay_path_refuse(an, FAY_RULE_STK_POINTER,
				       "leave, and rbp is not a constant distance from the stack "
				       "pointer at entry");
	if (rbp->s.smin < -fay_state_depth(an->current))
		return fay_path_refuse(an, FAY_RULE_STK_POINTER,
				       "leave would lower the stack pointer");
	if (rbp->s.smin > 0)
		return fay_path_refuse(an, FAY_RULE_STK_RETURN,
				       "leave raises the stack pointer above the return address");
	fay_note_read(an, rbp);
	return move_stack(an, -rbp->s.smin) && pop(an, FAY_RBP);
}

bool fay_transfer_call(struct fay_analysis *an, const struct fay_insn *insn)
{
	int64_t depth = fay_state_depth(an->current) + 8;
	const struct fay_node *node = &an->graph->nodes[an->node];
	struct fay_value token =
		fay_value_scalar(fay_scalar_const(an->graph->nodes[node->succ[0]].context));

	token.kind = KIND_RETURN;
	if (!move_stack(an, depth))
		return false;
	fay_stack_store(an->current, -depth, 8, &token);
	return true;
}

static bool unchanged(const struct fay_value *v, unsigned reg)
{
	if (v->kind == KIND_SAVED || v->kind == KIND_UNINIT)
		return v->tag == reg;
	if (v->kind != KIND_POINTER || !fay_scalar_is_const(&v->s) || v->s.umin != 0)
		return false;
	return (reg == FAY_RDI && v->tag == REGION_EVENT) ||
	       (reg == FAY_RSI && v->tag == REGION_LOCAL) ||
	       (reg == FAY_RDX && v->tag == REGION_GLOBAL);
}

bool fay_transfer_ret(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_state *s = an->current;
	uint32_t context = an->graph->nodes[an->node].context;
	int64_t depth = fay_state_depth(s);

	(void)insn;
	if (an->graph->contexts[context].parent != FAY_NONE) {
		const struct fay_value *v = depth >= 8 ? &s->loc[s->count - 1] : NULL;

		if (!v || v->kind != KIND_RETURN || v->s.umin != context)
			return fay_path_refuse(
				an, FAY_RULE_CFI_RETURN,
				"the stack pointer is not at this call's return address");
		return move_stack(an, depth - 8);
	}
	if (depth)
		return fay_path_refuse(an, FAY_RULE_CFI_RETURN,
				       "the stack pointer is %lld bytes below the return address",
				       (long long)depth);
	for (unsigned r = 0; r < 16; r++) {
		if (r == FAY_RSP || unchanged(&s->loc[r], r))
			continue;
		if (r == FAY_RBX || r == FAY_RBP || r >= FAY_R12)
			return fay_path_refuse(an, FAY_RULE_ENV_SAVED,
					       "%s is not as it was at entry", fay_gpr_name(r, 64));
		if (an->checking)
			an->facts->clobbered_gprs |= 1u << r;
	}
	return true;
}

bool fay_transfer_jcc(struct fay_analysis *an, const struct fay_insn *insn)
{
	return fay_flags_ready(an, fay_cc_flags((enum fay_cc)insn->cc));
}
