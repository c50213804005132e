/* SPDX-License-Identifier: MIT */
/* The options of `fay trace`. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/queries/queries.h"

#include "parts.h"
#include "trace.h"

static const char usage_text[] =
	"usage: fay trace [-p PID | --comm NAME | --tid TID] [--wait]\n"
	"                 [--follow | --no-follow] [--for 10s] [--every 1s]\n"
	"                 [--json | --csv | --format NAME] [-o FILE] [--policy FILE]\n"
	"                 [--save FILE [--rotate 64MB]] [--budget 2%] [--only-inline]\n"
	"                 [--analyze] [--dry-run] [--timing] [--verbose]\n"
	"                 ('QUERY' | -f FILE [ARGUMENTS] | --probe IMAGE) [-- COMMAND...]\n";

static const char letters[] = "p:o:f:vh";
static const struct fay_cli_option own[] = {
	{ 'p', "pid", "PID", "a process; may be given several times" },
	{ 'c', "comm", "NAME",
	  "all processes of that name; may be given several times; combines with -p (a query about "
	  "the kernel needs neither: it is about the whole machine then)" },
	{ 'L', "cmdline", "REGEX", NULL },
	{ 'U', "user", "USER", NULL },
	{ 'G', "cgroup", "NAME",
	  "of these, or of all processes, those of which all holds: the command line, the user, a "
	  "part or path of the cgroup (nginx.service)" },
	{ 'T', "tid", "TID", "only this thread; may be given several times" },
	{ 'w', "wait", NULL,
	  "wait for what does not exist yet: processes of the name, modules that a process loads" },
	{ 'f', "file", "FILE",
	  "the query in a file, or an example (`fay examples`); what follows are values of its "
	  "parameters, in their order or as NAME=VALUE" },
	{ 'F', "follow", NULL,
	  "count forked children, too, and trace what they and the process execute" },
	{ 'N', "no-follow", NULL, "do not count children that processes of --comm NAME fork" },
	{ 'u', "for", "T", "end after T, such as 10s, 500ms, 2m" },
	{ 'e', "every", "T", "print the result so far each T" },
	{ 'j', "json", NULL, NULL },
	{ 'C', "csv", NULL, "machine-readable results" },
	{ 'W', "raw", NULL, "numbers without units in tables: 1024..2047, not 1.02..2.05 us" },
	{ 'o', "output", "FILE",
	  "write results to FILE, made anew, instead of standard output; messages stay on standard "
	  "error" },
	{ 'H', "heat-map", NULL,
	  "show histograms of groups as lines of a heat map; those of time windows always are" },
	{ 'O', "folded", NULL,
	  "stacks as lines `outermost;...;innermost COUNT`, for flame graphs" },
	{ 'E', "flame", NULL, "the same as a page with a flame graph, which needs no other file" },
	{ 'a', "against", "FILE",
	  "with --flame or --html: compare with stacks of --folded, kept before" },
	{ 'x', "html", "FILE",
	  "the result as a page: tables with bars, histograms, heat maps, flame graphs" },
	{ 'X', "svg", "FILE", "the same as a picture, but for flame graphs" },
	{ 'M', "format", "NAME",
	  "table, json, csv, folded, flame, html, svg as above; openmetrics, as `fay serve`; "
	  "chrome, events "
	  "with their times for Perfetto; pprof, stacks; otlp, metrics or spans for "
	  "OpenTelemetry" },
	{ 'S', "save", "FILE", "save events to FILE, for queries over file(\"FILE\")" },
	{ 'r', "rotate", "SIZE|T",
	  "with --save: begin a new file after this many bytes, such as 64MB, or this long, such "
	  "as "
	  "10m; the first full one is FILE.1. SIGUSR2 takes a snapshot of what is there" },
	{ 'k', "keep", "N", "with --rotate: keep only the last N files" },
	{ 'P', "probe", "IMAGE",
	  "a probe image, made by `fay cc` or a vendor, instead of a query" },
	{ 'y', "policy", "FILE", "limits and permissions for the probe (docs/policy.md)" },
	{ 'B', "budget", "P%",
	  "leave functions out, the costliest first, while probes take more than P% of the "
	  "processor time; none: never, and do not ask. Unless given: 5% where that is expected, "
	  "or "
	  "nothing is known yet" },
	{ 's', "share", "N",
	  "N or more functions with the same probes share one trampoline (256 unless given)" },
	{ 'A', "analyze", NULL,
	  "the plan with rows, bytes, nanoseconds and losses at each edge: at the end, with each "
	  "result of --every, and on SIGUSR1" },
	{ 'd', "dry-run", NULL,
	  "verify, find processes and functions, and predict the cost; trace nothing" },
	{ 'I', "only-inline", NULL,
	  "set no traps in the kernel where no jump fits: leave those out" },
	{ 't', "timing", NULL, "how long each stage took, on standard error" },
	{ 'v', "verbose", NULL,
	  "the verifier's report and how each probe is run, on standard error" },
	{ 'h', "help", NULL, "this text" },
	{ 'D', "detach", NULL,
	  "with --cluster: print an ID for `fay attach` and leave; needs JetStream" },
	{ 0 },
};

static int usage(const char *message)
{
	if (message)
		fprintf(stderr, "fay trace: %s\n", message);
	fputs(usage_text, stderr);
	return FAY_E_USAGE;
}

void fay_cli_trace_help(void)
{
	printf("%s\n", usage_text);
	fay_cli_help(own, letters);
	printf("  -- COMMAND       start a program and trace it from the start\n"
	       "\nOn many machines (docs/cluster.md):\n");
	fay_cli_help(fay_cli_cluster_options, "");
}

static int add_pid(struct trace *trace, const char *text)
{
	char *end;
	errno = 0;
	long pid = strtol(text, &end, 10);
	if (errno || *end || end == text || pid <= 0 || pid > INT32_MAX) {
		fprintf(stderr,
			"fay trace: '%s' is not a process ID; --comm takes the name of a program\n",
			text);
		return FAY_E_USAGE;
	}
	if (trace->pid_count == FAY_TARGETS_MAX) {
		fprintf(stderr, "fay trace: more than %u processes\n", FAY_TARGETS_MAX);
		return FAY_E_LIMIT;
	}
	trace->pids[trace->pid_count++] = (pid_t)pid;
	return FAY_OK;
}

/* The process it is in is traced, too, if it was not named. */
static int add_tid(struct trace *trace, const char *text)
{
	char *end;
	errno = 0;
	long tid = strtol(text, &end, 10);
	if (errno || *end || end == text || tid <= 0 || tid > INT32_MAX) {
		fprintf(stderr, "fay trace: '%s' is not a thread ID\n", text);
		return FAY_E_USAGE;
	}
	if (trace->tid_count == FAY_TIDS_MAX) {
		fprintf(stderr, "fay trace: more than %u threads\n", FAY_TIDS_MAX);
		return FAY_E_LIMIT;
	}
	trace->tids[trace->tid_count++] = (pid_t)tid;
	return FAY_OK;
}

