/* SPDX-License-Identifier: MIT */
/* `fay diff`: what a new version of an image can do that the old one could not. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "diff.h"

/* As those of diff(1): 1 is an answer, everything that went wrong is 2. */
enum { EXIT_SAME = 0, EXIT_GREW = 1, EXIT_ERROR = 2 };

struct options {
	bool json, help;
	uint64_t factor;
};

static void print_usage(FILE *out, const char *program)
{
	fprintf(out, "usage: %s [--json] [--factor N] OLD NEW\n", program);
}

static int help(const char *program)
{
	print_usage(stdout, program);
	printf("\n"
	       "Says what the image NEW can do that OLD could not (+), what else is different\n"
	       "(~), and which functions changed. Instructions, stack, rounds of loops,\n"
	       "registers and CPU features are a compiler's choice too: they grow a capability\n"
	       "only where a number grows more than N times, %u unless it is given; with 1,\n"
	       "wherever they grow.\n"
	       "\n"
	       "  --json      one JSON object instead of text (docs/cli-json.md)\n"
	       "  --factor N  from 1\n"
	       "\n"
	       "exit codes: 0 no capability grew, 1 some did, 2 usage, what is no image, or\n"
	       "            another error\n",
	       FAY_DIFF_FACTOR);
	return fflush(stdout) ? EXIT_ERROR : EXIT_SAME;
}

static bool parse_factor(const char *text, uint64_t *factor)
{
	char *end;

	errno = 0;
	*factor = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && *factor;
}

static int parse(int argc, char **argv, struct options *options)
{
	static const struct option table[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "factor", required_argument, NULL, 'f' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int option;

	optind = 1;
	while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
		if (option == 'h') {
			options->help = true;
			return EXIT_SAME;
		}
		options->json |= option == 'j';
		if (option == 'f' && !parse_factor(optarg, &options->factor)) {
			fprintf(stderr, "%s: --factor %s: expected a number from 1\n", argv[0],
				optarg);
			option = '?';
		}
		if (option == '?') {
			print_usage(stderr, argv[0]);
			return EXIT_ERROR;
		}
	}
	if (argc - optind == 2)
		return EXIT_SAME;
	fprintf(stderr, "%s: two images are compared: OLD and NEW\n", argv[0]);
	print_usage(stderr, argv[0]);
	return EXIT_ERROR;
}

/* False after a message. *bytes and *in are to be released in any case. */
static bool open_image(const char *program, const char *path, uint8_t **bytes,
		       struct fay_inspected *in)
{
	struct fay_policy policy;
	size_t size;

	if (fay_command_read(program, path, bytes, &size))
		return false;
	fay_inspect_policy(&policy);
	if (!fay_inspect_init(in, *bytes, size, &policy, false)) {
		fprintf(stderr, "%s: out of memory\n", program);
		return false;
	}
	if (fay_inspect_has_tables(in))
		return true;
	fprintf(stderr, "%s: '%s' is no image that can be read: %s: %s\n", program, path,
		fay_rule_id(in->verdict.rejection.rule), in->verdict.rejection.what);
	return false;
}

static int show(const struct options *options, char **argv, const struct fay_inspected *old,
		const struct fay_inspected *new)
{
	struct fay_diff d = { .old = old, .new = new, .factor = options->factor };
	int result;

	fay_diff_probes(&d);
	fay_diff_states(&d);
	fay_diff_functions(&d);
	if (!d.failed && options->json)
		fay_diff_print_json(stdout, argv[optind], argv[optind + 1], &d);
	else if (!d.failed)
		fay_diff_print(stdout, argv[optind], argv[optind + 1], &d);
	result = d.grew ? EXIT_GREW : EXIT_SAME;
	if (d.failed || fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "%s: %s%s\n", argv[0],
			d.failed ? "out of memory" : "cannot write what differs: ",
			d.failed ? "" : strerror(errno));
		result = EXIT_ERROR;
	}
	free(d.changes);
	free(d.functions);
	return result;
}

int fay_diff_main(int argc, char **argv)
{
	struct options options = { .factor = FAY_DIFF_FACTOR };
	struct fay_inspected old = { 0 }, new = { 0 };
	uint8_t *old_bytes = NULL, *new_bytes = NULL;
	int result = parse(argc, argv, &options);

	if (result)
		return result;
	if (options.help)
		return help(argv[0]);
	result = EXIT_ERROR;
	if (open_image(argv[0], argv[optind], &old_bytes, &old) &&
	    open_image(argv[0], argv[optind + 1], &new_bytes, &new))
		result = show(&options, argv, &old, &new);
	fay_inspect_deinit(&old);
	fay_inspect_deinit(&new);
	free(old_bytes);
	free(new_bytes);
	return result;
}
