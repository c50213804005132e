/* SPDX-License-Identifier: MIT */
/* Between the files of the checker. */
#ifndef FAY_QUERY_CHECK_CHECK_PRIVATE_H
#define FAY_QUERY_CHECK_CHECK_PRIVATE_H

#include "check.h"
#include "query/sources/sources.h"

struct fay_scope {
	const char *name;
	struct fay_value_node *value;
	const struct fay_scope *outer;
};

struct fay_value_node *fay_check_node(struct fay_checked *checked, const struct fay_scope *scope,
				      const struct fay_node *node);
/* A scalar of `type`, or an error that says what `what` needs. */
const struct fay_expr *fay_check_typed(struct fay_checked *checked, const struct fay_scope *scope,
				       const struct fay_node *node, enum fay_type type,
				       const char *what);
/* Evaluates `name => body` with the element bound. `lambda` may have any kind: checked here. */
struct fay_value_node *fay_check_apply(struct fay_checked *checked, const struct fay_scope *scope,
				       const struct fay_node *lambda,
				       struct fay_value_node *element, const char *method);
/* The bool that `v` must be, or an error that says what `what` needs; NULL for NULL. */
const struct fay_expr *fay_check_bool(struct fay_checked *checked, const struct fay_node *node,
				      struct fay_value_node *v, const char *what);
/* Only events or rows for which `predicate` holds: *object is a copy of the caller's. */
bool fay_check_narrow(struct fay_checked *checked, const struct fay_node *node,
		      struct fay_value_node *object, const struct fay_expr *predicate);
/* object.name(arguments) on a GROUP or SEQUENCE. */
struct fay_value_node *fay_check_method(struct fay_checked *checked, const struct fay_scope *scope,
					const struct fay_node *call, struct fay_value_node *object);
/* `name` bound to a value within `outer`; NULL for NULL. */
const struct fay_scope *fay_check_bind(struct fay_checked *checked, const struct fay_scope *outer,
				       const char *name, struct fay_value_node *value);
struct fay_value_node *fay_check_comprehension(struct fay_checked *checked,
					       const struct fay_scope *scope,
					       const struct fay_node *node);

/* The name that C# would infer for a member, or NULL. */
const char *fay_check_inferred_name(const struct fay_node *node);

/* --- operators.c --- */

const struct fay_expr *fay_check_binary(struct fay_checked *checked, const struct fay_scope *scope,
					const struct fay_node *node);
const struct fay_expr *fay_check_unary(struct fay_checked *checked, const struct fay_scope *scope,
				       const struct fay_node *node);
/* a ? b : c */
const struct fay_expr *fay_check_cond(struct fay_checked *checked, const struct fay_scope *scope,
				      const struct fay_node *node);

/* --- extend.c --- */

/* Compiles the C files that the query names; false with the error recorded. */
bool fay_check_extensions(struct fay_query *query);
/* Whether the function is in these files; with constants alone, `process("redis")`, the name is the
 * query's own word for a source. */
bool fay_check_is_function_call(const struct fay_query *query, const struct fay_node *call);
/* name(arguments), a function of these files */
struct fay_value_node *fay_check_function_call(struct fay_checked *checked,
					       const struct fay_scope *scope,
					       const struct fay_node *call);

/* --- event.c --- */

/* Whether events of some source have this field or method. */
bool fay_check_is_event_member(const char *name);
/* event.name, event.name(arguments) */
struct fay_value_node *fay_check_event_member(struct fay_checked *checked,
					      const struct fay_node *node);
struct fay_value_node *fay_check_event_call(struct fay_checked *checked,
					    const struct fay_scope *scope,
					    const struct fay_node *call);

/* --- cluster.c --- */

/* Whether the name of a function or module has a `!` beside that of `operator!` or `operator!=`. */
bool fay_check_has_bang(const char *name);
/* cluster.Function(...) and its like */
struct fay_value_node *fay_check_cluster_method(struct fay_checked *checked,
						const struct fay_scope *scope,
						const struct fay_node *call);

/* --- process.c --- */

/* process("name"), process(PID); also of a machine. */
struct fay_value_node *fay_check_process(struct fay_checked *checked, const struct fay_scope *scope,
					 const struct fay_node *call, const char *machine);
/* machine("name"), machine("glob*") */
struct fay_value_node *fay_check_machine(struct fay_checked *checked, const struct fay_node *call);
/* Notes a source of what `cluster`, process(...) or machine(...) stands for; false with the error
 * recorded: another one is of something else. */
bool fay_check_one_origin(struct fay_checked *checked, const struct fay_node *call,
			  const struct fay_value_node *origin);

