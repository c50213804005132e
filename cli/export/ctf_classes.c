/* SPDX-License-Identifier: MIT */
#include "ctf_classes_private.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "fay/image.h"

/* enum fay_source, by the bit. */
static const char *const kinds[] = { "call", "return", "marker", "syscall", "tracepoint", "timer" };

/* --- sources --- */

/* CTF's names are C's. Readers leave out the first underscore, which keeps them apart from key
 * words. */
static void make_name(struct fay_ctf_source *source, const char *name,
		      char made[FAY_SAVED_NAME + 8])
{
	size_t length = 0;
	made[length++] = '_';
	for (; *name; name++)
		if (isalnum((unsigned char)*name) ||
		    (made[length - 1] != '_' && name[1] && name[1] != ')'))
			made[length++] = isalnum((unsigned char)*name) ? *name : '_';
	made[length] = 0;
	for (uint32_t i = 0, number = 2; i < source->part_count; i++) {
		if (strcmp(source->parts[i].name, made))
			continue;
		snprintf(made + length, 8, "_%u", number++);
		i = UINT32_MAX; /* once more from the first on */
	}
}

static enum fay_ctf_form form_of(const struct fay_saved_column *column)
{
	if (column->flags)
		return column->flags & FAY_SAVED_CALLER ? FAY_CTF_CALLER : FAY_CTF_FRAMES;
	if (column->type == FAY_TYPE_STRING && column->size == 16)
		return FAY_CTF_STRING;
	if (column->size != 8)
		return FAY_CTF_WORDS;
	return column->type == FAY_TYPE_FUNCTION ? FAY_CTF_NAME
	       : column->type == FAY_TYPE_BOOL   ? FAY_CTF_FLAG
						 : FAY_CTF_WORDS;
}

static bool is_context(const char *name)
{
	return !strcmp(name, "pid") || !strcmp(name, "tid") || !strcmp(name, "cpu") ||
	       !strcmp(name, "comm");
}

static bool is_own(const struct fay_saved_column *column, const char *name,
		   enum fay_column_type type)
{
	return !strcmp(column->name, name) && column->type == (uint32_t)type && column->size == 8;
}

/* What the event's header and its class say. The same value may be there under another name, too.
 * */
static bool is_time(const struct fay_saved_column *column)
{
	return is_own(column, "time", FAY_TYPE_TIME);
}

static bool is_function(const struct fay_saved_column *column)
{
	return is_own(column, "function", FAY_TYPE_FUNCTION);
}

static void add_parts(struct fay_ctf_source *source, const struct fay_saved *saved, uint32_t stream,
		      bool context)
{
	for (uint32_t i = 0; i < fay_saved_stream_at(saved, stream)->column_count; i++) {
		const struct fay_saved_column *column = fay_saved_column_at(saved, stream, i);
		if (is_time(column) || is_function(column) || is_context(column->name) != context)
			continue;
		struct fay_ctf_part part = { .form = form_of(column),
					     .offset = column->offset,
					     .size = column->size,
					     .context = context,
					     .type = column->type };
		make_name(source, column->name, part.name);
		source->parts[source->part_count++] = part;
	}
}

/* Columns may overlap. */
static size_t largest_event(const struct fay_ctf_source *source)
{
	size_t size = FAY_CTF_HEADER_MAX;
	for (uint32_t i = 0; i < source->part_count; i++)
		size += source->parts[i].form == FAY_CTF_WORDS ? source->parts[i].size
			: source->parts[i].form == FAY_CTF_STRING
				? FAY_CTF_STRING_MAX + 1
				: source->parts[i].size / 8 * (FAY_CTF_NAME_MAX + 1);
	return size;
}

