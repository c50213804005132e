/* SPDX-License-Identifier: MIT */
/* Where the name at the cursor comes from: a parameter, a variable of the query, a C file that it
 * names, a function there. By their words alone, since a file that is being written is none that
 * can be planned. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "process/process.h"

#include "parts.h"

#define C_FILE_MAX (1u << 20) /* bytes that are searched */
#define PATH_SIZE 4096u

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

struct word {
	const char *text;
	size_t begin, length;
};

static struct word word_at(const struct fay_lsp_document *document, size_t at)
{
	size_t begin = at, end = at;
	while (begin > 0 && is_word(document->text[begin - 1]))
		begin--;
	while (end < document->size && is_word(document->text[end]))
		end++;
	return (struct word){ document->text + begin, begin, end - begin };
}

/* Whether the word stands alone at this place. */
static bool stands_at(const struct fay_lsp_document *document, struct word word, size_t at)
{
	return at + word.length <= document->size &&
	       !memcmp(document->text + at, word.text, word.length) &&
	       (!at || !is_word(document->text[at - 1])) &&
	       !is_word(document->text[at + word.length]);
}

/* Whether `before`, and blanks, stand in front of the place. */
static bool follows(const struct fay_lsp_document *document, size_t at, const char *before)
{
	size_t length = strlen(before), blanks = 0;
	for (; at && isspace((unsigned char)document->text[at - 1]); at--)
		blanks++;
	return blanks && at >= length && !memcmp(document->text + at - length, before, length) &&
	       (at == length || !is_word(document->text[at - length - 1]));
}

static bool is_declared_at(const struct fay_lsp_document *document, struct word word, size_t at)
{
	static const char *const words[] = { "from", "join", "into", "let" };
	const char *behind = document->text + at + word.length;
	if (!stands_at(document, word, at))
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (follows(document, at, words[i]))
			return true;
	return !strncmp(behind + strspn(behind, " \t\r\n"), "=>", 2);
}

/* The last declaration before the word, which may be one itself; false: there is none. */
static bool find_variable(const struct fay_lsp_document *document, struct word word, size_t *at)
{
	for (*at = word.begin + 1; (*at)-- > 0;)
		if (is_declared_at(document, word, *at))
			return true;
	return false;
}

static bool find_parameter(const struct fay_lsp_document *document, struct word word, size_t *at)
{
	for (*at = 0; *at + word.length <= document->size; ++*at)
		if (stands_at(document, word, *at) && follows(document, *at, "param"))
			return true;
	return false;
}

/* The next file that is named behind `at`: where its name begins, and its length. */
static bool next_extend(const struct fay_lsp_document *document, size_t *at, size_t *length)
{
	for (char *found = document->text + *at; (found = strstr(found, "extend")); found += 6) {
		size_t begin = (size_t)(found - document->text), quote = begin + 6;
		quote += strspn(document->text + quote, " \t");
		if ((begin && is_word(document->text[begin - 1])) || document->text[quote] != '"')
			continue;
		*at = quote + 1;
		*length = strcspn(document->text + *at, "\"\n");
		return *length > 0;
	}
	return false;
}

/* A file beside the document, as a path and as a URI. */
static bool place_beside(const struct fay_lsp_document *document, const char *name, size_t length,
			 char path[PATH_SIZE], char uri[PATH_SIZE])
{
	const char *slash = strrchr(document->uri, '/');
	size_t folder = slash ? (size_t)(slash + 1 - document->uri) : 0, used = 0, out;
	if (strncmp(document->uri, "file:///", 8) || folder + 3 * length + 1 > PATH_SIZE)
		return false;
	out = *name == '/' ? 7 : folder;
	memcpy(uri, document->uri, out);
	for (size_t i = 0; i < length; i++)
		out += (size_t)snprintf(uri + out, PATH_SIZE - out,
					is_word(name[i]) || strchr("/.-", name[i]) ? "%c"
										   : "%%%02X",
					(unsigned char)name[i]);
	for (const char *c = uri + 7; *c; used++) {
		char digits[3] = { c[0] == '%' ? c[1] : 0, c[0] == '%' && c[1] ? c[2] : 0, 0 };
		path[used] = digits[1] ? (char)strtol(digits, NULL, 16) : *c;
		c += digits[1] ? 3 : 1;
	}
	path[used] = 0;
	return true;
}

static void put_place(FILE *out, const char *uri, const struct fay_lsp_document *document,
		      size_t begin, size_t end)
{
	fputs("{\"uri\":", out);
	fay_json_string(out, uri, strlen(uri));
	fputs(",\"range\":", out);
	fay_lsp_put_range(out, document, begin, end);
	fputc('}', out);
}

/* A function's definition begins a line. */
static bool find_function(const struct fay_lsp_document *file, struct word word, size_t *at)
{
	for (*at = 0; *at + word.length < file->size; ++*at) {
		size_t line = *at;
		if (!stands_at(file, word, *at))
			continue;
		while (line && file->text[line - 1] != '\n')
			line--;
		const char *behind = file->text + *at + word.length;
		const char *end = strchr(behind, '\n');
		if (line < *at && is_word(file->text[line]) && *behind == '(' &&
		    !memchr(behind, ';', end ? (size_t)(end - behind) : strlen(behind)))
			return true;
	}
	return false;
}

static bool put_function(FILE *out, const char *path, char *uri, struct word word)
{
	struct fay_lsp_document file = { .uri = uri, .text = calloc(1, C_FILE_MAX + 1) };
	struct stat status;
	/* none that would be waited for */
	bool regular = !stat(path, &status) && S_ISREG(status.st_mode);
	FILE *stream = file.text && regular ? fopen(path, "re") : NULL;
	size_t at;
	if (stream) {
		file.size = fread(file.text, 1, C_FILE_MAX, stream);
		fclose(stream);
	}
	bool found = find_function(&file, word, &at);
	if (found)
		put_place(out, uri, &file, at, at + word.length);
	free(file.text);
	return found;
}

void fay_lsp_put_definition(FILE *out, const struct fay_lsp_document *document, size_t at)
{
	char path[PATH_SIZE], uri[PATH_SIZE];
	struct word word = { 0 };
	size_t place, length;
	if (document->text)
		word = word_at(document, at);
	bool parameter = word.length && word.begin && document->text[word.begin - 1] == '$';
	bool field = word.length && word.begin && document->text[word.begin - 1] == '.';
	for (place = 0; document->text && next_extend(document, &place, &length); place += length) {
		bool here = at >= place && at <= place + length;
		if (!here && (!word.length || parameter || field))
			continue;
		if (!place_beside(document, document->text + place, length, path, uri))
			continue;
		if (here)
			put_place(out, uri, &(struct fay_lsp_document){ .text = "" }, 0, 0);
		if (here || put_function(out, path, uri, word))
			return;
	}
	if (word.length && !field &&
	    (find_parameter(document, word, &place) ||
	     (!parameter && find_variable(document, word, &place))))
		put_place(out, document->uri, document, place, place + word.length);
	else
		fputs("null", out);
}
