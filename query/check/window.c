/* SPDX-License-Identifier: MIT */
/* Windows, of time and of so many events. */
#include "check_private.h"

#define LEAST_STEP 1000000 /* 1 ms */
#define MOST_PANES 3600

/* A constant number of nanoseconds, or -1 with the error recorded. */
static int64_t duration(struct fay_checked *checked, const struct fay_scope *scope,
			const struct fay_node *node, const char *method)
{
	struct fay_value_node *v = fay_check_node(checked, scope, node);
	if (!v)
		return -1;
	if (v->kind != VALUE_SCALAR || v->expr->type != TYPE_INT ||
	    !fay_expr_is_constant(v->expr) || v->expr->value < LEAST_STEP) {
		fay_query_fail(checked->exprs.query, FAY_E_USAGE, node->span,
			       "`%s` takes a constant duration of at least 1ms, as in `%s(%s)`",
			       method, method, *method == 'S' ? "10s, 1s" : "1s");
		return -1;
	}
	return v->expr->value;
}

const struct fay_expr *fay_check_event_time(struct fay_checked *checked, struct fay_span span)
{
	struct fay_exprs *exprs = &checked->exprs;
	const struct fay_expr *time = fay_expr_time(exprs);
	if (!checked->join)
		return time;
	unsigned count = checked->join->source_count - (checked->join->into != NULL);
	const struct fay_expr *latest = fay_expr_side(exprs, 0, checked->join->names[0], time);
	for (unsigned s = 1; s < count && latest; s++) {
		const struct fay_expr *other =
			fay_expr_side(exprs, s, checked->join->names[s], time);
		const struct fay_expr *later =
			other ? fay_expr_make(exprs, span, EXPR_GT, TYPE_BOOL, latest, other, NULL)
			      : NULL;
		latest = later ? fay_expr_make(exprs, span, EXPR_COND, TYPE_TIME, later, latest,
					       other)
			       : NULL;
	}
	return latest;
}

bool fay_check_has_time(struct fay_checked *checked, struct fay_span span)
{
	return checked->domain != DOMAIN_FILE || checked->join ||
	       fay_check_saved(checked, span, "time");
}

/* time - time % step: the start of the pane in which the event lies. */
static const struct fay_expr *pane_of_event(struct fay_checked *checked, struct fay_span span,
					    int64_t step)
{
	struct fay_exprs *exprs = &checked->exprs;
	const struct fay_expr *time = fay_check_event_time(checked, span);
	const struct fay_expr *length = time ? fay_expr_int(exprs, TYPE_INT, step) : NULL;
	const struct fay_expr *rest =
		length ? fay_expr_make(exprs, span, EXPR_MOD, TYPE_INT, time, length, NULL) : NULL;
	return rest ? fay_expr_make(exprs, span, EXPR_SUB, TYPE_TIME, time, rest, NULL) : NULL;
}

/* Windows stand before all that gathers; false with the error recorded. */
static bool can_begin(struct fay_checked *checked, const struct fay_node *call,
		      const struct fay_value_node *object)
{
	if (object->grouped || checked->keys)
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, call->span, "%s",
				      checked->window.step ? "a query may have only one window"
							   : "windows apply to events: put the "
							     "window before the grouping") != NULL;
	return fay_check_before_root(checked, call->span, "a window");
}

/* The window is the first key. */
static struct fay_value_node *begin(struct fay_checked *checked, struct fay_window window,
				    struct fay_value_node *object)
{
	struct fay_key *key =
		window.key ? fay_query_alloc(checked->exprs.query, sizeof(*key)) : NULL;
	if (!key)
		return NULL;
	*key = (struct fay_key){ .name = "window", .expr = window.key };
	window.shown = window.key;
	checked->keys = key;
	checked->window = window;
	return object;
}

struct fay_value_node *fay_check_time_window(struct fay_checked *checked,
					     const struct fay_scope *scope,
					     const struct fay_node *call,
					     struct fay_value_node *object)
{
	const char *method = call->a->name;
	if (!can_begin(checked, call, object))
		return NULL;
	int64_t width = duration(checked, scope, call->items->value, method), step = width;
	if (width > 0 && call->items->next)
		step = duration(checked, scope, call->items->next->value, method);
	if (width < 0 || step < 0)
		return NULL;
	if (width % step || width / step > MOST_PANES)
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, call->items->value->span,
				      "the length of a sliding window is a multiple of its step, "
				      "at most %d of them",
				      MOST_PANES);
	if (!fay_check_has_time(checked, call->a->name_span))
		return NULL;
	struct fay_window window = { .width = (uint64_t)width,
				     .step = (uint64_t)step,
				     .key = pane_of_event(checked, call->span, step) };
	return begin(checked, window, object);
}

/* 1s and 4KiB are numbers, too, but who writes them does not mean so many events. */
static bool has_unit(const struct fay_query *query, const struct fay_node *number)
{
	char last = query->text[number->span.end - 1] | 0x20;
	return number->kind == NODE_INTEGER && last >= 'a' && last <= 'z' &&
	       (query->text[number->span.start + 1] | 0x20) != 'x';
}

struct fay_value_node *fay_check_count_window(struct fay_checked *checked,
					      const struct fay_scope *scope,
					      const struct fay_node *call,
					      struct fay_value_node *object)
{
	struct fay_query *query = checked->exprs.query;
	const struct fay_node *argument = call->items->value;
	if (!can_begin(checked, call, object))
		return NULL;
	if (checked->join)
		return fay_query_fail(query, FAY_E_REFUSED, call->span,
				      "count-based windows of pairs are not supported yet; "
				      "`Tumbling` makes time windows");
	struct fay_value_node *count = fay_check_node(checked, scope, argument);
	if (!count)
		return NULL;
	if (count->kind != VALUE_SCALAR || count->expr->type != TYPE_INT ||
	    !fay_expr_is_constant(count->expr) || count->expr->value < 1 ||
	    has_unit(query, argument))
		return fay_query_fail(
			query, FAY_E_USAGE, argument->span,
			"`Every` takes the number of events in a window, a constant from 1 up, as "
			"in `Every(1000)`; for time windows use `Tumbling(1s)`");
	if (!fay_check_has_time(checked, call->a->name_span))
		return NULL;
	struct fay_window window = { .width = 1,
				     .step = 1,
				     .events = (uint64_t)count->expr->value,
				     .before = checked->filters,
				     .key = fay_expr_window(&checked->exprs) };
	checked->filters = NULL;
	checked->filters_tail = &checked->filters;
	return begin(checked, window, object);
}

bool fay_check_window_used(struct fay_checked *checked, struct fay_span span)
{
	const struct fay_value_node *result = checked->result;
	if (!checked->window.step || result->kind == VALUE_SCALAR || result->grouped)
		return true;
	return fay_query_fail(checked->exprs.query, FAY_E_USAGE, span,
			      "a window needs something to compute: an aggregate such as "
			      "`.Count()`, or groups") != NULL;
}
