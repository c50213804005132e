/* SPDX-License-Identifier: MIT */
/*
 * `fay shell`: a prompt for queries. One goes on over lines until `;` or an empty line, as in psql
 * and sqlite3; lines that begin with a dot are commands (commands.c). Where nobody types, lines are
 * read as they are, without a prompt.
 */
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/options/options.h"

#include "parts.h"
#include "shell.h"

volatile sig_atomic_t fay_shell_interrupted, fay_shell_over;

static void on_signal(int number)
{
	if (number == SIGINT)
		fay_shell_interrupted = 1;
	else
		fay_shell_over = 1;
}

static void catch_signals(void)
{
	const struct sigaction action = { .sa_handler = on_signal };
	struct sigaction old;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (!sigaction(SIGHUP, NULL, &old) && old.sa_handler != SIG_IGN) /* nohup */
		sigaction(SIGHUP, &action, NULL);
}

static char *next_line(const struct fay_shell *shell, const char *prompt)
{
	char *line = NULL;
	size_t room = 0;
	if (shell->terminal)
		return fay_shell_line(prompt);
	ssize_t length = getline(&line, &room, stdin);
	if (length < 0) {
		free(line);
		return NULL;
	}
	line[strcspn(line, "\n")] = 0;
	return line;
}

/* Whether the query is whole with this line; false, too, if memory is short. */
static bool append(struct fay_shell *shell, const char *line)
{
	size_t length = strlen(line);
	char *text = NULL;
	while (length && strchr(" \t\r", line[length - 1]))
		length--;
	if (asprintf(&text, "%s%.*s\n", shell->pending ? shell->pending : "", (int)length, line) <
	    0)
		return false;
	free(shell->pending);
	shell->pending = text;
	return !length || line[length - 1] == ';';
}

static void forget(struct fay_shell *shell)
{
	free(shell->pending);
	shell->pending = NULL;
}

/* `prompt`: how wide the last one was. */
static void run_pending(struct fay_shell *shell, size_t prompt)
{
	char *query = shell->pending;
	shell->pending = NULL;
	if (shell->terminal)
		fay_shell_remember(query);
	int result = fay_shell_run(shell, query, prompt);
	shell->result = result ? result : shell->result;
	free(shell->last);
	shell->last = query;
}

/* A line that was typed; false: the shell ends. */
static bool take_line(struct fay_shell *shell, char *line, size_t prompt)
{
	const char *begin = line + strspn(line, " \t\r");
	if (!shell->pending && (!*begin || *begin == '#'))
		return true;
	static const char *const plain[] = { "help", "quit", "exit", "clear" };
	for (size_t i = 0; !shell->pending && i < sizeof(plain) / sizeof(plain[0]); i++) {
		size_t length = strlen(plain[i]);
		if (strncmp(begin, plain[i], length) ||
		    begin[length + strspn(begin + length, " \t;")])
			continue;
		fprintf(stderr, "fay: commands begin with a dot: .%s\n",
			i < 3 ? plain[i] : "help lists them");
		return true;
	}
	if (!shell->pending && *begin == '.') {
		if (shell->terminal)
			fay_shell_remember(line);
		return fay_shell_command(shell, line + (begin - line));
	}
	if (append(shell, line))
		run_pending(shell, prompt);
	return true;
}

static void run_shell(struct fay_shell *shell)
{
	char prompt[FAY_COMM_SIZE + 16];
	bool goes_on = true;
	while (goes_on && !fay_shell_over) {
		snprintf(prompt, sizeof(prompt), "fay%s%s%s ", *shell->target ? " " : "",
			 shell->target, shell->pending ? "..." : ">");
		if (shell->pending)
			snprintf(prompt, sizeof(prompt), "%*s ",
				 (int)(*shell->target ? strlen(shell->target) + 5 : 4), "...>");
		fay_shell_interrupted = 0;
		char *line = next_line(shell, prompt);
		if (line) {
			goes_on = take_line(shell, line, strlen(prompt));
		} else if (fay_shell_interrupted && shell->terminal) {
			putchar('\n');
			forget(shell);
		} else {
			goes_on = false;
		}
		free(line);
		if (fay_shell_interrupted && !shell->terminal)
			break;
	}
	if (shell->terminal && !fay_shell_over)
		putchar('\n');
	if (shell->pending && !shell->terminal && !fay_shell_interrupted && !fay_shell_over)
		run_pending(shell, 0); /* a last query without an end */
}

static const char usage[] =
	"usage: fay shell [-p PID | --comm NAME]\n"
	"  a prompt for queries: Tab completes, Ctrl-C ends a query, `.help` lists the\n"
	"  commands. `fay` without arguments is the same on a terminal; lines that are\n"
	"  piped in are run, too\n";

/* -1: go on. */
static int read_options(struct fay_shell *shell, int argc, char **argv)
{
	static const struct option options[] = { { "pid", required_argument, NULL, 'p' },
						 { "comm", required_argument, NULL, 'c' },
						 { "help", no_argument, NULL, 'h' },
						 { 0 } };
	int option;
	optind = 1;
	while ((option = fay_cli_getopt(argc, argv, "p:h", options)) != -1) {
		if (option == 'h' || option == '?') {
			fputs(usage, option == 'h' ? stdout : stderr);
			return option == 'h' ? FAY_OK : FAY_E_USAGE;
		}
		if (fay_shell_target(shell, optarg))
			return FAY_E_REFUSED;
	}
	if (optind == argc)
		return -1;
	fputs(usage, stderr);
	return FAY_E_USAGE;
}

int fay_shell_main(int argc, char **argv)
{
	struct fay_shell shell = { .terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) };
	struct fay_error error;
	int result = read_options(&shell, argc, argv);
	if (result >= 0)
		return result;
	catch_signals();
	setlocale(LC_CTYPE, "");
	if (shell.terminal && fay_shell_lines_begin(&shell, &error))
		return fay_cli_fail(&error);
	if (shell.terminal)
		puts("fay " FAY_VERSION ": `.help` lists what can be done; Ctrl-D ends");
	run_shell(&shell);
	if (shell.terminal)
		fay_shell_lines_end();
	forget(&shell);
	free(shell.last);
	free(shell.options);
	return shell.terminal ? FAY_OK : shell.result;
}
