/* SPDX-License-Identifier: MIT */
/* How single things are shown: pointers, names, what bars stand for, the page of a flame graph. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/output/output.h"

struct row {
	uint64_t used, key;
	char name[16];
	uint64_t calls;
};

static struct fay_schema_column columns[] = {
	{ "key", FAY_TYPE_I64, FAY_MERGE_KEY, 8, 8, { 0, 0 } },
	{ "name", FAY_TYPE_STRING, FAY_MERGE_KEY, 16, 16, { 0, 0 } },
	{ "calls", FAY_TYPE_U64, FAY_MERGE_COUNT, 32, 8, { 0, 0 } },
};

/* Two rows as this format has them; malloc'ed. */
static char *print_rows(struct fay_writer writer, bool typed)
{
	static const struct row rows[] = { { 1, 0x7f0012345678, "a<b&c;d", 40 },
					   { 1, 0, "main", 10 } };
	struct fay_view_column shown[] = {
		{ .name = "key", .column = &columns[0], .pointer = typed, .maybe_pointer = !typed },
		{ .name = "name", .column = &columns[1] },
		{ .name = "calls", .column = &columns[2] },
	};
	struct fay_view view = { .columns = shown, .column_count = 3, .row_size = sizeof(rows[0]) };
	struct fay_result result = { .row_size = sizeof(rows[0]),
				     .row_count = 2,
				     .rows = (uint8_t *)rows };
	char *text = NULL;
	size_t size = 0;
	writer.out = open_memstream(&text, &size);
	assert_non_null(writer.out);
	fay_write_schema(&writer, "a < b", &view, 1);
	fay_write_result(&writer, &view, &result, true);
	fclose(writer.out);
	return text;
}

static void expect(struct fay_writer writer, const char *const *wanted)
{
	for (int typed = 0; typed < 2; typed++) {
		char *text = print_rows(writer, typed);
		for (size_t i = 0; wanted[i]; i++)
			if (!strstr(text, wanted[i]))
				fail_msg("no '%s' in:\n%s", wanted[i], text);
		free(text);
	}
}

/* In hexadecimal to people, as a number to programs. */
static void pointers(void **state)
{
	expect((struct fay_writer){ .format = FAY_FORMAT_TABLE },
	       (const char *const[]){ "0x7f0012345678  a<b&c;d", "             0  main", NULL });
	expect((struct fay_writer){ .format = FAY_FORMAT_TABLE, .raw = true },
	       (const char *const[]){ "139638282147448  a<b", NULL });
	expect((struct fay_writer){ .format = FAY_FORMAT_JSON },
	       (const char *const[]){ "{\"key\":139638282147448,\"name\":\"a<b", NULL });
	expect((struct fay_writer){ .format = FAY_FORMAT_CSV },
	       (const char *const[]){ "\n139638282147448,a<b&c;d,40\n", NULL });
}

static void bars_have_a_heading(void **state)
{
	expect((struct fay_writer){ .format = FAY_FORMAT_TABLE },
	       (const char *const[]){ "key  name     calls   calls\n",
				      "   40  |########################################|\n",
				      "   10  |##########                              |\n",
				      NULL });
}

