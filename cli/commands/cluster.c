/* SPDX-License-Identifier: MIT */
/* `fay cluster`: keys, and the machines that are there. */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/options/options.h"
#include "cli/output/output.h"

#include "commands.h"

static const char usage_text[] =
	"usage: fay cluster keygen NAME\n"
	"       fay cluster status --cluster URL --key FILE [--json] [--await N]\n"
	"       fay cluster top --cluster URL --key FILE [--every 1s]\n";

static int usage(void)
{
	fputs(usage_text, stderr);
	return FAY_E_USAGE;
}

static int keygen(int argc, char **argv)
{
	struct fay_error error;
	struct fay_keys keys;
	if (argc != 2)
		return usage();
	if (fay_keys_init(&error))
		return fay_cli_fail(&error);
	fay_keys_make(&keys);
	if (fay_keys_write(argv[1], &keys, &error))
		return fay_cli_fail(&error);
	char text[FAY_KEY_HEX + 1];
	fay_keys_hex(text, keys.public);
	printf("%s\n", text);
	fprintf(stderr,
		"fay: keep %s.key secret; %s.pub goes into signers files (clients) and machines "
		"files (agents)\n",
		argv[1], argv[1]);
	return FAY_OK;
}

static void print_json(const struct fay_machine *machine)
{
	char key[FAY_KEY_HEX + 1];
	fay_keys_hex(key, machine->key);
	fay_json_text(stdout, "{\"type\":\"machine\",\"name\":", machine->name);
	printf(",\"agent\":\"%016" PRIx64 "\",\"key\":\"%s\",\"kernel\":", machine->id, key);
	fay_json_string(stdout, machine->kernel, strlen(machine->kernel));
	fay_json_text(stdout, ",\"labels\":", machine->labels);
	fay_json_text(stdout, ",\"version\":", machine->version);
	printf(",\"cpus\":%u,\"queries\":%u,\"clock_offset_ns\":", machine->cpus, machine->queries);
	if (machine->clock_error == UINT64_MAX)
		printf("null,\"clock_error_ns\":null}\n");
	else
		printf("%" PRId64 ",\"clock_error_ns\":%" PRIu64 "}\n", machine->clock_offset,
		       machine->clock_error);
}

static void print_machines(const struct fay_root *root, bool json)
{
	if (!json)
		printf("%-20s %-32s %5s %8s %14s  %s\n", "machine", "kernel", "CPUs", "queries",
		       "clock", "labels");
	for (size_t i = 0; i < fay_root_machine_count(root); i++) {
		const struct fay_machine *machine = fay_root_machine(root, i);
		char clock[32] = "?";
		if (json) {
			print_json(machine);
			continue;
		}
		if (machine->clock_error != UINT64_MAX)
			snprintf(clock, sizeof(clock), "%+.3f ms",
				 (double)machine->clock_offset / 1e6);
		printf("%-20s %-32s %5u %8u %14s  %s\n", machine->name, machine->kernel,
		       machine->cpus, machine->queries, clock, machine->labels);
	}
}

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	interrupted = number;
}

/* Until it is interrupted; each picture asks anew, so machines that are gone disappear. */
static int show(struct fay_cli_cluster *cluster, const struct fay_keys *keys, bool json, bool again,
		uint64_t every, struct fay_error *error)
{
	struct fay_root *root;
	do {
		if (fay_root_create(&cluster->root, keys, NULL, NULL, 0, NULL, &root, error))
			return error->code;
		if (again && isatty(STDOUT_FILENO))
			printf("\033[H\033[J");
		print_machines(root, json);
		fflush(stdout);
		fay_root_destroy(root);
		struct timespec pause = { .tv_sec = (time_t)(every / 1000000000u),
					  .tv_nsec = (long)(every % 1000000000u) };
		if (again)
			nanosleep(&pause, NULL);
	} while (again && !interrupted);
	return FAY_OK;
}

static int status(int argc, char **argv, bool again)
{
	static const struct fay_cli_option own[] = { { 'j', "json", NULL, "" },
						     { 'e', "every", "T", "" },
						     { 0 } };
	struct option options[FAY_CLI_OPTIONS_MAX];
	struct fay_cli_cluster cluster;
	struct fay_error error;
	struct fay_keys keys;
	uint64_t every = 1000000000u;
	bool json = false;
	int option;
	fay_cli_long_options(own, options + fay_cli_long_options(fay_cli_cluster_options, options));
	fay_cli_cluster_init(&cluster);
	while ((option = fay_cli_getopt(argc, argv, "", options)) != -1) {
		if (option == 'j')
			json = true;
		else if (option == 'e' ? !fay_cli_duration(optarg, &every)
				       : fay_cli_cluster_option(&cluster, "fay cluster", option,
								optarg) != FAY_OK)
			return usage();
	}
	if (optind < argc || !cluster.root.bus.url)
		return usage();
	if (again) {
		struct sigaction action = { .sa_handler = on_signal };
		sigaction(SIGINT, &action, NULL);
		sigaction(SIGTERM, &action, NULL);
	}
	if (fay_cli_cluster_keys(&cluster, &keys, &error) ||
	    show(&cluster, &keys, json, again, every, &error))
		return fay_cli_fail(&error);
	return FAY_OK;
}

int fay_cluster_main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	if (!strcmp(what, "keygen"))
		return keygen(argc - 1, argv + 1);
	if (!strcmp(what, "status") || !strcmp(what, "top"))
		return status(argc - 1, argv + 1, !strcmp(what, "top"));
	if (!strcmp(what, "--help") || !strcmp(what, "-h")) {
		printf("%s\n", usage_text);
		fay_cli_help(fay_cli_cluster_options, "");
		return FAY_OK;
	}
	return usage();
}
