/* SPDX-License-Identifier: MIT */
/* A query file: its parameters are read, given values, and put in their places. Declarations become
 * comments, so that errors in the query have the file's lines. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fay/query.h"

#include "queries.h"

#define FILE_MAX 65536u /* bytes: as many as a query may have */
#define PARAMETERS_MAX 32u
#define NAME_SIZE 64u

struct parameter {
	char name[NAME_SIZE];
	bool is_text, given;
	char *value; /* of a text without quotes and escapes */
};

struct query_file {
	const char *name; /* for messages */
	char *text;
	struct parameter parameters[PARAMETERS_MAX];
	size_t count;
	struct fay_query_map *map; /* NULL: nobody asks */
};

/* --- the file --- */

static int read_all(FILE *in, struct query_file *file, struct fay_error *error)
{
	size_t size = 0;
	file->text = malloc(FILE_MAX + 2);
	if (!file->text)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	size = fread(file->text, 1, FILE_MAX + 1, in);
	if (ferror(in))
		return fay_error_set(error, FAY_E_USAGE, "cannot read '%s': %s", file->name,
				     strerror(errno));
	if (size > FILE_MAX)
		return fay_error_set(error, FAY_E_LIMIT, "'%s' has more than %u bytes", file->name,
				     FILE_MAX);
	if (memchr(file->text, 0, size))
		return fay_error_set(error, FAY_E_USAGE, "'%s' is no text: it has a zero byte",
				     file->name);
	file->text[size] = 0;
	return FAY_OK;
}

static int cannot_open(const char *name, int why, const struct fay_examples *examples,
		       struct fay_error *error)
{
	const char *nearest = strchr(name, '/') ? NULL : fay_examples_suggest(examples, name);
	return fay_error_set(error, FAY_E_USAGE, "cannot open '%s': %s%s%s%s", name, strerror(why),
			     nearest ? "; did you mean the example `" : "", nearest ? nearest : "",
			     nearest                            ? "`?"
			     : why == ENOENT && examples->count ? "; `fay examples` lists what "
								  "there is"
								: "");
}

/* The file of that name, else the example. */
static int open_file(const char *name, struct query_file *file, struct fay_error *error)
{
	struct fay_examples examples = { 0 };
	struct fay_error none;
	file->name = name;
	FILE *in = strcmp(name, "-") ? fopen(name, "re") : stdin;
	int why = errno;
	if (!in && why == ENOENT && !fay_examples_read(&examples, &none)) {
		const struct fay_example *example = fay_examples_find(&examples, name);
		in = example ? fopen(example->path, "re") : NULL;
	}
	int result = in ? read_all(in, file, error) : cannot_open(name, why, &examples, error);
	fay_examples_deinit(&examples);
	if (in && in != stdin)
		fclose(in);
	return result;
}

/* --- declarations --- */

static size_t name_length(const char *at)
{
	size_t length = 0;
	if (isdigit((unsigned char)*at))
		return 0;
	while (isalnum((unsigned char)at[length]) || at[length] == '_')
		length++;
	return length;
}

/* A number with its unit, `true` or `false`: nothing that could end an expression and begin
 * another. */
static size_t plain_length(const char *at)
{
	size_t length = *at == '-';
	if (!isdigit((unsigned char)at[length])) {
		length = name_length(at);
		bool is_bool = (length == 4 && !strncmp(at, "true", 4)) ||
			       (length == 5 && !strncmp(at, "false", 5));
		return is_bool ? length : 0;
	}
	while (isalnum((unsigned char)at[length]) || at[length] == '_' || at[length] == '.')
		length++;
	return length;
}

static char *comment_end(char *at)
{
	char *end = at[1] == '/' ? strchr(at, '\n') : strstr(at + 2, "*/");
	if (!end)
		return at + strlen(at);
	return at[1] == '/' ? end : end + 2;
}

static bool is_comment(const char *at)
{
	return at[0] == '/' && (at[1] == '/' || at[1] == '*');
}

