/* SPDX-License-Identifier: MIT */
/*
 * Kernel queries as BPF programs, and the reader of the kernel's types, on a types file of our own:
 * two tracepoints, a structure with a bit field, a union without a name and pointers. Nothing is
 * loaded; tests/integration/queries/bpf.sh does that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/btf.h>
#include <cmocka.h>

#include "fay/query.h"

#define NOW 1700000000000000000u

/* --- a types file
 * -------------------------------------------------------------------------------------------------
 * */

struct maker {
	uint8_t types[4096];
	char strings[4096];
	uint32_t types_size, strings_size, count;
};

static uint32_t text(struct maker *m, const char *name)
{
	uint32_t at = m->strings_size;
	strcpy(m->strings + at, name);
	m->strings_size += (uint32_t)strlen(name) + 1;
	return *name ? at : 0;
}

static void words(struct maker *m, const uint32_t *word, unsigned count)
{
	memcpy(m->types + m->types_size, word, 4 * count);
	m->types_size += 4 * count;
}

/* A type's header; returns its number. */
static uint32_t type(struct maker *m, unsigned kind, unsigned count, const char *name,
		     uint32_t size_or_type)
{
	words(m, (uint32_t[]){ text(m, name), kind << 24 | count, size_or_type }, 3);
	return ++m->count;
}

static void pair(struct maker *m, const char *name, uint32_t type_id)
{
	words(m, (uint32_t[]){ text(m, name), type_id }, 2);
}

static void field(struct maker *m, const char *name, uint32_t type_id, uint32_t bit_offset)
{
	words(m, (uint32_t[]){ text(m, name), type_id, bit_offset }, 3);
}

static void tracepoint(struct maker *m, const char *name, const char *argument,
		       uint32_t argument_type, const char *second, uint32_t second_type)
{
	char full[64];
	uint32_t prototype = type(m, BTF_KIND_FUNC_PROTO, 3, "", 0);
	pair(m, "__data", 0);
	pair(m, argument, argument_type);
	pair(m, second, second_type);
	uint32_t pointer = type(m, BTF_KIND_PTR, 0, "", prototype);
	snprintf(full, sizeof(full), "btf_trace_%s", name);
	type(m, BTF_KIND_TYPEDEF, 0, full, pointer);
	snprintf(full, sizeof(full), "__traceiter_%s", name);
	type(m, BTF_KIND_FUNC, 0, full, prototype);
}

static size_t make(uint8_t *file)
{
	struct maker m = { .strings_size = 1 };
	uint32_t number = type(&m, BTF_KIND_INT, 0, "int", 4);
	words(&m, (uint32_t[]){ BTF_INT_SIGNED << 24 | 32 }, 1);
	uint32_t letter = type(&m, BTF_KIND_INT, 0, "char", 1);
	words(&m, (uint32_t[]){ 8 }, 1);
	uint32_t name = type(&m, BTF_KIND_ARRAY, 0, "", 0);
	words(&m, (uint32_t[]){ letter, number, 16 }, 3);
	uint32_t tag = type(&m, BTF_KIND_ARRAY, 0, "", 0);
	words(&m, (uint32_t[]){ letter, number, 4 }, 3);
	uint32_t state = type(&m, BTF_KIND_ENUM, 2, "state", 1);
	pair(&m, "STATE_LOW", 1);
	pair(&m, "STATE_HIGH", 200);
	uint32_t task = m.count + 3; /* the structure: behind the pointer to it and the union */
	uint32_t task_pointer = type(&m, BTF_KIND_PTR, 0, "", task);
	uint32_t either = type(&m, BTF_KIND_UNION, 2, "", 4);
	field(&m, "count", number, 0);
	field(&m, "first", letter, 0);
	assert_int_equal(type(&m, BTF_KIND_STRUCT | 1u << 7, 7, "task_struct", 48), task);
	field(&m, "pid", number, 0);
	field(&m, "", either, 32);
	field(&m, "flags", number, 3u << 24 | (64 + 5));
	field(&m, "comm", name, 96);
	field(&m, "parent", task_pointer, 256);
	field(&m, "tag", tag, 320);
	field(&m, "state", state, 352);
	tracepoint(&m, "demo", "task", task_pointer, "value", number);
	tracepoint(&m, "sys_enter", "regs", task_pointer, "id", number);
	tracepoint(&m, "sys_exit", "regs", task_pointer, "ret", number);
	struct btf_header header = { .magic = BTF_MAGIC,
				     .version = BTF_VERSION,
				     .hdr_len = sizeof(header),
				     .type_len = m.types_size,
				     .str_off = m.types_size,
				     .str_len = m.strings_size };
	memcpy(file, &header, sizeof(header));
	memcpy(file + sizeof(header), m.types, m.types_size);
	memcpy(file + sizeof(header) + m.types_size, m.strings, m.strings_size);
	return sizeof(header) + m.types_size + m.strings_size;
}

