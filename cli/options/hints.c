/* SPDX-License-Identifier: MIT */
/* What may have been meant: of words of the command line that mean nothing, and of queries that a
 * shell or the habits of another tool have changed. */
#include <ctype.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "fay/query.h"
#include "process/process.h"

#include "options.h"

#define CANDIDATES_MAX 2048u

static const char *nearest_option(const char *word, const struct option *options)
{
	const char *candidates[CANDIDATES_MAX];
	size_t count = 0;
	for (; options[count].name && count < CANDIDATES_MAX; count++)
		candidates[count] = options[count].name;
	return fay_query_suggest(word, candidates, count);
}

int fay_cli_getopt(int argc, char **argv, const char *letters, const struct option *options)
{
	int option = getopt_long(argc, argv, letters, options, NULL);
	const char *word = option == '?' && optind > 0 && optind <= argc ? argv[optind - 1] : "";
	if (strncmp(word, "--", 2) || strlen(word) > 40)
		return option;
	char name[64];
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
	const char *nearest = nearest_option(name, options);
	if (nearest && strcmp(nearest, name))
		fprintf(stderr, "%s: did you mean '--%s'?\n", argv[0], nearest);
	return option;
}

/* "libc!read", with nothing around it. */
static bool is_pattern(const char *query)
{
	const char *bang = strchr(query, '!');
	return bang && bang > query && bang[1] && !strpbrk(query, " \t\n(\"=");
}

/* "malloc" alone. */
static bool is_name(const char *query)
{
	size_t length = 0;
	while (isalnum((unsigned char)query[length]) || query[length] == '_')
		length++;
	return length && !query[length] && !isdigit((unsigned char)*query);
}

/* "kprobe:vfs_read { ... }": of bpftrace and its kin. */
static bool is_probe_of_others(const char *query)
{
	static const char *const kinds[] = {
		"kprobe:",   "kretprobe:", "uprobe:",   "uretprobe:", "tracepoint:",
		"t:",        "k:",         "kr:",       "u:",         "ur:",
		"usdt:",     "fentry:",    "fexit:",    "kfunc:",     "kretfunc:",
		"profile:",  "interval:",  "software:", "hardware:",  "rawtracepoint:",
		"syscall::", "syscall:",   "pid$",      "BEGIN",      "END",
		"probe "
	};
	query += strspn(query, " \t\n");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strncmp(query, kinds[i], strlen(kinds[i])))
			return true;
	return false;
}

/* The text of a file that is to be given with -f. */
static bool has_parameters(const char *query)
{
	const char *at = query;
	while (at && strncmp(at, "param ", 6))
		at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL;
	return at || !strncmp(query, "#!", 2);
}

/* A source whose name has no quotes: a shell has taken them away. */
static bool has_lost_quotes(const char *query)
{
	static const char *const sources[] = { "Function(", "Return(",  "Syscall(", "Tracepoint(",
					       "Usdt(",     "process(", "file(" };
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]) && !strchr(query, '"'); i++) {
		const char *name = strstr(query, sources[i]);
		name += name ? strlen(sources[i]) : 0;
		if (name && *name && (isalpha((unsigned char)*name) || strchr("_*/.", *name)) &&
		    strncmp(name, "kernel", 6))
			return true;
	}
	return false;
}

void fay_cli_query_hint(const char *query, struct fay_error *error)
{
	size_t used = strlen(error->message), room = sizeof(error->message) - used;
	if (error->code != FAY_E_USAGE || strncmp(error->message, "query:", 6))
		return;
	if (is_probe_of_others(query))
		snprintf(error->message + used, room,
			 "\nthat is not FayLINQ; docs/from-bpftrace.md translates one-liners of "
			 "bpftrace");
	else if (has_parameters(query))
		snprintf(error->message + used, room,
			 "\nparameters are for queries in files: fay trace -f FILE [ARGUMENTS]");
	else if (is_pattern(query))
		snprintf(error->message + used, room,
			 "\na query says what to do with the function: "
			 "'cluster.Function(\"%.100s\").Count()'",
			 query);
	else if (is_name(query))
		snprintf(error->message + used, room,
			 "\na query says what to do: 'cluster.Function(\"*!%.100s\").Count()' "
			 "counts "
			 "calls; -f %.100s is a query in a file, or an example",
			 query, query);
	else if (has_lost_quotes(query))
		snprintf(
			error->message + used, room,
			"\nthe query has no double quotes: the shell removes them unless the whole "
			"query is in single quotes, 'cluster.Function(\"libc!read\").Count()'");
}
