/* SPDX-License-Identifier: MIT */
/*
 * The instructions: moves, the stack, and which function each operation has. Control transfers are
 * in walk.c.
 */
#include "step.h"

/* ---- moves ---- */

/* All of a register that is only moved: saved registers and helpers' addresses, too. */
static bool register_move(struct machine *m, unsigned reg, struct value *v)
{
	*v = m->s.reg[reg];
	return v->kind == KIND_SAVED || v->kind == KIND_HELPER || machine_readable(m, v, 64);
}

static bool step_mov(struct machine *m, const struct fay_insn *insn)
{
	struct value v;
	struct access a;
	int helper;

	if (insn->width == 64 && insn->src.kind == OPERAND_MEM && insn->src.rip &&
	    (helper = machine_slot(m, (uint64_t)insn->src.disp)) >= 0) {
		v = (struct value){ .kind = KIND_HELPER, .tag = (uint8_t)helper };
		return operand_write(m, insn, &insn->dst, 64, &v);
	}
	if (insn->width == 64 && insn->src.kind == OPERAND_REG) {
		if (!register_move(m, insn->src.reg, &v))
			return false;
	} else if (insn->width == 64 && insn->src.kind == OPERAND_MEM) {
		if (!machine_locate(m, &insn->src, 8, false, 1, &a) || !machine_load(m, &a, &v))
			return false;
	} else if (!operand_read(m, &insn->src, insn->width, &v)) {
		return false;
	}
	return operand_write(m, insn, &insn->dst, insn->width, &v);
}

/* MOVZX, MOVSX. */
static bool step_extend(struct machine *m, const struct fay_insn *insn)
{
	unsigned from = insn->src_width;
	struct value v, r;
	const struct def *d;
	struct form f;

	if (!operand_number(m, &insn->src, from, &v))
		return false;
	if (insn->op == OP_MOVZX) {
		if (v.bits > from)
			v.bits = (uint8_t)from;
		return operand_write(m, insn, &insn->dst, insn->width, &v);
	}
	if (value_form(m, &v, from, true, &f)) {
		r = (struct value){ f, KIND_NUMBER, 0, 0xff, insn->width };
	} else {
		struct range n = value_range(m, &v, from, true);

		r = value_fresh(m, n.lo, n.hi, insn->width);
		d = check_definition(m, &v.f, DEF_TABLE);
		if (d && from == 32 && insn->width == 64 && v.bits >= 32)
			check_define(m, &r,
				     (struct def){ .kind = DEF_TABLE, .sign = true, .f = d->f });
	}
	return operand_write(m, insn, &insn->dst, insn->width, &r);
}

static bool step_lea(struct machine *m, const struct fay_insn *insn)
{
	const struct fay_operand *mem = &insn->src;
	struct value v = value_number((uint64_t)mem->disp), part;

	if (insn->width == 64) {
		if (!machine_address(m, mem, &v))
			return false;
	} else {
		if (mem->rip)
			return check_refuse(m, FAY_RULE_MEM_POINTER,
					    "part of an address is used as a number");
		if (mem->base != FAY_NO_REG && (!register_read(m, mem->base, insn->width, &part) ||
						!value_add(m, &part, &v, 1, insn->width, &v)))
			return false;
		if (mem->index != FAY_NO_REG &&
		    (!register_read(m, mem->index, insn->width, &part) ||
		     !value_add(m, &v, &part, mem->scale, insn->width, &v)))
			return false;
	}
	register_write(m, insn->dst.reg, insn->width, &v);
	return true;
}

/* XCHG, XADD. One address for both accesses: the register written may be part of it. */
static bool step_exchange(struct machine *m, const struct fay_insn *insn)
{
	unsigned bits = insn->width;
	struct value a, b, r;
	struct access at;

	if (insn->dst.kind != OPERAND_MEM && insn->op == OP_XADD)
		return check_refuse(m, FAY_RULE_INS_UNSUPPORTED, "xadd between registers");
	if (insn->dst.kind != OPERAND_MEM)
		return (bits == 64 ? register_move(m, insn->dst.reg, &a) &&
					     register_move(m, insn->src.reg, &b)
				   : operand_number(m, &insn->dst, bits, &a) &&
					     operand_number(m, &insn->src, bits, &b)) &&
		       operand_write(m, insn, &insn->dst, bits, &b) &&
		       operand_write(m, insn, &insn->src, bits, &a);
	if (!operand_number(m, &insn->src, bits, &b) ||
	    !machine_locate(m, &insn->dst, bits / 8, true,
			    insn->locked || insn->op == OP_XCHG ? bits / 8 : 1, &at) ||
	    !machine_load(m, &at, &a))
		return false;
	if (a.kind != KIND_NUMBER)
		return check_refuse(m, FAY_RULE_MEM_POINTER, "a pointer in memory is exchanged");
	r = b;
	if (insn->op == OP_XADD && !value_add(m, &a, &b, 1, bits, &r))
		return false;
	if (!machine_store(m, &at, &r))
		return false;
	if (insn->op == OP_XADD)
		flags_set(m, insn, &r, NULL, FLAG_ZF | FLAG_SF);
	return operand_write(m, insn, &insn->src, bits, &a);
}

