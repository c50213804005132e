/* SPDX-License-Identifier: MIT */
/*
 * The kernel's machine: where the code of a BPF program differs from a native probe's. An event's
 * fields come from the kernel's helpers, from the tracepoint's arguments and from the structures
 * that they point to; the state is the processor's slot in a map; there is a ring for rows;
 * summaries are computed in place; and what indexes memory must be bounded in a way that the
 * kernel's verifier sees.
 */
#ifndef FAY_QUERY_EMIT_BPF_MACHINE_BPF_MACHINE_H
#define FAY_QUERY_EMIT_BPF_MACHINE_BPF_MACHINE_H

#include "fay/bpf.h"
#include "query/emit/ir/ir.h"

/* What one program is. */
enum fay_bpf_role {
	ROLE_TRACEPOINT,
	ROLE_TIMER,
	ROLE_FUNCTION, /* of the kernel, as it begins or ends */
	ROLE_ENTER,    /* a system call begins: the event */
	ROLE_EXIT,     /* it ends: the event */
	ROLE_START,    /* it begins: the time is noted for ROLE_EXIT */
	ROLE_EXECUTE,  /* execve begins: its arguments are noted for ROLE_EXIT */
	ROLE_CALL,     /* a function of the kernel begins: the time is noted for ROLE_FUNCTION */
	ROLE_FORK,     /* children of traced processes are traced, too */
	ROLE_TRAP,     /* a place in a program */
};

struct fay_codegen_bpf {
	const struct fay_bpf_options *options;
	struct fay_bpf_object *object;
	const struct fay_kernel_source *source;
	const struct btf *btf;
	enum fay_bpf_role role;
	const char *point;           /* TRACEPOINT, FUNCTION, TRAP: its name */
	const struct fay_trap *trap; /* TRAP; else NULL */
	uint32_t function;           /* TRAP: the number of its function's first program */
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
	LLVMValueRef begun;        /* EXIT: the arguments in memory; NULL: in the registers */
	LLVMValueRef arguments[6]; /* that a trapped call began with, if they are asked for */
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

/* trap.c: a call begins in a program: what its end asks for is kept. 0: there was room. And the one
 * that ends: leaves if none is kept; or one that ends with the instruction that it begins with. */
LLVMValueRef fay_bpf_keep_call(struct fay_codegen *g);
void fay_bpf_take_kept(struct fay_codegen *g);
void fay_bpf_take_begun(struct fay_codegen *g);
/* Leaves if the jump at the trap is a conditional one that is not taken. */
void fay_bpf_require_jump(struct fay_codegen *g);
/* Where the jump there leads; 0: that cannot be read. Leaves if it leads into the function. */
LLVMValueRef fay_bpf_trap_target(struct fay_codegen *g);
void fay_bpf_require_outside(struct fay_codegen *g, LLVMValueRef target);
/* An event's field or argument. */
struct fay_operand_value fay_bpf_leaf(struct fay_codegen *g, const struct fay_expr *expr);
/* What lies at an address; behind a null pointer, zero. */
struct fay_operand_value fay_bpf_member(struct fay_codegen *g, LLVMValueRef address,
					struct fay_access access);
LLVMValueRef fay_bpf_time(struct fay_codegen *g);
/* A system call's argument. */
LLVMValueRef fay_bpf_syscall_argument(struct fay_codegen *g, uint32_t index);
/* So many words of the program's stack. */
LLVMValueRef fay_bpf_stack_words(struct fay_codegen *g, uint32_t words);
/* Walks the stack: a pointer to as many frames as `expr` has. And one of its words. */
LLVMValueRef fay_bpf_frames(struct fay_codegen *g, const struct fay_expr *expr);
LLVMValueRef fay_bpf_word(struct fay_codegen *g, LLVMValueRef memory, uint32_t offset);
/* Finds the processor's state: g->local. Leaves if it is in use. */
void fay_bpf_enter(struct fay_codegen *g);
/* Room for a row in the ring, zeroed if `zeroed`. Leaves, the event counted as lost, if there is
 * none. */
LLVMValueRef fay_bpf_reserve(struct fay_codegen *g, bool zeroed);
void fay_bpf_submit(struct fay_codegen *g, LLVMValueRef row);
/* Hands on `size` bytes at `record` as they are; not 0: there was no room. */
LLVMValueRef fay_bpf_send(struct fay_codegen *g, LLVMValueRef record, LLVMValueRef size);
/* The value, which the optimiser cannot see through. */
LLVMValueRef fay_bpf_hide(struct fay_codegen *g, LLVMValueRef value);
/* Such a value, limited to `limit`: the kernel's verifier knows its bounds then. */
LLVMValueRef fay_bpf_limit(struct fay_codegen *g, LLVMValueRef value, uint64_t limit);
/* What was stored before is seen before what is stored afterwards. */
void fay_bpf_order(struct fay_codegen *g);
/* x / y or x % y, y neither 0 nor -1: the machine divides unsigned numbers only. */
LLVMValueRef fay_bpf_divide(struct fay_codegen *g, LLVMValueRef x, LLVMValueRef y, bool quotient);
/* Feeds x to a summary. */
void fay_bpf_sketch(struct fay_codegen *g, const struct fay_aggregate *aggregate,
		    LLVMValueRef column, LLVMValueRef x);
/* 32 bits of the square of x, which has 128. */
LLVMValueRef fay_bpf_square_part(struct fay_codegen *g, LLVMValueRef x, int part);

#endif
