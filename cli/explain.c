/* SPDX-License-Identifier: MIT */
/* `fay explain 'QUERY'`: the plan, tier by tier; nothing is installed. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

int fay_explain_main(int argc, char **argv)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' },
						 { "pid", required_argument, NULL, 'p' },
						 { "comm", required_argument, NULL, 'c' },
						 { "help", no_argument, NULL, 'h' },
						 { 0 } };
	static const char usage[] = "usage: fay explain [--json] [-p PID | --comm NAME] 'QUERY' [-- COMMAND...]\n";
	struct fay_cli_functions functions = { 0 };
	const char *comm;
	pid_t pid;
	bool json = false;
	int option;
	optind = 1;
	while ((option = getopt_long(argc, argv, "+p:", options, NULL)) != -1) {
		char *end;
		if (option == 'h') {
			fputs(usage, stdout);
			return FAY_OK;
		}
		if (option == 'p' && (pid = (pid_t)strtol(optarg, &end, 10)) > 0 && !*end) {
			functions.pids = &pid;
			functions.pid_count = 1;
		} else if (option == 'c') {
			comm = optarg;
			functions.comms = &comm;
			functions.comm_count = 1;
		} else if (option == 'j') {
			json = true;
		} else {
			fputs(usage, stderr);
			return FAY_E_USAGE;
		}
	}
	bool has_command = argc - optind > 2 && !strcmp(argv[optind + 1], "--");
	if (argc - optind != 1 && !has_command) {
		fputs(usage, stderr);
		return FAY_E_USAGE;
	}
	struct fay_plan *plan;
	struct fay_error error;
	struct fay_query_options query = { .now = fay_cli_realtime(), .find = fay_cli_find_function, .find_context = &functions };
	functions.command = has_command ? argv + optind + 2 : NULL;
	if (fay_query_plan_with(argv[optind], &query, &plan, &error))
		return fay_cli_fail(&error);
	if (plan->domain == DOMAIN_KERNEL)
		plan->back_end = fay_cli_kernel_back_end(plan->kernel);
	if (json)
		fay_plan_print_json(stdout, plan);
	else
		fay_plan_print(stdout, plan);
	fay_plan_destroy(plan);
	if (fflush(stdout)) {
		fprintf(stderr, "fay: cannot write: %m\n");
		return FAY_E_INTERNAL;
	}
	return FAY_OK;
}
