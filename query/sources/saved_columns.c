/* SPDX-License-Identifier: MIT */
/* Columns of a saved trace: which are what events have by themselves, and which are more. */
#include "sources.h"

#include <stdio.h>
#include <string.h>

#define FIRST_WORD (offsetof(struct fay_event, address) / 8)
#define WORDS (sizeof(struct fay_event) / 8)

static bool has_type(const struct fay_saved_column *column, enum fay_type type)
{
	return column && !column->flags && column->type == (uint32_t)fay_type_column(type) &&
	       column->size == (type == TYPE_STRING ? FAY_COMM_SIZE : 8);
}

const struct fay_saved_column *fay_saved_field(const struct fay_saved *saved,
					       const struct fay_field *field)
{
	const struct fay_saved_column *column = fay_saved_column(saved, field->name);
	return has_type(column, field->type) ? column : NULL;
}

/* NULL: no event has a field of that name. */
const struct fay_field *fay_field_of(const char *name)
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
	const struct fay_field *field = fay_field_of(name);
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
	if (fay_field_of(column->name) || is_argument(column->name))
		return false;
	return column->type != FAY_TYPE_STRING ? column->size == 8
	       : column->flags                 ? column->size <= 8 * (WORDS - FIRST_WORD)
					       : column->size == FAY_COMM_SIZE;
}

/* They lie in what the event has no other use for, in their order; the word at which one begins, 0
 * if there was no room. */
uint32_t fay_saved_word(const struct fay_saved *saved, const struct fay_saved_column *column)
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
	uint32_t word = column ? fay_saved_word(saved, column) : 0;
	if (word && column->type == FAY_TYPE_STRING && column->flags)
		return fay_expr_saved_stack(&checked->exprs, word, column->size / 8,
					    column->flags & FAY_SAVED_KERNEL_STACK);
	const struct fay_query_options *options = checked->exprs.query->options;
	if (!word || !options || !options->long_strings || !fay_saved_is_string(column))
		return word ? fay_expr_saved(&checked->exprs, word, type_of(column), column->name)
			    : NULL;
	/* the event says where the string lies: query/plan/saved.c */
	const struct fay_expr *at = fay_expr_saved(&checked->exprs, word, TYPE_INT, column->name);
	return at ? fay_expr_member(&checked->exprs, at,
				    (struct fay_access){ .string = true, .whole = true }, "")
		  : NULL;
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
