/* SPDX-License-Identifier: MIT */
/*
 * Sums of 32 bits that may wrap. Compilers ask `x >= 1 && x < 64` as `lea -1(%rcx), %eax; cmp $62,
 * %eax; ja`: eax has no exact distance from ecx, but it is ecx - 1 modulo 2^32. So what the branch
 * tells of eax says what ecx is: eax + 1 modulo 2^32, here [1, 63].
 *
 * Notes are of names and of the block in hand, as in transfer_remainder.c: the number N that bears
 * the name is known to be less than 2^32, and its sum is (N + add) modulo 2^32, both for as long as
 * the state lives.
 */
#include "transfer.h"

void fay_wrap_note(struct fay_analysis *an, const struct fay_value *of, uint64_t add,
		   const struct fay_value *sum)
{
	if (insn_of(an)->op == OP_CMP || of->kind != KIND_SCALAR || sum->kind != KIND_SCALAR ||
	    !of->id || !sum->id || sum->id == of->id || of->s.umax > UINT32_MAX ||
	    fay_scalar_is_const(&of->s))
		return;
	an->wraps[an->wrap_count++ % FAY_WRAPS] = (struct fay_wrap){ .sum = sum->id,
								     .sum_delta = sum->delta,
								     .of = of->id,
								     .of_delta = of->delta,
								     .add = (uint32_t)add };
}

static const struct fay_value *known(const struct fay_triple *t, const struct fay_wrap *w)
{
	const struct fay_value *all[] = { &t->a, &t->b, &t->r };

	for (unsigned i = 0; i < 3; i++)
		if (all[i]->kind == KIND_SCALAR && all[i]->id == w->sum &&
		    all[i]->delta == w->sum_delta)
			return all[i];
	return NULL;
}

bool fay_wrap_learn(const struct fay_analysis *an, struct fay_state *s, const struct fay_triple *t)
{
	for (uint32_t k = 0; k < an->wrap_count && k < FAY_WRAPS; k++) {
		const struct fay_wrap *w = &an->wraps[k];
		const struct fay_value *sum = known(t, w);
		struct fay_scalar add = fay_scalar_const(w->add);
		struct fay_triple number = {
			.a = { .kind = KIND_SCALAR, .id = w->of, .delta = w->of_delta }
		};

		if (!sum)
			continue;
		number.a.s = fay_scalar_compute_both(OP_SUB, &sum->s, &add, 32);
		for (uint32_t i = 0; i < s->count; i++)
			if (s->loc[i].id == w->of && !fay_flags_learn(&s->loc[i], &number))
				return false;
	}
	return true;
}
