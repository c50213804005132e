/* SPDX-License-Identifier: MIT */
/*
 * The XFI compiler: LLVM IR to a guarded, optimised probe image. Untrusted: the verifier believes
 * nothing of it.
 */
#ifndef FAY_COMPILER_H
#define FAY_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#include <llvm-c/Types.h>

#include "fay/error.h"
#include "fay/image.h"

struct fay_buffer {
	void *data; /* malloc'ed */
	size_t size;
};
static inline void fay_buffer_init(struct fay_buffer *buffer)
{
	buffer->data = NULL;
	buffer->size = 0;
}
void fay_buffer_deinit(struct fay_buffer *buffer);

/* What becomes of the tables of the image: the part that is not code. Strings are the caller's. */
struct fay_spec_probe {
	const char *pattern;
	enum fay_probe_kind kind;
	/* name of the function in the module: void (ptr event, ptr local, ptr global) */
	const char *symbol;
	uint64_t parameter;
};
struct fay_spec_column {
	const char *name;
	enum fay_column_type type;
	enum fay_merge merge;
	uint32_t offset, size;
	int64_t param[2];
};
struct fay_spec_state {
	const char *name;
	enum fay_state_kind kind;
	enum fay_state_scope scope;
	uint32_t offset, size, rows, row_size, first_column;
	uint16_t keys, values;
};
struct fay_image_spec {
	uint32_t local_size, global_size;
	const struct fay_spec_probe *probes;
	uint32_t probe_count;
	const struct fay_spec_state *states;
	uint32_t state_count;
	const struct fay_spec_column *columns;
	uint32_t column_count;
};

/* What became of the accesses and loops of a module. */
struct fay_compile_counts {
	unsigned accesses; /* all, with what became of them: */
	unsigned constant; /* no guard: the address is a constant */
	unsigned in_range; /* no guard: the index provably stays inside */
	unsigned merged;   /* uses of a guard that was there already */
	unsigned masks;    /* guards: one instruction */
	unsigned clamps;   /* guards: comparison and conditional move */
	unsigned checks;   /* guards: comparison and branch */
	unsigned hoisted;  /* of these guards, how many stand outside the access's loop */
	/* loops whose bound is clamped before they begin, so that their counter needs no guard */
	unsigned shortened;
	unsigned fuels;     /* loops that count their rounds */
	unsigned bounded;   /* loops whose end can be shown */
	unsigned divisions; /* made safe for any divisor */
};

/* Attribute of a function of the module that is called, not inlined. Its first arguments are a
 * probe's; instead of GLOBAL there may be a number. */
#define FAY_CALLED "fay-called"

struct fay_compile_options {
	size_t size;     /* sizeof(struct fay_compile_options) */
	int debug_lines; /* -g: write .fay.lines from the module's debug information */
	/* "general", "x86-64", "x86-64-v2", "x86-64-v3" (vectorises, too). NULL: general registers,
	 * x86-64 if the module has floating point or vectors */
	const char *march;
	/* a loop whose end cannot be shown does not count its rounds: whether it ends is for the
	 * verifier to see */
	int unfuelled;
	/* no access rests on a branch alone: the image passes `speculation: confined` */
	int confined;
	struct fay_compile_counts *counts; /* filled in if not NULL */
};

/*
 * Guards, optimises (-O2), generates code and writes the image. The module may call only the
 * functions it defines and the helpers of fay/image.h (declared, default linkage). It is consumed
 * (disposed of) in every case.
 */
int fay_compile_module(LLVMModuleRef module, const struct fay_image_spec *spec,
		       const struct fay_compile_options *options, struct fay_buffer *image,
		       struct fay_error *error);
/* probe.c (include/fay/probe.h) through clang-19 into bitcode, its declarations into a spec, then
 * as above. */
int fay_compile_source(const char *path, const struct fay_compile_options *options,
		       struct fay_buffer *image, struct fay_error *error);
/* The `fay cc` command and the fay-cc program. */
int fay_cc_main(int argc, char **argv);

#endif
