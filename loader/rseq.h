/* SPDX-License-Identifier: MIT */
/* Restartable sequences (rseq(2)): stretches of code that the kernel leaves for their abort
 * handlers when the thread is interrupted in them. See rseq.c. */
#ifndef FAY_LOADER_RSEQ_H
#define FAY_LOADER_RSEQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fay/error.h"
#include "stop.h"
#include "target.h"

#define FAY_RSEQ_MAX 16384u /* sections of a process that are looked at */

/* A section [start, end), or an abort handler (start == end). */
struct fay_rseq {
	uint64_t start, end;
	uint64_t reach; /* the largest end of this one and those before it */
};
struct fay_rseqs {
	struct fay_rseq *items; /* sorted by start */
	size_t count;
};

/* Each stopped thread that is in a section goes to its abort handler, as the kernel would have it
 * go on its way back to the program. */
void fay_rseq_abort(struct fay_stop *stop);

/*
 * The sections that the target's opened modules list, as `memory` (/proc/PID/mem) has them. What is
 * no valid section is passed over. FAY_E_LIMIT: more than FAY_RSEQ_MAX, or out of memory; *rseqs is
 * empty then.
 */
int fay_rseqs_read(const struct fay_target *target, int memory, struct fay_rseqs *rseqs,
		   struct fay_error *error);
/*
 * Whether instructions at [address, address + length) cannot run elsewhere: some are in a section,
 * an abort handler begins amidst them, or a section begins right behind them, whose last step
 * before it (naming the section) would be followed by a jump that is outside of it.
 */
bool fay_rseqs_touch(const struct fay_rseqs *rseqs, uint64_t address, uint64_t length);
void fay_rseqs_deinit(struct fay_rseqs *rseqs);

#endif
