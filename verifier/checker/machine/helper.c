/* SPDX-License-Identifier: MIT */
/* Calls of helpers: the contract of each (include/fay/image.h); begin and end of a probe. */
#include "machine.h"

static bool broken(struct machine *m, const char *what)
{
	return check_refuse(m, FAY_RULE_HLP_CONTRACT, what);
}

/* A pointer to `size` bytes, within bounds. */
static bool pointer(struct machine *m, unsigned reg, uint32_t size, bool write, struct access *a)
{
	struct value v;

	if (!register_read(m, reg, 64, &v))
		return false;
	if (v.kind != KIND_POINTER)
		return broken(m, "an argument of a helper is not a pointer");
	if (write && v.tag != REGION_STACK && v.tag != REGION_LOCAL)
		return broken(m, "a helper writes only to the stack and to local state");
	return machine_access(m, &v, size, write, a);
}

/* `size` bytes that a helper reads for the probe: what the probe may read and hand out itself. */
static bool reads(struct machine *m, unsigned reg, uint32_t size)
{
	struct access a;

	if (!pointer(m, reg, size, false, &a))
		return false;
	if (a.region == REGION_EVENT)
		machine_fields(m, &a);
	return a.region != REGION_STACK ||
	       stack_written(m, (int64_t)a.at.lo, (int64_t)a.at.hi + size);
}

/* fay_flush and fay_emit: (local, constant number of a state of that kind). */
static bool state_arguments(struct machine *m, uint32_t kind, uint32_t *row_size)
{
	struct value local, index;
	struct range n;

	if (!register_read(m, FAY_RDI, 64, &local) || !register_read(m, FAY_RSI, 64, &index))
		return false;
	if (local.kind != KIND_POINTER || local.tag != REGION_LOCAL || local.f.v[0] || local.f.c)
		return broken(m, "the first argument must be the start of local state");
	n = value_range(m, &index, 64, false);
	if (index.kind != KIND_NUMBER || n.lo != n.hi || n.hi >= m->subject->state_count ||
	    check_state(m->subject, (uint32_t)n.lo, row_size) != kind)
		return broken(m, "the second argument must be the number of a state of that kind");
	return true;
}

static bool try_read(struct machine *m)
{
	struct value size, address;
	struct range n;
	struct access a;
	int64_t low;

	if (!register_read(m, FAY_RSI, 64, &size) || !register_read(m, FAY_RDX, 64, &address))
		return false;
	n = value_range(m, &size, 64, false);
	if (size.kind != KIND_NUMBER || n.hi > FAY_TRY_READ_MAX)
		return broken(m, "fay_try_read: the size may be more than 4096");
	/* numbers are the traced program's addresses; a pointer would show what may not be read */
	if (address.kind == KIND_POINTER && !reads(m, FAY_RDX, (uint32_t)n.hi))
		return false;
	if (!pointer(m, FAY_RDI, (uint32_t)n.hi, true, &a))
		return false;
	if (a.region != REGION_STACK)
		return true;
	low = (int64_t)a.at.lo;
	if (!stack_forget(m, low, (int64_t)a.at.hi + (int64_t)n.hi))
		return false;
	if (a.at.lo == a.at.hi)
		stack_mark(&m->s, low, low + (int64_t)n.lo, true);
	return true;
}

/* The helper that is called; -1: none. */
static int callee(const struct machine *m, const struct fay_insn *insn)
{
	if (insn->op == OP_CALL_REG)
		return m->s.reg[insn->src.reg].kind == KIND_HELPER ? m->s.reg[insn->src.reg].tag
								   : -1;
	for (unsigned i = 0; i < m->subject->slot_count; i++)
		if (m->subject->slots[i].address == insn->target)
			return (int)m->subject->slots[i].helper;
	return -1;
}

