/* SPDX-License-Identifier: MIT */
/* Calls of helpers by the interface's contracts; begin and end of a probe. */
#include "machine.h"

static bool broken(struct machine *m, const char *what)
{
	return check_refuse(m, FAY_RULE_HLP_CONTRACT, what);
}

static struct range range_of(const struct fay_interface_value *v)
{
	return (struct range){ v->lo, v->lo < 0 ? (wide)(int64_t)v->hi : (wide)v->hi };
}

/* Registers that a call leaves with anything: rax rcx rdx rsi rdi r8 to r11. */
enum { CLOBBERED = 0xfc7 };

/* A pointer to `size` bytes, within bounds. */
static bool pointer(struct machine *m, unsigned reg, uint32_t size, bool write, struct access *a)
{
	struct value v;

	if (!register_read(m, reg, 64, &v))
		return false;
	if (v.kind != KIND_POINTER)
		return broken(m, "an argument of a helper is not a pointer");
	if (write && v.tag != REGION_STACK && !region_permits(m, v.tag, FAY_REGION_FILLED))
		return broken(m, "a helper may not write to this region");
	return machine_access(m, &v, size, write, a);
}

/* `size` bytes that a helper reads for the image: what that may read and hand out itself. */
static bool reads(struct machine *m, unsigned reg, uint32_t size)
{
	struct access a;

	return pointer(m, reg, size, false, &a) &&
	       (a.region != REGION_STACK ||
		stack_written(m, (int64_t)a.at.lo, (int64_t)a.at.hi + size));
}

/* So many bytes that a helper writes. */
static bool writes(struct machine *m, unsigned reg, struct range size)
{
	struct access a;
	int64_t low;

	if (!pointer(m, reg, (uint32_t)size.hi, true, &a))
		return false;
	if (a.region != REGION_STACK)
		return true;
	low = (int64_t)a.at.lo;
	if (!stack_forget(m, low, (int64_t)a.at.hi + (int64_t)size.hi))
		return false;
	if (a.at.lo == a.at.hi)
		stack_mark(&m->s, low, low + (int64_t)size.lo, true);
	return true;
}

/* A number, or where a region begins. *n: the number; of a state, the bytes of its row. */
static bool takes(struct machine *m, unsigned reg, const struct fay_interface_value *want,
		  struct range *n)
{
	struct range may = range_of(want);
	struct fay_image_state state = { 0 };
	struct value v;

	if (!register_read(m, reg, 64, &v))
		return false;
	if (want->kind == FAY_VALUE_START)
		return (v.kind == KIND_POINTER && v.tag == want->of && !v.f.v[0] && !v.f.c) ||
		       broken(m, "an argument must be the start of its region");
	*n = value_range(m, &v, 64, may.lo < 0);
	if (v.kind != KIND_NUMBER || n->lo < may.lo || n->hi > may.hi)
		return broken(m, "an argument is not in its helper's range");
	if (want->kind != FAY_VALUE_STATE)
		return true;
	if (n->lo == n->hi && n->hi < m->subject->state_count)
		state = check_state(m->subject, (uint32_t)n->lo);
	*n = (struct range){ state.row_size, state.row_size };
	return state.kind == want->of ||
	       broken(m, "an argument must be the number of a state of its kind");
}

/* Numbers first, by which bytes are counted; then what is read, then what is written. */
static bool arguments(struct machine *m, const struct fay_interface_helper *h)
{
	struct range n[FAY_INTERFACE_PARAMETERS] = { 0 };

	for (unsigned pass = 0; pass < 3; pass++)
		for (unsigned i = 0; i < FAY_INTERFACE_PARAMETERS; i++) {
			const struct fay_interface_value *want = &h->argument[i];
			struct range all = { (wide)want->hi, (wide)want->hi };
			struct range size = want->count ? n[want->count - 1] : all;
			unsigned reg = machine_argument(i);
			struct value v;
			bool ok = true;

			switch (want->kind) {
			case FAY_VALUE_NONE: break;
			case FAY_VALUE_ADDRESS: /* a pointer would show what may not be read */
				ok = pass != 1 ||
				     (register_read(m, reg, 64, &v) &&
				      (v.kind == KIND_NUMBER || reads(m, reg, (uint32_t)size.hi)));
				break;
			case FAY_VALUE_READ:
				ok = pass != 1 || reads(m, reg, (uint32_t)size.hi);
				break;
			case FAY_VALUE_WRITE: ok = pass != 2 || writes(m, reg, size); break;
			default: ok = pass != 0 || takes(m, reg, want, &n[i]);
			}
			if (!ok)
				return false;
		}
	return true;
}

int machine_slot(const struct machine *m, uint64_t address)
{
	for (unsigned i = 0; i < m->subject->slot_count; i++)
		if (m->subject->slots[i].address == address)
			return (int)m->subject->slots[i].helper;
	return -1;
}

