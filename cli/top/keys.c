/* SPDX-License-Identifier: MIT */
/* What keys do. */
#define NCURSES_NOMACROS
#include <curses.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

#define ESCAPE 27
#define DELETE 127

static void put_quoted(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++)
		fprintf(out, *text == '"' ? "\"%c" : "%c", *text);
	fputc('"', out);
}

/* The rows that are shown, in their order. A file that is there is left alone. */
static void save(struct fay_top_screen *screen)
{
	const struct fay_top_table *table = &screen->view->table;
	const struct fay_top_column *columns;
	size_t count = fay_top_columns(screen->view->kind, &columns);
	FILE *out = fopen(screen->typed, "wxe");
	if (out) {
		fputs("NAME,CALLS/s", out);
		for (size_t i = 0; i < count; i++)
			fprintf(out, ",%s%s", columns[i].name, columns[i].span ? " ns" : "");
		fputs(",LEFT OUT", out);
	}
	for (size_t r = 0; out && r < table->shown_count; r++) {
		fputc('\n', out);
		put_quoted(out, table->shown[r]->name);
		fprintf(out, ",%.1f", table->shown[r]->rate);
		for (size_t i = 0; i < count; i++)
			fprintf(out, ",%llu", (unsigned long long)table->shown[r]->values[i]);
		fprintf(out, ",%d", table->shown[r]->out);
	}
	bool written = out && fputc('\n', out) != EOF && !ferror(out);
	if (out)
		written &= !fclose(out);
	snprintf(screen->notice, sizeof(screen->notice), "%s %s%s%s",
		 written ? "saved to" : "cannot write", screen->typed, written ? "" : ": ",
		 written ? "" : strerror(errno));
	fay_printable(screen->notice);
}

static void show(struct fay_top_screen *screen)
{
	fay_top_view_ask(screen->view);
	fay_top_screen_draw(screen);
	fay_top_view_open(screen->view);
}

/* Other functions of the process are traced. */
static void want(struct fay_top_screen *screen)
{
	struct fay_top_view *view = screen->view;
	fay_top_view_close(view);
	memcpy(view->wanted, screen->typed, sizeof(view->wanted));
	view->paused = false;
	screen->chosen = screen->first = 0;
	show(screen);
}

static void type(struct fay_top_screen *screen, int key)
{
	size_t length = strlen(screen->typed);
	if (key == ESCAPE) {
		screen->input = FAY_TOP_NO_INPUT;
	} else if (key == '\n' || key == '\r' || key == KEY_ENTER) {
		enum fay_top_input input = screen->input;
		screen->input = FAY_TOP_NO_INPUT;
		if (input == FAY_TOP_FILTER)
			memcpy(screen->filter, screen->typed, sizeof(screen->filter));
		else if (input == FAY_TOP_WANTED)
			want(screen);
		else if (length)
			save(screen);
	} else if (key == KEY_BACKSPACE || key == DELETE || key == '\b') {
		if (length)
			screen->typed[length - 1] = 0;
	} else if (key >= ' ' && key < DELETE && length + 1 < sizeof(screen->typed)) {
		screen->typed[length] = (char)key;
		screen->typed[length + 1] = 0;
	}
}

/* To what the chosen row is about. */
static void enter(struct fay_top_screen *screen)
{
	struct fay_top_view *view = screen->view;
	char name[512];
	if (screen->chosen >= view->table.shown_count || view->kind == FAY_TOP_STACKS)
		return;
	snprintf(name, sizeof(name), "%s", view->table.shown[screen->chosen]->name);
	if (view->kind == FAY_TOP_PROCESSES)
		view->pid = (pid_t)atoi(name);
	else if (!fay_top_view_function(view, name))
		return;
	fay_top_view_stop(view);
	struct fay_top_left *left = &screen->left[view->kind++];
	*left = (struct fay_top_left){ .table = view->table,
				       .chosen = screen->chosen,
				       .first = screen->first,
				       .column = screen->column };
	memcpy(left->filter, screen->filter, sizeof(left->filter));
	view->table = (struct fay_top_table){ 0 };
	view->paused = false;
	screen->chosen = screen->first = screen->column = 0;
	*screen->filter = 0;
	show(screen);
}

/* To the view that was left, as it was, if one was; its counts go on. */
static void back(struct fay_top_screen *screen)
{
	struct fay_top_view *view = screen->view;
	if (view->kind == FAY_TOP_PROCESSES)
		return;
	fay_top_view_close(view);
	struct fay_top_left *left = &screen->left[--view->kind];
	view->table = left->table;
	view->paused = false;
	fay_top_table_resume(&view->table);
	screen->chosen = left->chosen;
	screen->first = left->first;
	screen->column = left->column;
	memcpy(screen->filter, left->filter, sizeof(screen->filter));
	*left = (struct fay_top_left){ 0 };
	show(screen);
}

void fay_top_screen_forget(struct fay_top_screen *screen)
{
	for (size_t i = 0; i < FAY_TOP_KINDS; i++)
		fay_top_table_clear(&screen->left[i].table);
}

static void move_to(struct fay_top_screen *screen, long row)
{
	long last = (long)screen->view->table.shown_count - 1;
	row = row > last ? last : row;
	screen->chosen = row < 0 ? 0 : (size_t)row;
}

bool fay_top_key(struct fay_top_screen *screen, int key)
{
	const struct fay_top_column *columns;
	long chosen = (long)screen->chosen, page = (long)fay_top_screen_page(screen);
	if (key == KEY_RESIZE)
		return true;
	if (screen->input) {
		type(screen, key);
		return true;
	}
	*screen->notice = 0;
	switch (key) {
	case 'q': return false;
	case KEY_UP:
	case 'k': move_to(screen, chosen - 1); break;
	case KEY_DOWN:
	case 'j': move_to(screen, chosen + 1); break;
	case KEY_PPAGE: move_to(screen, chosen - page); break;
	case KEY_NPAGE: move_to(screen, chosen + page); break;
	case KEY_HOME: move_to(screen, 0); break;
	case KEY_END: move_to(screen, (long)screen->view->table.shown_count); break;
	case '\n':
	case '\r':
	case KEY_ENTER:
	case KEY_RIGHT: enter(screen); break;
	case ESCAPE:
	case KEY_LEFT:
	case KEY_BACKSPACE:
	case DELETE: back(screen); break;
	case 's':
		screen->column = (screen->column + 1) %
				 (unsigned)(fay_top_columns(screen->view->kind, &columns) + 2);
		break;
	case 'p':
	case ' ': screen->view->paused = !screen->view->paused; break;
	case 'f':
		if (screen->view->kind != FAY_TOP_FUNCTIONS)
			break;
		screen->input = FAY_TOP_WANTED;
		memcpy(screen->typed, screen->view->wanted, sizeof(screen->typed));
		break;
	case '/':
	case 'w':
		screen->input = key == '/' ? FAY_TOP_FILTER : FAY_TOP_SAVE;
		*screen->typed = 0;
		break;
	default: break;
	}
	return true;
}
