/* SPDX-License-Identifier: MIT */
/* `fay explain 'QUERY'`: the plan, tier by tier; nothing is installed. */
#include <getopt.h>

#include "cli.h"

int fay_explain_main(int argc, char **argv)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' },
						 { "help", no_argument, NULL, 'h' },
						 { 0 } };
	bool json = false;
	int option;
	optind = 1;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'h') {
			printf("usage: fay explain [--json] 'QUERY'\n");
			return FAY_OK;
		}
		if (option != 'j')
			return FAY_E_USAGE;
		json = true;
	}
	if (argc - optind != 1) {
		fprintf(stderr, "usage: fay explain [--json] 'QUERY'\n");
		return FAY_E_USAGE;
	}
	struct fay_plan *plan;
	struct fay_error error;
	if (fay_query_plan(argv[optind], fay_cli_realtime(), &plan, &error))
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
