/* SPDX-License-Identifier: MIT */
/*
 * Partial aggregates that travel between machines: what changed between two snapshots, and merging
 * it elsewhere. docs/cluster.md, "Windows and sequence numbers", says what is told of each
 * operator.
 */
#ifndef FAY_PARTIAL_H
#define FAY_PARTIAL_H

#include "fay/aggregator.h"

/* Whether some column cannot be told as a difference (TOP, SAMPLE): changed rows then travel whole,
 * and replace. */
bool fay_schema_replaces(const struct fay_schema *schema);

/*
 * Remembers the last snapshot of each state. Merging all changes ever taken, in any order, gives
 * the last snapshot; where the schema replaces, putting each changed row in place of the one before
 * does.
 */
struct fay_changes;
/* The schema must outlive it. `limit`: bytes of remembered rows. */
int fay_changes_create(const struct fay_schema *schema, uint64_t limit,
		       struct fay_changes **changes, struct fay_error *error);
void fay_changes_destroy(struct fay_changes *changes);
/* `now`: a snapshot of its state. *out: the rows that changed, sorted as `now`'s; to be released
 * with fay_result_deinit(). FAY_E_LIMIT: nothing was remembered of some rows. */
int fay_changes_take(struct fay_changes *changes, const struct fay_result *now,
		     struct fay_result *out, struct fay_error *error);

/* Rows that are remembered although the last snapshot had them not: it was torn, and they may come
 * back. Other rows that were forgotten are not remembered. */
uint64_t fay_changes_missing(const struct fay_changes *changes);

/*
 * As fay_aggregator_forget(), for an aggregator whose snapshot of that state was just given to
 * fay_changes_take(), before anything else is drained: what is counted later for such a row is told
 * as what it is, a change. Where the schema replaces, *final are the rows that were forgotten, as
 * they were told; what is told of them later does not replace them any more, but is to be merged
 * with them: fay_aggregator_settle(). To be released with fay_result_deinit(); else it has no rows.
 */
void fay_changes_forget(struct fay_changes *changes, struct fay_aggregator *aggregator,
			uint32_t state, uint64_t below, struct fay_result *final);

/* Merges `count` rows of a state, which need not be aligned, as if they had been drained; a
 * stream's go to the on_row function. */
int fay_aggregator_merge(struct fay_aggregator *aggregator, uint32_t state, const uint8_t *rows,
			 size_t count, struct fay_error *error);
/* As fay_aggregator_merge(), but a row takes the place of the one with its key. */
int fay_aggregator_replace(struct fay_aggregator *aggregator, uint32_t state, const uint8_t *rows,
			   size_t count, struct fay_error *error);
/* Rows that are final are merged into `settled`; in `replaced`, where they were put, the identity
 * takes their place. The rows of a state are what both have, merged. */
int fay_aggregator_settle(struct fay_aggregator *settled, struct fay_aggregator *replaced,
			  uint32_t state, const uint8_t *rows, size_t count,
			  struct fay_error *error);
/* Merges all rows that were drained into or merged in `from`; not its losses. Same schema. */
int fay_aggregator_merge_all(struct fay_aggregator *to, const struct fay_aggregator *from,
			     struct fay_error *error);
/* Adds losses and threads of elsewhere to every state's result. */
void fay_aggregator_account(struct fay_aggregator *aggregator, const struct fay_result *losses);
/* Bytes of rows that were drained or merged in, over all states. */
uint64_t fay_aggregator_row_bytes(const struct fay_aggregator *aggregator);
/* FAY_E_LIMIT beyond this many bytes of rows and indices, instead of the built-in limit. */
void fay_aggregator_set_limit(struct fay_aggregator *aggregator, uint64_t bytes);

#endif