/* Of rows in order they show that by which they are, of others the counts. */
static void bars_of_what_is_in_order(void **state)
{
	static const uint64_t rows[][4] = { { 1, 7, 10, 400 }, { 1, 8, 40, 100 } };
	static struct fay_schema_column own[] = {
		{ "key", FAY_TYPE_U64, FAY_MERGE_KEY, 8, 8, { 0, 0 } },
		{ "calls", FAY_TYPE_U64, FAY_MERGE_COUNT, 16, 8, { 0, 0 } },
		{ "total", FAY_TYPE_I64, FAY_MERGE_SUM, 24, 8, { 0, 0 } },
	};
	struct fay_view_column columns_shown[3];
	for (size_t c = 0; c < 3; c++)
		columns_shown[c] =
			(struct fay_view_column){ .name = own[c].name, .column = &own[c] };
	for (int ordered = 0; ordered < 2; ordered++) {
		columns_shown[2].orders = ordered;
		struct fay_view view = { .columns = columns_shown,
					 .column_count = 3,
					 .ordered = ordered };
		struct fay_result result = { .row_size = 32,
					     .row_count = 2,
					     .rows = (uint8_t *)rows };
		struct fay_writer writer = { 0 };
		char *text = NULL;
		size_t size;
		writer.out = open_memstream(&text, &size);
		assert_non_null(writer.out);
		fay_write_result(&writer, &view, &result, true);
		fclose(writer.out);
		assert_non_null(strstr(text, ordered ? "key  calls  total   total\n"
						     : "key  calls  total   calls\n"));
		assert_non_null(
			strstr(text, ordered ? "400  |########################################|\n"
					     : "400  |##########     "));
		free(text);
	}
}

/* What is most frequent, in a table, with the error of the counts if there is one. */
static void counts_of_the_most_frequent(void **state)
{
	static struct fay_schema_column top[] = {
		{ "top", FAY_TYPE_U64, FAY_MERGE_TOP, 0, 16 + 2 * 16, { 0, 0 } },
	};
	struct fay_view_column shown[] = { { .name = "top", .column = top } };
	struct fay_view view = { .columns = shown, .column_count = 1, .row_size = 48 };
	for (uint64_t error = 0; error < 3; error++) {
		uint64_t row[] = { 12, error, 7, 5, 9, 3 };
		struct fay_result result = { .row_size = sizeof(row),
					     .row_count = 1,
					     .rows = (uint8_t *)row };
		for (int csv = 0; csv < 2; csv++) {
			struct fay_writer writer = { .format = csv ? FAY_FORMAT_CSV
								   : FAY_FORMAT_TABLE };
			char *text = NULL, note[64];
			size_t size;
			writer.out = open_memstream(&text, &size);
			assert_non_null(writer.out);
			fay_write_result(&writer, &view, &result, true);
			fclose(writer.out);
			snprintf(note, sizeof(note), "7:5 9:3 (each up to %u too low, of 12)",
				 (unsigned)error);
			assert_non_null(strstr(text, error && !csv ? note : "7:5 9:3"));
			assert_true(!strstr(text, "(each") == (!error || csv));
			free(text);
		}
	}
}

/* Columns that say so by their names have units; with --raw, and for programs, numbers. */
static void sizes(void **state)
{
	static const uint64_t rows[][5] = { { 1, 7, 1, 0, 0 }, { 1, 51388416, 2, 1023, 1024 } };
	static struct fay_schema_column own[] = {
		{ "bytes", FAY_TYPE_U64, FAY_MERGE_KEY, 8, 8, { 0, 0 } },
		{ "calls", FAY_TYPE_U64, FAY_MERGE_COUNT, 16, 8, { 0, 0 } },
		{ "read_bytes", FAY_TYPE_I64, FAY_MERGE_SUM, 24, 8, { 0, 0 } },
		{ "sentBytes", FAY_TYPE_U64, FAY_MERGE_MAX, 32, 8, { 0, 0 } },
	};
	struct fay_view_column columns_shown[4];
	for (int raw = 0; raw < 3; raw++) {
		for (size_t c = 0; c < 4; c++)
			columns_shown[c] =
				(struct fay_view_column){ .name = raw == 2 && !c ? "megabytes"
										 : own[c].name,
							  .column = &own[c] };
		struct fay_view view = { .columns = columns_shown, .column_count = 4 };
		struct fay_result result = { .row_size = 40,
					     .row_count = 2,
					     .rows = (uint8_t *)rows };
		struct fay_writer writer = { .raw = raw == 1 };
		char *text = NULL;
		size_t size = 0;
		writer.out = open_memstream(&text, &size);
		assert_non_null(writer.out);
		fay_write_result(&writer, &view, &result, true);
		fclose(writer.out);
		assert_non_null(strstr(text, raw == 0   ? "49.0 MiB      2      1023 B   1.00 KiB"
					     : raw == 1 ? "51388416      2        1023       1024"
							: " 51388416      2      1023 B"));
		free(text);
	}
}

