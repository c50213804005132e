/* SPDX-License-Identifier: MIT */
/*
 * The aggregator: merges the partial aggregates of all threads' slots, while the target runs and at
 * the end.
 *
 * It depends on the state descriptors (struct fay_schema) and the shared memory's layout only. The
 * target is not trusted: every length and offset read from shared memory is checked, and a target
 * that scribbles over it can only spoil its own result.
 */
#ifndef FAY_AGGREGATOR_H
#define FAY_AGGREGATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fay/error.h"
#include "fay/shm.h"
#include "fay/text.h"
#include "fay/verify.h"

/*
 * Columns that results have but images have not: computed where the query was asked. Two words: 1
 * if there is a value, and the value.
 */
#define FAY_RESULT_COMPUTED ((enum fay_merge)0x100)
#define FAY_RESULT_REAL ((enum fay_column_type)0x100) /* a double */
#define FAY_RESULT_COMPUTED_SIZE 16u

struct fay_aggregator;

/* The schema must outlive the aggregator. */
int fay_aggregator_create(const struct fay_schema *schema, struct fay_aggregator **aggregator,
			  struct fay_error *error);
void fay_aggregator_destroy(struct fay_aggregator *aggregator);

/* Adds a process's shared memory as a source; it must stay mapped until the aggregator is
 * destroyed. only_pid: count only slots of that pid (0: all). */
int fay_aggregator_add(struct fay_aggregator *aggregator, struct fay_shm_control *shm, size_t size,
		       uint32_t only_pid, struct fay_error *error);

/* Takes over all that a source holds and forgets it: nobody writes it any more, and it may be
 * unmapped afterwards. Its losses stay counted. */
int fay_aggregator_retire(struct fay_aggregator *aggregator, const struct fay_shm_control *shm,
			  struct fay_error *error);

/* Called for each streamed row (FAY_STATE_STREAM), in each thread's order. */
typedef void fay_row_function(void *context, uint32_t state, const uint8_t *row);
void fay_aggregator_on_row(struct fay_aggregator *aggregator, fay_row_function *function,
			   void *context);

/* Rows of that stream are pieces of texts, which go to `texts`; the next state's cell counts texts
 * that were not sent. */
void fay_aggregator_set_texts(struct fay_aggregator *aggregator, uint32_t state,
			      struct fay_texts *texts);
/* Of texts, how many were not sent for want of room: as often as it was tried. They are among the
 * lost events of a snapshot, which they are not. */
int fay_aggregator_texts_lost(struct fay_aggregator *aggregator, uint64_t *lost,
			      struct fay_error *error);

/* A row that came by another way, of a table or a stream: merged, or given to on_row. FAY_E_LIMIT:
 * there is no room for it. */
int fay_aggregator_take_row(struct fay_aggregator *aggregator, uint32_t state, const uint8_t *row,
			    struct fay_error *error);

/*
 * Drains all spill rings into the aggregator. Call every few milliseconds. Returns the bytes
 * drained, or -1 with error set: a corrupt ring (FAY_E_REFUSED, once a slot) or too many rows
 * (FAY_E_LIMIT, once; nothing is drained after that). Snapshots work in either case.
 */
int64_t fay_aggregator_poll(struct fay_aggregator *aggregator, struct fay_error *error);
/* Whether a producer has asked for draining since the last poll: its ring is half full. Reads one
 * word of each source, and nothing of its threads. */
bool fay_aggregator_is_asked(const struct fay_aggregator *aggregator);
/*
 * Waits until a producer asks for draining or `timeout_ms` has passed; or, if `also` is not NULL,
 * until that word, which another process may write and wake (futex(2)), is not `seen` any more.
 */
void fay_aggregator_wait(struct fay_aggregator *aggregator, int timeout_ms, const uint32_t *also,
			 uint32_t seen);

/* Rows of one state: everything drained so far merged with what lies in the live cells and tables.
 * Sorted by key. */
