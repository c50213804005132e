/* SPDX-License-Identifier: MIT */
#include "finished.h"

#include "fay/aggregator.h"
#include "tests/query/reference/trees.h"

struct fay_event events[EVENTS];

int make_events(void **state)
{
	random_state = 0x5eed;
	for (unsigned i = 0; i < EVENTS; i++) {
		struct fay_event *e = &events[i];
		uint64_t x = random_word();
		e->arg[0] = x % KEYS * (x >> 32 & 1 ? 1 : x >> 33 & 1); /* some keys are frequent */
		e->arg[1] = random_word() >> (24 + random_word() % 40);
		e->arg[2] = random_word() % 100;
		/* of any size and sign */
		e->arg[3] = (uint64_t)((int64_t)random_word() >> (random_word() % 64));
		e->time = NOW + i * 1000;
		e->tid = (uint32_t)(random_word() % 7);
		snprintf(e->comm, sizeof(e->comm), "thread%u", e->tid);
	}
	return prepare_jit();
}

const char *name_of(void *context, uint64_t hash)
{
	return NULL;
}

/* A table's rows, and those that were handed on, as the aggregator makes them: in the order of
 * their keys. */
static void merge_table(const struct running *r, struct fay_result *merged)
{
	const struct fay_spec_state *s = &r->plan->spec.states[0];
	const unsigned char *rows = r->local + sizeof(struct fay_table_header);
	struct fay_aggregator *aggregator;
	struct fay_error error = { 0 };
	struct fay_schema schema;
	fay_plan_schema(r->plan, &schema);
	assert_int_equal(fay_aggregator_create(&schema, &aggregator, &error), 0);
	for (size_t i = 0; i < handed_count; i++)
		assert_int_equal(
			fay_aggregator_take_row(aggregator, 0, handed_on + i * s->row_size, &error),
			0);
	for (uint32_t i = 0; i < s->rows; i++, rows += s->row_size)
		if (word(rows, 0))
			assert_int_equal(fay_aggregator_take_row(aggregator, 0, rows, &error), 0);
	assert_int_equal(fay_aggregator_snapshot(aggregator, 0, merged, &error), 0);
	fay_aggregator_destroy(aggregator);
}

void run_query(struct answer *a, const char *text)
{
	struct fay_result merged = { 0 };
	struct fay_error error = { 0 };
	start(&a->running, text);
	const struct fay_plan *plan = a->running.plan;
	const struct fay_spec_state *s = &plan->spec.states[0];
	for (unsigned i = 0; i < EVENTS; i++)
		a->running.probe(&events[i], a->running.local, NULL);
	merged.row_size = s->row_size;
	if (plan->streams) {
		merged.rows = handed_on;
		merged.row_count = handed_count;
	} else if (s->kind == FAY_STATE_CELL) {
		merged.rows = a->running.local;
		merged.row_count = 1;
	} else {
		merge_table(&a->running, &merged);
	}
	assert_true(plan->finishes);
	if (fay_plan_finish(plan, &merged, name_of, NULL, &a->result, &error))
		fail_msg("%s\n%s", text, error.message);
	if (s->kind == FAY_STATE_TABLE)
		free(merged.rows);
}

void end_query(struct answer *a)
{
	fay_result_deinit(&a->result);
	stop(&a->running);
}

double get(const struct answer *a, size_t row, const char *name)
{
	const struct fay_plan *plan = a->running.plan;
	struct fay_schema schema;
	fay_plan_result_schema(plan, &schema);
	for (uint32_t i = 0; i < plan->column_count; i++) {
		const struct fay_plan_column *c = &plan->columns[i];
		struct fay_schema_column column = { .offset = c->offset,
						    .size = 16,
						    .type = (uint16_t)c->type,
						    .merge = (uint16_t)c->merge };
		struct fay_value value;
		if (strcmp(c->name, name))
			continue;
		if (c->source != FAY_PLAN_COMPUTED) {
			const struct fay_schema_column *in =
				&schema.columns[c->index + (c->source == FAY_PLAN_VALUE
								    ? schema.states[0].keys
								    : 0)];
			column.offset = in->offset;
			column.size = in->size;
		}
		if (!fay_value_decode(&column, a->result.rows + row * a->result.row_size, &value))
			return NAN;
		return value.kind == FAY_VALUE_DOUBLE ? value.d
		       : value.kind == FAY_VALUE_I64  ? (double)value.i64
						      : (double)value.u64;
	}
	fail_msg("no column %s", name);
	return 0;
}
