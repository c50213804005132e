/* SPDX-License-Identifier: MIT */
/* A query over a saved trace, run as `fay trace` runs it: planned anew for each file, its verified
 * probes over the file's events, their rows through the aggregator. */
#ifndef FAY_TESTS_QUERY_SAVED_QUESTION_H
#define FAY_TESTS_QUERY_SAVED_QUESTION_H

#include "saved_trace.h"

struct saved_question {
	const char *text;
	struct fay_plan *plan; /* for the file as it was at the last run */
	bool verified;         /* once: files that are asked have the same columns */
	struct fay_verdict verdict;
	uint8_t *rows; /* of events, as they came */
	size_t row_count, row_size;
};

/* `text` must live as long as the question. */
void saved_question_init(struct saved_question *q, const char *text);
void saved_question_deinit(struct saved_question *q);
/* *merged: as check_answer() takes it; the caller's. false: there is no event of a function that
 * the source names. */
bool saved_question_ask(struct saved_question *q, struct fay_result *merged);

#endif
