/* SPDX-License-Identifier: MIT */
/*
 * rep movs and rep stos: as many single moves as rcx says, which must be one known number, small
 * enough to be followed one by one.
 *
 * The direction flag is clear at entry (include/fay/event.h) and nothing in the subset changes it,
 * so elements are moved upward, one after the other, and places that overlap behave as the moves do
 * here.
 */
#include "transfer.h"

#include <string.h>

/* The place of `count` elements from register `reg` on. */
static bool place(struct fay_analysis *an, unsigned reg, unsigned bytes, bool write,
		  struct fay_access *access)
{
	struct fay_value at;

	return fay_reg_read(an, reg, 64, &at) &&
	       fay_mem_resolve(an, &at, bytes, write, true, access) && access->proved;
}

static struct fay_access element(const struct fay_access *all, unsigned index, unsigned size)
{
	struct fay_access one = *all;
	struct fay_scalar offset = fay_scalar_const((uint64_t)index * size);

	one.offset = fay_scalar_add(&all->offset, &offset);
	one.size = size;
	return one;
}

static bool advance(struct fay_analysis *an, unsigned reg, unsigned bytes)
{
	struct fay_value at, by = fay_value_constant(an, bytes), r;

	if (!fay_reg_read(an, reg, 64, &at) || !fay_value_arithmetic(an, OP_ADD, &at, &by, 64, &r))
		return false;
	fay_reg_write(an, reg, 64, r);
	return true;
}

static bool move_all(struct fay_analysis *an, const struct fay_insn *insn, unsigned count)
{
	unsigned size = insn->width / 8;
	struct fay_access to, from;
	struct fay_value v;
	bool copy = insn->op == OP_REP_MOVS;

	memset(&from, 0, sizeof(from));
	if (!place(an, FAY_RDI, count * size, true, &to) ||
	    (copy && !place(an, FAY_RSI, count * size, false, &from)))
		return false;
	if (!copy && !fay_operand_read(an, &insn->src, insn->width, &v))
		return false;
	for (unsigned i = 0; i < count; i++) {
		struct fay_access into = element(&to, i, size), source = element(&from, i, size);

		if (copy && !fay_mem_load(an, &source, &v))
			return false;
		if (!fay_mem_store(an, &into, &v))
			return false;
	}
	return true;
}

bool fay_transfer_string(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_value count;
	unsigned n;

	if (!fay_reg_read(an, FAY_RCX, 64, &count))
		return false;
	if (count.kind != KIND_SCALAR || !fay_scalar_is_const(&count.s) ||
	    count.s.umin > FAY_MAX_STRING)
		return fay_path_refuse(an, FAY_RULE_TRM_LOOP,
				       "%s, whose count is not a known constant of at most %u",
				       fay_op_table[insn->op].name, FAY_MAX_STRING);
	n = (unsigned)count.s.umin;
	if (an->checking && an->moves)
		an->moves[an->node] += n;
	if (n && !move_all(an, insn, n))
		return false;
	fay_reg_write(an, FAY_RCX, 64, fay_value_constant(an, 0));
	return advance(an, FAY_RDI, n * insn->width / 8) &&
	       (insn->op == OP_REP_STOS || advance(an, FAY_RSI, n * insn->width / 8));
}
