/* SPDX-License-Identifier: MIT */
/*
 * Between the parts that make BPF programs of a query: codegen_bpf.c (what events and state are in
 * one), codegen_bpf_filter.c (whose events), codegen_bpf_program.c (one program),
 * codegen_bpf_object.c (the programs of a query) and codegen_bpf_emit.c (LLVM's BPF target).
 */
#ifndef FAY_QUERY_CODEGEN_BPF_H
#define FAY_QUERY_CODEGEN_BPF_H

#include "codegen.h"

/* What one program is. */
enum fay_bpf_role {
	ROLE_TRACEPOINT,
	ROLE_TIMER,
	ROLE_FUNCTION, /* of the kernel, as it begins or ends */
	ROLE_ENTER,    /* a system call begins: the event */
	ROLE_EXIT,     /* it ends: the event */
	ROLE_START,    /* it begins: the time is noted for ROLE_EXIT */
	ROLE_CALL,     /* a function of the kernel begins: the time is noted for ROLE_FUNCTION */
	ROLE_FORK,     /* children of traced processes are traced, too */
};

struct fay_codegen_bpf {
	const struct fay_bpf_options *options;
	struct fay_bpf_object *object;
	const struct fay_kernel_source *source;
	const struct fay_btf *btf;
	enum fay_bpf_role role;
	const char *point; /* TRACEPOINT, FUNCTION: its name */
	/* FUNCTION: words in the context; of one that ends with its value, the last */
	uint32_t argument_count;
	struct fay_btf_result result; /* FUNCTION, as it ends */
	bool guarded;                 /* several programs update the state: its busy flag is used */
	uint32_t stride;              /* of slots */
	uint32_t maps;                /* 1 << enum fay_bpf_map: used so far */
	/* Of the program that is generated. All lie on the chain of blocks of fay_codegen_expr().
	 * */
	LLVMBasicBlockRef out;
	LLVMValueRef buffer; /* FAY_COMM_SIZE bytes of the stack */
	LLVMValueRef slot, cpu, identity, time, name, number, duration;
};

/* Calls a helper of the kernel by its number. */
LLVMValueRef fay_bpf_helper(struct fay_codegen *g, uint32_t helper, LLVMValueRef *arguments,
			    unsigned count);
/* A map's file descriptor for helpers, or the address of its only value. */
LLVMValueRef fay_bpf_map_reference(struct fay_codegen *g, enum fay_bpf_map map, uint32_t source);
/* What the machine that runs the program puts there. */
LLVMValueRef fay_bpf_machine_value(struct fay_codegen *g, enum fay_bpf_value value);
/* Word `index` of what the tracepoint hands over. */
LLVMValueRef fay_bpf_context(struct fay_codegen *g, uint32_t index);
/* `bytes` at an address, zero-extended. */
LLVMValueRef fay_bpf_load(struct fay_codegen *g, LLVMValueRef address, uint64_t offset,
			  uint32_t bytes);
/* Zeroes the buffer, which strings are read into. */
void fay_bpf_clear_buffer(struct fay_codegen *g);
/* Goes on only if the condition holds, else leaves. */
void fay_bpf_require(struct fay_codegen *g, LLVMValueRef condition);
/* Process id above, thread id below. */
LLVMValueRef fay_bpf_identity(struct fay_codegen *g);
/* Where STARTS keeps the thread's call; leaves if there is no place. */
LLVMValueRef fay_bpf_start_of_thread(struct fay_codegen *g);

/* --- codegen_bpf_filter.c --- */
/* Programs of 32 bits have another table of system calls: leaves if the event is of one. */
void fay_bpf_require_native(struct fay_codegen *g);
/* Leaves unless the event is of a process and thread that is asked for. false: the kernel's types
 * lack what is needed. */
bool fay_bpf_require_process(struct fay_codegen *g);
/* Whether children of traced processes are traced, too. */
bool fay_bpf_is_followed(const struct fay_bpf_options *options);
/* All that a program of sched_process_fork does. false: as above. */
bool fay_bpf_note_child(struct fay_codegen *g);

/* --- codegen_bpf_program.c --- */
/* Generates the program that g->bpf->role and ->point say, in a section of its own. false: the
 * kernel's types lack what is needed. */
bool fay_bpf_program(struct fay_codegen *g, const char *section);

/* --- codegen_bpf_top.c --- */
/* Feeds x to the `k` counters of a TOP column. */
void fay_bpf_top(struct fay_codegen *g, uint64_t k, LLVMValueRef column, LLVMValueRef x);

/* --- codegen_bpf_emit.c --- */
/* Compiles the module; each program's instructions into the object's. */
int fay_bpf_emit(struct fay_codegen *g, struct fay_bpf_object *object, struct fay_error *error);

#endif
