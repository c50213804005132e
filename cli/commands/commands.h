/* SPDX-License-Identifier: MIT */
/* The small subcommands. Each takes main()'s arguments from the subcommand's name on. */
#ifndef FAY_CLI_COMMANDS_H
#define FAY_CLI_COMMANDS_H

#include <stdbool.h>

int fay_examples_main(int argc, char **argv);
int fay_explain_main(int argc, char **argv);
int fay_list_main(int argc, char **argv);
int fay_bench_main(int argc, char **argv);
int fay_cluster_main(int argc, char **argv);
int fay_kernel_main(int argc, char **argv);
int fay_new_main(int argc, char **argv);

/* Of `fay list`: tracepoints that match, with or without a system's name before them. */
int fay_list_tracepoints(const char *pattern, bool json);

#endif