struct fay_result {
	uint32_t state;
	uint32_t row_size; /* as in the schema; column offsets are valid in each row */
	size_t row_count;
	uint8_t *rows; /* row_count * row_size bytes */
	uint64_t events_lost_reentrant, events_lost_full, events_lost_no_slot;
	uint64_t calls_lost; /* calls whose end is no event: there was no room for their record */
	/* calls that ended in a jump to a function whose end is not seen: events without a return
	 * value */
	uint64_t calls_jumped;
	uint32_t threads;   /* slots that contributed */
	uint64_t live_rows; /* rows that lay in the threads' cells and tables at that moment */
	/* a thread's table was handed on faster than it could be read: rows that an earlier
	 * snapshot had may be missing, or smaller */
	bool torn;
};
int fay_aggregator_snapshot(struct fay_aggregator *aggregator, uint32_t state,
			    struct fay_result *result, struct fay_error *error);
void fay_result_deinit(struct fay_result *result);
/* Snapshots are taken again and again from now on, most with the groups of the one before: what
 * they share is kept, which takes up to twice their memory. False: no memory for that; they are
 * taken all the same. */
bool fay_aggregator_keep_pictures(struct fay_aggregator *aggregator);
/* What came in so far, of one state: rows that threads handed on, or that were given to
 * fay_aggregator_take_row(), and the bytes of their records. */
struct fay_traffic {
	uint64_t rows, bytes;
};
struct fay_traffic fay_aggregator_traffic(const struct fay_aggregator *aggregator, uint32_t state);
/*
 * Rows whose first key, a number, is from `from` to below `to`, with that key set to `from`, and
 * equal ones merged: panes put together to a window. `all`: of fay_aggregator_snapshot(), in the
 * order of the keys. *window has rows of its own; its losses are those of `all`.
 */
int fay_result_window(const struct fay_schema *schema, const struct fay_result *all, uint64_t from,
		      uint64_t to, struct fay_result *window, struct fay_error *error);
/* The number of the first of those rows whose first key is `from` or more; their count: there is
 * none. */
size_t fay_result_row_from(const struct fay_schema *schema, const struct fay_result *all,
			   uint64_t from);
/*
 * Forgets rows drained so far whose first key, of 8 bytes, is below `below`. Such rows that still
 * lie in threads' tables will be drained or seen later all the same. Few such rows, or memory
 * shortage: nothing is forgotten.
 */
void fay_aggregator_forget(struct fay_aggregator *aggregator, uint32_t state, uint64_t below);
/* The same; returns the sum of the words that lie at `count_offset`, 8 bytes within a row, of what
 * was forgotten. */
uint64_t fay_aggregator_forget_counted(struct fay_aggregator *aggregator, uint32_t state,
				       uint64_t below, uint32_t count_offset);

/*
 * One value decoded from its partial: for COUNT..MAX, DISTINCT (an estimate), FIRST and LAST an
 * integer, for AVERAGE a double; QUANTILE, TOP and SAMPLE are lists, see fay_value_item(). false if
 * there is no value yet (min of nothing).
 */
struct fay_value {
	enum {
		FAY_VALUE_I64,
		FAY_VALUE_U64,
		FAY_VALUE_DOUBLE,
		FAY_VALUE_STRING,
		FAY_VALUE_HISTOGRAM,
		FAY_VALUE_LIST
	} kind;
	union {
		int64_t i64;
		uint64_t u64;
		double d;
		struct {
			const char *bytes;
			size_t size;
		} string; /* not NUL-terminated if full */
		struct {
			const uint64_t *buckets;
			size_t count;
		} histogram;
		struct {
			size_t count;
		} list;
	};
};
bool fay_value_decode(const struct fay_schema_column *column, const uint8_t *row,
		      struct fay_value *value);

/*
 * Item `index` of a list. QUANTILE: a label ("p50", "max") and a value. TOP: a key and its count,
 * the largest first. SAMPLE: a key. false: there is none. A key is of the column's type.
 */
struct fay_item {
	const char *label;
	double value;
	uint64_t key, count;
};
bool fay_value_item(const struct fay_schema_column *column, const uint8_t *row, size_t index,
		    struct fay_item *item);
/* A QUANTILE column's estimate for 0 <= q <= 1, within 1/32 of the exact one; NAN of nothing. */
double fay_value_quantile(const struct fay_schema_column *column, const uint8_t *row, double q);
/* A TOP column: values fed in, and by how much a count may be too low. */
void fay_value_top_bound(const struct fay_schema_column *column, const uint8_t *row,
			 uint64_t *total, uint64_t *error);

/* The merge operators' table: to = to + from, for one value column. */
void fay_merge_column(const struct fay_schema_column *column, uint8_t *to_row,
		      const uint8_t *from_row);

#endif
