/* SPDX-License-Identifier: MIT */
/*
 * Windows of so many events: `.Every(100)`. The probe hands on a row of each event; the aggregator
 * puts them in order and counts (plan_events.c).
 *
 * Windows of time: `.Tumbling(1s)`, `.Sliding(10s, 1s)`. In the probe a window is one more key, the
 * start of the pane (one step of the window) in which the event's time lies; the root puts panes
 * together (window.c), and applies its operations to each window by itself.
 */
#ifndef FAY_QUERY_CHECK_WINDOW_H
#define FAY_QUERY_CHECK_WINDOW_H

#include "check.h"

/* object.Tumbling(width) or object.Sliding(width, step); NULL with the error recorded. */
struct fay_value_node *fay_check_time_window(struct fay_checked *checked,
					     const struct fay_scope *scope,
					     const struct fay_node *call,
					     struct fay_value_node *object);
/* object.Every(events) */
struct fay_value_node *fay_check_count_window(struct fay_checked *checked,
					      const struct fay_scope *scope,
					      const struct fay_node *call,
					      struct fay_value_node *object);
/* When an event happened; of a pair of events, when the later one did; of a row that a join makes a
 * group for, when its event or pair of before did. */
const struct fay_expr *fay_check_event_time(struct fay_checked *checked, struct fay_span span);
/* Whether events have a time: saved ones may have none; false with the error recorded. Events that
 * are joined have one. */
bool fay_check_has_time(struct fay_checked *checked, struct fay_span span);
/* Whether the finished query aggregates in its windows, if it has any; false with the error
 * recorded. */
bool fay_check_window_used(struct fay_checked *checked, struct fay_span span);

#endif
