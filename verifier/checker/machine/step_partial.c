/* SPDX-License-Identifier: MIT */
/* One instruction, with registers of which only some bytes were written. */
#include "step.h"

/*
 * Compilers write `sete %cl` into a register that holds nothing of theirs, compute with all of it
 * and use the low byte. Operations with a flow (ops.def) may read what was not written, and of
 * their results those bytes count as written that depend on written ones alone.
 */

/* The bytes of register `reg` that were written; of memory and numbers all. */
static unsigned written(const struct state *s, unsigned reg)
{
	const struct value *v = reg < 16 ? &s->reg[reg] : NULL;

	return v && v->kind == KIND_NUMBER ? v->init : 0xff;
}

/* Bytes of an operand that are zero and were written. */
static unsigned zero_bytes(struct machine *m, const struct fay_operand *o)
{
	uint64_t n = UINT64_MAX;
	unsigned zero = 0;

	if (o->kind == OPERAND_IMM)
		n = (uint64_t)o->imm;
	else if (o->kind == OPERAND_REG && m->s.reg[o->reg].kind == KIND_NUMBER)
		n = (uint64_t)ones(value_range(m, &m->s.reg[o->reg], 64, false).hi);
	for (unsigned k = 0; k < 8; k++)
		zero |= (unsigned)!(n >> 8 * k & 0xff) << k;
	return o->kind == OPERAND_REG ? zero & written(&m->s, o->reg) : zero;
}

/* The bytes of the result that depend on written bytes alone. *partial: not all that is read was
 * written. */
static unsigned result_bytes(struct machine *m, const struct fay_insn *insn, bool *partial)
{
	const struct fay_op_info *info = &fay_op_table[insn->op];
	const struct state *s = &m->s;
	unsigned all = 0xff, flow = fay_flow(insn);

	*partial = false;
	if (flow == FLOW_NONE || has_constant_result(insn))
		return all;
	if (insn->op == OP_LEA)
		all = written(s, insn->src.base) & written(s, insn->src.index);
	if (info->dst_read)
		all &= written(s, insn->dst.reg);
	if (info->src_read && insn->src.kind == OPERAND_REG)
		all &= written(s, insn->src.reg);
	if (insn->src2.kind == OPERAND_REG)
		all &= written(s, insn->src2.reg);
	if (insn->width == 32)
		all |= 0xf0; /* not looked at, and zero in the result */
	*partial = all != 0xff;
	if (!*partial)
		return all;
	if (flow == FLOW_AND)
		all |= zero_bytes(m, &insn->dst) | zero_bytes(m, &insn->src);
	if (flow == FLOW_UP && insn->width == 32)
		all = (all & 0xf & ~((all & 0xf) + 1)) | 0xf0;
	else if (flow == FLOW_UP)
		all &= ~(all + 1);
	return all;
}

static bool run_partial(struct machine *m, const struct fay_insn *insn)
{
	const struct fay_op_info *info = &fay_op_table[insn->op];
	bool partial, ok;
	unsigned bytes = result_bytes(m, insn, &partial);
	struct value *to = &m->s.reg[insn->dst.reg];

	m->lenient = partial;
	ok = step_any(m, insn);
	m->lenient = false;
	if (!ok || !partial)
		return ok;
	if (to->kind != KIND_NUMBER || !(bytes & 0xf))
		*to = value_nothing();
	else
		to->init = (uint8_t)bytes;
	if (!info->flags_written && !info->flags_undefined)
		return true;
	flags_set(m, insn, NULL, NULL, 0);
	if (bytes != 0xff)
		m->s.flags.undefined = FLAG_ALL;
	return true;
}

bool machine_step(struct machine *m, const struct fay_insn *insn)
{
	const struct value *rsp = &m->s.reg[FAY_RSP];

	if (m->s.vars + 16 > VARS)
		check_collect(m);
	m->facts->cpu_features |= fay_op_table[insn->op].features;
	if (!run_partial(m, insn) || m->refusal.rule != FAY_RULE_NONE)
		return false;
	if (rsp->kind != KIND_POINTER || rsp->tag != REGION_STACK || rsp->f.v[0])
		return check_refuse(m, FAY_RULE_STK_POINTER,
				    "the stack pointer is not a constant distance from its value "
				    "at entry");
	if (rsp->f.c < -STACK_MOST - 64 || rsp->f.c > STACK_MOST)
		return check_refuse(m, FAY_RULE_STK_LIMIT, "the stack pointer is far away");
	return rsp->f.c == -m->s.depth || machine_depth(m, -rsp->f.c);
}
