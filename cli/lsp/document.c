/* SPDX-License-Identifier: MIT */
/* What editors have open. Of a file that is longer than a query can be, nothing is kept. */
#include <stdlib.h>
#include <string.h>

#include "parts.h"

struct fay_lsp_document *fay_lsp_document_find(const struct fay_lsp_documents *documents,
					       const char *uri)
{
	for (size_t i = 0; i < documents->count; i++)
		if (!strcmp(documents->items[i]->uri, uri))
			return documents->items[i];
	return NULL;
}

struct fay_lsp_document *fay_lsp_document_put(struct fay_lsp_documents *documents, char *uri,
					      char *text, size_t size)
{
	struct fay_lsp_document *document = fay_lsp_document_find(documents, uri);
	if (!document && documents->count < FAY_LSP_DOCUMENTS_MAX)
		document = calloc(1, sizeof(*document));
	if (!document) {
		free(uri);
		free(text);
		return NULL;
	}
	if (document->uri) {
		free(uri);
		free(document->text);
	} else {
		document->uri = uri;
		documents->items[documents->count++] = document;
	}
	if (size > FAY_LSP_TEXT_MAX) {
		free(text);
		text = NULL;
		size = 0;
	}
	document->text = text;
	document->size = size;
	document->dirty = true;
	return document;
}

void fay_lsp_document_remove(struct fay_lsp_documents *documents, struct fay_lsp_document *document)
{
	for (size_t i = 0; i < documents->count; i++)
		if (documents->items[i] == document)
			documents->items[i] = documents->items[--documents->count];
	free(document->uri);
	free(document->text);
	free(document);
}

/* Units of UTF-16 that begin with this byte of UTF-8. */
static uint32_t units_of(char byte)
{
	unsigned char c = (unsigned char)byte;
	return c >= 0xf0 ? 2 : (c & 0xc0) != 0x80;
}

static bool is_end_of_line(const struct fay_lsp_document *document, size_t at)
{
	const char *text = document->text;
	return text[at] == '\n' || (text[at] == '\r' && text[at + 1] == '\n');
}

size_t fay_lsp_offset(const struct fay_lsp_document *document, uint32_t line, uint32_t column)
{
	size_t at = 0;
	if (!document->text)
		return 0;
	for (; line; line--) {
		const char *end = memchr(document->text + at, '\n', document->size - at);
		if (!end)
			return document->size;
		at = (size_t)(end - document->text) + 1;
	}
	for (uint32_t passed = 0; at < document->size && !is_end_of_line(document, at); at++) {
		passed += units_of(document->text[at]);
		if (passed > column)
			break;
	}
	return at;
}

static void put_position(FILE *out, const struct fay_lsp_document *document, size_t offset)
{
	uint32_t line = 0, column = 0;
	for (size_t at = 0; at < offset && at < document->size; at++) {
		if (document->text[at] == '\n') {
			line++;
			column = 0;
		} else {
			column += units_of(document->text[at]);
		}
	}
	fprintf(out, "{\"line\":%u,\"character\":%u}", line, column);
}

void fay_lsp_put_range(FILE *out, const struct fay_lsp_document *document, size_t start, size_t end)
{
	fputs("{\"start\":", out);
	put_position(out, document, start);
	fputs(",\"end\":", out);
	put_position(out, document, end < start ? start : end);
	fputs("}", out);
}
