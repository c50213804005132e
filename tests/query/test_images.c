/* SPDX-License-Identifier: MIT */
/*
 * Every query of cases/ that plans, compiled to an image and put before the verifier, which must
 * accept it: no probe of ours may need more trust than a stranger's. With FAY_QUERY_IMAGES=FOLDER
 * they are kept there.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <llvm-c/Core.h>

#include "cases.h"
#include "fay/query.h"
#include "fay/verify.h"

#define NOW 1700000000000000000u

static void compile(const struct fay_plan *plan, struct fay_buffer *image)
{
	struct fay_error error = { 0 };
	struct fay_compile_options options = { .size = sizeof(options),
					       .unfuelled = plan->unfuelled,
					       .debug_lines = plan->extended };
	LLVMContextRef context = LLVMContextCreate();
	LLVMModuleRef module;
	fay_buffer_init(image);
	if (fay_plan_generate(plan, context, &module, &error) ||
	    fay_compile_module(module, &plan->spec, &options, image, &error))
		fail_msg("%s\n%s", plan->text, error.message);
	LLVMContextDispose(context);
}

/* What the verifier read from the image is what the planner put into the spec. */
static void check_schema(const struct fay_plan *plan, const struct fay_verdict *verdict)
{
	const struct fay_image_spec *spec = &plan->spec;
	assert_int_equal(verdict->probe_count, spec->probe_count);
	for (uint32_t i = 0; i < spec->probe_count; i++)
		assert_string_equal(verdict->probes[i].pattern, spec->probes[i].pattern);
	assert_string_equal(spec->probes[0].pattern, plan->pattern);
	assert_int_equal(verdict->schema.local_size, spec->local_size);
	assert_int_equal(spec->state_count, plan->source_count + (plan->texts ? 2 : 0));
	assert_int_equal(verdict->schema.state_count, spec->state_count);
	for (uint32_t i = 0; i < spec->state_count; i++) {
		assert_int_equal(verdict->schema.states[i].row_size, spec->states[i].row_size);
		assert_int_equal(verdict->schema.states[i].first_column,
				 spec->states[i].first_column);
	}
	assert_int_equal(verdict->schema.column_count, spec->column_count);
	for (uint32_t i = 0; i < spec->column_count; i++) {
		assert_string_equal(verdict->schema.columns[i].name, spec->columns[i].name);
		assert_int_equal(verdict->schema.columns[i].offset, spec->columns[i].offset);
		assert_int_equal(verdict->schema.columns[i].merge, spec->columns[i].merge);
	}
}

/* As FOLDER/NAME.fay, if the environment asks for it. */
static void keep_image(const char *name, const struct fay_buffer *image)
{
	const char *folder = getenv("FAY_QUERY_IMAGES");
	char path[4096];

	if (!folder)
		return;
	snprintf(path, sizeof(path), "%s/%s.fay", folder, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(image->data, 1, image->size, file), image->size);
	fclose(file);
}

/* The same query for the kernel, of some processes and threads, under the kernel's policy. */
static void verify_in_kernel(const char *name, const struct fay_plan *plan)
{
	static const pid_t pids[] = { 1, 2 }, tids[] = { 3 };
	struct fay_event_filter filter = {
		.pids = pids, .pid_count = 2, .tids = tids, .tid_count = 1
	};
	struct fay_compile_options options = { .size = sizeof(options),
					       .march = "general",
					       .confined = true,
					       .unfuelled = plan->unfuelled };
	LLVMContextRef context = LLVMContextCreate();
	struct fay_error error = { 0 };
	struct fay_verdict verdict;
	struct fay_policy policy;
	struct fay_buffer image;
	LLVMModuleRef module;

	fay_buffer_init(&image);
	fay_policy_default(&policy);
	fay_policy_restrict_kernel(&policy);
	if (fay_plan_generate_kernel(plan, &filter, context, &module, &error) ||
	    fay_compile_module(module, fay_plan_kernel_spec(plan), &options, &image, &error))
		fail_msg("%s\n%s", plan->text, error.message);
	fay_verify(image.data, image.size, &policy, &verdict);
	if (verdict.outcome != FAY_ACCEPTED)
		fay_verdict_print(stderr, name, &verdict);
	assert_int_equal(verdict.outcome, FAY_ACCEPTED);
	fay_verdict_deinit(&verdict);
	fay_buffer_deinit(&image);
	LLVMContextDispose(context);
}

