/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

static struct fay_schema_column columns[] = {
	{ .name = "key", .type = FAY_TYPE_U64, .merge = FAY_MERGE_KEY, .offset = 8, .size = 8 },
	{ .name = "count",
	  .type = FAY_TYPE_U64,
	  .merge = FAY_MERGE_COUNT,
	  .offset = 16,
	  .size = 8 },
	{ .name = "sum", .type = FAY_TYPE_U64, .merge = FAY_MERGE_SUM, .offset = 24, .size = 8 },
	{ .name = "least", .type = FAY_TYPE_U64, .merge = FAY_MERGE_MIN, .offset = 32, .size = 8 },
	{ .name = "number",
	  .type = FAY_TYPE_FUNCTION,
	  .merge = FAY_MERGE_KEY,
	  .offset = 0,
	  .size = 8 },
};
static struct fay_schema_state states[] = {
	{ .name = "table",
	  .kind = FAY_STATE_TABLE,
	  .scope = FAY_SCOPE_LOCAL,
	  .rows = 16,
	  .row_size = sizeof(struct fixture_row),
	  .size = 16 + 16 * sizeof(struct fixture_row),
	  .keys = 1,
	  .values = 3 },
	{ .name = "stream",
	  .kind = FAY_STATE_STREAM,
	  .scope = FAY_SCOPE_LOCAL,
	  .rows = 1,
	  .row_size = sizeof(struct fixture_event),
	  .first_column = 4,
	  .keys = 1 },
};
const struct fay_schema fixture_schema = { .local_size = 16 + 16 * sizeof(struct fixture_row),
					   .state_count = 2,
					   .column_count = 5,
					   .states = states,
					   .columns = columns };

static void on_row(void *context, uint32_t state, const uint8_t *row)
{
	struct fixture *fixture = context;
	uint64_t number;
	memcpy(&number, row, sizeof(number));
	fixture->events++;
	fixture->event_sum += number;
}

static void add_machine(struct fixture *fixture, uint64_t id)
{
	struct fay_root *root = &fixture->root;
	struct fay_machine *machine = calloc(1, sizeof(*machine));
	assert(machine);
	machine->id = id;
	machine->state = FAY_MACHINE_TRACING;
	memcpy(machine->key, fixture->key, FAY_KEY_BYTES);
	root->machines[root->machine_count++] = machine;
	fixture->inner.children[fixture->inner.child_count].agent = id;
	memcpy(fixture->inner.children[fixture->inner.child_count++].key, fixture->key,
	       FAY_KEY_BYTES);
}

void fixture_init(struct fixture *fixture, size_t machines)
{
	struct fay_error error;
	memset(fixture, 0, sizeof(*fixture));
	assert(!fay_keys_init(&error));
	fay_keys_make(&fixture->keys);
	memcpy(fixture->key, fixture->keys.public, FAY_KEY_BYTES);
	fixture->verdict.schema = fixture_schema;
	assert(!fay_aggregator_create(&fixture->verdict.schema, &fixture->aggregator, &error));
	fay_aggregator_on_row(fixture->aggregator, on_row, fixture);
	fixture->root.verdict = &fixture->verdict;
	fixture->root.aggregator = fixture->aggregator;
	fixture->root.query = fixture->inner.query = 1;
	fixture->root.machines = calloc(machines, sizeof(*fixture->root.machines));
	fixture->inner.children = calloc(machines, sizeof(*fixture->inner.children));
	assert(fixture->root.machines && fixture->inner.children);
	fixture->inner.agent = 1000;
	fixture->inner.verdict = &fixture->verdict;
	fixture->inner.keys = &fixture->keys;
	fixture->inner.window = 1;
	fixture->inner.limits.memory = 16 << 20;
	for (uint64_t i = 1; i <= machines; i++)
		add_machine(fixture, i);
}

void fixture_deinit(struct fixture *fixture)
{
	fay_job_collect_deinit(&fixture->inner);
	fay_wire_free(&fixture->inner.out);
	for (size_t i = 0; i < fixture->root.machine_count; i++) {
		fay_aggregator_destroy(fixture->root.machines[i]->own);
		fay_aggregator_destroy(fixture->root.machines[i]->settled);
		free(fixture->root.machines[i]);
	}
	free(fixture->root.machines);
	free(fixture->root.index);
	fay_names_deinit(&fixture->root.names);
	fay_aggregator_destroy(fixture->aggregator);
}
