/* SPDX-License-Identifier: MIT */
/*
 * The plan as the planner, the code generator and `fay explain` share it. Tiers: the probe filters,
 * computes keys and aggregates into thread-local state 0; process, machine and cluster merge it by
 * the operators of its columns, so nothing else has to be planned for them.
 */
#ifndef FAY_QUERY_PLAN_PLAN_H
#define FAY_QUERY_PLAN_PLAN_H

#include "fay/query.h"
#include "fay/verify.h"
#include "query/values/values.h"

#define FAY_TABLE_MAX_BYTES (256u << 10) /* of a table in LOCAL */
#define FAY_TABLE_MAX_ROWS 4096u
#define FAY_ROW_MAX_BYTES 4096u
/* Tables by bucket begin with a part of their rows, have twice as many after each time that they
 * ran full, and may become larger than others. */
#define FAY_TABLE_GROWS_FROM 4u
#define FAY_TABLE_GROWS_TO 8u
#define FAY_TABLE_STEPS 8u /* rows looked at for one key before the table is flushed */
#define FAY_PLAN_TEXTS 8u  /* strings that are read whole, of one event */
#define FAY_PROBE_SYMBOL "probe0"
#define FAY_FAILURE_SYMBOL "probe1" /* of calls that end by an exception */

/* One column of state 0, in row order: keys, then values. */
struct fay_layout_column {
	const char *name;
	const struct fay_expr *expr; /* a key's expression, or an EXPR_AGGREGATE */
	uint32_t offset, size;
};

/* plan->private_plan */
struct fay_plan_private {
	struct fay_query *query;
	struct fay_checked checked;
	unsigned number;                /* of groupings before this stage's own */
	const struct fay_key *grouping; /* keys that the query names */
	const struct fay_root_op *root; /* what is done with the merged rows of this stage */
	/* the stage that groups the rows of this one once more, at the root; NULL: these are the
	 * result */
	struct fay_plan_private *next;
	enum fay_state_kind kind;
	uint32_t keys, values;
	struct fay_layout_column columns[FAY_QUERY_MAX_COLUMNS * 2];
	uint32_t rows, row_size;
	uint32_t first_rows; /* a table uses so many at first, and `rows` when it has grown */
	/* DOMAIN_FILE: from a saved row into an event. */
	struct fay_saved_move {
		uint32_t from, to, size; /* bytes */
		bool text;               /* a string: the event has a place that it is read from */
	} moves[FAY_SAVED_COLUMNS];
	uint32_t move_count;
	/* whether the call ended by an exception, or of the kernel's by an error; NULL: not known
	 * */
	const struct fay_saved_column *failed;
	bool failed_alone;    /* ... and what it returned is not known */
	uint32_t state_index; /* which of the image's states the probe fills */
	/* Strings that are read whole: by number, each has a buffer of its own. */
	struct fay_plan_text {
		const struct fay_expr *expr;
		bool shown; /* a row has it */
	} texts[FAY_PLAN_TEXTS];
	uint32_t text_count;
	uint32_t texts_at; /* in LOCAL: struct fay_text_scratch, then the buffers */
	uint32_t probe_count;
	/* What is before this stage; all NULL: it is in the probe. */
	struct fay_plan_join *join; /* the sides of a join, of which this stage gets the pairs */
	/* windows of so many events: where this stage gets them from */
	struct fay_plan_events *events;
	/* its histograms or quantiles are kept by bucket: where this stage gets them from */
	struct fay_plan_buckets *buckets;
	/* The root stage. */
	/* of `columns`, to read merged rows with */
	struct fay_schema_column schema[FAY_QUERY_MAX_COLUMNS * 2];
	uint32_t *column_of; /* by expression id: column + 1, or 0 */
	const struct fay_expr *computed[FAY_QUERY_MAX_COLUMNS];
	uint32_t computed_count;
	/* What plan->spec and plan->columns point to. */
	struct fay_spec_probe probes[3];
	struct fay_spec_state state, image_states[2];
	struct fay_schema_state schema_state; /* the same for fay_plan_schema() */
	struct fay_spec_column spec_columns[FAY_QUERY_MAX_COLUMNS * 2 + 1];
	struct fay_plan_column plan_columns[FAY_QUERY_MAX_COLUMNS];
};

/* Windows of so many events: the stage in the probe, which hands on what a window needs of each
 * event, and how an event with its window's number before it is read. */
struct fay_plan_events {
	struct fay_plan_private *source;
	struct fay_schema_column columns[FAY_QUERY_MAX_COLUMNS + 1];
	uint32_t *column_of; /* by expression id: column + 1, or 0 */
};

/* Bytes. A larger value is not kept once for each bucket; and so many take the place of quantiles
 * in a group's row. */
#define FAY_BUCKETS_VALUE_MAX 16u