static char path[] = "/tmp/fay-test-bpf-XXXXXX";

static void write_types(const uint8_t *bytes, size_t size)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

/* --- tests
 * -------------------------------------------------------------------------------------------------
 * */

static void types_are_read(void **state)
{
	uint8_t bytes[8192];
	const struct btf *btf;
	struct fay_btf_tracepoint point;
	struct fay_btf_field member;
	write_types(bytes, make(bytes));
	assert_int_equal(fay_btf_open(path, &btf, NULL), 0);
	assert_true(fay_btf_tracepoint(btf, "demo", &point));
	assert_int_equal(point.argument_count, 2);
	assert_string_equal(point.arguments[0].name, "task");
	assert_int_equal(fay_btf_tracepoints(btf, NULL, 0), 3);
	uint32_t task = fay_btf_find(btf, BTF_KIND_STRUCT, "task_struct");
	assert_true(fay_btf_member(btf, task, "first", &member));
	assert_int_equal(member.bit_offset, 32);
	assert_true(fay_btf_member(btf, task, "flags", &member));
	assert_int_equal(member.bits, 3);
	assert_int_equal(member.bit_offset, 69);
	assert_false(fay_btf_member(btf, task, "nothing", &member));
	fay_btf_close(btf);
}

/* Whatever the file holds: refused, or read without a fault. */
static void damaged_types(void **state)
{
	uint8_t bytes[8192], damaged[8192];
	size_t size = make(bytes);
	const struct btf *btf;
	srand(1);
	for (size_t cut = 0; cut < size; cut += 7) {
		write_types(bytes, cut);
		if (!fay_btf_open(path, &btf, NULL))
			fay_btf_close(btf);
	}
	for (int i = 0; i < 2000; i++) {
		struct fay_btf_tracepoint point;
		struct fay_btf_field member;
		const char *names[64];
		memcpy(damaged, bytes, size);
		for (int k = 0; k < 4; k++)
			damaged[(size_t)rand() % size] = (uint8_t)rand();
		write_types(damaged, size);
		if (fay_btf_open(path, &btf, NULL))
			continue;
		fay_btf_tracepoint(btf, "demo", &point);
		for (uint32_t id = 0; id < btf__type_cnt(btf); id++) {
			fay_btf_size(btf, id);
			fay_btf_member(btf, id, "first", &member);
			fay_btf_member_names(btf, id, names, 64);
		}
		fay_btf_close(btf);
	}
}

/* The object of a query, or the error's code. */
static int generate(const char *query, struct fay_bpf_object *object)
{
	static const pid_t pids[] = { 1, 2, 3, 4, 5, 6 };
	struct fay_bpf_options options = { .pids = pids, .pid_count = 6 };
	struct fay_error error = { 0 };
	struct fay_plan *plan;
	if (fay_query_plan(query, NOW, &plan, &error))
		return error.code;
	int code = fay_plan_generate_bpf(plan, &options, object, &error);
	if (code)
		print_message("%s: %s\n", query, error.message);
	fay_plan_destroy(plan);
	return code;
}

