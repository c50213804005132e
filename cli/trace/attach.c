/* SPDX-License-Identifier: MIT */
/* `fay attach`: to a query that was asked of a cluster with --detach. Its image comes from the
 * query's stream and is verified here like any other. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parts.h"
#include "trace.h"

#define LOOK_MS 100
#define STOP_EVERY 500000000u /* ns */
/* after so many of them, ten minutes, the query is over, whatever still comes */
#define STOPS_MAX 1200u

static const char usage_text[] =
	"usage: fay attach ID --cluster URL --key FILE [--every 1s] [--json | --csv]\n"
	"                  [--stop]\n";

static const struct fay_cli_option own[] = {
	{ 'e', "every", "T", "print the result so far each T" },
	{ 'j', "json", NULL, NULL },
	{ 'C', "csv", NULL, "machine-readable results" },
	{ 's', "stop", NULL, "end the query, and take its result" },
	{ 'h', "help", NULL, "this text" },
	{ 0 },
};

struct attach {
	struct fay_detached detached;
	bool stop, finished;
	uint64_t told; /* monotonic ns: when agents were told to end, last; 0: not yet */
	/* how often: whoever stands still itself counts no time in which agents could not answer */
	uint32_t stops;
	char text[FAY_WIRE_TEXT_MAX + 1];
};

static int usage(void)
{
	fputs(usage_text, stderr);
	return FAY_E_USAGE;
}

static int parse(struct fay_cli_trace *cli, struct attach *attach, int argc, char **argv)
{
	struct trace *trace = &cli->trace;
	struct option options[FAY_CLI_OPTIONS_MAX];
	int option;
	fay_cli_long_options(own, options + fay_cli_long_options(fay_cli_cluster_options, options));
	fay_cli_cluster_init(&cli->cluster);
	while ((option = fay_cli_getopt(argc, argv, "h", options)) != -1) {
		if (option == 'j' || option == 'C')
			cli->writer.format = option == 'j' ? FAY_FORMAT_JSON : FAY_FORMAT_CSV;
		else if (option == 's')
			attach->stop = true;
		else if (option == 'h')
			cli->help = true;
		else if (option == 'e' ? !fay_cli_duration(optarg, &trace->every) || !trace->every
				       : fay_cli_cluster_option(&cli->cluster, "fay attach", option,
								optarg) != FAY_OK)
			return usage();
	}
	if (cli->help)
		return FAY_OK;
	char *end = NULL;
	if (optind + 1 == argc)
		attach->detached.query = strtoull(argv[optind], &end, 16);
	if (!end || *end || !attach->detached.query || !cli->cluster.root.bus.url)
		return usage();
	trace->remote = cli->cluster.root;
	return FAY_OK;
}

static void read_known(struct fay_function_search *known, const struct fay_wire_meta *meta)
{
	fay_text_copy(known->found.pattern, sizeof(known->found.pattern), meta->function);
	fay_text_copy(known->path, sizeof(known->path), meta->path);
	known->found.file.build_id_size = meta->build_id.size;
	memcpy(known->found.file.build_id, meta->build_id.bytes, meta->build_id.size);
}

/* The query's own image and text. */
static int prepare(struct trace *trace, struct attach *attach, const struct fay_keys *keys,
		   struct fay_error *error)
{
	const struct fay_wire_meta *meta = &attach->detached.meta;
	if (fay_detached_open(&trace->remote.bus, keys, attach->detached.query, &attach->detached,
			      error))
		return error->code;
	fay_text_copy(attach->text, sizeof(attach->text), meta->text);
	memcpy(attach->text, meta->text.bytes, meta->text.size); /* the query may have lines */
	trace->asked = meta->began;
	read_known(&trace->known, meta);
	*(meta->is_query ? &trace->query : &trace->probe_path) = attach->text;
	trace->image.data = malloc(meta->image_size + 1u);
	if (!trace->image.data)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	memcpy(trace->image.data, meta->image, meta->image_size);
	trace->image.size = meta->image_size;
	if (fay_trace_image(trace, error) ||
	    fay_aggregator_create(trace->schema, &trace->aggregator, error))
		return error->code;
	fay_aggregator_on_row(trace->aggregator, fay_trace_row, trace);
	trace->cluster_rows = trace->aggregator;
	trace->remote.lease = meta->lease;
	trace->remote.horizon = trace->plan && trace->plan->window_step ? FAY_WINDOWS_HORIZON : 0;
	return fay_root_attach(&trace->remote, keys, &attach->detached, &trace->verdict,
			       trace->aggregator, &trace->root, error);
}

