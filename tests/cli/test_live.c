/* SPDX-License-Identifier: MIT */
/* Live pictures on a terminal of a known size: what it shows then, what has scrolled away, and that
 * nothing is cleared and drawn again. */
#include <fcntl.h>
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/output/output.h"
#include "process/process.h"

#define LINES_MAX 60
#define COLUMNS_MAX 200
#define NAME 64
#define ROW_SIZE (8 + NAME + 8)

/* A terminal; characters of two columns are followed by an empty cell. */
static struct {
	int master;
	FILE *out;
	int lines, columns, y, x;
	char cells[LINES_MAX][COLUMNS_MAX][5];
	/* lines that are gone; whole pictures that were cleared before they were drawn over */
	unsigned scrolled, emptied;
} terminal;

static void resize(int lines, int columns)
{
	struct winsize size = { .ws_row = (unsigned short)lines,
				.ws_col = (unsigned short)columns };
	terminal.lines = lines;
	terminal.columns = columns;
	assert_int_equal(ioctl(terminal.master, TIOCSWINSZ, &size), 0);
}

static void start(int lines, int columns)
{
	struct termios raw;
	int slave;
	memset(&terminal, 0, sizeof(terminal));
	assert_int_equal(openpty(&terminal.master, &slave, NULL, NULL, NULL), 0);
	tcgetattr(slave, &raw);
	cfmakeraw(&raw);
	tcsetattr(slave, TCSANOW, &raw);
	fcntl(terminal.master, F_SETFL, O_NONBLOCK);
	terminal.out = fdopen(slave, "w");
	resize(lines, columns);
}

static void stop(void)
{
	fclose(terminal.out);
	close(terminal.master);
}

static void new_line(void)
{
	terminal.x = 0;
	if (++terminal.y < terminal.lines)
		return;
	memmove(terminal.cells[0], terminal.cells[1],
		sizeof(terminal.cells[0]) * (size_t)(terminal.lines - 1));
	memset(terminal.cells[terminal.lines - 1], 0, sizeof(terminal.cells[0]));
	terminal.y = terminal.lines - 1;
	terminal.scrolled++;
}

static void clear_from(int y, int x)
{
	for (; x < COLUMNS_MAX; x++)
		terminal.cells[y][x][0] = 0;
}

static const char *command(const char *s)
{
	int number = (int)strtol(s + 2, (char **)&s, 10);
	if (*s == 'A')
		terminal.y = terminal.y < number ? 0 : terminal.y - number;
	else if (*s == 'K')
		clear_from(terminal.y,
			   terminal.x < terminal.columns ? terminal.x : terminal.columns - 1);
	else if (*s == 'J') {
		terminal.emptied += terminal.cells[terminal.y][0][0] != 0;
		if (!terminal.y && !terminal.x && terminal.cells[0][0][0])
			/* as tmux does: into its history */
			terminal.scrolled += (unsigned)terminal.lines;
		for (int y = terminal.y; y < terminal.lines; y++)
			clear_from(y, 0);
	} else
		assert_int_equal(*s, 'm');
	return s + 1;
}

static const char *character(const char *s)
{
	int length = (*s & 0x80) == 0 ? 1 : (*s & 0xe0) == 0xc0 ? 2 : (*s & 0xf0) == 0xe0 ? 3 : 4;
	int width = length < 3 ? 1 : 2;
	/* a combining accent: on the letter before */
	if (length == 2 && (unsigned char)s[0] == 0xcc) {
		assert_true(terminal.x > 0);
		return s + 2;
	}
	if (terminal.x + width > terminal.columns)
		new_line();
	memcpy(terminal.cells[terminal.y][terminal.x], s, (size_t)length);
	terminal.cells[terminal.y][terminal.x][length] = 0;
	if (width == 2)
		terminal.cells[terminal.y][terminal.x + 1][0] = 0;
	terminal.x += width;
	return s + length;
}

/* Takes what was written. */
static void look(void)
{
	static char text[1 << 20];
	size_t size = 0;
	ssize_t got;
	fflush(terminal.out);
	while ((got = read(terminal.master, text + size, sizeof(text) - 1 - size)) > 0)
		size += (size_t)got;
	text[size] = 0;
	for (const char *s = text; *s;) {
		if (*s == '\033')
			s = command(s);
		else if (*s == '\n')
			new_line(), s++;
		else
			s = character(s);
	}
}

/* One line of the screen, without the blanks at its end. */
static const char *line(int y)
{
	static char text[4 * COLUMNS_MAX + 1];
	size_t used = 0, end = 0;
	for (int x = 0; x < terminal.columns; x++) {
		const char *cell = terminal.cells[y][x];
		if (!*cell && x && strlen(terminal.cells[y][x - 1]) > 2)
			continue;
		used += (size_t)sprintf(text + used, "%s", *cell ? cell : " ");
		if (*cell && *cell != ' ')
			end = used;
	}
	text[end] = 0;
	return text;
}

