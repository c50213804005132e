/* SPDX-License-Identifier: MIT */
/* fay_compile_module() on IR text: what a query's code generator hands over. Guards on hostile
 * indices, raw LOCAL, divisions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>

#include "harness.h"

static struct fay_spec_probe probe = { "libc!read", FAY_PROBE_ENTRY, "p", 0 };
static struct fay_spec_column column = { "n", FAY_TYPE_U64, FAY_MERGE_COUNT, 0, 8, { 0, 0 } };
static struct fay_spec_state state = { "n", FAY_STATE_CELL, FAY_SCOPE_LOCAL, 0, 8, 1, 8, 0, 0, 1 };
static struct fay_image_spec spec = { 800, 64, &probe, 1, &state, 1, &column, 1 };

static int compile(const char *body, struct fay_buffer *image, struct fay_error *error)
{
	LLVMContextRef context = LLVMContextCreate();
	LLVMMemoryBufferRef text;
	LLVMModuleRef module;
	char source[8192], *message = NULL;
	int result;

	snprintf(source, sizeof(source),
		 "declare i64 @fay_flush(ptr, i64)\ndeclare i64 @fay_try_read(ptr, i64, i64)\n%s",
		 body);
	text = LLVMCreateMemoryBufferWithMemoryRangeCopy(source, strlen(source), "test");
	if (LLVMParseIRInContext(context, text, &module, &message))
		fail_msg("%s", message);
	fay_buffer_init(image);
	result = fay_compile_module(module, &spec, NULL, image, error);
	LLVMContextDispose(context);
	return result;
}

static void load(const char *name, const char *body, struct fay_buffer *image, struct loaded *l)
{
	struct fay_error error = { 0 };

	if (compile(body, image, &error))
		fail_msg("%s: %s", name, error.message);
	image_verify(name, image);
	image_load(image, l);
}

static const uint64_t hostile[] = { 0,
				    1,
				    99,
				    100,
				    1000,
				    UINT32_MAX,
				    UINT64_C(1) << 32,
				    UINT64_C(1) << 60,
				    UINT64_C(1) << 61,
				    INT64_MAX,
				    UINT64_C(1) << 63,
				    UINT64_MAX,
				    UINT64_MAX - 7 };

static void test_store_index(void **unused)
{
	struct fay_buffer image;
	struct loaded l;

	load("store index",
	     "define void @p(ptr %e, ptr %l, ptr %g) {\n %i = load i64, ptr %e\n %p = "
	     "getelementptr i64, ptr %l, i64 %i\n"
	     " store i64 5, ptr %p\n ret void }\n",
	     &image, &l);
	for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
		uint64_t *cells = (uint64_t *)l.local, place = hostile[i] < 100 ? hostile[i] : 99;

		memset(l.local, 0, 800);
		l.event->arg[0] = hostile[i];
		image_call(&l, 0);
		assert_int_equal(cells[place], 5);
	}
	image_unload(&l);
	fay_buffer_deinit(&image);
}

/* Two variable terms, a negative scale by subtraction, bytes: any result is right that stays inside
 * (the page after faults). */
static void test_two_indices(void **unused)
{
	struct fay_buffer image;
	struct loaded l;

	load("two indices",
	     "define void @p(ptr %e, ptr %l, ptr %g) {\n %i = load i64, ptr %e\n %f = "
	     "getelementptr i64, ptr %e, i64 1\n"
	     " %j = load i32, ptr %f\n %q = getelementptr [10 x i64], ptr %l, i64 %i, i32 %j\n %r "
	     "= getelementptr i8, ptr %q, i64 -3\n"
	     " store i32 5, ptr %r\n ret void }\n",
	     &image, &l);
	for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++)
		for (size_t k = 0; k < sizeof(hostile) / sizeof(*hostile); k++) {
			l.event->arg[0] = hostile[i];
			l.event->arg[1] = hostile[k];
			image_call(&l, 0);
		}
	image_unload(&l);
	fay_buffer_deinit(&image);
}

static void test_power_of_two(void **unused)
{
	struct fay_buffer image;
	struct loaded l;

	load("power of two",
	     "define void @p(ptr %e, ptr %l, ptr %g) {\n %i = load i64, ptr %e\n %p = "
	     "getelementptr i64, ptr %g, i64 %i\n"
	     " %r = atomicrmw add ptr %p, i64 1 monotonic\n ret void }\n",
	     &image, &l);
	for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
		uint64_t before = ((uint64_t *)l.global)[hostile[i] & 7];

		l.event->arg[0] = hostile[i];
		image_call(&l, 0);
		assert_int_equal(((uint64_t *)l.global)[hostile[i] & 7], before + 1);
	}
	image_unload(&l);
	fay_buffer_deinit(&image);
}

