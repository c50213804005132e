/* SPDX-License-Identifier: MIT */
/*
 * `fay`: one command, one subcommand a job. Results go to standard output, everything else to
 * standard error; exit codes are those of fay/error.h: 0 done or accepted, 1 rejected or the query
 * cannot run, 2 usage, 3 a limit was hit, 4 internal.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/doctor/doctor.h"
#include "cli/export/export.h"
#include "cli/lsp/lsp.h"
#include "cli/serve/serve.h"
#include "cli/shell/shell.h"
#include "cli/top/top.h"
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
	const char *what; /* it is for */
} commands[] = {
	{ "trace", fay_trace_main, "ask programs and the kernel, while they run" },
	{ "shell", fay_shell_main, "a prompt for queries; so is fay alone, on a terminal" },
	{ "top", fay_top_main, "processes, functions, latencies and stacks on a whole screen" },
	{ "serve", fay_serve_main, "results of queries for Prometheus, and as a live page" },
	{ "examples", fay_examples_main, "queries that are ready to run: list, show, run them" },
	{ "list", fay_list_main, "functions, USDT probes, lines and system calls to ask about" },
	{ "explain", fay_explain_main, "how a query would run, without running it" },
	{ "lsp", fay_lsp_main, "a language server, for editors of query files" },
	{ "doctor", fay_doctor_main, "what this machine can and cannot do, and why" },
	{ "attach", fay_attach_main, "the result of a query that goes on in a cluster" },
	{ "cluster", fay_cluster_main, "keys, and which machines are there" },
	{ "export", fay_export_main, "saved events for other tools, as CTF" },
	{ "kernel", fay_kernel_main, "who else than root may trace the kernel" },
	{ "verify", fay_verify_main, "whether a probe image is harmless, and what it can do" },
	{ "inspect", fay_inspect_main, "what a probe image is: tables, functions, cost" },
	{ "diff", fay_diff_main, "what a new probe image can do that the old one could not" },
	{ "policy", fay_policy_main, "the tightest policy for an image; what a policy allows" },
	{ "sign", fay_sign_main, "sign a probe image" },
	{ "trust", fay_trust_main, "whose signatures count on this machine" },
	{ "log", fay_log_main, "what was verified and installed on this machine" },
	{ "cc", fay_cc_main, "make an image of a probe, or an extension, in C" },
	{ "new", fay_new_main, "a folder to begin an extension with" },
	{ "bench", fay_bench_main, "what tracing costs here, beside other tracers" },
	{ "help", help_main, "the options of a command: fay help trace" },
};

static void print_usage(FILE *out)
{
	fprintf(out, "usage: fay COMMAND ...\n");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		fprintf(out, "    fay %-9s %s\n", commands[i].name, commands[i].what);
	fprintf(out, "\n"
		     "for example, the sizes of a server's reads, live:\n"
		     "    fay trace --comm redis-server --for 10s \\\n"
		     "        'from io in cluster.Function(\"libc!read\")\n"
		     "         group io by io.Arg(2)/1024 into g\n"
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

/* What a command has left to be written; who reads no more wants no more. */
static int written(int code)
{
	if (!fflush(stdout) || errno == EPIPE || code)
		return code;
	fprintf(stderr, "fay: cannot write: %s\n", strerror(errno));
	return FAY_E_INTERNAL;
}

int main(int argc, char **argv)
{
	fay_messages_guard();
	fay_names_read_by(fay_demangled_matches);
	fay_places_read_by(fay_debug_places_read);
	char shell[] = "fay shell", *alone[] = { shell, NULL };
	if (argc < 2 && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		return written(fay_shell_main(1, alone));
	if (argc < 2) {
		print_usage(stderr);
		return FAY_E_USAGE;
	}
	const char *name = argv[1];
	if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		name = "help";
	if (!strcmp(name, "--version")) {
		printf(fay_commit[0] ? "fay %s (%s)\n" : "fay %s\n", FAY_VERSION, fay_commit);
		return written(FAY_OK);
	}
	const struct command *command = find_command(name);
	if (!command)
		return unknown_command(argv[1]);
	char title[64];
	snprintf(title, sizeof(title), "fay %s", name);
	argv[1] = title;
	return written(command->main(argc - 1, argv + 1));
}
