/* SPDX-License-Identifier: MIT */
/*
 * From a query's text to verified code, in process: planning, code generation, guards and
 * optimisation, verification. Prints median and quartiles of processor time over ROUNDS of each of
 * a few typical queries, and the sizes of file and code.
 *
 *     fay_bench_query [ROUNDS [FILE]]     FILE: one JSON object a query, too
 *					   (bench/results/query_compile.json)
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <llvm-c/Core.h>

#include "fay/clock.h"
#include "fay/query.h"
#include "fay/verify.h"

static const char *const queries[][2] = {
	{ "the Fay paper's read sizes",
	  "from io in cluster.Function(\"libc!read\") where io.time < Now.AddMinutes(5) let size = "
	  "io.Arg(2) group io by size/1024 into g "
	  "select new { sizeInKilobytes = g.Key, countOfReadIOs = g.Count() }" },
	{ "a count", "cluster.Function(\"libc!malloc\").Count()" },
	{ "a histogram", "cluster.Function(\"libc!read\").Histogram(r => r.Arg(2))" },
	{ "by thread, three values",
	  "from w in cluster.Function(\"libc!write\") group w by w.tid into g "
	  "select new { g.Key, n = g.Count(), bytes = g.Sum(w => w.Arg(2)), largest = g.Max(w => "
	  "w.Arg(2)) }" },
};

/* Of this process's processor time, so that a busy machine does not count. */
static double milliseconds(void)
{
	return (double)fay_clock(CLOCK_PROCESS_CPUTIME_ID) / 1e6;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* false, with a message, if the query cannot be planned, compiled or verified. */
static bool once(const char *text, double *compile, double *verify, size_t *file, size_t *code)
{
	struct fay_compile_options options = { .size = sizeof(options) };
	struct fay_error error = { 0 };
	struct fay_plan *plan;
	struct fay_buffer image;
	struct fay_verdict verdict;
	LLVMContextRef context;
	LLVMModuleRef module;
	double start = milliseconds();
	bool accepted;

	fay_buffer_init(&image);
	if (fay_query_plan(text, UINT64_C(1700000000000000000), &plan, &error)) {
		fprintf(stderr, "%s\n", error.message);
		return false;
	}
	context = LLVMContextCreate();
	if (fay_plan_generate(plan, context, &module, &error) ||
	    fay_compile_module(module, &plan->spec, &options, &image, &error)) {
		fprintf(stderr, "%s\n", error.message);
		return false;
	}
	LLVMContextDispose(context);
	*compile = milliseconds() - start;
	start = milliseconds();
	fay_verify(image.data, image.size, NULL, &verdict);
	*verify = milliseconds() - start;
	accepted = verdict.outcome == FAY_ACCEPTED;
	if (!accepted)
		fay_verdict_print(stderr, text, &verdict);
	*file = image.size;
	*code = accepted ? verdict.layout.code_size : 0;
	fay_verdict_deinit(&verdict);
	fay_buffer_deinit(&image);
	fay_plan_destroy(plan);
	return accepted;
}

static void print(const double *v, unsigned n)
{
	printf(" | %.1f [%.1f, %.1f]", v[n / 2], v[n / 4], v[n - 1 - n / 4]);
}

static void write_json(FILE *out, const char *name, const double *times, unsigned n, size_t file,
		       size_t code)
{
	static const char *const stages[] = { "compile", "verify", "together" };

	fprintf(out, "{\"query\":\"%s\",\"rounds\":%u", name, n);
	for (unsigned k = 0; k < 3; k++) {
		const double *v = times + k * n;

		fprintf(out, ",\"%s_ms\":%.2f,\"%s_ms_q1\":%.2f,\"%s_ms_q3\":%.2f", stages[k],
			v[n / 2], stages[k], v[n / 4], stages[k], v[n - 1 - n / 4]);
	}
	fprintf(out, ",\"file_bytes\":%zu,\"code_bytes\":%zu}\n", file, code);
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 31;
	double *times = calloc(3 * (size_t)rounds, sizeof(*times));
	FILE *json = argc > 2 ? fopen(argv[2], "w") : NULL;
	int result = 0;

	if (!rounds || !times)
		return 2;
	if (argc > 2 && !json) {
		perror(argv[2]);
		return 2;
	}
	printf("| query | compile, ms | verify, ms | together, ms | file | code, bytes |\n| --- | "
	       "--- | --- | --- | --- | --- |\n");
	for (size_t q = 0; q < sizeof(queries) / sizeof(*queries); q++) {
		size_t file = 0, code = 0;
		bool fine = true;

		for (unsigned i = 0; i < rounds && fine; i++) {
			fine = once(queries[q][1], &times[i], &times[rounds + i], &file, &code);
			times[2 * rounds + i] = times[i] + times[rounds + i];
		}
		if (!fine) {
			result = 1;
			continue;
		}
		printf("| %s", queries[q][0]);
		for (unsigned k = 0; k < 3; k++) {
			qsort(times + k * rounds, rounds, sizeof(*times), compare);
			print(times + k * rounds, rounds);
		}
		printf(" | %zu | %zu |\n", file, code);
		if (json)
			write_json(json, queries[q][0], times, rounds, file, code);
	}
	free(times);
	if (json && fclose(json)) {
		perror(argv[2]);
		return 2;
	}
	return result;
}
