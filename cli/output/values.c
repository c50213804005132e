/* SPDX-License-Identifier: MIT */
/* Single values as text: cells of tables and of CSV, JSON. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fay/utf8.h"

#include "output_parts.h"

#define READABLE 64 /* bytes of a demangled name */

static const char *function_name(const struct fay_writer *writer, uint64_t hash, char unknown[32])
{
	const char *name =
		writer->function_name ? writer->function_name(writer->name_context, hash) : NULL;
	if (name)
		return name;
	snprintf(unknown, 32, "function#%016" PRIx64, hash);
	return unknown;
}

int fay_output_by_hash(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

bool fay_output_is_left_out(const struct fay_writer *writer, uint64_t function)
{
	return writer->left_out_count &&
	       bsearch(&function, writer->left_out, writer->left_out_count, sizeof(function),
		       fay_output_by_hash);
}

/* As people write it where people read it; programs get the symbol's name, by which it can be
 * selected. */
static const char *shown_function(const struct fay_writer *writer, uint64_t hash, char unknown[32],
				  char readable[READABLE])
{
	const char *name = function_name(writer, hash, unknown);
	return writer->format == FAY_FORMAT_TABLE ? fay_readable_name(name, readable, READABLE)
						  : name;
}

static void format_time(uint64_t ns, char *text, size_t size)
{
	time_t seconds = (time_t)(ns / 1000000000u);
	struct tm tm;
	char date[64];
	localtime_r(&seconds, &tm);
	strftime(date, sizeof(date), "%F %T", &tm);
	snprintf(text, size, "%s.%09u", date, (unsigned)(ns % 1000000000u));
}

/* --- units, and histograms' buckets --- */

struct unit {
	const char *name;
	double size;
};
/* From the greatest down; the smallest has size 1. */
static const struct unit times[] = { { "s", 1e9 }, { "ms", 1e6 }, { "us", 1e3 }, { "ns", 1 } },
			 sizes[] = { { "TiB", 0x1p40 },
				     { "GiB", 0x1p30 },
				     { "MiB", 0x1p20 },
				     { "KiB", 0x1p10 },
				     { "B", 1 } };

/* Columns whose name says so: a number has no type that would. */
static bool has_bytes(const struct fay_view_column *view)
{
	static const char bytes[] = "bytes";
	size_t length = strlen(view->name), end = sizeof(bytes) - 1;
	return length >= end && !strcasecmp(view->name + length - end, bytes) &&
	       (length == end || view->name[length - end - 1] == '_' ||
		view->name[length - end] == 'B');
}

/* NULL: numbers are shown as they are. */
static const struct unit *units_of(const struct fay_writer *writer,
				   const struct fay_view_column *view)
{
	if (writer->format != FAY_FORMAT_TABLE || writer->raw)
		return NULL;
	return view->nanoseconds ? times : has_bytes(view) ? sizes : NULL;
}

/* The unit in which people read such a number. */
static const struct unit *unit_of(const struct unit *units, double value)
{
	value = fabs(value) * 1.0005; /* 999.6 us are shown as a ms */
	while (units->size > 1 && value < units->size)
		units++;
	return units;
}

/* Three digits, or all before the point; whole numbers of the smallest unit are. */
static void format_quantity(char *text, size_t size, double value, const struct unit *unit)
{
	double n = value / unit->size, least = fabs(n) * 1.0005;
	bool whole = unit->size == 1 && n == floor(n);
	snprintf(text, size, "%.*f", whole || least >= 100 ? 0 : least >= 10 ? 1 : 2, n);
}

/* Shown as such where people read it, as in maps and debuggers. A register of no known type has one
 * if it is an address in a program and more than numbers mostly are. */
static bool is_pointer(const struct fay_writer *writer, const struct fay_view_column *view,
		       int64_t value)
{
	bool is = view->pointer || (view->maybe_pointer && value >> 32 > 0 && value >> 47 == 0);
	return is && !writer->raw &&
	       (writer->format == FAY_FORMAT_TABLE || writer->format == FAY_FORMAT_FOLDED);
}

static void put_quantity(FILE *out, const struct unit *units, double value)
{
	const struct unit *unit = unit_of(units, value);
	char text[32];
	format_quantity(text, sizeof(text), value, unit);
	fprintf(out, "%s %s", text, unit->name);
}

static double bound(const struct fay_bucket *bucket, uint64_t value)
{
	return bucket->is_signed ? (double)(int64_t)value : (double)value;
}

void fay_output_bucket_label(const struct fay_writer *writer, const struct fay_view_column *view,
			     size_t bucket, size_t count, char label[64])
{
	struct fay_bucket b = fay_bucket_of(view->column, bucket, count);
	const struct unit *units = units_of(writer, view), *unit;
	char low[24], high[24];
	fay_bucket_label(view->column, bucket, count, label);
	if (!units)
		return;
	unit = unit_of(units, bound(&b, b.low));
	format_quantity(low, sizeof(low), bound(&b, b.low), unit);
	format_quantity(high, sizeof(high), bound(&b, b.high), unit);
	if (b.open || b.low == b.high)
		snprintf(label, 64, "%s%s %s", b.open ? b.open : "", low, unit->name);
	else
		snprintf(label, 64, "%s..%s %s", low, high, unit->name);
}

/* A key of a list, by the column's type. */
static void put_key(FILE *out, const struct fay_writer *writer, const struct fay_view_column *view,
		    uint64_t key)
{
	const struct fay_schema_column *column = view->column;
	char unknown[32], readable[READABLE];
	const struct unit *units = units_of(writer, view);
	if (units)
		put_quantity(out, units, (double)(int64_t)key);
	else if (column->type == FAY_TYPE_I64)
		fprintf(out, "%" PRId64, (int64_t)key);
	else if (column->type == FAY_TYPE_FUNCTION)
		fputs(shown_function(writer, key, unknown, readable), out);
	else
		fprintf(out, "%" PRIu64, key);
}

/* People get six digits, or all before the point; programs as many as there are. */
static void put_real(FILE *out, const struct fay_writer *writer, const struct fay_view_column *view,
		     double value)
{
	char text[32];
	bool large = fabs(value) >= 1e6 && fabs(value) < 1e15;
	const struct unit *units = units_of(writer, view);
	if (units) {
		put_quantity(out, units, value);
		return;
	}
	if (writer->format == FAY_FORMAT_TABLE && large) {
		fprintf(out, "%.0f", value);
		return;
	}
	for (int digits = writer->format == FAY_FORMAT_TABLE ? 6 : 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (writer->format == FAY_FORMAT_TABLE || strtod(text, NULL) == value)
			break;
	}
	fputs(text, out);
}

/* Where the most frequent values are estimates: by how much. */
static void put_top_bound(FILE *out, const struct fay_writer *writer,
			  const struct fay_schema_column *column, const uint8_t *row)
{
	uint64_t total, error;
	if (writer->format != FAY_FORMAT_TABLE || column->merge != FAY_MERGE_TOP)
		return;
	fay_value_top_bound(column, row, &total, &error);
	if (error)
		fprintf(out, " (each up to %" PRIu64 " too low, of %" PRIu64 ")", error, total);
}

/* "p50 12 p99 80" of quantiles, "7:120 9:3" of the most frequent, "3 8 5" of a sample. */
static void put_list(FILE *out, const struct fay_writer *writer, const struct fay_view_column *view,
		     const uint8_t *row)
{
	const struct fay_schema_column *column = view->column;
	struct fay_item item;
	size_t i = 0;
	for (; fay_value_item(column, row, i, &item); i++) {
		fputs(i ? " " : "", out);
		if (item.label) {
			fprintf(out, "%s ", item.label);
			put_real(out, writer, view, item.value);
			continue;
		}
		put_key(out, writer, view, item.key);
		if (column->merge == FAY_MERGE_TOP)
			fprintf(out, ":%" PRIu64, item.count);
	}
	if (!i)
		fputs("none is frequent", out);
	put_top_bound(out, writer, column, row);
}

/* Quantiles are an object, {"p50":12}; the most frequent an array of {"key":7,"count":120}; a
 * sample an array of values. */
static void json_list(const struct fay_writer *writer, const struct fay_view_column *view,
		      const uint8_t *row)
{
	const struct fay_schema_column *column = view->column;
	FILE *out = writer->out;
	struct fay_item item;
	fputc(column->merge == FAY_MERGE_QUANTILE ? '{' : '[', out);
	for (size_t i = 0; fay_value_item(column, row, i, &item); i++) {
		char unknown[32];
		if (i)
			fputc(',', out);
		if (item.label) {
			fprintf(out, "\"%s\":%.17g", item.label, item.value);
			continue;
		}
		if (column->merge == FAY_MERGE_TOP)
			fprintf(out, "{\"key\":");
		if (column->type == FAY_TYPE_FUNCTION) {
			const char *name = function_name(writer, item.key, unknown);
			fay_json_string(out, name, strlen(name));
		} else {
			put_key(out, writer, view, item.key);
		}
		if (column->merge == FAY_MERGE_TOP)
			fprintf(out, ",\"count\":%" PRIu64 "}", item.count);
	}
	fputc(column->merge == FAY_MERGE_QUANTILE ? '}' : ']', out);
}

static void put_histogram(FILE *out, const struct fay_writer *writer,
			  const struct fay_view_column *view, const struct fay_value *value)
{
	uint64_t total = 0;
	size_t shown = 0;
	for (size_t i = 0; i < value->histogram.count; i++) {
		char label[64];
		total += value->histogram.buckets[i];
		if (!value->histogram.buckets[i] || writer->format != FAY_FORMAT_CSV)
			continue;
		fay_output_bucket_label(writer, view, i, value->histogram.count, label);
		fprintf(out, "%s%s:%" PRIu64, shown++ ? " " : "", label,
			value->histogram.buckets[i]);
	}
	if (writer->format != FAY_FORMAT_CSV)
		fprintf(out, "(%" PRIu64 " values)", total);
}

static void put_unsigned(FILE *out, const struct fay_writer *writer,
			 const struct fay_view_column *view, uint64_t value)
{
	const struct fay_schema_column *column = view->column;
	char unknown[32], text[FAY_OUTPUT_NAME], readable[READABLE];
	if (view->address && writer->address_name) {
		writer->address_name(
			writer->name_context, value,
			(writer->format == FAY_FORMAT_TABLE ? FAY_ADDRESS_READABLE : 0) |
				(view->symbol ? FAY_ADDRESS_EXACT : 0),
			text, sizeof(text));
		fputs(text, out);
	} else if (column->type == FAY_TYPE_FUNCTION) {
		fputs(shown_function(writer, value, unknown, readable), out);
		if (writer->format == FAY_FORMAT_TABLE && fay_output_is_left_out(writer, value))
			fputs("*", out);
	} else if (column->type == FAY_TYPE_TIME) {
		format_time(value, text, sizeof(text));
		fputs(text, out);
	} else if (column->type == FAY_TYPE_BOOL && fay_column_is_plain(column)) {
		fputs(value ? "true" : "false", out);
	} else if (units_of(writer, view)) {
		put_quantity(out, units_of(writer, view), (double)value);
	} else {
		fprintf(out, "%" PRIu64, value);
	}
}

void fay_output_put_value(FILE *out, const struct fay_writer *writer,
			  const struct fay_view_column *view, const uint8_t *row)
{
	const char *name = NULL;
	struct fay_value value;
	char text[FAY_OUTPUT_NAME], names[FAY_VALUE_NAMES];
	if (view->stack_frames && fay_view_stack_depth(view, row)) {
		fay_output_stack_frame(writer, view, row, 0,
				       writer->format == FAY_FORMAT_TABLE ? FAY_ADDRESS_READABLE
									  : 0,
				       text, sizeof(text));
		fputs(text, out);
		return;
	}
	if (!fay_value_decode(view->column, row, &value)) {
		fputc('-', out);
		return;
	}
	switch (value.kind) {
	case FAY_VALUE_I64:
		name = fay_view_name(view, row, value.i64, names);
		if (name)
			fputs(name, out);
		else if (units_of(writer, view))
			put_quantity(out, units_of(writer, view), (double)value.i64);
		else
			fprintf(out, is_pointer(writer, view, value.i64) ? "%#" PRIx64 : "%" PRId64,
				value.i64);
		break;
	case FAY_VALUE_U64: put_unsigned(out, writer, view, value.u64); break;
	case FAY_VALUE_DOUBLE: put_real(out, writer, view, value.d); break;
	case FAY_VALUE_STRING: {
		struct fay_text_bytes string = fay_view_string(writer->texts, view, row, &value);
		fwrite(string.bytes, string.length, 1, out);
		break;
	}
	case FAY_VALUE_HISTOGRAM: put_histogram(out, writer, view, &value); break;
	case FAY_VALUE_LIST: put_list(out, writer, view, row); break;
	}
}

/* What ends a text that has no room: never half a character, which could not be told from what the
 * program made of it. */
static void mark_cut(char *text, size_t size)
{
	size_t at = size - 4;
	while (at && ((unsigned char)text[at] & 0xc0) == 0x80)
		at--;
	strcpy(text + at, "...");
}

void fay_output_format_value(const struct fay_writer *writer, const struct fay_view_column *view,
			     const uint8_t *row, char *text, size_t size)
{
	char *whole = NULL;
	size_t length = 0;
	FILE *memory = open_memstream(&whole, &length);
	if (memory) {
		fay_output_put_value(memory, writer, view, row);
		fclose(memory);
	}
	snprintf(text, size, "%s", whole ? whole : "out of memory");
	if (whole && length >= size)
		mark_cut(text, size);
	free(whole);
	fay_printable(text);
}

void fay_output_json_value(const struct fay_writer *writer, const struct fay_view_column *view,
			   const uint8_t *row)
{
	const struct fay_schema_column *column = view->column;
	const char *name = NULL;
	struct fay_value value;
	char unknown[32], names[FAY_VALUE_NAMES];
	FILE *out = writer->out;
	if (view->stack_frames) {
		fay_output_json_stack(writer, view, row);
		return;
	}
	if (!fay_value_decode(column, row, &value)) {
		fprintf(out, "null");
		return;
	}
	switch (value.kind) {
	case FAY_VALUE_I64:
		name = fay_view_name(view, row, value.i64, names);
		if (name)
			fay_json_string(out, name, strlen(name));
		else
			fprintf(out, "%" PRId64, value.i64);
		break;
	case FAY_VALUE_U64:
		if (view->address && writer->address_name) {
			char text[FAY_OUTPUT_NAME];
			writer->address_name(writer->name_context, value.u64,
					     view->symbol ? FAY_ADDRESS_EXACT : 0, text,
					     sizeof(text));
			fay_json_string(out, text, strlen(text));
		} else if (column->type == FAY_TYPE_FUNCTION) {
			name = function_name(writer, value.u64, unknown);
			fay_json_string(out, name, strlen(name));
		} else if (column->type == FAY_TYPE_BOOL && fay_column_is_plain(column)) {
			fprintf(out, "%s", value.u64 ? "true" : "false");
		} else {
			fprintf(out, "%" PRIu64, value.u64);
		}
		break;
	case FAY_VALUE_DOUBLE: fprintf(out, "%.17g", value.d); break;
	case FAY_VALUE_STRING: {
		struct fay_text_bytes string = fay_view_string(writer->texts, view, row, &value);
		fay_json_string(out, string.bytes, string.length);
		break;
	}
	case FAY_VALUE_HISTOGRAM:
		fputc('[', out);
		for (size_t i = 0, shown = 0; i < value.histogram.count; i++) {
			char label[64];
			if (!value.histogram.buckets[i])
				continue;
			fay_output_bucket_label(writer, view, i, value.histogram.count, label);
			fprintf(out, "%s{\"range\":\"%s\",\"count\":%" PRIu64 "}",
				shown++ ? "," : "", label, value.histogram.buckets[i]);
		}
		fputc(']', out);
		break;
	case FAY_VALUE_LIST: json_list(writer, view, row); break;
	}
}