static int add_comm(struct trace *trace, const char *comm)
{
	if (trace->comm_count == TRACE_COMMS_MAX) {
		fprintf(stderr, "fay trace: more than %u names\n", TRACE_COMMS_MAX);
		return FAY_E_LIMIT;
	}
	trace->comms[trace->comm_count++] = comm;
	return FAY_OK;
}

static int set_duration(const char *name, const char *text, uint64_t *value)
{
	if (fay_cli_duration(text, value) && *value)
		return FAY_OK;
	fprintf(stderr, "fay trace: %s takes a duration such as 10s or 500ms, not '%s'\n", name,
		text);
	return FAY_E_USAGE;
}

static int set_share(struct trace *trace, const char *text)
{
	char *end;
	errno = 0;
	long share = strtol(text, &end, 10);
	if (errno || *end || end == text || share <= 0 || share > INT32_MAX) {
		fprintf(stderr, "fay trace: --share takes a number of functions, not '%s'\n", text);
		return FAY_E_USAGE;
	}
	trace->share = (uint32_t)share;
	return FAY_OK;
}

static int set_budget(struct trace *trace, const char *text)
{
	trace->budget_given = true;
	if (!fay_trace_set_budget(trace, text))
		return FAY_OK;
	fprintf(stderr,
		"fay trace: --budget takes a share of the processor time such as 2%%, or none, not "
		"'%s'\n",
		text);
	return FAY_E_USAGE;
}

/* After so many bytes, or so long; both may be given. */
static int set_rotation(struct trace *trace, const char *text)
{
	if (fay_cli_size(text, &trace->save_bytes) ||
	    (fay_cli_duration(text, &trace->save_age) && trace->save_age))
		return FAY_OK;
	fprintf(stderr,
		"fay trace: --rotate takes a size such as 64MB or a duration such as 10m, not "
		"'%s'\n",
		text);
	return FAY_E_USAGE;
}

