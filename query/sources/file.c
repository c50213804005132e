/* SPDX-License-Identifier: MIT */
/* Saved traces as a source: file("NAME"). The events are what they were when they were saved, as
 * far as their columns tell. */
#include "sources.h"

#include <stdio.h>
#include <string.h>

static struct fay_value_node *open_file(struct fay_checked *checked, const struct fay_node *call)
{
	struct fay_query *query = checked->exprs.query;
	const struct fay_node *name = call->item_count == 1 ? call->items->value : NULL;
	struct fay_error error = { .code = FAY_E_LIMIT, .message = "too many saved traces" };
	if (!name || name->kind != NODE_STRING || !name->length ||
	    memchr(name->name, 0, name->length))
		return fay_query_fail(
			query, FAY_E_USAGE, call->span,
			"`file` takes the name of a saved trace: file(\"reads.fay\")");
	if (checked->pattern)
		return fay_query_fail(query, FAY_E_REFUSED, call->span,
				      "a second source belongs in a join: `join b in file(...) on "
				      "a.tid equals b.tid within 5ms`");
	if (query->opened_count == FAY_JOIN_SOURCES ||
	    fay_saved_open(name->name, &query->saved, &error))
		return fay_query_fail(query, error.code, name->span, "%s", error.message);
	query->opened[query->opened_count++] = query->saved;
	checked->domain = DOMAIN_FILE;
	checked->pattern = name->name;
	checked->source = call->span;
	struct fay_value_node *sequence = fay_check_value(checked, VALUE_SEQUENCE);
	if (sequence)
		sequence->element = fay_check_value(checked, VALUE_EVENT);
	return sequence && sequence->element ? sequence : NULL;
}

/* What the query is about from now on. */
static bool choose_stream(struct fay_checked *checked, struct fay_span span, uint32_t index)
{
	struct fay_saved *saved = checked->exprs.query->saved;
	const struct fay_saved_stream *stream = fay_saved_stream_at(saved, index);
	switch (stream->source) {
	case SOURCE_ENTRY:
	case SOURCE_RETURN:
	case SOURCE_MARKER:
	case SOURCE_SYSCALL:
	case SOURCE_TRACEPOINT:
	case SOURCE_TIMER:
	case SOURCE_LINE: break;
	default:
		return fay_query_fail(checked->exprs.query, FAY_E_REFUSED, span,
				      "events of this kind (%u) cannot be read from files",
				      stream->source) != NULL;
	}
	fay_saved_select(saved, index);
	checked->kind = (enum fay_source)stream->source;
	checked->saved_kernel = stream->flags & FAY_SAVED_OF_KERNEL;
	return true;
}

/* "libc!read, kernel!syscall:*" */
static const char *list_streams(struct fay_query *query)
{
	char list[512] = "";
	for (uint32_t i = 0; i < fay_saved_header(query->saved)->stream_count; i++) {
		size_t used = strlen(list);
		snprintf(list + used, sizeof(list) - used, "%s`%s`", i ? ", " : "",
			 fay_saved_stream_at(query->saved, i)->pattern);
	}
	return fay_query_format(query, "%s", list);
}

struct fay_value_node *fay_check_file(struct fay_checked *checked, const struct fay_node *call)
{
	struct fay_value_node *sequence = open_file(checked, call);
	struct fay_query *query = checked->exprs.query;
	if (sequence && fay_saved_header(query->saved)->stream_count > 1)
		return fay_query_fail(query, FAY_E_USAGE, call->span,
				      "the saved trace has events of several sources (%s): choose "
				      "one as in file(\"%s\").Function(\"...\")",
				      list_streams(query), checked->pattern);
	return sequence && choose_stream(checked, call->items->value->span, 0) ? sequence : NULL;
}

/* --- file("NAME").Function("module!name") --- */

static const struct {
	const char *name;
	enum fay_source kind;
} sources[] = { { "Function", SOURCE_ENTRY },
		{ "Return", SOURCE_RETURN },
		{ "Usdt", SOURCE_MARKER },
		{ "Syscall", SOURCE_SYSCALL },
		{ "Tracepoint", SOURCE_TRACEPOINT },
		{ "Timer", SOURCE_TIMER },
		{ "Line", SOURCE_LINE } };

enum fay_source fay_check_source_kind(const char *name)
{
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		if (!strcmp(sources[i].name, name))
			return sources[i].kind;
	return SOURCE_NONE;
}

bool fay_check_is_file_source(const struct fay_node *call)
{
	const struct fay_node *of = call->a->kind == NODE_MEMBER ? call->a->a : NULL;
	return of && of->kind == NODE_CALL && of->a->kind == NODE_NAME &&
	       strcmp(of->a->name, "file") == 0 &&
	       fay_check_source_kind(call->a->name) != SOURCE_NONE;
}

