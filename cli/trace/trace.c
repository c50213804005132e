/* SPDX-License-Identifier: MIT */
/* `fay trace`: from the command line to a trace (trace/session), and from signals to its end. */
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>

#include "cli/queries/queries.h"

#include "parts.h"
#include "trace.h"

static struct trace *running; /* one a process */

static void on_signal(int number)
{
	running->interrupted = number;
	running->interrupts++;
}

static void on_question(int number)
{
	if (number == SIGUSR1)
		running->asked_for_figures = number;
	else if (number == SIGUSR2)
		running->asked_for_snapshot = number;
	else
		fay_live_due = 1;
}

void fay_cli_trace_catch_signals(struct trace *trace)
{
	const struct sigaction question = { .sa_handler = on_question, .sa_flags = SA_RESTART };
	running = trace;
	fay_cli_catch_ends(on_signal);
	sigaction(SIGUSR1, &question, NULL);
	sigaction(SIGUSR2, &question, NULL);
	sigaction(SIGWINCH, &question, NULL);
}

/* Of sessions that come and go: what one has left is the next one's, instead of going back to the
 * system, which clears it each time. */
static void keep_memory(void)
{
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

/* From the first event to the last result. */
static int run(struct fay_cli_trace *cli, struct fay_error *error)
{
	struct trace *trace = &cli->trace;
	if (trace->remote.bus.url)
		return fay_cli_trace_cluster(cli, error);
	if (fay_trace_is_file(trace))
		return fay_trace_file(trace, error);
	return fay_trace_end(trace, fay_trace_run(trace, error), error);
}

int fay_trace_main(int argc, char **argv)
{
	return fay_trace_feed(argc, argv, NULL);
}

int fay_trace_feed(int argc, char **argv, const struct fay_trace_feed *feed)
{
	static struct fay_cli_trace cli; /* large; one a process */
	struct trace *trace = &cli.trace;
	struct fay_error error = { 0 };
	fay_cli_trace_init(&cli);
	if (feed) {
		cli.tables = cli.writer;
		cli.tables.out = feed->tables;
		cli.writer.out = feed->metrics;
		cli.writer.metrics = feed->prefix;
	}
	int result = fay_cli_trace_options(&cli, argc, argv);
	if (result)
		return result;
	if (cli.help) {
		fay_cli_trace_help();
		return FAY_OK;
	}
	if (trace->follow)
		keep_memory();
	result = trace->dry_run ? fay_cli_trace_dry_run(&cli, &error)
				: fay_trace_prepare(trace, &error);
	if (result && trace->query)
		fay_cli_query_hint(trace->query, &error);
	if (result)
		fay_query_file_name(cli.file, &error);
	if (!result && !trace->dry_run && !fay_trace_is_file(trace) && !trace->remote.bus.url)
		result = fay_trace_begin(trace, &error);
	if (result && trace->child)
		kill(trace->child, SIGKILL); /* it has done nothing yet */
	if (!result && !trace->dry_run)
		result = run(&cli, &error);
	if (!result)
		result = fay_cli_trace_close(&cli, &error);
	fay_trace_deinit(trace);
	if (result && fay_cli_trace_is_enough())
		return FAY_OK;
	return result ? fay_cli_fail(&error) : FAY_OK;
}
