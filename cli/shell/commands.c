/* SPDX-License-Identifier: MIT */
/* Lines that begin with a dot: what they are called, take and do. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/options.h"
#include "cli/trace/trace.h"
#include "fay/query.h"
#include "trace/names/names.h"

#include "parts.h"

static int help(struct fay_shell *shell, char *rest);
static int quit(struct fay_shell *shell, char *rest);

int fay_shell_target(struct fay_shell *shell, const char *text)
{
	char nearest[FAY_COMM_SIZE];
	pid_t pid = fay_is_number(text) && strlen(text) < 10 ? atoi(text) : 0;
	if (pid && fay_process_of_thread(pid) != pid) {
		fprintf(stderr, "fay: there is no process %d\n", pid);
		return FAY_E_REFUSED;
	}
	if (!pid && !fay_process_find_comm(text, NULL, 0)) {
		const char *name = fay_nearest_comm(text, nearest);
		fprintf(stderr, "fay: no process is named `%s`%s%s%s\n", text,
			name ? "; did you mean `" : "", name ? name : "", name ? "`?" : "");
		return FAY_E_REFUSED;
	}
	shell->pid = pid;
	snprintf(shell->target, sizeof(shell->target), "%s", text);
	return FAY_OK;
}

static int target(struct fay_shell *shell, char *rest)
{
	if (!strcmp(rest, "*")) {
		shell->pid = 0;
		*shell->target = 0;
		return FAY_OK;
	}
	if (*rest)
		return fay_shell_target(shell, rest);
	if (*shell->target)
		printf("%s %s\n", shell->pid ? "process" : "processes named", shell->target);
	else
		puts("none: queries about the kernel are about the whole machine");
	return FAY_OK;
}

static int explain(struct fay_shell *shell, char *rest)
{
	const char *words[] = { "explain", *rest ? rest : shell->last };
	if (!words[1]) {
		fputs("fay: there was no query yet: .explain QUERY\n", stderr);
		return FAY_E_USAGE;
	}
	return fay_shell_start(shell, true, words, 2);
}

/* `fay COMMAND` with the words of the line. */
static int start(struct fay_shell *shell, bool targeted, const char *command, char *rest)
{
	const char *words[FAY_SHELL_WORDS] = { command };
	size_t count = 1 + fay_shell_split(rest, words + 1, FAY_SHELL_WORDS - 1);
	return fay_shell_start(shell, targeted, words, count);
}

static int examples(struct fay_shell *shell, char *rest)
{
	return start(shell, false, "examples", rest);
}

/* With the options that queries have here. */
static int run(struct fay_shell *shell, char *rest)
{
	const char *words[FAY_SHELL_WORDS] = { "trace" };
	size_t count = 1;
	if (!*rest) {
		fputs("fay: .run takes a file, or an example's name: .examples lists them\n",
		      stderr);
		return FAY_E_USAGE;
	}
	char *given = strdup(shell->options ? shell->options : "");
	if (!given)
		return FAY_E_LIMIT;
	count += fay_shell_split(given, words + count, FAY_SHELL_WORDS - 2);
	if (count < FAY_SHELL_WORDS)
		words[count++] = "-f";
	count += fay_shell_split(rest, words + count, FAY_SHELL_WORDS - count);
	int result = fay_shell_start(shell, true, words, count);
	free(given);
	return result;
}

static int list(struct fay_shell *shell, char *rest)
{
	if (*shell->target || strstr(rest, "--"))
		return start(shell, true, "list", rest);
	fputs("fay: of which process? .target PID|NAME, or .list --syscalls, .list --kernel\n",
	      stderr);
	return FAY_E_USAGE;
}

static int options(struct fay_shell *shell, char *rest)
{
	if (!*rest) {
		puts(shell->options && *shell->options ? shell->options : "none");
		return FAY_OK;
	}
	char *kept = strdup(strcmp(rest, "none") ? rest : "");
	const char *words[FAY_SHELL_WORDS];
	size_t count = kept ? fay_shell_split(rest, words, FAY_SHELL_WORDS) : 0;
	if (!kept)
		return FAY_E_LIMIT;
	if (*kept && !fay_trace_takes(words, count)) {
		free(kept);
		return FAY_E_USAGE;
	}
	free(shell->options);
	shell->options = kept;
	return FAY_OK;
}

