/* SPDX-License-Identifier: MIT */
/*
 * Stacks as a profile of pprof: profile.proto of github.com/google/pprof, as gzip. Its numbers of
 * fields stand behind the names below.
 *
 * A frame's name is a string, a function and a location of the same number. Columns that are
 * numbers are sample types; keys that are no stacks are labels.
 */
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#include "output_parts.h"

enum profile { SAMPLE_TYPE = 1, SAMPLE = 2, LOCATION = 4, FUNCTION = 5, STRING = 6, TIME = 9 };
enum value_type { TYPE = 1, UNIT = 2 };
enum sample { LOCATIONS = 1, VALUES = 2, LABEL = 3 };
enum label { KEY = 1, TEXT = 2 };
enum location { LOCATION_ID = 1, LINE = 4 };
enum function { FUNCTION_ID = 1, NAME = 2 };

struct string {
	uint64_t number;
	bool is_frame;
	char text[];
};

struct profile_writer {
	const struct fay_writer *writer;
	const struct fay_view *view;
	FILE *out;
	void *strings; /* tsearch(3) */
	uint64_t count;
	bool failed;
};

/* --- protocol buffers --- */

static void put_varint(FILE *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		putc((int)(value & 0x7f) | 0x80, out);
	putc((int)value, out);
}

static void put_number(FILE *out, unsigned field, uint64_t value)
{
	put_varint(out, field << 3);
	put_varint(out, value);
}

static void put_bytes(FILE *out, unsigned field, const char *bytes, size_t size)
{
	put_varint(out, field << 3 | 2);
	put_varint(out, size);
	fwrite(bytes, size, 1, out);
}

/* A message inside another one is made in memory first, since its size comes before it. */
struct message {
	FILE *out;
	char *bytes;
	size_t size;
};

static FILE *begin(struct profile_writer *p, struct message *message)
{
	*message = (struct message){ 0 };
	message->out = open_memstream(&message->bytes, &message->size);
	p->failed |= !message->out;
	return message->out;
}

static void end(FILE *out, unsigned field, struct message *message)
{
	if (!message->out)
		return;
	fclose(message->out);
	put_bytes(out, field, message->bytes ? message->bytes : "", message->size);
	free(message->bytes);
}

/* --- strings and frames --- */

static int compare_strings(const void *left, const void *right)
{
	return strcmp(((const struct string *)left)->text, ((const struct string *)right)->text);
}

/* Strings of a profile are text: what is none is `?`. NULL: no memory. */
static struct string *string_of(struct profile_writer *p, const char *text)
{
	size_t size = strlen(text) + 1;
	struct string *made = malloc(sizeof(*made) + size), **found = NULL;
	if (made) {
		*made = (struct string){ .number = p->count };
		memcpy(made->text, text, size);
		fay_printable(made->text);
		found = tsearch(made, &p->strings, compare_strings);
	}
	if (!found || *found != made) {
		struct string *known = found ? *found : NULL;
		free(made);
		p->failed |= !known;
		return known;
	}
	put_bytes(p->out, STRING, made->text, strlen(made->text));
	p->count++;
	return made;
}

static uint64_t string_number(struct profile_writer *p, const char *text)
{
	const struct string *string = string_of(p, text);
	return string ? string->number : 0;
}

static uint64_t frame_number(struct profile_writer *p, const char *name)
{
	struct string *string = string_of(p, *name ? name : "?");
	struct message message, line;
	if (!string || string->is_frame)
		return string ? string->number : 0;
	string->is_frame = true;
	if (begin(p, &message)) {
		put_number(message.out, FUNCTION_ID, string->number);
		put_number(message.out, NAME, string->number);
	}
	end(p->out, FUNCTION, &message);
	if (begin(p, &message)) {
		put_number(message.out, LOCATION_ID, string->number);
		if (begin(p, &line))
			put_number(line.out, FUNCTION_ID, string->number);
		end(message.out, LINE, &line);
	}
	end(p->out, LOCATION, &message);
	return string->number;
}

/* --- samples --- */

static bool is_key(const struct fay_view_column *column)
{
	return column->column->merge == FAY_MERGE_KEY && !column->stack_frames;
}

/* A number that many events were merged into, or that was computed of such ones. */
static bool is_amount(const struct fay_view_column *column)
{
	unsigned merge = column->column->merge;
	return merge == FAY_MERGE_COUNT || merge == FAY_MERGE_SUM || merge == FAY_MERGE_MIN ||
	       merge == FAY_MERGE_MAX || merge == FAY_MERGE_AVERAGE ||
	       merge == FAY_MERGE_DISTINCT ||
	       (merge == (uint16_t)FAY_RESULT_COMPUTED && column->column->type != FAY_TYPE_STRING &&
		column->column->type != FAY_TYPE_FUNCTION);
}

