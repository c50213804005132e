/* SPDX-License-Identifier: MIT */
/* Where the results of `fay trace` go: through the writers, to standard output or a file. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fay/saved.h"

#include "parts.h"

#define TABLES_LINES 60u

static int errno_of_output; /* of the first write that failed */

/* What is written from now on goes nowhere: nobody waits again for who reads nothing. */
static void write_no_more(FILE *out)
{
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC), descriptor = fileno(out);
	if (nowhere < 0)
		return;
	dup3(nowhere, descriptor, descriptor > STDERR_FILENO ? O_CLOEXEC : 0);
	close(nowhere);
}

static int cannot_write(const struct fay_cli_trace *cli, struct fay_error *error)
{
	if (!errno_of_output)
		errno_of_output = errno;
	if (cli->output_path)
		return fay_error_set(error, FAY_E_INTERNAL, "cannot write the result to '%s': %s",
				     cli->output_path, strerror(errno_of_output));
	return fay_error_set(error, FAY_E_INTERNAL, "cannot write the result: %s",
			     strerror(errno_of_output));
}

static int check(void *context, struct fay_error *error)
{
	const struct fay_cli_trace *cli = context;
	if (!fflush(cli->writer.out) && !ferror(cli->writer.out))
		return FAY_OK;
	cannot_write(cli, error);
	if (errno_of_output != EBADF)
		write_no_more(cli->writer.out);
	return error->code;
}

static bool is_asked(const struct trace *trace, int descriptor)
{
	bool is = false;
	for (unsigned side = 0; fay_trace_is_file(trace) && side < trace->plan->source_count;
	     side++)
		is |= fay_saved_is(fay_plan_saved(trace->plan, side), descriptor);
	return is;
}

