/* SPDX-License-Identifier: MIT */
/*
 * Calls of helpers: the contract of each.
 */
#include "transfer.h"

static bool state_index(struct fay_analysis *an, unsigned helper, uint16_t kind, uint32_t *index)
{
	struct fay_value v;

	if (!fay_reg_read(an, FAY_RSI, 64, &v))
		return false;
	if (v.kind != KIND_SCALAR || !fay_scalar_is_const(&v.s) ||
	    v.s.umin >= an->image->schema.state_count ||
	    an->image->schema.states[v.s.umin].kind != kind)
		return fay_path_refuse(
			an, FAY_RULE_HLP_CONTRACT,
			"%s: the second argument must be the constant number of a %s",
			fay_helper_name(helper), kind == FAY_STATE_TABLE ? "table" : "stream");
	*index = (uint32_t)v.s.umin;
	return true;
}

static bool local_start(struct fay_analysis *an, unsigned helper)
{
	struct fay_value v;

	if (!fay_reg_read(an, FAY_RDI, 64, &v))
		return false;
	if (v.kind != KIND_POINTER || v.tag != REGION_LOCAL || !fay_scalar_is_const(&v.s) ||
	    v.s.umin)
		return fay_path_refuse(an, FAY_RULE_HLP_CONTRACT,
				       "%s: the first argument must be the start of local state",
				       fay_helper_name(helper));
	return true;
}

static bool helper_pointer(struct fay_analysis *an, unsigned reg, unsigned size, bool write,
			   unsigned helper, struct fay_access *access)
{
	struct fay_value v;

	if (!fay_reg_read(an, reg, 64, &v))
		return false;
	if (v.kind != KIND_POINTER)
		return fay_path_refuse(an, FAY_RULE_HLP_CONTRACT, "%s: %s is not a pointer",
				       fay_helper_name(helper), fay_gpr_name(reg, 64));
	if (write && v.tag != REGION_STACK && v.tag != REGION_LOCAL)
		return fay_path_refuse(an, FAY_RULE_HLP_CONTRACT,
				       "%s: writes only to the stack and to local state",
				       fay_helper_name(helper));
	if (!fay_mem_resolve(an, &v, size, write, true, access))
		return false;
	return access->proved;
}

/* `size` bytes that a helper reads for the probe, from the pointer in `reg`: what the probe may
 * read and hand out itself. */
static bool helper_reads(struct fay_analysis *an, unsigned reg, unsigned size, unsigned helper)
{
	struct fay_access access;
	enum fay_slot_status status;

	if (!helper_pointer(an, reg, size, false, helper, &access))
		return false;
	if (access.region == REGION_EVENT)
		fay_note_fields(an, access.offset.smin, access.offset.smax + size);
	if (access.region != REGION_STACK)
		return true;
	status = fay_stack_check(an->current, access.offset.smin, access.offset.smax + size);
	if (status == SLOT_KIND)
		return fay_path_refuse(
			an, FAY_RULE_MEM_LEAK,
			"%s: the bytes read hold a pointer or a value of the traced program",
			fay_helper_name(helper));
	return status == SLOT_OK || fay_mem_slot_refuse(an, status);
}

static bool call_emit(struct fay_analysis *an, struct fay_scalar *result)
{
	uint32_t index;

	*result = fay_scalar_range(0, 1);
	return local_start(an, FAY_HELPER_EMIT) &&
	       state_index(an, FAY_HELPER_EMIT, FAY_STATE_STREAM, &index) &&
	       helper_reads(an, FAY_RDX, an->image->schema.states[index].row_size, FAY_HELPER_EMIT);
}

static bool call_try_read(struct fay_analysis *an, struct fay_scalar *result)
{
	struct fay_value size, address;
	struct fay_access access;

	if (!fay_reg_read(an, FAY_RSI, 64, &size) || !fay_reg_read(an, FAY_RDX, 64, &address))
		return false;
	if (size.kind != KIND_SCALAR || size.s.umax > FAY_TRY_READ_MAX)
		return fay_path_refuse(an, FAY_RULE_HLP_CONTRACT,
				       "fay_try_read: the size may be more than %u",
				       FAY_TRY_READ_MAX);
	/* Numbers are the traced program's addresses. A pointer would show what may not be read:
	 * return addresses, saved registers, fields not asked for. */
	if (address.kind == KIND_POINTER &&
	    !helper_reads(an, FAY_RDX, (unsigned)size.s.umax, FAY_HELPER_TRY_READ))
		return false;
	if (!helper_pointer(an, FAY_RDI, (unsigned)size.s.umax, true, FAY_HELPER_TRY_READ, &access))
		return false;
	if (access.region == REGION_STACK) {
		int64_t low = access.offset.smin, high = access.offset.smax;
		enum fay_slot_status status =
			fay_stack_havoc(an->current, low, high + (int64_t)size.s.umax, false);

		if (status == SLOT_OK && low == high)
			status =
				fay_stack_havoc(an->current, low, low + (int64_t)size.s.umin, true);
		if (status != SLOT_OK)
			return fay_mem_slot_refuse(an, status);
	}
	*result = fay_scalar_srange(-1, 0);
	return true;
}

