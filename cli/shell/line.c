/* SPDX-License-Identifier: MIT */
/*
 * Lines that are typed, by readline. Its functions are loaded when they are first called
 * (process/delay); its variables are looked up here.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <readline/history.h>
#include <readline/readline.h>

#include "parts.h"

#define LIBRARY "libreadline.so.8"
#define HISTORY_MOST 1000 /* statements that are kept */

static void *library;
static const struct fay_shell *typing; /* for what readline calls */
static struct fay_completion found;
static size_t found_skip;      /* bytes of each name that readline does not take for the word */
static unsigned prompt_width;  /* columns: it is of ASCII */
static char history[PATH_MAX]; /* "": none is kept */

#define VARIABLE(name) (*(__typeof__(name) *)dlsym(library, #name))

/* The name of the file in the folder of XDG's base directories for state, which is made. */
static void find_history(void)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int length = state && *state == '/'
			     ? snprintf(history, sizeof(history), "%s/fay/history", state)
			     : snprintf(history, sizeof(history), "%s/.local/state/fay/history",
					home && *home == '/' ? home : "");
	if ((!(state && *state == '/') && !(home && *home == '/')) ||
	    length >= (int)sizeof(history)) {
		*history = 0;
		return;
	}
	for (char *slash = strchr(history + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(history, 0700);
		*slash = '/';
	}
}

static char *next_name(const char *text, int state)
{
	static size_t next;
	if (!state)
		next = 0;
	return next < found.count ? strdup(found.names[next++] + found_skip) : NULL;
}

/* readline's word begins behind the last character that is none of a name. */
static char **complete(const char *text, int start, int end)
{
	char *line = rl_copy_text(0, end), *statement = NULL;
	size_t before = typing->pending ? strlen(typing->pending) : 0;
	char **matches = NULL;
	if (line && asprintf(&statement, "%s%s", before ? typing->pending : "", line) >= 0) {
		fay_shell_complete(typing, statement, &found);
		VARIABLE(rl_attempted_completion_over) = !found.files;
		VARIABLE(rl_completion_append_character) = 0;
		found_skip = before + (size_t)start - found.begin;
		matches = rl_completion_matches(text, next_name);
		fay_completion_deinit(&found);
		free(statement);
	}
	free(line);
	return matches;
}

/* Where settings make the line another than the prompt and the text, nothing is put below it. */
static struct fay_typed typed_line(void)
{
	unsigned long state = VARIABLE(rl_readline_state);
	int lines = 0, columns = 0;
	rl_get_screen_size(&lines, &columns);
	bool plain = (state & RL_STATE_READCMD) && !(state & RL_STATE_NUMERICARG) &&
		     VARIABLE(rl_display_prompt) == VARIABLE(rl_prompt);
	return (struct fay_typed){ .line = VARIABLE(rl_line_buffer),
				   .cursor = (size_t)VARIABLE(rl_point),
				   .prompt = prompt_width,
				   .columns = (unsigned)columns,
				   .lines = (unsigned)lines,
				   .plain = plain,
				   .simple = VARIABLE(rl_editing_mode) == 1 };
}

static void interrupted(int terminal, const struct fay_typed *typed)
{
	struct winsize size;
	if (!ioctl(terminal, TIOCGWINSZ, &size) &&
	    (size.ws_col != typed->columns || size.ws_row != typed->lines))
		fay_hint_resized();
	else
		fay_hint_erase();
	rl_check_signals();
}

/* No signal is lost between the look at what has come and the wait. */
static bool await_input(FILE *in, const struct fay_typed *typed)
{
	sigset_t all, before;
	bool ready = false;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	if (fay_shell_interrupted || fay_shell_over || rl_pending_signal())
		errno = EINTR;
	else
		ready = fay_hint_wait(typing, fileno(in), typed, &before);
	int why = errno;
	sigprocmask(SIG_SETMASK, &before, NULL);
	errno = why;
	return ready;
}

/* readline's own goes on waiting when a signal came; here the line is given up. */
static int next_character(FILE *in)
{
	unsigned char character;
	while (!fay_shell_interrupted && !fay_shell_over) {
		struct fay_typed typed = typed_line();
		ssize_t size = await_input(in, &typed) ? read(fileno(in), &character, 1) : -1;
		if (size == 1) {
			fay_hint_key(character, &typed);
			return character;
		}
		if (!size || errno != EINTR)
			break;
		interrupted(fileno(in), &typed);
	}
	return EOF;
}

/* On terminals that take the commands of a VT100, with a line that is only that. */
static bool hints_fit(void)
{
	static const char *const off[] = { "horizontal-scroll-mode", "show-mode-in-prompt",
					   "mark-modified-lines" };
	const char *terminal = getenv("TERM"), *up = rl_get_termcap("up");
	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++)
		if (strcmp(rl_variable_value(off[i]), "off"))
			return false;
	return terminal && strcmp(terminal, "dumb") && up && *up == '\033';
}

int fay_shell_lines_begin(struct fay_shell *shell, struct fay_error *error)
{
	library = dlopen(LIBRARY, RTLD_NOW);
	if (!library)
		return fay_error_set(error, FAY_E_REFUSED,
				     "lines cannot be edited: %s; the package libreadline8 brings "
				     "it",
				     dlerror());
	typing = shell;
	VARIABLE(rl_readline_name) = "fay";
	VARIABLE(rl_attempted_completion_function) = complete;
	VARIABLE(rl_completer_word_break_characters) = " \t\n\"'(){}[],;:=<>&|+-*/%^~?.!@#$\\`";
	VARIABLE(rl_basic_quote_characters) = ""; /* nothing is put behind what is completed */
	VARIABLE(rl_getc_function) = next_character;
	rl_initialize();
	/* it would go through standard error, which lets nothing through that commands a terminal
	 * (fay_messages_guard()) */
	if (!strcmp(rl_variable_value("bell-style"), "audible"))
		rl_variable_bind("bell-style", "none");
	if (hints_fit())
		fay_hint_begin(VARIABLE(rl_outstream));
	using_history();
	stifle_history(HISTORY_MOST);
	find_history();
	if (*history)
		read_history(history);
	return FAY_OK;
}

void fay_shell_lines_end(void)
{
	if (*history)
		history_truncate_file(history, HISTORY_MOST);
}

char *fay_shell_line(const char *prompt)
{
	prompt_width = (unsigned)strlen(prompt);
	char *line = readline(prompt);
	fay_hint_end();
	if (fay_shell_interrupted || fay_shell_over) {
		free(line);
		line = NULL;
	}
	return line;
}

/* The history's file has lines. One with a comment is not joined: that would hide the rest. */
void fay_shell_remember(const char *statement)
{
	char *line = strdup(statement);
	size_t length = line ? strlen(line) : 0;
	while (length && line[length - 1] == '\n')
		line[--length] = 0;
	bool comment = length && strstr(line, "//") && strchr(line, '\n');
	for (char *end = line; length && !comment && (end = strchr(end, '\n'));)
		*end = ' ';
	using_history();
	const HIST_ENTRY *last = previous_history();
	bool again = last && length && !strcmp(last->line, line);
	using_history();
	if (length && !again)
		add_history(line);
	if (length && !again && !comment && *history && append_history(1, history))
		write_history(history); /* there is no such file yet */
	free(line);
}
