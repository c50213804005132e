/* SPDX-License-Identifier: MIT */
/* BPF objects from elsewhere: what was written is read; whatever refers to more than a query needs
 * is refused; damage is refused or harmless. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/wire/wire.h"

#define LOAD_WIDE (BPF_LD | BPF_IMM | BPF_DW)
#define CALL (BPF_JMP | BPF_CALL)

static struct fay_schema_column columns[] = {
	{ .name = "key", .type = FAY_TYPE_U64, .merge = FAY_MERGE_KEY, .offset = 8, .size = 8 },
	{ .name = "n", .type = FAY_TYPE_U64, .merge = FAY_MERGE_COUNT, .offset = 16, .size = 8 },
};
static struct fay_schema_state state = { .name = "t",
					 .kind = FAY_STATE_TABLE,
					 .scope = FAY_SCOPE_LOCAL,
					 .rows = 2,
					 .row_size = 24,
					 .size = 64,
					 .keys = 1,
					 .values = 1 };
static const struct fay_schema schema = {
	.local_size = 64, .state_count = 1, .column_count = 2, .states = &state, .columns = columns
};

/* A program of all that is allowed, and then `last`. */
static int read_with(const struct bpf_insn last[2], struct fay_writer_buffer *out,
		     struct fay_object **object, struct fay_error *error)
{
	struct bpf_insn code[] = {
		{ .code = LOAD_WIDE, .src_reg = BPF_PSEUDO_MAP_VALUE, .imm = FAY_BPF_SLOTS },
		{ 0 },
		{ .code = LOAD_WIDE, .src_reg = FAY_BPF_PSEUDO_MACHINE, .imm = FAY_BPF_VALUE_SELF },
		{ 0 },
		{ .code = LOAD_WIDE, .imm = 7 },
		{ .imm = 9 },
		{ .code = CALL, .imm = BPF_FUNC_ktime_get_ns },
		last[0],
		last[1],
		{ .code = BPF_JMP | BPF_EXIT },
	};
	struct fay_bpf_program programs[] = {
		{ .name = "tracepoint sys_exit",
		  .type = BPF_PROG_TYPE_TRACING,
		  .attach = BPF_TRACE_RAW_TP,
		  .btf_id = 77,
		  .code = code,
		  .count = 10 },
		{ .name = "timer",
		  .type = BPF_PROG_TYPE_PERF_EVENT,
		  .period = 1000000,
		  .code = code + 9,
		  .count = 1 },
	};
	struct fay_bpf_object bpf = {
		.programs = programs,
		.program_count = 2,
		.maps = 1u << FAY_BPF_SLOTS,
		.place_count = 1,
		.places = { { .structure = "task_struct", .member = "comm", .offset = 40 } }
	};
	out->size = 0;
	assert_int_equal(fay_object_write(&bpf, &schema, out, error), FAY_OK);
	return fay_object_read(out->bytes, out->size, object, error);
}

static const struct bpf_insn nothing[2] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K },
					    { .code = BPF_ALU64 | BPF_MOV | BPF_K } };

static void what_was_written(void **context)
{
	struct fay_writer_buffer out = { 0 };
	struct fay_object *object;
	struct fay_error error;
	assert_int_equal(read_with(nothing, &out, &object, &error), FAY_OK);
	assert_int_equal(object->bpf.program_count, 2);
	assert_string_equal(object->bpf.programs[0].name, "tracepoint sys_exit");
	assert_int_equal(object->bpf.programs[0].btf_id, 0); /* the agent looks for it by name */
	assert_int_equal(object->bpf.programs[0].count, 10);
	assert_int_equal(object->bpf.programs[1].type, BPF_PROG_TYPE_PERF_EVENT);
	assert_int_equal(object->verdict.schema.column_count, 2);
	assert_int_equal(object->bpf.row_size, 24);
	assert_string_equal(object->bpf.places[0].member, "comm");
	free(object);
	fay_wire_free(&out);
}

