/* SPDX-License-Identifier: MIT */
/*
 * What a probe does with an event, as LLVM IR: conditions, keys, the state's update. The same for
 * native probes and for BPF programs, whose machine (query/emit/bpf_machine/) is asked where they
 * differ.
 */
#ifndef FAY_QUERY_EMIT_PROBE_PROBE_H
#define FAY_QUERY_EMIT_PROBE_PROBE_H

#include "query/emit/ir/ir.h"

/* Begins a probe's function. */
void fay_codegen_begin(struct fay_codegen *g, const char *symbol);
/* What sends pieces of texts, once in a module whose probes read strings whole. */
void fay_codegen_text_emitter(struct fay_codegen *g);
/* From the function's beginning to `leave`, where the caller goes on: conditions, then the state's
 * update. */
void fay_codegen_body(struct fay_codegen *g);
/* Likewise: keeps what the call begins with. */
void fay_codegen_call_begins(struct fay_codegen *g);
/* Lines of the module's code, where functions of C are called: before the first function, at the
 * beginning of each, behind the last. */
void fay_codegen_begin_lines(struct fay_codegen *g);
void fay_codegen_end_lines(struct fay_codegen *g);

#endif
