/* SPDX-License-Identifier: MIT */
/* What fay cc writes: line information, assembly with the reasons for guards, and the same bytes
 * wherever and whenever it runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

static void test_lines(void **unused)
{
	struct fay_compile_options options = { .size = sizeof(options), .debug_lines = 1 };
	struct fay_error error = { 0 };
	struct fay_buffer image;
	struct loaded l;

	fay_buffer_init(&image);
	assert_int_equal(fay_compile_source(FAY_EXAMPLES "/open_path.c", &options, &image, &error),
			 0);
	image_verify("open_path -g", &image);
	image_load(&image, &l);
	assert_true(l.line_count > 5);
	for (size_t i = 0; i < l.line_count; i++) {
		assert_true(l.lines[i].code_offset < l.text_size);
		assert_true(l.lines[i].line >= 1);
		if (i)
			assert_true(l.lines[i].code_offset > l.lines[i - 1].code_offset);
	}
	assert_non_null(strstr(image_string(&l.lines[0].file), "open_path.c"));
	image_unload(&l);
	fay_buffer_deinit(&image);
}

static char *read_file(const char *path)
{
	char *text = calloc(1, 1 << 20);
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
	fclose(f);
	return text;
}

/* -S: each guard has a comment that says why it is there and for which line. */
static void test_assembly(void **unused)
{
	char path[] = "/tmp/fay-assembly-XXXXXX";
	int fd = mkstemp(path);
	char *sorting[] = { "fay cc", FAY_EXAMPLES "/index_guard.c", "-S", "-o", path, NULL };
	char *collatz[] = { "fay cc", FAY_EXAMPLES "/collatz.c", "-S", "-o", path, NULL };
	char *text;

	close(fd);
	assert_int_equal(fay_cc_main(5, sorting), 0);
	text = read_file(path);
	assert_non_null(strstr(text, "# guard for index_guard.c:"));
	assert_non_null(strstr(text, "/index_guard.c:12\n"));
	assert_null(strstr(text, ".loc"));
	assert_null(strstr(text, ".debug_info"));
	free(text);
	assert_int_equal(fay_cc_main(5, collatz), 0);
	text = read_file(path);
	assert_non_null(strstr(text, "iterations of the loop"));
	free(text);
	unlink(path);
}

/* The bytes depend on the source alone: not on the folder, the time, the process. */
static void test_reproducible(void **unused)
{
	static const char *const names[] = { "latency", "by_thread", "sketches", "sorting" };
	char folder[] = "/tmp/fay-reproducible-XXXXXX", command[2048];

	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		for (int lines = 0; lines < 2; lines++) {
			snprintf(command, sizeof(command),
				 "cd %s && mkdir -p one two/deeper && cp " FAY_EXAMPLES
				 "/%s.c one/p.c && sleep 0.01 && cp one/p.c two/deeper/p.c && "
				 "(cd one && " FAY_CC " p.c %s -o a.fay) && (cd two/deeper && "
				 "TZ=Asia/Tokyo LANG=C " FAY_CC " p.c %s -o b.fay) && "
				 "cmp one/a.fay two/deeper/b.fay",
				 folder, names[i], lines ? "-g" : "", lines ? "-g" : "");
			assert_int_equal(system(command), 0);
		}
	}
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_assembly),
		cmocka_unit_test(test_reproducible),
	};

	return cmocka_run_group_tests_name("compiler output", tests, NULL, NULL);
}
