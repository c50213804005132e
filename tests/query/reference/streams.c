/* SPDX-License-Identifier: MIT */
#include "streams.h"

#include "answers.h"
#include "stacks.h"

#include <string.h>

const struct source program_sources[] = {
	{ "cluster.Function(\"a!b\")", HAS_ARGUMENTS | HAS_ALWAYS | HAS_CALLER | HAS_STACK,
	  AT_FIRST },
	{ "process(\"redis\").Function(\"a!b\").WhenFull(Drop)", HAS_ARGUMENTS | HAS_ALWAYS,
	  AT_FIRST },
	{ "cluster.Usdt(\"a!b:c\")", HAS_ARGUMENTS | HAS_ALWAYS | HAS_STACK, ANYWHERE },
	{ "cluster.Return(\"a!b\")", HAS_ALWAYS | HAS_RESULT | HAS_FAILED | HAS_DURATION, END },
	{ "cluster.Return(\"a!b\")",
	  HAS_ALWAYS | HAS_RESULT | HAS_FAILED | HAS_DURATION | HAS_ARGUMENTS | HAS_CALLER |
		  HAS_STACK,
	  END },
	{ "machine(\"*\").Return(\"a!b\")", HAS_ALWAYS | HAS_RESULT | HAS_DURATION, END },
	{ "cluster.Function(kernel, \"a*\")", HAS_ARGUMENTS | HAS_ALWAYS, AT_FIRST },
	{ "cluster.Return(kernel, \"a*\")", HAS_ALWAYS | HAS_RESULT | HAS_FAILED | HAS_DURATION,
	  END_IN_KERNEL },
};
const size_t program_source_count = sizeof(program_sources) / sizeof(program_sources[0]);

/* --- events --- */

static void random_result(struct fay_event *e)
{
	static const int64_t edges[] = { -4096, -4095, -1, -22, 0 };
	e->retval = below(2) ? below(4) : (uint64_t)(below(2) ? interesting() : edges[below(5)]);
	e->duration = below(3) ? below(100) : random_word() >> (1 + below(63));
}

static void random_end_in_kernel(struct fay_event *e)
{
	random_result(e);
	e->reserved = -4095 <= (int64_t)e->retval && (int64_t)e->retval < 0 ? EVENT_FAILED : 0;
}

static void random_end(struct fay_event *e)
{
	random_result(e);
	e->reserved = below(6) == 0 ? EVENT_FAILED : 0;
	e->retval = e->reserved & EVENT_FAILED ? 0 : e->retval;
	e->caller = 0x401000 + below(4);
	if (e->reserved & EVENT_FAILED) /* its stack may be gone: the function alone */
		memset(e->reg + 9, 0, (EVENT_FRAMES - 1) * sizeof(e->reg[0]));
}

void random_stream(const struct source *source, struct stream *stream)
{
	stream->count = below(8) ? 20 + below(MAX_EVENTS - 20) : below(3);
	for (unsigned i = 0; i < stream->count; i++) {
		struct fay_event *e = &stream->events[i];
		random_event(e);
		/* each its own; not in order */
		e->time = NOW + random_word() % (SPAN / MAX_EVENTS) * MAX_EVENTS + i;
		e->cpu = below(4);
		if (below(2))
			e->arg[0] = below(5);
		if (source->where == END) {
			random_stack(e, i, true);
			random_end(e);
		} else if (source->where == END_IN_KERNEL) {
			random_end_in_kernel(e);
		} else {
			random_stack(e, i, source->where == AT_FIRST);
		}
	}
}

/* --- probes --- */

static void *probe_of(const struct running *r, enum fay_probe_kind kind)
{
	const struct fay_image_spec *spec = &r->plan->spec;
	for (uint32_t i = 0; i < spec->probe_count; i++)
		if (spec->probes[i].kind == kind)
			return (void *)(uintptr_t)LLVMGetFunctionAddress(r->engine,
									 spec->probes[i].symbol);
	return NULL;
}

static void end_call(struct running *r, probe_function *failure, const struct fay_event *e)
{
	struct fay_event ended = *e;
	if (!(e->reserved & EVENT_FAILED)) {
		r->probe(&ended, r->local, stack_tables());
	} else if (failure) {
		ended.retval = 0x6666;
		failure(&ended, r->local, stack_tables());
	}
}

static void take_rows(struct running *r, struct fay_aggregator *aggregator)
{
	const struct fay_spec_state *s = &r->plan->spec.states[0];
	struct fay_error error = { 0 };
	unsigned char *rows = r->local + sizeof(struct fay_table_header);
	for (uint32_t i = 0; i < s->rows; i++, rows += s->row_size)
		if (word(rows, 0))
			assert_int_equal(fay_aggregator_take_row(aggregator, 0, rows, &error), 0);
	memset(r->local, 0, s->size);
}

static void run_events(struct running *r, const struct source *source, const struct stream *stream,
		       struct fay_aggregator *aggregator)
{
	bool ends = source->where == END;
	bool inside = r->plan->spec.probes[0].kind == FAY_PROBE_OFFSET;
	probe_function *failure = ends ? (probe_function *)probe_of(r, FAY_PROBE_EXCEPTION) : NULL;
	for (unsigned i = 0; i < stream->count; i++) {
		if (i == stream->count / 2 && r->plan->spec.states[0].kind == FAY_STATE_TABLE)
			take_rows(r, aggregator);
		struct fay_event event = stream->events[i];
		if (inside) /* the caller's place has these then */
			event.flags = 0x246;
		if (ends)
			end_call(r, failure, &event);
		else
			r->probe(&event, r->local, stack_tables());
	}
}

void run_stream(struct running *r, const struct source *source, const struct stream *stream,
		struct fay_result *merged)
{
	const struct fay_spec_state *s = &r->plan->spec.states[0];
	struct fay_schema schema;
	struct fay_aggregator *aggregator;
	struct fay_error error = { 0 };
	handed_count = 0;
	memset(r->local, 0, r->plan->spec.local_size);
	memset(merged, 0, sizeof(*merged));
	fay_plan_schema(r->plan, &schema);
	assert_int_equal(fay_aggregator_create(&schema, &aggregator, &error), 0);
	run_events(r, source, stream, aggregator);
	if (s->kind == FAY_STATE_TABLE) {
		take_rows(r, aggregator);
		for (size_t i = 0; i < handed_count; i++)
			assert_int_equal(fay_aggregator_take_row(aggregator, 0,
								 handed_on + i * s->row_size,
								 &error),
					 0);
		assert_int_equal(fay_aggregator_snapshot(aggregator, 0, merged, &error), 0);
	} else {
		merged->row_size = s->row_size;
		merged->row_count = s->kind == FAY_STATE_CELL ? 1 : handed_count;
		merged->rows = malloc(merged->row_count * s->row_size + 1);
		if (merged->row_count)
			memcpy(merged->rows, s->kind == FAY_STATE_CELL ? r->local : handed_on,
			       merged->row_count * s->row_size);
	}
	fay_aggregator_destroy(aggregator);
}