/* The helper that is called; -1: none. */
static int callee(const struct machine *m, const struct fay_insn *insn)
{
	const struct value *v = &m->s.reg[insn->src.reg & 15];

	if (insn->op != OP_CALL_REG)
		return machine_slot(m, insn->target);
	return v->kind == KIND_HELPER ? v->tag : -1;
}

/* Into one of these regions. No access is made to one but by such a pointer, and there is none but
 * in registers and slots; so where no pointer is left, nothing is accessed any more. */
static bool leads_to(const struct value *v, uint32_t regions)
{
	return v->kind == KIND_POINTER && regions >> v->tag & 1;
}

bool step_call_helper(struct machine *m, const struct fay_insn *insn)
{
	const struct fay_interface *interface = m->subject->interface;
	const struct fay_interface_helper *h;
	int helper = callee(m, insn);

	if (helper < 0 || (uint32_t)helper >= interface->helper_count)
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
	h = &interface->helper[helper];
	if (!arguments(m, h))
		return false;
	for (unsigned r = 0; r < 16; r++)
		if (CLOBBERED >> r & 1 || leads_to(&m->s.reg[r], h->ends))
			m->s.reg[r] = value_nothing();
	for (unsigned i = 0; i < m->s.slots; i++)
		if (leads_to(&m->s.slot[i].v, h->ends))
			m->s.slot[i].v = value_nothing();
	if (interface != &check_probe_interface) /* what a host leaves there is its own */
		memset(m->s.vector, 0, sizeof(m->s.vector));
	if (h->result.kind == FAY_VALUE_NUMBER)
		m->s.reg[FAY_RAX] =
			value_fresh(m, range_of(&h->result).lo, range_of(&h->result).hi, 64);
	m->helped += h->cost;
	flags_set(m, insn, NULL, NULL, 0);
	m->s.flags.undefined = FLAG_ALL;
	return true;
}

void machine_entry(struct machine *m)
{
	const struct fay_interface *interface = m->subject->interface;

	memset(&m->s, 0, sizeof(m->s));
	for (unsigned r = 0; r < 16; r++) {
		m->s.reg[r].kind = CLOBBERED >> r & 1 ? KIND_NOTHING : KIND_SAVED;
		m->s.reg[r].tag = (uint8_t)r;
	}
	for (uint32_t i = 0; i < interface->parameter_count; i++) {
		const struct fay_interface_value *p = &interface->parameter[i];
		struct value *to = &m->s.reg[machine_argument(i)];

		*to = (struct value){ form_number(0), KIND_POINTER, p->of, 0, 64 };
		if (p->kind != FAY_VALUE_START)
			*to = value_fresh(m, range_of(p).lo, range_of(p).hi, 64);
		if (p->kind == FAY_VALUE_SIZE)
			var_find(&m->s, to->f.v[0])->pin = PIN_SIZES + p->of;
	}
	m->s.reg[FAY_RSP] = (struct value){ form_number(0), KIND_POINTER, REGION_STACK, 0, 64 };
	m->s.flags.a = m->s.flags.b = value_nothing();
	m->s.flags.bits = 64;
	m->s.flags.undefined = FLAG_ALL;
}

bool machine_unchanged(const struct machine *m, const struct value *v, unsigned r)
{
	const struct fay_interface *interface = m->subject->interface;

	if (v->kind == KIND_SAVED || v->kind == KIND_NOTHING)
		return v->tag == r;
	for (uint32_t i = 0; i < interface->parameter_count; i++)
		if (machine_argument(i) == r && v->kind == KIND_POINTER && !v->f.v[0] && !v->f.c &&
		    interface->parameter[i].kind == FAY_VALUE_START)
			return v->tag == interface->parameter[i].of;
	return false;
}

/* The result is a number in its range; where branches are not believed it may be any. */
static bool returns(struct machine *m)
{
	const struct fay_interface_value *want = &m->subject->interface->result;
	struct range may = range_of(want), r;
	struct value v;

	if (want->kind == FAY_VALUE_NONE)
		return true;
	if (!register_read(m, FAY_RAX, 64, &v))
		return false;
	r = value_range(m, &v, 64, may.lo < 0);
	return (v.kind == KIND_NUMBER && (!m->refine || (r.lo >= may.lo && r.hi <= may.hi))) ||
	       broken(m, "the result is not in its range");
}

bool machine_return(struct machine *m)
{
	if (m->s.depth)
		return check_refuse(m, FAY_RULE_CFI_RETURN,
				    "the stack pointer is not at the return address");
	for (unsigned r = 0; r < 16; r++) {
		if (r == FAY_RSP || machine_unchanged(m, &m->s.reg[r], r))
			continue;
		if (!(CLOBBERED >> r & 1))
			return check_refuse(m, FAY_RULE_ENV_SAVED,
					    "a callee-saved register is not as it was at entry");
		m->facts->clobbered_gprs |= 1u << r;
	}
	return returns(m);
}