/* It is emptied once it is known not to be a saved trace that is asked. */
static FILE *create_output(const struct fay_cli_trace *cli, struct fay_error *error)
{
	int descriptor = open(cli->output_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	bool asked = descriptor >= 0 && is_asked(&cli->trace, descriptor);
	struct stat status;
	FILE *out = descriptor < 0 || asked || fstat(descriptor, &status) ||
				    (S_ISREG(status.st_mode) && ftruncate(descriptor, 0))
			    ? NULL
			    : fdopen(descriptor, "w");
	if (out)
		return out;
	fay_error_set(error, FAY_E_USAGE, "cannot write '%s': %s", cli->output_path,
		      asked ? "it is the saved trace that is being queried" : strerror(errno));
	if (descriptor >= 0)
		close(descriptor);
	return NULL;
}

void fay_cli_trace_opened(struct fay_cli_trace *cli)
{
	struct trace *trace = &cli->trace;
	cli->writer.live =
		cli->writer.format == FAY_FORMAT_TABLE && isatty(fileno(cli->writer.out));
	cli->writer.headed = cli->writer.live && !trace->root;
	cli->writer.texts = cli->tables.texts = trace->texts;
	trace->output.pictures = cli->writer.live;
	trace->json = cli->writer.format == FAY_FORMAT_JSON ? cli->writer.out : NULL;
}

/* Whether the format has what the result shows. */
static int check_format(const struct fay_cli_trace *cli, struct fay_error *error)
{
	const struct trace *trace = &cli->trace;
	const struct fay_plan *plan = trace->plan;
	const struct fay_format_kind *format = &fay_formats[cli->writer.format];
	bool whole = !plan || (!plan->window_step && !plan->window_events), timed = true,
	     spans = true;
	for (size_t i = 0; i < trace->view_count; i++) {
		whole &= !trace->views[i].streams;
		timed &= fay_output_has_time(&trace->views[i]);
		spans &= fay_output_has_span(&trace->views[i]);
	}
	if (format->shows == FAY_SHOWS_GROUPS && !whole)
		return fay_error_set(error, FAY_E_USAGE,
				     "the format %s shows one result of groups, and this query has "
				     "rows of events, or windows: %s",
				     format->name, format->hint);
	if (format->shows == FAY_SHOWS_SPANS && !whole && !spans)
		return fay_error_set(error, FAY_E_USAGE,
				     "the format %s shows results of groups, or events with their "
				     "time and a span of time: %s",
				     format->name, format->hint);
	if (format->shows == FAY_SHOWS_EVENTS && !timed)
		return fay_error_set(error, FAY_E_USAGE,
				     "the format %s shows when events were, and this result has no "
				     "time: %s",
				     format->name, format->hint);
	for (size_t i = 0; i < trace->view_count && cli->writer.format == FAY_FORMAT_SVG; i++)
		for (uint32_t c = 0; c < trace->views[i].column_count; c++)
			if (trace->views[i].columns[c].stack_frames)
				return fay_error_set(error, FAY_E_USAGE,
						     "a picture has no room for stacks: --html "
						     "FILE makes a flame graph of them");
	if (format->binary && !cli->output_path && isatty(fileno(cli->writer.out)))
		return fay_error_set(error, FAY_E_USAGE,
				     "the format %s is not for terminals: -o FILE", format->name);
	return FAY_OK;
}

/* The folded stacks that are compared with, before anything is traced. */
static int read_before(struct fay_cli_trace *cli, struct fay_error *error)
{
	size_t size = 0;
	FILE *file = cli->against ? fopen(cli->against, "re") : NULL;
	if (!cli->against)
		return FAY_OK;
	if (!file || (getdelim(&cli->before, &size, 0, file) < 0 && ferror(file))) {
		fay_error_set(error, FAY_E_USAGE, "cannot read '%s': %s", cli->against,
			      strerror(errno));
	} else if (!cli->before || !strchr(cli->before, ' ')) {
		fay_error_set(error, FAY_E_USAGE,
			      "'%s' has no folded stacks; `fay trace --folded -o FILE` keeps some",
			      cli->against);
	} else {
		error->code = FAY_OK;
	}
	if (file)
		fclose(file);
	cli->writer.before = cli->before;
	return error->code;
}

static int open_output(void *context, struct trace *trace, struct fay_error *error)
{
	struct fay_cli_trace *cli = context;
	const struct fay_plan *plan = trace->plan;
	if (check_format(cli, error) || read_before(cli, error))
		return error->code;
	cli->writer.revocable = plan && (!plan->grows || plan->collects);
	FILE *out = cli->output_path ? create_output(cli, error) : cli->writer.out;
	if (!out)
		return error->code;
	cli->writer.out = out;
	fay_cli_trace_opened(cli);
	return FAY_OK;
}

int fay_cli_trace_close(struct fay_cli_trace *cli, struct fay_error *error)
{
	const struct trace *trace = &cli->trace;
	FILE *out = cli->writer.out;
	if (cli->writer.format == FAY_FORMAT_TABLE && !trace->dry_run && trace->view_count == 1 &&
	    trace->views[0].streams && !trace->save_path && !cli->writer.header_written)
		fputs("(no event matched)\n", out);
	fay_write_close(&cli->writer);
	free(cli->before);
	free(cli->note);
	free(cli->left_out);
	cli->before = cli->note = NULL;
	cli->left_out = NULL;
	cli->writer.left_out_count = 0;
	cli->writer.before = cli->writer.note = NULL;
	/* Nothing may have been written to a standard output that is not there. */
	if (!fclose(out) || (out == stdout && errno == EBADF))
		return FAY_OK;
	return cannot_write(cli, error);
}

bool fay_cli_trace_is_enough(void)
{
	return errno_of_output == EPIPE;
}

static void schema(void *context, const struct trace *trace)
{
	struct fay_cli_trace *cli = context;
	fay_write_schema(&cli->writer, trace->query, trace->views, trace->view_count);
}

/* Results one below the other, as --every prints them where they are not drawn over. */
static void print_time(struct fay_cli_trace *cli)
{
	const struct trace *trace = &cli->trace;
	uint64_t now = fay_monotonic();
	if (!trace->every || !trace->run_since || cli->writer.live ||
	    cli->writer.format != FAY_FORMAT_TABLE)
		return;
	fprintf(cli->writer.out, "%safter %.1f s\n", cli->pictured ? "\n" : "",
		(double)(now - trace->run_since) / 1e9);
	cli->pictured = true;
}

static void begin(void *context, size_t views, bool final)
{
	struct fay_cli_trace *cli = context;
	if (!views)
		return;
	print_time(cli);
	cli->final = final;
	fay_live_begin(&cli->writer, views, final);
	cli->tables.limited = true;
	cli->tables.lines_left = TABLES_LINES;
	cli->tables.views_left = views;
}

/* Over a picture: how long, of what, how many events a second, what that takes, what was lost. */
static void write_head(struct fay_cli_trace *cli)
{
	const struct trace *trace = &cli->trace;
	const struct trace_pictured *pictured = &trace->pictured;
	size_t functions = trace->traps.set,
	       processes = trace->session_count + trace->trapped_count;
	char *head = NULL;
	size_t size;
	FILE *out = open_memstream(&head, &size);
	if (!out)
		return;
	for (size_t i = 0; i < trace->session_count; i++)
		functions += fay_session_point_count(trace->sessions[i]);
	fprintf(out, "%.1f s", (double)(pictured->at - trace->run_since) / 1e9);
	if (processes)
		fprintf(out, ", %zu function%s in %zu process%s", functions,
			functions == 1 ? "" : "s", processes, processes == 1 ? "" : "es");
	if (pictured->counts)
		fprintf(out, ", %.0f events/s", pictured->rate);
	if (pictured->share >= 0 && processes)
		fprintf(out, ", probes take %.1f%%", pictured->share * 100);
	fprintf(out, ", %" PRIu64 " lost", pictured->lost);
	if (!fclose(out))
		snprintf(cli->writer.head, sizeof(cli->writer.head), "%s", head);
	free(head);
}

static void end(void *context)
{
	struct fay_cli_trace *cli = context;
	if (cli->writer.limited && cli->trace.pictured.at)
		write_head(cli);
	fay_write_end(&cli->writer, cli->final);
	if (cli->tables.out) {
		fputc('\f', cli->tables.out);
		fflush(cli->tables.out);
	}
	fay_live_end(&cli->writer);
}

#define NOTED 3u /* functions that a note names */

struct note {
	FILE *out;
	size_t count;
};

static void note_left_out(void *context, const struct fay_function *function, bool out,
			  uint64_t absent_ns)
{
	struct note *note = context;
	(void)out;
	if (note->count++ < NOTED)
		fprintf(note->out, "%s%s for %.1f s", note->count > 1 ? ", " : "", function->name,
			(double)absent_ns / 1e9);
}

/* Of stacks in a picture or file a reader takes all to be there. */
static void tell_taken(struct fay_cli_trace *cli, const struct fay_result *rows)
{
	const struct fay_plan *plan = cli->trace.plan;
	char *text = NULL;
	if (!plan || !fay_formats[cli->writer.format].stack || !plan->takes ||
	    rows->row_count < plan->takes)
		return;
	fprintf(stderr,
		"fay: the query takes %" PRIu64 " rows: stacks beyond these are not in it\n",
		plan->takes);
	if (asprintf(&text,
		     "%s%sThe query takes %" PRIu64 " rows: stacks beyond these are not in it.",
		     cli->note ? cli->note : "", cli->note ? " " : "", plan->takes) < 0)
		return;
	free(cli->note);
	cli->writer.note = cli->note = text;
}

/* What a page says of functions that the budget left out. */
static void write_note(struct fay_cli_trace *cli)
{
	char *names = NULL, *text = NULL;
	size_t size;
	struct note note = { .out = open_memstream(&names, &size) };
	if (!note.out)
		return;
	fay_trace_budget_visit_out(&cli->trace, note_left_out, &note);
	if (!fclose(note.out) && note.count &&
	    asprintf(
		    &text,
		    "Left out by the budget, of a trace of %.1f s: %s%s. What was called meanwhile "
		    "is missing.",
		    (double)(fay_monotonic() - cli->trace.run_since) / 1e9, names,
		    note.count > NOTED ? " and others" : "") >= 0) {
		free(cli->note);
		cli->writer.note = cli->note = text;
	}
	free(names);
}

static void take_left_out(void *context, const struct fay_function *function, bool out,
			  uint64_t absent_ns)
{
	struct fay_cli_trace *cli = context;
	uint64_t *grown = realloc(cli->left_out, (cli->writer.left_out_count + 1) * sizeof(*grown));
	(void)out;
	(void)absent_ns;
	if (!grown)
		return;
	cli->writer.left_out = cli->left_out = grown;
	grown[cli->writer.left_out_count++] = fay_name_hash(function->name);
}

/* What tables mark. */
static void find_left_out(struct fay_cli_trace *cli)
{
	cli->writer.left_out_count = 0;
	fay_trace_budget_visit_out(&cli->trace, take_left_out, cli);
	if (cli->writer.left_out_count)
		qsort(cli->left_out, cli->writer.left_out_count, sizeof(*cli->left_out),
		      fay_output_by_hash);
}

static void result(void *context, const struct fay_view *view, const struct fay_result *rows,
		   bool final)
{
	struct fay_cli_trace *cli = context;
	if (cli->writer.format == FAY_FORMAT_TABLE)
		find_left_out(cli);
	else if (final)
		write_note(cli);
	if (final)
		tell_taken(cli, rows);
	fay_write_result(&cli->writer, view, rows, final);
	if (cli->tables.out)
		fay_write_result(&cli->tables, view, rows, final);
}

static void row(void *context, const struct fay_view *view, const uint8_t *bytes, bool revised)
{
	struct fay_cli_trace *cli = context;
	cli->writer.revised = revised;
	fay_write_row(&cli->writer, view, bytes);
	cli->writer.revised = false;
}

static bool due(void *context, bool over)
{
	const struct fay_cli_trace *cli = context;
	bool asked = cli->writer.live && fay_live_due;
	if (over || asked)
		fay_live_due = 0;
	return asked;
}

void fay_cli_trace_init(struct fay_cli_trace *cli)
{
	const struct trace_output output = { .context = cli,
					     .open = open_output,
					     .schema = schema,
					     .begin = begin,
					     .end = end,
					     .result = result,
					     .row = row,
					     .check = check,
					     .due = due };
	fay_trace_init(&cli->trace, &output, stderr);
	cli->trace.may_ask = isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
	cli->trace.usual_budget = getenv("FAY_BUDGET");
	cli->writer.out = stdout;
	cli->writer.function_name = fay_trace_function_name;
	cli->writer.name_context = &cli->trace;
	cli->writer.address_name = fay_trace_address_name;
	fay_cli_trace_catch_signals(&cli->trace);
}
