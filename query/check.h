/* SPDX-License-Identifier: MIT */
/*
 * The checker: evaluates the syntax tree over symbolic values. A lambda is applied by evaluating
 * its body with the parameter bound, a `let` by binding its value, a record by keeping its members;
 * so comprehension and method form come out as the same pipeline, and only typed expressions
 * remain.
 */
#ifndef FAY_QUERY_CHECK_H
#define FAY_QUERY_CHECK_H

#include "expr.h"

enum fay_value_kind {
	VALUE_SCALAR,
	VALUE_EVENT,
	VALUE_RECORD,
	VALUE_GROUP,    /* the events of one key */
	VALUE_SEQUENCE, /* events or rows of the whole query */
	VALUE_CLUSTER,
	VALUE_KERNEL,
	VALUE_OBJECT, /* a structure or an array in memory */
};

struct fay_member {
	const char *name;
	struct fay_value_node *value;
	struct fay_member *next;
};

/* Where types come from. */
struct fay_types {
	const struct fay_btf *kernel;
	struct fay_debug_function *program;   /* instead */
	struct fay_enumeration *enumerations; /* that were met */
};

struct fay_value_node {
	enum fay_value_kind kind;
	const struct fay_expr *expr;      /* SCALAR */
	struct fay_member *members;       /* RECORD */
	struct fay_value_node *key;       /* GROUP */
	struct fay_value_node *element;   /* GROUP, SEQUENCE: what a lambda over it sees */
	const struct fay_expr *condition; /* GROUP: of `.Where` inside it; NULL: all */
	/* SEQUENCE: the element's name where one can be inferred */
	const char *name;
	bool grouped;  /* SEQUENCE: the rows are groups */
	uint8_t level; /* GROUP: number of the grouping, from 1 up */
	/* OBJECT; SCALAR: a pointer to something known. check_types.h */
	struct fay_types *types;
	/* of these: by its number in `types`, so many bytes behind the address `expr` */
	uint32_t type, offset;
	const char *path; /* names since that address; "" */
	/* CLUSTER: the one that it stands for; NULL: all that are traced */
	const struct fay_query_process *process;
	/* CLUSTER: name or glob of the machines that it stands for; NULL: all */
	const char *machine;
	/* of a join, which of the sources, from 1 on; 0: there is no join */
	unsigned side;
};

struct fay_key {
	const char *name;
	const struct fay_expr *expr;
	struct fay_key *next;
};

/* Keys of an order, or the columns by which rows are told apart. */
struct fay_order {
	const struct fay_expr *expr;
	bool descending;
	struct fay_order *next;
};

/* What is done with the merged rows, in the order of the text (root.h). */
struct fay_root_op {
	enum {
		ROOT_FILTER,
		ROOT_ORDER,
		ROOT_DISTINCT,
		ROOT_TAKE,
		ROOT_SKIP,
		ROOT_FOLD,
		ROOT_KMEANS
	} kind;
	const struct fay_expr *expr; /* FILTER; FOLD: operand, NULL for a count */
	/* ORDER, DISTINCT; KMEANS: what tells vectors apart, what a vector's values, the value */
	struct fay_order *orders;
	uint64_t count;       /* TAKE, SKIP; KMEANS: of clusters */
	enum fay_merge merge; /* FOLD */
	const char *text;     /* FOLD: "Sum" ... */
	struct fay_root_op *next;
};

/* Windows; step 0: none. Of time: in nanoseconds, from the epoch on; of so many events: in numbers
 * of windows. */
struct fay_window {
	uint64_t width, step;
	uint64_t events; /* of each window; 0: they are of time */
	/* of so many events: conditions on which are counted; those that follow choose among a
	 * window's events */
	struct fay_filter *before;
	const struct fay_expr *key;   /* start of the pane of an event, or number of its window */
	const struct fay_expr *shown; /* the same, seen from after the last grouping */
};

/* A grouping of the rows of groups, with what is done to its rows. */
struct fay_regroup {
	bool ordered; /* the rows that are grouped have an order that the query names */
	struct fay_key *keys;
	struct fay_root_op *root;
	struct fay_regroup *next;
};

