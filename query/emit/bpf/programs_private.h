/* SPDX-License-Identifier: MIT */
/*
 * Between the files that make BPF programs of a query: object.c (the programs of a query),
 * program.c (one program), filter.c (whose events), executed.c (calls that end in another program)
 * and emit.c (LLVM's BPF target). What they offer is fay_plan_generate_bpf() of fay/query.h.
 */
#ifndef FAY_QUERY_EMIT_BPF_PROGRAMS_PRIVATE_H
#define FAY_QUERY_EMIT_BPF_PROGRAMS_PRIVATE_H

#include "query/emit/bpf_machine/bpf_machine.h"
#include "query/emit/probe/probe.h"

/* --- filter.c --- */
/* Programs of 32 bits have another table of system calls: leaves if the event is of one. */
void fay_bpf_require_native(struct fay_codegen *g);
/* Leaves unless the event is of a process and thread that is asked for. false: the kernel's types
 * lack what is needed. */
bool fay_bpf_require_process(struct fay_codegen *g);
/* Leaves unless the process of a trap still runs the program in which it was set. false: as
 * above. */
bool fay_bpf_require_program(struct fay_codegen *g);
/* Whether children of traced processes are traced, too. */
bool fay_bpf_is_followed(const struct fay_bpf_options *options);
/* All that a program of sched_process_fork does. false: as above. */
bool fay_bpf_note_child(struct fay_codegen *g);

/* The thread's task_struct; and where a member of a structure of the kernel's lies, which is noted
 * in the object. NULL: the kernel's types do not say. */
LLVMValueRef fay_bpf_current_task(struct fay_codegen *g);
LLVMValueRef fay_bpf_member_offset(struct fay_codegen *g, LLVMValueRef object,
				   const char *structure, const char *name, uint32_t *offset);

/* --- executed.c --- */
/* Whether execve's arguments are noted as it begins, for when it has succeeded. */
bool fay_bpf_notes_executed(const struct fay_plan_private *p);
/* All that a program of sys_enter does that notes them. */
void fay_bpf_note_executed(struct fay_codegen *g);
/* What the call began with, into g->bpf->begun. */
void fay_bpf_take_executed(struct fay_codegen *g);

/* --- program.c --- */
/* Generates the program that g->bpf->role and ->point say, in a section of its own. false: the
 * kernel's types lack what is needed. */
bool fay_bpf_program(struct fay_codegen *g, const char *section);

/* --- emit.c --- */
/* Compiles the module; the instructions of its programs into the object's. */
int fay_bpf_emit(struct fay_codegen *g, struct fay_bpf_object *object, struct fay_error *error);

#endif
