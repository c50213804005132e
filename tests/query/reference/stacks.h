/* SPDX-License-Identifier: MIT */
/* Made-up stacks of a made-up program, for probes that run in this process: its functions, their
 * unwind tables, and what lies on the stack. */
#ifndef FAY_TESTS_QUERY_STACKS_H
#define FAY_TESTS_QUERY_STACKS_H

#include "trees.h"

/* What a probe finds the frames by: its GLOBAL. */
void *stack_tables(void);
/* Gives event number `number` of a stream a stack, and event_frames() what is on it. `called`: at a
 * function's first instruction, else somewhere in it. */
void random_stack(struct fay_event *event, unsigned number, bool called);
/* fay_try_read() of a probe: stacks can be read, nothing else. */
int64_t read_stack(void *to, uint64_t size, uint64_t address);

#endif