static int set_keep(struct trace *trace, const char *text)
{
	char *end;
	errno = 0;
	long keep = strtol(text, &end, 10);
	if (errno || *end || end == text || keep < 2 || keep > 1000000) {
		fprintf(stderr, "fay trace: --keep takes a number of files, at least 2, not '%s'\n",
			text);
		return FAY_E_USAGE;
	}
	trace->save_keep = (uint64_t)keep;
	return FAY_OK;
}

static int set_format(struct fay_writer *writer, const char *name)
{
	enum fay_format format = fay_format_find(name);
	if (writer->format != FAY_FORMAT_TABLE)
		return usage(
			"--json, --csv, --folded, --flame, --html, --svg and --format are mutually "
			"exclusive");
	if (format == FAY_FORMATS) {
		fprintf(stderr, "fay trace: --format '%s' is none of", name);
		for (unsigned i = 0; i < FAY_FORMATS; i++)
			fprintf(stderr, " %s", fay_formats[i].name);
		fputc('\n', stderr);
		return FAY_E_USAGE;
	}
	writer->format = format;
	return FAY_OK;
}

/* A format that has its file with it. */
static int set_page(struct fay_cli_trace *cli, const char *name, const char *path)
{
	if (cli->output_path)
		return usage("--html FILE and --svg FILE say where the result goes: no -o");
	cli->output_path = path;
	cli->page_path = path;
	return set_format(&cli->writer, name);
}

static int parse_option(struct fay_cli_trace *cli, int option)
{
	struct trace *trace = &cli->trace;
	switch (option) {
	case 'S': trace->save_path = optarg; return FAY_OK;
	case 'p': return add_pid(trace, optarg);
	case 'c': return add_comm(trace, optarg);
	case 'T': return add_tid(trace, optarg);
	case 'F': trace->follow = true; return FAY_OK;
	case 'L': trace->select.cmdline = optarg; return FAY_OK;
	case 'U': trace->select.user = optarg; return FAY_OK;
	case 'G': trace->select.cgroup = optarg; return FAY_OK;
	case 'N': trace->no_follow = true; return FAY_OK;
	case 'w': trace->wait = true; return FAY_OK;
	case 'f': cli->file = optarg; return FAY_OK;
	case 'u': return set_duration("--for", optarg, &trace->duration);
	case 'e': return set_duration("--every", optarg, &trace->every);
	case 'M': return set_format(&cli->writer, optarg);
	case 'j': return set_format(&cli->writer, "json");
	case 'C': return set_format(&cli->writer, "csv");
	case 'O': return set_format(&cli->writer, "folded");
	case 'E': return set_format(&cli->writer, "flame");
	case 'a': cli->against = optarg; return FAY_OK;
	case 'x': return set_page(cli, "html", optarg);
	case 'X': return set_page(cli, "svg", optarg);
	case 'P': trace->probe_path = optarg; return FAY_OK;
	case 'y': trace->policy_path = optarg; return FAY_OK;
	case 'o': cli->output_path = optarg; return FAY_OK;
	case 's': return set_share(trace, optarg);
	case 'B': return set_budget(trace, optarg);
	case 'A': trace->analyze = true; return FAY_OK;
	case 'd': trace->dry_run = true; return FAY_OK;
	case 'r': return set_rotation(trace, optarg);
	case 'k': return set_keep(trace, optarg);
	case 'H': cli->writer.heat_map = true; return FAY_OK;
	case 'W': cli->writer.raw = true; return FAY_OK;
	case 't': trace->timing = true; return FAY_OK;
	case 'I': trace->only_inline = true; return FAY_OK;
	case 'v': trace->verbose = true; return FAY_OK;
	case 'D': trace->detach = true; return FAY_OK;
	case 'h': cli->help = true; return FAY_OK;
	}
	return fay_cli_cluster_option(&cli->cluster, "fay trace", option, optarg) ? usage(NULL)
										  : FAY_OK;
}

/* Processes are looked for on the machines. */
static int check_cluster(const struct trace *trace)
{
	if (trace->command || trace->save_path || trace->tid_count ||
	    fay_selection_is_given(&trace->select))
		return usage("--cluster goes with --comm or -p, not with a command, --tid, "
			     "--cmdline, --user, --cgroup or --save");
	return FAY_OK;
}