static void objects(void **state)
{
	static const struct {
		const char *query;
		unsigned programs, maps; /* maps besides the slots and the processes */
	} cases[] = {
		{ "cluster.Syscall(\"read\").Count()", 1, 0 },
		{ "cluster.Syscall(\"read\").Sum(r => r.ReturnValue)", 1, 0 },
		{ "cluster.Syscall(\"read\").Max(r => r.Duration)", 2, 1u << FAY_BPF_STARTS },
		{ "cluster.Syscall(\"read\").TopK(200, r => r.ReturnValue)", 1, 0 },
		{ "cluster.Syscall(\"*\").Count()", 1, 1u << FAY_BPF_NAMES },
		{ "from r in cluster.Syscall(\"read\") group r by r.comm into g select new { "
		  "g.Key, n = g.Count() }",
		  1, 1u << FAY_BPF_RING },
		{ "from r in cluster.Syscall(\"read\") select r.time", 1, 1u << FAY_BPF_RING },
		{ "cluster.Tracepoint(\"demo\").Count(e => e.task.parent.parent.comm == \"x\" && "
		  "e.task.flags == 3 && e.value < 0)",
		  1, 0 },
		{ "from e in cluster.Tracepoint(\"x:demo\") group e by new { e.task.first, "
		  "e.task.count } into g\n"
		  "select new { g.Key, a = g.Average(x => x.value / x.task.pid), d = g.StdDev(x => "
		  "x.value % 7), q = g.Quantile(0.5, x => x.value),\n"
		  "\tm = g.Min(x => x.value) }",
		  1, 1u << FAY_BPF_RING },
		{ "from e in cluster.Tracepoint(\"*\") group e by e.function into g select new { "
		  "g.Key, f = g.First(x => x.cpu), u = g.DistinctCount(x => x.comm) }",
		  3, 1u << FAY_BPF_RING },
	};
	uint8_t bytes[8192];
	write_types(bytes, make(bytes));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fay_bpf_object object;
		assert_int_equal(generate(cases[i].query, &object), 0);
		assert_int_equal(object.program_count, cases[i].programs);
		assert_int_equal(object.maps,
				 cases[i].maps | 1u << FAY_BPF_SLOTS | 1u << FAY_BPF_PIDS);
		for (uint32_t p = 0; p < object.program_count; p++) {
			const struct fay_bpf_program *program = &object.programs[p];
			assert_in_range(program->count, 5, 10000);
			bool ends = false;
			for (uint32_t k = 0; k < program->count; k++)
				ends |= program->code[k].code == (BPF_JMP | BPF_EXIT);
			assert_true(ends);
		}
		fay_bpf_object_deinit(&object);
	}
}

/* Whether the query's program compares something with that number. */
static bool compares_with(const char *query, int32_t number)
{
	struct fay_bpf_object object;
	bool found = false;
	assert_int_equal(generate(query, &object), 0);
	for (uint32_t i = 0; i < object.programs[0].count; i++) {
		const struct bpf_insn *insn = &object.programs[0].code[i];
		bool jump = BPF_CLASS(insn->code) == BPF_JMP || BPF_CLASS(insn->code) == BPF_JMP32;
		found |= jump && (BPF_OP(insn->code) == BPF_JEQ || BPF_OP(insn->code) == BPF_JNE) &&
			 BPF_SRC(insn->code) == BPF_K && insn->imm == number;
	}
	fay_bpf_object_deinit(&object);
	return found;
}

/* The bytes that the query's program gives the helper that reads strings; 0: it calls none. */
static int32_t string_size(const char *query)
{
	struct fay_bpf_object object;
	int32_t size = 0, second = 0;
	assert_int_equal(generate(query, &object), 0);
	for (uint32_t i = 0; i < object.programs[0].count; i++) {
		const struct bpf_insn *insn = &object.programs[0].code[i];
		if (insn->dst_reg == BPF_REG_2 && BPF_OP(insn->code) == BPF_MOV &&
		    BPF_SRC(insn->code) == BPF_K && BPF_CLASS(insn->code) != BPF_JMP)
			second = insn->imm;
		if (insn->code == (BPF_JMP | BPF_CALL) &&
		    insn->imm == BPF_FUNC_probe_read_kernel_str)
			size = second;
	}
	fay_bpf_object_deinit(&object);
	return size;
}

