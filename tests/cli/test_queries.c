/* SPDX-License-Identifier: MIT */
/*
 * Query files: parameters, arguments, what is wrong with them; and the library of examples, of
 * which each is planned and compiled, for programs to an image that the verifier accepts, for the
 * kernel to BPF programs. Nothing is attached.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <llvm-c/Core.h>

#include "cli/queries/queries.h"
#include "fay/query.h"
#include "fay/verify.h"

#define NOW 1700000000000000000u
#define EXAMPLES_MIN 60u
#define TITLE_MAX 56u /* characters: a line of the list has 80 */

static char file_name[] = "/tmp/fay-test-queries-XXXXXX";

static void write_file(const char *text)
{
	FILE *file = fopen(file_name, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static size_t count_of(const char *const *arguments)
{
	size_t count = 0;
	while (arguments[count])
		count++;
	return count;
}

static void values_are_put_in(void **state)
{
	static const struct {
		const char *file, *arguments[4], *query;
	} cases[] = {
		{ "a\n", { NULL }, "a\n" },
		{ "#!/usr/bin/env -S fay trace -f\na\n",
		  { NULL },
		  "///usr/bin/env -S fay trace -f\na\n" },
		{ "param n = 10ms\n$n\n", { NULL }, "//    n = 10ms\n10ms\n" },
		{ "param n = 10ms // how long\n$n\n",
		  { "5s" },
		  "//    n = 10ms // how long\n5s\n" },
		{ "// a\n\n/* b\n*/ param n = 1\nparam m=2\n$m $n\n",
		  { "m=7" },
		  "// a\n\n/* b\n*/ //    n = 1\n//    m=2\n7 1\n" },
		{ "param n = 1\n$n", { "-3" }, "//    n = 1\n(-3)" },
		{ "param b = false\n$b", { "true" }, "//    b = false\ntrue" },
		{ "param f = \"libc!*\"\nF(\"$f\") $f",
		  { NULL },
		  "//    f = \"libc!*\"\nF(\"libc!*\") \"libc!*\"" },
		{ "param f = \"a\\\"b\"\n\"$f\"", { NULL }, "//    f = \"a\\\"b\"\n\"a\\\"b\"" },
		/* no text is more than a text */
		{ "param f = \"\"\nF(\"$f\")",
		  { "\").Count() \\\n\t" },
		  "//    f = \"\"\nF(\"\\\").Count() \\\\\\n\\t\")" },
		{ "param f = \"\"\n$f", { "f=a=b" }, "//    f = \"\"\n\"a=b\"" },
		{ "param n = 1\n\"c.c:$n\" // $n $x\n/* $x */ \"// $n\"",
		  { NULL },
		  "//    n = 1\n\"c.c:1\" // $n $x\n/* $x */ \"// 1\"" },
		{ "\"a$$b\" \"\\\"$$\"", { NULL }, "\"a$b\" \"\\\"$\"" },
		{ "param a = 1\nparam ab = 2\n$ab$a", { NULL }, "//    a = 1\n//    ab = 2\n21" },
		{ "x\nparam n = 1\n", { NULL }, "x\nparam n = 1\n" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fay_error error = { 0 };
		char *text = NULL;
		write_file(cases[i].file);
		if (fay_query_file_read(file_name, (char *const *)cases[i].arguments,
					count_of(cases[i].arguments), &text, &error))
			fail_msg("%s: %s", cases[i].file, error.message);
		assert_string_equal(text, cases[i].query);
		free(text);
	}
}

static void mistakes_are_named(void **state)
{
	static const struct {
		const char *file, *arguments[4], *message;
	} cases[] = {
		{ "$n", { NULL }, ":1: there is no parameter `n`; declare it" },
		{ "param least = 1\n\n$lest",
		  { NULL },
		  ":3: there is no parameter `lest`; did you "
		  "mean `$least`?" },
		{ "$ 1", { NULL }, ":1: there is no parameter ``" },
		{ "param = 1", { NULL }, ":1: a parameter's name is missing" },
		{ "\nparam n 1", { NULL }, ":2: what the parameter is otherwise is missing" },
		{ "param n = x", { NULL }, ":1: a parameter is \"text\", a number" },
		{ "param n = \"x\n", { NULL }, ":1: a parameter is \"text\", a number" },
		{ "param n = \"\\x\"\n", { NULL }, ":1: a parameter is \"text\", a number" },
		{ "param n = 1 from", { NULL }, ":1: a parameter has a line of its own" },
		{ "param n = 1\nparam n = 2\n", { NULL }, ":2: the parameter is there twice" },
		{ "param n = 1\n", { "1", "2" }, "unexpected argument '2'; parameters are n" },
		{ "param n = 1\nparam m = 1\n",
		  { "x=2" },
		  "it has no parameter `x`; parameters are n, m" },
		{ "a", { "1" }, "unexpected argument '1'; it has no parameters" },
		{ "param n = 1\n", { "1", "n=1" }, "`n` is given twice" },
		{ "param n = 10ms\n", { "5 ms" }, "`n` is a value such as 10ms, not '5 ms'" },
		{ "param n = 10ms\n", { "" }, "`n` is a value such as 10ms, not ''" },
		{ "param n = 1\n", { "1)+(1" }, "`n` is a value such as 1, not '1)+(1'" },
		{ "param n = 1\n", { "-" }, "`n` is a value such as 1, not '-'" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fay_error error = { 0 };
		char *text = NULL;
		write_file(cases[i].file);
		int code = fay_query_file_read(file_name, (char *const *)cases[i].arguments,
					       count_of(cases[i].arguments), &text, &error);
		if (code != FAY_E_USAGE || !strstr(error.message, cases[i].message))
			fail_msg("%s: code %d, %s", cases[i].file, code, error.message);
		assert_null(text);
	}
}

static void files_are_found(void **state)
{
	struct fay_error error = { 0 };
	char *text = NULL;
	assert_int_equal(fay_query_file_read("opensnoop", NULL, 0, &text, &error), 0);
	assert_non_null(strstr(text, "Syscall(\"open*\")"));
	free(text);
	assert_int_equal(fay_query_file_read("opensnop", NULL, 0, &text, &error), FAY_E_USAGE);
	assert_non_null(strstr(error.message, "did you mean the example `opensnoop`?"));
	assert_int_equal(fay_query_file_read("./opensnoop", NULL, 0, &text, &error), FAY_E_USAGE);
	assert_int_equal(fay_query_file_read("/tmp", NULL, 0, &text, &error), FAY_E_USAGE);
	/* too long, and no text */
	FILE *file = fopen(file_name, "w");
	for (unsigned i = 0; i < 65537; i++)
		fputc('/', file);
	fclose(file);
	assert_int_equal(fay_query_file_read(file_name, NULL, 0, &text, &error), FAY_E_LIMIT);
	file = fopen(file_name, "w");
	fwrite("a\0b", 3, 1, file);
	fclose(file);
	assert_int_equal(fay_query_file_read(file_name, NULL, 0, &text, &error), FAY_E_USAGE);
}

/* --- the library --- */

static void compile(const char *name, const struct fay_plan *plan)
{
	struct fay_error error = { 0 };
	struct fay_compile_options options = { .size = sizeof(options),
					       .unfuelled = plan->unfuelled };
	struct fay_buffer image;
	struct fay_verdict verdict;
	LLVMContextRef context = LLVMContextCreate();
	LLVMModuleRef module;
	fay_buffer_init(&image);
	if (fay_plan_generate(plan, context, &module, &error) ||
	    fay_compile_module(module, &plan->spec, &options, &image, &error))
		fail_msg("%s: %s", name, error.message);
	LLVMContextDispose(context);
	fay_verify(image.data, image.size, NULL, &verdict);
	if (verdict.outcome != FAY_ACCEPTED)
		fay_verdict_print(stderr, name, &verdict);
	assert_int_equal(verdict.outcome, FAY_ACCEPTED);
	fay_verdict_deinit(&verdict);
	fay_buffer_deinit(&image);
}

static void generate_bpf(const char *name, const struct fay_plan *plan, unsigned side)
{
	struct fay_bpf_options options = { .side = side };
	struct fay_bpf_object object;
	struct fay_error error = { 0 };
	if (fay_plan_generate_bpf(plan, &options, &object, &error))
		fail_msg("%s: %s", name, error.message);
	fay_bpf_object_deinit(&object);
}

/* The first line is a title, and a line says how the example is run. */
static void check_head(const struct fay_example *example)
{
	char command[128];
	if (strncmp(example->text, "// ", 3) || strlen(example->title) > TITLE_MAX)
		fail_msg("%s: the title is missing, or is too long", example->path);
	snprintf(command, sizeof(command), "fay trace -f %s ", example->name);
	if (!strstr(example->text, command))
		fail_msg("%s: no line `%s`", example->path, command);
}

/* False: this kernel does not have what is asked for, which was said. */
static bool check_query(const struct fay_example *example)
{
	struct fay_query_options options = { .now = NOW,
					     .long_strings = true,
					     .long_kernel_strings = true };
	struct fay_error error = { 0 };
	struct fay_plan *plan;
	char *text;
	if (fay_query_file_read(example->path, NULL, 0, &text, &error))
		fail_msg("%s: %s", example->path, error.message);
	if (fay_query_plan_with(text, &options, &plan, &error)) {
		bool kernel = strstr(text, "Tracepoint(") || strstr(text, "Syscall(") ||
			      strstr(text, "Function(kernel") || strstr(text, "Return(kernel");
		if (!kernel || access("/sys/kernel/btf/vmlinux", R_OK) == 0)
			fail_msg("%s: %s", example->path, error.message);
		print_message("not compiled here: %s: %s\n", example->name, error.message);
		free(text);
		return false;
	}
	if (plan->domain == DOMAIN_USER || plan->kernel == FAY_KERNEL_FUNCTIONS)
		compile(example->name, plan);
	for (unsigned side = 0; side < FAY_JOIN_SOURCES; side++)
		if (plan->kernel_sides >> side & 1 && plan->kernel != FAY_KERNEL_FUNCTIONS)
			generate_bpf(example->name, plan, side);
	fay_plan_destroy(plan);
	free(text);
	return true;
}

static void examples_compile(void **state)
{
	struct fay_examples examples;
	struct fay_error error = { 0 };
	size_t compiled = 0;
	if (fay_examples_read(&examples, &error))
		fail_msg("%s", error.message);
	assert_true(examples.count >= EXAMPLES_MIN);
	for (size_t i = 0; i < examples.count; i++) {
		const struct fay_example *example = &examples.items[i];
		assert_ptr_equal(fay_examples_find(&examples, example->name), example);
		check_head(example);
		compiled += check_query(example);
	}
	print_message("%zu of %zu examples compiled\n", compiled, examples.count);
	fay_examples_deinit(&examples);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_put_in),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(files_are_found),
		cmocka_unit_test(examples_compile),
	};
	int descriptor = mkstemp(file_name);
	if (descriptor < 0)
		return 1;
	close(descriptor);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(file_name);
	return failed;
}
