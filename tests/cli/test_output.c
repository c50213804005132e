/* SPDX-License-Identifier: MIT */
/*
 * What `fay trace` prints for known results, against golden files. Regenerate them with
 * `FAY_REGENERATE=1 ctest -R cli_output`, then review the diff.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/options/options.h"
#include "cli/output/output.h"
#include "process/process.h"

#define ROW_SIZE (8 + 16 + 8 + 8 + 16 + 65 * 8)

static struct fay_schema_column columns[] = {
	{ "comm", FAY_TYPE_STRING, FAY_MERGE_KEY, 8, 16, { 0, 0 } },
	{ "calls", FAY_TYPE_U64, FAY_MERGE_COUNT, 24, 8, { 0, 0 } },
	{ "least", FAY_TYPE_I64, FAY_MERGE_MIN, 32, 8, { 0, 0 } },
	{ "mean", FAY_TYPE_I64, FAY_MERGE_AVERAGE, 40, 16, { 0, 0 } },
	{ "sizes", FAY_TYPE_I64, FAY_MERGE_HIST_LOG2, 56, 65 * 8, { 0, 0 } },
};

static struct fay_view_column view_columns[5];

static void put(uint8_t *row, size_t offset, uint64_t value)
{
	memcpy(row + offset, &value, sizeof(value));
}

static void make_row(uint8_t *row, const char *comm, uint64_t calls, int64_t least, int64_t sum)
{
	put(row, 0, 1);
	strncpy((char *)row + 8, comm, 16);
	put(row, 24, calls);
	put(row, 32, ~((uint64_t)least ^ (uint64_t)1 << 63));
	put(row, 40, (uint64_t)sum);
	put(row, 48, calls);
	put(row, 56, 1);              /* one value <= 0 */
	put(row, 56 + 8 * 11, calls); /* 1024..2047 */
}

static void print_all(FILE *out, enum fay_format format)
{
	static uint8_t rows[2 * ROW_SIZE];
	memset(rows, 0, sizeof(rows));
	make_row(rows, "redis-server", 120, -5, 360);
	make_row(rows + ROW_SIZE, "a \"quoted\", one", 7, 3, 22);
	for (size_t i = 0; i < 5; i++)
		view_columns[i] =
			(struct fay_view_column){ .name = columns[i].name, .column = &columns[i] };
	struct fay_view view = { .title = "reads", .columns = view_columns, .column_count = 5 };
	struct fay_result result = { .row_size = ROW_SIZE, .row_count = 2, .rows = rows };
	struct fay_writer writer = { .out = out, .format = format };
	fay_write_schema(&writer, "a \"query\"\n", &view, 1);
	fay_write_result(&writer, &view, &result, false);
	fay_write_result(&writer, &view, &result, true);
	result.row_count = 0;
	fay_write_result(&writer, &view, &result, true);
}

/* Windows: a histogram that moves up and gets wider with each row; then all of them as groups. */
static void print_heat(FILE *out, enum fay_format format)
{
	static struct fay_schema_column heat[] = {
		{ "window", FAY_TYPE_U64, FAY_MERGE_KEY, 0, 8, { 0, 0 } },
		{ "sizes", FAY_TYPE_I64, FAY_MERGE_HIST_LOG2, 8, 65 * 8, { 0, 0 } },
	};
	static uint8_t rows[5][8 + 65 * 8];
	struct fay_view_column shown[2] = { { .name = "window", .column = &heat[0] },
					    { .name = "sizes", .column = &heat[1] } };
	struct fay_view view = { .columns = shown, .column_count = 2, .row_size = sizeof(rows[0]) };
	struct fay_result result = { .row_size = sizeof(rows[0]), .row_count = 5, .rows = rows[0] };
	struct fay_writer writer = { .out = out, .format = format };
	memset(rows, 0, sizeof(rows));
	for (size_t r = 0; r < 4; r++) { /* the last one has no value */
		put(rows[r], 0, r);
		for (size_t b = 4 + 2 * r; b <= 7 + 4 * r; b++)
			put(rows[r], 8 + 8 * b, (uint64_t)1 << (3 * (b - 4)));
	}
	for (size_t r = 0; r < 5; r++)
		fay_write_row(&writer, &view, rows[r]);
	put(rows[4], 8, 1);          /* nothing or less */
	put(rows[4], 8 + 8 * 64, 1); /* the largest: the map has no room for all buckets */
	writer.revised = true;
	fay_write_row(&writer, &view, rows[4]);
	writer = (struct fay_writer){ .out = out, .format = format, .heat_map = true };
	fay_write_result(&writer, &view, &result, true);
}

