/* SPDX-License-Identifier: MIT */
/* What the files of `fay shell` share. */
#ifndef FAY_CLI_SHELL_PARTS_H
#define FAY_CLI_SHELL_PARTS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "process/process.h"
#include "trace/functions/functions.h"

#define FAY_SHELL_WORDS 64u /* of a line, and options of `fay trace` */

struct fay_shell {
	bool terminal;              /* somebody types; else lines are read as they are */
	char target[FAY_COMM_SIZE]; /* processes of that name, or `pid`; "": none are chosen */
	pid_t pid;
	char *options; /* words for `fay trace`; NULL: none */
	char *last;    /* the query that was run last; NULL: there was none */
	char *pending; /* lines of a query that goes on; NULL */
	bool quiet;    /* nothing is said of what is being typed */
	int result;    /* the exit code of the statement that failed last */
};

/* --- line.c: lines that are typed --- */

/* Loads readline, and what was typed before. FAY_E_REFUSED: it cannot be loaded. */
int fay_shell_lines_begin(struct fay_shell *shell, struct fay_error *error);
void fay_shell_lines_end(void);
/* A line without its end, malloc'ed; NULL: there is none any more, or a signal came meanwhile. */
char *fay_shell_line(const char *prompt);
/* So that it can be called back, now and in later shells. */
void fay_shell_remember(const char *statement);

/* --- hint.c: what the query that is being typed would do, below its line --- */

struct fay_typed { /* a line as it stands on the terminal */
	const char *line;
	size_t cursor;           /* bytes before it */
	unsigned prompt;         /* columns */
	unsigned columns, lines; /* of the terminal */
	bool plain;              /* there is nothing but the prompt and the line */
	bool simple;             /* printable keys are put into the line, and no more */
};
/* Of a terminal that can go up by lines; without this nothing is shown. */
void fay_hint_begin(FILE *out);
/* Until there is something to read; false: a signal came, or errno says what else. Signals are
 * blocked but for those of `mask`, which come while it waits. */
bool fay_hint_wait(const struct fay_shell *shell, int input, const struct fay_typed *typed,
		   const sigset_t *mask);
/* Before that key is acted on. */
void fay_hint_key(unsigned char key, const struct fay_typed *typed);
void fay_hint_erase(void);
/* The terminal has another size, and the line will be drawn anew. */
void fay_hint_resized(void);
/* The line is done. */
void fay_hint_end(void);

/* --- complete.c: what a word can become --- */

struct fay_completion {
	size_t begin; /* of the word, in bytes of the text */
	char **names; /* each the whole word; malloc'ed */
	size_t count, room;
	bool files; /* it is a file's name */
};
/* `text` is the statement up to the cursor. */
void fay_shell_complete(const struct fay_shell *shell, const char *text,
			struct fay_completion *completion);
void fay_completion_add(struct fay_completion *completion, const char *name, const char *prefix);
void fay_completion_deinit(struct fay_completion *completion);

/* --- commands.c: lines that begin with a dot --- */

/* false: the shell ends. */
bool fay_shell_command(struct fay_shell *shell, char *line);
/* The name of command number `index`, ".help"; NULL: there are not so many. */
const char *fay_shell_command_name(size_t index);
/* FAY_E_REFUSED: there is no such process, which was said. */
int fay_shell_target(struct fay_shell *shell, const char *text);

/* --- run.c: fay's other commands --- */

/* Where functions are looked for: in the target, whose name `*target` is. */
struct fay_function_search fay_shell_functions(const struct fay_shell *shell,
					       const char *const *target);
/* Whether the query may be run: its errors are told, under the line itself where they can be. */
int fay_shell_run(struct fay_shell *shell, const char *query, size_t prompt);
/* `fay WORD...`, of so many words, for the target if `targeted`; returns its exit code. */
int fay_shell_start(struct fay_shell *shell, bool targeted, const char *const *words, size_t count);
/* The words of a line, in place; returns how many. */
size_t fay_shell_split(char *line, const char **words, size_t most);

/* --- shell.c --- */

/* Signals that came: of Ctrl-C, and of one that ends the shell. */
extern volatile sig_atomic_t fay_shell_interrupted, fay_shell_over;

#endif