/* Again and again: an agent may just be connecting. */
static void tell_to_stop(struct trace *trace, struct attach *attach)
{
	uint64_t now = fay_monotonic();
	if (now < attach->told + STOP_EVERY)
		return;
	attach->told = now;
	attach->stops++;
	fay_root_end(trace->root);
}

/*
 * Whoever says nothing long after it was told to end is gone; so is, long after the query's own
 * end, whoever has not said good-bye, once nothing comes of any machine: by that alone it is the
 * end where this machine's clock is ahead of the one by which the query began.
 */
static bool is_over(struct trace *trace, const struct attach *attach)
{
	const struct fay_wire_meta *meta = &attach->detached.meta;
	uint64_t patience = trace->remote.lost_after, windows = 3 * meta->window,
		 quiet = patience > windows ? patience : windows;
	if (fay_root_is_behind(trace->root))
		return false;
	if (fay_root_finished(trace->root))
		return true;
	bool ended = meta->life && fay_realtime() > meta->began + meta->life + patience &&
		     fay_root_silence(trace->root) > quiet;
	if (ended || attach->stops > STOPS_MAX)
		return fay_root_give_up(trace->root, 0);
	return attach->stops > patience / STOP_EVERY + 1 && fay_root_give_up(trace->root, patience);
}

static int follow(struct fay_cli_trace *cli, struct attach *attach, struct fay_error *error)
{
	struct trace *trace = &cli->trace;
	uint64_t every = trace->every ? trace->every : 1000000000u, next = fay_monotonic() + every;
	bool pictures = trace->output.pictures || trace->every;
	while (!trace->interrupted && !attach->finished) {
		if (fay_root_replay(trace->root, error) || fay_trace_rows_error(trace, error) ||
		    fay_trace_windows_tick(trace, fay_realtime(), error))
			return error->code;
		if (attach->stop)
			tell_to_stop(trace, attach);
		attach->finished = is_over(trace, attach);
		if (attach->finished)
			break;
		bool over = fay_monotonic() >= next;
		if (over || (trace->output.pictures && fay_live_due)) {
			fay_live_due = 0;
			next += over ? every : 0;
			if (pictures && fay_cli_trace_cluster_draw(cli, false, NULL, error))
				return error->code;
			if (fay_trace_check_output(trace, error))
				return error->code;
		}
		usleep(LOOK_MS * 1000);
	}
	struct fay_coverage coverage;
	fay_root_coverage(trace->root, &coverage);
	trace->detach = !attach->finished;
	trace->end_reason = !attach->finished ? "interrupted; the query continues"
			    : coverage.lost   ? "the query is over; not all machines answered"
					      : "the query is over";
	return FAY_OK;
}

static int run(struct fay_cli_trace *cli, struct attach *attach, struct fay_error *error)
{
	struct trace *trace = &cli->trace;
	struct fay_result last = { 0 };
	struct fay_error second;
	trace->output.schema(trace->output.context, trace);
	int result = fay_trace_windows_start(trace, error);
	if (!result)
		result = follow(cli, attach, error);
	if (result)
		return result;
	result = fay_cli_trace_cluster_draw(cli, true, &last, error);
	fay_trace_print_end(trace, &last);
	fay_result_deinit(&last);
	if (!result)
		result = fay_trace_check_output(trace, error);
	if (!result && attach->finished && fay_stream_delete(attach->detached.stream, &second))
		fprintf(stderr, "fay: %s\n", second.message);
	return result;
}

int fay_attach_main(int argc, char **argv)
{
	static struct fay_cli_trace cli; /* large; one a process */
	static struct attach attach;
	static struct fay_keys keys;
	struct fay_error error = { 0 };
	fay_cli_trace_init(&cli);
	int result = parse(&cli, &attach, argc, argv);
	if (result)
		return result;
	if (cli.help) {
		printf("%s\n", usage_text);
		fay_cli_help(own, "h");
		fay_cli_help(fay_cli_cluster_options, "");
		return FAY_OK;
	}
	fay_cli_trace_opened(&cli);
	if (!(result = fay_cli_cluster_keys(&cli.cluster, &keys, &error)) &&
	    !(result = prepare(&cli.trace, &attach, &keys, &error)))
		result = run(&cli, &attach, &error);
	fay_trace_deinit(&cli.trace);
	fay_detached_close(&attach.detached);
	return result ? fay_cli_fail(&error) : FAY_OK;
}