bool step_call_helper(struct machine *m, const struct fay_insn *insn)
{
	static const uint8_t clobbered[] = { FAY_RAX, FAY_RCX, FAY_RDX, FAY_RSI, FAY_RDI,
					     FAY_R8,  FAY_R9,  FAY_R10, FAY_R11 };
	int helper = callee(m, insn);
	uint32_t row;
	bool ok = false;

	if (helper < 0 || helper >= FAY_HELPER_COUNT)
		return check_refuse(m, FAY_RULE_CFI_CALL,
				    "a call that is not proved to be of an imported helper");
	if (!(m->policy->allow_helpers >> helper & 1))
		return check_refuse(m, FAY_RULE_POL_HELPER, "the policy does not allow the helper");
	/* a slot cannot be written; the stack can, and a reload may be given what was there */
	if (insn->op == OP_CALL_REG && m->policy->speculation_confined)
		return check_refuse(m, FAY_RULE_INS_UNSUPPORTED,
				    "a helper is called through a register, where speculation "
				    "must be confined");
	m->facts->helpers |= 1u << helper;
	if ((uint64_t)m->s.depth + 8 > m->facts->worst_stack)
		m->facts->worst_stack = (uint64_t)m->s.depth + 8;
	if (m->s.depth % 16 != 8)
		return check_refuse(m, FAY_RULE_HLP_STACK,
				    "the stack pointer is not a multiple of 16 at a call");
	if (helper == FAY_HELPER_FLUSH)
		ok = state_arguments(m, FAY_STATE_TABLE, &row);
	else if (helper == FAY_HELPER_EMIT)
		ok = state_arguments(m, FAY_STATE_STREAM, &row) && reads(m, FAY_RDX, row);
	else if (helper == FAY_HELPER_TRY_READ)
		ok = try_read(m);
	if (!ok)
		return false;
	for (unsigned i = 0; i < sizeof(clobbered); i++)
		m->s.reg[clobbered[i]] = value_nothing();
	m->s.reg[FAY_RAX] = helper == FAY_HELPER_TRY_READ ? value_fresh(m, -1, 0, 64)
							  : value_fresh(m, 0, 1, 64);
	flags_set(m, insn, NULL, NULL, 0);
	m->s.flags.undefined = FLAG_ALL;
	return true;
}

void machine_entry(struct machine *m)
{
	static const uint8_t argument[] = { FAY_RDI, FAY_RSI, FAY_RDX };

	memset(&m->s, 0, sizeof(m->s));
	for (unsigned r = 0; r < 16; r++) {
		m->s.reg[r] = value_nothing();
		m->s.reg[r].tag = (uint8_t)r;
		if (r == FAY_RBX || r == FAY_RBP || r >= FAY_R12)
			m->s.reg[r].kind = KIND_SAVED;
	}
	for (unsigned region = REGION_EVENT; region <= REGION_GLOBAL; region++)
		m->s.reg[argument[region]] =
			(struct value){ form_number(0), KIND_POINTER, (uint8_t)region, 0, 64 };
	m->s.reg[FAY_RSP] = (struct value){ form_number(0), KIND_POINTER, REGION_STACK, 0, 64 };
	m->s.flags.a = m->s.flags.b = value_nothing();
	m->s.flags.bits = 64;
	m->s.flags.undefined = FLAG_ALL;
}

/* Whether register `r` holds what it held at entry. */
static bool unchanged(const struct value *v, unsigned r)
{
	if (v->kind == KIND_SAVED || v->kind == KIND_NOTHING)
		return v->tag == r;
	if (v->kind != KIND_POINTER || v->f.v[0] || v->f.c)
		return false;
	return (r == FAY_RDI && v->tag == REGION_EVENT) ||
	       (r == FAY_RSI && v->tag == REGION_LOCAL) ||
	       (r == FAY_RDX && v->tag == REGION_GLOBAL);
}

bool machine_return(struct machine *m)
{
	if (m->s.depth)
		return check_refuse(m, FAY_RULE_CFI_RETURN,
				    "the stack pointer is not at the return address");
	for (unsigned r = 0; r < 16; r++) {
		if (r == FAY_RSP || unchanged(&m->s.reg[r], r))
			continue;
		if (r == FAY_RBX || r == FAY_RBP || r >= FAY_R12)
			return check_refuse(m, FAY_RULE_ENV_SAVED,
					    "a callee-saved register is not as it was at entry");
		m->facts->clobbered_gprs |= 1u << r;
	}
	return true;
}