static bool step_cmpxchg(struct machine *m, const struct fay_insn *insn)
{
	unsigned bits = insn->width;
	struct value expected, found, desired, either;
	struct range a, b;
	struct access at;

	if (insn->dst.kind != OPERAND_MEM)
		return check_refuse(m, FAY_RULE_INS_UNSUPPORTED, "cmpxchg with a register");
	if (!operand_number(m, &rax, bits, &expected) ||
	    !operand_number(m, &insn->src, bits, &desired) ||
	    !machine_locate(m, &insn->dst, bits / 8, true, insn->locked ? bits / 8 : 1, &at) ||
	    !machine_load(m, &at, &found))
		return false;
	if (found.kind != KIND_NUMBER)
		return check_refuse(m, FAY_RULE_MEM_POINTER, "cmpxchg on a pointer");
	a = value_range(m, &found, bits, false);
	b = value_range(m, &desired, bits, false);
	either = value_fresh(m, a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi, 64);
	if (!machine_store(m, &at, &either))
		return false;
	flags_set(m, insn, NULL, NULL, 0);
	if (bits == 32) {
		/* only failure zero-extends: the upper half is as readable as before */
		struct value *to = &m->s.reg[FAY_RAX];
		bool narrow = to->init == 0xff && value_range(m, to, 64, false).hi <= UINT32_MAX;
		unsigned init = to->init | 0x0f;

		*to = unknown(m, narrow ? 32 : 64);
		to->init = (uint8_t)init;
		return true;
	}
	found = value_fresh(m, a.lo, a.hi, 64);
	register_write(m, FAY_RAX, bits, &found);
	return true;
}

/* Whether the flags are those of this number against 0. */
static bool tests(const struct machine *m, const struct value *v)
{
	const struct flags *f = &m->s.flags;

	return v->kind == KIND_NUMBER && f->covered & FLAG_ZF && !f->b.f.v[0] && !f->b.f.c &&
	       f->b.kind == KIND_NUMBER && f->a.kind == KIND_NUMBER && form_equal(&f->a.f, &v->f) &&
	       f->a.bits == v->bits && v->bits <= f->bits;
}

static bool step_cmov(struct machine *m, const struct fay_insn *insn)
{
	struct value yes, no, r;
	struct range ry = { 0, 0 }, rn = ry;
	bool may, may_not;

	/* also where branches tell nothing: a conditional move waits for its flags */
	if (!flags_ready(m, insn->cc) || !operand_read(m, &insn->src, insn->width, &yes) ||
	    !operand_read(m, &insn->dst, insn->width, &no))
		return false;
	may = flags_where(m, insn->cc, &yes, insn->width, &ry);
	may_not = flags_where(m, insn->cc ^ 1, &no, insn->width, &rn);
	/* x != 0 ? x : y, which no interval around 0 shows */
	if (insn->cc == CC_NE && ry.lo == 0 && tests(m, &yes))
		ry.lo = 1;
	if (insn->cc == CC_E && rn.lo == 0 && tests(m, &no))
		rn.lo = 1;
	if (!may || !may_not)
		r = may ? yes : no;
	else if (yes.kind != no.kind || yes.tag != no.tag)
		r = value_nothing();
	else if (form_equal(&yes.f, &no.f) && yes.bits == no.bits)
		r = yes;
	else {
		r = value_fresh(m, ry.lo < rn.lo ? ry.lo : rn.lo, ry.hi > rn.hi ? ry.hi : rn.hi,
				64);
		r.kind = yes.kind;
		r.tag = yes.tag;
	}
	register_write(m, insn->dst.reg, insn->width, &r);
	return true;
}

static bool step_setcc(struct machine *m, const struct fay_insn *insn)
{
	struct value r;

	if (!flags_ready(m, insn->cc))
		return false;
	r = flags_truth(m, insn->cc);
	return operand_write(m, insn, &insn->dst, 8, &r);
}

/* ---- the stack ---- */

static bool step_push(struct machine *m, const struct fay_insn *insn)
{
	int64_t depth = m->s.depth + 8;
	struct value v;

	if (insn->src.kind == OPERAND_REG) {
		/* anything may be kept on the own stack: also a value that must not be read */
		v = m->s.reg[insn->src.reg];
		if (v.kind == KIND_POINTER && !machine_readable(m, &v, 64))
			return false;
	} else if (!operand_read(m, &insn->src, 64, &v)) {
		return false;
	}
	if (v.kind != KIND_NUMBER)
		m->s.fills = 0;
	return machine_depth(m, depth) && stack_put(m, -depth, 8, &v);
}

