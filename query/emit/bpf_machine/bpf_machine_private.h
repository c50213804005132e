/* SPDX-License-Identifier: MIT */
/* Between the files of the kernel's machine. */
#ifndef FAY_QUERY_EMIT_BPF_MACHINE_BPF_MACHINE_PRIVATE_H
#define FAY_QUERY_EMIT_BPF_MACHINE_BPF_MACHINE_PRIVATE_H

#include "bpf_machine.h"

/* Feeds x to the `k` counters of a TOP column. */
void fay_bpf_top(struct fay_codegen *g, uint64_t k, LLVMValueRef column, LLVMValueRef x);

#endif