struct fay_checked {
	struct fay_exprs exprs;
	const char *pattern;   /* NULL until cluster.Function or the like is seen */
	enum fay_source kind;  /* which of them it was */
	bool return_arguments; /* arguments are asked for of calls that have ended */
	bool whole_events;     /* an event as a row has all its fields */
	/* `Failed` is asked for: calls that end by an exception take part, too */
	bool uses_failed;
	bool saved_kernel;      /* DOMAIN_FILE: the events are the kernel's */
	const char *event_name; /* the first name that the query gives an event */
	struct fay_span source; /* of cluster.Function(...) */
	enum fay_domain domain;
	struct fay_kernel_source *kernel;        /* of DOMAIN_KERNEL */
	struct fay_function_source *function;    /* of DOMAIN_USER, once it was needed */
	const struct fay_query_process *process; /* that the query names; NULL */
	const char *machine;                     /* that the query names, or a glob; NULL */
	enum fay_when_full when_full;            /* what is done where a ring has no room */
	struct fay_span when_full_at;            /* where the query says so; empty: it does not */
	bool has_source;                         /* some source was seen */
	/* of a system call: something is asked that is known when it ends; how long it took */
	bool uses_end, uses_duration;
	struct fay_filter *filters, **filters_tail;
	struct fay_key *keys; /* of the window and the grouping, in order */
	struct fay_window window;
	struct fay_root_op *root, **root_tail;
	struct fay_regroup *regroups; /* the second grouping and those behind it */
	unsigned regroup_count;
	struct fay_check_join *join; /* check_join.h; NULL: one source */
	struct fay_value_node *result;
	const char *result_name; /* of a scalar result or a single column */
};

/* Whether the events are the kernel's, live or saved. */
static inline bool fay_check_of_kernel(const struct fay_checked *checked)
{
	return checked->domain == DOMAIN_KERNEL || checked->saved_kernel;
}

/* A second probe sees the calls that end by an exception. In the kernel there are none: `Failed` is
 * about the value there. */
static inline bool fay_check_has_exceptions(const struct fay_checked *checked)
{
	return checked->kind == SOURCE_RETURN && checked->uses_failed &&
	       !fay_check_of_kernel(checked);
}

/* What a query about the kernel is attached to; source_kernel.c. */
#define FAY_KERNEL_POINTS_MAX 256u
struct fay_kernel_source {
	uint32_t count;
	struct fay_kernel_point {
		const char *name; /* "read", "sched_switch" */
		uint32_t number;  /* of a system call */
	} points[FAY_KERNEL_POINTS_MAX + 256];
	struct fay_types types;
	uint64_t period; /* of a timer, ns */
	/* of a tracepoint, of a function as it begins; 0 if there are several */
	uint32_t argument_count;
	struct {
		const char *name;
		uint32_t type;
	} arguments[12];
};

/* Runs as a BPF program only: there is no native probe for it. */
static inline bool fay_source_is_bpf(enum fay_source kind)
{
	return kind & (SOURCE_SYSCALL | SOURCE_TRACEPOINT | SOURCE_TIMER);
}

/* Fills *checked, whose `exprs.query` is set; false with the error recorded. */
bool fay_query_check(struct fay_checked *checked, const struct fay_node *root);

/* --- between check.c and check_sequence.c --- */

struct fay_scope {
	const char *name;
	struct fay_value_node *value;
	const struct fay_scope *outer;
};

struct fay_value_node *fay_check_node(struct fay_checked *checked, const struct fay_scope *scope,
				      const struct fay_node *node);
struct fay_value_node *fay_check_scalar(struct fay_checked *checked, const struct fay_expr *expr);
/* A scalar of `type`, or an error that says what `what` needs. */
const struct fay_expr *fay_check_typed(struct fay_checked *checked, const struct fay_scope *scope,
				       const struct fay_node *node, enum fay_type type,
				       const char *what);
struct fay_value_node *fay_check_value(struct fay_checked *checked, enum fay_value_kind kind);
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
/* --- check_operators.c --- */

const struct fay_expr *fay_check_binary(struct fay_checked *checked, const struct fay_scope *scope,
					const struct fay_node *node);
const struct fay_expr *fay_check_unary(struct fay_checked *checked, const struct fay_scope *scope,
				       const struct fay_node *node);
/* a ? b : c */
const struct fay_expr *fay_check_cond(struct fay_checked *checked, const struct fay_scope *scope,
				      const struct fay_node *node);

/* --- check_extend.c --- */

/* Compiles the C files that the query names; false with the error recorded. */
bool fay_check_extensions(struct fay_query *query);
/* Whether the function is in these files; with constants alone, `process("redis")`, the name is the
 * query's own word for a source. */
bool fay_check_is_function_call(const struct fay_query *query, const struct fay_node *call);
/* name(arguments), a function of these files */
struct fay_value_node *fay_check_function_call(struct fay_checked *checked,
					       const struct fay_scope *scope,
					       const struct fay_node *call);

/* --- check_event.c --- */

/* Whether events of some source have this field or method. */
bool fay_check_is_event_member(const char *name);
/* event.name, event.name(arguments) */
struct fay_value_node *fay_check_event_member(struct fay_checked *checked,
					      const struct fay_node *node);
struct fay_value_node *fay_check_event_call(struct fay_checked *checked,
					    const struct fay_scope *scope,
					    const struct fay_node *call);

/* --- source_cluster.c --- */

