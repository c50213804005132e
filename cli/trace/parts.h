/* SPDX-License-Identifier: MIT */
/* What the files of `fay trace` and `fay attach` share: the trace, and what the command has of it:
 * options, output, the cluster. */
#ifndef FAY_CLI_TRACE_PARTS_H
#define FAY_CLI_TRACE_PARTS_H

#include "cli/options/options.h"
#include "cli/output/output.h"
#include "trace/session/session.h"

struct fay_cli_trace {
	struct trace trace;
	struct fay_writer writer;
	struct fay_writer tables;       /* beside it; out NULL: there are none */
	struct fay_cli_cluster cluster; /* its `root` is trace.remote once options are read */
	const char *output_path;        /* of --output; NULL: standard output */
	const char *page_path;          /* the same, of --html or --svg; NULL */
	const char *against;            /* of --against; NULL */
	char *before;                   /* what is in it */
	char *note;                     /* what a page says that its numbers lack */
	uint64_t *left_out;             /* the writer's */
	const char *file;               /* of -f; NULL: the query is a word */
	char *text;                     /* what is in it, with its arguments */
	bool pictured;                  /* a result was printed already */
	bool final;                     /* the one that is being printed is the last */
	bool help;
};

/* options.c */
int fay_cli_trace_options(struct fay_cli_trace *cli, int argc, char **argv);
void fay_cli_trace_help(void);

/* output.c */
/* Output, names and signals; all else is zero. */
void fay_cli_trace_init(struct fay_cli_trace *cli);
/* writer.out is where results go: whether pictures are drawn follows from that. */
void fay_cli_trace_opened(struct fay_cli_trace *cli);
/* After the last result. What a file system refuses only now (a quota, a server's full disk) is an
 * error, too. */
int fay_cli_trace_close(struct fay_cli_trace *cli, struct fay_error *error);
/* Who reads our output has had enough, as with `| head -1`. */
bool fay_cli_trace_is_enough(void);

/* dry_run.c: verifies, looks for processes and functions, predicts the cost, and tells. */
int fay_cli_trace_dry_run(struct fay_cli_trace *cli, struct fay_error *error);

/* trace.c: signals end this trace, or ask for figures. */
void fay_cli_trace_catch_signals(struct trace *trace);

/* cluster.c: a trace on a cluster, from the verified image on. */
int fay_cli_trace_cluster(struct fay_cli_trace *cli, struct fay_error *error);
/* A picture of what is merged by now, and what it covers. */
int fay_cli_trace_cluster_draw(struct fay_cli_trace *cli, bool final, struct fay_result *last,
			       struct fay_error *error);

#endif
