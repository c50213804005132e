/* SPDX-License-Identifier: MIT */
/*
 * What is wrong in a query file, what may stand at the cursor, and what stands there. Parser and
 * checker say it: by the error, by the candidates for "did you mean" (as in `fay shell`), and by
 * what they say that each expression is.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/options.h"
#include "cli/shell/parts.h"
#include "fay/clock.h"
#include "fay/query.h"

#include "parts.h"

/* A document's query while it is planned. */
struct asking {
	const struct fay_lsp_document *document;
	struct fay_query_map map;
	char *query;
	struct fay_plan *plan; /* NULL: see the error */
	size_t start, end;     /* of the error, in the document */
	bool placed;
	size_t at;    /* whose type is wanted */
	size_t width; /* of the smallest expression there; 0: none is known */
	char what[160];
};

static void take_part(void *context, size_t start, size_t end, const char *what)
{
	struct asking *asking = context;
	start = fay_query_map_back(&asking->map, start, false);
	end = fay_query_map_back(&asking->map, end, true);
	if (!what) {
		asking->start = start;
		asking->end = end;
		asking->placed = true;
	} else if (start <= asking->at && asking->at < end &&
		   (!asking->width || end - start <= asking->width)) {
		asking->width = end - start;
		snprintf(asking->what, sizeof(asking->what), "%s", what);
	}
}

static int ask(struct asking *asking, const struct fay_lsp_target *target, struct fay_error *error)
{
	const struct fay_lsp_document *document = asking->document;
	struct fay_function_search functions = { .pids = &target->pid,
						 .pid_count = target->pid != 0,
						 .comms = &target->comm,
						 .comm_count = *target->comm != 0 };
	const struct fay_query_options options = { .now = fay_realtime(),
						   .extend = target->extend,
						   .long_strings = true,
						   .long_kernel_strings = true,
						   .find = fay_search_function,
						   .find_context = &functions,
						   .part = take_part,
						   .part_context = asking };
	if (!document->text)
		return fay_error_set(error, FAY_E_LIMIT, "a query has at most %u bytes",
				     FAY_LSP_TEXT_MAX);
	if (fay_query_text_read(document->text, document->size, &asking->query, &asking->map,
				error) ||
	    fay_query_plan_with(asking->query, &options, &asking->plan, error))
		return error->code;
	return FAY_OK;
}

static void asking_deinit(struct asking *asking)
{
	fay_plan_destroy(asking->plan);
	fay_query_map_deinit(&asking->map);
	free(asking->query);
}

/* --- diagnostics --- */

/* The bytes of a line, from 1 up. */
static void find_line(const struct fay_lsp_document *document, unsigned line, size_t *start,
		      size_t *end)
{
	*start = fay_lsp_offset(document, line - 1, 0);
	*end = fay_lsp_offset(document, line - 1, UINT32_MAX);
}

void fay_lsp_put_diagnostics(FILE *out, const struct fay_lsp_target *target,
			     const struct fay_lsp_document *document)
{
	struct asking asking = { .document = document, .at = SIZE_MAX };
	struct fay_error error;
	unsigned line = 0, column;
	int length = 0;
	fputs("[", out);
	if (ask(&asking, target, &error)) {
		const char *message = error.message;
		if (asking.query)
			fay_cli_query_hint(asking.query, &error);
		if ((sscanf(message, "query:%u:%u: %n", &line, &column, &length) == 2 && length) ||
		    (sscanf(message, "query:%u: %n", &line, &length) == 1 && length))
			message += length;
		if (!asking.placed && line)
			find_line(document, line, &asking.start, &asking.end);
		fputs("{\"range\":", out);
		fay_lsp_put_range(out, document, asking.start, asking.end);
		/* what is refused for want of something here is no mistake in the query */
		fprintf(out, ",\"severity\":%d,\"source\":\"fay\",\"message\":",
			error.code == FAY_E_USAGE || error.code == FAY_E_LIMIT ? 1 : 2);
		fay_json_string(out, message, strcspn(message, "\n"));
		fputs("}", out);
	}
	fputs("]", out);
	asking_deinit(&asking);
}

/* --- completion --- */

enum { KIND_METHOD = 2, KIND_FIELD = 5, KIND_KEYWORD = 14, KIND_VALUE = 12 }; /* of LSP */

