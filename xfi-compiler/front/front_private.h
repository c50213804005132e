/* SPDX-License-Identifier: MIT */
/*
 * Between the files of the compiler's front: from C (source.c) and what probe.h declares in it
 * (declarations.c), or from a module, to an image (module.c has the order of things); functions of
 * C that a query calls (extension.c); `fay cc` (cc_main.c). What they offer is fay/compiler.h and
 * fay/extension.h.
 */
#ifndef FAY_COMPILER_FRONT_FRONT_PRIVATE_H
#define FAY_COMPILER_FRONT_FRONT_PRIVATE_H

#include "xfi-compiler/ir/ir.h"

/* fay_compile_module() with state objects; report fills in the figures. Consumes the module. */
int fay_unit_compile(LLVMModuleRef module, const struct fay_image_spec *spec,
		     const struct fay_object *objects, unsigned object_count,
		     const struct fay_compile_options *options, unsigned report,
		     struct fay_buffer *image, struct fay_buffer *assembly,
		     struct fay_error *error);

/* Declarations of probe.h in a module, as a spec with objects; everything is owned by the struct.
 * */
struct fay_declarations {
	struct fay_image_spec spec;
	struct fay_spec_probe *probes;
	struct fay_spec_state *states;
	struct fay_spec_column *columns;
	struct fay_object *objects;
	unsigned object_count;
	char **strings;
	size_t string_count;
};
int fay_declarations_read(LLVMModuleRef module, struct fay_declarations *declarations,
			  struct fay_error *error);
void fay_declarations_deinit(struct fay_declarations *declarations);

/* The C file, through clang-19, as a module in `context`. */
int fay_source_module(const char *path, const char *const *clang_arguments,
		      unsigned clang_argument_count, LLVMContextRef context, LLVMModuleRef *module,
		      struct fay_error *error);
int fay_source_compile(const char *path, const struct fay_compile_options *options, unsigned report,
		       const char *const *clang_arguments, unsigned clang_argument_count,
		       struct fay_buffer *image, struct fay_buffer *assembly,
		       struct fay_error *error);
/* An extension (fay/host/entry.h) to a file: clang's, without guards. */
int fay_source_extension(const char *path, const char *const *clang_arguments,
			 unsigned clang_argument_count, const char *output,
			 struct fay_error *error);

#endif
