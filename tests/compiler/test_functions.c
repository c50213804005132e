/* SPDX-License-Identifier: MIT */
/* Large functions are called, not copied: the image has one body each and calls of it, is verified,
 * and does what the same source does natively. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

#define KEPT_NATIVE
#include "kept.probe.c"

static void test_kept(void **unused)
{
	struct fay_compile_options options = { .size = sizeof(options) };
	struct fay_buffer image;
	struct fay_error error = { 0 };
	struct loaded l;

	fay_buffer_init(&image);
	if (fay_compile_source(FAY_KEPT, &options, &image, &error))
		fail_msg("%s", error.message);
	image_verify("kept.probe.c", &image);
	image_load(&image, &l);
	assert_in_range(l.text_size, 1, 6000); /* each body once; 10,261 if inlined */
	for (uint64_t i = 0; i < 20; i++) {
		for (unsigned k = 0; k < 3; k++)
			l.event->arg[k] = (i + 1) * (k + 3) * UINT64_C(0x123456789abcd);
		l.event->retval = i * 77;
		image_call(&l, 0);
		image_call(&l, 1);
		at_entry(l.event->arg);
		at_return(l.event->retval);
		assert_memory_equal(l.local, &s, sizeof(s));
	}
	image_unload(&l);
	fay_buffer_deinit(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_kept) };

	return cmocka_run_group_tests_name("compiler functions", tests, NULL, NULL);
}
