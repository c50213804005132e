/* SPDX-License-Identifier: MIT */
/*
 * Which verified probes are copied into the trampoline instead of being called: short ones whose
 * only ret is their last instruction, that use neither stack nor rip-relative operands nor helpers.
 * The copy is the verified bytes themselves without that ret, nothing is rewritten: jumps within it
 * are relative, and what was verified as returning falls out of the copy's end.
 */
#ifndef FAY_DISPATCHER_INLINE_H
#define FAY_DISPATCHER_INLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fay_inline {
	bool possible;
	size_t size; /* bytes before the ret */
	/*
	 * Memory other than the event is touched by one instruction at most, or only by such as add
	 * to it and keep nothing of it: then the same probe run by a signal handler between any two
	 * of its instructions does no harm. That holds only if all probes of the image are so:
	 * another one may keep a value of the state in a register.
	 */
	bool reentrant;
};

/* `code`: the probe's first instruction; `available` bytes up to the end of the image's code. */
struct fay_inline fay_inline_judge(const uint8_t *code, size_t available);

#endif
