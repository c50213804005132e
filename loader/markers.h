/* SPDX-License-Identifier: MIT */
/* USDT markers as places to trace, private to loader/: from a marker's note to what its trampoline
 * and its removal need. */
#ifndef FAY_LOADER_MARKERS_H
#define FAY_LOADER_MARKERS_H

#include "operand.h"
#include "relocate.h"
#include "target.h"

#define FAY_MARKER_OPERANDS 6u /* as many as event.arg has */

struct fay_marker_place {
	struct fay_operand operands[FAY_MARKER_OPERANDS];
	uint32_t operand_count;
	char reason[FAY_REASON_MAX]; /* why the marker cannot be traced; "" it can */
};

/* `fields`: what is read of the event. NULL: out of memory. */
struct fay_marker_place *fay_marker_place_create(struct fay_target *target,
						 const struct fay_function *marker,
						 uint32_t fields);
#endif
