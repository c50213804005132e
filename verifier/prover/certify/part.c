/* SPDX-License-Identifier: MIT */
/* Where places part within their block, and what becomes a number of its own there. */
#include "certify_parts.h"

#define NO_REGISTER (1u << 16)

/* Whether the place's ways part before its next instruction, if that asks the flags. */
static bool asks_cases(const struct certify *k, uint32_t at, const struct fay_insn *insn)
{
	const struct place *p = &k->places[at];

	return certify_treat(k, p) & TREAT_CASES && (insn->op == OP_CMOV || insn->op == OP_SETCC ||
						     insn->op == OP_ADC || insn->op == OP_SBB);
}

/* Whether what the last instruction made of the flags may say more than ranges do. */
static bool asks_certain(const struct certify *k, uint32_t at, const struct fay_insn *insn)
{
	const struct place *p = &k->places[at];

	return k->c->sums && certify_treat(k, p) & TREAT_FACTS && k->w->m.s.facts &&
	       insn->op != OP_JCC && fay_op_table[insn[-1].op].flags_written & FLAG_ZF;
}

/* Whether an instruction soon asks if two numbers are equal: their order is two cases. */
static bool asks_order(const struct certify *k, uint32_t at, uint32_t done)
{
	const struct place *p = &k->places[at];
	const struct fay_block *block = &k->c->cfg->blocks[k->c->graph->nodes[p->node].block];
	const struct fay_insn *insn = &k->c->cfg->insns[block->first + p->skip + done];
	const struct fay_insn *end = &k->c->cfg->insns[block->first + block->count];
	bool first = true;

	if (!(certify_treat(k, p) & TREAT_ORDER) || insn[-1].op != OP_CMP)
		return false;
	for (; insn < end && !fay_op_table[insn->op].flags_written; insn++, first = false)
		if (insn->op == OP_JCC || (!first && (insn->op == OP_CMOV || insn->op == OP_SETCC)))
			return insn->cc == CC_E || insn->cc == CC_NE;
	return false;
}

/* Registers of the operand with more variables than one. */
static unsigned sums_of(const struct certify *k, const struct fay_operand *o)
{
	const uint8_t regs[] = { o->kind == OPERAND_REG ? o->reg : FAY_NO_REG,
				 o->kind == OPERAND_MEM ? o->base : FAY_NO_REG,
				 o->kind == OPERAND_MEM ? o->index : FAY_NO_REG };
	unsigned mask = 0;

	for (unsigned i = 0; i < 3; i++)
		if (regs[i] < 16 && k->w->m.s.reg[regs[i]].kind == KIND_NUMBER &&
		    k->w->m.s.reg[regs[i]].f.v[1])
			mask |= 1u << regs[i];
	return mask;
}

/* Whether the sum of two variables that is in the register is compared with what has yet another: a
 * state can say nothing of three. */
static bool of_three(const struct certify *k, const struct value *v, const struct fay_operand *o)
{
	const struct value *other = o->kind == OPERAND_REG ? &k->w->m.s.reg[o->reg] : NULL;

	if (o->kind == OPERAND_MEM)
		return true;
	for (unsigned i = 0; other && i < 2; i++)
		if (other->f.v[i] && other->f.v[i] != v->f.v[0] && other->f.v[i] != v->f.v[1])
			return true;
	return false;
}

/* The registers that are a constant apart from this one. */
static unsigned beside(const struct certify *k, unsigned reg)
{
	const struct value *r = k->w->m.s.reg;
	unsigned mask = 0;

	for (unsigned i = 0; i < 16; i++) {
		struct form d = r[i].f;

		if (r[i].kind == KIND_NUMBER && r[i].bits == r[reg].bits &&
		    form_add(&d, &r[reg].f, -1) && !d.v[0])
			mask |= 1u << i;
	}
	return mask;
}

/* A register of which nothing could be learned: a sum that may have wrapped, or is larger than what
 * a fact says, or of which only a variable of its own can be compared with the other operand. */
static unsigned wrapping(const struct certify *k, uint32_t at, const struct fay_operand *o,
			 const struct fay_operand *with, unsigned bits)
{
	struct machine *m = &k->w->m;
	struct form f;

	const struct value *v = o->kind == OPERAND_REG ? &m->s.reg[o->reg] : NULL;
	bool known;

	if (!v || !sums_of(k, o))
		return 0;
	known = value_form(m, v, bits, false, &f) || value_form(m, v, bits, true, &f);
	if (!known || form_range(m, &f).hi >= INT64_MAX)
		return 1u << o->reg;
	if (!(certify_treat(k, &k->places[at]) & TREAT_THREE) || !of_three(k, v, with))
		return 0;
	return beside(k, o->reg);
}