static void test_divisions(void **unused)
{
	static const int64_t values[] = { 0, 1, -1, 2, -7, 1000, INT64_MAX, INT64_MIN };
	struct fay_buffer image;
	struct loaded l;

	load("divisions",
	     "define void @p(ptr %e, ptr %l, ptr %g) {\n %a = load i64, ptr %e\n %f = "
	     "getelementptr i64, ptr %e, i64 1\n"
	     " %b = load i64, ptr %f\n %d = sdiv i64 %a, %b\n %m = srem i64 %a, %b\n %u = udiv i64 "
	     "%a, %b\n %v = urem i64 %a, %b\n"
	     " store i64 %d, ptr %l\n %p1 = getelementptr i64, ptr %l, i64 1\n store i64 %m, ptr "
	     "%p1\n"
	     " %p2 = getelementptr i64, ptr %l, i64 2\n store i64 %u, ptr %p2\n %p3 = "
	     "getelementptr i64, ptr %l, i64 3\n"
	     " store i64 %v, ptr %p3\n ret void }\n",
	     &image, &l);
	for (size_t i = 0; i < 8; i++)
		for (size_t k = 0; k < 8; k++) {
			int64_t a = values[i], b = values[k] ? values[k] : 1,
				*r = (int64_t *)l.local;

			l.event->arg[0] = (uint64_t)a;
			l.event->arg[1] = (uint64_t)values[k];
			image_call(&l, 0);
			assert_int_equal(r[0], b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b);
			assert_int_equal(r[1], b == -1 ? 0 : a % b);
			assert_int_equal(r[2], (uint64_t)a / (uint64_t)b);
			assert_int_equal(r[3], (uint64_t)a % (uint64_t)b);
		}
	image_unload(&l);
	fay_buffer_deinit(&image);
}

/* A pointer that moves through LOCAL until memory says stop. */
static void test_moving_pointer(void **unused)
{
	struct fay_buffer image;
	struct loaded l;

	load("moving pointer",
	     "define void @p(ptr %e, ptr %l, ptr %g) {\nentry:\n br label %loop\nloop:\n"
	     " %q = phi ptr [ %l, %entry ], [ %n, %loop ]\n %v = load i8, ptr %q\n %n = "
	     "getelementptr i8, ptr %q, i64 1\n"
	     " %z = icmp eq i8 %v, 0\n br i1 %z, label %out, label %loop\nout:\n"
	     " store i8 7, ptr %q\n ret void }\n",
	     &image, &l);
	memset(l.local, 1, 800);
	l.local[10] = 0;
	image_call(&l, 0);
	assert_int_equal(l.local[10], 7);
	memset(l.local, 1, 800);
	image_call(&l, 0); /* no zero anywhere: left by fuel */
	image_unload(&l);
	fay_buffer_deinit(&image);
}

/* The access comes before the test, so it happens once more than the body: index 100 of 100 needs
 * its guard (the page after faults). */
static void test_access_before_test(void **unused)
{
	struct fay_buffer image;
	struct loaded l;

	load("access before test",
	     "define void @p(ptr %e, ptr %l, ptr %g) {\nentry:\n br label %head\nhead:\n %i = phi "
	     "i64 [ 0, %entry ], [ %n, %body ]\n"
	     " %q = getelementptr i64, ptr %l, i64 %i\n %v = load i64, ptr %q\n %c = icmp ult i64 "
	     "%i, 100\n"
	     " br i1 %c, label %body, label %out\nbody:\n %o = load volatile i64, ptr %g\n %s = "
	     "add i64 %o, %v\n store volatile i64 %s, ptr %g\n"
	     " %n = add i64 %i, 1\n br label %head\nout:\n store i64 %v, ptr %g\n ret void }\n",
	     &image, &l);
	for (uint64_t i = 0; i < 100; i++)
		((uint64_t *)l.local)[i] = i + 1;
	image_call(&l, 0);
	assert_in_range(*(uint64_t *)l.global, 1, 100); /* some element of LOCAL */
	image_unload(&l);
	fay_buffer_deinit(&image);
}

static void test_endless(void **unused)
{
	struct fay_buffer image;
	struct loaded l;

	load("endless",
	     "define void @p(ptr %e, ptr %l, ptr %g) {\nentry:\n br label %loop\nloop:\n %v = load "
	     "i64, ptr %l\n"
	     " %n = add i64 %v, 1\n store volatile i64 %n, ptr %l\n br label %loop }\n",
	     &image, &l);
	image_call(&l, 0);
	assert_int_equal(*(uint64_t *)l.local, 1024);
	image_unload(&l);
	fay_buffer_deinit(&image);
}