static uint64_t amount(const struct fay_view_column *column, const uint8_t *row)
{
	struct fay_value value;
	if (!fay_value_decode(column->column, row, &value))
		return 0;
	if (value.kind == FAY_VALUE_DOUBLE)
		return value.d > -9e18 && value.d < 9e18 ? (uint64_t)(int64_t)value.d : 0;
	return value.kind == FAY_VALUE_I64 ? (uint64_t)value.i64 : value.u64;
}

static void put_locations(struct profile_writer *p, FILE *out, const uint8_t *row)
{
	char name[FAY_OUTPUT_NAME];
	for (uint32_t c = 0; c < p->view->column_count; c++) {
		const struct fay_view_column *column = &p->view->columns[c];
		uint32_t depth = column->stack_frames ? fay_view_stack_depth(column, row) : 0;
		for (uint32_t frame = 0; frame < depth; frame++) {
			fay_output_stack_frame(p->writer, column, row, frame, FAY_ADDRESS_BARE,
					       name, sizeof(name));
			put_varint(out, frame_number(p, name));
		}
	}
}

static void put_label(struct profile_writer *p, FILE *out, const struct fay_view_column *column,
		      const uint8_t *row)
{
	struct message label;
	char text[CELL_SIZE];
	fay_output_format_value(p->writer, column, row, text, sizeof(text));
	if (begin(p, &label)) {
		put_number(label.out, KEY, string_number(p, column->name));
		put_number(label.out, TEXT, string_number(p, text));
	}
	end(out, LABEL, &label);
}

static void put_sample(struct profile_writer *p, const uint8_t *row)
{
	struct message sample, packed;
	FILE *out = begin(p, &sample);
	bool any = false;
	if (!out)
		return;
	if (begin(p, &packed))
		put_locations(p, packed.out, row);
	end(out, LOCATIONS, &packed);
	if (begin(p, &packed)) {
		for (uint32_t c = 0; c < p->view->column_count; c++) {
			if (!is_amount(&p->view->columns[c]))
				continue;
			put_varint(packed.out, amount(&p->view->columns[c], row));
			any = true;
		}
		if (!any)
			put_varint(packed.out, 1);
	}
	end(out, VALUES, &packed);
	for (uint32_t c = 0; c < p->view->column_count; c++)
		if (is_key(&p->view->columns[c]))
			put_label(p, out, &p->view->columns[c], row);
	end(p->out, SAMPLE, &sample);
}

static void put_type(struct profile_writer *p, const char *name, const char *unit)
{
	struct message type;
	if (begin(p, &type)) {
		put_number(type.out, TYPE, string_number(p, name));
		put_number(type.out, UNIT, string_number(p, unit));
	}
	end(p->out, SAMPLE_TYPE, &type);
}

static void put_profile(struct profile_writer *p, const struct fay_result *result)
{
	struct timespec now;
	bool any = false;
	string_number(p, ""); /* the first one, by the format */
	for (uint32_t c = 0; c < p->view->column_count; c++) {
		const struct fay_view_column *column = &p->view->columns[c];
		if (is_amount(column))
			put_type(p, column->name, column->nanoseconds ? "nanoseconds" : "count");
		any |= is_amount(column);
	}
	if (!any)
		put_type(p, "rows", "count");
	for (size_t r = 0; r < result->row_count; r++)
		put_sample(p, result->rows + r * result->row_size);
	clock_gettime(CLOCK_REALTIME, &now);
	put_number(p->out, TIME, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
}

static bool put_gzip(FILE *out, const char *bytes, size_t size)
{
	z_stream z = { .next_in = (Bytef *)bytes, .avail_in = (uInt)size };
	Bytef block[16384];
	if (size > UINT32_MAX || deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
					      Z_DEFAULT_STRATEGY) != Z_OK)
		return false;
	int code;
	do {
		z.next_out = block;
		z.avail_out = sizeof(block);
		code = deflate(&z, Z_FINISH);
		fwrite(block, sizeof(block) - z.avail_out, 1, out);
	} while (code == Z_OK);
	deflateEnd(&z);
	return code == Z_STREAM_END;
}

void fay_output_pprof(struct fay_writer *writer, const struct fay_view *view,
		      const struct fay_result *result, bool final)
{
	struct profile_writer p = { .writer = writer, .view = view };
	struct message profile;
	if (!final)
		return;
	p.out = begin(&p, &profile);
	if (p.out) {
		put_profile(&p, result);
		p.failed |= fclose(p.out) != 0;
	}
	if (p.failed || !put_gzip(writer->out, profile.bytes, profile.size))
		fputs("fay: out of memory for the profile\n", stderr);
	tdestroy(p.strings, free);
	free(profile.bytes);
}
