/* SPDX-License-Identifier: MIT */
/* `fay inspect`: what an image is, whether or not it would be accepted. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "fay/error.h"
#include "inspect.h"

struct options {
	bool json, att, help;
};

static void print_usage(FILE *out, const char *program)
{
	fprintf(out, "usage: %s [--json] [--att] IMAGE\n", program);
}

static int help(const char *program)
{
	print_usage(stdout, program);
	printf("\n"
	       "Shows what a probe image is, without judging it: probes and what they read,\n"
	       "state with its columns, helpers, texts, loops with their bounds, and each\n"
	       "function's calls, control flow, cost and code. What an image that `fay verify`\n"
	       "refuses has, is shown as far as it can be read.\n"
	       "\n"
	       "  --json  one JSON object instead of text (docs/cli-json.md)\n"
	       "  --att   instructions in the syntax of AT&T, instead of Intel's\n"
	       "\n"
	       "exit codes: 0 shown, 1 not even its tables could be read, 2 usage, 3 a limit was\n"
	       "            reached, 4 internal\n");
	return fflush(stdout) ? FAY_E_INTERNAL : FAY_OK;
}

static int parse(int argc, char **argv, struct options *options)
{
	static const struct option table[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "att", no_argument, NULL, 'a' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int option;

	optind = 1;
	while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
		switch (option) {
		case 'j': options->json = true; break;
		case 'a': options->att = true; break;
		case 'h': options->help = true; return FAY_OK;
		default: print_usage(stderr, argv[0]); return FAY_E_USAGE;
		}
	}
	if (argc - optind == 1)
		return FAY_OK;
	fprintf(stderr, "%s: %s\n", argv[0],
		argc == optind ? "no image: name its file" : "only one image at a time");
	print_usage(stderr, argv[0]);
	return FAY_E_USAGE;
}

static int show(const char *program, const char *path, const struct options *options,
		const struct fay_inspected *in)
{
	if (options->json)
		fay_inspect_print_json(stdout, path, options->att, in);
	else
		fay_inspect_print(stdout, path, options->att, in);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "%s: cannot write: %s\n", program, strerror(errno));
		return FAY_E_INTERNAL;
	}
	return fay_inspect_has_tables(in) ? FAY_OK : FAY_E_REFUSED;
}

int fay_inspect_main(int argc, char **argv)
{
	struct options options = { 0 };
	struct fay_inspected in;
	struct fay_policy policy;
	uint8_t *bytes = NULL;
	size_t size = 0;
	int result = parse(argc, argv, &options);

	if (!result && options.help)
		return help(argv[0]);
	if (!result)
		result = fay_command_read(argv[0], argv[optind], &bytes, &size);
	if (result)
		return result;
	fay_inspect_policy(&policy);
	if (fay_inspect_init(&in, bytes, size, &policy, false)) {
		result = show(argv[0], argv[optind], &options, &in);
	} else {
		fprintf(stderr, "%s: out of memory\n", argv[0]);
		result = FAY_E_LIMIT;
	}
	fay_inspect_deinit(&in);
	free(bytes);
	return result;
}
