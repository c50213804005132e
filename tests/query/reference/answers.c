/* SPDX-License-Identifier: MIT */
#include "answers.h"

#include "aggregator/streams/order.h"

static void check_row(const struct asked *asked, const struct fay_schema *schema,
		      const struct fay_result *result, const struct row *want, size_t r)
{
	const struct fay_plan *plan = asked->plan;
	uint32_t columns = plan->column_count - (asked->shape->kind == CLUSTERS);
	for (uint32_t c = 0; c < columns; c++) {
		struct cell got = cell_of(plan, schema, result->rows + r * result->row_size, c);
		if (!equal_cells(&want->cells[c], &got))
			fail_msg("%s\nof %u events, row %zu, %s: %s, not %s", asked->text,
				 asked->stream->count, r, plan->columns[c].name,
				 describe_cell(&got), describe_cell(&want->cells[c]));
	}
}

/* The rows' order as the result's own cells have it: below 0 if row `r` is before the next one.
 * `keys`: how many columns tell rows apart. */
static int compare_next(const struct asked *asked, const struct fay_schema *schema,
			const struct fay_result *result, size_t r, unsigned keys)
{
	const struct shape *s = asked->shape;
	unsigned before = has_windows(s);
	for (unsigned i = 0; i < s->order_count + keys; i++) {
		unsigned column =
			before + (i < s->order_count ? s->orders[i].column : i - s->order_count);
		struct cell x =
			cell_of(asked->plan, schema, result->rows + r * result->row_size, column);
		struct cell y = cell_of(asked->plan, schema,
					result->rows + (r + 1) * result->row_size, column);
		bool is_word = column - before < s->key_count && x.kind == INTEGER &&
			       s->keys[column - before].type != INT &&
			       s->keys[column - before].type != BOOL;
		if (is_word)
			x.kind = WORD;
		int c = compare_cells(&x, &y);
		if (c)
			return i < s->order_count && s->orders[i].descending ? -c : c;
	}
	return 0;
}

/* The row of the reference that has the keys of the result's row `r`. */
static const struct row *find_row(const struct asked *asked, const struct fay_schema *schema,
				  const struct fay_result *result, const struct table *want,
				  size_t r)
{
	unsigned keys = has_windows(asked->shape) + asked->shape->key_count;
	for (size_t w = 0; w < want->count; w++) {
		bool same = true;
		for (unsigned c = 0; c < keys && same; c++) {
			struct cell got = cell_of(asked->plan, schema,
						  result->rows + r * result->row_size, c);
			same = equal_cells(&want->rows[w].cells[c], &got);
		}
		if (same)
			return &want->rows[w];
	}
	fail_msg("%s\nof %u events, row %zu: there is no such group", asked->text,
		 asked->stream->count, r);
	return NULL;
}

/* Rows that are ordered by estimates: each is there once, with its values, and they are in the
 * order of what they show. */
static void check_loosely(const struct asked *asked, const struct fay_schema *schema,
			  const struct fay_result *result, const struct table *want)
{
	for (size_t r = 0; r < want->count; r++)
		check_row(asked, schema, result, find_row(asked, schema, result, want, r), r);
	for (size_t r = 0; r + 1 < want->count; r++)
		if (compare_next(asked, schema, result, r, asked->shape->key_count) >= 0)
			fail_msg("%s\nof %u events: rows %zu and %zu are not in order", asked->text,
				 asked->stream->count, r, r + 1);
}

static void check_rows(const struct asked *asked, const struct fay_schema *schema,
		       const struct fay_result *result, const struct table *want)
{
	uint64_t clusters[MAX_EVENTS];
	const char *wrong = NULL;
	if (result->row_count != want->count)
		fail_msg("%s\nof %u events: %zu rows, not %zu", asked->text, asked->stream->count,
			 result->row_count, want->count);
	if (asked->shape->loosely) {
		check_loosely(asked, schema, result, want);
		return;
	}
	for (size_t r = 0; r < want->count; r++) {
		check_row(asked, schema, result, &want->rows[r], r);
		if (asked->shape->kind == CLUSTERS)
			clusters[r] = (uint64_t)cell_of(asked->plan, schema,
							result->rows + r * result->row_size,
							asked->plan->column_count - 1)
					      .integer;
	}
	if (asked->shape->kind == CLUSTERS)
		wrong = check_clusters(asked->shape, want, clusters);
	if (wrong)
		fail_msg("%s\nof %u events: %s", asked->text, asked->stream->count, wrong);
}

