/* SPDX-License-Identifier: MIT */
/*
 * `fay`: one command, one subcommand a job. Results go to standard output, everything else to
 * standard error; exit codes are those of fay/error.h: 0 done or accepted, 1 rejected or the query
 * cannot run, 2 usage, 3 a limit was hit, 4 internal.
 */
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/doctor/doctor.h"
#include "cli/export/export.h"
#include "cli/trace/trace.h"
#include "cli/trust/command.h"
#include "process/process.h"
#include "query/debug/debug.h"

#include "fay/compiler.h"
#include "fay/query.h"
#include "verifier/inspect/command.h"
#include "verifier/review/command.h"

extern const char fay_commit[]; /* commit.cmake; "": unknown */

static int help_main(int argc, char **argv);

static const struct command {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *usage;
} commands[] = {
	{ "trace", fay_trace_main,
	  "trace [-p PID | --comm NAME] [--for 10s] [--every 1s] [--json | --csv] [-o FILE] "
	  "'QUERY' [-- COMMAND...]" },
	{ "verify", fay_verify_main, "verify [--json] [--policy FILE] [--smt2 DIR] IMAGE" },
	{ "inspect", fay_inspect_main, "inspect [--json] [--att] IMAGE" },
	{ "diff", fay_diff_main, "diff [--json] [--factor N] OLD NEW" },
	{ "policy", fay_policy_main,
	  "policy init IMAGE | policy check FILE | policy explain FILE" },
	{ "sign", fay_sign_main, "sign IMAGE --key FILE [--policy FILE]" },
	{ "trust", fay_trust_main,
	  "trust add NAME KEY | list | revoke NAME | require N | log FILE | check IMAGE" },
	{ "log", fay_log_main, "log verify [FILE] [--head N:HASH] | log show [--json] [FILE]" },
	{ "cc", fay_cc_main, "cc probe.c -o IMAGE" },
	{ "export", fay_export_main, "export --ctf DIRECTORY SAVED.fay..." },
	{ "list", fay_list_main, "list [-p PID | --kernel | FILE] 'module!glob'" },
	{ "explain", fay_explain_main, "explain [--json] 'QUERY'" },
	{ "cluster", fay_cluster_main, "cluster keygen NAME | cluster status | cluster top" },
	{ "attach", fay_attach_main,
	  "attach ID --cluster URL --key FILE [--json | --csv] [--stop]" },
	{ "kernel", fay_kernel_main, "kernel allow [FILE] | kernel deny | kernel show" },
	{ "doctor", fay_doctor_main, "doctor [--json] [--clean]" },
	{ "bench", fay_bench_main,
	  "bench [--install-peers] [--list] [--rounds N] [--out FILE.json]" },
	{ "help", help_main, "help [COMMAND]" },
};

static void print_usage(FILE *out)
{
	fprintf(out, "usage:\n");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		fprintf(out, "    fay %s\n", commands[i].usage);
	fprintf(out, "\n"
		     "for example, the sizes of a server's reads, live:\n"
		     "    fay trace --comm redis-server --for 10s \\\n"
		     "        'from io in cluster.Function(\"libc!read\") group io by "
		     "io.Arg(2)/1024 into g\n"
		     "         select new { kilobytes = g.Key, reads = g.Count() }'\n");
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(name, commands[i].name))
			return &commands[i];
	return NULL;
}

static int unknown_command(const char *name)
{
	const char *names[sizeof(commands) / sizeof(commands[0])], *nearest;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		names[i] = commands[i].name;
	nearest = fay_query_suggest(name, names, sizeof(commands) / sizeof(commands[0]));
	fprintf(stderr, "fay: unknown command '%s'%s%s%s\n", name,
		nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
	print_usage(stderr);
	return FAY_E_USAGE;
}

/* `fay help COMMAND` is `fay COMMAND --help`. */
static int help_main(int argc, char **argv)
{
	char title[64], option[] = "--help";
	if (argc < 2 || !strcmp(argv[1], "help")) {
		print_usage(stdout);
		return FAY_OK;
	}
	const struct command *command = find_command(argv[1]);
	if (!command)
		return unknown_command(argv[1]);
	snprintf(title, sizeof(title), "fay %s", command->name);
	char *arguments[] = { title, option, NULL };
	return command->main(2, arguments);
}

int main(int argc, char **argv)
{
	fay_messages_guard();
	fay_names_read_by(fay_demangled_matches);
	fay_places_read_by(fay_debug_places_read);
	if (argc < 2) {
		print_usage(stderr);
		return FAY_E_USAGE;
	}
	const char *name = argv[1];
	if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		name = "help";
	if (!strcmp(name, "--version")) {
		printf(fay_commit[0] ? "fay %s (%s)\n" : "fay %s\n", FAY_VERSION, fay_commit);
		return FAY_OK;
	}
	const struct command *command = find_command(name);
	if (!command)
		return unknown_command(argv[1]);
	char title[64];
	snprintf(title, sizeof(title), "fay %s", name);
	argv[1] = title;
	return command->main(argc - 1, argv + 1);
}
