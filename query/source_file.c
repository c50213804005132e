/* SPDX-License-Identifier: MIT */
/* Saved traces as a source: file("NAME"). The events are what they were when they were saved, as far as their columns tell. */
#include "source_file.h"

#include <stdio.h>
#include <string.h>

#include "plan.h"

struct fay_value_node *fay_check_file(struct fay_checked *checked, const struct fay_node *call)
{
	struct fay_query *query = checked->exprs.query;
	const struct fay_node *name = call->item_count == 1 ? call->items->value : NULL;
	struct fay_error error;
	if (!name || name->kind != NODE_STRING || !name->length ||
	    memchr(name->name, 0, name->length))
		return fay_query_fail(
			query, FAY_E_USAGE, call->span,
			"`file` takes the name of a saved trace: file(\"reads.fay\")");
	if (checked->pattern)
		return fay_query_fail(query, FAY_E_REFUSED, call->span,
				      "a second source stands in a join: `join b in file(...) on a.tid equals b.tid within 5ms`");
	if (fay_saved_open(name->name, &query->saved, &error))
		return fay_query_fail(query, error.code, name->span, "%s", error.message);
	uint32_t source = fay_saved_header(query->saved)->source;
	if (source != SOURCE_ENTRY && source != SOURCE_RETURN && source != SOURCE_MARKER)
		return fay_query_fail(query, FAY_E_REFUSED, name->span,
				      "events of this kind (%u) are not read from files", source);
	checked->kind = (enum fay_source)source;
	checked->domain = DOMAIN_FILE;
	checked->pattern = name->name;
	checked->source = call->span;
	struct fay_value_node *sequence = fay_check_value(checked, VALUE_SEQUENCE);
	if (sequence)
		sequence->element = fay_check_value(checked, VALUE_EVENT);
	return sequence && sequence->element ? sequence : NULL;
}

bool fay_check_saved(struct fay_checked *checked, struct fay_span span, const char *name)
{
	struct fay_query *query = checked->exprs.query;
	const char *names[FAY_SAVED_COLUMNS];
	const struct fay_saved_header *header = fay_saved_header(query->saved);
	if (!name || fay_saved_column(query->saved, name))
		return name != NULL;
	char list[512] = "";
	for (uint32_t i = 0; i < header->column_count; i++) {
		names[i] = fay_saved_column_at(query->saved, i)->name;
		size_t used = strlen(list);
		snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", names[i]);
	}
	return fay_query_fail(query, FAY_E_REFUSED, span,
			      "the saved trace does not have `%s`; it has %s", name, list) != NULL;
}

/* --- events ------------------------------------------------------------------------------------------------------------- */

static void add_move(struct fay_plan_private *p, const struct fay_saved *saved, const char *name, uint32_t to, uint32_t size)
{
	const struct fay_saved_column *column = fay_saved_column(saved, name);
	if (column && size && p->move_count < FAY_SAVED_COLUMNS)
		p->moves[p->move_count++] = (struct fay_saved_move){
			column->offset, to, size < column->size ? size : column->size};
}

void fay_plan_find_saved(struct fay_plan_private *p, const struct fay_saved *saved)
{
	if (!saved)
		return;
	for (size_t i = 0; i < fay_field_count; i++)
		add_move(p, saved, fay_fields[i].name, fay_fields[i].offset, fay_fields[i].size);
	for (uint32_t i = 0; i < 6; i++) {
		char name[16];
		snprintf(name, sizeof(name), "Arg(%u)", i);
		add_move(p, saved, name, (uint32_t)offsetof(struct fay_event, arg) + 8 * i, 8);
	}
	p->failed = fay_saved_column(saved, "Failed");
}

bool fay_plan_saved_event(const struct fay_plan *plan, unsigned side, const uint8_t *row, struct fay_event *event,
			  uint32_t *probe)
{
	const struct fay_plan_private *p = fay_plan_stage(plan, side);
	uint64_t failed = 0;
	memset(event, 0, sizeof(*event));
	for (uint32_t i = 0; i < p->move_count; i++)
		memcpy((uint8_t *)event + p->moves[i].to, row + p->moves[i].from, p->moves[i].size);
	event->comm[FAY_COMM_SIZE - 1] = 0;
	if (p->failed)
		memcpy(&failed, row + p->failed->offset, sizeof(failed));
	*probe = (side ? fay_plan_stage(plan, 0)->probe_count : 0) + (failed != 0);
	return !failed || p->checked.uses_failed;
}