static char *skip_blank(char *at)
{
	at += strspn(at, " \t\r\n");
	while (is_comment(at)) {
		at = comment_end(at);
		at += strspn(at, " \t\r\n");
	}
	return at;
}

static char *skip_spaces(char *at)
{
	return at + strspn(at, " \t");
}

static int fail_at(const struct query_file *file, const char *at, struct fay_error *error,
		   const char *message)
{
	unsigned line = 1;
	for (const char *c = file->text; c < at; c++)
		line += *c == '\n';
	return fay_error_set(error, FAY_E_USAGE, "%s:%u: %s", file->name, line, message);
}

static struct parameter *find(struct query_file *file, const char *name, size_t length)
{
	for (size_t i = 0; i < file->count; i++)
		if (strlen(file->parameters[i].name) == length &&
		    !memcmp(file->parameters[i].name, name, length))
			return &file->parameters[i];
	return NULL;
}

/* A string's bytes without its escapes; where it ends, behind the quote; NULL: it does not, or has
 * an escape that no query has. */
static char *read_text(char *at, char *out)
{
	static const char escapes[] = "\"\"\\\\n\nt\tr\r"; /* what stands, what is meant */
	for (at++; *at != '"'; at++) {
		const char *escape = NULL;
		if (!*at || *at == '\n')
			return NULL;
		if (*at != '\\') {
			*out++ = *at;
			continue;
		}
		at++;
		for (size_t i = 0; escapes[i] && !escape; i += 2)
			escape = escapes[i] == *at ? &escapes[i + 1] : NULL;
		if (!escape)
			return NULL;
		*out++ = *escape;
	}
	*out = 0;
	return at + 1;
}

/* "param NAME = LITERAL", and a comment at most. */
static int read_declaration(struct query_file *file, char *line, char **end,
			    struct fay_error *error)
{
	char *at = skip_spaces(line + strlen("param"));
	size_t length = name_length(at), plain;
	if (!length || length >= NAME_SIZE)
		return fail_at(file, at, error, "a parameter's name is missing: param NAME = 10ms");
	if (find(file, at, length))
		return fail_at(file, at, error, "the parameter is there twice");
	if (file->count == PARAMETERS_MAX)
		return fail_at(file, at, error, "more than 32 parameters");
	struct parameter *parameter = &file->parameters[file->count];
	memcpy(parameter->name, at, length);
	at = skip_spaces(at + length);
	if (*at != '=')
		return fail_at(file, at, error,
			       "what the parameter is otherwise is missing: param NAME = 10ms");
	at = skip_spaces(at + 1);
	plain = plain_length(at);
	parameter->is_text = *at == '"';
	parameter->value = parameter->is_text ? malloc(strlen(at)) : strndup(at, plain);
	if (!parameter->value)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	file->count++;
	*end = parameter->is_text ? read_text(at, parameter->value) : plain ? at + plain : NULL;
	if (!*end)
		return fail_at(file, at, error,
			       "a parameter is \"text\", a number such as 10ms, true or false");
	*end = skip_spaces(*end);
	if (**end && !strchr("\r\n", **end) && strncmp(*end, "//", 2))
		return fail_at(file, at, error, "a parameter has a line of its own");
	return FAY_OK;
}

static int read_declarations(struct query_file *file, struct fay_error *error)
{
	char *end = NULL;
	if (!strncmp(file->text, "#!", 2))
		memcpy(file->text, "//", 2);
	for (char *at = skip_blank(file->text); !strncmp(at, "param", 5) && isblank(at[5]);
	     at = skip_blank(end)) {
		if (read_declaration(file, at, &end, error))
			return error->code;
		memcpy(at, "//   ", 5); /* what follows stays where it was */
	}
	return FAY_OK;
}

/* --- arguments --- */