static void test_try_read(void **unused)
{
	static const char text[64] = "0123456789abcdef0123456789abcdef";
	struct fay_buffer image;
	struct loaded l;

	load("try_read",
	     "define void @p(ptr %e, ptr %l, ptr %g) {\n %a = load i64, ptr %e\n %f = "
	     "getelementptr i64, ptr %e, i64 1\n"
	     " %s = load i64, ptr %f\n %to = getelementptr i8, ptr %l, i64 768\n"
	     " %r = call i64 @fay_try_read(ptr %to, i64 %s, i64 %a)\n ret void }\n",
	     &image, &l);
	l.event->arg[0] = (uintptr_t)text;
	l.event->arg[1] = UINT64_MAX;
	image_call(&l, 0);
	assert_memory_equal(l.local + 768, text, 32);
	image_unload(&l);
	fay_buffer_deinit(&image);
}

static void test_zero_counts(void **unused)
{
	static const uint64_t values[] = { 0, 1, 2, 3, 1u << 31, UINT64_C(1) << 63, UINT64_MAX };
	struct fay_buffer image;
	struct loaded l;

	load("zero counts",
	     "declare i64 @llvm.ctlz.i64(i64, i1)\ndeclare i64 @llvm.cttz.i64(i64, i1)\n"
	     "define void @p(ptr %e, ptr %l, ptr %g) {\n %a = load i64, ptr %e\n %c = call i64 "
	     "@llvm.ctlz.i64(i64 %a, i1 false)\n"
	     " %t = call i64 @llvm.cttz.i64(i64 %a, i1 false)\n store i64 %c, ptr %l\n %p = "
	     "getelementptr i64, ptr %l, i64 1\n"
	     " store i64 %t, ptr %p\n ret void }\n",
	     &image, &l);
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		l.event->arg[0] = values[i];
		image_call(&l, 0);
		assert_int_equal(((uint64_t *)l.local)[0],
				 values[i] ? __builtin_clzll(values[i]) : 64);
		assert_int_equal(((uint64_t *)l.local)[1],
				 values[i] ? __builtin_ctzll(values[i]) : 64);
	}
	image_unload(&l);
	fay_buffer_deinit(&image);
}

static void test_refused(void **unused)
{
	static const char *const cases[][2] = {
		{ "define void @p(ptr %e, ptr %l, ptr %g) {\n %p = load ptr, ptr %e\n store i8 1, "
		  "ptr %p\n ret void }\n",
		  "fay_try_read" },
		{ "define void @p(ptr %e, ptr %l, ptr %g) {\n store ptr %l, ptr %l\n ret void }\n",
		  "a pointer would be stored" },
		{ "define void @p(ptr %e, ptr %l, ptr %g) {\n %r = call i64 @fay_flush(ptr %l, i64 "
		  "0)\n ret void }\n",
		  "is not a table" },
		{ "define void @p(ptr %e, ptr %l, ptr %g) {\n %r = call i64 @fay_flush(ptr %l, i64 "
		  "9)\n ret void }\n",
		  "state 9" },
		{ "define void @q(ptr %e, ptr %l, ptr %g) {\n ret void }\n",
		  "probe function p is not in the module" },
		{ "define i32 @p(ptr %e) {\n ret i32 0 }\n", "is not void (event, local, global)" },
		{ "define void @p(ptr %e, ptr %l, ptr %g) {\n %q = getelementptr i8, ptr %l, i64 "
		  "796\n store i64 1, ptr %q\n ret void }\n",
		  "access of 8 bytes at offset 796 of LOCAL, which has 800 bytes" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fay_buffer image;
		struct fay_error error = { 0 };

		assert_int_not_equal(compile(cases[i][0], &image, &error), 0);
		if (!strstr(error.message, cases[i][1]))
			fail_msg("\"%s\" instead of \"%s\"", error.message, cases[i][1]);
		assert_null(image.data);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_store_index),        cmocka_unit_test(test_two_indices),
		cmocka_unit_test(test_power_of_two),       cmocka_unit_test(test_divisions),
		cmocka_unit_test(test_moving_pointer),     cmocka_unit_test(test_endless),
		cmocka_unit_test(test_access_before_test), cmocka_unit_test(test_try_read),
		cmocka_unit_test(test_zero_counts),        cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("compiler modules", tests, NULL, NULL);
}
