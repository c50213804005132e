/* SPDX-License-Identifier: MIT */
/*
 * Passes that make of what an author may write what a probe can be, and of what LLVM makes of it
 * what can be proved. In the order of their use (front/module.c):
 *
 *   pointer_calls.c  functions called through pointers
 *   called.c   functions that are not inlined
 *   check.c    refuse what no probe can have, with the source line and what to write instead
 *   define.c   no undefined behaviour left for the optimiser to build on
 *   fill.c     loops that fill bytes
 *   memory.c   memcpy and the like become loads, stores and loops: a probe has no libc
 *   initialise.c arrays on the stack that a loop fills
 *   objects.c  state objects of probe.h (globals in the source) become LOCAL + offset
 *   vector.c   floating point and vectors: which instruction sets, and LLVM's vectorisers
 *   shape.c    last changes for the sake of the proof
 *   plain.c    machine code that shows what the IR knows
 *   highbyte.c no ah, bh, ch, dh
 *   slots.c    helpers called by assembly statements: confined speculation, and fay_flush()
 *
 * Those that return int refuse with an error.
 */
#ifndef FAY_COMPILER_LOWER_LOWER_H
#define FAY_COMPILER_LOWER_LOWER_H

#include "xfi-compiler/ir/ir.h"

/* refuses those that cannot lead to a function of this file */
int fay_lower_pointer_calls(struct fay_unit *unit);
/* a function that stands for a call through a pointer */
bool fay_is_dispatcher(const char *name);
int fay_keep_functions(struct fay_unit *unit); /* large ones that would be inlined many times */
/* after everything else was inlined: their LOCAL and GLOBAL */
void fay_settle_called(struct fay_unit *unit);
bool fay_is_called(LLVMValueRef function);
int fay_check_module(struct fay_unit *unit);     /* as it comes in */
int fay_check_simplified(struct fay_unit *unit); /* after inlining: what is left in the probes */
void fay_define(struct fay_unit *unit);
void fay_fill(struct fay_unit *unit); /* loops that fill bytes as memset, for fay_expand_memory() */
#define FAY_FILL_MAX (64u << 10)
int fay_expand_memory(struct fay_unit *unit);
bool fay_is_compare(const char *name); /* memcmp, which fay_expand_memory() knows */
/* The instruction sets for -march=`march` (NULL: by what the module needs). */
int fay_vectors_choose(struct fay_unit *unit, const char *march, const char **cpu,
		       const char **features);
/* may be called by its LLVM name */
bool fay_vectors_intrinsic(const struct fay_unit *unit, const char *name);
void fay_define_conversion(LLVMBuilderRef b, LLVMValueRef i);
/* State objects lie at multiples of 8, whatever the front end took their globals for. */
void fay_clamp_alignment(struct fay_unit *unit);
int fay_vectorise(struct fay_unit *unit, int (*run_passes)(struct fay_unit *, const char *));
/* fay_object_flush(&table) to fay_flush(local, state) */
int fay_lower_calls(struct fay_unit *unit);
int fay_lower_objects(struct fay_unit *unit);
void fay_shape(struct fay_unit *unit);
/* an address is made of it, through the arithmetic that indices see */
bool fay_feeds_address(LLVMValueRef v);
int fay_initialise_arrays(struct fay_unit *unit);
void fay_make_plain(struct fay_unit *unit);
void fay_avoid_high_bytes(struct fay_unit *unit);
void fay_flush_keeping_registers(struct fay_unit *unit);
int fay_call_through_slots(struct fay_unit *unit);

#endif
