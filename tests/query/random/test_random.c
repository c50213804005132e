/* SPDX-License-Identifier: MIT */
/*
 * Random queries over random event streams. The query's probes run over the events, as two threads
 * would have them, the rows go through the aggregator and the root stage; a plain reference, which
 * keeps all events and knows nothing of query/, must give the same rows in the same order. FAY_SEED
 * sets the seed (printed), the first argument how many queries there are; each meets five streams.
 * `kernel N`: as BPF programs, over the system calls of a child, each over 25 streams. `saved N`:
 * over saved traces, each over five files. At the end stands how many pairs of a query and a stream
 * had each operator of the language; of many queries none may be missing.
 */
#include "kernel_stream.h"
#include "random_kernel.h"
#include "random_saved.h"
#include "tests/query/reference/answers.h"
#include "tests/query/reference/shares.h"
#include "tests/query/reference/stacks.h"
#include "tests/query/reference/streams.h"

#define STREAMS 5
#define MANY 200 /* queries that have every operator */

static unsigned queries = 1000;

static void begin(void)
{
	const char *seed = getenv("FAY_SEED");
	random_state = seed ? strtoull(seed, NULL, 0) | 1 : 0x5eed;
	print_message("FAY_SEED=%#llx\n", (unsigned long long)random_state);
}

static void end(unsigned pairs, enum queries about)
{
	size_t estimates;
	double error = estimates_error(&estimates);
	const char *missing = print_shares(about);
	print_message("%u pairs of a query and a stream; %zu estimates of 40 different values or "
		      "more, off by %.2f %% (root of the mean square)\n",
		      pairs, estimates, 100 * error);
	if (missing && queries >= MANY)
		fail_msg("no query had %s", missing);
	/* in the kernel values hang on the process's number, so each run has others */
	if (about != QUERIES_OF_KERNEL && estimates >= 100 && error > 0.023)
		fail_msg("DistinctCount promises a standard error of 2.3 %%");
}

static void random_query(void)
{
	static struct stream stream;
	const struct source *source = &program_sources[below((unsigned)program_source_count)];
	struct shape shape;
	struct running r;
	events_have = source->have;
	random_shape(&shape);
	char *text = text_of_shape(&shape, source->text);
	if (source->where == END)
		shape.without = strstr(text, "Failed") ? 0 : EVENT_FAILED;
	start(&r, text);
	for (unsigned i = 0; i < STREAMS; i++) {
		struct fay_result merged;
		random_stream(source, &stream);
		run_stream(&r, source, &stream, &merged);
		check_answer(&(struct asked){ &shape, text, r.plan, &stream }, &merged);
		fay_result_deinit(&merged);
	}
	stop(&r);
	count_operators(text, STREAMS);
	free(text);
	free_shape(&shape);
}

static void random_queries(void **unused)
{
	(void)unused;
	begin();
	for (unsigned q = 0; q < queries; q++)
		random_query();
	end(queries * STREAMS, QUERIES_OF_PROGRAMS);
}

static void random_kernel_queries(void **unused)
{
	(void)unused;
	begin();
	end(run_kernel_queries(queries), QUERIES_OF_KERNEL);
}

static void random_saved_queries(void **unused)
{
	(void)unused;
	begin();
	end(run_saved_queries(queries), QUERIES_OF_SAVED);
}

static int prepare(void **unused)
{
	(void)unused;
	on_try_read = read_stack;
	return prepare_jit();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(random_queries) };
	const struct CMUnitTest kernel_tests[] = { cmocka_unit_test(random_kernel_queries) };
	const struct CMUnitTest saved_tests[] = { cmocka_unit_test(random_saved_queries) };
	bool kernel = argc > 1 && strcmp(argv[1], "kernel") == 0,
	     saved = argc > 1 && strcmp(argv[1], "saved") == 0;
	const char *count = kernel || saved ? argv[2] : argv[1],
		   *why = kernel ? kernel_stream_refused() : NULL;
	if (count)
		queries = (unsigned)strtoul(count, NULL, 0);
	if (why) {
		printf("SKIPPED: %s\n", why);
		return 77;
	}
	if (saved)
		return cmocka_run_group_tests_name("random queries over saved traces", saved_tests,
						   NULL, NULL);
	return kernel ? cmocka_run_group_tests_name("random queries in the kernel", kernel_tests,
						    NULL, NULL)
		      : cmocka_run_group_tests_name("random queries", tests, prepare, NULL);
}
