/* SPDX-License-Identifier: MIT */
/* Saved traces as a source: file("NAME"). The events are what they were when they were saved, as
 * far as their columns tell. */
#include "source_file.h"

#include <stdio.h>
#include <string.h>

#include "planner.h"

#define FIRST_WORD (offsetof(struct fay_event, address) / 8)
#define WORDS (sizeof(struct fay_event) / 8)

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
				      "a second source stands in a join: `join b in file(...) on "
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
	case SOURCE_TIMER: break;
	default:
		return fay_query_fail(checked->exprs.query, FAY_E_REFUSED, span,
				      "events of this kind (%u) are not read from files",
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

/* --- file("NAME").Function("module!name")
 * ------------------------------------------------------------------------------------ */

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
			"a saved timer has the period that it had: file(\"...\").Timer()");
	if ((call->item_count != 1 && !kernel) || last->value->kind != NODE_STRING)
		return fay_query_fail(
			query, FAY_E_USAGE, call->span,
			"of a saved trace, `%s` takes nothing, or one string as of the cluster",
			call->a->name);
	const char *text = last->value->name;
	return kernel                      ? fay_query_format(query, "kernel!%s", text)
	       : kind == SOURCE_SYSCALL    ? fay_query_format(query, "kernel!syscall:%s", text)
	       : kind == SOURCE_TRACEPOINT ? fay_query_format(query, "kernel!%s", text)
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
		return fay_query_fail(query, FAY_E_REFUSED, call->span,
				      "%s: the saved trace has events of %s",
				      count ? "this may be one or the other" : "this was not saved",
				      list_streams(query));
	if (!choose_stream(checked, call->span, stream))
		return NULL;
	const char *saved = fay_saved_stream_at(query->saved, stream)->pattern;
	if (asked &&
	    strcmp(asked + prefix_length(kind, asked), saved + prefix_length(kind, saved)) != 0 &&
	    !fay_saved_only(query->saved, asked + prefix_length(kind, asked)))
		return fay_query_fail(query, FAY_E_REFUSED, call->span,
				      "no saved event of `%s` is of such a function, or their "
				      "names were not saved",
				      saved);
	checked->pattern =
		fay_query_format(query, "%s, %s", checked->pattern, asked ? asked : saved);
	return checked->pattern ? sequence : NULL;
}

/* --- fields
 * -------------------------------------------------------------------------------------------------
 * */

static bool has_type(const struct fay_saved_column *column, enum fay_type type)
{
	return column && !column->flags &&
	       column->type == (uint32_t)fay_type_column(type) &&
	       column->size == (type == TYPE_STRING ? FAY_COMM_SIZE : 8);
}

const struct fay_saved_column *fay_saved_field(const struct fay_saved *saved,
					       const struct fay_field *field)
{
	const struct fay_saved_column *column = fay_saved_column(saved, field->name);
	return has_type(column, field->type) ? column : NULL;
}

/* NULL: no event has a field of that name. */
static const struct fay_field *field_of(const char *name)
{
	for (size_t i = 0; i < fay_field_count; i++)
		if (fay_fields[i].sources && !strcmp(fay_fields[i].name, name))
			return &fay_fields[i];
	return NULL;
}

static bool is_argument(const char *name)
{
	return !strncmp(name, "Arg(", 4) && name[4] >= '0' && name[4] <= '5' &&
	       !strcmp(name + 5, ")");
}

const struct fay_saved_column *fay_saved_own(const struct fay_saved *saved, const char *name)
{
	const struct fay_field *field = field_of(name);
	const struct fay_saved_column *column = fay_saved_column(saved, name);
	if (field)
		return fay_saved_field(saved, field);
	return is_argument(name) && has_type(column, TYPE_INT) ? column : NULL;
}

static enum fay_type type_of(const struct fay_saved_column *column)
{
	if (column->flags)
		return TYPE_ADDRESS;
	switch (column->type) {
	case FAY_TYPE_STRING: return TYPE_STRING;
	case FAY_TYPE_FUNCTION: return TYPE_FUNCTION;
	case FAY_TYPE_TIME: return TYPE_TIME;
	case FAY_TYPE_BOOL: return TYPE_BOOL;
	default: return TYPE_INT;
	}
}

bool fay_check_is_saved(const struct fay_checked *checked, const char *name)
{
	return checked->domain == DOMAIN_FILE &&
	       fay_saved_column(checked->exprs.query->saved, name);
}

bool fay_check_saved(struct fay_checked *checked, struct fay_span span, const char *name)
{
	struct fay_query *query = checked->exprs.query;
	uint32_t stream = fay_saved_selected(query->saved);
	if (!name || fay_saved_own(query->saved, name))
		return name != NULL;
	const struct fay_saved_column *other = fay_saved_column(query->saved, name);
	if (other)
		return fay_query_fail(query, FAY_E_REFUSED, span,
				      "the saved trace's column `%s` is of type %s: it is not what "
				      "events have under that name",
				      name, fay_type_name(type_of(other))) != NULL;
	char list[512] = "";
	for (uint32_t i = 0; i < fay_saved_stream_at(query->saved, stream)->column_count; i++) {
		size_t used = strlen(list);
		snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
			 fay_saved_column_at(query->saved, stream, i)->name);
	}
	return fay_query_fail(query, FAY_E_REFUSED, span,
			      "the saved trace does not have `%s`; it has %s", name, list) != NULL;
}

