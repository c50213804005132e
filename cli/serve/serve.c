/* SPDX-License-Identifier: MIT */
/* `fay serve`: from the command line to processes that trace, and what they find over HTTP. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/options/options.h"
#include "cli/queries/queries.h"

#include "parts.h"
#include "serve.h"

#define FILE_MAX (1u << 20) /* of a token, a certificate, a key */
#define LOOK_MS 500

static const char usage_text[] =
	"usage: fay serve [--listen ADDRESS:PORT] [--token-file FILE]\n"
	"                 [--tls-cert FILE --tls-key FILE] [-p PID | --comm NAME]\n"
	"                 [OPTIONS OF fay trace] ([NAME=]QUERY | -f FILE)...\n";
static const char help_text[] =
	"\n"
	"Traces until it is told to end, and serves results so far: /metrics for\n"
	"Prometheus, / as a page. Metrics are fay_NAME_COLUMN; NAME is the file's, or\n"
	"what stands before the query, else q1, q2, ...\n\n";

enum { PASSED = 256 }; /* to each trace */
static const struct fay_cli_option table[] = {
	{ 'L', "listen", "ADDRESS:PORT",
	  "127.0.0.1:9464 unless given; other machines need a token" },
	{ 'K', "token-file", "FILE",
	  "who asks must have this token: `Authorization: Bearer TOKEN`, or as a password" },
	{ 'C', "tls-cert", "FILE", NULL },
	{ 'E', "tls-key", "FILE", "over HTTPS, by this certificate and key (PEM)" },
	{ 'f', "file", "FILE",
	  "a query in a file, or an example (`fay examples`); its parameters have their own "
	  "values" },
	{ 'h', "help", NULL, "this text" },
	{ 'p', "pid", "PID", NULL },
	{ PASSED, "comm", "NAME", NULL },
	{ PASSED + 1, "cmdline", "REGEX", NULL },
	{ PASSED + 2, "user", "USER", NULL },
	{ PASSED + 3, "cgroup", "NAME", NULL },
	{ PASSED + 4, "tid", "TID", NULL },
	{ PASSED + 5, "wait", NULL, NULL },
	{ PASSED + 6, "follow", NULL, NULL },
	{ PASSED + 7, "no-follow", NULL, NULL },
	{ PASSED + 8, "for", "T", NULL },
	{ PASSED + 9, "every", "T", NULL },
	{ PASSED + 10, "budget", "P%", NULL },
	{ PASSED + 11, "policy", "FILE", NULL },
	{ PASSED + 12, "only-inline", NULL, "of each query, as of `fay trace`" },
	{ 0 },
};

static volatile sig_atomic_t ended;

static void on_signal(int number)
{
	ended = number;
}

static int usage(const char *message)
{
	if (message)
		fprintf(stderr, "fay serve: %s\n", message);
	fputs(usage_text, stderr);
	return FAY_E_USAGE;
}

/* --- the command line --- */

/* What names metrics: letters, digits and single underscores. */
static int name_query(struct serve_query *query, const char *name, size_t length)
{
	size_t used = 0;
	for (size_t i = 0; i < length && used < sizeof(query->name) - 1; i++) {
		if (isalnum((unsigned char)name[i]) && (unsigned char)name[i] < 0x80)
			query->name[used++] = name[i];
		else if (used && query->name[used - 1] != '_')
			query->name[used++] = '_';
	}
	used -= used && query->name[used - 1] == '_';
	query->name[used] = 0;
	return used ? FAY_OK : usage("a query's name has letters or digits");
}

static struct serve_query *add_query(struct serve *serve)
{
	if (serve->count == SERVE_QUERIES_MAX)
		return NULL;
	struct serve_query *query = &serve->queries[serve->count++];
	query->metrics.fd = query->tables.fd = -1;
	return query;
}