static void flame_page(void **state)
{
	expect((struct fay_writer){ .format = FAY_FORMAT_FLAME },
	       (const char *const[]){ "<!DOCTYPE html>\n",
				      "<pre id=\"query\">a &lt; b</pre>\n"
				      "<p id=\"about\">Width: the number of events, the column "
				      "`calls`.</p>\n",
				      "<pre id=\"names\" hidden>0\nmain\n0x7f0012345678\n"
				      "a&lt;b&amp;c:d\n</pre>",
				      "data-now=\"50\" data-before=\"0\" data-deepest=\"2\" "
				      "data-most=\"0\" data-compared=\"\" hidden>"
				      "<script type=\"text/plain\">?TA@SApABBoA</script></div>\n",
				      "</html>\n", NULL });
}

/* What neighbours share is left out, also where one stack goes on from the other's end. */
static void flame_page_compared(void **state)
{
	char now[] = "a;b;c 3\na;b 2\nab;c 1\na;b;d 4\nno count\na;b 5\n", *text = NULL;
	char before[] = "a;b;c 7\na;x 6";
	size_t size;
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	assert_true(fay_flame_page(out, "q", "", now, before));
	fclose(out);
	assert_non_null(strstr(text, "<pre id=\"names\" hidden>a\nb\nc\nd\nx\nab\n</pre>"));
	assert_non_null(strstr(text, "data-now=\"15\" data-before=\"13\" data-deepest=\"3\" "
				     "data-most=\"0.461538\" data-compared=\"1\" hidden>"
				     "<script type=\"text/plain\">?\\LL@\\FEAEFBG?C?EDB?BAA?"
				     "</script></div>"));
	free(text);
}

/* `test_cli_shown FOLDED [BEFORE]`: the page, for a browser. */
static char *read_all(const char *path)
{
	char *text = NULL;
	size_t size = 0;
	FILE *file = fopen(path, "r");
	if (file && getdelim(&text, &size, 0, file) < 0)
		text = strdup("");
	if (file)
		fclose(file);
	return text;
}

static int print_page(int count, char **paths)
{
	char *now = read_all(paths[0]), *before = count > 1 ? read_all(paths[1]) : NULL;
	bool fine = now && (count == 1 || before) &&
		    fay_flame_page(stdout, "a < b", "Width: <calls>", now, before);
	free(now);
	free(before);
	return !fine;
}

/* A column that a row has made wider stays so, up to a bound, and the head is written again. */
static void columns_of_single_rows(void **state)
{
	static struct fay_schema_column wide = { "name", FAY_TYPE_STRING, FAY_MERGE_KEY, 0,
						 64,     { 0, 0 } };
	static const char *const names[] = { "a", "a name of some 25 letters", "b" };
	struct fay_view_column shown[] = { { .name = "name", .column = &wide },
					   { .name = "again", .column = &wide } };
	struct fay_view view = { .columns = shown, .column_count = 2, .row_size = 64 };
	struct fay_writer writer = { .format = FAY_FORMAT_TABLE };
	char *text = NULL;
	size_t size = 0;
	writer.out = open_memstream(&text, &size);
	assert_non_null(writer.out);
	for (size_t i = 0; i < 3; i++) {
		uint8_t row[64] = { 0 };
		strncpy((char *)row, names[i], sizeof(row) - 1);
		fay_write_row(&writer, &view, row);
	}
	fclose(writer.out);
	assert_string_equal(
		text, "name              again             \n"
		      "a                 a                 \n"
		      "name                              again                             \n"
		      "a name of some 25 letters         a name of some 25 letters         \n"
		      "b                                 b                                 \n");
	free(text);
}