/* True if the query's image is accepted, or the query does not plan. */
static bool verify_query(const char *name, const char *text, unsigned *accepted)
{
	struct fay_error error;
	struct fay_plan *plan;
	struct fay_buffer image;
	struct fay_verdict verdict;
	struct fay_query_options options = {
		.now = NOW, .extend = true, .long_strings = true, .long_kernel_strings = true
	};
	if (fay_query_plan_with(text, &options, &plan, &error))
		return true;
	if (plan->domain == DOMAIN_KERNEL && plan->kernel != FAY_KERNEL_FUNCTIONS) {
		fay_plan_destroy(plan); /* no native probe: test_query_bpf */
		return true;
	}
	compile(plan, &image);
	if (plan->domain == DOMAIN_KERNEL)
		verify_in_kernel(name, plan);
	fay_verify(image.data, image.size, NULL, &verdict);
	bool fine = verdict.outcome == FAY_ACCEPTED;
	if (fine) {
		(*accepted)++;
		keep_image(name, &image);
		check_schema(plan, &verdict);
		print_message("%-24s %5zu bytes, %4llu instructions at most, %.1f ms\n", name,
			      image.size, (unsigned long long)verdict.probes[0].worst_instructions,
			      (double)verdict.nanoseconds / 1e6);
	} else {
		fay_verdict_print(stderr, name, &verdict);
		const char *keep = getenv("FAY_KEEP");
		FILE *file = keep ? fopen(keep, "w") : NULL;
		if (file) {
			fwrite(image.data, 1, image.size, file);
			fclose(file);
		}
	}
	fay_verdict_deinit(&verdict);
	fay_buffer_deinit(&image);
	fay_plan_destroy(plan);
	return fine;
}

static void cases_are_accepted(void **state)
{
	static struct query_table table;
	unsigned accepted = 0, refused = 0;
	const char *only = getenv("FAY_ONLY");
	DIR *folder = opendir(FAY_QUERY_CASES);
	assert_non_null(folder);
	while (query_table_next(folder, FAY_QUERY_CASES, &table)) {
		for (size_t i = 0; i < table.count; i++) {
			const struct query_case *c = &table.cases[i];
			if (!only || strcmp(only, c->name) == 0)
				refused += !verify_query(c->name, c->text, &accepted);
		}
		query_table_free(&table);
	}
	closedir(folder);
	print_message("%u accepted, %u refused\n", accepted, refused);
	assert_int_equal(refused, 0);
	if (!only)
		assert_true(accepted >= 30);
}

/* --- members of structures, by this program's own debug information
 * ------------------------------------------------------ */

enum colour { COLOUR_RED, COLOUR_BLUE };
struct thing {
	struct thing *next;
	uint64_t count;
	char name[16];
	const char *title;
	uint32_t small;
	uint8_t byte;
	uint16_t two;
	enum colour colour;
};
extern int described_function(struct thing *thing, int number);
__attribute__((noinline)) int described_function(struct thing *thing, int number)
{
	return thing && thing->count ? number : 0;
}

static int find_described(void *context, const char *pattern, struct fay_query_function *function,
			  struct fay_error *error)
{
	(void)context;
	if (strcmp(pattern, "test!described_function"))
		return fay_error_set(error, FAY_E_USAGE, "there is no %s", pattern);
	extern const char __executable_start[];
	function->fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	function->address =
		(uint64_t)((uintptr_t)described_function - (uintptr_t)__executable_start);
	function->count = 1;
	snprintf(function->path, sizeof(function->path), "this program");
	snprintf(function->name, sizeof(function->name), "described_function");
	return FAY_OK;
}

/* Each kind of read at several places. */
static void members_are_accepted(void **state)
{
	static const char *const queries[] = {
		"cluster.Function(\"test!described_function\").Count(e => e.thing->count == 1)",
		"cluster.Function(\"test!described_function\").Sum(e => "
		"e.thing->next->next->next->count + e.thing->count + e.number)",
		"from e in cluster.Function(\"test!described_function\") let t = e.thing where "
		"t->name == \"a\" || t->next->name.StartsWith(\"b\") "
		"group e by new { t->title, t->next->small, t->next->byte, t->two, t->colour, "
		"other = t->next->title } into g "
		"select new { g.Key, n = g.Count(), m = g.Max(x => x.thing->next->small) }",
		"from e in cluster.Function(\"test!described_function\") where e.thing != 0 select "
		"new { e.number, e.thing->next->name, e.thing->small, other = e.thing->next->small "
		"}",
	};
	size_t count = sizeof(queries) / sizeof(queries[0]);
	for (size_t i = 0; i < 2 * count; i++) {
		struct fay_query_options options = { .now = NOW,
						     .long_strings = i >= count,
						     .find = find_described };
		struct fay_error error = { 0 };
		struct fay_plan *plan;
		struct fay_buffer image;
		struct fay_verdict verdict;
		if (fay_query_plan_with(queries[i % count], &options, &plan, &error))
			fail_msg("%s", error.message);
		assert_true(plan->typed);
		compile(plan, &image);
		fay_verify(image.data, image.size, NULL, &verdict);
		if (verdict.outcome != FAY_ACCEPTED)
			fay_verdict_print(stderr, queries[i % count], &verdict);
		assert_int_equal(verdict.outcome, FAY_ACCEPTED);
		fay_verdict_deinit(&verdict);
		fay_buffer_deinit(&image);
		fay_plan_destroy(plan);
	}
	assert_int_equal(described_function(NULL, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(members_are_accepted),
					    cmocka_unit_test(cases_are_accepted) };
	/* where the files are that cases name */
	return chdir(FAY_QUERY_CASES) ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
