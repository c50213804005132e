/* SPDX-License-Identifier: MIT */
/*
 * Rows of several producers in the order of their times. A row is held back until no earlier one is
 * expected, in bounded memory. Nothing is dropped: what comes later than that, or has to go for
 * want of room before its turn, leaves the order, and is counted.
 */
#ifndef FAY_ORDER_H
#define FAY_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "fay/error.h"

/* of memory for rows that are held back, unless something else is said */
#define FAY_ORDER_BYTES (UINT64_C(256) << 20)
/* ns: how long after an event's time its row is waited for; a thread may be taken off its processor
 * in between */
#define FAY_ORDER_LATENESS UINT64_C(200000000)

struct fay_order_counts {
	uint64_t rows; /* that were handed on */
	uint64_t late; /* of these, those that followed a row of a later time */
	uint64_t kept; /* rows that are in memory */
};

struct fay_order;
/* The row is valid until the function returns. */
typedef void fay_order_function(void *context, const uint8_t *row);

/* Rows of `row_size` bytes (a multiple of 8, at most 4096), whose time is 8 of them. `bytes` 0:
 * FAY_ORDER_BYTES. */
int fay_order_create(uint32_t row_size, uint32_t time_offset, uint64_t bytes,
		     fay_order_function *function, void *context, struct fay_order **order,
		     struct fay_error *error);
void fay_order_destroy(struct fay_order *order);
/* Copies the row. If there is no room, the earliest one is handed on. */
void fay_order_add(struct fay_order *order, const uint8_t *row);
/* No row of a time below `horizon` (ns) is expected any more: those that are there are handed on,
 * the earliest first; of equal times, as they came. UINT64_MAX: all. */
void fay_order_advance(struct fay_order *order, uint64_t horizon);
void fay_order_counts(const struct fay_order *order, struct fay_order_counts *counts);

#endif
