/* SPDX-License-Identifier: MIT */
/*
 * Between codegen_bpf.c (what events and state are in a BPF program) and codegen_bpf_object.c (the programs of a query).
 */
#ifndef FAY_QUERY_CODEGEN_BPF_H
#define FAY_QUERY_CODEGEN_BPF_H

#include "codegen.h"

/* What one program is. */
enum fay_bpf_role {
	ROLE_TRACEPOINT,
	ROLE_TIMER,
	ROLE_FUNCTION, /* of the kernel, as it begins or ends */
	ROLE_ENTER, /* a system call begins: the event */
	ROLE_EXIT,  /* it ends: the event */
	ROLE_START, /* it begins: the time is noted for ROLE_EXIT */
	ROLE_CALL,  /* a function of the kernel begins: the time is noted for ROLE_FUNCTION */
	ROLE_FORK,  /* children of traced processes are traced, too */
};

struct fay_codegen_bpf {
	const struct fay_bpf_options *options;
	struct fay_bpf_object *object;
	const struct fay_kernel_source *source;
	const struct fay_btf *btf;
	enum fay_bpf_role role;
	const char *point; /* TRACEPOINT, FUNCTION: its name */
	uint32_t argument_count; /* FUNCTION: words in the context; of one that ends with its value, the last */
	struct fay_btf_result result; /* FUNCTION, as it ends */
	bool guarded;    /* several programs update the state: its busy flag is used */
	uint32_t stride; /* of slots */
	uint32_t maps;   /* 1 << enum fay_bpf_map: used so far */
	/* Of the program that is generated. All lie on the chain of blocks of fay_codegen_expr(). */
	LLVMBasicBlockRef out;
	LLVMValueRef buffer; /* FAY_COMM_SIZE bytes of the stack */
	LLVMValueRef slot, cpu, identity, time, name, number, duration;
};

/* Calls a helper of the kernel by its number. */
LLVMValueRef fay_bpf_helper(struct fay_codegen *g, uint32_t helper, LLVMValueRef *arguments, unsigned count);
/* A map's file descriptor for helpers, or the address of its only value. */
LLVMValueRef fay_bpf_map_reference(struct fay_codegen *g, enum fay_bpf_map map, uint32_t source);
/* What the machine that runs the program puts there. */
LLVMValueRef fay_bpf_machine_value(struct fay_codegen *g, enum fay_bpf_value value);
/* Word `index` of what the tracepoint hands over. */
LLVMValueRef fay_bpf_context(struct fay_codegen *g, uint32_t index);
/* `bytes` at an address, zero-extended. */
LLVMValueRef fay_bpf_load(struct fay_codegen *g, LLVMValueRef address, uint64_t offset, uint32_t bytes);
/* Zeroes the buffer, which strings are read into. */
void fay_bpf_clear_buffer(struct fay_codegen *g);
/* Goes on only if the condition holds, else leaves. */
void fay_bpf_require(struct fay_codegen *g, LLVMValueRef condition);
/* Process id above, thread id below. */
LLVMValueRef fay_bpf_identity(struct fay_codegen *g);
/* Where STARTS keeps the thread's call; leaves if there is no place. */
LLVMValueRef fay_bpf_start_of_thread(struct fay_codegen *g);

#endif
