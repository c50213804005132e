/* SPDX-License-Identifier: MIT */
/*
 * What C cannot have in a probe: each file of refusals/ is refused, and what is said is in the file
 * beside it, word for word, line for line, with the place, the source line and a caret.
 * FAY_REGENERATE=1 writes them anew, for review in the diff.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

#define TEXT_MAX 16384

/* What compiling says: messages of clang first, which go to standard error, then ours. */
static void message_of(const char *name, char *text)
{
	struct fay_buffer image;
	struct fay_error error = { 0 };
	FILE *captured = tmpfile();
	int saved = dup(STDERR_FILENO), result;
	size_t length;

	assert_non_null(captured);
	fay_buffer_init(&image);
	fflush(stderr);
	dup2(fileno(captured), STDERR_FILENO);
	result = fay_compile_source(name, NULL, &image, &error);
	dup2(saved, STDERR_FILENO);
	close(saved);
	if (!result)
		fail_msg("%s: compiled", name);
	assert_null(image.data);
	rewind(captured);
	length = fread(text, 1, TEXT_MAX / 2, captured);
	fclose(captured);
	snprintf(text + length, TEXT_MAX / 2, "%s\nexit code %d\n", error.message, result);
}

static void check(const char *name)
{
	static char have[TEXT_MAX], want[TEXT_MAX];
	char path[PATH_MAX];
	FILE *file;
	size_t n = 0;

	message_of(name, have);
	snprintf(path, sizeof(path), FAY_REFUSALS "/%.*s.txt", (int)(strlen(name) - 2), name);
	if (getenv("FAY_REGENERATE")) {
		file = fopen(path, "w");
		assert_non_null(file);
		fputs(have, file);
		assert_int_equal(fclose(file), 0);
		return;
	}
	file = fopen(path, "r");
	if (file) {
		n = fread(want, 1, sizeof(want) - 1, file);
		fclose(file);
	}
	want[n] = 0;
	if (strcmp(have, want))
		fail_msg("%s: what is said is\n%s\nand %s is\n%s", name, have, path, want);
}

static void test_messages(void **unused)
{
	DIR *folder = opendir(FAY_REFUSALS);
	unsigned count = 0;

	assert_non_null(folder);
	assert_int_equal(chdir(FAY_REFUSALS), 0); /* names without folders in what is said */
	for (struct dirent *e; (e = readdir(folder));)
		if (strlen(e->d_name) > 2 && !strcmp(e->d_name + strlen(e->d_name) - 2, ".c")) {
			check(e->d_name);
			count++;
		}
	closedir(folder);
	assert_true(count >= 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_messages) };

	return cmocka_run_group_tests_name("compiler messages", tests, NULL, NULL);
}
