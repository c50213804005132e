/* SPDX-License-Identifier: MIT */
/*
 * Queries that call functions of C: what the verified image computes of random events beside the
 * same functions called natively, and what is refused, where. Refusals by the checker are golden
 * cases (cases/bad_extend_*.q).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <llvm-c/Core.h>

#include "fay/query.h"
#include "fay/verify.h"
#include "tests/compiler/harness.h"
#include "tests/query/reference/trees.h"

#include "extend/values.c"

#define NOW 1700000000000000000u
#define EVENTS 400

/* The image of a query that calls functions of extend/FILE; the error's code. */
static int compile(const char *file, const char *query, struct fay_plan **plan,
		   struct fay_buffer *image, struct fay_error *error)
{
	char text[4096];
	struct fay_query_options options = { .now = NOW, .extend = true };
	LLVMModuleRef module;
	snprintf(text, sizeof(text), "extend \"%s\"\n%s", file, query);
	fay_buffer_init(image);
	if (fay_query_plan_with(text, &options, plan, error))
		fail_msg("%s\n%s", text, error->message);
	LLVMContextRef context = LLVMContextCreate();
	struct fay_compile_options compiled = { .size = sizeof(compiled),
						.unfuelled = (*plan)->extended,
						.debug_lines = (*plan)->extended };
	int code = fay_plan_generate(*plan, context, &module, error);
	if (!code)
		code = fay_compile_module(module, &(*plan)->spec, &compiled, image, error);
	LLVMContextDispose(context);
	return code;
}

/* What functions give of an event: as a query asks for it, and natively. */
#define ARG(n) e->arg[n]
#define CASES(X)                                                                                   \
	X("mix(x.Arg(0), x.Arg(1))", mix((long)ARG(0), ARG(1)))                                    \
	X("scale(x.Arg(0), x.Arg(1))", scale((int)ARG(0), (unsigned)ARG(1)))                       \
	X("narrow(x.Arg(2), x.Arg(3))", narrow((short)ARG(2), (unsigned char)ARG(3)))              \
	X("wide(x.Arg(4), x.Arg(5) + 1)", wide((char)ARG(4), (unsigned short)(ARG(5) + 1)))        \
	X("chosen(is_odd(x.Arg(0)), x.Arg(1), x.Arg(2))",                                          \
	  chosen(is_odd((int64_t)ARG(0)), (unsigned)ARG(1), (int)ARG(2)))                          \
	X("hash(x.comm, x.tid)", (int64_t)hash(e->comm, e->tid))                                   \
	X("length(x.comm) * 3", length((char *)e->comm) * 3)                                       \
	X("hash(x.comm == \"redis\" ? \"a\" : \"bcdefghijklmnop\", 5) % 1000",                     \
	  (int64_t)hash(strcmp(e->comm, "redis") ? "bcdefghijklmnop" : "a", 5) % 1000)             \
	X("colour_of(x.cpu)", colour_of(e->cpu))                                                   \
	X("of_colour(colour_of(x.cpu))", of_colour(colour_of(e->cpu)))                             \
	X("looked_up(x.Arg(0)) - looked_up(x.tid)", looked_up((long)ARG(0)) - looked_up(e->tid))   \
	X("digits(x.Arg(3))", digits(ARG(3)))                                                      \
	X("six(x.Arg(0), x.Arg(1), x.Arg(2), x.Arg(3), is_odd(x.Arg(4)), x.Arg(5))",               \
	  six((long)ARG(0), (int)ARG(1), (short)ARG(2), (char)ARG(3), is_odd((long)ARG(4)),        \
	      (unsigned)ARG(5)))                                                                   \
	X("large(x.Arg(0), large(x.Arg(1), large(x.Arg(2), large(x.tid, 7))))",                    \
	  (int64_t)large(ARG(0), large(ARG(1), large(ARG(2), large(e->tid, 7)))))

#define TEXT(text, value) text,
static const char *const texts[] = { CASES(TEXT) };
#define CASE_COUNT (sizeof(texts) / sizeof(texts[0]))