static void print_linear_heat(FILE *out, enum fay_format format)
{
	static struct fay_schema_column heat = { "size", FAY_TYPE_I64, FAY_MERGE_HIST_LINEAR,
						 0,      6 * 8,        { 0, 100 } };
	static const uint64_t row[6] = { 1, 0, 50, 20, 0, 29 };
	struct fay_view_column shown = { .name = "size", .column = &heat };
	struct fay_view view = { .columns = &shown, .column_count = 1, .row_size = sizeof(row) };
	struct fay_writer writer = { .out = out, .format = format };
	fay_write_row(&writer, &view, (const uint8_t *)row);
}

/* The cell of a span of so many nanoseconds. */
static void expect_span(int64_t ns, enum fay_format format, bool raw, const char *want)
{
	static struct fay_schema_column span = { "t", FAY_TYPE_I64, FAY_MERGE_KEY, 0, 8, { 0, 0 } };
	struct fay_view_column shown = { .name = "t", .column = &span, .nanoseconds = true };
	struct fay_view view = { .columns = &shown, .column_count = 1, .row_size = sizeof(ns) };
	char *text = NULL;
	size_t size = 0;
	struct fay_writer writer = { .out = open_memstream(&text, &size),
				     .format = format,
				     .header_written = true,
				     .raw = raw };
	assert_non_null(writer.out);
	fay_write_row(&writer, &view, (const uint8_t *)&ns);
	fclose(writer.out);
	assert_non_null(strstr(text, want));
	free(text);
}