/* Of an array of characters no more than it has is read, and a byte's constant is not negative
 * because its highest bit is set. */
static void small_members(void **state)
{
	uint8_t bytes[8192];
	write_types(bytes, make(bytes));
	/* with the NUL that the helper adds */
	assert_int_equal(
		string_size("cluster.Tracepoint(\"demo\").Count(e => e.task.tag == \"RIFF\")"), 5);
	assert_int_equal(
		string_size("cluster.Tracepoint(\"demo\").Count(e => e.task.comm == \"RIFF\")"),
		16);
	assert_true(
		compares_with("cluster.Tracepoint(\"demo\").Count(e => e.task.state == 200)", 200));
	assert_true(compares_with(
		"cluster.Tracepoint(\"demo\").Count(e => e.task.state == \"STATE_HIGH\")", 200));
}

static void refusals(void **state)
{
	struct fay_bpf_object object;
	uint8_t bytes[8192];
	write_types(bytes, make(bytes));
	assert_int_equal(generate("cluster.Tracepoint(\"dem\").Count()", &object), FAY_E_USAGE);
	assert_int_equal(
		generate("cluster.Tracepoint(\"demo\").Count(e => e.task.flag == 1)", &object),
		FAY_E_USAGE);
	assert_int_equal(
		generate("cluster.Tracepoint(\"demo\").Count(e => e.task == \"a\")", &object),
		FAY_E_USAGE);
	assert_int_equal(
		generate("cluster.Tracepoint(\"demo\").Count(e => e.value.flag == 1)", &object),
		FAY_E_USAGE);
	assert_int_equal(
		generate("cluster.Tracepoint(\"demo\").Count(e => e.Arg(2) == 1)", &object),
		FAY_E_USAGE);
	assert_int_equal(generate("cluster.Tracepoint(\"*\").Count(e => e.value == 1)", &object),
			 FAY_E_USAGE);
	write_types(bytes, 10);
	assert_int_equal(generate("cluster.Syscall(\"read\").Count()", &object), FAY_E_REFUSED);
}

/* Functions of the kernel may run as native code or through BPF: only here is it known that C
 * cannot be called. */
static void functions_of_c(void **state)
{
	uint8_t bytes[8192];
	char file[64], query[256];
	struct fay_query_options options = { .now = NOW, .extend = true };
	struct fay_bpf_options bpf = { .pid_count = 0 };
	struct fay_bpf_object object;
	struct fay_error error = { 0 };
	struct fay_plan *plan;
	write_types(bytes, make(bytes));
	snprintf(file, sizeof(file), "%s.c", path);
	FILE *source = fopen(file, "w");
	assert_non_null(source);
	fputs("long doubled(long x) { return 2 * x; }\n", source);
	fclose(source);
	snprintf(query, sizeof(query),
		 "extend \"%s\"\ncluster.Function(kernel, \"__traceiter_demo\").Sum(x => "
		 "doubled(x.Arg(1)))",
		 file);
	int code = fay_query_plan_with(query, &options, &plan, &error);
	unlink(file);
	if (code)
		fail_msg("%s", error.message);
	assert_int_equal(fay_plan_generate_bpf(plan, &bpf, &object, &error), FAY_E_REFUSED);
	if (strncmp(error.message, "query:1:8: C functions", 22) || !strstr(error.message, "^~~"))
		fail_msg("%s", error.message);
	fay_plan_destroy(plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_are_read), cmocka_unit_test(damaged_types),
		cmocka_unit_test(objects),        cmocka_unit_test(small_members),
		cmocka_unit_test(refusals),       cmocka_unit_test(functions_of_c)
	};
	int fd = mkstemp(path);
	if (fd < 0)
		return 1;
	close(fd);
	setenv("FAY_BTF", path, 1);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
