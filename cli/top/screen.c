/* SPDX-License-Identifier: MIT */
/*
 * A view on the whole screen, by ncurses, which writes what has changed and nothing else:
 *
 *     what is shown
 *     CALLS/s*    CALLS      P50  FUNCTION
 *     rows, the chosen one in reverse; under a chosen stack its functions
 *     what was said last
 *     keys
 *     the query
 *
 * Columns that do not fit are left out from the right, the name never.
 */
#define NCURSES_NOMACROS
#include <curses.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/output/output.h"
#include "cli/output/output_parts.h"

#include "trace/names/names.h"

#include "parts.h"

#define NUMBER 9 /* columns of a number, with a space behind it */
#define NAME_LEAST 11
#define QUERY_SHARE 6 /* a sixth of the lines at most */

static WINDOW *window; /* NULL: the screen is the terminal's own */

int fay_top_screen_begin(struct fay_error *error)
{
	if (!fay_top_can_draw())
		return fay_error_set(error, FAY_E_REFUSED,
				     "a terminal of the kind '%s' cannot be drawn on: use `fay "
				     "trace`, or `fay shell`",
				     getenv("TERM") ? getenv("TERM") : "");
	setlocale(LC_CTYPE, "");
	window = initscr();
	fay_messages_before = fay_top_screen_end;
	cbreak();
	noecho();
	curs_set(0);
	set_escdelay(25);
	keypad(window, TRUE);
	timeout(0);
	return FAY_OK;
}

void fay_top_screen_end(void)
{
	if (window && !isendwin())
		endwin();
}

int fay_top_screen_key(void)
{
	int key = getch();
	return key == ERR ? -1 : key;
}

/* As much of it as there is room for, in columns; the rest of the line is blank. */
static void put(int line, int column, const char *text, int room)
{
	unsigned used;
	if (room <= 0)
		return;
	size_t shown = fay_output_fit(text, strlen(text), (unsigned)room, &used);
	move(line, column);
	addnstr(text, (int)shown);
	for (; used < (unsigned)room; used++)
		addch(' ');
}

static void put_line(int line, const char *text, chtype attributes)
{
	attrset((int)attributes);
	/* the last column of the last line would scroll on some terminals */
	put(line, 0, text, getmaxx(window) - (line == getmaxy(window) - 1));
	attrset(A_NORMAL);
}

static void write_count(char *text, size_t size, double value)
{
	static const char units[] = "kMGT";
	size_t unit = 0;
	if (value < 1e5) {
		snprintf(text, size, value < 10 && value != (double)(long)value ? "%.1f" : "%.0f",
			 value);
		return;
	}
	for (value /= 1000; value >= 999.5 && unit < 3; unit++)
		value /= 1000;
	snprintf(text, size, "%.1f%c", value, units[unit]);
}

/* The rate of a function that is left out, as it was, if that is known. */
static void write_known(char *text, size_t size, double value)
{
	char number[24];
	write_count(number, sizeof(number), value);
	snprintf(text, size, value > 0 ? "(%s)" : "left out", number);
}

static void write_span(char *text, size_t size, double ns)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	size_t unit = 0;
	for (; ns >= 999.5 && unit < 3; unit++)
		ns /= 1000;
	snprintf(text, size, ns < 9.95 && unit ? "%.1f %s" : "%.0f %s", ns, units[unit]);
}

/* Columns of numbers, the rate included, for which there is room. */
static size_t count_columns(size_t wanted)
{
	int room = (getmaxx(window) - NAME_LEAST) / NUMBER;
	return room < 1 ? 1 : (size_t)room < wanted + 1 ? (size_t)room : wanted + 1;
}

static void draw_heads(const struct fay_top_screen *screen, int line)
{
	static const char *const names[] = { "    PID COMMAND", "FUNCTION", "STACK" };
	const struct fay_top_column *columns;
	size_t wanted = fay_top_columns(screen->view->kind, &columns),
	       count = count_columns(wanted);
	char text[256] = "", head[24];
	for (size_t i = 0; i < count; i++) {
		snprintf(head, sizeof(head), "%s%s", i ? columns[i - 1].name : "CALLS/s",
			 screen->column == i ? "*" : "");
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%*s ", NUMBER - 1,
			 head);
	}
	snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
		 names[screen->view->kind], screen->column > wanted ? "*" : "");
	put_line(line, text, A_BOLD);
}

static void draw_row(const struct fay_top_screen *screen, const struct fay_top_row *row, int line,
		     bool chosen)
{
	const struct fay_top_column *columns;
	size_t count = count_columns(fay_top_columns(screen->view->kind, &columns));
	char text[NUMBER * (FAY_TOP_VALUES + 1) + 1] = "", number[32];
	for (size_t i = 0; i < count; i++) {
		if (!i && row->out)
			write_known(number, sizeof(number), row->rate);
		else if (i && columns[i - 1].span)
			write_span(number, sizeof(number), (double)row->values[i - 1]);
		else
			write_count(number, sizeof(number),
				    i ? (double)row->values[i - 1] : row->rate);
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%*s ", NUMBER - 1,
			 number);
	}
	chtype attributes = chosen ? A_REVERSE : row->out ? A_DIM : A_NORMAL;
	put_line(line, text, attributes);
	attrset((int)attributes);
	put(line, (int)strlen(text), row->shown ? row->shown : row->name,
	    getmaxx(window) - (int)strlen(text));
	attrset(A_NORMAL);
}

static int query_lines(const struct fay_top_screen *screen)
{
	int width = getmaxx(window), most = getmaxy(window) / QUERY_SHARE;
	int wanted = ((int)strlen(screen->view->query) + width - 1) / width;
	most = most < 1 ? 1 : most;
	return wanted < 1 ? 1 : wanted < most ? wanted : most;
}

