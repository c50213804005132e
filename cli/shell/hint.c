/* SPDX-License-Identifier: MIT */
/*
 * What the query that is being typed would do, on the line below it.
 *
 * When nothing was typed for a moment, `fay explain --brief` is asked, a process of its own, so
 * that keys are never waited with. Its answer is drawn below the line, by moves relative to the
 * cursor, which then stands where it was: readline does not know of it. It is taken away before a
 * key is acted on that may move lines, and is left alone by those that only make the line longer or
 * shorter, so nothing flickers while one types.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

#include "parts.h"

#define PAUSE_MS 300       /* in typing, before something is asked */
#define COLUMNS_LEAST 40u  /* of a terminal on which it is worth its line */
#define STATEMENT_MAX 4096 /* bytes; longer ones come from elsewhere */

extern char **environ;

struct place {
	unsigned down;      /* lines from the cursor to the one below the text */
	unsigned column;    /* of the cursor */
	unsigned row, last; /* of what is behind the text: line and column */
};

static struct {
	FILE *out;          /* NULL: nothing is shown */
	char *asked;        /* what was asked for last */
	char text[512];     /* what is to be shown of that; "": nothing, or it is not known yet */
	struct place place; /* of the line, when it was drawn last */
	bool drawn;         /* `text` stands below the line */
	pid_t pid;          /* who is asked; 0: nobody */
	int pipe;           /* what it says */
	char answer[2048];  /* so far */
	size_t answer_size;
} hint;

void fay_hint_begin(FILE *out)
{
	hint.out = out;
}

/* --- where the line lies --- */

/* -1: there are characters that are not shown as they are. */
static int width_of(const char *text, size_t size)
{
	mbstate_t state = { 0 };
	int width = 0;
	while (size) {
		wchar_t wide;
		size_t length = mbrtowc(&wide, text, size, &state);
		int columns = !length || length > size ? -1 : wcwidth(wide);
		if (columns != 1) /* two might be wrapped as one */
			return -1;
		width++;
		text += length;
		size -= length;
	}
	return width;
}

/* false: it cannot be said, or there is no room. */
static bool find_place(const struct fay_typed *typed, struct place *place)
{
	int cursor = width_of(typed->line, typed->cursor);
	int end = width_of(typed->line, strlen(typed->line));
	if (cursor < 0 || end < 0 || typed->columns < COLUMNS_LEAST)
		return false;
	unsigned before = typed->prompt + (unsigned)cursor, all = typed->prompt + (unsigned)end;
	*place = (struct place){ .down = all / typed->columns - before / typed->columns + 1,
				 .column = before % typed->columns,
				 .row = all / typed->columns,
				 .last = all % typed->columns };
	/* where a full line ends, terminals differ */
	return place->last && place->row + 2 < typed->lines;
}

static void go_back(const struct place *place)
{
	fprintf(hint.out, "\r\033[%uA", place->down);
	if (place->column)
		fprintf(hint.out, "\033[%uC", place->column);
	fflush(hint.out);
}

void fay_hint_erase(void)
{
	if (!hint.drawn)
		return;
	hint.drawn = false;
	fprintf(hint.out, "\033[%uB\r\033[J", hint.place.down);
	go_back(&hint.place);
}

/* The line below is there, or comes to be by the line feeds. */
static void draw(const struct fay_typed *typed)
{
	const char *no = getenv("NO_COLOR");
	const char *soft = no && *no ? "" : "\033[2m", *plain = *soft ? "\033[m" : "";
	if (!*hint.text || !find_place(typed, &hint.place))
		return;
	size_t size = strlen(hint.text);
	while (size &&
	       (width_of(hint.text, size) < 0 || width_of(hint.text, size) >= (int)typed->columns))
		size--;
	for (unsigned i = 0; i < hint.place.down; i++)
		fputc('\n', hint.out);
	fprintf(hint.out, "\r%s%.*s%s\033[K", soft, (int)size, hint.text, plain);
	go_back(&hint.place);
	hint.drawn = true;
}

/* readline may have taken keys since it drew the line. */
void fay_hint_key(unsigned char key, const struct fay_typed *typed)
{
	struct place place;
	bool longer = key >= ' ' && key < 127, shorter = key == 127;
	if (!typed->simple || (!longer && !shorter) || !find_place(typed, &place) ||
	    place.row != hint.place.row ||
	    (longer ? place.last + 1 == typed->columns : place.last == 1))
		fay_hint_erase();
}

void fay_hint_resized(void)
{
	if (!hint.drawn)
		return;
	hint.drawn = false;
	fputs("\033[J", hint.out); /* readline draws the line anew */
	fflush(hint.out);
}

/* --- what is said --- */

static void stop_asking(void)
{
	if (!hint.pid)
		return;
	kill(hint.pid, SIGKILL);
	while (waitpid(hint.pid, NULL, 0) < 0 && errno == EINTR)
		;
	close(hint.pipe);
	hint.pid = 0;
}

void fay_hint_end(void)
{
	stop_asking();
	hint.drawn = false;
	free(hint.asked);
	hint.asked = NULL;
	*hint.text = 0;
}

