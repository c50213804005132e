/* SPDX-License-Identifier: MIT */
/* What the files on forms share: form.c, range.c, learn.c. */
#ifndef FAY_CHECKER_FORM_H
#define FAY_CHECKER_FORM_H

#include "state.h"

#define POWER(n) ((wide)1 << (n))
#define UNKNOWN POWER(126) /* beyond what any word's form comes to */

void range_meet(struct range *r, wide lo, wide hi);
/* k times [lo, hi], added to *r. False: too large. */
bool range_add(struct range *r, wide k, struct range by);
uint64_t common_factor(uint64_t a, uint64_t b);
void var_set(struct var *v, wide lo, wide hi);

#endif
