/* SPDX-License-Identifier: MIT */
/* `fay explain 'QUERY'`: the plan, tier by tier; nothing is installed. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <llvm-c/Core.h>

#include "cli/options/options.h"
#include "cli/output/output.h"
#include "cli/queries/queries.h"
#include "fay/bpf.h"
#include "fay/clock.h"
#include "process/process.h"
#include "trace/functions/functions.h"
#include "trace/kernel/kernel.h"

#include "commands.h"

/* The query's probes as they would be run in a process: compiled and verified. Both are the
 * caller's if the compiler makes an image. */
static int compile_and_verify(struct fay_plan *plan, struct fay_buffer *image,
			      struct fay_verdict *verdict, struct fay_error *error)
{
	struct fay_compile_options options = { .size = sizeof(options),
					       .unfuelled = plan->unfuelled,
					       .debug_lines = plan->extended };
	struct fay_policy policy;
	LLVMContextRef context = LLVMContextCreate();
	LLVMModuleRef module;
	int result = fay_plan_generate(plan, context, &module, error);
	if (!result)
		result = fay_compile_module(module, &plan->spec, &options, image, error);
	LLVMContextDispose(context);
	if (result)
		return result;
	fay_policy_default(&policy);
	fay_verify(image->data, image->size, &policy, verdict);
	return FAY_OK;
}

/* Nothing is installed. What the compiler or the verifier has against the probes `fay trace` says
 * at length. */
static void explain_dispatch(struct fay_plan *plan, const struct fay_function_search *functions,
			     bool json)
{
	pid_t pids[FAY_SEARCH_PROCESSES_MAX];
	size_t processes = fay_search_processes(functions, plan->process, pids);
	struct fay_buffer image = { 0 };
	struct fay_verdict verdict;
	struct fay_error error;
	int result = compile_and_verify(plan, &image, &verdict, &error);
	if (!json)
		printf("dispatch\n");
	if (result) {
		if (!json)
			printf("  the compiler refuses the probe: %s\n", error.message);
		return;
	}
	if (verdict.outcome != FAY_ACCEPTED) {
		if (!json)
			printf("  the verifier refuses the probe (%s)\n",
			       fay_rule_id(verdict.rejection.rule));
		processes = 0;
	} else if (json) {
		fay_dispatch_print_json(stdout, &verdict);
	} else {
		fay_dispatch_print(stdout, "  ", &verdict);
		printf("  256 or more functions with the same probes share a trampoline "
		       "(--share)\n");
	}
	for (size_t i = 0; i < processes; i++)
		fay_points_print(stdout, stderr, json, pids[i], &verdict,
				 fay_plan_trap_refusal(plan) ? 0 : fay_bpf_trap_exits(false));
	fay_verdict_deinit(&verdict);
	fay_buffer_deinit(&image);
}

/* Instructions that one call executes at most. */
static uint64_t worst_case(const struct fay_verdict *verdict)
{
	uint64_t most = 0;
	for (uint32_t i = 0; i < verdict->probe_count; i++) {
		const struct fay_probe_facts *facts = &verdict->probes[i];
		if (facts->kind != FAY_PROBE_BEGIN && facts->kind != FAY_PROBE_END &&
		    facts->kind != FAY_PROBE_TIMER && facts->worst_instructions > most)
			most = facts->worst_instructions;
	}
	return most;
}

/* "15 functions in 1 process, 2 cannot be traced, at most 12 instructions a call, " */
static int print_brief_points(const struct fay_plan *plan, const struct fay_verdict *verdict,
			      const struct fay_function_search *functions, struct fay_error *error)
{
	pid_t pids[FAY_SEARCH_PROCESSES_MAX];
	size_t processes = fay_search_processes(functions, plan->process, pids), opened = 0;
	uint32_t traps = fay_plan_trap_refusal(plan) ? 0 : fay_bpf_trap_exits(false);
	struct fay_points points = { 0 };
	int result = FAY_OK;
	for (size_t i = 0; i < processes; i++) {
		int code = fay_points_count(pids[i], verdict, traps, &points, error);
		result = code ? code : result;
		opened += !code;
	}
	if (processes && !opened)
		return result;
	if (opened)
		printf("%zu function%s in %zu process%s, ", points.functions,
		       points.functions == 1 ? "" : "s", opened, opened == 1 ? "" : "es");
	if (points.traps)
		printf("%zu by traps, ", points.traps);
	if (points.untraced)
		printf("%zu cannot be traced, ", points.untraced);
	printf("at most %" PRIu64 " instructions a call, ", worst_case(verdict));
	return FAY_OK;
}

/* A single line. */
static int print_brief(struct fay_plan *plan, const struct fay_function_search *functions)
{
	struct fay_buffer image = { 0 };
	struct fay_verdict verdict = { 0 };
	struct fay_error error;
	int result = FAY_OK;
	if (plan->domain == DOMAIN_USER) {
		result = compile_and_verify(plan, &image, &verdict, &error);
		if (!result && verdict.outcome != FAY_ACCEPTED)
			result = fay_error_set(&error, FAY_E_REFUSED,
					       "the verifier refuses the probe (%s)",
					       fay_rule_id(verdict.rejection.rule));
		else if (!result)
			result = print_brief_points(plan, &verdict, functions, &error);
		fay_verdict_deinit(&verdict);
		fay_buffer_deinit(&image);
	}
	if (result)
		return fay_cli_fail(&error);
	fay_plan_print_brief(stdout, plan);
	putchar('\n');
	return FAY_OK;
}

