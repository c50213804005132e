/* SPDX-License-Identifier: MIT */
/*
 * Live pictures: each is drawn over the last one on a terminal. A picture is made in memory, cut to
 * the terminal's size as it is at that moment, and written at once. Its lines overwrite the old
 * ones, which are not cleared before, so nothing flickers; none is wrapped and none scrolls away,
 * so the cursor finds the way back to the first.
 *
 * When a terminal becomes narrower it wraps lines that it shows (xterm alone cuts them): that is
 * reckoned with. What is written to standard error meanwhile takes the picture's place, and the
 * picture is drawn anew below it. The last result is no picture: it is printed whole.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "output_parts.h"

#define PLAIN_LINES 24 /* of a terminal that does not say how large it is */
#define PLAIN_COLUMNS 80

volatile sig_atomic_t fay_live_due;
static struct fay_writer *on_screen; /* whose picture the terminal shows; NULL: it shows none */

static void terminal_size(const struct fay_writer *writer, unsigned *lines, unsigned *columns)
{
	struct winsize window = { 0 };
	bool known = !ioctl(fileno(writer->screen), TIOCGWINSZ, &window);
	*lines = known && window.ws_row ? window.ws_row : PLAIN_LINES;
	*columns = known && window.ws_col ? window.ws_col : PLAIN_COLUMNS;
}

/* To the first line of the last picture, so many lines up. Lines that have scrolled off a terminal
 * that became lower are out of reach. */
static unsigned go_back(struct fay_writer *writer)
{
	unsigned lines, columns, up = 0;
	terminal_size(writer, &lines, &columns);
	for (unsigned i = 0; i < writer->lines_drawn; i++)
		up += writer->drawn[i] > columns ? (writer->drawn[i] + columns - 1) / columns : 1;
	up = up < lines ? up : lines - 1;
	if (up)
		fprintf(writer->screen, "\033[%uA", up);
	writer->lines_drawn = 0;
	on_screen = NULL;
	return up;
}

/* Line by line: tmux, for one, keeps in its history what a command to clear the whole screen
 * clears. */
static void wipe(struct fay_writer *writer)
{
	unsigned lines = go_back(writer);
	for (unsigned i = 0; i < lines; i++)
		fputs("\033[K\n", writer->screen);
	if (lines)
		fprintf(writer->screen, "\033[%uA", lines);
}

void fay_live_clear(struct fay_writer *writer)
{
	if (writer != on_screen || !writer)
		return;
	writer->screen = writer->out;
	wipe(writer);
	fflush(writer->screen);
	writer->screen = NULL;
	fay_live_due = 1;
}

/* A message comes: before it is written. */
static void make_room(void)
{
	if (isatty(STDERR_FILENO))
		fay_live_clear(on_screen);
}

void fay_live_begin(struct fay_writer *writer, size_t views, bool final)
{
	unsigned lines, columns;
	writer->limited = false;
	if (!writer->live)
		return;
	fay_messages_before = make_room;
	fay_live_due = 0;
	FILE *memory = open_memstream(&writer->picture, &writer->picture_size);
	if (!memory)
		return; /* no memory: it is written as it comes, below what is there */
	writer->screen = writer->out;
	writer->out = memory;
	terminal_size(writer, &lines, &columns);
	writer->limited = !final;
	/* The cursor stands below the last line. */
	writer->lines_left = lines - 1 < FAY_LIVE_LINES ? lines - 1 : FAY_LIVE_LINES;
	writer->lines_left -= writer->headed && writer->lines_left > 2;
	*writer->head = 0;
	writer->views_left = views;
	writer->view_at = 0;
}

unsigned fay_live_share(const struct fay_writer *writer)
{
	unsigned share = writer->views_left ? (unsigned)(writer->lines_left / writer->views_left)
					    : writer->lines_left;
	return share ? share : 1;
}

static unsigned count_lines(const char *text, size_t size)
{
	unsigned lines = 0;
	for (const char *end = text + size;
	     text < end && (text = memchr(text, '\n', (size_t)(end - text))); text++)
		lines++;
	return lines;
}

/* Where that line begins. */
static size_t find_line(const char *text, unsigned line)
{
	const char *at = text;
	while (line--)
		at = strchr(at, '\n') + 1;
	return (size_t)(at - text);
}

void fay_live_view_end(struct fay_writer *writer)
{
	unsigned share = fay_live_share(writer);
	if (!writer->screen || !writer->limited || fflush(writer->out))
		return;
	unsigned lines = count_lines(writer->picture + writer->view_at,
				     writer->picture_size - writer->view_at);
	if (lines > share) {
		size_t end =
			writer->view_at + find_line(writer->picture + writer->view_at, share - 1);
		fseeko(writer->out, (off_t)end, SEEK_SET);
		fprintf(writer->out, "... and %u more lines\n", lines - share + 1);
		fflush(writer->out);
		lines = share;
	}
	writer->lines_left -= lines < writer->lines_left ? lines : writer->lines_left;
	writer->views_left -= writer->views_left > 0;
	writer->view_at = writer->picture_size;
}

/* Of what has no end of its own: a colour that is cut off is one to the line's end. */
static void draw_line(struct fay_writer *writer, const char *text, size_t size, unsigned columns)
{
	unsigned used;
	size_t shown = fay_output_fit(text, size, columns, &used);
	fwrite(text, shown, 1, writer->screen);
	if (shown < size && memchr(text, '\033', shown))
		fputs("\033[0m", writer->screen);
	/* else the cursor waits behind the last column, and would clear that one */
	if (used < columns)
		fputs("\033[K", writer->screen);
	fputc('\n', writer->screen);
	writer->drawn[writer->lines_drawn++] = (uint16_t)(used < UINT16_MAX ? used : UINT16_MAX);
}

static void draw(struct fay_writer *writer)
{
	unsigned lines, columns;
	const char *end = writer->picture + writer->picture_size;
	terminal_size(writer, &lines, &columns);
	if (*writer->head && lines > 3)
		draw_line(writer, writer->head, strlen(writer->head), columns);
	for (const char *line = writer->picture, *next;
	     line < end && writer->lines_drawn < FAY_LIVE_LINES && writer->lines_drawn + 1 < lines;
	     line = next + 1) {
		next = memchr(line, '\n', (size_t)(end - line));
		next = next ? next : end;
		draw_line(writer, line, (size_t)(next - line), columns);
	}
	on_screen = writer;
}

void fay_live_end(struct fay_writer *writer)
{
	FILE *memory = writer->out;
	if (!writer->screen)
		return;
	bool made = !fclose(memory);
	writer->out = writer->screen;
	if (made && writer->limited) {
		go_back(writer);
		draw(writer);
		fputs("\033[J", writer->screen); /* what is left of a longer one */
	} else if (made) {
		wipe(writer);
		fwrite(writer->picture, writer->picture_size, 1, writer->screen);
	}
	fflush(writer->screen);
	writer->screen = NULL;
	free(writer->picture);
	writer->picture = NULL;
}
