/* SPDX-License-Identifier: MIT */
/* `fay trace`, and `fay attach` to a query that was asked of a cluster with --detach. Each takes
 * main()'s arguments from the subcommand's name on. */
#ifndef FAY_CLI_TRACE_H
#define FAY_CLI_TRACE_H

int fay_trace_main(int argc, char **argv);
int fay_attach_main(int argc, char **argv);

#endif