/* What stands before the function's name in a source's pattern. */
static size_t prefix_length(enum fay_source kind, const char *pattern)
{
	const char *bang = strchr(pattern, '!'), *after = bang ? bang + 1 : pattern;
	const char *colon =
		kind == SOURCE_TRACEPOINT || kind == SOURCE_SYSCALL ? strchr(after, ':') : NULL;
	return (size_t)((colon ? colon + 1 : after) - pattern);
}

/* The pattern that a source like this one has when it is live; NULL with the error recorded. */
static const char *asked_pattern(struct fay_checked *checked, const struct fay_node *call,
				 enum fay_source kind)
{
	struct fay_query *query = checked->exprs.query;
	const struct fay_argument *last = call->items;
	bool kernel = call->item_count == 2 && last->value->kind == NODE_NAME &&
		      strcmp(last->value->name, "kernel") == 0;
	if (kernel)
		last = last->next;
	if (kind == SOURCE_TIMER)
		return fay_query_fail(
			query, FAY_E_USAGE, call->span,
			"a saved timer has its original period: file(\"...\").Timer()");
	if ((call->item_count != 1 && !kernel) || last->value->kind != NODE_STRING)
		return fay_query_fail(
			query, FAY_E_USAGE, call->span,
			"on a saved trace, `%s` takes no argument, or one string as on the cluster",
			call->a->name);
	const char *text = last->value->name;
	return kernel                      ? fay_query_format(query, "kernel!%s", text)
	       : kind == SOURCE_SYSCALL    ? fay_query_format(query, "kernel!syscall:%s", text)
	       : kind == SOURCE_TRACEPOINT ? fay_query_format(query, "kernel!%s", text)
	       : kind == SOURCE_LINE       ? fay_check_line_pattern(checked, last->value)
					   : text;
}

/* Modules are not saved with events, so what stands before the name must say what was traced. */
static bool is_of(const struct fay_saved_stream *stream, enum fay_source kind, const char *asked)
{
	size_t length = prefix_length(kind, asked);
	if (stream->source != (uint32_t)kind)
		return false;
	if (kind == SOURCE_TRACEPOINT) /* the system before its name is for people */
		return true;
	return length == prefix_length(kind, stream->pattern) &&
	       strncmp(asked, stream->pattern, length) == 0;
}

/* The stream that is meant, FAY_SAVED_STREAMS for none: one of that very pattern, else the only one
 * that it may lie in. */
static uint32_t find_stream(const struct fay_saved *saved, enum fay_source kind, const char *asked,
			    uint32_t *count)
{
	uint32_t found = FAY_SAVED_STREAMS;
	*count = 0;
	for (uint32_t i = 0; i < fay_saved_header(saved)->stream_count; i++) {
		const struct fay_saved_stream *stream = fay_saved_stream_at(saved, i);
		if (asked && stream->source == (uint32_t)kind &&
		    strcmp(stream->pattern, asked) == 0) {
			*count = 1;
			return i;
		}
		if (asked ? is_of(stream, kind, asked) : stream->source == (uint32_t)kind) {
			found = i;
			++*count;
		}
	}
	return found;
}

struct fay_value_node *fay_check_file_source(struct fay_checked *checked,
					     const struct fay_node *call)
{
	struct fay_query *query = checked->exprs.query;
	enum fay_source kind = fay_check_source_kind(call->a->name);
	const char *asked = NULL;
	uint32_t count;
	if (call->item_count && !(asked = asked_pattern(checked, call, kind)))
		return NULL;
	struct fay_value_node *sequence = open_file(checked, call->a->a);
	if (!sequence)
		return NULL;
	uint32_t stream = find_stream(query->saved, kind, asked, &count);
	if (count != 1)
		return fay_query_fail(
			query, FAY_E_REFUSED, call->span, "%s: the saved trace has events of %s",
			count ? "this is ambiguous" : "this was not saved", list_streams(query));
	if (!choose_stream(checked, call->span, stream))
		return NULL;
	const char *saved = fay_saved_stream_at(query->saved, stream)->pattern;
	if (asked &&
	    strcmp(asked + prefix_length(kind, asked), saved + prefix_length(kind, saved)) != 0 &&
	    !fay_saved_only(query->saved, asked + prefix_length(kind, asked)))
		return fay_query_fail(query, FAY_E_REFUSED, call->span,
				      "no saved event of `%s` is of such a function, or function "
				      "names were not saved",
				      saved);
	checked->pattern =
		fay_query_format(query, "%s, %s", checked->pattern, asked ? asked : saved);
	return checked->pattern ? sequence : NULL;
}