static void spans_have_units(void **state)
{
	static const struct {
		int64_t ns;
		const char *want;
	} cases[] = {
		{ 0, " 0 ns" },
		{ 7, " 7 ns" },
		{ 999, " 999 ns" },
		{ 1000, " 1.00 us" },
		{ 1024, " 1.02 us" },
		{ -1500, " -1.50 us" },
		{ 12345, " 12.3 us" },
		{ 999400, " 999 us" },
		{ 999600, " 1.00 ms" },
		{ 61000000, " 61.0 ms" },
		{ 2500000000, " 2.50 s" },
		{ 86400000000000, " 86400 s" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_span(cases[i].ns, FAY_FORMAT_TABLE, false, cases[i].want);
	expect_span(12345, FAY_FORMAT_TABLE, true, " 12345 ");
	expect_span(12345, FAY_FORMAT_JSON, false, "{\"t\":12345}");
	expect_span(12345, FAY_FORMAT_CSV, false, "12345\n");
}

/* Buckets of spans: 0, 1, 512..1023 and 1024..2047 of a histogram by powers of two. */
static void print_span_histogram(FILE *out, enum fay_format format)
{
	static struct fay_schema_column span = { "t", FAY_TYPE_I64, FAY_MERGE_HIST_LOG2,
						 0,   65 * 8,       { 0, 0 } };
	static uint64_t row[65] = { [0] = 1, [1] = 2, [10] = 30, [11] = 4, [64] = 1 };
	struct fay_view_column shown = { .name = "t", .column = &span, .nanoseconds = true };
	struct fay_view view = { .columns = &shown, .column_count = 1, .row_size = sizeof(row) };
	struct fay_result result = { .row_size = sizeof(row),
				     .row_count = 1,
				     .rows = (uint8_t *)row };
	struct fay_writer writer = { .out = out, .format = format };
	fay_write_result(&writer, &view, &result, true);
}

typedef void print_function(FILE *out, enum fay_format format);

static void compare_printed(const char *name, enum fay_format format, print_function *print)
{
	char path[512], *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	print(out, format);
	fclose(out);
	snprintf(path, sizeof(path), "%s/%s", GOLDEN, name);
	if (getenv("FAY_REGENERATE")) {
		FILE *golden = fopen(path, "w");
		assert_non_null(golden);
		fwrite(text, 1, size, golden);
		fclose(golden);
	}
	FILE *golden = fopen(path, "r");
	assert_non_null(golden);
	char *want = calloc(1, size + 65536);
	size_t got = fread(want, 1, size + 65535, golden);
	fclose(golden);
	assert_int_equal(got, size);
	assert_string_equal(want, text);
	free(want);
	free(text);
}

static void compare(const char *name, enum fay_format format)
{
	compare_printed(name, format, print_all);
}

/* Text is UTF-8 as it is; what is not, or would command a terminal, is escaped byte by byte; a
 * string ends at its NUL or its size. */
static void json_has_text(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *want;
	} cases[] = {
		{ "gr\xc3\xb6\xc3\x9f"
		  "e \xe6\x96\x87 \xf0\x9f\x90\x9f",
		  32,
		  "\"gr\xc3\xb6\xc3\x9f"
		  "e \xe6\x96\x87 \xf0\x9f\x90\x9f\"" },
		{ "a\\\"\t\x7f", 16, "\"a\\\\\\\"\\u0009\\u007f\"" },
		{ "cut \xe6\x96", 16, "\"cut \\u00e6\\u0096\"" },
		{ "\xff\xc0\x80\xe2\x80\xae", 6, "\"\\u00ff\\u00c0\\u0080\\u00e2\\u0080\\u00ae\"" },
		{ "ab\xc3\xb6", 3, "\"ab\\u00c3\"" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = NULL;
		size_t size = 0;
		FILE *out = open_memstream(&text, &size);
		assert_non_null(out);
		fay_json_string(out, cases[i].bytes, cases[i].size);
		fclose(out);
		assert_string_equal(text, cases[i].want);
		free(text);
	}
}

static void heat_maps_are_as_recorded(void **state)
{
	compare_printed("heat.txt", FAY_FORMAT_TABLE, print_heat);
	compare_printed("heat_linear.txt", FAY_FORMAT_TABLE, print_linear_heat);
	compare_printed("heat.json", FAY_FORMAT_JSON, print_heat);
}

static void spans_are_as_recorded(void **state)
{
	compare_printed("spans.txt", FAY_FORMAT_TABLE, print_span_histogram);
	compare_printed("spans.csv", FAY_FORMAT_CSV, print_span_histogram);
}

static void table_is_as_recorded(void **state)
{
	compare("table.txt", FAY_FORMAT_TABLE);
}

static void json_is_as_recorded(void **state)
{
	compare("rows.json", FAY_FORMAT_JSON);
}

static void csv_is_as_recorded(void **state)
{
	compare("rows.csv", FAY_FORMAT_CSV);
}

/* One row with this name, and a number below zero, as CSV. */
static void csv_of(const char *comm, const char *want)
{
	static uint8_t row[ROW_SIZE];
	struct fay_view view = { .columns = view_columns, .column_count = 3 };
	struct fay_result result = { .row_size = ROW_SIZE, .row_count = 1, .rows = row };
	struct fay_writer writer = { .format = FAY_FORMAT_CSV };
	char *text = NULL;
	size_t size = 0;

	memset(row, 0, sizeof(row));
	make_row(row, comm, 1, -5, 0);
	for (size_t i = 0; i < 3; i++)
		view_columns[i] =
			(struct fay_view_column){ .name = columns[i].name, .column = &columns[i] };
	writer.out = open_memstream(&text, &size);
	assert_non_null(writer.out);
	fay_write_result(&writer, &view, &result, true);
	fclose(writer.out);
	assert_string_equal(strchr(text, '\n') + 1, want);
	free(text);
}

static void csv_has_no_formulas(void **state)
{
	csv_of("=1+1", "'=1+1,1,-5\n");
	csv_of("@SUM(A1:A9)", "'@SUM(A1:A9),1,-5\n");
	csv_of("+a", "'+a,1,-5\n");
	csv_of("-2+3", "'-2+3,1,-5\n");
	csv_of("=a,\"b", "\"'=a,\"\"b\",1,-5\n");
	csv_of("-12.5", "-12.5,1,-5\n");
	csv_of("a=b", "a=b,1,-5\n");
	csv_of("", "\"\",1,-5\n");
	csv_of("a\nb\r\t", "\"a\nb\\x0d\\x09\",1,-5\n");
	csv_of("\x1b[2J\xc3\xa4\xc3", "\\x1b[2J\xc3\xa4\\xc3,1,-5\n");
}

/* --- whole values --- */

#define LONG_NAME 700

static const char *long_name(void *context, uint64_t hash)
{
	static char name[LONG_NAME + 1];
	memset(name, 'f', LONG_NAME - 2);
	snprintf(name + LONG_NAME - 2, 3, "%02u", (unsigned)(hash % 100));
	return name;
}

static void long_address(void *context, uint64_t address, unsigned form, char *text, size_t size)
{
	snprintf(text, size, "m!%s\033", long_name(context, address));
}

/* A function, the two most frequent functions, a place in code, a stack of two, an average, what
 * has no value. */
static char *print_long(enum fay_format format)
{
	static struct fay_schema_column wide[] = {
		{ "function", FAY_TYPE_FUNCTION, FAY_MERGE_KEY, 0, 8, { 0, 0 } },
		{ "top", FAY_TYPE_FUNCTION, FAY_MERGE_TOP, 8, 16 + 2 * 16, { 0, 0 } },
		{ "place", FAY_TYPE_U64, FAY_MERGE_KEY, 56, 8, { 0, 0 } },
		{ "stack", FAY_TYPE_STRING, FAY_MERGE_KEY, 64, 16, { 0, 0 } },
		{ "mean", FAY_TYPE_I64, FAY_MERGE_AVERAGE, 80, 16, { 0, 0 } },
		{ "least", FAY_TYPE_I64, FAY_MERGE_MIN, 96, 8, { 0, 0 } },
	};
	static const uint64_t row[] = { 1, 12, 0, 2, 7, 3, 5, 4, 5, 6, 1234567890123, 2, 0 };
	struct fay_view_column shown[6];
	for (size_t i = 0; i < 6; i++)
		shown[i] = (struct fay_view_column){ .name = wide[i].name,
						     .column = &wide[i],
						     .address = i == 2,
						     .stack_frames = i == 3 ? 2 : 0 };
	struct fay_view view = { .columns = shown, .column_count = 6, .row_size = sizeof(row) };
	struct fay_result result = { .row_size = sizeof(row),
				     .row_count = 1,
				     .rows = (uint8_t *)row };
	struct fay_writer writer = { .format = format,
				     .function_name = long_name,
				     .address_name = long_address };
	char *text = NULL;
	size_t size = 0;
	writer.out = open_memstream(&text, &size);
	assert_non_null(writer.out);
	fay_write_result(&writer, &view, &result, true);
	fclose(writer.out);
	return text;
}

static void expect_in(const char *text, const char *format, unsigned a, unsigned b)
{
	char want[4096], name[2][LONG_NAME + 1];
	snprintf(name[0], sizeof(name[0]), "%s", long_name(NULL, a));
	snprintf(name[1], sizeof(name[1]), "%s", long_name(NULL, b));
	snprintf(want, sizeof(want), format, name[0], name[1]);
	assert_non_null(strstr(text, want));
}

static void programs_get_values_whole(void **state)
{
	char *csv = print_long(FAY_FORMAT_CSV), *json = print_long(FAY_FORMAT_JSON),
	     *table = print_long(FAY_FORMAT_TABLE);
	expect_in(csv, "%s,%s:7 ", 1, 2);
	expect_in(csv, "%s:5,", 3, 3);
	expect_in(csv, ",m!%s\\x1b,", 4, 4);
	expect_in(csv, ",m!%s\\x1b;m!%s\\x1b,617283945061.5,\n", 5, 6);
	expect_in(json, "\"function\":\"%s\",\"top\":[{\"key\":\"%s\",\"count\":7}", 1, 2);
	expect_in(json, "\"place\":\"m!%s\\u001b\"", 4, 4);
	expect_in(json, "[\"m!%s\\u001b\",\"m!%s\\u001b\"]", 5, 6);
	/* of a table the names are cut, and that is to be seen */
	assert_non_null(strstr(table, "fff..."));
	assert_non_null(strstr(table, "617283945062"));
	free(csv);
	free(json);
	free(table);
}

static void durations_are_read(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = { { "10s", 10000000000u }, { "500ms", 500000000 }, { "1.5m", 90000000000u },
		     { "3", 3000000000u },    { "250us", 250000 },    { "0s", 0 } };
	static const char *const bad[] = { "", "s", "-1s", "10 s", "10x", "1e300h", "nan", "inf" };
	uint64_t ns;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(fay_cli_duration(good[i].text, &ns));
		assert_int_equal(ns, good[i].ns);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(fay_cli_duration(bad[i], &ns));
}

/* Commands to a terminal, a line of its own, C1 controls, an override of the writing direction, a
 * cut character; and text that stays. */
#define HOSTILE "\033[2J\na\302\233b\342\200\256c\303"
static const char tamed[] = "?[2J?a??b???c? \303\244";

static void no_row_commands_the_terminal(void **state)
{
	static uint8_t row[ROW_SIZE];
	static struct fay_schema_column wide = { "comm", FAY_TYPE_STRING, FAY_MERGE_KEY, 8,
						 24,     { 0, 0 } };
	struct fay_view_column one = { .name = "comm", .column = &wide };
	struct fay_view view = { .columns = &one, .column_count = 1 };
	struct fay_result result = { .row_size = ROW_SIZE, .row_count = 1, .rows = row };
	memcpy(row + 8, HOSTILE " \303\244", sizeof(HOSTILE " \303\244"));
	for (int format = FAY_FORMAT_TABLE; format <= FAY_FORMAT_CSV; format++) {
		char *text = NULL;
		size_t size = 0;
		FILE *out = open_memstream(&text, &size);
		struct fay_writer writer = { .out = out, .format = (enum fay_format)format };
		fay_write_result(&writer, &view, &result, true);
		fclose(out);
		for (size_t i = 0; i < size; i++)
			assert_true(text[i] == '\n' || (unsigned char)text[i] >= ' ');
		if (format == FAY_FORMAT_JSON)
			assert_null(strchr(text, '\302'));
		else if (format == FAY_FORMAT_CSV)
			assert_non_null(strstr(
				text, "\"\\x1b[2J\na\\xc2\\x9bb\\xe2\\x80\\xaec\\xc3 \303\244\""));
		else
			assert_non_null(strstr(text, tamed));
		free(text);
	}
}

/* Through standard error: lines stay lines. */
static void no_message_commands_the_terminal(void **state)
{
	char got[256] = "";
	int ends[2], before = dup(STDERR_FILENO);
	FILE *usual = stderr;
	assert_int_equal(pipe(ends), 0);
	dup2(ends[1], STDERR_FILENO);
	fay_messages_guard();
	fprintf(stderr, "fay: %s \303\244\n", HOSTILE);
	fclose(stderr);
	stderr = usual;
	dup2(before, STDERR_FILENO);
	assert_true(read(ends[0], got, sizeof(got) - 1) > 0);
	assert_string_equal(got, "fay: ?[2J\na??b???c? \303\244\n");
	close(before);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_row_commands_the_terminal),
		cmocka_unit_test(no_message_commands_the_terminal),
		cmocka_unit_test(table_is_as_recorded),
		cmocka_unit_test(heat_maps_are_as_recorded),
		cmocka_unit_test(json_has_text),
		cmocka_unit_test(json_is_as_recorded),
		cmocka_unit_test(csv_is_as_recorded),
		cmocka_unit_test(csv_has_no_formulas),
		cmocka_unit_test(programs_get_values_whole),
		cmocka_unit_test(durations_are_read),
		cmocka_unit_test(spans_have_units),
		cmocka_unit_test(spans_are_as_recorded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
