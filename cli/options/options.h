/* SPDX-License-Identifier: MIT */
/*
 * What the subcommands share: values with units, what may have been meant by words that mean
 * nothing, the options that name a cluster, and the signals that end them.
 */
#ifndef FAY_CLI_OPTIONS_H
#define FAY_CLI_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include "cluster/root/root.h"
#include "fay/error.h"

/* --- values.c --- */

/* "10s", "500ms", "2m", "1h", "250us" to nanoseconds; a bare number means seconds. false: not a
 * duration. */
bool fay_cli_duration(const char *text, uint64_t *nanoseconds);
/* "64MB", "1GiB"; false: it is no size, or none of at least a byte. */
bool fay_cli_size(const char *text, uint64_t *bytes);
/* Prints "fay: MESSAGE" to standard error and returns the exit code. */
int fay_cli_fail(const struct fay_error *error);

/* --- help.c --- */

#define FAY_CLI_OPTIONS_MAX 80u

struct fay_cli_option {
	int value; /* that getopt_long(3) returns; a letter may be an option, too */
	const char *name, *argument; /* argument NULL: it takes none */
	const char *help;            /* NULL: that of the next option is about both */
};
/* A table ends with an empty row. Returns how many rows it has, without the last. */
size_t fay_cli_long_options(const struct fay_cli_option *table, struct option *options);
/* What they are for, in at most 80 columns, on standard output. `letters`: of getopt_long(3). */
void fay_cli_help(const struct fay_cli_option *table, const char *letters);

/* --- signals.c --- */

/* Calls `handler` for every signal that users, terminals and limits send to end a command, so that
 * none ends it with probes in place: not for SIGHUP under nohup. Ignores SIGPIPE and SIGXFSZ. */
void fay_cli_catch_ends(void (*handler)(int number));

/* --- hints.c --- */

/* getopt_long(3); of an option that is none the nearest one is named on standard error, too. */
int fay_cli_getopt(int argc, char **argv, const char *letters, const struct option *options);
/* Adds to an error in a query what may be behind it: a shell that took the quotes away, a program
 * of another tool. */
void fay_cli_query_hint(const char *query, struct fay_error *error);

/* --- cluster.c --- */

struct fay_cli_cluster {
	struct fay_root_options root; /* root.bus.url: --cluster; NULL: no cluster */
	const char *key;
};

/* Options of getopt_long(3) for the cluster, and their values, which are above those of letters. */
enum {
	FAY_OPTION_CLUSTER = 256,
	FAY_OPTION_KEY,
	FAY_OPTION_CREDENTIALS,
	FAY_OPTION_CA,
	FAY_OPTION_CERTIFICATE,
	FAY_OPTION_CERTIFICATE_KEY,
	FAY_OPTION_INSECURE,
	FAY_OPTION_MACHINES,
	FAY_OPTION_AWAIT,
	FAY_OPTION_FANOUT,
	FAY_OPTION_LOST_AFTER,
	FAY_OPTION_LEASE,
	FAY_OPTION_RATE,
};
/* The first is --cluster itself; the others a file, too, can have, which it names. */
extern const struct fay_cli_option fay_cli_cluster_options[];

void fay_cli_cluster_init(struct fay_cli_cluster *cluster);
/* `command` is for messages. FAY_E_USAGE: not an option of these, or its value is off (which was
 * said). */
int fay_cli_cluster_option(struct fay_cli_cluster *cluster, const char *command, int option,
			   const char *value);
/* Reads the key. */
int fay_cli_cluster_keys(const struct fay_cli_cluster *cluster, struct fay_keys *keys,
			 struct fay_error *error);

#endif
