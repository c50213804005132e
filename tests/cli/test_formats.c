/* SPDX-License-Identifier: MIT */
/*
 * What other programs read of `fay trace --format`, for known results, against golden files.
 * Regenerate them with `FAY_REGENERATE=1 ctest -R cli_formats`, then review the diff.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/output/output.h"

#define ROWS 3
#define ROW_SIZE (16 + 8 + 8 + 5 * 8)

static struct fay_schema_column columns[] = {
	{ "comm", FAY_TYPE_STRING, FAY_MERGE_KEY, 0, 16, { 0, 0 } },
	{ "n", FAY_TYPE_I64, FAY_MERGE_COUNT, 16, 8, { 0, 0 } },
	{ "n", FAY_TYPE_I64, FAY_MERGE_SUM, 24, 8, { 0, 0 } },
	{ "time", FAY_TYPE_I64, FAY_MERGE_HIST_LINEAR, 32, 5 * 8, { 1000, 500 } },
};
static struct fay_view_column shown[4];

static void make_row(uint8_t *row, const char *comm, uint64_t n, int64_t sum)
{
	const uint64_t buckets[5] = { 1, 0, n, 0, 2 };
	strncpy((char *)row, comm, 16);
	memcpy(row + 16, &n, 8);
	memcpy(row + 24, &sum, 8);
	memcpy(row + 32, buckets, sizeof(buckets));
}

static char *print(struct fay_writer writer, const uint8_t *rows, size_t count, size_t *size)
{
	char *text = NULL;
	for (size_t i = 0; i < 4; i++)
		shown[i] = (struct fay_view_column){ .name = columns[i].name,
						     .column = &columns[i],
						     .nanoseconds = i == 3 };
	struct fay_view view = { .columns = shown, .column_count = 4, .row_size = ROW_SIZE };
	struct fay_result result = { .row_size = ROW_SIZE,
				     .row_count = count,
				     .rows = (uint8_t *)rows };
	writer.out = open_memstream(&text, size);
	assert_non_null(writer.out);
	if (writer.format == FAY_FORMAT_HTML || writer.format == FAY_FORMAT_SVG) {
		shown[1].name = "a name that has some length, as columns of people's queries may";
		view.title = "one < two";
	}
	fay_write_schema(&writer, "from \"libc!*\" group \\", &view, 1);
	fay_write_result(&writer, &view, &result, true);
	fay_write_end(&writer, true);
	fay_write_close(&writer);
	fclose(writer.out);
	return text;
}

static void compare(const char *name, const char *got, size_t size)
{
	char path[1024], want[16384] = "";
	snprintf(path, sizeof(path), "%s/%s", GOLDEN, name);
	FILE *file = fopen(path, getenv("FAY_REGENERATE") ? "w" : "r");
	assert_non_null(file);
	if (getenv("FAY_REGENERATE"))
		fwrite(got, size, 1, file);
	else
		assert_int_equal(fread(want, 1, sizeof(want), file), size);
	fclose(file);
	if (!getenv("FAY_REGENERATE"))
		assert_memory_equal(want, got, size);
}

/* Labels are escaped; of rows with the same ones the first is shown. */
static void metrics_are_as_recorded(void **state)
{
	static uint8_t rows[ROWS][ROW_SIZE];
	size_t size;
	make_row(rows[0], "a\"b\\c\nd\033\xff", 7, -5);
	make_row(rows[1], "redis-server", 120, 360);
	make_row(rows[2], "redis-server", 9, 9);
	char *text = print(
		(struct fay_writer){ .format = FAY_FORMAT_OPENMETRICS, .metrics = "fay_reads" },
		rows[0], ROWS, &size);
	compare("metrics.txt", text, size);
	free(text);
	text = print((struct fay_writer){ .format = FAY_FORMAT_OPENMETRICS, .revocable = true },
		     rows[0], 1, &size);
	assert_non_null(strstr(text, "# TYPE fay_n gauge\n"));
	assert_non_null(strstr(text, "\nfay_n{"));
	free(text);
}

/* However many groups a traced program makes. */
static void metrics_are_bounded(void **state)
{
	enum { MANY = 20000 };
	uint8_t *rows = calloc(MANY, ROW_SIZE);
	char name[16], *text;
	size_t size, samples = 0, rows_shown = 0, left_out = 0;
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "program%u", i);
		make_row(rows + (size_t)i * ROW_SIZE, name, 1, 1);
	}
	text = print((struct fay_writer){ .format = FAY_FORMAT_OPENMETRICS }, rows, MANY, &size);
	for (char *line = text; *line; line = strchr(line, '\n') + 1) {
		samples += *line != '#';
		rows_shown += !strncmp(line, "fay_n_total{", 12);
		sscanf(line, "fay_rows_left_out %zu", &left_out);
	}
	assert_true(samples > 8000 && samples <= 10001);
	assert_int_equal(left_out + rows_shown, MANY);
	free(text);
	free(rows);
}

/* A heat map of several rows, a histogram of one; what traced programs are called is text. */
static void pages_are_as_recorded(void **state)
{
	static uint8_t rows[ROWS][ROW_SIZE];
	size_t size;
	make_row(rows[0], "<script>&\n\033", 7, -5);
	make_row(rows[1], "redis-server", 120, 360);
	make_row(rows[2], "a-very-long-nam", 1, 9);
	for (int single = 0; single < 2; single++) {
		char *text = print((struct fay_writer){ .format = FAY_FORMAT_HTML }, rows[single],
				   single ? 1 : ROWS, &size);
		compare(single ? "histogram.html" : "heat.html", text, size);
		free(text);
		text = print((struct fay_writer){ .format = FAY_FORMAT_SVG }, rows[single],
			     single ? 1 : ROWS, &size);
		compare(single ? "histogram.svg" : "heat.svg", text, size);
		free(text);
	}
}

/* Rows beyond the bound are counted. */
static void pages_are_bounded(void **state)
{
	enum { MANY = 10003 };
	uint8_t *rows = calloc(MANY, ROW_SIZE);
	size_t size;
	char *text = print((struct fay_writer){ .format = FAY_FORMAT_HTML }, rows, MANY, &size);
	assert_non_null(strstr(text, "<p>3 more rows are not shown.</p>"));
	free(text);
	text = print((struct fay_writer){ .format = FAY_FORMAT_SVG }, rows, 0, &size);
	assert_non_null(strstr(text, ">no event matched</text>"));
	free(text);
	free(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(metrics_are_as_recorded),
		cmocka_unit_test(metrics_are_bounded),
		cmocka_unit_test(pages_are_as_recorded),
		cmocka_unit_test(pages_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
