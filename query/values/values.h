/* SPDX-License-Identifier: MIT */
/*
 * What the checker knows: the symbolic values over which it evaluates the syntax tree, and what it
 * has found out of the query so far, which the planner reads.
 *
 * A lambda is applied by evaluating its body with the parameter bound, a `let` by binding its
 * value, a record by keeping its members; so comprehension and method form come out as the same
 * pipeline, and only typed expressions remain. All of it lies in the query's memory.
 */
#ifndef FAY_QUERY_VALUES_VALUES_H
#define FAY_QUERY_VALUES_VALUES_H

#include "fay/join.h"
#include "query/expr/expr.h"

/* KMeans: most clusters. */
#define FAY_KMEANS_CLUSTERS_MAX 32u

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
	const struct btf *kernel;
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
	/* OBJECT; SCALAR: a pointer to something known. query/sources/sources.h */
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

/* What is done with the merged rows, in the order of the text (query/evaluate/). */
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
	/* `Inlined` is asked for: copies of the function that were inlined take part, too, by this
	 * pattern; `Caller` */
	bool uses_inlined, uses_caller;
	const char *inlined;
	bool computes_calls; /* variables of a line are computed of what its call began with */
	const char *calls;   /* the pattern of these calls' beginnings; NULL: they are not kept */
	bool saved_kernel;   /* DOMAIN_FILE: the events are the kernel's */
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
	struct fay_check_join *join; /* NULL: one source */
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

/* What a query about the kernel is attached to. */
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

/* What struct fay_checked says about one source. */
struct fay_check_source {
	const char *pattern, *event_name;
	enum fay_source kind;
	enum fay_domain domain;
	struct fay_span span;
	struct fay_kernel_source *kernel;
	struct fay_function_source *function;
	bool uses_failed, uses_end, uses_duration, saved_kernel;
	struct fay_filter *filters;
	struct fay_saved *saved;
};

struct fay_join_key {
	/* of one type; of a source as its probe computes it, of pairs as they see it */
	const struct fay_expr *sides[2];
	struct fay_join_key *next;
};

struct fay_check_join {
	/* of the pairs (with the first one's kind and domain), and each by itself from 1 on */
	struct fay_check_source sources[FAY_JOIN_SOURCES + 1];
	unsigned source_count;
	unsigned active; /* the one that lies in struct fay_checked */
	/* One for each join: of what is there and the next source. */
	struct fay_check_step {
		struct fay_join_key *keys;
		uint32_t key_count;
		uint64_t within; /* ns */
	} steps[FAY_JOIN_SOURCES - 1];
	const char *names[FAY_JOIN_SOURCES]; /* of the events */
	const char *into; /* the last join makes groups, and this is their name; NULL: pairs */
};

struct fay_value_node *fay_check_value(struct fay_checked *checked, enum fay_value_kind kind);
struct fay_value_node *fay_check_scalar(struct fay_checked *checked, const struct fay_expr *expr);
/* "an event", "an integer" ... for messages. */
const char *fay_check_describe(struct fay_checked *checked, const struct fay_value_node *value);

/* --- joins --- */

/* Number of a source in a join's `sources`. */
enum { FAY_PAIRS, FAY_LEFT };

/* `checked` speaks of another one of the join's sources from now on. */
void fay_check_change_source(struct fay_checked *checked, unsigned source);
/* A value over the events of `side`, as the pairs see it. */
struct fay_value_node *fay_check_seen_from_pairs(struct fay_checked *checked, unsigned side,
						 struct fay_value_node *of_side);
/*
 * Between these, `checked` speaks of the source of an event of `side` (from 1 on; 0: nothing
 * changes). leave() returns `value`, an expression over that event, as the pairs see it.
 */
unsigned fay_check_enter_side(struct fay_checked *checked, unsigned side);
struct fay_value_node *fay_check_leave_side(struct fay_checked *checked, unsigned outside,
					    struct fay_value_node *value);

#endif