static void finish_and_check(const struct asked *asked, const struct fay_result *rows,
			     const struct table *want)
{
	struct fay_result finished;
	struct fay_schema shown;
	struct fay_error error = { 0 };
	if (fay_plan_finish(asked->plan, rows, NULL, NULL, &finished, &error))
		fail_msg("%s: %s", asked->text, error.message);
	fay_plan_result_schema(asked->plan, &shown);
	check_rows(asked, &shown, &finished, want);
	fay_result_deinit(&finished);
}

/* Rows that are shown as they come: the plan says which part of them. */
static void cut(const struct fay_plan *plan, struct fay_result *rows)
{
	size_t skip = plan->first_row < rows->row_count ? (size_t)plan->first_row : rows->row_count;
	memmove(rows->rows, rows->rows + skip * rows->row_size,
		(rows->row_count - skip) * rows->row_size);
	rows->row_count -= skip;
	if (rows->row_count > plan->row_limit)
		rows->row_count = (size_t)plan->row_limit;
}

static void check_whole(const struct asked *asked, struct fay_result *merged)
{
	static struct table want;
	struct fay_schema shown;
	refer(asked->shape, asked->stream, 0, &want);
	if (asked->plan->streams && !asked->plan->collects)
		cut(asked->plan, merged);
	fay_plan_result_schema(asked->plan, &shown);
	if (asked->plan->finishes)
		finish_and_check(asked, merged, &want);
	else
		check_rows(asked, &shown, merged, &want);
}

static void check_windows(const struct asked *asked, const struct fay_result *merged)
{
	static struct table want;
	const struct shape *s = asked->shape;
	struct fay_schema schema;
	struct fay_error error = { 0 };
	fay_plan_schema(asked->plan, &schema);
	for (uint64_t end = NOW - NOW % s->step + s->step; end < NOW + SPAN + s->width + s->step;
	     end += s->step) {
		struct fay_result window;
		refer(s, asked->stream, end - s->width, &want);
		assert_int_equal(
			fay_plan_window(asked->plan, &schema, merged, end, &window, &error), 0);
		finish_and_check(asked, &window, &want);
		fay_result_deinit(&window);
	}
}

/* Windows of so many events, filled as fay's aggregator does. */
struct counting {
	const struct asked *asked;
	const struct fay_schema *schema;
	struct fay_aggregator *windows;
	uint64_t number;
	unsigned events;
};

static void close_window(struct counting *c)
{
	static struct table want;
	const struct asked *asked = c->asked;
	struct fay_result all, rows;
	struct fay_error error = { 0 };
	refer(asked->shape, asked->stream, c->number++, &want);
	assert_int_equal(fay_aggregator_snapshot(c->windows, 0, &all, &error), 0);
	assert_int_equal(fay_plan_window(asked->plan, c->schema, &all, c->number, &rows, &error),
			 0);
	finish_and_check(asked, &rows, &want);
	fay_result_deinit(&rows);
	fay_result_deinit(&all);
	fay_aggregator_forget(c->windows, 0, c->number);
	c->events = 0;
}

static void count_event(void *context, const uint8_t *event)
{
	struct counting *c = context;
	const struct fay_plan *plan = c->asked->plan;
	struct fay_error error = { 0 };
	uint8_t row[4096];
	if (fay_plan_event(plan, c->number, event, row))
		assert_int_equal(fay_aggregator_take_row(c->windows, 0, row, &error), 0);
	if (++c->events == plan->window_events)
		close_window(c);
}

static void check_counted(const struct asked *asked, const struct fay_result *rows)
{
	const struct fay_plan *plan = asked->plan;
	struct fay_schema schema;
	struct counting c = { .asked = asked, .schema = &schema };
	struct fay_order *order;
	struct fay_error error = { 0 };
	fay_plan_schema(plan, &schema);
	assert_int_equal(rows->row_size, plan->event_size);
	assert_int_equal(fay_aggregator_create(&schema, &c.windows, &error), 0);
	assert_int_equal(fay_order_create(plan->event_size, plan->event_time_offset, 0, count_event,
					  &c, &order, &error),
			 0);
	for (size_t r = 0; r < rows->row_count; r++)
		fay_order_add(order, rows->rows + r * rows->row_size);
	fay_order_advance(order, UINT64_MAX);
	if (c.events)
		close_window(&c);
	assert_int_equal(c.number, count_windows(asked->shape, asked->stream));
	fay_order_destroy(order);
	fay_aggregator_destroy(c.windows);
}

void check_answer(const struct asked *asked, struct fay_result *merged)
{
	if (asked->shape->every)
		check_counted(asked, merged);
	else if (asked->shape->step)
		check_windows(asked, merged);
	else
		check_whole(asked, merged);
}
