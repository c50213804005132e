/* SPDX-License-Identifier: MIT */
/* The options that name a cluster. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/access/access.h"

#include "options.h"

const struct fay_cli_option fay_cli_cluster_options[] = {
	{ FAY_OPTION_CLUSTER, "cluster", "URL|FILE",
	  "NATS servers such as nats://127.0.0.1:4222, separated by commas; or a file with lines "
	  "`url = URL`, `key = FILE` and so on: any of the options below" },
	{ FAY_OPTION_KEY, "key", "FILE", "the client's key, made by `fay cluster keygen`" },
	{ FAY_OPTION_MACHINES, "machines", "FILE", "only these machines may answer" },
	{ FAY_OPTION_AWAIT, "await", "N", "begin once N machines have answered" },
	{ FAY_OPTION_FANOUT, "fanout", "N",
	  "agents that report to one agent (16 unless given; 0: all report to the client)" },
	{ FAY_OPTION_LOST_AFTER, "lost-after", "T",
	  "a machine that has been silent this long is lost (10s unless given)" },
	{ FAY_OPTION_LEASE, "lease", "T",
	  "machines that have not heard from the client this long give up (60s unless given)" },
	{ FAY_OPTION_RATE, "bytes-per-second", "N", "the most that each agent may send" },
	{ FAY_OPTION_CREDENTIALS, "creds", "FILE", NULL },
	{ FAY_OPTION_CA, "ca", "FILE", NULL },
	{ FAY_OPTION_CERTIFICATE, "cert", "FILE", NULL },
	{ FAY_OPTION_CERTIFICATE_KEY, "cert-key", "FILE", NULL },
	{ FAY_OPTION_INSECURE, "insecure", NULL, "credentials and TLS (docs/cluster.md)" },
	{ 0 },
};

void fay_cli_cluster_init(struct fay_cli_cluster *cluster)
{
	memset(cluster, 0, sizeof(*cluster));
	cluster->root.fanout = FAY_ROOT_FANOUT;
	cluster->root.window = 1000000000u;
	cluster->root.lost_after = 10000000000u;
	cluster->root.lease = 60000000000u;
	cluster->root.bus.name = "fay";
	cluster->root.text = "";
}

static bool set_number(const char *text, uint32_t *value)
{
	char *end;
	errno = 0;
	long number = strtol(text, &end, 10);
	if (errno || *end || end == text || number < 0 || number > INT32_MAX)
		return false;
	*value = (uint32_t)number;
	return true;
}

static bool set_duration(const char *text, uint64_t *value)
{
	return fay_cli_duration(text, value) && *value;
}

/* A cluster is named by its URL, or by a file that has it and all else that is needed: secrets stay
 * out of command lines. */
struct reading {
	struct fay_cli_cluster *cluster;
	const char *command;
};

static int set_from_file(void *context, int option, const char *value)
{
	const struct reading *reading = context;
	if (option == FAY_OPTION_CLUSTER && !strstr(value, "://")) {
		fprintf(stderr, "%s: '%s' is not a URL such as tls://fay:SECRET@hub:4222\n",
			reading->command, value);
		return FAY_E_USAGE;
	}
	return fay_cli_cluster_option(reading->cluster, reading->command, option, value);
}

static int read_file(struct fay_cli_cluster *cluster, const char *command, const char *path)
{
	struct option names[FAY_CLI_OPTIONS_MAX];
	struct reading reading = { cluster, command };
	struct fay_error error;
	fay_cli_long_options(fay_cli_cluster_options, names);
	names[0].name = "url";
	if (!fay_config_read(path, names, set_from_file, &reading, &error))
		return FAY_OK;
	fprintf(stderr, "%s: --cluster: %s%s\n", command, error.message,
		strchr(path, ':') ? "; a URL has :// such as nats://127.0.0.1:4222" : "");
	return FAY_E_USAGE;
}

int fay_cli_cluster_option(struct fay_cli_cluster *cluster, const char *command, int option,
			   const char *value)
{
	struct fay_root_options *root = &cluster->root;
	const char **texts[] = {
		&root->bus.url, &cluster->key,          &root->bus.credentials,
		&root->bus.ca,  &root->bus.certificate, &root->bus.certificate_key
	};
	bool fits = true;
	if (option == FAY_OPTION_CLUSTER && !strstr(value, "://"))
		return read_file(cluster, command, value);
	if (option >= FAY_OPTION_CLUSTER && option <= FAY_OPTION_CERTIFICATE_KEY)
		*texts[option - FAY_OPTION_CLUSTER] = value;
	else if (option == FAY_OPTION_INSECURE)
		root->bus.insecure = true;
	else if (option == FAY_OPTION_MACHINES)
		root->machines = value;
	else if (option == FAY_OPTION_AWAIT)
		fits = set_number(value, &root->await);
	else if (option == FAY_OPTION_FANOUT)
		fits = set_number(value, &root->fanout);
	else if (option == FAY_OPTION_RATE)
		fits = set_number(value, &root->bytes_per_second);
	else if (option == FAY_OPTION_LOST_AFTER)
		fits = set_duration(value, &root->lost_after);
	else if (option == FAY_OPTION_LEASE)
		fits = set_duration(value, &root->lease);
	else
		return FAY_E_USAGE;
	if (!fits)
		fprintf(stderr, "%s: '%s' is not a valid value of that option\n", command, value);
	return fits ? FAY_OK : FAY_E_USAGE;
}

int fay_cli_cluster_keys(const struct fay_cli_cluster *cluster, struct fay_keys *keys,
			 struct fay_error *error)
{
	if (fay_keys_init(error))
		return error->code;
	if (!cluster->key)
		return fay_error_set(
			error, FAY_E_USAGE,
			"no key: give --key FILE; `fay cluster keygen NAME` makes one");
	return fay_keys_read(cluster->key, keys, error);
}