/* Of "Function" and the like; SOURCE_NONE: it is no source's name. */
enum fay_source fay_check_source_kind(const char *name);
/* cluster.Function(...) and its like */
struct fay_value_node *fay_check_cluster_method(struct fay_checked *checked,
						const struct fay_scope *scope,
						const struct fay_node *call);

/* --- source_process.c --- */

/* process("name"), process(PID); also of a machine. */
struct fay_value_node *fay_check_process(struct fay_checked *checked, const struct fay_scope *scope,
					 const struct fay_node *call, const char *machine);
/* machine("name"), machine("glob*") */
struct fay_value_node *fay_check_machine(struct fay_checked *checked, const struct fay_node *call);
/* Notes a source of what `cluster`, process(...) or machine(...) stands for; false with the error
 * recorded: another one is of something else. */
bool fay_check_one_origin(struct fay_checked *checked, const struct fay_node *call,
			  const struct fay_value_node *origin);

/* --- check_full.c --- */

/* sequence.WhenFull(Overwrite) */
struct fay_value_node *fay_check_when_full(struct fay_checked *checked,
					   const struct fay_scope *scope,
					   const struct fay_node *call,
					   struct fay_value_node *object);
/* --- check_strings.c --- */

/* string.name(arguments), string.Length */
struct fay_value_node *fay_check_string_method(struct fay_checked *checked,
					       const struct fay_scope *scope,
					       const struct fay_node *call,
					       const struct fay_expr *string);
struct fay_value_node *fay_check_string_length(struct fay_checked *checked,
					       const struct fay_node *node,
					       const struct fay_expr *string);

/* --- check_stack.c --- */

bool fay_check_is_stack(const char *name);
/* event.UserStack, event.Stack(n) and the like */
struct fay_value_node *fay_check_stack(struct fay_checked *checked, const struct fay_node *node);
struct fay_value_node *fay_check_stack_call(struct fay_checked *checked,
					    const struct fay_scope *scope,
					    const struct fay_node *call);

/* --- source_kernel.c --- */

/* cluster.Syscall("glob"), cluster.Tracepoint("system:glob"): fills in `kernel` and returns the
 * pattern, or NULL with the error recorded. */
const char *fay_check_kernel_pattern(struct fay_checked *checked, const struct fay_node *call);
/* cluster.Timer(period). */
const char *fay_check_timer(struct fay_checked *checked, const struct fay_node *call);
/* cluster.Function(kernel, ...): the arguments' names and types, if there is one such function and
 * its type is known. */
bool fay_check_kernel_function(struct fay_checked *checked, const char *pattern);
/* An argument of the tracepoint or function by its name. NULL without an error: there is none of
 * this name. */
struct fay_value_node *fay_check_kernel_argument(struct fay_checked *checked,
						 const struct fay_node *node);
/* Whether argument `index` is a number, a bool, an enumeration's constant or a string. */
bool fay_check_kernel_is_plain(const struct fay_checked *checked, uint32_t index);
/* Argument `index` as a number. */
struct fay_value_node *fay_check_kernel_arg(struct fay_checked *checked, const struct fay_node *at,
					    uint32_t index);

/* --- source_function.c: what a program's debug information says --- */

/* An argument of the traced function by its name. NULL without an error: there is none of this
 * name, or nothing is known. */
struct fay_value_node *fay_check_function_argument(struct fay_checked *checked,
						   const struct fay_node *node);
/* Arguments of calls that have ended are kept from their beginning: of programs' functions. */
static inline bool fay_check_keeps_arguments(const struct fay_checked *checked)
{
	return checked->kind == SOURCE_RETURN && checked->domain == DOMAIN_USER;
}
/* ReturnValue, with the type that it has; just the register's value if nothing is known of it. NULL
 * with the error recorded: it is in no such register. */
struct fay_value_node *fay_check_function_result(struct fay_checked *checked,
						 const struct fay_node *node,
						 const struct fay_expr *word);
/* event.Caller */
struct fay_value_node *fay_check_caller(struct fay_checked *checked, const struct fay_node *node);
/* Names of the arguments, up to `max`. */
size_t fay_check_function_names(const struct fay_checked *checked, const char **names, size_t max);
/* "`read` has the arguments `fd`, `buf`", of a program's function, a tracepoint or a function of
 * the kernel; "": they are not known by name. */
const char *fay_check_argument_list(const struct fay_checked *checked);
/* Why arguments of a program's function are not known by name; "". */
const char *fay_check_function_reason(const struct fay_checked *checked);

/* The name that C# would infer for a member, or NULL. */
const char *fay_check_inferred_name(const struct fay_node *node);
/* "an event", "an integer" ... for messages. */
const char *fay_check_describe(struct fay_checked *checked, const struct fay_value_node *value);

#endif
