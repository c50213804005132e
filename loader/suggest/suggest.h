/* SPDX-License-Identifier: MIT */
/* "Did you mean": a better message for a pattern that matched nothing. Not trusted: nothing is
 * decided by it. */
#ifndef FAY_LOADER_SUGGEST_H
#define FAY_LOADER_SUGGEST_H

#include "fay/loader.h"

/* If the error is that a pattern matched nothing in the target, its message then names the nearest
 * names, why the name itself cannot be traced, or the modules there are. */
void fay_suggest(struct fay_target *target, struct fay_error *error);

#endif
