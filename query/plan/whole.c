/* SPDX-License-Identifier: MIT */
/* An event as a row of its own: the fields one wants to see first, or, where it is saved, all that
 * is known of it. */
#include "planner_private.h"
#include "query/sources/sources.h"

#include <string.h>

/* Fields that are shown of an event, in the order of fay_fields. */
#define SHOWN_FIELDS 6u

struct event_row {
	struct fay_planner *planner; /* that checks, and whose result it is */
	struct fay_planner *stage;   /* NULL; else the columns are those of a join's side */
	const char *prefix;
	unsigned side;
};

static bool add_column(const struct event_row *row, const char *name,
		       const struct fay_value_node *value)
{
	if (!value || !name)
		return false;
	if (row->stage)
		return fay_planner_key(row->stage, value->expr, name) >= 0;
	const char *full =
		*row->prefix ? fay_query_format(row->planner->query, "%s.%s", row->prefix, name)
			     : name;
	return full && fay_planner_output(row->planner, value->expr, full);
}

/* Of an expression over the event, while `checked` speaks of its source: a column. */
static bool add_expr(const struct event_row *row, const char *name, const struct fay_expr *expr,
		     unsigned outside)
{
	struct fay_checked *checked = row->planner->checked;
	struct fay_value_node *value = fay_check_scalar(checked, expr);
	if (!row->stage) { /* as the pairs see it */
		value = fay_check_leave_side(checked, outside, value);
		bool added = add_column(row, name, value);
		fay_check_enter_side(checked, row->side);
		return added;
	}
	return add_column(row, name, value);
}

/* Whether events of the source have the field, and a saved trace has saved it. */
static bool has_field(const struct fay_checked *checked, const struct fay_field *field)
{
	if (!(field->sources & checked->kind) || field->type == TYPE_MODULE ||
	    fay_field_is_inlined(field))
		return false;
	if (checked->domain == DOMAIN_KERNEL && field->offset == offsetof(struct fay_event, cycles))
		return false; /* not of events that come through BPF */
	return checked->domain != DOMAIN_FILE ||
	       fay_saved_field(checked->exprs.query->saved, field);
}

static bool add_fields(const struct event_row *row, unsigned outside, size_t count)
{
	struct fay_checked *checked = row->planner->checked;
	for (size_t i = 0; i < count; i++) {
		const struct fay_field *field = &fay_fields[i];
		if (!has_field(checked, field))
			continue;
		checked->uses_failed |= fay_field_is_failed(field);
		checked->uses_end |= field->sources == (SOURCE_RETURN | SOURCE_SYSCALL);
		checked->uses_duration |= field->offset == offsetof(struct fay_event, duration);
		if (!add_expr(row, field->name, fay_expr_field(&checked->exprs, field), outside))
			return false;
	}
	return true;
}

/* The six registers. */
static bool add_registers(const struct event_row *row, unsigned outside)
{
	struct fay_checked *checked = row->planner->checked;
	if (!(checked->kind & (SOURCE_ENTRY | SOURCE_MARKER | SOURCE_SYSCALL)))
		return true;
	for (unsigned i = 0; i < 6; i++) {
		const char *name = fay_query_format(row->planner->query, "Arg(%u)", i);
		if (!name || (checked->domain == DOMAIN_FILE &&
			      !fay_saved_own(checked->exprs.query->saved, name)))
			continue;
		if (!add_expr(row, name, fay_expr_arg(&checked->exprs, i), outside))
			return false;
	}
	return true;
}

static bool is_field(const char *name)
{
	for (size_t i = 0; i < fay_field_count; i++)
		if (!strcmp(fay_fields[i].name, name))
			return true;
	return false;
}

/* Arguments of a tracepoint or a kernel's function that are numbers or strings; those of a system
 * call are the registers. What a pointer points to is not known later, so it is not kept. */
static bool add_named(const struct event_row *row, unsigned outside)
{
	struct fay_checked *checked = row->planner->checked;
	const struct fay_kernel_source *kernel = checked->kernel;
	if (checked->kind == SOURCE_SYSCALL)
		return true;
	for (uint32_t i = 0; kernel && i < kernel->argument_count; i++) {
		const char *name = kernel->arguments[i].name;
		if (!fay_check_kernel_is_plain(checked, i) || is_field(name))
			continue;
		struct fay_node node = { .kind = NODE_MEMBER,
					 .name = name,
					 .span = row->planner->span,
					 .name_span = row->planner->span };
		const struct fay_value_node *value = fay_check_kernel_argument(checked, &node);
		if (!value || !add_expr(row, name, value->expr, outside))
			return false;
	}
	return true;
}

/* What a saved trace has beside an event's own fields. */
static bool add_saved(const struct event_row *row, unsigned outside)
{
	struct fay_checked *checked = row->planner->checked;
	const struct fay_saved *saved = checked->exprs.query->saved;
	if (checked->domain != DOMAIN_FILE)
		return true;
	uint32_t stream = fay_saved_selected(saved);
	for (uint32_t i = 0; i < fay_saved_stream_at(saved, stream)->column_count; i++) {
		const char *name = fay_saved_column_at(saved, stream, i)->name;
		const struct fay_expr *expr = fay_check_saved_column(checked, name);
		if (expr && !add_expr(row, name, expr, outside))
			return false;
	}
	return !checked->exprs.query->failed;
}

static bool add_event(const struct event_row *row, bool whole)
{
	struct fay_checked *checked = row->planner->checked;
	unsigned outside = fay_check_enter_side(checked, row->side);
	bool added = add_fields(row, outside, whole ? fay_field_count : SHOWN_FIELDS);
	if (whole)
		added = added && add_registers(row, outside) && add_named(row, outside);
	added = added && add_saved(row, outside);
	fay_check_leave_side(checked, outside, NULL);
	return added;
}

bool fay_planner_event(struct fay_planner *planner, const char *prefix, unsigned side)
{
	return add_event(&(struct event_row){ .planner = planner, .prefix = prefix, .side = side },
			 planner->checked->whole_events && !planner->checked->join);
}

bool fay_planner_whole_side(struct fay_planner *stage, struct fay_planner *pairs, unsigned side)
{
	return add_event(
		&(struct event_row){ .planner = pairs, .stage = stage, .prefix = "", .side = side },
		true);
}
