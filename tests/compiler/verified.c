/* SPDX-License-Identifier: MIT */
/*
 * Linked into a test with --wrap for both functions from which images come: every image that the
 * compiler makes in that test, whatever the test then looks at, is verified at once, and the test
 * ends if one is refused.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fay/verify.h"
#include "xfi-compiler/ir/ir.h"

int __real_fay_unit_compile(LLVMModuleRef module, const struct fay_image_spec *spec,
			    const struct fay_object *objects, unsigned object_count,
			    const struct fay_compile_options *options, unsigned report,
			    struct fay_buffer *image, struct fay_buffer *assembly,
			    struct fay_error *error);
int __wrap_fay_unit_compile(LLVMModuleRef module, const struct fay_image_spec *spec,
			    const struct fay_object *objects, unsigned object_count,
			    const struct fay_compile_options *options, unsigned report,
			    struct fay_buffer *image, struct fay_buffer *assembly,
			    struct fay_error *error);
int __real_fay_compile_module(LLVMModuleRef module, const struct fay_image_spec *spec,
			      const struct fay_compile_options *options, struct fay_buffer *image,
			      struct fay_error *error);
int __wrap_fay_compile_module(LLVMModuleRef module, const struct fay_image_spec *spec,
			      const struct fay_compile_options *options, struct fay_buffer *image,
			      struct fay_error *error);

static void verify(const struct fay_buffer *image)
{
	struct fay_verdict verdict;

	fay_verify(image->data, image->size, NULL, &verdict);
	if (verdict.outcome != FAY_ACCEPTED) {
		fay_verdict_print(stderr, "an image made by this test", &verdict);
		abort();
	}
	fay_verdict_deinit(&verdict);
}

int __wrap_fay_unit_compile(LLVMModuleRef module, const struct fay_image_spec *spec,
			    const struct fay_object *objects, unsigned object_count,
			    const struct fay_compile_options *options, unsigned report,
			    struct fay_buffer *image, struct fay_buffer *assembly,
			    struct fay_error *error)
{
	int result = __real_fay_unit_compile(module, spec, objects, object_count, options, report,
					     image, assembly, error);

	if (!result)
		verify(image);
	return result;
}

int __wrap_fay_compile_module(LLVMModuleRef module, const struct fay_image_spec *spec,
			      const struct fay_compile_options *options, struct fay_buffer *image,
			      struct fay_error *error)
{
	int result = __real_fay_compile_module(module, spec, options, image, error);

	if (!result)
		verify(image);
	return result;
}