/* A register that is multiplied or shifted, and may have wrapped, with what is beside it. */
static unsigned wrapped(const struct certify *k, const struct fay_operand *o, unsigned bits)
{
	struct machine *m = &k->w->m;
	const struct value *v = o->kind == OPERAND_REG ? &m->s.reg[o->reg] : NULL;
	struct form f;

	return v && v->kind == KIND_NUMBER && !value_form(m, v, bits, false, &f) ? beside(k, o->reg)
										 : 0;
}

/* The registers of an address in a region whose size is passed, which is a third variable. */
static unsigned addressed(const struct certify *k, const struct fay_operand *o)
{
	const struct machine *m = &k->w->m;
	bool passed = false;

	if (o->kind != OPERAND_MEM)
		return 0;
	for (unsigned i = 0; i < 2; i++) {
		uint8_t reg = i ? o->index : o->base;

		passed |= reg < 16 && m->s.reg[reg].kind == KIND_POINTER &&
			  region_passed(m, m->s.reg[reg].tag);
	}
	return passed ? sums_of(k, o) : 0;
}

/* Whether some variable is a quotient of another by a constant. */
static bool has_quotient(const struct def *def, uint32_t defs)
{
	bool any = false;

	for (uint32_t i = 0; i < defs; i++)
		any |= def[i].kind == DEF_FLOOR && (def[i].factor != 1 || def[i].f.k[0] != 1);
	return any;
}

/* Registers that had better be numbers of their own: sums of two variables which the instruction
 * compares or adds to another. The place ends before it; also if it is only NO_REGISTER. */
static unsigned asks_sums(const struct certify *k, uint32_t at, const struct fay_insn *insn)
{
	static const struct fay_operand rax = { .kind = OPERAND_REG, .reg = FAY_RAX };
	uint8_t treat = certify_treat(k, &k->places[at]);
	const struct machine *m = &k->w->m;
	/* what a comparison tells of a number it tells of its quotients only by facts */
	bool facts = k->c->sums && treat & TREAT_FACTS && has_quotient(m->def, m->defs);
	unsigned rejoin = treat & TREAT_REJOIN || facts ? NO_REGISTER : 0;

	if (!(treat & (TREAT_CASES | TREAT_FACTS)))
		return 0;
	switch (insn->op) {
	case OP_MUL1: /* of what may have wrapped the product tells nothing */
		return wrapped(k, &rax, insn->width) | wrapped(k, &insn->src, insn->width);
	case OP_IMUL:
	case OP_SHR:
		return wrapped(k, &insn->src, insn->width) | wrapped(k, &insn->dst, insn->width);
	case OP_CMP:
	case OP_TEST:
		return wrapping(k, at, &insn->dst, &insn->src, insn->width) |
		       wrapping(k, at, &insn->src, &insn->dst, insn->width) | rejoin;
	case OP_LEA: return sums_of(k, &insn->src);
	default:
		return treat & TREAT_THREE ? addressed(k, &insn->dst) | addressed(k, &insn->src)
					   : 0;
	}
}

unsigned certify_part_words(const struct certify *k, uint32_t at, const struct state *s)
{
	unsigned mask = 0;

	if (!(certify_treat(k, &k->places[at]) & TREAT_CASES))
		return 0;
	for (unsigned r = 0; r < 16; r++) {
		const struct form *f = &s->reg[r].f;
		const struct var *v = s->reg[r].kind == KIND_NUMBER && f->v[0] && !f->v[1]
					      ? var_find((struct state *)s, f->v[0])
					      : NULL;

		if (v && !v->negative && v->lo > INT64_MAX)
			mask |= 1u << r;
	}
	return mask;
}

unsigned certify_part_first(struct certify *k, uint32_t at, const struct state *s)
{
	const struct place *p = &k->places[at];
	const struct fay_block *block = &k->c->cfg->blocks[k->c->graph->nodes[p->node].block];
	struct state *save;
	unsigned mask;

	if (!(certify_treat(k, p) & TREAT_THREE) || p->skip)
		return 0;
	save = certify_enter(k, s);
	mask = asks_sums(k, at, &k->c->cfg->insns[block->first]);
	certify_leave(k, save);
	return mask & (NO_REGISTER - 1);
}

