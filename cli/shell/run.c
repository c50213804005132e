/* SPDX-License-Identifier: MIT */
/*
 * What a line asks for is done by fay's other commands, each a process of its own: Ctrl-C ends the
 * query and not the shell, and a query begins as it would on a command line.
 */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/options/options.h"
#include "fay/clock.h"
#include "fay/query.h"

#include "parts.h"

extern char **environ;

size_t fay_shell_split(char *line, const char **words, size_t most)
{
	size_t count = 0;
	char *rest = line;
	for (char *word; count < most && (word = strtok_r(rest, " \t\n", &rest));)
		words[count++] = word;
	return count;
}

static int wait_for(pid_t pid)
{
	int status;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return FAY_E_INTERNAL;
		/* Ctrl-C reaches it by itself. */
		if (fay_shell_over)
			kill(pid, SIGTERM);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : FAY_E_INTERNAL;
}

int fay_shell_start(struct fay_shell *shell, bool targeted, const char *const *words, size_t count)
{
	const char *arguments[FAY_SHELL_WORDS + 8] = { "fay", words[0] };
	size_t used = 2;
	char number[16];
	pid_t pid;
	snprintf(number, sizeof(number), "%d", shell->pid);
	if (targeted && *shell->target) {
		arguments[used++] = shell->pid ? "-p" : "--comm";
		arguments[used++] = shell->pid ? number : shell->target;
	}
	for (size_t i = 1; i < count && i < FAY_SHELL_WORDS; i++)
		arguments[used++] = words[i];
	fflush(stdout);
	int failed =
		posix_spawn(&pid, "/proc/self/exe", NULL, NULL, (char *const *)arguments, environ);
	if (failed) {
		fprintf(stderr, "fay: cannot start `fay %s`: %s\n", words[0], strerror(failed));
		return FAY_E_INTERNAL;
	}
	return wait_for(pid);
}

static unsigned terminal_width(void)
{
	struct winsize size;
	return !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : 80;
}

static unsigned count_lines(const char *text)
{
	unsigned lines = 1;
	while ((text = strchr(text, '\n')) && text[1] && text[1] != '\n') {
		lines++;
		text++;
	}
	return lines;
}

/* "query:2:10: MESSAGE", the line and a caret line: the line is there already, if it is the one
 * that was typed last. */
static void tell(const struct fay_shell *shell, const char *query, size_t prompt,
		 const struct fay_error *error)
{
	const char *message = error->message, *source, *caret, *rest;
	unsigned line, column;
	int at = 0;
	bool has_place = sscanf(message, "query:%u:%u: %n", &line, &column, &at) == 2 && at;
	source = has_place ? strchr(message, '\n') : NULL;
	caret = source ? strchr(source + 1, '\n') : NULL;
	if (!caret || !shell->terminal || line != count_lines(query) ||
	    prompt + strlen(source) > terminal_width() || strncmp(source, "\n    ", 5) ||
	    !strncmp(source + 5, "...", 3)) {
		fay_cli_fail(error);
		return;
	}
	caret += strspn(caret, "\n ");
	rest = caret + strcspn(caret, "\n");
	fprintf(stderr, "%*s%.*s\nfay: %.*s%s\n", (int)(prompt + column - 1), "",
		(int)(rest - caret), caret, (int)(source - message) - at, message + at, rest);
}

struct fay_function_search fay_shell_functions(const struct fay_shell *shell,
					       const char *const *target)
{
	return (struct fay_function_search){ .pids = &shell->pid,
					     .pid_count = shell->pid != 0,
					     .comms = target,
					     .comm_count = !shell->pid && **target };
}

int fay_shell_run(struct fay_shell *shell, const char *query, size_t prompt)
{
	const char *comm = shell->target;
	struct fay_function_search functions = fay_shell_functions(shell, &comm);
	const struct fay_query_options options = { .now = fay_realtime(),
						   .extend = true,
						   .long_strings = true,
						   .long_kernel_strings = true,
						   .find = fay_search_function,
						   .find_context = &functions };
	const char *words[FAY_SHELL_WORDS] = { "trace" };
	struct fay_plan *plan;
	struct fay_error error;
	if (fay_query_plan_with(query, &options, &plan, &error)) {
		fay_cli_query_hint(query, &error);
		tell(shell, query, prompt, &error);
		return error.code;
	}
	bool targeted = !plan->process && plan->domain != DOMAIN_FILE;
	bool missing = !plan->process && plan->domain == DOMAIN_USER && !*shell->target;
	fay_plan_destroy(plan);
	if (missing) {
		fputs("fay: of which processes? `.target PID` or `.target NAME` says, or "
		      "process(\"NAME\") in the place of `cluster`\n",
		      stderr);
		return FAY_E_USAGE;
	}
	char *given = strdup(shell->options ? shell->options : "");
	size_t count = 1;
	if (given)
		count += fay_shell_split(given, words + 1, FAY_SHELL_WORDS - 2);
	words[count++] = query;
	int result = fay_shell_start(shell, targeted, words, count);
	free(given);
	return result;
}
