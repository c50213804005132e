/* SPDX-License-Identifier: MIT */
/* `fay log`: the log of verdicts and installs that the trust store names. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/options.h"
#include "command.h"
#include "process/process.h"
#include "trust/trust.h"

struct log_options {
	const char *store, *head;
	bool json;
};

static int usage(FILE *out)
{
	fputs("usage: fay log verify [--head N:HASH] [FILE]\n"
	      "       fay log show [--json] [FILE]\n"
	      "       each with [--store DIRECTORY]\n",
	      out);
	return FAY_E_USAGE;
}

static int help(void)
{
	usage(stdout);
	printf("\n"
	       "What was verified and installed on this machine, where the trust store asks for\n"
	       "a log (`fay trust log FILE`).\n"
	       "\n"
	       "  verify         whether the log is as it was written; prints its head, which is\n"
	       "                 worth noting elsewhere\n"
	       "  show           its entries, a line each\n"
	       "  --head N:HASH  a head that was noted: the log must have it\n"
	       "  --json         a JSON object an entry\n"
	       "\n"
	       "Without FILE: the log that the store names; the store is %s.\n"
	       "exit codes: 0 done, 1 the log is not as it was written, 2 usage, or no log\n",
	       FAY_TRUST_STORE);
	return fflush(stdout) ? FAY_E_INTERNAL : FAY_OK;
}

static void print_fault(void *context, uint64_t line, const char *what)
{
	printf("line %" PRIu64 ": %s\n", line, what);
}

/* "N:HASH" */
static bool read_head(const char *text, struct fay_log_state *head)
{
	char *end;
	head->number = strtoull(text, &end, 10);
	return *text >= '1' && *text <= '9' && *end == ':' &&
	       fay_trust_hex(end + 1, strlen(end + 1), head->hash, sizeof(head->hash));
}

static int verify(const char *path, const char *noted, struct fay_error *error)
{
	struct fay_log_reader reader = { .fault = print_fault, .checks = true };
	struct fay_log_state state, head = { 0 };
	char hash[FAY_LOG_HASH_HEX + 1];
	if (noted && !read_head(noted, &head))
		return fay_error_set(error, FAY_E_USAGE,
				     "'%s' is no head as `fay log verify` prints it", noted);
	if (noted)
		reader.noted = &head;
	if (fay_log_read(path, &reader, &state, error))
		return error->code;
	fay_keys_hex(hash, state.hash);
	printf("whole: %" PRIu64 " entr%s", state.number, state.number == 1 ? "y" : "ies");
	if (state.number)
		printf(" from %s to %s", state.first, state.last);
	if (state.torn)
		printf("; %" PRIu64 " of which only a part was written", state.torn);
	printf("\nhead %" PRIu64 ":%s\n", state.number, hash);
	return FAY_OK;
}

static void print_entry(void *context, const struct fay_log_line *entry)
{
	printf("%" PRIu64 " ", entry->number);
	fay_printable_put(stdout, entry->time);
	printf(" user %s ", entry->user);
	fay_printable_put(stdout, entry->event);
	printf(" %.12s ", entry->image);
	fay_printable_put(stdout, entry->text);
	putchar('\n');
}

static void print_entry_json(void *context, const struct fay_log_line *entry)
{
	printf("{\"type\":\"log\",\"number\":%" PRIu64, entry->number);
	fay_json_text(stdout, ",\"time\":", entry->time);
	printf(",\"user\":%s", entry->user); /* a number, or it would be no entry */
	fay_json_text(stdout, ",\"event\":", entry->event);
	fay_json_text(stdout, ",\"image_sha256\":", entry->image);
	fay_json_text(stdout, ",\"policy_sha256\":", entry->policy);
	fay_json_text(stdout, ",\"text\":", entry->text);
	puts("}");
}

static int show(const char *path, bool json, struct fay_error *error)
{
	struct fay_log_reader reader = { .entry = json ? print_entry_json : print_entry };
	struct fay_log_state state;
	struct fay_error fault;
	int result = fay_log_read(path, &reader, &state, &fault);
	if (result == FAY_E_REFUSED)
		return fay_error_set(error, FAY_E_REFUSED, "%s: `fay log verify` says where",
				     fault.message);
	if (result)
		*error = fault;
	return result;
}

/* The log that the store names. */
static int find(const struct log_options *options, char path[FAY_LOG_PATH_MAX],
		struct fay_error *error)
{
	struct fay_trust_store store;
	int result = fay_trust_store_read(options->store, &store, error);
	strcpy(path, store.log);
	fay_trust_store_deinit(&store);
	if (!result && !*path)
		result = fay_error_set(error, FAY_E_USAGE,
				       "'%s' asks for no log; `fay trust log FILE` does",
				       options->store);
	return result;
}

int fay_log_main(int argc, char **argv)
{
	static const struct option names[] = { { "store", required_argument, NULL, 's' },
					       { "head", required_argument, NULL, 'H' },
					       { "json", no_argument, NULL, 'j' },
					       { "help", no_argument, NULL, 'h' },
					       { 0 } };
	struct log_options options = { .store = FAY_TRUST_STORE };
	struct fay_error error = { 0 };
	char path[FAY_LOG_PATH_MAX];
	int option;
	optind = 1;
	while ((option = fay_cli_getopt(argc, argv, "h", names)) != -1) {
		switch (option) {
		case 's': options.store = optarg; break;
		case 'H': options.head = optarg; break;
		case 'j': options.json = true; break;
		case 'h': return help();
		default: return usage(stderr);
		}
	}
	const char *what = optind < argc ? argv[optind] : "", *file = path;
	bool verifies = !strcmp(what, "verify") && !options.json,
	     shows = !strcmp(what, "show") && !options.head;
	if ((!verifies && !shows) || argc - optind > 2)
		return usage(stderr);
	if (argc - optind == 2)
		file = argv[optind + 1];
	else if (find(&options, path, &error))
		return fay_cli_fail(&error);
	int result =
		verifies ? verify(file, options.head, &error) : show(file, options.json, &error);
	if (fflush(stdout))
		return FAY_E_INTERNAL;
	return result ? fay_cli_fail(&error) : FAY_OK;
}