/* What is said below a query that is being typed. */
static int hints(struct fay_shell *shell, char *rest)
{
	if (*rest && strcmp(rest, "on") && strcmp(rest, "off")) {
		fputs("fay: .hints takes on or off\n", stderr);
		return FAY_E_USAGE;
	}
	if (*rest)
		shell->quiet = !strcmp(rest, "off");
	else
		puts(shell->quiet ? "off" : "on");
	return FAY_OK;
}

/* A file that is there is left alone. */
static int save(struct fay_shell *shell, char *rest)
{
	if (!*rest || !shell->last) {
		fputs(*rest ? "fay: there was no query yet\n" : "fay: .save takes a file\n",
		      stderr);
		return FAY_E_USAGE;
	}
	FILE *file = fopen(rest, "wxe");
	bool written = file && fputs(shell->last, file) >= 0;
	if (file)
		written &= !fclose(file);
	if (!written) {
		fprintf(stderr, "fay: cannot write '%s': %s\n", rest, strerror(errno));
		return FAY_E_INTERNAL;
	}
	printf("fay trace -f %s runs it\n", rest);
	return FAY_OK;
}

static const struct command {
	const char *name, *takes, *what;
	int (*run)(struct fay_shell *shell, char *rest);
} commands[] = {
	{ ".target", "[PID|NAME|*]", "which processes are traced; * none", target },
	{ ".explain", "[QUERY]", "how this query, or the last one, would run", explain },
	{ ".examples", "[WORD]", "queries that come with fay", examples },
	{ ".run", "NAME [ARGUMENTS]", "an example, or the query in a file", run },
	{ ".list", "[MODULE!GLOB]", "the target's functions", list },
	{ ".options", "[OPTIONS|none]", "of fay trace: --for 10s --json", options },
	{ ".hints", "[on|off]", "below a query, what it would do", hints },
	{ ".save", "FILE", "writes the last query to a file", save },
	{ ".help", "", "this", help },
	{ ".quit", "", "so does Ctrl-D", quit },
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

const char *fay_shell_command_name(size_t index)
{
	return index < COMMANDS ? commands[index].name : NULL;
}

static int help(struct fay_shell *shell, char *rest)
{
	for (size_t i = 0; i < COMMANDS; i++)
		printf("%-9s %-16s  %s\n", commands[i].name, commands[i].takes, commands[i].what);
	puts("\nA query ends with `;` or an empty line, and its trace with Ctrl-C. Tab completes.\n"
	     "For example: cluster.Syscall(\"*\").Count();");
	return FAY_OK;
}

static int quit(struct fay_shell *shell, char *rest)
{
	return FAY_OK;
}

bool fay_shell_command(struct fay_shell *shell, char *line)
{
	const char *names[COMMANDS];
	size_t length = strlen(line), word;
	while (length && strchr(" \t;", line[length - 1]))
		line[--length] = 0;
	word = strcspn(line, " \t");
	char *rest = line + word + strspn(line + word, " \t");
	line[word] = 0;
	for (size_t i = 0; i < COMMANDS; i++) {
		names[i] = commands[i].name;
		if (strcmp(line, names[i]) && (strcmp(line, ".exit") || commands[i].run != quit))
			continue;
		int result = commands[i].run(shell, rest);
		shell->result = result ? result : shell->result;
		return commands[i].run != quit;
	}
	const char *nearest = fay_query_suggest(line, names, COMMANDS);
	fprintf(stderr, "fay: unknown command `%s`; %s%s%s\n", line,
		nearest ? "did you mean `" : "`.help", nearest ? nearest : "",
		nearest ? "`?" : "` lists all");
	shell->result = FAY_E_USAGE;
	return true;
}