static int name_parameters(const struct query_file *file, struct fay_error *error,
			   const char *problem)
{
	size_t used = (size_t)snprintf(error->message, sizeof(error->message), "%s: %s", file->name,
				       problem);
	const char *before = file->count ? "; parameters are " : "; it has no parameters";
	error->code = FAY_E_USAGE;
	for (size_t i = 0; used < sizeof(error->message) && (i < file->count || !i); i++) {
		used += (size_t)snprintf(error->message + used, sizeof(error->message) - used,
					 "%s%s", before,
					 i < file->count ? file->parameters[i].name : "");
		before = ", ";
	}
	return FAY_E_USAGE;
}

static int give(struct query_file *file, struct parameter *parameter, const char *value,
		struct fay_error *error)
{
	char problem[256];
	if (parameter->given) {
		snprintf(problem, sizeof(problem), "`%s` is given twice", parameter->name);
		return name_parameters(file, error, problem);
	}
	if (!parameter->is_text && (!*value || value[plain_length(value)])) {
		snprintf(problem, sizeof(problem), "`%s` is a value such as %.40s, not '%.80s'",
			 parameter->name, parameter->value, value);
		return name_parameters(file, error, problem);
	}
	char *copy = strdup(value);
	if (!copy)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	free(parameter->value);
	parameter->value = copy;
	parameter->given = true;
	return FAY_OK;
}

static int take_arguments(struct query_file *file, char *const *arguments, size_t count,
			  struct fay_error *error)
{
	size_t next = 0;
	char problem[256];
	for (size_t i = 0; i < count; i++) {
		const char *argument = arguments[i];
		size_t length = name_length(argument);
		bool named = length && argument[length] == '=';
		struct parameter *parameter = named                ? find(file, argument, length)
					      : next < file->count ? &file->parameters[next++]
								   : NULL;
		if (!parameter) {
			snprintf(problem, sizeof(problem),
				 named ? "it has no parameter `%.*s`"
				       : "unexpected argument '%.*s'",
				 named ? (int)length : 80, argument);
			return name_parameters(file, error, problem);
		}
		if (give(file, parameter, argument + (named ? length + 1 : 0), error))
			return error->code;
	}
	return FAY_OK;
}

/* --- the query --- */

static void put_escaped(FILE *out, const char *text)
{
	static const char escapes[] = "\"\"\\\\\nn\tt\rr"; /* what is meant, what stands */
	for (; *text; text++) {
		const char *escape = NULL;
		for (size_t i = 0; escapes[i] && !escape; i += 2)
			escape = escapes[i] == *text ? &escapes[i + 1] : NULL;
		if (escape)
			fputc('\\', out);
		fputc(escape ? *escape : *text, out);
	}
}

static void put_value(FILE *out, const struct parameter *parameter, bool in_string)
{
	if (!parameter->is_text) {
		/* a minus would be one more operator */
		bool minus = *parameter->value == '-' && !in_string;
		fprintf(out, minus ? "(%s)" : "%s", parameter->value);
		return;
	}
	fputs(in_string ? "" : "\"", out);
	put_escaped(out, parameter->value);
	fputs(in_string ? "" : "\"", out);
}

static int fail_name(struct query_file *file, const char *at, size_t length,
		     struct fay_error *error)
{
	const char *names[PARAMETERS_MAX];
	char name[NAME_SIZE], message[256];
	for (size_t i = 0; i < file->count; i++)
		names[i] = file->parameters[i].name;
	snprintf(name, sizeof(name), "%.*s", (int)(length < 60 ? length : 60), at + 1);
	const char *nearest = fay_query_suggest(name, names, file->count);
	snprintf(message, sizeof(message), "there is no parameter `%s`; %s%s%s", name,
		 nearest ? "did you mean `$" : "declare it before the query: param NAME = 10ms",
		 nearest ? nearest : "", nearest ? "`?" : " ($$ is a $)");
	return fail_at(file, at, error, message);
}

/* false: out of memory. */
static bool note_piece(struct fay_query_map *map, struct fay_query_piece piece)
{
	if (!map || !piece.length)
		return true;
	if (map->count == map->room) {
		size_t room = map->room ? 2 * map->room : 16;
		struct fay_query_piece *pieces = realloc(map->pieces, room * sizeof(*pieces));
		if (!pieces)
			return false;
		map->pieces = pieces;
		map->room = room;
	}
	map->pieces[map->count++] = piece;
	return true;
}