int fay_helper_loaded(const struct fay_image *image, const struct fay_insn *insn)
{
	if (insn->op != OP_MOV || insn->width != 64 || insn->dst.kind != OPERAND_REG ||
	    insn->src.kind != OPERAND_MEM || !insn->src.rip)
		return -1;
	return fay_image_slot(image, (uint64_t)insn->src.disp);
}

int fay_helper_called(const struct fay_image *image, const struct fay_state *s,
		      const struct fay_insn *insn)
{
	if (insn->op == OP_CALL_SLOT)
		return fay_image_slot(image, insn->target);
	if (insn->op != OP_CALL_REG || s->loc[insn->src.reg].kind != KIND_HELPER)
		return -1;
	return s->loc[insn->src.reg].tag;
}

/* Which helper is called, and whether it may be; -1 if not. */
static int callee(struct fay_analysis *an, const struct fay_insn *insn)
{
	int helper = fay_helper_called(an->image, an->current, insn);
	bool allowed = helper >= 0 && (an->policy->allow_helpers >> helper & 1);

	if (helper < 0 && insn->op == OP_CALL_REG)
		fay_path_refuse(an, FAY_RULE_CFI_CALL,
				"a call through %s, which is not proved to hold one imported "
				"helper's address from its slot",
				fay_gpr_name(insn->src.reg, 64));
	else if (helper < 0)
		fay_path_refuse(an, FAY_RULE_CFI_CALL,
				"an indirect call that is not to an imported helper");
	else if (!allowed)
		fay_path_refuse(an, FAY_RULE_POL_HELPER, "the policy does not allow %s",
				fay_helper_name((unsigned)helper));
	if (!allowed)
		return -1;
	/* A slot cannot be written to; the stack can, and a reload may be given what was there
	 * before (speculative store bypass). */
	if (insn->op == OP_CALL_REG && an->policy->speculation_confined) {
		fay_path_refuse(
			an, FAY_RULE_INS_UNSUPPORTED,
			"a helper called through a register, where speculation must be confined");
		return -1;
	}
	return helper;
}

bool fay_transfer_call_helper(struct fay_analysis *an, const struct fay_insn *insn)
{
	static const uint8_t clobbered[] = { FAY_RAX, FAY_RCX, FAY_RDX, FAY_RSI, FAY_RDI,
					     FAY_R8,  FAY_R9,  FAY_R10, FAY_R11 };
	int helper = callee(an, insn);
	struct fay_scalar result = fay_scalar_range(0, 1);
	uint32_t index;
	bool ok;

	if (helper < 0)
		return false;
	if (an->checking) {
		int64_t depth = fay_state_depth(an->current) + 8;

		an->facts->helpers |= 1u << helper;
		if (depth > an->deepest)
			an->deepest = depth;
	}
	/* rsp is 8 modulo 16 at entry and must be 0 modulo 16 at a call. */
	if ((fay_state_depth(an->current) & 15) != 8)
		return fay_path_refuse(an, FAY_RULE_HLP_STACK,
				       "the stack pointer is not a multiple of 16 at this call");
	switch (helper) {
	case FAY_HELPER_FLUSH:
		ok = local_start(an, FAY_HELPER_FLUSH) &&
		     state_index(an, FAY_HELPER_FLUSH, FAY_STATE_TABLE, &index);
		break;
	case FAY_HELPER_EMIT: ok = call_emit(an, &result); break;
	case FAY_HELPER_TRY_READ: ok = call_try_read(an, &result); break;
	default: return fay_path_refuse(an, FAY_RULE_CFI_CALL, "a helper without a contract");
	}
	if (!ok)
		return false;
	for (unsigned i = 0; i < sizeof(clobbered); i++)
		an->current->loc[clobbered[i]] = fay_value_uninit();
	an->current->loc[FAY_RAX] = fay_value_fresh(an, result);
	fay_flags_set_none(an);
	an->current->flags_undefined = FLAG_ALL;
	return true;
}