static int add_text(struct serve *serve, const char *word)
{
	struct serve_query *query = add_query(serve);
	size_t name = 0;
	char number[16];
	if (!query)
		return usage("too many queries");
	while (isalnum((unsigned char)word[name]) || word[name] == '_' || word[name] == '-')
		name++;
	bool named = name && word[name] == '=' && word[name + 1] != '=';
	query->text = strdup(named ? word + name + 1 : word);
	if (!query->text)
		return FAY_E_LIMIT;
	snprintf(number, sizeof(number), "q%zu", serve->count);
	return name_query(query, named ? word : number, named ? name : strlen(number));
}

static int add_file(struct serve *serve, const char *path)
{
	struct serve_query *query = add_query(serve);
	struct fay_error error;
	if (!query)
		return usage("too many queries");
	if (fay_query_file_read(path, NULL, 0, &query->text, &error))
		return fay_cli_fail(&error);
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	return name_query(query, name, strcspn(name, "."));
}

/* Metrics of two queries must differ, whatever the columns are called. */
static int check_names(const struct serve *serve)
{
	for (size_t i = 0; i < serve->count; i++) {
		const char *name = serve->queries[i].name;
		size_t length = strlen(name);
		if (!strcmp(name, "query") || !strncmp(name, "query_", 6))
			return usage("no query may be called 'query': these metrics are fay's");
		for (size_t j = 0; j < serve->count; j++) {
			const char *other = serve->queries[j].name;
			if (i == j || strncmp(name, other, length) ||
			    (other[length] && other[length] != '_'))
				continue;
			fprintf(stderr,
				"fay serve: queries called '%s' and '%s' would have the same "
				"metrics; NAME=QUERY gives a name\n",
				name, other);
			return FAY_E_USAGE;
		}
	}
	return FAY_OK;
}

static int pass(struct serve *serve, const char *name, const char *value)
{
	char **option = &serve->options[serve->option_count];
	if (serve->option_count + 1 >= sizeof(serve->options) / sizeof(serve->options[0]))
		return usage("too many options");
	if (asprintf(option, value ? "--%s=%s" : "--%s", name, value) < 0)
		return FAY_E_LIMIT;
	serve->option_count++;
	return FAY_OK;
}

static int take_option(struct serve *serve, int option, const struct option *options, bool *every)
{
	switch (option) {
	case 'L': serve->listen = optarg; return FAY_OK;
	case 'K': serve->token_file = optarg; return FAY_OK;
	case 'C': serve->certificate_file = optarg; return FAY_OK;
	case 'E': serve->key_file = optarg; return FAY_OK;
	case 'f': return add_file(serve, optarg);
	case 'p': return pass(serve, "pid", optarg);
	}
	for (; options->name; options++) {
		if (options->val != option)
			continue;
		*every |= !strcmp(options->name, "every");
		return pass(serve, options->name, options->has_arg ? optarg : NULL);
	}
	return usage(NULL);
}

static int parse(struct serve *serve, int argc, char **argv, bool *help)
{
	struct option options[FAY_CLI_OPTIONS_MAX];
	bool every = false;
	int option, result;
	fay_cli_long_options(table, options);
	while ((option = fay_cli_getopt(argc, argv, "p:f:h", options)) != -1) {
		*help |= option == 'h';
		if (*help)
			return FAY_OK;
		if ((result = take_option(serve, option, options, &every)))
			return result;
	}
	for (int i = optind; i < argc; i++)
		if ((result = add_text(serve, argv[i])))
			return result;
	if (!serve->count)
		return usage("a query is missing");
	if (!serve->certificate_file != !serve->key_file)
		return usage("--tls-cert and --tls-key go together");
	if (!every && (result = pass(serve, "every", "1s")))
		return result;
	return check_names(serve);
}

/* A small file as text; `path` NULL: there is none. */
static int read_text(const char *path, char **text, struct fay_error *error)
{
	FILE *file = path ? fopen(path, "re") : NULL;
	if (!path)
		return FAY_OK;
	*text = calloc(1, FILE_MAX + 1);
	size_t size = file && *text ? fread(*text, 1, FILE_MAX, file) : 0;
	int why = errno;
	if (file)
		fclose(file);
	if (!size)
		return fay_error_set(error, FAY_E_USAGE, "cannot read '%s': %s", path,
				     file ? "it is empty" : strerror(why));
	return FAY_OK;
}

