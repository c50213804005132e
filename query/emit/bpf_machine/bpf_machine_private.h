/* SPDX-License-Identifier: MIT */
/* Between the files of the kernel's machine. */
#ifndef FAY_QUERY_EMIT_BPF_MACHINE_BPF_MACHINE_PRIVATE_H
#define FAY_QUERY_EMIT_BPF_MACHINE_BPF_MACHINE_PRIVATE_H

#include "bpf_machine.h"

/* --- machine.c --- */
LLVMValueRef fay_bpf_processor(struct fay_codegen *g);

/* --- trap.c: where g->bpf->trap is one --- */
/* `bytes` of the program's memory, zero-extended; 0 where they cannot be read. */
LLVMValueRef fay_bpf_user_word(struct fay_codegen *g, LLVMValueRef address, uint32_t bytes);
LLVMValueRef fay_bpf_trap_argument(struct fay_codegen *g, uint32_t index);
LLVMValueRef fay_bpf_trap_caller(struct fay_codegen *g);
LLVMValueRef fay_bpf_trap_result(struct fay_codegen *g);

/* --- top.c --- */
/* Feeds x to the `k` counters of a TOP column. */
void fay_bpf_top(struct fay_codegen *g, uint64_t k, LLVMValueRef column, LLVMValueRef x);

#endif