static void what_is_refused(void **context)
{
	static const struct bpf_insn cases[][2] = {
		{ { .code = CALL, .imm = BPF_FUNC_probe_write_user } },
		{ { .code = CALL, .imm = BPF_FUNC_send_signal } },
		{ { .code = CALL, .imm = BPF_FUNC_override_return } },
		{ { .code = CALL,
		    .src_reg = BPF_PSEUDO_KFUNC_CALL,
		    .imm = BPF_FUNC_ktime_get_ns } },
		{ { .code = CALL, .src_reg = BPF_PSEUDO_CALL, .imm = BPF_FUNC_ktime_get_ns } },
		{ { .code = BPF_JMP | BPF_CALL | BPF_X, .imm = BPF_FUNC_ktime_get_ns } },
		{ { .code = BPF_JMP32 | BPF_CALL, .imm = BPF_FUNC_ktime_get_ns } },
		{ { .code = LOAD_WIDE, .src_reg = BPF_PSEUDO_BTF_ID, .imm = 1 } },
		{ { .code = LOAD_WIDE, .src_reg = BPF_PSEUDO_FUNC, .imm = 1 } },
		/* not among its maps */
		{ { .code = LOAD_WIDE, .src_reg = BPF_PSEUDO_MAP_FD, .imm = FAY_BPF_RING } },
		{ { .code = LOAD_WIDE, .src_reg = BPF_PSEUDO_MAP_FD, .imm = 1000 } },
		{ { .code = LOAD_WIDE, .src_reg = BPF_PSEUDO_MAP_IDX, .imm = 0 } },
		{ { .code = LOAD_WIDE, .src_reg = BPF_PSEUDO_MAP_VALUE, .imm = FAY_BPF_SLOTS },
		  { .imm = 8 } },
		{ { .code = LOAD_WIDE, .src_reg = FAY_BPF_PSEUDO_MACHINE, .imm = FAY_BPF_VALUES } },
		/* hidden in the second half */
		{ { .code = LOAD_WIDE }, { .code = CALL, .imm = BPF_FUNC_probe_write_user } },
		{ { .code = BPF_LD | BPF_ABS | BPF_W } },
	};
	struct fay_writer_buffer out = { 0 };
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fay_object *object;
		struct fay_error error = { 0 };
		assert_int_equal(read_with(cases[i], &out, &object, &error), FAY_E_REFUSED);
		assert_non_null(
			strstr(error.message, "refers to something that queries do not use"));
	}
	fay_wire_free(&out);
}

static void damage(void **context)
{
	struct fay_writer_buffer out = { 0 };
	struct fay_object *object;
	struct fay_error error;
	assert_int_equal(read_with(nothing, &out, &object, &error), FAY_OK);
	free(object);
	for (size_t size = 0; size < out.size; size++) {
		/* exactly as large, so that a byte too far is seen */
		uint8_t *copy = malloc(size + 1);
		assert_non_null(copy);
		memcpy(copy, out.bytes, size);
		assert_int_equal(fay_object_read(copy, size, &object, &error), FAY_E_REFUSED);
		free(copy);
	}
	srand(1);
	for (int i = 0; i < 20000; i++) {
		size_t at = (size_t)rand() % out.size;
		uint8_t before = out.bytes[at];
		out.bytes[at] = (uint8_t)rand();
		if (!fay_object_read(out.bytes, out.size, &object, &error)) {
			struct fay_aggregator *aggregator;
			if (!fay_aggregator_create(&object->verdict.schema, &aggregator, &error))
				fay_aggregator_destroy(aggregator);
			free(object);
		}
		out.bytes[at] = before;
	}
	fay_wire_free(&out);
}

static void policies(void **context)
{
	struct fay_writer_buffer out = { 0 };
	struct fay_object *object;
	struct fay_policy policy;
	struct fay_error error;
	assert_int_equal(read_with(nothing, &out, &object, &error), FAY_OK);
	fay_policy_default(&policy);
	assert_int_equal(fay_object_check_policy(object, &policy, &error), FAY_OK);
	policy.pattern_count = 1;
	strcpy(policy.patterns[0], "kernel!sys_*"); /* and not the timer */
	assert_int_equal(fay_object_check_policy(object, &policy, &error), FAY_E_REFUSED);
	strcpy(policy.patterns[0], "kernel!*");
	assert_int_equal(fay_object_check_policy(object, &policy, &error), FAY_OK);
	policy.allow_kinds &= ~(1u << FAY_PROBE_TIMER);
	assert_int_equal(fay_object_check_policy(object, &policy, &error), FAY_E_REFUSED);
	fay_policy_default(&policy);
	policy.max_local = 32;
	assert_int_equal(fay_object_check_policy(object, &policy, &error), FAY_E_REFUSED);
	fay_policy_default(&policy);
	policy.allow_helpers = 0;
	assert_int_equal(fay_object_check_policy(object, &policy, &error), FAY_E_REFUSED);
	free(object);
	fay_wire_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(what_was_written),
					    cmocka_unit_test(what_is_refused),
					    cmocka_unit_test(damage), cmocka_unit_test(policies) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