static struct fay_schema_column columns[] = {
	{ "name", FAY_TYPE_STRING, FAY_MERGE_KEY, 8, NAME, { 0, 0 } },
	{ "calls", FAY_TYPE_U64, FAY_MERGE_COUNT, 8 + NAME, 8, { 0, 0 } },
};
static struct fay_view_column view_columns[] = { { .name = "name", .column = &columns[0] },
						 { .name = "calls", .column = &columns[1] } };

/* A picture of `count` groups; the first one is called `name`, or as the others: "group 7", which
 * has 7 calls. */
static void picture(struct fay_writer *writer, size_t count, size_t views, const char *name,
		    bool final)
{
	static uint8_t rows[200][ROW_SIZE];
	struct fay_view view = { .columns = view_columns,
				 .column_count = 2,
				 .title = views > 1 ? "title" : NULL };
	struct fay_result result = { .row_size = ROW_SIZE, .row_count = count, .rows = rows[0] };
	memset(rows, 0, sizeof(rows));
	for (uint64_t i = 0; i < count; i++) {
		snprintf((char *)rows[i] + 8, NAME, "group %u", (unsigned)i);
		if (!i && name)
			snprintf((char *)rows[i] + 8, NAME, "%s", name);
		memcpy(rows[i] + 8 + NAME, &i, 8);
	}
	fay_live_begin(writer, views, final);
	for (size_t i = 0; i < views; i++)
		fay_write_result(writer, &view, &result, final);
	if (writer->headed && writer->limited)
		snprintf(writer->head, sizeof(writer->head), "%s", "2.0 s, 5 events/s, 0 lost");
	fay_live_end(writer);
	look();
}

static struct fay_writer live(void)
{
	return (struct fay_writer){ .out = terminal.out, .format = FAY_FORMAT_TABLE, .live = true };
}

/* More rows than lines: those of the largest counts, nothing scrolls away, nothing is cleared
 * before it is drawn over; at the end all of it. */
static void many_rows(void **state)
{
	(void)state;
	start(10, 60);
	struct fay_writer writer = live();
	fprintf(terminal.out, "before\n");
	picture(&writer, 100, 1, NULL, false);
	unsigned scrolled = terminal.scrolled;
	for (int i = 0; i < 5; i++) {
		picture(&writer, 100, 1, NULL, false);
		assert_int_equal(terminal.scrolled, scrolled);
		assert_string_equal(line(0), "name      calls   calls");
		assert_true(!strncmp(line(1), "group 99     99  |#####", 23));
		assert_true(!strncmp(line(7), "group 93     93  |#####", 23));
		assert_string_equal(line(8), "... and 93 more");
		assert_int_equal(terminal.y, 9);
	}
	assert_int_equal(terminal.emptied, 0);
	picture(&writer, 3, 1, NULL, false); /* a smaller one leaves nothing of the larger one */
	assert_true(!strncmp(line(3), "group 2      2  |", 16));
	assert_string_equal(line(4), "");
	assert_int_equal(terminal.y, 4);
	scrolled = terminal.scrolled;
	picture(&writer, 100, 1, NULL, true);
	assert_int_equal(terminal.scrolled - scrolled, 101 - 9);
	assert_true(!strncmp(line(8), "group 99     99  |#####", 23));
	stop();
}

/* Several results share the lines; one that needs few leaves them to the next. */
static void several_views(void **state)
{
	(void)state;
	start(14, 60);
	struct fay_writer writer = live();
	picture(&writer, 20, 2, NULL, false);
	picture(&writer, 20, 2, NULL, false);
	assert_int_equal(terminal.scrolled, 0);
	assert_string_equal(line(0), "title:");
	assert_string_equal(line(5), "... and 17 more");
	assert_string_equal(line(6), "title:");
	assert_string_equal(line(12), "... and 16 more");
	assert_int_equal(terminal.y, 13);
	stop();
}

/* No line is wrapped: names give way to numbers, and what still is too wide is cut. */
static void wide_columns(void **state)
{
	(void)state;
	start(10, 40);
	struct fay_writer writer = live();
	for (int i = 0; i < 3; i++)
		picture(&writer, 2, 1, "std::very_long_namespace::and_a_function_in_it()", false);
	assert_int_equal(terminal.scrolled, 0);
	assert_int_equal(terminal.y, 3);
	assert_string_equal(line(0), "name                               calls");
	assert_string_equal(line(1), "std::very_long_namespace::and_...      0");
	assert_string_equal(line(2), "group 1                                1");
	resize(10, 10);
	terminal.y = 0; /* where six lines of forty columns that are wrapped begin would be above */
	memset(terminal.cells, 0, sizeof(terminal.cells));
	for (int i = 0; i < 3; i++)
		picture(&writer, 2, 1, "std::very_long_namespace::and_a_function_in_it()", false);
	assert_string_equal(line(1), "std...");
	assert_string_equal(line(2), "gro...");
	assert_string_equal(line(3), "");
	resize(10, 16); /* numbers are whole, for a cut one is another */
	terminal.y = 3;
	picture(&writer, 2, 1, "std::very_long_namespace::and_a_function_in_it()", false);
	assert_string_equal(line(0), "name       calls");
	assert_string_equal(line(1), "std::v...      0");
	assert_string_equal(line(2), "group 1        1");
	resize(10, 80);
	picture(&writer, 2, 1, "std::very_long_namespace::and_a_function_in_it()", true);
	assert_true(!strncmp(line(1), "std::very_long_namespace::and_a_function_in_it()      0  |",
			     58));
	stop();
}