/* Columns that are no field of every event: `name` is what the query that saved them called them.
 * */
static bool is_extra(const struct fay_saved_column *column)
{
	if (field_of(column->name) || is_argument(column->name))
		return false;
	return column->type != FAY_TYPE_STRING ? column->size == 8
	       : column->flags                 ? column->size <= 8 * (WORDS - FIRST_WORD)
					       : column->size == FAY_COMM_SIZE;
}

/* They lie in what the event has no other use for, in their order; the word at which one begins, 0
 * if there was no room. */
static uint32_t word_of(const struct fay_saved *saved, const struct fay_saved_column *column)
{
	uint32_t word = FIRST_WORD, stream = fay_saved_selected(saved);
	for (uint32_t i = 0;; i++) {
		const struct fay_saved_column *one = fay_saved_column_at(saved, stream, i);
		uint32_t words = is_extra(one) ? one->size / 8 : 0;
		if (one == column)
			return words && word + words <= WORDS ? word : 0;
		word += words;
	}
}

const struct fay_expr *fay_check_saved_column(struct fay_checked *checked, const char *name)
{
	const struct fay_saved *saved = checked->exprs.query->saved;
	const struct fay_saved_column *column = fay_saved_column(saved, name);
	uint32_t word = column ? word_of(saved, column) : 0;
	if (word && column->type == FAY_TYPE_STRING && column->flags)
		return fay_expr_saved_stack(&checked->exprs, word, column->size / 8,
					    column->flags & FAY_SAVED_KERNEL_STACK);
	return word ? fay_expr_saved(&checked->exprs, word, type_of(column), column->name) : NULL;
}

struct fay_value_node *fay_check_saved_member(struct fay_checked *checked,
					      const struct fay_node *node)
{
	struct fay_query *query = checked->exprs.query;
	const struct fay_expr *expr = fay_check_saved_column(checked, node->name);
	if (expr || query->failed)
		return fay_check_scalar(checked, expr);
	if (fay_saved_column(query->saved, node->name))
		return fay_query_fail(query, FAY_E_LIMIT, node->name_span,
				      "the saved column `%s` is a stack of too many frames, or one "
				      "of too many columns",
				      node->name);
	fay_check_saved(checked, node->name_span, node->name);
	return NULL;
}

/* --- events
 * -------------------------------------------------------------------------------------------------
 * */

static void add_move(struct fay_plan_private *p, const struct fay_saved_column *column, uint32_t to,
		     uint32_t size)
{
	if (column && size && p->move_count < FAY_SAVED_COLUMNS)
		p->moves[p->move_count++] =
			(struct fay_saved_move){ column->offset, to,
						 size < column->size ? size : column->size };
}

void fay_plan_find_saved(struct fay_plan_private *p, const struct fay_saved *saved)
{
	if (!saved)
		return;
	uint32_t stream = fay_saved_selected(saved);
	for (size_t i = 0; i < fay_field_count; i++)
		add_move(p, fay_saved_field(saved, &fay_fields[i]), fay_fields[i].offset,
			 fay_fields[i].size);
	for (uint32_t i = 0; i < 6; i++) {
		char name[16];
		snprintf(name, sizeof(name), "Arg(%u)", i);
		add_move(p, fay_saved_own(saved, name),
			 (uint32_t)offsetof(struct fay_event, arg) + 8 * i, 8);
	}
	for (uint32_t i = 0; i < fay_saved_stream_at(saved, stream)->column_count; i++) {
		const struct fay_saved_column *column = fay_saved_column_at(saved, stream, i);
		uint32_t word = word_of(saved, column);
		add_move(p, word ? column : NULL, 8 * word, column->size);
	}
	for (size_t i = 0; i < fay_field_count; i++)
		if (fay_fields[i].sources && !fay_fields[i].size)
			p->failed = fay_saved_field(saved, &fay_fields[i]);
	p->failed_alone = p->failed && !fay_saved_own(saved, "ReturnValue");
}

bool fay_plan_saved_event(const struct fay_plan *plan, unsigned side, const uint8_t *row,
			  struct fay_event *event, uint32_t *probe)
{
	const struct fay_plan_private *p = fay_plan_stage(plan, side);
	uint64_t failed = 0;
	memset(event, 0, sizeof(*event));
	for (uint32_t i = 0; i < p->move_count; i++)
		memcpy((uint8_t *)event + p->moves[i].to, row + p->moves[i].from, p->moves[i].size);
	event->comm[FAY_COMM_SIZE - 1] = 0;
	if (p->failed)
		memcpy(&failed, row + p->failed->offset, sizeof(failed));
	if (p->checked.saved_kernel) { /* there a call fails by what it returns */
		if (p->failed_alone)
			event->retval = failed ? UINT64_MAX : 0;
		failed = 0;
	}
	*probe = failed != 0;
	for (unsigned before = 0; before < side; before++)
		*probe += fay_plan_stage(plan, before)->probe_count;
	return !failed || p->checked.uses_failed;
}

