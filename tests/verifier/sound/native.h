/* SPDX-License-Identifier: MIT */
/*
 * Runs accepted images on the CPU, one instruction at a time, and checks what the report promised.
 * See native.c.
 */
#ifndef FAY_TESTS_NATIVE_H
#define FAY_TESTS_NATIVE_H

#include <stddef.h>
#include <stdint.h>

#include "fay/verify.h"

/* Once a process: signal handlers and their stack. Returns 0, or -1 with a message on standard
 * error. */
int native_init(void);

/*
 * Runs each probe of an accepted image `runs` times (an even number) on inputs made from `seed`.
 * Returns NULL, or a description of the broken promise, static. *steps is increased by the number
 * of instructions that ran. A run of more than 20,000 instructions is ended there and counts as
 * kept.
 */
const char *native_check(const void *file, size_t size, const struct fay_verdict *verdict,
			 uint64_t seed, unsigned runs, uint64_t *steps);

#endif
