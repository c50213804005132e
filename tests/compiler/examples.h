/* SPDX-License-Identifier: MIT */
/* A probe of examples/probes, compiled and mapped: see harness.h. */
#ifndef FAY_TEST_EXAMPLES_H
#define FAY_TEST_EXAMPLES_H

#include "harness.h"

/* Compiles it twice (the bytes must be the same), verifies and maps it. One at a time. */
void example_open(const char *name, struct loaded *loaded);
void example_close(struct loaded *loaded);
uint64_t example_word(struct loaded *loaded, const char *state, unsigned index);
/* Value of the first value column, over the table and what was flushed, for one first key word. */
uint64_t example_total(struct loaded *loaded, const char *table, uint64_t key);

#endif