static void ask(const struct fay_shell *shell, const char *query, const sigset_t *mask)
{
	char number[16];
	const char *words[] = { "fay", "explain", "--brief", NULL, NULL, NULL, NULL };
	int ends[2];
	posix_spawn_file_actions_t files;
	posix_spawnattr_t signals;
	size_t used = 3;
	snprintf(number, sizeof(number), "%d", shell->pid);
	if (*shell->target) {
		words[used++] = shell->pid ? "-p" : "--comm";
		words[used++] = shell->pid ? number : shell->target;
	}
	words[used] = query;
	if (pipe2(ends, O_CLOEXEC))
		return;
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, ends[1], 1);
	posix_spawn_file_actions_adddup2(&files, ends[1], 2);
	posix_spawnattr_init(&signals);
	posix_spawnattr_setflags(&signals, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&signals, mask);
	if (posix_spawn(&hint.pid, "/proc/self/exe", &files, &signals, (char *const *)words,
			environ))
		hint.pid = 0;
	posix_spawnattr_destroy(&signals);
	posix_spawn_file_actions_destroy(&files);
	close(ends[1]);
	hint.pipe = ends[0];
	hint.answer_size = 0;
	if (!hint.pid)
		close(ends[0]);
}

/* Whether what is wrong there is that the query goes on: from there on is a word at most, or a
 * string without an end. */
static bool goes_on(const char *query, unsigned line, unsigned column)
{
	for (; line > 1 && (query = strchr(query, '\n')); line--)
		query++;
	if (!query || strlen(query) < column)
		return true;
	query += column - 1;
	if (*query == '"')
		return !strchr(query + 1, '"');
	while (isalnum((unsigned char)*query) || *query == '_')
		query++;
	return !query[strspn(query, " \t\n;")];
}

/* Whether it is another text than before. */
static bool take_answer(bool failed)
{
	char before[sizeof(hint.text)];
	unsigned line, column;
	int length = 0;
	hint.answer[hint.answer_size] = 0;
	char *text = hint.answer;
	text[strcspn(text, "\n")] = 0;
	text += strncmp(text, "fay: ", 5) ? 0 : 5;
	if (failed && sscanf(text, "query:%u:%u: %n", &line, &column, &length) == 2 && length) {
		text += length;
		if (goes_on(hint.asked, line, column))
			*text = 0;
	}
	memcpy(before, hint.text, sizeof(before));
	snprintf(hint.text, sizeof(hint.text), "%.500s", text);
	fay_printable(hint.text);
	return strcmp(before, hint.text) != 0;
}

static void hear(const struct fay_typed *typed)
{
	char rest[256];
	size_t room = sizeof(hint.answer) - 1 - hint.answer_size;
	ssize_t size = read(hint.pipe, room ? hint.answer + hint.answer_size : rest,
			    room ? room : sizeof(rest));
	int status = 0;
	if (size > 0) {
		hint.answer_size += room ? (size_t)size : 0;
		return;
	}
	if (size < 0 && errno == EINTR)
		return;
	close(hint.pipe);
	while (waitpid(hint.pid, &status, 0) < 0 && errno == EINTR)
		;
	hint.pid = 0;
	if (!take_answer(status != 0) && hint.drawn)
		return;
	if (*hint.text)
		draw(typed);
	else
		fay_hint_erase();
}

/* The statement so far; NULL: there is none that can be explained. */
static char *statement_of(const struct fay_shell *shell, const char *line)
{
	char *text = NULL;
	if (!shell->pending && *line == '.') {
		if (strncmp(line, ".explain ", 9))
			return NULL;
		line += 9;
	}
	if (asprintf(&text, "%s%s", shell->pending ? shell->pending : "", line) < 0)
		return NULL;
	if (strlen(text) <= STATEMENT_MAX && text[strspn(text, " \t\n;")])
		return text;
	free(text);
	return NULL;
}

/* Asks for another statement, or takes what was said of the last one away. */
static void change(const struct fay_shell *shell, const struct fay_typed *typed, char *statement,
		   const sigset_t *mask)
{
	stop_asking();
	free(hint.asked);
	hint.asked = statement;
	if (statement) {
		ask(shell, statement, mask);
		return;
	}
	*hint.text = 0;
	fay_hint_erase();
}

bool fay_hint_wait(const struct fay_shell *shell, int input, const struct fay_typed *typed,
		   const sigset_t *mask)
{
	static const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000L };
	bool on = hint.out && !shell->quiet && typed->plain;
	char *statement = on ? statement_of(shell, typed->line) : NULL;
	bool known =
		!on || (statement ? hint.asked && !strcmp(statement, hint.asked) : !hint.asked);
	int ready;
	if (typed->plain && hint.drawn && !find_place(typed, &hint.place))
		hint.drawn = false; /* which the last key has not left */
	if (on && known && !hint.drawn && !hint.pid)
		draw(typed);
	for (;;) {
		struct pollfd files[] = { { .fd = input, .events = POLLIN },
					  { .fd = hint.pipe, .events = POLLIN } };
		bool hears = on && known && hint.pid;
		ready = ppoll(files, hears ? 2 : 1, known ? NULL : &pause, mask);
		if (ready < 0 || files[0].revents)
			break;
		if (ready && hears)
			hear(typed);
		if (ready)
			continue;
		change(shell, typed, statement, mask);
		statement = NULL;
		known = true;
	}
	free(statement);
	return ready > 0;
}
