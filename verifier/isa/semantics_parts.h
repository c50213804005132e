/* SPDX-License-Identifier: MIT */
/* Short names for the files of the semantics: semantics.c, semantics_bits.c, semantics_multiply.c.
 * */
#ifndef FAY_VERIFIER_SEMANTICS_PARTS_H
#define FAY_VERIFIER_SEMANTICS_PARTS_H

#include "fay/verify.h"
#include "semantics.h"

static const struct fay_operand rax = {
	.kind = OPERAND_REG, .reg = FAY_RAX, .base = FAY_NO_REG, .index = FAY_NO_REG
};
static const struct fay_operand rdx = {
	.kind = OPERAND_REG, .reg = FAY_RDX, .base = FAY_NO_REG, .index = FAY_NO_REG
};

static inline struct fay_term read(struct fay_semantics *s, const struct fay_operand *o,
				   unsigned width)
{
	return s->ops->read(s, o, width);
}

static inline void write(struct fay_semantics *s, const struct fay_operand *o, unsigned width,
			 struct fay_term v)
{
	s->ops->write(s, o, width, v);
}

static inline struct fay_term always(void)
{
	return fay_term_bool(true);
}

static inline struct fay_term top_bit(struct fay_semantics *s, struct fay_term a)
{
	return fay_term_bit(s, a, a.width - 1u);
}

#endif
