/* SPDX-License-Identifier: MIT */
/*
 * Functions that generated probes call, compiled to LLVM bitcode when Fay is built: reads of memory
 * (reads.c), variables that are computed (compute.c), whole strings (texts.c), walks of stacks
 * (stacks.c) and summaries (sketches.c). They
 * are linked into a query's module, guarded and verified with it, and see nothing but what a probe
 * may see.
 */
#ifndef FAY_QUERY_RUNTIME_RUNTIME_H
#define FAY_QUERY_RUNTIME_RUNTIME_H

#include <stdint.h>

/* Bitcode of the functions that probes call: from one address to the other. */
extern const char fay_query_sketches[], fay_query_sketches_end[], fay_query_reads[],
	fay_query_reads_end[], fay_query_computing[], fay_query_computing_end[], fay_query_stacks[],
	fay_query_stacks_end[], fay_query_texts[], fay_query_texts_end[];
/* The same of texts_bpf.c, which BPF programs call. */
extern const char fay_query_texts_bpf[], fay_query_texts_bpf_end[];

#endif