/* On a low screen what was said and the keys are left out. */
static int bottom_lines(const struct fay_top_screen *screen)
{
	return query_lines(screen) + (getmaxy(window) >= 10 ? 2 : 0);
}

size_t fay_top_screen_page(const struct fay_top_screen *screen)
{
	int lines = getmaxy(window) - 2 - bottom_lines(screen);
	return lines < 1 ? 1 : (size_t)lines;
}

/* Text of several lines, broken at words. */
static void draw_lines(int line, const char *text, int lines)
{
	for (unsigned used; *text && lines-- > 0; text += strspn(text, " ")) {
		size_t fits = fay_output_fit(text, strlen(text), (unsigned)getmaxx(window), &used),
		       end = fits;
		while (text[fits] && end && text[end] != ' ')
			end--;
		end = end ? end : fits;
		char *copy = strndup(text, end);
		put_line(line++, copy ? copy : "", A_NORMAL);
		free(copy);
		text += end ? end : 1;
	}
}

static void draw_rows(struct fay_top_screen *screen)
{
	const struct fay_top_table *table = &screen->view->table;
	size_t page = fay_top_screen_page(screen), line = 0;
	if (screen->chosen >= table->shown_count)
		screen->chosen = table->shown_count ? table->shown_count - 1 : 0;
	if (screen->first > screen->chosen)
		screen->first = screen->chosen;
	if (screen->chosen >= screen->first + page)
		screen->first = screen->chosen - page + 1;
	for (size_t i = screen->first; i < table->shown_count && line < page; i++) {
		const struct fay_top_row *row = table->shown[i];
		draw_row(screen, row, (int)(2 + line++), i == screen->chosen);
		for (size_t f = 0; i == screen->chosen && f < row->frame_count && line < page;
		     f++) {
			char frame[600];
			snprintf(frame, sizeof(frame), "%*s%s", NUMBER, "", row->frames[f]);
			put_line((int)(2 + line++), frame, A_NORMAL);
		}
	}
	if (!table->shown_count && screen->view->failed)
		draw_lines(2, screen->view->message, (int)page);
	else if (!table->shown_count)
		put_line(2, screen->view->tracer ? "nothing yet" : "attaching ... (Ctrl-C ends)",
			 A_NORMAL);
}

static void draw_title(const struct fay_top_screen *screen)
{
	const struct fay_top_view *view = screen->view;
	char text[800], comm[FAY_COMM_SIZE] = "", readable[256];
	const char *bang = strchr(view->function, '!'), *symbol = bang ? bang + 1 : view->function;
	if (view->kind != FAY_TOP_PROCESSES && fay_process_name(view->pid, comm))
		fay_printable(comm);
	int used = view->kind == FAY_TOP_PROCESSES
			   ? snprintf(text, sizeof(text), "fay top: system calls of processes")
		   : view->kind == FAY_TOP_FUNCTIONS
			   ? snprintf(text, sizeof(text), "fay top: functions of %s (%d)", comm,
				      view->pid)
			   : snprintf(text, sizeof(text), "fay top: what calls %.*s%s in %s (%d)",
				      (int)(symbol - view->function), view->function,
				      fay_readable_name(symbol, readable, sizeof(readable)), comm,
				      view->pid);
	snprintf(text + used, sizeof(text) - (size_t)used, "%s%s%s", view->paused ? ", PAUSED" : "",
		 *screen->filter ? ", filter " : "", screen->filter);
	put_line(0, text, A_REVERSE);
}

/* What was said last, or what rates in brackets are. */
static void draw_said(const struct fay_top_screen *screen, int line)
{
	const struct fay_top_view *view = screen->view;
	char legend[128];
	snprintf(legend, sizeof(legend),
		 "(rate): left out by the budget of %g%%, as it was before: %zu row%s",
		 view->budget * 100, view->table.out_count, view->table.out_count == 1 ? "" : "s");
	put_line(line,
		 *screen->notice         ? screen->notice
		 : view->table.out_count ? legend
					 : view->message,
		 A_NORMAL);
}

static void draw_bottom(const struct fay_top_screen *screen)
{
	static const char *const keys[] = {
		"Enter functions  s sort  / filter  p pause  w save  q quit",
		"Enter stacks  Esc back  f functions  s sort  / filter  p pause  w save  q quit",
		"Esc back  s sort  / filter  p pause  w save  q quit"
	};
	int lines = query_lines(screen), height = getmaxy(window), width = getmaxx(window);
	static const char *const prompts[] = {
		[FAY_TOP_NO_INPUT] = "",
		[FAY_TOP_FILTER] = "Filter",
		[FAY_TOP_SAVE] = "Save the table as CSV to",
		[FAY_TOP_WANTED] = "Functions, as libc!*, or *!* (empty: the program's)",
	};
	const char *query = screen->view->query;
	char typed[FAY_TOP_INPUT + 64];
	snprintf(typed, sizeof(typed), "%s: %s_", prompts[screen->input], screen->typed);
	if (height >= 10) {
		if (screen->input)
			put_line(height - lines - 2, typed, A_BOLD);
		else
			draw_said(screen, height - lines - 2);
		put_line(height - lines - 1, keys[screen->view->kind], A_DIM);
	} else if (screen->input) {
		put_line(0, typed, A_BOLD);
	}
	for (int i = 0; i < lines; i++) {
		put_line(height - lines + i, query, A_BOLD);
		query += strnlen(query, (size_t)width - (i == lines - 1));
	}
}

void fay_top_screen_draw(struct fay_top_screen *screen)
{
	fay_top_table_arrange(&screen->view->table, screen->column, screen->filter);
	erase();
	draw_title(screen);
	draw_heads(screen, 1);
	draw_rows(screen);
	draw_bottom(screen);
	refresh();
}