static void readable_names(void **state)
{
	static const struct {
		const char *name, *want;
	} cases[] = {
		{ "read", "read" },
		{ "_ZL5tallylll", "tally" },
		{ "_ZNKSt8functionIFivEEclEv", "std::function<int ()>::operator()" },
		{ "_ZN1a12_GLOBAL__N_13fooEi", "a::(anonymous namespace)::foo" },
		{ "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
		  "core::fmt::Write::write_fmt" },
		{ "_ZN5outer5inner8functionIiEEvv", "void outer::inner::function<int>" },
		{ "_ZN5outer5inner8functionIidEEvv", "void outer::inner::function<in..." },
		{ "_ZN4core3ptr42drop_in_place$LT$std..io..error..Error$GT$"
		  "17hd857c38ffc16330fE.llvm.14415087653854864763",
		  "core::ptr::drop_in_place<std::..." },
		{ "_ZN81_$LT$shop..Cart$u20$as$u20$core..fmt..Write$GT$2up17ha838151b43f90e88E",
		  "_ZN81_$LT$shop..Cart$u20$as$u20$core..fmt..Write$GT$2up17ha838151b43f90e88E" },
		{ "_ZN33_$LT$T$u20$as$u20$shop..Sized$GT$2up17ha838151b43f90e88E",
		  "<T as shop::Sized>::up" },
		{ "_RNvNtCs1234_4shop4cart3add", "shop::cart::add" },
		{ "_RNvMs_NtCs1234_4shop4cartNtB4_4Cart3add", "shop::cart::Cart::add" },
		{ "_RINvNtCs1234_4shop4cart3addhE", "shop::cart::add" },
		{ "_RNCNvCs1234_4shop4mains0_0B3_", "shop::main::{closure#2}" },
		{ "_RNvXCs1234_4shopNtB2_4CartNtB2_3Add3add", "<shop::Cart as shop::Add>::add" },
		{ "_RNvMCs1234_4shopSh3sum", "<[u8]>::sum" },
		{ "_RNvYTFhElEuKj8_E", "_RNvYTFhElEuKj8_E" },
		{ "_RNvB_3add", "_RNvB_3add" },
		{ "_RNvNvB2_3add3add", "_RNvNvB2_3add3add" },
		{ "_RNvCs1234_99999999999999999999shop", "_RNvCs1234_99999999999999999999shop" },
		{ "_R", "_R" },
		{ "_Z", "_Z" },
		{ "_ZN3", "_ZN3" },
		/* Each pair of references can double what is printed: 24 of them are looked into,
		 * 25 are not. */
		{ "_Z1f1AS_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_", "f" },
		{ "_Z1f1AS_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_",
		  "_Z1f1AS_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_" },
	};
	char buffer[34], *nested = malloc(200001);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(fay_readable_name(cases[i].name, buffer, sizeof(buffer)),
				    cases[i].want);
	/* A name made to exhaust the demangler's stack. */
	assert_non_null(nested);
	memset(nested, 'P', 200000);
	nested[200000] = '\0';
	memcpy(nested, "_RMCs_", 6);
	assert_ptr_equal(fay_readable_name(nested, buffer, sizeof(buffer)), nested);
	nested[900] = 0;
	assert_ptr_equal(fay_readable_name(nested, buffer, sizeof(buffer)), nested);
	nested[900] = 'P';
	memcpy(nested, "_Z1f", 4);
	assert_ptr_equal(fay_readable_name(nested, buffer, sizeof(buffer)), nested);
	free(nested);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return print_page(argc - 1, argv + 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pointers),
		cmocka_unit_test(readable_names),
		cmocka_unit_test(bars_have_a_heading),
		cmocka_unit_test(bars_of_what_is_in_order),
		cmocka_unit_test(counts_of_the_most_frequent),
		cmocka_unit_test(sizes),
		cmocka_unit_test(flame_page),
		cmocka_unit_test(flame_page_compared),
		cmocka_unit_test(columns_of_single_rows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