static int read_files(struct serve *serve, struct fay_error *error)
{
	if (read_text(serve->token_file, &serve->token, error) ||
	    read_text(serve->certificate_file, &serve->certificate, error) ||
	    read_text(serve->key_file, &serve->key, error))
		return error->code;
	if (serve->token)
		serve->token[strcspn(serve->token, "\r\n")] = 0;
	if (serve->token && strlen(serve->token) < 16)
		return fay_error_set(error, FAY_E_USAGE, "the token in '%s' has less than 16 bytes",
				     serve->token_file);
	return FAY_OK;
}

/* --- running --- */

/* The exit code that ends all: of a query that has ended without any result. -1: go on. */
static int look(struct serve *serve, struct serve_http *http)
{
	bool any = false;
	int failed = -1;
	for (size_t i = 0; i < serve->count; i++) {
		struct serve_query *query = &serve->queries[i];
		if (serve_query_look(query) && http)
			serve_http_changed(http);
		any |= query->pid != 0;
		if (!query->pid && query->code)
			failed = query->code;
	}
	return failed >= 0 ? failed : any ? -1 : FAY_OK;
}

/* Until something has come, somebody asks, or a while has passed. */
static void wait_for_more(struct serve *serve, struct serve_http *http)
{
	struct pollfd polled[2 * SERVE_QUERIES_MAX + 1];
	int timeout = LOOK_MS;
	nfds_t count = 0;
	if (http) {
		polled[count++] = (struct pollfd){ .fd = serve_http_descriptor(http, &timeout),
						   .events = POLLIN };
		timeout = timeout < 0 || timeout > LOOK_MS ? LOOK_MS : timeout;
	}
	for (size_t i = 0; i < serve->count; i++) {
		polled[count++] =
			(struct pollfd){ .fd = serve->queries[i].metrics.fd, .events = POLLIN };
		polled[count++] =
			(struct pollfd){ .fd = serve->queries[i].tables.fd, .events = POLLIN };
	}
	poll(polled, count, timeout);
}

/* Probes are taken out before it ends. */
static void end_all(struct serve *serve)
{
	bool any = true;
	while (any) {
		any = false;
		look(serve, NULL);
		for (size_t i = 0; i < serve->count; i++) {
			serve_query_end(&serve->queries[i]);
			any |= serve->queries[i].pid != 0;
		}
		if (any)
			wait_for_more(serve, NULL);
	}
}

static int run(struct serve *serve, struct fay_error *error)
{
	struct serve_http *http = NULL;
	int code = -1;
	for (size_t i = 0; i < serve->count && code < 0; i++)
		if (serve_query_start(serve, &serve->queries[i], error))
			code = error->code;
	if (code < 0 && serve_http_open(serve, &http, error))
		code = error->code;
	if (code < 0)
		fprintf(stderr,
			"fay serve: metrics at http%s://%s/metrics, a page at /; Ctrl-C ends\n",
			serve->certificate ? "s" : "", serve->address);
	while (code < 0 && !ended) {
		wait_for_more(serve, http);
		serve_http_answer(http);
		code = look(serve, http);
	}
	serve_http_close(http);
	end_all(serve);
	return code < 0 ? FAY_OK : code;
}

int fay_serve_main(int argc, char **argv)
{
	static struct serve serve = { .listen = "127.0.0.1:9464" };
	struct fay_error error = { 0 };
	bool help = false;
	int result = parse(&serve, argc, argv, &help);
	if (result)
		return result;
	if (help) {
		printf("%s%s", usage_text, help_text);
		fay_cli_help(table, "pfh");
		return FAY_OK;
	}
	if (read_files(&serve, &error) || serve_http_listen(&serve, &error))
		return fay_cli_fail(&error);
	if (!serve.loopback && !serve.token)
		return usage("other machines could read the results: --listen beyond 127.0.0.1 "
			     "needs --token-file");
	fay_cli_catch_ends(on_signal);
	result = run(&serve, &error);
	return error.code ? fay_cli_fail(&error) : result;
}