static void call_natively(const struct fay_event *e, uint64_t values[CASE_COUNT])
{
	unsigned i = 0;
#define VALUE(text, value) values[i++] = (uint64_t)(int64_t)(value);
	CASES(VALUE)
}

static void accept(const char *name, const struct fay_buffer *image)
{
	struct fay_verdict verdict;
	fay_verify(image->data, image->size, NULL, &verdict);
	if (verdict.outcome != FAY_ACCEPTED) {
		fay_verdict_print(stderr, name, &verdict);
		fail_msg("%s", name);
	}
	fay_verdict_deinit(&verdict);
}

/* In `where`, `let` and an aggregate, each of them alone. */
static void values(void **state)
{
	for (unsigned c = 0; c < CASE_COUNT; c++) {
		char query[1024];
		struct fay_error error = { 0 };
		struct fay_plan *plan;
		struct fay_buffer image;
		struct loaded loaded;
		uint64_t sum = 0, native[CASE_COUNT];
		snprintf(query, sizeof(query),
			 "(from x in cluster.Function(\"a!b\") let v = %s where v != 1 && "
			 "is_odd(x.cpu) select v).Sum()",
			 texts[c]);
		if (compile("values.c", query, &plan, &image, &error))
			fail_msg("%s: %s", texts[c], error.message);
		accept(texts[c], &image);
		image_load(&image, &loaded);
		for (unsigned i = 0; i < EVENTS; i++) {
			random_event(loaded.event);
			call_natively(loaded.event, native);
			sum += native[c] != 1 && is_odd(loaded.event->cpu) ? native[c] : 0;
			image_call(&loaded, 0);
			uint64_t is;
			memcpy(&is, loaded.local, sizeof(is));
			if (is != sum)
				fail_msg("%s: %lld, not %lld", texts[c], (long long)is,
					 (long long)sum);
		}
		image_unload(&loaded);
		fay_buffer_deinit(&image);
		fay_plan_destroy(plan);
	}
}

/* All at once as columns of a row; a large function is there once, and called. */
static void rows(void **state)
{
	char query[4096] = "from x in cluster.Function(\"a!b\") select new {";
	struct fay_error error = { 0 };
	struct fay_plan *plan;
	struct fay_buffer image;
	struct loaded loaded;
	uint64_t native[CASE_COUNT], is[CASE_COUNT];
	for (unsigned c = 0; c < CASE_COUNT; c++)
		snprintf(query + strlen(query), sizeof(query) - strlen(query), " v%u = %s,", c,
			 texts[c]);
	strcat(query, "}");
	if (compile("values.c", query, &plan, &image, &error))
		fail_msg("%s", error.message);
	accept("rows", &image);
	image_load(&image, &loaded);
	for (unsigned i = 0; i < EVENTS; i++) {
		random_event(loaded.event);
		call_natively(loaded.event, native);
		image_call(&loaded, 0);
		assert_int_equal(plan->spec.column_count, CASE_COUNT);
		for (unsigned c = 0; c < CASE_COUNT; c++) {
			memcpy(&is[c], helper_log.emitted + plan->spec.columns[c].offset,
			       sizeof(is[c]));
			if (is[c] != native[c])
				fail_msg("%s: %lld, not %lld", texts[c], (long long)is[c],
					 (long long)native[c]);
		}
	}
	image_unload(&loaded);
	fay_buffer_deinit(&image);
	fay_plan_destroy(plan);
}

/* Size of the code where one function is called so often. */
static size_t code_size(unsigned calls)
{
	char query[1024] = "cluster.Function(\"a!b\").Sum(x => large(x.Arg(0), 1)";
	struct fay_error error = { 0 };
	struct fay_plan *plan;
	struct fay_buffer image;
	struct loaded loaded;
	for (unsigned i = 1; i < calls; i++)
		snprintf(query + strlen(query), sizeof(query) - strlen(query),
			 " + large(x.Arg(%u), %u)", i % 6, i);
	strcat(query, ")");
	if (compile("values.c", query, &plan, &image, &error))
		fail_msg("%s", error.message);
	accept(query, &image);
	image_load(&image, &loaded);
	size_t size = loaded.text_size;
	image_unload(&loaded);
	fay_buffer_deinit(&image);
	fay_plan_destroy(plan);
	return size;
}

