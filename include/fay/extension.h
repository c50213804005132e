/* SPDX-License-Identifier: MIT */
/*
 * C files whose functions a query calls: `extend "my.c"`. A file is compiled by clang-19, as `fay
 * cc` does; its functions are linked into the query's module and guarded, optimised and verified
 * with it. They see their parameters and the file's constants, nothing else.
 */
#ifndef FAY_EXTENSION_H
#define FAY_EXTENSION_H

#include <stdbool.h>
#include <stdint.h>

#include <llvm-c/Types.h>

#include "fay/error.h"

#define FAY_EXTENSION_PARAMETERS 6u
/* A module calls the function f by the symbol "extend.f". */
#define FAY_EXTENSION_PREFIX "extend."

enum fay_extension_kind {
	FAY_EXTENSION_INTEGER, /* char to long long, enumerations */
	FAY_EXTENSION_BOOL,
	FAY_EXTENSION_STRING, /* char *: the bytes, ending with a NUL */
};

struct fay_extension_type {
	enum fay_extension_kind kind;
	uint8_t bits; /* INTEGER */
	bool is_signed;
};

struct fay_extension_function {
	char *name;
	char *unfit; /* why no query can call it, as in "f `takes a float`"; NULL: one can */
	uint32_t parameter_count;
	struct fay_extension_type result, parameters[FAY_EXTENSION_PARAMETERS];
};

struct fay_extension {
	char *path;
	/* those that are not static, in the file's order */
	struct fay_extension_function *functions;
	uint32_t function_count;
	void *bitcode;
};

/* Compiles the file; *extension is to be given to fay_extension_close(). Errors name the file;
 * clang's own messages go to standard error. */
int fay_extension_open(const char *path, struct fay_extension **extension, struct fay_error *error);
void fay_extension_close(struct fay_extension *extension);
/* Adds to `module` the functions that it calls and what these need. Refused with file, line and
 * caret: variables that are written, helpers of probes. */
int fay_extension_link(const struct fay_extension *extension, LLVMModuleRef module,
		       struct fay_error *error);

#endif