int fay_ctf_source_add(struct fay_ctf_classes *classes, const struct fay_saved *saved,
		       uint32_t stream, const char *name, struct fay_error *error)
{
	const struct fay_saved_stream *of = fay_saved_stream_at(saved, stream);
	struct fay_ctf_source *grown =
		realloc(classes->sources, (classes->source_count + 1) * sizeof(*grown));
	if (!grown || (!classes->source_count &&
		       getrandom(classes->uuid, sizeof(classes->uuid), 0) != sizeof(classes->uuid)))
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	classes->sources = grown;
	struct fay_ctf_source *source = &grown[classes->source_count];
	memset(source, 0, sizeof(*source));
	source->time_offset = source->function_offset = UINT32_MAX;
	for (uint32_t i = 0; i < of->column_count; i++) {
		const struct fay_saved_column *column = fay_saved_column_at(saved, stream, i);
		if (is_time(column))
			source->time_offset = column->offset;
		if (is_function(column))
			source->function_offset = column->offset;
	}
	if (source->time_offset == UINT32_MAX)
		return fay_error_set(error, FAY_E_REFUSED, "the events in '%s' have no `time`",
				     name);
	unsigned bit = of->source ? (unsigned)__builtin_ctz(of->source) : 0;
	source->kind = bit < sizeof(kinds) / sizeof(kinds[0]) ? kinds[bit] : "event";
	snprintf(source->pattern, sizeof(source->pattern), "%s", of->pattern);
	add_parts(source, saved, stream, true);
	add_parts(source, saved, stream, false);
	if (largest_event(source) > FAY_CTF_EVENT_MAX)
		return fay_error_set(error, FAY_E_REFUSED, "the events in '%s' are too large",
				     name);
	classes->source_count++;
	return FAY_OK;
}

/* --- classes --- */

/* in a table that is half full at most only functions that were chosen for it take more */
#define STEPS_MAX 1000u
#define NOWHERE UINT32_MAX

static uint32_t place_of(const struct fay_ctf_classes *c, uint32_t source, uint64_t function)
{
	uint32_t at =
		(uint32_t)((function ^ source) * 0x9e3779b97f4a7c15u >> 32) & (c->table_size - 1);
	for (unsigned steps = 0; steps < STEPS_MAX; steps++, at = (at + 1) & (c->table_size - 1)) {
		const struct fay_ctf_class *class =
			c->table[at] ? &c->classes[c->table[at] - 1] : NULL;
		if (!class || (class->source == source && class->function == function))
			return at;
	}
	return NOWHERE;
}

/* Room for one class more; the table stays at most half full. */
static bool grow(struct fay_ctf_classes *c)
{
	uint32_t room = c->class_room ? 2 * c->class_room : 256;
	if (c->class_count < c->class_room)
		return true;
	if (c->class_count == FAY_CTF_CLASSES_MAX)
		return false;
	struct fay_ctf_class *larger = realloc(c->classes, room * sizeof(*larger));
	if (!larger)
		return false;
	c->classes = larger;
	uint32_t *table = calloc(2 * room, sizeof(*table));
	if (!table)
		return false;
	free(c->table);
	c->table = table;
	c->table_size = 2 * room;
	c->class_room = room;
	for (uint32_t i = 0; i < c->class_count; i++) {
		uint32_t at = place_of(c, c->classes[i].source, c->classes[i].function);
		if (at == NOWHERE)
			return false;
		c->table[at] = i + 1;
	}
	return true;
}

/* "syscall:read"; of a source whose functions are not known its pattern. */
static char *class_name(const struct fay_ctf_source *source, const struct fay_saved *saved,
			uint64_t function)
{
	char *name = NULL;
	const char *known = source->function_offset == UINT32_MAX ? source->pattern
								  : fay_saved_name(saved, function);
	int length = known ? asprintf(&name, "%s:%.*s", source->kind, (int)FAY_CTF_NAME_MAX, known)
			   : asprintf(&name, "%s:%016" PRIx64, source->kind, function);
	return length < 0 ? NULL : name;
}

bool fay_ctf_class(struct fay_ctf_classes *c, uint32_t source, const struct fay_saved *saved,
		   const uint8_t *row, uint32_t *number)
{
	const struct fay_ctf_source *of = &c->sources[source];
	uint64_t function = 0;
	if (of->function_offset != UINT32_MAX)
		memcpy(&function, row + of->function_offset, sizeof(function));
	if (c->last && c->classes[c->last - 1].source == source &&
	    c->classes[c->last - 1].function == function) {
		*number = c->last - 1;
		return true;
	}
	if (!grow(c))
		return false;
	uint32_t at = place_of(c, source, function);
	if (at == NOWHERE)
		return false;
	if (!c->table[at]) {
		char *name = class_name(of, saved, function);
		if (!name)
			return false;
		c->classes[c->class_count] = (struct fay_ctf_class){ source, function, name };
		c->table[at] = ++c->class_count;
	}
	c->last = c->table[at];
	*number = c->last - 1;
	return true;
}

void fay_ctf_classes_deinit(struct fay_ctf_classes *c)
{
	for (uint32_t i = 0; i < c->class_count; i++)
		free(c->classes[i].name);
	free(c->classes);
	free(c->table);
	free(c->sources);
}