static void large_functions_are_called(void **state)
{
	size_t once = code_size(1), often = code_size(16);
	print_message("called once: %zu bytes of code, 16 times: %zu\n", once, often);
	assert_true(often < 4 * once);
}

/* By the compiler, with the file's line. */
static void refused_by_compiler(void **state)
{
	static const struct {
		const char *call, *place, *says;
	} cases[] = {
		{ "keeps(x.tid)", "hostile.c:21:13", "calls is a static variable" },
		{ "emits(x.tid)", "hostile.c:30:9", "fay_emit is for probes" },
		{ "address(x.tid)", "hostile.c:36:11", "fay_emit is for probes" },
		{ "allocates(x.tid)", "hostile.c:42:18", "call of malloc" },
		{ "recurses(x.tid)", "hostile.c:47:26", "recursion through recurses;" },
		{ "assembles(x.tid)", "hostile.c:52:2", "inline assembly" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char query[256];
		struct fay_error error = { 0 };
		struct fay_plan *plan;
		struct fay_buffer image;
		snprintf(query, sizeof(query), "cluster.Function(\"a!b\").Sum(x => %s)",
			 cases[i].call);
		assert_int_equal(compile("hostile.c", query, &plan, &image, &error), FAY_E_REFUSED);
		if (!strstr(error.message, cases[i].place) || !strstr(error.message, cases[i].says))
			fail_msg("%s: expected %s ... %s, got %s", cases[i].call, cases[i].place,
				 cases[i].says, error.message);
		fay_buffer_deinit(&image);
		fay_plan_destroy(plan);
	}
}

/* Nothing counts rounds of loops here: that they end is for the verifier to see, and where they do
 * not it names the line. */
static void refused_by_verifier(void **state)
{
	static const struct {
		const char *call, *rule; /* NULL: accepted */
		unsigned first, last; /* lines of the function; 0: the whole probe is the culprit */
	} cases[] = { { "endless(x.tid)", "TRM-LOOP", 5, 11 },
		      { "too_long(x.tid)", "POL-INSTRUCTIONS", 0, 0 },
		      { "reads_anywhere(x.Arg(0))", NULL, 0, 0 } };
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char query[256];
		struct fay_error error = { 0 };
		struct fay_plan *plan;
		struct fay_buffer image;
		struct fay_verdict verdict;
		snprintf(query, sizeof(query), "cluster.Function(\"a!b\").Sum(x => %s)",
			 cases[i].call);
		if (compile("hostile.c", query, &plan, &image, &error))
			fail_msg("%s: %s", cases[i].call, error.message);
		fay_verify(image.data, image.size, NULL, &verdict);
		const struct fay_rejection *r = &verdict.rejection;
		if (!cases[i].rule) {
			assert_int_equal(verdict.outcome, FAY_ACCEPTED);
		} else {
			assert_int_not_equal(verdict.outcome, FAY_ACCEPTED);
			assert_string_equal(fay_rule_id(r->rule), cases[i].rule);
		}
		if (cases[i].first) {
			assert_non_null(r->source_file);
			assert_string_equal(r->source_file, "hostile.c");
			assert_in_range(r->source_line, cases[i].first, cases[i].last);
		}
		fay_verdict_deinit(&verdict);
		fay_buffer_deinit(&image);
		fay_plan_destroy(plan);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(rows),
		cmocka_unit_test(large_functions_are_called),
		cmocka_unit_test(refused_by_compiler),
		cmocka_unit_test(refused_by_verifier),
	};
	const char *seed = getenv("FAY_SEED");
	random_state = seed ? strtoull(seed, NULL, 0) | 1 : 0x5eed;
	print_message("FAY_SEED=%#llx\n", (unsigned long long)random_state);
	return chdir(FAY_QUERY_EXTEND) ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