/* Which options go together. */
static int check_combination(const struct fay_cli_trace *cli)
{
	const struct trace *trace = &cli->trace;
	if (!trace->query && !trace->probe_path)
		return usage("a query or --probe IMAGE is missing");
	if (trace->command && !trace->command[0])
		return usage("no command after --");
	if (trace->save_path && !trace->query)
		return usage("--save goes with a query");
	if (trace->save_path && cli->output_path)
		return usage("--output is for results, and --save keeps events in a file of its "
			     "own instead of showing any");
	if (trace->detach && cli->output_path)
		return usage("--output is for results, and --detach leaves them to `fay attach`");
	if ((trace->save_bytes || trace->save_age) && !trace->save_path)
		return usage("--rotate goes with --save FILE");
	if (trace->save_keep && !trace->save_bytes && !trace->save_age)
		return usage("--keep goes with --rotate");
	if (trace->wait && !fay_trace_is_by_name(trace) && !trace->pid_count && !trace->command)
		return usage("--wait goes with --comm NAME, -p PID or a command");
	if (trace->follow && trace->no_follow)
		return usage("--follow and --no-follow are mutually exclusive");
	if (trace->tid_count && (fay_trace_is_by_name(trace) || trace->command || trace->follow))
		return usage("--tid names running threads; it goes with -p or alone");
	if (trace->command && (trace->pid_count || fay_trace_is_by_name(trace)))
		return usage("either running processes or a command, not both");
	if (trace->budget && cli->cluster.root.bus.url)
		return usage("--budget goes with processes on this machine, not with --cluster");
	if (trace->analyze && (!trace->query || cli->cluster.root.bus.url))
		return usage("--analyze goes with a query on this machine");
	if (trace->dry_run && (trace->command || trace->wait || trace->save_path ||
			       trace->analyze || cli->cluster.root.bus.url))
		return usage("--dry-run is about running processes on this machine; it does not go "
			     "with a command, --wait, --save, --analyze or --cluster");
	if (trace->dry_run && cli->writer.format != FAY_FORMAT_TABLE &&
	    cli->writer.format != FAY_FORMAT_JSON)
		return usage("--dry-run prints text or, with --json, JSON");
	if (cli->page_path && cli->output_path != cli->page_path)
		return usage("--html FILE and --svg FILE say where the result goes: no -o");
	if (cli->against && cli->writer.format != FAY_FORMAT_FLAME &&
	    cli->writer.format != FAY_FORMAT_HTML)
		return usage("--against goes with --flame or --html");
	if (trace->detach && !cli->cluster.root.bus.url)
		return usage("--detach goes with --cluster");
	if (cli->cluster.root.bus.url)
		return check_cluster(trace);
	return FAY_OK;
}

/* The query, or the words behind the options that say which one it is. */
static int take_query(struct fay_cli_trace *cli, int count, char **words)
{
	struct trace *trace = &cli->trace;
	struct fay_error error;
	if (trace->probe_path && (count || cli->file))
		return usage("either a query or --probe IMAGE, not both");
	if (cli->file) {
		if (fay_query_file_read(cli->file, words, (size_t)count, &cli->text, &error))
			return fay_cli_fail(&error);
		trace->query = cli->text;
		return FAY_OK;
	}
	if (count)
		trace->query = words[0];
	if (count < 2)
		return FAY_OK;
	fprintf(stderr,
		"fay trace: unexpected argument '%s': quote the query, so that it is one argument; "
		"a command goes after `--`\n",
		words[1]);
	return usage(NULL);
}

int fay_cli_trace_options(struct fay_cli_trace *cli, int argc, char **argv)
{
	struct trace *trace = &cli->trace;
	struct option options[FAY_CLI_OPTIONS_MAX];
	/* What follows `--` is the command, whatever it looks like. */
	int words = argc;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--")) {
			trace->command = argv + i + 1;
			words = i;
			break;
		}
	}
	int option, result;
	optind = 1;
	fay_cli_long_options(own, options + fay_cli_long_options(fay_cli_cluster_options, options));
	fay_cli_cluster_init(&cli->cluster);
	while ((option = fay_cli_getopt(words, argv, letters, options)) != -1) {
		if ((result = parse_option(cli, option)))
			return result;
		if (cli->help)
			return FAY_OK;
	}
	if ((result = take_query(cli, words - optind, argv + optind)))
		return result;
	trace->remote = cli->cluster.root;
	trace->needs_stack = fay_formats[cli->writer.format].stack;
	return check_combination(cli);
}

#define WORDS_MAX 64u /* options with their values */

bool fay_trace_takes(const char *const *words, size_t count)
{
	static struct fay_cli_trace cli; /* large */
	const char *arguments[WORDS_MAX + 3] = { "fay trace" };
	size_t used = 1;
	cli = (struct fay_cli_trace){ 0 };
	for (size_t i = 0; i < count && i < WORDS_MAX; i++)
		arguments[used++] = words[i];
	arguments[used++] = "QUERY";
	/* getopt_long() sorts the words, and changes none */
	return !fay_cli_trace_options(&cli, (int)used, (char **)arguments);
}
