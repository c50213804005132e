/* SPDX-License-Identifier: MIT */
/* A transaction on a stopped process that goes on to its end whatever becomes of fay: see keeper.c.
 * */
#ifndef FAY_LOADER_KEEPER_H
#define FAY_LOADER_KEEPER_H

#include <stdbool.h>

#include "fay/error.h"

/*
 * Runs the transaction in a process of its own that shares this one's memory and files, and waits
 * for it. Its result, or FAY_E_LIMIT: no process could be made, nothing was done; or
 * FAY_E_INTERNAL: it was killed.
 */
int fay_keeper_run(int (*transaction)(void *context), void *context, struct fay_error *error);
/* Within a transaction: fay is gone, nobody waits for the result. */
bool fay_keeper_orphaned(void);

#endif
