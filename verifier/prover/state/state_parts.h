/* SPDX-License-Identifier: MIT */
/* What the files on states share: state.c (values, states, inclusion), state_join.c (names, joins),
 * state_stack.c (slots). */
#ifndef FAY_VERIFIER_STATE_PARTS_H
#define FAY_VERIFIER_STATE_PARTS_H

#include "state.h"

#define ID_CONSTANT UINT32_MAX /* in keys of joins: the number itself, named by its value */

/* A value's name for comparing: constants are named by themselves. Returns the id, 0 if it has
 * none. */
static inline uint32_t name_of(const struct fay_value *v, uint64_t *delta)
{
	if (!fay_value_numeric(v) || v->init != 0xff) {
		*delta = 0;
		return 0;
	}
	if (fay_scalar_is_const(&v->s)) {
		*delta = v->s.umin;
		return ID_CONSTANT;
	}
	*delta = v->delta;
	return v->id;
}

static inline struct fay_value uninit_slot(void)
{
	struct fay_value v = fay_value_uninit();

	v.size = 4;
	return v;
}

/* state_stack.c: `upper` is the KIND_UPPER slot; the one below it in memory is the next in number.
 * Both become 4-byte ones. */
void fay_state_split_slot(struct fay_state *s, uint32_t upper);

#endif
