/* SPDX-License-Identifier: MIT */
/* What the compiler refuses, and that it names the line and says what to write instead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

static const struct {
	const char *body;    /* after #include <fay/probe.h> and FAY_COUNT(n) on line 2 */
	const char *message; /* part of it; the line is the one marked here */
	int line;
	enum fay_error_code code;
} cases[] = {
	{ "int puts(const char *);\nFAY_ENTRY(\"a!b\") {\nputs(\"x\"); }\n", "call of puts", 5,
	  FAY_E_REFUSED },
	{ "static int x;\nFAY_ENTRY(\"a!b\") { x++; }\n", "x is a writable global", 0,
	  FAY_E_REFUSED },
	{ "static _Thread_local int x;\nFAY_ENTRY(\"a!b\") { n.n += ++x; }\n", "x is thread-local",
	  0, FAY_E_REFUSED },
	{ "extern int x;\nFAY_ENTRY(\"a!b\") { n.n += x; }\n", "x is not defined in this file", 0,
	  FAY_E_REFUSED },
	{ "FAY_ENTRY(\"a!b\") {\nn.n = *(uint64_t *)event->arg[0]; }\n", "fay_try_read", 4,
	  FAY_E_REFUSED },
	{ "FAY_ENTRY(\"a!b\") {\n*(uint64_t *)event->arg[0] = 1; }\n", "fay_try_read", 4,
	  FAY_E_REFUSED },
	{ "FAY_ENTRY(\"a!b\") {\n((struct fay_event *)event)->arg[0] = 1; }\n", "read only", 4,
	  FAY_E_REFUSED },
	{ "FAY_ENTRY(\"a!b\") {\nn.n = event->arg[37]; }\n", "at offset 296 of the event", 4,
	  FAY_E_REFUSED },
	{ "FAY_ENTRY(\"a!b\") {\n(&n.n)[3] = 1; }\n", "at offset 24 of the state object", 4,
	  FAY_E_REFUSED },
	{ "FAY_ENTRY(\"a!b\") {\n__asm__ volatile(\"nop\"); }\n", "inline assembly", 4,
	  FAY_E_REFUSED },
	{ "static int f(int x) {\nreturn x ? 1 + f(x / 3) : 0; }\nFAY_ENTRY(\"a!b\") { n.n += "
	  "f(event->tid); }\n",
	  "recursion", 4, FAY_E_REFUSED },
	{ "FAY_ENTRY(\"a!b\") {\n((void (*)(void))event->arg[0])(); }\n", "call through a pointer",
	  4, FAY_E_REFUSED },
	{ "static int f(int x, ...) { return x; }\nFAY_ENTRY(\"a!b\") { n.n += f(1, 2); }\n",
	  "variable arguments", 0, FAY_E_REFUSED },
	{ "FAY_ENTRY(\"a!b\") {\nvolatile long double d = event->tid; n.n = d * 2.5; }\n",
	  "long double is x87", 4, FAY_E_REFUSED },
	{ "FAY_ENTRY(\"a!b\") {\nvolatile double d = event->tid; n.n = __builtin_fmod(d, 3); }\n",
	  "subtract a multiple", 4, FAY_E_REFUSED },
	{ "FAY_ENTRY(\"a!b\") {\nvolatile double d = event->tid; n.n = __builtin_sin(d); }\n", "",
	  4, FAY_E_REFUSED },
	{ "typedef int v4 __attribute__((vector_size(16)));\nFAY_ENTRY(\"a!b\") {\nvolatile v4 a = "
	  "{event->tid}; a = a / a; n.n = a[0]; }\n",
	  "division of integer vectors", 5, FAY_E_REFUSED },
	{ "FAY_ENTRY(\"a!b\") {\nvolatile char v[event->tid]; v[0] = 1; }\n",
	  "variable-length array", 4, FAY_E_REFUSED },
	{ "FAY_ENTRY(\"a!b\") {\n__builtin_trap(); }\n", "cannot trap", 4, FAY_E_REFUSED },
	{ "FAY_ENTRY(\"a!b\") {\n__builtin_memset(&n, 0, event->arg[0]); }\n", "variable size", 4,
	  FAY_E_REFUSED },
	{ "FAY_ENTRY(\"a!b\") {\n__atomic_fetch_max(&n.n, event->arg[0], __ATOMIC_RELAXED); }\n",
	  "no single instruction", 4, FAY_E_REFUSED },
	{ "FAY_ENTRY(\"a!b\") {\nn.n = (uint64_t)((__uint128_t)event->arg[0] * event->arg[1] / "
	  "event->arg[2]); }\n",
	  "more than 64 bits", 4, FAY_E_REFUSED },
	{ "static const char *const names[3] = {\"a\", \"b\", \"c\"};\nFAY_ENTRY(\"a!b\") { n.n += "
	  "names[event->tid % 3][0]; }\n",
	  "", 0, FAY_E_REFUSED },
	{ "FAY_ENTRY(\"a!b\") { n.n = syntax error; }\n", "the C compiler refused", 0,
	  FAY_E_REFUSED },
	{ "void f(void) { n.n++; }\n", "no probe in this file", 0, FAY_E_USAGE },
	{ "FAY_ENTRY(\"read\") { n.n++; }\n", "expected \"module!function\"", 0, FAY_E_USAGE },
	{ "FAY_ENTRY(\"a!b\") {\nn.n = event->retval; }\n", "in FAY_RETURN() only", 4,
	  FAY_E_REFUSED },
	{ "FAY_BEGIN() {\nn.n = event->arg[5]; }\n", "in probes of functions and markers only", 4,
	  FAY_E_REFUSED },
	{ "FAY_BEGIN() {\nn.n = event->caller; }\n", "a caller, or flags, are known in", 4,
	  FAY_E_REFUSED },
	{ "static uint64_t took(const struct fay_event *e) { return e->duration; "
	  "}\nFAY_ENTRY(\"a!b\") {\nn.n = took(event); }\n",
	  "duration is known", 0, FAY_E_REFUSED },
	{ "FAY_RETURN(\"a!b\") {\nn.n = event->reg[4] + event->reg[3]; }\n",
	  "other registers are known", 4, FAY_E_REFUSED },
	{ "FAY_ENTRY(\"a!b\") {\nn.n = event->reg[5]; }\n", "rsp and rbp are known", 4,
	  FAY_E_REFUSED },
	{ "FAY_EXCEPTION(\"a!b\") {\nn.n = event->frame_pointer; }\n",
	  "event->frame_pointer in FAY_ENTRY() only", 4, FAY_E_REFUSED },
	{ "FAY_BEGIN() {\nn.n = event->reg[3] + event->flags; }\n", "registers are known", 4,
	  FAY_E_REFUSED },
	{ "FAY_TIMER(0) { n.n++; }\n", "a timer's period", 3, FAY_E_USAGE },
	{ "FAY_TABLE(t, 65536, FAY_KEYS(FAY_KEY_U64(k)), "
	  "FAY_VALUES(FAY_VALUE_HISTOGRAM(h)));\nFAY_ENTRY(\"a!b\") { n.n++; }\n",
	  "use fewer rows", 0, FAY_E_LIMIT },
};