static int kind_of(const char *name, const char *text, bool in_string)
{
	if (in_string)
		return KIND_VALUE;
	if (text && strchr(text, '(') && strchr(text, '(') < text + strcspn(text, "\n") &&
	    isupper((unsigned char)*name))
		return KIND_METHOD;
	return text && !strncmp(text + 1, name, strlen(name)) && strstr(text, "` or `.")
		       ? KIND_KEYWORD
		       : KIND_FIELD;
}

static void put_item(FILE *out, const struct fay_lsp_document *document, const char *name,
		     size_t start, size_t at, bool in_string)
{
	const char *text = in_string ? NULL : fay_lsp_word(name, strlen(name));
	fay_json_text(out, "{\"label\":", name);
	fprintf(out, ",\"kind\":%d,\"textEdit\":{\"range\":", kind_of(name, text, in_string));
	fay_lsp_put_range(out, document, start, at);
	fay_json_text(out, ",\"newText\":", name);
	fputs("}", out);
	if (text) {
		fay_json_text(out, ",\"documentation\":{\"kind\":\"markdown\",\"value\":", text);
		fputs("}", out);
	}
	fputs("}", out);
}

void fay_lsp_put_completion(FILE *out, const struct fay_lsp_target *target,
			    const struct fay_lsp_document *document, size_t at)
{
	struct fay_shell shell = { .pid = target->pid };
	struct fay_completion completion = { 0 };
	struct fay_query_map map = { 0 };
	struct fay_error error;
	char *query = NULL;
	snprintf(shell.target, sizeof(shell.target), "%s", target->comm);
	if (target->pid)
		snprintf(shell.target, sizeof(shell.target), "%d", target->pid);
	if (document->text && !fay_query_text_read(document->text, at, &query, &map, &error))
		fay_shell_complete(&shell, query, &completion);
	/* a parameter's value within the word has no place in the document */
	size_t length = query ? strlen(query + completion.begin) : 0;
	size_t count = length <= at && query &&
				       !memcmp(document->text + at - length,
					       query + completion.begin, length)
			       ? completion.count
			       : 0;
	bool in_string = count && completion.begin && strchr("\"!", query[completion.begin - 1]);
	fprintf(out, "{\"isIncomplete\":%s,\"items\":[",
		count > FAY_LSP_ITEMS_MAX ? "true" : "false");
	for (size_t i = 0; i < count && i < FAY_LSP_ITEMS_MAX; i++) {
		fputs(i ? "," : "", out);
		put_item(out, document, completion.names[i], at - length, at, in_string);
	}
	fputs("]}", out);
	fay_completion_deinit(&completion);
	fay_query_map_deinit(&map);
	free(query);
}

/* --- hover --- */

static bool is_of_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* The bytes of the word at `at`; as many as none if there is none. */
static void find_word(const struct fay_lsp_document *document, size_t at, size_t *start,
		      size_t *end)
{
	*start = *end = at;
	while (*start && is_of_word(document->text[*start - 1]))
		--*start;
	while (*end < document->size && is_of_word(document->text[*end]))
		++*end;
}

void fay_lsp_put_hover(FILE *out, const struct fay_lsp_target *target,
		       const struct fay_lsp_document *document, size_t at)
{
	struct asking asking = { .document = document, .at = at };
	struct fay_error error;
	size_t start = 0, end = 0, size;
	char *markdown = NULL;
	int failed = ask(&asking, target, &error);
	FILE *text = document->text ? open_memstream(&markdown, &size) : NULL;
	if (!text) {
		fputs("null", out);
		asking_deinit(&asking);
		return;
	}
	find_word(document, at, &start, &end);
	const char *word = document->text + start;
	const char *known = end > start ? fay_lsp_word(word, end - start) : NULL;
	if (asking.width)
		fprintf(text, "This is %s.\n\n", asking.what);
	fputs(known ? known : "", text);
	if (!failed && end - start == 4 && !memcmp(word, "from", 4)) {
		fputs("```text\n", text);
		fay_plan_print(text, asking.plan);
		fputs("```\n", text);
	}
	if (!fclose(text) && size) {
		fay_json_text(out, "{\"contents\":{\"kind\":\"markdown\",\"value\":", markdown);
		fputs("},\"range\":", out);
		fay_lsp_put_range(out, document, start, end);
		fputs("}", out);
	} else {
		fputs("null", out);
	}
	free(markdown);
	asking_deinit(&asking);
}