static bool pop(struct machine *m, unsigned reg)
{
	int64_t depth = m->s.depth;
	const struct slot *slot = depth < 8 ? NULL : stack_find(&m->s, -depth, 8);
	struct value v = value_nothing();

	if (depth < 8 || (slot && slot->v.kind == KIND_RETURN))
		return check_refuse(m, FAY_RULE_STK_RETURN, "a return address is popped");
	if (reg == FAY_RSP)
		return check_refuse(m, FAY_RULE_STK_POINTER, "pop writes the stack pointer");
	if (slot)
		v = slot->v;
	else if (stack_all_written(&m->s, -depth, 8 - depth))
		v = unknown(m, 64);
	if (!machine_depth(m, depth - 8))
		return false;
	register_write(m, reg, 64, &v);
	return true;
}

static bool step_pop(struct machine *m, const struct fay_insn *insn)
{
	return insn->dst.kind == OPERAND_REG
		       ? pop(m, insn->dst.reg)
		       : check_refuse(m, FAY_RULE_INS_UNSUPPORTED, "pop to memory");
}

static bool step_leave(struct machine *m, const struct fay_insn *insn)
{
	struct value v = m->s.reg[FAY_RBP];

	if (v.kind != KIND_POINTER || v.tag != REGION_STACK || v.f.v[0] || v.f.c < -m->s.depth ||
	    v.f.c > STACK_MOST)
		return check_refuse(m, FAY_RULE_STK_POINTER,
				    "leave, and rbp is not a known place of the frame");
	return machine_depth(m, -v.f.c) && pop(m, FAY_RBP);
}

/* rep movs and rep stos with a known count: element by element, upward. */
static bool step_string(struct machine *m, const struct fay_insn *insn)
{
	bool copy = insn->op == OP_REP_MOVS;
	uint32_t size = insn->width / 8, n;
	struct value count, to, from = value_number(0), v = from, done;
	struct range r;
	struct access a = { .size = 0 }, b = a;

	if (!register_read(m, FAY_RCX, 64, &count) || !register_read(m, FAY_RDI, 64, &to) ||
	    (copy && !register_read(m, FAY_RSI, 64, &from)))
		return false;
	r = value_range(m, &count, 64, false);
	if (count.kind != KIND_NUMBER || r.lo != r.hi || r.hi > 1024)
		return check_refuse(m, FAY_RULE_TRM_LOOP,
				    "a string move whose count is not a constant up to 1024");
	n = (uint32_t)r.lo;
	m->extra += n;
	if (n && (!machine_access(m, &to, n * size, true, &a) ||
		  (copy && !machine_access(m, &from, n * size, false, &b)) ||
		  (!copy && !operand_read(m, &insn->src, insn->width, &v))))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		struct access into = a, source = b;

		into.size = source.size = size;
		struct form by = form_number((int64_t)i * size);

		if (!form_plus(&into.offset, &by, 1) || !form_plus(&source.offset, &by, 1))
			return check_refuse(m, FAY_RULE_MEM_BOUNDS, "an offset without bounds");
		into.at.lo += i * size;
		into.at.hi += i * size;
		if (copy) {
			source.at.lo += i * size;
			source.at.hi += i * size;
			if (m->s.vars + 8 > VARS)
				check_collect(m);
			if (!machine_load(m, &source, &v))
				return false;
		}
		if (!machine_store(m, &into, &v))
			return false;
	}
	done = value_number((uint64_t)n * size);
	m->s.reg[FAY_RCX] = value_number(0);
	if (!value_add(m, &to, &done, 1, 64, &m->s.reg[FAY_RDI]))
		return false;
	return !copy || value_add(m, &from, &done, 1, 64, &m->s.reg[FAY_RSI]);
}

static bool step_rdtsc(struct machine *m, const struct fay_insn *insn)
{
	if (!m->policy->allow_rdtsc)
		return check_refuse(m, FAY_RULE_INS_FORBIDDEN, "the policy does not allow rdtsc");
	m->s.reg[FAY_RAX] = unknown(m, 32);
	m->s.reg[FAY_RDX] = unknown(m, 32);
	return true;
}

static bool step_nothing(struct machine *m, const struct fay_insn *insn)
{
	return true;
}

/* Jumps, calls and returns, which walk.c takes before. */
static bool step_jump(struct machine *m, const struct fay_insn *insn)
{
	return check_refuse(m, FAY_RULE_INS_UNSUPPORTED, "a jump within straight code");
}

bool step_any(struct machine *m, const struct fay_insn *insn)
{
	switch ((enum fay_op)insn->op) {
#define OP(ident, name, dst, src, reads, writes, undefined, attributes, transfer, semantics, step, \
	   ...)                                                                                    \
	case OP_##ident: return step_##step(m, insn);
#include "verifier/isa/ops.def"
	default: return check_refuse(m, FAY_RULE_INS_UNSUPPORTED, "an instruction without a rule");
	}
}