/* --- full.c --- */

/* sequence.WhenFull(Overwrite) */
struct fay_value_node *fay_check_when_full(struct fay_checked *checked,
					   const struct fay_scope *scope,
					   const struct fay_node *call,
					   struct fay_value_node *object);

/* --- strings.c --- */

/* string.name(arguments), string.Length */
struct fay_value_node *fay_check_string_method(struct fay_checked *checked,
					       const struct fay_scope *scope,
					       const struct fay_node *call,
					       const struct fay_expr *string);
struct fay_value_node *fay_check_string_length(struct fay_checked *checked,
					       const struct fay_node *node,
					       const struct fay_expr *string);

/* --- stack.c --- */

bool fay_check_is_stack(const char *name);
/* event.UserStack, event.Stack(n) and the like */
struct fay_value_node *fay_check_stack(struct fay_checked *checked, const struct fay_node *node);
struct fay_value_node *fay_check_stack_call(struct fay_checked *checked,
					    const struct fay_scope *scope,
					    const struct fay_node *call);

/* --- join.c --- */

/* The clause's effect on what is known: the new scope, or NULL with the error recorded. *sequence
 * becomes that of the pairs. */
const struct fay_scope *fay_check_join(struct fay_checked *checked, const struct fay_scope *outer,
				       const struct fay_scope *scope,
				       const struct fay_clause *clause,
				       struct fay_value_node **sequence);
/* A condition (EXPR_SIDE) on events of one side. */
bool fay_check_side_filter(struct fay_checked *checked, const struct fay_expr *condition);

/* --- aggregates.c --- */

/* By name, or NULL. */
const struct fay_aggregate_kind *fay_check_aggregate_kind(const char *name);
struct fay_value_node *fay_check_aggregate(struct fay_checked *checked,
					   const struct fay_scope *scope,
					   const struct fay_node *call,
					   const struct fay_value_node *on,
					   const struct fay_aggregate_kind *kind);

/* --- root.c: what is left to the root (query/evaluate/) --- */

/* Whether a condition must wait for the merged rows: it looks at aggregates, or comes after rows
 * were chosen. */
bool fay_check_at_root(const struct fay_checked *checked, const struct fay_expr *condition);
bool fay_check_root_filter(struct fay_checked *checked, const struct fay_expr *condition);
/* One more key of an order; `then`: the order is there already. */
bool fay_check_order(struct fay_checked *checked, const struct fay_node *node,
		     const struct fay_value_node *key, bool descending, bool then);
/* Take(n), Skip(n) */
bool fay_check_window(struct fay_checked *checked, const struct fay_node *node,
		      const struct fay_value_node *count, bool take);
/* Distinct() of grouped rows: those of equal elements are one. */
bool fay_check_distinct(struct fay_checked *checked, struct fay_span span,
			const struct fay_value_node *element);
/* KMeans(k, vector, dimension, value) of rows of groups: what a row is then, with its cluster.
 * `parts` are what the three lambdas of `call` gave. */
struct fay_value_node *fay_check_kmeans(struct fay_checked *checked, const struct fay_node *call,
					const struct fay_expr *k,
					struct fay_value_node *const parts[3]);
/* An aggregate over the rows of groups; `operand` NULL: their number. */
struct fay_value_node *fay_check_fold(struct fay_checked *checked, struct fay_span span,
				      const char *text, enum fay_merge merge,
				      const struct fay_expr *operand);
/* The lists to which the next key, the next operation of the root go: of the last grouping. */
struct fay_key **fay_check_keys(struct fay_checked *checked);
/* Groups are grouped once more: keys and operations that follow are of that grouping. */
bool fay_check_regroup(struct fay_checked *checked, struct fay_span span);
/* Number of the last grouping, from 1 up; 1 if there is none yet. */
static inline unsigned fay_check_level(const struct fay_checked *checked)
{
	return checked->regroup_count + 1;
}
/* Nothing but the root may follow what was said there: false with the error recorded if something
 * was. */
bool fay_check_before_root(struct fay_checked *checked, struct fay_span span, const char *what);

/*
 * --- window.c ---
 *
 * Windows of so many events: `.Every(100)`. The probe hands on a row of each event; the aggregator
 * puts them in order and counts (query/plan/events.c).
 *
 * Windows of time: `.Tumbling(1s)`, `.Sliding(10s, 1s)`. In the probe a window is one more key, the
 * start of the pane (one step of the window) in which the event's time lies; the root puts panes
 * together (query/evaluate/window.c), and applies its operations to each window by itself.
 */

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
