/* SPDX-License-Identifier: MIT */
/* What `fay trace --cluster` and `fay cluster` share. */
#ifndef FAY_CLI_CLUSTER_H
#define FAY_CLI_CLUSTER_H

#include "process/process.h"
#include "cluster/root/root.h"

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
/* Those that a file can have, too, which --cluster names. */
#define FAY_CLUSTER_FILE_OPTIONS                                                                   \
	{ "key", required_argument, NULL, FAY_OPTION_KEY },                                        \
		{ "creds", required_argument, NULL, FAY_OPTION_CREDENTIALS },                      \
		{ "ca", required_argument, NULL, FAY_OPTION_CA },                                  \
		{ "cert", required_argument, NULL, FAY_OPTION_CERTIFICATE },                       \
		{ "cert-key", required_argument, NULL, FAY_OPTION_CERTIFICATE_KEY },               \
		{ "insecure", no_argument, NULL, FAY_OPTION_INSECURE },                            \
		{ "machines", required_argument, NULL, FAY_OPTION_MACHINES },                      \
		{ "await", required_argument, NULL, FAY_OPTION_AWAIT },                            \
		{ "fanout", required_argument, NULL, FAY_OPTION_FANOUT },                          \
		{ "lost-after", required_argument, NULL, FAY_OPTION_LOST_AFTER },                  \
		{ "lease", required_argument, NULL, FAY_OPTION_LEASE },                            \
	{                                                                                          \
		"bytes-per-second", required_argument, NULL, FAY_OPTION_RATE                       \
	}
#define FAY_CLUSTER_OPTIONS                                                                        \
	{ "cluster", required_argument, NULL, FAY_OPTION_CLUSTER }, FAY_CLUSTER_FILE_OPTIONS

void fay_cli_cluster_init(struct fay_cli_cluster *cluster);
/* `command` is for messages. FAY_E_USAGE: not an option of these, or its value is off (which was
 * said). */
int fay_cli_cluster_option(struct fay_cli_cluster *cluster, const char *command, int option,
			   const char *value);
/* Reads the key. */
int fay_cli_cluster_keys(const struct fay_cli_cluster *cluster, struct fay_keys *keys,
			 struct fay_error *error);
extern const char fay_cli_cluster_help[];

int fay_cluster_main(int argc, char **argv);
int fay_attach_main(int argc, char **argv);

#endif
