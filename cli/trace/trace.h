/* SPDX-License-Identifier: MIT */
/* `fay trace`, and `fay attach` to a query that was asked of a cluster with --detach. Each takes
 * main()'s arguments from the subcommand's name on, and is called once in a process. */
#ifndef FAY_CLI_TRACE_H
#define FAY_CLI_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

int fay_trace_main(int argc, char **argv);
/* Whether these are options that it takes with a query; what is wrong with them is said. */
bool fay_trace_takes(const char *const *words, size_t count);
/* The same, of whose results others make use: each picture by --format as the arguments say, into
 * `metrics`; and as tables, as much as a screen has room for, a form feed behind them. */
struct fay_trace_feed {
	const char *prefix; /* of the metrics' names */
	FILE *metrics, *tables;
};
int fay_trace_feed(int argc, char **argv, const struct fay_trace_feed *feed);
int fay_attach_main(int argc, char **argv);

#endif