/* --- what is saved --- */

/* A result has the width and the sign of its type. */
static bool is_field(const struct fay_expr *expr, const struct fay_field *field)
{
	bool result = field->offset == offsetof(struct fay_event, retval);
	while (expr->op == EXPR_KEY || (result && (expr->op == EXPR_SHL || expr->op == EXPR_SHR ||
						   expr->op == EXPR_SHR_LOGICAL)))
		expr = expr->a;
	return expr->op == EXPR_FIELD && &fay_fields[expr->value] == field;
}

/* A name that was cut is not what a query over the file asks for, and may be another column's. */
static int check_length(const char *name, struct fay_error *error)
{
	if (strlen(name) < FAY_SAVED_NAME)
		return FAY_OK;
	return fay_error_set(error, FAY_E_LIMIT,
			     "the column's name `%s` is too long to be saved: a saved trace's "
			     "columns have names of at most %u bytes; call it otherwise",
			     name, FAY_SAVED_NAME - 1);
}

/* What has the name of an event's field is taken for it where the file is asked. */
static int check_names(const struct fay_plan *plan, struct fay_error *error)
{
	const struct fay_plan_private *p = fay_plan_stage(plan, 0);
	for (uint32_t i = 0; i < plan->column_count && !plan->joins; i++) {
		const struct fay_field *field = field_of(plan->columns[i].name);
		if (field && !is_field(p->columns[plan->columns[i].index].expr, field))
			return fay_error_set(
				error, FAY_E_USAGE,
				"the column `%s` would be taken for the events' own `%s` where the "
				"saved trace is asked: call it otherwise",
				field->name, field->name);
	}
	return FAY_OK;
}

static void describe_stream(const struct fay_plan_private *p, struct fay_saved_stream *stream)
{
	stream->source = p->checked.kind;
	stream->flags = p->checked.domain == DOMAIN_KERNEL || p->checked.saved_kernel
				? FAY_SAVED_OF_KERNEL
				: 0;
	snprintf(stream->pattern, sizeof(stream->pattern), "%s", p->checked.pattern);
}

static uint32_t address_flags(const struct fay_expr *expr)
{
	const struct fay_expr *stack = expr;
	while (expr->type == TYPE_STACK && stack->op != EXPR_STACK)
		stack = stack->a;
	if (expr->type == TYPE_STACK)
		return stack->length ? FAY_SAVED_KERNEL_STACK : FAY_SAVED_STACK;
	return expr->type == TYPE_ADDRESS ? FAY_SAVED_CALLER : 0;
}

/* Of one source, what its rows show: names of equal expressions share their place in the row. Of a
 * join, all of each side. */
static int describe_column(const struct fay_plan *plan, const struct fay_schema *schema, uint32_t s,
			   uint32_t i, struct fay_saved_column *column, struct fay_error *error)
{
	uint32_t index = plan->joins ? i : plan->columns[i].index;
	const struct fay_schema_column *c =
		&schema->columns[schema->states[s].first_column + index];
	*column = (struct fay_saved_column){
		.type = c->type,
		.offset = c->offset,
		.size = c->size,
		.flags = address_flags(fay_plan_stage(plan, s)->columns[index].expr)
	};
	snprintf(column->name, sizeof(column->name), "%s",
		 plan->joins ? c->name : plan->columns[i].name);
	return check_length(plan->joins ? c->name : plan->columns[i].name, error);
}

int fay_plan_save_layout(const struct fay_plan *plan, const struct fay_schema *schema,
			 struct fay_save_layout *layout, struct fay_error *error)
{
	if (check_names(plan, error))
		return (int)error->code;
	memset(layout, 0, sizeof(*layout));
	layout->text = plan->text;
	layout->stream_count = plan->source_count;
	for (uint32_t s = 0; s < layout->stream_count; s++) {
		const struct fay_schema_state *state = &schema->states[s];
		struct fay_saved_stream *stream = &layout->streams[s];
		describe_stream(fay_plan_stage(plan, s), stream);
		stream->row_size = state->row_size;
		stream->column_count =
			plan->joins ? (uint32_t)state->keys + state->values : plan->column_count;
		if (stream->column_count > FAY_SAVED_COLUMNS)
			return fay_error_set(error, FAY_E_LIMIT,
					     "rows of %u columns cannot be saved",
					     stream->column_count);
		for (uint32_t i = 0; i < stream->column_count; i++)
			if (describe_column(plan, schema, s, i, &layout->columns[s][i], error))
				return (int)error->code;
	}
	return FAY_OK;
}