static int write_query(struct query_file *file, FILE *out, struct fay_error *error)
{
	bool in_string = false;
	for (char *at = file->text, *next; *at; at = next) {
		struct fay_query_piece piece = { .at = (size_t)ftello(out),
						 .from = (size_t)(at - file->text) };
		size_t length = name_length(at + 1);
		struct parameter *parameter = *at == '$' ? find(file, at + 1, length) : NULL;
		next = at + 1;
		if (!in_string && is_comment(at)) {
			next = comment_end(at);
		} else if (parameter) {
			put_value(out, parameter, in_string);
			at = next += length;
			piece.length = length + 1;
		} else if (*at == '$') {
			if (*next != '$')
				return fail_name(file, at, length, error);
			at = next++;
			piece.length = 2;
		} else if (in_string && *at == '\\' && at[1]) {
			next = at + 2;
		} else if (*at == '"') {
			in_string = !in_string;
		}
		fwrite(at, (size_t)(next - at), 1, out);
		piece.size = (size_t)ftello(out) - piece.at;
		if (!note_piece(file->map, piece))
			return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	return FAY_OK;
}

static int expand(struct query_file *file, char **text, struct fay_error *error)
{
	size_t size;
	FILE *out = open_memstream(text, &size);
	if (!out)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	int result = write_query(file, out, error);
	if (fclose(out) && !result)
		result = fay_error_set(error, FAY_E_LIMIT, "out of memory");
	if (result) {
		free(*text);
		*text = NULL;
	}
	return result;
}

/* Of a file that has been read, with this result. Releases it. */
static int to_query(struct query_file *file, int result, char *const *arguments, size_t count,
		    char **text, struct fay_error *error)
{
	if (!result)
		result = read_declarations(file, error);
	if (!result)
		result = take_arguments(file, arguments, count, error);
	if (!result)
		result = expand(file, text, error);
	for (size_t i = 0; i < file->count; i++)
		free(file->parameters[i].value);
	free(file->text);
	return result;
}

int fay_query_text_read(const char *bytes, size_t size, char **text, struct fay_query_map *map,
			struct fay_error *error)
{
	struct query_file file = { .name = "query", .map = map };
	*map = (struct fay_query_map){ 0 };
	FILE *in = fmemopen((void *)(uintptr_t)bytes, size ? size : 1, "r");
	if (!in)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	int result = size ? read_all(in, &file, error) : FAY_OK;
	fclose(in);
	if (!size && !(file.text = strdup("")))
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	return to_query(&file, result, NULL, 0, text, error);
}

void fay_query_map_deinit(struct fay_query_map *map)
{
	free(map->pieces);
	*map = (struct fay_query_map){ 0 };
}

size_t fay_query_map_back(const struct fay_query_map *map, size_t at, bool end)
{
	size_t back = at;
	for (size_t i = 0; i < map->count; i++) {
		const struct fay_query_piece *piece = &map->pieces[i];
		if (at < piece->at + (end && piece->size))
			break;
		if (at < piece->at + piece->size + end)
			return piece->from + (end ? piece->length : 0);
		back = at - piece->at - piece->size + piece->from + piece->length;
	}
	return back;
}

int fay_query_file_read(const char *name, char *const *arguments, size_t count, char **text,
			struct fay_error *error)
{
	struct query_file file = { 0 };
	int result = open_file(name, &file, error);
	return to_query(&file, result, arguments, count, text, error);
}

void fay_query_file_name(const char *file, struct fay_error *error)
{
	char said[sizeof(error->message)];
	if (!file || !strcmp(file, "-") || strncmp(error->message, "query:", 6))
		return;
	snprintf(said, sizeof(said), "%.255s%s", file, error->message + 5);
	memcpy(error->message, said, sizeof(said));
}
