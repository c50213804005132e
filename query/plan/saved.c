/* SPDX-License-Identifier: MIT */
/* Saved traces: from a saved row into an event, and what --save writes of a plan's rows. */
#include "planner_private.h"
#include "query/sources/sources.h"

#include <stdio.h>
#include <string.h>

/*
 * Strings lie in no program's memory: an event has in place of each an address from here on, by its
 * number among the moves, and fay_plan_saved_read() is what a probe reads there.
 */
#define TEXTS_AT UINT64_C(0x10000)
#define TEXT_ROOM (2 * FAY_TEXT_MAX) /* bytes; a multiple of a page */

static void add_move(struct fay_plan_private *p, const struct fay_saved_column *column, uint32_t to,
		     uint32_t size)
{
	if (column && size && p->move_count < FAY_SAVED_COLUMNS)
		p->moves[p->move_count++] = (struct fay_saved_move){
			.from = column->offset,
			.to = to,
			.size = size < column->size ? size : column->size,
		};
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
		uint32_t word = fay_saved_word(saved, column);
		bool text = word && fay_saved_is_string(column) && p->query->options &&
			    p->query->options->long_strings;
		add_move(p, word ? column : NULL, 8 * word, column->size);
		if (text && p->move_count)
			p->moves[p->move_count - 1].text = true;
	}
	for (size_t i = 0; i < fay_field_count; i++)
		if (fay_fields[i].sources && fay_field_is_failed(&fay_fields[i]))
			p->failed = fay_saved_field(saved, &fay_fields[i]);
	p->failed_alone = p->failed && !fay_saved_own(saved, "ReturnValue");
}

bool fay_plan_saved_event(const struct fay_plan *plan, unsigned side, const uint8_t *row,
			  struct fay_event *event, uint32_t *probe)
{
	const struct fay_plan_private *p = fay_plan_stage(plan, side);
	uint64_t failed = 0;
	memset(event, 0, sizeof(*event));
	for (uint32_t i = 0; i < p->move_count; i++) {
		uint64_t address = TEXTS_AT + (uint64_t)i * TEXT_ROOM;
		memcpy((uint8_t *)event + p->moves[i].to,
		       p->moves[i].text ? (const uint8_t *)&address : row + p->moves[i].from,
		       p->moves[i].text ? sizeof(address) : p->moves[i].size);
	}
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

bool fay_plan_saved_read(const struct fay_plan *plan, unsigned side, const uint8_t *row, void *to,
			 uint64_t size, uint64_t address)
{
	const struct fay_plan_private *p = fay_plan_stage(plan, side);
	uint64_t number = (address - TEXTS_AT) / TEXT_ROOM, from = (address - TEXTS_AT) % TEXT_ROOM;
	if (number >= p->move_count || !p->moves[number].text)
		return false;
	struct fay_text_bytes text =
		fay_saved_text(fay_plan_saved(plan, side), row + p->moves[number].from);
	uint64_t length = text.length + (text.cut ? FAY_TEXT_CUT_MARK : 0),
		 left = from < length ? length - from : 0;
	memset(to, 0, size);
	if (left)
		memcpy(to, text.bytes + from, left < size ? left : size);
	return true;
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
			     "columns have names of at most %u bytes; rename it",
			     name, FAY_SAVED_NAME - 1);
}

/* What has the name of an event's field is taken for it where the file is asked. */
static int check_names(const struct fay_plan *plan, struct fay_error *error)
{
	const struct fay_plan_private *p = fay_plan_stage(plan, 0);
	for (uint32_t i = 0; i < plan->column_count && !plan->joins; i++) {
		const struct fay_field *field = fay_field_of(plan->columns[i].name);
		if (plan->columns[i].symbol)
			return fay_error_set(error, FAY_E_REFUSED,
					     "the column `%s` cannot be saved: a name is looked up "
					     "when it is shown; leave `Symbol` out",
					     plan->columns[i].name);
		if (field && !is_field(p->columns[plan->columns[i].index].expr, field))
			return fay_error_set(error, FAY_E_USAGE,
					     "the column `%s` would be taken for the events' own "
					     "`%s` when the saved trace is queried: rename it",
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