/* Histograms and quantiles by group: the stage in the probe, whose rows have one key more, the
 * bucket that a value falls into, and what the rows that are shown are made of. */
struct fay_plan_buckets {
	struct fay_plan_private *source;
	enum fay_merge sketch; /* whose buckets they are, HIST_LOG2 or QUANTILE */
	/* by value of the stage: the column of `source` with the same aggregate; 0: none, it is
	 * made of the buckets */
	uint32_t from[FAY_QUERY_MAX_COLUMNS];
	uint32_t key, count; /* columns of `source`: the bucket, and how many events a row is of */
};

#define FAY_JOIN_SINCE 4u

/* The sources of a join: what their probes hand on, and how pairs of it are read: the sources' rows
 * one behind the other. */
struct fay_plan_join {
	struct fay_plan_private *sides[FAY_JOIN_SOURCES];
	/* Of the first join, by the side of a row: the least times of the other side's rows with
	 * which it makes pairs for which the conditions may hold; EXPR_SIDEs. */
	const struct fay_expr *since[2][FAY_JOIN_SINCE];
	uint32_t since_count[2];
	struct fay_filter *settles; /* wants_unpaired: which pair must be missing */
	struct fay_schema_column columns[FAY_QUERY_MAX_COLUMNS * FAY_JOIN_SOURCES];
	uint32_t *column_of; /* by expression id: column + 1, or 0 */
	/* A pair that is joined once more: its time, its keys, the rows that it is of. `filters`:
	 * what is known to hold for it. */
	struct fay_plan_middle {
		struct fay_layout_column keys[FAY_JOIN_KEYS];
		uint32_t key_count, header; /* bytes before the rows */
		struct fay_filter *filters;
	} middle;
	/* What plan->spec and plan->kernel_spec point to. */
	struct fay_spec_probe probes[2 * FAY_JOIN_SOURCES], kernel_probes[2 * FAY_JOIN_SOURCES];
	struct fay_spec_state states[FAY_JOIN_SOURCES];
	struct fay_spec_column spec_columns[FAY_QUERY_MAX_COLUMNS * FAY_JOIN_SOURCES];
	/* What fay_plan_sources_schema() points to. */
	struct fay_schema_state schema_states[FAY_JOIN_SOURCES];
	struct fay_schema_column schema_columns[FAY_QUERY_MAX_COLUMNS * FAY_JOIN_SOURCES];
};

static inline const struct fay_plan_private *fay_plan_private(const struct fay_plan *plan)
{
	return plan->private_plan;
}

/* The one state that the stage fills, for an aggregator; refers to the stage. */
void fay_stage_schema(struct fay_plan_private *p, struct fay_schema *schema);

/* The stage whose rows are the result. */
static inline struct fay_plan_private *fay_plan_last(const struct fay_plan *plan)
{
	struct fay_plan_private *p = plan->private_plan;
	while (p->next)
		p = p->next;
	return p;
}

/* Where the probe's own memory for walking stacks, or for kept calls, lies in LOCAL, behind the
 * state. */
static inline uint32_t fay_plan_scratch_offset(const struct fay_plan_private *p)
{
	return (p->state.size + 7) & ~7u;
}
/* In the global state: where the records of calls' beginnings are (query/runtime/compute.h). */
uint32_t fay_plan_calls_offset(const struct fay_plan_private *p);

/* Number of a string among those that are read whole; -1: its first 15 bytes are enough. */
static inline int fay_plan_text_number(const struct fay_plan_private *p,
				       const struct fay_expr *expr)
{
	for (uint32_t i = 0; i < p->text_count; i++)
		if (p->texts[i].expr == expr)
			return (int)i;
	return -1;
}

static inline enum fay_kernel_kind fay_kernel_kind_of(enum fay_source source)
{
	return source == SOURCE_SYSCALL      ? FAY_KERNEL_SYSCALLS
	       : source == SOURCE_TRACEPOINT ? FAY_KERNEL_TRACEPOINTS
	       : source == SOURCE_TIMER      ? FAY_KERNEL_TIMER
					     : FAY_KERNEL_FUNCTIONS;
}

/* The stage of the rows that fay_plan_finish() gets. */
static inline const struct fay_plan_private *fay_plan_merged(const struct fay_plan *plan)
{
	const struct fay_plan_private *p = fay_plan_private(plan);
	return p->buckets ? p->buckets->source : p;
}

/* The stage whose probe reads a source. Of one source: 0. */
static inline const struct fay_plan_private *fay_plan_stage(const struct fay_plan *plan,
							    unsigned side)
{
	const struct fay_plan_private *p = fay_plan_private(plan);
	return p->join     ? p->join->sides[side]
	       : p->events ? p->events->source
			   : fay_plan_merged(plan);
}

#endif
