/* SPDX-License-Identifier: MIT */
/* What the files of `fay lsp` share. "LSP" is the Language Server Protocol 3.17. */
#ifndef FAY_CLI_LSP_PARTS_H
#define FAY_CLI_LSP_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "cli/queries/queries.h"

#define FAY_LSP_MESSAGE_MAX (32u << 20) /* bytes of a message */
#define FAY_LSP_HEADER_MAX 4096u        /* bytes of its header */
#define FAY_LSP_VALUES_MAX 262144u      /* of one message's JSON */
#define FAY_LSP_DEPTH_MAX 64u           /* of its arrays and objects */
#define FAY_LSP_URI_MAX 8192u
#define FAY_LSP_DOCUMENTS_MAX 256u
#define FAY_LSP_TEXT_MAX 65536u /* bytes of a query file */
#define FAY_LSP_ITEMS_MAX 2000u /* completions of one answer */

/* --- json.c: a message's values --- */

enum fay_json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* Of an object, keys and values take turns behind it. */
struct fay_json_value {
	enum fay_json_kind kind;
	uint32_t begin, end; /* bytes of the text; a string's without its quotes */
	uint32_t next;       /* the value behind it and all in it */
};

struct fay_json {
	const char *text;
	size_t size;
	struct fay_json_value *values; /* the first is the whole */
	uint32_t count, room;
};

/* false: it is none, or above the limits. To be given to fay_json_deinit() in any case. */
bool fay_json_parse(struct fay_json *json, const char *text, size_t size);
void fay_json_deinit(struct fay_json *json);
/* The member `key` of an object; NULL: there is none, or `object` is none. */
const struct fay_json_value *fay_json_member(const struct fay_json *json,
					     const struct fay_json_value *object, const char *key);
bool fay_json_is(const struct fay_json *json, const struct fay_json_value *string,
		 const char *text);
/* A string's bytes as UTF-8, malloc'ed, with a NUL behind them; NULL: it is none, or memory is
 * short. */
char *fay_json_bytes(const struct fay_json *json, const struct fay_json_value *string,
		     size_t *size);
/* false: it is no integer from 0 up to 2^31 - 1. */
bool fay_json_count(const struct fay_json *json, const struct fay_json_value *number,
		    uint32_t *count);

/* --- message.c: messages on standard input and output --- */

enum fay_lsp_read { LSP_MESSAGE, LSP_END, LSP_BROKEN };

struct fay_lsp_stream {
	int in, out;
	char *bytes; /* that were read and are not yet used up */
	size_t begin, used, room;
	bool failed; /* to write */
};

/* `*text` is valid until the next call. LSP_BROKEN: where the next message begins cannot be known,
 * and `why` says the reason. */
enum fay_lsp_read fay_lsp_read(struct fay_lsp_stream *stream, const char **text, size_t *size,
			       const char **why);
/* Whether more has come already. */
bool fay_lsp_is_waiting(const struct fay_lsp_stream *stream);
void fay_lsp_write(struct fay_lsp_stream *stream, const char *text, size_t size);

/* --- document.c: what is open, and places in it --- */

struct fay_lsp_document {
	char *uri;
	char *text; /* a NUL is behind it; NULL: it is too long, or memory is short */
	size_t size;
	bool dirty; /* not yet checked */
};

struct fay_lsp_documents {
	struct fay_lsp_document *items[FAY_LSP_DOCUMENTS_MAX];
	size_t count;
};

struct fay_lsp_document *fay_lsp_document_find(const struct fay_lsp_documents *documents,
					       const char *uri);
/* Takes both over. NULL: too many are open, or memory is short. */
struct fay_lsp_document *fay_lsp_document_put(struct fay_lsp_documents *documents, char *uri,
					      char *text, size_t size);
void fay_lsp_document_remove(struct fay_lsp_documents *documents,
			     struct fay_lsp_document *document);
/* LSP counts units of UTF-16 in a line. What lies behind a line's or the text's end is its end. */
size_t fay_lsp_offset(const struct fay_lsp_document *document, uint32_t line, uint32_t character);
/* {"start":{...},"end":{...}} */
void fay_lsp_put_range(FILE *out, const struct fay_lsp_document *document, size_t start,
		       size_t end);

/* --- answers.c: what is known of a document --- */

struct fay_lsp_target {
	const char *comm; /* "": none */
	pid_t pid;
	bool extend; /* C files that queries name are compiled */
};

/* The array of what is wrong with it. */
void fay_lsp_put_diagnostics(FILE *out, const struct fay_lsp_target *target,
			     const struct fay_lsp_document *document);
/* The result of textDocument/completion, and of textDocument/hover. */
void fay_lsp_put_completion(FILE *out, const struct fay_lsp_target *target,
			    const struct fay_lsp_document *document, size_t at);
void fay_lsp_put_hover(FILE *out, const struct fay_lsp_target *target,
		       const struct fay_lsp_document *document, size_t at);
/* definition.c: the result of textDocument/definition. */
void fay_lsp_put_definition(FILE *out, const struct fay_lsp_document *document, size_t at);
/* What docs/faylinq.md says of a word, as Markdown; NULL. */
const char *fay_lsp_word(const char *word, size_t length);

#endif