static void test_refusals(void **unused)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fay_buffer image;
		struct fay_error error = { 0 };
		char path[] = "/tmp/fay-refusal-XXXXXX.c", where[64];
		int fd = mkstemps(path, 2), result;

		assert_true(fd >= 0);
		dprintf(fd, "#include <fay/probe.h>\nFAY_COUNT(n);\n%s", cases[i].body);
		close(fd);
		fay_buffer_init(&image);
		result = fay_compile_source(path, NULL, &image, &error);
		unlink(path);
		snprintf(where, sizeof(where), ".c:%d:", cases[i].line);
		if (result != (int)cases[i].code || !strstr(error.message, cases[i].message) ||
		    (cases[i].line && !strstr(error.message, where)))
			fail_msg("case %zu: %d \"%s\"; expected \"%s\" at line %d of\n%s", i,
				 result, error.message, cases[i].message, cases[i].line,
				 cases[i].body);
		assert_null(image.data);
	}
}

static void test_files(void **unused)
{
	struct fay_buffer image;
	struct fay_error error = { 0 };

	fay_buffer_init(&image);
	assert_int_equal(fay_compile_source("/nonexistent/probe.c", NULL, &image, &error),
			 FAY_E_USAGE);
	assert_non_null(strstr(error.message, "/nonexistent/probe.c: No such file"));
	setenv("FAY_CLANG_PROGRAM", "no-such-clang", 1);
	assert_int_equal(fay_compile_source(FAY_EXAMPLES "/count.c", NULL, &image, &error),
			 FAY_E_REFUSED);
	assert_non_null(strstr(error.message, "apt-get install clang-19"));
	unsetenv("FAY_CLANG_PROGRAM");
}

static void test_command(void **unused)
{
	char *none[] = { "fay cc", NULL };
	char *unknown[] = { "fay cc", "--frobnicate", NULL };
	char *no_output[] = { "fay cc", FAY_EXAMPLES "/count.c", NULL };
	char *bad_output[] = { "fay cc", FAY_EXAMPLES "/count.c", "-o", "/nonexistent/x", NULL };
	char *full[] = { "fay cc", FAY_EXAMPLES "/count.c", "-o", "/dev/full", NULL };

	assert_int_equal(fay_cc_main(1, none), FAY_E_USAGE);
	assert_int_equal(fay_cc_main(2, unknown), FAY_E_USAGE);
	assert_int_equal(fay_cc_main(2, no_output), FAY_E_USAGE);
	assert_int_equal(fay_cc_main(4, bad_output), FAY_E_INTERNAL);
	assert_int_equal(fay_cc_main(4, full), FAY_E_INTERNAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_command),
	};

	return cmocka_run_group_tests_name("compiler refusals", tests, NULL, NULL);
}
