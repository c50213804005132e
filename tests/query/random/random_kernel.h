/* SPDX-License-Identifier: MIT */
/* Random queries as BPF programs. */
#ifndef FAY_TESTS_QUERY_RANDOM_KERNEL_H
#define FAY_TESTS_QUERY_RANDOM_KERNEL_H

/* So many, each over 25 streams: the prefixes of a stream of system calls that a child makes.
 * Returns how many pairs there were. */
unsigned run_kernel_queries(unsigned queries);

#endif