static const char usage[] = "usage: fay explain [--json | --brief] [-p PID | --comm NAME]\n"
			    "                   ('QUERY' | -f FILE [ARGUMENTS]) [-- COMMAND...]\n";

struct explain {
	struct fay_function_search functions;
	const char *comm, *query, *file;
	char **arguments; /* of `file` */
	size_t argument_count;
	pid_t pid;
	bool json, brief, help;
};

/* false: the words are off. */
static bool read_options(struct explain *explain, int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },      { "brief", no_argument, NULL, 'b' },
		{ "pid", required_argument, NULL, 'p' }, { "comm", required_argument, NULL, 'c' },
		{ "analyze", no_argument, NULL, 'A' },   { "file", required_argument, NULL, 'f' },
		{ "help", no_argument, NULL, 'h' },      { 0 }
	};
	struct fay_function_search *functions = &explain->functions;
	char *end;
	int option;
	/* What follows `--` is the command, whatever it looks like. */
	int own = 1;
	while (own < argc && strcmp(argv[own], "--"))
		own++;
	functions->command = own + 1 < argc ? argv + own + 1 : NULL;
	optind = 1;
	while ((option = fay_cli_getopt(own, argv, "p:f:", options)) != -1) {
		if (option == 'p' && (explain->pid = (pid_t)strtol(optarg, &end, 10)) > 0 &&
		    !*end) {
			functions->pids = &explain->pid;
			functions->pid_count = 1;
		} else if (option == 'c') {
			explain->comm = optarg;
			functions->comms = &explain->comm;
			functions->comm_count = 1;
		} else if (option == 'f') {
			explain->file = optarg;
		} else if (option == 'j') {
			explain->json = true;
		} else if (option == 'b') {
			explain->brief = true;
		} else if (option == 'h') {
			explain->help = true;
			return true;
		} else {
			if (option == 'A')
				fputs("fay explain: a plan is measured as it runs: use fay trace "
				      "--analyze 'QUERY' ...\n",
				      stderr);
			return false;
		}
	}
	if (explain->file) {
		explain->arguments = argv + optind;
		explain->argument_count = (size_t)(own - optind);
		return own == argc || functions->command;
	}
	explain->query = argv[optind];
	if (optind == own)
		fputs("fay explain: a query is missing\n", stderr);
	else if (own - optind > 1)
		fprintf(stderr,
			"fay explain: unexpected argument '%s': quote the query, so that it is one "
			"argument; a command goes after `--`\n",
			argv[optind + 1]);
	return own - optind == 1 && (own == argc || functions->command);
}

/* It is tried in the kernel. */
static void find_back_end(struct fay_plan *plan, char text[FAY_BACK_END_SIZE])
{
	if (plan->domain == DOMAIN_KERNEL)
		plan->back_end = fay_kernel_back_end(plan->kernel, text);
	else if (plan->kernel_sides) /* of a join: its sides there have one back end */
		plan->back_end = fay_kernel_back_end(
			fay_plan_kernel_kind(plan, (unsigned)__builtin_ctz(plan->kernel_sides)),
			text);
}

/* What runs where, and in programs also how. */
static int print_plan(struct explain *explain)
{
	char back_end[FAY_BACK_END_SIZE];
	struct fay_plan *plan;
	struct fay_error error;
	struct fay_query_options options = { .now = fay_realtime(),
					     .extend = true,
					     .long_strings = true,
					     .long_kernel_strings = true,
					     .find = fay_search_function,
					     .find_context = &explain->functions };
	if (fay_query_plan_with(explain->query, &options, &plan, &error)) {
		fay_cli_query_hint(explain->query, &error);
		fay_query_file_name(explain->file, &error);
		return fay_cli_fail(&error);
	}
	if (!explain->brief)
		find_back_end(plan, back_end);
	int result = FAY_OK;
	if (explain->brief)
		result = print_brief(plan, &explain->functions);
	else if (explain->json)
		fay_plan_print_json(stdout, plan);
	else
		fay_plan_print(stdout, plan);
	if (plan->domain == DOMAIN_USER && !explain->brief)
		explain_dispatch(plan, &explain->functions, explain->json);
	fay_plan_destroy(plan);
	if (fflush(stdout)) {
		fprintf(stderr, "fay: cannot write: %m\n");
		return FAY_E_INTERNAL;
	}
	return result;
}

int fay_explain_main(int argc, char **argv)
{
	struct explain explain = { 0 };
	struct fay_error error;
	char *text = NULL;
	if (!read_options(&explain, argc, argv) || explain.help) {
		fputs(usage, explain.help ? stdout : stderr);
		return explain.help ? FAY_OK : FAY_E_USAGE;
	}
	if (explain.pid && !fay_process_of_thread(explain.pid)) {
		fprintf(stderr, "fay: there is no process %d\n", (int)explain.pid);
		return FAY_E_REFUSED;
	}
	if (explain.file && fay_query_file_read(explain.file, explain.arguments,
						explain.argument_count, &text, &error))
		return fay_cli_fail(&error);
	if (text)
		explain.query = text;
	int result = print_plan(&explain);
	free(text);
	return result;
}