bool certify_part_facts(const struct certify *k, uint32_t at, const struct state *s)
{
	const struct place *p = &k->places[at];

	return certify_treat(k, p) & TREAT_FACTS &&
	       (p->skip ? has_quotient(p->in->def, p->in->defs) : s->facts > 0);
}

bool certify_part_heads(const struct certify *k, const struct place *p)
{
	return k->c->sums && p->head && certify_treat(k, p) & TREAT_THREE;
}

/* The place ends here, `done` instructions behind where it begins. */
static void part(struct certify *k, uint32_t at, uint32_t done)
{
	check_collect(&k->w->m);
	k->places[at].parted = true;
	k->places[at].count = done;
}

/* By a condition, if it may be either way. */
static bool part_cases(struct certify *k, uint32_t at, uint32_t done, unsigned cc)
{
	struct machine *m = &k->w->m;
	struct place *p = &k->places[at];
	unsigned need = fay_cc_flags((enum fay_cc)cc);

	if ((need & m->s.flags.covered) != need)
		return false; /* it tells nothing */
	for (unsigned side = 0; side < 2; side++) {
		bool may;

		assume_begin(m);
		may = flags_assume(m, side ? cc ^ 1 : cc);
		assume_undo(m);
		if (!may)
			return false;
	}
	part(k, at, done);
	p->condition = (uint8_t)(1 + cc);
	for (unsigned side = 0; side < 2; side++) {
		assume_begin(m);
		flags_assume(m, side ? cc ^ 1 : cc);
		if (certify_edge_into(k, at, p->node, p->skip + done, &p->to[side]))
			k->places[p->to[side]].one_case = true;
		assume_undo(m);
	}
	return true;
}

/* Whether something is learned by assuming the condition. */
static bool tells(struct machine *m, unsigned cc)
{
	bool more;

	assume_begin(m);
	more = flags_assume(m, cc) &&
	       (m->s.facts != m->shared->facts ||
		memcmp(m->s.var, m->shared->var, m->s.vars * sizeof(m->s.var[0])) != 0);
	assume_undo(m);
	return more;
}

/* By whether a result is 0, where facts leave one answer only and the ranges do not have it yet. */
static bool part_certain(struct certify *k, uint32_t at, uint32_t done)
{
	struct machine *m = &k->w->m;
	struct place *p = &k->places[at];
	unsigned cc = CC_NE;
	bool may[2];

	if (!(m->s.flags.covered & FLAG_ZF))
		return false;
	for (unsigned side = 0; side < 2; side++) {
		assume_begin(m);
		may[side] = flags_assume(m, side ? CC_E : CC_NE);
		assume_undo(m);
	}
	cc = may[0] ? CC_NE : CC_E;
	if (may[0] == may[1] || !tells(m, cc))
		return false;
	part(k, at, done);
	p->condition = (uint8_t)(1 + cc);
	assume_begin(m);
	flags_assume(m, cc);
	if (certify_edge_into(k, at, p->node, p->skip + done, &p->to[0]))
		k->places[p->to[0]].one_case = true;
	p->to[1] = p->to[0];
	assume_undo(m);
	return true;
}

/* Whether the state cannot say that two numbers differ. */
static bool difference_lost(struct machine *m)
{
	bool lost;

	assume_begin(m);
	lost = flags_assume(m, CC_NE) && flags_assume(m, CC_E);
	assume_undo(m);
	return lost;
}

/* Before an instruction for which these registers had better be numbers of their own. */
static bool part_sums(struct certify *k, uint32_t at, uint32_t done, unsigned mask)
{
	struct place *p = &k->places[at];

	part(k, at, done);
	if (certify_edge_into(k, at, p->node, p->skip + done, &p->to[0]))
		k->places[p->to[0]].fresh = (uint16_t)mask;
	return true;
}

bool certify_part(struct certify *k, uint32_t at, uint32_t done, const struct fay_insn *insn)
{
	unsigned cc = insn->op == OP_ADC || insn->op == OP_SBB ? CC_B : insn->cc;
	unsigned sums = asks_sums(k, at, insn);

	if (done && sums)
		return part_sums(k, at, done, sums);
	if (done && asks_order(k, at, done) && difference_lost(&k->w->m) &&
	    part_cases(k, at, done, CC_B))
		return true;
	if (done && asks_certain(k, at, insn) && part_certain(k, at, done))
		return true;
	return done && asks_cases(k, at, insn) && part_cases(k, at, done, cc);
}
