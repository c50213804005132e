/* SPDX-License-Identifier: MIT */
/*
 * Moves, addresses, exchanges, conditional moves.
 */
#include "transfer.h"

bool fay_transfer_mov(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_value v;
	struct fay_access access;
	int helper = fay_helper_loaded(an->image, insn);

	if (helper >= 0) {
		v = fay_value_fresh(an, fay_scalar_top());
		v.kind = KIND_HELPER;
		v.tag = (uint8_t)helper;
	} else if (insn->width == 64 && insn->src.kind == OPERAND_REG) {
		if (!fay_reg_read_whole(an, insn->src.reg, &v))
			return false;
	} else if (insn->width == 64 && insn->src.kind == OPERAND_MEM) {
		/* A saved register or a helper's address may be reloaded from the stack. */
		if (!fay_mem_locate(an, &insn->src, 8, false, &access) ||
		    !fay_mem_load(an, &access, &v))
			return false;
	} else if (!fay_operand_read(an, &insn->src, insn->width, &v)) {
		return false;
	}
	return fay_operand_write(an, &insn->dst, insn->width, v);
}

bool fay_transfer_extend(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_value v, r;

	if (!fay_operand_read(an, &insn->src, insn->src_width, &v))
		return false;
	if (v.kind == KIND_POINTER)
		return fay_path_refuse(an, FAY_RULE_MEM_POINTER, "extends a pointer");
	r = fay_value_narrow(an, v, insn->src_width);
	if (insn->op == OP_MOVSX) {
		bool same;

		r.s = fay_scalar_sext(&r.s, insn->src_width);
		r.s = fay_scalar_zext(&r.s, insn->width);
		same = v.s.umax <= mask_of(insn->src_width) >> 1;
		if (!same)
			fay_value_forget_name(an, &r);
		if (!same && insn->src_width == 32 && insn->width == 64)
			fay_note_sign_extension(an, &v, &r);
	}
	return fay_operand_write(an, &insn->dst, insn->width, r);
}

bool fay_transfer_lea(struct fay_analysis *an, const struct fay_insn *insn)
{
	const struct fay_operand *mem = &insn->src;
	struct fay_value v;

	if (insn->width < 64) {
		/* Only the low bits count: the parts are read narrow, and 64-bit carries drop out.
		 * */
		struct fay_scalar sum = fay_scalar_const((uint64_t)mem->disp &
							 mask_of(insn->width)),
				  scale = fay_scalar_const(mem->scale);
		struct fay_value part;

		if (mem->rip)
			return fay_path_refuse(an, FAY_RULE_MEM_POINTER,
					       "part of an address is used as a number");
		if (mem->index == FAY_NO_REG && mem->base != FAY_NO_REG) {
			struct fay_value disp =
				fay_value_constant(an, (uint64_t)mem->disp & mask_of(insn->width));

			if (!fay_reg_read(an, mem->base, insn->width, &part) ||
			    !fay_value_arithmetic(an, OP_ADD, &part, &disp, insn->width, &v))
				return false;
			fay_reg_write(an, insn->dst.reg, insn->width, v);
			return true;
		}
		if (mem->base != FAY_NO_REG) {
			if (!fay_reg_read(an, mem->base, insn->width, &part))
				return false;
			sum = fay_scalar_compute_both(OP_ADD, &sum, &part.s, insn->width);
		}
		if (mem->index != FAY_NO_REG) {
			struct fay_scalar scaled;

			if (!fay_reg_read(an, mem->index, insn->width, &part))
				return false;
			scaled = fay_scalar_compute_both(OP_IMUL, &part.s, &scale, insn->width);
			sum = fay_scalar_compute_both(OP_ADD, &sum, &scaled, insn->width);
		}
		v = fay_value_fresh(an, sum);
		fay_form_address(an, mem, insn->width, &v);
		fay_reg_write(an, insn->dst.reg, insn->width, v);
		return true;
	}
	if (!fay_mem_address(an, mem, &v))
		return false;
	fay_form_address(an, mem, 64, &v);
	fay_reg_write(an, insn->dst.reg, 64, v);
	return true;
}

/* With memory: as if locked. */
static bool exchange_memory(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_value a, b;
	struct fay_access access;

	/* One address for both accesses: the register written may be part of it. */
	if (!fay_operand_number(an, &insn->src, insn->width, &b) ||
	    !fay_mem_locate(an, &insn->dst, insn->width / 8, true, &access) ||
	    !fay_mem_load(an, &access, &a))
		return false;
	if (a.kind != KIND_SCALAR)
		return fay_path_refuse(an, FAY_RULE_MEM_POINTER, "xchg with a pointer in memory");
	return fay_mem_store(an, &access, &b) && fay_operand_write(an, &insn->src, insn->width, a);
}

bool fay_transfer_xchg(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_value a, b;

	if (insn->dst.kind == OPERAND_MEM)
		return exchange_memory(an, insn);
	if (insn->width == 64) {
		if (!fay_reg_read_whole(an, insn->dst.reg, &a) ||
		    !fay_reg_read_whole(an, insn->src.reg, &b))
			return false;
	} else if (!fay_operand_number(an, &insn->dst, insn->width, &a) ||
		   !fay_operand_number(an, &insn->src, insn->width, &b)) {
		return false;
	}
	return fay_operand_write(an, &insn->dst, insn->width, b) &&
	       fay_operand_write(an, &insn->src, insn->width, a);
}

