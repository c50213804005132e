/* SPDX-License-Identifier: MIT */
/* Saved traces of programs that choose what is in their rows: which values get names, and that it
 * is a bounded number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "fay/image.h"
#include "fay/saved.h"

struct row {
	uint64_t function, caller;
};
static struct fay_save_layout layout = {
	.text = "",
	.stream_count = 1,
	.streams = { { .column_count = 2, .row_size = sizeof(struct row) } },
	.columns = { { { "function", FAY_TYPE_FUNCTION, offsetof(struct row, function), 8, 0 },
		       { "caller", FAY_TYPE_U64, offsetof(struct row, caller), 8,
			 FAY_SAVED_CALLER } } },
};
static struct fay_error failure;

static const char *function_name(void *context, uint64_t hash)
{
	(void)context, (void)hash;
	return "f";
}

static void address_name(void *context, uint64_t address, bool exact, char *text, size_t size)
{
	(void)context, (void)address, (void)exact;
	snprintf(text, size, "a");
}

/* A row of each pair (first, first + step, ...) for functions and callers. How many names there are
 * in the file then, and whether the last row's are. */
static uint64_t names_of(struct row first, struct row step, unsigned count, struct row *named)
{
	const struct fay_save_names names = { .function = function_name, .address = address_name };
	struct fay_saved *saved;
	struct fay_save *save;
	struct row row = first;
	char path[64];
	int fd = memfd_create("saved", MFD_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(fay_save_create(path, &layout, &save, &failure), 0);
	for (unsigned i = 0; i < count;
	     i++, row.function += step.function, row.caller += step.caller)
		fay_save_row(save, 0, (const uint8_t *)&row);
	assert_int_equal(fay_save_finish(save, 0, &names, &failure), 0);
	assert_int_equal(fay_saved_open(path, &saved, &failure), 0);
	assert_int_equal(fay_saved_header(saved)->row_count, count);
	uint64_t result = fay_saved_header(saved)->name_count;
	named->function = fay_saved_name(saved, row.function - step.function) != NULL;
	named->caller = fay_saved_name(saved, row.caller - step.caller) != NULL;
	fay_saved_close(saved);
	close(fd);
	return result;
}

static void test_all_named(void **state)
{
	struct row named;
	(void)state;
	assert_int_equal(
		names_of((struct row){ 1000, 0x400000 }, (struct row){ 1, 16 }, 50000, &named),
		2 * 50000);
	assert_true(named.function && named.caller);
}

/* Functions that all belong to one place of the table: multiples of the inverse of what they are
 * multiplied by. */
static void test_chosen_functions(void **state)
{
	const uint64_t factor = 0x9e3779b97f4a7c15u;
	uint64_t inverse = factor;
	struct row named;
	(void)state;
	for (int i = 0; i < 6; i++)
		inverse *= 2 - factor * inverse;
	assert_int_equal(inverse * factor, 1);
	uint64_t count =
		names_of((struct row){ inverse, 0 }, (struct row){ inverse, 0 }, 100000, &named);
	assert_in_range(count, 500, 1100);
	assert_false(named.function);
	assert_int_equal(
		names_of((struct row){ inverse, 0 }, (struct row){ inverse, 0 }, 100000, &named),
		count);
}

static void test_many_addresses(void **state)
{
	struct row named;
	(void)state;
	assert_int_equal(
		names_of((struct row){ 0, 0x400000 }, (struct row){ 0, 16 }, 70000, &named), 65536);
	assert_false(named.caller);
}

/* An empty trace whose first column has that name, of a source with that pattern, as somebody else
 * may write it. What opening it says; *saved is to be closed. */
static int open_named(const char *column, const char *pattern, struct fay_saved **saved)
{
	const struct fay_save_names names = { .function = function_name, .address = address_name };
	struct fay_save_layout of_others = layout;
	struct fay_save *save;
	char path[64];
	int fd = memfd_create("saved", MFD_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	snprintf(of_others.columns[0][0].name, FAY_SAVED_NAME, "%s", column);
	snprintf(of_others.streams[0].pattern, FAY_SAVED_PATTERN, "%s", pattern);
	assert_int_equal(fay_save_create(path, &of_others, &save, &failure), 0);
	assert_int_equal(fay_save_finish(save, 0, &names, &failure), 0);
	int code = fay_saved_open(path, saved, &failure);
	close(fd);
	return code;
}

/* Names of columns are shown as they are, on terminals and in JSON. */
static void test_names_of_columns(void **state)
{
	static const char *const good[] = { "function", "Arg(0)", "key.part", "l\303\244nge",
					    "in[1]" };
	static const char *const bad[] = { "a\033[2J",  "a\nb",           "a\177", "a\"b", "a\\b",
					   "\302\233m", "a\342\200\256b", "\303",  "\377" };
	struct fay_saved *saved;
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		if (open_named(good[i], "a!b", &saved))
			fail_msg("%s: %s", good[i], failure.message);
		fay_saved_close(saved);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(open_named(bad[i], "a!b", &saved), FAY_E_REFUSED);
}

/* A pattern may be anything, and may be cut within a character. */
static void test_patterns(void **state)
{
	struct fay_saved *saved;
	(void)state;
	assert_int_equal(open_named("function", "a!b\033[2J\n\"\303\244\303", &saved), 0);
	assert_string_equal(fay_saved_stream_at(saved, 0)->pattern, "a!b?[2J?\"\303\244?");
	fay_saved_close(saved);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_all_named),
					    cmocka_unit_test(test_chosen_functions),
					    cmocka_unit_test(test_many_addresses),
					    cmocka_unit_test(test_names_of_columns),
					    cmocka_unit_test(test_patterns) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