/* --- the description --- */

static void print_text(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		if (c == '"' || c == '\\')
			fputc('\\', out);
		fputc(c < ' ' || c == 0x7f ? ' ' : c, out);
	}
	fputc('"', out);
}

static void print_uuid(FILE *out, const uint8_t uuid[16])
{
	fputc('"', out);
	for (unsigned i = 0; i < 16; i++)
		fprintf(out, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	fputc('"', out);
}

static void print_part(FILE *out, const struct fay_ctf_part *part)
{
	static const char *const integers[] = { [FAY_TYPE_U64] = "u64", [FAY_TYPE_TIME] = "u64" };
	const char *integer =
		part->type < sizeof(integers) / sizeof(integers[0]) && integers[part->type]
			? integers[part->type]
			: "i64";
	if (part->form == FAY_CTF_FRAMES)
		fprintf(out, "\t\tstring %s[%u];\n", part->name, part->size / 8);
	else if (part->form == FAY_CTF_STRING || part->form == FAY_CTF_NAME ||
		 part->form == FAY_CTF_CALLER)
		fprintf(out, "\t\tstring %s;\n", part->name);
	else if (part->form == FAY_CTF_FLAG)
		fprintf(out, "\t\tu8 %s;\n", part->name);
	else if (part->size == 8)
		fprintf(out, "\t\t%s %s;\n", integer, part->name);
	else
		fprintf(out, "\t\tu64 %s[%u];\n", part->name, part->size / 8);
}

static void print_struct(FILE *out, const struct fay_ctf_source *source, const char *what,
			 bool context)
{
	fprintf(out, "\t%s := struct {\n", what);
	for (uint32_t i = 0; i < source->part_count; i++)
		if (source->parts[i].context == context)
			print_part(out, &source->parts[i]);
	fputs("\t};\n", out);
}

static void print_class(FILE *out, const struct fay_ctf_classes *c, uint32_t number)
{
	const struct fay_ctf_class *class = &c->classes[number];
	const struct fay_ctf_source *source = &c->sources[class->source];
	fputs("event {\n\tname = ", out);
	print_text(out, class->name);
	fprintf(out, ";\n\tid = %u;\n\tstream_id = 0;\n", number);
	if (source->part_count && source->parts[0].context)
		print_struct(out, source, "context", true);
	print_struct(out, source, "fields", false);
	fputs("};\n\n", out);
}

void fay_ctf_classes_print(const struct fay_ctf_classes *c, uint64_t events_lost, FILE *out)
{
	fputs("/* CTF 1.8 */\n\n"
	      "typealias integer { size = 8; align = 8; signed = false; } := u8;\n"
	      "typealias integer { size = 32; align = 8; signed = false; } := u32;\n"
	      "typealias integer { size = 64; align = 8; signed = false; } := u64;\n"
	      "typealias integer { size = 64; align = 8; signed = true; } := i64;\n\n"
	      "trace {\n\tmajor = 1;\n\tminor = 8;\n\tbyte_order = le;\n\tuuid = ",
	      out);
	print_uuid(out, c->uuid);
	fputs(";\n\tpacket.header := struct { u32 magic; u8 uuid[16]; u32 stream_id; };\n};\n\n",
	      out);
	fprintf(out, "env {\n\ttracer_name = \"fay\";\n\tevents_lost = %" PRIu64 ";\n",
		events_lost);
	for (uint32_t i = 0; i < c->source_count; i++) {
		fprintf(out, "\tsource_%u = ", i);
		print_text(out, c->sources[i].pattern);
		fputs(";\n", out);
	}
	fputs("};\n\n"
	      "clock {\n\tname = realtime;\n\tdescription = \"nanoseconds since the Unix "
	      "epoch\";\n\tfreq = 1000000000;\n\tabsolute = TRUE;\n};\n\n"
	      "typealias integer { size = 64; align = 8; signed = false; map = "
	      "clock.realtime.value; } := nanoseconds;\n\n"
	      "stream {\n\tid = 0;\n"
	      "\tpacket.context := struct { nanoseconds timestamp_begin; nanoseconds "
	      "timestamp_end; u64 content_size; u64 packet_size; };\n"
	      "\tevent.header := struct { u32 id; nanoseconds timestamp; };\n};\n\n",
	      out);
	for (uint32_t i = 0; i < c->class_count; i++)
		print_class(out, c, i);
}
