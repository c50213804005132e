/* SPDX-License-Identifier: MIT */
/* `fayd`: the agent, in the foreground. Options on the command line, or "name = value" lines of a
 * file given by --config. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"
#include "cluster/access/access.h"
#include "process/process.h"
#include "query/debug/debug.h"

#define END_MS 5000

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	interrupted = number;
}

/* On the command line, and in the file that --config names. */
#define BOTH                                                                                       \
	{ "url", required_argument, NULL, 'u' }, { "creds", required_argument, NULL, 'c' },        \
		{ "ca", required_argument, NULL, 'a' }, { "cert", required_argument, NULL, 'C' },  \
		{ "cert-key", required_argument, NULL, 'K' },                                      \
		{ "insecure", no_argument, NULL, 'i' }, { "name", required_argument, NULL, 'n' },  \
		{ "labels", required_argument, NULL, 'l' },                                        \
		{ "key", required_argument, NULL, 'k' },                                           \
		{ "signers", required_argument, NULL, 's' },                                       \
		{ "audit", required_argument, NULL, 'A' },                                         \
		{ "memory", required_argument, NULL, 'm' },                                        \
		{ "bytes-per-second", required_argument, NULL, 'b' }
static const struct option file_names[] = { BOTH, { 0 } };
static const struct option names[] = { BOTH,
				       { "config", required_argument, NULL, 'f' },
				       { "help", no_argument, NULL, 'h' },
				       { "version", no_argument, NULL, 'V' },
				       { 0 } };

static const char usage_text[] =
	"usage: fayd --url URL --key FILE --signers FILE [--name NAME] [--labels TEXT]\n"
	"            [--audit FILE] [--creds FILE] [--ca FILE]\n"
	"            [--cert FILE --cert-key FILE] [--insecure] [--memory MIB]\n"
	"            [--bytes-per-second N] [--config FILE]\n";

struct settings {
	struct fay_agent_options agent;
	const char *key, *audit;
};

static bool set_number(const char *text, uint64_t unit, uint64_t *value)
{
	char *end;
	errno = 0;
	unsigned long long number = strtoull(text, &end, 10);
	if (errno || *end || end == text || text[0] == '-' || !number ||
	    number > UINT64_MAX / 2 / unit)
		return false;
	*value = number * unit;
	return true;
}

static int set(void *context, int option, const char *value)
{
	struct settings *settings = context;
	struct fay_agent_options *agent = &settings->agent;
	const char **text = option == 'u'   ? &agent->bus.url
			    : option == 'c' ? &agent->bus.credentials
			    : option == 'a' ? &agent->bus.ca
			    : option == 'C' ? &agent->bus.certificate
			    : option == 'K' ? &agent->bus.certificate_key
			    : option == 'n' ? &agent->name
			    : option == 'l' ? &agent->labels
			    : option == 'k' ? &settings->key
			    : option == 's' ? &agent->signers
			    : option == 'A' ? &settings->audit
					    : NULL;
	if (text) {
		*text = value;
		return FAY_OK;
	}
	if (option == 'i') {
		agent->bus.insecure = true;
		return FAY_OK;
	}
	if (option == 'm' && set_number(value, 1u << 20, &agent->limits.memory))
		return FAY_OK;
	if (option == 'b' && set_number(value, 1, &agent->limits.bytes_per_second))
		return FAY_OK;
	if (option == 'm' || option == 'b')
		fprintf(stderr, "fayd: '%s' is not a number\n", value);
	fputs(usage_text, stderr);
	return FAY_E_USAGE;
}

static int read_config(struct settings *settings, const char *path)
{
	struct fay_error error;
	int result = fay_config_read(path, file_names, set, settings, &error);
	if (result)
		fprintf(stderr, "fayd: %s\n", error.message);
	return result;
}

static int parse(struct settings *settings, int argc, char **argv)
{
	int option, result;
	while ((option = getopt_long(argc, argv, "h", names, NULL)) != -1) {
		if (option == 'h') {
			fputs(usage_text, stdout);
			exit(FAY_OK);
		}
		if (option == 'V') {
			puts("fayd " FAY_VERSION);
			exit(FAY_OK);
		}
		if ((result = option == 'f' ? read_config(settings, optarg)
					    : set(settings, option, optarg)))
			return result;
	}
	if (optind == argc && settings->agent.bus.url && settings->key && settings->agent.signers)
		return FAY_OK;
	fputs(usage_text, stderr);
	return FAY_E_USAGE;
}

static int run(struct settings *settings, const struct fay_keys *keys, struct fay_error *error)
{
	struct fay_agent *agent;
	int result = FAY_OK;
	struct sigaction action = { .sa_handler = on_signal };
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (fay_agent_create(&settings->agent, keys, &agent, error))
		return error->code;
	fprintf(stderr, "fayd: %s has joined the cluster\n", settings->agent.name);
	while (!interrupted && !result)
		result = fay_agent_tick(agent, error);
	fay_agent_end(agent, result ? 0 : END_MS);
	fay_agent_destroy(agent);
	return result;
}

int main(int argc, char **argv)
{
	static struct settings settings;
	static char host[64];
	struct fay_error error = { 0 };
	struct fay_keys keys;
	fay_messages_guard();
	fay_names_read_by(fay_demangled_matches);
	fay_places_read_by(fay_debug_places_read);
	gethostname(host, sizeof(host) - 1);
	settings.agent.name = host;
	settings.agent.limits.memory = 256u << 20;
	int result = parse(&settings, argc, argv);
	if (result)
		return result;
	settings.agent.bus.name = "fayd";
	if (settings.audit && !(settings.agent.audit = fopen(settings.audit, "ae")))
		result = fay_error_set(&error, FAY_E_USAGE, "cannot open '%s': %s", settings.audit,
				       strerror(errno));
	else if (!(result = fay_keys_init(&error)) &&
		 !(result = fay_keys_read(settings.key, &keys, &error)))
		result = run(&settings, &keys, &error);
	if (result)
		fprintf(stderr, "fayd: %s\n", error.message);
	return result;
}
