/* SPDX-License-Identifier: MIT */
#include "saved_question.h"

#include "fay/aggregator.h"
#include "fay/loader.h"

void saved_question_init(struct saved_question *q, const char *text)
{
	memset(q, 0, sizeof(*q));
	q->text = text;
}

void saved_question_deinit(struct saved_question *q)
{
	fay_plan_destroy(q->plan);
	if (q->verified)
		fay_verdict_deinit(&q->verdict);
	free(q->rows);
}

static bool plan(struct saved_question *q)
{
	struct fay_error error = { 0 };
	fay_plan_destroy(q->plan);
	q->plan = NULL;
	if (!fay_query_plan(q->text, NOW, &q->plan, &error))
		return true;
	if (error.code != FAY_E_REFUSED || !strstr(error.message, "no saved event"))
		fail_msg("%s\n%s", q->text, error.message);
	return false;
}

static void keep_row(void *context, uint32_t state, const uint8_t *row)
{
	struct saved_question *q = context;
	assert_int_equal(state, 0);
	q->rows = realloc(q->rows, (q->row_count + 1) * q->row_size);
	assert_non_null(q->rows);
	memcpy(q->rows + q->row_count++ * q->row_size, row, q->row_size);
}

static void take_row(void *context, uint32_t state, const uint8_t *row)
{
	struct fay_error error = { 0 };
	assert_int_equal(fay_aggregator_take_row(context, state, row, &error), 0);
}

static void feed(const struct saved_question *q, struct fay_replay *replay)
{
	struct fay_error error = { 0 };
	struct fay_event event;
	uint32_t probe;
	for (const uint8_t *row; (row = fay_saved_next(q->plan->saved, &error));)
		if (fay_plan_saved_event(q->plan, 0, row, &event, &probe))
			fay_replay_event(replay, probe, &event);
	if (error.code)
		fail_msg("%s\n%s", q->text, error.message);
	fay_replay_end(replay);
}

/* Rows of events stand for themselves. */
static void take_rows(const struct saved_question *q, struct fay_result *merged)
{
	fay_result_deinit(merged);
	*merged =
		(struct fay_result){ .row_size = (uint32_t)q->row_size, .row_count = q->row_count };
	merged->rows = malloc(q->row_count * q->row_size + 1);
	assert_non_null(merged->rows);
	if (q->row_count)
		memcpy(merged->rows, q->rows, q->row_count * q->row_size);
}

bool saved_question_ask(struct saved_question *q, struct fay_result *merged)
{
	struct fay_aggregator *aggregator;
	struct fay_replay *replay;
	struct fay_error error = { 0 };
	if (!plan(q))
		return false;
	if (!q->verified)
		saved_trace_verify(q->plan, &q->verdict);
	q->verified = true;
	q->row_size = q->verdict.schema.states[0].row_size;
	q->row_count = 0;
	assert_int_equal(fay_aggregator_create(&q->verdict.schema, &aggregator, &error), 0);
	fay_aggregator_on_row(aggregator, keep_row, q);
	assert_int_equal(
		fay_replay_create(&q->verdict, take_row, NULL, aggregator, &replay, &error), 0);
	feed(q, replay);
	assert_int_equal(fay_aggregator_snapshot(aggregator, 0, merged, &error), 0);
	if (q->verdict.schema.states[0].kind == FAY_STATE_STREAM)
		take_rows(q, merged);
	fay_replay_destroy(replay);
	fay_aggregator_destroy(aggregator);
	return true;
}