bool fay_transfer_xadd(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_value a, b, r;
	struct fay_access access;

	if (insn->dst.kind != OPERAND_MEM)
		return fay_path_refuse(an, FAY_RULE_INS_UNSUPPORTED, "xadd between registers");
	/* One address for both accesses: the register written may be part of it. */
	if (!fay_operand_number(an, &insn->src, insn->width, &b) ||
	    !fay_mem_locate(an, &insn->dst, insn->width / 8, true, &access) ||
	    !fay_mem_load(an, &access, &a))
		return false;
	if (a.kind != KIND_SCALAR)
		return fay_path_refuse(an, FAY_RULE_MEM_POINTER, "xadd on a pointer");
	if (!fay_value_arithmetic(an, OP_ADD, &a, &b, insn->width, &r) ||
	    !fay_mem_store(an, &access, &r))
		return false;
	fay_flags_set(an, RECORD_RESULT, insn->width, NULL, NULL, &r, FLAG_ZF | FLAG_SF);
	return fay_operand_write(an, &insn->src, insn->width, a);
}

bool fay_transfer_cmpxchg(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_operand rax = { .kind = OPERAND_REG, .reg = FAY_RAX };
	struct fay_value expected, found, desired, either;
	struct fay_access access;
	unsigned width = insn->width;

	if (insn->dst.kind != OPERAND_MEM)
		return fay_path_refuse(an, FAY_RULE_INS_UNSUPPORTED, "cmpxchg with a register");
	if (!fay_operand_number(an, &rax, width, &expected) ||
	    !fay_operand_number(an, &insn->src, width, &desired) ||
	    !fay_mem_locate(an, &insn->dst, width / 8, true, &access) ||
	    !fay_mem_load(an, &access, &found))
		return false;
	if (found.kind != KIND_SCALAR)
		return fay_path_refuse(an, FAY_RULE_MEM_POINTER, "cmpxchg on a pointer");
	either = fay_value_fresh(an, fay_scalar_join(&found.s, &desired.s));
	if (!fay_mem_store(an, &access, &either))
		return false;
	fay_flags_set_none(an);
	/* On success rax keeps what it held, which is then what was found; width 32 zero-extends on
	 * failure only, so its upper half is as readable as before. */
	if (width == 32) {
		struct fay_value *to = &an->current->loc[FAY_RAX];
		uint8_t init = to->init | 0x0f;

		*to = fay_value_fresh(an, to->init == 0xff && to->s.umax <= UINT32_MAX
						  ? fay_scalar_range(0, UINT32_MAX)
						  : fay_scalar_top());
		to->init = init;
	} else {
		fay_reg_write(an, FAY_RAX, width, fay_value_fresh(an, found.s));
	}
	return true;
}

/* dst = cc ? src : dst: each side learns what its condition says. */
bool fay_transfer_cmov(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_state *s = an->current;
	struct fay_value yes, no, r;
	struct fay_triple t;
	bool may, may_not;

	if (!fay_flags_ready(an, fay_cc_flags((enum fay_cc)insn->cc)))
		return false;
	if (!fay_operand_read(an, &insn->src, insn->width, &yes) ||
	    !fay_operand_read(an, &insn->dst, insn->width, &no))
		return false;
	/* Also without branch refinement: a conditional move waits for its flags, it is not
	 * predicted. */
	may = fay_flags_refine(s, (enum fay_cc)insn->cc, &t) && fay_flags_learn(&yes, &t);
	may_not = fay_flags_refine(s, (enum fay_cc)(insn->cc ^ 1), &t) && fay_flags_learn(&no, &t);
	if (!may && !may_not)
		return false; /* not reachable */
	if (may && may_not) {
		if (yes.kind != no.kind || yes.tag != no.tag) {
			r = fay_value_fresh(an, fay_scalar_top());
			r.kind = KIND_MIXED;
		} else {
			r = yes;
			r.s = fay_scalar_join(&yes.s, &no.s);
			if (yes.id != no.id || yes.delta != no.delta)
				fay_value_forget_name(an, &r);
			if (yes.origin && yes.origin == no.origin) {
				r.origin = yes.origin;
				r.dlo = yes.dlo < no.dlo ? yes.dlo : no.dlo;
				r.dhi = yes.dhi > no.dhi ? yes.dhi : no.dhi;
			}
		}
	} else {
		r = may ? yes : no;
	}
	fay_reg_write(an, insn->dst.reg, insn->width, r);
	return true;
}

bool fay_transfer_setcc(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_scalar s = fay_scalar_range(0, 1);
	struct fay_triple t;

	if (!fay_flags_ready(an, fay_cc_flags((enum fay_cc)insn->cc)))
		return false;
	if (!fay_flags_refine(an->current, (enum fay_cc)insn->cc, &t))
		s = fay_scalar_const(0);
	else if (!fay_flags_refine(an->current, (enum fay_cc)(insn->cc ^ 1), &t))
		s = fay_scalar_const(1);
	return fay_operand_write(an, &insn->dst, 8, fay_value_fresh(an, s));
}