/* A terminal that becomes narrower wraps what it shows; the next picture begins where the wrapped
 * one does. */
static void narrower(void **state)
{
	(void)state;
	start(20, 40);
	struct fay_writer writer = live();
	fprintf(terminal.out, "before\n");
	picture(&writer, 2, 1, "a name that takes thirty letters..", false);
	assert_int_equal(terminal.y, 4);
	/* By hand what terminals do: lines of 40 columns become two of 20. */
	terminal.y = 1 + 3 * 2;
	resize(20, 20);
	picture(&writer, 2, 1, "a name that takes thirty letters..", false);
	assert_string_equal(line(0), "before");
	assert_string_equal(line(1), "name           calls");
	assert_string_equal(line(3), "group 1            1");
	assert_int_equal(terminal.y, 4);
	stop();
}

/* A line stands over pictures that has its place, is cut as others, and not over the last one. */
static void heads(void **state)
{
	(void)state;
	start(8, 40);
	struct fay_writer writer = live();
	writer.headed = true;
	picture(&writer, 20, 1, NULL, false);
	assert_string_equal(line(0), "2.0 s, 5 events/s, 0 lost");
	assert_true(!strncmp(line(1), "name      calls", 15));
	assert_string_equal(line(6), "... and 16 more");
	assert_int_equal(terminal.scrolled, 0);
	resize(8, 16);
	picture(&writer, 2, 1, NULL, false);
	assert_string_equal(line(0), "2.0 s, 5 events/");
	resize(3, 40);
	picture(&writer, 20, 1, NULL, false);
	assert_string_equal(line(2), "");
	resize(8, 40);
	picture(&writer, 2, 1, NULL, true);
	for (int y = 0; y < 8; y++)
		assert_null(strstr(line(y), "events/s"));
	stop();
}

/* Letters of two columns, and accents of none. */
static void wide_characters(void **state)
{
	(void)state;
	start(10, 40);
	struct fay_writer writer = live();
	picture(&writer, 2, 1, "\u30c7\u30fc\u30bf", false); /* six columns */
	assert_true(!strncmp(line(0), "name     calls", 14));
	assert_true(!strncmp(line(1), "\u30c7\u30fc\u30bf       0  |", 9 + 11));
	picture(&writer, 2, 1, "e\u0301te\u0301 et", false); /* two accents of their own */
	assert_true(!strncmp(line(2), "group 1      1  |", 16));
	resize(10, 21);
	picture(&writer, 2, 1, "\u30c7\u30fc\u30bf\u30c7\u30fc\u30bf\u30c7\u30fc\u30bf", false);
	assert_string_equal(line(1), "\u30c7\u30fc\u30bf\u30c7\u30fc...       0");
	stop();
}

/* What is said meanwhile takes the picture's place. */
static void messages(void **state)
{
	(void)state;
	start(10, 40);
	struct fay_writer writer = live();
	int own = dup(STDERR_FILENO);
	dup2(fileno(terminal.out), STDERR_FILENO);
	FILE *plain = stderr;
	fay_messages_guard();
	picture(&writer, 2, 1, NULL, false);
	fprintf(stderr, "a message\n");
	assert_int_equal(fay_live_due, 1);
	look();
	assert_string_equal(line(0), "a message");
	assert_string_equal(line(1), "");
	picture(&writer, 2, 1, NULL, false);
	assert_int_equal(fay_live_due, 0);
	assert_string_equal(line(0), "a message");
	assert_true(!strncmp(line(3), "group 1      1  |", 16));
	assert_int_equal(terminal.scrolled, 0);
	picture(&writer, 2, 1, NULL, true);
	fprintf(stderr, "the end\n");
	look();
	assert_true(!strncmp(line(3), "group 1      1  |", 16));
	assert_string_equal(line(4), "the end");
	fclose(stderr);
	stderr = plain;
	dup2(own, STDERR_FILENO);
	close(own);
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_rows),       cmocka_unit_test(several_views),
		cmocka_unit_test(wide_columns),    cmocka_unit_test(narrower),
		cmocka_unit_test(wide_characters), cmocka_unit_test(messages),
		cmocka_unit_test(heads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
