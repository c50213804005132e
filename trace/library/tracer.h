/* SPDX-License-Identifier: MIT */
/* The room of libfay_trace: fay/trace.h over trace/session. */
#ifndef FAY_TRACE_TRACER_H
#define FAY_TRACE_TRACER_H

#include "fay/trace.h"
#include "trace/session/session.h"

struct fay_tracer {
	struct trace trace;
	struct fay_tracer_options options;
	int timer; /* timerfd(2) */
	bool begun, finished;
	uint64_t pictures, rows;
	/* of the row that is handed on: cells, items, and texts, which stand where they are */
	struct fay_cell *cells;
	struct fay_cell_item *items;
	size_t cell_room, item_count, item_room;
	char *texts;
	size_t text_size, text_room;
	bool no_memory; /* some row was left out */
	/* a message that is not whole yet */
	char line[2048];
	size_t line_size;
};

/* As fay_tracer_step(), but waits for as long as nothing is due, no program wants anything, and the
 * word, which is woken by futex(2), is `seen`. */
int fay_tracer_wait(struct fay_tracer *tracer, const uint32_t *word, uint32_t seen,
		    struct fay_error *error);

/* cells.c: hands the row on as values. */
void fay_tracer_row(struct fay_tracer *tracer, const struct fay_view *view, const uint8_t *row,
		    uint64_t picture, bool final, bool revised);
void fay_tracer_row_deinit(struct fay_tracer *tracer);

#endif
