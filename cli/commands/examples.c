/* SPDX-License-Identifier: MIT */
/* `fay examples [WORD...]`: the library of queries, those in which words stand, or one of them;
 * `--run NAME` is `fay trace -f NAME`. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/options.h"
#include "cli/queries/queries.h"
#include "cli/trace/trace.h"

#include "commands.h"

static const char usage[] =
	"usage: fay examples [--names | WORD...]\n"
	"       fay examples --run NAME [OPTIONS OF fay trace] [ARGUMENTS]\n"
	"                    [-- COMMAND...]\n"
	"  fay examples             all queries that come with fay, by subject\n"
	"  fay examples slow read   those in which the words stand\n"
	"  fay examples opensnoop   one of them, with the commands that run it\n"
	"  fay examples --run opensnoop --for 5s\n"
	"                           the same as fay trace -f opensnoop --for 5s\n";

/* Whether a word of the text begins like that: `lock` is none of `block`. */
static bool begins_word(const char *text, const char *word)
{
	for (const char *at = text; (at = strcasestr(at, word)); at++)
		if (at == text || !isalnum((unsigned char)at[-1]))
			return true;
	return false;
}

/* All of the words. */
static bool has_words(const struct fay_example *example, const char *words)
{
	char word[64];
	int used;
	for (; words && sscanf(words, "%63s%n", word, &used) == 1; words += used)
		if (!strcasestr(example->name, word) && !begins_word(example->topic, word) &&
		    !begins_word(example->text, word))
			return false;
	return true;
}

static void print_list(const struct fay_examples *examples, const char *word)
{
	const char *topic = "";
	for (size_t i = 0; i < examples->count; i++) {
		const struct fay_example *example = &examples->items[i];
		if (!has_words(example, word))
			continue;
		if (strcmp(example->topic, topic))
			printf("%s%s\n", *topic ? "\n" : "", example->topic);
		topic = example->topic;
		printf("  %-20s  %s\n", example->name, example->title);
	}
}

static int print_examples(const struct fay_examples *examples, const char *word)
{
	const struct fay_example *example = word ? fay_examples_find(examples, word) : NULL;
	size_t matches = 0;
	for (size_t i = 0; i < examples->count; i++)
		matches += has_words(&examples->items[i], word);
	if (!example && !matches) {
		const char *nearest = fay_examples_suggest(examples, word);
		fprintf(stderr, "fay: no example has %s`%s`", strchr(word, ' ') ? "all of " : "",
			word);
		if (nearest)
			fprintf(stderr, "; did you mean `%s`?\n", nearest);
		else
			fprintf(stderr, "; `fay examples` lists all %zu\n", examples->count);
		return FAY_E_USAGE;
	}
	if (example)
		fputs(example->text, stdout);
	else
		print_list(examples, word);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "fay examples: cannot write: %s\n", strerror(errno));
		return FAY_E_INTERNAL;
	}
	if (!example)
		fprintf(stderr,
			"fay: `fay examples NAME` shows one, `fay trace -f NAME` runs it\n");
	return FAY_OK;
}

static int run(int argc, char **argv)
{
	char trace[] = "fay trace", file[] = "-f";
	char **words = calloc((size_t)argc + 2, sizeof(*words));
	if (!words)
		return FAY_E_LIMIT;
	words[0] = trace;
	words[1] = file;
	memcpy(words + 2, argv, (size_t)argc * sizeof(*words));
	return fay_trace_main(argc + 2, words);
}

int fay_examples_main(int argc, char **argv)
{
	static const struct option options[] = { { "run", no_argument, NULL, 'r' },
						 { "names", no_argument, NULL, 'n' },
						 { "help", no_argument, NULL, 'h' },
						 { 0 } };
	struct fay_examples examples;
	struct fay_error error;
	bool names = false;
	int option;
	optind = 1;
	while ((option = fay_cli_getopt(argc, argv, "+h", options)) != -1) {
		if (option == 'r' && optind < argc)
			return run(argc - optind, argv + optind);
		if (option == 'n') {
			names = true;
			continue;
		}
		if (option == 'r')
			fputs("fay examples: --run takes an example's name\n", stderr);
		fputs(usage, option == 'h' ? stdout : stderr);
		return option == 'h' ? FAY_OK : FAY_E_USAGE;
	}
	char words[256] = "";
	for (int i = optind; i < argc; i++)
		snprintf(words + strlen(words), sizeof(words) - strlen(words), "%s%s",
			 i > optind ? " " : "", argv[i]);
	if (names && optind < argc) {
		fputs(usage, stderr);
		return FAY_E_USAGE;
	}
	if (fay_examples_read(&examples, &error))
		return fay_cli_fail(&error);
	for (size_t i = 0; names && i < examples.count; i++)
		puts(examples.items[i].name);
	int result = names ? FAY_OK : print_examples(&examples, *words ? words : NULL);
	fay_examples_deinit(&examples);
	return result;
}
