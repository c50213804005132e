/* SPDX-License-Identifier: MIT */
/*
 * Joining two streams of rows while they run: pairs of a left and a right row whose keys are equal
 * and whose times differ by at most so much.
 *
 * Both sides are kept in bounded memory, each found by its key (a symmetric hash join: Wilschut and
 * Apers, PDIS 1991), so that a pair is there as soon as its later row comes. Rows may come in any
 * order of time. What is dropped before its time is counted: without such rows the pairs are
 * exactly those of a join of the whole streams.
 */
#ifndef FAY_JOIN_H
#define FAY_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fay/error.h"

#define FAY_JOIN_KEYS 16u
#define FAY_JOIN_SOURCES 3u                 /* of a query: pairs are joined once more */
#define FAY_JOIN_BYTES (UINT64_C(64) << 20) /* that one side keeps, unless something else is said */

struct fay_join_column {
	uint32_t offset, size; /* bytes; size is a multiple of 8 */
};

struct fay_join_options {
	struct {
		uint32_t row_size, time_offset; /* bytes; the time is 8 of them */
		struct fay_join_column keys[FAY_JOIN_KEYS];
	} sides[2];
	uint32_t key_count; /* a key has the same size on both sides */
	uint64_t within;    /* ns */
	uint64_t bytes;     /* of memory for the rows of one side; 0: FAY_JOIN_BYTES */
};

struct fay_join_counts {
	uint64_t rows[2]; /* that came, left and right */
	uint64_t pairs;
	/* dropped for want of room though rows to pair them with might still have come */
	uint64_t evicted[2];
	/* came after it was said that no such row comes any more; joined with what was still there
	 * */
	uint64_t late[2];
	uint64_t kept[2]; /* rows that are in memory */
};

struct fay_join;
/* The rows are valid until the function returns. `number`: of the left row, in the order in which
 * these came, from 0. true: the left row is settled, and makes no more pairs. */
typedef bool fay_join_pair_function(void *context, uint64_t number, const uint8_t *left,
				    const uint8_t *right);
/* Of a left row that no pair has settled, once no more can. */
typedef void fay_join_alone_function(void *context, uint64_t number, const uint8_t *left);

/* `alone` may be NULL. */
int fay_join_create(const struct fay_join_options *options, fay_join_pair_function *function,
		    fay_join_alone_function *alone, void *context, struct fay_join **join,
		    struct fay_error *error);
void fay_join_destroy(struct fay_join *join);
/*
 * side: 0 left, 1 right. Calls the function for each pair that the row makes with rows that came
 * before; `since`: none with those of the other side whose time (ns) is below it is wanted. Returns
 * the row's number among those of its side.
 */
uint64_t fay_join_add(struct fay_join *join, unsigned side, const uint8_t *row, uint64_t since);
/* No row of a time below `horizon` (ns) comes any more: rows that can make no pair are dropped.
 * UINT64_MAX: no row at all. */
void fay_join_advance(struct fay_join *join, uint64_t horizon);
void fay_join_counts(const struct fay_join *join, struct fay_join_counts *counts);

#endif
